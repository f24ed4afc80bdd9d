//! Comparisons and selection.

use super::{broadcast, compute, own, spread};
use crate::{
    AsOperand, Element, Number, Result, Tensor,
    backend::{Compare, Op},
};

fn compare<'s, T: Element>(
    name: &'static str,
    kind: Compare,
    a: &Tensor<'s, T>,
    b: &(impl AsOperand<'s, T> + ?Sized),
) -> Result<Tensor<'s, bool>> {
    let scope = a.scope();
    let (a, b) = (own(name, a)?, b.operand(name, scope)?);
    let (shape, marks) = broadcast(name, scope, &[a, b])?;
    let inputs = [spread(name, a.view, &shape)?, spread(name, b.view, &shape)?];
    compute(scope, Op::Compare(kind), &inputs, &shape, marks)
}

macro_rules! compare {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, $kind:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// Shapes broadcast; padding marks unite.
        ///
        /// # Errors
        /// [`Error::Shape`] when the shapes do not broadcast; [`Error::PaddedMix`] when one dimension
        /// is padded by different symbols.
        ///
        /// [`Error::Shape`]: crate::Error::Shape
        /// [`Error::PaddedMix`]: crate::Error::PaddedMix
        pub fn $name<'s, T: $bound>(
            a: &Tensor<'s, T>,
            b: &(impl AsOperand<'s, T> + ?Sized),
        ) -> Result<Tensor<'s, bool>> {
            compare(stringify!($name), Compare::$kind, a, b)
        }
    )*};
}

compare! {
    /// `a == b`, element by element; false where either is NaN.
    eq: Element, Eq;
    /// `a != b`, element by element; true where either is NaN.
    ne: Element, Ne;
    /// `a < b`, element by element; false where either is NaN.
    lt: Number, Lt;
    /// `a <= b`, element by element; false where either is NaN.
    le: Number, Le;
    /// `a > b`, element by element; false where either is NaN.
    gt: Number, Gt;
    /// `a >= b`, element by element; false where either is NaN.
    ge: Number, Ge;
}

/// `a` where `cond` is true, `b` elsewhere.
///
/// All three shapes broadcast; padding marks unite. Both sides are read everywhere, but a value that
/// is not picked has no influence (a NaN stays where it is).
///
/// # Errors
/// [`Error::Shape`] when the shapes do not broadcast; [`Error::PaddedMix`] when one dimension is
/// padded by different symbols.
///
/// [`Error::Shape`]: crate::Error::Shape
/// [`Error::PaddedMix`]: crate::Error::PaddedMix
pub fn where_<'s, T: Element>(
    cond: &Tensor<'s, bool>,
    a: &(impl AsOperand<'s, T> + ?Sized),
    b: &(impl AsOperand<'s, T> + ?Sized),
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "where";
    let scope = cond.scope();
    let operands = [own(NAME, cond)?, a.operand(NAME, scope)?, b.operand(NAME, scope)?];
    let (shape, marks) = broadcast(NAME, scope, &operands)?;
    let [cond, a, b] = operands;
    let inputs =
        [spread(NAME, cond.view, &shape)?, spread(NAME, a.view, &shape)?, spread(NAME, b.view, &shape)?];
    compute(scope, Op::Where, &inputs, &shape, marks)
}

//! Comparisons and selection.

use super::{
    check::{broadcast, spread},
    launch::{compute, own},
};
use crate::{
    AsOperand, Element, Number, Result, Tensor,
    backend::{
        Op,
        operations::{Compare, SELECT},
    },
};

fn compare<'s, T: Element>(
    name: &'static str,
    op: Op,
    a: &Tensor<'s, T>,
    b: &(impl AsOperand<'s, T> + ?Sized),
) -> Result<Tensor<'s, bool>> {
    let scope = a.scope();
    let (a, b) = (own(name, a)?, b.operand(name, scope)?);
    let (shape, marks) = broadcast(name, scope, &[a, b])?;
    let inputs = [spread(name, a.view, &shape)?, spread(name, b.view, &shape)?];
    compute(scope, op, &inputs, &shape, marks)
}

macro_rules! compare {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, $kind:ident => $result:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// ```
        /// # use graphable::prelude::*;
        /// # let mut rt = Runtime::new(Device::cpu())?;
        /// # let step = rt.step()?;
        /// let a = step.tensor(&[3], &[1.0f32, 2.0, 3.0])?;
        /// let b = step.tensor(&[1], &[2.0f32])?;
        #[doc = concat!("assert_eq!(step.read(&ops::", stringify!($name), "(&a, &b)?)?, ", $result, ");")]
        /// # Ok::<(), Error>(())
        /// ```
        ///
        /// Shapes broadcast; padding marks unite.
        ///
        /// # Errors
        /// Returns [`Error::Shape`] if the shapes do not broadcast; [`Error::PaddedMix`] if one dimension is
        /// padded by different symbols.
        ///
        /// [`Error::Shape`]: crate::Error::Shape
        /// [`Error::PaddedMix`]: crate::Error::PaddedMix
        pub fn $name<'s, T: $bound>(
            a: &Tensor<'s, T>,
            b: &(impl AsOperand<'s, T> + ?Sized),
        ) -> Result<Tensor<'s, bool>> {
            compare(stringify!($name), Op::fixed(&Compare::$kind), a, b)
        }
    )*};
}

compare! {
    /// `a == b`, element by element; false where either is NaN.
    eq: Element, Eq => "[false, true, false]";
    /// `a != b`, element by element; true where either is NaN.
    ne: Element, Ne => "[true, false, true]";
    /// `a < b`, element by element; false where either is NaN.
    lt: Number, Lt => "[true, false, false]";
    /// `a <= b`, element by element; false where either is NaN.
    le: Number, Le => "[true, true, false]";
    /// `a > b`, element by element; false where either is NaN.
    gt: Number, Gt => "[false, false, true]";
    /// `a >= b`, element by element; false where either is NaN.
    ge: Number, Ge => "[false, true, true]";
}

/// `a` where `cond` is true, `b` elsewhere.
///
/// All three shapes broadcast; padding marks are united. Both sides are read everywhere, but a value that is
/// not picked has no influence (a NaN does not propagate).
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let a = step.tensor(&[3], &[1.0f32, 2.0, 3.0])?;
/// let zero = ops::zeros_like(&a)?;
/// let large = ops::gt(&a, &ops::full_like(&a, 1.5)?)?;
/// let y = ops::where_(&large, &a, &zero)?;
/// assert_eq!(step.read(&y)?, [0.0, 2.0, 3.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`] if the shapes do not broadcast; [`Error::PaddedMix`] if one dimension is padded
/// by different symbols.
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
    compute(scope, SELECT, &inputs, &shape, marks)
}

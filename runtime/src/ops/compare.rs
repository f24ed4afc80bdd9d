//! Comparisons and selection.

use std::any::TypeId;

use super::{
    by_type::ByType,
    check::{broadcast, spread},
    launch::{compute, own},
};
use crate::{
    AsOperand, Element, Number, Result, Tensor,
    backend::Op,
    kernel::definition::{Compute, Definition, Kernel, Kind},
};

/// Comparisons of all types. Any with NaN is false, but `ne`, which is true.
macro_rules! comparisons {
    ($($module:ident $t:ident)*) => {$(
        mod $module {
            use crate::kernel;
            #[cfg(feature = "cuda")]
            use crate::kernel::definition::{Definition, Kernel as _};

            #[kernel]
            pub(super) fn eq(a: $t, b: $t) -> bool {
                a == b
            }

            #[kernel]
            pub(super) fn ne(a: $t, b: $t) -> bool {
                a != b
            }

            #[kernel]
            pub(super) fn lt(a: $t, b: $t) -> bool {
                a < b
            }

            #[kernel]
            pub(super) fn le(a: $t, b: $t) -> bool {
                a <= b
            }

            #[kernel]
            pub(super) fn gt(a: $t, b: $t) -> bool {
                a > b
            }

            #[kernel]
            pub(super) fn ge(a: $t, b: $t) -> bool {
                a >= b
            }

            #[cfg(feature = "cuda")]
            pub(super) const ALL: [&Definition; 6] = [
                eq::DEFINITION, ne::DEFINITION, lt::DEFINITION, le::DEFINITION, gt::DEFINITION, ge::DEFINITION,
            ];
        }
    )*};
}

comparisons! {
    f32s f32
    i32s i32
    u32s u32
    u8s u8
}

/// Selections by the size of elements, whose bits are moved.
macro_rules! selections {
    ($($module:ident $t:ident)*) => {$(
        mod $module {
            use crate::kernel;

            #[kernel]
            pub(super) fn r#where(cond: bool, a: $t, b: $t) -> $t {
                if cond { a } else { b }
            }
        }
    )*};
}

selections! {
    of_1_byte u8
    of_4_bytes u32
}

/// The same by hand: the language has no type of 16 bits.
#[derive(Debug)]
enum Of2Bytes {}

impl Kernel for Of2Bytes {
    const DEFINITION: &'static Definition = &Definition {
        id: TypeId::of::<Self>(),
        name: "where",
        kind: Kind::Elements,
        inputs: &[("cond", Compute::Bool), ("a", Compute::U16), ("b", Compute::U16)],
        outputs: &[Compute::U16],
        text: "DEVICE u16 ${f}(bool cond, u16 a, u16 b) {\n    return cond ? a : b;\n}\n",
        uses: |_| {},
        block: |block| {
            let (cond, a, b) = (block.input_u8(0), block.input_u16(1), block.input_u16(2));
            for (((y, cond), a), b) in block.output_u16(0).iter_mut().zip(cond).zip(a).zip(b) {
                *y = if *cond != 0 { *a } else { *b };
            }
        },
    };
    const DEPTH: usize = 1;
}

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
    ($($(#[$doc:meta])* $name:ident: $bound:ident => $result:literal;)*) => {$(
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
            const OF: ByType = ByType::new::<f32s::$name, i32s::$name, u32s::$name, u8s::$name>();
            compare(stringify!($name), OF.of::<T>(), a, b)
        }
    )*};
}

compare! {
    /// `a == b`, element by element; false where either is NaN.
    eq: Element => "[false, true, false]";
    /// `a != b`, element by element; true where either is NaN.
    ne: Element => "[true, false, true]";
    /// `a < b`, element by element; false where either is NaN.
    lt: Number => "[true, false, false]";
    /// `a <= b`, element by element; false where either is NaN.
    le: Number => "[true, true, false]";
    /// `a > b`, element by element; false where either is NaN.
    gt: Number => "[false, false, true]";
    /// `a >= b`, element by element; false where either is NaN.
    ge: Number => "[false, true, true]";
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
    compute(scope, Op::fixed(selection(T::DTYPE.size())), &inputs, &shape, marks)
}

/// The selection of elements of so many bytes.
fn selection(size: usize) -> &'static Definition {
    match size {
        1 => of_1_byte::r#where::DEFINITION,
        2 => Of2Bytes::DEFINITION,
        _ => of_4_bytes::r#where::DEFINITION,
    }
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    let comparisons = [f32s::ALL, i32s::ALL, u32s::ALL, u8s::ALL];
    comparisons.into_iter().flatten().chain([1, 2, 4].map(selection))
}

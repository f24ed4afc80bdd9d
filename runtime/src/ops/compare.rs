//! Comparisons and selection.

use std::any::TypeId;

use super::{
    by_type::{ByType, each_type},
    check::broadcast,
    composed::composed,
};
use crate::{
    Argument, AsOperand, Element, Number, Result, Tensor,
    kernel::{
        call::Call,
        definition::{Compute, Definition, Kernel, Kind},
    },
};

/// Comparisons of all types. Any with NaN is false, but `ne`, which is true.
macro_rules! comparisons {
    ($($module:ident $t:ident)*) => {$(
        mod $module {
            use crate::kernel;

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
            #[kernel]
            pub(super) fn comparisons(a: $t, b: $t) -> bool {
                eq(a, b) || ne(b, a) && lt(a, b) || le(b, a) && gt(a, b) || ge(b, a)
            }
        }
    )*};
}

comparisons! {
    f32s f32
    i32s i32
    u32s u32
    u8s u8
    f64s f64
    i64s i64
    i8s i8
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
    of_8_bytes i64
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
        further: false,
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
        /// `b` may be a number, which is rounded to `T` as an element of a tensor is. Shapes broadcast; padding marks unite.
        ///
        /// # Errors
        /// Returns [`Error::Shape`] if the shapes do not broadcast; [`Error::PaddedMix`] if one dimension is
        /// padded by different symbols.
        ///
        /// [`Error::Shape`]: crate::Error::Shape
        /// [`Error::PaddedMix`]: crate::Error::PaddedMix
        pub fn $name<'s, T: $bound>(
            a: &Tensor<'s, T>,
            b: impl Argument<'s, T>,
        ) -> Result<Tensor<'s, bool>> {
            const OF: ByType = each_type!(f32s::$name);
            let mut call = Call::new(OF.of::<T>(), a)?;
            call.argument(b)?;
            call.rounded::<T>().launch()
        }
    )*};
}

compare! {
    /// Returns `a == b`, element by element; false where either is NaN.
    /// Corresponds to `torch.eq`.
    eq: Element => "[false, true, false]";
    /// Returns `a != b`, element by element; true where either is NaN.
    /// Corresponds to `torch.ne`.
    ne: Element => "[true, false, true]";
    /// Returns `a < b`, element by element; false where either is NaN.
    /// Corresponds to `torch.lt`.
    lt: Number => "[true, false, false]";
    /// Returns `a <= b`, element by element; false where either is NaN.
    /// Corresponds to `torch.le`.
    le: Number => "[true, true, false]";
    /// Returns `a > b`, element by element; false where either is NaN.
    /// Corresponds to `torch.gt`.
    gt: Number => "[false, false, true]";
    /// Returns `a >= b`, element by element; false where either is NaN.
    /// Corresponds to `torch.ge`.
    ge: Number => "[false, true, true]";
}

/// Returns `a` where `cond` is true, `b` elsewhere.
///
/// Corresponds to `torch.where`.
///
/// `a` and `b` may be numbers; if both are, the element type has to be named, as in `where_::<f32>(&cond, 1.0, 0.0)`. All
/// three shapes broadcast; padding marks are united. Both sides are read everywhere, but a value that is
/// not picked has no influence (a NaN does not propagate).
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let a = step.tensor(&[3], &[1.0f32, 2.0, 3.0])?;
/// let large = ops::gt(&a, 1.5)?;
/// let y = ops::where_(&large, &a, 0.0)?;
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
    a: impl Argument<'s, T>,
    b: impl Argument<'s, T>,
) -> Result<Tensor<'s, T>> {
    let mut call = Call::new(selection(T::DTYPE.size()), cond)?;
    call.argument(a)?;
    call.argument(b)?;
    call.moving::<T>().launch()
}

/// Returns `x`, but `value` where `mask` is true.
///
/// Corresponds to `torch.Tensor.masked_fill`.
///
/// `mask` and `value`, which may be a number, broadcast to `x`. The result has the padding marks of `x`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
/// let mask = step.tensor(&[2], &[true, false])?;
/// let y = ops::masked_fill(&x, &mask, f32::NEG_INFINITY)?;
/// assert_eq!(step.read(&y)?, [f32::NEG_INFINITY, 2.0, f32::NEG_INFINITY, 4.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`] if `mask` or `value` does not broadcast to `x`; [`Error::PaddedMix`] if one is padded where
/// `x` is not, or by another symbol.
///
/// [`Error::Shape`]: crate::Error::Shape
/// [`Error::PaddedMix`]: crate::Error::PaddedMix
pub fn masked_fill<'s, T: Element>(
    x: &Tensor<'s, T>,
    mask: &(impl AsOperand<'s, bool> + ?Sized),
    value: impl Argument<'s, T>,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "masked_fill";
    let scope = x.scope();
    let mut call = Call::within(selection(T::DTYPE.size()), scope);
    composed(NAME, || {
        call.argument::<bool>(mask)?;
        call.argument(value)?;
        call.argument::<T>(x)
    })?;
    let (shape, marks) = broadcast(NAME, scope, &call.shown())?;
    for axis in (0..shape.len()).filter(|axis| {
        let own = (axis + x.rank()).checked_sub(shape.len());
        marks.get(*axis) != own.and_then(|own| x.raw.marks.get(own))
    }) {
        scope.refuse_padded(NAME, marks, axis)?;
    }
    if shape[..] != *x.sizes() {
        return Err(scope.shape_error(NAME, &call.shown(), "mask and value must broadcast to the tensor"));
    }
    composed(NAME, || call.moving::<T>().launch())
}

/// The selection of elements of so many bytes.
pub(in crate::ops) fn selection(size: usize) -> &'static Definition {
    match size {
        1 => of_1_byte::r#where::DEFINITION,
        2 => Of2Bytes::DEFINITION,
        4 => of_4_bytes::r#where::DEFINITION,
        _ => of_8_bytes::r#where::DEFINITION,
    }
}

/// The kernels of this file, for CI to compile: those that call all others, and selections.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    let comparisons = [
        f32s::comparisons::DEFINITION,
        i32s::comparisons::DEFINITION,
        u32s::comparisons::DEFINITION,
        u8s::comparisons::DEFINITION,
        f64s::comparisons::DEFINITION,
        i64s::comparisons::DEFINITION,
        i8s::comparisons::DEFINITION,
    ];
    comparisons.into_iter().chain([1, 2, 4, 8].map(selection))
}

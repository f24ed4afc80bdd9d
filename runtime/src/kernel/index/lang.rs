//! Views on the CPU.

use super::super::{
    block::Beyond,
    lang::{
        Integer,
        rows::{Context, Nothing, Stored},
    },
    random::Random,
};
use crate::{RngState, base::rank::MAX_RANK, bf16, f16};

/// A tensor as a kernel of indices sees it.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    pub(super) values: Values<'a>,
    /// Sizes without padding, outermost first.
    pub(super) sizes: [u32; MAX_RANK],
    /// In elements.
    pub(super) strides: [usize; MAX_RANK],
}

/// The elements of a tensor, as they are stored; a `bool` is a byte.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Values<'a> {
    /// Of a type that is computed in `f32`.
    Floats(Floats<'a>),
    /// Of `f64`.
    F64(&'a [f64]),
    /// Of `i32`.
    I32(&'a [i32]),
    /// Of `i64`.
    I64(&'a [i64]),
    /// Of `i8`.
    I8(&'a [i8]),
    /// Of `u32`.
    U32(&'a [u32]),
    /// Of `u8` and `bool`.
    U8(&'a [u8]),
}

/// Floats, which are converted where they are read.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Floats<'a> {
    /// Of `f32`.
    F32(&'a [f32]),
    /// Of `f16`.
    F16(&'a [f16]),
    /// Of `bf16`.
    Bf16(&'a [bf16]),
}

/// A type that views have.
pub trait Readable: Stored + Nothing {
    /// Elements in memory.
    type Elements<'a>: Copy;
    /// Those of a tensor of this type; none of another type.
    fn elements(values: Values<'_>) -> Self::Elements<'_>;
    /// The element at a place.
    fn read(elements: Self::Elements<'_>, at: usize) -> Self;
    /// Values as a tensor has them.
    fn values(raw: &[Self::Raw]) -> Values<'_>;
}

impl Readable for f32 {
    type Elements<'a> = Floats<'a>;
    #[inline(always)]
    fn elements(values: Values<'_>) -> Floats<'_> {
        match values {
            Values::Floats(floats) => floats,
            _ => Floats::F32(&[]),
        }
    }
    #[inline(always)]
    fn read(elements: Floats<'_>, at: usize) -> Self {
        match elements {
            Floats::F32(all) => all[at],
            Floats::F16(all) => all[at].to_f32(),
            Floats::Bf16(all) => all[at].to_f32(),
        }
    }
    fn values(raw: &[Self]) -> Values<'_> {
        Values::Floats(Floats::F32(raw))
    }
}

macro_rules! readable {
    ($($t:ident $raw:ident $variant:ident;)*) => {$(
        impl Readable for $t {
            type Elements<'a> = &'a [$raw];
            #[inline(always)]
            fn elements(values: Values<'_>) -> &[$raw] {
                match values {
                    Values::$variant(all) => all,
                    _ => &[],
                }
            }
            #[inline(always)]
            fn read(elements: &[$raw], at: usize) -> Self {
                <$t as Stored>::of(elements[at])
            }
            fn values(raw: &[$raw]) -> Values<'_> {
                Values::$variant(raw)
            }
        }
    )*};
}

readable! {
    f64 f64 F64;
    i32 i32 I32;
    i64 i64 I64;
    i8 i8 I8;
    u32 u32 U32;
    u8 u8 U8;
    bool u8 U8;
}

/// A parameter `View<T, N>`.
#[derive(Debug)]
pub struct View<'a, T: Readable, const N: usize> {
    elements: T::Elements<'a>,
    sizes: [u32; N],
    strides: [usize; N],
}

impl<T: Readable, const N: usize> Clone for View<'_, T, N> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Readable, const N: usize> Copy for View<'_, T, N> {}

impl<'a, T: Readable, const N: usize> View<'a, T, N> {
    /// Returns the view of a tensor, which has `N` dimensions.
    #[must_use]
    #[inline(always)]
    pub fn new(data: Data<'a>) -> Self {
        Self {
            elements: T::elements(data.values),
            sizes: std::array::from_fn(|i| data.sizes.get(i).copied().unwrap_or(1)),
            strides: std::array::from_fn(|i| data.strides.get(i).copied().unwrap_or(0)),
        }
    }

    /// Returns the view of values in row-major order. If `sizes` ask for more values than there are, the view
    /// ends where they do.
    #[must_use]
    pub fn of(values: &'a [T::Raw], sizes: [usize; N]) -> Self {
        let mut strides = [1usize; N];
        for i in (1..N).rev() {
            strides[i - 1] = strides[i].saturating_mul(sizes[i]);
        }
        let mut sizes = sizes.map(|size| u32::try_from(size).unwrap_or(u32::MAX));
        if let (Some(size), Some(stride)) = (sizes.first_mut(), strides.first()) {
            let enough = values.len() / (*stride).max(1);
            *size = (*size).min(u32::try_from(enough).unwrap_or(u32::MAX));
        }
        Self { elements: T::elements(T::values(values)), sizes, strides }
    }

    /// Returns the position of an element.
    #[inline(always)]
    fn place(&self, index: [u32; N]) -> Result<usize, Beyond> {
        let mut place = 0;
        for ((index, size), stride) in index.into_iter().zip(self.sizes).zip(self.strides) {
            if index >= size {
                return Err(Beyond { index, bound: size as usize });
            }
            place += index as usize * stride;
        }
        Ok(place)
    }
}

/// Returns an index as it is compared with a size: none is negative.
#[must_use]
#[inline(always)]
pub fn place(index: impl Integer) -> u32 {
    index.index()
}

/// Returns the element at an index; an index out of range is noted, and zero stands for it.
#[must_use]
#[inline(always)]
pub fn at<T: Readable, const N: usize>(context: &Context, view: View<'_, T, N>, index: [u32; N]) -> T {
    match view.place(index) {
        Ok(place) => T::read(view.elements, place),
        Err(beyond) => {
            context.note(beyond);
            T::NOTHING
        }
    }
}

/// Returns the element at an index, or another value out of range.
#[must_use]
#[inline(always)]
pub fn at_or<T: Readable, const N: usize>(view: View<'_, T, N>, index: [u32; N], other: T) -> T {
    match view.place(index) {
        Ok(place) => T::read(view.elements, place),
        Err(_) => other,
    }
}

/// Returns one more than the number of the element at an index, which is to be written; an index out of range
/// is noted, and the result is 0, which stands for none.
#[must_use]
#[inline(always)]
pub fn target<T: Readable, const N: usize>(context: &Context, view: View<'_, T, N>, index: [u32; N]) -> u32 {
    match view.place(index) {
        // The launch checks that the state has fewer elements.
        Ok(place) => (place as u32).wrapping_add(1),
        Err(beyond) => {
            context.note(beyond);
            0
        }
    }
}

/// Returns the number of the element that is written, if there is one, and its value.
#[must_use]
pub fn written<T>((value, place): (T, u32)) -> Option<(usize, T)> {
    place.checked_sub(1).map(|place| (place as usize, value))
}

/// Returns the size of a dimension.
#[must_use]
#[inline(always)]
pub fn dim<T: Readable, const N: usize>(view: View<'_, T, N>, axis: usize) -> i32 {
    view.sizes.get(axis).map_or(1, |size| size.cast_signed())
}

/// The random numbers of the elements of a launch, from one generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers {
    /// The generator, and the number of the call.
    state: RngState,
    /// Sizes of the results without padding.
    real: [u32; MAX_RANK],
}

impl Numbers {
    pub(super) fn new(state: RngState, real: [u32; MAX_RANK]) -> Self {
        Self { state, real }
    }

    /// Returns the number of the element at an index.
    #[must_use]
    #[inline]
    pub fn at<const N: usize>(self, index: [i32; N]) -> Random {
        let all = index.iter().zip(self.real);
        let place = all.fold(0, |place, (at, real)| place * u64::from(real) + u64::from(at.cast_unsigned()));
        Random::at(self.state, place)
    }
}

/// Elements of the results that a task computes.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The first, in row-major order.
    pub(super) first: usize,
    pub(super) count: usize,
    /// Of the results.
    pub(super) sizes: [u32; MAX_RANK],
    /// The same without padding.
    pub(super) real: [u32; MAX_RANK],
}

/// Calls `run` with the number of each element of the part that is not padding, and with its index.
#[inline(always)]
pub fn each<const N: usize>(part: Part, mut run: impl FnMut(usize, [i32; N])) {
    let sizes: [u32; N] = std::array::from_fn(|i| part.sizes.get(i).copied().unwrap_or(1));
    let real: [u32; N] = std::array::from_fn(|i| part.real.get(i).copied().unwrap_or(1));
    let mut index = [0; N];
    let mut rest = part.first;
    for (at, size) in index.iter_mut().zip(sizes).rev() {
        *at = (rest % size.max(1) as usize) as u32;
        rest /= size.max(1) as usize;
    }
    for number in 0..part.count {
        if index.iter().zip(real).all(|(at, real)| *at < real) {
            run(number, index.map(u32::cast_signed));
        }
        for (at, size) in index.iter_mut().zip(sizes).rev() {
            *at += 1;
            if *at < size {
                break;
            }
            *at = 0;
        }
    }
}

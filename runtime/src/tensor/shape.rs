//! Shapes, as returned by [`Tensor::shape`](crate::Tensor::shape) and as accepted by operations.

use std::{cmp::Ordering, fmt, ops::Deref, panic::Location, slice};

use smallvec::SmallVec;

use crate::{
    Error, Result, Runtime, Scope,
    base::rank::MAX_RANK,
    tensor::{
        dim::{Dim, not_equal},
        sealed::Sealed,
    },
    value::{
        dim::{DimKind, MarkedSize, RawDim},
        layout::{Layout, PaddedDims},
    },
};

/// The sizes of a tensor, outermost first: a slice of [`Dim`]s.
///
/// It can be compared with arrays, slices and vectors of numbers, and passed to every operation that takes a
/// shape. Sizes that buckets pad are not numbers; see [`Dim`].
#[derive(Clone, Copy)]
pub struct Shape<'s> {
    rank: u8,
    dims: [Dim<'s>; MAX_RANK],
}

impl<'s> Shape<'s> {
    pub(crate) fn new(rt: &'s Runtime, layout: &Layout, marks: PaddedDims) -> Self {
        let call = if marks.any() { rt.core.borrow().memory.call_number() } else { 0 };
        let sizes = layout.sizes();
        let dims = std::array::from_fn(|axis| Dim {
            raw: RawDim { size: sizes[axis], kind: marks.get(axis).map_or(DimKind::Number, DimKind::Padded) },
            rt: Some(rt),
            call,
        });
        Self { rank: layout.rank() as u8, dims }
    }

    /// Creates a shape of at most [`MAX_RANK`] sizes.
    pub(crate) fn from_dims(dims: impl Iterator<Item = Dim<'s>>) -> Self {
        let mut shape = Self { rank: 0, dims: [Dim::from(1); MAX_RANK] };
        for (to, dim) in shape.dims.iter_mut().zip(dims) {
            *to = dim;
            shape.rank += 1;
        }
        shape
    }

    /// Returns the sizes as numbers.
    ///
    /// # Errors
    /// Returns the error of [`Dim::get`] for the first size that is not a number.
    #[track_caller]
    pub fn numbers(&self) -> Result<Vec<usize>> {
        let mut sizes = Vec::with_capacity(self.len());
        for dim in self {
            sizes.push(dim.get()?);
        }
        Ok(sizes)
    }

    fn equals(&self, others: impl ExactSizeIterator<Item = Dim<'s>>, at: &'static Location<'static>) -> bool {
        if others.len() != self.len() {
            return false;
        }
        let mut unknown = None;
        for (a, b) in self.iter().zip(others) {
            match a.known_order(b) {
                Some(Ordering::Equal) => {}
                Some(_) => return false,
                None => unknown = unknown.or(Some((*a, b))),
            }
        }
        unknown.is_none_or(|(a, b)| a.refuse_order(b, at) == Some(Ordering::Equal))
    }
}

impl<'s> Deref for Shape<'s> {
    type Target = [Dim<'s>];

    fn deref(&self) -> &[Dim<'s>] {
        &self.dims[..usize::from(self.rank)]
    }
}

impl<'a, 's> IntoIterator for &'a Shape<'s> {
    type Item = &'a Dim<'s>;
    type IntoIter = slice::Iter<'a, Dim<'s>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'s> IntoIterator for Shape<'s> {
    type Item = Dim<'s>;
    type IntoIter = std::iter::Take<std::array::IntoIter<Dim<'s>, MAX_RANK>>;

    fn into_iter(self) -> Self::IntoIter {
        self.dims.into_iter().take(usize::from(self.rank))
    }
}

impl fmt::Debug for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for Shape<'_> {
    #[track_caller]
    fn eq(&self, other: &Self) -> bool {
        self.equals(other.iter().copied(), Location::caller())
    }

    not_equal! { Self }
}

macro_rules! equal_to {
    ($([$($generics:tt)*] $t:ty;)*) => {$(
        impl<$($generics)*> PartialEq<$t> for Shape<'_> {
            #[track_caller]
            fn eq(&self, other: &$t) -> bool {
                self.equals(other.iter().map(|&n| Dim::from(n)), Location::caller())
            }

            not_equal! { $t }
        }
        impl<$($generics)*> PartialEq<Shape<'_>> for $t {
            #[track_caller]
            fn eq(&self, other: &Shape<'_>) -> bool {
                other.equals(self.iter().map(|&n| Dim::from(n)), Location::caller())
            }

            not_equal! { Shape<'_> }
        }
    )*};
}
equal_to! {
    [] [usize];
    [] &[usize];
    [] Vec<usize>;
    [const N: usize] [usize; N];
    [const N: usize] &[usize; N];
}

/// One size: a number, or the [`Dim`] of a tensor.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a size",
    label = "expected a `usize`, or a size such as `x.dim(0)`"
)]
pub trait IntoDim<'s>: Sealed {
    /// Used by the operations.
    #[doc(hidden)]
    fn into_dim(self) -> Dim<'s>;
}

impl Sealed for usize {}
impl<'s> IntoDim<'s> for usize {
    fn into_dim(self) -> Dim<'s> {
        self.into()
    }
}

impl Sealed for Dim<'_> {}
impl<'s> IntoDim<'s> for Dim<'s> {
    fn into_dim(self) -> Dim<'s> {
        self
    }
}

impl<'s, D: IntoDim<'s> + Copy> IntoDim<'s> for &D {
    fn into_dim(self) -> Dim<'s> {
        (*self).into_dim()
    }
}

/// The sizes passed to an operation.
pub(crate) type Sizes<'s> = SmallVec<[Dim<'s>; MAX_RANK]>;

/// A shape: numbers and [`Dim`]s, outermost first.
///
/// Tuples mix them: `(x.dim(0), 4)`. Arrays, slices and vectors contain one kind: `[2, 3]`,
/// `&[x.dim(0), x.dim(1)]`, `x.shape()`. The shape of a scalar is `()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a shape",
    label = "expected sizes",
    note = "numbers and sizes of tensors are mixed in a tuple: `(x.dim(0), 4)`; arrays and slices hold one kind, and a scalar has the shape `()`"
)]
pub trait IntoShape<'s>: Sealed {
    /// Used by the operations.
    #[doc(hidden)]
    fn into_sizes(self) -> Sizes<'s>;

    /// Never called. Clippy accepts a method on `&mut self` as a reason to pass a reference; without one,
    /// `needless_borrows_for_generic_args` would suggest `[2, 3]` for every `&[2, 3]`.
    #[doc(hidden)]
    fn by_reference(&mut self) {}
}

/// Like [`IntoShape`], for host data. Arrays by reference contain numbers, so that `&[]` is the shape of a
/// scalar.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a shape",
    label = "expected sizes",
    note = "numbers and sizes of tensors are mixed in a tuple: `(x.dim(0), 4)`; slices hold numbers: `&[2, 3]`"
)]
pub trait IntoDataShape<'s>: Sealed {
    /// Used by the operations.
    #[doc(hidden)]
    fn into_data_sizes(self) -> Sizes<'s>;

    /// See [`IntoShape`].
    #[doc(hidden)]
    fn by_reference(&mut self) {}
}

fn collect<'s, D: IntoDim<'s>>(sizes: impl IntoIterator<Item = D>) -> Sizes<'s> {
    sizes.into_iter().map(IntoDim::into_dim).collect()
}

macro_rules! shapes {
    ($($trait:ident::$name:ident { $([$($generics:tt)*] $t:ty;)* })*) => {$($(
        impl<'s, $($generics)*> $trait<'s> for $t {
            fn $name(self) -> Sizes<'s> {
                collect(self)
            }
        }
    )*)*};
}

impl<D, const N: usize> Sealed for [D; N] {}
impl<D> Sealed for [D] {}
impl<D> Sealed for Vec<D> {}
impl Sealed for Shape<'_> {}

shapes! {
    IntoShape::into_sizes {
        [D: IntoDim<'s>, const N: usize] [D; N];
        [D: IntoDim<'s> + Copy, const N: usize] &[D; N];
        [D: IntoDim<'s> + Copy] &[D];
        [D: IntoDim<'s> + Copy] &Vec<D>;
        [D: IntoDim<'s>] Vec<D>;
    }
    IntoDataShape::into_data_sizes {
        [D: IntoDim<'s>, const N: usize] [D; N];
        [const N: usize] &[usize; N];
        [] &[usize];
        [] &Vec<usize>;
    }
}

macro_rules! of_tensors {
    ($($trait:ident::$name:ident)*) => {$(
        impl<'s> $trait<'s> for Shape<'s> {
            fn $name(self) -> Sizes<'s> {
                Sizes::from_slice(&self)
            }
        }
        impl<'s> $trait<'s> for &Shape<'s> {
            fn $name(self) -> Sizes<'s> {
                Sizes::from_slice(self)
            }
        }
    )*};
}

of_tensors! {
    IntoShape::into_sizes
    IntoDataShape::into_data_sizes
}

impl<'s, D: IntoDim<'s> + Copy> IntoShape<'s> for &&[D] {
    fn into_sizes(self) -> Sizes<'s> {
        collect(*self)
    }
}

impl<'s> IntoDataShape<'s> for &&[usize] {
    fn into_data_sizes(self) -> Sizes<'s> {
        collect(*self)
    }
}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {$(
        impl<$($name),*> Sealed for ($($name,)*) {}
        impl<'s, $($name: IntoDim<'s>),*> IntoShape<'s> for ($($name,)*) {
            #[allow(non_snake_case, reason = "the type parameters' names serve as bindings")]
            fn into_sizes(self) -> Sizes<'s> {
                let ($($name,)*) = self;
                [$($name.into_dim()),*].into_iter().collect()
            }
        }
        impl<'s, $($name: IntoDim<'s>),*> IntoDataShape<'s> for ($($name,)*) {
            fn into_data_sizes(self) -> Sizes<'s> {
                self.into_sizes()
            }
        }
    )*};
}
tuples! { ; A; A B; A B C; A B C D; A B C D E; A B C D E F; }

/// A shape passed to an operation, after checks: the sizes in the call, and which of them are padded.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) sizes: SmallVec<[usize; MAX_RANK]>,
    pub(crate) marks: PaddedDims,
}

impl<'s> Scope<'s> {
    /// Returns one size, and the symbol that pads it.
    ///
    /// # Errors
    /// Returns [`Error::PaddedSize`] for a size computed from a padded one, and [`Error::NeverComputed`] for
    /// one of a call that has ended.
    pub(crate) fn resolve_dim(self, op: &'static str, dim: Dim<'s>) -> Result<MarkedSize> {
        match dim.raw.kind {
            DimKind::Number => Ok(MarkedSize::fixed(dim.raw.size)),
            DimKind::Padded(symbol) => {
                if !dim.rt.is_some_and(|rt| std::ptr::eq(rt, self.rt)) {
                    return Err(Error::DifferentRuntimes { op });
                }
                if dim.call != self.rt.core.borrow().memory.call_number() {
                    return Err(Error::NeverComputed { op });
                }
                Ok(MarkedSize { size: dim.raw.size, symbol: Some(symbol) })
            }
            DimKind::Computed(_) | DimKind::Impossible(_) => Err(dim.error(op, None)),
        }
    }

    /// Returns a number, where a padded size is not possible.
    pub(crate) fn resolve_number(self, op: &'static str, dim: Dim<'s>) -> Result<usize> {
        match dim.raw.kind {
            DimKind::Number => Ok(dim.raw.size),
            _ => Err(dim.error(op, None)),
        }
    }

    pub(crate) fn resolve(self, op: &'static str, sizes: Sizes<'s>) -> Result<Given> {
        if sizes.len() > MAX_RANK {
            return Err(Error::Rank { rank: sizes.len() });
        }
        let mut given = Given { sizes: SmallVec::new(), marks: PaddedDims::NONE };
        for (axis, dim) in sizes.iter().enumerate() {
            if dim.raw.kind == DimKind::Number {
                given.sizes.push(dim.raw.size);
                continue;
            }
            let MarkedSize { size, symbol } = self.resolve_dim(op, *dim)?;
            given.sizes.push(size);
            given.marks = given.marks.with(axis, symbol);
        }
        Ok(given)
    }
}

//! Values that bodies return.

use std::fmt::Display;

use crate::{
    DType, Error, Result, Runtime, Scalar, Tensor,
    value::{layout::Layout, raw::RawTensor},
};

/// A value that consists of tensors only, so that a body can return it, and a loop can carry it.
///
/// Implemented for [`Tensor`], [`Scalar`] and `()`, and for tuples, arrays, vectors, options and boxes of such values; a struct of them
/// derives it (`#[derive(Clone, Carried)]`, with [`graphable::Carried`](derive@crate::Carried)).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value on the device, which a body of `control` can return",
    label = "expected tensors and scalars, or tuples, arrays and vectors of them, or a struct that derives `Carried`",
    note = "the bodies only describe the work: the value that a body computes on the host would be the same whichever body runs",
    note = "make a host value a tensor with `ops::full`, or compute it outside of the bodies"
)]
pub trait Carried: Sized + sealed::Sealed {
    #[doc(hidden)]
    fn describe(&self, to: &mut Description);
    /// Replaces each tensor; `next` takes over one reference to the old one, and returns one to the new one.
    #[doc(hidden)]
    fn replace(self, next: &mut dyn FnMut(&Runtime, RawTensor) -> RawTensor) -> Self;
    /// Returns further handles of the same tensors.
    #[doc(hidden)]
    fn share(&self) -> Self;
}

/// The action of a node on each tensor, for generated code.
#[doc(hidden)]
pub type NextTensor<'a> = dyn FnMut(&Runtime, RawTensor) -> RawTensor + 'a;

pub(crate) mod sealed {
    #[doc(hidden)]
    pub trait Sealed {}
}

/// The tensors of a value, in order, and the lengths of the vectors in it.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Description {
    pub(super) tensors: Vec<RawTensor>,
    /// The ids of their runtimes.
    runtimes: Vec<u64>,
    lengths: Vec<usize>,
}

impl Description {
    pub(super) fn of(value: &impl Carried) -> Self {
        let mut description = Self::default();
        value.describe(&mut description);
        description
    }

    fn add(&mut self, rt: &Runtime, raw: RawTensor) {
        self.runtimes.push(rt.id());
        self.tensors.push(raw);
    }

    /// Refuses tensors of another runtime.
    ///
    /// # Errors
    /// Returns [`Error::DifferentRuntimes`].
    pub(super) fn check_runtime(&self, op: &'static str, rt: &Runtime) -> Result<()> {
        match self.runtimes.iter().all(|id| *id == rt.id()) {
            true => Ok(()),
            false => Err(Error::DifferentRuntimes { op }),
        }
    }

    /// Refuses tensors that differ from `other`'s in anything but their values.
    ///
    /// # Errors
    /// Returns [`Error::BodiesDiffer`].
    pub(super) fn check_like(&self, other: &Self, names: &Bodies<'_>, rt: &Runtime) -> Result<()> {
        let lengths = (&other.lengths, &self.lengths);
        if lengths.0 != lengths.1 {
            let shown = |lengths: &[usize]| format!("{lengths:?}");
            return Err(names.differ(
                "the number of values in each vector and option",
                shown(lengths.0),
                shown(lengths.1),
            ));
        }
        let number = (other.tensors.len(), self.tensors.len());
        if number.0 != number.1 {
            return Err(names.differ("the number of tensors", number.0, number.1));
        }
        for (index, (first, second)) in other.tensors.iter().zip(&self.tensors).enumerate() {
            let of = |what: &str| format!("the {what} of result {index}");
            if first.dtype != second.dtype {
                return Err(names.differ(&of("element type"), first.dtype, second.dtype));
            }
            // Before sizes, so that it does not depend on the size of the bucket.
            if first.marks.word() != second.marks.word() {
                let padded = |raw: &RawTensor| padded_dims(rt, raw);
                return Err(names.differ(&of("padding"), padded(first), padded(second)));
            }
            let shapes = (first.layout.shape(), second.layout.shape());
            if shapes.0 != shapes.1 {
                let shown = |shape: &[usize]| format!("{shape:?}");
                return Err(names.differ(&of("shape"), shown(shapes.0), shown(shapes.1)));
            }
        }
        Ok(())
    }
}

/// Returns which dimensions of a tensor are padded, in words.
fn padded_dims(rt: &Runtime, raw: &RawTensor) -> String {
    let marked = (0..raw.layout.rank()).filter_map(|axis| Some((axis, raw.marks.get(axis)?)));
    let dims: Vec<String> =
        marked.map(|(axis, symbol)| format!("axis {axis} by {}", rt.symbol_name(symbol))).collect();
    if dims.is_empty() { "none".into() } else { dims.join(", ") }
}

/// The name that errors give to the bodies that are compared.
#[derive(Debug)]
pub(super) struct Bodies<'a> {
    pub(super) control: &'static str,
    pub(super) first: &'a str,
    pub(super) second: &'a str,
}

impl Bodies<'_> {
    fn differ(&self, what: &str, expected: impl Display, found: impl Display) -> Error {
        Error::BodiesDiffer {
            control: self.control,
            what: what.to_owned(),
            first: format!("{expected} in {}", self.first),
            second: format!("{found} in {}", self.second),
        }
    }
}

/// A tensor of a body: its element type and its layout, if it is contiguous.
pub(super) fn contiguous_like(raw: &RawTensor) -> Result<(DType, Layout)> {
    Ok((raw.dtype, Layout::contiguous(raw.layout.shape())?))
}

impl<T> sealed::Sealed for Tensor<'_, T> {}
impl<T> Carried for Tensor<'_, T> {
    fn describe(&self, to: &mut Description) {
        to.add(self.rt, self.raw);
    }
    fn replace(self, next: &mut dyn FnMut(&Runtime, RawTensor) -> RawTensor) -> Self {
        let rt = self.rt;
        Self::from_raw(rt, next(rt, self.into_raw()))
    }
    fn share(&self) -> Self {
        self.clone()
    }
}

impl<T> sealed::Sealed for Scalar<'_, T> {}
impl<T> Carried for Scalar<'_, T> {
    fn describe(&self, to: &mut Description) {
        self.0.describe(to);
    }
    fn replace(self, next: &mut dyn FnMut(&Runtime, RawTensor) -> RawTensor) -> Self {
        Self(self.0.replace(next))
    }
    fn share(&self) -> Self {
        self.clone()
    }
}

impl<C: Carried> sealed::Sealed for Vec<C> {}
impl<C: Carried> Carried for Vec<C> {
    fn describe(&self, to: &mut Description) {
        to.lengths.push(self.len());
        self.iter().for_each(|each| each.describe(to));
    }
    fn replace(self, next: &mut dyn FnMut(&Runtime, RawTensor) -> RawTensor) -> Self {
        self.into_iter().map(|each| each.replace(next)).collect()
    }
    fn share(&self) -> Self {
        self.iter().map(C::share).collect()
    }
}

impl<C: Carried> sealed::Sealed for Option<C> {}
impl<C: Carried> Carried for Option<C> {
    fn describe(&self, to: &mut Description) {
        to.lengths.push(usize::from(self.is_some()));
        self.iter().for_each(|each| each.describe(to));
    }
    fn replace(self, next: &mut dyn FnMut(&Runtime, RawTensor) -> RawTensor) -> Self {
        self.map(|each| each.replace(next))
    }
    fn share(&self) -> Self {
        self.as_ref().map(C::share)
    }
}

impl<C: Carried> sealed::Sealed for Box<C> {}
impl<C: Carried> Carried for Box<C> {
    fn describe(&self, to: &mut Description) {
        (**self).describe(to);
    }
    fn replace(mut self, next: &mut dyn FnMut(&Runtime, RawTensor) -> RawTensor) -> Self {
        *self = (*self).replace(next);
        self
    }
    fn share(&self) -> Self {
        Self::new((**self).share())
    }
}

impl<C: Carried, const N: usize> sealed::Sealed for [C; N] {}
impl<C: Carried, const N: usize> Carried for [C; N] {
    fn describe(&self, to: &mut Description) {
        self.iter().for_each(|each| each.describe(to));
    }
    fn replace(self, next: &mut dyn FnMut(&Runtime, RawTensor) -> RawTensor) -> Self {
        self.map(|each| each.replace(next))
    }
    fn share(&self) -> Self {
        self.each_ref().map(C::share)
    }
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),*))*) => {$(
        impl<$($name: Carried),*> sealed::Sealed for ($($name,)*) {}
        impl<$($name: Carried),*> Carried for ($($name,)*) {
            fn describe(&self, to: &mut Description) {
                let _ = to;
                $(self.$index.describe(to);)*
            }
            #[allow(clippy::unused_unit, reason = "the tuple of no values is one of them")]
            fn replace(self, next: &mut dyn FnMut(&Runtime, RawTensor) -> RawTensor) -> Self {
                let _ = &next;
                ($(self.$index.replace(next),)*)
            }
            #[allow(clippy::unused_unit, reason = "the tuple of no values is one of them")]
            fn share(&self) -> Self {
                ($(self.$index.share(),)*)
            }
        }
    )*};
}

tuples! {
    ()
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11)
}

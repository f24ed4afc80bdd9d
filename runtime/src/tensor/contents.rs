//! The contents with which a parameter is overwritten.

use std::fmt;

use super::{
    Tensor,
    pinned::{PinnedBuffer, PinnedPart},
};

/// The new contents of a parameter: host data (row-major), a tensor on the device, or pinned memory that the device copies itself.
///
/// Made by `From`, where [`Param::write`](crate::Param::write) and its kin are called: from `&[T]`, `&Vec<T>` and `&[T; N]`, from
/// [`&Tensor<T>`](Tensor), and from [`&PinnedBuffer<T>`](PinnedBuffer) or a [part](PinnedBuffer::part) of one. Host data has as many
/// elements as what is overwritten; a tensor has its shape.
#[derive(Clone, Copy)]
pub struct Contents<'a, T>(pub(crate) Source<'a, T>);

#[derive(Clone, Copy)]
pub(crate) enum Source<'a, T> {
    Host(&'a [T]),
    Tensor(&'a Tensor<'a, T>),
    Pinned(PinnedPart<'a, T>),
}

impl<T> fmt::Debug for Contents<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Host(data) => write!(f, "Contents of the host, {} elements", data.len()),
            Source::Tensor(tensor) => write!(f, "Contents of {tensor:?}"),
            Source::Pinned(part) => write!(f, "Contents of pinned memory, {} elements", part.len()),
        }
    }
}

impl<'a, T> From<&'a [T]> for Contents<'a, T> {
    fn from(data: &'a [T]) -> Self {
        Self(Source::Host(data))
    }
}

impl<'a, T> From<&'a Vec<T>> for Contents<'a, T> {
    fn from(data: &'a Vec<T>) -> Self {
        Self(Source::Host(data))
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for Contents<'a, T> {
    fn from(data: &'a [T; N]) -> Self {
        Self(Source::Host(data))
    }
}

impl<'a, 's: 'a, T> From<&'a Tensor<'s, T>> for Contents<'a, T> {
    fn from(tensor: &'a Tensor<'s, T>) -> Self {
        Self(Source::Tensor(tensor))
    }
}

impl<'a, T> From<&'a PinnedBuffer<T>> for Contents<'a, T> {
    fn from(buffer: &'a PinnedBuffer<T>) -> Self {
        Self(Source::Pinned(PinnedPart::whole(buffer)))
    }
}

impl<'a, T> From<PinnedPart<'a, T>> for Contents<'a, T> {
    fn from(part: PinnedPart<'a, T>) -> Self {
        Self(Source::Pinned(part))
    }
}

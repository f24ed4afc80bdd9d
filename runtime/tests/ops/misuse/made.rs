//! What a call returned.

use graphable::{Dim, Element, Result, Tensor, ops};

/// A result of any type, with elements of which none is rounded.
#[derive(Debug)]
pub(super) struct Any<'s> {
    pub(super) values: Result<Tensor<'s, f32>>,
    pub(super) shape: Vec<Dim<'s>>,
}

/// What operations return.
pub(super) trait Made<'s> {
    fn made(self) -> Vec<Any<'s>>;
}

impl<'s, T: Element> Made<'s> for Tensor<'s, T> {
    fn made(self) -> Vec<Any<'s>> {
        vec![Any { shape: self.shape().to_vec(), values: ops::cast(&self) }]
    }
}

impl<'s, T: Element, U: Element> Made<'s> for (Tensor<'s, T>, Tensor<'s, U>) {
    fn made(self) -> Vec<Any<'s>> {
        self.0.made().into_iter().chain(self.1.made()).collect()
    }
}

impl<'s, T: Element> Made<'s> for Vec<Tensor<'s, T>> {
    fn made(self) -> Vec<Any<'s>> {
        self.into_iter().flat_map(Made::made).collect()
    }
}

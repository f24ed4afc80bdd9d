//! Inputs of zeros, for `capture_all`.

use super::GraphObject;
use crate::{
    Element, Error, Result, Step, Tensor,
    graph::spec::{Dim, DimsSpec},
    value::layout::Layout,
};

/// Inputs of zeros, for `capture_all`.
#[derive(Debug)]
pub struct Synthetic<'f> {
    pub(super) function: &'f GraphObject,
    pub(super) sizes: &'f [usize],
}

impl Synthetic<'_> {
    fn shape(&self, i: usize) -> Result<Vec<usize>> {
        let spec = &self.function.spec.inputs[i];
        let DimsSpec::Some(dims) = spec.dims else {
            return Err(Error::Config {
                what: format!("input `{}` of `{}`", spec.name, self.function.spec.name),
                reason: "`capture_all` needs its shape: give it `#[dims(...)]`".into(),
            });
        };
        Ok(dims
            .iter()
            .map(|d| match *d {
                Dim::Const(n) => n,
                Dim::Symbol(s) => self.sizes[s],
            })
            .collect())
    }

    /// Returns zeros for a `#[host]` tensor, with their shape.
    ///
    /// # Errors
    /// Returns [`Error::Config`] without `#[dims]`, or [`Error::TooLarge`].
    pub fn host<T: Element>(&self, i: usize) -> Result<SyntheticSlice<T>> {
        let shape = self.shape(i)?;
        Ok(SyntheticSlice { data: zeros(&shape)?, shape })
    }

    /// Returns zero, for a `#[host]` scalar.
    pub fn scalar<T: Element>(&self, _i: usize) -> T {
        T::from_f64(0.0)
    }

    /// Returns zeros for a device tensor.
    ///
    /// # Errors
    /// Returns [`Error::Config`] without `#[dims]`, or [`Error::TooLarge`].
    pub fn device<'s, T: Element>(&self, step: &Step<'s>, i: usize) -> Result<Tensor<'s, T>> {
        let shape = self.shape(i)?;
        step.tensor(&shape, &zeros::<T>(&shape)?)
    }
}

fn zeros<T: Element>(shape: &[usize]) -> Result<Vec<T>> {
    let count = Layout::contiguous(shape)?.count();
    let mut data = Vec::new();
    data.try_reserve_exact(count).map_err(|_| Error::TooLarge { shape: shape.to_vec() })?;
    data.resize(count, T::from_f64(0.0));
    Ok(data)
}

/// Owned zeros with a shape.
#[derive(Debug)]
pub struct SyntheticSlice<T> {
    data: Vec<T>,
    shape: Vec<usize>,
}

impl<'a, T> From<&'a SyntheticSlice<T>> for crate::HostSlice<'a, T> {
    fn from(s: &'a SyntheticSlice<T>) -> Self {
        Self::slice(&s.data, Some(&s.shape))
    }
}

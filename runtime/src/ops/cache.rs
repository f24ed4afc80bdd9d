//! Parts of state, as operands.

use super::shape::{check_permutation, narrowed, viewed};
use crate::{
    AsOperand, Element, Error, Result, Scope, State,
    backend::View,
    layout::{Layout, Marks},
    tensor::{Operand, sealed},
};

/// A part of a [`State`] in another shape, to be read by an operation.
///
/// It is no tensor, because tensors do not change and state does: an operation that reads it sees
/// what was written before, in the order of the calls.
pub struct CacheView<'a, T> {
    state: &'a State<T>,
    layout: Layout,
    offset: usize,
}

/// All of `state`, as an operand that can be narrowed and reshaped without a copy.
///
/// ```ignore
/// // One layer of a cache of [layers, rows, heads, size], as [rows, heads, size]:
/// let keys = ops::cache_view(&kv.keys).narrow(0, layer, 1)?.reshape(&[rows, heads, size])?;
/// let out = ops::attention(&q, &keys, &values, AttentionMask::Positions(&positions), scale)?;
/// ```
pub fn cache_view<T: Element>(state: &State<T>) -> CacheView<'_, T> {
    CacheView { state, layout: state.layout, offset: 0 }
}

impl<T: Element> CacheView<'_, T> {
    /// Sizes, outermost first.
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// Elements `start .. start + len` along `axis`.
    ///
    /// # Errors
    /// [`Error::Axis`]; [`Error::Shape`] when the range is not inside the axis.
    pub fn narrow(self, axis: usize, start: usize, len: usize) -> Result<Self> {
        let layout = narrowed("cache_view", &self.layout, axis, start, len)?;
        let moved = if layout.count() == 0 { 0 } else { start * layout.strides()[axis] };
        Ok(Self { layout, offset: self.offset + moved, ..self })
    }

    /// The same elements, in row-major order, as `shape`.
    ///
    /// # Errors
    /// [`Error::Shape`] when the number of elements differs, or when only a copy could have that
    /// shape; [`Error::Rank`].
    pub fn reshape(self, shape: &[usize]) -> Result<Self> {
        let target = Layout::contiguous(shape)?;
        if target.count() != self.layout.count() {
            let why = format!(
                "the first has {} elements, the second {}; they must be equal",
                self.layout.count(),
                target.count()
            );
            return Err(Error::shape("cache_view", &[self.shape(), shape], why));
        }
        let Some(layout) = viewed(&self.layout, shape) else {
            let why = "that merges dimensions with gaps between them; reshape before narrowing or permuting";
            return Err(Error::shape("cache_view", &[self.shape(), shape], why));
        };
        Ok(Self { layout, ..self })
    }

    /// Reorders all axes: dimension `i` of the result is dimension `axes[i]`.
    ///
    /// # Errors
    /// [`Error::Axis`]; [`Error::Argument`] when `axes` does not name every axis once.
    pub fn permute(self, axes: &[usize]) -> Result<Self> {
        check_permutation("cache_view", axes, self.layout.rank())?;
        Ok(Self { layout: self.layout.permuted(axes), ..self })
    }
}

impl<T> Clone for CacheView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for CacheView<'_, T> {}

impl<T: Element> std::fmt::Debug for CacheView<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CacheView<{}>{:?}", T::DTYPE, self.layout)
    }
}

impl<T> sealed::Sealed for CacheView<'_, T> {}
impl<'s, T: Element> AsOperand<'s, T> for CacheView<'_, T> {
    fn operand(&self, op: &'static str, scope: Scope<'s>) -> Result<Operand> {
        let whole = self.state.operand(op, scope)?.view;
        let addr = whole.addr + (self.offset * T::DTYPE.size()) as u64;
        Ok(Operand { view: View { addr, layout: self.layout, ..whole }, marks: Marks::NONE })
    }
}

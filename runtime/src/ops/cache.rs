//! Parts of state, as operands.

use super::{
    check::{check_axis, refuse},
    shape::{Padded, check_permutation, narrowed, narrowed_marks, permuted_marks, same_padding, viewed},
};
use crate::{
    AsOperand, AsWeight, Dim, Element, Error, IntoDim, IntoShape, Result, Scope, Shape, State, WeightOperand,
    backend::View,
    tensor::{Operand, Shown, sealed},
    value::{
        dim::MarkedSize,
        layout::{Layout, PaddedDims},
    },
};

/// A part of a [`State`] in another shape, to be read by an operation.
///
/// It is not a tensor, because tensors are immutable and state is not: an operation that reads it sees the
/// preceding writes, in the order of the calls.
pub struct CacheView<'a, T> {
    state: &'a State<T>,
    layout: Layout,
    offset: usize,
    padding: Option<Padding<'a>>,
}

/// Dimensions that were narrowed to the sizes of padded ones.
#[derive(Clone, Copy)]
struct Padding<'a> {
    scope: Scope<'a>,
    /// The call to which the symbols belong.
    call: u64,
    marks: PaddedDims,
}

/// Returns all of `state` as an operand that can be narrowed and reshaped without a copy.
///
/// Corresponds to `torch.Tensor.view` of a static cache, such as `StaticCache` of `transformers`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// // Keys of two layers, `[layers, rows, heads * width]`; those of layer 1 as `[rows, heads, width]`.
/// let keys = State::new(&rt, &[2, 3, 2], &[0.0f32, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let layer = ops::cache_view(&keys).narrow(0, 1, 1)?.reshape(&[3, 1, 2])?;
/// assert_eq!(layer.shape(), [3, 1, 2]);
///
/// let step = rt.step()?;
/// let q = step.tensor(&[1, 1, 2], &[0.0f32, 0.0])?;
/// let y = ops::attention(&q, &layer, &layer, ops::AttentionMask::None, 1.0)?;
/// assert_eq!(step.read(&y)?, [3.0, 4.0]);
/// # Ok::<(), Error>(())
/// ```
pub fn cache_view<T: Element>(state: &State<T>) -> CacheView<'_, T> {
    CacheView { state, layout: state.layout, offset: 0, padding: None }
}

impl<'a, T: Element> CacheView<'a, T> {
    /// Returns the sizes, outermost first.
    pub fn shape(&self) -> Shape<'a> {
        match self.padding {
            Some(padding) => Shape::new(padding.scope.rt, &self.layout, padding.marks),
            None => Shape::from_dims(self.layout.shape().iter().map(|&n| Dim::from(n))),
        }
    }

    fn marks(&self) -> PaddedDims {
        self.padding.map_or(PaddedDims::NONE, |padding| padding.marks)
    }

    /// Returns a size, and the scope that knows the symbol that pads it.
    fn resolve(&self, dim: Dim<'a>) -> Result<(MarkedSize, Option<Scope<'a>>)> {
        let scope = self.padding.map(|padding| padding.scope).or(dim.rt.map(|rt| Scope { rt }));
        match scope {
            Some(scope) => Ok((scope.resolve_dim("cache_view", dim)?, Some(scope))),
            None => Ok((MarkedSize::fixed(dim.get()?), None)),
        }
    }

    fn with(self, layout: Layout, marks: PaddedDims, scope: Option<Scope<'a>>) -> Self {
        let padding = scope.filter(|_| marks.any()).map(|scope| {
            let call = scope.rt.core.borrow().memory.call_number();
            Padding { scope, call, marks }
        });
        Self { layout, padding, ..self }
    }

    /// Narrows to elements `start .. start + len` along `axis`. `len` may be the size of a padded dimension:
    /// the view is then padded there, as after [`ops::narrow`](super::narrow).
    ///
    /// # Errors
    /// Returns [`Error::Axis`]; [`Error::Shape`] if the range is not inside the axis; [`Error::PaddedSize`],
    /// [`Error::PaddedMix`] as for [`ops::narrow`](super::narrow).
    pub fn narrow(self, axis: usize, start: impl IntoDim<'a>, len: impl IntoDim<'a>) -> Result<Self> {
        const NAME: &str = "cache_view";
        check_axis(NAME, axis, self.layout.rank())?;
        let start = match self.resolve(start.into_dim())? {
            (MarkedSize { size, symbol: None }, _) => size,
            (MarkedSize { symbol: Some(symbol), .. }, scope) => {
                let symbol = scope.map(|scope| scope.rt.symbol_name(symbol)).unwrap_or_default();
                return Err(Error::PaddedSize { op: NAME, symbol, at: None });
            }
        };
        let (len, scope) = self.resolve(len.into_dim())?;
        let marks = match scope {
            Some(scope) => narrowed_marks(NAME, scope, self.marks(), axis, start, len)?,
            None => PaddedDims::NONE,
        };
        let layout = narrowed(NAME, scope, &self.layout, marks, axis, start, len.size)?;
        let moved = if layout.count() == 0 { 0 } else { start * layout.strides()[axis] };
        Ok(Self { offset: self.offset + moved, ..self.with(layout, marks, scope) })
    }

    /// Returns the same elements, in row-major order, as `shape`.
    ///
    /// # Errors
    /// Returns [`Error::Shape`] if the number of elements differs, or if only a copy could have that shape;
    /// [`Error::Rank`]; [`Error::PaddedMix`] as for [`ops::reshape`](super::reshape).
    pub fn reshape(self, shape: impl IntoShape<'a>) -> Result<Self> {
        let (mut sizes, mut marks) = (super::check::Shape::new(), PaddedDims::NONE);
        let mut scope = self.padding.map(|padding| padding.scope);
        for (axis, dim) in shape.into_sizes().into_iter().enumerate() {
            let (MarkedSize { size, symbol }, of) = self.resolve(dim)?;
            sizes.push(size);
            if symbol.is_some() {
                marks = marks.with(axis, symbol);
                scope = scope.or(of);
            }
        }
        let shape = &sizes[..];
        let target = Layout::contiguous(shape)?;
        if let (Some(scope), Err((marks, axis))) = (
            scope,
            same_padding(
                Padded { sizes: self.layout.shape(), marks: self.marks() },
                Padded { sizes: shape, marks },
            ),
        ) {
            refuse("cache_view", scope, marks, [axis])?;
        }
        if target.count() != self.layout.count() {
            let reason = format!(
                "the first has {} elements, the second {}; they must be equal",
                self.layout.count(),
                target.count()
            );
            return Err(unlike(&self, shape, marks, scope, reason));
        }
        let Some(layout) = viewed(&self.layout, shape) else {
            let reason =
                "that merges dimensions with gaps between them; reshape before narrowing or permuting".into();
            return Err(unlike(&self, shape, marks, scope, reason));
        };
        Ok(self.with(layout, marks, scope))
    }

    /// Reorders all axes: dimension `i` of the result is dimension `axes[i]`.
    ///
    /// # Errors
    /// Returns [`Error::Axis`]; [`Error::Argument`] if `axes` does not name every axis once.
    pub fn permute(self, axes: &[usize]) -> Result<Self> {
        check_permutation("cache_view", axes, self.layout.rank())?;
        let marks = permuted_marks(self.marks(), axes);
        Ok(self.with(self.layout.permuted(axes), marks, self.padding.map(|padding| padding.scope)))
    }
}

/// One shape cannot be the other.
fn unlike<T: Element>(
    from: &CacheView<'_, T>,
    shape: &[usize],
    marks: PaddedDims,
    scope: Option<Scope<'_>>,
    reason: String,
) -> Error {
    let shapes = [Shown(from.layout.shape(), from.marks()), Shown(shape, marks)];
    match scope {
        Some(scope) => scope.shape_error("cache_view", &shapes, reason),
        None => Error::shape("cache_view", &[shapes[0].0, shapes[1].0], reason),
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
impl<'s, T: Element> AsWeight<'s, T> for CacheView<'_, T> {
    fn weight(&self, op: &'static str, scope: Scope<'s>) -> Result<WeightOperand> {
        self.operand(op, scope).map(WeightOperand::floats)
    }
}

impl<'s, T: Element> AsOperand<'s, T> for CacheView<'_, T> {
    fn operand(&self, op: &'static str, scope: Scope<'s>) -> Result<Operand> {
        let whole = self.state.operand(op, scope)?.view;
        if let Some(padding) = self.padding {
            if !std::ptr::eq(padding.scope.rt, scope.rt) {
                return Err(Error::DifferentRuntimes { op });
            }
            if padding.call != scope.rt.core.borrow().memory.call_number() {
                return Err(Error::NeverComputed { op });
            }
        }
        let addr = whole.addr + (self.offset * T::DTYPE.size()) as u64;
        Ok(Operand { view: View { addr, layout: self.layout, ..whole }, marks: self.marks() })
    }
}

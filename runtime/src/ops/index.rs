//! Reading and writing by index, and state.

use smallvec::SmallVec;

use super::{
    check::{Shape, check_axis, meet, refuse},
    launch::{compute, launch},
};
use crate::{
    AsOperand, Element, Error, Result, Scope, State, Tensor,
    backend::{
        View,
        operations::{COPY, Counts, Embedding, Gather, SCATTER_ROWS},
    },
    base::rank::MAX_RANK,
    value::layout::{Layout, Marks},
};

/// Rows of `table` (`[V, D]`) at `ids` (any shape): the result is `ids`' shape and `D`.
///
/// An id without a row is a fault, which the next read reports; its row reads as zeros. Padding of `ids` and
/// of `D` propagates; an id in the padding of `V` has no row, and ids that are padding themselves are not
/// faults.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let table = step.tensor(&[3, 2], &[0.0f32, 1.0, 10.0, 11.0, 20.0, 21.0])?;
/// let ids = step.tensor(&[2], &[2u32, 0])?;
/// let y = ops::embedding(&ids, &table)?;
/// assert_eq!(step.read(&y)?, [20.0, 21.0, 0.0, 1.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`] if `table` does not have two dimensions; [`Error::Rank`]. Later, at a read:
/// [`Error::IndexOutOfRange`].
pub fn embedding<'s, T: Element>(
    ids: &Tensor<'s, u32>,
    table: &(impl AsOperand<'s, T> + ?Sized),
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "embedding";
    let scope = ids.scope();
    let table = table.operand(NAME, scope)?;
    let &[_, d] = table.view.layout.shape() else {
        let shapes = [ids.into(), (&table).into()];
        return Err(scope.shape_error(NAME, &shapes, "the table must be `[V, D]`, one row for each id"));
    };
    let mut shape: Vec<usize> = ids.sizes().to_vec();
    shape.push(d);
    Layout::contiguous(&shape)?;
    let marks = ids.raw.marks.with(ids.rank(), table.marks.get(1));
    let mut inputs: SmallVec<[View; 4]> = SmallVec::from_slice(&[ids.view(NAME)?, table.view]);
    let counts = add_counts(scope, &mut inputs, ids.raw.marks, table.marks.get(0));
    compute(scope, Embedding { counts }, &inputs, &shape, marks)
}

/// Slices of `x` along `axis` at `index` (`[N]`): the result is `x`'s shape with `N` in place of
/// that axis.
///
/// An index out of range is a fault, which the next read reports; its slice reads as zeros. The axis takes
/// its padding from `index`; an index in the padding of `axis` of `x` is out of range, and indices that are
/// padding themselves are not faults. Padding of the other dimensions propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let index = step.tensor(&[2], &[2u32, 0])?;
/// let y = ops::gather(&x, 1, &index)?;
/// assert_eq!(step.read(&y)?, [3.0, 1.0, 6.0, 4.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`]; [`Error::Shape`] if `index` does not have one dimension. Later, at a read:
/// [`Error::IndexOutOfRange`].
pub fn gather<'s, T: Element>(
    x: &Tensor<'s, T>,
    axis: usize,
    index: &(impl AsOperand<'s, u32> + ?Sized),
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "gather";
    let scope = x.scope();
    check_axis(NAME, axis, x.rank())?;
    let index = index.operand(NAME, scope)?;
    let &[n] = index.view.layout.shape() else {
        let shapes = [x.into(), (&index).into()];
        return Err(scope.shape_error(NAME, &shapes, "the index must have one dimension, `[N]`"));
    };
    let mut shape: Shape = x.sizes().into();
    shape[axis] = n;
    let marks = x.raw.marks.with(axis, index.marks.get(0));
    let mut inputs: SmallVec<[View; 4]> = SmallVec::from_slice(&[x.view(NAME)?, index.view]);
    let counts = add_counts(scope, &mut inputs, index.marks, x.raw.marks.get(axis));
    compute(scope, Gather { axis, counts }, &inputs, &shape, marks)
}

/// Lists the real sizes of padded operands: of the index, whose padding may have any contents, and of the
/// rows, whose padding is out of range.
fn add_counts(scope: Scope<'_>, inputs: &mut SmallVec<[View; 4]>, index: Marks, rows: Option<u8>) -> Counts {
    let places = (0..MAX_RANK).map(|axis| (axis, index.get(axis))).chain([(Counts::ROWS, rows)]);
    let mut counts = Counts::NONE;
    for (place, symbol) in places {
        if let Some(count) = symbol.and_then(|symbol| scope.real_count(symbol)) {
            inputs.push(count);
            counts = counts.with(place);
        }
    }
    counts
}

/// Writes row `i` of `src` to row `index[i]` of `state`, in place.
///
/// `src` is `[N, row..]`, `index` is `[N]`; a row of `state` consists of its trailing dimensions that match
/// `row..`, and the product of its leading ones is the number of rows. An index of `u32::MAX` is skipped; any
/// other index without a row is a fault, which the next read reports, and is skipped as well. If a row is
/// given twice, the last one wins. If `N` is padded, only the real rows are written.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let state = State::zeros(&rt, &[3, 2])?;
/// let step = rt.step()?;
/// let row = step.tensor(&[1, 2], &[1.0f32, 2.0])?;
/// ops::scatter_rows(&state, &step.tensor(&[1], &[2u32])?, &row)?;
/// assert_eq!(step.read(&ops::load(step.scope(), &state)?)?, [0.0, 0.0, 0.0, 0.0, 1.0, 2.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`]; [`Error::PaddedMix`] if a dimension of the row is padded, or `N` by different
/// symbols in `index` and `src`. Later, at a read: [`Error::IndexOutOfRange`].
pub fn scatter_rows<'s, T: Element>(
    state: &State<T>,
    index: &Tensor<'s, u32>,
    src: &Tensor<'s, T>,
) -> Result<()> {
    let rows = Rows::new("scatter_rows", state, index, src)?;
    if rows.source.layout.count() == 0 {
        return Ok(());
    }
    let mut inputs: SmallVec<[View; 3]> = SmallVec::from_slice(&[rows.index, rows.source]);
    inputs.extend(rows.count);
    index.scope().launch(SCATTER_ROWS, &inputs, &[rows.target])
}

/// Rows to be written to a state.
pub(super) struct Rows {
    /// Their destinations, u32 `[N]`.
    pub(super) index: View,
    /// `[N, row..]`
    pub(super) source: View,
    /// The state as `[R, row..]`.
    pub(super) target: View,
    /// The symbol that pads `N`.
    pub(super) padded: Option<u8>,
    /// The number of real rows, if `N` is padded.
    pub(super) count: Option<View>,
}

impl Rows {
    /// Checks that the shapes fit.
    pub(super) fn new<'s, T: Element>(
        name: &'static str,
        state: &State<T>,
        index: &Tensor<'s, u32>,
        src: &Tensor<'s, T>,
    ) -> Result<Self> {
        let scope = index.scope();
        let (target, src) = (state.operand(name, scope)?.view, src.operand(name, scope)?);
        let (all, given) = (target.layout, src.view.layout);
        let shapes = [all.shape().into(), index.into(), (&src).into()];
        let wrong = |why: &str| Err(scope.shape_error(name, &shapes, why));
        let (&[n], Some((&rows_given, row))) = (index.sizes(), given.shape().split_first()) else {
            return wrong("the index must be `[N]` and the source `[N, row..]`");
        };
        refuse(name, scope, src.marks, 1..given.rank())?;
        let padded = meet(name, scope, 0, index.raw.marks.get(0), src.marks.get(0))?;
        if rows_given != n {
            return wrong("the index and the source must have the same number of rows");
        }
        if all.rank() <= row.len() || !all.shape().ends_with(row) {
            return wrong(
                "the source is `[N, row..]`; the state must end in the same `row..`, after its rows",
            );
        }

        let rows = all.shape()[..all.rank() - row.len()].iter().product();
        let flat: Shape = std::iter::once(rows).chain(row.iter().copied()).collect();
        Ok(Self {
            index: index.view(name)?,
            source: src.view,
            target: View { layout: Layout::contiguous(&flat)?, ..target },
            padded,
            count: padded.and_then(|symbol| scope.real_count(symbol)),
        })
    }
}

/// Overwrites all of `state` with `src`, which has the same shape.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let state = State::zeros(&rt, &[2])?;
/// let step = rt.step()?;
/// ops::store(&state, &step.tensor(&[2], &[1.0f32, 2.0])?)?;
/// assert_eq!(step.read(&ops::load(step.scope(), &state)?)?, [1.0, 2.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`]; [`Error::PaddedMix`] if `src` is padded (state has one size for all buckets).
pub fn store<'s, T: Element>(state: &State<T>, src: &Tensor<'s, T>) -> Result<()> {
    const NAME: &str = "store";
    let scope = src.scope();
    let target = state.operand(NAME, scope)?.view;
    refuse(NAME, scope, src.raw.marks, 0..src.rank())?;
    if state.shape() != src.sizes() {
        let why = "state and source must have one shape";
        return Err(Error::shape(NAME, &[state.shape(), src.sizes()], why));
    }
    launch(scope, COPY, &[src.view(NAME)?], &[target])
}

/// Returns a copy of the current contents of `state`, in the order of the calls.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let state = State::new(&rt, &[2], &[1.0f32, 2.0])?;
/// let step = rt.step()?;
/// let before = ops::load(step.scope(), &state)?;
/// ops::store(&state, &ops::scale(&before, 10.0)?)?;
/// assert_eq!(step.read(&before)?, [1.0, 2.0]); // a copy
/// assert_eq!(step.read(&ops::load(step.scope(), &state)?)?, [10.0, 20.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns only the errors of every operation (see [`ops`](crate::ops)).
pub fn load<'s, T: Element>(scope: Scope<'s>, state: &State<T>) -> Result<Tensor<'s, T>> {
    let source = state.operand("load", scope)?.view;
    compute(scope, COPY, &[source], state.shape(), Marks::NONE)
}

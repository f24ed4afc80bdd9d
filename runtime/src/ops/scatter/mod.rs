//! Rows placed by indices.

use smallvec::SmallVec;

use self::operation::SCATTER_ROWS;
use super::check::{Shape, meet, refuse};
use crate::{AsOperand, Element, Result, State, Tensor, backend::View, value::layout::Layout};

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod elements;
mod operation;

pub(super) use cpu::places;
#[cfg(feature = "cuda")]
pub(super) use cuda::places as cuda_places;
pub(crate) use elements::write;
pub(super) use operation::ScatterRows;

/// Writes row `i` of `src` to row `index[i]` of `state`, in place.
///
/// Corresponds to `torch.Tensor.index_copy_` along dimension 0.
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
/// Returns [`Error::Shape`](crate::Error::Shape); [`Error::PaddedMix`](crate::Error::PaddedMix) if a
/// dimension of the row is padded, or `N` by different symbols in `index` and `src`. Later, at a read:
/// [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange).
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
        let wrong = |reason: &str| Err(scope.shape_error(name, &shapes, reason));
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

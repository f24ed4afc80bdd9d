//! Elements for the host, while the graph runs.

use std::sync::Arc;

use self::operation::Append;
use super::{check::refuse, launch::compute};
use crate::{Element, Error, PinnedLog, Result, Tensor, memory::COPY};

#[cfg(feature = "cuda")]
mod cuda;
mod operation;

/// Appends the elements of `src`, row-major, to a log, which the host reads while the graph runs ([`PinnedLog`]).
///
/// PyTorch has no counterpart: there, a captured graph writes such values by `torch.Tensor.copy_` to memory that is read after it.
///
/// In the body of a conditional node, each run of the body appends. If the first dimension is padded, only the real rows are
/// appended. Elements for which the log has no room are lost, which its reader reports.
///
/// ```
/// # use graphable::{PinnedLog, prelude::*};
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let log = PinnedLog::<u32>::new(&rt, 8)?;
/// let step = rt.step()?;
/// let mut reader = log.reader(&step)?;
/// for values in [[1, 2], [3, 4]] {
///     ops::append(&log, &step.tensor([2], &values)?)?;
/// }
/// step.synchronize()?;
/// assert_eq!(reader.take()?, [1, 2, 3, 4]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::PaddedMix`] if a dimension other than the first is padded, and [`Error::TooLarge`] for 2^32 elements or
/// more.
pub fn append<'s, T: Element>(log: &PinnedLog<T>, src: &Tensor<'s, T>) -> Result<()> {
    const NAME: &str = "append";
    let scope = src.scope();
    let state = log.operand(NAME, scope)?;
    let (view, marks) = (src.view(NAME)?, src.raw.marks);
    refuse(NAME, scope, marks, 1..src.rank().max(1))?;
    let rows = src.sizes().first().copied().unwrap_or(1);
    let Ok(elements) = u32::try_from(view.layout.count()) else {
        return Err(Error::TooLarge { shape: src.sizes().to_vec() });
    };
    if elements == 0 {
        return Ok(());
    }
    let copy = match view.layout.is_contiguous() {
        true => None,
        false => Some(compute::<T>(scope, COPY, &[view], src.sizes(), marks)?),
    };
    let source = copy.as_ref().map_or(view, |copy| copy.raw.view());
    let count = marks.get(0).and_then(|symbol| scope.real_count(symbol));
    let op = Append { log: Arc::clone(&log.memory.host), width: elements / rows as u32 };
    match count {
        Some(count) => scope.launch(op.into(), &[source, count], &[state]),
        None => scope.launch(op.into(), &[source], &[state]),
    }
}

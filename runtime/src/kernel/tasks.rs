//! The parts of a launch on the CPU.

use rayon::prelude::*;
use smallvec::SmallVec;

use super::block::Beyond;
use crate::backend::cpu::Fault;

/// Runs all tasks, in parallel if there are several.
///
/// # Errors
/// Returns the first index out of range, in the order of the tasks.
pub(super) fn run_all<T: Send>(
    op: &'static str,
    tasks: SmallVec<[T; 1]>,
    run: impl Fn(T) -> Option<Beyond> + Send + Sync,
) -> Result<(), Fault> {
    let faults: SmallVec<[Option<Beyond>; 1]> = match tasks.len() {
        0 | 1 => tasks.into_iter().map(run).collect(),
        _ => SmallVec::from_vec(tasks.into_vec().into_par_iter().map(run).collect()),
    };
    faults.into_iter().flatten().next().map_or(Ok(()), |Beyond { index, bound }| {
        Err(Fault::Index { op, index: index.into(), bound: bound as u64 })
    })
}

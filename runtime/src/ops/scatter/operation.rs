//! The operation that [`scatter_rows`](super::scatter_rows) launches.

#[cfg(feature = "cuda")]
use super::cuda;
use super::{super::prelude::*, cpu};
use crate::backend::Op;

/// `[index: u32 N, src: N, row.., (count: u32 scalar)] -> [state: R, row..]`, in place.
/// Row `i` of `src` goes to row `index[i]`; `u32::MAX` is skipped; so are rows `i >= count`.
/// Out of range faults and is skipped. Rows given twice: the last wins.
pub(super) const SCATTER_ROWS: Op = Op::fixed(&ScatterRows);

#[derive(Debug)]
pub(in crate::ops) struct ScatterRows;

impl Operation for ScatterRows {
    fn name(&self) -> &'static str {
        "scatter_rows"
    }

    fn parameters(&self, _: &mut dyn Hasher) {}

    fn writes_in_place(&self) -> bool {
        true
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::scatter_rows(access, launch)
    }

    #[cfg(feature = "cuda")]
    fn cuda_workspace(&self, _: &mut dyn Submit, inputs: &[View], _: &[View], _: bool) -> crate::Result<u64> {
        Ok(cuda::places::workspace_bytes(&inputs[0]))
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::scatter_rows(gpu, launch)
    }
}

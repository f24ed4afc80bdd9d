//! Rows picked and placed by indices found in device memory.

use super::prelude::*;
use crate::base::rank::MAX_RANK;

/// The further inputs of an operation that picks by index: u32 scalars with the real sizes of padded
/// dimensions, listed by place.
///
/// Places `0..6` are the dimensions of the index: an index in their padding is not a fault. Place
/// [`ROWS`](Self::ROWS) is the table that is picked from: an index into its padding is out of range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts(u8);

impl Counts {
    /// None.
    pub(crate) const NONE: Self = Self(0);
    /// The place of the rows that are picked from.
    pub(crate) const ROWS: usize = MAX_RANK;

    /// `self` and a count for `place`.
    #[must_use]
    pub(crate) fn with(self, place: usize) -> Self {
        debug_assert!(place <= Self::ROWS);
        Self(self.0 | 1 << place)
    }

    /// The places that have a count, ascending: as the inputs are listed.
    pub(crate) fn places(self) -> impl Iterator<Item = usize> {
        (0..=Self::ROWS).filter(move |place| self.0 & 1 << place != 0)
    }
}

/// `[ids: u32 .., table: V, D, (counts)] -> [y: .., D]`. Rows out of range fault and read as zeros.
#[derive(Debug)]
pub(crate) struct Embedding {
    /// The sizes that are counted on the device.
    pub(crate) counts: Counts,
}

impl Operation for Embedding {
    fn name(&self) -> &'static str {
        "embedding"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u8(self.counts.0);
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Ran {
        cpu::index::embedding(access, launch, self.counts)
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::index::embedding(gpu, launch, self.counts)
    }
}

/// `[x, index: u32 N, (counts)] -> [y]`: picks slices along `axis`. Out of range faults, reads as zeros.
#[derive(Debug)]
pub(crate) struct Gather {
    /// The axis of `x` that `index` counts.
    pub(crate) axis: usize,
    /// The sizes that are counted on the device.
    pub(crate) counts: Counts,
}

impl Operation for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_usize(self.axis);
        to.write_u8(self.counts.0);
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Ran {
        cpu::index::gather(access, launch, self.axis, self.counts)
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::index::gather(gpu, launch, self.axis, self.counts)
    }
}

/// `[index: u32 N, src: N, row.., (count: u32 scalar)] -> [state: R, row..]`, in place.
/// Row `i` of `src` goes to row `index[i]`; `u32::MAX` is skipped; so are rows `i >= count`.
/// Out of range faults and is skipped. Rows given twice: the last wins.
pub(crate) const SCATTER_ROWS: Op = Op::fixed(&ScatterRows);

#[derive(Debug)]
struct ScatterRows;

impl Operation for ScatterRows {
    fn name(&self) -> &'static str {
        "scatter_rows"
    }

    fn parameters(&self, _: &mut dyn Hasher) {}

    fn writes_in_place(&self) -> bool {
        true
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Ran {
        cpu::index::scatter_rows(access, launch)
    }

    #[cfg(feature = "cuda")]
    fn cuda_workspace(&self, _: &mut dyn Submit, inputs: &[View], _: &[View], _: bool) -> crate::Result<u64> {
        Ok(cuda::places::workspace_bytes(&inputs[0]))
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::index::scatter_rows(gpu, launch)
    }
}

//! The operations that [`embedding`](super::embedding) and [`gather`](super::gather) launch.

#[cfg(feature = "cuda")]
use super::cuda;
use super::{super::prelude::*, cpu};
use crate::{backend::View, base::rank::MAX_RANK};

/// The further inputs of an operation that picks by index: u32 scalars with the real sizes of padded
/// dimensions, listed by place.
///
/// Places `0..6` are the dimensions of the index: an index in their padding is not a fault. Place
/// [`ROWS`](Self::ROWS) is the table that is picked from: an index into its padding is out of range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::ops) struct Counts(u8);

impl Counts {
    /// None.
    pub(in crate::ops) const NONE: Self = Self(0);
    /// The place of the rows that are picked from.
    pub(super) const ROWS: usize = MAX_RANK;

    /// `self` and a count for `place`.
    #[must_use]
    pub(super) fn with(self, place: usize) -> Self {
        debug_assert!(place <= Self::ROWS);
        Self(self.0 | 1 << place)
    }

    /// As a number that tells them apart.
    pub(in crate::ops) fn bits(self) -> u8 {
        self.0
    }

    /// The places that have a count, ascending: as the inputs are listed.
    pub(super) fn places(self) -> impl Iterator<Item = usize> {
        (0..=Self::ROWS).filter(move |place| self.0 & 1 << place != 0)
    }
}

/// The indices of a launch, and the sizes that are counted for them.
#[derive(Clone, Copy, Debug)]
pub(in crate::ops) struct Indices<'l> {
    pub(in crate::ops) view: &'l View,
    /// The places of the sizes.
    counts: Counts,
    /// The sizes.
    counted: &'l [View],
}

impl<'l> Indices<'l> {
    /// Those that are input `index` of a launch, of which the third and further inputs are the sizes that `counts` lists.
    pub(in crate::ops) fn new(launch: &'l Launch, index: usize, counts: Counts) -> Self {
        Self { view: &launch.inputs[index], counts, counted: &launch.inputs[2..] }
    }

    /// The sizes that are counted, each with its place.
    pub(super) fn counted(&self) -> impl Iterator<Item = (usize, &'l View)> + use<'l> {
        self.counts.places().zip(self.counted)
    }
}

/// `[ids: u32 .., table: V, D, (counts)] -> [y: .., D]`. Rows out of range fault and read as zeros.
#[derive(Debug)]
pub(super) struct Embedding {
    /// The sizes that are counted on the device.
    pub(super) counts: Counts,
}

impl Operation for Embedding {
    fn name(&self) -> &'static str {
        "embedding"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u8(self.counts.bits());
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::embedding(access, launch, self.counts)
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::embedding(gpu, launch, self.counts)
    }
}

/// `[x, index: u32 N, (counts)] -> [y]`: picks slices along `axis`. Out of range faults, reads as zeros.
#[derive(Debug)]
pub(super) struct Gather {
    /// The name of the function that the user called.
    pub(super) name: &'static str,
    /// The axis of `x` that `index` counts.
    pub(super) axis: usize,
    /// The sizes that are counted on the device.
    pub(super) counts: Counts,
}

impl Operation for Gather {
    fn name(&self) -> &'static str {
        self.name
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_usize(self.axis);
        to.write_u8(self.counts.bits());
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::gather(access, launch, self.axis, self.counts)
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::gather(gpu, launch, self.axis, self.counts)
    }
}

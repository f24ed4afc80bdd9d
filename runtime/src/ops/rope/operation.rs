//! The operations that [`rope`](super::rope) and [`rope_scatter`](super::rope_scatter) launch.

use super::{super::prelude::*, config::Sections, cpu, frequencies::Frequencies};
#[cfg(feature = "cuda")]
use super::{super::scatter::cuda_places, cuda};

/// The way in which rotary embedding pairs the elements of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RopeStyle {
    /// Pairs `(0,1), (2,3), …` (GGUF Llama, GPT-J).
    Interleaved,
    /// Pairs `(i, i + d/2)` (Hugging Face Llama, GPT-NeoX).
    HalfSplit,
}

/// `[x: B, T, H, D, positions: u32 S, B, T, (count of B: u32 scalar), (count of T: u32 scalar)] -> [y]`. The first `dim`
/// elements of a head rotate, each pair by `frequency * position` of its section; the rest is copied. The counts are of
/// the real positions, from which dynamic scaling takes the length.
#[derive(Clone, Copy, Debug)]
pub(in crate::ops) struct Rope {
    /// Pairing.
    pub(in crate::ops) style: RopeStyle,
    /// Rotated elements of a head, even.
    pub(in crate::ops) dim: usize,
    /// Radians per position.
    pub(in crate::ops) frequencies: Frequencies,
    /// The position that turns a pair.
    pub(in crate::ops) sections: Sections,
    /// The counts, of the two, that are present.
    pub(in crate::ops) padded: [bool; 2],
}

impl Operation for Rope {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn parameters(&self, mut to: &mut dyn Hasher) {
        self.style.hash(&mut to);
        to.write_usize(self.dim);
        self.frequencies.write(to);
        self.sections.hash(&mut to);
        self.padded.hash(&mut to);
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::rope(access, launch, *self);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::rope(gpu, launch, *self)
    }
}

/// `[x: 1, N, H, D, positions: u32 S, 1, N, index: u32 N, (count: u32 scalar)] -> [state: R, H, D]`, in
/// place: as [`Rope`], each row going where [`scatter_rows`](crate::ops::scatter_rows) puts it.
#[derive(Debug)]
pub(in crate::ops) struct RopeScatter(pub(in crate::ops) Rope);

impl Operation for RopeScatter {
    fn name(&self) -> &'static str {
        "rope_scatter"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        self.0.parameters(to);
    }

    fn writes_in_place(&self) -> bool {
        true
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::rope_scatter(access, launch, self.0)
    }

    #[cfg(feature = "cuda")]
    fn cuda_workspace(&self, _: &mut dyn Submit, inputs: &[View], _: &[View], _: bool) -> crate::Result<u64> {
        Ok(cuda_places::workspace_bytes(&inputs[2]))
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::rope_scatter(gpu, launch, self.0)
    }
}

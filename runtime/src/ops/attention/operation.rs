//! The operation that [`attention`](super::attention) launches.

#[cfg(feature = "cuda")]
use super::cuda;
use super::{super::prelude::*, cpu};

/// The keys to which a query may attend. `i` is a query, `j` a key, `T` and `S` their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum MaskKind {
    /// All of them.
    None,
    /// `j <= i + (S - T)`
    Causal,
    /// `j < lengths[b]`; the fourth input holds `lengths`, u32 `[B]`.
    Lengths,
    /// `j <= positions[b, i]`; the fourth input holds `positions`, u32 `[B, T]`.
    Positions,
}

/// `[q: B, T, Hq, D; k: B, S, Hkv, D; v: B, S, Hkv, Dv; (mask input, (count: u32 scalar))] -> [y: B, T, Hq,
/// Dv]`. No query attends to keys from `count` on. Scores are `scale * q.k`, softmax in f32. Query head `h`
/// uses key head `h / (Hq / Hkv)`. The result of a query that attends to no key is zeros.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attention {
    /// The kind of mask.
    pub(super) mask: MaskKind,
    /// Factor of the scores.
    pub(super) scale: f32,
}

impl Operation for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn parameters(&self, mut to: &mut dyn Hasher) {
        self.mask.hash(&mut to);
        to.write_u32(self.scale.to_bits());
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::attention(access, launch, *self);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn cuda_workspace(
        &self,
        gpu: &mut dyn Submit,
        inputs: &[View],
        _: &[View],
        _: bool,
    ) -> crate::Result<u64> {
        Ok(cuda::workspace_bytes(gpu.props(), inputs))
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::launch(gpu, launch, *self)
    }
}

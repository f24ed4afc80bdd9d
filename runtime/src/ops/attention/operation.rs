//! The operation that [`attention`](super::attention) launches.

#[cfg(feature = "cuda")]
use super::cuda;
use super::{super::prelude::*, cpu};
#[cfg(not(feature = "cuda"))]
use crate::backend::View;

/// The keys to which a query may attend. `i` is a query, `j` a key, `T` and `S` their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum MaskKind {
    /// All of them.
    None,
    /// `j <= i + (S - T)`
    Causal,
    /// `j < lengths[b]`; `lengths` is u32 `[B]`.
    Lengths,
    /// `j <= positions[b, i]`; `positions` is u32 `[B, T]`.
    Positions,
}

/// Slopes by which the distance of key and query counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum AlibiKind {
    #[default]
    None,
    /// Computed from the number of heads.
    Standard,
    /// f32 `[Hq]`
    Given,
}

/// Returns the largest power of two that is at most `heads`, or 1: the slopes of ALiBi are defined by it.
pub(super) fn nearest_power(heads: usize) -> usize {
    1 << heads.max(1).ilog2()
}

/// The changes of the scores, besides the mask.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Variant {
    /// Set if a bias `[B, Hq, T, S]` is added, with the type of the queries.
    pub(super) bias: bool,
    pub(super) alibi: AlibiKind,
    /// Keys before and after the position of a query that it sees.
    pub(super) window: Option<(u32, u32)>,
    pub(super) soft_cap: Option<f32>,
    /// Set if each head has one more score, `[Hq]`.
    pub(super) sinks: bool,
}

/// `[q: B, T, Hq, D; k: B, S, Hkv, D; v: B, S, Hkv, Dv; (limits), (bias), (slopes), (sinks), (count: u32 scalar)] ->
/// [y: B, T, Hq, Dv]`. No query attends to keys from `count` on. Scores are `scale * q.k`, changed by the variant, softmax in
/// f32. Query head `h` uses key head `h / (Hq / Hkv)`. The result of a query that attends to no key is zeros.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attention {
    /// The kind of mask.
    pub(super) mask: MaskKind,
    /// Factor of the scores.
    pub(super) scale: f32,
    pub(super) variant: Variant,
}

/// The inputs after queries, keys and values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extra<'l> {
    /// Lengths or positions.
    pub(super) limits: Option<&'l View>,
    pub(super) bias: Option<&'l View>,
    pub(super) slopes: Option<&'l View>,
    pub(super) sinks: Option<&'l View>,
    /// The number of real keys.
    pub(super) real: Option<&'l View>,
}

impl Attention {
    /// Returns whether the mask alone decides.
    #[cfg(feature = "cuda")]
    pub(super) fn is_plain(&self) -> bool {
        self.variant == Variant::default()
    }

    /// Names the inputs of a launch.
    pub(super) fn extra<'l>(&self, inputs: &'l [View]) -> Extra<'l> {
        let mut rest = inputs.iter().skip(3);
        let mut next = |given: bool| if given { rest.next() } else { None };
        Extra {
            limits: next(matches!(self.mask, MaskKind::Lengths | MaskKind::Positions)),
            bias: next(self.variant.bias),
            slopes: next(self.variant.alibi == AlibiKind::Given),
            sinks: next(self.variant.sinks),
            real: next(true),
        }
    }
}

impl Operation for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn parameters(&self, mut to: &mut dyn Hasher) {
        self.mask.hash(&mut to);
        to.write_u32(self.scale.to_bits());
        let Variant { bias, alibi, window, soft_cap, sinks } = self.variant;
        (bias, alibi, window, soft_cap.map(f32::to_bits), sinks).hash(&mut to);
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
        Ok(cuda::workspace_bytes(gpu.props(), inputs, self))
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::launch(gpu, launch, *self)
    }
}

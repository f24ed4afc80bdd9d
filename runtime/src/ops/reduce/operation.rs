//! The operations that the functions of this folder launch.

#[cfg(feature = "cuda")]
use super::cuda::{self, Along};
use super::{super::prelude::*, cpu};

/// The computation on the elements along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reduce {
    /// Sum.
    Sum,
    /// Arithmetic mean.
    Mean,
    /// Maximum; NaN if any element is NaN.
    Max,
}

/// `[x] -> [y]`: `axis` is removed. Floats accumulate in f32, integers wrap (mean: f64, truncated).
#[derive(Debug)]
pub(super) struct Reduction {
    /// The computation.
    pub(super) kind: Reduce,
    /// Removed axis.
    pub(super) axis: usize,
}

/// `[x: .., mask: bool broadcast to x, (count: u32 scalar)] -> [y]`: `sum(x*m)/max(sum(m), 1e-9)`; `axis` is
/// removed. Elements from `count` on are not read.
#[derive(Debug)]
pub(super) struct MaskedMean {
    /// Removed axis.
    pub(super) axis: usize,
}

/// As [`MaskedMean`]: `sum(x*m)`.
#[derive(Debug)]
pub(super) struct MaskedSum {
    /// Removed axis.
    pub(super) axis: usize,
}

/// `[x] -> [y]` over `axis`, in f32. The result of a slice of only `-inf` is zeros (`log`: `-inf`).
#[derive(Debug)]
pub(super) struct Softmax {
    /// Normalised axis.
    pub(super) axis: usize,
    /// Returns the logarithm.
    pub(super) log: bool,
}

/// `[x] -> [y]`: `x / max(norm(x), eps)` over `axis`.
#[derive(Debug)]
pub(super) struct L2Normalize {
    /// Normalised axis.
    pub(super) axis: usize,
    /// Smallest divisor.
    pub(super) eps: f32,
}

/// All of them work along one axis; on a GPU by kernels that [`Along`] names.
macro_rules! along_an_axis {
    ($type:ident, $name:expr, $parameters:expr, $cpu:expr, $along:expr) => {
        impl Operation for $type {
            fn name(&self) -> &'static str {
                let name: fn(&Self) -> &'static str = $name;
                name(self)
            }

            fn parameters(&self, to: &mut dyn Hasher) {
                to.write_usize(self.axis);
                let parameters: fn(&Self, &mut dyn Hasher) = $parameters;
                parameters(self, to);
            }

            fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
                let run: fn(&Self, &Access<'_>, &Launch) = $cpu;
                run(self, access, launch);
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
                let along: fn(&Self) -> Along = $along;
                Ok(cuda::workspace_bytes(gpu.props(), &inputs[0], along(self)))
            }

            #[cfg(feature = "cuda")]
            fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
                let along: fn(&Self) -> Along = $along;
                cuda::launch(gpu, launch, along(self))
            }
        }
    };
}

along_an_axis!(
    Reduction,
    |op| match op.kind {
        Reduce::Sum => "sum",
        Reduce::Mean => "mean",
        Reduce::Max => "max",
    },
    |op, mut to| op.kind.hash(&mut to),
    |op, access, launch| cpu::reduce(access, launch, op.kind, op.axis),
    |op| Along::reduce(op.kind, op.axis)
);

along_an_axis!(
    MaskedMean,
    |_| "masked_mean",
    |_, _| {},
    |op, access, launch| cpu::masked(access, launch, op.axis, |sum, weights| sum / weights.max(1e-9)),
    |op| Along::masked(op.axis, false)
);

along_an_axis!(
    MaskedSum,
    |_| "masked_sum",
    |_, _| {},
    |op, access, launch| cpu::masked(access, launch, op.axis, |sum, _| sum),
    |op| Along::masked(op.axis, true)
);

along_an_axis!(
    Softmax,
    |op| if op.log { "log_softmax" } else { "softmax" },
    |op, to| to.write_u8(op.log.into()),
    |op, access, launch| cpu::softmax(access, launch, op.axis, op.log),
    |op| Along::softmax(op.axis, op.log)
);

along_an_axis!(
    L2Normalize,
    |_| "l2_normalize",
    |op, to| to.write_u32(op.eps.to_bits()),
    |op, access, launch| cpu::l2_normalize(access, launch, op.axis, op.eps),
    |op| Along::l2_normalize(op.axis, op.eps)
);

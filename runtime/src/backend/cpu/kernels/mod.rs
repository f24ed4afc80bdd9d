//! What each operation computes, on host memory.
//!
//! Inputs are strided views; outputs are contiguous, but for [`Op::Copy`]. Everything runs on the
//! stream's thread and, for large tensors, on rayon's pool; results do not depend on its size.

use super::{access::Access, fault::Fault};
use crate::backend::{Launch, Op};

mod attention;
mod copy;
mod elementwise;
mod gemm;
mod index;
mod matmul;
mod norm;
#[cfg(any(test, not(feature = "cpu-gemm")))]
mod plain;
mod real;
mod reduce;
mod rope;
mod scalar;
mod strided;

#[cfg(feature = "cuda")]
pub(in crate::backend) use scalar::round_to_odd;

/// Runs one operation to its end.
///
/// # Errors
/// The first index that was out of range. The output is complete all the same: rows without a
/// valid index are zeros, or left as they were where the operation writes in place.
pub(crate) fn execute(access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
    match launch.op {
        Op::Unary(kind) => elementwise::unary(access, launch, kind),
        Op::Binary(kind) => elementwise::binary(access, launch, kind),
        Op::Compare(kind) => elementwise::compare(access, launch, kind),
        Op::Where => elementwise::select(access, launch),
        Op::Cast => elementwise::cast(access, launch),
        Op::Copy => copy::copy(access, launch),
        Op::Pad => copy::pad(access, launch),
        Op::Fill(value) => copy::fill(access, launch, value),
        Op::Arange { start, step } => copy::arange(access, launch, start, step),
        Op::Concat { axis } => copy::concat(access, launch, axis),
        Op::Embedding { counts } => return index::embedding(access, launch, counts),
        Op::Gather { axis, counts } => return index::gather(access, launch, axis, counts),
        Op::ScatterRows => return index::scatter_rows(access, launch),
        Op::Reduce { kind, axis } => reduce::reduce(access, launch, kind, axis),
        Op::ArgMax { axis } => reduce::arg_max(access, launch, axis),
        Op::MaskedMean { axis } => {
            reduce::masked(access, launch, axis, |sum, weights| sum / weights.max(1e-9))
        }
        Op::MaskedSum { axis } => reduce::masked(access, launch, axis, |sum, _| sum),
        Op::MatMul => matmul::matmul(access, launch),
        Op::LayerNorm { .. } => norm::layer_norm(access, launch),
        Op::RmsNorm { .. } => norm::rms_norm(access, launch),
        Op::AddRmsNorm { .. } => norm::add_rms_norm(access, launch),
        Op::L2Normalize { .. } => norm::l2_normalize(access, launch),
        Op::Softmax { .. } => norm::softmax(access, launch),
        Op::Rope { .. } => rope::rope(access, launch),
        Op::RopeScatter { .. } => return rope::rope_scatter(access, launch),
        Op::Attention { .. } => attention::attention(access, launch),
    }
    Ok(())
}

#[cfg(test)]
mod tests;

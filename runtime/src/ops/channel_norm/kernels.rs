//! The kernels of norms over channels.

use crate::kernel;
#[cfg(feature = "cuda")]
use crate::kernel::definition::{Definition, Kernel as _};

/// A row with mean 0 and variance 1.
#[kernel(rows)]
pub(super) fn normalized(x: Row<f32>, eps: f32) -> Row<f32> {
    let count = x.len() as f32;
    let mean = x.sum() / count;
    let variance = x.map(|v| (v - mean) * (v - mean)).sum() / count;
    let scale = 1.0 / (variance + eps).sqrt();
    x.map(|v| (v - mean) * scale)
}

#[kernel]
pub(super) fn affine(x: f32, weight: f32, bias: f32) -> f32 {
    x * weight + bias
}

#[kernel]
pub(super) fn batch_normalized(x: f32, mean: f32, variance: f32, weight: f32, bias: f32, eps: f32) -> f32 {
    (x - mean) * (1.0 / (variance + eps).sqrt()) * weight + bias
}

/// The mean, the variance, and the variance estimated from a sample, of the first `count` values of a row.
#[kernel(rows)]
pub(super) fn batch_norm_training(x: Row<f32>, count: u32) -> (f32, f32, f32) {
    let n = (count as f32).max(1.0);
    let mean = x.enumerate().map(|(i, v)| if i < count { v } else { 0.0 }).sum() / n;
    let squares = x.enumerate().map(|(i, v)| if i < count { (v - mean) * (v - mean) } else { 0.0 }).sum();
    (mean, squares / n, squares / (n - 1.0).max(1.0))
}

/// A statistic that moves towards that of a batch.
#[kernel]
pub(super) fn moved(batch: f32, running: f32, momentum: f32) -> f32 {
    (1.0 - momentum) * running + momentum * batch
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn all() -> [&'static Definition; 5] {
    [
        normalized::DEFINITION,
        affine::DEFINITION,
        batch_normalized::DEFINITION,
        batch_norm_training::DEFINITION,
        moved::DEFINITION,
    ]
}

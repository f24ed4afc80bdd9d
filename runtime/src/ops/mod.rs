//! Operations on tensors.
//!
//! Free functions without side effects, except [`scatter_rows`], [`rope_scatter`], [`mark_tokens`], [`store`],
//! [`batch_norm_training`], [`set_rng_state`] and [`append`], which write to a [`State`](crate::State), an
//! [`Rng`](crate::Rng) or a [`PinnedLog`](crate::PinnedLog), and
//! those that draw random numbers, which advance the [`Rng`](crate::Rng) that they take as their first argument. All are
//! asynchronous: they check their arguments, allocate the output and launch. The result is a new tensor, or a view if the
//! function's documentation says so.
//!
//! **Arguments.** The first tensor determines the runtime and the step; every further operand can be a
//! [`Tensor`](crate::Tensor), a [`Scalar`](crate::Scalar), a [`Param`](crate::Param) or a
//! [`State`](crate::State) with the same element type. In element-wise operations it can also be a number
//! ([`Argument`](crate::Argument)): `ops::mul(&x, 0.5)`. [`linear`], [`linear_bias`] and [`embedding`] also take a
//! [`Weight`](crate::Weight), whose elements may be stored in blocks. Any strides are accepted. Axes count from 0.
//!
//! **Types.** Operations on a [`Float`](crate::Float) compute in `f32`, and round the result to the element type. Those on a
//! [`Real`](crate::Real) take `f64` as well, which they compute in `f64`, on every device; a number beside the tensor, such as an
//! epsilon or a slope, is then not rounded to `f32`, and may be an `f32` or an `f64` (`impl Into<f64>`). The factor of [`scale`] is
//! an `f32`.
//!
//! **Errors.** Every function can return [`Error::DifferentRuntimes`](crate::Error::DifferentRuntimes),
//! [`Error::OutOfMemory`](crate::Error::OutOfMemory), [`Error::OutsideSegment`](crate::Error::OutsideSegment)
//! and errors of the device; its own documentation lists the rest.
//!
//! **Broadcasting** aligns shapes at their last dimensions; a missing dimension, or one of size 1, is
//! repeated. Any other difference is [`Error::Shape`](crate::Error::Shape).
//!
//! **Shapes** are tuples, arrays or slices of sizes: numbers, or sizes of tensors (`(x.dim(0), 4)`,
//! `&[2, 3]`, `x.shape()`; `()` for a scalar). Wherever a number is accepted, so is `x.dim(axis)`.
//!
//! **Padding.** In a bucketed function, a dimension is marked as padded. Elementwise operations preserve the
//! mark; operations that would mix padding into real values return
//! [`Error::PaddedMix`](crate::Error::PaddedMix). Each function documents its behaviour. In each dimension,
//! all operands must be padded by the same symbol or be repeated; a dimension of a fixed size cannot be
//! combined with a padded one, even if it is as large as the bucket. Sizes of padded dimensions are not
//! numbers ([`Dim`](crate::Dim)): a tensor created with one is padded in the same way, [`size`] returns the
//! real size on the device, and other uses are [`Error::PaddedSize`](crate::Error::PaddedSize).
//!
//! **Empty tensors** are accepted everywhere, except where the result has no value (the maximum or the
//! mean of an empty axis).

mod activation;
mod append;
mod arrange;
mod attention;
mod by_type;
mod cache;
mod cast;
mod channel_norm;
pub(crate) mod check;
mod compare;
mod composed;
mod concat;
pub(crate) mod control;
mod conv;
mod create;
mod elementwise;
mod error_functions;
mod functions;
mod gather;
mod keepdim;
mod launch;
mod logic;
mod loss;
mod masked;
mod math;
mod matmul;
mod moe;
mod norm;
mod numbers;
mod order;
mod pointwise;
mod pool;
mod prelude;
mod quantized;
mod random;
mod recurrent;
mod reduce;
mod rope;
mod sampling;
mod scatter;
mod scatter_add;
mod setters;
mod shape;
mod state;
mod statistics;
mod upsample;

pub use activation::{
    celu, elu, hardshrink, hardsigmoid, hardswish, leaky_relu, logsigmoid, mish, relu6, selu, sigmoid,
    softplus, softshrink, softsign, tanhshrink, threshold,
};
pub use append::append;
pub use arrange::{flip, index_select, one_hot, repeat, roll, stack, tri, tril, triu};
pub(crate) use attention::AttentionSlopes;
pub use attention::{AttentionConfig, AttentionInput, AttentionMask, attention};
pub use cache::{CacheView, cache_view};
pub use cast::cast;
pub use channel_norm::{batch_norm, batch_norm_training, group_norm};
pub use compare::{eq, ge, gt, le, lt, masked_fill, ne, where_};
pub use concat::concat;
pub use conv::{
    ConvConfig, ConvTransposeConfig, conv_transpose1d, conv_transpose1d_bias, conv_transpose2d,
    conv_transpose2d_bias, conv1d, conv1d_bias, conv2d, conv2d_bias,
};
pub use create::{arange, arange_step, full, full_like, ones_like, size, zeros, zeros_like};
pub use elementwise::{
    add, div, exp, gelu, gelu_tanh, log, mul, neg, relu, rsqrt, scale, silu, silu_mul, sqrt, sub, tanh,
};
pub use gather::{embedding, gather};
pub use keepdim::{
    logsumexp_keepdim, max_keepdim, mean_keepdim, min_keepdim, prod_keepdim, std_keepdim, sum_keepdim,
    var_keepdim,
};
pub use logic::{isfinite, isinf, isnan, logical_and, logical_not, logical_or, logical_xor};
pub use loss::{
    binary_cross_entropy_with_logits, cross_entropy, cross_entropy_weighted, kl_div, l1_loss, mse_loss,
    nll_loss, nll_loss_weighted, smooth_l1_loss,
};
pub use masked::{
    masked_all, masked_any, masked_argmax, masked_argmin, masked_log_softmax, masked_logsumexp,
    masked_matmul, masked_max, masked_min, masked_prod, masked_softmax, masked_std, masked_var,
};
pub use math::{
    acos, acosh, asin, asinh, atan, atan2, atanh, ceil, cos, cosh, erf, erfc, exp2, expm1, floor, frac,
    log1p, log2, log10, pow, reciprocal, round, sin, sinh, tan, trunc,
};
#[cfg(test)]
pub(crate) use matmul::plain_product;
pub use matmul::{linear, linear_bias, matmul, matmul_nt};
pub use moe::{MoeRoutes, grouped_mm, grouped_mm_nt, moe_permute, moe_route, moe_unpermute};
pub use norm::{add_rms_norm, layer_norm, rms_norm};
pub use numbers::{abs, clamp, maximum, minimum, remainder, sign, square};
pub use order::{argsort, cumsum, sort, topk};
pub use pool::{
    AvgPoolConfig, MaxPoolConfig, adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_max_pool1d,
    adaptive_max_pool2d, avg_pool1d, avg_pool2d, max_pool1d, max_pool2d,
};
pub(crate) use quantized::computes_with_blocks;
pub use random::{
    bernoulli, dropout, exponential, gumbel, normal, randint, randperm, rng_state, set_rng_state, uniform,
};
pub use recurrent::{gru_cell, lstm_cell};
pub use reduce::{l2_normalize, log_softmax, masked_mean, masked_sum, max, mean, softmax, sum};
pub use rope::{
    LongRopeConfig, RopeConfig, RopeOptions, RopeScaling, RopeStyle, YarnConfig, rope, rope_scatter,
};
pub use sampling::{
    NO_TOKEN, PerRow, SampleConfig, apply_min_p, apply_presence_penalty, apply_repetition_penalty,
    apply_temperature, apply_top_k, apply_top_p, choose_token, mark_tokens, sample, sample_with,
    token_log_probs, top_log_probs,
};
pub use scatter::scatter_rows;
pub(crate) use scatter::write;
pub use scatter_add::{index_add, scatter_add};
pub(crate) use shape::broadcast_as;
pub use shape::{
    broadcast_to, contiguous, narrow, permute, reshape, split, split_at, squeeze, transpose, unsqueeze,
};
pub use state::{load, store};
pub use statistics::{all, any, argmax, argmin, logsumexp, min, prod, std, var};
pub use upsample::{upsample_bilinear2d, upsample_linear1d, upsample_nearest1d, upsample_nearest2d};

/// Kernels of products with what precedes and follows them, with their names.
#[cfg(feature = "cuda")]
pub(crate) fn fused_samples() -> Vec<(String, &'static crate::backend::cuda::kernels::SourceFile)> {
    matmul::fused_samples()
}

/// The operations that are kernels in Rust, each once.
#[cfg(feature = "cuda")]
pub(crate) fn kernels() -> Vec<&'static crate::kernel::definition::Definition> {
    let mut all = Vec::new();
    // Not one iterator of all: its type would have every part in it, and its functions take long to compile.
    all.extend(elementwise::kernels());
    all.extend(compare::kernels());
    all.extend(cast::kernels());
    all.extend(norm::kernels());
    all.extend(reduce::kernels());
    all.extend(conv::kernels());
    all.extend(recurrent::kernels());
    all.extend(pool::kernels());
    all.extend(upsample::kernels());
    all.extend(channel_norm::kernels());
    all.extend(math::kernels());
    all.extend(activation::kernels());
    all.extend(numbers::kernels());
    all.extend(logic::kernels());
    all.extend(statistics::kernels());
    all.extend(masked::kernels());
    all.extend(order::kernels());
    all.extend(scatter_add::kernels());
    all.extend(moe::kernels());
    all.extend(arrange::kernels());
    all.extend(loss::kernels());
    all.extend(random::kernels());
    all.extend(sampling::kernels());
    let mut known = std::collections::HashSet::new();
    all.retain(|definition| known.insert(definition.id));
    all
}

#[cfg(test)]
mod tests;

//! Parts of models: convolutions with a stride, pooling, other sizes, norms, losses of rows.

use graphable::{
    Result, Tensor, f16,
    ops::{
        self, AttentionConfig, AttentionMask, AvgPoolConfig, ConvConfig, ConvTransposeConfig, LongRopeConfig,
        MaxPoolConfig, RopeConfig, RopeOptions, RopeScaling, RopeStyle, YarnConfig,
    },
};

use super::{Given, table};

/// Elements that a head may have at most on a GPU; values are never that wide by themselves.
const MOST_OF_A_HEAD: usize = 1024;

/// Numbers around zero, one for each element of the shape, whose absolute values add up to about `total`.
pub(super) fn weights<'s>(x: &Tensor<'s, f32>, shape: &[usize], total: f64) -> Result<Tensor<'s, f32>> {
    let count = shape.iter().product::<usize>();
    let step = 4.0 * total / (count * count) as f64;
    ops::reshape(&ops::arange_step::<f32>(x.scope(), count, -2.0 * total / count as f64, step)?, shape)
}

/// `[any, ..]` as items of one channel.
fn image<'s>(g: &Given<'_, 's>) -> Result<Tensor<'s, f32>> {
    ops::unsqueeze(g.f(0)?, 1)
}

/// `[any, ..]` as items of four channels, of which each element's lie next to each other in memory, or each channel's elements.
fn several<'s>(g: &Given<'_, 's>) -> Result<Tensor<'s, f32>> {
    let x = image(g)?;
    let all = ops::concat(&[&x, &ops::neg(&x)?, &ops::tanh(&x)?, &ops::scale(&x, 0.5)?], 1)?;
    if g.n(1, 2) == 0 {
        return Ok(all);
    }
    let last: Vec<usize> = [0].into_iter().chain(2..all.rank()).chain([1]).collect();
    let second: Vec<usize> = [0, all.rank() - 1].into_iter().chain(1..all.rank() - 1).collect();
    ops::permute(&ops::contiguous(&ops::permute(&all, &last)?)?, &second)
}

/// Groups of channels, in f32 or in f16.
fn convolved<'s>(g: &Given<'_, 's>) -> Result<Tensor<'s, f32>> {
    let (x, groups) = (several(g)?, 1 + g.n(0, 2));
    let w = weights(&x, &[2, 4 / groups, 3], 1.0)?;
    let config = ConvConfig::new().stride(2).padding(1).groups(groups);
    let y = if g.n(2, 3) > 0 {
        ops::conv1d(&x, &w, config)?
    } else {
        let y = ops::conv1d(&ops::cast::<f32, f16>(&ops::tanh(&x)?)?, &ops::cast(&w)?, config)?;
        // Where a sum has another order, the last bits of an f16 differ.
        ops::scale(&ops::cast::<f16, f32>(&y)?, 0.01)?
    };
    channel(&ops::narrow(&y, 1, g.n(2, 6) / 3, 1)?)
}

/// Items of one channel, without it.
fn channel<'s>(y: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::squeeze(y, 1)
}

/// Twice as large along each of the last `N` dimensions.
fn doubled<const N: usize>(g: &Given<'_, '_>) -> Result<[usize; N]> {
    let (x, mut sizes) = (g.f(0)?, [0; N]);
    for (axis, size) in (1..x.rank()).zip(&mut sizes) {
        *size = 2 * x.dim(axis).get()?;
    }
    Ok(sizes)
}

/// Weights and a bias of the size along `axis`, around one.
fn affine<'s>(x: &Tensor<'s, f32>, axis: usize) -> Result<[Tensor<'s, f32>; 2]> {
    let w = weights(x, &[x.dim(axis).get()?], 0.5)?;
    Ok([ops::add(&w, 1.0)?, w])
}

/// A label for each row: the class of its largest element.
fn labels<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, i32>> {
    ops::cast(&ops::argmax(x, x.rank() - 1)?)
}

fn normalized<'s>(g: &Given<'_, 's>) -> Result<Tensor<'s, f32>> {
    let x = g.f(0)?;
    let [w, b] = affine(x, 1)?;
    let groups = if x.dim(1).get()?.is_multiple_of(2) { 1 + g.n(0, 2) } else { 1 };
    ops::group_norm(x, groups, &w, &b, 1e-1)
}

/// Attention of `[T, D]` to itself in heads that are `times` as wide, or as wide as they may be, with one or two heads of queries for
/// one of keys: scores are changed in several ways.
fn attended<'s>(g: &Given<'_, 's>, times: usize) -> Result<Tensor<'s, f32>> {
    let x = ops::tanh(g.f(0)?)?;
    let bias = ops::matmul_nt(&x, &x)?;
    let width = x.dim(1).get()?;
    let times = times.min(MOST_OF_A_HEAD / width).max(1);
    let heads = ops::unsqueeze(&ops::concat(&vec![&x; times], 1)?, 1)?;
    let both = ops::concat(&[&heads, &ops::neg(&heads)?], 1)?;
    let queries = if g.n(2, 12) < 6 { &heads } else { &both };
    let count = queries.dim(1).get()?;
    let sinks = ops::arange_step::<f32>(x.scope(), count, 0.25, 0.5)?;
    let slopes = ops::arange_step::<f32>(x.scope(), count, 0.125, 0.25)?;
    let places = ops::arange::<u32>(x.scope(), x.dim(0))?;
    let mask = if g.n(0, 2) == 0 { AttentionMask::Causal } else { AttentionMask::Positions(&places) };
    let mut config = AttentionConfig::new(mask);
    match g.n(1, 6) {
        0 => config = config.alibi(),
        1 => config = config.alibi_slopes(&slopes).sinks(&sinks),
        2 => config = config.bias(&bias).soft_cap(2.0),
        3 => config = config.window(g.n(2, 6), g.n(0, 2)).bias(&bias),
        4 => config = config.window(g.n(2, 6), 0).sinks(&sinks).soft_cap(3.0).alibi(),
        _ => config = config.soft_cap(1.5),
    }
    let y = ops::attention(queries, &heads, &heads, config, 0.5 / times as f32)?;
    let y = ops::narrow(&y, 1, g.n(1, 12) / 6 % count, 1)?;
    ops::narrow(&ops::squeeze(&y, 1)?, 1, width * (times - 1), width)
}

/// How the angles of a head of `dim` elements grow.
fn turned(g: &Given<'_, '_>, dim: usize) -> RopeOptions {
    let config =
        RopeConfig::new(100.0, if g.n(1, 2) == 0 { RopeStyle::HalfSplit } else { RopeStyle::Interleaved });
    let config = config.partial(dim);
    match g.n(0, 5) {
        0 if dim > 2 => {
            config.scaling(RopeScaling::DynamicNtk { factor: 2.0, original_max_position_embeddings: 2 })
        }
        1 => config.scaling(RopeScaling::Yarn(YarnConfig::new(4.0, 16))),
        2 if dim > 2 => config.scaling(RopeScaling::Ntk { factor: 2.0 }),
        3 => config.scaling(RopeScaling::Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_max_position_embeddings: 8,
        }),
        _ if g.n(2, 2) == 0 => {
            let divisors = |by: f32| (0..dim / 2).map(|i| 1.0 + by * i as f32).collect::<Vec<_>>();
            let long = LongRopeConfig::new(&divisors(0.25), &divisors(1.5), 3, 24);
            config.scaling(RopeScaling::LongRope(long))
        }
        _ => config.scaling(RopeScaling::Linear { factor: 3.0 }),
    }
}

table! {
    attention: Product, tokens, |g| attended(g, 1);
    attention: Product, tokens, |g| attended(g, 80);
    rope: Smooth, tokens, |g| {
        let x = ops::unsqueeze(g.f(0)?, 1)?;
        let pairs = x.dim(2).get()? / 2;
        let (options, places) = (turned(g, pairs * 2), ops::arange::<u32>(x.scope(), x.dim(0))?);
        let (options, places) = match g.n(2, 3) {
            0 if pairs > 1 => {
                let others = ops::remainder(&places, 2)?;
                (options.sections([1, pairs - 1]), ops::stack(&[&places, &others], 0)?)
            }
            _ => (options, places),
        };
        ops::squeeze(&ops::rope(&x, &places, options)?, 1)
    };
    masked_matmul: Product, columns, |g| {
        let x = ops::scale(&ops::tanh(g.f(0)?)?, 0.1)?;
        ops::masked_matmul(&ops::transpose(&x, 0, 1)?, &x)
    };
    conv1d: Product, halved, |g| convolved(g);
    conv1d_bias: Product, halved, |g| {
        let x = image(g)?;
        let (w, b) = (weights(&x, &[1, 1, 5], 1.0)?, ops::full(x.scope(), [1], 0.25f32)?);
        channel(&ops::conv1d_bias(&x, &w, &b, ConvConfig::new().stride(2).padding(2))?)
    };
    conv2d: Product, halved_2d, |g| {
        let x = image(g)?;
        let config = ConvConfig::new().stride(2).padding(2).dilation(2);
        channel(&ops::conv2d(&x, &weights(&x, &[1, 1, 3, 3], 1.0)?, config)?)
    };
    conv2d_bias: Product, halved_2d, |g| {
        let x = if g.n(0, 2) == 0 { image(g)? } else { several(g)? };
        let (channels, b) = (x.dim(1).get()?, ops::full(x.scope(), [2], 0.25f32)?);
        let w = weights(&x, &[2, channels, 3, 3], 1.0)?;
        let y = ops::conv2d_bias(&x, &w, &b, ConvConfig::new().stride(2).padding(1))?;
        channel(&ops::narrow(&y, 1, 1, 1)?)
    };
    conv_transpose1d: Product, doubled, |g| {
        let x = image(g)?;
        let config = ConvTransposeConfig::new().stride(2).padding(1).output_padding(1).dilation(2);
        channel(&ops::conv_transpose1d(&x, &weights(&x, &[1, 1, 2], 1.0)?, config)?)
    };
    conv_transpose1d_bias: Product, doubled, |g| {
        let x = image(g)?;
        let (w, b) = (weights(&x, &[1, 1, 3], 1.0)?, ops::full(x.scope(), [1], 0.25f32)?);
        let config = ConvTransposeConfig::new().stride(2).padding(1).output_padding(1);
        channel(&ops::conv_transpose1d_bias(&x, &w, &b, config)?)
    };
    conv_transpose2d: Product, doubled_2d, |g| {
        let x = image(g)?;
        let both = ops::concat(&[&x, &ops::neg(&x)?], 1)?;
        let mut config = ConvTransposeConfig::new().stride(2).groups(2);
        if g.n(1, 2) == 1 {
            config = config.padding(1).output_padding(1).dilation(2);
        }
        let y = ops::conv_transpose2d(&both, &weights(&x, &[2, 1, 2, 2], 1.0)?, config)?;
        channel(&ops::narrow(&y, 1, g.n(0, 2), 1)?)
    };
    conv_transpose2d_bias: Product, doubled_2d, |g| {
        let x = image(g)?;
        let (w, b) = (weights(&x, &[1, 1, 2, 2], 1.0)?, ops::full(x.scope(), [1], 0.25f32)?);
        channel(&ops::conv_transpose2d_bias(&x, &w, &b, ConvTransposeConfig::new().stride(2))?)
    };
    max_pool1d: Smooth, halved, |g| {
        let config = MaxPoolConfig { ceil_mode: true, ..MaxPoolConfig::new(2) };
        channel(&ops::max_pool1d(&image(g)?, config)?)
    };
    max_pool2d: Smooth, halved_2d, |g| channel(&ops::max_pool2d(&image(g)?, MaxPoolConfig::new(3).stride(2).padding(1))?);
    avg_pool1d: Smooth, halved, |g| {
        let config = AvgPoolConfig { ceil_mode: true, ..AvgPoolConfig::new(2) };
        channel(&ops::avg_pool1d(&image(g)?, config)?)
    };
    avg_pool2d: Smooth, halved_2d, |g| {
        let config = AvgPoolConfig { count_include_pad: false, ..AvgPoolConfig::new(3).stride(2).padding(1) };
        channel(&ops::avg_pool2d(&image(g)?, config)?)
    };
    adaptive_avg_pool2d: Smooth, parts_2d, |g| channel(&ops::adaptive_avg_pool2d(&image(g)?, [3, 3])?);
    adaptive_max_pool2d: Smooth, parts_2d, |g| channel(&ops::adaptive_max_pool2d(&image(g)?, [3, 3])?);
    upsample_nearest1d: Smooth, doubled, |g| channel(&ops::upsample_nearest1d(&image(g)?, doubled(g)?)?);
    upsample_linear1d: Smooth, doubled, |g| channel(&ops::upsample_linear1d(&image(g)?, doubled(g)?, g.n(0, 2) == 1)?);
    upsample_nearest2d: Smooth, doubled_2d, |g| channel(&ops::upsample_nearest2d(&image(g)?, doubled(g)?)?);
    upsample_nearest2d: Smooth, parts_2d, |g| channel(&ops::upsample_nearest2d(&image(g)?, [3, 3])?);
    upsample_bilinear2d: Smooth, parts_2d, |g| channel(&ops::upsample_bilinear2d(&image(g)?, [3, 3], g.n(0, 2) == 1)?);
    upsample_bilinear2d: Smooth, doubled_2d, |g|
        channel(&ops::upsample_bilinear2d(&image(g)?, doubled(g)?, g.n(0, 2) == 1)?);

    group_norm: SteepSum, items, |g| normalized(g);
    batch_norm: Smooth, channels, |g| {
        let x = g.f(0)?;
        let [w, b] = affine(x, 1)?;
        ops::batch_norm(x, &b, &w, &w, &b, 0.25)
    };
    add_rms_norm: SteepSum, rows, |g| {
        let x = g.f(0)?;
        let [w, b] = affine(x, g.axis)?;
        let added = ops::add(&ops::zeros_like(x)?, &b)?;
        let (y, sum) = ops::add_rms_norm(x, &added, &w, 1e-1)?;
        Result::<_>::Ok(if g.n(0, 4) == 0 { sum } else { y })
    };
    linear_bias: Product, rows, |g| {
        let (x, n) = (g.f(0)?, g.f(0)?.dim(g.axis).get()?);
        ops::linear_bias(x, &weights(x, &[n, n], n as f64)?, &affine(x, g.axis)?[1])
    };
    cross_entropy: SteepSum, row_results, |g| ops::cross_entropy(g.f(0)?, &labels(g.f(0)?)?, 1, g.n(0, 2) as f32 * 0.25);
    nll_loss: Steep, row_results, |g| ops::nll_loss(g.f(0)?, &labels(g.f(0)?)?, 1);
    cross_entropy_weighted: SteepSum, row_results, |g| {
        let (x, smoothing) = (g.f(0)?, g.n(0, 2) as f32 * 0.25);
        let (loss, weight) = ops::cross_entropy_weighted(x, &labels(x)?, &affine(x, g.axis)?[0], 1, smoothing)?;
        ops::add(&loss, &weight)
    };
    nll_loss_weighted: Steep, row_results, |g| {
        let (loss, weight) = ops::nll_loss_weighted(g.f(0)?, &labels(g.f(0)?)?, &affine(g.f(0)?, g.axis)?[0], 1)?;
        ops::sub(&loss, &weight)
    };
    arange_step: Smooth, rows, |g| {
        let x = g.f(0)?;
        ops::add(&ops::zeros_like(x)?, &ops::arange_step::<f32>(x.scope(), x.dim(g.axis), 0.5, -0.25)?)
    };
    arange: Smooth, rows, |g| {
        let x = g.f(0)?;
        let places = ops::cast::<i32, f32>(&ops::arange::<i32>(x.scope(), x.dim(g.axis))?)?;
        ops::sub(x, &ops::tanh(&places)?)
    };
}

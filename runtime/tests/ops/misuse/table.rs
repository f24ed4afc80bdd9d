//! How each operation is called. An operation is added by one entry: its name, and a call with drawn arguments.

use graphable::{
    Dim, Result, Tensor, bf16,
    ops::{
        self, AttentionConfig, AttentionMask, AvgPoolConfig, ConvConfig, ConvTransposeConfig, MaxPoolConfig,
        MoeRoutes, RopeConfig, RopeOptions, RopeScaling, RopeStyle, SampleConfig, YarnConfig,
    },
};

use super::{
    draw::Draw,
    made::{Any, Made},
};

/// An operation of the table.
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) call: for<'a, 'b, 's> fn(&'b Draw<'a, 's>) -> Result<Vec<Any<'s>>>,
}

/// Calls with elements of one of several types.
macro_rules! of_numbers {
    ($g:ident, $t:ident => $call:expr) => {
        match $g.below(9) {
            0 => { type $t = i32; $call.map(Made::made) }
            1 => { type $t = u32; $call.map(Made::made) }
            2 => { type $t = u8; $call.map(Made::made) }
            3 => { type $t = f64; $call.map(Made::made) }
            4 => { type $t = i64; $call.map(Made::made) }
            5 => { type $t = i8; $call.map(Made::made) }
            _ => of_floats!($g, $t => $call),
        }
    };
}
macro_rules! of_floats {
    ($g:ident, $t:ident => $call:expr) => {
        match $g.below(8) {
            0 => {
                type $t = f64;
                $call.map(Made::made)
            }
            1 | 2 => {
                type $t = bf16;
                $call.map(Made::made)
            }
            _ => {
                type $t = f32;
                $call.map(Made::made)
            }
        }
    };
}

macro_rules! entries {
    ($($name:ident: |$g:ident| $call:expr;)*) => {
        &[$(Entry { name: stringify!($name), call: |$g| $call }),*]
    };
}

/// One tensor.
macro_rules! unary {
    ($of:ident: $($name:ident)*) => {
        entries! {$($name: |g| $of!(g, T => ops::$name(&g.t::<T>(&g.shape(0, 4))?));)*}
    };
}

/// Two tensors, of which one broadcasts.
macro_rules! binary {
    ($of:ident: $($name:ident)*) => {
        entries! {$($name: |g| {
            let a = g.shape(0, 4);
            let b = g.part_of(&a);
            $of!(g, T => ops::$name(&g.t::<T>(&a)?, &g.t::<T>(&b)?))
        };)*}
    };
}

/// A tensor and an axis, whose elements are mixed.
macro_rules! along {
    ($of:ident: $($name:ident $(($($more:expr),*))?)*) => {
        entries! {$($name: |g| {
            let x = g.shape(1, 4);
            $of!(g, T => ops::$name(&g.t::<T>(&x)?, g.mixing(&x, g.axis(x.len())) $($(, $more(g))*)?))
        };)*}
    };
}

/// A tensor and an axis, whose elements stay in front of its padding.
macro_rules! ordered {
    ($of:ident: $($name:ident $(($($more:expr),*))?)*) => {
        entries! {$($name: |g| {
            let x = g.shape(1, 4);
            $of!(g, T => ops::$name(&g.t::<T>(&x)?, g.axis(x.len()) $($(, $more(g))*)?))
        };)*}
    };
}

/// A tensor, a mask and an axis.
macro_rules! masked {
    ($of:ident: $($name:ident $(($($more:expr),*))?)*) => {
        entries! {$($name: |g| {
            let x = g.shape(1, 4);
            let mask = g.part_of(&x);
            $of!(g, T => ops::$name(&g.t::<T>(&x)?, &g.t::<bool>(&mask)?, g.axis(x.len()) $($(, $more(g))*)?))
        };)*}
    };
}

fn correction(g: &Draw<'_, '_>) -> usize {
    g.param(0, 3)
}

fn eps(g: &Draw<'_, '_>) -> f32 {
    g.real(1e-3)
}

const FLOATS: &[Entry] = unary!(of_floats:
    acos acosh asin asinh atan atanh ceil cos cosh erf erfc exp exp2 expm1 floor frac log log10 log1p log2
    reciprocal round rsqrt sin sinh sqrt tan tanh trunc
    gelu gelu_tanh hardsigmoid hardswish logsigmoid mish relu relu6 selu sigmoid silu softplus softsign tanhshrink
    isfinite isinf isnan
);

const NUMBERS: &[Entry] = unary!(of_numbers: abs neg sign square zeros_like ones_like contiguous);

const PAIRS: &[Entry] = binary!(of_numbers: add sub mul div maximum minimum remainder eq ne lt le gt ge);

const FLOAT_PAIRS: &[Entry] = binary!(of_floats:
    atan2 pow silu_mul l1_loss mse_loss smooth_l1_loss kl_div binary_cross_entropy_with_logits
);

const ALONG: &[Entry] = along!(of_numbers:
    sum mean max argmax min argmin prod sum_keepdim mean_keepdim max_keepdim min_keepdim prod_keepdim
    flip
);

const ORDERED: &[Entry] = ordered!(of_numbers: cumsum sort(Draw::flag) argsort(Draw::flag));

const FLOATS_ALONG: &[Entry] = along!(of_floats:
    softmax log_softmax l2_normalize(eps) logsumexp logsumexp_keepdim
    var(correction) std(correction) var_keepdim(correction) std_keepdim(correction)
);

const MASKED: &[Entry] = masked!(of_numbers:
    masked_max masked_min masked_argmax masked_argmin masked_mean masked_sum masked_prod
);

const FLOATS_MASKED: &[Entry] = masked!(of_floats:
    masked_logsumexp masked_softmax masked_log_softmax masked_var(correction) masked_std(correction)
);

const ELEMENTS: &[Entry] = entries! {
    scale: |g| ops::scale(&g.f(&g.shape(0, 3))?, g.real(0.5)).map(Made::made);
    elu: |g| ops::elu(&g.f(&g.shape(0, 3))?, g.real(0.5)).map(Made::made);
    leaky_relu: |g| ops::leaky_relu(&g.f(&g.shape(0, 3))?, g.real(0.5)).map(Made::made);
    celu: |g| of_floats!(g, T => ops::celu(&g.t::<T>(&g.shape(0, 3))?, g.real(0.5).into()));
    hardshrink: |g| of_floats!(g, T => ops::hardshrink(&g.t::<T>(&g.shape(0, 3))?, g.real(0.5).into()));
    softshrink: |g| of_floats!(g, T => ops::softshrink(&g.t::<T>(&g.shape(0, 3))?, g.real(0.5).into()));
    threshold: |g| of_floats!(g, T => ops::threshold(&g.t::<T>(&g.shape(0, 3))?, g.real(0.5).into(), g.real(2.0).into()));
    add: |g| ops::add(&g.f(&g.shape(0, 3))?, g.real(0.5)).map(Made::made);
    lt: |g| ops::lt(&g.t::<bf16>(&g.shape(0, 3))?, g.real(0.3)).map(Made::made);
    full_like: |g| ops::full_like(&g.f(&g.shape(0, 3))?, g.real(0.5)).map(Made::made);
    clamp: |g| {
        let x = g.shape(0, 3);
        let (low, high) = (g.f(&g.part_of(&x))?, g.f(&g.part_of(&x))?);
        ops::clamp(&g.f(&x)?, &low, &high).map(Made::made)
    };
    where_: |g| {
        let x = g.shape(0, 3);
        let (a, b) = (g.f(&g.part_of(&x))?, g.f(&g.part_of(&x))?);
        ops::where_(&g.t::<bool>(&x)?, &a, &b).map(Made::made)
    };
    masked_fill: |g| {
        let x = g.shape(0, 3);
        let mask = g.t::<bool>(&g.part_of(&x))?;
        if g.flag() { ops::masked_fill(&g.f(&x)?, &mask, g.real(0.5)) } else { ops::masked_fill(&g.f(&x)?, &mask, &g.f(&g.part_of(&x))?) }
            .map(Made::made)
    };
    all: |g| { let x = g.shape(1, 3); ops::all(&g.t::<bool>(&x)?, g.mixing(&x, g.axis(x.len()))).map(Made::made) };
    any: |g| { let x = g.shape(1, 3); ops::any(&g.t::<bool>(&x)?, g.mixing(&x, g.axis(x.len()))).map(Made::made) };
    masked_all: |g| {
        let x = g.shape(1, 3);
        ops::masked_all(&g.t::<bool>(&x)?, &g.t::<bool>(&g.part_of(&x))?, g.axis(x.len())).map(Made::made)
    };
    masked_any: |g| {
        let x = g.shape(1, 3);
        ops::masked_any(&g.t::<bool>(&x)?, &g.t::<bool>(&g.part_of(&x))?, g.axis(x.len())).map(Made::made)
    };
    size: |g| { let x = g.shape(1, 4); of_numbers!(g, T => ops::size(&g.t::<T>(&x)?, g.axis(x.len()))) };
    logical_not: |g| ops::logical_not(&g.t::<bool>(&g.shape(0, 3))?).map(Made::made);
    logical_and: |g| { let x = g.shape(0, 3); ops::logical_and(&g.t::<bool>(&x)?, &g.t::<bool>(&g.part_of(&x))?).map(Made::made) };
    logical_or: |g| { let x = g.shape(0, 3); ops::logical_or(&g.t::<bool>(&x)?, &g.t::<bool>(&g.part_of(&x))?).map(Made::made) };
    logical_xor: |g| { let x = g.shape(0, 3); ops::logical_xor(&g.t::<bool>(&x)?, &g.t::<bool>(&g.part_of(&x))?).map(Made::made) };
    cast: |g| of_numbers!(g, T => ops::cast::<f32, T>(&g.f(&g.shape(0, 3))?));
};

const SHAPES: &[Entry] = entries! {
    full: |g| ops::full(g.scope(), g.sizes(&g.shape(0, 4)), g.real(0.5)).map(Made::made);
    zeros: |g| ops::zeros::<f32>(g.scope(), g.sizes(&g.shape(0, 4))).map(Made::made);
    arange: |g| ops::arange::<f32>(g.scope(), g.sizes(&[g.dim()]).first().copied().unwrap_or(3.into())).map(Made::made);
    arange_step: |g| {
        let n = g.sizes(&[g.dim()]).first().copied().unwrap_or(3.into());
        ops::arange_step::<f32>(g.scope(), n, g.real(0.5).into(), g.real(1.0).into()).map(Made::made)
    };
    tri: |g| ops::tri(g.scope(), g.sizes(&g.shape(2, 2)), g.int(1)).map(Made::made);
    tril: |g| of_numbers!(g, T => ops::tril(&g.t::<T>(&g.shape(2, 4))?, g.int(1)));
    triu: |g| of_numbers!(g, T => ops::triu(&g.t::<T>(&g.shape(2, 4))?, g.int(1)));
    reshape: |g| {
        let (a, b, c) = (g.n(), g.n(), g.dim());
        ops::reshape(&g.f(&[c, (a * b).into()])?, g.sizes(&[c, a.into(), b.into()])).map(Made::made)
    };
    broadcast_to: |g| { let x = g.shape(0, 4); ops::broadcast_to(&g.f(&g.part_of(&x))?, g.sizes(&x)).map(Made::made) };
    narrow: |g| {
        let (size, other) = (g.n(), g.dim());
        let start = g.param(0, size);
        ops::narrow(&g.f(&[other, size.into()])?, g.or(1, &[0, 2, usize::MAX]), start, g.or(1, &[0, 9, usize::MAX])).map(Made::made)
    };
    transpose: |g| { let x = g.shape(1, 4); ops::transpose(&g.f(&x)?, g.axis(x.len()), g.axis(x.len())).map(Made::made) };
    permute: |g| {
        let x = g.shape(1, 4);
        let axes: Vec<usize> = (0..x.len()).map(|axis| g.or(axis, &[0, 1, 6, usize::MAX])).collect();
        ops::permute(&g.f(&x)?, &axes).map(Made::made)
    };
    unsqueeze: |g| { let x = g.shape(0, 3); ops::unsqueeze(&g.f(&x)?, g.axis(x.len() + 1)).map(Made::made) };
    squeeze: |g| {
        let mut x = g.shape(0, 3);
        let axis = g.below(x.len() + 1);
        x.insert(axis, 1.into());
        ops::squeeze(&g.f(&x)?, g.or(axis, &[0, 4, usize::MAX])).map(Made::made)
    };
    split: |g| {
        let (n, other) = (g.n(), g.dim());
        ops::split(&g.f(&[other, (2 * n).into()])?, g.or(1, &[0, 2, usize::MAX]), g.or(n, &[0, 3, 5, usize::MAX])).map(Made::made)
    };
    split_at: |g| {
        let (a, b, other) = (g.n(), g.n(), g.dim());
        ops::split_at(&g.f(&[other, (a + b).into()])?, g.or(1, &[0, 2, usize::MAX]), g.sizes(&[a.into(), b.into()])).map(Made::made)
    };
    concat: |g| { let (x, axis) = (g.plain(1, 3), g.below(3)); let axis = axis % x.len(); ops::concat(&[&g.f(&x)?, &g.f(&x)?], g.or(axis, &[3, 4, usize::MAX])).map(Made::made) };
    stack: |g| { let x = g.shape(0, 4); ops::stack(&[&g.f(&x)?, &g.f(&x)?], g.axis(x.len() + 1)).map(Made::made) };
    roll: |g| { let x = g.shape(1, 4); ops::roll(&g.f(&x)?, g.or(2, &[0, -1, isize::MIN, isize::MAX]), g.mixing(&x, g.axis(x.len()))).map(Made::made) };
    repeat: |g| {
        let x = g.plain(0, 6);
        let mut times: Vec<usize> = x.iter().map(|_| g.or(1 + g.below(2), &[0, 1 << 45, usize::MAX])).collect();
        times.truncate(g.or(times.len(), &[0, 1]));
        ops::repeat(&g.f(&x)?, &times).map(Made::made)
    };
    one_hot: |g| ops::one_hot::<f32>(&g.index(&g.shape(0, 3), 4)?, g.size()).map(Made::made);
    topk: |g| {
        let (size, other) = (g.n(), g.dim());
        of_numbers!(g, T => ops::topk(&g.t::<T>(&[other, size.into()])?, g.or(size, &[0, 1, 9, usize::MAX]), g.or(1, &[0, 2, usize::MAX])))
    };
};

const LAYERS: &[Entry] = entries! {
    gather: |g| { let (n, x) = (g.n(), g.dim()); ops::gather(&g.f(&[n.into(), x])?, g.or(0, &[1, 2, usize::MAX]), &g.index::<u32>(&[g.dim()], n)?).map(Made::made) };
    index_select: |g| { let (n, x) = (g.n(), g.dim()); ops::index_select(&g.f(&[n.into(), x])?, g.or(0, &[1, 2, usize::MAX]), &g.index::<u32>(&[g.dim()], n)?).map(Made::made) };
    embedding: |g| {
        if g.below(3) == 0 {
            return ops::embedding(&g.index(&g.shape(0, 3), 2)?, &g.owned.weight).map(Made::made);
        }
        let (n, d) = (g.n(), g.n());
        ops::embedding(&g.index(&g.shape(0, 3), n)?, &g.f(&[n.into(), d.into()])?).map(Made::made)
    };
    matmul: |g| { let (a, b) = (g.n(), g.n()); ops::matmul(&g.f(&[g.dim(), g.dim(), a.into()])?, &g.f(&[a.into(), b.into()])?).map(Made::made) };
    matmul_nt: |g| { let (a, b) = (g.n(), g.n()); ops::matmul_nt(&g.f(&[g.dim(), a.into()])?, &g.f(&[b.into(), a.into()])?).map(Made::made) };
    masked_matmul: |g| {
        let (a, k, b) = (g.n(), g.dim(), g.n());
        ops::masked_matmul(&g.f(&[g.dim(), a.into(), k])?, &g.f(&[k, b.into()])?).map(Made::made)
    };
    linear: |g| {
        if g.below(3) == 0 {
            return ops::linear(&g.f(&[g.dim(), 32.into()])?, &g.owned.weight).map(Made::made);
        }
        let (a, b) = (g.n(), g.n());
        ops::linear(&g.f(&[g.dim(), a.into()])?, &g.f(&[b.into(), a.into()])?).map(Made::made)
    };
    linear_bias: |g| {
        if g.below(3) == 0 {
            return ops::linear_bias(&g.f(&[g.dim(), 32.into()])?, &g.owned.weight, &g.f(&[2.into()])?).map(Made::made);
        }
        let (a, b) = (g.n(), g.n());
        ops::linear_bias(&g.f(&[g.dim(), a.into()])?, &g.f(&[b.into(), a.into()])?, &g.f(&[b.into()])?).map(Made::made)
    };
    rms_norm: |g| { let n = g.n(); ops::rms_norm(&g.f(&[g.dim(), n.into()])?, &g.f(&[n.into()])?, g.real(1e-3)).map(Made::made) };
    add_rms_norm: |g| { let (b, n) = (g.dim(), g.n()); ops::add_rms_norm(&g.f(&[b, n.into()])?, &g.f(&[b, n.into()])?, &g.f(&[n.into()])?, g.real(1e-3)).map(Made::made) };
    layer_norm: |g| { let n = g.n(); ops::layer_norm(&g.f(&[g.dim(), n.into()])?, &g.f(&[n.into()])?, &g.f(&[n.into()])?, g.real(1e-3)).map(Made::made) };
    group_norm: |g| {
        let (groups, n) = (g.n(), g.n());
        let c = (groups * n).into();
        let x = [g.dim(), c, g.dim()];
        g.mixing(&x, 2);
        ops::group_norm(&g.f(&x)?, g.or(groups, &[0, 3, usize::MAX]), &g.f(&[c])?, &g.f(&[c])?, g.real(1e-3)).map(Made::made)
    };
    batch_norm: |g| {
        let c = g.n().into();
        let var = ops::add(&ops::abs(&g.f(&[c])?)?, 0.5)?;
        ops::batch_norm(&g.f(&[g.dim(), c, g.dim()])?, &g.f(&[c])?, &var, &g.f(&[c])?, &g.f(&[c])?, g.real(1e-3)).map(Made::made)
    };
    cross_entropy: |g| {
        let (b, c) = (g.shape(0, 2), g.n());
        let logits: Vec<_> = b.iter().copied().chain([c.into()]).collect();
        ops::cross_entropy(&g.f(&logits)?, &g.index::<i32>(&b, c)?, g.int(-100), g.real(0.25)).map(Made::made)
    };
    nll_loss: |g| {
        let (b, c) = (g.shape(0, 2), g.n());
        let rows: Vec<_> = b.iter().copied().chain([c.into()]).collect();
        ops::nll_loss(&g.f(&rows)?, &g.index::<i32>(&b, c)?, g.int(-100)).map(Made::made)
    };
    lstm_cell: |g| {
        let (b, i, h) = (g.dim(), g.n(), g.n());
        let (w, u, bias) = ([(4 * h).into(), i.into()], [(4 * h).into(), h.into()], [(4 * h).into()]);
        ops::lstm_cell(&g.f(&[b, i.into()])?, &g.f(&[b, h.into()])?, &g.f(&[b, h.into()])?, &g.f(&w)?, &g.f(&u)?, &g.f(&bias)?, &g.f(&bias)?).map(Made::made)
    };
    gru_cell: |g| {
        let (b, i, h) = (g.dim(), g.n(), g.n());
        let (w, u, bias) = ([(3 * h).into(), i.into()], [(3 * h).into(), h.into()], [(3 * h).into()]);
        ops::gru_cell(&g.f(&[b, i.into()])?, &g.f(&[b, h.into()])?, &g.f(&w)?, &g.f(&u)?, &g.f(&bias)?, &g.f(&bias)?).map(Made::made)
    };
    rope: |g| {
        let (t, h, pairs) = (g.dim(), g.n(), 2 * g.n());
        let d = 2 * pairs;
        let mut options: RopeOptions = RopeConfig {
            dim: Some(g.or(d, &[0, 1, 2, 99, usize::MAX])),
            ..RopeConfig::new(g.real(100.0), [RopeStyle::HalfSplit, RopeStyle::Interleaved][g.below(2)])
        }
        .into();
        options = match g.below(6) {
            0 => options.scaling(RopeScaling::Linear { factor: g.real(2.0) }),
            1 => options.scaling(RopeScaling::Ntk { factor: g.real(2.0) }),
            2 => options.scaling(RopeScaling::DynamicNtk {
                factor: g.real(2.0),
                original_max_position_embeddings: g.or(4, &[0, u32::MAX]),
            }),
            3 => options.scaling(RopeScaling::Yarn(YarnConfig::new(g.real(4.0), g.or(16, &[0, u32::MAX])))),
            4 => options.scaling(RopeScaling::Llama3 {
                factor: g.real(8.0),
                low_freq_factor: g.real(1.0),
                high_freq_factor: g.real(4.0),
                original_max_position_embeddings: g.or(8, &[0, u32::MAX]),
            }),
            _ => options,
        };
        let mut places = vec![t];
        if g.flag() {
            let first = 1 + g.below(pairs - 1);
            let sections = [g.or(first, &[0, pairs, usize::MAX]), pairs - first];
            options = if g.flag() { options.sections(sections) } else { options.interleaved_sections([pairs / 2, pairs / 2]) };
            places.insert(0, 2.into());
        }
        ops::rope(&g.f(&[t, h.into(), d.into()])?, &g.index::<u32>(&places, 9)?, options).map(Made::made)
    };
    attention: |g| {
        let batch = if g.flag() { vec![g.dim()] } else { Vec::new() };
        let (t, s, h, heads, d, e) = (g.dim(), g.n().into(), g.n(), g.n(), g.n(), g.n());
        let heads = (h * heads).into();
        let q = g.f(&[&batch[..], &[t, heads, d.into()]].concat())?;
        let k = g.f(&[&batch[..], &[s, h.into(), d.into()]].concat())?;
        let v = g.f(&[&batch[..], &[s, h.into(), e.into()]].concat())?;
        let lengths = g.index::<u32>(&if batch.is_empty() { vec![1.into()] } else { batch.clone() }, 3)?;
        let positions = g.index::<u32>(&[&batch[..], &[t]].concat(), 3)?;
        let bias = g.f(&g.part_of(&[&batch[..], &[heads, t, s]].concat()))?;
        let (slopes, sinks) = (g.f(&[heads])?, g.f(&[heads])?);
        let mask = [AttentionMask::None, AttentionMask::Causal, AttentionMask::Lengths(&lengths), AttentionMask::Positions(&positions)]
            [g.below(4)];
        let mut config = AttentionConfig::new(mask);
        let mut is_relative = false;
        if g.flag() {
            config = config.bias(&bias);
        }
        let slope = g.below(3);
        is_relative |= slope < 2;
        config = match slope {
            0 => config.alibi(),
            1 => config.alibi_slopes(&slopes),
            _ => config,
        };
        if g.flag() {
            is_relative = true;
            config = config.window(g.or(2, &[0, 7, usize::MAX]), g.or(0, &[1, 1 << 32, usize::MAX]));
        }
        if g.flag() {
            config = config.soft_cap(g.real(2.0));
        }
        if g.flag() {
            config = config.sinks(&sinks);
        }
        // Without positions, they count from the last query, which is real only without padding.
        if matches!(mask, AttentionMask::Causal) || matches!(mask, AttentionMask::None) && is_relative {
            g.mixing(&[t], 0);
        }
        ops::attention(&q, &k, &v, config, g.real(0.5)).map(Made::made)
    };
    cache_view: |g| {
        let view = ops::cache_view(&g.owned.state).narrow(g.or(0, &[2, usize::MAX]), g.or(1, &[5, usize::MAX]), g.or(2, &[9, usize::MAX]))?;
        let view = view.reshape(g.sizes(&[2.into(), 2.into(), 2.into()]))?;
        let view = view.permute(&[g.or(0, &[1, 9]), g.or(1, &[0, 7]), 2])?;
        ops::attention(&g.f(&[3.into(), 2.into(), 2.into()])?, &view, &view, AttentionMask::None, 0.5).map(Made::made)
    };
    store: |g| { ops::store(&g.owned.state, &g.f(&[5.into(), 2.into(), 2.into()])?)?; ops::load(g.scope(), &g.owned.state).map(Made::made) };
    load: |g| ops::load(g.scope(), &g.owned.state).map(Made::made);
    scatter_rows: |g| {
        let n = g.dim();
        ops::scatter_rows(&g.owned.state, &g.index(&[n], 5)?, &g.f(&[n, 2.into(), 2.into()])?)?;
        ops::load(g.scope(), &g.owned.state).map(Made::made)
    };
    rope_scatter: |g| {
        let (n, config) = (g.dim(), RopeConfig::new(g.real(100.0), RopeStyle::HalfSplit));
        ops::rope_scatter(&g.owned.state, &g.index(&[n], 5)?, &g.f(&[n, 2.into(), 2.into()])?, &g.index::<u32>(&[n], 9)?, config)?;
        ops::load(g.scope(), &g.owned.state).map(Made::made)
    };
};

const RANDOM: &[Entry] = entries! {
    uniform: |g| ops::uniform::<f32>(g.random, g.scope(), g.sizes(&g.shape(0, 1)), g.real(0.0)..g.real(1.0)).map(Made::made);
    normal: |g| ops::normal::<f32>(g.random, g.scope(), g.sizes(&g.shape(0, 1)), g.real(0.5), g.real(1.0)).map(Made::made);
    exponential: |g| ops::exponential::<f32>(g.random, g.scope(), g.sizes(&g.shape(0, 1)), g.real(1.0)).map(Made::made);
    gumbel: |g| ops::gumbel::<f32>(g.random, g.scope(), g.sizes(&g.shape(0, 1))).map(Made::made);
    randint: |g| ops::randint(g.random, g.scope(), g.sizes(&g.shape(0, 1)), g.int(3)..g.int(9)).map(Made::made);
    bernoulli: |g| ops::bernoulli(g.random, &ops::sigmoid(&g.f(&g.shape(0, 1))?)?).map(Made::made);
    dropout: |g| ops::dropout(g.random, &g.f(&g.shape(0, 1))?, g.real(0.5)).map(Made::made);
    randperm: |g| ops::randperm(g.random, g.scope(), g.size()).map(Made::made);
    rng_state: |g| ops::rng_state(g.random, g.scope()).map(Made::made);
    set_rng_state: |g| {
        ops::set_rng_state(g.random, &g.index(&[4.into()], 9)?)?;
        ops::uniform::<f32>(g.random, g.scope(), [2], 0.0..1.0).map(Made::made)
    };
    apply_repetition_penalty: |g| {
        let x = [g.dim(), g.n().into()];
        ops::apply_repetition_penalty(&g.f(&x)?, &g.t::<bool>(&x)?, g.real(1.5)).map(Made::made)
    };
    apply_presence_penalty: |g| {
        let x = [g.dim(), g.n().into()];
        ops::apply_presence_penalty(&g.f(&x)?, &g.t::<bool>(&x)?, g.real(1.5)).map(Made::made)
    };
    apply_temperature: |g| ops::apply_temperature(&g.f(&[g.dim(), g.n().into()])?, g.real(0.5)).map(Made::made);
    apply_top_k: |g| {
        let x = [g.dim(), g.n().into()];
        ops::apply_top_k(&g.f(&x)?, &g.index::<u32>(&x[..1], 4)?).map(Made::made)
    };
    apply_top_p: |g| ops::apply_top_p(&g.f(&[g.dim(), g.n().into()])?, g.real(0.5)).map(Made::made);
    apply_min_p: |g| ops::apply_min_p(&g.f(&[g.dim(), g.n().into()])?, g.real(0.5)).map(Made::made);
    choose_token: |g| {
        let x = [g.dim(), g.n().into()];
        ops::choose_token(&g.f(&x)?, &ops::sigmoid(&g.f(&x[..1])?)?).map(Made::made)
    };
    sample: |g| {
        let x = [g.dim(), g.n().into()];
        let (logits, k, p) = (g.f(&x)?, g.index::<u32>(&x[..1], 4)?, g.real(0.5));
        ops::sample(g.random, &logits, SampleConfig::new().top_k(&k).top_p(p).temperature(g.real(0.5))).map(Made::made)
    };
    sample_with: |g| {
        let x = [g.dim(), g.n().into()];
        let (logits, seen, uniforms) = (g.f(&x)?, g.t::<bool>(&x)?, ops::sigmoid(&g.f(&x[..1])?)?);
        let config = SampleConfig::new().repetition_penalty(&seen, g.real(1.5)).min_p(g.real(0.25));
        ops::sample_with(&logits, config, &uniforms).map(Made::made)
    };
    mark_tokens: |g| {
        ops::mark_tokens(&g.owned.seen, &g.index(&[g.dim()], 4)?)?;
        ops::load(g.scope(), &g.owned.seen).map(Made::made)
    };
    append: |g| {
        let x = g.f(&[g.dim(), g.n().into()])?;
        ops::append(&g.owned.log, &x)?;
        Ok(x.made())
    };
    token_log_probs: |g| {
        let (b, n) = (g.dim(), g.n());
        ops::token_log_probs(&g.f(&[b, n.into()])?, &g.index::<u32>(&[b], n)?).map(Made::made)
    };
    top_log_probs: |g| {
        let n = g.n();
        ops::top_log_probs(&g.f(&[g.dim(), n.into()])?, g.or(n, &[0, 1, 9, usize::MAX])).map(Made::made)
    };
};

/// Two experts of three for each token.
fn routes<'s>(g: &Draw<'_, 's>, tokens: Dim<'s>) -> Result<MoeRoutes<'s>> {
    g.fit(|| ops::moe_route(&g.index(&[tokens, 2.into()], 3)?, 3))
}

const MODELS: &[Entry] = entries! {
    moe_route: |g| {
        let routes = ops::moe_route(&g.index(&[g.dim(), g.n().into()], 3)?, g.or(3, &[0, 7, 1 << 31, usize::MAX]))?;
        Ok([routes.tokens(), routes.places(), routes.ends()].into_iter().flat_map(|x| x.clone().made()).collect())
    };
    moe_permute: |g| {
        let t = g.dim();
        ops::moe_permute(&g.f(&[t, g.n().into()])?, &routes(g, t)?).map(Made::made)
    };
    moe_unpermute: |g| {
        let t = g.dim();
        let (x, weights) = (g.f(&[t, 2.into(), g.n().into()])?, g.f(&[t, 2.into()])?);
        ops::moe_unpermute(&x, &weights, &routes(g, t)?).map(Made::made)
    };
    grouped_mm: |g| {
        let (t, k) = (g.dim(), g.n());
        let routes = routes(g, t)?;
        ops::grouped_mm(&g.f(&[t, 2.into(), k.into()])?, &g.f(&[3.into(), k.into(), g.n().into()])?, routes.ends()).map(Made::made)
    };
    grouped_mm_nt: |g| {
        let (t, k) = (g.dim(), g.n());
        let routes = routes(g, t)?;
        ops::grouped_mm_nt(&g.f(&[t, 2.into(), k.into()])?, &g.f(&[3.into(), g.n().into(), k.into()])?, routes.ends()).map(Made::made)
    };
    scatter_add: |g| {
        let (n, m, d) = (g.n(), g.dim(), g.n().into());
        ops::scatter_add(&g.f(&[n.into(), d])?, g.or(0, &[1, 2, usize::MAX]), &g.index(&[m, d], n)?, &g.f(&[m, d])?).map(Made::made)
    };
    index_add: |g| {
        let (n, m, d) = (g.n(), g.dim(), g.dim());
        ops::index_add(&g.f(&[n.into(), d])?, g.or(0, &[1, 2, usize::MAX]), &g.index(&[m], n)?, &g.f(&[m, d])?).map(Made::made)
    };
    cross_entropy_weighted: |g| {
        let (b, c) = (g.dim(), g.n());
        let (logits, labels, weights) = (g.f(&[b, c.into()])?, g.index::<i32>(&[b], c)?, g.f(&[c.into()])?);
        ops::cross_entropy_weighted(&logits, &labels, &weights, g.int(-100), g.real(0.25)).map(Made::made)
    };
    nll_loss_weighted: |g| {
        let (b, c) = (g.dim(), g.n());
        ops::nll_loss_weighted(&g.f(&[b, c.into()])?, &g.index::<i32>(&[b], c)?, &g.f(&[c.into()])?, g.int(-100)).map(Made::made)
    };
    batch_norm_training: |g| {
        let (x, c) = (g.f(&[g.dim(), 3.into(), g.n().into()])?, [3.into()]);
        ops::batch_norm_training(&x, &g.owned.mean, &g.owned.var, &g.f(&c)?, &g.f(&c)?, g.real(0.5), g.real(1e-1)).map(Made::made)
    };
};

fn conv<const N: usize>(g: &Draw<'_, '_>) -> ConvConfig<N> {
    ConvConfig {
        stride: [g.param(1, 3); N],
        padding: [g.param(0, 2); N],
        dilation: [g.param(1, 3); N],
        groups: g.or(1, &[0, 2, usize::MAX]),
    }
}

fn transposed<const N: usize>(g: &Draw<'_, '_>) -> ConvTransposeConfig<N> {
    let ConvConfig { stride, dilation, groups, .. } = conv(g);
    ConvTransposeConfig {
        stride,
        padding: [g.or(0, &[1, 9, usize::MAX]); N],
        output_padding: [g.or(0, &[1, 9, usize::MAX]); N],
        dilation,
        groups,
    }
}

fn max_windows<const N: usize>(g: &Draw<'_, '_>) -> MaxPoolConfig<N> {
    let kernel = g.param(2, 4);
    MaxPoolConfig {
        kernel: [kernel; N],
        stride: [g.param(1, 3); N],
        padding: [g.param(0, 2); N],
        dilation: [g.param(1, 3); N],
        ceil_mode: g.flag(),
    }
}

fn mean_windows<const N: usize>(g: &Draw<'_, '_>) -> AvgPoolConfig<N> {
    let MaxPoolConfig { kernel, stride, padding, ceil_mode, .. } = max_windows(g);
    AvgPoolConfig { kernel, stride, padding, ceil_mode, count_include_pad: g.flag() }
}

/// `[N, C, ..]`, of which each of the last `N` has at least five elements.
fn image<'s, const N: usize>(g: &Draw<'_, 's>, channels: usize) -> Result<Tensor<'s, f32>> {
    let long = (0..N).map(|_| (5 + g.below(3)).into());
    g.f(&[g.dim(), channels.into()].into_iter().chain(long).collect::<Vec<_>>())
}

fn weight<'s, const N: usize>(g: &Draw<'_, 's>, [a, b]: [usize; 2]) -> Result<Tensor<'s, f32>> {
    let windows = (0..N).map(|_| (1 + g.below(3)).into());
    g.f(&[a.into(), b.into()].into_iter().chain(windows).collect::<Vec<_>>())
}

/// Operations on windows of one and two dimensions.
macro_rules! windows {
    ($($n:literal: $conv:ident $conv_bias:ident $transpose:ident $transpose_bias:ident $max:ident $avg:ident $parts:ident $most:ident $nearest:ident $linear:ident;)*) => {
        &[$(entries! {
            $conv: |g| { let (c, o) = (g.n(), g.n()); ops::$conv(&image::<$n>(g, c)?, &weight::<$n>(g, [o, c])?, conv(g)).map(Made::made) };
            $conv_bias: |g| { let (c, o) = (g.n(), g.n()); ops::$conv_bias(&image::<$n>(g, c)?, &weight::<$n>(g, [o, c])?, &g.f(&[o.into()])?, conv(g)).map(Made::made) };
            $transpose: |g| { let (c, o) = (g.n(), g.n()); ops::$transpose(&image::<$n>(g, c)?, &weight::<$n>(g, [c, o])?, transposed(g)).map(Made::made) };
            $transpose_bias: |g| { let (c, o) = (g.n(), g.n()); ops::$transpose_bias(&image::<$n>(g, c)?, &weight::<$n>(g, [c, o])?, &g.f(&[o.into()])?, transposed(g)).map(Made::made) };
            $max: |g| ops::$max(&image::<$n>(g, g.n())?, max_windows(g)).map(Made::made);
            $avg: |g| ops::$avg(&image::<$n>(g, g.n())?, mean_windows(g)).map(Made::made);
            $parts: |g| ops::$parts(&image::<$n>(g, g.n())?, [g.size(); $n]).map(Made::made);
            $most: |g| ops::$most(&image::<$n>(g, g.n())?, [g.size(); $n]).map(Made::made);
            $nearest: |g| ops::$nearest(&image::<$n>(g, g.n())?, [g.size(); $n]).map(Made::made);
            $linear: |g| ops::$linear(&image::<$n>(g, g.n())?, [g.size(); $n], g.flag()).map(Made::made);
        }),*]
    };
}

const WINDOWS: &[&[Entry]] = windows! {
    1: conv1d conv1d_bias conv_transpose1d conv_transpose1d_bias max_pool1d avg_pool1d adaptive_avg_pool1d adaptive_max_pool1d upsample_nearest1d upsample_linear1d;
    2: conv2d conv2d_bias conv_transpose2d conv_transpose2d_bias max_pool2d avg_pool2d adaptive_avg_pool2d adaptive_max_pool2d upsample_nearest2d upsample_bilinear2d;
};

const TABLES: [&[Entry]; 14] = [
    FLOATS,
    NUMBERS,
    PAIRS,
    FLOAT_PAIRS,
    ALONG,
    ORDERED,
    FLOATS_ALONG,
    MASKED,
    FLOATS_MASKED,
    ELEMENTS,
    SHAPES,
    LAYERS,
    RANDOM,
    MODELS,
];

pub(super) fn all() -> impl Iterator<Item = &'static Entry> {
    TABLES.into_iter().chain(WINDOWS.iter().copied()).flatten()
}

//! Operations on `f64`, `i64` and `i8`.

use graphable::{Number, Result, Tensor, ops};

use super::{Given, table};

/// How many entries of the table make values of these types, at its beginning.
pub(super) const CASTS: usize = 4;

/// Between -1 and 1, so that what follows stays small.
fn unit<'s>(x: &Tensor<'s, f64>) -> Result<Tensor<'s, f64>> {
    ops::tanh(x)
}

/// Between 1/4 and 5/4.
fn positive<'s>(x: &Tensor<'s, f64>) -> Result<Tensor<'s, f64>> {
    ops::add(&ops::abs(&ops::tanh(x)?)?, 0.25)
}

/// Numbers of all lengths, of either sign.
fn long<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, i64>> {
    ops::cast(&ops::scale(&ops::tanh(x)?, 3e15)?)
}

/// The first value where it is positive, and the second elsewhere.
fn chosen<'s, T: Number>(a: &Tensor<'s, T>, b: &Tensor<'s, T>) -> Result<Tensor<'s, T>> {
    ops::where_(&ops::gt(a, &ops::zeros_like(a)?)?, a, b)
}

/// Weights and a bias of the size along `axis`, around one.
fn affine<'s>(x: &Tensor<'s, f64>, axis: usize) -> Result<[Tensor<'s, f64>; 2]> {
    let step = 0.5 / x.dim(axis).get()? as f64;
    let b = ops::arange_step::<f64>(x.scope(), x.dim(axis), -0.25, step)?;
    Ok([ops::add(&b, 1.0)?, b])
}

/// A label for each row: the class of its largest element.
fn labels<'s>(x: &Tensor<'s, f64>) -> Result<Tensor<'s, i32>> {
    ops::cast(&ops::argmax(x, x.rank() - 1)?)
}

fn normalized<'s>(g: &Given<'_, 's>) -> Result<Tensor<'s, f64>> {
    let x = g.d(0)?;
    let [w, b] = affine(x, g.axis)?;
    match g.n(0, 4) {
        0 => ops::layer_norm(x, &w, &b, 0.1),
        1 => ops::rms_norm(x, &w, 0.1),
        2 => ops::add_rms_norm(x, &ops::add(&ops::zeros_like(x)?, &b)?, &w, 0.1).map(|(_, y)| y),
        _ => ops::l2_normalize(x, g.axis, 0.5),
    }
}

/// The loss of each element.
fn lost<'s>(g: &Given<'_, 's>) -> Result<Tensor<'s, f64>> {
    let (x, y) = (unit(g.d(0)?)?, unit(g.d(1)?)?);
    match g.n(0, 5) {
        0 => ops::l1_loss(&x, &y),
        1 => ops::mse_loss(&x, &y),
        2 => ops::smooth_l1_loss(&x, &y),
        3 => ops::kl_div(&x, &positive(&y)?),
        _ => ops::binary_cross_entropy_with_logits(&x, &y),
    }
}

/// The loss of each row.
fn lost_of_rows<'s>(g: &Given<'_, 's>) -> Result<Tensor<'s, f64>> {
    let (x, labels) = (g.d(0)?, labels(g.d(0)?)?);
    let w = &affine(x, g.axis)?[0];
    match g.n(0, 4) {
        0 => ops::cross_entropy(x, &labels, 1, g.n(1, 2) as f64 * 0.1),
        1 => ops::nll_loss(x, &labels, 1),
        2 => ops::cross_entropy_weighted(x, &labels, w, 1, 0.1).map(|(loss, _)| loss),
        _ => ops::nll_loss_weighted(x, &labels, w, 1).map(|(loss, _)| loss),
    }
}

table! {
    cast: Smooth, becomes(F32, F64), |g| ops::div(&ops::cast::<f32, f64>(g.f(0)?)?, 3.0);
    cast: Steep, becomes(F32, I64), |g| long(g.f(0)?);
    cast: Steep, becomes(F32, I8), |g| ops::cast::<f32, i8>(&ops::scale(g.f(0)?, 90.0)?);
    cast: Steep, becomes(U32, I64), |g| ops::sub(&ops::cast::<u32, i64>(g.u(0)?)?, 3);

    cast: Smooth, becomes(F64, F32), |g| ops::cast::<f64, f32>(&unit(g.d(0)?)?);
    cast: Steep, becomes(F64, I64), |g| ops::cast::<f64, i64>(&ops::mul(g.d(0)?, 1e17)?);
    cast: Steep, becomes(F64, I8), |g| ops::cast::<f64, i8>(&ops::mul(g.d(0)?, 99.5)?);
    cast: Steep, becomes(I64, F32), |g| ops::tanh(&ops::cast::<i64, f32>(g.l(0)?)?);
    cast: Steep, becomes(I64, F64), |g| ops::cast::<i64, f64>(g.l(0)?);
    cast: Steep, becomes(I64, I8), |g| ops::cast::<i64, i8>(g.l(0)?);
    cast: Steep, becomes(I8, I64), |g| ops::cast::<i8, i64>(g.s(0)?);
    cast: Steep, becomes(I8, F64), |g| ops::mul(&ops::cast::<i8, f64>(g.s(0)?)?, 0.1);

    add: Smooth, pair_of(F64), |g| ops::add(g.d(0)?, g.d(1)?);
    sub: Smooth, pair_of(F64), |g| ops::sub(g.d(0)?, g.d(1)?);
    mul: Smooth, pair_of(F64), |g| ops::mul(&unit(g.d(0)?)?, &unit(g.d(1)?)?);
    div: Smooth, pair_of(F64), |g| ops::div(g.d(0)?, &positive(g.d(1)?)?);
    minimum: Smooth, pair_of(F64), |g| ops::minimum(g.d(0)?, g.d(1)?);
    maximum: Smooth, pair_of(F64), |g| ops::maximum(g.d(0)?, g.d(1)?);
    pow: Smooth, pair_of(F64), |g| ops::pow(&positive(g.d(0)?)?, &unit(g.d(1)?)?);
    neg: Smooth, same_of(F64), |g| ops::neg(g.d(0)?);
    exp: Smooth, same_of(F64), |g| ops::exp(&unit(g.d(0)?)?);
    sqrt: Smooth, same_of(F64), |g| ops::sqrt(&positive(g.d(0)?)?);
    sin: Smooth, same_of(F64), |g| ops::sin(&unit(g.d(0)?)?);
    asinh: Smooth, same_of(F64), |g| ops::asinh(g.d(0)?);
    erf: Smooth, same_of(F64), |g| ops::erf(g.d(0)?);
    gelu: Smooth, same_of(F64), |g| ops::gelu(&unit(g.d(0)?)?);
    sigmoid: Smooth, same_of(F64), |g| ops::sigmoid(g.d(0)?);
    floor: Steep, same_of(F64), |g| ops::floor(g.d(0)?);
    lt: Steep, pair_test_of(F64), |g| ops::lt(g.d(0)?, g.d(1)?);
    isfinite: Smooth, becomes(F64, Bool), |g| ops::isfinite(g.d(0)?);
    where_: Steep, pair_of(F64), |g| chosen(g.d(0)?, g.d(1)?);
    sum: Sum, removed_of(F64), |g| ops::sum(g.d(0)?, g.axis);
    mean: Sum, removed_of(F64), |g| ops::mean(g.d(0)?, g.axis);
    var: Sum, removed_of(F64), |g| ops::var(&unit(g.d(0)?)?, g.axis, 0);
    logsumexp: Sum, removed_of(F64), |g| ops::logsumexp(&unit(g.d(0)?)?, g.axis);
    max: Smooth, removed_of(F64), |g| ops::max(g.d(0)?, g.axis);
    min: Smooth, removed_of(F64), |g| ops::min(g.d(0)?, g.axis);
    argmin: Steep, index_of(F64), |g| ops::argmin(g.d(0)?, g.axis);
    scale: Smooth, same_of(F64), |g| ops::scale(g.d(0)?, 0.1);
    elu: Smooth, same_of(F64), |g| ops::elu(&unit(g.d(0)?)?, 0.1);
    leaky_relu: Smooth, same_of(F64), |g| ops::leaky_relu(g.d(0)?, 0.1);
    softmax: Sum, lines_of(F64), |g| ops::softmax(&unit(g.d(0)?)?, g.axis);
    log_softmax: Sum, lines_of(F64), |g| ops::log_softmax(&unit(g.d(0)?)?, g.axis);
    layer_norm: SteepSum, rows_of(F64), |g| normalized(g);
    mse_loss: Smooth, pair_of(F64), |g| lost(g);
    cross_entropy: SteepSum, row_results_of(F64), |g| lost_of_rows(g);
    masked_sum: Product, masked_removed_of(F64), |g| {
        let (x, mask) = (unit(g.d(0)?)?, g.b(1)?);
        match g.n(0, 3) {
            0 => ops::masked_sum(&x, mask, g.axis),
            1 => ops::masked_mean(&x, mask, g.axis),
            _ => ops::maximum(&ops::masked_max(&x, mask, g.axis)?, -1e3),
        }
    };
    masked_softmax: Product, masked_of(F64), |g| ops::masked_softmax(&unit(g.d(0)?)?, g.b(1)?, g.axis);
    sort: Smooth, lines_of(F64), |g| ops::sort(g.d(0)?, g.axis, false).map(|(values, _)| values);

    add: Steep, pair_of(I64), |g| ops::add(g.l(0)?, g.l(1)?);
    sub: Steep, pair_of(I64), |g| ops::sub(g.l(0)?, g.l(1)?);
    mul: Steep, pair_of(I64), |g| ops::mul(g.l(0)?, g.l(1)?);
    div: Steep, pair_of(I64), |g| ops::div(g.l(0)?, g.l(1)?);
    remainder: Steep, pair_of(I64), |g| ops::remainder(g.l(0)?, g.l(1)?);
    minimum: Steep, pair_of(I64), |g| ops::minimum(g.l(0)?, g.l(1)?);
    abs: Steep, same_of(I64), |g| ops::abs(g.l(0)?);
    clamp: Steep, same_of(I64), |g| ops::clamp(g.l(0)?, -1 << 40, 5);
    eq: Steep, pair_test_of(I64), |g| ops::eq(g.l(0)?, g.l(1)?);
    ge: Steep, pair_test_of(I64), |g| ops::ge(g.l(0)?, g.l(1)?);
    where_: Steep, pair_of(I64), |g| chosen(g.l(0)?, g.l(1)?);
    sum: Steep, removed_of(I64), |g| ops::sum(g.l(0)?, g.axis);
    max: Steep, removed_of(I64), |g| ops::max(g.l(0)?, g.axis);
    prod: Steep, removed_of(I64), |g| ops::prod(g.l(0)?, g.axis);
    argmax: Steep, index_of(I64), |g| ops::argmax(g.l(0)?, g.axis);
    sort: Steep, lines_of(I64), |g| ops::sort(g.l(0)?, g.axis, true).map(|(values, _)| values);
    cumsum: Steep, lines_of(I64), |g| ops::cumsum(g.l(0)?, g.axis);

    masked_sum: Steep, masked_removed_of(I64), |g| ops::masked_sum(g.l(0)?, g.b(1)?, g.axis);

    add: Steep, pair_of(I8), |g| ops::add(g.s(0)?, g.s(1)?);
    mul: Steep, pair_of(I8), |g| ops::mul(g.s(0)?, g.s(1)?);
    div: Steep, pair_of(I8), |g| ops::div(g.s(0)?, g.s(1)?);
    maximum: Steep, pair_of(I8), |g| ops::maximum(g.s(0)?, g.s(1)?);
    neg: Steep, same_of(I8), |g| ops::neg(g.s(0)?);
    sign: Steep, same_of(I8), |g| ops::sign(g.s(0)?);
    gt: Steep, pair_test_of(I8), |g| ops::gt(g.s(0)?, g.s(1)?);
    where_: Steep, pair_of(I8), |g| chosen(g.s(0)?, g.s(1)?);
    sum: Steep, removed_of(I8), |g| ops::sum(g.s(0)?, g.axis);
    mean: Steep, removed_of(I8), |g| ops::mean(g.s(0)?, g.axis);
    min: Steep, removed_of(I8), |g| ops::min(g.s(0)?, g.axis);
}

//! Operations that compute each element by itself.

use graphable::{Result, Tensor, ops};

use super::{Given, table};

/// `x` between -1 and 1, so that what follows stays small.
fn unit<'s>(g: &Given<'_, 's>) -> Result<Tensor<'s, f32>> {
    ops::tanh(g.f(0)?)
}

/// Between -1/2 and 1/2.
fn small<'s>(g: &Given<'_, 's>) -> Result<Tensor<'s, f32>> {
    ops::mul(&unit(g)?, 0.5)
}

/// Between 1/4 and 5/4.
fn positive<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::add(&ops::abs(&ops::tanh(x)?)?, 0.25)
}

/// Whole numbers between -9 and 9.
fn long<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, i64>> {
    ops::cast(&ops::mul(&ops::tanh(x)?, 9.0)?)
}

table! {
    abs: Smooth, same, |g| ops::abs(g.f(0)?);
    sign: Steep, same, |g| ops::sign(g.f(0)?);
    square: Smooth, same, |g| ops::square(&unit(g)?);
    reciprocal: Smooth, same, |g| ops::reciprocal(&positive(g.f(0)?)?);
    sqrt: Smooth, same, |g| ops::sqrt(&positive(g.f(0)?)?);
    rsqrt: Smooth, same, |g| ops::rsqrt(&positive(g.f(0)?)?);
    exp: Smooth, same, |g| ops::exp(&unit(g)?);
    exp2: Smooth, same, |g| ops::exp2(&unit(g)?);
    expm1: Smooth, same, |g| ops::expm1(&unit(g)?);
    log: Smooth, same, |g| ops::log(&positive(g.f(0)?)?);
    log1p: Smooth, same, |g| ops::log1p(&positive(g.f(0)?)?);
    log2: Smooth, same, |g| ops::log2(&positive(g.f(0)?)?);
    log10: Smooth, same, |g| ops::log10(&positive(g.f(0)?)?);
    pow: Smooth, pair, |g| ops::pow(&positive(g.f(0)?)?, &ops::tanh(g.f(1)?)?);
    pow: Smooth, same, |g| ops::pow(&positive(g.f(0)?)?, g.x(0));
    sin: Smooth, same, |g| ops::sin(g.f(0)?);
    cos: Smooth, same, |g| ops::cos(g.f(0)?);
    tan: Smooth, same, |g| ops::tan(&small(g)?);
    asin: Smooth, same, |g| ops::asin(&small(g)?);
    acos: Smooth, same, |g| ops::acos(&small(g)?);
    atan: Smooth, same, |g| ops::atan(g.f(0)?);
    atan2: Smooth, pair, |g| ops::atan2(&positive(g.f(0)?)?, g.f(1)?);
    sinh: Smooth, same, |g| ops::sinh(&unit(g)?);
    cosh: Smooth, same, |g| ops::cosh(&unit(g)?);
    asinh: Smooth, same, |g| ops::asinh(g.f(0)?);
    acosh: Smooth, same, |g| ops::acosh(&ops::add(&positive(g.f(0)?)?, 1.0)?);
    atanh: Smooth, same, |g| ops::atanh(&small(g)?);
    erf: Smooth, same, |g| ops::erf(g.f(0)?);
    erfc: Smooth, same, |g| ops::erfc(g.f(0)?);
    ceil: Steep, same, |g| ops::ceil(g.f(0)?);
    floor: Steep, same, |g| ops::floor(g.f(0)?);
    round: Steep, same, |g| ops::round(g.f(0)?);
    trunc: Steep, same, |g| ops::trunc(g.f(0)?);
    frac: Steep, same, |g| ops::frac(g.f(0)?);
    remainder: Steep, same, |g| ops::remainder(g.f(0)?, 0.75);
    maximum: Smooth, pair, |g| ops::maximum(g.f(0)?, g.f(1)?);
    maximum: Smooth, same, |g| ops::maximum(g.f(0)?, g.x(0));
    minimum: Smooth, pair, |g| ops::minimum(g.f(0)?, g.f(1)?);
    clamp: Smooth, three, |g| ops::clamp(g.f(0)?, g.f(1)?, g.f(2)?);
    clamp: Smooth, pair, |g| ops::clamp(g.f(0)?, -0.5, g.f(1)?);
    add: Smooth, same, |g| ops::add(g.f(0)?, g.x(0));
    sub: Smooth, same, |g| ops::sub(g.f(0)?, g.x(0));
    mul: Smooth, same, |g| ops::mul(g.f(0)?, g.x(0));
    div: Smooth, same, |g| ops::div(g.f(0)?, 1.5);
    add: Smooth, half, |g| ops::add(g.h(0)?, g.x(0));

    celu: Smooth, same, |g| ops::celu(g.f(0)?, 0.5);
    elu: Smooth, same, |g| ops::elu(g.f(0)?, 0.5);
    gelu_tanh: Smooth, same, |g| ops::gelu_tanh(g.f(0)?);
    hardshrink: Steep, same, |g| ops::hardshrink(g.f(0)?, 0.5);
    hardsigmoid: Smooth, same, |g| ops::hardsigmoid(g.f(0)?);
    hardswish: Smooth, same, |g| ops::hardswish(g.f(0)?);
    leaky_relu: Smooth, same, |g| ops::leaky_relu(g.f(0)?, 0.125);
    logsigmoid: Smooth, same, |g| ops::logsigmoid(g.f(0)?);
    mish: Smooth, same, |g| ops::mish(g.f(0)?);
    relu6: Smooth, same, |g| ops::relu6(g.f(0)?);
    selu: Smooth, same, |g| ops::selu(g.f(0)?);
    sigmoid: Smooth, same, |g| ops::sigmoid(g.f(0)?);
    softplus: Smooth, same, |g| ops::softplus(g.f(0)?);
    softshrink: Smooth, same, |g| ops::softshrink(g.f(0)?, 0.25);
    softsign: Smooth, same, |g| ops::softsign(g.f(0)?);
    tanhshrink: Smooth, same, |g| ops::tanhshrink(g.f(0)?);
    threshold: Steep, same, |g| ops::threshold(g.f(0)?, -0.25, g.x(0).into());

    eq: Steep, pair_test, |g| ops::eq(g.f(0)?, g.f(1)?);
    ne: Steep, pair_test, |g| ops::ne(g.f(0)?, g.f(1)?);
    lt: Steep, pair_test, |g| ops::lt(g.f(0)?, g.f(1)?);
    le: Steep, pair_test, |g| ops::le(g.f(0)?, g.f(1)?);
    ge: Steep, pair_test, |g| ops::ge(g.f(0)?, g.f(1)?);
    lt: Steep, test, |g| ops::lt(g.f(0)?, g.x(0));
    ge: Steep, test, |g| ops::ge(g.f(0)?, g.x(0));
    gt: Steep, half_test, |g| ops::gt(g.h(0)?, g.x(0));
    where_: Smooth, picked, |g| ops::where_::<f32>(g.b(0)?, g.x(0), g.x(1));
    masked_fill: Smooth, with_mask, |g| ops::masked_fill(g.f(0)?, g.b(1)?, g.x(0));
    logical_and: Smooth, truths, |g| ops::logical_and(g.b(0)?, g.b(1)?);
    logical_or: Smooth, truths, |g| ops::logical_or(g.b(0)?, g.b(1)?);
    logical_xor: Smooth, truths, |g| ops::logical_xor(g.b(0)?, g.b(1)?);
    logical_not: Smooth, truth, |g| ops::logical_not(g.b(0)?);
    isnan: Smooth, test, |g| ops::isnan(g.f(0)?);
    isinf: Smooth, test, |g| ops::isinf(g.f(0)?);
    isfinite: Smooth, test, |g| ops::isfinite(g.f(0)?);

    l1_loss: Smooth, pair, |g| ops::l1_loss(g.f(0)?, g.f(1)?);
    mse_loss: Smooth, pair, |g| ops::mse_loss(&unit(g)?, &ops::tanh(g.f(1)?)?);
    smooth_l1_loss: Smooth, pair, |g| ops::smooth_l1_loss(g.f(0)?, g.f(1)?);
    kl_div: Smooth, pair, |g| ops::kl_div(&unit(g)?, &positive(g.f(1)?)?);
    binary_cross_entropy_with_logits: Smooth, pair, |g|
        ops::binary_cross_entropy_with_logits(&unit(g)?, &ops::sigmoid(g.f(1)?)?);

    cast: Steep, same, |g| ops::cast::<i32, f32>(&ops::cast::<f32, i32>(&ops::mul(&unit(g)?, 9.0)?)?);
    cast: Steep, same, |g| ops::cast::<u8, f32>(&ops::cast::<f32, u8>(&ops::mul(&positive(g.f(0)?)?, 9.0)?)?);
    cast: Steep, same, |g| ops::cast::<graphable::f16, f32>(&ops::cast::<f32, graphable::f16>(g.f(0)?)?);
    cast: Smooth, same, |g| ops::cast::<f64, f32>(&ops::mul(&ops::cast::<f32, f64>(g.f(0)?)?, 0.1)?);
    cast: Steep, pair, |g| ops::cast::<i64, f32>(&ops::minimum(&long(g.f(0)?)?, &long(g.f(1)?)?)?);
    cast: Steep, same, |g| ops::cast::<i8, f32>(&ops::abs(&ops::cast::<f32, i8>(&ops::mul(&unit(g)?, 9.0)?)?)?);
    full_like: Smooth, same, |g| ops::full_like(g.f(0)?, g.x(0));
    zeros_like: Smooth, same, |g| ops::zeros_like(g.f(0)?);
    zeros: Smooth, same, |g| ops::zeros::<f32>(g.f(0)?.scope(), g.f(0)?.shape());
}

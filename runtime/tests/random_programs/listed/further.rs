//! Operations on `f64`, `i64` and `i8`.

use graphable::{Number, Result, Tensor, ops};

use super::table;

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

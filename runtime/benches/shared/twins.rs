//! What some built-in operations compute, written as a user would write it.

use graphable::kernel;

#[kernel]
pub(crate) fn add(a: f32, b: f32) -> f32 {
    a + b
}

#[kernel]
pub(crate) fn mul(a: f32, b: f32) -> f32 {
    a * b
}

#[kernel]
pub(crate) fn silu_mul(gate: f32, up: f32) -> f32 {
    gate / (1.0 + (-gate).exp()) * up
}

#[kernel]
pub(crate) fn exp(x: f32) -> f32 {
    x.exp()
}

#[kernel]
pub(crate) fn gelu_tanh(x: f32) -> f32 {
    let u = 0.797_884_6 * (x + 0.044_715 * x * x * x);
    x / (1.0 + (-2.0 * u).exp())
}

#[kernel]
pub(crate) fn lt(a: f32, b: f32) -> bool {
    a < b
}

#[kernel]
pub(crate) fn pick(cond: bool, a: f32, b: f32) -> f32 {
    if cond { a } else { b }
}

#[kernel]
pub(crate) fn to_float(x: i32) -> f32 {
    x as f32
}

#[kernel]
pub(crate) fn to_int(x: f32) -> i32 {
    x as i32
}

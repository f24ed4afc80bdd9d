//! The kernels of random operations.

use crate::kernel;

/// `keep` bits of each number as a multiple of `unit`, stretched; rounding does not reach the end.
#[kernel]
pub(super) fn uniform(
    r: Random,
    #[key] drop: u32,
    #[key] unit: f32,
    #[key] low: f32,
    #[key] span: f32,
    #[key] largest: f32,
) -> f32 {
    let u = (r.bits() >> drop) as f32 * unit;
    (low + u * span).min(largest)
}

#[kernel]
pub(super) fn normal(r: Random, #[key] mean: f32, #[key] std: f32) -> f32 {
    mean + std * r.normal()
}

#[kernel]
pub(super) fn exponential(r: Random, #[key] mean: f32) -> f32 {
    mean * r.exponential()
}

#[kernel]
pub(super) fn gumbel(r: Random) -> f32 {
    r.gumbel()
}

#[kernel]
pub(super) fn bernoulli(p: f32, r: Random) -> f32 {
    f32::from(r.uniform() < p)
}

#[kernel]
pub(super) fn dropout(x: f32, r: Random, #[key] p: f32, #[key] scale: f32) -> f32 {
    if r.uniform() < p { 0.0 } else { x * scale }
}

/// All bits of a number.
#[kernel]
pub(super) fn bits(r: Random) -> (u32, u32) {
    (r.bits(), r.more_bits())
}

/// Kernels of whole numbers: `span` of them, from `low`.
macro_rules! integers {
    ($($name:ident $t:ident;)*) => {$(
        #[kernel]
        pub(super) fn $name(r: Random, #[key] low: $t, #[key] span: u32) -> $t {
            (low as u32 + r.below(span)) as $t
        }
    )*};
}

integers! {
    i32s i32;
    u32s u32;
    u8s u8;
    i8s i8;
}

/// Likewise, of `span` numbers, which has no sign: the upper half of its product with a number of 64 bits.
#[kernel]
pub(super) fn i64s(r: Random, #[key] low: i64, #[key] span: i64) -> i64 {
    let (x1, x0) = (i64::from(r.bits()), i64::from(r.more_bits()));
    let (s1, s0) = (upper(span), span & 0xffff_ffff);
    let (right, left) = (x0 * s1, x1 * s0);
    let carried = upper(x0 * s0) + (right & 0xffff_ffff) + (left & 0xffff_ffff);
    low + x1 * s1 + upper(right) + upper(left) + upper(carried)
}

#[kernel]
fn upper(x: i64) -> i64 {
    (x >> 32) & 0xffff_ffff
}

/// Those of further types, for CI to compile.
#[cfg(feature = "cuda")]
#[kernel]
pub(super) fn further(r: Random) -> (i64, i8) {
    (i64s(r, 0, 7), i8s(r, 0, 7))
}

/// All others, likewise.
#[cfg(feature = "cuda")]
#[kernel]
pub(super) fn all(x: f32, r: Random) -> (f32, u32, i32, u8) {
    let (first, second) = bits(r);
    let drawn = uniform(r, 8, 0.5, 0.0, 1.0, 1.0) + normal(r, 0.0, 1.0) + exponential(r, 1.0) + gumbel(r);
    let whole = first + second + u32s(r, 0, 7);
    (drawn + bernoulli(x, r) + dropout(x, r, 0.1, 2.0), whole, i32s(r, 0, 7), u8s(r, 0, 7))
}

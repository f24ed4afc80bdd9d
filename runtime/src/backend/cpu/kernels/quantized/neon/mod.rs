//! The products of `plain.rs` with the vector instructions of ARM.
//!
//! One row of activations is multiplied with eight runs of a row of weights at a time, as soon as these are in registers (`row.rs`).
//! For several, four rows of weights are taken apart first (`tiles.rs`). Both are compiled for the instructions that every such machine
//! has, and for those with dot products of bytes (`products.rs`).
//!
//! The bits are those of plain code. Integer products are exact, and floats are multiplied and added one operation at a time, never
//! fused.
//!
//! Loops stand in this folder where closures would be shorter: a function of the library that calls a closure is compiled without the
//! instructions of the closure, and neither becomes part of its caller.

use std::arch::aarch64::*;

use super::{
    Activations, LANES, RUN,
    activations::Run,
    formats::{INT4, IQ4_NL, Q2_K, Q3_K, Q4_0, Q4_1, Q4_K, Q5_0, Q5_1, Q5_K, Q6_K, Q8_0, of_format},
};
use crate::BlockFormat;

mod products;
mod row;
mod tiles;
mod unpack;

/// Places of a vector.
const FOUR: usize = LANES / 2;

/// Writes the entry of one set of instructions.
macro_rules! multiply {
    ($module:ident, $features:tt) => {
        pub(super) mod $module {
            use super::{row::$module::one_row, tiles::$module::some_rows, *};

            /// [`multiply`](super::super::multiply).
            #[target_feature(enable = $features)]
            pub(in super::super) fn multiply(
                format: BlockFormat,
                weights: &[u8],
                activations: &Activations,
                to: &mut [f32],
            ) {
                if activations.rows() == 1 {
                    of_format!(format, one_row(weights, activations, to));
                } else {
                    of_format!(format, some_rows(weights, activations, to));
                }
            }
        }
    };
}

multiply!(base, "neon");
multiply!(dotprod, "neon,dotprod");

/// The first half of a run of activations, and the second.
#[target_feature(enable = "neon")]
#[inline]
fn load_run(run: &Run) -> [int8x16_t; 2] {
    let [first, second]: &[[i8; RUN / 2]; 2] = bytemuck::cast_ref(run);
    [load_signed(first), load_signed(second)]
}

#[target_feature(enable = "neon")]
#[inline]
fn load_signed(bytes: &[i8; 16]) -> int8x16_t {
    // SAFETY: it reads 16 bytes, which are there, at any alignment.
    unsafe { vld1q_s8(bytes.as_ptr()) }
}

#[target_feature(enable = "neon")]
#[inline]
fn load_floats(floats: &[f32; FOUR]) -> float32x4_t {
    // SAFETY: it reads four floats, which are there.
    unsafe { vld1q_f32(floats.as_ptr()) }
}

#[target_feature(enable = "neon")]
#[inline]
fn load_integers(integers: &[i32; FOUR]) -> int32x4_t {
    // SAFETY: it reads four integers, which are there.
    unsafe { vld1q_s32(integers.as_ptr()) }
}

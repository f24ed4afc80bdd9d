//! Rotary position embedding.

use super::{
    super::scatter::places,
    operation::{Rope, RopeStyle},
};
use crate::backend::{
    Launch,
    cpu::{
        Access, Fault,
        kernels::{
            float::{by_float, in_blocks, input},
            real::{Real, Strided, gather},
        },
    },
};

#[cfg(test)]
mod tests;

/// [`Rope`].
pub(super) fn rope(access: &Access<'_>, launch: &Launch, rotation: Rope) {
    by_float!(launch.inputs[0].dtype, rope_as(access, launch, rotation));
}

fn rope_as<T: Real>(access: &Access<'_>, launch: &Launch, rotation: Rope) {
    let positions = &launch.inputs[1];
    rotate(
        input::<T>(access, launch, 0),
        Strided { data: access.slice::<u32>(positions), layout: positions.layout },
        access.slice_mut::<T>(&launch.outputs[0]),
        rotation,
    );
}

/// `RopeScatter`.
pub(super) fn rope_scatter(access: &Access<'_>, launch: &Launch, rotation: Rope) -> Result<(), Fault> {
    by_float!(launch.inputs[0].dtype, rope_scatter_as(access, launch, rotation))
}

fn rope_scatter_as<T: Real>(access: &Access<'_>, launch: &Launch, rotation: Rope) -> Result<(), Fault> {
    let (positions, state) = (&launch.inputs[1], &launch.outputs[0]);
    let x = input::<T>(access, launch, 0);
    let (places, fault) = places(access, launch, &launch.inputs[2], launch.inputs.get(3));
    let size: usize = state.layout.shape()[1..].iter().product();
    let mut rotated = vec![T::narrow(0.0); x.layout.count()];
    rotate(
        x,
        Strided { data: access.slice::<u32>(positions), layout: positions.layout },
        &mut rotated,
        rotation,
    );
    let state = access.slice_mut::<T>(state);
    // In order: of rows given twice the last wins.
    for (i, row) in places {
        state[row * size..][..size].copy_from_slice(&rotated[i * size..][..size]);
    }
    fault
}

/// `x: B, T, H, D`; `positions: B, T`; `out` contiguous, of the shape of `x`.
fn rotate<T: Real>(x: Strided<'_, T>, positions: Strided<'_, u32>, out: &mut [T], rotation: Rope) {
    let &[_, t_len, heads, d] = x.layout.shape() else { return };
    let Rope { theta, style, dim } = rotation;
    let half = dim / 2;
    let frequencies: Vec<f64> =
        (0..half).map(|i| f64::from(theta).powf(-2.0 * i as f64 / dim as f64)).collect();
    in_blocks(out, heads * d, dim + d, |block, to, workspace| {
        let (b, t) = (block / t_len, block % t_len);
        let position = f64::from(positions.data[positions.layout.offset_of(&[b, t])]);
        let (table, row) = workspace.split_at_mut(dim);
        let (cos, sin) = table.split_at_mut(half);
        for ((c, s), frequency) in cos.iter_mut().zip(sin.iter_mut()).zip(&frequencies) {
            // In f64: in f32 the angle of a far position is off by more than a bf16 ulp.
            let (sine, cosine) = (position * frequency).sin_cos();
            (*c, *s) = (cosine as f32, sine as f32);
        }
        for (h, to) in to.chunks_exact_mut(d).enumerate() {
            gather(x.data, x.layout.offset_of(&[b, t, h]), x.layout.strides()[3], row);
            for (i, (&c, &s)) in cos.iter().zip(sin.iter()).enumerate() {
                let (first, second) = match style {
                    RopeStyle::Interleaved => (2 * i, 2 * i + 1),
                    RopeStyle::HalfSplit => (i, i + half),
                };
                let (a, b) = (row[first], row[second]);
                row[first] = a * c - b * s;
                row[second] = a * s + b * c;
            }
            T::store(row, to);
        }
    });
}

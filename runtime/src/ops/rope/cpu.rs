//! Rotary position embedding.

use super::{
    super::scatter::places,
    operation::{Rope, RopeStyle},
};
use crate::backend::{
    Launch, View,
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
    let mut counts = launch.inputs[2..].iter();
    let real = rotation.padded.map(|given| if given { counts.next() } else { None });
    let positions = positions(access, launch, real, None);
    rotate(input::<T>(access, launch, 0), positions, access.slice_mut::<T>(&launch.outputs[0]), rotation);
}

/// Positions `S, B, T`, of which so many along `B` and `T` are real, or only those of the rows that are written.
struct Positions<'a> {
    all: Strided<'a, u32>,
    real: [usize; 2],
    written: Option<&'a [(usize, usize)]>,
}

fn positions<'a>(
    access: &Access<'a>,
    launch: &Launch,
    counts: [Option<&View>; 2],
    written: Option<&'a [(usize, usize)]>,
) -> Positions<'a> {
    let view = &launch.inputs[1];
    let shape = view.layout.shape();
    let real = |count: Option<&View>, all: usize| count.map_or(all, |view| access.count(view).min(all));
    Positions {
        all: Strided { data: access.slice::<u32>(view), layout: view.layout },
        real: [real(counts[0], shape[1]), real(counts[1], shape[2])],
        written,
    }
}

impl Positions<'_> {
    fn at(&self, section: usize, b: usize, t: usize) -> u32 {
        self.all.data[self.all.layout.offset_of(&[section, b, t])]
    }

    /// Returns one more than the largest position that counts.
    fn length(&self) -> u64 {
        let sections = 0..self.all.layout.shape()[0];
        if let Some(written) = self.written {
            let each = sections.flat_map(|section| written.iter().map(move |(t, _)| (section, *t)));
            return each.map(|(section, t)| u64::from(self.at(section, 0, t)) + 1).max().unwrap_or(0);
        }
        let [batches, times] = self.real;
        let rows = |section| (0..batches).flat_map(move |b| (0..times).map(move |t| (section, b, t)));
        let each = sections.flat_map(rows);
        each.map(|(section, b, t)| u64::from(self.at(section, b, t)) + 1).max().unwrap_or(0)
    }
}

/// `RopeScatter`.
pub(super) fn rope_scatter(access: &Access<'_>, launch: &Launch, rotation: Rope) -> Result<(), Fault> {
    by_float!(launch.inputs[0].dtype, rope_scatter_as(access, launch, rotation))
}

fn rope_scatter_as<T: Real>(access: &Access<'_>, launch: &Launch, rotation: Rope) -> Result<(), Fault> {
    let (count, state) = (launch.inputs.get(3), &launch.outputs[0]);
    let x = input::<T>(access, launch, 0);
    let (places, fault) = places(access, launch, &launch.inputs[2], count);
    let size: usize = state.layout.shape()[1..].iter().product();
    let mut rotated = vec![T::narrow(0.0); x.layout.count()];
    rotate(x, positions(access, launch, [None, count], Some(&places)), &mut rotated, rotation);
    let state = access.slice_mut::<T>(state);
    // In order: of rows given twice the last wins.
    for (i, row) in places {
        state[row * size..][..size].copy_from_slice(&rotated[i * size..][..size]);
    }
    fault
}

/// `x: B, T, H, D`; `out` contiguous, of the shape of `x`.
fn rotate<T: Real>(x: Strided<'_, T>, positions: Positions<'_>, out: &mut [T], rotation: Rope) {
    let &[_, t_len, heads, d] = x.layout.shape() else { return };
    let Rope { style, dim, frequencies, sections, .. } = rotation;
    let half = dim / 2;
    let length = if frequencies.is_dynamic() { positions.length() } else { 0 };
    let (base, divisors) = (frequencies.base(length), frequencies.divisors(length));
    let divisor = |i: usize| divisors.map_or(1.0, |all| f64::from(all[i]));
    // Of each pair: its frequency, and the section whose position turns it.
    let pairs: Vec<(f64, usize)> =
        (0..half).map(|i| (frequencies.of(base, dim, i) / divisor(i), sections.of(i))).collect();
    let positions = &positions;
    in_blocks(out, heads * d, dim + d, |block, to, workspace| {
        let (b, t) = (block / t_len, block % t_len);
        let (table, row) = workspace.split_at_mut(dim);
        let (cos, sin) = table.split_at_mut(half);
        for ((c, s), &(frequency, section)) in cos.iter_mut().zip(sin.iter_mut()).zip(&pairs) {
            // In f64: in f32 the angle of a far position is off by more than a bf16 ulp.
            let (sine, cosine) = (f64::from(positions.at(section, b, t)) * frequency).sin_cos();
            (*c, *s) = ((cosine * frequencies.magnitude) as f32, (sine * frequencies.magnitude) as f32);
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

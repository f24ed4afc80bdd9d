//! Blocks of 256 elements, in groups of 16 or 32 whose scales are integers times one scale of the block. `../k.rs` says where the
//! bits are.

use half::f16;

use super::{
    MAX_HALF, half_of,
    search::{self, Grid},
};

/// Elements of a block.
const BLOCK: usize = 256;
/// Groups of a block, at most.
const GROUPS: usize = 16;
/// The number of rounds in which scales and integers are improved by turns.
const ROUNDS: usize = 3;

/// A block whose elements are `d * scale * q`.
struct Scaled {
    d: f16,
    scales: [i8; GROUPS],
    /// From 0 on: `q` plus the limit.
    integers: [u8; BLOCK],
}

/// A block whose elements are `d * scale * q - m * min`.
struct Offset {
    d: f16,
    m: f16,
    scales: [u8; GROUPS],
    minima: [u8; GROUPS],
    integers: [u8; BLOCK],
}

/// Returns whether every value is one for which no sum of a search overflows. Larger ones have no scale in half precision.
fn searchable(values: &[f32]) -> bool {
    // The largest integers of scales and elements are 128 and 63.
    values.iter().all(|v| v.abs() <= MAX_HALF * 128.0 * 64.0)
}

/// Searches for scales from `-scale_limit` to `scale_limit - 1`, of 16 elements each, and integers from `-limit` to `limit - 1`.
fn scaled(values: &[f32], limit: f32, scale_limit: f32) -> Option<Scaled> {
    if !searchable(values) {
        return None;
    }
    let groups = || values.chunks_exact(BLOCK / GROUPS);
    let [range, scales] = [limit, scale_limit].map(|limit| [-limit, limit - 1.0]);
    let grid = |s: f32| Grid::new(s, 0.0, range);
    let mut wanted = [0.0; GROUPS];
    wanted.iter_mut().zip(groups()).for_each(|(to, group)| *to = search::scale(group, range));
    let mut d = half_of(search::largest(&wanted) / -scale_limit)?;
    let mut best = (f32::INFINITY, d, [0.0; GROUPS]);
    for _ in 0..ROUNDS {
        let unit = d.to_f32();
        let mut chosen = wanted.map(|scale| Grid::new(unit, 0.0, scales).integer(scale));
        let mut error = 0.0;
        let mut sums = [0.0; 2];
        for (chosen, group) in chosen.iter_mut().zip(groups()) {
            let near = near(*chosen, scales).map(|scale| (grid(unit * scale).error(group), scale));
            let (least, scale) = least(near);
            (error, *chosen) = (error + least, scale);
            let more = search::sums(group, |v| {
                let q = scale * grid(unit * scale).integer(v);
                [v * q, q * q]
            });
            sums = [sums[0] + more[0], sums[1] + more[1]];
        }
        if error < best.0 {
            best = (error, d, chosen);
        } else {
            break;
        }
        let [product, square] = sums;
        if square > 0.0 {
            d = half_of(product / square)?;
        }
    }
    let (_, d, chosen) = best;
    let mut integers = [0; BLOCK];
    for ((to, group), scale) in integers.chunks_exact_mut(BLOCK / GROUPS).zip(groups()).zip(chosen) {
        let grid = grid(d.to_f32() * scale);
        to.iter_mut().zip(group).for_each(|(to, &v)| *to = (grid.integer(v) + limit) as u8);
    }
    Some(Scaled { d, scales: chosen.map(|scale| scale as i8), integers })
}

/// Searches for scales and minima from 0 to `scale_limit`, of `width` elements each, and integers from 0 to `limit`.
fn offset(values: &[f32], width: usize, limit: f32, scale_limit: f32) -> Option<Offset> {
    if !searchable(values) {
        return None;
    }
    let groups = || values.chunks_exact(width);
    let scales = [0.0, scale_limit];
    let grid = |s: f32, m: f32| Grid::new(s, m, [0.0, limit]);
    let mut wanted = [(0.0, 0.0); GROUPS];
    wanted.iter_mut().zip(groups()).for_each(|(to, group)| *to = search::scale_and_minimum(group, limit));
    let most = |of: fn(&(f32, f32)) -> f32| wanted.iter().map(of).fold(0.0, f32::max);
    let mut d = half_of(most(|wanted| wanted.0) / scale_limit)?;
    let mut m = half_of(most(|wanted| wanted.1) / scale_limit)?;
    let mut best = (f32::INFINITY, d, m, [(0.0, 0.0); GROUPS]);
    for _ in 0..ROUNDS {
        let (unit, below) = (d.to_f32(), m.to_f32());
        let mut chosen = wanted.map(|(s, min)| {
            (Grid::new(unit, 0.0, scales).integer(s), Grid::new(below, 0.0, scales).integer(min))
        });
        let mut error = 0.0;
        let mut sums = Normal::default();
        for (chosen, group) in chosen.iter_mut().zip(groups()) {
            let off = |scale, min| grid(unit * scale, below * min).error(group);
            let best = near(chosen.0, scales).map(|scale| {
                let (least, min) = least(near(chosen.1, scales).map(|min| (off(scale, min), min)));
                (least, (scale, min))
            });
            let (least, (scale, min)) = least(best);
            (error, *chosen) = (error + least, (scale, min));
            let grid = grid(unit * scale, below * min);
            for &v in group {
                sums.add(v, scale * grid.integer(v), min);
            }
        }
        if error < best.0 {
            best = (error, d, m, chosen);
        } else {
            break;
        }
        if let Some((unit, below)) = sums.solve() {
            (d, m) = (half_of(unit)?, half_of(below)?);
        }
    }
    let (_, d, m, chosen) = best;
    let mut integers = [0; BLOCK];
    for ((to, group), (scale, min)) in integers.chunks_exact_mut(width).zip(groups()).zip(chosen) {
        let grid = grid(d.to_f32() * scale, m.to_f32() * min);
        to.iter_mut().zip(group).for_each(|(to, &v)| *to = grid.integer(v) as u8);
    }
    Some(Offset {
        d,
        m,
        scales: chosen.map(|(scale, _)| scale as u8),
        minima: chosen.map(|(_, min)| min as u8),
        integers,
    })
}

/// An integer and its neighbours, within a range.
fn near(at: f32, range: [f32; 2]) -> [f32; 3] {
    [at, at - 1.0, at + 1.0].map(|at| at.clamp(range[0], range[1]))
}

/// The pair with the smallest first part; of equal ones the first, so that nothing is changed for nothing.
fn least<T: Copy, const N: usize>(pairs: [(f32, T); N]) -> (f32, T) {
    pairs.into_iter().fold(pairs[0], |best, pair| if pair.0 < best.0 { pair } else { best })
}

/// The normal equations of `v = d * a - m * b`.
#[derive(Default)]
struct Normal {
    aa: f64,
    ab: f64,
    bb: f64,
    va: f64,
    vb: f64,
}

impl Normal {
    fn add(&mut self, v: f32, a: f32, b: f32) {
        let [v, a, b] = [v, a, b].map(f64::from);
        self.aa += a * a;
        self.ab += a * b;
        self.bb += b * b;
        self.va += v * a;
        self.vb += v * b;
    }

    /// `d` and `m`, neither negative, if there is one solution.
    fn solve(&self) -> Option<(f32, f32)> {
        let Self { aa, ab, bb, va, vb } = *self;
        if bb == 0.0 {
            return (aa > 0.0 && va >= 0.0).then(|| ((va / aa) as f32, 0.0));
        }
        let determinant = aa * bb - ab * ab;
        // Of whole numbers: if it is not 0, it is at least 1.
        if determinant < 0.5 {
            return None;
        }
        let (d, m) = ((va * bb - vb * ab) / determinant, (va * ab - vb * aa) / determinant);
        (d >= 0.0 && m >= 0.0).then_some((d as f32, m as f32))
    }
}

pub(super) fn q2(values: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let block = offset(values, 16, 3.0, 15.0)?;
    out.extend(block.scales.iter().zip(&block.minima).map(|(scale, min)| scale | min << 4));
    push_two_bits(&block.integers, out);
    out.extend_from_slice(&block.d.to_le_bytes());
    out.extend_from_slice(&block.m.to_le_bytes());
    Some(())
}

pub(super) fn q3(values: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let block = scaled(values, 4.0, 32.0)?;
    let mut third = [0; 32];
    for (i, q) in block.integers.iter().enumerate() {
        third[i % 32] |= (q >> 2) << (i / 32);
    }
    out.extend(third);
    push_two_bits(&block.integers, out);
    let mut packed = [0; 12];
    for (group, scale) in block.scales.iter().enumerate() {
        let scale = (scale + 32) as u8;
        packed[group % 8] |= (scale & 0xF) << (group / 8 * 4);
        packed[8 + group % 4] |= (scale >> 4) << (group / 4 * 2);
    }
    out.extend(packed);
    out.extend_from_slice(&block.d.to_le_bytes());
    Some(())
}

pub(super) fn q4(values: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let block = offset(values, 32, 15.0, 63.0)?;
    push_head(&block, out);
    push_four_bits(&block.integers, out);
    Some(())
}

pub(super) fn q5(values: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let block = offset(values, 32, 31.0, 63.0)?;
    push_head(&block, out);
    let mut fifth = [0; 32];
    for (i, q) in block.integers.iter().enumerate() {
        fifth[i % 32] |= (q >> 4) << (i / 32);
    }
    out.extend(fifth);
    push_four_bits(&block.integers, out);
    Some(())
}

pub(super) fn q6(values: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let block = scaled(values, 32.0, 128.0)?;
    let (mut low, mut high) = ([0; 128], [0; 64]);
    for (i, q) in block.integers.iter().enumerate() {
        // Each half of the block has four runs of 32 that share bytes.
        let (half, run, i) = (i / 128, i % 128 / 32, i % 32);
        low[half * 64 + run % 2 * 32 + i] |= (q & 0xF) << (run / 2 * 4);
        high[half * 32 + i] |= (q >> 4) << (run * 2);
    }
    out.extend(low);
    out.extend(high);
    out.extend(block.scales.map(|scale| scale as u8));
    out.extend_from_slice(&block.d.to_le_bytes());
    Some(())
}

/// Writes the low two bits of each element: four runs of 32 of a half share 32 bytes.
fn push_two_bits(integers: &[u8; BLOCK], out: &mut Vec<u8>) {
    let mut packed = [0; 64];
    for (i, q) in integers.iter().enumerate() {
        packed[i / 128 * 32 + i % 32] |= (q & 3) << (i % 128 / 32 * 2);
    }
    out.extend(packed);
}

/// Writes the low four bits of each element: two runs of 32 share 32 bytes.
fn push_four_bits(integers: &[u8; BLOCK], out: &mut Vec<u8>) {
    let mut packed = [0; 128];
    for (i, q) in integers.iter().enumerate() {
        packed[i / 64 * 32 + i % 32] |= (q & 0xF) << (i / 32 % 2 * 4);
    }
    out.extend(packed);
}

/// Writes `d`, `m`, and scales and minima of eight runs in 12 bytes.
fn push_head(block: &Offset, out: &mut Vec<u8>) {
    out.extend_from_slice(&block.d.to_le_bytes());
    out.extend_from_slice(&block.m.to_le_bytes());
    let mut packed = [0; 12];
    for (run, (scale, min)) in block.scales.iter().zip(&block.minima).take(8).enumerate() {
        if run < 4 {
            packed[run] |= scale;
            packed[run + 4] |= min;
        } else {
            packed[run + 4] = scale & 0xF | (min & 0xF) << 4;
            packed[run - 4] |= scale >> 4 << 6;
            packed[run] |= min >> 4 << 6;
        }
    }
    out.extend(packed);
}

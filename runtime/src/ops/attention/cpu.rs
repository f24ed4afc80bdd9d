//! Attention with grouped heads.
//!
//! A task takes the query heads of one key head, a few queries, and a range of keys; it processes the keys in
//! tiles with an online softmax, so that scores never leave the cache. Decoding has too few heads to occupy
//! the cores: there, long keys are split into ranges, merged in order at the end. All splits depend only on
//! shapes, so the result does not depend on threads or addresses.
//!
//! Every mask shows a query the first so many keys, of which a window leaves the last ones. Keys it does not see never
//! touch its result: they may hold anything, NaN included.

use std::ops::Range;

use rayon::prelude::*;

use self::scores::Scores;
use super::operation::Attention;
use crate::{
    backend::{
        Launch, View,
        cpu::{
            Access,
            kernels::{
                float::{by_float, input, maximum, sum},
                gemm::{Mat, Mode, Sizes, multiply},
                real::{Real, Strided, gather},
            },
        },
    },
    kernel::exp::exp_of_negative,
};

mod scores;
#[cfg(test)]
mod tests;

/// Rows (queries times heads of a group) that one task takes.
const ROWS: usize = 64;
/// Keys of a tile.
const TILE: usize = 128;
/// Keys of a stretch, where there is one block of queries only.
const STRETCH: usize = 1024;
/// Results of one product that `gemm` computes by plain dot products, without packing.
const DOTS: usize = 256;
/// Multiplications below which nothing is spread over threads.
const SERIAL: usize = 1 << 17;

/// [`Attention`].
pub(super) fn attention(access: &Access<'_>, launch: &Launch, op: Attention) {
    by_float!(launch.inputs[0].dtype, attention_as(access, launch, op));
}

fn strided<'a, T: Real>(access: &Access<'a>, view: &View) -> Strided<'a, T> {
    Strided { data: access.slice::<T>(view), layout: view.layout }
}

fn attention_as<T: Real>(access: &Access<'_>, launch: &Launch, op: Attention) {
    let (q, k, v) = (input::<T>(access, launch, 0), input(access, launch, 1), input(access, launch, 2));
    let extra = op.extra(&launch.inputs);
    let scores = Scores {
        kind: op.mask,
        scale: op.scale,
        variant: op.variant,
        limits: extra.limits.map(|view| Strided { data: access.slice::<u32>(view), layout: view.layout }),
        bias: extra.bias.map(|view| strided(access, view)),
        slopes: extra.slopes.map(|view| strided(access, view)),
        sinks: extra.sinks.map(|view| strided(access, view)),
        real: extra.real.map_or(usize::MAX, |view| access.count(view)),
        sizes: [q.layout.shape()[1], v.layout.shape()[1], q.layout.shape()[2]],
    };
    attend(q, k, v, &scores, access.slice_mut::<T>(&launch.outputs[0]));
}

/// One piece of work.
struct Task {
    b: usize,
    /// Key head.
    head: usize,
    /// First query and their number.
    first: usize,
    queries: usize,
    keys: Range<usize>,
}

/// A partial softmax of some rows: row `r` is query `r / group`, head `r % group` of the group.
struct Partial {
    /// Largest score so far, `-inf` before the first.
    max: Vec<f32>,
    /// `Σ e^(score - max)`
    total: Vec<f32>,
    /// `Σ e^(score - max) * v`
    values: Vec<f32>,
}

/// `q: B, T, Hq, D; k: B, S, Hkv, D; v: B, S, Hkv, Dv`; `out: B, T, Hq, Dv`, contiguous.
fn attend<T: Real>(
    q: Strided<'_, T>,
    k: Strided<'_, T>,
    v: Strided<'_, T>,
    rules: &Scores<'_, T>,
    out: &mut [T],
) {
    let (&[batches, t_len, heads, _], &[_, s_len, key_heads, dv]) = (q.layout.shape(), v.layout.shape())
    else {
        return;
    };
    if out.is_empty() {
        return;
    }
    let group = heads / key_heads;
    let block = (ROWS / group).clamp(1, t_len);
    let blocks = t_len.div_ceil(block);
    let stretch = if blocks == 1 { STRETCH } else { s_len.max(1) };
    let stretches = s_len.div_ceil(stretch).max(1);
    let task = |i: usize| {
        let (i, part) = (i / stretches, i % stretches);
        let (i, head) = (i / key_heads, i % key_heads);
        let (b, first) = (i / blocks, i % blocks * block);
        let keys = part * stretch..((part + 1) * stretch).min(s_len);
        Task { b, head, first, queries: block.min(t_len - first), keys }
    };
    let run = |i: usize| run_task(q, k, v, rules, group, task(i));
    let tasks = batches * blocks * key_heads * stretches;
    let work = batches * t_len * heads * s_len * dv;
    let partials: Vec<Partial> = if work < SERIAL {
        (0..tasks).map(run).collect()
    } else {
        (0..tasks).into_par_iter().map(run).collect()
    };

    // Row (b, t) of the output holds all heads; block (b, t / block) of the tasks has them.
    let write = |(row, out): (usize, &mut [T])| {
        let (b, t) = (row / t_len, row % t_len);
        let mut mixed = vec![0.0; dv];
        for (h, out) in out.chunks_exact_mut(dv).enumerate() {
            let first = ((b * blocks + t / block) * key_heads + h / group) * stretches;
            let row = t % block * group + h % group;
            merge(&partials[first..first + stretches], row, rules.sink(h), &mut mixed);
            T::store(&mixed, out);
        }
    };
    if work < SERIAL {
        out.chunks_exact_mut(heads * dv).enumerate().for_each(write);
    } else {
        out.par_chunks_exact_mut(heads * dv).enumerate().with_min_len(8).for_each(write);
    }
}

/// `e^(score - max)`, where `max` may be `-inf`: then `score` is `-inf` too, and counts as nothing,
/// or NaN, and spreads.
fn weight(score: f32, max: f32) -> f32 {
    if score == f32::NEG_INFINITY { 0.0 } else { exp_of_negative(score - max) }
}

/// Joins the stretches of one row, in order, and divides by the total, to which a sink contributes.
fn merge(parts: &[Partial], row: usize, sink: Option<f32>, out: &mut [f32]) {
    let dv = out.len();
    let largest = parts.iter().map(|p| p.max[row]).chain(sink);
    let max = largest.fold(f32::NEG_INFINITY, |a, b| if b > a { b } else { a });
    out.fill(0.0);
    let mut total = sink.map_or(0.0, |sink| weight(sink, max));
    for part in parts {
        // A range with only NaN scores has no maximum, but its total and values are NaN.
        let factor = if part.max[row] == max { 1.0 } else { weight(part.max[row], max) };
        total += part.total[row] * factor;
        for (out, v) in out.iter_mut().zip(&part.values[row * dv..(row + 1) * dv]) {
            *out += v * factor;
        }
    }
    if total != 0.0 {
        out.iter_mut().for_each(|v| *v /= total);
    }
}

/// Some rows of head `head` of a `B, S, H, D` tensor as an f32 matrix, copied if needed.
fn tile<'a, T: Real>(
    x: &Strided<'a, T>,
    b: usize,
    head: usize,
    rows: Range<usize>,
    workspace: &'a mut Vec<f32>,
) -> Mat<'a> {
    let (d, strides) = (x.layout.shape()[3], x.layout.strides());
    let start = x.layout.offset_of(&[b, rows.start, head]);
    if let Some(data) = T::as_f32(x.data)
        && strides[3] == 1
        && d > 0
    {
        return Mat { data: &data[start..], rs: strides[1], cs: 1 };
    }
    workspace.resize(rows.len() * d, 0.0);
    if d > 0 {
        for (i, row) in workspace.chunks_exact_mut(d).enumerate() {
            gather(x.data, start + i * strides[1], strides[3], row);
        }
    }
    Mat { data: workspace, rs: d, cs: 1 }
}

fn run_task<T: Real>(
    q: Strided<'_, T>,
    k: Strided<'_, T>,
    v: Strided<'_, T>,
    rules: &Scores<'_, T>,
    group: usize,
    task: Task,
) -> Partial {
    let (d, dv) = (q.layout.shape()[3], v.layout.shape()[3]);
    let rows = task.queries * group;
    let mut partial =
        Partial { max: vec![f32::NEG_INFINITY; rows], total: vec![0.0; rows], values: vec![0.0; rows * dv] };
    let visible: Vec<Range<usize>> = (task.first..task.first + task.queries)
        .map(|t| {
            let keys = rules.visible(task.b, t);
            keys.start.max(task.keys.start)..keys.end.min(task.keys.end)
        })
        .collect();
    let seen = || visible.iter().filter(|keys| !keys.is_empty());
    let (Some(start), Some(end)) = (seen().map(|keys| keys.start).min(), seen().map(|keys| keys.end).max())
    else {
        return partial;
    };
    // Tiles begin at the same keys for all queries.
    let start = start - (start - task.keys.start) % TILE;

    let queries = queries(&q, &task, group);
    let queries = Mat { data: &queries, rs: d, cs: 1 };

    let mut scores = vec![0.0; rows * TILE];
    let (mut key_scratch, mut value_scratch, mut seen) = (Vec::new(), Vec::new(), Vec::<Range<usize>>::new());
    let product = Mode { add: false, scale: rules.scale, threads: false };
    for from in (start..end).step_by(TILE) {
        let n = TILE.min(end - from);
        let keys = tile(&k, task.b, task.head, from..from + n, &mut key_scratch);
        let columns = if rows <= 16 { DOTS / rows } else { TILE };
        for first in (0..n).step_by(columns) {
            let some = Mat { data: &keys.data[first * keys.rs..], rs: 1, cs: keys.rs };
            let width = columns.min(n - first);
            let sizes = Sizes { m: rows, k: d, n: width };
            multiply(sizes, &mut scores[first..], TILE, queries, some, product);
        }

        seen.clear();
        let within = |key: usize| key.saturating_sub(from).min(n);
        seen.extend(visible.iter().map(|keys| within(keys.start)..within(keys.end).max(within(keys.start))));
        for (r, scores) in scores.chunks_exact_mut(TILE).enumerate() {
            let keys = seen[r / group].clone();
            let scores = &mut scores[keys.clone()];
            let query = (task.b, task.first + r / group, task.head * group + r % group);
            rules.adjust(scores, query, from + keys.start);
            update(&mut partial, r, scores);
        }
        let values = tile(&v, task.b, task.head, from..from + n, &mut value_scratch);
        mix(&mut partial.values, dv, &scores, values, &seen, group, rules.variant.window.is_some());
    }
    partial
}

/// The queries of a task as rows of one matrix: `group` heads for each.
fn queries<T: Real>(q: &Strided<'_, T>, task: &Task, group: usize) -> Vec<f32> {
    let d = q.layout.shape()[3];
    let rows = task.queries * group;
    let mut queries = vec![0.0; rows * d];
    for r in 0..if d > 0 { rows } else { 0 } {
        let index = [task.b, task.first + r / group, task.head * group + r % group];
        gather(q.data, q.layout.offset_of(&index), q.layout.strides()[3], &mut queries[r * d..(r + 1) * d]);
    }
    queries
}

/// Adds the values of a tile, `dv` each, to the rows of `out`, weighted by the scores of the row. Of the tile, each query
/// sees a range of values.
///
/// Without a window, values that all rows attend to are added for all rows together; the others row by row, since weight
/// 0 does not erase a NaN.
fn mix(
    out: &mut [f32],
    dv: usize,
    scores: &[f32],
    values: Mat<'_>,
    seen: &[Range<usize>],
    group: usize,
    has_window: bool,
) {
    let mode = Mode { add: true, scale: 1.0, threads: false };
    // With a window, what the rows have in common would depend on rows of the padding.
    let common = if has_window { 0 } else { seen.iter().map(|seen| seen.end).min().unwrap_or(0) };
    let weights = |r: usize, j: usize| Mat { data: &scores[r * TILE + j..], rs: TILE, cs: 1 };
    if common > 0 {
        let sizes = Sizes { m: seen.len() * group, k: common, n: dv };
        multiply(sizes, out, dv, weights(0, 0), values, mode);
    }
    for (t, seen) in seen.iter().enumerate() {
        let first = seen.start.max(common);
        let rest = seen.end.saturating_sub(first);
        if rest > 0 {
            let to = &mut out[t * group * dv..(t + 1) * group * dv];
            let values = Mat { data: &values.data[first * values.rs..], ..values };
            let sizes = Sizes { m: group, k: rest, n: dv };
            multiply(sizes, to, dv, weights(t * group, first), values, mode);
        }
    }
}

/// Takes the scores of a tile into the softmax of a row and makes them weights.
fn update(partial: &mut Partial, row: usize, scores: &mut [f32]) {
    if scores.is_empty() {
        return;
    }
    let (before, found) = (partial.max[row], maximum(scores));
    let max = if found > before { found } else { before };
    if max > before {
        let factor = weight(before, max);
        let dv = partial.values.len() / partial.max.len();
        partial.total[row] *= factor;
        partial.values[row * dv..(row + 1) * dv].iter_mut().for_each(|v| *v *= factor);
        partial.max[row] = max;
    }
    if max == f32::NEG_INFINITY {
        scores.iter_mut().for_each(|s| *s = weight(*s, max));
    } else {
        // `exp` returns 0 for -inf, so there is no need to check.
        scores.iter_mut().for_each(|s| *s = exp_of_negative(*s - max));
    }
    partial.total[row] += sum(scores, |v| v);
}

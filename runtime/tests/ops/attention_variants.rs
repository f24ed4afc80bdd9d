//! Attention with a bias, ALiBi, a window, a soft cap and sinks, in all combinations, against the definition in f64.

use std::cell::Cell;

use graphable::{
    Float, Step, Tensor, bf16, f16,
    ops::{self, AttentionConfig, AttentionMask},
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    harness::{assert_close, cases, for_types, in_step, indices, input, is_argument, is_shape, part_of},
    reference::Array,
};

/// What the scores are changed by.
#[derive(Default)]
struct Changes {
    /// Broadcasts to `[B, Hq, T, S]`.
    bias: Option<Array>,
    slopes: Option<Vec<f64>>,
    window: Option<(i64, i64)>,
    soft_cap: Option<f64>,
    sinks: Option<Array>,
}

/// `get_slopes` of the authors of ALiBi.
fn get_slopes(n: usize) -> Vec<f64> {
    let log = (n as f64).log2();
    if log.fract() == 0.0 {
        let start = 2f64.powf(-(2f64.powf(-(log - 3.0))));
        return (0..n).map(|i| start * start.powi(i as i32)).collect();
    }
    let closest = 1 << (log.floor() as u32);
    let more = get_slopes(2 * closest).into_iter().step_by(2).take(n - closest);
    get_slopes(closest).into_iter().chain(more).collect()
}

/// The mask and the position of query `(b, i)`: by the mask alone, it sees key `j` if `sees(b, i, j)`.
struct Mask<'a> {
    sees: &'a dyn Fn(usize, usize, usize) -> bool,
    position: &'a dyn Fn(usize, usize) -> i64,
}

/// `[B, T, Hq, Dv]`
fn attend([q, k, v]: [&Array; 3], scale: f64, mask: &Mask<'_>, changes: &Changes) -> Array {
    let (b, t, hq) = (q.shape[0], q.shape[1], q.shape[2]);
    let (s, hk, dv) = (k.shape[1], k.shape[2], v.shape[3]);
    let biased =
        |index: [usize; 4]| changes.bias.as_ref().map_or(0.0, |bias| bias.at(&index[4 - bias.shape.len()..]));
    let score = |b: usize, i: usize, h: usize, j: usize| {
        let (q, k) = (q.row(&[b, i, h]), k.row(&[b, j, h / (hq / hk)]));
        let dot: f64 = q.iter().zip(k).map(|(q, k)| q * k).sum();
        let scaled = scale * dot;
        let capped = changes.soft_cap.map_or(scaled, |cap| cap * (scaled / cap).tanh());
        let away = (j as i64 - (mask.position)(b, i)).abs() as f64;
        capped + biased([b, h, i, j]) - changes.slopes.as_ref().map_or(0.0, |slopes| slopes[h] * away)
    };
    let sees = |b: usize, i: usize, j: usize| {
        let away = j as i64 - (mask.position)(b, i);
        (mask.sees)(b, i, j) && changes.window.is_none_or(|(left, right)| -left <= away && away <= right)
    };
    let mut out = Array::from_fn(&[b, t, hq, dv], |_| 0.0);
    for (row, out) in out.data.chunks_exact_mut(dv).enumerate() {
        let (b, i, h) = (row / hq / t, row / hq % t, row % hq);
        let seen: Vec<(usize, f64)> =
            (0..s).filter(|&j| sees(b, i, j)).map(|j| (j, score(b, i, h, j))).collect();
        let sink = changes.sinks.as_ref().map(|sinks| sinks.at(&[h]));
        let most = seen.iter().map(|(_, score)| *score).chain(sink).fold(f64::NEG_INFINITY, f64::max);
        if most == f64::NEG_INFINITY {
            continue;
        }
        let total: f64 =
            seen.iter().map(|(_, score)| *score).chain(sink).map(|score| (score - most).exp()).sum();
        for (j, x) in seen {
            let (weight, v) = ((x - most).exp() / total, v.row(&[b, j, h / (hq / hk)]));
            out.iter_mut().zip(v).for_each(|(out, v)| *out += weight * v);
        }
    }
    out
}

/// Draws changes for scores of a shape, with the tensors that they are given by.
struct Drawn<'s, T> {
    changes: Changes,
    bias: Option<Tensor<'s, T>>,
    slopes: Option<Tensor<'s, f32>>,
    sinks: Option<Tensor<'s, T>>,
}

impl<'s, T: Float> Drawn<'s, T> {
    /// Some of the changes, or all of them; the last dimensions of the scores can have a bias.
    fn new(step: &Step<'s>, rng: &mut StdRng, scores: &[usize], all: bool) -> Self {
        let heads = scores[scores.len() - 3];
        let mut drawn = Self { changes: Changes::default(), bias: None, slopes: None, sinks: None };
        let wants = |rng: &mut StdRng| all || rng.random_bool(0.4);
        if wants(rng) {
            let shape = part_of(rng, scores);
            let (bias, host) = match shape.split_last() {
                Some((&n, rest)) if n > 1 && rng.random_bool(0.4) => {
                    // Part of a wider one: rows may begin at odd places.
                    let width = n + rng.random_range(2..4);
                    let (wide, host) = input::<T>(step, rng, &[rest, &[width]].concat(), (-2.0, 2.0));
                    let first = rng.random_range(0..3);
                    let host = Array::from_fn(&shape, |at| {
                        host.at(&[&at[..rest.len()], &[at[rest.len()] + first]].concat())
                    });
                    (ops::narrow(&wide, rest.len(), first, n).unwrap(), host)
                }
                _ => input::<T>(step, rng, &shape, (-2.0, 2.0)),
            };
            (drawn.bias, drawn.changes.bias) = (Some(bias), Some(host));
        }
        if wants(rng) {
            if rng.random_bool(0.5) {
                drawn.changes.slopes = Some(get_slopes(heads));
            } else {
                let (slopes, host) = input::<f32>(step, rng, &[heads], (-0.5, 0.5));
                (drawn.slopes, drawn.changes.slopes) = (Some(slopes), Some(host.data));
            }
        }
        if wants(rng) {
            let most = rng.random_range(1..scores[scores.len() - 1] as i64 + 3);
            drawn.changes.window = Some((rng.random_range(0..most), rng.random_range(0..most)));
        }
        if wants(rng) {
            drawn.changes.soft_cap = Some(f64::from(rng.random_range(0.5f32..8.0)));
        }
        if wants(rng) {
            let (sinks, host) = input::<T>(step, rng, &[heads], (-3.0, 3.0));
            (drawn.sinks, drawn.changes.sinks) = (Some(sinks), Some(host));
        }
        drawn
    }

    fn config<'a>(&'a self, mask: AttentionMask<'a, 's>) -> AttentionConfig<'a, 's, T> {
        let mut config = AttentionConfig::new(mask);
        if let Some(bias) = &self.bias {
            config = config.bias(bias);
        }
        if self.changes.slopes.is_some() {
            config = match &self.slopes {
                Some(slopes) => config.alibi_slopes(slopes),
                None => config.alibi(),
            };
        }
        if let Some((left, right)) = self.changes.window {
            config = config.window(left as usize, right as usize);
        }
        if let Some(cap) = self.changes.soft_cap {
            config = config.soft_cap(cap as f32);
        }
        if let Some(sinks) = &self.sinks {
            config = config.sinks(sinks);
        }
        config
    }
}

/// Sizes of one attention; without a batch, `b` is 1.
#[derive(Clone, Copy)]
struct Sizes {
    b: Option<usize>,
    t: usize,
    s: usize,
    heads: usize,
    group: usize,
    d: usize,
    dv: usize,
}

/// Every mask with drawn changes.
fn check<'s, T: Float>(step: &Step<'s>, rng: &mut StdRng, z: Sizes, all: bool) {
    let Sizes { t, s, heads: hk, group, d, dv, .. } = z;
    let (b, lead) = (z.b.unwrap_or(1), usize::from(z.b.is_none()));
    let dims = |all: [usize; 4]| all[lead..].to_vec();
    let (q, hq) = input::<T>(step, rng, &dims([b, t, hk * group, d]), (-1.5, 1.5));
    let (k, hk_) = input::<T>(step, rng, &dims([b, s, hk, d]), (-1.5, 1.5));
    let (v, hv) = input::<T>(step, rng, &dims([b, s, hk, dv]), (-1.5, 1.5));
    let lifted =
        [hq.reshaped(&[b, t, hk * group, d]), hk_.reshaped(&[b, s, hk, d]), hv.reshaped(&[b, s, hk, dv])];
    let scale = rng.random_range(0.2f32..1.2) / (d as f32).sqrt();
    let (lengths, hl) = indices(step, rng, &[b], s as u32 + 2);
    let (positions, hp) = indices(step, rng, &[b, t], s as u32 + 2);
    let positions = if lead == 0 { positions } else { ops::reshape(&positions, &[t]).unwrap() };
    let drawn = Drawn::<T>::new(step, rng, &dims([b, hk * group, t, s]), all);
    let last = |_: usize, i: usize| i as i64 + s as i64 - t as i64;
    let held = |b: usize, i: usize| hp.data[b * t + i] as i64;
    let masks: [(AttentionMask<'_, 's>, Mask<'_>); 4] = [
        (AttentionMask::None, Mask { sees: &|_, _, _| true, position: &last }),
        (AttentionMask::Causal, Mask { sees: &|_, i, j| j + t <= i + s, position: &last }),
        (
            AttentionMask::Lengths(&lengths),
            Mask { sees: &|b, _, j| (j as f64) < hl.data[b], position: &|_, i| i as i64 },
        ),
        (
            AttentionMask::Positions(&positions),
            Mask { sees: &|b, i, j| j as i64 <= held(b, i), position: &held },
        ),
    ];
    for (mask, meaning) in masks {
        let got = ops::attention(&q, &k, &v, drawn.config(mask), scale).unwrap();
        let want = attend(lifted.each_ref(), f64::from(scale), &meaning, &drawn.changes);
        assert_close(step, &got, &want.reshaped(&dims([b, t, hk * group, dv])), 8.0);
    }
}

fn small<T: Float>() {
    cases(60, |step, rng| {
        let z = Sizes {
            b: rng.random_bool(0.6).then(|| rng.random_range(1..4)),
            t: rng.random_range(1..6),
            s: rng.random_range(0..9),
            heads: rng.random_range(1..4),
            group: rng.random_range(1..4),
            d: rng.random_range(1..10),
            dv: rng.random_range(1..10),
        };
        check::<T>(step, rng, z, false);
    });
}

#[test]
fn changes_of_scores_with_every_mask() {
    for_types!(small: f32, f16, bf16);
}

/// Heads of common sizes, of which a GPU has kernels of their own.
fn common<T: Float>() {
    cases(30, |step, rng| {
        let z = Sizes {
            b: rng.random_bool(0.6).then(|| rng.random_range(1..4)),
            t: rng.random_range(1..9),
            s: [1, 17, 40, 130, 200][rng.random_range(0..5)],
            heads: rng.random_range(1..3),
            group: [1, 2, 3, 5][rng.random_range(0..4)],
            d: [16, 24, 64, 80, 128][rng.random_range(0..5)],
            dv: [16, 40, 64, 128][rng.random_range(0..4)],
        };
        check::<T>(step, rng, z, false);
    });
}

#[test]
fn changes_with_heads_of_common_sizes() {
    for_types!(common: f32, f16, bf16);
}

/// Many queries, most of which see whole tiles of keys, since few changes have a window.
fn many<T: Float>() {
    cases(8, |step, rng| {
        let z = Sizes {
            b: rng.random_bool(0.5).then(|| rng.random_range(1..3)),
            t: rng.random_range(36..100),
            s: [64, 129, 192, 200][rng.random_range(0..4)],
            heads: 1,
            group: 2,
            d: [64, 128, 256][rng.random_range(0..3)],
            dv: [32, 64, 128][rng.random_range(0..3)],
        };
        check::<T>(step, rng, z, false);
    });
}

#[test]
fn changes_of_many_queries() {
    for_types!(many: f16, bf16);
}

/// One query of many keys, many queries, and heads of all kernels.
#[test]
fn large_shapes() {
    in_step(|step| {
        let rng = &mut StdRng::seed_from_u64(17);
        let z = Sizes { b: Some(1), t: 1, s: 300, heads: 2, group: 3, d: 64, dv: 64 };
        for all in [false, true] {
            check::<f32>(step, rng, z, all);
            check::<bf16>(step, rng, Sizes { t: 2, dv: 32, ..z }, all);
        }
        let z = Sizes { b: None, t: 70, s: 83, heads: 1, group: 2, d: 32, dv: 64 };
        check::<bf16>(step, rng, z, true);
        check::<f32>(step, rng, Sizes { t: 20, ..z }, true);
        check::<f16>(step, rng, Sizes { t: 20, d: 128, ..z }, true);
        let z = Sizes { t: 20, s: 40, ..z };
        check::<bf16>(step, rng, Sizes { d: 256, dv: 256, ..z }, true);
        check::<f16>(step, rng, Sizes { d: 256, dv: 144, ..z }, false);
        // No kernel but the general one takes these; with one query of many keys, it divides the keys.
        check::<f32>(step, rng, Sizes { t: 1, s: 300, d: 300, dv: 260, ..z }, true);
        check::<bf16>(step, rng, Sizes { t: 2, s: 300, d: 576, dv: 512, ..z }, true);
        let z = Sizes { t: 3, ..z };
        check::<bf16>(step, rng, Sizes { d: 576, dv: 512, ..z }, true);
        check::<f32>(step, rng, Sizes { d: 300, dv: 260, ..z }, true);
        check::<f32>(step, rng, Sizes { d: 1024, dv: 8, ..z }, false);
    });
}

/// Keys outside of the window may hold anything, and spoil only queries that see them.
#[test]
fn keys_outside_of_the_window_may_hold_anything() {
    fn outside<T: Float>(t: usize, d: usize) {
        in_step(|step| {
            let rng = &mut StdRng::seed_from_u64(4);
            let (s, left) = (200, 30);
            let bad = 100 - left + 3;
            let data = |rng: &mut StdRng| -> Vec<T> {
                let value = |j: usize, rng: &mut StdRng| match j {
                    // Before every window, and after every position.
                    _ if j < 100 - left || j >= 100 + t || j == bad => f64::NAN,
                    _ => rng.random_range(-1.0..1.0),
                };
                (0..s * d).map(|i| T::from_f64(value(i / d, rng))).collect()
            };
            let (k, v) = (data(rng), data(rng));
            let tensor = |data: &[T]| step.tensor(&[s, 1, d], data).unwrap();
            let (q, hq) = input::<T>(step, rng, &[t, 2, d], (-1.0, 1.0));
            let places: Vec<u32> = (0..t as u32).map(|i| 100 + i).collect();
            let positions = step.tensor(&[t], &places).unwrap();
            let config = AttentionConfig::new(AttentionMask::Positions(&positions)).window(left, 5);
            let got = ops::attention(&q, &tensor(&k), &tensor(&v), config, 0.25).unwrap();
            let got: Vec<f64> = step.read(&got).unwrap().into_iter().map(|x: T| x.to_f64()).collect();

            let host = |data: &[T]| Array::from_fn(&[1, s, 1, d], |i| data[i[1] * d + i[3]].to_f64());
            let position = |_: usize, i: usize| 100 + i as i64;
            let mask = Mask { sees: &|_, i, j| j <= 100 + i, position: &position };
            let changes = Changes { window: Some((left as i64, 5)), ..Changes::default() };
            let all = [&hq.reshaped(&[1, t, 2, d]), &host(&k), &host(&v)];
            let want = attend(all, 0.25, &mask, &changes);
            for (i, (got, want)) in got.iter().zip(&want.data).enumerate() {
                let sees_bad = i / (2 * d) <= 3;
                assert_eq!((got.is_nan(), want.is_nan()), (sees_bad, sees_bad), "{i}");
                assert!(sees_bad || (got - want).abs() < 2e-2, "{i}: {got}, not {want}");
            }
        });
    }
    outside::<f32>(1, 16);
    outside::<f32>(6, 16);
    outside::<f32>(7, 128);
    outside::<bf16>(1, 64);
    outside::<bf16>(6, 64);
    outside::<f16>(8, 128);
    outside::<bf16>(40, 64);
    outside::<f16>(70, 256);
}

/// Rows that see no value that is infinite or NaN have the bits that they have without it, whatever changes their scores, and so have
/// all rows in the channels that have none.
fn bits_beside_infinities<T: Float>() {
    let seen = Cell::new(0);
    cases(24, |step, rng| {
        let (b, hk, group) = (rng.random_range(1..3), rng.random_range(1..3), rng.random_range(1..4));
        let t = if rng.random_bool(0.4) { rng.random_range(1..9) } else { rng.random_range(33..150) };
        let (s, d) = ([64, 129, 200][rng.random_range(0..3)], [64, 80, 128, 256][rng.random_range(0..4)]);
        let (q, _) = input::<T>(step, rng, &[b, t, hk * group, d], (-1.5, 1.5));
        let (k, _) = input::<T>(step, rng, &[b, s, hk, d], (-1.5, 1.5));
        let (_, values) = input::<T>(step, rng, &[b, s, hk, d], (-1.5, 1.5));
        let (positions, held) = indices(step, rng, &[b, t], s as u32);
        let drawn = Drawn::<T>::new(step, rng, &[b, hk * group, t, s], false);
        let bad: Vec<[usize; 4]> = (0..rng.random_range(1..4))
            .map(|_| [b, s, hk, d].map(|size| rng.random_range(0..size)))
            .collect();
        let what = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][rng.random_range(0..3)];
        // Both have the same layout, on which it depends which kernel computes them.
        let spoilt = |at: &[usize]| if bad.iter().any(|bad| bad == at) { what } else { values.at(at) };
        let [v, spoilt] = [&values, &Array::from_fn(&values.shape, spoilt)].map(|of| {
            let data: Vec<T> = of.data.iter().map(|value| T::from_f64(*value)).collect();
            step.tensor(&[b, s, hk, d], &data).unwrap()
        });
        let is_causal = rng.random_bool(0.5);
        let mask = if is_causal { AttentionMask::Causal } else { AttentionMask::Positions(&positions) };
        let attended = |v: &Tensor<'_, T>| -> Vec<f64> {
            let y = ops::attention(&q, &k, v, drawn.config(mask), 0.125).unwrap();
            step.read(&y).unwrap().into_iter().map(|value: T| value.to_f64()).collect()
        };
        let (clean, spoilt) = (attended(&v), attended(&spoilt));
        let sees = |sequence: usize, i: usize, h: usize, e: usize| {
            bad.iter().any(|&[of, j, head, channel]| {
                let at =
                    if is_causal { (i + s) as i64 - t as i64 } else { held.data[sequence * t + i] as i64 };
                let away = j as i64 - at;
                let is_within =
                    drawn.changes.window.is_none_or(|(left, right)| -left <= away && away <= right);
                (of, head, channel) == (sequence, h / group, e) && away <= 0 && is_within
            })
        };
        for (at, (clean, spoilt)) in clean.iter().zip(&spoilt).enumerate() {
            let (sequence, i, h, e) =
                (at / (t * hk * group * d), at / (hk * group * d) % t, at / d % (hk * group), at % d);
            if !sees(sequence, i, h, e) {
                assert_eq!(clean.to_bits(), spoilt.to_bits(), "{at}: {sequence} {i} {h} {e}, of {bad:?}");
            } else if drawn.changes.slopes.is_none() {
                assert!(!spoilt.is_finite(), "{at}: sees {what}");
                seen.set(seen.get() + 1);
            }
        }
    });
    assert!(seen.get() > 20, "{} results saw a value that is not finite", seen.get());
}

#[test]
fn rows_keep_their_bits_beside_infinities() {
    for_types!(bits_beside_infinities: f32, f16, bf16);
}

#[test]
fn a_bias_of_minus_infinity_hides_keys() {
    in_step(|step| {
        let q = step.tensor(&[3, 1, 1], &[0.0f32; 3]).unwrap();
        let v = step.tensor(&[3, 1, 1], &[1.0f32, 2.0, 6.0]).unwrap();
        let inf = f32::NEG_INFINITY;
        let bias = step.tensor(&[3, 3], &[0.0, inf, 0.0, inf, inf, inf, inf, 0.0, inf]).unwrap();
        let config = AttentionConfig::new(AttentionMask::None).bias(&bias);
        let got = step.read(&ops::attention(&q, &q, &v, config, 1.0).unwrap()).unwrap();
        assert_eq!(got, [3.5, 0.0, 2.0]);
        // A sink of -inf has no weight, and others have it even where no key is seen.
        for (sink, want) in [(inf, [3.5, 0.0, 2.0]), (2f32.ln(), [1.75, 0.0, 2.0 / 3.0])] {
            let sinks = step.tensor(&[1], &[sink]).unwrap();
            let got = step.read(&ops::attention(&q, &q, &v, config.sinks(&sinks), 1.0).unwrap()).unwrap();
            assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-6), "{got:?}");
        }
    });
}

/// As masks are often made. It is not minus infinity: a row of which all keys have it is their mean.
#[test]
fn a_bias_of_the_lowest_number_is_a_number() {
    fn lowest<T: Float>(t: usize, d: usize, low: f64) {
        in_step(|step| {
            let zeros = ops::zeros::<T>(step.scope(), &[t, 1, d]).unwrap();
            let values: Vec<T> = (0..64 * d).map(|i| T::from_f64((i / d % 8) as f64)).collect();
            let (k, v) = (
                step.tensor(&[64, 1, d], &vec![T::from_f64(1.0); 64 * d]),
                step.tensor(&[64, 1, d], &values),
            );
            let bias = step.tensor(&[64], &[T::from_f64(low); 64]).unwrap();
            let config = AttentionConfig::new(AttentionMask::None).bias(&bias);
            let got =
                step.read(&ops::attention(&zeros, &k.unwrap(), &v.unwrap(), config, 1.0).unwrap()).unwrap();
            assert!(
                got.iter().all(|value| value.to_f64() == 3.5),
                "{} {t} {d}: {}",
                T::DTYPE,
                got[0].to_f64()
            );
        });
    }
    for t in [1, 5, 64, 200] {
        for d in [64, 128, 256] {
            lowest::<f32>(t, d, f32::MIN.into());
            lowest::<bf16>(t, d, bf16::MIN.to_f64());
            lowest::<f16>(t, d, f16::MIN.to_f64());
        }
    }
}

/// Whatever a score of 0 is multiplied or divided by, it stays 0: all keys count the same.
fn zeros_at_the_ends_of_f32<T: Float>() {
    in_step(|step| {
        let rng = &mut StdRng::seed_from_u64(23);
        for d in [64, 128, 256] {
            let q = ops::full(step.scope(), [40, 1, d], T::from_f64(0.0)).unwrap();
            let (k, _) = input::<T>(step, rng, &[70, 1, d], (-1.5, 1.5));
            let (v, values) = input::<T>(step, rng, &[70, 1, d], (-1.5, 1.5));
            let mean = |e: usize| (0..70).map(|j| values.at(&[j, 0, e])).sum::<f64>() / 70.0;
            let want = Array::from_fn(&[40, 1, d], |at| mean(at[2]));
            for scale in [3e38, -3e38, f32::MIN_POSITIVE, 1e-45] {
                for cap in [None, Some(1e-39), Some(1e-45), Some(f32::MAX)] {
                    let config = AttentionConfig::new(AttentionMask::None);
                    let config = cap.map_or(config, |cap| config.soft_cap(cap));
                    assert_close(step, &ops::attention(&q, &k, &v, config, scale).unwrap(), &want, 8.0);
                }
            }
        }
    });
}

#[test]
fn a_score_of_zero_stays_zero() {
    for_types!(zeros_at_the_ends_of_f32: f32, f16, bf16);
}

#[test]
fn changes_that_do_not_fit_are_refused() {
    in_step(|step| {
        let zeros = |shape: &[usize]| ops::zeros::<f32>(step.scope(), shape).unwrap();
        let (q, kv) = (zeros(&[2, 3, 4, 8]), zeros(&[2, 5, 2, 8]));
        let attend = |config: AttentionConfig<'_, '_, f32>| {
            ops::attention(&q, &kv, &kv, shorter(config), 1.0).map(drop)
        };
        let none = || AttentionConfig::new(AttentionMask::None);
        for shape in [&[2, 4, 3, 5][..], &[4, 3, 5], &[3, 5], &[5], &[], &[1, 4, 1, 5], &[2, 1, 3, 1]] {
            assert!(attend(none().bias(&zeros(shape))).is_ok(), "{shape:?}");
        }
        for shape in [&[2, 2, 3, 5][..], &[3, 4, 3, 5], &[3, 4], &[4, 5, 3], &[1, 2, 4, 3, 5]] {
            assert!(is_shape(attend(none().bias(&zeros(shape)))), "{shape:?}");
        }
        for shape in [&[2][..], &[1], &[], &[4, 1]] {
            assert!(is_shape(attend(none().sinks(&zeros(shape)))), "{shape:?}");
            assert!(is_shape(attend(none().alibi_slopes(&zeros(shape)))), "{shape:?}");
        }
        for cap in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert!(is_argument(attend(none().soft_cap(cap))), "{cap}");
        }
        // Without a batch, a bias has none.
        let (q, kv) = (zeros(&[3, 4, 8]), zeros(&[5, 2, 8]));
        assert!(is_shape(ops::attention(&q, &kv, &kv, none().bias(&zeros(&[1, 4, 3, 5])), 1.0)));
        assert!(
            ops::attention(&q, &kv, &kv, none().bias(&zeros(&[4, 3, 5])).window(usize::MAX, 0), 1.0).is_ok()
        );
    });
}

/// The configuration with the lifetimes of one call.
fn shorter<'a, 's>(config: AttentionConfig<'a, 's, f32>) -> AttentionConfig<'a, 's, f32> {
    config
}

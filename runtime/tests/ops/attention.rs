use graphable::{
    Float, Tensor, bf16, f16,
    ops::{self, AttentionMask},
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    harness::{assert_close, cases, for_types, in_step, indices, input, state},
    reference::{Array, softmax},
};

/// All of `[B, rows, heads, size]`.
fn attend(q: &Array, k: &Array, v: &Array, scale: f64, sees: impl Fn(usize, usize, usize) -> bool) -> Array {
    let (b, t, hq) = (q.shape[0], q.shape[1], q.shape[2]);
    let (s, hk, dv) = (k.shape[1], k.shape[2], v.shape[3]);
    let mut out = Array::from_fn(&[b, t, hq, dv], |_| 0.0);
    for (row, out) in out.data.chunks_exact_mut(dv).enumerate() {
        let (b, i, h) = (row / hq / t, row / hq % t, row % hq);
        let scores: Vec<f64> = (0..s)
            .map(|j| {
                if !sees(b, i, j) {
                    return f64::NEG_INFINITY;
                }
                let (q, k) = (q.row(&[b, i, h]), k.row(&[b, j, h / (hq / hk)]));
                scale * q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>()
            })
            .collect();
        let weights = softmax(&scores);
        for (j, p) in weights.iter().enumerate() {
            out.iter_mut().zip(v.row(&[b, j, h / (hq / hk)])).for_each(|(out, v)| *out += p * v);
        }
    }
    out
}

fn masks<T: Float>() {
    cases(100, |step, rng| {
        let batched = rng.random_bool(0.6);
        let b = if batched { rng.random_range(1..4) } else { 1 };
        let (t, s) = (rng.random_range(1..6), rng.random_range(0..9));
        let (hk, group) = (rng.random_range(1..4), rng.random_range(1..4));
        let (d, dv) = (rng.random_range(1..10), rng.random_range(1..10));
        let dims = |all: [usize; 4]| all[usize::from(!batched)..].to_vec();
        let (q, hq) = input::<T>(step, rng, &dims([b, t, hk * group, d]), (-1.5, 1.5));
        let (k, hk_) = input::<T>(step, rng, &dims([b, s, hk, d]), (-1.5, 1.5));
        let (v, hv) = input::<T>(step, rng, &dims([b, s, hk, dv]), (-1.5, 1.5));
        let lift = |x: &Array, all: [usize; 4]| x.reshaped(&all);
        let (hq, hk_, hv) =
            (lift(&hq, [b, t, hk * group, d]), lift(&hk_, [b, s, hk, d]), lift(&hv, [b, s, hk, dv]));
        let scale = rng.random_range(0.2f32..1.5);
        let (lengths, hl) = indices(step, rng, &[b], s as u32 + 2);
        let (positions, hp) = indices(step, rng, &[b, t], s as u32 + 2);
        let positions = if batched { positions } else { ops::reshape(&positions, &[t]).unwrap() };

        let check = |mask: AttentionMask<'_, '_>, sees: &dyn Fn(usize, usize, usize) -> bool| {
            let want = attend(&hq, &hk_, &hv, f64::from(scale), sees);
            let got: Tensor<'_, T> = ops::attention(&q, &k, &v, shorter(mask), scale).unwrap();
            let want = want.reshaped(&dims([b, t, hk * group, dv]));
            assert_close(step, &got, &want, 6.0);
        };
        check(AttentionMask::None, &|_, _, _| true);
        check(AttentionMask::Causal, &|_, i, j| j + t <= i + s);
        check(AttentionMask::Lengths(&lengths), &|b, _, j| (j as f64) < hl.data[b]);
        check(AttentionMask::Positions(&positions), &|b, i, j| j as f64 <= hp.data[b * t + i]);
    });
}

/// The mask with the lifetimes of one call.
fn shorter<'a, 's>(mask: AttentionMask<'a, 's>) -> AttentionMask<'a, 's> {
    mask
}

#[test]
fn all_masks_with_grouped_heads() {
    for_types!(masks: f32, f16, bf16);
}

#[test]
fn long_sequences() {
    in_step(|step| {
        let rng = &mut StdRng::seed_from_u64(5);
        let (t, h, d) = (70, 2, 64);
        let (q, hq) = input::<f32>(step, rng, &[1, t, h, d], (-1.0, 1.0));
        let (k, hk) = input::<f32>(step, rng, &[1, t, 1, d], (-1.0, 1.0));
        let (v, hv) = input::<f32>(step, rng, &[1, t, 1, d], (-1.0, 1.0));
        let want = attend(&hq, &hk, &hv, 0.125, |_, i, j| j <= i);
        assert_close(step, &ops::attention(&q, &k, &v, AttentionMask::Causal, 0.125).unwrap(), &want, 4.0);
    });
}

#[test]
fn lengths_may_be_a_scalar_without_a_batch() {
    in_step(|step| {
        let q = step.tensor(&[1, 1, 1], &[1.0f32]).unwrap();
        let k = step.tensor(&[3, 1, 1], &[1.0f32, 1.0, 1.0]).unwrap();
        let v = step.tensor(&[3, 1, 1], &[1.0f32, 3.0, 100.0]).unwrap();
        let two = step.tensor(&[], &[2u32]).unwrap();
        let got = ops::attention(&q, &k, &v, AttentionMask::Lengths(&two), 1.0).unwrap();
        assert_eq!(step.read(&got).unwrap(), [2.0]);
        let none = step.tensor(&[1], &[0u32]).unwrap();
        let got = ops::attention(&q, &k, &v, AttentionMask::Lengths(&none), 1.0).unwrap();
        assert_eq!(step.read(&got).unwrap(), [0.0]);
    });
}

#[test]
fn a_cache_is_read_in_place_whole_or_in_part() {
    let mut rt = graphable::Runtime::new(crate::harness::device()).unwrap();
    let rng = &mut StdRng::seed_from_u64(2);
    let (layers, rows, h, d) = (3, 6, 2, 4);
    let (keys, hk) = state::<f32>(&rt, rng, &[layers, rows, h * d]);
    let (values, hv) = state::<f32>(&rt, rng, &[rows, h, d]);
    let step = rt.step().unwrap();
    let (q, hq) = input::<f32>(&step, rng, &[2, h, d], (-1.0, 1.0));
    let (positions, hp) = indices(&step, rng, &[2], rows as u32);
    let mask = AttentionMask::Positions(&positions);
    for layer in 0..layers {
        let part = ops::cache_view(&keys).narrow(0, layer, 1).unwrap().reshape(&[rows, h, d]).unwrap();
        assert_eq!(part.shape(), [rows, h, d]);
        let got = ops::attention(&q, &part, &values, mask, 0.5).unwrap();
        let host = Array::from_fn(&[1, rows, h, d], |i| hk.at(&[layer, i[1], i[2] * d + i[3]]));
        let lifted = |x: &Array, n| x.reshaped(&[1, n, h, d]);
        let want = attend(&lifted(&hq, 2), &host, &lifted(&hv, rows), 0.5, |_, i, j| j as f64 <= hp.data[i]);
        assert_close(&step, &got, &want.reshaped(&[2, h, d]), 4.0);
    }
    // Heads first, in memory; permuted when read.
    let first_heads = ops::cache_view(&values).permute(&[1, 0, 2]).unwrap();
    assert_eq!(first_heads.shape(), [h, rows, d]);
    let x = ops::zeros::<f32>(step.scope(), &[h, rows, d]).unwrap();
    let want = Array::from_fn(&[h, rows, d], |i| hv.at(&[i[1], i[0], i[2]]));
    assert_close(&step, &ops::add(&x, &first_heads).unwrap(), &want, 0.0);
    assert!(first_heads.reshape(&[h * rows * d]).is_err());
    assert!(ops::cache_view(&values).narrow(0, 5, 2).is_err());
}

/// Heads of common sizes, of which a GPU has kernels of their own.
fn common_heads<T: Float>() {
    cases(20, |step, rng| {
        let (b, t, hk, group) = (
            rng.random_range(1..4),
            rng.random_range(1..9),
            rng.random_range(1..4),
            [1, 2, 3, 4, 5, 8][rng.random_range(0..6)],
        );
        let [d, dv] = [0; 2].map(|_| [16, 24, 48, 64, 64, 80, 128][rng.random_range(0..7)]);
        let s = [1, 15, 16, 17, 40, 130, 300][rng.random_range(0..7)];
        let (q, hq) = input::<T>(step, rng, &[b, t, hk * group, d], (-1.0, 1.0));
        let (k, hk_) = input::<T>(step, rng, &[b, s, hk, d], (-1.0, 1.0));
        let (v, hv) = input::<T>(step, rng, &[b, s, hk, dv], (-1.5, 1.5));
        let (lengths, hl) = indices(step, rng, &[b], s as u32 + 2);
        let (positions, hp) = indices(step, rng, &[b, t], s as u32 + 2);
        let check = |mask: AttentionMask<'_, '_>, sees: &dyn Fn(usize, usize, usize) -> bool| {
            let want = attend(&hq, &hk_, &hv, 0.25, sees);
            assert_close(step, &ops::attention(&q, &k, &v, shorter(mask), 0.25).unwrap(), &want, 6.0);
        };
        match rng.random_range(0..4) {
            0 => check(AttentionMask::None, &|_, _, _| true),
            1 => check(AttentionMask::Causal, &|_, i, j| j + t <= i + s),
            2 => check(AttentionMask::Lengths(&lengths), &|b, _, j| (j as f64) < hl.data[b]),
            _ => check(AttentionMask::Positions(&positions), &|b, i, j| j as f64 <= hp.data[b * t + i]),
        }
    });
}

#[test]
fn heads_of_common_sizes_with_every_mask() {
    for_types!(common_heads: f32, f16, bf16);
}

/// Which rows see a key that is NaN, or infinite, decides which results are not finite; bits of the others do not depend on it, nor
/// on what lies behind the last key that is seen; on a GPU, nor on the positions of other rows and sequences.
fn only_own_keys_count<T: Float>() {
    let is_cpu = crate::harness::device().is_cpu();
    cases(30, |step, rng| {
        let (b, t, hk, group) =
            (rng.random_range(1..4), rng.random_range(1..9), rng.random_range(1..3), rng.random_range(1..5));
        // So many that a GPU has kernels of tiles for them.
        let t = if rng.random_bool(0.3) { 70 - 5 * t } else { t };
        let (d, s) = ([64, 128, 80, 6][rng.random_range(0..4)], [70, 150, 300][rng.random_range(0..3)]);
        let number = |at: usize| ((at * 7919 + 13) % 1009) as f64 / 504.5 - 1.0;
        let limits: Vec<u32> = (0..b * t).map(|_| rng.random_range(0..s as u32 - 2)).collect();
        let bad = (rng.random_range(0..b), rng.random_range(0..s - 2));
        let what = [f64::NAN, f64::INFINITY][rng.random_range(0..2)];
        let attended = |spoils: bool, positions: &[u32]| -> Vec<T> {
            let values = |salt: usize| {
                let of = |at: usize| {
                    let (sequence, j) = (at / (s * hk * d), at / (hk * d) % s);
                    let top = positions[sequence * t..][..t].iter().max().map_or(0, |&most| most as usize);
                    match spoils {
                        true if j > top => f64::NAN,
                        true if salt == 2 && (sequence, j) == bad => what,
                        _ => number(at * 3 + salt),
                    }
                };
                let data: Vec<T> = (0..b * s * hk * d).map(|at| T::from_f64(of(at))).collect();
                step.tensor(&[b, s, hk, d], &data).unwrap()
            };
            let q: Vec<T> = (0..b * t * hk * group * d).map(|at| T::from_f64(number(at))).collect();
            let q = step.tensor(&[b, t, hk * group, d], &q).unwrap();
            let positions = step.tensor(&[b, t], positions).unwrap();
            let mask = AttentionMask::Positions(&positions);
            step.read(&ops::attention(&q, &values(1), &values(2), mask, 0.125).unwrap()).unwrap()
        };
        let (clean, spoilt) = (attended(false, &limits), attended(true, &limits));
        // All others see as much as they can.
        let (sequence, row) = (rng.random_range(0..b), rng.random_range(0..t));
        let mut others = vec![s as u32 - 1; b * t];
        others[sequence * t + row] = limits[sequence * t + row];
        let beside = attended(false, &others);
        let of_row = hk * group * d;
        for (at, ((clean, spoilt), beside)) in clean.iter().zip(&spoilt).zip(&beside).enumerate() {
            let (b, i) = (at / of_row / t, at / of_row % t);
            if b == bad.0 && limits[b * t + i] as usize >= bad.1 {
                assert!(!spoilt.to_f64().is_finite(), "{at}: sees {what}");
            } else {
                assert_eq!(clean.to_f64().to_bits(), spoilt.to_f64().to_bits(), "{at}");
            }
            // On the CPU, how the keys are divided may depend on all rows.
            if (b, i) == (sequence, row) && !is_cpu {
                assert_eq!(
                    clean.to_f64().to_bits(),
                    beside.to_f64().to_bits(),
                    "{at}: depends on other rows"
                );
            }
        }
    });
}

#[test]
fn a_row_depends_on_nothing_but_the_keys_that_it_sees() {
    for_types!(only_own_keys_count: f32, f16, bf16);
}

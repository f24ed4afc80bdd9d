//! Attention of many queries by blocks of either height.

use graphable::{Float, bf16, f16, ops::AttentionMask, prelude::*};

use crate::support::{runtime, skipped};

fn values<T: Float>(count: usize, seed: usize) -> Vec<T> {
    (0..count).map(|i| T::from_f64(((i * 37 + seed * 11) % 101) as f64 / 50.0 - 1.0)).collect()
}

/// All heads of a call make blocks of 128 queries, some of them make blocks of 64: a row has the same bits in both, also where some
/// of its values are infinite or NaN.
fn heads_do_not_depend_on_others<T: Float>(times: usize, causal: bool, is_sound: bool) {
    const HEADS: usize = 64;
    const KEY_HEADS: usize = 16;
    const SIZE: usize = 128;
    let mut rt = runtime();
    let step = rt.step().unwrap();
    let some = |heads: usize, of: usize, seed: usize| {
        let all = values::<T>(times * heads * SIZE, seed);
        let kept = all.chunks(heads * SIZE).flat_map(|row| &row[..of * SIZE]).copied().collect::<Vec<_>>();
        step.tensor(&[times, of, SIZE], &kept).unwrap()
    };
    let attend = |parts: usize| {
        let (k, v) = (some(KEY_HEADS, KEY_HEADS / parts, 2), some(KEY_HEADS, KEY_HEADS / parts, 3));
        let places = ops::arange::<u32>(step.scope(), v.dim(0)).unwrap();
        let at = ops::reshape(&places, &[times, 1, 1]).unwrap();
        let v = match is_sound {
            true => v,
            // Of all heads, a value in the first tile and one in the last.
            false => {
                let is_bad =
                    ops::logical_or(&ops::eq(&at, 10).unwrap(), &ops::eq(&at, times as u32 - 30).unwrap());
                let channels = ops::arange::<u32>(step.scope(), SIZE).unwrap();
                let is_bad = ops::logical_and(&is_bad.unwrap(), &ops::lt(&channels, 3).unwrap()).unwrap();
                let infinite = ops::full(step.scope(), [1], T::from_f64(f64::INFINITY)).unwrap();
                ops::where_(&is_bad, &infinite, &v).unwrap()
            }
        };
        let mask = if causal { AttentionMask::Causal } else { AttentionMask::None };
        let y = ops::attention(&some(HEADS, HEADS / parts, 1), &k, &v, mask, 0.1).unwrap();
        step.read(&y).unwrap()
    };
    let (all, part) = (attend(1), attend(16));
    let rows = all.chunks(HEADS * SIZE).zip(part.chunks(HEADS / 16 * SIZE));
    for (t, (all, part)) in rows.enumerate() {
        let bits = |row: &[T]| row.iter().map(|v| v.to_f64().to_bits()).collect::<Vec<_>>();
        assert!(bits(&all[..part.len()]) == bits(part), "{} row {t} of {times}", T::DTYPE);
        let others = part.chunks(SIZE).flat_map(|head| &head[3..]);
        assert!(others.into_iter().all(|v| v.to_f64().is_finite()), "{} row {t} of {times}", T::DTYPE);
    }
}

#[test]
fn rows_have_the_same_bits_in_blocks_of_either_height() {
    if skipped("rows_have_the_same_bits_in_blocks_of_either_height") {
        return;
    }
    // The last block has rows beyond the last query.
    for times in [1024, 1000] {
        heads_do_not_depend_on_others::<bf16>(times, true, times == 1000);
        heads_do_not_depend_on_others::<f16>(times, false, true);
    }
    heads_do_not_depend_on_others::<f16>(1000, true, false);
}

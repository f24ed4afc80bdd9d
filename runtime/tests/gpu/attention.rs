//! Attention of many queries: the bits of a row do not depend on how many others there are. On most devices, blocks of two heights
//! take these calls; GPUs of compute capability 9.0 have one kernel for both (`prefill_groups.cu`), so the heights are not compared there.

use graphable::{Float, Step, bf16, f16, ops::AttentionMask, prelude::*};

use crate::support::{runtime, skipped};

fn values<T: Float>(count: usize, seed: usize) -> Vec<T> {
    (0..count).map(|i| T::from_f64(((i * 37 + seed * 11) % 101) as f64 / 50.0 - 1.0)).collect()
}

const HEADS: usize = 64;
const KEY_HEADS: usize = 16;
const SIZE: usize = 128;
/// Channels of the values that are not finite where they are not sound.
const BAD_CHANNELS: usize = 3;

/// Attention of `times` queries with the first of all heads, `[times, heads, SIZE]`. All heads make blocks of 128 queries, some of
/// them make blocks of 64.
fn attended<T: Float>(step: &Step<'_>, times: usize, part: usize, causal: bool, is_sound: bool) -> Vec<T> {
    let some = |heads: usize, seed: usize| {
        let all = values::<T>(times * heads * SIZE, seed);
        let kept =
            all.chunks(heads * SIZE).flat_map(|row| &row[..heads / part * SIZE]).copied().collect::<Vec<_>>();
        step.tensor(&[times, heads / part, SIZE], &kept).unwrap()
    };
    let (k, v) = (some(KEY_HEADS, 2), some(KEY_HEADS, 3));
    let places = ops::arange::<u32>(step.scope(), v.dim(0)).unwrap();
    let at = ops::reshape(&places, &[times, 1, 1]).unwrap();
    let v = match is_sound {
        true => v,
        // Of all heads, a value in the first tile and one in the last.
        false => {
            let [first, last] = bad_places(times).map(|place| ops::eq(&at, place as u32).unwrap());
            let is_bad = ops::logical_or(&first, &last).unwrap();
            let channels = ops::arange::<u32>(step.scope(), SIZE).unwrap();
            let is_channel = ops::lt(&channels, BAD_CHANNELS as u32).unwrap();
            let is_bad = ops::logical_and(&is_bad, &is_channel).unwrap();
            let infinite = ops::full(step.scope(), [1], T::from_f64(f64::INFINITY)).unwrap();
            ops::where_(&is_bad, &infinite, &v).unwrap()
        }
    };
    let mask = if causal { AttentionMask::Causal } else { AttentionMask::None };
    let y = ops::attention(&some(HEADS, 1), &k, &v, mask, 0.1).unwrap();
    step.read(&y).unwrap()
}

fn bad_places(times: usize) -> [usize; 2] {
    [10, times - 30]
}

fn bits<T: Float>(values: &[T]) -> Vec<u64> {
    values.iter().map(|v| v.to_f64().to_bits()).collect()
}

/// A row has the same bits in blocks of either height, also where some of its values are infinite; and where it sees none of these,
/// or in channels that have none, it has the bits that it has without them.
fn bits_do_not_depend_on_others<T: Float>(times: usize, causal: bool, is_sound: bool) {
    const PARTS: usize = 16;
    let mut rt = runtime();
    let step = rt.step().unwrap();
    let clean = attended::<T>(&step, times, 1, causal, true);
    let all = if is_sound { clean.clone() } else { attended::<T>(&step, times, 1, causal, false) };
    let part = attended::<T>(&step, times, PARTS, causal, is_sound);
    let first_bad = if causal { bad_places(times)[0] } else { 0 };
    for t in 0..times {
        let name = format!("{} row {t} of {times}", T::DTYPE);
        let [all, clean] = [&all, &clean].map(|of| &of[t * HEADS * SIZE..][..HEADS * SIZE]);
        let part = &part[t * HEADS / PARTS * SIZE..][..HEADS / PARTS * SIZE];
        assert!(bits(&all[..part.len()]) == bits(part), "{name}");
        for (all, clean) in all.chunks(SIZE).zip(clean.chunks(SIZE)) {
            let kept = if is_sound || t < first_bad { 0 } else { BAD_CHANNELS };
            assert!(all[..kept].iter().all(|value| value.to_f64() == f64::INFINITY), "{name}");
            assert!(bits(&all[kept..]) == bits(&clean[kept..]), "{name}: not the bits without infinities");
            assert!(clean.iter().all(|value| value.to_f64().is_finite()), "{name}");
        }
    }
}

#[test]
fn rows_have_the_same_bits_in_blocks_of_either_height() {
    if skipped("rows_have_the_same_bits_in_blocks_of_either_height") {
        return;
    }
    // The last block has rows beyond the last query.
    for times in [1024, 1000] {
        bits_do_not_depend_on_others::<bf16>(times, true, times == 1000);
        bits_do_not_depend_on_others::<f16>(times, false, true);
    }
    bits_do_not_depend_on_others::<f16>(1000, true, false);
    bits_do_not_depend_on_others::<bf16>(1000, false, false);
}

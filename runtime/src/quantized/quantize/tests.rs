use rand::{Rng, SeedableRng, rngs::StdRng};

use super::search;
use crate::{
    BlockFormat,
    quantized::{IQ4_NL_VALUES, testing::halves},
};

/// Nearly normal.
fn values(rng: &mut StdRng, count: usize) -> Vec<f32> {
    (0..count).map(|_| (0..12).map(|_| rng.random_range(-0.5f32..0.5)).sum()).collect()
}

fn error(format: BlockFormat, values: &[f32]) -> f64 {
    let blocks = format.quantize(values).unwrap();
    let mut read = vec![f32::NAN; values.len()];
    format.dequantize(&blocks, &mut read).unwrap();
    relative(values, &read)
}

/// The root of the mean squared error over that of the mean square.
fn relative(values: &[f32], read: &[f32]) -> f64 {
    let square = |v: f32| f64::from(v).powi(2);
    let off: f64 = values.iter().zip(read).map(|(a, b)| square(a - b)).sum();
    (off / values.iter().map(|v| square(*v)).sum::<f64>()).sqrt()
}

/// The least squared error of any of many scales, and of the given one.
fn sweep(values: &[f32], found: f32, most: f32, integer: impl Fn(f32) -> f32) -> (f64, f64) {
    let error = |scale: f32| -> f64 {
        if scale == 0.0 {
            return values.iter().map(|v| f64::from(*v).powi(2)).sum();
        }
        values.iter().map(|v| f64::from(scale * integer(v / scale) - v).powi(2)).sum()
    };
    let scales = (1..=20_000).flat_map(|i| [1.0, -1.0].map(|sign| sign * most * i as f32 / 20_000.0));
    (scales.map(error).fold(f64::INFINITY, f64::min), error(found))
}

/// A search looks at few scales; the best of 40000 is hardly better.
#[test]
fn scales_are_nearly_the_best() {
    let mut rng = StdRng::seed_from_u64(1);
    let mut totals = [(0.0, 0.0); 3];
    for case in 0..60 {
        let width = [16, 32][case % 2];
        let values: Vec<f32> =
            values(&mut rng, width).iter().map(|v| v * 3.0f32.powi(case as i32 % 9)).collect();
        let most = search::largest(&values).abs();
        let around = |limit: f32| move |v: f32| v.round().clamp(-limit, limit - 1.0);
        let halfway: [f32; 15] =
            std::array::from_fn(|i| (f32::from(IQ4_NL_VALUES[i]) + f32::from(IQ4_NL_VALUES[i + 1])) / 2.0);
        let table = |v: f32| f32::from(IQ4_NL_VALUES[halfway.iter().filter(|&&halfway| v > halfway).count()]);
        let found = [
            sweep(&values, search::scale(&values, [-4.0, 3.0]), most / 2.0, around(4.0)),
            sweep(&values, search::scale(&values, [-32.0, 31.0]), most / 16.0, around(32.0)),
            sweep(&values, search::table_scale(&values), most / 60.0, table),
        ];
        for (i, (total, (best, found))) in totals.iter_mut().zip(found).enumerate() {
            assert!(found <= 1.7 * best, "{case} {i}: {found}, the best is {best}");
            *total = (total.0 + best, total.1 + found);
        }
    }
    totals.iter().for_each(|(best, found)| assert!(*found <= 1.02 * best, "{totals:?}"));
}

#[test]
fn scales_and_minima_are_nearly_the_best() {
    let mut rng = StdRng::seed_from_u64(2);
    for (limit, width) in [(3.0, 16), (15.0, 32), (31.0, 32)] {
        let mut total = (0.0, 0.0);
        for case in 0..12 {
            let shift = [0.0, 1.5, -1.5][case % 3];
            let values: Vec<f32> = values(&mut rng, width).iter().map(|v| v + shift).collect();
            let error = |s: f32, m: f32| -> f64 {
                let q = |v: f32| ((v + m) / s).round().clamp(0.0, limit);
                values.iter().map(|&v| f64::from(s * q(v) - m - v).powi(2)).sum()
            };
            let least = values.iter().fold(0.0f32, |least, v| least.min(*v));
            let most = values.iter().fold(f32::MIN, |most, v| most.max(*v));
            let step = (most - least) / limit;
            let grid = (0..200).flat_map(|i| (0..100).map(move |j| (i as f32 / 200.0, j as f32 / 100.0)));
            let errors = grid.map(|(i, j)| error(step * (0.4 + 0.8 * i), -least * (0.6 + 0.6 * j)));
            let best = errors.fold(f64::INFINITY, f64::min);
            let (s, m) = search::scale_and_minimum(&values, limit);
            assert!(s >= 0.0 && m >= 0.0, "{s} {m}");
            assert!(error(s, m) <= 1.1 * best, "{limit} {case}: {} {best}", error(s, m));
            total = (total.0 + best, total.1 + error(s, m));
        }
        assert!(total.1 <= 1.02 * total.0, "{limit}: {total:?}");
    }
}

/// The relative errors of normal values, which are near those of trained weights: measured, and no worse since.
#[test]
fn errors_are_small() {
    let mut rng = StdRng::seed_from_u64(3);
    let values = values(&mut rng, 256 * 100);
    for (format, bound) in [
        (BlockFormat::Q8_0, 0.0054),
        (BlockFormat::Q6_K, 0.0170),
        (BlockFormat::Q5_1, 0.0380),
        (BlockFormat::Q5_0, 0.0430),
        (BlockFormat::Q5_K, 0.0346),
        (BlockFormat::Q4_K, 0.0700),
        (BlockFormat::IQ4_NL, 0.0737),
        (BlockFormat::Q4_1, 0.0785),
        (BlockFormat::F8_E4M3, 0.0280),
        (BlockFormat::INT4, 0.0850),
        (BlockFormat::Q4_0, 0.0863),
        (BlockFormat::Q3_K, 0.1435),
        (BlockFormat::Q2_K, 0.2600),
    ] {
        let found = error(format, &values);
        assert!(found < bound, "{format}: {found}");
    }
}

/// What is all zeros, of one value, tiny, or so large that half precision just has the scale.
#[test]
fn special_blocks() {
    for &format in BlockFormat::ALL {
        let read = |values: &[f32]| {
            let blocks = format.quantize(values).unwrap();
            let mut read = vec![f32::NAN; values.len()];
            format.dequantize(&blocks, &mut read).unwrap();
            read
        };
        assert_eq!(read(&[0.0; 256]), [0.0; 256], "{format}");
        for value in [1.0, -1.0, 0.01, 3e4, -3e4] {
            let read = read(&[value; 256]);
            let off = read.iter().map(|v| (v / value - 1.0).abs()).fold(0.0, f32::max);
            assert!(off < 0.02, "{format} {value}: {off}");
        }
        assert!(read(&[1e-30; 256]).iter().all(|v| v.abs() <= 1e-7), "{format}");
        let alternating: Vec<f32> = (0..256).map(|i| if i % 2 == 0 { 2.0 } else { -2.0 }).collect();
        let off = relative(&alternating, &read(&alternating));
        assert!(off < 0.15, "{format}: {off}");
    }
}

/// The scales that are stored are finite, and integers are in their ranges, whatever the values are: what is read is as large as what
/// was written.
#[test]
fn outliers_do_not_overflow() {
    let mut rng = StdRng::seed_from_u64(4);
    for case in 0..200 {
        let mut values = values(&mut rng, 256);
        let at = rng.random_range(0..256);
        values[at] *= 10f32.powi(rng.random_range(-20..7));
        let most = search::largest(&values).abs();
        for &format in BlockFormat::ALL {
            let Ok(blocks) = format.quantize(&values) else {
                assert!(most > 60_000.0, "{format} {case} {most}");
                continue;
            };
            for &half in halves(format) {
                assert!(half::f16::from_le_bytes([blocks[half], blocks[half + 1]]).is_finite(), "{format}");
            }
            let mut read = [f32::NAN; 256];
            format.dequantize(&blocks, &mut read).unwrap();
            let off = relative(&values, &read);
            assert!(off < 0.35, "{format} {case}: {off}");
        }
    }
}

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::*;
use crate::quantized::testing::{blocks, blocks_of_scale, bound, set_scales, sizes};

fn floats(rng: &mut StdRng, count: usize) -> Vec<f32> {
    let size = 10f32.powi(rng.random_range(-4..4));
    (0..count).map(|_| rng.random_range(-size..size)).collect()
}

fn activations(format: BlockFormat, rows: &[Vec<f32>]) -> Rows {
    Rows::new(format, rows.len(), rows[0].len(), |i, row| row.copy_from_slice(&rows[i]))
}

/// The other tests compare what this names with plain code; `.ci/arm` reads it.
#[test]
fn the_levels_of_the_machine() {
    println!("levels: {:?}", Level::all());
    assert_eq!(Level::all()[0], Level::Plain);
    // Rust's own code for these machines needs NEON.
    #[cfg(target_arch = "aarch64")]
    assert!(Level::all().len() > 1);
}

/// Of sizes that differ by many orders of magnitude, as some models have them: next to the largest of a run, others become zeros.
fn uneven_floats(rng: &mut StdRng, count: usize) -> Vec<f32> {
    let mut floats = floats(rng, count);
    for value in &mut floats {
        *value *= 10f32.powi(rng.random_range(-4..1)) * if rng.random_range(0..100) == 0 { 1e4 } else { 1.0 };
    }
    floats
}

/// Within what quantising the activations loses, and what additions round: docs/ACCURACY.md.
#[test]
fn products_are_near_those_of_the_values() {
    let mut rng = StdRng::seed_from_u64(1);
    for &format in BlockFormat::ALL {
        for (count, scale) in [(1, 0.1), (2, 1e-4), (3, 1000.0), (9, 0.1), (2, 60_000.0)] {
            let width = count * format.elements();
            let weight = blocks_of_scale(&mut rng, format, count, scale);
            let mut values = vec![0.0; width];
            format.dequantize_row(&weight, &mut values);
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let sizes = sizes(format, &weight);
            let rows: Vec<Vec<f32>> = (0..9)
                .map(|i| if i % 2 == 0 { floats(&mut rng, width) } else { uneven_floats(&mut rng, width) })
                .collect();
            let activations = activations(format, &rows);
            for level in Level::all() {
                let mut got = [0.0; 9];
                multiply(level, format, &weight, &activations, &mut got);
                for (row, got) in rows.iter().zip(got) {
                    let row: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
                    let exact: f64 = row.iter().zip(&values).map(|(x, w)| x * w).sum();
                    let bound = bound(format, &row, &values, &sizes);
                    let off = (f64::from(got) - exact).abs();
                    assert!(
                        off <= bound,
                        "{level:?} {format} {count}: {got} {exact}, off by {off} of {bound}"
                    );
                }
            }
        }
    }
}

/// The elements of a row that are multiplied.
fn multiplied(activations: &Rows, rows: &[Vec<f32>], row: usize) -> Vec<f64> {
    match activations {
        Rows::Floats(_) => rows[row].iter().map(|x| f64::from(*x)).collect(),
        Rows::Quantised(activations) => {
            let integers: &[i8] = bytemuck::cast_slice(activations.integers(row));
            let scale = |at| f64::from(activations.scale(row, at / RUN));
            (0..activations.width()).map(|at| scale(at) * f64::from(integers[at])).collect()
        }
    }
}

/// What products lose beyond quantising: next to the exact sum of the integers that the activations became, only what so many
/// additions round. A scale of another run, or a minimum that is left out, is far more than that. Of floats, activations are not quantised.
#[test]
fn products_are_those_of_the_integers() {
    let mut rng = StdRng::seed_from_u64(3);
    for &format in BlockFormat::ALL {
        for count in [1, 2, 5, 18] {
            let width = count * format.elements();
            let (many, columns) = (9, 17);
            let weights = blocks_of_scale(&mut rng, format, count * columns, 0.1);
            let rows: Vec<Vec<f32>> = (0..many).map(|_| uneven_floats(&mut rng, width)).collect();
            let activations = activations(format, &rows);
            // Multiplications of scales, and additions within a sum and of sums.
            let roundings = 4 + (width / 16).div_ceil(LANES).max(2) + LANES;
            for level in Level::all() {
                let mut got = vec![f32::NAN; many * columns];
                multiply(level, format, &weights, &activations, &mut got);
                for (i, got) in got.into_iter().enumerate() {
                    let (row, column) = (i / columns, i % columns);
                    let bytes = count * format.bytes();
                    let weight = &weights[column * bytes..][..bytes];
                    let mut values = vec![0.0; width];
                    format.dequantize_row(weight, &mut values);
                    let x = multiplied(&activations, &rows, row);
                    let (mut exact, mut size) = (0.0, 0.0);
                    for (at, (value, of)) in values.into_iter().zip(sizes(format, weight)).enumerate() {
                        let x = x[at];
                        exact += x * f64::from(value);
                        size += x.abs() * of;
                    }
                    let off = (f64::from(got) - exact).abs();
                    let bound = size * roundings as f64 * f64::from(f32::EPSILON) / 2.0;
                    assert!(
                        off <= bound,
                        "{level:?} {format} {count}: {got} {exact}, off by {off} of {bound}"
                    );
                }
            }
        }
    }
}

/// Every set of instructions, any number of rows of activations and of weights, tiles and what is left over of them included,
/// give the bits of plain code on one row of each.
#[test]
fn bits_depend_on_the_rows_alone() {
    let mut rng = StdRng::seed_from_u64(2);
    for &format in BlockFormat::ALL {
        for case in 0..60 {
            let small = format.elements() == RUN;
            let count = rng.random_range(0..if small { 2 * LANES + 3 } else { 4 });
            let width = count * format.elements();
            let (many, columns) = match case % 3 {
                0 => (rng.random_range(1..10), rng.random_range(1..6)),
                1 => (rng.random_range(1..10), rng.random_range(14..50)),
                _ => (rng.random_range(10..30), rng.random_range(14..20)),
            };
            let weights = blocks(&mut rng, format, count * columns);
            let mut rows: Vec<Vec<f32>> = (0..many).map(|_| floats(&mut rng, width)).collect();
            if case % 5 == 0 && width > 0 {
                // The integers of the largest size.
                rows[0] = (0..width).map(|i| if i % 3 == 0 { -1.0 } else { 1.0 }).collect();
                rows[many - 1][width / 2] = f32::NAN;
            }
            let all = activations(format, &rows);
            let bytes = count * format.bytes();
            let mut expected = vec![f32::NAN; many * columns];
            for (row, expected) in rows.iter().zip(expected.chunks_mut(columns)) {
                let one = activations(format, std::slice::from_ref(row));
                for (column, expected) in expected.iter_mut().enumerate() {
                    let weight = &weights[column * bytes..][..bytes];
                    multiply(Level::Plain, format, weight, &one, std::slice::from_mut(expected));
                }
            }
            for level in Level::all() {
                let mut got = vec![f32::NAN; many * columns];
                multiply(level, format, &weights, &all, &mut got);
                for (i, (got, expected)) in got.iter().zip(&expected).enumerate() {
                    let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
                    let (row, column) = (i / columns, i % columns);
                    assert!(
                        same,
                        "{level:?} {format} {case}, {count} blocks, row {row} of {many}, column {column} of {columns}: \
                         {got} {expected}"
                    );
                }
            }
        }
    }
}

/// Scales and integers at the ends of their ranges: nothing saturates.
#[test]
fn the_largest_integers_do_not_overflow() {
    for &format in BlockFormat::ALL {
        for byte in [0x00, 0x7F, 0x80, 0x88, 0xFF] {
            // Enough rows of both for a tile.
            let mut weight = vec![byte; 16 * 2 * format.bytes()];
            for block in weight.chunks_exact_mut(format.bytes()) {
                set_scales(format, block, || 1.0);
            }
            let width = 2 * format.elements();
            let rows: Vec<_> = (0..8).map(|i| vec![if i % 2 == 0 { 1.0 } else { -1.0 }; width]).collect();
            // One row is another kernel.
            for rows in [&rows[..], &rows[..1]] {
                let activations = activations(format, rows);
                let mut expected = vec![0.0; rows.len() * 16];
                multiply(Level::Plain, format, &weight, &activations, &mut expected);
                for level in Level::all() {
                    let mut got = vec![0.0; rows.len() * 16];
                    multiply(level, format, &weight, &activations, &mut got);
                    let same = got.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(same, "{level:?} {format} {byte:x}: {got:?} {expected:?}");
                }
            }
        }
    }
}

/// Each value is zero, as its product and its minimum cancel; what the products round does not.
#[test]
fn what_cancels_is_rounded_before_it_does() {
    let (format, mut weight) = (BlockFormat::Q4_1, vec![0x77; 20]);
    weight[..2].copy_from_slice(&half::f16::from_f32(100.0).to_le_bytes());
    weight[2..4].copy_from_slice(&half::f16::from_f32(-700.0).to_le_bytes());
    let mut values = [1.0; 32];
    format.dequantize_row(&weight, &mut values);
    assert_eq!(values, [0.0; 32]);
    let sizes = sizes(format, &weight);
    assert_eq!(sizes, [1400.0; 32]);
    let activations = activations(format, &[vec![0.7; 32]]);
    for level in Level::all() {
        let mut got = [f32::NAN];
        multiply(level, format, &weight, &activations, &mut got);
        assert!(got[0] != 0.0, "{level:?}: if nothing is rounded here, the document says too much");
        let bound = bound(format, &[0.7; 32], &[0.0; 32], &sizes);
        assert!(f64::from(got[0].abs()) <= bound, "{level:?}: {} of {bound}", got[0]);
    }
}

/// The scale of a group times that of the activations is a float, too: where it overflows, no finite result hides it.
#[test]
fn scales_that_overflow_together_are_not_finite() {
    for &format in BlockFormat::ALL {
        let mut weight = vec![0x55; format.bytes()];
        set_scales(format, &mut weight, || half::f16::MAX.to_f32());
        let activations = activations(format, &[vec![3e38; format.elements()], vec![1.0; format.elements()]]);
        for level in Level::all() {
            let mut got = [0.0; 2];
            multiply(level, format, &weight, &activations, &mut got);
            assert!(!got[0].is_finite() && got[1].is_finite(), "{level:?} {format}: {got:?}");
        }
    }
}

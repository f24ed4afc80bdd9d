use rand::{Rng, SeedableRng, rngs::StdRng};

use super::super::operation::{MaskedMean, Reduce, Reduction};
use crate::{DType, backend::cpu::kernels::testing::*};

/// The slices of `x` along `axis`, in the order of the output.
fn slices(x: &Array, axis: usize) -> (Vec<usize>, Vec<Vec<f64>>) {
    let shape = x.shape().to_vec();
    let mut out = shape.clone();
    out.remove(axis);
    let values = x.values();
    let slices = (0..out.iter().product())
        .map(|i| {
            let mut at = unravel(i, &out);
            at.insert(axis, 0);
            (0..shape[axis])
                .map(|k| {
                    at[axis] = k;
                    values[ravel(&at, &shape)]
                })
                .collect()
        })
        .collect();
    (out, slices)
}

fn shapes(rng: &mut StdRng) -> Vec<(Vec<usize>, usize)> {
    let mut shapes: Vec<(Vec<usize>, usize)> = (0..40)
        .map(|case| {
            let rank = 1 + case % 4;
            (random_shape(rng, rank), rng.random_range(0..rank))
        })
        .collect();
    shapes.extend([
        (vec![20_000], 0),
        (vec![3, 5_000], 1),
        (vec![1_500, 40], 0),
        (vec![2, 300, 70], 1),
        (vec![600, 70], 1),
        (vec![0, 4], 0),
        (vec![4, 0], 0),
    ]);
    shapes
}

#[test]
fn reductions_match_the_reference() {
    let mut rng = StdRng::seed_from_u64(31);
    for (shape, axis) in shapes(&mut rng) {
        for dtype in NUMBERS {
            let x = Array::random(&mut rng, dtype, &shape);
            let (out, slices) = slices(&x, axis);
            let n = shape[axis] as f64;
            for kind in [Reduce::Sum, Reduce::Mean, Reduce::Max] {
                let mut y = Array::output(dtype, &out);
                run(Reduction { kind, axis }, &[&x], &mut y).unwrap();
                let what = format!("{kind:?} {x:?} over {axis}");
                let mut one = y.clone();
                run_single_threaded(Reduction { kind, axis }, &[&x], &mut one).unwrap();
                assert_eq!(y.bytes, one.bytes, "{what} depends on threads");
                if kind == Reduce::Max {
                    let lowest = if dtype.is_float() { f64::NEG_INFINITY } else { lowest(dtype) };
                    let expected: Vec<f64> =
                        slices.iter().map(|s| s.iter().copied().fold(lowest, f64::max)).collect();
                    assert_exact(&y.values(), &expected, &what);
                } else if dtype.is_float() {
                    let divisor = if kind == Reduce::Mean { n } else { 1.0 };
                    let expected: Vec<f64> = slices.iter().map(|s| s.iter().sum::<f64>() / divisor).collect();
                    let size = |i: usize| slices[i].iter().map(|v| v.abs()).sum::<f64>() / divisor;
                    assert_close(dtype, &y.values(), &expected, |i| 1e-6 * size(i), &what);
                } else {
                    let reference = |s: &Vec<f64>| {
                        let sum: i128 = s.iter().map(|&v| v as i128).sum();
                        match (kind, dtype) {
                            (Reduce::Mean, _) if s.is_empty() => 0.0,
                            (Reduce::Mean, _) => (sum as f64 / n).trunc(),
                            (_, DType::I32) => f64::from(sum as i32),
                            (_, DType::U32) => f64::from(sum as u32),
                            _ => f64::from(sum as u8),
                        }
                    };
                    let expected: Vec<f64> = slices.iter().map(reference).collect();
                    assert_exact(&y.values(), &expected, &what);
                }
            }
        }
    }
}

fn lowest(dtype: DType) -> f64 {
    if dtype == DType::I32 { f64::from(i32::MIN) } else { 0.0 }
}

#[test]
fn nan_and_infinities_reduce() {
    for dtype in FLOATS {
        for (values, max) in [
            ([1.0, f64::NAN, 3.0, f64::NAN], f64::NAN),
            ([f64::NEG_INFINITY; 4], f64::NEG_INFINITY),
            ([-1.0, f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY], f64::INFINITY),
        ] {
            // Along a row, and across rows wide enough to advance together.
            for width in [1, 40] {
                let spread: Vec<f64> = values.iter().flat_map(|&v| vec![v; width]).collect();
                let x = Array::contiguous(dtype, &[4, width], &spread);
                let mut y = Array::output(dtype, &[width]);
                run(Reduction { kind: Reduce::Max, axis: 0 }, &[&x], &mut y).unwrap();
                assert_exact(&y.values(), &vec![max; width], "max");
            }
        }
    }
}

#[test]
fn masked_means_match_the_reference() {
    let mut rng = StdRng::seed_from_u64(33);
    for (shape, axis) in shapes(&mut rng) {
        for dtype in FLOATS {
            for _ in 0..3 {
                let x = Array::random(&mut rng, dtype, &shape);
                let mask = Array::random(&mut rng, DType::Bool, &shape);
                let (out, xs) = slices(&x, axis);
                let (_, ms) = slices(&mask, axis);
                let mut y = Array::output(dtype, &out);
                run(MaskedMean { axis }, &[&x, &mask], &mut y).unwrap();
                let mean = |i: usize, f: fn(f64) -> f64| {
                    let sum: f64 = xs[i].iter().zip(&ms[i]).map(|(x, m)| f(*x) * m).sum();
                    sum / ms[i].iter().sum::<f64>().max(1e-9)
                };
                let expected: Vec<f64> = (0..xs.len()).map(|i| mean(i, |x| x)).collect();
                let what = format!("masked mean {x:?} by {mask:?} over {axis}");
                assert_close(dtype, &y.values(), &expected, |i| 2e-6 * mean(i, f64::abs), &what);
            }
        }
    }
}

#[test]
fn masked_values_do_not_count_even_if_nan() {
    for width in [1, 40] {
        let x: Vec<f64> = [1.0, f64::NAN, 3.0].iter().flat_map(|&v| vec![v; width]).collect();
        let mask: Vec<f64> = [1.0, 0.0, 1.0].iter().flat_map(|&v| vec![v; width]).collect();
        let x = Array::contiguous(DType::F32, &[3, width], &x);
        let mask = Array::contiguous(DType::Bool, &[3, width], &mask);
        let mut y = Array::output(DType::F32, &[width]);
        run(MaskedMean { axis: 0 }, &[&x, &mask], &mut y).unwrap();
        assert_eq!(y.values(), vec![2.0; width]);
    }
}

//! Further reductions, against loops in f64.

use graphable::{Number, Real, Step, Tensor, bf16, f16, ops};
use rand::Rng;

use crate::{
    harness::{
        assert_close, assert_same, cases, for_types, in_step, input, is_axis, is_shape, part_of, shape,
        wrapped,
    },
    reference::{Array, softmax},
};

fn least(line: &[f64]) -> f64 {
    line.iter().copied().fold(f64::INFINITY, f64::min)
}

fn of_numbers<T: Number>() {
    cases(40, |step, rng| {
        let dims = shape(rng, 1, 4);
        let axis = rng.random_range(0..dims.len());
        let (x, host) = input::<T>(step, rng, &dims, (-4.0, 4.0));
        let product = host.reduce(axis, |line| line.iter().product());
        // At most 4 to the power 6, which wraps in a byte.
        let product = if T::DTYPE.is_float() { product } else { product.map(wrapped::<T>) };
        assert_close(step, &ops::prod(&x, axis).unwrap(), &product, 40.0);
        if dims[axis] == 0 {
            assert!(is_shape(ops::min(&x, axis)) && is_shape(ops::argmin(&x, axis)));
            return;
        }
        assert_same(step, &ops::min(&x, axis).unwrap(), &host.reduce(axis, least));
        let first = |line: &[f64]| line.iter().position(|v| *v == least(line)).unwrap() as f64;
        assert_same(step, &ops::argmin(&x, axis).unwrap(), &host.reduce(axis, first));
    });
}

#[test]
fn min_argmin_prod_over_every_axis() {
    for_types!(of_numbers: f32, f16, bf16, f64, i32, i64, i8, u32, u8);
    in_step(|step| {
        let rows = [5.0, f32::NAN, f32::NAN, 7.0, 5.0, 5.0, f32::INFINITY, f32::INFINITY, f32::INFINITY];
        let x = step.tensor(&[3, 3], &rows).unwrap();
        assert_eq!(step.read(&ops::argmin(&x, 1).unwrap()).unwrap(), [1, 1, 0]);
        let min = step.read(&ops::min(&x, 1).unwrap()).unwrap();
        assert!(min[0].is_nan() && min[1..] == [5.0, f32::INFINITY], "{min:?}");
        // In several pieces and lanes, where the first of equal ones is not in the first lane.
        let long: Vec<f32> =
            (0..20_000).map(|i| if i >= 1500 && i % 1000 == 499 { -1.0 } else { i as f32 }).collect();
        let x = step.tensor(&[20_000], &long).unwrap();
        assert_eq!(step.read(&ops::argmin(&x, 0).unwrap()).unwrap(), [2499]);
        let i = step.tensor(&[2], &[i32::MIN, 2]).unwrap();
        assert_eq!(step.read(&ops::prod(&i, 0).unwrap()).unwrap(), [0]);
    });
}

fn moments<T: Real>() {
    cases(40, |step, rng| {
        let dims = shape(rng, 1, 4);
        let axis = rng.random_range(0..dims.len());
        let (x, host) = input::<T>(step, rng, &dims, (-4.0, 4.0));
        if dims[axis] == 0 {
            assert!(is_shape(ops::var(&x, axis, 0)) && is_shape(ops::logsumexp(&x, axis)));
            return;
        }
        let correction = rng.random_range(0..2);
        let variance = |line: &[f64]| {
            let n = line.len() as f64;
            let mean = line.iter().sum::<f64>() / n;
            line.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - correction as f64)
        };
        let var = ops::var(&x, axis, correction).unwrap();
        assert_close(step, &var, &host.reduce(axis, variance), 40.0);
        let std = ops::std_keepdim(&x, axis, correction).unwrap();
        let mut kept = host.reduce(axis, |line| variance(line).sqrt());
        kept.shape.insert(axis, 1);
        assert_close(step, &std, &kept, 40.0);
        let sums = host.reduce(axis, |line| line.iter().map(|v| v.exp()).sum::<f64>().ln());
        assert_close(step, &ops::logsumexp(&x, axis).unwrap(), &sums, 8.0);
    });
}

#[test]
fn variances_and_sums_of_powers() {
    for_types!(moments: f32, f16, bf16, f64);
    in_step(|step| {
        let none = f32::NEG_INFINITY;
        let x = step.tensor(&[4, 2], &[1e4, 1e4, none, none, f32::INFINITY, 0.0, f32::NAN, 0.0]).unwrap();
        let y = step.read(&ops::logsumexp(&x, 1).unwrap()).unwrap();
        assert!(y[..3] == [1e4 + 2.0f32.ln(), none, f32::INFINITY] && y[3].is_nan(), "{y:?}");
        // Far from zero, where a sum of squares would cancel.
        let x = step.tensor(&[4], &[1e4f32, 1e4 + 1.0, 1e4 + 2.0, 1e4 + 3.0]).unwrap();
        assert_eq!(step.read(&ops::var(&x, 0, 0).unwrap()).unwrap(), [1.25]);
        let one = step.tensor(&[1], &[3.0f32]).unwrap();
        assert!(step.read(&ops::var(&one, 0, 1).unwrap()).unwrap()[0].is_nan());
    });
}

#[test]
fn any_and_all() {
    cases(40, |step, rng| {
        let dims = shape(rng, 1, 4);
        let axis = rng.random_range(0..dims.len());
        let (x, host) = input::<bool>(step, rng, &dims, (0.0, 1.0));
        let count = |line: &[f64]| line.iter().sum::<f64>();
        let some = host.reduce(axis, |line| f64::from(u8::from(count(line) > 0.0)));
        let every = host.reduce(axis, |line| f64::from(u8::from(count(line) as usize == line.len())));
        assert_same(step, &ops::any(&x, axis).unwrap(), &some);
        assert_same(step, &ops::all(&x, axis).unwrap(), &every);
    });
}

fn masked<T: Real>() {
    cases(40, |step, rng| {
        let dims = shape(rng, 1, 4);
        let axis = rng.random_range(0..dims.len());
        let (x, host) = input::<T>(step, rng, &dims, (-4.0, 4.0));
        let part = part_of(rng, &dims);
        let (mask, hm) = input::<bool>(step, rng, &part, (0.0, 1.0));
        let low = Array::from_fn(&dims, |i| if hm.at(i) != 0.0 { host.at(i) } else { f64::NEG_INFINITY });
        let y = ops::masked_softmax(&x, &mask, axis).unwrap();
        assert_close(step, &y, &low.map_lines(axis, softmax), 4.0);
        let some = Array::from_fn(&dims, |i| if hm.at(i) != 0.0 { host.at(i) } else { 1.0 });
        let product = |line: &[f64]| line.iter().product();
        assert_close(step, &ops::masked_prod(&x, &mask, axis).unwrap(), &some.reduce(axis, product), 8.0);
        logarithms_of_some(step, (&x, &mask), axis, &low);
        moments_of_some(step, (&x, &mask), axis, (&host, &hm), rng.random_range(0..2));
        if dims[axis] == 0 {
            assert!(is_shape(ops::masked_max(&x, &mask, axis)));
            return;
        }
        let most = |line: &[f64]| line.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert_same(step, &ops::masked_max(&x, &mask, axis).unwrap(), &low.reduce(axis, most));
        let first = |line: &[f64]| line.iter().position(|v| *v == most(line)).unwrap() as f64;
        assert_same(step, &ops::masked_argmax(&x, &mask, axis).unwrap(), &low.reduce(axis, first));
        let high = Array::from_fn(&dims, |i| if hm.at(i) != 0.0 { host.at(i) } else { f64::INFINITY });
        assert_same(step, &ops::masked_min(&x, &mask, axis).unwrap(), &high.reduce(axis, least));
        let first = |line: &[f64]| line.iter().position(|v| *v == least(line)).unwrap() as f64;
        assert_same(step, &ops::masked_argmin(&x, &mask, axis).unwrap(), &high.reduce(axis, first));
    });
}

/// `low` has `-inf` where the mask is false. Lines of which nothing counts are compared where both are infinite.
fn logarithms_of_some<'s, T: Real>(
    step: &Step<'s>,
    (x, mask): (&Tensor<'s, T>, &Tensor<'s, bool>),
    axis: usize,
    low: &Array,
) {
    let [low_end, high_end] = [-1e3, 1e3].map(|end| step.tensor(&[], &[T::from_f64(end)]).unwrap());
    let sums = |line: &[f64]| line.iter().map(|v| v.exp()).sum::<f64>().ln();
    let y = ops::masked_log_softmax(x, mask, axis).unwrap();
    // Where nothing counts, everything is `-inf`.
    let logs = low.map_lines(axis, |line| {
        let sum = sums(line);
        line.iter().map(|v| if sum.is_finite() { (v - sum).clamp(-1e3, 1e3) } else { -1e3 }).collect()
    });
    assert_close(step, &ops::clamp(&y, &low_end, &high_end).unwrap(), &logs, 8.0);
    if low.shape[axis] > 0 {
        let y = ops::masked_logsumexp(x, mask, axis).unwrap();
        let want = low.reduce(axis, |line| sums(line).clamp(-1e3, 1e3));
        assert_close(step, &ops::clamp(&y, &low_end, &high_end).unwrap(), &want, 8.0);
    }
}

/// Of lines, the elements whose mask is true.
fn counted(host: &Array, mask: &Array, axis: usize, of: impl Fn(&[f64]) -> f64) -> Array {
    let mut dims = host.shape.clone();
    let full = Array::from_fn(&dims, |i| mask.at(i));
    dims.remove(axis);
    Array::from_fn(&dims, |i| {
        let (values, mask) = (host.line(axis, i), full.line(axis, i));
        of(&values.iter().zip(&mask).filter(|(_, m)| **m != 0.0).map(|(v, _)| *v).collect::<Vec<_>>())
    })
}

fn moments_of_some<'s, T: Real>(
    step: &Step<'s>,
    (x, mask): (&Tensor<'s, T>, &Tensor<'s, bool>),
    axis: usize,
    (host, hm): (&Array, &Array),
    correction: usize,
) {
    let variance = |line: &[f64]| {
        let n = line.len() as f64;
        let mean = line.iter().sum::<f64>() / n;
        line.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - correction as f64).max(0.0)
    };
    // Of as many elements as the correction, nothing is divided by nothing.
    let want = counted(host, hm, axis, variance);
    assert_close(step, &ops::masked_var(x, mask, axis, correction).unwrap(), &want, 40.0);
    let std = ops::masked_std(x, mask, axis, correction).unwrap();
    assert_close(step, &std, &want.map(f64::sqrt), 40.0);
}

/// Sums and means of every type: those of integers wrap, and truncate.
fn sums_of_some<T: Number>() {
    cases(40, |step, rng| {
        let dims = shape(rng, 1, 4);
        let axis = rng.random_range(0..dims.len());
        let (x, host) = input::<T>(step, rng, &dims, (-40.0, 40.0));
        let part = part_of(rng, &dims);
        let (mask, hm) = input::<bool>(step, rng, &part, (0.0, 1.0));
        let float = T::DTYPE.is_float();
        let sum = counted(&host, &hm, axis, |line| line.iter().sum());
        let sum = if float { sum } else { sum.map(wrapped::<T>) };
        assert_close(step, &ops::masked_sum(&x, &mask, axis).unwrap(), &sum, 40.0);
        let mean =
            |line: &[f64]| if line.is_empty() { 0.0 } else { line.iter().sum::<f64>() / line.len() as f64 };
        let mean = counted(&host, &hm, axis, mean);
        let mean = if float { mean } else { mean.map(f64::trunc) };
        assert_close(step, &ops::masked_mean(&x, &mask, axis).unwrap(), &mean, 40.0);
        let product = counted(&host, &hm, axis, |line| line.iter().map(|v| v.clamp(-1.0, 1.0)).product());
        let unit =
            ops::clamp(&x, &ops::neg(&ops::ones_like(&x).unwrap()).unwrap(), &ops::ones_like(&x).unwrap());
        if T::DTYPE != graphable::DType::U32 && T::DTYPE != graphable::DType::U8 {
            assert_close(step, &ops::masked_prod(&unit.unwrap(), &mask, axis).unwrap(), &product, 8.0);
        }
        if dims[axis] > 0 {
            let ends = [f64::NEG_INFINITY, f64::INFINITY].map(|end| T::from_f64(end).to_f64());
            let most = counted(&host, &hm, axis, |line| line.iter().copied().fold(ends[0], f64::max));
            assert_same(step, &ops::masked_max(&x, &mask, axis).unwrap(), &most);
            let least = counted(&host, &hm, axis, |line| line.iter().copied().fold(ends[1], f64::min));
            assert_same(step, &ops::masked_min(&x, &mask, axis).unwrap(), &least);
        }
    });
}

#[test]
fn masks_leave_elements_of_every_type_out() {
    for_types!(sums_of_some: f32, f16, bf16, f64, i32, i64, i8, u32, u8);
}

#[test]
fn any_and_all_of_some() {
    cases(40, |step, rng| {
        let dims = shape(rng, 1, 4);
        let axis = rng.random_range(0..dims.len());
        let (x, host) = input::<bool>(step, rng, &dims, (0.0, 1.0));
        let part = part_of(rng, &dims);
        let (mask, hm) = input::<bool>(step, rng, &part, (0.0, 1.0));
        let some = counted(&host, &hm, axis, |line| f64::from(u8::from(line.contains(&1.0))));
        let every = counted(&host, &hm, axis, |line| f64::from(u8::from(!line.contains(&0.0))));
        assert_same(step, &ops::masked_any(&x, &mask, axis).unwrap(), &some);
        assert_same(step, &ops::masked_all(&x, &mask, axis).unwrap(), &every);
    });
}

#[test]
fn masks_leave_elements_out() {
    for_types!(masked: f32, f16, bf16, f64);
}

#[test]
fn misuse_is_refused() {
    in_step(|step| {
        let x = ops::zeros::<f32>(step.scope(), &[2, 3]).unwrap();
        let flags = ops::isnan(&x).unwrap();
        let mask = ops::zeros::<bool>(step.scope(), &[2]).unwrap();
        let wide = ops::zeros::<bool>(step.scope(), &[1, 2, 3]).unwrap();
        assert!(is_axis(ops::min(&x, 2)) && is_axis(ops::argmin(&x, 2)) && is_axis(ops::prod(&x, 2)));
        assert!(is_axis(ops::any(&flags, 2)) && is_axis(ops::all(&flags, 9)) && is_axis(ops::var(&x, 2, 1)));
        assert!(is_axis(ops::logsumexp(&x, 2)) && is_axis(ops::sum_keepdim(&x, 2)));
        assert!(is_axis(ops::masked_max(&x, &mask, 2)) && is_axis(ops::masked_softmax(&x, &mask, 2)));
        assert!(is_shape(ops::masked_max(&x, &mask, 1)) && is_shape(ops::masked_min(&x, &wide, 1)));
        assert!(is_axis(ops::masked_var(&x, &mask, 2, 0)) && is_shape(ops::masked_std(&x, &mask, 1, 0)));
        assert!(is_axis(ops::masked_any(&flags, &mask, 2)) && is_shape(ops::masked_all(&flags, &wide, 1)));
        assert!(is_axis(ops::masked_prod(&x, &mask, 2)) && is_shape(ops::masked_logsumexp(&x, &mask, 1)));
    });
}

#[test]
fn the_first_extreme_is_found_and_nan_is_one() {
    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;
    let cases = [
        ([1.0, NAN, 3.0, -NAN], 1, 1),
        ([-INF; 4], 0, 0),
        ([INF; 4], 0, 0),
        ([-1.0, INF, -INF, INF], 1, 2),
        ([-0.0, 0.0, -0.0, 0.0], 0, 0),
        ([-1e-45, 1e-45, -2.0, -3.0], 1, 3),
        ([-INF, -INF, NAN, INF], 2, 2),
    ];
    in_step(|step| {
        for (values, largest, smallest) in cases {
            // One after the other, and side by side.
            for width in [1, 7, 40] {
                let spread: Vec<f32> = values.iter().flat_map(|&v| vec![v; width]).collect();
                let x = step.tensor(&[4, width], &spread).unwrap();
                let (largest, smallest) = (vec![largest; width], vec![smallest; width]);
                assert_eq!(step.read(&ops::argmax(&x, 0).unwrap()).unwrap(), largest, "{values:?}");
                assert_eq!(step.read(&ops::argmin(&x, 0).unwrap()).unwrap(), smallest, "{values:?}");
            }
        }
    });
}

use graphable::{Number, Real, bf16, f16, ops};
use rand::Rng;

use crate::{
    harness::{
        assert_close, assert_same, cases, for_types, in_step, input, is_shape, part_of, shape, wrapped,
    },
    reference::Array,
};

fn reductions<T: Number>() {
    cases(60, |step, rng| {
        let dims = shape(rng, 1, 4);
        let axis = rng.random_range(0..dims.len());
        let (x, host) = input::<T>(step, rng, &dims, (-40.0, 40.0));
        let n = dims[axis] as f64;
        let sum = host.reduce(axis, |line| line.iter().sum());
        let wrapped = if T::DTYPE.is_float() { sum } else { sum.map(wrapped::<T>) };
        assert_close(step, &ops::sum(&x, axis).unwrap(), &wrapped, 40.0);
        if dims[axis] == 0 {
            assert!(
                is_shape(ops::mean(&x, axis))
                    && is_shape(ops::max(&x, axis))
                    && is_shape(ops::argmax(&x, axis))
            );
            return;
        }
        let float = T::DTYPE.is_float();
        let mean = host.reduce(axis, |line| line.iter().sum::<f64>() / n);
        let mean = if float { mean } else { mean.map(f64::trunc) };
        assert_close(step, &ops::mean(&x, axis).unwrap(), &mean, 40.0);
        let max = host.reduce(axis, |line| line.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        assert_same(step, &ops::max(&x, axis).unwrap(), &max);
        let first = host.reduce(axis, |line| {
            let max = line.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            line.iter().position(|&v| v == max).unwrap() as f64
        });
        assert_same(step, &ops::argmax(&x, axis).unwrap(), &first);
    });
}

#[test]
fn sum_mean_max_argmax_over_every_axis() {
    for_types!(reductions: f32, f16, bf16, f64, i32, i64, i8, u32, u8);
}

#[test]
fn nan_is_the_maximum_and_ties_go_to_the_first() {
    in_step(|step| {
        let x = step
            .tensor(
                &[3, 3],
                &[1.0, f32::NAN, 9.0, 5.0, 5.0, 1.0, f32::NEG_INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY],
            )
            .unwrap();
        assert_eq!(step.read(&ops::argmax(&x, 1).unwrap()).unwrap(), [1, 0, 0]);
        let max = step.read(&ops::max(&x, 1).unwrap()).unwrap();
        assert!(max[0].is_nan());
        assert_eq!(max[1..], [5.0, f32::NEG_INFINITY]);
    });
}

#[test]
fn integer_sums_wrap_and_means_do_not() {
    in_step(|step| {
        let x = step.tensor(&[2], &[i32::MAX, 1]).unwrap();
        assert_eq!(step.read(&ops::sum(&x, 0).unwrap()).unwrap(), [i32::MIN]);
        let x = step.tensor(&[2], &[u32::MAX, u32::MAX - 2]).unwrap();
        assert_eq!(step.read(&ops::mean(&x, 0).unwrap()).unwrap(), [u32::MAX - 1]);
    });
}

fn masked<T: Real>() {
    cases(60, |step, rng| {
        let dims = shape(rng, 1, 4);
        let axis = rng.random_range(0..dims.len());
        let (x, host) = input::<T>(step, rng, &dims, (-4.0, 4.0));
        let part = part_of(rng, &dims);
        let (mask, hm) = input::<bool>(step, rng, &part, (0.0, 1.0));
        let full = Array::from_fn(&dims, |i| hm.at(i));
        let mut out = dims.clone();
        out.remove(axis);
        let want = Array::from_fn(&out, |i| {
            let (values, mask) = (host.line(axis, i), full.line(axis, i));
            let total: f64 = values.iter().zip(&mask).map(|(v, m)| v * m).sum();
            let count: f64 = mask.iter().sum();
            if count == 0.0 { 0.0 } else { total / count }
        });
        assert_close(step, &ops::masked_mean(&x, &mask, axis).unwrap(), &want, 4.0);
    });
}

#[test]
fn masked_means() {
    for_types!(masked: f32, f16, bf16, f64);
}

#[test]
fn long_sums_keep_their_precision() {
    in_step(|step| {
        let x = ops::full(step.scope(), &[100_000], f16::from_f64(0.25)).unwrap();
        assert_eq!(step.read(&ops::mean(&x, 0).unwrap()).unwrap(), [f16::from_f64(0.25)]);
        let x = ops::full(step.scope(), &[4096], bf16::from_f64(1.0)).unwrap();
        assert_eq!(step.read(&ops::sum(&x, 0).unwrap()).unwrap(), [bf16::from_f64(4096.0)]);
    });
}

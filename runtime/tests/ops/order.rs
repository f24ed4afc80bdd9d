//! Sums up to each element, and sorting, against the standard library.

use std::{cmp::Ordering, collections::HashMap};

use graphable::{Number, Result, Step, Tensor, bf16, f16, ops};
use rand::{Rng, rngs::StdRng};

use crate::{
    harness::{
        assert_close, assert_same, cases, for_types, in_step, input, is_argument, is_axis, shape, wrapped,
    },
    reference::Array,
};

fn sums<T: Number>() {
    cases(40, |step, rng| {
        let dims = shape(rng, 1, 4);
        let axis = rng.random_range(0..dims.len());
        let (x, host) = input::<T>(step, rng, &dims, (-9.0, 9.0));
        let wrap = |v: f64| if T::DTYPE.is_float() { v } else { wrapped::<T>(v) };
        let want = host.map_lines(axis, |line| {
            let mut sum = 0.0;
            line.iter()
                .map(|v| {
                    sum += v;
                    wrap(sum)
                })
                .collect()
        });
        assert_close(step, &ops::cumsum(&x, axis).unwrap(), &want, 20.0);
    });
}

#[test]
fn sums_up_to_each() {
    for_types!(sums: f32, f16, bf16, f64, i32, i64, i8, u32, u8);
    in_step(|step| {
        for n in [1, 7, 8, 9, 64, 65, 1000, 5000] {
            let x = ops::full(step.scope(), [2, n], 1i32).unwrap();
            let want: Vec<i32> = (1..=n as i32).chain(1..=n as i32).collect();
            assert_eq!(step.read(&ops::cumsum(&x, 1).unwrap()).unwrap(), want);
        }
        // Rounded once, not in each pass: 0.1 in bf16, 300 times.
        let x = ops::full(step.scope(), [300], bf16::from_f32(0.1)).unwrap();
        let tenth = f64::from(bf16::from_f32(0.1));
        let last = step.read(&ops::cumsum(&x, 0).unwrap()).unwrap()[299];
        assert!((f64::from(last) / (300.0 * tenth) - 1.0).abs() < 4e-3, "{last}");
    });
}

/// NaN is the largest, and both zeros are equal.
fn order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The places of a line's elements, sorted by the standard library, which is stable.
fn places(line: &[f64], descending: bool) -> Vec<usize> {
    let mut all: Vec<usize> = (0..line.len()).collect();
    all.sort_by(|&a, &b| match descending {
        true => order(line[b], line[a]),
        false => order(line[a], line[b]),
    });
    all
}

/// The first `k` of each line along an axis.
fn first(host: &Array, axis: usize, k: usize, of: impl Fn(&[f64]) -> Vec<f64>) -> Array {
    let mut dims = host.shape.clone();
    dims[axis] = k;
    let mut known: HashMap<Vec<usize>, Vec<f64>> = HashMap::new();
    Array::from_fn(&dims, |index| {
        let mut rest = index.to_vec();
        let at = rest.remove(axis);
        known.entry(rest).or_insert_with_key(|rest| of(&host.line(axis, rest)))[at]
    })
}

fn check<T: Number>(step: &Step<'_>, x: &Tensor<'_, T>, host: &Array, axis: usize, k: usize) {
    for descending in [false, true] {
        let index = |line: &[f64]| places(line, descending).into_iter().map(|i| i as f64).collect::<Vec<_>>();
        let values = |line: &[f64]| places(line, descending).into_iter().map(|i| line[i]).collect::<Vec<_>>();
        let all = host.shape[axis];
        let (y, i) = ops::sort(x, axis, descending).unwrap();
        assert_same(step, &y, &first(host, axis, all, values));
        assert_same(step, &i, &first(host, axis, all, index));
        assert_same(step, &ops::argsort(x, axis, descending).unwrap(), &first(host, axis, all, index));
        if descending {
            let (y, i) = ops::topk(x, k, axis).unwrap();
            assert_same(step, &y, &first(host, axis, k, values));
            assert_same(step, &i, &first(host, axis, k, index));
        }
    }
}

fn sorted<T: Number>() {
    cases(40, |step, rng| {
        let dims = shape(rng, 1, 4);
        let axis = rng.random_range(0..dims.len());
        // Few values, so that many are equal.
        let (x, host) = input::<T>(step, rng, &dims, (-3.0, 3.0));
        let k = rng.random_range(0..=dims[axis]);
        check(step, &x, &host, axis, k);
    });
}

#[test]
fn sort_argsort_topk_along_every_axis() {
    for_types!(sorted: f32, f16, bf16, f64, i32, i64, i8, u32, u8);
}

/// A line of this length, of values that are often equal.
fn long(step: &Step<'_>, rng: &mut StdRng, n: usize, ks: &[usize]) {
    let values: Vec<f32> = (0..2 * n).map(|_| rng.random_range(-50i16..50).into()).collect();
    let host = Array { shape: vec![2, n], data: values.iter().map(|&v| f64::from(v)).collect() };
    let x = step.tensor(&[2, n], &values).unwrap();
    ks.iter().filter(|k| **k <= n).for_each(|&k| check(step, &x, &host, 1, k));
}

#[test]
fn lines_of_any_length() {
    cases(1, |step, rng| {
        for n in 1..20 {
            long(step, rng, n, &[0, 1, 2, 3, 5, n]);
        }
        for n in [31, 64, 65, 129, 700] {
            long(step, rng, n, &[1, 40]);
        }
    });
}

#[test]
fn ends_have_an_order() {
    in_step(|step| {
        let values =
            [0.0, f32::NAN, -0.0, f32::INFINITY, -1.0, f32::NEG_INFINITY, -f32::NAN, f32::MIN_POSITIVE];
        let x = step.tensor(&[8], &values).unwrap();
        let read = |index: Result<Tensor<'_, u32>>| step.read(&index.unwrap()).unwrap();
        assert_eq!(read(ops::argsort(&x, 0, false)), [5, 4, 0, 2, 7, 3, 1, 6]);
        assert_eq!(read(ops::argsort(&x, 0, true)), [1, 6, 3, 7, 0, 2, 4, 5]);
        let (sorted, _) = ops::sort(&x, 0, false).unwrap();
        let bits: Vec<u32> = step.read(&sorted).unwrap()[2..4].iter().map(|v| v.to_bits()).collect();
        assert_eq!(bits, [0, 1 << 31], "the elements themselves");
        let i = step.tensor(&[3], &[0, i32::MIN, i32::MAX]).unwrap();
        assert_eq!(read(ops::argsort(&i, 0, false)), [1, 0, 2]);
        let u = step.tensor(&[3], &[7u32, u32::MAX, 0]).unwrap();
        assert_eq!(read(ops::argsort(&u, 0, true)), [1, 0, 2]);
    });
}

#[test]
fn misuse_is_refused() {
    in_step(|step| {
        let x = ops::zeros::<f32>(step.scope(), &[2, 3]).unwrap();
        assert!(is_axis(ops::cumsum(&x, 2)) && is_axis(ops::argsort(&x, 2, true)));
        assert!(is_axis(ops::sort(&x, 2, false)) && is_axis(ops::topk(&x, 1, 2)));
        assert!(is_argument(ops::topk(&x, 4, 1)));
        let scalar = ops::zeros::<f32>(step.scope(), ()).unwrap();
        assert!(is_axis(ops::cumsum(&scalar, 0)) && is_axis(ops::topk(&scalar, 1, 0)));
    });
}

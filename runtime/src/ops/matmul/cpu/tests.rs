use rand::{Rng, SeedableRng, rngs::StdRng};

use super::*;
use crate::{
    backend::cpu::kernels::real::testing::{Owned, floats, near, stable},
    value::layout::Layout,
};

/// Shapes `(batch, m, k, n)`: each path, its edges, and nothing at all.
const SHAPES: &[(&[usize], usize, usize, usize)] = &[
    (&[], 1, 1, 1),
    (&[], 1, 300, 700),
    (&[], 1, 1, 600),
    (&[], 5, 130, 41),
    (&[], 16, 40, 300),
    (&[], 17, 33, 29),
    (&[], 70, 600, 90),
    (&[3], 1, 65, 33),
    (&[2, 3], 4, 17, 9),
    (&[40], 20, 30, 30),
    (&[2], 3, 0, 5),
    (&[], 0, 4, 5),
    (&[], 4, 3, 0),
    (&[0], 2, 2, 2),
];

fn shapes(batch: &[usize], m: usize, k: usize, n: usize) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
    let with = |x, y| [batch, &[x, y]].concat();
    (with(m, k), with(k, n), with(m, n))
}

fn check<T: Real>() {
    let mut rng = StdRng::seed_from_u64(1);
    for round in 0..6 {
        for &(batch, m, k, n) in SHAPES {
            let (a_shape, b_shape, shape) = shapes(batch, m, k, n);
            let repeat: Vec<usize> = if round % 2 == 0 { (0..batch.len()).collect() } else { vec![] };
            let a = floats::<T>(&mut rng, &a_shape, if round == 5 { &repeat } else { &[] });
            let b = floats::<T>(&mut rng, &b_shape, &repeat);
            let leading: Vec<usize> = (0..shape.len() - 1).collect();
            let bias = (round % 3 != 0).then(|| floats::<T>(&mut rng, &shape, &leading));
            let mut out = vec![T::narrow(f32::NAN); shape.iter().product()];
            product(a.view(), b.view(), bias.as_ref().map(|b| b.view()), &mut out);
            for (i, &got) in out.iter().enumerate() {
                let (row, j) = (i / n, i % n);
                let (mut at, mut rest) = (vec![0; batch.len()], row / m);
                for (axis, &size) in batch.iter().enumerate().rev() {
                    (at[axis], rest) = (rest % size, rest / size);
                }
                let last = |x, y| [&at[..], &[x, y]].concat();
                let first = bias.as_ref().map_or(0.0, |b| f64::from(b.at(&last(row % m, j)).widen()));
                let (mut want, mut size) = (first, first.abs());
                for l in 0..k {
                    let term =
                        f64::from(a.at(&last(row % m, l)).widen()) * f64::from(b.at(&last(l, j)).widen());
                    want += term;
                    size += term.abs();
                }
                // The sum of K products in any order.
                near(got, want, (k + 2) as f64 * 6e-8 * size, (batch, m, k, n, i, round));
            }
        }
    }
}

#[test]
fn products_are_right_in_f32() {
    check::<f32>();
}

#[test]
fn products_are_right_in_f16() {
    check::<f16>();
}

#[test]
fn products_are_right_in_bf16() {
    check::<bf16>();
}

#[test]
fn integers_wrap() {
    fn check<T: integer::Whole + std::fmt::Debug + PartialEq>(
        value: impl Fn(&mut StdRng) -> T,
        wide: impl Fn(T) -> i128,
        narrow: impl Fn(i128) -> T,
    ) {
        let mut rng = StdRng::seed_from_u64(2);
        for &(batch, m, k, n) in SHAPES.iter().filter(|s| s.0.len() < 2) {
            let (a_shape, b_shape, shape) = shapes(batch, m, k, n);
            let a = Owned::new(&mut rng, &a_shape, &[], T::zeroed(), &value);
            let b = Owned::new(
                &mut rng,
                &b_shape,
                if batch.is_empty() { &[] } else { &[0] },
                T::zeroed(),
                &value,
            );
            let bias = Owned::new(&mut rng, &[n], &[], T::zeroed(), &value);
            let mut out = vec![T::zeroed(); shape.iter().product()];
            integer::product(a.view(), b.view(), Some(bias.view()), &mut out);
            for (i, &got) in out.iter().enumerate() {
                let (b_at, row, j) = (i / (m * n), i / n % m, i % n);
                let at = |x, y| if batch.is_empty() { vec![x, y] } else { vec![b_at, x, y] };
                // Exact: every partial sum fits in i128.
                let sum: i128 = (0..k).map(|l| wide(a.at(&at(row, l))) * wide(b.at(&at(l, j)))).sum();
                assert_eq!(got, narrow(sum + wide(bias.at(&[j]))));
            }
        }
    }
    check::<i32>(|r| r.random(), i128::from, |v| v as i32);
    check::<u32>(|r| r.random(), i128::from, |v| v as u32);
    check::<u8>(|r| r.random(), i128::from, |v| v as u8);
    check::<i8>(|r| r.random(), i128::from, |v| v as i8);
    // Of all 64 bits, a sum of products may not fit in i128.
    check::<i64>(|r| r.random_range(-1 << 60..1 << 60), i128::from, |v| v as i64);
}

#[test]
fn bits_do_not_depend_on_threads_or_addresses() {
    fn check<T: Real>(batch: &[usize], m: usize, k: usize, n: usize, transposed: bool) {
        let mut rng = StdRng::seed_from_u64(3);
        let (a_shape, b_shape, shape) = shapes(batch, m, k, n);
        let a = floats::<T>(&mut rng, &a_shape, &[]);
        let mut b =
            Owned::new(&mut rng, &b_shape, &[], T::narrow(0.0), |r| T::narrow(r.random_range(-1.0..1.0)));
        if batch.is_empty() {
            b.layout =
                Layout::strided(&b_shape, if transposed { [1, k] } else { [n, 1] }.as_slice()).unwrap();
        }
        stable(|shift| {
            let (a, b) = (a.moved(shift), b.moved(shift));
            let mut out = vec![T::narrow(0.0); shift + shape.iter().product::<usize>()];
            product(a.view(), b.view(), None, &mut out[shift..]);
            out.split_off(shift)
        });
    }
    for transposed in [false, true] {
        check::<f32>(&[], 1, 576, 1536, transposed);
        check::<f32>(&[], 7, 300, 700, transposed);
        check::<f32>(&[], 150, 600, 200, transposed);
        check::<bf16>(&[], 1, 576, 1536, transposed);
        check::<f16>(&[], 150, 300, 200, transposed);
    }
    check::<f32>(&[12], 33, 40, 50, false);
}

#[test]
fn shared_weights_become_one_product() {
    let view = |shape: &[usize], strides: &[usize]| Strided {
        data: &[0.0f32; 0][..],
        layout: Layout::strided(shape, strides).unwrap(),
    };
    let weight = view(&[8, 1, 4, 5], &[0, 0, 1, 4]);
    let p = Problem::new(&view(&[8, 1, 1, 4], &[4, 9, 7, 1]), &weight);
    assert_eq!((p.m, p.a_rs, p.batches(), p.batch.len()), (8, 4, 1, 0));
    let p = Problem::new(&view(&[8, 1, 2, 4], &[9, 0, 4, 1]), &weight);
    assert_eq!((p.m, p.batches()), (2, 8));
}

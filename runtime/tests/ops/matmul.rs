use graphable::{Number, bf16, f16, ops};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    harness::{self, assert_close, cases, for_types, in_step, input, param, part_of, shape, size},
    reference::{Array, matmul},
};

/// Integers multiply exactly; floats are compared with room for a sum.
const SLACK: f64 = 4.0;

fn transposed(x: &Array) -> Array {
    let rank = x.shape.len();
    let mut shape = x.shape.clone();
    shape.swap(rank - 2, rank - 1);
    Array::from_fn(&shape, |index| {
        let mut source = index.to_vec();
        source.swap(rank - 2, rank - 1);
        x.at(&source)
    })
}

fn products<T: Number>() {
    cases(50, |step, rng| {
        let batch = shape(rng, 0, 2);
        let (m, k, n) = (size(rng), size(rng), size(rng));
        let with =
            |front: Vec<usize>, last: [usize; 2]| -> Vec<usize> { front.into_iter().chain(last).collect() };
        let (sa, sb) = (with(part_of(rng, &batch), [m, k]), with(part_of(rng, &batch), [k, n]));
        let (a, ha) = input::<T>(step, rng, &sa, (-3.0, 3.0));
        let (b, hb) = input::<T>(step, rng, &sb, (-3.0, 3.0));
        let want = wrapped::<T>(matmul(&ha, &hb));
        assert_close(step, &ops::matmul(&a, &b).unwrap(), &want, SLACK);
        let rank = b.rank();
        let bt = ops::transpose(&b, rank - 2, rank - 1).unwrap();
        assert_close(step, &ops::matmul_nt(&a, &bt).unwrap(), &want, SLACK);
        let bt = ops::contiguous(&bt).unwrap();
        assert_close(step, &ops::matmul_nt(&a, &bt).unwrap(), &want, SLACK);
    });
}

/// Small enough products never wrap in more than 8 bits.
fn wrapped<T: Number>(x: Array) -> Array {
    if T::DTYPE.is_float() { x } else { x.map(harness::wrapped::<T>) }
}

#[test]
fn batched_products_with_broadcasting_and_transposes() {
    for_types!(products: f32, f16, bf16, f64, i32, i64, i8, u32, u8);
}

fn large<T: Number>() {
    in_step(|step| {
        let rng = &mut StdRng::seed_from_u64(7);
        for (m, k, n) in [(1, 257, 130), (33, 64, 65), (130, 70, 3), (64, 300, 64)] {
            let (a, ha) = input::<T>(step, rng, &[m, k], (-1.0, 1.0));
            let (b, hb) = input::<T>(step, rng, &[n, k], (-1.0, 1.0));
            let want = wrapped::<T>(matmul(&ha, &transposed(&hb)));
            assert_close(step, &ops::matmul_nt(&a, &b).unwrap(), &want, 10.0);
            assert_close(step, &ops::linear(&a, &b).unwrap(), &want, 10.0);
        }
    });
}

#[test]
fn large_products() {
    for_types!(large: f32, f16, bf16, i32);
}

fn linears<T: Number>() {
    cases(50, |step, rng| {
        let mut dims = shape(rng, 1, 4);
        if rng.random_bool(0.3) {
            dims[0] = dims[0].max(1);
        }
        let (k, n) = (dims[dims.len() - 1], size(rng));
        let (x, hx) = input::<T>(step, rng, &dims, (-3.0, 3.0));
        let (w, hw) = input::<T>(step, rng, &[n, k], (-3.0, 3.0));
        let (b, hb) = input::<T>(step, rng, &[n], (-3.0, 3.0));
        let mut out = dims.clone();
        *out.last_mut().unwrap() = n;
        let plain = Array::from_fn(&out, |index| {
            let (&j, lead) = index.split_last().unwrap();
            (0..k).map(|i| hx.at(&[lead, &[i]].concat()) * hw.at(&[j, i])).sum()
        });
        let biased = Array::from_fn(&out, |index| plain.at(index) + hb.at(&index[index.len() - 1..]));
        assert_close(step, &ops::linear(&x, &w).unwrap(), &wrapped::<T>(plain), SLACK);
        assert_close(step, &ops::linear_bias(&x, &w, &b).unwrap(), &wrapped::<T>(biased), SLACK);
    });
}

#[test]
fn linear_layers() {
    for_types!(linears: f32, f16, bf16, f64, i64, i32, u32, u8);
}

#[test]
fn weights_are_parameters() {
    let mut rt = graphable::Runtime::new(harness::device()).unwrap();
    let rng = &mut StdRng::seed_from_u64(1);
    let (w, hw) = param::<f32>(&rt, rng, &[5, 3]);
    let (b, hb) = param::<f32>(&rt, rng, &[5]);
    let step = rt.step().unwrap();
    let (x, hx) = input::<f32>(&step, rng, &[2, 3], (-1.0, 1.0));
    let product = matmul(&hx, &transposed(&hw));
    let want = Array::from_fn(&[2, 5], |i| product.at(i) + hb.at(&i[1..]));
    assert_close(&step, &ops::linear_bias(&x, &w, &b).unwrap(), &want, 2.0);
    assert_close(&step, &ops::matmul_nt(&x, &w).unwrap(), &product, 2.0);
}

#[test]
fn slices_of_a_projection_multiply_without_a_copy() {
    in_step(|step| {
        let rng = &mut StdRng::seed_from_u64(3);
        let (x, hx) = input::<f32>(step, rng, &[2, 3, 8], (-1.0, 1.0));
        let (w, hw) = input::<f32>(step, rng, &[4, 4], (-1.0, 1.0));
        let part = ops::narrow(&x, 2, 4, 4).unwrap();
        let host = Array::from_fn(&[2, 3, 4], |i| hx.at(&[i[0], i[1], i[2] + 4]));
        assert_close(step, &ops::linear(&part, &w).unwrap(), &matmul(&host, &transposed(&hw)), 2.0);
        // Here the leading dimensions cannot be one: the batch stays.
        let part = ops::narrow(&ops::transpose(&x, 0, 1).unwrap(), 2, 0, 4).unwrap();
        let host = Array::from_fn(&[3, 2, 4], |i| hx.at(&[i[1], i[0], i[2]]));
        assert_close(step, &ops::linear(&part, &w).unwrap(), &matmul(&host, &transposed(&hw)), 2.0);
    });
}

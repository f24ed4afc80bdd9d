//! What does not fit is refused, with the class of error that the documentation names.

use graphable::{
    Error, Param, Runtime, Scalar, State,
    ops::{self, AttentionMask, RopeConfig, RopeStyle},
};

use crate::harness::{device, in_step, is_argument, is_axis, is_shape};

#[test]
fn broadcasting() {
    in_step(|step| {
        let a = ops::zeros::<f32>(step.scope(), &[2, 3]).unwrap();
        let b = ops::zeros::<f32>(step.scope(), &[2, 4]).unwrap();
        match ops::add(&a, &b) {
            Err(error @ Error::Shape { op: "add", .. }) => {
                let text = error.to_string();
                assert!(
                    text.contains("[2, 3]") && text.contains("[2, 4]") && text.contains("dimension 1"),
                    "{text}"
                );
            }
            other => panic!("{other:?}"),
        }
        assert!(is_shape(ops::silu_mul(&a, &b)) && is_shape(ops::lt(&a, &b)));
        let empty = ops::zeros::<f32>(step.scope(), &[0]).unwrap();
        assert!(is_shape(ops::mul(&a, &empty)));
        let cond = ops::zeros::<bool>(step.scope(), &[5]).unwrap();
        assert!(is_shape(ops::where_(&cond, &a, &a)));
        assert!(is_shape(ops::broadcast_to(&a, &[3])) && is_shape(ops::broadcast_to(&a, &[3, 3])));
        assert!(is_shape(Scalar::from_tensor(empty)));
    });
}

#[test]
fn values() {
    in_step(|step| {
        let x = ops::zeros::<f32>(step.scope(), &[2, 4]).unwrap();
        let w = ops::zeros::<f32>(step.scope(), &[4]).unwrap();
        assert!(is_argument(ops::scale(&x, f32::NAN)));
        assert!(is_argument(ops::arange_step::<f32>(step.scope(), 2, f64::INFINITY, 1.0)));
        assert!(
            is_argument(ops::rms_norm(&x, &w, -1.0)) && is_argument(ops::layer_norm(&x, &w, &w, f32::NAN))
        );
        assert!(is_argument(ops::l2_normalize(&x, 0, f32::INFINITY)));
        assert!(is_argument(ops::concat::<f32>(&[], 0)));
        assert!(matches!(ops::zeros::<f32>(step.scope(), &[1; 7]), Err(Error::Rank { rank: 7 })));
        assert!(matches!(ops::zeros::<u8>(step.scope(), &[usize::MAX, 3]), Err(Error::TooLarge { .. })));
    });
}

#[test]
fn axes() {
    in_step(|step| {
        let x = ops::zeros::<f32>(step.scope(), &[2, 3]).unwrap();
        let index = ops::zeros::<u32>(step.scope(), &[1]).unwrap();
        let mask = ops::zeros::<bool>(step.scope(), &[1]).unwrap();
        assert!(is_axis(ops::sum(&x, 2)) && is_axis(ops::mean(&x, 2)) && is_axis(ops::max(&x, 9)));
        assert!(is_axis(ops::argmax(&x, 2)) && is_axis(ops::masked_mean(&x, &mask, 2)));
        assert!(is_axis(ops::softmax(&x, 2)) && is_axis(ops::log_softmax(&x, 2)));
        assert!(is_axis(ops::l2_normalize(&x, 2, 0.1)) && is_axis(ops::gather(&x, 2, &index)));
        assert!(is_axis(ops::narrow(&x, 2, 0, 1)) && is_axis(ops::transpose(&x, 0, 2)));
        assert!(is_axis(ops::permute(&x, &[0, 2])) && is_axis(ops::unsqueeze(&x, 3)));
        assert!(is_axis(ops::squeeze(&x, 2)) && is_axis(ops::concat(&[&x], 2)));
        assert!(is_axis(ops::split(&x, 2, 1)) && is_axis(ops::split_at(&x, 2, &[1])));
        assert!(is_argument(ops::permute(&x, &[0, 0])) && is_argument(ops::permute(&x, &[0])));
        let scalar = ops::zeros::<f32>(step.scope(), ()).unwrap();
        assert!(is_axis(ops::sum(&scalar, 0)));
    });
}

#[test]
fn shapes() {
    in_step(|step| {
        let zeros = |shape: &[usize]| ops::zeros::<f32>(step.scope(), shape).unwrap();
        let x = zeros(&[2, 3]);
        assert!(is_shape(ops::reshape(&x, &[7])) && is_shape(ops::squeeze(&x, 0)));
        assert!(is_shape(ops::narrow(&x, 1, 2, 2)) && is_shape(ops::narrow(&x, 1, usize::MAX, 2)));
        assert!(is_shape(ops::split(&x, 1, 2)) && is_shape(ops::split(&x, 1, 0)));
        assert!(is_shape(ops::split_at(&x, 1, &[1, 1])) && is_shape(ops::split_at(&x, 1, &[usize::MAX, 4])));
        assert!(
            is_shape(ops::concat(&[&x, &zeros(&[2])], 0)) && is_shape(ops::concat(&[&x, &zeros(&[2, 4])], 0))
        );
        assert!(matches!(ops::unsqueeze(&zeros(&[1; 6]), 0), Err(Error::Rank { .. })));
        assert!(
            is_shape(ops::rms_norm(&x, &zeros(&[2]), 0.1)) && is_shape(ops::rms_norm(&zeros(&[]), &x, 0.1))
        );
        assert!(is_shape(ops::layer_norm(&x, &zeros(&[3]), &zeros(&[1]), 0.1)));
        let mask = ops::zeros::<bool>(step.scope(), &[2]).unwrap();
        assert!(is_shape(ops::masked_mean(&x, &mask, 1)));

        assert!(is_shape(ops::matmul(&x, &x)) && is_shape(ops::matmul(&x, &zeros(&[3]))));
        assert!(is_shape(ops::matmul_nt(&x, &zeros(&[3, 2]))) && is_shape(ops::matmul_nt(&x, &zeros(&[]))));
        assert!(is_shape(ops::matmul(&zeros(&[2, 2, 3]), &zeros(&[3, 3, 2]))));
        assert!(is_shape(ops::linear(&x, &zeros(&[3, 2]))) && is_shape(ops::linear(&zeros(&[]), &x)));
        assert!(is_shape(ops::linear_bias(&x, &zeros(&[5, 3]), &zeros(&[1]))));
    });
}

#[test]
fn indexing() {
    let mut rt = Runtime::new(device()).unwrap();
    let state = State::<f32>::zeros(&rt, &[4, 2, 3]).unwrap();
    let step = rt.step().unwrap();
    let zeros = |shape: &[usize]| ops::zeros::<f32>(step.scope(), shape).unwrap();
    let index = |shape: &[usize]| ops::zeros::<u32>(step.scope(), shape).unwrap();
    assert!(is_shape(ops::embedding(&index(&[2]), &zeros(&[3]))));
    assert!(matches!(ops::embedding(&index(&[1; 6]), &zeros(&[1, 1])), Err(Error::Rank { .. })));
    assert!(is_shape(ops::gather(&zeros(&[3]), 0, &index(&[1, 1]))));
    assert!(is_shape(ops::scatter_rows(&state, &index(&[2]), &zeros(&[1, 3]))));
    assert!(is_shape(ops::scatter_rows(&state, &index(&[1]), &zeros(&[1, 2]))));
    assert!(is_shape(ops::scatter_rows(&state, &index(&[4]), &zeros(&[4, 4, 2, 3]))));
    assert!(is_shape(ops::scatter_rows(&state, &index(&[]), &zeros(&[]))));
    assert!(is_shape(ops::store(&state, &zeros(&[4, 6]))));
}

#[test]
fn attention_and_rope() {
    in_step(|step| {
        let zeros = |shape: &[usize]| ops::zeros::<f32>(step.scope(), shape).unwrap();
        let index = |shape: &[usize]| ops::zeros::<u32>(step.scope(), shape).unwrap();
        let none = AttentionMask::None;
        let q = zeros(&[1, 2, 4, 8]);
        let kv = zeros(&[1, 3, 2, 8]);
        assert!(ops::attention(&q, &kv, &kv, none, 1.0).is_ok());
        assert!(is_argument(ops::attention(&q, &kv, &kv, none, f32::NAN)));
        assert!(is_shape(ops::attention(&q, &zeros(&[3, 2, 8]), &kv, none, 1.0)), "ranks");
        assert!(
            is_shape(ops::attention(&zeros(&[2, 8]), &zeros(&[2, 8]), &zeros(&[2, 8]), none, 1.0)),
            "rank 2"
        );
        assert!(is_shape(ops::attention(&q, &zeros(&[2, 3, 2, 8]), &kv, none, 1.0)), "batch");
        assert!(is_shape(ops::attention(&q, &zeros(&[1, 3, 2, 4]), &kv, none, 1.0)), "head size");
        assert!(is_shape(ops::attention(&q, &kv, &zeros(&[1, 4, 2, 8]), none, 1.0)), "rows");
        assert!(
            is_shape(ops::attention(&q, &zeros(&[1, 3, 3, 8]), &zeros(&[1, 3, 3, 8]), none, 1.0)),
            "groups"
        );
        let (two, square) = (index(&[2]), index(&[2, 2]));
        assert!(is_shape(ops::attention(&q, &kv, &kv, AttentionMask::Lengths(&two), 1.0)));
        assert!(is_shape(ops::attention(&q, &kv, &kv, AttentionMask::Positions(&square), 1.0)));

        let config = RopeConfig::new(1e4, RopeStyle::HalfSplit);
        assert!(
            is_shape(ops::rope(&zeros(&[2, 8]), &two, config)) && is_shape(ops::rope(&q, &square, config))
        );
        assert!(is_shape(ops::rope(&zeros(&[2, 1, 8]), &index(&[1, 2]), config)));
        assert!(is_argument(ops::rope(&zeros(&[2, 1, 7]), &two, config)));
        assert!(is_argument(ops::rope(&q, &two, RopeConfig { dim: Some(10), ..config })));
        assert!(is_argument(ops::rope(&q, &two, RopeConfig { theta: 0.0, ..config })));
    });
}

#[test]
fn two_runtimes() {
    let foreign = Runtime::new(device()).unwrap();
    let param = Param::<f32>::zeros(&foreign, &[2]).unwrap();
    in_step(|step| {
        let x = ops::zeros::<f32>(step.scope(), &[2]).unwrap();
        assert!(matches!(ops::add(&x, &param), Err(Error::DifferentRuntimes { op: "add" })));
        assert!(matches!(step.scope().view(&param), Err(Error::DifferentRuntimes { .. })));
    });
    let (mut one, mut two) = (Runtime::new(device()).unwrap(), Runtime::new(device()).unwrap());
    let (one, two) = (one.step().unwrap(), two.step().unwrap());
    let a = ops::zeros::<f32>(one.scope(), &[2]).unwrap();
    let b = ops::zeros::<f32>(two.scope(), &[2]).unwrap();
    assert!(matches!(ops::add(&a, &b), Err(Error::DifferentRuntimes { .. })));
    assert!(matches!(ops::concat(&[&a, &b], 0), Err(Error::DifferentRuntimes { .. })));
    assert!(matches!(one.read(&b), Err(Error::DifferentRuntimes { .. })));
}

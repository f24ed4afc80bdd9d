use graphable::{Real, bf16, f16, ops};
use rand::Rng;

use crate::{
    harness::{assert_close, assert_same, cases, for_types, in_step, input, shape},
    reference::{Array, softmax},
};

fn norms<T: Real>() {
    cases(50, |step, rng| {
        let dims = shape(rng, 1, 4);
        let axis = dims.len() - 1;
        let d = dims[axis];
        let (x, hx) = input::<T>(step, rng, &dims, (-3.0, 3.0));
        let (w, hw) = input::<T>(step, rng, &[d], (-2.0, 2.0));
        let (b, hb) = input::<T>(step, rng, &[d], (-2.0, 2.0));
        let eps = rng.random_range(1e-3f32..0.1); // which every type has
        let n = d as f64;

        let want = hx.map_lines(axis, |line| {
            let mean = line.iter().sum::<f64>() / n;
            let variance = line.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
            let scale = 1.0 / (variance + f64::from(eps)).sqrt();
            line.iter().enumerate().map(|(i, v)| (v - mean) * scale * hw.data[i] + hb.data[i]).collect()
        });
        assert_close(step, &ops::layer_norm(&x, &w, &b, eps).unwrap(), &want, 8.0);

        let want = hx.map_lines(axis, |line| {
            let square = line.iter().map(|v| v * v).sum::<f64>() / n;
            let scale = 1.0 / (square + f64::from(eps)).sqrt();
            line.iter().enumerate().map(|(i, v)| v * scale * hw.data[i]).collect()
        });
        assert_close(step, &ops::rms_norm(&x, &w, eps).unwrap(), &want, 4.0);
    });
}

#[test]
fn layer_and_rms_norm() {
    for_types!(norms: f32, f16, bf16, f64);
}

fn axes<T: Real>() {
    cases(50, |step, rng| {
        let dims = shape(rng, 1, 4);
        let axis = rng.random_range(0..dims.len());
        let (x, host) = input::<T>(step, rng, &dims, (-5.0, 5.0));
        assert_close(step, &ops::softmax(&x, axis).unwrap(), &host.map_lines(axis, softmax), 2.0);
        let want = host.map_lines(axis, |line| softmax(line).iter().map(|p| p.ln()).collect());
        assert_close(step, &ops::log_softmax(&x, axis).unwrap(), &want, 2.0);
        let eps = 0.5f32;
        let want = host.map_lines(axis, |line| {
            let norm = line.iter().map(|v| v * v).sum::<f64>().sqrt().max(f64::from(eps));
            line.iter().map(|v| v / norm).collect()
        });
        assert_close(step, &ops::l2_normalize(&x, axis, eps).unwrap(), &want, 2.0);
    });
}

#[test]
fn softmax_and_l2_over_every_axis() {
    for_types!(axes: f32, f16, bf16, f64);
}

#[test]
fn softmax_neither_overflows_nor_divides_by_zero() {
    in_step(|step| {
        let inf = f32::NEG_INFINITY;
        let x = step.tensor(&[3, 2], &[1e30f32, 1e30, inf, inf, inf, -1e30]).unwrap();
        let got = ops::softmax(&x, 1).unwrap();
        assert_same(step, &got, &Array { shape: vec![3, 2], data: vec![0.5, 0.5, 0.0, 0.0, 0.0, 1.0] });
        let got = step.read(&ops::log_softmax(&x, 1).unwrap()).unwrap();
        assert_eq!(got[2..], [inf, inf, inf, 0.0]);
        let zeros = ops::zeros::<f32>(step.scope(), &[2, 3]).unwrap();
        assert_eq!(step.read(&ops::l2_normalize(&zeros, 1, 1e-6).unwrap()).unwrap(), [0.0; 6]);
    });
}

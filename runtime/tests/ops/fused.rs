//! Fused operations are those that they stand for, to the last bit where nothing else is rounded.

use graphable::{
    Error, Float, Real, Runtime, State, bf16, f16,
    ops::{self, RopeConfig, RopeStyle},
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    harness::{assert_close, assert_same, cases, device, for_types, in_step, input, is_shape, size, state},
    reference::Array,
};

fn added_norms<T: Real>() {
    cases(60, |step, rng| {
        let mut dims = crate::harness::shape(rng, 0, 3);
        // Rows that vectors like, and rows that they don't.
        dims.push(if rng.random_bool(0.5) { 8 * rng.random_range(1..40) } else { size(rng) });
        let axis = dims.len() - 1;
        let (d, n) = (dims[axis], dims[axis] as f64);
        let (x, hx) = input::<T>(step, rng, &dims, (-3.0, 3.0));
        let (a, ha) = input::<T>(step, rng, &dims, (-3.0, 3.0));
        let (w, hw) = input::<T>(step, rng, &[d], (-2.0, 2.0));
        let eps = rng.random_range(1e-3f32..0.1);
        let (sum, y) = ops::add_rms_norm(&x, &a, &w, eps).unwrap();

        // Rounded before it is normalised.
        let total = Array::from_fn(&dims, |i| T::from_f64(hx.at(i) + ha.at(i)).to_f64());
        assert_same(step, &sum, &total);
        let want = total.map_lines(axis, |line| {
            let scale = 1.0 / (line.iter().map(|v| v * v).sum::<f64>() / n + f64::from(eps)).sqrt();
            line.iter().enumerate().map(|(i, v)| v * scale * hw.data[i]).collect()
        });
        assert_close(step, &y, &want, 4.0);
    });
}

#[test]
fn add_rms_norm_is_add_and_rms_norm() {
    for_types!(added_norms: f32, f16, bf16, f64);
}

#[test]
fn add_rms_norm_refuses_other_shapes() {
    in_step(|step| {
        let zeros = |shape: &[usize]| ops::zeros::<f32>(step.scope(), shape).unwrap();
        let x = zeros(&[2, 4]);
        assert!(is_shape(ops::add_rms_norm(&x, &zeros(&[4]), &zeros(&[4]), 1e-5)));
        assert!(is_shape(ops::add_rms_norm(&x, &x, &zeros(&[2]), 1e-5)));
        assert!(crate::harness::is_argument(ops::add_rms_norm(&x, &x, &zeros(&[4]), -1.0)));
    });
}

fn rotated_scatters<T: Float>() {
    let mut rt = Runtime::new(device()).unwrap();
    for seed in 0..60 {
        let rng = &mut StdRng::seed_from_u64(seed);
        let (rows, heads, d) = (rng.random_range(1..6), size(rng), 2 * rng.random_range(1..40));
        let lead = if rng.random_bool(0.5) { vec![rows] } else { vec![2, rows] };
        let all = lead.iter().product::<usize>();
        let (target, host) = state::<T>(&rt, rng, &[&lead[..], &[heads, d]].concat());
        let initial: Vec<T> = host.data.iter().map(|&v| T::from_f64(v)).collect();
        let twin = State::new(&rt, target.shape(), &initial).unwrap();
        let step = rt.step().unwrap();
        let n = size(rng);
        let (x, _) = input::<T>(&step, rng, &[n, heads, d], (-9.0, 9.0));
        let positions: Vec<u32> = (0..n).map(|_| rng.random_range(0..5000)).collect();
        let positions = step.tensor(&[n], &positions).unwrap();
        let index: Vec<u32> = (0..n)
            .map(|_| if rng.random_bool(0.2) { u32::MAX } else { rng.random_range(0..all as u32) })
            .collect();
        let index = step.tensor(&[n], &index).unwrap();
        let style = if rng.random_bool(0.5) { RopeStyle::Interleaved } else { RopeStyle::HalfSplit };
        let dim = rng.random_bool(0.5).then(|| 2 * rng.random_range(0..=d / 2));
        let config = RopeConfig { theta: 1e4, style, dim };
        ops::rope_scatter(&target, &index, &x, &positions, config).unwrap();
        ops::scatter_rows(&twin, &index, &ops::rope(&x, &positions, config).unwrap()).unwrap();
        let read = |s: &State<T>| step.read(&ops::load(step.scope(), s).unwrap()).unwrap();
        let (got, want) = (read(&target), read(&twin));
        assert!(got.iter().zip(&want).all(|(a, b)| a.to_f64() == b.to_f64()), "seed {seed}");
    }
}

#[test]
fn rope_scatter_is_rope_and_scatter_rows() {
    for_types!(rotated_scatters: f32, f16, bf16);
}

#[test]
fn rope_scatter_reports_rows_and_refuses_other_shapes() {
    let mut rt = Runtime::new(device()).unwrap();
    let target = State::<f32>::zeros(&rt, &[2, 1, 2]).unwrap();
    let step = rt.step().unwrap();
    let config = RopeConfig::new(1e4, RopeStyle::HalfSplit);
    let x = step.tensor(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0]).unwrap();
    let (index, at) = (step.tensor(&[2], &[2u32, 1]).unwrap(), step.tensor(&[2], &[0u32, 0]).unwrap());
    ops::rope_scatter(&target, &index, &x, &at, config).unwrap();
    let now = ops::load(step.scope(), &target).unwrap();
    let fault = step.read(&now);
    assert!(
        matches!(fault, Err(Error::IndexOutOfRange { op: "rope_scatter", index: 2, bound: 2 })),
        "{fault:?}"
    );
    assert_eq!(step.read(&now).unwrap(), [0.0, 0.0, 3.0, 4.0]);

    let one = step.tensor(&[1], &[0u32]).unwrap();
    assert!(is_shape(ops::rope_scatter(&target, &index, &x, &one, config)));
    assert!(is_shape(ops::rope_scatter(&target, &one, &x, &at, config)));
    let flat = step.tensor(&[2, 2], &[1.0f32; 4]).unwrap();
    assert!(is_shape(ops::rope_scatter(&target, &index, &flat, &at, config)));
    let odd = RopeConfig { dim: Some(3), ..config };
    assert!(crate::harness::is_argument(ops::rope_scatter(&target, &index, &x, &at, odd)));
}

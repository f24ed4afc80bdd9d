use graphable::{
    Float, bf16, f16,
    ops::{self, RopeConfig, RopeStyle},
};
use rand::Rng;

use crate::{
    harness::{assert_close, cases, for_types, in_step, indices, input, size},
    reference::Array,
};

fn rotated(x: &Array, position: impl Fn(&[usize]) -> f64, config: RopeConfig, dim: usize) -> Array {
    Array::from_fn(&x.shape, |index| {
        let (&d, head) = index.split_last().unwrap();
        if d >= dim {
            return x.at(index);
        }
        let half = dim / 2;
        let (pair, first, other) = match config.style {
            RopeStyle::Interleaved => (d / 2, d % 2 == 0, d ^ 1),
            RopeStyle::HalfSplit => (d % half, d < half, (d + half) % dim),
            other => panic!("no reference for {other:?}"),
        };
        let theta = f64::from(config.theta);
        let angle = position(index) * theta.powf(-2.0 * pair as f64 / dim as f64);
        let partner = x.at(&[head, &[other]].concat());
        let (sin, cos) = angle.sin_cos();
        if first { x.at(index) * cos - partner * sin } else { partner * sin + x.at(index) * cos }
    })
}

fn ropes<T: Float>() {
    cases(80, |step, rng| {
        let (b, t, h) = (size(rng), size(rng), size(rng));
        // On a GPU, heads of whole words are turned a word at a time.
        let half = if rng.random_bool(0.4) { 4 * rng.random_range(1..12) } else { rng.random_range(1..9) };
        let d = 2 * half;
        let batched = rng.random_bool(0.5);
        let shape: &[usize] = if batched { &[b, t, h, d] } else { &[t, h, d] };
        let (x, host) = input::<T>(step, rng, shape, (-2.0, 2.0));
        let each = batched && rng.random_bool(0.5);
        let places = if each { vec![b, t] } else { vec![t] };
        let (positions, hp) = indices(step, rng, &places, 60);
        let style = if rng.random_bool(0.5) { RopeStyle::Interleaved } else { RopeStyle::HalfSplit };
        let dim = rng.random_bool(0.5).then(|| 2 * rng.random_range(1..=half));
        let config = RopeConfig { theta: rng.random_range(100.0..20_000.0), style, dim };
        let time = usize::from(batched);
        let position = |i: &[usize]| if each { hp.at(&i[..2]) } else { hp.at(&[i[time]]) };
        let want = rotated(&host, position, config, dim.unwrap_or(d));
        assert_close(step, &ops::rope(&x, &positions, config).unwrap(), &want, 10.0);
    });
}

#[test]
fn rotates_both_ways_of_pairing() {
    for_types!(ropes: f32, f16, bf16);
}

#[test]
fn position_zero_changes_nothing() {
    in_step(|step| {
        let x = step.tensor(&[1, 1, 4], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        let zero = ops::zeros::<u32>(step.scope(), &[1]).unwrap();
        let config = RopeConfig::new(10_000.0, RopeStyle::HalfSplit);
        assert_eq!(step.read(&ops::rope(&x, &zero, config).unwrap()).unwrap(), [1.0, 2.0, 3.0, 4.0]);
        // A quarter turn mixes the pairs that the style names: theta^0 = 1, so position 1 is 1 radian.
        let one = ops::ones_like(&zero).unwrap();
        let got = step.read(&ops::rope(&x, &one, RopeConfig { dim: Some(2), ..config }).unwrap()).unwrap();
        let (sin, cos) = 1f32.sin_cos();
        assert!((got[0] - (cos - 2.0 * sin)).abs() < 1e-6 && (got[1] - (sin + 2.0 * cos)).abs() < 1e-6);
        assert_eq!(got[2..], [3.0, 4.0]);
    });
}

//! Losses, against f64.

use graphable::{Error, Real, Result, Runtime, Tensor, bf16, f16, ops};
use rand::Rng;

use crate::{
    harness::{
        assert_close, cases, device, for_types, in_step, input, is_argument, is_axis, is_shape, shape,
    },
    reference::{Array, softmax},
};

/// An operation on two tensors, and what computes it in f64.
type Known<T> =
    (for<'a, 's> fn(&'a Tensor<'s, T>, &'a Tensor<'s, T>) -> Result<Tensor<'s, T>>, fn(f64, f64) -> f64);

fn of_elements<T: Real>() {
    let all: [Known<T>; 5] = [
        (|a, b| ops::l1_loss(a, b), |a, b| (a - b).abs()),
        (|a, b| ops::mse_loss(a, b), |a, b| (a - b).powi(2)),
        (
            |a, b| ops::smooth_l1_loss(a, b),
            |a, b| {
                let d = (a - b).abs();
                if d < 1.0 { d * d / 2.0 } else { d - 0.5 }
            },
        ),
        (|a, b| ops::kl_div(a, b), |a, b| if b == 0.0 { 0.0 } else { b * (b.ln() - a) }),
        (
            |a, b| ops::binary_cross_entropy_with_logits(a, b),
            |a, b| {
                let p = 1.0 / (1.0 + (-a).exp());
                -(b * p.ln() + (1.0 - b) * (1.0 - p).ln())
            },
        ),
    ];
    for (loss, reference) in all {
        cases(20, |step, rng| {
            let dims = shape(rng, 0, 3);
            let (x, hx) = input::<T>(step, rng, &dims, (-4.0, 4.0));
            let (y, hy) = input::<T>(step, rng, &dims, (0.0, 1.0));
            let want = Array::from_fn(&dims, |i| reference(hx.at(i), hy.at(i)));
            assert_close(step, &loss(&x, &y).unwrap(), &want, 4.0);
        });
    }
}

#[test]
fn losses_of_elements() {
    for_types!(of_elements: f32, f16, bf16, f64);
    in_step(|step| {
        let x = step.tensor(&[3], &[f32::NEG_INFINITY, -3.0, 2.0]).unwrap();
        let zero = ops::zeros_like(&x).unwrap();
        assert_eq!(step.read(&ops::kl_div(&x, &zero).unwrap()).unwrap(), [0.0; 3]);
        // As in PyTorch, whose `xlogy(b, b)` has no logarithm of these.
        let odd = step.tensor(&[3], &[-0.5f32, f32::NAN, -2.0]).unwrap();
        let got = step.read(&ops::kl_div(&x, &odd).unwrap()).unwrap();
        assert!(got.iter().all(|v| v.is_nan()), "{got:?}");
    });
}

fn of_rows<T: Real>() {
    cases(40, |step, rng| {
        let mut dims = shape(rng, 1, 4);
        let classes = rng.random_range(1..7);
        *dims.last_mut().unwrap() = classes;
        let lead = &dims[..dims.len() - 1];
        let (x, host) = input::<T>(step, rng, &dims, (-4.0, 4.0));
        let labels = Array::from_fn(lead, |_| match rng.random_range(0..4) {
            0 => -100.0,
            _ => rng.random_range(0..classes) as f64,
        });
        let given: Vec<i32> = labels.data.iter().map(|&v| v as i32).collect();
        let given = step.tensor(lead, &given).unwrap();
        let smoothing = [0.0, 0.1, 1.0][rng.random_range(0..3)];
        let axis = dims.len() - 1;
        let want = |smoothing: f64| {
            Array::from_fn(lead, |index| {
                let logs: Vec<f64> = softmax(&host.line(axis, index)).into_iter().map(f64::ln).collect();
                let label = labels.at(index);
                if label < 0.0 {
                    return 0.0;
                }
                let all = -logs.iter().sum::<f64>() / logs.len() as f64;
                (1.0 - smoothing) * -logs[label as usize] + smoothing * all
            })
        };
        let loss = ops::cross_entropy(&x, &given, -100, smoothing).unwrap();
        assert_close(step, &loss, &want(smoothing), 8.0);
        let nll = ops::nll_loss(&x, &given, -100).unwrap();
        let picked = Array::from_fn(lead, |index| match labels.at(index) {
            label if label < 0.0 => 0.0,
            label => -host.line(axis, index)[label as usize],
        });
        assert_close(step, &nll, &picked, 1.0);
    });
}

#[test]
fn losses_of_labels() {
    for_types!(of_rows: f32, f16, bf16, f64);
}

/// What is left of a logit that is close to the largest.
#[test]
fn losses_of_large_logits_keep_their_digits() {
    in_step(|step| {
        let x = step.tensor(&[3, 2], &[1e4f32, 9990.0, 1000.0, 990.0, -1e6, -1e6]).unwrap();
        let labels = step.tensor(&[3], &[0, 0, 1]).unwrap();
        let losses = step.read(&ops::cross_entropy(&x, &labels, -100, 0.0).unwrap()).unwrap();
        let same = ops::nll_loss(&ops::log_softmax(&x, 1).unwrap(), &labels, -100).unwrap();
        let small = (-10.0f64).exp().ln_1p();
        for (loss, want) in losses.iter().zip([small, small, std::f64::consts::LN_2]) {
            assert!((f64::from(*loss) - want).abs() <= 1e-2 * want, "{loss}, not {want}");
        }
        for (a, b) in step.read(&same).unwrap().iter().zip(&losses) {
            assert!((a - b).abs() <= 1e-6 * b, "{a} and {b}");
        }
    });
}

#[test]
fn labels_are_classes() {
    for label in [3, -1, i32::MIN] {
        let mut rt = Runtime::new(device()).unwrap();
        let step = rt.step().unwrap();
        let x = ops::zeros::<f32>(step.scope(), &[2, 3]).unwrap();
        let labels = step.tensor(&[2], &[0, label]).unwrap();
        let loss = ops::cross_entropy(&x, &labels, -100, 0.0).unwrap();
        let error = step.read(&loss).unwrap_err();
        assert!(matches!(error, Error::IndexOutOfRange { bound: 3, .. }), "{error}");
        let named = match label {
            0.. => format!("index {label} is out"),
            _ => format!("index {} ({label} as an i32) is out", label as u32),
        };
        assert!(error.to_string().contains(&named), "{named} in {error}");
    }
}

#[test]
fn misuse_is_refused() {
    in_step(|step| {
        let x = ops::zeros::<f32>(step.scope(), &[2, 3]).unwrap();
        let labels = |dims: &[usize]| ops::zeros::<i32>(step.scope(), dims).unwrap();
        assert!(is_shape(ops::cross_entropy(&x, &labels(&[3]), 0, 0.0)));
        assert!(is_shape(ops::cross_entropy(&x, &labels(&[1]), 0, 0.0)), "labels do not broadcast");
        assert!(
            is_shape(ops::nll_loss(&x, &labels(&[]), 0)) && is_shape(ops::nll_loss(&x, &labels(&[2, 3]), 0))
        );
        assert!(is_shape(ops::nll_loss(
            &ops::zeros::<f32>(step.scope(), &[2, 0]).unwrap(),
            &labels(&[2]),
            0
        )));
        let scalar = ops::zeros::<f32>(step.scope(), ()).unwrap();
        assert!(is_axis(ops::cross_entropy(&scalar, &labels(&[]), 0, 0.0)));
        for smoothing in [-0.1, 1.1, f32::NAN] {
            assert!(is_argument(ops::cross_entropy(&x, &labels(&[2]), 0, smoothing)));
        }
        assert!(is_shape(ops::mse_loss(&x, &ops::zeros::<f32>(step.scope(), &[4]).unwrap())));
    });
}

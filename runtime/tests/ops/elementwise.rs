use graphable::{DType, Element, Float, Number, Real, Result, Step, Tensor, bf16, f16, ops};
use rand::Rng;

use crate::{
    harness::{assert_close, assert_same, cases, for_types, in_step, input, part_of, shape},
    reference::{Array, broadcast_shape, erf},
};

fn binary<T: Number>(
    range: (f64, f64),
    op: impl for<'s> Fn(&Tensor<'s, T>, &Tensor<'s, T>) -> Result<Tensor<'s, T>>,
    reference: impl Fn(f64, f64) -> f64,
) {
    cases(60, |step, rng| {
        let all = shape(rng, 0, 4);
        let (sa, sb) = (part_of(rng, &all), part_of(rng, &all));
        let (a, ha) = input::<T>(step, rng, &sa, range);
        let (b, hb) = input::<T>(step, rng, &sb, range);
        let want = Array::from_fn(&broadcast_shape(&[&sa, &sb]), |i| reference(ha.at(i), hb.at(i)));
        assert_close(step, &op(&a, &b).unwrap(), &want, 1.0);
    });
}

/// An exact integer result as `T` wraps it.
fn wrapped<T: Element>(value: i128) -> f64 {
    match T::DTYPE {
        DType::I32 => f64::from(value as i32),
        DType::U32 => f64::from(value as u32),
        DType::U8 => f64::from(value as u8),
        DType::I8 => f64::from(value as i8),
        _ => value as f64,
    }
}

fn float_arithmetic<T: Real>() {
    binary::<T>((-3.0, 3.0), |a, b| ops::add(a, b), |a, b| a + b);
    binary::<T>((-3.0, 3.0), |a, b| ops::sub(a, b), |a, b| a - b);
    binary::<T>((-3.0, 3.0), |a, b| ops::mul(a, b), |a, b| a * b);
    binary::<T>((0.5, 3.0), |a, b| ops::div(a, b), |a, b| a / b);
    binary::<T>((-3.0, 3.0), |a, b| ops::silu_mul(a, b), |a, b| a / (1.0 + (-a).exp()) * b);
}

#[test]
fn floats_add_subtract_multiply_divide() {
    for_types!(float_arithmetic: f32, f16, bf16, f64);
}

fn integer_arithmetic<T: Number>() {
    let range = (-300.0, 300.0);
    let int = |v: f64| v as i128;
    binary::<T>(range, |a, b| ops::add(a, b), |a, b| wrapped::<T>(int(a) + int(b)));
    binary::<T>(range, |a, b| ops::sub(a, b), |a, b| wrapped::<T>(int(a) - int(b)));
    binary::<T>(range, |a, b| ops::mul(a, b), |a, b| wrapped::<T>(int(a) * int(b)));
    binary::<T>(
        (-3.0, 3.0),
        |a, b| ops::div(a, b),
        |a, b| {
            if b == 0.0 { 0.0 } else { wrapped::<T>(int(a) / int(b)) }
        },
    );
}

#[test]
fn integers_wrap_and_divide_by_zero_to_zero() {
    for_types!(integer_arithmetic: i32, i64, i8, u32, u8);
    in_step(|step| {
        let a = step.tensor(&[3], &[i32::MIN, i32::MAX, 7]).unwrap();
        let b = step.tensor(&[3], &[-1, 1, 0]).unwrap();
        assert_eq!(step.read(&ops::div(&a, &b).unwrap()).unwrap(), [i32::MIN, i32::MAX, 0]);
        assert_eq!(step.read(&ops::add(&a, &b).unwrap()).unwrap(), [i32::MAX, i32::MIN, 7]);
        assert_eq!(step.read(&ops::neg(&a).unwrap()).unwrap(), [i32::MIN, -i32::MAX, -7]);
        let large = step.tensor(&[2], &[u32::MAX, 3]).unwrap();
        assert_eq!(step.read(&ops::mul(&large, &large).unwrap()).unwrap(), [1, 9]);
    });
}

fn unary<T: Number>(
    step: &Step<'_>,
    rng: &mut rand::rngs::StdRng,
    range: (f64, f64),
    op: impl for<'s> Fn(&Tensor<'s, T>) -> Result<Tensor<'s, T>>,
    reference: impl Fn(f64) -> f64,
) {
    let shape = shape(rng, 0, 4);
    let (x, host) = input::<T>(step, rng, &shape, range);
    assert_close(step, &op(&x).unwrap(), &host.map(reference), 1.0);
}

fn functions<T: Real>() {
    cases(25, |step, rng| {
        let wide = (-4.0, 4.0);
        unary::<T>(step, rng, wide, |x| ops::neg(x), |x| -x);
        unary::<T>(step, rng, wide, |x| ops::exp(x), f64::exp);
        unary::<T>(step, rng, (0.1, 9.0), |x| ops::log(x), f64::ln);
        unary::<T>(step, rng, (0.0, 9.0), |x| ops::sqrt(x), f64::sqrt);
        unary::<T>(step, rng, (0.1, 9.0), |x| ops::rsqrt(x), |x| 1.0 / x.sqrt());
        unary::<T>(step, rng, wide, |x| ops::tanh(x), f64::tanh);
        unary::<T>(step, rng, wide, |x| ops::relu(x), |x| x.max(0.0));
        unary::<T>(step, rng, wide, |x| ops::silu(x), |x| x / (1.0 + (-x).exp()));
        unary::<T>(
            step,
            rng,
            wide,
            |x| ops::gelu_tanh(x),
            |x| {
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
                0.5 * x * (1.0 + inner.tanh())
            },
        );
        let factor = rng.random_range(-2.0f32..2.0);
        unary::<T>(step, rng, wide, |x| ops::scale(x, factor), |x| x * f64::from(factor));
    });
}

/// Of which the reference is not good enough for one: `doubles.rs` has another one.
fn functions_of_floats<T: Float>() {
    cases(25, |step, rng| {
        let wide = (-4.0, 4.0);
        unary::<T>(step, rng, wide, |x| ops::gelu(x), |x| x * 0.5 * (1.0 + erf(x / 2f64.sqrt())));
    });
}

#[test]
fn functions_of_one_argument() {
    for_types!(functions: f32, f16, bf16, f64);
    for_types!(functions_of_floats: f32, f16, bf16);
}

#[test]
fn special_values_are_those_of_ieee_754() {
    in_step(|step| {
        let x = step.tensor(&[5], &[0.0f32, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN]).unwrap();
        let all = |op: fn(f64) -> f64| Array {
            shape: vec![5],
            data: step.read(&x).unwrap().iter().map(|&v| op(f64::from(v))).collect(),
        };
        assert_same(step, &ops::log(&x).unwrap(), &all(f64::ln));
        assert_same(step, &ops::sqrt(&x).unwrap(), &all(f64::sqrt));
        assert_same(step, &ops::rsqrt(&x).unwrap(), &all(|v| 1.0 / v.sqrt()));
        assert_close(step, &ops::exp(&x).unwrap(), &all(f64::exp), 1.0);
        assert_close(step, &ops::tanh(&x).unwrap(), &all(f64::tanh), 1.0);
        let zero = ops::zeros_like(&x).unwrap();
        assert_same(step, &ops::div(&x, &zero).unwrap(), &all(|v| v / 0.0));
    });
}

/// Each function where it is not between two numbers.
fn ends<T: Real>() {
    in_step(|step| {
        let values = [f64::NAN, f64::INFINITY, 0.0, -0.0, -1.0];
        let x = step.tensor(&[5], &values.map(T::from_f64)).unwrap();
        let check = |y: Result<Tensor<'_, T>>, reference: &dyn Fn(f64) -> f64| {
            let want = Array { shape: vec![5], data: values.map(reference).to_vec() };
            assert_close(step, &y.unwrap(), &want, 1.0);
        };
        check(ops::neg(&x), &|x| -x);
        check(ops::exp(&x), &f64::exp);
        check(ops::log(&x), &f64::ln);
        check(ops::sqrt(&x), &f64::sqrt);
        check(ops::rsqrt(&x), &|x| 1.0 / x.sqrt());
        check(ops::tanh(&x), &f64::tanh);
        check(ops::relu(&x), &|x| if x.is_nan() { x } else { x.max(0.0) });
        check(ops::gelu(&x), &|x| match x {
            f64::INFINITY => x,
            // To all places of an `f64`.
            -1.0 => -0.15865525393145707,
            _ => x * normal_cdf(x),
        });
        check(ops::gelu_tanh(&x), &|x| {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            0.5 * x * (1.0 + inner.tanh())
        });
        check(ops::silu(&x), &|x| x / (1.0 + (-x).exp()));
        check(ops::silu_mul(&x, &x), &|x| x / (1.0 + (-x).exp()) * x);
    });
}

#[test]
fn functions_keep_nan_and_infinities() {
    for_types!(ends: f32, f16, bf16, f64);
    in_step(|step| {
        let x = step.tensor(&[3], &[f32::NAN, f32::INFINITY, -0.0]).unwrap();
        let y = step.read(&ops::scale(&x, -0.75).unwrap()).unwrap();
        assert!(y[0].is_nan() && y[1..] == [f32::NEG_INFINITY, 0.0], "{y:?}");
    });
}

/// `Phi(x)` by Simpson's rule from far out.
fn normal_cdf(x: f64) -> f64 {
    if x > 0.0 {
        return 1.0 - normal_cdf(-x);
    }
    let n = 2000;
    let width = 8.0 / f64::from(n);
    let density = |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let sum: f64 = (0..=n)
        .map(|i| {
            let weight = if i == 0 || i == n { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
            weight * density(x - f64::from(i) * width)
        })
        .sum();
    sum * width / 3.0
}

#[test]
fn small_results_of_activations_keep_their_digits() {
    in_step(|step| {
        let x: Vec<f32> = (0..400).map(|i| i as f32 * 0.0401 - 8.0).collect();
        let t = step.tensor(&[400], &x).unwrap();
        let check = |y: Result<Tensor<'_, f32>>, what: &str, reference: &dyn Fn(f64) -> f64| {
            for (x, y) in x.iter().zip(step.read(&y.unwrap()).unwrap()) {
                let want = reference(f64::from(*x));
                assert!((f64::from(y) - want).abs() <= 1e-6 * want.abs(), "{what}({x}) = {y}, not {want}");
            }
        };
        check(ops::gelu(&t), "gelu", &|x| x * normal_cdf(x));
        check(ops::silu(&t), "silu", &|x| x / (1.0 + (-x).exp()));
        check(ops::exp(&t), "exp", &f64::exp);
    });
}

#[test]
fn parameters_state_and_scalars_are_operands() {
    let mut rt = graphable::Runtime::new(crate::harness::device()).unwrap();
    let p = graphable::Param::new(&rt, &[2], &[10.0f32, 20.0]).unwrap();
    let s = graphable::State::new(&rt, &[2], &[100.0f32, 200.0]).unwrap();
    let step = rt.step().unwrap();
    let x = step.tensor(&[2], &[1.0f32, 2.0]).unwrap();
    let sum = ops::add(&ops::add(&x, &p).unwrap(), &s).unwrap();
    let one = graphable::Scalar::from_tensor(step.tensor(&[], &[0.5f32]).unwrap()).unwrap();
    let sum = ops::add(&sum, &one).unwrap();
    let twice: &&Tensor<'_, f32> = &&sum;
    let sum = ops::add(&one, twice).unwrap();
    assert_eq!(step.read(&sum).unwrap(), [112.0, 223.0]);
    let view = step.scope().view(&p).unwrap();
    assert_eq!(step.read(&ops::scale(&view, 0.5).unwrap()).unwrap(), [5.0, 10.0]);
}

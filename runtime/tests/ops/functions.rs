//! Functions of one and two arguments, against f64.

use graphable::{
    DType, Element, Error, Float, Number, Param, Real, Result, Runtime, Step, Tensor, bf16, f16, ops,
};
use rand::{Rng, rngs::StdRng};

use crate::{
    harness::{
        assert_close, assert_same, cases, device, for_types, in_step, input, is_argument, is_shape, part_of,
        shape,
    },
    reference::{Array, broadcast_shape, erf},
};

/// An operation on one tensor.
type One<T> = for<'a, 's> fn(&'a Tensor<'s, T>) -> Result<Tensor<'s, T>>;

/// A function, what computes it in f64, and where its result is at most some thousands and the condition is good.
type Known<T> = (&'static str, One<T>, fn(f64) -> f64, (f64, f64));

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn mathematical<T: Real>() -> Vec<Known<T>> {
    vec![
        ("sin", |x| ops::sin(x), f64::sin, (-4.0, 4.0)),
        ("cos", |x| ops::cos(x), f64::cos, (-4.0, 4.0)),
        ("tan", |x| ops::tan(x), f64::tan, (-1.0, 1.0)),
        ("asin", |x| ops::asin(x), f64::asin, (-1.0, 1.0)),
        ("acos", |x| ops::acos(x), f64::acos, (-1.0, 1.0)),
        ("atan", |x| ops::atan(x), f64::atan, (-4.0, 4.0)),
        ("sinh", |x| ops::sinh(x), f64::sinh, (-3.0, 3.0)),
        ("cosh", |x| ops::cosh(x), f64::cosh, (-3.0, 3.0)),
        ("asinh", |x| ops::asinh(x), f64::asinh, (-4.0, 4.0)),
        ("acosh", |x| ops::acosh(x), f64::acosh, (1.0, 9.0)),
        ("atanh", |x| ops::atanh(x), f64::atanh, (-0.9, 0.9)),
        ("exp2", |x| ops::exp2(x), f64::exp2, (-4.0, 4.0)),
        ("expm1", |x| ops::expm1(x), f64::exp_m1, (-4.0, 4.0)),
        ("log2", |x| ops::log2(x), f64::log2, (0.1, 9.0)),
        ("log10", |x| ops::log10(x), f64::log10, (0.1, 9.0)),
        ("log1p", |x| ops::log1p(x), f64::ln_1p, (-0.9, 9.0)),
        ("reciprocal", |x| ops::reciprocal(x), f64::recip, (0.1, 9.0)),
    ]
}

/// Of `f64`, the reference is not good enough: `doubles.rs` has another one.
fn error_functions<T: Float>() -> Vec<Known<T>> {
    vec![
        ("erf", |x| ops::erf(x), erf, (-4.0, 4.0)),
        ("erfc", |x| ops::erfc(x), |x| 1.0 - erf(x), (-4.0, 4.0)),
    ]
}

fn activations<T: Real>() -> Vec<Known<T>> {
    let wide = (-6.0, 6.0);
    vec![
        ("sigmoid", |x| ops::sigmoid(x), |x| 1.0 / (1.0 + (-x).exp()), wide),
        ("logsigmoid", |x| ops::logsigmoid(x), |x| -softplus(-x), wide),
        ("softplus", |x| ops::softplus(x), softplus, wide),
        ("softsign", |x| ops::softsign(x), |x| x / (1.0 + x.abs()), wide),
        ("mish", |x| ops::mish(x), |x| x * softplus(x).tanh(), wide),
        ("relu6", |x| ops::relu6(x), |x| x.clamp(0.0, 6.0), (-9.0, 9.0)),
        ("hardswish", |x| ops::hardswish(x), |x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0, wide),
        ("hardsigmoid", |x| ops::hardsigmoid(x), |x| (x + 3.0).clamp(0.0, 6.0) / 6.0, wide),
        (
            "selu",
            |x| ops::selu(x),
            |x| 1.0507009873554805 * if x > 0.0 { x } else { 1.6732632423543772 * x.exp_m1() },
            wide,
        ),
        ("tanhshrink", |x| ops::tanhshrink(x), |x| x - x.tanh(), wide),
        ("celu", |x| ops::celu(x, 0.5), |x| if x > 0.0 { x } else { 0.5 * (2.0 * x).exp_m1() }, wide),
        ("softshrink", |x| ops::softshrink(x, 0.75), |x| x - x.clamp(-0.75, 0.75), wide),
    ]
}

fn with_parameter<T: Real>() -> Vec<Known<T>> {
    let wide = (-6.0, 6.0);
    vec![
        ("elu", |x| ops::elu(x, 0.5), |x| if x > 0.0 { x } else { 0.5 * x.exp_m1() }, wide),
        ("leaky_relu", |x| ops::leaky_relu(x, 0.25), |x| if x > 0.0 { x } else { 0.25 * x }, wide),
    ]
}

/// Those whose results are exact.
fn exact<T: Real>() -> Vec<Known<T>> {
    let wide = (-5.0, 5.0);
    vec![
        ("floor", |x| ops::floor(x), f64::floor, wide),
        ("ceil", |x| ops::ceil(x), f64::ceil, wide),
        ("round", |x| ops::round(x), f64::round_ties_even, wide),
        ("trunc", |x| ops::trunc(x), f64::trunc, wide),
        ("frac", |x| ops::frac(x), f64::fract, wide),
        ("abs", |x| ops::abs(x), f64::abs, wide),
        ("sign", |x| ops::sign(x), |x| if x == 0.0 { x } else { x.signum() }, wide),
        ("hardshrink", |x| ops::hardshrink(x, 1.5), |x| if x.abs() > 1.5 { x } else { 0.0 }, wide),
        ("threshold", |x| ops::threshold(x, -0.5, 20.0), |x| if x > -0.5 { x } else { 20.0 }, wide),
    ]
}

fn of_one<T: Real>(more: Vec<Known<T>>) {
    for (name, op, reference, range) in mathematical::<T>().into_iter().chain(activations()).chain(more) {
        cases(8, |step, rng| {
            let dims = shape(rng, 0, 4);
            let (x, host) = input::<T>(step, rng, &dims, range);
            println!("{name}");
            assert_close(step, &op(&x).unwrap(), &host.map(reference), 2.0);
        });
    }
    for (name, op, reference, range) in exact::<T>() {
        cases(8, |step, rng| {
            let dims = shape(rng, 0, 4);
            let (x, host) = input::<T>(step, rng, &dims, range);
            println!("{name}");
            assert_same(step, &op(&x).unwrap(), &host.map(reference));
        });
    }
}

#[test]
fn functions_of_one_float() {
    fn with_all<T: Float>() {
        of_one::<T>(error_functions().into_iter().chain(with_parameter()).collect());
    }
    for_types!(with_all: f32, f16, bf16);
    of_one::<f64>(with_parameter());
}

/// Where the reference has a number, so has the function; and the other way round.
#[test]
fn ends_are_those_of_f64() {
    in_step(|step| {
        let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5];
        let x = step.tensor(&[values.len()], &values).unwrap();
        for (name, op, reference, _) in
            mathematical::<f32>().into_iter().chain(exact()).chain(error_functions())
        {
            // The reference integrates.
            let known = |v: f64| match name {
                "erf" if v.is_infinite() => v.signum(),
                "erfc" if v.is_infinite() => 1.0 - v.signum(),
                _ => reference(v),
            };
            for (v, y) in values.iter().zip(step.read(&op(&x).unwrap()).unwrap()) {
                let want = if v.is_nan() { f64::NAN } else { known(f64::from(*v)) };
                let same = f64::from(y) == want || y.is_nan() && want.is_nan();
                assert!(same || (f64::from(y) - want).abs() < 1e-6, "{name}({v}) = {y}, not {want}");
            }
        }
        let ends = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        let x = step.tensor(&[3], &ends).unwrap();
        let check = |y: Result<Tensor<'_, f32>>, high: f32, low: f32| {
            let y = step.read(&y.unwrap()).unwrap();
            assert!(y[0].is_nan() && y[1..] == [high, low], "{y:?}");
        };
        let infinite = f32::INFINITY;
        check(ops::sigmoid(&x), 1.0, 0.0);
        check(ops::logsigmoid(&x), 0.0, -infinite);
        check(ops::softplus(&x), infinite, 0.0);
        check(ops::relu6(&x), 6.0, 0.0);
        check(ops::hardsigmoid(&x), 1.0, 0.0);
        check(ops::elu(&x, 2.0), infinite, -2.0);
        check(ops::selu(&x), infinite, -1.758_099_3);
        check(ops::celu(&x, 2.0), infinite, -2.0);
        check(ops::celu(&x, -2.0), infinite, -infinite);
        check(ops::hardshrink(&x, 0.5), infinite, -infinite);
        check(ops::softshrink(&x, 0.5), infinite, -infinite);
        check(ops::tanhshrink(&x), infinite, -infinite);
        check(ops::threshold(&x, 0.5, 3.0), infinite, 3.0);
        check(ops::leaky_relu(&x, 0.5), infinite, -infinite);
    });
}

/// The number with which elements are compared is one that they can be, and the ends of its range belong to it.
fn numbers_are_rounded<T: Real>() {
    in_step(|step| {
        for lambda in [0.5, 0.1, 1.0 / 3.0] {
            let rounded = T::from_f64(lambda);
            let x = step.tensor(&[2], &[rounded, T::from_f64(-lambda)]).unwrap();
            let is = |y: Result<Tensor<'_, T>>, want: f64| {
                let y: Vec<f64> = step.read(&y.unwrap()).unwrap().into_iter().map(T::to_f64).collect();
                assert_eq!(y, [want; 2], "{} with {lambda}", T::DTYPE);
            };
            is(ops::hardshrink(&x, lambda), 0.0);
            is(ops::softshrink(&x, lambda), 0.0);
            is(ops::threshold(&x, lambda, lambda), rounded.to_f64());
        }
        // A range without elements; and one of nothing but 0.
        let values = [2.0, -2.0, 0.0].map(T::from_f64);
        let x = step.tensor(&[3], &values).unwrap();
        assert_eq!(step.read(&ops::hardshrink(&x, -3.0).unwrap()).unwrap(), values);
        assert_eq!(step.read(&ops::softshrink(&x, 0.0).unwrap()).unwrap(), values);
        let infinite = ops::threshold(&x, 0.0, f64::NEG_INFINITY).unwrap();
        assert_eq!(
            step.read(&infinite).unwrap(),
            [2.0, f64::NEG_INFINITY, f64::NEG_INFINITY].map(T::from_f64)
        );
        let nothing = ops::threshold(&x, f64::NAN, 0.0).unwrap();
        assert_eq!(step.read(&nothing).unwrap(), values);
        let nan = step.read(&ops::threshold(&x, 9.0, f64::NAN).unwrap()).unwrap();
        assert!(nan.into_iter().all(|v| v.to_f64().is_nan()));
    });
}

#[test]
fn numbers_of_shrinks_are_those_of_elements() {
    for_types!(numbers_are_rounded: f32, f16, bf16, f64);
}

/// `x - tanh(x)` as `(x cosh(x) - sinh(x)) / cosh(x)`, the numerator as its series, of which no term cancels.
fn of_tanhshrink(x: f64) -> f64 {
    let (mut power, mut sum) = (x, 0.0);
    for k in 1..60 {
        let n = f64::from(2 * k);
        power *= x * x / (n * (n + 1.0));
        sum += n * power;
    }
    sum / x.cosh()
}

fn keep_their_digits<T: Real>(within: f64, farthest: f64) {
    in_step(|step| {
        let sizes = (1..60).map(|i| 1e-6 * 1.4f64.powi(i)).filter(|x| *x < 9.0);
        let near: Vec<f64> = sizes.chain([0.624, 0.625, 0.626]).flat_map(|x| [x, -x]).collect();
        let far: Vec<f64> = (1..=40).map(|i| farthest * f64::from(i) / 40.0).flat_map(|x| [x, -x]).collect();
        let check = |name: &str, op: One<T>, x: &[f64], known: &dyn Fn(f64) -> f64| {
            let x: Vec<T> = x.iter().map(|&x| T::from_f64(x)).collect();
            let y = op(&step.tensor(&[x.len()], &x).unwrap()).unwrap();
            for (x, y) in x.iter().zip(step.read(&y).unwrap()) {
                let (x, y) = (x.to_f64(), y.to_f64());
                let off = (y - known(x)).abs();
                assert!(off <= within * known(x).abs(), "{name}({x}) = {y}, not {}", known(x));
            }
        };
        check("tanhshrink", |x| ops::tanhshrink(x), &near, &of_tanhshrink);
        check("logsigmoid", |x| ops::logsigmoid(x), &near, &|x| -softplus(-x));
        check("logsigmoid", |x| ops::logsigmoid(x), &far, &|x| -softplus(-x));
    });
}

#[test]
fn small_results_of_activations_keep_their_digits() {
    keep_their_digits::<f32>(2e-6, 80.0);
    keep_their_digits::<f64>(5e-15, 700.0);
    in_step(|step| {
        let x = step.tensor(&[4], &[-3e38f32, -1e5, 1e5, 3e38]).unwrap();
        assert_eq!(step.read(&ops::logsigmoid(&x).unwrap()).unwrap(), [-3e38, -1e5, 0.0, 0.0]);
    });
}

#[test]
fn small_results_keep_their_digits() {
    in_step(|step| {
        let x: Vec<f32> = (1..200).map(|i| i as f32 * 1e-4).chain((1..80).map(|i| i as f32 * 0.1)).collect();
        let t = step.tensor(&[x.len()], &x).unwrap();
        // erf(z) = 2/sqrt(pi) * exp(-z^2) * sum of 2^n z^(2n+1) / (1*3*..*(2n+1)); no term cancels.
        let known = |z: f64| {
            let (mut term, mut sum) = (z, z);
            for n in 1..400 {
                term *= 2.0 * z * z / f64::from(2 * n + 1);
                sum += term;
            }
            std::f64::consts::FRAC_2_SQRT_PI * (-z * z).exp() * sum
        };
        for (x, y) in x.iter().zip(step.read(&ops::erf(&t).unwrap()).unwrap()) {
            let want = known(f64::from(*x));
            assert!((f64::from(y) - want).abs() <= 4e-7 * want, "erf({x}) = {y}, not {want}");
        }
        for (x, y) in x.iter().zip(step.read(&ops::erfc(&t).unwrap()).unwrap()) {
            let z = f64::from(*x);
            // Its continued fraction far out, where 1 - erf cancels.
            let fraction = (1..400).rev().fold(z, |f, k| z + f64::from(k) * 0.5 / f);
            let far = (-z * z).exp() / (fraction * std::f64::consts::PI.sqrt());
            let want = if z < 2.0 { 1.0 - known(z) } else { far };
            assert!((f64::from(y) - want).abs() <= 1e-6 * want, "erfc({x}) = {y}, not {want}");
        }
        for (x, y) in x.iter().zip(step.read(&ops::expm1(&t).unwrap()).unwrap()) {
            let want = f64::from(*x).exp_m1();
            assert!((f64::from(y) - want).abs() <= 4e-7 * want, "expm1({x}) = {y}, not {want}");
        }
        let x = [-0.999_999f32, -0.9999, -1e-6, 1e-3, 0.9999, 1.000_001, 1.1, 1e9, 2e38, -2e38];
        let t = step.tensor(&[x.len()], &x).unwrap();
        let [sinh, cosh, tanh] = [ops::asinh(&t), ops::acosh(&t), ops::atanh(&t)];
        let known: [fn(f64) -> f64; 3] = [f64::asinh, f64::acosh, f64::atanh];
        for (function, (y, of)) in [sinh, cosh, tanh].into_iter().zip(known).enumerate() {
            for (x, y) in x.iter().zip(step.read(&y.unwrap()).unwrap()) {
                let want = of(f64::from(*x));
                let off = (f64::from(y) - want).abs();
                assert!(
                    want.is_nan() && y.is_nan() || off <= 1e-6 * want.abs(),
                    "{function} of {x}: {y}, not {want}"
                );
            }
        }
    });
}

/// An operation on two tensors.
fn of_two<T: Number>(
    range: (f64, f64),
    op: impl for<'s> Fn(&Tensor<'s, T>, &Tensor<'s, T>) -> Result<Tensor<'s, T>>,
    reference: impl Fn(f64, f64) -> f64,
) {
    cases(30, |step, rng| {
        let all = shape(rng, 0, 4);
        let (sa, sb) = (part_of(rng, &all), part_of(rng, &all));
        let (a, ha) = input::<T>(step, rng, &sa, range);
        let (b, hb) = input::<T>(step, rng, &sb, range);
        let want = Array::from_fn(&broadcast_shape(&[&sa, &sb]), |i| reference(ha.at(i), hb.at(i)));
        assert_close(step, &op(&a, &b).unwrap(), &want, 3.0);
    });
}

fn numbers<T: Number>() {
    let range = (-9.0, 9.0);
    of_two::<T>(range, |a, b| ops::minimum(a, b), f64::min);
    of_two::<T>(range, |a, b| ops::maximum(a, b), f64::max);
    let unsigned = matches!(T::DTYPE, DType::U32 | DType::U8);
    cases(20, |step, rng| {
        let dims = shape(rng, 0, 4);
        let (x, host) = input::<T>(step, rng, &dims, range);
        let (low, high) = (part_of(rng, &dims), part_of(rng, &dims));
        let ((low, h_low), (high, h_high)) =
            (input::<T>(step, rng, &low, range), input::<T>(step, rng, &high, range));
        let want = Array::from_fn(&dims, |i| host.at(i).max(h_low.at(i)).min(h_high.at(i)));
        assert_same(step, &ops::clamp(&x, &low, &high).unwrap(), &want);
        assert_same(step, &ops::abs(&x).unwrap(), &host.map(f64::abs));
        assert_same(step, &ops::sign(&x).unwrap(), &host.map(|v| if v == 0.0 { v } else { v.signum() }));
        let square = host.map(|v| v * v);
        assert_close(step, &ops::square(&x).unwrap(), &square, 1.0);
    });
    if !T::DTYPE.is_float() {
        of_two::<T>(
            range,
            |a, b| ops::remainder(a, b),
            move |a, b| match b == 0.0 {
                true => a,
                false if unsigned => a % b,
                false => a - b * (a / b).floor(),
            },
        );
    }
}

#[test]
fn functions_of_all_numbers() {
    for_types!(numbers: f32, f16, bf16, f64, i32, i64, i8, u32, u8);
    in_step(|step| {
        let extremes = step.tensor(&[3], &[i32::MIN, i32::MAX, 0]).unwrap();
        assert_eq!(step.read(&ops::abs(&extremes).unwrap()).unwrap(), [i32::MIN, i32::MAX, 0]);
        assert_eq!(step.read(&ops::square(&extremes).unwrap()).unwrap(), [0, 1, 0]);
        let a = step.tensor(&[4], &[f32::NAN, 1.0, f32::NAN, 5.0]).unwrap();
        let b = step.tensor(&[4], &[1.0, f32::NAN, f32::NAN, f32::INFINITY]).unwrap();
        for y in [ops::minimum(&a, &b), ops::maximum(&a, &b)] {
            let y = step.read(&y.unwrap()).unwrap();
            assert!(y[..3].iter().all(|v| v.is_nan()) && !y[3].is_nan(), "{y:?}");
        }
        let x = step.tensor(&[4], &[5.5f32, -5.5, -1.0, 1.0]).unwrap();
        let by = step.tensor(&[4], &[-2.0f32, 2.0, f32::INFINITY, 0.0]).unwrap();
        let y = step.read(&ops::remainder(&x, &by).unwrap()).unwrap();
        assert!(y[..3] == [-0.5, 0.5, f32::INFINITY] && y[3].is_nan(), "{y:?}");
    });
}

#[test]
fn powers_and_angles() {
    of_two::<f32>((0.1, 3.0), |a, b| ops::pow(a, b), f64::powf);
    of_two::<bf16>((0.1, 2.0), |a, b| ops::pow(a, b), f64::powf);
    of_two::<f64>((0.1, 3.0), |a, b| ops::pow(a, b), f64::powf);
    of_two::<f32>((-3.0, 3.0), |a, b| ops::atan2(a, b), f64::atan2);
    of_two::<f64>((-3.0, 3.0), |a, b| ops::atan2(a, b), f64::atan2);
    in_step(|step| {
        let x = step.tensor(&[3], &[-2.0f32, 0.0, 3.0]).unwrap();
        assert_eq!(step.read(&ops::pow(&x, 2.0).unwrap()).unwrap(), [4.0, 0.0, 9.0]);
        assert_eq!(step.read(&ops::pow(&x, 0.0).unwrap()).unwrap(), [1.0; 3]);
        assert!(step.read(&ops::pow(&x, 0.5).unwrap()).unwrap()[0].is_nan());
    });
}

/// A number is as good as a tensor of it.
fn numbers_for_tensors<T: Float>() {
    cases(20, |step, rng: &mut StdRng| {
        let dims = shape(rng, 0, 3);
        let (x, _) = input::<T>(step, rng, &dims, (-3.0, 3.0));
        // Of an exact value, whatever the type.
        let number = f32::from(rng.random_range(-8i8..8)) / 4.0;
        let tensor = ops::full(step.scope(), (), T::from_f64(f64::from(number))).unwrap();
        let same = |a: Result<Tensor<'_, T>>, b: Result<Tensor<'_, T>>| {
            let bits = |v: Vec<T>| v.into_iter().map(|v| v.to_f64().to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(step.read(&a.unwrap()).unwrap()), bits(step.read(&b.unwrap()).unwrap()));
        };
        same(ops::add(&x, number), ops::add(&x, &tensor));
        same(ops::sub(&x, number), ops::sub(&x, &tensor));
        same(ops::mul(&x, number), ops::mul(&x, &tensor));
        same(ops::div(&x, number), ops::div(&x, &tensor));
        same(ops::minimum(&x, number), ops::minimum(&x, &tensor));
        same(ops::clamp(&x, number, 2.0), ops::clamp(&x, &tensor, 2.0));
        let mask = ops::gt(&x, number).unwrap();
        assert_eq!(step.read(&mask).unwrap(), step.read(&ops::gt(&x, &tensor).unwrap()).unwrap());
        same(ops::where_(&mask, &x, number), ops::where_(&mask, &x, &tensor));
        same(ops::where_(&mask, number, &x), ops::where_(&mask, &tensor, &x));
        same(ops::masked_fill(&x, &mask, number), ops::where_(&mask, &tensor, &x));
    });
}

#[test]
fn numbers_are_arguments() {
    for_types!(numbers_for_tensors: f32, f16, bf16);
    in_step(|step| {
        let x = step.tensor(&[2], &[1u8, 250]).unwrap();
        assert_eq!(step.read(&ops::add(&x, 10).unwrap()).unwrap(), [11, 4]);
        let flags = ops::eq(&x, 1).unwrap();
        assert_eq!(step.read(&flags).unwrap(), [true, false]);
        assert_eq!(step.read(&ops::where_(&flags, 7, &x).unwrap()).unwrap(), [7, 250]);
        assert_eq!(step.read(&ops::where_::<f16>(&flags, 1.5, -0.25).unwrap()).unwrap().map(), [1.5, -0.25]);
        assert_eq!(step.read(&ops::where_(&flags, false, &flags).unwrap()).unwrap(), [false, false]);
        assert_eq!(step.read(&ops::ne(&flags, true).unwrap()).unwrap(), [false, true]);
        let i = step.tensor(&[2], &[i32::MIN, 3]).unwrap();
        assert_eq!(step.read(&ops::maximum(&i, -1).unwrap()).unwrap(), [-1, 3]);
        // What does not fit in the type of elements is rounded as a cast rounds it.
        let third = ops::full(step.scope(), (), 1.0f32 / 3.0).unwrap();
        let rounded = step.read(&ops::cast::<_, bf16>(&third).unwrap()).unwrap();
        let all = ops::full(step.scope(), (), true).unwrap();
        let filled = ops::where_::<bf16>(&all, 1.0 / 3.0, 0.0).unwrap();
        assert_eq!(step.read(&filled).unwrap(), rounded);
    });
}

trait Numbers {
    fn map(self) -> Vec<f64>;
}

impl Numbers for Vec<f16> {
    fn map(self) -> Vec<f64> {
        self.into_iter().map(Element::to_f64).collect()
    }
}

#[test]
fn logic() {
    cases(30, |step, rng| {
        let all = shape(rng, 0, 4);
        let (sa, sb) = (part_of(rng, &all), part_of(rng, &all));
        let (a, ha) = input::<bool>(step, rng, &sa, (0.0, 1.0));
        let (b, hb) = input::<bool>(step, rng, &sb, (0.0, 1.0));
        let of = |f: fn(bool, bool) -> bool| {
            Array::from_fn(&broadcast_shape(&[&sa, &sb]), |i| f64::from(f(ha.at(i) != 0.0, hb.at(i) != 0.0)))
        };
        assert_same(step, &ops::logical_and(&a, &b).unwrap(), &of(|a, b| a && b));
        assert_same(step, &ops::logical_or(&a, &b).unwrap(), &of(|a, b| a || b));
        assert_same(step, &ops::logical_xor(&a, &b).unwrap(), &of(|a, b| a != b));
        assert_same(step, &ops::logical_not(&a).unwrap(), &ha.map(|v| 1.0 - v));
    });
}

fn fill<T: Element>() {
    cases(30, |step, rng| {
        let dims = shape(rng, 0, 4);
        let (x, host) = input::<T>(step, rng, &dims, (-4.0, 4.0));
        let part = part_of(rng, &dims);
        let (mask, hm) = input::<bool>(step, rng, &part, (0.0, 1.0));
        let part = part_of(rng, &dims);
        let (value, hv) = input::<T>(step, rng, &part, (-4.0, 4.0));
        let want = Array::from_fn(&dims, |i| if hm.at(i) != 0.0 { hv.at(i) } else { host.at(i) });
        assert_same(step, &ops::masked_fill(&x, &mask, &value).unwrap(), &want);
    });
}

#[test]
fn masks_fill() {
    for_types!(fill: f32, f16, bf16, i32, u32, u8, bool);
}

#[test]
fn misuse_is_refused() {
    let foreign = Runtime::new(device()).unwrap();
    let param = Param::<f32>::zeros(&foreign, &[2]).unwrap();
    in_step(|step: &Step<'_>| {
        let x = ops::zeros::<f32>(step.scope(), &[2]).unwrap();
        let wide = ops::zeros::<bool>(step.scope(), &[3, 2]).unwrap();
        let long = ops::zeros::<f32>(step.scope(), &[3]).unwrap();
        assert!(
            is_shape(ops::masked_fill(&x, &wide, 0.0))
                && is_shape(ops::masked_fill(&x, &ops::isnan(&x).unwrap(), &long))
        );
        assert!(is_shape(ops::clamp(&x, &long, 1.0)) && is_shape(ops::pow(&x, &long)));
        assert!(is_argument(ops::elu(&x, f32::NAN)) && is_argument(ops::leaky_relu(&x, f32::INFINITY)));
        for number in [f64::NAN, f64::INFINITY, 1e39] {
            assert!(is_argument(ops::hardshrink(&x, number)) && is_argument(ops::softshrink(&x, number)));
            assert!(is_argument(ops::celu(&x, number)));
        }
        // Zero in the type that is computed in, and infinite as an element.
        assert!(is_argument(ops::celu(&x, 0.0)) && is_argument(ops::celu(&x, 1e-60)));
        let half = ops::cast::<f32, f16>(&x).unwrap();
        assert!(is_argument(ops::hardshrink(&half, 1e5)) && ops::celu(&half, 1e5).is_ok());
        assert!(is_argument(ops::softshrink(&x, -0.5)));
        assert!(matches!(ops::minimum(&x, &param), Err(Error::DifferentRuntimes { op: "minimum" })));
    });
}

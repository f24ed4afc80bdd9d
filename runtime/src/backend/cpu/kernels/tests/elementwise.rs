use super::*;
use crate::backend::operations::{Binary, CAST, Compare, SELECT, Unary};

const UNARY: [Unary; 11] = [
    Unary::Neg,
    Unary::Exp,
    Unary::Log,
    Unary::Sqrt,
    Unary::Rsqrt,
    Unary::Tanh,
    Unary::Relu,
    Unary::Gelu,
    Unary::GeluTanh,
    Unary::Silu,
    Unary::Scale(-0.75),
];

const BINARY: [Binary; 5] = [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::SiluMul];

const COMPARE: [Compare; 6] = [Compare::Eq, Compare::Ne, Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge];

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

fn unary_reference(kind: Unary, x: f64) -> f64 {
    match kind {
        Unary::Neg => -x,
        Unary::Exp => x.exp(),
        Unary::Log => x.ln(),
        Unary::Sqrt => x.sqrt(),
        Unary::Rsqrt => 1.0 / x.sqrt(),
        Unary::Tanh => x.tanh(),
        Unary::Relu if x.is_nan() => x,
        Unary::Relu => x.max(0.0),
        Unary::Gelu => x * normal_cdf(x),
        Unary::GeluTanh => {
            let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            0.5 * x * (1.0 + u.tanh())
        }
        Unary::Silu => x / (1.0 + (-x).exp()),
        Unary::Scale(factor) => x * f64::from(factor),
    }
}

/// `value` as an integer of this type: wrapped.
fn wrap(dtype: DType, value: f64) -> f64 {
    let value = value as i128;
    match dtype {
        DType::I32 => f64::from(value as i32),
        DType::U32 => f64::from(value as u32),
        _ => f64::from(value as u8),
    }
}

/// `value` as an integer of this type: truncated and saturated.
fn saturate(dtype: DType, value: f64) -> f64 {
    let (low, high) = match dtype {
        DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        DType::U32 => (0.0, f64::from(u32::MAX)),
        _ => (0.0, 255.0),
    };
    if value.is_nan() { 0.0 } else { value.trunc().clamp(low, high) }
}

#[test]
fn unary_functions_match_the_reference() {
    let mut rng = StdRng::seed_from_u64(1);
    for kind in UNARY {
        for dtype in FLOATS {
            for case in 0..24 {
                let shape = random_shape(&mut rng, case % 5);
                let x = Array::random(&mut rng, dtype, &shape);
                let mut y = Array::output(dtype, &shape);
                run(kind, &[&x], &mut y).unwrap();
                let expected: Vec<f64> = x.values().iter().map(|&x| unary_reference(kind, x)).collect();
                // The tail of the tanh form amplifies the rounding of its argument.
                let absolute = if kind == Unary::GeluTanh { 1e-7 } else { 1e-40 };
                assert_close(dtype, &y.values(), &expected, |_| absolute, &format!("{kind:?} {x:?}"));
            }
        }
    }
}

#[test]
fn unary_functions_keep_nan_and_infinities() {
    let special = [f64::NAN, f64::INFINITY, 0.0, -0.0, -1.0];
    for dtype in FLOATS {
        for kind in UNARY {
            let mut y = Array::output(dtype, &[5]);
            run(kind, &[&Array::contiguous(dtype, &[5], &special)], &mut y).unwrap();
            let expected: Vec<f64> = special.iter().map(|&x| unary_reference(kind, x)).collect();
            assert_close(dtype, &y.values(), &expected, |_| 1e-7, &format!("{kind:?}"));
        }
    }
}

#[test]
fn integer_functions_wrap() {
    let mut rng = StdRng::seed_from_u64(2);
    for dtype in INTEGERS {
        for case in 0..20 {
            let shape = random_shape(&mut rng, case % 5);
            let x = Array::random(&mut rng, dtype, &shape);
            let check = |kind, reference: &dyn Fn(f64) -> f64| {
                let mut y = Array::output(dtype, &shape);
                run(kind, &[&x], &mut y).unwrap();
                let expected: Vec<f64> = x.values().iter().map(|&x| reference(x)).collect();
                assert_exact(&y.values(), &expected, &format!("{kind:?} {dtype}"));
            };
            check(Unary::Neg, &|x| wrap(dtype, -x));
            check(Unary::Relu, &|x| x.max(0.0));
            check(Unary::Scale(2.5), &|x| saturate(dtype, x * 2.5));
        }
    }
}

#[test]
fn binary_functions_match_the_reference() {
    let mut rng = StdRng::seed_from_u64(3);
    for kind in BINARY {
        for dtype in NUMBERS {
            if kind == Binary::SiluMul && !dtype.is_float() {
                continue;
            }
            for case in 0..24 {
                let shape = random_shape(&mut rng, case % 5);
                let (a, b) = (Array::random(&mut rng, dtype, &shape), Array::random(&mut rng, dtype, &shape));
                let mut y = Array::output(dtype, &shape);
                run(kind, &[&a, &b], &mut y).unwrap();
                let reference = |(a, b): (f64, f64)| match kind {
                    Binary::Add => a + b,
                    Binary::Sub => a - b,
                    Binary::Mul => a * b,
                    Binary::Div if !dtype.is_float() && b == 0.0 => 0.0,
                    Binary::Div => a / b,
                    Binary::SiluMul => a / (1.0 + (-a).exp()) * b,
                };
                let expected = a.values().into_iter().zip(b.values()).map(reference);
                let what = format!("{kind:?} {a:?} {b:?}");
                if dtype.is_float() {
                    let expected: Vec<f64> = expected.collect();
                    assert_close(dtype, &y.values(), &expected, |_| 1e-40, &what);
                } else if kind == Binary::Mul {
                    // The product of two 32-bit integers does not fit in an f64.
                    let product = |(a, b): (f64, f64)| {
                        let product = (a as i128 * b as i128) & 0xFFFF_FFFF;
                        wrap(dtype, product as f64)
                    };
                    let expected: Vec<f64> = a.values().into_iter().zip(b.values()).map(product).collect();
                    assert_exact(&y.values(), &expected, &what);
                } else {
                    let expected: Vec<f64> = expected.map(|v| wrap(dtype, v)).collect();
                    assert_exact(&y.values(), &expected, &what);
                }
            }
        }
    }
}

#[test]
fn integer_division_never_faults() {
    let a = Array::contiguous(DType::I32, &[3], &[f64::from(i32::MIN), 7.0, -7.0]);
    let b = Array::contiguous(DType::I32, &[3], &[-1.0, 0.0, 2.0]);
    let mut y = Array::output(DType::I32, &[3]);
    run(Binary::Div, &[&a, &b], &mut y).unwrap();
    assert_eq!(y.values(), [f64::from(i32::MIN), 0.0, -3.0]);
}

#[test]
fn comparisons_follow_ieee() {
    let mut rng = StdRng::seed_from_u64(4);
    let few = [-1.0, 0.0, 1.0, 2.0, f64::NAN];
    for kind in COMPARE {
        for dtype in ALL {
            for case in 0..12 {
                let shape = random_shape(&mut rng, case % 4);
                let n: usize = shape.iter().product();
                let [a, b] = [0, 1].map(|_| {
                    let values: Vec<f64> = (0..n).map(|_| few[rng.random_range(0..5)]).collect();
                    let layout = random_layout(&mut rng, &shape, false);
                    Array::strided(dtype, layout, 1, &values)
                });
                let mut y = Array::output(DType::Bool, &shape);
                run(kind, &[&a, &b], &mut y).unwrap();
                let reference = |(a, b): (f64, f64)| match kind {
                    Compare::Eq => a == b,
                    Compare::Ne => a != b,
                    Compare::Lt => a < b,
                    Compare::Le => a <= b,
                    Compare::Gt => a > b,
                    Compare::Ge => a >= b,
                };
                let expected: Vec<f64> = a
                    .values()
                    .into_iter()
                    .zip(b.values())
                    .map(|v| f64::from(u8::from(reference(v))))
                    .collect();
                assert_exact(&y.values(), &expected, &format!("{kind:?} {dtype}"));
            }
        }
    }
}

#[test]
fn where_picks_by_condition() {
    let mut rng = StdRng::seed_from_u64(5);
    for dtype in ALL {
        for case in 0..24 {
            let shape = random_shape(&mut rng, case % 5);
            let cond = Array::random(&mut rng, DType::Bool, &shape);
            let (a, b) = (Array::random(&mut rng, dtype, &shape), Array::random(&mut rng, dtype, &shape));
            let mut y = Array::output(dtype, &shape);
            run(SELECT, &[&cond, &a, &b], &mut y).unwrap();
            let (a, b) = (a.values(), b.values());
            let expected: Vec<f64> =
                cond.values().iter().enumerate().map(|(i, &c)| if c != 0.0 { a[i] } else { b[i] }).collect();
            assert_exact(&y.values(), &expected, &format!("where {dtype}"));
        }
    }
}

fn cast_reference(from: DType, to: DType, value: f64) -> f64 {
    match to {
        DType::Bool => f64::from(u8::from(value != 0.0)),
        _ if to.is_float() => nearest(to, value),
        _ if from.is_float() => saturate(to, value),
        _ => wrap(to, value),
    }
}

#[test]
fn casts_are_exact() {
    let mut rng = StdRng::seed_from_u64(6);
    let special = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -0.5,
        0.5,
        -1.0,
        254.9,
        255.0,
        256.0,
        65_519.0,
        65_520.0,
        16_777_217.0,
        16_842_753.0,
        -2_147_483_648.0,
        4_294_967_295.0,
        1e30,
        1e-7,
    ];
    for from in ALL {
        for to in ALL {
            for case in 0..10 {
                let x = if case == 0 {
                    Array::contiguous(from, &[special.len()], &special)
                } else {
                    let shape = random_shape(&mut rng, case % 4);
                    Array::random(&mut rng, from, &shape)
                };
                let mut y = Array::output(to, x.shape());
                run(CAST, &[&x], &mut y).unwrap();
                let expected: Vec<f64> = x.values().iter().map(|&v| cast_reference(from, to, v)).collect();
                assert_exact(&y.values(), &expected, &format!("{from} to {to}"));
            }
        }
    }
}

#[test]
fn large_tensors_do_not_depend_on_threads() {
    let mut rng = StdRng::seed_from_u64(7);
    for shape in [vec![70_000], vec![300, 257], vec![5, 130, 90]] {
        for dtype in [DType::F32, DType::Bf16, DType::I32] {
            let (a, b) = (Array::random(&mut rng, dtype, &shape), Array::random(&mut rng, dtype, &shape));
            let mut many = Array::output(dtype, &shape);
            let mut one = many.clone();
            run(Binary::Mul, &[&a, &b], &mut many).unwrap();
            run_single_threaded(Binary::Mul, &[&a, &b], &mut one).unwrap();
            assert_eq!(many.bytes, one.bytes);
            if dtype.is_float() {
                let product: Vec<f64> = a.values().iter().zip(b.values()).map(|(a, b)| a * b).collect();
                assert_close(dtype, &many.values(), &product, |_| 1e-40, "large product");
            }
        }
    }
}

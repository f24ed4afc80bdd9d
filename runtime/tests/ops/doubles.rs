//! Functions of `f64` in kernels, against numbers of 300 bits (`fixtures/doubles.py`).

use graphable::{Result, Tensor, kernel, ops};

use crate::{fixtures::Fixture, harness::in_step};

const FILE: &str = include_str!("fixtures/doubles.txt");

/// The functions of the file, in the order of the arms of [`function`].
const NAMES: [&str; 23] = [
    "exp", "exp2", "exp_m1", "ln", "ln_1p", "log2", "log10", "cbrt", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "powf", "atan2", "hypot",
];

#[kernel]
fn function(which: i32, x: f64, y: f64) -> f64 {
    match which {
        0 => x.exp(),
        1 => x.exp2(),
        2 => x.exp_m1(),
        3 => x.ln(),
        4 => x.ln_1p(),
        5 => x.log2(),
        6 => x.log10(),
        7 => x.cbrt(),
        8 => x.sin(),
        9 => x.cos(),
        10 => x.tan(),
        11 => x.asin(),
        12 => x.acos(),
        13 => x.atan(),
        14 => x.sinh(),
        15 => x.cosh(),
        16 => x.tanh(),
        17 => x.asinh(),
        18 => x.acosh(),
        19 => x.atanh(),
        20 => x.powf(y),
        21 => x.atan2(y),
        _ => x.hypot(y),
    }
}

#[test]
fn functions_are_within_four_places() {
    in_step(|step| {
        for (which, name) in NAMES.iter().enumerate() {
            let case = Fixture::new(FILE, name);
            let [x, y, want] = ["x", "y", "want"].map(|name| &case.array(name).data);
            let shape = [x.len()];
            let which = step.tensor(&shape, &vec![which as i32; x.len()]).unwrap();
            let (x, y) = (step.tensor(&shape, x).unwrap(), step.tensor(&shape, y).unwrap());
            let got = step.read(&function(&which, &x, &y).unwrap()).unwrap();
            for (i, (got, want)) in got.iter().zip(want).enumerate() {
                let place = want.abs().next_up() - want.abs();
                assert!((got - want).abs() <= 4.0 * place, "{name}, number {i}: {got}, expected {want}");
            }
        }
    });
}

/// The small results of error functions keep their digits.
#[test]
fn error_functions_are_within_a_few_places() {
    type One = for<'s> fn(&Tensor<'s, f64>) -> Result<Tensor<'s, f64>>;
    let all: [(&str, One); 3] =
        [("erf", |x| ops::erf(x)), ("erfc", |x| ops::erfc(x)), ("gelu", |x| ops::gelu(x))];
    in_step(|step| {
        for (name, op) in all {
            let case = Fixture::new(FILE, name);
            let [x, want] = ["x", "want"].map(|name| &case.array(name).data);
            let got = step.read(&op(&step.tensor(&[x.len()], x).unwrap()).unwrap()).unwrap();
            for (i, (got, want)) in got.iter().zip(want).enumerate() {
                let place = want.abs().next_up() - want.abs();
                assert!((got - want).abs() <= 8.0 * place, "{name}, number {i}: {got}, expected {want}");
            }
        }
    });
}

/// Arguments of which the functions have no value, or an infinite one.
#[test]
fn functions_end_where_those_of_rust_end() {
    let ends =
        [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX, 5e-324];
    in_step(|step| {
        let x = step.tensor(&[ends.len()], &ends).unwrap();
        for (which, name) in NAMES.iter().enumerate() {
            let got = step.read(&function(&step.tensor(&[1], &[which as i32]).unwrap(), &x, &x).unwrap());
            for (got, x) in got.unwrap().into_iter().zip(ends) {
                let want = function::scalar(which as i32, x, x);
                let near = (got - want).abs() <= 1e-14 * want.abs().max(f64::MIN_POSITIVE);
                let same = got == want && got.is_sign_negative() == want.is_sign_negative();
                assert!(same || near || got.is_nan() && want.is_nan(), "{name}({x}) is {got}, not {want}");
            }
        }
    });
}

#[kernel]
fn rounded_alike(x: f64, n: i32) -> (f64, f64, f64) {
    (x.to_degrees(), x.to_radians(), x.powi(n))
}

/// Both devices have the same bits.
#[test]
fn angles_and_whole_powers_are_those_of_rust() {
    in_step(|step| {
        let x: Vec<f64> = (0..400).map(|i| 0.37 * f64::from(i) - 50.1).collect();
        let n: Vec<i32> = (0..400).map(|i| i % 23 - 11).collect();
        let results = rounded_alike(&step.tensor(&[400], &x).unwrap(), &step.tensor(&[400], &n).unwrap());
        let (degrees, radians, powers) = results.unwrap();
        assert_eq!(step.read(&degrees).unwrap(), x.iter().map(|x| x.to_degrees()).collect::<Vec<_>>());
        assert_eq!(step.read(&radians).unwrap(), x.iter().map(|x| x.to_radians()).collect::<Vec<_>>());
        let want: Vec<f64> = x.iter().zip(&n).map(|(x, n)| rounded_alike::scalar(*x, *n).2).collect();
        assert_eq!(step.read(&powers).unwrap(), want);
    });
}

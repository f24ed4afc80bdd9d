use graphable::{DType, Element, Float, Number, Step, Tensor, bf16, f16, ops};

use crate::{
    harness::{assert_same, cases, for_types, in_step, input, shape},
    reference::Array,
};

fn constants<T: Element>() {
    cases(15, |step, rng| {
        let shape = shape(rng, 0, 5);
        let value = T::from_f64(3.0);
        let all = |v: f64| Array::from_fn(&shape, |_| v);
        assert_same(step, &ops::full(step.scope(), &shape, value).unwrap(), &all(value.to_f64()));
        assert_same(step, &ops::zeros::<T>(step.scope(), &shape).unwrap(), &all(0.0));
        let (x, _) = input::<T>(step, rng, &shape, (0.0, 9.0));
        assert_same(step, &ops::zeros_like(&x).unwrap(), &all(0.0));
        assert_same(step, &ops::ones_like(&x).unwrap(), &all(1.0));
        assert_same(step, &ops::full_like(&x, value).unwrap(), &all(value.to_f64()));
    });
}

#[test]
fn fills() {
    for_types!(constants: f32, f16, bf16, f64, i32, i64, i8, u32, u8, bool);
    in_step(|step| {
        let least = ops::full(step.scope(), &[3], i32::MIN).unwrap();
        assert_eq!(step.read(&least).unwrap(), [i32::MIN; 3]);
        let infinite = ops::full(step.scope(), &[2], f16::NEG_INFINITY).unwrap();
        assert_eq!(step.read(&infinite).unwrap(), [f16::NEG_INFINITY; 2]);
    });
}

fn ranges<T: Number>() {
    in_step(|step| {
        for n in [0, 1, 7, 200] {
            let want = Array::from_fn(&[n], |i| T::from_f64(i[0] as f64).to_f64());
            assert_same(step, &ops::arange::<T>(step.scope(), n).unwrap(), &want);
            let want = Array::from_fn(&[n], |i| converted::<T>(100.0 - 0.75 * i[0] as f64));
            let got = ops::arange_step::<T>(step.scope(), n, 100.0, -0.75).unwrap();
            assert_same(step, &got, &want);
        }
    });
}

#[test]
fn aranges_round_and_saturate() {
    for_types!(ranges: f32, f16, bf16, f64, i32, i64, i8, u32, u8);
}

/// `value` as an operation converts it: once to the nearest float, truncated to integers.
fn converted<U: Element>(value: f64) -> f64 {
    let truncates = !U::DTYPE.is_float() && U::DTYPE != DType::Bool;
    U::from_f64(if truncates { value.trunc() } else { value }).to_f64()
}

/// An integer as `U`, by Rust's `as`.
fn low_bits<U: Element>(value: f64) -> f64 {
    let value = value as i64;
    match U::DTYPE {
        DType::I32 => f64::from(value as i32),
        DType::U32 => f64::from(value as u32),
        DType::U8 => f64::from(value as u8),
        DType::I64 => value as f64,
        DType::I8 => f64::from(value as i8),
        _ => f64::from(u8::from(value != 0)),
    }
}

fn casts_to<T: Element, U: Element>() {
    cases(6, |step, rng| {
        let shape = shape(rng, 0, 4);
        let (x, host) = input::<T>(step, rng, &shape, (-400.0, 400.0));
        let integers = !T::DTYPE.is_float() && !U::DTYPE.is_float();
        let want = host.map(|v| if integers { low_bits::<U>(v) } else { converted::<U>(v) });
        assert_same(step, &ops::cast::<T, U>(&x).unwrap(), &want);
    });
}

fn casts<T: Element>() {
    casts_to::<T, f32>();
    casts_to::<T, f16>();
    casts_to::<T, bf16>();
    casts_to::<T, i32>();
    casts_to::<T, u32>();
    casts_to::<T, u8>();
    casts_to::<T, bool>();
    casts_to::<T, f64>();
    casts_to::<T, i64>();
    casts_to::<T, i8>();
}

#[test]
fn casts_between_all_types() {
    for_types!(casts: f32, f16, bf16, f64, i32, i64, i8, u32, u8, bool);
}

#[test]
fn casts_truncate_saturate_and_give_zero_for_nan() {
    in_step(|step| {
        let x = step.tensor(&[6], &[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.9, 1.9, 300.5]).unwrap();
        assert_eq!(
            step.read(&ops::cast::<_, i32>(&x).unwrap()).unwrap(),
            [0, i32::MAX, i32::MIN, -1, 1, 300]
        );
        assert_eq!(step.read(&ops::cast::<_, u8>(&x).unwrap()).unwrap(), [0, 255, 0, 0, 1, 255]);
        assert_eq!(step.read(&ops::cast::<_, bool>(&x).unwrap()).unwrap(), [true; 6]);
        let large = step.tensor(&[3], &[i32::MAX, -1, 16_777_217]).unwrap();
        assert_eq!(
            step.read(&ops::cast::<_, u32>(&large).unwrap()).unwrap(),
            [i32::MAX as u32, u32::MAX, 16_777_217]
        );
        assert_eq!(
            step.read(&ops::cast::<_, f32>(&large).unwrap()).unwrap(),
            [2_147_483_648.0, -1.0, 16_777_216.0]
        );
        let same = ops::cast::<_, f32>(&x).unwrap();
        assert!(same.same_memory(&x), "a cast to the same type is no copy");
        assert_eq!(same.dtype(), DType::F32);
    });
}

fn read_as_f32<T: Float>(step: &Step<'_>, x: &Tensor<'_, T>) -> Vec<f32> {
    step.read(x).unwrap().into_iter().map(|x| x.to_f64() as f32).collect()
}

/// Each is next to a tie of the narrower type, which a rounding to f32 in between would hide.
#[test]
fn casts_of_integers_round_once() {
    in_step(|step| {
        let values =
            [0x0101_0001, -0x0101_0001, 0x0101_0000, 0x0103_0000, 2049, 2051, -2049, 65_519, 65_520, 7];
        let x = step.tensor(&[10], &values).unwrap();
        let bf = read_as_f32(step, &ops::cast::<_, bf16>(&x).unwrap());
        let up = 0x0102_0000 as f32;
        assert_eq!(
            bf,
            [up, -up, 16_777_216.0, 17_039_360.0, 2048.0, 2048.0, -2048.0, 65_536.0, 65_536.0, 7.0]
        );
        let half = read_as_f32(step, &ops::cast::<_, f16>(&x).unwrap());
        let inf = f32::INFINITY;
        assert_eq!(half, [inf, -inf, inf, inf, 2048.0, 2052.0, -2048.0, 65_504.0, inf, 7.0]);
        let large = step.tensor(&[3], &[0xff80_0000u32, 0xff80_0001, u32::MAX]).unwrap();
        let bf = read_as_f32(step, &ops::cast::<_, bf16>(&large).unwrap());
        assert_eq!(bf, [4_294_967_296.0; 3]);
        let large = step.tensor(&[2], &[0xfe80_0000u32, 0xfe80_0001]).unwrap();
        let bf = read_as_f32(step, &ops::cast::<_, bf16>(&large).unwrap());
        assert_eq!(bf, [0xfe00_0000u32 as f32, 0xff00_0000u32 as f32]);
    });
}

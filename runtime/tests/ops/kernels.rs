//! Kernels written in Rust: types, shapes, arguments, and the modes of graphs. Their language is tested by random programs
//! (`ui-tests/tests/kernel_programs`).

use graphable::{
    Error, Float, Mode, Param, Result, Runtime, Scalar, State, Tensor, bf16, f16, graphable, kernel, ops,
};

use crate::{
    harness::{assert_close, assert_same, cases, device, for_types, in_step, input, part_of, shape},
    reference::{Array, broadcast_shape},
};

#[kernel]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// The gated half of a block.
#[kernel]
fn gated(gate: f32, up: f32) -> f32 {
    gate * sigmoid(gate) * up
}

#[kernel]
fn leaky(x: f32, slope: f32) -> f32 {
    if x < 0.0 { slope * x } else { x }
}

#[kernel]
fn split_signs(x: f32) -> (f32, f32, bool) {
    (x.max(0.0), x.min(0.0), x < 0.0)
}

#[kernel]
fn hashed(n: u32, salt: u32) -> u32 {
    let mut h = n ^ salt;
    for _ in 0..3 {
        h = (h ^ h >> 16) * 0x45d9_f3b;
    }
    h
}

#[kernel]
fn chosen(keep: bool, a: f32, b: f32) -> f32 {
    if keep { a } else { b }
}

#[kernel]
fn many(a: f32, b: f32, c: f32, d: f32, e: f32, f: f32, g: f32, h: f32, i: f32) -> f32 {
    a + b + c + d + e + f + g + h + i
}

fn gates<T: Float>() {
    cases(60, |step, rng| {
        let all = shape(rng, 0, 4);
        let (sa, sb) = (part_of(rng, &all), part_of(rng, &all));
        let (a, ha) = input::<T>(step, rng, &sa, (-3.0, 3.0));
        let (b, hb) = input::<T>(step, rng, &sb, (-3.0, 3.0));
        let want = Array::from_fn(&broadcast_shape(&[&sa, &sb]), |i| {
            ha.at(i) / (1.0 + (-ha.at(i)).exp()) * hb.at(i)
        });
        assert_close(step, &gated(&a, &b).unwrap(), &want, 1.0);
    });
}

#[test]
fn kernels_broadcast_in_every_float_type() {
    for_types!(gates: f32, f16, bf16);
}

#[test]
fn large_tensors_are_split_over_threads() {
    cases(1, |step, rng| {
        let (x, hx) = input::<f32>(step, rng, &[70_001], (-3.0, 3.0));
        let (rows, hr) = input::<bf16>(step, rng, &[300, 1], (-3.0, 3.0));
        let (columns, hc) = input::<bf16>(step, rng, &[257], (-3.0, 3.0));
        let want = Array::from_fn(&[70_001], |i| if hx.at(i) < 0.0 { hx.at(i) * 0.5 } else { hx.at(i) });
        assert_same(step, &leaky(&x, 0.5).unwrap(), &want);
        let want = Array::from_fn(&[300, 257], |i| hr.at(i) / (1.0 + (-hr.at(i)).exp()) * hc.at(i));
        assert_close(step, &gated(&rows, &columns).unwrap(), &want, 1.0);
    });
}

#[test]
fn a_tuple_is_several_tensors() {
    cases(20, |step, rng| {
        let all = shape(rng, 0, 3);
        let (x, hx) = input::<f16>(step, rng, &all, (-3.0, 3.0));
        let (high, low, negative) = split_signs(&x).unwrap();
        assert_same(step, &high, &Array::from_fn(&all, |i| hx.at(i).max(0.0)));
        assert_same(step, &low, &Array::from_fn(&all, |i| hx.at(i).min(0.0)));
        assert_same(step, &negative, &Array::from_fn(&all, |i| f64::from(hx.at(i) < 0.0)));
    });
}

#[test]
fn arguments_are_tensors_scalars_parameters_or_numbers() -> Result<()> {
    let mut rt = Runtime::new(device())?;
    let slope = Param::new(&rt, &[], &[0.25f32])?;
    let state = State::new(&rt, &[2], &[0.5f32, 2.0])?;
    let step = rt.step()?;
    let x = step.tensor(&[2], &[-4.0f32, 4.0])?;
    assert_eq!(step.read(&leaky(&x, 0.5)?)?, [-2.0, 4.0]);
    assert_eq!(step.read(&leaky(&x, &slope)?)?, [-1.0, 4.0]);
    assert_eq!(step.read(&leaky(&x, &state)?)?, [-2.0, 4.0]);
    let scalar = Scalar::from_tensor(step.tensor(&[], &[2.0f32])?)?;
    assert_eq!(step.read(&leaky(&x, &scalar)?)?, [-8.0, 4.0]);
    let keep = step.tensor(&[2], &[true, false])?;
    assert_eq!(step.read(&chosen::<f32>(&keep, 1.0, 2.0)?)?, [1.0, 2.0]);
    assert_eq!(step.read(&chosen(&keep, &x, f32::INFINITY)?)?, [-4.0, f32::INFINITY]);
    let n = step.tensor(&[3], &[0u32, 1, u32::MAX])?;
    assert_eq!(step.read(&hashed(&n, 7)?)?, [0, 1, u32::MAX].map(|n| hashed::scalar(n, 7)));
    let y = many(&x, 1.0, &slope, 1.0, 1.0, 1.0, &x, 1.0, 1.0)?;
    assert_eq!(step.read(&y)?, [-1.75, 14.25]);
    Ok(())
}

#[test]
fn errors_are_those_of_operations() {
    in_step(|step| {
        let x = step.tensor(&[2], &[1.0f32, 2.0]).unwrap();
        let y = step.tensor(&[3], &[1.0f32, 2.0, 3.0]).unwrap();
        let error = gated(&x, &y).unwrap_err();
        assert!(matches!(&error, Error::Shape { op: "gated", .. }), "{error}");
        let none = step.tensor(&[0, 2], &[] as &[f32]).unwrap();
        assert!(step.read(&gated(&none, &x).unwrap()).unwrap().is_empty());
        let (high, ..) = split_signs(&none).unwrap();
        assert_eq!(high.count(), 0);
    });
}

#[graphable]
fn block(
    #[host] x: &Tensor<f32>,
    #[host] by: &Scalar<f32>,
    #[key] tenths: u32,
    up: &Param<f32>,
) -> Result<Tensor<f32>> {
    let h = gated(x, up)?;
    let h = leaky(&h, tenths as f32 * 0.1)?;
    let (high, low, _) = #[eager]
    split_signs(&h)?;
    let h = leaky(&high, by)?;
    ops::add(&h, &leaky(&low, 0.5)?)
}

#[test]
fn kernels_are_recorded_and_replayed_in_every_mode() -> Result<()> {
    let want = |x: f32, by: f32, tenths: u32| {
        let h = leaky::scalar(gated::scalar(x, 0.5), tenths as f32 * 0.1);
        let (high, low, _) = split_signs::scalar(h);
        leaky::scalar(high, by) + leaky::scalar(low, 0.5)
    };
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(device())?;
        let up = Param::new(&rt, &[], &[0.5f32])?;
        let graph = BlockGraph::builder().mode(mode).build(&mut rt)?;
        for round in 0..6u8 {
            for tenths in [1u32, 3] {
                let step = rt.step()?;
                let x: Vec<f32> = (0..5u8).map(|i| f32::from(i) - f32::from(round)).collect();
                let y = graph.call(&step, (&x[..], &[5]), 2.5, tenths, &up)?;
                let got = step.read(&y)?;
                for (x, got) in x.iter().zip(got) {
                    let want = want(*x, 2.5, tenths);
                    assert!((got - want).abs() <= want.abs() * 1e-6, "{mode:?}: {got} instead of {want}");
                }
            }
        }
        if mode == Mode::Piecewise {
            assert_eq!(rt.stats().recordings, 3, "one segment has two keys, the other one");
        }
    }
    Ok(())
}

#[test]
fn the_source_can_be_printed() {
    let source = gated::cuda_source();
    let want = "\
DEVICE f32 sigmoid_0(f32 x_0) {
    return (1.0f / (1.0f + lang::exp((-x_0))));
}

DEVICE f32 gated_1(f32 gate_0, f32 up_1) {
    return ((gate_0 * ::sigmoid_0(gate_0)) * up_1);
}
";
    assert_eq!(source.trim_end(), want.trim_end());
}

/// The type that a path names is the receiver's.
#[kernel]
fn of_bytes(x: f32) -> (f32, u32) {
    (x + u8::wrapping_add(200, 100) as f32, u8::leading_zeros(1))
}

#[test]
fn a_path_names_the_type_of_its_method() {
    assert_eq!(of_bytes::scalar(0.5), (44.5, 7));
    assert!(of_bytes::cuda_source().contains("lang::wrapping_add((u8)200, (u8)100)"));
}

/// A variable is named like the function whose value it has; both are number 1 of their kind.
#[kernel]
fn shadowed(x: f32) -> f32 {
    let sigmoid = sigmoid(leaky(x, 1.0));
    sigmoid
}

#[test]
fn a_variable_hides_no_function() {
    assert_eq!(shadowed::scalar(0.0), 0.5);
    assert!(shadowed::cuda_source().contains("f32 sigmoid_1 = ::sigmoid_1(::leaky_0(x_0, 1.0f));"));
}

struct Mine;

impl Mine {
    const BITS: i32 = 3;
}

/// Constants whose types do not follow from their paths.
#[kernel]
fn constants(x: f32, n: i32) -> (f32, i32) {
    let digits = f32::MANTISSA_DIGITS + u8::BITS;
    (x * digits as f32, n + Mine::BITS + i32::MAX)
}

#[test]
fn a_constant_has_its_own_type() {
    assert_eq!(constants::scalar(1.0, -4), (32.0, i32::MAX - 1));
}

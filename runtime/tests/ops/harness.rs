//! Random tensors with their host twins, and comparison.

use graphable::{
    DType, Device, Element, Error, Event, Param, Runtime, State, Step, Tensor, backend::cpu::CpuOptions, ops,
};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom};

use crate::reference::Array;

/// The device in its test mode: what was freed holds no plausible values.
pub(crate) fn device() -> Device {
    crate::device::device(CpuOptions::default().test_mode(1))
}

/// Runs `f` in one step of a fresh runtime.
pub(crate) fn in_step(f: impl for<'s> FnOnce(&Step<'s>)) {
    let mut rt = Runtime::new(device()).unwrap();
    let step = rt.step().unwrap();
    f(&step);
}

/// Runs `f` for `n` seeds in one step; a failure names its seed.
pub(crate) fn cases(n: u64, f: impl for<'s> Fn(&Step<'s>, &mut StdRng)) {
    in_step(|step| {
        for seed in 0..n {
            let run = std::panic::AssertUnwindSafe(|| f(step, &mut StdRng::seed_from_u64(seed)));
            if let Err(panic) = std::panic::catch_unwind(run) {
                eprintln!("failing seed: {seed}");
                std::panic::resume_unwind(panic);
            }
        }
    });
}

/// Calls a generic function for each of the listed element types.
macro_rules! for_types {
    ($f:ident: $($t:ty),+) => { $( $f::<$t>(); )+ };
}
pub(crate) use for_types;

/// A random size: mostly small, sometimes 1, rarely 0.
pub(crate) fn size(rng: &mut StdRng) -> usize {
    match rng.random_range(0..20) {
        0 => 0,
        1..4 => 1,
        _ => rng.random_range(2..7),
    }
}

/// A random shape of `min..=max` dimensions.
pub(crate) fn shape(rng: &mut StdRng, min: usize, max: usize) -> Vec<usize> {
    let rank = rng.random_range(min..=max);
    (0..rank).map(|_| size(rng)).collect()
}

/// A shape that broadcasts to `shape`.
pub(crate) fn part_of(rng: &mut StdRng, shape: &[usize]) -> Vec<usize> {
    let from = rng.random_range(0..=shape.len());
    shape[from..].iter().map(|&n| if rng.random_bool(0.25) { 1 } else { n }).collect()
}

/// A random value that `T` holds exactly.
pub(crate) fn value<T: Element>(rng: &mut StdRng, low: f64, high: f64) -> T {
    let drawn = rng.random_range(low..high);
    T::from_f64(match T::DTYPE {
        DType::Bool => f64::from(u8::from(rng.random_bool(0.5))),
        d if d.is_float() => drawn,
        DType::I32 | DType::I64 | DType::I8 => drawn.round(),
        _ => drawn.round().abs(),
    })
}

/// A whole number as an integer type of 8 bits wraps it; every other type has it.
pub(crate) fn wrapped<T: Element>(value: f64) -> f64 {
    match T::DTYPE {
        DType::U8 => f64::from(value as i64 as u8),
        DType::I8 => f64::from(value as i64 as i8),
        _ => value,
    }
}

/// Uploads random values between `low` and `high`.
fn upload<'s, T: Element>(
    step: &Step<'s>,
    rng: &mut StdRng,
    shape: &[usize],
    range: (f64, f64),
) -> (Tensor<'s, T>, Array) {
    let host = Array::from_fn(shape, |_| value::<T>(rng, range.0, range.1).to_f64());
    let data: Vec<T> = host.data.iter().map(|&v| T::from_f64(v)).collect();
    (step.tensor(shape, &data).unwrap(), host)
}

/// A random tensor of `shape` between `low` and `high`: contiguous, permuted, a part of a larger one,
/// or repeated.
pub(crate) fn input<'s, T: Element>(
    step: &Step<'s>,
    rng: &mut StdRng,
    shape: &[usize],
    range: (f64, f64),
) -> (Tensor<'s, T>, Array) {
    let rank = shape.len();
    let kind = if rank == 0 { 0 } else { rng.random_range(0..5) };
    match kind {
        1 => {
            let mut axes: Vec<usize> = (0..rank).collect();
            axes.shuffle(rng);
            let mut base_shape = vec![0; rank];
            for (to, &from) in axes.iter().enumerate() {
                base_shape[from] = shape[to];
            }
            let (base, host) = upload::<T>(step, rng, &base_shape, range);
            let twin = Array::from_fn(shape, |index| {
                let mut source = vec![0; rank];
                for (to, &from) in axes.iter().enumerate() {
                    source[from] = index[to];
                }
                host.at(&source)
            });
            (ops::permute(&base, &axes).unwrap(), twin)
        }
        2 => {
            let axis = rng.random_range(0..rank);
            let (start, end) = (rng.random_range(0..3), rng.random_range(0..3));
            let mut base_shape = shape.to_vec();
            base_shape[axis] += start + end;
            let (base, host) = upload::<T>(step, rng, &base_shape, range);
            // Not `at`, which would repeat a dimension of size 1.
            let twin = Array::from_fn(shape, |index| {
                let mut source = index.to_vec();
                source[axis] += start;
                host.at(&source)
            });
            (ops::narrow(&base, axis, start, shape[axis]).unwrap(), twin)
        }
        3 => {
            let axis = rng.random_range(0..rank);
            let mut base_shape = shape.to_vec();
            base_shape[axis] = 1;
            let (base, host) = upload::<T>(step, rng, &base_shape, range);
            (ops::broadcast_to(&base, shape).unwrap(), Array::from_fn(shape, |index| host.at(index)))
        }
        _ => upload(step, rng, shape, range),
    }
}

/// Random small whole numbers below `bound`, with their tensor.
pub(crate) fn indices<'s>(
    step: &Step<'s>,
    rng: &mut StdRng,
    shape: &[usize],
    bound: u32,
) -> (Tensor<'s, u32>, Array) {
    let host = Array::from_fn(shape, |_| f64::from(rng.random_range(0..bound)));
    let data: Vec<u32> = host.data.iter().map(|&v| v as u32).collect();
    (step.tensor(shape, &data).unwrap(), host)
}

/// A parameter of random values.
pub(crate) fn param<T: Element>(rt: &Runtime, rng: &mut StdRng, shape: &[usize]) -> (Param<T>, Array) {
    let host = Array::from_fn(shape, |_| value::<T>(rng, -2.0, 2.0).to_f64());
    let data: Vec<T> = host.data.iter().map(|&v| T::from_f64(v)).collect();
    (Param::new(rt, shape, &data).unwrap(), host)
}

/// State of random values.
pub(crate) fn state<T: Element>(rt: &Runtime, rng: &mut StdRng, shape: &[usize]) -> (State<T>, Array) {
    let host = Array::from_fn(shape, |_| value::<T>(rng, -2.0, 2.0).to_f64());
    let data: Vec<T> = host.data.iter().map(|&v| T::from_f64(v)).collect();
    (State::new(rt, shape, &data).unwrap(), host)
}

/// The relative error of the one rounding of a result to `T`, with a little room.
fn rounding<T: Element>() -> f64 {
    match T::DTYPE {
        DType::F32 => 2e-7,
        DType::F16 => 1e-3,
        DType::Bf16 => 8e-3,
        _ => 0.0,
    }
}

/// Asserts that `got` is `want`: floats were computed in f32, losing up to `slack` times `1e-6` (an f64 in f64, `1e-14`), and
/// were rounded once; both relative to `max(|want|, 1)`. Integers are exact.
#[track_caller]
pub(crate) fn assert_close<'s, T: Element>(step: &Step<'s>, got: &Tensor<'s, T>, want: &Array, slack: f64) {
    assert_eq!(got.shape(), want.shape, "shapes");
    let values = step.read(got).unwrap();
    assert_eq!(values.len(), want.data.len());
    let relative = match T::DTYPE {
        DType::F64 => slack * 1e-14,
        float if float.is_float() && slack > 0.0 => rounding::<T>() + slack * 1e-6,
        _ => 0.0,
    };
    for (i, (value, &want)) in values.iter().zip(&want.data).enumerate() {
        let value = value.to_f64();
        let same = value == want || value.is_nan() && want.is_nan();
        let near = (value - want).abs() <= relative * want.abs().max(1.0);
        assert!(same || near, "element {i}: {value}, expected {want}");
    }
}

/// Asserts that `got` is exactly `want`.
#[track_caller]
pub(crate) fn assert_same<'s, T: Element>(step: &Step<'s>, got: &Tensor<'s, T>, want: &Array) {
    assert_close(step, got, want, 0.0);
}

/// Whether an error has the shape class.
pub(crate) fn is_shape<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Shape { .. }))
}

/// Whether an error has the axis class.
pub(crate) fn is_axis<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Axis { .. }))
}

/// Whether an error has the argument class.
pub(crate) fn is_argument<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Argument { .. }))
}

/// What happened to segments, as letters: warmed, recorded, replayed, fell back.
pub(crate) fn events(rt: &Runtime) -> String {
    rt.take_events()
        .iter()
        .filter_map(|event| match event {
            Event::Warmed { .. } => Some('w'),
            Event::Recorded { .. } => Some('r'),
            Event::Replayed { .. } => Some('p'),
            Event::FellBack { .. } => Some('f'),
            _ => None,
        })
        .collect()
}

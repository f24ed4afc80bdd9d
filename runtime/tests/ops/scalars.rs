//! Scalars of kernels: numbers, `#[key]` parameters, and values on the device, in every mode.

#![allow(clippy::type_complexity, reason = "types that users write out are what is tested")]

use std::sync::atomic::{AtomicU32, Ordering};

use graphable::{Error, Mode, Result, Runtime, Scalar, Schedule, Tensor, f16, graphable, kernel, ops};

use crate::harness::device;

#[kernel]
fn powered(x: f32, factor: f32, #[key] times: u32) -> f32 {
    let mut y = x;
    for _ in 0..times {
        y *= factor;
    }
    y
}

#[kernel(rows)]
fn shifted(x: Row<f32>, by: f32, #[key] times: i32) -> Row<f32> {
    x.map(|v| v + by * times as f32)
}

#[kernel(reduce)]
fn weighted(x: Row<f32>, weight: f32, #[key] negated: bool) -> f32 {
    let sum = x.sum() * weight;
    if negated { -sum } else { sum }
}

#[kernel(index)]
fn every(x: View<f32, 2>, by: f32, #[key] step: i32, [i, j]: [i32; 2]) -> f32 {
    x.at([i, j * step]) * by
}

/// `by` is on the device, and so is what is computed from it; `times` is a number, and 0.5 a constant.
#[graphable]
fn scaled(
    #[host]
    #[dims(B, 4)]
    x: &Tensor<f32>,
    #[host] by: &Scalar<f32>,
    #[key] times: u32,
) -> Result<(Tensor<f32>, Tensor<f32>, Tensor<f32>, Tensor<f32>)> {
    let doubled = ops::scale(by.tensor(), 2.0)?;
    Ok((
        powered(&powered(x, by, times)?, 0.5, 1)?,
        shifted(x, &doubled, times as i32)?,
        weighted(x, by, times > 1, 1)?,
        every(x, &doubled, times as i32, (x.dim(0), 1))?,
    ))
}

#[test]
fn a_value_on_the_device_changes_in_replays_and_a_number_makes_a_recording() -> Result<()> {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(device())?;
        let graph = ScaledGraph::builder()
            .bucket("B", Schedule::new([2]))
            .mode(mode)
            .audit_every(4)
            .deny_fallback(true)
            .build(&mut rt)?;
        let x = [1.0f32, 2.0, 3.0, 4.0, 8.0, 7.0, 6.0, 5.0];
        for round in 0..8 {
            for times in 1..4 {
                let rows = 1 + round % 2;
                let by = round as f32 - 2.5;
                let step = rt.step()?;
                let (y, rest, sums, picked) = graph.call(&step, &x[..4 * rows], by, times)?;
                let want = |f: &dyn Fn(f32) -> f32| x[..4 * rows].iter().map(|v| f(*v)).collect::<Vec<_>>();
                let power = |v: f32| (0..times).fold(v, |y, _| y * by) * 0.5;
                assert_eq!(step.read(&y)?, want(&power), "{mode} {times}");
                assert_eq!(step.read(&rest)?, want(&|v| v + 2.0 * by * times as f32), "{mode} {times}");
                let sign = if times > 1 { -1.0 } else { 1.0 };
                let sum = |row: &[f32]| row.iter().sum::<f32>() * by * sign;
                assert_eq!(step.read(&sums)?, x[..4 * rows].chunks(4).map(sum).collect::<Vec<_>>());
                assert_eq!(step.read(&picked)?, vec![x[0] * 2.0 * by, x[4] * 2.0 * by][..rows]);
            }
        }
        let stats = rt.stats();
        let recordings = if mode == Mode::None { 0 } else { 3 };
        assert_eq!((stats.recordings, stats.fallbacks), (recordings, 0), "{mode}: one for each number");
    }
    Ok(())
}

#[test]
fn numbers_are_for_every_float_type() -> Result<()> {
    let mut rt = Runtime::new(device())?;
    let step = rt.step()?;
    let x = step.tensor(&[2], &[f16::from_f32(1.5), f16::from_f32(-2.0)])?;
    let by = step.tensor(&[], &[f16::from_f32(2.0)])?;
    let y = powered(&x, &by, 3)?;
    assert_eq!(step.read(&y)?.iter().map(|v| v.to_f32()).collect::<Vec<_>>(), [12.0, -16.0]);
    assert_eq!(powered::scalar(1.5, 2.0, 3), 12.0);
    Ok(())
}

/// What no key has: a value that a segment reads from elsewhere.
static AMBIENT: AtomicU32 = AtomicU32::new(0);

#[graphable]
fn ambient(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    powered(x, 2.0, AMBIENT.load(Ordering::Relaxed))
}

#[test]
fn a_number_that_no_key_has_is_found_by_the_first_comparison() -> Result<()> {
    for mode in [Mode::Piecewise, Mode::Full] {
        for recorded in [false, true] {
            AMBIENT.store(1, Ordering::Relaxed);
            let mut rt = Runtime::new(device())?;
            let graph = AmbientGraph::builder().mode(mode).audit_every(1).build(&mut rt)?;
            let mut call = || {
                let step = rt.step()?;
                let y = graph.call(&step, &step.tensor(&[1], &[1.0f32])?)?;
                step.read(&y)
            };
            for _ in 0..if recorded { 2 } else { 1 } {
                assert_eq!(call()?, [2.0], "{mode}");
            }
            AMBIENT.store(2, Ordering::Relaxed);
            match (recorded, call()) {
                (false, Err(Error::TraceMismatch { .. })) | (true, Err(Error::AuditMismatch { .. })) => {}
                (_, other) => panic!("{mode}: {other:?}"),
            }
        }
    }
    Ok(())
}

//! How many recordings the boundaries of a function make, and in what order its parts run.

use graphable::{graphable, prelude::*};

use crate::support::{attention, runtime};

#[graphable]
fn one_boundary(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = ops::scale(x, 2.0)?;
    let y = #[eager]
    attention(&y)?;
    ops::scale(&y, 3.0)
}

#[graphable]
fn two_boundaries(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = ops::scale(x, 2.0)?;
    let y = #[eager]
    attention(&y)?;
    let y = ops::scale(&y, 3.0)?;
    let y = #[eager]
    attention(&y)?;
    ops::scale(&y, 5.0)
}

#[graphable]
fn can_be_captured(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = ops::scale(x, 2.0)?;
    let y = #[eager(support = Always)]
    attention(&y)?;
    ops::scale(&y, 3.0)
}

/// Calls with inputs of these lengths until nothing is new; nodes, and eager calls per call then.
macro_rules! settled {
    ($graph:ident, $mode:expr, $lengths:expr, $factor:expr) => {{
        let mut rt = runtime();
        let graph = $graph::builder().mode($mode).build(&mut rt).unwrap();
        let mut eager = 0;
        for round in 0..6 {
            for n in $lengths {
                let before = rt.stats();
                {
                    let step = rt.step().unwrap();
                    let data: Vec<f32> = (0..n).map(|i| i as f32).collect();
                    let x = step.tensor(&[n], &data).unwrap();
                    let y = graph.call(&step, &x).unwrap();
                    let expected: Vec<f32> = data.iter().map(|v| v * $factor).collect();
                    assert_eq!(step.read(&y).unwrap(), expected, "round {round}, {n}");
                }
                let after = rt.stats();
                if round > 3 {
                    assert_eq!(after.recordings, before.recordings, "round {round}, {n}");
                }
                eager = after.eager_calls - before.eager_calls;
            }
        }
        assert_eq!(rt.stats().fallbacks, 0);
        (rt.stats().live_recordings, eager)
    }};
}

#[test]
fn boundaries_split_a_function() {
    assert_eq!(settled!(OneBoundaryGraph, Mode::Piecewise, [2], 6.0), (2, 1));
    assert_eq!(settled!(TwoBoundariesGraph, Mode::Piecewise, [2], 30.0), (3, 2));
    assert_eq!(settled!(CanBeCapturedGraph, Mode::Full, [2], 6.0), (1, 0));
}

#[test]
fn each_shape_has_its_parts() {
    assert_eq!(settled!(OneBoundaryGraph, Mode::Piecewise, [2, 3, 5], 6.0), (6, 1));
    assert_eq!(settled!(TwoBoundariesGraph, Mode::Piecewise, [2, 5], 30.0), (6, 2));
    assert_eq!(settled!(CanBeCapturedGraph, Mode::Full, [2, 3, 5], 6.0), (3, 0));
    assert_eq!(settled!(CanBeCapturedGraph, Mode::Piecewise, [2, 3], 6.0), (4, 1));
}

#[derive(Params)]
struct Buffer {
    sum: State<f32>,
}

/// A boundary writes what the next segment reads, and a segment what the next boundary reads; `big` dies
/// after the boundary that used it last.
#[graphable]
fn mutating(x: &Tensor<f32>, buffer: &Buffer) -> Result<Tensor<f32>> {
    let big = ops::scale(x, 10.0)?;
    let next = ops::add(&ops::load(x.scope(), &buffer.sum)?, &big)?;
    ops::store(&buffer.sum, &next)?;
    let seen = #[eager]
    shifted(&buffer.sum, &big)?;
    drop(big);
    let small = ops::neg(&ops::neg(x)?)?;
    let now = ops::load(x.scope(), &buffer.sum)?;
    ops::add(&ops::add(&seen, &now)?, &small)
}

/// Adds 1 to the state in place; gives what it was, plus `big`.
fn shifted<'s>(sum: &State<f32>, big: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    let before = ops::load(big.scope(), sum)?;
    ops::store(sum, &ops::add(&before, &ops::ones_like(&before)?)?)?;
    ops::add(&before, big)
}

#[test]
fn state_is_carried_over_boundaries() {
    let run = |mode: Mode| {
        let mut rt = runtime();
        let buffer = Buffer { sum: State::new(&rt, &[2], &[0.0, 100.0]).unwrap() };
        let graph = MutatingGraph::builder().mode(mode).build(&mut rt).unwrap();
        let mut seen = Vec::new();
        for i in 0..6 {
            let step = rt.step().unwrap();
            let x = step.tensor(&[2], &[i as f32, 1.0]).unwrap();
            let y = graph.call(&step, &x, &buffer).unwrap();
            let now = ops::load(step.scope(), &buffer.sum).unwrap();
            seen.push((step.read(&y).unwrap(), step.read(&now).unwrap()));
        }
        (seen, rt.stats().live_recordings)
    };
    let (eager, _) = run(Mode::None);
    assert_eq!(eager[0], (vec![1.0, 232.0], vec![1.0, 111.0]));
    assert_eq!(run(Mode::Piecewise), (eager, 2));
}

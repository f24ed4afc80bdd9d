//! What the programs are made of.

use graphable::{backend::cpu::CpuOptions, prelude::*};

/// A runtime in test mode.
pub(crate) fn runtime() -> Runtime {
    let options = CpuOptions::default().test_mode(11).threads(1);
    Runtime::new(crate::device::device(options)).unwrap()
}

#[derive(Params)]
pub(crate) struct Layer {
    pub(crate) a: Param<f32>,
    pub(crate) b: Param<f32>,
    pub(crate) bias: Option<Param<f32>>,
}

#[derive(Params)]
pub(crate) struct Model {
    pub(crate) layers: Vec<Layer>,
    pub(crate) embed: Param<f32>,
}

fn scalar(rt: &Runtime, v: f32) -> Param<f32> {
    Param::new(rt, &[1], &[v]).unwrap()
}

/// Two layers: (2, 3, no bias) and (4, 5, bias 2); embed 2.
pub(crate) fn model(rt: &Runtime) -> Model {
    Model {
        layers: vec![
            Layer { a: scalar(rt, 2.0), b: scalar(rt, 3.0), bias: None },
            Layer { a: scalar(rt, 4.0), b: scalar(rt, 5.0), bias: Some(scalar(rt, 2.0)) },
        ],
        embed: scalar(rt, 2.0),
    }
}

/// What stands for attention: the identity.
pub(crate) fn attention<'s>(q: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::scale(q, 1.0)
}

/// Calls a graph for several steps in one mode and checks every result; the last steps must only replay.
macro_rules! check {
    ($graph:ident, |$rt:ident| $setup:expr, |$g:ident, $step:ident, $m:ident, $n:ident| $call:expr, $expected:expr) => {
        for mode in [graphable::Mode::None, graphable::Mode::Piecewise, graphable::Mode::Full] {
            let mut $rt = crate::support::runtime();
            let $m = $setup;
            let _ = &$m;
            let $g = $graph::builder().mode(mode).build(&mut $rt).unwrap();
            let expected: Vec<f32> = $expected;
            for $n in 0..6usize {
                let before = $rt.stats();
                {
                    let $step = $rt.step().unwrap();
                    let y = $call.unwrap();
                    assert_eq!($step.read(&y).unwrap(), expected, "mode {mode}, step {}", $n);
                }
                let after = $rt.stats();
                if $n >= 4 && mode != graphable::Mode::None {
                    assert_eq!(after.recordings, before.recordings, "mode {mode}: step {} records", $n);
                    assert_eq!(after.warmups, before.warmups, "mode {mode}: step {} warms up", $n);
                    assert_eq!(after.copies, before.copies, "mode {mode}: step {} copies", $n);
                }
            }
        }
    };
}
pub(crate) use check;

/// Checks a graph of `x` on `x = 1`.
macro_rules! gives {
    ($graph:ident, $expected:expr) => {
        crate::support::check!(
            $graph,
            |rt| (),
            |g, step, m, n| {
                let x = step.tensor(&[1], &[1.0]).unwrap();
                let _ = n;
                g.call(&step, &x)
            },
            vec![$expected]
        )
    };
}
pub(crate) use gives;

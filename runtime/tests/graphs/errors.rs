//! Functions whose errors are the user's own.

#![deny(warnings, missing_docs)]

use graphable::{backend::cpu::CpuOptions, prelude::*};

use crate::device;

fn runtime() -> Runtime {
    Runtime::new(device::device(CpuOptions::default().test_mode(1).threads(1))).unwrap()
}

/// An error type of the user's own.
#[derive(Debug)]
pub enum Failure {
    /// Of the runtime.
    Graph(Error),
    /// Of the function.
    Negative,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Graph(error)
    }
}

/// Fails for some keys.
#[graphable]
pub fn root(#[host] x: &Tensor<f32>, #[key] sign: i32) -> Result<Tensor<f32>, Failure> {
    if sign < 0 {
        return Err(Failure::Negative);
    }
    Ok(ops::sqrt(x)?)
}

#[test]
fn user_errors_come_back() {
    let mut rt = runtime();
    let graph = RootGraph::builder().build(&mut rt).unwrap();
    for _ in 0..3 {
        let step = rt.step().unwrap();
        assert!(matches!(graph.call(&step, &[4.0, 9.0], -1), Err(Failure::Negative)));
        let out = graph.call(&step, &[4.0, 9.0], 1).unwrap();
        assert_eq!(step.read(&out).unwrap(), [2.0, 3.0]);
    }
    let step = rt.step().unwrap();
    let shape: &[usize] = &[3];
    let error = graph.call(&step, (&[1.0f32][..], shape), 1).unwrap_err();
    assert!(matches!(error, Failure::Graph(_)), "{error:?}");
    let error = graph.capture_all(&mut rt, 1).unwrap_err().to_string();
    assert!(error.contains("`x`") && error.contains("#[dims(...)]"), "{error}");
}

/// Fails for all inputs, with an error of the runtime or with its own.
#[graphable]
pub fn failing(
    #[host]
    #[dims(B, 2)]
    a: &Tensor<f32>,
    #[key] own: bool,
) -> Result<Tensor<f32>, Failure> {
    if own {
        return Err(Failure::Negative);
    }
    Ok(ops::reshape(a, [7, 7])?)
}

#[test]
fn capture_all_says_what_failed() {
    let mut rt = runtime();
    let graph = FailingGraph::builder().bucket("B", Schedule::new([2])).build(&mut rt).unwrap();
    let error = graph.capture_all(&mut rt, true).unwrap_err().to_string();
    assert!(error.contains("Negative"), "{error}");
    let error = graph.capture_all(&mut rt, false).unwrap_err().to_string();
    assert!(error.contains("reshape"), "{error}");
    // Nothing is left half done.
    let root = RootGraph::builder().build(&mut rt).unwrap();
    let step = rt.step().unwrap();
    assert_eq!(step.read(&root.call(&step, &[4.0, 9.0], 1).unwrap()).unwrap(), [2.0, 3.0]);
}

//! Closures over host data and live-ins, used in several segments; `#[host] let`; allowed macros.

#![deny(warnings)]

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] sizes: Vec<usize>) -> Result<Tensor<f32>> {
    #[host]
    let total: usize = sizes.iter().sum();
    let base = total as f32;
    let scaled = |t: &Tensor<f32>, by: f32| ops::scale(t, by * base);
    assert!(total > 0, "nothing in {sizes:?}");
    let h = scaled(x, 1.0)?;
    let a = #[eager]
    ops::neg(&h)?;
    debug_assert_eq!(a.rank(), 1, "a vector, not {:?}", a.shape());
    let parts = vec![scaled(&a, 0.5)?, a.clone()];
    if matches!(sizes.as_slice(), [1, ..]) {
        return ops::add(&parts[0], &parts[1]);
    }
    ops::sub(&parts[0], &parts[1])
}

/// What an inner closure would mean outside the function below.
#[allow(dead_code)]
fn plus(v: usize) -> usize {
    v + 1000
}

/// Closures of closures, whose names stand for other values by the time that host code calls the outermost.
#[graphable]
fn lost_names(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let plus = |v: usize| v + 1;
    let inner = |v: usize| plus(v);
    let outer = |v: usize| inner(v) * 2;
    let y = #[eager] ops::neg(x)?;
    let inner = 7;
    let n = #[eager] sum(outer(3), inner);
    let z = #[eager] ops::scale(&y, n as f32)?;
    ops::neg(&z)
}

fn sum(a: usize, b: usize) -> usize {
    a + b
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let graph = DecodeGraph::builder().build(&mut rt)?;
    let lost_names = LostNamesGraph::builder().build(&mut rt)?;
    for _ in 0..4 {
        for (sizes, expected) in [(vec![1, 1], -4.0), (vec![2], 0.0), (vec![4], -4.0)] {
            let step = rt.step()?;
            let x = step.tensor(&[1], &[1.0f32])?;
            let y = graph.call(&step, &x, sizes)?;
            assert_eq!(step.read(&y)?, [expected]);
            let y = lost_names.call(&step, &x)?;
            assert_eq!(step.read(&y)?, [15.0]);
        }
    }
    Ok(())
}

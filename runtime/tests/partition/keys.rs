//! The key of a segment: whatever could make a recording wrong is in it.

use graphable::{graphable, prelude::*};

use crate::support::{attention, runtime};

#[derive(Params)]
struct Pair {
    left: Option<Param<f32>>,
    right: Option<Param<f32>>,
    #[config]
    factor: f32,
}

#[graphable]
fn pair(x: &Tensor<f32>, p: &Pair) -> Result<Tensor<f32>> {
    let mut y = ops::scale(x, p.factor)?;
    if let Some(l) = &p.left {
        y = ops::add(&y, l)?;
    }
    if let Some(r) = &p.right {
        y = ops::mul(&y, r)?;
    }
    let y = #[eager]
    attention(&y)?;
    ops::neg(&y)
}

#[test]
fn some_and_none_swapped_and_a_changed_config() {
    let mut rt = runtime();
    let ten = Param::new(&rt, &[1], &[10.0]).unwrap();
    let mut p = Pair { left: Some(ten.clone()), right: None, factor: 2.0 };
    let g = PairGraph::builder().build(&mut rt).unwrap();
    for _ in 0..4 {
        for (swap, factor) in [(false, 2.0), (true, 2.0), (false, 3.0), (true, 3.0)] {
            (p.left, p.right) = if swap { (None, Some(ten.clone())) } else { (Some(ten.clone()), None) };
            p.factor = factor;
            let step = rt.step().unwrap();
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let expected = if swap { -factor * 10.0 } else { -factor - 10.0 };
            assert_eq!(step.read(&g.call(&step, &x, &p).unwrap()).unwrap(), [expected]);
        }
    }
}

#[graphable]
fn first_row(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = ops::narrow(x, 0, 0, 1)?;
    let y = ops::contiguous(&y)?;
    #[eager]
    attention(&y)
}

#[test]
fn a_transposed_view_of_a_square() {
    let mut rt = runtime();
    let g = FirstRowGraph::builder().build(&mut rt).unwrap();
    for _ in 0..5 {
        let step = rt.step().unwrap();
        let x = step.tensor(&[2, 2], &[1.0, 2.0, 3.0, 4.0]).unwrap();
        let t = ops::transpose(&x, 0, 1).unwrap();
        let (a, b) = (g.call(&step, &x).unwrap(), g.call(&step, &t).unwrap());
        assert_eq!(step.read(&a).unwrap(), [1.0, 2.0]);
        assert_eq!(step.read(&b).unwrap(), [1.0, 3.0]);
    }
}

#[graphable]
#[allow(clippy::useless_vec, reason = "the macro call is the point")]
fn in_a_macro(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let unit = #[eager]
    attention(x)?;
    let parts = vec![ops::scale(&unit, n as f32)?, ops::scale(&unit, 1.0)?];
    assert!(n < 100, "n is {n}");
    ops::add(&parts[0], &parts[1])
}

#[test]
fn a_live_in_hidden_in_a_macro_call() {
    let mut rt = runtime();
    let g = InAMacroGraph::builder().build(&mut rt).unwrap();
    for _ in 0..4 {
        for n in [1, 2, 7] {
            let step = rt.step().unwrap();
            let x = step.tensor(&[1], &[1.0]).unwrap();
            assert_eq!(step.read(&g.call(&step, &x, n).unwrap()).unwrap(), [n as f32 + 1.0]);
        }
    }
}

/// A host value of eager code enters a segment by `#[key]`.
#[graphable]
fn keyed_value(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[key]
    let n = #[eager(cx)]
    {
        cx.item(x)? as usize
    };
    let mut y = ops::scale(x, 1.0)?;
    for _ in 0..n {
        y = ops::scale(&y, 2.0)?;
    }
    ops::scale(&y, n as f32)
}

#[test]
fn eager_values_by_key() {
    let mut rt = runtime();
    let g = KeyedValueGraph::builder().build(&mut rt).unwrap();
    for _ in 0..4 {
        for n in [1.0f32, 3.0, 2.0] {
            let step = rt.step().unwrap();
            let x = step.tensor(&[1], &[n]).unwrap();
            let expected = n * 2f32.powi(n as i32) * n;
            assert_eq!(step.read(&g.call(&step, &x).unwrap()).unwrap(), [expected]);
        }
    }
}

/// `#[host] let` runs on every call.
#[graphable]
fn host_let(x: &Tensor<f32>, #[key] values: Vec<usize>) -> Result<Tensor<f32>> {
    #[host]
    let largest = values.iter().copied().max().unwrap_or(0);
    let y = ops::scale(x, largest as f32)?;
    #[eager]
    attention(&y)
}

#[test]
fn host_lets_run_on_every_call() {
    let mut rt = runtime();
    let g = HostLetGraph::builder().build(&mut rt).unwrap();
    for _ in 0..4 {
        for values in [vec![1, 5], vec![2], vec![5, 1, 3]] {
            let largest = *values.iter().max().unwrap() as f32;
            let step = rt.step().unwrap();
            let x = step.tensor(&[1], &[1.0]).unwrap();
            assert_eq!(step.read(&g.call(&step, &x, values).unwrap()).unwrap(), [largest]);
        }
    }
}

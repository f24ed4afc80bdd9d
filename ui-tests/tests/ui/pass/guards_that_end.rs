//! Guards that end before a boundary on every way, and values that only look like guards.

use graphable::prelude::*;

struct Autocast;

impl Autocast {
    fn new(_factor: f32) -> Self {
        Autocast
    }
}

struct Scope {
    factor: f32,
}

impl Drop for Autocast {
    fn drop(&mut self) {}
}

impl Drop for Scope {
    fn drop(&mut self) {}
}

/// It cannot be part of a key, and dropping it has no effect.
struct Lists {
    scales: Vec<f32>,
}

struct Settings<T> {
    inner: T,
    count: usize,
}

fn end(_guard: Autocast) {}

fn attention<'s>(q: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::exp(q)
}

#[graphable]
fn on_every_way(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let (guard, other, third) = (Autocast::new(2.0), Autocast::new(3.0), Autocast::new(4.0));
    let h = ops::neg(x)?;
    if n == 0 {
        drop(guard);
    } else {
        end(guard);
    }
    match n {
        0 => drop(other),
        _ => {
            let _inner = other;
        }
    }
    let end_it = || drop(third);
    end_it();
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

#[graphable]
fn written_out(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let scope = Scope { factor: 2.0 };
    let h = ops::scale(x, scope.factor)?;
    drop(scope);
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

/// Host code has one that no segment uses.
#[graphable]
fn never_used(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let _scope = Scope { factor: 2.0 };
    let h = ops::neg(x)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

#[graphable]
fn no_guards(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let lists = Lists { scales: vec![0.5; n + 1] };
    let settings = Settings { inner: Lists { scales: Vec::new() }, count: n };
    let lent = (&Lists { scales: vec![1.0] }, Some(&settings.inner));
    let chosen;
    if n == 0 {
        chosen = Lists { scales: vec![2.0] };
    } else {
        chosen = Lists { scales: vec![3.0] };
    }
    let scale = lists.scales.len() + settings.count + lent.0.scales.len() + chosen.scales.len();
    let h = ops::scale(x, scale as f32 + lent.1.map_or(0.0, |l| l.scales.len() as f32))?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

fn main() {
    let mut rt = Runtime::new(Device::cpu()).unwrap();
    let on_every_way = OnEveryWayGraph::builder().build(&mut rt).unwrap();
    let written_out = WrittenOutGraph::builder().build(&mut rt).unwrap();
    let never_used = NeverUsedGraph::builder().build(&mut rt).unwrap();
    let no_guards = NoGuardsGraph::builder().build(&mut rt).unwrap();
    for n in [0, 2, 0, 2, 0] {
        let step = rt.step().unwrap();
        let x = step.tensor(&[2], &[1.0, 2.0]).unwrap();
        let first = on_every_way.call(&step, &x, n).unwrap();
        let second = written_out.call(&step, &first).unwrap();
        let third = never_used.call(&step, &second).unwrap();
        let last = no_guards.call(&step, &third, n).unwrap();
        assert_eq!(step.read(&last).unwrap().len(), 2);
    }
}

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

fn seen<T>(_value: &T) {}

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

/// A closure has what it captures.
#[graphable]
fn in_closures(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let all = Vec::from([Autocast::new(2.0)]);
    let look = move || seen(&all);
    look();
    let other = Autocast::new(3.0);
    {
        let look = move || seen(&other);
        look();
    }
    let looks = Vec::from([look]);
    seen(&looks);
    drop(looks);
    let h = ops::neg(x)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

/// Host code has one that no segment uses.
#[graphable]
fn never_used(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let _scope = Scope { factor: 2.0 };
    let scope = Scope { factor: 3.0 };
    let h = ops::neg(x)?;
    let scope = ops::exp(&h)?;
    let a = #[eager]
    attention(&h)?;
    ops::add(&a, &scope)
}

#[derive(Clone, Copy, PartialEq)]
enum Act {
    Relu,
}

struct Holder {
    act: &'static Act,
    count: usize,
}

struct Stack<T> {
    items: T,
    count: usize,
}

impl<T> Stack<T> {
    fn build(self) -> usize {
        self.count
    }
}

#[graphable]
fn no_guards(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let holder = Holder { act: &Act::Relu, count: n };
    let stack = Stack { items: (n, 1), count: n };
    let plain = Stack { items: Some(Stack { items: n, count: 1 }), count: 2 };
    let list = {
        let mut list = Vec::new();
        list.push(Stack { items: n, count: 3 });
        list
    };
    let (parts, by) = (&[&ops::neg(x)?, x], 2.0);
    let rank: (&dyn Fn(&Tensor<f32>) -> usize, f32) = (&|t| t.rank(), 2.0);
    let chosen;
    if n == 0 {
        chosen = Vec::new();
    } else {
        chosen = vec![Lists { scales: vec![3.0] }];
    }
    let all = vec![plain];
    let count = stack.build() + list.len() + chosen.len() + all.len() + rank.0(x) + usize::from(*holder.act == Act::Relu);
    let h = ops::scale(parts[0], (count + holder.count) as f32 * by)?;
    let h = ops::add(&h, chosen.first().map_or(0.0, |l| l.scales.len() as f32))?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

fn main() {
    let mut rt = Runtime::new(Device::cpu()).unwrap();
    let on_every_way = OnEveryWayGraph::builder().build(&mut rt).unwrap();
    let written_out = WrittenOutGraph::builder().build(&mut rt).unwrap();
    let in_closures = InClosuresGraph::builder().build(&mut rt).unwrap();
    let never_used = NeverUsedGraph::builder().build(&mut rt).unwrap();
    let no_guards = NoGuardsGraph::builder().build(&mut rt).unwrap();
    for n in [0, 2, 0, 2, 0] {
        let step = rt.step().unwrap();
        let x = step.tensor(&[2], &[1.0, 2.0]).unwrap();
        let first = on_every_way.call(&step, &x, n).unwrap();
        let second = written_out.call(&step, &first).unwrap();
        let second = in_closures.call(&step, &second).unwrap();
        let third = never_used.call(&step, &second).unwrap();
        let last = no_guards.call(&step, &third, n).unwrap();
        assert_eq!(step.read(&last).unwrap().len(), 2);
    }
}

/// Values that are no guards, moved by `?`, by methods and under their own names.
#[graphable]
fn results(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let first = ops::neg(x);
    let first = first?;
    let parts = (0..3).map(|i| ops::scale(&first, i as f32)).collect::<Result<Vec<_>>>();
    let parts = parts?;
    let scales = vec![1.0f32, 2.0];
    let mut sum = 0.0;
    scales.into_iter().for_each(|scale| sum += scale);
    let other = ops::neg(x);
    let other = match other {
        Ok(other) => other,
        Err(error) => return Err(error),
    };
    let sizes = Box::new(vec![n]);
    let sizes = *sizes;
    let mut numbers = sizes.into_iter().enumerate();
    let (at, _) = numbers.next().unwrap_or_default();
    let (least, most): (f32, f32);
    if n == 0 {
        (least, most) = (1.0, 2.0);
    } else {
        (least, most) = (3.0, 4.0);
    }
    let h = ops::add(&parts[at], &ops::scale(&other, sum.clamp(least, most))?)?;
    let all = vec![Autocast::new(2.0)];
    drop(all);
    let guard = Autocast::new(2.0);
    let mut guard = (guard, 1usize);
    guard.1 += 1;
    drop(guard);
    let a = #[eager]
    attention(&h)?;
    let _guard = Autocast::new(3.0);
    let a = ops::neg(&a)?;
    Ok(a)
}

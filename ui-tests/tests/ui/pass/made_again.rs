//! Closures and values that segments, host code and arms of the device each make for themselves: of values that they take,
//! of other closures, and for variables of an arm.

#![deny(warnings)]

use graphable::prelude::*;

#[derive(Clone, ConfigValue)]
struct Weights {
    p: Vec<f32>,
    q: Vec<f32>,
}

/// What cannot be part of a key.
struct Taken {
    list: Vec<f32>,
}

fn weights(n: usize) -> Weights {
    Weights { p: vec![n as f32], q: vec![2.0] }
}

fn by<'s>(x: &Tensor<'s, f32>, list: &[f32]) -> Result<Tensor<'s, f32>> {
    ops::scale(x, list.iter().sum())
}

/// Each value takes all or a part of a host value, and segments and regions use it.
#[graphable]
fn taken(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    #[host]
    let w = weights(n);
    let part = match w {
        Weights { p, .. } => Taken { list: p },
    };
    let h = by(x, &part.list)?;
    let h = #[eager]
    by(&h, &part.list)?;
    #[host]
    let optional = (n > 1).then(|| vec![3.0]);
    let some = if let Some(v) = optional { Taken { list: v } } else { Taken { list: vec![1.0] } };
    let h = by(&h, &some.list)?;
    #[host]
    let w = weights(n);
    let whole = Some(w);
    let h = by(&h, &whole.as_ref().unwrap().q)?;
    let h = #[eager]
    by(&h, &some.list)?;
    #[host]
    let w = weights(n);
    let rest = Weights { q: vec![0.5], ..w };
    let h = #[eager]
    by(&h, &rest.p)?;
    #[host]
    let w = weights(n);
    let boxed = Box::new(move |k: f32| w.q[0] * k);
    let h = by(&by(&h, &rest.q)?, &[boxed(1.0)])?;
    let h = #[eager]
    by(&h, &[boxed(0.5)])?;
    // A region uses it under another name.
    let renamed = &part;
    let h = #[eager]
    by(&h, &renamed.list)?;
    by(&by(&h, &part.list)?, &whole.as_ref().unwrap().q)
}

/// A closure made of another, which host code uses.
#[graphable]
fn of_closures(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let inner = |v| ops::scale(v, n as f32);
    let outer = |v| inner(v);
    let h = #[eager(support = Always)]
    outer(x)?;
    outer(&h)
}

/// A variable without a value at first is moved behind device work that reads it.
#[graphable]
fn deferred(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let h;
    if n > 1 {
        h = ops::neg(x)?;
    } else {
        h = ops::scale(x, 2.0)?;
    }
    let mut all = vec![x.clone()];
    let y = #[eager(support = Always)]
    ops::neg(&h)?;
    all.push(h.clone());
    let mut moved = h;
    moved = ops::sub(&moved, &y)?;
    let z = #[eager(support = Always)]
    ops::neg(&moved)?;
    ops::add(&z, &all[1])
}

#[derive(Clone, GraphOutput)]
struct Pair<'s> {
    l: Tensor<'s, f32>,
    r: Tensor<'s, f32>,
}

fn pair<'s>(x: &Tensor<'s, f32>) -> Result<Pair<'s>> {
    Ok(Pair { l: ops::neg(x)?, r: ops::scale(x, 2.0)? })
}

/// Parts of values of regions are moved behind device work that reads them.
#[graphable]
fn parts(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let p = #[eager(support = Always)]
    pair(x)?;
    let h = match p {
        all => all.r,
    };
    let mut y = ops::neg(&h)?;
    let moved = h;
    let p = #[eager(support = Always)]
    pair(&moved)?;
    match p {
        Pair { l, .. } => {
            y = ops::sub(&y, &l)?;
            let other = l;
            let z = #[eager(support = Always)]
            ops::neg(&y)?;
            y = ops::sub(&z, &other)?;
        }
    }
    let p = #[eager(support = Always)]
    pair(&y)?;
    for v in [p.l, p.r] {
        y = ops::add(&y, &v)?;
        let u = v;
        let z = #[eager(support = Always)]
        ops::neg(&y)?;
        y = ops::add(&z, &u)?;
    }
    Ok(y)
}

/// Arms call closures with references to variables of their own.
#[graphable]
fn in_arms(x: &Tensor<f32>, #[host] q: &Scalar<i32>) -> Result<Tensor<f32>> {
    let inner = |v| ops::neg(v);
    let outer = |v| inner(v);
    let mut h = #[eager(support = Always)]
    ops::scale(x, 1.0)?;
    #[device]
    if ops::gt(q, 1)? {
        let t = ops::scale(&h, 2.0)?;
        h = outer(&t)?;
        #[device]
        if ops::gt(q, 2)? {
            let t = ops::scale(&h, 2.0)?;
            h = inner(&t)?;
        }
    } else if ops::gt(q, 0)? {
        h = outer(&ops::scale(&h, 5.0)?)?;
    }
    let mut turn = ops::full(x.scope(), (), 0i32)?;
    #[device]
    while ops::lt(&turn, q)? {
        let t = ops::scale(&h, 1.0)?;
        h = outer(&t)?;
        turn = ops::add(&turn, 1)?;
    }
    let h = #[device]
    match q {
        0 => inner(&h)?,
        _ => {
            let t = ops::scale(&h, 10.0)?;
            inner(&t)?
        }
    };
    Ok(h)
}

fn main() -> Result<()> {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(Device::cpu())?;
        let closures = OfClosuresGraph::builder().mode(mode).build(&mut rt)?;
        let later = DeferredGraph::builder().mode(mode).build(&mut rt)?;
        let taken_apart = PartsGraph::builder().mode(mode).build(&mut rt)?;
        let arms = InArmsGraph::builder().mode(mode).build(&mut rt)?;
        // `#[host] let` has no place in one whole graph.
        let values = match mode {
            Mode::Full => None,
            _ => Some(TakenGraph::builder().mode(mode).build(&mut rt)?),
        };
        for _ in 0..4 {
            for (n, of_values) in [(1, 4.0), (2, 1152.0)] {
                let step = rt.step()?;
                let x = step.tensor(&[1], &[1.0f32])?;
                if let Some(graph) = &values {
                    let y = graph.call(&step, &x, n)?;
                    assert_eq!(step.read(&y)?, [of_values], "{mode} {n}");
                }
                assert_eq!(step.read(&closures.call(&step, &x, n)?)?, [(n * n) as f32]);
                assert_eq!(step.read(&taken_apart.call(&step, &x)?)?, [2.0]);
                let expected = if n == 1 { -2.0 } else { 1.0 };
                assert_eq!(step.read(&later.call(&step, &x, n)?)?, [expected], "{mode} {n}");
            }
            for (q, expected) in [(0, -1.0), (1, -50.0), (2, 20.0), (3, 40.0)] {
                let step = rt.step()?;
                let x = step.tensor(&[1], &[1.0f32])?;
                assert_eq!(step.read(&arms.call(&step, &x, q)?)?, [expected], "{mode} {q}");
            }
        }
    }
    Ok(())
}

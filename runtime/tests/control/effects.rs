//! State and random numbers: what a body does not run, it does not change.

use graphable::{RngState, prelude::*};

use crate::support::{build, setups};

/// Writes rows and draws, if asked to.
#[graphable]
fn stepped(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host] p: &Scalar<bool>,
    total: &State<f32>,
    rng: &Rng,
) -> Result<Tensor<f32>> {
    control::cond(
        p,
        || {
            let noise = ops::uniform(rng, x.scope(), x.shape(), 0.0..1.0)?;
            let sum = ops::add(&ops::load(x.scope(), total)?, &ops::add(x, &noise)?)?;
            ops::store(total, &sum)?;
            Ok(noise)
        },
        || Ok(x.clone()),
    )
}

/// The same without control flow, on a runtime of its own.
struct Plain {
    rt: Runtime,
    total: State<f32>,
    rng: Rng,
}

impl Plain {
    fn new() -> Self {
        let rt = crate::support::runtime();
        let (total, rng) = (State::zeros(&rt, &[2]).unwrap(), Rng::new(&rt, 9).unwrap());
        Self { rt, total, rng }
    }

    fn call(&mut self, x: [f32; 2], p: bool) -> Vec<f32> {
        let step = self.rt.step().unwrap();
        let x = step.tensor([2], &x).unwrap();
        if !p {
            return step.read(&x).unwrap();
        }
        let noise = ops::uniform(&self.rng, step.scope(), [2], 0.0..1.0).unwrap();
        let sum = ops::add(&ops::load(step.scope(), &self.total).unwrap(), &ops::add(&x, &noise).unwrap());
        ops::store(&self.total, &sum.unwrap()).unwrap();
        step.read(&noise).unwrap()
    }

    fn end(mut self) -> (Vec<f32>, RngState) {
        let step = self.rt.step().unwrap();
        let total = ops::load(step.scope(), &self.total).unwrap();
        (step.read(&total).unwrap(), self.rng.save(&step).unwrap())
    }
}

#[test]
fn state_and_random_numbers_change_with_the_body() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let (total, rng) = (State::zeros(&rt, &[2]).unwrap(), Rng::new(&rt, 9).unwrap());
        let graph = build!(SteppedGraph, setup, &mut rt);
        let mut plain = Plain::new();
        for (call, p) in [true, false, true, true, false, true, false, true].into_iter().enumerate() {
            let x = [call as f32, -1.0];
            let step = rt.step().unwrap();
            let y = graph.call(&step, &x, p, &total, &rng).unwrap();
            assert_eq!(step.read(&y).unwrap(), plain.call(x, p), "{setup:?}, call {call}");
        }
        let step = rt.step().unwrap();
        let now = step.read(&ops::load(step.scope(), &total).unwrap()).unwrap();
        assert_eq!((now, rng.save(&step).unwrap()), plain.end(), "{setup:?}");
    }
}

/// Counts rows and draws, if asked to.
#[graphable]
fn counting(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host] p: &Scalar<bool>,
    total: &State<u32>,
    rng: &Rng,
) -> Result<Tensor<f32>> {
    let state = |body: u32| {
        let rows = ops::add(&ops::load(x.scope(), total)?, &ops::reshape(&ops::size(x, 0)?, [1])?)?;
        ops::store(total, &ops::add(&rows, body)?)?;
        ops::add(x, &ops::uniform(rng, x.scope(), x.shape(), 0.0..1.0)?)
    };
    control::cond(p, || state(100), || state(0))
}

#[test]
fn capture_all_and_estimates_change_nothing() {
    let mut rt = crate::support::runtime();
    let (total, rng) = (State::new(&rt, &[1], &[5u32]).unwrap(), Rng::new(&rt, 9).unwrap());
    let graph = CountingGraph::builder().bucket("B", Schedule::new([2])).build(&mut rt).unwrap();
    let state = |rt: &mut Runtime| {
        let step = rt.step().unwrap();
        let total = step.read(&ops::load(step.scope(), &total).unwrap()).unwrap();
        (total, rng.save(&step).unwrap())
    };
    let before = state(&mut rt);
    let memory = rt.estimate_memory(|rt| graph.capture_all(rt, &total, &rng)).unwrap();
    assert!(memory.recordings > 0);
    assert_eq!(state(&mut rt), before);
    graph.capture_all(&mut rt, &total, &rng).unwrap();
    assert_eq!(state(&mut rt), before);
    let recordings = rt.stats().recordings;
    let step = rt.step().unwrap();
    graph.call(&step, &[1.0, 2.0], true, &total, &rng).unwrap();
    drop(step);
    assert_eq!(rt.stats().recordings, recordings, "it was captured");
    assert_ne!(state(&mut rt), before);
}

/// A decode loop: each round draws a token, writes it, and stops at an end token or when `n` are written.
#[graphable]
fn generated(#[host] n: &Scalar<u32>, tokens: &State<f32>, rng: &Rng) -> Result<Tensor<u32>> {
    let scope = n.scope();
    let number = |value: u32| ops::full(scope, (), value);
    let (count, _) = control::while_loop(
        64,
        (number(0)?, number(1)?),
        |(i, token)| ops::logical_and(&ops::lt(i, n)?, &ops::ne(token, 0)?),
        |(i, _)| {
            let token = ops::randint(rng, scope, (), 0..7u32)?;
            let row = ops::reshape(&ops::cast::<_, f32>(&token)?, [1, 1])?;
            ops::scatter_rows(tokens, &ops::reshape(&i, [1])?, &row)?;
            Ok((ops::add(&i, 1)?, token))
        },
    )?;
    Ok(count)
}

#[test]
fn a_loop_writes_state_and_draws_each_round() {
    let mut expected = Vec::new();
    for setup in setups() {
        let mut rt = setup.runtime();
        let tokens = State::zeros(&rt, &[64, 1]).unwrap();
        let rng = Rng::new(&rt, 31).unwrap();
        let graph = build!(GeneratedGraph, setup, &mut rt);
        let mut got = Vec::new();
        for n in [5u32, 0, 12, 3, 40, 40, 1] {
            let step = rt.step().unwrap();
            let count = graph.call(&step, n, &tokens, &rng).unwrap();
            let count = step.item(&count).unwrap() as usize;
            let all = step.read(&ops::load(step.scope(), &tokens).unwrap()).unwrap();
            assert!(count <= n as usize);
            assert!(all[..count].iter().rev().skip(1).all(|t| *t > 0.0), "it stops at the end token");
            assert!(count == n as usize || all[count - 1] == 0.0);
            got.push((all[..count].to_vec(), rng.save(&step).unwrap()));
        }
        assert!(got.iter().any(|(tokens, _)| tokens.len() > 3));
        if expected.is_empty() {
            expected.clone_from(&got);
        }
        assert_eq!(got, expected, "{setup:?}");
    }
}

/// A body with branches that run side by side, and a branch with bodies.
#[graphable]
fn both(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host] p: &Scalar<bool>,
) -> Result<Tensor<f32>> {
    let y = control::cond(
        p,
        || {
            let (a, b) =
                join(x.scope(), || ops::scale(&ops::neg(x)?, 2.0), || ops::add(&ops::relu(x)?, 3.0))?;
            ops::mul(&a, &b)
        },
        || Ok::<_, Error>(x.clone()),
    )?;
    let (a, b) = join(
        x.scope(),
        || {
            let inner = ops::scale(&y, 0.5)?;
            control::cond(p, || ops::neg(&inner), || ops::scale(&inner, 4.0))
        },
        || {
            let zero = ops::full(x.scope(), (), 0u32)?;
            let (_, z) = control::while_loop(
                5,
                (zero, y.clone()),
                |(i, _)| ops::lt(i, 3),
                |(i, z)| Ok::<_, Error>((ops::add(&i, 1)?, ops::add(&ops::scale(&z, 2.0)?, 1.0)?)),
            )?;
            Ok::<_, Error>(z)
        },
    )?;
    ops::add(&a, &b)
}

#[test]
fn branches_in_bodies_and_bodies_in_branches() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = build!(BothGraph, setup, &mut rt);
        for call in 0..8 {
            let p = call % 3 != 0;
            let x = [call as f32, -2.0];
            let step = rt.step().unwrap();
            let z = graph.call(&step, &x, p).unwrap();
            let of = |x: f32| {
                let y = if p { -2.0 * x * (x.max(0.0) + 3.0) } else { x };
                let a = if p { -0.5 * y } else { 2.0 * y };
                a + (0..3).fold(y, |z, _| 2.0 * z + 1.0)
            };
            assert_eq!(step.read(&z).unwrap(), x.map(of), "{setup:?}, call {call}");
            step.check_memory().unwrap();
        }
        assert!(rt.stats().recordings <= 2);
    }
}

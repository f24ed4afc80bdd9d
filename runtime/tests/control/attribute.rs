//! `#[device]` in functions: limits, the place of a loop, and variables that arms assign and move.

use graphable::prelude::*;

use crate::support::{build, runtime, setups};

const LINE: u32 = line!() + 6;

#[graphable]
fn counted(#[host] n: &Scalar<u32>, #[key] most: usize) -> Result<Tensor<u32>> {
    let mut i = ops::zeros(n.scope(), ())?;
    #[device(limit = most as u32 + 1)]
    while ops::lt(&i, n)? {
        i = ops::add(&i, 1)?;
    }
    Ok(i)
}

#[test]
fn the_host_computes_a_limit_and_the_error_names_the_loop() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = build!(CountedGraph, setup, &mut rt);
        for (n, most) in [(3, 4), (5, 4), (6, 4), (3, 1), (2, 1), (6, 4), (3, 1), (5, 4), (9, 4), (1, 1)] {
            let step = rt.step().unwrap();
            let limit = most as u32 + 1;
            match graph.call(&step, n, most).and_then(|y| step.item(&y)) {
                Ok(rounds) => assert!(n <= limit && rounds == n, "{setup:?}: {rounds} of {n}"),
                Err(Error::LoopLimit { at, limit: reached }) => {
                    assert!(n > limit && reached == limit, "{setup:?}: {n}, {reached}");
                    assert_eq!((at.line(), at.column()), (LINE, 5), "{at}");
                    assert!(at.file().ends_with("attribute.rs"), "{at}");
                }
                Err(other) => panic!("{setup:?}: {other}"),
            }
        }
        // The limit is a part of the key.
        let recordings = if setup.mode == Mode::None { 0 } else { 2 };
        assert_eq!(rt.stats().recordings, recordings, "{setup:?}");
    }
}

#[graphable]
fn none(#[host] n: &Scalar<u32>, #[key] most: u32) -> Result<Tensor<u32>> {
    let mut i = ops::zeros(n.scope(), ())?;
    #[device(limit = { most })]
    while ops::lt(&i, n)? {
        i = ops::add(&i, 1)?;
    }
    Ok(i)
}

#[test]
fn a_limit_of_no_rounds_is_refused_when_the_host_computes_it() {
    let mut rt = runtime();
    let graph = NoneGraph::builder().build(&mut rt).unwrap();
    for _ in 0..3 {
        let step = rt.step().unwrap();
        assert!(matches!(graph.call(&step, 1, 0), Err(Error::Argument { op: "while", .. })));
    }
    let step = rt.step().unwrap();
    assert_eq!(step.item(&graph.call(&step, 1, 1).unwrap()).unwrap(), 1);
}

#[derive(Params)]
struct Model {
    #[config]
    rounds: u32,
}

impl Model {
    fn rounds(&self) -> u32 {
        self.rounds
    }
}

const BETWEEN: u32 = line!() + 11;

/// Two loops with limits of the model and of a region, around a boundary.
#[graphable]
fn between(#[host] n: &Scalar<u32>, model: &Model) -> Result<Tensor<u32>> {
    let mut i = ops::zeros(n.scope(), ())?;
    let mut evaluated = 0;
    #[device(limit = {
        evaluated += 1;
        model.rounds()
    })]
    while ops::lt(&i, n)? {
        i = ops::add(&i, 1)?;
    }
    let j = #[eager]
    ops::add(&i, 0)?;
    let mut k = ops::full(j.scope(), (), evaluated)?;
    #[device(limit = model.rounds * 2)]
    while ops::lt(&k, &j)? {
        k = ops::add(&k, 1)?;
    }
    Ok(k)
}

#[test]
fn limits_are_host_values_of_their_segments() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph =
            BetweenGraph::builder().mode(setup.mode).audit_every(setup.audit_every).build(&mut rt).unwrap();
        for (n, rounds) in [(3, 4), (5, 4), (2, 2), (3, 2), (4, 4), (5, 4), (2, 2), (3, 2), (0, 4)] {
            let step = rt.step().unwrap();
            match graph.call(&step, n, &Model { rounds }).and_then(|y| step.item(&y)) {
                Ok(k) => assert!(n <= rounds && k == n.max(1), "{setup:?}: {n} {rounds} {k}"),
                Err(Error::LoopLimit { at, limit }) => {
                    assert!(n > rounds && limit == rounds, "{setup:?}: {n} {rounds} {limit}");
                    assert_eq!(at.line(), BETWEEN, "{at}");
                }
                Err(other) => panic!("{setup:?}: {other}"),
            }
        }
    }
}

#[derive(Clone, GraphOutput)]
struct Pair<'s> {
    l: Tensor<'s, f32>,
    r: Tensor<'s, f32>,
}

fn keep(x: Tensor<'_, f32>) -> Tensor<'_, f32> {
    x
}

fn sum<'s>(pair: Pair<'s>) -> Result<Tensor<'s, f32>> {
    ops::add(&pair.l, &pair.r)
}

/// Variables that arms assign and move, as Rust allows where nothing uses them later.
#[graphable]
fn moved(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host] p: &Scalar<bool>,
    #[host] k: &Scalar<u32>,
    #[key] layers: usize,
) -> Result<Tensor<f32>> {
    let mut h = ops::scale(x, 2.0)?;
    let mut y = x.clone();
    #[device]
    if p {
        h = ops::neg(&h)?;
        y = keep(h);
    } else {
        h = ops::add(&h, 1.0)?;
        y = ops::add(&h, &y)?;
    }
    for layer in 0..layers {
        let mut pair = Pair { l: y.clone(), r: x.clone() };
        let z = #[device]
        match k {
            0 => {
                pair.l = ops::scale(&pair.l, 3.0)?;
                sum(pair)?
            }
            1 => {
                pair.r = ops::neg(&pair.r)?;
                let Pair { l, r } = pair;
                ops::sub(&l, &r)?
            }
            _ => keep(pair.r),
        };
        // Moved, and assigned again: used in the next layer.
        let mut w = ops::add(&z, layer as f32)?;
        #[device]
        if p {
            w = keep(w);
            w = keep(ops::neg(&w)?);
        }
        y = #[eager]
        ops::add(&w, 0.0)?;
    }
    Ok(y)
}

fn moved_by_hand(x: f32, p: bool, k: u32, layers: usize) -> f32 {
    let mut y = if p { -2.0 * x } else { 2.0 * x + 1.0 + x };
    for layer in 0..layers {
        let z = match k {
            0 => 3.0 * y + x,
            1 => y + x,
            _ => x,
        };
        let w = z + layer as f32;
        y = if p { -w } else { w };
    }
    y
}

#[test]
fn what_arms_assign_and_move_is_gone_after_them() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph =
            MovedGraph::builder().mode(setup.mode).audit_every(setup.audit_every).build(&mut rt).unwrap();
        for round in 0..3 {
            for (p, k, layers) in [(true, 0, 2), (false, 1, 2), (true, 2, 2), (false, 0, 1), (true, 1, 0)] {
                let x = round as f32 + 0.5;
                let step = rt.step().unwrap();
                let y = graph.call(&step, &[x, -x], p, k, layers).unwrap();
                let expected = [x, -x].map(|x| moved_by_hand(x, p, k, layers));
                assert_eq!(step.read(&y).unwrap(), expected, "{setup:?} {p} {k} {layers}");
            }
        }
    }
}

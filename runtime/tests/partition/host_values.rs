//! Values that regions give host code: `#[key]` promises one recording for each, in full mode too.

use std::cell::Cell;

use graphable::{Mode, graphable, prelude::*};

use crate::support::{attention, runtime};

thread_local! {
    static NEXT: Cell<usize> = const { Cell::new(0) };
}

/// 2 for the first eight calls, then 4, then 6.
fn next() -> usize {
    let n = NEXT.get();
    NEXT.set(n + 1);
    2 + 2 * (n / 8)
}

#[derive(GraphOutput)]
struct Counted<'s> {
    t: Tensor<'s, f32>,
    n: usize,
}

fn counted<'s>(t: &Tensor<'s, f32>) -> Result<Counted<'s>> {
    Ok(Counted { t: ops::scale(t, 1.0)?, n: next() })
}

/// Of a type that cannot leave a segment.
struct Opaque(usize);

#[graphable]
fn keyed(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[key]
    let n = #[eager(support = Always)]
    next();
    ops::scale(x, n as f32)
}

#[graphable]
fn keyed_by_a_call(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[key]
    let n = next();
    let a = #[eager(support = Always)]
    attention(x)?;
    ops::scale(&a, n as f32)
}

#[graphable]
fn in_a_struct(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let c = #[eager(support = Always)]
    counted(x)?;
    #[key]
    let n = c.n;
    ops::scale(&c.t, n as f32)
}

#[graphable]
fn steering(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let opaque = #[eager(support = Always)]
    Opaque(next());
    let mut h = ops::scale(x, 1.0)?;
    if opaque.0 == 4 {
        h = ops::scale(&h, 4.0)?;
    } else if opaque.0 == 6 {
        h = ops::scale(&h, 6.0)?;
    } else {
        h = ops::scale(&h, 2.0)?;
    }
    Ok(h)
}

#[graphable]
fn many(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let all = #[eager(support = Always)]
    vec![x.clone(); next()];
    let mut h = ops::sub(x, x)?;
    for t in &all {
        h = ops::add(&h, t)?;
    }
    Ok(h)
}

/// Tensors alone: this one stays whole.
#[graphable]
fn tensors(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let (a, b) = #[eager(support = Always)]
    {
        (ops::neg(x)?, ops::scale(x, 3.0)?)
    };
    ops::add(&a, &b)
}

macro_rules! follows {
    ($graph:ident, $whole:expr) => {
        for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
            NEXT.set(0);
            let mut rt = runtime();
            let graph = $graph::builder().mode(mode).build(&mut rt).unwrap();
            let mut got = Vec::new();
            for _ in 0..24 {
                let step = rt.step().unwrap();
                let x = step.tensor(&[1], &[1.0]).unwrap();
                let y = graph.call(&step, &x).unwrap();
                got.push(step.read(&y).unwrap()[0]);
            }
            let expected: Vec<f32> =
                (0..24).map(|n| if $whole { 2.0 } else { (2 + 2 * (n / 8)) as f32 }).collect();
            assert_eq!(got, expected, "{} in mode {mode}", stringify!($graph));
            let counted = rt.stats().fallbacks > 0;
            assert_eq!(counted, mode == Mode::Full && !$whole, "{} in mode {mode}", stringify!($graph));
        }
    };
}

#[test]
fn host_values_change_in_every_mode() {
    follows!(KeyedGraph, false);
    follows!(KeyedByACallGraph, false);
    follows!(InAStructGraph, false);
    follows!(SteeringGraph, false);
    follows!(ManyGraph, false);
    follows!(TensorsGraph, true);
}

#[test]
fn why_it_is_not_whole() {
    NEXT.set(0);
    let mut rt = runtime();
    rt.keep_events(true);
    let graph = KeyedGraph::builder().mode(Mode::Full).build(&mut rt).unwrap();
    for _ in 0..4 {
        let step = rt.step().unwrap();
        let x = step.tensor(&[1], &[1.0]).unwrap();
        graph.call(&step, &x).unwrap();
    }
    let reasons: Vec<String> = rt
        .take_events()
        .iter()
        .filter_map(|event| match event {
            graphable::Event::FellBack { reason, .. } => Some(reason.to_string()),
            _ => None,
        })
        .collect();
    assert!(reasons.iter().any(|r| r.contains("passes a value to host code")), "{reasons:?}");
}

//! All of it through the attribute: what a generated builder and graph object take.

use graphable::{CallInfo, Mode, OnMove, Policy, prelude::*};

use crate::support;

#[graphable]
fn double(#[dims(B)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::scale(x, 2.0)
}

/// A name that the builder has, too, and a parameter named like one of its own.
#[graphable]
fn generic<N: Element + Number>(#[dims(B)] x: &Tensor<N>) -> Result<Tensor<N>> {
    ops::add(x, x)
}

#[derive(Debug)]
struct NotAtThree;
impl Policy for NotAtThree {
    fn call(&self, call: &CallInfo<'_>) -> Mode {
        if call.sizes == [("B", 3)] { Mode::None } else { call.mode }
    }
}

/// What the call logged.
fn call(rt: &mut Runtime, graph: &DoubleGraph, size: usize) -> Vec<String> {
    let step = rt.step().unwrap();
    let x = step.tensor(&[size], &vec![1.5f32; size]).unwrap();
    let y = graph.call(&step, &x).unwrap();
    assert_eq!(step.read(&y).unwrap(), vec![3.0; size]);
    support::events(&step)
}

#[test]
fn builders_take_limits_lists_policies_and_switches() {
    let mut rt = support::runtime();
    let graph = DoubleGraph::builder()
        .limits(|l| (l.max_moves, l.on_move) = (3, OnMove::Skip))
        .capture_only(["B"], [[2], [3]])
        .policy(NotAtThree)
        .enabled(false)
        .build(&mut rt)
        .unwrap();
    assert!(!graph.is_enabled());
    assert_eq!(call(&mut rt, &graph, 2), ["fell back: graphs are switched off here"]);
    graph.set_enabled(true);
    assert_eq!(call(&mut rt, &graph, 2), ["warmed double"]);
    assert_eq!(call(&mut rt, &graph, 2), ["recorded double"]);
    assert_eq!(call(&mut rt, &graph, 2), ["replayed double"]);
    assert_eq!(call(&mut rt, &graph, 3), ["fell back: decided by the policy: no graph for this call"]);
    assert_eq!(call(&mut rt, &graph, 4), ["fell back: B = [4] is not listed in `capture_only`"]);

    let wrong = DoubleGraph::builder().capture_only(["C"], [[2]]).build(&mut rt).map(drop);
    assert!(matches!(wrong, Err(Error::Config { .. })), "{wrong:?}");
}

#[test]
fn builders_of_generic_functions_do_too() {
    let mut rt = support::runtime();
    let graph = GenericGraph::<u32>::builder().capture_only(["B"], [[1]]).build(&mut rt).unwrap();
    let step = rt.step().unwrap();
    let x = step.tensor(&[1], &[21u32]).unwrap();
    let y = graph.call(&step, &x).unwrap();
    assert_eq!(step.read(&y).unwrap(), [42]);
    assert_eq!(support::events(&step), ["warmed generic"]);
}

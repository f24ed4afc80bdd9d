//! Conditional nodes in what `inspect` shows.

use graphable::{
    CpuOptions, Event, UnsharedReason,
    inspect::{EdgeKind, NodeKind, Topology},
    prelude::*,
};

use crate::{device, support::runtime};

#[graphable]
fn shown(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host] p: &Scalar<bool>,
) -> Result<Tensor<f32>> {
    let zero = ops::full(x.scope(), (), 0u32)?;
    let (_, y) = control::while_loop(
        5,
        (zero, x.clone()),
        |(i, _)| ops::lt(i, 3),
        |(i, y)| {
            let y = control::cond(p, || ops::neg(&y), || ops::scale(&y, 2.0))?;
            Ok::<_, Error>((ops::add(&i, 1)?, y))
        },
    )?;
    Ok::<_, Error>(y)
}

fn recorded(rt: &mut Runtime) -> Topology {
    rt.keep_topology(true);
    let graph = ShownGraph::builder().build(rt).unwrap();
    for _ in 0..4 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[1.0], true).unwrap();
        assert_eq!(step.read(&y).unwrap(), [-1.0]);
    }
    let tree = rt.tree();
    rt.topology(tree.recordings[0].id).unwrap().unwrap()
}

#[test]
fn topologies_have_bodies() {
    let mut rt = runtime();
    let topology = recorded(&mut rt);
    let loops: Vec<_> = topology.nodes.iter().filter(|n| n.kind == NodeKind::Conditional).collect();
    assert_eq!(loops.len(), 1, "{topology}");
    assert_eq!(loops[0].bodies.len(), 1);
    let body = &loops[0].bodies[0];
    let inner: Vec<_> = body.nodes.iter().filter(|n| n.kind == NodeKind::Conditional).collect();
    let bodies: usize = inner.iter().map(|n| n.bodies.len()).sum();
    assert_eq!(bodies, 2, "{topology}");
    assert!(inner.iter().flat_map(|n| &n.bodies).all(|body| !body.nodes.is_empty()));
    assert!(topology.count(NodeKind::Conditional) >= 2);
    let (text, dot) = (topology.to_string(), topology.to_dot());
    assert!(
        text.contains("conditional") && text.contains("    body 0\n") && text.contains("        body 0\n")
    );
    assert!(dot.matches("subgraph cluster_").count() >= 3, "{dot}");
    assert_eq!(dot.matches('{').count(), dot.matches('}').count());
}

#[test]
fn trees_show_the_structure() {
    let mut rt = runtime();
    recorded(&mut rt);
    let tree = rt.tree();
    let operations = &tree.recordings[0].operations;
    let marks: Vec<&str> =
        operations.iter().map(String::as_str).filter(|op| op.ends_with(['{', ':', '}'])).collect();
    assert_eq!(marks, ["while {", "body:", "cond {", "body:", "body:", "}", "}"]);
    assert!(tree.recordings[0].kernels > 10, "those of the bodies count");
    let (text, dot) = (tree.to_string(), tree.to_dot());
    for shown in [text, dot] {
        let inner = shown.split("while { body: ").nth(1).unwrap_or_else(|| panic!("{shown}"));
        assert!(inner.contains("cond { body: neg body: scale, copy }"), "{shown}");
    }
}

#[test]
fn executables_with_nodes_are_not_shared() {
    let mut rt = runtime();
    rt.share_executables(Some(std::time::Duration::MAX));
    let graph = ShownGraph::builder().build(&mut rt).unwrap();
    for size in [1usize, 2, 3, 1, 2, 3, 1, 2, 3] {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &vec![1.0; size], true).unwrap();
        assert_eq!(step.read(&y).unwrap(), vec![-1.0; size]);
    }
    let stats = rt.stats();
    assert_eq!((stats.shares, stats.updates), (0, 0));
    let refused = |e: &&Event| matches!(e, Event::Unshared { reason: UnsharedReason::Refused { .. }, .. });
    assert_eq!(rt.take_events().iter().filter(refused).count() as u64, stats.recordings);
}

#[graphable]
fn chain(y: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::add(&ops::scale(&ops::add(y, 1.0)?, 2.0)?, -1.0)
}

/// Kernels in a row, in a loop, before and after a condition, and in it.
#[graphable]
fn rows(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host] n: &Scalar<u32>,
) -> Result<Tensor<f32>> {
    let zero = ops::full(x.scope(), (), 0u32)?;
    let x = chain(x)?;
    let (_, y) = control::while_loop(
        5,
        (zero, x),
        |(i, _)| ops::lt(i, n),
        |(i, y)| {
            let y = chain(&y)?;
            let y = control::cond(&ops::lt(&i, 2)?, || chain(&y), || ops::neg(&y))?;
            Ok::<_, Error>((ops::add(&i, 1)?, chain(&y)?))
        },
    )?;
    Ok(y)
}

/// How many edges of a graph and of its bodies are of dependent launch; every other one that connects two kernels, one of
/// which does not set a node, and branches or ends no branch, is an error.
fn early_edges(graph: &Topology) -> usize {
    let bodies: usize = graph.nodes.iter().flat_map(|node| &node.bodies).map(early_edges).sum();
    let mut early = 0;
    for edge in &graph.edges {
        let (from, to) = (&graph.nodes[edge.from], &graph.nodes[edge.to]);
        let kernels = from.kind == NodeKind::Kernel && to.kind == NodeKind::Kernel;
        let expected = kernels && to.name != "set_conditional";
        assert_eq!(edge.kind == EdgeKind::Programmatic, expected, "{} to {}: {graph}", from.name, to.name);
        early += usize::from(expected);
    }
    early + bodies
}

/// On a GPU that has it, kernels in bodies are brought up while those before them end, as elsewhere; values are the same.
#[test]
fn kernels_in_bodies_overlap() {
    let mut rt = Runtime::new(device::device(CpuOptions::default())).unwrap();
    rt.keep_topology(true);
    let graph = RowsGraph::builder().build(&mut rt).unwrap();
    let chain = |y: f32| (y + 1.0) * 2.0 - 1.0;
    for n in [3, 0, 4, 1, 2, 3] {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[0.5, 4.0], n).unwrap();
        let expected = [0.5, 4.0].map(|x| {
            (0..n).fold(chain(x), |y, i| {
                let y = chain(y);
                chain(if i < 2 { chain(y) } else { -y })
            })
        });
        assert_eq!(step.read(&y).unwrap(), expected, "{n} rounds");
    }
    let topology = rt.topology(rt.tree().recordings[0].id).unwrap().unwrap();
    let outside = topology.edges.iter().filter(|edge| edge.kind == EdgeKind::Programmatic).count();
    if device::gpu().is_some() && outside > 0 {
        assert!(early_edges(&topology) > outside + 6, "{topology}");
    } else {
        fn full(graph: &Topology) -> bool {
            graph.edges.iter().all(|edge| edge.kind == EdgeKind::Full)
                && graph.nodes.iter().flat_map(|node| &node.bodies).all(full)
        }
        assert!(full(&topology), "{topology}");
    }
}

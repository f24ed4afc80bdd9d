//! What a runtime shows of itself: the tree, recordings as the device has them, and the report of a plan.

use graphable::{
    BoundaryMove, Mode, Param, Passes, Plan, PlanItem, Support,
    inspect::{EdgeKind, NodeKind, OutputPlace, PartKind},
    ops,
};

use crate::support::*;

#[test]
fn a_tree_says_what_was_alive_and_what_was_not() {
    if crate::device::skipped_with_gaps("a_tree_says_what_was_alive_and_what_was_not") {
        return;
    }
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    for _ in 0..4 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], 7u32, |cx, a| {
            let (p, q) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?, ops::neg(k.0)?)))?;
            drop(p);
            let e = eager!("e", cx, |_e| ops::scale(&q, 3.0));
            let (h, n) = seg!("b", cx, (&q, &e, &7u32), |k| Ok((ops::add(k.0, k.1)?, *k.2)))?;
            assert_eq!(n, 7);
            seg!("c", cx, (&h,), |k| ops::neg(k.0))
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [4.0, 8.0]);
    }
    let tree = rt.tree();
    let id = |name: &str| tree.recordings.iter().find(|n| n.segment.function == name).map(|n| n.id).unwrap();
    let (a, b, c) = (id("a"), id("b"), id("c"));
    let node = |id| tree.recording(id).unwrap();
    assert_eq!(tree.functions.len(), 1);
    assert_eq!((tree.functions[0].name.as_str(), &tree.functions[0].roots[..]), ("test", &[a][..]));
    assert_eq!((tree.roots(), tree.recordings.len()), (1, 3));
    assert!(node(a).root && !node(b).root && !node(c).root);
    assert_eq!((node(a).parent, node(b).parent, node(c).parent), (None, Some(a), Some(b)));
    assert_eq!((&node(a).children[..], &node(b).children[..]), (&[b][..], &[c][..]));
    assert_eq!((&node(b).parents[..], &node(c).parents[..]), (&[a][..], &[b][..]));

    // `p` was dropped before `b`, `q` was not; the region's result is nobody's output.
    let outputs = |list: &[graphable::inspect::OutputId]| {
        list.iter().map(|o| (o.recording, o.output)).collect::<Vec<_>>()
    };
    assert_eq!((outputs(&node(b).alive), outputs(&node(b).dead)), (vec![(a, 1)], vec![(a, 0)]));
    assert_eq!(node(b).alive_others.len(), 1);
    assert!(node(b).alive_others[0].starts_with("`scale` in `e` #0 ("), "{:?}", node(b).alive_others);
    assert_eq!(outputs(&node(c).alive), [(a, 1), (b, 0)]);
    assert_eq!(outputs(&node(c).dead), [(a, 0)]);

    // Two elements are one unit of 256 bytes. The region's result took the place of `p`.
    let unit = |i: u64| (i * 256, 256);
    assert_eq!(tree.states[node(a).entry].blocks, []);
    assert_eq!(tree.states[node(b).entry].blocks, [unit(0), unit(1)]);
    assert_eq!(tree.states[node(b).exit].blocks, [unit(0), unit(1), unit(2)]);
    assert_eq!((node(b).exit, tree.states[0].bytes()), (node(c).entry, 0));
    assert_eq!((node(a).pool_bytes, node(b).pool_bytes, tree.needed_pool_bytes()), (512, 768, 768));
    assert!(tree.pool_bytes >= 768, "warm-ups count, too");

    match &node(a).outputs[1].place {
        OutputPlace::Pool(block) => {
            assert_eq!((block.offset, block.bytes, block.producer.as_str()), (256, 8, "neg"))
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(&node(b).outputs[1].place, OutputPlace::Host(n) if n == "7"), "{:?}", node(b).outputs);
    assert!(matches!(&node(c).outputs[0].place, OutputPlace::Result(_)), "the call's result outlives it");
    assert_eq!((node(a).outputs[0].dtype.as_deref(), &node(a).outputs[0].shape[..]), (Some("f32"), &[2][..]));
    assert_eq!(node(a).operations, ["scale", "neg"]);
    let hits: u64 = tree.recordings.iter().map(|n| n.hits).sum();
    assert_eq!(hits, rt.stats().replays);
}

#[test]
fn what_follows_something_eager_is_no_root() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let call = |rt: &mut graphable::Runtime, n: u32| {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], n, |cx, a| {
            let (h,) = seg!("a", cx, (&a.t[0], &n), |k| Ok((ops::scale(k.0, *k.1 as f32)?,)))?;
            seg!("b", cx, (&h,), |k| ops::neg(k.0))
        });
        y.map(drop).unwrap();
    };
    // The second key of `a` warms up before the known `b`.
    [1, 1, 1, 2].into_iter().for_each(|n| call(&mut rt, n));
    let tree = rt.tree();
    let after: Vec<_> =
        tree.recordings.iter().map(|n| (n.segment.function.as_str(), n.root, n.after_eager)).collect();
    assert_eq!(after, [("a", true, false), ("b", false, true)]);
    [2, 2].into_iter().for_each(|n| call(&mut rt, n));
    let tree = rt.tree();
    assert_eq!(tree.functions[0].roots, [0, 2], "both keys of `a`");
    assert_eq!(tree.recordings.len(), 3);
    assert_eq!(tree.recordings[1].parents, [0, 2], "`b` is shared");
}

#[test]
fn every_form_shows_every_node() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    for n in [1u32, 1, 2, 2, 1] {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], n, |cx, a| {
            let (h,) = seg!("a\"quoted\"", cx, (&a.t[0], &n), |k| Ok((ops::scale(k.0, *k.1 as f32)?,)))?;
            seg!("b", cx, (&h,), |k| ops::neg(k.0))
        });
        y.map(drop).unwrap();
    }
    let tree = rt.tree();
    let (text, dot) = (tree.to_string(), tree.to_dot());
    for node in &tree.recordings {
        let start = format!("{} [{}", node.id, node.segment.function);
        assert_eq!(text.matches(&start).count(), 1, "{start} in {text}");
        assert!(dot.contains(&format!("  n{} [label=", node.id)), "{dot}");
    }
    assert!(dot.starts_with("digraph tree {") && dot.contains("a\\\"quoted\\\" #0"), "{dot}");
    let arrows: usize = tree.recordings.iter().map(|n| n.children.len()).sum();
    let starts: usize = tree.functions.iter().map(|f| f.roots.len()).sum();
    let eager = tree.recordings.iter().filter(|n| n.after_eager).count();
    assert_eq!(dot.matches(" -> n").count(), arrows + starts + eager, "{dot}");
    let json: serde_json::Value = serde_json::from_str(&tree.to_json()).unwrap();
    assert_eq!(json["recordings"].as_array().unwrap().len(), tree.recordings.len());
    assert_eq!(json["recordings"][0]["segment"]["function"], "a\"quoted\"");
    assert_eq!(json["functions"][0]["roots"], serde_json::json!(tree.functions[0].roots));
    assert_eq!(json["states"][0]["blocks"], serde_json::json!([]));
    assert_eq!(json["pool_bytes"], tree.pool_bytes);
}

#[test]
fn a_loop_in_the_tree_ends() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    for _ in 0..3 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], (), |cx, a| {
            for _ in 0..3 {
                // Leaves nothing: the state before it is the state after it.
                let (h,) = seg!("turn", cx, (&a.t[0],), |k| Ok((ops::neg(k.0)?,)))?;
                drop(h);
            }
            seg!("end", cx, (&a.t[0],), |k| ops::neg(k.0))
        });
        y.map(drop).unwrap();
    }
    let tree = rt.tree();
    let turn = tree.recordings.iter().find(|n| n.segment.function == "turn").unwrap();
    assert!(turn.children.contains(&turn.id), "it follows itself: {tree}");
    assert!(tree.to_string().contains(&format!("-> {}, above", turn.id)), "{tree}");
}

#[test]
fn a_recording_read_back_from_its_device() {
    let mut rt = runtime();
    rt.keep_topology(true);
    rt.set_passes(Passes::none());
    let w = Param::new(&rt, &[2], &[3.0, 4.0]).unwrap();
    let graph = vector(&mut rt, Mode::Piecewise);
    for _ in 0..4 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], (), |cx, a| {
            seg!("a", cx, (&a.t[0], &w), |k| {
                let left = ops::scale(k.0, 2.0)?;
                let right = ops::mul(k.0, k.1)?;
                ops::add(&left, &right)
            })
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [5.0, 12.0]);
    }
    let tree = rt.tree();
    let node = &tree.recordings[0];
    let graph = rt.topology(node.id).unwrap().unwrap();
    assert_eq!(graph.nodes.len(), node.kernels, "as many as the executable has: {graph}");
    // Each edge once, between nodes that there are.
    let pairs: Vec<_> = graph.edges.iter().map(|e| (e.from, e.to)).collect();
    assert!(pairs.is_sorted() && pairs.windows(2).all(|w| w[0] != w[1]), "{pairs:?}");
    assert!(pairs.iter().all(|&(from, to)| from != to && from < graph.nodes.len() && to < graph.nodes.len()));
    let text = graph.to_string();
    let (dot, json) = (graph.to_dot(), serde_json::from_str::<serde_json::Value>(&graph.to_json()).unwrap());
    assert!(text.starts_with(&format!("{} nodes, {} edges\n", graph.nodes.len(), pairs.len())), "{text}");
    assert_eq!(dot.matches(" -> ").count(), pairs.len());
    assert_eq!(json["edges"].as_array().unwrap().len(), pairs.len());
    match crate::device::gpu() {
        None => {
            let kernels: Vec<_> =
                graph.nodes.iter().filter(|n| n.kind == NodeKind::Kernel).map(|n| n.name.as_str()).collect();
            assert_eq!(kernels, ["scale", "mul", "add"]);
            // In test mode what is freed is overwritten, by fills that wait for its last use.
            let fills = graph.count(NodeKind::Fill);
            assert_eq!(graph.nodes.len(), 3 + fills, "{text}");
            let of = |name| graph.nodes.iter().position(|n| n.name == name).unwrap();
            let edge = |from, to| graph.edges.iter().any(|e| (e.from, e.to) == (from, to));
            assert!(edge(of("scale"), of("add")) && edge(of("mul"), of("add")), "{text}");
            assert!(
                !edge(of("scale"), of("mul")) && !edge(of("mul"), of("scale")),
                "they need not wait: {text}"
            );
            assert!(graph.nodes.iter().all(|n| n.grid.is_none() && n.bytes.is_some_and(|b| b > 0)));
        }
        Some(_) => {
            // One more kernel puts the host input where it belongs. A stream's capture is a chain.
            assert_eq!(graph.count(NodeKind::Kernel), 4, "{text}");
            assert_eq!(pairs.len(), graph.nodes.len() - 1, "{text}");
            let threads = |n: &graphable::inspect::GraphNode| n.block.map(|[a, b, c]| a * b * c);
            for n in graph.nodes.iter().filter(|n| n.kind == NodeKind::Kernel) {
                assert!(
                    !n.name.is_empty() && n.grid.is_some() && threads(n).is_some_and(|t| t > 0),
                    "{text}"
                );
            }
            let ported =
                |e: &graphable::inspect::GraphEdge| (e.kind == EdgeKind::Programmatic) == (e.from_port == 1);
            assert!(graph.edges.iter().all(ported), "{text}");
        }
    }
    assert!(rt.topology(99).is_none());
}

#[test]
fn a_gpu_keeps_it_only_when_asked() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let mut call = |n: u32, keep: bool| {
        rt.keep_topology(keep);
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[x()], n, |cx, a| {
                seg!("a", cx, (&a.t[0], &n), |k| ops::scale(k.0, *k.1 as f32))
            });
            y.map(drop).unwrap();
        }
        let last = rt.tree().recordings.last().unwrap().id;
        rt.topology(last).unwrap().map(|t| t.nodes.len()).map_err(|e| e.to_string())
    };
    let without = call(1, false);
    assert!(call(2, true).is_ok());
    match crate::device::gpu() {
        None => assert!(without.is_ok(), "the CPU has its commands"),
        Some(_) => assert!(without.unwrap_err().contains("keep_topology"), "the error says how"),
    }
}

/// Row 82 of the peers' tests.
#[test]
fn a_plan_reports_its_parts_and_why() {
    static LIVE: &[&str] = &["x"];
    const ITEMS: &[PlanItem] = &[
        PlanItem::Segment { site: site!("f"), live_ins: LIVE, live_outs: &["h"] },
        PlanItem::Boundary {
            site: site!("f"),
            call: "attention(&h)",
            support: Support::Never,
            moved: Some(BoundaryMove::Early),
        },
        PlanItem::Boundary { site: site!("f"), call: "norm(&h)", support: Support::Always, moved: None },
        PlanItem::Piecewise { site: site!("f"), call: "layer(&h)" },
        PlanItem::Segment { site: site!("f"), live_ins: &[], live_outs: &[] },
    ];
    let plan = Plan { function: "f", file: "f.rs", items: ITEMS, host_statement: Some(site!("f")) };
    let report = plan.report();
    assert_eq!((report.parts.len(), report.graphable), (5, 2));
    let kinds: Vec<_> = report.parts.iter().map(|p| (p.kind, p.why_not.is_none())).collect();
    assert_eq!(
        kinds,
        [
            (PartKind::Segment, true),
            (PartKind::Boundary, false),
            (PartKind::Boundary, false),
            (PartKind::Piecewise, false),
            (PartKind::Segment, true)
        ]
    );
    assert_eq!(
        (&report.parts[0].live_ins[..], &report.parts[0].live_outs[..]),
        (&["x".to_owned()][..], &["h".to_owned()][..])
    );
    // Full mode: the host statement, the boundary that supports nothing, and the call into the unknown.
    let reason: Vec<_> = report.not_full.iter().map(|w| w.split_once(": ").unwrap().1).collect();
    assert_eq!(
        reason,
        [
            "a `#[host] let` runs on every call",
            "`attention(&h)` is `#[eager]` and supports no capture",
            "what the boundaries of `layer(&h)` support is not known here"
        ]
    );
    let text = report.to_string();
    assert!(text.starts_with("f (f.rs): 5 parts, 2 of them graphs\n"), "{text}");
    assert!(text.contains(": `norm(&h)` is not a graph: it is `#[eager]`"), "{text}");
    assert!(text.contains(", moved early: `attention(&h)` is not a graph"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!((&json["graphable"], &json["parts"][3]["kind"]), (&2.into(), &"piecewise".into()));
    assert_eq!((&json["parts"][1]["moved"], json["parts"][2]["moved"].is_null()), (&"early".into(), true));

    let whole = Plan { items: &ITEMS[..1], host_statement: None, ..plan };
    assert_eq!(whole.report().not_full, Vec::<String>::new());
    assert!(whole.report().to_string().ends_with("the whole call can be one graph\n"));

    const DECODES: &[PlanItem] = &[PlanItem::Boundary {
        site: site!("f"),
        call: "attention(&h)",
        support: Support::UniformBatch,
        moved: None,
    }];
    let decodes = Plan { items: DECODES, host_statement: None, ..whole };
    let report = decodes.report();
    assert_eq!((&report.not_full[..], &report.support[..]), (&[][..], "UniformBatch"));
    assert!(report.to_string().ends_with("one graph for some batches: UniformBatch\n"), "{report}");
}

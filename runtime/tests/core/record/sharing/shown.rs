//! What is shown and told of sharing.

use std::sync::Mutex;

use graphable::{__private::Synthetic, Lifecycle, LifecycleEvent, RecordingId};

use super::*;

/// Scales by a key.
fn scaled(rt: &mut Runtime, graph: &Graph, n: u32) {
    let step = rt.step().unwrap();
    let y =
        graph.call(&step, &[x()], n, |cx, a| seg!("a", cx, (&a.t[0], &n), |k| ops::scale(k.0, *k.1 as f32)));
    assert_eq!(step.read(&y.unwrap()).unwrap(), X.map(|x| x * n as f32));
}

#[test]
fn the_tree_and_the_memory_say_who_shares() {
    let (mut rt, _) = sharing();
    let graph = vector(&mut rt, Mode::Piecewise);
    for n in [2, 2, 3, 3, 4, 4] {
        scaled(&mut rt, &graph, n);
    }
    let tree = rt.tree();
    let numbers = |ids: &[RecordingId]| ids.iter().map(|id| id.number()).collect::<Vec<_>>();
    let with: Vec<_> = tree.recordings.iter().map(|n| (n.id.number(), numbers(&n.shares_with))).collect();
    assert_eq!(with, [(0, vec![1, 2]), (1, vec![0, 2]), (2, vec![0, 1])]);
    let bytes: Vec<_> = tree.recordings.iter().map(|n| n.executable_bytes).collect();
    assert_eq!((bytes[0], &bytes[1..]), (tree.executable_bytes, &[0, 0][..]), "counted once");
    assert_eq!((tree.executables, tree.shared_bytes), (1, 2 * tree.executable_bytes));
    let text = tree.to_string();
    assert!(text.contains(&format!("1 executable; {} bytes saved by sharing", tree.shared_bytes)), "{text}");
    assert!(text.contains("    shares 1, 2\n") && text.contains("    shares 0, 1\n"), "{text}");
    assert!(tree.to_dot().contains("\\nshares with 0, 2"), "{}", tree.to_dot());
    let json: serde_json::Value = serde_json::from_str(&tree.to_json()).unwrap();
    assert_eq!(json["recordings"][2]["shares_with"], serde_json::json!([0, 1]));
    assert_eq!((&json["executables"], &json["shared_bytes"]), (&1.into(), &tree.shared_bytes.into()));

    let memory = rt.memory();
    let shares: Vec<_> = memory.recordings.iter().map(|n| n.shares_with.map(RecordingId::number)).collect();
    assert_eq!(shares, [None, Some(0), Some(0)]);
    assert_eq!(memory.functions[0].executable_bytes, memory.executable_bytes);
    assert_eq!((memory.executables, memory.executable_bytes), (1, tree.executable_bytes));
    assert_eq!(rt.stats().executables, 1);
    assert_eq!(memory.shared_bytes, tree.shared_bytes);
    if crate::device::gpu().is_none() {
        // A small executable may take no memory of a GPU that its driver counts.
        assert!(memory.shared_bytes > 0);
    }
}

#[test]
fn events_are_in_order() {
    let (mut rt, _) = sharing();
    let graph = vector(&mut rt, Mode::Piecewise);
    for n in [2, 2, 3, 3, 2, 2] {
        scaled(&mut rt, &graph, n);
    }
    let events: Vec<String> = rt
        .take_events()
        .iter()
        .map(|e| match e {
            Event::Shared { recording, with, .. } => format!("{recording} shares with {with}"),
            Event::Updated { recording, .. } => format!("updated for {recording}"),
            other => list(std::slice::from_ref(other)).remove(0),
        })
        .collect();
    let expected = [
        "warmed a",
        "recorded a",
        "warmed a",
        "updated for 1",
        "recorded a",
        "1 shares with 0",
        "updated for 0",
        "replayed a",
        "replayed a",
    ];
    assert_eq!(events, expected);
}

/// Each recording has its own topology, whichever the executable runs now.
#[test]
fn topologies_are_those_of_the_recordings() {
    let (mut rt, _) = sharing();
    rt.keep_topology(true);
    let graph = bucketed(&mut rt, Mode::Full, &[SMALL, LARGE]);
    let w = weight(&rt, 3.0);
    for n in [SMALL, SMALL, LARGE, LARGE, SMALL] {
        run(&mut rt, &graph, n, 2.0, (&w, 3.0));
    }
    assert_eq!((rt.stats().live_recordings, rt.stats().executables), (2, 1));
    let tops = [0, 1].map(|node| rt.topology(node).unwrap().unwrap());
    assert_eq!(tops[0].nodes.len(), tops[1].nodes.len());
    let names =
        |i: usize| tops[i].nodes.iter().map(|n| (n.kind, n.name.clone(), n.block)).collect::<Vec<_>>();
    assert_eq!(names(0), names(1));
    assert_ne!(tops[0], tops[1], "of other sizes");
    match crate::device::gpu() {
        None => assert!(tops[0].nodes.iter().zip(&tops[1].nodes).any(|(a, b)| a.bytes < b.bytes)),
        Some(_) => {
            let blocks =
                |i: usize| tops[i].nodes.iter().filter_map(|n| n.grid).map(|g| g[0]).collect::<Vec<_>>();
            assert!(blocks(0).iter().zip(blocks(1)).any(|(a, b)| *a < b), "{}\n{}", tops[0], tops[1]);
            assert_eq!(tops[0].edges, tops[1].edges, "programmatic ones, too");
        }
    }
}

#[test]
fn hooks_hear_of_it() {
    let (mut rt, plan) = sharing();
    let graph = vector(&mut rt, Mode::Piecewise);
    let log = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&log);
    rt.on_lifecycle(move |event: &LifecycleEvent| {
        let what = match &event.what {
            Lifecycle::Recorded => "recorded".to_owned(),
            Lifecycle::Instantiated { .. } => "instantiated".to_owned(),
            Lifecycle::Shares { with } => format!("shares {with}"),
            Lifecycle::Replayed { .. } => "replayed".to_owned(),
            Lifecycle::Destroyed => "destroyed".to_owned(),
            other => format!("{other:?}"),
        };
        heard.lock().unwrap().push(format!("{}: {what}", event.recording));
    });
    let heard = || std::mem::take(&mut *log.lock().unwrap());
    for n in [2, 2, 3, 3] {
        scaled(&mut rt, &graph, n);
    }
    let born = ["0: recorded", "0: instantiated", "0: replayed", "1: recorded", "1: shares 0", "1: replayed"];
    assert_eq!(heard(), born);
    scaled(&mut rt, &graph, 2);
    assert_eq!(heard(), ["0: replayed"]);
    plan.refuse_updates(true);
    scaled(&mut rt, &graph, 3);
    assert_eq!(heard(), ["1: instantiated", "1: replayed"], "it parts");
    drop(graph);
    rt.step().unwrap();
    assert_eq!(heard(), ["0: destroyed", "1: destroyed"]);
}

/// What a plan of captures is expected to take knows that executables are shared.
#[test]
fn estimates() {
    let (mut rt, _) = sharing();
    // As in `captured_ahead_of_time`: all of them padded.
    let graph = bucketed(&mut rt, Mode::Full, &[2, 4, 16, 64]);
    let w = weight(&rt, 3.0);
    let plan = |rt: &mut Runtime| {
        let captures = |step: &Step<'_>, s: &Synthetic<'_>| {
            forward(&graph, step, &s.device(step, 0)?, 2.0, &w).map(drop)
        };
        graph.capture_all(rt, captures, |_| {})
    };
    let expected = rt.estimate_memory(plan).unwrap();
    assert_eq!((rt.stats().live_recordings, rt.stats().executables), (0, 0), "thrown away");
    let took = rt.measure_memory(plan).unwrap();
    assert_eq!((expected.recordings, took.recordings), (4, 4));
    if crate::device::gpu().is_none() {
        // A GPU's driver takes memory in pieces, the first time more than the second.
        assert_eq!(expected.executable_bytes, took.executable_bytes, "one executable");
    }
    assert_eq!(rt.stats().executables, 1, "{:?} {:?}", rt.stats(), rt.take_events());
}

//! What is captured ahead of time, and in which order.

use graphable::{BatchSizes, Batching, Mode, Schedule};

use crate::{model::*, support};

use Mode::{Full, FullAndPiecewise, FullDecodeOnly, Piecewise};

/// Segments first, then whole calls; each from the largest to the smallest.
#[test]
fn segments_come_first_and_the_largest_of_each() {
    let down = |mode: Mode| [8, 4, 1].map(|size| (mode, vec![size]));
    for (mode, expected) in [
        (Piecewise, down(Piecewise).to_vec()),
        (FullDecodeOnly, down(Full).to_vec()),
        (FullAndPiecewise, [down(Piecewise), down(Full)].concat()),
        (Full, [down(Piecewise), down(Full)].concat()),
        (Mode::None, vec![]),
    ] {
        let (mut rt, graph, model) = uniform_in(mode);
        let (mut order, mut done) = (Vec::new(), Vec::new());
        graph
            .capture_all_with(&mut rt, &model, |p| {
                done.push((p.done, p.total));
                if p.done < p.total {
                    order.push((p.mode, p.sizes.to_vec()));
                }
            })
            .unwrap();
        assert_eq!(order, expected, "{mode}");
        let total = expected.len();
        let counts: Vec<_> = (0..=total).map(|n| (n, total)).collect();
        assert_eq!(done, if total == 0 { vec![] } else { counts }, "{mode}");
        let listed: Vec<_> =
            graph.dispatcher().captures().iter().map(|c| (c.mode, vec![c.key.num_tokens])).collect();
        assert_eq!(listed, expected, "{mode}: the dispatcher says the same");
    }
}

/// Whole calls for uniform decodes have sizes of their own: whole queries, and a batch of all sequences.
#[test]
fn decodes_are_captured_for_whole_queries() {
    let mut rt = support::runtime();
    let model = model(&rt);
    let sizes = BatchSizes::up_to_budget(16).sizes([1, 4, 8]);
    let batching = Batching::of("T").query_len(3).max_requests(2).sizes(sizes);
    let graph = UniformGraph::builder().mode(FullAndPiecewise).batch(batching).build(&mut rt).unwrap();
    let mut order = Vec::new();
    graph.capture_all_with(&mut rt, &model, |p| order.push((p.mode, p.sizes.to_vec()))).unwrap();
    order.pop();
    assert_eq!(
        order,
        [(Piecewise, 8), (Piecewise, 4), (Piecewise, 1), (Full, 6), (Full, 3)].map(|(m, n)| (m, vec![n]))
    );
    rt.close_capture();
    rt.take_events();
    for n in [3, 6] {
        assert_eq!(call!(rt, graph, model, n, Some(batch(n, true))), ["replayed uniform"]);
    }
    for n in [3, 5, 8] {
        assert_eq!(call!(rt, graph, model, n, Some(batch(n, false))).len(), 3);
    }
}

/// With what is an error in service left out.
#[test]
fn a_strict_graph_captures_what_may_run() {
    let mut rt = support::runtime();
    let model = model(&rt);
    let graph = UniformGraph::builder()
        .mode(Full)
        .deny_fallback(true)
        .bucket("T", Schedule::new([4]))
        .build(&mut rt)
        .unwrap();
    graph.capture_all(&mut rt, &model).unwrap();
    assert_eq!(rt.stats().live_recordings, 1, "mixed batches would be refused");
    rt.take_events();
    assert_eq!(call!(rt, graph, model, 2, Some(batch(2, true))), ["replayed uniform"]);
}

/// A capture that fails leaves nothing said behind.
#[test]
fn after_a_capture_nothing_is_said() {
    let (mut rt, graph, model) = uniform_in(FullDecodeOnly);
    graph.capture_all(&mut rt, &model).unwrap();
    rt.take_events();
    let log = call!(rt, graph, model, 1, None);
    assert_eq!(log[0], "fell back: it is not known whether the batch is a uniform decode");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = graph.capture_all_with(&mut rt, &model, |p| {
            if p.done == 2 {
                std::panic::resume_unwind(Box::new("asked for"));
            }
        });
    }));
    assert!(panicked.is_err());
    rt.take_events();
    let log = call!(rt, graph, model, 1, None);
    assert_eq!(log[0], "fell back: it is not known whether the batch is a uniform decode");
}

/// An estimate counts the recordings of both kinds.
#[test]
fn an_estimate_holds_both_kinds() {
    let (mut rt, graph, model) = uniform_in(FullAndPiecewise);
    let plan = |rt: &mut graphable::Runtime| graph.capture_all(rt, &model);
    let expected = rt.estimate_memory(plan).unwrap();
    assert_eq!(rt.stats().live_recordings, 0);
    let took = rt.measure_memory(plan).unwrap();
    assert_eq!((expected.recordings, took.recordings), (9, 9));
}

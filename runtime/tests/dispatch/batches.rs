//! Calls of one graph with batches of both kinds.

use graphable::{
    BatchDescriptor, BatchSizes, Batching, CallInfo, Error, FallbackReason, Mode, ModeSet, Policy, Schedule,
};

use crate::{model::*, support};

const WHOLE: [&str; 1] = ["replayed uniform"];
const PIECES: [&str; 3] = ["replayed uniform", "eager uniform", "replayed uniform"];

/// A decode replays one graph and a mixed batch its segments, whatever came before.
#[test]
fn decodes_are_one_graph_and_mixed_batches_are_segments() {
    let (mut rt, graph, model) = uniform_in(Mode::FullAndPiecewise);
    graph.capture_all(&mut rt, &model).unwrap();
    assert_eq!(rt.stats().live_recordings, 3 * (2 + 1), "two segments and a whole call for each size");
    rt.close_capture();
    rt.take_events();
    let before = rt.stats();
    for round in 0..3 {
        for n in [8, 1, 3, 2, 7, 4, 5, 6] {
            for decode in [(n + round) % 2 == 0, (n + round) % 2 == 1] {
                let log = call!(rt, graph, model, n, Some(batch(n, decode)));
                assert_eq!(log, if decode { &WHOLE[..] } else { &PIECES[..] }, "{n}, {decode}");
            }
        }
    }
    let after = rt.stats();
    assert_eq!((after.warmups, after.recordings), (before.warmups, before.recordings));
    assert_eq!((after.fallbacks, after.skips, after.copies), (0, 0, before.copies));
}

/// Without a capture ahead of time each kind is warmed up and recorded where it is met first.
#[test]
fn each_kind_is_recorded_when_it_is_met() {
    let (mut rt, graph, model) = uniform_in(Mode::FullAndPiecewise);
    let mut recordings = Vec::new();
    for i in 0..16 {
        call!(rt, graph, model, 3, Some(batch(3, i % 2 == 0)));
        recordings.push(rt.stats().recordings);
    }
    assert_eq!(recordings[8..], [recordings[8]; 8], "nothing new after some calls: {recordings:?}");
    assert_eq!(rt.stats().live_recordings, 3);
    assert_eq!(call!(rt, graph, model, 2, Some(batch(2, true))), WHOLE, "the same bucket");
    assert_eq!(call!(rt, graph, model, 2, Some(batch(2, false))), PIECES);
}

#[test]
fn mixed_batches_have_no_graph_where_only_decodes_have() {
    let (mut rt, graph, model) = uniform_in(Mode::FullDecodeOnly);
    graph.capture_all(&mut rt, &model).unwrap();
    assert_eq!(rt.stats().live_recordings, 3);
    rt.take_events();
    let eagerly = ["fell back: the batch is mixed, and only uniform decodes are graphs", "eager uniform"];
    for n in [1, 3, 8] {
        assert_eq!(call!(rt, graph, model, n, Some(batch(n, true))), WHOLE);
        assert_eq!(call!(rt, graph, model, n, Some(batch(n, false))), eagerly);
    }
    let stats = rt.stats();
    // It is what was asked for.
    assert_eq!((stats.live_recordings, stats.skips, stats.fallbacks), (3, 3, 0));
    assert_eq!(stats.fallback_reasons, [(FallbackReason::MixedBatch, 3)]);
}

/// Where nobody says what the batch is, a pair of modes cannot choose: counted, and an error under `deny_fallback`.
#[test]
fn an_unknown_batch_is_mixed_and_told() {
    let (mut rt, graph, model) = uniform_in(Mode::FullAndPiecewise);
    graph.capture_all(&mut rt, &model).unwrap();
    rt.take_events();
    let log = call!(rt, graph, model, 3, None);
    assert_eq!(log[0], "fell back: it is not known whether the batch is a uniform decode");
    assert_eq!(log[1..], PIECES);
    assert_eq!(rt.stats().fallback_reasons, [(FallbackReason::UnknownBatch, 1)]);
    let strict =
        UniformGraph::builder().mode(Mode::FullDecodeOnly).deny_fallback(true).build(&mut rt).unwrap();
    let step = rt.step().unwrap();
    let error = strict.call(&step, (&rows(1, 0), &[1, 2]), &[0], &model).unwrap_err();
    assert!(
        matches!(
            &error,
            Error::FallbackForbidden { function: "uniform", reason: FallbackReason::UnknownBatch }
        ),
        "{error:?}"
    );
    assert!(error.to_string().contains("declare it with `Step::batch`"), "{error}");
    // A mixed batch is what such a mode leaves out: no error.
    let scope = step.batch(batch(1, false));
    strict.call(&step, (&rows(1, 0), &[1, 2]), &[0], &model).unwrap();
    drop(scope);
}

/// Scopes nest, end with their step, and are ended in any order.
#[test]
fn the_innermost_scope_counts() {
    let (mut rt, graph, model) = uniform_in(Mode::FullAndPiecewise);
    graph.capture_all(&mut rt, &model).unwrap();
    rt.take_events();
    let (x, at) = (rows(3, 0), [0, 1, 2]);
    {
        let step = rt.step().unwrap();
        let log = || {
            let y = graph.call(&step, (&x, &[3, 2]), &at, &model).unwrap();
            assert_eq!(step.read(&y).unwrap(), expected(&x));
            support::events(&step)
        };
        let outer = step.batch(batch(3, false));
        assert_eq!(log(), PIECES);
        let inner = step.batch(batch(3, true));
        assert_eq!(log(), WHOLE);
        drop(outer);
        assert_eq!(log(), WHOLE);
        drop(inner);
        assert_eq!(log().len(), 1 + PIECES.len(), "nobody says it");
        std::mem::forget(step.batch(batch(3, true)));
        assert_eq!(log(), WHOLE);
    }
    assert_eq!(call!(rt, graph, model, 3, None).len(), 1 + PIECES.len());
}

#[test]
fn a_caller_allows_and_forbids() {
    let (mut rt, graph, model) = uniform_in(Mode::FullAndPiecewise);
    graph.capture_all(&mut rt, &model).unwrap();
    rt.take_events();
    let (x, at) = (rows(9, 0), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let mut go = |n: usize, decode: bool, allowed: ModeSet| {
        let step = rt.step().unwrap();
        let _scope = step.batch(batch(n, decode)).allow(allowed);
        let y = graph.call(&step, (&x[..2 * n], &[n, 2]), &at[..n], &model)?;
        assert_eq!(step.read(&y).unwrap(), expected(&x[..2 * n]));
        drop(y);
        Ok::<_, Error>(support::events(&step))
    };
    let no = |mode| format!("fell back: the caller does not allow mode {mode} for this batch");
    assert_eq!(go(3, true, ModeSet::ALL).unwrap(), WHOLE);
    let log = go(3, true, ModeSet::ALL.without(Mode::Full)).unwrap();
    assert_eq!((&log[0], &log[1..]), (&no("full"), &PIECES.map(String::from)[..]));
    let log = go(3, true, ModeSet::only(Mode::None)).unwrap();
    assert_eq!(log, [no("full"), no("piecewise"), "eager uniform".into()]);
    assert_eq!(go(3, false, ModeSet::only(Mode::Piecewise)).unwrap(), PIECES);
    // Above the largest size there is no graph, and without a graph is not allowed.
    for decode in [true, false] {
        let error = go(9, decode, ModeSet::ALL.without(Mode::None)).unwrap_err();
        assert!(matches!(error, Error::NoAllowedMode { function: "uniform", .. }), "{error:?}");
        assert!(error.to_string().contains("T = 9 is above its largest bucket, 8"), "{error}");
    }
    assert_eq!(go(3, true, ModeSet::ALL).unwrap(), WHOLE, "the runtime goes on");
    assert_eq!((rt.stats().fallbacks, rt.stats().skips), (0, 3), "the caller asked for it");
}

/// Also for graphs whose mode does not depend on the batch.
#[test]
fn what_is_allowed_holds_for_every_graph() {
    let mut rt = support::runtime();
    let model = model(&rt);
    let graph = AnyGraph::builder().mode(Mode::Full).bucket("T", Schedule::new([4])).build(&mut rt).unwrap();
    graph.capture_all(&mut rt, &model).unwrap();
    rt.take_events();
    assert_eq!(call!(rt, graph, model, 3, Some(batch(3, false))), ["replayed any"]);
    let (x, at) = (rows(5, 0), [0, 1, 2, 3, 4]);
    let step = rt.step().unwrap();
    {
        let _scope = step.batch(batch(3, false)).allow(ModeSet::ALL.without(Mode::Full));
        graph.call(&step, (&x[..6], &[3, 2]), &at[..3], &model).unwrap();
        let log = support::events(&step);
        assert_eq!(log[0], "fell back: the caller does not allow mode full for this batch");
    }
    let _scope = step.batch(batch(5, false)).allow(ModeSet::only(Mode::Full));
    let error = graph.call(&step, (&x, &[5, 2]), &at, &model).unwrap_err();
    assert!(matches!(error, Error::NoAllowedMode { .. }), "{error:?}");
}

/// From the sizes of a call: one token a sequence is a decode.
#[test]
fn a_batch_is_derived_from_its_symbols() {
    for query_len in [1, 2] {
        let mut rt = support::runtime();
        let model = model(&rt);
        let batching = Batching::of("T")
            .requests("R")
            .query_len(query_len)
            .max_requests(4)
            .sizes(BatchSizes::up_to_budget(16).sizes([2, 8]));
        let graph = LastRowsGraph::builder()
            .mode(Mode::FullAndPiecewise)
            .batch(batching)
            .bucket("R", Schedule::new([1, 4]))
            .build(&mut rt)
            .unwrap();
        graph.capture_all(&mut rt, &model).unwrap();
        rt.close_capture();
        rt.take_events();
        for (tokens, requests) in [(1, 1), (2, 1), (2, 2), (4, 2), (3, 3), (6, 3), (5, 3), (4, 4), (8, 4)] {
            let x = rows(tokens, 2);
            // The last rows of sequences that share the tokens as equally as can be.
            let last: Vec<u32> = (1..=requests).map(|i| (i * tokens / requests) as u32 - 1).collect();
            let step = rt.step().unwrap();
            let y = graph.call(&step, (&x, &[tokens, 2]), &last, &model).unwrap();
            let all = expected(&x);
            let rows = last.iter().flat_map(|&i| all[2 * i as usize..][..2].to_vec());
            assert_eq!(step.read(&y).unwrap(), rows.collect::<Vec<_>>());
            let log = support::events(&step);
            // Of longer queries the sizes tell an average only.
            let (whole, unknown) = (requests * query_len == tokens, query_len > 1);
            let expected = match (whole, unknown) {
                (true, false) => 1,
                (true, true) => 4,
                (false, _) => 3,
            };
            assert_eq!(log.len(), expected, "{tokens} of {requests}: {log:?}");
            let first = if whole && unknown { "fell back" } else { "replayed" };
            assert!(log[0].starts_with(first) && log[expected - 1].starts_with("replayed"), "{log:?}");
        }
        let unknown = if query_len > 1 { 4 } else { 0 };
        assert_eq!((rt.stats().fallbacks, rt.stats().skips), (unknown, 0));
    }
}

/// A function for decodes alone: one symbol counts tokens and sequences.
#[test]
fn a_function_for_decodes_says_so_once() {
    let mut rt = support::runtime();
    let model = model(&rt);
    let graph = UniformGraph::builder()
        .mode(Mode::FullDecodeOnly)
        .batch(Batching::of("T").requests("T"))
        .bucket("T", Schedule::new([4]))
        .deny_fallback(true)
        .build(&mut rt)
        .unwrap();
    graph.capture_all(&mut rt, &model).unwrap();
    rt.take_events();
    for n in 1..=4 {
        assert_eq!(call!(rt, graph, model, n, None), WHOLE);
    }
}

/// Recordings of one count of adapters are not those of another.
#[test]
fn adapters_are_told_apart() {
    let mut rt = support::runtime();
    let model = model(&rt);
    let batching = Batching::of("T").sizes(BatchSizes::up_to_budget(8).sizes([1, 4])).adapters([0, 1, 3]);
    for (mode, per_key) in [(Mode::FullAndPiecewise, 3), (Mode::Piecewise, 2), (Mode::FullDecodeOnly, 1)] {
        let graph = UniformGraph::builder().mode(mode).batch(batching.clone()).build(&mut rt).unwrap();
        let before = rt.stats();
        graph.capture_all(&mut rt, &model).unwrap();
        let captured = rt.stats();
        if mode == Mode::FullAndPiecewise {
            assert_eq!(captured.live_recordings - before.live_recordings, 2 * 3 * per_key, "{mode}");
        }
        rt.take_events();
        for n in [1, 3] {
            for (used, same_as) in [(0, 0), (1, 1), (2, 3), (3, 3)] {
                let decode = batch(n, true);
                let dispatched =
                    graph.dispatcher().dispatch(&decode.with_adapters(used), ModeSet::ALL).unwrap();
                assert_eq!(dispatched.key.unwrap().adapters, same_as);
                let log = call!(rt, graph, model, n, Some(decode.with_adapters(used)));
                assert!(log.iter().all(|e| !e.starts_with("fell") && !e.starts_with("warmed")), "{log:?}");
            }
        }
        assert_eq!(rt.stats().recordings, captured.recordings, "{mode}");
        let log = call!(rt, graph, model, 1, Some(batch(1, true).with_adapters(4)));
        assert_eq!(log[0], "fell back: 4 adapters are in use, and captures support 3 at most");
    }
}

#[derive(Debug)]
struct DecodesOnly;
impl Policy for DecodesOnly {
    fn call(&self, call: &CallInfo<'_>) -> Mode {
        assert_eq!(call.mode, Mode::Piecewise);
        Mode::FullDecodeOnly
    }
}

/// A policy may choose such a mode for a call.
#[test]
fn a_policy_chooses_a_pair() {
    let mut rt = support::runtime();
    let model = model(&rt);
    let graph = UniformGraph::builder().policy(DecodesOnly).bucket("T", Schedule::new([4]));
    let graph = graph.build(&mut rt).unwrap();
    for _ in 0..4 {
        call!(rt, graph, model, 3, Some(batch(3, true)));
        let log = call!(rt, graph, model, 3, Some(batch(3, false)));
        assert_eq!(log[0], "fell back: the batch is mixed, and only uniform decodes are graphs");
    }
    assert_eq!(call!(rt, graph, model, 2, Some(batch(2, true))), WHOLE);
    assert_eq!(rt.stats().live_recordings, 1);
}

/// Whole calls and segments of one size are both asked for: neither counts as a further shape.
#[test]
fn kinds_are_no_further_shapes() {
    let mut rt = support::runtime();
    let model = model(&rt);
    let graph = UniformGraph::builder()
        .mode(Mode::FullAndPiecewise)
        .bucket("T", Schedule::new([4, 8]))
        .limits(|l| l.max_shapes = Some(1))
        .deny_fallback(true)
        .build(&mut rt)
        .unwrap();
    graph.capture_all(&mut rt, &model).unwrap();
    rt.take_events();
    for n in [3, 8] {
        assert_eq!(call!(rt, graph, model, n, Some(batch(n, true))), WHOLE);
        assert_eq!(call!(rt, graph, model, n, Some(batch(n, false))), PIECES);
    }
}

/// A batch without buckets has its own size, in either kind.
#[test]
fn without_sizes_a_batch_has_its_own() {
    let mut rt = support::runtime();
    let model = model(&rt);
    let graph = UniformGraph::builder().mode(Mode::FullAndPiecewise).build(&mut rt).unwrap();
    for n in [2, 3] {
        for _ in 0..5 {
            call!(rt, graph, model, n, Some(BatchDescriptor::decode(n)));
            call!(rt, graph, model, n, Some(BatchDescriptor::mixed(n)));
        }
        assert_eq!(call!(rt, graph, model, n, Some(batch(n, true))), WHOLE);
        assert_eq!(call!(rt, graph, model, n, Some(batch(n, false))), PIECES);
    }
    assert_eq!(rt.stats().live_recordings, 2 * 3);
}

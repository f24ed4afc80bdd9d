//! Tables: which graph a batch gets, and what is captured in which order.

use super::*;
use crate::Support;

use Mode::{Full, FullAndPiecewise, FullDecodeOnly, None as Nothing, Piecewise};

/// A function whose boundaries support everything, with these sizes.
fn dispatcher(mode: Mode, set: impl FnOnce(Batching) -> Batching) -> Dispatcher {
    with_support(mode, Support::Always, set)
}

fn with_support(mode: Mode, support: Support, set: impl FnOnce(Batching) -> Batching) -> Dispatcher {
    let sizes = BatchSizes::up_to_budget(64).sizes([1, 8]);
    let batching = set(Batching::of("T").sizes(sizes).max_requests(8));
    Dispatcher::new(mode, Capability::new(support, true, true), &batching).unwrap()
}

fn full(num_tokens: usize, uniform: bool) -> Option<BatchKey> {
    Some(BatchKey { num_tokens, adapters: 0, num_reqs: Some(num_tokens.min(8)), uniform })
}

fn pieces(num_tokens: usize) -> Option<BatchKey> {
    Some(BatchKey { num_tokens, adapters: 0, num_reqs: None, uniform: false })
}

/// Mode and key.
fn get(d: &Dispatcher, batch: BatchDescriptor, allowed: ModeSet) -> (Mode, Option<BatchKey>) {
    let Dispatch { mode, key, .. } = d.dispatch(&batch, allowed).unwrap();
    (mode, key)
}

#[test]
fn every_mode_and_batch() {
    let all = ModeSet::ALL;
    let not_full = all.without(Full);
    let (mixed, decode) = (BatchDescriptor::mixed, BatchDescriptor::decode);
    type Row = (BatchDescriptor, ModeSet, (Mode, Option<BatchKey>));
    let nothing = (Nothing, None);
    let tables: [(Mode, Vec<Row>); 5] = [
        (Nothing, vec![(mixed(8), all, nothing), (decode(8), all, nothing), (decode(1), not_full, nothing)]),
        (
            Piecewise,
            vec![
                (mixed(8), all, (Piecewise, pieces(8))),
                (decode(8), all, (Piecewise, pieces(8))),
                (mixed(5), all, (Piecewise, pieces(8))),
                (decode(1), all, (Piecewise, pieces(1))),
                (mixed(15), all, nothing),
                (mixed(8), not_full, (Piecewise, pieces(8))),
                (mixed(8), all.without(Piecewise), nothing),
                (mixed(8), ModeSet::only(Nothing), nothing),
            ],
        ),
        (
            // One graph for both: the key does not say which it was.
            Full,
            vec![
                (mixed(8), all, (Full, full(8, false))),
                (decode(8), all, (Full, full(8, false))),
                (decode(2), all, (Full, full(8, false))),
                (mixed(15), all, nothing),
                (mixed(8), not_full, nothing),
                (decode(8), not_full, nothing),
            ],
        ),
        (
            FullDecodeOnly,
            vec![
                (mixed(8), all, nothing),
                (decode(8), all, (Full, full(8, true))),
                (decode(3), all, (Full, full(8, true))),
                (decode(1), all, (Full, full(1, true))),
                (decode(9), all, nothing),
                (decode(8), not_full, nothing),
                (mixed(8), not_full, nothing),
            ],
        ),
        (
            FullAndPiecewise,
            vec![
                (mixed(8), all, (Piecewise, pieces(8))),
                (mixed(2), all, (Piecewise, pieces(8))),
                (decode(8), all, (Full, full(8, true))),
                (decode(2), all, (Full, full(8, true))),
                (mixed(15), all, nothing),
                (decode(15), all, nothing),
                (decode(8), not_full, (Piecewise, pieces(8))),
                (decode(8), ModeSet::only(Full), (Full, full(8, true))),
                (decode(8), ModeSet::only(Nothing), nothing),
                (mixed(8), ModeSet::only(Piecewise), (Piecewise, pieces(8))),
                (mixed(8), all.without(Piecewise), nothing),
            ],
        ),
    ];
    for (mode, rows) in tables {
        let d = dispatcher(mode, |b| b);
        assert_eq!(d.mode(), mode);
        for (batch, allowed, expected) in rows {
            assert_eq!(get(&d, batch, allowed), expected, "{mode}: {batch}, {allowed}");
        }
    }
}

/// The captures for each mode: the number of keys of segments, and of whole calls.
#[test]
fn numbers_of_keys() {
    let count = |d: &Dispatcher, mode| d.captures().iter().filter(|c| c.mode == mode).count();
    for (mode, expected) in [
        (Nothing, (0, 0)),
        (Piecewise, (2, 0)),
        (Full, (0, 2)),
        (FullDecodeOnly, (0, 2)),
        (FullAndPiecewise, (2, 2)),
    ] {
        for (counts, times) in [(&[][..], 1), (&[4, 0, 2, 1, 5, 4][..], 5)] {
            let d = dispatcher(mode, |b| b.adapters(counts.iter().copied()));
            let got = (count(&d, Piecewise), count(&d, Full));
            assert_eq!(got, (times * expected.0, times * expected.1), "{mode}, {counts:?}");
        }
    }
}

#[test]
fn adapters_take_the_next_count_that_is_enough() {
    let d = dispatcher(FullAndPiecewise, |b| b.adapters([0, 1, 2, 4, 5]));
    for (used, expected) in [(0, 0), (1, 1), (2, 2), (3, 4), (4, 4), (5, 5)] {
        for batch in [BatchDescriptor::mixed(3), BatchDescriptor::decode(3)] {
            let got = d.dispatch(&batch.with_adapters(used), ModeSet::ALL).unwrap();
            assert_eq!(
                (got.key.map(|k| (k.num_tokens, k.adapters)), got.reasons),
                (Some((8, expected)), vec![])
            );
        }
    }
    let over = d.dispatch(&BatchDescriptor::decode(3).with_adapters(6), ModeSet::ALL).unwrap();
    let reason = FallbackReason::OverMostAdapters { adapters: 6, largest: 5 };
    assert_eq!((over.mode, over.key, over.reasons), (Nothing, None, vec![reason]));
    // Where no counts are given they make no difference.
    let d = dispatcher(FullAndPiecewise, |b| b);
    let got = d.dispatch(&BatchDescriptor::decode(8).with_adapters(3), ModeSet::ALL).unwrap();
    assert_eq!(got.key, full(8, true));
}

#[test]
fn captures_are_segments_first_and_largest_first() {
    let order = |d: Dispatcher| -> Vec<(Mode, usize, usize)> {
        d.captures().iter().map(|c| (c.mode, c.key.num_tokens, c.key.adapters)).collect()
    };
    let sizes = |b: Batching| b.sizes(BatchSizes::up_to_budget(64).sizes([4, 1, 16, 8]));
    assert_eq!(
        order(dispatcher(FullAndPiecewise, sizes)),
        [
            (Piecewise, 16, 0),
            (Piecewise, 8, 0),
            (Piecewise, 4, 0),
            (Piecewise, 1, 0),
            // At most eight sequences decode.
            (Full, 8, 0),
            (Full, 4, 0),
            (Full, 1, 0)
        ]
    );
    assert_eq!(order(dispatcher(FullDecodeOnly, |b| b)), [(Full, 8, 0), (Full, 1, 0)]);
    assert_eq!(
        order(dispatcher(Piecewise, |b| b.adapters([0, 2]))),
        [(Piecewise, 8, 2), (Piecewise, 8, 0), (Piecewise, 1, 2), (Piecewise, 1, 0)]
    );
    assert_eq!(order(dispatcher(Nothing, sizes)), []);
    let without_sizes =
        Dispatcher::new(FullAndPiecewise, Capability::new(Support::Always, true, true), &Batching::default());
    assert_eq!(order(without_sizes.unwrap()), []);
}

/// Every capture is what a batch of its sizes gets: nothing is captured that no batch reaches.
#[test]
fn what_is_captured_is_what_batches_get() {
    for mode in Mode::ALL {
        for query_len in [1, 2] {
            let d = dispatcher(mode, |b| b.query_len(query_len).adapters([0, 3]));
            for capture in d.captures() {
                let BatchKey { num_tokens, adapters, uniform, .. } = capture.key;
                let batch = if uniform {
                    BatchDescriptor::decode(num_tokens)
                } else {
                    BatchDescriptor::mixed(num_tokens)
                };
                let got = d.dispatch(&batch.with_adapters(adapters), ModeSet::ALL).unwrap();
                assert_eq!(
                    (got.mode, got.key, got.reasons),
                    (capture.mode, Some(capture.key), vec![]),
                    "{mode}"
                );
            }
        }
    }
}

#[test]
fn decodes_of_several_tokens() {
    let d = with_support(FullAndPiecewise, Support::UniformBatch, |b| {
        b.query_len(3).sizes(BatchSizes::up_to_budget(64).sizes([1, 8, 32]))
    });
    assert_eq!((d.mode(), d.query_len()), (FullAndPiecewise, 3));
    let key =
        |num_tokens| BatchKey { num_tokens, adapters: 0, num_reqs: Some(num_tokens / 3), uniform: true };
    // 1 and 8 are 3 and 9 as whole queries; 24 is a batch of all eight sequences, and 32 is above it.
    for (tokens, padded) in [(3, 3), (6, 9), (9, 9), (12, 24), (24, 24)] {
        assert_eq!(get(&d, BatchDescriptor::decode(tokens), ModeSet::ALL), (Full, Some(key(padded))));
    }
    // More sequences than there may be: pieces serve them, and it is said.
    let got = d.dispatch(&BatchDescriptor::decode(27), ModeSet::ALL).unwrap();
    let reason = FallbackReason::OverLargestBucket { symbol: "T", size: 27, largest: 24 };
    assert_eq!((got.mode, got.key, got.reasons), (Piecewise, pieces(32), vec![reason]));
    let error = d.dispatch(&BatchDescriptor::decode(7), ModeSet::ALL).unwrap_err();
    assert!(error.to_string().contains("7 tokens are not a uniform decode of 3 per sequence"), "{error}");
    let batching = Batching::of("T").query_len(16).sizes(BatchSizes::up_to_budget(8));
    let none = Dispatcher::new(FullDecodeOnly, Capability::new(Support::Always, true, true), &batching);
    assert!(matches!(none, Err(Error::Config { .. })), "{none:?}");
}

#[test]
fn reasons_say_what_was_in_the_way() {
    let reason = |mode, support, batch: BatchDescriptor, allowed| {
        let d = with_support(mode, support, |b| b);
        d.dispatch(&batch, allowed).unwrap().reasons
    };
    let (mixed, decode) = (BatchDescriptor::mixed, BatchDescriptor::decode);
    let (any, uniform, never) = (Support::Always, Support::UniformBatch, Support::Never);
    let over = |size| FallbackReason::OverLargestBucket { symbol: "T", size, largest: 8 };
    let boundary = || "?".to_owned();
    let none = Vec::<FallbackReason>::new;
    assert_eq!(reason(FullAndPiecewise, uniform, mixed(8), ModeSet::ALL), none());
    assert_eq!(reason(FullAndPiecewise, uniform, decode(8), ModeSet::ALL), none());
    assert_eq!(reason(FullDecodeOnly, any, mixed(8), ModeSet::ALL), [FallbackReason::MixedBatch]);
    assert_eq!(reason(FullAndPiecewise, any, decode(9), ModeSet::ALL), [over(9)], "once, not for both");
    assert_eq!(
        reason(FullAndPiecewise, any, decode(8), ModeSet::ALL.without(Full)),
        [FallbackReason::NotAllowed { mode: Full }]
    );
    let not_uniform = FallbackReason::BatchNotUniform { boundary: boundary(), support: uniform };
    assert_eq!(reason(Full, uniform, mixed(8), ModeSet::ALL), std::slice::from_ref(&not_uniform));
    assert_eq!(reason(Full, uniform, decode(8), ModeSet::ALL), none());
    assert_eq!(reason(Full, uniform, mixed(9), ModeSet::ALL), [not_uniform, over(9)]);
    // A mode that comes to another says so of the batches that get less.
    let not_full = FallbackReason::FullNotSupported { boundary: boundary() };
    assert_eq!(reason(FullAndPiecewise, never, decode(8), ModeSet::ALL), [not_full]);
    assert_eq!(reason(FullAndPiecewise, never, mixed(8), ModeSet::ALL), none());
    assert_eq!(reason(Nothing, any, decode(8), ModeSet::ALL), none());
}

#[test]
fn nothing_allowed_is_an_error() {
    let d = dispatcher(FullAndPiecewise, |b| b);
    for (batch, allowed, words) in [
        (BatchDescriptor::mixed(8), ModeSet::only(Full), "8 tokens, mixed, the caller allows full, and none"),
        (BatchDescriptor::decode(9), ModeSet::ALL.without(Nothing), "allows full, piecewise, and none"),
        (BatchDescriptor::decode(9), ModeSet::ALL.without(Nothing), "(T = 9 is above its largest bucket, 8)"),
        (BatchDescriptor::mixed(8), ModeSet::ALL.without(FullAndPiecewise).without(Nothing), "no mode"),
    ] {
        let error = d.dispatch(&batch, allowed).unwrap_err();
        assert!(matches!(error, Error::NoAllowedMode { function: "dispatch", .. }), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
    }
    let empty = d.dispatch(&BatchDescriptor::mixed(0), ModeSet::ALL).unwrap_err();
    assert!(matches!(empty, Error::Argument { op: "dispatch", .. }), "{empty:?}");
}

#[test]
fn wrong_batchings_are_explained() {
    let known = ["T", "R"];
    for (batching, words) in [
        (Batching::of("X"), "there is no `#[dims]` symbol `X`; it has T, R"),
        (Batching::of("T").requests("Y"), "no `#[dims]` symbol `Y`"),
        (Batching::of("T").requests("T").query_len(2), "one symbol cannot count"),
        (Batching::default().requests("R"), "name their symbol in `Batching::of`"),
        (Batching::of("T").query_len(0), "at least 1"),
        (Batching::of("T").max_requests(0), "at least 1"),
    ] {
        let error = batching.check("f", &known).unwrap_err();
        assert!(matches!(&error, Error::Config { what, .. } if what == "`batch` of `f`"), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
    }
    assert!(Batching::of("T").requests("R").query_len(2).check("f", &known).is_ok());
}

/// As a policy does.
#[test]
fn a_pair_chosen_for_one_call_has_the_sizes_of_decodes() {
    let sizes = |sizes: &[usize]| BatchSizes::up_to_budget(8).sizes(sizes.iter().copied());
    let batching = |list: &[usize]| Batching::of("T").query_len(3).max_requests(2).sizes(sizes(list));
    let capability = Capability::new(Support::UniformBatch, true, true);
    let d = Dispatcher::new(Piecewise, capability, &batching(&[1, 4, 8])).unwrap();
    let r = d.resolve(FullDecodeOnly).unwrap();
    let got = d.dispatch_in(&r, &BatchDescriptor::decode(6), ModeSet::ALL).unwrap();
    assert_eq!((got.mode, got.key.map(|k| (k.num_tokens, k.num_reqs))), (Full, Some((6, Some(2)))));
    // More sequences than a uniform decode may have.
    let many = Batching::of("T").query_len(3).max_requests(1).sizes(sizes(&[1, 4, 8]));
    let d = Dispatcher::new(Piecewise, capability, &many).unwrap();
    let got = d.dispatch_in(&r, &BatchDescriptor::decode(6), ModeSet::ALL).unwrap();
    assert_eq!((got.mode, got.key), (Nothing, None));
    // Sizes that hold no decode are fine until one is asked for.
    let d = Dispatcher::new(Piecewise, capability, &batching(&[1, 2])).unwrap();
    let error = d.dispatch_in(&r, &BatchDescriptor::decode(6), ModeSet::ALL).unwrap_err();
    assert!(error.to_string().contains("no multiple of 3 is within the largest size, 2"), "{error}");
}

#[test]
fn sizes_that_would_be_too_many() {
    let sizes = BatchSizes::up_to_budget(1 << 40).max(1 << 40);
    let error = sizes.schedule(Piecewise, 1).unwrap_err();
    assert!(error.to_string().contains("list those that you want"), "{error}");
}

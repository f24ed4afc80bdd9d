//! What boundaries support, and what becomes of a mode that needs more.

use graphable::{BatchSizes, Batching, Error, FallbackReason, Mode, Schedule, Support};

use crate::{model::*, support};

use Mode::{Full, FullAndPiecewise, FullDecodeOnly, Piecewise};

/// The batches of this mode and what they got: `1` a whole call, `3` two segments around a boundary, `0` none.
type Row = (Mode, Support, usize, [usize; 2]);

/// Runs one row: for a decode and for a mixed batch, how many events of graphs and boundaries a settled call has.
macro_rules! settled {
    ($graph:ident, $row:expr) => {{
        let (mode, _, query_len, expected): Row = $row;
        let mut rt = support::runtime();
        let model = model(&rt);
        let batching = Batching::of("T").query_len(query_len);
        let sizes = BatchSizes::up_to_budget(8).sizes([2, 8]);
        let graph = $graph::builder().mode(mode).batch(batching.sizes(sizes)).build(&mut rt).unwrap();
        for (decode, expected) in [true, false].into_iter().zip(expected) {
            let mut log = Vec::new();
            for _ in 0..6 {
                log = call!(rt, graph, model, 2, Some(batch(2, decode)));
            }
            let fell_back: Vec<String> = log.iter().filter(|e| e.starts_with("fell")).cloned().collect();
            let replayed = log.iter().filter(|e| e.starts_with("replayed")).count();
            let eager = log.iter().filter(|e| e.starts_with("eager")).count();
            let got = match (replayed, eager) {
                (1, 0) => 1,
                (2, 1) => 3,
                (0, 1) => 0,
                other => panic!("{other:?}: {log:?}"),
            };
            assert_eq!(got, expected, "{:?}, decode {decode}: {log:?}", $row);
            // Whoever gets less than the mode says is told, and nobody else.
            let part = if decode { mode.decode() } else { mode.mixed() };
            let wanted = if part == Full {
                1
            } else if part == Piecewise {
                3
            } else {
                0
            };
            let less = wanted == 1 && got != 1;
            let left_out = mode == FullDecodeOnly && !decode && got == 0;
            assert_eq!(fell_back.len(), usize::from(less || left_out), "{:?}: {fell_back:?}", $row);
        }
    }};
}

#[test]
fn a_level_decides_which_batches_are_whole_calls() {
    const ANY: Support = Support::Always;
    const UNIFORM: Support = Support::UniformBatch;
    const SINGLE: Support = Support::UniformSingleTokenDecode;
    const NEVER: Support = Support::Never;
    let rows: [Row; 28] = [
        (Mode::None, UNIFORM, 1, [0, 0]),
        (Piecewise, ANY, 1, [3, 3]),
        (Piecewise, UNIFORM, 1, [3, 3]),
        (Piecewise, SINGLE, 2, [3, 3]),
        (Piecewise, NEVER, 1, [3, 3]),
        (Full, ANY, 1, [1, 1]),
        (Full, ANY, 2, [1, 1]),
        (Full, UNIFORM, 1, [1, 3]),
        (Full, UNIFORM, 2, [1, 3]),
        (Full, SINGLE, 1, [1, 3]),
        (Full, SINGLE, 2, [3, 3]),
        (Full, NEVER, 1, [3, 3]),
        (FullDecodeOnly, ANY, 1, [1, 0]),
        (FullDecodeOnly, ANY, 2, [1, 0]),
        (FullDecodeOnly, UNIFORM, 1, [1, 0]),
        (FullDecodeOnly, UNIFORM, 2, [1, 0]),
        (FullDecodeOnly, SINGLE, 1, [1, 0]),
        (FullDecodeOnly, SINGLE, 2, [3, 3]),
        (FullDecodeOnly, NEVER, 1, [3, 3]),
        (FullDecodeOnly, NEVER, 2, [3, 3]),
        (FullAndPiecewise, ANY, 1, [1, 3]),
        (FullAndPiecewise, ANY, 2, [1, 3]),
        (FullAndPiecewise, UNIFORM, 1, [1, 3]),
        (FullAndPiecewise, UNIFORM, 2, [1, 3]),
        (FullAndPiecewise, SINGLE, 1, [1, 3]),
        (FullAndPiecewise, SINGLE, 2, [3, 3]),
        (FullAndPiecewise, NEVER, 1, [3, 3]),
        (FullAndPiecewise, NEVER, 2, [3, 3]),
    ];
    for row in rows {
        match row.1 {
            Support::Always => settled!(AnyGraph, row),
            Support::UniformBatch => settled!(UniformGraph, row),
            Support::UniformSingleTokenDecode => settled!(SingleGraph, row),
            Support::Never => settled!(NeverGraph, row),
            other => panic!("no function of {other:?}"),
        }
    }
}

#[test]
fn a_demotion_says_which_boundary_and_what_to_do() {
    let mut rt = support::runtime();
    let model = model(&rt);
    let graph = UniformGraph::builder().mode(Full).bucket("T", Schedule::new([4])).build(&mut rt).unwrap();
    let resolution = graph.dispatcher().resolution();
    assert_eq!((resolution.asked, resolution.mode), (Full, FullAndPiecewise));
    let log = call!(rt, graph, model, 3, Some(batch(3, false)));
    assert!(log[0].contains("model.rs:") && log[0].contains("supports UniformBatch"), "{log:?}");
    let stats = rt.stats();
    let [(FallbackReason::BatchNotUniform { boundary, support: Support::UniformBatch }, 1)] =
        &stats.fallback_reasons[..]
    else {
        panic!("{:?}", stats.fallback_reasons)
    };
    assert!(boundary.contains("model.rs:"), "{boundary}");
    assert_eq!((stats.fallbacks, stats.skips), (1, 0));
    // As an error, of that batch alone.
    let strict = UniformGraph::builder().mode(Full).deny_fallback(true).build(&mut rt).unwrap();
    let step = rt.step().unwrap();
    let x = rows(1, 0);
    {
        let _scope = step.batch(batch(1, false));
        let error = strict.call(&step, (&x, &[1, 2]), &[0], &model).unwrap_err();
        assert!(matches!(error, Error::FallbackForbidden { function: "uniform", .. }), "{error:?}");
        assert!(error.to_string().contains("use `Mode::FullAndPiecewise`"), "{error}");
    }
    let _scope = step.batch(batch(1, true));
    strict.call(&step, (&x, &[1, 2]), &[0], &model).unwrap();
}

/// Counts as the peers have them: a call of three segments, one size.
#[test]
fn numbers_of_recordings() {
    for (mode, count) in [
        (Mode::None, 0),
        (FullDecodeOnly, 1),
        (Piecewise, 3),
        (FullAndPiecewise, 4),
        // Its boundaries support decodes: as the one before.
        (Full, 4),
    ] {
        let mut rt = support::runtime();
        let model = model(&rt);
        let graph =
            LayeredGraph::builder().mode(mode).bucket("T", Schedule::new([4])).build(&mut rt).unwrap();
        graph.capture_all(&mut rt, &model).unwrap();
        assert_eq!(rt.stats().live_recordings, count, "{mode}");
        assert_eq!(rt.stats().fallbacks, 0, "{mode}: a capture asks for what there is");
        let x = rows(3, 0);
        for decode in [true, false] {
            let step = rt.step().unwrap();
            let _scope = step.batch(batch(3, decode));
            let y = layered_rows(&graph, &step, &x, &model);
            assert_eq!(y, expected(&x), "{mode}");
        }
        assert_eq!(rt.stats().live_recordings, count, "{mode}");
    }
}

fn layered_rows(graph: &LayeredGraph, step: &graphable::Step<'_>, x: &Vec<f32>, model: &Model) -> Vec<f32> {
    let y = graph.call(step, (x, &[x.len() / 2, 2]), model).unwrap();
    step.read(&y).unwrap()
}

//! Boundaries moved to the edges of the device work around them: `#[eager(early)]`, `#[eager(late)]`.

use std::cell::RefCell;

use graphable::{BoundaryMove, Plan, PlanItem, graphable, prelude::*};

use crate::support::{Model, model, runtime};

thread_local! {
    /// What regions did on this thread, in order.
    static SEEN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn note(what: &str) {
    SEEN.with_borrow_mut(|seen| seen.push(what.to_owned()));
}

/// A region's work: twice `t`, and a note of it.
fn doubled<'s>(what: &str, t: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    note(what);
    ops::scale(t, 2.0)
}

#[graphable]
fn early_in_place(x: &Tensor<f32>, w: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = ops::scale(x, 3.0)?;
    let p = #[eager]
    doubled("p", w)?;
    let b = ops::add(&a, &p)?;
    let q = #[eager]
    doubled("q", x)?;
    let c = ops::mul(&b, &q)?;
    ops::neg(&c)
}

#[graphable]
fn early(x: &Tensor<f32>, w: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = ops::scale(x, 3.0)?;
    let p = #[eager(early)]
    doubled("p", w)?;
    let b = ops::add(&a, &p)?;
    let q = #[eager(early)]
    doubled("q", x)?;
    let c = ops::mul(&b, &q)?;
    ops::neg(&c)
}

#[graphable]
fn late_in_place(x: &Tensor<f32>, w: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = ops::scale(x, 3.0)?;
    #[eager(cx)]
    seen(cx, "a", &a)?;
    let b = ops::add(&a, w)?;
    #[eager(cx)]
    seen(cx, "b", &b)?;
    ops::mul(&b, &a)
}

#[graphable]
fn late(x: &Tensor<f32>, w: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = ops::scale(x, 3.0)?;
    #[eager(cx, late)]
    seen(cx, "a", &a)?;
    let b = ops::add(&a, w)?;
    #[eager(cx, late)]
    seen(cx, "b", &b)?;
    ops::mul(&b, &a)
}

fn seen(cx: &Eager<'_>, what: &str, t: &Tensor<f32>) -> Result<()> {
    note(&format!("{what} = {:?}", cx.read(t)?));
    Ok(())
}

/// A function's results over calls with inputs of these lengths, the notes of the last call, the nodes, and
/// how many segments a replayed call has.
macro_rules! calls {
    ($graph:ident, $mode:expr, $lengths:expr) => {{
        let mut rt = runtime();
        let graph = $graph::builder().mode($mode).build(&mut rt).unwrap();
        let (mut results, mut replays) = (Vec::new(), 0);
        for i in 0..24usize {
            let n = $lengths[i % $lengths.len()];
            let before = rt.stats();
            SEEN.with_borrow_mut(Vec::clear);
            {
                let step = rt.step().unwrap();
                let data: Vec<f32> = (0..n).map(|k| (k + i / 6) as f32).collect();
                let x = step.tensor(&[n], &data).unwrap();
                let w = step.tensor(&[n], &vec![0.5; n]).unwrap();
                let y = graph.call(&step, &x, &w).unwrap();
                results.push(step.read(&y).unwrap());
            }
            let after = rt.stats();
            replays = after.replays - before.replays;
            if i >= 18 {
                assert_eq!(after.recordings, before.recordings, "call {i} of {n} records");
            }
        }
        // A boundary keeps a call from being one graph, which full mode says.
        assert!($mode == Mode::Full || rt.stats().fallbacks == 0);
        (results, SEEN.with_borrow(Vec::clone), rt.stats().live_recordings, replays)
    }};
}

#[test]
fn independent_boundaries_leave_one_graph() {
    let (oracle, notes, ..) = calls!(EarlyInPlaceGraph, Mode::None, [3]);
    assert_eq!(notes, ["p", "q"]);
    assert_eq!(oracle[0], [0.0, -2.0 * 4.0, -4.0 * 7.0]);
    let (values, apart, nodes, replays) = calls!(EarlyInPlaceGraph, Mode::Piecewise, [3]);
    assert_eq!((&values, &apart, nodes, replays), (&oracle, &notes, 3, 3));
    let (values, moved, nodes, replays) = calls!(EarlyGraph, Mode::Piecewise, [3]);
    assert_eq!((&values, &moved, nodes, replays), (&oracle, &notes, 1, 1));
    for mode in [Mode::None, Mode::Full] {
        let (values, moved, ..) = calls!(EarlyGraph, mode, [3]);
        assert_eq!((&values, &moved), (&oracle, &notes), "{mode}");
    }
}

#[test]
fn boundaries_that_only_read_leave_one_graph() {
    let (oracle, notes, ..) = calls!(LateInPlaceGraph, Mode::None, [2]);
    assert_eq!(notes, ["a = [9.0, 12.0]", "b = [9.5, 12.5]"]);
    let (values, apart, nodes, replays) = calls!(LateInPlaceGraph, Mode::Piecewise, [2]);
    assert_eq!((&values, &apart, nodes, replays), (&oracle, &notes, 3, 3));
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let (values, moved, nodes, replays) = calls!(LateGraph, mode, [2]);
        assert_eq!((&values, &moved), (&oracle, &notes), "{mode}");
        assert!(mode != Mode::Piecewise || (nodes, replays) == (1, 1), "{nodes} nodes, {replays} replays");
    }
}

/// Row 75 of the peers' tests: three calls, of which the third has the key of the first.
#[test]
fn shapes_have_one_graph_each_and_a_recurring_one_is_replayed() {
    let oracle = calls!(EarlyInPlaceGraph, Mode::None, [2, 3, 2]).0;
    let (values, _, nodes, replays) = calls!(EarlyGraph, Mode::Piecewise, [2, 3, 2]);
    assert_eq!((values, nodes, replays), (oracle, 2, 1));
    assert_eq!(calls!(EarlyInPlaceGraph, Mode::Piecewise, [2, 3, 2]).2, 6);
}

#[test]
fn the_plan_says_what_was_moved() {
    let plan: &Plan = &EarlyGraph::PLAN;
    let text = plan.to_string();
    assert_eq!((plan.segments(), plan.boundaries()), (1, 2), "{text}");
    let [
        PlanItem::Boundary { moved: Some(BoundaryMove::Early), .. },
        PlanItem::Boundary { site, .. },
        PlanItem::Segment { .. },
    ] = plan.items
    else {
        panic!("{text}")
    };
    let line = format!("line {}: doubled(\"q\", x)? [support: Never] moved early\n", site.first_line);
    assert!(text.contains(&line), "{text}");
    assert!(text.contains("x, p, q -> the result"), "{text}");
    let text = LateGraph::PLAN.to_string();
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(at("segment") < at("\"a\"") && at("\"a\"") < at("\"b\"") && at("moved late") > 0, "{text}");
    assert!(!text.contains("__"), "{text}");
    assert!(!EarlyInPlaceGraph::PLAN.to_string().contains("moved"));
}

/// In a loop, each turn has its own; host values from the front steer what stands behind.
#[graphable]
fn layered(x: &Tensor<f32>, model: &Model) -> Result<(Tensor<f32>, usize)> {
    let mut h = ops::mul(x, &model.embed)?;
    #[key]
    let turns: usize = #[eager(cx, early)]
    cx.item(&ops::add(&ops::scale(x, 0.0)?, &ops::full(x.scope(), &[1], 2.0)?)?)?
        as usize;
    for layer in model.layers.iter().take(turns) {
        let a = ops::mul(&h, &layer.a)?;
        let twice = #[eager(early)]
        doubled("turn", x)?;
        let first = &twice;
        #[eager(late)]
        doubled("product", &a)?;
        h = ops::add(&a, first)?;
    }
    let n = turns;
    Ok((ops::neg(&h)?, n))
}

#[test]
fn regions_move_inside_a_turn() {
    let run = |mode: Mode| {
        let mut rt = runtime();
        let m = model(&rt);
        let graph = LayeredGraph::builder().mode(mode).build(&mut rt).unwrap();
        let mut last = (Vec::new(), 0);
        for _ in 0..8 {
            let before = rt.stats().replays;
            SEEN.with_borrow_mut(Vec::clear);
            {
                let step = rt.step().unwrap();
                let x = step.tensor(&[1], &[1.5]).unwrap();
                let (y, n) = graph.call(&step, &x, &m).unwrap();
                assert_eq!(n, 2);
                last.0 = step.read(&y).unwrap();
            }
            last.1 = rt.stats().replays - before;
            assert_eq!(SEEN.with_borrow(Vec::clone), ["turn", "product", "turn", "product"], "{mode}");
        }
        last
    };
    // 1.5 * 2 = 3; 3 * 2 + 3 = 9; 9 * 4 + 3 = 39.
    assert_eq!(run(Mode::None).0, [-39.0]);
    // The product by `embed`, two turns, and what follows the loop.
    assert_eq!(run(Mode::Piecewise), (vec![-39.0], 4));
    assert_eq!(run(Mode::Full).0, [-39.0]);
}

#[derive(Params)]
struct Cache {
    keys: State<f32>,
    count: State<f32>,
}

/// A region that writes one state, while the device work that it passes writes another.
#[graphable]
fn apart(x: &Tensor<f32>, cache: &Cache) -> Result<Tensor<f32>> {
    let a = ops::scale(x, 2.0)?;
    ops::store(&cache.keys, &a)?;
    let count = #[eager(early)]
    counted(x, &cache.count)?;
    let keys = ops::load(x.scope(), &cache.keys)?;
    ops::add(&keys, &count)
}

/// Adds 1 to the state; gives it.
fn counted<'s>(x: &Tensor<'s, f32>, count: &State<f32>) -> Result<Tensor<'s, f32>> {
    let next = ops::add(&ops::load(x.scope(), count)?, &ops::full(x.scope(), &[1], 1.0)?)?;
    ops::store(count, &next)?;
    Ok(next)
}

#[test]
fn states_apart_do_not_keep_a_region() {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let keys = State::new(&rt, &[1], &[0.0]).unwrap();
        let cache = Cache { keys, count: State::new(&rt, &[1], &[0.0]).unwrap() };
        let graph = ApartGraph::builder().mode(mode).build(&mut rt).unwrap();
        for i in 1..=6u8 {
            let step = rt.step().unwrap();
            let x = step.tensor(&[1], &[f32::from(i)]).unwrap();
            let y = graph.call(&step, &x, &cache).unwrap();
            assert_eq!(step.read(&y).unwrap(), [f32::from(i) * 3.0], "{mode}, call {i}");
        }
        assert!(
            mode != Mode::Piecewise || rt.stats().live_recordings == 1,
            "{} nodes",
            rt.stats().live_recordings
        );
    }
}

/// Full mode records a moved region that it may record.
#[graphable]
fn capturable(x: &Tensor<f32>, w: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = ops::scale(x, 3.0)?;
    let b = #[eager(early, support = Always)]
    doubled("b", w)?;
    let c = ops::mul(&a, &b)?;
    #[eager(late, support = Always)]
    doubled("c", &c)?;
    ops::neg(&c)
}

#[test]
fn a_capturable_region_is_part_of_the_whole() {
    let (oracle, notes, ..) = calls!(CapturableGraph, Mode::None, [2]);
    assert_eq!((&oracle[23], notes), (&vec![-9.0, -12.0], vec!["b".to_owned(), "c".to_owned()]));
    let (values, notes, nodes, replays) = calls!(CapturableGraph, Mode::Full, [2]);
    assert_eq!((&values, notes.len(), nodes, replays), (&oracle, 0, 1, 1));
    let (values, notes, nodes, replays) = calls!(CapturableGraph, Mode::Piecewise, [2]);
    assert_eq!((&values, notes.len(), nodes, replays), (&oracle, 2, 1, 1));
}

/// An error of a region that was moved leaves the call as one that was not.
#[graphable]
fn failing(x: &Tensor<f32>, #[key] fails: bool) -> Result<Tensor<f32>> {
    let a = ops::scale(x, 2.0)?;
    #[eager(early)]
    shaped(x, if fails { 7 } else { 1 })?;
    let b = ops::neg(&a)?;
    #[eager(late)]
    shaped(&b, 1)?;
    ops::neg(&b)
}

fn shaped(x: &Tensor<'_, f32>, n: usize) -> Result<()> {
    ops::reshape(x, &[n]).map(drop)
}

#[test]
fn errors_of_moved_regions_arrive() {
    let mut rt = runtime();
    let graph = FailingGraph::builder().build(&mut rt).unwrap();
    for i in 0..12 {
        let fails = i % 3 == 2;
        let step = rt.step().unwrap();
        let x = step.tensor(&[1], &[4.0]).unwrap();
        match graph.call(&step, &x, fails) {
            Ok(y) => assert_eq!((step.read(&y).unwrap(), fails), (vec![8.0], false)),
            Err(error) => assert!(fails && matches!(error, Error::Shape { .. }), "{error}"),
        }
    }
    rt.check_memory().unwrap();
}

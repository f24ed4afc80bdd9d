//! Recordings that share an executable, which is updated in place. Rows 115 and 120 of the peers' tests.

mod faults;
mod life;
mod shown;

use std::{sync::Arc, time::Duration};

use graphable::{
    Event, Mode, Param, Result, Runtime, Schedule, Stats, Step, UnsharedReason,
    backend::faulty::{FaultCall, FaultPlan, FaultyBackend},
    join, ops,
};

use crate::support::*;

const ROWS: &[Dim] = &[Dim::Symbol(0), Dim::Const(64)];
/// Bucket sizes whose grids differ on a GPU.
const SMALL: usize = 4;
const LARGE: usize = 512;

/// A runtime whose recordings share whatever an update takes, and what its device was asked for.
fn sharing() -> (Checked, Arc<FaultPlan>) {
    // A GPU may refuse to update the fills of test mode, which have other sizes.
    let mut options = options();
    options.test_mode = options.test_mode.filter(|_| crate::device::gpu().is_none());
    let plan = Arc::new(FaultPlan::default());
    let inner = crate::device::backend(options);
    let rt = Runtime::with_backend(Box::new(FaultyBackend::new(inner, Arc::clone(&plan)))).unwrap();
    let rt = Checked::new(rt);
    rt.share_executables(Some(Duration::MAX));
    (rt, plan)
}

/// A device input of any number of rows, and a host scalar.
fn bucketed(rt: &mut Runtime, mode: Mode, sizes: &[usize]) -> Graph {
    let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![device("x", ROWS), scalar("s")]) };
    spec.mode(mode).with(|o| o.bucket("B", Schedule::new(sizes.iter().copied()))).build(rt)
}

fn call<'s>(graph: &Graph, step: &Step<'s>, n: usize, s: f32, w: &Param<f32>) -> Result<T<'s>> {
    let x: Vec<f32> = (0..64 * n).map(|i| (i % 97) as f32).collect();
    forward(graph, step, &step.tensor(&[n, 64], &x)?, s, w)
}

/// `-(10 (x + w) s)`, in two segments and a region.
fn forward<'s>(graph: &Graph, step: &Step<'s>, x: &T<'s>, s: f32, w: &Param<f32>) -> Result<T<'s>> {
    graph.call(step, &[In::Device(x), In::Scalar(s)], w, |cx, a| {
        let (h,) =
            seg!("a", cx, (&a.t[0], &a.scalars[0], w), |k| Ok((ops::mul(&ops::add(k.0, k.2)?, k.1)?,)))?;
        let e = eager!("e", Always, cx, |_e| ops::scale(&h, 10.0));
        seg!("b", cx, (&e,), |k| ops::neg(k.0))
    })
}

fn expected(n: usize, s: f32, w: f32) -> Vec<f32> {
    (0..64 * n).map(|i| -(10.0 * (((i % 97) as f32 + w) * s))).collect()
}

fn weight(rt: &Runtime, w: f32) -> Param<f32> {
    Param::new(rt, &[64], &[w; 64]).unwrap()
}

fn run(rt: &mut Runtime, graph: &Graph, n: usize, s: f32, (w, value): (&Param<f32>, f32)) {
    let step = rt.step().unwrap();
    let y = call(graph, &step, n, s, w).unwrap();
    assert_eq!(step.read(&y).unwrap(), expected(n, s, value), "{n} rows, s = {s}, w = {value}");
}

/// What is counted of sharing: shares, updates, unshared; nodes and executables.
fn counts(stats: &Stats) -> ([u64; 3], [usize; 2]) {
    ([stats.shares, stats.updates, stats.unshared], [stats.live_recordings, stats.executables])
}

fn why_unshared(events: &[Event]) -> Vec<UnsharedReason> {
    let reason = |e: &Event| match e {
        Event::Unshared { reason, .. } => Some(reason.clone()),
        _ => None,
    };
    events.iter().filter_map(reason).collect()
}

/// Row 115: two captures of another grid, one executable; alternating is right.
#[test]
fn two_grids_share_one_executable() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let (mut rt, plan) = sharing();
        let graph = bucketed(&mut rt, mode, &[SMALL, LARGE]);
        let w = weight(&rt, 3.0);
        for n in [SMALL, SMALL, LARGE, LARGE] {
            run(&mut rt, &graph, n, 2.0, (&w, 3.0));
        }
        let pairs = if mode == Mode::Full { 1 } else { 2 };
        let settled = rt.stats();
        assert_eq!(counts(&settled), ([pairs, pairs, 0], [2 * pairs as usize, pairs as usize]), "{mode}");
        assert_eq!(plan.count(FaultCall::Instantiate), pairs, "{mode}");
        for i in 0..100 {
            let n = if i % 2 == 0 { SMALL - i % 3 } else { LARGE };
            run(&mut rt, &graph, n, i as f32, (&w, 3.0));
        }
        let stats = rt.stats();
        assert_eq!(stats.updates - settled.updates, 100 * pairs, "{mode}: each switch is one");
        assert_eq!(stats.recordings, settled.recordings, "{mode}");
        assert_eq!((stats.shares, stats.unshared, stats.fallbacks), (pairs, 0, 0), "{mode}");
        assert_eq!(plan.count(FaultCall::Instantiate), pairs, "{mode}");
        assert_eq!(plan.live_executables(), pairs as usize, "{mode}");
        assert!(stats.update_time > settled.update_time, "{mode}: it is measured");
        // The same again needs no update.
        for s in [0.5, 1.5, 2.5] {
            run(&mut rt, &graph, LARGE, s, (&w, 3.0));
        }
        assert_eq!(rt.stats().updates, stats.updates, "{mode}");
    }
}

#[test]
fn off_by_default() {
    let (mut rt, plan) = faulty();
    let graph = bucketed(&mut rt, Mode::Piecewise, &[SMALL, LARGE]);
    let w = weight(&rt, 3.0);
    for n in [SMALL, SMALL, LARGE, LARGE, SMALL, LARGE] {
        run(&mut rt, &graph, n, 2.0, (&w, 3.0));
    }
    assert_eq!(counts(&rt.stats()), ([0, 0, 0], [4, 4]));
    assert_eq!(plan.count(FaultCall::Update), 0);
    // Switched on later, what was recorded before stays by itself.
    rt.share_executables(Some(Duration::MAX));
    run(&mut rt, &graph, SMALL, 2.0, (&w, 3.0));
    run(&mut rt, &graph, LARGE, 2.0, (&w, 3.0));
    assert_eq!(counts(&rt.stats()), ([0, 0, 0], [4, 4]));
}

/// Replays wait in the stream's queue while the executable is updated for the next ones.
#[test]
fn replays_under_way_keep_what_they_were_launched_with() {
    let (mut rt, _) = sharing();
    let graph = bucketed(&mut rt, Mode::Piecewise, &[SMALL, LARGE]);
    let w = weight(&rt, 3.0);
    for n in [SMALL, SMALL, LARGE, LARGE] {
        run(&mut rt, &graph, n, 2.0, (&w, 3.0));
    }
    let before = rt.stats().updates;
    let mut pending = Vec::new();
    for i in 0..60 {
        let step = rt.step().unwrap();
        let n = [SMALL, LARGE][i % 2];
        let y = call(&graph, &step, n, i as f32, &w).unwrap();
        pending.push((n, i as f32, step.read_later(&y).unwrap()));
    }
    for (n, s, read) in pending {
        assert_eq!(read.wait().unwrap(), expected(n, s, 3.0), "{n} rows, s = {s}");
    }
    assert_eq!(rt.stats().updates - before, 120);
}

/// Row 120: a moved input takes an update, no new executable; the same place takes nothing.
#[test]
fn a_moved_input_is_an_update() {
    let (mut rt, plan) = sharing();
    let graph = Spec::inputs(vec![any_device("x")]).build(&mut rt);
    let run = |rt: &mut Runtime, blocks: usize| {
        {
            let step = rt.step().unwrap();
            let _before: Vec<_> = (0..blocks).map(|_| step.tensor(&[1], &[0.0f32]).unwrap()).collect();
            let x = step.tensor(&[2], &[1.0f32 + blocks as f32, 2.0]).unwrap();
            let y = graph.call(&step, &[In::Device(&x)], (), |cx, a| {
                seg!("a", cx, (&a.t[0],), |k| ops::neg(&ops::scale(k.0, 3.0)?))
            });
            assert_eq!(step.read(&y.unwrap()).unwrap(), [-3.0 - 3.0 * blocks as f32, -6.0]);
        }
        (rt.stats().updates, plan.count(FaultCall::Instantiate))
    };
    let warmed = run(&mut rt, 0);
    assert_eq!((warmed, run(&mut rt, 0)), ((0, 0), (0, 1)), "recorded and made");
    assert_eq!(run(&mut rt, 0), (0, 1), "no change, no update");
    assert_eq!(run(&mut rt, 1), (1, 1), "moved: recorded, updated, not made");
    assert_eq!(run(&mut rt, 1), (1, 1));
    assert_eq!(run(&mut rt, 0), (2, 1), "and back");
    assert_eq!(counts(&rt.stats()), ([1, 2, 0], [2, 1]));
}

/// Row 120, of parameters: the new one's recording takes the executable that the old one's left.
#[test]
fn a_replaced_parameter_is_an_update() {
    let (mut rt, plan) = sharing();
    let graph = bucketed(&mut rt, Mode::Piecewise, &[SMALL]);
    for i in 0..10 {
        let w = weight(&rt, i as f32);
        for s in [1.0, 2.0, 3.0] {
            run(&mut rt, &graph, SMALL, s, (&w, i as f32));
        }
    }
    let stats = rt.stats();
    assert_eq!((plan.count(FaultCall::Instantiate), stats.updates, stats.evicted), (2, 9, 9));
    assert_eq!((stats.shares, stats.unshared), (0, 0), "one recording at a time");
    // An executable waits for some steps only.
    for _ in 0..8 {
        rt.step().unwrap();
    }
    assert_eq!((plan.live_executables(), rt.stats().executables), (1, 1));
}

/// The layers of a loop run in one step: each place of the call is by itself, and shared with its like.
#[test]
fn layers_do_not_share_but_their_sizes_do() {
    let (mut rt, plan) = sharing();
    let graph = bucketed(&mut rt, Mode::Piecewise, &[SMALL, LARGE]);
    let layers: Vec<Param<f32>> = (1..=3).map(|i| weight(&rt, i as f32)).collect();
    let run = |rt: &mut Runtime, n: usize| {
        let step = rt.step().unwrap();
        let x = step.tensor(&[n, 64], &vec![1.0f32; 64 * n]).unwrap();
        let y = graph.call(&step, &[In::Device(&x), In::Scalar(2.0)], &layers, |cx, a| {
            let mut h = a.t[0].clone();
            for w in &layers {
                (h,) = seg!("layer", cx, (&h, &a.scalars[0], w), |k| {
                    Ok((ops::add(&ops::mul(k.0, k.1)?, k.2)?,))
                })?;
            }
            Ok(h)
        });
        // ((1 * 2 + 1) * 2 + 2) * 2 + 3
        assert_eq!(step.read(&y.unwrap()).unwrap(), vec![19.0; 64 * n]);
    };
    [SMALL; 4].into_iter().for_each(|n| run(&mut rt, n));
    assert_eq!(counts(&rt.stats()), ([0, 0, 0], [3, 3]), "layers of one size");
    for n in [LARGE, LARGE, SMALL, LARGE, LARGE, SMALL] {
        run(&mut rt, n);
    }
    let stats = rt.stats();
    assert_eq!((stats.live_recordings, stats.executables, stats.shares, stats.unshared), (6, 3, 3, 0));
    assert_eq!((stats.updates, plan.count(FaultCall::Instantiate)), (12, 3), "3 layers, 4 switches");
}

/// A key that makes the body do something else.
#[test]
fn another_topology_has_its_own() {
    let (mut rt, plan) = sharing();
    // Otherwise two operations are one kernel, as one is.
    rt.set_passes(graphable::Passes::none());
    let graph = vector(&mut rt, Mode::Piecewise);
    let run = |rt: &mut Runtime, n: u32| {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], n, |cx, a| {
            seg!("a", cx, (&a.t[0], &n), |k| {
                let mut h = ops::neg(k.0)?;
                for _ in 1..*k.1 {
                    h = ops::neg(&h)?;
                }
                Ok(h)
            })
        });
        let sign = if n.is_multiple_of(2) { 1.0 } else { -1.0 };
        assert_eq!(step.read(&y.unwrap()).unwrap(), X.map(|x| sign * x));
    };
    for n in [1, 1, 2, 2, 1, 2, 1] {
        run(&mut rt, n);
    }
    assert_eq!(counts(&rt.stats()), ([0, 0, 1], [2, 2]));
    assert_eq!(why_unshared(&rt.take_events()), [UnsharedReason::OtherTopology]);
    assert_eq!(plan.count(FaultCall::Update), 0, "the signature says it");
}

/// Other kernels in the places of the first ones: products of few rows, of which a GPU has a kernel for each number of rows, and
/// operations that a key chooses.
#[test]
fn other_kernels_share_one_executable() {
    let (mut rt, plan) = sharing();
    let sizes = [1, 2, 4, 8];
    let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![device("x", ROWS)]) };
    let graph = spec.mode(Mode::Full).with(|o| o.bucket("B", Schedule::new(sizes))).build(&mut rt);
    let weights: Vec<f32> = (0..64 * 64).map(|i| (i % 5) as f32).collect();
    let w = Param::new(&rt, &[64, 64], &weights).unwrap();
    let run = |rt: &mut Runtime, n: usize, negates: bool| {
        let step = rt.step().unwrap();
        let x: Vec<f32> = (0..64 * n).map(|i| (i % 7) as f32).collect();
        let y =
            graph.call(&step, &[In::Device(&step.tensor(&[n, 64], &x).unwrap())], (&w, negates), |cx, a| {
                seg!("a", cx, (&a.t[0], &w, &negates), |k| {
                    let y = ops::linear(k.0, k.1)?;
                    if *k.2 { ops::neg(&y) } else { ops::relu(&y) }
                })
            });
        let row = |i: usize| -> f32 { (0..64).map(|j| x[i / 64 * 64 + j] * weights[i % 64 * 64 + j]).sum() };
        let sign = if negates { -1.0 } else { 1.0 };
        let expected: Vec<f32> = (0..64 * n).map(|i| sign * row(i)).collect();
        assert_eq!(step.read(&y.unwrap()).unwrap(), expected, "{n} rows, {negates}");
    };
    let cases: Vec<(usize, bool)> = sizes.into_iter().flat_map(|n| [(n, false), (n, true)]).collect();
    for &(n, negates) in &cases {
        run(&mut rt, n, negates);
        run(&mut rt, n, negates);
    }
    assert_eq!((rt.stats().live_recordings, rt.stats().executables, rt.stats().unshared), (8, 1, 0));
    for i in 0..40 {
        let (n, negates) = cases[i * 3 % 8];
        run(&mut rt, n, negates);
    }
    let stats = rt.stats();
    assert_eq!((stats.live_recordings, stats.executables, stats.shares, stats.unshared), (8, 1, 7, 0));
    assert_eq!(stats.updates, 7 + 40, "each call is of another recording than the one before");
    assert_eq!(plan.count(FaultCall::Instantiate), 1);
}

/// Branches are part of the topology; with them sharing is right, too.
#[test]
fn branches_are_part_of_the_topology() {
    let (mut rt, _) = sharing();
    let graph = vector(&mut rt, Mode::Piecewise);
    let run = |rt: &mut Runtime, factor: u32, forked: bool| {
        let step = rt.step().unwrap();
        let key = (factor, forked);
        let y = graph.call(&step, &[x()], key, |cx, a| {
            seg!("a", cx, (&a.t[0], &factor, &forked), |k| {
                let (p, q) = if *k.2 {
                    join(k.0.scope(), || ops::scale(k.0, *k.1 as f32), || ops::neg(k.0))?
                } else {
                    (ops::scale(k.0, *k.1 as f32)?, ops::neg(k.0)?)
                };
                ops::add(&p, &q)
            })
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), X.map(|x| x * (factor as f32 - 1.0)));
    };
    for (factor, forked) in [(3, true), (5, true), (3, false), (5, false)] {
        run(&mut rt, factor, forked);
        run(&mut rt, factor, forked);
    }
    for i in 0..12 {
        run(&mut rt, [3, 5][i % 2], i % 3 == 0);
    }
    let stats = rt.stats();
    assert_eq!((stats.live_recordings, stats.executables, stats.shares, stats.unshared), (4, 2, 2, 1));
}

/// What was thought not to meet does: right, then apart.
#[test]
fn sharers_that_meet_in_a_step_part() {
    let (mut rt, plan) = sharing();
    let graph = bucketed(&mut rt, Mode::Full, &[SMALL, LARGE]);
    let w = weight(&rt, 3.0);
    for n in [SMALL, SMALL, LARGE, LARGE, SMALL] {
        run(&mut rt, &graph, n, 2.0, (&w, 3.0));
    }
    assert_eq!(counts(&rt.stats()), ([1, 2, 0], [2, 1]));
    let both = |rt: &mut Runtime| {
        let step = rt.step().unwrap();
        let pending: Vec<_> = [SMALL, LARGE]
            .map(|n| {
                let y = call(&graph, &step, n, n as f32, &w).unwrap();
                (n, step.read_later(&y).unwrap())
            })
            .into();
        for (n, read) in pending {
            assert_eq!(read.wait().unwrap(), expected(n, n as f32, 3.0));
        }
    };
    both(&mut rt);
    assert_eq!(counts(&rt.stats()), ([1, 3, 0], [2, 1]), "updated while the other one may run yet");
    rt.take_events();
    both(&mut rt);
    assert_eq!(why_unshared(&rt.take_events()), [UnsharedReason::SameStep]);
    let parted = rt.stats();
    assert_eq!((parted.unshared, parted.executables, plan.live_executables()), (1, 2, 2));
    for _ in 0..5 {
        both(&mut rt);
        run(&mut rt, &graph, SMALL, 2.0, (&w, 3.0));
    }
    assert_eq!(rt.stats().updates, parted.updates, "each has its own");
    assert_eq!(plan.count(FaultCall::Instantiate), 2);
}

/// A second size that is recorded in the step in which the first one ran meets it from the start.
#[test]
fn recorded_in_one_step() {
    let (mut rt, _) = sharing();
    let graph = bucketed(&mut rt, Mode::Full, &[SMALL, LARGE]);
    let w = weight(&rt, 3.0);
    for _ in 0..5 {
        let step = rt.step().unwrap();
        for n in [SMALL, LARGE] {
            let y = call(&graph, &step, n, 2.0, &w).unwrap();
            assert_eq!(step.read(&y).unwrap(), expected(n, 2.0, 3.0));
        }
    }
    assert_eq!(counts(&rt.stats()), ([0, 0, 1], [2, 2]));
    assert_eq!(why_unshared(&rt.take_events()), [UnsharedReason::SameStep]);
}

#[test]
fn two_graph_objects_do_not_share() {
    for (mode, nodes) in [(Mode::Piecewise, 4), (Mode::Full, 2)] {
        let (mut rt, _) = sharing();
        let graphs = [SMALL, LARGE].map(|n| bucketed(&mut rt, mode, &[n]));
        let w = weight(&rt, 3.0);
        for i in 0..8 {
            run(&mut rt, &graphs[i % 2], [SMALL, LARGE][i % 2], 2.0, (&w, 3.0));
        }
        assert_eq!(counts(&rt.stats()), ([0, 0, 0], [nodes, nodes]), "{mode}");
    }
}

/// No update is within a budget of nothing.
#[test]
fn a_budget_of_nothing_gives_each_its_own() {
    let (mut rt, _) = sharing();
    rt.share_executables(Some(Duration::ZERO));
    let graph = bucketed(&mut rt, Mode::Piecewise, &[SMALL, LARGE]);
    let w = weight(&rt, 3.0);
    for i in 0..10 {
        run(&mut rt, &graph, [SMALL, LARGE][i / 2 % 2], i as f32, (&w, 3.0));
    }
    let stats = rt.stats();
    assert_eq!((stats.live_recordings, stats.executables, stats.shares, stats.unshared), (4, 4, 0, 2));
    assert_eq!(stats.updates, 4, "there and back, of each segment: what was there runs what it ran");
    for reason in why_unshared(&rt.take_events()) {
        assert!(matches!(reason, UnsharedReason::OverBudget { budget: Duration::ZERO, .. }), "{reason}");
    }
}

/// A budget that is cut later: three slow updates in a row, and the recording parts.
#[test]
fn slow_updates_part() {
    let (mut rt, plan) = sharing();
    let graph = bucketed(&mut rt, Mode::Full, &[SMALL, LARGE]);
    let w = weight(&rt, 3.0);
    for n in [SMALL, SMALL, LARGE, LARGE] {
        run(&mut rt, &graph, n, 2.0, (&w, 3.0));
    }
    rt.share_executables(Some(Duration::ZERO));
    rt.take_events();
    for i in 0..6 {
        run(&mut rt, &graph, [SMALL, LARGE][i % 2], 2.0, (&w, 3.0));
    }
    assert_eq!((rt.stats().updates, rt.stats().executables), (7, 1), "three of each");
    for i in 0..6 {
        run(&mut rt, &graph, [SMALL, LARGE][i % 2], 2.0, (&w, 3.0));
    }
    let stats = rt.stats();
    assert_eq!((stats.unshared, stats.executables, plan.live_executables()), (1, 2, 2));
    let reason = why_unshared(&rt.take_events());
    assert!(matches!(reason[..], [UnsharedReason::OverBudget { .. }]), "{reason:?}");
    assert!(stats.updates <= 8, "nobody is left to switch with: {stats:?}");
}

//! Nothing grows with what came and went: parameters, graph objects, shapes, kept values.
//!
//! `GRAPHABLE_SOAK_STEPS=10000000` makes it long, and compares the memory of the process, too.

use std::time::{Duration, Instant};

use graphable::{
    __private::{Options, Plan, Site, Tables},
    KeptTensor, Mode, Param, RecordingId, Result, Runtime, State, Stats, ops,
};

use crate::support::*;

/// Steps by default.
const STEPS: u64 = 3_000;
/// A long run prints a line after so many steps: their time, and what there is.
const REPORT: u64 = 100_000;
/// What each table may hold: what is alive at once, and what is remembered on purpose.
const MOST: Tables = Tables {
    recordings: 64,
    places: 256,
    // Shapes without a recording, the ones that were met last, and those of the last steps.
    groups: 4096 + 256,
    copied_sets: 64,
    edges: 1024,
    holders: 256,
    starts: 8,
    states: 4096,
    owned: 64,
    regions: 1 << 14,
    shapes: 8,
    hosts: 8,
    retired: 64,
    kept: 64,
};

fn check(now: Tables, at: u64) {
    let all = [
        (now.recordings, MOST.recordings, "recordings"),
        (now.places, MOST.places, "places"),
        (now.groups, MOST.groups, "groups"),
        (now.copied_sets, MOST.copied_sets, "sets of copied live-ins"),
        (now.edges, MOST.edges, "edges"),
        (now.holders, MOST.holders, "holders"),
        (now.starts, MOST.starts, "starts"),
        (now.states, MOST.states, "states"),
        (now.owned, MOST.owned, "owned"),
        (now.regions, MOST.regions, "regions"),
        (now.shapes, MOST.shapes, "shapes"),
        (now.hosts, MOST.hosts, "hosts"),
        (now.retired, MOST.retired, "retired"),
        (now.kept, MOST.kept, "kept"),
    ];
    for (is, may, what) in all {
        assert!(is <= may, "{is} {what} after {at} steps: {now:?}");
    }
}

/// Resident bytes of the process, where the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Processor time of this thread, where the system tells: other programs do not count.
fn processor_time() -> Option<Duration> {
    let all = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(all.split_whitespace().next()?.parse().ok()?))
}

/// A graph object whose plan is one of the program's: a plan of its own for each would be a leak of the test.
fn request(rt: &mut Runtime, mode: Mode) -> Graph {
    static PLAN: Plan = Plan { function: "request", file: file!(), items: &[], host_statement: None };
    let inputs = vec![host("x", &[Dim::Const(2)])];
    Spec { plan: &PLAN, symbols: &[], inputs, options: Options::default(), mode }.mode(mode).build(rt)
}

struct Program {
    steady: Graph,
    w: Param<f32>,
    state: State<f32>,
    sum: Option<KeptTensor<f32>>,
    replaced: u64,
}

impl Program {
    fn new(rt: &mut Runtime) -> Self {
        Self {
            steady: vector(rt, Mode::Piecewise),
            w: Param::new(rt, &[2], &[1.0, 2.0]).unwrap(),
            state: State::zeros(rt, &[2]).unwrap(),
            sum: None,
            replaced: 0,
        }
    }

    /// A chain of three segments around a region; what `shape` is belongs to the key of the first and the last.
    fn call<'s>(
        &self,
        graph: &Graph,
        step: &graphable::Step<'s>,
        w: &Param<f32>,
        shape: u64,
    ) -> Result<T<'s>> {
        graph.call(step, &[x()], (w, &self.state, shape), |cx, a| {
            let (h, g) = seg!("a", cx, (&a.t[0], w, &shape), |k| {
                let h = ops::add(k.0, k.1)?;
                Ok((ops::neg(&h)?, h))
            })?;
            // As long as the shape says, up to a point, so that its results have many sizes.
            let e = eager!("e", cx, |_e| ops::add(&g, &ops::full(g.scope(), &[2], shape as f32 % 7.0)?));
            drop(g);
            let (s,) = seg!("b", cx, (&h, &e, &self.state), |k| {
                ops::store(k.2, k.1)?;
                Ok((ops::add(k.0, k.1)?,))
            })?;
            drop(h);
            seg!("c", cx, (&s, &shape), |k| ops::scale(k.0, 1.0))
        })
    }

    /// What must come of it: `-(x + w) + (x + w) + shape % 7`.
    fn expect(&self, y: &[f32], shape: u64) {
        let expected = shape as f32 % 7.0;
        assert!(y.iter().all(|y| (y - expected).abs() < 1e-5), "{y:?}, not {expected}");
    }

    fn step(&mut self, rt: &mut Runtime, i: u64) {
        if i.is_multiple_of(3) {
            self.replaced += 1;
            self.w = Param::new(rt, &[2], &[i as f32 % 5.0, 1.0]).unwrap();
        }
        // A graph object a request; some requests are whole calls.
        let request = i.is_multiple_of(5).then(|| {
            let mode = if i.is_multiple_of(2) { Mode::Full } else { Mode::Piecewise };
            request(rt, mode)
        });
        if i.is_multiple_of(17) {
            self.state = State::zeros(rt, &[2]).unwrap();
        }
        let turns = if request.is_some() { 3 } else { 1 };
        for _ in 0..turns {
            let step = rt.step().unwrap();
            let y = self.call(&self.steady, &step, &self.w, 1).unwrap();
            self.expect(&step.read(&y).unwrap(), 1);
            if let Some(graph) = &request {
                let y = graph.call(&step, &[x()], (&self.w,), |cx, a| {
                    let w = &self.w;
                    let (h,) = seg!("own", cx, (&a.t[0], w), |k| Ok((ops::mul(k.0, k.1)?,)))?;
                    seg!("last", cx, (&h,), |k| ops::neg(k.0))
                });
                assert_eq!(step.read(&y.unwrap()).unwrap(), [-(i as f32 - i as f32 % 3.0) % 5.0, -2.0]);
            }
        }
        let step = rt.step().unwrap();
        if i.is_multiple_of(7) {
            // A shape that comes once.
            let y = self.call(&self.steady, &step, &self.w, 1000 + i).unwrap();
            self.expect(&step.read(&y).unwrap(), 1000 + i);
        }
        if i.is_multiple_of(4) {
            // Kept from step to step, in sizes that change.
            let n = 1 + (i / 4 % 300) as usize;
            let wide = step.tensor(&[n], &vec![i as f32; n]).unwrap();
            self.sum = Some(step.keep(&ops::scale(&wide, 2.0).unwrap()).unwrap());
        }
    }
}

fn soak(share: bool) {
    let long = std::env::var("GRAPHABLE_SOAK_STEPS").ok().map(|n| n.parse::<u64>().expect("a number"));
    let steps = long.unwrap_or(STEPS);
    let mut rt = runtime();
    rt.keep_events(false);
    if share {
        rt.share_executables(Some(Duration::MAX));
    }
    let mut program = Program::new(&mut rt);
    let (mut early, mut begun) = (None, (Instant::now(), processor_time().unwrap_or_default()));
    let mut most = Tables::default();
    for i in 1..=steps {
        program.step(&mut rt, i);
        if i.is_multiple_of(100) {
            let now = Tables::of(&rt);
            check(now, i);
            most = Tables { groups: most.groups.max(now.groups), states: most.states.max(now.states), ..now };
        }
        if i == steps / 4 {
            early = resident();
        }
        if long.is_some() && i.is_multiple_of(REPORT) {
            let Stats { recordings, evicted, warmups, .. } = rt.stats();
            let now = (Instant::now(), processor_time().unwrap_or_default());
            let (took, ran) = (now.0 - begun.0, now.1 - begun.1);
            begun = now;
            let bytes = resident().unwrap_or(0);
            println!(
                "sharing {share}, {i} steps: {took:.2?} for the last {REPORT}, {ran:.2?} on the processor, \
                 {recordings} recordings, {evicted} evicted, {warmups} warm-ups, {bytes} B resident"
            );
        }
    }
    println!("{most:?}");
    let Stats { recordings, evicted, .. } = rt.stats();
    assert!(recordings > steps / 2 && evicted > steps / 3, "{recordings} recorded, {evicted} evicted");
    // The process is not ours alone where other tests run beside this one.
    if let (Some(_), Some(before), Some(after)) = (long, early, resident()) {
        assert!(after < before + (64 << 20), "{before} bytes resident after a quarter, {after} at the end");
    }
    rt.keep_events(true);
    still_usable(&mut rt);
}

#[test]
fn soak_of_replaced_things() {
    soak(false);
}

#[test]
fn soak_of_replaced_things_that_share_executables() {
    soak(true);
}

/// What is dropped without a step between is forgotten as it goes.
#[test]
fn dropped_parameters_leave_nothing_without_a_step() {
    let mut rt = runtime();
    let before = Tables::of(&rt);
    for i in 0..5000 {
        drop(Param::new(&rt, &[1], &[i as f32]).unwrap());
    }
    let after = Tables::of(&rt);
    assert!(after.owned <= before.owned + 1 && after.retired == 0, "{after:?}");
    rt.step().unwrap();
    assert_eq!(Tables::of(&rt), before);
}

/// Which live-ins recordings copy is looked for at each miss: what went with a parameter is looked for no longer.
#[test]
fn sets_of_copied_inputs_go_with_their_recordings() {
    const INPUTS: usize = 6;
    let mut rt = runtime();
    rt.keep_events(false);
    let graph =
        Spec::inputs(vec![any_device("x"); INPUTS]).with(|o| o.limits(|l| l.max_moves = 1)).build(&mut rt);
    for round in 0..130 {
        let w = Param::new(&rt, &[2], &[round as f32, 1.0]).unwrap();
        // Nothing moved, until that is recorded; then some of the inputs.
        for moved in [0, 0, 1 + round % ((1 << INPUTS) - 1), 0] {
            let step = rt.step().unwrap();
            let all: Vec<_> = (0..2 * INPUTS).map(|_| step.tensor(&[2], &X).unwrap()).collect();
            let inputs: Vec<_> = (0..INPUTS).map(|i| In::Device(&all[2 * i + (moved >> i & 1)])).collect();
            let y = graph.call(&step, &inputs, &w, |cx, a| {
                let key = (&a.t[0], &a.t[1], &a.t[2], &a.t[3], &a.t[4], &a.t[5], &w);
                seg!("a", cx, key, |k| {
                    let sum = ops::add(&ops::add(k.0, k.1)?, &ops::add(k.2, k.3)?)?;
                    ops::add(&ops::add(&sum, &ops::add(k.4, k.5)?)?, k.6)
                })
            });
            assert_eq!(step.read(&y.unwrap()).unwrap(), [6.0 + round as f32, 13.0], "{round}");
        }
        let now = Tables::of(&rt);
        assert!(now.copied_sets == 1 && now.recordings == 2, "{round}: {now:?}");
    }
    assert!(rt.stats().copies > 130, "{:?}", rt.stats());
}

/// One step is all that there is, and each of its calls has a shape of its own.
#[test]
fn one_step_of_new_shapes() {
    let mut rt = runtime();
    rt.keep_events(false);
    let graph = Spec::inputs(vec![host("x", &[Dim::Const(2)])])
        .with(|o| o.limits(|limits| limits.max_shapes = None))
        .build(&mut rt);
    let step = rt.step().unwrap();
    let call = |shape: u64| {
        let y = graph.call(&step, &[x()], shape, |cx, a| seg!("a", cx, (&a.t[0], &shape), |k| ops::neg(k.0)));
        drop(y.unwrap());
    };
    (0..20_000).for_each(call);
    // What came last is known all the same.
    (19_990..20_000).for_each(call);
    let stats = step.stats();
    assert_eq!((stats.warmups, stats.recordings), (20_000, 10));
    drop(step);
    assert!(Tables::of(&rt).groups <= 4 * 4096 + 16, "{:?}", Tables::of(&rt));
}

/// What was learnt of a graph object goes with it, also where a reset forgot its recordings before.
#[test]
fn graph_objects_whose_regions_give_host_values() {
    let mut rt = runtime();
    for round in 0..20 {
        static SITE: &Site = site!("n");
        let plan = boundary(SITE, graphable::Support::Always);
        let inputs = vec![host("x", &[Dim::Const(2)])];
        let spec = Spec { plan, symbols: &[], inputs, options: Options::default(), mode: Mode::Full };
        let graph = spec.mode(Mode::Full).build(&mut rt);
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], (), |cx, a| {
            let n = eager!("n", Always, cx, |_e| Ok::<u32, graphable::Error>(3));
            seg!("a", cx, (&a.t[0], &n), |k| ops::scale(k.0, *k.1 as f32))
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [3.0, 6.0]);
        drop(step);
        assert_eq!(Tables::of(&rt).hosts, 1);
        if round % 2 == 0 {
            rt.reset().unwrap();
        }
        drop(graph);
        rt.step().unwrap();
        assert_eq!(Tables::of(&rt).hosts, 0, "round {round}");
    }
}

/// A view keeps the memory of a dropped parameter usable: what is recorded with it afterwards goes with the step.
#[test]
fn parameters_that_are_dropped_before_they_are_recorded() {
    let mut rt = runtime();
    let mut graphs = Vec::new();
    for round in 0..14 {
        let p = Param::new(&rt, &[2], &[round as f32, 1.0]).unwrap();
        // Its first call makes a buffer, which takes the queue of what was dropped in the middle of the step.
        let graph = vector(&mut rt, Mode::Piecewise);
        let step = rt.step().unwrap();
        let p_view = step.scope().view(&p).unwrap();
        drop(p);
        for _ in 0..3 {
            let y = graph.call(&step, &[x()], &p_view, |cx, a| {
                seg!("a", cx, (&a.t[0], &p_view), |k| ops::add(k.0, k.1))
            });
            assert_eq!(step.read(&y.unwrap()).unwrap(), [round as f32 + 1.0, 3.0]);
        }
        drop(p_view);
        drop(step);
        graphs.push(graph);
    }
    rt.step().unwrap();
    assert_eq!(rt.stats().live_recordings, 0);
    assert!(rt.stats().recordings >= 14, "{:?}", rt.stats());
    assert_eq!(Tables::of(&rt).holders, 0, "{:?}", Tables::of(&rt));
}

/// More segments in one call than shapes that are remembered without a recording: what was warmed up is recorded next.
#[test]
fn a_call_of_many_segments_is_recorded() {
    const SEGMENTS: u64 = 5000;
    let mut rt = runtime();
    rt.keep_events(false);
    let graph = vector(&mut rt, Mode::Piecewise);
    for _ in 0..3 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], (), |cx, a| {
            let mut h = seg!("first", cx, (&a.t[0],), |k| ops::neg(k.0))?;
            for i in 1..SEGMENTS {
                h = seg!("more", cx, (&h, &i), |k| ops::neg(k.0))?;
            }
            Ok(h)
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), X);
    }
    let Stats { warmups, live_recordings, .. } = rt.stats();
    assert_eq!((warmups, live_recordings as u64), (SEGMENTS, SEGMENTS));
}

/// Numbers of recordings are never given twice, whatever goes; places are.
#[test]
fn numbers_go_on() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let mut seen = std::collections::HashSet::new();
    for round in 0..20 {
        let w = Param::new(&rt, &[2], &[round as f32, 1.0]).unwrap();
        for _ in 0..3 {
            let step = rt.step().unwrap();
            graph
                .call(&step, &[x()], &w, |cx, a| seg!("p", cx, (&a.t[0], &w), |k| ops::add(k.0, k.1)))
                .unwrap();
        }
        let tree = rt.tree();
        assert_eq!(tree.recordings.len(), 1);
        assert!(seen.insert(tree.recordings[0].id), "{} was given twice", tree.recordings[0].id);
        if round == 10 {
            rt.reset().unwrap();
        }
    }
    assert!(Tables::of(&rt).places <= 4);
}

/// Parents, followers and edges of what goes are untied: a tree of two ways loses one.
#[test]
fn what_is_left_has_no_ties_to_what_went() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let weights: Vec<_> = (0..4).map(|i| Param::new(&rt, &[2], &[i as f32, 1.0]).unwrap()).collect();
    let run = |rt: &mut Runtime, w: &Param<f32>, v: &Param<f32>| {
        for _ in 0..4 {
            let step = rt.step().unwrap();
            graph
                .call(&step, &[x()], (w, v), |cx, a| {
                    let (h,) = seg!("a", cx, (&a.t[0], w), |k| Ok((ops::add(k.0, k.1)?,)))?;
                    let (h,) = seg!("b", cx, (&h, v), |k| Ok((ops::add(k.0, k.1)?,)))?;
                    seg!("c", cx, (&h,), |k| ops::neg(k.0))
                })
                .unwrap();
        }
    };
    for w in &weights {
        for v in &weights {
            run(&mut rt, w, v);
        }
    }
    let before = rt.tree();
    let kept: Vec<_> = weights.into_iter().skip(2).collect();
    rt.step().unwrap();
    let after = rt.tree();
    assert!(after.recordings.len() < before.recordings.len());
    let ids: Vec<RecordingId> = after.recordings.iter().map(|n| n.id).collect();
    for node in &after.recordings {
        assert!(node.children.iter().chain(&node.parents).all(|id| ids.contains(id)), "{node:?}");
        assert!(before.recordings.iter().any(|n| n.id == node.id));
    }
    assert!(after.functions.iter().all(|f| f.roots.iter().all(|id| ids.contains(id))));
    let recordings = rt.stats().recordings;
    run(&mut rt, &kept[0], &kept[1]);
    run(&mut rt, &kept[1], &kept[0]);
    assert_eq!(rt.stats().recordings, recordings, "what is left still serves");
    drop((kept, graph));
    rt.step().unwrap();
    let Tables { edges, holders, starts, owned, .. } = Tables::of(&rt);
    assert_eq!((holders, starts, owned), (0, 0, 0));
    assert!(edges <= rt.stats().live_recordings, "{edges} edges");
}

//! Policies: asked when, and obeyed.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use graphable::{CallInfo, FallbackReason, Mode, OnMove, Policy, Runtime, SegmentDecision, SegmentInfo, ops};

use crate::{moves::blocks, support::*};

/// Does what happens without a policy.
#[derive(Debug)]
struct BuiltIn;
impl Policy for BuiltIn {}

#[derive(Debug, Default)]
struct Asked {
    calls: AtomicUsize,
    segments: AtomicUsize,
}

#[derive(Debug)]
struct Counting(Arc<Asked>);
impl Policy for Counting {
    fn call(&self, call: &CallInfo<'_>) -> Mode {
        self.0.calls.fetch_add(1, Ordering::Relaxed);
        call.mode
    }
    fn segment(&self, segment: &SegmentInfo<'_>) -> SegmentDecision {
        self.0.segments.fetch_add(1, Ordering::Relaxed);
        segment.built_in()
    }
}

/// Two segments; the second has one operation, the first three.
fn call(rt: &mut Runtime, graph: &Graph, place: usize) -> Vec<String> {
    let step = rt.step().unwrap();
    let _below = blocks(&step, place);
    let t = step.tensor(&[2], &X).unwrap();
    let out = graph.call(&step, &[In::Device(&t)], (), |cx, a| {
        let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::neg(&ops::neg(&ops::scale(k.0, 2.0)?)?)?,)))?;
        seg!("b", cx, (&h,), |k| ops::neg(k.0))
    });
    assert_eq!(step.read(&out.unwrap()).unwrap(), [-2.0, -4.0]);
    events(&step)
}

fn graph(rt: &mut Runtime, set: impl FnOnce(&mut graphable::__private::Options)) -> Graph {
    Spec::inputs(vec![any_device("x")]).with(set).build(rt)
}

/// The same events, whatever the limits are.
#[test]
fn the_default_policy_is_the_built_in_one() {
    for (moves, on_move, recordings, kernels) in [
        (2, OnMove::Copy, 128, 0),
        (2, OnMove::Skip, 128, 0),
        (9, OnMove::Copy, 2, 0),
        (2, OnMove::Copy, 128, 2),
    ] {
        let logs = [false, true].map(|with_policy| {
            let mut rt = runtime();
            let graph = graph(&mut rt, |o| {
                o.limits(|l| {
                    (l.max_moves, l.on_move) = (moves, on_move);
                    (l.max_recordings, l.min_kernels) = (recordings, kernels);
                });
                if with_policy {
                    o.policy(BuiltIn);
                }
            });
            let logs: Vec<_> = [0, 0, 1, 2, 3, 0, 4, 5].map(|place| call(&mut rt, &graph, place)).into();
            let mut stats = rt.stats();
            // Two runs never take the same time.
            stats.capture_time = std::time::Duration::ZERO;
            (logs, stats)
        });
        assert_eq!(logs[0], logs[1]);
    }
}

#[test]
fn a_policy_is_asked_before_warm_ups_and_recordings_only() {
    let asked = Arc::new(Asked::default());
    let mut rt = runtime();
    let graph = graph(&mut rt, |o| o.policy(Counting(Arc::clone(&asked))));
    let counts = |what: &str| {
        assert_eq!(
            what,
            format!("{:?}", (asked.calls.load(Ordering::Relaxed), asked.segments.load(Ordering::Relaxed)))
        );
    };
    call(&mut rt, &graph, 0);
    counts("(1, 2)");
    call(&mut rt, &graph, 0);
    counts("(2, 4)");
    for _ in 0..5 {
        assert_eq!(call(&mut rt, &graph, 0), ["replayed a", "replayed b"]);
    }
    counts("(7, 4)");
    call(&mut rt, &graph, 1);
    counts("(8, 5)");
    // What is off is not asked about.
    graph.function.set_enabled(false);
    call(&mut rt, &graph, 0);
    counts("(8, 5)");
}

#[derive(Debug)]
struct NoGraph;
impl Policy for NoGraph {
    fn call(&self, _: &CallInfo<'_>) -> Mode {
        Mode::None
    }
}

#[test]
fn a_policy_can_want_no_graph() {
    let mut rt = runtime();
    let graph = graph(&mut rt, |o| {
        o.policy(NoGraph);
        o.deny_fallback(true);
    });
    for _ in 0..3 {
        assert_eq!(call(&mut rt, &graph, 0), ["fell back: decided by the policy: no graph for this call"]);
    }
    let stats = rt.stats();
    assert_eq!((stats.warmups, stats.recordings, stats.skips, stats.fallbacks), (0, 0, 3, 0));
}

/// Chooses the mode by size: whole calls for small ones, pieces for the rest.
#[derive(Debug)]
struct BySize;
impl Policy for BySize {
    fn call(&self, call: &CallInfo<'_>) -> Mode {
        assert_eq!((call.function, call.mode), ("test", Mode::Piecewise));
        match call.sizes {
            [("B", n)] if *n < 4 => Mode::Full,
            [("B", _)] => Mode::Piecewise,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_policy_chooses_the_mode() {
    let mut rt = runtime();
    let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![host("x", &[Dim::Symbol(0)])]) };
    let graph = spec.with(|o| o.policy(BySize)).build(&mut rt);
    for n in [2usize, 6] {
        let mut log = Vec::new();
        for _ in 0..4 {
            let step = rt.step().unwrap();
            let data = vec![1.0f32; n];
            let out = graph.call(&step, &[In::Host((&data).into())], (), |cx, a| {
                let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
                seg!("b", cx, (&h,), |k| ops::neg(k.0))
            });
            assert_eq!(step.read(&out.unwrap()).unwrap(), vec![-2.0; n]);
            log = events(&step);
        }
        assert_eq!(log.len(), if n < 4 { 1 } else { 2 }, "one graph or two: {log:?}");
        assert!(log.iter().all(|e| e.starts_with("replayed")), "{log:?}");
    }
}

/// Says what it was told to about segments named `a`, and keeps what it was asked.
#[derive(Debug)]
struct Says(Say, Arc<Mutex<Vec<String>>>);
type Say = fn(&SegmentInfo<'_>) -> SegmentDecision;

impl Policy for Says {
    fn segment(&self, s: &SegmentInfo<'_>) -> SegmentDecision {
        if s.site.function != "a" {
            return SegmentDecision::Record;
        }
        let moved: Vec<_> = s.moved.iter().map(|m| (m.live_in, m.moves, m.can_copy)).collect();
        self.1.lock().unwrap().push(format!(
            "{:?} kernels, {} recordings, {} shapes, new {}, moved {moved:?}",
            s.kernels, s.recordings, s.shapes, s.new_shape
        ));
        (self.0)(s)
    }
}

#[test]
fn a_policy_sees_what_there_is_and_is_obeyed() {
    let policy_says = "fell back: decided by the policy: no";
    const NO: FallbackReason = FallbackReason::Policy { reason: "no" };
    let verdicts: [(&str, Say); 4] = [
        ("record", |_| SegmentDecision::Record),
        // Live-in 7 does not exist, and nothing moves at first.
        ("copy", |_| SegmentDecision::Copy(vec![0, 7])),
        ("eager", |_| SegmentDecision::Eager(NO)),
        ("skip", |s| if s.moved.is_empty() { SegmentDecision::Record } else { SegmentDecision::Skip(NO) }),
    ];
    for (name, verdict) in verdicts {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let mut rt = runtime();
        let graph = graph(&mut rt, |o| {
            o.policy(Says(verdict, Arc::clone(&asked)));
            o.deny_fallback(name == "eager");
        });
        let first: Vec<String> = [0, 0, 1, 2, 0].map(|place| call(&mut rt, &graph, place)[0].clone()).into();
        let again = "again a: InputMoved { live_in: 0 }";
        let expected = match name {
            "record" => ["warmed a", "recorded a", again, again, "replayed a"],
            "copy" => ["warmed a", "recorded a", "demoted 0 of a after 1", "copied LiveIn 8", "replayed a"],
            "eager" => [policy_says; 5],
            _ => ["warmed a", "recorded a", policy_says, policy_says, policy_says],
        };
        assert_eq!(first, expected, "{name}");
        let asked = asked.lock().unwrap();
        let warm = "None kernels, 0 recordings, 1 shapes, new true, moved []";
        assert_eq!(asked[0], warm, "{name}");
        match name {
            // Nothing is learnt of it. The other segment's shape counts, this one's would be another.
            "eager" => {
                assert_eq!(asked[1..], ["None kernels, 0 recordings, 2 shapes, new true, moved []"; 4]);
            }
            _ => {
                assert_eq!(asked[1], "Some(3) kernels, 0 recordings, 1 shapes, new false, moved []");
                assert_eq!(
                    asked[2],
                    "Some(3) kernels, 1 recordings, 1 shapes, new false, moved [(0, 1, true)]"
                );
                assert_eq!(asked.len(), if name == "record" { 4 } else { 3 }, "{name}");
            }
        }
    }
}

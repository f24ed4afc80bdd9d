//! The tree against a reference that keeps every value for ever: long random walks through one runtime.
//!
//! A script is a list of actions on the values of a call: segments of several kinds, eager regions,
//! looks, drops, copies. Some scripts fork on a bit of the call, so that paths part and meet again with
//! equal or other live sets. Calls of a step hold results, in some episodes many of them, and pass them on; inputs
//! move; parameters, state and graph objects are dropped and made again; a region has a result whose size changes;
//! inputs are filled in place; the parameter is overwritten in place between calls.
//! Some steps run with capture closed, where nothing is recorded, and some in the plan of an estimate, after which
//! counters and memory are as before. The reference is host arithmetic on values that are never freed. Every value that is looked
//! at, returned or held must equal it bit by bit, every segment call must be counted exactly once, and counters must be
//! the sums of the events. Two of five runtimes share executables.
//!
//! `GRAPHABLE_WALK_STEPS=10000000` makes more steps than the default; a step is one action.
//! `GRAPHABLE_WALK_FROM=n` begins with the n-th episode.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use graphable::{__private::Live, Error, Event, HostSlice, Param, Result, Runtime, State, Stats, Step, ops};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};

use crate::{folded::Folded, support::*};

mod fills;
mod unrecorded;

use fills::Fills;

/// Actions by default.
const STEPS: u64 = 100_000;
/// Actions in one runtime.
const EPISODE: u64 = 10_000;
const SCRIPTS: usize = 12;
/// Elements of a whole value; a half has half of them.
const N: usize = 8;

/// What a segment or a region computes, of values of these lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `x * f`.
    Scale,
    /// `(x + y) * 0.5`, over a temporary.
    Mix,
    /// `--(x * f)`: temporaries above and below the result.
    Deep,
    /// `(x + y) * 0.5` and `x * f`.
    Pair,
    /// Both halves of `x * f`: two views of one storage.
    Halves,
    /// Two halves put together.
    Join,
    /// `x` itself, and `-x`.
    Pass,
    /// `x` and `y`, and nothing computed.
    Views,
    /// The state becomes `(state + x) * 0.5`; gives it back.
    Store,
    /// `(x + w) * 0.5`, with a parameter.
    Weigh,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Scale,
        Self::Mix,
        Self::Deep,
        Self::Pair,
        Self::Halves,
        Self::Join,
        Self::Pass,
        Self::Views,
        Self::Store,
        Self::Weigh,
    ];

    /// How many values go in, and how long they must be (`None`: all alike).
    fn takes(self) -> (usize, Option<usize>) {
        match self {
            Self::Scale | Self::Deep | Self::Pass => (1, None),
            Self::Mix | Self::Pair | Self::Views => (2, None),
            Self::Halves | Self::Store | Self::Weigh => (1, Some(N)),
            Self::Join => (2, Some(N / 2)),
        }
    }

    /// The lengths that come out.
    fn gives(self, len: usize) -> Vec<usize> {
        match self {
            Self::Scale | Self::Mix | Self::Deep => vec![len],
            Self::Pair | Self::Pass | Self::Views => vec![len; 2],
            Self::Halves => vec![N / 2; 2],
            Self::Join | Self::Store | Self::Weigh => vec![N],
        }
    }
}

#[derive(Clone, Debug)]
enum Action {
    Segment {
        kind: Kind,
        ins: Vec<usize>,
        factor: u32,
    },
    Region {
        ins: Vec<usize>,
        factor: u32,
    },
    /// An eager region that reads a value.
    Look(usize),
    /// An eager region that also gives a value of another length each time, which nothing but a look uses.
    Scores {
        x: usize,
        factor: u32,
    },
    Drop(usize),
    Copy(usize),
    /// One of two segments, by the call's bit; both give one value of one length.
    Fork {
        x: usize,
        kinds: [Kind; 2],
        factor: u32,
    },
}

/// A function's body: actions on a growing list of values, the first of which are its inputs.
struct Script {
    actions: Vec<Action>,
    outputs: Vec<usize>,
}

fn factor(f: u32) -> f32 {
    [0.5, -0.75, 0.25][f as usize]
}

fn script(rng: &mut StdRng) -> Script {
    // Lengths of the values; `None` once dropped. The call's inputs: a host one and a device one.
    let mut live: Vec<Option<usize>> = vec![Some(N), Some(N)];
    let mut actions = Vec::new();
    let pick = |rng: &mut StdRng, live: &[Option<usize>], len: Option<usize>| {
        let fitting: Vec<usize> =
            (0..live.len()).filter(|&v| live[v].is_some_and(|l| len.is_none_or(|len| len == l))).collect();
        // Later values more often: chains, not stars.
        let late = &fitting[fitting.len() / 2..];
        if rng.random() { late.choose(rng).copied() } else { fitting.choose(rng).copied() }
    };
    for _ in 0..rng.random_range(4..14) {
        let factor = rng.random_range(0..3);
        match rng.random_range(0..16) {
            0..=7 => {
                let kind = *Kind::ALL.choose(rng).unwrap();
                let (count, len) = kind.takes();
                let Some(x) = pick(rng, &live, len) else { continue };
                let mut ins = vec![x];
                if count == 2 {
                    ins.extend(pick(rng, &live, live[x]));
                }
                live.extend(kind.gives(live[x].unwrap()).into_iter().map(Some));
                actions.push(Action::Segment { kind, ins, factor });
            }
            8 | 9 => {
                let Some(x) = pick(rng, &live, None) else { continue };
                live.push(live[x]);
                actions.push(if rng.random_bool(0.3) {
                    Action::Scores { x, factor }
                } else {
                    Action::Region { ins: vec![x], factor }
                });
            }
            10 => actions.extend(pick(rng, &live, None).map(Action::Look)),
            11 | 12 if live.iter().flatten().count() > 2 => {
                let Some(x) = pick(rng, &live, None) else { continue };
                live[x] = None;
                actions.push(Action::Drop(x));
            }
            13 => {
                let Some(x) = pick(rng, &live, None) else { continue };
                live.push(live[x]);
                actions.push(Action::Copy(x));
            }
            _ => {
                let Some(x) = pick(rng, &live, None) else { continue };
                live.push(live[x]);
                let kinds = [Kind::Scale, if rng.random() { Kind::Deep } else { Kind::Scale }];
                actions.push(Action::Fork { x, kinds, factor });
            }
        }
    }
    let mut outputs = Vec::new();
    for _ in 0..rng.random_range(1..4) {
        outputs.extend(pick(rng, &live, None));
    }
    Script { actions, outputs }
}

/// What the device computes.
fn segment<'s>(
    cx: Piecewise<'s>,
    kind: Kind,
    ins: &[T<'s>],
    f: u32,
    (state, w): (&State<f32>, &Param<f32>),
) -> Result<Vec<T<'s>>> {
    let x = &ins[0];
    match kind {
        Kind::Scale => seg!("scale", cx, (x, &f), |k| Ok(vec![ops::scale(k.0, factor(*k.1))?])),
        Kind::Mix => {
            seg!("mix", cx, (x, &ins[1]), |k| Ok(vec![ops::scale(&ops::add(k.0, k.1)?, 0.5)?]))
        }
        Kind::Deep => seg!("deep", cx, (x, &f), |k| {
            Ok(vec![ops::neg(&ops::neg(&ops::scale(k.0, factor(*k.1))?)?)?])
        }),
        Kind::Pair => seg!("pair", cx, (x, &ins[1], &f), |k| {
            Ok(vec![ops::scale(&ops::add(k.0, k.1)?, 0.5)?, ops::scale(k.0, factor(*k.2))?])
        }),
        Kind::Halves => {
            seg!("halves", cx, (x, &f), |k| ops::split(&ops::scale(k.0, factor(*k.1))?, 0, 2))
        }
        Kind::Join => seg!("join", cx, (x, &ins[1]), |k| Ok(vec![ops::concat(&[k.0, k.1], 0)?])),
        Kind::Pass => seg!("pass", cx, (x,), |k| Ok(vec![k.0.clone(), ops::neg(k.0)?])),
        Kind::Views => seg!("views", cx, (x, &ins[1]), |k| Ok(vec![k.0.clone(), k.1.clone()])),
        Kind::Store => seg!("store", cx, (x, state), |k| {
            let next = ops::scale(&ops::add(&ops::load(k.0.scope(), k.1)?, k.0)?, 0.5)?;
            ops::store(k.1, &next)?;
            Ok(vec![next])
        }),
        Kind::Weigh => {
            seg!("weigh", cx, (x, w), |k| Ok(vec![ops::scale(&ops::add(k.0, k.1)?, 0.5)?]))
        }
    }
}

type Value = std::rc::Rc<[f32]>;

/// What it means.
fn meaning(kind: Kind, ins: &[Value], f: u32, state: &mut Value, w: &Value) -> Vec<Value> {
    let map = |x: &Value, f: &dyn Fn(f32) -> f32| x.iter().map(|&v| f(v)).collect::<Value>();
    let mean = |x: &Value, y: &Value| x.iter().zip(y.iter()).map(|(a, b)| (a + b) * 0.5).collect::<Value>();
    let x = &ins[0];
    let scaled = map(x, &|v| v * factor(f));
    match kind {
        Kind::Scale | Kind::Deep => vec![scaled],
        Kind::Mix => vec![mean(x, &ins[1])],
        Kind::Pair => vec![mean(x, &ins[1]), scaled],
        Kind::Halves => vec![scaled[..N / 2].into(), scaled[N / 2..].into()],
        Kind::Join => vec![x.iter().chain(ins[1].iter()).copied().collect()],
        Kind::Pass => vec![x.clone(), map(x, &|v| -v)],
        Kind::Views => vec![x.clone(), ins[1].clone()],
        Kind::Store => {
            *state = mean(state, x);
            vec![state.clone()]
        }
        Kind::Weigh => vec![mean(x, w)],
    }
}

/// Graph objects of an episode.
const GRAPHS: usize = 2;

/// Everything of one episode.
struct World {
    graphs: Vec<Graph>,
    audited: bool,
    /// Results that a step holds at most.
    holds: usize,
    scripts: Vec<Script>,
    state: State<f32>,
    w: Param<f32>,
    /// What the state and the parameter hold.
    means: (Value, Value),
    fills: Fills,
    /// Every value that ever was: nothing of the reference is freed or used again.
    kept: Vec<Value>,
    segments: u64,
    steps: u64,
    /// Estimates, and steps with capture closed that went through.
    estimates: u64,
    closed: u64,
    /// Parameters that were overwritten in place.
    writes: u64,
}

fn random_value(rng: &mut StdRng) -> Value {
    (0..N).map(|_| rng.random_range(-1.0f32..1.0)).collect()
}

fn graph(rt: &mut Runtime, audited: bool) -> Graph {
    let inputs = vec![host("x", &[Dim::Const(N)]), any_device("d")];
    Spec::inputs(inputs).with(|o| o.audit_every(if audited { 3 } else { 0 })).build(rt)
}

fn world(rt: &mut Runtime, rng: &mut StdRng, audited: bool) -> World {
    let (state, w) = (random_value(rng), random_value(rng));
    World {
        graphs: (0..GRAPHS).map(|_| graph(rt, audited)).collect(),
        audited,
        holds: if rng.random_bool(0.3) { 40 } else { 3 },
        scripts: (0..SCRIPTS).map(|_| script(rng)).collect(),
        state: State::new(rt, &[N], &state).unwrap(),
        w: Param::new(rt, &[N], &w).unwrap(),
        means: (state, w),
        fills: Fills::default(),
        kept: Vec::new(),
        segments: 0,
        steps: 0,
        estimates: 0,
        closed: 0,
        writes: 0,
    }
}

impl World {
    /// One call; gives its outputs, and what they must be.
    fn call<'s>(
        &mut self,
        step: &Step<'s>,
        at: usize,
        bit: bool,
        x: (HostSlice<'_, f32>, &Value),
        d: (&T<'s>, &Value),
    ) -> Result<Vec<(T<'s>, Value)>> {
        let Self { graphs, scripts, state, w, means, kept, segments, steps, .. } = self;
        let graph = &graphs[at % GRAPHS];
        let Script { actions, outputs } = &scripts[at];
        let mut means_of: Vec<Value> = vec![x.1.clone(), d.1.clone()];
        let values = graph.call(step, &[In::Host(x.0), In::Device(d.0)], (), |cx, a| {
            let mut values: Vec<Option<T<'s>>> = vec![Some(a.t[0].clone()), Some(a.t[1].clone())];
            let taken = |values: &[Option<T<'s>>], ins: &[usize]| -> Vec<T<'s>> {
                ins.iter().map(|&v| values[v].clone().expect("scripts use what lives")).collect()
            };
            for action in actions {
                *steps += 1;
                let (kind, ins, f) = match action {
                    Action::Segment { kind, ins, factor } => (*kind, ins.clone(), *factor),
                    Action::Fork { x, kinds, factor } => (kinds[usize::from(bit)], vec![*x], *factor),
                    Action::Region { ins, factor: f } => {
                        let x = &taken(&values, ins)[0];
                        let y = eager!("region", cx, |_e| ops::scale(x, factor(*f)));
                        values.push(Some(y));
                        means_of.push(means_of[ins[0]].iter().map(|v| v * factor(*f)).collect());
                        continue;
                    }
                    Action::Scores { x, factor: f } => {
                        let len = 1 + *steps as usize * 37 % 300;
                        let x_of = &taken(&values, &[*x])[0];
                        let (scores, y) = eager!("scores", cx, |e| {
                            let scores = ops::full(e.scope(), &[len], factor(*f))?;
                            Ok::<_, Error>((scores, ops::scale(x_of, factor(*f))?))
                        });
                        eager!("look at scores", cx, |e| {
                            assert_eq!(e.read(&scores)?, vec![factor(*f); len], "script {at}, scores");
                            Ok::<_, Error>(())
                        });
                        values.push(Some(y));
                        means_of.push(means_of[*x].iter().map(|v| v * factor(*f)).collect());
                        continue;
                    }
                    Action::Look(v) => {
                        let (x, mean) = (&taken(&values, &[*v])[0], &means_of[*v]);
                        eager!("look", cx, |e| {
                            assert_eq!(e.read(x)?, **mean, "script {at}, value {v}");
                            Ok::<_, Error>(())
                        });
                        continue;
                    }
                    Action::Drop(v) => {
                        values[*v] = None;
                        continue;
                    }
                    Action::Copy(v) => {
                        values.push(values[*v].clone());
                        means_of.push(means_of[*v].clone());
                        continue;
                    }
                };
                let mean_ins: Vec<Value> = ins.iter().map(|&v| means_of[v].clone()).collect();
                values.extend(segment(cx, kind, &taken(&values, &ins), f, (state, w))?.into_iter().map(Some));
                // Only what ran is counted.
                *segments += 1;
                means_of.extend(meaning(kind, &mean_ins, f, &mut means.0, &means.1));
            }
            Ok(taken(&values, outputs))
        })?;
        kept.extend(means_of.iter().cloned());
        Ok(values.into_iter().zip(outputs.iter().map(|&v| means_of[v].clone())).collect())
    }

    /// A step, sometimes behind something that is dropped and made again, with capture closed, or behind an estimate.
    fn step(&mut self, rt: &mut Runtime, rng: &mut StdRng) -> Result<()> {
        match rng.random_range(0..400) {
            0..4 => {
                self.means.1 = random_value(rng);
                self.w = Param::new(rt, &[N], &self.means.1)?;
            }
            4 => {
                self.means.0 = random_value(rng);
                self.state = State::new(rt, &[N], &self.means.0)?;
            }
            5..7 => {
                let at = rng.random_range(0..GRAPHS);
                self.graphs[at] = graph(rt, self.audited);
                self.fills.forget(at);
            }
            7..11 => self.estimate(rt, rng)?,
            11..40 => return self.closed_step(rt, rng),
            _ => {}
        }
        self.plain_step(rt, rng)
    }

    /// A step of a few calls, which hold some results and pass them on.
    fn plain_step(&mut self, rt: &mut Runtime, rng: &mut StdRng) -> Result<()> {
        let step = rt.step()?;
        let mut held: Vec<(T<'_>, Value)> = Vec::new();
        let calls = if self.holds > 3 { 12 } else { 4 };
        for _ in 0..rng.random_range(1..calls) {
            if rng.random_bool(0.1) {
                self.means.1 = random_value(rng);
                self.w.write(&step, &self.means.1[..])?;
                self.writes += 1;
            }
            let (at, bit, x) = (rng.random_range(0..SCRIPTS), rng.random(), random_value(rng));
            let whole: Vec<usize> = (0..held.len()).filter(|&h| held[h].1.len() == N).collect();
            let (d, mean) = match whole.choose(rng) {
                Some(&h) => held[h].clone(),
                None => {
                    let mean = random_value(rng);
                    // Behind blocks that make it move.
                    let behind = if rng.random_bool(0.1) { rng.random_range(1..4) } else { 0 };
                    let below =
                        (0..behind).map(|_| step.tensor(&[1], &[0.0f32])).collect::<Result<Vec<_>>>()?;
                    let d = step.tensor(&[N], &mean)?;
                    drop(below);
                    (d, mean)
                }
            };
            let graph = at % GRAPHS;
            let filled = self.filled(&step, rng, (graph, 0), &x, &mut held)?;
            let d = self.filled(&step, rng, (graph, 1), &mean, &mut held)?.unwrap_or(d);
            let host = filled.as_ref().map_or_else(|| (&x[..]).into(), HostSlice::from);
            let out = self.call(&step, at, bit, (host, &x), (&d, &mean))?;
            drop((filled, d));
            for (value, mean) in out {
                if rng.random() {
                    assert_eq!(step.read(&value)?, *mean, "an output of script {at}");
                }
                if rng.random() && held.len() < self.holds {
                    held.push((value, mean));
                }
            }
            if rng.random_range(0..4) == 0 && !held.is_empty() {
                held.swap_remove(rng.random_range(0..held.len()));
            }
        }
        for (value, mean) in &held {
            assert_eq!(step.read(value)?, **mean, "a value that was held");
        }
        if rng.random_range(0..8) == 0 {
            self.check_fills(&step)?;
        }
        if rng.random_range(0..4) == 0 {
            let state = ops::load(step.scope(), &self.state)?;
            assert_eq!(step.read(&state)?, *self.means.0, "the state");
        }
        Ok(())
    }
}

/// The sums can differ: without any one of the events that can be left out they do.
#[test]
fn a_lost_event_is_noticed() {
    let mut rt = runtime();
    let mut rng = StdRng::seed_from_u64(0);
    let mut world = world(&mut rt, &mut rng, true);
    for _ in 0..12 {
        world.step(&mut rt, &mut rng).unwrap();
    }
    let (events, stats) = (rt.take_events(), rt.stats());
    let differs = |events: &[Event]| {
        let mut folded = Folded::default();
        folded.add(events);
        folded.differs_from(&stats).is_some()
    };
    assert!(!differs(&events));
    let mut kinds = std::collections::HashSet::new();
    for at in 0..events.len() {
        if !matches!(events[at], Event::Warmed { .. } | Event::Recorded { .. }) {
            kinds.insert(std::mem::discriminant(&events[at]));
            assert!(differs(&[&events[..at], &events[at + 1..]].concat()), "{}", events[at]);
        }
    }
    assert!(kinds.len() >= 5, "only {} kinds of events", kinds.len());
}

/// What an episode came to.
fn counts(stats: &Stats, world: &World) -> [(&'static str, u64); 16] {
    [
        ("steps", world.steps),
        ("segment calls", world.segments),
        ("warm-ups", stats.warmups),
        ("recordings", stats.recordings),
        ("replays", stats.replays),
        ("re-recordings", stats.rerecordings),
        ("evictions", stats.evicted),
        ("audits", stats.audits),
        ("copies", stats.copies),
        ("shared executables", stats.shares),
        ("updates", stats.updates),
        ("closed steps", world.closed),
        ("estimates, times three", 3 * world.estimates),
        ("fills", world.fills.made),
        ("fills found again", world.fills.found),
        ("writes of the parameter", world.writes),
    ]
}

/// A walk of `steps` through a runtime of its own.
fn episode(seed: u64, steps: u64) -> [(&'static str, u64); 16] {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut rt = runtime();
    rt.share_executables((seed % 5 > 2).then_some(Duration::MAX));
    let mut world = world(&mut rt, &mut rng, seed.is_multiple_of(5));
    let mut folded = Folded::default();
    while world.steps < steps {
        if let Err(error) = world.step(&mut rt, &mut rng) {
            panic!("episode {seed}, step {}: {error}", world.steps);
        }
        folded.add(&rt.take_events());
        assert_eq!(Live::of(&rt), Live::default(), "episode {seed}, step {}: a leak", world.steps);
    }
    let stats = rt.stats();
    assert_eq!(folded.differs_from(&stats), None, "episode {seed}");
    assert_eq!(stats.live_recordings, rt.tree().recordings.len(), "episode {seed}");
    let made = stats.warmups + stats.recordings + stats.replays + stats.fallbacks;
    assert_eq!(made, world.segments, "episode {seed}: each segment call is one thing: {stats:?}");
    assert!(world.kept.len() as u64 > world.steps / 2);
    counts(&stats, &world)
}

#[test]
fn random_walks() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let steps = number("GRAPHABLE_WALK_STEPS").unwrap_or(STEPS);
    let from = number("GRAPHABLE_WALK_FROM").unwrap_or(0);
    let (next, sums) = (AtomicU64::new(0), Mutex::new(BTreeMap::new()));
    let episodes = steps.div_ceil(EPISODE);
    // The last test to begin, and the longest one: it takes all cores.
    let walk = || {
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && at < episodes
        {
            let counts = episode(from + at, EPISODE.min(steps - at * EPISODE));
            let mut sums = sums.lock().unwrap();
            counts.iter().for_each(|(what, count)| *sums.entry(*what).or_default() += count);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, Into::into) {
            scope.spawn(walk);
        }
    });
    let sums: BTreeMap<&str, u64> = sums.into_inner().unwrap();
    println!("{episodes} runtimes, without a mismatch: {sums:?}");
    for (what, count) in sums {
        // A walk that no longer reaches a rule of the tree would pass in silence.
        assert!(steps < STEPS || count > 50, "only {count} {what}");
    }
}

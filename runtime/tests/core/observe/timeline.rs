//! The spans of a timeline: what they are named, how they nest, and what they say.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex},
};

use graphable::{Mode, ops};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::support::*;

/// A span: how deep it was entered, its name, its fields.
#[derive(Debug, Default)]
struct Seen {
    depth: usize,
    name: &'static str,
    fields: Vec<(&'static str, String)>,
}

#[derive(Debug, Default)]
struct Spans {
    seen: Vec<Seen>,
    open: Vec<u64>,
}

/// Keeps every span of the timeline, and sees that the innermost is left first.
#[derive(Clone, Default)]
struct Keeper(Arc<Mutex<Spans>>);

struct Fields<'s>(&'s mut Vec<(&'static str, String)>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let value = format!("{value:?}").trim_matches('"').to_owned();
        // The last word counts.
        self.0.retain(|(name, _)| *name != field.name());
        self.0.push((field.name(), value));
    }
}

impl Subscriber for Keeper {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        of.is_span() && of.target() == "graphable::timeline"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut spans = self.0.lock().unwrap();
        let mut seen = Seen { name: span.metadata().name(), ..Seen::default() };
        span.record(&mut Fields(&mut seen.fields));
        spans.seen.push(seen);
        Id::from_u64(spans.seen.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let seen = &mut self.0.lock().unwrap().seen[span.into_u64() as usize - 1];
        values.record(&mut Fields(&mut seen.fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        let mut spans = self.0.lock().unwrap();
        let depth = spans.open.len();
        spans.seen[span.into_u64() as usize - 1].depth = depth;
        spans.open.push(span.into_u64());
    }

    fn exit(&self, span: &Id) {
        assert_eq!(self.0.lock().unwrap().open.pop(), Some(span.into_u64()), "the innermost ends first");
    }
}

impl Keeper {
    /// `depth name, its decision or what it is of`, in the order of the beginnings.
    fn take(&self) -> Vec<String> {
        let mut spans = self.0.lock().unwrap();
        assert!(spans.open.is_empty(), "all have ended: {spans:?}");
        let line = |seen: Seen| {
            let of = |name| seen.fields.iter().find(|(n, _)| *n == name).map(|(_, v)| v.as_str());
            let place = of("segment").or(of("boundary")).and_then(|s| s.split('`').nth(1));
            let what = [of("function"), of("mode"), place, of("decision")];
            let what: Vec<&str> = what.into_iter().flatten().collect();
            format!("{} {} {}", seen.depth, seen.name, what.join(" ")).trim_end().to_owned()
        };
        std::mem::take(&mut spans.seen).into_iter().map(line).collect()
    }
}

#[test]
fn every_decision_is_a_span() {
    let keeper = Keeper::default();
    let mut rt = runtime();
    let graph = Spec::inputs(vec![host("x", &[Dim::Const(2)])]).with(|o| o.audit_every(3)).build(&mut rt);
    let plain = vector(&mut rt, Mode::None);
    let mut call = |graph: &Graph| {
        several_subscribers();
        tracing::subscriber::with_default(keeper.clone(), || {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[x()], (), |cx, a| {
                let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
                let e = eager!("e", cx, |_e| ops::scale(&h, 3.0));
                seg!("b", cx, (&e,), |k| ops::neg(k.0))
            });
            assert_eq!(step.read(&y.unwrap()).unwrap(), [-6.0, -12.0]);
        });
        keeper.take()
    };
    let spans = |mode: &str, decision: &str| {
        [
            "0 step".to_owned(),
            format!("1 call test {mode}"),
            format!("2 segment a {decision}"),
            "2 eager e".to_owned(),
            format!("2 segment b {decision}"),
        ]
    };
    for decision in ["warm-up", "record", "replay", "audit", "replay"] {
        assert_eq!(call(&graph), spans("piecewise", decision));
    }
    assert_eq!(call(&plain), spans("none", "no graph"));
}

#[test]
fn what_fails_and_what_panics_ends_its_spans() {
    let keeper = Keeper::default();
    let (mut rt, plan) = faulty();
    let graph = vector(&mut rt, Mode::Piecewise);
    let call = |rt: &mut graphable::Runtime, panics: bool| {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            several_subscribers();
            tracing::subscriber::with_default(keeper.clone(), || {
                let step = rt.step()?;
                let y = graph.call(&step, &[x()], (), |cx, a| {
                    let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
                    assert!(!panics, "on purpose");
                    Ok(h)
                })?;
                step.read(&y)
            })
        }));
        (caught.map_err(drop).map(|done| done.is_ok()), keeper.take())
    };
    for _ in 0..3 {
        assert_eq!(call(&mut rt, false).0, Ok(true));
    }
    plan.arm(Some(graphable::backend::faulty::FaultCall::Replay), 0, false);
    let segment =
        |decision: &str| ["0 step".into(), "1 call test piecewise".into(), format!("2 segment a {decision}")];
    assert_eq!(call(&mut rt, false), (Ok(false), segment("failed").to_vec()));
    assert_eq!(call(&mut rt, true), (Err(()), segment("replay").to_vec()));
    assert_eq!(call(&mut rt, false), (Ok(true), segment("replay").to_vec()));
}

/// A segment whose captures were given up ran without a graph.
#[test]
fn a_capture_that_is_given_up_is_a_fallback() {
    let keeper = Keeper::default();
    let (mut rt, plan) = faulty();
    let graph = vector(&mut rt, Mode::Piecewise);
    let mut call = || {
        several_subscribers();
        tracing::subscriber::with_default(keeper.clone(), || {
            let step = rt.step().unwrap();
            let y = graph
                .call(&step, &[x()], (), |cx, a| seg!("a", cx, (&a.t[0],), |k| ops::scale(k.0, 2.0)))
                .unwrap();
            step.read(&y).unwrap();
        });
        keeper.take().pop().unwrap()
    };
    assert_eq!(call(), "2 segment a warm-up");
    plan.invalidate_captures([Some(0); 9]);
    assert_eq!(call(), "2 segment a fallback", "nothing was recorded");
}

/// Counts what the device's row of the timeline has.
#[derive(Clone, Default)]
struct Slices(Arc<Mutex<usize>>);

impl Subscriber for Slices {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        of.target() == "graphable::timeline"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        *self.0.lock().unwrap() += 1;
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A step of any length holds a bounded number of slices; at the end none is missing.
#[test]
fn slices_are_told_within_a_long_step() {
    const CALLS: usize = 6000;
    let slices = Slices::default();
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    several_subscribers();
    tracing::subscriber::with_default(slices.clone(), || {
        let step = rt.step().unwrap();
        for _ in 0..CALLS {
            let y = graph.call(&step, &[x()], (), |cx, a| seg!("a", cx, (&a.t[0],), |k| ops::neg(k.0)));
            assert_eq!(step.read(&y.unwrap()).unwrap(), [-1.0, -2.0]);
        }
        let told = *slices.0.lock().unwrap();
        assert!(told + 4096 >= CALLS && told < CALLS, "{told} told in the step");
        drop(step);
        rt.synchronize().unwrap();
        rt.step().unwrap();
    });
    assert_eq!(*slices.0.lock().unwrap(), CALLS);
}

/// The targets of the events that are no part of the timeline.
#[derive(Clone, Default)]
struct Targets(Arc<Mutex<BTreeSet<String>>>);

impl Subscriber for Targets {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        of.is_event() && of.target().starts_with("graphable") && of.target() != "graphable::timeline"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.0.lock().unwrap().insert(event.metadata().target().to_owned());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Filters of subscribers name it, whatever module an event comes from.
#[test]
fn events_have_one_target() {
    let targets = Targets::default();
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    several_subscribers();
    tracing::subscriber::with_default(targets.clone(), || {
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let y = graph
                .call(&step, &[x()], (), |cx, a| seg!("a", cx, (&a.t[0],), |k| ops::scale(k.0, 2.0)))
                .unwrap();
            step.read(&y).unwrap();
        }
    });
    let stats = rt.stats();
    assert_eq!((stats.warmups, stats.recordings, stats.replays), (1, 1, 1));
    assert_eq!(*targets.0.lock().unwrap(), BTreeSet::from(["graphable::log".to_owned()]));
}

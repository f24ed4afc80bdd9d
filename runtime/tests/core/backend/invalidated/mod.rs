//! Captures that another thread invalidates are made again from what was put into them: no body runs twice for that.

mod errors;
mod faults;
mod interactions;

use std::cell::Cell;

use graphable::{
    Error, Event, FallbackReason, Mode, Passes, Result, Runtime, Schedule, State, backend::faulty::FaultPlan,
    join, ops,
};

use crate::support::*;

thread_local! {
    /// How often the body of the program ran.
    static BODIES: Cell<u32> = const { Cell::new(0) };
}

/// A fork, a state that is written, memory that is freed and used again.
fn program<'s>(cx: Piecewise<'s>, x: &T<'s>, total: &State<f32>) -> Result<T<'s>> {
    let (y,) = seg!("a", cx, (x, total), |k| {
        BODIES.set(BODIES.get() + 1);
        let (a, b) = join(k.0.scope(), || ops::neg(&ops::scale(k.0, 3.0)?), || ops::scale(k.0, 5.0))?;
        let sum = ops::add(&a, &b)?;
        drop((a, b));
        let before = ops::load(k.0.scope(), k.1)?;
        ops::store(k.1, &ops::add(&before, &sum)?)?;
        drop(before);
        Ok((ops::scale(&sum, 0.5)?,))
    })?;
    Ok(y)
}

struct Case {
    rt: Checked,
    plan: std::sync::Arc<FaultPlan>,
    graph: Graph,
    total: State<f32>,
    calls: u32,
}

impl Case {
    fn new(mode: Mode, deny_fallback: bool) -> Self {
        let (mut rt, plan) = faulty();
        // The number of commands is that of the body's operations.
        rt.set_passes(Passes::none());
        let spec = Spec::inputs(vec![host("x", &[Dim::Const(2)])]).mode(mode);
        let graph = spec.with(|o| o.deny_fallback(deny_fallback)).build(&mut rt);
        let total = State::new(&rt, &[2], &[0.0f32; 2]).unwrap();
        BODIES.set(0);
        Self { rt, plan, graph, total, calls: 0 }
    }

    /// One call, and what the state is after it.
    fn call(&mut self) -> Result<(Vec<f32>, Vec<f32>)> {
        let step = self.rt.step()?;
        let total = &self.total;
        let x = self.calls as f32;
        let y = self
            .graph
            .call(&step, &[In::Host((&[x, 1.0]).into())], total, |cx, a| program(cx, &a.t[0], total));
        let y = step.read(&y?)?;
        let total = ops::load(step.scope(), total)?;
        Ok((y, step.read(&total)?))
    }

    /// A call that works, whatever was invalidated.
    fn check(&mut self) {
        let (y, total) = self.call().unwrap();
        self.calls += 1;
        let x = (self.calls - 1) as f32;
        assert_eq!(y, [x, 1.0], "call {}", self.calls);
        let sum: u32 = (0..self.calls).sum();
        assert_eq!(total, [2.0 * sum as f32, 2.0 * self.calls as f32], "call {}", self.calls);
    }
}

#[test]
fn a_capture_is_made_again_wherever_it_is_invalidated() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let mut most = 0;
        for after in 0..40 {
            let mut case = Case::new(mode, true);
            case.check();
            case.plan.invalidate_captures([Some(after)]);
            case.check();
            let stats = case.rt.stats();
            assert_eq!((stats.recordings, stats.fallbacks, BODIES.get()), (1, 0, 2), "{mode}, after {after}");
            case.check();
            case.check();
            assert_eq!((case.rt.stats().recordings, BODIES.get()), (1, 2), "{mode}, after {after}");
            if stats.captures_invalidated == 0 {
                break;
            }
            assert_eq!((stats.captures_invalidated, stats.aborted), (1, 1), "{mode}, after {after}");
            most = after;
        }
        assert!((8..39).contains(&most), "{mode}: the capture took {most} things");
    }
}

#[test]
fn again_and_again_up_to_a_limit() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let mut case = Case::new(mode, false);
        case.check();
        case.plan.invalidate_captures([Some(2), Some(0), None, Some(5), Some(3), None, None, Some(4)]);
        case.check();
        let stats = case.rt.stats();
        assert_eq!((stats.captures_invalidated, stats.recordings, stats.fallbacks), (8, 1, 0), "{mode}");
        case.check();
        assert_eq!(BODIES.get(), 2);
    }
}

/// Then what was put into it runs as it is, wherever that is.
#[test]
fn whoever_is_always_disturbed_gets_no_graph_this_time() {
    for mode in [Mode::Piecewise, Mode::Full] {
        for last in std::iter::once(None).chain((0..12).map(Some)) {
            let mut case = Case::new(mode, false);
            case.check();
            case.rt.take_events();
            // Wherever it begins; where nothing was in it yet, too.
            let first = if last == Some(3) { None } else { Some(1) };
            case.plan.invalidate_captures([first; 8].into_iter().chain([last]));
            case.check();
            let stats = case.rt.stats();
            assert_eq!(
                (stats.captures_invalidated, stats.recordings, stats.fallbacks),
                (9, 0, 1),
                "{mode}, last {last:?}"
            );
            let events = case.rt.take_events();
            let fell = |e: &Event| {
                matches!(e, Event::FellBack { reason: FallbackReason::CaptureInvalidated { .. }, .. })
            };
            assert!(events.iter().any(fell), "{events:?}");
            assert_eq!(BODIES.get(), 2, "{mode}, last {last:?}");
            // The next one records.
            case.check();
            case.check();
            assert_eq!((case.rt.stats().recordings, BODIES.get()), (1, 3), "{mode}, last {last:?}");
        }
    }
}

#[test]
fn it_can_be_an_error_instead() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let mut case = Case::new(mode, true);
        case.check();
        case.plan.invalidate_captures([Some(1); 9]);
        let refused = case.call();
        let Err(Error::FallbackForbidden { reason: FallbackReason::CaptureInvalidated { .. }, .. }) = refused
        else {
            panic!("{mode}: {refused:?}")
        };
        // Nothing of it ran.
        case.check();
        case.check();
        assert_eq!((case.rt.stats().recordings, case.rt.stats().fallbacks), (1, 0));
    }
}

/// A live-in that is copied is read from the recording's own buffer, also without a recording.
#[test]
fn copied_live_ins_are_there() {
    // There, what is placed after another size is at the same place.
    if crate::device::skipped_with_gaps("copied_live_ins_are_there") {
        return;
    }
    for invalidations in [vec![], vec![Some(1), Some(99)], vec![Some(1); 9]] {
        let (mut rt, plan) = faulty();
        let graph = Spec::inputs(vec![]).mode(Mode::Piecewise).build(&mut rt);
        let call = |rt: &mut Runtime, n: usize| {
            let step = rt.step().unwrap();
            // Something before it: each time elsewhere.
            let before = step.tensor(&[64 * n + 1], &vec![0.0; 64 * n + 1]).unwrap();
            let x = step.tensor(&[2], &[n as f32, 1.0]).unwrap();
            let y = graph
                .call(&step, &[], (), |cx, _| seg!("moving", cx, (&x,), |k| ops::scale(&ops::neg(k.0)?, 2.0)))
                .unwrap();
            assert_eq!(step.read(&y).unwrap(), [-2.0 * n as f32, -2.0]);
            drop(before);
        };
        let mut demoted = false;
        for n in 0..200 {
            let log = list(&rt.take_events());
            if !demoted && log.iter().any(|e| e.starts_with("demoted")) {
                demoted = true;
            }
            call(&mut rt, n);
            if n == 1 {
                // From the first recording on, also that of the demoted one.
                plan.invalidate_captures(std::iter::repeat_n(invalidations.clone(), 20).flatten());
            }
        }
        assert!(demoted, "{:?}", rt.stats());
        let stats = rt.stats();
        assert!(stats.copies > 100, "{stats:?}");
        assert_eq!(stats.captures_invalidated > 0, !invalidations.is_empty());
        assert_eq!(
            stats
                .fallback_reasons
                .iter()
                .any(|(r, _)| matches!(r, FallbackReason::CaptureInvalidated { .. })),
            invalidations.len() == 9
        );
    }
}

/// State is as it was after `capture_all`, also where what was put into a capture ran instead.
#[test]
fn state_is_put_back_after_a_capture_that_was_given_up() {
    fn counting<'s>(cx: Piecewise<'s>, x: &T<'s>, count: &State<f32>) -> Result<T<'s>> {
        seg!("a", cx, (x, count), |k| {
            let one = ops::full(k.0.scope(), &[1], 1.0f32)?;
            ops::store(k.1, &ops::add(&ops::load(k.0.scope(), k.1)?, &one)?)?;
            ops::neg(k.0)
        })
    }
    for (mode, invalidations) in
        [Mode::Piecewise, Mode::Full].into_iter().flat_map(|m| [0, 1, 9].map(|n| (m, n)))
    {
        let (mut rt, plan) = faulty();
        let mut spec = Spec::inputs(vec![host("x", &[Dim::Symbol(0)])]);
        spec.symbols = &["B"];
        let graph = spec.mode(mode).with(|o| o.bucket("B", Schedule::new([2]))).build(&mut rt);
        let count = State::new(&rt, &[1], &[3.0f32]).unwrap();
        let step = rt.step().unwrap();
        graph.call(&step, &[x()], &count, |cx, a| counting(cx, &a.t[0], &count)).unwrap();
        drop(step);
        // It is warm: the first that writes is a recording.
        plan.invalidate_captures(std::iter::repeat_n(Some(6), invalidations));
        let captured = graph.capture_all(
            &mut rt,
            |step, synthetic| {
                let x = synthetic.host::<f32>(0)?;
                let ins = [In::Host((&x).into())];
                graph.call(step, &ins, &count, |cx, a| counting(cx, &a.t[0], &count)).map(drop)
            },
            |_| {},
        );
        captured.unwrap();
        assert_eq!(rt.stats().captures_invalidated, invalidations as u64);
        let step = rt.step().unwrap();
        assert_eq!(
            step.item(&ops::load(step.scope(), &count).unwrap()).unwrap(),
            4.0,
            "{mode}, {invalidations}"
        );
    }
}

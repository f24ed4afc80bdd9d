//! Invalidations together with other features: a pool that cannot grow, empty segments, audits, kept values, copied live-ins,
//! refusals, hooks, host code that swallows errors.

use std::sync::Arc;

use graphable::{Event, FallbackReason, Mode, Result, State, backend::faulty::FaultCall, ops};

use super::faults::{Case, body, caused_by_the_plan};
use crate::support::*;

/// The pool grows, and cannot, after the invalidation.
#[test]
fn the_pool_cannot_grow_after_an_invalidation() {
    fn large<'s>(cx: Piecewise<'s>, x: &T<'s>) -> Result<T<'s>> {
        seg!("l", cx, (x,), |k| {
            let y = ops::neg(k.0)?;
            // The host code's choice: a body must not do that, and it is found out.
            let big = ops::full(k.0.scope(), &[1 << 20], 1.0f32)?;
            let z = ops::scale(&y, 2.0)?;
            drop(big);
            Ok(z)
        })
    }
    for mode in [Mode::Piecewise, Mode::Full] {
        let (mut invalidated, mut hits) = (0, 0);
        for nth in 0..6 {
            let (mut rt, plan) = faulty();
            let graph = vector(&mut rt, mode);
            let call = |rt: &mut Checked| -> Result<Vec<f32>> {
                let step = rt.step()?;
                let y = graph.call(&step, &[x()], (), |cx, a| large(cx, &a.t[0]))?;
                step.read(&y)
            };
            assert_eq!(call(&mut rt).unwrap(), [-2.0, -4.0]);
            rt.trim().unwrap();
            plan.invalidate_captures([Some(0)]);
            plan.run_out_of_memory(FaultCall::Commit, nth);
            let r = call(&mut rt);
            hits += u32::from(!plan.disarm());
            invalidated += rt.stats().captures_invalidated;
            if let Err(e) = &r {
                assert!(caused_by_the_plan(e), "{e}");
            }
            rt.check_memory().unwrap();
            for _ in 0..3 {
                assert_eq!(call(&mut rt).unwrap(), [-2.0, -4.0], "{mode} {nth}: after {r:?}");
            }
            still_usable(&mut rt);
        }
        assert!(
            hits >= 1 && invalidated >= 1,
            "{mode}: {hits} faults met, {invalidated} captures invalidated"
        );
    }
}

/// A segment that launches nothing.
#[test]
fn nothing_in_it() {
    fn empty<'s>(cx: Piecewise<'s>, x: &T<'s>) -> Result<T<'s>> {
        let (y,) = seg!("e", cx, (x,), |k| Ok((k.0.clone(),)))?;
        seg!("f", cx, (&y,), |k| ops::neg(k.0))
    }
    for mode in [Mode::Piecewise, Mode::Full] {
        for times in [0, 1, 8, 9, 18, 20] {
            for after in [None, Some(0)] {
                let (mut rt, plan) = faulty();
                let graph = vector(&mut rt, mode);
                for i in 0..6 {
                    if i == 1 {
                        plan.invalidate_captures(vec![after; times]);
                    }
                    let step = rt.step().unwrap();
                    let data = [i as f32, 1.0];
                    let y = graph
                        .call(&step, &[In::Host((&data).into())], (), |cx, a| empty(cx, &a.t[0]))
                        .unwrap();
                    assert_eq!(step.read(&y).unwrap(), [-(i as f32), -1.0], "{mode} {times} {after:?} {i}");
                }
                assert_eq!(rt.stats().captures_invalidated, times as u64);
                still_usable(&mut rt);
            }
        }
    }
}

/// A live-in moved once; captures are given up for many calls. It does not keep moving.
#[test]
fn abandoned_captures_do_not_count_as_moves() {
    if crate::device::skipped_with_gaps("abandoned_captures_do_not_count_as_moves") {
        return;
    }
    let (mut rt, plan) = faulty();
    let graph = Spec::inputs(vec![]).mode(Mode::Piecewise).build(&mut rt);
    let call = |rt: &mut Checked, before: usize| {
        let step = rt.step().unwrap();
        let pad = step.tensor(&[before], &vec![0.0; before]).unwrap();
        let x = step.tensor(&[2], &X).unwrap();
        let y = graph
            .call(&step, &[], (), |cx, _| seg!("moved", cx, (&x,), |k| ops::scale(&ops::neg(k.0)?, 2.0)))
            .unwrap();
        assert_eq!(step.read(&y).unwrap(), [-2.0, -4.0]);
        drop(pad);
    };
    for _ in 0..3 {
        call(&mut rt, 1);
    }
    plan.invalidate_captures([Some(0); 9 * 40]);
    for _ in 0..40 {
        call(&mut rt, 1000);
    }
    let events = rt.take_events();
    let demoted: Vec<_> = events.iter().filter(|e| matches!(e, Event::SwitchedToCopy { .. })).collect();
    let fell: Vec<_> = events
        .iter()
        .filter(|e| matches!(e, Event::FellBack { reason, .. } if !matches!(reason, FallbackReason::CaptureInvalidated { .. })))
        .collect();
    assert!(demoted.is_empty() && fell.is_empty(), "it lies where it lay before: {demoted:?} {fell:?}");
}

/// Audited replays after a give-up, results kept, capture_all dry.
#[test]
fn audits_and_kept_values_after_giving_up() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let (mut rt, plan) = faulty();
        let graph = Spec::inputs(vec![host("x", &[Dim::Const(2)])])
            .mode(mode)
            .with(|o| o.audit_every(1))
            .build(&mut rt);
        let total = State::new(&rt, &[2], &[0.0f32; 2]).unwrap();
        let mut kept = Vec::new();
        for i in 0..12u32 {
            if i % 3 == 1 {
                plan.invalidate_captures([Some(2); 9]);
            }
            if i == 6 {
                rt.reset().unwrap();
            }
            let step = rt.step().unwrap();
            let data = [i as f32, 1.0];
            let y = graph
                .call(&step, &[In::Host((&data).into())], &total, |cx, a| body(cx, &a.t[0], &total))
                .unwrap();
            assert_eq!(step.read(&y).unwrap(), [10.0 * i as f32, 10.0], "{mode} {i}");
            kept.push((i, step.keep(&y).unwrap()));
            let t = ops::load(step.scope(), &total).unwrap();
            assert_eq!(step.read(&t).unwrap(), [i as f32 + 1.0; 2], "{mode} {i}");
            for (j, k) in &kept {
                let k = k.view(step.scope()).unwrap();
                assert_eq!(step.read(&k).unwrap(), [10.0 * *j as f32, 10.0], "{mode} {i} {j}");
            }
        }
        assert!(rt.stats().captures_invalidated >= 9, "{:?}", rt.stats());
        drop(kept);
    }
}

const CALLS: [FaultCall; 11] = [
    FaultCall::Alloc,
    FaultCall::Commit,
    FaultCall::Workspace,
    FaultCall::Launch,
    FaultCall::Copy,
    FaultCall::HostWrite,
    FaultCall::BeginCapture,
    FaultCall::EndCapture,
    FaultCall::Instantiate,
    FaultCall::Replay,
    FaultCall::Poison,
];

/// The state is put back after a `capture_all` that failed anywhere, also in what ran instead of a capture.
#[test]
fn state_is_put_back_after_a_capture_all_that_failed() {
    fn counting<'s>(cx: Piecewise<'s>, x: &T<'s>, count: &State<f32>) -> Result<T<'s>> {
        seg!("a", cx, (x, count), |k| {
            let one = ops::full(k.0.scope(), &[1], 1.0f32)?;
            ops::store(k.1, &ops::add(&ops::load(k.0.scope(), k.1)?, &one)?)?;
            ops::store(k.1, &ops::add(&ops::load(k.0.scope(), k.1)?, &one)?)?;
            ops::neg(k.0)
        })
    }
    let mut wrong = Vec::new();
    for mode in [Mode::Piecewise, Mode::Full] {
        for times in [1, 9] {
            for call in CALLS {
                // The last copy puts back; when that fails the caller is told.
                let mut last: Option<String> = None;
                for nth in 0.. {
                    let (mut rt, plan) = faulty();
                    let mut spec = Spec::inputs(vec![host("x", &[Dim::Symbol(0)])]);
                    spec.symbols = &["B"];
                    let graph =
                        spec.mode(mode).with(|o| o.bucket("B", graphable::Schedule::new([2]))).build(&mut rt);
                    let count = State::new(&rt, &[1], &[3.0f32]).unwrap();
                    {
                        let step = rt.step().unwrap();
                        graph.call(&step, &[x()], &count, |cx, a| counting(cx, &a.t[0], &count)).unwrap();
                    }
                    plan.invalidate_captures(vec![Some(4); times]);
                    plan.arm(Some(call), nth, false);
                    let captured = graph.capture_all(
                        &mut rt,
                        |step, synthetic| {
                            let x = synthetic.host::<f32>(0)?;
                            let ins = [In::Host((&x).into())];
                            graph.call(step, &ins, &count, |cx, a| counting(cx, &a.t[0], &count)).map(drop)
                        },
                        |_| {},
                    );
                    let hit = !plan.disarm();
                    plan.invalidate_captures([Some(9999); 20]);
                    let what = format!("{mode} {times} {call:?} {nth}: {captured:?}");
                    let told = captured.is_err();
                    let late = rt.step().map(drop);
                    if hit && !told && late.is_ok() {
                        wrong.push(format!("{what}: swallowed"));
                    }
                    let now = rt.step().and_then(|s| s.item(&ops::load(s.scope(), &count)?));
                    if hit {
                        wrong.extend(last.take());
                    }
                    if !matches!(now, Ok(5.0)) && late.is_ok() {
                        last = Some(format!("{what}: the state is {now:?}"));
                    }
                    if let Err(e) = rt.check_memory() {
                        wrong.push(format!("{what}: {e}"));
                    }
                    still_usable(&mut rt);
                    if !hit {
                        break;
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Copied live-ins, with faults after the invalidation: values are right, and no buffer is left.
#[test]
fn copied_live_ins_with_faults() {
    if crate::device::skipped_with_gaps("copied_live_ins_with_faults") {
        return;
    }
    let mut wrong = Vec::new();
    let (mut copies, mut invalidated) = (0, 0);
    let demoted_by = demotion();
    for times in [1, 9] {
        for call in CALLS {
            for nth in 0..24 {
                let (mut rt, plan) = faulty();
                let graph = Spec::inputs(vec![]).mode(Mode::Piecewise).build(&mut rt);
                let other = vector(&mut rt, Mode::Piecewise);
                let run = |rt: &mut Checked, n: usize| -> Result<Vec<f32>> {
                    let step = rt.step()?;
                    let pad = step.tensor(&[64 * n + 1], &vec![0.0; 64 * n + 1])?;
                    let x = step.tensor(&[2], &[n as f32, 1.0])?;
                    let y = graph.call(&step, &[], (), |cx, _| {
                        seg!("moving", cx, (&x,), |k| ops::scale(&ops::neg(k.0)?, 2.0))
                    });
                    // In the same step: what the failed one left.
                    let z = other.call(&step, &[x_of(n)], (), |cx, a| {
                        seg!("other", cx, (&a.t[0],), |k| ops::scale(&ops::neg(k.0)?, 3.0))
                    });
                    let z = step.read(&z?)?;
                    assert_eq!(z, [-3.0 * (n % 4) as f32, -3.0], "the other call");
                    drop(pad);
                    step.read(&y?)
                };
                let mut n = 0;
                while n + 1 < demoted_by {
                    run(&mut rt, n).unwrap();
                    n += 1;
                }
                rt.take_events();
                plan.invalidate_captures(vec![Some(1); times]);
                let before = plan.live_memory().0;
                plan.arm(Some(call), nth, false);
                for i in 0..8 {
                    let y = run(&mut rt, n);
                    n += 1;
                    match y {
                        Ok(y) if y == [-2.0 * (n - 1) as f32, -2.0] => {}
                        Err(e) if caused_by_the_plan(&e) => {}
                        y => wrong.push(format!("{times} {call:?} {nth}, call {i}: {y:?}")),
                    }
                }
                let log = list(&rt.take_events());
                assert!(log.iter().any(|e| e.starts_with("demoted")), "{times} {call:?} {nth}: {log:?}");
                invalidated = invalidated.max(rt.stats().captures_invalidated);
                plan.disarm();
                if let Err(e) = rt.step().map(drop).and_then(|()| rt.check_memory()) {
                    wrong.push(format!("{times} {call:?} {nth}: {e}"));
                }
                copies = copies.max(rt.stats().copies);
                rt.reset().unwrap();
                for _ in 0..100 {
                    let step = rt.step().unwrap();
                    drop(step.tensor(&[1], &[0.0f32]).unwrap());
                    step.synchronize().unwrap();
                    if plan.live_memory().0 <= before {
                        break;
                    }
                }
                if plan.live_memory().0 > before {
                    wrong.push(format!("{times} {call:?} {nth}: {:?} is left", plan.live_memory()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(copies > 3 && invalidated == 9, "{copies} {invalidated}");
}

/// How many calls it takes.
fn demotion() -> usize {
    let (mut rt, _) = faulty();
    let graph = Spec::inputs(vec![]).mode(Mode::Piecewise).build(&mut rt);
    let other = vector(&mut rt, Mode::Piecewise);
    for n in 0..100 {
        let step = rt.step().unwrap();
        let pad = step.tensor(&[64 * n + 1], &vec![0.0; 64 * n + 1]).unwrap();
        let x = step.tensor(&[2], &[n as f32, 1.0]).unwrap();
        graph
            .call(&step, &[], (), |cx, _| seg!("moving", cx, (&x,), |k| ops::scale(&ops::neg(k.0)?, 2.0)))
            .unwrap();
        other
            .call(&step, &[x_of(n)], (), |cx, a| {
                seg!("other", cx, (&a.t[0],), |k| ops::scale(&ops::neg(k.0)?, 3.0))
            })
            .unwrap();
        drop((pad, x));
        if list(&step.take_events()).iter().any(|e| e.starts_with("demoted")) {
            return n + 1;
        }
    }
    panic!("it never is");
}

fn x_of(n: usize) -> In<'static, 'static> {
    const ALL: [[f32; 2]; 4] = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]];
    In::Host((&ALL[n % 4]).into())
}

/// After a refusal another call of the same step is right.
#[test]
fn another_call_in_the_step_of_a_refusal() {
    for mode in [Mode::Piecewise, Mode::Full] {
        for times in [9, 18] {
            let (mut rt, plan) = faulty();
            let spec = || Spec::inputs(vec![host("x", &[Dim::Const(2)])]).mode(mode);
            let first = spec().with(|o| o.deny_fallback(true)).build(&mut rt);
            let second = spec().build(&mut rt);
            let total = State::new(&rt, &[2], &[0.0f32; 2]).unwrap();
            for i in 0..6usize {
                if i == 1 {
                    plan.invalidate_captures(vec![Some(2); times]);
                }
                let step = rt.step().unwrap();
                let y = first.call(&step, &[x_of(i)], &total, |cx, a| body(cx, &a.t[0], &total));
                let z = second
                    .call(&step, &[x_of(i + 1)], &total, |cx, a| {
                        seg!("z", cx, (&a.t[0],), |k| ops::neg(&ops::neg(&ops::scale(k.0, 7.0)?)?))
                    })
                    .unwrap();
                assert_eq!(step.read(&z).unwrap(), [7.0 * ((i + 1) % 4) as f32, 7.0], "{mode} {times} {i}");
                if let Ok(y) = y {
                    assert_eq!(step.read(&y).unwrap(), [10.0 * (i % 4) as f32, 10.0]);
                }
            }
            assert!(rt.stats().captures_invalidated as usize == times, "{mode} {times}: {:?}", rt.stats());
            still_usable(&mut rt);
        }
    }
}

/// Each recording is heard of once, however often its capture was made; one that never ran has its end.
#[test]
fn hooks_hear_of_one_recording() {
    use std::sync::Mutex;
    for shares in [false, true] {
        for (times, fails) in [(1, false), (8, false), (9, false), (1, true), (8, true)] {
            let mut case = Case::new(Mode::Piecewise, shares);
            let log: Arc<Mutex<Vec<String>>> = Arc::default();
            let to = Arc::clone(&log);
            case.rt.on_lifecycle(move |e| {
                let what = format!("{:?}", e.what);
                to.lock().unwrap().push(what.split([' ', '{']).next().unwrap_or_default().to_owned());
            });
            case.call().unwrap();
            case.plan.invalidate_captures(vec![Some(3); times]);
            if fails {
                case.plan.arm(Some(FaultCall::Replay), 0, false);
            }
            assert_eq!(case.call().is_err(), fails);
            let heard = std::mem::take(&mut *log.lock().unwrap());
            let mut expected = vec!["Recorded", "Instantiated", "Replayed"];
            match (times, fails) {
                (9, _) => expected.clear(),
                (_, true) => expected.push("Destroyed"),
                _ => {}
            }
            assert_eq!(heard, expected, "{shares} {times} {fails}");
            let stats = case.rt.stats();
            assert_eq!(
                (stats.captures_invalidated, stats.aborted),
                (times as u64, (times + usize::from(fails)) as u64)
            );
        }
    }
}

/// A driver that goes on after a segment that failed: the host's bytes are there for the next one.
#[test]
fn a_driver_that_swallows_a_segments_error() {
    let mut wrong = Vec::new();
    for deny_fallback in [true, false] {
        for times in [0, 1, 9] {
            for call in [
                None,
                Some(FaultCall::BeginCapture),
                Some(FaultCall::Launch),
                Some(FaultCall::HostWrite),
                Some(FaultCall::EndCapture),
                Some(FaultCall::Replay),
            ] {
                for nth in 0..30 {
                    let (mut rt, plan) = faulty();
                    let ins = vec![host("x", &[Dim::Const(2)]), host("z", &[Dim::Const(2)])];
                    let graph = Spec::inputs(ins)
                        .mode(Mode::Piecewise)
                        .with(|o| o.deny_fallback(deny_fallback))
                        .build(&mut rt);
                    let mut failed = 0;
                    for i in 0..6usize {
                        if i == 2 {
                            plan.invalidate_captures(vec![Some(1); times]);
                            if let Some(call) = call {
                                plan.arm(Some(call), nth, false);
                            }
                        }
                        let Ok(step) = rt.step() else { continue };
                        // `b` is recorded before `a`.
                        let z = graph.call(&step, &[x_of(i), x_of(i + 1)], (), |cx, a| {
                            if i > 0 {
                                let y = seg!("a", cx, (&a.t[0],), |k| ops::scale(&ops::neg(k.0)?, 2.0));
                                failed += usize::from(y.is_err());
                            }
                            seg!("b", cx, (&a.t[1],), |k| ops::scale(&ops::neg(k.0)?, -1.0))
                        });
                        if let Ok(z) = z.and_then(|z| step.read(&z))
                            && z != [((i + 1) % 4) as f32, 1.0]
                        {
                            wrong.push(format!(
                                "deny_fallback {deny_fallback} {times} {call:?} {nth}, call {i}: {z:?}"
                            ));
                        }
                    }
                    let hit = !plan.disarm();
                    if call.is_none() && times == 9 && deny_fallback {
                        assert!(failed > 0, "{:?}", rt.stats());
                    }
                    let _ = rt.step();
                    plan.invalidate_captures([Some(9999); 20]);
                    still_usable(&mut rt);
                    if !hit || call.is_none() {
                        break;
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

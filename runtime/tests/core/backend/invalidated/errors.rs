//! Invalidated captures beside other trouble: errors that bodies return, swallow or panic with, faults, what `deny_fallback`
//! forbids.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use graphable::{
    Error, FallbackReason, Mode, Passes, Result, Schedule, State,
    backend::faulty::{FaultCall, FaultPlan},
    join, ops,
};

use crate::support::*;

thread_local! {
    /// What a body wrongly depends on.
    static VARIANT: Cell<u32> = const { Cell::new(0) };
}

const GRAPHS: [Mode; 2] = [Mode::Piecewise, Mode::Full];

fn is_invalidated<O: std::fmt::Debug>(r: &Result<O>) -> bool {
    matches!(r, Err(Error::FallbackForbidden { reason: FallbackReason::CaptureInvalidated { .. }, .. }))
}

struct Case {
    rt: Checked,
    plan: Arc<FaultPlan>,
    graph: Graph,
    total: State<f32>,
}

impl Case {
    fn new(mode: Mode, deny_fallback: bool) -> Self {
        let (mut rt, plan) = faulty();
        // The number of commands is that of the body's operations.
        rt.set_passes(Passes::none());
        let spec = Spec::inputs(vec![host("x", &[Dim::Const(2)])]).mode(mode);
        let graph = spec.with(|o| o.deny_fallback(deny_fallback)).build(&mut rt);
        let total = State::new(&rt, &[2], &[0.0f32; 2]).unwrap();
        VARIANT.set(0);
        Self { rt, plan, graph, total }
    }

    fn call(
        &mut self,
        body: impl for<'s> FnOnce(Piecewise<'s>, &T<'s>, &State<f32>) -> Result<T<'s>>,
    ) -> Result<Vec<f32>> {
        let step = self.rt.step()?;
        let total = &self.total;
        let y = self.graph.call(&step, &[x()], total, |cx, a| body(cx, &a.t[0], total))?;
        step.read(&y)
    }

    fn total(&mut self) -> Vec<f32> {
        let step = self.rt.step().unwrap();
        let total = ops::load(step.scope(), &self.total).unwrap();
        step.read(&total).unwrap()
    }
}

/// Forks, nested ones too, frees, and state.
fn forked<'s>(cx: Piecewise<'s>, x: &T<'s>, total: &State<f32>) -> Result<T<'s>> {
    seg!("a", cx, (x, total), |k| {
        let (a, (b, c)) = join(
            k.0.scope(),
            || ops::neg(&ops::scale(k.0, 3.0)?),
            || join(k.0.scope(), || ops::scale(k.0, 5.0), || ops::scale(&ops::neg(k.0)?, -1.0)),
        )?;
        let sum = ops::add(&ops::add(&a, &b)?, &c)?;
        drop((a, b, c));
        ops::store(k.1, &ops::add(&ops::load(k.0.scope(), k.1)?, &sum)?)?;
        ops::scale(&sum, 2.0)
    })
}

/// Inside forks, nested ones too, and where they open and close.
#[test]
fn given_up_at_the_same_place_each_time() {
    for mode in GRAPHS {
        for after in 0..40 {
            let mut case = Case::new(mode, false);
            case.call(forked).unwrap();
            // Nine times at the same place.
            case.plan.invalidate_captures([Some(after); 9]);
            let y = case.call(forked);
            assert!(y.is_ok(), "{mode}, after {after}: {y:?}");
            // -3 + 5 + 1
            assert_eq!(y.unwrap(), [6.0, 12.0], "{mode}, after {after}");
            assert_eq!(case.total(), [6.0, 12.0], "{mode}, after {after}");
            if case.rt.stats().captures_invalidated == 0 {
                assert!(after > 8, "{mode}: {after} places");
                break;
            }
        }
    }
}

/// Where `deny_fallback` forbids giving up, the caller hears of it by that error, and nothing of the call has run.
#[test]
fn an_error_instead_at_every_place() {
    let mut wrong = Vec::new();
    for mode in GRAPHS {
        for after in 0..40 {
            let mut case = Case::new(mode, true);
            case.call(forked).unwrap();
            let before = case.total();
            case.plan.invalidate_captures([Some(after); 9]);
            let y = case.call(forked);
            let stats = case.rt.stats();
            if stats.captures_invalidated == 0 {
                assert!(after > 8, "{mode}: {after} places");
                break;
            }
            if !is_invalidated(&y) {
                wrong.push(format!("{mode}, after {after}: {y:?}"));
            }
            if (stats.captures_invalidated, stats.aborted) != (9, 9) {
                wrong.push(format!(
                    "{mode}, after {after}: {} invalidated, {} aborted",
                    stats.captures_invalidated, stats.aborted
                ));
            }
            let now = case.total();
            if now != before {
                wrong.push(format!("{mode}, after {after}: the state was {before:?} and is {now:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Also where the body swallows errors.
#[test]
fn nothing_runs_after_a_recording_was_refused() {
    fn swallows<'s>(cx: Piecewise<'s>, x: &T<'s>, total: &State<f32>) -> Result<T<'s>> {
        seg!("a", cx, (x, total), |k| {
            let _ = ops::neg(k.0);
            let y = ops::scale(k.0, 2.0)?;
            ops::store(k.1, &y)?;
            Ok(y)
        })
    }
    for mode in GRAPHS {
        let mut case = Case::new(mode, true);
        case.call(swallows).unwrap();
        {
            let step = case.rt.step().unwrap();
            ops::store(&case.total, &step.tensor(&[2], &[7.0f32, 7.0]).unwrap()).unwrap();
        }
        case.plan.invalidate_captures([Some(0); 9]);
        let y = case.call(swallows);
        assert!(y.is_err(), "{mode}: {y:?}");
        assert_eq!(case.total(), [7.0, 7.0], "{mode}: the call failed with {y:?}");
    }
}

/// A pass whose captures were given up recorded nothing, and is not the last.
#[test]
fn capture_all_is_not_done_where_a_capture_was_given_up() {
    fn plain<'s>(cx: Piecewise<'s>, x: &T<'s>) -> Result<T<'s>> {
        seg!("a", cx, (x,), |k| ops::neg(k.0))
    }
    for mode in GRAPHS {
        let (mut rt, plan) = faulty();
        let mut spec = Spec::inputs(vec![host("x", &[Dim::Symbol(0)])]);
        spec.symbols = &["B"];
        let graph = spec.mode(mode).with(|o| o.bucket("B", Schedule::new([2]))).build(&mut rt);
        plan.invalidate_captures([Some(0); 9]);
        graph
            .capture_all(
                &mut rt,
                |step, synthetic| {
                    let x = synthetic.host::<f32>(0)?;
                    graph.call(step, &[In::Host((&x).into())], (), |cx, a| plain(cx, &a.t[0])).map(drop)
                },
                |_| {},
            )
            .unwrap();
        assert_eq!(rt.stats().captures_invalidated, 9);
        rt.close_capture();
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], (), |cx, a| plain(cx, &a.t[0]));
        assert!(y.is_ok(), "{mode}: {y:?}");
    }
}

/// A recording whose body swallowed an error is refused, also when it is given up.
#[test]
fn a_swallowed_error_before_giving_up() {
    fn body<'s>(cx: Piecewise<'s>, x: &T<'s>, _: &State<f32>) -> Result<T<'s>> {
        seg!("a", cx, (x,), |k| {
            let extra = if VARIANT.get() == 1 { ops::neg(k.0) } else { ops::scale(k.0, 1.0) };
            match extra {
                Ok(extra) => ops::scale(&extra, 2.0),
                Err(_) => ops::scale(k.0, 1000.0),
            }
        })
    }
    for mode in GRAPHS {
        for invalidated in [false, true] {
            let mut case = Case::new(mode, false);
            assert_eq!(case.call(body).unwrap(), [2.0, 4.0]);
            VARIANT.set(1);
            if invalidated {
                case.plan.invalidate_captures([Some(0); 9]);
            }
            match case.call(body) {
                Ok(y) => assert_eq!(
                    y,
                    [-2.0, -4.0],
                    "{mode}, invalidated {invalidated}: not what the body computes"
                ),
                Err(error) => {
                    assert!(matches!(error, Error::TraceMismatch { .. } | Error::Device { .. }), "{error}")
                }
            }
        }
    }
}

/// Then the call fails, whatever the body did with its own errors.
#[test]
fn what_was_put_in_fails_when_it_runs() {
    fn body<'s>(cx: Piecewise<'s>, x: &T<'s>, _: &State<f32>) -> Result<T<'s>> {
        seg!("a", cx, (x,), |k| {
            let y = ops::scale(k.0, 2.0)?;
            let z = ops::scale(&y, 3.0)?;
            // Optional, says the body.
            let _ = ops::neg(k.0);
            Ok(z)
        })
    }
    for mode in GRAPHS {
        let mut case = Case::new(mode, false);
        // Without anything that is poisoned in between.
        case.rt.free_at_last_use(false);
        assert_eq!(case.call(body).unwrap(), [6.0, 12.0]);
        case.plan.invalidate_captures([Some(2); 9]);
        // 3 launches, then 8 times again 3 of them (the third finds the invalidation), then the first of those that run.
        case.plan.arm(Some(FaultCall::Launch), 3 + 8 * 3, false);
        let y = case.call(body);
        assert!(!case.plan.disarm(), "the fault was hit");
        assert!(y.is_err(), "{mode}: {y:?}");
    }
}

/// Using a value after its last use is an error of recordings only, and the next call warms up again.
#[test]
fn a_late_use() {
    fn body<'s>(cx: Piecewise<'s>, x: &T<'s>, _: &State<f32>) -> Result<T<'s>> {
        seg!("a", cx, (x,), |k| {
            let y = ops::scale(k.0, 2.0)?;
            let z = ops::neg(&y)?;
            let w = ops::neg(&z)?;
            if VARIANT.get() == 1 { ops::add(&w, &y) } else { ops::add(&w, k.0) }
        })
    }
    for mode in GRAPHS {
        for invalidated in [false, true] {
            let mut case = Case::new(mode, false);
            assert_eq!(case.call(body).unwrap(), [3.0, 6.0]);
            VARIANT.set(1);
            if invalidated {
                // Behind the launch that is the last to use `y`, and its poison.
                case.plan.invalidate_captures([Some(3); 9]);
            }
            let first = case.call(body);
            if let Ok(y) = &first {
                assert_eq!(*y, [4.0, 8.0]);
            }
            let second = case.call(body);
            assert_eq!(second.unwrap(), [4.0, 8.0], "{mode}, invalidated {invalidated}");
        }
    }
}

/// It is not taken for one more invalidation.
#[test]
fn a_device_that_is_lost_meanwhile() {
    for mode in GRAPHS {
        for deny_fallback in [false, true] {
            let mut case = Case::new(mode, deny_fallback);
            case.call(forked).unwrap();
            case.plan.invalidate_captures([Some(2)]);
            case.plan.arm(Some(FaultCall::BeginCapture), 1, true);
            let y = case.call(forked);
            let stats = case.rt.stats();
            assert!(
                matches!(y, Err(Error::ContextLost { .. })),
                "{mode}, deny_fallback {deny_fallback}: {y:?}"
            );
            assert_eq!(stats.captures_invalidated, 1, "{mode}, deny_fallback {deny_fallback}");
        }
    }
}

/// Errors and panics of a body, with a capture that is made again, or given up, at every place.
#[test]
fn bodies_that_fail_after_an_invalidation() {
    fn body<'s>(cx: Piecewise<'s>, x: &T<'s>, total: &State<f32>) -> Result<T<'s>> {
        seg!("a", cx, (x, total), |k| {
            let (a, b) = join(
                k.0.scope(),
                || {
                    let a = ops::neg(k.0)?;
                    assert!(VARIANT.get() != 1, "on purpose");
                    Ok::<_, Error>(a)
                },
                || ops::scale(&ops::neg(k.0)?, 5.0),
            )?;
            let y = ops::add(&a, &b)?;
            if VARIANT.get() == 2 {
                return Err(Error::Argument { op: "body", reason: "on purpose".into() });
            }
            Ok(y)
        })
    }
    for mode in GRAPHS {
        for variant in [1, 2] {
            for after in 1..14 {
                for times in [1, 8, 9] {
                    let mut case = Case::new(mode, false);
                    case.call(body).unwrap();
                    VARIANT.set(variant);
                    case.plan.invalidate_captures(std::iter::repeat_n(Some(after), times));
                    let outcome = catch_unwind(AssertUnwindSafe(|| case.call(body)));
                    assert!(!matches!(outcome, Ok(Ok(_))), "{mode}, {variant}, {after}, {times}");
                    VARIANT.set(0);
                    case.plan.invalidate_captures([Some(99); 9]);
                    case.rt.check_memory().unwrap();
                    for _ in 0..3 {
                        assert_eq!(
                            case.call(body).unwrap(),
                            [-6.0, -12.0],
                            "{mode}, {variant}, {after}, {times}"
                        );
                    }
                    still_usable(&mut case.rt);
                }
            }
        }
    }
}

//! Memory that a recording gives back at its last use.

use std::sync::atomic::{AtomicU32, Ordering};

use graphable::{Error, Mode, Result, Runtime, Step, ops};

use crate::support::*;

const N: usize = 1024;
const BYTES: u64 = 4 * N as u64;

fn wide(rt: &mut Runtime, mode: Mode) -> Graph {
    Spec::inputs(vec![host("x", &[Dim::Const(N)])]).mode(mode).build(rt)
}

fn data() -> Vec<f32> {
    (0..N).map(|i| i as f32).collect()
}

/// A body whose every value stays in scope to its end.
fn chain<'s>(graph: &Graph, step: &Step<'s>, x: &[f32]) -> T<'s> {
    let y = graph.call(step, &[In::Host(x.into())], (), |cx, a| {
        let (h,) = seg!("a", cx, (&a.t[0],), |k| {
            let mut all = vec![ops::scale(k.0, 2.0)?];
            for i in 0..20 {
                all.push(ops::neg(&all[i])?);
            }
            Ok((all[20].clone(),))
        })?;
        seg!("b", cx, (&h,), |k| ops::scale(k.0, 0.5))
    });
    y.unwrap()
}

/// The bytes that the recordings need, in either way.
fn recorded_bytes(mode: Mode, early: bool) -> u64 {
    let mut rt = runtime();
    rt.free_at_last_use(early);
    let graph = wide(&mut rt, mode);
    let x = data();
    for i in 0..5 {
        let step = rt.step().unwrap();
        let y = chain(&graph, &step, &x);
        assert_eq!(step.read(&y).unwrap(), x, "step {i} in mode {mode}");
    }
    let nodes = rt.memory().recordings;
    assert_eq!(nodes.len(), if mode == Mode::Full { 1 } else { 2 });
    nodes.iter().map(|n| n.pool_peak_bytes).max().unwrap()
}

#[test]
fn what_stays_in_scope_does_not_stay_in_memory() {
    for mode in [Mode::Piecewise, Mode::Full] {
        assert_eq!(recorded_bytes(mode, false), 21 * BYTES, "{mode}");
        assert_eq!(recorded_bytes(mode, true), 2 * BYTES, "{mode}");
    }
}

/// Views count for their storage, outputs stay, and a value used last in an operation that reads it twice is
/// freed once.
#[test]
fn aliases_and_outputs_stay_right() {
    for early in [false, true] {
        for mode in MODES {
            let mut rt = runtime();
            rt.free_at_last_use(early);
            let graph = Spec::inputs(vec![host("x", &[Dim::Const(4)])])
                .mode(mode)
                .with(|o| o.audit_every(3))
                .build(&mut rt);
            for i in 0..8 {
                let step = rt.step().unwrap();
                let x = [1.0, 2.0, 3.0, i as f32];
                let out = graph.call(&step, &[In::Host((&x).into())], (), |cx, a| {
                    let (first, last, square) = seg!("a", cx, (&a.t[0],), |k| {
                        let y = ops::scale(k.0, 10.0)?;
                        let tail = ops::narrow(&y, 0, 2, 2)?;
                        let junk = ops::neg(&y)?;
                        let junk = ops::add(&junk, &junk)?;
                        // The storage of `y` is used again, through a view.
                        let tail = ops::scale(&tail, 1.0)?;
                        let z = ops::add(&ops::narrow(&junk, 0, 0, 2)?, &tail)?;
                        let square = ops::mul(&z, &z)?;
                        Ok((ops::narrow(&tail, 0, 0, 1)?, ops::narrow(&tail, 0, 1, 1)?, square))
                    })?;
                    seg!("b", cx, (&first, &last, &square), |k| {
                        let sum = ops::add(k.0, k.1)?;
                        Ok((ops::neg(&sum)?, ops::scale(k.2, 1.0)?))
                    })
                });
                let (sum, square) = out.unwrap();
                let last = x[3];
                assert_eq!(step.read(&sum).unwrap(), [-(30.0 + 10.0 * last)], "step {i} in mode {mode}");
                assert_eq!(
                    step.read(&square).unwrap(),
                    [(30.0 - 20.0) * (30.0 - 20.0), (10.0 * last - 40.0) * (10.0 * last - 40.0)]
                );
            }
        }
    }
}

/// Which of two values leaves depends on a global: the recording gives back what warm-up did not return.
#[test]
fn a_value_that_is_used_after_its_last_use_is_an_error() {
    static TURN: AtomicU32 = AtomicU32::new(0);
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let call = |rt: &mut Runtime| -> Result<Vec<f32>> {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], (), |cx, a| {
            seg!("a", cx, (&a.t[0],), |k| {
                let first = ops::scale(k.0, 2.0)?;
                let second = ops::neg(&first)?;
                let third = ops::neg(&second)?;
                Ok(if TURN.load(Ordering::Relaxed) == 0 { third } else { first })
            })
        })?;
        step.read(&y)
    };
    assert_eq!(call(&mut rt).unwrap(), [2.0, 4.0]);
    TURN.store(1, Ordering::Relaxed);
    let error = call(&mut rt).unwrap_err();
    assert!(matches!(error, Error::UsedAfterLastUse { producer: "scale", .. }), "{error}");
    assert!(error.to_string().contains("`#[key]`"), "{error}");
    // The change was the last one: warmed up again, recorded, replayed.
    for _ in 0..4 {
        assert_eq!(call(&mut rt).unwrap(), [2.0, 4.0]);
    }
    assert_eq!(rt.stats().live_recordings, 1);
    still_usable(&mut rt);
}

/// The same with an operation that warm-up did on another value.
#[test]
fn an_operation_on_a_finished_value_is_an_error() {
    static TURN: AtomicU32 = AtomicU32::new(0);
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    for i in 0..3 {
        TURN.store(i, Ordering::Relaxed);
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], (), |cx, a| {
            seg!("a", cx, (&a.t[0],), |k| {
                let first = ops::scale(k.0, 2.0)?;
                let second = ops::neg(&first)?;
                ops::neg(if TURN.load(Ordering::Relaxed) == 1 { &first } else { &second })
            })
        });
        match i {
            1 => assert!(matches!(y, Err(Error::UsedAfterLastUse { op: "neg", producer: "scale" })), "{y:?}"),
            _ => assert_eq!(step.read(&y.unwrap()).unwrap(), [2.0, 4.0]),
        }
    }
    still_usable(&mut rt);
}

/// In full mode the result of a region is a variable like any other.
#[test]
fn a_region_whose_result_nothing_uses_is_captured() {
    for early in [false, true] {
        let mut rt = runtime();
        rt.free_at_last_use(early);
        let plan = boundary(site!("e"), graphable::Support::Always);
        let mut spec = Spec::inputs(vec![host("x", &[Dim::Const(2)])]);
        spec.plan = plan;
        let graph = spec.mode(Mode::Full).with(|o| o.deny_fallback(true)).build(&mut rt);
        for _ in 0..4 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[x()], (), |cx, a| {
                let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
                let (unused, seen) = eager!("e", Always, cx, |_e| Ok::<_, Error>((ops::neg(&h)?, h.clone())));
                let (y,) = seg!("b", cx, (&seen,), |k| Ok((ops::neg(k.0)?,)))?;
                drop(unused);
                Ok(y)
            });
            assert_eq!(step.read(&y.unwrap()).unwrap(), [-2.0, -4.0]);
        }
        assert_eq!(rt.stats().live_recordings, 1);
    }
}

/// An operation without elements launches nothing, and looks at its operands all the same.
#[test]
fn a_value_may_be_looked_at_after_its_last_launch() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let graph = vector(&mut rt, mode);
        for _ in 0..4 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[x()], (), |cx, a| {
                seg!("a", cx, (&a.t[0],), |k| {
                    let first = ops::scale(k.0, 2.0)?;
                    let second = ops::neg(&first)?;
                    let none = ops::neg(&ops::narrow(&first, 0, 0, 0)?)?;
                    let third = ops::neg(&second)?;
                    ops::add(&none, &ops::narrow(&first, 0, 0, 0)?)?;
                    Ok(third)
                })
            });
            assert_eq!(step.read(&y.unwrap()).unwrap(), [2.0, 4.0]);
        }
        assert_eq!(rt.stats().live_recordings, 1);
    }
}

//! Branches of a segment: what is recorded of them, what memory they get, and how they fail.

use std::{
    cell::RefCell,
    collections::HashSet,
    panic::{AssertUnwindSafe, catch_unwind},
};

use graphable::{
    Error, Mode, Result, Runtime, State, backend::faulty::FaultCall, join, join_all, join3, ops,
};

use crate::{
    listening::{Ranges, Said, listening, shorts, take, written},
    support::*,
};

/// `-3x + relu(5x)`, and then its double.
fn forked<'s>(cx: Piecewise<'s>, x: &T<'s>) -> Result<T<'s>> {
    let (y,) = seg!("forked", cx, (x,), |k| {
        let (a, b) = join(
            k.0.scope(),
            || ops::neg(&ops::scale(k.0, 3.0)?),
            || {
                let h = ops::scale(k.0, 5.0)?;
                ops::relu(&h)
            },
        )?;
        Ok((ops::add(&a, &b)?,))
    })?;
    seg!("after", cx, (&y,), |k| ops::scale(k.0, 2.0))
}

#[test]
fn values_in_every_mode_over_twenty_replays() {
    for mode in MODES {
        let mut rt = runtime();
        let graph = vector(&mut rt, mode);
        for n in 0..24u8 {
            let (step, x) = (rt.step().unwrap(), f32::from(n));
            let y =
                graph.call(&step, &[In::Host((&[x, -x]).into())], (), |cx, a| forked(cx, &a.t[0])).unwrap();
            assert_eq!(step.read(&y).unwrap(), [4.0 * x, 6.0 * x], "{mode}, step {n}");
            let log = events(&step);
            assert!(!log.iter().any(|e| e.starts_with("again")), "one state after the join: {log:?}");
        }
        let stats = rt.stats();
        let segments = match mode {
            Mode::None => 0,
            Mode::Full => 1,
            _ => 2,
        };
        assert_eq!((stats.fallbacks, stats.aborted), (0, 0));
        assert!(stats.recordings >= segments && stats.replays >= 20 * segments, "{mode}: {stats:?}");
        assert!(stats.live_recordings as u64 <= 2 * segments, "{mode}: {stats:?}");
    }
}

#[test]
fn a_recording_has_a_chain_for_each_branch() {
    let (mut rt, heard, _) = listening();
    let graph = vector(&mut rt, Mode::Piecewise);
    let mut call = || {
        let step = rt.step().unwrap();
        take(&heard);
        let y = graph.call(&step, &[x()], (), |cx, a| forked(cx, &a.t[0])).unwrap();
        let said = take(&heard);
        assert_eq!(step.read(&y).unwrap(), [4.0, 8.0]);
        said
    };
    let warm = call();
    assert_eq!(shorts(&warm)[..5], ["scale", "neg", "scale", "relu", "add"], "one after the other");
    let recorded = call();
    let chains =
        ["begin", "fork", "branch 0", "scale", "neg", "branch 1", "scale", "relu", "join", "add", "end"];
    assert_eq!(shorts(&recorded)[..chains.len()], chains);
    let uses = |said: &[Said]| -> (Ranges, Ranges) {
        let mut all = (Ranges::new(), Ranges::new());
        for s in said {
            if let Said::Launch { reads, writes, .. } = s {
                all.0.extend(reads);
                all.1.extend(writes);
            }
        }
        all
    };
    let ((reads_a, writes_a), (reads_b, writes_b)) = (uses(&recorded[3..5]), uses(&recorded[6..8]));
    let meet = |a: &Ranges, b: &Ranges| a.iter().any(|a| b.iter().any(|b| a.0.max(b.0) < a.1.min(b.1)));
    assert!(!meet(&writes_a, &reads_b) && !meet(&reads_a, &writes_b) && !meet(&writes_a, &writes_b));
    assert!(meet(&reads_a, &reads_b), "both read the input");
    for op in ["scale", "neg", "relu", "add"] {
        assert_eq!(written(&warm, op)[0], written(&recorded, op)[0], "{op} is placed as in warm-up");
    }
    call();
    assert!(!shorts(&call()).contains(&"fork".to_owned()), "a replay says nothing of branches");
}

#[test]
fn a_block_dropped_in_a_branch_is_free_after_the_join() {
    let (mut rt, heard, _) = listening();
    let graph = vector(&mut rt, Mode::Piecewise);
    let mut passes = Vec::new();
    for _ in 0..4 {
        let step = rt.step().unwrap();
        take(&heard);
        let y = graph.call(&step, &[x()], (), |cx, a| {
            let (y,) = seg!("a", cx, (&a.t[0],), |k| {
                let early = ops::exp(k.0)?;
                let (a, b) = join(
                    k.0.scope(),
                    move || {
                        let y = ops::neg(&early)?;
                        drop(early);
                        ops::relu(&y)
                    },
                    || ops::scale(k.0, 2.0),
                )?;
                let sum = ops::add(&a, &b)?;
                Ok((ops::sub(&sum, &a)?,))
            })?;
            seg!("b", cx, (&y,), |k| ops::scale(k.0, 1.0))
        });
        let said = take(&heard);
        assert_eq!(step.read(&y.unwrap()).unwrap(), [2.0, 4.0]);
        passes.push(said);
    }
    for said in &passes[..2] {
        let at = |op| written(said, op)[0];
        let (early, neg) = (at("exp"), at("neg"));
        for op in ["neg", "relu", "scale"] {
            assert_ne!(at(op), early, "{op} may run while the other branch reads the block");
        }
        assert_ne!(at("scale"), neg, "what a branch freed is not the other one's");
        assert_eq!(at("add"), early, "the lowest block that the join freed");
        assert_eq!(at("sub"), neg, "and the next one");
    }
    assert_eq!(written(&passes[0], "sub"), written(&passes[1], "sub"), "recorded as it was warmed up");
}

#[test]
fn a_branch_has_its_own_blocks_again() {
    let (mut rt, heard, _) = listening();
    let graph = vector(&mut rt, Mode::Piecewise);
    for pass in 0..4 {
        let step = rt.step().unwrap();
        take(&heard);
        let y = graph.call(&step, &[x()], (), |cx, a| {
            seg!("a", cx, (&a.t[0],), |k| {
                let long = |by: f32| {
                    move || {
                        let mut h = ops::scale(k.0, by)?;
                        for _ in 0..8 {
                            h = ops::neg(&h)?;
                        }
                        Ok::<_, Error>(h)
                    }
                };
                let (a, b) = join(k.0.scope(), long(1.0), long(2.0))?;
                ops::add(&a, &b)
            })
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [3.0, 6.0]);
        if pass < 2 {
            let negs = written(&take(&heard), "neg");
            let distinct = |of: &[u64]| of.iter().collect::<HashSet<_>>().len();
            assert_eq!((negs.len(), distinct(&negs[..8]), distinct(&negs)), (16, 2, 4), "{negs:?}");
        }
    }
}

/// How a body goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    No,
    Error(usize),
    Panic(usize),
}

thread_local! {
    static WRONG: RefCell<Wrong> = const { RefCell::new(Wrong::No) };
}

fn go_wrong(branch: usize) -> Result<()> {
    let wrong = WRONG.with_borrow(|wrong| *wrong);
    assert!(wrong != Wrong::Panic(branch), "on purpose");
    match wrong == Wrong::Error(branch) {
        true => Err(Error::Argument { op: "branch", reason: "on purpose".into() }),
        false => Ok(()),
    }
}

#[test]
fn errors_and_panics_in_a_branch() {
    let all = (0..3).flat_map(|at| [Wrong::Error(at), Wrong::Panic(at)]);
    for (mode, wrong) in all.flat_map(|wrong| MODES.map(|mode| (mode, wrong))) {
        let (mut rt, heard, _) = listening();
        let graph = vector(&mut rt, mode);
        let call = |rt: &mut Runtime, wrong: Wrong| {
            WRONG.set(wrong);
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[x()], (), |cx, a| seg!("a", cx, (&a.t[0],), |k| risky(k.0)));
            y.and_then(|y| step.read(&y))
        };
        // While warming up; then while recording, as nothing is learnt from what failed.
        for warm_first in [false, true] {
            if warm_first {
                assert_eq!(call(&mut rt, Wrong::No).unwrap(), [2.0, 4.0]);
            }
            match (catch_unwind(AssertUnwindSafe(|| call(&mut rt, wrong))), wrong) {
                (Err(panic), Wrong::Panic(_)) => assert!(panic.is::<&str>() || panic.is::<String>()),
                (Ok(Err(Error::Argument { op: "branch", .. })), Wrong::Error(_)) => {}
                (other, _) => panic!("{mode} {wrong:?}: {other:?}"),
            }
            let said = shorts(&take(&heard));
            let count = |what: &str| said.iter().filter(|s| *s == what).count();
            // A recording reaches the device when its body has ended.
            let recorded = usize::from(warm_first && mode != Mode::None);
            assert_eq!((count("begin"), count("abort")), (recorded, recorded), "{mode} {wrong:?}: {said:?}");
            assert_eq!((count("fork"), count("join")), (0, 0), "{mode} {wrong:?}: {said:?}");
            still_usable(&mut rt);
            take(&heard);
        }
        for _ in 0..4 {
            assert_eq!(call(&mut rt, Wrong::No).unwrap(), [2.0, 4.0], "{mode}");
        }
        assert_eq!(rt.stats().fallbacks, 0);
    }
}

/// `2x`, by branches that use more than they need.
fn risky<'s>(x: &T<'s>) -> Result<T<'s>> {
    let early = ops::exp(x)?;
    let right = || {
        let h = ops::scale(x, 2.0)?;
        let inner = || {
            let y = ops::relu(&h)?;
            go_wrong(1)?;
            Ok(y)
        };
        let both = join(x.scope(), || ops::neg(&h), inner);
        go_wrong(2)?;
        both
    };
    let left = move || {
        let y = ops::neg(&early)?;
        go_wrong(0)?;
        ops::sub(&y, &early)
    };
    let (a, (b, c)) = join(x.scope(), left, right)?;
    ops::add(&ops::scale(&a, 0.0)?, &ops::add(&b, &ops::scale(&c, 2.0)?)?)
}

#[test]
fn a_recording_that_fails_in_a_branch_leaves_nothing_open() {
    for wrong in (0..2).flat_map(|at| [Wrong::Error(at), Wrong::Panic(at)]) {
        let (mut rt, heard, _) = listening();
        let graph = vector(&mut rt, Mode::Piecewise);
        let call = |rt: &mut Runtime, wrong: Wrong| {
            WRONG.set(wrong);
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[x()], (), |cx, a| {
                seg!("a", cx, (&a.t[0],), |k| {
                    let (_, (_, b)) = join(
                        k.0.scope(),
                        || ops::neg(k.0),
                        || {
                            join(
                                k.0.scope(),
                                || go_wrong(0).and_then(|()| ops::exp(k.0)),
                                || ops::scale(k.0, 2.0).and_then(|y| go_wrong(1).map(|()| y)),
                            )
                        },
                    )?;
                    ops::neg(&b)
                })
            });
            y.and_then(|y| step.read(&y))
        };
        assert_eq!(call(&mut rt, Wrong::No).unwrap(), [-2.0, -4.0], "warms up");
        take(&heard);
        drop(catch_unwind(AssertUnwindSafe(|| call(&mut rt, wrong).unwrap_err())));
        let said = shorts(&take(&heard));
        let tail = &said[said.len() - 2..];
        assert_eq!(tail, ["begin", "abort"], "{wrong:?}: {said:?}");
        for _ in 0..3 {
            assert_eq!(call(&mut rt, Wrong::No).unwrap(), [-2.0, -4.0]);
        }
        assert_eq!((rt.stats().aborted, rt.stats().recordings), (1, 1));
        still_usable(&mut rt);
    }
}

/// A body that goes on after a fork failed must not become a recording.
#[test]
fn a_failed_fork_that_a_body_swallows() {
    for call in [FaultCall::Fork, FaultCall::Branch, FaultCall::Join] {
        let (mut rt, faults) = faulty();
        let graph = vector(&mut rt, Mode::Piecewise);
        let once = |rt: &mut Runtime| {
            let step = rt.step()?;
            let y = graph.call(&step, &[x()], (), |cx, a| {
                seg!("a", cx, (&a.t[0],), |k| {
                    let both = join(k.0.scope(), || ops::neg(k.0), || ops::scale(k.0, 3.0));
                    match both {
                        Ok((a, b)) => ops::add(&a, &b),
                        Err(_) => ops::relu(k.0),
                    }
                })
            });
            y.and_then(|y| step.read(&y))
        };
        assert_eq!(once(&mut rt).unwrap(), [2.0, 4.0]);
        faults.arm(Some(call), 0, false);
        let error = once(&mut rt).unwrap_err();
        let refused = matches!(error, Error::Device { .. } | Error::TraceMismatch { .. });
        assert!(refused, "{call:?}: {error}");
        assert!(!faults.disarm());
        assert_eq!(rt.stats().recordings, 0);
        for _ in 0..4 {
            assert_eq!(once(&mut rt).unwrap(), [2.0, 4.0], "{call:?}");
        }
        assert!(rt.stats().replays > 0);
    }
}

#[test]
fn branches_that_share_what_one_writes_are_refused() {
    let shares = |error: &Error| matches!(error, Error::BranchesShare { .. });
    for mode in MODES {
        let mut rt = runtime();
        let graph = vector(&mut rt, mode);
        let state = State::new(&rt, &[2], &[1.0f32, 1.0]).unwrap();
        for _ in 0..2 {
            let step = rt.step().unwrap();
            let handed = graph.call(&step, &[x()], (), |cx, a| {
                seg!("handed over", cx, (&a.t[0],), |k| {
                    let cell = RefCell::new(None);
                    let (_, b) = join(
                        k.0.scope(),
                        || ops::neg(k.0).map(|y| cell.replace(Some(y))),
                        || ops::exp(cell.borrow().as_ref().unwrap_or(k.0)),
                    )?;
                    Ok(b)
                })
            });
            let error = handed.unwrap_err();
            assert!(matches!(error, Error::BranchesShare { op: "exp", other: "neg" }), "{mode}: {error}");
            let read = graph.call(&step, &[x()], &state, |cx, a| {
                seg!("read and written", cx, (&a.t[0], &state), |k| {
                    let (y, ()) = join(k.0.scope(), || ops::add(k.0, k.1), || ops::store(k.1, k.0))?;
                    Ok(y)
                })
            });
            assert!(shares(&read.unwrap_err()), "{mode}");
            let twice = graph.call(&step, &[x()], &state, |cx, a| {
                seg!("written twice, nested", cx, (&a.t[0], &state), |k| {
                    let inner = || join(k.0.scope(), || ops::neg(k.0), || ops::store(k.1, k.0));
                    let ((y, ()), ()) = join(k.0.scope(), inner, || ops::store(k.1, k.0))?;
                    Ok(y)
                })
            });
            assert!(shares(&twice.unwrap_err()), "{mode}");
        }
        still_usable(&mut rt);
        // Both may read it, one may write it alone, and after the join it is everybody's.
        let before = {
            let step = rt.step().unwrap();
            step.read(&ops::load(step.scope(), &state).unwrap()).unwrap()
        };
        for n in 1..6u8 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[x()], &state, |cx, a| {
                seg!("apart", cx, (&a.t[0], &state), |k| {
                    let scope = k.0.scope();
                    let (a, b) = join(scope, || ops::add(k.0, k.1), || ops::sub(k.0, k.1))?;
                    let one = ops::full(scope, &[2], 1.0f32)?;
                    let next = ops::add(&ops::load(scope, k.1)?, &one)?;
                    let ((), c) = join(scope, || ops::store(k.1, &next), || ops::add(&a, &b))?;
                    ops::add(&c, k.1)
                })
            });
            let now = [before[0] + f32::from(n), before[1] + f32::from(n)];
            assert_eq!(step.read(&y.unwrap()).unwrap(), [2.0 + now[0], 4.0 + now[1]], "{mode}");
        }
    }
}

#[test]
fn nested_joins_and_any_number_of_branches() {
    for mode in MODES {
        let (mut rt, heard, _) = listening();
        let graph = vector(&mut rt, mode);
        for n in 0..6u8 {
            let (step, x) = (rt.step().unwrap(), f32::from(n));
            take(&heard);
            let y = graph.call(&step, &[In::Host((&[x, 2.0 * x]).into())], (), |cx, a| {
                seg!("a", cx, (&a.t[0],), |k| {
                    let scope = k.0.scope();
                    let (a, many, ()) = join3(
                        scope,
                        || {
                            let (a, b) = join(scope, || ops::scale(k.0, 2.0), || ops::neg(k.0))?;
                            ops::add(&a, &b)
                        },
                        || join_all(scope, (1..5u8).map(|by| move || ops::scale(k.0, f32::from(by)))),
                        || Ok(()),
                    )?;
                    let mut sum = a;
                    for t in &many {
                        sum = ops::add(&sum, t)?;
                    }
                    let none = join_all(scope, [(); 0].map(|()| || ops::neg(k.0)))?;
                    assert!(none.is_empty());
                    Ok(sum)
                })
            });
            assert_eq!(step.read(&y.unwrap()).unwrap(), [11.0 * x, 22.0 * x], "{mode}");
            if n == 1 && mode == Mode::Piecewise {
                let said = shorts(&take(&heard));
                let all = "begin fork \
                    branch 0 fork branch 0 scale branch 1 neg join add \
                    branch 1 fork branch 0 scale branch 1 scale branch 2 scale branch 3 scale join \
                    branch 2 join add add add add fork join end";
                assert_eq!(said.join(" "), all);
            }
        }
    }
}

#[test]
fn audits_see_the_same_values() {
    let mut rt = runtime();
    let graph = Spec::inputs(vec![host("x", &[Dim::Const(2)])]).with(|o| o.audit_every(2)).build(&mut rt);
    for _ in 0..12 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], (), |cx, a| forked(cx, &a.t[0])).unwrap();
        assert_eq!(step.read(&y).unwrap(), [4.0, 8.0]);
    }
    assert!(rt.stats().audits >= 4, "{:?}", rt.stats());
}

#[test]
fn between_calls_in_regions_and_in_the_driver() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    for _ in 0..4 {
        let step = rt.step().unwrap();
        let x0 = step.tensor(&[2], &X).unwrap();
        let (a, b) = join(step.scope(), || ops::neg(&x0), || ops::exp(&x0)).unwrap();
        assert_eq!(step.read(&a).unwrap(), [-1.0, -2.0]);
        drop((a, b));
        // A call in a branch is a call between calls.
        let (y, z) = join(
            step.scope(),
            || graph.call(&step, &[x()], (), |cx, a| forked(cx, &a.t[0])),
            || graph.call(&step, &[x()], (), |cx, a| forked(cx, &a.t[0])),
        )
        .unwrap();
        assert_eq!((step.read(&y).unwrap(), step.read(&z).unwrap()), (vec![4.0, 8.0], vec![4.0, 8.0]));
        let y = graph.call(&step, &[x()], (), |cx, a| {
            let e = eager!("e", cx, |e| {
                let (a, seen) = join(e.scope(), || ops::scale(&a.t[0], 2.0), || e.read(&ops::neg(&a.t[0])?))?;
                assert_eq!(seen, [-1.0, -2.0]);
                Ok::<_, Error>(a)
            });
            seg!("b", cx, (&e,), |k| ops::neg(k.0))
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [-2.0, -4.0]);
        let outside = graph.call(&step, &[x()], (), |_cx, a| {
            join(a.t[0].scope(), || Ok::<_, Error>(()), || Ok(()))?;
            Ok(a.t[0].clone())
        });
        assert!(matches!(outside.unwrap_err(), Error::OutsideSegment { op: "join", .. }));
    }
    still_usable(&mut rt);
}

//! What bodies cannot do, and loops that reach their limit.

use std::cell::RefCell;

use graphable::{FallbackReason, Random, RngState, prelude::*};

use crate::support::{MODES, build, fallbacks, faulty, runtime, setups};

#[graphable]
fn limited(#[host] n: &Scalar<u32>) -> Result<Tensor<u32>> {
    let zero = ops::full(n.scope(), (), 0u32)?;
    control::while_loop(5, zero, |i| ops::lt(i, n), |i| ops::add(&i, 1))
}

#[test]
fn the_limit_of_a_loop_is_reported() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = build!(LimitedGraph, setup, &mut rt);
        for (call, n) in [2u32, 5, 0, 9, 5, 100, 3, 4].into_iter().enumerate() {
            let step = rt.step().unwrap();
            let outcome = graph.call(&step, n).and_then(|y| step.item(&y));
            match outcome {
                Ok(rounds) => assert!(n <= 5 && rounds == n, "{setup:?}, call {call}: {rounds} of {n}"),
                Err(Error::LoopLimit { at, limit: 5 }) => {
                    assert!(n > 5, "{setup:?}, call {call}: {n}");
                    assert!(at.file().ends_with("errors.rs"), "{at}");
                    assert!(outcome.unwrap_err().to_string().contains("5 rounds"));
                }
                Err(other) => panic!("{setup:?}, call {call}: {other}"),
            }
        }
        // The runtime goes on, and nothing is left over.
        let step = rt.step().unwrap();
        let y = graph.call(&step, 1).unwrap();
        assert_eq!(step.item(&y).unwrap(), 1);
    }
}

/// Work after a loop: a call is counted, and a number drawn.
#[graphable]
fn counted(
    #[host] n: &Scalar<u32>,
    #[host] at: &Scalar<u32>,
    calls: &State<u32>,
    rng: &Rng,
) -> Result<Tensor<f32>> {
    let zero = ops::full(n.scope(), (), 0u32)?;
    let rounds = control::while_loop(5, zero, |i| ops::lt(i, n), |i| ops::add(&i, 1))?;
    let rows = ops::full(n.scope(), [3, 1], 0.0f32)?;
    let row = ops::index_select(&rows, 0, &ops::reshape(&ops::add(at, 0)?, [1])?)?;
    let kept = control::cond(&ops::lt(&rounds, 9)?, || Ok(row.clone()), || ops::neg(&row))?;
    ops::store(calls, &ops::add(&ops::load(n.scope(), calls)?, 1)?)?;
    ops::add(&kept, &ops::uniform(rng, n.scope(), [1], 0.0..1.0)?)
}

/// What the device reports ends nothing: the rest of the call happens in every mode, and one read has the error, be it of
/// that call or of a later one.
#[test]
fn an_error_of_the_device_changes_nothing_else() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let (calls, rng) = (State::<u32>::zeros(&rt, &[]).unwrap(), Rng::new(&rt, 7).unwrap());
        let graph = build!(CountedGraph, setup, &mut rt);
        // Rounds, an index below 3, and if the result is read.
        let calls_made =
            [(2, 0, true), (9, 0, true), (1, 3, true), (9, 1, false), (3, 1, true), (2, 2, true)];
        let again = [(4, 7, false), (1, 1, true), (9, 0, false), (9, 0, true), (5, 2, true)];
        let mut is_pending = false;
        for (call, &(n, at, reads)) in calls_made.iter().chain(&again).chain(&calls_made).enumerate() {
            let step = rt.step().unwrap();
            let y = graph.call(&step, n, at, &calls, &rng);
            let y = y.unwrap_or_else(|e| panic!("{setup:?}, call {call}: {e}"));
            is_pending |= n > 5 || at > 2;
            if !reads {
                continue;
            }
            let read = step.read(&y);
            assert_eq!(read.is_err(), is_pending, "{setup:?}, call {call}: {read:?}");
            is_pending = false;
            let read = step.read(&y).unwrap();
            if at < 3 {
                let state = RngState { seed: 7, counter: call as u64 };
                assert_eq!(read, [Random::at(state, 0).uniform()], "{setup:?}, call {call}");
            }
            let counted = step.read(&ops::load(step.scope(), &calls).unwrap()).unwrap();
            assert_eq!(counted, [call as u32 + 1], "{setup:?}");
        }
    }
}

/// Zeros end no loop, and an index of them is out of range.
#[graphable]
fn only_real(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host]
    #[dims(B)]
    ids: &Tensor<u32>,
    calls: &State<u32>,
) -> Result<Tensor<f32>> {
    let first = ops::reshape(&ops::narrow(x, 0, 0, 1)?, ())?;
    let grown = control::while_loop(12, first, |y| ops::lt(y, 100.0), |y| ops::scale(&y, 2.0))?;
    let rows = ops::index_select(x, 0, &ops::sub(ids, 10)?)?;
    ops::store(calls, &ops::add(&ops::load(x.scope(), calls)?, 1)?)?;
    ops::add(&rows, &grown)
}

/// Likewise, in front of code that waits for the device.
#[graphable]
fn looked_at(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host]
    #[dims(B)]
    ids: &Tensor<u32>,
) -> Result<Tensor<f32>> {
    let rows = ops::index_select(x, 0, &ops::sub(ids, 10)?)?;
    #[eager(cx)]
    look(cx, &rows)?;
    ops::scale(&rows, 2.0)
}

fn look(cx: &Eager<'_>, rows: &Tensor<'_, f32>) -> Result<()> {
    cx.synchronize()?;
    cx.read(rows).map(drop)
}

#[test]
fn regions_of_zeros_see_no_error() {
    let mut rt = runtime();
    let graph = LookedAtGraph::builder()
        .mode(Mode::Piecewise)
        .bucket("B", Schedule::new([2]))
        .build(&mut rt)
        .unwrap();
    graph.capture_all(&mut rt).unwrap();
    let step = rt.step().unwrap();
    assert!(matches!(
        graph.call(&step, &[7.0, 8.0], &[11, 19]),
        Err(Error::IndexOutOfRange { index: 9, .. })
    ));
    let y = graph.call(&step, &[7.0, 8.0], &[11, 10]).unwrap();
    assert_eq!(step.read(&y).unwrap(), [16.0, 14.0]);
}

#[test]
fn what_kernels_report_of_zeros_is_no_error() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let calls = State::<u32>::zeros(&rt, &[]).unwrap();
        let graph = OnlyRealGraph::builder().mode(setup.mode).bucket("B", Schedule::new([2, 4]));
        let graph = graph.audit_every(setup.audit_every).build(&mut rt).unwrap();
        rt.estimate_memory(|rt| graph.capture_all(rt, &calls)).unwrap();
        graph.capture_all(&mut rt, &calls).unwrap();
        rt.synchronize().unwrap();
        for call in 0..3 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[7.0, 8.0], &[11, 10], &calls).unwrap();
            assert_eq!(step.read(&y).unwrap(), [120.0, 119.0], "{setup:?}");
            let counted = step.read(&ops::load(step.scope(), &calls).unwrap()).unwrap();
            assert_eq!(counted, [call + 1], "{setup:?}");
        }
        assert!(setup.mode == Mode::None || rt.stats().replays >= 3 || setup.audit_every > 0, "{setup:?}");
        // What a call of the user has left is not lost.
        let step = rt.step().unwrap();
        graph.call(&step, &[7.0, 8.0], &[11, 19], &calls).unwrap();
        drop(step);
        let left = graph.capture_all(&mut rt, &calls);
        assert!(setup.mode == Mode::None || matches!(left, Err(Error::IndexOutOfRange { .. })), "{left:?}");
        graph.capture_all(&mut rt, &calls).unwrap();
    }
}

#[test]
fn a_limit_of_no_rounds_is_refused() {
    let mut rt = runtime();
    let step = rt.step().unwrap();
    let x = step.tensor((), &[0u32]).unwrap();
    let looped = control::while_loop(0, x, |i| ops::lt(i, 1), Ok::<_, Error>);
    assert!(matches!(looped, Err(Error::Argument { .. })));
}

/// Results that differ in one property.
#[graphable]
fn differing(
    #[host]
    #[dims(B, 3)]
    x: &Tensor<f32>,
    #[host] p: &Scalar<bool>,
    #[key] which: usize,
) -> Result<Tensor<f32>> {
    let other = |which: usize| match which {
        0 => Ok::<_, Error>(vec![ops::transpose(x, 0, 1)?]),
        1 => Ok(vec![x.clone(), x.clone()]),
        2 => Ok(vec![ops::zeros(x.scope(), (x.dim(0), 2))?]),
        _ => Ok(vec![ops::zeros(x.scope(), (4, 3))?]),
    };
    let mut all = control::cond(p, || Ok(vec![ops::neg(x)?]), || other(which))?;
    Ok(all.remove(0))
}

#[test]
fn bodies_agree_in_what_they_return() {
    for mode in MODES {
        let mut rt = runtime();
        let graph =
            DifferingGraph::builder().mode(mode).bucket("B", Schedule::new([4])).build(&mut rt).unwrap();
        for (which, what) in [(0, "padding"), (1, "each vector and option"), (2, "shape"), (3, "padding")] {
            for size in [4, 3] {
                let step = rt.step().unwrap();
                let error = graph.call(&step, &vec![1.0; 3 * size], true, which).unwrap_err();
                let text = error.to_string();
                assert!(matches!(error, Error::BodiesDiffer { control: "cond", .. }), "{text}");
                assert!(text.contains(what) && text.contains("second one"), "{mode}, {which}: {text}");
                step.check_memory().unwrap();
            }
        }
    }
}

#[test]
fn a_loop_returns_what_it_takes() {
    let mut rt = runtime();
    let step = rt.step().unwrap();
    let x = step.tensor([2], &[1.0f32, 2.0]).unwrap();
    let grown =
        control::while_loop(3, x.clone(), |x| ops::lt(&ops::sum(x, 0)?, 9.0), |x| ops::concat(&[&x, &x], 0));
    let text = grown.unwrap_err().to_string();
    assert!(text.contains("shape") && text.contains("[4]") && text.contains("[2]"), "{text}");
    step.check_memory().unwrap();
}

#[test]
fn what_selects_is_a_single_value() {
    let mut rt = runtime();
    let step = rt.step().unwrap();
    let many = step.tensor([2], &[true, false]).unwrap();
    let chosen = control::cond(&many, || Ok(()), || Ok::<_, Error>(()));
    assert!(matches!(chosen, Err(Error::Shape { op: "cond", .. })));
}

#[test]
fn bodies_do_not_read_or_allocate() {
    let mut rt = runtime();
    let graph = LimitedGraph::builder().build(&mut rt).unwrap();
    let rng = Rng::new(&rt, 1).unwrap();
    let step = rt.step().unwrap();
    let (x, p) = (step.tensor([1], &[1.0f32]).unwrap(), step.tensor((), &[true]).unwrap());
    let attempts: [&dyn Fn() -> Result<()>; 5] = [
        &|| step.read(&x).map(drop),
        &|| step.tensor([1], &[2.0f32]).map(drop),
        &|| rng.fork(&step).map(drop),
        &|| step.synchronize(),
        &|| graph.call(&step, 1).map(drop),
    ];
    for (index, attempt) in attempts.into_iter().enumerate() {
        for second in [false, true] {
            let other = || if second { attempt() } else { Ok(()) };
            let chosen = control::cond(&p, || if second { Ok(()) } else { attempt() }, other);
            assert!(matches!(chosen, Err(Error::InsideBody { .. })), "attempt {index}: {chosen:?}");
            attempt().unwrap();
        }
    }
    step.check_memory().unwrap();
}

/// Keeps a tensor of a body back, and uses it afterwards.
#[graphable]
fn leaking(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host] p: &Scalar<bool>,
    #[key] which: u32,
) -> Result<Tensor<f32>> {
    let kept = RefCell::new(Vec::new());
    let keep = |t: &Tensor<f32>| kept.borrow_mut().push(t.clone());
    let y = control::cond(
        p,
        || {
            let made = ops::scale(x, 2.0)?;
            if which == 0 {
                keep(&made);
            }
            if which == 1 {
                keep(&ops::relu(&made)?);
            }
            Ok::<_, Error>(made)
        },
        || {
            let made = ops::neg(x)?;
            if which == 2 {
                keep(&made);
            }
            Ok(made)
        },
    )?;
    let z = control::while_loop(
        4,
        y,
        |y| ops::lt(&ops::max(y, 0)?, 8.0),
        |y| {
            if which == 3 {
                keep(&y);
            }
            let next = ops::add(&y, 1.0)?;
            if which == 4 {
                keep(&next);
            }
            Ok(next)
        },
    )?;
    let kept = kept.into_inner();
    match kept.first() {
        Some(leaked) => ops::add(&z, leaked),
        None => Ok(z),
    }
}

#[test]
fn a_tensor_of_a_body_ends_with_it() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = build!(LeakingGraph, setup, &mut rt);
        for call in 0..4 {
            for which in 0..5 {
                let step = rt.step().unwrap();
                let error = graph.call(&step, &[5.0, call as f32], true, which).unwrap_err();
                assert!(matches!(error, Error::NeverComputed { .. }), "{setup:?}, {which}: {error}");
                step.check_memory().unwrap();
            }
        }
        let step = rt.step().unwrap();
        let z = graph.call(&step, &[4.0, 1.0], true, 9).unwrap();
        assert_eq!(step.read(&z).unwrap(), [8.0, 2.0]);
    }
}

#[graphable]
fn simple(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host] p: &Scalar<bool>,
) -> Result<Tensor<f32>> {
    let y = control::cond(p, || ops::neg(x), || ops::scale(x, 2.0))?;
    ops::add(&y, 1.0)
}

fn expected(x: f32, p: bool) -> f32 {
    if p { 1.0 - x } else { 2.0 * x + 1.0 }
}

#[test]
fn a_device_without_conditional_nodes_is_an_error() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let (mut rt, faults) = faulty();
        faults.lack_conditionals(true);
        let graph = SimpleGraph::builder().mode(mode).build(&mut rt).unwrap();
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[3.0], true).unwrap();
        assert_eq!(step.read(&y).unwrap(), [expected(3.0, true)], "warm-up needs none");
        drop((y, step));
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let error = graph.call(&step, &[3.0], true).unwrap_err();
            assert!(matches!(&error, Error::NoConditionalNodes { needs: "12.4", .. }));
            let text = error.to_string();
            assert!(text.contains("12.4") && text.contains("12.2") && text.contains("eager_conditionals"));
        }
        assert_eq!((rt.stats().recordings, rt.stats().aborted), (0, 0), "nothing was begun");
        // With a newer driver.
        faults.lack_conditionals(false);
        for p in [true, false, true] {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[3.0], p).unwrap();
            assert_eq!(step.read(&y).unwrap(), [expected(3.0, p)]);
        }
        assert_eq!(rt.stats().recordings, 1);
    }
}

#[test]
fn or_a_counted_fallback_where_it_is_allowed() {
    for (mode, closed) in [(Mode::Piecewise, false), (Mode::Full, false), (Mode::Piecewise, true)] {
        let (mut rt, faults) = faulty();
        faults.lack_conditionals(true);
        let graph = SimpleGraph::builder()
            .mode(mode)
            .eager_conditionals(true)
            .deny_fallback(true)
            .build(&mut rt)
            .unwrap();
        for call in 0..5 {
            if call == 1 && closed {
                rt.close_capture();
            }
            let (p, x) = (call % 2 == 0, call as f32);
            let step = rt.step().unwrap();
            step.take_events();
            let y = graph.call(&step, &[x], p).unwrap();
            assert_eq!(step.read(&y).unwrap(), [expected(x, p)], "{mode}, call {call}");
            let reasons = fallbacks(&step);
            let counted = matches!(
                &reasons[..],
                [FallbackReason::NoConditionalNodes { found, .. }] if found == "12.2"
            );
            assert_eq!(counted, call > 0, "{mode}, call {call}: {reasons:?}");
        }
        assert_eq!(rt.stats().recordings, 0);
    }
}

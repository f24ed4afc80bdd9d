//! Where bodies put what they make.

use graphable::{backend::faulty::FaultCall, prelude::*};

use crate::support::{MODES, build, faulty, runtime, setups};

/// Bodies that each need eight blocks of `B` numbers at a time, one after the other.
#[graphable]
fn heavy(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host] i: &Scalar<u32>,
    #[key] bodies: usize,
) -> Result<Tensor<f32>> {
    let values: Vec<u32> = (0..bodies as u32).collect();
    let cases: Vec<&[u32]> = values.iter().map(std::slice::from_ref).collect();
    control::switch(i, &cases, |body| {
        let all: Vec<_> = (0..8).map(|k| ops::add(x, (body * 8 + k) as f32)).collect::<Result<_>>()?;
        let mut sum = ops::zeros(x.scope(), x.shape())?;
        for each in &all {
            sum = ops::add(&sum, each)?;
        }
        Ok::<_, Error>(sum)
    })
}

#[test]
fn bodies_start_from_the_same_memory() {
    const SIZE: usize = 4096;
    if crate::device::skipped_with_gaps("bodies_start_from_the_same_memory") {
        return;
    }
    let pool = |bodies: usize| {
        let mut rt = runtime();
        let graph = HeavyGraph::builder().build(&mut rt).unwrap();
        let x = vec![1.0; SIZE];
        for call in 0..6 {
            let i = call % bodies.max(1) as u32;
            let step = rt.step().unwrap();
            let y = graph.call(&step, &x, i, bodies).unwrap();
            let body = (i as usize).min(bodies);
            let expected: f32 = (0..8).map(|k| 1.0 + (body * 8 + k) as f32).sum();
            assert_eq!(step.read(&y).unwrap(), vec![expected; SIZE]);
            step.check_memory().unwrap();
        }
        let memory = rt.memory();
        assert!(rt.stats().recordings <= 2, "one graph, and another one if the result has a better place");
        memory.pool_recorded_bytes
    };
    let (one, many) = (pool(1), pool(6));
    assert_eq!(one, many, "six bodies need no more than one");
}

/// A value from outside that is used for the last time in the first body, before larger blocks are made there and in
/// the second one, which uses it too; and a loop that uses one in each round.
#[graphable]
fn outlived(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host] p: &Scalar<bool>,
) -> Result<Tensor<f32>> {
    let shared = ops::scale(x, 3.0)?;
    let y = control::cond(
        p,
        || {
            let first = ops::add(&shared, 1.0)?;
            let second = ops::add(&first, 1.0)?;
            let third = ops::add(&second, &first)?;
            ops::neg(&third)
        },
        || {
            let (a, b) = (ops::neg(x)?, ops::neg(x)?);
            let sum = ops::add(&ops::add(&a, &b)?, &shared)?;
            ops::add(&sum, &ops::neg(&sum)?)
        },
    )?;
    let step = ops::scale(x, 0.5)?;
    let (_, z) = control::while_loop(
        10,
        (ops::full(x.scope(), (), 0u32)?, y),
        |(i, _)| ops::lt(i, 4),
        |(i, z)| {
            let first = ops::add(&z, &step)?;
            let (second, third) = (ops::neg(&first)?, ops::neg(&first)?);
            Ok::<_, Error>((ops::add(&i, 1)?, ops::sub(&first, &ops::sub(&second, &third)?)?))
        },
    )?;
    Ok::<_, Error>(z)
}

#[test]
fn memory_from_outside_lives_to_the_end_of_the_node() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = build!(OutlivedGraph, setup, &mut rt);
        for call in 0..9 {
            let (p, x) = (call % 3 == 0, [call as f32, -1.0]);
            let step = rt.step().unwrap();
            let z = graph.call(&step, &x, p).unwrap();
            let of = |x: f32| {
                let y = if p { -(2.0 * (3.0 * x + 1.0) + 1.0) } else { 0.0 };
                y + 4.0 * 0.5 * x
            };
            assert_eq!(step.read(&z).unwrap(), x.map(of), "{setup:?}, call {call}");
            step.check_memory().unwrap();
        }
    }
}

/// Nothing is left of a node whose body fails or panics, and the runtime goes on.
#[graphable]
fn failing(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host] p: &Scalar<bool>,
    #[key] place: usize,
) -> Result<Tensor<f32>> {
    let fails = |at: usize| {
        assert!(place != at + 100, "asked to");
        if place == at { Err(Error::Argument { op: "test", reason: "asked to".into() }) } else { Ok(()) }
    };
    let zero = ops::full(x.scope(), (), 0u32)?;
    let y = control::cond(
        p,
        || {
            let y = ops::neg(x)?;
            fails(0)?;
            let (_, z) = control::while_loop(
                3,
                (zero.clone(), y.clone()),
                |(i, _)| {
                    fails(1)?;
                    ops::lt(i, 2)
                },
                |(i, z)| {
                    let z = ops::add(&z, &y)?;
                    fails(2)?;
                    Ok((ops::add(&i, 1)?, z))
                },
            )?;
            Ok::<_, Error>(z)
        },
        || {
            let (a, _) = join(x.scope(), || ops::scale(x, 3.0), || fails(3))?;
            fails(4)?;
            Ok(a)
        },
    )?;
    ops::add(&y, 1.0)
}

#[test]
fn bodies_that_fail_leave_nothing() {
    for mode in MODES {
        for place in (0..5).chain(100..105) {
            let mut rt = runtime();
            let graph = FailingGraph::builder().mode(mode).build(&mut rt).unwrap();
            for call in 0..6 {
                let step = rt.step().unwrap();
                let place = if call % 2 == 0 { place } else { 9 };
                let call = || graph.call(&step, &[2.0], true, place);
                match std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)) {
                    Ok(Ok(y)) => {
                        assert_eq!(place, 9);
                        assert_eq!(step.read(&y).unwrap(), [-5.0], "{mode}");
                    }
                    Ok(Err(error)) => {
                        assert!(place < 9 && matches!(error, Error::Argument { op: "test", .. }), "{error}");
                    }
                    Err(_) => assert!(place >= 100),
                }
                step.check_memory().unwrap();
            }
            rt.reset().unwrap();
            let memory = rt.memory();
            for arena in [memory.pool, memory.results, memory.eager] {
                assert_eq!(arena.live_bytes, 0, "{mode}, {place}");
            }
        }
    }
}

#[test]
fn the_device_may_fail_anywhere() {
    for mode in MODES {
        for nth in 0.. {
            let (mut rt, faults) = faulty();
            let graph = FailingGraph::builder().mode(mode).build(&mut rt).unwrap();
            faults.arm(None, nth, false);
            for call in 0..4 {
                let step = rt.step();
                let Ok(step) = step else { continue };
                let y = graph.call(&step, &[2.0], call != 2, 9).and_then(|y| step.read(&y));
                if let Ok(y) = y {
                    assert_eq!(y, [if call == 2 { 7.0 } else { -5.0 }], "{mode}, {nth}");
                }
                step.check_memory().unwrap();
            }
            let is_over = faults.disarm();
            // What no call could report yet.
            drop(rt.step());
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[2.0], true, 9).unwrap();
            assert_eq!(step.read(&y).unwrap(), [-5.0], "{mode}, after a failure at {nth}");
            drop((y, step));
            rt.reset().unwrap();
            drop(graph);
            rt.reset().unwrap();
            assert_eq!(faults.live_executables(), 0, "{mode}, {nth}");
            if is_over {
                assert!(nth > 20, "nothing was called");
                break;
            }
        }
    }
}

/// Each call of conditional nodes at each of its places, with an error, and with the loss of the device, in bodies that fork and
/// fail.
#[test]
fn the_calls_of_nodes_may_fail_or_lose_the_device() {
    for call in [FaultCall::BeginConditional, FaultCall::BeginBody, FaultCall::EndConditional] {
        for (mode, lost) in [Mode::Piecewise, Mode::Full].into_iter().flat_map(|m| [(m, false), (m, true)]) {
            let what = |nth: u64| format!("{call:?} {nth}, {mode}, lost: {lost}");
            for nth in 0.. {
                let (mut rt, faults) = faulty();
                let graph = FailingGraph::builder().mode(mode).build(&mut rt).unwrap();
                let run = |rt: &mut Runtime| {
                    let step = rt.step()?;
                    step.read(&graph.call(&step, &[2.0], true, 9)?)
                };
                faults.arm(Some(call), nth, lost);
                let errors: Vec<Error> = (0..4).filter_map(|_| run(&mut rt).err()).collect();
                if faults.disarm() {
                    assert!(nth > 0, "the graph makes no call {}", what(nth));
                    assert!(errors.is_empty(), "{}", what(nth));
                    break;
                }
                assert!(!errors.is_empty(), "{}: a fault was swallowed", what(nth));
                let says_so = |e: &Error| matches!(e, Error::ContextLost { .. }) == lost;
                assert!(errors.iter().all(says_so), "{}: {errors:?}", what(nth));
                let after = run(&mut rt);
                match lost {
                    true => assert!(after.as_ref().is_err_and(says_so), "{}: {after:?}", what(nth)),
                    false => assert_eq!(after.unwrap(), [-5.0], "{}", what(nth)),
                }
                drop(graph);
                drop(rt);
                assert_eq!(faults.live_executables(), 0, "{}", what(nth));
            }
        }
    }
}

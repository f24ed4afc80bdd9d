//! Audits of recordings that passes changed, with and without a bound.

use std::sync::{Arc, Mutex};

use graphable::{
    Mode, Passes,
    passes::{Bound, Nesting, Pass},
    prelude::*,
};

use super::{AMBIENT, Closure, TwoGraph, X, call, only, replacing_neg, runtime, times, unary};

#[test]
fn audits_hold_a_pass_to_what_it_promises() {
    let wrong = || replacing_neg(-1.001);
    for (pass, every_audit) in [
        (wrong(), Some("output 0: first at byte 0 of 8")),
        (wrong().within(Bound::relative(0.01)), None),
        (wrong().within(Bound::absolute(0.01)), None),
        (
            wrong().within(Bound::relative(1e-4)),
            Some(
                "output 0: element 0: the replay gave 3.003000259399414, the body 3, beyond 0.0001 of the value",
            ),
        ),
        (wrong().within(Bound::absolute(-1.0)), Some("output 0: element 0: ")),
    ] {
        for mode in [Mode::Piecewise, Mode::Full] {
            let pass =
                Closure { bound: pass.bound, code: Box::new(|program| replacing_neg(-1.001).run(program)) };
            let mut rt = runtime();
            rt.set_passes(only(pass));
            let sum = State::new(&rt, &[2], &[0.0f32; 2]).unwrap();
            let graph = TwoGraph::builder().mode(mode).audit_every(1).build(&mut rt).unwrap();
            call(&mut rt, &graph, &sum).unwrap();
            call(&mut rt, &graph, &sum).unwrap();
            for _ in 0..3 {
                match (every_audit, call(&mut rt, &graph, &sum)) {
                    (None, Ok((z, _))) => assert_eq!(z, X.map(|x| (x * -1.001f32).abs())),
                    (Some(expected), Err(Error::AuditMismatch { what, detail, .. })) => {
                        let found = format!("{what}: {detail}");
                        assert!(found.starts_with(expected), "{found}");
                    }
                    other => panic!("{other:?}"),
                }
            }
            rt.check_memory().unwrap();
        }
    }
}

/// What does not depend on the pass is compared bit by bit, however large its bound is.
#[test]
fn a_bound_is_for_what_depends_on_the_pass_alone() {
    let mut rt = runtime();
    rt.set_passes(only(replacing_neg(-1.0).within(Bound::absolute(1e9))));
    let sum = State::new(&rt, &[2], &[0.0f32; 2]).unwrap();
    let graph = TwoGraph::builder().audit_every(1).build(&mut rt).unwrap();
    for _ in 0..3 {
        call(&mut rt, &graph, &sum).unwrap();
    }
    AMBIENT.set(3.0);
    let error = call(&mut rt, &graph, &sum).unwrap_err();
    AMBIENT.set(1.0);
    assert!(matches!(&error, Error::AuditMismatch { what, .. } if what == "output 1"), "{error}");
    call(&mut rt, &graph, &sum).unwrap();
}

/// A copy of a state lies where a tensor was that depended on the pass.
#[graphable]
fn copied(x: &Tensor<f32>, state: &State<f32>) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let z = ops::abs(&ops::neg(x)?)?;
    let copy = ops::load(x.scope(), state)?;
    let other = if AMBIENT.get() == 1.0 { ops::sub(&copy, x)? } else { ops::sub(x, &copy)? };
    Ok((z, other))
}

#[test]
fn freed_memory_does_not_depend_on_the_pass() {
    let mut rt = runtime();
    rt.set_passes(only(replacing_neg(-1.0).within(Bound::absolute(1e9))));
    let state = State::new(&rt, &[2], &[5.0f32; 2]).unwrap();
    let graph = CopiedGraph::builder().audit_every(1).build(&mut rt).unwrap();
    let call = |rt: &mut Runtime| {
        let step = rt.step()?;
        let (_, other) = graph.call(&step, &step.tensor(&[2], &X)?, &state)?;
        step.read(&other)
    };
    for _ in 0..3 {
        call(&mut rt).unwrap();
    }
    AMBIENT.set(3.0);
    let error = call(&mut rt).unwrap_err();
    AMBIENT.set(1.0);
    assert!(matches!(&error, Error::AuditMismatch { what, .. } if what == "output 1"), "{error}");
}

/// Rows of a state, of which some depend on the pass.
#[graphable]
fn rows(x: &Tensor<f32>, at: &Tensor<u32>, table: &State<f32>, log: &State<f32>) -> Result<Tensor<f32>> {
    ops::store(log, x)?;
    let y = ops::neg(x)?;
    ops::scatter_rows(table, at, &ops::reshape(&y, (1, 2))?)?;
    ops::abs(x)
}

#[test]
fn states_are_compared_within_the_bound() {
    for (bound, is_fine) in
        [(Some(Bound::absolute(0.5)), true), (Some(Bound::absolute(1e-6)), false), (None, false)]
    {
        let mut rt = runtime();
        rt.set_passes(only(Closure { bound, ..replacing_neg(-1.01) }));
        let (table, log) =
            (State::new(&rt, &[3, 2], &[7.0f32; 6]).unwrap(), State::new(&rt, &[2], &[0.0f32; 2]).unwrap());
        let graph = RowsGraph::builder().audit_every(1).build(&mut rt).unwrap();
        for round in 0..4 {
            let step = rt.step().unwrap();
            let (x, at) = (step.tensor(&[2], &X).unwrap(), step.tensor(&[1], &[1u32]).unwrap());
            let called = graph.call(&step, &x, &at, &table, &log).and_then(|y| step.read(&y));
            match (round < 2 || is_fine, called) {
                (true, Ok(y)) => assert_eq!(y, [3.0, 4.0]),
                (false, Err(Error::AuditMismatch { what, .. })) => {
                    assert!(what.starts_with("state "), "{what}")
                }
                other => panic!("{other:?}"),
            }
            if is_fine && round > 0 {
                assert_eq!(
                    step.read(&ops::load(step.scope(), &table).unwrap()).unwrap(),
                    [7.0, 7.0, -3.03, 4.04, 7.0, 7.0]
                );
            }
        }
    }
}

/// What a round leaves, the next one reads; and `other` is written by rounds of which a replaced launch decides the number.
#[graphable]
fn rounds(x: &Tensor<f32>) -> Result<(Tensor<f32>, Tensor<f32>, Tensor<f32>)> {
    let mut y = ops::abs(x)?;
    let mut n = ops::full(x.scope(), (), 0u32)?;
    let mut other = ops::zeros_like(x)?;
    #[device]
    while ops::lt(&n, 3)? {
        other = ops::add(&other, &y)?;
        y = ops::neg(&y)?;
        n = ops::add(&n, 1)?;
    }
    Ok((y, other, ops::scale(x, 2.0)?))
}

#[test]
fn results_of_bodies_depend_on_earlier_rounds() {
    for (bound, is_fine) in [(Some(Bound::absolute(1.0)), true), (None, false)] {
        let mut rt = runtime();
        rt.set_passes(Passes::default().with_at(0, Closure { bound, ..replacing_neg(-1.01) }));
        let graph = RoundsGraph::builder().audit_every(1).build(&mut rt).unwrap();
        for round in 0..4 {
            let step = rt.step().unwrap();
            let called = graph.call(&step, &step.tensor(&[2], &X).unwrap());
            let called = called
                .and_then(|(y, other, twice)| Ok((step.read(&y)?, step.read(&other)?, step.read(&twice)?)));
            match (round < 2 || is_fine, called) {
                (true, Ok((y, _, twice))) => {
                    let exact = y == [-3.0, -4.0];
                    assert_eq!((exact, twice), (round == 0, vec![6.0, -8.0]), "{y:?}");
                }
                (false, Err(Error::AuditMismatch { .. })) => {}
                other => panic!("{other:?}"),
            }
        }
        let nested = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&nested);
        rt.set_passes(only(Closure::new(move |program| {
            let nesting = program.launches().map(|launch| (launch.operation(), launch.nesting().to_vec()));
            noted.lock().unwrap().extend(nesting.filter(|(name, _)| ["neg", "scale"].contains(name)));
            Ok(())
        })));
        for _ in 0..2 {
            let step = rt.step().unwrap();
            graph.call(&step, &step.tensor(&[2], &X).unwrap()).unwrap();
        }
        assert_eq!(*nested.lock().unwrap(), [("neg", vec![Nesting::Body(0)]), ("scale", vec![])]);
    }
}

/// The bound of what depends on two passes is the sum of theirs.
#[test]
fn bounds_add_up() {
    for (bound, is_fine) in [(0.05, true), (0.03, false)] {
        let passes = || {
            let abs = Closure::new(move |program| {
                for (id, x, y) in unary(program, "abs") {
                    program.replace(&[id], times(1.01, x, y))?;
                }
                Ok(())
            });
            only(replacing_neg(1.01).within(Bound::absolute(bound))).with(abs.within(Bound::absolute(bound)))
        };
        let mut rt = runtime();
        rt.set_passes(passes());
        let sum = State::new(&rt, &[2], &[0.0f32; 2]).unwrap();
        let graph = TwoGraph::builder().audit_every(1).build(&mut rt).unwrap();
        for round in 0..4 {
            let step = rt.step().unwrap();
            // Where both are right but for rounding: 4 * 1.01 * 1.01 is 0.0804 too large.
            let called = graph.call(&step, &step.tensor(&[2], &[3.0f32, 4.0]).unwrap(), &sum);
            assert_eq!(called.is_ok(), round < 2 || is_fine, "{bound}: {:?}", called.err());
        }
    }
}

//! Bodies, drivers and regions that panic, and bodies that swallow errors.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
};

use graphable::{Error, Mode, Runtime, ops};

use crate::support::*;

thread_local! {
    /// What bodies wrongly depend on.
    static VARIANT: Cell<u32> = const { Cell::new(0) };
}

#[test]
fn panics_in_bodies() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let full = vector(&mut rt, Mode::Full);
    let call = |rt: &mut Runtime, graph: &Graph, n: u32, bad: u32| {
        VARIANT.set(bad);
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], n, |cx, a| {
            let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
            seg!("b", cx, (&h, &n), |k| {
                let y = ops::neg(k.0)?;
                assert!(VARIANT.get() != 1, "on purpose");
                if VARIANT.get() == 2 {
                    return Err(Error::Argument { op: "body", reason: "on purpose".into() });
                }
                Ok(y)
            })
        });
        y.and_then(|y| step.read(&y))
    };
    for graph in [&graph, &full] {
        for bad in [1, 2] {
            // While warming up, and while recording.
            for _ in 0..2 {
                let outcome = catch_unwind(AssertUnwindSafe(|| call(&mut rt, graph, bad, bad)));
                match (bad, outcome) {
                    (1, Err(panic)) => assert!(panic.is::<&str>() || panic.is::<String>()),
                    (2, Ok(Err(Error::Argument { op: "body", .. }))) => {}
                    (_, other) => panic!("{other:?}"),
                }
                still_usable(&mut rt);
                assert_eq!(call(&mut rt, graph, bad, 0).unwrap(), [-2.0, -4.0]);
            }
        }
    }
}

#[test]
fn panics_in_the_driver_and_in_regions() {
    for mode in MODES {
        let mut rt = runtime();
        let graph = vector(&mut rt, mode);
        for place in 0..6 {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let step = rt.step().unwrap();
                let y = graph.call(&step, &[x()], (), |cx, a| {
                    let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
                    assert!(place % 3 != 0, "on purpose");
                    let e = eager!("e", Always, cx, |_e| {
                        assert!(place % 3 != 1, "on purpose");
                        ops::neg(&h)
                    });
                    seg!("b", cx, (&e,), |k| ops::neg(k.0))
                });
                step.read(&y.unwrap()).unwrap()
            }));
            match outcome {
                Ok(values) => assert_eq!((place % 3, values), (2, vec![2.0, 4.0])),
                Err(_) => assert!(place % 3 != 2, "{mode}, place {place}"),
            }
        }
        still_usable(&mut rt);
    }
}

/// Failed operations whose error the body swallows: what it does then must not become a recording.
#[test]
fn errors_that_a_body_swallows() {
    let (mut rt, faults) = faulty();
    let graph = vector(&mut rt, Mode::Piecewise);
    let call = |rt: &mut Runtime| {
        let step = rt.step()?;
        let y = graph.call(&step, &[x()], (), |cx, a| {
            seg!("a", cx, (&a.t[0],), |k| {
                let first = ops::scale(k.0, 2.0);
                let second = ops::neg(k.0)?;
                first.map_or(Ok(second), |f| ops::neg(&f))
            })
        });
        y.and_then(|y| step.read(&y))
    };
    for _ in 0..2 {
        faults.arm(Some(graphable::backend::faulty::FaultCall::Launch), 0, false);
        match call(&mut rt) {
            Ok(values) => assert_eq!(values, [-1.0, -2.0], "what the body chose"),
            Err(error) => assert!(matches!(error, Error::Device { .. }), "{error}"),
        }
        assert!(!faults.disarm());
        assert_eq!(rt.stats().recordings, 0);
        assert_eq!(call(&mut rt).unwrap(), [-2.0, -4.0]);
    }
}

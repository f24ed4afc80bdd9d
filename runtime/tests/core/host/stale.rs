//! Tensors whose memory is not theirs any more: using one is a typed error, never another's values.

#![allow(clippy::result_large_err, reason = "an error that holds a tensor is what these tests are about")]

use std::cell::{Cell, RefCell};

use graphable::{Error, Mode, Result, Runtime, Schedule, State, Step, ops};

use crate::support::*;

thread_local!(static FAILS: Cell<bool> = const { Cell::new(false) });

/// An error that holds a tensor of the body.
enum Held<'s> {
    Tensor(T<'s>),
    Other(Error),
}

impl From<Error> for Held<'_> {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

fn never<O>(what: &str, result: Result<O>) {
    match result {
        Err(Error::NeverComputed { .. }) => {}
        Err(other) => panic!("{what}: {other}"),
        Ok(_) => panic!("{what}: it was accepted"),
    }
}

/// `-x`, as the output of a segment, or in its error.
fn negated<'s>(cx: Piecewise<'s>, a: &Args<'s>, fails: bool) -> std::result::Result<(T<'s>,), Held<'s>> {
    FAILS.set(fails);
    cx.segment(site!("fails"), (&a.t[0],), |k| {
        let y = ops::neg(k.0)?;
        if FAILS.get() { Err(Held::Tensor(y)) } else { Ok((y,)) }
    })
}

fn from_a_failed_segment<'s>(cx: Piecewise<'s>, a: &Args<'s>) -> T<'s> {
    match negated(cx, a, true) {
        Err(Held::Tensor(y)) => y,
        Err(Held::Other(error)) => panic!("{error}"),
        Ok(_) => panic!("it does not fail"),
    }
}

/// The same segment, when it succeeds: it is warmed up now, or recorded.
fn succeeds(rt: &mut Runtime, graph: &Graph) {
    let step = rt.step().unwrap();
    let y = graph.call(&step, &[x()], (), |cx, a| match negated(cx, a, false) {
        Ok((y,)) => Ok(y),
        Err(Held::Tensor(_)) => panic!("it fails"),
        Err(Held::Other(error)) => Err(error),
    });
    assert_eq!(step.read(&y.unwrap()).unwrap(), [-1.0, -2.0]);
}

#[test]
fn an_error_that_holds_a_tensor_of_a_failed_segment() {
    for mode in [Mode::Piecewise, Mode::None] {
        let mut rt = runtime();
        let graph = vector(&mut rt, mode);
        let other = Spec::inputs(vec![any_device("x")]).mode(mode).build(&mut rt);
        // In warm-up, twice, and in a recording.
        for round in 0..3 {
            if round == 2 {
                succeeds(&mut rt, &graph);
            }
            let step = rt.step().unwrap();
            let kept = RefCell::new(None);
            let y = graph.call(&step, &[x()], (), |cx, a| {
                let y = from_a_failed_segment(cx, a);
                let next = seg!("next", cx, (&y,), |k| ops::neg(k.0));
                let region = (|| Ok(eager!("e", cx, |_e| ops::neg(&y))))();
                let through = (|| Ok(eager!("f", cx, |_e| std::result::Result::<_, Error>::Ok(y.clone()))))();
                if mode == Mode::None {
                    // Computed on its own, in memory of its own: as good as any other.
                    return Ok((next?, region?, through?));
                }
                never("a live-in", next);
                never("a region", region);
                never("a region's result", through);
                kept.replace(Some(y.clone()));
                Ok((y.clone(), y.clone(), y))
            });
            match (mode, y) {
                (Mode::None, Ok((a, b, c))) => {
                    assert_eq!(step.read(&a).unwrap(), X);
                    assert_eq!(step.read(&b).unwrap(), X);
                    assert_eq!(step.read(&c).unwrap(), [-1.0, -2.0]);
                }
                (_, Err(Error::NeverComputed { op })) => assert_eq!(op, "an output of a call"),
                (_, Err(other)) => panic!("{mode}, round {round}: {other}"),
                (_, Ok(_)) => panic!("{mode}, round {round}: it was accepted"),
            }
            if let Some(y) = kept.into_inner() {
                after_the_call(&step, &y, &other);
            }
            still_usable(&mut rt);
        }
        assert_eq!(rt.stats().aborted, u64::from(mode != Mode::None));
        succeeds(&mut rt, &graph);
    }
}

/// Everything that a tensor can be used for outside a call.
fn after_the_call<'s>(step: &Step<'s>, y: &T<'s>, other: &Graph) {
    let good = step.tensor(&[2], &X).unwrap();
    never("read", step.read(y));
    never("item", step.item(y));
    never("read_later", step.read_later(y));
    never("nonzero", step.nonzero(y));
    never("a first operand", ops::add(y, &good));
    never("a second operand", ops::add(&good, y));
    never("unary", ops::exp(y));
    never("cast", ops::cast::<_, u32>(y));
    never("a view", ops::reshape(y, &[2, 1]).and_then(|v| ops::exp(&v)));
    never("concat", ops::concat(&[&good, y], 0));
    never("reduce", ops::sum(y, 0));
    never("softmax", ops::softmax(y, 0));
    never("linear", ops::linear(y, &ops::zeros::<f32>(step.scope(), &[1, 2]).unwrap()));
    for mode in MODES {
        never(&format!("an input, {mode}"), other.call(step, &[In::Device(y)], (), |_, _| Ok(())));
    }
    match ops::add(&good, y) {
        Err(error @ Error::NeverComputed { op: "add" }) => {
            assert!(error.to_string().starts_with("add: "), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_state_is_not_written_from_such_a_tensor() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let state = State::new(&rt, &[2], &[5.0, 6.0]).unwrap();
    let step = rt.step().unwrap();
    let kept = RefCell::new(None);
    let y = graph.call(&step, &[x()], (), |cx, a| {
        kept.replace(Some(from_a_failed_segment(cx, a)));
        Ok(())
    });
    y.unwrap();
    let y = kept.take().unwrap();
    never("store", ops::store(&state, &y));
    let ids = step.tensor(&[1], &[0u32]).unwrap();
    let row = ops::reshape(&y, &[1, 2]).unwrap();
    never("scatter_rows", ops::scatter_rows(&state, &ids, &row));
    let ids = step.tensor(&[2], &[0u32, 1]).unwrap();
    never("embedding", ops::embedding(&ids, &ops::reshape(&y, &[2, 1]).unwrap()));
    assert_eq!(step.read(&ops::load(step.scope(), &state).unwrap()).unwrap(), [5.0, 6.0]);
}

#[test]
fn a_static_input_that_outlives_its_call() {
    for mode in MODES {
        let mut rt = runtime();
        let graph = vector(&mut rt, mode);
        let other = Spec::inputs(vec![any_device("x")]).mode(mode).build(&mut rt);
        for round in 0..3 {
            let step = rt.step().unwrap();
            let kept = RefCell::new(None);
            let y = graph.call(&step, &[x()], (), |cx, a| {
                kept.replace(Some(a.t[0].clone()));
                seg!("a", cx, (&a.t[0],), |k| Ok((k.0.clone(), ops::neg(k.0)?)))
            });
            let (same, y) = y.unwrap();
            // The next call writes over the static buffer.
            let z = graph.call(&step, &[In::Host((&[7.0, 8.0]).into())], (), |cx, a| {
                seg!("a", cx, (&a.t[0],), |k| Ok((k.0.clone(), ops::neg(k.0)?)))
            });
            // A replay in full mode does not run the driver.
            match kept.take() {
                Some(kept) => after_the_call(&step, &kept, &other),
                None => assert!(mode == Mode::Full && round > 0),
            }
            assert_eq!(step.read(&same).unwrap(), X, "{mode}, round {round}: an output has its own memory");
            assert_eq!(step.read(&y).unwrap(), [-1.0, -2.0], "{mode}, round {round}");
            assert_eq!(step.read(&z.unwrap().0).unwrap(), [7.0, 8.0], "{mode}, round {round}");
        }
    }
}

const ROWS: &[Dim] = &[Dim::Symbol(0), Dim::Const(2)];

#[test]
fn a_padded_tensor_that_outlives_its_call() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![host("x", ROWS)]) };
        let graph = spec.mode(mode).with(|o| o.bucket("B", Schedule::new([4]))).build(&mut rt);
        let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![host("x", ROWS), any_device("y")]) };
        let other = spec.mode(mode).with(|o| o.bucket("B", Schedule::new([4]))).build(&mut rt);
        let data = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
        for round in 0..4 {
            let step = rt.step().unwrap();
            let kept = RefCell::new(None);
            let y = graph.call(&step, &[In::Host((&data).into())], (), |cx, a| {
                let y = seg!("a", cx, (&a.t[0],), |k| ops::neg(k.0))?;
                kept.replace(Some(y.clone()));
                Ok(y)
            });
            // A replay in full mode does not run the driver.
            let Some(kept) = kept.into_inner() else {
                assert!(mode == Mode::Full && round > 1);
                continue;
            };
            // Until results are placed where they are needed, what stays in the pool is an error of its own.
            let left = matches!(y, Err(Error::UnownedAllocation { .. }));
            assert!(left || step.read(y.as_ref().unwrap()).unwrap() == data.map(|v| -v), "{mode} {round}");
            // Its padding is not to be seen, and the next call's size is not its own.
            never("read", step.read(&kept));
            never("neg", ops::neg(&kept));
            let y = other.call(&step, &[In::Host((&data[..2]).into()), In::Device(&kept)], (), |cx, a| {
                seg!("b", cx, (&a.t[0], &a.t[1]), |k| ops::add(k.0, k.1))
            });
            never("an input", y);
        }
    }
}

/// The host data of a call that launches nothing must not be written when its buffers are gone.
#[test]
fn a_call_that_launches_nothing() {
    for mode in MODES {
        let mut rt = runtime();
        for _ in 0..3 {
            let graph = vector(&mut rt, mode);
            let step = rt.step().unwrap();
            graph.call(&step, &[x()], (), |_, _| Ok(())).unwrap();
            drop(graph);
            let t = step.tensor(&[2], &X).unwrap();
            assert_eq!(step.read(&ops::neg(&t).unwrap()).unwrap(), [-1.0, -2.0], "{mode}");
        }
        rt.synchronize().unwrap();
    }
}

/// A returned input is a copy: it lives on as the input of another call, and after that.
#[test]
fn a_returned_input_is_like_any_tensor() {
    for mode in MODES {
        let mut rt = runtime();
        let graph = vector(&mut rt, mode);
        let other = Spec::inputs(vec![any_device("x")]).mode(mode).build(&mut rt);
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let same = graph.call(&step, &[x()], (), |_, a| Ok(a.t[0].clone())).unwrap();
            let y = other
                .call(&step, &[In::Device(&same)], (), |cx, a| seg!("a", cx, (&a.t[0],), |k| ops::neg(k.0)));
            assert_eq!(step.read(&y.unwrap()).unwrap(), [-1.0, -2.0], "{mode}");
            assert_eq!(step.read(&same).unwrap(), X, "{mode}");
        }
    }
}

/// What was made before the call, and is no live-in, is as good after it as before.
#[test]
fn tensors_of_the_step_live_on() {
    for mode in MODES {
        let mut rt = runtime();
        let graph = Spec::inputs(vec![any_device("x")]).mode(mode).build(&mut rt);
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let t = step.tensor(&[2], &X).unwrap();
            let kept = RefCell::new(None);
            let y = graph.call(&step, &[In::Device(&t)], (), |cx, a| {
                kept.replace(Some(a.t[0].clone()));
                seg!("a", cx, (&a.t[0],), |k| ops::neg(k.0))
            });
            let y = y.unwrap();
            let again = graph
                .call(&step, &[In::Device(&y)], (), |cx, a| seg!("a", cx, (&a.t[0],), |k| ops::neg(k.0)));
            assert_eq!(step.read(&again.unwrap()).unwrap(), X, "{mode}");
            let kept = kept.into_inner().map(|kept| step.read(&kept).unwrap());
            assert!(kept.as_deref().is_none_or(|v| v == X), "{mode}: {kept:?}");
            assert!(kept.is_some() || mode == Mode::Full);
        }
    }
}

//! Graphs on and off: by function, at run time, and by scope.

use graphable::{Mode, Runtime, Step, ops};

use crate::support::*;

/// `3 (2 x)`, with a boundary between.
fn run(graph: &Graph, step: &Step<'_>) -> Vec<String> {
    step.take_events();
    let out = graph.call(step, &[x()], (), |cx, a| {
        let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
        let e = eager!("e", Always, cx, |_e| ops::scale(&h, 3.0));
        seg!("b", cx, (&e,), |k| ops::neg(k.0))
    });
    assert_eq!(step.read(&out.unwrap()).unwrap(), [-6.0, -12.0]);
    events(step)
}

const OFF: [&str; 2] = ["fell back: graphs are switched off here", "eager e"];
const ON: [&str; 3] = ["replayed a", "eager e", "replayed b"];

fn warm(rt: &mut Runtime, graph: &Graph) {
    for _ in 0..3 {
        run(graph, &rt.step().unwrap());
    }
    assert_eq!(run(graph, &rt.step().unwrap()), ON);
}

#[test]
fn a_function_is_switched_off_and_on() {
    let mut rt = runtime();
    for mode in [Mode::Piecewise, Mode::Full] {
        let spec = Spec::inputs(vec![host("x", &[Dim::Const(2)])]).mode(mode);
        let graph = spec.with(|o| o.enabled(false)).build(&mut rt);
        let before = rt.stats();
        assert!(!graph.function.is_enabled());
        for _ in 0..3 {
            assert_eq!(run(&graph, &rt.step().unwrap()), OFF, "{mode}");
        }
        let stats = rt.stats();
        assert_eq!((stats.warmups, stats.recordings), (before.warmups, before.recordings));
        assert_eq!((stats.skips - before.skips, stats.fallbacks), (3, before.fallbacks));
        graph.function.set_enabled(true);
        for _ in 0..3 {
            run(&graph, &rt.step().unwrap());
        }
        assert!(rt.stats().recordings > before.recordings);
        let replays = rt.stats().replays;
        graph.function.set_enabled(false);
        assert_eq!(run(&graph, &rt.step().unwrap()), OFF, "{mode}");
        assert_eq!(rt.stats().replays, replays);
    }
}

/// A function that is off mixes with one that is on.
#[test]
fn one_of_two_functions_is_off() {
    let mut rt = runtime();
    let (f, g) = (vector(&mut rt, Mode::Piecewise), vector(&mut rt, Mode::Piecewise));
    warm(&mut rt, &f);
    g.function.set_enabled(false);
    for _ in 0..3 {
        let step = rt.step().unwrap();
        assert_eq!(run(&f, &step), ON);
        assert_eq!(run(&g, &step), OFF);
        assert_eq!(run(&f, &step)[2], "replayed b");
    }
}

#[test]
fn scopes_nest_and_the_innermost_counts() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    warm(&mut rt, &graph);
    let step = rt.step().unwrap();
    {
        let _off = step.graphs(false);
        assert_eq!(run(&graph, &step), OFF);
        {
            let _on = step.graphs(true);
            assert_eq!(run(&graph, &step), ON);
            {
                let _off = step.graphs(false);
                assert_eq!(run(&graph, &step), OFF);
            }
            assert_eq!(run(&graph, &step), ON);
        }
        assert_eq!(run(&graph, &step), OFF);
    }
    assert_eq!(run(&graph, &step), ON);
    // Guards that end in another order than they began.
    let (outer, inner) = (step.graphs(false), step.graphs(true));
    drop(outer);
    assert_eq!(run(&graph, &step), ON);
    drop(inner);
    let (outer, inner) = (step.graphs(true), step.graphs(false));
    drop(outer);
    assert_eq!(run(&graph, &step), OFF);
    drop(inner);
    assert_eq!(run(&graph, &step), ON);
}

/// Four calls of one function, two of them in a scope that switches graphs off.
#[test]
fn calls_in_scopes_are_recorded_or_not() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    for _ in 0..3 {
        let step = rt.step().unwrap();
        for n in 0..4u32 {
            let _scope = step.graphs(n % 2 == 0);
            let out = graph.call(&step, &[x()], n, |cx, a| {
                seg!("piece", cx, (&a.t[0], &n), |k| ops::scale(k.0, *k.1 as f32))
            });
            assert_eq!(step.read(&out.unwrap()).unwrap(), [n as f32, 2.0 * n as f32]);
        }
    }
    let stats = rt.stats();
    assert_eq!((stats.recordings, stats.skips), (2, 6));
}

/// The switch is looked at where a call starts, and holds to its end, over its boundaries.
#[test]
fn a_call_goes_on_as_it_began() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    warm(&mut rt, &graph);
    for on in [true, false] {
        let step = rt.step().unwrap();
        let outer = step.graphs(on);
        let mut outer = Some(outer);
        let out = graph.call(&step, &[x()], (), |cx, a| {
            let (h,) = seg!("c", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
            drop(outer.take());
            let _other = step.graphs(!on);
            let e = eager!("e", cx, |_e| ops::scale(&h, 3.0));
            seg!("d", cx, (&e,), |k| ops::neg(k.0))
        });
        assert_eq!(step.read(&out.unwrap()).unwrap(), [-6.0, -12.0]);
        let log = events(&step);
        match on {
            true => assert_eq!(log, ["warmed c", "eager e", "warmed d"]),
            false => assert_eq!(log, OFF),
        }
    }
}

#[test]
fn a_runtime_is_switched_off_for_many_steps() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    warm(&mut rt, &graph);
    let n = rt.with_graphs(false, |rt| {
        for _ in 0..2 {
            assert_eq!(run(&graph, &rt.step().unwrap()), OFF);
        }
        rt.with_graphs(true, |rt| assert_eq!(run(&graph, &rt.step().unwrap()), ON));
        assert_eq!(run(&graph, &rt.step().unwrap()), OFF);
        7
    });
    assert_eq!(n, 7);
    assert_eq!(run(&graph, &rt.step().unwrap()), ON);
    // Also when the closure panics.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        rt.with_graphs(false, |_| std::panic::resume_unwind(Box::new("asked for")));
    }));
    assert!(panicked.is_err());
    assert_eq!(run(&graph, &rt.step().unwrap()), ON);
}

/// A guard that is never dropped ends with its step.
#[test]
fn a_forgotten_guard_ends_with_its_step() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    warm(&mut rt, &graph);
    let step = rt.step().unwrap();
    std::mem::forget(step.graphs(false));
    assert_eq!(run(&graph, &step), OFF);
    drop(step);
    assert_eq!(run(&graph, &rt.step().unwrap()), ON);
}

/// A scope does not switch on what is off by itself.
#[test]
fn a_function_that_is_off_stays_off() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    graph.function.set_enabled(false);
    let step = rt.step().unwrap();
    let _on = step.graphs(true);
    assert_eq!(run(&graph, &step), OFF);
}

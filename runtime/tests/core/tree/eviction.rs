//! Parameters and graph objects that go away take their recordings with them.

use graphable::{Mode, Param, Result, Runtime, Step, ops};

use crate::support::*;

/// One segment that uses the parameter, one that does not.
fn call<'s>(graph: &Graph, step: &Step<'s>, w: &Param<f32>) -> Result<T<'s>> {
    graph.call(step, &[In::Host((&[1.0, 2.0]).into())], w, |cx, a| {
        let (h,) = seg!("a", cx, (&a.t[0], w), |k| Ok((ops::add(k.0, k.1)?,)))?;
        seg!("b", cx, (&h,), |k| ops::neg(k.0))
    })
}

fn run(rt: &mut Runtime, graph: &Graph, w: &Param<f32>) -> Vec<f32> {
    let step = rt.step().unwrap();
    let y = call(graph, &step, w).unwrap();
    step.read(&y).unwrap()
}

fn weight(rt: &Runtime, w: f32) -> Param<f32> {
    Param::new(rt, &[2], &[w, w]).unwrap()
}

#[test]
fn a_dropped_parameter() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    let (w, other) = (weight(&rt, 10.0), weight(&rt, 20.0));
    for _ in 0..3 {
        assert_eq!(run(&mut rt, &graph, &w), [-11.0, -12.0]);
        assert_eq!(run(&mut rt, &graph, &other), [-21.0, -22.0]);
    }
    assert_eq!(rt.stats().live_recordings, 3);
    rt.take_events();
    drop(w);
    assert_eq!(rt.stats().live_recordings, 3, "nothing happens before the next step");
    rt.step().unwrap();
    assert_eq!(list(&rt.take_events()), ["evicted 1"]);
    assert_eq!((rt.stats().live_recordings, rt.stats().evicted), (2, 1));
    assert_eq!(run(&mut rt, &graph, &other), [-21.0, -22.0]);
    assert_eq!(list(&rt.take_events()), ["replayed a", "replayed b"], "the others are untouched");
}

#[test]
fn on_another_thread() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    let w = weight(&rt, 10.0);
    for _ in 0..3 {
        run(&mut rt, &graph, &w);
    }
    let clone = w.clone();
    std::thread::spawn(move || drop(w)).join().unwrap();
    assert_eq!(run(&mut rt, &graph, &clone), [-11.0, -12.0], "a clone keeps it");
    assert_eq!(rt.stats().evicted, 0);
    std::thread::spawn(move || drop(clone)).join().unwrap();
    rt.step().unwrap();
    assert_eq!((rt.stats().evicted, rt.stats().live_recordings), (1, 1));
}

#[test]
fn in_the_middle_of_a_step() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    for round in 0..3 {
        let mut w = Some(weight(&rt, 10.0));
        for i in 0..4 {
            let step = rt.step().unwrap();
            let Some(p) = &w else { break };
            let y = call(&graph, &step, p).unwrap();
            let view = step.scope().view(p).unwrap();
            if i == 3 {
                w = None;
            }
            // Work under way, and a view in this step, still use it.
            assert_eq!(step.read(&y).unwrap(), [-11.0, -12.0], "round {round}");
            assert_eq!(step.read(&view).unwrap(), [10.0, 10.0], "round {round}");
        }
    }
    rt.step().unwrap();
    assert_eq!((rt.stats().evicted, rt.stats().live_recordings), (3, 1));
}

/// The allocator gives a new parameter the address of the old one: it must not pass for it.
#[test]
fn a_replaced_parameter_never_replays_the_old_one() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    for i in 0..20 {
        let w = weight(&rt, i as f32);
        for _ in 0..2 {
            assert_eq!(run(&mut rt, &graph, &w), [-1.0 - i as f32, -2.0 - i as f32]);
        }
    }
    rt.step().unwrap();
    let stats = rt.stats();
    assert_eq!(stats.live_recordings, 1, "only `b` is left");
    assert_eq!(stats.evicted, stats.recordings - 1);
}

#[test]
fn memory_is_given_back() {
    let (mut rt, plan) = faulty();
    let live = || plan.live_memory().1;
    let graph = vector(&mut rt, Mode::default());
    let other = weight(&rt, 5.0);
    for _ in 0..3 {
        run(&mut rt, &graph, &other);
    }
    let before = live();
    for i in 0..8 {
        let w = weight(&rt, i as f32);
        for _ in 0..3 {
            assert_eq!(run(&mut rt, &graph, &w), [-1.0 - i as f32, -2.0 - i as f32]);
        }
        drop(w);
        assert!(live() > before, "a recording keeps what it uses");
        rt.step().unwrap();
        rt.synchronize().unwrap();
        assert_eq!(live(), before, "round {i}");
    }
    // The static input and the host block go with the graph object, and the rest with its owner.
    drop((graph, other));
    rt.step().unwrap();
    rt.synchronize().unwrap();
    assert_eq!((live(), rt.stats().live_recordings), (0, 0));
}

#[test]
fn a_dropped_graph_object() {
    let mut rt = runtime();
    let w = weight(&rt, 10.0);
    let (one, two) = (vector(&mut rt, Mode::default()), vector(&mut rt, Mode::default()));
    for _ in 0..3 {
        run(&mut rt, &one, &w);
        run(&mut rt, &two, &w);
    }
    let before = rt.stats().live_recordings;
    rt.take_events();
    drop(one);
    rt.step().unwrap();
    let log = list(&rt.take_events());
    assert!(log.len() == 1 && log[0].starts_with("evicted"), "{log:?}");
    assert!(rt.stats().live_recordings < before);
    for _ in 0..3 {
        assert_eq!(run(&mut rt, &two, &w), [-11.0, -12.0]);
    }
    drop(two);
    rt.step().unwrap();
    assert_eq!(rt.stats().live_recordings, 0);
    let three = vector(&mut rt, Mode::default());
    for _ in 0..3 {
        assert_eq!(run(&mut rt, &three, &w), [-11.0, -12.0]);
    }
}

#[test]
fn handles_may_go_in_any_order() {
    for order in 0..4 {
        let mut rt = runtime();
        let graph = vector(&mut rt, Mode::default());
        let w = weight(&rt, 10.0);
        for _ in 0..3 {
            run(&mut rt, &graph, &w);
        }
        match order {
            0 => drop((rt, graph, w)),
            1 => drop((w, graph, rt)),
            2 => drop((graph, rt, w)),
            _ => {
                // To another thread, with everything that was recorded.
                let values = std::thread::spawn(move || {
                    let mut rt = rt;
                    let values = run(&mut rt, &graph, &w);
                    assert_eq!(rt.stats().replays, 4);
                    values
                });
                assert_eq!(values.join().unwrap(), [-11.0, -12.0]);
            }
        }
    }
}

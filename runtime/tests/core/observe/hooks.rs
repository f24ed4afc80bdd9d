//! Rows 93 and 94 of the peers' tests: hooks hear of every recording's life, in order.

use std::sync::{Arc, Mutex};

use graphable::{Error, Lifecycle, LifecycleEvent, Mode, Param, Runtime, backend::faulty::FaultCall, ops};

use crate::support::*;

type Log = Arc<Mutex<Vec<String>>>;

fn logged(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

/// `who: recorded a`, `who: replayed a`, …
fn hook(log: &Log, who: &'static str) -> impl FnMut(&LifecycleEvent) + Send + 'static {
    let log = Arc::clone(log);
    move |event| {
        let what = match &event.what {
            Lifecycle::Recorded => "recorded".to_owned(),
            Lifecycle::Instantiated { kernels, bytes } => {
                assert!(*kernels > 0 && (*bytes > 0 || crate::device::gpu().is_some()), "{event}");
                "instantiated".to_owned()
            }
            Lifecycle::Replayed { error: None } => "replayed".to_owned(),
            Lifecycle::Replayed { error: Some(reason) } => {
                assert!(reason.contains("the test said so"), "{event}");
                "failed".to_owned()
            }
            Lifecycle::Destroyed => "destroyed".to_owned(),
            other => format!("{other:?}"),
        };
        log.lock().unwrap().push(format!("{who}: {what} {}", event.segment.function));
    }
}

fn call(rt: &mut Runtime, graph: &Graph, w: &Param<f32>) -> Result<Vec<f32>, Error> {
    let step = rt.step()?;
    let y = graph.call(&step, &[x()], (w,), |cx, a| {
        let (h,) = seg!("a", cx, (&a.t[0], w), |k| Ok((ops::mul(k.0, k.1)?,)))?;
        seg!("b", cx, (&h,), |k| ops::neg(k.0))
    })?;
    step.read(&y)
}

fn settled(rt: &mut Runtime, graph: &Graph, w: &Param<f32>) {
    for _ in 0..4 {
        assert_eq!(call(rt, graph, w).unwrap(), [-3.0, -8.0]);
    }
}

fn weight(rt: &Runtime) -> Param<f32> {
    Param::new(rt, &[2], &[3.0, 4.0]).unwrap()
}

/// `Recorded` to the first replay of one recording, as `who` hears it.
fn born(who: &str, name: &str) -> [String; 3] {
    ["recorded", "instantiated", "replayed"].map(|what| format!("{who}: {what} {name}"))
}

#[test]
fn a_life_in_order() {
    let mut rt = runtime();
    let w = weight(&rt);
    let graph = vector(&mut rt, Mode::Piecewise);
    let log = Log::default();
    rt.on_lifecycle(hook(&log, "h"));
    call(&mut rt, &graph, &w).unwrap();
    assert_eq!(logged(&log), Vec::<String>::new(), "a warm-up is no recording");
    call(&mut rt, &graph, &w).unwrap();
    assert_eq!(logged(&log), [born("h", "a"), born("h", "b")].concat());
    call(&mut rt, &graph, &w).unwrap();
    assert_eq!(logged(&log), ["h: replayed a", "h: replayed b"]);
    drop(w);
    assert_eq!(logged(&log), Vec::<String>::new(), "dropping only queues");
    rt.step().unwrap();
    assert_eq!(logged(&log), ["h: destroyed a"]);
    drop(rt);
    assert_eq!(logged(&log), ["h: destroyed b"], "once each, the rest with the runtime");
    drop(graph);
    assert_eq!(logged(&log), Vec::<String>::new());
}

#[test]
fn in_the_order_of_registration_and_removable() {
    let mut rt = runtime();
    let w = weight(&rt);
    let graph = vector(&mut rt, Mode::Piecewise);
    settled(&mut rt, &graph, &w);
    let log = Log::default();
    let first = rt.on_lifecycle(hook(&log, "1"));
    let second = rt.on_lifecycle(hook(&log, "2"));
    rt.on_lifecycle(hook(&log, "3"));
    call(&mut rt, &graph, &w).unwrap();
    let all = [
        "1: replayed a",
        "2: replayed a",
        "3: replayed a",
        "1: replayed b",
        "2: replayed b",
        "3: replayed b",
    ];
    assert_eq!(logged(&log), all);
    assert!(rt.remove_hook(second));
    assert!(!rt.remove_hook(second), "it is gone");
    call(&mut rt, &graph, &w).unwrap();
    assert_eq!(logged(&log), ["1: replayed a", "3: replayed a", "1: replayed b", "3: replayed b"]);
    assert!(rt.remove_hook(first));
    let again = rt.on_lifecycle(hook(&log, "4"));
    assert!(again != first && again != second);
    call(&mut rt, &graph, &w).unwrap();
    assert_eq!(logged(&log), ["3: replayed a", "4: replayed a", "3: replayed b", "4: replayed b"]);
}

#[test]
fn of_one_graph_object() {
    let mut rt = runtime();
    let w = weight(&rt);
    let (one, two) = (vector(&mut rt, Mode::Full), vector(&mut rt, Mode::Full));
    let log = Log::default();
    assert!(one.function.id() != two.function.id());
    rt.on_lifecycle_of(one.function.id(), hook(&log, "one"));
    let both = rt.on_lifecycle(hook(&log, "both"));
    settled(&mut rt, &one, &w);
    settled(&mut rt, &two, &w);
    let all = logged(&log);
    let of = |who: &str| all.iter().filter(|e| e.starts_with(who)).count();
    assert_eq!(of("both"), 2 * of("one"), "{all:?}");
    assert!(of("one") >= 4, "{all:?}");
    rt.remove_hook(both);
    settled(&mut rt, &two, &w);
    drop(two);
    rt.step().unwrap();
    assert_eq!(logged(&log), Vec::<String>::new());
    drop(one);
    rt.step().unwrap();
    let last = logged(&log);
    assert!(last.len() == 1 && last[0].starts_with("one: destroyed"), "{last:?}");
}

#[test]
fn a_replay_that_fails_ends_too() {
    let (mut rt, plan) = faulty();
    let w = weight(&rt);
    let graph = vector(&mut rt, Mode::Piecewise);
    let log = Log::default();
    call(&mut rt, &graph, &w).unwrap();
    rt.on_lifecycle(hook(&log, "h"));
    // The first run of a recording.
    plan.arm(Some(FaultCall::Replay), 0, false);
    call(&mut rt, &graph, &w).unwrap_err();
    let life = ["recorded", "instantiated", "failed", "destroyed"].map(|what| format!("h: {what} a"));
    assert_eq!(logged(&log), life, "it never came to be");
    settled(&mut rt, &graph, &w);
    let numbers: Vec<usize> = rt.tree().recordings.iter().map(|n| n.id.number()).collect();
    assert!(!numbers.contains(&0), "its number is not given again: {numbers:?}");
    logged(&log);
    // A later one.
    plan.arm(Some(FaultCall::Replay), 1, false);
    call(&mut rt, &graph, &w).unwrap_err();
    assert_eq!(logged(&log), ["h: replayed a", "h: failed b"]);
    settled(&mut rt, &graph, &w);
    assert!(!logged(&log).iter().any(|e| e.contains("recorded")), "the recordings are still good");
}

#[test]
fn a_hook_may_panic() {
    let mut rt = runtime();
    let w = weight(&rt);
    let graph = vector(&mut rt, Mode::Piecewise);
    settled(&mut rt, &graph, &w);
    let log = Log::default();
    let mut left = 1;
    let bad = rt.on_lifecycle(move |_| {
        if left > 0 {
            left -= 1;
            panic!("a hook's own");
        }
    });
    rt.on_lifecycle(hook(&log, "h"));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| call(&mut rt, &graph, &w)));
    assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"a hook's own"));
    settled(&mut rt, &graph, &w);
    assert!(!logged(&log).is_empty());
    assert!(rt.remove_hook(bad), "it is still there");
    still_usable(&mut rt);
}

/// One that panics at everything keeps nothing from the others.
#[test]
fn a_panic_swallows_no_notices() {
    let mut rt = runtime();
    let w = weight(&rt);
    let graph = vector(&mut rt, Mode::Piecewise);
    let (first, last) = (Log::default(), Log::default());
    rt.on_lifecycle(hook(&first, "h"));
    rt.on_lifecycle(|event| panic!("at {event}"));
    rt.on_lifecycle(hook(&last, "h"));
    let mut panics = Vec::new();
    for _ in 0..12 {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| call(&mut rt, &graph, &w)));
        panics.extend(caught.err().and_then(|panic| panic.downcast::<String>().ok()));
    }
    // A step that evicts panics, too; the next one goes.
    drop((w, graph));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rt.step().map(drop)));
    assert!(caught.is_err());
    rt.step().unwrap();
    let heard = logged(&first);
    assert_eq!(heard, logged(&last));
    let of = |what: &str| heard.iter().filter(|e| e.contains(what)).count();
    assert_eq!((of("recorded a"), of("instantiated a"), of("destroyed a")), (1, 1, 1), "{heard:?}");
    assert!(of("replayed a") > 5, "{heard:?}");
    assert!(panics.iter().all(|p| p.starts_with("at recording")), "the first panic goes through: {panics:?}");
    // The runtime's end would panic, too.
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(rt)));
    assert!(ended.is_err() || logged(&last).is_empty());
}

/// Row 93: nothing is destroyed while anything is captured.
#[test]
fn dropping_in_a_capture_only_queues() {
    let mut rt = runtime();
    let (w, other) = (weight(&rt), weight(&rt));
    let (graph, dropped) = (vector(&mut rt, Mode::Piecewise), vector(&mut rt, Mode::Piecewise));
    settled(&mut rt, &dropped, &other);
    settled(&mut rt, &graph, &w);
    let log = Log::default();
    rt.on_lifecycle(hook(&log, "h"));
    let bag = Mutex::new(Some((dropped, other)));
    for turn in 0..3 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], (), |cx, a| {
            let (h,) = seg!("new", cx, (&a.t[0], &w), |k| Ok((ops::add(k.0, k.1)?,)))?;
            if turn == 1 {
                drop(bag.lock().unwrap().take());
            }
            seg!("b", cx, (&h,), |k| ops::neg(k.0))
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [-4.0, -6.0]);
        let gone = logged(&log).iter().filter(|e| e.contains("destroyed a")).count();
        assert_eq!(gone, usize::from(turn == 2), "evicted by the next step, turn {turn}");
    }
}

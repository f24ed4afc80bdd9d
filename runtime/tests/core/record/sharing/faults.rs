//! Sharing when something fails.

use super::*;

#[test]
fn a_candidate_that_is_refused_leaves_the_live_one_intact() {
    let (mut rt, plan) = sharing();
    let graph = bucketed(&mut rt, Mode::Full, &[SMALL, LARGE]);
    let w = weight(&rt, 3.0);
    for n in [SMALL, SMALL, SMALL] {
        run(&mut rt, &graph, n, 2.0, (&w, 3.0));
    }
    plan.refuse_updates(true);
    for i in 0..10 {
        run(&mut rt, &graph, [LARGE, LARGE, SMALL][i % 3], i as f32, (&w, 3.0));
    }
    assert_eq!(counts(&rt.stats()), ([0, 0, 1], [2, 2]));
    let reason = why_unshared(&rt.take_events());
    assert!(
        matches!(&reason[..], [UnsharedReason::Refused { reason }] if reason == "the test said so"),
        "{reason:?}"
    );
    assert_eq!(plan.count(FaultCall::Update), 1, "it is not asked again");
}

#[test]
fn a_switch_that_is_refused_parts() {
    let (mut rt, plan) = sharing();
    let graph = bucketed(&mut rt, Mode::Full, &[SMALL, LARGE]);
    let w = weight(&rt, 3.0);
    for n in [SMALL, SMALL, LARGE, LARGE] {
        run(&mut rt, &graph, n, 2.0, (&w, 3.0));
    }
    assert_eq!(counts(&rt.stats()), ([1, 1, 0], [2, 1]));
    plan.refuse_updates(true);
    for i in 0..10 {
        run(&mut rt, &graph, [SMALL, LARGE][i % 2], i as f32, (&w, 3.0));
    }
    assert_eq!(counts(&rt.stats()), ([1, 1, 1], [2, 2]));
    assert_eq!(plan.live_executables(), 2);
}

/// At the recording, and at a replay: the call has the error, the next one is right.
#[test]
fn an_update_that_fails() {
    let (mut rt, plan) = sharing();
    let graph = bucketed(&mut rt, Mode::Full, &[SMALL, LARGE]);
    let w = weight(&rt, 3.0);
    let fails = |rt: &mut Runtime, n: usize| {
        plan.arm(Some(FaultCall::Update), 0, false);
        let step = rt.step().unwrap();
        let error = call(&graph, &step, n, 9.0, &w).unwrap_err();
        assert!(injected(&error) && !plan.disarm(), "{error}");
    };
    for n in [SMALL, SMALL, LARGE] {
        run(&mut rt, &graph, n, 2.0, (&w, 3.0));
    }
    fails(&mut rt, LARGE);
    assert_eq!((rt.stats().live_recordings, rt.stats().executables), (1, 1), "nothing is left of it");
    run(&mut rt, &graph, SMALL, 4.0, (&w, 3.0));
    run(&mut rt, &graph, LARGE, 5.0, (&w, 3.0));
    assert_eq!(rt.stats().shares, 1, "the next one shares");
    fails(&mut rt, SMALL);
    run(&mut rt, &graph, LARGE, 6.0, (&w, 3.0));
    for i in 0..6 {
        run(&mut rt, &graph, [SMALL, LARGE][i % 2], i as f32, (&w, 3.0));
    }
    assert_eq!((rt.stats().live_recordings, rt.stats().executables, rt.stats().unshared), (2, 1, 0));
}

/// The recording joined, and its first replay fails: the live executable runs the other one again.
#[test]
fn a_first_replay_that_fails_after_the_update() {
    let (mut rt, plan) = sharing();
    let graph = bucketed(&mut rt, Mode::Full, &[SMALL, LARGE]);
    let w = weight(&rt, 3.0);
    for n in [SMALL, SMALL, LARGE] {
        run(&mut rt, &graph, n, 2.0, (&w, 3.0));
    }
    {
        let step = rt.step().unwrap();
        plan.arm(Some(FaultCall::Replay), 0, false);
        assert!(injected(&call(&graph, &step, LARGE, 9.0, &w).unwrap_err()) && !plan.disarm());
    }
    assert_eq!((rt.stats().live_recordings, rt.stats().executables), (1, 1));
    for i in 0..6 {
        run(&mut rt, &graph, [SMALL, LARGE][i % 2], i as f32, (&w, 3.0));
    }
    assert_eq!((rt.stats().live_recordings, rt.stats().executables), (2, 1));
}

#[test]
fn a_capture_that_fails_changes_nothing() {
    let (mut rt, plan) = sharing();
    let graph = vector(&mut rt, Mode::Piecewise);
    let run = |rt: &mut Runtime, n: u32, fail: bool| {
        let step = rt.step().unwrap();
        plan.arm(Some(FaultCall::EndCapture), if fail { 0 } else { u64::MAX }, false);
        let y = graph
            .call(&step, &[x()], n, |cx, a| seg!("a", cx, (&a.t[0], &n), |k| ops::scale(k.0, *k.1 as f32)));
        plan.disarm();
        let y = y.map(|y| step.read(&y).unwrap());
        assert_eq!(y.is_err(), fail);
        if let Ok(y) = y {
            assert_eq!(y, X.map(|x| x * n as f32));
        }
    };
    [(2, false), (2, false), (3, false), (3, true), (2, false), (3, false), (2, false), (3, false)]
        .into_iter()
        .for_each(|(n, fail)| run(&mut rt, n, fail));
    let stats = rt.stats();
    assert_eq!((stats.aborted, stats.live_recordings, stats.executables, stats.updates), (1, 2, 1, 3));
}

/// An executable of its own cannot be made: the call says so, and the next one tries again.
#[test]
fn parting_that_fails() {
    let (mut rt, plan) = sharing();
    let graph = bucketed(&mut rt, Mode::Full, &[SMALL, LARGE]);
    let w = weight(&rt, 3.0);
    for n in [SMALL, SMALL, LARGE, LARGE] {
        run(&mut rt, &graph, n, 2.0, (&w, 3.0));
    }
    plan.refuse_updates(true);
    {
        let step = rt.step().unwrap();
        plan.arm(Some(FaultCall::Instantiate), 0, false);
        assert!(injected(&call(&graph, &step, SMALL, 9.0, &w).unwrap_err()) && !plan.disarm());
    }
    for i in 0..4 {
        run(&mut rt, &graph, [LARGE, SMALL][i % 2], i as f32, (&w, 3.0));
    }
    assert_eq!((rt.stats().executables, rt.stats().unshared), (2, 1));
}

/// Parting is for speed: where there is no memory for it, sharing goes on.
#[test]
fn no_memory_to_part() {
    let (mut rt, plan) = sharing();
    let graph = bucketed(&mut rt, Mode::Full, &[SMALL, LARGE]);
    let w = weight(&rt, 3.0);
    for n in [SMALL, SMALL, LARGE, LARGE] {
        run(&mut rt, &graph, n, 2.0, (&w, 3.0));
    }
    let both = |rt: &mut Runtime, s: f32| {
        let step = rt.step().unwrap();
        for n in [SMALL, LARGE] {
            let y = call(&graph, &step, n, s, &w).unwrap();
            assert_eq!(step.read(&y).unwrap(), expected(n, s, 3.0));
        }
    };
    both(&mut rt, 1.0);
    plan.run_out_of_memory(FaultCall::Instantiate, 0);
    both(&mut rt, 2.0);
    assert!(!plan.disarm(), "it was asked for");
    assert_eq!((rt.stats().executables, rt.stats().unshared), (1, 0));
    for s in [3.0, 4.0, 5.0] {
        both(&mut rt, s);
    }
    assert_eq!((rt.stats().executables, rt.stats().unshared), (2, 1), "once there is memory");
}

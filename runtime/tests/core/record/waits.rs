//! What is not recorded yet: until when, and how one learns of it.

use graphable::{__private::Options, Event, Mode, Runtime, WaitReason, inspect::TreeWaiting, ops};

use crate::support::*;

/// What waits, without file names: segment, reason.
fn waits(events: &[Event]) -> Vec<(String, WaitReason)> {
    let name = |segment: &str| segment.split('`').nth(1).unwrap().to_owned();
    let of = |event: &Event| match event {
        Event::Waited { function, segment, reason } => {
            assert_eq!(*function, "test");
            let reason = match reason {
                WaitReason::BehindWarmUp { segment } => WaitReason::BehindWarmUp { segment: name(segment) },
                other => other.clone(),
            };
            Some((name(segment), reason))
        }
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

fn behind(segment: &str) -> WaitReason {
    WaitReason::BehindWarmUp { segment: segment.to_owned() }
}

fn waiting(rt: &Runtime) -> Vec<TreeWaiting> {
    rt.tree().waiting
}

fn unlimited(options: &mut Options) {
    options.deny_fallback(true);
    options.limits(|limits| limits.max_shapes = None);
}

/// 500 requests of a step each: a prompt of a length that never was before, then 20 decodes that always look the same.
#[test]
fn five_hundred_new_lengths_and_ten_thousand_decodes() {
    const REQUESTS: u64 = 500;
    const DECODES: u64 = 20;
    let mut rt = runtime();
    rt.keep_events(false);
    let graph = |rt: &mut Runtime| Spec::inputs(vec![any_device("x")]).with(unlimited).build(rt);
    let (prefill, decode) = (graph(&mut rt), graph(&mut rt));
    for request in 0..REQUESTS {
        let step = rt.step().unwrap();
        let n = request as usize + 1;
        let (x, prompt) = (step.tensor(&[2], &X).unwrap(), step.tensor(&[n], &vec![1.0f32; n]).unwrap());
        let y = prefill.call(&step, &[In::Device(&prompt)], (), |cx, a| {
            seg!("prefill", cx, (&a.t[0],), |k| ops::scale(k.0, 2.0))
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), vec![2.0; n]);
        for _ in 0..DECODES {
            let y = decode.call(&step, &[In::Device(&x)], (), |cx, a| {
                seg!("decode", cx, (&a.t[0],), |k| ops::scale(k.0, 2.0))
            });
            drop(y.unwrap());
        }
    }
    let stats = rt.stats();
    assert_eq!((stats.warmups, stats.recordings), (REQUESTS + 1, 1));
    assert_eq!((stats.replays, stats.waits, stats.fallbacks), (REQUESTS * DECODES - 2, 0, 0));
}

/// The same in one function: the decodes stand behind the prompt in the same call, which has a new length in each.
#[test]
fn decodes_behind_a_new_length_in_one_call() {
    const REQUESTS: u64 = 100;
    const DECODES: u64 = 20;
    for nested in [false, true] {
        let mut rt = runtime();
        let graph = Spec::inputs(vec![any_device("p"), any_device("x")]).with(unlimited).build(&mut rt);
        for request in 0..REQUESTS {
            let step = rt.step().unwrap();
            let n = request as usize + 1;
            let (x, prompt) = (step.tensor(&[2], &X).unwrap(), step.tensor(&[n], &vec![1.0f32; n]).unwrap());
            let y = graph.call(&step, &[In::Device(&prompt), In::Device(&x)], (), |cx, a| {
                drop(seg!("prefill", cx, (&a.t[0],), |k| ops::scale(k.0, 2.0))?);
                let mut h = a.t[1].clone();
                for i in 0..DECODES {
                    h = if nested && i % 2 == 1 { other(cx, &h)? } else { token(cx, &h)? };
                }
                Ok(h)
            });
            assert_eq!(step.read(&y.unwrap()).unwrap(), X);
        }
        let stats = rt.stats();
        assert!(stats.warmups - REQUESTS < 3 * DECODES, "{nested}: {stats:?}");
        assert!(stats.recordings < 2 * DECODES, "{nested}: {stats:?}");
        assert!(stats.replays > (REQUESTS - 5) * DECODES, "{nested}: {stats:?}");
        assert_eq!((stats.fallbacks, stats.not_converged), (0, 0));
    }
}

/// Parts of another function, as `#[piecewise] token(&h)` calls them.
fn token<'s>(cx: Piecewise<'s>, h: &T<'s>) -> graphable::Result<T<'s>> {
    let (h,) = seg!("token", cx, (h,), |k| Ok((ops::neg(k.0)?,)))?;
    let e = eager!("look", cx, |_e| ops::scale(&h, 1.0));
    seg!("rest", cx, (&e,), |k| ops::scale(k.0, 1.0))
}

fn other<'s>(cx: Piecewise<'s>, h: &T<'s>) -> graphable::Result<T<'s>> {
    seg!("other", cx, (h,), |k| ops::neg(k.0))
}

/// The plainest one: its value lies in two places in turn.
#[test]
fn a_loop_of_one_operation() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let step = rt.step().unwrap();
    let y = graph.call(&step, &[x()], (), |cx, a| {
        let mut h = a.t[0].clone();
        for _ in 0..1000 {
            h = seg!("a", cx, (&h,), |k| ops::neg(k.0))?;
        }
        Ok(h)
    });
    assert_eq!(step.read(&y.unwrap()).unwrap(), X);
    let stats = step.stats();
    assert_eq!((stats.warmups, stats.recordings, stats.replays), (3, 2, 995), "{stats:?}");
}

/// A loop of one call that has come round is recorded in that call.
#[test]
fn a_loop_is_recorded_in_its_first_call() {
    const TURNS: u64 = 1000;
    for early in [true, false] {
        let mut rt = runtime();
        rt.free_at_last_use(early);
        let graph = vector(&mut rt, Mode::Piecewise);
        for call in 0..4u64 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[x()], (), |cx, a| {
                let mut h = a.t[0].clone();
                for _ in 0..TURNS {
                    // With temporaries, so that a recording places its result elsewhere than a warm-up.
                    h = seg!("a", cx, (&h,), |k| {
                        let wide = ops::concat(&[k.0, k.0, k.0], 0)?;
                        let part = ops::narrow(&ops::neg(&wide)?, 0, 2, 2)?;
                        ops::scale(&ops::add(&part, k.0)?, 0.0).and_then(|zero| ops::sub(&zero, k.0))
                    })?;
                }
                Ok(h)
            });
            assert_eq!(step.read(&y.unwrap()).unwrap(), X);
            let stats = step.stats();
            match call {
                0 => assert!(stats.warmups < 12 && stats.replays > TURNS - 30, "{stats:?}"),
                _ => assert!(stats.replays > (call + 1) * TURNS - 60, "{call}: {stats:?}"),
            }
        }
        let stats = rt.stats();
        assert!(stats.warmups < 12 && stats.recordings < 40, "{early}: {stats:?}");
        let before = stats.replays;
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], (), |cx, a| seg!("b", cx, (&a.t[0],), |k| ops::neg(k.0)));
        drop(y.unwrap());
        assert_eq!(step.stats().replays, before);
    }
}

/// Layers differ in their weights: what is recorded behind a warm-up would not be found again, so they wait for the
/// next call, and say so.
#[test]
fn layers_wait_for_the_next_call() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let weights: Vec<_> =
        (0..5).map(|i| graphable::Param::new(&rt, &[2], &[i as f32, 1.0]).unwrap()).collect();
    for call in 0..3 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], &weights, |cx, a| {
            let mut h = a.t[0].clone();
            for w in &weights {
                h = seg!("layer", cx, (&h, w), |k| ops::add(k.0, k.1))?;
            }
            seg!("head", cx, (&h,), |k| ops::neg(k.0))
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [-11.0, -7.0]);
        let (log, stats) = (step.take_events(), step.stats());
        let layer = || ("layer".to_owned(), WaitReason::WarmedInThisCall);
        match call {
            0 => {
                assert_eq!(waits(&log), [layer(), layer(), layer(), layer()]);
                drop(step);
                let list = waiting(&rt);
                let texts: Vec<_> = list
                    .iter()
                    .map(|w| (w.function.as_str(), w.segment.function.as_str(), w.reason.as_str(), w.warmups))
                    .collect();
                assert_eq!(
                    texts,
                    [
                        ("test", "layer", "it was warmed up earlier in the same call", 5),
                        ("test", "head", "it ran with these shapes and host values for the first time", 1),
                    ]
                );
                let text = rt.tree().to_string();
                assert!(text.contains("not recorded yet\n  [layer #0, line "), "{text}");
                assert!(
                    text.contains("in test, 5 warm-ups: it was warmed up earlier in the same call"),
                    "{text}"
                );
            }
            _ => {
                assert_eq!((waits(&log), stats.warmups, stats.waits), (vec![], 6, 4));
                assert_eq!(stats.recordings, 6);
                drop(step);
                assert_eq!(waiting(&rt), []);
            }
        }
    }
}

/// Behind something new each layer waits in the same call, and all are recorded in the next one.
#[test]
fn layers_behind_a_new_shape_wait_together() {
    const LAYERS: u64 = 8;
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let weights: Vec<_> =
        (0..LAYERS).map(|_| graphable::Param::new(&rt, &[2], &[0.0, 0.0]).unwrap()).collect();
    let mut log = Vec::new();
    for n in 0..6u64 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], &weights, |cx, a| {
            let mut h = seg!("first", cx, (&a.t[0], &n), |k| ops::scale(k.0, 1.0))?;
            for w in &weights {
                h = seg!("layer", cx, (&h, w), |k| ops::add(k.0, k.1))?;
            }
            Ok(h)
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), X);
        let events = step.take_events();
        let waited = waits(&events);
        let recorded = events.iter().filter(|e| matches!(e, Event::Recorded { .. })).count() as u64;
        let replayed = events.iter().filter(|e| matches!(e, Event::Replayed { .. })).count() as u64;
        log.push((waited.len() as u64, recorded, replayed));
        if n == 1 {
            assert_eq!(waited[0], ("layer".to_owned(), behind("first")));
            assert_eq!(waited[1], ("layer".to_owned(), WaitReason::WarmedInThisCall));
        }
    }
    assert_eq!(log[..3], [(LAYERS - 1, 0, 0), (LAYERS, 0, 0), (0, LAYERS, 0)]);
    assert_eq!(log[3..], [(0, 0, LAYERS); 3]);
    assert_eq!(rt.stats().warmups, 6 + 2 * LAYERS);
}

/// What is switched off does not wait.
#[test]
fn what_gets_no_graph_does_not_wait() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let run = |rt: &mut Runtime| {
        let step = rt.step().unwrap();
        let call = |cx: Piecewise<'_>, a: &Args<'_>| seg!("a", cx, (&a.t[0],), |k| ops::neg(k.0)).map(drop);
        graph.call(&step, &[x()], (), call).unwrap();
    };
    run(&mut rt);
    assert_eq!(waiting(&rt).len(), 1);
    rt.reset().unwrap();
    assert_eq!(waiting(&rt), []);
    run(&mut rt);
    run(&mut rt);
    assert_eq!((waiting(&rt), rt.stats().recordings), (vec![], 1));
}

//! Live-ins that keep moving: which of them are copied, when, and what else can be done.

use graphable::{OnMove, Param, Result, Runtime, State, Step, ops};

use crate::{support::*, warnings::counting_warnings};

/// `n` blocks of the eager arena, so that what comes next lies behind them.
pub(crate) fn blocks<'s>(step: &Step<'s>, n: usize) -> Vec<T<'s>> {
    (0..n).map(|_| step.tensor(&[2], &[0.0f32; 2]).unwrap()).collect()
}

fn limited(rt: &mut Runtime, inputs: usize, moves: usize, on_move: OnMove) -> Graph {
    let inputs = (0..inputs).map(|i| any_device(["x", "y", "z"][i])).collect();
    let limits = |l: &mut graphable::Limits| (l.max_moves, l.on_move) = (moves, on_move);
    Spec::inputs(inputs).with(|o| o.limits(limits)).build(rt)
}

/// `-(2 x + y)` in two segments; `x` keeps its address, `y` lies behind `place` blocks.
fn call(rt: &mut Runtime, graph: &Graph, place: usize, data: f32) -> (Result<Vec<f32>>, Vec<String>) {
    let step = rt.step().unwrap();
    let x = step.tensor(&[2], &[data, 1.0]).unwrap();
    let below = blocks(&step, place);
    let y = step.tensor(&[2], &[10.0 * data, 3.0]).unwrap();
    let out = graph.call(&step, &[In::Device(&x), In::Device(&y)], (), |cx, a| {
        let (h,) = seg!("a", cx, (&a.t[0], &a.t[1]), |k| Ok((ops::add(&ops::scale(k.0, 2.0)?, k.1)?,)))?;
        seg!("b", cx, (&h,), |k| ops::neg(k.0))
    });
    drop(below);
    (out.and_then(|out| step.read(&out)), events(&step))
}

#[test]
fn only_the_live_in_that_moves_is_copied() {
    let mut rt = runtime();
    let graph = limited(&mut rt, 2, 2, OnMove::Copy);
    let replayed = ["replayed a", "replayed b"];
    let copied = ["copied LiveIn 8", "replayed a", "replayed b"];
    for (round, place) in [0usize, 0, 1, 2, 3, 9, 3, 0, 1, 4].into_iter().enumerate() {
        let data = 1.0 + round as f32;
        let (values, log) = call(&mut rt, &graph, place, data);
        assert_eq!(values.unwrap(), [-12.0 * data, -5.0], "round {round}");
        match round {
            0 => assert_eq!(log, ["warmed a", "warmed b"]),
            1 => assert_eq!(log, ["recorded a", "recorded b"]),
            2 => assert_eq!(log, ["again a: InputMoved { live_in: 1 }", "recorded a", "replayed b"]),
            3 => assert_eq!(
                log,
                [
                    "demoted 1 of a after 2",
                    "again a: InputMoved { live_in: 1 }",
                    "copied LiveIn 8",
                    "recorded a",
                    "replayed b",
                ]
            ),
            // Where an older recording fits, nothing has to be copied.
            7 | 8 => assert_eq!(log, replayed, "round {round}"),
            _ => assert_eq!(log, copied, "round {round}"),
        }
    }
    let stats = rt.stats();
    assert_eq!((stats.copied_slots, stats.live_recordings, stats.recordings, stats.fallbacks), (1, 4, 4, 0));
    let slots = rt.copied_slots();
    let [slot] = &slots[..] else { panic!("{slots:?}") };
    assert_eq!((slot.live_in, slot.bytes, slot.copies), (1, 8, 5));
    assert_eq!((stats.copies, stats.copied_bytes), (5, 40));
}

#[test]
fn the_stable_live_in_stays_bound_to_its_address() {
    let mut rt = runtime();
    let graph = limited(&mut rt, 2, 1, OnMove::Copy);
    let run = |rt: &mut Runtime, places: [usize; 2]| {
        let step = rt.step().unwrap();
        let _below = blocks(&step, places[0]);
        let x = step.tensor(&[2], &X).unwrap();
        let _between = blocks(&step, places[1]);
        let y = step.tensor(&[2], &[5.0f32, 7.0]).unwrap();
        let out = graph.call(&step, &[In::Device(&x), In::Device(&y)], (), |cx, a| {
            seg!("a", cx, (&a.t[0], &a.t[1]), |k| ops::add(k.0, k.1))
        });
        assert_eq!(step.read(&out.unwrap()).unwrap(), [6.0, 9.0]);
        events(&step)
    };
    run(&mut rt, [0, 0]);
    run(&mut rt, [0, 0]);
    assert_eq!(run(&mut rt, [0, 1])[0], "demoted 1 of a after 1");
    assert_eq!(run(&mut rt, [0, 2]), ["copied LiveIn 8", "replayed a"]);
    // The first one moves now: it is recorded, and demoted in its turn; both are copied then.
    let log = run(&mut rt, [3, 0]);
    assert_eq!(
        log,
        [
            "demoted 0 of a after 1",
            "again a: InputMoved { live_in: 0 }",
            "copied LiveIn 8",
            "copied LiveIn 8",
            "recorded a",
        ]
    );
    assert_eq!(run(&mut rt, [5, 4]), ["copied LiveIn 8", "copied LiveIn 8", "replayed a"]);
    assert_eq!(run(&mut rt, [0, 7]), ["copied LiveIn 8", "replayed a"], "one copy where one is enough");
    assert_eq!(rt.stats().copied_slots, 3);
}

/// What one graph gives to another, at another place whenever more results of the first are held.
#[test]
fn an_output_of_another_graph_moves() {
    let mut rt = runtime();
    let (f, g) = (vector(&mut rt, Default::default()), limited(&mut rt, 1, 2, OnMove::Copy));
    let again = "again g: InputMoved { live_in: 0 }";
    let copied: &[&str] = &["copied LiveIn 8", "replayed g"];
    for (held, expected) in [
        (0usize, &["warmed g"][..]),
        (0, &["recorded g"]),
        (0, &["replayed g"]),
        (1, &[again, "recorded g"]),
        (2, &["demoted 0 of g after 2", again, "copied LiveIn 8", "recorded g"]),
        (3, copied),
        (3, copied),
        (1, &["replayed g"]),
        (3, copied),
        // `f` is predicted to do what it did last: give its result that place.
        (0, copied),
    ] {
        let step = rt.step().unwrap();
        let mut outs = Vec::new();
        for i in 0..=held {
            let data = [i as f32, 1.0];
            let out = f.call(&step, &[In::Host((&data).into())], (), |cx, a| {
                seg!("f", cx, (&a.t[0],), |k| ops::scale(k.0, 2.0))
            });
            outs.push(out.unwrap());
        }
        let last = outs.pop().unwrap();
        drop(outs);
        events(&step);
        let out =
            g.call(&step, &[In::Device(&last)], (), |cx, a| seg!("g", cx, (&a.t[0],), |k| ops::neg(k.0)));
        assert_eq!(events(&step), expected, "{held} held");
        assert_eq!(step.read(&out.unwrap()).unwrap(), [-2.0 * held as f32, -2.0]);
        // The live-in is as it was: the copy is of it, not it.
        assert_eq!(step.read(&last).unwrap(), [2.0 * held as f32, 2.0]);
    }
    assert_eq!(rt.stats().copied_slots, 1);
}

#[test]
fn the_edge_can_be_skipped_instead() {
    counting_warnings(|warnings| {
        let mut rt = runtime();
        let graph = limited(&mut rt, 2, 2, OnMove::Skip);
        for (round, place) in [0usize, 0, 1, 1, 2, 0, 1, 2, 7].into_iter().enumerate() {
            let data = 1.0 + round as f32;
            let (values, log) = call(&mut rt, &graph, place, data);
            assert_eq!(values.unwrap(), [-12.0 * data, -5.0], "round {round}");
            let eager =
                |log: &[String]| log[0].contains("live-in 1 of `a` #0") && log[0].contains("moved 2 times");
            match round {
                0..=2 => assert_eq!(warnings(), 0),
                3 => assert_eq!(log, ["replayed a", "replayed b"]),
                4 => {
                    assert!(eager(&log), "{log:?}");
                    assert_eq!(log[1..], ["evicted 2", "replayed b"]);
                }
                // Also where recordings were that would fit.
                _ => {
                    assert!(eager(&log), "{log:?}");
                    assert_eq!(log[1..], ["replayed b"], "round {round}: the rest goes on with graphs");
                }
            }
        }
        let stats = rt.stats();
        assert_eq!((stats.copied_slots, stats.fallbacks, warnings()), (0, 5, 1));
        assert_eq!(stats.fallback_reasons.len(), 1);
        assert_eq!(stats.fallback_reasons[0].1, 5);
    });
}

#[test]
fn other_edges_of_a_skipped_segment_go_on() {
    let mut rt = runtime();
    let graph = limited(&mut rt, 1, 1, OnMove::Skip);
    let run = |rt: &mut Runtime, place: usize, key: u32| {
        let step = rt.step().unwrap();
        let below = blocks(&step, place);
        let x = step.tensor(&[2], &X).unwrap();
        let out = graph.call(&step, &[In::Device(&x)], key, |cx, a| {
            seg!("a", cx, (&a.t[0], &key), |k| ops::scale(k.0, *k.1 as f32))
        });
        drop(below);
        assert_eq!(step.read(&out.unwrap()).unwrap(), [key as f32, 2.0 * key as f32]);
        events(&step).pop().unwrap()
    };
    for place in [0, 0, 1, 0] {
        run(&mut rt, place, 1);
    }
    assert!(run(&mut rt, 0, 1).starts_with("fell back"));
    assert_eq!([0, 0, 0].map(|place| run(&mut rt, place, 2)), ["warmed a", "recorded a", "replayed a"]);
    assert!(run(&mut rt, 0, 1).starts_with("fell back"));
}

#[test]
fn limits_and_actions_belong_to_a_function() {
    let mut rt = runtime();
    let copying = limited(&mut rt, 1, 1, OnMove::Copy);
    let patient = limited(&mut rt, 1, 3, OnMove::Copy);
    let skipping = limited(&mut rt, 1, 1, OnMove::Skip);
    let mut logs = vec![Vec::new(); 3];
    for place in [0usize, 0, 1, 2, 3, 4] {
        for (i, graph) in [&copying, &patient, &skipping].into_iter().enumerate() {
            let step = rt.step().unwrap();
            let below = blocks(&step, place);
            let x = step.tensor(&[2], &X).unwrap();
            let out = match i {
                0 => graph.call(&step, &[In::Device(&x)], (), |cx, a| {
                    seg!("copying", cx, (&a.t[0],), |k| ops::neg(k.0))
                }),
                1 => graph.call(&step, &[In::Device(&x)], (), |cx, a| {
                    seg!("patient", cx, (&a.t[0],), |k| ops::neg(k.0))
                }),
                _ => graph.call(&step, &[In::Device(&x)], (), |cx, a| {
                    seg!("skipping", cx, (&a.t[0],), |k| ops::neg(k.0))
                }),
            };
            drop(below);
            assert_eq!(step.read(&out.unwrap()).unwrap(), [-1.0, -2.0]);
            logs[i].extend(events(&step));
        }
    }
    let count = |i: usize, what: &str| logs[i].iter().filter(|e| e.starts_with(what)).count();
    let counts = |i| (count(i, "recorded"), count(i, "demoted"), count(i, "fell back"));
    assert_eq!([0, 1, 2].map(counts), [(2, 1, 0), (4, 1, 0), (1, 0, 4)], "{logs:#?}");
}

/// A live-in that moved, and stays where it is from then on, is not copied when another reaches the limit.
#[test]
fn what_has_settled_is_not_copied() {
    let mut rt = runtime();
    let graph = limited(&mut rt, 2, 3, OnMove::Copy);
    let run = |rt: &mut Runtime, x_at: usize, y_at: usize| {
        let step = rt.step().unwrap();
        let mut all = blocks(&step, 20);
        // Freed from above, so that first fit gives just these places.
        all[x_at] = step.tensor(&[2], &[0.0f32; 2]).unwrap();
        let x = step.tensor(&[2], &X).unwrap();
        all[y_at] = step.tensor(&[2], &[0.0f32; 2]).unwrap();
        let y = step.tensor(&[2], &[1.0f32, 1.0]).unwrap();
        drop(all);
        let out = graph.call(&step, &[In::Device(&x), In::Device(&y)], (), |cx, a| {
            seg!("a", cx, (&a.t[0], &a.t[1]), |k| ops::add(k.0, k.1))
        });
        assert_eq!(step.read(&out.unwrap()).unwrap(), [2.0, 3.0]);
        events(&step)
    };
    for (x, y) in [(0, 10), (0, 10), (1, 10), (2, 10), (2, 11), (2, 12)] {
        assert!(!run(&mut rt, x, y).iter().any(|e| e.contains("emoted")));
    }
    assert_eq!(run(&mut rt, 2, 13)[0], "demoted 1 of a after 3");
    assert_eq!(run(&mut rt, 2, 14), ["copied LiveIn 8", "replayed a"]);
    let slots = rt.copied_slots();
    assert_eq!((slots.len(), slots[0].live_in), (1, 1), "{slots:?}");
}

/// Live-ins that overlap move together; each is read from a copy, and what leaves is the caller's memory.
#[test]
fn aliases_that_move_are_copied() {
    let mut rt = runtime();
    let graph = limited(&mut rt, 2, 1, OnMove::Copy);
    // One tensor as two live-ins, and two views of one storage.
    for views in [false, true] {
        for place in 0..6 {
            let step = rt.step().unwrap();
            let below = blocks(&step, place);
            let t = step.tensor(&[4], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
            let (x, y) = match views {
                false => (t.clone(), t.clone()),
                true => (ops::narrow(&t, 0, 0, 2).unwrap(), ops::narrow(&t, 0, 2, 2).unwrap()),
            };
            drop((below, t));
            let out = graph.call(&step, &[In::Device(&x), In::Device(&y)], (), |cx, a| {
                seg!("a", cx, (&a.t[0], &a.t[1]), |k| ops::add(k.0, k.1))
            });
            let expected = if views { vec![4.0, 6.0] } else { vec![2.0, 4.0, 6.0, 8.0] };
            assert_eq!(step.read(&out.unwrap()).unwrap(), expected);
            let log = events(&step);
            if place > 2 {
                assert!(log[..log.len() - 1].iter().all(|e| e.starts_with("copied LiveIn")), "{log:?}");
                assert_eq!(log[log.len() - 1], "replayed a");
            }
        }
    }
    // A live-in that leaves as a view.
    let graph = limited(&mut rt, 1, 1, OnMove::Copy);
    for place in 0..6 {
        let step = rt.step().unwrap();
        let below = blocks(&step, place);
        let x = step.tensor(&[4], &[place as f32, 2.0, 3.0, 4.0]).unwrap();
        let out = graph.call(&step, &[In::Device(&x)], (), |cx, a| {
            seg!("b", cx, (&a.t[0],), |k| Ok((ops::narrow(k.0, 0, 1, 2)?, ops::neg(k.0)?)))
        });
        let (view, neg) = out.unwrap();
        assert!(view.same_memory(&ops::narrow(&x, 0, 1, 2).unwrap()));
        drop((below, x));
        assert_eq!(step.read(&view).unwrap(), [2.0, 3.0]);
        assert_eq!(step.read(&neg).unwrap(), [-(place as f32), -2.0, -3.0, -4.0]);
    }
    let stats = rt.stats();
    assert!(stats.copied_slots >= 3 && stats.recordings <= 6, "{stats:?}");
    assert_eq!(stats.fallbacks, 0);
}

/// Memory with an identity keeps it: it is looked up by it, and a write through one argument is seen
/// through the other.
#[test]
fn parameters_and_state_are_never_copied() {
    let mut rt = runtime();
    let graph = limited(&mut rt, 1, 1, OnMove::Copy);
    for i in 0..6 {
        let w = Param::new(&rt, &[2], &[i as f32, 1.0]).unwrap();
        let state = State::new(&rt, &[2], &[0.0f32; 2]).unwrap();
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let x = step.tensor(&[2], &X).unwrap();
            let out = graph.call(&step, &[In::Device(&x)], (&w, &state), |cx, a| {
                seg!("a", cx, (&a.t[0], &w, &state, &state), |k| {
                    ops::store(k.2, &ops::add(k.0, k.1)?)?;
                    ops::neg(&ops::load(k.0.scope(), k.3)?)
                })
            });
            assert_eq!(step.read(&out.unwrap()).unwrap(), [-1.0 - i as f32, -3.0], "{i}");
        }
    }
    let stats = rt.stats();
    assert_eq!((stats.recordings, stats.copied_slots, stats.fallbacks), (6, 0, 0));
}

/// Inputs that are bound to no address may churn: host data, and device inputs that are padded.
#[test]
fn inputs_with_static_buffers_may_lie_anywhere() {
    let mut rt = runtime();
    let spec = Spec {
        symbols: &["B"],
        ..Spec::inputs(vec![host("h", &[Dim::Symbol(0)]), device("d", &[Dim::Symbol(0)])])
    };
    let graph = spec
        .with(|o| {
            o.bucket("B", graphable::Schedule::new([4]));
            o.limits(|l| l.max_recordings = 1);
            o.deny_fallback(true);
        })
        .build(&mut rt);
    for place in 0..20 {
        let step = rt.step().unwrap();
        let _below = blocks(&step, place);
        let d = step.tensor(&[3], &[1.0f32, 2.0, place as f32]).unwrap();
        let out = graph.call(&step, &[In::Host((&[1.0, 1.0, 1.0]).into()), In::Device(&d)], (), |cx, a| {
            seg!("a", cx, (&a.t[0], &a.t[1]), |k| ops::add(k.0, k.1))
        });
        assert_eq!(step.read(&out.unwrap()).unwrap(), [2.0, 3.0, 1.0 + place as f32]);
    }
    let stats = rt.stats();
    assert_eq!((stats.recordings, stats.rerecordings, stats.copied_slots), (1, 0, 0));
}

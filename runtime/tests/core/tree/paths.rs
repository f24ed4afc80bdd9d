//! Ways through the tree: roots, branches off a replayed path, and what is held across them.

use std::cell::Cell;

use graphable::{__private::Live, Mode, Result, Runtime, Schedule, State, Step, ops};

use crate::support::*;

const UNIT: u64 = 256;

#[test]
fn two_shapes_are_two_roots() {
    let mut rt = runtime();
    let graph = Spec::inputs(vec![any_device("x")]).build(&mut rt);
    let mut logs = Vec::new();
    for n in [2usize, 3, 2, 3, 2, 3, 3, 2] {
        let step = rt.step().unwrap();
        let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let x = step.tensor(&[n], &x).unwrap();
        let y = graph
            .call(&step, &[In::Device(&x)], (), |cx, a| seg!("a", cx, (&a.t[0],), |k| ops::scale(k.0, 3.0)));
        let expected: Vec<f32> = (0..n).map(|i| 3.0 * i as f32).collect();
        assert_eq!(step.read(&y.unwrap()).unwrap(), expected);
        logs.extend(events(&step));
    }
    assert_eq!(logs[..4], ["warmed a", "warmed a", "recorded a", "recorded a"]);
    assert_eq!(logs[4..], ["replayed a"; 4], "neither is a reason to record the other again");
    let stats = rt.stats();
    assert_eq!((stats.live_recordings, stats.recordings, stats.rerecordings), (2, 2, 0));
}

thread_local!(static RUNS: Cell<u32> = const { Cell::new(0) });

#[test]
fn the_body_runs_to_warm_up_and_to_record_only() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    RUNS.set(0);
    for (key, runs) in [(3u32, [1, 2, 2, 2]), (5, [3, 4, 4, 4])] {
        for expected in runs {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[x()], key, |cx, a| {
                seg!("a", cx, (&a.t[0], &key), |k| {
                    RUNS.set(RUNS.get() + 1);
                    ops::scale(k.0, *k.1 as f32)
                })
            });
            assert_eq!(step.read(&y.unwrap()).unwrap(), X.map(|v| v * key as f32));
            assert_eq!(RUNS.get(), expected, "key {key}");
        }
    }
    assert_eq!((rt.stats().warmups, rt.stats().recordings, rt.stats().replays), (2, 2, 4));
}

/// `x * 2`, and `-x` of whatever device tensor it is given.
fn chain(rt: &mut Runtime) -> (Graph, Graph) {
    let first = vector(rt, Mode::Piecewise);
    (first, Spec::inputs(vec![any_device("d")]).build(rt))
}

fn double<'s>(graph: &Graph, step: &Step<'s>) -> T<'s> {
    let y = graph.call(step, &[x()], (), |cx, a| seg!("f", cx, (&a.t[0],), |k| ops::scale(k.0, 2.0)));
    y.unwrap()
}

fn negate<'s>(graph: &Graph, step: &Step<'s>, d: &T<'s>) -> T<'s> {
    let y = graph.call(step, &[In::Device(d)], (), |cx, a| seg!("g", cx, (&a.t[0],), |k| ops::neg(k.0)));
    y.unwrap()
}

#[test]
fn a_step_that_ends_while_recording_closes_the_path() {
    let mut rt = runtime();
    let (f, g) = chain(&mut rt);
    let both = |rt: &mut Runtime| {
        let step = rt.step().unwrap();
        let y = double(&f, &step);
        let z = negate(&g, &step, &y);
        assert_eq!(step.read(&z).unwrap(), [-2.0, -4.0]);
        events(&step)
    };
    assert_eq!(both(&mut rt), ["warmed f", "warmed g"]);
    {
        // `f` is recorded, its output dropped, and the step ends before `g`.
        let step = rt.step().unwrap();
        drop(double(&f, &step));
        assert_eq!(events(&step), ["recorded f"]);
    }
    assert_eq!(both(&mut rt), ["replayed f", "recorded g"], "what was recorded is whole");
    for _ in 0..3 {
        assert_eq!(both(&mut rt), ["replayed f", "replayed g"]);
    }
    assert_eq!((rt.stats().live_recordings, rt.stats().aborted), (2, 0));
}

/// A replay down a known path, then something new: the pool is where the recording left it.
#[test]
fn a_new_branch_off_a_replayed_path() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    for (round, key) in [1u32, 1, 1, 2, 2, 2, 1, 3, 3, 2, 1, 3].into_iter().enumerate() {
        let y = {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[x()], key, |cx, a| {
                let (h, held) = seg!("a", cx, (&a.t[0],), |k| {
                    Ok((ops::scale(&ops::neg(k.0)?, -2.0)?, ops::scale(k.0, 100.0)?))
                })?;
                let (h,) = seg!("b", cx, (&h, &key), |k| {
                    // The temporaries of a larger key must not fall on `held`, which is no live-in here.
                    let mut h = k.0.clone();
                    for _ in 0..*k.1 {
                        h = ops::neg(&ops::neg(&h)?)?;
                    }
                    Ok((ops::scale(&h, *k.1 as f32)?,))
                })?;
                seg!("c", cx, (&h, &held), |k| ops::add(k.0, k.1))
            });
            step.read(&y.unwrap()).unwrap()
        };
        assert_eq!(y, X.map(|v| 2.0 * v * key as f32 + 100.0 * v), "round {round}");
        assert_eq!(Live::of(&rt), Live::default(), "round {round}");
    }
    let stats = rt.stats();
    assert_eq!((stats.rerecordings, stats.fallbacks), (0, 0));
}

/// In warm-up, when recorded and when replayed, a held output is one block of results, and nothing else is
/// alive; dropped, there is none.
#[test]
fn what_a_call_leaves_is_its_output() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    for i in 0..5 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], (), |cx, a| {
            let (h, g) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::neg(k.0)?, ops::exp(k.0)?)))?;
            drop(g);
            seg!("b", cx, (&h,), |k| ops::neg(&ops::scale(k.0, 4.0)?))
        });
        let y = y.unwrap();
        let one = Live { tensors: 1, results: UNIT, ..Live::default() };
        assert_eq!(Live::in_step(&step), one, "call {i}");
        assert_eq!(step.read(&y).unwrap(), [4.0, 8.0]);
        let clone = y.clone();
        drop(y);
        assert_eq!(Live::in_step(&step), one, "a clone keeps it");
        drop(clone);
        assert_eq!(Live::in_step(&step), Live::default(), "call {i}");
    }
}

/// An output is held while the tree goes from replaying to warming up, and from replaying to recording.
#[test]
fn a_held_output_across_replays_and_recordings() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    fn call<'s>(graph: &Graph, step: &Step<'s>, key: u32) -> T<'s> {
        let y = graph.call(step, &[x()], key, |cx, a| {
            let (h,) = seg!("a", cx, (&a.t[0], &key), |k| Ok((ops::scale(k.0, *k.1 as f32)?,)))?;
            seg!("b", cx, (&h,), |k| ops::neg(k.0))
        });
        y.unwrap()
    }
    for _ in 0..3 {
        call(&graph, &rt.step().unwrap(), 1);
    }
    for key in 2..8u32 {
        for pass in 0..3 {
            let step = rt.step().unwrap();
            let held = call(&graph, &step, 1);
            let other = call(&graph, &step, key);
            assert_eq!(Live::in_step(&step).results, 2 * UNIT, "key {key}, pass {pass}");
            assert_eq!(Live::in_step(&step).pool, 0);
            assert_eq!(step.read(&other).unwrap(), X.map(|v| -v * key as f32));
            drop(other);
            assert_eq!(step.read(&held).unwrap(), X.map(|v| -v), "key {key}, pass {pass}");
            drop(held);
            assert_eq!(Live::in_step(&step), Live::default());
        }
    }
}

/// Two views of one block are one fact about what is alive, whichever of them is kept; dead, they free the
/// block once.
#[test]
fn views_of_one_block_are_one_liveness() {
    let mut rt = runtime();
    let graph = Spec::inputs(vec![host("x", &[Dim::Const(4)])]).build(&mut rt);
    for round in 0..4 {
        for kept in [[true, true], [true, false], [false, true], [false, false]] {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[In::Host((&[1.0, 2.0, 3.0, 4.0]).into())], (), |cx, a| {
                let (low, high) = seg!("a", cx, (&a.t[0],), |k| {
                    let y = ops::scale(k.0, 10.0)?;
                    Ok((ops::narrow(&y, 0, 0, 2)?, ops::narrow(&y, 0, 2, 2)?))
                })?;
                let views = [(low, kept[0]), (high, kept[1])];
                let views: Vec<T<'_>> = views.into_iter().filter_map(|(v, keep)| keep.then_some(v)).collect();
                let (y,) = seg!("b", cx, (&a.t[0],), |k| Ok((ops::neg(&ops::neg(k.0)?)?,)))?;
                drop(views);
                seg!("c", cx, (&y,), |k| ops::scale(k.0, 1.0))
            });
            assert_eq!(step.read(&y.unwrap()).unwrap(), [1.0, 2.0, 3.0, 4.0], "round {round}, {kept:?}");
            assert_eq!(Live::in_step(&step), Live::default());
        }
    }
    // One `a`; a `b` with the block alive and one without it, which leave their result in two places.
    assert_eq!(rt.stats().live_recordings, 5, "{:?}", rt.stats());
}

/// A value that a graph made, then an equal one elsewhere: its replay would read what is not there.
#[test]
fn an_equal_value_at_another_address_is_another_recording() {
    let mut rt = runtime();
    let (f, g) = chain(&mut rt);
    for round in 0..6 {
        let step = rt.step().unwrap();
        let y = double(&f, &step);
        assert_eq!(step.read(&negate(&g, &step, &y)).unwrap(), [-2.0, -4.0]);
        drop(y);
        let elsewhere = step.tensor(&[2], &[2.0, 4.0]).unwrap();
        assert_eq!(step.read(&negate(&g, &step, &elsewhere)).unwrap(), [-2.0, -4.0]);
        let other = step.tensor(&[2], &[5.0, 6.0]).unwrap();
        drop(elsewhere);
        let log = events(&step);
        if round == 1 {
            let again = ["recorded f", "again g: InputMoved { live_in: 0 }", "recorded g", "replayed g"];
            assert_eq!(log, again);
        } else if round > 1 {
            assert_eq!(log, ["replayed f", "replayed g", "replayed g"], "round {round}");
        }
        drop(other);
    }
    assert_eq!((rt.stats().live_recordings, rt.stats().rerecordings), (3, 1));
}

/// What a segment does to state happens once per call, from the first call on.
#[test]
fn a_written_state_is_that_of_eager_calls() {
    let run = |mode: Mode| {
        let mut rt = runtime();
        let graph = vector(&mut rt, mode);
        let state = State::new(&rt, &[2], &[1.0, 1.0]).unwrap();
        let mut seen = Vec::new();
        for _ in 0..5 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[x()], &state, |cx, a| {
                seg!("a", cx, (&a.t[0], &state), |k| {
                    let next = ops::add(&ops::scale(&ops::load(k.0.scope(), k.1)?, 2.0)?, k.0)?;
                    ops::store(k.1, &next)?;
                    ops::neg(&next)
                })
            });
            let now = ops::load(step.scope(), &state).unwrap();
            seen.push((step.read(&y.unwrap()).unwrap(), step.read(&now).unwrap()));
        }
        assert_eq!(rt.stats().fallbacks, 0);
        seen
    };
    let eager = run(Mode::None);
    assert_eq!(eager[0], (vec![-3.0, -4.0], vec![3.0, 4.0]));
    assert_eq!(run(Mode::Piecewise), eager);
    assert_eq!(run(Mode::Full), eager);
}

/// Sums over micro-batches in state, used by another function at the end of the step.
#[test]
fn sums_over_micro_batches() {
    let mut rt = runtime();
    let add = vector(&mut rt, Mode::Piecewise);
    let take = vector(&mut rt, Mode::Piecewise);
    let sum = State::new(&rt, &[2], &[0.0; 2]).unwrap();
    for round in 1..7 {
        let step = rt.step().unwrap();
        let mut expected = [0.0f32; 2];
        for batch in 0..round {
            let x = [batch as f32, 1.0];
            expected = [expected[0] + 2.0 * x[0], expected[1] + 2.0 * x[1]];
            let y: Result<()> = add.call(&step, &[In::Host((&x).into())], &sum, |cx, a| {
                seg!("add", cx, (&a.t[0], &sum), |k| {
                    let next = ops::add(&ops::load(k.0.scope(), k.1)?, &ops::scale(k.0, 2.0)?)?;
                    ops::store(k.1, &next)
                })
            });
            y.unwrap();
        }
        let total = take.call(&step, &[x()], &sum, |cx, a| {
            seg!("take", cx, (&a.t[0], &sum), |k| {
                let total = ops::load(k.0.scope(), k.1)?;
                ops::store(k.1, &ops::zeros(k.0.scope(), &[2])?)?;
                Ok(total)
            })
        });
        assert_eq!(step.read(&total.unwrap()).unwrap(), expected, "round {round}");
    }
    assert_eq!((rt.stats().live_recordings, rt.stats().rerecordings), (2, 0));
}

/// Views that start in the middle of a block, strided and with stride 0, are inputs like any other.
#[test]
fn inputs_that_are_views() {
    let mut rt = runtime();
    let graph = Spec::inputs(vec![any_device("d")]).build(&mut rt);
    let mut before = rt.stats();
    for round in 0..5 {
        let step = rt.step().unwrap();
        let block = step.tensor(&[7], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let one = ops::narrow(&block, 0, 3, 1).unwrap();
        let views = [
            // Four bytes behind the start: aligned to an element and to nothing more.
            (ops::narrow(&block, 0, 1, 6).unwrap(), vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            (ops::broadcast_to(&one, &[6]).unwrap(), vec![3.0; 6]),
            (
                ops::reshape(
                    &ops::transpose(
                        &ops::reshape(&ops::narrow(&block, 0, 1, 6).unwrap(), &[2, 3]).unwrap(),
                        0,
                        1,
                    )
                    .unwrap(),
                    &[6],
                )
                .unwrap(),
                vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0],
            ),
        ];
        for (view, values) in &views {
            let y = graph.call(&step, &[In::Device(view)], (), |cx, a| {
                seg!("a", cx, (&a.t[0],), |k| ops::scale(k.0, 2.0))
            });
            let doubled: Vec<f32> = values.iter().map(|v| 2.0 * v).collect();
            assert_eq!(step.read(&y.unwrap()).unwrap(), doubled, "round {round}");
        }
        drop(views);
        let stats = step.stats();
        if round > 1 {
            assert_eq!((stats.recordings, stats.copies), (before.recordings, before.copies));
        }
        before = stats;
    }
}

/// Padded into its static buffer, a broadcast input is read element by element and written once.
#[test]
fn a_broadcast_input_is_padded_by_its_values() {
    let mut rt = runtime();
    let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![device("d", &[Dim::Symbol(0), Dim::Const(2)])]) };
    let graph = spec.with(|o| o.bucket("B", Schedule::new([4]))).build(&mut rt);
    for round in 0..5 {
        let copied = rt.stats().copied_bytes;
        let step = rt.step().unwrap();
        let row = step.tensor(&[1, 2], &[7.0 + round as f32, 8.0]).unwrap();
        let wide = ops::broadcast_to(&row, &[3, 2]).unwrap();
        let y =
            graph.call(&step, &[In::Device(&wide)], (), |cx, a| seg!("a", cx, (&a.t[0],), |k| ops::neg(k.0)));
        assert_eq!(step.read(&y.unwrap()).unwrap(), [-(7.0 + round as f32), -8.0].repeat(3));
        if round > 2 {
            assert_eq!(step.stats().copied_bytes - copied, 32, "the bucket's four rows, once");
        }
    }
}

/// However many host values a call has, they travel as one block with its first replay: no call of their own.
#[test]
fn host_values_travel_with_the_first_replay() {
    use graphable::backend::faulty::FaultCall;
    let (mut rt, plan) = faulty();
    let inputs = vec![host("x", &[Dim::Const(2)]), scalar("s"), scalar("t"), scalar("u")];
    let graph = Spec::inputs(inputs).build(&mut rt);
    let counts = || FaultCall::ALL.map(|call| plan.count(call));
    for i in 0..6 {
        let before = counts();
        let step = rt.step().unwrap();
        let ins = [x(), In::Scalar(i as f32), In::Scalar(2.0), In::Scalar(3.0)];
        let y = graph.call(&step, &ins, (), |cx, a| {
            let (h,) = seg!("a", cx, (&a.t[0], &a.scalars[0]), |k| Ok((ops::mul(k.0, k.1)?,)))?;
            seg!("b", cx, (&h, &a.scalars[1], &a.scalars[2]), |k| ops::add(&ops::mul(k.0, k.1)?, k.2))
        });
        let y = y.unwrap();
        let made: Vec<(FaultCall, u64)> = FaultCall::ALL
            .into_iter()
            .zip(counts().iter().zip(before).map(|(after, before)| after - before))
            .filter(|(_, n)| *n > 0)
            .collect();
        assert_eq!(step.read(&y).unwrap(), X.map(|v| v * i as f32 * 2.0 + 3.0));
        if i > 2 {
            // The block between the segments is freed, which test mode overwrites.
            assert_eq!(made, [(FaultCall::Replay, 2), (FaultCall::Poison, 1)], "call {i}");
        }
    }
}

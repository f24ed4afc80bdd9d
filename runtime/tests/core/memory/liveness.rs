//! What is alive in the pool decides which recording fits.

use graphable::{Mode, Runtime, Step, ops};

use crate::support::*;

#[test]
fn a_live_tensor_that_is_no_live_in_gives_another_node() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    let call = |rt: &mut Runtime, hold: bool| {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[In::Host((&X).into())], (), |cx, a| {
            let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
            let (extra,) = seg!("b", cx, (&h,), |k| Ok((ops::scale(k.0, 10.0)?,)))?;
            let extra = hold.then_some(extra);
            let (c,) = seg!("c", cx, (&h,), |k| Ok((ops::neg(&ops::neg(k.0)?)?,)))?;
            match &extra {
                Some(extra) => seg!("d", cx, (&c, extra), |k| ops::add(k.0, k.1)),
                None => seg!("e", cx, (&c,), |k| ops::scale(k.0, 1.0)),
            }
        });
        let values = step.read(&y.unwrap()).unwrap();
        assert_eq!(values, if hold { [22.0, 44.0] } else { [2.0, 4.0] });
        events(&step)
    };
    assert_eq!(call(&mut rt, true), ["warmed a", "warmed b", "warmed c", "warmed d"]);
    assert_eq!(call(&mut rt, true), ["recorded a", "recorded b", "recorded c", "recorded d"]);
    assert_eq!(
        call(&mut rt, false),
        ["replayed a", "replayed b", "again c: LiveSet", "recorded c", "warmed e"]
    );
    assert_eq!(call(&mut rt, false), ["replayed a", "replayed b", "replayed c", "recorded e"]);
    for _ in 0..3 {
        assert_eq!(call(&mut rt, true), ["replayed a", "replayed b", "replayed c", "replayed d"]);
        assert_eq!(call(&mut rt, false), ["replayed a", "replayed b", "replayed c", "replayed e"]);
    }
    assert_eq!(rt.stats().live_recordings, 6);
}

/// `a`, then `b` or `c`, then `d`. With `deep`, `c` leaves its result elsewhere than `b`.
fn branches(deep: bool) -> (usize, Vec<String>) {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    let mut last = Vec::new();
    for round in 0..6 {
        for left in [true, false] {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[In::Host((&X).into())], (), |cx, a| {
                let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
                let (h,) = if left {
                    seg!("b", cx, (&h,), |k| Ok((ops::scale(k.0, 3.0)?,)))?
                } else if deep {
                    // The temporary takes the lowest place, so the result lies above it.
                    seg!("c", cx, (&h,), |k| Ok((ops::scale(&ops::neg(k.0)?, -5.0)?,)))?
                } else {
                    seg!("c", cx, (&h,), |k| Ok((ops::scale(k.0, 5.0)?,)))?
                };
                seg!("d", cx, (&h,), |k| ops::scale(k.0, 1.0))
            });
            let expected = if left { [6.0, 12.0] } else { [10.0, 20.0] };
            assert_eq!(step.read(&y.unwrap()).unwrap(), expected, "round {round}, left {left}");
            last = events(&step);
        }
    }
    (rt.stats().live_recordings, last)
}

#[test]
fn branches_that_meet_again_share_the_rest() {
    let (nodes, last) = branches(false);
    assert_eq!(nodes, 4);
    assert_eq!(last, ["replayed a", "replayed c", "replayed d"]);
}

#[test]
fn branches_that_leave_different_states_do_not() {
    let (nodes, last) = branches(true);
    assert_eq!(nodes, 5);
    assert_eq!(last, ["replayed a", "replayed c", "replayed d"]);
}

#[test]
fn memory_of_dropped_values_is_used_again() {
    if crate::device::skipped_with_gaps("memory_of_dropped_values_is_used_again") {
        return;
    }
    let mut rt = runtime();
    let graph = Spec::inputs(vec![host("x", &[Dim::Const(1024)])]).build(&mut rt);
    let x: Vec<f32> = (0..1024).map(|i| i as f32).collect();
    for i in 0..4 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[In::Host((&x).into())], (), |cx, a| {
            let mut h = a.t[0].clone();
            for _ in 0..50 {
                (h,) = seg!("a", cx, (&h,), |k| Ok((ops::neg(&ops::neg(k.0)?)?,)))?;
            }
            seg!("b", cx, (&h,), |k| ops::scale(k.0, 1.0))
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), x, "step {i}");
    }
    // A chain needs its input, a temporary and its output, whatever its length.
    assert!(rt.memory().pool.peak_bytes <= 3 * 4096, "{} bytes", rt.memory().pool.peak_bytes);
    assert_eq!(rt.memory().results.peak_bytes, 4096);
}

#[test]
fn paths_share_memory() {
    if crate::device::skipped_with_gaps("paths_share_memory") {
        return;
    }
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    for _ in 0..3 {
        for n in [1usize, 64, 16, 4] {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[In::Host((&X).into())], n, |cx, a| {
                seg!("a", cx, (&a.t[0], &n), |k| {
                    let wide = ops::full(k.0.scope(), &[*k.1 * 64], 1.0f32)?;
                    ops::add(k.0, &ops::mean(&wide, 0)?)
                })
            });
            assert_eq!(step.read(&y.unwrap()).unwrap(), [2.0, 3.0]);
        }
    }
    // The largest path alone: 64 * 64 elements, a mean; the result lies elsewhere.
    assert!(rt.memory().pool.peak_bytes <= 64 * 64 * 4 + 512, "{} bytes", rt.memory().pool.peak_bytes);
}

/// Values dropped in the driver after a replay are poisoned; what is still alive must not be touched.
#[test]
fn order_of_drops_does_not_matter() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    for round in 0..4 {
        for order in 0..3 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[In::Host((&X).into())], (), |cx, a| {
                let (p, q, r) = seg!("a", cx, (&a.t[0],), |k| {
                    Ok((ops::scale(k.0, 2.0)?, ops::scale(k.0, 3.0)?, ops::scale(k.0, 5.0)?))
                })?;
                let mut all = [Some(p), Some(q), Some(r)];
                all[order] = None;
                let left: Vec<T<'_>> = all.into_iter().flatten().collect();
                seg!("b", cx, (&left,), |k| ops::add(&ops::neg(&ops::neg(&k.0[0])?)?, &k.0[1]))
            });
            let sum = [8.0, 7.0, 5.0][order];
            assert_eq!(step.read(&y.unwrap()).unwrap(), [sum, 2.0 * sum], "round {round}, order {order}");
        }
    }
    assert_eq!(rt.stats().live_recordings, 4, "one `a`, and a `b` for each set that was alive");
}

#[test]
fn an_unused_step_costs_nothing() {
    let mut rt = runtime();
    for _ in 0..100 {
        let step: Step<'_> = rt.step().unwrap();
        assert!(step.take_events().is_empty());
    }
    assert_eq!(rt.stats(), graphable::Stats::default());
}

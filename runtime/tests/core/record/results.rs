//! Where outputs live, and how they are read.

use graphable::{Mode, Param, PendingRead, Result, Step, ops};

use crate::support::*;

fn double<'s>(graph: &Graph, step: &Step<'s>, x: f32) -> T<'s> {
    let y = graph.call(step, &[In::Host((&[x, 1.0]).into())], (), |cx, a| {
        seg!("a", cx, (&a.t[0],), |k| ops::scale(k.0, 2.0))
    });
    y.unwrap()
}

#[test]
fn a_held_output_moves_the_next_to_another_slot() {
    if crate::device::skipped_with_gaps("a_held_output_moves_the_next_to_another_slot") {
        return;
    }
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    let mut log = Vec::new();
    for _ in 0..4 {
        let step = rt.step().unwrap();
        let (first, second) = (double(&graph, &step, 1.0), double(&graph, &step, 2.0));
        assert!(!first.same_memory(&second));
        assert_eq!(step.read(&first).unwrap(), [2.0, 2.0]);
        assert_eq!(step.read(&second).unwrap(), [4.0, 2.0]);
        log.push(events(&step));
    }
    assert_eq!(log[0], ["warmed a", "recorded a"]);
    assert_eq!(log[1], ["replayed a", "again a: ResultHeld", "recorded a"]);
    assert_eq!(log[2..], [["replayed a", "replayed a"], ["replayed a", "replayed a"]]);
    // Not held: the first slot does for all calls.
    let step = rt.step().unwrap();
    for i in 0..5 {
        assert_eq!(step.read(&double(&graph, &step, i as f32)).unwrap(), [2.0 * i as f32, 2.0]);
    }
    let replayed = nodes(&step.take_events());
    assert_eq!(replayed, [replayed[0]; 5]);
    // Held out of order: whichever slot is free is taken.
    let first = double(&graph, &step, 1.0);
    let second = double(&graph, &step, 2.0);
    drop(first);
    let third = double(&graph, &step, 3.0);
    assert_eq!(step.read(&second).unwrap(), [4.0, 2.0]);
    assert_eq!(step.read(&third).unwrap(), [6.0, 2.0]);
    drop((second, third));
    assert_eq!(rt.stats().live_recordings, 2);
    assert_eq!(rt.memory().results.peak_bytes, 512);
}

#[test]
fn views_of_one_storage_live_and_die_together() {
    if crate::device::skipped_with_gaps("views_of_one_storage_live_and_die_together") {
        return;
    }
    let mut rt = runtime();
    let graph = Spec::inputs(vec![host("x", &[Dim::Const(2), Dim::Const(3)])]).build(&mut rt);
    let data: Vec<f32> = (0..6).map(|i| i as f32).collect();
    for i in 0..6 {
        let step = rt.step().unwrap();
        let out = graph.call(&step, &[In::Host((&data[..], &[2, 3]).into())], (), |cx, a| {
            seg!("a", cx, (&a.t[0],), |k| {
                let y = ops::scale(k.0, 2.0)?;
                Ok((ops::transpose(&y, 0, 1)?, ops::narrow(&y, 0, 1, 1)?, y))
            })
        });
        let (turned, row, whole) = out.unwrap();
        assert_eq!(step.read(&whole).unwrap(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        match i % 3 {
            0 => drop(whole),
            1 => drop(step.read_later(&whole).unwrap()),
            _ => {}
        }
        assert_eq!(step.read(&turned).unwrap(), [0.0, 6.0, 2.0, 8.0, 4.0, 10.0]);
        drop(turned);
        assert_eq!(step.read(&row).unwrap(), [6.0, 8.0, 10.0]);
    }
    assert_eq!(rt.memory().results.peak_bytes, 256, "one block for all three");
    assert_eq!((rt.stats().live_recordings, rt.stats().copies), (1, 0));
}

#[test]
fn a_kept_view_keeps_the_block() {
    if crate::device::skipped_with_gaps("a_kept_view_keeps_the_block") {
        return;
    }
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    fn halves<'s>(graph: &Graph, step: &Step<'s>, x: [f32; 2]) -> (T<'s>, T<'s>) {
        let out = graph.call(step, &[In::Host((&x).into())], (), |cx, a| {
            seg!("a", cx, (&a.t[0],), |k| {
                let y = ops::scale(k.0, 2.0)?;
                Ok((ops::narrow(&y, 0, 0, 1)?, ops::narrow(&y, 0, 1, 1)?))
            })
        });
        out.unwrap()
    }
    for round in 0..4 {
        let step = rt.step().unwrap();
        let (a, b) = halves(&graph, &step, [1.0, 2.0]);
        drop(a);
        let (c, d) = halves(&graph, &step, [3.0, 4.0]);
        assert_eq!(step.read(&b).unwrap(), [4.0], "round {round}");
        assert_eq!((step.read(&c).unwrap(), step.read(&d).unwrap()), (vec![6.0], vec![8.0]));
        drop((b, c, d));
        let (e, _) = halves(&graph, &step, [5.0, 6.0]);
        assert_eq!(step.read(&e).unwrap(), [10.0]);
    }
    assert_eq!((rt.stats().live_recordings, rt.memory().results.peak_bytes), (2, 512));
}

#[test]
fn a_static_input_is_copied_out() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    for i in 0..4 {
        let step = rt.step().unwrap();
        let same = |x: f32| {
            let y = graph.call(&step, &[In::Host((&[x, 1.0]).into())], (), |cx, a| {
                seg!("a", cx, (&a.t[0],), |k| Ok(k.0.clone()))
            });
            y.unwrap()
        };
        let first = same(1.0);
        let second = same(2.0);
        assert_eq!(step.read(&first).unwrap(), [1.0, 1.0], "step {i}: the next call overwrites the input");
        assert_eq!(step.read(&second).unwrap(), [2.0, 1.0]);
    }
    assert!(rt.stats().copies > 0);
}

#[test]
fn a_static_input_returned_without_any_segment() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    for i in 0..3 {
        let step = rt.step().unwrap();
        let y =
            graph.call(&step, &[In::Host((&[i as f32, 1.0]).into())], (), |_, a| Ok(a.t[0].clone())).unwrap();
        assert_eq!(step.read(&y).unwrap(), [i as f32, 1.0]);
    }
    assert_eq!(rt.stats().live_recordings, 0);
}

#[test]
fn device_inputs_and_parameters_are_returned_as_they_are() {
    let mut rt = runtime();
    let graph = Spec::inputs(vec![any_device("x")]).build(&mut rt);
    let w = Param::new(&rt, &[3], &[7.0, 8.0, 9.0]).unwrap();
    for i in 0..4 {
        let step = rt.step().unwrap();
        let x = step.tensor(&[2], &[i as f32, 5.0]).unwrap();
        let out = graph.call(&step, &[In::Device(&x)], &w, |cx, a| {
            seg!("a", cx, (&a.t[0], &w), |k| {
                Ok((k.0.clone(), k.0.scope().view(k.1)?, ops::narrow(k.0, 0, 1, 1)?, ops::scale(k.0, 1.0)?))
            })
        });
        let (same, weight, part, other) = out.unwrap();
        assert!(same.same_memory(&x));
        assert!(weight.same_memory(&step.scope().view(&w).unwrap()));
        assert_eq!(step.read(&same).unwrap(), [i as f32, 5.0]);
        assert_eq!(step.read(&weight).unwrap(), [7.0, 8.0, 9.0]);
        assert_eq!(step.read(&part).unwrap(), [5.0]);
        drop((same, x));
        assert_eq!(step.read(&part).unwrap(), [5.0], "the view keeps its memory");
        assert_eq!(step.read(&other).unwrap(), [i as f32, 5.0]);
    }
    assert_eq!((rt.stats().copies, rt.stats().live_recordings), (0, 1));
}

/// An eager region whose result feeds a segment.
fn with_region<'s>(graph: &Graph, step: &Step<'s>, x: &[f32; 2], temporaries: usize) -> Result<T<'s>> {
    graph.call(step, &[In::Host(x.into())], (), |cx, a| {
        let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
        let e = eager!("e", cx, |cap| {
            for _ in 0..temporaries {
                ops::neg(&h)?;
            }
            assert_eq!(cap.read(&h)?, [2.0 * x[0], 2.0 * x[1]]);
            ops::scale(&h, 3.0)
        });
        seg!("b", cx, (&e,), |k| ops::scale(k.0, 5.0))
    })
}

#[test]
fn results_of_eager_regions_settle() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    let mut log = Vec::new();
    for i in 0..5 {
        let step = rt.step().unwrap();
        let y = with_region(&graph, &step, &[i as f32, 1.0], 0).unwrap();
        assert_eq!(step.read(&y).unwrap(), [30.0 * i as f32, 30.0]);
        drop(y);
        log.push(events(&step));
    }
    assert_eq!(log[0], ["warmed a", "eager e", "warmed b"]);
    assert_eq!(log[1], ["recorded a", "eager e", "recorded b"]);
    assert_eq!(log[2..], [["replayed a", "eager e", "replayed b"]; 3]);
    let stats = rt.stats();
    assert_eq!((stats.copies, stats.eager_calls, stats.live_recordings), (0, 5, 2));
}

#[test]
fn a_result_in_another_place_is_copied_and_counted() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    for _ in 0..3 {
        let step = rt.step().unwrap();
        with_region(&graph, &step, &[1.0, 1.0], 0).unwrap();
    }
    assert_eq!(rt.stats().copies, 0);
    let before = rt.stats();
    rt.take_events();
    // Two temporaries before the result: it is the third allocation now.
    let step = rt.step().unwrap();
    let y = with_region(&graph, &step, &[1.0, 2.0], 2).unwrap();
    assert_eq!(step.read(&y).unwrap(), [30.0, 60.0]);
    assert_eq!(events(&step), ["replayed a", "eager e", "copied Eager 8", "replayed b"]);
    drop(y);
    // Learnt by now.
    let y = with_region(&graph, &step, &[1.0, 2.0], 2).unwrap();
    assert_eq!(events(&step), ["replayed a", "eager e", "replayed b"]);
    drop(y);
    assert_eq!(rt.stats().live_recordings, before.live_recordings);
}

#[test]
fn a_region_that_gives_the_calls_result() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    for i in 0..5 {
        let step = rt.step().unwrap();
        let call = |x: f32| {
            let y = graph.call(&step, &[In::Host((&[x, 1.0]).into())], (), |cx, a| {
                let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
                Ok(eager!("e", cx, |_e| ops::scale(&h, 3.0)))
            });
            y.unwrap()
        };
        let (first, second) = (call(1.0), call(2.0));
        assert_eq!(step.read(&first).unwrap(), [6.0, 6.0], "step {i}");
        assert_eq!(step.read(&second).unwrap(), [12.0, 6.0], "step {i}");
    }
    assert_eq!(rt.stats().copies, 0, "placed where it is needed from the second step on");
}

#[test]
fn a_region_may_pass_values_through() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    let w = Param::new(&rt, &[2], &[7.0, 8.0]).unwrap();
    for i in 0..4 {
        let step = rt.step().unwrap();
        let given = step.tensor(&[2], &[100.0, 200.0]).unwrap();
        let y = graph.call(&step, &[In::Host((&[i as f32, 1.0]).into())], &w, |cx, a| {
            let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
            let (same, weight, outer, nothing) = eager!("e", cx, |e| {
                Ok::<_, graphable::Error>((h.clone(), e.scope().view(&w)?, given.clone(), None::<T<'_>>))
            });
            assert!(same.same_memory(&h) && nothing.is_none());
            seg!("b", cx, (&same, &weight, &outer), |k| ops::add(&ops::add(k.0, k.1)?, k.2))
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [2.0 * i as f32 + 107.0, 210.0]);
    }
    assert_eq!(rt.stats().live_recordings, 2);
}

#[test]
fn a_read_outlives_its_step() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    let mut reads: Vec<PendingRead<f32>> = Vec::new();
    for i in 0..20 {
        let step = rt.step().unwrap();
        let y = double(&graph, &step, i as f32);
        reads.push(step.read_later(&y).unwrap());
    }
    for (i, read) in reads.into_iter().enumerate().rev() {
        assert_eq!(read.wait().unwrap(), [2.0 * i as f32, 2.0]);
    }
    let step = rt.step().unwrap();
    let read = step.read_later(&double(&graph, &step, 4.0)).unwrap();
    rt.synchronize().unwrap();
    assert!(read.is_ready());
    drop(rt);
    assert_eq!(read.wait().unwrap(), [8.0, 2.0], "and its runtime, once it is done");
}

#[test]
fn strided_tensors_are_read_in_row_major_order() {
    let mut rt = runtime();
    let step = rt.step().unwrap();
    let x = step.tensor(&[2, 3], &[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
    assert_eq!(step.read(&ops::transpose(&x, 0, 1).unwrap()).unwrap(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(step.read(&ops::narrow(&x, 1, 1, 2).unwrap()).unwrap(), [1.0, 2.0, 4.0, 5.0]);
    let row = ops::narrow(&x, 0, 1, 1).unwrap();
    assert_eq!(
        step.read(&ops::broadcast_to(&row, &[2, 3]).unwrap()).unwrap(),
        [3.0, 4.0, 5.0, 3.0, 4.0, 5.0]
    );
    assert_eq!(step.item(&ops::narrow(&row, 1, 2, 1).unwrap()).unwrap(), 5.0);
    assert!(matches!(step.item(&row), Err(graphable::Error::Shape { .. })));
    let none = step.tensor(&[0, 3], &[] as &[f32]).unwrap();
    assert_eq!(step.read(&none).unwrap(), [0.0f32; 0]);
}

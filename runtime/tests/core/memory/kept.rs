//! Values that leave their step.

use graphable::{
    Error, Event, GraphOutput, Kept, KeptTensor, Mode, Param, Result, Step, Tensor,
    backend::faulty::FaultCall, ops,
};

use crate::support::*;

fn double<'s>(graph: &Graph, step: &Step<'s>, x: [f32; 2]) -> T<'s> {
    let y = graph.call(step, &[In::Host((&x).into())], (), |cx, a| {
        seg!("a", cx, (&a.t[0],), |k| ops::scale(k.0, 2.0))
    });
    y.unwrap()
}

#[test]
fn a_kept_output_outlives_its_step_and_replays_do_not_touch_it() {
    for mode in MODES {
        let mut rt = runtime();
        let graph = vector(&mut rt, mode);
        let mut kept: Vec<KeptTensor<f32>> = Vec::new();
        for i in 0..5 {
            let step = rt.step().unwrap();
            let y = double(&graph, &step, [i as f32, 1.0]);
            kept.push(step.keep(&y).unwrap());
            assert_eq!(step.read(&y).unwrap(), [2.0 * i as f32, 2.0], "the output itself stays");
        }
        let step = rt.step().unwrap();
        for (i, kept) in kept.iter().enumerate() {
            assert_eq!(kept.shape(), [2]);
            let y = kept.view(step.scope()).unwrap();
            assert_eq!(step.read(&y).unwrap(), [2.0 * i as f32, 2.0]);
        }
        assert_eq!((rt.stats().copies, rt.stats().copied_bytes), (5, 40));
        assert_eq!(rt.memory().kept_bytes, 5 * 256);
    }
}

#[test]
fn nothing_is_copied_when_nothing_is_kept() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    for i in 0..5 {
        let step = rt.step().unwrap();
        double(&graph, &step, [i as f32, 1.0]);
    }
    let (stats, memory) = (rt.stats(), rt.memory());
    assert_eq!((stats.copies, stats.copied_bytes, memory.kept_bytes, memory.cached_bytes), (0, 0, 0, 0));
}

#[test]
fn views_of_one_storage_move_together_and_stay_one() {
    let mut rt = runtime();
    let graph = Spec::inputs(vec![host("x", &[Dim::Const(2), Dim::Const(3)])]).build(&mut rt);
    let data: Vec<f32> = (0..6).map(|i| i as f32).collect();
    for _ in 0..3 {
        let step = rt.step().unwrap();
        let (turned, row) = graph
            .call(&step, &[In::Host((&data[..], &[2, 3]).into())], (), |cx, a| {
                seg!("a", cx, (&a.t[0],), |k| {
                    let y = ops::scale(k.0, 2.0)?;
                    Ok((ops::transpose(&y, 0, 1)?, ops::narrow(&y, 0, 1, 1)?))
                })
            })
            .unwrap();
        let both = step.keep(&(turned, row)).unwrap();
        assert_eq!((both.storages(), both.bytes()), (1, 256));
        let step = rt.step().unwrap();
        let (turned, row) = both.view(step.scope()).unwrap();
        assert_eq!(step.read(&turned).unwrap(), [0.0, 6.0, 2.0, 8.0, 4.0, 10.0]);
        drop(turned);
        assert_eq!(step.read(&row).unwrap(), [6.0, 8.0, 10.0], "one view left keeps the storage");
        // Kept again: the same memory, nothing to copy.
        let copies = rt_copies(&step);
        let again = step.keep(&[row.clone(), row]).unwrap();
        assert_eq!((again.storages(), rt_copies(&step)), (1, copies));
        drop(both);
        let [a, b] = again.view(step.scope()).unwrap();
        assert!(a.same_memory(&b));
        assert_eq!(step.read(&b).unwrap(), [6.0, 8.0, 10.0]);
    }
}

fn rt_copies(step: &Step<'_>) -> u64 {
    step.stats().copies
}

#[test]
fn only_what_is_shown_is_copied() {
    let mut rt = runtime();
    let step = rt.step().unwrap();
    let data: Vec<f32> = (0..4096).map(|i| i as f32).collect();
    let x = step.tensor(&[4096], &data).unwrap();
    let part = ops::narrow(&x, 0, 1000, 10).unwrap();
    let kept = step.keep(&part).unwrap();
    drop((x, part));
    assert!(rt.stats().copied_bytes < 512, "{} bytes", rt.stats().copied_bytes);
    let step = rt.step().unwrap();
    let part = kept.view(step.scope()).unwrap();
    assert_eq!(step.read(&part).unwrap(), data[1000..1010]);
    drop((part, step));
    // Of two views, everything between them.
    let step = rt.step().unwrap();
    let x = step.tensor(&[4096], &data).unwrap();
    let ends = (ops::narrow(&x, 0, 0, 1).unwrap(), ops::narrow(&x, 0, 4095, 1).unwrap());
    let kept = step.keep(&ends).unwrap();
    assert_eq!((kept.storages(), kept.bytes()), (1, 4 * 4096));
    drop((x, ends));
    let step = rt.step().unwrap();
    let (first, last) = kept.view(step.scope()).unwrap();
    assert_eq!((step.item(&first).unwrap(), step.item(&last).unwrap()), (0.0, 4095.0));
}

/// A carried state: `h = 0.5 h + x`, kept from step to step, as a device input.
#[test]
fn a_carried_value_settles_to_replays_without_new_memory() {
    for mode in MODES {
        let mut rt = runtime();
        let graph = Spec::inputs(vec![host("x", &[Dim::Const(2)]), device("h", &[Dim::Const(2)])])
            .mode(mode)
            .build(&mut rt);
        let mut h: Option<KeptTensor<f32>> = None;
        let mut expected = [0.0f32; 2];
        let mut settled = None;
        for i in 0..20 {
            let step = rt.step().unwrap();
            let before = match &h {
                Some(h) => h.view(step.scope()).unwrap(),
                None => step.tensor(&[2], &[0.0, 0.0]).unwrap(),
            };
            let x = [i as f32, 1.0];
            let next = graph
                .call(&step, &[In::Host((&x).into()), In::Device(&before)], (), |cx, a| {
                    seg!("a", cx, (&a.t[0], &a.t[1]), |k| ops::add(&ops::scale(k.1, 0.5)?, k.0))
                })
                .unwrap();
            expected = [0.5 * expected[0] + x[0], 0.5 * expected[1] + x[1]];
            assert_eq!(step.read(&next).unwrap(), expected, "step {i} in mode {mode}");
            h = Some(step.keep(&next).unwrap());
            drop((before, next, step));
            if i == 8 {
                let (stats, memory) = (rt.stats(), rt.memory());
                settled = Some((stats.recordings, stats.evicted, memory.kept_bytes + memory.cached_bytes));
            }
        }
        let (stats, memory) = (rt.stats(), rt.memory());
        // Two blocks take turns: one recording for each.
        assert_eq!(
            Some((stats.recordings, stats.evicted, memory.kept_bytes + memory.cached_bytes)),
            settled,
            "mode {mode}"
        );
        assert_eq!(stats.fallbacks, 0);
    }
}

#[test]
fn a_kept_value_is_a_parameter_and_an_operand() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let kept = {
        let step = rt.step().unwrap();
        let y = step.tensor(&[3], &[9.0f32, 10.0, 20.0]).unwrap();
        step.keep(&ops::narrow(&y, 0, 1, 2).unwrap()).unwrap()
    };
    for i in 0..4 {
        let step = rt.step().unwrap();
        let y = graph
            .call(&step, &[x()], &kept, |cx, a| seg!("a", cx, (&a.t[0], &kept), |k| ops::add(k.0, k.1)))
            .unwrap();
        assert_eq!(step.read(&y).unwrap(), [11.0, 22.0]);
        // One recording, then replays.
        assert_eq!(nodes(&step.take_events()).len(), usize::from(i > 0));
    }
    assert_eq!(rt.stats().recordings, 1);
    // Dropped: its memory is freed some steps later, and the recording that holds its address goes.
    drop(kept);
    for _ in 0..8 {
        rt.step().unwrap();
    }
    let (stats, memory) = (rt.stats(), rt.memory());
    assert_eq!((stats.live_recordings, stats.evicted, memory.kept_bytes, memory.cached_bytes), (0, 1, 0, 0));
}

#[test]
fn parameters_are_shared_and_static_inputs_are_copied() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let w = Param::new(&rt, &[2], &[7.0f32, 8.0]).unwrap();
    let (weight, input) = {
        let step = rt.step().unwrap();
        let weight = step.keep(&step.scope().view(&w).unwrap()).unwrap();
        assert_eq!((rt_copies(&step), step.memory().kept_bytes), (0, 0));
        let y = graph.call(&step, &[x()], (), |_, a| Ok(a.t[0].clone())).unwrap();
        (weight, step.keep(&y).unwrap())
    };
    drop(w);
    for _ in 0..6 {
        let step = rt.step().unwrap();
        double(&graph, &step, [5.0, 6.0]);
    }
    let step = rt.step().unwrap();
    assert_eq!(step.read(&weight.view(step.scope()).unwrap()).unwrap(), [7.0, 8.0]);
    assert_eq!(step.read(&input.view(step.scope()).unwrap()).unwrap(), X);
}

#[derive(Clone, Debug, GraphOutput)]
struct Out<'t> {
    logits: Tensor<'t, f32>,
    hidden: Option<[Tensor<'t, f32>; 2]>,
    position: usize,
    name: String,
}

/// Moves what it is given, to show that it may.
fn on_another_thread(kept: Kept<Out<'static>>) -> Kept<Out<'static>> {
    std::thread::spawn(move || {
        drop(kept.clone());
        kept
    })
    .join()
    .unwrap()
}

#[test]
fn structs_vectors_and_host_values_are_kept_whole() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let (kept, list) = {
        let step = rt.step().unwrap();
        let out: Out<'_> = graph
            .call(&step, &[x()], (), |cx, a| {
                let (logits, hidden) = seg!("a", cx, (&a.t[0],), |k| {
                    let y = ops::neg(k.0)?;
                    Ok((ops::scale(k.0, 3.0)?, [ops::narrow(&y, 0, 0, 1)?, ops::narrow(&y, 0, 1, 1)?]))
                })?;
                Ok(Out { logits, hidden: Some(hidden), position: 42, name: "é".into() })
            })
            .unwrap();
        let list: Vec<T<'_>> = vec![out.logits.clone(); 3];
        (step.keep(&out).unwrap(), step.keep(&list).unwrap())
    };
    assert_eq!((kept.storages(), list.storages()), (2, 1));
    let kept = on_another_thread(kept);
    let step = rt.step().unwrap();
    let Out { logits, hidden, position, name } = kept.view(step.scope()).unwrap();
    let [first, second] = hidden.unwrap();
    assert_eq!(step.read(&logits).unwrap(), [3.0, 6.0]);
    assert_eq!((step.item(&first).unwrap(), step.item(&second).unwrap()), (-1.0, -2.0));
    assert_eq!((position, name.as_str()), (42, "é"));
    let list = list.view(step.scope()).unwrap();
    assert_eq!(list.len(), 3);
    assert_eq!(step.read(&list[2]).unwrap(), [3.0, 6.0]);
}

#[test]
fn it_is_copied_behind_a_read_and_outlives_its_runtime() {
    let mut rt = runtime();
    let mut other = runtime();
    let kept = {
        let step = rt.step().unwrap();
        let y = step.tensor(&[2], &[1.0f32, 2.0]).unwrap();
        step.keep(&y).unwrap()
    };
    let foreign = other.step().unwrap();
    assert!(matches!(kept.view(foreign.scope()), Err(Error::DifferentRuntimes { .. })));
    let one = foreign.tensor(&[2], &[1.0f32, 1.0]).unwrap();
    assert!(matches!(ops::add(&one, &kept), Err(Error::DifferentRuntimes { .. })));
    let step = rt.step().unwrap();
    let y = kept.view(step.scope()).unwrap();
    let stolen: Result<KeptTensor<f32>> = foreign.keep(&y);
    assert!(matches!(stolen, Err(Error::DifferentRuntimes { .. })));
    drop(y);
    let clone = kept.clone();
    drop(kept);
    drop(rt);
    assert_eq!(clone.shape(), [2]);
    drop(clone);
}

#[test]
fn a_copy_that_fails_leaves_nothing() {
    let (mut rt, plan) = faulty();
    let graph = vector(&mut rt, Mode::Piecewise);
    for call in [FaultCall::Alloc, FaultCall::Copy] {
        let step = rt.step().unwrap();
        let y = double(&graph, &step, X);
        plan.arm(Some(call), 0, false);
        assert!(matches!(step.keep(&y), Err(Error::Device { .. })), "{call:?}");
        assert_eq!(step.read(&y).unwrap(), [2.0, 4.0]);
        drop((y, step));
        assert_eq!(rt.memory().kept_bytes, 0);
    }
    let step = rt.step().unwrap();
    let kept = step.keep(&double(&graph, &step, X)).unwrap();
    let step = rt.step().unwrap();
    assert_eq!(step.read(&kept.view(step.scope()).unwrap()).unwrap(), [2.0, 4.0]);
    assert!(step.take_events().iter().any(|e| matches!(e, Event::Copied { bytes: 8, .. })));
}

/// Padding is cut off, also inside a call.
#[test]
fn padding_does_not_leave() {
    let mut rt = runtime();
    static B: [&str; 1] = ["B"];
    let site = site!("e");
    let mut spec = Spec::inputs(vec![host("x", &[Dim::Symbol(0), Dim::Const(2)])]);
    spec.symbols = &B;
    spec.plan = boundary(site, graphable::Support::Never);
    let graph = spec.with(|o| o.bucket("B", graphable::Schedule::new([4]))).build(&mut rt);
    let data = [1.0f32, 2.0, 3.0, 4.0];
    let mut kept = None;
    for _ in 0..3 {
        let step = rt.step().unwrap();
        graph
            .call(&step, &[In::Host((&data[..], &[2, 2]).into())], (), |cx, a| {
                let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
                let same = eager!("e", cx, |e| {
                    kept = Some(e.keep(&h)?);
                    Ok::<_, Error>(h.clone())
                });
                seg!("b", cx, (&same,), |k| ops::neg(k.0))
            })
            .unwrap();
    }
    let kept: KeptTensor<f32> = kept.unwrap();
    assert_eq!(kept.shape(), [2, 2]);
    let step = rt.step().unwrap();
    assert_eq!(step.read(&kept.view(step.scope()).unwrap()).unwrap(), [2.0, 4.0, 6.0, 8.0]);
}

#[test]
fn nothing_can_be_kept() {
    let mut rt = runtime();
    let (empty, none) = {
        let step = rt.step().unwrap();
        let x = step.tensor(&[0, 3], &[] as &[f32]).unwrap();
        (step.keep(&x).unwrap(), step.keep(&None::<T<'_>>).unwrap())
    };
    assert_eq!(rt.stats().copied_bytes, 0);
    assert_eq!((none.storages(), none.bytes()), (0, 0));
    let step = rt.step().unwrap();
    let x = empty.view(step.scope()).unwrap();
    assert_eq!(x.shape(), [0, 3]);
    assert!(step.read(&x).unwrap().is_empty());
    assert!(none.view(step.scope()).unwrap().is_none());
}

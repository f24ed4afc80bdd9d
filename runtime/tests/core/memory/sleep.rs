//! Weights that sleep: their memory goes, their addresses stay, and nothing is recorded anew.

use graphable::{
    BlockFormat, Error, KeptTensor, Mode, Param, ParamVisitor, Result, Runtime, Sleep, State, Step, Weight,
    backend::faulty::FaultCall, ops,
};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use crate::support::*;

fn sleeping() -> Checked {
    let mut rt = runtime();
    rt.weights_can_sleep(true).unwrap();
    rt
}

fn graph(rt: &mut Runtime, mode: Mode) -> Graph {
    Spec::inputs(vec![host("x", &[Dim::Const(2)])]).mode(mode).build(rt)
}

/// `(x * w + s) * v`, with a region between.
fn call<'s>(graph: &Graph, step: &Step<'s>, [w, v]: [&Param<f32>; 2], s: &State<f32>) -> Result<T<'s>> {
    graph.call(step, &[x()], (w, v, s), |cx, a| {
        let (h,) = seg!("a", cx, (&a.t[0], w, s), |k| Ok((ops::add(&ops::mul(k.0, k.1)?, k.2)?,)))?;
        let e = eager!("e", Always, cx, |_e| ops::scale(&h, 1.0));
        seg!("b", cx, (&e, v), |k| ops::mul(k.0, k.1))
    })
}

fn is_asleep<T>(result: Result<T>, what: &str) {
    let error = result.err().unwrap_or_else(|| panic!("{what} used a weight that sleeps"));
    assert!(matches!(error, Error::Asleep { .. }), "{what}: {error}");
}

fn is_discarded<T>(result: Result<T>, what: &str) {
    let error = result.err().unwrap_or_else(|| panic!("{what} used a weight that holds nothing"));
    assert!(matches!(error, Error::Discarded { .. }), "{what}: {error}");
}

#[test]
fn recordings_stay_valid_over_a_sleep() {
    for mode in MODES {
        let mut rt = sleeping();
        let graph = graph(&mut rt, mode);
        let w = Param::new(&rt, &[2], &[2.0f32, 3.0]).unwrap();
        let v = Param::new(&rt, &[2], &[10.0f32, 100.0]).unwrap();
        let s = State::new(&rt, &[2], &[0.5f32, 0.5]).unwrap();
        let run = |rt: &mut Runtime, want: [f32; 2]| {
            let step = rt.step().unwrap();
            let y = call(&graph, &step, [&w, &v], &s).unwrap();
            assert_eq!(step.read(&y).unwrap(), want, "{mode}");
        };
        for _ in 0..4 {
            run(&mut rt, [25.0, 650.0]);
        }
        let (recorded, awake) = (rt.stats().recordings, rt.memory());
        assert_eq!((awake.sleeping_bytes, awake.saved_bytes, awake.weights.live_bytes), (0, 0, 512));
        for round in 0..3 {
            let released = rt.sleep(Sleep::Save).unwrap();
            assert!(rt.is_asleep());
            let memory = rt.memory();
            if !crate::device::has_gaps() {
                assert_eq!((released, memory.weights.committed_bytes), (awake.weights.committed_bytes, 0));
            }
            assert_eq!((memory.sleeping_bytes, memory.saved_bytes), (16, 16), "round {round}");
            assert_eq!(memory.owned_bytes, awake.owned_bytes);
            assert_eq!(rt.sleep(Sleep::Save).unwrap(), 0, "they sleep already");
            {
                let step = rt.step().unwrap();
                is_asleep(call(&graph, &step, [&w, &v], &s), "a call");
                assert_eq!(step.read(&ops::load(step.scope(), &s).unwrap()).unwrap(), [0.5, 0.5]);
            }
            let taken = rt.wake().unwrap();
            assert!(!rt.is_asleep());
            if !crate::device::has_gaps() {
                assert!(taken >= 512 && rt.memory().weights.committed_bytes == taken);
            }
            assert_eq!((rt.memory().sleeping_bytes, rt.memory().saved_bytes), (0, 0));
            assert_eq!(rt.wake().unwrap(), 0, "they are awake");
            rt.check_memory().unwrap();
            run(&mut rt, [25.0, 650.0]);
        }
        assert_eq!(rt.stats().recordings, recorded, "{mode}: nothing is recorded anew");
    }
}

#[test]
fn whatever_uses_a_sleeping_weight_is_refused() {
    let mut rt = sleeping();
    let w = Param::new(&rt, &[2, 2], &[1.0f32; 4]).unwrap();
    let blocks = Weight::<f32>::blocks(&rt, &[1, 32], BlockFormat::Q8_0, vec![1; 34]).unwrap();
    let s = State::<f32>::zeros(&rt, &[2, 2]).unwrap();
    let kept: KeptTensor<f32> = {
        let step = rt.step().unwrap();
        step.keep(&step.scope().view(&w).unwrap()).unwrap()
    };
    rt.sleep(Sleep::Save).unwrap();
    is_asleep(Param::<f32>::zeros(&rt, &[2]), "a new parameter");
    is_asleep(Param::new(&rt, &[2], &[1.0f32; 2]), "a new parameter");
    State::<f32>::zeros(&rt, &[2]).unwrap();
    {
        let step = rt.step().unwrap();
        let x = step.tensor(&[2, 2], &[1.0; 4]).unwrap();
        is_asleep(w.write(&step, &[0.0; 4]), "a write");
        is_asleep(w.write_rows(&step, 0..1, &[0.0; 2]), "a write of a row");
        is_asleep(w.write(&step, &x), "a write of a tensor");
        is_asleep(w.read(&step).map(drop), "a read");
        is_asleep(blocks.read_blocks(&step).map(drop), "a read of blocks");
        is_asleep(blocks.write_blocks(&step, BlockFormat::Q8_0, &[0; 34]), "a write of blocks");
        is_asleep(ops::add(&x, &w), "an operation");
        is_asleep(ops::linear(&x, &w), "a product");
        let view = step.scope().view(&w).unwrap();
        is_asleep(step.read(&view), "a read of a view");
        is_asleep(step.read_later(&view), "a later read of a view");
        is_asleep(ops::neg(&view), "an operation on a view");
        is_asleep(ops::store(&s, &view), "a store of a view");
        is_asleep(step.keep(&view), "a view that is kept");
        is_asleep(step.read(&kept.view(step.scope()).unwrap()), "a view that was kept");
        is_asleep(ops::mul(&x, &kept), "a view that was kept, as an operand");
        assert_eq!(step.read(&ops::add(&x, &s).unwrap()).unwrap(), [1.0; 4]);
    }
    let e = rt.estimate_memory(|rt| rt.wake().map(drop)).unwrap_err();
    assert!(matches!(e, Error::InsideEstimate { call: "wake" }), "{e}");
    let e = rt.estimate_memory(|rt| rt.sleep(Sleep::Discard).map(drop)).unwrap_err();
    assert!(matches!(e, Error::InsideEstimate { call: "sleep" }), "{e}");
    rt.wake().unwrap();
    let step = rt.step().unwrap();
    assert_eq!(step.read(&kept.view(step.scope()).unwrap()).unwrap(), [1.0; 4]);
    assert_eq!(blocks.read_blocks(&step).unwrap().wait().unwrap(), [1; 34]);
}

#[test]
fn what_was_discarded_must_be_written() {
    for saved_before in [false, true] {
        let mut rt = sleeping();
        let graph = graph(&mut rt, Mode::Piecewise);
        let w = Param::new(&rt, &[2], &[2.0f32, 3.0]).unwrap();
        let v = Param::new(&rt, &[2], &[1.0f32, 1.0]).unwrap();
        let none = Param::<f32>::zeros(&rt, &[0]).unwrap();
        let s = State::<f32>::zeros(&rt, &[2]).unwrap();
        for _ in 0..4 {
            let step = rt.step().unwrap();
            assert_eq!(step.read(&call(&graph, &step, [&w, &v], &s).unwrap()).unwrap(), [2.0, 6.0]);
        }
        let recorded = rt.stats().recordings;
        if saved_before {
            rt.sleep(Sleep::Save).unwrap();
        }
        rt.sleep(Sleep::Discard).unwrap();
        assert_eq!((rt.memory().sleeping_bytes, rt.memory().saved_bytes), (16, 0));
        rt.wake().unwrap();
        assert_eq!((rt.memory().sleeping_bytes, rt.memory().saved_bytes), (0, 0));
        {
            let step = rt.step().unwrap();
            let x = step.tensor(&[2], &X).unwrap();
            is_discarded(call(&graph, &step, [&w, &v], &s), "a call");
            is_discarded(ops::mul(&x, &w), "an operation");
            is_discarded(w.read(&step).map(drop), "a read");
            is_discarded(w.write_rows(&step, 0..1, &[1.0]), "a write of a part");
            w.write(&step, &[4.0, 5.0]).unwrap();
            w.write_rows(&step, 1..2, &[7.0]).unwrap();
            assert_eq!(w.read(&step).unwrap().wait().unwrap(), [4.0, 7.0]);
            is_discarded(call(&graph, &step, [&w, &v], &s), "a call, with one of two");
            assert!(none.read(&step).unwrap().wait().unwrap().is_empty());
        }
        // What sleeps without contents wakes without them, also if others are saved.
        rt.sleep(Sleep::Save).unwrap();
        assert_eq!(rt.memory().saved_bytes, 8);
        rt.wake().unwrap();
        let step = rt.step().unwrap();
        is_discarded(ops::mul(&step.tensor(&[2], &X).unwrap(), &v), "what was never written");
        assert_eq!(w.read(&step).unwrap().wait().unwrap(), [4.0, 7.0]);
        v.write(&step, &[10.0, 1.0]).unwrap();
        assert_eq!(step.read(&call(&graph, &step, [&w, &v], &s).unwrap()).unwrap(), [40.0, 14.0]);
        assert_eq!(step.stats().recordings, recorded);
    }
}

/// Weights that come and go share the arena, also while it sleeps.
#[test]
fn weights_that_are_dropped_make_room() {
    let mut rt = sleeping();
    let numbers = |seed: u64| {
        let mut rng = StdRng::seed_from_u64(seed);
        let len = rng.random_range(1..3000);
        (0..len).map(|_| rng.random_range(-1.0f32..1.0)).collect::<Vec<f32>>()
    };
    let mut rng = StdRng::seed_from_u64(7);
    let mut all: Vec<(u64, Param<f32>)> = Vec::new();
    for seed in 0..300u64 {
        while all.len() > 12 || !all.is_empty() && rng.random_bool(0.3) {
            let at = rng.random_range(0..all.len());
            all.swap_remove(at);
        }
        if rng.random_bool(0.2) {
            rt.sleep(Sleep::Save).unwrap();
            if !all.is_empty() {
                all.remove(0);
            }
            rt.wake().unwrap();
        }
        let values = numbers(seed);
        let param = if seed.is_multiple_of(3) {
            let zeros = Param::<f32>::zeros(&rt, &[values.len()]).unwrap();
            let step = rt.step().unwrap();
            assert!(
                zeros.read(&step).unwrap().wait().unwrap().iter().all(|v| *v == 0.0),
                "zeros, whatever was there"
            );
            zeros.write(&step, &values).unwrap();
            zeros
        } else {
            Param::new(&rt, &[values.len()], &values).unwrap()
        };
        all.push((seed, param));
        if rng.random_bool(0.1) {
            rt.trim().unwrap();
        }
        let step = rt.step().unwrap();
        for (seed, param) in &all {
            assert_eq!(param.read(&step).unwrap().wait().unwrap(), numbers(*seed), "of round {seed}");
        }
        step.check_memory().unwrap();
        let live: usize = all.iter().map(|(_, param)| (4 * param.dim(0)).div_ceil(256) * 256).sum();
        assert_eq!(step.memory().weights.live_bytes, live as u64);
    }
    let peak = rt.memory().weights.peak_bytes;
    assert!(peak < 14 * 12000 * 2, "gaps are used again: {peak}");
    // Handles may outlive the runtime.
    drop(rt);
    drop(all);
}

/// Weights that were made before, state and kept values are no part of it.
#[test]
fn only_weights_that_can_sleep_do() {
    let mut rt = runtime();
    let e = rt.sleep(Sleep::Save).unwrap_err();
    assert!(matches!(&e, Error::Config { what, .. } if what == "Runtime::sleep"), "{e}");
    assert_eq!(rt.wake().unwrap(), 0);
    let early = Param::new(&rt, &[2], &[1.0f32, 2.0]).unwrap();
    rt.weights_can_sleep(true).unwrap();
    let sleeper = Param::new(&rt, &[2], &[3.0f32, 4.0]).unwrap();
    rt.weights_can_sleep(false).unwrap();
    let late = Param::new(&rt, &[2], &[5.0f32, 6.0]).unwrap();
    assert_eq!(ParamVisitor::list(&sleeper)[0].bytes, 8);
    rt.sleep(Sleep::Discard).unwrap();
    let later = Param::new(&rt, &[2], &[7.0f32, 8.0]).unwrap();
    let step = rt.step().unwrap();
    for (param, values) in [(&early, [1.0, 2.0]), (&late, [5.0, 6.0]), (&later, [7.0, 8.0])] {
        assert_eq!(param.read(&step).unwrap().wait().unwrap(), values);
    }
    is_asleep(sleeper.read(&step).map(drop), "a read");
}

/// Whatever the device refuses, weights are awake with what they hold, or asleep with what was saved.
#[test]
fn a_sleep_that_fails_is_none() {
    let many: Vec<f32> = (0..3000).map(|i| i as f32).collect();
    let mut places = [0; 2];
    for nth in 0..40 {
        for (at, name) in ["sleep", "wake"].into_iter().enumerate() {
            let (mut rt, plan) = faulty();
            rt.weights_can_sleep(true).unwrap();
            let w = Param::new(&rt, &[2], &[2.0f32, 3.0]).unwrap();
            let large = Param::new(&rt, &[3000], &many).unwrap();
            if at == 1 {
                rt.sleep(Sleep::Save).unwrap();
            }
            plan.arm(None, nth, false);
            let outcome = if at == 0 { rt.sleep(Sleep::Save) } else { rt.wake() };
            let was_left = plan.disarm();
            match outcome {
                Err(Error::Device { reason, .. }) if reason == "the test said so" => {
                    assert!(!was_left);
                    places[at] += 1;
                    assert_eq!(rt.is_asleep(), at == 1, "{name}, {nth}");
                }
                Ok(_) => assert!(was_left, "{name}, {nth}: a fault was swallowed"),
                Err(error) => panic!("{name}, {nth}: {error}"),
            }
            rt.wake().unwrap();
            let step = rt.step().unwrap();
            assert_eq!(w.read(&step).unwrap().wait().unwrap(), [2.0, 3.0]);
            assert_eq!(large.read(&step).unwrap().wait().unwrap(), many);
        }
    }
    assert!(places[0] >= 4 && places[1] >= 3, "{places:?}");
    // Not enough memory to wake: it can be tried again.
    let (mut rt, plan) = faulty();
    rt.weights_can_sleep(true).unwrap();
    let w = Param::new(&rt, &[2], &[2.0f32, 3.0]).unwrap();
    rt.sleep(Sleep::Save).unwrap();
    plan.run_out_of_memory(FaultCall::Commit, 0);
    assert!(matches!(rt.wake(), Err(Error::OutOfMemory { .. })) || crate::device::has_gaps());
    rt.wake().unwrap();
    assert_eq!(w.read(&rt.step().unwrap()).unwrap().wait().unwrap(), [2.0, 3.0]);
}

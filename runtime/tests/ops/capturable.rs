//! Regions that may be captured, with work of their own: `#[eager(cx, support = …)]`.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
};

use graphable::{
    custom::{CustomOp, CustomOpBuilder},
    prelude::*,
};

use crate::{
    custom_ops::times_by,
    device::skipped_on_gpus,
    harness::{device, events},
};

/// What a program knows about a batch; each region makes a plan of it.
static BATCH: AtomicU32 = AtomicU32::new(0);

/// `plan * x`, by an operation that is made for this launch.
fn planned<'s>(cx: &Capturable<'s>, plan: u32, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    cx.call(times_by("planned", plan as f32)).input(x).count(x).output(x.shape()).run()
}

#[graphable]
fn attend(x: &Tensor<f32>, seen: &State<f32>) -> Result<Tensor<f32>> {
    let x = ops::neg(x)?;
    let y = #[eager(cx, support = Always)]
    {
        let y = planned(cx, BATCH.load(Ordering::Relaxed), &x)?;
        // Twice in one region, and on state.
        crate::custom_ops::accumulate(seen, &y)?;
        planned(cx, 2, &y)?
    };
    ops::neg(&y)
}

/// Calls `graph` with `plan`, and checks its result against `factor`.
fn call(rt: &mut Runtime, graph: &AttendGraph, seen: &State<f32>, plan: u32, factor: f32) -> Result<()> {
    BATCH.store(plan, Ordering::Relaxed);
    let step = rt.step()?;
    let y = graph.call(&step, &step.tensor(&[2], &[1.0, -3.0])?, seen)?;
    assert_eq!(step.read(&y)?, [2.0 * factor, -6.0 * factor], "plan {plan}");
    Ok(())
}

#[test]
fn work_of_a_region_runs_on_every_call_or_as_it_was_recorded() {
    for audited in [0, 3] {
        for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
            let mut rt = Runtime::new(device()).unwrap();
            rt.keep_events(true);
            let seen = State::zeros(&rt, &[2]).unwrap();
            let graph = AttendGraph::builder()
                .mode(mode)
                .audit_every(audited)
                .deny_fallback(true)
                .build(&mut rt)
                .unwrap();
            let mut sum = 0.0;
            for i in 0..10 {
                // Full mode repeats the plan that it recorded, so the program must not change it.
                let plan = if mode == Mode::Full { 5 } else { i + 1 };
                call(&mut rt, &graph, &seen, plan, plan as f32).unwrap();
                sum -= plan as f32;
            }
            let seen_events = events(&rt);
            let count = |kind| seen_events.matches(kind).count();
            // One segment on each side of the region, or the whole call.
            let segments = match mode {
                Mode::None => 0,
                Mode::Full => 1,
                _ => 2,
            };
            let expected = (segments, segments, 8 * segments, 0);
            assert_eq!((count('w'), count('r'), count('p'), count('f')), expected, "{mode}: {seen_events}");
            let step = rt.step().unwrap();
            let total = step.read(&ops::load(step.scope(), &seen).unwrap()).unwrap();
            assert_eq!(total, [sum, -3.0 * sum], "{mode}");
        }
    }
}

/// `x`, by code that owns `alive`.
fn copied(alive: &Arc<AtomicUsize>) -> CustomOpBuilder {
    struct Plan(Arc<AtomicUsize>);
    impl Drop for Plan {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    alive.fetch_add(1, Ordering::SeqCst);
    let plan = Plan(Arc::clone(alive));
    CustomOp::builder("copied").cpu(move |call| {
        let _used = &plan;
        call.output::<f32>(0)?.copy_from_slice(call.input::<f32>(0)?);
        Ok(())
    })
}

#[test]
fn what_the_code_of_a_region_owns_lives_as_long_as_its_recording() {
    if skipped_on_gpus(
        "what_the_code_of_a_region_owns_lives_as_long_as_its_recording",
        "its operations have code for the CPU alone",
    ) {
        return;
    }
    static ALIVE: std::sync::LazyLock<Arc<AtomicUsize>> = std::sync::LazyLock::new(Arc::default);
    #[graphable]
    fn through(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let x = ops::neg(x)?;
        let y = #[eager(cx, support = Always)]
        cx.call(copied(&ALIVE)).input(&x).output::<f32>(x.shape()).run()?;
        ops::neg(&y)
    }
    for (mode, kept) in [(Mode::Piecewise, 0), (Mode::Full, 1)] {
        let mut rt = Runtime::new(device()).unwrap();
        let graph = ThroughGraph::builder().mode(mode).deny_fallback(true).build(&mut rt).unwrap();
        for i in 0..8 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &step.tensor(&[1], &[i as f32]).unwrap()).unwrap();
            assert_eq!(step.read(&y).unwrap(), [i as f32], "{mode}");
        }
        rt.synchronize().unwrap();
        assert_eq!(ALIVE.load(Ordering::SeqCst), kept, "{mode}");
        drop((graph, rt));
        assert_eq!(ALIVE.load(Ordering::SeqCst), 0, "{mode}");
    }
}

#[test]
fn operations_of_one_name_in_a_region_are_told_apart() {
    static FLIPPED: AtomicBool = AtomicBool::new(false);
    #[graphable]
    fn through(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let x = ops::neg(x)?;
        let y = #[eager(cx, support = Always)]
        {
            let double = cx.call(times_by("times", 2.0)).input(&x).count(&x);
            let triple = cx.call(times_by("times", 3.0)).input(&x).count(&x);
            if FLIPPED.load(Ordering::Relaxed) {
                triple.output::<f32>(x.shape()).run()?;
                double.output::<f32>(x.shape()).run()?
            } else {
                double.output::<f32>(x.shape()).run()?;
                triple.output::<f32>(x.shape()).run()?
            }
        };
        ops::neg(&y)
    }
    for flipped in [false, true] {
        let mut rt = Runtime::new(device()).unwrap();
        let graph = ThroughGraph::builder().mode(Mode::Full).build(&mut rt).unwrap();
        for recorded in [false, true] {
            // Another order than that of the warm-up.
            FLIPPED.store(flipped && recorded, Ordering::Relaxed);
            let step = rt.step().unwrap();
            let result = graph.call(&step, &step.tensor(&[1], &[1.0]).unwrap());
            match result {
                Err(Error::TraceMismatch { index: 1, .. }) => assert!(flipped && recorded),
                other => {
                    assert_eq!(step.read(&other.unwrap()).unwrap(), [3.0]);
                    assert!(!(flipped && recorded));
                }
            }
        }
    }
}

#[test]
fn code_that_may_not_be_captured_is_refused_where_the_region_is_captured() {
    #[graphable]
    fn through(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let x = ops::neg(x)?;
        let y = #[eager(cx, support = Always)]
        cx.call(crate::custom::never_captured()).input(&x).output::<f32>(x.shape()).run()?;
        ops::neg(&y)
    }
    for mode in [Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(device()).unwrap();
        let graph = ThroughGraph::builder().mode(mode).build(&mut rt).unwrap();
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let result = graph.call(&step, &step.tensor(&[1], &[1.0]).unwrap());
            match mode {
                Mode::Full => {
                    assert!(
                        matches!(result, Err(Error::NotCapturable { op: "never_captured", .. })),
                        "{result:?}"
                    )
                }
                _ => assert_eq!(step.read(&result.unwrap()).unwrap(), [1.0]),
            }
        }
    }
}

#[test]
fn eager_code_launches_operations_that_are_made_for_it() {
    #[graphable]
    fn through(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let x = ops::neg(x)?;
        let y = #[eager(cx)]
        {
            let largest = cx.read(&x)?.into_iter().fold(0.0, f32::max);
            cx.call(times_by("scaled", largest)).input(&x).count(&x).output::<f32>(x.shape()).run()?
        };
        ops::neg(&y)
    }
    let mut rt = Runtime::new(device()).unwrap();
    let graph = ThroughGraph::builder().deny_fallback(true).build(&mut rt).unwrap();
    for i in 1..8 {
        let x = -(i as f32);
        let step = rt.step().unwrap();
        let y = graph.call(&step, &step.tensor(&[2], &[x, 0.5]).unwrap()).unwrap();
        assert_eq!(step.read(&y).unwrap(), [x * -x, 0.5 * -x]);
    }
    assert_eq!(rt.stats().recordings, 2);
}

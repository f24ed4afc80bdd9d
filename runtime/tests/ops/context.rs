//! Host context as a parameter: by identity, and dropped when nothing uses it any more.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
    mpsc,
};

use graphable::{
    custom::{CpuCall, CustomOp},
    prelude::*,
};

use crate::{
    custom_ops::times_by,
    device::{gpu, skipped_on_gpus},
    harness::device,
};

/// A plan of a library, which is counted while it is alive.
struct Plan {
    factor: f32,
    alive: Arc<AtomicUsize>,
}

impl Plan {
    fn new(factor: f32, alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Self { factor, alive: Arc::clone(alive) }
    }

    /// The operation, whose code owns the plan.
    fn operation(self) -> CustomOp {
        let op = times_by("planned", self.factor);
        let plan = self;
        let of_cpu = move |call: &CpuCall<'_>| {
            // All of it, not its number alone.
            let plan = &plan;
            let (x, y) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
            y.iter_mut().zip(x).for_each(|(y, x)| *y = x * plan.factor);
            Ok(())
        };
        op.cpu(of_cpu).build()
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Params)]
struct Model {
    bias: Param<f32>,
    op: HostContext<CustomOp>,
}

#[graphable]
fn planned(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let y = model.op.call(x.scope()).input(x).output::<f32>(x.shape()).run()?;
    let y = #[eager(support = Always)]
    ops::add(&y, &model.bias)?;
    model.op.call(x.scope()).input(&y).output(y.shape()).run()
}

fn call(rt: &mut Runtime, graph: &PlannedGraph, model: &Model, factor: f32) -> Result<()> {
    let step = rt.step()?;
    let y = graph.call(&step, &step.tensor(&[2], &[1.0, 2.0])?, model)?;
    assert_eq!(step.read(&y)?, [(factor + 1.0) * factor, (2.0 * factor + 1.0) * factor]);
    Ok(())
}

#[test]
fn a_plan_that_is_replaced_goes_with_its_recordings() {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let alive = Arc::<AtomicUsize>::default();
        let mut rt = Runtime::new(device()).unwrap();
        let graph = PlannedGraph::builder().mode(mode).deny_fallback(true).build(&mut rt).unwrap();
        let plan = |rt: &Runtime, factor| HostContext::new(rt, Plan::new(factor, &alive).operation());
        let bias = Param::new(&rt, &[2], &[1.0; 2]).unwrap();
        let mut model = Model { bias, op: plan(&rt, 1.0) };
        let segments = match mode {
            Mode::None => 0,
            Mode::Full => 1,
            _ => 2,
        };
        for factor in 1..20 {
            let factor = factor as f32;
            model.op = plan(&rt, factor);
            for _ in 0..4 {
                call(&mut rt, &graph, &model, factor).unwrap();
                // The recordings of the plan before went when the step began.
                assert!(rt.stats().live_recordings <= segments, "{mode}");
            }
            if gpu().is_none() {
                rt.synchronize().unwrap();
                assert_eq!(alive.load(Ordering::SeqCst), 1, "{mode}");
            }
        }
        let stats = rt.stats();
        assert_eq!((stats.recordings, stats.fallbacks), (19 * segments as u64, 0), "{mode}");
        assert_eq!(stats.evicted, 18 * segments as u64, "{mode}: nothing else was evicted");
        drop((model, graph, rt));
        assert_eq!(alive.load(Ordering::SeqCst), 0, "{mode}");
    }
}

#[test]
fn a_dropped_context_evicts_its_recordings_alone() {
    let alive = Arc::<AtomicUsize>::default();
    let mut rt = Runtime::new(device()).unwrap();
    let graph = PlannedGraph::builder().mode(Mode::Full).build(&mut rt).unwrap();
    let mut models: Vec<Model> = (0..30)
        .map(|factor| {
            let op = HostContext::new(&rt, Plan::new(factor as f32, &alive).operation());
            Model { bias: Param::new(&rt, &[2], &[1.0; 2]).unwrap(), op }
        })
        .collect();
    for round in 0..3 {
        for (factor, model) in models.iter().enumerate() {
            call(&mut rt, &graph, model, factor as f32).unwrap();
        }
        assert_eq!(rt.stats().live_recordings, if round == 0 { 0 } else { 30 });
    }
    let before = rt.stats().evicted;
    models.truncate(29);
    call(&mut rt, &graph, &models[0], 0.0).unwrap();
    assert_eq!((rt.stats().evicted - before, rt.stats().live_recordings), (1, 29));
}

#[test]
fn what_the_code_of_a_region_shares_lives_as_long_as_it_is_used() {
    if skipped_on_gpus(
        "what_the_code_of_a_region_shares_lives_as_long_as_it_is_used",
        "its operations have code for the CPU alone",
    ) {
        return;
    }
    #[graphable]
    fn through(x: &Tensor<f32>, plan: &HostContext<Plan>) -> Result<Tensor<f32>> {
        let x = ops::neg(x)?;
        let y = #[eager(cx, support = Always)]
        {
            let plan = plan.shared();
            let op = CustomOp::builder("planned").cpu(move |call| {
                let (x, y) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
                y.iter_mut().zip(x).for_each(|(y, x)| *y = x * plan.factor);
                Ok(())
            });
            cx.call(op).input(&x).output::<f32>(x.shape()).run()?
        };
        ops::neg(&y)
    }
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let alive = Arc::<AtomicUsize>::default();
        let mut rt = Runtime::new(device()).unwrap();
        let graph = ThroughGraph::builder().mode(mode).deny_fallback(true).build(&mut rt).unwrap();
        for factor in [2.0, 3.0] {
            let plan = HostContext::new(&rt, Plan::new(factor, &alive));
            for _ in 0..4 {
                let step = rt.step().unwrap();
                let y = graph.call(&step, &step.tensor(&[1], &[5.0]).unwrap(), &plan).unwrap();
                assert_eq!(step.read(&y).unwrap(), [5.0 * factor], "{mode}");
            }
            drop(plan);
            rt.step().unwrap().synchronize().unwrap();
            assert_eq!(alive.load(Ordering::SeqCst), 0, "{mode}");
        }
    }
}

#[test]
fn work_that_the_runtime_does_not_know_ends_before_a_context_is_dropped() {
    if skipped_on_gpus(
        "work_that_the_runtime_does_not_know_ends_before_a_context_is_dropped",
        "its operations have code for the CPU alone",
    ) {
        return;
    }
    let alive = Arc::<AtomicUsize>::default();
    let mut rt = Runtime::new(device()).unwrap();
    let plan = HostContext::new(&rt, Plan::new(2.0, &alive));
    let (open, gate) = mpsc::channel();
    let (gate, seen) = (Mutex::new(gate), Arc::new(AtomicUsize::new(99)));
    // As work with a raw handle: it owns nothing of the plan.
    let raw = CustomOp::builder("raw").cpu({
        let (alive, seen) = (Arc::clone(&alive), Arc::clone(&seen));
        move |call| {
            gate.lock().unwrap().recv()?;
            seen.store(alive.load(Ordering::SeqCst), Ordering::SeqCst);
            call.output::<f32>(0)?.fill(0.0);
            Ok(())
        }
    });
    let step = rt.step().unwrap();
    step.call(raw).output::<f32>(&[1]).run().unwrap();
    drop((plan, step));
    let step = rt.step().unwrap();
    open.send(()).unwrap();
    step.synchronize().unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 1, "it was dropped before");
    step.synchronize().unwrap();
    assert_eq!(alive.load(Ordering::SeqCst), 0, "it was not dropped");
}

#[test]
fn a_destructor_that_panics_harms_nothing() {
    struct Panics(Arc<AtomicUsize>);
    impl Drop for Panics {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
            panic!("a destructor panics, as it should");
        }
    }
    if skipped_on_gpus("a_destructor_that_panics_harms_nothing", "its operations have code for the CPU alone")
    {
        return;
    }
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let (alive, dropped) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let mut rt = Runtime::new(device()).unwrap();
        let graph = PlannedGraph::builder().mode(mode).deny_fallback(true).build(&mut rt).unwrap();
        let bias = Param::new(&rt, &[2], &[1.0; 2]).unwrap();
        let mut model = Model { bias, op: HostContext::new(&rt, Plan::new(0.0, &alive).operation()) };
        for factor in 1..4 {
            let panics = Panics(Arc::clone(&dropped));
            let op = CustomOp::builder("planned").cpu(move |call| {
                let (_used, x) = (&panics, call.input::<f32>(0)?);
                call.output::<f32>(0)?.iter_mut().zip(x).for_each(|(y, x)| *y = x * factor as f32);
                Ok(())
            });
            // The plan before goes when the step begins, or on the thread of the stream.
            model.op = HostContext::new(&rt, op.build());
            for _ in 0..3 {
                call(&mut rt, &graph, &model, factor as f32).unwrap();
            }
        }
        rt.trim().unwrap();
        rt.synchronize().unwrap();
        assert_eq!(dropped.load(Ordering::SeqCst), 2, "{mode}");
        drop((model, graph, rt));
        assert_eq!(dropped.load(Ordering::SeqCst), 3, "{mode}");
    }
}

#[test]
fn a_context_of_another_runtime_is_refused() {
    let mut rt = Runtime::new(device()).unwrap();
    let other = Runtime::new(device()).unwrap();
    let alive = Arc::<AtomicUsize>::default();
    let graph = PlannedGraph::builder().build(&mut rt).unwrap();
    let op = HostContext::new(&other, Plan::new(1.0, &alive).operation());
    let model = Model { bias: Param::new(&rt, &[2], &[1.0; 2]).unwrap(), op };
    let step = rt.step().unwrap();
    let x = step.tensor(&[2], &[1.0; 2]).unwrap();
    assert!(matches!(graph.call(&step, &x, &model), Err(Error::DifferentRuntimes { .. })));
}

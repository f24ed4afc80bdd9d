//! Together with cudarc: its memory, its launches, its stream.

use std::{cell::RefCell, sync::Arc};

use cudarc::{
    driver::{CudaContext, CudaFunction, CudaSlice, DevicePtr as _, LaunchConfig, PushKernelArg},
    nvrtc::Ptx,
};
use graphable::{Device, Eager, Error, Runtime, graphable, prelude::*};

use crate::support::{PTX, new_stream, runtime, skipped};

const N: usize = 64;

fn add_one() -> CudaFunction {
    let context = CudaContext::new(0).unwrap();
    context.load_module(Ptx::from_src(PTX)).unwrap().load_function("add_one").unwrap()
}

thread_local! {
    static KERNEL: CudaFunction = add_one();
}

fn shape() -> LaunchConfig {
    LaunchConfig { grid_dim: (1, 1, 1), block_dim: (N as u32, 1, 1), shared_mem_bytes: 0 }
}

/// The user's kernel on the runtime's stream, its result a tensor.
fn by_hand<'s>(cx: &Eager<'s>, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    let stream = cx.cuda_stream()?;
    let mut y = stream.alloc_zeros::<f32>(N).unwrap();
    let from = cx.cuda_view(x)?;
    KERNEL.with(|kernel| {
        // SAFETY: both have `N` elements, as many as the launch has threads.
        unsafe { stream.launch_builder(kernel).arg(&*from).arg(&mut y).launch(shape()) }.unwrap();
    });
    cx.tensor_of_cuda(&[N], Arc::new(y))
}

#[graphable]
fn mixed(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let x = ops::scale(x, 2.0)?;
    let y = #[eager(cx)]
    by_hand(cx, &x)?;
    ops::scale(&y, 10.0)
}

fn check(mut rt: Runtime) {
    let graph = MixedGraph::builder().build(&mut rt).unwrap();
    let context = CudaContext::new(0).unwrap();
    let theirs = new_stream(&context);
    for round in 0..6 {
        let data: Vec<f32> = (0..N).map(|i| (i + round) as f32).collect();
        // Made on another stream, and not waited for.
        let slice = Arc::new(theirs.clone_htod(&data).unwrap());
        let step = rt.step().unwrap();
        let x = step.tensor_of_cuda(&[N], slice).unwrap();
        let y = graph.call(&step, &x).unwrap();
        let want: Vec<f32> = data.iter().map(|v| (v * 2.0 + 1.0) * 10.0).collect();
        assert_eq!(step.read(&y).unwrap(), want);
        let seen = step.cuda_view(&y).unwrap();
        assert_eq!(step.cuda_stream().unwrap().clone_dtoh(&*seen).unwrap(), want);
    }
    assert!(rt.stats().replays > 0);
}

#[test]
fn memory_and_launches_of_cudarc() {
    if skipped("memory_and_launches_of_cudarc") {
        return;
    }
    check(runtime());
}

#[test]
fn a_stream_of_the_users() {
    if skipped("a_stream_of_the_users") {
        return;
    }
    let context = CudaContext::new(0).unwrap();
    let stream = new_stream(&context);
    check(Runtime::new(Device::cuda_stream(stream)).unwrap());
    let error = Runtime::new(Device::cuda_stream(context.default_stream())).unwrap_err();
    assert!(matches!(&error, Error::Config { .. }) && error.to_string().contains("new_stream"), "{error}");
}

thread_local! {
    /// What was handed back, so that each slice is somewhere else.
    static HANDED_BACK: RefCell<Vec<Arc<CudaSlice<f32>>>> = const { RefCell::new(Vec::new()) };
}

/// As [`by_hand`], into memory at a new address.
fn into_new_memory<'s>(cx: &Eager<'s>, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    let stream = cx.cuda_stream()?;
    let mut y = stream.alloc_zeros::<f32>(N).unwrap();
    let from = cx.cuda_view(x)?;
    KERNEL.with(|kernel| {
        // SAFETY: both have `N` elements, as many as the launch has threads.
        unsafe { stream.launch_builder(kernel).arg(&*from).arg(&mut y).launch(shape()) }.unwrap();
    });
    let y = Arc::new(y);
    HANDED_BACK.with_borrow_mut(|all| all.push(Arc::clone(&y)));
    cx.tensor_of_cuda(&[N], y)
}

/// As [`by_hand`], into memory of the runtime.
fn into_an_output<'s>(cx: &Eager<'s>, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    let stream = cx.cuda_stream()?;
    let mut y = cx.cuda_output::<f32>(x.shape())?;
    let from = cx.cuda_view(x)?;
    KERNEL.with(|kernel| {
        // SAFETY: both have `N` elements, as many as the launch has threads.
        unsafe { stream.launch_builder(kernel).arg(&*from).arg(&mut y.view_mut()).launch(shape()) }.unwrap();
    });
    Ok(y.into_tensor())
}

#[graphable]
fn handed_back(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let x = ops::scale(x, 2.0)?;
    let y = #[eager(cx)]
    into_new_memory(cx, &x)?;
    ops::scale(&y, 10.0)
}

#[graphable]
fn written(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let x = ops::scale(x, 2.0)?;
    let y = #[eager(cx)]
    into_an_output(cx, &x)?;
    ops::scale(&y, 10.0)
}

#[test]
fn results_of_cudarc_record_nothing_new_wherever_they_are() {
    if skipped("results_of_cudarc_record_nothing_new_wherever_they_are") {
        return;
    }
    let mut rt = runtime();
    let handed_back = HandedBackGraph::builder().deny_fallback(true).build(&mut rt).unwrap();
    let written = WrittenGraph::builder().deny_fallback(true).build(&mut rt).unwrap();
    for i in 0..20 {
        for is_output in [false, true] {
            let step = rt.step().unwrap();
            let x = step.tensor(&[N], &[i as f32; N]).unwrap();
            let y = if is_output { written.call(&step, &x) } else { handed_back.call(&step, &x) };
            let want = [(i as f32 * 2.0 + 1.0) * 10.0; N];
            assert_eq!(step.read(&y.unwrap()).unwrap(), want, "{is_output}");
        }
    }
    let different = HANDED_BACK.with_borrow(|all| {
        let mut addresses: Vec<u64> = all.iter().map(|y| y.device_ptr(y.stream()).0).collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses.len()
    });
    assert_eq!(different, 20);
    HANDED_BACK.with_borrow_mut(Vec::clear);
    let stats = rt.stats();
    // Two segments of each function. What was handed back is copied, from the second call on; an output is not.
    assert_eq!((stats.recordings, stats.fallbacks, stats.copies), (4, 0, 19), "{stats:?}");
}

#[graphable]
fn cached(x: &Tensor<f32>, weights: &Param<f32>, cache: &State<f32>) -> Result<Tensor<f32>> {
    let x = ops::neg(x)?;
    #[eager(cx)]
    {
        let stream = cx.cuda_stream()?;
        let (from, mut to) = (cx.cuda_view(weights)?, cx.cuda_view_mut(cache)?);
        KERNEL.with(|kernel| {
            // SAFETY: both have `N` elements, as many as the launch has threads.
            unsafe { stream.launch_builder(kernel).arg(&*from).arg(&mut to.view_mut()).launch(shape()) }
                .unwrap();
        });
        // One writer at a time, and no reader beside it.
        assert!(matches!(cx.cuda_view(cache), Err(Error::Argument { op: "cuda_view", .. })));
        assert!(matches!(cx.cuda_view_mut(cache), Err(Error::Argument { op: "cuda_view_mut", .. })));
        drop(to);
        let seen = cx.cuda_view(cache)?;
        assert!(matches!(cx.cuda_view_mut(cache), Err(Error::Argument { op: "cuda_view_mut", .. })));
        assert_eq!(stream.clone_dtoh(&*seen).unwrap(), [8.0; N]);
    };
    ops::add(&x, &ops::load(x.scope(), cache)?)
}

#[test]
fn parameters_are_read_and_state_is_written_in_place() {
    if skipped("parameters_are_read_and_state_is_written_in_place") {
        return;
    }
    let mut rt = runtime();
    let weights = Param::new(&rt, &[N], &[7.0; N]).unwrap();
    let cache = State::zeros(&rt, &[N]).unwrap();
    let graph = CachedGraph::builder().deny_fallback(true).build(&mut rt).unwrap();
    for i in 0..6 {
        let step = rt.step().unwrap();
        let x = step.tensor(&[N], &[i as f32; N]).unwrap();
        let y = graph.call(&step, &x, &weights, &cache).unwrap();
        assert_eq!(step.read(&y).unwrap(), [8.0 - i as f32; N]);
    }
    assert_eq!(rt.stats().recordings, 2);
    let step = rt.step().unwrap();
    let x = step.tensor(&[N], &[0.0; N]).unwrap();
    let open = step.cuda_view_mut(&cache).unwrap();
    let refused = graph.call(&step, &x, &weights, &cache).unwrap_err();
    assert!(matches!(refused, Error::Argument { op: "cached", .. }), "{refused}");
    assert!(matches!(ops::load(step.scope(), &cache), Err(Error::Argument { .. })));
    drop(open);
    graph.call(&step, &x, &weights, &cache).unwrap();
}

/// Copies on another stream that are under way when the view is forgotten: 64 times 64 MiB.
#[test]
fn work_on_forgotten_views_is_waited_for() {
    if skipped("work_on_forgotten_views_is_waited_for") {
        return;
    }
    const LARGE: usize = 16 << 20;
    let mut rt = runtime();
    let other = new_stream(&CudaContext::new(0).unwrap());
    let sources = [1.0f32, 2.0].map(|value| other.clone_htod(&vec![value; LARGE]).unwrap());
    let state = State::<f32>::zeros(&rt, &[LARGE]).unwrap();
    let step = rt.step().unwrap();
    let mut view = step.cuda_view_mut(&state).unwrap();
    for i in 0..64 {
        other.memcpy_dtod(&sources[i % 2], &mut view.view_mut()).unwrap();
    }
    std::mem::forget(view);
    assert!(matches!(ops::load(step.scope(), &state), Err(Error::Argument { .. })));
    drop(step);
    let step = rt.step().unwrap();
    let seen = ops::load(step.scope(), &state).unwrap();
    let values = step.read(&seen).unwrap();
    assert!(values.iter().all(|value| *value == 2.0), "{:?}", values.iter().find(|value| **value != 2.0));
}

#[test]
fn what_does_not_fit() {
    if skipped("what_does_not_fit") {
        return;
    }
    let mut rt = runtime();
    let stream = new_stream(&CudaContext::new(0).unwrap());
    let slice = Arc::new(stream.alloc_zeros::<f32>(6).unwrap());
    let step = rt.step().unwrap();
    assert!(matches!(step.tensor_of_cuda(&[7], Arc::clone(&slice)), Err(Error::Argument { .. })));
    let x = step.tensor_of_cuda(&[2, 3], slice).unwrap();
    let turned = ops::transpose(&x, 0, 1).unwrap();
    assert!(matches!(step.cuda_view(&turned), Err(Error::Argument { .. })));
    drop((x, turned));
    let mut cpu = Runtime::new(Device::cpu()).unwrap();
    let step = cpu.step().unwrap();
    assert!(matches!(step.cuda_stream(), Err(Error::Config { .. })));
}

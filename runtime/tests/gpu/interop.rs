//! Together with cudarc: its memory, its launches, its stream.

use std::sync::Arc;

use cudarc::{
    driver::{CudaContext, CudaFunction, LaunchConfig, PushKernelArg},
    nvrtc::Ptx,
};
use graphable::{Device, Eager, Error, Runtime, graphable, prelude::*};

use crate::support::{PTX, runtime, skipped};

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
    let theirs = context.new_stream().unwrap();
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
    let stream = context.new_stream().unwrap();
    check(Runtime::new(Device::cuda_stream(stream)).unwrap());
    let error = Runtime::new(Device::cuda_stream(context.default_stream())).unwrap_err();
    assert!(matches!(&error, Error::Config { .. }) && error.to_string().contains("new_stream"), "{error}");
}

#[test]
fn what_does_not_fit() {
    if skipped("what_does_not_fit") {
        return;
    }
    let mut rt = runtime();
    let stream = CudaContext::new(0).unwrap().new_stream().unwrap();
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

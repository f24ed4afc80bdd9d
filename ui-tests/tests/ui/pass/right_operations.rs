//! What `fail/operations` shows, as the messages say.

#![deny(warnings)]
#![allow(dead_code, reason = "they are compiled, and read")]

use std::sync::{Mutex, OnceLock};

use graphable::{
    custom::{CpuCall, CpuFailure, CudaCall, CudaGrid, CudaKernel, CudaLibrary, CudaSource, CustomOp, EagerOp, LibraryError},
    prelude::*,
};

static SORT: OnceLock<EagerOp> = OnceLock::new();

#[graphable]
fn sorted(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let x = ops::neg(x)?;
    let Some(sort) = SORT.get() else { return Ok(x) };
    let y = #[eager(cx)]
    sort.call(cx).input(&x).output::<f32>(x.shape()).run()?;
    ops::neg(&y)
}

fn sorted_between_calls<'s>(step: &Step<'s>, sort: &EagerOp, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    sort.call(step).input(x).output(x.shape()).run()
}

fn largest<'s>(cx: &Eager<'s>, x: &Tensor<'s, f32>) -> Result<f32> {
    cx.item(&ops::max(x, 0)?)
}

#[graphable]
fn scaled(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let x = ops::neg(x)?;
    #[key]
    let n: u32 = #[eager(cx)]
    {
        largest(cx, &x)? as u32
    };
    ops::scale(&x, n as f32)
}

#[graphable]
fn planned(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let x = ops::neg(x)?;
    let y = #[eager(cx, support = UniformBatch)]
    cx.call(CustomOp::builder("planned").cpu(|_| Ok(()))).input(&x).output::<f32>(x.shape()).run()?;
    ops::neg(&y)
}

struct Fft {
    plan: Mutex<Vec<u8>>,
}

// SAFETY: it does nothing.
unsafe impl CudaLibrary for Fft {
    fn may_be_captured(&self) -> bool {
        true
    }

    fn launch(&self, _: &CudaCall<'_>) -> Result<(), LibraryError> {
        self.plan.lock().map(drop).map_err(|error| error.to_string().into())
    }
}

fn operation(plan: &[f32]) -> CustomOp {
    let plan = plan.to_vec();
    CustomOp::builder("planned")
        .cpu(move |call| {
            call.output::<f32>(0)?.copy_from_slice(&plan);
            Ok(())
        })
        .build()
}

fn counted() -> CustomOp {
    let calls = Mutex::new(0);
    CustomOp::builder("counted")
        .cpu(move |_| {
            *calls.lock().map_err(|error| error.to_string())? += 1;
            Ok(())
        })
        .build()
}

fn places<'s>(op: &CustomOp, x: &Tensor<'s, f32>) -> Result<Tensor<'s, u32>> {
    op.call(x.scope()).input(x).output::<u32>(x.shape()).run()
}

fn both<'s>(op: &CustomOp, x: &Tensor<'s, f32>) -> Result<(Tensor<'s, f32>, Tensor<'s, f32>)> {
    op.call(x.scope()).input(x).output(x.shape()).output(x.shape()).run()
}

fn many<'s>(op: &CustomOp, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    let parts = op.call(x.scope()).output::<f32>((5, 1)).run()?;
    ops::narrow(&parts, 0, 4, 1)
}

fn flagged<'s>(op: &CustomOp, x: &Tensor<'s, f32>, flag: bool, n: usize) -> Result<Tensor<'s, f32>> {
    op.call(x.scope()).input(x).scalar(u32::from(flag)).scalar(n as u64).size(n).output(x.shape()).run()
}

fn from_the_host<'s>(op: &CustomOp, x: &Tensor<'s, f32>, value: f32) -> Result<Tensor<'s, f32>> {
    let table = ops::full(x.scope(), &[4], value)?;
    op.call(x.scope()).input::<f32>(&table).output(x.shape()).run()
}

fn of_another_type<'s>(op: &CustomOp, x: &Tensor<'s, u32>) -> Result<Tensor<'s, f32>> {
    let x = ops::cast::<_, f32>(x)?;
    op.call(x.scope()).input::<f32>(&x).output(x.shape()).run()
}

fn writes_a_state(op: &CustomOp, x: &Tensor<'_, f32>, weights: &State<f32>) -> Result<()> {
    op.call(x.scope()).input(x).state(weights).run()
}

fn negated<'s>(op: &CustomOp, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    let negative = ops::neg(x)?;
    let call = op.call(x.scope()).input(&negative);
    call.output(x.shape()).run()
}

fn doubles(call: &CpuCall<'_>) -> Result<(), CpuFailure> {
    let x = call.input::<f32>(0)?;
    call.output::<f32>(0)?[0] = x[0];
    Ok(())
}

fn kernel() -> CudaKernel {
    let source = "extern \"C\" __global__ void one(float *y) { *y = 1; }";
    // SAFETY: whoever launches it passes one output, of which it writes the first element.
    unsafe { CudaKernel::new(CudaSource::Cuda(source.into()), "one", |_| CudaGrid::for_elements(1, 32)) }
}

#[graphable]
fn by_key(x: &Tensor<f32>, #[key] op: CustomOp) -> Result<Tensor<f32>> {
    op.call(x.scope()).input(x).output(x.shape()).run()
}

#[derive(Params)]
struct Model {
    weights: Param<f32>,
    #[config]
    fft: CustomOp,
}

#[graphable]
fn by_parameter(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    model.fft.call(x.scope()).input(x).input(&model.weights).output(x.shape()).run()
}

fn main() {}

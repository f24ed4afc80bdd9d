//! Passes of users: what they see, replace and are refused; audits with and without a bound; and passes that fail.

use std::{cell::Cell, sync::LazyLock};

use graphable::{
    CpuOptions, Passes,
    custom::{CudaGrid, CudaKernel, CudaSource, CustomOp, CustomReplacement},
    inspect::PassReport,
    passes::{Bound, LaunchId, Pass, PassFailure, Program, TensorRef},
    prelude::*,
};

use crate::device;

mod bounds;
mod refusals;
mod replacements;

fn runtime() -> Runtime {
    Runtime::with_backend(device::backend(CpuOptions::default().test_mode(1).threads(1))).unwrap()
}

type Code = dyn Fn(&Program<'_>) -> Result<(), PassFailure> + Send + Sync;

/// A pass that runs a closure.
struct Closure {
    bound: Option<Bound>,
    code: Box<Code>,
}

impl Closure {
    fn new(code: impl Fn(&Program<'_>) -> Result<(), PassFailure> + Send + Sync + 'static) -> Self {
        Self { bound: None, code: Box::new(code) }
    }

    fn within(self, bound: Bound) -> Self {
        Self { bound: Some(bound), ..self }
    }
}

impl Pass for Closure {
    fn name(&self) -> &'static str {
        "mine"
    }

    fn bound(&self) -> Option<Bound> {
        self.bound
    }

    fn run(&self, program: &Program<'_>) -> Result<(), PassFailure> {
        (self.code)(program)
    }
}

const SOURCE: &str = r#"
extern "C" __global__ void times(const float* x, float* y, float by, unsigned long long n) {
    const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * by;
}
"#;

static TIMES: LazyLock<CustomOp> = LazyLock::new(|| {
    let op = CustomOp::builder("times").deterministic().cpu(|call| {
        let (x, y, by) = (call.input::<f32>(0)?, call.output::<f32>(0)?, call.scalar::<f32>(0)?);
        y.iter_mut().zip(x).for_each(|(y, x)| *y = x * by);
        Ok(())
    });
    // SAFETY: `times` below passes what the kernel takes, which stays within `n` elements.
    let kernel = unsafe {
        CudaKernel::new(CudaSource::Cuda(SOURCE.into()), "times", |shapes| {
            CudaGrid::for_elements(shapes.output(0).iter().product(), 128)
        })
    };
    op.cuda(kernel).build()
});

/// `x * by`, whatever it replaces.
fn times(by: f32, x: TensorRef, y: TensorRef) -> CustomReplacement {
    let count = y.shape().iter().product();
    TIMES.replacement().input::<f32>(x).output::<f32>(y).scalar(by).size(count)
}

/// The one input and output of each launch of that operation.
fn unary(program: &Program<'_>, operation: &str) -> Vec<(LaunchId, TensorRef, TensorRef)> {
    let named = program.launches().filter(|launch| launch.operation() == operation);
    named.map(|launch| (launch.id(), launch.inputs()[0], launch.outputs()[0])).collect()
}

/// Replaces all launches of `neg` by a multiplication.
fn replacing_neg(by: f32) -> Closure {
    Closure::new(move |program| {
        for (id, x, y) in unary(program, "neg") {
            program.replace(&[id], times(by, x, y))?;
        }
        Ok(())
    })
}

/// Alone, so that built-in passes join nothing that the tests count.
fn only(pass: Closure) -> Passes {
    Passes::none().with(pass)
}

thread_local! {
    /// What bodies wrongly depend on.
    static AMBIENT: Cell<f32> = const { Cell::new(1.0) };
}

/// The first result depends on `neg`, the second does not.
#[graphable]
fn two(x: &Tensor<f32>, sum: &State<f32>) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let y = ops::neg(x)?;
    let z = ops::abs(&y)?;
    ops::store(sum, &z)?;
    // What it is cannot be seen in the operations.
    let two = ops::scale(x, 2.0)?;
    let other = if AMBIENT.get() == 1.0 { ops::sub(&two, x)? } else { ops::sub(x, &two)? };
    Ok((z, other))
}

const X: [f32; 2] = [3.0, -4.0];

fn call(rt: &mut Runtime, graph: &TwoGraph, sum: &State<f32>) -> Result<(Vec<f32>, Vec<f32>)> {
    let step = rt.step()?;
    let (z, other) = graph.call(&step, &step.tensor(&[2], &X)?, sum)?;
    Ok((step.read(&z)?, step.read(&other)?))
}

fn report(rt: &Runtime) -> PassReport {
    let tree = rt.tree();
    let passes = &tree.recordings.last().expect("a recording").passes;
    passes.iter().find(|report| report.pass == "mine").expect("its report").clone()
}

#[kernel]
fn flipped(x: f32, by: f32) -> f32 {
    x * by
}

#[kernel]
fn both(x: f32) -> (f32, f32) {
    (-x, x + x)
}

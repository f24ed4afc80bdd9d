//! Operations as a user brings them, with code for both devices.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock, Mutex, OnceLock},
};

use graphable::{
    Result, State, Tensor,
    cudarc::{
        driver::{CudaContext, CudaFunction, CudaStream, LaunchConfig, PushKernelArg as _, sys},
        nvrtc::Ptx,
    },
    custom::{
        CudaCall, CudaGrid, CudaKernel, CudaLaunch, CudaLibrary, CudaSource, CustomOp, CustomOpBuilder,
        LibraryError, Shapes,
    },
    ops,
};

/// All kernels in one file.
const SOURCE: &str = include_str!("custom.cu");

/// Adds a kernel of [`SOURCE`], one thread for each element of the first output (of the first state, if there is none).
fn kernel(op: CustomOpBuilder, entry: &'static str) -> CustomOpBuilder {
    // SAFETY: each operation below passes what its kernel takes, in that order, and each kernel stays within the sizes that
    // it is passed.
    let kernel = unsafe {
        CudaKernel::new(CudaSource::Cuda(SOURCE.into()), entry, |shapes| {
            let sizes = if shapes.output(0).is_empty() { shapes.state(0) } else { shapes.output(0) };
            CudaGrid::for_elements(sizes.iter().product(), 128)
        })
    };
    op.cuda(kernel)
}

/// Where element `i` of a tensor of these sizes and strides is.
fn offset(mut i: usize, sizes: &[usize], strides: &[usize]) -> usize {
    let mut at = 0;
    for (n, stride) in sizes.iter().zip(strides).rev() {
        at += i % n * stride;
        i /= n;
    }
    at
}

/// The code of [`scaled_add`] for another operation.
#[allow(dead_code, reason = "not every test binary makes another one")]
pub(crate) fn adds_in_order(op: CustomOpBuilder) -> CustomOp {
    let op = op.keeps_padding().cpu(|call| {
        let (a, b, factor) = (call.input::<f32>(0)?, call.input::<f32>(1)?, call.scalar::<f32>(0)?);
        let (sizes, a_strides, b_strides) = (call.shapes().input(0), call.strides(0)?, call.strides(1)?);
        for (i, y) in call.output::<f32>(0)?.iter_mut().enumerate() {
            *y = a[offset(i, sizes, a_strides)] * factor + b[offset(i, sizes, b_strides)];
        }
        Ok(())
    });
    kernel(op, "scaled_add").build()
}

/// `a * factor + b`, of one shape with any strides.
pub(crate) fn scaled_add<'s>(
    a: &Tensor<'s, f32>,
    b: &Tensor<'s, f32>,
    factor: f32,
) -> Result<Tensor<'s, f32>> {
    static OP: LazyLock<CustomOp> = LazyLock::new(|| adds_in_order(CustomOp::builder("scaled_add")));
    OP.call(a.scope())
        .view(a)
        .view(b)
        .require(a.shape() == b.shape(), "both must have one shape")
        .scalar(factor)
        .output(a.shape())
        .run()
}

/// The sum of the real rows of `x`, `[N, D]`.
pub(crate) fn column_sums<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    static OP: LazyLock<CustomOp> = LazyLock::new(|| {
        let op = CustomOp::builder("column_sums").cpu(|call| {
            let (x, y) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
            let rows = call.real_size(0)?.unwrap_or(call.shapes().input(0)[0]);
            let width = y.len();
            for (column, y) in y.iter_mut().enumerate() {
                *y = (0..rows).map(|row| x[row * width + column]).sum();
            }
            Ok(())
        });
        kernel(op, "column_sums").build()
    });
    OP.call(x.scope())
        .input(x)
        .require(x.rank() == 2, "`x` must be `[N, D]`")
        .size(x.dim(0))
        .real_size(x.dim(0))
        .size(x.dim(1))
        .output((x.dim(1),))
        .run()
}

/// The largest element of each row, and where it is.
pub(crate) fn row_max<'s>(x: &Tensor<'s, f32>) -> Result<(Tensor<'s, f32>, Tensor<'s, u32>)> {
    static OP: LazyLock<CustomOp> = LazyLock::new(|| {
        let op = CustomOp::builder("row_max").keeps_padding().cpu(|call| {
            let (x, max, place) = (call.input::<f32>(0)?, call.output::<f32>(0)?, call.output::<u32>(1)?);
            let width = usize::try_from(call.scalar::<u64>(1)?)?;
            for (row, (max, place)) in max.iter_mut().zip(place).enumerate() {
                (*max, *place) = (x[row * width], 0);
                for i in 1..width {
                    if x[row * width + i] > *max {
                        (*max, *place) = (x[row * width + i], i as u32);
                    }
                }
            }
            Ok(())
        });
        kernel(op, "row_max").build()
    });
    OP.call(x.scope())
        .input(x)
        .size(x.dim(0))
        .size(x.dim(1))
        .output::<f32>((x.dim(0),))
        .output::<u32>((x.dim(0),))
        .run()
}

/// `sum += x`, in place.
pub(crate) fn accumulate(sum: &State<f32>, x: &Tensor<'_, f32>) -> Result<()> {
    static OP: LazyLock<CustomOp> = LazyLock::new(|| {
        let op = CustomOp::builder("accumulate").cpu(|call| {
            let (x, sum) = (call.input::<f32>(0)?, call.state::<f32>(0)?);
            sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
            Ok(())
        });
        kernel(op, "accumulate").build()
    });
    OP.call(x.scope())
        .input(x)
        .require(x.shape() == *sum.shape(), "the state must have the shape of `x`")
        .state(sum)
        .count(x)
        .run()
}

/// `x * by`, of one scalar.
pub(crate) fn times<'s>(x: &Tensor<'s, f32>, by: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    static OP: LazyLock<CustomOp> = LazyLock::new(|| {
        let op = CustomOp::builder("times").keeps_padding().cpu(|call| {
            let (x, by, y) = (call.input::<f32>(0)?, call.input::<f32>(1)?[0], call.output::<f32>(0)?);
            y.iter_mut().zip(x).for_each(|(y, x)| *y = x * by);
            Ok(())
        });
        kernel(op, "times").build()
    });
    OP.call(x.scope()).input(x).input(by).count(x).output(x.shape()).run()
}

/// `x * by`, with a factor that the code owns.
#[allow(dead_code, reason = "not every test binary has regions")]
pub(crate) fn times_by(name: &'static str, by: f32) -> CustomOpBuilder {
    // SAFETY: the work is one kernel on the call's stream, which stays within the operands; it may be captured.
    let scaled = unsafe {
        CudaLaunch::new(move |call| {
            let count = call.shapes().output(0).iter().product::<usize>();
            scale_on_stream(call.stream(), call.input(0), call.output(0), count, by)
        })
    };
    CustomOp::builder(name).cuda_library(scaled).cpu(move |call| {
        let (x, y) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
        y.iter_mut().zip(x).for_each(|(y, x)| *y = x * by);
        Ok(())
    })
}

/// A library that scales by way of its workspace: a copy, and a kernel.
struct Scaling {
    by: f32,
}

// SAFETY: the copy and the kernel are put on the stream of the call, stay within the operands and the workspace, which has the
// size of the input, and may be captured.
unsafe impl CudaLibrary for Scaling {
    fn may_be_captured(&self) -> bool {
        true
    }

    fn prepare(&self, _: &Arc<CudaContext>, shapes: &Shapes<'_>) -> Result<u64, LibraryError> {
        Ok(4 * shapes.input(0).iter().product::<usize>() as u64)
    }

    fn launch(&self, call: &CudaCall<'_>) -> Result<(), LibraryError> {
        let count = call.shapes().input(0).iter().product::<usize>();
        let (from, workspace) = (call.input(0), call.workspace());
        // SAFETY: both ranges have that many bytes, and the stream is the call's.
        unsafe { sys::cuMemcpyDtoDAsync_v2(workspace, from, 4 * count, call.stream().cu_stream()) }
            .result()?;
        scale_on_stream(call.stream(), workspace, call.output(0), count, self.by)
    }
}

/// `x * by`, by a library with a workspace.
#[allow(dead_code, reason = "not every test binary calls it")]
pub(crate) fn scaled_by_library<'s>(x: &Tensor<'s, f32>, by: f32) -> Result<Tensor<'s, f32>> {
    // Operations are told apart by identity: one for each factor, by its bits.
    static OPS: Mutex<BTreeMap<u32, CustomOp>> = Mutex::new(BTreeMap::new());
    let make = || {
        let op = CustomOp::builder("scaled_by_library").keeps_padding().cuda_library(Scaling { by });
        op.cpu(move |call| {
            let (x, y) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
            y.iter_mut().zip(x).for_each(|(y, x)| *y = x * by);
            Ok(())
        })
        .build()
    };
    let op = OPS.lock().unwrap().entry(by.to_bits()).or_insert_with(make).clone();
    op.call(x.scope()).input(&ops::contiguous(x)?).output(x.shape()).run()
}

/// Launches a kernel of cudarc's on a stream.
fn scale_on_stream(
    stream: &Arc<CudaStream>,
    from: u64,
    to: u64,
    count: usize,
    by: f32,
) -> Result<(), LibraryError> {
    static KERNEL: OnceLock<CudaFunction> = OnceLock::new();
    let kernel = match KERNEL.get() {
        Some(kernel) => kernel,
        None => {
            let module = stream.context().load_module(Ptx::from_src(SCALE))?;
            KERNEL.get_or_init(|| module.load_function("scale").unwrap())
        }
    };
    let count = u32::try_from(count)?;
    let mut launch = stream.launch_builder(kernel);
    launch.arg(&from).arg(&to).arg(&by).arg(&count);
    let shape =
        LaunchConfig { grid_dim: (count.div_ceil(128), 1, 1), block_dim: (128, 1, 1), shared_mem_bytes: 0 };
    // SAFETY: the kernel takes two addresses of `count` numbers, a number, and `count`, from which on its threads do nothing.
    unsafe { launch.launch(shape) }?;
    Ok(())
}

/// `to[i] = from[i] * by` for `i` below `count`, by as many threads or more.
const SCALE: &str = "
.version 7.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 from, .param .u64 to, .param .f32 by, .param .u32 count)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f32 %f<3>;
    .reg .b64 %d<6>;
    ld.param.u64 %d1, [from];
    ld.param.u64 %d2, [to];
    ld.param.f32 %f2, [by];
    ld.param.u32 %r5, [count];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    setp.ge.u32 %p1, %r4, %r5;
    @%p1 bra END;
    mul.wide.u32 %d3, %r4, 4;
    add.u64 %d4, %d1, %d3;
    add.u64 %d5, %d2, %d3;
    ld.global.f32 %f1, [%d4];
    mul.rn.f32 %f1, %f1, %f2;
    st.global.f32 [%d5], %f1;
END:
    ret;
}
";

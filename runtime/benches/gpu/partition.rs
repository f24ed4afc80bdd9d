//! 33 segments and 32 boundaries, each a tiny kernel; next to 33 distinct graphs launched bare through cudarc
//! and 32 bare kernel launches, in the same process.

use cudarc::{
    driver::{CudaContext, LaunchConfig, PushKernelArg, sys},
    nvrtc::Ptx,
};
use graphable::{Device, Runtime, graphable, prelude::*};

use crate::timing::per_call;

fn tiny<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::neg(x)
}

#[graphable]
fn partitioned(x: &Tensor<f32>, one: &Param<f32>) -> Result<Tensor<f32>> {
    let mut y = ops::add(x, one)?;
    for _ in 0..32 {
        let z = #[eager]
        tiny(&y)?;
        y = ops::add(&z, one)?;
    }
    Ok(y)
}

const ELEMENTS: usize = 1024;

pub(crate) fn run() -> Result<()> {
    let mut rt = Runtime::new(Device::cuda(0))?;
    let graph = PartitionedGraph::builder().build(&mut rt)?;
    let one = Param::<f32>::new(&rt, &[ELEMENTS], &[1.0; ELEMENTS])?;
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[ELEMENTS], &[0.0; ELEMENTS])?;
        graph.call(&step, &x, &one)?;
    }
    let before = rt.stats();
    let step = rt.step()?;
    let x = step.tensor(&[ELEMENTS], &[0.0; ELEMENTS])?;
    let ours = || per_call(20, 50, |_| graph.call(&step, &x, &one).map(drop), || step.synchronize());
    // One after the other, twice: what runs first is not favoured.
    let (first, bare_first) = (ours()?, bare()?);
    let (second, bare_second) = (ours()?, bare()?);
    let least = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.min(b.1));
    let ((host, total), (bare_host, bare_total)) = (least(first, second), least(bare_first, bare_second));
    let after = step.stats();
    println!(
        "{{\"figure\":\"partition\",\"host_us\":{host:.2},\"total_us\":{total:.2},\"bare_host_us\":{bare_host:.2},\
         \"bare_total_us\":{bare_total:.2},\"host_ratio\":{:.3},\"total_ratio\":{:.3},\"recorded_meanwhile\":{}}}",
        host / bare_host,
        total / bare_total,
        after.recordings - before.recordings
    );
    Ok(())
}

/// `y[i] = x[i] + 1`, one thread an element.
const KERNEL: &str = "
.version 7.0
.target sm_80
.address_size 64
.visible .entry add_one(.param .u64 from, .param .u64 to)
{
    .reg .b32 %r<5>;
    .reg .f32 %f<2>;
    .reg .b64 %d<7>;
    ld.param.u64 %d1, [from];
    ld.param.u64 %d2, [to];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %d3, %r4, 4;
    add.u64 %d4, %d1, %d3;
    add.u64 %d5, %d2, %d3;
    ld.global.f32 %f1, [%d4];
    add.f32 %f1, %f1, 0f3F800000;
    st.global.f32 [%d5], %f1;
    ret;
}
";

fn cuda<T>(result: std::result::Result<T, cudarc::driver::DriverError>) -> Result<T> {
    result.map_err(|e| Error::Device {
        device: "cuda:0".into(),
        call: "the bare launches",
        why: e.to_string(),
    })
}

/// The same numbers of launches, by hand.
fn bare() -> Result<(f64, f64)> {
    let context = cuda(CudaContext::new(0))?;
    // SAFETY: one stream is used, in order.
    unsafe { context.disable_event_tracking() };
    let stream = cuda(context.new_stream())?;
    let module = cuda(context.load_module(Ptx::from_src(KERNEL)))?;
    let kernel = cuda(module.load_function("add_one"))?;
    let (x, mut y) = (cuda(stream.alloc_zeros::<f32>(ELEMENTS))?, cuda(stream.alloc_zeros::<f32>(ELEMENTS))?);
    let shape = LaunchConfig { grid_dim: (4, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
    let mut graphs = Vec::new();
    for _ in 0..33 {
        cuda(stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))?;
        // SAFETY: both arrays have `ELEMENTS` elements, as many as the launch has threads.
        cuda(unsafe { stream.launch_builder(&kernel).arg(&x).arg(&mut y).launch(shape) })?;
        let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
        let graph = cuda(stream.end_capture(flags))?;
        graphs.extend(graph);
    }
    per_call(
        20,
        50,
        |_| {
            for (i, graph) in graphs.iter().enumerate() {
                cuda(graph.launch())?;
                if i < 32 {
                    // SAFETY: as above.
                    cuda(unsafe { stream.launch_builder(&kernel).arg(&x).arg(&mut y).launch(shape) })?;
                }
            }
            Ok(())
        },
        || cuda(stream.synchronize()),
    )
}

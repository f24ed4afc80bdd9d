//! 33 segments and 32 boundaries, each a tiny kernel; next to 33 distinct graphs launched bare through cudarc
//! and 32 bare kernel launches, in the same process.

use std::{cell::RefCell, sync::Arc};

use cudarc::{
    driver::{CudaContext, CudaFunction, CudaGraph, CudaSlice, CudaStream, LaunchConfig, PushKernelArg, sys},
    nvrtc::Ptx,
};
use graphable::{Device, Runtime, graphable, prelude::*};

use crate::{
    partitioned::{PartitionedGraph, tiny},
    timing::Rounds,
};

/// The same with segments of two kernels.
#[graphable]
fn pairs(x: &Tensor<f32>, one: &Param<f32>) -> Result<Tensor<f32>> {
    let mut y = ops::add(&ops::neg(x)?, one)?;
    for _ in 0..32 {
        let z = #[eager]
        tiny(&y)?;
        y = ops::add(&ops::neg(&z)?, one)?;
    }
    Ok(y)
}

const ELEMENTS: usize = 1024;
/// In one round, which nothing waits in.
const CALLS: usize = 50;

pub(crate) fn run() -> Result<()> {
    let mut rt = Runtime::new(Device::cuda(0))?;
    let (graph, two) = (PartitionedGraph::builder().build(&mut rt)?, PairsGraph::builder().build(&mut rt)?);
    let one = Param::<f32>::new(&rt, &[ELEMENTS], &[1.0; ELEMENTS])?;
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[ELEMENTS], &[0.0; ELEMENTS])?;
        graph.call(&step, &x, &one)?;
        two.call(&step, &x, &one)?;
    }
    let before = rt.stats();
    let step = rt.step()?;
    let x = step.tensor(&[ELEMENTS], &[0.0; ELEMENTS])?;
    let (bare, bare_two) = (Bare::new(1)?, Bare::new(2)?);
    // Round by round in turn: a machine that slows down slows all.
    let mut rounds: [Rounds; 4] = Default::default();
    for _ in 0..40 {
        let wait = || step.synchronize();
        rounds[0].measure(CALLS, |_| graph.call(&step, &x, &one).map(drop), wait)?;
        rounds[1].measure(CALLS, |_| bare.launch(), || bare.wait())?;
        rounds[2].measure(CALLS, |_| two.call(&step, &x, &one).map(drop), wait)?;
        rounds[3].measure(CALLS, |_| bare_two.launch(), || bare_two.wait())?;
    }
    let [ours, theirs, ours_two, theirs_two] = rounds.map(Rounds::medians);
    let after = step.stats();
    println!(
        "{{\"figure\":\"partition\",\"host_us\":{:.2},\"total_us\":{:.2},\"bare_host_us\":{:.2},\"bare_total_us\":{:.2},\
         \"host_ratio\":{:.3},\"total_ratio\":{:.3},\"two_kernels_host_us\":{:.2},\"two_kernels_bare_host_us\":{:.2},\
         \"two_kernels_host_ratio\":{:.3},\"recorded_meanwhile\":{}}}",
        ours.0,
        ours.1,
        theirs.0,
        theirs.1,
        ours.0 / theirs.0,
        ours.1 / theirs.1,
        ours_two.0,
        theirs_two.0,
        ours_two.0 / theirs_two.0,
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
        reason: e.to_string(),
    })
}

/// The same numbers of launches, by hand.
struct Bare {
    stream: Arc<CudaStream>,
    kernel: CudaFunction,
    graphs: Vec<CudaGraph>,
    x: CudaSlice<f32>,
    y: RefCell<CudaSlice<f32>>,
}

impl Bare {
    /// Graphs of so many kernels.
    fn new(kernels: usize) -> Result<Self> {
        let context = cuda(CudaContext::new(0))?;
        // SAFETY: one stream is used, in order.
        unsafe { context.disable_event_tracking() };
        let stream = cuda(context.new_stream())?;
        let module = cuda(context.load_module(Ptx::from_src(KERNEL)))?;
        let kernel = cuda(module.load_function("add_one"))?;
        let (x, y) = (cuda(stream.alloc_zeros(ELEMENTS))?, cuda(stream.alloc_zeros(ELEMENTS))?);
        let mut bare = Self { stream, kernel, graphs: Vec::new(), x, y: RefCell::new(y) };
        for _ in 0..33 {
            let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
            cuda(bare.stream.begin_capture(mode))?;
            (0..kernels).try_for_each(|_| bare.launch_kernel())?;
            let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
            bare.graphs.extend(cuda(bare.stream.end_capture(flags))?);
        }
        Ok(bare)
    }

    fn launch_kernel(&self) -> Result<()> {
        let shape = LaunchConfig { grid_dim: (4, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
        let mut y = self.y.borrow_mut();
        let mut launch = self.stream.launch_builder(&self.kernel);
        // SAFETY: both arrays have `ELEMENTS` elements, as many as the launch has threads.
        cuda(unsafe { launch.arg(&self.x).arg(&mut *y).launch(shape) }).map(drop)
    }

    fn wait(&self) -> Result<()> {
        cuda(self.stream.synchronize())
    }

    fn launch(&self) -> Result<()> {
        for (i, graph) in self.graphs.iter().enumerate() {
            cuda(graph.launch())?;
            if i < 32 {
                self.launch_kernel()?;
            }
        }
        Ok(())
    }
}

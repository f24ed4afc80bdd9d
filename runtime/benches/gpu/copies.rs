//! Copies of live-ins that keep moving, beside the driver's own copy in the same run; and what it costs to put back
//! the thread's current context.

use cudarc::driver::{CudaContext, result, sys};
use graphable::{
    Device, Error, Result, Runtime,
    backend::{
        Arenas as _, DeviceCopy, HostUpload, Stream as _,
        cuda::{CudaBackend, CudaOptions},
    },
    graphable,
    prelude::*,
};

use crate::timing::{median, per_call};

fn driver(error: cudarc::driver::DriverError) -> Error {
    Error::Device { device: "cuda:0".into(), call: "the bench", reason: error.to_string() }
}

/// Gigabytes a second, the copy being read and written once.
pub(crate) fn run() -> Result<()> {
    const MOST: u64 = 4 << 30;
    let stream = CudaContext::new(0).and_then(|context| context.new_stream()).map_err(driver)?;
    let mut gpu = CudaBackend::on(std::sync::Arc::clone(&stream), CudaOptions::default())?;
    let (source, target) = (gpu.alloc(MOST)?, gpu.alloc(MOST)?);
    let event = || stream.context().new_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT)).map_err(driver);
    for bytes in [64u64 << 10, 1 << 20, 16 << 20, 256 << 20, MOST] {
        let times = (MOST / bytes).clamp(1, 20);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..12 {
            let (begin, middle, end) = (event()?, event()?, event()?);
            begin.record(&stream).map_err(driver)?;
            for _ in 0..times {
                let copy = DeviceCopy { to: target.addr(), from: source.addr(), bytes };
                gpu.host_write(HostUpload { copies: vec![copy], ..HostUpload::default() })?;
            }
            middle.record(&stream).map_err(driver)?;
            for _ in 0..times {
                // SAFETY: both ranges are of this backend's memory, which lives.
                unsafe {
                    result::memcpy_dtod_async(
                        target.addr(),
                        source.addr(),
                        bytes as usize,
                        stream.cu_stream(),
                    )
                }
                .map_err(driver)?;
            }
            end.record(&stream).map_err(driver)?;
            gpu.synchronize()?;
            if round > 1 {
                let rate = |ms: f32| (times * bytes) as f64 / 1e6 / f64::from(ms);
                ours.push(rate(begin.elapsed_ms(&middle).map_err(driver)?));
                theirs.push(rate(middle.elapsed_ms(&end).map_err(driver)?));
            }
        }
        let (ours, theirs) = (median(ours), median(theirs));
        println!(
            "{{\"bench\":\"copies\",\"bytes\":{bytes},\"kernel_gb_s\":{ours:.1},\"memcpy_gb_s\":{theirs:.1},\
             \"ratio\":{:.3}}}",
            ours / theirs
        );
    }
    Ok(())
}

#[graphable]
fn twice(
    #[host]
    #[dims(256)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    ops::scale(x, 2.0)
}

/// Host microseconds of a replay, with the runtime's context current and with none.
pub(crate) fn current() -> Result<()> {
    let mut rt = Runtime::new(Device::cuda(0))?;
    let x = [1.0f32; 256];
    let graph = TwiceGraph::builder().build(&mut rt)?;
    for _ in 0..3 {
        let step = rt.step()?;
        graph.call(&step, &x)?;
    }
    let ours = CudaContext::new(0).map_err(driver)?;
    for (name, context) in [("ours", ours.cu_ctx()), ("none", std::ptr::null_mut())] {
        // SAFETY: none, or a context that lives.
        unsafe { result::ctx::set_current(context) }.map_err(driver)?;
        let step = rt.step()?;
        let (host, _) = per_call(15, 1000, |_| graph.call(&step, &x).map(drop), || step.synchronize())?;
        println!("{{\"bench\":\"current\",\"context\":\"{name}\",\"host_us\":{host:.3}}}");
    }
    Ok(())
}

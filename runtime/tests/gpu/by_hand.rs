//! What happens to captures that are made by hand while other threads use the device. How many of them are invalidated is
//! printed, since the driver decides it; that none is where nobody disturbs, and that disturbers disturbed, is checked. In
//! processes of their own, since the driver crashes in some of them (580.159.04, inside `cuCtxSynchronize`).

use std::{env, process::Command, time::Duration};

use cudarc::{
    driver::{CudaContext, LaunchConfig, PushKernelArg, sys},
    nvrtc::Ptx,
};

use crate::{
    foreign::{DISTURBERS, disturbed},
    support::{PTX, new_stream, skipped},
};

/// Which of the disturbers a process is for.
const VARIABLE: &str = "GRAPHABLE_TEST_BY_HAND";
const ALL: u32 = 200;

#[test]
fn captures_by_hand() {
    if skipped("captures_by_hand") {
        return;
    }
    if let Ok(which) = env::var(VARIABLE) {
        let Some((name, disturb)) = DISTURBERS.get(which.parse::<usize>().unwrap()) else {
            assert_eq!(capture_all(), 0, "invalidated, and nobody disturbs");
            return;
        };
        let mut invalidated = 0;
        let times = disturbed(*disturb, Duration::ZERO, || invalidated = capture_all());
        println!(
            "captures by hand, {name} on another thread ({times} times): {invalidated} of {ALL} invalidated"
        );
        assert!(times > 0, "{name}: nobody disturbed");
        return;
    }
    let names = DISTURBERS.iter().map(|(name, _)| *name).chain(["nothing"]);
    for (which, name) in names.enumerate() {
        let status = Command::new(env::current_exe().unwrap())
            .env(VARIABLE, which.to_string())
            .args(["--exact", "by_hand::captures_by_hand", "--nocapture"])
            .status()
            .unwrap();
        match status.code() {
            // Ours are not made so: see `our_captures_survive`.
            None if which < DISTURBERS.len() => {
                println!("captures by hand, {name} on another thread: the driver crashed ({status})");
            }
            code => assert_eq!(code, Some(0), "{name}: {status}"),
        }
    }
}

/// How many captures were invalidated.
fn capture_all() -> u32 {
    let context = CudaContext::new(0).unwrap();
    // SAFETY: one stream, in order.
    unsafe { context.disable_event_tracking() };
    let stream = new_stream(&context);
    let kernel = context.load_module(Ptx::from_src(PTX)).unwrap().load_function("add_one").unwrap();
    let (x, mut y) = (stream.alloc_zeros::<f32>(64).unwrap(), stream.alloc_zeros::<f32>(64).unwrap());
    stream.synchronize().unwrap();
    let shape = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (64, 1, 1), shared_mem_bytes: 0 };
    let mut invalidated = 0;
    for _ in 0..ALL {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        if stream.begin_capture(mode).is_err() {
            invalidated += 1;
            continue;
        }
        let mut failed = false;
        for _ in 0..20 {
            // SAFETY: both have as many elements as the launch has threads.
            let launched = unsafe { stream.launch_builder(&kernel).arg(&x).arg(&mut y).launch(shape) };
            failed |= launched.is_err();
        }
        let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
        if stream.end_capture(flags).is_err() || failed {
            invalidated += 1;
        }
    }
    invalidated
}

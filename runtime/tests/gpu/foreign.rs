//! Other threads of the process while we capture.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use cudarc::{
    driver::{CudaContext, CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg},
    nvrtc::Ptx,
};
use graphable::{Device, Error, graphable, prelude::*};

use crate::support::{PTX, new_stream, runtime, skipped};

#[graphable]
fn chain(x: &Tensor<f32>, #[key] length: usize) -> Result<Tensor<f32>> {
    let mut y = ops::neg(x)?;
    for _ in 0..length {
        y = ops::neg(&y)?;
    }
    Ok(y)
}

/// What a disturber does, over and over.
pub(crate) type Disturb = fn(&Arc<CudaContext>);

fn synchronize(context: &Arc<CudaContext>) {
    // It may be told of a capture that it meets: that is what the test is about.
    let _ = context.synchronize();
}

fn allocate(context: &Arc<CudaContext>) {
    context.bind_to_thread().unwrap();
    // SAFETY: an allocation, freed right after, that nothing uses.
    if let Ok(addr) = unsafe { cudarc::driver::result::malloc_sync(1 << 20) } {
        // SAFETY: allocated just above.
        let _ = unsafe { cudarc::driver::result::free_sync(addr) };
    }
}

fn load(context: &Arc<CudaContext>) {
    let _ = context.load_module(Ptx::from_src(PTX));
}

pub(crate) const DISTURBERS: [(&str, Disturb); 3] =
    [("a device-wide wait", synchronize), ("an allocation", allocate), ("a module load", load)];

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` while another thread disturbs; returns how often it did.
pub(crate) fn disturbed(disturb: Disturb, pause: Duration, work: impl FnOnce()) -> u64 {
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let context = CudaContext::new(0).unwrap();
            while !stop.load(Ordering::Relaxed) {
                disturb(&context);
                std::thread::sleep(pause);
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        while count.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        // Also when `work` panics: the scope waits for the thread.
        let _stop = Stop(&stop);
        work();
    });
    count.into_inner()
}

/// Every value is right, whatever the others do; returns recordings, captures tried again, fallbacks.
fn survive(mode: Mode, disturb: Disturb, pause: Duration) -> (u64, u64, u64, u64) {
    let mut rt = runtime();
    let graph = ChainGraph::builder().mode(mode).build(&mut rt).unwrap();
    let times = disturbed(disturb, pause, || {
        for length in 0..40 {
            for _ in 0..3 {
                let step = rt.step().unwrap();
                let x = step.tensor(&[8], &[1.5; 8]).unwrap();
                let y = graph.call(&step, &x, length).unwrap();
                let want = if length % 2 == 0 { -1.5 } else { 1.5 };
                assert_eq!(step.read(&y).unwrap(), [want; 8]);
            }
        }
    });
    let stats = rt.stats();
    (times, stats.recordings, stats.captures_invalidated, stats.fallbacks)
}

#[test]
fn our_captures_survive() {
    if skipped("our_captures_survive") {
        return;
    }
    for (name, disturb) in DISTURBERS {
        // Device-wide waits without a pause, beside captures, crash the driver itself (580.159.04, inside
        // `cuCtxSynchronize`).
        let pauses: &[u64] = if name == "a device-wide wait" { &[2] } else { &[2, 0] };
        let pauses = pauses.iter().copied().map(Duration::from_millis);
        for (pause, mode) in pauses.flat_map(|pause| [(pause, Mode::Piecewise), (pause, Mode::Full)]) {
            let (times, recordings, invalidated, fallbacks) = survive(mode, disturb, pause);
            println!(
                "our captures, {mode}, {name} on another thread ({times} times, {pause:?} apart): {recordings} recorded, \
                 {invalidated} tried again, {fallbacks} given up"
            );
            // Without a pause captures may be given up, which the events say; with one, none is.
            if pause > Duration::ZERO {
                assert_eq!(fallbacks, 0, "{name}");
                assert!(recordings >= 40, "{name}: {recordings}");
            }
        }
    }
}

/// A launch of the user's, with memory of its own.
struct Launcher {
    stream: Arc<CudaStream>,
    kernel: CudaFunction,
    x: CudaSlice<f32>,
    y: CudaSlice<f32>,
}

impl Launcher {
    fn new(stream: &Arc<CudaStream>) -> Self {
        let kernel =
            stream.context().load_module(Ptx::from_src(PTX)).unwrap().load_function("add_one").unwrap();
        let (x, y) = (stream.alloc_zeros::<f32>(64).unwrap(), stream.alloc_zeros::<f32>(64).unwrap());
        stream.synchronize().unwrap();
        Self { stream: Arc::clone(stream), kernel, x, y }
    }

    /// Whether it was taken: a capture may be in a state that refuses it.
    fn launch(&mut self) -> bool {
        let shape = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (64, 1, 1), shared_mem_bytes: 0 };
        let mut launch = self.stream.launch_builder(&self.kernel);
        // SAFETY: both have as many elements as the launch has threads.
        unsafe { launch.arg(&self.x).arg(&mut self.y).launch(shape) }.is_ok()
    }
}

fn stream_of_ours() -> Arc<CudaStream> {
    let context = CudaContext::new(0).unwrap();
    // SAFETY: one stream, in order.
    unsafe { context.disable_event_tracking() };
    new_stream(&context)
}

thread_local! {
    static HIDDEN: RefCell<Option<(Launcher, bool)>> = const { RefCell::new(None) };
}

/// No type says that it launches something: on this thread, or on another one meanwhile. In turn, not at once: the
/// driver does not let two threads change a graph at the same time, and crashes.
fn hidden_launch() {
    HIDDEN.with_borrow_mut(|hidden| match hidden {
        Some((launcher, false)) => assert!(launcher.launch()),
        Some((launcher, true)) => std::thread::scope(|scope| {
            scope.spawn(|| {
                launcher.stream.context().bind_to_thread().unwrap();
                assert!(launcher.launch());
            });
        }),
        None => {}
    });
}

#[graphable]
fn with_a_hidden_launch(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = ops::neg(x)?;
    hidden_launch();
    ops::neg(&y)
}

#[test]
fn a_launch_that_is_not_ours_is_not_recorded() {
    if skipped("a_launch_that_is_not_ours_is_not_recorded") {
        return;
    }
    refused(false);
    refused(true);
}

fn refused(from_another_thread: bool) {
    let stream = stream_of_ours();
    let mut rt = Runtime::new(Device::cuda_stream(Arc::clone(&stream))).unwrap();
    let graph = WithAHiddenLaunchGraph::builder().build(&mut rt).unwrap();
    HIDDEN.set(Some((Launcher::new(&stream), from_another_thread)));
    for call in 0..4 {
        let step = rt.step().unwrap();
        let x = step.tensor(&[8], &[1.5; 8]).unwrap();
        match graph.call(&step, &x) {
            // Warming up runs everything as it is.
            Ok(y) => assert_eq!((call, step.read(&y).unwrap()), (0, vec![1.5; 8])),
            Err(error) => {
                assert!(call > 0 && matches!(error, Error::ForeignWork { .. }), "{call}: {error}");
                assert!(error.to_string().contains("#[eager(cx)]"), "{error}");
            }
        }
    }
    assert_eq!(rt.stats().recordings, 0);
    HIDDEN.set(None);
    let step = rt.step().unwrap();
    let x = step.tensor(&[8], &[1.5; 8]).unwrap();
    let y = graph.call(&step, &x).unwrap();
    assert_eq!(step.read(&y).unwrap(), [1.5; 8]);
    drop((x, y, step));
    assert_eq!(rt.stats().recordings, 1);
}

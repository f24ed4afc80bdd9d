//! The current context of the calling thread: what it was, after every call. And host context, which is dropped after the work
//! on the stream.

use std::{
    ffi::c_void,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use cudarc::driver::{
    result::ctx,
    sys::{CUcontext, cuLaunchHostFunc},
};
use graphable::{backend::cuda, graphable, prelude::*};

use crate::support::{runtime, skipped};

#[graphable]
fn scaled(
    #[host]
    #[dims(N)]
    x: &Tensor<f32>,
    w: &Param<f32>,
) -> Result<Tensor<f32>> {
    ops::mul(x, w)
}

fn current() -> CUcontext {
    ctx::get_current().unwrap().unwrap_or(std::ptr::null_mut())
}

/// A whole life of a runtime, with `before` current; `note` is called after each step of it.
fn live(before: CUcontext) {
    let set = || {
        // SAFETY: none, or a context that cudarc keeps.
        unsafe { ctx::set_current(before) }.unwrap();
    };
    set();
    let same = |what: &str| assert_eq!(current(), before, "after {what}");
    let mut rt = runtime();
    same("making a runtime");
    let w = Param::<f32>::new(&rt, &[1], &[2.0]).unwrap();
    same("a parameter");
    let graph = ScaledGraph::builder().build(&mut rt).unwrap();
    for n in [4usize, 3000, 100_000] {
        for _ in 0..4 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &vec![1.5; n], &w).unwrap();
            same("a call");
            let later = step.read_later(&y).unwrap();
            same("the start of a read");
            let z = ops::exp(&y).unwrap();
            assert_eq!(step.read(&y).unwrap(), vec![3.0; n]);
            same("a read");
            drop((y, z));
            std::thread::spawn(move || {
                assert!(current().is_null(), "a fresh thread has none");
                assert_eq!(later.wait().unwrap().len(), n);
                assert!(current().is_null(), "after a wait elsewhere");
            })
            .join()
            .unwrap();
            step.synchronize().unwrap();
            same("a wait");
        }
    }
    assert!(rt.stats().recordings > 0 && rt.stats().replays > 0, "{:?}", rt.stats());
    rt.trim().unwrap();
    same("trimming");
    drop((w, graph));
    rt.reset().unwrap();
    same("a reset");
    drop(rt);
    same("dropping the runtime");
}

/// In a thread of its own: the harness's threads are used again.
fn in_a_thread(work: impl FnOnce() + Send + 'static) {
    std::thread::spawn(work).join().unwrap();
}

#[test]
fn none_stays_none() {
    if skipped("none_stays_none") {
        return;
    }
    in_a_thread(|| live(std::ptr::null_mut()));
}

#[test]
fn another_ones_stays() {
    if skipped("another_ones_stays") {
        return;
    }
    in_a_thread(|| {
        // Another GPU's, where there is one; else ours, which then stays.
        let ordinal = cuda::device_count().unwrap() - 1;
        let other = cudarc::driver::CudaContext::new(ordinal).unwrap();
        live(other.cu_ctx());
    });
}

/// What is current in the regions of a call.
static SEEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// What the region makes current, if anything.
static MADE_CURRENT: AtomicUsize = AtomicUsize::new(0);

fn looked_at<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    SEEN.lock().unwrap().push(current().addr());
    let other = MADE_CURRENT.load(Ordering::SeqCst);
    if other != 0 {
        // SAFETY: a context that cudarc keeps.
        unsafe { ctx::set_current(std::ptr::with_exposed_provenance_mut(other)) }.unwrap();
    }
    ops::relu(x)
}

#[graphable]
fn with_a_region(
    #[host]
    #[dims(N)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let y = ops::neg(x)?;
    let z = #[eager]
    looked_at(&y)?;
    ops::neg(&z)
}

/// On a thread that has no context, that of the runtime is current while a call runs, and what code of a region makes current
/// stays. A thread that has one keeps it.
#[test]
fn regions_see_the_context_of_the_thread_or_that_of_the_runtime() {
    if skipped("regions_see_the_context_of_the_thread_or_that_of_the_runtime") {
        return;
    }
    in_a_thread(|| {
        let mut rt = runtime();
        let ours = cudarc::driver::CudaContext::new(0).unwrap().cu_ctx().expose_provenance();
        let other = cudarc::driver::CudaContext::new(cuda::device_count().unwrap() - 1).unwrap();
        let graph = WithARegionGraph::builder().mode(Mode::Piecewise).build(&mut rt).unwrap();
        for (before, made, seen, after) in [
            (0, 0, ours, 0),
            (0, other.cu_ctx().expose_provenance(), ours, other.cu_ctx().expose_provenance()),
            (
                other.cu_ctx().expose_provenance(),
                0,
                other.cu_ctx().expose_provenance(),
                other.cu_ctx().expose_provenance(),
            ),
        ] {
            for _ in 0..4 {
                // SAFETY: none, or a context that cudarc keeps.
                unsafe { ctx::set_current(std::ptr::with_exposed_provenance_mut(before)) }.unwrap();
                MADE_CURRENT.store(made, Ordering::SeqCst);
                SEEN.lock().unwrap().clear();
                let step = rt.step().unwrap();
                let y = graph.call(&step, &[1.0, -2.0]).unwrap();
                assert_eq!(*SEEN.lock().unwrap(), [seen]);
                // With one GPU, the other context is ours, which is not told from the one that the call made current.
                let kept = if made == ours { 0 } else { after };
                assert_eq!(current().expose_provenance(), kept);
                assert_eq!(step.read(&y).unwrap(), [0.0, -2.0]);
            }
        }
    });
}

/// A plan of a library, which is counted while it is alive.
struct Plan(Arc<AtomicUsize>);

impl Plan {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(alive))
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Work on the stream that uses plans by their addresses, and that waits.
struct Work {
    gate: Mutex<mpsc::Receiver<()>>,
    alive: Arc<AtomicUsize>,
    /// The number of plans that were alive when it ended.
    seen: AtomicUsize,
}

/// # Safety
/// `work` points to a [`Work`] that is alive.
unsafe extern "C" fn run(work: *mut c_void) {
    // SAFETY: our caller's promise.
    let work = unsafe { &*work.cast_const().cast::<Work>() };
    let waited = work.gate.lock().map(|gate| gate.recv().is_ok());
    let seen = if matches!(waited, Ok(true)) { work.alive.load(Ordering::SeqCst) } else { usize::MAX };
    work.seen.store(seen, Ordering::SeqCst);
}

#[graphable]
fn with_plan(x: &Tensor<f32>, _plan: &HostContext<Plan>) -> Result<Tensor<f32>> {
    ops::scale(x, 2.0)
}

/// The plans go in the order in which they were given back, after what was on the stream then: replays, and work that the
/// runtime does not know.
#[test]
fn a_host_context_is_dropped_after_the_work_on_the_stream() {
    if skipped("a_host_context_is_dropped_after_the_work_on_the_stream") {
        return;
    }
    let alive = Arc::<AtomicUsize>::default();
    let mut rt = runtime();
    let graph = WithPlanGraph::builder().mode(Mode::Full).build(&mut rt).unwrap();
    let plan = HostContext::new(&rt, Plan::new(&alive));
    for _ in 0..4 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &step.tensor(&[1], &[5.0]).unwrap(), &plan).unwrap();
        assert_eq!(step.read(&y).unwrap(), [10.0]);
    }
    assert!(rt.stats().replays > 0);
    let (open, gate) = mpsc::channel();
    let work =
        Box::new(Work { gate: Mutex::new(gate), alive: Arc::clone(&alive), seen: AtomicUsize::new(99) });
    let step = rt.step().unwrap();
    let stream = step.cuda_stream().unwrap();
    // SAFETY: the work outlives the stream's use of it, for which this waits below; it calls nothing of the driver's.
    let code = unsafe {
        let work: *const Work = &raw const *work;
        cuLaunchHostFunc(stream.cu_stream(), Some(run), work.cast_mut().cast())
    };
    code.result().unwrap();
    drop((stream, step, plan));
    // The recording goes here, and what it held is given back behind the work; nothing waits for that.
    for _ in 0..3 {
        drop(rt.step().unwrap());
    }
    assert_eq!(
        (rt.stats().live_recordings, alive.load(Ordering::SeqCst)),
        (0, 1),
        "the plan went before its work"
    );
    open.send(()).unwrap();
    rt.step().unwrap().synchronize().unwrap();
    assert_eq!(work.seen.load(Ordering::SeqCst), 1);
    for _ in 0..3 {
        rt.step().unwrap().synchronize().unwrap();
    }
    assert_eq!(alive.load(Ordering::SeqCst), 0, "the plan stays");
    // Without a step, it goes with the runtime.
    let plan = HostContext::new(&rt, Plan::new(&alive));
    drop(plan);
    drop((graph, rt));
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

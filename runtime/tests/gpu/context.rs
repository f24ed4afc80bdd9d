//! The current context of the calling thread: what it was, after every call.

use cudarc::driver::{result::ctx, sys::CUcontext};
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

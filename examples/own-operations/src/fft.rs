//! An operation by a library with plans and workspaces of its own: cuFFT.

use std::{
    collections::HashMap,
    f64::consts::TAU,
    ffi::c_void,
    ptr,
    sync::{Arc, Mutex, PoisonError},
};

use cudarc::{
    cufft::{result, sys},
    driver::{CudaContext, result::ctx},
};
use graphable::{
    custom::{CpuCall, CpuFailure, CudaCall, CudaLibrary, CustomOp, LibraryError, Shapes},
    prelude::*,
};

/// Makes the operation for rows of `length` numbers. It owns its plans, and, on the CPU, a table.
pub fn real_fft(length: usize) -> CustomOp {
    let bins = length / 2 + 1;
    let angle = move |i: usize| -TAU * (i % length) as f64 / length as f64;
    let table: Vec<(f32, f32)> = (0..bins * length)
        .map(|i| angle(i / length * (i % length)))
        .map(|angle| (angle.cos() as f32, angle.sin() as f32))
        .collect();
    CustomOp::builder("real_fft")
        .keeps_padding()
        .cpu(move |call| on_the_cpu(call, length, &table))
        .cuda_library(CuFft { length, plans: Mutex::default() })
        .build()
}

/// Transforms the rows of `x`, `[B, N, length]`, with an operation of [`real_fft`]: the real and imaginary parts of the
/// first half, `[B, N, length / 2 + 1, 2]`.
pub fn transform<'s>(fft: &CustomOp, x: &Tensor<'s, f32>, length: usize) -> Result<Tensor<'s, f32>> {
    fft.call(x.scope())
        .input(x)
        .require(x.rank() == 3 && x.dim(2) == length, "the rows must be as long as the plan says")
        .output((x.dim(0), x.dim(1), length / 2 + 1, 2))
        .run()
}

fn on_the_cpu(call: &CpuCall<'_>, length: usize, table: &[(f32, f32)]) -> Result<(), CpuFailure> {
    let (x, y) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
    let bins = length / 2 + 1;
    for (x, y) in x.chunks_exact(length).zip(y.chunks_exact_mut(2 * bins)) {
        for (y, row) in y.chunks_exact_mut(2).zip(table.chunks_exact(length)) {
            let (mut re, mut im) = (0.0, 0.0);
            for (x, (cos, sin)) in x.iter().zip(row) {
                re += x * cos;
                im += x * sin;
            }
            (y[0], y[1]) = (re, im);
        }
    }
    Ok(())
}

/// A plan for each device and number of rows.
struct CuFft {
    length: usize,
    plans: Mutex<HashMap<(usize, usize), Plan>>,
}

// SAFETY: `prepare` waits for what making a plan puts on the default stream. `launch` puts one transform on the call's
// stream: it reads the input, and writes the output and the workspace, whose sizes are those of the plan, which is for the
// call's shapes. It does not allocate, because the plan was told not to, and cuFFT permits it in a capture. Transforms only
// read the tables of their plan, which lives as long as `self`.
unsafe impl CudaLibrary for CuFft {
    fn may_be_captured(&self) -> bool {
        true
    }

    fn prepare(&self, context: &Arc<CudaContext>, shapes: &Shapes<'_>) -> Result<u64, LibraryError> {
        let rows = shapes.input(0).iter().product::<usize>() / self.length;
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (context.ordinal(), rows);
        if !plans.contains_key(&key) {
            plans.insert(key, Plan::new(context, self.length, rows)?);
        }
        Ok(plans[&key].workspace as u64)
    }

    fn launch(&self, call: &CudaCall<'_>) -> Result<(), LibraryError> {
        let rows = call.shapes().input(0).iter().product::<usize>() / self.length;
        // Another thread must not set the plan up for its launch meanwhile.
        let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = plans.get(&(call.stream().context().ordinal(), rows)).ok_or("there is no plan")?;
        // SAFETY: the plan is alive, and so is the stream of the call.
        unsafe { result::set_stream(plan.handle, call.stream().cu_stream().cast()) }?;
        if plan.workspace > 0 {
            // SAFETY: the workspace has as many bytes as the plan needs, and is the call's until its work has ended.
            unsafe { result::set_work_area(plan.handle, call.workspace() as *mut c_void) }?;
        }
        // SAFETY: input and output have the sizes of the plan.
        unsafe { result::exec_r2c(plan.handle, call.input(0) as *mut f32, call.output(0) as *mut _) }?;
        Ok(())
    }
}

struct Plan {
    handle: sys::cufftHandle,
    context: Arc<CudaContext>,
    /// In bytes.
    workspace: usize,
}

impl Plan {
    fn new(context: &Arc<CudaContext>, length: usize, rows: usize) -> Result<Self, LibraryError> {
        // SAFETY: this loads libcufft and runs its initializers.
        if !unsafe { sys::is_culib_present() } {
            return Err("cuFFT was not found; add the folder of libcufft.so to LD_LIBRARY_PATH".into());
        }
        let handle = result::create()?;
        let mut plan = Self { handle, context: Arc::clone(context), workspace: 0 };
        let (mut length, rows) = (i32::try_from(length)?, i32::try_from(rows)?);
        // SAFETY: the plan is new.
        unsafe { result::set_auto_allocation(handle, false) }?;
        let none = ptr::null_mut();
        // SAFETY: one size is read; without layouts, rows lie one behind the other.
        plan.workspace = unsafe {
            let kind = sys::cufftType::CUFFT_R2C;
            result::make_plan_many(handle, 1, &mut length, none, 1, 0, none, 1, 0, kind, rows)
        }?;
        // The tables of the plan must be there before the runtime's stream reads them.
        context.default_stream().synchronize()?;
        Ok(plan)
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        // On whatever thread: its own context is current again afterwards.
        let previous = ctx::get_current().ok().flatten().unwrap_or(ptr::null_mut());
        if self.context.bind_to_thread().is_err() {
            return;
        }
        // SAFETY: no work that uses the plan is left when its library is dropped.
        let _ = unsafe { result::destroy(self.handle) };
        // SAFETY: it was current before.
        let _ = unsafe { ctx::set_current(previous) };
    }
}

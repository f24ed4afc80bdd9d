//! Interoperation with cudarc: its memory as tensors, tensors as its memory, and its launches in order with
//! the runtime's.

use std::{fmt, marker::PhantomData, ops::Deref, sync::Arc};

use cudarc::driver::{CudaSlice, CudaStream, CudaViewMut};

use crate::{
    AsOperand, Eager, Element, Error, IntoDataShape, IntoShape, Result, Runtime, State, Tensor,
    backend::{
        View,
        cuda::{CudaBackend, CudaRef},
    },
    memory::OwnedView,
    runtime::core::Core,
    value::layout::Layout,
};

fn backend<'a>(core: &'a Core, call: &'static str) -> Result<&'a CudaBackend> {
    core.stream.backend().as_any().downcast_ref().ok_or_else(|| Error::Config {
        what: call.into(),
        reason: format!("the runtime runs on {}, not on a GPU", core.stream.backend().name()),
    })
}

/// The memory of a tensor, a parameter or a state for cudarc, valid as long as that lives and in its region or step.
#[derive(Debug)]
pub struct CudaTensor<'t, T> {
    slice: CudaRef<T>,
    /// Closed after the slice was dropped.
    _open: OpenView<'t>,
    _tensor: PhantomData<&'t ()>,
}

/// A view that is open.
struct OpenView<'t> {
    rt: &'t Runtime,
    id: u64,
}

impl<'t> OpenView<'t> {
    fn new(rt: &'t Runtime, op: &'static str, view: View, writes: bool) -> Result<Self> {
        Ok(Self { rt, id: rt.views.open(op, view, writes)? })
    }

    /// Of memory of a step.
    fn shown(rt: &'t Runtime) -> Self {
        Self { rt, id: rt.views.show() }
    }
}

impl Drop for OpenView<'_> {
    fn drop(&mut self) {
        self.rt.views.close(self.id);
    }
}

impl fmt::Debug for OpenView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenView").field("id", &self.id).finish_non_exhaustive()
    }
}

impl<T> Deref for CudaTensor<'_, T> {
    type Target = CudaSlice<T>;

    /// Returns the memory: pass it to `launch_builder(..).arg(..)`, or take a `CudaView` of it. It is
    /// read-only, because tensors are immutable.
    fn deref(&self) -> &CudaSlice<T> {
        &self.slice
    }
}

/// Memory for cudarc that work on the runtime's stream may write, valid in its region or step.
#[derive(Debug)]
pub struct CudaMemory<'t, T> {
    slice: CudaRef<T>,
    /// Closed after the slice was dropped.
    _open: OpenView<'t>,
    _memory: PhantomData<&'t ()>,
}

impl<T> Deref for CudaMemory<'_, T> {
    type Target = CudaSlice<T>;

    fn deref(&self) -> &CudaSlice<T> {
        &self.slice
    }
}

impl<T> CudaMemory<'_, T> {
    /// Returns the memory to write: pass it to `launch_builder(..).arg(&mut view)`, or to a copy of cudarc's.
    pub fn view_mut(&mut self) -> CudaViewMut<'_, T> {
        self.slice.view_mut()
    }
}

/// A tensor that is being written through cudarc, in the region or step that made it.
#[derive(Debug)]
pub struct CudaOutput<'t, 's, T> {
    memory: CudaMemory<'t, T>,
    tensor: Tensor<'s, T>,
}

impl<'s, T> CudaOutput<'_, 's, T> {
    /// Returns the memory to write, as [`CudaMemory::view_mut`] does.
    pub fn view_mut(&mut self) -> CudaViewMut<'_, T> {
        self.memory.view_mut()
    }

    /// Returns the tensor. Its contents are what the work so far on the stream writes.
    pub fn into_tensor(self) -> Tensor<'s, T> {
        let Self { memory, tensor } = self;
        // Ends other streams' use of it.
        drop(memory);
        tensor
    }
}

impl<'s> Eager<'s> {
    /// Returns the runtime's stream. Work launched on it inside the region runs in order with the runtime's
    /// own.
    ///
    /// A kernel that you launch with the attribute for programmatic dependent launch
    /// (`CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`) may begin before the runtime's last kernel
    /// has ended: it must wait itself (`griddepcontrol.wait`, `cudaGridDependencySynchronize`) before it
    /// accesses memory. Without the attribute, nothing special is required.
    ///
    /// The runtime preserves the context that is current on the calling thread; cudarc makes the stream's
    /// context current when the stream is used.
    ///
    /// Do not store the stream for later, or use it on another thread: CUDA captures by stream, so work that
    /// reaches the stream while the runtime records a segment would become part of that recording. Such work
    /// is rejected with [`Error::ForeignWork`](crate::Error::ForeignWork), unless it coincides with one of
    /// the runtime's own launches, in which case the driver itself may crash, or the driver is older than
    /// CUDA 12.
    ///
    /// # Errors
    /// Returns [`Error::Config`] if the runtime does not run on a GPU, or [`Error::CapabilityInSegment`].
    pub fn cuda_stream(&self) -> Result<Arc<CudaStream>> {
        let core = self.rt.core.borrow();
        core.call.may_look("the stream")?;
        backend(&core, "the stream").map(|b| Arc::clone(b.stream().cudarc()))
    }

    /// Returns your memory as a row-major tensor of `shape`, without a copy. The slice is kept alive until
    /// the tensor and all work that reads it are done; do not write to it before then.
    ///
    /// As the result of a region, it is copied from the second call on to where recordings expect it, so a slice at another
    /// address changes nothing. [`cuda_output`](Self::cuda_output) saves the copy.
    ///
    /// The runtime's stream waits for work already queued on the slice's stream. If `shape` contains the size
    /// of a padded dimension, the slice includes the padding; the contents of the padding do not matter.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if the sizes differ, or [`Error::Config`] if the runtime does not run on a
    /// GPU.
    pub fn tensor_of_cuda<T: Element>(
        &self,
        shape: impl IntoDataShape<'s>,
        slice: Arc<CudaSlice<T>>,
    ) -> Result<Tensor<'s, T>> {
        self.check("a tensor of CUDA memory")?;
        let given = self.scope().resolve("tensor_of_cuda", shape.into_data_sizes())?;
        let (shape, layout) = (&given.sizes, Layout::contiguous(&given.sizes)?);
        let mut core = self.rt.core.borrow_mut();
        if layout.count() != slice.len() {
            return Err(Error::Argument {
                op: "tensor_of_cuda",
                reason: format!("shape {shape:?} has {} elements, the slice {}", layout.count(), slice.len()),
            });
        }
        let memory = backend(&core, "a tensor of CUDA memory")?.adopt_slice(slice)?;
        let raw = core.memory.adopt_in_region(OwnedView {
            owner: None,
            memory: &memory,
            dtype: T::DTYPE,
            layout,
            marks: given.marks,
        });
        drop(core);
        Ok(Tensor::from_raw(self.rt, raw))
    }

    /// Returns the memory of a tensor, a parameter or a state for cudarc, without a copy: on the runtime's stream, it
    /// contains the values that a read would return. Padding of the first dimension is cut off.
    ///
    /// Until the view of a state is dropped, operations that write the state return [`Error::Argument`], and so do calls of
    /// graphs.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if the elements are not contiguous (copy them with `ops::contiguous`), or if the state has
    /// an open view that writes it;
    /// [`Error::DifferentRuntimes`], or [`Error::Config`] if the runtime does not run on a GPU.
    pub fn cuda_view<'t, T: Element>(
        &'t self,
        operand: &'t (impl AsOperand<'s, T> + ?Sized),
    ) -> Result<CudaTensor<'t, T>> {
        const CALL: &str = "cuda_view";
        self.check("a view for CUDA")?;
        let is_state = operand.is_state();
        let operand = operand.operand(CALL, self.scope())?;
        let mut core = self.rt.core.borrow_mut();
        core.launcher().flush()?;
        let real = core.call.real_layout(operand.view.layout, operand.marks);
        if !real.is_contiguous() {
            return Err(Error::Argument {
                op: CALL,
                reason: "the elements are not contiguous; copy the tensor with `ops::contiguous` first"
                    .into(),
            });
        }
        let backend = backend(&core, "a view for CUDA")?;
        let open = match is_state {
            true => OpenView::new(self.rt, CALL, operand.view, false)?,
            false => OpenView::shown(self.rt),
        };
        let slice = backend.show(operand.view.addr, real.count())?;
        Ok(CudaTensor { slice, _open: open, _tensor: PhantomData })
    }

    /// Returns the memory of a state for cudarc, to be written in place on the runtime's stream: a cache of a library's, for
    /// instance.
    ///
    /// The work of the runtime waits for writes on other streams when the view is dropped. If a view is forgotten
    /// (`std::mem::forget`), the host waits for the whole device when its region or step ends, and `tracing` has a warning.
    /// Until the view is dropped, operations on the state return [`Error::Argument`], and so do calls of graphs. `capture_all` restores what
    /// a view made during it wrote.
    ///
    /// ```compile_fail,E0597
    /// # use graphable::prelude::*;
    /// fn written(cache: &State<f32>, rt: &mut Runtime) -> Result<()> {
    ///     let kept;
    ///     {
    ///         let step = rt.step()?;
    ///         kept = step.cuda_view_mut(cache)?; // outlives the step
    ///     }
    ///     drop(kept);
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if the state has another open view; [`Error::DifferentRuntimes`], or [`Error::Config`] if
    /// the runtime does not run on a GPU.
    pub fn cuda_view_mut<'t, T: Element>(&'t self, state: &'t State<T>) -> Result<CudaMemory<'t, T>> {
        const CALL: &str = "cuda_view_mut";
        self.check("a view for CUDA")?;
        let view = state.operand(CALL, self.scope())?.view;
        let mut core = self.rt.core.borrow_mut();
        let mut launcher = core.launcher();
        launcher.flush()?;
        // `capture_all` puts the state back as it was.
        launcher.save_before_write(&[view])?;
        let backend = backend(&core, "a view for CUDA")?;
        let open = OpenView::new(self.rt, CALL, view, true)?;
        let slice = backend.show(view.addr, view.layout.count())?;
        Ok(CudaMemory { slice, _open: open, _memory: PhantomData })
    }

    /// Makes a tensor whose memory is written through cudarc, on the runtime's stream. It holds anything until then. As the
    /// result of a region it is where recordings expect it, so nothing is copied.
    ///
    /// Sizes of padded dimensions include the padding, whose contents do not matter.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`], or [`Error::Config`] if the runtime does not run on a GPU.
    pub fn cuda_output<T: Element>(&self, shape: impl IntoShape<'s>) -> Result<CudaOutput<'_, 's, T>> {
        const CALL: &str = "cuda_output";
        self.check("a view for CUDA")?;
        let given = self.scope().resolve(CALL, shape.into_sizes())?;
        let tensor = self.scope().output::<T>(CALL, &given.sizes, given.marks)?;
        let mut core = self.rt.core.borrow_mut();
        core.launcher().flush()?;
        let raw = tensor.raw;
        let slice = backend(&core, "a view for CUDA")?.show(raw.addr, raw.layout.count())?;
        drop(core);
        let open = OpenView::shown(self.rt);
        Ok(CudaOutput { memory: CudaMemory { slice, _open: open, _memory: PhantomData }, tensor })
    }
}

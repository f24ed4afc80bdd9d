//! Interoperation with cudarc: its memory as tensors, tensors as its memory, and its launches in order with
//! the runtime's.

use std::{marker::PhantomData, ops::Deref, sync::Arc};

use cudarc::driver::{CudaSlice, CudaStream};

use crate::{
    Eager, Element, Error, IntoDataShape, Result, Tensor,
    backend::cuda::{CudaBackend, CudaRef},
    core::Core,
    memory::OwnedView,
    value::layout::Layout,
};

fn backend<'a>(core: &'a Core, call: &'static str) -> Result<&'a CudaBackend> {
    core.stream.backend().as_any().downcast_ref().ok_or_else(|| Error::Config {
        what: call.into(),
        why: format!("the runtime runs on {}, not on a GPU", core.stream.backend().name()),
    })
}

/// A tensor's memory for cudarc, valid as long as the tensor lives.
#[derive(Debug)]
pub struct CudaTensor<'t, T> {
    slice: CudaRef<T>,
    _tensor: PhantomData<&'t ()>,
}

impl<T> Deref for CudaTensor<'_, T> {
    type Target = CudaSlice<T>;

    /// Returns the memory: pass it to `launch_builder(..).arg(..)`, or take a `CudaView` of it. It is
    /// read-only, because tensors are immutable.
    fn deref(&self) -> &CudaSlice<T> {
        &self.slice
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
                why: format!("shape {shape:?} has {} elements, the slice {}", layout.count(), slice.len()),
            });
        }
        let memory = backend(&core, "a tensor of CUDA memory")?.adopt_slice(slice)?;
        let raw = core.memory.adopt(OwnedView {
            owner: None,
            memory: &memory,
            dtype: T::DTYPE,
            layout,
            marks: given.marks,
        });
        drop(core);
        Ok(Tensor::from_raw(self.rt, raw))
    }

    /// Returns a tensor's memory for cudarc, without a copy: on the runtime's stream, it contains the values
    /// that a read would return. Padding of the first dimension is cut off.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if the elements are not contiguous (copy them with `ops::contiguous`),
    /// [`Error::DifferentRuntimes`], or [`Error::Config`] if the runtime does not run on a GPU.
    pub fn cuda_view<'t, T: Element>(&self, tensor: &'t Tensor<'s, T>) -> Result<CudaTensor<'t, T>> {
        if !std::ptr::eq(self.rt, tensor.rt) {
            return Err(Error::DifferentRuntimes { op: "cuda_view" });
        }
        let mut core = self.rt.core.borrow_mut();
        core.call.may_look("a view for CUDA")?;
        core.check_live("cuda_view", &tensor.raw)?;
        core.launcher().flush()?;
        let real = core.call.unpadded(tensor.raw).layout;
        if !real.is_contiguous() {
            return Err(Error::Argument {
                op: "cuda_view",
                why: "the elements are not contiguous; copy the tensor with `ops::contiguous` first".into(),
            });
        }
        let slice = backend(&core, "a view for CUDA")?.show(tensor.raw.addr, real.count())?;
        Ok(CudaTensor { slice, _tensor: PhantomData })
    }
}

//! Working with cudarc: its memory as tensors, tensors as its memory, and its launches in order with ours.

use std::{marker::PhantomData, ops::Deref, sync::Arc};

use cudarc::driver::{CudaSlice, CudaStream};

use crate::{
    Eager, Element, Error, Result, Tensor,
    backend::cuda::{CudaBackend, CudaRef},
    core::Core,
    layout::{Layout, Marks},
};

fn backend<'a>(core: &'a Core, call: &'static str) -> Result<&'a CudaBackend> {
    core.backend.as_any().and_then(|any| any.downcast_ref()).ok_or_else(|| Error::Config {
        what: call.into(),
        why: format!("the runtime works on {}, not on a GPU", core.backend.name()),
    })
}

/// A tensor's memory for cudarc, as long as the tensor lives.
#[derive(Debug)]
pub struct CudaTensor<'t, T> {
    slice: CudaRef<T>,
    _tensor: PhantomData<&'t ()>,
}

impl<T> Deref for CudaTensor<'_, T> {
    type Target = CudaSlice<T>;

    /// The memory: pass it to `launch_builder(..).arg(..)`, or take a `CudaView` of it. It is read only:
    /// tensors do not change.
    fn deref(&self) -> &CudaSlice<T> {
        &self.slice
    }
}

impl<'s> Eager<'s> {
    /// The runtime's stream. What you launch there in the region runs in order with the runtime's work.
    ///
    /// A kernel of yours that you launch with the attribute for programmatic dependent launch
    /// (`CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`) may begin before the runtime's last kernel has ended: it
    /// must wait itself (`griddepcontrol.wait`, `cudaGridDependencySynchronize`) before it touches memory. Without the
    /// attribute nothing is to be done.
    ///
    /// The runtime leaves the context that is current on the calling thread as it was; cudarc makes the stream's
    /// current when it is used.
    ///
    /// Do not keep it for later, nor use it on another thread: CUDA captures by stream, so what reaches it
    /// while the runtime records a segment would become part of that recording. It is
    /// [`Error::ForeignWork`](crate::Error::ForeignWork) instead, unless it comes at the very moment of a launch of the
    /// runtime's, where the driver itself may crash, or the driver is older than CUDA 12.
    ///
    /// # Errors
    /// [`Error::Config`] on another device than a GPU; [`Error::CapabilityInSegment`].
    pub fn cuda_stream(&self) -> Result<Arc<CudaStream>> {
        let core = self.rt.core.borrow();
        core.may_look("the stream")?;
        backend(&core, "the stream").map(|b| Arc::clone(b.stream().cudarc()))
    }

    /// Memory of yours as a tensor of `shape`, row-major, without a copy. It is kept until the tensor
    /// and all work that reads it are done; do not write it meanwhile.
    ///
    /// The tensor's stream is made to wait for what the slice's stream has now.
    ///
    /// # Errors
    /// [`Error::Argument`] when the sizes differ; [`Error::Config`] on another device.
    pub fn tensor_of_cuda<T: Element>(
        &self,
        shape: &[usize],
        slice: Arc<CudaSlice<T>>,
    ) -> Result<Tensor<'s, T>> {
        let mut core = self.rt.core.borrow_mut();
        core.may_look("a tensor of CUDA memory")?;
        let layout = Layout::contiguous(shape)?;
        if layout.count() != slice.len() {
            return Err(Error::Argument {
                op: "tensor_of_cuda",
                why: format!("shape {shape:?} has {} elements, the slice {}", layout.count(), slice.len()),
            });
        }
        let memory = backend(&core, "a tensor of CUDA memory")?.adopt_slice(slice)?;
        let raw = core.adopt(0, &memory, T::DTYPE, layout, Marks::NONE);
        drop(core);
        Ok(Tensor::from_raw(self.rt, raw))
    }

    /// A tensor's memory for cudarc, without a copy: on the runtime's stream its values are those that a
    /// read would give.
    ///
    /// # Errors
    /// [`Error::Argument`] when the elements do not lie end to end (`ops::contiguous` helps);
    /// [`Error::DifferentRuntimes`]; [`Error::Config`] on another device.
    pub fn cuda_view<'t, T: Element>(&self, tensor: &'t Tensor<'s, T>) -> Result<CudaTensor<'t, T>> {
        if !std::ptr::eq(self.rt, tensor.rt) {
            return Err(Error::DifferentRuntimes { op: "cuda_view" });
        }
        let mut core = self.rt.core.borrow_mut();
        core.may_look("a view for CUDA")?;
        core.check_live("cuda_view", &tensor.raw)?;
        core.flush()?;
        if !tensor.raw.layout.is_contiguous() {
            return Err(Error::Argument {
                op: "cuda_view",
                why: "the elements do not lie end to end; copy the tensor with `ops::contiguous` first"
                    .into(),
            });
        }
        let slice = backend(&core, "a view for CUDA")?.show(tensor.raw.addr, tensor.raw.layout.count())?;
        Ok(CudaTensor { slice, _tensor: PhantomData })
    }
}

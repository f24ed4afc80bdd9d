//! Memory that is cudarc's, shown as tensors; tensors, shown to cudarc.

use std::{mem::ManuallyDrop, ops::Deref, sync::Arc};

use cudarc::driver::{CudaSlice, CudaStream, CudaViewMut, DevicePtr as _, DevicePtrMut as _};

use super::{
    CudaBackend,
    driver::{BoundForCall, Context},
    shared::Foreign,
};
use crate::{
    Error, Result,
    backend::{Backend, SharedMemory},
};

impl CudaBackend {
    /// Returns the backend if it is one of CUDA.
    pub(crate) fn of(backend: &dyn Backend) -> Option<&Self> {
        backend.as_any().downcast_ref()
    }

    /// Makes the device's context current while a call of a graph runs, on a thread that has none.
    pub(crate) fn bind_for_call(&self) -> Option<BoundForCall> {
        self.shared.context.bind_for_call()
    }

    /// Adopts the user's memory, to be used as a tensor: our stream waits for the work that is currently on
    /// the slice's stream.
    ///
    /// # Errors
    /// Returns [`Error::Config`] for memory of another device, and errors of the driver.
    pub(crate) fn adopt_slice<T: Send + Sync + 'static>(
        &self,
        slice: Arc<CudaSlice<T>>,
    ) -> Result<SharedMemory> {
        let theirs = slice.stream().context();
        if theirs.cu_ctx().cast() != self.shared.context.raw() {
            return Err(Error::Config {
                what: "the memory".into(),
                reason: format!(
                    "it is of cuda:{}, or of a context that is not that device's primary one; the runtime works on {}",
                    theirs.ordinal(),
                    self.shared.context.name()
                ),
            });
        }
        let _bound = self.shared.context.bind()?;
        self.shared.drain()?;
        self.shared.stream.wait_for_stream(slice.stream())?;
        let addr = {
            let (addr, _order) = slice.device_ptr(self.shared.stream.cudarc());
            addr
        };
        let bytes = (slice.len() * size_of::<T>()) as u64;
        let owner: Option<Box<dyn std::any::Any + Send + Sync>> = Some(Box::new(slice));
        Ok(Arc::new(Foreign { addr, bytes, owner, shared: Arc::clone(&self.shared) }))
    }

    /// Waits until all work on the device that was launched before has ended, whatever its stream.
    ///
    /// # Errors
    /// Returns failures of that work.
    pub(crate) fn wait_for_device(&self) -> Result<()> {
        self.shared.drain()?;
        self.shared.context.synchronize()
    }

    /// `len` elements at `addr`, as cudarc sees memory.
    ///
    /// # Errors
    /// Returns errors of the driver, such as that the context is lost.
    pub(crate) fn show<T>(&self, addr: u64, len: usize) -> Result<CudaRef<T>> {
        // cudarc panics where it cannot make an event.
        let _bound = self.shared.context.bind()?;
        let stream: &Arc<CudaStream> = self.shared.stream.cudarc();
        // SAFETY: the caller shows memory of a live tensor of that many elements; the slice is never
        // dropped as one, so it frees nothing, and the reference does not outlive the tensor.
        let mut slice = unsafe { stream.upgrade_device_ptr(addr, len) };
        // Other streams wait for the work that is currently on ours.
        drop(slice.device_ptr_mut(stream).1);
        Ok(CudaRef { slice: ManuallyDrop::new(slice), context: Arc::clone(&self.shared.context) })
    }
}

/// A tensor's memory as a `CudaSlice`, to be read by launches on the runtime's stream. Frees nothing.
pub struct CudaRef<T> {
    slice: ManuallyDrop<CudaSlice<T>>,
    context: Arc<Context>,
}

impl<T> Deref for CudaRef<T> {
    type Target = CudaSlice<T>;

    fn deref(&self) -> &CudaSlice<T> {
        &self.slice
    }
}

impl<T> CudaRef<T> {
    /// The memory, to be written. The slice itself must stay here: dropped elsewhere, it would free memory of an arena.
    pub(crate) fn view_mut(&mut self) -> CudaViewMut<'_, T> {
        self.slice.as_view_mut()
    }
}

impl<T> Drop for CudaRef<T> {
    fn drop(&mut self) {
        // SAFETY: taken here only, at the end.
        let slice = unsafe { ManuallyDrop::take(&mut self.slice) };
        // cudarc makes the context current, and leaves it so.
        let _bound = self.context.bind();
        // Our stream waits for other streams' reads of it; the memory still belongs to the tensor.
        let _ = slice.leak();
    }
}

impl<T> std::fmt::Debug for CudaRef<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CudaRef").field("len", &self.slice.len()).finish()
    }
}

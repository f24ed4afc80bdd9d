//! The services of a GPU for the code of operations.

use std::{any::Any, panic::Location, sync::Arc};

use bytemuck::Pod;
use cudarc::driver::{CudaContext, CudaStream};

use super::{
    convolution::{Convolution, ConvolutionAddresses},
    product::Product,
    unit::{Grid, Kernel},
    view::FaultSink,
};
use crate::{
    Result,
    backend::cuda::{DeviceProperties, custom::CudaGrid},
};

/// The services that the CUDA code of an operation needs, implemented by the backend's stream.
pub(crate) trait Submit {
    /// Returns the properties of the device.
    fn props(&self) -> &DeviceProperties;
    /// Adds one kernel to the stream, or to the current capture.
    ///
    /// # Errors
    /// Returns errors of compiling, loading or the driver.
    fn submit_bytes(&mut self, kernel: Kernel, grid: Grid, params: &[u8]) -> Result<()>;
    /// Returns the size of each parameter of a kernel, in bytes; `None` if the driver cannot say. Asking loads the
    /// kernel, with room for the shared memory of `grid`.
    ///
    /// # Errors
    /// Returns errors of compiling, loading or the driver.
    fn parameter_sizes(&mut self, kernel: Kernel, grid: CudaGrid) -> Result<Option<&[usize]>>;
    /// Puts one kernel of a user's on the stream, or into the capture under way: the bytes of each of its parameters.
    ///
    /// # Errors
    /// As [`submit_bytes`](Self::submit_bytes).
    fn submit_list(&mut self, kernel: Kernel, grid: CudaGrid, parameters: &[&[u8]]) -> Result<()>;
    /// Lets code of a user's allocate and load in the device's context, outside of captures.
    ///
    /// # Errors
    /// Returns the error of the code, or of the driver.
    fn work_in_context(&mut self, work: &mut dyn FnMut(&Arc<CudaContext>) -> Result<()>) -> Result<()>;
    /// Lets a user's code work on the stream, or in the capture in progress, which is passed to it. `keep` is kept until
    /// that work has ended; in a capture, as long as the recording.
    ///
    /// # Errors
    /// Returns the error of the code, or of the driver.
    fn work_on_stream(
        &mut self,
        keep: Box<dyn Any + Send + Sync>,
        work: &mut dyn FnMut(&Arc<CudaStream>, bool) -> Result<()>,
    ) -> Result<()>;
    /// In a capture, keeps what a kernel that was submitted uses for as long as the recording. Outside of captures it does
    /// nothing, so `what` frees itself after the work on the stream.
    fn keep_with_recording(&mut self, what: Arc<dyn Any + Send + Sync>);
    /// Returns the location where kernels report faults; `op` of a report is [`Submit::fault_op`] of the
    /// operation's name.
    fn faults(&self) -> FaultSink;
    /// The number under which an operation reports.
    fn fault_op(&mut self, name: &'static str) -> u32;
    /// The number under which a loop reports that it reached its limit; the bound of the report is the limit.
    fn fault_loop(&mut self, at: &'static Location<'static>) -> u32;
    /// Returns the workspace of a matrix product, in bytes. With `measure`, outside a capture, a new product
    /// is measured on its own operands: the output is overwritten.
    ///
    /// # Errors
    /// Returns errors of the library or the driver.
    fn product_workspace(&mut self, product: Product<'_>, measure: bool) -> Result<u64>;
    /// Computes a matrix product, with the library or the given kernels, using the workspace that
    /// [`product_workspace`](Self::product_workspace) requested.
    ///
    /// # Errors
    /// Returns the errors of [`submit_bytes`](Self::submit_bytes), and of the library.
    fn product(&mut self, product: Product<'_>, workspace: u64) -> Result<()>;
    /// Returns the workspace of a convolution, in bytes; `None` if there is no library that computes it.
    ///
    /// # Errors
    /// Returns errors of the library.
    fn convolution_workspace(&mut self, convolution: &Convolution) -> Result<Option<u64>>;
    /// Computes a convolution with the library, using the workspace that
    /// [`convolution_workspace`](Self::convolution_workspace) requested.
    ///
    /// # Errors
    /// Returns errors of the library, and of the driver.
    fn convolution(
        &mut self,
        convolution: &Convolution,
        at: ConvolutionAddresses,
        workspace: u64,
    ) -> Result<()>;
}

/// Submits a kernel with its parameters.
pub(crate) fn submit<P: Pod>(gpu: &mut dyn Submit, kernel: Kernel, grid: Grid, params: &P) -> Result<()> {
    gpu.submit_bytes(kernel, grid, bytemuck::bytes_of(params))
}

//! Matrix products, as an operation asks for them.

use super::Submit;
use crate::{
    Numerics, Result,
    backend::{View, cuda::DeviceProperties},
};

/// A product of matrices: `[a: .., M, K; b: .., K, N] -> [y: .., M, N]`, all of one rank, the batch already
/// broadcast (stride 0). An optional third input of the output's shape, in any strides, is added.
#[derive(Clone, Copy)]
pub(crate) struct Product<'a> {
    /// The operands.
    pub(crate) inputs: &'a [View],
    /// The result.
    pub(crate) output: &'a View,
    /// Compute it where the library does not.
    pub(crate) kernels: &'a dyn ProductKernels,
    /// Its precision, and whether its algorithm may be chosen by measurement.
    pub(crate) numerics: Numerics,
}

/// Kernels for the products that the library cannot compute, or computes more slowly.
pub(crate) trait ProductKernels {
    /// Returns the workspace of [`launch`](Self::launch), in bytes.
    fn workspace_bytes(&self, props: &DeviceProperties, inputs: &[View], output: &View) -> u64;
    /// Returns whether they compute this product, also where the library could: a rule of types, shapes, strides and
    /// alignment alone, so that every run of a product has the same bits.
    fn takes(&self, inputs: &[View], output: &View) -> bool;
    /// Returns true if they are worth measuring against the library.
    fn may_be_faster(&self, props: &DeviceProperties, inputs: &[View], output: &View) -> bool;
    /// Computes any product.
    ///
    /// # Errors
    /// Returns errors of the device.
    fn launch(&self, gpu: &mut dyn Submit, inputs: &[View], output: &View, workspace: u64) -> Result<()>;
}

impl<'a> Product<'a> {
    /// Creates a product; the switches are those that concern its type.
    pub(crate) fn new(
        inputs: &'a [View],
        output: &'a View,
        kernels: &'a dyn ProductKernels,
        numerics: Numerics,
    ) -> Self {
        Self { inputs, output, kernels, numerics }
    }

    /// Returns whether the library is not asked.
    pub(in crate::backend::cuda) fn is_own(self) -> bool {
        self.kernels.takes(self.inputs, self.output)
    }

    /// Returns the workspace of its kernels, in bytes.
    pub(in crate::backend::cuda) fn workspace_bytes(self, props: &DeviceProperties) -> u64 {
        self.kernels.workspace_bytes(props, self.inputs, self.output)
    }

    /// Runs its kernels.
    pub(in crate::backend::cuda) fn launch_kernels(self, gpu: &mut dyn Submit, workspace: u64) -> Result<()> {
        self.kernels.launch(gpu, self.inputs, self.output, workspace)
    }
}

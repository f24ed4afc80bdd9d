//! A launch of a kernel of indices: its tensors, numbers, and the real sizes that it reads.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use smallvec::SmallVec;

#[cfg(feature = "cuda")]
use super::cuda;
use super::{
    super::{
        constants::Constants,
        definition::{Definition, Index},
        operation::Further,
    },
    cpu,
};
use crate::backend::{
    Launch, View,
    cpu::{Access, Fault},
};
#[cfg(feature = "cuda")]
use crate::{Result, backend::cuda::kernels::Submit};

/// A padded dimension. Its real size is a u32 scalar on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PaddedDim {
    /// The tensor.
    pub(super) of: Owner,
    /// The number of the dimension.
    pub(super) axis: u8,
    /// The number of the scalar, among the inputs after the tensors and the generators.
    pub(super) count: u8,
}

/// The tensor that a padded dimension belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    /// The input with this number among the tensors.
    Input(u8),
    /// All results.
    Results,
}

/// The inputs after the tensors in a launch of a kernel of indices: generators, and the real sizes of padded
/// dimensions.
pub(super) struct Indexed {
    /// The definition's.
    pub(super) index: &'static Index,
    pub(super) padded: SmallVec<[PaddedDim; 4]>,
    /// For each parameter that is a random number: how many before it draw from the same generator.
    pub(super) ahead: SmallVec<[u32; 2]>,
}

impl fmt::Debug for Indexed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.padded, self.ahead)
    }
}

impl Hash for Indexed {
    fn hash<H: Hasher>(&self, to: &mut H) {
        self.padded.hash(to);
        self.ahead.hash(to);
    }
}

impl Further for Indexed {
    fn is_empty(&self) -> bool {
        self.padded.is_empty() && self.ahead.is_empty()
    }

    fn run_on_cpu(
        &self,
        of: &'static Definition,
        constants: &Constants,
        access: &Access<'_>,
        launch: &Launch,
    ) -> Result<(), Fault> {
        let Self { index, padded, ahead } = self;
        Kernel { definition: of, index, constants, padded, ahead }.run_on_cpu(access, launch)
    }

    #[cfg(feature = "cuda")]
    fn launch_on_gpu(
        &self,
        of: &'static Definition,
        constants: &Constants,
        gpu: &mut dyn Submit,
        launch: &Launch,
    ) -> Result<()> {
        let Self { index, padded, ahead } = self;
        Kernel { definition: of, index, constants, padded, ahead }.launch_on_gpu(gpu, launch)
    }
}

/// A kernel and the parameters of its launch.
pub(in crate::kernel) struct Kernel<'a> {
    pub(super) definition: &'a Definition,
    pub(super) index: &'a Index,
    /// Empty if every parameter is a tensor.
    pub(super) constants: &'a Constants,
    pub(super) padded: &'a [PaddedDim],
    pub(super) ahead: &'a [u32],
}

impl<'a> Kernel<'a> {
    /// With a tensor for every parameter, none of them padded; it draws no random numbers.
    pub(in crate::kernel) fn plain(definition: &'a Definition, index: &'a Index) -> Self {
        Self { definition, index, constants: &[], padded: &[], ahead: &[] }
    }

    /// Runs it on host memory.
    pub(in crate::kernel) fn run_on_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::run(self, access, launch)
    }

    /// Likewise, on a GPU.
    #[cfg(feature = "cuda")]
    pub(in crate::kernel) fn launch_on_gpu(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
        cuda::launch(self, gpu, launch)
    }

    /// The inputs that are tensors, the generators, and the real sizes.
    pub(super) fn split<'l>(&self, launch: &'l Launch) -> [&'l [View]; 3] {
        let others = self.constants.iter().flatten().count() + self.ahead.len();
        let tensors = self.definition.inputs.len().saturating_sub(others);
        let (tensors, rest) = launch.inputs.split_at(tensors.min(launch.inputs.len()));
        let (generators, real) = rest.split_at(self.ahead.len().min(rest.len()));
        [tensors, generators, real]
    }
}

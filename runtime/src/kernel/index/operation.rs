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
        definition::{Definition, Index},
        operation::{Constants, Further},
    },
    cpu,
};
use crate::backend::{
    Launch,
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
    /// The number of the scalar, among the inputs after the tensors.
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

/// The padded dimensions of a launch of a kernel of indices.
pub(super) struct Indexed {
    /// The definition's.
    pub(super) index: &'static Index,
    pub(super) padded: SmallVec<[PaddedDim; 4]>,
}

impl fmt::Debug for Indexed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.padded.fmt(f)
    }
}

impl Hash for Indexed {
    fn hash<H: Hasher>(&self, to: &mut H) {
        self.padded.hash(to);
    }
}

impl Further for Indexed {
    fn is_empty(&self) -> bool {
        self.padded.is_empty()
    }

    fn run_on_cpu(
        &self,
        of: &'static Definition,
        constants: &Constants,
        access: &Access<'_>,
        launch: &Launch,
    ) -> Result<(), Fault> {
        let Self { index, padded } = self;
        Kernel { definition: of, index, constants, padded }.run_on_cpu(access, launch)
    }

    #[cfg(feature = "cuda")]
    fn launch_on_gpu(
        &self,
        of: &'static Definition,
        constants: &Constants,
        gpu: &mut dyn Submit,
        launch: &Launch,
    ) -> Result<()> {
        let Self { index, padded } = self;
        Kernel { definition: of, index, constants, padded }.launch_on_gpu(gpu, launch)
    }
}

/// A kernel and the parameters of its launch.
pub(in crate::kernel) struct Kernel<'a> {
    pub(super) definition: &'a Definition,
    pub(super) index: &'a Index,
    /// Empty if every parameter is a tensor.
    pub(super) constants: &'a Constants,
    pub(super) padded: &'a [PaddedDim],
}

impl<'a> Kernel<'a> {
    /// With a tensor for every parameter, none of them padded.
    pub(in crate::kernel) fn plain(definition: &'a Definition, index: &'a Index) -> Self {
        Self { definition, index, constants: &[], padded: &[] }
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

    /// Number of inputs that are tensors; real sizes follow.
    pub(super) fn tensors(&self) -> usize {
        self.definition.inputs.len() - self.constants.iter().flatten().count()
    }
}

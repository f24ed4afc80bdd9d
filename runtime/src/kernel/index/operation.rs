//! A kernel of indices as an operation: with the numbers that its recording fixes, and the real sizes that it reads.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use smallvec::SmallVec;

#[cfg(feature = "cuda")]
use super::cuda;
use super::{
    super::{
        definition::{Definition, Index, Number},
        operation::Constants,
    },
    cpu,
};
use crate::backend::{
    Launch, Op, Operation,
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

/// A launch of a kernel of indices.
pub(super) struct Indexed {
    pub(super) definition: &'static Definition,
    pub(super) index: &'static Index,
    pub(super) constants: SmallVec<[Option<Number>; 4]>,
    pub(super) padded: SmallVec<[PaddedDim; 4]>,
}

impl Indexed {
    /// The same, to be launched.
    pub(super) fn op(self) -> Op {
        let plain = self.padded.is_empty() && self.constants.iter().all(Option::is_none);
        if plain { Op::fixed(self.definition) } else { self.into() }
    }
}

impl fmt::Debug for Indexed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:?}", self.definition.name, self.constants, self.padded)
    }
}

impl Operation for Indexed {
    fn name(&self) -> &'static str {
        self.definition.name
    }

    fn parameters(&self, mut to: &mut dyn Hasher) {
        self.definition.id.hash(&mut to);
        self.constants.hash(&mut to);
        self.padded.hash(&mut to);
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::run(&self.kernel(), access, launch)
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
        cuda::launch(&self.kernel(), gpu, launch)
    }
}

impl Indexed {
    fn kernel(&self) -> Kernel<'_> {
        let Self { definition, index, constants, padded } = self;
        Kernel { definition, index, constants, padded }
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

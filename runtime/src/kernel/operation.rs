//! A kernel as an operation: alone, or with numbers that its recording fixes.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use smallvec::SmallVec;

use super::{
    cpu,
    definition::{Definition, Kind, Number, Padded},
    index::operation::Kernel,
    rows,
};
use crate::backend::{
    Launch, Op, Operation,
    cpu::{Access, Fault},
};
#[cfg(feature = "cuda")]
use crate::{Result, backend::cuda::kernels::Submit};

/// For each parameter, the number that replaces it.
pub(super) type Constants = [Option<Number>];

/// The operation of a call, with the padded dimensions whose real sizes follow the tensors.
pub(super) fn operation_of_padded(
    definition: &'static Definition,
    constants: impl Iterator<Item = Option<Number>> + Clone,
    padded: Padded,
) -> Op {
    if padded.is_empty() && constants.clone().all(|constant| constant.is_none()) {
        return Op::fixed(definition);
    }
    Fixed { definition, constants: constants.collect(), padded }.into()
}

/// With a tensor for every parameter.
impl Operation for Definition {
    fn name(&self) -> &'static str {
        self.name
    }

    fn parameters(&self, mut to: &mut dyn Hasher) {
        self.id.hash(&mut to);
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        self.run_on_cpu(&[], Padded::default(), access, launch)
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
        self.launch_on_gpu(&[], Padded::default(), gpu, launch)
    }
}

impl Definition {
    /// Runs it; `constants` is empty if every parameter is a tensor.
    fn run_on_cpu(
        &self,
        constants: &Constants,
        padded: Padded,
        access: &Access<'_>,
        launch: &Launch,
    ) -> Result<(), Fault> {
        match &self.kind {
            Kind::Elements => {
                cpu::run(self, constants, access, launch);
                Ok(())
            }
            Kind::Rows(rows) => rows::cpu::run(self, rows, constants, padded, access, launch),
            Kind::Index(index) => Kernel::plain(self, index).run_on_cpu(access, launch),
        }
    }

    /// Likewise, on a GPU.
    #[cfg(feature = "cuda")]
    fn launch_on_gpu(
        &self,
        constants: &Constants,
        padded: Padded,
        gpu: &mut dyn Submit,
        launch: &Launch,
    ) -> Result<()> {
        match &self.kind {
            Kind::Elements => super::cuda::launch(self, constants, gpu, launch),
            Kind::Rows(rows) => rows::cuda::launch(self, rows, constants, padded, gpu, launch),
            Kind::Index(index) => Kernel::plain(self, index).launch_on_gpu(gpu, launch),
        }
    }
}

/// With numbers for some, or with padded dimensions.
struct Fixed {
    definition: &'static Definition,
    constants: SmallVec<[Option<Number>; 4]>,
    padded: Padded,
}

impl fmt::Debug for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.definition.name, self.constants)
    }
}

impl Operation for Fixed {
    fn name(&self) -> &'static str {
        self.definition.name
    }

    fn parameters(&self, mut to: &mut dyn Hasher) {
        self.definition.id.hash(&mut to);
        self.constants.hash(&mut to);
        self.padded.hash(&mut to);
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        self.definition.run_on_cpu(&self.constants, self.padded, access, launch)
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
        self.definition.launch_on_gpu(&self.constants, self.padded, gpu, launch)
    }
}

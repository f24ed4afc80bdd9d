//! A kernel as an operation: alone, or with numbers that its recording fixes.

use std::{
    any::Any,
    fmt,
    hash::{Hash, Hasher},
};

use smallvec::SmallVec;

use super::{
    chain::JOINER,
    constants::Constants,
    cpu,
    definition::{Compute, Definition, Kind, Number, Padded},
    index::operation::Kernel,
    random::draws::Draws,
    rows,
};
use crate::backend::{
    self, JoinsElements, Launch, Op, Operation,
    cpu::{Access, Fault},
};
#[cfg(feature = "cuda")]
use crate::{Result, backend::cuda::kernels::Submit};

/// The inputs after the tensors in a launch, such as the real sizes of padded dimensions, if kernels of one kind
/// have any.
pub(crate) trait Further: fmt::Debug + Hash + Send + Sync + 'static {
    /// If nothing follows.
    fn is_empty(&self) -> bool;

    /// Runs the kernel on host memory.
    fn run_on_cpu(
        &self,
        of: &'static Definition,
        constants: &Constants,
        access: &Access<'_>,
        launch: &Launch,
    ) -> Result<(), Fault>;

    /// Likewise, on a GPU.
    #[cfg(feature = "cuda")]
    fn launch_on_gpu(
        &self,
        of: &'static Definition,
        constants: &Constants,
        gpu: &mut dyn Submit,
        launch: &Launch,
    ) -> Result<()>;
}

/// The operation of a call.
pub(crate) fn operation(
    definition: &'static Definition,
    constants: impl Iterator<Item = Option<Number>> + Clone,
    further: impl Further,
) -> Op {
    if further.is_empty() && constants.clone().all(|constant| constant.is_none()) {
        return Op::fixed(definition);
    }
    Fixed { definition, constants: constants.collect(), further }.into()
}

/// Returns the kernel that an operation is, if its inputs are its tensors and nothing else; the numbers are empty if every
/// parameter is a tensor.
pub(crate) fn plain(op: &Op) -> Option<(&'static Definition, &Constants)> {
    let operation: &dyn Any = op.operation();
    match operation.downcast_ref::<Fixed<Padded>>() {
        Some(fixed) => fixed.further.is_empty().then_some((fixed.definition, &fixed.constants[..])),
        None => {
            let operation: &'static dyn Any = op.as_fixed()?;
            Some((operation.downcast_ref::<Definition>()?, &[][..]))
        }
    }
}

/// Returns the kernel of elements that an operation is, unless it draws random numbers; the numbers are empty if every parameter
/// is a tensor.
pub(super) fn elementwise(op: &Op) -> Option<(&'static Definition, &Constants)> {
    plain(op).filter(|(definition, _)| matches!(definition.kind, Kind::Elements))
}

/// With a tensor for every parameter.
impl Operation for Definition {
    fn name(&self) -> &'static str {
        self.name
    }

    fn parameters(&self, mut to: &mut dyn Hasher) {
        self.id.hash(&mut to);
    }

    fn joins_elements(&self) -> Option<&'static dyn JoinsElements> {
        self.is_step().then_some(&JOINER as _)
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
    /// Returns whether it can be a step of a chain.
    fn is_step(&self) -> bool {
        matches!(self.kind, Kind::Elements)
            && self.inputs.iter().all(|(_, compute)| *compute != Compute::Random)
    }

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
                cpu::run(self, constants, None, access, launch);
                Ok(())
            }
            Kind::Rows(rows) => rows::cpu::run(self, rows, constants, &Draws::none(padded), access, launch),
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
            Kind::Elements => super::cuda::launch(self, constants, None, gpu, launch),
            Kind::Rows(rows) => rows::cuda::launch(self, rows, constants, &Draws::none(padded), gpu, launch),
            Kind::Index(index) => Kernel::plain(self, index).launch_on_gpu(gpu, launch),
        }
    }
}

impl Further for Padded {
    fn is_empty(&self) -> bool {
        Self::is_empty(*self)
    }

    fn run_on_cpu(
        &self,
        of: &'static Definition,
        constants: &Constants,
        access: &Access<'_>,
        launch: &Launch,
    ) -> Result<(), Fault> {
        of.run_on_cpu(constants, *self, access, launch)
    }

    #[cfg(feature = "cuda")]
    fn launch_on_gpu(
        &self,
        of: &'static Definition,
        constants: &Constants,
        gpu: &mut dyn Submit,
        launch: &Launch,
    ) -> Result<()> {
        of.launch_on_gpu(constants, *self, gpu, launch)
    }
}

impl Further for Draws {
    fn is_empty(&self) -> bool {
        self.ahead.is_empty()
    }

    fn run_on_cpu(
        &self,
        of: &'static Definition,
        constants: &Constants,
        access: &Access<'_>,
        launch: &Launch,
    ) -> Result<(), Fault> {
        if let Kind::Rows(rows) = &of.kind {
            return rows::cpu::run(of, rows, constants, self, access, launch);
        }
        cpu::run(of, constants, Some(self), access, launch);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_on_gpu(
        &self,
        of: &'static Definition,
        constants: &Constants,
        gpu: &mut dyn Submit,
        launch: &Launch,
    ) -> Result<()> {
        match &of.kind {
            Kind::Rows(rows) => rows::cuda::launch(of, rows, constants, self, gpu, launch),
            _ => super::cuda::launch(of, constants, Some(self), gpu, launch),
        }
    }
}

/// With numbers for some parameters, or with further inputs.
struct Fixed<F> {
    definition: &'static Definition,
    constants: SmallVec<[Option<Number>; 4]>,
    further: F,
}

impl<F: Further> fmt::Debug for Fixed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:?}", self.definition.name, self.constants, self.further)
    }
}

impl<F: Further> Operation for Fixed<F> {
    fn name(&self) -> &'static str {
        self.definition.name
    }

    fn parameters(&self, mut to: &mut dyn Hasher) {
        self.definition.id.hash(&mut to);
        self.constants.hash(&mut to);
        self.further.hash(&mut to);
    }

    fn constants(&self) -> Vec<backend::Constant> {
        self.constants.iter().flatten().map(|number| number.value()).collect()
    }

    fn joins_elements(&self) -> Option<&'static dyn JoinsElements> {
        let is_plain = (&self.further as &dyn Any).is::<Padded>();
        (is_plain && self.definition.is_step()).then_some(&JOINER as _)
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        self.further.run_on_cpu(self.definition, &self.constants, access, launch)
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
        self.further.launch_on_gpu(self.definition, &self.constants, gpu, launch)
    }
}

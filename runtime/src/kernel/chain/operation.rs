//! A chain as an operation.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use super::{Chain, ElementSource, Step, cpu};
use crate::backend::{
    Launch, Operation, View,
    cpu::{Access, Fault},
};
#[cfg(feature = "cuda")]
use crate::{Result, backend::cuda::kernels::Submit};

impl Operation for Chain {
    /// The names of the steps, as `add+silu+mul`; of a long chain, the first ones.
    fn name(&self) -> &'static str {
        self.known.name
    }

    fn parameters(&self, mut to: &mut dyn Hasher) {
        self.known.number.hash(&mut to);
        for step in &self.steps {
            step.constants.hash(&mut to);
        }
    }

    fn may_write_over(&self, input: &View, output: &View) -> bool {
        Self::may_write_over(input, output)
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::run(self, access, launch);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
        super::cuda::launch(self, gpu, launch)
    }
}

/// `add(x0, x1) -> f32; silu(s0) -> f32; writes s1`.
impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            write!(f, "{step:?}; ")?;
        }
        let outputs = self.outputs.iter().map(|&(step, part)| ElementSource::Result { step, part });
        write!(f, "writes ")?;
        listed(f, outputs)
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.definition.name)?;
        listed(f, self.arguments.iter().copied())?;
        write!(f, ")")?;
        for number in self.constants.iter().flatten() {
            write!(f, " {number:?}")?;
        }
        write!(f, " -> {:?}", self.stored)
    }
}

fn listed(f: &mut fmt::Formatter<'_>, all: impl Iterator<Item = ElementSource>) -> fmt::Result {
    for (i, argument) in all.enumerate() {
        let comma = if i > 0 { ", " } else { "" };
        match argument {
            ElementSource::Input(input) => write!(f, "{comma}x{input}")?,
            ElementSource::Result { step, part: 0 } => write!(f, "{comma}s{step}")?,
            ElementSource::Result { step, part } => write!(f, "{comma}s{step}.{part}")?,
        }
    }
    Ok(())
}

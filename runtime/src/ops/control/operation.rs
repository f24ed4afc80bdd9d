//! The operations that are launched.

use std::{hash::Hasher, panic::Location};

use super::cpu;
#[cfg(feature = "cuda")]
use super::cuda;
use crate::backend::{
    Launch, Operation,
    cpu::{Access, Fault},
};
#[cfg(feature = "cuda")]
use crate::{Result, backend::cuda::kernels::Submit};

/// The number of no body of a loop.
pub(super) const STOP: u32 = 1;

/// `[pred] -> [selector]`
#[derive(Debug)]
pub(super) struct Choose;

/// A value for which a body runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    /// By its bits.
    pub(super) value: u32,
    pub(super) body: u32,
}

/// `[index] -> [selector]`
#[derive(Debug)]
pub(super) struct Switch {
    /// Each value once.
    pub(super) table: Box<[Case]>,
    /// The body for all other values.
    pub(super) default: u32,
}

/// `[pred] -> [selector, rounds]`
#[derive(Debug)]
pub(super) struct BeginLoop;

/// `[pred] -> [selector, rounds]`, in place: the rounds are counted.
#[derive(Debug)]
pub(super) struct NextRound {
    pub(super) limit: u32,
    pub(super) at: &'static Location<'static>,
}

impl Operation for Choose {
    fn name(&self) -> &'static str {
        "choose"
    }

    fn parameters(&self, _: &mut dyn Hasher) {}

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::choose(access, launch);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
        cuda::choose(gpu, launch)
    }
}

impl Operation for Switch {
    fn name(&self) -> &'static str {
        "choose_case"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u32(self.default);
        to.write_usize(self.table.len());
        for case in &self.table {
            to.write_u32(case.value);
            to.write_u32(case.body);
        }
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::choose_case(access, launch, self);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
        cuda::choose_case(gpu, launch, self)
    }
}

impl Operation for BeginLoop {
    fn name(&self) -> &'static str {
        "begin_loop"
    }

    fn parameters(&self, _: &mut dyn Hasher) {}

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::begin_loop(access, launch);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
        cuda::begin_loop(gpu, launch)
    }
}

impl Operation for NextRound {
    fn name(&self) -> &'static str {
        "next_round"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u32(self.limit);
        to.write(self.at.file().as_bytes());
        to.write_u32(self.at.line());
        to.write_u32(self.at.column());
    }

    fn writes_in_place(&self) -> bool {
        true
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::next_round(access, launch, self)
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
        cuda::next_round(gpu, launch, self)
    }
}

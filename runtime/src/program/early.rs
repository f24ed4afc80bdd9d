//! Kernels load parameters before earlier kernels have ended.
//!
//! On devices that support it, a kernel is launched while the one before it still runs, and waits for it before it reads what
//! that one wrote ([`wait_for_earlier`] in `common.cuh`). No operation writes a parameter: a product may ask for its weights
//! before it waits, so that memory works while the last blocks of the earlier kernel do.
//!
//! [`wait_for_earlier`]: crate::backend::Operation::early

use super::{Command, Program, pass::Pass};
use crate::observe::inspect::PassReport;

/// The pass.
#[derive(Debug, Default)]
pub(super) struct LoadEarly;

impl Pass for LoadEarly {
    fn name(&self) -> &'static str {
        "load_early"
    }

    fn run(&self, program: &mut Program, report: &mut PassReport) {
        let mut commands = std::mem::take(&mut program.commands);
        for command in &mut commands {
            let Command::Launch { launch, .. } = command else { continue };
            let early = launch.op.operation().early(launch, &|view| program.is_constant(view));
            if let Some(op) = early {
                report.add_made(op.name(), 1);
                launch.op = op;
            }
        }
        program.commands = commands;
    }
}

//! Kernels load parameters before earlier kernels have ended.
//!
//! On devices that support it, a kernel is launched while the one before it still runs, and waits for it before it reads what
//! that one wrote ([`wait_for_earlier`] in `common.cuh`). No operation writes a parameter, and whoever overwrites one lets nothing
//! begin meanwhile (`record/overwrite.rs`): a product may ask for its weights before it waits, so that memory works while the last
//! blocks of the earlier kernel do. In a program that writes one nevertheless, whatever does it, its readers wait.
//!
//! [`wait_for_earlier`]: crate::backend::Operation::early

use super::{Command, Program, pass::Pass};
use crate::{backend::View, observe::inspect::PassReport};

/// The pass.
#[derive(Debug, Default)]
pub(super) struct LoadEarly;

impl Pass for LoadEarly {
    fn name(&self) -> &'static str {
        "load_early"
    }

    fn run(&self, program: &mut Program, report: &mut PassReport) {
        let mut commands = std::mem::take(&mut program.commands);
        let written = program.written_constants(&commands);
        let is_constant =
            |view: &View| program.is_constant(view) && written.iter().all(|written| !view.overlaps(written));
        for command in &mut commands {
            let Command::Launch { launch, .. } = command else { continue };
            let early = launch.op.operation().early(launch, &is_constant);
            if let Some(op) = early {
                report.add_made(op.name(), 1);
                launch.op = op;
            }
        }
        program.commands = commands;
    }
}

#[cfg(test)]
mod tests {
    use std::hash::Hasher;

    use super::*;
    use crate::{
        DType, Result,
        backend::{
            Launch, Op, Operation,
            cpu::{Access, Fault},
        },
        memory::COPY,
        value::layout::Layout,
    };

    /// `[x] -> [y]`, which may ask for `x` early.
    #[derive(Debug)]
    struct Asks {
        is_early: bool,
    }

    impl Operation for Asks {
        fn name(&self) -> &'static str {
            if self.is_early { "early" } else { "late" }
        }

        fn parameters(&self, _: &mut dyn Hasher) {}

        fn early(&self, launch: &Launch, is_constant: &dyn Fn(&View) -> bool) -> Option<Op> {
            is_constant(&launch.inputs[0]).then(|| Op::fixed(&Asks { is_early: true }))
        }

        fn run_cpu(&self, _: &Access<'_>, _: &Launch) -> Result<(), Fault> {
            Ok(())
        }

        #[cfg(feature = "cuda")]
        fn launch_cuda(&self, _: &mut dyn crate::backend::cuda::kernels::Submit, _: &Launch) -> Result<()> {
            unreachable!("of the CPU")
        }
    }

    fn view(addr: u64, bytes: usize) -> View {
        View { addr, dtype: DType::U8, layout: Layout::contiguous(&[bytes]).unwrap() }
    }

    fn launch(op: Op, from: View, to: View) -> Command {
        let launch = Launch {
            op,
            inputs: [from].into_iter().collect(),
            outputs: [to].into_iter().collect(),
            workspace: 0,
        };
        Command::Launch { launch: Box::new(launch), workspace: 0 }
    }

    /// The readers of two parameters, at 1000 and at 2000, that ask early, beside a copy to `written`.
    fn asks_early(written: View) -> [bool; 2] {
        let late = || Op::fixed(&Asks { is_early: false });
        let mut program = Program::default();
        program.note_constant(1000..1100);
        program.note_constant(2000..2100);
        program.push(launch(late(), view(1000, 100), view(0, 100)));
        program.push(launch(late(), view(2050, 50), view(100, 50)));
        program.push(launch(COPY, view(0, 10), written));
        LoadEarly.run(&mut program, &mut PassReport::new("load_early"));
        let names: Vec<_> = program.commands().iter().filter_map(name).collect();
        assert_eq!(names[2], "copy");
        [names[0] == "early", names[1] == "early"]
    }

    fn name(command: &Command) -> Option<&'static str> {
        match command {
            Command::Launch { launch, .. } => Some(launch.op.name()),
            _ => None,
        }
    }

    #[test]
    fn a_program_that_writes_a_parameter_waits_before_it_reads_that() {
        assert_eq!(asks_early(view(500, 10)), [true, true], "no parameter is written");
        assert_eq!(asks_early(view(1090, 10)), [false, true]);
        assert_eq!(asks_early(view(990, 10)), [true, true], "just before one");
        assert_eq!(asks_early(view(2000, 40)), [true, true], "the other half of one");
        assert_eq!(asks_early(view(2000, 51)), [true, false]);
        assert_eq!(
            asks_early(view(1050, 1000)),
            [false, true],
            "up to the second one's end, of which it reads other bytes"
        );
        assert_eq!(asks_early(view(900, 1190)), [false, false]);
    }
}

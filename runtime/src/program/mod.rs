//! Recordings as programs: their commands, which passes rewrite before they are captured.
//!
//! While a body is recorded, its operations are only written down, with the addresses at which the recorder has placed
//! their operands. A pass ([`Pass`]) may then do the same work with other commands: one operation instead of several, for
//! instance. It never changes what leaves the recording, which state is written, nor the order of writes to it.
//! Warm-up, traces and audits know nothing of passes: they see the operations of the body.
//!
//! Memory has been placed when passes run, and freed memory is used again. So passes do not think in tensors but in
//! *values* ([`values`]): what one operation wrote to a range of bytes, until they are written again or freed.

mod command;
mod common;
mod early;
mod elementwise;
mod joining;
mod moved;
mod pass;
mod products;
#[cfg(test)]
mod tests;
pub(crate) mod users;
mod values;
mod writes;

use std::{collections::BTreeMap, ops::Range};

pub(crate) use command::Command;
pub use pass::Passes;
pub(crate) use pass::Rewritten;
pub(crate) use users::{Dependents, Target};

use crate::backend::View;

/// The commands of a recording.
#[derive(Debug, Default)]
pub(crate) struct Program {
    commands: Vec<Command>,
    /// Memory that no operation writes, from its first byte to behind its last one.
    constants: BTreeMap<u64, u64>,
}

impl Program {
    /// Adds a command at the end.
    pub(crate) fn push(&mut self, command: Command) {
        self.commands.push(command);
    }

    /// Notes that no operation writes this memory, in this program or elsewhere.
    pub(crate) fn note_constant(&mut self, memory: Range<u64>) {
        self.constants.insert(memory.start, memory.end);
    }

    /// Returns whether all elements of a view are in memory that no operation writes.
    fn is_constant(&self, view: &View) -> bool {
        let (from, to) = view.range();
        self.constants.range(..=from).next_back().is_some_and(|(_, end)| to <= *end)
    }

    /// Returns the views of such memory that one of `commands` writes, against all expectation.
    fn written_constants(&self, commands: &[Command]) -> Vec<View> {
        let outputs = |command: &Command| match command {
            Command::Launch { launch, .. } => launch.outputs.to_vec(),
            _ => Vec::new(),
        };
        commands.iter().flat_map(outputs).filter(|view| self.touches_constants(view)).collect()
    }

    fn touches_constants(&self, view: &View) -> bool {
        let (from, to) = view.range();
        self.constants.range(..to).next_back().is_some_and(|(_, end)| from < *end)
    }

    /// The commands, in their order.
    pub(crate) fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Rewrites each piece between the ends of branches and bodies, alone. `rewrite` gets the commands of a piece, and the
    /// index of the first.
    fn rewrite_pieces(&mut self, mut rewrite: impl FnMut(Vec<Command>, usize) -> Vec<Command>) {
        let mut piece = Vec::new();
        let commands = std::mem::take(&mut self.commands);
        let end = commands.len();
        for (at, command) in commands.into_iter().enumerate() {
            if !command.is_barrier() {
                piece.push(command);
                continue;
            }
            let first = at - piece.len();
            self.commands.append(&mut rewrite(std::mem::take(&mut piece), first));
            self.commands.push(command);
        }
        let first = end - piece.len();
        self.commands.append(&mut rewrite(piece, first));
    }
}

//! Running the commands of a recording, or of a conditional node, outside a capture.
//!
//! Branches run one after the other. Which body of a conditional node runs is decided on the host, which waits for
//! the value on the device: the same commands run in the same order as in a graph, without any support by the
//! device.

use super::launch::Launcher;
use crate::{
    Result,
    backend::{Conditional, View},
    program::Command,
};

impl Launcher<'_> {
    /// Runs commands now.
    ///
    /// # Errors
    /// Returns errors of the device. What its kernels report is for the next read, as in a graph.
    pub(super) fn run_commands(&mut self, commands: &[Command]) -> Result<()> {
        let mut rest = commands;
        while let Some((command, after)) = rest.split_first() {
            rest = after;
            match command {
                Command::Launch { launch, .. } => {
                    if launch.op.operation().writes_in_place() {
                        self.save_before_write(&launch.outputs)?;
                    }
                    self.stream.backend_mut().launch(launch)?;
                }
                Command::Poison { .. } => command.issue(self.stream.backend_mut())?,
                Command::Conditional(node) => {
                    let end = end_of(after);
                    self.run_conditional(node, &after[..end])?;
                    rest = after.get(end + 1..).unwrap_or_default();
                }
                Command::Free { .. }
                | Command::Fork
                | Command::Branch(_)
                | Command::Join
                | Command::Body(_)
                | Command::EndConditional => {}
            }
        }
        Ok(())
    }

    fn run_conditional(&mut self, node: &Conditional, commands: &[Command]) -> Result<()> {
        let bodies = bodies_of(commands);
        loop {
            let selected = self.read_selector(&node.selector)?;
            let Some(body) = bodies.get(selected as usize) else { return Ok(()) };
            self.run_commands(body)?;
            if !node.repeats {
                return Ok(());
            }
        }
    }

    fn read_selector(&mut self, selector: &View) -> Result<u32> {
        let bytes = self.stream.read(selector.addr, size_of::<u32>() as u64)?.wait_without_faults()?;
        let (word, _) = bytes.split_first_chunk().unwrap_or((&[0xff; 4], &[]));
        Ok(u32::from_le_bytes(*word))
    }
}

/// Returns the index of the end of the node whose bodies begin here.
fn end_of(commands: &[Command]) -> usize {
    let mut depth = 0usize;
    let ends = |command: &Command| match command {
        Command::Conditional(_) => {
            depth += 1;
            false
        }
        Command::EndConditional if depth == 0 => true,
        Command::EndConditional => {
            depth -= 1;
            false
        }
        _ => false,
    };
    commands.iter().position(ends).unwrap_or(commands.len())
}

/// Returns the commands of each body.
fn bodies_of(commands: &[Command]) -> Vec<&[Command]> {
    let mut depth = 0usize;
    let mut begins = Vec::new();
    for (index, command) in commands.iter().enumerate() {
        match command {
            Command::Conditional(_) => depth += 1,
            Command::EndConditional => depth -= 1,
            Command::Body(_) if depth == 0 => begins.push(index),
            _ => {}
        }
    }
    let ends = begins.iter().skip(1).copied().chain([commands.len()]);
    begins.iter().zip(ends).map(|(&begin, end)| &commands[begin + 1..end]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, value::layout::Layout};

    #[test]
    fn bodies_are_found_around_inner_nodes() {
        let selector = View { addr: 0, dtype: DType::U32, layout: Layout::contiguous(&[]).unwrap() };
        let node = || Command::Conditional(Conditional { name: "cond", selector, bodies: 2, repeats: false });
        let work = |addr| Command::Poison { addr, bytes: 1 };
        let inner = [node(), Command::Body(0), work(1), Command::Body(1), Command::EndConditional];
        let mut commands = vec![Command::Body(0), work(0)];
        commands.extend(inner);
        commands.extend([Command::Body(1), work(2), Command::EndConditional, work(3)]);
        let end = end_of(&commands);
        assert_eq!(end, commands.len() - 2);
        let lens: Vec<usize> = bodies_of(&commands[..end]).iter().map(|body| body.len()).collect();
        assert_eq!(lens, [6, 1]);
    }
}

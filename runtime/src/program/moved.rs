//! Consequences of reads that have moved down: memory is freed, and poisoned, after its last use.

use std::ops;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Command;
use crate::value::view::Range;

/// The places of commands that free or poison memory which is read later than before: each goes behind a launch.
#[derive(Debug, Default)]
pub(super) struct Moved(FxHashMap<usize, usize>);

impl Moved {
    /// The launches with these indices, in order, become one at the place of the last.
    pub(super) fn reads_move(&mut self, commands: &[Command], first: usize, members: &[usize]) {
        let Some((&place, earlier)) = members.split_last() else { return };
        for &at in earlier {
            let Command::Launch { launch, .. } = &commands[at - first] else { continue };
            for view in &launch.inputs {
                self.is_read(commands, first, view.range(), at + 1..place);
            }
        }
    }

    /// Moves commands that free a byte of `range` after the launch that follows them, which reads it.
    pub(super) fn is_read(
        &mut self,
        commands: &[Command],
        first: usize,
        range: Range,
        between: ops::Range<usize>,
    ) {
        for at in between.clone() {
            if let Command::Free { addr, bytes } | Command::Poison { addr, bytes } = commands[at - first]
                && overlap(range, (addr, addr + bytes))
            {
                let to = self.0.entry(at).or_insert(between.end);
                *to = (*to).max(between.end);
            }
        }
    }

    /// Puts the commands in their order, without those that are `None`. Memory that was written since is neither freed nor
    /// poisoned: it is that of another tensor.
    pub(super) fn in_new_places(
        mut self,
        commands: impl IntoIterator<Item = (usize, Option<Command>)>,
    ) -> Vec<Command> {
        let mut waiting: FxHashMap<usize, Vec<(usize, Command)>> = FxHashMap::default();
        let mut out = Vec::new();
        // Of launches so far.
        let mut written: Vec<(usize, SmallVec<[Range; 2]>)> = Vec::new();
        for (at, command) in commands {
            if let (Some(place), Some(command)) = (self.0.remove(&at), &command) {
                waiting.entry(place).or_default().push((at, command.clone()));
                continue;
            }
            if let Some(Command::Launch { launch, workspace }) = &command {
                let workspace = (launch.workspace, launch.workspace + workspace);
                written
                    .push((at, launch.outputs.iter().map(|view| view.range()).chain([workspace]).collect()));
            }
            out.extend(command);
            for (from, command) in waiting.remove(&at).unwrap_or_default() {
                let since = written.partition_point(|(by, _)| *by < from);
                let mut left: SmallVec<[Range; 2]> = SmallVec::new();
                left.extend(range_of(&command));
                for range in written[since..].iter().flat_map(|(_, ranges)| ranges) {
                    left = left.iter().flat_map(|piece| without(*piece, *range)).collect();
                }
                out.extend(left.into_iter().map(|(start, end)| match command {
                    Command::Poison { .. } => Command::Poison { addr: start, bytes: end - start },
                    _ => Command::Free { addr: start, bytes: end - start },
                }));
            }
        }
        out
    }
}

fn range_of(command: &Command) -> Option<Range> {
    match command {
        Command::Free { addr, bytes } | Command::Poison { addr, bytes } => Some((*addr, addr + bytes)),
        _ => None,
    }
}

/// Returns whether both have a byte in common.
pub(super) fn overlap(one: Range, other: Range) -> bool {
    one.0.max(other.0) < one.1.min(other.1)
}

/// The parts of a range that are not in another one.
fn without(range: Range, other: Range) -> impl Iterator<Item = Range> {
    let before = (range.0, range.1.min(other.0));
    let after = (range.0.max(other.1), range.1);
    let parts = if overlap(range, other) { [before, after] } else { [range, (0, 0)] };
    parts.into_iter().filter(|(start, end)| start < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_without_others() {
        let parts = |other| without((10, 20), other).collect::<Vec<_>>();
        assert_eq!(parts((12, 15)), [(10, 12), (15, 20)]);
        assert_eq!(parts((5, 15)), [(15, 20)]);
        assert_eq!(parts((15, 25)), [(10, 15)]);
        assert_eq!(parts((5, 25)), []);
        assert_eq!(parts((20, 25)), [(10, 20)]);
        assert_eq!(parts((12, 12)), [(10, 20)]);
    }
}

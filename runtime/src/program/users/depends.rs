//! The parts of a program that depend on some of its launches.

use smallvec::SmallVec;

use crate::{
    DType,
    backend::Conditional,
    base::bound::{Bound, BoundedPart},
    program::{Command, values::Contents},
    value::view::Range,
};

/// The memory that holds, when a recording ends, what depends on launches that a pass with a bound replaced.
#[derive(Debug)]
pub(crate) struct Dependents {
    contents: Contents<DType>,
    bound: Bound,
}

impl Dependents {
    /// The launches and values that depend on the launches that are sources.
    ///
    /// In bodies of conditional nodes, which may run or not, or several times, nothing stops to depend on them.
    pub(super) fn of(commands: &[Command], is_source: impl Fn(usize) -> bool, bound: Bound) -> Self {
        let mut flow = Flow { contents: Contents::default(), is_source, decided: SmallVec::new() };
        let mut at = 0;
        while let Some(command) = commands.get(at) {
            if !matches!(command, Command::Conditional(_)) {
                flow.command(at, command);
                at += 1;
                continue;
            }
            let end = end_of_node(commands, at);
            // What a body leaves, the next round of a loop reads.
            loop {
                let before = flow.contents.bytes();
                for (at, command) in (at..end).zip(&commands[at..end]) {
                    flow.command(at, command);
                }
                if flow.contents.bytes() == before {
                    break;
                }
            }
            at = end;
        }
        Self { contents: flow.contents, bound }
    }

    /// Returns the bound of what a range of memory holds, by all of these; `None` if it depends on none.
    pub(crate) fn bound_of(all: &[Self], range: Range) -> Option<Bound> {
        let depending = all.iter().filter(|one| one.contents.pieces(range).next().is_some());
        depending.map(|one| one.bound).reduce(Bound::and)
    }

    /// Returns the parts of a range of memory that depend on some of these, in order.
    pub(crate) fn parts_of(all: &[Self], range: Range) -> Vec<BoundedPart> {
        let pieces = |one: &Self| one.contents.pieces(range).map(|(piece, _)| piece).collect::<Vec<Range>>();
        let mut ends: Vec<u64> = all.iter().flat_map(pieces).flat_map(|(start, end)| [start, end]).collect();
        ends.sort_unstable();
        ends.dedup();
        let parts = ends.windows(2).filter_map(|ends| {
            let range = (ends[0], ends[1]);
            let dtype = all.iter().find_map(|one| one.contents.pieces(range).next())?.1;
            Some(BoundedPart { range, dtype, bound: Self::bound_of(all, range)? })
        });
        parts.collect()
    }
}

/// The index behind the end of the node that begins there.
fn end_of_node(commands: &[Command], at: usize) -> usize {
    let mut open = 0usize;
    for (index, command) in commands.iter().enumerate().skip(at) {
        match command {
            Command::Conditional(_) => open += 1,
            Command::EndConditional => open = open.saturating_sub(1),
            _ => {}
        }
        if open == 0 {
            return index + 1;
        }
    }
    commands.len()
}

/// The state of the analysis.
struct Flow<S> {
    contents: Contents<DType>,
    is_source: S,
    /// For each open node, whether it depends on sources which bodies run.
    decided: SmallVec<[bool; 4]>,
}

impl<S: Fn(usize) -> bool> Flow<S> {
    fn command(&mut self, at: usize, command: &Command) {
        match command {
            Command::Launch { launch, .. } => {
                let is_decided = self.decided.last() == Some(&true);
                let in_place = launch.op.operation().writes_in_place();
                // What is written in place may be read as well.
                let depends = is_decided
                    || (self.is_source)(at)
                    || launch.inputs.iter().any(|view| self.has(view.range()))
                    || in_place && launch.outputs.iter().any(|view| self.has(view.range()));
                let keeps = in_place || !self.decided.is_empty();
                for view in &launch.outputs {
                    if depends {
                        self.contents.set(view.range(), Some(view.dtype));
                    } else if !keeps && view.layout.is_contiguous() {
                        self.contents.set(view.range(), None);
                    }
                }
            }
            // Whatever is there next is another tensor's.
            Command::Free { addr, bytes } if self.decided.is_empty() => {
                self.contents.set((*addr, addr + bytes), None);
            }
            Command::Conditional(Conditional { selector, .. }) => {
                let is_decided = self.decided.last() == Some(&true) || self.has(selector.range());
                self.decided.push(is_decided);
            }
            Command::EndConditional => drop(self.decided.pop()),
            _ => {}
        }
    }

    fn has(&self, range: Range) -> bool {
        self.contents.pieces(range).next().is_some()
    }
}

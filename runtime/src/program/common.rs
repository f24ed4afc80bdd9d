//! Equal operations are computed once.
//!
//! A launch computes what an earlier one has computed if it is the same operation over the same views, and nothing has
//! written what these show in between. It is dropped, and what reads its results reads those of the earlier launch instead.
//!
//! These may have been freed by then, so they must not be written over before the last of the new readers. They are freed
//! after it (`moved.rs`). What outlives the piece, or is written in place, stays where it is, so its launch stays as well.

use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    hash::{Hash as _, Hasher},
    ops,
};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{
    Command, Program,
    moved::{Moved, overlap},
    pass::Pass,
    values::{Value, Values},
    writes::WINDOW,
};
use crate::{
    backend::{Launch, View},
    observe::inspect::{PassRefusal, PassReport},
    value::view::Range,
};

/// The pass.
#[derive(Debug, Default)]
pub(super) struct CommonSubexpressions {
    /// A rule that is ignored, to see what happens then.
    #[cfg(test)]
    pub(super) ignored: Option<Rule>,
}

/// A reason that keeps a launch from being dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// It writes in place: done again, it does more.
    InPlace,
    /// A value that it reads was written since the earlier launch: only the views are equal.
    OtherInputs,
    /// Equal inputs need not give equal results.
    MayDiffer,
    /// A result outlives the piece.
    Leaves,
    /// A part of a result is written over, or its reader writes it in place.
    Changes,
    /// A result of the earlier launch is written over before the last reader.
    WrittenOver,
    /// Memory is freed after its last use, and poisoned.
    FreesMove,
    /// It lies too far behind the earlier launch.
    TooFar,
}

impl Rule {
    /// Returns the reason to report; `None` where nobody would have expected it to be dropped.
    fn reason(self) -> Option<PassRefusal> {
        match self {
            Self::InPlace | Self::OtherInputs | Self::FreesMove => None,
            Self::MayDiffer => Some(PassRefusal::MayDiffer),
            Self::Leaves => Some(PassRefusal::Leaves),
            Self::Changes | Self::WrittenOver => Some(PassRefusal::Overwritten),
            Self::TooFar => Some(PassRefusal::TooFar),
        }
    }
}

impl Pass for CommonSubexpressions {
    fn name(&self) -> &'static str {
        "common_subexpressions"
    }

    fn run(&self, program: &mut Program, report: &mut PassReport) {
        program.rewrite_pieces(|commands, first| self.share(commands, first, report));
    }
}

impl CommonSubexpressions {
    /// Rewrites a piece of a program, whose first command has the index `first`.
    fn share(&self, commands: Vec<Command>, first: usize, report: &mut PassReport) -> Vec<Command> {
        let values = Values::of(&commands, first);
        let is_dropped = vec![false; commands.len()];
        let mut piece = Piece { commands, is_dropped, first, values };
        let mut moved = Moved::default();
        // The last launch of each expression, and how many launches stand for it alone.
        let mut known: FxHashMap<Vec<u8>, usize> = FxHashMap::default();
        let mut uses: BTreeMap<usize, usize> = BTreeMap::new();
        for at in first..first + piece.commands.len() {
            let Some(launch) = piece.launch(at) else { continue };
            if launch.op.operation().writes_in_place() && self.refuse(Rule::InPlace).is_err() {
                continue;
            }
            let Some(earlier) = known.insert(expression_of(launch), at) else { continue };
            match self.check(&piece, earlier, at) {
                Ok(until) => {
                    known.insert(expression_of(launch), earlier);
                    *uses.entry(earlier).or_insert(1) += 1;
                    if self.refuse(Rule::FreesMove).is_err() {
                        for view in piece.launch(earlier).iter().flat_map(|launch| &launch.outputs) {
                            moved.is_read(&piece.commands, first, view.range(), earlier + 1..until);
                        }
                    }
                    piece.replace(at, earlier);
                }
                Err(rule) => {
                    if let Some(reason) = rule.reason() {
                        report.add_refused(launch.op.name(), launch.op.name(), reason);
                    }
                }
            }
        }
        for (at, launches) in uses {
            if let Some(launch) = piece.launch(at) {
                report.add_made(launch.op.name(), launches);
            }
        }
        moved.in_new_places(piece.left())
    }

    /// Checks that the results of a launch are those of an earlier one with the same expression, and stay so until their last
    /// use. Returns the index of the last reader.
    ///
    /// # Errors
    /// Returns the rule that this would break.
    fn check(&self, piece: &Piece, earlier: usize, at: usize) -> Result<usize, Rule> {
        let (Some(one), Some(launch)) = (piece.launch(earlier), piece.launch(at)) else { return Ok(at) };
        if type_of(one) != type_of(launch) {
            return Err(Rule::OtherInputs);
        }
        // It may have written over its own inputs.
        let mut inputs = launch.inputs.iter();
        if inputs.any(|view| piece.is_written(view.range(), earlier..(earlier + WINDOW).min(at))) {
            self.refuse(Rule::OtherInputs)?;
        }
        if at - earlier >= WINDOW {
            self.refuse(Rule::TooFar)?;
        }
        if !launch.op.operation().is_deterministic() {
            self.refuse(Rule::MayDiffer)?;
        }
        let mut until = at;
        for output in 0..launch.outputs.len() {
            let Some(value) = piece.values.made(at, output).map(|id| piece.values.get(id)) else { continue };
            if value.end.is_none() && !value.is_broken {
                self.refuse(Rule::Leaves)?;
            }
            if value.is_broken || piece.changes(value) {
                self.refuse(Rule::Changes)?;
            }
            until = value.readers.last().copied().unwrap_or(at).max(until);
        }
        if until - earlier >= WINDOW {
            self.refuse(Rule::TooFar)?;
        }
        for view in &one.outputs {
            if piece.is_written_but_by(view.range(), earlier + 1..until + 1, at) {
                self.refuse(Rule::WrittenOver)?;
            }
        }
        Ok(until)
    }

    /// Returns a rule as it is; tests ignore one.
    ///
    /// # Errors
    /// Returns the rule.
    fn refuse(&self, rule: Rule) -> Result<(), Rule> {
        #[cfg(test)]
        if self.ignored == Some(rule) {
            return Ok(());
        }
        Err(rule)
    }
}

/// A straight piece of a program, without the launches that were dropped.
struct Piece {
    commands: Vec<Command>,
    is_dropped: Vec<bool>,
    /// The index of the first command.
    first: usize,
    /// Of the piece as it was.
    values: Values,
}

impl Piece {
    /// The launch with an index, if it was not dropped.
    fn launch(&self, at: usize) -> Option<&Launch> {
        match self.command(at)? {
            Command::Launch { launch, .. } => Some(launch),
            _ => None,
        }
    }

    fn command(&self, at: usize) -> Option<&Command> {
        let at = at.checked_sub(self.first)?;
        self.commands.get(at).filter(|_| !self.is_dropped[at])
    }

    /// Returns whether one of these launches writes a byte of `range`.
    fn is_written(&self, range: Range, by: ops::Range<usize>) -> bool {
        by.filter_map(|at| self.command(at)).any(|command| match command {
            Command::Launch { launch, workspace } => {
                let workspace = (launch.workspace, launch.workspace + workspace);
                overlap(workspace, range) || launch.outputs.iter().any(|view| overlap(view.range(), range))
            }
            _ => false,
        })
    }

    fn is_written_but_by(&self, range: Range, by: ops::Range<usize>, except: usize) -> bool {
        self.is_written(range, by.start..except) || self.is_written(range, except + 1..by.end)
    }

    /// Returns whether a launch that uses a value also sees other bytes through the same view, or writes it in place.
    fn changes(&self, value: &Value) -> bool {
        value.readers.iter().filter_map(|at| Some((*at, self.launch(*at)?))).any(|(at, launch)| {
            let writes = launch.op.operation().writes_in_place()
                && launch.outputs.iter().any(|view| view.overlaps(&value.view));
            writes || (0..launch.inputs.len()).any(|input| self.reads_more(at, input, value))
        })
    }

    fn reads_more(&self, at: usize, input: usize, value: &Value) -> bool {
        let read = self.values.read(at, input);
        let is_of_it = read.iter().any(|id| std::ptr::eq(self.values.get(*id), value));
        let (start, end) = value.view.range();
        let is_inside = |view: &View| start <= view.range().0 && view.range().1 <= end;
        is_of_it
            && (read.len() > 1 || !self.launch(at).is_some_and(|launch| is_inside(&launch.inputs[input])))
    }

    /// Drops a launch: what reads its results reads those of an earlier one.
    fn replace(&mut self, at: usize, by: usize) {
        let (Some(launch), Some(earlier)) = (self.launch(at), self.launch(by)) else { return };
        let outputs = earlier.outputs.iter().zip(&launch.outputs).map(|(to, from)| (to.addr, from.addr));
        let places: SmallVec<[(u64, u64); 1]> = outputs.collect();
        for (output, (to, from)) in places.into_iter().enumerate() {
            let Some(id) = self.values.made(at, output) else { continue };
            for &reader in &self.values.get(id).readers {
                let Some(Command::Launch { launch, .. }) = self.commands.get_mut(reader - self.first) else {
                    continue;
                };
                for (input, view) in launch.inputs.iter_mut().enumerate() {
                    if self.values.read(reader, input).contains(&id) {
                        view.addr = to + (view.addr - from);
                    }
                }
            }
        }
        self.is_dropped[at - self.first] = true;
    }

    /// The commands with their indices; `None` in the places of those that were dropped.
    fn left(self) -> impl Iterator<Item = (usize, Option<Command>)> {
        let commands = self.commands.into_iter().zip(self.is_dropped);
        (self.first..).zip(commands.map(|(command, is_dropped)| (!is_dropped).then_some(command)))
    }
}

/// Returns the type of its operation. Of its 128 bits, a hash gets 64.
fn type_of(launch: &Launch) -> TypeId {
    let operation: &dyn Any = launch.op.operation();
    operation.type_id()
}

/// Returns what a launch computes, without its code: launches of one type of operation that have the same bytes here compute
/// the same from the same memory.
fn expression_of(launch: &Launch) -> Vec<u8> {
    let mut bytes = Bytes::default();
    type_of(launch).hash(&mut bytes);
    launch.op.operation().parameters(&mut bytes);
    let parameters = bytes.0.len();
    bytes.write_usize(parameters);
    bytes.write_usize(launch.inputs.len());
    for View { addr, dtype, layout } in &launch.inputs {
        (addr, dtype, layout).hash(&mut bytes);
    }
    for View { dtype, layout, .. } in &launch.outputs {
        (dtype, layout).hash(&mut bytes);
    }
    bytes.0
}

/// All that is written to it, instead of a number made of that: equal bytes are equal parameters.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Hasher for Bytes {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Nobody asks for it.
    fn finish(&self) -> u64 {
        0
    }
}

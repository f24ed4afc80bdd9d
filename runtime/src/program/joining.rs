//! Launches that become one: how they are found, and when one launch may take their place.
//!
//! The joined launch takes the place of the last of its members, because what lies between may compute other inputs of that
//! one. So the earlier members move down. They then read and write later than before, and their memory may have been freed and
//! used again meanwhile: `Piece::check_moves` says when that would change a value. Which launches can be one at all, and
//! whether a result may be written where an input is, is up to a [`Join`].

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{
    Command,
    moved::Moved,
    values::{Value, Values},
    writes::{WINDOW, Writes},
};
use crate::{
    backend::Launch,
    observe::inspect::{PassRefusal, PassReport},
};

/// The launches that can be joined, and the way to join them.
pub(super) trait Join {
    /// Returns whether a launch can be a member of a group.
    fn is_part(&self, launch: &Launch) -> bool;

    /// Returns whether launches that read the same first input are looked at, besides those that read what others wrote.
    fn joins_siblings(&self, launch: &Launch) -> bool;

    /// Checks that one launch can do what the members do, one after the other.
    ///
    /// # Errors
    /// Returns why there is none. `None` if nobody would have expected one.
    fn check(&self, piece: &Piece<'_>, members: &[usize]) -> Result<(), Option<PassRefusal>>;

    /// Returns that launch. `None` if there is no code for it after all; the members stay as they are then.
    fn make(&self, piece: &Piece<'_>, members: &[usize]) -> Option<Launch>;

    /// Returns a reason to refuse as it is; tests ignore one.
    ///
    /// # Errors
    /// Returns the reason.
    fn refuse(&self, reason: PassRefusal) -> Result<(), PassRefusal> {
        Err(reason)
    }

    /// Returns whether memory that is read later than before is freed later, too; tests leave it where it was.
    fn moves_frees(&self) -> bool {
        true
    }
}

/// A straight piece of a program, up to the launch that is looked at.
pub(super) struct Piece<'p> {
    commands: &'p [Command],
    /// The index of the first command.
    first: usize,
    values: &'p Values,
    /// The writes so far.
    writes: Writes,
}

/// The groups of launches of a piece that were found so far.
struct Groups<'p> {
    how: &'p dyn Join,
    piece: Piece<'p>,
    /// The members of each, in order.
    members: Vec<Vec<usize>>,
    /// The group of each launch that has one.
    of: FxHashMap<usize, usize>,
    /// The last launch whose first input begins at an address.
    reading: FxHashMap<u64, usize>,
    /// Two launches whose groups could not become one, and why.
    refused: Vec<(usize, usize, PassRefusal)>,
}

impl<'p> Groups<'p> {
    fn new(how: &'p dyn Join, piece: Piece<'p>) -> Self {
        Self {
            how,
            piece,
            members: Vec::new(),
            of: FxHashMap::default(),
            reading: FxHashMap::default(),
            refused: Vec::new(),
        }
    }

    /// Adds a launch, in one group with as many earlier ones as can be.
    fn add(&mut self, at: usize, launch: &Launch) {
        let sibling = launch.inputs.first().filter(|_| self.how.joins_siblings(launch)).map(|view| view.addr);
        let candidates = self.candidates(at, launch, sibling);
        let mut group = vec![at];
        // What is refused alone may be possible with others.
        for candidate in candidates.iter().chain(&candidates).copied() {
            let earlier = &mut self.members[candidate];
            if earlier.is_empty() {
                continue;
            }
            match self.piece.joined(self.how, earlier, &group) {
                Ok(joined) => {
                    earlier.clear();
                    group = joined;
                }
                Err(Some(why)) => self.refused.extend(earlier.last().map(|after| (*after, at, why))),
                Err(None) => {}
            }
        }
        let number = self.members.len();
        self.of.extend(group.iter().map(|member| (*member, number)));
        if let Some(addr) = sibling {
            self.reading.insert(addr, at);
        }
        self.members.push(group);
    }

    /// Returns the groups that a launch may join, those of launches that read the same, at `sibling`, first: what made their
    /// input may join them when nobody else reads it.
    fn candidates(&self, at: usize, launch: &Launch, sibling: Option<u64>) -> SmallVec<[usize; 4]> {
        let reads_same = sibling.and_then(|addr| self.reading.get(&addr)).copied();
        let values = self.piece.values;
        let writers = (0..launch.inputs.len())
            .flat_map(|input| values.read(at, input).iter().map(|id| values.get(*id).writer));
        let mut candidates = SmallVec::new();
        for group in reads_same.into_iter().chain(writers).filter_map(|other| self.of.get(&other)) {
            if !candidates.contains(group) {
                candidates.push(*group);
            }
        }
        candidates
    }

    /// Reports each pair that was refused once, unless it came together later.
    fn report_refused(&mut self, report: &mut PassReport) {
        let mut refused = std::mem::take(&mut self.refused);
        refused.sort_unstable_by_key(|(after, at, _)| (*at, *after));
        refused.dedup_by_key(|(after, at, _)| (*at, *after));
        for (after, at, why) in refused {
            if self.of.get(&after) != self.of.get(&at)
                && let (Some(after), Some(launch)) = (self.piece.launch(after), self.piece.launch(at))
            {
                report.add_refused(after.op.name(), launch.op.name(), why);
            }
        }
    }

    /// The launches that groups become.
    fn joined(self) -> Vec<Joined> {
        let groups = self.members.into_iter().filter(|group| group.len() > 1);
        let made = groups.filter_map(|members| {
            Some(Joined { launch: self.how.make(&self.piece, &members)?, workspace: 0, members })
        });
        made.collect()
    }
}

/// Rewrites a piece of a program, whose first command has the index `first`.
pub(super) fn join(
    how: &dyn Join,
    commands: Vec<Command>,
    first: usize,
    report: &mut PassReport,
) -> Vec<Command> {
    let values = Values::of(&commands, first);
    let mut groups = Groups::new(how, Piece::new(&commands, first, &values));
    for (at, command) in (first..).zip(&commands) {
        let Command::Launch { launch, workspace } = command else { continue };
        if *workspace == 0 && how.is_part(launch) {
            groups.add(at, launch);
        }
        groups.piece.note_writes(at);
    }
    groups.report_refused(report);
    let made = groups.joined();
    emit(commands, first, made, how.moves_frees(), report)
}

/// A launch that does what several do, one after the other.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) launch: Launch,
    /// The bytes of its workspace.
    pub(super) workspace: u64,
    /// The launches, in order.
    pub(super) members: Vec<usize>,
}

/// Puts the launch of each group at its place, instead of its members. Memory that is read later than before is freed later,
/// too, unless a test wants to see what happens then.
pub(super) fn emit(
    commands: Vec<Command>,
    first: usize,
    groups: Vec<Joined>,
    moves_frees: bool,
    report: &mut PassReport,
) -> Vec<Command> {
    if groups.is_empty() {
        return commands;
    }
    let mut made: FxHashMap<usize, Option<Command>> = FxHashMap::default();
    let mut moved = Moved::default();
    for Joined { launch, workspace, members } in groups {
        let Some((&place, earlier)) = members.split_last() else { continue };
        report.add_made(launch.op.name(), members.len());
        if moves_frees {
            moved.reads_move(&commands, first, &members);
        }
        made.extend(earlier.iter().map(|member| (*member, None)));
        made.insert(place, Some(Command::Launch { launch: Box::new(launch), workspace }));
    }
    moved.in_new_places((first..).zip(commands).map(|(at, command)| match made.remove(&at) {
        None => (at, Some(command)),
        Some(launch) => (at, launch),
    }))
}

impl<'p> Piece<'p> {
    /// A piece whose first command has the index `first`, with no writes so far.
    pub(super) fn new(commands: &'p [Command], first: usize, values: &'p Values) -> Self {
        Self { commands, first, values, writes: Writes::default() }
    }
}

impl Piece<'_> {
    /// A launch has written.
    fn note_writes(&mut self, at: usize) {
        let Some(Command::Launch { launch, workspace }) = self.commands.get(at - self.first) else { return };
        launch.outputs.iter().for_each(|view| self.writes.note(view.range(), at));
        self.writes.note((launch.workspace, launch.workspace + workspace), at);
    }

    /// Returns why the members cannot all be where the last one is.
    pub(super) fn check_all_move(&mut self, members: &[usize]) -> Result<(), PassRefusal> {
        let (Some(&begin), Some(&end)) = (members.first(), members.last()) else { return Ok(()) };
        if end - begin >= WINDOW {
            return Err(PassRefusal::TooFar);
        }
        (begin..=end).for_each(|at| self.note_writes(at));
        let (_, earlier) = members.split_last().unwrap_or((&end, &[]));
        earlier.iter().try_for_each(|at| self.check_moves(&Err, std::slice::from_ref(at), members))
    }

    /// Returns why an output of a member, which nobody else needs, cannot be written at the place of the last one: its memory may
    /// be that of another tensor by then.
    pub(super) fn check_written(
        &self,
        at: usize,
        output: usize,
        members: &[usize],
    ) -> Result<(), PassRefusal> {
        let Some(value) = self.values.made(at, output).map(|id| self.values.get(id)) else { return Ok(()) };
        let is_gone = value.is_broken || value.end.is_some_and(|gone| Some(&gone) < members.last());
        if is_gone && Some(&at) != members.last() { Err(PassRefusal::WrittenBetween) } else { Ok(()) }
    }

    /// The launch with an index.
    pub(super) fn launch(&self, at: usize) -> Option<&Launch> {
        match self.commands.get(at.checked_sub(self.first)?)? {
            Command::Launch { launch, .. } => Some(launch),
            _ => None,
        }
    }

    /// The launches with these indices.
    pub(super) fn launches<'m>(&'m self, members: &'m [usize]) -> impl Iterator<Item = (usize, &'m Launch)> {
        members.iter().filter_map(|at| Some((*at, self.launch(*at)?)))
    }

    pub(super) fn values(&self) -> &Values {
        self.values
    }

    /// Returns whether nothing but the members needs an output of one of them to be in memory.
    pub(super) fn is_internal(&self, at: usize, output: usize, members: &[usize]) -> bool {
        self.values.made(at, output).is_some_and(|id| is_internal(self.values.get(id), members))
    }

    /// The member, and the number of its output, from which an input of a member comes.
    pub(super) fn producer(&self, at: usize, input: usize, members: &[usize]) -> Option<(usize, u8)> {
        let [id] = self.values.read(at, input) else { return None };
        let writer = self.values.get(*id).writer;
        let outputs = self.launch(writer)?.outputs.len() as u8;
        let part = (0..outputs).find(|part| self.values.made(writer, usize::from(*part)) == Some(*id))?;
        is_in(members, writer).then_some((writer, part))
    }

    /// Returns the group of both; the members of `last` end with the launch that is looked at.
    fn joined(
        &self,
        how: &dyn Join,
        earlier: &[usize],
        last: &[usize],
    ) -> Result<Vec<usize>, Option<PassRefusal>> {
        let mut members: Vec<usize> = earlier.iter().chain(last).copied().collect();
        members.sort_unstable();
        // First, because it knows what nobody would expect.
        how.check(self, &members)?;
        self.check_moves(&|reason| how.refuse(reason), earlier, &members)?;
        Ok(members)
    }

    /// Returns why the earlier members cannot move down to the last one.
    fn check_moves(
        &self,
        refuse: &dyn Fn(PassRefusal) -> Result<(), PassRefusal>,
        earlier: &[usize],
        members: &[usize],
    ) -> Result<(), PassRefusal> {
        let (Some(&begin), Some(&end), Some(&known)) = (members.first(), members.last(), earlier.last())
        else {
            return Ok(());
        };
        if end - begin >= WINDOW {
            return Err(PassRefusal::TooFar);
        }
        for (at, launch) in self.launches(earlier) {
            for (input, view) in launch.inputs.iter().enumerate() {
                // The group is at the place of its last member already. What members write, they write at the end, or not
                // at all: a `Join` looks at that.
                let is_inside = self.producer(at, input, members).is_some();
                if !is_inside && self.writes.has(view.range(), known, |by| is_in(members, by)) {
                    refuse(PassRefusal::WrittenBetween)?;
                }
            }
            for output in 0..launch.outputs.len() {
                let Some(id) = self.values.made(at, output) else { continue };
                let value = self.values.get(id);
                if is_internal(value, members) {
                    continue;
                }
                if value.is_broken || value.end.is_some_and(|gone| gone < end) {
                    refuse(PassRefusal::WrittenBetween)?;
                }
                if value.readers.iter().any(|reader| *reader < end && !is_in(members, *reader)) {
                    refuse(PassRefusal::ReadBetween)?;
                }
            }
        }
        Ok(())
    }
}

fn is_internal(value: &Value, members: &[usize]) -> bool {
    value.end.is_some() && !value.is_broken && value.readers.iter().all(|reader| is_in(members, *reader))
}

/// Returns whether a launch is one of the members, which are in order.
pub(super) fn is_in(members: &[usize], at: usize) -> bool {
    members.binary_search(&at).is_ok()
}

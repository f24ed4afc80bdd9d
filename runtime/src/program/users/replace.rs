//! Replacing launches: what is checked when a pass asks for it, and how it is done.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    Dependents, LaunchId, NewLaunch, Program, TensorRef,
    view::{Role, SeenPiece},
};
use crate::{
    Error,
    backend::{Launch, Op, View},
    base::bound::Bound,
    observe::inspect::{PassRefusal, PassReport},
    program::{
        Command, Program as Whole,
        joining::{self, Joined, Piece},
    },
};

/// A launch in the place of others, which has passed all checks.
#[derive(Debug)]
pub(super) struct Replacement {
    /// The index of the first command of the piece.
    piece: usize,
    joined: Joined,
}

/// The launches that a pass replaces.
#[derive(Debug, Default)]
pub(super) struct Replaced {
    /// By the first command of their piece.
    groups: FxHashMap<usize, Vec<Joined>>,
    /// The launches that are gone.
    gone: FxHashSet<usize>,
}

impl Replaced {
    pub(super) fn is_empty(&self) -> bool {
        self.gone.is_empty()
    }

    pub(super) fn add(&mut self, Replacement { piece, joined }: Replacement) {
        self.gone.extend(&joined.members);
        self.groups.entry(piece).or_default().push(joined);
    }

    /// Returns what depends on launches that are replaced.
    pub(super) fn dependents(&self, commands: &[Command], bound: Bound) -> Dependents {
        Dependents::of(commands, |at| self.gone.contains(&at), bound)
    }

    /// Replaces them.
    pub(super) fn make(mut self, program: &mut Whole, report: &mut PassReport) {
        program.rewrite_pieces(|commands, first| match self.groups.remove(&first) {
            Some(groups) if !commands.is_empty() => joining::emit(commands, first, groups, true, report),
            _ => commands,
        });
    }
}

impl Program<'_> {
    /// Checks that `by` can do what these launches do.
    pub(super) fn checked(&self, launches: &[LaunchId], by: &NewLaunch) -> Result<Replacement, PassRefusal> {
        let op = by.op()?;
        let mut members: Vec<usize> = launches.iter().map(|id| id.at).collect();
        members.sort_unstable();
        members.dedup();
        let piece = self.piece_of_all(launches)?;
        if members.iter().any(|at| self.replaced.borrow().gone.contains(at)) {
            return Err(PassRefusal::ReplacedBefore);
        }
        let seen = &self.seen.pieces[piece];
        let commands = &self.seen.commands[seen.first..seen.end];
        let mut straight = Piece::new(commands, seen.first, &seen.values);
        if straight.launches(&members).any(|(_, launch)| launch.op.operation().writes_in_place()) {
            return Err(PassRefusal::WritesInPlace);
        }
        self.check_code(op)?;
        check_operands(&straight, launches, &members, by)?;
        let views = |refs: &[TensorRef]| refs.iter().map(|tensor| tensor.view).collect::<Vec<View>>();
        let (inputs, outputs) = (views(by.inputs()), views(by.outputs()));
        check_places(op, &inputs, &outputs)?;
        straight.check_all_move(&members)?;
        let (place, bytes) = self.workspace(seen, &members, op, &inputs, &outputs)?;
        // Operands of earlier members may have been freed before the workspace was placed.
        let is_in_use = |view: &View| view.range().0 < place + bytes && place < view.range().1;
        if bytes > 0 && inputs.iter().chain(&outputs).any(is_in_use) {
            return Err(PassRefusal::Workspace);
        }
        let launch =
            Launch { op: op.clone(), inputs: inputs.into(), outputs: outputs.into(), workspace: place };
        Ok(Replacement { piece: seen.first, joined: Joined { launch, workspace: bytes, members } })
    }

    /// The straight piece of which all of them are a part.
    fn piece_of_all(&self, launches: &[LaunchId]) -> Result<usize, PassRefusal> {
        let mut pieces = launches.iter().map(|id| self.seen.piece_of(*id).ok_or(PassRefusal::OtherProgram));
        let first = pieces.next().unwrap_or(Err(PassRefusal::OtherProgram))?;
        pieces.try_for_each(|piece| if piece? == first { Ok(()) } else { Err(PassRefusal::Apart) })?;
        Ok(first)
    }

    /// Refuses an operation that the recording may not have.
    fn check_code(&self, op: &Op) -> Result<(), PassRefusal> {
        if !op.operation().may_be_captured() {
            return Err(PassRefusal::NotCapturable);
        }
        if self.deterministic && !op.operation().is_deterministic() {
            return Err(PassRefusal::NotDeterministic);
        }
        match self.backend.borrow_mut().supports(op) {
            Ok(true) => Ok(()),
            Ok(false) => Err(PassRefusal::NoCode),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The workspace of the new launch: that of the one whose place it takes, if it is large enough.
    fn workspace(
        &self,
        seen: &SeenPiece,
        members: &[usize],
        op: &Op,
        inputs: &[View],
        outputs: &[View],
    ) -> Result<(u64, u64), PassRefusal> {
        let needed = self.backend.borrow_mut().workspace(op, inputs, outputs, false);
        match needed.map_err(|error| self.failed(error))? {
            0 => Ok((0, 0)),
            needed => members
                .last()
                .and_then(|last| match &self.seen.commands[seen.first..][last - seen.first] {
                    Command::Launch { launch, workspace } if *workspace >= needed => {
                        Some((launch.workspace, *workspace))
                    }
                    _ => None,
                })
                .ok_or(PassRefusal::Workspace),
        }
    }

    /// An error of the device; returns what the pass is told.
    fn failed(&self, error: Error) -> PassRefusal {
        self.error.borrow_mut().get_or_insert(error);
        PassRefusal::NoCode
    }
}

/// Checks that the new launch reads what the members read, and writes what others need.
fn check_operands(
    straight: &Piece<'_>,
    launches: &[LaunchId],
    members: &[usize],
    by: &NewLaunch,
) -> Result<(), PassRefusal> {
    let is_member = |tensor: &TensorRef| launches.contains(&tensor.launch);
    for input in by.inputs() {
        let Role::Input(index) = input.role else { return Err(PassRefusal::MadeInside) };
        if !is_member(input) {
            return Err(PassRefusal::OtherOperand);
        }
        let values = straight.values();
        let mut read = values.read(input.launch.at, index).iter().map(|id| values.get(*id).writer);
        if read.any(|writer| joining::is_in(members, writer)) {
            return Err(PassRefusal::MadeInside);
        }
    }
    let mut written: FxHashSet<(usize, usize)> = FxHashSet::default();
    for output in by.outputs() {
        let Role::Output(index) = output.role else { return Err(PassRefusal::OtherOperand) };
        if !is_member(output) || !written.insert((output.launch.at, index)) {
            return Err(PassRefusal::OtherOperand);
        }
        if !output.is_contiguous() {
            return Err(PassRefusal::Strided);
        }
        straight.check_written(output.launch.at, index, members)?;
    }
    let mut needed = straight.launches(members).flat_map(|(at, launch)| {
        (0..launch.outputs.len())
            .filter(move |output| !straight.is_internal(at, *output, members))
            .map(move |output| (at, output))
    });
    match needed.all(|output| written.contains(&output)) {
        true => Ok(()),
        false => Err(PassRefusal::MissingResult),
    }
}

/// Checks that nothing is written where the launch reads, or writes something else.
fn check_places(op: &Op, inputs: &[View], outputs: &[View]) -> Result<(), PassRefusal> {
    let is_free = outputs.iter().enumerate().all(|(index, output)| {
        outputs[..index].iter().all(|other| !other.overlaps(output))
            && inputs
                .iter()
                .all(|input| !input.overlaps(output) || op.operation().may_write_over(input, output))
    });
    if is_free { Ok(()) } else { Err(PassRefusal::PlaceInUse) }
}

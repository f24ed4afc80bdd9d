//! The view that a user's pass has of a program.

use std::{cell::RefCell, fmt, slice};

use smallvec::SmallVec;

use super::{NewLaunch, Target, replace::Replaced};
use crate::{
    DType, Error, Result,
    backend::{self, Backend, Constant, View},
    observe::inspect::{PassRefusal, PassReport},
    program::{
        Command,
        values::{Value, ValueId, Values},
    },
    value::{layout::Layout, owned::next_id},
};

/// The launches of a recording, in their order, as a [`Pass`](super::Pass) sees them.
///
/// Memory is used again: what a launch reads is not known by where it lies, but by what was written there. The methods here
/// follow that within a *straight piece* of the program, that is, between the ends of
/// branches ([`join`](crate::join)) and bodies of control flow on the device; only launches of one piece can be
/// [replaced](Self::replace) together. Sizes of padded dimensions are those of the bucket; where the real size matters, a launch
/// reads it, from an input of one `u32`.
pub struct Program<'p> {
    pub(super) seen: Seen<'p>,
    pub(super) backend: RefCell<&'p mut (dyn Backend + 'p)>,
    /// Set if only deterministic operations are allowed.
    pub(super) deterministic: bool,
    pub(super) replaced: RefCell<Replaced>,
    pub(super) report: RefCell<&'p mut PassReport>,
    /// The first error of the device.
    pub(super) error: RefCell<Option<Error>>,
}

/// The commands, and what is known about them.
pub(super) struct Seen<'p> {
    pub(super) commands: &'p [Command],
    /// Tells the ids of this program from those of others.
    number: u64,
    pub(super) pieces: Vec<SeenPiece>,
    /// In the order of the commands.
    found: Vec<Found>,
}

/// A straight piece.
pub(super) struct SeenPiece {
    /// The index of the first command, and of the one behind the last.
    pub(super) first: usize,
    pub(super) end: usize,
    pub(super) values: Values,
}

/// A launch.
#[derive(Clone)]
struct Found {
    at: usize,
    piece: usize,
    nesting: SmallVec<[Nesting; 2]>,
}

/// A launch of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaunchId {
    program: u64,
    pub(super) at: usize,
}

/// The joined launch of which a launch is a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Nesting {
    /// A branch of [`join`](crate::join), counted from 0.
    Branch(usize),
    /// A body of control flow on the device, counted from 0.
    Body(usize),
}

/// A tensor that a launch reads or writes.
#[derive(Clone, Copy, Debug)]
pub struct TensorRef {
    pub(super) launch: LaunchId,
    pub(super) role: Role,
    pub(super) view: View,
}

/// The number of an input or an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Input(usize),
    Output(usize),
}

impl TensorRef {
    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.view.dtype
    }

    /// Returns the sizes.
    pub fn shape(&self) -> &[usize] {
        self.view.layout.shape()
    }

    /// Returns the strides, in elements.
    pub fn strides(&self) -> &[usize] {
        self.view.layout.strides()
    }

    /// Returns whether its elements lie end to end, row-major.
    pub fn is_contiguous(&self) -> bool {
        self.view.layout.is_contiguous()
    }

    pub(crate) fn view(&self) -> View {
        self.view
    }

    /// Shows the same elements in another shape.
    pub(crate) fn set_layout(&mut self, layout: Layout) {
        self.view.layout = layout;
    }
}

/// A launch of a program.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    seen: &'a Seen<'a>,
    found: &'a Found,
    pub(in crate::program) launch: &'a backend::Launch,
}

impl<'p> Program<'p> {
    pub(super) fn new(
        commands: &'p [Command],
        target: &'p mut Target<'_>,
        report: &'p mut PassReport,
    ) -> Self {
        Self {
            seen: Seen::of(commands),
            backend: RefCell::new(&mut *target.backend),
            deterministic: target.deterministic,
            replaced: RefCell::default(),
            report: RefCell::new(report),
            error: RefCell::default(),
        }
    }

    /// Returns the launches, in their order; those of bodies once each.
    pub fn launches(&self) -> impl ExactSizeIterator<Item = Launch<'_>> {
        self.seen.found.iter().map(|found| self.seen.as_launch(found))
    }

    /// Returns a launch; `None` if it is one of another program.
    pub fn launch(&self, id: LaunchId) -> Option<Launch<'_>> {
        self.seen.find(id).map(|found| self.seen.as_launch(found))
    }

    /// Returns the launch that computed a tensor: all of it, and within the straight piece. An output is written by its own
    /// launch.
    pub fn writer(&self, tensor: &TensorRef) -> Option<LaunchId> {
        let at = match tensor.role {
            Role::Output(_) => self.seen.find(tensor.launch)?.at,
            Role::Input(_) => self.seen.value_of(tensor)?.writer,
        };
        Some(self.seen.id(at))
    }

    /// Returns whether both are the same elements in the same order: of the same memory, which was not written in between. `true`
    /// only within a straight piece.
    pub fn is_same(&self, one: &TensorRef, other: &TensorRef) -> bool {
        let (Some(a), Some(b)) = (self.seen.find(one.launch), self.seen.find(other.launch)) else {
            return false;
        };
        one.view == other.view
            && a.piece == b.piece
            && self.seen.held_by(a, one) == self.seen.held_by(b, other)
    }

    /// Returns the launches of the straight piece that read any part of what a launch wrote to an output, or of what an input
    /// is, in their order.
    pub fn readers(&self, tensor: &TensorRef) -> Vec<LaunchId> {
        let value = self.seen.value_of(tensor);
        value.into_iter().flat_map(|value| &value.readers).map(|at| self.seen.id(*at)).collect()
    }

    /// Returns whether what a launch wrote to an output is still there at the end of the straight piece: later pieces may read
    /// it, or it [leaves](Self::leaves) the recording. Such a tensor cannot go missing.
    pub fn lasts(&self, tensor: &TensorRef) -> bool {
        self.seen.value_of(tensor).is_some_and(|value| value.end.is_none() || value.is_broken)
    }

    /// Returns whether what a launch wrote to an output is still there when the recording ends: it is a result, or state. May
    /// also return `true` for some tensors that only other pieces use.
    pub fn leaves(&self, tensor: &TensorRef) -> bool {
        let (Some(found), true) = (self.seen.find(tensor.launch), self.lasts(tensor)) else { return false };
        let (start, end) = tensor.view.range();
        let later = &self.seen.commands[self.seen.pieces[found.piece].end..];
        !later.iter().any(|command| match command {
            Command::Free { addr, bytes } => *addr <= start && end <= addr + bytes,
            _ => false,
        })
    }

    /// Replaces launches of one straight piece by a launch of an operation of yours: a
    /// [`CustomOp::replacement`](crate::custom::CustomOp::replacement), or a [`kernel`](crate::passes::kernel).
    ///
    /// The new launch reads inputs of those launches, and writes outputs of them: all that something else reads, or that
    /// [lasts](Self::lasts). What only the replaced launches use need not be computed. It takes the place of the
    /// last of them, so nothing in between may write what it reads, or read what it writes.
    ///
    /// The program that the pass sees stays as it is until the pass returns.
    ///
    /// # Errors
    /// Returns why it is refused, which the report of the recording says as well; nothing is replaced then.
    pub fn replace(&self, launches: &[LaunchId], by: impl Into<NewLaunch>) -> Result<(), PassRefusal> {
        let by = by.into();
        let outcome = self.checked(launches, &by);
        match outcome {
            Ok(replacement) => self.replaced.borrow_mut().add(replacement),
            Err(reason) => {
                let names = launches.iter().filter_map(|id| Some(self.launch(*id)?.operation()));
                let names: SmallVec<[&'static str; 4]> = names.collect();
                let name = by.name();
                self.report.borrow_mut().add_not_replaced(&names, name, reason);
                return Err(reason);
            }
        }
        Ok(())
    }

    /// Adds a line to the report of the recording, [`PassReport::notes`].
    pub fn note(&self, text: impl fmt::Display) {
        let text = text.to_string();
        self.report.borrow_mut().notes.push(text);
    }

    /// Returns what the pass replaces.
    ///
    /// # Errors
    /// Returns errors of the device, which the pass may have taken for refusals.
    pub(super) fn finish(self) -> Result<Replaced> {
        match self.error.into_inner() {
            Some(error) => Err(error),
            None => Ok(self.replaced.into_inner()),
        }
    }
}

impl<'p> Seen<'p> {
    fn of(commands: &'p [Command]) -> Self {
        let (mut pieces, mut found) = (Vec::new(), Vec::new());
        let mut nesting: SmallVec<[Nesting; 2]> = SmallVec::new();
        let mut first = 0;
        let mut piece = |first: usize, end: usize| {
            pieces.push(SeenPiece { first, end, values: Values::of(&commands[first..end], first) });
        };
        let mut number = 0;
        for (at, command) in commands.iter().enumerate() {
            match command {
                Command::Launch { .. } => found.push(Found { at, piece: number, nesting: nesting.clone() }),
                // Replaced by the first branch or body.
                Command::Fork => nesting.push(Nesting::Branch(0)),
                Command::Conditional(_) => nesting.push(Nesting::Body(0)),
                Command::Branch(index) => {
                    nesting.pop();
                    nesting.push(Nesting::Branch(*index));
                }
                Command::Body(index) => {
                    nesting.pop();
                    nesting.push(Nesting::Body(*index));
                }
                Command::Join | Command::EndConditional => drop(nesting.pop()),
                Command::Poison { .. } | Command::Free { .. } => {}
            }
            if command.is_barrier() {
                piece(first, at);
                first = at + 1;
                number += 1;
            }
        }
        piece(first, commands.len());
        Self { commands, number: next_id(), pieces, found }
    }

    fn id(&self, at: usize) -> LaunchId {
        LaunchId { program: self.number, at }
    }

    fn find(&self, id: LaunchId) -> Option<&Found> {
        let index = self.found.binary_search_by_key(&id.at, |found| found.at).ok()?;
        (id.program == self.number).then(|| &self.found[index])
    }

    /// The piece of a launch.
    pub(super) fn piece_of(&self, id: LaunchId) -> Option<usize> {
        self.find(id).map(|found| found.piece)
    }

    fn as_launch<'a>(&'a self, found: &'a Found) -> Launch<'a> {
        let Command::Launch { launch, .. } = &self.commands[found.at] else {
            unreachable!("only launches are found")
        };
        Launch { seen: self, found, launch }
    }

    /// The values of which a tensor shows bytes.
    fn held_by(&self, found: &Found, tensor: &TensorRef) -> SmallVec<[ValueId; 1]> {
        let values = &self.pieces[found.piece].values;
        match tensor.role {
            Role::Output(output) => values.made(found.at, output).into_iter().collect(),
            Role::Input(input) => values.read(found.at, input).into(),
        }
    }

    /// The one value that a tensor is.
    fn value_of(&self, tensor: &TensorRef) -> Option<&Value> {
        let found = self.find(tensor.launch)?;
        let values = &self.pieces[found.piece].values;
        match tensor.role {
            Role::Output(output) => values.made(found.at, output).map(|id| values.get(id)),
            Role::Input(input) => match values.read(found.at, input) {
                [id] if contains(values.get(*id), &tensor.view) => Some(values.get(*id)),
                _ => None,
            },
        }
    }
}

/// Returns whether nothing of a view lies beside a value.
fn contains(value: &Value, view: &View) -> bool {
    let ((start, end), (from, to)) = (value.view.range(), view.range());
    start <= from && to <= end
}

impl<'a> Launch<'a> {
    /// Returns its id.
    pub fn id(&self) -> LaunchId {
        self.seen.id(self.found.at)
    }

    /// Returns the name of the operation, as events and the tree show it. Names are not unique, and passes before this one have
    /// made others of several: `add+silu`.
    pub fn operation(&self) -> &'static str {
        self.launch.op.name()
    }

    /// Returns what it reads, in the order of the operation's arguments; after them, real sizes of padded dimensions.
    pub fn inputs(&self) -> Vec<TensorRef> {
        self.refs(self.launch.inputs.iter(), Role::Input)
    }

    /// Returns what it writes.
    pub fn outputs(&self) -> Vec<TensorRef> {
        self.refs(self.launch.outputs.iter(), Role::Output)
    }

    fn refs(&self, views: slice::Iter<'_, View>, role: fn(usize) -> Role) -> Vec<TensorRef> {
        let refs = views.enumerate();
        refs.map(|(index, view)| TensorRef { launch: self.id(), role: role(index), view: *view }).collect()
    }

    /// Returns the numbers that are constants of it, in the order of its arguments. Of `#[kernel]`s and element-wise operations,
    /// and of [`CustomOp`](crate::custom::CustomOp)s; other operations keep theirs to themselves.
    pub fn constants(&self) -> Vec<Constant> {
        self.launch.op.operation().constants()
    }

    /// Returns whether it writes state, or a part of an output that keeps the rest; it cannot be replaced then.
    pub fn writes_in_place(&self) -> bool {
        self.launch.op.operation().writes_in_place()
    }

    /// Returns the branches and bodies that it is a part of, outermost first.
    pub fn nesting(&self) -> &'a [Nesting] {
        &self.found.nesting
    }

    /// Returns the number of its straight piece.
    pub fn piece(&self) -> usize {
        self.found.piece
    }
}

/// The operations and their tensors: `[f32 [2, 4], f32 [4]] -> add -> [f32 [2, 4]]`.
impl fmt::Debug for Launch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, views: &[View]| {
            write!(f, "[")?;
            for (index, view) in views.iter().enumerate() {
                let comma = if index > 0 { ", " } else { "" };
                write!(f, "{comma}{} {:?}", view.dtype, view.layout.shape())?;
            }
            write!(f, "]")
        };
        list(f, &self.launch.inputs)?;
        write!(f, " -> {} -> ", self.operation())?;
        list(f, &self.launch.outputs)
    }
}

impl fmt::Debug for Program<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.launches()).finish()
    }
}

//! The values of a straight piece of a program: what an operation wrote to a range of bytes, until the bytes are written
//! again or freed.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Command;
use crate::{backend::View, value::view::Range};

/// An output of one launch.
#[derive(Debug)]
pub(super) struct Value {
    /// The index of the launch.
    pub(super) writer: usize,
    pub(super) view: View,
    /// The indices of the launches that read a byte of it, in order.
    pub(super) readers: SmallVec<[usize; 2]>,
    /// The index of the command that frees all of it, or writes over it. `None` if it outlives the piece.
    pub(super) end: Option<usize>,
    /// Set if a part of it was written over, or freed.
    pub(super) is_broken: bool,
}

/// The number of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ValueId(u32);

/// All values of a piece.
#[derive(Debug, Default)]
pub(super) struct Values {
    all: Vec<Value>,
    /// Of each output of each launch.
    made: FxHashMap<(usize, usize), ValueId>,
    /// Of each input of each launch: the values of which it reads bytes.
    read: FxHashMap<(usize, usize), SmallVec<[ValueId; 1]>>,
}

impl Values {
    /// The values of the commands from index `first` on.
    pub(super) fn of(commands: &[Command], first: usize) -> Self {
        let mut values = Self::default();
        let mut now = Contents::default();
        for (at, command) in (first..).zip(commands) {
            match command {
                Command::Launch { launch, .. } => {
                    for (input, view) in launch.inputs.iter().enumerate() {
                        let read = now.at(view.range());
                        read.iter().for_each(|id| values.get_mut(*id).read_by(at));
                        values.read.insert((at, input), read);
                    }
                    let in_place = launch.op.operation().writes_in_place();
                    for (output, view) in launch.outputs.iter().enumerate() {
                        for id in now.at(view.range()) {
                            let value = values.get_mut(id);
                            if in_place {
                                value.read_by(at);
                            }
                            value.lose(view.range(), at);
                        }
                        let id = ValueId(values.all.len() as u32);
                        values.all.push(Value::new(at, *view));
                        values.made.insert((at, output), id);
                        now.set(view.range(), Some(id));
                    }
                }
                Command::Free { addr, bytes } => {
                    let range = (*addr, addr + bytes);
                    now.at(range).into_iter().for_each(|id| values.get_mut(id).lose(range, at));
                    now.set(range, None);
                }
                _ => {}
            }
        }
        values
    }

    fn get_mut(&mut self, id: ValueId) -> &mut Value {
        &mut self.all[id.0 as usize]
    }

    pub(super) fn get(&self, id: ValueId) -> &Value {
        &self.all[id.0 as usize]
    }

    /// The value that a launch makes with one of its outputs.
    pub(super) fn made(&self, at: usize, output: usize) -> Option<ValueId> {
        self.made.get(&(at, output)).copied()
    }

    /// The values of which a launch reads bytes with one of its inputs.
    pub(super) fn read(&self, at: usize, input: usize) -> &[ValueId] {
        self.read.get(&(at, input)).map_or(&[], |read| read)
    }
}

impl Value {
    fn new(writer: usize, view: View) -> Self {
        Self { writer, view, readers: SmallVec::new(), end: None, is_broken: false }
    }

    fn read_by(&mut self, at: usize) {
        if self.readers.last() != Some(&at) {
            self.readers.push(at);
        }
    }

    /// The bytes of `range` hold something else, or nothing.
    fn lose(&mut self, range: Range, at: usize) {
        let (start, end) = self.view.range();
        if self.is_broken || start < range.0 || range.1 < end {
            self.is_broken = true;
        } else {
            self.end = Some(at);
        }
    }
}

/// The contents of each byte, such as the number of a value: pieces that do not overlap, by their start, with their end.
#[derive(Debug)]
pub(super) struct Contents<V>(BTreeMap<u64, (u64, V)>);

impl<V> Default for Contents<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<V: Copy> Contents<V> {
    /// The parts of `range` that hold something, and what.
    pub(super) fn pieces(&self, range: Range) -> impl Iterator<Item = (Range, V)> {
        overlapping(&self.0, range, |(end, _)| *end)
            .map(move |(start, (end, held))| (((*start).max(range.0), (*end).min(range.1)), *held))
    }

    /// The number of bytes that hold something.
    pub(super) fn bytes(&self) -> u64 {
        self.0.iter().map(|(start, (end, _))| end - start).sum()
    }

    /// The bytes of `range` hold that, or nothing.
    pub(super) fn set(&mut self, range: Range, held: Option<V>) {
        let old: SmallVec<[(u64, (u64, V)); 4]> =
            overlapping(&self.0, range, |(end, _)| *end).map(|(start, piece)| (*start, *piece)).collect();
        for (start, (end, held)) in old {
            self.0.remove(&start);
            if start < range.0 {
                self.0.insert(start, (range.0, held));
            }
            if range.1 < end {
                self.0.insert(range.1, (end, held));
            }
        }
        if let (Some(held), true) = (held, range.0 < range.1) {
            self.0.insert(range.0, (range.1, held));
        }
    }
}

impl Contents<ValueId> {
    /// The values of which `range` holds bytes.
    fn at(&self, range: Range) -> SmallVec<[ValueId; 1]> {
        let mut found: SmallVec<[ValueId; 1]> = SmallVec::new();
        for (_, id) in self.pieces(range) {
            if !found.contains(&id) {
                found.push(id);
            }
        }
        found
    }
}

/// The pieces that have a byte in `range`, of pieces that do not overlap.
pub(super) fn overlapping<P>(
    pieces: &BTreeMap<u64, P>,
    range: Range,
    end: impl Fn(&P) -> u64 + Copy,
) -> impl Iterator<Item = (&u64, &P)> {
    let before = pieces.range(..range.0).next_back().filter(move |(_, piece)| end(piece) > range.0);
    // An empty range has no bytes.
    let inside = pieces.range(range.0..range.1.max(range.0));
    before.into_iter().filter(move |_| range.0 < range.1).chain(inside)
}

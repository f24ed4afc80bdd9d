//! Copied live-ins: a recording reads a buffer of its own, and each replay supplies the bytes.
//!
//! The body holds handles of the tensors themselves, whose addresses are those of the recorded call. So its
//! launches are rebound to the buffer, view by view, on their way into the capture.

use std::cmp::Reverse;

use smallvec::SmallVec;

use super::{replay::Replayer, run::Run, stream::Stream};
use crate::{
    Result,
    backend::{DeviceCopy, SharedMemory, View},
    memory::Memory,
    observe::{event::CopySlot, log::Log, occurrence::Occurrence},
    tree::{CopiedInput, GroupId, RecordingIndex, Tree},
    value::key::{KeyTensor, KeyWriter},
};

/// A live-in that a run reads from a buffer.
#[derive(Debug)]
pub(super) struct InputBinding {
    /// Its position in the key.
    position: u32,
    /// The start of the live-in, and the end of its storage.
    from: u64,
    end: u64,
    memory: SharedMemory,
    /// The first and one past the last byte that is read, from `from` on.
    touched: Option<(u64, u64)>,
}

impl InputBinding {
    /// Returns the start of the live-in.
    pub(super) fn from(&self) -> u64 {
        self.from
    }

    /// The most that may be read of it.
    pub(super) fn bytes(&self) -> u64 {
        self.end - self.from
    }

    /// The copy of all that may be read.
    pub(super) fn whole_copy(&self) -> DeviceCopy {
        DeviceCopy { to: self.memory.addr(), from: self.from, bytes: self.bytes() }
    }

    /// As the recording keeps it.
    pub(super) fn recorded(&self) -> CopiedInput {
        let (start, end) = self.touched.unwrap_or_default();
        CopiedInput {
            position: self.position,
            memory: SharedMemory::clone(&self.memory),
            start,
            bytes: end - start,
            copies: 0,
        }
    }
}

/// The live-ins that a run reads from buffers.
#[derive(Debug, Default)]
pub(super) struct InputBindings {
    /// By position.
    all: Vec<InputBinding>,
    /// The start of each, ascending, and which of those up to it has the farthest end, the first of several.
    starts: Vec<(u64, usize)>,
}

impl InputBindings {
    /// Of bindings by position.
    fn new(all: Vec<InputBinding>) -> Self {
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|&at| all[at].from);
        let mut farthest = None;
        let mut starts = Vec::with_capacity(all.len());
        for at in order {
            let reach = |at: usize| (all[at].end, Reverse(at));
            let now = farthest.filter(|&before| reach(before) > reach(at)).unwrap_or(at);
            farthest = Some(now);
            starts.push((all[at].from, now));
        }
        Self { all, starts }
    }

    pub(super) fn all(&self) -> &[InputBinding] {
        &self.all
    }

    fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the binding of the live-in at `position`.
    pub(super) fn of(&self, position: u32) -> Option<&InputBinding> {
        self.all.binary_search_by_key(&position, |b| b.position).ok().map(|at| &self.all[at])
    }

    /// Returns the binding of a live-in whose storage contains those bytes.
    fn around(&mut self, start: u64, end: u64) -> Option<&mut InputBinding> {
        let before = self.starts.partition_point(|&(from, _)| from <= start);
        let (_, at) = *self.starts.get(before.checked_sub(1)?)?;
        Some(&mut self.all[at]).filter(|b| end <= b.end)
    }
}

/// The tensor of a device operand in an arena.
fn tensor_at(key: &KeyWriter, position: u32) -> Option<&KeyTensor> {
    // In the order of their operands.
    let at = key.tensors.binary_search_by_key(&position, |t| t.operand).ok()?;
    Some(&key.tensors[at]).filter(|t| key.owner(t).is_none())
}

/// Returns the copy of a live-in that a replay makes.
fn copy_of(copied: &CopiedInput, key: &KeyWriter) -> DeviceCopy {
    let from = key.addr(copied.position);
    DeviceCopy { to: copied.memory.addr() + copied.start, from: from + copied.start, bytes: copied.bytes }
}

/// Adds the copies to the upload of the next replay. A live-in that is not read is not copied.
fn stage(stream: &mut Stream, log: &mut Log, copied: &[CopiedInput], key: &KeyWriter) {
    for c in copied.iter().filter(|c| c.bytes > 0) {
        stream.stage_copy(copy_of(c, key));
        log.emit(Occurrence::Copied { slot: CopySlot::LiveIn, bytes: c.bytes });
    }
}

/// Returns whether a recording can read a copy of that live-in: it is in an arena, and is not empty.
pub(crate) fn can_copy(memory: &Memory, key: &KeyWriter, position: u32) -> bool {
    tensor_at(key, position).is_some_and(|t| memory.slot(t.slot).bytes() > 0)
}

/// Buffers for the live-ins that a recording of this key copies.
///
/// # Errors
/// Returns [`Error::OutOfMemory`](crate::Error::OutOfMemory).
pub(super) fn bind_inputs(
    tree: &Tree,
    memory: &Memory,
    stream: &mut Stream,
    group: GroupId,
    key: &KeyWriter,
) -> Result<InputBindings> {
    let mut bindings = Vec::new();
    for position in tree.copied(group, &key.operands) {
        let Some(tensor) = tensor_at(key, position).filter(|t| memory.slot(t.slot).bytes() > 0) else {
            continue;
        };
        let from = key.addr(position);
        let end = memory.slot(tensor.slot).end();
        // The bytes that are read are known after the capture, during which nothing can be allocated.
        let memory = stream.alloc(end - from)?;
        bindings.push(InputBinding { position, from, end, memory, touched: None });
    }
    Ok(InputBindings::new(bindings))
}

impl Run {
    /// The views as the capture is to see them. A block of the run's own is never a live-in, also where a
    /// live-in was before. `None` if the run reads no live-in from a buffer.
    pub(crate) fn rebound(&mut self, views: &[View]) -> Option<SmallVec<[View; 4]>> {
        if self.bindings_mut()?.is_empty() {
            return None;
        }
        let own: SmallVec<[bool; 4]> = views.iter().map(|view| self.owns(view.range())).collect();
        let bindings = self.bindings_mut()?;
        let rebound = |(view, own): (&View, bool)| {
            let (start, end) = view.range();
            let Some(b) = bindings.around(start, end).filter(|_| !own) else { return *view };
            let (first, last) = (start - b.from, end - b.from);
            let touched = b.touched.map_or((first, last), |(f, l)| (f.min(first), l.max(last)));
            b.touched = Some(touched);
            View { addr: b.memory.addr() + first, ..*view }
        };
        Some(views.iter().zip(own).map(rebound).collect())
    }
}

/// Makes the first replay of a recording that is not in the tree yet supply the bytes of its copied live-ins.
pub(crate) fn stage_first_copies(
    stream: &mut Stream,
    log: &mut Log,
    copied: &mut [CopiedInput],
    key: &KeyWriter,
) {
    stage(stream, log, copied, key);
    copied.iter_mut().for_each(|c| c.copies += 1);
}

impl Replayer<'_> {
    /// Makes the next replay of a recording supply the bytes of its copied live-ins.
    pub(crate) fn stage_copies(&mut self, at: RecordingIndex, key: &KeyWriter) {
        let Some(recording) = self.tree.recording(at) else { return };
        stage(self.launcher.stream, self.launcher.log, &recording.copied, key);
        self.tree.count_copies(at);
    }

    /// For the body of an audit: it reads the recording's own buffers, as the recording does, which the next
    /// flush fills. How a product is computed may depend on the alignment of its operands, so reading the
    /// live-ins themselves could differ in the last bits.
    pub(super) fn audited_bindings(&mut self, at: RecordingIndex, key: &KeyWriter) -> InputBindings {
        let Some(recording) = self.tree.recording(at) else { return InputBindings::default() };
        let mut bindings = Vec::new();
        for c in recording.copied.iter().filter(|c| c.bytes > 0) {
            let Some(tensor) = tensor_at(key, c.position) else { continue };
            let from = key.addr(c.position);
            let end = self.launcher.memory.slot(tensor.slot).end().min(from + c.memory.len());
            self.launcher.stream.stage_copy(copy_of(c, key));
            let memory = SharedMemory::clone(&c.memory);
            bindings.push(InputBinding { position: c.position, from, end, memory, touched: None });
        }
        InputBindings::new(bindings)
    }
}

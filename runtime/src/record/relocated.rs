//! Replays with relocated memory: the live-ins of a recording are elsewhere, or its results of the last time
//! are still held.
//!
//! A recording contains addresses. A live-in at a different address is copied to where the recording reads
//! it; a result that would overwrite held memory is moved to a block of its own as soon as it is computed.
//! Memory that the recording reads and writes meanwhile is saved before and restored afterwards: everything
//! runs in stream order, and nobody can observe the state in between.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{
    aliasing::Overlaps,
    launch::Launcher,
    replay::{Replayer, results_are_free},
};
use crate::{
    DType, Error, Result,
    backend::{SharedMemory, View},
    memory::{
        COPY, Memory, Origin, Placement,
        pool::{ALIGN, Block, rounded},
    },
    observe::{event::CopySlot, occurrence::Occurrence},
    tree::{GroupId, HeldResults, Identity, LookupKey, Recording, RecordingIndex, Tree},
    value::{entry::Entries, key::KeyWriter, layout::Layout},
};

/// The number of recordings made for one key, with results in different blocks, before results are copied out
/// instead.
const RESULT_BLOCKS: usize = 4;
/// The number of steps for which a recording whose results were held copies them out, after this was last
/// observed.
const HELD_STEPS: u64 = 8;

/// Bytes on the device.
#[derive(Clone, Copy, Debug)]
struct Range {
    addr: u64,
    bytes: u64,
}

impl Range {
    fn end(self) -> u64 {
        self.addr + self.bytes
    }

    fn addresses(self) -> std::ops::Range<u64> {
        self.addr..self.end()
    }

    /// The units that it touches.
    fn blocks(self) -> Block {
        let addr = self.addr / ALIGN * ALIGN;
        Block { addr, len: self.end().next_multiple_of(ALIGN) - addr }
    }

    fn view(self) -> Result<View> {
        let layout = Layout::contiguous(&[self.bytes as usize])?;
        Ok(View { addr: self.addr, dtype: DType::U8, layout })
    }
}

/// A live-in at a different address than in the recording.
#[derive(Clone, Copy, Debug)]
struct Move {
    /// Index among the tensors of the key.
    tensor: u32,
    from: Range,
    to: Range,
}

/// Memory that was saved before a replay.
type Saved = SmallVec<[(Range, SharedMemory); 2]>;

/// Returns the live-ins to be copied to their recorded addresses. `None` if the recording has one memory for
/// two different ones.
fn moves(recording: &Recording, key: &KeyWriter) -> Option<SmallVec<[Move; 2]>> {
    let mut all: SmallVec<[Move; 8]> = SmallVec::new();
    for place in &recording.places {
        if recording.addr(place.operand).is_none() {
            continue;
        }
        let range = |addr| Range { addr, bytes: place.bytes };
        let now = key.addr(place.operand);
        all.push(Move { tensor: place.tensor, from: range(now), to: range(place.addr) });
    }
    let shift = |m: &Move| m.from.addr.wrapping_sub(m.to.addr);
    let mut order: SmallVec<[&Move; 8]> = all.iter().filter(|m| m.to.bytes > 0).collect();
    order.sort_unstable_by_key(|m| m.to.addr);
    // Those that overlap are equally far apart so far, so the farthest of them represents all.
    let mut farthest: Option<&Move> = None;
    for m in order {
        match farthest {
            Some(before) if m.to.addr < before.to.end() => {
                if shift(m) != shift(before) {
                    return None;
                }
                farthest = Some(if m.to.end() > before.to.end() { m } else { before });
            }
            _ => farthest = Some(m),
        }
    }
    Some(all.into_iter().filter(|m| shift(m) != 0).collect())
}

/// Returns whether a range of the first kind overlaps one of the second.
fn any_overlap(first: impl Iterator<Item = Range>, second: impl Iterator<Item = Range>) -> bool {
    let all = first.map(|r| (r, 0)).chain(second.map(|r| (r, 1)));
    let mut all: SmallVec<[(Range, usize); 16]> = all.filter(|(r, _)| r.bytes > 0).collect();
    all.sort_unstable_by_key(|(r, _)| r.addr);
    // The farthest end of the ranges of each kind that begin before.
    let mut reach = [0; 2];
    all.iter().any(|&(r, kind)| {
        reach[kind] = r.end().max(reach[kind]);
        r.addr < reach[1 - kind]
    })
}

/// The bytes that saving and putting back copy, by address.
fn copied_around(saved: &[(Range, SharedMemory)]) -> FxHashMap<u64, u64> {
    let mut bytes = FxHashMap::default();
    saved.iter().for_each(|(r, _)| *bytes.entry(r.addr).or_default() += 2 * r.bytes);
    bytes
}

/// A block of the results arena that a recording writes.
#[derive(Clone, Copy, Debug)]
struct ResultBlock {
    /// Among the blocks of the recording.
    index: usize,
    addr: u64,
    bytes: u64,
}

impl ResultBlock {
    fn block(self) -> Block {
        Block { addr: self.addr, len: rounded(self.bytes) }
    }

    fn range(self) -> Range {
        Range { addr: self.addr, bytes: self.bytes }
    }
}

fn result_blocks(recording: &Recording) -> SmallVec<[ResultBlock; 2]> {
    let blocks = recording.blocks.iter().enumerate().filter(|(_, b)| b.placement == Placement::Results);
    blocks.map(|(index, b)| ResultBlock { index, addr: b.addr, bytes: b.bytes }).collect()
}

/// The recordings that could run for a key with copies, and the data by which they are found.
#[derive(Debug)]
pub(crate) struct Relocations<'c> {
    pub(crate) tree: &'c Tree,
    pub(crate) overlaps: Overlaps<'c>,
    pub(crate) group: GroupId,
    pub(crate) identity: Identity,
    pub(crate) key: &'c KeyWriter,
}

impl Relocations<'_> {
    fn alike(&self) -> impl Iterator<Item = (RecordingIndex, &Recording)> {
        let Self { tree, overlaps, key, .. } = self;
        let entry = overlaps.memory.pool().state();
        let alike = tree.alike(LookupKey::new(self.identity, entry, key));
        let recordings = alike.filter_map(|at| Some((at, tree.recording(at)?)));
        recordings.filter(|(_, recording)| recording.group == self.group && overlaps.sees(recording, key))
    }

    /// A recording that can run for this key by copies: where nothing more can be recorded, or enough is.
    pub(crate) fn find(&self, can_record: bool) -> Option<RecordingIndex> {
        let (mut held, mut moved) = (SmallVec::<[RecordingIndex; 4]>::new(), None);
        let (mut own, mut owns) = (None, 0);
        for (at, recording) in self.alike() {
            match moves(recording, self.key) {
                None => {}
                Some(none) if none.is_empty() => held.push(at),
                Some(found) => {
                    let free = results_are_free(recording, self.overlaps.memory);
                    moved = if free { Some(at) } else { moved.or(Some(at)) };
                    if found.iter().all(|m| self.is_of_this_call(m.tensor)) {
                        own = moved;
                        owns += 1;
                    }
                }
            }
        }
        if !can_record {
            return held.first().copied().or(moved);
        }
        // The results of this call may alternate between a few addresses; beyond those, the address of one
        // differs because others are held, and would differ each time.
        if held.is_empty() && owns >= RESULT_BLOCKS {
            return own;
        }
        let was_held = |at: &&RecordingIndex| {
            self.tree.recording(**at).is_some_and(|recording| recording.held.is_some())
        };
        (held.len() >= RESULT_BLOCKS).then(|| *held.iter().find(was_held).unwrap_or(&held[0]))
    }

    /// A recording that fits but for results that are held: where the limits allow no further one.
    pub(crate) fn find_held(&self) -> Option<RecordingIndex> {
        let fits = |(_, recording): &(RecordingIndex, &Recording)| {
            moves(recording, self.key).is_some_and(|m| m.is_empty())
        };
        self.alike().find(fits).map(|(at, _)| at)
    }

    /// Returns whether a tensor is a result of this call.
    fn is_of_this_call(&self, tensor: u32) -> bool {
        let memory: &Memory = self.overlaps.memory;
        let slot = memory.slot(self.key.tensors[tensor as usize].slot);
        slot.call() == memory.call_number()
            && match slot.origin() {
                Origin::Segment { .. } => slot.placement() == Placement::Results,
                Origin::Result(_) => matches!(slot.placement(), Placement::Results | Placement::Eager),
                _ => false,
            }
    }
}

impl Replayer<'_> {
    /// Runs a recording whose live-ins may be elsewhere, and whose results may be held.
    pub(crate) fn replay_relocated(&mut self, at: RecordingIndex, key: &KeyWriter) -> Result<Entries> {
        let Some(recording) = self.tree.recording(at) else {
            return Err(Error::NeverComputed { op: "a replay" });
        };
        let moves = moves(recording, key).unwrap_or_default();
        let blocks = result_blocks(recording);
        let since = self.held_since(recording, &blocks);
        let mut saved = Saved::new();
        let entry = self.launcher.memory.commit_frees();
        let ran =
            self.run_between_copies(at, &moves, if since.is_some() { &blocks } else { &[] }, &mut saved);
        let restored = self.put_back(&saved);
        let bases = match (ran, restored) {
            (Ok(bases), Ok(())) => bases,
            (Ok(bases), Err(error)) => {
                self.take_back(&bases);
                self.launcher.memory.restore(entry);
                return Err(error);
            }
            (Err(error), _) => {
                self.launcher.memory.restore(entry);
                return Err(error);
            }
        };
        let moved_to = blocks.first().and_then(|b| bases.get(b.index).copied().flatten());
        self.tree.note_held(at, since.map(|step| HeldResults { step, moved_to }));
        self.hand_over(at, key, &bases)
    }

    /// The step in which its results were last seen to be held, for as long as they are copied out for it.
    fn held_since(&self, recording: &Recording, blocks: &[ResultBlock]) -> Option<u64> {
        let memory = &*self.launcher.memory;
        let now = memory.persistent().steps();
        if blocks.iter().any(|b| !memory.is_free_result(b.block())) {
            return Some(now);
        }
        let (HeldResults { step, moved_to }, first) = (recording.held?, blocks.first()?);
        // The last of them is still there: they are held again.
        if moved_to.is_some_and(|addr| !memory.is_free_result(Block { addr, len: first.block().len })) {
            return Some(now);
        }
        (now - step < HELD_STEPS).then_some(step)
    }

    /// Saves, copies, runs, and copies out. Returns the new address of each block of the recording that was
    /// moved.
    fn run_between_copies(
        &mut self,
        at: RecordingIndex,
        moves: &[Move],
        out: &[ResultBlock],
        saved: &mut Saved,
    ) -> Result<SmallVec<[Option<u64>; 4]>> {
        for result in out {
            if result.bytes > 0 && !self.launcher.memory.is_free_result(result.block()) {
                self.preserve(result.range(), saved)?;
            }
        }
        self.bring(moves, saved)?;
        self.run_recording(at)?;
        let count = self.tree.recording(at).map_or(0, |recording| recording.blocks.len());
        let mut bases: SmallVec<[Option<u64>; 4]> = SmallVec::from_elem(None, count);
        // Memory that is restored later is restored entirely, including gaps between tensors.
        let arena = self.launcher.memory.result_addresses();
        let back = saved.iter().map(|(range, _)| range.blocks()).filter(|block| arena.contains(&block.addr));
        let avoid: SmallVec<[Block; 4]> = out.iter().map(|result| result.block()).chain(back).collect();
        let around = copied_around(saved);
        for result in out {
            match self.move_result(result.range(), &avoid) {
                Ok(base) => bases[result.index] = Some(base),
                Err(error) => {
                    self.take_back(&bases);
                    return Err(error);
                }
            }
            let around = around.get(&result.addr).copied().unwrap_or(0);
            let bytes = result.bytes + around;
            self.launcher.log.emit(Occurrence::Copied { slot: CopySlot::Result, bytes });
        }
        Ok(bases)
    }

    /// Frees the blocks of results that are not returned.
    fn take_back(&mut self, bases: &[Option<u64>]) {
        for base in bases.iter().flatten() {
            self.launcher.memory.give_back_result(*base);
        }
    }

    /// Makes a copy of those bytes, to be restored.
    fn preserve(&mut self, range: Range, saved: &mut Saved) -> Result<()> {
        let memory = self.launcher.stream.alloc(range.bytes)?;
        self.copy_bytes(range, memory.addr())?;
        saved.push((range, memory));
        Ok(())
    }

    /// Copies live-ins to where the recording reads them.
    fn bring(&mut self, moves: &[Move], saved: &mut Saved) -> Result<()> {
        let moves: SmallVec<[Move; 4]> = moves.iter().copied().filter(|m| m.to.bytes > 0).collect();
        let before = saved.len();
        for m in &moves {
            let Self { launcher, .. } = self;
            if launcher.memory.is_occupied(launcher.stream.backend_mut(), m.to.addresses())? {
                self.preserve(m.to, saved)?;
            }
        }
        let crossed = any_overlap(moves.iter().map(|m| m.from), moves.iter().map(|m| m.to));
        let around = copied_around(&saved[before..]);
        let mut staged: SmallVec<[SharedMemory; 2]> = SmallVec::new();
        if crossed {
            for m in &moves {
                let memory = self.launcher.stream.alloc(m.from.bytes)?;
                self.copy_bytes(m.from, memory.addr())?;
                staged.push(memory);
            }
        }
        for (i, m) in moves.iter().enumerate() {
            let from = staged.get(i).map_or(m.from.addr, |memory| memory.addr());
            self.copy_bytes(Range { addr: from, ..m.from }, m.to.addr)?;
            let around = around.get(&m.to.addr).copied().unwrap_or(0);
            let bytes = m.to.bytes * if crossed { 2 } else { 1 } + around;
            self.launcher.log.emit(Occurrence::Copied { slot: CopySlot::LiveIn, bytes });
        }
        Ok(())
    }

    fn copy_bytes(&mut self, from: Range, to: u64) -> Result<()> {
        let target = Range { addr: to, bytes: from.bytes };
        self.launcher.launch(COPY, &[from.view()?], &[target.view()?])
    }

    /// Moves a result to a block that is free.
    fn move_result(&mut self, from: Range, avoid: &[Block]) -> Result<u64> {
        let Launcher { memory, stream, .. } = &mut self.launcher;
        let block = memory.place_result_beside(stream.backend_mut(), avoid, from.bytes)?;
        if from.bytes > 0 {
            self.copy_bytes(from, block.addr)?;
        }
        self.launcher.memory.take_result(block);
        Ok(block.addr)
    }

    /// Restores the memory that was saved. Memory that cannot be restored is invalid: its tensors can no
    /// longer be used.
    fn put_back(&mut self, saved: &Saved) -> Result<()> {
        let mut outcome = Ok(());
        for (range, memory) in saved {
            let back = self.copy_bytes(Range { addr: memory.addr(), bytes: range.bytes }, range.addr);
            if back.is_err() {
                self.launcher.memory.invalidate(range.addresses());
            }
            outcome = outcome.and(back);
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Range {
        fn overlaps(self, other: Self) -> bool {
            self.addr.max(other.addr) < self.end().min(other.end())
        }
    }

    #[test]
    fn ranges_of_two_kinds() {
        let range = |(addr, bytes)| Range { addr, bytes };
        let overlap = |a: &[(u64, u64)], b: &[(u64, u64)]| {
            let (first, second) = (a.iter().copied().map(range), b.iter().copied().map(range));
            any_overlap(first, second)
        };
        assert!(!overlap(&[(0, 10), (20, 10)], &[(10, 10), (30, 1)]));
        // Those of one kind may overlap each other.
        assert!(!overlap(&[(0, 10), (5, 5)], &[(10, 10), (15, 1)]));
        // One that begins long before reaches over others of its kind.
        assert!(overlap(&[(0, 100), (5, 1)], &[(50, 1)]));
        assert!(overlap(&[(50, 1)], &[(0, 100), (5, 1)]));
        assert!(overlap(&[(7, 2)], &[(7, 2)]) && !overlap(&[(7, 0)], &[(7, 2)]));
        let all = |n: u64, m: u64| (0..60).map(|i| (i * i * n % 97, i % m)).collect::<Vec<_>>();
        for (n, m) in [(3, 2), (5, 3), (7, 1), (11, 4)] {
            let (a, b) = (all(n, m), all(n + 1, 2));
            let slow =
                a.iter().any(|&a| b.iter().any(|&b| a.1 > 0 && b.1 > 0 && range(a).overlaps(range(b))));
            assert_eq!(overlap(&a, &b), slow, "{n} {m}");
        }
    }
}

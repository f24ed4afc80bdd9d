//! A recording runs although its memory is another's now: its live-ins lie elsewhere, or what it gave last time is
//! still held.
//!
//! A recording bakes addresses. A live-in that lies elsewhere is copied to where the recording reads it; a result that
//! would be written over what somebody holds goes to a block of its own as soon as it is there. What lies where the
//! recording reads and writes meanwhile is saved before and put back behind it: everything runs in the order of the
//! stream, and nobody can look in between.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{
    Core, Origin, Placement,
    decide::{Entries, results_are_free},
};
use crate::{
    DType, Error, Result,
    backend::{Op, SharedMemory, View},
    memory::pool::{self, ALIGN, Block, LiveSet, rounded},
    observe::event::CopySlot,
    tree::{COPIED, Identity, Node},
    value::{layout::Layout, live_in::KeyWriter},
};

/// Recordings that are made for one key, with results in other blocks each, before results are copied out instead.
const RESULT_BLOCKS: usize = 4;
/// For how many steps a recording whose results were held copies them out, after it was seen last.
const CROWDED_STEPS: u64 = 8;

/// Bytes on the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    addr: u64,
    bytes: u64,
}

impl Range {
    pub(crate) fn end(self) -> u64 {
        self.addr + self.bytes
    }

    /// The units that it touches.
    pub(crate) fn blocks(self) -> Block {
        let addr = self.addr / ALIGN * ALIGN;
        Block { addr, len: self.end().next_multiple_of(ALIGN) - addr }
    }

    pub(crate) fn overlaps(self, other: Self) -> bool {
        self.addr.max(other.addr) < self.end().min(other.end())
    }

    pub(crate) fn view(self) -> Result<View> {
        let layout = Layout::contiguous(&[self.bytes as usize])?;
        Ok(View { addr: self.addr, dtype: DType::U8, layout })
    }
}

/// A live-in that lies elsewhere than in the recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    /// Index among the tensors of the key.
    tensor: u32,
    from: Range,
    to: Range,
}

/// What was saved before a replay.
type Saved = SmallVec<[(Range, SharedMemory); 2]>;

/// The live-ins to be copied to where the recording has them. `None` when it has one memory for what is two now.
fn moves(node: &Node, key: &KeyWriter) -> Option<SmallVec<[Move; 2]>> {
    let mut all: SmallVec<[Move; 8]> = SmallVec::new();
    for place in &node.places {
        if node.addrs[2 * place.operand as usize + 1] == COPIED {
            continue;
        }
        let range = |addr| Range { addr, bytes: place.bytes };
        let now = key.addrs[2 * place.operand as usize + 1];
        all.push(Move { tensor: place.tensor, from: range(now), to: range(place.addr) });
    }
    let shift = |m: &Move| m.from.addr.wrapping_sub(m.to.addr);
    let mut order: SmallVec<[&Move; 8]> = all.iter().filter(|m| m.to.bytes > 0).collect();
    order.sort_unstable_by_key(|m| m.to.addr);
    // Those that overlap lie alike so far, so the farthest of them speaks for all.
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

/// Whether a range of the first kind overlaps one of the second.
fn any_overlap(first: impl Iterator<Item = Range>, second: impl Iterator<Item = Range>) -> bool {
    let all = first.map(|r| (r, 0)).chain(second.map(|r| (r, 1)));
    let mut all: SmallVec<[(Range, usize); 16]> = all.filter(|(r, _)| r.bytes > 0).collect();
    all.sort_unstable_by_key(|(r, _)| r.addr);
    // How far those of each kind reach that begin before.
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

/// The blocks of the results arena that the recording writes.
fn result_blocks(node: &Node) -> SmallVec<[(usize, Block, u64); 2]> {
    let blocks = node.blocks.iter().enumerate().filter(|(_, b)| b.home == Placement::Results);
    blocks.map(|(i, b)| (i, Block { addr: b.addr, len: rounded(b.bytes) }, b.bytes)).collect()
}

/// The lowest place for `bytes` that is neither used nor in `avoid`.
fn place_beside(live: &LiveSet, avoid: &[Block], (base, page): (u64, u64), bytes: u64) -> u64 {
    let mut used = live.clone();
    // What is to be avoided in another arena is not in the way here.
    for &block in avoid.iter().filter(|block| block.addr >= base) {
        let (mut start, mut end) = (block.addr, block.end());
        for other in used.overlapping(block) {
            used.remove(other.addr);
            (start, end) = (start.min(other.addr), end.max(other.end()));
        }
        used.insert(Block { addr: start, len: end - start });
    }
    pool::place(&used, base, bytes, page)
}

impl Core {
    /// A recording that can run for this key by copies: where nothing more can be recorded, or enough is.
    pub(crate) fn find_apart(
        &self,
        group: usize,
        identity: Identity,
        key: &KeyWriter,
        can_record: bool,
    ) -> Option<usize> {
        let entry = self.pool.state();
        let (mut held, mut moved) = (SmallVec::<[usize; 4]>::new(), None);
        let (mut own, mut owns) = (None, 0);
        for at in self.tree.alike(identity, entry, &key.shape, &key.addrs) {
            let Some(node) = self.tree.node(at).filter(|n| n.group == group && self.sees(n, key)) else {
                continue;
            };
            match moves(node, key) {
                None => {}
                Some(none) if none.is_empty() => held.push(at),
                Some(found) => {
                    let free = results_are_free(node, &self.results.live);
                    moved = if free { Some(at) } else { moved.or(Some(at)) };
                    if found.iter().all(|m| self.is_of_this_call(m.tensor, key)) {
                        own = moved;
                        owns += 1;
                    }
                }
            }
        }
        if !can_record {
            return held.first().copied().or(moved);
        }
        // What this call made may alternate between a few places; beyond those it is where it is because others are
        // held, and would be elsewhere each time.
        if held.is_empty() && owns >= RESULT_BLOCKS {
            return own;
        }
        let crowded = |at: &&usize| self.tree.node(**at).is_some_and(|n| n.crowded != 0);
        (held.len() >= RESULT_BLOCKS).then(|| *held.iter().find(crowded).unwrap_or(&held[0]))
    }

    /// Whether a tensor is a result that this call made.
    pub(crate) fn is_of_this_call(&self, tensor: u32, key: &KeyWriter) -> bool {
        let slot = &self.slots[key.tensors[tensor as usize].slot as usize];
        slot.call == self.calls
            && match slot.origin {
                Origin::Segment { .. } => slot.home == Placement::Results,
                Origin::Result { .. } => matches!(slot.home, Placement::Results | Placement::Eager),
                _ => false,
            }
    }

    /// The same, where the limits allow no further recording.
    pub(crate) fn find_held(&self, group: usize, identity: Identity, key: &KeyWriter) -> Option<usize> {
        let entry = self.pool.state();
        let fits = |at: &usize| {
            self.tree.node(*at).is_some_and(|n| {
                n.group == group && self.sees(n, key) && moves(n, key).is_some_and(|m| m.is_empty())
            })
        };
        self.tree.alike(identity, entry, &key.shape, &key.addrs).find(fits)
    }

    /// Runs a recording whose live-ins may lie elsewhere, and whose results may be held.
    pub(crate) fn replay_apart(&mut self, at: usize, key: &KeyWriter) -> Result<Entries> {
        let Some(node) = self.tree.node(at) else { return Err(Error::NeverComputed { op: "a replay" }) };
        let moves = moves(node, key).unwrap_or_default();
        let blocks = result_blocks(node);
        let since = self.crowded_since(node, &blocks);
        let crowded = since != 0;
        let mut saved = Saved::new();
        let entry = self.pool.settle();
        let ran = self.run_apart(at, &moves, if crowded { &blocks } else { &[] }, &mut saved);
        let restored = self.put_back(&saved);
        let bases = match (ran, restored) {
            (Ok(bases), Ok(())) => bases,
            (Ok(bases), Err(error)) => {
                self.take_back(&bases);
                self.pool.restore(entry);
                return Err(error);
            }
            (Err(error), _) => {
                self.pool.restore(entry);
                return Err(error);
            }
        };
        let handed = blocks.first().and_then(|(i, ..)| bases.get(*i).copied().flatten());
        self.tree.crowd(at, since, handed);
        self.hand_over(at, key, &bases)
    }

    /// The step in which its results were last seen to be held, for as long as they are copied out for it; else 0.
    pub(crate) fn crowded_since(&self, node: &Node, blocks: &[(usize, Block, u64)]) -> u64 {
        let free = |addr: u64, len: u64| self.results.live.is_free(Block { addr, len });
        if blocks.iter().any(|(_, b, _)| !free(b.addr, b.len)) {
            return self.kept.steps();
        }
        let Some((_, first, _)) = blocks.first().filter(|_| node.crowded != 0) else { return 0 };
        // The last of them is still there: they are held again.
        if node.handed.is_some_and(|addr| !free(addr, first.len)) {
            return self.kept.steps();
        }
        if self.kept.steps() - node.crowded < CROWDED_STEPS { node.crowded } else { 0 }
    }

    /// Saves, copies, runs, and copies out. Gives where each block of the recording went, if it was moved.
    pub(crate) fn run_apart(
        &mut self,
        at: usize,
        moves: &[Move],
        out: &[(usize, Block, u64)],
        saved: &mut Saved,
    ) -> Result<SmallVec<[Option<u64>; 4]>> {
        for &(_, block, bytes) in out {
            if bytes > 0 && !self.results.live.is_free(block) {
                self.preserve(Range { addr: block.addr, bytes }, saved)?;
            }
        }
        self.bring(moves, saved)?;
        self.run_recording(at)?;
        let count = self.tree.node(at).map_or(0, |n| n.blocks.len());
        let mut bases: SmallVec<[Option<u64>; 4]> = SmallVec::from_elem(None, count);
        // What is put back later is put back whole, gaps between tensors included.
        let arena = self.results.base()..self.results.base() + self.results.reserved();
        let back = saved.iter().map(|(range, _)| range.blocks()).filter(|block| arena.contains(&block.addr));
        let avoid: SmallVec<[Block; 4]> = out.iter().map(|&(_, block, _)| block).chain(back).collect();
        let around = copied_around(saved);
        for &(index, block, bytes) in out {
            match self.move_result(block.addr, bytes, &avoid) {
                Ok(base) => bases[index] = Some(base),
                Err(error) => {
                    self.take_back(&bases);
                    return Err(error);
                }
            }
            let around = around.get(&block.addr).copied().unwrap_or(0);
            self.log.copied(CopySlot::Result, bytes + around);
        }
        Ok(bases)
    }

    /// Frees the blocks of results that nobody gets.
    pub(crate) fn take_back(&mut self, bases: &[Option<u64>]) {
        for base in bases.iter().flatten() {
            self.results.live.remove(*base);
        }
    }

    /// A copy of those bytes, to be put back.
    pub(crate) fn preserve(&mut self, range: Range, saved: &mut Saved) -> Result<()> {
        let memory = self.backend.alloc(range.bytes)?;
        self.copy_bytes(range, memory.addr())?;
        saved.push((range, memory));
        Ok(())
    }

    /// Copies live-ins to where the recording reads them.
    pub(crate) fn bring(&mut self, moves: &[Move], saved: &mut Saved) -> Result<()> {
        let moves: SmallVec<[Move; 4]> = moves.iter().copied().filter(|m| m.to.bytes > 0).collect();
        let before = saved.len();
        for m in &moves {
            if self.is_occupied(m.to)? {
                self.preserve(m.to, saved)?;
            }
        }
        let crossed = any_overlap(moves.iter().map(|m| m.from), moves.iter().map(|m| m.to));
        let around = copied_around(&saved[before..]);
        let mut staged: SmallVec<[SharedMemory; 2]> = SmallVec::new();
        if crossed {
            for m in &moves {
                let memory = self.backend.alloc(m.from.bytes)?;
                self.copy_bytes(m.from, memory.addr())?;
                staged.push(memory);
            }
        }
        for (i, m) in moves.iter().enumerate() {
            let from = staged.get(i).map_or(m.from.addr, |memory| memory.addr());
            self.copy_bytes(Range { addr: from, ..m.from }, m.to.addr)?;
            let around = around.get(&m.to.addr).copied().unwrap_or(0);
            self.log.copied(CopySlot::LiveIn, m.to.bytes * if crossed { 2 } else { 1 } + around);
        }
        Ok(())
    }

    /// Whether something lives there. Memory for those bytes is there afterwards.
    pub(crate) fn is_occupied(&mut self, range: Range) -> Result<bool> {
        let backend = &mut *self.backend;
        let inside = |base: u64, len: u64| base <= range.addr && range.end() <= base + len;
        for zone in [&mut self.results, &mut self.eager] {
            if inside(zone.base(), zone.reserved()) {
                zone.prime(backend, range.end() - zone.base())?;
                return Ok(!zone.live.is_free(Block { addr: range.addr, len: range.bytes }));
            }
        }
        Ok(true)
    }

    pub(crate) fn copy_bytes(&mut self, from: Range, to: u64) -> Result<()> {
        let target = Range { addr: to, bytes: from.bytes };
        self.launch_now(Op::Copy, &[from.view()?], &[target.view()?])
    }

    /// Moves a result to a block that is nobody's.
    pub(crate) fn move_result(&mut self, addr: u64, bytes: u64, avoid: &[Block]) -> Result<u64> {
        let zone = &mut self.results;
        let at = place_beside(&zone.live, avoid, (zone.base(), zone.page), bytes);
        let block = Block { addr: at, len: rounded(bytes) };
        zone.commit(&mut *self.backend, block, bytes)?;
        if bytes > 0 {
            self.copy_bytes(Range { addr, bytes }, at)?;
        }
        self.results.live.insert(block);
        Ok(at)
    }

    /// What was saved is where it was. Whatever cannot be put back is void: its tensors cannot be used any more.
    pub(crate) fn put_back(&mut self, saved: &Saved) -> Result<()> {
        let mut outcome = Ok(());
        for (range, memory) in saved {
            let back = self.copy_bytes(Range { addr: memory.addr(), bytes: range.bytes }, range.addr);
            if back.is_err() {
                self.void(*range);
            }
            outcome = outcome.and(back);
        }
        outcome
    }

    /// The tensors that lie there hold something else now.
    pub(crate) fn void(&mut self, range: Range) {
        for slot in self.slots.iter_mut().filter(|s| s.refs > 0) {
            let block = Block { addr: slot.base, len: rounded(slot.bytes) };
            if !range.overlaps(Range { addr: block.addr, bytes: block.len }) {
                continue;
            }
            match slot.home {
                Placement::Results => drop(self.results.live.remove(slot.base)),
                Placement::Eager => drop(self.eager.live.remove(slot.base)),
                Placement::Pool => drop(self.pool.free(slot.base)),
                _ => continue,
            }
            slot.home = Placement::Invalid;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

//! The only properties of addresses that a body can observe: whether tensors refer to the same memory, and whether two
//! parameters, states or generators are one. A key must determine the answers.
//!
//! Exact addresses determine it. A copied live-in has no address in its key, and a padded input is in a
//! buffer of its own whatever was passed; so for bodies that query it, the way their live-ins overlap selects
//! the group and the recording. What a group has learned must hold for all of its keys, whatever their addresses: so which
//! of their owned live-ins are one selects the group of every body. Nothing says whether a body looks at that: it may compare
//! the handles of tied weights, of which the runtime sees nothing. (Handles that are two while their memory is one are beyond it.)

use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

use super::{call::CallState, recorder::Recorder, replay::results_are_free};
use crate::{
    memory::{Memory, Origin, Placement, SlotId},
    tree::{Alias, Aliases, GroupId, GroupKey, Identity, Recording, Tree},
    value::key::{KeyTensor, KeyWriter},
    value::raw::RawTensor,
};

/// A live-in whose overlaps are not fixed by the addresses of its key.
#[derive(Clone, Copy, Debug)]
struct Seen {
    operand: u32,
    addr: u64,
    /// Its storage.
    start: u64,
    end: u64,
}

/// The overlaps of a function's live-ins as its caller sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overlaps<'c> {
    pub(crate) memory: &'c Memory,
    pub(crate) call: &'c CallState,
}

/// Returns whether the memory has an identity of its own.
fn is_owned(placement: Placement) -> bool {
    matches!(placement, Placement::Owned | Placement::StaticInput)
}

impl Overlaps<'_> {
    /// Returns whether two tensors of one layout refer to the same memory, as the caller of the function sees
    /// it.
    pub(crate) fn same_place(&self, recorder: &Recorder, a: &RawTensor, b: &RawTensor) -> bool {
        let padded = a.marks.any() || b.marks.any();
        if !padded && a.layout != b.layout {
            return false;
        }
        recorder.compares_memory();
        // The caller knows nothing of padding.
        let real = |raw: &RawTensor| self.call.real_layout(raw.layout, raw.marks);
        if real(a) != real(b) {
            return false;
        }
        if [a, b].iter().any(|raw| raw.epoch != self.memory.epoch()) {
            return a.epoch == b.epoch && a.addr == b.addr;
        }
        // Memory that was freed early may be used by another tensor by now.
        if [a, b].iter().any(|raw| self.memory.slot(raw.slot).placement() == Placement::Freed) {
            return a.slot == b.slot && a.addr == b.addr;
        }
        self.place_of(a.slot, a.addr) == self.place_of(b.slot, b.addr)
    }

    /// Returns the location of that address of a slot for the caller: a padded input stands for the tensor
    /// that was passed.
    fn place_of(&self, slot: SlotId, addr: u64) -> u64 {
        let slot = self.memory.slot(slot);
        match slot.origin() {
            Origin::Padded { from, .. } => from + (addr - slot.base()),
            _ => addr,
        }
    }

    /// Returns how those live-ins overlap that are not determined by the addresses of their key.
    pub(crate) fn of(&self, key: &KeyWriter) -> Aliases {
        let (mut aliases, mut padded) = (Aliases::new(), false);
        let seen: SmallVec<[Seen; 8]> = key.tensors.iter().filter_map(|t| self.seen(t, key)).collect();
        let mut shown = seen.iter().zip(first_overlapping(&seen)).peekable();
        for tensor in &key.tensors {
            // The key does not determine to which owned memory a padded input refers, and any view of that
            // memory may be compared with it, including one that the body makes.
            if let Origin::Padded { of, .. } = self.memory.slot(tensor.slot).origin()
                && is_owned(self.memory.slot(of).placement())
            {
                let addr = self.place_of(tensor.slot, key.addr(tensor.operand));
                aliases.push(Alias::Owned { operand: tensor.operand, addr });
                padded = true;
            }
            let Some((this, first)) = shown.next_if(|(s, _)| s.operand == tensor.operand) else { continue };
            let with = &seen[first];
            if with.operand != this.operand {
                let distance = this.addr.wrapping_sub(with.addr);
                aliases.push(Alias::Shared { operand: this.operand, with: with.operand, distance });
                padded |= key.has_padding();
            }
        }
        if let (true, Some(call)) = (padded, self.call.active()) {
            // Whether two layouts are equal then depends on the number of real rows.
            aliases.extend(call.symbols.iter().filter(|s| s.bucketed).map(|s| Alias::RealSize(s.real)));
        }
        aliases
    }

    /// Returns what selects the group of a body that asks whether tensors refer to the same memory.
    pub(super) fn of_asking_group(&self, key: &KeyWriter) -> Aliases {
        let mut aliases = tied(key);
        aliases.push(Alias::Asked);
        aliases.extend(self.of(key));
        // The keys of recordings have the addresses of owned memory.
        let mut first = FxHashMap::default();
        for (operand, of) in (0..).zip(&key.operands) {
            let Some(owner) = of.owner else { continue };
            let (with, addr) = *first.entry(owner).or_insert((operand, of.addr));
            if addr != of.addr {
                aliases.push(Alias::Shared { operand, with, distance: of.addr.wrapping_sub(addr) });
            }
        }
        aliases
    }

    /// The place of a live-in for the caller; `None` where the address in its key states it.
    fn seen(&self, tensor: &KeyTensor, key: &KeyWriter) -> Option<Seen> {
        let slot = self.memory.slot(tensor.slot);
        let storage = match slot.origin() {
            Origin::Padded { of, .. } => self.memory.slot(of),
            _ if key.owner(tensor).is_none() => slot,
            _ => return None,
        };
        let addr = self.place_of(tensor.slot, key.addr(tensor.operand));
        Some(Seen { operand: tensor.operand, addr, start: storage.base(), end: storage.end() })
    }

    /// Returns whether a recording can run for these live-ins: they overlap as they did when it was made, and
    /// the blocks of its results are not held.
    #[inline]
    pub(crate) fn allow(&self, recording: &Recording, key: &KeyWriter) -> bool {
        results_are_free(recording, self.memory) && self.sees(recording, key)
    }

    /// Returns whether a recording was made for live-ins that overlap like these.
    #[inline]
    pub(crate) fn sees(&self, recording: &Recording, key: &KeyWriter) -> bool {
        recording.aliases.as_ref().is_none_or(|recorded| **recorded == *self.of(key))
    }

    /// The group of a key, if there is one.
    pub(crate) fn known_group(&self, tree: &Tree, identity: Identity, key: &KeyWriter) -> Option<GroupId> {
        let (shape, tied) = (&key.shape, tied(key));
        let group = tree.known_group(GroupKey { identity, shape, aliases: some(&tied) })?;
        match self.apart(tree, group, key) {
            None => Some(group),
            Some(aliases) => tree.known_group(GroupKey { identity, shape, aliases: Some(&aliases) }),
        }
    }

    /// The group of a key, made if it is new.
    pub(crate) fn group(&self, tree: &mut Tree, identity: Identity, key: &KeyWriter) -> GroupId {
        let (shape, tied) = (&key.shape, tied(key));
        let group = tree.group(GroupKey { identity, shape, aliases: some(&tied) });
        match self.apart(tree, group, key) {
            None => group,
            Some(aliases) => tree.group(GroupKey { identity, shape, aliases: Some(&aliases) }),
        }
    }

    /// Returns the words of a separate group, if the body queried addresses and these live-ins overlap
    /// differently.
    fn apart(&self, tree: &Tree, group: GroupId, key: &KeyWriter) -> Option<Aliases> {
        let warmed = tree.group_of(group).aliases.as_ref()?;
        let aliases = self.of_asking_group(key);
        (**warmed != *aliases).then_some(aliases)
    }
}

/// Returns which live-ins are the same owned memory: tied weights, one state or generator given twice.
fn tied(key: &KeyWriter) -> Aliases {
    let mut tied = Aliases::new();
    let mut first = FxHashMap::with_capacity_and_hasher(key.operands.len(), FxBuildHasher);
    for (operand, of) in (0..).zip(&key.operands) {
        let Some(owner) = of.owner else { continue };
        let with = *first.entry((owner, of.addr)).or_insert(operand);
        if with != operand {
            tied.push(Alias::Shared { operand, with, distance: 0 });
        }
    }
    tied
}

fn some(aliases: &Aliases) -> Option<&[Alias]> {
    (!aliases.is_empty()).then_some(aliases)
}

/// Returns, for each live-in, the index of the first one that refers to the same address or to overlapping
/// memory; its own where there is no earlier one. Storages are equal or do not overlap: of others, the first
/// one of a chain stands for all of it.
fn first_overlapping(seen: &[Seen]) -> SmallVec<[usize; 8]> {
    let mut first: SmallVec<[usize; 8]> = (0..seen.len()).collect();
    let mut order: SmallVec<[usize; 8]> = (0..seen.len()).filter(|&i| seen[i].start < seen[i].end).collect();
    order.sort_unstable_by_key(|&i| (seen[i].start, i));
    earliest(&order, &mut first, |end, i| match end {
        Some(end) if seen[i].start < end => (true, end.max(seen[i].end)),
        _ => (false, seen[i].end),
    });
    order.clear();
    order.extend(0..seen.len());
    order.sort_unstable_by_key(|&i| (seen[i].addr, i));
    earliest(&order, &mut first, |addr, i| (addr == Some(seen[i].addr), seen[i].addr));
    first
}

/// Lowers `first` of each run of indices in `order` to the lowest of them. `joins` states whether an index
/// continues the run that has a state, and returns the new state.
fn earliest(order: &[usize], first: &mut [usize], joins: impl Fn(Option<u64>, usize) -> (bool, u64)) {
    let (mut state, mut begin) = (None, 0);
    let mut lower = |run: &[usize]| {
        let lowest = run.iter().copied().min().unwrap_or_default();
        run.iter().for_each(|&i| first[i] = first[i].min(lowest));
    };
    for (at, &i) in order.iter().enumerate() {
        let (joined, next) = joins(state, i);
        if !joined {
            lower(&order[begin..at]);
            begin = at;
        }
        state = Some(next);
    }
    lower(&order[begin..]);
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    /// As the comment of [`first_overlapping`] says, pair by pair.
    fn pair_by_pair(seen: &[Seen]) -> Vec<usize> {
        let overlap = |a: &Seen, b: &Seen| a.addr == b.addr || a.start.max(b.start) < a.end.min(b.end);
        seen.iter()
            .enumerate()
            .map(|(at, this)| seen[..at].iter().position(|other| overlap(this, other)).unwrap_or(at))
            .collect()
    }

    #[test]
    fn the_first_overlap_is_found() {
        let mut rng = StdRng::seed_from_u64(7);
        let mut shared = 0;
        for round in 0..2000 {
            let count = rng.random_range(0..24);
            let seen: Vec<Seen> = (0..count)
                .map(|operand| {
                    // A block of ten units, which may be empty, and an address in it.
                    let start = rng.random_range(0..12) * 10;
                    let size = if start % 30 == 0 { 0 } else { 10 };
                    let addr = if size == 0 { start } else { start + rng.random_range(0..size) };
                    Seen { operand, addr, start, end: start + size }
                })
                .collect();
            let expected = pair_by_pair(&seen);
            shared += expected.iter().enumerate().filter(|(at, first)| at != *first).count();
            assert_eq!(first_overlapping(&seen).to_vec(), expected, "round {round}: {seen:?}");
        }
        assert!(shared > 1000);
    }
}

//! The only property of addresses that a body can observe: whether tensors refer to the same memory. A key
//! must determine the answer.
//!
//! Exact addresses determine it. A copied live-in has no address in its key, and a padded input is in a
//! buffer of its own whatever was passed; so for bodies that query it, the way their live-ins overlap selects
//! the group and the recording.

use smallvec::SmallVec;

use super::{call::CallState, recorder::Recorder};
use crate::{
    memory::{Memory, Origin, Placement, SlotId},
    tree::{GroupId, Identity, Recording, Tree},
    value::key::{KeyTensor, KeyWriter},
    value::raw::RawTensor,
};

/// Between the words of a key and how its live-ins overlap. No key is the beginning of another.
const OVERLAPS: u64 = u64::MAX;

/// With an operand: it shows owned memory, at the address that follows.
const OWNED: u64 = 1 << 63;

/// Pairs of live-ins in one storage, and how far apart they begin.
pub(crate) type Aliases = SmallVec<[u64; 4]>;

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
        if let Some(run) = recorder.run() {
            run.asked.set(true);
        }
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
        let place = |t: &KeyTensor| {
            let slot = self.memory.slot(t.slot);
            let addr = self.place_of(t.slot, key.addr(t.operand));
            let storage = match slot.origin() {
                Origin::Padded { of, .. } => self.memory.slot(of),
                _ if t.owned == 0 => slot,
                _ => return None,
            };
            Some((addr, storage.base(), storage.end()))
        };
        let (mut aliases, mut padded) = (Aliases::new(), false);
        /// An operand, and its address and the bounds of its storage.
        type Seen = (u64, (u64, u64, u64));
        let mut seen: SmallVec<[Seen; 8]> = SmallVec::new();
        for tensor in &key.tensors {
            // The key does not determine to which owned memory a padded input refers, and any view of that
            // memory may be compared with it, including one that the body makes.
            if let Origin::Padded { of, .. } = self.memory.slot(tensor.slot).origin()
                && is_owned(self.memory.slot(of).placement())
            {
                let addr = self.place_of(tensor.slot, key.addr(tensor.operand));
                aliases.extend([OWNED | u64::from(tensor.operand), addr]);
                padded = true;
            }
            let Some((addr, start, end)) = place(tensor) else { continue };
            let other = seen.iter().find(|(_, (at, s, e))| addr == *at || start.max(*s) < end.min(*e));
            if let Some((operand, (at, ..))) = other {
                aliases.extend([u64::from(tensor.operand) << 32 | operand, addr.wrapping_sub(*at)]);
                padded |= key.has_padding();
            }
            seen.push((u64::from(tensor.operand), (addr, start, end)));
        }
        if let (true, Some(call)) = (padded, self.call.active()) {
            // Whether two layouts are equal then depends on the number of real rows.
            aliases.extend(call.symbols.iter().filter(|s| s.bucketed).map(|s| s.real as u64));
        }
        aliases
    }

    /// Returns whether a recording was made for live-ins that overlap like these.
    pub(crate) fn sees(&self, recording: &Recording, key: &KeyWriter) -> bool {
        recording.aliases.as_ref().is_none_or(|recorded| **recorded == *self.of(key))
    }

    /// The group of a key, if there is one.
    pub(crate) fn known_group(&self, tree: &Tree, identity: Identity, key: &KeyWriter) -> Option<GroupId> {
        let group = tree.known_group(identity, &key.shape)?;
        match self.apart(tree, group, key) {
            None => Some(group),
            Some(shape) => tree.known_group(identity, &shape),
        }
    }

    /// The group of a key, made if it is new.
    pub(crate) fn group(&self, tree: &mut Tree, identity: Identity, key: &KeyWriter) -> GroupId {
        let group = tree.group(identity, &key.shape);
        match self.apart(tree, group, key) {
            None => group,
            Some(shape) => tree.group(identity, &shape),
        }
    }

    /// Returns the words of a separate group, if the body queried addresses and these live-ins overlap
    /// differently.
    fn apart(&self, tree: &Tree, group: GroupId, key: &KeyWriter) -> Option<Vec<u64>> {
        let warmed = tree.group_of(group).aliases.as_ref()?;
        let aliases = self.of(key);
        (**warmed != *aliases).then(|| {
            let mut shape = key.shape.clone();
            shape.push(OVERLAPS);
            shape.extend_from_slice(&aliases);
            shape
        })
    }
}

//! What a body can see of addresses: whether tensors show the same memory. A key must hold the answer.
//!
//! Exact addresses fix it. A copied live-in has none in its key, and a padded input lies in a buffer of its own
//! whatever was given; so for bodies that ask, how their live-ins overlap selects the group, and the recording.

use smallvec::SmallVec;

use super::{Core, Origin, Placement};
use crate::{
    tensor::RawTensor,
    tree::{Identity, Node},
    value::live_in::{KeyTensor, KeyWriter},
};

/// Between the words of a key and how its live-ins overlap. No key is the beginning of another.
const OVERLAPS: u64 = u64::MAX;

/// With an operand: it shows owned memory, at the address that follows.
const OWNED: u64 = 1 << 63;

/// Pairs of live-ins in one storage, and how far apart they begin.
pub(crate) type Aliases = SmallVec<[u64; 4]>;

impl Core {
    /// Whether two tensors of one layout show the same memory, as the caller of the function sees it.
    pub(crate) fn same_place(&self, a: &RawTensor, b: &RawTensor) -> bool {
        let padded = a.marks.any() || b.marks.any();
        if !padded && a.layout != b.layout {
            return false;
        }
        if let Some(run) = &self.run {
            run.asked.set(true);
        }
        // The caller knows nothing of padding.
        let real = |raw: &RawTensor| self.real_layout(raw.layout, raw.marks);
        if real(a) != real(b) {
            return false;
        }
        if a.epoch != self.epoch || b.epoch != self.epoch {
            return a.epoch == b.epoch && a.addr == b.addr;
        }
        let slots = [a, b].map(|raw| &self.slots[raw.slot as usize]);
        // What was given back early may lie where another does by now.
        if slots.iter().any(|s| s.home == Placement::Freed) {
            return a.slot == b.slot && a.addr == b.addr;
        }
        self.place_of(a.slot, a.addr) == self.place_of(b.slot, b.addr)
    }

    /// Where that address of a slot is for the caller: a padded input stands for what was given.
    pub(crate) fn place_of(&self, slot: u32, addr: u64) -> u64 {
        let slot = &self.slots[slot as usize];
        match slot.origin {
            Origin::Padded { from, .. } => from + (addr - slot.base),
            _ => addr,
        }
    }

    /// How the live-ins overlap that are not fixed by the addresses of their key.
    pub(crate) fn aliases(&self, key: &KeyWriter) -> Aliases {
        let place = |t: &KeyTensor| {
            let slot = &self.slots[t.slot as usize];
            let addr = self.place_of(t.slot, key.addrs[2 * t.operand as usize + 1]);
            let storage = match slot.origin {
                Origin::Padded { of, .. } => &self.slots[of as usize],
                _ if t.owned == 0 => slot,
                _ => return None,
            };
            Some((addr, storage.base, storage.base + storage.bytes))
        };
        let (mut aliases, mut padded) = (Aliases::new(), false);
        /// An operand, and its address and the bounds of its storage.
        type Seen = (u64, (u64, u64, u64));
        let mut seen: SmallVec<[Seen; 8]> = SmallVec::new();
        for tensor in &key.tensors {
            // Which owned memory a padded input shows is not in the key, and any view of that memory may be compared
            // with it, also one that the body makes.
            if let Origin::Padded { of, .. } = self.slots[tensor.slot as usize].origin
                && self.slots[of as usize].home == Placement::Owned
            {
                let addr = self.place_of(tensor.slot, key.addrs[2 * tensor.operand as usize + 1]);
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
        if let (true, Some(frame)) = (padded, &self.frame) {
            // Whether two layouts are one then depends on how many rows are real.
            aliases.extend(frame.symbols.iter().filter(|s| s.bucketed).map(|s| s.real as u64));
        }
        aliases
    }

    /// Whether a recording is one for live-ins that overlap as these do.
    pub(crate) fn sees(&self, node: &Node, key: &KeyWriter) -> bool {
        node.aliases.as_ref().is_none_or(|recorded| **recorded == *self.aliases(key))
    }

    /// The group of a key, if there is one.
    pub(crate) fn known_group(&self, identity: Identity, key: &KeyWriter) -> Option<usize> {
        let group = self.tree.known_group(identity, &key.shape)?;
        match self.apart(group, key) {
            None => Some(group),
            Some(shape) => self.tree.known_group(identity, &shape),
        }
    }

    /// The group of a key, made if it is new.
    pub(crate) fn group(&mut self, identity: Identity, key: &KeyWriter) -> usize {
        let group = self.tree.group(identity, &key.shape);
        match self.apart(group, key) {
            None => group,
            Some(shape) => self.tree.group(identity, &shape),
        }
    }

    /// The words of a group of its own, where the body asked for addresses and these live-ins overlap otherwise.
    pub(crate) fn apart(&self, group: usize, key: &KeyWriter) -> Option<Vec<u64>> {
        let warmed = self.tree.group_of(group).aliases.as_ref()?;
        let aliases = self.aliases(key);
        (**warmed != *aliases).then(|| {
            let mut shape = key.shape.clone();
            shape.push(OVERLAPS);
            shape.extend_from_slice(&aliases);
            shape
        })
    }

    /// The body of that run asked for addresses, or did not.
    pub(crate) fn learn_aliases(&mut self, group: usize, asked: bool, key: &KeyWriter) {
        if asked {
            let aliases = self.aliases(key);
            self.tree.group_mut(group).aliases.get_or_insert_with(|| aliases.as_slice().into());
        }
    }
}

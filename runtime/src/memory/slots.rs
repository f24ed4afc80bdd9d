//! Slots: the storages of tensors, and the number of handles of each.

use super::{
    Origin, Placement,
    pool::{Block, rounded},
};
use crate::value::{memory::SharedMemory, raw::SlotId};

/// One storage.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The number of handles. It has 64 bits, so that forgotten clones cannot make it wrap within centuries.
    pub(super) refs: u64,
    pub(super) placement: Placement,
    base: u64,
    bytes: u64,
    owner: Option<SharedMemory>,
    pub(super) origin: Origin,
    producer: &'static str,
    /// A block of the pool that is kept free while this lives, because recordings expect the result there.
    pub(super) stands_for: Option<u64>,
    /// The call in which it was made, in which alone its padding has a meaning.
    pub(super) call: u64,
}

/// The contents of a new slot.
#[derive(Debug)]
pub(crate) struct NewSlot {
    pub(crate) refs: u64,
    pub(crate) placement: Placement,
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) owner: Option<SharedMemory>,
    pub(crate) origin: Origin,
    pub(crate) producer: &'static str,
}

impl Slot {
    pub(crate) fn placement(&self) -> Placement {
        self.placement
    }

    /// Returns the start of its memory.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn end(&self) -> u64 {
        self.base + self.bytes
    }

    /// Returns the owner of its memory, if that is not an arena.
    pub(crate) fn owner(&self) -> Option<&SharedMemory> {
        self.owner.as_ref()
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns the operation that produced it.
    pub(crate) fn producer(&self) -> &'static str {
        self.producer
    }

    /// Returns whether it has a handle.
    pub(crate) fn is_held(&self) -> bool {
        self.refs > 0
    }

    /// Returns whether recordings expect a block of the pool instead.
    pub(crate) fn stands_for_block(&self) -> bool {
        self.stands_for.is_some()
    }

    /// Returns the call in which it was made.
    pub(crate) fn call(&self) -> u64 {
        self.call
    }

    /// Returns the units of its arena that it occupies.
    pub(super) fn block(&self) -> Block {
        Block { addr: self.base, len: rounded(self.bytes) }
    }
}

/// A slot whose last handle was dropped, and its contents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastRelease {
    pub(crate) placement: Placement,
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    /// A block of the pool that was kept free for it.
    pub(crate) stands_for: Option<u64>,
}

/// All slots of the running step, and the numbers of the step and of the call.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    all: Vec<Slot>,
    free: Vec<SlotId>,
    epoch: u64,
    /// Incremented when calls begin and end, so that everything between them has a number.
    call: u64,
}

impl Slots {
    /// Starts a generation: handles of earlier ones no longer refer to any slot.
    pub(super) fn begin_step(&mut self) {
        self.epoch += 1;
        self.all.clear();
        self.free.clear();
    }

    /// Notes that a call begins or ends.
    pub(super) fn next_call(&mut self) {
        self.call += 1;
    }

    /// Returns the number of the step.
    #[inline]
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the number of the call.
    #[inline]
    pub(super) fn call(&self) -> u64 {
        self.call
    }

    /// Reuses a free slot, or adds one.
    #[inline]
    pub(super) fn add(&mut self, new: NewSlot) -> SlotId {
        let NewSlot { refs, placement, base, bytes, owner, origin, producer } = new;
        let slot =
            Slot { refs, placement, base, bytes, owner, origin, producer, stands_for: None, call: self.call };
        match self.free.pop() {
            Some(id) => {
                self.all[id.index()] = slot;
                id
            }
            None => {
                self.all.push(slot);
                SlotId::at(self.all.len() - 1)
            }
        }
    }

    #[inline]
    pub(super) fn get(&self, id: SlotId) -> &Slot {
        &self.all[id.index()]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: SlotId) -> &mut Slot {
        &mut self.all[id.index()]
    }

    /// Returns the slot of a handle made in the step with that number, if that is this one.
    pub(super) fn of_step(&self, id: SlotId, epoch: u64) -> Option<&Slot> {
        self.all.get(id.index()).filter(|_| epoch == self.epoch)
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Slot> {
        self.all.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.all.iter_mut()
    }

    /// Returns the number of slots with a handle.
    pub(super) fn held(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// Releases one reference. A late one, from an earlier generation, is ignored.
    pub(super) fn release(&mut self, id: SlotId, epoch: u64) -> Option<LastRelease> {
        if epoch != self.epoch {
            return None;
        }
        let slot = &mut self.all[id.index()];
        slot.refs -= 1;
        if slot.refs > 0 {
            return None;
        }
        slot.owner = None;
        self.free.push(id);
        let (placement, base, bytes) = (slot.placement, slot.base, slot.bytes);
        Some(LastRelease { placement, base, bytes, stands_for: slot.stands_for.take() })
    }
}

#[cfg(test)]
impl Slots {
    pub(super) fn skip_steps(&mut self, steps: u64) {
        self.epoch += steps;
    }
}

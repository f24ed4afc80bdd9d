//! The memory of a runtime: its arenas, the slots of the tensors in them, owned memory, and the operations that copy.
//!
//! [`Memory`] does not depend on recordings or on the stream: callers that commit, copy or poison pass it the
//! backend, or it returns the freed block to them.

mod accounting;
mod alive;
mod arena;
mod copy;
mod leaks;
mod learned_placements;
mod lending;
mod maintenance;
mod measure;
mod owned;
mod persistent;
mod placement;
pub(crate) mod pool;
mod results_arena;
mod sleep;
mod slots;
mod weights;

use arena::ArenaAllocator;
use learned_placements::LearnedPlacements;
use owned::OwnedTable;
use persistent::PersistentSet;
use pool::{Block, LiveSet, Pool, StateId, Treap, guarded, rounded};
use slots::{NewSlot, Slots};
use weights::WeightArena;

use crate::{
    DType, Result,
    backend::{Backend, SharedMemory},
    value::{
        layout::{Layout, PaddedDims},
        owned::OwnerId,
        raw::RawTensor,
    },
};

pub(crate) use self::measure::{ArenaBytes, MemoryAside, OwnedBytes};
use crate::observe::memory::{ArenaUsage, MemoryArena};
pub(crate) use crate::value::raw::SlotId;
pub(crate) use alive::{Alive, EntryBlock};
pub(crate) use copy::{COPY, PAD};
pub use leaks::{Live, Tables};
pub(crate) use learned_placements::{Misplaced, RegionKey, RegionTarget};
pub(crate) use maintenance::Extent;
pub(crate) use persistent::Queues;
pub(crate) use placement::{BlockArena, GroupId, Ordinal, Origin, Placement};
pub(crate) use slots::{LastRelease, Slot};

/// A tensor to be created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewTensor {
    pub(crate) origin: Origin,
    /// The operation that produces it.
    pub(crate) producer: &'static str,
    pub(crate) dtype: DType,
    pub(crate) layout: Layout,
    pub(crate) marks: PaddedDims,
}

impl NewTensor {
    /// Describes a tensor without padding that is not made by a segment or a region.
    pub(crate) fn of(producer: &'static str, dtype: DType, layout: Layout) -> Self {
        Self { origin: Origin::Other, producer, dtype, layout, marks: PaddedDims::NONE }
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.layout.count() * self.dtype.size()) as u64
    }
}

/// A view of memory that has an owner; of memory without an identity, `owner` is `None`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnedView<'m> {
    pub(crate) owner: Option<OwnerId>,
    pub(crate) memory: &'m SharedMemory,
    pub(crate) dtype: DType,
    pub(crate) layout: Layout,
    pub(crate) marks: PaddedDims,
}

/// The state of the memory to which a handle refers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    Live(Origin),
    /// Freed after its last use according to warm-up.
    Freed {
        producer: &'static str,
    },
    /// Reused by now, or never computed.
    Invalid,
}

/// Arenas, slots and owned memory.
#[derive(Debug)]
pub(crate) struct Memory {
    pool: Pool,
    pool_arena: ArenaAllocator,
    results: ArenaAllocator,
    eager: ArenaAllocator,
    /// The blocks in the idle pool while it is borrowed.
    lent: Option<LiveSet>,
    lent_peak: u64,
    slots: Slots,
    /// Weights that can sleep, once there may be any.
    weights: Option<WeightArena>,
    /// Set if new weights are placed there.
    places_weights: bool,
    owned: OwnedTable,
    persistent: PersistentSet,
    learned: LearnedPlacements,
    /// The blocks that the last recording found live in the pool, if there were many.
    last_alive: Treap<EntryBlock>,
}

impl Memory {
    pub(crate) fn new(backend: &mut dyn Backend) -> Result<Self> {
        let pool_arena = ArenaAllocator::new(backend)?;
        Ok(Self {
            pool: Pool::new(pool_arena.base(), pool_arena.page),
            pool_arena,
            results: ArenaAllocator::new(backend)?,
            eager: ArenaAllocator::new(backend)?,
            lent: None,
            lent_peak: 0,
            slots: Slots::default(),
            weights: None,
            places_weights: false,
            owned: OwnedTable::default(),
            persistent: PersistentSet::default(),
            learned: LearnedPlacements::default(),
            last_alive: Treap::default(),
        })
    }

    /// Starts a generation of tensors: tensors of the previous one can no longer be reached, even through
    /// forgotten handles.
    pub(crate) fn begin_step(&mut self) {
        self.slots.begin_step();
        self.pool.reset();
        self.results.live.clear();
        self.eager.live.clear();
        self.lent = None;
        self.learned.forget_region();
        if let Some(weights) = &mut self.weights {
            weights.free_dropped();
        }
    }

    /// Begins a call; ends a forgotten borrow of the pool.
    pub(crate) fn begin_call(&mut self) {
        self.end_lending();
        self.slots.next_call();
    }

    /// Ends a call: blocks that it left in the pool become invalid, since the pool belongs to the next call.
    /// Returns the size and the producer of one such block.
    pub(crate) fn end_call(&mut self) -> Option<(u64, &'static str)> {
        self.slots.next_call();
        let mut left = None;
        if !self.pool.is_empty() {
            for slot in self.slots.iter_mut() {
                slot.stands_for = None;
                if slot.placement == Placement::Pool && slot.refs > 0 {
                    left.get_or_insert((slot.bytes(), slot.producer()));
                    slot.placement = Placement::Invalid;
                }
            }
            self.pool.reset();
        }
        self.learned.forget_region();
        left
    }

    /// Invalidates an input of a call, if it is a static input, because the next call overwrites it.
    pub(crate) fn end_input(&mut self, raw: &RawTensor) {
        if raw.epoch == self.slots.epoch() {
            let slot = self.slots.get_mut(raw.slot);
            if slot.placement == Placement::StaticInput {
                slot.placement = Placement::Invalid;
            }
        }
    }

    /// Returns the number of the running step's generation of tensors.
    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.slots.epoch()
    }

    /// Returns the number that distinguishes sizes and padding of one call from those of another.
    #[inline]
    pub(crate) fn call_number(&self) -> u64 {
        self.slots.call()
    }

    /// Returns the slot of a handle of this step.
    #[inline]
    pub(crate) fn slot(&self, id: SlotId) -> &Slot {
        self.slots.get(id)
    }

    /// Adds a reference to a slot; a late one, of an earlier generation, is ignored.
    #[inline]
    pub(crate) fn retain(&mut self, id: SlotId, epoch: u64) {
        if epoch == self.slots.epoch() {
            self.slots.get_mut(id).refs += 1;
        }
    }

    /// Releases one reference. Returns the contents of the slot if that was the last one.
    pub(crate) fn release(&mut self, id: SlotId, epoch: u64) -> Option<LastRelease> {
        self.slots.release(id, epoch)
    }

    #[inline]
    pub(crate) fn is_live(&self, id: SlotId, padded: bool) -> bool {
        let slot = self.slots.get(id);
        !matches!(slot.placement, Placement::Invalid | Placement::Freed)
            && (!padded || slot.call == self.slots.call())
    }

    /// Returns whether a handle may be used. Its padding must belong to the running call as well, because its
    /// symbols mean something else in the next one.
    pub(crate) fn liveness(&self, raw: &RawTensor) -> Liveness {
        match self.slots.of_step(raw.slot, raw.epoch) {
            Some(slot) if self.is_live(raw.slot, raw.marks.any()) => Liveness::Live(slot.origin),
            Some(slot) if slot.placement == Placement::Freed => Liveness::Freed { producer: slot.producer() },
            _ => Liveness::Invalid,
        }
    }

    /// A tensor of the caller enters the call unchanged: as it has no padding, its padding is that of this
    /// call.
    pub(crate) fn belongs_to_call(&mut self, id: SlotId) {
        self.slots.get_mut(id).call = self.slots.call();
    }

    /// Notes that a static input contains that tensor, with padding.
    pub(crate) fn note_padded_copy(&mut self, input: &RawTensor, given: &RawTensor) {
        self.slots.get_mut(input.slot).origin = Origin::Padded { of: given.slot, from: given.addr };
    }

    /// Returns whether a handle shows this tensor, which is a static input.
    pub(crate) fn shows_static(&self, raw: &RawTensor) -> bool {
        let slot = self.slots.of_step(raw.slot, raw.epoch);
        slot.is_some_and(|s| s.is_held() && s.placement() == Placement::StaticInput && s.base() == raw.addr)
    }

    /// Returns whether a tensor of this step shows the owned memory that begins there. This looks at the tensors that are alive.
    pub(crate) fn has_view_of(&self, addr: u64) -> bool {
        let shows =
            |slot: &Slot| slot.is_held() && slot.placement() == Placement::Owned && slot.base() == addr;
        self.slots.iter().any(shows)
    }

    /// Creates a tensor of owned memory, with one reference.
    pub(crate) fn adopt(&mut self, view: OwnedView<'_>) -> RawTensor {
        self.adopt_as(Placement::Owned, "owned memory", view)
    }

    /// Like [`adopt`](Self::adopt); in an eager region, it is one of the region's allocations.
    #[cfg(any(feature = "cuda", test))]
    pub(crate) fn adopt_in_region(&mut self, view: OwnedView<'_>) -> RawTensor {
        let origin = self.learned.adopted();
        let raw = self.adopt(view);
        if let Some(origin) = origin {
            self.slots.get_mut(raw.slot).origin = origin;
        }
        raw
    }

    /// Like [`adopt`](Self::adopt), for a static input, which the next call overwrites.
    pub(crate) fn adopt_static(&mut self, view: OwnedView<'_>) -> RawTensor {
        self.adopt_as(Placement::StaticInput, "a static input", view)
    }

    fn adopt_as(&mut self, placement: Placement, producer: &'static str, view: OwnedView<'_>) -> RawTensor {
        let OwnedView { owner, memory, dtype, layout, marks } = view;
        let addr = memory.addr();
        let slot = self.slots.add(NewSlot {
            refs: 1,
            placement,
            base: addr,
            bytes: memory.len(),
            owner: Some(memory.clone()),
            origin: Origin::Other,
            producer,
        });
        RawTensor { slot, epoch: self.slots.epoch(), dtype, marks, addr, owner, layout }
    }

    /// Creates a tensor in a block of its own.
    pub(crate) fn tensor_in(&mut self, arena: BlockArena, block: Block, new: &NewTensor) -> RawTensor {
        let &NewTensor { origin, producer, dtype, layout, marks } = new;
        let slot = self.slots.add(NewSlot {
            refs: 1,
            placement: arena.into(),
            base: block.addr,
            bytes: new.bytes(),
            owner: None,
            origin,
            producer,
        });
        RawTensor { slot, epoch: self.slots.epoch(), dtype, marks, addr: block.addr, owner: None, layout }
    }

    /// Creates the slot of an output of a recording that runs. The caller owns its block.
    #[inline]
    pub(crate) fn output_slot(
        &mut self,
        placement: Placement,
        block: RecordedBlock,
        origin: Origin,
    ) -> SlotId {
        let RecordedBlock { base, bytes, refs, producer } = block;
        self.slots.add(NewSlot { refs: refs.into(), placement, base, bytes, owner: None, origin, producer })
    }

    /// Adds a reference to a slot of this step.
    #[inline]
    pub(crate) fn share(&mut self, id: SlotId) {
        self.slots.get_mut(id).refs += 1;
    }

    /// Places a block, and commits its memory.
    pub(crate) fn place(
        &mut self,
        backend: &mut dyn Backend,
        arena: BlockArena,
        bytes: u64,
    ) -> Result<Block> {
        match arena {
            BlockArena::Pool => {
                let block = self.pool.place(bytes);
                if let Err(error) = self.pool_arena.commit(backend, block, bytes) {
                    self.pool.free(block.addr);
                    return Err(error);
                }
                Ok(block)
            }
            BlockArena::Results => self.results.place(backend, bytes),
            BlockArena::Eager => self.eager.place(backend, bytes),
            BlockArena::Borrowed => self.place_borrowed(backend, bytes),
        }
    }

    /// Frees a block. Returns false if no block began there.
    pub(crate) fn free(&mut self, arena: BlockArena, base: u64) -> bool {
        match arena {
            BlockArena::Pool => self.pool.free(base),
            BlockArena::Results => self.results.live.remove(base).is_some(),
            BlockArena::Eager => self.eager.live.remove(base).is_some(),
            BlockArena::Borrowed => self.lent.as_mut().is_some_and(|live| live.remove(base).is_some()),
        }
    }

    /// Marks a slot that a recording frees after its last use. Returns its block, which the caller frees.
    pub(crate) fn free_early(&mut self, id: SlotId, origin: Origin) -> Option<(u64, u64)> {
        let slot = self.slots.get_mut(id);
        // A slot whose handle was dropped before may belong to another tensor by now.
        if slot.origin != origin || slot.refs == 0 || slot.placement != Placement::Pool {
            return None;
        }
        slot.placement = Placement::Freed;
        Some((slot.base(), slot.bytes()))
    }

    /// Invalidates a tensor, whose block the caller frees.
    pub(crate) fn invalidate_slot(&mut self, id: SlotId) {
        self.slots.get_mut(id).placement = Placement::Invalid;
    }

    /// Moves a tensor to a slot of its own, with one reference; the handles of the old slot are invalid.
    pub(crate) fn move_slot(&mut self, id: SlotId) -> SlotId {
        let slot = self.slots.get_mut(id);
        let new = NewSlot {
            refs: 1,
            placement: std::mem::replace(&mut slot.placement, Placement::Invalid),
            base: slot.base(),
            bytes: slot.bytes(),
            owner: slot.owner().cloned(),
            origin: slot.origin,
            producer: slot.producer(),
        };
        let stands_for = slot.stands_for.take();
        let moved = self.slots.add(new);
        self.slots.get_mut(moved).stands_for = stands_for;
        moved
    }

    /// Invalidates tensors that a failed body made and that are still held: they were never computed. `made`
    /// states which blocks are the body's.
    pub(crate) fn abandon(&mut self, slots: &[SlotId], made: impl Fn(u64) -> bool) {
        for &id in slots {
            let slot = self.slots.get(id);
            let base = slot.base();
            let arena = match slot.placement {
                Placement::Pool => BlockArena::Pool,
                Placement::Results => BlockArena::Results,
                _ => continue,
            };
            if slot.refs == 0 || !made(base) {
                continue;
            }
            self.free(arena, base);
            self.slots.get_mut(id).placement = Placement::Invalid;
        }
    }

    /// Returns the number of bytes from a block's address that belong to it alone.
    pub(crate) fn own_bytes(&self, bytes: u64) -> u64 {
        if self.pool_arena.page > 0 { guarded(bytes) } else { rounded(bytes) }
    }

    /// Returns the pool, for reading.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Returns the pool's state between two segments.
    #[inline]
    pub(crate) fn commit_frees(&mut self) -> StateId {
        self.pool.commit_frees()
    }

    /// Moves the pool to a known state: the one after a replay.
    #[inline]
    pub(crate) fn restore(&mut self, state: StateId) {
        self.pool.restore(state);
    }

    pub(crate) fn begin_body(&mut self) {
        self.pool.begin_body();
    }

    /// Says that freed blocks of the body that runs are to cool before they are used again.
    pub(crate) fn cool_freed(&mut self) {
        self.pool.cool_freed();
    }

    pub(crate) fn end_body(&mut self) -> StateId {
        self.pool.end_body()
    }

    pub(crate) fn owned(&self) -> &OwnedTable {
        &self.owned
    }

    pub(crate) fn owned_mut(&mut self) -> &mut OwnedTable {
        &mut self.owned
    }

    pub(crate) fn persistent(&self) -> &PersistentSet {
        &self.persistent
    }

    pub(crate) fn persistent_mut(&mut self) -> &mut PersistentSet {
        &mut self.persistent
    }

    /// Returns the learned placements of eager regions' results.
    pub(crate) fn learned_mut(&mut self) -> &mut LearnedPlacements {
        &mut self.learned
    }

    pub(crate) fn learned(&self) -> &LearnedPlacements {
        &self.learned
    }
}

/// A block of a recording, as seen from one of its outputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordedBlock {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) refs: u32,
    pub(crate) producer: &'static str,
}

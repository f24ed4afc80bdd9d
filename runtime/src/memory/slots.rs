//! Slots: what tensors show. Where their memory comes from, how their handles are counted, and when it goes.

use super::{Core, Origin, Placement, RunKind, Slot, decide, run, tape::Act};
use crate::{
    DType, Error, Result,
    backend::SharedMemory,
    memory::pool::{Block, guarded, rounded},
    tensor::RawTensor,
    value::layout::{Layout, Marks},
};

/// Puts a slot where one is free, else behind all.
#[inline]
pub(crate) fn put_slot(slots: &mut Vec<Slot>, free: &mut Vec<u32>, slot: Slot) -> u32 {
    match free.pop() {
        Some(at) => {
            slots[at as usize] = slot;
            at
        }
        None => {
            slots.push(slot);
            (slots.len() - 1) as u32
        }
    }
}

impl Core {
    pub(crate) fn new_slot(&mut self, slot: Slot) -> u32 {
        put_slot(&mut self.slots, &mut self.free_slots, slot)
    }

    /// Takes back a list of outputs that was decoded.
    pub(crate) fn recycle(&mut self, mut entries: decide::Entries) {
        /// More than are on their way at once, unless calls are nested.
        const SPARE: usize = 8;
        entries.clear();
        if self.spare_entries.len() < SPARE {
            self.spare_entries.push(entries);
        }
    }

    pub(crate) fn retain(&mut self, slot: u32, epoch: u64) {
        if epoch == self.epoch {
            self.slots[slot as usize].refs += 1;
        }
    }

    /// Gives back one count; a late one, from an earlier generation, is ignored.
    pub(crate) fn release(&mut self, slot: u32, epoch: u64) {
        if epoch != self.epoch {
            return;
        }
        let s = &mut self.slots[slot as usize];
        s.refs -= 1;
        if s.refs > 0 {
            return;
        }
        let (home, base, bytes, stands_for) = (s.home, s.base, s.bytes, s.stands_for.take());
        s.owner = None;
        self.free_slots.push(slot);
        self.free_block(home, base, bytes);
        if let Some(block) = stands_for {
            self.pool.free(block);
        }
    }

    pub(crate) fn free_block(&mut self, home: Placement, base: u64, bytes: u64) {
        if matches!(home, Placement::Owned | Placement::StaticInput | Placement::Invalid | Placement::Freed) {
            return;
        }
        let freed = match (self.put_off(home, base, bytes), home) {
            (Some(false), _) => return,
            // From here on the branch that made it may have it again.
            (Some(true), _) => true,
            (None, Placement::Pool) => self.pool.free(base),
            (None, Placement::Results) => self.results.live.remove(base).is_some(),
            (None, Placement::Borrowed) => {
                self.scratch.as_mut().is_some_and(|live| live.remove(base).is_some())
            }
            (None, _) => self.eager.live.remove(base).is_some(),
        };
        debug_assert!(freed, "a block that was not live was freed");
        if let Some(run) = &mut self.run {
            run.forget(base);
        }
        if self.backend.wants_poison()
            && let Err(error) = self.put(Act::Poison { addr: base, bytes: self.own_bytes(bytes) })
        {
            match &mut self.run {
                // The capture is spoilt, which its end will say.
                Some(run) if run.kind == RunKind::Record => run.fail(&error),
                // Dropping cannot fail: the next call that can reports it.
                _ => drop(self.deferred.get_or_insert(error)),
            }
        }
    }

    /// The bytes from a block's address that belong to it alone.
    pub(crate) fn own_bytes(&self, bytes: u64) -> u64 {
        if self.pool_zone.page > 0 { guarded(bytes) } else { rounded(bytes) }
    }

    /// A tensor of owned memory, with one count.
    pub(crate) fn adopt(
        &mut self,
        id: u64,
        memory: &SharedMemory,
        dtype: DType,
        layout: Layout,
        marks: Marks,
    ) -> RawTensor {
        let slot = self.new_slot(Slot {
            refs: 1,
            home: Placement::Owned,
            base: memory.addr(),
            bytes: memory.len(),
            owner: Some(memory.clone()),
            origin: Origin::Other,
            made_by: "owned memory",
            stands_for: None,
            call: self.calls,
        });
        RawTensor { slot, epoch: self.epoch, dtype, marks, addr: memory.addr(), owned: id, layout }
    }

    pub(crate) fn adopt_static(
        &mut self,
        id: u64,
        memory: &SharedMemory,
        dtype: DType,
        layout: Layout,
        marks: Marks,
    ) -> RawTensor {
        let raw = self.adopt(id, memory, dtype, layout, marks);
        let slot = &mut self.slots[raw.slot as usize];
        (slot.home, slot.made_by) = (Placement::StaticInput, "a static input");
        raw
    }

    /// A static input holds that tensor, with padding.
    pub(crate) fn stands_for(&mut self, input: &RawTensor, given: &RawTensor) {
        self.slots[input.slot as usize].origin = Origin::Padded { of: given.slot, from: given.addr };
    }

    pub(crate) fn place(&mut self, home: Placement, bytes: u64) -> Result<Block> {
        if let Some(block) = self.placed_again(home, bytes) {
            return Ok(block);
        }
        let block = match home {
            Placement::Pool => {
                let block = self.pool.place(bytes);
                if let Err(error) = self.pool_zone.commit(&mut *self.backend, block, bytes) {
                    self.pool.free(block.addr);
                    return Err(error);
                }
                block
            }
            Placement::Results => self.results.place(&mut *self.backend, bytes)?,
            Placement::Borrowed => self.place_scratch(bytes)?,
            _ => self.eager.place(&mut *self.backend, bytes)?,
        };
        self.placed_in_branch(block);
        Ok(block)
    }

    pub(crate) fn new_tensor(
        &mut self,
        home: Placement,
        origin: Origin,
        op: &'static str,
        dtype: DType,
        layout: Layout,
        marks: Marks,
    ) -> Result<RawTensor> {
        let bytes = (layout.count() * dtype.size()) as u64;
        let block = self.place(home, bytes)?;
        Ok(self.tensor_in((home, block), origin, op, dtype, layout, marks))
    }

    /// A tensor in a block that is its own.
    pub(crate) fn tensor_in(
        &mut self,
        (home, block): (Placement, Block),
        origin: Origin,
        op: &'static str,
        dtype: DType,
        layout: Layout,
        marks: Marks,
    ) -> RawTensor {
        let slot = self.new_slot(Slot {
            refs: 1,
            home,
            base: block.addr,
            bytes: (layout.count() * dtype.size()) as u64,
            owner: None,
            origin,
            made_by: op,
            stands_for: None,
            call: self.calls,
        });
        RawTensor { slot, epoch: self.epoch, dtype, marks, addr: block.addr, owned: 0, layout }
    }

    /// A tensor in the eager arena, whatever runs.
    pub(crate) fn eager_tensor(
        &mut self,
        op: &'static str,
        dtype: DType,
        layout: Layout,
    ) -> Result<RawTensor> {
        let home = self.eager_home((layout.count() * dtype.size()) as u64);
        self.new_tensor(home, Origin::Other, op, dtype, layout, Marks::NONE)
    }

    /// The output of an operation: where it goes depends on what runs.
    pub(crate) fn allocate_output(
        &mut self,
        op: &'static str,
        dtype: DType,
        layout: Layout,
        marks: Marks,
    ) -> Result<RawTensor> {
        self.may_operate(op)?;
        if let Some(run) = &mut self.run
            && run.kind != RunKind::Audit
        {
            let (group, ordinal) = (run.group, run.next_ordinal());
            let home = if self.tree.is_result(group, ordinal) { Placement::Results } else { Placement::Pool };
            let origin = match group {
                run::NO_GROUP => Origin::Other,
                _ => Origin::Segment { group, ordinal },
            };
            let raw = self.new_tensor(home, origin, op, dtype, layout, marks)?;
            if let Some(run) = &mut self.run {
                let slot = &self.slots[raw.slot as usize];
                run.made(ordinal, raw.slot, slot.base, rounded(slot.bytes), home);
            }
            return Ok(raw);
        }
        let bytes = (layout.count() * dtype.size()) as u64;
        let home = self.eager_home(bytes);
        match self.in_region(bytes) {
            None => self.new_tensor(home, Origin::Other, op, dtype, layout, marks),
            Some((origin, Some((home, Some(block))))) => {
                Ok(self.tensor_in((home, block), origin, op, dtype, layout, marks))
            }
            Some((origin, place)) => {
                self.new_tensor(place.map_or(home, |(home, _)| home), origin, op, dtype, layout, marks)
            }
        }
    }

    /// Refuses a tensor whose memory may be another's by now. Its padding is that of its call, too: the
    /// symbols that it names mean something else in the next one.
    pub(crate) fn check_live(&self, op: &'static str, raw: &RawTensor) -> Result<()> {
        if raw.epoch == self.epoch && self.slot_is_live(raw.slot, raw.marks.any()) {
            self.looked_at(raw.slot);
            return Ok(());
        }
        let slot = self.slots.get(raw.slot as usize).filter(|_| raw.epoch == self.epoch);
        match slot {
            Some(&Slot { home: Placement::Freed, made_by, .. }) => {
                if let Some(run) = &self.run {
                    run.late_use.set(true);
                }
                Err(Error::UsedAfterLastUse { op, made_by })
            }
            _ => Err(Error::NeverComputed { op }),
        }
    }

    pub(crate) fn slot_is_live(&self, slot: u32, padded: bool) -> bool {
        let slot = &self.slots[slot as usize];
        !matches!(slot.home, Placement::Invalid | Placement::Freed) && (!padded || slot.call == self.calls)
    }
}

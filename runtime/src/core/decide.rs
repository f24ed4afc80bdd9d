//! What to do with a segment: replay; what else there is, `miss` decides.

use smallvec::SmallVec;

use super::{Core, Origin, Placement, RunKind, Slot};
use crate::{
    Error, Result,
    base::plan::Site,
    memory::{
        pool::{Block, LiveSet, rounded},
        slots::put_slot,
    },
    tensor::live_out::Entry,
    tree::{Identity, Node, Stored},
    value::live_in::KeyWriter,
};

/// Outputs on their way to being decoded. A list goes back to the core when they are: it passes through many
/// hands, so it is not held inline, and a replay allocates none.
pub(crate) type Entries = Vec<Entry>;

pub(crate) enum Decision {
    /// The recording runs; these are its outputs, each tensor with one count.
    Replayed(Entries),
    /// The body must run.
    Run(RunKind),
    /// The recording of that index must be compared with its body, then run.
    Audit(usize),
}

/// Whether the blocks that a recording gives its results are not held.
#[inline]
pub(crate) fn results_are_free(node: &Node, results: &LiveSet) -> bool {
    node.blocks.iter().all(|b| {
        b.home != Placement::Results || results.is_free(Block { addr: b.addr, len: rounded(b.bytes) })
    })
}

/// How far a live-in lies from where the recording has it.
#[inline]
fn shift(node: &Node, key: &KeyWriter, place: Option<u32>) -> u64 {
    let place = place.and_then(|at| node.places.get(at as usize));
    place.map_or(0, |p| key.addrs[2 * p.operand as usize + 1].wrapping_sub(p.addr))
}

impl Core {
    /// Adds what a key must hold besides the live-ins: the memory of the counts of padded dimensions, and what
    /// the batch is told apart by.
    pub(crate) fn frame_key(&self, key: &mut KeyWriter) {
        let Some(frame) = &self.frame else { return };
        if key.has_padding() {
            key.addrs.extend([frame.block_id, frame.block.addr()]);
        }
        if let Some(adapters) = frame.adapters {
            key.word(adapters as u64);
        }
    }

    pub(crate) fn decide(
        &mut self,
        site: &'static Site,
        identity: Identity,
        key: &KeyWriter,
    ) -> Result<Decision> {
        if let Some(error) = self.deferred.take() {
            return Err(error);
        }
        self.check_inputs()?;
        if key.foreign {
            return Err(Error::DifferentRuntimes { op: "a live-in of a segment" });
        }
        if !key.tensors.iter().all(|t| self.slot_is_live(t.slot, t.padded)) {
            return Err(Error::NeverComputed { op: "a live-in of a segment" });
        }
        if self.sharing.is_some() {
            self.occurrences.count(identity);
        }
        let entry = self.pool.settle();
        let free = |node: &Node| {
            results_are_free(node, &self.results.live) && (node.aliases.is_none() || self.sees(node, key))
        };
        if let Some(at) = self.tree.find(identity, entry, &key.shape, &key.addrs, free) {
            if self.audit_is_due(at) {
                return Ok(Decision::Audit(at));
            }
            return self.replay(at, key).map(Decision::Replayed);
        }
        self.decide_missed(site, identity, key, entry)
    }

    /// Whether this replay is to be compared with its body.
    pub(crate) fn audit_is_due(&self, at: usize) -> bool {
        let every = self.frame.as_ref().map_or(0, |f| f.audit_every);
        every > 0 && self.tree.node(at).is_some_and(|n| (n.hits + 1).is_multiple_of(u64::from(every)))
    }

    /// Runs a recording. The pool is in its exit state afterwards.
    pub(crate) fn replay(&mut self, at: usize, key: &KeyWriter) -> Result<Entries> {
        if self.tree.node(at).is_some_and(|n| n.crowded != 0) {
            return self.replay_apart(at, key);
        }
        self.run_recording(at)?;
        self.hand_over(at, key, &[])
    }

    /// Sends a recording on its way. The pool is in its exit state afterwards.
    pub(crate) fn run_recording(&mut self, at: usize) -> Result<()> {
        self.check_committed(at)?;
        if self.saver.is_some() {
            let writes = self.tree.node(at).map(|n| n.writes.clone()).unwrap_or_default();
            self.save_memory(&writes)?;
        }
        if let Err(error) = self.make_current(at) {
            self.tree.failed(at, &error);
            return Err(error);
        }
        let Some(node) = self.tree.node(at) else { return Err(Error::NeverComputed { op: "a replay" }) };
        if let Some(exec) = &node.exec {
            let block = self.pending.take();
            let waiting = block.is_some();
            if let Err(error) = self.backend.replay(exec, block) {
                if waiting {
                    self.lost_inputs = Some(error.to_string());
                }
                self.tree.failed(at, &error);
                return Err(error);
            }
        }
        self.pool.restore(node.exit);
        Ok(())
    }

    /// The outputs of a recording that runs. `bases` says where its blocks went that were moved.
    pub(crate) fn hand_over(&mut self, at: usize, key: &KeyWriter, bases: &[Option<u64>]) -> Result<Entries> {
        let Some(node) = self.tree.node(at) else { return Err(Error::NeverComputed { op: "a replay" }) };
        let (site, group, number) = (node.site, node.group, node.number());
        let mut slots: SmallVec<[u32; 4]> = SmallVec::new();
        for (index, b) in node.blocks.iter().enumerate() {
            let moved = bases.get(index).copied().flatten();
            if b.home == Placement::Results && moved.is_none() {
                self.results.live.insert(Block { addr: b.addr, len: rounded(b.bytes) });
            }
            let slot = Slot {
                refs: b.refs.into(),
                home: b.home,
                base: moved.unwrap_or(b.addr),
                bytes: b.bytes,
                owner: None,
                origin: Origin::Segment { group, ordinal: b.ordinal },
                made_by: b.made_by,
                stands_for: None,
                call: self.calls,
            };
            slots.push(put_slot(&mut self.slots, &mut self.free_slots, slot));
        }
        let mut entries = self.spare_entries.pop().unwrap_or_default();
        let mut adopted: SmallVec<[(usize, usize); 1]> = SmallVec::new();
        for (index, stored) in node.outputs.iter().enumerate() {
            entries.push(match stored {
                Stored::Own(block, raw) => {
                    let mut raw = *raw;
                    if let Some(base) = bases.get(*block as usize).copied().flatten() {
                        raw.addr = base + (raw.addr - node.blocks[*block as usize].addr);
                    }
                    (raw.slot, raw.epoch) = (slots[*block as usize], self.epoch);
                    Entry::Tensor(raw)
                }
                Stored::LiveIn(live_in, place, raw) => {
                    let mut raw = *raw;
                    raw.addr = raw.addr.wrapping_add(shift(node, key, *place));
                    (raw.slot, raw.epoch) = (key.tensors[*live_in as usize].slot, self.epoch);
                    self.slots[raw.slot as usize].refs += 1;
                    Entry::Tensor(raw)
                }
                Stored::Owned(_, raw) => {
                    adopted.push((entries.len(), index));
                    Entry::Tensor(*raw)
                }
                Stored::Word(w) => Entry::Word(*w),
                Stored::Text(t) => Entry::Text(t.clone()),
                Stored::Size(dim) => Entry::Size(*dim),
            });
        }
        for (entry, output) in adopted {
            let Some(Stored::Owned(memory, raw)) = self.tree.node(at).map(|n| n.outputs[output].clone())
            else {
                continue;
            };
            let base = self.adopt(raw.owned, &memory, raw.dtype, raw.layout, raw.marks);
            entries[entry] =
                Entry::Tensor(crate::tensor::RawTensor { slot: base.slot, epoch: base.epoch, ..raw });
        }
        self.tree.follow(at);
        self.log.replayed(site, number);
        Ok(entries)
    }
}

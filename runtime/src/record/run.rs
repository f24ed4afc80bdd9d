//! One execution of a segment body: in warm-up, while recording, or for an audit.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use super::{Alive, Core, Phase, Placement, Slot, copied_inputs::Redirects, last_use::Uses, tape::Tape};
use crate::{
    Error, Result,
    backend::SharedMemory,
    base::plan::Site,
    memory::pool::StateId,
    tensor::{
        RawTensor,
        live_out::{Encoder, Entry},
    },
    tree::{CopiedInput, Identity, Links, LiveInPlace, Node, Positions, TraceOp, Usage, masked},
    value::live_in::KeyWriter,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunKind {
    /// Eagerly, in the pool.
    Warm,
    /// Eagerly, in the pool, where nothing is to be learnt: it gets no graph.
    Eager,
    /// Into a capture.
    Record,
    /// Eagerly, outside the pool, to compare with a replay.
    Audit,
}

/// The group of a run whose shape is not kept.
pub(crate) const NO_GROUP: usize = usize::MAX;

/// A live-in that the recording under way reads from a buffer of its own.
#[derive(Debug)]
pub(crate) struct Redirect {
    pub(crate) position: u32,
    /// Where the live-in begins, and where its storage ends.
    pub(crate) from: u64,
    pub(crate) end: u64,
    pub(crate) memory: SharedMemory,
    /// The first and one past the last byte that is read, from `from` on.
    pub(crate) touched: Option<(u64, u64)>,
}

#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) kind: RunKind,
    pub(crate) site: &'static Site,
    pub(crate) group: usize,
    pub(crate) trace: Vec<TraceOp>,
    pub(crate) identity: Identity,
    entry: StateId,
    before: Phase,
    ordinal: u32,
    /// Live-in memory: ranges that a recording may bake.
    known: Known,
    /// The run's own blocks that are alive: start, end.
    pub(crate) own: BTreeMap<u64, u64>,
    pub(crate) redirects: Redirects,
    /// Only of recordings.
    pub(crate) tape: Tape,
    /// When the capture began.
    begun: Option<Instant>,
    pub(crate) slots: Vec<u32>,
    /// Which operations use which allocations.
    pub(crate) uses: Uses,
    /// The body asked whether tensors show the same memory.
    pub(crate) asked: Cell<bool>,
    /// Something was used after its last use: the body does something else than in warm-up.
    pub(crate) late_use: Cell<bool>,
    owned: Vec<(u64, SharedMemory)>,
    /// What was alive in the pool at its start; only of recordings.
    alive: Alive,
    writes: BTreeSet<u64>,
    failure: Option<Failure>,
    /// State as it was before an audited body wrote it, with the copy's tensor.
    pub(crate) undo: Vec<(SharedMemory, RawTensor)>,
}

impl Redirect {
    /// As the recording keeps it.
    pub(crate) fn done(&self) -> CopiedInput {
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

/// The first error of a run that its body may have swallowed.
#[derive(Clone, Debug)]
enum Failure {
    /// The device is lost: whatever the body made of it, this is what the caller must know.
    Lost {
        device: String,
        why: String,
    },
    Other(String),
}

impl Run {
    pub(crate) fn next_ordinal(&mut self) -> u32 {
        self.ordinal += 1;
        self.ordinal - 1
    }

    pub(crate) fn made(&mut self, ordinal: u32, slot: u32, base: u64, len: u64, home: Placement) {
        self.own.insert(base, base + len);
        self.uses.made(ordinal, slot, (base, base + len), home == Placement::Pool);
        self.slots.push(slot);
    }

    /// A block was freed; its memory may be used again by this run, not by accident.
    pub(crate) fn forget(&mut self, base: u64) {
        self.own.remove(&base);
        self.uses.forget(base);
    }

    /// What the host code was doing before the run.
    pub(crate) fn phase_before(&self) -> Phase {
        self.before
    }

    pub(crate) fn fail(&mut self, error: &Error) {
        self.failure.get_or_insert_with(|| match error {
            Error::ContextLost { device, why } => Failure::Lost { device: device.clone(), why: why.clone() },
            other => Failure::Other(other.to_string()),
        });
    }

    pub(crate) fn wrote(&mut self, addr: u64) {
        self.writes.insert(addr);
    }

    pub(crate) fn knows(&self, range: (u64, u64)) -> bool {
        self.known.holds(range) || holds(&self.own, range)
    }
}

/// Where the live-ins in arenas lie now.
fn places(key: &KeyWriter) -> Box<[LiveInPlace]> {
    let tensors = (0u32..).zip(&key.tensors).zip(&key.extents);
    let arenas = tensors.filter(|((_, t), _)| t.owned == 0);
    arenas
        .map(|((tensor, t), &bytes)| LiveInPlace {
            tensor,
            operand: t.operand,
            addr: key.addrs[2 * t.operand as usize + 1],
            bytes,
        })
        .collect()
}

/// Whether one of these blocks, which do not overlap, holds the range.
pub(crate) fn holds(blocks: &BTreeMap<u64, u64>, (start, end): (u64, u64)) -> bool {
    blocks.range(..=start).next_back().is_some_and(|(_, &block_end)| end <= block_end)
}

/// Ranges of memory, any of which may overlap.
#[derive(Debug)]
struct Known(Vec<(u64, u64)>);

impl Known {
    pub(crate) fn new(mut ranges: Vec<(u64, u64)>) -> Self {
        ranges.sort_unstable();
        // Each with the farthest end of those that start no later.
        let mut farthest = 0;
        for (_, end) in &mut ranges {
            farthest = farthest.max(*end);
            *end = farthest;
        }
        Self(ranges)
    }

    /// Whether one of them holds the range.
    pub(crate) fn holds(&self, (start, end): (u64, u64)) -> bool {
        let after = self.0.partition_point(|&(s, _)| s <= start);
        after > 0 && end <= self.0[after - 1].1
    }
}

impl Core {
    /// Starts to run a body. `key` was written with `collect`.
    pub(crate) fn begin_run(
        &mut self,
        kind: RunKind,
        site: &'static Site,
        identity: Identity,
        key: &KeyWriter,
    ) -> Result<()> {
        let group = match kind {
            RunKind::Eager => self.known_group(identity, key).unwrap_or(NO_GROUP),
            _ => self.group(identity, key),
        };
        if group != NO_GROUP {
            self.tree.group_mut(group).site = Some(site);
        }
        let mut known: Vec<(u64, u64)> = Vec::new();
        let mut owned = key.owned.clone();
        for raw in key.tensors.iter().filter(|t| kind != RunKind::Record || t.owned != 0) {
            let slot = &self.slots[raw.slot as usize];
            known.push((slot.base, slot.base + slot.bytes));
            if let (Some(memory), true) = (&slot.owner, raw.owned != 0) {
                owned.push((raw.owned, memory.clone()));
            }
        }
        known.extend(owned.iter().map(|(_, m)| (m.addr(), m.addr() + m.len())));
        if let Some(frame) = &self.frame {
            // What is recorded goes with the graph object. The counts of padded dimensions are in its block, which a body
            // without padding in its key must not read: it would not know whose; see `Core::frame_key`.
            if key.has_padding() || matches!(identity, Identity::Full(_)) {
                known.push((frame.block.addr(), frame.block.addr() + frame.block.len()));
            }
            owned.push((frame.block_id, frame.block.clone()));
        }
        let entry = if kind == RunKind::Audit { StateId::EMPTY } else { self.pool.settle() };
        let mut redirects = Redirects::default();
        let mut alive = Alive::default();
        let mut tape = Tape::default();
        let begun = (kind == RunKind::Record).then(Instant::now);
        if kind == RunKind::Record {
            redirects = self.redirects(group, key)?;
            for tensor in key.tensors.iter().filter(|t| t.owned == 0) {
                // Of one that is copied, nothing but itself is turned to the buffer: the rest of its block is unknown.
                let slot = &self.slots[tensor.slot as usize];
                let copied = redirects.of(tensor.operand);
                known.push((copied.map_or(slot.base, |r| r.from), slot.base + slot.bytes));
            }
            tape = self.start_capture(site, redirects.all())?;
            alive = self.alive_in_pool();
        }
        if kind != RunKind::Audit {
            self.pool.begin_body();
        }
        self.run = Some(Run {
            kind,
            site,
            group,
            trace: Vec::new(),
            identity,
            entry,
            before: self.phase,
            ordinal: 0,
            known: Known::new(known),
            own: BTreeMap::new(),
            redirects,
            tape,
            begun,
            slots: Vec::new(),
            uses: Uses::default(),
            asked: Cell::new(false),
            late_use: Cell::new(false),
            owned,
            alive,
            writes: BTreeSet::new(),
            failure: None,
            undo: Vec::new(),
        });
        self.phase = Phase::Segment(site);
        Ok(())
    }

    /// Abandons the run: the body failed, or panicked. Stream and pool are as before it.
    pub(crate) fn abort_run(&mut self) {
        let Some(run) = self.run.take() else { return };
        self.phase = run.before;
        if run.kind == RunKind::Record {
            if run.tape.captured {
                self.backend.abort_capture();
                self.log.aborted(run.site);
            }
            if run.late_use.get() {
                // The change may have been the last one: warm up again, as after another trace.
                self.tree.group_mut(run.group).warmed = false;
            }
        }
        if run.kind == RunKind::Audit {
            if let Err(error) = self.undo_writes(run.undo) {
                // The caller has an error of its own already; this one is as bad, and must not get lost.
                self.deferred.get_or_insert(error);
            }
            return;
        }
        // What the error value, or a leak, still holds was never computed.
        let left: Vec<u32> = run
            .slots
            .iter()
            .copied()
            .filter(|&s| {
                self.slots[s as usize].refs > 0 && run.own.contains_key(&self.slots[s as usize].base)
            })
            .collect();
        for slot in left {
            let Slot { home, base, .. } = self.slots[slot as usize];
            match home {
                Placement::Results => _ = self.results.live.remove(base),
                Placement::Pool => _ = self.pool.free(base),
                _ => continue,
            }
            self.slots[slot as usize].home = Placement::Invalid;
        }
        self.pool.end_body();
        self.tree.stray();
    }

    /// Ends a run whose body succeeded; a recording becomes a node and runs for the first time.
    ///
    /// On an error the run is over, as after [`abort_run`](Self::abort_run).
    pub(crate) fn finish_run(&mut self, key: &KeyWriter, outputs: &Encoder) -> Result<()> {
        let Some(run) = &self.run else { return Ok(()) };
        let checked = match run.kind {
            RunKind::Record => self.check_went_well(run).and_then(|()| self.check_owners(outputs)),
            _ => self.check_owners(outputs),
        };
        if let Err(error) = checked {
            self.abort_run();
            return Err(error);
        }
        let Some(run) = self.run.take() else { return Ok(()) };
        match run.kind {
            RunKind::Audit => {
                self.phase = run.before;
                Ok(())
            }
            RunKind::Warm | RunKind::Eager => {
                self.phase = run.before;
                self.pool.end_body();
                self.tree.stray();
                if run.kind == RunKind::Warm {
                    self.learn_aliases(run.group, run.asked.get(), key);
                    return self.warmed(run, &outputs.entries);
                }
                Ok(())
            }
            RunKind::Record => self.finish_recording(run, key, outputs),
        }
    }

    /// A warm-up ran to its end.
    ///
    /// # Errors
    /// [`Error::FallbackForbidden`] when nothing was learnt from it, and not from an earlier one.
    pub(crate) fn warmed(&mut self, run: Run, outputs: &[Entry]) -> Result<()> {
        let call = self.calls;
        let group = self.tree.group_mut(run.group);
        if group.tried.0 != call || group.tried.1 == 0 {
            group.tried = (call, group.tried.1 + 1);
        }
        if group.warmed {
            return Ok(());
        }
        if run.failure.is_none() {
            let releases = self.learn_releases(&run, outputs);
            self.warmed_up(run.group, run.trace, releases);
            return Ok(());
        }
        // After a failed operation the body may have taken another way than it usually does.
        match group.tried.1 {
            0 | 1 => Ok(()),
            _ => self.fall_back_unwarmed(run.site),
        }
    }

    /// A group has its trace, which all its recordings share.
    pub(crate) fn warmed_up(&mut self, at: usize, trace: Vec<TraceOp>, releases: Vec<(u32, u32)>) {
        let group = self.tree.group_mut(at);
        group.warmed = true;
        group.releases = releases;
        if group.trace != trace {
            group.trace = trace;
            // The body does something else now: recordings of what it did before are wrong.
            let stale = self.tree.evict_group(at);
            if stale > 0 {
                self.log.evicted(stale);
            }
        }
    }

    /// A recording, or an audit, of a body that swallowed an error would be one of something else.
    pub(crate) fn check_went_well(&self, run: &Run) -> Result<()> {
        match run.failure.clone() {
            None => Ok(()),
            Some(Failure::Lost { device, why }) => Err(Error::ContextLost { device, why }),
            Some(Failure::Other(why)) => Err(Error::Device {
                device: self.backend.name(),
                call: "capture",
                why: format!("{}: an operation failed and the body went on: {why}", run.site),
            }),
        }
    }

    pub(crate) fn finish_recording(
        &mut self,
        mut run: Run,
        key: &KeyWriter,
        outputs: &Encoder,
    ) -> Result<()> {
        let expected = self.tree.group_mut(run.group).trace.len();
        if run.trace.len() != expected {
            let error = Error::TraceMismatch {
                segment: run.site.to_string(),
                index: run.trace.len(),
                warm: format!("`{}`", self.tree.group_mut(run.group).trace[run.trace.len()].name),
                recorded: "nothing".into(),
            };
            self.tree.group_mut(run.group).warmed = false;
            self.run = Some(run);
            self.abort_run();
            return Err(error);
        }
        let stored = match self.store(&run, key, outputs) {
            Ok(stored) => stored,
            Err(error) => {
                self.run = Some(run);
                self.abort_run();
                return Err(error);
            }
        };
        let mut copied: Vec<CopiedInput> = run.redirects.all().iter().map(Redirect::done).collect();
        let mut retain: Vec<SharedMemory> = run.owned.iter().map(|(_, m)| m.clone()).collect();
        retain.extend(copied.iter().map(|c| c.memory.clone()));
        let ended = match self.end_capture_shared(&mut run, &retain) {
            Ok(Some(ended)) => ended,
            Ok(None) => {
                self.phase = run.before;
                self.pool.end_body();
                self.tree.stray();
                return Ok(());
            }
            Err(error) => {
                self.run = Some(run);
                self.abort_run();
                return Err(error);
            }
        };
        let (blocks, outputs) = stored;
        let result_extent = self.result_extent(&blocks);
        let writes: Vec<(u64, SharedMemory)> = run
            .owned
            .iter()
            .filter(|(_, m)| run.writes.range(m.addr()..m.addr() + m.len()).next().is_some())
            .cloned()
            .collect();
        if let Some(exec) = &ended.exec {
            self.stage_first_copies(&mut copied, key);
            let first = self.save_memory(&writes).and_then(|()| {
                let block = self.pending.take();
                let waiting = block.is_some();
                let launched = self.backend.replay(exec, block);
                self.unless_lost(waiting, launched)
            });
            if let Err(error) = first {
                self.tree.never_ran(run.site, &**exec, ended.with, &error);
                self.run = Some(run);
                self.abort_run();
                return Err(error);
            }
        }
        self.phase = run.before;
        let exit = self.pool.end_body();
        let mut owned: Vec<u64> = run.owned.drain(..).map(|(id, _)| id).collect();
        if let Identity::Full(function) = run.identity {
            owned.push(function);
        }
        let positions: Positions = copied.iter().map(|c| c.position).collect();
        self.learn_aliases(run.group, run.asked.get(), key);
        self.tree.group_mut(run.group).recorded_in(self.calls);
        // Where copied live-ins overlap, what one shows may be read from the copy of the other.
        let (asked, copies) = (run.asked.get(), !copied.is_empty());
        let aliases = (asked || copies).then(|| self.aliases(key)).filter(|all| asked || !all.is_empty());
        let aliases = aliases.map(|all| all.as_slice().into());
        let node = self.tree.insert(Node {
            site: run.site,
            identity: run.identity,
            caller: self.tree.caller(),
            sizes: self.frame.iter().flat_map(|f| &f.symbols).map(|s| (s.name, s.padded)).collect(),
            group: run.group,
            parent: self.tree.cursor(),
            entry: run.entry,
            exit,
            shape: key.shape.as_slice().into(),
            addrs: masked(&key.addrs, &positions).as_slice().into(),
            copied: copied.into(),
            places: places(key),
            aliases,
            exec: ended.exec,
            sharing: ended.sharing,
            blocks,
            outputs,
            owned,
            writes,
            alive: run.alive,
            usage: Usage { pool_peak: run.uses.peak(), pool_extent: self.pool.body_bytes(), result_extent },
            hits: 0,
            likely: None,
            links: Links::default(),
            crowded: 0,
            handed: None,
            after_eager: false,
        });
        self.tree.runs_now(node);
        self.tree.follow(node);
        let node = self.tree.number(node);
        self.log.recorded(run.site, node, run.begun.map_or(Duration::ZERO, |begun| begun.elapsed()));
        if let Some(with) = ended.with {
            self.log.shared(run.site, node, with);
        }
        if let Some(why) = ended.unshared {
            self.log.unshared(run.site, node, why);
        }
        Ok(())
    }
}

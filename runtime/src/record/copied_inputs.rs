//! Live-ins that are copied: a recording reads a buffer of its own, and each replay brings the bytes.
//!
//! The body has handles of the tensors themselves, whose addresses are those of the call that records. So
//! what it launches is turned to the buffer, view by view, on its way into the capture.

use std::cmp::Reverse;

use smallvec::SmallVec;

use super::{
    Core, Run,
    run::{Redirect, holds},
};
use crate::{
    Result,
    backend::{DeviceCopy, HostBlock, SharedMemory, View},
    observe::{event::CopySlot, log::Log},
    tree::CopiedInput,
    value::live_in::{KeyTensor, KeyWriter},
};

/// The tensor of a device operand in an arena.
fn tensor_at(key: &KeyWriter, position: u32) -> Option<&KeyTensor> {
    // In the order of their operands.
    let at = key.tensors.binary_search_by_key(&position, |t| t.operand).ok()?;
    Some(&key.tensors[at]).filter(|t| t.owned == 0)
}

/// Adds a copy to a block. In one piece: how a device splits it is the device's matter.
fn push_copy(block: &mut HostBlock, to: u64, from: u64, bytes: u64) {
    block.copies.push(DeviceCopy { to, from, bytes });
}

/// The live-ins that a run reads elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Redirects {
    /// By position.
    all: Vec<Redirect>,
    /// Where each begins, ascending, and which of those up to it reaches farthest, the first where several do.
    starts: Vec<(u64, usize)>,
}

impl Redirects {
    /// Of redirects by position.
    pub(crate) fn new(all: Vec<Redirect>) -> Self {
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|&at| all[at].from);
        let mut farthest = None;
        let mut starts = Vec::with_capacity(all.len());
        for at in order {
            let reach = |at: usize| (all[at].end, Reverse(at));
            let now = farthest.filter(|&before| reach(before) > reach(at)).unwrap_or(at);
            farthest = Some(now);
            starts.push((all[at].from, now));
        }
        Self { all, starts }
    }

    pub(crate) fn all(&self) -> &[Redirect] {
        &self.all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// That of the live-in at `position`.
    pub(crate) fn of(&self, position: u32) -> Option<&Redirect> {
        self.all.binary_search_by_key(&position, |r| r.position).ok().map(|at| &self.all[at])
    }

    /// One of a live-in in whose storage those bytes lie.
    fn around(&mut self, start: u64, end: u64) -> Option<&mut Redirect> {
        let before = self.starts.partition_point(|&(from, _)| from <= start);
        let (_, at) = *self.starts.get(before.checked_sub(1)?)?;
        Some(&mut self.all[at]).filter(|r| end <= r.end)
    }
}

impl Run {
    /// The views as the capture shall see them. A block of the run's own is never a live-in, also where a
    /// live-in lay before.
    pub(crate) fn redirected(&mut self, views: &[View]) -> SmallVec<[View; 4]> {
        let redirected = |view: &View| {
            let (start, end) = view.range();
            let own = holds(&self.own, (start, end));
            let Some(r) = self.redirects.around(start, end).filter(|_| !own) else { return *view };
            let (first, last) = (start - r.from, end - r.from);
            let touched = r.touched.map_or((first, last), |(f, l)| (f.min(first), l.max(last)));
            r.touched = Some(touched);
            View { addr: r.memory.addr() + first, ..*view }
        };
        views.iter().map(redirected).collect()
    }
}

impl Core {
    /// Whether a recording can read a copy of that live-in: it lies in an arena, and is not empty.
    pub(crate) fn can_copy(&self, key: &KeyWriter, position: u32) -> bool {
        tensor_at(key, position).is_some_and(|t| self.slots[t.slot as usize].bytes > 0)
    }

    /// Buffers for the live-ins that a recording of this key copies.
    pub(crate) fn redirects(&mut self, group: usize, key: &KeyWriter) -> Result<Redirects> {
        let mut redirects = Vec::new();
        for position in self.tree.copied(group, &key.addrs) {
            if !self.can_copy(key, position) {
                continue;
            }
            let Some(tensor) = tensor_at(key, position) else { continue };
            let slot = &self.slots[tensor.slot as usize];
            let from = key.addrs[2 * position as usize + 1];
            let end = slot.base + slot.bytes;
            // What of it is read is known after the capture, in which nothing can be allocated.
            let memory = self.backend.alloc(end - from)?;
            redirects.push(Redirect { position, from, end, memory, touched: None });
        }
        Ok(Redirects::new(redirects))
    }

    /// Starts a capture; a replay will bring what waits now, and the copies.
    pub(crate) fn begin_capture(&mut self, redirects: &[Redirect]) -> Result<()> {
        if redirects.is_empty() {
            return self.backend.begin_capture(self.pending.as_ref());
        }
        let host = self.with_copies(redirects);
        self.backend.begin_capture(host.as_ref())
    }

    /// What waits now, and the whole of what may be read of copied live-ins.
    pub(crate) fn with_copies(&self, redirects: &[Redirect]) -> Option<HostBlock> {
        let mut host = self.pending.clone();
        for r in redirects {
            push_copy(host.get_or_insert_default(), r.memory.addr(), r.from, r.end - r.from);
        }
        host
    }

    /// The next replay of this recording brings the bytes of its copied live-ins.
    pub(crate) fn stage_copies(&mut self, at: usize, key: &KeyWriter) {
        let Some(node) = self.tree.node(at) else { return };
        stage(&mut self.pending, &mut self.log, &node.copied, key);
        self.tree.count_copies(at);
    }

    /// For the body of an audit: it reads the recording's own buffers, as the recording does, which the next
    /// flush fills. How a product is computed may depend on the alignment of its operands, so reading the
    /// live-ins themselves could differ in the last bits.
    pub(crate) fn audited_copies(&mut self, at: usize, key: &KeyWriter) -> Redirects {
        let Some(node) = self.tree.node(at) else { return Redirects::default() };
        let mut redirects = Vec::new();
        for c in node.copied.iter().filter(|c| c.bytes > 0) {
            let Some(tensor) = tensor_at(key, c.position) else { continue };
            let slot = &self.slots[tensor.slot as usize];
            let from = key.addrs[2 * c.position as usize + 1];
            let end = (slot.base + slot.bytes).min(from + c.memory.len());
            push_copy(
                self.pending.get_or_insert_default(),
                c.memory.addr() + c.start,
                from + c.start,
                c.bytes,
            );
            let memory = SharedMemory::clone(&c.memory);
            redirects.push(Redirect { position: c.position, from, end, memory, touched: None });
        }
        Redirects::new(redirects)
    }

    /// As [`stage_copies`](Self::stage_copies), for the first replay of a recording that is no node yet.
    pub(crate) fn stage_first_copies(&mut self, copied: &mut [CopiedInput], key: &KeyWriter) {
        stage(&mut self.pending, &mut self.log, copied, key);
        copied.iter_mut().for_each(|c| c.copies += 1);
    }
}

/// Adds the copies to what the next replay brings. A live-in of which nothing is read is not copied.
fn stage(pending: &mut Option<HostBlock>, log: &mut Log, copied: &[CopiedInput], key: &KeyWriter) {
    for c in copied.iter().filter(|c| c.bytes > 0) {
        let from = key.addrs[2 * c.position as usize + 1];
        push_copy(pending.get_or_insert_default(), c.memory.addr() + c.start, from + c.start, c.bytes);
        log.copied(CopySlot::LiveIn, c.bytes);
    }
}

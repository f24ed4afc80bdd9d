//! Live-ins that are copied: a recording reads a buffer of its own, and each replay brings the bytes.
//!
//! The body has handles of the tensors themselves, whose addresses are those of the call that records. So
//! what it launches is turned to the buffer, view by view, on its way into the capture.

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
    key.tensors.iter().find(|t| t.operand == position && t.owned == 0)
}

/// Adds a copy to a block. In one piece: how a device splits it is the device's matter.
fn push_copy(block: &mut HostBlock, to: u64, from: u64, bytes: u64) {
    block.copies.push(DeviceCopy { to, from, bytes });
}

impl Run {
    /// The views as the capture shall see them. A block of the run's own is never a live-in, also where a
    /// live-in lay before.
    pub(crate) fn redirected(&mut self, views: &[View]) -> SmallVec<[View; 4]> {
        let redirected = |view: &View| {
            let (start, end) = view.range();
            let own = holds(&self.own, (start, end));
            let Some(r) = self.redirects.iter_mut().find(|r| !own && r.from <= start && end <= r.end) else {
                return *view;
            };
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
    pub(crate) fn redirects(&mut self, group: usize, key: &KeyWriter) -> Result<Vec<Redirect>> {
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
        Ok(redirects)
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
    pub(crate) fn audited_copies(&mut self, at: usize, key: &KeyWriter) -> Vec<Redirect> {
        let Some(node) = self.tree.node(at) else { return Vec::new() };
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
        redirects
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

//! Overwriting weights in place, between the work that reads them.
//!
//! A kernel may load weights before earlier kernels have ended (`program/early.rs`), because no operation writes them. So a weight is
//! not written by an operation, but as host data of a call is: whatever the device runs next begins when the write has ended
//! ([`backend::Stream::host_write`](crate::backend::Stream::host_write), [`write_from`](crate::backend::Stream::write_from)), and the
//! write begins when all earlier work has.

use super::launch::Launcher;
use crate::{
    Result,
    backend::{DeviceCopy, HostCopy, HostUpload, View},
    value::raw::RawTensor,
};

/// The pattern with which memory is overwritten.
#[derive(Debug)]
pub(crate) enum Overwrite {
    /// Bytes of the host.
    Bytes(Vec<u8>),
    /// A tensor, of whatever strides.
    Tensor(RawTensor),
    /// Pinned memory, which the device copies to the memory.
    Pinned(HostCopy),
}

impl Launcher<'_> {
    /// Overwrites contiguous memory of the user's, in the order of the stream. The caller has compared lengths, and knows that this
    /// is allowed now.
    ///
    /// # Errors
    /// Returns [`Error::Asleep`](crate::Error::Asleep), [`Error::Discarded`](crate::Error::Discarded) for a part of a weight that holds
    /// nothing, and errors of the device; the memory may then hold its old contents, or the new ones.
    pub(crate) fn overwrite(&mut self, op: &'static str, target: &View, with: Overwrite) -> Result<()> {
        let bytes = (target.layout.count() * target.dtype.size()) as u64;
        self.memory.check_weight_write(op, target.addr, bytes)?;
        self.write_over(target, with)?;
        self.memory.wrote_weight(target.addr, bytes);
        Ok(())
    }

    fn write_over(&mut self, target: &View, with: Overwrite) -> Result<()> {
        // Inputs of the running call that are still on their way may be copies of the old contents.
        self.flush()?;
        // What holds nothing is not saved: a capture ahead that writes it leaves what it wrote.
        if self.memory.check_weight("a capture ahead", target.addr).is_ok() {
            self.save_before_write(std::slice::from_ref(target))?;
        }
        let to = target.addr;
        match with {
            Overwrite::Bytes(bytes) => {
                let writes = vec![(to, 0, bytes.len())];
                self.stream.backend_mut().host_write(HostUpload { bytes, writes, ..HostUpload::default() })
            }
            Overwrite::Tensor(raw) => self.packed("write", raw, |stream, from, bytes| {
                let copies = vec![DeviceCopy { to, from, bytes }];
                stream.backend_mut().host_write(HostUpload { copies, ..HostUpload::default() })
            }),
            Overwrite::Pinned(copy) => self.stream.backend_mut().write_from(copy),
        }
    }
}

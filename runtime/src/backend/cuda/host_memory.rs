//! Pinned memory of the user's, which the device copies from and to.

use std::{
    any::Any,
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    driver::{Event, Pinned},
    fault::Faults,
    shared::Shared,
};
use crate::{
    Error, Result,
    backend::{HostMemory, HostSource, lent_to_a_call},
};

/// The copies that were put on the stream.
#[derive(Debug, Default)]
struct Uses {
    /// Sources that exist.
    lent: usize,
    /// After the last copy to the device.
    read: Option<Event>,
    /// After the last copy from the device.
    written: Option<Event>,
    /// Set if the host has not yet looked at the result of the last copy from the device.
    is_new: bool,
    /// Set if the end of a copy cannot be known: the host gets no access to the memory any more, and it is never
    /// freed.
    leaks: bool,
}

impl Uses {
    /// Checks that the ends of all copies are known.
    ///
    /// # Errors
    /// Returns [`Error::Device`].
    fn check_ends(&self, device: &str) -> Result<()> {
        if !self.leaks {
            return Ok(());
        }
        Err(Error::Device {
            device: device.to_owned(),
            call: "PinnedBuffer",
            reason: "the driver could not mark the end of a copy, nor wait for it, so the device may still use the \
                  buffer; use another one"
                .into(),
        })
    }
}

/// The memory with its uses.
struct Bytes {
    /// Taken when it is dropped.
    pinned: Option<Pinned>,
    shared: Arc<Shared>,
    faults: Arc<Faults>,
    uses: Mutex<Uses>,
}

impl Bytes {
    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pinned(&self) -> &Pinned {
        match &self.pinned {
            Some(pinned) => pinned,
            None => unreachable!("it is taken when this is dropped"),
        }
    }

    /// Marks the end of a copy that was just put on the stream, by the event that `which` selects.
    fn mark(&self, which: impl FnOnce(&mut Uses) -> &mut Option<Event>) -> Result<()> {
        let mut uses = self.uses();
        let marked = self.record(which(&mut uses));
        if marked.is_err() && self.shared.stream.synchronize().is_err() {
            uses.leaks = true;
        }
        marked
    }

    fn record(&self, place: &mut Option<Event>) -> Result<()> {
        let event = match place.take() {
            Some(event) => event,
            None => Event::new(&self.shared.context, false)?,
        };
        event.record(&self.shared.stream)?;
        *place = Some(event);
        Ok(())
    }

    /// Waits for the copies from the device.
    fn wait_until_written(&self) -> Result<()> {
        let mut uses = self.uses();
        uses.check_ends(self.shared.context.name())?;
        if let Some(written) = &uses.written {
            self.shared.wait(written)?;
        }
        if mem::take(&mut uses.is_new) {
            self.faults.check()?;
        }
        Ok(())
    }

    fn wait_until_read(&self) -> Result<()> {
        let uses = self.uses();
        uses.check_ends(self.shared.context.name())?;
        match &uses.read {
            Some(read) => self.shared.wait(read),
            None => Ok(()),
        }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        let Some(pinned) = self.pinned.take() else { return };
        match self.uses.get_mut().unwrap_or_else(PoisonError::into_inner).leaks {
            true => mem::forget(pinned),
            // After the work that is on the stream, and not in a capture: that freeing may wait for the device.
            false => self.shared.retire_owner(Box::new(pinned)),
        }
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bytes")
            .field("pinned", &self.pinned)
            .field("uses", &self.uses)
            .finish_non_exhaustive()
    }
}

/// The owner's side.
#[derive(Debug)]
pub(super) struct CudaHostMemory {
    bytes: Arc<Bytes>,
    len: usize,
}

impl CudaHostMemory {
    /// `len` bytes, all zero.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`].
    pub(super) fn new(shared: &Arc<Shared>, faults: &Arc<Faults>, len: usize) -> Result<Self> {
        let bytes = Bytes {
            pinned: Some(Pinned::new(&shared.context, len.max(1))?),
            shared: Arc::clone(shared),
            faults: Arc::clone(faults),
            uses: Mutex::default(),
        };
        Ok(Self { bytes: Arc::new(bytes), len })
    }

    /// Puts a copy from the device on the stream.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] while a source exists, and errors of the driver.
    pub(super) fn write(&mut self, addr: u64, bytes: usize) -> Result<()> {
        if self.bytes.uses().lent > 0 {
            return Err(lent_to_a_call());
        }
        if bytes > 0 {
            // SAFETY: nobody has a slice of the memory, since this borrows it mutably, and nobody gets one before `mark`
            // has an event after the copy (or has waited for it); `Bytes` frees it after the stream.
            unsafe { self.bytes.pinned().copy_from_shared(&self.bytes.shared.stream, addr, bytes)? };
            self.bytes.mark(|uses| &mut uses.written)?;
        }
        self.bytes.uses().is_new = true;
        Ok(())
    }

    /// Returns whether it is memory for this stream.
    pub(super) fn belongs_to(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.bytes.shared, shared)
    }
}

impl HostMemory for CudaHostMemory {
    fn len(&self) -> usize {
        self.len
    }

    fn bytes(&self) -> Result<&[u8]> {
        self.bytes.wait_until_written()?;
        // SAFETY: the device writes only in copies that `write` starts, which takes `&mut self`: those before have ended, and the slice is
        // gone before there is another one. The host writes through `bytes_mut` alone, which takes `&mut self` too.
        Ok(&unsafe { self.bytes.pinned().slice() }[..self.len])
    }

    fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        if self.bytes.uses().lent > 0 {
            return Err(lent_to_a_call());
        }
        self.bytes.wait_until_read()?;
        self.bytes.wait_until_written()?;
        // SAFETY: as in `bytes`; and the device reads only in copies that a source starts: there is none, and `lend`
        // takes `&self`, so the slice is gone before there is one.
        Ok(&mut unsafe { self.bytes.pinned().slice_mut() }[..self.len])
    }

    fn is_ready(&self) -> bool {
        let uses = self.bytes.uses();
        // An error is an answer too.
        let is_done = |event: &Option<Event>| event.as_ref().is_none_or(|e| e.is_done().unwrap_or(true));
        is_done(&uses.read) && is_done(&uses.written)
    }

    fn lend(&self) -> Arc<dyn HostSource> {
        self.bytes.uses().lent += 1;
        Arc::new(CudaHostSource { bytes: Arc::clone(&self.bytes), len: self.len })
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// The memory as a source.
#[derive(Debug)]
pub(super) struct CudaHostSource {
    bytes: Arc<Bytes>,
    len: usize,
}

impl CudaHostSource {
    /// Puts a copy of a part to the device on the stream.
    ///
    /// # Errors
    /// Returns [`Error::Device`] for a part that there is not, and errors of the driver.
    pub(super) fn copy_to(&self, offset: usize, to: u64, bytes: usize) -> Result<()> {
        let shared = &self.bytes.shared;
        if offset.checked_add(bytes).is_none_or(|end| end > self.len) {
            return Err(Error::Device {
                device: shared.context.name().to_owned(),
                call: "write_from",
                reason: format!("{bytes} bytes from {offset} on, of {} bytes of host memory", self.len),
            });
        }
        if bytes == 0 {
            return Ok(());
        }
        self.bytes.pinned().copy_to(&shared.stream, offset, to, bytes)?;
        self.bytes.mark(|uses| &mut uses.read)
    }

    /// Returns whether it is memory for this stream.
    pub(super) fn belongs_to(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.bytes.shared, shared)
    }
}

impl HostSource for CudaHostSource {
    fn bytes(&self) -> Result<&[u8]> {
        self.bytes.wait_until_written()?;
        // SAFETY: while `self` exists, `lent` is not 0, so neither `bytes_mut` returns a slice nor `write` starts a copy;
        // those before have ended.
        Ok(&unsafe { self.bytes.pinned().slice() }[..self.len])
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl Drop for CudaHostSource {
    fn drop(&mut self) {
        self.bytes.uses().lent -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_the_device_may_still_use_is_refused() {
        let known = Uses { lent: 1, is_new: true, ..Uses::default() };
        assert!(known.check_ends("cuda:0").is_ok());
        let error = Uses { leaks: true, ..Uses::default() }.check_ends("cuda:0").unwrap_err();
        assert!(matches!(&error, Error::Device { device, call: "PinnedBuffer", .. } if device == "cuda:0"));
        assert!(error.to_string().contains("use another one"), "{error}");
    }

    /// On a GPU: neither side gets the bytes, and the memory is not freed.
    #[test]
    fn no_access_follows_a_copy_whose_end_is_unknown() {
        use std::io::Write as _;

        use crate::backend::Arenas as _;

        let mut backend = match super::super::CudaBackend::new(0, super::super::CudaOptions::default()) {
            Ok(backend) => backend,
            Err(error) => {
                // A closed standard error is not a reason to fail.
                let _ = writeln!(
                    std::io::stderr(),
                    "GPU tests: skipped no_access_follows_a_copy_whose_end_is_unknown: {error}"
                );
                return;
            }
        };
        let mut memory = backend.host_memory(16).unwrap();
        let source = memory.lend();
        let own = memory.as_any_mut().downcast_mut::<CudaHostMemory>().unwrap();
        own.bytes.uses().leaks = true;
        let refused =
            |result: Result<usize>| matches!(result, Err(Error::Device { call: "PinnedBuffer", .. }));
        assert!(refused(source.bytes().map(<[u8]>::len)));
        drop(source);
        assert!(refused(memory.bytes().map(<[u8]>::len)));
        assert!(refused(memory.bytes_mut().map(|bytes| bytes.len())));
        drop(memory);
        backend.host_memory(16).unwrap().bytes_mut().unwrap().fill(1);
    }
}

//! Host memory that the stream's thread copies from and to.
//!
//! The host and the thread take turns: a count of copies under way says whose turn it is.

use std::{
    any::Any,
    fmt, mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use memmap2::{MmapOptions, MmapRaw};

use super::{
    errors::{NAME, failed},
    fault::Faults,
};
use crate::{
    Error, Result,
    backend::{HostMemory, HostSource, lent_to_a_call},
};

/// The copies under way, and who may start more.
#[derive(Debug, Default)]
struct Uses {
    /// Sources that exist.
    lent: usize,
    /// Copies to the device.
    reads: usize,
    /// Copies from the device.
    writes: usize,
    /// The number of the last copy from the device that was made, on the stream.
    copied: Option<u64>,
    /// The first failure of a copy from the device that was not reported yet.
    error: Option<Error>,
}

/// The bytes.
struct Bytes {
    map: MmapRaw,
    faults: Arc<Faults>,
    uses: Mutex<Uses>,
    changed: Condvar,
}

impl Bytes {
    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Uses)) {
        change(&mut self.uses());
        self.changed.notify_all();
    }

    /// Waits while there are such copies, and reports how they ended.
    fn wait_while(&self, busy: impl Fn(&Uses) -> bool) -> Result<()> {
        let mut uses = self.uses();
        while busy(&uses) {
            uses = self.changed.wait(uses).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(error) = uses.error.take() {
            return Err(error);
        }
        uses.copied.map_or(Ok(()), |at| self.faults.check(at))
    }

    fn len(&self) -> usize {
        self.map.len()
    }

    fn pointer(&self) -> *mut u8 {
        self.map.as_mut_ptr()
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bytes").field("len", &self.len()).field("uses", &self.uses).finish_non_exhaustive()
    }
}

/// The owner's side.
#[derive(Debug)]
pub(super) struct CpuHostMemory {
    bytes: Arc<Bytes>,
    len: usize,
}

impl CpuHostMemory {
    /// `len` bytes, all zero.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`].
    pub(super) fn new(len: usize, faults: Arc<Faults>) -> Result<Self> {
        let out_of_memory =
            || Error::OutOfMemory { device: NAME.into(), bytes: len as u64, what: "host memory for copies" };
        // Zeroed pages, which appear when they are first touched.
        let map = MmapOptions::new().len(len.max(1)).map_anon().map_err(|_| out_of_memory())?;
        Ok(Self {
            bytes: Arc::new(Bytes {
                map: map.into(),
                faults,
                uses: Mutex::default(),
                changed: Condvar::new(),
            }),
            len,
        })
    }

    /// Announces a copy from the device, which the stream's thread makes.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] while a source exists.
    pub(super) fn begin_write(&mut self) -> Result<DeviceWrite> {
        let mut uses = self.bytes.uses();
        if uses.lent > 0 {
            return Err(lent_to_a_call());
        }
        uses.writes += 1;
        drop(uses);
        Ok(DeviceWrite { bytes: Arc::clone(&self.bytes), result: None })
    }
}

impl HostMemory for CpuHostMemory {
    fn len(&self) -> usize {
        self.len
    }

    fn bytes(&self) -> Result<&[u8]> {
        self.bytes.wait_while(|uses| uses.writes > 0)?;
        // SAFETY: the mapping has at least `len` bytes, which live as long as `self`. The stream's thread writes them
        // only while `writes` is not 0, which only `begin_write` changes: it takes `&mut self`, so the slice is gone
        // by then, as it is when `bytes_mut` returns another one.
        Ok(unsafe { std::slice::from_raw_parts(self.bytes.pointer(), self.len) })
    }

    fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        if self.bytes.uses().lent > 0 {
            return Err(lent_to_a_call());
        }
        self.bytes.wait_while(|uses| uses.reads + uses.writes > 0)?;
        // SAFETY: as in `bytes`; and the thread reads them only while `reads` is not 0, which only a source changes:
        // there is none, and `lend` takes `&self`, so the slice is gone before there is one.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.bytes.pointer(), self.len) })
    }

    fn is_ready(&self) -> bool {
        let uses = self.bytes.uses();
        uses.reads + uses.writes == 0
    }

    fn lend(&self) -> Arc<dyn HostSource> {
        self.bytes.change(|uses| uses.lent += 1);
        Arc::new(CpuHostSource { bytes: Arc::clone(&self.bytes), len: self.len })
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// The memory as a source.
#[derive(Debug)]
pub(super) struct CpuHostSource {
    bytes: Arc<Bytes>,
    len: usize,
}

impl CpuHostSource {
    /// Announces a copy of a part to the device, which the stream's thread makes.
    ///
    /// # Errors
    /// Returns [`Error::Device`] for a part that there is not.
    pub(super) fn begin_read(&self, offset: usize, bytes: usize) -> Result<DeviceRead> {
        if offset.checked_add(bytes).is_none_or(|end| end > self.len) {
            let reason = format!("{bytes} bytes from {offset} on, of {} bytes of host memory", self.len);
            return Err(failed("write_from", reason));
        }
        self.bytes.change(|uses| uses.reads += 1);
        Ok(DeviceRead { bytes: Arc::clone(&self.bytes), offset, len: bytes })
    }
}

impl HostSource for CpuHostSource {
    fn bytes(&self) -> Result<&[u8]> {
        self.bytes.wait_while(|uses| uses.writes > 0)?;
        // SAFETY: the mapping has at least `len` bytes, which live as long as `self`. While `self` exists, `lent` is not
        // 0, so neither `bytes_mut` nor `begin_write` succeeds.
        Ok(unsafe { std::slice::from_raw_parts(self.bytes.pointer(), self.len) })
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl Drop for CpuHostSource {
    fn drop(&mut self) {
        self.bytes.change(|uses| uses.lent -= 1);
    }
}

/// A copy to the device. It is over when this is dropped.
#[derive(Debug)]
pub(super) struct DeviceRead {
    bytes: Arc<Bytes>,
    offset: usize,
    len: usize,
}

impl DeviceRead {
    /// Returns the bytes to copy. Called by the stream's thread.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: `begin_read` compared the part with the length. While `self` exists, `reads` is not 0, so
        // `bytes_mut` waits; and the only other writer is a `DeviceWrite`, which the same thread uses before or after.
        unsafe { std::slice::from_raw_parts(self.bytes.pointer().wrapping_add(self.offset), self.len) }
    }
}

impl Drop for DeviceRead {
    fn drop(&mut self) {
        self.bytes.change(|uses| uses.reads -= 1);
    }
}

/// A copy from the device. It is over when this is dropped, and failed unless [`end`](Self::end) says otherwise.
#[derive(Debug)]
pub(super) struct DeviceWrite {
    bytes: Arc<Bytes>,
    /// Its number on the stream.
    result: Option<Result<u64>>,
}

impl DeviceWrite {
    /// Returns the bytes to write. Called by the stream's thread.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.bytes.len();
        // SAFETY: the mapping has that many bytes. While `self` exists, `writes` is not 0, so the host has no slice and gets
        // none; a `DeviceRead` is used by the same thread before or after.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.pointer(), len) }
    }

    /// The copy was made, as the command of this number, or not.
    pub(super) fn end(mut self, result: Result<u64>) {
        self.result = Some(result);
    }
}

impl Drop for DeviceWrite {
    fn drop(&mut self) {
        let lost = || {
            let reason = "its runtime was dropped, or the stream was lost, before this was done".into();
            Err(Error::ContextLost { device: NAME.into(), reason })
        };
        let result = mem::take(&mut self.result).unwrap_or_else(lost);
        self.bytes.change(|uses| {
            uses.writes -= 1;
            match result {
                Ok(at) => uses.copied = Some(at),
                // A copy that went well does not hide a failure before it.
                Err(error) => uses.error = uses.error.take().or(Some(error)),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn zeros(len: usize) -> Result<CpuHostMemory> {
        CpuHostMemory::new(len, Arc::default())
    }

    #[test]
    fn the_host_waits_for_copies_from_the_device() {
        let mut memory = zeros(8).unwrap();
        assert_eq!(memory.bytes().unwrap(), [0; 8]);
        let mut write = memory.begin_write().unwrap();
        assert!(!memory.is_ready());
        thread::scope(|scope| {
            scope.spawn(move || {
                write.bytes_mut()[..4].copy_from_slice(&[1, 2, 3, 4]);
                write.end(Ok(0));
            });
            assert_eq!(memory.bytes().unwrap()[..5], [1, 2, 3, 4, 0]);
        });
        assert!(memory.is_ready());
    }

    #[test]
    fn what_a_copy_reads_is_not_written() {
        let mut memory = zeros(4).unwrap();
        memory.bytes_mut().unwrap().copy_from_slice(&[1, 2, 3, 4]);
        let source = memory.lend();
        assert!(matches!(memory.bytes_mut(), Err(Error::Argument { .. })), "lent");
        assert!(matches!(memory.begin_write(), Err(Error::Argument { .. })), "lent");
        assert_eq!(source.bytes().unwrap(), [1, 2, 3, 4]);
        let source = source.into_any().downcast::<CpuHostSource>().unwrap();
        assert!(source.begin_read(2, 3).is_err() && source.begin_read(usize::MAX, 2).is_err());
        let read = source.begin_read(1, 3).unwrap();
        drop(source);
        assert_eq!(memory.bytes().unwrap(), [1, 2, 3, 4], "a reader does not wait for readers");
        thread::scope(|scope| {
            scope.spawn(move || {
                assert_eq!(read.bytes(), [2, 3, 4]);
                drop(read);
            });
            memory.bytes_mut().unwrap().fill(9);
        });
        assert_eq!(memory.bytes().unwrap(), [9; 4]);
    }

    #[test]
    fn a_copy_that_is_never_made_is_reported_once() {
        let mut memory = zeros(4).unwrap();
        drop(memory.begin_write().unwrap());
        assert!(matches!(memory.bytes(), Err(Error::ContextLost { .. })));
        assert_eq!(memory.bytes().unwrap(), [0; 4]);
        drop(memory.begin_write().unwrap());
        // Another copy does not hide it.
        memory.begin_write().unwrap().end(Ok(0));
        assert!(matches!(memory.bytes_mut(), Err(Error::ContextLost { .. })));
        assert!(memory.bytes_mut().is_ok());
    }

    #[test]
    fn copies_keep_the_memory() {
        let memory = zeros(4).unwrap();
        let source = memory.lend().into_any().downcast::<CpuHostSource>().unwrap();
        let read = source.begin_read(0, 4).unwrap();
        drop((memory, source));
        assert_eq!(read.bytes(), [0; 4]);
        let mut memory = zeros(0).unwrap();
        assert!(memory.is_empty() && memory.bytes_mut().unwrap().is_empty());
    }
}

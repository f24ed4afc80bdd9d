//! Device and host memory.

use std::sync::Arc;

use rayon::prelude::*;

use super::{
    Context, Stream,
    types::{CUaccess, CUallocation, CUlocation, CUpool, Handle},
};
use crate::{Error, Result};

/// Returns an out-of-memory error with the requested size.
fn sized(error: Error, bytes: u64, what: &'static str) -> Error {
    match error {
        Error::OutOfMemory { device, .. } => Error::OutOfMemory { device, bytes, what },
        other => other,
    }
}

/// Addresses that are reserved once; memory is mapped to them as needed, and remains mapped.
#[derive(Debug)]
pub(crate) struct VirtualRange {
    context: Arc<Context>,
    base: u64,
    reserved: u64,
    granularity: u64,
    /// Mapped pieces: offset, bytes.
    pieces: Vec<(u64, u64)>,
    mapped: u64,
}

impl VirtualRange {
    /// Reserves at least `bytes` addresses.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn reserve(context: &Arc<Context>, bytes: u64) -> Result<Self> {
        let _bound = context.bind()?;
        const MINIMUM: i32 = 0;
        let properties = Self::properties(context);
        let mut granularity = 0;
        // SAFETY: one integer is written; the properties are only read.
        let code = unsafe { (context.table.granularity)(&mut granularity, &properties, MINIMUM) };
        context.check("cuMemGetAllocationGranularity", code)?;
        let granularity = (granularity as u64).max(1);
        let reserved = bytes.next_multiple_of(granularity);
        let mut base = 0;
        // SAFETY: one address is written; freed in `drop`.
        let code = unsafe { (context.table.address_reserve)(&mut base, reserved as usize, 0, 0, 0) };
        context
            .check("cuMemAddressReserve", code)
            .map_err(|e| sized(e, reserved, "addresses of an arena"))?;
        Ok(Self { context: Arc::clone(context), base, reserved, granularity, pieces: Vec::new(), mapped: 0 })
    }

    fn properties(context: &Context) -> CUallocation {
        CUallocation {
            kind: 1,
            handle_types: 0,
            location: CUlocation { kind: 1, id: context.device() },
            metadata: std::ptr::null_mut(),
            flags: [0; 8],
        }
    }

    /// First address.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Bytes of addresses.
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Bytes of a page.
    pub(crate) fn page(&self) -> u64 {
        self.granularity
    }

    /// Makes the pages of these bytes usable, and no others; returns which were not before, as offsets.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`]; pages mapped until then stay.
    pub(crate) fn map_pages(&mut self, addr: u64, bytes: u64) -> Result<Vec<u64>> {
        let first = (addr - self.base) / self.granularity;
        let end = (addr - self.base + bytes).div_ceil(self.granularity);
        if end * self.granularity > self.reserved {
            return Err(self.too_large(end * self.granularity));
        }
        let mut fresh = Vec::new();
        for page in first..end {
            let at = page * self.granularity;
            if !self.pieces.iter().any(|&(piece, len)| (piece..piece + len).contains(&at)) {
                self.map_piece(at, self.granularity)?;
                fresh.push(at);
            }
        }
        Ok(fresh)
    }

    fn too_large(&self, bytes: u64) -> Error {
        Error::OutOfMemory {
            device: self.context.name().to_owned(),
            bytes,
            what: "an arena, beyond the addresses that it reserved",
        }
    }

    /// Makes the first `bytes` usable; returns how many were before and are now. Allowed in a
    /// capture of this thread (measured).
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`]; nothing changed then.
    pub(crate) fn map(&mut self, bytes: u64) -> Result<(u64, u64)> {
        let before = self.mapped;
        if bytes <= before {
            return Ok((before, before));
        }
        if bytes > self.reserved {
            return Err(self.too_large(bytes));
        }
        let add = bytes.next_multiple_of(self.granularity).min(self.reserved) - self.mapped;
        self.map_piece(self.mapped, add)?;
        self.mapped += add;
        Ok((before, self.mapped))
    }

    /// Maps `add` bytes at an offset where nothing is mapped.
    fn map_piece(&mut self, offset: u64, add: u64) -> Result<()> {
        let _bound = self.context.bind()?;
        let table = self.context.table;
        let at = self.base + offset;
        let properties = Self::properties(&self.context);
        let mut physical = 0;
        // SAFETY: one handle is written; the properties are only read.
        let code = unsafe { (table.physical_create)(&mut physical, add as usize, &properties, 0) };
        self.context.check("cuMemCreate", code).map_err(|e| sized(e, add, "an arena"))?;
        // SAFETY: the addresses are reserved, and both callers ask for pages that no piece covers.
        let code = unsafe { (table.map)(at, add as usize, 0, physical, 0) };
        let mapped = self.context.check("cuMemMap", code);
        // SAFETY: the handle is ours; a mapping keeps the memory until it is unmapped.
        let code = unsafe { (table.physical_release)(physical) };
        mapped?;
        let released = self.context.check("cuMemRelease", code);
        let access = CUaccess { location: properties.location, flags: 3 };
        // SAFETY: the range was just mapped; the description is only read.
        let code = unsafe { (table.set_access)(at, add as usize, &access, 1) };
        if let Err(error) = released.and(self.context.check("cuMemSetAccess", code)) {
            // SAFETY: mapped just above, and its address has not been passed on.
            unsafe { (table.unmap)(at, add as usize) };
            return Err(error);
        }
        self.pieces.push((offset, add));
        Ok(())
    }

    /// Unmaps the pieces after the first `bytes` bytes, and releases their memory; returns how many bytes
    /// remain usable. The owner has waited for the work that uses them.
    ///
    /// # Errors
    /// Returns the errors of [`Context::check`]; pieces that were not unmapped remain usable.
    pub(crate) fn unmap(&mut self, bytes: u64) -> Result<u64> {
        let _bound = self.context.bind()?;
        // A mapping goes as a whole, as it came.
        while let Some(&(at, len)) = self.pieces.last()
            && at >= bytes
        {
            // SAFETY: mapped by `map` with this very range, and the owner guarantees that nothing runs on it.
            let code = unsafe { (self.context.table.unmap)(self.base + at, len as usize) };
            self.context.check("cuMemUnmap", code)?;
            self.pieces.pop();
            self.mapped = at;
        }
        Ok(self.mapped)
    }
}

impl Drop for VirtualRange {
    /// The owner has waited for the work that uses it.
    fn drop(&mut self) {
        let Ok(_bound) = self.context.bind() else { return };
        for &(at, bytes) in &self.pieces {
            // SAFETY: mapped by `map_piece`, and the owner guarantees that nothing runs on it.
            unsafe { (self.context.table.unmap)(self.base + at, bytes as usize) };
        }
        // SAFETY: reserved in `reserve`, nothing mapped any more.
        unsafe { (self.context.table.address_free)(self.base, self.reserved as usize) };
    }
}

/// Memory allocated and freed in the order of a stream: neither waits for the device.
#[derive(Debug)]
pub(crate) struct Pool {
    context: Arc<Context>,
    /// Null if the device has no pools: then allocations are plain, and freeing one waits.
    raw: Handle,
}

// SAFETY: a memory pool belongs to its device, not to a thread (CUDA Driver API, "Stream Ordered Memory Allocator"), and
// `context` keeps the device's context alive.
unsafe impl Send for Pool {}
// SAFETY: the methods only pass the handle to the driver. Allocations from a pool are ordered by streams, not by threads
// (same document), and only graphs have to be serialised by the caller ("Graph object thread safety").
unsafe impl Sync for Pool {}

impl Pool {
    /// Creates a pool.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        if context.props().pools {
            let _bound = context.bind()?;
            let properties = CUpool {
                kind: 1,
                handle_types: 0,
                location: CUlocation { kind: 1, id: context.device() },
                security: std::ptr::null_mut(),
                max_size: 0,
                reserved: [0; 56],
            };
            // SAFETY: one handle is written; the properties are only read. Destroyed in `drop`.
            let code = unsafe { (context.table.pool_create)(&mut raw, &properties) };
            context.check("cuMemPoolCreate", code)?;
        }
        Ok(Self { context: Arc::clone(context), raw })
    }

    /// Allocates; the memory may be used by later work of the stream.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`].
    pub(crate) fn alloc(&self, stream: &Stream, bytes: u64, what: &'static str) -> Result<u64> {
        let _bound = self.context.bind()?;
        let mut addr = 0;
        let code = if self.raw.is_null() {
            // SAFETY: one address is written.
            unsafe { (self.context.table.mem_alloc)(&mut addr, bytes as usize) }
        } else {
            // SAFETY: one address is written; pool and stream live.
            unsafe { (self.context.table.pool_alloc)(&mut addr, bytes as usize, self.raw, stream.raw()) }
        };
        self.context.check("cuMemAllocFromPoolAsync", code).map_err(|e| sized(e, bytes, what))?;
        Ok(addr)
    }

    /// Frees the memory after the work that is currently on the stream.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn free(&self, stream: &Stream, addr: u64) -> Result<()> {
        let _bound = self.context.bind()?;
        let code = if self.raw.is_null() {
            // SAFETY: allocated by `alloc`; the driver waits for the work that uses it.
            unsafe { (self.context.table.mem_free)(addr) }
        } else {
            // SAFETY: allocated by `alloc`, freed once, in the order of its stream.
            unsafe { (self.context.table.pool_free)(addr, stream.raw()) }
        };
        self.context.check("cuMemFreeAsync", code)
    }

    /// Releases unused memory to the system.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn trim(&self) -> Result<()> {
        if self.raw.is_null() {
            return Ok(());
        }
        let _bound = self.context.bind()?;
        // SAFETY: the pool lives.
        let code = unsafe { (self.context.table.pool_trim)(self.raw, 0) };
        self.context.check("cuMemPoolTrimTo", code)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if !self.raw.is_null()
            && let Ok(_bound) = self.context.bind()
        {
            // SAFETY: created in `new`; allocations that are left stay valid until they are freed.
            unsafe { (self.context.table.pool_destroy)(self.raw) };
        }
    }
}

/// Host memory that the device reaches.
#[derive(Debug)]
pub(crate) struct Pinned {
    context: Arc<Context>,
    raw: *mut u8,
    bytes: usize,
    device: u64,
}

// SAFETY: plain memory with one owner; the device writes it only in work that the owner waits for.
unsafe impl Send for Pinned {}
// SAFETY: shared references only read, after waits; see `Send`.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// Allocates, zeroed.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`].
    pub(crate) fn new(context: &Arc<Context>, bytes: usize) -> Result<Self> {
        const PORTABLE: u32 = 1;
        const MAPPED: u32 = 2;
        let _bound = context.bind()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: one address is written; freed in `drop`.
        let code = unsafe { (context.table.host_alloc)(&mut raw, bytes.max(1), PORTABLE | MAPPED) };
        context.check("cuMemHostAlloc", code).map_err(|e| sized(e, bytes as u64, "pinned host memory"))?;
        let mut pinned = Self { context: Arc::clone(context), raw: raw.cast(), bytes, device: 0 };
        // SAFETY: just allocated with this size.
        unsafe { pinned.raw.write_bytes(0, bytes) };
        // SAFETY: the memory was allocated as mapped; one address is written.
        let code = unsafe { (context.table.host_device_pointer)(&mut pinned.device, raw, 0) };
        context.check("cuMemHostGetDevicePointer", code)?;
        Ok(pinned)
    }

    /// Bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// The address of the first byte for the host. Its users say who writes when.
    pub(crate) fn start(&self) -> *mut u8 {
        self.raw
    }

    /// The address that kernels use.
    pub(crate) fn device_addr(&self) -> u64 {
        self.device
    }

    /// Copies bytes out. Nothing on the device writes them now: the caller waited.
    pub(crate) fn read(&self, bytes: usize) -> Vec<u8> {
        let bytes = bytes.min(self.bytes);
        let mut out = vec![0; bytes];
        // SAFETY: both ranges have that many bytes, and do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(self.raw, out.as_mut_ptr(), bytes) };
        out
    }

    /// Copies bytes in. Nothing on the device reads them now: the caller waited.
    ///
    /// Many bytes are copied by several threads: one does not keep up with the link, above all where the bytes are those of a mapped file,
    /// whose pages are found meanwhile.
    pub(crate) fn write(&mut self, at: usize, data: &[u8]) {
        /// Bytes that are worth a thread.
        const PART: usize = 512 << 10;
        assert!(at + data.len() <= self.bytes, "a write beyond pinned memory");
        // SAFETY: inside the allocation, checked above.
        let to = unsafe { self.raw.add(at) };
        // SAFETY: that many bytes of the allocation, which has been filled with zeros, and which `self` alone may write.
        let to = unsafe { std::slice::from_raw_parts_mut(to, data.len()) };
        if data.len() <= PART {
            to.copy_from_slice(data);
        } else {
            let parts = to.par_chunks_mut(PART).zip(data.par_chunks(PART));
            parts.for_each(|(to, from)| to.copy_from_slice(from));
        }
    }

    /// Returns the bytes.
    ///
    /// # Safety
    /// While the slice exists, neither the device nor the host writes them.
    pub(crate) unsafe fn slice(&self) -> &[u8] {
        // SAFETY: the allocation has that many bytes, which live as long as `self`; our caller keeps them from being written.
        unsafe { std::slice::from_raw_parts(self.raw, self.bytes) }
    }

    /// Returns the bytes, to be written.
    ///
    /// # Safety
    /// While the slice exists, the device does not use them, and it is the only slice.
    #[expect(
        clippy::mut_from_ref,
        reason = "the memory has several holders, of whom the caller is the only one to write"
    )]
    pub(crate) unsafe fn slice_mut(&self) -> &mut [u8] {
        // SAFETY: the allocation has that many bytes, which live as long as `self`; our caller has them for itself.
        unsafe { std::slice::from_raw_parts_mut(self.raw, self.bytes) }
    }

    /// One word that the device may be writing.
    pub(crate) fn peek(&self, word: usize) -> u64 {
        assert!(word * 8 + 8 <= self.bytes, "a read beyond pinned memory");
        // SAFETY: inside the allocation, checked above.
        let at = unsafe { self.raw.cast::<u64>().add(word) };
        // SAFETY: aligned to 8 (pages are); volatile, since the device writes it.
        unsafe { at.read_volatile() }
    }

    /// Clears one word that the device may be writing.
    pub(crate) fn poke(&mut self, word: usize, value: u64) {
        assert!(word * 8 + 8 <= self.bytes, "a write beyond pinned memory");
        // SAFETY: inside the allocation, checked above.
        let at = unsafe { self.raw.cast::<u64>().add(word) };
        // SAFETY: aligned to 8 (pages are); volatile, since the device reads it.
        unsafe { at.write_volatile(value) };
    }

    /// Starts a copy to the device from `at` on.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn copy_to(&self, stream: &Stream, at: usize, addr: u64, bytes: usize) -> Result<()> {
        assert!(at + bytes <= self.bytes, "a copy beyond pinned memory");
        // SAFETY: inside the allocation, checked above.
        let from = unsafe { self.raw.add(at) };
        // SAFETY: the source stays until the owner waited; the core checked the destination.
        let code = unsafe {
            (self.context.table.copy_to_device)(addr, from.cast_const().cast(), bytes, stream.raw())
        };
        self.context.check("cuMemcpyHtoDAsync", code)
    }

    /// Starts a copy from the device to the front of memory that has several holders.
    ///
    /// # Safety
    /// Until the copy has ended, nobody else uses the memory.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) unsafe fn copy_from_shared(&self, stream: &Stream, addr: u64, bytes: usize) -> Result<()> {
        assert!(bytes <= self.bytes, "a copy beyond pinned memory");
        // SAFETY: the destination has room and is our caller's until the copy has ended; the core checked the source.
        let code = unsafe { (self.context.table.copy_to_host)(self.raw.cast(), addr, bytes, stream.raw()) };
        self.context.check("cuMemcpyDtoHAsync", code)
    }

    /// Starts a copy from the device to the front.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn copy_from(&mut self, stream: &Stream, addr: u64, bytes: usize) -> Result<()> {
        assert!(bytes <= self.bytes, "a copy beyond pinned memory");
        // SAFETY: the destination stays until the owner waited; the core checked the source.
        let code = unsafe { (self.context.table.copy_to_host)(self.raw.cast(), addr, bytes, stream.raw()) };
        self.context.check("cuMemcpyDtoHAsync", code)
    }
}

impl Drop for Pinned {
    /// The owner has waited for the work that uses it.
    fn drop(&mut self) {
        let Ok(_bound) = self.context.bind() else { return };
        // SAFETY: allocated in `new`.
        unsafe { (self.context.table.host_free)(self.raw.cast()) };
    }
}

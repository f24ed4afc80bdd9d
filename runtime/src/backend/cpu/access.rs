//! From addresses to slices, checked.
//!
//! A kernel gets an [`Access`] for the duration of one launch and obtains from it the memory that the launch
//! names. It has no other access to the memory of the device, and every slice it gets is valid: inside a
//! usable block (for writing, not one of a mapped file, to which nobody writes), aligned, of the size of its type, and
//! disjoint from every exclusive slice of the same launch. An invalid request ends the stream with a message, as an invalid pointer does on a GPU.

use std::{any::Any, cell::RefCell, panic};

use bytemuck::Pod;
use smallvec::SmallVec;

use super::memory::{Block, Blocks};
use crate::backend::View;

/// The bytes that one launch touches.
pub(crate) struct Access<'a> {
    blocks: &'a Blocks,
    /// Besides the memory of the device: what the parts of a launch pass to each other.
    between: Option<&'a Block>,
    given: RefCell<SmallVec<[Given; 16]>>,
}

/// The parts of one launch, each of which has an access of its own: see [`Access::in_parts`].
pub(crate) struct Parts<'a> {
    blocks: &'a Blocks,
    between: &'a Block,
}

impl Parts<'_> {
    /// Runs the next part. It may use all memory that no other launch of the stream uses, and what this launch has of its own.
    pub(crate) fn run<R>(&mut self, part: impl FnOnce(&Access<'_>) -> R) -> R {
        // The part's slices end with it, as its result cannot hold one.
        part(&Access { blocks: self.blocks, between: Some(self.between), given: RefCell::default() })
    }
}

/// A slice given out.
struct Given {
    start: u64,
    end: u64,
    exclusive: bool,
}

/// The panic payload of a kernel that requests memory which it must not access.
struct InvalidAccess(String);

impl<'a> Access<'a> {
    /// Returns whether a kernel unwound because it asked for memory that it cannot have.
    pub(crate) fn is_invalid_access(payload: &(dyn Any + Send)) -> bool {
        payload.is::<InvalidAccess>()
    }

    /// Returns access to all of `blocks`, which nobody else can read in the meantime.
    pub(super) fn new(blocks: &'a mut Blocks) -> Self {
        Self { blocks, between: None, given: RefCell::default() }
    }

    /// Runs several launches one after the other as parts of this one, which has not asked for memory itself. Besides the
    /// memory of the device they have `bytes` bytes of their own, in poisoned memory; `run` gets its address.
    ///
    /// Unwinds where this launch has asked for memory, and where there is no memory.
    pub(crate) fn in_parts<R>(&self, bytes: usize, run: impl FnOnce(u64, &mut Parts<'_>) -> R) -> R {
        if !self.given.borrow().is_empty() {
            invalid_access("a launch uses memory besides its parts".to_owned());
        }
        let between = Block::poisoned(bytes).unwrap_or_else(|reason| invalid_access(reason.to_string()));
        // Meanwhile, only the parts ask for memory.
        self.given.borrow_mut().push(Given { start: 0, end: u64::MAX, exclusive: true });
        let result = run(between.addr(), &mut Parts { blocks: self.blocks, between: &between });
        self.given.borrow_mut().clear();
        result
    }

    /// The [`span`](crate::value::layout::Layout::span) elements from the first one of `view`.
    ///
    /// Unwinds, and so ends the stream, where `T` is not the view's element type by size, where the
    /// memory is not there, and where it overlaps an exclusive slice of this launch.
    pub(crate) fn slice<T: Pod>(&self, view: &View) -> &'a [T] {
        let span = view.layout.span();
        match self.give(view.addr, span, elements::<T>(view), false) {
            // SAFETY: `give` proved that the range is in one mapping, which `'a` keeps and lets nobody else write (the launch
            // of which this one is a part gives out nothing; that nobody writes to a mapped file is what opening it
            // promises), is aligned for `T` and overlaps no exclusive slice; bytes of a mapping are initialised, and
            // `T: Pod` accepts any of them.
            Some(pointer) => unsafe { std::slice::from_raw_parts(pointer.cast(), span) },
            None => &[],
        }
    }

    /// Like [`slice`](Self::slice), for writing. The elements still have their previous values.
    ///
    /// Unwinds also where it overlaps any other slice of this launch: ask once for each output.
    pub(crate) fn slice_mut<T: Pod>(&self, view: &View) -> &'a mut [T] {
        let span = view.layout.span();
        match self.give(view.addr, span, elements::<T>(view), true) {
            // SAFETY: as in `slice`; and the range overlaps no slice returned before, nor will it overlap one
            // returned later, as `give` remembers it.
            Some(pointer) => unsafe { std::slice::from_raw_parts_mut(pointer.cast(), span) },
            None => &mut [],
        }
    }

    /// The number at `view`, a u32 scalar: how many elements of a padded dimension are real.
    pub(crate) fn count(&self, view: &View) -> usize {
        self.slice::<u32>(view).first().map_or(0, |&count| count as usize)
    }

    /// `len` bytes at `addr`; unwinds as [`slice`](Self::slice) does.
    pub(super) fn bytes(&self, addr: u64, len: usize) -> &'a [u8] {
        match self.give(addr, len, 1, false) {
            // SAFETY: as in `slice`, with `T = u8`.
            Some(pointer) => unsafe { std::slice::from_raw_parts(pointer, len) },
            None => &[],
        }
    }

    /// `len` bytes at `addr`, to write; unwinds as [`slice_mut`](Self::slice_mut) does.
    pub(super) fn bytes_mut(&self, addr: u64, len: usize) -> &'a mut [u8] {
        match self.give(addr, len, 1, true) {
            // SAFETY: as in `slice_mut`, with `T = u8`.
            Some(pointer) => unsafe { std::slice::from_raw_parts_mut(pointer, len) },
            None => &mut [],
        }
    }

    /// The pointer to `span` elements of `size` bytes, aligned to `size`; `None` for no element.
    fn give(&self, addr: u64, span: usize, size: usize, exclusive: bool) -> Option<*mut u8> {
        if span == 0 {
            return None;
        }
        let bytes =
            span.checked_mul(size).unwrap_or_else(|| invalid_access(format!("{span} elements at {addr:#x}")));
        if !addr.is_multiple_of(size as u64) {
            invalid_access(format!("the address {addr:#x} is not aligned to {size} bytes"));
        }
        let between = self.between.and_then(|between| between.pointer(addr, bytes as u64, exclusive));
        let Some(pointer) = between.or_else(|| self.blocks.pointer(addr, bytes as u64, exclusive)) else {
            invalid_access(format!(
                "{bytes} bytes at {addr:#x} are not (or no longer) memory of this device that may be {}",
                if exclusive { "written" } else { "read" }
            ));
        };
        let end = addr + bytes as u64;
        let mut given = self.given.borrow_mut();
        if given.iter().any(|g| (exclusive || g.exclusive) && g.start < end && addr < g.end) {
            invalid_access(format!(
                "{bytes} bytes at {addr:#x} are written and used otherwise by one launch"
            ));
        }
        given.push(Given { start: addr, end, exclusive });
        Some(pointer)
    }
}

/// The bytes of an element, which `T` must have; element types are aligned to their size.
fn elements<T>(view: &View) -> usize {
    let size = size_of::<T>();
    if size != view.dtype.size() || align_of::<T>() > size {
        invalid_access(format!("an element of {size} bytes is asked for, in memory of {}", view.dtype));
    }
    size
}

/// Ends the kernel.
#[cold]
fn invalid_access(what: String) -> ! {
    // No panic hook: the stream reports it, as an error of the calls that follow.
    panic::resume_unwind(Box::new(InvalidAccess(what)))
}

/// Returns a description of a kernel's panic payload.
pub(super) fn explain(payload: &(dyn Any + Send)) -> String {
    if let Some(InvalidAccess(what)) = payload.downcast_ref() {
        format!("a launch went astray: {what}")
    } else if let Some(what) = payload.downcast_ref::<String>() {
        format!("a kernel panicked: {what}")
    } else if let Some(what) = payload.downcast_ref::<&str>() {
        format!("a kernel panicked: {what}")
    } else {
        "a kernel panicked".into()
    }
}

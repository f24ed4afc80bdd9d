//! What a test allocates, counted for each thread.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

/// The system's allocator, counting.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    /// Bytes that this thread has allocated and not freed since counting began. Below zero if it freed what it got before.
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that ends may allocate after its variables are gone.
    NOW.try_with(|now| {
        now.set(now.get() + bytes);
        PEAK.try_with(|peak| peak.set(peak.get().max(now.get()))).ok();
    })
    .ok();
}

// SAFETY: every call goes to the system's allocator unchanged; counting does not allocate, since the variables need neither an
// initialiser nor a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new exist together until the contents are copied.
        count(size as isize);
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Runs `work` and returns its result with the largest number of bytes that this thread had allocated at a time, beyond what it had
/// before.
pub(crate) fn peak<R>(work: impl FnOnce() -> R) -> (R, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let result = work();
    (result, (PEAK.get() - before) as usize)
}

#[test]
fn allocations_are_counted() {
    let (kept, bytes) = peak(|| {
        drop(vec![1u8; 100_000]);
        vec![0u8; 60_000]
    });
    assert_eq!((kept.len(), bytes), (60_000, 100_000));
    let ((), bytes) = peak(|| {
        let mut grown = Vec::<u8>::with_capacity(10_000);
        grown.reserve_exact(30_000);
    });
    assert_eq!(bytes, 40_000);
}

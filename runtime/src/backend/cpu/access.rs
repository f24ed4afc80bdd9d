//! The one place where addresses become slices.

use std::{
    collections::BTreeMap,
    marker::PhantomData,
    sync::{Arc, PoisonError, RwLock},
};

use bytemuck::Pod;

use crate::backend::View;

/// The address ranges that the backend has given out, by start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(Arc<RwLock<BTreeMap<u64, u64>>>);

impl Ranges {
    pub(crate) fn add(&self, start: u64, end: u64) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(start, end);
    }

    pub(crate) fn remove(&self, start: u64) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&start);
    }

    fn holds(&self, start: u64, end: u64) -> bool {
        let ranges = self.0.read().unwrap_or_else(PoisonError::into_inner);
        ranges.range(..=start).next_back().is_some_and(|(_, &e)| end <= e)
    }
}

/// The worker's right to device memory while it carries out one command.
pub(crate) struct Access<'a> {
    ranges: &'a Ranges,
    _memory: PhantomData<&'a mut [u8]>,
}

impl<'a> Access<'a> {
    /// # Safety
    /// Only the stream's worker may call this, once per command: nobody else touches device memory, so
    /// the slices given out are aliased by nothing outside the command.
    pub(crate) unsafe fn new(ranges: &'a Ranges) -> Self {
        Self { ranges, _memory: PhantomData }
    }

    fn check<T>(&self, view: &View) -> usize {
        let span = view.layout.span();
        let bytes = (span * size_of::<T>()) as u64;
        assert!(
            self.ranges.holds(view.addr, view.addr + bytes) && view.addr.is_multiple_of(align_of::<T>() as u64),
            "illegal address: {view:?} lies outside all memory of this device"
        );
        span
    }

    /// The elements from the first to the last that `view` touches.
    ///
    /// # Panics
    /// When they lie outside the device's memory; the stream is then lost.
    pub(crate) fn slice<T: Pod>(&self, view: &View) -> &[T] {
        if view.layout.count() == 0 {
            return &[];
        }
        let span = self.check::<T>(view);
        let start = std::ptr::with_exposed_provenance::<T>(view.addr as usize);
        // SAFETY: `check` found the range inside one live mapping of this backend (its provenance was
        // exposed when it was made, and mappings are released by this worker only) and aligned for `T`;
        // `Pod` makes any bytes valid. Mappings are zeroed, so they are initialised. Only this worker
        // writes device memory, and the outputs of a command do not overlap its inputs (`Launch`).
        unsafe { std::slice::from_raw_parts(start, span) }
    }

    /// As [`slice`](Self::slice), to write.
    ///
    /// # Panics
    /// As [`slice`](Self::slice).
    #[expect(clippy::mut_from_ref, reason = "device memory is no part of `self`; outputs are disjoint")]
    pub(crate) fn slice_mut<T: Pod>(&self, view: &View) -> &mut [T] {
        if view.layout.count() == 0 {
            return &mut [];
        }
        let span = self.check::<T>(view);
        let start = std::ptr::with_exposed_provenance_mut::<T>(view.addr as usize);
        // SAFETY: as in `slice`; in addition the core never launches an operation whose output overlaps
        // an input or another output (outputs are fresh blocks, or state that is only an output), and
        // kernels ask for each output once.
        unsafe { std::slice::from_raw_parts_mut(start, span) }
    }
}

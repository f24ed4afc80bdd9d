//! Device time for a timeline: a slice for each segment and eager region.
//!
//! Events on the device before and after them are requested only while a subscriber wants the timeline. Their
//! times are known later, and reported at the start of the next step, when many are pending, and when the
//! runtime is dropped.

use std::{
    cell::RefCell,
    collections::VecDeque,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{Runtime, backend::Mark, base::plan::Site};

/// The number of pending slices above which a step reports the finished ones immediately.
const WAITING: usize = 4096;

/// The greatest distance from a point on both clocks that is measured: the driver reports distances as
/// milliseconds in an `f32`, whose resolution is 60 ns after a second and 4 µs after a minute.
const REACH: Duration = Duration::from_secs(1);

/// A point on both clocks.
struct Origin {
    mark: Arc<dyn Mark>,
    host: Instant,
    /// The device's name.
    device: String,
}

/// Work that was submitted to the device.
struct Slice {
    site: &'static Site,
    what: &'static str,
    begin: Arc<dyn Mark>,
    end: Arc<dyn Mark>,
}

#[derive(Default)]
struct Slices {
    origin: Option<Origin>,
    /// In the order of the stream.
    waiting: VecDeque<Slice>,
}

/// The slices of one runtime that have not been reported yet.
#[derive(Default)]
pub(crate) struct DeviceTimeline(RefCell<Slices>);

impl Runtime {
    /// Records a point before work that will become a slice; `None` if there is no subscriber, and during a
    /// capture.
    pub(crate) fn slice_begins(&self) -> Option<Arc<dyn Mark>> {
        if !tracing::enabled!(target: "graphable::timeline", tracing::Level::TRACE) {
            return None;
        }
        let mut core = self.core.borrow_mut();
        let mut slices = self.device_timeline.0.borrow_mut();
        if slices.origin.is_none() {
            let mark = core.stream.backend_mut().mark().ok()?;
            // This happens once: from here on, both clocks are compared by their distance to this point.
            mark.wait().ok()?;
            slices.origin = Some(Origin { mark, host: Instant::now(), device: core.stream.backend().name() });
        }
        core.stream.backend_mut().mark().ok()
    }

    /// Records the end of the work that began at `begin`.
    pub(crate) fn slice_ends(&self, site: &'static Site, what: &'static str, begin: Option<Arc<dyn Mark>>) {
        let Some(begin) = begin else { return };
        if let Ok(end) = self.core.borrow_mut().stream.backend_mut().mark() {
            let mut slices = self.device_timeline.0.borrow_mut();
            slices.waiting.push_back(Slice { site, what, begin, end });
            if slices.waiting.len() >= WAITING {
                slices.tell(|end| end.is_reached().unwrap_or(true));
            }
        }
    }

    /// Reports the slices that have finished.
    pub(crate) fn tell_slices(&self) {
        self.device_timeline.0.borrow_mut().tell(|end| end.is_reached().unwrap_or(true));
    }
}

impl Slices {
    fn tell(&mut self, is_over: impl Fn(&dyn Mark) -> bool) {
        let Some(origin) = &mut self.origin else { return };
        while let Some(slice) = self.waiting.pop_front_if(|slice| is_over(&*slice.end)) {
            // Work that failed on the device has no time.
            let (Ok(Some(began)), Ok(Some(took))) =
                (slice.begin.since(&*origin.mark), slice.end.since(&*slice.begin))
            else {
                continue;
            };
            let ended = origin.host + began + took;
            let ago = Instant::now().saturating_duration_since(ended);
            let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            tracing::trace!(
                target: "graphable::timeline",
                device = origin.device,
                title = %slice.site.title(),
                what = slice.what,
                file = slice.site.file,
                line = slice.site.first_line,
                took_ns = nanoseconds(took),
                ended_ago_ns = nanoseconds(ago),
            );
            if began > REACH {
                (origin.mark, origin.host) = (slice.begin, origin.host + began);
            }
        }
    }
}

impl Drop for DeviceTimeline {
    fn drop(&mut self) {
        self.0.get_mut().tell(|end| end.wait().is_ok());
    }
}

impl fmt::Debug for DeviceTimeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceTimeline").finish_non_exhaustive()
    }
}

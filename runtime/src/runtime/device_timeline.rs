//! The device's own time, for a timeline: a slice for each segment and eager region.
//!
//! Events on the device before and behind them are asked for while a subscriber wants the timeline, and only then.
//! What they say is known later: it is told at the start of the next step, where many wait, and when the runtime is
//! dropped.

use std::{
    cell::RefCell,
    collections::VecDeque,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{Runtime, backend::Mark, base::plan::Site};

/// Slices that may wait: in a step with more, those that are over are told at once.
const WAITING: usize = 4096;

/// How far from a point on both clocks distances are measured: the driver tells them as milliseconds in an `f32`, whose
/// steps are 60 ns after a second and 4 µs after a minute.
const REACH: Duration = Duration::from_secs(1);

/// A point on both clocks.
struct Origin {
    mark: Arc<dyn Mark>,
    host: Instant,
    /// The device's name.
    device: String,
}

/// Work that the device has been given.
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

/// The slices of one runtime that are not told yet.
#[derive(Default)]
pub(crate) struct DeviceTimeline(RefCell<Slices>);

impl Runtime {
    /// A point before something that is to be a slice; `None` while nobody wants it, and in a capture.
    pub(crate) fn slice_begins(&self) -> Option<Arc<dyn Mark>> {
        if !tracing::enabled!(target: "graphable::timeline", tracing::Level::TRACE) {
            return None;
        }
        let mut core = self.core.borrow_mut();
        let mut slices = self.device_timeline.0.borrow_mut();
        if slices.origin.is_none() {
            let mark = core.stream.backend_mut().mark().ok()?;
            // Once: from here on both clocks are compared by their distance to this point.
            mark.wait().ok()?;
            slices.origin = Some(Origin { mark, host: Instant::now(), device: core.stream.backend().name() });
        }
        core.stream.backend_mut().mark().ok()
    }

    /// The end of what began there.
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

    /// Tells of the slices that are over.
    pub(crate) fn tell_slices(&self) {
        self.device_timeline.0.borrow_mut().tell(|end| end.is_reached().unwrap_or(true));
    }
}

impl Slices {
    fn tell(&mut self, is_over: impl Fn(&dyn Mark) -> bool) {
        let Some(origin) = &mut self.origin else { return };
        while let Some(slice) = self.waiting.pop_front_if(|slice| is_over(&*slice.end)) {
            // What failed on the device has no time.
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

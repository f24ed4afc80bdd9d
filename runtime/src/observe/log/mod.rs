//! The destinations of occurrences: always the counters; the list of events, `GRAPHABLE_LOG`, hooks and
//! `tracing` if they are wanted.

mod printer;
#[cfg(test)]
mod tests;
mod traced;

use std::collections::VecDeque;

use printer::Printer;
use tracing::level_filters::LevelFilter;

use crate::{
    Stats,
    base::{plan::Site, reason::FallbackReason},
    observe::{event::Event, hooks::LifecycleEvent, occurrence::Occurrence},
};

/// The target of all events, by which subscribers can filter.
const TARGET: &str = "graphable::log";

/// The maximum number of events that are kept; older ones are dropped first.
const KEPT: usize = 65_536;

#[derive(Debug)]
pub(crate) struct Log {
    /// The counters, as far as occurrences alone determine them.
    stats: Stats,
    /// Set if anything but the counters and `tracing` needs occurrences.
    is_heard: bool,
    /// The list of events, while it is kept.
    events: Option<VecDeque<Event>>,
    printer: Printer,
    /// The fallbacks for which a warning was logged, by function.
    warned: Vec<(&'static str, FallbackReason)>,
    /// The segments about which something was learned, while this is watched.
    fresh: Option<Vec<&'static Site>>,
    /// Lifecycle events of recordings, while there are hooks.
    lifecycle: Option<Vec<LifecycleEvent>>,
}

impl Default for Log {
    fn default() -> Self {
        Self::with(Printer::of_environment())
    }
}

impl Log {
    fn with(printer: Printer) -> Self {
        Self {
            stats: Stats::default(),
            is_heard: printer.is_on(),
            events: None,
            printer,
            warned: Vec::new(),
            fresh: None,
            lifecycle: None,
        }
    }

    /// Returns the sums over all occurrences.
    #[inline]
    pub(crate) fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Starts or stops keeping events.
    pub(crate) fn keep(&mut self, on: bool) {
        self.events = on.then(|| self.events.take().unwrap_or_default());
        self.note_listeners();
    }

    /// Returns the events that were kept since the last call.
    pub(crate) fn take(&mut self) -> Vec<Event> {
        self.events.as_mut().map(|events| events.drain(..).collect()).unwrap_or_default()
    }

    /// Starts or stops watching for new recordings and warm-ups; returns those since the last call.
    pub(crate) fn watch(&mut self, on: bool) -> Vec<&'static Site> {
        let fresh = std::mem::replace(&mut self.fresh, on.then(Vec::new));
        self.note_listeners();
        fresh.unwrap_or_default()
    }

    /// Starts or stops collecting lifecycle events of recordings.
    pub(crate) fn watch_recordings(&mut self, on: bool) {
        self.lifecycle = on.then(|| self.lifecycle.take().unwrap_or_default());
        self.note_listeners();
    }

    /// Returns the lifecycle events since the last call.
    pub(crate) fn take_lifecycle(&mut self) -> Vec<LifecycleEvent> {
        self.lifecycle.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn note_listeners(&mut self) {
        self.is_heard =
            self.events.is_some() || self.printer.is_on() || self.fresh.is_some() || self.lifecycle.is_some();
    }

    /// Reports an occurrence. Without listeners, only counters change.
    ///
    /// Inlined, so that only the branch of the actual kind remains of the match over all kinds.
    #[inline(always)]
    pub(crate) fn emit(&mut self, occurrence: Occurrence<'_>) {
        self.stats.apply(&occurrence);
        // Fallbacks for which a warning was logged are noted in any case.
        let is_wanted = self.is_heard || matches!(occurrence, Occurrence::FellBack { .. });
        if is_wanted || occurrence.level().is_some_and(|level| level <= LevelFilter::current()) {
            // A copy, so that the occurrence itself need not be in memory without listeners.
            let heard = occurrence;
            self.deliver(&heard);
        }
    }

    #[cold]
    fn deliver(&mut self, occurrence: &Occurrence<'_>) {
        let is_repeated = self.is_repeated(occurrence);
        if !is_repeated {
            traced::report(*occurrence);
        }
        if let (Some(fresh), Some(site)) = (&mut self.fresh, occurrence.learned())
            && !fresh.contains(&site)
        {
            fresh.push(site);
        }
        if let Some(lifecycle) = &mut self.lifecycle {
            occurrence.add_lifecycle(lifecycle);
        }
        if self.events.is_none() && !self.printer.is_on() {
            return;
        }
        let (Some(event), Some(level)) = (occurrence.event(), occurrence.level()) else { return };
        if !is_repeated {
            self.printer.print(&event, level);
        }
        if let Some(events) = &mut self.events {
            if events.len() == KEPT {
                events.pop_front();
            }
            events.push_back(event);
        }
    }

    /// Returns whether a warning was logged before: this happens once for each cause of a fallback and each
    /// function.
    fn is_repeated(&mut self, occurrence: &Occurrence<'_>) -> bool {
        let Occurrence::FellBack { function, reason } = *occurrence else { return false };
        let is_repeated = self.warned.iter().any(|(f, r)| *f == function && r.same_cause(reason));
        if !is_repeated {
            self.warned.push((function, reason.clone()));
        }
        is_repeated
    }
}

//! The single stream of reports by the parts of a runtime, from which counters, events, hooks and log lines
//! are made.
//!
//! An occurrence is plain data with references to its subjects. Nothing is formatted or allocated until a
//! listener needs it as an [`Event`] or a [`LifecycleEvent`].

use std::time::Duration;

use tracing::Level;

use crate::{
    Error,
    base::{plan::Site, reason::FallbackReason, recording_id::RecordingId},
    observe::{
        event::{CopySlot, Event, RerecordReason, UnsharedReason, WaitReason},
        hooks::{GraphId, Lifecycle, LifecycleEvent},
    },
};

/// The reason why a segment currently runs in warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    NotWarm,
    SameCall,
    Behind(&'static Site),
}

impl Wait {
    pub(crate) fn reason(self) -> WaitReason {
        match self {
            Self::NotWarm => WaitReason::NotWarm,
            Self::SameCall => WaitReason::WarmedInThisCall,
            Self::Behind(site) => WaitReason::BehindWarmUp { segment: site.to_string() },
        }
    }
}

/// A recording, as events refer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordingRef {
    pub(crate) id: RecordingId,
    /// The recorded segment.
    pub(crate) site: &'static Site,
    /// The graph object whose call recorded it; for a replay, the one whose call replays it.
    pub(crate) graph: GraphId,
    /// The function of that object.
    pub(crate) function: &'static str,
}

/// The executable of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExecutableRef {
    /// The recording launches nothing.
    None,
    /// An executable of its own.
    Own { kernels: usize, bytes: u64 },
    /// The executable of another recording.
    Shared { with: RecordingId },
}

impl ExecutableRef {
    fn lifecycle(self) -> Option<Lifecycle> {
        match self {
            Self::None => None,
            Self::Own { kernels, bytes } => Some(Lifecycle::Instantiated { kernels, bytes }),
            Self::Shared { with } => Some(Lifecycle::Shares { with }),
        }
    }
}

/// One occurrence. [`Event`] documents the variants of the same name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Occurrence<'a> {
    Warmed {
        site: &'static Site,
    },
    Waited {
        function: &'static str,
        site: &'static Site,
        wait: Wait,
    },
    /// A recording has run for the first time.
    Recorded {
        recording: RecordingRef,
        executable: ExecutableRef,
        capture: Duration,
    },
    /// A recording failed to run for the first time, so it does not enter the tree.
    NeverRan {
        recording: RecordingRef,
        executable: ExecutableRef,
        error: &'a Error,
    },
    Shared {
        recording: RecordingRef,
        with: RecordingId,
    },
    /// The recording may not be in the tree yet.
    Updated {
        site: &'static Site,
        recording: RecordingId,
        cost: Duration,
    },
    Unshared {
        recording: RecordingRef,
        reason: &'a UnsharedReason,
    },
    /// A recording that shared an executable has one of its own.
    SplitOff {
        recording: RecordingRef,
        executable: ExecutableRef,
    },
    /// A recording that should have got an executable of its own continues with that of others.
    StillShared {
        site: &'static Site,
        error: &'a Error,
    },
    CaptureInvalidated {
        site: &'static Site,
    },
    Replayed {
        recording: RecordingRef,
    },
    ReplayFailed {
        recording: RecordingRef,
        error: &'a Error,
    },
    Rerecorded {
        site: &'static Site,
        reason: &'a RerecordReason,
    },
    SwitchedToCopy {
        site: &'static Site,
        live_in: usize,
        moves: usize,
    },
    ManyShapes {
        function: &'static str,
        shapes: usize,
    },
    ManyCaptures {
        function: &'static str,
        captures: usize,
    },
    RanEager {
        site: &'static Site,
    },
    Copied {
        slot: CopySlot,
        bytes: u64,
    },
    FellBack {
        function: &'static str,
        reason: &'a FallbackReason,
    },
    NotConverged {
        function: &'static str,
        sizes: &'a [usize],
        segments: &'a [&'static Site],
    },
    CaptureMeasured {
        expected_bytes: Option<u64>,
        bytes: u64,
    },
    /// A recording has left the tree.
    Destroyed {
        recording: RecordingRef,
    },
    /// This number of recordings did, together.
    Evicted {
        recordings: usize,
    },
    Aborted {
        site: &'static Site,
    },
    Audited {
        site: &'static Site,
    },
}

pub(crate) fn names(sites: &[&'static Site]) -> Vec<String> {
    sites.iter().map(ToString::to_string).collect()
}

impl Occurrence<'_> {
    /// Returns its level in `tracing`, if it is reported there.
    #[inline(always)]
    pub(super) fn level(&self) -> Option<Level> {
        Some(match self {
            Self::Updated { .. } | Self::Replayed { .. } | Self::RanEager { .. } => Level::TRACE,
            Self::Warmed { .. }
            | Self::Waited { .. }
            | Self::Recorded { .. }
            | Self::Shared { .. }
            | Self::Copied { .. }
            | Self::Evicted { .. }
            | Self::Audited { .. } => Level::DEBUG,
            Self::Unshared { .. }
            | Self::Rerecorded { .. }
            | Self::CaptureMeasured { .. }
            | Self::Aborted { .. } => Level::INFO,
            Self::FellBack { reason, .. } if reason.is_wanted() => Level::DEBUG,
            Self::FellBack { .. }
            | Self::StillShared { .. }
            | Self::CaptureInvalidated { .. }
            | Self::SwitchedToCopy { .. }
            | Self::ManyShapes { .. }
            | Self::ManyCaptures { .. }
            | Self::NotConverged { .. } => Level::WARN,
            Self::NeverRan { .. }
            | Self::SplitOff { .. }
            | Self::ReplayFailed { .. }
            | Self::Destroyed { .. } => return None,
        })
    }

    /// Returns the event that users see, if there is one.
    pub(super) fn event(self) -> Option<Event> {
        Some(match self {
            Self::Warmed { site } => Event::Warmed { segment: site.to_string() },
            Self::Waited { function, site, wait } => {
                Event::Waited { function, segment: site.to_string(), reason: wait.reason() }
            }
            Self::Recorded { recording: RecordingRef { id, site, .. }, capture, .. } => {
                Event::Recorded { segment: site.to_string(), recording: id, capture }
            }
            Self::Shared { recording: RecordingRef { id, site, .. }, with } => {
                Event::Shared { segment: site.to_string(), recording: id, with }
            }
            Self::Updated { site, recording, cost } => {
                Event::Updated { segment: site.to_string(), recording, cost }
            }
            Self::Unshared { recording: RecordingRef { id, site, .. }, reason } => {
                Event::Unshared { segment: site.to_string(), recording: id, reason: reason.clone() }
            }
            Self::CaptureInvalidated { site } => Event::CaptureInvalidated { segment: site.to_string() },
            Self::Replayed { recording: RecordingRef { id, site, .. } } => {
                Event::Replayed { segment: site.to_string(), recording: id }
            }
            Self::Rerecorded { site, reason } => {
                Event::Rerecorded { segment: site.to_string(), reason: reason.clone() }
            }
            Self::SwitchedToCopy { site, live_in, moves } => {
                Event::SwitchedToCopy { segment: site.to_string(), live_in, moves }
            }
            Self::ManyShapes { function, shapes } => Event::ManyShapes { function, shapes },
            Self::ManyCaptures { function, captures } => Event::ManyCaptures { function, captures },
            Self::RanEager { site } => Event::RanEager { boundary: site.to_string() },
            Self::Copied { slot, bytes } => Event::Copied { slot, bytes },
            Self::FellBack { function, reason } => Event::FellBack { function, reason: reason.clone() },
            Self::NotConverged { function, sizes, segments } => {
                Event::NotConverged { function, sizes: sizes.to_vec(), segments: names(segments) }
            }
            Self::CaptureMeasured { expected_bytes, bytes } => {
                Event::CaptureMeasured { expected_bytes, bytes }
            }
            Self::Evicted { recordings } => Event::Evicted { recordings },
            Self::Aborted { site } => Event::Aborted { segment: site.to_string() },
            Self::Audited { site } => Event::Audited { segment: site.to_string() },
            Self::NeverRan { .. }
            | Self::SplitOff { .. }
            | Self::StillShared { .. }
            | Self::ReplayFailed { .. }
            | Self::Destroyed { .. } => return None,
        })
    }

    /// Adds its lifecycle events, in order; nothing if it is not about the lifecycle of a recording.
    pub(super) fn add_lifecycle(self, to: &mut Vec<LifecycleEvent>) {
        let replayed = |error: Option<&Error>| Lifecycle::Replayed { error: error.map(ToString::to_string) };
        let mut add = |RecordingRef { id: recording, site: segment, graph, function }, what| {
            to.push(LifecycleEvent { recording, graph, function, segment, what });
        };
        match self {
            Self::Recorded { recording, executable, .. } => {
                add(recording, Lifecycle::Recorded);
                executable.lifecycle().into_iter().for_each(|what| add(recording, what));
                add(recording, replayed(None));
            }
            Self::NeverRan { recording, executable, error } => {
                add(recording, Lifecycle::Recorded);
                executable.lifecycle().into_iter().for_each(|what| add(recording, what));
                add(recording, replayed(Some(error)));
                add(recording, Lifecycle::Destroyed);
            }
            Self::SplitOff { recording, executable } => {
                executable.lifecycle().into_iter().for_each(|what| add(recording, what));
            }
            Self::Replayed { recording } => add(recording, replayed(None)),
            Self::ReplayFailed { recording, error } => add(recording, replayed(Some(error))),
            Self::Destroyed { recording } => add(recording, Lifecycle::Destroyed),
            _ => {}
        }
    }

    /// Returns the segment about which the tree has just learned something, or soon will.
    pub(super) fn learned(self) -> Option<&'static Site> {
        match self {
            Self::Warmed { site } => Some(site),
            Self::Recorded { recording, .. } => Some(recording.site),
            // It may end without a recording, which will then follow.
            Self::CaptureInvalidated { site } => Some(site),
            _ => None,
        }
    }
}

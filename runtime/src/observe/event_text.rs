//! The text of events, one line each.

use std::fmt;

use crate::observe::event::{CopySlot, Event};

impl fmt::Display for CopySlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "a device input, to be padded",
            Self::Eager => "the result of an eager region",
            Self::Result => "an output of a call",
            Self::LiveIn => "a live-in that keeps moving",
            Self::Kept => "a kept value",
        })
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Warmed { segment } => write!(f, "warmed up {segment}"),
            Self::Waited { function, segment, reason } => {
                write!(f, "{segment} in `{function}` is not recorded yet: {reason}")
            }
            Self::Recorded { segment, recording, capture } => {
                write!(f, "recorded {segment} as {recording} in {capture:.1?}")
            }
            Self::Shared { segment, recording, with } => {
                write!(f, "recording {recording} of {segment} shares the executable of {with}")
            }
            Self::Updated { segment, recording, cost } => {
                write!(f, "updated an executable for recording {recording} of {segment} in {cost:.1?}")
            }
            Self::Unshared { segment, recording, reason } => {
                write!(f, "recording {recording} of {segment} has an executable of its own: {reason}")
            }
            Self::CaptureInvalidated { segment } => {
                write!(
                    f,
                    "another thread of this process disturbed the capture of {segment}; recording again"
                )
            }
            Self::Replayed { segment, recording } => write!(f, "replayed {recording} of {segment}"),
            Self::Rerecorded { segment, reason } => write!(f, "records {segment} again: {reason}"),
            Self::SwitchedToCopy { segment, live_in, moves } => {
                write!(f, "live-in {live_in} of {segment} moved {moves} times; it is copied from now on")
            }
            Self::ManyShapes { function, shapes } => {
                write!(f, "`{function}` is recorded for {shapes} shapes; buckets would bound their number")
            }
            Self::ManyCaptures { function, captures } => {
                write!(
                    f,
                    "`capture_all` of `{function}` makes {captures} captures, one for each combination of sizes; list \
                     those that occur (`capture_only`)"
                )
            }
            Self::RanEager { boundary } => write!(f, "ran {boundary} eagerly"),
            Self::Copied { slot, bytes } => write!(f, "copied {bytes} bytes: {slot}"),
            Self::FellBack { function, reason } => {
                write!(f, "`{function}` runs without a graph: {reason}; {}", reason.remedy())
            }
            Self::NotConverged { function, sizes, segments } => {
                write!(f, "`{function}` still records something new for {sizes:?}: {}", segments.join(", "))
            }
            Self::CaptureMeasured { expected_bytes: Some(expected), bytes } => {
                write!(f, "captures took {bytes} bytes, {expected} were expected")
            }
            Self::CaptureMeasured { expected_bytes: None, bytes } => write!(f, "captures took {bytes} bytes"),
            Self::Evicted { recordings } => write!(f, "evicted {recordings} recordings"),
            Self::Aborted { segment } => write!(f, "aborted the capture of {segment}"),
            Self::Audited { segment } => write!(f, "compared a replay of {segment} with its body: equal"),
        }
    }
}

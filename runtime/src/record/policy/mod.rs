//! The decision whether and how something becomes a graph.

pub(crate) mod limits;

use std::fmt;

use crate::{Limits, Mode, Site, base::reason::FallbackReason};

/// A call that is about to start.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct CallInfo<'a> {
    /// The function.
    pub function: &'static str,
    /// The mode selected in its builder.
    pub mode: Mode,
    /// The `#[dims]` symbols and their sizes in this call, without padding.
    pub sizes: &'a [(&'static str, usize)],
}

/// A device live-in at an address that no recording of its edge expects.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Index among the segment's device operands.
    pub live_in: usize,
    /// The number of times that this happened, including this time.
    pub moves: usize,
    /// If set, a recording can read a copy of it instead, because it is not empty.
    pub can_copy: bool,
}

/// A segment that no recording matches.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct SegmentInfo<'a> {
    /// The function that was called.
    pub function: &'static str,
    /// The segment; in full mode, the first part of the function.
    pub site: &'static Site,
    /// The limits of its builder.
    pub limits: &'a Limits,
    /// The number of operations that it launches; `None` before its warm-up.
    pub kernels: Option<usize>,
    /// The number of recordings made on this edge, including evicted ones.
    pub recordings: usize,
    /// The number of distinct shapes (and keys) of the function's calls, including this one.
    pub shapes: usize,
    /// Set if the shape of this call is new to the segment.
    pub new_shape: bool,
    /// The live-ins that moved.
    pub moved: &'a [Moved],
}

impl SegmentInfo<'_> {
    /// Returns the decision of the limits alone.
    pub fn built_in(&self) -> SegmentDecision {
        self.limits.decide(self)
    }
}

/// The decision about a segment that no recording matches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SegmentDecision {
    /// Warm it up, or record it.
    Record,
    /// Like [`Record`](Self::Record), but this recording and all later ones of the edge read copies of these
    /// live-ins. Live-ins that did not move, or cannot be copied, are ignored.
    Copy(Vec<usize>),
    /// Run it without a graph this time.
    Eager(FallbackReason),
    /// Run it without a graph on this edge from now on. Its recordings are evicted.
    Skip(FallbackReason),
}

/// Decides whether something becomes a graph, and how: `.policy(MyPolicy)` of a builder.
///
/// A segment with a matching recording is replayed without consulting the policy. The default methods do the
/// same as having no policy. A policy is called while the runtime is borrowed, and cannot access it.
///
/// ```
/// use graphable::{CallInfo, Mode, Policy};
///
/// /// Large batches gain nothing from graphs.
/// #[derive(Debug)]
/// struct SmallBatches;
///
/// impl Policy for SmallBatches {
///     fn call(&self, call: &CallInfo<'_>) -> Mode {
///         if call.sizes.iter().any(|(_, n)| *n > 256) { Mode::None } else { call.mode }
///     }
/// }
/// ```
pub trait Policy: fmt::Debug + Send + Sync {
    /// Returns the mode of a call; for a pair of modes, its batch selects one. Called once at the start of a
    /// call, unless the function or the scope is [switched off](crate::Step::graphs).
    fn call(&self, call: &CallInfo<'_>) -> Mode {
        call.mode
    }

    /// Returns the decision about a segment that no recording matches: before its warm-up, and before each
    /// recording.
    fn segment(&self, segment: &SegmentInfo<'_>) -> SegmentDecision {
        segment.built_in()
    }
}

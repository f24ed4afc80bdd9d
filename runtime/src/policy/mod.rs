//! Who decides whether something becomes a graph, and how.

pub(crate) mod limits;

use std::fmt;

use crate::{Limits, Mode, Site, base::reason::FallbackReason};

/// A call that starts.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct CallInfo<'a> {
    /// The function.
    pub function: &'static str,
    /// The mode that its builder chose.
    pub mode: Mode,
    /// The `#[dims]` symbols and their sizes in this call, without padding.
    pub sizes: &'a [(&'static str, usize)],
}

/// A device live-in that lies where no recording of its edge expects it.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Index among the segment's device operands.
    pub live_in: usize,
    /// How often it did so, this time included.
    pub moves: usize,
    /// Whether a recording can read a copy of it instead: it is not empty.
    pub can_copy: bool,
}

/// A segment that no recording fits.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct SegmentInfo<'a> {
    /// The function that is called.
    pub function: &'static str,
    /// The segment; in full mode, the first part of the function.
    pub site: &'static Site,
    /// The limits of its builder.
    pub limits: &'a Limits,
    /// Operations that it launches; `None` before its warm-up.
    pub kernels: Option<usize>,
    /// Recordings that were made on this edge, evicted ones included.
    pub recordings: usize,
    /// Distinct shapes (and keys) of the function's calls, this one included.
    pub shapes: usize,
    /// Whether this call brought a shape that the segment never met.
    pub new_shape: bool,
    /// The live-ins that moved.
    pub moved: &'a [Moved],
}

impl SegmentInfo<'_> {
    /// What the limits alone say.
    pub fn built_in(&self) -> SegmentDecision {
        self.limits.decide(self)
    }
}

/// What to do with a segment that no recording fits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SegmentDecision {
    /// Warm it up, or record it.
    Record,
    /// As [`Record`](Self::Record); this recording and all later ones of the edge read copies of these
    /// live-ins. Those that did not move, or cannot be copied, are left out.
    Copy(Vec<usize>),
    /// Run it without a graph this time.
    Eager(FallbackReason),
    /// Run it without a graph on this edge from now on. Its recordings are evicted.
    Skip(FallbackReason),
}

/// Decides whether something becomes a graph, and how: `.policy(MyPolicy)` of a builder.
///
/// What has a recording that fits is replayed without asking. The defaults are what happens without a
/// policy. A policy is asked while the runtime is borrowed, and has no part in it.
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
    /// The mode of a call; of a pair of modes, its batch takes one. Asked once at its start, unless the function
    /// or the scope is [switched off](crate::Step::graphs).
    fn call(&self, call: &CallInfo<'_>) -> Mode {
        call.mode
    }

    /// What to do with a segment that no recording fits: before its warm-up, and before each recording.
    fn segment(&self, segment: &SegmentInfo<'_>) -> SegmentDecision {
        segment.built_in()
    }
}

//! Limits on recordings, and the actions beyond them.

use super::{SegmentDecision, SegmentInfo};
use crate::base::reason::FallbackReason;

/// The action for a live-in whose address keeps changing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnMove {
    /// The next recording reads a buffer of its own, and each replay first copies the bytes there.
    #[default]
    Copy,
    /// From then on, the segment runs without a graph at that place of the tree, even if an older recording
    /// matches.
    Skip,
}

/// Limits of one graph object, set by its builder: `.limits(|l| l.max_moves = 2)`.
///
/// The counts belong to an *edge* of the tree: a segment with its shapes and parameters, after the preceding
/// recording. Graph objects of one function share recordings, and therefore also counts.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of recordings on one edge. Beyond it, the edge runs eagerly if no recording
    /// matches. A replaced parameter has an edge of its own, so it does not count. Default: 128.
    ///
    /// Beyond this limit, a live-in that moved is not copied to where a recording reads it, as it is after
    /// [`Runtime::close_capture`](crate::Runtime::close_capture), because such copies are unbounded and may
    /// take longer than the launches that they save. [`max_moves`](Self::max_moves) requests copies, and by
    /// default applies long before this limit.
    pub max_recordings: usize,
    /// The number of times that a device live-in may be at an address that no recording of the edge expects
    /// before [`on_move`](Self::on_move) applies to it. `usize::MAX` means never. Default: 5.
    pub max_moves: usize,
    /// The action after that.
    pub on_move: OnMove,
    /// The number of distinct shapes (and keys, among them which parameters are one) of the function's calls at which a warning is logged once; 0
    /// means never. Sizes from buckets or lists do not count: each combination of those is counted
    /// separately. Default: 8.
    pub warn_shapes: usize,
    /// Calls beyond this number of distinct shapes run their new segments eagerly. Counted like
    /// [`warn_shapes`](Self::warn_shapes). Default: `None`, no limit.
    pub max_shapes: Option<usize>,
    /// Segments with fewer operations than this run eagerly, and are counted; the number of operations is
    /// known after the segment's warm-up. Default: 0.
    pub min_kernels: usize,
    /// If set, calls with a `#[dims]` symbol that has neither buckets nor listed sizes run eagerly. Off by
    /// default.
    pub static_only: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_recordings: 128,
            max_moves: 5,
            on_move: OnMove::Copy,
            warn_shapes: 8,
            max_shapes: None,
            min_kernels: 0,
            static_only: false,
        }
    }
}

impl Limits {
    /// Returns the name of an invalid limit and the reason.
    pub(crate) fn check(&self) -> Result<(), (&'static str, &'static str)> {
        if self.max_recordings == 0 {
            return Err(("max_recordings", "0 would never record; use `Mode::None` for that"));
        }
        if self.max_moves == 0 {
            return Err(("max_moves", "0 would copy what never moved; 1 copies at the first move"));
        }
        if self.max_shapes == Some(0) {
            return Err(("max_shapes", "0 would never record; use `Mode::None` for that"));
        }
        Ok(())
    }

    /// Returns the decision of the limits about a segment that no recording matches.
    pub(crate) fn decide(&self, s: &SegmentInfo<'_>) -> SegmentDecision {
        let segment = || s.site.to_string();
        if let Some(kernels) = s.kernels
            && kernels < self.min_kernels
        {
            let limit = self.min_kernels;
            return SegmentDecision::Eager(FallbackReason::TooFewKernels {
                segment: segment(),
                kernels,
                limit,
            });
        }
        if let Some(limit) = self.max_shapes
            && s.new_shape
            && s.shapes > limit
        {
            return SegmentDecision::Eager(FallbackReason::TooManyShapes { limit });
        }
        if s.recordings >= self.max_recordings {
            let limit = self.max_recordings;
            return SegmentDecision::Eager(FallbackReason::TooManyRecordings { segment: segment(), limit });
        }
        let mut often = s.moved.iter().filter(|m| m.moves >= self.max_moves);
        match self.on_move {
            OnMove::Skip => often.next().map_or(SegmentDecision::Record, |m| {
                SegmentDecision::Skip(FallbackReason::KeepsMoving {
                    segment: segment(),
                    live_in: m.live_in,
                    moves: m.moves,
                })
            }),
            OnMove::Copy => {
                let list: Vec<usize> = often.filter(|m| m.can_copy).map(|m| m.live_in).collect();
                if list.is_empty() { SegmentDecision::Record } else { SegmentDecision::Copy(list) }
            }
        }
    }
}

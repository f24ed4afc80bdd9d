//! Limits on recordings, and what happens beyond them.

use crate::{
    base::reason::FallbackReason,
    policy::{SegmentDecision, SegmentInfo},
};

/// What happens with a live-in that keeps moving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnMove {
    /// The next recording reads a buffer of its own, and each replay copies the bytes there first.
    #[default]
    Copy,
    /// The segment runs without a graph at that place of the tree from then on, also where an older
    /// recording would fit.
    Skip,
}

/// Limits of one graph object, set by its builder: `.limits(|l| l.max_moves = 2)`.
///
/// What they count belongs to an *edge* of the tree: a segment with its shapes and parameters, after the
/// recording before it. Graph objects of one function share recordings, and so what was counted.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Recordings on one edge. Beyond that the edge runs eagerly where no recording fits. A replaced parameter
    /// has its own edge, so it does not count. Default: 128.
    ///
    /// A live-in that moved is not copied to where a recording reads it, as it is after [`Runtime::close_capture`](crate::Runtime::close_capture): what that
    /// copies has no bound, and may take longer than the launches that it saves. [`max_moves`](Self::max_moves) asks for
    /// copies, and by default comes long before this limit.
    pub max_recordings: usize,
    /// How often a device live-in may be at an address that no recording of the edge expects before
    /// [`on_move`](Self::on_move) applies to it. `usize::MAX` is never. Default: 5.
    pub max_moves: usize,
    /// What happens then.
    pub on_move: OnMove,
    /// Number of distinct shapes (and keys) of the function's calls at which there is one warning; 0 never
    /// warns. Sizes that come from buckets or listed sizes do not count: each combination of those has a count
    /// of its own. Default: 8.
    pub warn_shapes: usize,
    /// Calls beyond this many distinct shapes run their new segments eagerly. Counted as
    /// [`warn_shapes`](Self::warn_shapes). Default: `None`, no limit.
    pub max_shapes: Option<usize>,
    /// Segments with fewer operations than this run eagerly, and are counted; the number of operations is known
    /// from the segment's warm-up. Default: 0.
    pub min_kernels: usize,
    /// Whether calls with a `#[dims]` symbol that has neither buckets nor listed sizes run eagerly. Off by
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
    /// What is wrong with them, as the name of a limit and why.
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

    /// What the limits say about a segment that no recording fits.
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

//! How much is recorded before something runs without a graph, or is done another way.

use crate::{
    event::FallbackReason,
    policy::{SegmentInfo, Verdict},
};

/// What happens with a live-in that keeps moving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnMove {
    /// The next recording reads a buffer of its own, and each replay copies the bytes there first. One that
    /// shares its storage with another live-in, or leaves as an output, is never copied.
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
    /// Recordings on one edge; after that the edge runs eagerly where no recording fits. 128 at first. A
    /// replaced parameter has its own edge, so it spends nothing.
    pub max_recordings: usize,
    /// How often a device live-in may lie where no recording of the edge expects it, before
    /// [`on_move`](Self::on_move) applies to it. 5 at first; `usize::MAX` is never.
    pub max_moves: usize,
    /// What happens then.
    pub on_move: OnMove,
    /// At that many distinct shapes (and keys) of the function's calls there is one warning. 8 at first; 0
    /// never warns. Sizes that buckets or listed sizes ask for do not count: it is a number for each
    /// combination of those.
    pub warn_shapes: usize,
    /// Calls with more distinct shapes than that run their new segments eagerly. `None`, as at first, is
    /// no limit. Counted as [`warn_shapes`](Self::warn_shapes).
    pub max_shapes: Option<usize>,
    /// Segments with fewer operations than that run eagerly, counted; what a segment has is known from
    /// its warm-up. 0 at first.
    pub min_kernels: usize,
    /// Calls with a `#[dims]` symbol that has neither buckets nor listed sizes run eagerly. Off at first.
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
    pub(crate) fn verdict(&self, s: &SegmentInfo<'_>) -> Verdict {
        let segment = || s.site.to_string();
        if let Some(kernels) = s.kernels
            && kernels < self.min_kernels
        {
            let limit = self.min_kernels;
            return Verdict::Eager(FallbackReason::TooFewKernels { segment: segment(), kernels, limit });
        }
        if let Some(limit) = self.max_shapes
            && s.new_shape
            && s.shapes > limit
        {
            return Verdict::Eager(FallbackReason::TooManyShapes { limit });
        }
        if s.recordings >= self.max_recordings {
            let limit = self.max_recordings;
            return Verdict::Eager(FallbackReason::TooManyRecordings { segment: segment(), limit });
        }
        let mut often = s.moved.iter().filter(|m| m.moves >= self.max_moves);
        match self.on_move {
            OnMove::Skip => often.next().map_or(Verdict::Record, |m| {
                Verdict::Skip(FallbackReason::KeepsMoving {
                    segment: segment(),
                    live_in: m.live_in,
                    moves: m.moves,
                })
            }),
            OnMove::Copy => {
                let list: Vec<usize> = often.filter(|m| m.can_copy).map(|m| m.live_in).collect();
                if list.is_empty() { Verdict::Record } else { Verdict::Copy(list) }
            }
        }
    }
}

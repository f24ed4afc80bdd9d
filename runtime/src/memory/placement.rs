//! The location of memory, and the allocation that made it.

use super::SlotId;
use crate::base::plan::Site;

/// The location of a tensor's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Placement {
    /// The segment pool.
    Pool,
    /// The results arena.
    Results,
    /// The eager arena.
    Eager,
    /// The pool, borrowed while it is idle.
    Borrowed,
    /// Memory with an owner that no call overwrites: a parameter, state, a persistent value.
    Owned,
    /// A static input of the running call: memory of its graph object, which the next call overwrites.
    StaticInput,
    /// Invalid: the capture was aborted, or the value did not leave its call.
    Invalid,
    /// Freed by a recording after its last use.
    Freed,
}

impl Placement {
    /// Returns the arena of a block, which is freed with its last handle; `None` for anything else.
    pub(crate) fn block_arena(self) -> Option<BlockArena> {
        match self {
            Self::Pool => Some(BlockArena::Pool),
            Self::Results => Some(BlockArena::Results),
            Self::Eager => Some(BlockArena::Eager),
            Self::Borrowed => Some(BlockArena::Borrowed),
            Self::Owned | Self::StaticInput | Self::Invalid | Self::Freed => None,
        }
    }
}

/// The placements in which blocks are allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BlockArena {
    /// [`Placement::Pool`].
    Pool,
    /// [`Placement::Results`].
    Results,
    /// [`Placement::Eager`].
    Eager,
    /// [`Placement::Borrowed`].
    Borrowed,
}

impl From<BlockArena> for Placement {
    fn from(arena: BlockArena) -> Self {
        match arena {
            BlockArena::Pool => Self::Pool,
            BlockArena::Results => Self::Results,
            BlockArena::Eager => Self::Eager,
            BlockArena::Borrowed => Self::Borrowed,
        }
    }
}

/// The id of a group: the common part of all recordings of one identity and one set of shapes; see
/// [`Group`](crate::tree::Group). Ids are never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupId(usize);

impl GroupId {
    /// Returns the next id.
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The index of an allocation of a body or of an eager region, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ordinal(u32);

impl Ordinal {
    /// The one after it.
    pub(crate) fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    pub(crate) fn at(index: usize) -> Self {
        Self(index as u32)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// One result of an eager region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResultId {
    /// The profile of the region, as a hash of its key.
    pub(super) profile: u64,
    /// The index of the run in the call.
    pub(super) run: u32,
    pub(super) index: u32,
}

/// The allocation that made a block, by which the runtime places it better next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Segment {
        group: GroupId,
        ordinal: Ordinal,
    },
    /// An allocation of the region run with that number that is not one of its results.
    Region {
        site: &'static Site,
        serial: u64,
        ordinal: Ordinal,
    },
    Result(ResultId),
    /// A static buffer that contains a padded copy of a device input: the tensor in that slot, which begins
    /// at that address.
    Padded {
        of: SlotId,
        from: u64,
    },
    Other,
}

impl PartialEq for Site {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}
impl Eq for Site {}

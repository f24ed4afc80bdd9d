//! Where memory is, and which allocation made it.

use super::SlotId;
use crate::base::plan::Site;

/// Where a tensor's memory is.
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

/// What recordings of one identity and one set of shapes have in common; see [`Group`](crate::tree::Group). Never given
/// twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupId(usize);

impl GroupId {
    /// The one that is given after this one.
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// One result of an eager region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResultId {
    /// What is known of the region, by a hash of what it belongs to.
    pub(super) profile: u64,
    /// Which run of the call it is.
    pub(super) run: u32,
    pub(super) index: u32,
}

/// Which allocation made a block: lets the runtime place it better next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Segment {
        group: GroupId,
        ordinal: u32,
    },
    /// An allocation of the region run with that number which is not one of its results.
    Region {
        site: &'static Site,
        serial: u64,
        ordinal: u32,
    },
    Result(ResultId),
    /// A static buffer that holds a device input with padding: of the tensor in that slot, which begins there.
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

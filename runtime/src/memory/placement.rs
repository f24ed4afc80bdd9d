//! Where memory is, and which allocation made it.

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

/// Which allocation made a block: lets the runtime place it better next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Segment {
        group: usize,
        ordinal: u32,
    },
    /// An allocation of the region run with that number which is not one of its results.
    Region {
        site: &'static Site,
        serial: u64,
        ordinal: u32,
    },
    /// A result of a region: its profile, the run of the call, and the index of the result.
    Result {
        profile: u64,
        at: (u32, u32),
    },
    /// A static buffer that holds a device input with padding: of the tensor in that slot, which begins there.
    Padded {
        of: u32,
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

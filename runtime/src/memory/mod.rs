//! The memory of a runtime: arenas, the segment pool, and the slots of the tensors in them.

pub(crate) mod accounting;
pub(crate) mod alive;
pub(crate) mod arena;
pub(crate) mod leaks;
pub(crate) mod learned_placements;
pub(crate) mod lending;
pub(crate) mod maintenance;
pub(crate) mod owned;
pub(crate) mod persist;
pub(crate) mod placement;
pub(crate) mod pool;
pub(crate) mod slots;

pub(crate) use alive::{Alive, EntryBlock};
pub use leaks::{Live, Tables};
pub(crate) use persist::Queues;
pub(crate) use placement::{Origin, Placement};

pub(crate) use crate::observe::memory::{
    ArenaUsage, CaptureMemory, DeviceUsage, FunctionUsage, MemoryArena, MemoryStats, NodeUsage,
};
use crate::{
    core::{Core, Phase, RunKind, Slot, decide},
    record::{command_log as tape, outputs as finalize, run},
};

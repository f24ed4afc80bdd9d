//! Leak counters for tests.

use super::Memory;

/// The live tensors and blocks of a runtime. All zero when no tensor of the step is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// The number of tensors; views and clones of one tensor count once.
    pub tensors: usize,
    /// Bytes of the segment pool.
    pub pool: u64,
    /// Bytes of the results arena.
    pub results: u64,
    /// Bytes of the eager arena.
    pub eager: u64,
}

/// The number of entries in each table of a runtime, which must not grow with objects that came and went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// Recordings.
    pub recordings: usize,
    /// Places for recordings, including vacant ones.
    pub places: usize,
    /// Identities with their shapes.
    pub groups: usize,
    /// Sets of live-ins that recordings copy.
    pub copied_sets: usize,
    /// Edges.
    pub edges: usize,
    /// Owned memory and graph objects to which recordings, edges or groups refer.
    pub holders: usize,
    /// Graph objects whose calls begin with a recording.
    pub starts: usize,
    /// States of the pool.
    pub states: usize,
    /// Parameters, state and buffers.
    pub owned: usize,
    /// Profiles learned for eager regions.
    pub regions: usize,
    /// Graph objects whose shapes are counted.
    pub shapes: usize,
    /// Graph objects with a region that was observed to pass a value to host code.
    pub hosts: usize,
    /// Dropped objects with something that the next step evicts.
    pub retired: usize,
    /// Kept values, including cached ones.
    pub kept: usize,
}

impl Memory {
    /// Returns the live tensors and blocks.
    pub(crate) fn live(&self) -> Live {
        Live {
            tensors: self.slots.held(),
            pool: self.pool.live().bytes(),
            results: self.results.live.bytes(),
            eager: self.eager.live.bytes(),
        }
    }

    /// Returns the number of entries in the tables of memory.
    pub(crate) fn tables(&self) -> Tables {
        Tables {
            states: self.pool.states(),
            owned: self.owned.len(),
            regions: self.learned.len(),
            retired: self.owned.retired(),
            kept: self.persistent.len(),
            ..Tables::default()
        }
    }
}

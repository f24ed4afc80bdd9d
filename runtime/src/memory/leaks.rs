//! Leak counters for tests.

use super::Memory;

/// Tensors and blocks of a runtime that are alive. All zero when no tensor of the step is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Tensors, views and clones of one counted once.
    pub tensors: usize,
    /// Bytes of the segment pool.
    pub pool: u64,
    /// Bytes of the results arena.
    pub results: u64,
    /// Bytes of the eager arena.
    pub eager: u64,
}

/// How many entries each table of a runtime has: what must not grow with what came and went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// Recordings.
    pub recordings: usize,
    /// Places for recordings, vacant ones included.
    pub places: usize,
    /// Identities with their shapes.
    pub groups: usize,
    /// Sets of live-ins that recordings copy.
    pub copied_sets: usize,
    /// Edges.
    pub edges: usize,
    /// Owned memory and graph objects that recordings, edges or groups know.
    pub holders: usize,
    /// Graph objects whose calls begin with a recording.
    pub starts: usize,
    /// States of the pool.
    pub states: usize,
    /// Parameters, state and buffers.
    pub owned: usize,
    /// What was learnt of eager regions.
    pub regions: usize,
    /// Graph objects whose shapes are counted.
    pub shapes: usize,
    /// Graph objects of which a region was seen to give host code a value.
    pub hosts: usize,
    /// What was dropped and has something that the next step evicts.
    pub retired: usize,
    /// Kept values, those included that wait to be used again.
    pub kept: usize,
}

impl Memory {
    /// Tensors and blocks that are alive.
    pub(crate) fn live(&self) -> Live {
        Live {
            tensors: self.slots.held(),
            pool: self.pool.live().bytes(),
            results: self.results.live.bytes(),
            eager: self.eager.live.bytes(),
        }
    }

    /// How many entries the tables of memory have.
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

//! What a plan of captures will take: some of it is captured in a state that is thrown away.

use std::{fmt, sync::Arc};

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Core, regions::Regions};
use crate::{
    Error, Result,
    base::plan::Site,
    memory::{CaptureMemory, pool::Pool},
    observe::log::Log,
    tensor::param::Owned,
    tree::Tree,
};

/// What a dry capture must not touch, while one runs.
pub(crate) struct Dry {
    tree: Tree,
    pool: Pool,
    log: Log,
    regions: Regions,
    shapes: FxHashMap<u64, super::miss::Shapes>,
    host_values: FxHashMap<u64, &'static Site>,
    before: Measure,
    /// Ids of owned memory that was dropped meanwhile: the recordings set aside must hear of it.
    retired: Vec<u64>,
    /// What was not captured, but would be.
    more: CaptureMemory,
    held: Vec<Arc<Owned>>,
}

impl fmt::Debug for Dry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dry").field("before", &self.before).field("more", &self.more).finish_non_exhaustive()
    }
}

/// Where a measurement started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    highs: [u64; 3],
    committed: [u64; 3],
    statics: u64,
    recorded: (u64, u64),
}

impl Core {
    /// Starts to measure; the high-water marks start again.
    pub(crate) fn begin_measuring(&mut self) -> Measure {
        let highs = [self.pool.high_water(), self.results.high, self.eager.high];
        self.pool.forget_high_water();
        (self.results.high, self.eager.high) = (0, 0);
        Measure {
            highs,
            committed: [self.pool_zone.committed, self.results.committed, self.eager.committed],
            statics: self.static_bytes(),
            recorded: self.recorded(),
        }
    }

    /// The marks are those of all time again.
    pub(crate) fn end_measuring(&mut self, before: &Measure) {
        self.pool.raise_high_water(before.highs[0]);
        self.results.high = self.results.high.max(before.highs[1]);
        self.eager.high = self.eager.high.max(before.highs[2]);
    }

    /// What was taken since then.
    pub(crate) fn taken(&self, before: &Measure) -> CaptureMemory {
        let (nodes, executable_bytes) = self.recorded();
        CaptureMemory {
            nodes: nodes.saturating_sub(before.recorded.0),
            pool_bytes: self.pool.high_water(),
            result_bytes: self.results.high,
            eager_bytes: self.eager.high,
            static_bytes: self.static_bytes().saturating_sub(before.statics),
            executable_bytes: executable_bytes.saturating_sub(before.recorded.1),
        }
    }

    /// Sets everything aside that a capture changes. Between steps.
    pub(crate) fn begin_dry(&mut self) {
        let before = self.begin_measuring();
        self.dry = Some(Dry {
            tree: std::mem::take(&mut self.tree),
            pool: std::mem::replace(&mut self.pool, Pool::new(self.pool_zone.base(), self.pool_zone.page)),
            log: std::mem::take(&mut self.log),
            regions: std::mem::take(&mut self.regions),
            shapes: std::mem::take(&mut self.shapes),
            host_values: std::mem::take(&mut self.host_values),
            before: Measure { recorded: (0, 0), ..before },
            retired: Vec::new(),
            more: CaptureMemory::default(),
            held: Vec::new(),
        });
    }

    /// Throws away what was captured since, and puts everything back.
    pub(crate) fn end_dry(&mut self) {
        let begun = self.begin_step(&[]);
        let Some(dry) = self.dry.take() else { return };
        (self.tree, self.pool, self.log) = (dry.tree, dry.pool, dry.log);
        self.regions = dry.regions;
        self.shapes = dry.shapes;
        self.host_values = dry.host_values;
        let highs = dry.before.highs;
        self.pool.raise_high_water(highs[0]);
        (self.results.high, self.eager.high) = (highs[1], highs[2]);
        let [pool, results, eager] = dry.before.committed;
        let backend = &mut *self.backend;
        // Those of before come back when they are used.
        backend.release();
        let trimmed = self
            .pool_zone
            .trim(backend, pool)
            .and_then(|_| self.results.trim(backend, results))
            .and_then(|_| self.eager.trim(backend, eager));
        self.evict_retired(&dry.retired);
        // Nobody can be told here: the next step is.
        if let Err(error) = begun.and(trimmed) {
            self.deferred.get_or_insert(error);
        }
    }

    /// Refuses what an estimate must not do: the recordings that it set aside need their memory afterwards, and
    /// there is one place to set them aside.
    ///
    /// # Errors
    /// [`Error::InsideEstimate`].
    pub(crate) fn refuse_in_estimate(&self, call: &'static str) -> Result<()> {
        if self.is_dry() { Err(Error::InsideEstimate { call }) } else { Ok(()) }
    }

    /// The recordings that are set aside, while an estimate runs.
    pub(crate) fn set_aside(&self) -> Option<&Tree> {
        self.dry.as_ref().map(|dry| &dry.tree)
    }

    /// Whether what is set aside knows of a graph object or memory.
    pub(crate) fn is_set_aside(&self, id: u64) -> bool {
        self.dry.as_ref().is_some_and(|dry| {
            dry.tree.holds(id) || dry.shapes.contains_key(&id) || dry.host_values.contains_key(&id)
        })
    }

    /// Whether captures are thrown away.
    pub(crate) fn is_dry(&self) -> bool {
        self.dry.is_some()
    }

    /// Adds what a dry `capture_all` leaves out.
    pub(crate) fn expect_more(&mut self, nodes: u64, executable_bytes: u64) {
        if let Some(dry) = &mut self.dry {
            dry.more.nodes += nodes;
            dry.more.executable_bytes += executable_bytes;
        }
    }

    /// Frees these when the dry capture is over: before, what was recorded with them would be evicted.
    pub(crate) fn hold_to_the_end(&mut self, buffers: Vec<Arc<Owned>>) {
        if let Some(dry) = &mut self.dry {
            dry.held.extend(buffers);
        }
    }

    /// What the plan is expected to take.
    pub(crate) fn estimated(&self) -> CaptureMemory {
        let Some(dry) = &self.dry else { return CaptureMemory::default() };
        let mut sum = self.taken(&dry.before);
        sum.nodes += dry.more.nodes;
        sum.executable_bytes += dry.more.executable_bytes;
        sum
    }

    /// Evicts what was recorded with memory that was dropped.
    pub(crate) fn evict_retired(&mut self, retired: &[u64]) {
        if retired.is_empty() {
            return;
        }
        if let Some(dry) = &mut self.dry {
            dry.retired.extend_from_slice(retired);
        }
        for id in retired {
            self.shapes.remove(id);
            self.host_values.remove(id);
        }
        let gone = self.tree.retire(retired);
        let ids: FxHashSet<u64> = retired.iter().copied().collect();
        self.tree.forget_spares(|caller| ids.contains(&caller));
        if gone > 0 {
            self.log.evicted(gone);
        }
    }
}

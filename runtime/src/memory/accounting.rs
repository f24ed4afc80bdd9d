//! Exact accounting: the live blocks of every arena are exactly those of the tensors.

use super::{
    GroupId, Memory, Origin, Placement, Slot, WeightArena,
    pool::{Block, LiveSet},
};
use crate::{Error, Result, error::MemoryFault};

/// Returns where the body of a group is, to name it in an error.
type SiteOf<'a> = &'a dyn Fn(GroupId) -> Option<String>;

impl Memory {
    /// Compares every arena with the slots of the tensors in it.
    ///
    /// # Errors
    /// Returns [`Error::MemoryAccounting`].
    pub(crate) fn check(&self, site_of: SiteOf<'_>) -> Result<()> {
        // Blocks reserved for results of regions, which no tensor uses, or not yet.
        let mut reserved: Vec<u64> = self.slots.iter().filter_map(|s| s.stands_for).collect();
        reserved.extend(self.learned.reserved().map(|block| block.addr));
        let mut pool = self.pool.live();
        for addr in reserved {
            pool.remove(addr);
        }
        let arenas = [
            (Placement::Pool, "the pool", &pool, &self.pool_arena),
            (Placement::Results, "the results arena", &self.results.live, &self.results),
            (Placement::Eager, "the eager arena", &self.eager.live, &self.eager),
        ];
        if let Some(live) = &self.lent {
            let end = self.pool_arena.committed_end();
            let name = "the borrowed pool";
            self.check_arena(&Arena { placement: Placement::Borrowed, name, live, end }, site_of)?;
        }
        if let Some((addr, bytes)) = self.weights.as_ref().and_then(WeightArena::fault) {
            return Err(Error::MemoryAccounting {
                arena: "the arena of weights",
                fault: MemoryFault::Missing,
                op: "a parameter",
                site: "outside any segment".into(),
                bytes,
                addr,
            });
        }
        for (placement, name, live, arena) in arenas {
            let end = arena.committed_end();
            self.check_arena(&Arena { placement, name, live, end }, site_of)?;
        }
        Ok(())
    }

    fn check_arena(&self, arena: &Arena<'_>, site_of: SiteOf<'_>) -> Result<()> {
        let fault = |fault, block, slot| Err(self.fault(arena.name, fault, block, slot, site_of));
        let mut tracked: Vec<(Block, &Slot)> = self
            .slots
            .iter()
            .filter(|s| s.refs > 0 && s.placement == arena.placement)
            .map(|s| (s.block(), s))
            .collect();
        tracked.sort_unstable_by_key(|(block, _)| block.addr);
        let mut tracked = tracked.into_iter().peekable();
        for block in arena.live.iter() {
            if let Some((missing, slot)) = tracked.next_if(|(t, _)| t.addr < block.addr) {
                return fault(MemoryFault::Missing, missing, Some(slot));
            }
            let Some((_, slot)) = tracked.next_if(|(t, _)| *t == block) else {
                // The slot of a freed tensor still records its producer, until it is reused.
                let is_last = |s: &&Slot| s.base() == block.addr && s.placement == arena.placement;
                return fault(MemoryFault::Untracked, block, self.slots.iter().find(is_last));
            };
            if self.pool_arena.page == 0 && block.end() > arena.end {
                return fault(MemoryFault::Uncommitted, block, Some(slot));
            }
        }
        match tracked.next() {
            Some((missing, slot)) => fault(MemoryFault::Missing, missing, Some(slot)),
            None => Ok(()),
        }
    }

    fn fault(
        &self,
        arena: &'static str,
        fault: MemoryFault,
        block: Block,
        slot: Option<&Slot>,
        site_of: SiteOf<'_>,
    ) -> Error {
        let site = match slot.map(Slot::origin) {
            Some(Origin::Segment { group, .. }) => site_of(group),
            Some(Origin::Region { site, .. }) => Some(site.to_string()),
            Some(Origin::Result(result)) => self.learned.site(result).map(ToString::to_string),
            _ => None,
        };
        Error::MemoryAccounting {
            arena,
            fault,
            op: slot.map_or("an unknown operation", Slot::producer),
            site: site.unwrap_or_else(|| "outside any segment".into()),
            bytes: block.len,
            addr: block.addr,
        }
    }
}

/// An arena as it is compared with its slots.
struct Arena<'m> {
    placement: Placement,
    name: &'static str,
    live: &'m LiveSet,
    /// The end of its committed memory.
    end: u64,
}

#[cfg(test)]
mod tests {
    use crate::{Device, Error, Runtime, error::MemoryFault, ops};

    fn runtime() -> Runtime {
        Runtime::new(Device::cpu()).unwrap()
    }

    #[test]
    fn a_block_that_nobody_has_is_found() {
        let mut rt = runtime();
        let step = rt.step().unwrap();
        let x = step.tensor(&[100], &[1.0f32; 100]).unwrap();
        let y = ops::neg(&x).unwrap();
        step.check_memory().unwrap();
        let addr = y.raw.addr;
        drop(y);
        {
            // The state that a lost free would leave.
            let core = &mut *x.rt.core.borrow_mut();
            core.memory.eager.place(core.stream.backend_mut(), 400).unwrap();
        }
        match step.check_memory() {
            Err(Error::MemoryAccounting { arena, fault, op, bytes, addr: at, .. }) => {
                assert_eq!((arena, fault, op), ("the eager arena", MemoryFault::Untracked, "neg"));
                assert_eq!((bytes, at), (512, addr));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_tensor_without_its_block_is_found() {
        let mut rt = runtime();
        let step = rt.step().unwrap();
        let x = step.tensor(&[2], &[1.0f32; 2]).unwrap();
        let y = ops::neg(&x).unwrap();
        y.rt.core.borrow_mut().memory.eager.live.remove(y.raw.addr).unwrap();
        let error = step.check_memory().unwrap_err();
        assert!(
            matches!(
                error,
                Error::MemoryAccounting { fault: MemoryFault::Missing, op: "neg", bytes: 256, .. }
            ),
            "{error}"
        );
        std::mem::forget(y);
    }

    #[test]
    fn a_block_beyond_the_committed_memory_is_found() {
        let mut rt = runtime();
        let step = rt.step().unwrap();
        let x = step.tensor(&[2], &[1.0f32; 2]).unwrap();
        x.rt.core.borrow_mut().memory.eager.committed = 0;
        assert!(matches!(
            step.check_memory(),
            Err(Error::MemoryAccounting { fault: MemoryFault::Uncommitted, op: "tensor", .. })
        ));
    }
}

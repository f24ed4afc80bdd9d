//! Exact accounting: the live blocks of every arena are those of the tensors, no more and no fewer.

use super::{Core, Origin, Placement, Slot};
use crate::{
    Error, Result,
    error::MemoryFault,
    memory::pool::{Block, LiveSet, rounded},
};

impl Core {
    /// Compares every arena with the slots of the tensors in it.
    pub(crate) fn check_memory(&self) -> Result<()> {
        // Blocks for results of regions, which no tensor has, or not yet.
        let mut reserved: Vec<u64> = self.slots.iter().filter_map(|s| s.stands_for).collect();
        reserved.extend(self.region.iter().flat_map(|region| region.blocks()).map(|block| block.addr));
        let mut pool = self.pool.live();
        for addr in reserved {
            pool.remove(addr);
        }
        let arenas = [
            (Placement::Pool, "the pool", &pool, &self.pool_zone),
            (Placement::Results, "the results arena", &self.results.live, &self.results),
            (Placement::Eager, "the eager arena", &self.eager.live, &self.eager),
        ];
        if let Some(live) = &self.scratch {
            let end = self.pool_zone.base() + self.pool_zone.committed;
            self.check_arena(Placement::Borrowed, "the borrowed pool", live, end)?;
        }
        for (home, arena, live, zone) in arenas {
            self.check_arena(home, arena, live, zone.base() + zone.committed)?;
        }
        Ok(())
    }

    fn check_arena(&self, home: Placement, arena: &'static str, live: &LiveSet, end: u64) -> Result<()> {
        let mut tracked: Vec<(Block, &Slot)> =
            self.slots.iter().filter(|s| s.refs > 0 && s.home == home).map(|s| (block_of(s), s)).collect();
        tracked.sort_unstable_by_key(|(block, _)| block.addr);
        let mut tracked = tracked.into_iter().peekable();
        for block in live.iter() {
            if let Some((missing, slot)) = tracked.next_if(|(t, _)| t.addr < block.addr) {
                return Err(self.fault(arena, MemoryFault::Missing, missing, Some(slot)));
            }
            let Some((_, slot)) = tracked.next_if(|(t, _)| *t == block) else {
                // The slot of a freed tensor still says who made it, until it is used again.
                let last = self.slots.iter().find(|s| s.base == block.addr && s.home == home);
                return Err(self.fault(arena, MemoryFault::Untracked, block, last));
            };
            if self.pool_zone.page == 0 && block.end() > end {
                return Err(self.fault(arena, MemoryFault::Uncommitted, block, Some(slot)));
            }
        }
        match tracked.next() {
            Some((missing, slot)) => Err(self.fault(arena, MemoryFault::Missing, missing, Some(slot))),
            None => Ok(()),
        }
    }

    fn fault(&self, arena: &'static str, fault: MemoryFault, block: Block, slot: Option<&Slot>) -> Error {
        let site = match slot.map(|s| s.origin) {
            Some(Origin::Segment { group, .. }) => self.tree.site(group).map(ToString::to_string),
            Some(Origin::Region { site, .. }) => Some(site.to_string()),
            Some(Origin::Result { profile, .. }) => self.regions.site(profile).map(ToString::to_string),
            _ => None,
        };
        Error::MemoryAccounting {
            arena,
            fault,
            op: slot.map_or("an unknown operation", |s| s.made_by),
            site: site.unwrap_or_else(|| "outside any segment".into()),
            bytes: block.len,
            addr: block.addr,
        }
    }
}

fn block_of(slot: &Slot) -> Block {
    Block { addr: slot.base, len: rounded(slot.bytes) }
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
            // What a lost free would leave.
            let core = &mut *x.rt.core.borrow_mut();
            core.eager.place(&mut *core.backend, 400).unwrap();
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
        y.rt.core.borrow_mut().eager.live.remove(y.raw.addr).unwrap();
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
        x.rt.core.borrow_mut().eager.committed = 0;
        assert!(matches!(
            step.check_memory(),
            Err(Error::MemoryAccounting { fault: MemoryFault::Uncommitted, op: "tensor", .. })
        ));
    }
}

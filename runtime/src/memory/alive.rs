//! The blocks that were live in the pool when a recording began, for views of the tree.

use super::{
    Memory, Origin, Placement,
    pool::{Block, Treap},
};

/// Up to this number of blocks, a recording has a list of its own.
const FEW: usize = 64;

/// A block that was live in the pool when a recording began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EntryBlock {
    addr: u64,
    origin: Origin,
    producer: &'static str,
}

impl EntryBlock {
    pub(crate) fn addr(&self) -> u64 {
        self.addr
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns the operation that produced it.
    pub(crate) fn producer(&self) -> &'static str {
        self.producer
    }
}

/// All of these blocks. The recordings of a call share common parts: otherwise a chain whose results all live
/// would take memory quadratic in its length.
#[derive(Debug)]
pub(crate) enum Alive {
    Few(Box<[EntryBlock]>),
    Many(Treap<EntryBlock>),
}

impl Default for Alive {
    fn default() -> Self {
        Self::Few(Box::default())
    }
}

impl Alive {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &EntryBlock> {
        let (list, tree) = match self {
            Self::Few(list) => (Some(list), None),
            Self::Many(tree) => (None, Some(tree)),
        };
        let tree = tree.into_iter().flat_map(|tree| tree.iter().map(|(_, block)| block));
        list.into_iter().flatten().chain(tree)
    }
}

impl Memory {
    /// Returns the live blocks of the pool, by address.
    pub(crate) fn alive_in_pool(&mut self) -> Alive {
        // The last ones first, and no more than there are: any number of slots may be outside the pool.
        let count = self.pool.live_blocks();
        let in_pool = self.slots.iter().rev().filter(|s| s.refs > 0 && s.placement == Placement::Pool);
        let mut now: Vec<(Block, EntryBlock)> = in_pool
            .take(count)
            .map(|s| {
                let block = EntryBlock { addr: s.base(), origin: s.origin, producer: s.producer() };
                (s.block(), block)
            })
            .collect();
        now.sort_unstable_by_key(|(block, _)| block.addr);
        if now.len() <= FEW {
            self.last_alive = Treap::default();
            return Alive::Few(now.into_iter().map(|(_, block)| block).collect());
        }
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        let mut now = now.into_iter().peekable();
        for (block, was) in self.last_alive.iter() {
            while let Some(before) = now.next_if(|(b, _)| b.addr < block.addr) {
                new.push(before);
            }
            if now.next_if(|(b, is)| *b == block && is == was).is_none() {
                gone.push(block.addr);
            }
        }
        new.extend(now);
        for addr in gone {
            self.last_alive.remove(addr);
        }
        for (block, alive) in new {
            self.last_alive.insert(block, alive);
        }
        Alive::Many(self.last_alive.clone())
    }
}

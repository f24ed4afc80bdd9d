//! Constructs that are open around the next operation: forks, and bodies of conditional nodes, the innermost last.
//!
//! Both change what happens to freed memory. While a fork is open, see `branches`. In a body, a block from before
//! it is not freed until the node has ended, because another body, or the next round, may still read it; a block
//! that the body made is free again for the same body as soon as it is freed, and at its end at the latest. So each
//! body starts from the memory that was free before the node.

use rustc_hash::FxHashSet;

use super::fork::{Fork, Freed};
use crate::{
    Result,
    backend::View,
    memory::{BlockArena, SlotId, pool::Block},
};

/// The bodies of a conditional node, one after the other.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    /// Blocks that the running body placed and has not freed, by their addresses.
    made: FxHashSet<u64>,
    /// The tensors that it made.
    slots: Vec<SlotId>,
    /// Blocks from before the node that were freed in a body.
    held: Vec<Freed>,
}

impl Bodies {
    /// Ends the running body. Returns the tensors that it made.
    pub(super) fn end(&mut self) -> Vec<SlotId> {
        std::mem::take(&mut self.slots)
    }

    /// Ends the node. Returns the blocks that are freed with it, in the order of addresses.
    pub(super) fn close(mut self) -> Vec<Freed> {
        self.held.sort_unstable_by_key(|freed| freed.base);
        self.held
    }
}

#[derive(Debug)]
enum Scope {
    Fork(Fork),
    Bodies(Bodies),
}

/// The forks and conditional nodes that are open, the innermost last.
#[derive(Debug, Default)]
pub(super) struct Nesting(Vec<Scope>);

impl Nesting {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The number of open forks and nodes.
    pub(super) fn depth(&self) -> usize {
        self.0.len()
    }

    /// The innermost fork, and the nodes inside it.
    fn innermost_fork(&mut self) -> Option<(&mut Fork, &mut [Scope])> {
        let at = self.0.iter().rposition(|scope| matches!(scope, Scope::Fork(_)))?;
        match self.0[at..].split_first_mut()? {
            (Scope::Fork(fork), inside) => Some((fork, inside)),
            (Scope::Bodies(_), _) => None,
        }
    }

    /// A block that the branch around the next operation freed, if it has one of that size.
    pub(super) fn reuse(&mut self, arena: BlockArena, bytes: u64) -> Option<Block> {
        let (fork, inside) = self.innermost_fork()?;
        let block = fork.reuse(arena, bytes)?;
        for scope in inside {
            if let Scope::Bodies(bodies) = scope {
                bodies.made.insert(block.addr);
            }
        }
        Some(block)
    }

    /// Notes a block that was placed, in the bodies around it up to the innermost fork: closing that adds it to what
    /// is outside.
    pub(super) fn note_placed(&mut self, addr: u64) {
        for scope in self.0.iter_mut().rev() {
            match scope {
                Scope::Bodies(bodies) => {
                    bodies.made.insert(addr);
                }
                Scope::Fork(fork) => {
                    fork.note_placed(addr);
                    return;
                }
            }
        }
    }

    /// Defers freeing a block while something is open that needs it. Returns `None` if nothing is; otherwise,
    /// whether only the running branch has used the block.
    pub(super) fn defer_free(&mut self, freed: Freed) -> Option<bool> {
        for scope in self.0.iter_mut().rev() {
            match scope {
                Scope::Fork(fork) => return Some(fork.defer(freed)),
                Scope::Bodies(bodies) => {
                    if !bodies.made.remove(&freed.base) {
                        bodies.held.push(freed);
                        return Some(false);
                    }
                }
            }
        }
        None
    }

    pub(super) fn open_fork(&mut self, fork: Fork) {
        self.0.push(Scope::Fork(fork));
    }

    /// The innermost fork, unless a node is open inside it.
    pub(super) fn top_fork(&mut self) -> Option<&mut Fork> {
        match self.0.last_mut()? {
            Scope::Fork(fork) => Some(fork),
            Scope::Bodies(_) => None,
        }
    }

    /// Closes the innermost fork, unless a node is open inside it. The blocks that it made, and the memory that it
    /// used, are those of what is around it.
    pub(super) fn close_fork(&mut self) -> Option<Fork> {
        let Some(Scope::Fork(mut fork)) = self.0.pop_if(|scope| matches!(scope, Scope::Fork(_))) else {
            return None;
        };
        for addr in fork.take_made() {
            self.note_placed(addr);
        }
        if let Some((outer, _)) = self.innermost_fork() {
            outer.add_uses_of(&mut fork);
        }
        Some(fork)
    }

    /// Rejects an operation that uses memory that another branch writes, or writes memory that another branch
    /// uses.
    ///
    /// # Errors
    /// Returns [`Error::BranchesShare`](crate::Error::BranchesShare).
    pub(super) fn check(&mut self, op: &'static str, inputs: &[View], outputs: &[View]) -> Result<()> {
        if self.innermost_fork().is_none() {
            return Ok(());
        }
        for (view, writes) in inputs.iter().map(|v| (v, false)).chain(outputs.iter().map(|v| (v, true))) {
            for scope in &self.0 {
                if let Scope::Fork(fork) = scope {
                    fork.check(op, view, writes)?;
                }
            }
            if let Some((fork, _)) = self.innermost_fork() {
                fork.note_use(op, view, writes);
            }
        }
        Ok(())
    }

    pub(super) fn open_bodies(&mut self) {
        self.0.push(Scope::Bodies(Bodies::default()));
    }

    /// The innermost conditional node, whatever is open inside it.
    pub(super) fn bodies(&mut self) -> Option<&mut Bodies> {
        self.0.iter_mut().rev().find_map(|scope| match scope {
            Scope::Bodies(bodies) => Some(bodies),
            Scope::Fork(_) => None,
        })
    }

    /// Returns whether a conditional node is open.
    pub(super) fn has_bodies(&self) -> bool {
        self.0.iter().any(|scope| matches!(scope, Scope::Bodies(_)))
    }

    /// Closes the innermost scope, if it is a conditional node.
    pub(super) fn close_bodies(&mut self) -> Option<Bodies> {
        match self.0.pop_if(|scope| matches!(scope, Scope::Bodies(_)))? {
            Scope::Bodies(bodies) => Some(bodies),
            Scope::Fork(_) => None,
        }
    }

    /// Notes a tensor that the running body made.
    pub(super) fn note_made(&mut self, id: SlotId) {
        if let Some(bodies) = self.bodies() {
            bodies.slots.push(id);
        }
    }

    /// Returns whether the running body made a tensor. Slots are used again, so this is about the tensor that the
    /// slot now is.
    pub(super) fn made(&mut self, id: SlotId) -> bool {
        self.bodies().is_some_and(|bodies| bodies.slots.contains(&id))
    }

    /// A tensor of the running body leaves it, in a slot of its own: its block belongs to what is around the node.
    pub(super) fn leaves_body(&mut self, id: SlotId, base: u64) {
        let mut around = self.0.iter_mut().rev().filter_map(|scope| match scope {
            Scope::Bodies(bodies) => Some(bodies),
            Scope::Fork(_) => None,
        });
        if let Some(bodies) = around.next() {
            // A slot that a tensor of the body had before.
            bodies.slots.retain(|slot| *slot != id);
            bodies.made.remove(&base);
        }
        if let Some(outer) = around.next() {
            outer.slots.push(id);
        }
    }
}

//! Recordings that go, and all that was kept for them alone. It takes the time of what goes.

use std::collections::BTreeSet;

use super::{Tree, anywhere, entry_seed, hash_words};
use crate::memory::GroupId;

/// What goes when owned memory or a graph object goes.
#[derive(Debug, Default)]
pub(super) struct Holders {
    /// Recordings that bake it.
    pub(super) nodes: BTreeSet<u32>,
    /// Edges that name it.
    pub(super) edges: BTreeSet<u32>,
    /// Groups of whole calls of it.
    pub(super) groups: BTreeSet<GroupId>,
}

impl Holders {
    fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.edges.is_empty() && self.groups.is_empty()
    }
}

impl Tree {
    /// Removes every node; returns how many.
    pub(crate) fn evict_all(&mut self) -> usize {
        self.evict(self.numbers.values().map(|&at| at as usize).collect())
    }

    /// Removes the recordings of a group; returns how many.
    pub(crate) fn evict_group(&mut self, group: GroupId) -> usize {
        self.evict(self.groups.nodes(group))
    }

    /// Removes what was recorded with owned memory and graph objects that are gone, and what was learnt for them;
    /// returns the number of recordings.
    pub(crate) fn retire(&mut self, ids: &[u64]) -> usize {
        let nodes = |id| self.holders.get(id).into_iter().flat_map(|holders| &holders.nodes);
        let count = self.evict(ids.iter().flat_map(nodes).map(|&at| at as usize).collect());
        for &id in ids {
            if let Some(Holders { edges, groups, .. }) = self.holders.remove(&id) {
                edges.into_iter().for_each(|edge| self.remove_edge(edge as usize));
                groups.into_iter().for_each(|group| self.remove_group(group));
            }
            self.forget_start(id);
        }
        count
    }

    /// Whether anything would go with it.
    pub(crate) fn holds(&self, id: u64) -> bool {
        self.holders.contains_key(&id) || self.roots.contains_key(&id) || self.shares.has_spares()
    }

    /// Removes nodes, in the order of their recording; returns how many.
    pub(super) fn evict(&mut self, mut nodes: Vec<usize>) -> usize {
        nodes.sort_unstable_by_key(|&at| self.number(at));
        nodes.dedup();
        let before = self.live;
        nodes.into_iter().for_each(|at| self.remove(at));
        before - self.live
    }

    fn remove(&mut self, at: usize) {
        self.going(at);
        let Some(node) = self.nodes[at].take() else { return };
        let hash = hash_words(node.identity, entry_seed(node.entry), &node.shape, &node.addrs);
        for (index, hash) in [(&mut self.index, hash), (&mut self.anywhere, anywhere(&node))] {
            if let Some(list) = index.get_mut(&hash) {
                list.retain(|&mut n| n as usize != at);
                if list.is_empty() {
                    index.remove(&hash);
                }
            }
        }
        self.numbers.remove(&node.number());
        self.live -= 1;
        self.copied -= node.copied.len();
        self.cursor = self.cursor.filter(|&cursor| cursor != at);
        self.untie(at, &node.links);
        if let Some(edge) = node.links.edge {
            self.edges[edge as usize].unhang(node.number());
        }
        for &edge in &node.links.below {
            self.remove_edge(edge as usize);
        }
        for &id in &node.owned {
            self.let_go(id, |holders| holders.nodes.remove(&(at as u32)));
        }
        self.groups.unhang(node.group, at, &node.copied);
        self.shares.remove(node);
        self.vacant.push(at as u32);
        self.shrink();
    }

    /// Takes something out of what goes with an id; an entry without anything goes itself.
    pub(super) fn let_go(&mut self, id: u64, take: impl FnOnce(&mut Holders) -> bool) {
        if let Some(holders) = self.holders.get_mut(&id) {
            take(holders);
            if holders.is_empty() {
                self.holders.remove(&id);
            }
        }
    }

    /// Gives the places at the end back, once most are vacant: amortised, it costs nothing.
    fn shrink(&mut self) {
        const FEW: usize = 1024;
        if self.live == 0 && self.nodes.len() > FEW {
            self.nodes = Vec::new();
            self.vacant = Vec::new();
        }
    }
}

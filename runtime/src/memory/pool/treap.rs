//! A persistent search tree of blocks that knows its gaps.
//!
//! Copies are of constant cost and share common parts, so that a thousand states that differ in one block
//! each take the memory of a thousand blocks and not of a million. Priorities are computed from addresses:
//! equal sets are equal trees, however they were built. Everything takes logarithmic time, except for
//! comparing equal sets that share nothing.

use std::sync::Arc;

use super::Block;

type Link<V> = Option<Arc<Node<V>>>;

#[derive(Clone, Debug)]
struct Node<V> {
    block: Block,
    value: V,
    priority: u64,
    left: Link<V>,
    right: Link<V>,
    /// For the whole subtree: the start of its first block, the end of its last one, the largest gap between
    /// two of its blocks, and the sum of its blocks' hashes.
    first: u64,
    end: u64,
    gap: u64,
    hash: u64,
}

/// Mixes the bits of a word, bijectively, so that no two addresses have the same priority.
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let word = (word ^ (word >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 33)
}

/// Returns the hash of one block; that of a set is the sum.
pub(super) fn hash(block: Block) -> u64 {
    mix(block.addr.wrapping_add(mix(block.len)))
}

impl<V> Node<V> {
    fn update(&mut self) {
        let block = self.block;
        (self.first, self.end, self.gap, self.hash) = (block.addr, block.end(), 0, hash(block));
        if let Some(left) = &self.left {
            self.first = left.first;
            self.gap = left.gap.max(block.addr - left.end);
            self.hash = self.hash.wrapping_add(left.hash);
        }
        if let Some(right) = &self.right {
            self.end = right.end;
            self.gap = self.gap.max(right.gap).max(right.first - block.end());
            self.hash = self.hash.wrapping_add(right.hash);
        }
    }
}

/// Blocks by address, each with a value. No two overlap.
#[derive(Clone, Debug)]
pub(crate) struct Treap<V> {
    root: Link<V>,
    len: usize,
}

impl<V> Default for Treap<V> {
    fn default() -> Self {
        Self { root: None, len: 0 }
    }
}

impl<V: Clone> Treap<V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the hash of all its blocks, equal for equal sets.
    pub(super) fn hash(&self) -> u64 {
        self.root.as_ref().map_or(0, |root| root.hash)
    }

    /// Returns the end of the last block.
    pub(super) fn end(&self) -> Option<u64> {
        self.root.as_ref().map(|root| root.end)
    }

    /// Adds a block that must not overlap any other.
    pub(crate) fn insert(&mut self, block: Block, value: V) {
        let priority = mix(block.addr);
        let mut node =
            Node { block, value, priority, left: None, right: None, first: 0, end: 0, gap: 0, hash: 0 };
        node.update();
        insert(&mut self.root, Arc::new(node));
        self.len += 1;
    }

    /// Removes the block at `addr`.
    pub(crate) fn remove(&mut self, addr: u64) -> Option<Block> {
        // First of all: shared nodes are copied on the way.
        self.at(addr)?;
        let removed = remove(&mut self.root, addr);
        self.len -= usize::from(removed.is_some());
        removed
    }

    /// Returns the block at `addr`.
    pub(super) fn at(&self, addr: u64) -> Option<Block> {
        self.up_to(addr).filter(|block| block.addr == addr)
    }

    /// Returns the last block that does not start above `addr`.
    pub(super) fn up_to(&self, addr: u64) -> Option<Block> {
        let (mut link, mut found) = (&self.root, None);
        while let Some(node) = link {
            if node.block.addr <= addr {
                (found, link) = (Some(node.block), &node.right);
            } else {
                link = &node.left;
            }
        }
        found
    }

    /// Returns the lowest gap from `base` that holds `len` bytes.
    pub(super) fn place(&self, base: u64, len: u64) -> u64 {
        let (mut at, mut link) = (base, &self.root);
        while let Some(node) = link {
            if node.first - at >= len {
                return at;
            }
            if node.gap < len {
                // Only the last gap is left, which is unbounded.
                return node.end;
            }
            if let Some(left) = &node.left {
                if left.gap >= len {
                    link = &node.left;
                    continue;
                }
                if node.block.addr - left.end >= len {
                    return left.end;
                }
            }
            at = node.block.end();
            link = &node.right;
        }
        at
    }

    /// Returns the start of the lowest gap between two blocks that holds `len` bytes and is at or above
    /// `from`.
    pub(super) fn gap(&self, from: u64, len: u64) -> Option<u64> {
        gap(&self.root, from, len)
    }

    /// Returns the start of the first block at or above `addr`.
    pub(super) fn first_from(&self, addr: u64) -> Option<u64> {
        let (mut link, mut found) = (&self.root, None);
        while let Some(node) = link {
            if node.block.addr >= addr {
                (found, link) = (Some(node.block.addr), &node.left);
            } else {
                link = &node.right;
            }
        }
        found
    }

    /// Returns the blocks with their values, by address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Block, &V)> {
        let mut path: Vec<&Node<V>> = Vec::new();
        let mut next = &self.root;
        std::iter::from_fn(move || {
            while let Some(node) = next {
                path.push(node);
                next = &node.left;
            }
            let node = path.pop()?;
            next = &node.right;
            Some((node.block, &node.value))
        })
    }

    /// Adds the addresses of its nodes, which other trees may share.
    #[cfg(test)]
    pub(crate) fn parts(&self, seen: &mut std::collections::HashSet<usize>) {
        let mut todo: Vec<_> = self.root.iter().collect();
        while let Some(node) = todo.pop() {
            if seen.insert(Arc::as_ptr(node).addr()) {
                todo.extend(node.left.iter().chain(&node.right));
            }
        }
    }

    #[cfg(test)]
    pub(super) fn depth(&self) -> usize {
        fn depth<V>(link: &Link<V>) -> usize {
            link.as_ref().map_or(0, |node| 1 + depth(&node.left).max(depth(&node.right)))
        }
        depth(&self.root)
    }

    /// Returns whether both contain the same blocks.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.len == other.len && same(&self.root, &other.root)
    }
}

fn gap<V>(link: &Link<V>, from: u64, len: u64) -> Option<u64> {
    let node = link.as_ref().filter(|node| node.gap >= len && node.end > from)?;
    if let Some(left) = &node.left {
        if let Some(found) = gap(&node.left, from, len) {
            return Some(found);
        }
        if left.end >= from && node.block.addr - left.end >= len {
            return Some(left.end);
        }
    }
    let (end, right) = (node.block.end(), node.right.as_ref()?);
    if end >= from && right.first - end >= len {
        return Some(end);
    }
    gap(&node.right, from, len)
}

fn insert<V: Clone>(link: &mut Link<V>, mut new: Arc<Node<V>>) {
    match link {
        Some(node) if node.priority >= new.priority => {
            let node = Arc::make_mut(node);
            let side = if new.block.addr < node.block.addr { &mut node.left } else { &mut node.right };
            insert(side, new);
            node.update();
        }
        _ => {
            let node = Arc::make_mut(&mut new);
            (node.left, node.right) = split(link.take(), node.block.addr);
            node.update();
            *link = Some(new);
        }
    }
}

/// Returns the part below `addr`, and the rest.
fn split<V: Clone>(link: Link<V>, addr: u64) -> (Link<V>, Link<V>) {
    let Some(mut top) = link else { return (None, None) };
    let node = Arc::make_mut(&mut top);
    if node.block.addr < addr {
        let (below, rest) = split(node.right.take(), addr);
        node.right = below;
        node.update();
        (Some(top), rest)
    } else {
        let (below, rest) = split(node.left.take(), addr);
        node.left = rest;
        node.update();
        (below, Some(top))
    }
}

/// Merges two trees; all of `low` must be below all of `high`.
fn merge<V: Clone>(low: Link<V>, high: Link<V>) -> Link<V> {
    match (low, high) {
        (None, one) | (one, None) => one,
        (Some(mut low), Some(mut high)) => Some(if low.priority > high.priority {
            let node = Arc::make_mut(&mut low);
            node.right = merge(node.right.take(), Some(high));
            node.update();
            low
        } else {
            let node = Arc::make_mut(&mut high);
            node.left = merge(Some(low), node.left.take());
            node.update();
            high
        }),
    }
}

fn remove<V: Clone>(link: &mut Link<V>, addr: u64) -> Option<Block> {
    let node = link.as_mut()?;
    if node.block.addr == addr {
        let block = node.block;
        let Node { left, right, .. } = link.take().map(Arc::unwrap_or_clone)?;
        *link = merge(left, right);
        return Some(block);
    }
    let node = Arc::make_mut(node);
    let removed = remove(if addr < node.block.addr { &mut node.left } else { &mut node.right }, addr);
    node.update();
    removed
}

fn same<V>(one: &Link<V>, other: &Link<V>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(a), Some(b)) => {
            Arc::ptr_eq(a, b)
                || a.hash == b.hash
                    && a.block == b.block
                    && same(&a.left, &b.left)
                    && same(&a.right, &b.right)
        }
        _ => false,
    }
}

//! The graph tree: recordings, found by where they start and what they use.

use std::{any::TypeId, hash::Hasher, sync::Arc};

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use crate::{
    backend::{Executable, SharedMemory},
    core::Home,
    plan::Site,
    pool::StateId,
    tensor::RawTensor,
};

/// What a recording is a recording of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    /// A segment: the type of its body, which is one per monomorphisation.
    Segment(TypeId),
    /// A whole call, by the id of the graph object.
    Full(u64),
}

/// One operation of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceOp {
    pub(crate) name: &'static str,
    pub(crate) fingerprint: u64,
}

/// Everything that is shared by recordings of one identity and one set of shapes.
#[derive(Debug)]
pub(crate) struct Group {
    identity: Identity,
    shape: Box<[u64]>,
    pub(crate) warmed: bool,
    pub(crate) trace: Vec<TraceOp>,
    /// Where the body stands, once it ran.
    pub(crate) site: Option<&'static Site>,
    /// What recordings free before its handle goes: the index of an operation, and the ordinal of an
    /// allocation that it is the last to use. Sorted.
    pub(crate) releases: Vec<(u32, u32)>,
    /// Which allocations leave the call: they are placed in the results arena.
    pub(crate) results: SmallVec<[u32; 4]>,
}

/// A block that a recording leaves to its outputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeBlock {
    pub(crate) addr: u64,
    pub(crate) bytes: u64,
    pub(crate) home: Home,
    pub(crate) ordinal: u32,
    pub(crate) made_by: &'static str,
    /// How many outputs show it: they live and die together.
    pub(crate) refs: u32,
}

/// An output as it was recorded.
#[derive(Clone, Debug)]
pub(crate) enum Stored {
    /// In the node's block of that index.
    Own(u32, RawTensor),
    /// A view of the live-in tensor of that index.
    LiveIn(u32, RawTensor),
    /// A view of owned memory.
    Owned(SharedMemory, RawTensor),
    Word(u64),
    Text(Arc<str>),
}

/// What a recording needs of the pool, and whose it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Bytes of its own blocks at their most.
    pub(crate) pool_peak: u64,
    /// Bytes from the pool's start to the end of the last block that was alive meanwhile, whosever.
    pub(crate) pool_extent: u64,
    /// Id and name of the function in whose call it was recorded.
    pub(crate) function: (u64, &'static str),
}

/// One recording.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) site: &'static Site,
    pub(crate) identity: Identity,
    pub(crate) group: usize,
    pub(crate) parent: Option<usize>,
    pub(crate) entry: StateId,
    pub(crate) exit: StateId,
    pub(crate) shape: Box<[u64]>,
    pub(crate) addrs: Box<[u64]>,
    pub(crate) exec: Option<Arc<dyn Executable>>,
    pub(crate) blocks: Vec<NodeBlock>,
    pub(crate) outputs: Vec<Stored>,
    /// Ids of owned memory that it bakes.
    pub(crate) owned: Vec<u64>,
    /// State that it writes.
    pub(crate) writes: Vec<(u64, SharedMemory)>,
    pub(crate) usage: Usage,
    pub(crate) hits: u64,
    pub(crate) likely: Option<usize>,
}

impl Node {
    fn is(&self, identity: Identity, entry: StateId, shape: &[u64], addrs: &[u64]) -> bool {
        self.identity == identity && self.entry == entry && *self.addrs == *addrs && *self.shape == *shape
    }
}

/// An edge: what the re-record limit counts. Parameters belong to it, so that a model's layers do not
/// share one limit, and a replaced parameter does not spend the old one's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Edge {
    parent: Option<usize>,
    group: usize,
    owned: Box<[u64]>,
}

#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Option<Node>>,
    live: usize,
    index: FxHashMap<u64, SmallVec<[u32; 2]>>,
    groups: Vec<Group>,
    group_index: FxHashMap<u64, SmallVec<[u32; 1]>>,
    edges: FxHashMap<Edge, Vec<u32>>,
    /// First node of each function id, for prediction.
    roots: FxHashMap<u64, usize>,
    cursor: Option<usize>,
    function: u64,
}

fn hash_words(identity: Identity, seed: u64, shape: &[u64], addrs: &[u64]) -> u64 {
    let mut h = FxHasher::default();
    std::hash::Hash::hash(&identity, &mut h);
    h.write_u64(seed);
    for &w in shape {
        h.write_u64(w);
    }
    for &w in addrs {
        h.write_u64(w);
    }
    h.finish()
}

fn owned_ids(addrs: &[u64]) -> Box<[u64]> {
    addrs.iter().step_by(2).copied().filter(|&id| id != 0).collect()
}

impl Tree {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The function whose call runs, or ran last.
    pub(crate) fn function(&self) -> u64 {
        self.function
    }

    /// Goes to a function's root.
    pub(crate) fn enter(&mut self, function: u64) {
        self.cursor = None;
        self.function = function;
    }

    pub(crate) fn len(&self) -> usize {
        self.live
    }

    pub(crate) fn node(&self, at: usize) -> Option<&Node> {
        self.nodes.get(at)?.as_ref()
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().flatten()
    }

    /// The nodes with their indices, in the order of recording.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes.iter().enumerate().filter_map(|(at, node)| Some((at, node.as_ref()?)))
    }

    /// The recording of this segment from this state with these inputs, if `free` says that its
    /// result blocks can be taken. Tries the child that came last time first.
    pub(crate) fn find(
        &mut self,
        identity: Identity,
        entry: StateId,
        shape: &[u64],
        addrs: &[u64],
        free: impl Fn(&Node) -> bool,
    ) -> Option<usize> {
        let predicted = match self.cursor {
            Some(at) => self.nodes[at].as_ref().and_then(|n| n.likely),
            None => self.roots.get(&self.function).copied(),
        };
        if let Some(at) = predicted
            && let Some(node) = &self.nodes[at]
            && node.is(identity, entry, shape, addrs)
            && free(node)
        {
            return Some(at);
        }
        let hash = hash_words(identity, entry_seed(entry), shape, addrs);
        self.index.get(&hash)?.iter().map(|&at| at as usize).find(|&at| {
            self.nodes[at].as_ref().is_some_and(|n| n.is(identity, entry, shape, addrs) && free(n))
        })
    }

    /// Moves along an edge, and remembers it as the likely one.
    pub(crate) fn follow(&mut self, at: usize) {
        match self.cursor {
            Some(from) => {
                if let Some(node) = &mut self.nodes[from] {
                    node.likely = Some(at);
                }
            }
            None => {
                self.roots.insert(self.function, at);
            }
        }
        self.cursor = Some(at);
        if let Some(node) = &mut self.nodes[at] {
            node.hits += 1;
        }
    }

    /// Where the next recording hangs.
    pub(crate) fn cursor(&self) -> Option<usize> {
        self.cursor
    }

    /// Leaves the recorded path: something ran that is no node.
    pub(crate) fn stray(&mut self) {
        self.cursor = None;
    }

    pub(crate) fn group(&mut self, identity: Identity, shape: &[u64]) -> usize {
        let hash = hash_words(identity, 0, shape, &[]);
        let groups = &self.groups;
        let candidates = self.group_index.entry(hash).or_default();
        let known = candidates
            .iter()
            .map(|&g| g as usize)
            .find(|&g| groups[g].identity == identity && *groups[g].shape == *shape);
        known.unwrap_or_else(|| {
            candidates.push(self.groups.len() as u32);
            self.groups.push(Group {
                identity,
                shape: shape.into(),
                warmed: false,
                trace: Vec::new(),
                site: None,
                releases: Vec::new(),
                results: SmallVec::new(),
            });
            self.groups.len() - 1
        })
    }

    pub(crate) fn group_mut(&mut self, group: usize) -> &mut Group {
        &mut self.groups[group]
    }

    /// Where the body of a group stands.
    pub(crate) fn site(&self, group: usize) -> Option<&'static Site> {
        self.groups.get(group)?.site
    }

    /// The recordings that were made on the same edge.
    pub(crate) fn siblings(&self, group: usize, addrs: &[u64]) -> Vec<&Node> {
        let edge = Edge { parent: self.cursor, group, owned: owned_ids(addrs) };
        let Some(list) = self.edges.get(&edge) else { return Vec::new() };
        list.iter().filter_map(|&at| self.nodes[at as usize].as_ref()).collect()
    }

    /// How many recordings this edge has spent, evicted ones included.
    pub(crate) fn spent(&self, group: usize, addrs: &[u64]) -> usize {
        let edge = Edge { parent: self.cursor, group, owned: owned_ids(addrs) };
        self.edges.get(&edge).map_or(0, Vec::len)
    }

    pub(crate) fn insert(&mut self, node: Node) -> usize {
        let at = self.nodes.len();
        let hash = hash_words(node.identity, entry_seed(node.entry), &node.shape, &node.addrs);
        self.index.entry(hash).or_default().push(at as u32);
        let edge = Edge { parent: node.parent, group: node.group, owned: owned_ids(&node.addrs) };
        self.edges.entry(edge).or_default().push(at as u32);
        self.nodes.push(Some(node));
        self.live += 1;
        at
    }

    /// Removes the nodes that `gone` picks; returns how many.
    pub(crate) fn evict(&mut self, gone: impl Fn(&Node) -> bool) -> usize {
        let mut count = 0;
        for at in 0..self.nodes.len() {
            let Some(node) = &self.nodes[at] else { continue };
            if !gone(node) {
                continue;
            }
            let hash = hash_words(node.identity, entry_seed(node.entry), &node.shape, &node.addrs);
            if let Some(list) = self.index.get_mut(&hash) {
                list.retain(|&mut n| n as usize != at);
                if list.is_empty() {
                    self.index.remove(&hash);
                }
            }
            self.nodes[at] = None;
            self.live -= 1;
            count += 1;
        }
        if count > 0 {
            let nodes = &self.nodes;
            self.roots.retain(|_, at| nodes[*at].is_some());
            self.cursor = self.cursor.filter(|&at| nodes[at].is_some());
            // Edges below an evicted node cannot be taken again.
            self.edges.retain(|edge, _| edge.parent.is_none_or(|p| nodes[p].is_some()));
        }
        count
    }
}

fn entry_seed(entry: StateId) -> u64 {
    let mut h = FxHasher::default();
    std::hash::Hash::hash(&entry, &mut h);
    h.finish()
}

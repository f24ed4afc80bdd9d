//! The graph tree: recordings, found by where they start and what they use.

use std::{any::TypeId, hash::Hasher, sync::Arc};

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use crate::{
    backend::{Executable, SharedMemory},
    core::{EntryBlock, Home},
    lifecycle::LifecycleEvent,
    plan::Site,
    pool::StateId,
    size::RawDim,
    tensor::RawTensor,
};

mod edge;
mod notices;
mod share;

pub(crate) use edge::{COPIED, CopiedInput, Positions, masked};
use edge::{Edge, EdgeState};
use share::Shares;
pub(crate) use share::{Offer, Place, Sharing};

/// What a recording is a recording of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    /// A segment: the type of its body, which is one per monomorphisation.
    Segment(TypeId),
    /// A whole call, by the id of the graph object.
    Full(u64),
}

/// The function whose call runs: the id of its graph object, and its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) id: u64,
    pub(crate) name: &'static str,
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
    /// Whether it counts among the shapes of a function.
    pub(crate) counted: bool,
    /// How its live-ins overlapped when it was warmed up, if its body asked; `None` if it did not.
    pub(crate) aliases: Option<Box<[u64]>>,
    /// The last call in which a warm-up of it ran to its end, and in how many calls one did.
    pub(crate) tried: (u64, u32),
    /// It waited for another's warm-up since it was recorded last.
    pub(crate) waited: bool,
    /// The sets of live-ins that its recordings copy.
    copied: SmallVec<[Positions; 1]>,
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
    Size(RawDim),
}

/// A live-in in an arena, as a recording bakes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveInPlace {
    /// Index among the tensors of the key.
    pub(crate) tensor: u32,
    /// Index among its device operands.
    pub(crate) operand: u32,
    pub(crate) addr: u64,
    /// From its first to its last element.
    pub(crate) bytes: u64,
}

/// What a recording needs of the pool.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Bytes of its own blocks at their most.
    pub(crate) pool_peak: u64,
    /// Bytes from the pool's start to the end of the last block that was alive meanwhile, whosever.
    pub(crate) pool_extent: u64,
    /// Bytes from the start of the results arena to the end of its last block there.
    pub(crate) result_extent: u64,
}

/// One recording.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) site: &'static Site,
    pub(crate) identity: Identity,
    /// In whose call it was recorded.
    pub(crate) caller: Caller,
    /// The `#[dims]` symbols of that call, with their sizes.
    pub(crate) sizes: Box<[(&'static str, usize)]>,
    pub(crate) group: usize,
    pub(crate) parent: Option<usize>,
    pub(crate) entry: StateId,
    pub(crate) exit: StateId,
    pub(crate) shape: Box<[u64]>,
    /// As in the key, [`COPIED`] for the address of a live-in that is copied.
    pub(crate) addrs: Box<[u64]>,
    pub(crate) copied: Box<[CopiedInput]>,
    /// Where its live-ins in arenas lay when it was recorded.
    pub(crate) places: Box<[LiveInPlace]>,
    /// How its live-ins overlapped, if its body asked: it is a recording of that answer.
    pub(crate) aliases: Option<Box<[u64]>>,
    pub(crate) exec: Option<Arc<dyn Executable>>,
    /// Recorded so that others can run by the same executable; they do where it is the same.
    pub(crate) sharing: Option<Sharing>,
    pub(crate) blocks: Vec<NodeBlock>,
    pub(crate) outputs: Vec<Stored>,
    /// Ids of owned memory that it bakes.
    pub(crate) owned: Vec<u64>,
    /// State that it writes.
    pub(crate) writes: Vec<(u64, SharedMemory)>,
    /// What was alive in the pool when it was recorded.
    pub(crate) alive: Box<[EntryBlock]>,
    pub(crate) usage: Usage,
    /// How often it ran; the first time was right after its recording.
    pub(crate) hits: u64,
    pub(crate) likely: Option<usize>,
    /// Every node that was seen to follow, in the order of the first time.
    pub(crate) children: SmallVec<[u32; 2]>,
    /// The step in which its results were last seen held when it ran again; 0 when they were not lately.
    pub(crate) crowded: u64,
    /// Where the first of them went then.
    pub(crate) handed: Option<u64>,
    /// It was seen to follow something that ran without a recording.
    pub(crate) after_eager: bool,
}

/// Where the calls of a function begin.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) caller: Caller,
    pub(super) likely: Option<usize>,
    /// Every node that was seen to come first, in the order of the first time.
    pub(crate) first: SmallVec<[u32; 2]>,
}

impl Node {
    fn is(&self, identity: Identity, entry: StateId, shape: &[u64], addrs: &[u64]) -> bool {
        self.identity == identity && self.entry == entry && *self.addrs == *addrs && *self.shape == *shape
    }
}

#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Option<Node>>,
    live: usize,
    index: FxHashMap<u64, SmallVec<[u32; 2]>>,
    /// As `index`, wherever live-ins in arenas lie.
    anywhere: FxHashMap<u64, SmallVec<[u32; 2]>>,
    groups: Vec<Group>,
    group_index: FxHashMap<u64, SmallVec<[u32; 1]>>,
    edges: FxHashMap<Edge, EdgeState>,
    any_skipped: bool,
    /// Where each function's calls begin, by its id.
    roots: FxHashMap<u64, Start>,
    cursor: Option<usize>,
    caller: Caller,
    /// Something ran without a recording since the call began or a recording ran.
    strayed: bool,
    shares: Shares,
    /// What happened to nodes, while there are hooks.
    notices: Option<Vec<LifecycleEvent>>,
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

impl Tree {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        // Hooks hear of each.
        self.evict(|_| true);
        let notices = self.notices.take();
        let shares = self.shares.emptied();
        *self = Self { notices, shares, ..Self::default() };
    }

    /// Goes to a function's root.
    pub(crate) fn enter(&mut self, id: u64, name: &'static str) {
        self.cursor = None;
        self.strayed = false;
        self.caller = Caller { id, name };
    }

    /// Whose call runs, or ran last.
    pub(crate) fn caller(&self) -> Caller {
        self.caller
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

    /// Where calls begin, one entry for each graph object whose recordings ran.
    pub(crate) fn starts(&self) -> impl Iterator<Item = &Start> {
        self.roots.values()
    }

    /// The recording of this segment from this state with these inputs, if `free` says that its
    /// result blocks can be taken. Tries the child that came last time first.
    pub(crate) fn find(
        &self,
        identity: Identity,
        entry: StateId,
        shape: &[u64],
        addrs: &[u64],
        free: impl Fn(&Node) -> bool,
    ) -> Option<usize> {
        let predicted = match self.cursor {
            Some(at) => self.nodes[at].as_ref().and_then(|n| n.likely),
            None if self.strayed => None,
            None => self.roots.get(&self.caller.id).and_then(|start| start.likely),
        };
        if let Some(at) = predicted
            && let Some(node) = &self.nodes[at]
            && node.is(identity, entry, shape, addrs)
            && free(node)
        {
            return Some(at);
        }
        let hash = hash_words(identity, entry_seed(entry), shape, addrs);
        let fits = |n: &Node| {
            n.is(identity, entry, shape, addrs) && free(n) && self.skipped(n.group, addrs).is_none()
        };
        self.index
            .get(&hash)?
            .iter()
            .map(|&at| at as usize)
            .find(|&at| self.nodes[at].as_ref().is_some_and(&fits))
    }

    /// The recordings of this segment from this state, wherever their live-ins in arenas lay.
    pub(crate) fn alike<'t>(
        &'t self,
        identity: Identity,
        entry: StateId,
        shape: &'t [u64],
        addrs: &[u64],
    ) -> impl Iterator<Item = usize> + 't {
        let owned = owned_only(addrs);
        let hash = hash_words(identity, entry_seed(entry), shape, &owned);
        let fits = move |node: &Node| {
            (node.identity, node.entry) == (identity, entry)
                && *node.shape == *shape
                && owned_only(&node.addrs) == owned
        };
        let list = self.anywhere.get(&hash).into_iter().flatten().map(|&at| at as usize);
        list.filter(move |&at| self.nodes[at].as_ref().is_some_and(&fits))
    }

    /// The results of a recording were held in that step, or are no longer (0); the first went to `handed`.
    pub(crate) fn crowd(&mut self, at: usize, step: u64, handed: Option<u64>) {
        if let Some(node) = &mut self.nodes[at] {
            (node.crowded, node.handed) = (step, handed);
        }
    }

    /// Moves along an edge, and remembers it as the likely one. A way that was taken last time, too, costs
    /// one comparison.
    pub(crate) fn follow(&mut self, at: usize) {
        match self.cursor {
            Some(from) => {
                if let Some(node) = &mut self.nodes[from]
                    && node.likely != Some(at)
                {
                    node.likely = Some(at);
                    seen(&mut node.children, at);
                }
            }
            None if self.strayed => {
                if let Some(node) = &mut self.nodes[at] {
                    node.after_eager = true;
                }
            }
            None => match self.roots.get_mut(&self.caller.id) {
                Some(start) if start.likely == Some(at) => {}
                Some(start) => {
                    start.likely = Some(at);
                    seen(&mut start.first, at);
                }
                None => {
                    let first = SmallVec::from_slice(&[at as u32]);
                    self.roots.insert(self.caller.id, Start { caller: self.caller, likely: Some(at), first });
                }
            },
        }
        self.cursor = Some(at);
        self.strayed = false;
        if let Some(node) = &mut self.nodes[at] {
            node.hits += 1;
        }
        if self.notices.is_some() {
            self.replayed(at, None);
        }
    }

    /// Where the next recording hangs.
    pub(crate) fn cursor(&self) -> Option<usize> {
        self.cursor
    }

    /// Leaves the recorded path: something ran that is no node.
    pub(crate) fn stray(&mut self) {
        self.cursor = None;
        self.strayed = true;
    }

    pub(crate) fn group(&mut self, identity: Identity, shape: &[u64]) -> usize {
        if let Some(known) = self.known_group(identity, shape) {
            return known;
        }
        let hash = hash_words(identity, 0, shape, &[]);
        self.group_index.entry(hash).or_default().push(self.groups.len() as u32);
        self.groups.push(Group {
            identity,
            shape: shape.into(),
            warmed: false,
            trace: Vec::new(),
            site: None,
            releases: Vec::new(),
            results: SmallVec::new(),
            counted: false,
            aliases: None,
            tried: (0, 0),
            waited: false,
            copied: SmallVec::new(),
        });
        self.groups.len() - 1
    }

    pub(crate) fn known_group(&self, identity: Identity, shape: &[u64]) -> Option<usize> {
        let candidates = self.group_index.get(&hash_words(identity, 0, shape, &[]))?;
        candidates.iter().map(|&g| g as usize).find(|&g| {
            let group = &self.groups[g];
            group.identity == identity && *group.shape == *shape
        })
    }

    pub(crate) fn group_of(&self, group: usize) -> &Group {
        &self.groups[group]
    }

    pub(crate) fn group_mut(&mut self, group: usize) -> &mut Group {
        &mut self.groups[group]
    }

    /// Operations of the group's warm-up; `None` before it.
    pub(crate) fn trace_len(&self, group: usize) -> Option<usize> {
        let group = &self.groups[group];
        group.warmed.then_some(group.trace.len())
    }

    /// Where the body of a group stands.
    pub(crate) fn site(&self, group: usize) -> Option<&'static Site> {
        self.groups.get(group)?.site
    }

    /// Whether the group counts among the shapes of a function.
    pub(crate) fn is_counted(&self, group: usize) -> bool {
        self.groups[group].counted
    }

    /// Whether that allocation of the group leaves the call.
    pub(crate) fn is_result(&self, group: usize, ordinal: u32) -> bool {
        self.groups.get(group).is_some_and(|g| g.results.contains(&ordinal))
    }

    pub(crate) fn insert(&mut self, node: Node) -> usize {
        let at = self.nodes.len();
        let hash = hash_words(node.identity, entry_seed(node.entry), &node.shape, &node.addrs);
        self.index.entry(hash).or_default().push(at as u32);
        self.anywhere.entry(anywhere(&node)).or_default().push(at as u32);
        let edge = Edge::new(node.parent, node.group, &node.addrs);
        self.edges.entry(edge).or_default().nodes.push(at as u32);
        if !node.copied.is_empty() {
            let positions: Positions = node.copied.iter().map(|c| c.position).collect();
            let sets = &mut self.groups[node.group].copied;
            if !sets.contains(&positions) {
                sets.push(positions);
            }
        }
        if let Some(sharing) = &node.sharing {
            self.shares.add(sharing.place, at);
        }
        self.nodes.push(Some(node));
        self.live += 1;
        self.made(at);
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
            let hash = anywhere(node);
            if let Some(list) = self.anywhere.get_mut(&hash) {
                list.retain(|&mut n| n as usize != at);
                if list.is_empty() {
                    self.anywhere.remove(&hash);
                }
            }
            self.going(at);
            if let Some(node) = self.nodes[at].take() {
                self.shares.remove(at, node);
            }
            self.live -= 1;
            count += 1;
        }
        if count > 0 {
            let gone: Vec<bool> = self.nodes.iter().map(Option::is_none).collect();
            self.nodes.iter_mut().flatten().for_each(|n| n.children.retain(|at| !gone[*at as usize]));
            self.roots.retain(|_, start| {
                start.first.retain(|at| !gone[*at as usize]);
                start.likely = start.likely.filter(|&at| !gone[at]);
                !start.first.is_empty()
            });
            let nodes = &self.nodes;
            self.cursor = self.cursor.filter(|&at| nodes[at].is_some());
            // Edges below an evicted node cannot be taken again.
            self.edges.retain(|edge, _| edge.parent.is_none_or(|p| nodes[p].is_some()));
        }
        count
    }
}

/// The addresses of owned memory alone.
fn owned_only(addrs: &[u64]) -> SmallVec<[u64; 32]> {
    addrs.chunks_exact(2).flat_map(|a| [a[0], if a[0] == 0 { 0 } else { a[1] }]).collect()
}

fn anywhere(node: &Node) -> u64 {
    hash_words(node.identity, entry_seed(node.entry), &node.shape, &owned_only(&node.addrs))
}

/// Adds a node to those that were seen to come next.
fn seen(list: &mut SmallVec<[u32; 2]>, at: usize) {
    if !list.contains(&(at as u32)) {
        list.push(at as u32);
    }
}

fn entry_seed(entry: StateId) -> u64 {
    let mut h = FxHasher::default();
    std::hash::Hash::hash(&entry, &mut h);
    h.finish()
}

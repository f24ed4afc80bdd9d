//! Dependences between the nodes of a graph, and random orders that respect them.

use smallvec::SmallVec;

use super::graph::{Node, Range};

/// For each node, the later nodes that must wait for it.
///
/// Node `b` waits for an earlier node `a` if one of them writes a byte that the other reads or writes. Ranges
/// are those of whole views: strided views that interleave count as overlapping.
#[derive(Debug)]
pub(super) struct Hazards {
    successors: Vec<Vec<u32>>,
    predecessors: Vec<u32>,
}

impl Hazards {
    pub(super) fn of(nodes: &[Node]) -> Self {
        let touched: Vec<(Vec<Range>, Vec<Range>)> = nodes.iter().map(Node::ranges).collect();
        let mut hazards =
            Self { successors: vec![Vec::new(); nodes.len()], predecessors: vec![0; nodes.len()] };
        for (b, (reads, writes)) in touched.iter().enumerate() {
            for (a, (earlier_reads, earlier_writes)) in touched[..b].iter().enumerate() {
                if overlap(earlier_writes, reads)
                    || overlap(earlier_reads, writes)
                    || overlap(earlier_writes, writes)
                {
                    hazards.successors[a].push(b as u32);
                    hazards.predecessors[b] += 1;
                }
            }
        }
        hazards
    }

    /// The pairs (earlier, later) of which the later waits for the earlier, without those that follow from
    /// others.
    pub(super) fn direct(&self) -> Vec<(usize, usize)> {
        let n = self.successors.len();
        let words = n.div_ceil(64);
        // The nodes that must run after each node, excluding itself, as bits; later nodes first.
        let mut after: Vec<Vec<u64>> = vec![vec![0; words]; n];
        let mut pairs = Vec::new();
        for a in (0..n).rev() {
            let mut reached = vec![0u64; words];
            // Successors are in increasing order, and a transitive successor follows from an earlier one.
            for &b in &self.successors[a] {
                let b = b as usize;
                if reached[b / 64] >> (b % 64) & 1 == 0 {
                    pairs.push((a, b));
                    reached.iter_mut().zip(&after[b]).for_each(|(r, more)| *r |= more);
                    reached[b / 64] |= 1 << (b % 64);
                }
            }
            after[a] = reached;
        }
        pairs
    }

    /// Calls `run` for every node, each after all that it waits for, otherwise at random.
    pub(super) fn shuffled(&self, random: &mut Random, mut run: impl FnMut(usize)) {
        let mut waiting = self.predecessors.clone();
        let mut ready: Vec<usize> = (0..waiting.len()).filter(|&n| waiting[n] == 0).collect();
        while !ready.is_empty() {
            let node = ready.swap_remove(random.below(ready.len()));
            run(node);
            for &next in &self.successors[node] {
                waiting[next as usize] -= 1;
                if waiting[next as usize] == 0 {
                    ready.push(next as usize);
                }
            }
        }
    }
}

/// The position of a node: the forks around it, the outermost first, each with the branch that contains the
/// node.
pub(super) type Path = SmallVec<[(u32, u32); 2]>;

/// Returns whether nothing orders two nodes.
fn side_by_side(a: &Path, b: &Path) -> bool {
    // At the point where their paths diverge, they are in two branches of one fork, or one follows the other.
    a.iter().zip(b).find(|(a, b)| a != b).is_some_and(|(a, b)| a.0 == b.0)
}

/// Returns two nodes of different branches of one fork, if one of them writes memory that the other reads or
/// writes.
pub(super) fn shared_by_branches(nodes: &[Node], paths: &[Path]) -> Option<(usize, usize)> {
    // Most recordings do not have a fork.
    let inside: Vec<usize> = (0..nodes.len()).filter(|&n| !paths[n].is_empty()).collect();
    let touched: Vec<(Vec<Range>, Vec<Range>)> = inside.iter().map(|&n| nodes[n].ranges()).collect();
    for (at, &b) in inside.iter().enumerate() {
        let (reads, writes) = &touched[at];
        for (&a, (earlier_reads, earlier_writes)) in inside[..at].iter().zip(&touched) {
            if side_by_side(&paths[a], &paths[b])
                && (overlap(earlier_writes, reads)
                    || overlap(earlier_reads, writes)
                    || overlap(earlier_writes, writes))
            {
                return Some((a, b));
            }
        }
    }
    None
}

fn overlap(a: &[Range], b: &[Range]) -> bool {
    a.iter().any(|a| b.iter().any(|b| a.0.max(b.0) < a.1.min(b.1)))
}

/// SplitMix64: enough to shuffle, and the same for a seed on every machine.
#[derive(Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    /// A number below `n`, which is not 0.
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ z >> 31) % n as u64) as usize
    }
}

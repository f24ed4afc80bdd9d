//! Captured graphs of the CPU: launches with their addresses, and an order to run them in.

use std::{any::Any, sync::Arc};

use rand_order::Shuffle;

use crate::backend::{Executable, Launch, SharedMemory};

/// One recorded command.
#[derive(Debug)]
pub(super) enum Node {
    Launch(Launch),
    Poison { addr: u64, bytes: u64 },
}

type Range = (u64, u64);

fn overlap(a: &Range, b: &Range) -> bool {
    a.0 < b.1 && b.0 < a.1
}

impl Node {
    fn reads(&self) -> Vec<Range> {
        match self {
            Self::Launch(l) => l.inputs.iter().map(|v| v.range()).collect(),
            Self::Poison { .. } => Vec::new(),
        }
    }

    fn writes(&self) -> Vec<Range> {
        match self {
            Self::Launch(l) => l.outputs.iter().map(|v| v.range()).collect(),
            Self::Poison { addr, bytes } => vec![(*addr, addr + bytes)],
        }
    }
}

/// The nodes of a capture.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// In test mode: which earlier nodes each node must wait for.
    waits: Option<Vec<Vec<u32>>>,
    _retained: Vec<SharedMemory>,
}

impl Graph {
    pub(super) fn new(nodes: Vec<Node>, retained: Vec<SharedMemory>, reorder: bool) -> Self {
        let waits = reorder.then(|| hazards(&nodes));
        Self { nodes, waits, _retained: retained }
    }

    /// An order that respects every hazard: the recorded one, or in test mode a random one.
    pub(super) fn order(&self, seed: u64) -> Vec<u32> {
        let recorded = 0..self.nodes.len() as u32;
        let Some(waits) = &self.waits else { return recorded.collect() };
        let mut shuffle = Shuffle::new(seed);
        let mut left: Vec<usize> = waits.iter().map(Vec::len).collect();
        let mut followers = vec![Vec::new(); waits.len()];
        for (node, earlier) in waits.iter().enumerate() {
            for &e in earlier {
                followers[e as usize].push(node as u32);
            }
        }
        let mut ready: Vec<u32> = recorded.filter(|&n| left[n as usize] == 0).collect();
        let mut order = Vec::with_capacity(waits.len());
        while !ready.is_empty() {
            let node = ready.swap_remove(shuffle.below(ready.len()));
            order.push(node);
            for &f in &followers[node as usize] {
                left[f as usize] -= 1;
                if left[f as usize] == 0 {
                    ready.push(f);
                }
            }
        }
        order
    }
}

/// Read after write, write after read and write after write, by byte ranges.
fn hazards(nodes: &[Node]) -> Vec<Vec<u32>> {
    let access: Vec<(Vec<Range>, Vec<Range>)> = nodes.iter().map(|n| (n.reads(), n.writes())).collect();
    let any = |a: &[Range], b: &[Range]| a.iter().any(|x| b.iter().any(|y| overlap(x, y)));
    access
        .iter()
        .enumerate()
        .map(|(at, (reads, writes))| {
            (0..at as u32)
                .filter(|&e| {
                    let (r, w) = &access[e as usize];
                    any(reads, w) || any(writes, r) || any(writes, w)
                })
                .collect()
        })
        .collect()
}

/// What the core holds of a graph. A queued replay shares the graph itself.
#[derive(Debug)]
pub(super) struct CpuExecutable(pub(super) Arc<Graph>);

impl Executable for CpuExecutable {
    fn nodes(&self) -> usize {
        self.0.nodes.len()
    }

    fn bytes(&self) -> u64 {
        (self.0.nodes.len() * size_of::<Node>()) as u64
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

mod rand_order {
    /// SplitMix64 (Steele, Lea, Flood 2014): a few lines that repeat exactly from a seed.
    pub(super) struct Shuffle(u64);

    impl Shuffle {
        pub(super) fn new(seed: u64) -> Self {
            Self(seed)
        }

        pub(super) fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) % n as u64) as usize
        }
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::{
        DType,
        backend::{Op, View},
        layout::Layout,
    };

    fn copy(from: u64, to: u64) -> Node {
        let view = |addr| View { addr, dtype: DType::U8, layout: Layout::contiguous(&[16]).unwrap() };
        Node::Launch(Launch { op: Op::Copy, inputs: smallvec![view(from)], outputs: smallvec![view(to)] })
    }

    #[test]
    fn hazards_keep_their_order_and_the_rest_does_not() {
        let nodes = vec![copy(0, 100), copy(100, 200), copy(300, 400), copy(500, 100), copy(300, 600)];
        let graph = Graph::new(nodes, Vec::new(), true);
        assert_eq!(graph.waits.as_ref().unwrap()[3], [0, 1]);
        let mut seen = std::collections::HashSet::new();
        for seed in 0..200 {
            let order = graph.order(seed);
            let at = |n: u32| order.iter().position(|&o| o == n).unwrap();
            assert!(at(0) < at(1) && at(1) < at(3));
            assert_eq!(order.len(), 5);
            seen.insert(order);
        }
        assert!(seen.len() > 5, "independent nodes must change places");
    }

    #[test]
    fn recorded_order_outside_test_mode() {
        let graph = Graph::new(vec![copy(0, 100), copy(300, 400)], Vec::new(), false);
        assert_eq!(graph.order(9), [0, 1]);
    }
}

//! Cycles of a graph whose nodes are names.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Nodes, and for each the nodes that it names.
pub(crate) struct Graph(pub(crate) BTreeMap<String, BTreeSet<String>>);

impl Graph {
    /// The shortest way from one node to another along at least one arc, both ends included.
    pub(crate) fn path(&self, from: &str, to: &str) -> Option<Vec<String>> {
        let mut before: BTreeMap<&str, &str> = BTreeMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            for next in self.0.get(at).into_iter().flatten() {
                if !before.contains_key(next.as_str()) {
                    before.insert(next, at);
                    queue.push_back(next);
                }
            }
        }
        let mut way = vec![to.to_owned()];
        let mut at = *before.get(to)?;
        while at != from {
            way.push(at.to_owned());
            at = before[at];
        }
        way.push(from.to_owned());
        way.reverse();
        Some(way)
    }

    /// The shortest cycle, its first node repeated at its end.
    pub(crate) fn shortest_cycle(&self) -> Option<Vec<String>> {
        self.0.keys().filter_map(|node| self.path(node, node)).min_by_key(Vec::len)
    }

    /// These nodes, and the arcs among them.
    fn within(&self, nodes: &BTreeSet<String>) -> Self {
        let kept = self.0.iter().filter(|(node, _)| nodes.contains(*node));
        Self(kept.map(|(node, to)| (node.clone(), to & nodes)).collect())
    }

    /// If more than `bound` nodes each reach every other: the size of the largest such set, and of its arcs that one
    /// without which the largest set is smallest. Of several, the one that is part of the shortest cycle.
    pub(crate) fn worst_arc(&self, bound: usize) -> Option<WorstArc> {
        let set = self.components().into_iter().next().filter(|set| set.len() > bound)?;
        let mut graph = self.within(&set);
        let arcs: Vec<(String, String)> =
            graph.0.iter().flat_map(|(from, to)| to.iter().map(|to| (from.clone(), to.clone()))).collect();
        let without = arcs.into_iter().map(|(from, to)| {
            graph.0.entry(from.clone()).or_default().remove(&to);
            let left = graph.components().first().map_or(1, BTreeSet::len);
            let way_back = graph.path(&to, &from);
            graph.0.entry(from.clone()).or_default().insert(to);
            let cycle = [from].into_iter().chain(way_back.unwrap_or_default()).collect();
            WorstArc { size: set.len(), left, cycle }
        });
        without.min_by_key(|arc| (arc.left, arc.cycle.len()))
    }

    fn reached(&self, from: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            for next in self.0.get(at).into_iter().flatten() {
                if reached.insert(next.as_str()) {
                    open.push(next);
                }
            }
        }
        reached
    }

    /// Sets of more than one node in which each reaches every other, largest first.
    pub(crate) fn components(&self) -> Vec<BTreeSet<String>> {
        let reached: BTreeMap<_, _> = self.0.keys().map(|node| (node.as_str(), self.reached(node))).collect();
        let mut found = BTreeSet::new();
        for (node, to) in &reached {
            let with: BTreeSet<String> = to
                .iter()
                .filter(|other| reached.get(*other).is_some_and(|back| back.contains(node)))
                .map(|other| (*other).to_owned())
                .collect();
            if with.len() > 1 {
                found.insert(with);
            }
        }
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_by_key(|with| std::cmp::Reverse(with.len()));
        found
    }
}

/// The arc of a set of nodes that does most to make it large.
pub(crate) struct WorstArc {
    /// The size of the set.
    pub(crate) size: usize,
    /// The size of the largest set without the arc.
    pub(crate) left: usize,
    /// The arc, and the shortest way back to its beginning.
    pub(crate) cycle: Vec<String>,
}

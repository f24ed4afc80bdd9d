//! Conditional nodes: the nodes of each body, and the selector that chooses among them.

use super::{
    graph::{Node, Range},
    order::{Hazards, Path, shared_by_branches},
};
use crate::backend::Conditional;

/// Nodes in the order in which they were captured.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    pub(super) nodes: Vec<Node>,
    /// Of each node, the branches that it belongs to.
    pub(super) paths: Vec<Path>,
    /// The branches that are open.
    pub(super) path: Path,
}

impl Sequence {
    pub(super) fn push(&mut self, node: Node) {
        self.nodes.push(node);
        self.paths.push(self.path.clone());
    }

    /// Returns a message if it cannot end here. With `checks_branches`, branches must not share memory that one of
    /// them writes.
    pub(super) fn check_end(&self, checks_branches: bool) -> Result<(), String> {
        if !self.path.is_empty() {
            return Err("a fork is still open".into());
        }
        match shared_by_branches(&self.nodes, &self.paths).filter(|_| checks_branches) {
            None => Ok(()),
            Some((a, b)) => Err(format!(
                "{} and {} are in different branches of a fork, and one writes what the other uses",
                self.nodes[a].name(),
                self.nodes[b].name()
            )),
        }
    }
}

/// A node that is open in a capture.
#[derive(Debug)]
pub(super) struct OpenConditional {
    pub(super) node: Conditional,
    pub(super) bodies: Vec<Sequence>,
}

/// The nodes of a body.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) nodes: Vec<Node>,
    /// In test mode: nodes run in any order that these allow.
    pub(super) hazards: Option<Hazards>,
}

/// A conditional node, ready to run.
#[derive(Debug)]
pub(super) struct ConditionalNode {
    pub(super) node: Conditional,
    pub(super) bodies: Vec<Body>,
    /// The bytes that any of its bodies reads or writes.
    reads: Vec<Range>,
    writes: Vec<Range>,
}

impl ConditionalNode {
    pub(super) fn new(open: OpenConditional, shuffle: bool) -> Self {
        let OpenConditional { node, bodies } = open;
        let (mut reads, mut writes) = (vec![node.selector.range()], Vec::new());
        for (read, written) in bodies.iter().flat_map(|body| &body.nodes).map(Node::ranges) {
            reads.extend(read);
            writes.extend(written);
        }
        let bodies = bodies
            .into_iter()
            .map(|body| Body { hazards: shuffle.then(|| Hazards::of(&body.nodes)), nodes: body.nodes });
        Self { node, bodies: bodies.collect(), reads: merged(reads), writes: merged(writes) }
    }

    pub(super) fn ranges(&self) -> (Vec<Range>, Vec<Range>) {
        (self.reads.clone(), self.writes.clone())
    }
}

/// The same bytes, in ranges that neither overlap nor touch.
fn merged(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable();
    ranges.dedup_by(|next, kept| {
        let joins = next.0 <= kept.1;
        if joins {
            kept.1 = kept.1.max(next.1);
        }
        joins
    });
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_merged_where_they_touch() {
        assert_eq!(merged(vec![(8, 12), (0, 4), (4, 6), (9, 10), (20, 21)]), [(0, 6), (8, 12), (20, 21)]);
        assert_eq!(merged(Vec::new()), []);
    }
}

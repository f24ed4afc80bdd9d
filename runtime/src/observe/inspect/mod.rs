//! What a runtime holds, as values to print, draw or store.
//!
//! - [`GraphTree`], from [`Runtime::tree`](crate::Runtime::tree): every recording, what follows what, what is
//!   alive where, and what it takes.
//! - [`Topology`], from [`Runtime::topology`](crate::Runtime::topology): one recording as the device has it,
//!   with its kernels, copies and edges.
//! - [`PlanReport`], from [`Plan::report`](crate::Plan::report): how a function is cut, and why.
//!
//! Each is a snapshot of plain fields that owns what it shows. Each prints as text, becomes Graphviz with
//! `to_dot` (the first two) and one JSON object with `to_json`; all implement `serde::Serialize`. Both of the latter
//! need the feature `serde`.

mod dot;
mod plan_report;
mod text;
mod topology;
mod tree;

pub use plan_report::{PartKind, PlanPart, PlanReport};
pub use topology::{EdgeKind, GraphEdge, GraphNode, NodeKind, Topology};
pub use tree::{
    GraphTree, OutputId, OutputPlace, TreeBlock, TreeFunction, TreeNode, TreeOutput, TreeSegment, TreeState,
    TreeWaiting,
};

/// One line of JSON.
#[cfg(feature = "serde")]
fn json(value: &impl serde::Serialize) -> String {
    match serde_json::to_string(value) {
        Ok(json) => json,
        // Serialisation fails for maps whose keys are no strings, and by I/O: there is neither.
        Err(_) => unreachable!("plain fields can always be written"),
    }
}

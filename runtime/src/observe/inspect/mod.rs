//! Snapshots of a runtime; see [`crate::inspect`].

mod dot;
mod passes;
mod text;
mod topology;
mod tree;

pub use passes::{PassMade, PassRefusal, PassRefused, PassReport};
pub use topology::{EdgeKind, GraphEdge, GraphNode, NodeKind, Topology};
pub use tree::{
    GraphTree, OutputId, OutputPlace, TreeBlock, TreeFunction, TreeOutput, TreeRecording, TreeSegment,
    TreeState, TreeWaiting,
};

/// One line of JSON.
#[cfg(feature = "serde")]
pub(crate) fn json(value: &impl serde::Serialize) -> String {
    match serde_json::to_string(value) {
        Ok(json) => json,
        // Serialisation fails for maps whose keys are not strings, and for I/O errors: there are neither.
        Err(_) => unreachable!("plain fields can always be written"),
    }
}

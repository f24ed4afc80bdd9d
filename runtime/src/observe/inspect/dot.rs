//! Graphviz.

use std::fmt::Write as _;

use super::{
    EdgeKind, GraphTree, NodeKind, Topology,
    text::{counted, operations, variant},
};

/// A quoted string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// Writing to a string cannot fail.
macro_rules! line {
    ($out:expr, $($arg:tt)*) => { writeln!($out, $($arg)*).unwrap_or_default() };
}

pub(super) fn tree(tree: &GraphTree) -> String {
    let mut out = String::from("digraph tree {\n  node [shape=box, fontname=monospace];\n");
    for (index, function) in tree.functions.iter().enumerate() {
        line!(out, "  f{index} [shape=ellipse, label={}];", quoted(&function.name));
        for root in &function.roots {
            line!(out, "  f{index} -> n{root};");
        }
    }
    if tree.recordings.iter().any(|n| n.after_eager) {
        line!(out, "  eager [shape=ellipse, style=dashed, label=\"ran without a graph\"];");
    }
    for recording in &tree.recordings {
        let mut label = format!(
            "{}: {}{}\n{}, {}\ns{} -> s{}, pool {} B",
            recording.id,
            recording.segment,
            variant(recording).map(|variant| format!("\n{variant}")).unwrap_or_default(),
            counted(recording.kernels, "kernel", "kernels"),
            counted(recording.hits as usize, "hit", "hits"),
            recording.entry,
            recording.exit,
            recording.pool_bytes
        );
        if recording.operations.iter().any(|name| name == "body:") {
            label += &format!("\nruns {}", operations(&recording.operations));
        }
        if !recording.shares_with.is_empty() {
            let others: Vec<String> = recording.shares_with.iter().map(ToString::to_string).collect();
            label += &format!("\nshares with {}", others.join(", "));
        }
        line!(out, "  n{} [label={}];", recording.id, quoted(&label));
        if recording.after_eager {
            line!(out, "  eager -> n{} [style=dashed];", recording.id);
        }
        for child in &recording.children {
            line!(out, "  n{} -> n{child};", recording.id);
        }
    }
    out + "}\n"
}

pub(super) fn topology(graph: &Topology) -> String {
    let mut out = String::from("digraph recording {\n  node [shape=box, fontname=monospace];\n");
    add_topology(&mut out, graph, "k");
    out + "}\n"
}

/// Adds the nodes, whose names begin with `k`; each body of a node is a cluster of its own, below that node.
fn add_topology(out: &mut String, graph: &Topology, k: &str) {
    for (index, node) in graph.nodes.iter().enumerate() {
        let style = if node.kind == NodeKind::Kernel { "" } else { ", style=dashed" };
        line!(out, "  {k}{index} [label={}{style}];", quoted(&node.to_string().replace(", ", "\n")));
        for (number, body) in node.bodies.iter().enumerate() {
            let inside = format!("{k}{index}b{number}_");
            line!(out, "  subgraph cluster_{inside} {{\n  label=\"body {number}\";");
            line!(out, "  {inside}begin [shape=point];");
            add_topology(out, body, &inside);
            line!(out, "  }}");
            line!(out, "  {k}{index} -> {inside}begin [style=dotted];");
        }
    }
    for edge in &graph.edges {
        let (from, to) = (edge.from, edge.to);
        match edge.kind {
            EdgeKind::Full => line!(out, "  {k}{from} -> {k}{to};"),
            EdgeKind::Programmatic => {
                let ports = format!("programmatic, port {}", edge.from_port);
                line!(out, "  {k}{from} -> {k}{to} [style=dashed, label={}];", quoted(&ports));
            }
            EdgeKind::Other(kind) => line!(out, "  {k}{from} -> {k}{to} [label=\"kind {kind}\"];"),
        }
    }
}

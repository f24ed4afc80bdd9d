//! No two modules at the root of a crate need each other, directly or through others.

mod graph;
mod scan;
mod tests;

use std::{collections::BTreeSet, fmt::Write as _, path::Path};

use graph::Graph;
use scan::{Arcs, Crate};

fn graph(arcs: &Arcs) -> Graph {
    Graph(arcs.iter().map(|(from, to)| (from.clone(), to.keys().cloned().collect())).collect())
}

/// The shortest cycle among the modules at the root of a crate, with a place that makes each of its arcs.
fn check(name: &str, arcs: &Arcs) -> String {
    let Some(cycle) = graph(arcs).shortest_cycle() else { return String::new() };
    let mut wrong = format!("{name}: modules at the root need each other:\n");
    for pair in cycle.windows(2) {
        let _ = writeln!(wrong, "  `{}` needs `{}`: {}", pair[0], pair[1], arcs[&pair[0]][&pair[1]]);
    }
    wrong
}

/// Counts of a crate's structure: `cargo test -p ui-tests --test modules -- --nocapture` shows them.
fn report(name: &str, roots: &Arcs, files: &Arcs) {
    let (roots, all) = (graph(roots), graph(files));
    let cycles = roots.components();
    let largest = all.components().into_iter().next().unwrap_or_default();
    println!(
        "{name}: {} modules at the root, {} of them in cycles; {} files, {} arcs between files, {} files in the \
         largest set in which each needs every other",
        roots.0.len(),
        cycles.iter().map(BTreeSet::len).sum::<usize>(),
        all.0.len(),
        all.0.values().map(BTreeSet::len).sum::<usize>(),
        largest.len(),
    );
    for modules in cycles {
        println!("  cycle at the root: {}", modules.into_iter().collect::<Vec<_>>().join(", "));
    }
    println!("  largest set of files: {}", largest.into_iter().collect::<Vec<_>>().join(", "));
}

#[test]
fn no_cycle_at_the_root_of_a_crate() {
    let mut wrong = String::new();
    for name in ["runtime", "macros"] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        let read = Crate::read(&source);
        let roots = read.roots();
        report(name, &roots, &read.files());
        wrong += &check(name, &roots);
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

//! No two modules at the root of a crate need each other, directly or through others.

mod allowed;
mod graph;
mod scan;
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::Path,
};

use graph::Graph;
use scan::Crate;

/// Files, or modules at the root, and for each those that it names, with a place where it does.
type Arcs = BTreeMap<String, BTreeMap<String, String>>;

fn graph(arcs: &Arcs) -> Graph {
    Graph(arcs.iter().map(|(from, to)| (from.clone(), to.keys().cloned().collect())).collect())
}

/// The module at the root that a file belongs to.
fn root_of(file: &str) -> &str {
    file.split("::").next().unwrap_or_default()
}

/// Arcs between modules at the root. The root itself only declares and re-exports.
fn roots(files: &Arcs) -> Arcs {
    let mut arcs = Arcs::new();
    for (file, to) in files.iter().filter(|(file, _)| !file.is_empty()) {
        let from = arcs.entry(root_of(file).to_owned()).or_default();
        for (other, path) in to {
            if !other.is_empty() && root_of(other) != root_of(file) {
                from.entry(root_of(other).to_owned()).or_insert_with(|| format!("`{path}` in `{file}`"));
            }
        }
    }
    arcs
}

/// What is wrong with a crate in whose root these arcs may close cycles, and no others.
fn check(name: &str, files: &Arcs, allowed: &[(&str, &str)]) -> String {
    let arcs = roots(files);
    let whole = graph(&arcs);
    let mut rest = whole.clone();
    let mut wrong = String::new();
    for (from, to) in allowed {
        if !whole.has(from, to) || whole.path(to, from).is_none() {
            let _ = writeln!(
                wrong,
                "{name}: `{from}` -> `{to}` closes no cycle any more: remove it from the list"
            );
        }
        rest.remove(from, to);
    }
    if let Some(cycle) = rest.shortest_cycle() {
        let _ = writeln!(wrong, "{name}: modules at the root need each other:");
        for pair in cycle.windows(2) {
            let _ = writeln!(wrong, "  `{}` needs `{}`: {}", pair[0], pair[1], arcs[&pair[0]][&pair[1]]);
        }
    }
    wrong
}

/// Counts of a crate's structure: `cargo test -p ui-tests --test modules -- --nocapture` shows them.
fn report(name: &str, files: &Arcs) {
    let (roots, all) = (graph(&roots(files)), graph(files));
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
    for (name, allowed) in [("runtime", allowed::RUNTIME), ("macros", allowed::MACROS)] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        let files = Crate::read(&source).files();
        report(name, &files);
        wrong += &check(name, &files, allowed);
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

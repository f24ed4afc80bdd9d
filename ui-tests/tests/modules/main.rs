//! No two modules at the root of a crate need each other, directly or through others.

mod graph;
mod scan;
mod tests;

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

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
    println!("  its files, and where each names another of them:");
    for (file, needed) in files.iter().filter(|(file, _)| largest.contains(*file)) {
        for (other, place) in needed.iter().filter(|(other, _)| largest.contains(*other)) {
            println!("    {file} -> {other}: {place}");
        }
    }
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn no_cycle_at_the_root_of_a_crate() {
    let mut wrong = String::new();
    for name in ["runtime", "macros"] {
        let read = Crate::read(&top().join(name).join("src"));
        let roots = read.roots();
        report(name, &roots, &read.files());
        wrong += &check(name, &roots);
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// What is wrong with a list of modules in which each may name those before it.
fn check_order(listed: &[&str], arcs: &Arcs) -> String {
    let mut wrong = String::new();
    for module in arcs.keys().filter(|module| !listed.contains(&module.as_str())) {
        let _ = writeln!(wrong, "`{module}` is not listed");
    }
    for (at, module) in listed.iter().enumerate() {
        let Some(needed) = arcs.get(*module) else {
            let _ = writeln!(wrong, "`{module}` is listed, and is not there");
            continue;
        };
        for (other, place) in needed.iter().filter(|(other, _)| !listed[..at].contains(&other.as_str())) {
            let _ = writeln!(wrong, "`{module}` stands above `{other}`, which it needs: {place}");
        }
    }
    wrong
}

#[test]
fn the_map_of_folders_is_true() {
    let page = fs::read_to_string(top().join("docs/ARCHITECTURE.md")).unwrap();
    let table = page.split_once("| `runtime/src` | Is |").unwrap().1.split_once("\n\n").unwrap().0;
    let rows = table.lines().filter_map(|row| row.strip_prefix("| `")?.split_once('`'));
    let listed: Vec<&str> =
        rows.map(|(name, _)| name.trim_end_matches('/').trim_end_matches(".rs")).collect();
    let wrong = check_order(&listed, &Crate::read(&top().join("runtime/src")).roots());
    assert!(wrong.is_empty(), "docs/ARCHITECTURE.md:\n{wrong}");
}

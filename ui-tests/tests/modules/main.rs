//! No two modules at the root of a crate need each other, directly or through others, and only few files do.

mod graph;
mod methods;
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

/// The arcs of a way, with a place that makes each of them.
fn shown(way: &[String], arcs: &Arcs) -> String {
    let mut shown = String::new();
    for pair in way.windows(2) {
        let _ = writeln!(shown, "  `{}` needs `{}`: {}", pair[0], pair[1], arcs[&pair[0]][&pair[1]]);
    }
    shown
}

/// The shortest cycle among the modules at the root of a crate.
fn check(name: &str, arcs: &Arcs) -> String {
    let Some(cycle) = graph(arcs).shortest_cycle() else { return String::new() };
    format!("{name}: modules at the root need each other:\n{}", shown(&cycle, arcs))
}

/// The most files that may all need each other, directly or through others. Below the root, a few files that work
/// closely together may: a type and the parts of its implementation.
const MOST_FILES: usize = 12;

/// If more than `bound` files all need each other: the shortest cycle with the arc that does most to make them so many.
fn check_files(name: &str, arcs: &Arcs, bound: usize) -> String {
    let Some(worst) = graph(arcs).worst_arc(bound) else { return String::new() };
    format!(
        "{name}: {} files need each other, and at most {bound} may; there would be {} without the first of:\n{}",
        worst.size,
        worst.left,
        shown(&worst.cycle, arcs)
    )
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

/// Both crates by name, and what they name of each other.
fn crates() -> [(&'static str, Crate); 2] {
    ["runtime", "macros"].map(|name| (name, Crate::read(&top().join(name).join("src"))))
}

#[test]
fn no_cycle_at_the_root_of_a_crate() {
    let mut wrong = String::new();
    for (name, read) in crates() {
        let roots = read.roots();
        report(name, &roots, &read.files());
        wrong += &check(name, &roots);
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn few_files_need_each_other() {
    let wrong: String =
        crates().iter().map(|(name, read)| check_files(name, &read.files(), MOST_FILES)).collect();
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

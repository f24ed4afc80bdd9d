//! `docs/PEER_TESTS.md` and `docs/REVIEW_11.md` name tests: each is there, and each row of the collection, or point of the review,
//! has its line.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The collection's numbers go to [`LAST`], without these.
const GAPS: [u32; 15] = [7, 9, 13, 20, 34, 50, 53, 66, 76, 79, 88, 99, 106, 107, 111];
const LAST: u32 = 120;

/// Folders that the table shortens.
const SHORT: [(&str, &str); 15] = [
    ("core/", "runtime/tests/core/"),
    ("control/", "runtime/tests/control/"),
    ("sizes/", "runtime/tests/sizes/"),
    ("ops/", "runtime/tests/ops/"),
    ("macros/", "macros/src/"),
    ("examples/", "examples/tests/all/"),
    ("uitests/", "ui-tests/tests/"),
    ("dispatch/", "runtime/tests/dispatch/"),
    ("limits/", "runtime/tests/limits/"),
    ("graphs/", "runtime/tests/graphs/"),
    ("partition/", "runtime/tests/partition/"),
    ("gpu/", "runtime/tests/gpu/"),
    ("random_programs/", "runtime/tests/random_programs/"),
    ("src/", "runtime/src/"),
    ("loom/", "loom-tests/src/"),
];

/// Rows that this design can have and that are not implemented: calling them impossible would hide work.
const NOT_IMPLEMENTED: [u32; 8] = [48, 49, 54, 90, 92, 98, 100, 101];

const STATES: [&str; 4] = ["tested", "partly", "not here", "open"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

struct Row {
    state: String,
    text: String,
}

/// The rows by number.
fn rows(table: &str) -> BTreeMap<u32, Row> {
    let mut rows = BTreeMap::new();
    for line in table.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let Some(number) = cells.get(1).and_then(|cell| cell.parse().ok()) else { continue };
        assert_eq!(cells.len(), 6, "row {number} has four cells: {line}");
        assert!(!cells[2].is_empty(), "row {number} says what it is");
        let row = Row { state: cells[3].into(), text: cells[4].into() };
        assert!(rows.insert(number, row).is_none(), "row {number} is there twice");
    }
    rows
}

/// What stands between back quotes and is a test.
fn tests(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|q| q.contains("::") || q.starts_with("ui:")).collect()
}

/// Says what is wrong with one test of the table, if anything is.
fn missing(test: &str) -> Option<String> {
    if let Some(file) = test.strip_prefix("ui:pass/") {
        let file = root().join("ui-tests/tests/ui/pass").join(file);
        return (!file.is_file()).then(|| format!("{} is not there", file.display()));
    }
    if let Some(file) = test.strip_prefix("ui:") {
        let file = root().join("ui-tests/tests/ui/fail").join(file.strip_prefix("fail/").unwrap_or(file));
        let gone = [file.clone(), file.with_extension("stderr")].into_iter().find(|f| !f.is_file())?;
        return Some(format!("{} is not there", gone.display()));
    }
    let (file, function) = test.split_once("::")?;
    let long = SHORT.iter().find_map(|(short, long)| Some(format!("{long}{}", file.strip_prefix(short)?)));
    let Some(long) = long else { return Some(format!("{file} is in none of the folders")) };
    let Ok(source) = fs::read_to_string(root().join(&long)) else {
        return Some(format!("{long} is not there"));
    };
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let at = lines.iter().position(|line| line.starts_with(&format!("fn {function}(")));
    let Some(at) = at else { return Some(format!("{long} has no function `{function}`")) };
    // Attributes and documentation stand above it.
    let above = lines[..at].iter().rev().take_while(|l| l.starts_with("#[") || l.starts_with("//"));
    let marked = above.into_iter().any(|line| *line == "#[test]");
    (!marked).then(|| format!("`{function}` of {long} is no test"))
}

#[test]
fn every_row_is_there_and_names_tests_that_exist() {
    let table = fs::read_to_string(root().join("docs/PEER_TESTS.md")).unwrap();
    let rows = rows(&table);
    let expected: BTreeSet<u32> = (1..=LAST).filter(|n| !GAPS.contains(n)).collect();
    assert_eq!(rows.keys().copied().collect::<BTreeSet<_>>(), expected);
    let mut wrong = Vec::new();
    for (number, Row { state, text }) in &rows {
        let tests = tests(text);
        if !STATES.contains(&state.as_str()) {
            wrong.push(format!("row {number}: `{state}` is no state"));
        }
        if matches!(state.as_str(), "tested" | "partly") && tests.is_empty() {
            wrong.push(format!("row {number} is {state}, and names no test"));
        }
        if NOT_IMPLEMENTED.contains(number) && state == "not here" {
            wrong.push(format!("row {number} is possible here: `open` until a test does it"));
        }
        if text.is_empty() {
            wrong.push(format!("row {number} neither names a test nor says why not"));
        }
        let missing = tests.into_iter().filter_map(missing);
        wrong.extend(missing.map(|reason| format!("row {number}: {reason}")));
    }
    assert!(wrong.is_empty(), "docs/PEER_TESTS.md:\n{}", wrong.join("\n"));
    let count = |state: &str| rows.values().filter(|row| row.state == state).count();
    println!("{} rows: {:?}", rows.len(), STATES.map(|state| (state, count(state))));
}

/// The points of the review, which are the headings of its page.
const POINTS: u32 = 27;

/// The text of each point, by number.
fn points(page: &str) -> BTreeMap<u32, &str> {
    let sections = page.split("\n### ").skip(1);
    // Until the next chapter.
    let sections = sections.map(|section| section.split("\n## ").next().unwrap_or_default());
    sections.filter_map(|section| Some((section.split_once('.')?.0.parse().ok()?, section))).collect()
}

#[test]
fn every_point_of_the_review_is_answered() {
    let page = fs::read_to_string(root().join("docs/REVIEW_11.md")).unwrap();
    let points = points(&page);
    assert_eq!(points.keys().copied().collect::<Vec<_>>(), (1..=POINTS).collect::<Vec<_>>());
    let mut wrong = Vec::new();
    for (number, text) in &points {
        // The rest are names of our API.
        let named: Vec<&str> =
            tests(text).into_iter().filter(|t| t.starts_with("ui:") || t.contains(".rs::")).collect();
        if named.is_empty() && !text.contains("docs/BENCHMARKS.md") {
            wrong.push(format!("point {number} names neither a test nor the page of the figures"));
        }
        wrong.extend(named.into_iter().filter_map(missing).map(|reason| format!("point {number}: {reason}")));
    }
    assert!(wrong.is_empty(), "docs/REVIEW_11.md:\n{}", wrong.join("\n"));
}

#[test]
fn what_is_not_there_is_found() {
    assert_eq!(missing("core/tree/walk.rs::random_walks"), None);
    for test in [
        "core/tree/walk.rs::no_such_test",
        "core/tree/walk.rs::script",
        "core/nowhere.rs::random_walks",
        "elsewhere/walk.rs::random_walks",
        "ui:lifetimes/nothing.rs",
        "ui:pass/nothing.rs",
    ] {
        assert!(missing(test).is_some(), "{test}");
    }
}

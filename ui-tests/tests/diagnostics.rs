//! `docs/diagnostics.md` says what the macro does: a section for every code of the catalogue, with a program of
//! the fail suite, the error that is pinned for it, and a program of the pass suite.
//!
//! `BLESS=1 cargo test -p ui-tests --test diagnostics` writes everything but the prose anew.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

#[path = "../../macros/src/diag/catalogue.rs"]
mod catalogue;

use catalogue::{ALL, Entry, Kind};

/// rustc words these itself, so no code can stand in them.
const RUSTC: [&str; 6] = ["G068", "G100", "G101", "G102", "G103", "G104"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn ui() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The page: what stands before the first section, and the sections by code.
struct Page {
    head: String,
    sections: Vec<Section>,
}

struct Section {
    code: String,
    /// What a person wrote.
    prose: String,
    /// Program of the fail suite, such as `scalars/bare`.
    wrong: String,
}

impl Page {
    fn read() -> (String, Self) {
        let text = read(root().join("docs/diagnostics.md"));
        let (head, rest) = text.split_once("\n## G").expect("sections");
        let sections = rest.split("\n## G").map(|section| {
            let (heading, body) = section.split_once('\n').expect("a section has a body");
            let (prose, rest) = body.split_once("\nCaught by ").expect("every section says what catches it");
            let wrong =
                rest.split_once("`fail/").and_then(|(_, r)| r.split_once(".rs`")).expect("a program").0;
            Section {
                code: format!("G{}", heading.split(' ').next().expect("a code")),
                prose: prose.trim().to_owned(),
                wrong: wrong.to_owned(),
            }
        });
        let page = Self { head: head.to_owned(), sections: sections.collect() };
        (text, page)
    }

    fn render(&self) -> String {
        let mut text = self.head.clone();
        let right = right_programs();
        for section in &self.sections {
            let entry = entry(&section.code);
            let Section { code, prose, wrong } = section;
            write!(text, "\n## {code} · {}\n\n{prose}\n\n", entry.title).unwrap();
            writeln!(text, "Caught by {}\n", caught_by(&entry)).unwrap();
            writeln!(
                text,
                "Wrong (`fail/{wrong}.rs`):\n\n```rust\n{}\n```\n",
                program(&ui().join(format!("fail/{wrong}.rs")))
            )
            .unwrap();
            writeln!(text, "```text\n{}\n```\n", error(section)).unwrap();
            let right = right.get(code).unwrap_or_else(|| panic!("no right program for {code}"));
            writeln!(text, "Right:\n\n```rust\n{right}\n```").unwrap();
        }
        text
    }
}

fn entry(code: &str) -> Entry {
    let found = ALL.iter().map(|c| c.entry()).find(|e| e.code == code);
    found.unwrap_or_else(|| panic!("{code} is not in the catalogue"))
}

fn caught_by(entry: &Entry) -> String {
    let who = match entry.kind {
        Kind::Rule => "the macro, as a rule: the form has no meaning, so there is nothing to circumvent.",
        Kind::Lint => "the macro, as a lint on tokens, which an alias or a helper can circumvent.",
        Kind::Type => "the types, even through aliases, generics and helpers.",
    };
    if entry.net.is_empty() { who.to_owned() } else { format!("{who} Beyond that, {}.", entry.net) }
}

/// A program without what all programs have.
fn program(path: &Path) -> String {
    let text = read(path);
    let lines = text.lines().filter(|l| {
        !l.starts_with("//!")
            && *l != "use graphable::prelude::*;"
            && *l != "fn main() {}"
            && *l != "#[rustfmt::skip]"
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut text = text.trim().to_owned();
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    text
}

/// The first pinned error of a section's program that is about its code.
fn error(section: &Section) -> String {
    let path = ui().join(format!("fail/{}.stderr", section.wrong));
    let text = read(&path);
    let marker = format!("[{}]", section.code);
    let mut errors = text
        .split("\n\nerror")
        .enumerate()
        .map(|(i, e)| if i == 0 { e.to_owned() } else { format!("error{e}") });
    let any = RUSTC.contains(&section.code.as_str());
    let found = errors.find(|e| any || e.contains(&marker));
    let found = found.unwrap_or_else(|| panic!("{} shows no {}", path.display(), section.code));
    found.split("\n\nwarning").next().unwrap_or_default().trim_end().to_owned()
}

/// Bodies of the modules `g001` and so on in `pass/right_*.rs`.
fn right_programs() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for file in fs::read_dir(ui().join("pass")).unwrap() {
        let path = file.unwrap().path();
        if !path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("right_")) {
            continue;
        }
        for module in read(&path).split("\nmod ").skip(1) {
            let (name, body) = module.split_once(" {\n").expect("a module");
            let body = body.split("\n}").next().expect("an end");
            let lines = body.lines().map(|l| l.strip_prefix("    ").unwrap_or(l));
            let lines: Vec<&str> = lines.filter(|l| *l != "use graphable::prelude::*;").collect();
            let before = found.insert(name.to_uppercase(), lines.join("\n").trim().to_owned());
            assert!(before.is_none(), "two right programs for {name}");
        }
    }
    found
}

#[test]
fn the_page_is_in_step() {
    let (text, page) = Page::read();
    let listed: Vec<&str> = page.sections.iter().map(|s| s.code.as_str()).collect();
    let known: Vec<&str> = ALL.iter().map(|c| c.entry().code).collect();
    assert_eq!(listed, known, "docs/diagnostics.md has one section per code, in order");
    for section in &page.sections {
        assert!(section.prose.len() > 30, "{}: what is it, and why?", section.code);
    }
    let rendered = page.render();
    if std::env::var_os("BLESS").is_some() {
        fs::write(root().join("docs/diagnostics.md"), rendered).unwrap();
    } else if let Some((page, files)) = text.lines().zip(rendered.lines()).find(|(a, b)| a != b) {
        panic!(
            "docs/diagnostics.md says\n  {page}\nthe tests say\n  {files}\nrun with BLESS=1, and read what it wrote"
        );
    } else {
        assert_eq!(text.len(), rendered.len(), "run with BLESS=1");
    }
}

#[test]
fn every_pinned_code_is_in_the_catalogue() {
    let mut count = 0;
    for class in fs::read_dir(ui().join("fail")).unwrap() {
        for file in fs::read_dir(class.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|e| e == "stderr") {
                for part in read(&path).split("[G").skip(1) {
                    let code = part.split(']').next().expect("a closing bracket");
                    assert_eq!(entry(&format!("G{code}")).code.len(), 4, "{}", path.display());
                    count += 1;
                }
                // Ours has no code of rustc's, and so always one of ours.
                for line in read(&path).lines().filter(|l| l.starts_with("error: ")) {
                    let ours = line.starts_with("error: [G");
                    let parser = path.ends_with("signatures/half_typed.stderr");
                    // Nothing of ours has seen the function.
                    let parser = parser || path.ends_with("device/not_graphable.stderr");
                    assert!(ours || parser, "{}: {line}", path.display());
                }
            }
        }
    }
    assert!(count > 100, "only {count} errors with a code");
}

#[test]
fn a_lint_names_its_net_and_a_type_guarantee_needs_none() {
    let exempt = ["G081", "G082"];
    for code in ALL.iter().map(|c| c.entry()) {
        let needs = code.kind == Kind::Lint && !exempt.contains(&code.code);
        assert!(!needs || !code.net.is_empty(), "{}: what catches it when the lint does not?", code.code);
        assert!(code.kind != Kind::Rule || code.net.is_empty(), "{}: nothing gets past a rule", code.code);
    }
}

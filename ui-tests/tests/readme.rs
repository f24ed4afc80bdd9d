//! What README.md shows is what there is.

#[allow(unreachable_pub, reason = "an example's items are public where it stands")]
#[path = "../../examples/src/bin/quickstart.rs"]
mod quickstart;

const README: &str = include_str!("../../README.md");

/// The blocks of one language.
fn blocks(language: &str) -> impl Iterator<Item = &str> {
    README.split("\n```").skip(1).step_by(2).filter_map(move |b| b.strip_prefix(language)?.strip_prefix('\n'))
}

#[test]
fn the_model_is_the_quickstart() {
    let file = include_str!("../../examples/src/bin/quickstart.rs");
    let code = blocks("rust").next().unwrap();
    assert_eq!(file.split_once("\n\n").unwrap().1.trim_end(), code.trim_end());
    quickstart::main().unwrap();
}

#[test]
fn the_plan_is_the_quickstarts() {
    // Compiled from here, the file has another path.
    let plan = quickstart::ScoreGraph::PLAN.to_string();
    let (head, items) = plan.split_once('\n').unwrap();
    let counts = head.rsplit_once("): ").unwrap().1;
    let shown = blocks("text").find(|b| b.contains("quickstart.rs): ")).expect("a plan in README.md");
    assert!(
        shown.contains(counts) && shown.contains(items.trim_end()),
        "README.md shows\n{shown}\nit is\n{plan}"
    );
}

#[test]
fn every_file_it_links_is_there() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let links = README.split("](").skip(1).map(|l| l.split(')').next().unwrap());
    let mut count = 0;
    for link in links {
        // A link within the page names a heading.
        let (file, heading) = link.split_once('#').unwrap_or((link, ""));
        let headings = || README.lines().filter_map(|l| l.strip_prefix("## "));
        let anchor = |h: &str| h.to_lowercase().replace(' ', "-");
        let there = if file.is_empty() {
            headings().any(|h| anchor(h) == heading)
        } else {
            root.join(file).is_file()
        };
        assert!(there, "README.md links {link}");
        // On the package's page there is nothing else: its `include` has the same folder.
        assert!(
            file.is_empty() || file.starts_with("docs/"),
            "README.md links {link}, which is not in the package; name it in a code span"
        );
        count += 1;
    }
    assert!(count >= 4, "{count} links");
}

/// The number in README.md before these words.
fn number_before(words: &str) -> usize {
    let (before, _) = README.split_once(words).unwrap_or_else(|| panic!("README.md has no {words:?}"));
    let number = before.trim_end().rsplit(' ').next().unwrap();
    number.parse().unwrap_or_else(|_| panic!("{number:?} before {words:?} is not a number"))
}

#[test]
fn the_guide_has_as_many_pages_as_it_says() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let pages = names.filter(|name| name.to_string_lossy().ends_with(".md") && name != "README.md");
    assert_eq!(number_before("short pages"), pages.count());
}

/// "About 230" stands for 225 to 235 functions of `ops`, as the pinned surface lists them.
#[test]
fn it_has_about_as_many_operations_as_it_says() {
    let surface = include_str!("public_api/graphable.txt");
    let (_, ops) = surface.split_once("\n// graphable::ops\n").expect("the module");
    let ops = ops.split("\n// graphable::").next().unwrap();
    let names = ops.lines().filter_map(|line| {
        let name = line.strip_prefix("pub fn ").or_else(|| line.strip_prefix("pub use "))?;
        Some(name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap())
    });
    let names: std::collections::BTreeSet<_> =
        names.filter(|name| name.starts_with(char::is_lowercase)).collect();
    let shown = number_before(", for inference");
    assert!(
        shown.abs_diff(names.len()) <= 5,
        "README.md says about {shown} operations, there are {}",
        names.len()
    );
}

/// The errors of `fail/several_errors/readme.rs`, as README.md shows them.
#[test]
fn the_errors_are_the_pinned_ones() {
    let pinned = include_str!("ui/fail/several_errors/readme.stderr");
    let expected = pinned.replace("tests/ui/fail/several_errors/readme.rs", "src/decode.rs");
    assert_eq!(expected.matches("error: [G").count(), 3, "{expected}");
    let shown = blocks("text").find(|b| b.trim_start().starts_with("error")).expect("errors in README.md");
    assert_eq!(shown.trim(), expected.trim(), "README.md shows\n{shown}\nit is\n{expected}");
}

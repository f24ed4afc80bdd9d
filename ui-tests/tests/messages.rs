//! What every pinned message must be: in the user's own words, with a way out, on one screen.
//!
//! Messages that are not so yet stand in [`NOT_YET`], each with its reason. The list only shrinks: an entry
//! that is no longer needed fails the test as well.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// A screen.
const MOST_LINES: usize = 30;

/// What is no concern of the user: names of generated code, and paths of ours or of this machine.
const INTERNAL: [&str; 23] = [
    "__",
    "core::",
    "`Piecewise<",
    "(Piecewise<",
    "LiveInRef",
    "Site",
    "LiveIn",
    "LiveOut",
    "EagerTensors",
    "OutputList",
    "SegmentOutputs",
    "PiecewiseArgument",
    "Leaving<",
    "UserError::",
    "CaptureFailed",
    "TryError",
    "/work",
    "/root",
    "/home",
    "$CARGO",
    "$RUST",
    "$WORKSPACE",
    "$DIR",
];

/// What rustc adds by itself; it does not say what to write.
const TRAIL: [&str; 9] = [
    "the trait `",
    "the following ",
    "required for ",
    "required by ",
    "redundant requirement",
    "this error originates",
    "the trait bound ",
    "expected reference",
    "in format strings you may be able to use",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    /// No internal name or path.
    OwnWords,
    /// Every error has a help.
    Help,
    /// No error is longer than a screen.
    Screen,
}
use Rule::{Help, OwnWords, Screen};

const RUSTC: &str = "rustc's own error, on a type without a trait of ours that could say more";
const BORROW: &str = "rustc's borrow error";
const BOUND: &str = "rustc shows the bound of the method that was called, in our sources";

/// File, rule, and why it is broken.
const NOT_YET: &[(&str, Rule, &str)] = &[
    (
        "fail/device/fields.stderr",
        Help,
        "only rustc sees that a method, a pattern or a macro changes a field; it names the reference in front of it",
    ),
    (
        "fail/device/hidden_changes.stderr",
        Help,
        "only rustc sees that a method changes its receiver; it names the closure around the body",
    ),
    (
        "fail/device/inside.stderr",
        Help,
        "rustc's own errors on names and methods, which are no different in a body",
    ),
    ("fail/device/limits_of_constants.stderr", Help, "rustc's own errors on the value of a constant"),
    ("fail/device/stale.stderr", Help, BORROW),
    ("fail/host_reads/in_a_helper.stderr", Help, RUSTC),
    (
        "fail/kernels/calls_plain_function.stderr",
        Help,
        "rustc's own error on a name, before a type has a say",
    ),
    ("fail/kernels/compared_tuples.stderr", Help, RUSTC),
    ("fail/kernels/compared_tuples.stderr", OwnWords, "rustc shows the function that asks for one value"),
    ("fail/lifetimes/after_its_step.stderr", Help, BORROW),
    ("fail/lifetimes/borrowed_across_a_boundary.stderr", Help, BORROW),
    ("fail/lifetimes/kept_across_steps.stderr", Help, BORROW),
    ("fail/lifetimes/two_steps.stderr", Help, BORROW),
    ("fail/mutation/no_state.stderr", OwnWords, "rustc shows the signature that asks for `State`"),
    ("fail/operations/borrowed_handle.stderr", Help, BORROW),
    ("fail/operations/capturable_regions.stderr", OwnWords, BOUND),
    ("fail/operations/counter_in_a_closure.stderr", OwnWords, BOUND),
    ("fail/operations/eager_op_in_a_segment.stderr", OwnWords, BOUND),
    ("fail/operations/library_on_one_thread.stderr", OwnWords, BOUND),
    (
        "fail/operations/number_of_outputs.stderr",
        Help,
        "rustc's own error on a method, before a trait of ours has a say",
    ),
    ("fail/operations/operands.stderr", OwnWords, BOUND),
    ("fail/operations/scalars.stderr", OwnWords, BOUND),
    ("fail/operations/slices.stderr", Help, BORROW),
    ("fail/signatures/half_typed.stderr", Help, "rustc's own syntax error, at the place of ours"),
];

/// What is wrong with the errors of one file, rule by rule.
fn faults(text: &str) -> Vec<(Rule, String)> {
    let mut faults = Vec::new();
    for error in errors(text) {
        let first = error.lines().next().unwrap_or_default();
        let is_internal = |line: &&str| {
            let text = without_arrows(line);
            INTERNAL.iter().any(|internal| text.contains(internal))
        };
        for line in error.lines().filter(is_internal) {
            faults.push((OwnWords, line.trim().to_owned()));
        }
        // Those of the macro have a code of ours and none of rustc's.
        let of_the_macro = first.starts_with("error: [G");
        if !error.lines().any(helps) || of_the_macro && !error.contains("help: ") {
            faults.push((Help, first.to_owned()));
        }
        let lines = error.trim_end().lines().count();
        if lines > MOST_LINES {
            faults.push((Screen, format!("{lines} lines: {first}")));
        }
    }
    faults
}

/// A line without the underscores that join the ends of a span, which are no part of a name.
fn without_arrows(line: &str) -> String {
    let mut text = line.to_owned();
    while let Some(at) = text.find("|_") {
        text.remove(at + 1);
    }
    while let Some(at) = text.find("_|").or_else(|| text.find("_^")) {
        text.remove(at);
    }
    text
}

/// The errors and warnings of a file.
fn errors(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in text.lines() {
        let starts = ["error:", "error[", "warning:", "warning["].iter().any(|s| line.starts_with(s));
        if starts || all.is_empty() {
            all.push(String::new());
        }
        let last = all.len() - 1;
        all[last].push_str(line);
        all[last].push('\n');
    }
    all
}

/// Whether a line says what to do. `#[diagnostic::on_unimplemented]` has notes only, no help.
fn helps(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches(['=', '|', ' ']);
    let said = line.strip_prefix("help: ").or_else(|| line.strip_prefix("note: "));
    said.is_some_and(|said| {
        !TRAIL.iter().any(|trail| said.starts_with(trail)) && !said.contains("` does not implement `")
    })
}

fn messages(folder: &Path, found: &mut Vec<PathBuf>) {
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            messages(&path, found);
        } else if path.extension().is_some_and(|e| e == "stderr") {
            found.push(path);
        }
    }
}

#[test]
fn every_message_is_one_to_show() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let mut files = Vec::new();
    messages(&root, &mut files);
    assert!(files.len() >= 100, "only {} pinned messages", files.len());
    files.sort();
    let mut wrong = String::new();
    let mut broken = BTreeSet::new();
    for path in files {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        for (rule, what) in faults(&fs::read_to_string(&path).unwrap()) {
            if !NOT_YET.iter().any(|(file, known, _)| *file == name && *known == rule) {
                wrong += &format!("{name}: {rule:?}: {what}\n");
            }
            broken.insert((name.clone(), rule));
        }
    }
    for (file, rule, reason) in NOT_YET {
        assert!(!reason.is_empty(), "{file}: an exception needs a reason");
        if !broken.contains(&((*file).to_owned(), *rule)) {
            wrong += &format!("{file}: {rule:?} holds now; remove the exception\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn programs_and_messages_are_pairs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui/fail");
    for class in fs::read_dir(root).unwrap() {
        for file in fs::read_dir(class.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let is_program = path.extension().is_some_and(|e| e == "rs");
            let other = path.with_extension(if is_program { "stderr" } else { "rs" });
            assert!(other.exists(), "{} has no {}", path.display(), other.display());
        }
    }
}

#[test]
fn the_rules_see_what_they_are_for() {
    let rules = |text: &str| -> Vec<Rule> { faults(text).into_iter().map(|(rule, _)| rule).collect() };
    let good =
        "error: `n` is a host value\n\n  help: write `#[key] n: usize`\n --> tests/ui/fail/a/b.rs:1:1\n";
    assert_eq!(rules(good), []);
    assert_eq!(rules(&format!("{good}\nerror: another\n")), [Help]);
    assert_eq!(rules(&good.replace("`n`", "`__n`")), [OwnWords]);
    assert_eq!(rules(&format!("{good}   |  _____^\n   | |_____|\n")), []);
    assert_eq!(rules(&good.replace("tests/ui", "/work/ui-tests/tests/ui")), [OwnWords]);
    assert_eq!(rules(&format!("{good}{}", "   |\n".repeat(MOST_LINES))), [Screen]);
    assert_eq!(
        rules("error[E0277]: no\n   = help: the trait `ConfigValue` is not implemented for `u8`\n"),
        [Help]
    );
    assert_eq!(rules("error: [G001] no\n   = note: mark its `let` with `#[key]`\n"), [Help]);
    assert_eq!(rules("error[E0277]: no\n   = note: mark its `let` with `#[key]`\n"), []);
}

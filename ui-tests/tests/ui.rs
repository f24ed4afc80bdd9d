//! What `#[graphable]` refuses, with its messages. What it accepts is in `accepted.rs`.
//!
//! rustc checks every program, in one of two ways. Programs that the macro alone refuses, by their pins, are modules of
//! one crate, the test target `refused`: one call of rustc reports all their errors, which are compared file by file.
//! Programs of which rustc has something to say, and new ones, are crates of their own, by trybuild. Only programs
//! that must fail: trybuild then checks all of them by one call of cargo, without generating code.
//!
//! `TRYBUILD=overwrite cargo test -p ui-tests --test ui` pins the messages anew; read what it wrote.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

const FOLDER: &str = "tests/ui/fail";

/// What `refused.rs` includes.
const MODULES: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/refused.rs");

/// The programs: those that the macro alone refuses, and the others.
fn programs() -> (Vec<PathBuf>, Vec<PathBuf>) {
    let mut files = Vec::new();
    for class in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER)).unwrap() {
        let class = class.unwrap().path();
        files.extend(fs::read_dir(class).unwrap().map(|file| file.unwrap().path()));
    }
    files.retain(|file| file.extension().is_some_and(|e| e == "rs"));
    files.sort();
    files.into_iter().partition(|file| {
        fs::read_to_string(file.with_extension("stderr")).is_ok_and(|pin| is_of_the_macro_alone(&pin))
    })
}

/// Whether every message has a code of ours and none of rustc's.
fn is_of_the_macro_alone(pin: &str) -> bool {
    let mut heads = pin.lines().filter(|line| line.starts_with("error") || line.starts_with("warning"));
    heads.clone().next().is_some() && heads.all(|head| head.starts_with("error: [G"))
}

#[test]
fn rustc_has_something_to_say() {
    let (_, programs) = programs();
    let t = trybuild::TestCases::new();
    for program in programs {
        t.compile_fail(program.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap());
    }
}

#[test]
fn the_macro_alone_refuses() {
    let (programs, _) = programs();
    assert!(programs.len() >= 90, "only {} programs", programs.len());
    fs::write(MODULES, modules(&programs)).unwrap();
    let mut said = said();
    let mut wrong = String::new();
    for program in &programs {
        let pin = program.with_extension("stderr");
        let pinned = fs::read_to_string(&pin).unwrap();
        let mut errors = said.remove(program).unwrap_or_default();
        errors.sort();
        let got: Vec<String> = errors.into_iter().map(|error| error.text).collect();
        // Which of two functions is expanded first depends on what is beside them.
        if sorted(&got) == sorted(&split(&pinned)) {
            continue;
        }
        let got = got.join("\n\n") + "\n";
        if env::var("TRYBUILD").is_ok_and(|how| how == "overwrite") {
            fs::write(&pin, got).unwrap();
        } else {
            writeln!(wrong, "{}: pinned\n{pinned}\nrustc says\n{got}", program.display()).unwrap();
        }
    }
    for (file, errors) in said {
        writeln!(wrong, "{}: no program, but rustc says\n{errors:#?}", file.display()).unwrap();
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// An error, by its place in the file.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Said {
    line: u64,
    column: u64,
    /// As rustc prints it, without space at the ends of lines.
    text: String,
}

/// The errors of a pin.
fn split(pin: &str) -> Vec<String> {
    let pin = pin.trim_end();
    let mut errors: Vec<String> = pin.split("\n\nerror").map(|error| format!("error{error}")).collect();
    errors[0] = errors[0].replacen("error", "", 1);
    errors
}

fn sorted(errors: &[String]) -> Vec<&String> {
    let mut errors: Vec<&String> = errors.iter().collect();
    errors.sort();
    errors
}

/// The programs as modules.
fn modules(programs: &[PathBuf]) -> String {
    let mut text = String::new();
    for program in programs {
        let class = program.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let name = program.file_stem().unwrap().to_str().unwrap();
        writeln!(text, "#[path = {program:?}]\nmod {class}_{name};").unwrap();
    }
    text
}

/// What rustc says of the crate `refused`, by file.
fn said() -> BTreeMap<PathBuf, Vec<Said>> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    // Of the whole workspace: its features, so that what the tests have built is used.
    let output = Command::new(env!("CARGO"))
        .args(["test", "--workspace", "--no-run", "--test", "refused"])
        .args(["--offline", "--quiet", "--message-format", "json"])
        .arg("--target-dir")
        .arg(target)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    println!("{}", String::from_utf8_lossy(&output.stderr));
    let mut said: BTreeMap<PathBuf, Vec<Said>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let message = &line["message"]["message"];
        let sum = message.as_str().is_some_and(|text| text.starts_with("aborting due to "));
        if line["reason"] == "compiler-message" && line["target"]["name"] == "refused" && !sum {
            let (file, error) = read(&line["message"]);
            said.entry(file).or_default().push(error);
        }
    }
    said
}

/// One message of rustc, and its file; none for a message about no place.
fn read(message: &Value) -> (PathBuf, Said) {
    let spans = message["spans"].as_array().unwrap();
    let place = spans.iter().find(|span| span["is_primary"] == true).unwrap_or(&Value::Null);
    let here = format!("{}/", env!("CARGO_MANIFEST_DIR"));
    let text = message["rendered"].as_str().unwrap().replace(&here, "");
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    let number = |name: &str| place[name].as_u64().unwrap_or_default();
    let said = Said { line: number("line_start"), column: number("column_start"), text: lines.join("\n") };
    (place["file_name"].as_str().unwrap_or_default().into(), said)
}

#[test]
fn programs_are_told_apart_by_their_pins() {
    assert!(is_of_the_macro_alone("error: [G001] no\n --> a.rs:1:1\n\nerror: [G002] nor that\n"));
    assert!(!is_of_the_macro_alone("error: [G001] no\n\nerror[E0277]: [G050] no\n"));
    assert!(!is_of_the_macro_alone("error: [G001] no\n\nwarning: unused import: `x`\n"));
    assert!(!is_of_the_macro_alone(""));
}

//! A crate of generated programs, compiled by rustc against the runtime that a test was built with.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

/// This test.
fn own() -> PathBuf {
    env::current_exe().expect("a test has a path")
}

/// The folder of this test's dependencies.
fn dependencies() -> PathBuf {
    own().parent().expect("it lies in `deps`").to_owned()
}

/// The runtime that this test is linked to, by its time: the last one of the workspace that was built before this test. (`.ci/run
/// new_user` builds the packaged one in the same folder, while tests run.)
fn runtime() -> PathBuf {
    let entries = fs::read_dir(dependencies()).expect("the folder of this test").flatten();
    let libraries = entries.map(|e| e.path()).filter(|path| {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        name.starts_with("libgraphable-") && name.ends_with(".rlib") && is_of_workspace(path)
    });
    let built = |path: &PathBuf| fs::metadata(path).and_then(|m| m.modified()).ok();
    let linked = built(&own());
    let before = libraries.filter(|path| built(path).is_some() && built(path) <= linked);
    before.max_by_key(built).expect("the runtime was built for this test")
}

/// Returns whether a runtime was built from the sources of the workspace: cargo keeps the names of a library's sources in a file
/// beside it.
fn is_of_workspace(library: &Path) -> bool {
    let name = library.file_stem().and_then(|n| n.to_str()).unwrap_or_default();
    let listed = library.with_file_name(name.trim_start_matches("lib")).with_extension("d");
    fs::read_to_string(listed).is_ok_and(|text| text.replace('\\', "/").contains("runtime/src/lib.rs"))
}

/// Compiles a crate; the errors of rustc.
pub(crate) fn compile(source: &Path, out: &Path, emit: &str) -> Vec<Failure> {
    let mut command = Command::new(env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned()));
    command.args(["--edition", "2024", "--crate-type", "bin", "--crate-name", "programs", "--cfg", "on"]);
    command.args(["--error-format", "json", "-Cdebuginfo=0", "-Copt-level=0", "-Ccodegen-units=4"]);
    command.arg("--emit").arg(emit);
    command.arg("-L").arg(format!("dependency={}", dependencies().display()));
    command.arg("--extern").arg(format!("graphable={}", runtime().display()));
    command.arg(source).arg("-o").arg(out);
    failures(&command.output().expect("rustc runs"))
}

/// The errors of one call of rustc; all that it wrote, if it failed without one.
fn failures(output: &Output) -> Vec<Failure> {
    let text = String::from_utf8_lossy(&output.stderr);
    let mut errors: Vec<Failure> = Vec::new();
    for line in text.lines() {
        if let Some(error) = Failure::read(line) {
            errors.push(error);
        } else if let (Some(note), Some(error)) = (note(line), errors.last_mut()) {
            // Where code was generated for what an error is in.
            spans(&note, &mut error.lines);
        }
    }
    if errors.is_empty() && !output.status.success() {
        errors.push(Failure { message: format!("rustc: {}: {text}", output.status), lines: Vec::new() });
    }
    errors
}

/// An error of rustc's.
pub(crate) struct Failure {
    pub(crate) message: String,
    /// Lines that it mentions, the most important first.
    pub(crate) lines: Vec<usize>,
}

impl Failure {
    /// What rustc wrote as JSON, if it is an error.
    fn read(json: &str) -> Option<Self> {
        let json: Value = serde_json::from_str(json).ok()?;
        let message = json["message"].as_str()?;
        if json["level"] != "error" || message.starts_with("aborting due to") {
            return None;
        }
        let code = json["code"]["code"].as_str().unwrap_or_default();
        let mut lines = Vec::new();
        spans(&json, &mut lines);
        Some(Self { message: format!("{code} {message}"), lines })
    }
}

/// A note that belongs to the error in front of it.
fn note(json: &str) -> Option<Value> {
    let json: Value = serde_json::from_str(json).ok()?;
    (json["level"] == "note").then_some(json)
}

/// The lines of the programs in a message and its notes.
fn spans(message: &Value, lines: &mut Vec<usize>) {
    for span in message["spans"].as_array().into_iter().flatten() {
        let mut span = span;
        while span.is_object() {
            let own = span["file_name"].as_str().is_some_and(|name| name.ends_with("programs.rs"));
            if let Some(line) = span["line_start"].as_u64().filter(|_| own) {
                lines.push(usize::try_from(line).unwrap_or_default());
            }
            span = &span["expansion"]["span"];
        }
    }
    message["children"].as_array().into_iter().flatten().for_each(|child| spans(child, lines));
}

/// A compiler that is stopped, or breaks, reports no error, and leaves the program of an earlier run in place.
#[cfg(unix)]
#[test]
fn a_call_that_fails_without_an_error_is_a_failure() {
    use std::os::unix::process::ExitStatusExt;

    for (status, text) in [
        (9, ""),
        (101 << 8, r#"{"message":"no entry found","code":null,"level":"error: internal compiler error"}"#),
        (1 << 8, "error: the option `Z` is only accepted on the nightly compiler"),
    ] {
        let status = std::process::ExitStatus::from_raw(status);
        let output = Output { status, stdout: Vec::new(), stderr: text.into() };
        assert!(failures(&output).first().is_some_and(|failure| failure.message.contains(text)), "{text}");
    }
    let status = std::process::ExitStatus::default();
    let warned =
        Output { status, stdout: Vec::new(), stderr: r#"{"message":"unused","level":"warning"}"#.into() };
    assert!(failures(&warned).is_empty());
}

//! What `#[graphable]` refuses, with its messages. What it accepts is in `accepted.rs`.
//!
//! rustc checks every program, in one of two ways. Programs that the macro alone refuses, by their pins, are modules of
//! one crate, the test target `refused`: one call of rustc reports all their errors, which are compared file by file.
//! Programs of which rustc has something to say, and new ones, are crates of their own: a call of rustc each, with the
//! runtime that cargo has built for `refused`. One program of each class is compiled once more, from another folder, as
//! that of a user's package.
//!
//! `BLESS=1 cargo test -p ui-tests --test ui` pins the messages anew; read what it wrote.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
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
    let wrong = each(&programs, |program| differs(program, &checked(program, Folder::Workspace)));
    assert!(wrong.is_empty(), "{wrong}");
}

/// By absolute paths, as cargo passes them for packages of other workspaces: the macro reads the file around its item, and
/// rustc prints its path.
#[test]
fn from_another_folder() {
    let (alone, others) = programs();
    let mut classes: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    for program in alone.into_iter().chain(others) {
        let pin = fs::read_to_string(program.with_extension("stderr")).unwrap_or_default();
        // Places in the runtime are shown from the workspace, where rustc is called there.
        if !pin.contains("$WORKSPACE/") {
            classes.entry(program.parent().unwrap().to_owned()).or_insert(program);
        }
    }
    assert!(classes.len() >= 20, "{classes:?}");
    let programs: Vec<PathBuf> = classes.into_values().collect();
    let wrong = each(&programs, |program| differs(program, &checked(program, Folder::Other)));
    assert!(wrong.is_empty(), "{wrong}");
}

/// What is wrong with the programs, several of which are checked at once.
fn each(programs: &[PathBuf], check: impl Fn(&Path) -> Option<String> + Sync) -> String {
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(String::new()));
    let check = || {
        while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let difference = check(program);
            wrong.lock().unwrap().extend(difference);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, Into::into) {
            scope.spawn(check);
        }
    });
    wrong.into_inner().unwrap()
}

#[test]
fn the_macro_alone_refuses() {
    let (programs, _) = programs();
    assert!(programs.len() >= 90, "only {} programs", programs.len());
    let mut wrong = String::new();
    for program in &programs {
        let errors = built().said.get(program).map_or(&[][..], Vec::as_slice);
        let got = in_order_of_items(&fs::read_to_string(program).unwrap(), errors);
        wrong.extend(differs(program, &got));
    }
    for (file, errors) in &built().said {
        if !programs.contains(file) {
            writeln!(wrong, "{}: no program, but rustc says\n{errors:#?}", file.display()).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// What is wrong with the messages of a program, unless they are to be pinned.
fn differs(program: &Path, got: &[String]) -> Option<String> {
    let pin = program.with_extension("stderr");
    let pinned = fs::read_to_string(&pin).unwrap_or_default();
    let got = got.join("\n\n") + "\n";
    if got.trim_end() == pinned.trim_end() {
        return None;
    }
    if env::var_os("BLESS").is_some() {
        fs::write(&pin, got).unwrap();
        return None;
    }
    Some(format!("{}: pinned\n{pinned}\nrustc says (`BLESS=1` pins it)\n{got}\n", program.display()))
}

/// The errors of a program among others, as if it were compiled alone: which of two items is expanded first depends on
/// what is beside them. Those of one item stay in the order in which they were reported.
fn in_order_of_items(program: &str, errors: &[Said]) -> Vec<String> {
    // As rustfmt writes them: the last line of an item is not indented.
    let is_end = |line: &str| !line.starts_with(' ') && line.ends_with(['}', ';']);
    let ends: Vec<u64> =
        (1..).zip(program.lines()).filter(|(_, line)| is_end(line)).map(|(n, _)| n).collect();
    let mut errors: Vec<&Said> = errors.iter().collect();
    errors.sort_by_key(|error| ends.partition_point(|&end| end < error.line));
    errors.into_iter().map(|error| error.text.clone()).collect()
}

/// An error or a warning.
#[derive(Debug)]
struct Said {
    /// In its file, from 1.
    line: u64,
    /// As rustc prints it, without space at the ends of lines.
    text: String,
}

/// Where rustc is called.
#[derive(Clone, Copy)]
enum Folder {
    /// As cargo does for a package of this workspace.
    Workspace,
    /// As it does for any other package.
    Other,
}

/// What rustc says of one program.
fn checked(program: &Path, from: Folder) -> Vec<String> {
    let runtime = &built().runtime;
    let name = program.file_stem().unwrap().to_str().unwrap();
    let (folder, path, out) = match from {
        // Paths in the runtime's library begin there.
        Folder::Workspace => (top(), program.strip_prefix(top()).unwrap(), "ui"),
        Folder::Other => (Path::new(env!("CARGO_TARGET_TMPDIR")), program, "ui-other"),
    };
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(out);
    fs::create_dir_all(&out).unwrap();
    let output = Command::new(env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned()))
        .current_dir(folder)
        .args(["--edition", "2024", "--crate-type", "bin", "--emit", "metadata", "--error-format", "json"])
        .args(["-A", "dead_code", "--crate-name", name, "--out-dir"])
        .arg(out)
        .arg("-L")
        .arg(format!("dependency={}", runtime.parent().unwrap().display()))
        .arg("--extern")
        .arg(format!("graphable={}", runtime.display()))
        .arg(path)
        .output()
        .unwrap();
    assert!(!output.status.success(), "{} compiles", program.display());
    let lines = String::from_utf8(output.stderr).unwrap();
    let messages = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    messages.filter(is_said).map(|message| portable(&read(&message).1.text)).collect()
}

/// Whether a message is about the program, and not about other messages.
fn is_said(message: &Value) -> bool {
    let text = message["message"].as_str().unwrap_or_default();
    let about_others = ["aborting due to ", "Some errors have detailed", "For more information about"];
    message["$message_type"] == "diagnostic" && !about_others.iter().any(|start| text.starts_with(start))
}

/// A message without what depends on this checkout, on the lines of the runtime's files, and on how many types implement
/// a trait.
fn portable(text: &str) -> String {
    let text = text.replace("--> ui-tests/", "--> ").replace("--> runtime/", "--> $WORKSPACE/runtime/");
    let names_runtime = text.contains("$WORKSPACE/");
    let indent = |line: &str| line.len() - line.trim_start().len();
    let place = text.lines().find(|line| line.trim_start().starts_with("--> "));
    let excess = " ".repeat(place.map_or(0, indent).saturating_sub(1));
    let mut in_runtime = false;
    let line = |line: &str| {
        let others = line.trim_start().strip_prefix("and ").and_then(|rest| rest.strip_suffix(" others"));
        match (line.find("$WORKSPACE/"), others) {
            (Some(at), _) => {
                in_runtime = true;
                format!(" --> {}", line[at..].split(':').next().unwrap_or_default())
            }
            (None, Some(count)) => line.replace(count, "$N"),
            (None, None) if names_runtime => narrow(line, !in_runtime, &excess),
            (None, None) => line.to_owned(),
        }
    };
    // Where rustc wrote a type that is too long for the message.
    let is_place =
        |line: &&str| !line.contains(".long-type-") && !line.contains("consider using `--verbose`");
    text.lines().filter(is_place).map(line).collect::<Vec<_>>().join("\n")
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A line of a message with room for a number of one digit in front, however many lines the runtime's files have.
fn narrow(line: &str, keeps_number: bool, excess: &str) -> String {
    let rest = line.trim_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = (&rest[..digits], rest[digits..].trim_start());
    match rest.bytes().next() {
        Some(b'|' | b'=') => format!("{:1} {rest}", if keeps_number { number } else { "" }),
        Some(b'-') => format!(" {rest}"),
        _ => line.strip_prefix(excess).unwrap_or(line).to_owned(),
    }
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

/// What cargo built, and what rustc says of it.
struct Built {
    /// The runtime's library, which the tests of this workspace use.
    runtime: PathBuf,
    /// The messages about the crate `refused`, by file.
    said: BTreeMap<PathBuf, Vec<Said>>,
}

/// The crate `refused`, built once.
fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        fs::write(MODULES, modules(&programs().0)).unwrap();
        build()
    })
}

fn build() -> Built {
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
    let mut runtime = None;
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["reason"] == "compiler-artifact" && line["target"]["name"] == "graphable" {
            let files = line["filenames"].as_array().unwrap().iter().filter_map(Value::as_str);
            runtime = files.map(PathBuf::from).find(|file| file.extension().is_some_and(|e| e == "rlib"));
        }
        if line["reason"] == "compiler-message"
            && line["target"]["name"] == "refused"
            && is_said(&line["message"])
        {
            let (file, error) = read(&line["message"]);
            said.entry(file).or_default().push(error);
        }
    }
    Built { runtime: runtime.expect("cargo names the library"), said }
}

/// One message of rustc, and its file; none for a message about no place.
fn read(message: &Value) -> (PathBuf, Said) {
    let spans = message["spans"].as_array().unwrap();
    let place = spans.iter().find(|span| span["is_primary"] == true).unwrap_or(&Value::Null);
    let here = format!("{}/", env!("CARGO_MANIFEST_DIR"));
    let text = message["rendered"].as_str().unwrap().replace(&here, "");
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    let line = place["line_start"].as_u64().unwrap_or_default();
    (place["file_name"].as_str().unwrap_or_default().into(), Said { line, text: lines.join("\n") })
}

#[test]
fn errors_of_an_item_stay_in_their_order() {
    let program = "fn a() {\n    1;\n}\n\nfn b() {\n    2;\n    3;\n}\n";
    let said = |line, text: &str| Said { line, text: text.to_owned() };
    let errors = [said(7, "b, third"), said(2, "a"), said(6, "b, second"), said(5, "b, first")];
    assert_eq!(in_order_of_items(program, &errors), ["a", "b, third", "b, second", "b, first"]);
}

#[test]
fn messages_do_not_depend_on_lines_of_the_runtime() {
    let of = |number: u32| {
        portable(&format!(
            "error\n    --> ui-tests/tests/a.rs:3:5\n     |\n   3 | f()\n    --> runtime/src/a.rs:{number}:5\n\
             {number} | fn f\n           and {number} others\n  = note: see 'a.long-type-{number}.txt'"
        ))
    };
    assert_eq!(of(1012), of(2345));
    let text = " --> tests/a.rs:3:5\n  |\n3 | f()\n --> $WORKSPACE/runtime/src/a.rs\n  | fn f\n           and $N others";
    assert_eq!(of(1012), format!("error\n{text}"));
    assert_eq!(portable(" --> ui-tests/tests/a.rs:3:5\n3 | x"), " --> tests/a.rs:3:5\n3 | x");
}

#[test]
fn programs_are_told_apart_by_their_pins() {
    assert!(is_of_the_macro_alone("error: [G001] no\n --> a.rs:1:1\n\nerror: [G002] nor that\n"));
    assert!(!is_of_the_macro_alone("error: [G001] no\n\nerror[E0277]: [G050] no\n"));
    assert!(!is_of_the_macro_alone("error: [G001] no\n\nwarning: unused import: `x`\n"));
    assert!(!is_of_the_macro_alone(""));
}

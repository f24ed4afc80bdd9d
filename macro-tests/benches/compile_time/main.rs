//! What the macros cost the compiler.
//!
//! `cargo bench -p macro-tests --bench compile_time --profile dev -- expansion` expands a model of 2000
//! lines; `-- crates N` has cargo check and build a crate of N functions, with the macro and without; `-- scaling` has
//! it check and build functions of 100 to 1600 statements, and fifty functions, each with the macro and as a plain
//! helper. `-- kernels N` has it check and build a crate of N `#[kernel]` functions and of the same functions alone.
//! `-- scaling /path/to/another/checkout/runtime` does so with that runtime and its macros.
//! Figures are in docs/BENCHMARKS.md.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Item, ItemFn};

mod texts;

/// Expands every function of a model of 2000 lines, a few times.
fn expansion() {
    let text = texts::model(100, true);
    let file = syn::parse_file(&text).expect("the model is Rust");
    let functions: Vec<TokenStream> = file
        .items
        .into_iter()
        .filter_map(|item| match item {
            Item::Fn(f) if f.attrs.iter().any(|a| a.path().is_ident("graphable")) => {
                Some(ItemFn { attrs: Vec::new(), ..f }.into_token_stream())
            }
            _ => None,
        })
        .collect();
    let mut times: Vec<Duration> = Vec::new();
    let mut tokens = 0;
    for _ in 0..21 {
        let start = Instant::now();
        let expanded: Vec<TokenStream> =
            functions.iter().map(|f| macro_tests::graphable(TokenStream::new(), f.clone())).collect();
        times.push(start.elapsed());
        tokens = expanded.into_iter().map(size).sum();
    }
    times.sort();
    let (median, least) = (times[times.len() / 2], times[0]);
    println!("{} functions, {} lines, {tokens} tokens out", functions.len(), text.lines().count());
    println!("median {median:.2?}, least {least:.2?}; a function {:.2?}", median / functions.len() as u32);
}

fn size(tokens: TokenStream) -> usize {
    let one = |token| match token {
        proc_macro2::TokenTree::Group(g) => 1 + size(g.stream()),
        _ => 1,
    };
    tokens.into_iter().map(one).sum()
}

/// Has cargo check and build crates of `functions` functions.
fn crates(functions: usize) {
    let runtime = own_runtime();
    let text = |functions, with_macro| texts::model(functions, with_macro);
    let crates = [
        ("empty".to_owned(), text(0, true)),
        (format!("plain-{functions}"), text(functions, false)),
        (format!("graphable-{functions}"), text(functions, true)),
    ];
    measure(&crates, &runtime);
}

/// How long functions take by their statements, and how long each of many takes.
fn scaling(runtime: &Path) {
    let mut crates = vec![("empty".to_owned(), texts::model(0, true))];
    for with_macro in [false, true] {
        let how = if with_macro { "graphable" } else { "plain" };
        for statements in [100, 200, 400, 800, 1600] {
            crates
                .push((format!("statements-{statements}-{how}"), texts::statements(statements, with_macro)));
        }
        crates.push((format!("functions-50-{how}"), texts::functions(50, with_macro, false)));
        crates.push((format!("functions-50-called-{how}"), texts::functions(50, with_macro, true)));
    }
    measure(&crates, runtime);
}

/// Has cargo check and build crates of `functions` kernels.
fn kernels(functions: usize) {
    let crates = [
        ("empty".to_owned(), texts::kernels(0, true)),
        (format!("plain-{functions}"), texts::kernels(functions, false)),
        (format!("kernels-{functions}"), texts::kernels(functions, true)),
    ];
    measure(&crates, &own_runtime());
}

fn own_runtime() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime")
}

/// Has cargo check and build crates of these names and texts.
fn measure(crates: &[(String, String)], runtime: &Path) {
    let folder = env::temp_dir().join(format!("graphable-compile-time-{}", std::process::id()));
    for (name, text) in crates {
        let root = folder.join(name);
        write(&root, name, runtime, text);
        for command in ["check", "build"] {
            cargo(command, &root, &folder);
            // All but this crate is built now; only it is built again.
            let mut spent: Vec<(f64, Duration)> = Vec::new();
            for _ in 0..3 {
                let touched = fs::read_to_string(root.join("src/lib.rs")).expect("the crate is there");
                fs::write(root.join("src/lib.rs"), touched + "\n").expect("the folder is writable");
                let (start, before) = (Instant::now(), children());
                cargo(command, &root, &folder);
                spent.push((children() - before, start.elapsed()));
            }
            spent.sort_by(|a, b| a.0.total_cmp(&b.0));
            println!("{command} {name}: {:.2} s of processor, {:.2?}", spent[0].0, spent[0].1);
        }
    }
    fs::remove_dir_all(&folder).ok();
}

fn write(root: &Path, name: &str, runtime: &Path, text: &str) {
    fs::create_dir_all(root.join("src")).expect("the temporary folder is writable");
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n\
         [dependencies]\ngraphable = {{ path = {:?} }}\n",
        runtime.display()
    );
    fs::write(root.join("Cargo.toml"), manifest).expect("the temporary folder is writable");
    fs::write(root.join("src/lib.rs"), text).expect("the temporary folder is writable");
}

fn cargo(command: &str, root: &Path, folder: &Path) {
    let target: PathBuf = folder.join("target");
    let status = Command::new(env!("CARGO"))
        .args([command, "--quiet", "--offline", "--manifest-path"])
        .arg(root.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_INCREMENTAL", "0")
        .status()
        .expect("cargo runs");
    assert!(status.success(), "cargo {command} of {}", root.display());
}

/// Processor time of all children so far, in seconds (Linux: 100 ticks are one).
fn children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
    // Fields 16 and 17 of proc(5), counted from the third.
    after_name.split(' ').skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn main() {
    let args: Vec<String> = env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] | ["expansion"] => expansion(),
        ["crates"] => crates(100),
        ["crates", n] => crates(n.parse().expect("a number of functions")),
        ["kernels", n] => kernels(n.parse().expect("a number of functions")),
        ["scaling"] => scaling(&own_runtime()),
        ["scaling", runtime] => scaling(Path::new(runtime)),
        _ => panic!("`expansion`, `crates N`, `kernels N`, or `scaling`"),
    }
}

//! Writes the programs that must compile as modules of two tests: `tests/accepted.rs` runs those of `pass`,
//! `tests/followed.rs` compiles those of `followed`.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

fn main() {
    // In the module, since `main` is private to it; below the program, whose inner attributes come first.
    let test = "#[test]\nfn runs() -> impl ::std::process::Termination {\n    main()\n}\n";
    modules("pass", "accepted.rs", test);
    modules("followed", "followed.rs", "");
}

/// The programs of a folder, each as a module, which ends in `last`.
fn modules(folder: &str, to: &str, last: &str) {
    let folder = Path::new(&env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("tests/ui").join(folder);
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut programs: Vec<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    programs.retain(|file| file.extension().is_some_and(|e| e == "rs"));
    programs.sort();
    let mut modules = String::new();
    for file in &programs {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let program = fs::read_to_string(file).unwrap();
        modules += &format!("pub mod {name} {{\n{program}\n{last}}}\n");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
    fs::write(out.join(to), modules).unwrap();
}

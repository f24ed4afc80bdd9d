//! One program of each class through trybuild, as a user's own tests would check it: what cargo builds in a package of its
//! own, with the spans that it shows. All programs are compared in `ui.rs`, which compiles less for each.

use std::{fs, path::Path};

#[test]
fn one_program_of_each_class() {
    let cases = trybuild::TestCases::new();
    let mut classes: Vec<_> = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui/fail"))
        .unwrap()
        .map(|class| class.unwrap().path())
        .collect();
    classes.sort();
    assert!(classes.len() >= 20, "{classes:?}");
    for class in classes {
        let programs = fs::read_dir(&class).unwrap().map(|file| file.unwrap().path());
        // Which other types rustc lists depends on the crates of the package.
        let comparable = |pin: &Path| !fs::read_to_string(pin).unwrap().contains("other types implement");
        let first = programs
            .filter(|file| file.extension().is_some_and(|e| e == "rs"))
            .filter(|file| comparable(&file.with_extension("stderr")))
            .min();
        cases.compile_fail(first.unwrap_or_else(|| panic!("no program in {}", class.display())));
    }
}

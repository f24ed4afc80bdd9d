//! The check finds what it is for.

use std::{fs, path::PathBuf};

use super::*;

/// A crate of these files, read.
fn scanned(name: &str, files: &[(&str, &str)]) -> Arcs {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    Crate::read(&folder).files()
}

#[test]
fn arcs_are_seen_through_re_exports_macros_and_inline_modules() {
    let files = scanned(
        "modules-arcs",
        &[
            ("lib.rs", "mod a; mod b; mod c; mod d; pub use b::inner::B; pub use d::made;"),
            ("a.rs", "use crate::B; fn f() { println!(\"{}\", crate::c::C); }"),
            ("b/mod.rs", "pub(crate) mod inner;"),
            ("b/inner.rs", "pub struct B; mod deep { fn f() { super::super::super::d::made() } }"),
            ("c.rs", "use std::fmt; pub const C: u8 = 0; #[cfg(test)] mod tests { use crate::a; }"),
            ("d.rs", "pub fn made() { let (a, b) = (1, 2); fmt::f(a::<b>()) }"),
        ],
    );
    let named = |file: &str| files[file].keys().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(named("a"), ["b::inner", "c"]);
    assert_eq!(named("b::inner"), ["d"]);
    assert!(named("c").is_empty(), "tests may name everything");
    assert!(named("d").is_empty(), "names of other crates and of variables lead nowhere");
    assert_eq!(check("ours", &files, &[]), "");
}

#[test]
fn the_shortest_cycle_is_shown_and_the_list_only_shrinks() {
    let files = scanned(
        "modules-cycle",
        &[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "pub struct A(crate::b::B);"),
            ("b.rs", "use crate::c::C; pub struct B;"),
            ("c.rs", "use super::{a::A, b}; pub struct C;"),
        ],
    );
    let wrong = check("ours", &files, &[]);
    assert_eq!(
        wrong,
        "ours: modules at the root need each other:\n  `b` needs `c`: `crate::c::C` in `b`\n  `c` needs `b`: \
         `super::b` in `c`\n"
    );
    let wrong = check("ours", &files, &[("c", "b"), ("c", "a")]);
    assert_eq!(wrong, "");
    let wrong = check("ours", &files, &[("b", "c"), ("a", "c")]);
    assert_eq!(wrong, "ours: `a` -> `c` closes no cycle any more: remove it from the list\n");
}

//! The check finds what it is for.

use std::{fs, path::PathBuf};

use super::*;

/// A crate of these files, read.
fn scanned(name: &str, files: &[(&str, &str)]) -> Crate {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    Crate::read(&folder)
}

#[test]
fn arcs_are_seen_through_re_exports_macros_and_inline_modules() {
    let read = scanned(
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
    let files = read.files();
    let named = |file: &str| files[file].keys().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(named("a"), ["b::inner", "c"]);
    assert_eq!(named("b::inner"), ["d"]);
    assert!(named("c").is_empty(), "tests may name everything");
    assert!(named("d").is_empty(), "names of other crates and of variables lead nowhere");
    assert_eq!(check("ours", &read.roots()), "");
}

#[test]
fn a_visibility_uses_nothing() {
    let files = scanned(
        "modules-visibility",
        &[
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod b; use b::B;"),
            ("a/b.rs", "mod c; pub(in crate::a) struct B(pub(in crate::a) u8, pub (c::C, u8));"),
            ("a/b/c.rs", "pub(super) struct C;"),
        ],
    )
    .files();
    assert_eq!(files["a"].keys().collect::<Vec<_>>(), ["a::b"]);
    assert_eq!(files["a::b"].keys().collect::<Vec<_>>(), ["a::b::c"]);
    assert!(files["a::b::c"].is_empty());
}

#[test]
fn the_shortest_cycle_is_shown() {
    let roots = scanned(
        "modules-cycle",
        &[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "pub struct A(crate::b::B);"),
            ("b.rs", "use crate::c::C; pub struct B;"),
            ("c.rs", "use super::{a::A, b}; pub struct C;"),
        ],
    )
    .roots();
    let wrong = check("ours", &roots);
    assert_eq!(
        wrong,
        "ours: modules at the root need each other:\n  `b` needs `c`: `crate::c::C` in `b`\n  `c` needs `b`: \
         `super::b` in `c`\n"
    );
}

#[test]
fn the_arc_that_joins_sets_of_files_is_shown() {
    // Two sets of three, of which the second needs the first; the arc back joins them.
    let files = |joined: &str| {
        scanned(
            "modules-files",
            &[
                ("lib.rs", "mod a; mod b; mod c; mod d; mod e; mod f;"),
                ("a.rs", &format!("use crate::{{b::B, c::C}}; {joined} pub struct A;")),
                ("b.rs", "use crate::{a::A, c::C}; pub struct B;"),
                ("c.rs", "use crate::{a::A, b::B}; pub struct C;"),
                ("d.rs", "use crate::{b::B, e::E, f::F}; pub struct D;"),
                ("e.rs", "use crate::{d::D, f::F}; pub struct E;"),
                ("f.rs", "use crate::{d::D, e::E}; pub struct F;"),
            ],
        )
        .files()
    };
    assert_eq!(check_files("ours", &files(""), 3), "");
    assert_eq!(
        check_files("ours", &files(""), 2),
        "ours: 3 files need each other, and at most 2 may; there would be 3 without the first of:\n  `a` needs `b`: \
         `crate::b::B` in `a`\n  `b` needs `a`: `crate::a::A` in `b`\n"
    );
    let joined = files("use crate::e::E;");
    assert_eq!(check_files("ours", &joined, 6), "");
    assert_eq!(
        check_files("ours", &joined, 5),
        "ours: 6 files need each other, and at most 5 may; there would be 3 without the first of:\n  `a` needs `e`: \
         `crate::e::E` in `a`\n  `e` needs `d`: `crate::d::D` in `e`\n  `d` needs `b`: `crate::b::B` in `d`\n  `b` \
         needs `a`: `crate::a::A` in `b`\n"
    );
}

#[test]
fn a_module_that_re_exports_is_named_too() {
    let roots = scanned(
        "modules-re-export",
        &[
            ("lib.rs", "mod low; mod high;"),
            ("low.rs", "pub struct L; mod inner { use super::super::high::L as Same; }"),
            ("high.rs", "pub use crate::low::L;"),
        ],
    )
    .roots();
    assert_eq!(roots["low"]["high"], "`super::super::high::L` in `low::inner`");
    assert!(check("ours", &roots).contains("need each other"));
}

#[test]
fn a_map_that_is_out_of_date_is_refused() {
    let roots = scanned(
        "modules-map",
        &[("lib.rs", "mod low; mod high;"), ("low.rs", "pub struct L;"), ("high.rs", "use crate::low::L;")],
    )
    .roots();
    assert_eq!(check_order(&["low", "high"], &roots), "");
    assert_eq!(
        check_order(&["high", "gone"], &roots),
        "`low` is not listed\n`high` stands above `low`, which it needs: `crate::low::L` in `high`\n`gone` is listed, \
         and is not there\n"
    );
}

#[test]
fn a_method_that_another_module_adds_to_a_type_is_needed_by_those_who_call_it() {
    let files = |low: &str| {
        scanned(
            "modules-methods",
            &[
                ("lib.rs", "mod base; mod low; mod high;"),
                ("base.rs", "pub struct Other; impl Other { pub fn start(&self) {} pub fn done(&self) {} }"),
                ("low.rs", &format!("use crate::base::Other; pub struct Low {{ n: u8 }} {low}")),
                (
                    "high.rs",
                    "use crate::low::Low; pub struct Step; impl Low { pub fn start(&self) -> Step { Step } pub fn only() {} }",
                ),
            ],
        )
        .roots()
    };
    let cycle = |place: &str| {
        format!(
            "ours: modules at the root need each other:\n  `high` needs `low`: `crate::low::Low` in `high`\n  `low` needs \
             `high`: {place} in `low`\n"
        )
    };
    let called = cycle("a call of `Low::start` of `high`");
    for calls in [
        "impl Low { fn new(&self) { self.start(); } }",
        "fn f(low: &mut Low) { assert!(low.start().is_some()) }",
        "struct Holder { low: std::rc::Rc<Low> } impl Drop for Holder { fn drop(&mut self) { self.low.start(); } }",
        "impl Low { fn new(&self) { Self::start(self); } }",
    ] {
        assert_eq!(check("ours", &files(calls)), called, "{calls}");
    }
    assert_eq!(check("ours", &files("fn f() { Low::only() }")), cycle("`Low::only`"));
    for other in [
        // Of a type for which nobody else has methods, of a type of another crate, and of two.
        "fn f(other: &Other) { other.start(); other.done() }",
        "fn f(other: &Vec<u8>) { other.start() }",
        "fn f() { made().start() }",
        "fn f() { for i in 0..start() {} }",
        "#[cfg(test)] fn f(low: &Low) { low.start(); }",
        "impl Low { #[cfg(test)] fn new(&self) { self.start(); } }",
    ] {
        assert_eq!(check("ours", &files(other)), "", "{other}");
    }
}

#[test]
fn a_method_of_one_type_is_known_by_its_name() {
    let roots = scanned(
        "modules-method-names",
        &[
            ("lib.rs", "mod low; mod high;"),
            ("low.rs", "pub struct Low; trait T { fn both(&self); } fn f() { made().high(); made().both() }"),
            ("high.rs", "impl crate::low::Low { pub fn high(&self) {} pub fn both(&self) {} }"),
        ],
    )
    .roots();
    assert_eq!(roots["low"]["high"], "a call of `Low::high` of `high` in `low`");
}

//! The public surface of the runtime: pinned, so that a change shows in review; and which public types may grow without
//! breaking users, all that are not listed here.
//!
//! The runtime denies `unreachable_pub`, so whatever is `pub` in its sources can be reached from outside.
//!
//! `BLESS=1 cargo test -p ui-tests --test public_api` pins the surface anew; read the difference, and write what breaks
//! users into the changelog.

mod crate_items;
mod surface;

use std::{
    collections::{BTreeMap, HashSet},
    env, fs,
    path::Path,
};

use crate_items::{Crate, name_of};
use surface::Surface;
use syn::Item;

const GENERATED: &str = "generated code writes it";
const UNSTABLE: &str = "`backend` is not covered by semantic versioning";

/// Public enums, and structs with only public fields, that users may match and write in full; and why.
const EXHAUSTIVE: &[(&str, &str)] = &[
    ("Arena", UNSTABLE),
    ("AvgPoolConfig", "as `ConvConfig`"),
    ("Bound", "both parts of the inequality, which users write down"),
    ("Carrying", GENERATED),
    ("ConvConfig", "models write it as a literal, with a value for each dimension"),
    ("ConvTransposeConfig", "as `ConvConfig`"),
    ("Definition", GENERATED),
    ("Conditional", UNSTABLE),
    ("DeviceCopy", UNSTABLE),
    ("Dim", GENERATED),
    ("DimsSpec", GENERATED),
    ("Ends", GENERATED),
    ("Extent", GENERATED),
    ("FunctionSpec", GENERATED),
    ("HostUpload", UNSTABLE),
    ("HostCopy", UNSTABLE),
    ("HostBlocks", "as `HostTensor`: sources of users make it"),
    (
        "HostTensor",
        "whoever implements `TensorSource` writes it; bytes, shape and type are all that a tensor is",
    ),
    ("Index", GENERATED),
    ("InputKind", GENERATED),
    ("InputSpec", GENERATED),
    ("Kind", GENERATED),
    ("Launch", UNSTABLE),
    ("Leaving", GENERATED),
    ("Live", "hidden, for the tests of this repository"),
    ("OnlyForFunctionsWithBoundaries", GENERATED),
    ("Own", GENERATED),
    ("Plan", GENERATED),
    ("MaxPoolConfig", "as `ConvConfig`"),
    ("RopeConfig", "models write it as a literal; another way to rotate is a `RopeStyle`, which may grow"),
    ("RngState", "a seed and a position are all of it, and programs store both"),
    ("EndsIn", GENERATED),
    ("EndsItself", GENERATED),
    ("Referent", GENERATED),
    ("Room", "two sizes, which programs write as a literal"),
    ("BlockRows", GENERATED),
    ("Rows", GENERATED),
    ("Site", GENERATED),
    ("Tables", "hidden, for the tests of this repository"),
    ("View", UNSTABLE),
];

fn runtime() -> Crate {
    Crate::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/src"))
}

/// Whether users can write all of a type: an enum, or a struct with fields, all of them public.
fn is_exhaustive(item: &Item) -> bool {
    let (attributes, visibility, is_open) = match item {
        Item::Enum(item) => (&item.attrs, &item.vis, true),
        Item::Struct(item) => {
            let all = item.fields.iter().all(|field| surface::is_public(&field.vis));
            (&item.attrs, &item.vis, all && !item.fields.is_empty())
        }
        _ => return false,
    };
    is_open
        && surface::is_public(visibility)
        && !attributes.iter().any(|a| a.path().is_ident("non_exhaustive"))
}

/// The types of a crate that are exhaustive, by name, and the module of each.
fn exhaustive(all: &Crate) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (module, items) in &all.modules {
        let names = items.iter().filter(|item| is_exhaustive(item)).filter_map(name_of);
        found.extend(names.map(|name| (name, module.join("::"))));
    }
    found
}

#[test]
fn what_is_exhaustive_is_so_on_purpose() {
    let found = exhaustive(&runtime());
    let mut wrong = String::new();
    for (name, module) in &found {
        if !EXHAUSTIVE.iter().any(|(known, _)| known == name) {
            wrong += &format!("{name} (in {module}) needs `#[non_exhaustive]`, or a reason here\n");
        }
    }
    for (name, reason) in EXHAUSTIVE {
        assert!(!reason.is_empty(), "{name} needs a reason");
        if !found.contains_key(*name) {
            wrong += &format!("{name} is not exhaustive any more, or gone: remove it here\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_scan_sees_what_it_is_for() {
    let of = |text: &str| exhaustive(&Crate::of(text)).into_keys().collect::<Vec<_>>();
    assert_eq!(of("pub enum A {\n    B,\n}\n"), ["A"]);
    assert!(of("#[derive(Debug)]\n#[non_exhaustive]\n/// Text.\npub enum A {\n    B,\n}\n").is_empty());
    assert_eq!(of("pub struct A<'a> {\n    /// It.\n    pub b: &'a u8,\n}\n"), ["A"]);
    assert!(of("pub struct A {\n    pub b: u8,\n    c: u8,\n}\n").is_empty(), "no one else can write it");
    assert!(of("pub struct A(u8);\n").is_empty());
    assert_eq!(of("pub struct A(pub u8, pub u8);\n"), ["A"]);
    assert!(of("pub struct A;\n").is_empty());
    assert_eq!(of("mod a {\n    #[derive(Debug)]\n    pub enum A {}\n    enum B {}\n}\n"), ["A"]);
}

#[test]
fn the_surface_is_as_it_was() {
    let pin = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/public_api/graphable.txt");
    let text = Surface::of(&runtime(), "graphable").text();
    if env::var_os("BLESS").is_some() {
        fs::write(&pin, &text).unwrap();
    }
    let pinned = fs::read_to_string(&pin).unwrap_or_default();
    if text != pinned {
        let lacks = |one: &str, other: &str| {
            let other: HashSet<&str> = other.lines().collect();
            one.lines().filter(|line| !other.contains(line)).map(str::to_owned).collect::<Vec<_>>()
        };
        panic!(
            "the public surface is another; if it is meant to be: `BLESS=1 cargo test -p ui-tests --test public_api`\n\
             added: {:#?}\ngone: {:#?}",
            lacks(&text, &pinned),
            lacks(&pinned, &text)
        );
    }
    // What every user writes.
    for name in
        ["pub struct Tensor<", "pub fn step(", "pub enum Error", "pub trait TensorSource", "pub fn matmul"]
    {
        assert!(text.contains(name), "{name}");
    }
}

#[test]
fn a_change_of_the_surface_is_seen() {
    const BEFORE: &str = "mod a { pub struct A { pub b: u8, c: u8 } impl A { pub fn f(&self) -> u8 { 1 } fn g(&self) {} } \
                          pub(crate) struct P; impl Clone for P { fn clone(&self) -> P { P } } \
                          pub trait T { fn t(&self) {} } impl T for A { fn t(&self) { loop {} } } impl T for u8 {} } \
                          pub use a::{A, T}; pub mod m { pub use crate::A as B; } #[doc(hidden)] pub mod h { pub fn x() {} }";
    let of = |text: &str| Surface::of(&Crate::of(text), "k").text();
    let before = of(BEFORE);
    for (from, to) in [
        ("pub b: u8", "pub b: u16"),
        ("&self) -> u8", "&mut self) -> u8"),
        ("impl T for u8", "impl T for u16"),
        ("impl T for A", "impl T for &A"),
        ("fn t(&self) {} }", "fn t(&self); }"),
        ("pub fn f", "pub(crate) fn f"),
        ("A as B", "A as C"),
        ("pub use a::{A, T}", "pub use a::A"),
        ("#[doc(hidden)] ", ""),
        ("c: u8 }", "}"),
    ] {
        assert!(BEFORE.contains(from), "{from}");
        assert_ne!(of(&BEFORE.replace(from, to)), before, "{from} to {to}");
    }
    for (from, to) in
        [("{ 1 }", "{ 2 }"), ("c: u8", "c: u16"), ("fn g(&self)", "fn g(self)"), ("struct P;", "struct P();")]
    {
        assert!(BEFORE.contains(from), "{from}");
        assert_eq!(of(&BEFORE.replace(from, to)), before, "{from} to {to}");
    }
}

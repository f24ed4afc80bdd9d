//! Right and wrong items, taken from the project's own tests and examples.

use std::{
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Attribute, Item, Meta, Path as SynPath, Token, punctuated::Punctuated, visit::Visit};

use super::Entry;

/// What a macro is given.
#[derive(Clone)]
pub(crate) struct Seed {
    pub(crate) entry: Entry,
    pub(crate) args: TokenStream,
    pub(crate) item: TokenStream,
}

/// Folders and files with items that use our macros.
const SOURCES: [&str; 7] = [
    "ui-tests/tests/ui",
    "runtime/tests/graphs/hygiene.rs",
    "runtime/tests/partition",
    "runtime/tests/graphs/params.rs",
    "examples/src/bin/quickstart.rs",
    "examples/src/llama/model.rs",
    "examples/src/bert/model.rs",
];

/// Every item of the repository at `root` that has one of our macros, in the order of its files' names.
///
/// A file that is no Rust is passed over: some tests are about just that.
pub(crate) fn read(root: &Path) -> Vec<Seed> {
    let mut files = Vec::new();
    for source in SOURCES {
        collect(&root.join(source), &mut files);
    }
    let mut found = Found(Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        if let Ok(file) = syn::parse_file(&text) {
            found.visit_file(&file);
        }
    }
    found.0
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if !path.is_dir() {
        if path.extension().is_some_and(|e| e == "rs") {
            files.push(path.to_owned());
        }
        return;
    }
    let entries = fs::read_dir(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut inner: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    inner.sort();
    inner.iter().for_each(|p| collect(p, files));
}

struct Found(Vec<Seed>);

impl<'ast> Visit<'ast> for Found {
    fn visit_item(&mut self, item: &'ast Item) {
        let attrs = match item {
            Item::Fn(i) => &i.attrs,
            Item::Impl(i) => &i.attrs,
            Item::Trait(i) => &i.attrs,
            Item::Struct(i) => &i.attrs,
            Item::Enum(i) => &i.attrs,
            _ => return syn::visit::visit_item(self, item),
        };
        for (at, attr) in attrs.iter().enumerate() {
            for (entry, args) in uses(attr) {
                let item = without(item.clone(), at).into_token_stream();
                self.0.push(Seed { entry, args, item });
            }
        }
        syn::visit::visit_item(self, item);
    }
}

/// The macros that `attr` calls, with their arguments.
fn uses(attr: &Attribute) -> Vec<(Entry, TokenStream)> {
    if attr.path().segments.last().is_some_and(|s| s.ident == "graphable") {
        let args = match &attr.meta {
            Meta::List(list) => list.tokens.clone(),
            _ => TokenStream::new(),
        };
        return vec![(Entry::Graphable, args)];
    }
    if !attr.path().is_ident("derive") {
        return Vec::new();
    }
    let derived = attr.parse_args_with(Punctuated::<SynPath, Token![,]>::parse_terminated);
    let entry = |path: &SynPath| match path.segments.last()?.ident.to_string().as_str() {
        "Params" => Some(Entry::Params),
        "GraphOutput" => Some(Entry::GraphOutput),
        "ConfigValue" => Some(Entry::ConfigValue),
        _ => None,
    };
    derived.iter().flatten().filter_map(entry).map(|e| (e, TokenStream::new())).collect()
}

fn without(mut item: Item, at: usize) -> Item {
    match &mut item {
        Item::Fn(i) => drop(i.attrs.remove(at)),
        Item::Impl(i) => drop(i.attrs.remove(at)),
        Item::Trait(i) => drop(i.attrs.remove(at)),
        Item::Struct(i) => drop(i.attrs.remove(at)),
        Item::Enum(i) => drop(i.attrs.remove(at)),
        _ => {}
    }
    item
}

//! Which file of a crate names what another file of it defines.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Item, UseTree};

use super::methods::{Methods, Table, TypeName, Written};

/// Files, or modules at the root, and for each those that it names, with a place where it does.
pub(crate) type Arcs = BTreeMap<String, BTreeMap<String, String>>;

/// A module path below the crate root, empty at the root.
pub(crate) type Module = Vec<String>;

/// The modules of a crate, and what they name of each other.
#[derive(Default)]
pub(crate) struct Crate {
    /// Every module, inline ones too, and the module that is the file it stands in.
    modules: BTreeMap<Module, Module>,
    /// Names that a module imports or re-exports, with the paths that they stand for.
    imports: BTreeMap<Module, BTreeMap<String, Module>>,
    /// Modules whose every name a module imports.
    globs: BTreeMap<Module, Vec<Module>>,
    /// Names that a module defines itself.
    defined: BTreeMap<Module, BTreeSet<String>>,
    /// Every path that is written somewhere, by the module that it is written in.
    paths: Vec<(Module, Module)>,
    methods: Methods,
}

/// What a path leads to: a module, and the names in it that follow.
struct Found {
    module: Module,
    names: Vec<String>,
}

impl Crate {
    /// Reads a crate from its root file on, without its tests.
    pub(crate) fn read(folder: &Path) -> Self {
        let mut found = Self::default();
        found.file(&folder.join("lib.rs"), folder, &Vec::new());
        found
    }

    fn file(&mut self, path: &Path, children: &Path, module: &Module) {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self.items(&file.items, children, module, module);
    }

    fn items(&mut self, items: &[Item], children: &Path, module: &Module, file: &Module) {
        self.modules.insert(module.clone(), file.clone());
        for item in items.iter().filter(|item| !is_test(attributes(item))) {
            match item {
                Item::Mod(inner) => {
                    let name = inner.ident.to_string();
                    let path = joined(module, &name);
                    let folder = children.join(&name);
                    match &inner.content {
                        Some((_, items)) => self.items(items, &folder, &path, file),
                        None if folder.join("mod.rs").exists() => {
                            self.file(&folder.join("mod.rs"), &folder, &path);
                        }
                        None => self.file(&children.join(name + ".rs"), &folder, &path),
                    }
                }
                Item::Use(import) => self.import(&import.tree, &mut Vec::new(), module),
                item => {
                    if let Some(name) = defines(item) {
                        self.defined.entry(module.clone()).or_default().insert(name);
                    }
                    self.tokens(item.to_token_stream(), module);
                    self.methods.read(item, module);
                }
            }
        }
    }

    fn import(&mut self, tree: &UseTree, prefix: &mut Module, module: &Module) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.import(&path.tree, prefix, module);
                prefix.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, prefix, module);
                }
            }
            UseTree::Name(name) if name.ident == "self" => {
                let alias = prefix.last().cloned().unwrap_or_default();
                self.imported(alias, prefix.clone(), module);
            }
            UseTree::Name(name) => {
                let path = joined(prefix, &name.ident.to_string());
                self.imported(name.ident.to_string(), path, module);
            }
            UseTree::Rename(rename) => {
                let path = joined(prefix, &rename.ident.to_string());
                self.imported(rename.rename.to_string(), path, module);
            }
            UseTree::Glob(_) => {
                self.paths.push((module.clone(), prefix.clone()));
                self.globs.entry(module.clone()).or_default().push(prefix.clone());
            }
        }
    }

    fn imported(&mut self, alias: String, path: Module, module: &Module) {
        self.paths.push((module.clone(), path.clone()));
        self.imports.entry(module.clone()).or_default().insert(alias, path);
    }

    /// Paths in code, in the tokens of macros too: two or more names with `::` between them.
    fn tokens(&mut self, tokens: TokenStream, module: &Module) {
        let mut path = Module::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.written(&mut path, module);
                    }
                    colons = 0;
                    path.push(name.to_string());
                }
                TokenTree::Group(group) => {
                    let restricts = path.last().is_some_and(|name| name == "pub") && is_restriction(&group);
                    self.written(&mut path, module);
                    colons = 0;
                    if !restricts {
                        self.tokens(group.stream(), module);
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.written(&mut path, module);
                    colons = 0;
                }
            }
        }
        self.written(&mut path, module);
    }

    fn written(&mut self, path: &mut Module, module: &Module) {
        if path.len() > 1 {
            self.paths.push((module.clone(), path.clone()));
        }
        path.clear();
    }

    /// What a path written in `from` leads to, if it is in this crate.
    fn resolve(&self, from: &Module, path: &[String], depth: usize) -> Option<Found> {
        assert!(depth < 32, "`{}` in `{}` leads round in a circle", path.join("::"), from.join("::"));
        let (first, rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Module::new(),
            "self" => from.clone(),
            "super" => from[..from.len().checked_sub(1)?].to_vec(),
            _ if self.knows(from, first) => return self.lookup(from, path, depth),
            _ => return None,
        };
        let mut rest = rest;
        while rest.first().is_some_and(|name| name == "super") {
            at.pop()?;
            rest = &rest[1..];
        }
        self.lookup(&at, rest, depth)
    }

    fn knows(&self, module: &Module, name: &str) -> bool {
        self.modules.contains_key(&joined(module, name))
            || self.imports.get(module).is_some_and(|names| names.contains_key(name))
    }

    fn defines(&self, module: &Module, name: &str) -> bool {
        self.defined.get(module).is_some_and(|names| names.contains(name))
    }

    /// Follows a path from a module through its children and re-exports.
    fn lookup(&self, at: &Module, path: &[String], depth: usize) -> Option<Found> {
        let here = Found { module: at.clone(), names: path.to_vec() };
        let Some((name, rest)) = path.split_first() else { return Some(here) };
        let child = joined(at, name);
        if self.modules.contains_key(&child) {
            return self.lookup(&child, rest, depth);
        }
        if self.defines(at, name) {
            return Some(here);
        }
        if let Some(target) = self.imports.get(at).and_then(|names| names.get(name)) {
            if target.first() == Some(name) {
                return None; // a crate's name
            }
            let mut found = self.resolve(at, target, depth + 1)?;
            if found.names.is_empty() {
                return self.lookup(&found.module, rest, depth);
            }
            found.names.extend_from_slice(rest);
            return Some(found);
        }
        for target in self.globs.get(at).into_iter().flatten() {
            if let Some(found) = self.resolve(at, target, depth + 1)
                && self.defines(&found.module, name)
            {
                return Some(Found { names: path.to_vec(), ..found });
            }
        }
        Some(here)
    }

    /// The type that a path leads to, if this crate defines it, and the names that follow.
    fn type_of(&self, from: &Module, path: &[String]) -> Option<(TypeName, Vec<String>)> {
        let first = path.first()?;
        let is_rooted = ["crate", "self", "super"].contains(&first.as_str()) || self.knows(from, first);
        let found = if is_rooted { self.resolve(from, path, 0) } else { self.lookup(from, path, 0) }?;
        let (name, rest) = found.names.split_first()?;
        let is_defined = self.defines(&found.module, name);
        is_defined.then(|| ((found.module.clone(), name.clone()), rest.to_vec()))
    }

    /// Files by their module paths, and for each the files that define what it names, with a place where it does. The root
    /// is not among them: it only declares and re-exports.
    pub(crate) fn files(&self) -> Arcs {
        let mut arcs = Arcs::new();
        for file in self.modules.values().filter(|file| !file.is_empty()) {
            arcs.entry(file.join("::")).or_default();
        }
        for (from, path) in &self.paths {
            let Some(to) = self.resolve(from, path, 0) else { continue };
            let (file, to) = (&self.modules[from], &self.modules[&to.module]);
            if file != to && !file.is_empty() && !to.is_empty() {
                let by = arcs.entry(file.join("::")).or_default();
                by.entry(to.join("::")).or_insert_with(|| place(path, from));
            }
        }
        arcs
    }

    /// Modules at the root, and for each the others that it names, whose definitions it names, or whose methods of a type
    /// that another one defines it calls.
    pub(crate) fn roots(&self) -> Arcs {
        let mut arcs = Arcs::new();
        for module in self.modules.values().filter_map(|file| file.first()) {
            arcs.entry(module.clone()).or_default();
        }
        let mut needs = |from: &Module, to: &Module, place: &dyn Fn() -> String| {
            let Some(at) = from.first().filter(|_| !self.modules[from].is_empty()) else { return };
            let Some(to) = to.first().filter(|to| *to != at && arcs.contains_key(*to)).cloned() else {
                return;
            };
            arcs.entry(at.clone()).or_default().entry(to).or_insert_with(place);
        };
        for (from, path) in &self.paths {
            let defined = self.resolve(from, path, 0).map(|found| found.module);
            let written = absolute(from, path);
            for to in [defined, written].iter().flatten() {
                needs(from, to, &|| place(path, from));
            }
        }
        let methods = Table::new(&self.methods, |of: &Written| {
            let (of, rest) = self.type_of(&of.module, &of.path)?;
            rest.is_empty().then_some(of)
        });
        for (from, path) in &self.paths {
            let Some((of, rest)) = self.type_of(from, path) else { continue };
            if let [name, ..] = &rest[..]
                && let Some(to) = methods.outside(&of, name)
            {
                needs(from, to, &|| place(path, from));
            }
        }
        for (from, called, to) in methods.calls() {
            needs(from, to, &|| {
                format!("a call of `{called}` of `{}` in `{}`", to.join("::"), from.join("::"))
            });
        }
        arcs
    }
}

/// Where a path is written.
fn place(path: &[String], module: &Module) -> String {
    format!("`{}` in `{}`", path.join("::"), module.join("::"))
}

/// A path from the root of the crate, if it is written with `crate`, `self` or `super`.
fn absolute(from: &Module, path: &[String]) -> Option<Module> {
    let supers = path.iter().take_while(|name| *name == "super").count();
    let base = match path.first()?.as_str() {
        "crate" => &[],
        "self" => &from[..],
        "super" => &from[..from.len().checked_sub(supers)?],
        _ => return None,
    };
    Some(base.iter().chain(&path[supers.max(1)..]).cloned().collect())
}

fn joined(module: &Module, name: &str) -> Module {
    let mut path = module.clone();
    path.push(name.to_owned());
    path
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// If this is the `(in path)` of a visibility. It says who may use the item, and uses nothing itself.
fn is_restriction(group: &Group) -> bool {
    matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(name)) if name == "in")
}

/// Tests may name everything.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attr| {
        attr.path().is_ident("cfg") && attr.meta.to_token_stream().to_string().replace(' ', "") == "cfg(test)"
    })
}

fn defines(item: &Item) -> Option<String> {
    Some(
        match item {
            Item::Const(item) => &item.ident,
            Item::Enum(item) => &item.ident,
            Item::Fn(item) => &item.sig.ident,
            Item::Macro(item) => item.ident.as_ref()?,
            Item::Static(item) => &item.ident,
            Item::Struct(item) => &item.ident,
            Item::Trait(item) => &item.ident,
            Item::Type(item) => &item.ident,
            _ => return None,
        }
        .to_string(),
    )
}

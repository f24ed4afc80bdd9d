//! Texts name what exists: messages, helps, doc comments, the pages under `docs/` and the README.
//!
//! A path such as `Error::Shape` or `ops::linear`, or a call such as `cx.read(…)`, is looked up in the sources.

#[path = "../../runtime/tests/common/operations.rs"]
mod pinned;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    ImplItem, Item, LitStr, ReturnType, Type,
    visit::{self, Visit},
};

/// Crates whose texts users see.
const CRATES: [&str; 3] = ["runtime/src", "macros/src", "examples/src"];

/// The type that a variable of this name has in our texts.
const RECEIVERS: [(&str, &str); 3] = [("rt", "Runtime"), ("step", "Step"), ("cx", "Eager")];

/// Types that have the methods of another one, by `Deref`.
const LIKE: [(&str, &str); 2] = [("Step", "Eager"), ("Scalar", "Tensor")];

/// Names that stand for a user's own.
const OF_USERS: [&str; 1] = ["Model"];

/// Pages that quote other projects' names throughout.
const FOREIGN: [&str; 1] = ["misuse.md"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every file with this extension below a folder.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn parse(path: &Path) -> syn::File {
    let text = fs::read_to_string(path).unwrap();
    syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The tokens of a file, comments of documentation among them as attributes.
fn tokens(path: &Path) -> TokenStream {
    fs::read_to_string(path).unwrap().parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// What the sources define.
#[derive(Default)]
struct Names {
    /// Types that are ours.
    types: BTreeSet<String>,
    /// Variants, fields, methods, constants by type.
    members: BTreeMap<String, BTreeSet<String>>,
    /// What `graphable::` has at its root.
    root: BTreeSet<String>,
    /// What `ops::` has.
    ops: BTreeSet<String>,
}

/// For all tests, which take most of their time to parse the sources.
static NAMES: LazyLock<Names> = LazyLock::new(Names::of_the_sources);

impl Names {
    fn of_the_sources() -> Self {
        let mut names = Self::default();
        for folder in CRATES {
            for path in files(&root().join(folder), "rs") {
                let file = parse(&path);
                names.visit_file(&file);
                names.of_macros(&file);
                names.root.extend(targets(&fs::read_to_string(&path).unwrap()));
            }
        }
        names.root.extend(public(&parse(&root().join("runtime/src/lib.rs"))));
        names.root.extend(public(&parse(&root().join("macros/src/lib.rs"))));
        names.ops = public(&parse(&root().join("runtime/src/ops/mod.rs")));
        names
    }

    fn define(&mut self, name: &syn::Ident) -> &mut BTreeSet<String> {
        self.types.insert(name.to_string());
        self.members.entry(name.to_string()).or_default()
    }

    /// Functions in the tokens of a file's macros belong to every type that these tokens name.
    fn of_macros(&mut self, file: &syn::File) {
        let (mut functions, mut types) = (BTreeSet::new(), BTreeSet::new());
        let mut before = String::new();
        let macros = file.items.iter().filter_map(|item| match item {
            Item::Macro(m) => Some(m.mac.tokens.clone()),
            _ => None,
        });
        idents(macros.collect(), &mut |ident| {
            if before == "fn" {
                functions.insert(ident.to_owned());
            }
            if ident.starts_with(char::is_uppercase) && ident.len() > 1 {
                types.insert(ident.to_owned());
            }
            ident.clone_into(&mut before);
        });
        for name in types {
            self.members.entry(name).or_default().extend(functions.iter().cloned());
        }
    }

    fn has(&self, owner: &str, name: &str) -> bool {
        let own = |owner: &str| self.members.get(owner).is_some_and(|m| m.contains(name));
        own(owner) || LIKE.iter().any(|(other, like)| *other == owner && own(like))
    }

    /// The paths and calls of a text that nothing has, unless the text says so: "there is no `cx.out`".
    fn missing(&self, text: &str) -> Vec<String> {
        let pieces: Vec<&str> = text.split('`').collect();
        let spans = pieces.windows(2).step_by(2).filter(|pair| !pair[0].ends_with("there is no "));
        spans.flat_map(|pair| self.missing_in(pair[1])).collect()
    }

    fn missing_in(&self, span: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        for (path, calls) in paths(span) {
            let wrong_path = match &path[..] {
                ["graphable", name, ..] if !self.root.contains(*name) => true,
                // `ops::f` is any of them.
                [.., "ops", name] if name.starts_with(char::is_lowercase) && name.len() > 1 => {
                    !self.ops.contains(*name)
                }
                // Of another crate or module, unless it is ours.
                [first, .., owner, _]
                    if first.starts_with(char::is_lowercase) && *first != "graphable" && *owner != "ops" =>
                {
                    false
                }
                [.., owner, name] if self.types.contains(*owner) && !OF_USERS.contains(owner) => {
                    !self.has(owner, name)
                }
                _ => false,
            };
            if wrong_path {
                wrong.push(path.join("::"));
            }
            for (receiver, method) in calls {
                let known = RECEIVERS.iter().find(|(name, _)| *name == receiver);
                if known.is_some_and(|(_, owner)| !self.has(owner, method)) {
                    wrong.push(format!("{receiver}.{method}()"));
                }
            }
        }
        wrong
    }
}

/// What follows `graphable::` in the targets of `tracing` events and spans.
fn targets(text: &str) -> impl Iterator<Item = String> {
    let after = text.split(r#"target: "graphable::"#).skip(1);
    after.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()))
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Enum(e) => {
                let variants: Vec<String> = e.variants.iter().map(|v| v.ident.to_string()).collect();
                self.define(&e.ident).extend(variants.into_iter().chain(derived(&e.attrs)));
            }
            Item::Struct(s) => {
                let fields: Vec<String> =
                    s.fields.iter().filter_map(|f| Some(f.ident.as_ref()?.to_string())).collect();
                self.define(&s.ident).extend(fields.into_iter().chain(derived(&s.attrs)));
            }
            Item::Trait(t) => {
                let names: Vec<String> = t.items.iter().filter_map(trait_item).collect();
                self.define(&t.ident).extend(names);
            }
            Item::Impl(block) => {
                if let Some(owner) = last_segment(&block.self_ty) {
                    let names: Vec<String> = block.items.iter().filter_map(impl_item).collect();
                    self.members.entry(owner).or_default().extend(names);
                }
            }
            _ => {}
        }
        visit::visit_item(self, item);
    }
}

/// What `#[derive]` adds that texts name.
fn derived(attrs: &[syn::Attribute]) -> Option<String> {
    let derives = attrs.iter().filter(|a| a.path().is_ident("derive"));
    let defaults = derives.into_iter().any(|a| a.to_token_stream().to_string().contains("Default"));
    defaults.then(|| "default".to_owned())
}

fn trait_item(item: &syn::TraitItem) -> Option<String> {
    Some(match item {
        syn::TraitItem::Fn(f) => f.sig.ident.to_string(),
        syn::TraitItem::Const(c) => c.ident.to_string(),
        syn::TraitItem::Type(t) => t.ident.to_string(),
        _ => return None,
    })
}

fn impl_item(item: &ImplItem) -> Option<String> {
    Some(match item {
        ImplItem::Fn(f) => f.sig.ident.to_string(),
        ImplItem::Const(c) => c.ident.to_string(),
        ImplItem::Type(t) => t.ident.to_string(),
        _ => return None,
    })
}

fn last_segment(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        Type::Reference(reference) => last_segment(&reference.elem),
        _ => None,
    }
}

/// The names that a module makes public: its own items and what it takes from others.
fn public(file: &syn::File) -> BTreeSet<String> {
    fn leaves(tree: &syn::UseTree, found: &mut BTreeSet<String>) {
        match tree {
            syn::UseTree::Path(path) => leaves(&path.tree, found),
            syn::UseTree::Name(name) => drop(found.insert(name.ident.to_string())),
            syn::UseTree::Rename(name) => drop(found.insert(name.rename.to_string())),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, found)),
            syn::UseTree::Glob(_) => {}
        }
    }
    let mut found = BTreeSet::new();
    for item in &file.items {
        match item {
            Item::Use(item) if matches!(item.vis, syn::Visibility::Public(_)) => {
                leaves(&item.tree, &mut found)
            }
            Item::Mod(item) if matches!(item.vis, syn::Visibility::Public(_)) => {
                found.insert(item.ident.to_string());
            }
            Item::Fn(item) => drop(found.insert(item.sig.ident.to_string())),
            // A target of logging, and spans of one.
            _ => {}
        }
    }
    found
}

/// Every identifier of a token stream, in order.
fn idents(tokens: TokenStream, each: &mut impl FnMut(&str)) {
    for tree in tokens {
        match tree {
            TokenTree::Ident(ident) => each(ident.to_string().trim_start_matches("r#")),
            TokenTree::Group(group) => idents(group.stream(), each),
            _ => {}
        }
    }
}

/// Every string of a token stream: messages and doc comments alike.
fn strings(tokens: TokenStream, found: &mut Vec<String>) {
    for tree in tokens {
        match tree {
            TokenTree::Literal(literal) => {
                if let Ok(text) = syn::parse2::<LitStr>(TokenTree::from(literal).into()) {
                    found.push(text.value());
                }
            }
            TokenTree::Group(group) => strings(group.stream(), found),
            _ => {}
        }
    }
}

/// A path, and the calls `receiver.method(` behind it.
type Named<'a> = (Vec<&'a str>, Vec<(&'a str, &'a str)>);

/// The paths of a piece of code, and the calls `receiver.method(`.
fn paths(code: &str) -> Vec<Named<'_>> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find(|c: char| c.is_alphabetic() || c == '_') {
        let mut path = Vec::new();
        let mut calls = Vec::new();
        rest = &rest[start..];
        loop {
            let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
            path.push(&rest[..end]);
            rest = &rest[end..];
            match rest.strip_prefix("::").filter(|r| r.starts_with(|c: char| c.is_alphabetic() || c == '_')) {
                Some(more) => rest = more,
                None => break,
            }
        }
        if let Some(after) = rest.strip_prefix('.')
            && path.len() == 1
        {
            let end = after.find(|c| !word(c)).unwrap_or(after.len());
            if after[end..].starts_with('(') && end > 0 {
                calls.push((path[0], &after[..end]));
            }
        }
        found.push((path, calls));
    }
    found
}

/// A page without its blocks of code, which are compiled or pinned elsewhere. Where the first column of its tables is
/// another project's, that is left out, too.
fn prose(name: &str, page: &str) -> String {
    let text = page.split("\n```").step_by(2).collect::<Vec<_>>().join("\n");
    let own = |line: &str| match line.strip_prefix("| ").and_then(|row| row.split_once(" | ")) {
        Some((_, rest)) if name.starts_with("from-") => rest.to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(own).collect::<Vec<_>>().join("\n")
}

#[test]
fn messages_and_comments_name_what_exists() {
    let names = &*NAMES;
    let mut wrong = Vec::new();
    let mut count = 0;
    for folder in CRATES {
        for path in files(&root().join(folder), "rs") {
            let mut texts = Vec::new();
            strings(tokens(&path), &mut texts);
            for text in texts {
                count += text.matches('`').count() / 2;
                let missing = names.missing(&text);
                wrong.extend(missing.iter().map(|m| format!("{}: `{m}` in: {text}", path.display())));
            }
        }
    }
    assert!(count > 1000, "only {count} pieces of code in texts");
    assert!(wrong.is_empty(), "not there:\n{}", wrong.join("\n"));
}

/// The command of CONTRIBUTING.md that looks for private terms, with `grep` in place of `git grep`: a package has no repository.
#[test]
fn private_terms_that_were_replaced_are_gone() {
    let page = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let (_, command) = page.split_once("git grep -wE '").expect("the command");
    let (pattern, rest) = command.split_once('\'').expect("its pattern");
    let folders = rest.strip_prefix(" -- ").and_then(|rest| rest.split_once(" |")).expect("its folders").0;
    let found = |pattern: &str, folders: &str| {
        let mut grep = Command::new("grep");
        let output =
            grep.args(["-rwE", pattern]).args(folders.split(' ')).current_dir(root()).output().unwrap();
        assert!(output.status.code().is_some_and(|code| code < 2), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(found(pattern, folders), "", "write the field's word: CONTRIBUTING.md, Words");
    assert!(found(pattern, "CONTRIBUTING.md").contains("Verdict"), "the pattern finds its own words");
}

#[test]
fn pages_name_what_exists() {
    let names = &*NAMES;
    let mut pages = files(&root().join("docs"), "md");
    pages.push(root().join("README.md"));
    pages.push(root().join("CHANGELOG.md"));
    pages.push(root().join("CONTRIBUTING.md"));
    let mut wrong = Vec::new();
    for path in pages {
        let name = path.file_name().unwrap().to_string_lossy();
        if FOREIGN.contains(&&*name) {
            continue;
        }
        let missing = names.missing(&prose(&name, &fs::read_to_string(&path).unwrap()));
        wrong.extend(missing.iter().map(|m| format!("{}: `{m}`", path.display())));
    }
    assert!(wrong.is_empty(), "not there:\n{}", wrong.join("\n"));
}

#[test]
fn what_is_not_there_is_found() {
    let names = &*NAMES;
    for text in [
        "`Error::Dims`",
        "launch on `cx.stream()` in a region",
        "`ops::scattered`",
        "`graphable::Tensors`",
        "`rt.trees()`, then",
        "`Schedule::upto(3)`",
        "`Param::reshape`",
    ] {
        assert_eq!(names.missing(text).len(), 1, "{text}");
    }
    let there = "there is no `cx.out()`, `Error::DimsDisagree`, `cx.cuda_stream()`, `step.read(&x)?`, `ops::linear(&x, &w)`, `graphable::ops::linear`, \
                 `Param::new`, `std::mem::forget(x)`, `KeptTensor`, `Mode::Full`, `rt.tree()`";
    assert_eq!(names.missing(there), [""; 0]);
}

/// Functions of `ops`, and the type each returns.
fn operations() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let listed = public(&parse(&root().join("runtime/src/ops/mod.rs")));
    for path in files(&root().join("runtime/src/ops"), "rs") {
        for item in parse(&path).items {
            if let Item::Fn(function) = item
                && matches!(function.vis, syn::Visibility::Public(_))
                && listed.contains(&function.sig.ident.to_string())
                && let ReturnType::Type(_, ty) = &function.sig.output
            {
                found.insert(
                    function.sig.ident.to_string(),
                    ty.to_token_stream().to_string().replace(' ', ""),
                );
            }
        }
    }
    assert!(found.len() > 40, "only {} operations", found.len());
    found
}

/// Operations whose bodies call a function of this name.
fn callers_of(called: &str) -> Vec<String> {
    let mut callers = Vec::new();
    for path in files(&root().join("runtime/src/ops"), "rs") {
        for item in parse(&path).items {
            let Item::Fn(function) = item else { continue };
            let mut calls = false;
            let mut before = String::new();
            idents(function.block.to_token_stream(), &mut |ident| {
                calls |= ident == called && before != "fn";
                ident.clone_into(&mut before);
            });
            if calls && matches!(function.vis, syn::Visibility::Public(_)) {
                callers.push(function.sig.ident.to_string());
            }
        }
    }
    callers
}

/// The tables of element-wise operations and comparisons cannot leave theirs out; all others have one in their comment.
#[test]
fn every_operation_has_an_example() {
    let mut without = Vec::new();
    for path in files(&root().join("runtime/src/ops"), "rs") {
        for item in parse(&path).items {
            if let Item::Fn(function) = item
                && matches!(function.vis, syn::Visibility::Public(_))
            {
                let mut comment = Vec::new();
                function.attrs.iter().for_each(|a| strings(a.to_token_stream(), &mut comment));
                let example = comment.iter().any(|line| line.trim() == "```");
                let runs =
                    !comment.iter().any(|line| line.contains("```ignore") || line.contains("```no_run"));
                if !example || !runs {
                    without.push(function.sig.ident.to_string());
                }
            }
        }
    }
    assert!(without.is_empty(), "no example: {without:?}");
}

/// The comments of the functions of `ops`: of items, and of rows of the tables that macros make functions of.
fn comments_of_operations() -> BTreeMap<String, Vec<String>> {
    fn rows(tokens: TokenStream, found: &mut BTreeMap<String, Vec<String>>) {
        let mut comment = Vec::new();
        for tree in tokens {
            match tree {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {}
                TokenTree::Group(group) if group.delimiter() == proc_macro2::Delimiter::Bracket => {
                    strings(group.stream(), &mut comment);
                }
                TokenTree::Ident(ident) if !comment.is_empty() => {
                    found.entry(ident.to_string()).or_default().push(comment.concat());
                    comment.clear();
                }
                _ => comment.clear(),
            }
        }
    }
    let mut found = BTreeMap::new();
    for path in files(&root().join("runtime/src/ops"), "rs") {
        for item in parse(&path).items {
            match item {
                Item::Fn(function) if matches!(function.vis, syn::Visibility::Public(_)) => {
                    let mut comment = Vec::new();
                    function.attrs.iter().for_each(|a| strings(a.to_token_stream(), &mut comment));
                    found
                        .entry(function.sig.ident.to_string())
                        .or_insert_with(Vec::new)
                        .push(comment.join("\n"));
                }
                // Not the definition of a macro.
                Item::Macro(item) if item.ident.is_none() => rows(item.mac.tokens, &mut found),
                _ => {}
            }
        }
    }
    found
}

/// What an operation corresponds to: a path of PyTorch, a library whose name everyone knows, or a paper.
const REFERENCES: [&str; 5] = ["`torch.", "PyTorch's `", "`transformers`", "vLLM", "<https://"];

#[test]
fn every_operation_names_what_it_corresponds_to() {
    let comments = comments_of_operations();
    let mut without = Vec::new();
    for name in pinned::names() {
        let of = comments.get(name).unwrap_or_else(|| panic!("no comment of `ops::{name}` is found"));
        if !of.iter().any(|comment| REFERENCES.iter().any(|reference| comment.contains(reference))) {
            without.push(name);
        }
    }
    assert!(without.is_empty(), "no comment names PyTorch's function, or the paper or library: {without:?}");
}

/// A path of PyTorch in a comment of an operation is one that it has. In-place methods are not in the list.
#[test]
fn functions_of_pytorch_that_comments_name_exist() {
    let names: BTreeSet<&str> = include_str!("torch/names.txt").lines().collect();
    let mut unknown = Vec::new();
    for (operation, comments) in comments_of_operations() {
        for span in comments.iter().flat_map(|comment| comment.split('`').skip(1).step_by(2)) {
            let path =
                ["torch.nn.functional.", "torch.Tensor."].iter().find_map(|start| span.strip_prefix(start));
            if path.is_some_and(|name| !name.ends_with('_') && !names.contains(name)) {
                unknown.push((operation.clone(), span.to_owned()));
            }
        }
    }
    assert!(unknown.is_empty(), "PyTorch has no such function: {unknown:?}");
}

/// Whether a name in backticks, which may end with `*` or have one in it, is this one.
fn stands_for(written: &str, name: &str) -> bool {
    match written.split_once('*') {
        None => written == name,
        Some((start, end)) => {
            let rest = name.strip_prefix(start).unwrap_or_default();
            name.starts_with(start) && rest.ends_with(end)
        }
    }
}

/// `torch/names.py` makes the list. A row may say that there is no such operation here.
#[test]
fn every_operation_of_pytorch_is_in_the_table() {
    let page = fs::read_to_string(root().join("docs/OPERATIONS.md")).unwrap();
    let first_columns = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let written: Vec<&str> = first_columns.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let missing = |name: &&str| !written.iter().any(|written| stands_for(written, name));
    let names: Vec<&str> = include_str!("torch/names.txt").lines().collect();
    assert!(names.len() > 500, "{} names", names.len());
    let missing: Vec<&str> = names.into_iter().filter(missing).collect();
    assert!(missing.is_empty(), "not in the first column of a table of docs/OPERATIONS.md: {missing:?}");
    assert!(!stands_for("avg_pool*", "max_pool1d") && stands_for("multi*_loss", "multi_margin_loss"));
}

/// What writes is listed in the first lines of `ops`, and in ARCHITECTURE.md.
#[test]
fn operations_that_write_are_listed() {
    let mut writes: BTreeSet<String> =
        operations().into_iter().filter(|(_, ty)| ty == "Result<()>").map(|(name, _)| name).collect();
    assert!(writes.contains("rope_scatter"), "{writes:?}");
    // Those that have a result as well store what they write.
    writes.extend(callers_of("store"));
    assert!(writes.contains("batch_norm_training"), "{writes:?}");
    let spans = |text: &str| -> BTreeSet<String> {
        text.split('`').skip(1).step_by(2).map(|s| s.trim_start_matches("ops::").to_owned()).collect()
    };
    let architecture = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let (_, list) = architecture.split_once("stable address. Only ").expect("the list");
    let (list, _) = list.split_once("write").expect("its end");
    assert_eq!(spans(list), writes, "docs/ARCHITECTURE.md");
    let module = fs::read_to_string(root().join("runtime/src/ops/mod.rs")).unwrap();
    let (_, list) = module.split_once("side effects, except ").expect("the list");
    let (list, _) = list.split_once("which").expect("its end");
    assert_eq!(spans(list), writes, "runtime/src/ops/mod.rs");
}

/// The names in a constant of a file.
fn list(file: &str, constant: &str) -> BTreeSet<String> {
    let file = parse(&root().join(file));
    let list = file.items.iter().find_map(|item| match item {
        Item::Const(c) if c.ident == constant => Some(c.expr.to_token_stream()),
        _ => None,
    });
    let mut names = Vec::new();
    strings(list.expect("the list"), &mut names);
    names.into_iter().collect()
}

/// The macro's list of methods that return a size or a type has all of those of our tensors, and no other.
#[test]
fn methods_of_sizes_are_known_to_the_macro() {
    let mut methods = BTreeSet::new();
    for file in ["tensor/mod.rs", "tensor/persistent.rs", "host/ragged.rs"] {
        for item in parse(&root().join("runtime/src").join(file)).items {
            let Item::Impl(item) = item else { continue };
            for item in item.items {
                let ImplItem::Fn(method) = item else { continue };
                let ReturnType::Type(_, ty) = &method.sig.output else { continue };
                let ty = ty.to_token_stream().to_string().replace(' ', "");
                let is_number =
                    ["Shape<'s>", "Dim<'s>", "&[usize]", "usize", "DType", "bool"].contains(&&*ty);
                if is_number
                    && method.sig.receiver().is_some()
                    && matches!(method.vis, syn::Visibility::Public(_))
                {
                    methods.insert(method.sig.ident.to_string());
                }
            }
        }
    }
    // These are about memory, of which a recording depends on the answer.
    for of_memory in ["same_memory", "storages"] {
        assert!(methods.remove(of_memory), "{of_memory}");
    }
    assert_eq!(list("macros/src/facts/sizes.rs", "SIZES"), methods);
}

/// The macro's list of operations that do not return a tensor is complete.
#[test]
fn operations_without_a_tensor_are_known_to_the_macro() {
    let known = list("macros/src/facts/operations.rs", "NO_TENSOR");
    let other = |ty: &str| !ty.starts_with("Result<Tensor<") && !ty.starts_with("Result<Scalar<");
    let expected: BTreeSet<String> =
        operations().into_iter().filter(|(_, ty)| other(ty)).map(|(name, _)| name).collect();
    assert_eq!(known, expected);
}

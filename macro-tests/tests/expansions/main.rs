//! What the macros write for a handful of items, pinned: a person can read there what a driver does.
//!
//! `GRAPHABLE_BLESS=1 cargo test -p macro-tests --test expansions` writes `cases/*.expanded.rs` anew; read
//! what it wrote.

use std::{fs, path::Path};

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Expr, File, Item,
    visit_mut::{self, VisitMut},
};

const HEAD: &str = "\
// Pinned by macro-tests/tests/expansions. `p::` stands for `::graphable::__private::`, `site!(n)` for the
// place of the n-th segment or boundary in the source.
";

/// What the macro that `item` has makes of it.
fn expand(item: &str) -> TokenStream {
    let mut item: Item = syn::parse_str(item).expect("a case is one item");
    let attrs: &mut Vec<Attribute> = match &mut item {
        Item::Fn(i) => &mut i.attrs,
        Item::Impl(i) => &mut i.attrs,
        Item::Struct(i) => &mut i.attrs,
        _ => panic!("no case of this kind"),
    };
    let macros = |a: &Attribute| ["graphable", "derive", "kernel"].iter().any(|name| a.path().is_ident(name));
    let at = attrs.iter().position(macros).expect("a case has a macro");
    let attr = attrs.remove(at);
    if attr.path().is_ident("derive") {
        return macro_tests::derive_params(item.into_token_stream());
    }
    if attr.path().is_ident("kernel") {
        return macro_tests::kernel(TokenStream::new(), item.into_token_stream());
    }
    let args = attr.meta.require_list().map(|list| list.tokens.clone()).unwrap_or_default();
    macro_tests::graphable(args, item.into_token_stream())
}

/// Folds what fills the page and says nothing.
struct Fold;

impl VisitMut for Fold {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if let Expr::Reference(reference) = &*expr
            && let Expr::Struct(site) = &*reference.expr
            && site.path.segments.last().is_some_and(|s| s.ident == "Site")
        {
            let index = quote::format_ident!("index");
            let index = site.fields.iter().find(|f| f.member == syn::Member::Named(index.clone()));
            let index = index.map(|f| &f.expr);
            *expr = syn::parse2(quote!(site!(#index))).expect("a macro call");
            return;
        }
        // `<<Result<…> as p::TryError>::Error as p::UserError>::of`, the same everywhere in a function.
        if let Expr::Path(path) = expr
            && path.path.segments.iter().any(|s| s.ident == "UserError")
        {
            path.qself = None;
        }
        visit_mut::visit_expr_mut(self, expr);
    }
}

/// With `p` for the path of the runtime's private part, which every second line would name.
fn shortened(tokens: TokenStream) -> TokenStream {
    let long: Vec<String> = quote!(::graphable::__private).into_iter().map(|t| t.to_string()).collect();
    let mut rest: Vec<TokenTree> = Vec::new();
    for token in tokens {
        rest.push(match token {
            TokenTree::Group(g) => Group::new(g.delimiter(), shortened(g.stream())).into(),
            other => other,
        });
        let at = rest.len().saturating_sub(long.len());
        if rest[at..].iter().map(ToString::to_string).eq(long.iter().cloned()) {
            rest.truncate(at);
            rest.extend(quote!(p));
        }
    }
    rest.into_iter().collect()
}

/// The expansion as it is pinned. Where the case begins with `// functions only`, what stands beside the
/// functions is left out: one case shows it.
fn pinned(case: &str) -> String {
    let mut file: File = syn::parse2(shortened(expand(case))).expect("an expansion is Rust");
    if case.starts_with("// functions only") {
        file.items.retain(|item| match item {
            Item::Fn(_) => true,
            Item::Impl(i) => i.items.iter().any(|i| matches!(i, syn::ImplItem::Fn(f) if is_driver(f))),
            _ => false,
        });
    }
    Fold.visit_file_mut(&mut file);
    format!("{HEAD}\n{}", prettyplease::unparse(&file))
}

/// Whether a method was written by the user, and is no sibling's.
fn is_driver(f: &syn::ImplItemFn) -> bool {
    f.block.to_token_stream().to_string().contains("NeedsPiecewise :: open")
}

#[test]
fn expansions_are_as_pinned() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expansions/cases");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".expanded.rs"))
        .collect();
    names.sort();
    assert!(names.len() >= 6, "only {names:?}");
    let mut changed = Vec::new();
    for name in names {
        let got = pinned(&fs::read_to_string(folder.join(&name)).unwrap());
        let file = folder.join(name.replace(".rs", ".expanded.rs"));
        if std::env::var_os("GRAPHABLE_BLESS").is_some() {
            fs::write(&file, &got).unwrap();
        } else if fs::read_to_string(&file).ok().as_deref() != Some(got.as_str()) {
            println!("{} would be\n{got}", file.display());
            changed.push(name);
        }
    }
    assert!(changed.is_empty(), "{changed:?} expand to something else; see above, and the head of this file");
}

#[test]
fn host_code_fits_on_a_page() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expansions/cases");
    for name in ["layers", "branches", "method"] {
        let text = fs::read_to_string(folder.join(format!("{name}.expanded.rs"))).unwrap();
        let lines = text.lines().count();
        assert!(lines <= 130, "{name}: {lines} lines");
    }
}

//! Names, patterns and places, as they are written.

use std::collections::{BTreeSet, HashSet};

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{
    Attribute, BinOp, Expr, ExprField, Ident, Item, Local, Member, Pat, Stmt, UnOp, UseTree,
    visit::{self, Visit},
};

/// Without parentheses and groups.
pub(crate) fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(p) => bare(&p.expr),
        Expr::Group(g) => bare(&g.expr),
        other => other,
    }
}

/// A name that a pattern binds.
#[derive(Clone)]
pub(crate) struct Bound {
    pub(crate) ident: Ident,
    pub(crate) mutable: bool,
    pub(crate) by_ref: bool,
}

/// Returns whether an attribute is a `#[cfg]`, or may become one.
pub(crate) fn is_condition(a: &Attribute) -> bool {
    let has_condition = || identifiers(a.to_token_stream()).contains("cfg");
    a.path().is_ident("cfg") || a.path().is_ident("cfg_attr") && has_condition()
}

/// The names that a pattern binds which may not match. A single capitalised name is a constant or a
/// unit variant.
pub(crate) fn bound(pat: &Pat) -> Vec<Bound> {
    names(pat, true)
}

/// The names that a pattern binds which always matches: capitalised ones as well.
pub(crate) fn bound_always(pat: &Pat) -> Vec<Bound> {
    names(pat, false)
}

/// The names that a `let` binds. One under a condition, which remains among the tokens of a macro alone, may bind nothing.
pub(crate) fn bound_by_let(local: &Local) -> Vec<Bound> {
    if local.attrs.iter().any(is_condition) {
        return Vec::new();
    }
    names(&local.pat, local.init.as_ref().is_some_and(|i| i.diverge.is_some()))
}

fn names(pat: &Pat, refutable: bool) -> Vec<Bound> {
    struct Names {
        refutable: bool,
        found: Vec<Bound>,
    }
    impl<'a> Visit<'a> for Names {
        fn visit_field_pat(&mut self, field: &'a syn::FieldPat) {
            if !field.attrs.iter().any(is_condition) {
                visit::visit_field_pat(self, field);
            }
        }
        fn visit_pat_type(&mut self, p: &'a syn::PatType) {
            if !p.attrs.iter().any(is_condition) {
                visit::visit_pat_type(self, p);
            }
        }
        fn visit_pat_ident(&mut self, p: &'a syn::PatIdent) {
            if p.attrs.iter().any(is_condition) {
                return;
            }
            let constant = self.refutable
                && p.subpat.is_none()
                && p.mutability.is_none()
                && p.by_ref.is_none()
                && p.ident.to_string().starts_with(char::is_uppercase);
            if !constant {
                self.found.push(Bound {
                    ident: p.ident.clone(),
                    mutable: p.mutability.is_some() && p.by_ref.is_none(),
                    by_ref: p.by_ref.is_some(),
                });
            }
            visit::visit_pat_ident(self, p);
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut names = Names { refutable, found: Vec::new() };
    names.visit_pat(pat);
    names.found
}

/// `x` of `x`, when the expression is one plain name.
pub(crate) fn plain_name(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Path(p) if p.qself.is_none() && p.attrs.is_empty() => p.path.get_ident(),
        Expr::Paren(p) => plain_name(&p.expr),
        Expr::Group(g) => plain_name(&g.expr),
        _ => None,
    }
}

/// The values that an `if`, a `match` or a block may have.
pub(crate) fn tails(expr: &Expr) -> Vec<&Expr> {
    fn of_block(block: &syn::Block) -> Vec<&Expr> {
        match block.stmts.last() {
            Some(Stmt::Expr(value, None)) => tails(value),
            _ => Vec::new(),
        }
    }
    match expr {
        Expr::If(e) => {
            let mut all = of_block(&e.then_branch);
            all.extend(e.else_branch.iter().flat_map(|(_, other)| tails(other)));
            all
        }
        Expr::Match(e) => e.arms.iter().flat_map(|arm| tails(&arm.body)).collect(),
        Expr::Block(e) => of_block(&e.block),
        other => vec![other],
    }
}

/// Returns whether an operator only reads its operands.
pub(crate) fn compares(op: &BinOp) -> bool {
    matches!(op, BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_))
}

/// `(x, ["a", "b"])` of `x.a.b`.
pub(crate) fn field_path(expr: &ExprField) -> Option<(&Ident, Vec<String>)> {
    let member = match &expr.member {
        Member::Named(n) => n.to_string(),
        Member::Unnamed(i) => i.index.to_string(),
    };
    match &*expr.base {
        Expr::Field(inner) => {
            let (base, mut path) = field_path(inner)?;
            path.push(member);
            Some((base, path))
        }
        other => Some((plain_name(other)?, vec![member])),
    }
}

/// Returns the field of a variable that a path leads to.
pub(crate) fn place(base: &Ident, path: &[String]) -> TokenStream {
    let members = path.iter().map(|m| match m.parse::<u32>() {
        Ok(index) => Member::Unnamed(syn::Index { index, span: base.span() }),
        Err(_) => Member::Named(format_ident!("{m}", span = base.span())),
    });
    quote!(#base #(.#members)*)
}

/// The innermost name of a place such as `x.a[i].b`.
pub(crate) fn place_base(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Field(f) => place_base(&f.base),
        Expr::Index(i) => place_base(&i.expr),
        Expr::Paren(p) => place_base(&p.expr),
        Expr::Unary(u) if matches!(u.op, UnOp::Deref(_)) => place_base(&u.expr),
        other => plain_name(other),
    }
}

/// Returns whether an operator assigns to its left side.
pub(crate) fn is_assign(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}

/// The names that a top-level statement binds.
pub(crate) fn bound_by(stmt: &Stmt) -> Vec<Bound> {
    match stmt {
        Stmt::Local(l) => bound_by_let(l),
        _ => Vec::new(),
    }
}

/// The names that patterns inside an expression bind, at any depth, if they do not look like constants.
pub(crate) fn bound_inside(expr: &Expr) -> HashSet<String> {
    struct All(HashSet<String>);
    impl<'a> Visit<'a> for All {
        fn visit_pat(&mut self, pat: &'a Pat) {
            self.0.extend(bound(pat).into_iter().map(|b| b.ident.to_string()));
        }
    }
    let mut all = All(HashSet::new());
    all.visit_expr(expr);
    all.0
}

/// Every name that statements bind somewhere inside, at any depth.
pub(crate) fn bound_anywhere<'a>(stmts: impl IntoIterator<Item = &'a Stmt>) -> HashSet<String> {
    struct All(HashSet<String>);
    impl<'a> Visit<'a> for All {
        fn visit_pat_ident(&mut self, p: &'a syn::PatIdent) {
            self.0.insert(p.ident.to_string());
            visit::visit_pat_ident(self, p);
        }
    }
    let mut all = All(HashSet::new());
    stmts.into_iter().for_each(|s| all.visit_stmt(s));
    all.0
}

/// The names of the items in blocks inside statements, at any depth. `None` if they may be any, as those of a glob import.
/// Items among the statements themselves are those of the block around, in which they mean the same everywhere.
pub(crate) fn items_inside(stmts: &[Stmt]) -> Option<HashSet<String>> {
    let mut all = Items(Some(HashSet::new()));
    stmts.iter().filter(|stmt| !matches!(stmt, Stmt::Item(_))).for_each(|stmt| all.visit_stmt(stmt));
    all.0
}

/// The names of the items among the statements of a block. `None` if they may be any.
pub(crate) fn items_among(stmts: &[Stmt]) -> Option<HashSet<String>> {
    let mut all = Items(Some(HashSet::new()));
    stmts.iter().filter(|stmt| matches!(stmt, Stmt::Item(_))).for_each(|stmt| all.visit_stmt(stmt));
    all.0
}

/// Returns whether a block may bring traits into scope, by which its method calls may mean others: it declares one, or imports a
/// name that may be that of one.
pub(crate) fn has_traits(stmts: &[Stmt]) -> bool {
    fn is_import(tree: &UseTree) -> bool {
        let is_type =
            |name: &Ident| name.to_string().trim_start_matches("r#").starts_with(char::is_uppercase);
        match tree {
            UseTree::Path(path) => is_import(&path.tree),
            UseTree::Name(name) => is_type(&name.ident),
            // `as _` too.
            UseTree::Rename(name) => is_type(&name.ident),
            UseTree::Glob(_) => true,
            UseTree::Group(group) => group.items.iter().any(is_import),
        }
    }
    stmts.iter().any(|stmt| match stmt {
        Stmt::Item(Item::Trait(_) | Item::TraitAlias(_)) => true,
        Stmt::Item(Item::Use(i)) => is_import(&i.tree),
        _ => false,
    })
}

/// Returns whether an expression may call methods: a macro in it may.
pub(crate) fn calls_methods(expr: &Expr) -> bool {
    struct Calls(bool);
    impl<'a> Visit<'a> for Calls {
        fn visit_expr_method_call(&mut self, _: &'a syn::ExprMethodCall) {
            self.0 = true;
        }
        fn visit_macro(&mut self, _: &'a syn::Macro) {
            self.0 = true;
        }
    }
    let mut calls = Calls(false);
    calls.visit_expr(expr);
    calls.0
}

/// The constants, statics and functions among the statements of a block: in all of it, no variable from outside has their names.
/// Where one is under a condition, which remains among the tokens of a macro alone, a variable may.
pub(crate) fn values_among(stmts: &[Stmt]) -> impl Iterator<Item = &Ident> {
    let named = stmts.iter().filter_map(|stmt| match stmt {
        Stmt::Item(Item::Const(i)) => Some((&i.attrs, &i.ident)),
        Stmt::Item(Item::Static(i)) => Some((&i.attrs, &i.ident)),
        Stmt::Item(Item::Fn(i)) => Some((&i.attrs, &i.sig.ident)),
        _ => None,
    });
    named.filter(|(attrs, _)| !attrs.iter().any(is_condition)).map(|(_, ident)| ident)
}

/// The names of the constants, statics and functions in blocks inside a statement, at any depth.
pub(crate) fn values_inside(stmt: &Stmt) -> HashSet<String> {
    struct All(HashSet<String>);
    impl<'a> Visit<'a> for All {
        fn visit_block(&mut self, block: &'a syn::Block) {
            self.0.extend(values_among(&block.stmts).map(ToString::to_string));
            visit::visit_block(self, block);
        }
        fn visit_item(&mut self, _: &'a Item) {}
    }
    let mut all = All(HashSet::new());
    all.visit_stmt(stmt);
    all.0
}

/// Names of items; `None` if they may be any.
struct Items(Option<HashSet<String>>);

impl Items {
    fn add(&mut self, ident: &Ident) {
        self.0.iter_mut().for_each(|names| _ = names.insert(ident.to_string()));
    }

    fn imported(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.imported(&path.tree),
            UseTree::Name(name) => self.add(&name.ident),
            UseTree::Rename(name) => self.add(&name.rename),
            UseTree::Glob(_) => self.0 = None,
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.imported(tree)),
        }
    }
}

impl<'a> Visit<'a> for Items {
    fn visit_item(&mut self, item: &'a Item) {
        match item {
            Item::Const(i) => self.add(&i.ident),
            Item::Enum(i) => self.add(&i.ident),
            Item::Fn(i) => self.add(&i.sig.ident),
            Item::Mod(i) => self.add(&i.ident),
            Item::Static(i) => self.add(&i.ident),
            Item::Struct(i) => self.add(&i.ident),
            Item::Trait(i) => self.add(&i.ident),
            Item::TraitAlias(i) => self.add(&i.ident),
            Item::Type(i) => self.add(&i.ident),
            Item::Union(i) => self.add(&i.ident),
            Item::Use(i) => self.imported(&i.tree),
            Item::ExternCrate(i) => self.add(i.rename.as_ref().map_or(&i.ident, |(_, name)| name)),
            Item::Macro(i) => i.ident.iter().for_each(|ident| self.add(ident)),
            Item::Impl(_) => {}
            _ => self.0 = None,
        }
    }
}

/// Returns the name of the variable that a statement assigns, or a part of which it does.
pub(crate) fn assigned_by(stmt: &Stmt) -> Option<String> {
    match stmt {
        Stmt::Expr(Expr::Assign(assign), _) => place_base(&assign.left).map(ToString::to_string),
        _ => None,
    }
}

/// The names with which paths in an expression begin: variables, functions, constants, modules, types and macros; and all
/// names in the calls of macros.
pub(crate) fn path_roots(expr: &Expr) -> BTreeSet<String> {
    struct Roots(BTreeSet<String>);
    impl<'a> Visit<'a> for Roots {
        fn visit_path(&mut self, path: &'a syn::Path) {
            if path.leading_colon.is_none() {
                self.0.extend(path.segments.first().map(|first| first.ident.to_string()));
            }
            visit::visit_path(self, path);
        }
        fn visit_macro(&mut self, mac: &'a syn::Macro) {
            self.0.extend(identifiers(mac.tokens.clone()));
            visit::visit_macro(self, mac);
        }
        fn visit_pat_ident(&mut self, p: &'a syn::PatIdent) {
            // It may be a constant.
            self.0.insert(p.ident.to_string());
            visit::visit_pat_ident(self, p);
        }
    }
    let mut roots = Roots(BTreeSet::new());
    roots.visit_expr(expr);
    roots.0
}

/// The identifiers in tokens.
pub(crate) fn identifiers(tokens: TokenStream) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => _ = found.insert(ident.to_string()),
            TokenTree::Group(group) => found.extend(identifiers(group.stream())),
            TokenTree::Literal(_) | TokenTree::Punct(_) => {}
        }
    }
    found
}

/// Returns the call to which a `#[piecewise]` applies, inside `?` and parentheses.
pub(crate) fn innermost_call(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::Call(_) | Expr::MethodCall(_) => Some(expr),
        Expr::Try(t) => innermost_call(&mut t.expr),
        Expr::Paren(p) => innermost_call(&mut p.expr),
        Expr::Group(g) => innermost_call(&mut g.expr),
        _ => None,
    }
}

/// Returns whether a pattern binds parts of its value with `ref mut`.
pub(crate) fn binds_mutably(pat: &Pat) -> bool {
    struct Search(bool);
    impl<'a> Visit<'a> for Search {
        fn visit_pat_ident(&mut self, p: &'a syn::PatIdent) {
            self.0 |= p.by_ref.is_some() && p.mutability.is_some();
            visit::visit_pat_ident(self, p);
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut search = Search(false);
    search.visit_pat(pat);
    search.0
}

/// Returns whether a pattern has a `_` or a `..`, other than behind a reference or a name.
pub(crate) fn leaves_part(pat: &Pat) -> bool {
    struct Leaves(bool);
    impl<'a> Visit<'a> for Leaves {
        fn visit_pat(&mut self, pat: &'a Pat) {
            match pat {
                Pat::Wild(_) | Pat::Rest(_) => self.0 = true,
                Pat::Struct(p) if p.rest.is_some() => self.0 = true,
                Pat::Reference(_) => {}
                Pat::Ident(p) if p.by_ref.is_none() => {}
                other => visit::visit_pat(self, other),
            }
        }
    }
    let mut leaves = Leaves(false);
    leaves.visit_pat(pat);
    leaves.0
}

//! Facts about the value of an expression, by its form and the names of the methods in it.

use syn::{
    Expr, Ident, Local, Pat, Stmt,
    visit::{self, Visit},
};

use super::{classify, sizes};
use crate::parse::syntax;

/// Methods whose result borrows nothing, besides numbers ([`sizes`]).
const VALUES: [&str; 16] = [
    "clone",
    "to_vec",
    "to_owned",
    "to_string",
    "sum",
    "product",
    "any",
    "all",
    "position",
    "contains",
    "pow",
    "sqrt",
    "min",
    "max",
    "div_ceil",
    "next_multiple_of",
];

/// Methods that only read their receiver, even if it is `mut`, besides those that return a number.
const READS: [&str; 9] =
    ["iter", "first", "last", "get", "clone", "contains", "as_slice", "as_ref", "chunks"];

/// Returns whether a method of this name only reads its receiver.
pub(crate) fn only_reads(method: &Ident) -> bool {
    sizes::is_number(method) || READS.iter().any(|read| method == read)
}

/// Returns whether a `let` binds a vector or an array, according to its type or its value.
pub(crate) fn binds_list(local: &Local) -> bool {
    let of_type = |t: &syn::Type| match t {
        syn::Type::Array(_) => true,
        syn::Type::Path(p) => p.path.segments.last().is_some_and(|s| s.ident == "Vec"),
        _ => false,
    };
    if let Pat::Type(t) = &local.pat {
        return of_type(&t.ty);
    }
    local.init.as_ref().is_some_and(|i| match &*i.expr {
        Expr::Array(_) => true,
        Expr::Macro(m) => m.mac.path.is_ident("vec"),
        // `Vec::new()`
        Expr::Call(c) => {
            matches!(&*c.func, Expr::Path(p) if p.path.segments.iter().rev().nth(1).is_some_and(|s| s.ident == "Vec"))
        }
        _ => false,
    })
}

/// Returns whether a pattern binds only shared references: to parts of what `expr` refers to, or to elements
/// of it.
pub(crate) fn matches_references(pat: &Pat, expr: &Expr) -> bool {
    struct Takes(bool);
    impl<'x> Visit<'x> for Takes {
        fn visit_pat_reference(&mut self, _: &'x syn::PatReference) {
            self.0 = true;
        }
        fn visit_pat_ident(&mut self, p: &'x syn::PatIdent) {
            self.0 |= p.mutability.is_some();
            visit::visit_pat_ident(self, p);
        }
    }
    let mut takes = Takes(false);
    takes.visit_pat(pat);
    !takes.0
        && matches!(expr, Expr::Reference(r) if r.mutability.is_none() && syntax::place_base(&r.expr).is_some())
}

/// Returns whether the value, or parts of it, may be the caller's own: it comes from a call, and not from a
/// method that shows elements of a list.
pub(crate) fn gives_owned(expr: &Expr) -> bool {
    const SHOW: [&str; 10] =
        ["iter", "iter_mut", "first", "last", "get", "as_ref", "as_slice", "chunks", "windows", "split_at"];
    fn shows(expr: &Expr) -> bool {
        match expr {
            Expr::MethodCall(m) => SHOW.iter().any(|name| m.method == name) || shows(&m.receiver),
            Expr::Try(e) => shows(&e.expr),
            Expr::Paren(e) => shows(&e.expr),
            _ => false,
        }
    }
    !classify::call_free(expr) && !shows(expr)
}

/// Returns whether the value is a number, which is copied, as its last step shows.
pub(crate) fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(_) => true,
        Expr::MethodCall(m) => sizes::is_owned_number(&m.method),
        Expr::Paren(e) => is_number(&e.expr),
        _ => false,
    }
}

/// Returns whether a type is one of Rust's numbers, or `bool`.
pub(crate) fn is_number_type(ty: &syn::Type) -> bool {
    const NUMBERS: [&str; 15] = [
        "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64",
        "bool",
    ];
    matches!(ty, syn::Type::Path(path) if NUMBERS.iter().any(|name| path.path.is_ident(name)))
}

/// Returns whether the value of a repeatable expression may hold references.
pub(crate) fn lends(expr: &Expr) -> bool {
    let tail = |b: &syn::Block| match b.stmts.last() {
        Some(Stmt::Expr(e, None)) => lends(e),
        _ => false,
    };
    match expr {
        Expr::Reference(_) => true,
        Expr::Lit(l) => matches!(l.lit, syn::Lit::Str(_) | syn::Lit::ByteStr(_)),
        Expr::Paren(p) => lends(&p.expr),
        Expr::Group(p) => lends(&p.expr),
        Expr::Tuple(t) => t.elems.iter().any(lends),
        Expr::Array(a) => a.elems.iter().any(lends),
        Expr::Call(c) => c.args.iter().any(lends) || !classify::call_free(expr),
        Expr::Struct(s) => s.fields.iter().any(|f| lends(&f.expr)),
        Expr::Block(b) => tail(&b.block),
        Expr::If(i) => tail(&i.then_branch) || i.else_branch.as_ref().is_some_and(|(_, e)| lends(e)),
        Expr::Match(m) => m.arms.iter().any(|a| lends(&a.body)),
        Expr::MethodCall(m) => !sizes::is_owned_number(&m.method) && !VALUES.iter().any(|v| m.method == v),
        Expr::Macro(m) => m.mac.path.is_ident("vec"),
        _ => false,
    }
}

/// Returns whether parts of the value may be `&mut`, as a `&mut` in it or the name of a method shows.
pub(crate) fn may_hold_exclusive(value: &Expr) -> bool {
    struct MutableBorrow(bool);
    impl<'a> Visit<'a> for MutableBorrow {
        fn visit_expr_reference(&mut self, e: &'a syn::ExprReference) {
            self.0 |= e.mutability.is_some();
            visit::visit_expr_reference(self, e);
        }
        fn visit_expr_method_call(&mut self, e: &'a syn::ExprMethodCall) {
            self.0 |= e.method.to_string().ends_with("_mut");
            visit::visit_expr_method_call(self, e);
        }
    }
    let mut found = MutableBorrow(false);
    found.visit_expr(value);
    found.0
}

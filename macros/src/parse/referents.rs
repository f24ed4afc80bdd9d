//! Parts of what a `&mut` refers to, which arms of `#[device]` control flow assign.
//!
//! Of `pair.l = …`, the tokens do not say whether `pair` is a struct or refers to one. Where the code around says that it is
//! a reference, the assignment is written as `(*pair).l = …`, which means the same, and all of what it refers to leaves the arm.
//! Elsewhere, the types say it when the program is compiled, and only the assigned parts leave (`Own` in the runtime).

use syn::{Block, Expr, FnArg, Ident, Local, Pat, Signature, Type, spanned::Spanned, visit_mut::VisitMut};

use super::{
    device,
    scopes::{self, Binding, Scoped, Source},
    syntax::{self, bare},
    types,
};
use crate::krate;

/// Writes such assignments with the reference followed.
pub(crate) fn written(sig: &Signature, block: &mut Block) {
    follow(sig, block);
}

/// The slices of which arms assign elements, at these places. An arm cannot have a copy of a slice.
pub(crate) fn slices(sig: &Signature, block: &Block) -> Vec<(Ident, Expr)> {
    follow(sig, &mut block.clone())
}

fn follow(sig: &Signature, block: &mut Block) -> Vec<(Ident, Expr)> {
    if !device::has_flow(block) {
        return Vec::new();
    }
    let mut referents = Referents { names: Vec::new(), arms: 0, slices: Vec::new() };
    for argument in &sig.inputs {
        if let FnArg::Typed(typed) = argument {
            referents.bind_as(&typed.pat, of_type(&typed.ty));
        }
    }
    referents.visit_block_mut(block);
    referents.slices
}

/// What a variable is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A `&mut` of one value.
    Reference,
    /// A `&mut` of a slice.
    Slice,
    /// Anything else, or not known.
    Other,
}

fn of_type(ty: &Type) -> Kind {
    match types::plain(ty) {
        Type::Reference(r) if r.mutability.is_some() => match types::plain(&r.elem) {
            Type::Slice(_) => Kind::Slice,
            _ => Kind::Reference,
        },
        _ => Kind::Other,
    }
}

fn of_value(value: &Expr) -> Kind {
    match bare(value) {
        Expr::Reference(r) if r.mutability.is_some() => match bare(&r.expr) {
            Expr::Index(i) if matches!(bare(&i.index), Expr::Range(_)) => Kind::Slice,
            _ => Kind::Reference,
        },
        _ => Kind::Other,
    }
}

/// What an iterator yields under a pattern. A reference need not be `mut` to change what it refers to, so behind
/// `for mut x in &mut iterator` are values.
fn of_items(iterator: &Expr, pat: &Pat) -> Kind {
    if matches!(pat, Pat::Ident(p) if p.mutability.is_some()) {
        return Kind::Other;
    }
    match bare(iterator) {
        Expr::MethodCall(m) if m.method == "iter_mut" || m.method == "values_mut" => Kind::Reference,
        other if of_value(other) == Kind::Reference => Kind::Reference,
        _ => Kind::Other,
    }
}

/// `x` of `Some(x)`, where the value is `….as_mut()` or `&mut …`.
fn of_option<'p>(pat: &'p Pat, value: &Expr) -> Option<&'p Pat> {
    let lent = match bare(value) {
        Expr::MethodCall(m) => ["as_mut", "last_mut", "first_mut", "get_mut"].iter().any(|n| m.method == n),
        other => of_value(other) == Kind::Reference,
    };
    match pat {
        Pat::TupleStruct(t) if lent && t.path.segments.last().is_some_and(|s| s.ident == "Some") => {
            t.elems.first().filter(|_| t.elems.len() == 1)
        }
        _ => None,
    }
}

struct Referents {
    /// The variables in scope, the last ones last.
    names: Vec<(String, Kind)>,
    /// How many arms are around.
    arms: usize,
    slices: Vec<(Ident, Expr)>,
}

impl Referents {
    /// Binds the names of a pattern; `kind` is what its value is, if that is one name.
    fn bind_as(&mut self, pat: &Pat, kind: Kind) {
        match pat {
            Pat::Ident(p) if p.by_ref.is_none() && p.subpat.is_none() => {
                self.names.push((p.ident.to_string(), kind));
            }
            Pat::Paren(p) => self.bind_as(&p.pat, kind),
            Pat::Type(t) => self.bind_as(&t.pat, of_type(&t.ty)),
            other => {
                let others = syntax::bound_always(other);
                self.names.extend(others.iter().map(|b| (b.ident.to_string(), Kind::Other)));
            }
        }
    }

    fn arm(&mut self, f: impl FnOnce(&mut Self)) {
        self.arms += 1;
        f(self);
        self.arms -= 1;
    }

    fn kind(&self, name: &Ident) -> Kind {
        self.names.iter().rev().find(|(known, _)| name == known).map_or(Kind::Other, |(_, kind)| *kind)
    }

    /// The left side of an assignment.
    fn assigned(&mut self, place: &mut Expr) {
        match place {
            Expr::Tuple(t) => t.elems.iter_mut().for_each(|e| self.assigned(e)),
            Expr::Array(a) => a.elems.iter_mut().for_each(|e| self.assigned(e)),
            Expr::Struct(s) => s.fields.iter_mut().for_each(|f| self.assigned(&mut f.expr)),
            Expr::Call(c) => c.args.iter_mut().for_each(|e| self.assigned(e)),
            Expr::Paren(p) => self.assigned(&mut p.expr),
            Expr::Group(g) => self.assigned(&mut g.expr),
            other => {
                let whole = other.clone();
                if let Expr::Field(_) | Expr::Index(_) = other {
                    self.root(other, &whole);
                }
                self.visit_expr_mut(other);
            }
        }
    }

    /// Follows the reference at the root of a place.
    fn root(&mut self, place: &mut Expr, whole: &Expr) {
        match place {
            Expr::Field(f) => self.root(&mut f.base, whole),
            Expr::Index(i) => self.root(&mut i.expr, whole),
            Expr::Paren(p) => self.root(&mut p.expr, whole),
            Expr::Group(g) => self.root(&mut g.expr, whole),
            other => {
                let Some(name) = syntax::plain_name(other).cloned() else { return };
                match self.kind(&name) {
                    Kind::Reference => {
                        let shown = krate::generated_at(other.span());
                        *other = syn::parse_quote_spanned!(shown=> (*#name));
                    }
                    Kind::Slice => self.slices.push((name, whole.clone())),
                    Kind::Other => {}
                }
            }
        }
    }

    fn flow(&mut self, expr: &mut Expr) {
        match expr {
            Expr::If(e) => {
                self.visit_expr_mut(&mut e.cond);
                self.arm(|s| {
                    s.visit_block_mut(&mut e.then_branch);
                    if let Some((_, other)) = &mut e.else_branch {
                        s.visit_expr_mut(other);
                    }
                });
            }
            Expr::While(e) => {
                self.visit_expr_mut(&mut e.cond);
                self.arm(|s| s.visit_block_mut(&mut e.body));
            }
            Expr::Match(e) => {
                self.visit_expr_mut(&mut e.expr);
                self.arm(|s| e.arms.iter_mut().for_each(|arm| s.visit_expr_mut(&mut arm.body)));
            }
            _ => {}
        }
    }
}

impl Scoped for Referents {
    type Names = usize;
    fn begin(&mut self) -> usize {
        self.names.len()
    }
    fn end(&mut self, around: usize) {
        self.names.truncate(around);
    }
    fn bind(&mut self, binding: &Binding<'_>) {
        let pat = binding.pat;
        match binding.of {
            Source::Value(value) => {
                self.bind_as(pat, of_value(value));
                if let Some(inner) = of_option(pat, value) {
                    self.bind_as(inner, Kind::Reference);
                }
            }
            Source::Items(iterator) => self.bind_as(pat, of_items(iterator, pat)),
            Source::Unknown => self.bind_as(pat, Kind::Other),
        }
    }
}

impl VisitMut for Referents {
    fn visit_block_mut(&mut self, block: &mut Block) {
        scopes::visit_block(self, block);
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        scopes::visit_local(self, local);
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if device::is_flow(expr) {
            return self.flow(expr);
        }
        match expr {
            Expr::Assign(a) if self.arms > 0 => {
                self.visit_expr_mut(&mut a.right);
                self.assigned(&mut a.left);
            }
            Expr::Binary(b) if self.arms > 0 && syntax::is_assign(&b.op) => {
                self.visit_expr_mut(&mut b.right);
                self.assigned(&mut b.left);
            }
            other => scopes::visit_expr(self, other),
        }
    }

    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

#[cfg(test)]
mod tests {
    use quote::ToTokens;

    use super::*;

    /// The body after it, and the names of slices.
    fn after(code: &str) -> (String, Vec<String>) {
        let mut f: syn::ItemFn = syn::parse_str(code).unwrap();
        let slices = slices(&f.sig, &f.block).into_iter().map(|(name, _)| name.to_string()).collect();
        written(&f.sig, &mut f.block);
        (f.block.to_token_stream().to_string(), slices)
    }

    #[test]
    fn references_are_followed_in_arms_where_the_code_says_that_they_are_some() {
        let (text, slices) = after(
            "fn f(a: &mut Pair, b: Pair, c: &Pair, d: &mut [T], e: &mut Vec<T>) {
                a.outside = 1;
                let g = &mut b.x;
                let h: &mut Pair = other();
                #[device] if p {
                    a.x = 1; b.x = 2; e[0] = 3; d[1] = 4; g.x.y = 5; (h.x, a.z) = 6; *a = 7; a = 8;
                    let a = b; a.own = 9;
                }
                for t in all.iter_mut() { #[device] while p { t.x = 10; } }
                if let Some(o) = opt.as_mut() { #[device] match n { 0 => o.x = 11, _ => { for a in list { a.own = 12; } } } }
            }",
        );
        assert_eq!(slices, ["d"]);
        for followed in [
            "(* a) . x = 1",
            "(* e) [0] = 3",
            "(* g) . x . y = 5",
            "((* h) . x , (* a) . z) = 6",
            "(* t) . x = 10",
            "(* o) . x = 11",
        ] {
            assert!(text.contains(followed), "{followed}: {text}");
        }
        for left in [
            "a . outside = 1",
            "b . x = 2",
            "d [1] = 4",
            "* a = 7",
            "; a = 8",
            "{ a . own = 12",
            "; a . own = 9",
        ] {
            assert!(text.contains(left), "{left}: {text}");
        }
    }
}

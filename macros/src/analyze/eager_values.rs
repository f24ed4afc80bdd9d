//! The names that hold host values of eager code: those that a pattern takes from such a value itself, and
//! not from a value next to it.

use std::collections::HashSet;

use syn::{Expr, Pat};

use super::Analysis;
use crate::{
    facts::{sizes, uses},
    parse::syntax,
};

/// Methods that return elements or a view of their receiver.
const PASS_ON: [&str; 24] = [
    "iter",
    "iter_mut",
    "into_iter",
    "rev",
    "skip",
    "take",
    "cloned",
    "copied",
    "step_by",
    "clone",
    "as_ref",
    "as_mut",
    "as_slice",
    "as_deref",
    "unwrap",
    "expect",
    "first",
    "last",
    "get",
    "chunks",
    "windows",
    "peekable",
    "by_ref",
    "fuse",
];

/// The origin of an expression's value.
pub(super) enum Derivation {
    Clean,
    Eager,
    Parts(Vec<Derivation>),
}

impl Derivation {
    fn any(&self) -> bool {
        match self {
            Self::Clean => false,
            Self::Eager => true,
            Self::Parts(parts) => parts.iter().any(Self::any),
        }
    }

    fn of(eager: bool) -> Self {
        if eager { Self::Eager } else { Self::Clean }
    }

    /// The names of a pattern that take a value of eager code.
    pub(super) fn names(&self, pat: &Pat) -> HashSet<String> {
        let mut names = HashSet::new();
        self.add(pat, &mut names);
        names
    }

    fn add(&self, pat: &Pat, names: &mut HashSet<String>) {
        match (self, pat) {
            (Self::Parts(parts), Pat::Tuple(t)) if t.elems.len() == parts.len() => {
                parts.iter().zip(&t.elems).for_each(|(part, p)| part.add(p, names));
            }
            (_, Pat::Reference(r)) => self.add(&r.pat, names),
            (_, Pat::Paren(p)) => self.add(&p.pat, names),
            (_, Pat::Type(t)) => self.add(&t.pat, names),
            (_, Pat::TupleStruct(t)) if t.elems.len() == 1 => self.add(&t.elems[0], names),
            _ if self.any() => names.extend(syntax::bound(pat).into_iter().map(|b| b.ident.to_string())),
            _ => {}
        }
    }
}

impl Analysis<'_, '_> {
    /// Returns the origin of an expression's value, or of the elements of an iterator.
    pub(super) fn derivation_of(&self, expr: &Expr) -> Derivation {
        match expr {
            Expr::Paren(e) => self.derivation_of(&e.expr),
            Expr::Group(e) => self.derivation_of(&e.expr),
            Expr::Reference(e) => self.derivation_of(&e.expr),
            Expr::Try(e) => self.derivation_of(&e.expr),
            Expr::Tuple(t) => Derivation::Parts(t.elems.iter().map(|e| self.derivation_of(e)).collect()),
            // An iteration count, and an element of a value that is not from eager code.
            Expr::Range(_) => Derivation::Clean,
            Expr::Index(i) => self.derivation_of(&i.expr),
            Expr::Call(c) if c.args.len() == 1 => self.derivation_of(&c.args[0]),
            Expr::MethodCall(m) => {
                let method = m.method.to_string();
                match method.as_str() {
                    "zip" if m.args.len() == 1 => Derivation::Parts(vec![
                        self.derivation_of(&m.receiver),
                        self.derivation_of(&m.args[0]),
                    ]),
                    "enumerate" => {
                        Derivation::Parts(vec![Derivation::Clean, self.derivation_of(&m.receiver)])
                    }
                    _ if sizes::is_size(&m.method) => Derivation::Clean,
                    name if PASS_ON.contains(&name) => self.derivation_of(&m.receiver),
                    _ => Derivation::of(self.is_eager_derived(&uses::of_expr(expr))),
                }
            }
            other => Derivation::of(self.is_eager_derived(&uses::of_expr(other))),
        }
    }
}

impl Analysis<'_, '_> {
    /// The names that the left side of an assignment assigns are values of eager code from here on.
    pub(super) fn mark_eager_derived(&mut self, left: &Expr) {
        for (name, u) in &uses::of_assigned(left).0 {
            if u.assigned
                && let Some(id) = self.scope.lookup(name).map(|b| b.id)
            {
                self.scope.eager_derived.insert(id);
            }
        }
    }

    /// Like [`mark_eager_derived`](Self::mark_eager_derived), for a value whose parts may be known.
    pub(super) fn derive_by(&mut self, left: &Expr, right: &Expr) {
        let clean = self.clean_fields(right).unwrap_or_default();
        let known = syntax::plain_name(left).and_then(|n| self.scope.lookup(&n.to_string())).map(|b| b.id);
        if let Some(id) = known {
            let before = self.scope.clean.get(&id).cloned();
            let was = self.scope.eager_derived.contains(&id);
            let both = match before {
                Some(before) => before.intersection(&clean).cloned().collect(),
                None if was => HashSet::new(),
                None => clean,
            };
            self.scope.clean.insert(id, both);
        }
        self.mark_eager_derived(left);
    }

    /// The fields of a struct literal that hold no value of eager code.
    pub(super) fn clean_fields(&self, expr: &Expr) -> Option<HashSet<String>> {
        let Expr::Struct(literal) = expr else { return None };
        let clean = |e: &Expr| !self.is_eager_derived(&uses::of_expr(e));
        if literal.rest.as_deref().is_some_and(|rest| !clean(rest)) {
            return None;
        }
        let fields = literal.fields.iter().filter(|f| clean(&f.expr));
        Some(fields.map(|f| quote::ToTokens::to_token_stream(&f.member).to_string()).collect())
    }
}

impl Analysis<'_, '_> {
    /// The names of a pattern that are `&mut` when `expr` is matched with it, or iterated over.
    pub(super) fn exclusive(&self, pat: &Pat, expr: &Expr) -> HashSet<String> {
        let known = syntax::plain_name(expr).and_then(|name| self.scope.lookup(&name.to_string()));
        let mut names = HashSet::new();
        if known.is_some_and(|b| b.exclusive) {
            add_all(pat, &mut names);
        } else {
            add_exclusive(pat, expr, &mut names);
        }
        names
    }
}

fn add_all(pat: &Pat, names: &mut HashSet<String>) {
    // `&mut x` in a pattern dereferences the value.
    if !matches!(pat, Pat::Reference(_)) {
        names.extend(syntax::bound(pat).into_iter().filter(|b| !b.by_ref).map(|b| b.ident.to_string()));
    }
}

fn add_exclusive(pat: &Pat, expr: &Expr, names: &mut HashSet<String>) {
    match (pat, expr) {
        (Pat::Type(t), _) => add_exclusive(&t.pat, expr, names),
        (Pat::Paren(p), _) => add_exclusive(&p.pat, expr, names),
        (_, Expr::Paren(e)) => add_exclusive(pat, &e.expr, names),
        (_, Expr::If(_) | Expr::Match(_) | Expr::Block(_)) => {
            syntax::tails(expr).into_iter().for_each(|tail| add_exclusive(pat, tail, names));
        }
        (_, Expr::Reference(r)) if r.mutability.is_some() => add_all(pat, names),
        (Pat::Tuple(t), Expr::Tuple(e)) if t.elems.len() == e.elems.len() => {
            t.elems.iter().zip(&e.elems).for_each(|(p, e)| add_exclusive(p, e, names));
        }
        (Pat::Tuple(t), Expr::MethodCall(m))
            if m.method == "zip" && t.elems.len() == 2 && m.args.len() == 1 =>
        {
            add_exclusive(&t.elems[0], &m.receiver, names);
            add_exclusive(&t.elems[1], &m.args[0], names);
        }
        (Pat::Tuple(t), Expr::MethodCall(m)) if m.method == "enumerate" && t.elems.len() == 2 => {
            add_exclusive(&t.elems[1], &m.receiver, names);
        }
        (_, Expr::MethodCall(m)) if m.method.to_string().ends_with("_mut") => add_all(pat, names),
        (_, Expr::MethodCall(m)) if PASS_ON.iter().any(|p| m.method == p) && m.method != "clone" => {
            add_exclusive(pat, &m.receiver, names);
        }
        _ => {}
    }
}

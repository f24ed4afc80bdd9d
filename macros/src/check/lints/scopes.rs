//! The names that are known to be tensors.

use quote::ToTokens;
use syn::{Expr, Local, Pat, Type, UnOp};

use crate::{
    facts::operations,
    parse::{
        attributes,
        syntax::{self, bare},
        types::{self, plain},
    },
};

/// The known facts about a name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// A tensor; which parameter, if it is one.
    Tensor(Option<usize>),
    /// Anything else, or not known.
    Other,
}

struct Name {
    name: String,
    known: Known,
    /// It is a reference, so an operation takes it as it is.
    is_reference: bool,
}

/// Names in scope, innermost last.
#[derive(Default)]
pub(super) struct Scopes {
    names: Vec<Name>,
}

impl Scopes {
    pub(super) fn bind(&mut self, name: String, known: Known) {
        self.names.push(Name { name, known, is_reference: false });
    }

    /// Binds a parameter: a tensor enters a function by a reference.
    pub(super) fn bind_param(&mut self, name: String, known: Known) {
        let is_reference = matches!(known, Known::Tensor(_));
        self.names.push(Name { name, known, is_reference });
    }

    pub(super) fn depth(&self) -> usize {
        self.names.len()
    }

    pub(super) fn leave(&mut self, depth: usize) {
        self.names.truncate(depth);
    }

    pub(super) fn lookup(&self, name: &str) -> Option<Known> {
        self.named(name).map(|n| n.known)
    }

    fn named(&self, name: &str) -> Option<&Name> {
        self.names.iter().rev().find(|n| n.name == name)
    }

    /// Returns whether the expression is known to be a reference to a tensor.
    pub(super) fn is_reference(&self, expr: &Expr) -> bool {
        match bare(expr) {
            Expr::Reference(_) => true,
            other => syntax::plain_name(other)
                .and_then(|name| self.named(&name.to_string()))
                .is_some_and(|name| name.is_reference),
        }
    }

    /// Binds the names of a pattern without facts, unless it is `name: &Tensor<…>`.
    pub(super) fn bind_pat(&mut self, pat: &Pat) {
        if let Pat::Type(t) = pat
            && let Pat::Ident(p) = &*t.pat
        {
            let known = if types::is_tensor(&t.ty) { Known::Tensor(None) } else { Known::Other };
            let is_reference = matches!(plain(&t.ty), Type::Reference(_));
            return self.names.push(Name { name: p.ident.to_string(), known, is_reference });
        }
        for bound in syntax::bound(pat) {
            self.bind(bound.ident.to_string(), Known::Other);
        }
    }

    /// Names of a `let`, after its value was looked at.
    pub(super) fn bind_local(&mut self, local: &Local) {
        let known = match &local.init {
            Some(init) if init.diverge.is_none() => self.known(&attributes::without_ours(&init.expr)),
            _ => Known::Other,
        };
        let is_reference = local.init.as_ref().is_some_and(|init| self.is_reference(&init.expr));
        match &local.pat {
            Pat::Ident(p) if p.subpat.is_none() => {
                self.names.push(Name { name: p.ident.to_string(), known, is_reference });
            }
            Pat::Type(_) => self.bind_pat(&local.pat),
            pat => self.bind_pat(pat),
        }
    }

    /// Returns the known facts about an expression.
    pub(super) fn known(&self, expr: &Expr) -> Known {
        match bare(expr) {
            Expr::Path(p) if p.qself.is_none() => {
                p.path.get_ident().and_then(|i| self.lookup(&i.to_string())).unwrap_or(Known::Other)
            }
            Expr::Reference(r) => self.known(&r.expr),
            Expr::Unary(u) if matches!(u.op, UnOp::Deref(_)) => self.known(&u.expr),
            Expr::MethodCall(m) if m.method == "clone" && m.args.is_empty() => self.known(&m.receiver),
            Expr::Try(t) if operations::gives_tensor(&t.expr) => Known::Tensor(None),
            _ => Known::Other,
        }
    }

    pub(super) fn is_tensor(&self, expr: &Expr) -> bool {
        matches!(self.known(expr), Known::Tensor(_))
    }
}

/// A host type that a tensor might be converted into: a number, a `Vec`, a `String`.
pub(super) fn host_type(ty: &Type) -> Option<String> {
    let Type::Path(path) = plain(ty) else { return None };
    let last = path.path.segments.last()?;
    let host = types::scalar(ty).is_some() || last.ident == "Vec" || last.ident == "String";
    host.then(|| last.to_token_stream().to_string().replace(' ', ""))
}

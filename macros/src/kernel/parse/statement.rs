//! Blocks and their statements.

use proc_macro2::Span;
use syn::{Block as SynBlock, Pat, Stmt, spanned::Spanned};

use super::{Parser, header};
use crate::{
    diag::Code,
    kernel::model::{Binding, Block, Expr, Kind, Pattern, Scalar, Statement},
};

impl Parser<'_> {
    pub(super) fn block(&mut self, block: &SynBlock, outermost: bool) -> Block {
        let mark = self.names.mark();
        let mut statements = Vec::new();
        let mut value = None;
        for (i, statement) in block.stmts.iter().enumerate() {
            match statement {
                Stmt::Local(local) => statements.extend(self.local(local)),
                Stmt::Expr(expr, semi) => {
                    let last = i + 1 == block.stmts.len() && semi.is_none();
                    let expr = if last && outermost { self.result(expr) } else { self.expr(expr) };
                    if last {
                        value = Some(Box::new(expr));
                    } else {
                        statements.push(Statement::Expr(expr));
                    }
                }
                Stmt::Item(syn::Item::Const(item)) => {
                    if !outermost {
                        let help = "declare it at the top of the function, or outside";
                        self.refuse(item, "a `const` in an inner block", help);
                    }
                }
                Stmt::Item(item) => {
                    self.refuse(item, "items in its body", "declare it outside of the function")
                }
                Stmt::Macro(mac) => self.refuse_macro(&mac.mac),
            }
        }
        self.names.leave(mark);
        Block { statements, value, ty: self.fresh(), span: block.span() }
    }

    fn local(&mut self, local: &syn::Local) -> Option<Statement> {
        self.attributes(&local.attrs);
        if let Some(init) = &local.init
            && let Some((token, _)) = &init.diverge
        {
            self.refuse(token, "`let … else`", "write `if … { return …; }` above");
        }
        // Its own name is not yet in scope in the value.
        let value = local.init.as_ref().map(|init| self.value_or_row(&init.expr));
        let (pattern, annotated) = match &local.pat {
            Pat::Type(typed) => {
                let scalar = self.annotation(&typed.pat, &typed.ty);
                (&*typed.pat, scalar.map(|scalar| (scalar, typed.ty.span())))
            }
            other => (other, None),
        };
        let pattern = self.pattern(pattern)?;
        if let Some(value) = value.as_ref().filter(|value| self.is_row(value)) {
            self.names_row(&pattern, value, &local.pat);
        }
        if let (Pattern::One(Some(local)), Some(value)) = (&pattern, &value) {
            self.names_bound(*local, value);
        }
        Some(Statement::Let { pattern, annotated, value })
    }

    /// The type that a `let` names.
    fn annotation(&mut self, pattern: &Pat, ty: &syn::Type) -> Option<Scalar> {
        if let (Pat::Tuple(_), syn::Type::Tuple(_)) = (pattern, ty) {
            self.refuse(
                ty,
                "the type of a tuple in a `let`",
                "leave it out, or convert the values: `x as f32`",
            );
            return None;
        }
        header::scalar(ty, self.errors)
    }

    pub(super) fn pattern(&mut self, pattern: &Pat) -> Option<Pattern> {
        match pattern {
            Pat::Tuple(tuple) => {
                let parts: Vec<Option<Pattern>> = tuple.elems.iter().map(|p| self.pattern(p)).collect();
                let parts: Option<Vec<Pattern>> = parts.into_iter().collect();
                Some(Pattern::Tuple(parts?, tuple.span()))
            }
            Pat::Paren(inner) => self.pattern(&inner.pat),
            other => Some(Pattern::One(self.binding(other)?)),
        }
    }

    /// A name or `_`; `None` where it is neither.
    pub(super) fn binding(&mut self, pattern: &Pat) -> Option<Binding> {
        match pattern {
            Pat::Wild(_) => Some(None),
            Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => {
                let ty = self.fresh();
                Some(Some(self.names.bind(pat.ident.clone(), pat.mutability.is_some(), ty)))
            }
            other => {
                let message = "a `let` of a kernel binds a name, or a tuple of names";
                let help = "write `let x = …;`, or `let (a, b) = …;`";
                self.errors.push(Code::KernelPattern, other, message, help);
                None
            }
        }
    }

    pub(super) fn refuse_macro(&mut self, mac: &syn::Macro) {
        let name = mac.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        let instead = match &*name {
            "assert" | "assert_eq" | "debug_assert" | "panic" | "unreachable" | "todo" | "unimplemented" => {
                "nothing can stop a kernel in the middle; return a value that the caller recognises, such as `f32::NAN`"
            }
            "println" | "print" | "eprintln" | "dbg" => {
                "read the result outside, with `step.read`, and print that"
            }
            "matches" => "write a comparison, or `match x { 1 | 2 => true, _ => false }`",
            _ => "write out what it stands for",
        };
        self.refuse(&mac.path, "macros", instead);
    }

    /// Refuses all attributes.
    pub(super) fn attributes(&mut self, attrs: &[syn::Attribute]) {
        if let Some(attr) = attrs.first() {
            self.refuse(attr, "an attribute here", "put it on the function");
        }
    }

    /// Returns a placeholder for rejected syntax.
    pub(super) fn nothing(&mut self, span: Span) -> Expr {
        let block = Block { statements: Vec::new(), value: None, ty: self.fresh(), span };
        Expr { kind: Kind::Block(block), ty: self.fresh(), span }
    }
}

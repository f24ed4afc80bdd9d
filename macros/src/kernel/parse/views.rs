//! Views: where they can be, and their methods.

use syn::{Expr as SynExpr, ExprMethodCall, spanned::Spanned};

use super::{Parser, index};
use crate::{
    diag::{Code, nearest},
    kernel::{
        model::{Expr, Form, Kind, LocalId, Scalar, ViewCall, ViewType},
        views::{self, Shown, ViewOp},
    },
};

impl Parser<'_> {
    /// The view that an expression is the name of.
    pub(super) fn view(&self, expr: &SynExpr) -> Option<LocalId> {
        match expr {
            SynExpr::Paren(inner) => self.view(&inner.expr),
            SynExpr::Group(inner) => self.view(&inner.expr),
            SynExpr::Path(path) if path.qself.is_none() => {
                self.names.local(&path.path).filter(|local| self.names.locals[*local].view.is_some())
            }
            _ => None,
        }
    }

    /// A view, as helps show it.
    pub(super) fn shown(&self, view: LocalId) -> Shown {
        let local = &self.names.locals[view];
        let ViewType { scalar, rank } = local.view.unwrap_or(ViewType { scalar: Scalar::F32, rank: 1 });
        let is_written = self.is_written(view);
        Shown { name: local.name.to_string(), scalar, rank, is_written }
    }

    pub(super) fn refuse_view(&mut self, view: LocalId, at: &SynExpr) {
        let shown = self.shown(view);
        let (value, size) = (ViewOp::At.example(&shown), ViewOp::Dim.example(&shown));
        let help = format!("read a value, `{value}`, or a size, `{size}`");
        self.errors.push(Code::KernelRow, at, "a view stands where a value is needed", help);
    }

    /// Refuses `x[…]`.
    pub(super) fn refuse_view_index(&mut self, view: LocalId, at: &SynExpr) {
        let help = format!("write `{}`", ViewOp::At.example(&self.shown(view)));
        self.refuse(at, "an index in brackets", &help);
    }

    /// A `let` of what can be the bound of a loop can be one, too.
    pub(super) fn names_bound(&mut self, local: LocalId, value: &Expr) {
        if self.form == Form::Index && !self.names.locals[local].mutable && self.is_constant(value) {
            self.names.note_bound(local);
        }
    }

    pub(super) fn view_method(&mut self, view: LocalId, call: &ExprMethodCall) -> Kind {
        let shown = self.shown(view);
        let name = call.method.to_string();
        let Some(op) = ViewOp::named(&name, shown.is_written) else {
            let known: Vec<&str> = ViewOp::of(shown.is_written).map(ViewOp::name).collect();
            let help = match (views::instead(&name, &shown), nearest(&name, &known)) {
                (Some(instead), _) => instead,
                (None, Some(near)) => format!("did you mean `{near}`?"),
                (None, None) => format!("read a value, `{}`", ViewOp::At.example(&shown)),
            };
            self.errors.push(
                Code::KernelMethod,
                &call.method,
                format!("views have no method `{name}`"),
                help,
            );
            return Kind::Integer(0, None);
        };
        let arguments: Vec<&SynExpr> = call.args.iter().collect();
        let mut made = ViewCall { op, view, index: Vec::new(), other: None, axis: 0 };
        match (op, &arguments[..]) {
            (ViewOp::Dim, [axis]) => made.axis = self.axis(view, axis),
            (ViewOp::At, [index]) => made.index = self.index(view, index),
            (ViewOp::AtOr, [index, other]) => {
                made.index = self.index(view, index);
                made.other = Some(Box::new(self.expr(other)));
            }
            (ViewOp::Set, [index, value]) => {
                made.index = self.index(view, index);
                let value = self.expr(value);
                return self.write(made, value, call.span());
            }
            _ => {
                let count =
                    if matches!(op, ViewOp::AtOr | ViewOp::Set) { "two arguments" } else { "one argument" };
                let message = format!("`{name}` of a view has {count}");
                let help = format!("write `{}`", op.example(&shown));
                self.errors.push(Code::KernelMethod, &call.method, message, help);
                return Kind::Integer(0, None);
            }
        }
        Kind::View(made)
    }

    /// The parts of `[i, j]`.
    fn index(&mut self, view: LocalId, index: &SynExpr) -> Vec<Expr> {
        let rank = self.shown(view).rank;
        let help = format!("write `{}`", views::index(rank));
        match index {
            SynExpr::Paren(inner) => self.index(view, &inner.expr),
            SynExpr::Group(inner) => self.index(view, &inner.expr),
            SynExpr::Array(array) if array.elems.len() == rank => {
                array.elems.iter().map(|part| self.expr(part)).collect()
            }
            SynExpr::Array(array) => {
                let parts = counted(array.elems.len(), "part");
                let message = format!("this index has {parts}; the view has {}", counted(rank, "dimension"));
                self.errors.push(Code::KernelRow, index, message, help);
                Vec::new()
            }
            _ => {
                self.errors.push(Code::KernelRow, index, "the index of a view is a list in brackets", help);
                Vec::new()
            }
        }
    }

    /// The number of a dimension.
    fn axis(&mut self, view: LocalId, axis: &SynExpr) -> usize {
        let shown = self.shown(view);
        let rank = shown.rank;
        let message = match index::number(axis) {
            Some(number) if number < rank => return number,
            Some(number) => format!("there is no dimension {number} of {rank}, which are counted from 0"),
            None => "which dimension is a number".to_owned(),
        };
        let help = format!("write `{}`", ViewOp::Dim.example(&shown));
        self.errors.push(Code::KernelRow, axis, message, help);
        0
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

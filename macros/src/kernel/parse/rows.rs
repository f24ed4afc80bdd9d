//! Rows: where they can be, and their methods.

use syn::{Expr as SynExpr, ExprClosure, ExprMethodCall, Pat, Path, spanned::Spanned};

use super::Parser;
use crate::{
    diag::{Code, nearest},
    kernel::{
        model::{Closure, Expr, Kind, LocalId, Pattern, RowCall},
        rows::{self, RowArgument, RowOp},
    },
};

impl Parser<'_> {
    /// Returns whether an expression stands for a row.
    pub(super) fn is_row(&self, expr: &Expr) -> bool {
        match &expr.kind {
            Kind::Local(local) => self.names.locals[*local].row.is_some(),
            Kind::Row(call) => call.op.is_row(),
            _ => false,
        }
    }

    pub(super) fn refuse_row(&mut self, at: &SynExpr) {
        let help = "reduce it, `x.sum()`, read one value, `x.at(i)`, or write what happens to each value in a closure, `x.map(|v| 2.0 * v)`";
        self.errors.push(Code::KernelRow, at, "a row stands where a value is needed", help);
    }

    /// The variable of a name, which a closure uses only if it does not change.
    pub(super) fn variable(&mut self, path: &Path) -> Option<LocalId> {
        let local = self.names.local(path)?;
        if self.names.is_captured(local) && self.names.locals[local].mutable {
            let name = &self.names.locals[local].name;
            let message = format!("a closure of a kernel cannot use `{name}`, which changes");
            let help = format!("give its present value a name above the closure: `let now = {name};`");
            self.errors.push(Code::KernelRow, path, message, help);
        }
        self.names.use_row(local);
        Some(local)
    }

    /// The value of the function: rows, values, or a tuple of both.
    pub(super) fn result(&mut self, expr: &SynExpr) -> Expr {
        match expr {
            SynExpr::Tuple(tuple) if self.form.has_rows() && (2..=4).contains(&tuple.elems.len()) => {
                let parts = tuple.elems.iter().map(|part| self.value_or_row(part)).collect();
                self.made(Kind::Tuple(parts), expr.span())
            }
            other => self.value_or_row(other),
        }
    }

    /// A `let` of a row.
    pub(super) fn names_row(&mut self, pattern: &Pattern, value: &Expr, at: &Pat) {
        let Pattern::One(binding) = pattern else { return };
        let Some(local) = *binding else { return };
        if self.names.locals[local].mutable {
            let help = "remove `mut`: `map` makes a new row, which has a name of its own";
            self.errors.push(Code::KernelRow, at, "a row cannot be changed", help);
        }
        if self.names.in_closure() {
            let message = "a row cannot have a name in a closure";
            let help = "name it above the closure";
            self.errors.push_span(Code::KernelRow, value.span, message, help);
        }
        self.names.locals[local].row = Some(0);
    }

    pub(super) fn row_method(&mut self, row: Expr, call: &ExprMethodCall) -> Kind {
        let name = call.method.to_string();
        let Some(op) = RowOp::named(&name) else {
            let known: Vec<&str> = RowOp::ALL.iter().map(|op| op.name()).collect();
            let help = match (rows::instead(&name), nearest(&name, &known)) {
                (Some(instead), _) => instead.to_owned(),
                (None, Some(near)) => format!("did you mean `{near}`?"),
                (None, None) => "write it for each value: `x.map(|v| v.exp())`".to_owned(),
            };
            let superfluous = help.starts_with("leave it out");
            self.errors.push(Code::KernelMethod, &call.method, format!("rows have no method `{name}`"), help);
            return if superfluous { row.kind } else { Kind::Integer(0, None) };
        };
        if self.names.in_closure() && op.is_collective() {
            let message = format!("`{name}` of a row in a closure, which runs for each value");
            let help = format!("give its value a name above the closure: `let y = {};`", op.example());
            self.errors.push(Code::KernelRow, &call.method, message, help);
        }
        self.indexes_rows |= op == RowOp::At;
        self.finds_places |= matches!(op, RowOp::Argmax | RowOp::Argmin);
        // These read no row, or one value of it.
        if let (false, Kind::Local(local)) = (op.is_collective(), &row.kind) {
            self.names.forget_use(*local);
        }
        let wanted = op.arguments();
        if call.args.len() != wanted.len() {
            let message = match wanted.len() {
                0 => format!("`{name}` of a row has no arguments"),
                1 => format!("`{name}` of a row has one argument"),
                count => format!("`{name}` of a row has {count} arguments"),
            };
            let help = format!("write `{}`", op.example());
            self.errors.push(Code::KernelMethod, &call.method, message, help);
            return Kind::Integer(0, None);
        }
        let (mut values, mut closures) = (Vec::new(), Vec::new());
        for (argument, wanted) in call.args.iter().zip(wanted) {
            match wanted {
                RowArgument::Value => values.push(self.expr(argument)),
                RowArgument::Row => {
                    let other = self.value_or_row(argument);
                    if !self.is_row(&other) {
                        let help = "`zip` pairs two rows; a closure can use a value directly: `x.map(|v| v * scale)`";
                        self.errors.push(Code::KernelRow, argument, "a row is needed here", help);
                    }
                    values.push(other);
                }
                RowArgument::Closure(count) => closures.extend(self.closure(argument, *count, op)),
            }
        }
        if op == RowOp::Fold {
            self.folds.extend(values.first().map(|init| init.ty));
        }
        Kind::Row(RowCall { op, row: Box::new(row), values, closures })
    }

    fn closure(&mut self, argument: &SynExpr, count: usize, op: RowOp) -> Option<Closure> {
        let closure = match argument {
            SynExpr::Paren(inner) => return self.closure(&inner.expr, count, op),
            SynExpr::Group(inner) => return self.closure(&inner.expr, count, op),
            SynExpr::Closure(closure) => closure,
            other => {
                let help = format!("write it here: `{}`; it can call `#[kernel]` functions", op.example());
                self.errors.push(Code::KernelRow, other, "a closure is needed here", help);
                return None;
            }
        };
        self.qualified(closure);
        if closure.inputs.len() != count {
            let values = if count == 1 { "one parameter".to_owned() } else { format!("{count} parameters") };
            let message = format!("this closure of `{}` has {values}", op.name());
            let at = closure.inputs.first().map_or(argument.span(), Spanned::span);
            let help = match op {
                RowOp::Map | RowOp::Count => {
                    "write `|v|`; after `zip`, the value is a tuple: `x.zip(y).map(|(a, b)| a * b)`"
                        .to_owned()
                }
                _ => format!("write `{}`", op.example()),
            };
            self.errors.push_span(Code::KernelRow, at, message, help);
            return None;
        }
        let mark = self.names.mark();
        let outside = self.names.enter_closure();
        let parameters: Option<Vec<Pattern>> = closure.inputs.iter().map(|p| self.parameter(p)).collect();
        let body = self.expr(&closure.body);
        self.names.leave_closure(outside);
        self.names.leave(mark);
        let types = closure.inputs.iter().map(|_| self.fresh()).collect();
        Some(Closure { parameters: parameters?, types, body: Box::new(body), span: closure.span() })
    }

    fn qualified(&mut self, closure: &ExprClosure) {
        if let Some(token) = &closure.capture {
            self.refuse(token, "`move` here", "remove `move`: a closure uses values as they are");
        }
        if let Some(token) = &closure.asyncness {
            self.refuse(token, "`async`", "remove `async`");
        }
        if let syn::ReturnType::Type(_, ty) = &closure.output {
            self.refuse(ty, "the type of a closure's result", "remove it, or convert the value: `v as f32`");
        }
    }

    fn parameter(&mut self, pattern: &Pat) -> Option<Pattern> {
        if let Pat::Type(typed) = pattern {
            self.refuse(
                &typed.ty,
                "the type of a closure's parameter",
                "remove it: it is that of the row's values",
            );
            return self.pattern(&typed.pat);
        }
        self.pattern(pattern)
    }
}

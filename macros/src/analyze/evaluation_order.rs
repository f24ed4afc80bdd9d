//! The decision whether host code may evaluate a statement before the preceding run.

use std::collections::HashSet;

use syn::{
    BinOp, Expr, Stmt, UnOp,
    visit::{self, Visit},
};

use super::{Analysis, scope::Lenders};
use crate::{
    facts::{
        operations::operation,
        statement::Statement,
        uses::{self, Use, Uses},
    },
    parse::syntax,
};

impl Analysis<'_, '_> {
    /// Returns whether evaluating something before the pending run would change the meaning of either.
    pub(super) fn depends_on_run(&self, run: &[Statement], uses: &Uses, binds: &[syntax::Bound]) -> bool {
        if run.is_empty() {
            return false;
        }
        let theirs = self.run.uses();
        let uses = self.scope.with_captures(uses.clone());
        let changed = |name: &str| {
            let known = self.scope.lookup(name);
            theirs
                .get(name)
                .is_some_and(|u| u.through || u.changes(false) || known.is_some_and(|b| b.is_changed_by(u)))
        };
        uses.0.iter().any(|(name, u)| {
            self.run.may_bind(name)
                || changed(name)
                || (u.assigned || u.touched || u.through) && theirs.has(name)
        }) || binds.iter().any(|b| {
            let name = b.ident.to_string();
            self.run.may_bind(&name) || theirs.has(&name)
        })
    }

    /// Returns whether the expression may panic where a check in the run would have left before it.
    pub(super) fn overtakes_check(&self, expr: &Expr, uses: &Uses) -> bool {
        let risk = Risk::of(expr);
        (risk.bounds || risk.overflow)
            && self.run.checks().iter().any(|(check, theirs)| {
                // A check can protect a variable through its name; other code must name the variable that it
                // protects.
                check.explicit && risk.bounds || overlap(theirs, uses)
            })
    }

    /// Returns whether the code moves an owned value, or a `&mut`, that the run uses, or assigns what a reference in the run
    /// refers to. `field` is the field that it assigns, if it changes nothing else.
    pub(super) fn takes_from_run(&self, uses: &Uses, field: Option<&AssignedField>) -> bool {
        // By an operator, owned values are moved, and host values copied.
        let moves = |name: &str, u: &Use| {
            let is_in = |ids: &HashSet<usize>| self.scope.lookup(name).is_some_and(|b| ids.contains(&b.id));
            is_in(&self.scope.owned) && (u.by_value || u.parted() || u.handed_on)
                || is_in(&self.scope.host_results) && u.handed_on
                || u.passes_on() && self.scope.lookup(name).is_some_and(|b| b.exclusive)
        };
        let mut taken =
            uses.0.iter().filter(|(name, u)| u.assigned || u.touched || moves(name, u)).peekable();
        if taken.peek().is_none() {
            return false;
        }
        let theirs = self.run.uses();
        let lent = self.scope.lent_to(&self.scope.ids(theirs));
        taken.any(|(name, u)| {
            let path = field.filter(|field| field.of == *name).map(|field| &*field.path);
            let is_lent = self.scope.lookup(name).is_some_and(|b| lent.refer_to(b.id, path));
            let is_moved = || theirs.get(name).is_some_and(|t| u.by_value || t.taken || overlapping(u, t));
            is_lent || moves(name, u) && is_moved()
        })
    }
}

impl Analysis<'_, '_> {
    /// Returns whether code names a variable to which the run writes through a `&mut`: host code does so when the run has ended.
    pub(super) fn reads_written(&self, uses: &Uses) -> bool {
        let writes = |(name, u): &(String, Use)| {
            let b = self.scope.lookup(name).filter(|b| b.exclusive && b.is_changed_by(u))?;
            Some(b.id)
        };
        let written: HashSet<usize> = self.run.uses().0.iter().filter_map(writes).collect();
        if written.is_empty() {
            return false;
        }
        let lent = self.scope.lent_to(&written);
        let captured = self.scope.with_captures(uses.clone());
        captured.names().filter(|name| !self.run.binds(name)).any(|name| {
            let Some(b) = self.scope.lookup(name).filter(|b| b.mutable || b.exclusive) else { return false };
            // Fields that are only read enter the segment without the rest of the variable. What closures capture does not.
            let by_closures = self.captured_by_closures(uses).has(name);
            match uses.get(name).filter(|u| !by_closures && u.only_reads_fields()) {
                _ if written.contains(&b.id) => false,
                Some(u) => u.fields.iter().any(|path| lent.refer_to(b.id, Some(path))),
                None => lent.refer_to(b.id, None),
            }
        })
    }

    /// Returns what the value of a `let` may refer to: of `&mut a.b`, that is the field alone.
    pub(super) fn lenders_of(&self, value: &Expr, uses: &Uses) -> Lenders {
        if let Expr::Reference(r) = syntax::bare(value)
            && let Expr::Field(field) = &*r.expr
            && let Some((base, path)) = syntax::field_path(field)
        {
            let mut field = Uses::default();
            field.entry(base).fields.insert(path);
            return self.scope.roots(&field);
        }
        self.scope.roots(uses)
    }

    /// Returns what the closures that code names use.
    fn captured_by_closures(&self, uses: &Uses) -> Uses {
        let mut captured = Uses::default();
        for made in uses.names().filter_map(|name| self.scope.lookup(name)?.made.as_ref()) {
            captured.merge(&made.uses);
        }
        self.scope.with_captures(captured)
    }
}

/// A field that an assignment changes.
pub(super) struct AssignedField {
    of: String,
    path: Vec<String>,
}

impl AssignedField {
    /// Returns the field on the left side of an assignment, of a variable that the right side only reads.
    pub(super) fn of(expr: &Expr) -> Option<Self> {
        let (left, right) = match expr {
            Expr::Assign(a) => (&a.left, &a.right),
            Expr::Binary(b) if syntax::is_assign(&b.op) => (&b.left, &b.right),
            _ => return None,
        };
        let Expr::Field(field) = &**left else { return None };
        let (base, path) = syntax::field_path(field)?;
        let of = base.to_string();
        let changes = |u: &Use| u.assigned || u.touched || u.through || u.in_macro;
        (!uses::of_expr(right).get(&of).is_some_and(changes)).then_some(Self { of, path })
    }
}

/// Returns whether two pieces of code use the same variable or field.
pub(super) fn overlap(a: &Uses, b: &Uses) -> bool {
    a.0.iter().any(|(name, u)| b.get(name).is_some_and(|v| overlapping(u, v)))
}

/// The same of two uses of one variable.
pub(super) fn overlapping(u: &Use, v: &Use) -> bool {
    u.whole
        || v.whole
        || u.fields.iter().any(|f| v.fields.iter().any(|g| f.starts_with(g) || g.starts_with(f)))
}

/// The ways in which a call-free expression can panic.
#[derive(Default)]
struct Risk {
    /// Indexing, division, subtraction, or a shift, which programs usually check first.
    bounds: bool,
    /// Sums and products.
    overflow: bool,
}

impl Risk {
    fn of(expr: &Expr) -> Self {
        let mut risk = Self::default();
        risk.visit_expr(expr);
        risk
    }
}

impl<'a> Visit<'a> for Risk {
    fn visit_expr_index(&mut self, e: &'a syn::ExprIndex) {
        self.bounds = true;
        visit::visit_expr_index(self, e);
    }
    fn visit_expr_unary(&mut self, e: &'a syn::ExprUnary) {
        let literal = matches!(&*e.expr, Expr::Lit(_));
        self.bounds |= matches!(e.op, UnOp::Neg(_)) && !literal && !is_float(&e.expr);
        visit::visit_expr_unary(self, e);
    }
    fn visit_expr_binary(&mut self, e: &'a syn::ExprBinary) {
        if !is_float(&e.left) && !is_float(&e.right) {
            match e.op {
                BinOp::Sub(_) | BinOp::Div(_) | BinOp::Rem(_) | BinOp::Shl(_) | BinOp::Shr(_) => {
                    self.bounds = true
                }
                BinOp::SubAssign(_)
                | BinOp::DivAssign(_)
                | BinOp::RemAssign(_)
                | BinOp::ShlAssign(_)
                | BinOp::ShrAssign(_) => self.bounds = true,
                BinOp::Add(_) | BinOp::Mul(_) | BinOp::AddAssign(_) | BinOp::MulAssign(_) => {
                    self.overflow = true
                }
                _ => {}
            }
        }
        visit::visit_expr_binary(self, e);
    }
}

/// Returns whether the operand is evidently a float: operations on it then cannot panic.
fn is_float(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(l) => matches!(&l.lit, syn::Lit::Float(_)),
        Expr::Cast(c) => {
            matches!(&*c.ty, syn::Type::Path(p) if p.path.is_ident("f32") || p.path.is_ident("f64"))
        }
        Expr::Paren(p) => is_float(&p.expr),
        Expr::Group(g) => is_float(&g.expr),
        Expr::Unary(u) => is_float(&u.expr),
        Expr::Binary(b) => is_float(&b.left) || is_float(&b.right),
        _ => false,
    }
}

/// A way in which a statement can leave before the code that follows it.
#[derive(Default)]
pub(super) struct Check {
    /// By `return`, or by a macro that is there for nothing else.
    pub(super) explicit: bool,
    /// It leaves by `?` on a function that is not an operation, or by a panic in one.
    implicit: bool,
}

impl Check {
    /// Returns whether the statement may leave.
    pub(super) fn leaves(&self) -> bool {
        self.explicit || self.implicit
    }

    pub(super) fn of(stmt: &Stmt) -> Self {
        let mut check = Self::default();
        if let Stmt::Expr(Expr::Call(c), Some(_)) = stmt {
            check.implicit = operation(c).is_none();
        }
        check.visit_stmt(stmt);
        check
    }
}

impl<'a> Visit<'a> for Check {
    fn visit_expr_return(&mut self, e: &'a syn::ExprReturn) {
        self.explicit = true;
        visit::visit_expr_return(self, e);
    }
    fn visit_macro(&mut self, m: &'a syn::Macro) {
        const LEAVE: [&str; 8] =
            ["assert", "ensure", "bail", "panic", "unreachable", "todo", "unimplemented", "debug_assert"];
        let name = m.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        self.explicit |= LEAVE.iter().any(|l| name.starts_with(l));
    }
    fn visit_expr_try(&mut self, e: &'a syn::ExprTry) {
        self.implicit |= !matches!(&*e.expr, Expr::Call(c) if operation(c).is_some());
        visit::visit_expr_try(self, e);
    }
    fn visit_expr_closure(&mut self, _: &'a syn::ExprClosure) {}
    fn visit_item(&mut self, _: &'a syn::Item) {}
}

//! What leaves a segment: its own bindings that later code needs, and outer variables that it changes.

use std::collections::{BTreeSet, HashSet};

use proc_macro2::Ident;
use syn::{
    Expr, Local, Stmt,
    visit_mut::{self, VisitMut},
};

use super::{Analysis, classify, host_values, operations, uses, uses::Uses};
use crate::{
    diag::{Code, shortened},
    model::Step,
    parse::syntax::{self, Bound},
};

/// An outer variable that a run changes and later code sees, and the statement of the run that shadows it.
pub(super) struct Changed {
    pub(super) ident: Ident,
    pub(super) shadowed_at: Option<usize>,
}

/// What happens with the `let`s of a run that later code needs.
#[derive(Default)]
pub(super) struct Outs {
    /// Values that leave the segment.
    pub(super) carried: Vec<Bound>,
    /// Bindings that the run moves away, and that later code assigns anew.
    pub(super) emptied: Vec<Ident>,
    /// Call-free borrows, evaluated again in the driver, in order, and where they stand in the run.
    pub(super) again: Vec<(usize, Local)>,
    /// Bindings that are shadowed later in the run, but borrowed by one of `again`: the name, what it is
    /// called in the driver, and the statement that shadows it.
    pub(super) shadowed: Vec<(Ident, Ident, usize)>,
}

impl Outs {
    /// Borrows that later code uses, while the run changes or moves what they refer to: host code evaluates them
    /// again, so nothing else would show rustc that they are still needed. Where they stand, and a use of them.
    pub(super) fn kept_borrows(&self, run: &[Stmt], rest: &[Stmt]) -> Vec<(usize, Step)> {
        let mut kept = Vec::new();
        for (at, _) in &self.again {
            let Stmt::Local(local) = &run[*at] else { continue };
            let Some(init) = &local.init else { continue };
            let changed = |name: &str| {
                run[at + 1..].iter().any(|s| {
                    let left = match s {
                        Stmt::Expr(Expr::Assign(a), _) => &a.left,
                        Stmt::Expr(Expr::Binary(b), _) if syntax::is_assign(&b.op) => &b.left,
                        _ => return false,
                    };
                    syntax::place_base(left).is_some_and(|base| base == name)
                })
            };
            let shadowed = |name: &Ident| {
                run[at + 1..].iter().any(|s| syntax::bound_by(s).iter().any(|b| b.ident == *name))
            };
            if !uses::of_expr(&init.expr).names().any(changed) {
                continue;
            }
            let later = uses::of_stmts(rest);
            for bound in syntax::bound_by_let(local) {
                if let Some(used) = later.get(&bound.ident.to_string()).filter(|_| !shadowed(&bound.ident)) {
                    kept.push((*at, Step::StillUsed { ident: bound.ident, at: used.ident.span() }));
                }
            }
        }
        kept
    }
}

impl Analysis<'_, '_> {
    /// `let h = ops::neg(x);` that leaves the segment, where `ops::neg(x)?` was meant.
    pub(super) fn refuse_results(&mut self, run: &[Stmt], outs: &Outs) {
        for bound in &outs.carried {
            let name = &bound.ident;
            let last = run.iter().rev().find(|s| syntax::bound_by(s).iter().any(|b| b.ident == *name));
            if let Some(Stmt::Local(Local { pat: syn::Pat::Ident(_), init: Some(init), .. })) = last
                && operations::is_operation(&init.expr)
            {
                let call = shortened(&init.expr);
                self.errors.push(
                    Code::LeavesSegment,
                    name,
                    format!(
                        "`{name}` is a `Result` and is used behind its segment: a replay cannot give it back"
                    ),
                    format!("write `let {name} = {call}?;`"),
                );
            }
        }
    }

    /// Which of the run's own bindings later code needs, and how they get there.
    pub(super) fn outs(&mut self, run: &[Stmt], rest: &[Stmt], run_closures: &HashSet<String>) -> Outs {
        let mut needed: BTreeSet<String> = uses::of_stmts(rest).names().map(str::to_owned).collect();
        // A closure of an outer scope that is used later needs what it captures.
        let outer: Vec<String> = needed.iter().cloned().collect();
        for name in outer {
            if run_closures.contains(&name) {
                continue;
            }
            if let Some(init) =
                self.lookup(&name).and_then(|b| b.closure.as_ref()).and_then(|l| l.init.as_ref())
            {
                needed.extend(uses::of_expr(&init.expr).names().map(str::to_owned));
            }
        }
        let mut outs = Outs::default();
        let mut seen: HashSet<String> = HashSet::new();
        let mut behind = Uses::default();
        let pending = std::cell::OnceCell::new();
        for (at, stmt) in run.iter().enumerate().rev() {
            if let Some(next) = run.get(at + 1) {
                behind.precede(next);
            }
            let Stmt::Local(local) = stmt else { continue };
            let bound = syntax::bound_by_let(local);
            let wanted: Vec<&Bound> = bound
                .iter()
                .filter(|b| needed.contains(&b.ident.to_string()) && !seen.contains(&b.ident.to_string()))
                .collect();
            if wanted.is_empty() {
                seen.extend(bound.iter().map(|b| b.ident.to_string()));
                continue;
            }
            let init = local.init.as_ref();
            let fixed = bound
                .iter()
                .all(|b| !b.mutable || behind.get(&b.ident.to_string()).is_none_or(|u| !u.changes(true)));
            let again = fixed
                && self.evaluated_again(
                    local,
                    || {
                        let (names, ends) = pending.get_or_init(|| self.pending(run));
                        &names[..at.checked_sub(1).map_or(0, |before| ends[before])]
                    },
                    |name| self.is_list(&run[..at], name),
                );
            if let (true, Some(init)) = (again || classify::closure_name(local).is_some(), init) {
                let mut local = local.clone();
                for (name, u) in &uses::of_expr(&init.expr).0 {
                    let changes = again && behind.get(name).is_some_and(|b| self.changes(&run[..at], b));
                    if !seen.contains(name) && !changes {
                        needed.insert(name.clone());
                        continue;
                    }
                    // Changed or shadowed further down: the value meant here leaves under a name of its own.
                    let later = |s: &Stmt| syntax::bound_by(s).iter().any(|b| b.ident == name);
                    let shadow =
                        if changes { Some(at) } else { (at + 1..run.len()).find(|&i| later(&run[i])) };
                    let shadow = shadow.unwrap_or(run.len());
                    let alias = self.fresh("o");
                    Rename { from: name, to: &syn::parse_quote!(#alias) }.visit_local_mut(&mut local);
                    outs.shadowed.push((u.ident.clone(), alias, shadow));
                }
                if again {
                    outs.again.insert(0, (at, local));
                }
            } else {
                for b in wanted {
                    let name = b.ident.to_string();
                    let moved = behind.get(&name).is_some_and(|u| u.by_value);
                    if b.mutable && moved && assigned_anew(rest, &name) {
                        outs.emptied.push(b.ident.clone());
                    } else {
                        outs.carried.push(b.clone());
                    }
                }
            }
            seen.extend(bound.iter().map(|b| b.ident.to_string()));
        }
        outs.carried.reverse();
        outs
    }

    /// Whether a name stands for a list behind the statements `before`.
    fn is_list(&self, before: &[Stmt], name: &str) -> bool {
        let own = before.iter().rev().find_map(|s| match s {
            Stmt::Local(l) if syntax::bound_by_let(l).iter().any(|b| b.ident == name) => {
                Some(host_values::binds_list(l))
            }
            _ => None,
        });
        own.unwrap_or_else(|| self.lookup(name).is_some_and(|b| b.list))
    }

    /// Whether a use behind the statements `before` may change the variable.
    fn changes(&self, before: &[Stmt], u: &uses::Use) -> bool {
        let mutable = || {
            let own = before.iter().rev().flat_map(syntax::bound_by).find(|b| b.ident == u.ident);
            own.map_or_else(|| self.lookup(&u.ident.to_string()).is_some_and(|b| b.mutable), |b| b.mutable)
        };
        u.through || u.changes(mutable())
    }

    /// Outer variables that the run changes and later code sees, with the statement that shadows them.
    pub(super) fn changed(
        &self,
        run: &[Stmt],
        rest: &[Stmt],
        uses: &Uses,
        live: &HashSet<usize>,
        run_closures: &HashSet<String>,
    ) -> Vec<Changed> {
        let mut changed = Vec::new();
        for (name, u) in &uses.0 {
            let Some(b) = self.lookup(name) else { continue };
            let changes = u.changes(b.mutable || b.exclusive);
            if b.exclusive && changes && b.closure.is_none() {
                let shadowed = run.iter().position(|s| syntax::bound_by(s).iter().any(|x| x.ident == name));
                changed.push(Changed { ident: u.ident.clone(), shadowed_at: shadowed });
                continue;
            }
            if u.by_value && assigned_anew(rest, name) {
                continue;
            }
            if changes && live.contains(&b.id) && b.closure.is_none() && !run_closures.contains(name) {
                let shadowed = run.iter().position(|s| syntax::bound_by(s).iter().any(|x| x.ident == name));
                changed.push(Changed { ident: u.ident.clone(), shadowed_at: shadowed });
            }
        }
        changed
    }
}

/// Whether the statements give the variable a new value before anything reads it.
fn assigned_anew(rest: &[Stmt], name: &str) -> bool {
    for stmt in rest {
        if classify::leaves(stmt) {
            return false;
        }
        if let Stmt::Expr(Expr::Assign(a), _) = stmt
            && syntax::plain_name(&a.left).is_some_and(|n| n == name)
        {
            return !uses::of_expr(&a.right).has(name);
        }
        if uses::of_stmts([stmt]).has(name) {
            return false;
        }
    }
    false
}

/// Renames one variable of a call-free expression, where no inner binding takes its name.
pub(super) struct Rename<'a> {
    pub(super) from: &'a str,
    /// What stands for it.
    pub(super) to: &'a Expr,
}

impl Rename<'_> {
    fn bound_by(&self, pat: &syn::Pat) -> bool {
        syntax::bound(pat).iter().any(|b| b.ident == self.from)
    }

    /// Renames in a condition; whether one of its `let`s binds the name.
    fn condition(&mut self, cond: &mut Expr) -> bool {
        match cond {
            Expr::Let(l) => {
                self.visit_expr_mut(&mut l.expr);
                self.bound_by(&l.pat)
            }
            Expr::Binary(b) => self.condition(&mut b.left) || self.condition(&mut b.right),
            other => {
                self.visit_expr_mut(other);
                false
            }
        }
    }
}

impl VisitMut for Rename<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if matches!(expr, Expr::Path(p) if p.qself.is_none() && p.path.is_ident(self.from)) {
            *expr = self.to.clone();
        } else {
            visit_mut::visit_expr_mut(self, expr);
        }
    }

    fn visit_expr_closure_mut(&mut self, closure: &mut syn::ExprClosure) {
        if !closure.inputs.iter().any(|pat| self.bound_by(pat)) {
            self.visit_expr_mut(&mut closure.body);
        }
    }

    fn visit_expr_for_loop_mut(&mut self, e: &mut syn::ExprForLoop) {
        self.visit_expr_mut(&mut e.expr);
        if !self.bound_by(&e.pat) {
            self.visit_block_mut(&mut e.body);
        }
    }

    fn visit_field_value_mut(&mut self, field: &mut syn::FieldValue) {
        // `S { i }` becomes `S { i: renamed }`.
        if field.colon_token.is_none() && syntax::plain_name(&field.expr).is_some_and(|n| n == self.from) {
            field.colon_token = Some(Default::default());
        }
        self.visit_expr_mut(&mut field.expr);
    }

    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        for stmt in &mut block.stmts {
            self.visit_stmt_mut(stmt);
            if syntax::bound_by(stmt).iter().any(|b| b.ident == self.from) {
                return;
            }
        }
    }

    fn visit_arm_mut(&mut self, arm: &mut syn::Arm) {
        if !self.bound_by(&arm.pat) {
            visit_mut::visit_arm_mut(self, arm);
        }
    }

    fn visit_expr_if_mut(&mut self, e: &mut syn::ExprIf) {
        if !self.condition(&mut e.cond) {
            self.visit_block_mut(&mut e.then_branch);
        }
        if let Some((_, other)) = &mut e.else_branch {
            self.visit_expr_mut(other);
        }
    }
}

//! Closures: they are recreated in each segment that uses them, so their captured variables must mean the
//! same there.

use std::collections::HashSet;

use proc_macro2::Ident;
use syn::{Expr, Local, Stmt, visit::Visit, visit_mut::VisitMut};

use super::{
    Analysis,
    order::Order,
    scope::{Binding, Hidden},
    segment::outermost,
};
use crate::{
    diag::Code,
    facts::{
        classify,
        statement::Statement,
        uses::{self, Use, Uses},
    },
    parse::{rename::Rename, syntax},
};

impl Analysis<'_, '_> {
    /// Handles closures whose captured variables are shadowed, by the closure or after a boundary: the captured value gets a
    /// name of its own, `let c = &k;`, and the closure uses `*c`. One that the closure takes is moved, `let c = k;`, also if the
    /// variable gets another value in the closure's block.
    pub(super) fn captured_apart(&mut self, stmts: Vec<Stmt>) -> Vec<Stmt> {
        let mut all: Vec<Stmt> = Vec::with_capacity(stmts.len());
        for at in 0..stmts.len() {
            let mut stmt = stmts[at].clone();
            if let Stmt::Local(local) = &stmt {
                self.check_replaced(local, &stmts[at + 1..]);
            }
            if let Stmt::Local(local) = &mut stmt
                && let Some(own) = classify::closure_name(local)
                && let Some(init) = &mut local.init
                && matches!(&*init.expr, Expr::Closure(c) if c.capture.is_none())
            {
                let (mut taken, mut assigned) = (HashSet::from([own.clone()]), HashSet::new());
                if stmts[at + 1..].iter().any(classify::has_boundary) {
                    taken.extend(syntax::bound_anywhere(&stmts[at + 1..]));
                    // An import of any name is refused where it matters.
                    taken.extend(syntax::items_inside(&stmts[at + 1..]).unwrap_or_default());
                    assigned.extend(stmts[at + 1..].iter().filter_map(syntax::assigned_by));
                }
                for (name, u) in &uses::of_expr(&init.expr).0 {
                    let changes = u.assigned || u.touched || u.through || u.in_macro;
                    let is_apart =
                        taken.contains(name) || (u.by_value || u.parted()) && assigned.contains(name);
                    let mut apart = Vec::new();
                    if !changes && is_apart && self.is_value(&stmts[..at], name) {
                        let crosses = is_needed_behind_boundary(&stmts[at + 1..], name);
                        apart = self.capture_apart(&mut init.expr, name, u, crosses);
                    }
                    if apart.is_empty() && self.is_mutable(&stmts[..at], name) {
                        self.check_taken(&own, u, &stmts[at + 1..]);
                    }
                    all.extend(apart);
                }
            }
            all.push(stmt);
        }
        all
    }

    /// Refuses a closure that may take a variable and is called behind a boundary after the variable has been given another value,
    /// which a closure that is recreated there would find. Which it takes is not known where a macro names the variable or the
    /// closure changes it, nor whether another value is given where a part of a statement assigns it.
    fn check_taken(&mut self, closure: &str, u: &Use, after: &[Stmt]) {
        if !(u.by_value || u.parted() || u.in_macro) {
            return;
        }
        let name = u.ident.to_string();
        let is_bound =
            |stmt: &Stmt| syntax::bound_by(stmt).iter().any(|b| b.ident == name || b.ident == closure);
        let end = after.iter().position(is_bound).unwrap_or(after.len());
        let after = &after[..end];
        let mut order = Order::of_closure(closure, &name);
        let Some(called) = after.iter().position(|stmt| {
            order.visit_stmt(stmt);
            order.used.is_some()
        }) else {
            return;
        };
        if after[..=called].iter().any(classify::has_boundary) {
            self.errors.push(
                Code::MoveClosure, &u.ident,
                format!("the closure `{closure}` may take the value that `{name}` has here, and is called after `{name}` gets another one; each segment recreates its closures"),
                format!("take it before: `let fixed = {name};`, and use `fixed` in the closure"),
            );
        }
    }

    /// Returns whether a name is a `mut` variable after the statements `before` of the block.
    fn is_mutable(&self, before: &[Stmt], name: &str) -> bool {
        let bound = before.iter().rev().flat_map(syntax::bound_by).find(|bound| bound.ident == name);
        match bound {
            Some(bound) => bound.mutable,
            None => self.scope.lookup(name).is_some_and(|binding| binding.mutable),
        }
    }

    /// Gives a variable that a closure captures, or the fields of it that the closure takes, names of their own. If the variable
    /// crosses a boundary, the closure takes copies of these: a segment cannot return what it has taken apart.
    fn capture_apart(&mut self, closure: &mut Expr, name: &str, u: &Use, crosses: bool) -> Vec<Stmt> {
        let paths: Vec<&[String]> = match u.parted() && !u.whole && !u.by_value {
            true => outermost(&u.fields).collect(),
            false => vec![&[]],
        };
        let (mut captured, mut renamed) = (Vec::new(), closure.clone());
        for path in paths {
            let mut alias = self.fresh("v");
            alias.set_span(alias.span().located_at(u.ident.span()));
            let value = syntax::place(&u.ident, path);
            let moves = if path.is_empty() { u.by_value } else { u.parts.contains(path) };
            let (stmt, stands): (Stmt, Expr) = if moves && crosses && !path.is_empty() {
                let copy = quote::quote!(::core::clone::Clone::clone(&#value));
                (syn::parse_quote!(let #alias = #copy;), syn::parse_quote!(#alias))
            } else if moves {
                (syn::parse_quote!(let #alias = #value;), syn::parse_quote!(#alias))
            } else {
                (syn::parse_quote!(let #alias = &#value;), syn::parse_quote!((*#alias)))
            };
            captured.push(stmt);
            Rename::new(name, &stands).field(path).visit_expr_mut(&mut renamed);
        }
        // Inside a macro call it keeps its name.
        if uses::of_expr(&renamed).has(name) {
            return Vec::new();
        }
        *closure = renamed;
        captured
    }

    /// Returns whether a name stands for a variable, and not for a closure, after the statements `before` of
    /// the block.
    fn is_value(&self, before: &[Stmt], name: &str) -> bool {
        let own = before.iter().rev().find(|s| syntax::bound_by(s).iter().any(|b| b.ident == name));
        match own {
            Some(Stmt::Local(l)) => classify::closure_name(l).is_none(),
            Some(_) => true,
            None => name != "self" && self.scope.lookup(name).is_some_and(|b| b.made.is_none()),
        }
    }

    /// A `move` closure is recreated in each segment, when a `mut` variable may have a different value.
    pub(super) fn check_move_closure(&mut self, closure: &Expr, uses: &Uses, run: &[Statement]) {
        let Expr::Closure(syn::ExprClosure { capture: Some(token), .. }) = closure else { return };
        let in_run: Vec<&syntax::Bound> = run.iter().flat_map(|s| &s.binds).collect();
        let changing = uses.names().find(|name| match in_run.iter().rev().find(|b| b.ident == *name) {
            Some(bound) => bound.mutable,
            None => self.scope.lookup(name).is_some_and(|b| b.mutable && b.made.is_none()),
        });
        if let Some(name) = changing.map(str::to_owned) {
            self.errors.push(
                Code::MoveClosure, token,
                format!("a `move` closure keeps the value that the `mut` variable `{name}` has here, and each segment recreates its closures"),
                format!("copy it first: `let fixed = {name};`, and use `fixed` in the closure"),
            );
        }
    }

    /// Returns closures of outer scopes that the run uses, in order of dependence; their captured variables
    /// are added to the uses.
    pub(super) fn outer_closures(&mut self, uses: &mut Uses) -> Vec<Local> {
        let mut found: Vec<(String, Local)> = Vec::new();
        let mut at = 0;
        while at < uses.0.len() {
            let name = uses.0[at].0.clone();
            at += 1;
            if found.iter().any(|(n, _)| *n == name) {
                continue;
            }
            if let Some((id, made)) = self.outside(&name).and_then(|b| Some((b.id, b.made.clone()?))) {
                let used = uses.0[at - 1].1.ident.clone();
                self.check_captures(&used);
                self.check_items(&used, id, &made.local);
                let mut captured = made.uses.clone();
                // A closure's captures are not replaced by fields: it is emitted as written, with copies.
                captured.0.iter_mut().for_each(|(_, u)| (u.whole, u.by_value) = (true, false));
                uses.merge(&captured);
                self.in_segments.insert(id);
                found.push((name, made.local.clone()));
            }
        }
        // Those found later were captured by those found earlier.
        found.reverse();
        found.into_iter().map(|(_, l)| l).collect()
    }

    /// Returns the meaning that a name has before the pending run, whose closures are bound already.
    pub(super) fn outside(&self, name: &str) -> Option<&Binding> {
        let pending = |b: &Binding| b.made.is_some() && !self.captured.contains_key(&b.id);
        self.scope.last(|b| b.name == name && !pending(b))
    }

    /// A closure of host code borrows the variables that it changes, so a segment in between could not read
    /// them.
    pub(super) fn check_changing_closures(&mut self, uses: &Uses) {
        for (name, u) in &uses.0 {
            let Some(b) = self.scope.lookup(name).filter(|b| b.mutable && self.in_segments.contains(&b.id))
            else {
                continue;
            };
            let inside = b.made.iter().flat_map(|made| &made.uses.0);
            let mut inside = inside;
            let changed = inside
                .find(|(n, u)| u.assigned || u.touched && self.scope.lookup(n).is_some_and(|b| b.mutable));
            if let Some((changed, _)) = changed {
                self.errors.push(
                    Code::ChangingClosure, &u.ident,
                    format!("the closure `{name}` changes `{changed}`, and both a segment and host code call it; each segment recreates its closures"),
                    format!("let only one of them call it, or change `{changed}` where it is meant, without a closure"),
                );
            }
        }
    }

    /// Notes which variables the closures of a run mean.
    pub(super) fn note_captures(&mut self, run: &[Statement]) {
        run.iter().for_each(|statement| self.note_capture(statement));
    }

    pub(super) fn note_capture(&mut self, statement: &Statement) {
        let Some(name) = &statement.made else { return };
        // Closures are bound before their run is written, so a later one may have the name already.
        let new = |b: &Binding| b.made.is_some() && !self.captured.contains_key(&b.id);
        let Some(own) = self.scope.names.iter().position(|b| b.name == *name && new(b)) else { return };
        let meant = |n: &str| {
            let before = |(at, b): &(usize, &Binding)| b.name == n && (b.made.is_none() || *at < own);
            self.scope.names.iter().enumerate().rev().find(before).map(|(_, b)| b.id)
        };
        let captured = statement.value.names().filter_map(|n| Some((n.to_owned(), meant(n)?))).collect();
        self.captured.insert(self.scope.names[own].id, captured);
    }

    /// A closure that is recreated in a segment must find the variables that it captured.
    fn check_captures(&mut self, used: &Ident) {
        let Some(id) = self.outside(&used.to_string()).map(|b| b.id) else { return };
        let Some(captured) = self.captured.get(&id) else { return };
        let shadowed = captured.iter().find(|(n, id)| self.outside(n).is_none_or(|b| b.id != *id));
        if let Some((name, _)) = shadowed {
            self.errors.push(
                Code::ShadowedCapture, used,
                format!("the closure `{used}` captures `{name}`, which is shadowed here; each segment recreates its closures"),
                format!("give one of the two `{name}` another name"),
            );
        }
    }

    /// Where a value is recreated, the functions, constants, types and macros that it names must be those of its `let`.
    fn check_items(&mut self, used: &Ident, id: usize, local: &Local) {
        let Some(init) = &local.init else { return };
        let mut named = syntax::path_roots(&init.expr);
        named.extend(uses::of_expr(&init.expr).names().map(str::to_owned));
        let (direct, named) = (named.clone(), self.with_rules(named));
        let what = if matches!(&*init.expr, Expr::Closure(_)) { "closure" } else { "value" };
        let calls_methods = syntax::calls_methods(&init.expr);
        let (message, help) = match self.scope.hidden(id, named.iter(), calls_methods) {
            None => return,
            Some(Hidden::Name(name)) => (
                format!(
                    "the {what} `{used}` {} `{name}`, which is an item of this block here; each segment recreates such values",
                    if direct.contains(name) { "names" } else { "calls a macro that names" },
                ),
                format!("give one of the two `{name}` another name, or move the item out of the block"),
            ),
            Some(Hidden::Anything) => (
                format!(
                    "each segment recreates the {what} `{used}`, and the import of all names in this block may change what it means"
                ),
                "import the names one by one, or at the beginning of the function".to_owned(),
            ),
            Some(Hidden::Traits) => (
                format!(
                    "each segment recreates the {what} `{used}`, and the traits of this block may change which methods it calls"
                ),
                "move the traits and their imports out of the block, to the beginning of the function"
                    .to_owned(),
            ),
        };
        self.errors.push(Code::ShadowedCapture, used, message, help);
    }
}

/// Returns whether statements name a variable at or behind their first boundary.
fn is_needed_behind_boundary(stmts: &[Stmt], name: &str) -> bool {
    let is_bound = |stmt: &Stmt| syntax::bound_by(stmt).iter().any(|b| b.ident == name);
    let end = stmts.iter().position(is_bound).map_or(stmts.len(), |at| at + 1);
    let behind = stmts[..end].iter().skip_while(|stmt| !classify::has_boundary(stmt));
    behind.into_iter().any(|stmt| uses::of_stmt(stmt).has(name))
}

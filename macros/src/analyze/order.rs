//! The order in which code changes a variable and uses what depends on it, as the checks of closures need it.

use std::collections::HashSet;

use proc_macro2::Ident;
use syn::{
    Block, Expr, ExprAssign, ExprForLoop, ExprIf, ExprLoop, ExprMacro, ExprMatch, ExprWhile, Local, Macro,
    Stmt,
    visit::{self, Visit},
};

use crate::{
    facts::{classify, macros, uses},
    parse::{attributes, syntax},
};

#[derive(Clone, Copy)]
struct State {
    is_replaced: bool,
    /// Whether a boundary has come since then.
    is_behind: bool,
}

impl State {
    fn or(self, other: Self) -> Self {
        Self {
            is_replaced: self.is_replaced | other.is_replaced,
            is_behind: self.is_behind | other.is_behind,
        }
    }
}

/// Follows code in the order of its evaluation, as far as a use of a variable after that got another value, or of what depends on it.
pub(super) struct Order<'n> {
    name: &'n str,
    /// What uses count: the variable's own behind a boundary alone, or those of a closure that took its value.
    counted: Counted,
    /// The closure, and others and macros that use what counts.
    users: HashSet<String>,
    /// Of these, those that may replace it.
    replacers: HashSet<String>,
    /// Of the arms and loops around the code, which may not run.
    depth: usize,
    state: State,
    /// The first use that counts.
    pub(super) used: Option<Ident>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    OfVariable,
    OfClosure,
}

impl<'n> Order<'n> {
    /// Finds a use of a variable behind a boundary that comes after a change.
    pub(super) fn of_variable(name: &'n str) -> Self {
        Self::new(name, Counted::OfVariable, HashSet::new())
    }

    /// Finds a call of a closure after a change of a variable.
    pub(super) fn of_closure(closure: &str, name: &'n str) -> Self {
        Self::new(name, Counted::OfClosure, HashSet::from([closure.to_owned()]))
    }

    fn new(name: &'n str, counted: Counted, users: HashSet<String>) -> Self {
        let state = State { is_replaced: false, is_behind: false };
        Self { name, counted, users, replacers: HashSet::new(), depth: 0, state, used: None }
    }

    /// Returns whether a use of a name counts.
    fn counts(&self, name: &str) -> bool {
        self.users.contains(name) || self.counted == Counted::OfVariable && name == self.name
    }

    /// Visits statements as far as the name has its meaning.
    pub(super) fn statements(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            self.visit_stmt(stmt);
            if syntax::bound_by(stmt).iter().any(|bound| bound.ident == self.name) {
                return;
            }
        }
    }

    /// Visits code that may not run, or run several times.
    fn perhaps(&mut self, visit: impl Fn(&mut Self)) {
        let before = self.state;
        self.depth += 1;
        visit(self);
        self.depth -= 1;
        self.state = self.state.or(before);
    }

    fn again(&mut self, visit: impl Fn(&mut Self)) {
        self.perhaps(|order| {
            visit(order);
            visit(order);
        });
    }

    fn replace(&mut self) {
        let is_behind = self.depth > 0 && self.state.is_behind;
        self.state = State { is_replaced: true, is_behind };
    }

    /// Notes a use of a name.
    fn meet(&mut self, ident: &Ident) {
        let name = ident.to_string();
        let is_late = match self.counted {
            Counted::OfVariable => self.state.is_behind,
            Counted::OfClosure => self.state.is_replaced,
        };
        if is_late && self.used.is_none() && self.counts(&name) {
            self.used = Some(ident.clone());
        }
        if self.replacers.contains(&name) {
            self.perhaps(Self::replace);
        }
    }

    fn cross(&mut self) {
        self.state.is_behind |= self.state.is_replaced;
    }
}

impl<'a> Visit<'a> for Order<'_> {
    fn visit_block(&mut self, block: &'a Block) {
        let before = self.state;
        self.statements(&block.stmts);
        // What such a block changes, no code behind it reads.
        if block.stmts.last().is_some_and(|stmt| matches!(stmt, Stmt::Expr(Expr::Return(_), _))) {
            self.state = before;
        }
    }

    fn visit_local(&mut self, local: &'a Local) {
        let init = local.init.as_ref().map(|init| &*init.expr);
        match (classify::closure_name(local), init) {
            (Some(closure), Some(init)) => {
                let of = uses::of_expr(init);
                if of.names().any(|name| self.counts(name)) {
                    self.users.insert(closure.clone());
                }
                let replaces = |u: &uses::Use| u.assigned || u.touched || u.in_macro;
                if of.get(self.name).is_some_and(replaces)
                    || of.names().any(|name| self.replacers.contains(name))
                {
                    self.replacers.insert(closure);
                }
            }
            _ => visit::visit_local(self, local),
        }
        if attributes::let_flag(&local.attrs, "host") || attributes::let_flag(&local.attrs, "key") {
            self.cross();
        }
    }

    /// Host code has the closure of the `let`, too.
    fn visit_expr(&mut self, expr: &'a Expr) {
        let is_boundary = attributes::boundary(expr).is_some();
        if is_boundary {
            self.cross();
        }
        visit::visit_expr(self, expr);
        if is_boundary {
            self.cross();
        }
    }

    fn visit_expr_if(&mut self, all: &'a ExprIf) {
        self.visit_expr(&all.cond);
        let before = self.state;
        self.perhaps(|order| order.visit_block(&all.then_branch));
        let then = std::mem::replace(&mut self.state, before);
        if let Some((_, otherwise)) = &all.else_branch {
            self.perhaps(|order| order.visit_expr(otherwise));
        }
        self.state = self.state.or(then);
    }

    fn visit_expr_match(&mut self, all: &'a ExprMatch) {
        self.visit_expr(&all.expr);
        let (before, mut after) = (self.state, self.state);
        for arm in &all.arms {
            self.state = before;
            self.perhaps(|order| order.visit_arm(arm));
            after = after.or(self.state);
        }
        self.state = after;
    }

    fn visit_expr_for_loop(&mut self, all: &'a ExprForLoop) {
        self.visit_expr(&all.expr);
        self.again(|order| order.visit_block(&all.body));
    }

    fn visit_expr_while(&mut self, all: &'a ExprWhile) {
        self.again(|order| {
            order.visit_expr(&all.cond);
            order.visit_block(&all.body);
        });
    }

    fn visit_expr_loop(&mut self, all: &'a ExprLoop) {
        self.again(|order| order.visit_block(&all.body));
    }

    fn visit_expr_assign(&mut self, assign: &'a ExprAssign) {
        self.visit_expr(&assign.right);
        let is_replaced = uses::of_assigned(&assign.left)
            .0
            .iter()
            .any(|(name, u)| name == self.name && (u.assigned || u.touched));
        match is_replaced {
            true => self.replace(),
            false => self.visit_expr(&assign.left),
        }
    }

    fn visit_expr_reference(&mut self, reference: &'a syn::ExprReference) {
        visit::visit_expr_reference(self, reference);
        let base = syntax::place_base(&reference.expr);
        if reference.mutability.is_some() && base.is_some_and(|base| base == self.name) {
            self.replace();
        }
    }

    fn visit_expr_path(&mut self, path: &'a syn::ExprPath) {
        if let Some(ident) = path.path.get_ident() {
            self.meet(ident);
        }
    }

    fn visit_macro(&mut self, mac: &'a Macro) {
        if let Some(called) = mac.path.get_ident() {
            self.meet(called);
        }
        let of = uses::of_expr(&Expr::Macro(ExprMacro { attrs: Vec::new(), mac: mac.clone() }));
        for (name, u) in &of.0 {
            self.meet(&u.ident);
            if name == self.name && (u.assigned || u.touched || u.in_macro && !macros::only_reads(mac)) {
                self.replace();
            }
        }
    }

    /// A macro of the function that names it may do anything with it.
    fn visit_item(&mut self, item: &'a syn::Item) {
        if let syn::Item::Macro(syn::ItemMacro { ident: Some(defined), mac, .. }) = item {
            let named: Vec<String> =
                macros::idents(mac.tokens.clone()).iter().map(ToString::to_string).collect();
            if named.iter().any(|name| self.counts(name)) {
                self.users.insert(defined.to_string());
            }
            if named.iter().any(|name| name == self.name || self.replacers.contains(name)) {
                self.replacers.insert(defined.to_string());
            }
        }
    }
}

//! The names from outside that a piece of code uses, and how it uses them.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::{
    BinOp, Block, Expr, Ident, Local, Pat, Stmt, Token, UnOp,
    parse::Parser,
    punctuated::Punctuated,
    visit::{self, Visit},
};

use super::{classify, macros, values};
use crate::parse::{
    attributes, format_strings,
    syntax::{
        Bound, binds_mutably, bound, bound_always, bound_by_let, compares, field_path, is_assign,
        leaves_part, place_base, plain_name, values_among,
    },
};

mod macro_rules;
mod set;

pub(crate) use set::Sequence;
use set::Way;
pub(crate) use set::{Use, Uses};

/// Returns the variables from outside that each rule of a macro names.
pub(crate) fn of_rules(tokens: &TokenStream) -> HashSet<String> {
    let rules = macro_rules::of(tokens).unwrap_or_default();
    rules.into_iter().map(|rule| rule.values).reduce(|all, some| &all & &some).unwrap_or_default()
}

/// The outer names of a statement.
pub(crate) fn of_stmt(stmt: &Stmt) -> Uses {
    let mut free = Free::default();
    free.scopes.push(HashSet::new());
    free.visit_stmt(stmt);
    free.uses
}

/// The outer names of an expression.
pub(crate) fn of_expr(expr: &Expr) -> Uses {
    let mut free = Free::default();
    free.scopes.push(HashSet::new());
    free.visit_expr(expr);
    free.uses
}

/// The outer names of an expression whose value leaves its place.
pub(crate) fn of_given(expr: &Expr) -> Uses {
    let mut free = Free::default();
    free.scopes.push(HashSet::new());
    free.given(expr);
    free.uses
}

/// All names among tokens that may be those of variables.
pub(crate) fn of_tokens(tokens: &TokenStream) -> Uses {
    let mut free = Free::default();
    free.scan(tokens);
    free.uses
}

/// Returns the names that the left side of an assignment assigns, or uses to determine the place.
pub(crate) fn of_assigned(left: &Expr) -> Uses {
    let mut free = Free::default();
    free.scopes.push(HashSet::new());
    free.assign_to(left, false);
    free.uses
}

#[cfg(test)]
thread_local! {
    /// The number of times that a statement was searched for names.
    pub(crate) static VISITED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[derive(Default)]
struct Free {
    scopes: Vec<HashSet<String>>,
    uses: Uses,
}

impl Free {
    fn is_bound(&self, ident: &Ident) -> bool {
        let name = ident.to_string();
        self.scopes.iter().any(|s| s.contains(&name))
    }

    fn bind(&mut self, bound: Vec<Bound>) {
        let names = bound.into_iter().map(|b| b.ident.to_string());
        if let Some(scope) = self.scopes.last_mut() {
            scope.extend(names);
        }
    }

    fn bind_ident(&mut self, ident: &Ident) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(ident.to_string());
        }
    }

    fn note(&mut self, ident: &Ident, f: impl FnOnce(&mut Use)) {
        if !self.is_bound(ident) {
            f(self.uses.entry(ident));
        }
    }

    fn scoped(&mut self, f: impl FnOnce(&mut Self)) {
        self.scopes.push(HashSet::new());
        f(self);
        self.scopes.pop();
    }

    /// Returns the uses of code beside the rest.
    fn apart(&mut self, f: impl FnOnce(&mut Self)) -> Uses {
        let outside = std::mem::take(&mut self.uses);
        f(self);
        std::mem::replace(&mut self.uses, outside)
    }

    /// Visits code that may be passed over.
    fn perhaps(&mut self, f: impl FnOnce(&mut Self)) {
        let uses = self.apart(f);
        self.uses.one_of(&[Way { uses, ends_the_call: false }, Way::default()]);
    }

    /// Visits an expression whose value is used.
    fn value(&mut self, expr: &Expr) {
        self.operand(expr);
        // `*` moves out of a box.
        let place = match expr {
            Expr::Unary(u) if matches!(u.op, UnOp::Deref(_)) => &*u.expr,
            place => place,
        };
        if let Some(base) = place_base(place).filter(|_| matches!(place, Expr::Path(_) | Expr::Field(_))) {
            self.note(base, |u| u.handed_on = true);
        }
    }

    /// Visits a value that is matched with a pattern, which may leave all or a part of it.
    fn matched(&mut self, pat: &Pat, value: &Expr) {
        if let (Pat::Wild(_), Some(name)) = (pat, plain_name(value)) {
            // It stays where it is, and no closure captures it.
            return self.note(name, |_| {});
        }
        let leaves = leaves_part(pat) || bound_always(pat).iter().any(|b| b.by_ref);
        let name = plain_name(value).filter(|_| leaves);
        let always = name.is_some_and(|name| self.uses.get(&name.to_string()).is_some_and(|u| u.always));
        self.value(value);
        name.into_iter().for_each(|name| self.note(name, |u| u.always = always));
    }

    /// Visits an operand of an operator.
    fn operand(&mut self, expr: &Expr) {
        if let Some(name) = plain_name(expr) {
            self.note(name, |u| {
                u.whole = true;
                (u.by_value, u.always) = (true, true);
            });
        } else {
            if let Expr::Field(f) = expr
                && let Some((base, path)) = field_path(f)
            {
                self.note(base, |u| _ = u.parts.insert(path));
            }
            self.visit_expr(expr);
        }
    }

    /// Visits an expression out of which a field may be moved: the value of a block, a scrutinee, or an
    /// iterator.
    fn taken(&mut self, expr: &Expr) {
        if let Expr::Field(f) = expr
            && let Some((base, path)) = field_path(f)
        {
            self.note(base, |u| {
                u.taken = true;
                u.parts.insert(path);
                u.handed_on = true;
            });
        }
    }

    /// Notes that a variable that is matched with a pattern may be moved into what that binds.
    fn moved_by(&mut self, pat: &Pat, value: &Expr) {
        if let Some(name) = plain_name(value).filter(|_| !bound(pat).is_empty()) {
            self.note(name, |u| u.handed_on = true);
        }
    }

    /// The variable that `ref mut` in `pat` changes by, when `value` is matched with it.
    fn lent(&mut self, pat: &Pat, value: &Expr) {
        if binds_mutably(pat)
            && let Some(base) = place_base(value)
        {
            self.note(base, |u| {
                u.whole = true;
                u.touched = true;
            });
        }
    }

    fn assign_to(&mut self, place: &Expr, reads: bool) {
        match place {
            Expr::Tuple(t) => t.elems.iter().for_each(|e| self.assign_to(e, reads)),
            Expr::Array(a) => a.elems.iter().for_each(|e| self.assign_to(e, reads)),
            Expr::Struct(s) => s.fields.iter().for_each(|f| self.assign_to(&f.expr, reads)),
            // A tuple struct: nothing else of this form is possible on the left side.
            Expr::Call(c) => c.args.iter().for_each(|e| self.assign_to(e, reads)),
            Expr::Paren(p) => self.assign_to(&p.expr, reads),
            Expr::Group(g) => self.assign_to(&g.expr, reads),
            Expr::Unary(u) if matches!(u.op, UnOp::Deref(_)) => {
                if let Some(name) = place_base(&u.expr) {
                    self.note(name, |u| {
                        u.whole = true;
                        u.through = true;
                    });
                }
                self.visit_expr(&u.expr);
            }
            other => match plain_name(other) {
                Some(name) => self.note(name, |u| {
                    u.assigned = true;
                    u.whole |= reads;
                }),
                None => {
                    if let Some(base) = place_base(other) {
                        self.note(base, |u| {
                            u.touched = true;
                            u.whole = true;
                        });
                    }
                    self.visit_expr(other);
                }
            },
        }
    }

    /// A macro call: expressions where its tokens parse, else every identifier counts.
    fn call_of(&mut self, mac: &syn::Macro) {
        let reads = macros::only_reads(mac);
        let outside = std::mem::take(&mut self.uses);
        let elements = macros::elements(mac);
        match &elements {
            // Of a list, as of an array.
            Some(elements) => elements.iter().for_each(|e| self.value(e)),
            None => self.tokens_inside(&mac.tokens),
        }
        // Nothing is replaced inside a macro call, so a field path there needs its base as a whole.
        let mut inside = std::mem::replace(&mut self.uses, outside);
        inside.0.iter_mut().for_each(|(_, u)| {
            (u.whole, u.named) = (true, elements.is_none());
            u.in_macro |= !reads;
        });
        self.uses.merge(&inside);
    }

    fn tokens_inside(&mut self, tokens: &TokenStream) {
        let parsed = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(tokens.clone());
        if let Ok(exprs) = parsed {
            for expr in &exprs {
                match expr {
                    // `name = value` of a format string.
                    Expr::Assign(a) => self.visit_expr(&a.right),
                    other => self.visit_expr(other),
                }
                self.inline_names(expr);
            }
        } else {
            self.scan(tokens);
        }
    }

    fn inline_names(&mut self, expr: &Expr) {
        if let Expr::Lit(l) = expr
            && let syn::Lit::Str(s) = &l.lit
        {
            self.format_names(&s.value(), s.span());
        }
    }

    /// `{name}` and `{:width$}` in a format string.
    fn format_names(&mut self, text: &str, span: proc_macro2::Span) {
        for name in format_strings::names(text, span) {
            self.note(&name, |u| u.whole = true);
        }
    }

    /// A macro that code defines: wherever it is called, it means what its names stand for here.
    fn definition(&mut self, tokens: &TokenStream) {
        match macro_rules::of(tokens) {
            Some(rules) => rules.iter().for_each(|rule| self.rule(rule.code.clone(), rule.outer.as_ref())),
            None => self.rule(tokens.clone(), None),
        }
    }

    /// A rule of a macro: every identifier counts that may stand for a variable from outside, which are among the names `outer`
    /// if these are known.
    fn rule(&mut self, tokens: TokenStream, outer: Option<&HashMap<String, bool>>) {
        let all: Vec<TokenTree> = tokens.into_iter().collect();
        let mut declared = None;
        self.scoped(|s| {
            for (at, token) in all.iter().enumerate() {
                let around = Neighbours { all: &all, at };
                match token {
                    TokenTree::Ident(ident) if around.is_declared() => {
                        declared = Some(ident).filter(|_| outer.is_none());
                    }
                    TokenTree::Ident(ident) if around.may_be_variable() => {
                        let name = ident.to_string();
                        let changes = outer.map_or(Some(true), |names| names.get(&name).copied());
                        changes.into_iter().for_each(|changes| s.named_by_rule(ident, changes));
                    }
                    TokenTree::Group(g) => s.rule(g.stream(), outer),
                    TokenTree::Literal(_) => s.scan(&token.clone().into()),
                    // In scope from here on.
                    TokenTree::Punct(p) if p.as_char() == ';' => {
                        declared.take().into_iter().for_each(|ident| s.bind_ident(ident));
                    }
                    TokenTree::Ident(_) | TokenTree::Punct(_) => {}
                }
            }
        });
    }

    fn named_by_rule(&mut self, ident: &Ident, changes: bool) {
        self.note(ident, |u| {
            u.whole = true;
            u.in_rules = true;
            u.in_macro |= changes;
        });
    }

    fn scan(&mut self, tokens: &TokenStream) {
        for token in tokens.clone() {
            match token {
                TokenTree::Ident(i) => self.note(&i, |u| u.whole = true),
                TokenTree::Group(g) => self.scan(&g.stream()),
                TokenTree::Literal(l) => {
                    if let syn::Lit::Str(s) = syn::Lit::new(l) {
                        self.format_names(&s.value(), s.span());
                    }
                }
                TokenTree::Punct(_) => {}
            }
        }
    }
}

/// An identifier among the tokens of a macro's rules.
struct Neighbours<'t> {
    all: &'t [TokenTree],
    at: usize,
}

impl Neighbours<'_> {
    /// The character at a distance from it, if that is one.
    fn punct(&self, distance: isize) -> Option<char> {
        match self.all.get(self.at.checked_add_signed(distance)?)? {
            TokenTree::Punct(p) => Some(p.as_char()),
            _ => None,
        }
    }

    fn is_after(&self, word: &str) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.all.get(at));
        matches!(before, Some(TokenTree::Ident(ident)) if ident == word)
    }

    /// `let x` and `let mut x`, unless that may be left out.
    fn is_declared(&self) -> bool {
        let is_bound = self.is_after("let")
            && !matches!(&self.all[self.at], TokenTree::Ident(word) if word == "mut")
            || self.is_after("mut") && self.punct(-2).is_none();
        is_bound && !self.is_conditional()
    }

    /// Returns whether an attribute before the `let` is a condition, as far as can be seen: a parameter of the macro may be one.
    fn is_conditional(&self) -> bool {
        for token in self.all[..self.at].iter().rev() {
            match token {
                TokenTree::Punct(p) if p.as_char() == ';' => return false,
                TokenTree::Group(g) if g.delimiter() == Delimiter::Brace => return false,
                TokenTree::Group(g) => {
                    let text = g.stream().to_string();
                    if text.contains("cfg") || text.contains('$') {
                        return true;
                    }
                }
                _ => {}
            }
        }
        false
    }

    /// Returns whether it is no parameter of the macro, no field, no part of a path and no macro.
    fn may_be_variable(&self) -> bool {
        let is_field = self.punct(-1) == Some('.') && self.punct(-2) != Some('.');
        let is_call = self.punct(1) == Some('!') && self.punct(2) != Some('=');
        // A field of a struct, `a: b`, may have the value of a variable.
        let is_in_path =
            self.punct(-1) == Some(':') && self.punct(-2) == Some(':') || self.punct(1) == Some(':');
        let is_label = self.punct(-1) == Some('\'');
        !is_field && !is_call && !is_in_path && !is_label && self.punct(-1) != Some('$')
    }
}

impl<'a> Free {
    /// A region that binds its capability.
    fn region(&mut self, expr: &Expr, cx: &Ident) {
        let stripped = attributes::without_ours(expr);
        self.scoped(|s| {
            s.bind_ident(cx);
            // The stripped copy exists only here, so a separate visitor walks it.
            let mut inner = Free { scopes: s.scopes.clone(), uses: std::mem::take(&mut s.uses) };
            inner.visit_expr(&stripped);
            s.uses = inner.uses;
        });
    }

    /// A value that leaves its place: one that is assigned, returned, or given by a `break`.
    fn given(&mut self, expr: &'a Expr) {
        self.taken(expr);
        self.value(expr);
    }

    fn method_call(&mut self, m: &'a syn::ExprMethodCall) {
        if let Some(name) = plain_name(&m.receiver) {
            self.note(name, |u| {
                u.whole = true;
                u.touched = true;
            });
        } else {
            if consumes(&m.method) {
                self.taken(&m.receiver);
            } else if !values::only_reads(&m.method)
                && let Expr::Field(f) = &*m.receiver
                && let Some((base, _)) = field_path(f)
            {
                self.note(base, |u| u.called = true);
            }
            if let Some(base) = place_base(&m.receiver) {
                self.note(base, |u| u.touched = true);
            }
            self.visit_expr(&m.receiver);
        }
        m.args.iter().for_each(|a| self.value(a));
    }

    fn binary(&mut self, b: &'a syn::ExprBinary) {
        if matches!(b.op, BinOp::And(_) | BinOp::Or(_)) {
            // A `let` on the left is in scope on the right.
            self.visit_expr(&b.left);
            self.perhaps(|s| s.visit_expr(&b.right));
        } else if compares(&b.op) {
            self.visit_expr(&b.right);
            self.visit_expr(&b.left);
        } else {
            // An operator takes its operands.
            self.operand(&b.right);
            if is_assign(&b.op) { self.assign_to(&b.left, true) } else { self.operand(&b.left) }
        }
    }

    fn branches(&mut self, i: &'a syn::ExprIf) {
        let mut ways = [Way::default(), Way::default()];
        self.scoped(|s| {
            s.visit_expr(&i.cond);
            ways[0].uses = s.apart(|s| s.visit_block(&i.then_branch));
        });
        ways[0].ends_the_call = classify::ends_the_call(&i.then_branch.stmts);
        if let Some((_, other)) = &i.else_branch {
            ways[1].uses = self.apart(|s| s.value(other));
            ways[1].ends_the_call = classify::expr_never_ends(other);
        }
        self.uses.one_of(&ways);
    }

    /// A closure, which has what it moves from when it is made.
    fn closure(&mut self, c: &'a syn::ExprClosure) {
        let mut inside = self.apart(|s| {
            s.scoped(|s| {
                c.inputs.iter().for_each(|p| s.bind(bound_always(p)));
                s.value(&c.body);
            });
        });
        for (_, u) in &mut inside.0 {
            // Of a variable whose fields it names, it may capture these alone, and one that only a macro names not at all.
            let is_named = u.whole && u.fields.is_empty() && !u.named;
            let is_whole = u.captured && u.always || c.capture.is_some() && is_named;
            u.captured |= c.capture.is_some();
            u.always = u.by_value || is_whole;
        }
        self.uses.merge(&inside);
    }

    /// Visits control flow, whose blocks are scopes, and all expressions without a special rule.
    fn control(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Match(m) => {
                for arm in &m.arms {
                    self.lent(&arm.pat, &m.expr);
                    self.moved_by(&arm.pat, &m.expr);
                }
                self.taken(&m.expr);
                self.visit_expr(&m.expr);
                let way = |s: &mut Self, arm: &'a syn::Arm| Way {
                    uses: s.apart(|s| s.visit_arm(arm)),
                    ends_the_call: classify::expr_never_ends(&arm.body),
                };
                let ways: Vec<Way> = m.arms.iter().map(|arm| way(self, arm)).collect();
                self.uses.one_of(&ways);
            }
            Expr::If(i) => self.branches(i),
            Expr::While(w) => self.scoped(|s| {
                s.visit_expr(&w.cond);
                s.perhaps(|s| s.visit_block(&w.body));
            }),
            Expr::Loop(l) => self.perhaps(|s| s.visit_block(&l.body)),
            // A `break` may leave it earlier.
            Expr::Block(b) if b.label.is_some() => self.perhaps(|s| s.visit_block(&b.block)),
            Expr::Let(l) => {
                self.lent(&l.pat, &l.expr);
                self.moved_by(&l.pat, &l.expr);
                self.taken(&l.expr);
                self.visit_expr(&l.expr);
                self.bind(bound(&l.pat));
            }
            Expr::ForLoop(f) => {
                self.given(&f.expr);
                self.scoped(|s| {
                    s.bind(bound_always(&f.pat));
                    s.perhaps(|s| s.visit_block(&f.body));
                });
            }
            other => visit::visit_expr(self, other),
        }
    }
}

impl<'a> Visit<'a> for Free {
    fn visit_block(&mut self, block: &'a Block) {
        let outside = std::mem::take(&mut self.uses);
        self.scoped(|s| {
            values_among(&block.stmts).for_each(|item| s.bind_ident(item));
            block.stmts.iter().for_each(|stmt| s.visit_stmt(stmt));
        });
        let mut inside = std::mem::replace(&mut self.uses, outside);
        if classify::ends_the_call(&block.stmts) {
            // No later code misses the values that it moved.
            inside.0.iter_mut().for_each(|(_, u)| (u.by_value, u.captured) = (false, false));
        }
        self.uses.merge(&inside);
    }

    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        #[cfg(test)]
        VISITED.with(|v| v.set(v.get() + 1));
        match stmt {
            Stmt::Item(syn::Item::Macro(m)) => self.definition(&m.mac.tokens),
            Stmt::Item(_) => {}
            Stmt::Macro(m) => self.call_of(&m.mac),
            Stmt::Expr(e, _) => {
                self.taken(e);
                self.value(e);
            }
            Stmt::Local(local) => self.visit_local(local),
        }
    }

    fn visit_local(&mut self, local: &'a Local) {
        if let Some(init) = &local.init {
            self.lent(&local.pat, &init.expr);
            self.matched(&local.pat, &init.expr);
            if let Some((_, diverge)) = &init.diverge {
                let uses = self.apart(|s| s.visit_expr(diverge));
                self.uses.one_of(&[Way { uses, ends_the_call: true }, Way::default()]);
            }
        }
        self.bind(bound_by_let(local));
    }

    fn visit_macro(&mut self, mac: &'a syn::Macro) {
        self.call_of(mac);
    }

    fn visit_arm(&mut self, arm: &'a syn::Arm) {
        self.scoped(|s| {
            s.bind(bound(&arm.pat));
            if let Some((_, guard)) = &arm.guard {
                s.visit_expr(guard);
            }
            s.taken(&arm.body);
            s.value(&arm.body);
        });
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        // `cx` of `#[eager(cx)]` is bound inside.
        if let Some(cx) = attributes::eager_capability(expr) {
            return self.region(expr, &cx);
        }
        if let Some(name) = plain_name(expr) {
            return self.note(name, |u| u.whole = true);
        }
        match expr {
            Expr::Path(_) => {}
            Expr::Field(f) => match field_path(f) {
                Some((base, path)) => self.note(base, |u| {
                    u.fields.insert(path);
                }),
                None => visit::visit_expr_field(self, f),
            },
            Expr::MethodCall(m) => self.method_call(m),
            Expr::Call(c) => {
                self.visit_expr(&c.func);
                c.args.iter().for_each(|a| self.value(a));
            }
            Expr::Tuple(t) => t.elems.iter().for_each(|e| self.value(e)),
            Expr::Array(a) => a.elems.iter().for_each(|e| self.value(e)),
            Expr::Struct(s) => {
                s.fields.iter().for_each(|f| self.value(&f.expr));
                if let Some(rest) = &s.rest {
                    // Fields that are not named are moved.
                    if let Some(base) = place_base(rest) {
                        self.note(base, |u| u.handed_on = true);
                    }
                    self.visit_expr(rest);
                }
            }
            Expr::Assign(a) if matches!(*a.left, Expr::Infer(_)) && plain_name(&a.right).is_some() => {
                plain_name(&a.right).into_iter().for_each(|name| self.note(name, |_| {}));
            }
            Expr::Assign(a) => {
                self.given(&a.right);
                self.assign_to(&a.left, false);
            }
            Expr::Binary(b) => self.binary(b),
            Expr::Reference(r) if r.mutability.is_some() => {
                if let Some(base) = place_base(&r.expr) {
                    self.note(base, |u| {
                        u.whole = true;
                        u.touched = true;
                    });
                }
                self.visit_expr(&r.expr);
            }
            Expr::Return(syn::ExprReturn { expr, .. }) | Expr::Break(syn::ExprBreak { expr, .. }) => {
                expr.iter().for_each(|e| self.given(e));
            }
            Expr::Try(t) => self.given(&t.expr),
            Expr::Closure(c) => self.closure(c),
            Expr::Macro(m) => self.call_of(&m.mac),
            other => self.control(other),
        }
    }

    fn visit_item(&mut self, _: &'a syn::Item) {}
}

/// Returns whether a method with this name may take its receiver by value, like those of `Option` and `Result`.
pub(crate) fn consumes(method: &Ident) -> bool {
    let name = method.to_string();
    takes_option(method)
        || ["into_", "unwrap", "expect", "ok_or", "map_or"].iter().any(|p| name.starts_with(p))
}

/// Returns whether a method has the name of one that takes an `Option` or a `Result` by value.
pub(crate) fn takes_option(method: &Ident) -> bool {
    const NAMES: [&str; 25] = [
        "map",
        "map_or",
        "map_or_else",
        "map_or_default",
        "map_err",
        "is_some_and",
        "is_none_or",
        "is_ok_and",
        "is_err_and",
        "and_then",
        "and",
        "or",
        "or_else",
        "xor",
        "zip",
        "filter",
        "flatten",
        "transpose",
        "unwrap",
        "unwrap_or",
        "unwrap_or_else",
        "unwrap_or_default",
        "expect",
        "ok_or",
        "ok_or_else",
    ];
    NAMES.iter().any(|name| method == name)
}

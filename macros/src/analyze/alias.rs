//! Alias analysis of a function body: the values that its names may stand for.
//!
//! A name that is bound several times stands for everything it is bound to: an overestimate is never wrong
//! here, since the results only forbid moves.

use std::collections::{BTreeSet, HashMap, HashSet};

use syn::{
    Block, Expr, Local,
    visit::{self, Visit},
};

use crate::{
    facts::{classify, macros, operations, sizes, uses, uses::Uses, values},
    model::Header,
    parse::{attributes, syntax},
};

/// The names of a function.
#[derive(Default)]
pub(super) struct Names {
    /// Parameters, and names that the body binds.
    known: HashSet<String>,
    /// For each name, the parameters whose memory it may refer to, among those that may hold state.
    roots: HashMap<String, BTreeSet<String>>,
    /// Names that are bound somewhere to a value that moves when it is used.
    owned: HashSet<String>,
    /// Names that are somewhere bound as `mut`.
    mutable: HashSet<String>,
    /// Names that may be, or hold, a reference to change something by: `let r = &mut pair;`.
    exclusive: HashSet<String>,
    /// The uses of closures, by their names.
    closures: HashMap<String, Uses>,
    /// Macros that the function defines: they use names that their calls do not show.
    macros: HashSet<String>,
}

impl Names {
    pub(super) fn of(block: &Block, header: &Header<'_>) -> Self {
        let mut found = Self::default();
        let text = |names: &[&syn::Ident]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        found.known.extend(text(&header.params));
        found.mutable.extend(text(&header.mutable));
        found.owned.extend(text(&header.owned));
        for name in text(&header.holding) {
            found.roots.entry(name.clone()).or_default().insert(name);
        }
        let mut bindings = Bindings { found: &mut found, list: Vec::new() };
        bindings.visit_block(block);
        let list = bindings.list;
        // Names stand for what other names stand for, in any order of binding.
        while list.iter().fold(false, |grown, (names, value)| found.grow(names, value) || grown) {}
        found
    }

    /// Adds what `value` implies about the names that are bound to it; returns whether that is new.
    fn grow(&mut self, names: &[String], value: &Expr) -> bool {
        let (roots, owned) = (self.points_to(value), self.moves(value));
        let exclusive = values::may_hold_exclusive(value)
            || uses::of_expr(value).names().any(|name| self.exclusive.contains(name));
        let mut grown = false;
        for name in names {
            grown |= exclusive && self.exclusive.insert(name.clone());
            grown |= owned && self.owned.insert(name.clone());
            if !roots.is_empty() {
                let known = self.roots.entry(name.clone()).or_default();
                let before = known.len();
                known.extend(roots.iter().cloned());
                grown |= known.len() > before;
            }
        }
        grown
    }

    /// Returns the parameters whose state the name may refer to.
    pub(super) fn roots(&self, name: &str) -> BTreeSet<String> {
        self.roots.get(name).cloned().unwrap_or_default()
    }

    /// Returns whether using the name's value may move it.
    pub(super) fn is_owned(&self, name: &str) -> bool {
        self.owned.contains(name)
    }

    pub(super) fn is_mutable(&self, name: &str) -> bool {
        self.mutable.contains(name)
    }

    /// Returns whether something may be changed through the name, although it is not `mut`.
    pub(super) fn is_exclusive(&self, name: &str) -> bool {
        self.exclusive.contains(name)
    }

    /// Returns the variables that a statement uses, including those of the closures that it names.
    pub(super) fn used_by(&self, stmt: &syn::Stmt) -> Uses {
        let mut uses = uses::of_stmt(stmt);
        let mut at = 0;
        while at < uses.0.len() {
            if let Some(inside) = self.closures.get(&uses.0[at].0) {
                uses.merge(inside);
            }
            at += 1;
        }
        // Functions and constants are not variables.
        uses.0.retain(|(name, _)| self.known.contains(name));
        uses
    }

    /// Returns whether the code calls a macro defined in the function.
    pub(super) fn calls_own_macro(&self, stmt: &syn::Stmt) -> bool {
        macros::calls_any(stmt, &self.macros)
    }

    /// Returns the parameters into whose memory the value of an expression may be a reference.
    ///
    /// The operand of `?` is assumed to be a new value, like the results of device code, unless it only
    /// passes on its receiver.
    fn points_to(&self, expr: &Expr) -> BTreeSet<String> {
        if let Some(name) = syntax::plain_name(expr) {
            return self.roots(&name.to_string());
        }
        match expr {
            Expr::Lit(_) | Expr::Binary(_) | Expr::Range(_) => BTreeSet::new(),
            Expr::Field(e) => self.points_to(&e.base),
            Expr::Index(e) => self.points_to(&e.expr),
            Expr::Paren(e) => self.points_to(&e.expr),
            Expr::Group(e) => self.points_to(&e.expr),
            Expr::Reference(e) => self.points_to(&e.expr),
            Expr::Unary(e) => self.points_to(&e.expr),
            Expr::Cast(e) => self.points_to(&e.expr),
            Expr::Try(e) => match &*e.expr {
                Expr::Call(_) if !operations::is_operation(&e.expr) => BTreeSet::new(),
                Expr::MethodCall(m) if !hands_on(&m.method) => BTreeSet::new(),
                inner => self.points_to(inner),
            },
            Expr::Call(_) if operations::gives_tensor(expr) => BTreeSet::new(),
            Expr::Call(c) => self.all(&c.args),
            Expr::MethodCall(m) if sizes::is_number(&m.method) => BTreeSet::new(),
            Expr::MethodCall(m) => self.all(std::iter::once(&*m.receiver).chain(&m.args)),
            Expr::Tuple(e) => self.all(&e.elems),
            Expr::Array(e) => self.all(&e.elems),
            Expr::Struct(e) => self.all(e.fields.iter().map(|f| &f.expr).chain(e.rest.as_deref())),
            Expr::If(e) => {
                let other = e.else_branch.as_ref().map(|(_, e)| &**e);
                self.all(last(&e.then_branch).into_iter().chain(other))
            }
            Expr::Match(e) => self.all(e.arms.iter().map(|a| &*a.body)),
            Expr::Block(e) => self.all(last(&e.block)),
            Expr::Unsafe(e) => self.all(last(&e.block)),
            other => uses::of_expr(other).names().flat_map(|n| self.roots(n)).collect(),
        }
    }

    fn all<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> BTreeSet<String> {
        exprs.into_iter().flat_map(|e| self.points_to(e)).collect()
    }

    /// Returns whether the value of an expression may be something other than a number or a reference.
    fn moves(&self, expr: &Expr) -> bool {
        if let Some(name) = syntax::plain_name(expr) {
            return self.is_owned(&name.to_string());
        }
        match expr {
            Expr::Reference(_) | Expr::Lit(_) | Expr::Cast(_) | Expr::Binary(_) | Expr::Range(_) => false,
            Expr::Paren(e) => self.moves(&e.expr),
            Expr::Group(e) => self.moves(&e.expr),
            Expr::Unary(e) => self.moves(&e.expr),
            // Nothing can be moved out of a borrowed value.
            Expr::Field(e) => self.moves(&e.base),
            Expr::Index(e) => self.moves(&e.expr),
            Expr::MethodCall(m) => !sizes::is_number(&m.method),
            _ => true,
        }
    }
}

/// The value of a block.
fn last(block: &Block) -> Option<&Expr> {
    match block.stmts.last() {
        Some(syn::Stmt::Expr(e, None)) => Some(e),
        _ => None,
    }
}

/// Returns whether a method returns a part of its receiver, or another view of it.
fn hands_on(method: &syn::Ident) -> bool {
    const HAND_ON: [&str; 19] = [
        "get",
        "first",
        "last",
        "next",
        "nth",
        "find",
        "as_ref",
        "as_deref",
        "ok",
        "cloned",
        "copied",
        "narrow",
        "reshape",
        "permute",
        "context",
        "with_context",
        "map_err",
        "map",
        "and_then",
    ];
    let name = method.to_string();
    HAND_ON.contains(&name.as_str()) || ["ok_or", "split", "iter"].iter().any(|p| name.starts_with(p))
}

/// Collects the bindings of names, and the values that they are bound to.
struct Bindings<'n> {
    found: &'n mut Names,
    list: Vec<(Vec<String>, Expr)>,
}

impl Bindings<'_> {
    fn bind(&mut self, names: Vec<syntax::Bound>, value: &Expr) {
        self.list.push((names.iter().map(|b| b.ident.to_string()).collect(), value.clone()));
    }
}

impl<'a> Visit<'a> for Bindings<'_> {
    fn visit_local(&mut self, local: &'a Local) {
        if let Some(init) = &local.init {
            self.bind(syntax::bound_by_let(local), &init.expr);
        }
        if let (Some(name), Some(init)) = (classify::closure_name(local), &local.init) {
            self.found.closures.entry(name).or_default().merge(&uses::of_expr(&init.expr));
        }
        visit::visit_local(self, local);
    }
    fn visit_pat_ident(&mut self, p: &'a syn::PatIdent) {
        self.found.known.insert(p.ident.to_string());
        if p.mutability.is_some() {
            self.found.mutable.insert(p.ident.to_string());
        }
        if p.by_ref.is_some() && p.mutability.is_some() {
            self.found.exclusive.insert(p.ident.to_string());
        }
        visit::visit_pat_ident(self, p);
    }
    fn visit_expr_for_loop(&mut self, e: &'a syn::ExprForLoop) {
        self.bind(syntax::bound_always(&e.pat), &e.expr);
        visit::visit_expr_for_loop(self, e);
    }
    fn visit_expr_match(&mut self, e: &'a syn::ExprMatch) {
        e.arms.iter().for_each(|arm| self.bind(syntax::bound(&arm.pat), &e.expr));
        visit::visit_expr_match(self, e);
    }
    fn visit_expr_let(&mut self, e: &'a syn::ExprLet) {
        self.bind(syntax::bound(&e.pat), &e.expr);
        visit::visit_expr_let(self, e);
    }
    fn visit_expr_assign(&mut self, e: &'a syn::ExprAssign) {
        // A place inside a variable, too.
        let assigned = uses::of_assigned(&e.left).0.into_iter();
        let assigned = assigned.filter(|(_, u)| u.assigned || u.touched || u.through);
        self.list.push((assigned.map(|(name, _)| name).collect(), (*e.right).clone()));
        visit::visit_expr_assign(self, e);
    }
    fn visit_expr_method_call(&mut self, e: &'a syn::ExprMethodCall) {
        // `list.push(&kv.keys)`: a mutable receiver may store its arguments.
        if let Some(base) = syntax::place_base(&e.receiver).map(ToString::to_string)
            && (self.found.mutable.contains(&base) || self.found.exclusive.contains(&base))
        {
            self.list.extend(e.args.iter().map(|arg| (vec![base.clone()], arg.clone())));
        }
        visit::visit_expr_method_call(self, e);
    }
    fn visit_item(&mut self, item: &'a syn::Item) {
        if let syn::Item::Macro(m) = item {
            self.found.macros.extend(m.ident.as_ref().map(ToString::to_string));
        }
    }
}

/// Returns whether a region of the body requests to be moved.
pub(super) fn asks(block: &Block) -> bool {
    struct Asks(bool);
    impl<'a> Visit<'a> for Asks {
        fn visit_attribute(&mut self, a: &'a syn::Attribute) {
            self.0 |= attributes::is_eager(a) && attributes::edge(a).is_some();
        }
        fn visit_item(&mut self, _: &'a syn::Item) {}
    }
    let mut asks = Asks(false);
    asks.visit_block(block);
    asks.0
}

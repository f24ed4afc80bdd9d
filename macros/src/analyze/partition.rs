//! Walks the statements of a block, collects runs of device statements, and leaves the rest to the driver.

use std::collections::HashSet;

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Expr, Local, Stmt};

use super::{Tail, Transform, classify, ends, is_unit_like, operations, span_of, uses};
use crate::parse::{attributes, attributes::Edge};

/// Driver statements, some of which may turn out to be unnecessary.
enum Piece {
    Tokens(TokenStream),
    /// A closure: kept only if driver code uses it.
    Closure {
        name: String,
        id: Option<usize>,
        local: Box<Local>,
        /// The variables that it captures.
        variables: HashSet<String>,
    },
    /// The declaration of a binding that a run moved away: kept only if driver code assigns it.
    Emptied(Ident, usize),
    /// `let x;`: kept only if driver code assigns it, since nothing else would say its type.
    Declared(TokenStream, Vec<usize>),
}

impl Transform<'_, '_> {
    /// The driver's form of a block's statements; `after` are the bindings that live on behind it.
    pub(super) fn block(&mut self, stmts: &[Stmt], tail: Tail, after: &HashSet<usize>) -> TokenStream {
        let stmts = self.without_temporaries(stmts);
        let stmts = self.captured_apart(stmts);
        let (stmts, edges) = self.reordered(&stmts, tail);
        let pieces = self.scoped(|t| t.statements(&stmts, &edges, tail, after));
        let mut out = TokenStream::new();
        for piece in pieces {
            match piece {
                Piece::Tokens(t) => out.extend(t),
                Piece::Closure { name, id, local, variables } if self.driver_uses.contains(&name) => {
                    let shared = id.is_some_and(|id| self.in_segments.contains(&id));
                    let mut local = Self::copying(&local, |n| shared && variables.contains(n));
                    local.attrs.retain(|a| !attributes::is_made_again(a));
                    out.extend(quote!(#[allow(unused_variables)] #local))
                }
                Piece::Emptied(ident, id) if self.driver_assigned.contains(&id) => {
                    out.extend(quote!(#[allow(unused_mut)] let mut #ident;))
                }
                Piece::Declared(declared, ids) if ids.iter().any(|id| self.driver_assigned.contains(id)) => {
                    out.extend(declared)
                }
                Piece::Closure { .. } | Piece::Emptied(..) | Piece::Declared(..) => {}
            }
        }
        out
    }

    /// `let r = &f(x)?;` as `let v = f(x)?; let r = &v;`, which means the same: the value can then leave a segment.
    fn without_temporaries(&mut self, stmts: &[Stmt]) -> Vec<Stmt> {
        let mut all = Vec::with_capacity(stmts.len());
        for stmt in stmts {
            if let Stmt::Local(local) = stmt
                && local.attrs.is_empty()
                && let Some(init) = local.init.as_ref().filter(|i| i.diverge.is_none())
                && let Expr::Reference(r) = &*init.expr
                && r.attrs.is_empty()
                && (matches!(&*r.expr, Expr::Try(_) | Expr::Call(_) | Expr::Macro(_))
                    && !classify::call_free(&r.expr)
                    || attributes::boundary(&r.expr).is_some())
            {
                let (mut value, inner, mutability) = (self.fresh("v"), &r.expr, r.mutability);
                let (pat, at) = (&local.pat, r.and_token.span);
                // What is wrong with the value is shown at the user's name for it.
                value.set_span(value.span().located_at(syn::spanned::Spanned::span(pat)));
                all.push(syn::parse_quote_spanned!(at=> let #mutability #value = #inner;));
                all.push(syn::parse_quote_spanned!(at=> let #pat = &#mutability #value;));
            } else {
                all.push(stmt.clone());
            }
        }
        all
    }

    fn statements(
        &mut self,
        stmts: &[Stmt],
        edges: &[Option<Edge>],
        tail: Tail,
        after: &HashSet<usize>,
    ) -> Vec<Piece> {
        let mut out = Vec::new();
        let mut run: Vec<Stmt> = Vec::new();
        for (at, stmt) in stmts.iter().enumerate() {
            let rest = &stmts[at + 1..];
            self.edge = edges.get(at).copied().flatten();
            match stmt {
                Stmt::Item(item) => out.push(Piece::Tokens(quote!(#item))),
                Stmt::Local(local) => {
                    self.local(local, &stmts[at..], &mut run, &mut out, after);
                }
                // The block's value is that it never ends, which a segment's call would hide.
                Stmt::Expr(expr @ Expr::Return(_), _) if rest.is_empty() && tail != Tail::Unit => {
                    self.flush(&mut run, std::slice::from_ref(stmt), &mut out, after);
                    out.push(Piece::Tokens(self.tail_in_driver(expr, tail, after)));
                }
                Stmt::Macro(m)
                    if rest.is_empty() && tail != Tail::Unit && classify::never_returns(&m.mac) =>
                {
                    let last = std::slice::from_ref(stmt);
                    self.flush(&mut run, last, &mut out, after);
                    self.in_driver(&uses::of_stmts(last));
                    out.push(Piece::Tokens(quote!(#m)));
                }
                Stmt::Macro(m) if rest.is_empty() && m.semi_token.is_none() && tail != Tail::Unit => {
                    let expr = Expr::Macro(syn::ExprMacro { attrs: m.attrs.clone(), mac: m.mac.clone() });
                    self.tail(&expr, tail, &mut run, &mut out, after);
                }
                Stmt::Macro(_) => self.push(&mut run, stmt.clone()),
                Stmt::Expr(expr, semi) => {
                    let is_tail =
                        rest.is_empty() && semi.is_none() && tail != Tail::Unit && !is_unit_like(expr);
                    if is_tail {
                        self.tail(expr, tail, &mut run, &mut out, after);
                    } else {
                        self.statement(stmt, expr, &stmts[at..], &mut run, &mut out, after);
                    }
                }
            }
        }
        self.flush(&mut run, &[], &mut out, after);
        out
    }

    /// A statement of the pending run.
    fn push(&mut self, run: &mut Vec<Stmt>, stmt: Stmt) {
        self.pending.extend(bound_by(&stmt).into_iter().map(|b| b.ident.to_string()));
        if let Stmt::Macro(m) = &stmt {
            self.maybe_bound.extend(super::macro_bindings::named_by(&m.mac));
        }
        self.run.push(&stmt);
        let own = uses::of_stmts([&stmt]);
        let with_captures = self.with_captures(own.clone());
        if with_captures.0.len() > own.0.len() || self.names_closures(&own) {
            self.run.add(&with_captures);
        }
        let check = super::evaluation_order::Check::of(&stmt);
        if check.leaves() {
            self.checks.push((check, with_captures));
        }
        run.push(stmt);
    }

    /// Forgets the pending run.
    fn taken(&mut self) {
        self.pending.clear();
        self.maybe_bound.clear();
        self.run = uses::Growing::default();
        self.checks.clear();
    }

    /// Emits the pending run; `rest` are the statements behind it.
    fn flush(&mut self, run: &mut Vec<Stmt>, rest: &[Stmt], out: &mut Vec<Piece>, after: &HashSet<usize>) {
        if run.is_empty() {
            return;
        }
        let run = std::mem::take(run);
        self.taken();
        let tokens = self.segment(&run, None, rest, after);
        out.push(Piece::Tokens(tokens));
        out.extend(
            std::mem::take(&mut self.emptied).into_iter().map(|(ident, id)| Piece::Emptied(ident, id)),
        );
        // A closure of the run can be used by the driver from here on.
        for (at, stmt) in run.iter().enumerate() {
            let taken = |name: &str, s: &Stmt| {
                matches!(s, Stmt::Local(l) if closure_name(l).is_none())
                    && bound_by(s).iter().any(|b| b.ident == name)
            };
            if let Stmt::Local(local) = stmt
                && let Some(name) = closure_name(local)
                && !run[at + 1..].iter().any(|s| taken(&name, s))
            {
                let id = self.lookup(&name).map(|b| b.id);
                let variables = local.init.iter().flat_map(|i| uses::of_expr(&i.expr).0);
                let variables = variables
                    .map(|(n, _)| n)
                    .filter(|n| self.lookup(n).is_some_and(|b| b.closure.is_none()))
                    .collect();
                out.push(Piece::Closure { name, id, local: Box::new(local.clone()), variables });
            }
        }
    }

    fn local(
        &mut self,
        local: &Local,
        from: &[Stmt],
        run: &mut Vec<Stmt>,
        out: &mut Vec<Piece>,
        after: &HashSet<usize>,
    ) {
        let stmt = &from[0];
        let host = attributes::let_flag(&local.attrs, "host");
        let key = attributes::let_flag(&local.attrs, "key");
        let mut plain = local.clone();
        plain
            .attrs
            .retain(|a| !a.path().is_ident("host") && !a.path().is_ident("key") && !attributes::is_ours(a));
        let binds = uses::bound_by_let(local);
        let Some(init) = &local.init else {
            if self.depends_on_run(run, &uses::Uses::default(), &binds) {
                self.flush(run, from, out, after);
            }
            let first = self.next_id;
            for b in binds {
                let id = self.bind(b.ident.to_string(), b.mutable);
                self.names.iter_mut().filter(|n| n.id == id).for_each(|n| n.uninit = true);
            }
            let declared = quote!(#[allow(unused_mut)] #plain);
            out.push(Piece::Declared(declared, (first..self.next_id).collect()));
            return;
        };
        let uses = uses::of_expr(&init.expr);
        let boundary = classify::has_boundary(stmt);
        // With `#[host]` only what is named: a function, a constant or a variant is the same on every call.
        let constant = !key
            && (!boundary || host && matches!(&*init.expr, Expr::Path(_)))
            && self.is_constant(&plain, &from[1..]);
        // Full mode would give the value of the call that it recorded, for ever.
        let changing = !constant && (host || key && !boundary && classify::calls_functions(&init.expr));
        if changing && self.host_statement.is_none() {
            self.host_statement = Some(self.site_of(0, stmt));
        }
        if matches!(&*init.expr, Expr::Closure(_)) && !host && !boundary {
            self.check_move_closure(&init.expr, &uses, run);
            // In its place in the run, and again in each later segment that uses it.
            self.push(run, Stmt::Local(plain.clone()));
            for b in binds {
                let id = self.bind(b.ident.to_string(), b.mutable);
                let closure = Some(Box::new(plain.clone()));
                self.names.iter_mut().filter(|n| n.id == id).for_each(|n| n.closure.clone_from(&closure));
            }
            return;
        }
        if constant {
            // As a closure: made where it is used, so that it need not be part of a key.
            plain.attrs.push(attributes::made_again());
            self.push(run, Stmt::Local(plain.clone()));
            for b in binds {
                let id = self.bind(b.ident.to_string(), false);
                self.describe(id, true, false);
                let made = Some(Box::new(plain.clone()));
                self.names.iter_mut().filter(|n| n.id == id).for_each(|n| n.closure.clone_from(&made));
            }
            return;
        }
        let leaves = classify::leaves(stmt) || self.steered(&init.expr);
        // What a segment writes through a reference, it writes to a variable of its own.
        let lent = (lends_to_change(&init.expr) || uses::binds_to_change(&local.pat)) && {
            let later = uses::of_stmts(&from[1..]);
            binds.iter().any(|b| later.get(&b.ident.to_string()).is_some_and(|u| u.through))
        };
        let on_device = self.device_arithmetic(&init.expr);
        let evaluated = classify::call_free(&init.expr) && init.diverge.is_none() && !lent && !on_device;
        let in_driver = host || key || boundary || leaves || evaluated;
        let depends = self.depends_on_run(run, &uses, &binds) || self.overtakes_check(&init.expr, &uses);
        // What assigns must run once: as a borrow, it would be evaluated again behind its segment.
        // So must what moves one part of a value and borrows another.
        let mixed = binds.iter().any(|b| b.by_ref) && binds.iter().any(|b| !b.by_ref);
        let alone = host || key || boundary || leaves || mixed || classify::assigns(&init.expr);
        if !in_driver || depends && !alone {
            self.push(run, Stmt::Local(plain));
            return;
        }
        let given = uses::of_stmts([stmt]);
        if boundary || leaves || depends || self.moves_from_run(&given) {
            self.flush(run, from, out, after);
        }
        let eager = boundary && !only_piecewise(&init.expr);
        let passes_on = !key && !host && !boundary && classify::call_free(&init.expr);
        let tainted: HashSet<String> = match (eager && !key && !host, passes_on) {
            (true, _) => binds.iter().map(|b| b.ident.to_string()).collect(),
            (false, true) => self.taint_of(&init.expr).names(&local.pat),
            (false, false) => HashSet::new(),
        };
        let clean = self.clean_fields(&init.expr);
        let is_host = host || key || !boundary && self.repeatable(&init.expr, &[]);
        let device = !is_host && self.makes_device(&init.expr);
        let lenders = if boundary { HashSet::new() } else { self.roots(&uses) };
        let live = self.live_after(&from[1..], after);
        self.hint = hint(local);
        let value = self.tail_in_driver(&init.expr, Tail::Value, &live);
        self.hint = None;
        let (own_attrs, pat) = (&plain.attrs, &plain.pat);
        // No `}` may stand before `else`.
        let value = if init.diverge.is_some() && ends_in_brace(&value) { quote!((#value)) } else { value };
        let diverge = init.diverge.as_ref().map(|(_, e)| {
            let block = match &**e {
                // As written: in a segment, rustc would not know that it never ends.
                Expr::Block(b) if classify::only_fails(&b.block.stmts) => {
                    self.in_driver(&uses::of_stmts(&b.block.stmts));
                    let stmts = &b.block.stmts;
                    quote!(#(#stmts)*)
                }
                Expr::Block(b) => self.block(&b.block.stmts, Tail::Unit, &live),
                other => quote!(#other;),
            };
            quote!(else { #block })
        });
        // It may be changed in a segment alone, which has its own.
        let changed = binds.iter().any(|b| b.mutable) && {
            let later = uses::of_stmts(&from[1..]);
            binds.iter().any(|b| later.get(&b.ident.to_string()).is_some_and(|u| u.changes(b.mutable)))
        };
        let allow = changed.then(|| quote!(#[allow(unused_mut)]));
        out.push(Piece::Tokens(
            quote_spanned!(span_of(stmt)=> #allow #(#own_attrs)* let #pat = #value #diverge;),
        ));
        self.note_assigned(&uses);
        let owned = boundary && !host && !key || self.hands_over(&given);
        let first = self.next_id;
        for b in &binds {
            let name = b.ident.to_string();
            let taken = tainted.contains(&name);
            let id = self.bind(name, b.mutable);
            if taken {
                self.tainted.insert(id);
            }
            if let (true, Some(clean)) = (taken, &clean) {
                self.clean.insert(id, clean.clone());
            }
            self.lenders.insert(id, lenders.clone());
            self.describe(id, is_host, device);
            self.note_list(id, local);
        }
        if !boundary {
            self.mark_exclusive(&super::eager_values::exclusive(&local.pat, &init.expr));
        }
        if owned {
            self.owned.extend(first..self.next_id);
        }
    }

    /// Bindings that code behind this point uses.
    fn live_after(&self, rest: &[Stmt], after: &HashSet<usize>) -> HashSet<usize> {
        let mut live = self.ids(&uses::of_stmts(rest));
        live.extend(after);
        live
    }

    fn statement(
        &mut self,
        stmt: &Stmt,
        expr: &Expr,
        from: &[Stmt],
        run: &mut Vec<Stmt>,
        out: &mut Vec<Piece>,
        after: &HashSet<usize>,
    ) {
        let uses = uses::of_expr(expr);
        let value = if let Expr::Assign(a) = expr { &a.right } else { expr };
        if !classify::has_boundary(stmt) && !classify::leaves(stmt) && !self.steered(value) {
            let assigns =
                matches!(expr, Expr::Assign(_)) || matches!(expr, Expr::Binary(b) if uses::is_assign(&b.op));
            if assigns
                && classify::call_free(expr)
                && !self.device_arithmetic(expr)
                && !self.depends_on_run(run, &uses, &[])
                && !self.overtakes_check(expr, &uses)
            {
                if self.moves_from_run(&uses) {
                    self.flush(run, from, out, after);
                }
                match expr {
                    Expr::Assign(a) if self.is_tainted(&uses::of_expr(&a.right)) => {
                        self.taint_by(&a.left, &a.right)
                    }
                    Expr::Binary(b) if self.is_tainted(&uses) => self.taint(&b.left),
                    _ => {}
                }
                self.in_driver(&uses);
                self.note_assigned(&uses);
                out.push(Piece::Tokens(quote!(#expr;)));
            } else {
                let stmt = match stmt {
                    Stmt::Expr(e, semi) => {
                        // Ours is no user's: lints of theirs do not mean it.
                        let ours = crate::krate::generated_at(ends(e).1);
                        Stmt::Expr(e.clone(), Some(semi.unwrap_or(syn::Token![;](ours))))
                    }
                    other => other.clone(),
                };
                self.push(run, stmt);
            }
            return;
        }
        self.flush(run, from, out, after);
        let live = self.live_after(&from[1..], after);
        if let Expr::Assign(a) = expr
            && attributes::boundary(expr).is_none()
        {
            let value = self.tail_in_driver(&a.right, Tail::Value, &live);
            if !only_piecewise(&a.right) {
                self.taint(&a.left);
            }
            self.note_assigned(&uses);
            let left = &a.left;
            out.push(Piece::Tokens(quote!(#left = #value;)));
            return;
        }
        // Other attributes are allowed before a statement, and not before the value inside.
        let (mut plain, mut own) = (expr.clone(), Vec::new());
        if attributes::boundary(expr).is_some() {
            let ours;
            (ours, own) = attributes::take(&mut plain).into_iter().partition(attributes::is_ours);
            attributes::put(&mut plain, ours);
        }
        let tokens = self.tail_in_driver(&plain, Tail::Unit, &live);
        self.note_assigned(&uses);
        out.push(Piece::Tokens(quote!(#(#own)* #tokens;)));
    }

    /// The names that the left side of an assignment assigns are values of eager code from here on.
    fn taint(&mut self, left: &Expr) {
        for (name, u) in &uses::of_assigned(left).0 {
            if u.assigned
                && let Some(id) = self.lookup(name).map(|b| b.id)
            {
                self.tainted.insert(id);
            }
        }
    }

    /// As [`taint`](Self::taint), by a value whose parts may be known.
    fn taint_by(&mut self, left: &Expr, right: &Expr) {
        let clean = self.clean_fields(right).unwrap_or_default();
        let known = uses::plain_name(left).and_then(|n| self.lookup(&n.to_string())).map(|b| b.id);
        if let Some(id) = known {
            let before = self.clean.get(&id).cloned();
            let was = self.tainted.contains(&id);
            let both = match before {
                Some(before) => before.intersection(&clean).cloned().collect(),
                None if was => HashSet::new(),
                None => clean,
            };
            self.clean.insert(id, both);
        }
        self.taint(left);
    }

    /// The fields of a struct literal that hold no value of eager code.
    fn clean_fields(&self, expr: &Expr) -> Option<HashSet<String>> {
        let Expr::Struct(literal) = expr else { return None };
        let clean = |e: &Expr| !self.is_tainted(&uses::of_expr(e));
        if literal.rest.as_deref().is_some_and(|rest| !clean(rest)) {
            return None;
        }
        let fields = literal.fields.iter().filter(|f| clean(&f.expr));
        Some(fields.map(|f| quote::ToTokens::to_token_stream(&f.member).to_string()).collect())
    }

    /// Whether the code takes an owned value as a whole.
    pub(super) fn hands_over(&self, uses: &uses::Uses) -> bool {
        let owned = |name: &str| self.lookup(name).is_some_and(|b| self.owned.contains(&b.id));
        uses.0.iter().any(|(name, u)| u.by_value && owned(name))
    }

    fn note_assigned(&mut self, uses: &uses::Uses) {
        for (name, u) in &uses.0 {
            if u.assigned
                && let Some(id) = self.lookup(name).map(|b| b.id)
            {
                self.assigned.insert(id);
                self.driver_assigned.insert(id);
            }
        }
    }

    fn tail(
        &mut self,
        expr: &Expr,
        tail: Tail,
        run: &mut Vec<Stmt>,
        out: &mut Vec<Piece>,
        after: &HashSet<usize>,
    ) {
        let stmt = Stmt::Expr(expr.clone(), None);
        if self.is_split(expr) || classify::call_free(expr) {
            self.flush(run, std::slice::from_ref(&stmt), out, after);
            let tokens = self.tail_in_driver(expr, tail, after);
            out.push(Piece::Tokens(tokens));
        } else {
            let run = std::mem::take(run);
            self.taken();
            let tokens = self.segment(&run, Some((expr, tail)), &[], after);
            out.push(Piece::Tokens(tokens));
        }
    }
}

/// `_g` of `let _g = f();`, which is there to be held.
pub(super) fn guard_name(local: &Local) -> Option<&Ident> {
    let syn::Pat::Ident(p) = &local.pat else { return None };
    let name = p.ident.to_string();
    let named_so = name.strip_prefix('_').is_some_and(|n| n.starts_with(|c: char| c.is_alphanumeric()));
    let called = local.init.as_ref().is_some_and(|i| !classify::call_free(&i.expr) && !is_value(&i.expr));
    (named_so && called).then_some(&p.ident)
}

/// A value of the device, or a number or size of one: nothing that something waits for.
pub(super) fn is_value(expr: &Expr) -> bool {
    match expr {
        Expr::Try(e) => is_value(&e.expr),
        Expr::Paren(e) => is_value(&e.expr),
        Expr::Reference(e) => is_value(&e.expr),
        Expr::MethodCall(m) => {
            let plain = ["rank", "shape", "dims", "len", "numel", "dtype", "clone"];
            plain.iter().any(|n| m.method == n) && m.args.iter().all(classify::call_free)
        }
        Expr::Index(i) => is_value(&i.expr),
        other => matches!(other, Expr::Call(_)) && operations::is_operation(other),
    }
}

/// `&mut …`, or what holds it.
fn lends_to_change(expr: &Expr) -> bool {
    match expr {
        Expr::Reference(r) => r.mutability.is_some(),
        Expr::Paren(p) => lends_to_change(&p.expr),
        Expr::Tuple(t) => t.elems.iter().any(lends_to_change),
        Expr::Call(c) => c.args.iter().any(lends_to_change),
        _ => false,
    }
}

/// The names that a top-level statement binds.
pub(super) fn bound_by(stmt: &Stmt) -> Vec<uses::Bound> {
    match stmt {
        Stmt::Local(l) => uses::bound_by_let(l),
        _ => Vec::new(),
    }
}

/// The name of `let f = |…| …;`, and of another value that each segment makes for itself.
pub(super) fn closure_name(local: &Local) -> Option<String> {
    let init = local.init.as_ref()?;
    if !matches!(&*init.expr, Expr::Closure(_)) && !local.attrs.iter().any(attributes::is_made_again) {
        return None;
    }
    uses::bound_by_let(local).first().map(|b| b.ident.to_string())
}

/// The type of a `let` whose value is a region: generic values, as of `collect`, are found by it.
fn hint(local: &Local) -> Option<syn::Type> {
    match (&local.pat, attributes::of_init(local)) {
        (syn::Pat::Type(t), Some(attributes::Boundary::Eager(_))) => Some((*t.ty).clone()),
        _ => None,
    }
}

/// Whether all boundaries of the expression are `#[piecewise]` calls: their results come from segments.
fn only_piecewise(expr: &Expr) -> bool {
    struct Eager(bool);
    impl<'a> syn::visit::Visit<'a> for Eager {
        fn visit_attribute(&mut self, a: &'a syn::Attribute) {
            self.0 |= attributes::is_eager(a);
        }
    }
    let mut eager = Eager(false);
    syn::visit::Visit::visit_expr(&mut eager, expr);
    !eager.0
}

/// Whether `tokens` end in a `}`, or in what it could come from.
fn ends_in_brace(tokens: &TokenStream) -> bool {
    use proc_macro2::{Delimiter, TokenTree};
    let last = tokens.clone().into_iter().last();
    matches!(last, Some(TokenTree::Group(g)) if matches!(g.delimiter(), Delimiter::Brace | Delimiter::None))
}

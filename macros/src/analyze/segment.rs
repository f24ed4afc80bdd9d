//! One run of statements as a segment: what goes in, what comes out, and the call between.

use std::collections::{BTreeSet, HashSet};

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Expr, Member, Stmt, visit_mut::VisitMut};

use super::{
    Tail, Transform, classify, cx,
    field_paths::Replace,
    host_values, motion, partition, uses,
    uses::{Use, Uses},
};
use crate::{
    check::lints::{effects, macros},
    diag::Code,
    parse::attributes,
};

/// Live-ins are listed in rows of this many: tuples have no more elements than 32, and rows fit 32 times.
const ROW: usize = 32;

/// A tuple, or a tuple of tuples where one would be too long.
fn rows(items: &[TokenStream]) -> TokenStream {
    if items.len() <= ROW {
        return quote!((#(#items,)*));
    }
    let rows = items.chunks(ROW).map(|row| quote!((#(#row,)*)));
    quote!((#(#rows,)*))
}

/// Where live-in `at` is found in the key.
fn element(k: &Ident, at: usize) -> TokenStream {
    let (row, column) = (syn::Index::from(at / ROW), syn::Index::from(at % ROW));
    quote!(#k.#row.#column)
}

/// A live-in of the key. What is wrong with it is shown at `shown`.
fn entering(shown: Span, place: &TokenStream, tainted: bool, field: bool) -> TokenStream {
    let p = crate::krate::private_at(shown);
    let facade = Ident::new(
        match (tainted, field) {
            (false, false) => "EntersSegment",
            (false, true) => "FieldEntersSegment",
            (true, false) => "EagerEntersSegment",
            (true, true) => "EagerFieldEntersSegment",
        },
        shown,
    );
    quote_spanned!(shown=> #p::#facade::enter(&#place))
}

/// What leaves a segment: as the driver binds it, and as the body gives it.
#[derive(Default)]
struct Leaving {
    patterns: Vec<TokenStream>,
    values: Vec<TokenStream>,
}

impl Leaving {
    /// What cannot leave is shown where the user binds it.
    fn push(&mut self, bound: Span, pattern: &TokenStream, value: &TokenStream) {
        let shown = crate::krate::generated_at(bound);
        let (p, at) = (crate::krate::private(), crate::krate::private_at(shown));
        self.patterns.push(quote!(#p::Leaving(#pattern, _)));
        self.values.push(quote_spanned!(shown=> #at::LeavesSegment::leave((#value,).0)));
    }
}

impl Transform<'_, '_> {
    /// A run, and the tail behind it, as statements of the driver.
    pub(super) fn segment(
        &mut self,
        run: &[Stmt],
        tail: Option<(&Expr, Tail)>,
        rest: &[Stmt],
        after: &HashSet<usize>,
    ) -> TokenStream {
        let tail_stmt = tail.map(|(e, _)| Stmt::Expr(e.clone(), None));
        macros::check(run.iter().chain(&tail_stmt), self.errors);
        effects::check(run.iter().chain(&tail_stmt), &self.context.params, self.errors);
        let only_closures = tail.is_none()
            && run.iter().all(|s| matches!(s, Stmt::Local(l) if partition::closure_name(l).is_some()));
        if only_closures {
            // Their names are bound already.
            self.note_captures(run);
            return TokenStream::new();
        }
        let run_closures: HashSet<String> = run
            .iter()
            .filter_map(|s| match s {
                Stmt::Local(l) => partition::closure_name(l),
                _ => None,
            })
            .collect();
        // Nothing may say what an unused closure takes; the segment that uses it has its own. What host code alone
        // uses is evaluated there alone.
        let outs = self.outs(run, rest, &run_closures);
        let host = |at: usize| outs.again.iter().any(|(i, _)| *i == at);
        let borrows = outs.kept_borrows(run, rest);
        let host = |at: usize| host(at) && !borrows.iter().any(|(i, _)| *i == at);
        let unused = unused(run, tail_stmt.as_ref(), host);
        if tail.is_none()
            && outs.carried.is_empty()
            && outs.shadowed.is_empty()
            && (0..run.len()).all(|at| unused.contains(&at))
        {
            self.bind_run(run, &Uses::default(), &outs.emptied);
            let again = outs.again.iter().map(|(_, local)| local);
            return quote!(#(#[allow(unused_variables)] #again)*);
        }
        let used = |at: usize| !unused.contains(&at);
        let mut uses = uses::of_stmts(
            run.iter().enumerate().filter(|(at, _)| used(*at)).map(|(_, s)| s).chain(&tail_stmt),
        );
        let closures = self.outer_closures(&mut uses, &run_closures);

        let live_ids = {
            let mut ids = self.ids(&uses::of_stmts(rest));
            ids.extend(after);
            ids
        };
        let probes = self.check_macros(run, rest, &live_ids);
        let changed = self.changed(run, rest, &uses, &live_ids, &run_closures);

        // What goes in.
        let bound_inside = host_values::bound_anywhere(run.iter().chain(&tail_stmt));
        let k = Ident::new("__k", Span::mixed_site());
        let p = crate::krate::private();
        let mut keys: Vec<TokenStream> = Vec::new();
        let mut lets = TokenStream::new();
        let mut names: Vec<String> = Vec::new();
        let mut replace = Replace { fields: Vec::new(), this: None };
        let mut moved: Vec<Ident> = Vec::new();
        for (name, u) in &uses.0 {
            let Some(b) = self.lookup(name) else { continue };
            if b.closure.is_some() {
                continue;
            }
            let (id, mutable, uninit, exclusive) = (b.id, b.mutable, b.uninit, b.exclusive);
            let tainted = self.tainted.contains(&id);
            let clean = self.clean.get(&id).cloned().unwrap_or_default();
            let ident = &u.ident;
            // What is wrong with a live-in is shown where it is used.
            let shown = crate::krate::generated_at(ident.span());
            self.check_through(u, mutable || exclusive);
            if u.assigned && (uninit && !self.assigned.contains(&id) || self.assigned_first(run, name)) {
                let mutability = (mutable || u.touched).then(|| quote!(mut));
                lets.extend(quote!(#[allow(unused_mut, unused_assignments, unused_variables)] let #mutability #ident;));
                continue;
            }
            let change = u.changes(mutable || exclusive);
            if exclusive && (change || u.whole) {
                // The segment has a value of its own to write to.
                let source = element(&k, keys.len());
                keys.push(entering(shown, &quote!(*#ident), tainted, false));
                names.push(name.clone());
                lets.extend(quote_spanned!(shown=> let #ident = &mut #source.copy();));
                continue;
            }
            let taken = u.taken && self.owned.contains(&id);
            if u.whole || taken || change || bound_inside.contains(name) || u.fields.is_empty() {
                let source = element(&k, keys.len());
                keys.push(entering(shown, &quote!(#ident), tainted, false));
                names.push(name.clone());
                if name == "self" {
                    let this = Ident::new("__self", Span::mixed_site());
                    lets.extend(quote_spanned!(shown=> let #this = #source.copy();));
                    replace.this = Some(this);
                } else {
                    let mutability = change.then(|| quote!(mut));
                    let allow = change.then(|| quote!(#[allow(unused_mut, unused_assignments)]));
                    lets.extend(quote_spanned!(shown=> #allow let #mutability #ident = #source.copy();));
                    if u.by_value {
                        moved.push(ident.clone());
                    }
                }
            } else {
                for path in pruned(&u.fields) {
                    let source = element(&k, keys.len());
                    let tainted = tainted && !path.first().is_some_and(|f| clean.contains(f));
                    keys.push(entering(shown, &place(ident, &path), tainted, true));
                    names.push(format!("{name}.{}", path.join(".")));
                    let field = self.fresh("f");
                    lets.extend(quote!(let #field = #source.get();));
                    replace.fields.push((name.clone(), path, field));
                }
            }
        }
        for mut local in closures {
            // Only `self`: what a closure captures comes in whole.
            replace.visit_local_mut(&mut local);
            local.attrs.retain(|a| !attributes::is_made_again(a));
            lets.extend(quote!(#[allow(unused_variables)] #local));
        }

        // The body.
        let mut body = TokenStream::new();
        let mut assigns = TokenStream::new();
        let mut leaving = Leaving::default();
        let mut out_names: Vec<String> = Vec::new();
        let mut captures: Vec<(usize, TokenStream)> = Vec::new();
        let changed_names: Vec<String> = changed.iter().map(|(ident, _)| ident.to_string()).collect();
        for (ident, shadowed_at) in changed {
            let exclusive = self.lookup(&ident.to_string()).is_some_and(|b| b.exclusive);
            let deref = exclusive.then(|| quote!(*));
            self.driver_assigned.extend(self.lookup(&ident.to_string()).map(|b| b.id));
            let o = self.fresh("o");
            out_names.push(ident.to_string());
            // A method may take `&mut self`, so a call counts as a change; the next statement may overwrite it.
            assigns.extend(quote!(#[allow(unused_assignments)] { #deref #ident = #o; }));
            let value = match shadowed_at {
                Some(at) => {
                    captures.push((at, quote!(let #o = ::core::clone::Clone::clone(&#deref #ident);)));
                    quote!(#o)
                }
                None if exclusive => quote!(::core::clone::Clone::clone(&*#ident)),
                None => quote!(#ident),
            };
            leaving.push(ident.span(), &quote!(#o), &value);
        }
        for bound in &outs.carried {
            let ident = &bound.ident;
            let mutability = bound.mutable.then(|| quote!(mut));
            let pattern = if out_names.contains(&ident.to_string()) {
                // It shadows an outer variable that is assigned first.
                let o = self.fresh("o");
                assigns.extend(quote!(#[allow(unused_mut)] let #mutability #ident = #o;));
                quote!(#o)
            } else {
                quote!(#mutability #ident)
            };
            out_names.push(ident.to_string());
            leaving.push(ident.span(), &pattern, &quote!(#ident));
        }
        for (ident, alias, at) in &outs.shadowed {
            out_names.push(ident.to_string());
            leaving.push(ident.span(), &quote!(#alias), &quote!(#alias));
            captures.push((*at, quote!(let #alias = ::core::clone::Clone::clone(&#ident);)));
        }
        let ends = self.ends(run, rest, &outs, &changed_names);
        self.refuse_results(run, &outs);
        for (at, stmt) in run.iter().enumerate() {
            for (_, tokens) in ends.iter().chain(&captures).filter(|(c, _)| *c == at) {
                body.extend(tokens.clone());
            }
            if !used(at) {
                continue;
            }
            let probe = probes.iter().find(|(i, ..)| *i == at);
            body.extend(probe.map(|(_, before, _)| before.clone()));
            let closure = matches!(stmt, Stmt::Local(l) if partition::closure_name(l).is_some());
            let mut stmt = match stmt {
                Stmt::Local(l) if closure => {
                    Stmt::Local(Self::copying(l, |name| out_names.iter().any(|n| n == name)))
                }
                other => other.clone(),
            };
            replace.visit_stmt_mut(&mut stmt);
            attributes::Keys.visit_stmt_mut(&mut stmt);
            // A borrow may be made for later code only.
            let again = outs.again.iter().any(|(i, _)| *i == at);
            let allow = again.then(|| quote!(#[allow(unused_variables)]));
            body.extend(quote!(#allow #stmt));
            body.extend(probe.map(|(.., after)| after.clone()));
        }
        body.extend(ends.iter().filter(|(at, _)| *at == run.len()).map(|(_, question)| question.clone()));
        body.extend(borrows.iter().map(|(_, used)| used.clone()));
        let mut tail_tokens = None;
        let tail_span = tail.map_or_else(Span::call_site, |(expr, _)| syn::spanned::Spanned::span(expr));
        if let Some((expr, _)) = tail {
            let mut expr = expr.clone();
            replace.visit_expr_mut(&mut expr);
            attributes::Keys.visit_expr_mut(&mut expr);
            tail_tokens = Some(quote!(#expr));
        }

        let all = {
            let mut tokens = TokenStream::new();
            for s in run.iter().chain(&tail_stmt) {
                tokens.extend(quote!(#s));
            }
            tokens
        };
        let index = self.plan.len();
        let site = self.site_of(index, &all);
        let result_tail = matches!(tail, Some((_, Tail::Function)));
        // A result that stands before `?` or in a `break`: what the run changes lives on.
        let function_tail = result_tail && leaving.values.is_empty();
        let mut shown: Vec<String> = out_names.iter().cloned().map(motion::shown).collect();
        if function_tail {
            shown = vec!["the result".to_owned()];
        } else if tail.is_some() {
            shown.push("a value".to_owned());
        }
        self.plan.push(quote!(#p::PlanItem::Segment { site: #site, live_ins: &[#(#names),*], live_outs: &[#(#shown),*] }));

        let cx = cx();
        let ret = self.context.ret;
        let error = quote!(<#ret as #p::TryError>::Error);
        let user_error = crate::krate::user_error(ret);
        let key_rows = keys.chunks(ROW).map(|row| quote!((#(#row,)*)));
        let key = quote!((#(#key_rows,)*));
        let tokens = if function_tail {
            quote! {
                #user_error::segment(#cx, #site, #key, |#k: &_| -> #ret {
                    #lets
                    #body
                    #tail_tokens
                })
            }
        } else {
            let mut value_let = TokenStream::new();
            let mut value = None;
            if let Some(tail_tokens) = tail_tokens {
                let t = self.fresh("t");
                let given = if result_tail { quote!((#tail_tokens)?) } else { tail_tokens };
                value_let = quote!(let #t = #given;);
                leaving.push(tail_span, &quote!(#t), &quote!(#t));
                value = Some(if result_tail {
                    quote!(::core::result::Result::<_, #error>::Ok(#t))
                } else {
                    quote!(#t)
                });
            }
            let (out_patterns, out_values) = (rows(&leaving.patterns), rows(&leaving.values));
            let given = Ident::new("__given", Span::mixed_site());
            let give = if classify::ends_the_call(run) {
                // Never reached: no warning, in the user's code, about what is ours.
                let o = self.fresh("o");
                quote!(#[allow(unreachable_code, clippy::let_unit_value)] let #o = #out_values; *#given = ::core::option::Option::Some(#o);)
            } else {
                quote!(*#given = ::core::option::Option::Some(#out_values);)
            };
            let call = quote! {
                #user_error::segment_into(#cx, #site, #key, |#k: &_, #given: &mut _| -> #p::Ran<#ret> {
                    #lets
                    #body
                    #value_let
                    #give
                    ::core::result::Result::Ok(())
                })?
            };
            // Before the outputs are bound: one of them may have the name of what is moved.
            let call = if moved.is_empty() {
                call
            } else {
                let outputs = self.fresh("outputs");
                quote!({ let #outputs = #call; { let _moved = (#(#moved,)*); } #outputs })
            };
            let again = outs.again.iter().map(|(_, local)| local);
            quote! {
                #[allow(unused_mut)]
                let #out_patterns = #call;
                #assigns
                #(#[allow(unused_variables)] #again)*
                #value
            }
        };
        self.bind_run(run, &uses, &outs.emptied);
        tokens
    }

    /// Whether the run's first mention of `name` is a plain assignment at its top level.
    fn assigned_first(&self, run: &[Stmt], name: &str) -> bool {
        for stmt in run {
            let uses = self.with_captures(uses::of_stmts([stmt]));
            if !uses.has(name) {
                continue;
            }
            let Stmt::Expr(Expr::Assign(a), _) = stmt else { return false };
            let right = self.with_captures(uses::of_expr(&a.right));
            return uses::plain_name(&a.left).is_some_and(|n| n == name) && !right.has(name);
        }
        false
    }

    fn check_through(&mut self, u: &Use, mutable: bool) {
        if u.through && !mutable {
            self.errors.push(
                Code::WritesThrough,
                &u.ident,
                format!("a segment writes through `{}`: a replay would not do it again", u.ident),
                "write in an `#[eager]` region, or make the value an output of the segment",
            );
        }
    }

    /// The run's names are in scope from here on.
    fn bind_run(&mut self, run: &[Stmt], uses: &Uses, emptied: &[Ident]) {
        for (name, u) in &uses.0 {
            if u.assigned
                && let Some(id) = self.lookup(name).map(|b| b.id)
            {
                self.assigned.insert(id);
            }
        }
        for stmt in run {
            self.note_capture(stmt);
            // A closure is bound where it stands; its name may be taken again.
            let Stmt::Local(local) = stmt else { continue };
            if partition::closure_name(local).is_some() {
                continue;
            }
            let given = uses::of_stmts([stmt]);
            let owned =
                local.init.as_ref().is_some_and(|i| !classify::call_free(&i.expr)) || self.hands_over(&given);
            let value = local.init.as_ref().map(|i| &*i.expr);
            let host = value.is_some_and(|e| self.repeatable(e, &[]));
            let device = !host && value.is_some_and(|e| self.makes_device(e));
            let lends =
                value.is_some_and(host_values::lends) || uses::bound_by_let(local).iter().any(|b| b.by_ref);
            let lenders = if lends { self.roots(&given) } else { HashSet::new() };
            for b in uses::bound_by_let(local) {
                let id = self.bind(b.ident.to_string(), b.mutable);
                self.describe(id, host, device);
                self.note_list(id, local);
                self.lenders.insert(id, lenders.clone());
                if owned {
                    self.owned.insert(id);
                }
                if emptied.contains(&b.ident) {
                    self.emptied.push((b.ident, id));
                    self.names.iter_mut().filter(|n| n.id == id).for_each(|n| n.uninit = true);
                }
            }
        }
    }
}

/// Closures of the run, and what host code evaluates, that nothing behind them in the run uses.
fn unused(run: &[Stmt], tail: Option<&Stmt>, host: impl Fn(usize) -> bool) -> HashSet<usize> {
    let mut unused = HashSet::new();
    for (at, stmt) in run.iter().enumerate().rev() {
        let Stmt::Local(local) = stmt else { continue };
        if partition::closure_name(local).is_none() && !host(at) {
            continue;
        }
        let behind = (at + 1..run.len()).filter(|i| !unused.contains(i)).map(|i| &run[i]).chain(tail);
        let behind = uses::of_stmts(behind);
        if uses::bound_by_let(local).iter().all(|b| !behind.has(&b.ident.to_string())) {
            unused.insert(at);
        }
    }
    unused
}

/// Field paths without those that lie inside another.
fn pruned(paths: &BTreeSet<Vec<String>>) -> Vec<Vec<String>> {
    paths.iter().filter(|p| !paths.iter().any(|q| q.len() < p.len() && p.starts_with(q))).cloned().collect()
}

fn place(base: &Ident, path: &[String]) -> TokenStream {
    let members = path.iter().map(|m| match m.parse::<u32>() {
        Ok(index) => Member::Unnamed(syn::Index { index, span: base.span() }),
        Err(_) => Member::Named(format_ident!("{m}", span = base.span())),
    });
    quote!(#base #(.#members)*)
}

//! One run of statements as a segment: what goes in, what comes out, and the call between.

use std::collections::{BTreeSet, HashSet};

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Expr, Local, Member, Stmt, visit_mut::VisitMut};

use super::{
    Tail, Transform, block, classify, cx, free,
    free::{Bound, Use, Uses},
    macros,
    replace::Replace,
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
fn element(k: &Ident, at: usize, tainted: bool) -> TokenStream {
    let (row, column) = (syn::Index::from(at / ROW), syn::Index::from(at % ROW));
    if tainted { quote!(#k.#row.#column.0) } else { quote!(#k.#row.#column) }
}

/// A name that a run binds at its top level and later code needs.
struct Out {
    bound: Bound,
}

/// What happens with the `let`s of a run that later code needs.
#[derive(Default)]
struct Outs {
    /// Values that leave the segment.
    carried: Vec<Out>,
    /// Call-free borrows, evaluated again in the driver, in order.
    again: Vec<Local>,
    /// Bindings that are shadowed later in the run, but borrowed by one of `again`: the name, what it is
    /// called in the driver, and the statement that shadows it.
    shadowed: Vec<(Ident, Ident, usize)>,
}

impl Transform<'_, '_> {
    /// A run, and the tail behind it, as statements of the driver.
    pub(super) fn segment(
        &mut self,
        run: &[Stmt],
        tail: Option<(&Expr, Tail)>,
        rest: &Uses,
        after: &HashSet<usize>,
    ) -> TokenStream {
        macros::check(run, self.errors);
        let tail_stmt = tail.map(|(e, _)| Stmt::Expr(e.clone(), None));
        if let Some(stmt) = &tail_stmt {
            macros::check(std::slice::from_ref(stmt), self.errors);
        }
        let only_closures = tail.is_none()
            && run.iter().all(|s| matches!(s, Stmt::Local(l) if block::closure_name(l).is_some()));
        if only_closures {
            // Their names are bound already.
            self.note_captures(run);
            return TokenStream::new();
        }
        let run_closures: HashSet<String> = run
            .iter()
            .filter_map(|s| match s {
                Stmt::Local(l) => block::closure_name(l),
                _ => None,
            })
            .collect();
        let mut uses = free::of_stmts(run.iter().chain(&tail_stmt));
        let closures = self.outer_closures(&mut uses, &run_closures);

        let live_ids = {
            let mut ids = self.ids(rest);
            ids.extend(after);
            ids
        };
        let outs = self.outs(run, rest, &run_closures);
        let changed = self.changed(run, &uses, &live_ids, &run_closures);

        // What goes in.
        let bound_inside = bound_anywhere(run, tail_stmt.as_ref());
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
            let (id, mutable, uninit) = (b.id, b.mutable, b.uninit);
            let tainted = self.tainted.contains(&id);
            let ident = &u.ident;
            // What is wrong with a live-in is shown where it is used.
            let shown = crate::krate::generated_at(ident.span());
            let p_shown = crate::krate::private_at(shown);
            self.check_through(u, mutable);
            if u.assigned && (uninit && !self.assigned.contains(&id) || assigned_first(run, name)) {
                let mutability = (mutable || u.touched).then(|| quote!(mut));
                lets.extend(quote!(#[allow(unused_mut, unused_assignments, unused_variables)] let #mutability #ident;));
                continue;
            }
            let change = u.assigned || u.touched && mutable;
            if u.whole || change || bound_inside.contains(name) || u.fields.is_empty() {
                let source = element(&k, keys.len(), tainted);
                keys.push(if tainted {
                    quote_spanned!(shown=> #p_shown::FromEager(&#ident))
                } else {
                    quote_spanned!(shown=> &#ident)
                });
                names.push(name.clone());
                if name == "self" {
                    let this = Ident::new("__self", Span::mixed_site());
                    lets.extend(quote_spanned!(shown=> let #this = ::core::clone::Clone::clone(#source);));
                    replace.this = Some(this);
                } else {
                    let mutability = change.then(|| quote!(mut));
                    let allow = change.then(|| quote!(#[allow(unused_mut, unused_assignments)]));
                    lets.extend(
                        quote_spanned!(shown=> #allow let #mutability #ident = ::core::clone::Clone::clone(#source);),
                    );
                    if u.by_value {
                        moved.push(ident.clone());
                    }
                }
            } else {
                for path in pruned(&u.fields) {
                    let source = element(&k, keys.len(), tainted);
                    let place = place(ident, &path);
                    keys.push(if tainted {
                        quote_spanned!(shown=> #p_shown::FromEager(&#place))
                    } else {
                        quote_spanned!(shown=> &#place)
                    });
                    names.push(format!("{name}.{}", path.join(".")));
                    let field = self.fresh("f");
                    lets.extend(quote!(let #field = #source;));
                    replace.fields.push((name.clone(), path, field));
                }
            }
        }
        for mut local in closures {
            // Only `self`: what a closure captures comes in whole.
            replace.visit_local_mut(&mut local);
            lets.extend(quote!(#[allow(unused_variables)] #local));
        }

        // The body.
        let mut body = TokenStream::new();
        let mut assigns = TokenStream::new();
        let mut out_values: Vec<TokenStream> = Vec::new();
        let mut out_patterns: Vec<TokenStream> = Vec::new();
        let mut out_names: Vec<String> = Vec::new();
        let mut captures: Vec<(usize, TokenStream)> = Vec::new();
        for (ident, shadowed_at) in changed {
            let o = self.fresh("o");
            out_names.push(ident.to_string());
            out_patterns.push(quote!(#o));
            assigns.extend(quote!(#ident = #o;));
            match shadowed_at {
                Some(at) => {
                    captures.push((at, quote!(let #o = ::core::clone::Clone::clone(&#ident);)));
                    out_values.push(quote!(#o));
                }
                None => out_values.push(quote!(#ident)),
            }
        }
        for Out { bound } in &outs.carried {
            let ident = &bound.ident;
            let mutability = bound.mutable.then(|| quote!(mut));
            if out_names.contains(&ident.to_string()) {
                // It shadows an outer variable that is assigned first.
                let o = self.fresh("o");
                out_patterns.push(quote!(#o));
                assigns.extend(quote!(#[allow(unused_mut)] let #mutability #ident = #o;));
            } else {
                out_patterns.push(quote!(#mutability #ident));
            }
            out_names.push(ident.to_string());
            out_values.push(quote!(#ident));
        }
        for (ident, alias, at) in &outs.shadowed {
            out_names.push(ident.to_string());
            out_patterns.push(quote!(#alias));
            out_values.push(quote!(#alias));
            captures.push((*at, quote!(let #alias = ::core::clone::Clone::clone(&#ident);)));
        }
        for (at, stmt) in run.iter().enumerate() {
            for (_, tokens) in captures.iter().filter(|(c, _)| *c == at) {
                body.extend(tokens.clone());
            }
            let mut stmt = stmt.clone();
            replace.visit_stmt_mut(&mut stmt);
            let closure = matches!(&stmt, Stmt::Local(l) if block::closure_name(l).is_some());
            // It may be used only by a later segment, which has its own copy.
            let allow = closure.then(|| quote!(#[allow(unused_variables)]));
            body.extend(quote!(#allow #stmt));
        }
        let mut tail_tokens = None;
        if let Some((expr, _)) = tail {
            let mut expr = expr.clone();
            replace.visit_expr_mut(&mut expr);
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
        let function_tail = matches!(tail, Some((_, Tail::Function)));
        let mut shown = out_names.clone();
        if function_tail {
            shown = vec!["the result".to_owned()];
        } else if tail.is_some() {
            shown.push("a value".to_owned());
        }
        self.plan.push(quote!(#p::PlanItem::Segment { site: #site, live_ins: &[#(#names),*], live_outs: &[#(#shown),*] }));

        let cx = cx();
        // What cannot leave the segment is shown where it is bound, or at the segment's beginning.
        let shown = match (outs.carried.as_slice(), run.first().or(tail_stmt.as_ref())) {
            ([only], _) => only.bound.ident.span(),
            (_, Some(first)) => syn::spanned::Spanned::span(first),
            (_, None) => Span::call_site(),
        };
        let method = Ident::new("segment", crate::krate::generated_at(shown));
        let ret = self.context.ret;
        let error = quote!(<#ret as #p::TryError>::Error);
        let key_rows = keys.chunks(ROW).map(|row| quote!((#(#row,)*)));
        let key = quote!((#(#key_rows,)*));
        let tokens = if function_tail {
            quote! {
                #cx.#method(#site, #key, |#k: &_| -> ::core::result::Result<_, #error> {
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
                value_let = quote!(let #t = #tail_tokens;);
                out_values.push(quote!(#t));
                out_patterns.push(quote!(#t));
                value = Some(quote!(#t));
            }
            let (out_patterns, out_values) = (rows(&out_patterns), rows(&out_values));
            let call = quote! {
                #cx.#method(#site, #key, |#k: &_| -> ::core::result::Result<_, #error> {
                    #lets
                    #body
                    #value_let
                    ::core::result::Result::Ok(#out_values)
                })?
            };
            // Before the outputs are bound: one of them may have the name of what is moved.
            let call = if moved.is_empty() {
                call
            } else {
                let outputs = self.fresh("outputs");
                quote!({ let #outputs = #call; { let _moved = (#(#moved,)*); } #outputs })
            };
            let again = &outs.again;
            quote! {
                #[allow(unused_mut)]
                let #out_patterns = #call;
                #assigns
                #(#[allow(unused_variables)] #again)*
                #value
            }
        };
        self.bind_run(run, &uses, &run_closures);
        tokens
    }

    /// Closures of outer scopes that the run uses, in order of need; what they capture is used too.
    fn outer_closures(&mut self, uses: &mut Uses, inside: &HashSet<String>) -> Vec<Local> {
        let mut found: Vec<(String, Local)> = Vec::new();
        let mut at = 0;
        while at < uses.0.len() {
            let name = uses.0[at].0.clone();
            at += 1;
            if inside.contains(&name) && !uses.has(&name) || found.iter().any(|(n, _)| *n == name) {
                continue;
            }
            let closure = self.lookup(&name).and_then(|b| b.closure.as_deref().cloned());
            if let Some(local) = closure {
                let used = uses.0[at - 1].1.ident.clone();
                self.check_captures(&used);
                if let Some(init) = &local.init {
                    let mut captured = free::of_expr(&init.expr);
                    // A closure's captures are not replaced by fields: it is emitted as written.
                    captured.0.iter_mut().for_each(|(_, u)| u.whole = true);
                    uses.merge(&captured);
                }
                found.push((name, local));
            }
        }
        // What is found later was captured by what was found earlier.
        found.reverse();
        found.into_iter().map(|(_, l)| l).collect()
    }

    /// Which of the run's own bindings later code needs, and how they get there.
    fn outs(&mut self, run: &[Stmt], rest: &Uses, run_closures: &HashSet<String>) -> Outs {
        let mut needed: BTreeSet<String> = rest.names().map(str::to_owned).collect();
        // A closure of an outer scope that is used later needs what it captures.
        let outer: Vec<String> = needed.iter().cloned().collect();
        for name in outer {
            if run_closures.contains(&name) {
                continue;
            }
            if let Some(init) =
                self.lookup(&name).and_then(|b| b.closure.as_ref()).and_then(|l| l.init.as_ref())
            {
                needed.extend(free::of_expr(&init.expr).names().map(str::to_owned));
            }
        }
        let mut outs = Outs::default();
        let mut seen: HashSet<String> = HashSet::new();
        for (at, stmt) in run.iter().enumerate().rev() {
            let Stmt::Local(local) = stmt else { continue };
            let bound = free::bound(&local.pat);
            let wanted: Vec<&Bound> = bound
                .iter()
                .filter(|b| needed.contains(&b.ident.to_string()) && !seen.contains(&b.ident.to_string()))
                .collect();
            if wanted.is_empty() {
                seen.extend(bound.iter().map(|b| b.ident.to_string()));
                continue;
            }
            let init = local.init.as_ref();
            let again = init.is_some_and(|i| {
                i.diverge.is_none()
                    && classify::call_free(&i.expr)
                    && (classify::borrows(&i.expr) || bound.iter().any(|b| b.by_ref))
            });
            if let (true, Some(init)) = (again || block::closure_name(local).is_some(), init) {
                let mut local = local.clone();
                for (name, u) in &free::of_expr(&init.expr).0 {
                    if !seen.contains(name) {
                        needed.insert(name.clone());
                        continue;
                    }
                    // Shadowed further down: it leaves under a name of its own.
                    let later = |s: &Stmt| block::bound_by(s).iter().any(|b| b.ident == name);
                    let shadow = (at + 1..run.len()).find(|&i| later(&run[i])).unwrap_or(run.len());
                    let alias = self.fresh("o");
                    Rename { from: name, to: &alias }.visit_local_mut(&mut local);
                    outs.shadowed.push((u.ident.clone(), alias, shadow));
                }
                if again {
                    outs.again.insert(0, local);
                }
            } else {
                outs.carried.extend(wanted.into_iter().map(|b| Out { bound: b.clone() }));
            }
            seen.extend(bound.iter().map(|b| b.ident.to_string()));
        }
        outs.carried.reverse();
        outs
    }

    /// Outer variables that the run changes and later code sees, with the statement that shadows them.
    fn changed(
        &self,
        run: &[Stmt],
        uses: &Uses,
        live: &HashSet<usize>,
        run_closures: &HashSet<String>,
    ) -> Vec<(Ident, Option<usize>)> {
        let mut changed = Vec::new();
        for (name, u) in &uses.0 {
            let Some(b) = self.lookup(name) else { continue };
            let changes = u.assigned || u.touched && b.mutable;
            if changes && live.contains(&b.id) && b.closure.is_none() && !run_closures.contains(name) {
                let shadowed = run.iter().position(|s| block::bound_by(s).iter().any(|x| x.ident == name));
                changed.push((u.ident.clone(), shadowed));
            }
        }
        changed
    }

    fn check_through(&mut self, u: &Use, mutable: bool) {
        if u.through && !mutable {
            self.errors.push(
                &u.ident,
                format!("a segment writes through `{}`: a replay would not do it again", u.ident),
                "write in an `#[eager]` region, or make the value an output of the segment",
            );
        }
    }

    /// Notes which variables the closures of a run mean.
    fn note_captures(&mut self, run: &[Stmt]) {
        run.iter().for_each(|stmt| self.note_capture(stmt));
    }

    fn note_capture(&mut self, stmt: &Stmt) {
        let Stmt::Local(local) = stmt else { return };
        let (Some(name), Some(init)) = (block::closure_name(local), &local.init) else { return };
        let Some(id) = self.lookup(&name).map(|b| b.id) else { return };
        let captured = free::of_expr(&init.expr)
            .names()
            .filter_map(|n| Some((n.to_owned(), self.lookup(n)?.id)))
            .collect();
        self.captured.insert(id, captured);
    }

    /// A closure that is made anew in a segment must find the variables that it meant.
    fn check_captures(&mut self, used: &Ident) {
        let Some(id) = self.lookup(&used.to_string()).map(|b| b.id) else { return };
        let Some(captured) = self.captured.get(&id) else { return };
        let shadowed = captured.iter().find(|(n, id)| self.lookup(n).is_none_or(|b| b.id != *id));
        if let Some((name, _)) = shadowed {
            self.errors.push(
                used,
                format!("the closure `{used}` captures `{name}`, which is shadowed here; each segment makes its closures anew"),
                format!("give one of the two `{name}` another name"),
            );
        }
    }

    /// The run's names are in scope from here on.
    fn bind_run(&mut self, run: &[Stmt], uses: &Uses, run_closures: &HashSet<String>) {
        for (name, u) in &uses.0 {
            if u.assigned
                && let Some(id) = self.lookup(name).map(|b| b.id)
            {
                self.assigned.insert(id);
            }
        }
        for stmt in run {
            self.note_capture(stmt);
            for b in block::bound_by(stmt) {
                let name = b.ident.to_string();
                if !run_closures.contains(&name) {
                    self.bind(name, b.mutable);
                }
            }
        }
    }
}

/// Renames one variable in an expression without inner bindings of that name.
struct Rename<'a> {
    from: &'a str,
    to: &'a Ident,
}

impl VisitMut for Rename<'_> {
    fn visit_expr_path_mut(&mut self, path: &mut syn::ExprPath) {
        if path.path.is_ident(self.from) {
            let to = self.to;
            *path = syn::parse_quote!(#to);
        }
    }
}

/// Whether the run's first mention of `name` is a plain assignment at its top level.
fn assigned_first(run: &[Stmt], name: &str) -> bool {
    for stmt in run {
        let uses = free::of_stmts(std::iter::once(stmt));
        if !uses.has(name) {
            continue;
        }
        let Stmt::Expr(Expr::Assign(a), _) = stmt else { return false };
        return free::plain_name(&a.left).is_some_and(|n| n == name) && !free::of_expr(&a.right).has(name);
    }
    false
}

/// Every name that is bound somewhere inside, at any depth.
fn bound_anywhere(run: &[Stmt], tail: Option<&Stmt>) -> HashSet<String> {
    struct All(HashSet<String>);
    impl<'a> syn::visit::Visit<'a> for All {
        fn visit_pat_ident(&mut self, p: &'a syn::PatIdent) {
            self.0.insert(p.ident.to_string());
            syn::visit::visit_pat_ident(self, p);
        }
    }
    let mut all = All(HashSet::new());
    run.iter().chain(tail).for_each(|s| syn::visit::Visit::visit_stmt(&mut all, s));
    all.0
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

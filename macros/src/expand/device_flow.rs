//! Control flow of the device, as calls of the runtime.
//!
//! The runtime calls one closure for every arm. In it, the user's own `if`, `while` or `match` stands over a value of the
//! host that selects the arm, so rustc sees the control flow that was written: what arms assign, move and return, and
//! whether that agrees, are rustc's own errors, at the user's tokens. The closure changes nothing outside (it is an `Fn`):
//! variables that arms assign are variables of its own, which it gives to the runtime at its end, and which the runtime
//! gives back when all arms are described. Their copies are made outside the closure, which lives until the new values are
//! assigned: so whatever else in it means a variable from before is refused by rustc. Of a variable of which arms assign
//! fields, these alone are given: a change of the rest would be lost with the closure's own copy, so there is none
//! (`shared.rs`).

use std::collections::BTreeSet;

mod order;
mod shared;
mod variables;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use shared::Shared;
use syn::{
    Block, Expr, ExprIf, ExprMatch, ExprWhile, Pat, Signature, Stmt, Type,
    spanned::Spanned,
    visit_mut::{self, VisitMut},
};
use variables::{
    Outer, assigned, begin, begin_anew, changed_by_arms, copies, entered, fresh, given, held, initial, list,
    of_type, of_type_of_rounds, outs, private,
};

use crate::{
    analyze::{
        arm_closures, assigned,
        device_flow::{Changed, Effects, How, effects},
        uses,
    },
    diag::Errors,
    krate,
    parse::{attributes, device, syntax},
};

/// Writes control flow of the device in the code that it visits.
pub(crate) struct Flows {
    /// The type of the results around: of the function, or of a closure. `None` if nothing states it.
    ret: Option<Type>,
    /// The variables in scope.
    names: Vec<Known>,
    /// The variables of which later code needs the value: in each block around, what follows the current statement, and in
    /// each expression around, what is evaluated after the current operand.
    later: Vec<BTreeSet<String>>,
    /// How many entries of `later` are around the condition that is visited, whose `let`s outlive it.
    condition: usize,
}

/// A variable in scope.
#[derive(Clone)]
pub(crate) struct Known {
    name: String,
    /// How many entries of `later` are around it.
    around: usize,
    /// Whether it was declared without a value, and nothing has given it one.
    is_unset: bool,
    /// Whether it is `mut`, as far as is known. If arms change parts of one that is not, it refers to what they change.
    is_mut: bool,
}

impl Known {
    /// For a variable around the code.
    pub(crate) fn outer(ident: &Ident, is_unset: bool) -> Self {
        Self { name: ident.to_string(), around: 0, is_unset, is_mut: true }
    }

    /// For a name that a pattern binds.
    fn bound(bound: &syntax::Bound, around: usize, is_unset: bool) -> Self {
        Self { name: bound.ident.to_string(), around, is_unset, is_mut: bound.mutable }
    }
}

impl Flows {
    /// For the code of a function with this result type, in which these variables are in scope.
    pub(crate) fn of(ret: &Type, names: impl IntoIterator<Item = Known>) -> Self {
        Self { ret: nameable(ret), names: names.into_iter().collect(), later: Vec::new(), condition: 0 }
    }

    /// For a closure's code, whose surroundings are not known.
    pub(crate) fn of_closure() -> Self {
        Self { ret: None, names: Vec::new(), later: Vec::new(), condition: 0 }
    }

    /// Visits a statement, whose names are in scope afterwards. `later` is the code that follows it.
    pub(crate) fn statement(&mut self, stmt: &mut Stmt, later: impl FnOnce() -> Later) {
        let binds = syntax::bound_by(stmt);
        let is_unset = matches!(stmt, Stmt::Local(local) if local.init.is_none());
        let given = self.names.iter().any(|known| known.is_unset).then(|| uses::of_stmt(stmt));
        self.followed_by(later, stmt);
        if let Some(given) = given {
            self.names.iter_mut().for_each(|known| known.is_unset &= !given.has(&known.name));
        }
        self.bind(&binds, is_unset);
    }

    /// Visits the value at the end of code, which `later` follows.
    pub(crate) fn value(&mut self, value: &mut Expr, later: impl FnOnce() -> Later) {
        let mut stmt = Stmt::Expr(std::mem::replace(value, Expr::PLACEHOLDER), None);
        self.followed_by(later, &mut stmt);
        if let Stmt::Expr(expr, _) = stmt {
            *value = expr;
        }
    }

    fn followed_by(&mut self, later: impl FnOnce() -> Later, stmt: &mut Stmt) {
        if device::is_anywhere_in(stmt) {
            self.before(&later().names, |s| s.visit_stmt_mut(stmt));
        }
    }

    /// Brings names into scope.
    fn bind(&mut self, bound: &[syntax::Bound], is_unset: bool) {
        self.bind_around(self.later.len(), bound, is_unset);
    }

    fn bind_around(&mut self, around: usize, bound: &[syntax::Bound], is_unset: bool) {
        self.names.extend(bound.iter().map(|b| Known::bound(b, around, is_unset)));
    }

    fn known(&self, ident: &Ident) -> Option<&Known> {
        self.names.iter().rev().find(|known| ident == &known.name)
    }

    /// Returns whether code behind the current operand may use a variable. Blocks around that of the variable do not: they
    /// mean another one by the name.
    fn is_used_later(&self, ident: &Ident) -> bool {
        let name = ident.to_string();
        let around = self.known(ident).map_or(0, |known| known.around);
        self.later.iter().skip(around).any(|names| names.contains(&name))
    }

    fn scoped(&mut self, pats: &[&Pat], f: impl FnOnce(&mut Self)) {
        let depth = self.names.len();
        for pat in pats {
            self.bind(&syntax::bound(pat), false);
        }
        f(self);
        self.names.truncate(depth);
    }

    /// The error type's trait, through which the runtime is called.
    fn runtime(&self, at: Span) -> TokenStream {
        match &self.ret {
            Some(ret) => krate::user_error(ret),
            None => {
                let p = krate::private_at(at);
                quote_spanned!(at=> <_ as #p::UserError>)
            }
        }
    }

    /// The type of what the closure of arms returns.
    fn ran(&self, at: Span) -> TokenStream {
        let p = krate::private_at(at);
        match &self.ret {
            Some(ret) => quote!(#p::Ran<#ret>),
            None => quote!(::core::result::Result<(), _>),
        }
    }

    fn branches(&mut self, e: &ExprIf) -> TokenStream {
        let at = krate::generated_at(e.if_token.span);
        let mut arms = ExprIf { attrs: Vec::new(), ..e.clone() };
        arms.cond = syn::parse_quote!(true);
        let whole = Expr::If(arms.clone());
        let named = order::of_expr(&whole);
        let effects = self.effects(whole, false);
        if let Some(mut shared) = self.shared(&effects) {
            shared.visit_expr_if_mut(&mut arms);
        }
        let arm = Ident::new("__arm", at);
        *arms.cond = syn::parse_quote!(#arm);
        arms.if_token.span = at;
        self.visit_block_mut(&mut arms.then_branch);
        if let Some((_, other)) = &mut arms.else_branch {
            self.visit_expr_mut(other);
        }
        let predicate = self.before(&named, |s| s.argument(&e.cond, "DevicePredicate", "predicate"));
        let runtime = self.runtime(at);
        let given = given();
        let node = |Arms { copies, body, ran }: Arms| quote_spanned!(at=> #runtime::device_if(&#predicate, { #copies |#arm: bool, #given: &mut _| -> #ran { #body } }));
        self.node(at, effects, &arms.to_token_stream(), node)
    }

    fn selection(&mut self, e: &ExprMatch) -> TokenStream {
        let at = krate::generated_at(e.match_token.span);
        let mut arms = ExprMatch { attrs: Vec::new(), ..e.clone() };
        arms.expr = syn::parse_quote!(());
        for arm in &mut arms.arms {
            arm.pat = syn::parse_quote!(_);
        }
        let whole = Expr::Match(arms.clone());
        let named = order::of_expr(&whole);
        let effects = self.effects(whole, false);
        if let Some(mut shared) = self.shared(&effects) {
            shared.visit_expr_match_mut(&mut arms);
        }
        let index = Ident::new("__arm", at);
        *arms.expr = syn::parse_quote!(#index);
        arms.match_token.span = at;
        let mut table = Vec::new();
        for (number, (arm, written)) in arms.arms.iter_mut().zip(&e.arms).enumerate() {
            let values = values(&written.pat);
            if !values.is_empty() {
                arm.pat = syn::parse_quote!(#number);
                table.push(quote!(&[#(#values),*]));
            }
            self.visit_expr_mut(&mut arm.body);
        }
        let scrutinee = self.before(&named, |s| s.argument(&e.expr, "DeviceIndex", "index"));
        let runtime = self.runtime(at);
        let given = given();
        let node = |Arms { copies, body, ran }: Arms| quote_spanned!(at=> #runtime::device_match(&#scrutinee, &[#(#table),*], { #copies |#index: usize, #given: &mut _| -> #ran { #body } }));
        self.node(at, effects, &arms.to_token_stream(), node)
    }

    /// The value on which the device decides, as an argument.
    fn argument(&mut self, expr: &Expr, facade: &str, method: &str) -> TokenStream {
        let mut expr = expr.clone();
        self.visit_expr_mut(&mut expr);
        let shown = krate::generated_at(expr.span());
        let p = krate::private_at(shown);
        let (facade, method) = (Ident::new(facade, shown), Ident::new(method, shown));
        quote_spanned!(shown=> #p::#facade::#method(&(#expr)))
    }

    fn effects(&self, expr: Expr, reads_first: bool) -> Effects {
        let mut effects = effects(&expr, reads_first);
        // Other names are constants and functions.
        let is_variable = |name: &Ident| self.known(name).is_some();
        effects.moved.retain(is_variable);
        effects.parted.retain(is_variable);
        effects
    }

    /// Returns whether a variable does not leave the arms: what they assign and move is gone after them, so it leaves them only
    /// where later code uses it. If code were missing in `later`, rustc would say so, because the variable is moved.
    fn is_gone(&self, changed: &Changed) -> bool {
        let known = self.known(&changed.ident);
        let may_stay = match changed.how {
            How::Anew => known.is_some_and(|known| known.is_unset),
            How::Whole => true,
            How::Elements | How::Fields(_) => known.is_none_or(|known| known.is_mut),
            How::Through => false,
        };
        changed.moved && may_stay && !self.is_used_later(&changed.ident)
    }

    /// What writes the uses of variables of which only some fields leave the arms. Nothing misses a change of others.
    fn shared(&self, effects: &Effects) -> Option<Shared> {
        Shared::of(effects.changed.iter().filter(|c| !self.is_gone(c)))
    }

    /// Returns what becomes of the variables that arms change.
    fn ends(&self, changed: Vec<Changed>) -> Ends {
        let (gone, leaving): (Vec<Changed>, Vec<Changed>) =
            changed.into_iter().partition(|c| self.is_gone(c));
        // Nothing but the arms says what a variable is that has no value yet.
        let (unset, gone): (Vec<Changed>, Vec<Changed>) =
            gone.into_iter().partition(|c| matches!(c.how, How::Anew));
        let types = (0..unset.len()).map(|n| private(&format!("t{n}")));
        Ends { leaving, unset: types.zip(unset).collect(), gone }
    }

    /// A node whose arms are alternatives: `arms` is the control flow over the selector, `node` the call.
    fn node(
        &self,
        at: Span,
        effects: Effects,
        arms: &TokenStream,
        node: impl FnOnce(Arms) -> TokenStream,
    ) -> TokenStream {
        let p = krate::private();
        let (value, error, closure) = (private("value"), private("error"), private("closure"));
        let Effects { changed, moved, parted } = effects;
        let Outer { names: outer, copies: outer_copies } =
            Outer::of(changed.iter().map(|c| (c, self.is_gone(c))));
        let begin: TokenStream = changed.iter().zip(&outer).map(|(c, copy)| begin(c, copy)).collect();
        let ends = self.ends(changed);
        let (held, copies) = (ends.held(), copies(&moved, &parted));
        let body = alternatives(at, &ends, quote!(#begin #held #copies), arms);
        let call = node(Arms { copies: outer_copies, body, ran: self.ran(at) });
        let names = fresh(&ends.leaving);
        let pattern = list(
            names.iter().map(|name| quote!(#p::Carrying(#name, _))).chain([quote!(#p::Carrying(#value, _))]),
        );
        let assigned = assigned(&ends.leaving, &names);
        let moved: Vec<&Ident> = moved.iter().chain(ends.gone.iter().map(|c| &c.ident)).collect();
        // Arms changed variables of their own, and rustc would say that these need no `mut`.
        let changed_too = ends.gone.iter().map(changed_by_arms);
        let moved = (!moved.is_empty()).then(|| quote!({ let _moved = (#(#moved,)*); }));
        let (outer, of_one_type) = (outer.iter().flatten(), ends.of_one_type());
        let types = ends.unset.iter().map(|(name, _)| name);
        quote_spanned! {at=>
            {
                #(let #types = #p::OfArms::new();)*
                #(let #outer;)*
                #[allow(clippy::let_unit_value)]
                let (#pattern, #closure) = match #call {
                    ::core::result::Result::Ok(#value) => #value,
                    ::core::result::Result::Err(#error) => return ::core::result::Result::Err(#error),
                };
                #assigned
                #(#changed_too)*
                #p::end(#closure);
                #moved
                #of_one_type
                #value
            }
        }
    }

    fn rounds(&mut self, e: &ExprWhile) -> TokenStream {
        let at = krate::generated_at(e.while_token.span);
        let p = krate::private();
        let mut round = ExprWhile { attrs: Vec::new(), ..e.clone() };
        round.cond = syn::parse_quote!(true);
        let Effects { changed, moved, parted } = self.effects(Expr::While(round.clone()), true);
        let (own, changed) = self.of_each_round(e, changed);
        if let Some(mut shared) = Shared::of(&changed) {
            shared.visit_block_mut(&mut round.body);
        }
        let read = self.effects((*e.cond).clone(), true);
        let (carried, error, rounds, closures) =
            (private("carried"), private("error"), private("round"), private("closures"));
        *round.cond = syn::parse_quote!(#p::Round::begins(&mut #rounds));
        round.while_token.span = at;
        // What the next round reads, and what leaves each round.
        let mut named = order::of_expr(&e.cond);
        named.extend(order::of_block(&e.body));
        named.extend(changed.iter().map(|c| c.ident.to_string()));
        self.before(&named, |s| s.visit_block_mut(&mut round.body));
        let predicate = self.before(&named, |s| s.argument(&e.cond, "DevicePredicate", "predicate"));
        let names = fresh(&changed);
        let initial = list(changed.iter().flat_map(initial));
        let pattern = list(names.iter().map(|name| quote!(#p::Carrying(#name, _))));
        let Outer { names: outer, copies: outer_copies } = Outer::of_fields(&changed);
        let (shown, read) = (entered(&changed, &outer, &names, true), copies(&read.moved, &read.parted));
        let (enter, copies) = (entered(&changed, &outer, &names, false), copies(&moved, &parted));
        let (runtime, ran, outer) = (self.runtime(at), self.ran(at), outer.iter().flatten());
        let types: Vec<Ident> = (0..own.len()).map(|n| private(&format!("t{n}"))).collect();
        let begin: TokenStream = own.iter().map(begin_anew).collect();
        let of_one_type: TokenStream =
            types.iter().zip(&own).map(|(name, c)| of_type_of_rounds(name, c)).collect();
        let before = quote!(let #pattern = ::core::clone::Clone::clone(#carried); #shown #read);
        let decides = described(at, &quote!(#carried: &_), &ran, &before, &predicate);
        let round = quote!(let #pattern = #carried; #enter #copies #begin #of_one_type let mut #rounds = #p::Round::first(); #round);
        let outs = list(changed.iter().flat_map(outs));
        let body = described(at, &quote!(#carried), &ran, &round, &outs);
        let assigned = assigned(&changed, &names);
        let (limit, place) = (limit(e), place(e));
        quote_spanned! {at=>
            {
                #(let #types = #p::OfArms::new();)*
                #(let #outer;)*
                let (#pattern, #closures) =
                    match #runtime::device_while(#limit, #place, #initial, { #outer_copies #decides }, #body) {
                        ::core::result::Result::Ok(#carried) => #carried,
                        ::core::result::Result::Err(#error) => return ::core::result::Result::Err(#error),
                    };
                #assigned
                #of_one_type
                #p::end(#closures);
            }
        }
    }

    /// Splits the variables that a loop changes into those of each round alone, which are not carried, and the others. Every
    /// round assigns them before anything reads them, and nothing reads them afterwards.
    fn of_each_round(&self, e: &ExprWhile, changed: Vec<Changed>) -> (Vec<Changed>, Vec<Changed>) {
        let (anew, read) = (assigned::by_block(&e.body.stmts), uses::of_expr(&e.cond));
        changed.into_iter().partition(|c| {
            let name = c.ident.to_string();
            let is_replaced = matches!(c.how, How::Whole) && anew.contains(&name) && !read.has(&name);
            // One that is not `mut` cannot be assigned in every round.
            let is_own =
                self.known(&c.ident).is_some_and(|known| known.is_mut && (c.moved || known.is_unset));
            is_replaced && is_own && !self.is_used_later(&c.ident)
        })
    }
}

/// A closure that describes a part of a loop: its statements, and the value that it gives.
fn described(
    at: Span,
    parameter: &TokenStream,
    ran: &TokenStream,
    statements: &TokenStream,
    value: &TokenStream,
) -> TokenStream {
    let given = given();
    quote_spanned! {at=>
        |#parameter, #given: &mut _| -> #ran {
            #statements
            *#given = ::core::option::Option::Some(#value);
            ::core::result::Result::Ok(())
        }
    }
}

/// What a call that describes arms is given.
struct Arms {
    /// The statements before the closure.
    copies: TokenStream,
    /// The closure's code.
    body: TokenStream,
    /// The type of its result.
    ran: TokenStream,
}

/// What becomes of the variables that arms change.
struct Ends {
    leaving: Vec<Changed>,
    /// Those that had no value and do not leave the arms, each with the name of its type.
    unset: Vec<(Ident, Changed)>,
    /// The others that do not leave the arms.
    gone: Vec<Changed>,
}

impl Ends {
    /// The statements in the arms' closure for what does not leave it.
    fn held(&self) -> TokenStream {
        let held: TokenStream = self.gone.iter().map(held).collect();
        let of_one_type = self.of_one_type();
        quote!(#held #of_one_type)
    }

    fn of_one_type(&self) -> TokenStream {
        self.unset.iter().map(|(name, variable)| of_type(name, variable)).collect()
    }
}

/// The code of a closure that describes an arm, after the statements `begin`.
fn alternatives(at: Span, ends: &Ends, begin: TokenStream, arms: &TokenStream) -> TokenStream {
    let (value, given, error) = (private("value"), given(), private("error"));
    let shown = krate::private_at(at);
    let leaves = quote_spanned!(at=> #shown::LeavesArm::leave((#value,).0));
    let outs = list(ends.leaving.iter().flat_map(outs).chain([quote!(#value)]));
    quote! {
        #begin
        #[allow(clippy::let_unit_value, unreachable_code)]
        let #value = #arms;
        #[allow(unreachable_code)]
        let #value = match #leaves {
            ::core::result::Result::Ok(#value) => #value,
            ::core::result::Result::Err(#error) => return ::core::result::Result::Err(#error),
        };
        #[allow(unreachable_code)]
        {
            *#given = ::core::option::Option::Some(#outs);
            ::core::result::Result::Ok(())
        }
    }
}

/// Writes control flow of the device in the body of a function.
pub(crate) fn written(sig: &Signature, block: &mut Block) {
    if !device::has_flow(block) {
        return;
    }
    let unit = syn::parse_quote!(());
    let ret = match &sig.output {
        syn::ReturnType::Type(_, ty) => ty,
        syn::ReturnType::Default => &unit,
    };
    let params = sig.inputs.iter().flat_map(|argument| match argument {
        syn::FnArg::Typed(typed) => syntax::bound_always(&typed.pat),
        syn::FnArg::Receiver(_) => Vec::new(),
    });
    let names: Vec<Known> = params.map(|b| Known::bound(&b, 0, false)).collect();
    arm_closures::given_to_arms(block, names.iter().map(|known| known.name.clone()), |_| false);
    Flows::of(ret, names).visit_block_mut(block);
}

/// Returns the type if code can name it.
fn nameable(ty: &Type) -> Option<Type> {
    struct Opaque(bool);
    impl<'a> syn::visit::Visit<'a> for Opaque {
        fn visit_type_impl_trait(&mut self, _: &'a syn::TypeImplTrait) {
            self.0 = true;
        }
        fn visit_type_infer(&mut self, _: &'a syn::TypeInfer) {
            self.0 = true;
        }
    }
    let mut opaque = Opaque(false);
    syn::visit::Visit::visit_type(&mut opaque, ty);
    (!opaque.0).then(|| ty.clone())
}

/// The variables of which code needs the value from before; not those that it binds itself.
#[derive(Default)]
pub(crate) struct Later {
    names: BTreeSet<String>,
    bound: BTreeSet<String>,
}

impl Later {
    pub(super) fn stmt(&mut self, stmt: &Stmt) {
        let replaced = assigned::by_stmt(stmt);
        uses::of_stmt(stmt)
            .needed()
            .filter(|name| !replaced.contains(*name))
            .for_each(|name| self.name(name));
        // After it, these names stand for other values.
        self.bound.extend(replaced);
        self.bound.extend(syntax::bound_by(stmt).iter().map(|b| b.ident.to_string()));
    }

    pub(super) fn name(&mut self, name: &str) {
        if !self.bound.contains(name) {
            self.names.insert(name.to_owned());
        }
    }
}

/// The integers of an arm; none for `_`.
fn values(pat: &Pat) -> Vec<TokenStream> {
    match pat {
        Pat::Or(or) => or.cases.iter().flat_map(values).collect(),
        Pat::Paren(p) => values(&p.pat),
        Pat::Wild(_) => Vec::new(),
        Pat::Lit(_) => vec![quote!(#pat)],
        // In rustc's eyes, a name that is no constant would be a variable, which matches everything.
        constant => vec![quote_spanned!(krate::generated_at(constant.span())=> const { #constant })],
    }
}

/// The place of a loop. Its span is that of the user's `while` in every way, because rustc gives the attribute's place to
/// calls that an attribute has written.
fn place(e: &ExprWhile) -> TokenStream {
    let shown = e.while_token.span;
    let p = krate::private_at(shown);
    quote_spanned!(shown=> #p::place())
}

/// The rounds that a loop may run at most; if it is a constant, it is checked when the program is compiled.
fn limit(e: &ExprWhile) -> TokenStream {
    let own = e.attrs.iter().find(|a| device::is_device(a));
    match own.and_then(|attr| device::limit(attr, &mut Errors::default())) {
        Some(limit) if !device::is_constant(&limit) => limit.to_token_stream(),
        Some(limit) => {
            let shown = krate::generated_at(limit.span());
            let p = krate::private_at(shown);
            quote_spanned! {shown=>
                const {
                    let limit: u32 = #limit;
                    #p::limit(limit)
                }
            }
        }
        None => {
            let p = krate::private();
            quote!(#p::DEFAULT_LIMIT)
        }
    }
}

impl VisitMut for Flows {
    fn visit_block_mut(&mut self, block: &mut Block) {
        // What it gives a value has none in another branch.
        let unset: Vec<bool> = self.names.iter().map(|known| known.is_unset).collect();
        for at in 0..block.stmts.len() {
            let (done, rest) = block.stmts.split_at_mut(at + 1);
            self.statement(&mut done[at], || {
                let mut later = Later::default();
                rest.iter().for_each(|stmt| later.stmt(stmt));
                later
            });
        }
        self.names.truncate(unset.len());
        self.names.iter_mut().zip(unset).for_each(|(known, is_unset)| known.is_unset = is_unset);
    }

    fn visit_arm_mut(&mut self, arm: &mut syn::Arm) {
        let pat = arm.pat.clone();
        self.scoped(&[&pat], |s| visit_mut::visit_arm_mut(s, arm));
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if device::is_flow(expr) {
            let others: Vec<_> =
                attributes::of(expr).iter().filter(|a| !device::is_device(a)).cloned().collect();
            let tokens = match &*expr {
                Expr::If(e) => self.branches(e),
                Expr::While(e) => self.rounds(e),
                Expr::Match(e) => self.selection(e),
                other => other.to_token_stream(),
            };
            *expr = Expr::Verbatim(quote!(#(#others)* #tokens));
            return;
        }
        self.visit_parts(expr);
    }

    fn visit_local_mut(&mut self, local: &mut syn::Local) {
        self.visit_let(local);
    }

    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

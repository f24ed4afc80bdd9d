//! Control flow of the device, as calls of the runtime.
//!
//! The runtime calls one closure for every arm. In it, the user's own `if`, `while` or `match` stands over a value of the
//! host that selects the arm, so rustc sees the control flow that was written: what arms assign, move and return, and
//! whether that agrees, are rustc's own errors, at the user's tokens. The closure changes nothing outside (it is an `Fn`):
//! variables that arms assign are variables of its own, which it gives to the runtime at its end, and which the runtime
//! gives back when all arms are described. Their copies are made outside the closure, which lives until the new values are
//! assigned: so whatever else in it means a variable from before is refused by rustc. Of a variable of which arms assign
//! fields, these alone are given: a change of the rest would be lost with the closure's own copy, so there is none
//! (`macros/src/device_flow/shared.rs`).

mod variables;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    Expr, Pat, Type,
    spanned::Spanned,
    visit_mut::{self, VisitMut},
};
use variables::{
    Outer, assigned, begin, begin_anew, changed_by_arms, copies, entered, fresh, given, held, initial, list,
    of_type, of_type_of_rounds, outs, private,
};

use crate::{
    krate,
    model::{Alternatives, Changed, DeviceFlow, DeviceFlowKind, End, How, Limit, Rounds},
};

/// Writes control flow of the device in place of its markers in the code that it visits.
pub(super) struct Flows<'f>(pub(super) &'f [DeviceFlow]);

impl VisitMut for Flows<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match DeviceFlow::marked(expr).and_then(|number| self.0.get(number)) {
            Some(flow) => {
                let (attrs, tokens) = (&flow.attrs, self.flow(flow));
                *expr = Expr::Verbatim(quote!(#(#attrs)* #tokens));
            }
            None => visit_mut::visit_expr_mut(self, expr),
        }
    }

    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

impl Flows<'_> {
    fn flow(&mut self, flow: &DeviceFlow) -> TokenStream {
        let call = Call { at: krate::generated_at(flow.keyword), ret: flow.ret.as_ref() };
        match &flow.kind {
            DeviceFlowKind::If(alternatives) => self.branches(&call, alternatives),
            DeviceFlowKind::Match { alternatives, values } => self.selection(&call, alternatives, values),
            DeviceFlowKind::While(rounds) => self.rounds(&call, flow.keyword, rounds),
        }
    }

    fn branches(&mut self, call: &Call<'_>, alternatives: &Alternatives<syn::ExprIf>) -> TokenStream {
        let (at, mut arms) = (call.at, alternatives.arms.clone());
        let arm = Ident::new("__arm", at);
        *arms.cond = syn::parse_quote!(#arm);
        arms.if_token.span = at;
        self.visit_block_mut(&mut arms.then_branch);
        if let Some((_, other)) = &mut arms.else_branch {
            self.visit_expr_mut(other);
        }
        let predicate = self.argument(&alternatives.decides, "DevicePredicate", "predicate");
        let (runtime, given) = (call.runtime(), given());
        let node = |Arms { copies, body, ran }: Arms| quote_spanned!(at=> #runtime::device_if(&#predicate, { #copies |#arm: bool, #given: &mut _| -> #ran { #body } }));
        call.node(alternatives, &arms.to_token_stream(), node)
    }

    fn selection(
        &mut self,
        call: &Call<'_>,
        alternatives: &Alternatives<syn::ExprMatch>,
        values: &[Vec<Pat>],
    ) -> TokenStream {
        let (at, mut arms) = (call.at, alternatives.arms.clone());
        let index = Ident::new("__arm", at);
        *arms.expr = syn::parse_quote!(#index);
        arms.match_token.span = at;
        let mut table = Vec::new();
        for (number, (arm, values)) in arms.arms.iter_mut().zip(values).enumerate() {
            if !values.is_empty() {
                arm.pat = syn::parse_quote!(#number);
                let values = values.iter().map(value);
                table.push(quote!(&[#(#values),*]));
            }
            self.visit_expr_mut(&mut arm.body);
        }
        let scrutinee = self.argument(&alternatives.decides, "DeviceIndex", "index");
        let (runtime, given) = (call.runtime(), given());
        let node = |Arms { copies, body, ran }: Arms| quote_spanned!(at=> #runtime::device_match(&#scrutinee, &[#(#table),*], { #copies |#index: usize, #given: &mut _| -> #ran { #body } }));
        call.node(alternatives, &arms.to_token_stream(), node)
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

    fn rounds(&mut self, call: &Call<'_>, keyword: Span, rounds: &Rounds) -> TokenStream {
        let (at, p) = (call.at, krate::private());
        let Rounds { carried: changed, of_each_round: own, read, read_by_predicate, .. } = rounds;
        let mut round = rounds.round.clone();
        let (carried, error, begun, closures) =
            (private("carried"), private("error"), private("round"), private("closures"));
        *round.cond = syn::parse_quote!(#p::Round::begins(&mut #begun));
        round.while_token.span = at;
        self.visit_block_mut(&mut round.body);
        let predicate = self.argument(&rounds.decides, "DevicePredicate", "predicate");
        let names = fresh(changed);
        let initial = list(changed.iter().flat_map(initial));
        let pattern = list(names.iter().map(|name| quote!(#p::Carrying(#name, _))));
        let Outer { names: outer, copies: outer_copies } = Outer::of_fields(changed);
        let (shown, copied) = (entered(changed, &outer, &names, true), copies(read_by_predicate));
        let (enter, copies) = (entered(changed, &outer, &names, false), copies(read));
        let (runtime, ran, outer) = (call.runtime(), call.ran(), outer.iter().flatten());
        let types: Vec<Ident> = (0..own.len()).map(|n| private(&format!("t{n}"))).collect();
        let begin: TokenStream = own.iter().map(begin_anew).collect();
        let of_one_type: TokenStream =
            types.iter().zip(own).map(|(name, c)| of_type_of_rounds(name, c)).collect();
        let before = quote!(let #pattern = ::core::clone::Clone::clone(#carried); #shown #copied);
        let decides = described(at, &quote!(#carried: &_), &ran, &before, &predicate);
        let round = quote!(let #pattern = #carried; #enter #copies #begin #of_one_type let mut #begun = #p::Round::first(); #round);
        let outs = list(changed.iter().flat_map(outs));
        let body = described(at, &quote!(#carried), &ran, &round, &outs);
        let assigned = assigned(changed, &names);
        let (limit, place) = (limit(rounds.limit.as_ref()), place(keyword));
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
}

/// A call of the runtime for control flow.
struct Call<'f> {
    at: Span,
    /// The type of the results around.
    ret: Option<&'f Type>,
}

impl Call<'_> {
    /// The error type's trait, through which the runtime is called.
    fn runtime(&self) -> TokenStream {
        let at = self.at;
        match self.ret {
            Some(ret) => krate::user_error(ret),
            None => {
                let p = krate::private_at(at);
                quote_spanned!(at=> <_ as #p::UserError>)
            }
        }
    }

    /// The type of what the closure of arms returns.
    fn ran(&self) -> TokenStream {
        let p = krate::private_at(self.at);
        match self.ret {
            Some(ret) => quote!(#p::Ran<#ret>),
            None => quote!(::core::result::Result<(), _>),
        }
    }

    /// A node whose arms are alternatives: `arms` is the control flow over the selector, `node` the call.
    fn node<E>(
        &self,
        Alternatives { changed, read, .. }: &Alternatives<E>,
        arms: &TokenStream,
        node: impl FnOnce(Arms) -> TokenStream,
    ) -> TokenStream {
        let (at, p) = (self.at, krate::private());
        let (value, error, closure) = (private("value"), private("error"), private("closure"));
        let Outer { names: outer, copies: outer_copies } = Outer::of(changed);
        let begin: TokenStream = changed.iter().zip(&outer).map(|(c, copy)| begin(c, copy)).collect();
        let ends = Ends::of(changed);
        let (held, copies) = (ends.held(), copies(read));
        let body = alternatives(at, &ends, quote!(#begin #held #copies), arms);
        let call = node(Arms { copies: outer_copies, body, ran: self.ran() });
        let names = fresh(ends.leaving.iter().copied());
        let pattern = list(
            names.iter().map(|name| quote!(#p::Carrying(#name, _))).chain([quote!(#p::Carrying(#value, _))]),
        );
        let assigned = assigned(ends.leaving.iter().copied(), &names);
        let moved: Vec<&Ident> = read.moved.iter().chain(ends.gone.iter().map(|c| &c.ident)).collect();
        // Arms changed variables of their own, and rustc would say that these need no `mut`.
        let changed_too = ends.gone.iter().copied().map(changed_by_arms);
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
struct Ends<'f> {
    leaving: Vec<&'f Changed>,
    /// Those that had no value and do not leave the arms, each with the name of its type.
    unset: Vec<(Ident, &'f Changed)>,
    /// The others that do not leave the arms.
    gone: Vec<&'f Changed>,
}

impl<'f> Ends<'f> {
    fn of(changed: &'f [Changed]) -> Self {
        let (leaving, gone): (Vec<&Changed>, Vec<&Changed>) =
            changed.iter().partition(|c| c.end == End::Leaves);
        // Nothing but the arms says what a variable is that has no value yet.
        let (unset, gone): (Vec<&Changed>, Vec<&Changed>) =
            gone.into_iter().partition(|c| matches!(c.how, How::Anew));
        let types = (0..unset.len()).map(|n| private(&format!("t{n}")));
        Self { leaving, unset: types.zip(unset).collect(), gone }
    }

    /// The statements in the arms' closure for what does not leave it.
    fn held(&self) -> TokenStream {
        let held: TokenStream = self.gone.iter().copied().map(held).collect();
        let of_one_type = self.of_one_type();
        quote!(#held #of_one_type)
    }

    fn of_one_type(&self) -> TokenStream {
        self.unset.iter().map(|(name, variable)| of_type(name, variable)).collect()
    }
}

/// The code of a closure that describes an arm, after the statements `begin`.
fn alternatives(at: Span, ends: &Ends<'_>, begin: TokenStream, arms: &TokenStream) -> TokenStream {
    let (value, given, error) = (private("value"), given(), private("error"));
    let shown = krate::private_at(at);
    let leaves = quote_spanned!(at=> #shown::LeavesArm::leave((#value,).0));
    let outs = list(ends.leaving.iter().copied().flat_map(outs).chain([quote!(#value)]));
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

/// An integer of an arm.
fn value(pat: &Pat) -> TokenStream {
    match pat {
        Pat::Lit(_) => quote!(#pat),
        // In rustc's eyes, a name that is no constant would be a variable, which matches everything.
        constant => quote_spanned!(krate::generated_at(constant.span())=> const { #constant }),
    }
}

/// The place of a loop. Its span is that of the user's `while` in every way, because rustc gives the attribute's place to
/// calls that an attribute has written.
fn place(shown: Span) -> TokenStream {
    let p = krate::private_at(shown);
    quote_spanned!(shown=> #p::place())
}

/// The rounds that a loop may run at most; if it is a constant, it is checked when the program is compiled.
fn limit(stated: Option<&Limit>) -> TokenStream {
    match stated {
        Some(Limit::Host(limit)) => limit.to_token_stream(),
        Some(Limit::Constant(limit)) => {
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

//! A segment as a call of the runtime.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Expr, Local, Stmt, spanned::Spanned, visit_mut::VisitMut};

use super::{
    device_flow::Flows,
    host_code::{HostWriter, cx},
    live_values::{Entering, Leaving, assigned, entering, key, leaving, rows},
    questions,
};
use crate::{
    krate,
    model::{DeviceFlow, Ending, Guard, LiveIn, Probe, Segment, Step},
    parse::syntax,
};

/// The parts of a call of a segment.
struct Call {
    site: TokenStream,
    /// The live-ins.
    key: TokenStream,
    /// The statements of the body before its outputs.
    body: TokenStream,
}

impl HostWriter<'_> {
    pub(super) fn segment(&self, segment: &Segment) -> TokenStream {
        let Entering { keys, mut lets } = entering(&segment.live_ins);
        let code = DeviceCode { flows: &segment.flows, lent: &segment.lent };
        for local in &segment.closures {
            let allowed = unused_of_closure(local);
            let local = code.stmt(&Stmt::Local(local.clone()));
            lets.extend(quote!(#allowed #local));
        }
        let steps: TokenStream = segment.steps.iter().map(|step| self.step(step, &code)).collect();
        let call = Call { site: self.site(&segment.location), key: key(&keys), body: quote!(#lets #steps) };
        match &segment.ending {
            Ending::Result(expr) => self.result(&call, &code.expr(expr)),
            Ending::Outputs => self.outputs(&call, segment, leaving(&segment.live_outs), None),
            Ending::Value { expr, name, result } => {
                let mut leaving = leaving(&segment.live_outs);
                leaving.push(expr.span(), &quote!(#name), &quote!(#name));
                let value = code.expr(expr);
                self.outputs(&call, segment, leaving, Some((value, name, *result)))
            }
        }
    }

    fn step(&self, step: &Step, code: &DeviceCode<'_>) -> TokenStream {
        match step {
            Step::Statement(stmt) => code.stmt(stmt),
            Step::Borrow(stmt) => {
                let stmt = code.stmt(stmt);
                quote!(#[allow(unused_variables)] #stmt)
            }
            Step::Probed { call, macro_name, probes } => {
                let stmt = code.stmt(call);
                let before = probes.iter().map(|Probe { place, ident }| {
                    quote!(let #place = ::core::ptr::from_ref(&#ident).cast::<()>();)
                });
                let after = probes.iter().map(|probe| self.same_variable(probe, macro_name));
                quote!(#(#before)* #stmt #(#after)*)
            }
            Step::Keep { output, ident } => quote!(let #output = ::core::clone::Clone::clone(&#ident);),
            Step::AskEnd(guard) => questions::question(guard),
            Step::StillUsed { ident, at } => {
                quote_spanned!(krate::generated_at(*at)=> let _ = &#ident;)
            }
        }
    }

    fn same_variable(&self, Probe { place, ident }: &Probe, macro_name: &str) -> TokenStream {
        let (p, error, text) = (krate::private(), krate::user_error(self.ret), ident.to_string());
        let same =
            quote!(#p::same_variable(#place, ::core::ptr::from_ref(&#ident).cast(), #text, #macro_name));
        quote!(#error::of(#same)?;)
    }

    /// Returns a segment whose value is the function's result.
    fn result(&self, call: &Call, value: &TokenStream) -> TokenStream {
        let (cx, k, ret, error) = (cx(), Entering::source(), self.ret, krate::user_error(self.ret));
        let Call { site, key, body } = call;
        quote! {
            #error::segment(#cx, #site, #key, |#k: &_| -> #ret {
                #body
                #value
            })
        }
    }

    /// Returns a segment with outputs and an additional value: its tokens, its name, and whether it is the
    /// function's result.
    fn outputs(
        &self,
        call: &Call,
        segment: &Segment,
        leaving: Leaving,
        value: Option<(TokenStream, &Ident, bool)>,
    ) -> TokenStream {
        let (p, cx, k, ret) = (krate::private(), cx(), Entering::source(), self.ret);
        let user_error = krate::user_error(ret);
        let Call { site, key, body } = call;
        let (value_let, value) = match value {
            Some((tokens, t, true)) => (
                quote!(let #t = (#tokens)?;),
                Some(quote!(::core::result::Result::<_, <#ret as #p::TryError>::Error>::Ok(#t))),
            ),
            Some((tokens, t, false)) => (quote!(let #t = #tokens;), Some(quote!(#t))),
            None => (TokenStream::new(), None),
        };
        let (patterns, values) = (rows(&leaving.patterns), rows(&leaving.values));
        let given = Ident::new("__given", Span::mixed_site());
        let give = match &segment.unreached {
            // Never reached: avoids a warning, in the user's code, about generated code.
            Some(o) => quote! {
                #[allow(unreachable_code, clippy::let_unit_value)]
                let #o = #values;
                *#given = ::core::option::Option::Some(#o);
            },
            None => quote!(*#given = ::core::option::Option::Some(#values);),
        };
        let call = quote! {
            #user_error::segment_into(#cx, #site, #key, |#k: &_, #given: &mut _| -> #p::Ran<#ret> {
                #body
                #value_let
                #give
                ::core::result::Result::Ok(())
            })?
        };
        let call = moving(segment, call);
        let assigns = assigned(&segment.live_outs);
        quote! {
            #[allow(unused_mut)]
            let #patterns = #call;
            #assigns
            #value
        }
    }
}

/// Returns the call, after which the values that the run moves are moved.
fn moving(segment: &Segment, call: TokenStream) -> TokenStream {
    let Some(outputs) = &segment.outputs else { return call };
    // Before the outputs are bound: one of them may have the name of a moved value.
    let moved = segment.live_ins.iter().filter_map(|live_in| match live_in {
        LiveIn::Whole { ident, moves: true, .. } => Some(ident),
        _ => None,
    });
    quote!({ let #outputs = #call; { let _moved = (#(#moved,)*); } #outputs })
}

/// Code of a segment, with its control flow of the device, and questions inside of statements.
struct DeviceCode<'s> {
    flows: &'s [DeviceFlow],
    /// See [`Segment::lent`].
    lent: &'s [Guard],
}

impl DeviceCode<'_> {
    fn stmt(&self, stmt: &Stmt) -> TokenStream {
        let mut stmt = stmt.clone();
        Flows(self.flows).visit_stmt_mut(&mut stmt);
        questions::ask_inside(self.lent, &mut stmt);
        quote!(#stmt)
    }

    fn expr(&self, expr: &Expr) -> TokenStream {
        let mut expr = expr.clone();
        Flows(self.flows).visit_expr_mut(&mut expr);
        quote!(#expr)
    }
}

/// The attribute of a closure that host code or a segment makes for itself: what calls it, changes it, or reads it before a change
/// may be elsewhere.
pub(super) fn unused_of_closure(local: &Local) -> TokenStream {
    let is_changed = syntax::bound_by_let(local).iter().any(|bound| bound.mutable);
    let changes = is_changed.then(|| quote!(, unused_mut, unused_assignments));
    quote!(#[allow(unused_variables #changes)])
}

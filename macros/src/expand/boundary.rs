//! Regions and piecewise calls.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Expr, ExprCall, ExprMethodCall, parse_quote, parse_quote_spanned, spanned::Spanned};

use super::host_code::{HostWriter, cx};
use crate::{
    krate,
    model::{Carrier, PiecewiseCall, Region},
    parse::syntax,
};

/// Returns the name of the twin of a method for calls by path.
pub(crate) fn by_path(method: &Ident) -> Ident {
    format_ident!("__graphable_{method}_piecewise", span = method.span())
}

/// A `Support`.
pub(super) fn support(level: Option<&Ident>) -> TokenStream {
    let p = krate::private();
    match level {
        Some(level) => quote_spanned!(level.span()=> #p::Support::#level),
        None => quote!(#p::Support::Never),
    }
}

impl HostWriter<'_> {
    pub(super) fn region(&self, region: &Region) -> TokenStream {
        let (p, krate, cx, step) = (krate::private(), krate::krate(), cx(), self.step);
        let error = krate::user_error(self.ret);
        let (site, support) = (self.site(&region.location), support(region.support.as_ref()));
        let guard = Ident::new("__region", Span::mixed_site());
        let value = Ident::new("__value", Span::mixed_site());
        let ty = region.ty.as_ref().map(|ty| quote!(: #ty));
        let may_be_captured = region.support.as_ref().is_some_and(|level| level != "Never");
        let capability = region.capability.as_ref().map(|name| {
            if may_be_captured {
                quote!(let #name: &#krate::Capturable<#step> = #guard.capturable();)
            } else {
                quote!(let #name: &#krate::Eager<#step> = &#guard;)
            }
        });
        let (levels, inner) = (&region.levels, &region.value);
        quote! {
            {
                #[allow(unused_imports)]
                use #p::{EagerOther as _, EagerResult as _, EagerTensors as _};
                let #guard = #error::of(#cx.eager(#site, #support))?;
                #capability
                #[allow(unreachable_code, clippy::let_unit_value)]
                #(#levels)*
                let #value #ty = #inner;
                #error::of((&&&#p::RegionResult::new(#value)).finish(#guard))?
            }
        }
    }

    pub(super) fn piecewise(&self, PiecewiseCall { call, carrier }: &PiecewiseCall) -> TokenStream {
        let mut expr = call.clone();
        if let Some(call) = syntax::innermost_call(&mut expr) {
            carry(call, carrier);
        }
        quote!(#expr)
    }
}

/// Passes the host code of its caller to a call.
fn carry(call: &mut Expr, carrier: &Carrier) {
    let cx = cx();
    if let (Carrier::Twin, Expr::Call(ExprCall { func, .. })) = (carrier, &mut *call)
        && let Expr::Path(path) = &mut **func
        && let Some(method) = path.path.segments.last_mut()
    {
        method.ident = by_path(&method.ident);
    }
    let (Expr::Call(ExprCall { args, .. }) | Expr::MethodCall(ExprMethodCall { args, .. })) = call else {
        return;
    };
    match (carrier, args.first_mut()) {
        (Carrier::FirstArgument, Some(first)) => {
            let shown = krate::generated_at(first.span());
            let p = krate::private_at(shown);
            *first = parse_quote_spanned!(shown=> #p::OnlyForFunctionsWithBoundaries(#cx, #first));
        }
        _ => args.push(parse_quote!(#cx)),
    }
}

//! Host code: blocks and their statements.

use proc_macro2::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream};
use quote::{ToTokens, TokenStreamExt, quote, quote_spanned};
use syn::{Lifetime, Type, visit_mut::VisitMut};

use super::{device_flow::Flows, segment::unused_of_closure};
use crate::{
    krate,
    model::{Block, Closure, Header, HostCode, HostLet, Location, Part},
};

/// The identifier of the `Piecewise` executor in generated code.
pub(crate) fn cx() -> Ident {
    Ident::new("__cx", Span::mixed_site())
}

/// Writes host code down.
pub(super) struct HostWriter<'a> {
    /// The function's name.
    name: &'a str,
    pub(super) ret: &'a Type,
    pub(super) step: &'a Lifetime,
}

/// The statements of a function with boundaries, ending in the tail expression. They use [`cx`].
pub(crate) fn body(code: &HostCode, header: &Header<'_>) -> TokenStream {
    HostWriter { name: &header.name, ret: header.ret, step: header.step }.block(&code.body)
}

impl HostWriter<'_> {
    pub(super) fn block(&self, block: &Block) -> TokenStream {
        block.parts.iter().map(|part| self.part(part)).collect()
    }

    fn part(&self, part: &Part) -> TokenStream {
        match part {
            Part::Segment(segment) => self.segment(segment),
            Part::Written(stmt) => quote!(#stmt),
            Part::Evaluated(expr) => quote!(#expr;),
            Part::Closure(Closure { local, flows }) => {
                let mut local = local.clone();
                Flows(flows).visit_local_mut(&mut local);
                let allowed = unused_of_closure(&local);
                quote!(#allowed #local)
            }
            Part::Declared(local) => quote!(#[allow(unused_mut)] #local),
            Part::Emptied(ident) => quote!(#[allow(unused_mut)] let mut #ident;),
            Part::Let(given) => self.host_let(given),
            Part::Assign(place, value) => {
                let value = self.value(value);
                quote!(#place = #value;)
            }
            Part::Statement(attrs, value) => {
                let value = self.value(value);
                quote!(#(#attrs)* #value;)
            }
            Part::Value(value) => self.value(value),
        }
    }

    fn host_let(&self, given: &HostLet) -> TokenStream {
        let HostLet { span, attrs, pat, value, otherwise, changes_later } = given;
        let value = self.value(value);
        // No `}` is allowed before `else`.
        let value = if otherwise.is_some() && ends_in_brace(&value) { quote!((#value)) } else { value };
        let otherwise = otherwise.as_ref().map(|block| {
            let block = self.block(block);
            quote!(else { #block })
        });
        let allow = changes_later.then(|| quote!(#[allow(unused_mut)]));
        quote_spanned!(*span=> #allow #(#attrs)* let #pat = #value #otherwise;)
    }

    /// A `&Site`.
    pub(super) fn site(&self, location: &Location) -> TokenStream {
        site(self.name, location)
    }
}

/// `::core::line!()` of a place. Its tokens are pushed one by one, as those of [`krate::Path`] are.
struct Line(Span);

impl ToTokens for Line {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        for name in ["core", "line"] {
            krate::colons(tokens, self.0);
            tokens.append(Ident::new(name, self.0));
        }
        let mut bang = Punct::new('!', Spacing::Alone);
        bang.set_span(self.0);
        tokens.append(bang);
        let mut none = Group::new(Delimiter::Parenthesis, TokenStream::new());
        none.set_span(self.0);
        tokens.append(none);
    }
}

/// The `&Site` of a place in the function `name`.
pub(crate) fn site(name: &str, Location { index, first, last }: &Location) -> TokenStream {
    let p = krate::private();
    let (first_line, last_line) = (Line(*first), Line(*last));
    quote! {
        &#p::Site {
            function: #name,
            index: #index,
            file: ::core::file!(),
            first_line: #first_line,
            last_line: #last_line,
        }
    }
}

/// Returns whether `tokens` end in a `}`, or in something that could expand to one.
fn ends_in_brace(tokens: &TokenStream) -> bool {
    use proc_macro2::TokenTree;
    let last = tokens.clone().into_iter().last();
    matches!(last, Some(TokenTree::Group(g)) if matches!(g.delimiter(), Delimiter::Brace | Delimiter::None))
}

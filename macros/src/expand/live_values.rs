//! The two sides of a segment: how live-ins enter its key, and how outputs leave it.

use crate::{
    krate,
    model::{LiveIn, LiveOut, this},
    parse::syntax,
};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};

/// Live-ins are listed in rows of this size: tuples have at most 32 elements, and 32 rows fit.
const ROW: usize = 32;

/// A tuple, or a tuple of tuples where one would be too long.
pub(super) fn rows(items: &[TokenStream]) -> TokenStream {
    if items.len() <= ROW {
        return quote!((#(#items,)*));
    }
    let rows = items.chunks(ROW).map(|row| quote!((#(#row,)*)));
    quote!((#(#rows,)*))
}

/// The live-ins as the key that a segment is called with.
pub(super) fn key(keys: &[TokenStream]) -> TokenStream {
    let rows = keys.chunks(ROW).map(|row| quote!((#(#row,)*)));
    quote!((#(#rows,)*))
}

/// Returns the expression for live-in `at` of the key.
fn element(k: &Ident, at: usize) -> TokenStream {
    let (row, column) = (syn::Index::from(at / ROW), syn::Index::from(at % ROW));
    quote!(#k.#row.#column)
}

/// The use of a live-in by a segment.
#[derive(Clone, Copy)]
enum Form {
    Whole,
    Field,
    /// Through a `&mut`.
    ToChange,
}

/// Returns a live-in of the key. Errors about it are shown at `shown`.
fn facade(shown: Span, place: &TokenStream, eager: bool, form: Form) -> TokenStream {
    let p = krate::private_at(shown);
    let facade = Ident::new(
        match (eager, form) {
            (false, Form::Whole) => "EntersSegment",
            (false, Form::Field) => "FieldEntersSegment",
            (false, Form::ToChange) => "EntersSegmentToChange",
            (true, Form::Whole) => "EagerEntersSegment",
            (true, Form::Field) => "EagerFieldEntersSegment",
            (true, Form::ToChange) => "EagerEntersSegmentToChange",
        },
        shown,
    );
    quote_spanned!(shown=> #p::#facade::enter(&#place))
}

/// The arguments of a segment's call, and the beginning of its body.
pub(super) struct Entering {
    pub(super) keys: Vec<TokenStream>,
    /// The variables of the body.
    pub(super) lets: TokenStream,
}

/// Returns how live-ins enter.
pub(super) fn entering(live_ins: &[LiveIn]) -> Entering {
    let mut all = Entering { keys: Vec::new(), lets: TokenStream::new() };
    live_ins.iter().for_each(|live_in| all.enter(live_in));
    all
}

impl Entering {
    /// The name of the key in the body.
    pub(super) fn source() -> Ident {
        Ident::new("__k", Span::mixed_site())
    }

    fn enter(&mut self, live_in: &LiveIn) {
        let source = element(&Self::source(), self.keys.len());
        // Errors about a live-in are shown where it is used.
        let shown = |ident: &Ident| krate::generated_at(ident.span());
        match live_in {
            LiveIn::Fresh { ident, mutable, ty } => {
                let mutability = mutable.then(|| quote!(mut));
                let ty = ty.as_ref().map(|ty| quote!(: #ty));
                self.lets.extend(quote! {
                    #[allow(unused_mut, unused_assignments, unused_variables)]
                    let #mutability #ident #ty;
                });
            }
            LiveIn::Exclusive { ident, eager } => {
                let shown = shown(ident);
                self.keys.push(facade(shown, &quote!(*#ident), *eager, Form::ToChange));
                let own = referent(ident);
                self.lets
                    .extend(quote_spanned!(shown=> let mut #own = #source.copy(); let #ident = &mut *#own;));
            }
            LiveIn::Whole { ident, eager, .. } if ident == "self" => {
                let shown = shown(ident);
                self.keys.push(facade(shown, &quote!(#ident), *eager, Form::Whole));
                let this = this();
                self.lets.extend(quote_spanned!(shown=> let #this = #source.copy();));
            }
            LiveIn::Whole { ident, eager, changes, .. } => {
                let shown = shown(ident);
                self.keys.push(facade(shown, &quote!(#ident), *eager, Form::Whole));
                let mutability = changes.then(|| quote!(mut));
                let allow = changes.then(|| quote!(#[allow(unused_mut, unused_assignments)]));
                self.lets.extend(quote_spanned!(shown=> #allow let #mutability #ident = #source.copy();));
            }
            LiveIn::Field { base, path, eager, name } => {
                self.keys.push(facade(shown(base), &syntax::place(base, path), *eager, Form::Field));
                self.lets.extend(quote!(let #name = #source.get();));
            }
        }
    }
}

/// The segment's own variable, to which its `&mut` refers.
fn referent(ident: &Ident) -> Ident {
    format_ident!("__own_{}", ident, span = Span::mixed_site().located_at(ident.span()))
}

/// The values that leave a segment: as host code binds them, and as the body returns them.
#[derive(Default)]
pub(super) struct Leaving {
    pub(super) patterns: Vec<TokenStream>,
    pub(super) values: Vec<TokenStream>,
}

impl Leaving {
    /// Errors about a value that cannot leave are shown where the user binds it.
    pub(super) fn push(&mut self, bound: Span, pattern: &TokenStream, value: &TokenStream) {
        let shown = krate::generated_at(bound);
        let (p, at) = (krate::private(), krate::private_at(shown));
        self.patterns.push(quote!(#p::Leaving(#pattern, _)));
        self.values.push(quote_spanned!(shown=> #at::LeavesSegment::leave((#value,).0)));
    }
}

/// Returns how outputs leave.
pub(super) fn leaving(live_outs: &[LiveOut]) -> Leaving {
    let mut leaving = Leaving::default();
    for live_out in live_outs {
        match live_out {
            LiveOut::Changed { ident, output, exclusive, kept } => {
                let value = match (kept, exclusive) {
                    (true, _) => quote!(#output),
                    (false, true) => {
                        // The reference may have been moved.
                        let own = referent(ident);
                        changed(ident, &quote!(#own), &quote!(value()))
                    }
                    (false, false) => quote!(#ident),
                };
                leaving.push(ident.span(), &quote!(#output), &value);
            }
            LiveOut::Bound { ident, through: Some(output), .. } => {
                leaving.push(ident.span(), &quote!(#output), &quote!(#ident));
            }
            LiveOut::Bound { ident, mutable, through: None } => {
                let mutability = mutable.then(|| quote!(mut));
                leaving.push(ident.span(), &quote!(#mutability #ident), &quote!(#ident));
            }
            LiveOut::Shadowed { ident, alias } => {
                leaving.push(ident.span(), &quote!(#alias), &quote!(#alias));
            }
        }
    }
    leaving
}

/// Calls a method of what the `&mut` at `place` refers to. Errors about it are shown at the variable.
fn changed(variable: &Ident, place: &TokenStream, method: &TokenStream) -> TokenStream {
    let shown = krate::generated_at(variable.span());
    let p = krate::private_at(shown);
    quote_spanned! {shown=> {
        #[allow(unused_imports)]
        use #p::{CannotChangeReferent as _, ChangesReferent as _};
        (&mut #p::Referent(&mut *#place)).#method
    }}
}

/// Returns the statements of host code for outputs that it received under other names.
pub(super) fn assigned(live_outs: &[LiveOut]) -> TokenStream {
    let assign = |live_out: &LiveOut| match live_out {
        LiveOut::Changed { ident, output, exclusive: true, .. } => {
            let set = changed(ident, &quote!(#ident), &quote!(set(#output)));
            Some(quote!(#[allow(unused_assignments)] { #set; }))
        }
        LiveOut::Changed { ident, output, .. } => {
            // A method may take `&mut self`, so a call counts as a change; the next statement may overwrite
            // it.
            Some(quote!(#[allow(unused_assignments)] { #ident = #output; }))
        }
        LiveOut::Bound { ident, mutable, through: Some(output) } => {
            let mutability = mutable.then(|| quote!(mut));
            Some(quote!(#[allow(unused_mut)] let #mutability #ident = #output;))
        }
        _ => None,
    };
    live_outs.iter().filter_map(assign).collect()
}

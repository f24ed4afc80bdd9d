//! Our attributes on an item beside the `#[graphable]` that expands it.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Attribute, Generics, Ident, Item, Macro, Signature, visit::Visit};

use crate::{
    diag::{Code, Errors},
    krate,
};

use super::surroundings::{self, Around, Kind};

/// Takes a second `#[graphable]` off an item, which would make its siblings again.
pub(crate) fn once(attrs: &mut Vec<Attribute>, errors: &mut Errors) {
    attrs.retain(|attr| {
        let again = attr.path().segments.last().is_some_and(|s| s.ident == "graphable");
        if again {
            errors.push(Code::RepeatedAttribute, attr, "`#[graphable]` is given twice", "remove one");
        }
        !again
    });
}

/// Takes off a function what has a meaning only inside it, and returns its names.
pub(crate) fn misplaced(attrs: &mut Vec<Attribute>, name: &Ident, errors: &mut Errors) -> Vec<Ident> {
    let mut misplaced = Vec::new();
    attrs.retain(|attr| {
        let Some(mark) = attr.path().get_ident().map(ToString::to_string) else { return true };
        let (place, help) = match mark.as_str() {
            "eager" => {
                ("an expression", "remove it, and mark a call in the body: `#[eager] f(x)?`".to_owned())
            }
            "piecewise" => ("a call", format!("remove it, and mark the calls: `#[piecewise] {name}(…)`")),
            "host" => (
                "a parameter or a `let`",
                "remove it, and mark the parameter: `#[host] x: &Tensor<f32>`".to_owned(),
            ),
            "key" => {
                ("a parameter or a `let`", "remove it, and mark the parameter: `#[key] n: usize`".to_owned())
            }
            "device" => (
                "an `if`, a `while` or a `match`",
                "remove it, and mark the control flow in the body: `#[device] if p { … } else { … }`"
                    .to_owned(),
            ),
            "dims" => (
                "a parameter",
                "remove it, and mark the parameter: `#[dims(n, 4)] x: &Tensor<f32>`".to_owned(),
            ),
            _ => return true,
        };
        let message = format!("`#[{mark}]` marks {place}, not a function");
        errors.push(Code::MisplacedAttribute, attr, message, help);
        misplaced.extend(attr.path().get_ident().cloned());
        false
    });
    misplaced
}

/// Returns imports of macros with the names of misplaced attributes. rustc has looked in vain for those above `#[graphable]`;
/// if it finds them after all, it leaves the error to us.
pub(crate) fn imports(misplaced: &[Ident]) -> TokenStream {
    let p = krate::private();
    let import = |name: &Ident| {
        let name = Ident::new(&name.to_string(), Span::call_site());
        quote!(#[allow(unused_imports)] use #p::misplaced::#name::*;)
    };
    misplaced.iter().map(import).collect()
}

/// Rejects a function that only code for other processors can call.
pub(crate) fn target_feature(attrs: &[Attribute], errors: &mut Errors) {
    if let Some(attr) = attrs.iter().find(|a| a.path().is_ident("target_feature")) {
        errors.push(
            Code::Qualifier,
            attr.to_token_stream(),
            "a graph function cannot have `#[target_feature]`: its graph is called from safe code",
            "remove `#[target_feature]`",
        );
    }
}

/// Returns the item that a function belongs to, as far as its file or its code shows.
pub(crate) fn around(sig: &Signature, body: &syn::Block) -> Option<Around> {
    let names_self = || {
        let mut found = NamesSelf(sig.receiver().is_some());
        found.visit_signature(sig);
        found.visit_block(body);
        found.0
    };
    surroundings::around(&sig.ident)
        .or_else(|| names_self().then(|| Around { kind: Kind::Impl, generics: Generics::default() }))
}

/// Looks for `Self` outside items, which may have one of their own.
struct NamesSelf(bool);

impl NamesSelf {
    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => self.0 |= ident == "Self",
                TokenTree::Group(group) => self.tokens(group.stream()),
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for NamesSelf {
    fn visit_ident(&mut self, ident: &'ast Ident) {
        self.0 |= ident == "Self";
    }

    fn visit_item(&mut self, _: &'ast Item) {}

    fn visit_macro(&mut self, mac: &'ast Macro) {
        self.tokens(mac.tokens.clone());
    }
}

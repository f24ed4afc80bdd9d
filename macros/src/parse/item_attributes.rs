//! Our attributes on an item beside the `#[graphable]` that expands it.

use quote::ToTokens;
use syn::{Attribute, Signature};

use crate::diag::{Code, Errors};

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

/// Takes off a function what has a meaning only inside it.
pub(crate) fn misplaced(attrs: &mut Vec<Attribute>, name: &syn::Ident, errors: &mut Errors) {
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
            "dims" => (
                "a parameter",
                "remove it, and mark the parameter: `#[dims(n, 4)] x: &Tensor<f32>`".to_owned(),
            ),
            _ => return true,
        };
        let message = format!("`#[{mark}]` marks {place}, not a function");
        errors.push(Code::MisplacedAttribute, attr, message, help);
        false
    });
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

/// Returns whether a function belongs to an `impl`, as far as its tokens show.
pub(crate) fn is_associated(sig: &Signature, body: &syn::Block) -> bool {
    fn names_self(tokens: proc_macro2::TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            proc_macro2::TokenTree::Ident(ident) => ident == "Self",
            proc_macro2::TokenTree::Group(group) => names_self(group.stream()),
            _ => false,
        })
    }
    // An item in the body may have a `Self` of its own.
    let own = |stmt: &&syn::Stmt| !matches!(stmt, syn::Stmt::Item(_));
    let body: proc_macro2::TokenStream =
        body.stmts.iter().filter(own).map(ToTokens::to_token_stream).collect();
    sig.receiver().is_some() || names_self(sig.to_token_stream()) || names_self(body)
}

//! `#[kernel]`: a Rust function on single values as an operation on tensors, on both devices.
//!
//! The stages are parse, type and emit: `parse` reads the tokens into the `model` and rejects syntax that the
//! language does not have, `types` infers the types, and `emit` writes the function as Rust for the CPU and
//! as CUDA C++. rustc checks the Rust function as well, with the inferred types, so that the two cannot
//! disagree.

mod emit;
mod methods;
mod model;
mod parse;
mod rows;
#[cfg(test)]
mod tests;
mod types;
mod views;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Ident, ItemFn};

use crate::{
    diag::{Code, Errors},
    parse::hygiene,
};

/// Returns the expansion of `#[kernel]` on an item.
pub(crate) fn expand(args: &TokenStream, tokens: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let item = match syn::parse2::<ItemFn>(tokens.clone()) {
        Ok(item) => apart(item),
        Err(_) if syn::parse2::<syn::Item>(tokens.clone()).is_ok() => {
            let help = "put it on a function of values: `fn double(x: f32) -> f32 { 2.0 * x }`";
            errors.push(Code::KernelItem, &tokens, "`#[kernel]` goes on a function", help);
            let errors = errors.finish();
            return quote!(#tokens #errors);
        }
        Err(error) => {
            errors.push_syntax(Code::Unparsable, error, "complete the item");
            return errors.finish();
        }
    };
    let Some(header) = parse::header(args, &item, &mut errors) else { return errors.finish() };
    let body = parse::body(&item, &header, &mut errors);
    let mut out = None;
    if errors.is_empty() {
        let types = types::types(&header, &body, &mut errors);
        out = errors.is_empty().then(|| emit::kernel(&header, &body, &types));
    }
    let out = out.unwrap_or_else(|| emit::without_body(&header));
    let errors = errors.finish();
    quote!(#out #errors)
}

/// The function with variables that differ by name, not by hygiene alone.
fn apart(mut item: ItemFn) -> ItemFn {
    let names: Vec<Ident> = item
        .sig
        .inputs
        .iter()
        .flat_map(|argument| match argument {
            syn::FnArg::Typed(typed) => match &*typed.pat {
                syn::Pat::Slice(slice) => slice.elems.iter().filter_map(named).collect(),
                pat => named(pat).into_iter().collect(),
            },
            syn::FnArg::Receiver(_) => Vec::new(),
        })
        .collect();
    if let Some(block) = hygiene::apart(&item.block, &names.iter().collect::<Vec<_>>()) {
        *item.block = block;
    }
    item
}

fn named(pat: &syn::Pat) -> Option<Ident> {
    match pat {
        syn::Pat::Ident(pat) => Some(pat.ident.clone()),
        _ => None,
    }
}

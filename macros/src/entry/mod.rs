//! The items to which `#[graphable]` is applied, and its arguments.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Ident, Item, Token, parse::Parser, punctuated::Punctuated};

use crate::{
    diag::{Code, Errors, nearest},
    parse::{cfg, item_attributes},
};

mod function;
mod impl_item;
mod module_item;
mod trait_item;

use function::{Expanded, Unit};

pub(crate) fn expand(args: TokenStream, tokens: TokenStream) -> TokenStream {
    let parsed = syn::parse2::<Item>(tokens.clone()).or_else(|error| {
        let mut found = false;
        let plain = mended(tokens.clone(), &mut found);
        if found { syn::parse2(plain) } else { Err(error) }
    });
    match parsed {
        Ok(item) if cfg::has_conditions(&item) && !is_lone(&item) => cfg::defer(&args, item),
        parsed => expand_parsed(args, tokens, parsed),
    }
}

/// Returns whether the item is a function of an `impl` or a trait that has no attribute: no item can be written beside it.
fn is_lone(item: &Item) -> bool {
    matches!(item, Item::Fn(f) if item_attributes::around(&f.sig, &f.block).is_some())
}

/// Returns the tokens with what a `macro_rules!` macro was given as syn reads it. Lifetimes come, as labels, in groups that it does not
/// look into; and from an expression behind an attribute that a comma follows (`#[eager] f(x), …`), rustc 1.95 makes a group that ends in
/// the comma.
fn mended(tokens: TokenStream, found: &mut bool) -> TokenStream {
    let is =
        |token: Option<&TokenTree>, c: char| matches!(token, Some(TokenTree::Punct(p)) if p.as_char() == c);
    let mut all = TokenStream::new();
    for token in tokens {
        let TokenTree::Group(group) = &token else {
            all.extend([token]);
            continue;
        };
        let mut inside: Vec<TokenTree> = group.stream().into_iter().collect();
        if group.delimiter() == Delimiter::None {
            if inside.len() == 2 && is(inside.first(), '\'') {
                *found = true;
                all.extend(inside);
                continue;
            }
            if is(inside.first(), '#') && is(inside.last(), ',') {
                *found = true;
                inside.pop();
            }
        }
        let mut inner = Group::new(group.delimiter(), mended(inside.into_iter().collect(), found));
        inner.set_span(group.span());
        all.extend([TokenTree::Group(inner)]);
    }
    all
}

/// Expands an item whose conditions were evaluated.
pub(crate) fn expand_configured(tokens: TokenStream) -> TokenStream {
    match cfg::configured(tokens) {
        Ok(Some((args, item))) => expand_parsed(args, TokenStream::new(), Ok(item)),
        Ok(None) => TokenStream::new(),
        Err(error) => expand_parsed(TokenStream::new(), TokenStream::new(), Err(error)),
    }
}

fn expand_parsed(args: TokenStream, tokens: TokenStream, parsed: syn::Result<Item>) -> TokenStream {
    let mut errors = Errors::default();
    let only_lifetimes = arguments(args, &mut errors);
    let expanded = match parsed {
        Ok(Item::Fn(item)) => {
            let Expanded { function, siblings } = function::expand(Unit {
                attrs: &item.attrs,
                vis: &item.vis,
                sig: item.sig,
                block: *item.block,
                owner: None,
                helper: only_lifetimes.as_ref(),
                broken: None,
            });
            quote!(#function #siblings)
        }
        Ok(Item::Impl(mut item)) => {
            item_attributes::once(&mut item.attrs, &mut errors);
            refuse_helper(only_lifetimes, "an `impl`", &mut errors);
            impl_item::expand(item)
        }
        Ok(Item::Trait(mut item)) => {
            item_attributes::once(&mut item.attrs, &mut errors);
            refuse_helper(only_lifetimes, "a `trait`", &mut errors);
            trait_item::expand_trait(item)
        }
        Ok(Item::Mod(item)) if item.content.is_some() => {
            refuse_helper(only_lifetimes, "a module", &mut errors);
            module_item::expand_module(item)
        }
        Ok(item @ (Item::Struct(_) | Item::Enum(_) | Item::Union(_) | Item::Type(_))) => {
            refuse_helper(only_lifetimes, "a type", &mut errors);
            match module_item::expand_type(item.clone()) {
                Some(filled) => filled,
                None => misplaced(&item, &mut errors),
            }
        }
        Ok(other) => misplaced(&other, &mut errors),
        Err(error) => function::unparsed(tokens, &error),
    };
    let errors = errors.finish();
    quote!(#expanded #errors)
}

fn misplaced(item: &Item, errors: &mut Errors) -> TokenStream {
    errors.push(
        Code::MisplacedAttribute,
        item,
        "`#[graphable]` goes on a function, an `impl`, a `trait`, a module, or a type that holds tensors",
        "remove it here; a struct of parameters is `#[derive(Params)]`",
    );
    item.into_token_stream()
}

/// The `helper` of `#[graphable(helper)]`.
fn arguments(args: TokenStream, errors: &mut Errors) -> Option<Ident> {
    let parsed = match Punctuated::<Ident, Token![,]>::parse_terminated.parse2(args) {
        Ok(parsed) => parsed,
        Err(error) => {
            errors.push_span(
                Code::AttributeArguments,
                error.span(),
                "these are not arguments of `#[graphable]`",
                "write `#[graphable]`, or `#[graphable(helper)]` to fill lifetimes only",
            );
            return None;
        }
    };
    let mut found = None;
    for argument in parsed {
        let text = argument.to_string();
        if text != "helper" {
            let help = match nearest(&text, &["helper"]) {
                Some(known) => format!("did you mean `{known}`?"),
                None => "it takes `helper` (fill lifetimes only), or nothing".to_owned(),
            };
            errors.push(
                Code::UnknownArgument,
                &argument,
                format!("`#[graphable]` has no argument `{text}`"),
                help,
            );
        } else if found.is_some() {
            errors.push(Code::RepeatedAttribute, &argument, "`helper` is given twice", "remove one");
        } else {
            found = Some(argument);
        }
    }
    found
}

fn refuse_helper(helper: Option<Ident>, what: &str, errors: &mut Errors) {
    if let Some(helper) = helper {
        let help = "write `#[graphable]`: functions without boundaries are helpers there anyway";
        errors.push(Code::Helper, &helper, format!("{what} takes no `helper`"), help);
    }
}

#[cfg(test)]
mod tests;

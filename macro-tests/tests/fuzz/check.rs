//! What holds of every expansion, whatever the input.

use proc_macro2::TokenStream;
use syn::{DeriveInput, Item};

use crate::input::{Entry, Input};

/// What goes in for each token of the input, at most, on top of the square: closures are written again in
/// each segment that uses them.
const MOST_FOR_EACH: usize = 2000;

fn expand(input: &Input) -> TokenStream {
    let (args, item) = (input.args.clone(), input.item.clone());
    match input.entry {
        Entry::Graphable => settled(macro_tests::graphable(args, item)),
        Entry::Params => macro_tests::derive_params(item),
        Entry::GraphOutput => macro_tests::derive_graph_output(item),
        Entry::ConfigValue => macro_tests::derive_config_value(item),
    }
}

/// An item with conditions is expanded by a derive, after rustc has settled them; here they all hold.
fn settled(expansion: TokenStream) -> TokenStream {
    match syn::parse2::<syn::ItemEnum>(expansion.clone()) {
        Ok(item) if item.ident.to_string().starts_with("__GraphableConfigured") => {
            macro_tests::derive_configured(expansion)
        }
        _ => expansion,
    }
}

/// Whether Rust's parser would hand the item to the macro.
fn is_item(input: &Input) -> bool {
    match input.entry {
        Entry::Graphable => !matches!(syn::parse2(input.item.clone()), Err(_) | Ok(Item::Verbatim(_))),
        _ => syn::parse2::<DeriveInput>(input.item.clone()).is_ok(),
    }
}

/// Expands `input`, and says what is wrong with the expansion.
pub(crate) fn check(input: &Input) -> Result<(), String> {
    let expansion = expand(input);
    let (before, after) = (size(input.item.clone()) + 1, size(expansion.clone()));
    if after > before * (before + MOST_FOR_EACH) {
        return Err(format!("{after} tokens for {before}"));
    }
    if expand(input).to_string() != expansion.to_string() {
        return Err("two expansions of it differ".to_owned());
    }
    if !is_item(input) {
        return if expansion.is_empty() { Err("nothing is said".to_owned()) } else { Ok(()) };
    }
    let file: syn::File = syn::parse2(expansion).map_err(|e| format!("the expansion is no Rust: {e}"))?;
    for item in &file.items {
        let Item::Macro(m) = item else { continue };
        if m.mac.path.segments.last().is_none_or(|s| s.ident != "compile_error") {
            continue;
        }
        let message = m.mac.parse_body::<syn::LitStr>().map_err(|e| e.to_string())?.value();
        // The derives hand on what syn says of arguments that do not parse, which is no help.
        if input.entry == Entry::Graphable && !message.contains("help: ") {
            return Err(format!("an error without help: {message}"));
        }
    }
    Ok(())
}

fn size(tokens: TokenStream) -> usize {
    let one = |token| match token {
        proc_macro2::TokenTree::Group(g) => 1 + size(g.stream()),
        _ => 1,
    };
    tokens.into_iter().map(one).sum()
}

//! Items with `#[cfg]` inside: rustc evaluates the conditions before anything is read.
//!
//! An attribute macro gets its item with every `#[cfg]` unevaluated, and cannot know which of them hold. But
//! the partition must know: a `let` that is configured out shadows nothing, and a jump that is configured out
//! does not leave. A *derive*, however, gets its input after all conditions in it were evaluated, at any
//! depth. So an item with conditions is put into an item with a derive, and that derive expands it:
//!
//! ```text
//! #[derive(Configured)]
//! enum __GraphableConfigured… { Item = { #[configured(arguments)] fn decode(…) … 0 } }
//! ```
//!
//! The remaining `enum` is empty: its inner item ends with the attribute `configured`, which expands to
//! nothing. rustc would reject our attributes on expressions on the way (it allows none there), so they are
//! carried by calls of a macro that does not exist, and restored afterwards.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Block, Expr, Item, Stmt,
    parse::Parser,
    visit::{self, Visit},
    visit_mut::{self, VisitMut},
};

use super::attributes;
use crate::krate;

/// The macro that carries attributes.
const MARK: &str = "__graphable_mark";

/// The macro that carries the attributes of a condition `let P = value`, in front of its value.
const LET_MARK: &str = "__graphable_let_mark";

/// The attribute that carries the arguments of `#[graphable]`.
const ARGUMENTS: &str = "configured";

/// Returns whether the item has conditions inside; its own conditions are evaluated, or emitted, as they are.
pub(crate) fn has_conditions(item: &Item) -> bool {
    struct Find(bool);
    impl<'a> Visit<'a> for Find {
        fn visit_attribute(&mut self, a: &'a Attribute) {
            self.0 |= is_condition(a);
        }
    }
    let mut find = Find(false);
    match item {
        // A parameter under a condition is refused, in every build alike (G017).
        Item::Fn(f) if f.sig.inputs.iter().any(conditional_parameter) => {}
        Item::Fn(f) => {
            visit::visit_signature(&mut find, &f.sig);
            visit::visit_block(&mut find, &f.block);
        }
        Item::Impl(i) => i.items.iter().for_each(|inner| find.visit_impl_item(inner)),
        _ => {}
    }
    find.0
}

fn conditional_parameter(argument: &syn::FnArg) -> bool {
    let own = match argument {
        syn::FnArg::Receiver(r) => &r.attrs,
        syn::FnArg::Typed(t) => &t.attrs,
    };
    own.iter().any(|a| a.path().is_ident("cfg"))
}

fn is_condition(a: &Attribute) -> bool {
    a.path().is_ident("cfg") || a.path().is_ident("cfg_attr")
}

/// Puts the item into one whose derive expands it when its conditions are evaluated.
pub(crate) fn defer(arguments: &TokenStream, mut item: Item) -> TokenStream {
    let name = Ident::new(&format!("__GraphableConfigured{:016x}", hash(&item)), Span::call_site());
    Put.visit_item_mut(&mut item);
    let p = krate::private();
    quote! {
        #[::core::prelude::v1::derive(#p::Configured)]
        #[doc(hidden)]
        #[allow(dead_code, unused_braces, clippy::all, clippy::pedantic)]
        enum #name {
            Item = {
                #[#p::configured(#arguments)]
                #item
                0
            }
        }
    }
}

/// Distinguishes the items of one scope: two identical ones cannot exist there anyway.
fn hash(item: &Item) -> u64 {
    let text = item.to_token_stream().to_string();
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns the arguments and the item of [`defer`], without its conditions. Returns `None` if the item's own
/// condition does not hold.
pub(crate) fn configured(tokens: TokenStream) -> syn::Result<Option<(TokenStream, Item)>> {
    let input: syn::ItemEnum = match syn::parse2(tokens.clone()) {
        Ok(input) => input,
        Err(_) => syn::parse2(without_empty(tokens, false))?,
    };
    let value = input.variants.into_iter().next().and_then(|v| v.discriminant);
    let Some((_, Expr::Block(block))) = value else { return Ok(None) };
    let Some(Stmt::Item(mut item)) = block.block.stmts.into_iter().next() else { return Ok(None) };
    let own = match &mut item {
        Item::Fn(f) => &mut f.attrs,
        Item::Impl(i) => &mut i.attrs,
        _ => return Ok(None),
    };
    let is_ours = |a: &Attribute| a.path().segments.last().is_some_and(|s| s.ident == ARGUMENTS);
    let Some(at) = own.iter().position(is_ours) else { return Ok(None) };
    let arguments = match own.remove(at).meta {
        syn::Meta::List(list) => list.tokens,
        _ => TokenStream::new(),
    };
    Take.visit_item_mut(&mut item);
    Ok(Some((arguments, item)))
}

/// Removes the commas that rustc leaves where it removes an element of a list; those of macro calls remain.
fn without_empty(tokens: TokenStream, in_call: bool) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let comma = |t: &TokenTree| matches!(t, TokenTree::Punct(p) if p.as_char() == ',');
        let after_bang = matches!(kept.last(), Some(TokenTree::Punct(p)) if p.as_char() == '!');
        match token {
            t if comma(&t) && !in_call && kept.last().is_none_or(comma) => {}
            TokenTree::Group(g) => {
                let mut group = Group::new(g.delimiter(), without_empty(g.stream(), in_call || after_bang));
                group.set_span(g.span());
                kept.push(group.into());
            }
            other => kept.push(other),
        }
    }
    kept.into_iter().collect()
}

/// Moves our attributes from expressions into calls of [`MARK`].
struct Put;

/// Attributes of an expression that travel as calls of a macro, and those that stay on it.
struct Marked {
    marks: TokenStream,
    outside: Vec<Attribute>,
}

impl Marked {
    /// Takes the attributes off the expression, if it is marked.
    fn take(expr: &mut Expr, carrier: &str) -> Option<Self> {
        let (mut marks, mut outside, mut inside) = (Vec::new(), Vec::new(), Vec::new());
        for a in attributes::take(expr) {
            if travels(&a) {
                marks.push(mark(carrier, None, &a));
            } else if let Some((condition, ours)) = conditional(&a) {
                marks.extend(ours.iter().map(|a| mark(carrier, Some(&condition), a)));
            } else if is_condition(&a) {
                outside.push(a);
            } else {
                inside.push(a);
            }
        }
        if marks.is_empty() {
            outside.extend(inside);
            attributes::put(expr, outside);
            return None;
        }
        let carried = inside.iter().map(|a| mark(carrier, None, a));
        // The first one determines the kind of the block, even if no condition holds.
        let own = mark(carrier, None, &TokenStream::new());
        Some(Self { marks: quote!(#own #(#carried)* #(#marks)*), outside })
    }
}

impl Put {
    /// `{ mark! { #[eager] } f(x) }` of `#[eager] f(x)`, if the expression is marked.
    fn marked(expr: &mut Expr) -> Option<(Vec<Attribute>, Expr)> {
        let Marked { marks, outside } = Marked::take(expr, MARK)?;
        Some((outside, braced(&quote!(#marks #expr))))
    }

    /// `let P = ({ mark! { #[eager] } x })` of the condition `#[eager] let P = x`: a `let` is a condition only
    /// outside of blocks and parentheses.
    fn mark_condition(expr: &mut Expr) {
        let Some(Marked { marks, outside }) = Marked::take(expr, LET_MARK) else { return };
        attributes::put(expr, outside);
        if let Expr::Let(condition) = expr {
            let value = &condition.expr;
            let block = braced(&quote!(#marks #value));
            *condition.expr = Expr::Verbatim(quote!((#block)));
        }
    }
}

/// Returns whether rustc would reject the attribute on an expression, although it is ours, or meant to be.
fn travels(a: &Attribute) -> bool {
    a.path().get_ident().is_some_and(|name| !attributes::is_builtin(&name.to_string()))
}

fn braced(tokens: &TokenStream) -> Expr {
    Expr::Verbatim(TokenTree::Group(Group::new(Delimiter::Brace, tokens.clone())).into())
}

fn mark(carrier: &str, condition: Option<&TokenStream>, a: &impl ToTokens) -> TokenStream {
    let name = Ident::new(carrier, Span::call_site());
    let condition = condition.map(|c| quote!(#[cfg(#c)]));
    quote!(#condition #name! { #a })
}

/// `(p, [#[eager]])` of `#[cfg_attr(p, eager)]`.
fn conditional(a: &Attribute) -> Option<(TokenStream, Vec<Attribute>)> {
    if !a.path().is_ident("cfg_attr") {
        return None;
    }
    let parser = syn::punctuated::Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated;
    let all = a.parse_args_with(parser).ok()?;
    let (condition, given) = (all.first()?.to_token_stream(), all.iter().skip(1));
    let given: Vec<Attribute> = given.map(|meta| syn::parse_quote!(#[#meta])).collect();
    given.iter().any(travels).then_some((condition, given))
}

impl VisitMut for Put {
    fn visit_stmt_mut(&mut self, stmt: &mut Stmt) {
        if let Stmt::Expr(expr, _) = stmt {
            visit_mut::visit_expr_mut(self, expr);
            if let Some((outside, block)) = Self::marked(expr) {
                *expr = Expr::Verbatim(quote!(#(#outside)* #block));
            }
        } else {
            visit_mut::visit_stmt_mut(self, stmt);
        }
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        visit_mut::visit_expr_mut(self, expr);
        if matches!(expr, Expr::Let(_)) {
            Self::mark_condition(expr);
        } else if let Some((outside, block)) = Self::marked(expr) {
            // No `}` is allowed before the `else` of a `let`.
            *expr = Expr::Verbatim(quote!(#(#outside)* (#block)));
        }
    }
}

/// Puts the attributes back, and takes away the conditions, which hold.
struct Take;

impl Take {
    fn unmarked(expr: &mut Expr) {
        if let Expr::Let(condition) = expr {
            let Some((carried, value)) = Self::carried(&mut condition.expr, LET_MARK) else { return };
            *condition.expr = value;
            condition.attrs.extend(carried);
        } else if let Some((carried, mut inner)) = Self::carried(expr, MARK) {
            let mut own = attributes::take(expr);
            own.extend(carried);
            own.extend(attributes::take(&mut inner));
            attributes::put(&mut inner, own);
            *expr = inner;
        }
    }

    /// Takes apart a block of [`Put`], if this is one: the attributes that it carries, and what they were on.
    fn carried(expr: &mut Expr, carrier: &str) -> Option<(Vec<Attribute>, Expr)> {
        let block = match expr {
            Expr::Block(e) => &mut e.block,
            Expr::Paren(e) => match &mut *e.expr {
                Expr::Block(e) => &mut e.block,
                _ => return None,
            },
            _ => return None,
        };
        let carried = carried(block, carrier)?;
        match block.stmts.pop()? {
            Stmt::Expr(inner, _) => Some((carried, inner)),
            _ => None,
        }
    }
}

/// Returns the attributes that a block of [`Put`] carries, if it is one.
fn carried(block: &Block, carrier: &str) -> Option<Vec<Attribute>> {
    let (last, marks) = block.stmts.split_last()?;
    let Stmt::Expr(..) = last else { return None };
    let mut carried = Vec::new();
    for stmt in marks {
        let Stmt::Macro(m) = stmt else { return None };
        if !m.mac.path.is_ident(carrier) {
            return None;
        }
        carried.extend(Attribute::parse_outer.parse2(m.mac.tokens.clone()).ok()?);
    }
    // A block without any is the user's own.
    (!marks.is_empty()).then_some(carried)
}

impl VisitMut for Take {
    fn visit_attributes_mut(&mut self, all: &mut Vec<Attribute>) {
        all.retain(|a| !a.path().is_ident("cfg"));
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        // rustc leaves the semicolon of a statement that it takes away.
        let empty = |s: &Stmt| matches!(s, Stmt::Expr(Expr::Verbatim(t), Some(_)) if t.is_empty());
        block.stmts.retain(|s| !empty(s));
        visit_mut::visit_block_mut(self, block);
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        // From outside: its parentheses go with a block.
        Self::unmarked(expr);
        visit_mut::visit_expr_mut(self, expr);
    }
}

#[cfg(test)]
mod tests;

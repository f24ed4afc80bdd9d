//! Mutations of syntax trees: what comes out still parses, and so gets far into the macro.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Block, Expr, FnArg, Item, Pat, Stmt, Type,
    parse::{Parse, Parser},
    visit_mut::{self, VisitMut},
};

use super::{choices::Choices, phrases};

/// A kind of node.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Expr,
    Block,
    Pat,
    Type,
    Argument,
}

/// Goes to the `left`-th node of a kind, and changes it there.
struct Walk<'c, 'b> {
    kind: Kind,
    left: usize,
    /// Nodes seen.
    seen: usize,
    /// None to count only.
    change: Option<(&'c mut Choices<'b>, &'c Item)>,
}

impl Walk<'_, '_> {
    fn here(&mut self, kind: Kind) -> bool {
        if self.kind != kind {
            return false;
        }
        self.seen += 1;
        self.change.is_some() && self.seen == self.left + 1
    }
}

impl VisitMut for Walk<'_, '_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if self.here(Kind::Expr) {
            if let Some((c, other)) = &mut self.change {
                change_expr(expr, c, other);
            }
        } else {
            visit_mut::visit_expr_mut(self, expr);
        }
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        if self.here(Kind::Block) {
            if let Some((c, other)) = &mut self.change {
                change_block(block, c, other);
            }
        } else {
            visit_mut::visit_block_mut(self, block);
        }
    }

    fn visit_pat_mut(&mut self, pat: &mut Pat) {
        if self.here(Kind::Pat) {
            if let Some((c, _)) = &mut self.change {
                replace(pat, c.of(phrases::PATTERNS), Pat::parse_multi);
            }
        } else {
            visit_mut::visit_pat_mut(self, pat);
        }
    }

    fn visit_type_mut(&mut self, ty: &mut Type) {
        if self.here(Kind::Type) {
            if let Some((c, _)) = &mut self.change {
                replace(ty, c.of(phrases::TYPES), Type::parse);
            }
        } else {
            visit_mut::visit_type_mut(self, ty);
        }
    }

    fn visit_fn_arg_mut(&mut self, argument: &mut FnArg) {
        if self.here(Kind::Argument) {
            if let Some((c, _)) = &mut self.change {
                let attribute: TokenStream =
                    c.of(phrases::ATTRIBUTES).and_then(|t| t.parse().ok()).unwrap_or_default();
                let tokens = if c.once_in(3) {
                    let (pat, ty) = (c.of(phrases::PATTERNS), c.of(phrases::TYPES));
                    format!("{}: {}", pat.unwrap_or(&"x"), ty.unwrap_or(&"u8")).parse().unwrap_or_default()
                } else {
                    argument.to_token_stream()
                };
                if let Ok(new) = FnArg::parse.parse2(quote!(#attribute #tokens)) {
                    *argument = new;
                }
            }
        } else {
            visit_mut::visit_fn_arg_mut(self, argument);
        }
    }
}

fn replace<T>(node: &mut T, text: Option<&&str>, parse: impl Parser<Output = T>) {
    if let Some(new) = text.and_then(|text| parse.parse_str(text).ok()) {
        *node = new;
    }
}

fn change_expr(expr: &mut Expr, c: &mut Choices<'_>, other: &Item) {
    let old = &*expr;
    let tokens = match c.below(23) {
        0 => quote!(#[eager] #old),
        1 => quote!(#[eager(cx)] #old),
        2 => quote!(#[eager(support = Always)] #old),
        3 => quote!(#[piecewise] #old),
        4 => quote!({ #old }),
        5 => quote!((#old)),
        6 => quote!(#old?),
        7 => quote!(&#old),
        8 => quote!(f(#old)?),
        9 => quote!(if c { #old } else { x }),
        10 => quote!(match #old { Some(y) => y, None => return Err(e) }),
        11 => quote!(loop { break #old }),
        12 => quote!(|y| #old),
        13 => quote!((move || #old)()),
        14 => quote!({ let y = #old; y }),
        15 => quote!(S { a: #old, ..x }),
        16 => {
            let attribute: TokenStream =
                c.of(phrases::ATTRIBUTES).and_then(|t| t.parse().ok()).unwrap_or_default();
            quote!(#attribute #old)
        }
        17 => quote!(#[device] if p { #old } else { x }),
        18 => quote!(#[device] match i { 0 => #old, _ => y }),
        19 => quote!(#[device] #old),
        20 => return take_expr(expr, c, other),
        _ => return replace(expr, c.of(phrases::EXPRESSIONS), Expr::parse),
    };
    if let Ok(new) = syn::parse2(tokens) {
        *expr = new;
    }
}

/// An expression of another item.
fn take_expr(expr: &mut Expr, c: &mut Choices<'_>, other: &Item) {
    struct Take(usize, Option<Expr>);
    impl VisitMut for Take {
        fn visit_expr_mut(&mut self, e: &mut Expr) {
            if self.0 == 0 && self.1.is_none() {
                self.1 = Some(e.clone());
            }
            self.0 = self.0.wrapping_sub(1);
            visit_mut::visit_expr_mut(self, e);
        }
    }
    let mut other = other.clone();
    let n = c.below(count(&mut other, Kind::Expr));
    let mut take = Take(n, None);
    take.visit_item_mut(&mut other);
    if let Some(new) = take.1 {
        *expr = new;
    }
}

fn change_block(block: &mut Block, c: &mut Choices<'_>, other: &Item) {
    let at = c.below(block.stmts.len().max(1));
    match c.below(6) {
        0 if at < block.stmts.len() => drop(block.stmts.remove(at)),
        1 if at < block.stmts.len() => {
            let to = c.below(block.stmts.len());
            block.stmts.swap(at, to);
        }
        2 if at < block.stmts.len() => {
            let again = block.stmts[at].clone();
            let to = c.below(block.stmts.len() + 1);
            block.stmts.insert(to, again);
        }
        3 => {
            // Those of another function, or of a block within it.
            struct Blocks(Vec<Vec<Stmt>>);
            impl VisitMut for Blocks {
                fn visit_block_mut(&mut self, b: &mut Block) {
                    self.0.push(b.stmts.clone());
                    visit_mut::visit_block_mut(self, b);
                }
            }
            let mut blocks = Blocks(Vec::new());
            blocks.visit_item_mut(&mut other.clone());
            if let Some(stmts) = c.of(&blocks.0) {
                block.stmts.splice(at..at, stmts.iter().cloned());
            }
        }
        _ => {
            let text = c.of(phrases::STATEMENTS).copied().unwrap_or(";");
            if let Ok(stmts) = Block::parse_within.parse_str(text) {
                block.stmts.splice(at..at, stmts);
            }
        }
    }
}

fn count(item: &mut Item, kind: Kind) -> usize {
    let mut walk = Walk { kind, left: 0, seen: 0, change: None };
    walk.visit_item_mut(item);
    walk.seen
}

/// One change somewhere in `item`; parts of `other` may come in.
pub(crate) fn mutate(item: &mut Item, other: &Item, c: &mut Choices<'_>) {
    const KINDS: [Kind; 8] =
        [Kind::Expr, Kind::Block, Kind::Expr, Kind::Block, Kind::Expr, Kind::Pat, Kind::Type, Kind::Argument];
    let kind = c.of(&KINDS).copied().unwrap_or(Kind::Expr);
    let left = c.below(count(item, kind));
    Walk { kind, left, seen: 0, change: Some((c, other)) }.visit_item_mut(item);
}

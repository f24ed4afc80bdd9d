//! A function that `#[tracing::instrument]` above `#[graphable]` has already wrapped: host code opens its
//! span, and the function's own statements are partitioned.

use quote::ToTokens;
use syn::{Block, Expr, Stmt};

/// Returns the statements that open the span, and the function's own body.
pub(crate) fn split(block: &Block) -> (&[Stmt], &Block) {
    wrapped(block).unwrap_or((&[], block))
}

/// Returns whether the body is in a closure of `#[instrument(err)]` or `#[instrument(ret)]`.
pub(crate) fn in_a_closure(block: &Block) -> bool {
    block.stmts.iter().any(|s| mentions(s, "__tracing_attr_span"))
}

fn wrapped(block: &Block) -> Option<(&[Stmt], &Block)> {
    let (last, opening) = block.stmts.split_last()?;
    // Warnings about its arguments come first; without any, an empty block.
    if opening.iter().all(|s| plain_block(s).is_some_and(|b| b.stmts.is_empty())) {
        return wrapped(plain_block(last)?);
    }
    if !opening.first().is_some_and(|s| mentions(s, "__tracing_attr_span")) {
        return None;
    }
    let mut inner = plain_block(last)?;
    // The body is accompanied by a `return` that states its type and is never reached.
    loop {
        match inner.stmts.as_slice() {
            [only] => inner = plain_block(only)?,
            [never, body] if mentions(never, "__tracing_attr_fake_return") => {
                return Some((opening, plain_block(body)?));
            }
            _ => return None,
        }
    }
}

fn plain_block(stmt: &Stmt) -> Option<&Block> {
    match stmt {
        Stmt::Expr(Expr::Block(b), _) if b.label.is_none() => Some(&b.block),
        _ => None,
    }
}

fn mentions(stmt: &Stmt, name: &str) -> bool {
    fn search(tokens: proc_macro2::TokenStream, name: &str) -> bool {
        tokens.into_iter().any(|t| match t {
            proc_macro2::TokenTree::Ident(i) => i == name,
            proc_macro2::TokenTree::Group(g) => search(g.stream(), name),
            _ => false,
        })
    }
    search(stmt.to_token_stream(), name)
}

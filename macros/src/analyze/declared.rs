//! Variables that are declared together, without a value.

use syn::{Pat, PatIdent, Stmt};

/// Rewrites `let (a, b);` as `let a; let b;`: host code may give a value to one of them alone, and nothing would determine the type of
/// the other.
pub(super) fn apart(stmts: Vec<Stmt>) -> Vec<Stmt> {
    let apart = |stmt: Stmt| match &stmt {
        Stmt::Local(local) if local.init.is_none() => match names(&local.pat) {
            Some(names) => {
                let attrs = &local.attrs;
                names.into_iter().map(|name| syn::parse_quote!(#(#attrs)* let #name;)).collect()
            }
            None => vec![stmt],
        },
        _ => vec![stmt],
    };
    stmts.into_iter().flat_map(apart).collect()
}

/// Returns the names in a tuple or an array of names; `None` for other patterns.
fn names(pat: &Pat) -> Option<Vec<&PatIdent>> {
    let parts = match pat {
        Pat::Tuple(tuple) => &tuple.elems,
        Pat::Slice(slice) => &slice.elems,
        Pat::Paren(inner) => return names(&inner.pat),
        _ => return None,
    };
    let mut found = Vec::new();
    for part in parts {
        match part {
            Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => found.push(name),
            Pat::Wild(_) => {}
            other => found.extend(names(other)?),
        }
    }
    Some(found)
}

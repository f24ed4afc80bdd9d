//! Variables that are declared together, without a value.

use syn::{Pat, PatIdent, Stmt, Type};

/// Rewrites `let (a, b);` as `let a; let b;`: host code may give a value to one of them alone, and nothing would determine the type of
/// the other.
pub(super) fn apart(stmts: Vec<Stmt>) -> Vec<Stmt> {
    let apart = |stmt: Stmt| match &stmt {
        Stmt::Local(local) if local.init.is_none() => match names(&local.pat, None) {
            Some(names) => {
                let attrs = &local.attrs;
                let with_type = |(name, ty): (&PatIdent, Option<&Type>)| match ty {
                    Some(ty) => syn::parse_quote!(#(#attrs)* let #name: #ty;),
                    None => syn::parse_quote!(#(#attrs)* let #name;),
                };
                names.into_iter().map(with_type).collect()
            }
            None => vec![stmt],
        },
        _ => vec![stmt],
    };
    stmts.into_iter().flat_map(apart).collect()
}

/// Returns the names in a tuple of names, with their types; `None` for other patterns: the elements of an array have one type.
fn names<'p>(pat: &'p Pat, ty: Option<&'p Type>) -> Option<Vec<(&'p PatIdent, Option<&'p Type>)>> {
    let tuple = match pat {
        Pat::Tuple(tuple) => tuple,
        Pat::Paren(inner) => return names(&inner.pat, ty),
        Pat::Type(typed) => return names(&typed.pat, Some(&typed.ty)),
        _ => return None,
    };
    let types = match ty {
        Some(Type::Tuple(types)) if types.elems.len() == tuple.elems.len() => Some(&types.elems),
        Some(Type::Infer(_)) | None => None,
        Some(_) => return None,
    };
    let mut found = Vec::new();
    for (at, part) in tuple.elems.iter().enumerate() {
        let ty = types.map(|types| &types[at]);
        match part {
            Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => found.push((name, ty)),
            Pat::Wild(_) => {}
            other => found.extend(names(other, ty)?),
        }
    }
    Some(found)
}

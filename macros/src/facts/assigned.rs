//! Variables that code assigns before it reads them: their earlier values are needed no more.

use std::collections::HashSet;

use syn::{Arm, Expr, Local, Stmt};

use super::{
    classify, jumps,
    uses::{self, Uses},
};
use crate::parse::syntax;

/// Returns the outer variables that the statement assigns as a whole, on every path through it, before it
/// reads them. Closures that it calls may read them as well. A path that ends the call is none through it, but reads none of them
/// either.
pub(crate) fn by_stmt(stmt: &Stmt) -> HashSet<String> {
    match stmt {
        Stmt::Local(Local { init: Some(init), .. }) if init.diverge.is_none() => by_expr(&init.expr),
        Stmt::Expr(expr, _) => by_expr(expr),
        _ => HashSet::new(),
    }
}

/// As [`by_stmt`], of the statements of a block.
pub(crate) fn by_block(stmts: &[Stmt]) -> HashSet<String> {
    let (mut assigned, mut taken) = (HashSet::new(), HashSet::<String>::new());
    for stmt in stmts {
        assigned.extend(by_stmt(stmt).into_iter().filter(|name| !taken.contains(name)));
        if jumps::goes_on(stmt) {
            break;
        }
        taken.extend(uses::of_stmt(stmt).names().map(str::to_owned));
        taken.extend(syntax::bound_by(stmt).iter().map(|b| b.ident.to_string()));
    }
    assigned
}

/// Adds the variables on the left side of an assignment; returns whether there is nothing else.
fn targets(left: &Expr, names: &mut HashSet<String>) -> bool {
    match left {
        Expr::Infer(_) => true,
        Expr::Tuple(t) => t.elems.iter().all(|e| targets(e, names)),
        Expr::Array(a) => a.elems.iter().all(|e| targets(e, names)),
        other => syntax::plain_name(other).is_some_and(|name| {
            names.insert(name.to_string());
            true
        }),
    }
}

fn by_expr(expr: &Expr) -> HashSet<String> {
    match expr {
        Expr::Assign(e) if jumps::expr_leaves(&e.right) => HashSet::new(),
        Expr::Assign(e) => {
            let mut names = HashSet::new();
            let (plain, read) = (targets(&e.left, &mut names), uses::of_expr(&e.right));
            names.retain(|name| plain && !read.has(name));
            names
        }
        Expr::Paren(e) => by_expr(&e.expr),
        Expr::Block(e) if e.label.is_none() => by_block(&e.block.stmts),
        Expr::If(e) if !jumps::expr_leaves(&e.cond) => {
            let Some((_, otherwise)) = &e.else_branch else { return HashSet::new() };
            let (mut then, other) = (Way::of_block(&e.then_branch), Way::of(otherwise));
            if let Way::Assigns(names) = &mut then {
                // A name that the condition binds is another variable in the first branch.
                let bound = syntax::bound_anywhere([&Stmt::Expr((*e.cond).clone(), None)]);
                names.retain(|name| !bound.contains(name));
            }
            let read = uses::of_expr(&e.cond);
            by_all([then, other]).into_iter().filter(|name| !read.has(name)).collect()
        }
        Expr::Match(e) if !jumps::expr_leaves(&e.expr) => {
            let read = uses::of_expr(&e.expr);
            by_all(e.arms.iter().map(by_arm)).into_iter().filter(|name| !read.has(name)).collect()
        }
        _ => HashSet::new(),
    }
}

/// One of the ways through a statement.
enum Way {
    Assigns(HashSet<String>),
    /// It ends the call, with these uses.
    Ends(Uses),
}

impl Way {
    fn of(expr: &Expr) -> Self {
        if classify::expr_never_ends(expr) && only_returns(expr) {
            return Self::Ends(uses::of_expr(expr));
        }
        Self::Assigns(by_expr(expr))
    }

    fn of_block(block: &syn::Block) -> Self {
        let whole = || syn::parse_quote!(#block);
        if classify::ends_the_call(&block.stmts) && only_returns(&whole()) {
            return Self::Ends(uses::of_expr(&whole()));
        }
        Self::Assigns(by_block(&block.stmts))
    }
}

/// Returns whether all jumps out of code end the call.
fn only_returns(expr: &Expr) -> bool {
    !jumps::expr_goes_on(expr)
}

/// Returns what all ways through a statement assign, and those that end the call do not read.
fn by_all(ways: impl IntoIterator<Item = Way>) -> HashSet<String> {
    let (mut all, mut ended): (Option<HashSet<String>>, Vec<Uses>) = (None, Vec::new());
    for way in ways {
        match way {
            Way::Assigns(names) => {
                all = Some(match all {
                    None => names,
                    Some(all) => all.intersection(&names).cloned().collect(),
                });
            }
            Way::Ends(uses) => ended.push(uses),
        }
    }
    all.unwrap_or_default().into_iter().filter(|name| !ended.iter().any(|uses| uses.has(name))).collect()
}

fn by_arm(arm: &Arm) -> Way {
    let mut way = Way::of(&arm.body);
    if let Some((_, guard)) = &arm.guard {
        // A jump out of a guard passes over every arm.
        if jumps::expr_leaves(guard) {
            return Way::Assigns(HashSet::new());
        }
        let read = uses::of_expr(guard);
        match &mut way {
            Way::Assigns(names) => names.retain(|name| !read.has(name)),
            Way::Ends(uses) => uses.merge(&read),
        }
    }
    if let Way::Assigns(names) = &mut way {
        syntax::bound(&arm.pat).iter().for_each(|b| _ = names.remove(&b.ident.to_string()));
    }
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(code: &str) -> Vec<String> {
        let mut names: Vec<String> = by_stmt(&syn::parse_str(code).unwrap()).into_iter().collect();
        names.sort();
        names
    }

    #[test]
    fn every_way_assigns_before_it_reads() {
        assert_eq!(assigned("if k > 0 { y = a; } else { y = b; }"), ["y"]);
        assert_eq!(assigned("if k > 0 { y = a; } else if k > 1 { (y, z) = f(); } else { y = b; }"), ["y"]);
        assert_eq!(assigned("match k { 0 => y = a, 1 => { y = b; } _ => { { y = c; } } }"), ["y"]);
        assert_eq!(assigned("{ let w = 2.0; y = f(w)?; g(&y); }"), ["y"]);
        assert_eq!(assigned("#[device] if q { y = f(x)?; } else { y = z.clone(); }"), ["y"]);
    }

    #[test]
    fn ways_that_end_the_call_do_not_count() {
        assert_eq!(assigned("match k { 0 => y = a, 1 => return f(x), _ => { y = b; } }"), ["y"]);
        assert_eq!(assigned("if k > 0 { g(&x); return; } else { y = b; }"), ["y"]);
        assert_eq!(assigned("if k > 0 { y = a; } else { unreachable!(\"{k}\") }"), ["y"]);
        assert_eq!(assigned("match k { n if g(&x) => return z, _ => y = b }"), ["y"]);
        assert_eq!(assigned("{ if k > 0 { return z; } y = a; }"), ["y"]);
        assert_eq!(assigned("match k { 0 => y = a, 1 => loop { return z; }, _ => y = b }"), ["y"]);
        assert_eq!(
            assigned("match k { 0 => y = a, 1 => loop { if c { continue; } f(); }, _ => y = b }"),
            ["y"]
        );
        assert_eq!(assigned("if c { y = a } else { if k > 0 { return x } else { panic!(\"{k}\") } }"), ["y"]);
        assert_eq!(assigned("if c { y = a } else { match k { 0 => return x, _ => unreachable!() } }"), ["y"]);
        for code in [
            "match k { 0 => y = a, 1 => loop { break; }, _ => y = b }",
            "match k { 0 => y = a, 1 => 'a: loop { loop { break 'a; } }, _ => y = b }",
            "match k { 0 => y = a, 1 => loop { if c { continue 'b; } return z; }, _ => y = b }",
            "match k { 0 => y = a, 1 => loop { return y; }, _ => y = b }",
            "match k { 0 => y = a, 1 => while c { return z; }, _ => y = b }",
            "if c { y = a } else { if k > 0 { return x } }",
            "if c { y = a } else { if k > 0 { return x } else { return y } }",
            "match k { 0 => y = a, 1 => return f(y), _ => y = b }",
            "match k { n if g(&y) => return z, _ => y = b }",
            "match k { 0 => { if c { break; } return z } _ => y = b }",
            "match k { 0 => return { break }, _ => y = b }",
            "match k { 0 => 'a: { return z } _ => {} }",
            "match k { 0 => return z, _ => return x }",
            "if k > 0 { return z; } else { panic!(\"{y}\") }",
            "if k > 0 { panic!(\"{y}\") } else { y = a }",
            "if k > 0 { return z; }",
            "{ if k > 0 { return y; } y = a; }",
            "{ if k > 0 { return z; } continue; y = a; }",
        ] {
            assert_eq!(assigned(code), [""; 0], "{code}");
        }
    }

    #[test]
    fn some_way_does_not() {
        for code in [
            "if k > 0 { y = a; }",
            "if k > 0 { y = a; } else { y = f(&y)?; }",
            "if k > 0 { y = a; } else { let y; y = b; }",
            "if k > 0 { y = a; } else if k > 1 { y = b; }",
            "if g(&y) { y = a; } else { y = b; }",
            "match k { 0 => y = a, _ => {} }",
            "match k { 0 => y = a, y => y = b }",
            "match k { n if g(&y) => y = a, _ => y = b }",
            "match f(&y) { 0 => y = a, _ => y = b }",
            "(y, z) = (f(&y)?, g(&z)?);",
            "(y.l, z[0]) = f();",
            "{ g(&y); y = a; }",
            "{ if k > 0 { break; } y = a; }",
            "'a: { if k > 0 { break 'a; } y = a; }",
            "for i in 0..k { y = a; }",
            "while k > 0 { y = a; }",
            "y = if k > 0 { break } else { a };",
            "k > 0 && { y = a; true };",
            "let f = || { y = a; };",
            "#[device] while p { y = a; }",
        ] {
            assert_eq!(assigned(code), [""; 0], "{code}");
        }
    }
}

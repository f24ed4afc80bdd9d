//! Variables that code assigns before it reads them: their earlier values are needed no more.

use std::collections::HashSet;

use syn::{Arm, Expr, Local, Stmt};

use super::{jumps, uses};
use crate::parse::syntax;

/// Returns the outer variables that the statement assigns as a whole, on every path through it, before it
/// reads them. Closures that it calls may read them as well.
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
        if jumps::leaves(stmt) {
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
            let then = by_block(&e.then_branch.stmts);
            if then.is_empty() {
                return then;
            }
            let (other, read) = (by_expr(otherwise), uses::of_expr(&e.cond));
            // A name that the condition binds is another variable in the first branch.
            let bound = syntax::bound_anywhere([&Stmt::Expr((*e.cond).clone(), None)]);
            let both = |name: &String| other.contains(name) && !read.has(name) && !bound.contains(name);
            then.into_iter().filter(both).collect()
        }
        Expr::Match(e) if !jumps::expr_leaves(&e.expr) => {
            let mut arms = e.arms.iter().map(by_arm);
            let first = arms.next().unwrap_or_default();
            let read = uses::of_expr(&e.expr);
            arms.fold(first, |all, arm| all.intersection(&arm).cloned().collect())
                .into_iter()
                .filter(|name| !read.has(name))
                .collect()
        }
        _ => HashSet::new(),
    }
}

fn by_arm(arm: &Arm) -> HashSet<String> {
    let mut assigned = by_expr(&arm.body);
    if let Some((_, guard)) = &arm.guard {
        // A jump out of a guard passes over every arm.
        if jumps::expr_leaves(guard) {
            return HashSet::new();
        }
        let read = uses::of_expr(guard);
        assigned.retain(|name| !read.has(name));
    }
    syntax::bound(&arm.pat).iter().for_each(|b| _ = assigned.remove(&b.ident.to_string()));
    assigned
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

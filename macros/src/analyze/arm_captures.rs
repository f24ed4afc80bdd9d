//! Captures of closures that arms of `#[device]` control flow make anew (`arm_closures.rs`): a variable whose name means
//! something else by then is kept under a name of its own.

use proc_macro2::{Ident, Span};
use syn::{
    Block, Expr, Local, Pat, Stmt,
    visit_mut::{self, VisitMut},
};

use super::{rename::Rename, uses};
use crate::parse::{device, syntax};

/// Gives such variables other names for the closures: `let c = &y;`, and `*c` in the closure. A closure that another one calls
/// is written twice, since one of its types would be fixed. `params` are the variables around the block; `keep` are closures
/// that no arm is given.
pub(super) fn apart(block: &mut Block, params: impl Iterator<Item = String>, keep: &dyn Fn(&Expr) -> bool) {
    let known = params.map(|name| Known { name, closure: None }).collect();
    Apart { known, keep, fresh: 0 }.visit_block_mut(block);
}

struct Apart<'k> {
    /// Names of variables, the last ones last.
    known: Vec<Known>,
    keep: &'k dyn Fn(&Expr) -> bool,
    fresh: usize,
}

struct Known {
    name: String,
    /// The closure that a `let` makes it, if arms may make that one.
    closure: Option<Expr>,
}

impl Apart<'_> {
    /// The `let`s of the names for what a closure captures and later code means something else by.
    fn captured(&mut self, local: &mut Local, rest: &[Stmt]) -> Vec<Stmt> {
        let Some(init) = local.init.as_mut().filter(|init| !(self.keep)(&init.expr)) else {
            return Vec::new();
        };
        let taken = syntax::bound_anywhere(rest);
        let mut made = Vec::new();
        for (name, used) in &uses::of_expr(&init.expr).0 {
            let changes = used.assigned || used.touched || used.through || used.in_macro;
            if changes || !taken.contains(name) {
                continue;
            }
            let Some(known) = self.known.iter().rev().find(|known| known.name == *name) else { continue };
            let closure = known.closure.clone();
            let (own, variable) = (self.name(&used.ident), &used.ident);
            let (kept, stands): (Stmt, Expr) = match closure {
                Some(closure) => (syn::parse_quote!(let #own = #closure;), syn::parse_quote!(#own)),
                None => (syn::parse_quote!(let #own = &#variable;), syn::parse_quote!((*#own))),
            };
            let mut renamed = init.expr.clone();
            Rename { from: name, to: &stands }.visit_expr_mut(&mut renamed);
            // Inside a macro call it keeps its name.
            if !uses::of_expr(&renamed).has(name) {
                made.push(kept);
                *init.expr = *renamed;
            }
        }
        made
    }

    fn name(&mut self, like: &Ident) -> Ident {
        let name = format!("__captured{}", self.fresh);
        self.fresh += 1;
        Ident::new(&name, Span::mixed_site().located_at(like.span()))
    }
}

impl VisitMut for Apart<'_> {
    fn visit_block_mut(&mut self, block: &mut Block) {
        let around = self.known.len();
        // The next statement is the last one.
        let mut rest = std::mem::take(&mut block.stmts);
        rest.reverse();
        while let Some(mut stmt) = rest.pop() {
            self.visit_stmt_mut(&mut stmt);
            if let Stmt::Local(local) = &mut stmt
                && let Some(name) = named(local).map(Ident::to_string)
            {
                // Only an arm that calls it makes it anew; elsewhere it captures what it names.
                if rest.iter().any(|stmt| device::is_anywhere_in(stmt) && uses::of_stmt(stmt).has(&name)) {
                    block.stmts.extend(self.captured(local, &rest));
                }
                let closure = local.init.as_ref().map(|init| (*init.expr).clone());
                self.known.push(Known { name, closure });
            }
            block.stmts.push(stmt);
        }
        self.known.truncate(around);
    }

    fn visit_pat_ident_mut(&mut self, pat: &mut syn::PatIdent) {
        self.known.push(Known { name: pat.ident.to_string(), closure: None });
        visit_mut::visit_pat_ident_mut(self, pat);
    }

    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

/// Returns the name of a `let` that makes a closure, unless that takes what it captures.
pub(super) fn named(local: &Local) -> Option<&Ident> {
    let init = local.init.as_ref().filter(|i| i.diverge.is_none() && local.attrs.is_empty())?;
    let (Expr::Closure(closure), Pat::Ident(name)) = (&*init.expr, &local.pat) else { return None };
    let plain = name.by_ref.is_none() && name.mutability.is_none() && name.subpat.is_none();
    (plain && closure.capture.is_none() && closure.asyncness.is_none()).then_some(&name.ident)
}

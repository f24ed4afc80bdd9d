//! Code motion: `#[eager(early)]` and `#[eager(late)]` regions are moved so that the device work around them
//! becomes one segment.
//!
//! A region crosses the device work directly above or below it, up to the nearest boundary, jump or
//! `#[host] let`, entirely or not at all. Host statements without calls are moved along if the region needs
//! them. Boundaries keep their relative order, since they are never crossed.

use std::borrow::Cow;

use proc_macro2::Ident;
use syn::{Expr, Stmt};

use super::{Analysis, Tail, is_unit_like};
use crate::{
    diag::Code,
    facts::{classify, jumps, macros, uses, uses::Uses},
    parse::{
        attributes::{self, Boundary, Edge},
        syntax,
    },
};

mod conflict;

use conflict::Conflict;

/// The name of a block's value that was bound so that a region can follow it.
const VALUE: &str = "value";

/// Returns the name of a segment's output in the plan.
pub(super) fn shown(name: String) -> String {
    if name.starts_with(&format!("__{VALUE}")) { "a value".to_owned() } else { name }
}

/// A statement, and its role in code motion.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) stmt: Stmt,
    /// Its uses, including those of the closures that it names.
    pub(super) uses: Uses,
    pub(super) binds: Vec<Ident>,
    role: Role,
    /// For a region that requests to be moved: the direction, and the argument that requests it.
    edge: Option<(Edge, Ident)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Nothing goes over it.
    Stays,
    /// Evaluated by host code; an obstacle to a region only if it cannot be moved along.
    Follows,
    /// A `#[key] let`, which host code evaluates before the device work above it. It is always moved along,
    /// so that host code keeps its order.
    Key,
    /// Device work.
    Device,
    /// Device work that is the block's value.
    Value,
}

/// A region that is the value of a statement, and the attribute that made it one.
fn region(stmt: &Stmt) -> Option<(&Expr, &syn::Attribute)> {
    fn within(expr: &Expr) -> Option<(&Expr, &syn::Attribute)> {
        match (attributes::boundary(expr), expr) {
            (Some(Boundary::Eager(a)), _) => Some((expr, a)),
            (Some(Boundary::Piecewise(_)), _) => None,
            (None, Expr::Paren(e)) => within(&e.expr),
            (None, Expr::Try(e)) => within(&e.expr),
            (None, Expr::Cast(e)) => within(&e.expr),
            (None, Expr::Unary(e)) => within(&e.expr),
            (None, Expr::Assign(e)) => within(&e.right),
            (None, _) => None,
        }
    }
    match stmt {
        Stmt::Local(l) => within(&l.init.as_ref()?.expr),
        Stmt::Expr(e, _) => within(e),
        _ => None,
    }
}

fn edge_of(stmt: &Stmt) -> Option<(Edge, Ident)> {
    attributes::edge(region(stmt)?.1)
}

fn is_tail(stmt: &Stmt, tail: Tail) -> bool {
    match stmt {
        Stmt::Expr(e, None) => tail != Tail::Unit && !is_unit_like(e),
        Stmt::Macro(m) => tail != Tail::Unit && m.semi_token.is_none(),
        _ => false,
    }
}

fn role(stmt: &Stmt, is_tail: bool) -> Role {
    if classify::has_boundary(stmt) || jumps::leaves(stmt) {
        return Role::Stays;
    }
    match stmt {
        // The names that it defines have a meaning only from here on.
        Stmt::Item(syn::Item::Macro(_)) => Role::Stays,
        Stmt::Item(_) => Role::Follows,
        Stmt::Local(l) if attributes::let_flag(&l.attrs, "key") => Role::Key,
        Stmt::Local(l) => match &l.init {
            Some(init) if init.diverge.is_some() => Role::Device,
            Some(init) if matches!(&*init.expr, Expr::Closure(_)) || classify::call_free(&init.expr) => {
                Role::Follows
            }
            Some(_) => Role::Device,
            None => Role::Follows,
        },
        Stmt::Macro(m) if is_tail || macros::never_returns(&m.mac) => Role::Stays,
        Stmt::Macro(_) => Role::Device,
        Stmt::Expr(Expr::Return(_), _) => Role::Stays,
        Stmt::Expr(e, _) if is_tail => {
            if classify::call_free(e) || classify::is_control(e) {
                Role::Stays
            } else {
                Role::Value
            }
        }
        Stmt::Expr(e, _) if classify::call_free(e) => Role::Follows,
        Stmt::Expr(..) => Role::Device,
    }
}

impl Analysis<'_, '_> {
    /// The statements of a block in the order in which they run, and where regions among them were moved.
    pub(super) fn reordered<'b>(
        &mut self,
        stmts: &'b [Stmt],
        tail: Tail,
    ) -> (Cow<'b, [Stmt]>, Vec<Option<Edge>>) {
        let Some(names) = &self.meanings else { return (Cow::Borrowed(stmts), Vec::new()) };
        let last = stmts.len().saturating_sub(1);
        let movable = |at: usize, stmt: &Stmt| !(at == last && is_tail(stmt, tail));
        if !stmts.iter().enumerate().any(|(at, s)| movable(at, s) && edge_of(s).is_some()) {
            return (Cow::Borrowed(stmts), Vec::new());
        }
        let mut parts: Vec<Part> = stmts
            .iter()
            .enumerate()
            .map(|(at, stmt)| Part {
                stmt: stmt.clone(),
                uses: names.used_by(stmt),
                binds: syntax::bound_by(stmt).into_iter().map(|b| b.ident).collect(),
                role: role(stmt, at == last && is_tail(stmt, tail)),
                edge: edge_of(stmt).filter(|_| movable(at, stmt)),
            })
            .collect();
        for at in 0..parts.len() {
            let above = parts[..at].iter().rev().take_while(|p| p.role != Role::Stays);
            let cuts = |p: &Part| p.role == Role::Device && names.conflict(p, &parts[at]).is_some();
            if parts[at].role == Role::Key && above.into_iter().any(cuts) {
                // It needs something of the work above it, and cuts that work itself.
                parts[at].role = Role::Stays;
            }
        }
        let mut blocked = false;
        for at in 0..parts.len() {
            if matches!(parts[at].edge, Some((Edge::Early, _))) {
                blocked |= !self.move_up(&mut parts, at, blocked);
            }
        }
        // The block's value may be bound on the way, which adds a statement after all regions.
        for at in (0..parts.len()).rev() {
            if matches!(parts[at].edge, Some((Edge::Late, _))) {
                blocked |= !self.move_down(&mut parts, at, tail, blocked);
            }
        }
        let edges = parts.iter().map(|p| p.edge.as_ref().map(|(edge, _)| *edge)).collect();
        (Cow::Owned(parts.into_iter().map(|p| p.stmt).collect()), edges)
    }

    /// Moves the region at `at` before the device work above it; returns whether nothing prevents it.
    fn move_up(&mut self, parts: &mut [Part], at: usize, blocked: bool) -> bool {
        let start = parts[..at].iter().rposition(|p| p.role == Role::Stays).map_or(0, |s| s + 1);
        let Some(first) = (start..at).find(|&i| parts[i].role == Role::Device) else {
            self.nothing_to_pass(&parts[at], parts[..at].last(), blocked);
            return true;
        };
        let Some(group) = self.group(parts, at, (first..at).rev()) else { return false };
        arrange(&mut parts[first..=at], |i| group.contains(&(first + i)));
        true
    }

    /// Moves the region at `at` after the device work below it; returns whether nothing prevents it.
    fn move_down(&mut self, parts: &mut Vec<Part>, at: usize, tail: Tail, blocked: bool) -> bool {
        let below = at + 1;
        let end =
            parts[below..].iter().position(|p| p.role == Role::Stays).map_or(parts.len(), |e| below + e);
        let is_device = |i: &usize| matches!(parts[*i].role, Role::Device | Role::Value);
        let Some(last) = (below..end).rev().find(is_device) else {
            self.nothing_to_pass(&parts[at], parts.get(below), blocked);
            return true;
        };
        let Some(group) = self.group(parts, at, below..last + 1) else { return false };
        if parts[last].role == Role::Value {
            self.bind_value(parts, tail);
        }
        arrange(&mut parts[at..=last], |i| !group.contains(&(at + i)));
        true
    }

    /// Returns the region at `at` and the statements that must be moved along over the statements of `way`;
    /// reports an error if one of those prevents it.
    fn group(&mut self, parts: &[Part], at: usize, way: impl Iterator<Item = usize>) -> Option<Vec<usize>> {
        let region = &parts[at];
        let (edge, word) = region.edge.as_ref()?;
        let names = self.meanings.as_ref()?;
        let mut group = vec![at];
        let mut conflict = names.stays(&region.stmt, word);
        for i in way {
            if conflict.is_some() {
                break;
            }
            let other = &parts[i];
            let found = group.iter().find_map(|&g| names.conflict(other, &parts[g]));
            match other.role {
                // What it names is not seen, so neither is what it would be moved over.
                Role::Key | Role::Follows if names.calls_own_macro(&other.stmt) => {
                    conflict = Some(Conflict::Hidden(word.clone()));
                }
                Role::Key => group.push(i),
                Role::Follows if found.is_some() => group.push(i),
                Role::Follows => {}
                _ => {
                    // A check may protect the statements that are moved along.
                    let mut parts = group.iter().map(|&g| &parts[g]);
                    conflict = found.or_else(|| parts.find_map(|part| names.leaves(other, part)));
                }
            }
        }
        match conflict {
            None => Some(group),
            Some(conflict) => {
                self.blocked(*edge, conflict);
                None
            }
        }
    }

    fn blocked(&mut self, edge: Edge, conflict: Conflict) {
        let (word, place) = match edge {
            Edge::Early => ("early", "before"),
            Edge::Late => ("late", "after"),
        };
        let (at, message, help) = conflict.explained(word, place);
        self.errors.push(Code::MoveBlocked, at, message, help);
    }

    /// Reports that there is no device work in the direction of the move.
    fn nothing_to_pass(&mut self, region: &Part, next: Option<&Part>, blocked: bool) {
        let Some((edge, word)) = &region.edge else { return };
        // The obstacle may be another region that could not be moved.
        if blocked {
            return;
        }
        let (name, side, end) = match edge {
            Edge::Early => ("early", "above", "beginning"),
            Edge::Late => ("late", "below", "end"),
        };
        let reason = match next {
            None => format!("it is at the {end} of its block"),
            Some(next) if self::region(&next.stmt).is_some() => {
                format!("another boundary is directly {side}, and boundaries keep their order")
            }
            Some(next) if jumps::leaves(&next.stmt) => {
                format!("the code directly {side} may leave by `return`, `break` or `continue`")
            }
            Some(_) => format!("no device work of its block is directly {side}"),
        };
        let help = match next {
            Some(next) if self::region(&next.stmt).is_some() => {
                format!("mark that boundary `{name}` as well, or remove `{name}`")
            }
            // Control flow without a boundary or a jump is an obstacle only as the block's value.
            Some(Part { stmt: stmt @ Stmt::Expr(value, None), .. })
                if *edge == Edge::Late
                    && classify::is_control(value)
                    && !classify::has_boundary(stmt)
                    && !jumps::leaves(stmt) =>
            {
                "bind the block's value: `let value = …;`, the region, then `value`".to_owned()
            }
            _ => format!("remove `{name}`"),
        };
        let message = format!("`{name}` has nothing to move this region over: {reason}");
        self.errors.push(Code::MovePosition, word, message, help);
    }

    /// The error type of the function.
    pub(super) fn error_type(&self) -> syn::Type {
        let (ret, p) = (self.header.ret, crate::krate::private());
        syn::parse_quote!(<#ret as #p::TryError>::Error)
    }

    /// Binds the value of the block, so that a region can follow its computation.
    fn bind_value(&mut self, parts: &mut Vec<Part>, tail: Tail) {
        let Some(Part { stmt: Stmt::Expr(expr, None), .. }) = parts.last() else { return };
        let value = self.fresh(VALUE);
        let error = self.error_type();
        let (bind, give): (Stmt, Expr) = match (tail, expr) {
            (Tail::Function | Tail::Tried, Expr::Call(c)) if is_ok(c) => {
                let inner = &c.args[0];
                (syn::parse_quote!(let #value = #inner;), ok(&error, &value))
            }
            (Tail::Function | Tail::Tried, _) => {
                let result = Ident::new("__result", proc_macro2::Span::mixed_site());
                let typed: Expr = syn::parse_quote!({
                    let #result: ::core::result::Result<_, #error> = #expr;
                    #result?
                });
                (syn::parse_quote!(let #value = #typed;), ok(&error, &value))
            }
            _ => (syn::parse_quote!(let #value = #expr;), syn::parse_quote!(#value)),
        };
        let give = Stmt::Expr(give, None);
        if let Some(last) = parts.last_mut() {
            last.stmt = bind;
            last.role = Role::Device;
            last.binds.push(value);
        }
        let uses = uses::of_stmt(&give);
        parts.push(Part { stmt: give, uses, binds: Vec::new(), role: Role::Stays, edge: None });
    }
}

/// `Ok(v)`.
fn is_ok(call: &syn::ExprCall) -> bool {
    call.args.len() == 1 && syntax::plain_name(&call.func).is_some_and(|name| name == "Ok")
}

/// Gives the results `Ok(v)` that the value of an expression may be the error type of the function, where nothing else would.
pub(super) fn with_error(expr: &mut Expr, error: &syn::Type) {
    let block = |block: &mut syn::Block| {
        if let Some(Stmt::Expr(value, None)) = block.stmts.last_mut() {
            with_error(value, error);
        }
    };
    match expr {
        e if !attributes::of(e).is_empty() => {}
        Expr::Call(c) if is_ok(c) => *c.func = syn::parse_quote!(::core::result::Result::<_, #error>::Ok),
        Expr::Paren(e) => with_error(&mut e.expr, error),
        Expr::Block(e) => block(&mut e.block),
        Expr::If(e) => {
            block(&mut e.then_branch);
            e.else_branch.iter_mut().for_each(|(_, e)| with_error(e, error));
        }
        Expr::Match(e) => e.arms.iter_mut().for_each(|arm| with_error(&mut arm.body, error)),
        _ => {}
    }
}

fn ok(error: &syn::Type, value: &Ident) -> Expr {
    syn::parse_quote!(::core::result::Result::<_, #error>::Ok(#value))
}

/// Puts the parts that are `first` before the others; both keep their order.
fn arrange(parts: &mut [Part], first: impl Fn(usize) -> bool) {
    let all: Vec<(bool, Part)> = parts.iter().cloned().enumerate().map(|(i, p)| (first(i), p)).collect();
    let ordered = all.iter().filter(|(f, _)| *f).chain(all.iter().filter(|(f, _)| !*f));
    for (place, (_, part)) in parts.iter_mut().zip(ordered) {
        *place = part.clone();
    }
}

#[cfg(test)]
mod tests;

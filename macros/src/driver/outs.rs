//! What leaves a segment: its own bindings that later code needs, and outer variables that it changes.

use std::collections::{BTreeSet, HashSet};

use proc_macro2::Ident;
use syn::{Local, Stmt, visit_mut::VisitMut};

use super::{
    Transform, block, classify, free,
    free::{Bound, Uses},
};

/// A name that a run binds at its top level and later code needs.
pub(super) struct Out {
    pub(super) bound: Bound,
    /// The `#[cfg]`s of its `let`, and whether the name means nothing where they do not hold.
    pub(super) cfgs: Vec<syn::Attribute>,
    pub(super) fresh: bool,
}

/// What happens with the `let`s of a run that later code needs.
#[derive(Default)]
pub(super) struct Outs {
    /// Values that leave the segment.
    pub(super) carried: Vec<Out>,
    /// Call-free borrows, evaluated again in the driver, in order.
    pub(super) again: Vec<Local>,
    /// Bindings that are shadowed later in the run, but borrowed by one of `again`: the name, what it is
    /// called in the driver, and the statement that shadows it.
    pub(super) shadowed: Vec<(Ident, Ident, usize)>,
}

impl Transform<'_, '_> {
    /// Which of the run's own bindings later code needs, and how they get there.
    pub(super) fn outs(&mut self, run: &[Stmt], rest: &Uses, run_closures: &HashSet<String>) -> Outs {
        let mut needed: BTreeSet<String> = rest.names().map(str::to_owned).collect();
        // A closure of an outer scope that is used later needs what it captures.
        let outer: Vec<String> = needed.iter().cloned().collect();
        for name in outer {
            if run_closures.contains(&name) {
                continue;
            }
            if let Some(init) =
                self.lookup(&name).and_then(|b| b.closure.as_ref()).and_then(|l| l.init.as_ref())
            {
                needed.extend(free::of_expr(&init.expr).names().map(str::to_owned));
            }
        }
        let mut outs = Outs::default();
        let mut seen: HashSet<String> = HashSet::new();
        for (at, stmt) in run.iter().enumerate().rev() {
            let Stmt::Local(local) = stmt else { continue };
            let bound = free::bound_by_let(local);
            let wanted: Vec<&Bound> = bound
                .iter()
                .filter(|b| needed.contains(&b.ident.to_string()) && !seen.contains(&b.ident.to_string()))
                .collect();
            if wanted.is_empty() {
                seen.extend(bound.iter().map(|b| b.ident.to_string()));
                continue;
            }
            let cfgs: Vec<_> = local.attrs.iter().filter(|a| a.path().is_ident("cfg")).cloned().collect();
            let init = local.init.as_ref();
            let again = init.is_some_and(|i| {
                i.diverge.is_none()
                    && classify::call_free(&i.expr)
                    && (classify::borrows(&i.expr) || bound.iter().any(|b| b.by_ref))
            });
            if let (true, Some(init)) = (again || block::closure_name(local).is_some(), init) {
                let mut local = local.clone();
                for (name, u) in &free::of_expr(&init.expr).0 {
                    if !seen.contains(name) {
                        needed.insert(name.clone());
                        continue;
                    }
                    // Shadowed further down: it leaves under a name of its own.
                    let later = |s: &Stmt| block::bound_by(s).iter().any(|b| b.ident == name);
                    let shadow = (at + 1..run.len()).find(|&i| later(&run[i])).unwrap_or(run.len());
                    let alias = self.fresh("o");
                    Rename { from: name, to: &alias }.visit_local_mut(&mut local);
                    outs.shadowed.push((u.ident.clone(), alias, shadow));
                }
                if again {
                    outs.again.insert(0, local);
                }
            } else {
                let earlier: Vec<Bound> = run[..at].iter().flat_map(block::bound_by).collect();
                outs.carried.extend(wanted.into_iter().map(|b| {
                    let known = self.lookup(&b.ident.to_string()).is_some();
                    let fresh = !known && earlier.iter().all(|e| e.ident != b.ident);
                    Out { bound: b.clone(), cfgs: cfgs.clone(), fresh }
                }));
            }
            if !cfgs.is_empty() {
                // Where they do not hold, the name means what it meant before.
                continue;
            }
            seen.extend(bound.iter().map(|b| b.ident.to_string()));
        }
        outs.carried.reverse();
        outs
    }

    /// Outer variables that the run changes and later code sees, with the statement that shadows them.
    pub(super) fn changed(
        &self,
        run: &[Stmt],
        uses: &Uses,
        live: &HashSet<usize>,
        run_closures: &HashSet<String>,
    ) -> Vec<(Ident, Option<usize>)> {
        let mut changed = Vec::new();
        for (name, u) in &uses.0 {
            let Some(b) = self.lookup(name) else { continue };
            let changes = u.assigned || u.touched && b.mutable;
            if changes && live.contains(&b.id) && b.closure.is_none() && !run_closures.contains(name) {
                let shadowed = run.iter().position(|s| block::bound_by(s).iter().any(|x| x.ident == name));
                changed.push((u.ident.clone(), shadowed));
            }
        }
        changed
    }
}

/// Renames one variable in an expression without inner bindings of that name.
struct Rename<'a> {
    from: &'a str,
    to: &'a Ident,
}

impl VisitMut for Rename<'_> {
    fn visit_expr_path_mut(&mut self, path: &mut syn::ExprPath) {
        if path.path.is_ident(self.from) {
            let to = self.to;
            *path = syn::parse_quote!(#to);
        }
    }
}

//! Analysis of a function body into host code as data: statements that become segments, boundaries that run
//! on every call, and the control flow around them.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::{Block, Expr};

use crate::{
    diag::Errors,
    facts::{classify, uses, uses::Uses, values},
    model::{Header, HostCode, Location, PlanItem, Run},
    parse::{attributes, attributes::Edge, syntax},
};

mod alias;
mod boundary;
mod closures;
mod control;
mod declared;
mod eager_values;
mod evaluation_order;
mod field_paths;
pub(crate) mod groups;
mod guards;
mod host_values;
mod iterators;
mod lets;
mod live_bindings;
mod liveness;
mod macro_bindings;
mod motion;
mod order;
mod partition;
mod pending_run;
mod replaced;
mod scope;
mod segment;
mod segment_code;

use pending_run::PendingRun;
use scope::{Made, Scope};

/// Returns whether the body has boundaries.
pub(crate) fn has_boundaries(block: &Block) -> bool {
    block.stmts.iter().any(classify::has_boundary)
}

/// Returns the host code of a body, whose arms make the closures that they call ([`device_flow::made_in_arms`](crate::device_flow::made_in_arms)). `misplaced` states that an attribute in it is wrong, so its intended
/// meaning is unknown.
pub(crate) fn host_code(
    block: &Block,
    header: &Header<'_>,
    misplaced: bool,
    errors: &mut Errors,
) -> HostCode {
    let mut analysis = Analysis {
        header,
        errors,
        scope: Scope::of(header),
        run: PendingRun::default(),
        breaks: Vec::new(),
        arms: 0,
        emptied: Vec::new(),
        host_assigned: HashSet::new(),
        captured: HashMap::new(),
        plan: Vec::new(),
        host_statement: None,
        runs: Vec::new(),
        host_closures: HashSet::new(),
        named_by_macros: HashSet::new(),
        own_macros: HashSet::new(),
        takes: HashMap::new(),
        in_rules: HashMap::new(),
        in_segments: HashSet::new(),
        fresh: 0,
        misplaced,
        meanings: alias::asks(block).then(|| alias::Names::of(block, header)),
        edge: None,
    };
    let body = analysis.block(&block.stmts, Tail::Function, &HashSet::new());
    let Analysis { plan, host_statement, runs, .. } = analysis;
    HostCode { body, plan, host_statement, runs }
}

/// A whole block as one segment, for functions without boundaries.
pub(crate) fn one_segment(block: &Block, params: impl Iterator<Item = String>) -> PlanItem {
    let location =
        Location { index: 0, first: block.brace_token.span.open(), last: block.brace_token.span.close() };
    PlanItem::Segment { location, live_ins: params.collect(), live_outs: vec!["the result".to_owned()] }
}

/// First and last span of some tokens.
fn ends(tokens: &impl ToTokens) -> (Span, Span) {
    let mut spans = tokens.to_token_stream().into_iter().map(|t| match t {
        proc_macro2::TokenTree::Group(g) => (g.span_open(), g.span_close()),
        other => (other.span(), other.span()),
    });
    let first = spans.next().unwrap_or((Span::call_site(), Span::call_site()));
    let last = spans.last().unwrap_or(first);
    (first.0, last.1)
}

/// The role of a block's last expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// The function's result.
    Function,
    /// A result that `?` follows.
    Tried,
    /// The block's value.
    Value,
    /// Nothing: the block's value is `()`.
    Unit,
}

/// The target of a `break`.
struct Target {
    label: Option<String>,
    is_loop: bool,
    tail: Tail,
}

/// The known facts at one point of a body, and the model of the code before it.
struct Analysis<'a, 'e> {
    header: &'a Header<'a>,
    errors: &'e mut Errors,
    scope: Scope,
    run: PendingRun,
    /// Enclosing loops and labelled blocks, innermost last, as the targets of `break`.
    breaks: Vec<Target>,
    /// The number of arms and loops around the code.
    arms: usize,
    /// Bindings that the last run moved away, and that later code assigns again.
    emptied: Vec<(Ident, usize)>,
    /// Ids of bindings that host code assigns.
    host_assigned: HashSet<usize>,
    /// For each closure, by id, the names that it captures and their meanings.
    captured: HashMap<usize, Vec<(String, usize)>>,
    /// The parts of the model besides its blocks; see `HostCode`.
    plan: Vec<PlanItem>,
    host_statement: Option<Location>,
    runs: Vec<Run>,
    /// Ids of closures that host code uses, which are kept there.
    host_closures: HashSet<usize>,
    /// Ids of bindings that macros of the function name: any later call of one may read them.
    named_by_macros: HashSet<usize>,
    /// Names of these macros.
    own_macros: HashSet<String>,
    /// For those that are in scope, a variable from outside that each of their rules names, by its name and id.
    takes: HashMap<String, (String, usize)>,
    /// For each of them, the names in its rules: other macros that it may call, whose meaning is that at the call.
    in_rules: HashMap<String, HashSet<String>>,
    /// Ids of closures that segments made again.
    in_segments: HashSet<usize>,
    /// The number of generated names.
    fresh: usize,
    /// Set if an attribute is wrong, so its intended meaning is unknown.
    misplaced: bool,
    /// The result of the alias analysis, if regions request to be moved.
    meanings: Option<alias::Names>,
    /// The direction in which the region of the next statement was moved.
    edge: Option<Edge>,
}

impl Analysis<'_, '_> {
    /// Binds names that take the value of `expr`, or elements of it, by `pat`.
    fn bind_from(&mut self, bound: &[syntax::Bound], pat: &syn::Pat, expr: &Expr) {
        let region = attributes::boundary(expr).is_some();
        let derived = self.derivation_of(expr).names(pat);
        let host = !region && self.repeatable(expr, &[]);
        let lenders = self.scope.roots(&uses::of_expr(expr));
        let exclusive = self.exclusive(pat, expr);
        let references = values::matches_references(pat, expr);
        let owned = !host && values::gives_owned(expr) || self.scope.hands_over(&uses::of_expr(expr));
        let part = !owned && self.scope.hands_on(&uses::of_given(expr));
        for b in bound {
            let name = b.ident.to_string();
            let eager_derived = region || derived.contains(&name);
            let id = self.scope.bind(name, b.mutable);
            if eager_derived {
                self.scope.eager_derived.insert(id);
            }
            self.scope.lenders.insert(id, lenders.clone());
            self.scope.describe(id, host, false);
            self.scope.note_reference(id, references);
            if owned {
                self.scope.owned.insert(id);
            }
            if part {
                self.scope.host_results.insert(id);
            }
            self.scope.mark_exclusive(&exclusive);
        }
    }

    fn fresh(&mut self, prefix: &str) -> Ident {
        self.fresh += 1;
        Ident::new(&format!("__{prefix}{}", self.fresh), Span::mixed_site())
    }

    fn is_eager_derived(&self, uses: &Uses) -> bool {
        uses.0.iter().any(|(name, u)| {
            // Names bound by the pending run come from it, whatever had the name before.
            let id = self.scope.lookup(name).filter(|_| !self.run.binds(name)).map(|b| b.id);
            id.is_some_and(|id| {
                self.scope.eager_derived.contains(&id) && (u.whole || !self.scope.only_clean(id, u))
            })
        })
    }

    /// Notes the uses of host code.
    fn in_host_code(&mut self, uses: &Uses) {
        self.check_changing_closures(uses);
        self.needs_in_host_code(uses);
    }

    /// Notes the closures that host code needs, with those that the closures among them use.
    fn needs_in_host_code(&mut self, uses: &Uses) {
        let is_made = |name: &str| self.scope.lookup(name).filter(|b| b.made.is_some()).map(|b| b.id);
        let mut needed: Vec<usize> = uses.names().filter_map(is_made).collect();
        while let Some(id) = needed.pop() {
            if !self.host_closures.insert(id) {
                continue;
            }
            match self.captured.get(&id) {
                // What it captured may have lost its name since.
                Some(captured) => needed.extend(captured.iter().map(|(_, id)| *id)),
                // One of the pending run.
                None => {
                    let binding = self.scope.names.iter().find(|b| b.id == id);
                    let inner = binding.and_then(|b| b.made.as_ref()).map(|made| made.uses.names());
                    needed.extend(inner.into_iter().flatten().filter_map(|name| {
                        self.scope.lookup(name).filter(|b| b.made.is_some()).map(|b| b.id)
                    }));
                }
            }
        }
    }

    /// Runs with the names of an inner scope.
    fn scoped<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let depth = self.scope.depth();
        let result = f(self);
        self.scope.leave(depth);
        result
    }

    /// Runs inside of an arm or a loop, which not every way goes through.
    fn in_arm<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        self.arms += 1;
        let result = f(self);
        self.arms -= 1;
        result
    }

    /// The place of some tokens, as the next entry of the plan.
    fn location(&self, tokens: &impl ToTokens) -> Location {
        let (first, last) = ends(tokens);
        Location { index: self.plan.len(), first, last }
    }
}

fn is_unit_like(expr: &Expr) -> bool {
    matches!(expr, Expr::ForLoop(_) | Expr::While(_) | Expr::Assign(_))
        || matches!(expr, Expr::Binary(b) if syntax::is_assign(&b.op))
}

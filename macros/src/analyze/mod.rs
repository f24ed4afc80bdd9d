//! From a function body to its host code as data: statements that become segments, boundaries that run on every call,
//! and the control flow around them.

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::{Block, Expr};

use crate::{
    diag::Errors,
    model::{Header, HostCode, Location, PlanItem, Run},
    parse::{attributes, attributes::Edge, syntax},
};

mod alias;
mod boundary;
mod classify;
mod closures;
mod control;
mod eager_values;
pub(crate) mod effects;
mod evaluation_order;
mod guards;
mod host_values;
mod lets;
mod liveness;
mod macro_bindings;
pub(crate) mod macros;
mod motion;
pub(crate) mod operations;
mod partition;
mod segment;
mod statement;
pub(crate) mod uses;

use uses::{Sequence, Use, Uses};

/// Whether the body has boundaries.
pub(crate) fn has_boundaries(block: &Block) -> bool {
    block.stmts.iter().any(classify::has_boundary)
}

/// The host code of a body. `misplaced` says that an attribute in it is wrong: what it would have meant is then unknown.
pub(crate) fn host_code(
    block: &Block,
    header: &Header<'_>,
    misplaced: bool,
    errors: &mut Errors,
) -> HostCode {
    let mut analysis = Analysis {
        header,
        errors,
        names: parameters(header),
        next_id: header.params.len(),
        tainted: HashSet::new(),
        clean: HashMap::new(),
        pending: HashSet::new(),
        maybe_bound: HashSet::new(),
        run: Sequence::default(),
        checks: Vec::new(),
        lenders: HashMap::new(),
        owned: HashSet::new(),
        breaks: Vec::new(),
        emptied: Vec::new(),
        host_assigned: HashSet::new(),
        assigned: HashSet::new(),
        captured: HashMap::new(),
        plan: Vec::new(),
        host_statement: None,
        runs: Vec::new(),
        host_uses: HashSet::new(),
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

/// The parameters of a function as names in scope.
fn parameters(header: &Header<'_>) -> Vec<Binding> {
    let binding = |(id, param): (usize, &&Ident)| Binding {
        name: param.to_string(),
        id,
        mutable: header.mutable.contains(param),
        host: header.host.contains(param),
        device: !header.host.contains(param),
        ..Binding::default()
    };
    header.params.iter().enumerate().map(binding).collect()
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

/// A name in scope.
#[derive(Clone, Default)]
struct Binding {
    name: String,
    id: usize,
    mutable: bool,
    /// Whether no tensor is to be had through it.
    host: bool,
    /// Whether it is known to be, or to hold, a tensor.
    device: bool,
    /// Whether it is a `&mut`: what a segment writes through it is written when the segment has ended.
    exclusive: bool,
    /// What each segment that uses it makes for itself: a closure literal, or a constant.
    made: Option<Rc<Made>>,
    /// `let x;` that nothing has assigned yet.
    uninit: bool,
    /// Whether its `let` shows that it is a vector or an array.
    list: bool,
}

/// A `let` of what each segment that uses it makes for itself.
struct Made {
    local: syn::Local,
    /// What its value uses.
    uses: Uses,
}

/// What the last expression of a block is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// The function's result.
    Function,
    /// The block's value.
    Value,
    /// Nothing: the block's value is `()`.
    Unit,
}

/// What a `break` can leave.
struct Target {
    label: Option<String>,
    is_loop: bool,
    tail: Tail,
}

/// What is known at one point of a body, and what was made of the code above it.
struct Analysis<'a, 'e> {
    header: &'a Header<'a>,
    errors: &'e mut Errors,
    /// Names in scope, innermost last.
    names: Vec<Binding>,
    next_id: usize,
    /// Ids of bindings that hold values of eager code.
    tainted: HashSet<usize>,
    /// Of those that are struct literals: the fields that hold none.
    clean: HashMap<usize, HashSet<String>>,
    /// Names that the pending run binds.
    pending: HashSet<String>,
    /// Names that macros of the user in it may bind.
    maybe_bound: HashSet<String>,
    /// What it uses, the closures that it names included.
    run: Sequence,
    /// Its statements that may leave, and what they use.
    checks: Vec<(evaluation_order::Check, Uses)>,
    /// Of bindings that may hold references: the bindings that they lead to.
    lenders: HashMap<usize, HashSet<usize>>,
    /// Ids of bindings that hold results of calls, and so may own what they hold.
    owned: HashSet<usize>,
    /// Loops and labelled blocks around the code, innermost last: what a `break` finds.
    breaks: Vec<Target>,
    /// Bindings that the last run moved away, and that later code assigns anew.
    emptied: Vec<(Ident, usize)>,
    /// Ids of bindings that host code assigns.
    host_assigned: HashSet<usize>,
    /// Ids of `let x;` bindings that were assigned.
    assigned: HashSet<usize>,
    /// Of each closure, by id: the names that it captures, and what they meant.
    captured: HashMap<usize, Vec<(String, usize)>>,
    plan: Vec<PlanItem>,
    host_statement: Option<Location>,
    runs: Vec<Run>,
    /// Names that host code uses: closures among them are kept there.
    host_uses: HashSet<String>,
    /// Ids of closures that segments made again.
    in_segments: HashSet<usize>,
    fresh: usize,
    /// Whether an attribute is wrong: what it would have meant is then unknown.
    misplaced: bool,
    /// What the names of the function may stand for; where regions ask to be moved.
    meanings: Option<alias::Names>,
    /// Where the region of the next statement was moved.
    edge: Option<Edge>,
}

impl Analysis<'_, '_> {
    fn lookup(&self, name: &str) -> Option<&Binding> {
        self.names.iter().rev().find(|b| b.name == name)
    }

    fn bind(&mut self, name: String, mutable: bool) -> usize {
        let id = self.next_id;
        self.next_id += 1;
        self.names.push(Binding { name, id, mutable, ..Binding::default() });
        id
    }

    /// Binds names that take the value of `expr`, or elements of it, by `pat`.
    fn bind_from(&mut self, bound: &[syntax::Bound], pat: &syn::Pat, expr: &Expr) {
        let region = attributes::boundary(expr).is_some();
        let taint = self.taint_of(expr).names(pat);
        let host = !region && self.repeatable(expr, &[]);
        let lenders = self.roots(&uses::of_expr(expr));
        let exclusive = eager_values::exclusive(pat, expr);
        for b in bound {
            let name = b.ident.to_string();
            let tainted = region || taint.contains(&name);
            let id = self.bind(name, b.mutable);
            if tainted {
                self.tainted.insert(id);
            }
            self.lenders.insert(id, lenders.clone());
            self.describe(id, host, false);
            self.mark_exclusive(&exclusive);
        }
    }

    fn mark_exclusive(&mut self, names: &HashSet<String>) {
        for name in names {
            if let Some(b) = self.names.iter_mut().rev().find(|b| b.name == *name) {
                b.exclusive = !b.mutable;
            }
        }
    }

    /// Says what is known of a binding's value.
    fn describe(&mut self, id: usize, host: bool, device: bool) {
        if let Some(b) = self.names.iter_mut().rev().find(|b| b.id == id) {
            (b.host, b.device) = (host, device);
        }
    }

    /// Says whether a binding is a list.
    fn note_list(&mut self, id: usize, list: bool) {
        if let Some(b) = self.names.iter_mut().rev().find(|b| b.id == id) {
            b.list = list;
        }
    }

    /// The bindings that code names, and those that they may hold references to.
    fn roots(&self, uses: &Uses) -> HashSet<usize> {
        let mut roots = self.ids(uses);
        let lent: Vec<usize> =
            roots.iter().filter_map(|id| self.lenders.get(id)).flatten().copied().collect();
        roots.extend(lent);
        roots
    }

    fn fresh(&mut self, prefix: &str) -> Ident {
        self.fresh += 1;
        Ident::new(&format!("__{prefix}{}", self.fresh), Span::mixed_site())
    }

    /// Ids of names, as they resolve here; closures count as what they capture.
    fn ids(&self, uses: &Uses) -> HashSet<usize> {
        let mut ids = HashSet::new();
        for name in uses.names() {
            self.add_id(name, &mut ids);
        }
        ids
    }

    fn add_id(&self, name: &str, ids: &mut HashSet<usize>) {
        let Some(b) = self.lookup(name) else { return };
        if !ids.insert(b.id) {
            return;
        }
        if let Some(made) = &b.made {
            made.uses.names().for_each(|inner| self.add_id(inner, ids));
        }
    }

    fn is_tainted(&self, uses: &Uses) -> bool {
        uses.0.iter().any(|(name, u)| {
            // What the pending run binds is made by it, whatever had the name before.
            let id = self.lookup(name).filter(|_| !self.pending.contains(name)).map(|b| b.id);
            id.is_some_and(|id| self.tainted.contains(&id) && (u.whole || !self.only_clean(id, u)))
        })
    }

    /// Whether code uses only fields of a struct literal that hold no value of eager code.
    fn only_clean(&self, id: usize, u: &Use) -> bool {
        let clean = |path: &Vec<String>| {
            path.first().is_some_and(|f| self.clean.get(&id).is_some_and(|clean| clean.contains(f)))
        };
        !u.fields.is_empty() && u.fields.iter().all(clean)
    }

    /// Notes what host code uses.
    fn in_host_code(&mut self, uses: &Uses) {
        self.check_changing_closures(uses);
        self.host_uses.extend(uses.names().map(str::to_owned));
    }

    /// Runs with the names of an inner scope.
    fn scoped<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let depth = self.names.len();
        let result = f(self);
        self.names.truncate(depth);
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

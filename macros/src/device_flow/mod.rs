//! Control flow of the device in code, as data: every `#[device] if`, `while` and `match` becomes an entry of a list
//! ([`DeviceFlow`]), and a marker in the code.
//!
//! What an entry says is what the runtime needs: which variables the arms change, which of these later code reads
//! (`order.rs`), and of which only some fields leave (`shared.rs`). Before that, arms are given the closures that they call
//! (`closures.rs`).

use proc_macro2::Ident;
use syn::{
    Block, Expr, ExprIf, ExprMatch, ExprWhile, Local, Pat, Signature, Stmt, Type,
    visit::Visit,
    visit_mut::{self, VisitMut},
};

use crate::{
    facts::{assigned, uses, values},
    model::{
        Alternatives, Changed, DeviceCode, DeviceFlow, DeviceFlowKind, End, How, Limit, LiveIn, ReadByArms,
        Rounds,
    },
    parse::{attributes, device, syntax},
};

mod captures;
mod closures;
mod effects;
mod later;
mod names;
mod order;
mod shared;

pub(crate) use closures::made_in_arms;
use effects::Effects;
pub(crate) use effects::effects;
pub(crate) use later::Later;
use shared::Shared;

/// Returns the body of a function, whose variables are its parameters.
pub(crate) fn of_function(sig: &Signature, block: &Block) -> DeviceCode {
    let mut block = block.clone();
    if !device::has_flow(&block) {
        return DeviceCode { block, flows: Vec::new() };
    }
    let unit = syn::parse_quote!(());
    let ret = match &sig.output {
        syn::ReturnType::Type(_, ty) => ty,
        syn::ReturnType::Default => &unit,
    };
    let params = sig.inputs.iter().flat_map(|argument| match argument {
        syn::FnArg::Typed(typed) => {
            let is_exclusive = matches!(&*typed.ty, Type::Reference(r) if r.mutability.is_some());
            let bound = syntax::bound_always(&typed.pat);
            bound.iter().map(|b| Known { is_exclusive, ..Known::bound(b, 0, false) }).collect()
        }
        syn::FnArg::Receiver(_) => Vec::new(),
    });
    let names: Vec<Known> = params.collect();
    closures::given_to_arms(&mut block, names.iter().map(|known| known.name.clone()), |_| false);
    let mut flows = Flows::of(ret, names);
    flows.visit_block_mut(&mut block);
    DeviceCode { block, flows: flows.found }
}

/// Finds control flow of the device in the code that it visits, and leaves markers.
pub(crate) struct Flows {
    pub(crate) found: Vec<DeviceFlow>,
    /// The type of the results around: of the function, or of a closure. `None` if nothing states it.
    ret: Option<Type>,
    /// The variables in scope.
    names: Vec<Known>,
    /// The variables of which later code needs the value: in each block around, what follows the current statement, and in
    /// each expression around, what is evaluated after the current operand.
    later: Vec<Later>,
    /// How many entries of `later` are around the condition that is visited, whose `let`s outlive it.
    condition: usize,
}

/// A variable in scope.
#[derive(Clone)]
pub(crate) struct Known {
    name: String,
    /// How many entries of `later` are around it.
    around: usize,
    /// Whether it was declared without a value, and nothing has given it one.
    is_unset: bool,
    /// Whether it is `mut`, as far as is known. If arms change parts of one that is not, it refers to what they change.
    is_mut: bool,
    /// Whether it may be a `&mut`, as the code around shows. A call that takes one borrows again from it, and does not move it.
    is_exclusive: bool,
}

impl Known {
    /// For a live-in of a segment.
    pub(crate) fn live_in(live_in: &LiveIn) -> Option<Self> {
        Some(Self {
            name: live_in.variable()?.to_string(),
            around: 0,
            is_unset: matches!(live_in, LiveIn::Fresh { .. }),
            is_mut: true,
            is_exclusive: matches!(live_in, LiveIn::Exclusive { .. }),
        })
    }

    /// For a name that a pattern binds.
    fn bound(bound: &syntax::Bound, around: usize, is_unset: bool) -> Self {
        Self { name: bound.ident.to_string(), around, is_unset, is_mut: bound.mutable, is_exclusive: false }
    }
}

impl Flows {
    /// For the code of a function with this result type, in which these variables are in scope.
    pub(crate) fn of(ret: &Type, names: impl IntoIterator<Item = Known>) -> Self {
        Self { ret: nameable(ret), names: names.into_iter().collect(), ..Self::of_closure() }
    }

    /// For a closure's code, whose surroundings are not known.
    pub(crate) fn of_closure() -> Self {
        Self { found: Vec::new(), ret: None, names: Vec::new(), later: Vec::new(), condition: 0 }
    }

    /// Visits a statement, whose names are in scope afterwards. `later` is the code that follows it.
    pub(crate) fn statement(&mut self, stmt: &mut Stmt, later: impl FnOnce() -> Later) {
        let binds = syntax::bound_by(stmt);
        let is_unset = matches!(stmt, Stmt::Local(local) if local.init.is_none());
        let given = self.names.iter().any(|known| known.is_unset).then(|| uses::of_stmt(stmt));
        self.followed_by(later, stmt);
        if let Some(given) = given {
            self.names.iter_mut().for_each(|known| known.is_unset &= !given.has(&known.name));
        }
        self.bind(&binds, is_unset);
        if let Stmt::Local(Local { pat, init: Some(init), .. }) = stmt {
            self.note_exclusive(pat, &init.expr);
        }
    }

    /// Notes that the names that a pattern binds may be `&mut`, if the value says so.
    fn note_exclusive(&mut self, pat: &Pat, value: &Expr) {
        if !values::may_hold_exclusive(value) {
            return;
        }
        for bound in syntax::bound(pat) {
            if let Some(known) = self.names.iter_mut().rev().find(|known| bound.ident == known.name) {
                known.is_exclusive = true;
            }
        }
    }

    /// Visits the value at the end of code, which `later` follows.
    pub(crate) fn value(&mut self, value: &mut Expr, later: impl FnOnce() -> Later) {
        let mut stmt = Stmt::Expr(std::mem::replace(value, Expr::PLACEHOLDER), None);
        self.followed_by(later, &mut stmt);
        if let Stmt::Expr(expr, _) = stmt {
            *value = expr;
        }
    }

    fn followed_by(&mut self, later: impl FnOnce() -> Later, stmt: &mut Stmt) {
        if device::is_anywhere_in(stmt) {
            let later = later().after(stmt);
            self.before_all(later, |s| s.visit_stmt_mut(stmt));
        }
    }

    /// Brings names into scope.
    fn bind(&mut self, bound: &[syntax::Bound], is_unset: bool) {
        self.bind_around(self.later.len(), bound, is_unset);
    }

    fn bind_around(&mut self, around: usize, bound: &[syntax::Bound], is_unset: bool) {
        self.names.extend(bound.iter().map(|b| Known::bound(b, around, is_unset)));
    }

    fn known(&self, ident: &Ident) -> Option<&Known> {
        self.names.iter().rev().find(|known| ident == &known.name)
    }

    /// Returns whether code behind the current operand may use a variable. Blocks around that of the variable do not: they
    /// mean another one by the name.
    fn is_used_later(&self, ident: &Ident) -> bool {
        let name = ident.to_string();
        let around = self.known(ident).map_or(0, |known| known.around);
        later::is_used(&name, &self.later[around.min(self.later.len())..])
    }

    fn scoped(&mut self, pats: &[&Pat], f: impl FnOnce(&mut Self)) {
        let depth = self.names.len();
        for pat in pats {
            self.bind(&syntax::bound(pat), false);
        }
        f(self);
        self.names.truncate(depth);
    }

    fn branches(&mut self, e: &ExprIf) -> DeviceFlowKind {
        let mut arms = ExprIf { attrs: Vec::new(), ..e.clone() };
        arms.cond = syn::parse_quote!(true);
        let whole = Expr::If(arms.clone());
        let named = order::of_expr(&whole);
        let (changed, read) = self.arms(&whole);
        if let Some(mut shared) = Shared::of(&changed) {
            shared.visit_expr_if_mut(&mut arms);
        }
        self.visit_block_mut(&mut arms.then_branch);
        if let Some((_, other)) = &mut arms.else_branch {
            self.visit_expr_mut(other);
        }
        let decides = self.before(&named, |s| s.visited(&e.cond));
        DeviceFlowKind::If(Alternatives { decides, arms, changed, read })
    }

    fn selection(&mut self, e: &ExprMatch) -> DeviceFlowKind {
        let mut arms = ExprMatch { attrs: Vec::new(), ..e.clone() };
        arms.expr = syn::parse_quote!(());
        for arm in &mut arms.arms {
            arm.pat = syn::parse_quote!(_);
        }
        let whole = Expr::Match(arms.clone());
        let named = order::of_expr(&whole);
        let (changed, read) = self.arms(&whole);
        if let Some(mut shared) = Shared::of(&changed) {
            shared.visit_expr_match_mut(&mut arms);
        }
        arms.arms.iter_mut().for_each(|arm| self.visit_expr_mut(&mut arm.body));
        let values = e.arms.iter().map(|arm| values(&arm.pat)).collect();
        let decides = self.before(&named, |s| s.visited(&e.expr));
        DeviceFlowKind::Match { alternatives: Alternatives { decides, arms, changed, read }, values }
    }

    fn rounds(&mut self, e: &ExprWhile) -> DeviceFlowKind {
        let mut round = ExprWhile { attrs: Vec::new(), ..e.clone() };
        round.cond = syn::parse_quote!(true);
        let Effects { changed, read } = self.effects(&Expr::While(round.clone()), true);
        let (of_each_round, carried) = self.of_each_round(e, changed);
        if let Some(mut shared) = Shared::of(&carried) {
            shared.visit_block_mut(&mut round.body);
        }
        let read_by_predicate = self.effects(&e.cond, true).read;
        // What the next round reads, and what leaves each round.
        let mut named = order::of_expr(&e.cond);
        named.extend(order::of_block(&e.body));
        named.extend(carried.iter().map(|c| c.ident.to_string()));
        self.before(&named, |s| s.visit_block_mut(&mut round.body));
        let decides = self.before(&named, |s| s.visited(&e.cond));
        let limit = limit(e);
        let rounds = Rounds { decides, limit, round, carried, of_each_round, read, read_by_predicate };
        DeviceFlowKind::While(Box::new(rounds))
    }

    /// Adds control flow to the list, and puts its marker in its place.
    fn flow(&mut self, expr: &mut Expr) {
        let others: Vec<_> = attributes::of(expr).iter().filter(|a| !device::is_device(a)).cloned().collect();
        let (keyword, kind) = match &*expr {
            Expr::If(e) => (e.if_token.span, self.branches(e)),
            Expr::While(e) => (e.while_token.span, self.rounds(e)),
            Expr::Match(e) => (e.match_token.span, self.selection(e)),
            _ => return,
        };
        let marker = DeviceFlow::marker(self.found.len());
        self.found.push(DeviceFlow { attrs: others, keyword, ret: self.ret.clone(), kind });
        *expr = marker;
    }

    /// An expression with markers.
    fn visited(&mut self, expr: &Expr) -> Expr {
        let mut expr = expr.clone();
        self.visit_expr_mut(&mut expr);
        expr
    }

    /// The variables that arms change, with what becomes of them, and those that they only read.
    fn arms(&self, whole: &Expr) -> (Vec<Changed>, ReadByArms) {
        let Effects { mut changed, read } = self.effects(whole, false);
        for c in &mut changed {
            c.end = self.end(c);
        }
        (changed, read)
    }

    fn effects(&self, expr: &Expr, reads_first: bool) -> Effects {
        let mut effects = effects(expr, reads_first);
        // Other names are constants and functions.
        let is_variable = |name: &Ident| self.known(name).is_some();
        effects.read.moved.retain(is_variable);
        effects.read.parted.retain(is_variable);
        let moved = std::mem::take(&mut effects.read.moved).into_iter();
        let is_exclusive = |name: &Ident| self.known(name).is_some_and(|known| known.is_exclusive);
        let (exclusive, moved): (Vec<Ident>, Vec<Ident>) = moved.partition(is_exclusive);
        effects.read.moved = moved;
        effects.read.parted.extend(exclusive);
        effects
    }

    /// Returns what becomes of a variable: what arms assign and move is gone after them, so it leaves them only where later code
    /// uses it. If code were missing in `later`, rustc would say so, because the variable is moved.
    fn end(&self, changed: &Changed) -> End {
        let known = self.known(&changed.ident);
        let may_stay = match changed.how {
            How::Anew => known.is_some_and(|known| known.is_unset),
            How::Whole => true,
            How::Elements | How::Fields(_) => known.is_none_or(|known| known.is_mut),
            How::Through => false,
        };
        let stays = changed.moved && may_stay && !self.is_used_later(&changed.ident);
        if stays { End::StaysInside } else { End::Leaves }
    }

    /// Splits the variables that a loop changes into those of each round alone, which are not carried, and the others. Every
    /// round assigns them before anything reads them, and nothing reads them afterwards.
    fn of_each_round(&self, e: &ExprWhile, changed: Vec<Changed>) -> (Vec<Changed>, Vec<Changed>) {
        let (anew, read) = (assigned::by_block(&e.body.stmts), uses::of_expr(&e.cond));
        changed.into_iter().partition(|c| {
            let name = c.ident.to_string();
            let is_replaced = matches!(c.how, How::Whole) && anew.contains(&name) && !read.has(&name);
            // One that is not `mut` cannot be assigned in every round.
            let is_own =
                self.known(&c.ident).is_some_and(|known| known.is_mut && (c.moved || known.is_unset));
            is_replaced && is_own && !self.is_used_later(&c.ident)
        })
    }
}

/// Returns the type if code can name it.
fn nameable(ty: &Type) -> Option<Type> {
    struct Opaque(bool);
    impl<'a> Visit<'a> for Opaque {
        fn visit_type_impl_trait(&mut self, _: &'a syn::TypeImplTrait) {
            self.0 = true;
        }
        fn visit_type_infer(&mut self, _: &'a syn::TypeInfer) {
            self.0 = true;
        }
    }
    let mut opaque = Opaque(false);
    Visit::visit_type(&mut opaque, ty);
    (!opaque.0).then(|| ty.clone())
}

/// The integers of an arm; none for `_`.
fn values(pat: &Pat) -> Vec<Pat> {
    match pat {
        Pat::Or(or) => or.cases.iter().flat_map(values).collect(),
        Pat::Paren(p) => values(&p.pat),
        Pat::Wild(_) => Vec::new(),
        value => vec![value.clone()],
    }
}

/// The rounds that a loop may run at most, if its attribute states them.
fn limit(e: &ExprWhile) -> Option<Limit> {
    let own = e.attrs.iter().find(|a| device::is_device(a))?;
    let limit = device::stated_limit(own)?;
    Some(if device::is_constant(&limit) { Limit::Constant(limit) } else { Limit::Host(limit) })
}

impl VisitMut for Flows {
    fn visit_block_mut(&mut self, block: &mut Block) {
        // What it gives a value has none in another branch.
        let unset: Vec<bool> = self.names.iter().map(|known| known.is_unset).collect();
        for at in 0..block.stmts.len() {
            let (done, rest) = block.stmts.split_at_mut(at + 1);
            self.statement(&mut done[at], || {
                let mut later = Later::default();
                rest.iter().for_each(|stmt| later.stmt(stmt));
                later
            });
        }
        self.names.truncate(unset.len());
        self.names.iter_mut().zip(unset).for_each(|(known, is_unset)| known.is_unset = is_unset);
    }

    fn visit_arm_mut(&mut self, arm: &mut syn::Arm) {
        let pat = arm.pat.clone();
        self.scoped(&[&pat], |s| visit_mut::visit_arm_mut(s, arm));
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if device::is_flow(expr) {
            self.flow(expr);
            return;
        }
        self.visit_parts(expr);
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        self.visit_let(local);
    }

    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

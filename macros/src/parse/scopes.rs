//! The scopes in code, for visitors that must know which variable a name stands for.

use syn::{
    Arm, Expr, ExprMatch, Ident, Local, Pat,
    ext::IdentExt,
    visit_mut::{self, VisitMut},
};

use super::syntax;

/// A pattern that binds names from here to the end of the scope.
pub(crate) struct Binding<'e> {
    pub(crate) pat: &'e Pat,
    pub(crate) of: Source<'e>,
    /// Whether the pattern need not match, so that a single capitalised name in it is a constant.
    is_refutable: bool,
}

/// The value that a pattern takes apart.
pub(crate) enum Source<'e> {
    Value(&'e Expr),
    /// The items of an iterator.
    Items(&'e Expr),
    /// Nothing in the code: an argument of a closure, or a variable that has no value yet.
    Unknown,
}

impl Binding<'_> {
    /// The names.
    pub(crate) fn names(&self) -> Vec<syntax::Bound> {
        if self.is_refutable { syntax::bound(self.pat) } else { syntax::bound_always(self.pat) }
    }
}

/// A visitor with scopes. It calls [`visit_expr`], [`visit_local`] and [`visit_block`] of this module in its own methods of
/// those names.
pub(crate) trait Scoped: VisitMut {
    /// The names at the beginning of a scope, or how many there are.
    type Names;
    /// Begins a scope, which has the names around it.
    fn begin(&mut self) -> Self::Names;
    /// Ends a scope.
    fn end(&mut self, around: Self::Names);
    /// Brings names into scope.
    fn bind(&mut self, binding: &Binding<'_>);
    /// Visits a value before patterns take it apart.
    fn matched(&mut self, value: &mut Expr, pats: &[&Pat]) {
        let _ = pats;
        self.visit_expr_mut(value);
    }
}

/// The names that code binds itself, those in scope. `r#x` and `x` are one name.
#[derive(Default)]
pub(crate) struct OwnNames(Vec<String>);

impl OwnNames {
    pub(crate) fn has(&self, name: &Ident) -> bool {
        let name = name.unraw();
        self.0.iter().any(|own| name == own)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Forgets all but the first `count` names.
    pub(crate) fn return_to(&mut self, count: usize) {
        self.0.truncate(count);
    }

    pub(crate) fn bind(&mut self, binding: &Binding<'_>) {
        self.0.extend(binding.names().iter().map(|b| b.ident.unraw().to_string()));
    }
}

/// Visits code with a scope of its own.
pub(crate) fn scoped<V: Scoped>(v: &mut V, f: impl FnOnce(&mut V)) {
    let around = v.begin();
    f(v);
    v.end(around);
}

/// Visits a block.
pub(crate) fn visit_block<V: Scoped>(v: &mut V, block: &mut syn::Block) {
    scoped(v, |v| visit_mut::visit_block_mut(v, block));
}

/// Visits a `let` statement.
pub(crate) fn visit_local<V: Scoped>(v: &mut V, local: &mut Local) {
    let (mut of, mut is_refutable) = (Source::Unknown, false);
    if let Some(init) = &mut local.init {
        v.matched(&mut init.expr, &[&local.pat]);
        if let Some((_, diverge)) = &mut init.diverge {
            is_refutable = true;
            v.visit_expr_mut(diverge);
        }
        of = Source::Value(&init.expr);
    }
    v.bind(&Binding { pat: &local.pat, of, is_refutable });
}

/// Visits an expression.
pub(crate) fn visit_expr<V: Scoped>(v: &mut V, expr: &mut Expr) {
    match expr {
        Expr::Let(e) => {
            v.matched(&mut e.expr, &[&e.pat]);
            v.bind(&Binding { pat: &e.pat, of: Source::Value(&e.expr), is_refutable: true });
        }
        Expr::If(e) => {
            scoped(v, |v| {
                v.visit_expr_mut(&mut e.cond);
                v.visit_block_mut(&mut e.then_branch);
            });
            e.else_branch.iter_mut().for_each(|(_, other)| v.visit_expr_mut(other));
        }
        Expr::While(e) => scoped(v, |v| {
            v.visit_expr_mut(&mut e.cond);
            v.visit_block_mut(&mut e.body);
        }),
        Expr::ForLoop(e) => {
            v.visit_expr_mut(&mut e.expr);
            scoped(v, |v| {
                v.bind(&Binding { pat: &e.pat, of: Source::Items(&e.expr), is_refutable: false });
                v.visit_block_mut(&mut e.body);
            });
        }
        Expr::Closure(e) => scoped(v, |v| {
            for pat in &e.inputs {
                v.bind(&Binding { pat, of: Source::Unknown, is_refutable: false });
            }
            v.visit_expr_mut(&mut e.body);
        }),
        Expr::Match(ExprMatch { expr: value, arms, .. }) => {
            let pats: Vec<&Pat> = arms.iter().map(|arm| &arm.pat).collect();
            v.matched(value, &pats);
            for arm in arms {
                scoped(v, |v| visit_arm(v, arm, value));
            }
        }
        other => visit_mut::visit_expr_mut(v, other),
    }
}

fn visit_arm<V: Scoped>(v: &mut V, arm: &mut Arm, value: &Expr) {
    v.bind(&Binding { pat: &arm.pat, of: Source::Value(value), is_refutable: true });
    if let Some((_, guard)) = &mut arm.guard {
        v.visit_expr_mut(guard);
    }
    v.visit_expr_mut(&mut arm.body);
}

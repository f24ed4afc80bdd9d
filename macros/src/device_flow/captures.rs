//! Captures of closures that arms of `#[device]` control flow make anew (`closures.rs`): a variable whose name means
//! something else by then is kept under a name of its own.

use proc_macro2::{Ident, Span};
use syn::{Block, Expr, Item, Local, Pat, Stmt, visit_mut::VisitMut};

use super::{closures, names::Names};
use crate::{
    facts::{macros, uses},
    parse::{
        device,
        rename::Rename,
        scopes::{self, Binding, Scoped},
        syntax,
    },
};

/// Gives such variables other names for the closures: `let c = &y;`, and `*c` in the closure. A closure that another one calls
/// is written twice, since one of its types would be fixed. `params` are the variables around the block; `keep` are closures
/// that no arm is given.
pub(super) fn apart(block: &mut Block, params: impl Iterator<Item = String>, keep: &dyn Fn(&Expr) -> bool) {
    let known = params.map(Known::value).collect();
    Apart { known, keep, fresh: 0 }.visit_block_mut(block);
}

struct Apart<'k> {
    /// Names in scope, the last ones last.
    known: Vec<Known>,
    keep: &'k dyn Fn(&Expr) -> bool,
    fresh: usize,
}

struct Known {
    /// Empty for traits, and `None` for an import of any name.
    name: Option<String>,
    means: Means,
    /// Set if a closure was written once more under another name.
    is_copied: bool,
}

enum Means {
    /// A variable.
    Value,
    /// A variable that a `let` makes a closure, if arms may make that one.
    Closure(Expr),
    /// An item.
    Item,
    /// What a macro of the user's may have bound.
    MayBeBound,
    /// Traits that a block may bring into scope; it has no name.
    Traits,
}

impl Known {
    fn value(name: String) -> Self {
        Self::of(Some(name), Means::Value)
    }

    fn of(name: Option<String>, means: Means) -> Self {
        Self { name, means, is_copied: false }
    }

    fn hides(&self, name: &str) -> bool {
        self.name.as_deref().is_none_or(|own| own == name)
    }

    /// Returns whether a closure with these names means something else after it.
    fn changes(&self, names: &Names) -> bool {
        match (&self.means, self.name.as_deref()) {
            (Means::Traits, _) => names.depend_on_traits(),
            (_, None) => true,
            (Means::Value | Means::Closure(_) | Means::MayBeBound, Some(own)) => {
                names.depend_on_variable(own)
            }
            (Means::Item, Some(own)) => names.depend_on_item(own),
        }
    }
}

impl Apart<'_> {
    /// The `let`s of the names for what a closure captures and later code means something else by.
    fn captured(&mut self, local: &mut Local, own: &str, rest: &[Stmt]) -> Vec<Stmt> {
        let Some(init) = local.init.as_mut().filter(|init| !(self.keep)(&init.expr)) else {
            return Vec::new();
        };
        let mut taken = syntax::bound_anywhere(rest);
        // A closure may be named like a variable that it captures.
        taken.insert(own.to_owned());
        let mut made = Vec::new();
        for (name, used) in &uses::of_expr(&init.expr).0 {
            let changes = used.assigned || used.touched || used.through || used.in_macro;
            if changes || !taken.contains(name) {
                continue;
            }
            let Some(at) = self.known.iter().rposition(|known| known.hides(name)) else { continue };
            let Some(stands) = self.stands_for(at) else { continue };
            let (own, variable) = (self.name(&used.ident), &used.ident);
            let (kept, stands): (Stmt, Expr) = match stands {
                Some(closure) => (syn::parse_quote!(let #own = #closure;), syn::parse_quote!(#own)),
                None => (syn::parse_quote!(let #own = &#variable;), syn::parse_quote!((*#own))),
            };
            let mut renamed = init.expr.clone();
            Rename::new(name, &stands).visit_expr_mut(&mut renamed);
            // Inside a macro call it keeps its name.
            if !uses::of_expr(&renamed).has(name) {
                made.push(kept);
                *init.expr = *renamed;
                self.known[at].is_copied = true;
            }
        }
        made
    }

    /// The closure that a known name is, or nothing for another variable. `None` if it cannot be written here under another
    /// name: it is not a variable, or names in the closure mean something else by now.
    fn stands_for(&self, at: usize) -> Option<Option<Expr>> {
        match &self.known[at].means {
            Means::Item | Means::MayBeBound | Means::Traits => None,
            Means::Value => Some(None),
            Means::Closure(closure) => {
                let names = Names::of(closure);
                let is_same = !self.known[at..].iter().any(|known| known.changes(&names));
                is_same.then(|| Some(closure.clone()))
            }
        }
    }

    fn name(&mut self, like: &Ident) -> Ident {
        let name = format!("__captured{}", self.fresh);
        self.fresh += 1;
        Ident::new(&name, Span::mixed_site().located_at(like.span()))
    }

    fn items(&mut self, names: impl IntoIterator<Item = Option<String>>) {
        self.known.extend(names.into_iter().map(|name| Known::of(name, Means::Item)));
    }

    /// Visits a statement, and returns what stands before it; `rest` follows it, the last statement first.
    fn statement(&mut self, stmt: &mut Stmt, rest: &[Stmt]) -> Vec<Stmt> {
        let mut before = Vec::new();
        match stmt {
            Stmt::Local(local) if named(local).is_some() => {
                let name = named(local).map(Ident::to_string).unwrap_or_default();
                local.init.iter_mut().for_each(|init| self.visit_expr_mut(&mut init.expr));
                // Only an arm that calls it makes it anew; elsewhere it captures what it names.
                let is_in_arm = |stmt: &Stmt| device::is_anywhere_in(stmt) && uses::of_stmt(stmt).has(&name);
                if rest.iter().any(is_in_arm) && is_named(rest.iter().rev(), &name) {
                    before = self.captured(local, &name, rest);
                }
                let closure =
                    local.init.as_ref().map(|init| &*init.expr).filter(|closure| !(self.keep)(closure));
                let means = closure.map_or(Means::Value, |closure| Means::Closure(closure.clone()));
                self.known.push(Known::of(Some(name), means));
            }
            // From here on, a macro of this name is this one.
            Stmt::Item(Item::Macro(m)) => self.items(m.ident.iter().map(|ident| Some(ident.to_string()))),
            Stmt::Macro(m) => {
                let names = macros::names_in(&m.mac).into_iter();
                self.known.extend(names.map(|name| Known::of(Some(name), Means::MayBeBound)));
            }
            other => self.visit_stmt_mut(other),
        }
        before
    }
}

impl Scoped for Apart<'_> {
    type Names = usize;
    fn begin(&mut self) -> usize {
        self.known.len()
    }
    fn end(&mut self, around: usize) {
        self.known.truncate(around);
    }
    fn bind(&mut self, binding: &Binding<'_>) {
        let bound = syntax::bound_always(binding.pat);
        self.known.extend(bound.iter().map(|b| Known::value(b.ident.to_string())));
    }
}

impl VisitMut for Apart<'_> {
    fn visit_block_mut(&mut self, block: &mut Block) {
        scopes::scoped(self, |s| {
            match syntax::items_among(&block.stmts) {
                None => s.items([None]),
                Some(items) => s.items(items.into_iter().map(Some)),
            }
            if syntax::has_traits(&block.stmts) {
                s.known.push(Known::of(Some(String::new()), Means::Traits));
            }
            // The next statement is the last one.
            let mut rest = std::mem::take(&mut block.stmts);
            rest.reverse();
            // The closures of this block, with their places among the known names.
            let mut closures = Vec::new();
            while let Some(mut stmt) = rest.pop() {
                let before = s.statement(&mut stmt, &rest);
                block.stmts.extend(before);
                if matches!(&stmt, Stmt::Local(local) if named(local).is_some()) {
                    closures.push((block.stmts.len(), s.known.len() - 1));
                }
                block.stmts.push(stmt);
            }
            closures.retain(|(_, known)| s.known[*known].is_copied);
            for (at, known) in closures.into_iter().rev() {
                let name = s.known[known].name.as_deref().unwrap_or_default();
                // Nothing else would determine the types of its parameters, and rustc would call it unused.
                if !is_named(&block.stmts[at + 1..], name) {
                    block.stmts.remove(at);
                }
            }
        });
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        scopes::visit_expr(self, expr);
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        scopes::visit_local(self, local);
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}
}

/// Returns whether statements name a variable from before them, if only in a macro that they define.
fn is_named<'s>(stmts: impl IntoIterator<Item = &'s Stmt>, name: &str) -> bool {
    let stmts = stmts.into_iter().cloned().collect();
    let block = Block { brace_token: syn::token::Brace::default(), stmts };
    closures::is_in_macro(&block, name)
        || uses::of_expr(&Expr::Block(syn::ExprBlock { attrs: Vec::new(), label: None, block })).has(name)
}

/// Returns the name of a `let` that makes a closure, unless that takes what it captures.
pub(super) fn named(local: &Local) -> Option<&Ident> {
    let init = local.init.as_ref().filter(|i| i.diverge.is_none() && local.attrs.is_empty())?;
    let (Expr::Closure(closure), Pat::Ident(name)) = (&*init.expr, &local.pat) else { return None };
    let plain = name.by_ref.is_none() && name.mutability.is_none() && name.subpat.is_none();
    (plain && closure.capture.is_none() && closure.asyncness.is_none()).then_some(&name.ident)
}

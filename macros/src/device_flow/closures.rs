//! Closures that arms of `#[device]` control flow call: each arm that does makes its own.
//!
//! The runtime calls arms as closures (`expand/device_flow.rs`), for which the lifetimes in the types of outer variables are
//! fixed. If the parameters of an outer closure have no written type, `g` of `let g = |v| ops::neg(v);` would refuse a
//! reference to a variable of the arm. And what a closure captures that the arm assigns has the value of the arm in it.

use syn::{
    Block, Expr, ExprBlock, Item, ItemMacro, Local, Stmt,
    visit::Visit,
    visit_mut::{self, VisitMut},
};

use super::{captures, names::Names};
use crate::{
    facts::{effects, macros, uses},
    model::Header,
    parse::{
        device,
        scopes::{self, Binding, Scoped},
        syntax,
    },
};

/// Returns a body whose arms of `#[device]` control flow make the closures that they call; `None` if there is no such flow.
/// What is wrong in a closure is reported once, so those with effects stay where they are.
pub(crate) fn made_in_arms(block: &Block, header: &Header<'_>) -> Option<Block> {
    device::has_flow(block).then(|| {
        let mut block = block.clone();
        let params = header.params.iter().map(ToString::to_string);
        given_to_arms(&mut block, params, |closure| effects::has_effects(closure, &header.params));
        block
    })
}

/// Moves or copies such closures of a body with `#[device]` control flow into arms. `keep` are those that stay where they are.
/// `params` are the variables around the body.
pub(crate) fn given_to_arms(
    block: &mut Block,
    params: impl Iterator<Item = String>,
    keep: impl Fn(&Expr) -> bool,
) {
    captures::apart(block, params, &keep);
    Blocks(&keep).visit_block_mut(block);
}

struct Blocks<'k>(&'k dyn Fn(&Expr) -> bool);

impl VisitMut for Blocks<'_> {
    fn visit_block_mut(&mut self, block: &mut Block) {
        // From behind: an arm that is given a closure uses those that it calls.
        for at in (0..block.stmts.len()).rev() {
            let mut rest = Block { brace_token: block.brace_token, stmts: block.stmts.split_off(at + 1) };
            let closure = match &block.stmts[at] {
                Stmt::Local(local) => given(local, &rest.stmts).filter(|given| !(self.0)(given.value)),
                _ => None,
            };
            let unused = closure.is_some_and(|mut given| {
                let direct = given.is_used_by(&rest) || is_in_macro(&rest, &given.name);
                given.statements(&mut rest.stmts);
                given.found && !given.left && !direct
            });
            if unused {
                // Nothing else would determine the types of its parameters.
                block.stmts.pop();
            }
            block.stmts.append(&mut rest.stmts);
        }
        visit_mut::visit_block_mut(self, block);
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}
}

/// Returns the closure of a `let`, to be given to arms in `rest`, the statements after it.
fn given<'l>(local: &'l Local, rest: &[Stmt]) -> Option<Given<'l>> {
    let name = captures::named(local)?;
    let init = local.init.as_ref()?;
    if !rest.iter().any(device::is_anywhere_in) {
        return None;
    }
    let (name, names) = (name.to_string(), Names::of(&init.expr));
    // In an arm, it would call itself instead of what has its name before.
    if names.depend_on_variable(&name) {
        return None;
    }
    Some(Given {
        local,
        value: &init.expr,
        name,
        names,
        meaning: Meaning::default(),
        found: false,
        left: false,
    })
}

/// The meanings of names at some place, besides those where a closure is made.
#[derive(Clone, Copy, Default)]
struct Meaning {
    /// The closure's name means something else.
    hides_closure: bool,
    /// A name that the closure uses may mean something else.
    hides_used: bool,
}

/// Gives a closure to the arms that use it, where its names mean the same.
struct Given<'l> {
    local: &'l Local,
    value: &'l Expr,
    name: String,
    names: Names,
    meaning: Meaning,
    /// Set if an arm makes it.
    found: bool,
    /// Set if an arm uses the one outside.
    left: bool,
}

impl Given<'_> {
    /// Returns whether code names the closure outside the arms in it.
    fn is_used_by(&self, code: &Block) -> bool {
        let mut outside = code.clone();
        Cleared.visit_block_mut(&mut outside);
        self.is_named_by(outside)
    }

    fn is_named_by(&self, block: Block) -> bool {
        let block = ExprBlock { attrs: Vec::new(), label: None, block };
        uses::of_expr(&Expr::Block(block)).has(&self.name)
    }

    fn arm(&mut self, arm: &mut Block) {
        let around = self.meaning;
        self.items(&arm.stmts);
        let Meaning { hides_closure, hides_used } = self.meaning;
        if !hides_closure && hides_used {
            self.left |= self.is_named_by(arm.clone());
        } else if !hides_closure {
            let direct = self.is_used_by(arm);
            self.visit_block_mut(arm);
            if direct {
                self.found = true;
                arm.stmts.insert(0, Stmt::Local(self.local.clone()));
            }
        }
        self.meaning = around;
    }

    /// Visits statements of a block; its items mean the same in all of it.
    fn statements(&mut self, stmts: &mut [Stmt]) {
        for stmt in stmts {
            self.visit_stmt_mut(stmt);
            match stmt {
                Stmt::Macro(m) => {
                    // One of the user's may bind what it is given.
                    let bound = macros::names_in(&m.mac);
                    let hides = |name: &String| *name == self.name || self.names.depend_on_variable(name);
                    self.meaning.hides_used |= bound.iter().any(hides);
                }
                // From here on, a macro of this name is this one.
                Stmt::Item(Item::Macro(m)) => {
                    let ident = m.ident.as_ref().map(ToString::to_string);
                    self.meaning.hides_used |= ident.is_some_and(|name| self.names.depend_on_macro(&name));
                }
                _ => {}
            }
        }
    }

    fn items(&mut self, stmts: &[Stmt]) {
        self.meaning.hides_used |= self.names.depend_on_items(stmts);
        self.meaning.hides_closure |=
            syntax::items_among(stmts).is_some_and(|items| items.contains(&self.name));
    }
}

/// Returns whether a macro that the code defines names a closure: it means the one outside, wherever it is called.
pub(super) fn is_in_macro(code: &Block, closure: &str) -> bool {
    struct Macros<'n>(&'n str, bool);
    impl<'a> Visit<'a> for Macros<'_> {
        fn visit_item_macro(&mut self, item: &'a ItemMacro) {
            self.1 |= syntax::identifiers(item.mac.tokens.clone()).contains(self.0);
        }
    }
    let mut macros = Macros(closure, false);
    macros.visit_block(code);
    macros.1
}

impl Scoped for Given<'_> {
    type Names = Meaning;
    fn begin(&mut self) -> Meaning {
        self.meaning
    }
    fn end(&mut self, around: Meaning) {
        self.meaning = around;
    }
    fn bind(&mut self, binding: &Binding<'_>) {
        // A capitalised name may be a variable, too: then the closure stays outside.
        for name in syntax::bound_always(binding.pat).iter().map(|b| b.ident.to_string()) {
            self.meaning.hides_closure |= name == self.name;
            self.meaning.hides_used |= self.names.depend_on_variable(&name);
        }
    }
}

impl VisitMut for Given<'_> {
    fn visit_block_mut(&mut self, block: &mut Block) {
        scopes::scoped(self, |s| {
            s.items(&block.stmts);
            s.statements(&mut block.stmts);
        });
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if device::is_flow(expr) {
            decided(expr).into_iter().for_each(|by| self.visit_expr_mut(by));
            return each_arm(expr, &mut |arm| self.arm(arm));
        }
        scopes::visit_expr(self, expr);
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        scopes::visit_local(self, local);
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}
}

/// Removes the code of arms.
struct Cleared;

impl VisitMut for Cleared {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if !device::is_flow(expr) {
            return visit_mut::visit_expr_mut(self, expr);
        }
        decided(expr).into_iter().for_each(|by| self.visit_expr_mut(by));
        each_arm(expr, &mut |arm| arm.stmts.clear());
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}
}

/// The condition or value by which control flow of the device decides.
fn decided(flow: &mut Expr) -> Option<&mut Expr> {
    match flow {
        Expr::If(e) => Some(&mut e.cond),
        Expr::While(e) => Some(&mut e.cond),
        Expr::Match(e) => Some(&mut e.expr),
        _ => None,
    }
}

/// Visits the bodies of control flow of the device; not those of more such control flow in it.
fn each_arm(flow: &mut Expr, visit: &mut dyn FnMut(&mut Block)) {
    match flow {
        Expr::If(e) => {
            visit(&mut e.then_branch);
            match e.else_branch.as_mut().map(|(_, other)| &mut **other) {
                Some(Expr::Block(other)) => visit(&mut other.block),
                // `else if`, which is in an arm of its own.
                Some(other) => as_block(other, visit),
                None => {}
            }
        }
        Expr::While(e) => visit(&mut e.body),
        Expr::Match(e) => e.arms.iter_mut().for_each(|arm| as_block(&mut arm.body, visit)),
        _ => {}
    }
}

/// Visits an arm that need not be a block.
fn as_block(body: &mut Expr, visit: &mut dyn FnMut(&mut Block)) {
    if let Expr::Block(e) = body
        && e.attrs.is_empty()
        && e.label.is_none()
    {
        return visit(&mut e.block);
    }
    let value = std::mem::replace(body, Expr::PLACEHOLDER);
    let mut block: Block = syn::parse_quote!({});
    block.stmts.push(Stmt::Expr(value, None));
    visit(&mut block);
    *body = match block.stmts.pop() {
        Some(Stmt::Expr(value, None)) if block.stmts.is_empty() => value,
        last => {
            block.stmts.extend(last);
            Expr::Block(ExprBlock { attrs: Vec::new(), label: None, block })
        }
    };
}

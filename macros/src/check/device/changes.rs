//! Host values that an arm changes: the host describes every arm once, whatever the device chooses.
//!
//! A lint: what it overlooks, rustc refuses, because the code of arms cannot change the variables around it, and only
//! values of the device are carried.

use quote::ToTokens;
use syn::{
    Attribute, Block, Expr, Ident,
    visit::{self, Visit},
};

use crate::{
    diag::{Code, Errors},
    parse::{
        device,
        syntax::{self, Bound},
    },
};

/// Methods with which the standard library's collections and strings change.
const METHODS: [&str; 18] = [
    "push",
    "push_str",
    "push_back",
    "push_front",
    "pop",
    "pop_back",
    "pop_front",
    "insert",
    "remove",
    "extend",
    "append",
    "clear",
    "truncate",
    "drain",
    "retain",
    "sort",
    "reverse",
    "swap",
];

/// Returns the names that stand for one variable in all of a function, which is `mut`.
pub(super) fn changeable(block: &Block) -> Vec<String> {
    struct Names(Vec<Bound>);
    impl<'a> Visit<'a> for Names {
        fn visit_pat(&mut self, pat: &'a syn::Pat) {
            self.0.extend(syntax::bound(pat));
        }
        fn visit_item(&mut self, _: &'a syn::Item) {}
    }
    let mut names = Names(Vec::new());
    names.visit_block(block);
    let once = |b: &&Bound| names.0.iter().filter(|other| other.ident == b.ident).count() == 1;
    names.0.iter().filter(once).filter(|b| b.mutable).map(|b| b.ident.to_string()).collect()
}

/// Checks a block of an `if` or a `while`.
pub(super) fn of_block(block: &Block, changeable: &[String], errors: &mut Errors) {
    let mut own = Bindings(Vec::new());
    own.visit_block(block);
    Changes { own: own.0, changeable, errors }.visit_block(block);
}

/// Checks an arm of a `match`.
pub(super) fn of_arm(expr: &Expr, changeable: &[String], errors: &mut Errors) {
    if device::is_flow(expr) {
        return;
    }
    let mut own = Bindings(Vec::new());
    own.visit_expr(expr);
    Changes { own: own.0, changeable, errors }.visit_expr(expr);
}

/// Every name that the code binds.
struct Bindings(Vec<String>);

impl<'a> Visit<'a> for Bindings {
    fn visit_pat_ident(&mut self, p: &'a syn::PatIdent) {
        self.0.push(p.ident.to_string());
        visit::visit_pat_ident(self, p);
    }
}

struct Changes<'e> {
    /// Names that the code binds itself.
    own: Vec<String>,
    changeable: &'e [String],
    errors: &'e mut Errors,
}

impl Changes<'_> {
    fn outside(&self, place: &Expr) -> Option<Ident> {
        let base = syntax::place_base(place)?;
        (!self.own.iter().any(|own| base == own)).then(|| base.clone())
    }

    fn refuse(&mut self, at: impl ToTokens, name: &Ident, help: impl std::fmt::Display) {
        self.errors.push(
            Code::DeviceHostChange,
            at,
            format!(
                "`{name}` is a value of the host, which would change when the arms are described, whatever the device will choose"
            ),
            help,
        );
    }
}

impl<'a> Visit<'a> for Changes<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        // Reported for the inner arm alone.
        if device::is_flow(expr) {
            return;
        }
        match expr {
            Expr::Binary(b) if syntax::is_assign(&b.op) => {
                if let Some(name) = self.outside(&b.left) {
                    self.refuse(
                        expr,
                        &name,
                        format!(
                            "keep it on the device: `let mut {name} = ops::full(x.scope(), (), 0i32)?;` before, and \
                             `{name} = ops::add(&{name}, 1)?;` here"
                        ),
                    );
                }
            }
            Expr::Reference(r) if r.mutability.is_some() => {
                if let Some(name) = self.outside(&r.expr) {
                    self.refuse(
                        expr,
                        &name,
                        format!("give the arms a value, `let y = #[device] if … {{ … }} else {{ … }};`, and change `{name}` after it"),
                    );
                }
            }
            Expr::MethodCall(m) if METHODS.iter().any(|name| m.method == name) => {
                if let Some(name) = self.outside(&m.receiver)
                    && self.changeable.iter().any(|known| name == known)
                {
                    let method = &m.method;
                    self.refuse(
                        expr,
                        &name,
                        format!(
                            "give the arms a value, `let y = #[device] if … {{ … }} else {{ … }};`, and call `{name}.{method}(…)` after it"
                        ),
                    );
                }
            }
            _ => {}
        }
        visit::visit_expr(self, expr);
    }

    fn visit_attribute(&mut self, _: &'a Attribute) {}
    fn visit_item(&mut self, _: &'a syn::Item) {}
}

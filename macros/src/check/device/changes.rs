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
    diag::{Code, Errors, shortened},
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

/// The variable that a place belongs to, and whether a call leads from it to the place.
fn owner(place: &Expr) -> Option<(&Ident, bool)> {
    match place {
        Expr::Field(f) => owner(&f.base),
        Expr::Index(i) => owner(&i.expr),
        Expr::Paren(p) => owner(&p.expr),
        Expr::Try(t) => owner(&t.expr),
        Expr::Unary(u) if matches!(u.op, syn::UnOp::Deref(_)) => owner(&u.expr),
        Expr::MethodCall(m) => owner(&m.receiver).map(|(base, _)| (base, true)),
        other => Some((syntax::plain_name(other)?, false)),
    }
}

/// The name of the field that a place is.
fn last_field(place: &Expr) -> Option<String> {
    match place {
        Expr::Field(syn::ExprField { member: syn::Member::Named(name), .. }) => Some(name.to_string()),
        Expr::Field(f) => last_field(&f.base),
        Expr::Index(i) => last_field(&i.expr),
        Expr::Paren(p) => last_field(&p.expr),
        Expr::Unary(u) => last_field(&u.expr),
        _ => None,
    }
}

struct Changes<'e> {
    /// Names that the code binds itself.
    own: Vec<String>,
    changeable: &'e [String],
    errors: &'e mut Errors,
}

impl Changes<'_> {
    /// Reports places on the left side of an assignment that are no variables of the function.
    fn assigned(&mut self, place: &Expr) {
        match place {
            Expr::Tuple(t) => t.elems.iter().for_each(|e| self.assigned(e)),
            Expr::Array(a) => a.elems.iter().for_each(|e| self.assigned(e)),
            Expr::Struct(s) => s.fields.iter().for_each(|f| self.assigned(&f.expr)),
            Expr::Call(c) => c.args.iter().for_each(|e| self.assigned(e)),
            other => _ = self.is_no_variable(other),
        }
    }

    /// Reports a place of `self`, or one that a method of a variable outside reaches. Returns whether it was one.
    fn is_no_variable(&mut self, place: &Expr) -> bool {
        // Tokens of an expression are written apart.
        let shown = shortened(place).replace("* ", "*");
        match owner(place) {
            Some((base, _)) if base == "self" => {
                let field = last_field(place).unwrap_or_else(|| "value".into());
                self.errors.push(
                    Code::DeviceHostChange,
                    place,
                    format!("`{shown}` belongs to `self`, and arms change variables of the function only"),
                    format!(
                        "a `State` is written by `ops::store(&{shown}, &y)?`; keep other values of the device in variables, \
                         `let mut {field} = …;` before and `{field} = …` here"
                    ),
                );
                true
            }
            Some((base, true)) if !self.own.iter().any(|own| base == own) => {
                self.errors.push(
                    Code::DeviceHostChange,
                    place,
                    format!(
                        "`{shown}` is reached by a call, which happens when the arms are described, whatever the device will choose"
                    ),
                    format!(
                        "give the arms a value, `let y = #[device] if … {{ … }} else {{ … }};`, and write `{shown} = y` after it"
                    ),
                );
                true
            }
            _ => false,
        }
    }

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
            Expr::Assign(a) => self.assigned(&a.left),
            Expr::Binary(b) if syntax::is_assign(&b.op) => {
                if !self.is_no_variable(&b.left)
                    && let Some(name) = self.outside(&b.left)
                {
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

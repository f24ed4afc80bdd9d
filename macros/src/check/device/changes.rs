//! Changes of the variables around an arm that do not leave it: the host describes every arm once, whatever the device
//! chooses, and what leaves an arm is what it assigns.
//!
//! A lint: what it overlooks, rustc refuses. The code of arms cannot change the variables around it: it works on copies of
//! those that it assigns, all of which are carried, or the fields that it assigns; the others are behind shared references
//! (`device_flow/shared.rs`). Values in a `Cell` or behind an `Rc` are changed through a shared reference, and nothing
//! sees that: they change when the arm is described, or a copy of them does.

use quote::ToTokens;
use syn::{
    Attribute, BinOp, Block, Expr, Ident,
    visit::{self, Visit},
};

use super::variables::{Kind, Variables};
use crate::{
    diag::{Code, Errors, on_one_line, shortened},
    parse::{device, syntax},
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

/// Reports an assignment to a part of a slice: an arm can have no copy of it.
pub(super) fn of_slice(name: &Ident, place: &Expr, errors: &mut Errors) {
    let shown = shortened(place).replace(" [", "[");
    errors.push(
        Code::DeviceHostChange,
        place,
        format!("`{name}` is a slice of somebody else's, of which an arm can have no copy to change"),
        format!(
            "give the arms a value, `let y = #[device] if … {{ … }} else {{ … }};`, and write `{shown} = y` after it; a `&mut Vec<…>` can \
             be changed here"
        ),
    );
}

/// Checks a block of an `if` or a `while`.
pub(super) fn of_block(block: &Block, variables: &Variables, errors: &mut Errors) {
    let mut own = Bindings(Vec::new());
    own.visit_block(block);
    Changes { own: own.0, variables, errors }.visit_block(block);
}

/// Checks an arm of a `match`.
pub(super) fn of_arm(expr: &Expr, variables: &Variables, errors: &mut Errors) {
    if device::is_flow(expr) {
        return;
    }
    let mut own = Bindings(Vec::new());
    own.visit_expr(expr);
    Changes { own: own.0, variables, errors }.visit_expr(expr);
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

/// A copy of the value of a place, as people write it.
fn copy_of(place: &Expr) -> String {
    let text = on_one_line(place).replace("* ", "*");
    match place {
        Expr::Unary(_) => format!("({text}).clone()"),
        _ => format!("{text}.clone()"),
    }
}

struct Changes<'e> {
    /// Names that the code binds itself.
    own: Vec<String>,
    variables: &'e Variables,
    errors: &'e mut Errors,
}

impl Changes<'_> {
    /// Reports places on the left side of an assignment that are not variables of the function.
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
                let help = if self.variables.changes_self {
                    let copy = copy_of(place);
                    format!(
                        "change a variable: `let mut {field} = {copy};` before, `{field} = …` here, and `{shown} = {field};` after the \
                         `#[device]` code"
                    )
                } else {
                    format!(
                        "a `State` is written by `ops::store(&{shown}, &y)?`; keep other values of the device in variables, \
                         `let mut {field} = …;` before and `{field} = …` here"
                    )
                };
                self.errors.push(
                    Code::DeviceHostChange,
                    place,
                    format!("`{shown}` belongs to `self`, and arms change variables of the function only"),
                    help,
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

    /// Reports a change of a variable outside by something else than an assignment.
    fn refuse(&mut self, at: impl ToTokens, name: &Ident, help: impl std::fmt::Display) {
        let is_host = matches!(self.variables.kind(name), Kind::Number(_) | Kind::Count | Kind::Collection);
        let message = if is_host {
            format!(
                "`{name}` is a value of the host, which would change when the arms are described, whatever the device will choose"
            )
        } else {
            format!(
                "this would change `{name}` when the arms are described, whatever the device will choose: what leaves them is what \
                 they assign"
            )
        };
        self.errors.push(Code::DeviceHostChange, at, message, help);
    }

    /// `k += 1`.
    fn updated(&mut self, b: &syn::ExprBinary) {
        let Some(name) = self.outside(&b.left) else { return };
        let place = on_one_line(&b.left);
        let new = self.computed(&place, &b.op, &b.right);
        let is_tensor =
            |e: &Expr| syntax::plain_name(e).is_some_and(|name| *self.variables.kind(name) == Kind::Tensor);
        match self.variables.kind(&name).clone() {
            // The lints on operators report it.
            _ if is_tensor(&b.left) || is_tensor(&b.right) => {}
            kind @ (Kind::Number(_) | Kind::Count) => {
                let begins = match kind {
                    Kind::Number(Some(begins)) => begins,
                    _ => "0i32".to_owned(),
                };
                self.refuse(
                    b,
                    &name,
                    format!(
                        "keep it on the device: `let mut {name} = ops::full(x.scope(), (), {begins})?;` before, and `{place} = {new};` here"
                    ),
                );
            }
            _ => self.refuse(
                b,
                &name,
                format!(
                    "write `{place} = {new};`; a number of the host is made one of the device before, by `ops::full(x.scope(), (), {place})?`"
                ),
            ),
        }
    }

    /// The value of the device that `place op= right` would be.
    fn computed(&self, place: &str, op: &BinOp, right: &Expr) -> String {
        let function = match op {
            BinOp::AddAssign(_) => "add",
            BinOp::SubAssign(_) => "sub",
            BinOp::MulAssign(_) => "mul",
            BinOp::DivAssign(_) => "div",
            BinOp::BitAndAssign(_) => "logical_and",
            BinOp::BitOrAssign(_) => "logical_or",
            BinOp::BitXorAssign(_) => "logical_xor",
            _ => return format!("ops::…(&{place}, …)?"),
        };
        let text = on_one_line(right);
        let is_owned = match syntax::plain_name(right) {
            Some(name) => *self.variables.kind(name) == Kind::Tensor && !self.variables.is_param(&text),
            None => matches!(right, Expr::Try(_)),
        };
        format!("ops::{function}(&{place}, {}{text})?", if is_owned { "&" } else { "" })
    }

    /// `f(&mut y)`: `at`, of a place in the variable `name`.
    fn lent(&mut self, at: &Expr, place: &Expr, name: &Ident, callee: Option<&str>) {
        // Tokens of an expression are written apart.
        let place = on_one_line(place).replace("* ", "*");
        let after = format!(
            "give the arms a value, `let y = #[device] if … {{ … }} else {{ … }};`, and change `{place}` after it"
        );
        let help = match (self.variables.kind(name), callee) {
            (Kind::Number(_) | Kind::Count | Kind::Collection, _) => after,
            (_, Some(callee)) => {
                format!(
                    "assign it here, `{place} = {callee}(&{place})?;`, with a function that returns the new value; or {after}"
                )
            }
            (_, None) => format!("assign it here, `{place} = …;`; or {after}"),
        };
        self.refuse(at, name, help);
    }

    /// An argument of a function, or a reference elsewhere.
    fn argument(&mut self, argument: &Expr, callee: Option<&str>) {
        match argument {
            Expr::Reference(r) => {
                if r.mutability.is_some()
                    && let Some(name) = self.outside(&r.expr)
                {
                    self.lent(argument, &r.expr, &name, callee);
                }
                self.visit_expr(&r.expr);
            }
            other => self.visit_expr(other),
        }
    }

    /// The variable outside and the place of `&mut place`.
    fn changeable<'a>(&self, argument: &'a Expr) -> Option<(Ident, &'a Expr)> {
        match argument {
            Expr::Reference(r) if r.mutability.is_some() => Some((self.outside(&r.expr)?, &*r.expr)),
            _ => None,
        }
    }

    /// `mem::replace(&mut a, v)` and `mem::take(&mut a)`. Returns whether it was one of them.
    fn replaced(&mut self, call: &syn::ExprCall) -> bool {
        let Expr::Path(function) = &*call.func else { return false };
        let mut path = function.path.segments.iter().rev();
        let (Some(function), Some(module)) = (path.next(), path.next()) else { return false };
        let mut arguments = call.args.iter();
        let Some((name, place)) =
            arguments.next().filter(|_| module.ident == "mem").and_then(|e| self.changeable(e))
        else {
            return false;
        };
        let new = match arguments.next() {
            Some(new) if function.ident == "replace" => on_one_line(new),
            None if function.ident == "take" => "Default::default()".to_owned(),
            _ => return false,
        };
        if matches!(self.variables.kind(&name), Kind::Number(_) | Kind::Count | Kind::Collection) {
            return false;
        }
        let (old, place) = (copy_of(place), on_one_line(place).replace("* ", "*"));
        let help = format!("write `{{ let before = {old}; {place} = {new}; before }}`");
        self.refuse(call, &name, help);
        call.args.iter().skip(1).for_each(|argument| self.argument(argument, None));
        true
    }

    /// `mem::swap(&mut a, &mut b)`. Returns whether it was one.
    fn swapped(&mut self, call: &syn::ExprCall) -> bool {
        let arguments: Vec<_> = call.args.iter().filter_map(|e| self.changeable(e)).collect();
        let is_swap =
            matches!(&*call.func, Expr::Path(p) if p.path.segments.last().is_some_and(|s| s.ident == "swap"));
        match &arguments[..] {
            [(name, a), (_, b)] if is_swap && call.args.len() == 2 => {
                // Nothing is moved out of a `&mut`, a box or a collection.
                let value = |place: &Expr| match syntax::plain_name(place) {
                    Some(name) => name.to_string(),
                    None => copy_of(place),
                };
                let (new_a, new_b) = (value(b), value(a));
                let place = |place: &Expr| on_one_line(place).replace("* ", "*");
                let help = format!("write `({}, {}) = ({new_a}, {new_b});`", place(a), place(b));
                self.refuse(call, name, help);
                true
            }
            _ => false,
        }
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
            Expr::Binary(b) if syntax::is_assign(&b.op) && !self.is_no_variable(&b.left) => self.updated(b),
            Expr::Reference(_) => return self.argument(expr, None),
            Expr::Call(call) => {
                if self.swapped(call) || self.replaced(call) {
                    return;
                }
                self.visit_expr(&call.func);
                let callee = matches!(*call.func, Expr::Path(_)).then(|| on_one_line(&call.func));
                call.args.iter().for_each(|argument| self.argument(argument, callee.as_deref()));
                return;
            }
            Expr::MethodCall(m) if METHODS.iter().any(|name| m.method == name) => {
                if let Some(name) = self.outside(&m.receiver)
                    && *self.variables.kind(&name) == Kind::Collection
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

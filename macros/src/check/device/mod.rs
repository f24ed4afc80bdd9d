//! Control flow of the device: where `#[device]` can stand, and what its parts can be.
//!
//! What the types find out is not checked here: whether a predicate is a value of the device, and whether what leaves an
//! arm is one.

use syn::{
    Attribute, Block, Expr, ExprIf, ExprMatch, ExprWhile, ReturnType, Signature, Stmt, Type,
    ext::IdentExt,
    visit::{self, Visit},
};

use crate::{
    device_flow,
    diag::{Code, Errors, on_one_line},
    model::Changed,
    parse::{attributes, device, referents, syntax, types},
};

mod arms;
mod body;
mod changes;
mod predicate;
mod variables;

use predicate::Place;
use variables::Variables;

/// Checks the control flow of the device in a function's body; returns whether something is wrong.
pub(crate) fn check(sig: &Signature, block: &Block, errors: &mut Errors) -> bool {
    let before = errors.count();
    if device::has_flow(block) {
        result(sig, block, errors);
        for (name, place) in referents::slices(sig, block) {
            changes::of_slice(&name, &place, errors);
        }
        let variables = Variables::of(sig, block);
        Flows { errors, variables: &variables, closed: None, chained: false }.visit_block(block);
    }
    errors.count() > before
}

/// Reports a function that cannot return the errors of its control flow, as far as its tokens show.
fn result(sig: &Signature, block: &Block, errors: &mut Errors) {
    if !block.stmts.iter().any(device::is_in) {
        // A closure returns what it returns.
        return;
    }
    let message = "control flow of the device can fail, so its function returns a `Result<…>`";
    match &sig.output {
        ReturnType::Default => errors.push(
            Code::ReturnType,
            &sig.ident,
            message,
            "end the signature with `-> Result<()>`, or what it computes",
        ),
        ReturnType::Type(_, ty) => {
            const OTHERS: [&str; 4] = ["Tensor", "Scalar", "Option", "Vec"];
            let other = match types::plain(ty) {
                Type::Tuple(_) | Type::Reference(_) | Type::Array(_) => true,
                Type::Path(path) => {
                    path.path.segments.last().is_some_and(|s| OTHERS.iter().any(|other| s.ident == other))
                }
                _ => false,
            };
            if other {
                errors.push(
                    Code::ReturnType,
                    ty,
                    message,
                    format!(
                        "write `Result<{}>`, with any error type that has `From<graphable::Error>`",
                        types::written(ty)
                    ),
                );
            }
        }
    }
}

/// Looks for control flow of the device.
struct Flows<'k, 'e> {
    errors: &'e mut Errors,
    variables: &'k Variables,
    /// The surroundings of the code, if no such control flow can be there.
    closed: Option<Closed>,
    /// Set for what follows an `else`.
    chained: bool,
}

/// Code without control flow of the device.
#[derive(Clone, Copy)]
enum Closed {
    Region,
    Async,
}

/// The use of an expression's value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// It is a statement, or the value of a block.
    Statement,
    /// It is a part of another expression.
    Value,
}

impl Flows<'_, '_> {
    fn expr(&mut self, expr: &Expr, position: Position) {
        // The visitor's lifetime is that of the code; this function is called with copies as well.
        self.attributes(expr);
        if !device::is_flow(expr) {
            return self.inside(expr);
        }
        match expr {
            Expr::If(e) => self.branches(e, position),
            Expr::While(e) => self.rounds(e),
            Expr::Match(e) => self.selection(e),
            other => self.inside(other),
        }
    }

    /// Looks into an expression that is not such control flow itself.
    fn inside(&mut self, expr: &Expr) {
        let closed = match expr {
            Expr::Async(_) => Some(Closed::Async),
            other if matches!(attributes::boundary(other), Some(attributes::Boundary::Eager(_))) => {
                Some(Closed::Region)
            }
            _ => None,
        };
        let outside = self.closed;
        self.closed = closed.or(outside);
        let mut inner = Flows {
            errors: &mut *self.errors,
            variables: self.variables,
            closed: self.closed,
            chained: false,
        };
        visit::visit_expr(&mut inner, expr);
        self.closed = outside;
    }

    /// Reports `#[device]` on what it has no meaning for.
    fn attributes(&mut self, expr: &Expr) {
        let mut own = attributes::of(expr).iter().filter(|a| device::is_device(a));
        let Some(attr) = own.next() else { return };
        if let Some(again) = own.next() {
            self.errors.push(Code::RepeatedAttribute, again, "`#[device]` is given twice", "remove one");
        }
        let limit = device::limit(attr, self.errors);
        match self.closed {
            Some(Closed::Region) => self.errors.push(
                Code::DevicePosition,
                attr,
                "an eager region runs on the host, which decides there",
                "read the value and branch on it: `let p = cx.item(&p)?;`, `if p { … }`",
            ),
            Some(Closed::Async) => self.errors.push(
                Code::DevicePosition,
                attr,
                "the device decides nothing in an `async` block",
                "move it out of the block: `let y = #[device] if … { … } else { … };`",
            ),
            None => {}
        }
        let (what, help) = match expr {
            Expr::While(_) => return,
            Expr::If(_) | Expr::Match(_) => {
                if limit.is_some() {
                    self.errors.push(
                        Code::AttributeArguments,
                        attr,
                        "a limit is for a `while`, which may run many times",
                        "write `#[device]`",
                    );
                }
                return;
            }
            Expr::ForLoop(_) => (
                "a `for`",
                "remove it: a `for` over host values is unrolled; where the device decides how often, write \
                 `#[device(limit = 1000)] while … { … }`",
            ),
            Expr::Loop(_) => ("a `loop`", "write `#[device(limit = 1000)] while … { … }`"),
            Expr::Block(_) => ("a block", "remove `#[device]`: a block runs wherever it stands"),
            Expr::Closure(_) => {
                ("a closure", "remove it here, and mark the control flow inside: `#[device] if … { … }`")
            }
            _ => (
                "this expression",
                "remove it; an assignment is written `y = #[device] if … { … } else { … };`",
            ),
        };
        self.errors.push(
            Code::DevicePosition,
            attr,
            format!("`#[device]` marks an `if`, a `while` or a `match`, not {what}"),
            help,
        );
    }

    fn branches(&mut self, e: &ExprIf, position: Position) {
        let chained = std::mem::take(&mut self.chained);
        predicate::check(&e.cond, Place { word: "if", chained }, self.variables, self.errors);
        self.expr(&e.cond, Position::Value);
        if e.else_branch.is_none() && position == Position::Value {
            self.errors.push(
                Code::DeviceElse,
                e.if_token,
                "a `#[device] if` whose value is used needs an `else`",
                "add `else { … }`, with the value that it has otherwise",
            );
        }
        if let Some((_, other)) = &e.else_branch {
            self.values(e.then_branch.stmts.last().and_then(value).into_iter().chain([&**other]));
        }
        self.body(&e.then_branch, "if");
        if let Some((_, other)) = &e.else_branch {
            match &**other {
                Expr::Block(b) => self.body(&b.block, "if"),
                next => {
                    self.chained = true;
                    self.expr(next, Position::Statement);
                    self.chained = false;
                }
            }
        }
    }

    fn rounds(&mut self, e: &ExprWhile) {
        predicate::check(&e.cond, Place { word: "while", chained: false }, self.variables, self.errors);
        self.assigned_by_predicate(&e.cond);
        self.expr(&e.cond, Position::Value);
        if let Some(label) = &e.label {
            self.errors.push(
                Code::DeviceJump,
                label,
                "a `#[device] while` has no label: nothing can jump to it",
                "remove the label; `while ops::logical_and(&go_on, &p)? { … }` ends when `go_on` is false",
            );
        }
        self.body(&e.body, "while");
    }

    /// Reports references to tensors as the values of arms: a value of the device is made there, and belongs to nobody else.
    fn values<'a>(&mut self, arms: impl Iterator<Item = &'a Expr>) {
        // What is inside of an inner arm is reported there.
        for value in arms.filter(|arm| !device::is_flow(arm)).flat_map(syntax::tails) {
            if self.variables.is_lent(value) {
                let name = on_one_line(value);
                self.errors.push(
                    Code::DeviceCarried,
                    value,
                    format!("`{name}` is a reference to a tensor, and the value of an arm is a tensor"),
                    format!("write `{name}.clone()`, which copies nothing on the device"),
                );
            }
        }
    }

    fn selection(&mut self, e: &ExprMatch) {
        self.values(e.arms.iter().map(|arm| &*arm.body));
        self.expr(&e.expr, Position::Value);
        arms::check(e, self.errors);
        for arm in &e.arms {
            body::of_arm(&arm.body, self.errors);
            changes::of_arm(&arm.body, self.variables, self.errors);
            self.expr(&arm.body, Position::Statement);
        }
    }

    fn body(&mut self, block: &Block, word: &str) {
        body::of_block(block, word, self.errors);
        changes::of_block(block, self.variables, self.errors);
        let mut inner = Flows {
            errors: &mut *self.errors,
            variables: self.variables,
            closed: self.closed,
            chained: false,
        };
        inner.visit_block(block);
    }

    /// Reports variables around a loop that its predicate assigns: only the predicate's value leaves it.
    fn assigned_by_predicate(&mut self, cond: &Expr) {
        for Changed { ident, .. } in device_flow::effects(cond, true).changed {
            self.errors.push(
                Code::DevicePredicateChange,
                &ident,
                format!("the predicate of a `#[device] while` cannot change `{ident}`, which lives outside of it"),
                format!("give the value a name of its own here, `let next_{} = …;`, and change `{ident}` in the body", ident.unraw()),
            );
        }
    }
}

/// The value of a block, of which this is the last statement.
fn value(last: &Stmt) -> Option<&Expr> {
    match last {
        Stmt::Expr(value, None) => Some(value),
        _ => None,
    }
}

impl<'a> Visit<'a> for Flows<'_, '_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Expr(expr, _) => self.expr(expr, Position::Statement),
            other => visit::visit_stmt(self, other),
        }
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        for a in local.attrs.iter().filter(|a| device::is_device(a)) {
            self.errors.push(
                Code::MisplacedAttribute,
                a,
                "`#[device]` marks an expression, not a `let`",
                "write `let y = #[device] if … { … } else { … };`",
            );
        }
        visit::visit_local(self, local);
    }

    fn visit_arm(&mut self, arm: &'a syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.expr(guard, Position::Value);
        }
        self.expr(&arm.body, Position::Statement);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        self.expr(expr, Position::Value);
    }

    fn visit_macro(&mut self, mac: &'a syn::Macro) {
        in_tokens(mac.tokens.clone(), self.errors);
    }

    fn visit_attribute(&mut self, _: &'a Attribute) {}
    fn visit_item(&mut self, _: &'a syn::Item) {}
}

/// Reports `#[device]` among the tokens of a macro call, where it is not recognised.
fn in_tokens(tokens: proc_macro2::TokenStream, errors: &mut Errors) {
    use proc_macro2::TokenTree;
    let mut hash = false;
    for token in tokens {
        if let TokenTree::Group(g) = &token {
            let first = g.stream().into_iter().next();
            if hash && matches!(&first, Some(TokenTree::Ident(i)) if i == "device") {
                errors.push(
                    Code::DevicePosition,
                    first,
                    "control flow of the device inside a macro call",
                    "bind its value before, `let y = #[device] if … { … } else { … };`, and use `y` in the macro call",
                );
            }
            in_tokens(g.stream(), errors);
        }
        hash = matches!(&token, TokenTree::Punct(p) if p.as_char() == '#');
    }
}

//! Control flow of the device: where `#[device]` can stand, and what its parts can be.
//!
//! What the types find out is not checked here: whether a predicate is a value of the device, and whether what leaves an
//! arm is one.

use syn::{
    Attribute, BinOp, Block, Expr, ExprIf, ExprMatch, ExprWhile, FnArg, ReturnType, Signature, Stmt, Type,
    UnOp,
    ext::IdentExt,
    visit::{self, Visit},
};

use crate::{
    analyze::device_flow,
    diag::{Code, Errors, shortened},
    parse::{
        attributes, device,
        syntax::{self, bare},
        types,
    },
};

mod arms;
mod body;
mod changes;

/// Checks the control flow of the device in a function's body; returns whether something is wrong.
pub(crate) fn check(sig: &Signature, block: &Block, errors: &mut Errors) -> bool {
    let before = errors.count();
    if device::has_flow(block) {
        result(sig, block, errors);
        let params = sig.inputs.iter().flat_map(|argument| match argument {
            FnArg::Typed(typed) => syntax::bound_always(&typed.pat),
            FnArg::Receiver(_) => Vec::new(),
        });
        let known = Known {
            params: params.map(|b| b.ident.to_string()).collect(),
            changeable: changes::changeable(block),
        };
        Flows { errors, known: &known, closed: None }.visit_block(block);
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

/// What is known of the function.
struct Known {
    /// Names of its parameters.
    params: Vec<String>,
    /// Names of variables that are known to be host values which methods change.
    changeable: Vec<String>,
}

/// Looks for control flow of the device.
struct Flows<'k, 'e> {
    errors: &'e mut Errors,
    known: &'k Known,
    /// What surrounds the code, if no such control flow can be there.
    closed: Option<Closed>,
}

/// Code without control flow of the device.
#[derive(Clone, Copy)]
enum Closed {
    Region,
    Async,
}

/// How the value of an expression is used.
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

    /// Looks into an expression that is no such control flow itself.
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
        let mut inner = Flows { errors: &mut *self.errors, known: self.known, closed: self.closed };
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
        self.predicate(&e.cond, "if");
        self.expr(&e.cond, Position::Value);
        if e.else_branch.is_none() && position == Position::Value {
            self.errors.push(
                Code::DeviceElse,
                e.if_token,
                "a `#[device] if` whose value is used needs an `else`",
                "add `else { … }`, with the value that it has otherwise",
            );
        }
        self.body(&e.then_branch, "if");
        if let Some((_, other)) = &e.else_branch {
            match &**other {
                Expr::Block(b) => self.body(&b.block, "if"),
                next => self.expr(next, Position::Statement),
            }
        }
    }

    fn rounds(&mut self, e: &ExprWhile) {
        self.predicate(&e.cond, "while");
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

    fn selection(&mut self, e: &ExprMatch) {
        self.expr(&e.expr, Position::Value);
        arms::check(e, self.errors);
        for arm in &e.arms {
            body::of_arm(&arm.body, self.errors);
            changes::of_arm(&arm.body, &self.known.changeable, self.errors);
            self.expr(&arm.body, Position::Statement);
        }
    }

    fn body(&mut self, block: &Block, word: &str) {
        body::of_block(block, word, self.errors);
        changes::of_block(block, &self.known.changeable, self.errors);
        let mut inner = Flows { errors: &mut *self.errors, known: self.known, closed: self.closed };
        inner.visit_block(block);
    }

    /// Reports what makes a predicate a host value.
    fn predicate(&mut self, cond: &Expr, word: &str) {
        let (message, help) = match bare(cond) {
            Expr::Let(_) => {
                return self.pattern(cond, word);
            }
            Expr::Binary(b) if matches!(b.op, BinOp::And(_) | BinOp::Or(_)) => {
                if has_let(cond) {
                    return self.pattern(cond, word);
                }
                let (op, function) =
                    if matches!(b.op, BinOp::And(_)) { ("&&", "logical_and") } else { ("||", "logical_or") };
                (
                    format!("`{op}` connects values of the host, and this predicate is on the device"),
                    format!(
                        "write `ops::{function}({}, {})?`",
                        self.operand(&b.left),
                        self.operand(&b.right)
                    ),
                )
            }
            Expr::Binary(b) => {
                let Some((op, function)) = comparison(&b.op) else { return };
                let known = |e: &Expr| {
                    matches!(bare(e), Expr::Path(_) | Expr::Try(_) | Expr::Field(_) | Expr::Reference(_))
                };
                let help = if known(&b.left) {
                    let (left, right) = (self.operand(&b.left), self.operand(&b.right));
                    format!(
                        "compare on the device, `ops::{function}({left}, {right})?`, or remove `#[device]`"
                    )
                } else {
                    format!("remove `#[device]`: `if {}` decides on the host", shortened(cond))
                };
                (format!("`{op}` compares values of the host, and this predicate is on the device"), help)
            }
            Expr::Unary(u) if matches!(u.op, UnOp::Not(_)) => (
                "`!` negates a value of the host, and this predicate is on the device".to_owned(),
                format!("write `ops::logical_not({})?`", self.operand(&u.expr)),
            ),
            _ => return,
        };
        self.errors.push(Code::DeviceOperator, bare(cond), message, help);
    }

    /// Reports variables around a loop that its predicate assigns: only the predicate's value leaves it.
    fn assigned_by_predicate(&mut self, cond: &Expr) {
        for device_flow::Changed { ident, .. } in device_flow::effects(cond, true).changed {
            self.errors.push(
                Code::DevicePredicateChange,
                &ident,
                format!("the predicate of a `#[device] while` cannot change `{ident}`, which lives outside of it"),
                format!("give the value a name of its own here, `let next_{} = …;`, and change `{ident}` in the body", ident.unraw()),
            );
        }
    }

    /// An operand as an argument of an operation: a parameter is a reference already.
    fn operand(&self, expr: &Expr) -> String {
        let text = shortened(bare(expr));
        match bare(expr) {
            Expr::Path(_) if self.known.params.contains(&text) => text,
            Expr::Path(_) | Expr::Try(_) | Expr::Field(_) => format!("&{text}"),
            _ => text,
        }
    }

    fn pattern(&mut self, cond: &Expr, word: &str) {
        self.errors.push(
            Code::DevicePattern,
            cond,
            format!("a `#[device] {word}` has no pattern: its predicate is one `bool` on the device"),
            format!("compare on the device: `#[device] {word} ops::eq(&x, 1)? {{ … }}`"),
        );
    }
}

/// The operation of a comparison.
fn comparison(op: &BinOp) -> Option<(&'static str, &'static str)> {
    Some(match op {
        BinOp::Eq(_) => ("==", "eq"),
        BinOp::Ne(_) => ("!=", "ne"),
        BinOp::Lt(_) => ("<", "lt"),
        BinOp::Le(_) => ("<=", "le"),
        BinOp::Gt(_) => (">", "gt"),
        BinOp::Ge(_) => (">=", "ge"),
        _ => return None,
    })
}

fn has_let(cond: &Expr) -> bool {
    match bare(cond) {
        Expr::Let(_) => true,
        Expr::Binary(b) => has_let(&b.left) || has_let(&b.right),
        _ => false,
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

//! Operators of the host in predicates, and what stands for them on the device.

use syn::{BinOp, Expr, UnOp};

use super::variables::{Kind, Variables};
use crate::{
    diag::{Code, Errors, on_one_line},
    parse::syntax::{self, bare},
};

/// The place of a predicate.
#[derive(Clone, Copy)]
pub(super) struct Place<'w> {
    /// The word in front of it.
    pub(super) word: &'w str,
    /// Set in an `else if`, in front of which no `#[device]` is written.
    pub(super) chained: bool,
}

/// Reports what makes a predicate a host value.
pub(super) fn check(cond: &Expr, place: Place<'_>, variables: &Variables, errors: &mut Errors) {
    if has_let(cond) {
        return pattern(cond, place.word, errors);
    }
    let Some(what) = operator(bare(cond)) else {
        return chained_host(cond, place, variables, errors);
    };
    let help = match (side(cond, variables), place.chained) {
        (Side::Device(text), chained) => {
            let text = text.trim_start_matches('&');
            match (compares(cond), chained) {
                (false, _) => format!("write `{text}`"),
                (true, false) => format!("compare on the device, `{text}`, or remove `#[device]`"),
                (true, true) => format!("compare on the device, `{text}`"),
            }
        }
        (Side::Host(text), true) => in_else(&text),
        (Side::Host(text), false) => {
            format!("remove `#[device]`: `{} {text}` decides on the host", place.word)
        }
    };
    let message = format!("{what}, and this predicate is on the device");
    errors.push(Code::DeviceOperator, bare(cond), message, help);
}

/// Reports a value that is known to be the host's in an `else if`, of which the types would say to remove a `#[device]`.
fn chained_host(cond: &Expr, place: Place<'_>, variables: &Variables, errors: &mut Errors) {
    let Expr::Path(_) = bare(cond) else { return };
    if let Side::Host(text) = side(cond, variables)
        && place.chained
    {
        errors.push(
            Code::DevicePredicate,
            cond,
            format!(
                "`{text}` is a value of the host, and the device decides an `else if` of a `#[device] if`"
            ),
            in_else(&text),
        );
    }
}

fn in_else(text: &str) -> String {
    format!("the host decides inside of an arm: `else {{ if {text} {{ … }} else {{ … }} }}`")
}

fn pattern(cond: &Expr, word: &str, errors: &mut Errors) {
    errors.push(
        Code::DevicePattern,
        cond,
        format!("a `#[device] {word}` has no pattern: its predicate is one `bool` on the device"),
        format!("compare on the device: `#[device] {word} ops::eq(&x, 1)? {{ … }}`"),
    );
}

/// The meaning of an operator on the host.
fn operator(cond: &Expr) -> Option<String> {
    match cond {
        Expr::Binary(b) => match logical(&b.op) {
            Some((op, _)) => Some(format!("`{op}` connects values of the host")),
            None => comparison(&b.op).map(|known| format!("`{}` compares values of the host", known.op)),
        },
        Expr::Unary(u) if matches!(u.op, UnOp::Not(_)) => Some("`!` negates a value of the host".to_owned()),
        _ => None,
    }
}

fn compares(cond: &Expr) -> bool {
    matches!(bare(cond), Expr::Binary(b) if comparison(&b.op).is_some())
}

/// A part of a predicate, as an argument of an operation.
enum Side {
    Host(String),
    Device(String),
}

/// What stands for an expression on the device, with the operations for its operators; the host's value where the host computes all
/// of it.
fn side(expr: &Expr, variables: &Variables) -> Side {
    let text = on_one_line(bare(expr));
    match bare(expr) {
        Expr::Binary(b) => {
            let (function, swapped) = match (logical(&b.op), comparison(&b.op)) {
                (Some((_, function)), _) => (function, function),
                (None, Some(known)) => (known.function, known.swapped),
                (None, None) => return Side::Host(text),
            };
            // An operation takes a number second.
            match (side(&b.left, variables), side(&b.right, variables)) {
                (Side::Device(one), Side::Device(two) | Side::Host(two)) => {
                    Side::Device(format!("&ops::{function}({one}, {two})?"))
                }
                (Side::Host(one), Side::Device(two)) => {
                    Side::Device(format!("&ops::{swapped}({two}, {one})?"))
                }
                (Side::Host(_), Side::Host(_)) => Side::Host(text),
            }
        }
        Expr::Unary(u) if matches!(u.op, UnOp::Not(_)) => match side(&u.expr, variables) {
            Side::Device(of) => Side::Device(format!("&ops::logical_not({of})?")),
            Side::Host(_) => Side::Host(text),
        },
        Expr::Path(_) => match syntax::plain_name(expr) {
            Some(name) if !matches!(variables.kind(name), Kind::Number(_)) && !is_constant(&text) => {
                Side::Device(if variables.is_param(&text) { text } else { format!("&{text}") })
            }
            _ => Side::Host(text),
        },
        Expr::Reference(_) => Side::Device(text),
        Expr::Try(_) | Expr::Field(_) => Side::Device(format!("&{text}")),
        _ => Side::Host(text),
    }
}

/// Returns whether a name is that of a constant, by convention.
fn is_constant(name: &str) -> bool {
    !name.chars().any(char::is_lowercase)
}

fn logical(op: &BinOp) -> Option<(&'static str, &'static str)> {
    match op {
        BinOp::And(_) => Some(("&&", "logical_and")),
        BinOp::Or(_) => Some(("||", "logical_or")),
        _ => None,
    }
}

/// A comparison.
struct Comparison {
    op: &'static str,
    function: &'static str,
    /// The function for swapped operands.
    swapped: &'static str,
}

fn comparison(op: &BinOp) -> Option<Comparison> {
    let (op, function, swapped) = match op {
        BinOp::Eq(_) => ("==", "eq", "eq"),
        BinOp::Ne(_) => ("!=", "ne", "ne"),
        BinOp::Lt(_) => ("<", "lt", "gt"),
        BinOp::Le(_) => ("<=", "le", "ge"),
        BinOp::Gt(_) => (">", "gt", "lt"),
        BinOp::Ge(_) => (">=", "ge", "le"),
        _ => return None,
    };
    Some(Comparison { op, function, swapped })
}

fn has_let(cond: &Expr) -> bool {
    match bare(cond) {
        Expr::Let(_) => true,
        Expr::Binary(b) => has_let(&b.left) || has_let(&b.right),
        _ => false,
    }
}

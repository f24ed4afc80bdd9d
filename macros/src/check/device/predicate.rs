//! Operators of the host in predicates, and what stands for them on the device.

use syn::{BinOp, Expr, UnOp};

use super::variables::{Kind, Variables};
use crate::{
    diag::{Code, Errors, on_one_line},
    parse::{
        syntax::{self, bare},
        types,
    },
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
        (Side::Host { text, .. }, true) => in_else(&text),
        (Side::Host { text, .. }, false) => {
            format!("remove `#[device]`: `{} {text}` decides on the host", place.word)
        }
        (Side::Unknown, chained) => in_general(bare(cond), chained),
    };
    let message = format!("{what}, and this predicate is on the device");
    errors.push(Code::DeviceOperator, bare(cond), message, help);
}

/// Reports a value that is known to be the host's in an `else if`, of which the types would say to remove a `#[device]`.
fn chained_host(cond: &Expr, place: Place<'_>, variables: &Variables, errors: &mut Errors) {
    let Expr::Path(_) = bare(cond) else { return };
    if let Side::Host { text, .. } = side(cond, variables)
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

/// The help where the tokens do not say what the operands are.
fn in_general(cond: &Expr, chained: bool) -> String {
    let function = match cond {
        Expr::Binary(b) => match (logical(&b.op), comparison(&b.op)) {
            (Some((_, function)), _) => function,
            (None, Some(known)) => known.function,
            (None, None) => "logical_and",
        },
        _ => "logical_not",
    };
    if !compares(cond) {
        return format!(
            "use `ops::{function}`, which takes tensors of `bool` by reference; that of a `State` is what `ops::load` returns"
        );
    }
    let or = if chained { "" } else { "; or remove `#[device]`, if the host knows both" };
    format!(
        "use `ops::{function}`, which takes tensors by reference, and second also a number of their element type; the tensor of a \
         `State` is what `ops::load` returns{or}"
    )
}

/// A part of a predicate, as an argument of an operation.
enum Side {
    /// The host computes all of it. `fits` states that it has an element type.
    Host {
        text: String,
        fits: bool,
    },
    Device(String),
    /// The tokens do not say what it is, or it would have to be converted.
    Unknown,
}

/// What stands for an expression on the device, with the operations for its operators; the host's value where the host computes all
/// of it.
fn side(expr: &Expr, variables: &Variables) -> Side {
    let text = on_one_line(bare(expr));
    let host = |fits| Side::Host { text: text.clone(), fits };
    match bare(expr) {
        Expr::Binary(b) => {
            let sides = (side(&b.left, variables), side(&b.right, variables));
            let (function, swapped) = match (logical(&b.op), comparison(&b.op)) {
                (Some((_, function)), _) => (function, function),
                (None, Some(known)) => (known.function, known.swapped),
                (None, None) => {
                    return match sides {
                        (Side::Host { fits: one, .. }, Side::Host { fits: two, .. }) => host(one && two),
                        _ => Side::Unknown,
                    };
                }
            };
            // An operation takes a number second.
            match sides {
                (Side::Device(one), Side::Device(two) | Side::Host { text: two, fits: true }) => {
                    Side::Device(format!("&ops::{function}({one}, {two})?"))
                }
                (Side::Host { text: one, fits: true }, Side::Device(two)) => {
                    Side::Device(format!("&ops::{swapped}({two}, {one})?"))
                }
                (Side::Host { .. }, Side::Host { .. }) => host(true),
                _ => Side::Unknown,
            }
        }
        Expr::Unary(u) if matches!(u.op, UnOp::Not(_)) => match side(&u.expr, variables) {
            Side::Device(of) => Side::Device(format!("&ops::logical_not({of})?")),
            Side::Host { .. } => host(true),
            Side::Unknown => Side::Unknown,
        },
        Expr::Path(_) => match syntax::plain_name(expr) {
            Some(name) => match variables.kind(name) {
                Kind::Number(_) => host(true),
                Kind::Count => host(false),
                // A constant has any type.
                _ if is_constant(&text) => host(false),
                _ => Side::Device(if variables.is_param(&text) { text } else { format!("&{text}") }),
            },
            None => host(false),
        },
        Expr::Reference(_) => Side::Device(text),
        Expr::Try(_) => Side::Device(format!("&{text}")),
        Expr::Lit(_) => host(true),
        Expr::Unary(u) if matches!(u.op, UnOp::Neg(_)) => side(&u.expr, variables).of_host(text),
        Expr::Cast(c) => host(types::is_element(&c.ty)),
        Expr::MethodCall(m) if m.method == "clone" => match side(&m.receiver, variables) {
            Side::Device(_) => Side::Device(format!("&{text}")),
            other => other.of_host(text),
        },
        Expr::MethodCall(m) if ["rank", "len", "is_empty"].iter().any(|name| m.method == name) => host(false),
        _ => Side::Unknown,
    }
}

impl Side {
    /// The host's value as another text; unknown, if it is not the host's.
    fn of_host(self, text: String) -> Self {
        match self {
            Self::Host { fits, .. } => Self::Host { text, fits },
            _ => Self::Unknown,
        }
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

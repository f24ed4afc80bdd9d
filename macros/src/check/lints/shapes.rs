//! Sizes in `#[dims]` that the body contradicts.

use syn::{Expr, ExprCall, Ident, Lit};

use crate::{
    diag::{Code, Errors},
    parse::syntax::bare,
};

/// Operations on one axis, which must be one of the tensor's.
const ON_AXIS: [&str; 10] =
    ["sum", "mean", "max", "argmax", "softmax", "log_softmax", "l2_normalize", "narrow", "split", "split_at"];

/// Operations whose operands broadcast.
const BROADCAST: [&str; 10] = ["add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge"];

/// A parameter with `#[dims]`: its name, and the sizes that are numbers.
pub(super) struct Declared<'a> {
    pub(super) name: String,
    pub(super) sizes: &'a [Option<usize>],
}

/// Checks one call of `ops::…`; `known` contains the known facts about each argument.
pub(super) fn check(op: &Ident, call: &ExprCall, known: &[Option<Declared<'_>>], errors: &mut Errors) {
    let name = op.to_string();
    let arguments: Vec<&Expr> = call.args.iter().collect();
    if let Some(Some(Declared { name: param, sizes: dims })) = known.first() {
        if ON_AXIS.contains(&name.as_str()) {
            axis(&name, param, dims, &arguments, errors);
        }
        if name == "reshape" {
            reshape(param, dims, &arguments, errors);
        }
    }
    if let [Some(a), Some(b), ..] = known {
        if BROADCAST.contains(&name.as_str()) {
            broadcast(call, a, b, errors);
        }
        if name == "matmul" || name == "matmul_nt" || name == "linear" {
            inner(&name, call, a, b, errors);
        }
    }
}

fn contradiction(at: &Expr, message: String, help: String, errors: &mut Errors) {
    errors.push(Code::DimsContradiction, at, message, help);
}

fn axis(op: &str, param: &str, dims: &[Option<usize>], arguments: &[&Expr], errors: &mut Errors) {
    let Some((at, axis)) = arguments.get(1).and_then(|a| Some((a, number(a)?))) else { return };
    let rank = dims.len();
    let Some(size) = dims.get(axis) else {
        let message = format!("`#[dims]` gives `{param}` {}, so it has no axis {axis}", count(rank));
        let help = match rank {
            0 => format!("`{param}` is a single value: leave out `ops::{op}`"),
            _ => format!("axes count from 0: the last one of `{param}` is {}", rank - 1),
        };
        return contradiction(at, message, help, errors);
    };
    if op == "narrow"
        && let (Some(start), Some(len)) =
            (arguments.get(2).and_then(|e| number(e)), arguments.get(3).and_then(|e| number(e)))
        && let Some(size) = size
        && start.checked_add(len).is_none_or(|end| end > *size)
    {
        contradiction(
            arguments[3],
            format!(
                "`#[dims]` gives `{param}` the size {size} on axis {axis}, and this takes {len} from {start} on"
            ),
            format!("take at most {}", size.saturating_sub(start)),
            errors,
        );
    }
}

fn reshape(param: &str, dims: &[Option<usize>], arguments: &[&Expr], errors: &mut Errors) {
    let Some(shape) = arguments.get(1) else { return };
    let inner = match bare(shape) {
        Expr::Reference(r) => bare(&r.expr),
        other => other,
    };
    let Expr::Array(array) = inner else { return };
    let new: Option<Vec<usize>> = array.elems.iter().map(number).collect();
    let old: Option<Vec<usize>> = dims.iter().copied().collect();
    let product = |sizes: &[usize]| sizes.iter().try_fold(1usize, |n, m| n.checked_mul(*m));
    if let (Some(new), Some(old)) = (new, old)
        && let (Some(new), Some(old)) = (product(&new), product(&old))
        && new != old
    {
        contradiction(
            shape,
            format!("`#[dims]` gives `{param}` {old} elements, and this shape has {new}"),
            format!("write a shape of {old} elements, or change the `#[dims]` of `{param}`"),
            errors,
        );
    }
}

fn broadcast(call: &ExprCall, a: &Declared<'_>, b: &Declared<'_>, errors: &mut Errors) {
    for (from_last, (left, right)) in a.sizes.iter().rev().zip(b.sizes.iter().rev()).enumerate() {
        if let (Some(left), Some(right)) = (left, right)
            && left != right
            && *left != 1
            && *right != 1
        {
            let place = if from_last == 0 {
                "last dimension".to_owned()
            } else {
                format!("dimension {} from the end", from_last + 1)
            };
            return contradiction(
                &Expr::Call(call.clone()),
                format!(
                    "`#[dims]` gives `{}` the size {left} and `{}` the size {right} in the {place}: they do not broadcast",
                    a.name, b.name
                ),
                format!("sizes must be equal or 1: change the `#[dims]` of `{}` or of `{}`", a.name, b.name),
                errors,
            );
        }
    }
}

fn inner(op: &str, call: &ExprCall, a: &Declared<'_>, b: &Declared<'_>, errors: &mut Errors) {
    let columns = a.sizes.last().copied().flatten();
    let rows = match op {
        // `[k, n]`; the others have `[n, k]`.
        "matmul" => b.sizes.len().checked_sub(2).and_then(|i| b.sizes[i]),
        _ => b.sizes.last().copied().flatten(),
    };
    if let (Some(columns), Some(rows)) = (columns, rows)
        && columns != rows
    {
        contradiction(
            &Expr::Call(call.clone()),
            format!(
                "`ops::{op}` sums over {columns} elements of `{}` and {rows} of `{}`, as `#[dims]` gives them",
                a.name, b.name
            ),
            format!("the inner sizes must be equal: change the `#[dims]` of `{}` or of `{}`", a.name, b.name),
            errors,
        );
    }
}

fn count(rank: usize) -> String {
    match rank {
        0 => "no dimension".to_owned(),
        1 => "one dimension".to_owned(),
        n => format!("{n} dimensions"),
    }
}

fn number(expr: &Expr) -> Option<usize> {
    match bare(expr) {
        Expr::Lit(l) => match &l.lit {
            Lit::Int(i) => i.base10_parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

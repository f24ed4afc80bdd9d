//! Control flow of the device: what decides, what the arms are, and what becomes of the variables that they change.

use proc_macro2::{Ident, Span, TokenTree};
use quote::quote;
use syn::{Attribute, Block, Expr, ExprIf, ExprMatch, ExprWhile, Member, Pat, Type};

/// The body of a function that is one segment, or an ordinary function.
pub(crate) struct DeviceCode {
    /// With a marker ([`DeviceFlow::marker`]) for each control flow.
    pub(crate) block: Block,
    pub(crate) flows: Vec<DeviceFlow>,
}

/// An `#[device] if`, `while` or `match`. Code has a marker in its place, which is its number in the list of the code.
pub(crate) struct DeviceFlow {
    /// The user's other attributes.
    pub(crate) attrs: Vec<Attribute>,
    /// Its keyword.
    pub(crate) keyword: Span,
    /// The type of the results around: of the function, or of a closure. `None` if nothing states it.
    pub(crate) ret: Option<Type>,
    pub(crate) kind: DeviceFlowKind,
}

pub(crate) enum DeviceFlowKind {
    If(Alternatives<ExprIf>),
    Match {
        alternatives: Alternatives<ExprMatch>,
        /// The integers of each arm; none for `_`.
        values: Vec<Vec<Pat>>,
    },
    While(Box<Rounds>),
}

/// Arms of which one runs.
pub(crate) struct Alternatives<E> {
    /// The predicate or index, a value of the device.
    pub(crate) decides: Expr,
    /// As the user wrote them, under a condition or index, and patterns, that stand for nothing yet.
    pub(crate) arms: E,
    pub(crate) changed: Vec<Changed>,
    pub(crate) read: ReadByArms,
}

/// A loop.
pub(crate) struct Rounds {
    pub(crate) decides: Expr,
    pub(crate) limit: Option<Limit>,
    /// As the user wrote it, under a condition that stands for nothing yet.
    pub(crate) round: ExprWhile,
    /// The variables that are carried from round to round.
    pub(crate) carried: Vec<Changed>,
    /// Those that each round assigns before anything reads them, and nothing reads afterwards.
    pub(crate) of_each_round: Vec<Changed>,
    pub(crate) read: ReadByArms,
    /// The same of the predicate.
    pub(crate) read_by_predicate: ReadByArms,
}

/// How many rounds a loop may run at most.
pub(crate) enum Limit {
    Constant(Expr),
    /// A value of the host.
    Host(Expr),
}

/// Names of variables that arms do not change.
pub(crate) struct ReadByArms {
    /// Those whose values they may move.
    pub(crate) moved: Vec<Ident>,
    /// Those of which they may move a part, or which a method may take.
    pub(crate) parted: Vec<Ident>,
}

/// A variable around the control flow that it assigns.
pub(crate) struct Changed {
    /// Its name, as it is assigned.
    pub(crate) ident: Ident,
    pub(crate) how: How,
    /// Whether its value, or a part of it, may be moved as well.
    pub(crate) moved: bool,
    pub(crate) end: End,
}

/// The part of a variable that is assigned.
pub(crate) enum How {
    /// All of it, on every path, before anything reads it.
    Anew,
    /// All of it.
    Whole,
    /// Elements, which leave with all others.
    Elements,
    /// What it refers to.
    Through,
    /// Fields, by their paths.
    Fields(Vec<Vec<Member>>),
}

/// What becomes of a variable that arms change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Later code has its new value.
    Leaves,
    /// Nothing needs its new value: it does not leave the arms.
    StaysInside,
}

impl DeviceFlow {
    /// The expression that stands for the control flow with this number.
    pub(crate) fn marker(number: usize) -> Expr {
        Expr::Verbatim(quote!(device_flow #number))
    }

    /// Returns the number of a marker; `None` for other expressions.
    pub(crate) fn marked(expr: &Expr) -> Option<usize> {
        let Expr::Verbatim(tokens) = expr else { return None };
        let mut tokens = tokens.clone().into_iter();
        match (tokens.next(), tokens.next(), tokens.next()) {
            (Some(TokenTree::Ident(name)), Some(TokenTree::Literal(number)), None)
                if name == "device_flow" =>
            {
                number.to_string().trim_end_matches("usize").parse().ok()
            }
            _ => None,
        }
    }
}

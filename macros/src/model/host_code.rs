//! Blocks of host code, and the statements in them.

use proc_macro2::Span;
use syn::{Attribute, Expr, Ident, Local, Pat, Stmt};

use super::{DeviceFlow, Location, PlanItem, Segment, Value};
use crate::diag::Place;

/// The body of a function with boundaries.
pub(crate) struct HostCode {
    pub(crate) body: Block,
    pub(crate) plan: Vec<PlanItem>,
    /// The first `#[host] let`.
    pub(crate) host_statement: Option<Location>,
    /// Device statements as the user wrote them, a list for each run of them.
    pub(crate) runs: Vec<Run>,
}

/// A run of device statements.
pub(crate) struct Run {
    pub(crate) stmts: Vec<Stmt>,
    /// The position of errors about it among those of the function.
    pub(crate) report: Place,
}

/// Statements in braces, or of the function itself.
#[derive(Default)]
pub(crate) struct Block {
    pub(crate) parts: Vec<Part>,
}

/// A statement of host code, or the value of a block.
pub(crate) enum Part {
    Segment(Box<Segment>),
    /// As the user wrote it.
    Written(Stmt),
    /// An expression without a value of interest, evaluated by host code.
    Evaluated(Expr),
    /// A closure, or a borrow, that host code uses as well as segments.
    Closure(Closure),
    /// `let x;`
    Declared(Local),
    /// The declaration of a binding that a segment moves away and later code assigns again.
    Emptied(Ident),
    Let(Box<HostLet>),
    /// `place = value;`
    Assign(Expr, Value),
    /// `#[allow(…)] value;`
    Statement(Vec<Attribute>, Value),
    /// The value of the block.
    Value(Value),
}

/// A `let` of a closure that is made here.
pub(crate) struct Closure {
    pub(crate) local: Local,
    /// The control flow of the device in it.
    pub(crate) flows: Vec<DeviceFlow>,
}

/// A `let` that host code evaluates.
pub(crate) struct HostLet {
    pub(crate) span: Span,
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) pat: Pat,
    pub(crate) value: Value,
    /// The block after `else`.
    pub(crate) otherwise: Option<Block>,
    /// Set if the `mut` of a name may look unused: only a segment changes it, in a variable of its own.
    pub(crate) changes_later: bool,
}

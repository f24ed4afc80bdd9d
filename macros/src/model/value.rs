//! Expressions that host code evaluates.

use syn::{Attribute, Expr, Label, Lifetime, Pat, Type, UnOp};

use super::{Block, PiecewiseCall, Region};

/// An expression of host code.
pub(crate) enum Value {
    /// As the user wrote it.
    Written(Expr),
    /// `let pattern = value`, as a condition.
    Condition(Pat, Box<Value>),
    /// An expression that only builds a value around regions: it, and they in order.
    Built(Expr, Vec<Value>),
    Region(Box<Region>),
    Piecewise(Box<PiecewiseCall>),
    Block(Block),
    Wrapped {
        attrs: Vec<Attribute>,
        value: Box<Value>,
        by: Wrapper,
    },
    Control(Box<Control>),
    Return(Vec<Attribute>, Box<Value>),
    Break(Vec<Attribute>, Option<Lifetime>, Box<Value>),
}

/// The code around a value.
pub(crate) enum Wrapper {
    Parentheses,
    /// `let _ = …;` in braces.
    Discard,
    /// `?`
    Try,
    Cast(Box<Type>),
    Unary(UnOp),
}

/// Control flow that host code decides.
pub(crate) struct Control {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) kind: ControlKind,
}

pub(crate) enum ControlKind {
    If { condition: Value, then: Block, otherwise: Option<Otherwise> },
    Match { scrutinee: Value, arms: Vec<Arm> },
    For { label: Option<Label>, pat: Pat, iterated: Value, body: Block },
    While { label: Option<Label>, condition: Value, body: Block },
    Loop { label: Option<Label>, body: Block },
    Block { label: Option<Label>, body: Block },
    Unsafe { body: Block },
}

/// The code after `else`.
pub(crate) enum Otherwise {
    Block(Block),
    If(Box<Control>),
}

/// An arm of a `match`.
pub(crate) struct Arm {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) pat: Pat,
    pub(crate) guard: Option<Value>,
    pub(crate) body: Value,
}

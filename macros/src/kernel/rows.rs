//! The methods that rows have.

/// A method of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowOp {
    Map,
    Zip,
    Enumerate,
    Sum,
    Max,
    Min,
    Argmax,
    Argmin,
    Count,
    Fold,
    Len,
    At,
}

/// An argument of such a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowArgument {
    Value,
    Row,
    /// A closure with this many parameters.
    Closure(usize),
}

impl RowOp {
    pub(super) const ALL: [Self; 12] = [
        Self::Map,
        Self::Zip,
        Self::Enumerate,
        Self::Sum,
        Self::Max,
        Self::Min,
        Self::Argmax,
        Self::Argmin,
        Self::Count,
        Self::Fold,
        Self::Len,
        Self::At,
    ];

    /// As Rust and the CUDA text spell it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::Zip => "zip",
            Self::Enumerate => "enumerate",
            Self::Sum => "sum",
            Self::Max => "max",
            Self::Min => "min",
            Self::Argmax => "argmax",
            Self::Argmin => "argmin",
            Self::Count => "count",
            Self::Fold => "fold",
            Self::Len => "len",
            Self::At => "at",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }

    pub(super) fn arguments(self) -> &'static [RowArgument] {
        use RowArgument::{Closure, Row, Value};
        match self {
            Self::Map | Self::Count => &[Closure(1)],
            Self::Zip => &[Row],
            Self::Fold => &[Value, Closure(2), Closure(2)],
            Self::At => &[Value],
            Self::Enumerate | Self::Sum | Self::Max | Self::Min | Self::Argmax | Self::Argmin | Self::Len => {
                &[]
            }
        }
    }

    /// A call, as a help shows it.
    pub(super) fn example(self) -> &'static str {
        match self {
            Self::Map => "x.map(|v| v * v)",
            Self::Zip => "x.zip(y)",
            Self::Enumerate => "x.enumerate()",
            Self::Sum => "x.sum()",
            Self::Max => "x.max()",
            Self::Min => "x.min()",
            Self::Argmax => "x.argmax()",
            Self::Argmin => "x.argmin()",
            Self::Count => "x.count(|v| v > 0.0)",
            Self::Fold => "x.fold(1.0, |product, v| product * v, |a, b| a * b)",
            Self::Len => "x.len()",
            Self::At => "x.at(i)",
        }
    }

    /// Returns whether its value is a row.
    pub(super) fn is_row(self) -> bool {
        matches!(self, Self::Map | Self::Zip | Self::Enumerate)
    }

    /// Returns whether it reads the whole row, with all threads that work on it.
    pub(super) fn is_collective(self) -> bool {
        !matches!(self, Self::Len | Self::At)
    }
}

/// Returns what to write instead of a method of iterators or slices that rows do not have.
pub(super) fn instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "iter" | "into_iter" | "copied" | "cloned" => {
            "leave it out: a row has `map`, `sum` and the others itself"
        }
        "mean" | "average" => "write `x.sum() / x.len() as f32`",
        "product" => "write `x.fold(1.0, |product, v| product * v, |a, b| a * b)`",
        "any" => "write `x.count(|v| …) > 0`",
        "all" => "write `x.count(|v| …) == x.len()`",
        "filter" => "write `x.map(|v| if … { v } else { 0.0 })`, with what does not count in the reduction",
        "get" | "nth" => "write `x.at(i)`",
        "first" => "write `x.at(0)`",
        "last" => "write `x.at(x.len() - 1)`",
        "rev" => "write `x.enumerate().map(|(i, _)| x.at(x.len() - 1 - i))`",
        "reduce" | "scan" => "write `x.fold(0.0, |sum, v| sum + v, |a, b| a + b)`",
        "collect" => "leave it out: a row is a result itself",
        _ => return None,
    })
}

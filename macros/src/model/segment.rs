//! A segment: what enters it, what it runs, what leaves it.

use proc_macro2::Span;
use syn::{Expr, Ident, Local, Stmt};

use super::{Closure, Location};

/// A run of device statements, and the value behind it.
pub(crate) struct Segment {
    pub(crate) location: Location,
    /// In the order of their first use.
    pub(crate) live_ins: Vec<LiveIn>,
    /// Closures of outer scopes, which each segment makes for itself; in the order of need.
    pub(crate) closures: Vec<Local>,
    pub(crate) steps: Vec<Step>,
    pub(crate) live_outs: Vec<LiveOut>,
    pub(crate) ending: Ending,
    /// Where the run never reaches its end: a name for the outputs that it never gives.
    pub(crate) unreached: Option<Ident>,
    /// Where the run moves live-ins, host code moves them behind it: what the outputs are called meanwhile.
    pub(crate) outputs: Option<Ident>,
    /// Borrows that host code evaluates again, since a replay could not give them back.
    pub(crate) again: Vec<Local>,
}

/// A variable of host code that a segment uses.
pub(crate) enum LiveIn {
    /// Assigned before it is read: a variable of the segment's own.
    Fresh { ident: Ident, mutable: bool },
    /// The value as a whole; `eager` says that it comes from eager code, `moves` that the run moves it.
    Whole { ident: Ident, eager: bool, changes: bool, moves: bool },
    /// A `&mut`: the segment has a value of its own to write to.
    Exclusive { ident: Ident, eager: bool },
    /// A field path, and what the reference to it is called in the segment.
    Field { base: Ident, path: Vec<String>, eager: bool, name: Ident },
}

/// One step of what a segment runs.
pub(crate) enum Step {
    Statement(Stmt),
    Closure(Closure),
    /// A borrow, which may be made for later code only.
    Borrow(Stmt),
    /// A macro call that may bind a name anew, between questions whether it does.
    Probed {
        call: Stmt,
        macro_name: String,
        probes: Vec<Probe>,
    },
    /// A value that leaves the segment, kept before a later statement takes its name.
    Keep {
        output: Ident,
        ident: Ident,
        exclusive: bool,
    },
    /// What ends with the segment is asked whether it is a guard.
    AskEnd(Guard),
    /// A borrow that later code uses: rustc then sees that what it refers to is needed.
    StillUsed {
        ident: Ident,
        at: Span,
    },
}

/// A variable that a macro may bind anew, and the name of its place in memory before.
pub(crate) struct Probe {
    pub(crate) place: Ident,
    pub(crate) ident: Ident,
}

/// A value that may be a guard.
pub(crate) struct Guard {
    pub(crate) ident: Ident,
    /// Whether it is a reference to a temporary that lives as long as it does.
    pub(crate) lent: bool,
}

/// What host code has from a segment.
pub(crate) enum LiveOut {
    /// A variable of host code that the segment changes; `kept` says that the value was kept under the name of the output.
    Changed { ident: Ident, output: Ident, exclusive: bool, kept: bool },
    /// A binding of the run. `through` is a name to take it by, where its own is assigned first.
    Bound { ident: Ident, mutable: bool, through: Option<Ident> },
    /// A binding that is shadowed later in the run, under the name that it was kept by.
    Shadowed { ident: Ident, alias: Ident },
}

/// What a segment ends with, behind its statements.
pub(crate) enum Ending {
    /// Its outputs.
    Outputs,
    /// The function's result, and all that leaves.
    Result(Expr),
    /// A value that leaves under a name, beside the outputs; `result` says that it is the function's.
    Value { expr: Expr, name: Ident, result: bool },
}

impl LiveIn {
    /// What it is called in the plan; `None` for what no key holds.
    pub(crate) fn name(&self) -> Option<String> {
        match self {
            Self::Fresh { .. } => None,
            Self::Whole { ident, .. } | Self::Exclusive { ident, .. } => Some(ident.to_string()),
            Self::Field { base, path, .. } => Some(format!("{base}.{}", path.join("."))),
        }
    }

    /// Whether the run moves it.
    pub(crate) fn moves(&self) -> bool {
        matches!(self, Self::Whole { moves: true, .. })
    }
}

impl LiveOut {
    /// The user's name for it.
    pub(crate) fn ident(&self) -> &Ident {
        match self {
            Self::Changed { ident, .. } | Self::Bound { ident, .. } | Self::Shadowed { ident, .. } => ident,
        }
    }
}

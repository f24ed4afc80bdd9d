//! A segment: its live-ins, its steps, and its live-outs.

use proc_macro2::Span;
use syn::{Expr, Ident, Local, Pat, Stmt, Type};

use super::{DeviceFlow, Location};

/// A run of device statements, and the value after it.
pub(crate) struct Segment {
    pub(crate) location: Location,
    /// In the order of their first use.
    pub(crate) live_ins: Vec<LiveIn>,
    /// Closures of outer scopes, which each segment makes for itself; in the order of need.
    pub(crate) closures: Vec<Local>,
    pub(crate) steps: Vec<Step>,
    pub(crate) live_outs: Vec<LiveOut>,
    pub(crate) ending: Ending,
    /// Values that get a name inside of a statement, and are asked about there.
    pub(crate) lent: Vec<Guard>,
    /// The control flow of the device in its code.
    pub(crate) flows: Vec<DeviceFlow>,
    /// If the run never reaches its end: a name for the outputs that it never produces.
    pub(crate) unreached: Option<Ident>,
    /// If the run moves live-ins, host code moves them after it: the name of the outputs meanwhile.
    pub(crate) outputs: Option<Ident>,
}

/// A variable of host code that a segment uses.
pub(crate) enum LiveIn {
    /// Assigned before it is read: a variable of the segment's own, of the type that is written with its name.
    Fresh { ident: Ident, mutable: bool, ty: Option<Box<Type>> },
    /// The value as a whole; `eager` states that it comes from eager code, and `moves` that the run moves it.
    Whole { ident: Ident, eager: bool, changes: bool, moves: bool },
    /// A `&mut`: the segment writes to a value of its own.
    Exclusive { ident: Ident, eager: bool },
    /// A field path, and the name of the reference to it in the segment.
    Field { base: Ident, path: Vec<String>, eager: bool, name: Ident },
}

/// One step of a segment. Its code has the names that live-ins have there.
pub(crate) enum Step {
    Statement(Stmt),
    /// A borrow, which may be made for later code only.
    Borrow(Stmt),
    /// A macro call that may rebind a name, between checks whether it does.
    Probed {
        call: Stmt,
        macro_name: String,
        probes: Vec<Probe>,
    },
    /// A value that leaves the segment, kept before a later statement takes its name.
    Keep {
        output: Ident,
        ident: Ident,
    },
    /// A check whether a value that ends with the segment is a guard.
    AskEnd(Guard),
    /// A borrow that later code uses, so that rustc knows that its referent is needed.
    StillUsed {
        ident: Ident,
        at: Span,
    },
}

/// A variable that a macro may rebind, and the name of its earlier location in memory.
pub(crate) struct Probe {
    pub(crate) place: Ident,
    pub(crate) ident: Ident,
}

/// A value that may be a guard.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) ident: Ident,
    /// Where an error is shown.
    pub(crate) shown: Span,
    pub(crate) asked: Asked,
    /// What else is asked about: the types of what is written out inside of it, on each way to it.
    pub(crate) inside: Vec<Inside>,
}

/// A pattern of a value, and the names in it of values that may be guards.
#[derive(Clone)]
pub(crate) struct Inside {
    pub(crate) pat: Pat,
    pub(crate) parts: Vec<GuardPart>,
}

/// A part of a value, behind some references, whose own type is asked about.
#[derive(Clone)]
pub(crate) struct GuardPart {
    pub(crate) ident: Ident,
    pub(crate) references: usize,
}

impl Guard {
    /// Asks about all of a variable.
    pub(crate) fn whole(ident: Ident) -> Self {
        Self { shown: ident.span(), ident, asked: Asked::Whole, inside: Vec::new() }
    }

    /// Asks for less than the whole, if that is to be asked.
    pub(crate) fn ask_for(&mut self, asked: Asked) {
        if matches!(self.asked, Asked::Whole) {
            self.asked = asked;
        }
    }
}

/// What is asked about it.
#[derive(Clone)]
pub(crate) enum Asked {
    /// The value, and all that is in it.
    Whole,
    /// The temporary that it refers to, and that lives as long as it does.
    Referent,
    /// Its type alone: what is in it was asked before.
    Itself,
    /// The parts that a pattern leaves in it, and their names in that pattern; `itself` if its type may be a guard as well.
    Parts { pat: Box<Pat>, parts: Vec<Ident>, itself: bool },
}

/// A value that host code receives from a segment.
pub(crate) enum LiveOut {
    /// A variable of host code that the segment changes; `kept` states that the value was kept under the name
    /// of the output.
    Changed { ident: Ident, output: Ident, exclusive: bool, kept: bool },
    /// A binding of the run. `through` is a name to take it by, where its own is assigned first.
    Bound { ident: Ident, mutable: bool, through: Option<Ident> },
    /// A binding that is shadowed later in the run, under the name that it was kept by.
    Shadowed { ident: Ident, alias: Ident },
}

/// The ending of a segment, after its statements.
pub(crate) enum Ending {
    /// Its outputs.
    Outputs,
    /// The function's result, and all that leaves.
    Result(Expr),
    /// A value that leaves under a name, in addition to the outputs; `result` states that it is the
    /// function's result.
    Value { expr: Expr, name: Ident, result: bool },
}

/// The name of `self` in a segment.
pub(crate) fn this() -> Ident {
    Ident::new("__self", Span::mixed_site())
}

impl LiveIn {
    /// Returns its name in the plan; `None` if it is not part of a key.
    pub(crate) fn name(&self) -> Option<String> {
        match self {
            Self::Fresh { .. } => None,
            Self::Whole { ident, .. } | Self::Exclusive { ident, .. } => Some(ident.to_string()),
            Self::Field { base, path, .. } => Some(format!("{base}.{}", path.join("."))),
        }
    }

    /// Returns the variable that it is in the segment; `None` for a field.
    pub(crate) fn variable(&self) -> Option<&Ident> {
        match self {
            Self::Fresh { ident, .. } | Self::Whole { ident, .. } | Self::Exclusive { ident, .. } => {
                Some(ident)
            }
            Self::Field { .. } => None,
        }
    }

    /// Returns whether the run moves it.
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

//! Reports of passes on a recording.

use std::fmt;

use crate::base::bound::Bound;

/// The effect of a pass on a recording.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PassReport {
    /// The name of the pass.
    pub pass: &'static str,
    /// The largest difference of results from those without it; `None` if no bit changes.
    pub bound: Option<Bound>,
    /// Notes of a pass of yours: see [`Program::note`](crate::passes::Program::note).
    pub notes: Vec<String>,
    /// The operations that it made.
    pub made: Vec<PassMade>,
    /// The operations that it left as they were although it looks for such ones.
    pub refused: Vec<PassRefused>,
}

/// Operations that a pass made, all alike.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PassMade {
    /// The name of the operation.
    pub operation: &'static str,
    /// The number of operations that each replaces.
    pub replaces: usize,
    /// The number of them.
    pub count: usize,
}

/// Operations that a pass refused, all alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PassRefused {
    /// The name of an operation.
    pub operation: &'static str,
    /// The name of the operation that it was not joined with: one whose result it reads, or one that computes the same; or,
    /// of several that a pass of yours would have replaced, the first.
    pub after: Option<&'static str>,
    /// The name of the operation by which a pass of yours would have replaced it.
    pub by: Option<&'static str>,
    /// The reason.
    pub reason: PassRefusal,
    /// The number of them.
    pub count: usize,
}

/// The reason why a pass left operations as they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum PassRefusal {
    /// The second reads the result in another shape or order, or only a part of it.
    OtherElements,
    /// Memory that the first reads is written between them: it was freed, and is that of another tensor.
    WrittenBetween,
    /// Another operation between them reads what the first writes.
    ReadBetween,
    /// A result would be written where other elements of an input still have to be read.
    PlaceInUse,
    /// One kernel would have too many steps, inputs or outputs.
    TooLong,
    /// Too many operations lie between them.
    TooFar,
    /// No kernel does both.
    NoKernel,
    /// Memory of a result is written before its last use.
    Overwritten,
    /// A result of the second leaves the recording, the branch or the body, from its own memory.
    Leaves,
    /// Equal inputs need not give equal results, because an operation of a user was not declared deterministic.
    MayDiffer,
    /// A pass named a launch, or a tensor, of another program.
    OtherProgram,
    /// The pass has replaced one of the launches before.
    ReplacedBefore,
    /// A branch or a body begins or ends between them.
    Apart,
    /// It writes state, or keeps a part of what it writes.
    WritesInPlace,
    /// The replacement reads or writes a tensor that is not an operand of the launches, or writes one twice.
    OtherOperand,
    /// The replacement reads what the launches themselves compute.
    MadeInside,
    /// The replacement does not write a result that something else reads, or that lasts.
    MissingResult,
    /// The replacement takes elements of another type.
    OtherType,
    /// The replacement takes another shape.
    OtherShape,
    /// The replacement needs elements end to end.
    Strided,
    /// The replacement has other arguments than its kernel.
    OtherArguments,
    /// The replacement may not be captured.
    NotCapturable,
    /// The replacement is not known to return the same values in every run, which the deterministic mode requires.
    NotDeterministic,
    /// The replacement has no code for the device.
    NoCode,
    /// The replacement needs a larger workspace than the launch whose place it takes.
    Workspace,
}

impl std::error::Error for PassRefusal {}

impl fmt::Display for PassRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherElements => "it reads the result in another shape or order, or a part of it",
            Self::WrittenBetween => "memory that the first reads is written between them",
            Self::ReadBetween => "an operation between them reads what the first writes",
            Self::PlaceInUse => "a result would be written where other elements still have to be read",
            Self::TooLong => "one kernel would have too many steps, inputs or outputs",
            Self::TooFar => "too many operations lie between them",
            Self::NoKernel => "no kernel does both",
            Self::Overwritten => "memory of a result is written before its last use",
            Self::Leaves => "a result of the second leaves from its own memory",
            Self::MayDiffer => "equal inputs need not give equal results",
            Self::OtherProgram => "a launch or a tensor is one of another program",
            Self::ReplacedBefore => "the pass has replaced it before",
            Self::Apart => "a branch or a body begins or ends between them",
            Self::WritesInPlace => "it writes state, or keeps a part of what it writes",
            Self::OtherOperand => "a tensor is not an operand of it, or is written twice",
            Self::MadeInside => "the new operation would read what it replaces",
            Self::MissingResult => "the new operation does not write a result that is needed",
            Self::OtherType => "the new operation takes elements of another type",
            Self::OtherShape => "the new operation takes another shape",
            Self::Strided => "the new operation needs elements end to end",
            Self::OtherArguments => "the new operation has other arguments than its kernel",
            Self::NotCapturable => "the new operation may not be captured",
            Self::NotDeterministic => "the new operation is not declared to be deterministic",
            Self::NoCode => "the new operation has no code for the device",
            Self::Workspace => "the new operation needs a larger workspace",
        })
    }
}

impl PassReport {
    pub(crate) fn new(pass: &'static str) -> Self {
        Self { pass, bound: None, notes: Vec::new(), made: Vec::new(), refused: Vec::new() }
    }

    /// Returns whether it made, refused or noted anything.
    pub(crate) fn has_something(&self) -> bool {
        !self.made.is_empty() || !self.refused.is_empty() || !self.notes.is_empty()
    }

    /// Adds an operation that replaces that many.
    pub(crate) fn add_made(&mut self, operation: &'static str, replaces: usize) {
        let known =
            self.made.iter_mut().find(|made| made.operation == operation && made.replaces == replaces);
        match known {
            Some(made) => made.count += 1,
            None => self.made.push(PassMade { operation, replaces, count: 1 }),
        }
    }

    /// Adds two operations that were not joined.
    pub(crate) fn add_refused(&mut self, after: &'static str, operation: &'static str, reason: PassRefusal) {
        self.refuse(PassRefused { operation, after: Some(after), by: None, reason, count: 1 });
    }

    /// Adds operations that were not replaced by another one.
    pub(crate) fn add_not_replaced(
        &mut self,
        operations: &[&'static str],
        by: &'static str,
        reason: PassRefusal,
    ) {
        let (operation, after) = match operations {
            [] => ("", None),
            [one] => (*one, None),
            [first, .., last] => (*last, Some(*first)),
        };
        self.refuse(PassRefused { operation, after, by: Some(by), reason, count: 1 });
    }

    fn refuse(&mut self, new: PassRefused) {
        let is_alike = |r: &&mut PassRefused| PassRefused { count: 1, ..**r } == new;
        match self.refused.iter_mut().find(is_alike) {
            Some(refused) => refused.count += 1,
            None => self.refused.push(new),
        }
    }
}

impl fmt::Display for PassReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.pass)?;
        if let Some(bound) = self.bound {
            write!(f, " (within {bound})")?;
        }
        f.write_str(":")?;
        if !self.has_something() {
            return f.write_str(" nothing to do");
        }
        let mut between = "";
        for note in &self.notes {
            write!(f, "{between} {note}")?;
            between = ";";
        }
        for PassMade { operation, replaces, count } in &self.made {
            let s = if *replaces == 1 { "" } else { "s" };
            write!(f, "{between} {count} x {operation} for {replaces} operation{s} each")?;
            between = ",";
        }
        between = if between.is_empty() { "" } else { ";" };
        for PassRefused { operation, after, by, reason, count } in &self.refused {
            write!(f, "{between} not {operation}")?;
            after.iter().try_for_each(|after| write!(f, " with {after}"))?;
            by.iter().try_for_each(|by| write!(f, " by {by}"))?;
            write!(f, " ({count} x): {reason}")?;
            between = ";";
        }
        Ok(())
    }
}

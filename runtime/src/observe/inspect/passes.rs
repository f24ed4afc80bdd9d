//! What passes did to a recording.

use std::fmt;

/// What a pass did to a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PassReport {
    /// The name of the pass.
    pub pass: &'static str,
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
    /// How many there are.
    pub count: usize,
}

/// Operations that a pass refused, all alike.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PassRefused {
    /// The name of an operation.
    pub operation: &'static str,
    /// The name of the operation that it was not joined with: one whose result it reads, or one that computes the same.
    pub after: &'static str,
    /// The reason.
    pub why: PassRefusal,
    /// How many there are.
    pub count: usize,
}

/// Why a pass left two operations as they were.
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
}

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
        })
    }
}

impl PassReport {
    pub(crate) fn new(pass: &'static str) -> Self {
        Self { pass, made: Vec::new(), refused: Vec::new() }
    }

    /// Returns whether it made or refused anything.
    pub(crate) fn has_something(&self) -> bool {
        !self.made.is_empty() || !self.refused.is_empty()
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
    pub(crate) fn add_refused(&mut self, after: &'static str, operation: &'static str, why: PassRefusal) {
        let is_alike = |r: &&mut PassRefused| (r.after, r.operation, r.why) == (after, operation, why);
        match self.refused.iter_mut().find(is_alike) {
            Some(refused) => refused.count += 1,
            None => self.refused.push(PassRefused { operation, after, why, count: 1 }),
        }
    }
}

impl fmt::Display for PassReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.pass)?;
        if !self.has_something() {
            return f.write_str(" nothing to do");
        }
        for (index, PassMade { operation, replaces, count }) in self.made.iter().enumerate() {
            write!(
                f,
                "{} {count} x {operation} for {replaces} operations each",
                if index > 0 { "," } else { "" }
            )?;
        }
        for (index, PassRefused { operation, after, why, count }) in self.refused.iter().enumerate() {
            let between = if index > 0 || !self.made.is_empty() { ";" } else { "" };
            write!(f, "{between} not {operation} with {after} ({count} x): {why}")?;
        }
        Ok(())
    }
}

//! Numbers that are parts of operations.

/// A number that is a part of a launch: a constant of the recording.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Constant {
    /// A float.
    Float(f64),
    /// An integer of any type.
    Integer(i128),
    /// A bool.
    Bool(bool),
}

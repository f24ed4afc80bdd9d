//! The head of a function, as its body sees it.

use syn::{Ident, Lifetime, Type};

/// The known facts about a function before its body is read.
pub(crate) struct Header<'a> {
    /// The function's name.
    pub(crate) name: String,
    /// Its return type, lifetimes filled.
    pub(crate) ret: &'a Type,
    /// The lifetime of the step.
    pub(crate) step: &'a Lifetime,
    /// Names of its parameters (`self` too, for methods).
    pub(crate) params: Vec<&'a Ident>,
    /// Parameters that are declared `mut`.
    pub(crate) mutable: Vec<&'a Ident>,
    /// Parameters that may hold state: references to structs of parameters.
    pub(crate) holding: Vec<&'a Ident>,
    /// Parameters that are neither references nor numbers.
    pub(crate) owned: Vec<&'a Ident>,
    /// Parameters that are references.
    pub(crate) references: Vec<&'a Ident>,
    /// Parameters that hold no tensor: weights, state and host values.
    pub(crate) host: Vec<&'a Ident>,
}

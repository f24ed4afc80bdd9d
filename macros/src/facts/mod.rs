//! Facts about a statement or an expression by itself: the variables that it uses and assigns, whether it leaves the code
//! around it, and what the names of methods, macros and operations say. They depend on nothing before or after it.

pub(crate) mod assigned;
pub(crate) mod classify;
pub(crate) mod effects;
pub(crate) mod jumps;
pub(crate) mod macros;
pub(crate) mod operations;
pub(crate) mod sizes;
pub(crate) mod statement;
pub(crate) mod uses;
pub(crate) mod values;

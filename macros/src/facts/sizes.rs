//! Methods that return a number, whatever they are called on.
//!
//! The macro sees no types, so it knows such a method by its name. What it concludes is never needed for a recording to be
//! right: a name that is not known here makes a value cross a boundary or be part of a segment that could be host code, or
//! a region stay where it is.

use syn::Ident;

/// Methods that return the size or the type of a tensor, or the size of a container of tensors; they read nothing from the
/// device. These are the methods of our types, which `ui-tests/tests/names.rs` compares with this list.
const SIZES: [&str; 7] = ["shape", "dim", "rank", "count", "dtype", "len", "is_empty"];

/// Of these, those that return a reference.
const SLICES: [&str; 1] = ["shape"];

/// Methods of an `Option`. If it is a value of eager code, so is their result.
const PRESENCE: [&str; 2] = ["is_some", "is_none"];

fn is_among(method: &Ident, names: &[&str]) -> bool {
    names.iter().any(|name| method == name)
}

/// Returns whether a method returns the size or the type of its receiver.
pub(crate) fn is_size(method: &Ident) -> bool {
    is_among(method, &SIZES)
}

/// Returns whether a method returns a size, a type or a presence, and nothing else of its receiver.
pub(crate) fn is_number(method: &Ident) -> bool {
    is_size(method) || is_among(method, &PRESENCE)
}

/// Returns whether a method returns such a number by value.
pub(crate) fn is_owned_number(method: &Ident) -> bool {
    is_number(method) && !is_among(method, &SLICES)
}

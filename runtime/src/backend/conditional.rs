//! Conditional nodes: parts of a graph that run depending on a value on the device.

use super::View;

/// A node of a graph with bodies, of which at most one runs, or one after the other.
///
/// When the node is reached, body number `*selector` runs, if there is one of that number. With `repeats`, the
/// selector is then read again, and so on until it is the number of no body: the body writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditional {
    /// The construct that it is made of, for topologies: `cond`, `switch` or `while`.
    pub name: &'static str,
    /// A `u32` on the device.
    pub selector: View,
    /// The number of bodies, at least 1. A node that repeats has one.
    pub bodies: usize,
    /// Set if the selector is read again after a body has run.
    pub repeats: bool,
}

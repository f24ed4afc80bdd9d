//! Host values and device inputs on their way into a graph.

/// Being written.
pub(crate) struct PutPlan;
/// Being written.
pub(crate) struct Puts;

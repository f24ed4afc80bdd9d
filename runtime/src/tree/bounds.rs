//! The largest difference of a recording's results from those of its body.

use crate::base::bound::{Bound, BoundedPart};

/// The largest difference of a recording's results from those of its body, where passes of users have declared a bound.
#[derive(Debug)]
pub(crate) struct ResultBounds {
    /// For each output, in order; `None` if its bits are the same.
    pub(crate) outputs: Box<[Option<Bound>]>,
    /// For each state that it writes, the parts whose bits may differ, in order.
    pub(crate) states: Box<[Vec<BoundedPart>]>,
}

//! Operations whose results depend on the order of the elements along an axis: sums up to each, and sorting.

mod lines;
mod scan;
mod sort;

pub use scan::cumsum;
pub use sort::{argsort, sort, topk};

#[cfg(feature = "cuda")]
use crate::kernel::definition::Definition;

/// The kernels of this folder, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    scan::kernels().chain(sort::kernels())
}

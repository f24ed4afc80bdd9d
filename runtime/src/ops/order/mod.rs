//! Operations whose results depend on the order of the elements along an axis: sums up to each, sorting, and groups of
//! equal numbers.

mod groups;
mod lines;
mod scan;
mod sort;

pub(super) use groups::Groups;
pub use scan::cumsum;
pub use sort::{argsort, sort, topk};

#[cfg(feature = "cuda")]
use crate::kernel::definition::Definition;

/// The kernels of this folder, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    scan::kernels().chain(sort::kernels()).chain(groups::kernels())
}

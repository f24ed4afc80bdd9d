//! Entries along an axis in the order of numbers that they have: those of one number lie side by side.

use super::{lines::Lines, sort::sorted_places};
#[cfg(feature = "cuda")]
use crate::kernel::definition::Definition;
use crate::{
    Result, Tensor,
    kernel::{call::Call, definition::Kernel as _},
};

mod of {
    use crate::kernel;

    /// The number of entries of the line below the number of the group, which is where the group begins.
    #[kernel(index)]
    pub(super) fn begins(
        numbers: View<u32, 2>,
        order: View<u32, 2>,
        #[key] steps: u32,
        [line, group]: [i32; 2],
    ) -> u32 {
        let mut low = 0;
        let mut high = order.dim(1);
        for _ in 0..steps {
            if low < high {
                let half = (low + high) / 2;
                if numbers.at([line, order.at([line, half]) as i32]) < group as u32 {
                    low = half + 1;
                } else {
                    high = half;
                }
            }
        }
        low as u32
    }
}

/// Entries in groups.
pub(in crate::ops) struct Groups<'s> {
    /// The places of the entries along the axis, ordered by their numbers; entries of one number are in their order.
    pub(in crate::ops) order: Tensor<'s, u32>,
    /// For each number up to the count of groups, where its entries begin in `order`: one more than there are groups, so
    /// that each group ends where the next one begins.
    pub(in crate::ops) begins: Tensor<'s, u32>,
}

impl<'s> Groups<'s> {
    /// Groups the entries along `axis`, which is not padded, by `numbers` from 0 to `count`. Entries of larger numbers are
    /// behind all groups.
    pub(in crate::ops) fn of(
        name: &'static str,
        numbers: &Tensor<'s, u32>,
        axis: usize,
        count: usize,
    ) -> Result<Self> {
        let (lines, rows) = Lines::of(name, numbers, axis)?;
        let order = sorted_places(&rows, lines.length, false, None)?;
        let mut call = Call::new(of::begins::DEFINITION, &rows)?;
        call.argument::<u32>(&order)?;
        call.key(usize::BITS - lines.length.leading_zeros());
        let begins: Tensor<'s, u32> = call.launch_indexed([lines.count, count.saturating_add(1)])?;
        Ok(Self { order: lines.restore(&order)?, begins: lines.restore(&begins)? })
    }
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    std::iter::once(of::begins::DEFINITION)
}

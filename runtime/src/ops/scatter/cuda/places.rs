//! The rows of a state that a scatter writes: of equal indices the last one counts.
//!
//! If there are few indices, each row searches for a later index with the same value. For many that would be
//! quadratic, so a table in workspace memory holds the last index of each row: one kernel clears it, one
//! fills it.

use bytemuck::{Pod, Zeroable};

use super::SOURCE;
use crate::{
    Result,
    backend::{
        Launch, View,
        cuda::kernels::{FaultSink, Grid, Kernel, Submit, THREADS, submit},
    },
};

/// Up to this number of indices are searched: the reads of each thread take less time than two more kernels.
const FEW: u64 = 2048;

/// Mirrors `Places` of `common.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(in crate::ops) struct Places {
    index: u64,
    real: u64,
    sink: FaultSink,
    op: u32,
    base: u32,
    n: u64,
    index_stride: u64,
    rows: u64,
    table: u64,
    mask: u64,
}
const _: () = assert!(size_of::<Places>() == 80);

/// Slots of the table for so many indices, at most half of them used; 0 where none is needed.
fn slots(indices: u64) -> u64 {
    match indices {
        // A slot holds an index in 32 bits.
        n if n <= FEW || n > u64::from(u32::MAX) => 0,
        n => (2 * n).next_power_of_two(),
    }
}

/// Bytes of workspace that placing rows by `index` needs.
pub(in crate::ops) fn workspace_bytes(index: &View) -> u64 {
    slots(index.layout.count() as u64) * 8
}

impl Places {
    /// Returns where `index` sends rows of the output; `real` counts those that are written. The workspace of
    /// the launch has [`workspace_bytes`] bytes, which the kernels of this call fill.
    pub(in crate::ops) fn find(
        gpu: &mut dyn Submit,
        launch: &Launch,
        index: &View,
        real: Option<&View>,
    ) -> Result<Self> {
        Self::new(gpu, launch, index, real).entered(gpu)
    }

    /// With a table that is still to be filled.
    fn new(gpu: &mut dyn Submit, launch: &Launch, index: &View, real: Option<&View>) -> Self {
        let n = index.layout.count() as u64;
        let slots = slots(n);
        Self {
            index: index.addr,
            real: real.map_or(0, |view| view.addr),
            sink: gpu.faults(),
            op: gpu.fault_op(launch.op.name()),
            base: 0,
            n,
            index_stride: index.layout.strides()[0] as u64,
            rows: launch.outputs[0].layout.shape()[0] as u64,
            table: if slots > 0 { launch.workspace } else { 0 },
            mask: slots.saturating_sub(1),
        }
    }

    /// Fills the table, if there is one.
    fn entered(self, gpu: &mut dyn Submit) -> Result<Self> {
        let slots = slots(self.n);
        if slots > 0 {
            for (name, items) in [("places_clear", slots), ("places_enter", self.n)] {
                let grid = Grid::line(gpu.props().blocks_for(items, THREADS), THREADS);
                submit(gpu, Kernel::plain(&SOURCE, name), grid, &self)?;
            }
        }
        Ok(self)
    }

    /// Likewise, with indices that count from 1; 0 is skipped.
    pub(super) fn find_from_one(gpu: &mut dyn Submit, launch: &Launch, index: &View) -> Result<Self> {
        Self { base: 1, ..Self::new(gpu, launch, index, None) }.entered(gpu)
    }

    /// Returns the number of indices, including those that are not written.
    pub(in crate::ops) fn n(&self) -> u64 {
        self.n
    }

    #[cfg(test)]
    pub(in crate::ops) fn shown(&self) -> (u64, u64, u64) {
        (self.n, self.rows, self.real)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        DType,
        backend::cuda::kernels::testing::{Recorder, whole},
        ops::scatter::operation::SCATTER_ROWS,
    };

    fn scatter(n: usize) -> Recorder {
        let (index, x) = (whole(0x100, DType::U32, &[n]), whole(0x1000, DType::F32, &[n, 4]));
        Recorder::of(SCATTER_ROWS, &[index, x], &[whole(0x8000_0000, DType::F32, &[9, 4])])
    }

    fn names(run: &Recorder) -> Vec<&str> {
        run.calls.iter().map(|call| call.0.name).collect()
    }

    /// `enter` and `last` of `common.cuh`, the indices coming in the order of `order`.
    fn table(rows: &[u32], order: &[usize]) -> Vec<u64> {
        let slots = slots(rows.len() as u64);
        let mask = slots - 1;
        let mut table = vec![0u64; slots as usize];
        let first = |row: u32| (u64::from(row).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) & mask;
        for &i in order {
            let mine = (u64::from(rows[i]) + 1) << 32 | i as u64;
            let mut slot = first(rows[i]);
            while table[slot as usize] != 0 && table[slot as usize] >> 32 != mine >> 32 {
                slot = (slot + 1) & mask;
            }
            let there = &mut table[slot as usize];
            *there = mine.max(*there);
        }
        let last = |row: u32| {
            let mut slot = first(row);
            while table[slot as usize] >> 32 != u64::from(row) + 1 {
                slot = (slot + 1) & mask;
            }
            table[slot as usize] & 0xffff_ffff
        };
        rows.iter().map(|&row| last(row)).collect()
    }

    #[test]
    fn the_last_index_wins_in_any_order() {
        let n = 5000usize;
        let rows: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(2_654_435_761) % 700).collect();
        let forward: Vec<usize> = (0..n).collect();
        let backward: Vec<usize> = (0..n).rev().collect();
        let mixed: Vec<usize> = (0..n).map(|i| i * 1361 % n).collect();
        let want: Vec<u64> =
            rows.iter().map(|row| rows.iter().rposition(|r| r == row).unwrap() as u64).collect();
        for order in [forward, backward, mixed] {
            assert_eq!(table(&rows, &order), want);
        }
    }

    #[test]
    fn few_are_looked_through_and_many_take_a_table_of_linear_size() {
        assert_eq!(names(&scatter(2048)), ["scatter_16"]);
        let run = scatter(100_000);
        assert_eq!(names(&run), ["places_clear", "places_enter", "scatter_16"]);
        let (clear, enter): (Places, Places) = (run.params(0), run.params(1));
        assert_eq!((clear.table, clear.mask), (enter.table, enter.mask));
        assert_eq!(clear.mask + 1, 262_144);
        for n in [2049u64, 100_000, 1 << 30] {
            let bytes = workspace_bytes(&whole(0x100, DType::U32, &[n as usize]));
            assert!((16 * n..=32 * n).contains(&bytes), "{n}: {bytes}");
        }
        assert_eq!(workspace_bytes(&whole(0x100, DType::U32, &[2048])), 0);
    }
}

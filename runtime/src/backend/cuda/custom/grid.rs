//! The launch geometry of users' kernels.

use crate::{Error, Result};

/// The number of blocks, and of threads in each, with which a kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CudaGrid {
    /// Blocks along x, y and z.
    pub blocks: [u32; 3],
    /// Threads of a block along x, y and z.
    pub threads: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
}

impl CudaGrid {
    /// Returns a grid without dynamic shared memory.
    pub fn new(blocks: [u32; 3], threads: [u32; 3]) -> Self {
        Self { blocks, threads, shared_bytes: 0 }
    }

    /// Returns enough blocks of `threads` threads, along x, for one thread for each of `count` elements; at most 2³¹ - 1
    /// blocks.
    pub fn for_elements(count: usize, threads: u32) -> Self {
        let blocks = (count as u64).div_ceil(u64::from(threads.max(1))).clamp(1, i32::MAX as u64);
        Self::new([blocks as u32, 1, 1], [threads, 1, 1])
    }

    /// Returns the grid with so much dynamic shared memory.
    #[must_use]
    pub fn shared_bytes(self, bytes: u32) -> Self {
        Self { shared_bytes: bytes, ..self }
    }

    /// Refuses a grid that no device can run.
    pub(crate) fn check(&self, op: &'static str) -> Result<()> {
        const BLOCKS: [u32; 3] = [i32::MAX as u32, u16::MAX as u32, u16::MAX as u32];
        const THREADS: [u32; 3] = [1024, 1024, 64];
        let within = |sizes: [u32; 3], limits: [u32; 3]| {
            sizes.into_iter().zip(limits).all(|(size, limit)| (1..=limit).contains(&size))
        };
        let threads: u64 = self.threads.iter().map(|&n| u64::from(n)).product();
        if within(self.blocks, BLOCKS) && within(self.threads, THREADS) && threads <= 1024 {
            return Ok(());
        }
        let reason = format!(
            "blocks {:?} of threads {:?}; there may be 1 to {BLOCKS:?} blocks of 1 to {THREADS:?} threads, \
             at most 1024 threads in a block",
            self.blocks, self.threads
        );
        Err(Error::Argument { op, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_that_no_device_runs_are_refused() {
        for (blocks, threads) in [
            ([0, 1, 1], [32, 1, 1]),
            ([1, 1, 0], [32, 1, 1]),
            ([1, 1, 1], [32, 0, 1]),
            ([u32::MAX, 1, 1], [32, 1, 1]),
            ([1, 65_536, 1], [32, 1, 1]),
            ([1, 1, 65_536], [32, 1, 1]),
            ([1, 1, 1], [1025, 1, 1]),
            ([1, 1, 1], [64, 32, 1]),
            ([1, 1, 1], [1, 1, 65]),
        ] {
            let refused = CudaGrid::new(blocks, threads).check("wide").unwrap_err();
            assert!(matches!(refused, Error::Argument { op: "wide", .. }), "{refused}");
            assert!(refused.to_string().contains(&format!("blocks {blocks:?} of threads {threads:?}")));
        }
        for (blocks, threads) in [([i32::MAX as u32, 65_535, 65_535], [1024, 1, 1]), ([1, 1, 1], [4, 4, 64])]
        {
            CudaGrid::new(blocks, threads).check("wide").unwrap();
        }
        CudaGrid::for_elements(0, 128).check("none").unwrap();
        CudaGrid::for_elements(usize::MAX, 128).check("many").unwrap();
    }
}

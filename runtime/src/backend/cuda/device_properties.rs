//! Device properties.

/// Facts about a device that decide how kernels are launched.
#[derive(Clone, Debug)]
pub(crate) struct DeviceProperties {
    /// As the driver names it.
    pub(crate) name: String,
    /// Compute capability, such as `(9, 0)`.
    pub(crate) capability: (u32, u32),
    /// Streaming multiprocessors.
    pub(crate) multiprocessors: u32,
    /// Set if address ranges can be reserved and mapped as they grow.
    pub(crate) virtual_memory: bool,
    /// Set if memory can be allocated in stream order.
    pub(crate) pools: bool,
    /// Set if a kernel can be started while its predecessor ends.
    pub(crate) overlaps: bool,
    /// Set if the driver supports kernels with more than 4 KB of parameters.
    pub(crate) large_params: bool,
}

impl DeviceProperties {
    /// An H200, for tests without one.
    #[cfg(test)]
    pub(crate) fn h200() -> Self {
        Self {
            name: "an H200 of a test".into(),
            capability: (9, 0),
            multiprocessors: 132,
            virtual_memory: true,
            pools: true,
            overlaps: true,
            large_params: true,
        }
    }

    /// Returns the most blocks of a cluster: 8 on every device that has them. An H100 or H200 as a whole has room for 16; parts of
    /// one (MIG) may not have.
    pub(crate) fn largest_cluster(&self) -> usize {
        match self.capability {
            (9, 0) if self.multiprocessors >= 100 => 16,
            capability if capability >= (9, 0) => 8,
            _ => 1,
        }
    }

    /// Returns whether it has tensor cores for TF32.
    pub(crate) fn has_tf32(&self) -> bool {
        self.capability >= (8, 0)
    }

    /// Returns the target of compilation: the accelerated target if there is one.
    pub(crate) fn arch(&self) -> String {
        let (major, minor) = self.capability;
        let suffix = if major >= 9 { "a" } else { "" };
        format!("sm_{major}{minor}{suffix}")
    }

    /// Returns the number of blocks of `threads` that cover `items`, but at most as many as run at the same
    /// time; the kernel loops.
    pub(crate) fn blocks_for(&self, items: u64, threads: u32) -> u32 {
        let most = u64::from(self.multiprocessors) * u64::from(2048 / threads).max(1);
        items.div_ceil(u64::from(threads)).clamp(1, most) as u32
    }
}

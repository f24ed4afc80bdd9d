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
    /// Whether address ranges can be reserved and mapped as they grow.
    pub(crate) virtual_memory: bool,
    /// Whether memory can be allocated in stream order.
    pub(crate) pools: bool,
    /// Whether a kernel may be brought up while the one before it ends.
    pub(crate) overlaps: bool,
    /// Whether the driver takes kernels with more than 4 KB of parameters.
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

    /// What to compile for: the accelerated target where there is one.
    pub(crate) fn arch(&self) -> String {
        let (major, minor) = self.capability;
        let suffix = if major >= 9 { "a" } else { "" };
        format!("sm_{major}{minor}{suffix}")
    }

    /// Blocks of `threads` that cover `items`, at most as many as run at once; the kernel loops.
    pub(crate) fn blocks_for(&self, items: u64, threads: u32) -> u32 {
        let most = u64::from(self.multiprocessors) * u64::from(2048 / threads).max(1);
        items.div_ceil(u64::from(threads)).clamp(1, most) as u32
    }
}

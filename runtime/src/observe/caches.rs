//! Compilations and measurements that a runtime keeps.

/// The contents of the caches of compiled kernels and of the algorithms of libraries, and what they were good for; returned by
/// [`Runtime::caches`](crate::Runtime::caches). On the CPU, which has no such caches, everything is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// The number of kernels that this runtime has loaded. Their code stays on the device for the life of the process, since
    /// recordings of any runtime may contain it.
    pub kernels: usize,
    /// The number of compilations by this process: of a source for one element type, or of one kernel of it, where our own
    /// sources are compiled kernel by kernel.
    pub compiled: u64,
    /// The number of those whose code this process has loaded from the folder instead.
    pub compiled_on_disk: u64,
    /// The number of products whose algorithm is known, at most
    /// [`CudaOptions::product_plans`](crate::CudaOptions::product_plans) and those of recordings.
    pub product_plans: usize,
    /// The number of them that recordings need, and keep.
    pub pinned_product_plans: usize,
    /// The number of products that were measured by this runtime.
    pub measured: u64,
    /// The number of products whose measured algorithm was found in the folder instead.
    pub measured_on_disk: u64,
    /// The number of products that were forgotten because there were too many.
    pub product_plans_evicted: u64,
    /// The number of convolutions whose algorithm is known, at most
    /// [`CudaOptions::convolution_plans`](crate::CudaOptions::convolution_plans).
    pub convolution_plans: usize,
    /// The number of files in the folder, of all processes.
    pub disk_entries: usize,
    /// Their bytes.
    pub disk_bytes: u64,
    /// The number of files that this runtime has removed because of
    /// [`CudaOptions::cache_limit`](crate::CudaOptions::cache_limit).
    pub disk_evicted: u64,
}

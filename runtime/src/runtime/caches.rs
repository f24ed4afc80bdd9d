//! The caches of compiled kernels and chosen algorithms.

use crate::{CacheStats, Result, Runtime};

impl Runtime {
    /// Returns what is kept of compilations and measurements, in memory and on disk. Reads the cache folder.
    ///
    /// Sizes and limits are options of the device ([`CudaOptions`](crate::CudaOptions)).
    pub fn caches(&self) -> CacheStats {
        self.core.borrow().stream.backend().caches()
    }

    /// Forgets which algorithm is used for each product and convolution, except for those that recordings need. They are
    /// looked up again on disk when they are needed, or measured.
    ///
    /// ```
    /// # use graphable::prelude::*;
    /// let mut rt = Runtime::new(Device::best()?)?;
    /// # drop(rt.step()?);
    /// rt.clear_caches()?;
    /// assert_eq!(rt.caches().product_plans, 0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns errors of the device.
    pub fn clear_caches(&mut self) -> Result<()> {
        self.core.get_mut().stream.backend_mut().clear_caches()
    }

    /// Removes the files of the cache folder, of all processes, and returns the number of their bytes. Nothing that is in
    /// memory is forgotten, and other files in the folder are left alone. A process that starts later compiles and measures
    /// again.
    ///
    /// # Errors
    /// Returns errors of the device. A file that cannot be removed is logged as a `tracing` warning.
    pub fn clear_disk_cache(&mut self) -> Result<u64> {
        self.core.get_mut().stream.backend_mut().clear_disk_cache()
    }
}

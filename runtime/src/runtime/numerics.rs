//! The switches of the numerics.

use crate::{Numerics, Runtime};

impl Runtime {
    /// Sets the switches of the numerics: TF32, reduced-precision reductions, the deterministic mode. They apply to everything
    /// that is launched from now on, except in calls of graphs that have [their own](crate::GraphBuilder::numerics). Default:
    /// full precision.
    ///
    /// Recordings have them in their keys. A call after a change warms up and records anew; the recordings from before remain,
    /// and are replayed after a change back. On the CPU, products are computed in f32 whatever the switches say, and the
    /// deterministic mode only rejects operations that are not declared to be deterministic.
    ///
    /// ```
    /// # use graphable::{Numerics, prelude::*};
    /// # let rt = Runtime::new(Device::cpu())?;
    /// rt.set_numerics(Numerics::default().tf32(true));
    /// assert!(rt.numerics().tf32);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn set_numerics(&self, numerics: Numerics) {
        self.core.borrow_mut().settings.set_numerics(numerics);
    }

    /// Returns the switches of the numerics, as [`set_numerics`](Self::set_numerics) set them.
    pub fn numerics(&self) -> Numerics {
        self.core.borrow().settings.numerics()
    }
}

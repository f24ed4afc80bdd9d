//! The passes over new recordings.

use crate::{Passes, Runtime};

impl Runtime {
    /// Sets the passes over recordings, except in calls of graphs that have [their own](crate::GraphBuilder::passes). Default: all
    /// built-in ones, as [`Passes::default`] lists them.
    ///
    /// A recording is a list of operations before it is a graph. Passes rewrite it: they join operations, for instance, so
    /// that fewer kernels run and less memory is read. With the built-in ones, values are the same in both cases, bit by bit, and so
    /// are warm-up, audits, memory and everything else that a program can observe but time and the recording's
    /// [topology](Self::topology). What each pass did to a recording, and what it had to leave, is in
    /// [`TreeRecording::passes`](crate::inspect::TreeRecording::passes). [`passes`](crate::passes) is about passes of your own.
    ///
    /// Recordings have the passes in their keys. A call after a change warms up and records anew; the recordings from before remain,
    /// and are replayed after a change back.
    ///
    /// ```
    /// # use graphable::{Passes, Runtime, Device};
    /// let rt = Runtime::new(Device::cpu())?;
    /// rt.set_passes(Passes::none());
    /// assert_eq!(rt.passes().names().count(), 0);
    /// # Ok::<(), graphable::Error>(())
    /// ```
    pub fn set_passes(&self, passes: Passes) {
        let old = self.core.borrow_mut().settings.set_passes(passes);
        // A pass of a user may do anything when it is dropped.
        drop(old);
    }

    /// Returns the passes over new recordings, as [`set_passes`](Self::set_passes) set them.
    pub fn passes(&self) -> Passes {
        self.core.borrow().settings.passes().clone()
    }
}

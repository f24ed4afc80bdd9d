//! Time on the device between two points of its work.

use std::{sync::Arc, time::Duration};

use crate::{Eager, Error, Result, backend::Mark};

/// A point in the work of a runtime's device, returned by [`Eager::record_event`].
///
/// It outlives its step, and can be used on any thread.
#[derive(Clone, Debug)]
pub struct DeviceEvent {
    mark: Arc<dyn Mark>,
    runtime: u64,
}

impl Eager<'_> {
    /// Marks the end of the work that the device has been given so far. Two events measure how long the work
    /// between them took on the device, whatever the host did meanwhile:
    ///
    /// ```
    /// # fn main() -> graphable::Result<()> {
    /// # use graphable::prelude::*;
    /// let mut rt = Runtime::new(Device::cpu())?;
    /// let step = rt.step()?;
    /// let x = step.tensor(&[1024], &[1.0f32; 1024])?;
    /// let begin = step.record_event()?;
    /// let y = ops::exp(&x)?;
    /// let end = step.record_event()?;
    /// println!("exp took {:?}", end.elapsed_since(&begin)?);
    /// # drop(y);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Works between calls and in eager regions. Does not wait; between two replays it costs a few
    /// microseconds.
    ///
    /// # Errors
    /// Returns [`Error::CapabilityInSegment`] in a segment, and in a region that full mode captures, because
    /// a recording has no time of its own.
    pub fn record_event(&self) -> Result<DeviceEvent> {
        let mut core = self.rt.core.borrow_mut();
        core.call.may_look("an event")?;
        Ok(DeviceEvent { mark: core.stream.backend_mut().mark()?, runtime: self.rt.id() })
    }
}

impl DeviceEvent {
    /// Returns whether the device has reached the event.
    ///
    /// # Errors
    /// Returns earlier failures of the device.
    pub fn is_done(&self) -> Result<bool> {
        self.mark.is_reached()
    }

    /// Waits until the device has reached the event.
    ///
    /// # Errors
    /// Returns earlier failures of the device, such as [`Error::ContextLost`].
    pub fn wait(&self) -> Result<()> {
        self.mark.wait()
    }

    /// Returns the time on the device from `earlier` to this event; waits for both. On a GPU, the resolution
    /// is about half a microsecond.
    ///
    /// # Errors
    /// Returns [`Error::DifferentRuntimes`]; [`Error::Argument`] if `earlier` was recorded later; and
    /// failures of the device.
    pub fn elapsed_since(&self, earlier: &Self) -> Result<Duration> {
        const OP: &str = "elapsed_since";
        if self.runtime != earlier.runtime {
            return Err(Error::DifferentRuntimes { op: OP });
        }
        earlier.wait()?;
        self.wait()?;
        self.mark.since(&*earlier.mark)?.ok_or_else(|| Error::Argument {
            op: OP,
            reason: "the event that is said to be earlier was recorded later; exchange them".into(),
        })
    }
}

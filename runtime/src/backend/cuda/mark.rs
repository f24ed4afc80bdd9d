//! Points in the stream that have a time.

use std::{any::Any, sync::Arc, time::Duration};

use super::{driver::Event, shared::Shared};
use crate::{Result, backend::Mark};

/// A point in the stream, with the device's time.
#[derive(Debug)]
pub(super) struct CudaMark {
    event: Event,
    shared: Arc<Shared>,
}

impl CudaMark {
    /// Creates a mark after the work that is currently on the stream.
    ///
    /// # Errors
    /// Returns errors of the driver.
    pub(super) fn new(shared: &Arc<Shared>) -> Result<Self> {
        let event = Event::new(&shared.context, true)?;
        event.record(&shared.stream)?;
        Ok(Self { event, shared: Arc::clone(shared) })
    }
}

impl Mark for CudaMark {
    fn is_reached(&self) -> Result<bool> {
        self.event.is_done()
    }

    fn wait(&self) -> Result<()> {
        self.shared.wait(&self.event)
    }

    fn since(&self, earlier: &dyn Mark) -> Result<Option<Duration>> {
        let earlier = earlier.as_any().downcast_ref::<Self>();
        let Some(earlier) = earlier.filter(|earlier| Arc::ptr_eq(&earlier.shared, &self.shared)) else {
            return Ok(None);
        };
        let milliseconds = f64::from(earlier.event.elapsed(&self.event)?);
        Ok(Duration::try_from_secs_f64(milliseconds / 1e3).ok())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

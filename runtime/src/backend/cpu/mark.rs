//! Points in the stream that have a time.

use std::{
    any::Any,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::{Error, Result, backend::Mark};

/// The state of a mark: the worker has passed it, or the reason why it never will.
type Reached = Result<Instant>;

#[derive(Debug, Default)]
struct Point {
    reached: Mutex<Option<Reached>>,
    changed: Condvar,
}

impl Point {
    fn set(&self, reached: Reached) {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reached);
        self.changed.notify_all();
    }
}

/// The side that reaches the mark. If it is dropped first, the device is lost.
pub(super) struct Coming(Arc<Point>);

/// The side that asks.
#[derive(Debug)]
pub(super) struct CpuMark(Arc<Point>);

/// Both sides of one point.
pub(super) fn mark() -> (Coming, CpuMark) {
    let point = Arc::<Point>::default();
    (Coming(Arc::clone(&point)), CpuMark(point))
}

impl Coming {
    /// The worker is there.
    pub(super) fn reach(self) {
        self.0.set(Ok(Instant::now()));
    }

    pub(super) fn fail(self, error: Error) {
        self.0.set(Err(error));
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        self.0.set(Err(Error::ContextLost {
            device: super::errors::NAME.into(),
            reason: "its runtime was dropped before this was done".into(),
        }));
    }
}

impl CpuMark {
    fn reached(&self) -> Reached {
        let mut reached = self.0.reached.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*reached {
                Some(Ok(at)) => return Ok(*at),
                Some(Err(Error::ContextLost { device, reason })) => {
                    return Err(Error::ContextLost { device: device.clone(), reason: reason.clone() });
                }
                // A stream that is not lost comes by.
                Some(Err(other)) => return Err(super::errors::failed("an event", other.to_string())),
                None => reached = self.0.changed.wait(reached).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Mark for CpuMark {
    fn is_reached(&self) -> Result<bool> {
        Ok(self.0.reached.lock().unwrap_or_else(PoisonError::into_inner).is_some())
    }

    fn wait(&self) -> Result<()> {
        self.reached().map(drop)
    }

    fn since(&self, earlier: &dyn Mark) -> Result<Option<Duration>> {
        let Some(earlier) = earlier.as_any().downcast_ref::<Self>() else { return Ok(None) };
        Ok(self.reached()?.checked_duration_since(earlier.reached()?))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

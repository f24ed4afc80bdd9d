//! Values that graphs pass to the host while they run.

use std::{
    fmt,
    marker::PhantomData,
    sync::{Arc, atomic::AtomicU32},
};

use crate::{
    Element, Error, Result, Runtime, Scope, State,
    backend::{HostLog, View},
};

/// Host memory to which graphs append values, and which the host reads while they run: on a GPU, pinned memory.
///
/// A call's results are there when all of it has ended. What [`ops::append`](crate::ops::append) adds to a log, the host sees
/// at once, also from the rounds of a `#[device] while`: tokens of an answer, the progress of a solver.
///
/// A [`LogReader`](crate::LogReader) takes the values in their order, without waiting. [`reader`](Self::reader) begins a new
/// reading: it empties the log in the order of the stream. In one reading, at most [`capacity`](Self::capacity) elements can be
/// appended; the device does not wait for the host, so the values beyond that are lost, and the reader reports
/// [`Error::LogFull`].
///
/// A log is owned and shared as a [`State`] is, and how much was appended is state: replays, eager calls and audits append each
/// value once. (An audit runs a call twice, and the first run is undone; both write the same values to the same places.)
///
/// ```
/// use graphable::{PinnedLog, prelude::*};
///
/// /// Halves `x` until it is below 1, and reports each value.
/// #[graphable]
/// fn halve(#[host] #[dims(1)] x: &Tensor<f32>, log: &PinnedLog<f32>) -> Result<Tensor<f32>> {
///     let mut x = x.clone();
///     #[device(limit = 100)]
///     while ops::ge(&ops::squeeze(&x, 0)?, 1.0)? {
///         x = ops::scale(&x, 0.5)?;
///         ops::append(log, &x)?;
///     }
///     Ok(x)
/// }
///
/// # fn main() -> Result<()> {
/// let mut rt = Runtime::new(Device::best()?)?;
/// let log = PinnedLog::new(&rt, 100)?;
/// let halve = HalveGraph::builder().build(&mut rt)?;
/// for start in [5.0, 0.5, 2.0] {
///     let step = rt.step()?;
///     let mut reader = log.reader(&step)?;
///     let last = halve.call(&step, &[start], &log)?;
///     let last = step.read_later(&last)?;
///     let mut seen = vec![start];
///     reader.follow(&last, |value| {
///         seen.push(value); // while the loop runs
///         Ok::<_, Error>(())
///     })?;
///     assert_eq!(last.wait()?, seen[seen.len() - 1..]);
///     assert!(seen.windows(2).all(|pair| pair[1] == pair[0] / 2.0));
/// }
/// # Ok(())
/// # }
/// ```
pub struct PinnedLog<T> {
    /// The number of the reading, and how many elements it was given.
    pub(crate) state: State<u32>,
    pub(crate) memory: Arc<LogMemory>,
    _type: PhantomData<fn() -> T>,
}

/// The memory of a log, and which reading is the current one.
#[derive(Debug)]
pub(crate) struct LogMemory {
    pub(crate) host: Arc<dyn HostLog>,
    /// The number of the reading that began last; 0 before the first one.
    pub(crate) reading: AtomicU32,
}

impl<T: Element> PinnedLog<T> {
    /// Allocates a log for `capacity` elements, which take 4 bytes each: logs of `f64` and `i64` do not compile. This takes much longer than allocating ordinary
    /// memory, so allocate logs once.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`], [`Error::TooLarge`], and errors of the device.
    pub fn new(rt: &Runtime, capacity: usize) -> Result<Self> {
        const {
            assert!(
                T::DTYPE.size() <= 4,
                "a `PinnedLog` has elements of at most 32 bits: cast an `f64` to `f32`, and an `i64` to `i32`"
            );
        }
        // The device counts in 32 bits, and a count above the capacity is that of a full log.
        if capacity >= u32::MAX as usize {
            return Err(Error::TooLarge { shape: vec![capacity] });
        }
        let state = State::zeros(rt, &[2])?;
        let host = rt.host_log(capacity)?;
        let memory = Arc::new(LogMemory { host, reading: AtomicU32::new(0) });
        Ok(Self { state, memory, _type: PhantomData })
    }

    /// Returns how many elements can be appended in one reading.
    pub fn capacity(&self) -> usize {
        self.memory.host.words().len()
    }

    /// Its state, which `op` writes.
    pub(crate) fn operand(&self, op: &'static str, scope: Scope<'_>) -> Result<View> {
        scope.check(op, self.state.owned.runtime)?;
        Ok(self.state.view())
    }
}

impl<T> Clone for PinnedLog<T> {
    /// Returns another handle of the same log.
    fn clone(&self) -> Self {
        Self { state: self.state.clone(), memory: Arc::clone(&self.memory), _type: PhantomData }
    }
}

impl<T> fmt::Debug for PinnedLog<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedLog").field("memory", &self.memory).finish_non_exhaustive()
    }
}

//! Reading a log while graphs append to it.

use std::{
    fmt,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering, fence},
    },
    thread,
    time::Duration,
};

use crate::{
    Eager, Element, Error, PendingRead, PinnedLog, Result, base::dtype::from_bytes, ops,
    tensor::pinned_log::LogMemory,
};

/// The time between two looks at a log that is followed.
const PAUSE: Duration = Duration::from_micros(250);

impl<T: Element> PinnedLog<T> {
    /// Begins a new reading: what is appended by work that is launched from now on. Readers from before end.
    ///
    /// # Errors
    /// Returns [`Error::CapabilityInSegment`], [`Error::DifferentRuntimes`], and errors of the device.
    pub fn reader(&self, cx: &Eager<'_>) -> Result<LogReader<T>> {
        cx.scope().check("PinnedLog::reader", self.state.owned.runtime)?;
        let number = match self.memory.reading.fetch_add(1, Ordering::Relaxed).wrapping_add(1) {
            // That of no reading.
            0 => self.memory.reading.fetch_add(1, Ordering::Relaxed).wrapping_add(1),
            number => number,
        };
        ops::store(&self.state, &cx.tensor([2], &[number, 0])?)?;
        let captures = cx.rt.core.borrow().recorder.captures_ahead();
        let begun = captures.load(Ordering::Relaxed);
        Ok(LogReader {
            memory: Arc::clone(&self.memory),
            number,
            taken: 0,
            captures,
            begun,
            _type: PhantomData,
        })
    }
}

/// Takes what graphs append to a [`PinnedLog`], as it comes; returned by [`PinnedLog::reader`].
///
/// It keeps the memory of the log, and can be sent to another thread.
pub struct LogReader<T> {
    memory: Arc<LogMemory>,
    /// That of its reading.
    number: u32,
    /// Elements taken so far.
    taken: usize,
    /// The number of times that `capture_all` began, now and when this was made.
    captures: Arc<AtomicU64>,
    begun: u64,
    _type: PhantomData<fn() -> T>,
}

impl<T: Element> LogReader<T> {
    /// Returns the elements that were appended since the last call, without waiting. Once a read of one of a call's results
    /// has ended, everything that the call appended is there.
    ///
    /// # Errors
    /// Returns [`Error::LogFull`] if more elements were appended than there was room for, after all the others were taken.
    /// Returns [`Error::Argument`] if another reading has begun or `capture_all` was called since this reader was made: either
    /// overwrites the elements that it would read.
    pub fn take(&mut self) -> Result<Vec<T>> {
        let (host, size) = (&self.memory.host, T::DTYPE.size());
        self.check_current()?;
        let header = host.header().load(Ordering::Acquire);
        let (number, given) = ((header >> 32) as u32, header as u32 as usize);
        // Whatever was appended last belongs to an earlier reading.
        let given = if number == self.number { given } else { 0 };
        let end = given.min(host.words().len());
        let words = host.words().get(self.taken..end).unwrap_or_default();
        if words.is_empty() && given > end {
            return Err(Error::LogFull { capacity: end, appended: given });
        }
        let mut bytes = Vec::with_capacity(words.len() * size);
        for word in words {
            bytes.extend_from_slice(&word.load(Ordering::Acquire).to_le_bytes()[..size]);
        }
        // A reading that begins after this has launched nothing yet that could have written what was read above.
        fence(Ordering::Acquire);
        self.check_current()?;
        // In an audit, a call appends twice, from the same place on.
        self.taken = self.taken.max(end);
        Ok(from_bytes(&bytes))
    }

    /// Passes each element to `each`, as it comes, until `until` is ready; sleeps in between. `until` is a read of a result of
    /// the call that appends, or of a later one, so `each` gets all elements of the call.
    ///
    /// # Errors
    /// Returns the errors of [`take`](Self::take) and of `each`. Those of the call are returned by
    /// [`until.wait()`](PendingRead::wait).
    pub fn follow<U: Element, E: From<Error>>(
        &mut self,
        until: &PendingRead<U>,
        mut each: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            // Before the elements: all of them are there by then.
            let is_ready = until.is_ready();
            let values = self.take()?;
            match (values.is_empty(), is_ready) {
                (true, true) => return Ok(()),
                (true, false) => thread::sleep(PAUSE),
                // There may be more, or it is an error that there is no room for more.
                (false, _) => values.into_iter().try_for_each(&mut each)?,
            }
        }
    }

    fn check_current(&self) -> Result<()> {
        let refuse = |reason: &str| Err(Error::Argument { op: "LogReader::take", reason: reason.into() });
        if self.memory.reading.load(Ordering::Relaxed) != self.number {
            return refuse(
                "another reading of the log has begun, which `PinnedLog::reader` returned; use that one",
            );
        }
        if self.captures.load(Ordering::Relaxed) != self.begun {
            return refuse(
                "`capture_all` was called since the reader was made, and what it appended in between counts for nothing; \
                 make the reader after it",
            );
        }
        Ok(())
    }
}

impl<T> fmt::Debug for LogReader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader")
            .field("number", &self.number)
            .field("taken", &self.taken)
            .finish_non_exhaustive()
    }
}

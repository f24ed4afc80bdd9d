//! The state shared by the backend and all handles of its memory: released resources are freed here, in
//! stream order and never during a capture. Executables that several recordings share are in `graph_exec.rs`.

use std::{
    any::Any,
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    deferred_free::DeferredFrees,
    driver::{Context, Event, Exec, Graph, Pinned, Pool, Stream},
    ring::{self, Buffer, Limits, Point, Ring, Taken},
};
use crate::{
    Result,
    backend::{Memory, SharedMemory},
};

/// A resource whose last handle was dropped.
pub(super) enum DeferredFree {
    /// Memory of the pool.
    Memory(u64),
    /// An executable, and what its launches in flight use.
    #[expect(dead_code, reason = "they are kept until the launches under way have ended, not read")]
    Graph { exec: Option<Exec>, graph: Option<Arc<Graph>>, retain: Vec<SharedMemory> },
    /// Memory of the user's, which knows how to free itself.
    #[expect(dead_code, reason = "kept until the work that uses it has ended, not read")]
    Foreign(Box<dyn Any + Send + Sync>),
}

/// One stream's common state.
pub(super) struct Shared {
    pub(super) context: Arc<Context>,
    pub(super) stream: Stream,
    pub(super) pool: Pool,
    deferred: DeferredFrees<DeferredFree>,
    /// Executables whose launches may still run, each batch followed by an event.
    awaiting_launches: Mutex<VecDeque<(Event, Vec<DeferredFree>)>>,
    pinned: Mutex<Ring<Pinned, Event>>,
    staging_waits: AtomicU64,
    /// The time for which the host spins before it sleeps.
    pub(super) spin: Duration,
}

/// The pinned memory that is kept for reuse, which limits how far the host may run ahead of the device.
const STAGING: Limits = Limits { buffers: 64, bytes: 256 << 20 };

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("context", &self.context).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(stream: Stream, spin: Duration) -> Result<Self> {
        let context = Arc::clone(stream.context());
        Ok(Self {
            pool: Pool::new(&context)?,
            context,
            stream,
            deferred: DeferredFrees::new(),
            awaiting_launches: Mutex::default(),
            pinned: Mutex::new(Ring::new(STAGING)),
            staging_waits: AtomicU64::new(0),
            spin,
        })
    }

    /// Releases a resource of the user's once the work on the stream that may use it has ended.
    pub(super) fn retire_owner(&self, owner: Box<dyn Any + Send + Sync>) {
        self.defer_free(DeferredFree::Foreign(owner));
    }

    /// Releases a resource; can be called on any thread, and only enqueues while the backend lives.
    fn defer_free(&self, what: DeferredFree) {
        if self.deferred.add(what) {
            self.free_all();
        }
    }

    /// Frees the released resources. Called outside captures, by the backend.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(super) fn drain(&self) -> Result<()> {
        if self.deferred.is_waiting() {
            self.free_in_order()?;
        }
        self.free_surplus();
        while let Some(gone) = self.next_finished()? {
            // Without the lock: the resource may be a user's, whose destructor runs their code.
            drop(gone);
        }
        Ok(())
    }

    /// The oldest that was buried, once the device is past it.
    fn next_finished(&self) -> Result<Option<(Event, Vec<DeferredFree>)>> {
        let mut awaiting_launches = self.awaiting_launches.lock().unwrap_or_else(PoisonError::into_inner);
        match awaiting_launches.front() {
            Some((event, _)) if event.is_done()? => Ok(awaiting_launches.pop_front()),
            _ => Ok(None),
        }
    }

    /// Waits, and frees everything that was released: resources kept by an executable are freed only after
    /// it. Called outside captures.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(super) fn reclaim(&self) -> Result<()> {
        // What is released in the last round, by destructors of users that release more each time, is freed later.
        const ROUNDS: u32 = 64;
        for _ in 0..ROUNDS {
            self.stream.synchronize()?;
            self.drain()?;
            let empty = self.awaiting_launches.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
            if empty && !self.deferred.is_waiting() {
                break;
            }
            self.free_in_order()?;
        }
        self.stream.synchronize()?;
        self.pool.trim()
    }

    fn free_in_order(&self) -> Result<()> {
        loop {
            let batch = self.deferred.take();
            if batch.is_empty() {
                return Ok(());
            }
            let mut graphs = Vec::new();
            let mut batch = batch.into_iter();
            while let Some(one) = batch.next() {
                match one {
                    // Freed after all work that is currently on the stream.
                    DeferredFree::Memory(addr) => {
                        if let Err(error) = self.pool.free(&self.stream, addr) {
                            // Nothing is dropped before its event.
                            self.keep(std::iter::once(DeferredFree::Memory(addr)).chain(batch).chain(graphs));
                            return Err(error);
                        }
                    }
                    other => graphs.push(other),
                }
            }
            if !graphs.is_empty() {
                let event = Event::new(&self.context, false).and_then(|event| {
                    event.record(&self.stream)?;
                    Ok(event)
                });
                let event = match event {
                    Ok(event) => event,
                    Err(error) => {
                        self.keep(graphs.into_iter());
                        return Err(error);
                    }
                };
                self.awaiting_launches
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push_back((event, graphs));
            }
        }
    }

    /// Puts back resources that could not be freed now.
    fn keep(&self, what: impl Iterator<Item = DeferredFree>) {
        what.for_each(|one| _ = self.deferred.add(one));
    }

    /// Waits, and frees everything, after the backend was dropped.
    fn free_all(&self) {
        if self.context.is_lost() {
            // Nothing can be freed any more: the driver's resources were lost with the context.
            return;
        }
        // This covers all of it: a user's memory binds its own context when it is dropped, and the previous
        // one is restored here.
        let Ok(_bound) = self.context.bind() else { return };
        if self.stream.synchronize().is_err() {
            return;
        }
        loop {
            let old =
                std::mem::take(&mut *self.awaiting_launches.lock().unwrap_or_else(PoisonError::into_inner));
            let had = !old.is_empty();
            drop(old);
            // An error here loses the context: reported by whoever uses it next.
            if self.free_in_order().is_err() {
                return;
            }
            let empty = self.awaiting_launches.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
            if !had && empty {
                return;
            }
        }
    }

    /// The backend is being dropped.
    pub(super) fn close(&self) {
        self.deferred.close();
        self.free_all();
    }

    /// Returns pinned memory of at least `bytes` bytes that nothing uses any more, with an event to mark its
    /// use. If there is too much in flight, waits for the oldest. Called outside captures, by the backend.
    ///
    /// # Errors
    /// Returns [`crate::Error::OutOfMemory`], and failures on the device.
    pub(super) fn take_pinned(&self, bytes: usize) -> Result<(Pinned, Event)> {
        loop {
            // The lock is not held while anybody waits: reads on other threads return their memory meanwhile.
            let taken = self.ring().take(bytes)?;
            match taken {
                Taken::Free(pinned, event) => return Ok((pinned, event)),
                Taken::Make => {
                    let pinned = Pinned::new(&self.context, bytes.max(4096).next_power_of_two())?;
                    return Ok((pinned, Event::new(&self.context, false)?));
                }
                Taken::Wait(pinned, event) => {
                    self.wait_for_staging(&event)?;
                    if ring::fits(pinned.len(), bytes) {
                        return Ok((pinned, event));
                    }
                }
            }
        }
    }

    /// Waits for a use of pinned memory, and counts that.
    pub(super) fn wait_for_staging(&self, event: &Event) -> Result<()> {
        if !event.is_done()? {
            self.staging_waits.fetch_add(1, Ordering::Relaxed);
            self.wait(event)?;
        }
        Ok(())
    }

    /// Marks the end of a use of pinned memory that was just given to the stream.
    ///
    /// # Errors
    /// Returns errors of the driver; the memory is then freed only when nothing can use it.
    pub(super) fn mark_use(&self, pinned: Pinned, event: Event) -> Result<(Pinned, Event)> {
        match event.record(&self.stream) {
            Ok(()) => Ok((pinned, event)),
            Err(error) => {
                if self.stream.synchronize().is_err() {
                    // Its end cannot be known: better lost than written by a copy that still runs.
                    std::mem::forget(pinned);
                }
                Err(error)
            }
        }
    }

    /// Returns pinned memory; can be called on any thread. `event` marks the end of its use on the stream.
    /// Does not free anything, because that may wait for the device.
    pub(super) fn put_pinned(&self, pinned: Pinned, event: Event) {
        self.ring().put(pinned, event);
    }

    /// Returns how often [`take_pinned`](Self::take_pinned) has waited.
    pub(super) fn staging_waits(&self) -> u64 {
        self.staging_waits.load(Ordering::Relaxed)
    }

    fn ring(&self) -> MutexGuard<'_, Ring<Pinned, Event>> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees pinned memory in excess of what is kept for reuse. Called outside captures, by the backend.
    fn free_surplus(&self) {
        loop {
            let surplus = self.ring().surplus();
            match surplus {
                // Freed without the lock.
                Some(surplus) => drop(surplus),
                None => return,
            }
        }
    }
}

impl Buffer for Pinned {
    fn len(&self) -> usize {
        Pinned::len(self)
    }
}

impl Point for Event {
    fn is_reached(&self) -> Result<bool> {
        self.is_done()
    }
}

/// Memory of the pool with one owner.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) addr: u64,
    pub(super) bytes: u64,
    pub(super) shared: Arc<Shared>,
}

impl Memory for Owned {
    fn addr(&self) -> u64 {
        self.addr
    }

    fn len(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.shared.defer_free(DeferredFree::Memory(self.addr));
    }
}

/// Memory of the user's that a tensor shows.
pub(super) struct Foreign {
    pub(super) addr: u64,
    pub(super) bytes: u64,
    /// Taken when the last tensor is dropped.
    pub(super) owner: Option<Box<dyn Any + Send + Sync>>,
    pub(super) shared: Arc<Shared>,
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foreign")
            .field("addr", &self.addr)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Memory for Foreign {
    fn addr(&self) -> u64 {
        self.addr
    }

    fn len(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.take() {
            // Our stream may still read it, and its owner frees on another stream.
            self.shared.defer_free(DeferredFree::Foreign(owner));
        }
    }
}

/// Releases the resources of an executable or a recording.
pub(super) fn retire_graph(
    shared: &Shared,
    exec: Option<Exec>,
    graph: Option<Arc<Graph>>,
    retain: Vec<SharedMemory>,
) {
    shared.defer_free(DeferredFree::Graph { exec, graph, retain });
}

//! Hooks: user code that is called with lifecycle events of recordings.
//!
//! The log collects events while the core is borrowed, and only while there is a hook; hooks are called
//! between two borrows, so they cannot observe a core in the middle of a change.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::{
    base::{plan::Site, recording_id::RecordingId},
    value::owned::OwnerId,
};

/// The id of a graph object, such as a `DecodeGraph`. Ids are never reused within a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphId(pub(crate) OwnerId);

/// The id of a hook, by which it can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HookId(u64);

/// The lifecycle of a recording, in this order. `Replayed` occurs any number of times, everything else at
/// most once; `Destroyed` comes last, for every recording.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    /// Its body was captured.
    Recorded,
    /// It uses the executable of another recording, which is updated for it: see
    /// [`Runtime::share_executables`](crate::Runtime::share_executables). When it stops sharing,
    /// `Instantiated` follows.
    Shares {
        /// The other recording.
        with: RecordingId,
    },
    /// An executable was instantiated for it, or one whose recordings were evicted was updated for it. A
    /// recording without kernels has none.
    Instantiated {
        /// The number of nodes in the executable.
        kernels: usize,
        /// Its size in bytes, as far as the device knows.
        bytes: u64,
    },
    /// A replay was launched on the stream, or its launch failed. The first follows directly after the
    /// recording.
    Replayed {
        /// The error, or `None` if the launch succeeded.
        error: Option<String>,
    },
    /// It will not run again: an object with which it was recorded was dropped, a better recording replaces
    /// it, or the runtime ends. The device frees it when its last replay is done.
    Destroyed,
}

/// One lifecycle event of one recording.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifecycleEvent {
    /// The id of the recording, as in [`Event`](crate::Event)s and
    /// [`GraphTree`](crate::observe::inspect::GraphTree).
    pub recording: RecordingId,
    /// The graph object whose call recorded it; for a replay, the one whose call replayed it.
    pub graph: GraphId,
    /// The function of that object.
    pub function: &'static str,
    /// The recorded segment.
    pub segment: &'static Site,
    /// The event.
    pub what: Lifecycle,
}

impl fmt::Display for LifecycleEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "recording {} of {}: ", self.recording, self.segment)?;
        match &self.what {
            Lifecycle::Recorded => f.write_str("recorded"),
            Lifecycle::Shares { with } => write!(f, "shares the executable of {with}"),
            Lifecycle::Instantiated { kernels, bytes } => {
                write!(f, "instantiated, {kernels} nodes, {bytes} B")
            }
            Lifecycle::Replayed { error: None } => f.write_str("replayed"),
            Lifecycle::Replayed { error: Some(reason) } => write!(f, "replay failed: {reason}"),
            Lifecycle::Destroyed => f.write_str("destroyed"),
        }
    }
}

pub(crate) type Call = Box<dyn FnMut(&LifecycleEvent) + Send>;

pub(crate) struct Hook {
    id: HookId,
    graph: Option<GraphId>,
    /// Taken out while it runs.
    call: Option<Call>,
}

/// The hooks of a runtime.
#[derive(Default)]
pub(crate) struct Hooks {
    /// Set if there is a hook.
    any: Cell<bool>,
    list: RefCell<Vec<Hook>>,
    next: Cell<u64>,
}

impl Hooks {
    /// Returns whether there is a hook.
    pub(crate) fn any(&self) -> bool {
        self.any.get()
    }

    /// Adds a hook, for one graph object or for all.
    pub(crate) fn add(&self, graph: Option<GraphId>, call: Call) -> HookId {
        let id = HookId(self.next.get());
        self.next.set(id.0 + 1);
        self.list.borrow_mut().push(Hook { id, graph, call: Some(call) });
        self.any.set(true);
        id
    }

    /// Removes a hook. Its captures may be anything: the caller drops it when nothing is borrowed.
    pub(crate) fn remove(&self, id: HookId) -> Option<Hook> {
        let mut list = self.list.borrow_mut();
        let at = list.iter().position(|h| h.id == id)?;
        let removed = list.remove(at);
        self.any.set(!list.is_empty());
        Some(removed)
    }

    /// Returns the ids of the hooks for `graph`, in the order of registration.
    pub(crate) fn wanting(&self, graph: GraphId) -> Vec<HookId> {
        let list = self.list.borrow();
        list.iter().filter(|h| h.graph.is_none_or(|g| g == graph)).map(|h| h.id).collect()
    }

    /// Calls one hook. Returns its panic, if there is one: other hooks have not received the event yet.
    pub(crate) fn call(&self, id: HookId, event: &LifecycleEvent) -> Result<(), Box<dyn Any + Send>> {
        let mut list = self.list.borrow_mut();
        // A hook that an earlier one removed is not called any more.
        let call = list.iter_mut().find(|h| h.id == id).and_then(|h| h.call.take());
        drop(list);
        let Some(call) = call else { return Ok(()) };
        let mut running = Running { hooks: self, id, call: Some(call) };
        // A hook that panicked remains in the state that its panic left, as `FnMut` does anywhere.
        catch_unwind(AssertUnwindSafe(|| running.call.iter_mut().for_each(|call| call(event))))
    }
}

/// A running hook. It is put back when it ends, unless it was removed meanwhile.
struct Running<'h> {
    hooks: &'h Hooks,
    id: HookId,
    call: Option<Call>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(hook) = self.hooks.list.borrow_mut().iter_mut().find(|h| h.id == self.id) {
            hook.call = self.call.take();
        }
    }
}

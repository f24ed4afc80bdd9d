//! Hooks: code of the user's that hears what happens to recordings.
//!
//! The log keeps what happens while the core is borrowed, and only while there is a hook; hooks are called
//! between two borrows, so whatever they do, they cannot meet a core that is half changed.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::base::{plan::Site, recording_id::RecordingId};

/// A graph object, such as a `DecodeGraph`. Never given twice in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphId(pub(crate) u64);

/// A hook, to remove it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HookId(u64);

/// What happens to a recording, in this order. `Replayed` comes any number of times, everything else at most
/// once; `Destroyed` comes last, and for every recording.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    /// Its body was captured.
    Recorded,
    /// It runs by the executable of another recording, which is updated for it: see
    /// [`Runtime::share_executables`](crate::Runtime::share_executables). When it parts from that one, `Instantiated` follows.
    Shares {
        /// The other one.
        with: RecordingId,
    },
    /// An executable was made of it, or one whose recordings are gone was updated for it. A recording without
    /// a kernel has none.
    Instantiated {
        /// Nodes of the executable.
        kernels: usize,
        /// Its bytes, as far as the device knows.
        bytes: u64,
    },
    /// A replay was put on the stream, or failed to be. The first comes right after the recording.
    Replayed {
        /// Why it failed; `None` when it did not.
        error: Option<String>,
    },
    /// It will not run again: what it was recorded with was dropped, a better recording takes its place, or
    /// the runtime ends. The device frees it when its last replay is done.
    Destroyed,
}

/// One thing that happened to one recording.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifecycleEvent {
    /// The recording, as [`Event`](crate::Event)s and [`GraphTree`](crate::observe::inspect::GraphTree) number it.
    pub recording: RecordingId,
    /// The graph object whose call recorded it; for a replay, the one whose call replayed it.
    pub graph: GraphId,
    /// That object's function.
    pub function: &'static str,
    /// What it is a recording of.
    pub segment: &'static Site,
    /// What happened.
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
            Lifecycle::Replayed { error: Some(why) } => write!(f, "replay failed: {why}"),
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
    /// Whether there is one.
    any: Cell<bool>,
    list: RefCell<Vec<Hook>>,
    next: Cell<u64>,
}

impl Hooks {
    /// Whether there is one.
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

    /// Removes a hook. What it captured may be anything: the caller drops it when nothing is borrowed.
    pub(crate) fn remove(&self, id: HookId) -> Option<Hook> {
        let mut list = self.list.borrow_mut();
        let at = list.iter().position(|h| h.id == id)?;
        let removed = list.remove(at);
        self.any.set(!list.is_empty());
        Some(removed)
    }

    /// The ids of those that want to hear of `graph`, in the order of registration.
    pub(crate) fn wanting(&self, graph: GraphId) -> Vec<HookId> {
        let list = self.list.borrow();
        list.iter().filter(|h| h.graph.is_none_or(|g| g == graph)).map(|h| h.id).collect()
    }

    /// Calls one hook. Gives its panic, if there is one: other hooks have not heard of the event yet.
    pub(crate) fn call(&self, id: HookId, event: &LifecycleEvent) -> Result<(), Box<dyn Any + Send>> {
        let mut list = self.list.borrow_mut();
        // One that an earlier hook removed is not called any more.
        let call = list.iter_mut().find(|h| h.id == id).and_then(|h| h.call.take());
        drop(list);
        let Some(call) = call else { return Ok(()) };
        let mut running = Running { hooks: self, id, call: Some(call) };
        // A hook that panicked is as its panic left it: its author's affair, as it would be with `FnMut` anywhere.
        catch_unwind(AssertUnwindSafe(|| running.call.iter_mut().for_each(|call| call(event))))
    }
}

/// A hook that runs. Put back when it ends, unless it was removed meanwhile.
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

//! Hooks: code of the user's that hears what happens to recordings.
//!
//! The tree notes what happens while the core is borrowed, and only while there is a hook; hooks are called
//! between two borrows, so whatever they do, they cannot meet a core that is half changed.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    fmt,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use crate::{Runtime, base::plan::Site};

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
    /// [`Runtime::share_executables`]. When it parts from that one, `Instantiated` follows.
    Shares {
        /// The other one.
        with: usize,
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
    pub node: usize,
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
        write!(f, "recording {} of {}: ", self.node, self.segment)?;
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

type Call = Box<dyn FnMut(&LifecycleEvent) + Send>;

struct Hook {
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

    /// The ids of those that want to hear of `graph`, in the order of registration.
    fn wanting(&self, graph: GraphId) -> Vec<HookId> {
        let list = self.list.borrow();
        list.iter().filter(|h| h.graph.is_none_or(|g| g == graph)).map(|h| h.id).collect()
    }

    /// Calls one hook. Gives its panic, if there is one: other hooks have not heard of the event yet.
    fn call(&self, id: HookId, event: &LifecycleEvent) -> Result<(), Box<dyn Any + Send>> {
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

impl Runtime {
    /// Calls `hook` with everything that happens to a recording from now on, hooks in the order in which they
    /// were registered, until [`remove_hook`](Self::remove_hook).
    ///
    /// Hooks run between calls into the device, on the thread that uses the runtime: soon after what they
    /// tell of, and before the call that it belongs to returns. A panic in one goes through that call, after every
    /// hook has heard of everything; of several panics, the first does.
    /// Without hooks, a replay pays two comparisons for them.
    pub fn on_lifecycle(&self, hook: impl FnMut(&LifecycleEvent) + Send + 'static) -> HookId {
        self.add_hook(None, Box::new(hook))
    }

    /// As [`on_lifecycle`](Self::on_lifecycle), for one graph object: `rt.on_lifecycle_of(decode.id(), …)`.
    pub fn on_lifecycle_of(
        &self,
        graph: GraphId,
        hook: impl FnMut(&LifecycleEvent) + Send + 'static,
    ) -> HookId {
        self.add_hook(Some(graph), Box::new(hook))
    }

    fn add_hook(&self, graph: Option<GraphId>, call: Call) -> HookId {
        let hooks = &self.hooks;
        let id = HookId(hooks.next.get());
        hooks.next.set(id.0 + 1);
        hooks.list.borrow_mut().push(Hook { id, graph, call: Some(call) });
        if !hooks.any.replace(true) {
            self.core.borrow_mut().tree.watch(true);
        }
        id
    }

    /// Removes a hook: it is not called again. Says whether it was there.
    pub fn remove_hook(&self, id: HookId) -> bool {
        let mut list = self.hooks.list.borrow_mut();
        let Some(at) = list.iter().position(|h| h.id == id) else { return false };
        let gone = list.remove(at);
        let empty = list.is_empty();
        drop(list);
        if empty {
            self.hooks.any.set(false);
            self.core.borrow_mut().tree.watch(false);
        }
        // What it captured may be anything: dropped last.
        drop(gone);
        true
    }

    /// Tells the hooks what has happened. Not to be called while the core is borrowed.
    pub(crate) fn tell_hooks(&self) {
        if self.hooks.any.get() {
            self.tell();
        }
    }

    #[cold]
    fn tell(&self) {
        let events = self.core.borrow_mut().tree.take_notices();
        let mut panicked = None;
        for event in events {
            for id in self.hooks.wanting(event.graph) {
                if let Err(panic) = self.hooks.call(id, &event) {
                    panicked.get_or_insert(panic);
                }
            }
        }
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // A hook that panics while another panic is under way would end the process.
        if self.hooks.any.get() && !std::thread::panicking() {
            self.core.get_mut().tree.evict_all();
            self.tell();
        }
    }
}

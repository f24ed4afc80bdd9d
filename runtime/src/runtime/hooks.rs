//! Hooks of a runtime: registration, removal, and calls between two borrows of the core.

use std::panic::resume_unwind;

use crate::{
    Runtime,
    observe::hooks::{Call, GraphId, HookId, LifecycleEvent},
};

impl Runtime {
    /// Calls `hook` with every lifecycle event of every recording from now on, until
    /// [`remove_hook`](Self::remove_hook). Hooks are called in the order of their registration.
    ///
    /// Hooks run between calls into the device, on the thread that uses the runtime: soon after the event,
    /// and before the call that caused it returns. A panic in a hook propagates through that call after every
    /// hook has received all events; of several panics, the first propagates. Without hooks, they cost a
    /// replay one comparison.
    pub fn on_lifecycle(&self, hook: impl FnMut(&LifecycleEvent) + Send + 'static) -> HookId {
        self.add_hook(None, Box::new(hook))
    }

    /// Registers a hook like [`on_lifecycle`](Self::on_lifecycle), for one graph object:
    /// `rt.on_lifecycle_of(decode.id(), …)`.
    pub fn on_lifecycle_of(
        &self,
        graph: GraphId,
        hook: impl FnMut(&LifecycleEvent) + Send + 'static,
    ) -> HookId {
        self.add_hook(Some(graph), Box::new(hook))
    }

    fn add_hook(&self, graph: Option<GraphId>, call: Call) -> HookId {
        let first = !self.hooks.any();
        let id = self.hooks.add(graph, call);
        if first {
            self.core.borrow_mut().log.watch_recordings(true);
        }
        id
    }

    /// Removes a hook, which is not called again. Returns whether it was registered.
    pub fn remove_hook(&self, id: HookId) -> bool {
        let Some(removed) = self.hooks.remove(id) else { return false };
        if !self.hooks.any() {
            self.core.borrow_mut().log.watch_recordings(false);
        }
        drop(removed);
        true
    }

    /// Calls the hooks with the events that have happened. Must not be called while the core is borrowed.
    pub(crate) fn tell_hooks(&self) {
        if self.hooks.any() {
            self.tell();
        }
    }

    #[cold]
    fn tell(&self) {
        let events = self.core.borrow_mut().log.take_lifecycle();
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
        // A hook that panics during another panic would abort the process.
        if self.hooks.any() && !std::thread::panicking() {
            let core = self.core.get_mut();
            core.tree.end(&mut core.log);
            self.tell();
        }
    }
}

//! What happened to nodes, for hooks. Nothing is kept while there are none.

use super::{Node, Tree};
use crate::{
    Error,
    backend::GraphExec,
    base::plan::Site,
    observe::hooks::{GraphId, Lifecycle, LifecycleEvent},
};

impl Tree {
    /// Starts or ends to note what happens.
    pub(crate) fn watch(&mut self, on: bool) {
        self.notices = on.then(|| self.notices.take().unwrap_or_default());
    }

    /// What happened since the last call.
    pub(crate) fn take_notices(&mut self) -> Vec<LifecycleEvent> {
        self.notices.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A replay of a node failed.
    #[cold]
    pub(crate) fn failed(&mut self, at: usize, error: &Error) {
        self.replayed(at, Some(error.to_string()));
    }

    /// A replay of a node ended.
    #[cold]
    pub(super) fn replayed(&mut self, at: usize, error: Option<String>) {
        let (Some(Some(node)), Some(notices)) = (self.nodes.get(at), &mut self.notices) else { return };
        let caller = self.caller;
        let what = Lifecycle::Replayed { error };
        notices.push(LifecycleEvent {
            graph: GraphId(caller.id),
            function: caller.name,
            ..event(node, what)
        });
    }

    /// A node is in its place.
    pub(super) fn made(&mut self, at: usize) {
        let with = self.first_of(at);
        let first = (with != at).then(|| self.number(with));
        let (Some(Some(node)), Some(notices)) = (self.nodes.get(at), &mut self.notices) else { return };
        notices.push(event(node, Lifecycle::Recorded));
        if let Some(with) = first {
            notices.push(event(node, Lifecycle::Shares { with }));
        } else if let Some(exec) = &node.exec {
            notices.push(event(node, instantiated(&**exec)));
        }
    }

    /// A node got an executable of its own.
    pub(super) fn parted(&mut self, at: usize) {
        let (Some(Some(node)), Some(notices)) = (self.nodes.get(at), &mut self.notices) else { return };
        if let Some(exec) = &node.exec {
            notices.push(event(node, instantiated(&**exec)));
        }
    }

    /// A recording that failed to run for the first time: it is no node, but its number is spent.
    pub(crate) fn never_ran(
        &mut self,
        segment: &'static Site,
        exec: &dyn GraphExec,
        with: Option<usize>,
        error: &Error,
    ) {
        let node = self.next_number;
        self.next_number += 1;
        let (graph, function) = (GraphId(self.caller.id), self.caller.name);
        let Some(notices) = &mut self.notices else { return };
        let replayed = Lifecycle::Replayed { error: Some(error.to_string()) };
        let made = with.map_or_else(|| instantiated(exec), |with| Lifecycle::Shares { with });
        for what in [Lifecycle::Recorded, made, replayed, Lifecycle::Destroyed] {
            notices.push(LifecycleEvent { node, graph, function, segment, what });
        }
    }

    /// A node is about to go.
    pub(super) fn going(&mut self, at: usize) {
        let (Some(Some(node)), Some(notices)) = (self.nodes.get(at), &mut self.notices) else { return };
        notices.push(event(node, Lifecycle::Destroyed));
    }
}

fn instantiated(exec: &dyn GraphExec) -> Lifecycle {
    Lifecycle::Instantiated { kernels: exec.nodes(), bytes: exec.bytes() }
}

fn event(node: &Node, what: Lifecycle) -> LifecycleEvent {
    LifecycleEvent {
        node: node.number(),
        graph: GraphId(node.caller.id),
        function: node.caller.name,
        segment: node.site,
        what,
    }
}

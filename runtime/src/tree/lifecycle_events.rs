//! What happened to recordings, for hooks. Nothing is kept while there are none.

use super::{Recording, Tree};
use crate::{
    Error,
    backend::GraphExec,
    base::{plan::Site, recording_id::RecordingId},
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

    /// A replay of a recording failed.
    #[cold]
    pub(crate) fn failed(&mut self, at: usize, error: &Error) {
        self.replayed(at, Some(error.to_string()));
    }

    /// A replay of a recording ended.
    #[cold]
    pub(super) fn replayed(&mut self, at: usize, error: Option<String>) {
        let (Some(Some(recording)), Some(notices)) = (self.recordings.get(at), &mut self.notices) else {
            return;
        };
        let caller = self.caller;
        let what = Lifecycle::Replayed { error };
        notices.push(LifecycleEvent {
            graph: GraphId(caller.id),
            function: caller.name,
            ..event(recording, what)
        });
    }

    /// A recording is in its place.
    pub(super) fn made(&mut self, at: usize) {
        let with = self.first_of(at);
        let first = (with != at).then(|| self.id(with));
        let (Some(Some(recording)), Some(notices)) = (self.recordings.get(at), &mut self.notices) else {
            return;
        };
        notices.push(event(recording, Lifecycle::Recorded));
        if let Some(with) = first {
            notices.push(event(recording, Lifecycle::Shares { with }));
        } else if let Some(exec) = &recording.exec {
            notices.push(event(recording, instantiated(&**exec)));
        }
    }

    /// A recording got an executable of its own.
    pub(super) fn parted(&mut self, at: usize) {
        let (Some(Some(recording)), Some(notices)) = (self.recordings.get(at), &mut self.notices) else {
            return;
        };
        if let Some(exec) = &recording.exec {
            notices.push(event(recording, instantiated(&**exec)));
        }
    }

    /// A recording that failed to run for the first time: it never enters the tree, but its id is spent.
    pub(crate) fn never_ran(
        &mut self,
        segment: &'static Site,
        exec: &dyn GraphExec,
        with: Option<RecordingId>,
        error: &Error,
    ) {
        let recording = self.next_id;
        self.next_id = self.next_id.next();
        let (graph, function) = (GraphId(self.caller.id), self.caller.name);
        let Some(notices) = &mut self.notices else { return };
        let replayed = Lifecycle::Replayed { error: Some(error.to_string()) };
        let made = with.map_or_else(|| instantiated(exec), |with| Lifecycle::Shares { with });
        for what in [Lifecycle::Recorded, made, replayed, Lifecycle::Destroyed] {
            notices.push(LifecycleEvent { recording, graph, function, segment, what });
        }
    }

    /// A recording is about to go.
    pub(super) fn going(&mut self, at: usize) {
        let (Some(Some(recording)), Some(notices)) = (self.recordings.get(at), &mut self.notices) else {
            return;
        };
        notices.push(event(recording, Lifecycle::Destroyed));
    }
}

fn instantiated(exec: &dyn GraphExec) -> Lifecycle {
    Lifecycle::Instantiated { kernels: exec.nodes(), bytes: exec.bytes() }
}

fn event(recording: &Recording, what: Lifecycle) -> LifecycleEvent {
    LifecycleEvent {
        recording: recording.id(),
        graph: GraphId(recording.caller.id),
        function: recording.caller.name,
        segment: recording.site,
        what,
    }
}

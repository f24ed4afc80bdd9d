//! Recordings and their executables, as occurrences name them.

use super::{Caller, Recording, RecordingIndex, Tree};
use crate::{
    backend::GraphExec,
    base::plan::Site,
    observe::{
        hooks::GraphId,
        occurrence::{ExecutableRef, RecordingRef},
    },
};

impl ExecutableRef {
    /// Describes an executable of which the recording is the first user.
    pub(crate) fn own(exec: &dyn GraphExec) -> Self {
        Self::Own { kernels: exec.nodes(), bytes: exec.bytes() }
    }
}

impl Recording {
    /// Describes this recording, in a call of that graph object.
    #[inline]
    pub(crate) fn in_call_of(&self, caller: Caller) -> RecordingRef {
        RecordingRef { id: self.id(), site: self.site, graph: GraphId(caller.id), function: caller.name }
    }

    /// Describes this recording, in the call that recorded it.
    pub(crate) fn as_recorded(&self) -> RecordingRef {
        self.in_call_of(self.caller)
    }
}

impl Tree {
    /// Describes the executable through which a recording runs.
    pub(crate) fn executable(&self, at: RecordingIndex) -> ExecutableRef {
        let first = self.first_of(at);
        if first != at {
            return ExecutableRef::Shared { with: self.id(first) };
        }
        let exec = self.recording(at).and_then(|recording| recording.exec.as_ref());
        exec.map_or(ExecutableRef::None, |exec| ExecutableRef::own(&**exec))
    }

    /// Describes a recording of the running call that does not enter the tree. Its id is not reused.
    pub(crate) fn refuse_recording(&mut self, site: &'static Site) -> RecordingRef {
        let id = self.next_id;
        self.next_id = id.next();
        let Caller { id: graph, name: function } = self.caller;
        RecordingRef { id, site, graph: GraphId(graph), function }
    }
}

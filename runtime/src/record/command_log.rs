//! The commands of a recording, written down so that an invalidated capture can be made again.
//!
//! Another thread of the process may invalidate a capture (in CUDA, by waiting for the whole device). The
//! body may be able to run only once; but all commands that it adds to a capture go through here, with their
//! addresses. After an invalidation they are only logged, and when the body has ended, and passed all checks
//! of a recording, the capture is redone from the log, in one go. If this fails too often, the logged
//! commands are run directly, as the body's operations would have been without a recording.

use super::{
    call::CallState,
    copied_inputs::InputBinding,
    exec_reuse::{Captured, ExecFinder},
    launch::Launcher,
    replay::Replayer,
    run::EndedRecording,
    stream::Stream,
};
use crate::{
    Error, Result,
    backend::{Backend, Conditional, Launch, SharedMemory},
    base::{plan::Site, reason::FallbackReason},
    observe::{event::CopySlot, log::Log, occurrence::Occurrence},
    tree::CallSite,
};

/// The number of times that the capture of one recording is retried.
const RETRIES: u32 = 8;

/// One command of a recording.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Launch(Box<Launch>),
    Poison {
        addr: u64,
        bytes: u64,
    },
    Fork,
    Branch(usize),
    Join,
    /// A conditional node begins; its bodies follow, up to its end.
    Conditional(Conditional),
    Body(usize),
    EndConditional,
}

impl Command {
    pub(super) fn issue(&self, backend: &mut dyn Backend) -> Result<()> {
        match self {
            Self::Launch(launch) => backend.launch(launch),
            Self::Poison { addr, bytes } => backend.poison(*addr, *bytes),
            Self::Fork => backend.fork(),
            Self::Branch(index) => backend.branch(*index),
            Self::Join => backend.join(),
            Self::Conditional(node) => backend.begin_conditional(node),
            Self::Body(index) => backend.begin_body(*index),
            Self::EndConditional => backend.end_conditional(),
        }
    }
}

/// The state of a recording's capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaptureState {
    /// The device captures, and has every command of the log.
    Capturing,
    /// The device captures nothing: another thread invalidated the capture, which was aborted. Commands are
    /// only logged.
    Invalidated,
}

/// The commands of a recording, in order, and the state of its capture.
#[derive(Debug)]
pub(super) struct CommandLog {
    commands: Vec<Command>,
    capture: CaptureState,
}

impl CommandLog {
    /// Starts the capture of a recording; one that is invalidated immediately is made at the end.
    ///
    /// # Errors
    /// Returns errors of the backend.
    pub(super) fn begin(
        stream: &mut Stream,
        log: &mut Log,
        site: &'static Site,
        bindings: &[InputBinding],
    ) -> Result<Self> {
        let begun = begin_capture(stream, bindings);
        Ok(Self { commands: Vec::new(), capture: unless_invalidated(stream, log, site, begun)?.into() })
    }

    /// Returns whether a capture is active.
    pub(super) fn is_capturing(&self) -> bool {
        self.capture == CaptureState::Capturing
    }

    /// Writes a command down, and captures it as long as the capture is good.
    ///
    /// # Errors
    /// Returns errors of the backend.
    fn record(
        &mut self,
        stream: &mut Stream,
        log: &mut Log,
        site: &'static Site,
        command: Command,
    ) -> Result<()> {
        if self.is_capturing() {
            let issued = command.issue(stream.backend_mut());
            self.capture = unless_invalidated(stream, log, site, issued)?.into();
        }
        self.commands.push(command);
        Ok(())
    }

    /// Makes the capture again.
    ///
    /// # Errors
    /// Returns errors of the backend.
    fn redo(
        &mut self,
        stream: &mut Stream,
        log: &mut Log,
        site: &'static Site,
        bindings: &[InputBinding],
    ) -> Result<()> {
        let begun = begin_capture(stream, bindings);
        // From here on it is active; after an error, whoever aborts the recording ends it.
        self.capture = unless_invalidated(stream, log, site, begun)?.into();
        if self.is_capturing() {
            let issued = self.commands.iter().try_for_each(|command| command.issue(stream.backend_mut()));
            self.capture = unless_invalidated(stream, log, site, issued)?.into();
        }
        Ok(())
    }
}

/// A step of a capture that was done, or not, because the capture was invalidated.
impl From<Option<()>> for CaptureState {
    fn from(done: Option<()>) -> Self {
        done.map_or(Self::Invalidated, |()| Self::Capturing)
    }
}

/// Starts a capture; a replay will supply the pending upload, and all bytes of copied live-ins that may be
/// read.
fn begin_capture(stream: &mut Stream, bindings: &[InputBinding]) -> Result<()> {
    if bindings.is_empty() {
        return stream.begin_capture();
    }
    let upload = stream.upload_with(bindings.iter().map(InputBinding::whole_copy));
    stream.begin_capture_with(upload.as_ref())
}

/// `None` if the capture was invalidated; it is abandoned then.
fn unless_invalidated<R>(
    stream: &mut Stream,
    log: &mut Log,
    site: &'static Site,
    result: Result<R>,
) -> Result<Option<R>> {
    match result {
        Ok(done) => Ok(Some(done)),
        Err(lost @ Error::ContextLost { .. }) => Err(lost),
        Err(_) if stream.backend().capture_was_invalidated() => {
            stream.backend_mut().abort_capture();
            log.emit(Occurrence::Aborted { site });
            log.emit(Occurrence::CaptureInvalidated { site });
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

impl Launcher<'_> {
    /// Adds a command to the current recording, or to the description of a conditional node; or runs it if there is
    /// neither.
    ///
    /// # Errors
    /// Returns errors of the backend.
    pub(super) fn issue(&mut self, command: Command) -> Result<()> {
        if let Some(run) = self.recorder.run_mut()
            && let site = run.site
            && let Some(recording) = run.recording_mut()
        {
            return recording.log.record(self.stream, self.log, site, command);
        }
        match &mut self.recorder.described {
            Some(commands) => commands.push(command),
            None => return command.issue(self.stream.backend_mut()),
        }
        Ok(())
    }
}

impl Replayer<'_> {
    /// Ends the capture of a run whose body has succeeded, redone as often as needed. Returns `None` if it
    /// was invalidated too often, and its commands have been run.
    ///
    /// # Errors
    /// Returns errors of the backend, and [`Error::FallbackForbidden`].
    pub(crate) fn end_capture(
        &mut self,
        call: &CallState,
        run: &mut EndedRecording,
        retain: &[SharedMemory],
    ) -> Result<Option<Captured>> {
        let (site, identity) = (run.site, run.identity);
        let call_site =
            CallSite { identity, graph: self.tree.caller().id, ordinal: call.ordinals().before(identity) };
        let recording = &mut run.state;
        for attempt in 0..=RETRIES {
            if recording.log.is_capturing() {
                let mut finder = ExecFinder {
                    tree: &mut *self.tree,
                    stream: &mut *self.launcher.stream,
                    log: &mut *self.launcher.log,
                };
                let ended = finder.end_capture(site, call_site, self.reuse_budget, retain.to_vec());
                let (stream, log) = (&mut *self.launcher.stream, &mut *self.launcher.log);
                if let Some(ended) = unless_invalidated(stream, log, site, ended)? {
                    return Ok(Some(ended));
                }
                recording.log.capture = CaptureState::Invalidated;
            }
            if attempt < RETRIES {
                let (stream, log) = (&mut *self.launcher.stream, &mut *self.launcher.log);
                recording.log.redo(stream, log, site, recording.bindings.all())?;
            }
        }
        let reason = FallbackReason::CaptureInvalidated { segment: site.to_string() };
        call.may_fall_back(&reason)?;
        let function = call.function_name();
        self.launcher.log.emit(Occurrence::FellBack { function, reason: &reason });
        self.launcher.run_instead(&recording.log, recording.bindings.all()).map(|()| None)
    }
}

impl Launcher<'_> {
    /// Runs commands that could not be captured.
    fn run_instead(&mut self, commands: &CommandLog, bindings: &[InputBinding]) -> Result<()> {
        // The bytes that a replay would supply.
        let upload = self.stream.upload_with(bindings.iter().map(InputBinding::whole_copy));
        for binding in bindings {
            self.log.emit(Occurrence::Copied { slot: CopySlot::LiveIn, bytes: binding.bytes() });
        }
        self.stream.write_instead(upload)?;
        self.run_commands(&commands.commands)
    }
}

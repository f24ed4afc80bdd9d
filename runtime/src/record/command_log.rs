//! The commands of a recording, written down while its body runs, and captured when it has ended.
//!
//! All commands that a body adds to a recording go through here, with their addresses. When the body has ended, and
//! passed all checks of a recording, they are a [`Program`](crate::program::Program): passes rewrite it, and its
//! commands are captured in one go. The capture itself begins with the body, so that work which other code launches on
//! the stream meanwhile is found in it, instead of missing from every replay.
//!
//! Another thread of the process may invalidate a capture (in CUDA, by waiting for the whole device). The body may be
//! able to run only once; but the capture can be made again from its commands. If this fails too often, they are run
//! directly, as the passes left them: with the bits of the body's operations without a recording, or within the bound that a
//! user's pass declares, as a replay would have been.

use std::ops::Range;

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
    backend::SharedMemory,
    base::{plan::Site, reason::FallbackReason},
    observe::{event::CopySlot, log::Log, occurrence::Occurrence},
    program::{Command, Program, Rewritten, Target},
    tree::CallSite,
};

/// The number of times that the capture of one recording is retried.
const RETRIES: u32 = 8;

/// The state of a recording's capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaptureState {
    /// The device captures.
    Capturing,
    /// The device captures nothing: another thread invalidated the capture, which was aborted.
    Invalidated,
}

/// The commands of a recording, in order, and the state of its capture.
#[derive(Debug)]
pub(super) struct CommandLog {
    program: Program,
    capture: CaptureState,
    /// The effects of passes on the program.
    pub(super) rewritten: Rewritten,
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
        let capture = unless_invalidated(stream, log, site, begun)?.into();
        Ok(Self { program: Program::default(), capture, rewritten: Rewritten::default() })
    }

    /// Returns whether a capture is active.
    pub(super) fn is_capturing(&self) -> bool {
        self.capture == CaptureState::Capturing
    }

    /// Writes a command down.
    pub(super) fn push(&mut self, command: Command) {
        self.program.push(command);
    }

    /// Notes that nothing writes this memory.
    pub(super) fn note_constant(&mut self, memory: Range<u64>) {
        self.program.note_constant(memory);
    }

    /// Starts the capture again if it was invalidated, and captures all commands.
    ///
    /// # Errors
    /// Returns errors of the backend.
    fn capture(
        &mut self,
        stream: &mut Stream,
        log: &mut Log,
        site: &'static Site,
        bindings: &[InputBinding],
    ) -> Result<()> {
        if !self.is_capturing() {
            let begun = begin_capture(stream, bindings);
            // From here on it is active; after an error, whoever aborts the recording ends it.
            self.capture = unless_invalidated(stream, log, site, begun)?.into();
        }
        if self.is_capturing() {
            let issued =
                self.program.commands().iter().try_for_each(|command| command.issue(stream.backend_mut()));
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
        match self.recorder.write_down(command) {
            Some(command) => command.issue(self.stream.backend_mut()),
            None => Ok(()),
        }
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
        let mut target = Target {
            backend: self.launcher.stream.backend_mut(),
            deterministic: call.numerics().deterministic,
            segment: site,
        };
        recording.log.rewritten = call.passes().run(&mut recording.log.program, &mut target)?;
        let mut retries = RETRIES;
        loop {
            if !recording.log.is_capturing() {
                if retries == 0 {
                    break;
                }
                retries -= 1;
            }
            let (stream, log) = (&mut *self.launcher.stream, &mut *self.launcher.log);
            recording.log.capture(stream, log, site, recording.bindings.all())?;
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
        self.run_commands(commands.program.commands())
    }
}

//! The commands of a recording, written down so that an invalidated capture can be made again.
//!
//! Another thread of the process may invalidate a capture (in CUDA, by waiting for the whole device). The body may be one
//! that can run once only; but all that it puts into a capture goes through here, with the addresses that it has. From
//! the moment of the invalidation on it is only written down, and when the body has ended, and passed all that a
//! recording must pass, the capture is made again from that, in one go. When this fails too often, what is written down
//! runs as it is, as the body's operations would have without a recording.

use super::{
    call::CallState,
    copied_inputs::InputBinding,
    exec_reuse::{Captured, ExecFinder},
    launch::Launcher,
    replay::Replayer,
    run::Run,
    stream::Stream,
};
use crate::{
    Error, Result,
    backend::{Backend, Launch, SharedMemory},
    base::{plan::Site, reason::FallbackReason},
    observe::{event::CopySlot, log::Log, occurrence::Occurrence},
};

/// How often the capture of one recording is made again.
const RETRIES: u32 = 8;

/// One command of a recording.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Launch(Box<Launch>),
    Poison { addr: u64, bytes: u64 },
    Fork,
    Branch(usize),
    Join,
}

impl Command {
    fn issue(&self, backend: &mut dyn Backend) -> Result<()> {
        match self {
            Self::Launch(launch) => backend.launch(launch),
            Self::Poison { addr, bytes } => backend.poison(*addr, *bytes),
            Self::Fork => backend.fork(),
            Self::Branch(index) => backend.branch(*index),
            Self::Join => backend.join(),
        }
    }

    /// Outside a capture, where branches run one after the other.
    fn run(&self, launcher: &mut Launcher<'_>) -> Result<()> {
        match self {
            Self::Launch(launch) => {
                if launch.op.operation().writes_in_place() {
                    launcher.save_before_write(&launch.outputs)?;
                }
                launcher.stream.backend_mut().launch(launch)
            }
            Self::Poison { .. } => self.issue(launcher.stream.backend_mut()),
            Self::Fork | Self::Branch(_) | Self::Join => Ok(()),
        }
    }
}

/// Where the capture of a recording stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaptureState {
    /// The device captures, and has every command of the log.
    Capturing,
    /// The device captures nothing: another thread invalidated the capture, which was abandoned. Commands are only
    /// written down.
    Invalidated,
}

/// The commands of a recording, in order, and the state of its capture.
#[derive(Debug)]
pub(super) struct CommandLog {
    commands: Vec<Command>,
    capture: CaptureState,
}

impl CommandLog {
    /// Starts the capture of a recording; one that is invalidated at once is made at the end.
    ///
    /// # Errors
    /// What the backend reports.
    pub(super) fn begin(
        stream: &mut Stream,
        log: &mut Log,
        site: &'static Site,
        bindings: &[InputBinding],
    ) -> Result<Self> {
        let begun = begin_capture(stream, bindings);
        Ok(Self { commands: Vec::new(), capture: unless_invalidated(stream, log, site, begun)?.into() })
    }

    /// Whether a capture is under way.
    pub(super) fn is_capturing(&self) -> bool {
        self.capture == CaptureState::Capturing
    }

    /// Writes a command down, and captures it as long as the capture is good.
    ///
    /// # Errors
    /// What the backend reports.
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
    /// What the backend reports.
    fn redo(
        &mut self,
        stream: &mut Stream,
        log: &mut Log,
        site: &'static Site,
        bindings: &[InputBinding],
    ) -> Result<()> {
        let begun = begin_capture(stream, bindings);
        // From here on it is under way, which an error leaves to whoever aborts the recording.
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

/// Starts a capture; a replay will bring what waits now, and the whole of what may be read of copied live-ins.
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
    /// Puts a command into the recording under way, or runs it, if there is none.
    ///
    /// # Errors
    /// What the backend reports.
    pub(super) fn issue(&mut self, command: Command) -> Result<()> {
        let Some(run) = self.recorder.run_mut() else { return command.issue(self.stream.backend_mut()) };
        let site = run.site;
        match run.recording_mut() {
            Some(recording) => recording.log.record(self.stream, self.log, site, command),
            None => command.issue(self.stream.backend_mut()),
        }
    }
}

impl Replayer<'_> {
    /// Ends the capture of a run whose body has ended well, made again as often as needed. `None`: it was invalidated
    /// too often, and what was put into it has run.
    ///
    /// # Errors
    /// What the backend reports; [`Error::FallbackForbidden`].
    pub(crate) fn end_capture(
        &mut self,
        call: &CallState,
        run: &mut Run,
        retain: &[SharedMemory],
    ) -> Result<Option<Captured>> {
        let (site, identity) = (run.site, run.identity);
        let Some(recording) = run.recording_mut() else { return Ok(None) };
        for attempt in 0..=RETRIES {
            if recording.log.is_capturing() {
                let mut finder = ExecFinder {
                    tree: &mut *self.tree,
                    stream: &mut *self.launcher.stream,
                    log: &mut *self.launcher.log,
                };
                let ended = finder.end_capture(site, identity, call, (self.reuse_budget, retain.to_vec()));
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
    /// Runs what could not be captured.
    fn run_instead(&mut self, commands: &CommandLog, bindings: &[InputBinding]) -> Result<()> {
        // What a replay would bring.
        let upload = self.stream.upload_with(bindings.iter().map(InputBinding::whole_copy));
        for binding in bindings {
            self.log.emit(Occurrence::Copied { slot: CopySlot::LiveIn, bytes: binding.bytes() });
        }
        self.stream.write_instead(upload)?;
        commands.commands.iter().try_for_each(|command| command.run(self))
    }
}

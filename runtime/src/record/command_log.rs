//! What is put into a recording, so that its capture can be made again.
//!
//! Another thread of the process may spoil a capture (in CUDA, by waiting for the whole device). The body may be one
//! that can run once only; but all that it puts into a capture goes through here, with the addresses that it has. From
//! the moment of the spoil on it is only written down, and when the body has ended, and passed all that a recording
//! must pass, the capture is made again from that, in one go. When this fails too often, what is written down runs as
//! it is, as the body's operations would have without a recording.

use super::{Core, Run, run::Redirect, share::Ended};
use crate::{
    Error, Result,
    backend::{Backend, Launch, SharedMemory},
    base::plan::Site,
    observe::event::CopySlot,
};

/// How often the capture of one recording is made again.
const RETRIES: u32 = 8;

/// One thing in a recording.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Launch(Box<Launch>),
    Poison { addr: u64, bytes: u64 },
    Fork,
    Branch(usize),
    Join,
}

impl Act {
    pub(crate) fn put(&self, backend: &mut dyn Backend) -> Result<()> {
        match self {
            Self::Launch(launch) => backend.launch(launch),
            Self::Poison { addr, bytes } => backend.poison(*addr, *bytes),
            Self::Fork => backend.fork(),
            Self::Branch(index) => backend.branch(*index),
            Self::Join => backend.join(),
        }
    }

    /// Outside a capture, where branches run one after the other.
    pub(crate) fn run(&self, core: &mut Core) -> Result<()> {
        match self {
            Self::Launch(launch) => {
                if launch.op.writes_in_place() {
                    core.save_before_write(&launch.outputs)?;
                }
                core.backend.launch(launch)
            }
            Self::Poison { .. } => self.put(&mut *core.backend),
            Self::Fork | Self::Branch(_) | Self::Join => Ok(()),
        }
    }
}

/// All of it, in order.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    acts: Vec<Act>,
    /// Whether a capture is under way that has all of it.
    pub(crate) captured: bool,
    retries: u32,
}

impl Core {
    /// Starts the capture of a recording; one that is spoilt at once is made at the end.
    ///
    /// # Errors
    /// What the backend says.
    pub(crate) fn start_capture(&mut self, site: &'static Site, redirects: &[Redirect]) -> Result<Tape> {
        let begun = self.begin_capture(redirects);
        let captured = self.unless_spoilt(site, begun)?.is_some();
        Ok(Tape { captured, ..Tape::default() })
    }

    /// Puts something into the recording under way, or runs it, if there is none.
    ///
    /// # Errors
    /// What the backend says.
    pub(crate) fn put(&mut self, act: Act) -> Result<()> {
        if !self.capturing() {
            return act.put(&mut *self.backend);
        }
        let Some(site) = self.run.as_ref().map(|run| run.site) else { return Ok(()) };
        let mut captured = self.run.as_ref().is_some_and(|run| run.tape.captured);
        if captured {
            let done = act.put(&mut *self.backend);
            captured = self.unless_spoilt(site, done)?.is_some();
        }
        if let Some(run) = &mut self.run {
            run.tape.captured = captured;
            run.tape.acts.push(act);
        }
        Ok(())
    }

    /// Ends the capture of a run whose body has ended well, made again as often as needed. `None`: it was spoilt too
    /// often, and what was put into it has run.
    ///
    /// # Errors
    /// What the backend says; [`Error::FallbackForbidden`].
    pub(crate) fn end_capture_shared(
        &mut self,
        run: &mut Run,
        retain: &[SharedMemory],
    ) -> Result<Option<Ended>> {
        loop {
            if run.tape.captured {
                let ended = self.end_capture(run, retain.to_vec());
                if let Some(ended) = self.unless_spoilt(run.site, ended)? {
                    return Ok(Some(ended));
                }
                run.tape.captured = false;
            }
            if run.tape.retries == RETRIES {
                return self.run_instead(run).map(|()| None);
            }
            run.tape.retries += 1;
            let begun = self.begin_capture(run.redirects.all());
            // From here on it is under way, which an error leaves to `abort_run`.
            run.tape.captured = self.unless_spoilt(run.site, begun)?.is_some();
            if run.tape.captured {
                let again = run.tape.acts.iter().try_for_each(|act| act.put(&mut *self.backend));
                run.tape.captured = self.unless_spoilt(run.site, again)?.is_some();
            }
        }
    }

    /// `None` when the capture was spoilt, which is abandoned then.
    pub(crate) fn unless_spoilt<R>(&mut self, site: &'static Site, result: Result<R>) -> Result<Option<R>> {
        match result {
            Ok(done) => Ok(Some(done)),
            Err(lost @ Error::ContextLost { .. }) => Err(lost),
            Err(_) if self.backend.capture_was_invalidated() => {
                self.backend.abort_capture();
                self.log.aborted(site);
                self.log.spoilt(site);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn run_instead(&mut self, run: &Run) -> Result<()> {
        self.fall_back_spoilt(run.site)?;
        // What a replay would bring.
        let host = self.with_copies(run.redirects.all());
        for r in run.redirects.all() {
            self.log.copied(CopySlot::LiveIn, r.end - r.from);
        }
        self.pending = None;
        if let Some(host) = host {
            let written = self.backend.host_write(host);
            self.unless_lost(true, written)?;
        }
        run.tape.acts.iter().try_for_each(|act| act.run(self))
    }
}

//! What was put into the capture under way, so that it can be made again.
//!
//! Another thread of the process may spoil a capture (in CUDA, by waiting for the whole device). The body has run
//! by then, and may be one that can run once only; but all that it puts into a capture goes through here, with the
//! addresses that it has.

use super::{Core, Run, RunKind, fork::Fork, run::Redirect};
use crate::{
    Result,
    backend::{Backend, Launch, Op},
    event::CopySlot,
    plan::Site,
};

/// How often the capture of one recording is made again.
const RETRIES: u32 = 8;

/// One thing in a capture.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Launch(Box<Launch>),
    Poison { addr: u64, bytes: u64 },
    Fork,
    Branch(usize),
    Join,
}

impl Act {
    fn put(&self, backend: &mut dyn Backend) -> Result<()> {
        match self {
            Self::Launch(launch) => backend.launch(launch),
            Self::Poison { addr, bytes } => backend.poison(*addr, *bytes),
            Self::Fork => backend.fork(),
            Self::Branch(index) => backend.branch(*index),
            Self::Join => backend.join(),
        }
    }

    /// Outside a capture, where branches run one after the other.
    fn run(&self, core: &mut Core) -> Result<()> {
        match self {
            Self::Launch(launch) => {
                if let Op::ScatterRows | Op::RopeScatter { .. } | Op::Copy = launch.op {
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
pub(super) struct Tape {
    acts: Vec<Act>,
    /// How often it was made again.
    retries: u32,
}

impl Core {
    /// Puts something into the capture under way.
    ///
    /// # Errors
    /// What the backend says; [`Error::FallbackForbidden`](crate::Error::FallbackForbidden) when the capture is spoilt again and again.
    pub(super) fn put(&mut self, act: Act) -> Result<()> {
        let done = act.put(&mut *self.backend);
        let Some(run) = self.run.as_mut().filter(|run| run.kind == RunKind::Record) else { return done };
        run.tape.acts.push(act);
        match done {
            Err(_) if self.backend.capture_was_spoilt() => self.capture_again(),
            other => other,
        }
    }

    /// Starts the capture of a run; `false` when it is spoilt again and again before anything is in it, and the run
    /// does without.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub(super) fn start_capture(
        &mut self,
        site: &'static Site,
        redirects: &[Redirect],
        tape: &mut Tape,
    ) -> Result<bool> {
        loop {
            match self.begin_capture(redirects) {
                Err(_) if self.backend.capture_was_spoilt() => {
                    self.log.aborted(site);
                    self.log.spoilt(site);
                }
                begun => return begun.map(|()| true),
            }
            if tape.retries == RETRIES {
                return self.fall_back_spoilt(site).map(|()| false);
            }
            tape.retries += 1;
        }
    }

    /// Makes the capture of this run again, which was spoilt. When that happens too often the run goes on without
    /// one: what was put into it runs now.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub(super) fn capture_again(&mut self) -> Result<()> {
        let Some(mut run) = self.run.take() else { return Ok(()) };
        loop {
            self.backend.abort_capture();
            self.log.aborted(run.site);
            self.log.spoilt(run.site);
            if run.tape.retries == RETRIES {
                return self.go_on_without(run);
            }
            run.tape.retries += 1;
            let again = self
                .begin_capture(&run.redirects)
                .and_then(|()| run.tape.acts.iter().try_for_each(|act| act.put(&mut *self.backend)));
            if again.is_err() && self.backend.capture_was_spoilt() {
                continue;
            }
            self.run = Some(run);
            return again;
        }
    }

    fn go_on_without(&mut self, mut run: Run) -> Result<()> {
        if let Err(error) = self.fall_back_spoilt(run.site) {
            self.run = Some(run);
            return Err(error);
        }
        run.kind = RunKind::Eager;
        self.forks.iter_mut().for_each(Fork::is_not_recorded);
        let acts = std::mem::take(&mut run.tape.acts);
        // What a replay would bring.
        let host = self.with_copies(&run.redirects);
        for r in &run.redirects {
            self.log.copied(CopySlot::LiveIn, r.end - r.from);
        }
        (self.run, self.pending) = (Some(run), None);
        if let Some(host) = host {
            self.backend.host_write(host)?;
        }
        acts.iter().try_for_each(|act| act.run(self))
    }
}

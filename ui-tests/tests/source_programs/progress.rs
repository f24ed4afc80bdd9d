//! How far a long run came, in a file.

use std::{
    env,
    fmt::Write as _,
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use crate::number;

/// A run that stops after some time, and goes on where an earlier one stopped.
pub(crate) struct Progress {
    file: Option<PathBuf>,
    /// What the file says: a line for each batch, and what failed.
    text: String,
    /// The first seed that was not tried.
    next: u64,
    began: Instant,
    limit: Option<Duration>,
    /// Functions that this run tried.
    tried: u64,
}

impl Progress {
    /// Of a run that begins with seed `from`, unless its file says more.
    pub(crate) fn open(from: u64) -> Self {
        let file = env::var_os("GRAPHABLE_SOURCE_PROGRESS").map(PathBuf::from);
        let text = file.as_ref().and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        let seeds =
            text.lines().filter_map(|l| l.strip_prefix("tried up to ")?.split(':').next()?.parse().ok());
        let next = seeds.max().unwrap_or(from);
        let limit = number("GRAPHABLE_SOURCE_SECONDS").map(Duration::from_secs);
        Self { file, text, next, began: Instant::now(), limit, tried: 0 }
    }

    /// Whether to try the batch that begins with this seed.
    pub(crate) fn wants(&self, start: u64) -> bool {
        start >= self.next && self.limit.is_none_or(|limit| self.began.elapsed() < limit)
    }

    /// A batch is done, up to seed `next`.
    pub(crate) fn done(&mut self, next: u64, ran: usize, failures: &str) {
        self.tried += next - self.next.min(next);
        self.next = next;
        let Some(file) = &self.file else { return };
        let _ = writeln!(self.text, "tried up to {next}: {ran} ran in this run\n{failures}");
        fs::write(file, &self.text).expect("the progress can be written");
    }

    /// How many functions this run tried, of `count`.
    pub(crate) fn tried(&self, count: u64) -> u64 {
        if self.file.is_none() && self.limit.is_none() { count } else { self.tried }
    }
}

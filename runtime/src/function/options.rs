//! What a builder collects.

use crate::{bucket::Schedule, mode::Mode};

/// What a builder collects.
#[derive(Clone, Debug)]
pub struct Options {
    pub(super) mode: Mode,
    pub(super) schedules: Vec<(&'static str, Schedule)>,
    pub(super) audit_every: u32,
    pub(super) or_error: bool,
    pub(super) max_recordings: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            schedules: Vec::new(),
            audit_every: 0,
            or_error: false,
            max_recordings: 128,
        }
    }
}

impl Options {
    /// Buckets of a symbol.
    pub fn bucket(&mut self, symbol: &'static str, schedule: Schedule) {
        self.schedules.retain(|(s, _)| *s != symbol);
        self.schedules.push((symbol, schedule));
    }

    /// The mode.
    pub fn mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Compare every `n`-th replay with its body; 0 never.
    pub fn audit_every(&mut self, n: u32) {
        self.audit_every = n;
    }

    /// Errors instead of fallbacks.
    pub fn or_error(&mut self, on: bool) {
        self.or_error = on;
    }

    /// How often one segment may be recorded on one edge of the tree.
    pub fn max_recordings(&mut self, n: usize) {
        self.max_recordings = n;
    }
}

//! The options of a builder.

use std::sync::Arc;

use super::{dispatch::buckets::Schedule, listed::Listed};
use crate::{Batching, Limits, Numerics, Passes, Policy, base::mode::Mode};

/// The options of a builder.
#[derive(Clone, Debug)]
pub struct Options {
    pub(super) mode: Mode,
    pub(super) batching: Option<Batching>,
    pub(super) schedules: Vec<(&'static str, Schedule)>,
    pub(super) audit_every: u32,
    pub(super) deny_fallback: bool,
    pub(super) eager_conditionals: bool,
    pub(super) limits: Limits,
    pub(super) policy: Option<Arc<dyn Policy>>,
    pub(super) listed: Vec<Listed>,
    pub(super) enabled: bool,
    /// `None`: those of the runtime.
    pub(super) numerics: Option<Numerics>,
    /// Likewise.
    pub(super) passes: Option<Passes>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            batching: None,
            schedules: Vec::new(),
            audit_every: 0,
            deny_fallback: false,
            eager_conditionals: false,
            limits: Limits::default(),
            policy: None,
            listed: Vec::new(),
            enabled: true,
            numerics: None,
            passes: None,
        }
    }
}

impl Options {
    /// Sets the buckets of a symbol.
    pub fn bucket(&mut self, symbol: &'static str, schedule: Schedule) {
        self.schedules.retain(|(s, _)| *s != symbol);
        self.schedules.push((symbol, schedule));
    }

    /// Sets the mode.
    pub fn mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Describes the batches of calls.
    pub fn batch(&mut self, batching: Batching) {
        self.batching = Some(batching);
    }

    /// Compares every `n`-th replay with its body; 0 means never.
    pub fn audit_every(&mut self, n: u32) {
        self.audit_every = n;
    }

    /// Turns fallbacks into errors.
    pub fn deny_fallback(&mut self, on: bool) {
        self.deny_fallback = on;
    }

    /// Lets segments with conditional nodes run without a graph on a device that has none.
    pub fn eager_conditionals(&mut self, on: bool) {
        self.eager_conditionals = on;
    }

    /// Sets how often one segment may be recorded on one edge of the tree.
    pub fn max_recordings(&mut self, n: usize) {
        self.limits.max_recordings = n;
    }

    /// Sets limits.
    pub fn limits(&mut self, set: impl FnOnce(&mut Limits)) {
        set(&mut self.limits);
    }

    /// Sets the policy.
    pub fn policy(&mut self, policy: impl Policy + 'static) {
        self.policy = Some(Arc::new(policy));
    }

    /// Restricts graphs to these sizes of some symbols.
    pub fn capture_only<const N: usize>(
        &mut self,
        symbols: [&'static str; N],
        sizes: impl IntoIterator<Item = [usize; N]>,
    ) {
        let sizes = sizes.into_iter().map(|s| s.to_vec()).collect();
        self.listed.push(Listed { symbols: symbols.to_vec(), sizes });
    }

    /// Sets whether calls initially use graphs.
    pub fn enabled(&mut self, on: bool) {
        self.enabled = on;
    }

    /// Sets the switches of the numerics.
    pub fn numerics(&mut self, numerics: Numerics) {
        self.numerics = Some(numerics);
    }

    /// Sets the passes over recordings.
    pub fn passes(&mut self, passes: Passes) {
        self.passes = Some(passes);
    }
}

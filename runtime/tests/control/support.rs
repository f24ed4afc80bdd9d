//! Runtimes for these tests, and calls in every mode.

use std::sync::Arc;

use graphable::{
    CpuOptions, Event, FallbackReason, Mode, Runtime, Step,
    backend::{
        Backend,
        faulty::{FaultPlan, FaultyBackend},
    },
};

use crate::device;

pub(crate) const MODES: [Mode; 3] = [Mode::None, Mode::Piecewise, Mode::Full];

fn options(seed: Option<u64>) -> CpuOptions {
    let options = CpuOptions::default().threads(2);
    seed.map_or(options.clone(), |seed| options.test_mode(seed))
}

/// In test mode: independent nodes run in random order, and freed memory is overwritten.
pub(crate) fn runtime() -> Runtime {
    let rt = Runtime::new(device::device(options(Some(7)))).unwrap();
    rt.keep_events(true);
    rt
}

/// A runtime whose backend fails on command.
pub(crate) fn faulty() -> (Runtime, Arc<FaultPlan>) {
    let plan = Arc::<FaultPlan>::default();
    let inner: Box<dyn Backend> = device::backend(options(Some(11)));
    let backend = FaultyBackend::new(inner, Arc::clone(&plan));
    let rt = Runtime::with_backend(Box::new(backend)).unwrap();
    rt.keep_events(true);
    (rt, plan)
}

/// What a graph is built with: a mode, and how often replays are audited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) mode: Mode,
    pub(crate) audit_every: u32,
    pub(crate) last_use: bool,
    pub(crate) shares: bool,
}

/// Every mode, without and with audits, with and without early frees, and with shared executables.
pub(crate) fn setups() -> Vec<Setup> {
    let plain = |mode| Setup { mode, audit_every: 0, last_use: true, shares: false };
    let mut all: Vec<Setup> = MODES.map(plain).to_vec();
    for mode in [Mode::Piecewise, Mode::Full] {
        all.push(Setup { audit_every: 2, ..plain(mode) });
        all.push(Setup { last_use: false, ..plain(mode) });
        all.push(Setup { shares: true, ..plain(mode) });
    }
    all
}

impl Setup {
    pub(crate) fn runtime(&self) -> Runtime {
        let rt = runtime();
        self.prepare(&rt);
        rt
    }

    pub(crate) fn prepare(&self, rt: &Runtime) {
        rt.free_at_last_use(self.last_use);
        if self.shares {
            rt.share_executables(Some(std::time::Duration::MAX));
        }
    }
}

/// Builds a graph of this setup.
macro_rules! build {
    ($graph:ident, $setup:expr, $rt:expr) => {
        $graph::builder()
            .mode($setup.mode)
            .audit_every($setup.audit_every)
            .deny_fallback(true)
            .build($rt)
            .unwrap()
    };
}
pub(crate) use build;

/// The reasons of fallbacks since the last question.
pub(crate) fn fallbacks(step: &Step<'_>) -> Vec<FallbackReason> {
    let of = |event: Event| match event {
        Event::FellBack { reason, .. } => Some(reason),
        _ => None,
    };
    step.take_events().into_iter().filter_map(of).collect()
}

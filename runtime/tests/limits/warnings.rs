//! What a test logs.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use crate::support::several_subscribers;

/// Counts what is logged at the level of warnings.
struct Warnings(Arc<AtomicU32>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// Runs `f`, which can ask how many warnings this thread has logged since.
pub(crate) fn counting_warnings(f: impl FnOnce(&dyn Fn() -> u32)) {
    let count = Arc::new(AtomicU32::new(0));
    let warnings = || count.load(Ordering::SeqCst);
    several_subscribers();
    tracing::subscriber::with_default(Warnings(Arc::clone(&count)), || f(&warnings));
}

//! A timeline of what the runtime did, for Perfetto or `chrome://tracing`.

use std::{
    fs,
    io::{self, Write},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use tracing_subscriber::{Layer as _, filter::FilterFn, layer::SubscriberExt as _};

use crate::{Error, Result};

/// Where the layer writes. A file that cannot be written is then an error of ours, not a panic of its thread.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs `work` and writes the spans of the runtime on this thread to `path`: steps, calls, segments with what
/// was decided of each, and eager regions.
///
/// # Errors
/// Those of `work`; a file that cannot be written.
pub fn record<T>(path: &Path, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let failed = |e: io::Error| Error::io(path, "write", &e);
    // Before the work, which may take long.
    fs::File::create(path).map_err(failed)?;
    let buffer = Buffer::default();
    let (layer, guard) =
        tracing_chrome::ChromeLayerBuilder::new().writer(buffer.clone()).include_args(true).build();
    let ours = FilterFn::new(|of: &tracing::Metadata<'_>| of.target() == "graphable::timeline");
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(ours));
    let out = tracing::subscriber::with_default(subscriber, work);
    // Ends the layer's thread: everything is written then.
    drop(guard);
    let bytes = std::mem::take(&mut *buffer.0.lock().unwrap_or_else(PoisonError::into_inner));
    fs::write(path, bytes).map_err(failed)?;
    out
}

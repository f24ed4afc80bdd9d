//! Bars on standard error: while weights are loaded, while graphs are captured, and while a recording is heard. There are none if
//! standard error is not a terminal.

use std::{cell::RefCell, collections::VecDeque};

use graphable::CaptureProgress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows how many bytes of the weights were read. Cleared when dropped, so that an error message stands alone.
pub(crate) struct ByteBar(ProgressBar);

impl ByteBar {
    /// A bar, which says what is `done` with the bytes; one that is not `visible` shows nothing.
    pub(crate) fn new(done: &'static str, visible: bool) -> Self {
        let target = if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        // As for captures.
        if let Ok(style) =
            ProgressStyle::with_template("{msg} [{bar:30}] {decimal_bytes}/{decimal_total_bytes}")
        {
            bar.set_style(style);
        }
        bar.set_message(done);
        Self(bar)
    }

    /// Shows how many of `total` bytes were read.
    pub(crate) fn show(&self, read: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(read);
    }
}

impl Drop for ByteBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Shows how many things are done. Cleared when dropped, so that an error message stands alone.
pub(crate) struct CountBar(ProgressBar);

impl CountBar {
    /// A bar for `total` of what `things` says; one that is not `visible` shows nothing.
    pub(crate) fn new(things: &'static str, total: u64, visible: bool) -> Self {
        let target = if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        // As for captures.
        if let Ok(style) = ProgressStyle::with_template("[{bar:30}] {pos}/{len} {msg}, {eta} left") {
            bar.set_style(style);
        }
        bar.set_message(things);
        Self(bar)
    }

    /// Shows that one more is done.
    pub(crate) fn advance(&self) {
        self.0.inc(1);
    }
}

impl Drop for CountBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Shows how far a capture is. Cleared when dropped, so that an error message stands alone.
pub(crate) struct CaptureBar(ProgressBar);

impl CaptureBar {
    /// A bar; one that is not `visible` shows nothing.
    pub(crate) fn new(visible: bool) -> Self {
        let target = if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        // A template that cannot be parsed would be a mistake of ours; the default serves too.
        if let Ok(style) = ProgressStyle::with_template("capturing {msg} [{bar:30}] {pos}/{len}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Shows the sizes that `function` is captured for now.
    pub(crate) fn show(&self, function: &str, p: &CaptureProgress<'_>) {
        self.0.set_length(p.total as u64);
        self.0.set_position(p.done as u64);
        let sizes = p.symbols.iter().zip(p.sizes).map(|(symbol, size)| format!(" {symbol}={size}"));
        self.0.set_message(sizes.fold(function.to_owned(), |all, one| all + &one));
    }
}

impl Drop for CaptureBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Chunks that a [`SpeechBar`] shows: two seconds.
const SHOWN: usize = 62;

/// Shows the probabilities of the last chunks as columns. Cleared when dropped.
pub(crate) struct SpeechBar {
    bar: ProgressBar,
    columns: RefCell<VecDeque<char>>,
}

impl SpeechBar {
    /// A bar; one that is not `visible` shows nothing.
    pub(crate) fn new(visible: bool) -> Self {
        let target = if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        // As for captures.
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        Self { bar, columns: RefCell::default() }
    }

    /// Shows the probability of the chunk that ends after so many seconds.
    pub(crate) fn show(&self, seconds: f64, probability: f32) {
        const COLUMNS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let mut columns = self.columns.borrow_mut();
        if columns.len() == SHOWN {
            columns.pop_front();
        }
        // Saturates, so the last column is the highest.
        columns.push_back(COLUMNS[(probability * 8.0).min(7.0) as usize]);
        let line: String = columns.iter().collect();
        self.bar.set_message(format!("{seconds:7.2} s {line} {probability:.2}"));
    }

    /// Prints something while the bar is out of its way.
    pub(crate) fn hidden<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

impl Drop for SpeechBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

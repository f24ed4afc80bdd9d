//! A bar on standard error while graphs are captured.

use graphable::CaptureProgress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

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

//! Choosing tokens from logits: penalties, filters, the choice, and the probabilities of what was chosen.

mod config;
mod filters;
mod kernels;
mod log_probs;
mod marks;
mod per_row;
mod sample;

pub use config::SampleConfig;
pub use filters::{
    apply_min_p, apply_presence_penalty, apply_repetition_penalty, apply_temperature, apply_top_k,
    apply_top_p,
};
pub use kernels::NO_TOKEN;
pub use log_probs::{token_log_probs, top_log_probs};
pub use marks::mark_tokens;
pub use per_row::PerRow;
pub use sample::{choose_token, sample, sample_with};

#[cfg(feature = "cuda")]
use crate::kernel::definition::{Definition, Kernel as _};

/// The kernels of this folder, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    use kernels::of;
    [
        of::repetition_penalty::DEFINITION,
        of::presence_penalty::DEFINITION,
        of::best::DEFINITION,
        of::temperature::DEFINITION,
        of::top_k::DEFINITION,
        of::top_p::DEFINITION,
        of::min_p::DEFINITION,
        of::greedy::DEFINITION,
        of::choose::DEFINITION,
        of::middle::DEFINITION,
        of::token_log_probs::DEFINITION,
        of::total::DEFINITION,
        of::log_probs::DEFINITION,
        of::place::DEFINITION,
    ]
    .into_iter()
}

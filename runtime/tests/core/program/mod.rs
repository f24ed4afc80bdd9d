//! Passes over recordings.

mod passes;
mod users_passes;

//! Recordings: what is recorded, replayed, audited, shared and waited for.

mod audit;
mod branches;
mod lifecycle;
mod random;
mod results;
mod sharing;
mod waits;

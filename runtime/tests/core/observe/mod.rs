//! What a runtime shows of itself: events, estimates, its tree, timelines.

mod estimates;
mod hooks;
mod inspect;
mod timeline;

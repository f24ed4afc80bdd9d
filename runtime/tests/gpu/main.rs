//! What only a GPU shows. Without one each test says that it was skipped, and the errors for that are
//! tested instead.
//!
//! `GRAPHABLE_SOAK=1000000` sets the number of replays of the soak (20000 at first).

mod attention;
mod by_hand;
mod cache;
mod context;
mod conv;
mod copies;
mod eager;
mod foreign;
mod inputs;
mod interop;
mod lost;
mod missing;
mod numerics;
mod pinned;
mod products;
mod soak;
mod support;
mod timing;
mod weights;

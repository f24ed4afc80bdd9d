//! Memory: what is alive, kept, moved, borrowed, pinned or asleep, and that none of it grows.

mod growth;
mod kept;
mod last_use;
mod liveness;
mod maintenance;
mod moved_memory;
mod pinned;
mod sleep;
mod weights;

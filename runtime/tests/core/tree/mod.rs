//! The tree of recordings: its paths, what evicts from it, and random walks.

mod eviction;
mod paths;
mod walk;

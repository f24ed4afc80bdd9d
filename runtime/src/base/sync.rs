//! The locks and atomics of the small protocols between threads. The `loom-tests` crate compiles the same
//! files with those of loom, and tries every interleaving of the threads.

pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic};

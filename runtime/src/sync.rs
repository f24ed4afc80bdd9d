//! What the small protocols between threads are written with. The `loom-tests` crate compiles the same files
//! with loom's, and tries every order in which threads can meet.

pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic};

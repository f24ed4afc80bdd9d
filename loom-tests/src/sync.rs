//! Loom's, under the names of the runtime's `sync`.

pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};
pub(crate) use std::sync::PoisonError;

//! Loom's, under the names of the runtime's `base`.

pub(crate) mod sync {
    pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};
    pub(crate) use std::sync::PoisonError;
}

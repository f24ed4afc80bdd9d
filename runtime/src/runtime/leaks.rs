//! Leak counters of a runtime.

use crate::{
    Runtime,
    memory::{Live, Tables},
};

impl Live {
    /// Of `rt`, now.
    pub fn of(rt: &Runtime) -> Self {
        rt.core.borrow().live()
    }
}

impl Tables {
    /// Of `rt`, now.
    pub fn of(rt: &Runtime) -> Self {
        rt.core.borrow().tables()
    }
}

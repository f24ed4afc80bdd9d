//! The memory of values that outlive their step.

use std::sync::{
    Arc, Mutex, PoisonError, Weak,
    atomic::{AtomicU64, Ordering},
};

use super::{dim::RawDim, layout::Layout, owned::Owned};
use crate::DType;

/// Memory of dropped kept values, until the runtime takes it: the next value of the same size can reuse it,
/// with its identity, so that recordings made with it remain valid.
#[derive(Default)]
pub(crate) struct DroppedMemory(Mutex<Vec<Arc<Owned>>>);

impl DroppedMemory {
    fn push(&self, memory: Arc<Owned>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
    }

    pub(crate) fn take(&self) -> Vec<Arc<Owned>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One storage of kept values.
pub(crate) struct PersistentMemory {
    owned: Arc<Owned>,
    /// Empty for a parameter's memory, which must not be reused, and once the runtime has been dropped.
    dropped: Weak<DroppedMemory>,
    /// The total number of bytes held, including this storage; `None` for a parameter's memory.
    sum: Option<Arc<AtomicU64>>,
}

impl PersistentMemory {
    /// Creates the storage of a parameter, which is kept without a copy.
    pub(crate) fn shared(owned: Arc<Owned>) -> Arc<Self> {
        Arc::new(Self { owned, dropped: Weak::new(), sum: None })
    }

    /// Creates a storage owned by a kept value; it counts in `sum` while it is held.
    pub(crate) fn held(owned: Arc<Owned>, dropped: Weak<DroppedMemory>, sum: &Arc<AtomicU64>) -> Arc<Self> {
        sum.fetch_add(owned.memory.len(), Ordering::Relaxed);
        Arc::new(Self { owned, dropped, sum: Some(Arc::clone(sum)) })
    }

    #[inline]
    pub(crate) fn owned(&self) -> &Arc<Owned> {
        &self.owned
    }
}

impl Drop for PersistentMemory {
    fn drop(&mut self) {
        if let Some(sum) = &self.sum {
            sum.fetch_sub(self.owned.memory.len(), Ordering::Relaxed);
        }
        // This can happen on any thread, at any time: only the runtime may reuse the memory, or free it.
        if let Some(dropped) = self.dropped.upgrade() {
            dropped.push(Arc::clone(&self.owned));
        }
    }
}

/// One piece of a kept value.
#[derive(Clone)]
pub(crate) enum Piece {
    Tensor {
        memory: Arc<PersistentMemory>,
        /// The offset in bytes from the start of the memory.
        offset: u64,
        dtype: DType,
        layout: Layout,
    },
    Word(u64),
    Text(Arc<str>),
    Size(RawDim),
}

//! The memory of values that outlive their step.

use std::sync::{
    Arc, Mutex, PoisonError, Weak,
    atomic::{AtomicU64, Ordering},
};

use super::{dim::RawDim, layout::Layout, owned::Owned};
use crate::DType;

/// Memory of kept values that were dropped, until the runtime takes it: the next value of that size may
/// have it, with its identity, so that what was recorded with it stays right.
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
    /// Gone for a parameter's memory, which is not ours to use again, and once the runtime is gone.
    dropped: Weak<DroppedMemory>,
    /// The bytes of all that is held, this among them; `None` for a parameter's.
    sum: Option<Arc<AtomicU64>>,
}

impl PersistentMemory {
    /// Of a parameter, which is kept without a copy.
    pub(crate) fn shared(owned: Arc<Owned>) -> Arc<Self> {
        Arc::new(Self { owned, dropped: Weak::new(), sum: None })
    }

    /// Of a kept value alone; it counts in `sum` as long as it is held.
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
        // On any thread, at any time: only the runtime may use it again, or free it.
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
        /// Bytes from the start of the memory.
        offset: u64,
        dtype: DType,
        layout: Layout,
    },
    Word(u64),
    Text(Arc<str>),
    Size(RawDim),
}

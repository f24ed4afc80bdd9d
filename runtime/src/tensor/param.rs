//! Memory that outlives steps: parameters and state.

use std::{
    fmt,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    Element, Result, Runtime,
    backend::{SharedMemory, View},
    base::dtype::to_bytes,
    value::{layout::Layout, retire::RetireQueue},
};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Identity of owned memory. Never given twice, so a recording cannot mistake a new parameter for
/// the old one whose address it got.
pub(crate) fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// Device memory with an identity.
pub(crate) struct Owned {
    pub(crate) id: u64,
    pub(crate) runtime: u64,
    pub(crate) memory: SharedMemory,
    /// Id and name of the graph object whose buffer it is; 0 for memory of the user's.
    pub(crate) function: (u64, &'static str),
    retire: Arc<RetireQueue>,
}

impl Owned {
    pub(crate) fn new(
        runtime: u64,
        memory: SharedMemory,
        function: (u64, &'static str),
        retire: Arc<RetireQueue>,
    ) -> Arc<Self> {
        Arc::new(Self { id: next_id(), runtime, memory, function, retire })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // On any thread, at any time: only the runtime may touch what was recorded with it.
        self.retire.push(self.id);
    }
}

macro_rules! owned {
    ($(#[$doc:meta])* $name:ident, $word:literal) => {
        $(#[$doc])*
        pub struct $name<T> {
            pub(crate) owned: Arc<Owned>,
            pub(crate) layout: Layout,
            _type: PhantomData<fn() -> T>,
        }

        impl<T: Element> $name<T> {
            /// Copies `data` (row-major) to the device, as a tensor of `shape`.
            ///
            /// # Errors
            /// [`Error::Argument`](crate::Error::Argument) when `data` has another length than `shape`
            /// says; what the device says.
            pub fn new(rt: &Runtime, shape: &[usize], data: &[T]) -> Result<Self> {
                let layout = Layout::contiguous(shape)?;
                if layout.count() != data.len() {
                    return Err(crate::Error::Argument {
                        op: concat!($word, "::new"),
                        why: format!("shape {shape:?} has {} elements, the data {}", layout.count(), data.len()),
                    });
                }
                let owned = rt.allocate_owned((data.len() * T::DTYPE.size()) as u64, Some(to_bytes(data)))?;
                Ok(Self { owned, layout, _type: PhantomData })
            }

            /// A tensor of zeros.
            ///
            /// # Errors
            /// What the device says.
            pub fn zeros(rt: &Runtime, shape: &[usize]) -> Result<Self> {
                let layout = Layout::contiguous(shape)?;
                let owned = rt.allocate_owned((layout.count() * T::DTYPE.size()) as u64, None)?;
                Ok(Self { owned, layout, _type: PhantomData })
            }

            /// Sizes, outermost first.
            pub fn shape(&self) -> &[usize] {
                self.layout.shape()
            }

            /// Size of one dimension; 1 beyond the rank.
            pub fn dim(&self, axis: usize) -> usize {
                self.shape().get(axis).copied().unwrap_or(1)
            }

            pub(crate) fn view(&self) -> View {
                View { addr: self.owned.memory.addr(), dtype: T::DTYPE, layout: self.layout }
            }
        }

        impl<T> Clone for $name<T> {
            /// Another handle of the same memory.
            fn clone(&self) -> Self {
                Self { owned: Arc::clone(&self.owned), layout: self.layout, _type: PhantomData }
            }
        }

        impl<T: Element> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}<{}>{:?}", $word, T::DTYPE, self.layout)
            }
        }
    };
}

owned! {
    /// A weight: device memory with a stable address that segments read.
    ///
    /// Never copied into a graph: a recording holds its address, and is evicted when the last handle
    /// is dropped. Dropping is safe at any time and on any thread.
    Param, "Param"
}

owned! {
    /// Mutable device memory with a stable address: a KV cache, an optimiser's moments.
    ///
    /// Only the operations that say so change it ([`ops::scatter_rows`](crate::ops::scatter_rows),
    /// [`ops::store`](crate::ops::store)); a segment may do that, and a replay does it again.
    State, "State"
}

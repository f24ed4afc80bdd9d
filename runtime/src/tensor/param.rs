//! Memory that outlives steps: parameters and state.

use std::{borrow::Cow, fmt, marker::PhantomData, sync::Arc};

use crate::{
    Element, Result, Runtime, backend::cpu::MappedFile, base::dtype::to_bytes, value::layout::Layout,
    value::view::View,
};

use crate::value::owned::Owned;

macro_rules! owned {
    ($(#[$doc:meta])* $name:ident, $word:literal, $allocate:ident) => {
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
            /// Returns [`Error::Argument`](crate::Error::Argument) if the length of `data` does not match
            /// `shape`, and errors of the device.
            pub fn new(rt: &Runtime, shape: &[usize], data: &[T]) -> Result<Self> {
                let layout = Layout::contiguous(shape)?;
                if layout.count() != data.len() {
                    return Err(crate::Error::Argument {
                        op: concat!($word, "::new"),
                        reason: format!("shape {shape:?} has {} elements, the data {}", layout.count(), data.len()),
                    });
                }
                Self::of(rt, layout, Some(to_bytes(data).into()))
            }

            /// Creates a tensor of zeros.
            ///
            /// # Errors
            /// Returns errors of the device.
            pub fn zeros(rt: &Runtime, shape: &[usize]) -> Result<Self> {
                Self::of(rt, Layout::contiguous(shape)?, None)
            }

            fn of(rt: &Runtime, layout: Layout, bytes: Option<Cow<'_, [u8]>>) -> Result<Self> {
                let owned = rt.$allocate((layout.count() * T::DTYPE.size()) as u64, bytes)?;
                Ok(Self { owned, layout, _type: PhantomData })
            }

            /// Returns the sizes, outermost first.
            pub fn shape(&self) -> &[usize] {
                self.layout.shape()
            }

            /// Returns the size of one dimension; 1 beyond the rank.
            pub fn dim(&self, axis: usize) -> usize {
                self.shape().get(axis).copied().unwrap_or(1)
            }

            pub(crate) fn view(&self) -> View {
                View { addr: self.owned.memory.addr(), dtype: T::DTYPE, layout: self.layout }
            }
        }

        impl<T> Clone for $name<T> {
            /// Returns another handle of the same memory.
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
    /// It is never copied into a graph: a recording contains its address, and is evicted when the last handle
    /// is dropped. Dropping is safe at any time and on any thread. [`write`](Self::write) replaces the elements in place, between the
    /// work of segments, and records nothing; no operation writes it.
    Param, "Param", allocate_constant
}

impl<T: Element> Param<T> {
    /// Moves `bytes`, elements as they are in device memory, to the device. The caller has compared their number with `shape`.
    pub(crate) fn from_bytes(rt: &Runtime, shape: &[usize], bytes: Cow<'_, [u8]>) -> Result<Self> {
        Self::of(rt, Layout::contiguous(shape)?, Some(bytes))
    }

    /// Uses `bytes` of a mapped file, elements as they are in device memory and aligned for their type, where they are; a GPU gets a
    /// copy. The caller has compared their number with `shape`.
    pub(crate) fn mapped(
        rt: &Runtime,
        shape: &[usize],
        file: &Arc<MappedFile>,
        bytes: &[u8],
    ) -> Result<Self> {
        let layout = Layout::contiguous(shape)?;
        match file.range(bytes) {
            Some(range) => Ok(Self { owned: rt.map_constant(file, range)?, layout, _type: PhantomData }),
            None => Self::of(rt, layout, Some(bytes.into())),
        }
    }
}

owned! {
    /// Mutable device memory with a stable address, such as a KV cache or an optimiser's moments.
    ///
    /// Only the operations documented to write to it modify it
    /// ([`ops::scatter_rows`](crate::ops::scatter_rows), [`ops::rope_scatter`](crate::ops::rope_scatter),
    /// [`ops::store`](crate::ops::store), [`ops::batch_norm_training`](crate::ops::batch_norm_training),
    /// [`ops::mark_tokens`](crate::ops::mark_tokens), kernels of indices that take it as `&mut View`, and
    /// [custom operations](crate::custom) to which it is passed); a segment may do this, and each replay repeats it.
    State, "State", allocate_owned
}

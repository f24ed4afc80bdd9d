//! Host buffers that the device copies from and to by itself.

use std::{
    fmt,
    marker::PhantomData,
    ops::{Bound, RangeBounds},
};

use crate::{Element, Error, Result, Runtime, backend::HostMemory, base::dtype::to_bytes};

/// Host memory for inputs and reads: on a GPU, pinned memory, which the device copies from and to while the host does
/// something else; on the CPU, ordinary memory.
///
/// A call [copies](crate::StaticInput) host data twice on its way to a GPU, to where its inputs are packed and to staging
/// memory of the runtime, and a read copies once from there. A buffer of your own needs neither:
///
/// - As a `#[host]` input: `graph.call(&step, &buffer)`, a [part](Self::part) of it, or either with a shape. More than 4096
///   bytes are copied by the device, in the order of the stream; fewer go with the other inputs, which is faster. Data whose
///   rows have to be padded within (any dimension but the first) is copied by the host first, and so are `bool`s.
/// - For results: [`Eager::read_into`](crate::Eager::read_into).
///
/// Copies under way are safe from the host, and the host from them: [`values`](Self::values) waits until the device has
/// written, [`values_mut`](Self::values_mut) until it has also read. A buffer may be dropped at any time; its memory is freed
/// when the device is done with it. One runtime can use it, and it may outlive that.
///
/// ```
/// use graphable::{PinnedBuffer, prelude::*};
///
/// #[graphable]
/// fn scale(#[host] #[dims(N)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
///     ops::scale(x, 2.0)
/// }
///
/// # fn main() -> Result<()> {
/// let mut rt = Runtime::new(Device::best()?)?;
/// let graph = ScaleGraph::builder().build(&mut rt)?;
/// let mut input = PinnedBuffer::<f32>::zeros(&rt, 2000)?;
/// let mut output = PinnedBuffer::<f32>::zeros(&rt, 2000)?;
/// for round in 0..3 {
///     input.values_mut()?.fill(round as f32); // waits until the call before has read them
///     let step = rt.step()?;
///     let y = graph.call(&step, &input)?;
///     let pending = step.read_into(&y, &mut output)?;
///     // Something else …
///     assert_eq!(pending.wait()?, [2.0 * round as f32; 2000]);
/// }
/// # Ok(())
/// # }
/// ```
pub struct PinnedBuffer<T> {
    memory: Box<dyn HostMemory>,
    /// The runtime that can use it.
    runtime: u64,
    len: usize,
    _type: PhantomData<T>,
}

impl<T: Element> PinnedBuffer<T> {
    /// Allocates a buffer of `len` elements, all zero. This takes much longer than allocating ordinary memory, so allocate
    /// buffers once. Pinned memory cannot be swapped out.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`], [`Error::TooLarge`], and errors of the device.
    pub fn zeros(rt: &Runtime, len: usize) -> Result<Self> {
        let bytes = len.checked_mul(T::DTYPE.size()).filter(|bytes| isize::try_from(*bytes).is_ok());
        let bytes = bytes.ok_or_else(|| Error::TooLarge { shape: vec![len] })?;
        let memory = rt.host_memory(bytes)?;
        Ok(Self { memory, runtime: rt.id(), len, _type: PhantomData })
    }

    /// Allocates a buffer with these elements.
    ///
    /// # Errors
    /// See [`zeros`](Self::zeros).
    pub fn new(rt: &Runtime, values: &[T]) -> Result<Self> {
        let mut buffer = Self::zeros(rt, values.len())?;
        buffer.memory.bytes_mut()?.copy_from_slice(&to_bytes(values));
        Ok(buffer)
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Waits for the copies from the device, and returns the elements; those of `bool` as bytes.
    ///
    /// # Errors
    /// Returns failures on the stream up to the last [`read_into`](crate::Eager::read_into) this buffer, such as
    /// [`Error::IndexOutOfRange`], each once.
    pub fn values(&self) -> Result<&[T::Repr]> {
        Ok(bytemuck::cast_slice(self.memory.bytes()?))
    }

    /// Waits for the copies to and from the device, and returns the elements; those of `bool` as bytes,
    /// of which any but 0 is `true`.
    ///
    /// # Errors
    /// See [`values`](Self::values).
    pub fn values_mut(&mut self) -> Result<&mut [T::Repr]> {
        Ok(bytemuck::cast_slice_mut(self.memory.bytes_mut()?))
    }

    /// Returns whether [`values_mut`](Self::values_mut) would return immediately.
    pub fn is_ready(&self) -> bool {
        self.memory.is_ready()
    }

    /// Returns a part of the elements as an input.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if the range is not inside the buffer.
    pub fn part(&self, range: impl RangeBounds<usize>) -> Result<PinnedPart<'_, T>> {
        let first = match range.start_bound() {
            Bound::Included(&at) => Some(at),
            Bound::Excluded(&at) => at.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let end = match range.end_bound() {
            Bound::Included(&at) => at.checked_add(1),
            Bound::Excluded(&at) => Some(at),
            Bound::Unbounded => Some(self.len),
        };
        match (first, end) {
            (Some(first), Some(end)) if first <= end && end <= self.len => {
                Ok(PinnedPart { buffer: self, first, len: end - first })
            }
            _ => {
                let shown = |at: Option<usize>| at.map_or("…".into(), |at| at.to_string());
                let (first, end) = (shown(first), shown(end));
                let reason = format!("{first}..{end} is not a range of a buffer of {} elements", self.len);
                Err(Error::Argument { op: "PinnedBuffer::part", reason })
            }
        }
    }

    /// Returns the memory for a copy of `count` elements from the device.
    ///
    /// # Errors
    /// Returns [`Error::DifferentRuntimes`] and [`Error::Argument`].
    pub(crate) fn target(
        &mut self,
        call: &'static str,
        rt: &Runtime,
        count: usize,
    ) -> Result<&mut dyn HostMemory> {
        if self.runtime != rt.id() {
            return Err(Error::DifferentRuntimes { op: call });
        }
        if count > self.len {
            let reason =
                format!("the tensor has {count} elements, and the buffer has place for {}", self.len);
            return Err(Error::Argument { op: call, reason });
        }
        Ok(&mut *self.memory)
    }
}

impl<T> fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedBuffer")
            .field("len", &self.len)
            .field("ready", &self.memory.is_ready())
            .finish_non_exhaustive()
    }
}

/// A part of a [`PinnedBuffer`] as an input; returned by [`PinnedBuffer::part`].
pub struct PinnedPart<'a, T> {
    buffer: &'a PinnedBuffer<T>,
    first: usize,
    len: usize,
}

impl<T> Clone for PinnedPart<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for PinnedPart<'_, T> {}

impl<T> fmt::Debug for PinnedPart<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedPart")
            .field("first", &self.first)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl<'a, T> PinnedPart<'a, T> {
    /// All of a buffer.
    pub(crate) fn whole(buffer: &'a PinnedBuffer<T>) -> Self {
        Self { buffer, first: 0, len: buffer.len }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the id of its runtime.
    pub(crate) fn runtime(&self) -> u64 {
        self.buffer.runtime
    }

    /// Returns the memory that it is a part of.
    pub(crate) fn memory(&self) -> &'a dyn HostMemory {
        &*self.buffer.memory
    }
}

impl<T: Element> PinnedPart<'_, T> {
    /// Returns the offset of the first byte, and the number of bytes.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        (self.first * T::DTYPE.size(), self.len * T::DTYPE.size())
    }
}

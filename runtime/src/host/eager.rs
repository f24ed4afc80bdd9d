//! The capability to read device data, and eager regions.

use std::{fmt, ops::Deref, sync::Arc};

use tracing::span::EnteredSpan;

use crate::{
    Element, Error, Event, IntoDataShape, Result, Runtime, Scope, Stats, Tensor,
    backend::{HostUpload, Mark, PendingBytes},
    base::{
        dtype::{from_bytes, to_bytes},
        plan::Site,
    },
    host::{capturable::Capturable, padding::pad_rows},
    memory::NewTensor,
    observe::timeline,
    tensor::{
        live_out::{Decoder, LiveOut},
        pinned::PinnedBuffer,
    },
    value::{
        entry::{Encoder, Entry},
        layout::{Layout, PaddedDims},
        owned::OwnerId,
        raw::RawTensor,
    },
};

/// The capability to read device data, provided by a [`Step`](crate::Step) and by `#[eager(cx)]`.
///
/// It cannot enter a segment, and every method checks at run time, in every mode, that no segment is running.
pub struct Eager<'s> {
    pub(crate) rt: &'s Runtime,
}

impl fmt::Debug for Eager<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Eager")
    }
}

impl<'s> Eager<'s> {
    /// Returns an error inside a segment.
    pub(crate) fn check(&self, call: &'static str) -> Result<()> {
        self.rt.core.borrow().call.may_look(call)
    }

    /// Returns the scope from which constructors get their runtime.
    pub fn scope(&self) -> Scope<'s> {
        Scope { rt: self.rt }
    }

    /// Returns the elements, row-major. Waits only for what it reads. Padding is cut off.
    ///
    /// # Errors
    /// Returns [`Error::CapabilityInSegment`], [`Error::DifferentRuntimes`], [`Error::NeverComputed`], and
    /// failures on the stream since the last wait.
    pub fn read<T: Element>(&self, tensor: &Tensor<'_, T>) -> Result<Vec<T>> {
        self.start_read("read", tensor)?.wait()
    }

    /// Returns the element of a tensor with one element.
    ///
    /// # Errors
    /// Returns the errors of [`read`](Self::read), and [`Error::Shape`] for any other number of elements.
    pub fn item<T: Element>(&self, tensor: &Tensor<'_, T>) -> Result<T> {
        let values = self.start_read("item", tensor)?.wait()?;
        match values.as_slice() {
            [value] => Ok(*value),
            _ => Err(self.scope().shape_error(
                "item",
                &[tensor.into()],
                "exactly one element is needed; use `read`",
            )),
        }
    }

    /// Starts a read without waiting. The handle outlives the step.
    ///
    /// # Errors
    /// Returns the errors of [`read`](Self::read), except for failures of the stream, which the handle
    /// reports.
    pub fn read_later<T: Element>(&self, tensor: &Tensor<'_, T>) -> Result<PendingRead<T>> {
        self.start_read("read_later", tensor)
    }

    /// Starts a read into a buffer of yours, without waiting and without a copy by the host. Padding is cut off.
    ///
    /// The elements are the first of the buffer, row-major. Whatever becomes of what is returned, the buffer is safe: it
    /// waits for the copy where it is accessed, and keeps its memory for it where it is dropped.
    ///
    /// # Errors
    /// Returns the errors of [`read_later`](Self::read_later), and [`Error::Argument`] if the buffer is too small.
    pub fn read_into<'b, T: Element>(
        &self,
        tensor: &Tensor<'_, T>,
        to: &'b mut PinnedBuffer<T>,
    ) -> Result<PinnedRead<'b, T>> {
        const CALL: &str = "read_into";
        if !std::ptr::eq(self.rt, tensor.rt) {
            return Err(Error::DifferentRuntimes { op: CALL });
        }
        let mut core = self.rt.core.borrow_mut();
        core.call.may_look(CALL)?;
        core.check_live(CALL, &tensor.raw)?;
        let raw = core.call.unpadded(tensor.raw);
        let count = raw.layout.count();
        core.launcher().read_into(raw, to.target(CALL, self.rt, count)?)?;
        let of_zeros = core.recorder.has_snapshot();
        Ok(PinnedRead { buffer: to, count, of_zeros })
    }

    pub(super) fn start_read<T: Element>(
        &self,
        call: &'static str,
        tensor: &Tensor<'_, T>,
    ) -> Result<PendingRead<T>> {
        self.start_read_as(call, tensor, tensor.raw.marks).map(|(pending, _)| pending)
    }

    /// Reads the real part of a tensor that is padded according to `marks`; also returns the layout that is
    /// read.
    pub(crate) fn start_read_as<T: Element>(
        &self,
        call: &'static str,
        tensor: &Tensor<'_, T>,
        marks: PaddedDims,
    ) -> Result<(PendingRead<T>, Layout)> {
        if !std::ptr::eq(self.rt, tensor.rt) {
            return Err(Error::DifferentRuntimes { op: call });
        }
        let mut core = self.rt.core.borrow_mut();
        core.call.may_look(call)?;
        core.check_live(call, &tensor.raw)?;
        let raw = core.call.unpadded(RawTensor { marks, ..tensor.raw });
        let bytes = core.launcher().read(raw)?;
        Ok((PendingRead { bytes, _type: std::marker::PhantomData }, Layout::contiguous(raw.layout.shape())?))
    }

    /// Returns the size of a dimension as a number: the real size, if a bucket pads it.
    ///
    /// It may differ between calls of the same bucket, so it cannot enter a segment unless its `let` is
    /// marked `#[key]`; on the device, use [`ops::size`](crate::ops::size).
    ///
    /// # Errors
    /// Returns [`Error::CapabilityInSegment`], [`Error::DifferentRuntimes`], [`Error::NeverComputed`] or
    /// [`Error::Axis`].
    pub fn size<T>(&self, x: &Tensor<'_, T>, axis: usize) -> Result<usize> {
        const CALL: &str = "size";
        if !std::ptr::eq(self.rt, x.rt) {
            return Err(Error::DifferentRuntimes { op: CALL });
        }
        let core = self.rt.core.borrow();
        core.call.may_look(CALL)?;
        core.check_live(CALL, &x.raw)?;
        core.call.unpadded(x.raw).layout.shape().get(axis).copied().ok_or(Error::Axis {
            op: CALL,
            axis,
            rank: x.rank(),
        })
    }

    /// Copies host data (row-major) to the device.
    ///
    /// If `shape` contains the size of a padded dimension, `data` contains the real elements, and the tensor
    /// is padded with zeros.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if the length of `data` does not match `shape`, and [`Error::PaddedSize`]
    /// for a size computed from a padded one.
    pub fn tensor<T: Element>(&self, shape: impl IntoDataShape<'s>, data: &[T]) -> Result<Tensor<'s, T>> {
        self.check("tensor")?;
        let given = self.scope().resolve("tensor", shape.into_data_sizes())?;
        let layout = Layout::contiguous(&given.sizes)?;
        let mut core = self.rt.core.borrow_mut();
        let real = core.call.real_layout(layout, given.marks);
        if real.count() != data.len() {
            let (shape, count) = (real.shape(), real.count());
            return Err(Error::Argument {
                op: "tensor",
                reason: format!("shape {shape:?} has {count} elements, the data {}", data.len()),
            });
        }
        let raw = core.allocate_output(&mut NewTensor {
            marks: given.marks,
            ..NewTensor::of("tensor", T::DTYPE, layout)
        })?;
        let mut bytes = to_bytes(data);
        if real.shape() != layout.shape() {
            bytes = pad_rows(&bytes, T::DTYPE.size(), real.shape(), layout.shape());
        }
        let len = bytes.len();
        let written = if len == 0 {
            Ok(())
        } else {
            core.stream.backend_mut().host_write(HostUpload {
                bytes,
                writes: vec![(raw.addr, 0, len)],
                ..HostUpload::default()
            })
        };
        drop(core);
        let tensor = Tensor::from_raw(self.rt, raw);
        written.map(|()| tensor)
    }

    /// Waits until the device has finished all work that it was given.
    ///
    /// # Errors
    /// Returns [`Error::CapabilityInSegment`](crate::Error::CapabilityInSegment), and failures of the device.
    pub fn synchronize(&self) -> Result<()> {
        let mut core = self.rt.core.borrow_mut();
        core.call.may_look("a wait for the device")?;
        core.launcher().flush()?;
        let of_zeros = core.recorder.has_snapshot();
        match core.stream.backend_mut().synchronize() {
            Err(error) if of_zeros && error.is_report() => Ok(()),
            other => other,
        }
    }

    /// Returns the memory in use: see [`Runtime::memory`].
    pub fn memory(&self) -> crate::MemoryStats {
        self.rt.memory()
    }

    /// Checks the memory: see [`Runtime::check_memory`].
    ///
    /// # Errors
    /// See [`Runtime::check_memory`].
    pub fn check_memory(&self) -> Result<()> {
        self.rt.check_memory()
    }

    /// Returns counters and sizes of the runtime.
    pub fn stats(&self) -> Stats {
        self.rt.stats()
    }

    /// Returns the events since the last call; see [`Runtime::keep_events`].
    pub fn take_events(&self) -> Vec<Event> {
        self.rt.take_events()
    }
}

/// A pending read, which outlives its step.
pub struct PendingRead<T> {
    bytes: Box<dyn PendingBytes>,
    _type: std::marker::PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for PendingRead<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingRead").field("ready", &self.bytes.is_ready()).finish()
    }
}

impl<T> PendingRead<T> {
    /// Changes the bytes when they are there.
    pub(super) fn map<P: PendingBytes + 'static>(
        self,
        by: impl FnOnce(Box<dyn PendingBytes>) -> Box<P>,
    ) -> Self {
        Self { bytes: by(self.bytes), ..self }
    }
}

impl<T: Element> PendingRead<T> {
    /// Waits for the elements and returns them, row-major.
    ///
    /// # Errors
    /// Returns failures of the stream.
    pub fn wait(self) -> Result<Vec<T>> {
        Ok(from_bytes(&self.bytes.wait()?))
    }

    /// Returns whether [`wait`](Self::wait) would return immediately.
    pub fn is_ready(&self) -> bool {
        self.bytes.is_ready()
    }
}

/// A pending read into a [`PinnedBuffer`], which outlives its step. Dropping it drops nothing but the borrow of the buffer.
#[must_use = "`wait` returns the elements; without it, the next access to the buffer waits"]
pub struct PinnedRead<'b, T> {
    buffer: &'b mut PinnedBuffer<T>,
    count: usize,
    /// Set in a call of `capture_all`, with whose zeros kernels may report what they do not with real inputs.
    of_zeros: bool,
}

impl<T> fmt::Debug for PinnedRead<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedRead")
            .field("count", &self.count)
            .field("buffer", &self.buffer)
            .finish_non_exhaustive()
    }
}

impl<'b, T: Element> PinnedRead<'b, T> {
    /// Waits for the elements and returns them, row-major; those of `bool` as bytes.
    ///
    /// # Errors
    /// Returns failures of the stream.
    pub fn wait(self) -> Result<&'b [T::Repr]> {
        let Self { buffer, count, of_zeros } = self;
        // A report is taken by whom it is told.
        if let Err(error) = buffer.values()
            && !(of_zeros && error.is_report())
        {
            return Err(error);
        }
        Ok(&buffer.values()?[..count])
    }

    /// Returns whether [`wait`](Self::wait) would return immediately.
    pub fn is_ready(&self) -> bool {
        self.buffer.is_ready()
    }
}

/// An open eager region; it is closed when dropped, also by `?`, `break`, `return` and panics.
pub struct Region<'s> {
    eager: Eager<'s>,
    capturable: Capturable<'s>,
    site: &'static Site,
    /// The graph object of the call, if that is captured as a whole.
    captured_by: Option<OwnerId>,
    /// The id of its first view for CUDA.
    first_view: u64,
    begin: Option<Arc<dyn Mark>>,
    _span: EnteredSpan,
}

impl<'s> Region<'s> {
    pub(crate) fn open(rt: &'s Runtime, site: &'static Site) -> Self {
        let span = timeline::region(site);
        let captured_by = rt.core.borrow_mut().begin_region(site);
        let begin = if span.is_disabled() { None } else { rt.slice_begins() };
        Self {
            eager: Eager { rt },
            capturable: Capturable::new(rt, site),
            site,
            captured_by,
            first_view: rt.views.next(),
            begin,
            _span: span,
        }
    }

    /// Returns the capability of a region that may be captured.
    pub fn capturable(&self) -> &Capturable<'s> {
        &self.capturable
    }

    /// Moves the tensors of the region's result to their recorded slots.
    fn relocate<O: LiveOut<'s>>(&self, value: O) -> Result<O> {
        self.eager.rt.refused_sizes.take()?;
        let mut encoder = Encoder::of(self.eager.rt);
        value.encode(&mut encoder);
        encoder.check("the result of an eager region")?;
        if encoder.entries.iter().any(|entry| !matches!(entry, Entry::Tensor(_))) {
            self.gives_host_value();
        }
        let relocated = self.eager.rt.core.borrow_mut().launcher().relocate_results(&encoder.entries)?;
        Ok(match relocated {
            Some(entries) => O::decode(&mut Decoder::new(self.eager.rt, entries)),
            None => value,
        })
    }

    /// Notes that host code gets a value, a length or a variant, which a graph of the whole call would not
    /// reproduce.
    fn gives_host_value(&self) {
        if let Some(graph) = self.captured_by {
            self.eager.rt.core.borrow_mut().call.history_mut().add_host_value(graph, self.site);
        }
    }
}

impl<'s> Deref for Region<'s> {
    type Target = Eager<'s>;

    fn deref(&self) -> &Eager<'s> {
        &self.eager
    }
}

impl Drop for Region<'_> {
    fn drop(&mut self) {
        let rt = self.eager.rt;
        let ended = rt.end_views(self.first_view);
        let mut core = rt.core.borrow_mut();
        if let Err(error) = ended {
            core.stream.defer(error);
        }
        core.end_region();
        drop(core);
        rt.slice_ends(self.site, "eager", self.begin.take());
    }
}

impl fmt::Debug for Region<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Region")
    }
}

/// The value of an eager region, with three ways to finish it. Method resolution selects one: a result of
/// tensors, tensors, or anything else.
pub struct RegionResult<R>(std::cell::Cell<Option<R>>);

impl<R> fmt::Debug for RegionResult<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegionResult")
    }
}

impl<R> RegionResult<R> {
    /// Holds `value` until `finish`.
    pub fn new(value: R) -> Self {
        Self(std::cell::Cell::new(Some(value)))
    }

    fn take(&self) -> R {
        match self.0.take() {
            Some(value) => value,
            None => unreachable!("generated code finishes a region once"),
        }
    }
}

/// Finishes a region whose value is a `Result` of something that can be output.
pub trait EagerResult<'s> {
    /// The value's type.
    type Value;
    /// Closes the region.
    ///
    /// # Errors
    /// Returns an error if a tensor cannot be moved.
    fn finish(&self, region: Region<'s>) -> Result<Self::Value>;
}

impl<'s, T: LiveOut<'s>, E> EagerResult<'s> for &&RegionResult<Result<T, E>> {
    type Value = Result<T, E>;
    fn finish(&self, region: Region<'s>) -> Result<Result<T, E>> {
        Ok(match self.take() {
            Ok(value) => Ok(region.relocate(value)?),
            Err(error) => {
                region.eager.rt.refused_sizes.take()?;
                Err(error)
            }
        })
    }
}

/// Finishes a region whose value can be output.
pub trait EagerTensors<'s> {
    /// The value's type.
    type Value;
    /// Closes the region.
    ///
    /// # Errors
    /// Returns an error if a tensor cannot be moved.
    fn finish(&self, region: Region<'s>) -> Result<Self::Value>;
}

impl<'s, T: LiveOut<'s>> EagerTensors<'s> for &RegionResult<T> {
    type Value = T;
    fn finish(&self, region: Region<'s>) -> Result<T> {
        region.relocate(self.take())
    }
}

/// Finishes a region with any other value; tensors inside it are not moved.
pub trait EagerOther<'s> {
    /// The value's type.
    type Value;
    /// Closes the region.
    ///
    /// # Errors
    /// Never fails.
    fn finish(&self, region: Region<'s>) -> Result<Self::Value>;
}

impl<'s, T> EagerOther<'s> for RegionResult<T> {
    type Value = T;
    fn finish(&self, region: Region<'s>) -> Result<T> {
        region.eager.rt.refused_sizes.take()?;
        if size_of::<T>() > 0 {
            region.gives_host_value();
        }
        drop(region);
        Ok(self.take())
    }
}

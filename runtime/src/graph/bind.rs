//! Binds every input of a call to memory, and transfers host data.

use std::{mem, sync::Arc};

use super::{GraphCall, GraphObject};
use crate::{
    Result, Runtime,
    backend::{HostCopy, HostUpload, View},
    base::dtype::HostSlot,
    graph::{
        inputs::{Given, HostBytes},
        spec::{Dim, DimsSpec, InputSpec},
    },
    host::padding::pad_rows,
    memory::PAD,
    observe::{event::CopySlot, occurrence::Occurrence},
    record::Symbol,
    tensor::broadcast::Shape,
    value::{
        layout::{Layout, PaddedDims},
        owned::Owned,
        raw::RawTensor,
    },
};

impl GraphCall<'_> {
    /// Binds every input to memory, and starts the transfer of host data.
    pub(super) fn bind(&mut self, function: &GraphObject, given: &[Given], symbols: &[Symbol]) -> Result<()> {
        let graphs = self.rt.core.borrow().call.graphs();
        let mut binding = Binding { graphs, ..Binding::new(self.rt, function, symbols) };
        binding.upload_scalars_and_sizes(given);
        let mut scalars = 0u64;
        for (i, given) in given.iter().enumerate() {
            let bound = match given {
                Given::Missing => unreachable!("`Inputs::enter` checks that every input is given"),
                Given::Scalar(_) => {
                    scalars += 1;
                    binding.scalar(i, scalars - 1)?
                }
                Given::Host { bytes, shape, .. } => {
                    binding.host(i, bytes, shape.as_deref().unwrap_or_default())?
                }
                Given::Device(raw) => binding.device(i, raw)?,
            };
            self.inputs.push(bound);
        }
        binding.send()
    }
}

/// The transfer of the inputs of one call.
pub(super) struct Binding<'c> {
    rt: &'c Runtime,
    function: &'c GraphObject,
    symbols: &'c [Symbol],
    /// If the call uses graphs.
    graphs: bool,
    upload: HostUpload,
    /// The pinned memory that the device copies.
    pinned: Vec<HostCopy>,
    /// The tensors to copy with padding, and the static inputs that receive them.
    pads: Vec<(View, View)>,
}

/// An input of a running call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) raw: RawTensor,
    /// If the handle was made for the call, so that clones of it end with the call.
    of_call: bool,
}

impl Bound {
    /// Ends the input with its call.
    pub(super) fn end(self, rt: &Runtime) {
        let mut core = rt.core.borrow_mut();
        if self.of_call {
            core.end_input(&self.raw);
        } else {
            core.launcher().release(self.raw.slot, self.raw.epoch);
        }
    }
}

impl<'c> Binding<'c> {
    pub(super) fn new(rt: &'c Runtime, function: &'c GraphObject, symbols: &'c [Symbol]) -> Self {
        Self {
            rt,
            function,
            symbols,
            graphs: true,
            upload: HostUpload::default(),
            pinned: Vec::new(),
            pads: Vec::new(),
        }
    }

    /// Has what is given for an input written to its memory, padded to a shape. Returns the memory, and the layout
    /// with padding.
    pub(super) fn fill(&mut self, i: usize, given: &Given, padded: &[usize]) -> Result<(Arc<Owned>, Layout)> {
        let (memory, layout) = self.buffer(i, padded)?;
        match given {
            Given::Host { bytes, .. } => {
                self.write_host(memory.memory.addr(), &layout, bytes, given.shape())?;
            }
            Given::Device(raw) => {
                let to = View { addr: memory.memory.addr(), dtype: raw.dtype, layout };
                self.pads.push((raw.view(), to));
            }
            Given::Missing | Given::Scalar(_) => {}
        }
        Ok((memory, layout))
    }

    fn spec(&self, i: usize) -> &InputSpec {
        &self.function.spec.inputs[i]
    }

    /// Writes the part of the upload from `from` on to `addr`, padded with zeros to `len` bytes.
    fn write(&mut self, addr: u64, from: usize, len: usize) {
        let bytes = &mut self.upload.bytes;
        bytes.resize(bytes.len().max(from + len), 0);
        let len = bytes.len() - from;
        if len > 0 {
            self.upload.writes.push((addr, from, len));
        }
    }

    /// Uploads the host scalars, and the sizes of symbols without padding.
    fn upload_scalars_and_sizes(&mut self, given: &[Given]) {
        let from = self.upload.bytes.len();
        let scalars = given.iter().filter_map(|given| match given {
            Given::Scalar(slot) => Some(*slot),
            _ => None,
        });
        let sizes = self.symbols.iter().map(|symbol| HostSlot::of(symbol.real as u32));
        for slot in scalars.chain(sizes) {
            self.upload.bytes.extend_from_slice(bytemuck::bytes_of(&slot));
        }
        self.write(self.function.block.memory.addr(), from, 0);
    }

    /// Returns the padded shape of an input, and the dimensions that are padded.
    fn padded(&self, i: usize, shape: &[usize]) -> (Shape, PaddedDims) {
        let mut marks = PaddedDims::NONE;
        let mut padded = Shape::from_slice(shape);
        if let DimsSpec::Some(dims) = self.spec(i).dims {
            for (axis, dim) in dims.iter().enumerate() {
                if let Dim::Symbol(s) = *dim {
                    padded[axis] = self.symbols[s].padded;
                    if self.symbols[s].bucketed {
                        marks = marks.with(axis, Some(s as u8));
                    }
                }
            }
        }
        (padded, marks)
    }

    /// Returns memory of the input for this shape.
    fn buffer(&self, i: usize, padded: &[usize]) -> Result<(Arc<Owned>, Layout)> {
        let layout = Layout::contiguous(padded)?;
        let bytes = (layout.count() * self.spec(i).dtype.size()) as u64;
        Ok((self.function.static_memory(self.rt, i, bytes)?, layout))
    }

    /// Returns memory of the input as a tensor, which ends with the call.
    fn adopt(&self, i: usize, memory: &Arc<Owned>, layout: Layout, marks: PaddedDims) -> Bound {
        Bound { raw: self.rt.adopt_static(memory, self.spec(i).dtype, layout, marks), of_call: true }
    }

    /// Returns the `nth` scalar, which is in the host block.
    fn scalar(&self, i: usize, nth: u64) -> Result<Bound> {
        let mut bound = self.adopt(i, &self.function.block, Layout::contiguous(&[])?, PaddedDims::NONE);
        bound.raw.addr += 16 * nth;
        Ok(bound)
    }

    fn host(&mut self, i: usize, bytes: &HostBytes, shape: &[usize]) -> Result<Bound> {
        let (padded, marks) = self.padded(i, shape);
        let (memory, layout) = self.buffer(i, &padded)?;
        self.write_host(memory.memory.addr(), &layout, bytes, shape)?;
        Ok(self.adopt(i, &memory, layout, marks))
    }

    /// Uploads a tensor of this shape, with zeros as padding, or has the device copy it.
    fn write_host(&mut self, to: u64, padded: &Layout, bytes: &HostBytes, shape: &[usize]) -> Result<()> {
        match bytes {
            HostBytes::Copied(bytes) => self.write_rows(to, padded, bytes, shape),
            HostBytes::Pinned { from, offset, bytes } if is_padded_within(padded, shape) => {
                self.write_rows(to, padded, &from.bytes()?[*offset..offset + bytes], shape);
            }
            HostBytes::Pinned { from, offset, bytes } => {
                // It is larger than nothing, so there are rows.
                let row = bytes / shape.first().copied().unwrap_or(1);
                let rows = padded.shape().first().copied().unwrap_or(1);
                let zeros = (rows * row - bytes) as u64;
                let (offset, bytes) = (*offset, *bytes);
                self.pinned.push(HostCopy { to, from: Arc::clone(from), offset, bytes, zeros });
            }
        }
        Ok(())
    }

    /// Uploads the bytes of a tensor of this shape, with zeros as padding.
    fn write_rows(&mut self, to: u64, padded: &Layout, bytes: &[u8], shape: &[usize]) {
        let from = self.upload.bytes.len();
        // Data without elements has no padding either: a padded size is never 0.
        let element = bytes.len() / shape.iter().product::<usize>().max(1);
        if is_padded_within(padded, shape) {
            self.upload.bytes.extend(pad_rows(bytes, element, shape, padded.shape()));
        } else {
            self.upload.bytes.extend_from_slice(bytes);
        }
        self.write(to, from, padded.count() * element);
    }

    fn device(&mut self, i: usize, raw: &RawTensor) -> Result<Bound> {
        let (padded, marks) = self.padded(i, raw.layout.shape());
        if let Some((fill, memory)) = self.function.fill_of(i, raw)
            && let Some(layout) = in_place(&fill.padded, &padded)
        {
            let bound = self.adopt(i, &memory, layout, marks);
            self.rt.core.borrow_mut().memory.note_padded_copy(&bound.raw, raw);
            return Ok(bound);
        }
        if marks.any() && self.graphs {
            let (memory, layout) = self.buffer(i, &padded)?;
            let bound = self.adopt(i, &memory, layout, marks);
            self.rt.core.borrow_mut().memory.note_padded_copy(&bound.raw, raw);
            self.pads.push((raw.view(), bound.raw.view()));
            return Ok(bound);
        }
        let mut core = self.rt.core.borrow_mut();
        core.memory.retain(raw.slot, raw.epoch);
        if marks.any() {
            core.memory.belongs_to_call(raw.slot);
        }
        Ok(Bound { raw: RawTensor { marks, ..*raw }, of_call: false })
    }

    /// Stages the upload of a call, and launches the copies.
    pub(super) fn send(mut self) -> Result<()> {
        self.copy_pinned()?;
        let upload = self.take_upload();
        self.rt.core.borrow_mut().stream.stage_upload(upload);
        self.copy()
    }

    /// Uploads and launches the copies outside a call: an error concerns nothing else.
    pub(super) fn send_now(mut self) -> Result<()> {
        self.copy_pinned()?;
        if let Some(upload) = self.take_upload() {
            self.rt.core.borrow_mut().stream.backend_mut().host_write(upload)?;
        }
        self.copy()
    }

    /// Has the device copy pinned memory. Nothing that reads the inputs of this call was launched yet.
    fn copy_pinned(&mut self) -> Result<()> {
        let mut core = self.rt.core.borrow_mut();
        self.pinned.drain(..).try_for_each(|copy| core.stream.backend_mut().write_from(copy))
    }

    fn take_upload(&mut self) -> Option<HostUpload> {
        let upload = mem::take(&mut self.upload);
        (!upload.writes.is_empty()).then_some(upload)
    }

    fn copy(self) -> Result<()> {
        let mut core = self.rt.core.borrow_mut();
        for (from, to) in self.pads {
            core.launcher().launch(PAD, &[from], &[to])?;
            let (_, end) = to.range();
            core.log.emit(Occurrence::Copied { slot: CopySlot::Input, bytes: end - to.addr });
        }
        Ok(())
    }
}

/// Returns whether a dimension other than the first is padded.
fn is_padded_within(padded: &Layout, shape: &[usize]) -> bool {
    shape.len() > 1 && padded.shape()[1..] != shape[1..]
}

/// Returns the layout of a call's input whose data is in memory with this padding, if it can be read in place: rows that
/// the call does not have come last.
fn in_place(filled: &Layout, call: &[usize]) -> Option<Layout> {
    let (filled, same_rank) = (filled.shape(), filled.rank() == call.len());
    let fits = same_rank && (call.is_empty() || call[0] <= filled[0] && call[1..] == filled[1..]);
    if fits { Layout::contiguous(call).ok() } else { None }
}

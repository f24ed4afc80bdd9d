//! Binds every input of a call to memory, and transfers host data.

use super::{GraphCall, GraphObject};
use crate::{
    Result, Runtime,
    backend::{HostBlock, View, operations::PAD},
    base::dtype::HostSlot,
    graph::inputs::{Dim, DimsSpec, Given, InputSpec},
    host::padding::pad_rows,
    observe::{event::CopySlot, occurrence::Occurrence},
    record::Symbol,
    value::{
        layout::{Layout, Marks},
        raw::RawTensor,
    },
};

impl GraphCall<'_> {
    /// Binds every input to memory, and starts the transfer of host data.
    pub(super) fn bind(&mut self, function: &GraphObject, given: &[Given], symbols: &[Symbol]) -> Result<()> {
        let graphs = self.rt.core.borrow().call.graphs();
        let mut binding = Binding {
            rt: self.rt,
            function,
            symbols,
            graphs,
            upload: HostBlock::default(),
            pads: Vec::new(),
        };
        binding.upload_scalars_and_sizes(given);
        let mut scalars = 0u64;
        for (i, given) in given.iter().enumerate() {
            self.inputs.push(match given {
                Given::Missing => unreachable!("`Inputs::enter` checks that every input is given"),
                Given::Scalar(_) => {
                    scalars += 1;
                    binding.scalar(i, scalars - 1)?
                }
                Given::Host { bytes, shape, .. } => {
                    binding.host(i, bytes, shape.as_deref().unwrap_or_default())?
                }
                Given::Device(raw) => binding.device(i, raw)?,
            });
        }
        binding.send()
    }
}

/// The transfer of the inputs of one call.
struct Binding<'c> {
    rt: &'c Runtime,
    function: &'c GraphObject,
    symbols: &'c [Symbol],
    /// If the call uses graphs.
    graphs: bool,
    upload: HostBlock,
    /// The tensors to copy with padding, and the static inputs that receive them.
    pads: Vec<(View, View)>,
}

impl Binding<'_> {
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
    fn padded(&self, i: usize, shape: &[usize]) -> (Vec<usize>, Marks) {
        let mut marks = Marks::NONE;
        let mut padded = shape.to_vec();
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

    /// Returns the input's own memory as a tensor of this shape.
    fn static_input(&self, i: usize, padded: &[usize], marks: Marks) -> Result<RawTensor> {
        let layout = Layout::contiguous(padded)?;
        let dtype = self.spec(i).dtype;
        let bytes = (layout.count() * dtype.size()) as u64;
        let owned = self.function.static_memory(self.rt, i, bytes)?;
        Ok(self.rt.adopt_static(&owned, dtype, layout, marks))
    }

    /// Returns the `nth` scalar, which is in the host block.
    fn scalar(&self, i: usize, nth: u64) -> Result<RawTensor> {
        let layout = Layout::contiguous(&[])?;
        let mut raw = self.rt.adopt_static(&self.function.block, self.spec(i).dtype, layout, Marks::NONE);
        raw.addr += 16 * nth;
        Ok(raw)
    }

    fn host(&mut self, i: usize, bytes: &[u8], shape: &[usize]) -> Result<RawTensor> {
        let (padded, marks) = self.padded(i, shape);
        let input = self.static_input(i, &padded, marks)?;
        let element = input.dtype.size();
        let from = self.upload.bytes.len();
        if padded.len() > 1 && padded[1..] != shape[1..] {
            self.upload.bytes.extend(pad_rows(bytes, element, shape, &padded));
        } else {
            self.upload.bytes.extend_from_slice(bytes);
        }
        self.write(input.addr, from, input.layout.count() * element);
        Ok(input)
    }

    fn device(&mut self, i: usize, raw: &RawTensor) -> Result<RawTensor> {
        let (padded, marks) = self.padded(i, raw.layout.shape());
        if marks.any() && self.graphs {
            let input = self.static_input(i, &padded, marks)?;
            self.rt.core.borrow_mut().memory.note_padded_copy(&input, raw);
            self.pads.push((raw.view(), input.view()));
            return Ok(input);
        }
        let mut core = self.rt.core.borrow_mut();
        core.memory.retain(raw.slot, raw.epoch);
        if marks.any() {
            core.memory.belongs_to_call(raw.slot);
        }
        Ok(RawTensor { marks, ..*raw })
    }

    /// Stages the upload, and launches the copies.
    fn send(self) -> Result<()> {
        let mut core = self.rt.core.borrow_mut();
        core.stream.stage_upload((!self.upload.writes.is_empty()).then_some(self.upload));
        for (from, to) in self.pads {
            core.launcher().launch(PAD, &[from], &[to])?;
            let (_, end) = to.range();
            core.log.emit(Occurrence::Copied { slot: CopySlot::Input, bytes: end - to.addr });
        }
        Ok(())
    }
}

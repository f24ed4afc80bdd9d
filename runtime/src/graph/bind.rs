//! Binds every input of a call to memory, and transfers host data.

use super::{GraphCall, GraphObject};
use crate::{
    Result,
    backend::{HostBlock, View, operations::PAD},
    graph::inputs::{Dim, DimsSpec, Given},
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
    pub(super) fn bind(
        &mut self,
        function: &GraphObject,
        given: &[Given],
        symbols: &[Symbol],
        block: &[u8],
    ) -> Result<()> {
        let rt = self.rt;
        let graphs = rt.core.borrow().call.graphs();
        let mut host = HostBlock::default();
        let mut put = |addr: u64, bytes: &[u8], padded: usize| {
            let at = host.bytes.len();
            host.bytes.extend_from_slice(bytes);
            host.bytes.resize(at + padded.max(bytes.len()), 0);
            let len = host.bytes.len() - at;
            if len > 0 {
                host.writes.push((addr, at, len));
            }
        };
        put(function.block.memory.addr(), block, 0);
        let mut pads: Vec<(View, View)> = Vec::new();
        for (i, given) in given.iter().enumerate() {
            let spec = &function.spec.inputs[i];
            let padded_shape = |shape: &[usize]| -> (Vec<usize>, Marks) {
                let mut marks = Marks::NONE;
                let mut padded = shape.to_vec();
                if let DimsSpec::Some(dims) = spec.dims {
                    for (axis, dim) in dims.iter().enumerate() {
                        if let Dim::Symbol(s) = *dim {
                            padded[axis] = symbols[s].padded;
                            if symbols[s].bucketed {
                                marks = marks.with(axis, Some(s as u8));
                            }
                        }
                    }
                }
                (padded, marks)
            };
            let raw = match given {
                Given::Missing => None,
                Given::Scalar => {
                    let slot = function.scalars.iter().position(|&s| s == i).unwrap_or(0) as u64;
                    let layout = Layout::contiguous(&[])?;
                    let mut raw = rt.adopt_static(&function.block, spec.dtype, layout, Marks::NONE);
                    raw.addr += 16 * slot;
                    Some(raw)
                }
                Given::Host { bytes, shape, .. } => {
                    let shape = shape.clone().unwrap_or_default();
                    let (padded, marks) = padded_shape(&shape);
                    let layout = Layout::contiguous(&padded)?;
                    let size = (layout.count() * spec.dtype.size()) as u64;
                    let owned = function.static_memory(rt, i, size)?;
                    if padded.len() > 1 && padded[1..] != shape[1..] {
                        put(
                            owned.memory.addr(),
                            &pad_rows(bytes, spec.dtype.size(), &shape, &padded),
                            size as usize,
                        );
                    } else {
                        put(owned.memory.addr(), bytes, size as usize);
                    }
                    Some(rt.adopt_static(&owned, spec.dtype, layout, marks))
                }
                Given::Device(raw) => {
                    let (padded, marks) = padded_shape(raw.layout.shape());
                    if marks.any() && graphs {
                        let layout = Layout::contiguous(&padded)?;
                        let size = (layout.count() * spec.dtype.size()) as u64;
                        let owned = function.static_memory(rt, i, size)?;
                        let input = rt.adopt_static(&owned, spec.dtype, layout, marks);
                        rt.core.borrow_mut().memory.note_padded_copy(&input, raw);
                        pads.push((raw.view(), input.view()));
                        Some(input)
                    } else {
                        let mut core = rt.core.borrow_mut();
                        core.memory.retain(raw.slot, raw.epoch);
                        if marks.any() {
                            core.memory.belongs_to_call(raw.slot);
                        }
                        Some(RawTensor { marks, ..*raw })
                    }
                }
            };
            self.inputs.push(raw);
        }
        let mut core = rt.core.borrow_mut();
        core.stream.stage_upload((!host.writes.is_empty()).then_some(host));
        for (from, to) in pads {
            core.launcher().launch(PAD, &[from], &[to])?;
            let (_, end) = to.range();
            core.log.emit(Occurrence::Copied { slot: CopySlot::Input, bytes: end - to.addr });
        }
        Ok(())
    }
}

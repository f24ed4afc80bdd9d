//! Chains and single steps on a device, and their bytes.

use smallvec::{SmallVec, smallvec};

use crate::{
    DType,
    backend::{Backend, HostUpload, Launch, Op, SharedMemory, View, cpu::kernels::testing::Array},
    kernel::{
        chain::{Chain, ElementSource, Step},
        definition::Padded,
        operation::operation,
    },
    memory::COPY,
    value::layout::Layout,
};

/// A device, and memory of it.
pub(super) struct Bench<'d> {
    device: &'d mut dyn Backend,
    memory: Vec<SharedMemory>,
}

/// The contents of memory that nothing has written.
const UNWRITTEN: u8 = 0xA5;

impl<'d> Bench<'d> {
    pub(super) fn new(device: &'d mut dyn Backend) -> Self {
        Self { device, memory: Vec::new() }
    }

    fn bytes(&mut self, bytes: Vec<u8>) -> u64 {
        let block = self.device.alloc(bytes.len().max(1) as u64).unwrap();
        let (addr, len) = (block.addr(), bytes.len());
        self.memory.push(block);
        self.device
            .host_write(HostUpload { bytes, writes: vec![(addr, 0, len)], ..HostUpload::default() })
            .unwrap();
        addr
    }

    pub(super) fn upload(&mut self, array: &Array) -> View {
        let addr = self.bytes(array.bytes.clone()) + (array.before * array.dtype.size()) as u64;
        View { addr, dtype: array.dtype, layout: array.layout }
    }

    fn empty(&mut self, dtype: DType, shape: &[usize]) -> View {
        let layout = Layout::contiguous(shape).unwrap();
        let addr = self.bytes(vec![UNWRITTEN; layout.count() * dtype.size()]);
        View { addr, dtype, layout }
    }

    fn launch(
        &mut self,
        op: Op,
        inputs: SmallVec<[View; 4]>,
        outputs: SmallVec<[View; 1]>,
    ) -> crate::Result<()> {
        self.device.launch(&Launch { op, inputs, outputs, workspace: 0 })
    }

    fn read(&mut self, view: &View) -> Vec<u8> {
        let bytes = view.layout.span() * view.dtype.size();
        self.device.read(view.addr, bytes as u64).unwrap().wait().unwrap()
    }

    /// Runs the steps one after the other, and returns the bytes of `outputs`. With `early`, an output goes over the
    /// input of that number as soon as its step has run, which is wrong where a later step reads that input.
    pub(super) fn one_by_one(
        &mut self,
        steps: &[Step],
        inputs: &[Array],
        outputs: &[(u8, u8)],
        shape: &[usize],
        early: &[Option<u8>],
    ) -> Vec<Vec<u8>> {
        let inputs: Vec<View> = inputs.iter().map(|input| self.upload(input)).collect();
        let mut results: Vec<SmallVec<[View; 1]>> = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let read = step.arguments.iter().map(|argument| match *argument {
                ElementSource::Input(input) => inputs[usize::from(input)],
                ElementSource::Result { step, part } => results[usize::from(step)][usize::from(part)],
            });
            let read = read.collect();
            let own: SmallVec<[View; 1]> =
                step.stored.iter().map(|dtype| self.empty(*dtype, shape)).collect();
            let constants = (0..step.definition.inputs.len()).map(|i| step.constant(i));
            let op = operation(step.definition, constants, Padded::default());
            if !shape.contains(&0) {
                self.launch(op, read, own.clone()).unwrap();
                for (output, input) in outputs.iter().zip(early) {
                    let part = (usize::from(output.0) == at).then_some(usize::from(output.1));
                    if let (Some(part), Some(input)) = (part, input) {
                        let to = View { addr: inputs[usize::from(*input)].addr, ..own[part] };
                        self.launch(COPY, smallvec![own[part]], smallvec![to]).unwrap();
                    }
                }
            }
            results.push(own);
        }
        self.device.synchronize().unwrap();
        let all = outputs.iter().map(|(step, part)| results[usize::from(*step)][usize::from(*part)]);
        all.map(|view| self.read(&view)).collect()
    }

    /// Runs a chain whose outputs go over the inputs that `written` names, and returns their bytes. Inputs that are not
    /// written must stay what they are.
    pub(super) fn chained(
        &mut self,
        chain: Chain,
        inputs: &[Array],
        shape: &[usize],
        written: &[Option<u8>],
    ) -> Vec<Vec<u8>> {
        let views: Vec<View> = inputs.iter().map(|input| self.upload(input)).collect();
        let types = chain
            .outputs
            .iter()
            .map(|&(step, part)| chain.steps()[usize::from(step)].stored[usize::from(part)]);
        let types: Vec<DType> = types.collect();
        let outputs: SmallVec<[View; 1]> = types
            .into_iter()
            .zip(written)
            .map(|(dtype, written)| {
                let view = self.empty(dtype, shape);
                let addr = written.map_or(view.addr, |input| views[usize::from(input)].addr);
                View { addr, ..view }
            })
            .collect();
        if !shape.contains(&0) {
            self.launch(chain.into(), SmallVec::from_slice(&views), outputs.clone()).unwrap();
        }
        self.device.synchronize().unwrap();
        for (i, (view, input)) in views.iter().zip(inputs).enumerate() {
            if !written.contains(&Some(i as u8)) {
                let from = input.before * input.dtype.size();
                let shown = &input.bytes[from..from + input.layout.span() * input.dtype.size()];
                assert_eq!(self.read(view), shown, "input {i} changed");
            }
        }
        outputs.iter().map(|view| self.read(view)).collect()
    }
}

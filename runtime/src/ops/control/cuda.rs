//! Decisions on a GPU: `control.cu`.

use bytemuck::{Pod, Zeroable};

use super::operation::{Case, NextRound, Switch};
use crate::{
    Result,
    backend::{
        Launch,
        cuda::kernels::{FaultSink, Grid, Kernel, SourceFile, Submit, submit},
    },
};

#[cfg(test)]
mod tests;

static SOURCE: SourceFile = SourceFile::ours("control/control.cu", include_str!("control.cu"));

/// The cases that one kernel looks at.
const CASES: usize = 32;

/// Mirrors `ChooseParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct ChooseParams {
    pred: u64,
    to: u64,
}
const _: () = assert!(size_of::<ChooseParams>() == 16);

/// Mirrors `CaseParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct CaseParams {
    index: u64,
    to: u64,
    n: u32,
    is_first: u32,
    other: u32,
    pad: u32,
    values: [u32; CASES],
    bodies: [u32; CASES],
}
const _: () = assert!(size_of::<CaseParams>() == 288);

/// Mirrors `LoopParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct LoopParams {
    pred: u64,
    to: u64,
    rounds: u64,
    sink: FaultSink,
    op: u32,
    limit: u32,
}
const _: () = assert!(size_of::<LoopParams>() == 48);

fn one(gpu: &mut dyn Submit, name: &'static str, params: &impl Pod) -> Result<()> {
    submit(gpu, Kernel::plain(&SOURCE, name), Grid::line(1, 1), params)
}

pub(super) fn choose(gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
    one(gpu, "choose", &ChooseParams { pred: launch.inputs[0].addr, to: launch.outputs[0].addr })
}

pub(super) fn choose_case(gpu: &mut dyn Submit, launch: &Launch, op: &Switch) -> Result<()> {
    // Without any case, there is still the default to write.
    let parts = op.table.chunks(CASES).chain(op.table.is_empty().then_some(&[][..]));
    for (number, part) in parts.enumerate() {
        let (mut values, mut bodies) = ([0; CASES], [0; CASES]);
        for (&Case { value, body }, (to_value, to_body)) in
            part.iter().zip(values.iter_mut().zip(&mut bodies))
        {
            (*to_value, *to_body) = (value, body);
        }
        let params = CaseParams {
            index: launch.inputs[0].addr,
            to: launch.outputs[0].addr,
            n: part.len() as u32,
            is_first: u32::from(number == 0),
            other: op.default,
            pad: 0,
            values,
            bodies,
        };
        one(gpu, "choose_case", &params)?;
    }
    Ok(())
}

fn loop_params(gpu: &dyn Submit, launch: &Launch, op: u32, limit: u32) -> LoopParams {
    LoopParams {
        pred: launch.inputs[0].addr,
        to: launch.outputs[0].addr,
        rounds: launch.outputs[1].addr,
        sink: gpu.faults(),
        op,
        limit,
    }
}

pub(super) fn begin_loop(gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
    let params = loop_params(gpu, launch, 0, 0);
    one(gpu, "begin_loop", &params)
}

pub(super) fn next_round(gpu: &mut dyn Submit, launch: &Launch, op: &NextRound) -> Result<()> {
    let number = gpu.fault_loop(op.at);
    let params = loop_params(gpu, launch, number, op.limit);
    one(gpu, "next_round", &params)
}

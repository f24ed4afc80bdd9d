//! A product of few rows with what precedes and follows it, as one operation.

use smallvec::SmallVec;

#[cfg(feature = "cuda")]
use super::cuda;
use super::{super::super::prelude::*, plan::Plan};
use crate::{
    DType,
    backend::{Op, View},
    value::layout::Layout,
};

/// Several launches as one. On the CPU they run one after the other, with memory of the launch's own for what nobody else
/// reads; on a GPU one kernel does what they do.
#[derive(Clone, Debug)]
pub(super) struct ThinProduct {
    pub(super) plan: Plan,
    pub(super) parts: Vec<Part>,
    /// Bytes that the parts have between them.
    pub(super) between: usize,
}

/// One of the launches.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) op: Op,
    pub(super) inputs: SmallVec<[Place; 4]>,
    pub(super) outputs: SmallVec<[Place; 1]>,
}

/// A view, but for its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) from: From,
    pub(super) dtype: DType,
    pub(super) layout: Layout,
}

/// The memory of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum From {
    /// That of an input of the launch.
    Input(usize),
    /// Of an output.
    Output(usize),
    /// So many bytes behind the beginning of the launch's own memory.
    Between(usize),
}

impl Place {
    fn view(&self, launch: &Launch, between: u64) -> View {
        let addr = match self.from {
            From::Input(i) => launch.inputs[i].addr,
            From::Output(i) => launch.outputs[i].addr,
            From::Between(bytes) => between + bytes as u64,
        };
        View { addr, dtype: self.dtype, layout: self.layout }
    }
}

impl Operation for ThinProduct {
    fn name(&self) -> &'static str {
        "fused_product"
    }

    fn writes_in_place(&self) -> bool {
        self.parts.iter().any(|part| part.op.operation().writes_in_place())
    }

    /// The place of an operand that no part reads any more, which `fuse` has ensured.
    fn may_write_over(&self, input: &View, output: &View) -> bool {
        is_same_place(input, output)
    }

    /// The rest of the plan follows from the parts.
    fn parameters(&self, mut to: &mut dyn Hasher) {
        self.plan.early.hash(&mut to);
        for Part { op, inputs, outputs } in &self.parts {
            op.hash(&mut to);
            inputs.hash(&mut to);
            outputs.hash(&mut to);
        }
    }

    fn early(&self, launch: &Launch, is_constant: &dyn Fn(&View) -> bool) -> Option<Op> {
        let are_constant =
            self.plan.weights.iter().all(|weight| is_constant(&launch.inputs[weight.rows.input]));
        let is_new = are_constant && !self.plan.early;
        is_new.then(|| Self { plan: Plan { early: true, ..self.plan.clone() }, ..self.clone() }.into())
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        access.in_parts(self.between, |between, parts| {
            let mut first = Ok(());
            for Part { op, inputs, outputs } in &self.parts {
                let part = Launch {
                    op: op.clone(),
                    inputs: inputs.iter().map(|place| place.view(launch, between)).collect(),
                    outputs: outputs.iter().map(|place| place.view(launch, between)).collect(),
                    workspace: 0,
                };
                first = first.and(parts.run(|access| op.operation().run_cpu(access, &part)));
            }
            first
        })
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::launch(&self.plan, gpu, launch)
    }
}

/// Returns whether an output has the memory of the same elements of an input.
pub(super) fn is_same_place(input: &View, output: &View) -> bool {
    let of = |view: &View| (view.addr, view.dtype.size(), view.layout.count());
    of(input) == of(output) && input.layout.is_contiguous()
}

//! A product with a weight in blocks and nothing around it: the kernel of a plan that has no more.

use super::{
    cuda,
    plan::{Matrix, Plan, Source, Store, Value, Weight},
};
use crate::{
    BlockFormat, Result,
    backend::{
        Launch, View,
        cuda::kernels::{SourceFile, Submit},
    },
};

/// Launches `x w^T + bias`, for any number of rows, whose elements lie beside each other and can be loaded 16 bytes at a time.
pub(in crate::ops) fn launch(
    gpu: &mut dyn Submit,
    launch: &Launch,
    format: BlockFormat,
    early: bool,
) -> Result<()> {
    cuda::launch(&plan(launch, format, early), gpu, launch)
}

/// The kernel's source, for CI.
pub(in crate::ops) fn source(launch: &Launch, format: BlockFormat) -> &'static SourceFile {
    cuda::source(&plan(launch, format, false), launch)
}

fn plan(launch: &Launch, format: BlockFormat, early: bool) -> Plan {
    let matrix = |input: usize, view: &View| {
        let strides = [view.layout.strides()[0], view.layout.strides()[1]];
        Matrix { input, dtype: view.dtype, strides }
    };
    let (x, w, y) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    let n = y.layout.shape()[1];
    let bias = launch.inputs.get(2).map(|bias| matrix(2, bias));
    let rows = Matrix { input: 1, dtype: w.dtype, strides: [0, 1] };
    let store = Store { value: Value::Product(0), output: 0, dtype: y.dtype, set: 0, scatter: None };
    Plan {
        dtype: y.dtype,
        format: Some(format),
        m: x.layout.shape()[0],
        k: x.layout.shape()[1],
        source: Source::Memory(matrix(0, x)),
        weights: vec![Weight { n, rows, bias }],
        together: 1,
        operands: Vec::new(),
        steps: Vec::new(),
        turns: Vec::new(),
        stores: vec![store],
        early,
    }
}

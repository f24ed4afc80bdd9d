//! Kernels of plans that models have, for CI to compile.

use super::{super::operation, alone, cuda, fuse::fuse_product, operation::ThinProduct};
use crate::{
    BlockFormat, DType, Numerics,
    backend::{Launch, Op, View, cuda::kernels::SourceFile},
    kernel,
    kernel::{
        definition::{Constant as _, Definition, Kernel as _, Padded},
        operation::operation as with,
    },
    ops::{
        RopeStyle, norm,
        quantized::QuantizedLinear,
        rope::{self, RopeScatter},
        scatter::ScatterRows,
    },
    value::layout::Layout,
};

#[kernel]
fn sum(a: f32, b: f32) -> f32 {
    a + b
}

#[kernel]
fn gated(gate: f32, up: f32) -> f32 {
    gate / (1.0 + (-gate).exp()) * up
}

#[kernel]
fn activated(x: f32) -> f32 {
    0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh())
}

/// Launches in memory that nobody has.
struct Parts {
    dtype: DType,
    /// Of the weights, if they are in blocks.
    format: Option<BlockFormat>,
    next: u64,
    parts: Vec<Launch>,
}

impl Parts {
    fn view(&mut self, shape: &[usize], strides: &[usize]) -> View {
        self.next += 1 << 32;
        let layout = Layout::strided(shape, strides).unwrap_or_else(|_| unreachable!("as many strides"));
        View { addr: self.next, dtype: self.dtype, layout }
    }

    fn whole(&mut self, [m, n]: [usize; 2]) -> View {
        self.view(&[m, n], &[n, 1])
    }

    fn part(&mut self, op: Op, inputs: &[View], [m, n]: [usize; 2], results: usize) -> Vec<View> {
        let outputs: Vec<View> = (0..results).map(|_| self.whole([m, n])).collect();
        self.parts.push(Launch { op, inputs: inputs.into(), outputs: outputs.clone().into(), workspace: 0 });
        outputs
    }

    /// A norm of `x` by its name.
    fn norm(&mut self, name: &str, x: View) -> Option<View> {
        let [m, k] = [x.layout.shape()[0], x.layout.shape()[1]];
        // The sum is rounded to the type of the elements: there is a kernel for each.
        let skipped = match self.dtype {
            DType::F16 if name == "add_rms_norm" => 1,
            DType::Bf16 if name == "add_rms_norm" => 2,
            _ => 0,
        };
        let definition: &'static Definition =
            norm::kernels().filter(|definition| definition.name == name).nth(skipped)?;
        let mut inputs = vec![x];
        if name == "add_rms_norm" {
            inputs.push(self.whole([m, k]));
        }
        while inputs.len() + 1 < definition.inputs.len() {
            inputs.push(self.view(&[m, k], &[0, 1]));
        }
        let numbers = (0..definition.inputs.len()).map(|i| (i == inputs.len()).then(|| 1e-5f32.number()));
        let op = with(definition, numbers, Padded::default());
        self.part(op, &inputs, [m, k], definition.outputs.len()).pop()
    }

    fn product(&mut self, x: View, n: usize, bias: bool) -> View {
        let [m, k] = [x.layout.shape()[0], x.layout.shape()[1]];
        let (op, weight) = match self.format {
            None => (operation::by_default(), self.view(&[k, n], &[1, k])),
            Some(format) => {
                let bytes = format.row_bytes(k).unwrap_or(k);
                let blocks = View { dtype: DType::U8, ..self.view(&[n, bytes], &[bytes, 1]) };
                (QuantizedLinear::new(format, Numerics::default()).into(), blocks)
            }
        };
        let mut inputs = vec![x, weight];
        if bias {
            inputs.push(self.view(&[m, n], &[0, 1]));
        }
        self.part(op, &inputs, [m, n], 1)[0]
    }

    fn apply(&mut self, definition: &'static Definition, inputs: &[View]) {
        let shape = inputs[0].layout.shape();
        let _ = self.part(Op::fixed(definition), inputs, [shape[0], shape[1]], 1);
    }

    /// The launch, of which everything is kept that a model reads again.
    fn fused(&self) -> Option<Launch> {
        let parts: Vec<&Launch> = self.parts.iter().collect();
        let kept: Vec<u8> = parts
            .iter()
            .map(|part| {
                let is_read = |view: &View| {
                    parts.iter().flat_map(|other| &other.inputs).any(|input| input.addr == view.addr)
                };
                let outputs = part.outputs.iter().enumerate();
                outputs.fold(0, |bits, (i, view)| bits | u8::from(!is_read(view)) << i)
            })
            .collect();
        fuse_product(&parts, &kept)
    }
}

fn contiguous(shape: &[usize]) -> Layout {
    Layout::contiguous(shape).unwrap_or_else(|_| unreachable!("few elements"))
}

/// A norm and three products of its result, as queries, keys and values are.
fn projections(parts: &mut Parts, m: usize) {
    let x = parts.whole([m, 576]);
    if let Some(x) = parts.norm("rms_norm", x) {
        for n in [576, 192, 192] {
            let _ = parts.product(x, n, false);
        }
    }
}

/// Queries that are turned, keys that are turned into rows of a cache, and values that go to another one.
fn cached(parts: &mut Parts, m: usize) {
    let x = parts.whole([m, 576]);
    let Some(x) = parts.norm("rms_norm", x) else { return };
    // Both ways to pair elements.
    let style = if m == 4 { RopeStyle::Interleaved } else { RopeStyle::HalfSplit };
    let Some(rope) = rope::sample(style, 64) else { return };
    let positions = View { dtype: DType::U32, ..parts.view(&[1, 1, m], &[0, 0, 1]) };
    let index = View { dtype: DType::U32, ..parts.view(&[m], &[1]) };
    for (what, heads) in [9, 3, 3].into_iter().enumerate() {
        let y = parts.product(x, heads * 64, false);
        let of_heads = |shape: &[usize]| View { layout: contiguous(shape), ..y };
        let state = parts.view(&[256, heads, 64], &[heads * 64, 64, 1]);
        let turned = parts.view(&[1, m, heads, 64], &[m * heads * 64, heads * 64, 64, 1]);
        let (op, inputs, output): (Op, Vec<View>, View) = match what {
            0 => (rope.into(), vec![of_heads(&[1, m, heads, 64]), positions], turned),
            1 => (RopeScatter(rope).into(), vec![of_heads(&[1, m, heads, 64]), positions, index], state),
            _ => (ScatterRows.into(), vec![index, of_heads(&[m, heads, 64])], state),
        };
        parts.parts.push(Launch { op, inputs: inputs.into(), outputs: [output].into(), workspace: 0 });
    }
}

fn residual(parts: &mut Parts, m: usize) {
    added(parts, m, [2048, 576], false);
}

fn gate(parts: &mut Parts, m: usize) {
    gated_layer(parts, m, [576, 1536]);
}

/// A layer with a bias and an activation.
fn biased(parts: &mut Parts, m: usize) {
    let x = parts.whole([m, 1600]);
    if let Some(x) = parts.norm("layer_norm", x) {
        let y = parts.product(x, 6400, true);
        parts.apply(activated::DEFINITION, &[y]);
    }
}

/// A sum, its norm, and a gated layer of `n` columns.
fn gated_layer(parts: &mut Parts, m: usize, [k, n]: [usize; 2]) {
    let x = parts.whole([m, k]);
    if let Some(x) = parts.norm("add_rms_norm", x) {
        let (gate, up) = (parts.product(x, n, false), parts.product(x, n, false));
        parts.apply(gated::DEFINITION, &[gate, up]);
    }
}

/// A product that is added to something else.
fn added(parts: &mut Parts, m: usize, [k, n]: [usize; 2], bias: bool) {
    let x = parts.whole([m, k]);
    let (y, h) = (parts.product(x, n, bias), parts.whole([m, n]));
    parts.apply(sum::DEFINITION, &[h, y]);
}

/// A gated layer of a width that all formats divide, and the product that follows, with a bias or to be added to something.
fn gate_of_blocks(parts: &mut Parts, m: usize) {
    gated_layer(parts, m, [512, 1536]);
}

fn residual_of_blocks(parts: &mut Parts, m: usize) {
    added(parts, m, [1536, 512], m == 2);
}

/// A product of so large a K that more warps share it.
fn narrowed(parts: &mut Parts, m: usize) {
    added(parts, m, [8192, 2048], false);
}

/// As many warps, with a norm.
fn widened(parts: &mut Parts, m: usize) {
    gated_layer(parts, m, [5120, 4096]);
}

/// A gated layer of so many columns that weights of several passes over them are on their way.
fn many_columns(parts: &mut Parts, m: usize) {
    gated_layer(parts, m, [512, 4096]);
}

/// A product of an odd number of blocks of 32 elements.
fn half_unit(parts: &mut Parts, m: usize) {
    added(parts, m, [1568, 512], false);
}

/// A kind of product, for some types and numbers of rows.
type Sample = fn(&mut Parts, usize);

/// The kernels for weights in blocks, with their names: every format with as many rows as there are kernels for, and one with
/// everything that can be around a product.
fn of_blocks() -> Vec<(String, &'static SourceFile)> {
    const FEW: [(DType, usize); 5] =
        [(DType::F32, 1), (DType::F32, 4), (DType::Bf16, 1), (DType::Bf16, 8), (DType::Bf16, 16)];
    let mut sources = Vec::new();
    let mut add = |name: &str, build: Sample, format: BlockFormat, dtype: DType, m: usize| {
        let mut parts = Parts { dtype, format: Some(format), next: 0, parts: Vec::new() };
        build(&mut parts, m);
        sources.push(named(&format!("{name} in {format}"), &parts, m));
    };
    for &format in BlockFormat::ALL {
        FEW.iter().for_each(|(dtype, m)| add("gate", gate_of_blocks, format, *dtype, *m));
    }
    for (dtype, m) in [(DType::F32, 1), (DType::F32, 2), (DType::F16, 1), (DType::F16, 16), (DType::Bf16, 1)]
    {
        for format in [BlockFormat::Q8_0, BlockFormat::Q4_1] {
            add("cached", cached, format, dtype, m);
            add("residual", residual_of_blocks, format, dtype, m);
        }
    }
    for (format, narrow, wide) in
        [(BlockFormat::Q6_K, 16, 1), (BlockFormat::Q3_K, 1, 1), (BlockFormat::INT4, 16, 4)]
    {
        add("narrowed", narrowed, format, DType::Bf16, narrow);
        add("widened", widened, format, DType::Bf16, wide);
    }
    for format in [BlockFormat::Q4_K, BlockFormat::Q5_K, BlockFormat::Q6_K, BlockFormat::Q8_0] {
        add("many columns", many_columns, format, DType::Bf16, 1);
    }
    for format in [BlockFormat::Q4_1, BlockFormat::Q8_0] {
        add("many columns", many_columns, format, DType::F32, 1);
    }
    add("residual of a half unit", half_unit, BlockFormat::Q5_0, DType::Bf16, 1);
    sources
}

/// The kernel of some parts, with its name.
fn named(name: &str, parts: &Parts, m: usize) -> (String, &'static SourceFile) {
    let name = format!("{name} of {m} rows of {}", parts.dtype);
    let Some(launch) = parts.fused() else { unreachable!("{name}") };
    let operation: &dyn std::any::Any = launch.op.operation();
    match operation.downcast_ref() {
        Some(ThinProduct { plan, .. }) => (name, cuda::source(plan, &launch)),
        None => unreachable!("{name}"),
    }
}

/// A product with nothing around it, with its name.
fn alone_in(format: BlockFormat, dtype: DType, m: usize) -> (String, &'static SourceFile) {
    let mut parts = Parts { dtype, format: Some(format), next: 0, parts: Vec::new() };
    let x = parts.whole([m, 512]);
    let _ = parts.product(x, 1536, true);
    (format!("{m} rows of {dtype} in {format}"), alone::source(&parts.parts[0], format))
}

/// The kernels with their names, for few rows and many.
pub(in crate::ops) fn samples() -> Vec<(String, &'static SourceFile)> {
    let all: [(&str, Sample); 5] = [
        ("projections", projections),
        ("cached", cached),
        ("residual", residual),
        ("gate", gate),
        ("biased", biased),
    ];
    let mut sources = Vec::new();
    for dtype in [DType::F32, DType::Bf16, DType::F16] {
        for m in [1, 4, 16] {
            for (name, build) in all {
                let mut parts = Parts { dtype, format: None, next: 0, parts: Vec::new() };
                build(&mut parts, m);
                sources.push(named(name, &parts, m));
            }
        }
    }
    sources.extend(of_blocks());
    for format in [BlockFormat::Q8_0, BlockFormat::Q6_K] {
        for (dtype, m) in [(DType::F32, 1), (DType::F32, 16), (DType::Bf16, 8), (DType::F16, 16)] {
            sources.push(alone_in(format, dtype, m));
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    /// Each is one launch, for devices of every size.
    #[test]
    fn samples_are_fused() {
        let samples = super::samples();
        assert_eq!(samples.len(), 45 + 65 + 20 + 6 + 6 + 1 + 8);
        assert!(
            samples.iter().all(|(_, source)| source.waits && source.text.contains("wait_for_earlier();"))
        );
    }
}

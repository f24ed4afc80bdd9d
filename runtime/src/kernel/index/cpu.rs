//! A kernel of indices on host memory: one element after the other.

use smallvec::SmallVec;

use super::{
    super::{
        block::{Beyond, Block, Output},
        cpu::{Kind, Source, place},
        definition::Compute,
        random::draws::generator,
        tasks::run_all,
    },
    lang::{Data, Floats, Numbers, Part, Values},
    operation::{Kernel, Owner},
};
use crate::{
    DType,
    backend::{
        Launch, View,
        cpu::{Access, Fault, PARALLEL, TASK},
    },
    base::rank::MAX_RANK,
};

/// Elements of a loop that count as much as one without.
const LOOPS: usize = 8;

/// Runs a kernel.
///
/// # Errors
/// Returns the first index out of range, in the order of the elements.
pub(super) fn run(kernel: &Kernel<'_>, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
    let Some(first) = launch.outputs.first() else { return Ok(()) };
    let [tensors, generators, counts] = kernel.split(launch);
    let sizes = sizes(first);
    let real = real_sizes(kernel, access, counts, Owner::Results, sizes);
    let operands = operands(kernel, access, tensors, counts, &mut numbers(kernel, access, generators, real));
    let count = first.layout.count();
    let weight = if kernel.index.straight { 1 } else { LOOPS };
    let each = if count * weight < PARALLEL { count.max(1) } else { TASK / weight };
    let mut tasks: SmallVec<[Task<'_>; 1]> = (0..count)
        .step_by(each)
        .map(|first| Task {
            part: Part { first, count: each.min(count - first), sizes, real },
            places: SmallVec::new(),
        })
        .collect();
    for (view, compute) in launch.outputs.iter().zip(kernel.definition.outputs) {
        let kind = Kind { dtype: view.dtype, compute: *compute };
        let mut rest = place(access, view);
        for task in &mut tasks {
            let (own, others) = rest.split_at_mut(task.part.count * kind.dtype.size());
            task.places.push((kind, own));
            rest = others;
        }
    }
    run_all(kernel.definition.name, tasks, |task| task.run(kernel, &operands))
}

/// A parameter.
enum Operand<'a> {
    View(Data<'a>),
    Value(Source<'a>),
    Random(Numbers),
}

/// The numbers of each parameter that is a random number.
fn numbers<'n>(
    kernel: &'n Kernel<'_>,
    access: &'n Access<'_>,
    generators: &'n [View],
    real: [u32; MAX_RANK],
) -> impl Iterator<Item = Numbers> + 'n {
    let all = generators.iter().zip(kernel.ahead);
    all.map(move |(view, ahead)| Numbers::new(generator(access, view).after(*ahead), real))
}

fn operands<'a>(
    kernel: &Kernel<'_>,
    access: &Access<'a>,
    tensors: &[View],
    counts: &[View],
    numbers: &mut dyn Iterator<Item = Numbers>,
) -> SmallVec<[Operand<'a>; 4]> {
    let mut views = tensors.iter().enumerate();
    let parameters = kernel.definition.inputs.iter().zip(kernel.index.views).enumerate();
    let all = parameters.map(|(i, ((_, compute), rank))| {
        if let Some(number) = kernel.constants.get(i).copied().flatten() {
            return Operand::Value(Source::Constant(number));
        }
        if *compute == Compute::Random {
            return numbers.next().map_or(Operand::Value(Source::None), Operand::Random);
        }
        let Some((tensor, view)) = views.next() else { return Operand::Value(Source::None) };
        if rank.is_none() {
            return Operand::Value(Source::new(access, view, *compute));
        }
        let mut strides = [0; MAX_RANK];
        strides[..view.layout.rank()].copy_from_slice(view.layout.strides());
        let sizes = real_sizes(kernel, access, counts, Owner::Input(tensor as u8), sizes(view));
        Operand::View(Data { values: values(access, view, *compute), sizes, strides })
    });
    all.collect()
}

/// The sizes of a view, which the launch has checked.
fn sizes(view: &View) -> [u32; MAX_RANK] {
    let mut sizes = [1; MAX_RANK];
    for (to, size) in sizes.iter_mut().zip(view.layout.shape()) {
        *to = *size as u32;
    }
    sizes
}

/// Sizes without their padding.
fn real_sizes(
    kernel: &Kernel<'_>,
    access: &Access<'_>,
    counts: &[View],
    of: Owner,
    mut sizes: [u32; MAX_RANK],
) -> [u32; MAX_RANK] {
    for padded in kernel.padded.iter().filter(|padded| padded.of == of) {
        let view = counts.get(usize::from(padded.count));
        if let (Some(view), Some(size)) = (view, sizes.get_mut(usize::from(padded.axis))) {
            *size = (*size).min(access.count(view) as u32);
        }
    }
    sizes
}

fn values<'a>(access: &Access<'a>, view: &View, compute: Compute) -> Values<'a> {
    match (compute, view.dtype) {
        (Compute::F32, DType::F16) => Values::Floats(Floats::F16(access.slice(view))),
        (Compute::F32, DType::Bf16) => Values::Floats(Floats::Bf16(access.slice(view))),
        (Compute::F32, _) => Values::Floats(Floats::F32(access.slice(view))),
        (Compute::F64, _) => Values::F64(access.slice(view)),
        (Compute::I32, _) => Values::I32(access.slice(view)),
        (Compute::I64, _) => Values::I64(access.slice(view)),
        (Compute::I8, _) => Values::I8(access.slice(view)),
        (Compute::U32 | Compute::Random, _) => Values::U32(access.slice(view)),
        // No view is of the bits of floats.
        (Compute::U8 | Compute::Bool | Compute::U16, _) => Values::U8(access.slice(view)),
    }
}

/// Some elements of the results.
struct Task<'a> {
    part: Part,
    places: SmallVec<[(Kind, &'a mut [u8]); 2]>,
}

impl Task<'_> {
    fn run(mut self, kernel: &Kernel<'_>, operands: &[Operand<'_>]) -> Option<Beyond> {
        if self.part.real != self.part.sizes {
            self.places.iter_mut().for_each(|(_, bytes)| bytes.fill(0));
        }
        let converted = |kind: &Kind| if kind.is_converted() { self.part.count } else { 0 };
        let mut results: SmallVec<[Vec<f32>; 2]> =
            self.places.iter().map(|(kind, _)| vec![0.0; converted(kind)]).collect();
        let mut words: SmallVec<[(u64, u32); 4]> = SmallVec::from_elem((0, 0), operands.len());
        let mut block = Block::new();
        block.compute(self.part);
        for (operand, (raw, value)) in operands.iter().zip(&mut words) {
            match operand {
                Operand::View(data) => block.view(data),
                Operand::Random(numbers) => block.draw(*numbers),
                Operand::Value(source) => {
                    let (raw, value) = (std::slice::from_mut(raw), std::slice::from_mut(value));
                    block.read(source.read(0, 1, raw, value));
                }
            }
        }
        for ((kind, bytes), values) in self.places.iter_mut().zip(&mut results) {
            match kind.is_converted() {
                true => block.write(Output::F32(values)),
                false => block.write(kind.output(bytes)),
            }
        }
        (kernel.definition.block)(&mut block);
        let fault = block.fault();
        drop(block);
        for ((kind, bytes), values) in self.places.iter_mut().zip(&results) {
            if kind.is_converted() {
                kind.store(bytes, values);
            }
        }
        fault
    }
}

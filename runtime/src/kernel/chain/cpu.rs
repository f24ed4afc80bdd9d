//! A chain on host memory: for each block of elements, all steps.
//!
//! A result of a step is held in a buffer as it would be in memory, and beside it, for a float of 16 bits that a later step
//! reads, as that step would have converted it. Outputs are copied from these buffers when all steps of a block are done.
//! So a task can read an input from the part of an output that it will write, which only it has.

use bytemuck::{cast_slice, cast_slice_mut};
use smallvec::SmallVec;

use super::{Chain, ElementSource, Step};
use crate::{
    backend::{Launch, cpu::Access},
    kernel::{
        block::{Block, Input, Output},
        cpu::{BLOCK, Buffer, Kind, Source, Task, in_tasks, results, with_buffers},
        definition::{Compute, Number},
    },
};

/// Runs a chain.
pub(super) fn run(chain: &Chain, access: &Access<'_>, launch: &Launch) {
    let Some(first) = launch.outputs.first() else { return };
    let plan = chain.plan.get_or_init(|| Plan::new(&chain.steps));
    let origins: SmallVec<[Origin<'_>; INLINE]> =
        plan.origins.iter().map(|origin| origin.of_launch(access, launch)).collect();
    let computes = chain.outputs.iter().map(|output| plan.results[plan.result(*output)].kind.compute);
    in_tasks(first.layout.count(), results(access, &launch.outputs, computes), |task| {
        Running { chain, plan, origins: &origins }.run(task);
    });
}

/// Values from outside for which a launch allocates nothing: most chains have fewer.
const INLINE: usize = 16;

/// The values that the steps of a chain read and write in every launch.
pub(super) struct Plan {
    /// The values from outside, each as one computing type.
    origins: Vec<OriginPlan>,
    /// For each parameter of each step, in order.
    operands: Vec<Operand>,
    /// Of all steps, in order.
    results: Vec<Held>,
    /// For each step, the number of results before its own.
    before: Vec<usize>,
}

/// A value from outside.
#[derive(Clone, Copy)]
enum OriginPlan {
    Constant(Number),
    /// An input of the chain, computed as this type.
    Input(u8, Compute),
    /// A parameter for which there is no argument.
    None,
}

/// A launch of a chain.
#[derive(Clone, Copy)]
struct Running<'r, 'a> {
    chain: &'r Chain,
    plan: &'r Plan,
    origins: &'r [Origin<'a>],
}

/// The places of values from outside.
enum Origin<'a> {
    Source(Source<'a>),
    /// In the part of an output that the task will write, as these types.
    Output(usize, Kind),
}

/// The kind of a step's parameter.
#[derive(Clone, Copy)]
enum Operand {
    Origin(usize),
    /// A result, as it is read.
    Result(usize, Kind),
}

/// A result of a step in its buffer.
#[derive(Clone, Copy)]
struct Held {
    /// As it is written.
    kind: Kind,
    /// Set if a step reads floats of 16 bits as values, which the buffer then has beside their bits.
    has_values: bool,
}

impl Plan {
    fn new(steps: &[Step]) -> Self {
        let mut plan =
            Self { origins: Vec::new(), operands: Vec::new(), results: Vec::new(), before: Vec::new() };
        let mut known: SmallVec<[(u8, Compute, Operand); 16]> = SmallVec::new();
        for step in steps {
            plan.before.push(plan.results.len());
            let mut arguments = step.arguments.iter();
            for (i, (_, compute)) in step.definition.inputs.iter().enumerate() {
                let operand = match step.constant(i) {
                    Some(number) => plan.origin(OriginPlan::Constant(number)),
                    None => match arguments.next() {
                        Some(ElementSource::Result { step, part }) => plan.read((*step, *part), *compute),
                        Some(ElementSource::Input(input)) => plan.input(&mut known, *input, *compute),
                        None => plan.origin(OriginPlan::None),
                    },
                };
                plan.operands.push(operand);
            }
            let stored = step.stored.iter().zip(step.definition.outputs);
            let kinds = stored.map(|(dtype, compute)| Kind { dtype: *dtype, compute: *compute });
            plan.results.extend(kinds.map(|kind| Held { kind, has_values: false }));
        }
        plan
    }

    fn origin(&mut self, origin: OriginPlan) -> Operand {
        self.origins.push(origin);
        Operand::Origin(self.origins.len() - 1)
    }

    /// An input, which is converted once for all steps that compute it as the same type.
    fn input(
        &mut self,
        known: &mut SmallVec<[(u8, Compute, Operand); 16]>,
        input: u8,
        compute: Compute,
    ) -> Operand {
        if let Some((_, _, operand)) = known.iter().find(|known| (known.0, known.1) == (input, compute)) {
            return *operand;
        }
        let operand = self.origin(OriginPlan::Input(input, compute));
        known.push((input, compute, operand));
        operand
    }

    /// The number of a result among those of all steps.
    fn result(&self, (step, part): (u8, u8)) -> usize {
        self.before[usize::from(step)] + usize::from(part)
    }

    fn read(&mut self, result: (u8, u8), compute: Compute) -> Operand {
        let at = self.result(result);
        let held = &mut self.results[at];
        let kind = Kind { compute, ..held.kind };
        held.has_values |= kind.is_converted();
        Operand::Result(at, kind)
    }
}

impl Running<'_, '_> {
    fn run(self, mut task: Task<'_>) {
        let plan = self.plan;
        with_buffers(self.origins.len() + plan.results.len(), |buffers| {
            let (origins, results) = buffers.split_at_mut(self.origins.len());
            let count = task.count();
            for first in (0..count).step_by(BLOCK) {
                let len = BLOCK.min(count - first);
                self.compute(&task, first, len, origins, results);
                for ((kind, bytes), output) in task.outputs.iter_mut().zip(&self.chain.outputs) {
                    let size = kind.dtype.size();
                    let held: &[u8] = cast_slice(&results[plan.result(*output)].raw);
                    bytes[first * size..(first + len) * size].copy_from_slice(&held[..len * size]);
                }
            }
        });
    }

    /// Computes all results of the elements `first .. first + len` of a task into their buffers.
    fn compute(
        self,
        task: &Task<'_>,
        first: usize,
        len: usize,
        origins: &mut [Buffer],
        results: &mut [Buffer],
    ) {
        let plan = self.plan;
        let read = self.origins.iter().zip(origins);
        let inputs: SmallVec<[Input<'_>; INLINE]> =
            read.map(|(origin, buffer)| origin.read(task, first, len, buffer)).collect();
        let mut operands = plan.operands.iter();
        for (step, before) in self.chain.steps.iter().zip(&plan.before) {
            let (done, rest) = results.split_at_mut(*before);
            let mut block = Block::new();
            for operand in operands.by_ref().take(step.definition.inputs.len()) {
                block.read(match *operand {
                    Operand::Origin(at) => inputs[at],
                    Operand::Result(at, kind) => {
                        let Buffer { raw, converted, .. } = &done[at];
                        kind.input(&cast_slice(raw)[..len * kind.dtype.size()], &cast_slice(converted)[..len])
                    }
                });
            }
            let held = &plan.results[*before..][..step.stored.len()];
            for (held, buffer) in held.iter().zip(&mut *rest) {
                block.write(held.output(buffer, len));
            }
            (step.definition.block)(&mut block);
            drop(block);
            for (held, buffer) in held.iter().zip(rest) {
                held.store(buffer, len);
            }
        }
    }
}

impl OriginPlan {
    /// The place of the value in a launch.
    fn of_launch<'a>(&self, access: &Access<'a>, launch: &Launch) -> Origin<'a> {
        let (input, compute) = match *self {
            Self::Constant(number) => return Origin::Source(Source::Constant(number)),
            Self::None => return Origin::Source(Source::None),
            Self::Input(input, compute) => (input, compute),
        };
        let Some(view) = launch.inputs.get(usize::from(input)) else { return Origin::Source(Source::None) };
        match launch.outputs.iter().position(|output| Chain::may_write_over(view, output)) {
            Some(at) => Origin::Output(at, Kind { dtype: view.dtype, compute }),
            None => Origin::Source(Source::new(access, view, compute)),
        }
    }
}

impl Origin<'_> {
    /// The elements `first .. first + len` of a task, whose outputs are not written yet.
    fn read<'b>(&'b self, task: &'b Task<'_>, first: usize, len: usize, buffer: &'b mut Buffer) -> Input<'b> {
        match self {
            Self::Source(source) => source.read_with(task.start + first, len, Some(buffer.words())),
            Self::Output(at, kind) => {
                let size = kind.dtype.size();
                let bytes = &task.outputs[*at].1[first * size..(first + len) * size];
                let values = &mut cast_slice_mut(&mut buffer.converted)[..len];
                kind.load(bytes, values);
                kind.input(bytes, values)
            }
        }
    }
}

impl Held {
    /// The place for `len` elements, in the type that they are computed in.
    fn output(self, buffer: &mut Buffer, len: usize) -> Output<'_> {
        match self.kind.is_converted() {
            true => Output::F32(&mut cast_slice_mut(&mut buffer.converted)[..len]),
            false => self.kind.output(&mut cast_slice_mut(&mut buffer.raw)[..len * self.kind.dtype.size()]),
        }
    }

    /// Stores what was computed.
    fn store(self, buffer: &mut Buffer, len: usize) {
        let bytes = &mut cast_slice_mut(&mut buffer.raw)[..len * self.kind.dtype.size()];
        let values = &mut cast_slice_mut(&mut buffer.converted)[..len];
        if self.kind.is_converted() {
            self.kind.store(bytes, values);
        }
        if self.has_values {
            Kind { compute: Compute::F32, ..self.kind }.load(bytes, values);
        }
    }
}

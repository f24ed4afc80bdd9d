//! A kernel of rows on host memory: one row after the other, each of them at once.

use smallvec::SmallVec;

use super::super::{
    block::{Beyond, Block, Output},
    cpu::{Kind, Source, place},
    definition::{Compute, Definition, Extent, Padded, Rows},
    operation::Constants,
    tasks::run_all,
};
use crate::backend::{
    Launch, View,
    cpu::{Access, Fault, PARALLEL, TASK},
};

/// Runs a kernel; `constants` is empty if every parameter is a tensor.
///
/// # Errors
/// Returns the first index out of range, in the order of the rows.
pub(in crate::kernel) fn run(
    definition: &Definition,
    rows: &Rows,
    constants: &Constants,
    padded: Padded,
    access: &Access<'_>,
    launch: &Launch,
) -> Result<(), Fault> {
    let operands = operands(rows, definition.inputs, constants, access, launch);
    let size = operands.iter().find(|operand| operand.size.is_some()).and_then(|o| o.size).unwrap_or(0);
    let Some(lead) = lead(rows, launch) else { return Ok(()) };
    let count: usize = lead.iter().product();
    let padding = Padding::new(padded, lead, access, launch);
    let each = if count * size.max(1) < PARALLEL { count } else { (TASK / size.max(1)).max(1) };
    let mut tasks: SmallVec<[Task<'_>; 1]> =
        (0..count).step_by(each.max(1)).map(|first| Task::new(first, each.min(count - first))).collect();
    for ((view, compute), extent) in launch.outputs.iter().zip(definition.outputs).zip(rows.outputs) {
        let kind = Kind { dtype: view.dtype, compute: *compute };
        let length = if *extent == Extent::Row { size } else { 1 };
        let mut rest = place(access, view);
        for task in &mut tasks {
            let (own, others) = rest.split_at_mut(task.count * length * kind.dtype.size());
            task.places.push(Place { kind, length, bytes: own });
            rest = others;
        }
    }
    run_all(definition.name, tasks, |task| task.run(definition, &operands, &padding))
}

/// The dimensions outside the rows.
fn lead<'a>(rows: &Rows, launch: &'a Launch) -> Option<&'a [usize]> {
    let (view, extent) = launch.outputs.iter().zip(rows.outputs).next()?;
    let shape = view.layout.shape();
    Some(if *extent == Extent::Row { &shape[..shape.len() - 1] } else { shape })
}

/// Of each padded dimension outside the rows: the rows of one of its places, its size, and its real size.
struct Padding(SmallVec<[(usize, usize, usize); 1]>);

impl Padding {
    fn new(padded: Padded, lead: &[usize], access: &Access<'_>, launch: &Launch) -> Self {
        let counts = &launch.inputs[launch.inputs.len() - padded.len()..];
        let dims = padded
            .axes()
            .zip(counts)
            .map(|(axis, count)| (lead[axis + 1..].iter().product(), lead[axis], access.count(count)));
        Self(dims.collect())
    }

    /// Returns whether a row is not of the padding.
    fn is_real(&self, row: usize) -> bool {
        self.0.iter().all(|(rows, size, real)| row / rows % size < *real)
    }
}

/// A parameter: where its values are, and how many there are in a row, if it has rows.
struct Operand<'a> {
    source: Source<'a>,
    size: Option<usize>,
    /// Every row is the same one.
    fixed: bool,
}

fn operands<'a>(
    rows: &Rows,
    computes: &[(&str, Compute)],
    constants: &Constants,
    access: &Access<'a>,
    launch: &Launch,
) -> SmallVec<[Operand<'a>; 4]> {
    let mut views = launch.inputs.iter();
    let all = rows.inputs.iter().zip(computes).enumerate().map(|(i, (extent, (_, compute)))| {
        if let Some(number) = constants.get(i).copied().flatten() {
            return Operand { source: Source::Constant(number), size: None, fixed: true };
        }
        let Some(view) = views.next() else {
            return Operand { source: Source::None, size: None, fixed: true };
        };
        let size = (*extent == Extent::Row).then(|| size(view));
        Operand { source: Source::new(access, view, *compute), size, fixed: is_repeated(view) }
    });
    all.collect()
}

/// Number of values in a row of a view.
fn size(view: &View) -> usize {
    view.layout.shape().last().copied().unwrap_or(1)
}

/// Returns whether all rows of a view are one.
fn is_repeated(view: &View) -> bool {
    let lead = view.layout.rank().saturating_sub(1);
    view.layout
        .shape()
        .iter()
        .zip(view.layout.strides())
        .take(lead)
        .all(|(size, stride)| *size == 1 || *stride == 0)
}

/// The memory of a result's rows.
struct Place<'a> {
    kind: Kind,
    /// Elements for each row.
    length: usize,
    bytes: &'a mut [u8],
}

/// Some rows.
struct Task<'a> {
    first: usize,
    count: usize,
    places: SmallVec<[Place<'a>; 2]>,
}

/// Buffers in which the values of a row are gathered and converted; only as large as is needed.
#[derive(Default)]
struct Buffer {
    raw: Vec<u32>,
    converted: Vec<u32>,
}

impl Task<'_> {
    fn new(first: usize, count: usize) -> Self {
        Self { first, count, places: SmallVec::new() }
    }

    /// Returns the first index out of range.
    fn run(mut self, definition: &Definition, operands: &[Operand<'_>], padding: &Padding) -> Option<Beyond> {
        let buffer = |operand: &Operand<'_>| {
            let words = vec![0; if operand.source.is_borrowed() { 0 } else { operand.size.unwrap_or(1) }];
            Buffer { converted: words.clone(), raw: words }
        };
        let mut buffers: SmallVec<[Buffer; 4]> = operands.iter().map(buffer).collect();
        let mut results: SmallVec<[Vec<f32>; 1]> =
            self.places.iter().filter(|p| p.kind.is_converted()).map(|p| vec![0.0; p.length]).collect();
        // A row that is the same for all is gathered and converted once.
        let mut varying: SmallVec<[&mut Buffer; 4]> = SmallVec::new();
        let mut fixed: SmallVec<[Option<_>; 4]> = SmallVec::new();
        for (operand, buffer) in operands.iter().zip(&mut buffers) {
            if operand.fixed {
                let Buffer { raw, converted } = buffer;
                fixed.push(Some(operand.source.read(0, operand.size.unwrap_or(1), raw, converted)));
            } else {
                varying.push(buffer);
                fixed.push(None);
            }
        }
        let mut fault = None;
        for row in 0..self.count {
            let mut block = Block::new();
            let mut varying = varying.iter_mut();
            for (operand, fixed) in operands.iter().zip(&fixed) {
                let len = operand.size.unwrap_or(1);
                match fixed {
                    Some(input) => block.read(*input),
                    None => {
                        let Some(Buffer { raw, converted }) = varying.next() else { break };
                        block.read(operand.source.read((self.first + row) * len, len, raw, converted));
                    }
                }
            }
            let mut converted = results.iter_mut();
            for place in &mut self.places {
                match if place.kind.is_converted() { converted.next() } else { None } {
                    Some(values) => block.write(Output::F32(values)),
                    None => block.write(place.kind.output(place.of(row))),
                }
            }
            (definition.block)(&mut block);
            fault = fault.or_else(|| block.fault().filter(|_| padding.is_real(self.first + row)));
            drop(block);
            let converted = self.places.iter_mut().filter(|place| place.kind.is_converted());
            for (place, values) in converted.zip(&results) {
                place.kind.store(place.of(row), values);
            }
        }
        fault
    }
}

impl Place<'_> {
    /// The bytes of a row.
    fn of(&mut self, row: usize) -> &mut [u8] {
        let bytes = self.length * self.kind.dtype.size();
        &mut self.bytes[row * bytes..(row + 1) * bytes]
    }
}

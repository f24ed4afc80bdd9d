//! A kernel of rows on host memory: several rows at a time, as many as their buffers hold if there are any.

use std::cell::Cell;

use bytemuck::cast_slice_mut;
use smallvec::SmallVec;

use super::super::{
    block::{Beyond, Block, BlockRows, Input, Output},
    constants::Constants,
    cpu::{Kind, Source, place},
    definition::{Compute, Definition, Extent, Padded, Rows},
    random::draws::{Draws, fill, generator},
    tasks::run_all,
};
use super::{
    beside::{Beside, Words, tile},
    reductions::WIDTH,
};
use crate::{
    RngState,
    backend::{
        Launch, View,
        cpu::{Access, Fault, PARALLEL, TASK},
    },
};

/// Runs a kernel; `constants` is empty if no parameter is a number.
///
/// # Errors
/// Returns the first index out of range, in the order of the rows.
pub(in crate::kernel) fn run(
    definition: &Definition,
    rows: &Rows,
    constants: &Constants,
    draws: &Draws,
    access: &Access<'_>,
    launch: &Launch,
) -> Result<(), Fault> {
    let [tensors, generators, counts] = draws.split(definition, constants, &launch.inputs);
    let states = generators.iter().zip(&draws.ahead);
    let mut states = states.map(|(view, ahead)| generator(access, view).after(*ahead));
    let operands = operands(rows, definition.inputs, constants, access, tensors, &mut states);
    let size = operands.iter().find_map(|operand| operand.size).unwrap_or(0);
    let Some(lead) = lead(rows, launch) else { return Ok(()) };
    let count: usize = lead.iter().product();
    let padding = Padding::new(draws.padded, lead, access, counts);
    let is_tensor = |i: usize| constants.get(i).copied().flatten().is_none() && !operands[i].is_drawn();
    let beside = Beside::new(rows, tensors, is_tensor);
    let least = if beside.is_some() { OF_TASK } else { 1 };
    let each = if count * size.max(1) < PARALLEL { count } else { (2 * TASK / size.max(1)).max(least) };
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
    // A row that is the same for all is gathered and converted once.
    let mut buffers: SmallVec<[Buffer; 4]> = operands.iter().map(|_| Buffer::default()).collect();
    let fixed = operands.iter().zip(&mut buffers);
    let fixed = fixed.map(|(operand, buffer)| operand.fixed.then(|| operand.read(0, 1, buffer))).collect();
    let kernel =
        Kernel { definition, operands: &operands, fixed, size, padding, beside, reports: rows.indexed };
    run_all(definition.name, tasks, |task| task.run(&kernel))
}

/// The kernel of all tasks.
struct Kernel<'a> {
    definition: &'a Definition,
    operands: &'a [Operand<'a>],
    /// The row of each operand that has one for all.
    fixed: SmallVec<[Option<Input<'a>>; 4]>,
    /// Number of values in a row.
    size: usize,
    padding: Padding,
    /// Of rows that lie side by side.
    beside: Option<Beside>,
    /// If it may report an index out of range.
    reports: bool,
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
    fn new(padded: Padded, lead: &[usize], access: &Access<'_>, counts: &[View]) -> Self {
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

    /// The number of a row among those that are not of the padding. Of an outer dimension, only what is outside it changes.
    fn unpadded(&self, row: usize) -> usize {
        self.0.iter().fold(row, |row, (rows, size, real)| {
            let whole = rows * size;
            row / whole * (rows * real.min(size)) + row % whole
        })
    }
}

/// A parameter: where its values are, and how many there are in a row, if it has rows.
struct Operand<'a> {
    source: Source<'a>,
    size: Option<usize>,
    /// Every row is the same one.
    fixed: bool,
    /// Of a random number: the generator, and the values of a row.
    drawn: Option<(RngState, Extent)>,
}

fn operands<'a>(
    rows: &Rows,
    computes: &[(&str, Compute)],
    constants: &Constants,
    access: &Access<'a>,
    tensors: &[View],
    states: &mut dyn Iterator<Item = RngState>,
) -> SmallVec<[Operand<'a>; 4]> {
    let mut views = tensors.iter();
    let all = rows.inputs.iter().zip(computes).enumerate().map(|(i, (extent, (_, compute)))| {
        let no_tensor = |source| Operand { source, size: None, fixed: true, drawn: None };
        if let Some(number) = constants.get(i).copied().flatten() {
            return no_tensor(Source::Constant(number));
        }
        if *compute == Compute::Random {
            let drawn = states.next().map(|state| (state, *extent));
            return Operand { fixed: false, drawn, ..no_tensor(Source::None) };
        }
        let Some(view) = views.next() else { return no_tensor(Source::None) };
        let size = (*extent == Extent::Row).then(|| size(view));
        let fixed = is_repeated(view);
        let source = match fixed {
            true => Source::new(access, &first_row(view), *compute),
            false => Source::new(access, view, *compute),
        };
        Operand { source, size, fixed, drawn: None }
    });
    all.collect()
}

/// The first row of a view.
fn first_row(view: &View) -> View {
    let lead = view.layout.rank().saturating_sub(1);
    View { layout: (0..lead).fold(view.layout, |layout, axis| layout.with_dim(axis, 1)), ..*view }
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

/// Values of rows that are gathered and converted at once; one row may have more.
const BATCH: usize = 2048;

/// The fewest of those rows that lie side by side for a task, unless there are fewer.
const OF_TASK: usize = 8 * WIDTH;

/// Buffers in which values of an operand or of a result are gathered and converted.
#[derive(Default)]
struct Buffer {
    raw: Vec<u64>,
    /// Empty until an operand is converted.
    converted: Vec<u32>,
}

impl Buffer {
    /// Words for gathered values, or for those of a result.
    fn raw(&mut self, count: usize) -> &mut [u64] {
        grown(&mut self.raw, count)
    }

    /// Words for gathered values, and for as many that are converted.
    fn words(&mut self, gathered: usize, converted: usize) -> Words<'_> {
        Words { gathered: grown(&mut self.raw, gathered), converted: grown(&mut self.converted, converted) }
    }
}

/// The first `count` words, which are made if they are not there.
fn grown<W: Clone + Default>(words: &mut Vec<W>, count: usize) -> &mut [W] {
    if words.len() < count {
        words.resize(count, W::default());
    }
    &mut words[..count]
}

thread_local! {
    /// Buffers that no task of the thread uses.
    static BUFFERS: Cell<Vec<Buffer>> = const { Cell::new(Vec::new()) };
}

/// Lets `run` use that many buffers, which hold anything.
fn with_buffers<T>(count: usize, run: impl FnOnce(&mut [Buffer]) -> T) -> T {
    let mut buffers = BUFFERS.take();
    if buffers.len() < count {
        buffers.resize_with(count, Buffer::default);
    }
    let result = run(&mut buffers[..count]);
    // Those of a very long row would be kept for ever.
    buffers.retain(|buffer| buffer.raw.len().max(buffer.converted.len()) <= 32 * BATCH);
    BUFFERS.set(buffers);
    result
}

impl Task<'_> {
    fn new(first: usize, count: usize) -> Self {
        Self { first, count, places: SmallVec::new() }
    }

    /// Returns the first index out of range.
    fn run(self, kernel: &Kernel<'_>) -> Option<Beyond> {
        let borrowed = kernel.operands.iter().all(Operand::needs_no_buffer);
        let converted = self.places.iter().filter(|place| place.kind.is_converted()).count();
        let batch = match () {
            // A block reports an index out of range without its row, which has to be a real one.
            () if kernel.reports && !kernel.padding.0.is_empty() => 1,
            () if borrowed && converted == 0 => self.count,
            () => (BATCH / kernel.size.max(1)).max(1),
        };
        let count = kernel.operands.len();
        with_buffers(count + converted, |buffers| {
            let (buffers, results) = buffers.split_at_mut(count);
            if let Some(beside) = &kernel.beside {
                self.run_side_by_side(kernel, beside, buffers, results);
                return None;
            }
            self.run_in_batches(kernel, batch, buffers, results)
        })
    }

    fn run_in_batches(
        mut self,
        kernel: &Kernel<'_>,
        batch: usize,
        buffers: &mut [Buffer],
        results: &mut [Buffer],
    ) -> Option<Beyond> {
        let Kernel { definition, operands, fixed, size, padding, .. } = kernel;
        let mut fault = None;
        for row in (0..self.count).step_by(batch) {
            let count = batch.min(self.count - row);
            let mut block = Block::of_rows(BlockRows { count, size: *size });
            for ((operand, fixed), buffer) in operands.iter().zip(fixed).zip(&mut *buffers) {
                let first = self.first + row;
                block.read(match (fixed, operand.drawn) {
                    (Some(fixed), _) => *fixed,
                    (None, Some((state, extent))) => {
                        let length = if extent == Extent::Row { *size } else { 1 };
                        draw(state, length, (first..first + count).map(|row| padding.unpadded(row)), buffer)
                    }
                    (None, None) => operand.read(first, count, buffer),
                });
            }
            write(&mut self.places, row, &mut block, results);
            (definition.block)(&mut block);
            fault = fault.or_else(|| block.fault().filter(|_| padding.is_real(self.first + row)));
            drop(block);
            store(&mut self.places, row, count, results);
        }
        fault
    }

    /// Of rows that lie side by side, some at once.
    fn run_side_by_side(
        mut self,
        kernel: &Kernel<'_>,
        beside: &Beside,
        buffers: &mut [Buffer],
        results: &mut [Buffer],
    ) {
        let Kernel { operands, fixed, size, .. } = kernel;
        let mut row = 0;
        while row < self.count {
            let first = self.first + row;
            let count = WIDTH.min(self.count - row).min(beside.run - first % beside.run);
            let mut block = Block::of_rows(BlockRows { count, size: *size });
            for (((operand, fixed), place), buffer) in
                operands.iter().zip(fixed).zip(&beside.places).zip(&mut *buffers)
            {
                let (input, stride) = match (fixed, place) {
                    (Some(fixed), _) => (*fixed, 0),
                    (None, None) => (operand.read(first, count, buffer), 0),
                    (None, Some((starts, stride))) => {
                        let gathered = if count < WIDTH { size * WIDTH } else { 0 };
                        let words = match operand.source.is_converted() {
                            true => buffer.words(0, size * WIDTH),
                            false => buffer.words(gathered, 0),
                        };
                        tile(&operand.source, starts.offset(first), *stride, count, *size, words)
                    }
                };
                block.read_columns(input, stride);
            }
            write(&mut self.places, row, &mut block, results);
            (beside.block)(&mut block);
            drop(block);
            store(&mut self.places, row, count, results);
            row += count;
        }
    }
}

/// Gives a block the places of its results from `row` on, or buffers where those are of another type.
fn write<'b>(places: &'b mut [Place<'_>], row: usize, block: &mut Block<'b>, results: &'b mut [Buffer]) {
    let (count, mut converted) = (block.rows().count, results.iter_mut());
    for place in places {
        let length = place.length;
        match if place.kind.is_converted() { converted.next() } else { None } {
            Some(buffer) => block.write(Output::F32(values(buffer, count * length))),
            None => block.write(place.kind.output(place.of(row, count))),
        }
    }
}

/// Converts the results that are in buffers.
fn store(places: &mut [Place<'_>], row: usize, count: usize, results: &mut [Buffer]) {
    let converted = places.iter_mut().filter(|place| place.kind.is_converted());
    for (place, buffer) in converted.zip(results) {
        let values = values(buffer, count * place.length);
        place.kind.store(place.of(row, count), values);
    }
}

/// The buffer's place for `count` values of a result that are converted.
fn values(buffer: &mut Buffer, count: usize) -> &mut [f32] {
    &mut cast_slice_mut(buffer.raw(count.div_ceil(2)))[..count]
}

/// The random numbers of some rows, `length` of each: those of row `n` are numbers `n * length` and following.
fn draw(
    state: RngState,
    length: usize,
    rows: impl ExactSizeIterator<Item = usize>,
    buffer: &mut Buffer,
) -> Input<'_> {
    let words: &mut [[u32; 2]] = cast_slice_mut(buffer.raw(rows.len() * length));
    for (row, words) in rows.zip(words.chunks_exact_mut(length.max(1))) {
        fill(state, row as u64 * length as u64, words);
    }
    Input::Drawn(words)
}

impl Operand<'_> {
    /// Returns whether its values are where they are, or read once.
    fn needs_no_buffer(&self) -> bool {
        self.fixed || self.drawn.is_none() && self.source.is_borrowed()
    }

    fn is_drawn(&self) -> bool {
        self.drawn.is_some()
    }

    /// The values of some rows.
    fn read<'b>(&'b self, first: usize, count: usize, buffer: &'b mut Buffer) -> Input<'b> {
        let len = self.size.unwrap_or(1);
        let gathered = if self.source.is_borrowed() { 0 } else { count * len };
        let words = buffer.words(gathered, if self.source.is_converted() { gathered } else { 0 });
        self.source.read(first * len, count * len, words.gathered, words.converted)
    }
}

impl Place<'_> {
    /// The bytes of some rows.
    fn of(&mut self, row: usize, count: usize) -> &mut [u8] {
        let bytes = self.length * self.kind.dtype.size();
        &mut self.bytes[row * bytes..(row + count) * bytes]
    }
}

//! Some hundred elements of every operand, one row, or some elements of the results and all inputs, as a kernel's function sees them.

use smallvec::SmallVec;

use super::{
    index::lang::{Data, Numbers, Part},
    random::Random,
};

/// Elements of a block; slices of all operands are equally long. Or rows, and the single values that belong to them; or
/// views, and the part of the results to be computed.
#[derive(Debug)]
pub struct Block<'a> {
    inputs: SmallVec<[Input<'a>; 4]>,
    outputs: SmallVec<[Output<'a>; 2]>,
    fault: Option<Beyond>,
    /// Of a kernel of rows.
    rows: BlockRows,
    /// Of rows that lie side by side.
    strides: Strides,
    /// Of a kernel of indices.
    part: Option<Part>,
}

/// The rows of a block. A slice of an operand that is the same for all of them has one.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockRows {
    /// Their number.
    pub count: usize,
    /// Values of each.
    pub size: usize,
}

/// Steps between neighbouring values of rows that lie side by side, of each input.
pub(super) type Strides = SmallVec<[usize; 4]>;

/// An index out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beyond {
    pub(super) index: u32,
    pub(super) bound: usize,
}

/// Elements of one input in the type that is computed in; a `bool` is a byte.
#[derive(Clone, Copy, Debug)]
pub(super) enum Input<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    I8(&'a [i8]),
    U32(&'a [u32]),
    U16(&'a [u16]),
    U8(&'a [u8]),
    /// The first and the second word of each random number.
    Random(Randoms<'a>),
    /// Likewise, of the elements of rows.
    Drawn(&'a [[u32; 2]]),
    /// The random numbers of elements by their index.
    Numbers(Numbers),
    /// All of a tensor.
    View(&'a Data<'a>),
}

/// Random numbers of consecutive elements.
#[derive(Clone, Copy, Debug, Default)]
pub struct Randoms<'a> {
    pub(super) first: &'a [u32],
    pub(super) second: &'a [u32],
}

impl<'a> Randoms<'a> {
    /// Returns a random number for each element.
    pub fn iter(self) -> impl Iterator<Item = Random> + 'a {
        self.first.iter().zip(self.second).map(|(first, second)| Random::of(*first, *second))
    }
}

/// Elements of one output, likewise.
#[derive(Debug)]
pub(super) enum Output<'a> {
    F32(&'a mut [f32]),
    F64(&'a mut [f64]),
    I32(&'a mut [i32]),
    I64(&'a mut [i64]),
    I8(&'a mut [i8]),
    U32(&'a mut [u32]),
    U16(&'a mut [u16]),
    U8(&'a mut [u8]),
    /// It was asked for.
    Taken,
}

macro_rules! slices {
    ($($input:ident $output:ident $variant:ident $t:ident;)*) => {$(
        /// Returns the elements of an input of this type.
        pub fn $input(&self, at: usize) -> &'a [$t] {
            match self.inputs.get(at) {
                Some(Input::$variant(slice)) => slice,
                // The macro asks by the types of the definition.
                _ => &[],
            }
        }

        /// Returns the place of an output of this type, once.
        pub fn $output(&mut self, at: usize) -> &'a mut [$t] {
            match self.outputs.get_mut(at).map(|output| std::mem::replace(output, Output::Taken)) {
                Some(Output::$variant(slice)) => slice,
                _ => &mut [],
            }
        }
    )*};
}

impl<'a> Block<'a> {
    pub(super) fn new() -> Self {
        Self {
            inputs: SmallVec::new(),
            outputs: SmallVec::new(),
            fault: None,
            rows: BlockRows::default(),
            strides: Strides::new(),
            part: None,
        }
    }

    pub(super) fn of_rows(rows: BlockRows) -> Self {
        Self { rows, ..Self::new() }
    }

    pub(super) fn read(&mut self, input: Input<'a>) {
        self.inputs.push(input);
    }

    pub(super) fn write(&mut self, output: Output<'a>) {
        self.outputs.push(output);
    }

    pub(super) fn view(&mut self, data: &'a Data<'a>) {
        self.inputs.push(Input::View(data));
    }

    pub(super) fn draw(&mut self, numbers: Numbers) {
        self.inputs.push(Input::Numbers(numbers));
    }

    pub(super) fn compute(&mut self, part: Part) {
        self.part = Some(part);
    }

    /// Returns an input that is a view.
    pub fn input_view(&self, at: usize) -> Option<Data<'a>> {
        match self.inputs.get(at) {
            Some(Input::View(data)) => Some(**data),
            _ => None,
        }
    }

    /// Returns the random numbers of an input.
    pub fn input_random(&self, at: usize) -> Randoms<'a> {
        match self.inputs.get(at) {
            Some(Input::Random(numbers)) => *numbers,
            _ => Randoms::default(),
        }
    }

    /// Returns the random numbers of an input, by index.
    pub fn input_numbers(&self, at: usize) -> Numbers {
        match self.inputs.get(at) {
            Some(Input::Numbers(numbers)) => *numbers,
            _ => Numbers::default(),
        }
    }

    /// Returns the words of the random numbers of an input of a kernel of rows.
    pub fn input_drawn(&self, at: usize) -> &'a [[u32; 2]] {
        match self.inputs.get(at) {
            Some(Input::Drawn(words)) => words,
            _ => &[],
        }
    }

    /// Returns the elements of the results that a kernel of indices computes.
    pub fn part(&self) -> Option<Part> {
        self.part
    }

    /// Returns the rows that a kernel of rows computes.
    pub fn rows(&self) -> BlockRows {
        self.rows
    }

    /// Reads rows that lie side by side; of single values, the step does not matter.
    pub(super) fn read_columns(&mut self, input: Input<'a>, stride: usize) {
        self.inputs.push(input);
        self.strides.push(stride);
    }

    /// Returns the step between neighbouring values of an input's rows, which lie side by side.
    pub fn stride(&self, at: usize) -> usize {
        self.strides.get(at).copied().unwrap_or(0)
    }

    /// Notes the index out of range that a row or a view was asked for.
    pub fn report(&mut self, fault: Option<Beyond>) {
        self.fault = fault;
    }

    pub(super) fn fault(&self) -> Option<Beyond> {
        self.fault
    }

    slices! {
        input_f32 output_f32 F32 f32;
        input_f64 output_f64 F64 f64;
        input_i32 output_i32 I32 i32;
        input_i64 output_i64 I64 i64;
        input_i8 output_i8 I8 i8;
        input_u32 output_u32 U32 u32;
        input_u16 output_u16 U16 u16;
        input_u8 output_u8 U8 u8;
    }
}

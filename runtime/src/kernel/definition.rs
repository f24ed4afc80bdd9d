//! The macro's description of a kernel.

use std::any::TypeId;

use super::block::Block;
use crate::{DType, backend, base::rank::MAX_RANK};

/// A type that kernels compute in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compute {
    /// Of every float element type but `f64`.
    F32,
    /// Of `f64`.
    F64,
    /// Of `i32`.
    I32,
    /// Of `i64`.
    I64,
    /// Of `i8`.
    I8,
    /// Of `u32`.
    U32,
    /// The bits of 16-bit floats, which are moved.
    U16,
    /// Of `u8`.
    U8,
    /// Of `bool`.
    Bool,
    /// A random number, which no tensor has.
    Random,
}

impl Compute {
    /// As Rust and the text for GPUs spell it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::I8 => "i8",
            Self::U32 => "u32",
            Self::U16 => "u16",
            Self::U8 => "u8",
            Self::Bool => "bool",
            Self::Random => "Random",
        }
    }

    /// Returns whether tensors of an element type can be computed in this type: their values, or their bits.
    pub(super) fn fits(self, stored: DType) -> bool {
        match self {
            Self::F32 => stored.is_computed_in_f32(),
            Self::F64 => stored == DType::F64,
            Self::I64 => stored.size() == 8,
            Self::I32 | Self::U32 => stored.size() == 4,
            Self::U16 => stored.size() == 2,
            Self::I8 | Self::U8 | Self::Bool => stored.size() == 1,
            Self::Random => false,
        }
    }

    /// Returns whether what it means on GPUs is in `further.cuh`, which only kernels that have such a type include.
    pub(crate) fn is_further(self) -> bool {
        matches!(self, Self::F64 | Self::I64 | Self::I8)
    }

    /// Returns the element type of its tensors, where that of floats is `float`.
    #[cfg(feature = "cuda")]
    pub(super) fn stored(self, float: DType) -> DType {
        match self {
            Self::F32 | Self::U16 => float,
            Self::F64 => DType::F64,
            Self::I32 => DType::I32,
            Self::I64 => DType::I64,
            Self::I8 => DType::I8,
            // A generator is words.
            Self::U32 | Self::Random => DType::U32,
            Self::U8 => DType::U8,
            Self::Bool => DType::Bool,
        }
    }
}

/// The part of its tensors that a kernel sees at a time.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// One element of each.
    Elements,
    /// A row of each, or the value that belongs to it.
    Rows(Rows),
    /// All of each, at computed indices.
    Index(Index),
}

/// The parameters and results of a kernel of rows.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// The parameters.
    pub inputs: &'static [Extent],
    /// The results.
    pub outputs: &'static [Extent],
    /// Number of rows whose values are used more than once.
    pub held: usize,
    /// If it reads values of a row by index.
    pub indexed: bool,
    /// Set if all rows go the same way through the function.
    pub straight: bool,
    /// Words of 32 bits of the largest value that a reduction has for each lane, or of a random number in the making.
    pub sum_words: usize,
    /// Computes a block of rows that lie side by side, if the kernel can be computed so.
    pub columns: Option<fn(&mut Block<'_>)>,
    /// Words of the largest value.
    pub value_words: usize,
}

impl Rows {
    /// Number of rows among the parameters and results.
    #[cfg(feature = "cuda")]
    pub(super) fn count(&self) -> usize {
        self.inputs.iter().chain(self.outputs).filter(|extent| **extent == Extent::Row).count()
    }
}

/// The padded dimensions outside the rows of a launch whose kernel indexes rows: each has a further input, its real size, in
/// their order. A row of the padding may read beyond its end; that is not reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Padded(u8);

impl Padded {
    /// `self` and a dimension.
    #[must_use]
    pub(super) fn with(self, axis: usize) -> Self {
        Self(self.0 | 1 << axis)
    }

    /// The dimensions, outermost first.
    pub(super) fn axes(self) -> impl Iterator<Item = usize> {
        (0..MAX_RANK).filter(move |axis| self.0 & 1 << axis != 0)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The parameters and results of a kernel of indices.
#[derive(Clone, Copy, Debug)]
pub struct Index {
    /// Dimensions of each parameter that is a view; the others are single values.
    pub views: &'static [Option<usize>],
    /// Dimensions of the results.
    pub rank: usize,
    /// Set if it has no loop, so that a thread of a GPU can compute several elements at once.
    pub straight: bool,
}

/// A row, or one value for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// One value.
    One,
    /// As many values as a row has.
    Row,
}

/// A kernel as the macro made it.
#[derive(Debug)]
pub struct Definition {
    /// The type of the kernel.
    pub id: TypeId,
    /// The function's name.
    pub name: &'static str,
    /// The part of its tensors that it sees at a time.
    pub kind: Kind,
    /// The parameters.
    pub inputs: &'static [(&'static str, Compute)],
    /// The results.
    pub outputs: &'static [Compute],
    /// The function for GPUs, with places in `${…}` that the runtime fills.
    pub text: &'static str,
    /// If the text has values of `f64`, `i64` or `i8`.
    pub further: bool,
    /// Lists the items to which the text refers by number.
    pub uses: fn(&mut Uses),
    /// Computes a block of elements or of rows, or a part of the results.
    pub block: fn(&mut Block<'_>),
}

/// A type that `#[kernel]` made.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kernel",
    label = "kernels call kernels only: put `#[kernel]` on that function"
)]
pub trait Kernel: 'static {
    /// The macro's description of the function.
    const DEFINITION: &'static Definition;
    /// One more than the deepest of those that it calls.
    const DEPTH: usize;
}

/// An argument with which a kernel calls the kernel `K`, which is not one of single values: there is none.
#[diagnostic::on_unimplemented(
    message = "`{K}` is not a kernel of single values, and kernels call only those",
    label = "this kernel has one value here, and `{K}` works on tensors",
    note = "call the operation on tensors, and pass its result to the operation of this kernel"
)]
pub trait CalledByKernels<K> {}

/// Returns one more than the largest depth.
#[must_use]
pub const fn above(depths: &[usize]) -> usize {
    let (mut deepest, mut rest) = (0, depths);
    while let [depth, others @ ..] = rest {
        if *depth > deepest {
            deepest = *depth;
        }
        rest = others;
    }
    deepest + 1
}

/// The items to which a kernel's text refers: other kernels and constants, each in the order of their
/// numbers.
#[derive(Debug, Default)]
pub struct Uses {
    pub(super) kernels: Vec<&'static Definition>,
    pub(super) constants: Vec<Number>,
}

impl Uses {
    /// Adds the next kernel.
    pub fn kernel(&mut self, definition: &'static Definition) {
        self.kernels.push(definition);
    }

    /// Adds the next constant.
    pub fn constant(&mut self, value: impl Constant) {
        self.constants.push(value.number());
    }
}

/// A number of one of the computing types, by its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Number {
    pub(super) compute: Compute,
    pub(super) bits: u64,
}

impl Number {
    /// Its value.
    pub(super) fn value(self) -> backend::Constant {
        let Self { compute, bits } = self;
        match compute {
            Compute::F32 => backend::Constant::Float(f32::from_bits(bits as u32).into()),
            Compute::F64 => backend::Constant::Float(f64::from_bits(bits)),
            Compute::I32 => backend::Constant::Integer((bits as i32).into()),
            Compute::I64 => backend::Constant::Integer((bits as i64).into()),
            Compute::I8 => backend::Constant::Integer((bits as i8).into()),
            Compute::Bool => backend::Constant::Bool(bits != 0),
            Compute::U32 | Compute::U16 | Compute::U8 | Compute::Random => {
                backend::Constant::Integer(bits.into())
            }
        }
    }
}

#[cfg(feature = "cuda")]
impl Number {
    /// Its bits.
    pub(crate) fn bits(self) -> u64 {
        self.bits
    }
}

/// A value that kernels can name.
#[diagnostic::on_unimplemented(
    message = "kernels have no values of type `{Self}`",
    label = "a value of type `f32`, `f64`, `i32`, `i64`, `i8`, `u32`, `u8` or `bool` is needed here"
)]
pub trait Constant: Copy {
    /// As a number.
    fn number(self) -> Number;
}

macro_rules! constant {
    ($($t:ident $compute:ident $value:ident => $bits:expr;)*) => {$(
        impl Constant for $t {
            fn number(self) -> Number {
                let $value = self;
                Number { compute: Compute::$compute, bits: $bits }
            }
        }
    )*};
}

constant! {
    f32 F32 v => u64::from(v.to_bits());
    f64 F64 v => v.to_bits();
    i32 I32 v => u64::from(v.cast_unsigned());
    i64 I64 v => v.cast_unsigned();
    i8 I8 v => u64::from(v.cast_unsigned());
    u32 U32 v => u64::from(v);
    u8 U8 v => u64::from(v);
    bool Bool v => u64::from(v);
}

//! The plan of one kernel: a product of few rows, what makes its rows, and what follows.

#![cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "the kernel is for GPUs"))]

use smallvec::SmallVec;

use crate::{
    BlockFormat, DType,
    kernel::definition::{Definition, Number, Rows},
    ops::{RopeStyle, rope::Rope},
};

/// An operand of the kernel: an input of the launch, as a matrix of as many rows and columns as the result that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Matrix {
    /// The number of the input.
    pub(super) input: usize,
    pub(super) dtype: DType,
    /// Elements between its rows, and between its columns.
    pub(super) strides: [usize; 2],
}

/// One of the products.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight {
    /// Columns of its result.
    pub(super) n: usize,
    /// A row for each of them; in blocks, the strides have no meaning.
    pub(super) rows: Matrix,
    /// The values that are added before the sum is rounded.
    pub(super) bias: Option<Matrix>,
}

/// A value of one element of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Of a product, by its number.
    Product(usize),
    /// Of an operand.
    Operand(usize),
    /// A result of a step.
    Result { step: usize, part: usize },
    /// Of a product that is turned, by the number of the turn.
    Turned(usize),
}

/// A rotary embedding of a product, the only one of its set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) rope: Rope,
    pub(super) product: usize,
    /// Elements of a head.
    pub(super) size: usize,
    /// Batches and times of the rows.
    pub(super) rows: [usize; 2],
    /// The input that contains the positions, and the elements between sections, batches and times.
    pub(super) positions: usize,
    pub(super) strides: [usize; 3],
}

impl Turn {
    /// Pairs of a head, all of which rotate.
    pub(super) fn half(&self) -> usize {
        self.size / 2
    }

    /// Set if the elements of a pair are half a head apart, and not neighbours.
    pub(super) fn is_half_split(&self) -> bool {
        self.rope.style == RopeStyle::HalfSplit
    }
}

/// The rows of a state that the rows of a result become: see [`scatter_rows`](crate::ops::scatter_rows).
#[derive(Clone, Copy, Debug)]
pub(super) struct Scatter {
    /// The operation's name in reports.
    pub(super) name: &'static str,
    /// The input that contains the indices, and the elements between them.
    pub(super) index: usize,
    pub(super) stride: usize,
    /// The input that states how many count.
    pub(super) count: Option<usize>,
    /// Rows of the state.
    pub(super) rows: usize,
}

impl Scatter {
    /// Returns whether both are of the same rows, so that a row that one refuses is refused by the other.
    pub(super) fn has_rows_of(&self, other: &Self) -> bool {
        let of = |scatter: &Self| (scatter.index, scatter.stride, scatter.count, scatter.rows);
        of(self) == of(other)
    }
}

/// A kernel of elements.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) definition: &'static Definition,
    /// For each parameter, the number that replaces it; empty if all are tensors.
    pub(super) constants: SmallVec<[Option<Number>; 4]>,
    /// For each parameter that is a tensor.
    pub(super) arguments: SmallVec<[Value; 4]>,
    /// For each result, the type to which it is rounded.
    pub(super) stored: SmallVec<[DType; 2]>,
    /// The set of its products.
    pub(super) set: usize,
}

/// A result that is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Store {
    pub(super) value: Value,
    /// The number of the launch's output; contiguous.
    pub(super) output: usize,
    pub(super) dtype: DType,
    pub(super) set: usize,
    /// If it is written to rows of a state.
    pub(super) scatter: Option<Scatter>,
}

/// A kernel of rows that makes the rows of the product.
#[derive(Clone, Debug)]
pub(super) struct Norm {
    pub(super) definition: &'static Definition,
    pub(super) rows: &'static Rows,
    pub(super) constants: SmallVec<[Option<Number>; 4]>,
    /// For each parameter that is a tensor; packs of each row can be loaded at once.
    pub(super) inputs: SmallVec<[Matrix; 4]>,
    /// The result that is multiplied; `None` until a product is found that reads one.
    pub(super) multiplied: Option<usize>,
    /// For each result, the output of the launch that it is.
    pub(super) outputs: SmallVec<[Option<usize>; 2]>,
}

/// The source of the rows.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Memory(Matrix),
    Norm(Box<Norm>),
}

/// All of it. The products are in sets of `together`, whose results have the same columns, and which a block computes side by
/// side: what follows may use all of a set.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) dtype: DType,
    /// Of the weights, if they are in blocks.
    pub(super) format: Option<BlockFormat>,
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) source: Source,
    pub(super) weights: Vec<Weight>,
    pub(super) together: usize,
    pub(super) operands: Vec<Matrix>,
    pub(super) steps: Vec<Step>,
    pub(super) turns: Vec<Turn>,
    pub(super) stores: Vec<Store>,
    /// Set if the first weights are asked for before earlier kernels have ended: none of them writes the weights.
    pub(super) early: bool,
}

impl Plan {
    /// Number of sets.
    pub(super) fn sets(&self) -> usize {
        self.weights.len() / self.together
    }

    /// Returns whether the warps of a block take turns at the results: each group of columns is another warp's, which alone waits for the
    /// sums of the others. It has threads for those of one row.
    pub(super) fn takes_turns(&self) -> bool {
        self.m == 1
    }

    /// The turn of a set's product, with its number.
    pub(super) fn turn(&self, set: usize) -> Option<(usize, &Turn)> {
        self.turns.iter().enumerate().find(|(_, turn)| turn.product == set * self.together)
    }

    /// Columns of the results of a set.
    pub(super) fn columns(&self, set: usize) -> usize {
        self.weights[set * self.together].n
    }
}

//! A kernel as a tree. What it means is in `interpret.rs`, how it is written in `render.rs`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    F32,
    F64,
    I32,
    I64,
    I8,
    U32,
    U8,
    Bool,
}

impl Ty {
    pub(crate) const ALL: [Self; 8] =
        [Self::F32, Self::F64, Self::I32, Self::I64, Self::I8, Self::U32, Self::U8, Self::Bool];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::I8 => "i8",
            Self::U32 => "u32",
            Self::U8 => "u8",
            Self::Bool => "bool",
        }
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    pub(crate) fn is_signed_integer(self) -> bool {
        matches!(self, Self::I32 | Self::I64 | Self::I8)
    }

    /// If GPUs have what it means in a text of its own, which kernels without such a type do not have.
    pub(crate) fn is_further(self) -> bool {
        matches!(self, Self::F64 | Self::I64 | Self::I8)
    }
}

/// A value; two are equal if their bits are, and NaN is one value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    F32(f32),
    F64(f64),
    I32(i32),
    I64(i64),
    I8(i8),
    U32(u32),
    U8(u8),
    Bool(bool),
}

impl Value {
    pub(crate) fn bits(self) -> u64 {
        match self {
            Self::F32(v) if v.is_nan() => 0x7fc0_0000,
            Self::F32(v) => v.to_bits().into(),
            Self::F64(v) if v.is_nan() => 0x7ff8 << 48,
            Self::F64(v) => v.to_bits(),
            Self::I32(v) => (v as u32).into(),
            Self::I64(v) => v as u64,
            Self::I8(v) => (v as u8).into(),
            Self::U32(v) => v.into(),
            Self::U8(v) => v.into(),
            Self::Bool(v) => v.into(),
        }
    }

    /// The value of the lowest bits.
    pub(crate) fn of(ty: Ty, bits: u64) -> Self {
        match ty {
            Ty::F32 => Self::F32(f32::from_bits(bits as u32)),
            Ty::F64 => Self::F64(f64::from_bits(bits)),
            Ty::I32 => Self::I32(bits as i32),
            Ty::I64 => Self::I64(bits as i64),
            Ty::I8 => Self::I8(bits as i8),
            Ty::U32 => Self::U32(bits as u32),
            Ty::U8 => Self::U8(bits as u8),
            Ty::Bool => Self::Bool(bits & 1 == 1),
        }
    }

    pub(crate) fn ty(self) -> Ty {
        match self {
            Self::F32(_) => Ty::F32,
            Self::F64(_) => Ty::F64,
            Self::I32(_) => Ty::I32,
            Self::I64(_) => Ty::I64,
            Self::I8(_) => Ty::I8,
            Self::U32(_) => Ty::U32,
            Self::U8(_) => Ty::U8,
            Self::Bool(_) => Ty::Bool,
        }
    }

    pub(crate) fn is_nan(self) -> bool {
        match self {
            Self::F32(v) => v.is_nan(),
            Self::F64(v) => v.is_nan(),
            _ => false,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Literal(Value),
    /// A constant by its path.
    Constant(&'static str, Value),
    Variable(usize),
    Unary(&'static str, Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Cast(Box<Expr>, Ty),
    /// `f32::from(x)`
    From(Ty, Box<Expr>),
    Method(&'static str, Vec<Expr>),
    Call(usize, Vec<Expr>),
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A single value of a row, or of all of it.
    Row(Box<Reduction>),
    /// A value of a view, or a size of it.
    View(usize, Read),
    /// A method of a random number, and the bound of `below`.
    Random(usize, &'static str, Option<Box<Expr>>),
    /// Ranges of the arms, both ends included, and what stands for the rest.
    Match(Box<Expr>, Vec<(Vec<(Value, Value)>, Expr)>, Box<Expr>),
    Block(Vec<Statement>, Box<Expr>),
}

#[derive(Clone, Debug)]
pub(crate) enum Statement {
    Let(usize, Expr),
    /// Of a call with several results.
    Parts(Vec<usize>, Expr),
    /// A row with a name.
    Row(usize, Pipe),
    /// Several values of a row.
    Folded(Vec<usize>, Fold),
    Assign(usize, &'static str, Expr),
    If(Expr, Vec<Statement>, Vec<Statement>),
    For(Loop),
    /// Of the loop so far out.
    Break(usize),
    Continue(usize),
    Return(Vec<Expr>),
    /// A write of the state.
    Set(Set),
}

/// A write of the state: the parts of the index, and the value.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    pub(crate) index: Vec<Expr>,
    pub(crate) value: Expr,
    /// A condition under which the value jumps instead, and where to: `break`, `continue` or `return`.
    pub(crate) jump: Option<(Expr, &'static str)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) counter: usize,
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) inclusive: bool,
    pub(crate) reversed: bool,
    /// A view and its dimension, whose size is `to`.
    pub(crate) size: Option<(usize, usize)>,
    pub(crate) body: Vec<Statement>,
}

/// What is read of a view.
#[derive(Clone, Debug)]
pub(crate) enum Read {
    /// At an index, of which each part is taken modulo the size.
    At(Vec<(Ty, Expr)>),
    AtOr(Vec<Expr>, Box<Expr>),
    Size(usize),
}

/// Rows that are paired, numbered and changed value by value.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    /// Variables that are rows, paired in this order.
    pub(crate) rows: Vec<usize>,
    pub(crate) numbered: bool,
    pub(crate) stages: Vec<Closure>,
}

/// A closure: variables for the parts of its parameters, and its value.
#[derive(Clone, Debug)]
pub(crate) struct Closure {
    pub(crate) parameters: Vec<usize>,
    pub(crate) body: Vec<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) enum Reduction {
    /// `sum`, `max`, `min`, `argmax`, `argmin`.
    Plain(&'static str, Pipe),
    Count(Pipe, Closure),
    /// Of one value: several are a statement.
    Fold(Fold),
    Len(usize),
    /// A variable, and an index that is taken modulo the length.
    At(usize, Expr),
}

#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub(crate) pipe: Pipe,
    pub(crate) init: Vec<Expr>,
    pub(crate) step: Closure,
    pub(crate) combine: Closure,
}

/// A result: a value, or a row.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Value(Expr),
    Row(Pipe),
}

/// What a kernel of rows has besides.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowParts {
    /// Variables that are rows of their type.
    pub(crate) rows: Vec<usize>,
    pub(crate) outcomes: Vec<Outcome>,
    /// Random numbers that are rows, by their number, and what each becomes: a variable, and the method that its values are.
    pub(crate) drawn: Vec<(usize, usize, &'static str)>,
    /// For `reduce`, the dimension of the first row that goes away, counted from the end.
    pub(crate) back: Option<usize>,
}

/// What a kernel of indices has besides.
#[derive(Clone, Debug)]
pub(crate) struct IndexParts {
    /// Parameters that are views.
    pub(crate) views: Vec<usize>,
    /// Number of variables after the parameters that are the index.
    pub(crate) rank: usize,
    /// The sizes of a state that is written. Then the results are: if there is a write, its index, and the value.
    pub(crate) state: Option<Vec<usize>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Types of all variables; the parameters come first.
    pub(crate) variables: Vec<Ty>,
    /// Names of all variables: shadowing is part of the test.
    pub(crate) names: Vec<String>,
    pub(crate) inputs: usize,
    pub(crate) outputs: Vec<Ty>,
    pub(crate) body: Vec<Statement>,
    pub(crate) results: Vec<Expr>,
    /// Variables that do not change, which closures can use.
    pub(crate) fixed: Vec<usize>,
    /// For each parameter after the others that is a random number, the generator.
    pub(crate) randoms: Vec<usize>,
    pub(crate) row: Option<RowParts>,
    pub(crate) index: Option<IndexParts>,
}

/// How a parameter of the last function is filled.
#[derive(Clone, Debug)]
pub(crate) enum Argument {
    /// The bits of a number.
    Number(u64),
    Tensor(View),
}

/// A tensor of this shape, whose axes are permuted, then cut.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) shape: Vec<usize>,
    pub(crate) axes: Vec<usize>,
    /// Axis, start and length.
    pub(crate) cut: Option<(usize, usize, usize)>,
}

impl View {
    /// The shape that it shows.
    pub(crate) fn shown(&self) -> Vec<usize> {
        let mut shape: Vec<usize> = self.axes.iter().map(|axis| self.shape[*axis]).collect();
        if let Some((axis, _, len)) = self.cut {
            shape[axis] = len;
        }
        shape
    }

    /// The number of the element, in the tensor, that stands at a place of what is shown.
    pub(crate) fn element(&self, place: &[usize]) -> usize {
        let mut at = vec![0; self.shape.len()];
        for (i, axis) in self.axes.iter().enumerate() {
            let start = self.cut.filter(|cut| cut.0 == i).map_or(0, |cut| cut.1);
            at[*axis] = place[i] + start;
        }
        at.iter().zip(&self.shape).fold(0, |sum, (at, size)| sum * size + at)
    }
}

/// Functions, the last of which is called.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) seed: u64,
    pub(crate) functions: Vec<Function>,
    pub(crate) arguments: Vec<Argument>,
    /// The element type of what is computed in `f32`: `f32`, `f16` or `bf16`.
    pub(crate) float: &'static str,
    /// Of all operands together; for kernels of rows, without the rows; for kernels of indices, of the results.
    pub(crate) shape: Vec<usize>,
    /// Values of a row.
    pub(crate) size: usize,
}

impl Program {
    pub(crate) fn last(&self) -> &Function {
        self.functions.last().expect("a program has a function")
    }

    /// If any variable is of a type that GPUs have in a text of its own.
    pub(crate) fn has_further_types(&self) -> bool {
        self.functions.iter().flat_map(|function| &function.variables).any(|ty| ty.is_further())
    }
}

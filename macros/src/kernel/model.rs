//! A kernel function as data: names resolved, every expression with a place for its type.

use proc_macro2::Span;
use syn::{Attribute, Ident, ItemConst, Path, Visibility};

use super::{methods::Method, rows::RowOp, views::ViewOp};

/// A type that kernels compute in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    F32,
    F64,
    I32,
    I64,
    I8,
    U32,
    U8,
    Bool,
    /// A random number: 64 bits, of which methods make values.
    Random,
}

impl Scalar {
    pub(super) const ALL: [Self; 9] =
        [Self::F32, Self::F64, Self::I32, Self::I64, Self::I8, Self::U32, Self::U8, Self::Bool, Self::Random];

    /// As Rust and the CUDA text spell it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::I8 => "i8",
            Self::U32 => "u32",
            Self::U8 => "u8",
            Self::Bool => "bool",
            Self::Random => "Random",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scalar| scalar.name() == name)
    }

    /// If it is a number or a truth value, which tensors have.
    pub(super) fn is_stored(self) -> bool {
        self != Self::Random
    }

    pub(super) fn is_integer(self) -> bool {
        matches!(self, Self::I32 | Self::I64 | Self::I8 | Self::U32 | Self::U8)
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    pub(super) fn is_signed_integer(self) -> bool {
        matches!(self, Self::I32 | Self::I64 | Self::I8)
    }

    /// If what it means on GPUs is in `further.cuh`, which only kernels that have such a type include.
    pub(super) fn is_further(self) -> bool {
        matches!(self, Self::F64 | Self::I64 | Self::I8)
    }

    /// Registers of a GPU that hold one.
    pub(super) fn words(self) -> usize {
        if matches!(self, Self::F64 | Self::I64) { 2 } else { 1 }
    }
}

/// The part of its tensors that a kernel function sees at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One element of each: `#[kernel]`.
    Elements,
    /// A row of each, along the last dimension: `#[kernel(rows)]`.
    Rows,
    /// A row of each, along any dimension, of which single values remain: `#[kernel(reduce)]`.
    Reduce,
    /// All of each, for one element of the results: `#[kernel(index)]`.
    Index,
}

impl Form {
    pub(super) fn has_rows(self) -> bool {
        matches!(self, Self::Rows | Self::Reduce)
    }
}

/// The values that a parameter or a result stands for: one, or a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    One,
    Row,
}

/// The type of an expression or a variable, by its number.
pub(super) type TypeId = usize;

/// A variable, by its number.
pub(super) type LocalId = usize;

/// The signature.
pub(super) struct Header {
    /// Documentation and lints, which the operation keeps; the function keeps the lints, too.
    pub(super) attrs: Vec<Attribute>,
    /// Conditions, which all items keep.
    pub(super) conditions: Vec<Attribute>,
    pub(super) vis: Visibility,
    pub(super) form: Form,
    pub(super) name: Ident,
    pub(super) inputs: Vec<Input>,
    /// The names of the index, if there is one.
    pub(super) index: Vec<Place>,
    pub(super) outputs: Vec<Output>,
    /// The position of the result type.
    pub(super) output_span: Span,
}

impl Header {
    /// If it draws random numbers.
    pub(super) fn draws(&self) -> bool {
        self.inputs.iter().any(|input| input.scalar == Scalar::Random)
    }
}

/// A parameter.
pub(super) struct Input {
    pub(super) name: Ident,
    pub(super) mutable: bool,
    pub(super) scalar: Scalar,
    pub(super) extent: Extent,
    /// Of a view: its dimensions.
    pub(super) view: Option<usize>,
    /// Of a view: if it is a state, which the kernel writes.
    pub(super) is_written: bool,
    /// If every call passes it as a number.
    pub(super) is_key: bool,
}

impl Header {
    /// The state that it writes.
    pub(super) fn written(&self) -> Option<&Input> {
        self.inputs.iter().find(|input| input.is_written)
    }
}

/// The name of one part of the index.
pub(super) struct Place {
    pub(super) name: Ident,
    pub(super) mutable: bool,
}

/// A result.
#[derive(Clone, Copy)]
pub(super) struct Output {
    pub(super) scalar: Scalar,
    pub(super) extent: Extent,
}

/// A function whose body has been read.
pub(super) struct Body {
    pub(super) block: Block,
    pub(super) locals: Vec<Local>,
    /// Paths of the kernel functions that it calls, each once.
    pub(super) callees: Vec<Path>,
    /// Constants from outside the body or of the standard library, each once.
    pub(super) constants: Vec<Constant>,
    /// `const` items of the body.
    pub(super) items: Vec<ItemConst>,
    /// Number of types.
    pub(super) types: usize,
    /// If it reads values of a row by index.
    pub(super) indexes_rows: bool,
    /// If it looks for the place of a value of a row.
    pub(super) finds_places: bool,
    /// The types of what folds of rows have for each lane.
    pub(super) folds: Vec<TypeId>,
    /// If it has a loop.
    pub(super) has_loops: bool,
    /// Of a body without a result: what stands at its end.
    pub(super) end: Option<(TypeId, Span)>,
}

/// A variable. The parameters come first, and the parts of the index.
pub(super) struct Local {
    pub(super) name: Ident,
    pub(super) mutable: bool,
    pub(super) ty: TypeId,
    /// Of a variable that stands for a row: how often its values are used.
    pub(super) row: Option<usize>,
    /// Of a parameter that is a view.
    pub(super) view: Option<ViewType>,
}

/// The type of a view.
#[derive(Clone, Copy)]
pub(super) struct ViewType {
    pub(super) scalar: Scalar,
    /// Number of dimensions.
    pub(super) rank: usize,
}

impl Body {
    /// Returns whether a variable stands for a row that is computed once and used more often.
    pub(super) fn is_kept(&self, local: LocalId, value: &Expr) -> bool {
        let maps = matches!(&value.kind, Kind::Row(call) if call.op == RowOp::Map);
        maps && self.locals[local].row.is_some_and(|uses| uses > 1)
    }

    /// Returns whether the values of a parameter are used more than once.
    pub(super) fn is_held(&self, input: LocalId) -> bool {
        self.locals[input].row.is_some_and(|uses| uses > 1)
    }
}

pub(super) struct Constant {
    pub(super) path: Path,
    /// The type, if the tokens state it.
    pub(super) scalar: Option<Scalar>,
}

pub(super) struct Block {
    pub(super) statements: Vec<Statement>,
    pub(super) value: Option<Box<Expr>>,
    pub(super) ty: TypeId,
    pub(super) span: Span,
}

pub(super) enum Statement {
    Let { pattern: Pattern, annotated: Option<(Scalar, Span)>, value: Option<Expr> },
    Expr(Expr),
}

pub(super) enum Pattern {
    One(Binding),
    Tuple(Vec<Pattern>, Span),
}

/// A name that a pattern binds; `None` for `_`.
pub(super) type Binding = Option<LocalId>;

pub(super) struct Expr {
    pub(super) kind: Kind,
    pub(super) ty: TypeId,
    pub(super) span: Span,
}

pub(super) enum Kind {
    Bool(bool),
    /// An integer, with its suffix if it has one.
    Integer(i128, Option<Scalar>),
    /// A float, with its suffix if it has one.
    Float(Float, Option<Scalar>),
    Local(LocalId),
    Constant(usize),
    Neg(Box<Expr>),
    Not(Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `a && b`, or `a || b`.
    Logic {
        and: bool,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Cast(Box<Expr>, Scalar),
    /// `f32::from(x)`.
    From(Scalar, Box<Expr>),
    /// `x.max(y)`, or `f32::max(x, y)` with the type that the path names.
    Method(&'static Method, Option<Scalar>, Vec<Expr>),
    Call(usize, Vec<Expr>),
    Tuple(Vec<Expr>),
    If {
        condition: Box<Expr>,
        then: Block,
        other: Option<Box<Expr>>,
    },
    Match {
        value: Box<Expr>,
        arms: Vec<Arm>,
    },
    Block(Block),
    For(For),
    Assign {
        to: LocalId,
        op: Option<Binary>,
        value: Box<Expr>,
        operator: Span,
    },
    /// Of the loop with this number.
    Break(usize),
    Continue(usize),
    Return(Box<Expr>),
    /// A method of a row.
    Row(RowCall),
    /// A method of a view.
    View(ViewCall),
}

/// A float as the nearest number of each type.
#[derive(Clone, Copy)]
pub(super) struct Float {
    pub(super) single: f32,
    pub(super) double: f64,
}

impl Float {
    pub(super) const ZERO: Self = Self { single: 0.0, double: 0.0 };
}

pub(super) struct RowCall {
    pub(super) op: RowOp,
    pub(super) row: Box<Expr>,
    /// Arguments that are values; of `zip`, the other row.
    pub(super) values: Vec<Expr>,
    pub(super) closures: Vec<Closure>,
}

pub(super) struct ViewCall {
    pub(super) op: ViewOp,
    pub(super) view: LocalId,
    /// Of `at`, `at_or` and `set`.
    pub(super) index: Vec<Expr>,
    /// Of `at_or`: the value out of range.
    pub(super) other: Option<Box<Expr>>,
    /// Of `dim`: which one.
    pub(super) axis: usize,
}

pub(super) struct Closure {
    pub(super) parameters: Vec<Pattern>,
    /// The types of what the parameters take apart.
    pub(super) types: Vec<TypeId>,
    pub(super) body: Box<Expr>,
    pub(super) span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Binary {
    /// The function of the language, in Rust as in CUDA.
    pub(super) fn function(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::Div => "div",
            Self::Rem => "rem",
            Self::And => "bit_and",
            Self::Or => "bit_or",
            Self::Xor => "bit_xor",
            Self::Shl => "shl",
            Self::Shr => "shr",
            Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge => "",
        }
    }

    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Rem => "%",
            Self::And => "&",
            Self::Or => "|",
            Self::Xor => "^",
            Self::Shl => "<<",
            Self::Shr => ">>",
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
        }
    }

    /// As messages show it.
    pub(super) fn quoted(self) -> &'static str {
        match self {
            Self::Add => "`+`",
            Self::Sub => "`-`",
            Self::Mul => "`*`",
            Self::Div => "`/`",
            Self::Rem => "`%`",
            Self::And => "`&`",
            Self::Or => "`|`",
            Self::Xor => "`^`",
            Self::Shl => "`<<`",
            Self::Shr => "`>>`",
            Self::Eq => "`==`",
            Self::Ne => "`!=`",
            Self::Lt => "`<`",
            Self::Le => "`<=`",
            Self::Gt => "`>`",
            Self::Ge => "`>=`",
        }
    }

    pub(super) fn is_arithmetic(self) -> bool {
        matches!(self, Self::Add | Self::Sub | Self::Mul | Self::Div | Self::Rem)
    }

    pub(super) fn is_bitwise(self) -> bool {
        matches!(self, Self::And | Self::Or | Self::Xor)
    }

    pub(super) fn is_comparison(self) -> bool {
        matches!(self, Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge)
    }

    pub(super) fn is_shift(self) -> bool {
        matches!(self, Self::Shl | Self::Shr)
    }
}

pub(super) struct Arm {
    /// Joined by `|`.
    pub(super) patterns: Vec<ArmPattern>,
    pub(super) value: Expr,
    pub(super) span: Span,
}

pub(super) enum ArmPattern {
    Any,
    Is(Expr),
    Range { from: Option<Expr>, to: Option<Expr>, inclusive: bool },
}

pub(super) struct For {
    /// Counts the loops of a function.
    pub(super) number: usize,
    pub(super) label: Option<syn::Lifetime>,
    pub(super) counter: Binding,
    /// The counter's type, if it has no name.
    pub(super) ty: TypeId,
    pub(super) from: Box<Expr>,
    pub(super) to: Box<Expr>,
    pub(super) inclusive: bool,
    pub(super) reversed: bool,
    pub(super) body: Block,
}

impl Expr {
    /// Returns whether control never continues after it.
    pub(super) fn diverges(&self) -> bool {
        match &self.kind {
            Kind::Return(_) | Kind::Break(_) | Kind::Continue(_) => true,
            Kind::Block(block) => block.diverges(),
            Kind::If { condition, then, other } => {
                condition.diverges()
                    || then.diverges() && other.as_ref().is_some_and(|other| other.diverges())
            }
            Kind::Match { value, arms } => value.diverges() || arms.iter().all(|arm| arm.value.diverges()),
            _ => false,
        }
    }
}

impl Block {
    pub(super) fn diverges(&self) -> bool {
        self.value.as_ref().is_some_and(|value| value.diverges())
            || self.statements.iter().any(|statement| match statement {
                Statement::Let { value, .. } => value.as_ref().is_some_and(Expr::diverges),
                Statement::Expr(expr) => expr.diverges(),
            })
    }
}

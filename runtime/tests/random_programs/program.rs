//! A program as data: what the generator makes, the two interpreters run and the shrinker cuts.

use std::fmt;

use crate::written::Write;

/// One dimension: the symbol `B` of the call, or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Size {
    /// The call's own size.
    B,
    /// The same in every call.
    N(usize),
    /// Another one in each step: of what a region makes.
    V,
}

/// Element types that programs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Elem {
    F32,
    Bf16,
    U32,
    Bool,
    F64,
    I64,
    I8,
}

impl Elem {
    pub(crate) const ALL: [Self; 7] =
        [Self::F32, Self::Bf16, Self::U32, Self::Bool, Self::F64, Self::I64, Self::I8];
}

/// What the generator knows of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ty {
    pub(crate) elem: Elem,
    pub(crate) dims: Vec<Size>,
    /// Integers are below this (0: not known); only such values index.
    pub(crate) bound: usize,
}

/// A driver variable.
pub(crate) type Var = usize;
/// A host variable of the driver; 0 is the call's `#[key]`.
pub(crate) type Host = usize;

/// An argument of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Arg {
    /// A value of the segment: a live-in, or the result of an instruction.
    Local(usize),
    /// A parameter of the program.
    Param(usize),
    /// A state of the program.
    State(usize),
    /// A generator of random numbers of the program.
    Generator(usize),
    /// Marks of tokens of the program.
    Marks(usize),
    /// A log of the program.
    Log(usize),
    /// A weight in blocks of the program.
    Blocks(usize),
}

macro_rules! codes {
    ($($code:ident),* $(,)?) => {
        /// Operations. `nums` of the instruction are axes, sizes and factors, in the order of the operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Code { $($code),* }

        impl Code {
            pub(crate) const ALL: &[Self] = &[$(Self::$code),*];
        }
    };
}
codes! {
    Add, Sub, Mul, Div, SiluMul, Tanh, Relu, Silu, Gelu, Neg, Scale, ScaleKey,
    MatMul, MatMulNt, Linear, Softmax, LogSoftmax, RmsNorm, LayerNorm, L2,
    Sum, Mean, Max, ArgMax, MaskedMean,
    Transpose, Merge, Split, Narrow, Contiguous, Unsqueeze, Squeeze, Broadcast,
    Concat, Gather, Embedding, Gt, Where, ToBf16, ToF32, AddBf16,
    Scatter, Store, Load, Full, Arange, OnesLike, Rope, Attention, Drop, Fail,
    ScaledAdd, IndexedAdd, Accumulate, SizeOf, DivSize, FullDim, ArangeDim, LastRow, Reverse, AllMean, SeenKeys, Pick, EmbedPick, Number, Grown,
    Windows, Parts, Cell, Listed, Drawn, Statistics, RopeScatter, CacheView, MarkTokens, Append, BlocksProduct, BlocksRows, Flow,
}

impl Code {
    /// Whether it writes a state and has no result.
    pub(crate) fn is_effect(self) -> bool {
        use Code::{Accumulate, Append, MarkTokens, RopeScatter, Scatter, Store};
        matches!(self, Store | Accumulate | Scatter | RopeScatter | MarkTokens | Append)
    }

    /// Whether it only computes one tensor from its arguments.
    pub(crate) fn is_plain(self) -> bool {
        use Code::*;
        matches!(
            self,
            Add | Sub
                | Mul
                | Div
                | SiluMul
                | Tanh
                | Relu
                | Silu
                | Gelu
                | Neg
                | Scale
                | ScaleKey
                | MatMul
                | MatMulNt
                | Linear
                | Softmax
                | LogSoftmax
                | RmsNorm
                | LayerNorm
                | Sum
                | Mean
                | Max
                | Contiguous
                | Concat
                | Gt
                | Where
                | ToBf16
                | AddBf16
                | Load
                | Rope
                | BlocksProduct
                | ScaledAdd
                | IndexedAdd
        )
    }

    /// Whether it writes a state.
    pub(crate) fn writes(self) -> bool {
        self.is_effect() || self == Self::Statistics
    }
}

/// One operation: `dst = op(args; nums)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instr {
    pub(crate) op: Code,
    /// The local that it defines; ignored by operations without a result.
    pub(crate) dst: usize,
    pub(crate) args: Vec<Arg>,
    pub(crate) nums: Vec<usize>,
    /// The fork that it is in, and the branch: neighbours of one fork run under one `join`.
    pub(crate) branch: Option<(usize, usize)>,
    /// Whether it works on a size that a bucket may pad.
    pub(crate) padded: bool,
    /// Of [`Code::Flow`], what runs by decision of the device; `args` and `nums` say where the decision comes from.
    pub(crate) flow: Option<Box<Flow>>,
}

/// A kind of control flow on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowKind {
    Cond,
    Switch,
    While,
}

/// Control flow on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) kind: FlowKind,
    /// What a loop carries, at first.
    pub(crate) carried: Vec<usize>,
    /// The bodies.
    pub(crate) parts: Vec<Part>,
    /// The locals that it defines.
    pub(crate) results: Vec<usize>,
}

/// A body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// What a loop carries, in a round.
    pub(crate) params: Vec<usize>,
    pub(crate) code: Vec<Instr>,
    /// One for each result.
    pub(crate) outs: Vec<usize>,
    /// Its own locals, which nothing else sees.
    pub(crate) first: usize,
    pub(crate) end: usize,
}

/// Calls `see` for each instruction, and for those of bodies.
pub(crate) fn each_instr<'i>(code: &'i [Instr], see: &mut dyn FnMut(&'i Instr)) {
    for instr in code {
        see(instr);
        for part in instr.flow.iter().flat_map(|flow| &flow.parts) {
            each_instr(&part.code, see);
        }
    }
}

/// Straight-line code: a segment, or the inside of an eager region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Index of the source site, unique in the function.
    pub(crate) site: usize,
    /// Live-ins; they are the first locals.
    pub(crate) ins: Vec<Var>,
    /// Of the first live-in the shape alone is used: the first local is a tensor made with it.
    pub(crate) by_shape: bool,
    /// Host values that are part of the key.
    pub(crate) keys: Vec<Host>,
    pub(crate) code: Vec<Instr>,
    /// Which locals leave, and to which variables.
    pub(crate) outs: Vec<(usize, Var)>,
}

impl Block {
    /// Parameters, states and generators that the code names, each once, in order.
    pub(crate) fn owned(&self) -> Vec<Arg> {
        let mut found: Vec<Arg> = Vec::new();
        each_instr(&self.code, &mut |instr| {
            for arg in &instr.args {
                if !matches!(arg, Arg::Local(_)) && !found.contains(arg) {
                    found.push(*arg);
                }
            }
        });
        found
    }
}

/// How often a loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    Times(usize),
    Host(Host),
}

/// A statement of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stmt {
    Segment(Block),
    /// An `#[eager]` boundary; `capturable` ones say `support = Always`.
    Eager {
        block: Block,
        capturable: bool,
    },
    /// `#[eager(cx)]`: reads a value and makes a small number of it.
    Read {
        site: usize,
        var: Var,
        host: Host,
    },
    Loop {
        count: Count,
        body: Vec<Stmt>,
    },
    /// Takes `then` if the host value is odd.
    If {
        cond: Host,
        then: Vec<Stmt>,
        other: Vec<Stmt>,
    },
    Drop(Var),
    /// `to = from.clone()`
    Copy {
        from: Var,
        to: Var,
    },
}

/// How an input of a function is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Host,
    Scalar,
    Device,
}

/// An input; input `i` is variable `i` of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) kind: Kind,
    pub(crate) ty: Ty,
}

/// A function with boundaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Func {
    pub(crate) inputs: Vec<Input>,
    /// Bucket sizes of `B`, or none.
    pub(crate) buckets: Option<Vec<usize>>,
    /// Whether the inputs have `#[dims]`; a function with buckets does.
    pub(crate) dims: bool,
    pub(crate) body: Vec<Stmt>,
    pub(crate) outputs: Vec<Var>,
    pub(crate) out_types: Vec<Ty>,
    pub(crate) vars: usize,
    pub(crate) hosts: usize,
    pub(crate) sites: usize,
    /// Whether some calls of it fail.
    pub(crate) fails: bool,
}

/// Where a device input comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Uploaded, behind blocks of these sizes that make it move.
    Upload { behind: Vec<usize> },
    /// Output `out` of the step's call `call`.
    Result { call: usize, out: usize },
    /// The same, through an operation between the calls.
    Derived { call: usize, out: usize },
}

/// One call within a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) func: usize,
    /// The size `B`.
    pub(crate) b: usize,
    /// The `#[key]`.
    pub(crate) key: u64,
    /// One for each device input, in order.
    pub(crate) sources: Vec<Source>,
    /// Whether the result is read and dropped at once, or held to the end of the step.
    pub(crate) hold: bool,
    /// Inputs that are filled in place.
    pub(crate) fills: Vec<Fill>,
}

/// An input that is filled in place before a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) input: usize,
    /// Seeds of data of other sizes with which it is filled first, and whether those tensors are held.
    pub(crate) earlier: Vec<(u64, bool)>,
    /// Whether the call gets the tensor that was filled; otherwise it gets its data as without fills.
    pub(crate) given: bool,
    /// Whether that tensor is held to the end of the step.
    pub(crate) held: bool,
    /// A fault of the device during a fill.
    pub(crate) fault: Option<usize>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StepPlan {
    /// Parameters that are dropped and made anew before it.
    pub(crate) replace: Vec<usize>,
    /// Parameters that are overwritten in place between its calls.
    pub(crate) writes: Vec<Write>,
    /// Functions whose graph objects are dropped and made anew before it.
    pub(crate) rebuild: Vec<usize>,
    /// Whether its calls are made with the second graph object of each function.
    pub(crate) twin: bool,
    /// Whether memory is estimated before it, which changes nothing.
    pub(crate) estimate: bool,
    /// The size `V`.
    pub(crate) v: usize,
    pub(crate) calls: Vec<Call>,
    /// Seed of the data.
    pub(crate) data: u64,
}

/// A whole program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) seed: u64,
    pub(crate) params: Vec<Vec<usize>>,
    pub(crate) states: Vec<Vec<usize>>,
    /// The number of generators of random numbers.
    pub(crate) generators: usize,
    /// The number of states that have marks of tokens; there are none without other states.
    pub(crate) marks: usize,
    /// The number of logs to which segments append; there are none without states.
    pub(crate) logs: usize,
    /// The weights in blocks: the place of the format in [`BlockFormat::ALL`](graphable::BlockFormat::ALL), and the rows.
    pub(crate) blocks: Vec<(usize, usize)>,
    pub(crate) funcs: Vec<Func>,
    pub(crate) steps: Vec<StepPlan>,
    /// Whether every function can be captured whole: nothing depends on values.
    pub(crate) capturable: bool,
    /// Whether functions with buckets are captured before the first step.
    pub(crate) capture: bool,
    /// Which execution of a segment body, counted over the run, fails half-way, once: the call is made
    /// again then. Only without what a call changes, which would be changed twice.
    pub(crate) trip: Option<u64>,
    /// Whether padding may change the last bits: products of other sizes are summed in another order.
    pub(crate) approximate: bool,
    /// Whether no segment and no output is of the size `V`: another one makes no difference to them.
    pub(crate) apart: bool,
}

impl Program {
    /// Whether no call changes anything that another one sees.
    pub(crate) fn is_pure(&self) -> bool {
        self.states.is_empty() && self.generators == 0
    }

    /// Whether the device decides what some of it does.
    pub(crate) fn has_control_flow(&self) -> bool {
        self.funcs.iter().any(|f| any_code(&f.body, &|op| op == Code::Flow))
    }

    /// Whether some operation may report an index out of range.
    pub(crate) fn picks(&self) -> bool {
        self.funcs.iter().any(|f| any_code(&f.body, &|op| matches!(op, Code::Pick | Code::EmbedPick)))
    }
}

/// Whether some instruction of a body has such a code.
pub(crate) fn any_code(body: &[Stmt], is: &dyn Fn(Code) -> bool) -> bool {
    any_instr(body, &|instr| is(instr.op))
}

/// Whether some instruction of a body is such a one.
pub(crate) fn any_instr(body: &[Stmt], is: &dyn Fn(&Instr) -> bool) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Segment(block) | Stmt::Eager { block, .. } => {
            let mut found = false;
            each_instr(&block.code, &mut |instr| found |= is(instr));
            found
        }
        Stmt::Loop { body, .. } => any_instr(body, is),
        Stmt::If { then, other, .. } => any_instr(then, is) || any_instr(other, is),
        Stmt::Read { .. } | Stmt::Drop(_) | Stmt::Copy { .. } => false,
    })
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}[", self.elem)?;
        for (i, d) in self.dims.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            match d {
                Size::B => write!(f, "{comma}B")?,
                Size::N(n) => write!(f, "{comma}{n}")?,
                Size::V => write!(f, "{comma}V")?,
            }
        }
        f.write_str("]")?;
        if self.bound > 0 { write!(f, " below {}", self.bound) } else { Ok(()) }
    }
}

impl fmt::Display for Instr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let args: Vec<String> = self
            .args
            .iter()
            .map(|a| match a {
                Arg::Local(i) => format!("t{i}"),
                Arg::Param(i) => format!("param{i}"),
                Arg::State(i) => format!("state{i}"),
                Arg::Generator(i) => format!("generator{i}"),
                Arg::Marks(i) => format!("marks{i}"),
                Arg::Log(i) => format!("log{i}"),
                Arg::Blocks(i) => format!("blocks{i}"),
            })
            .collect();
        if let Some((fork, branch)) = self.branch {
            write!(f, "fork {fork}, branch {branch}: ")?;
        }
        match self.op {
            Code::Drop | Code::Fail | Code::Flow => {}
            code if code.is_effect() => {}
            _ => write!(f, "t{} = ", self.dst)?,
        }
        match crate::listed::of(self) {
            Some(listed) => write!(f, "{}({})", listed.name, args.join(", "))?,
            None => write!(f, "{:?}({})", self.op, args.join(", "))?,
        }
        if !self.nums.is_empty() {
            write!(f, " {:?}", self.nums)?;
        }
        let Some(flow) = &self.flow else { return Ok(()) };
        write!(f, " {:?} {:?} -> {:?}", flow.kind, flow.carried, flow.results)?;
        for part in &flow.parts {
            write!(f, " {{ {:?}: ", part.params)?;
            part.code.iter().try_for_each(|instr| write!(f, "{instr}; "))?;
            write!(f, "-> {:?} }}", part.outs)?;
        }
        Ok(())
    }
}

fn write_block(f: &mut fmt::Formatter<'_>, pad: &str, head: &str, block: &Block) -> fmt::Result {
    let ins: Vec<String> = block.ins.iter().enumerate().map(|(t, v)| format!("t{t} = v{v}")).collect();
    let keys: Vec<String> = block.keys.iter().map(|h| format!("h{h}")).collect();
    let outs: Vec<String> = block.outs.iter().map(|(t, v)| format!("v{v} = t{t}")).collect();
    let by_shape = if block.by_shape { "the shape of " } else { "" };
    writeln!(f, "{pad}{head} #{} ({by_shape}{}; keys {})", block.site, ins.join(", "), keys.join(", "))?;
    for i in &block.code {
        writeln!(f, "{pad}    {i}")?;
    }
    writeln!(f, "{pad}  -> {}", outs.join(", "))
}

fn write_body(f: &mut fmt::Formatter<'_>, depth: usize, body: &[Stmt]) -> fmt::Result {
    let pad = "  ".repeat(depth);
    for stmt in body {
        match stmt {
            Stmt::Segment(block) => write_block(f, &pad, "segment", block)?,
            Stmt::Eager { block, capturable: true } => {
                write_block(f, &pad, "eager(support = Always)", block)?
            }
            Stmt::Eager { block, capturable: false } => write_block(f, &pad, "eager", block)?,
            Stmt::Read { site, var, host } => writeln!(f, "{pad}eager(cx) #{site} h{host} = read(v{var})")?,
            Stmt::Loop { count, body } => {
                match count {
                    Count::Times(n) => writeln!(f, "{pad}repeat {n} times")?,
                    Count::Host(h) => writeln!(f, "{pad}repeat h{h} times")?,
                }
                write_body(f, depth + 1, body)?;
            }
            Stmt::If { cond, then, other } => {
                writeln!(f, "{pad}if h{cond} is odd")?;
                write_body(f, depth + 1, then)?;
                writeln!(f, "{pad}else")?;
                write_body(f, depth + 1, other)?;
            }
            Stmt::Drop(v) => writeln!(f, "{pad}drop v{v}")?,
            Stmt::Copy { from, to } => writeln!(f, "{pad}v{to} = v{from}.clone()")?,
        }
    }
    Ok(())
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "params {:?}, states {:?}, {} generators, {} marks, {} logs, blocks {:?}, captured first: {}, trip {:?}",
            self.params,
            self.states,
            self.generators,
            self.marks,
            self.logs,
            self.blocks,
            self.capture,
            self.trip
        )?;
        for (i, func) in self.funcs.iter().enumerate() {
            writeln!(f, "function {i}, buckets {:?}:", func.buckets)?;
            for (v, input) in func.inputs.iter().enumerate() {
                writeln!(f, "  v{v}: {:?} {}", input.kind, input.ty)?;
            }
            write_body(f, 1, &func.body)?;
            let outs: Vec<String> = func.outputs.iter().map(|v| format!("v{v}")).collect();
            writeln!(f, "  return {}", outs.join(", "))?;
        }
        for (i, step) in self.steps.iter().enumerate() {
            let twin = if step.twin { "the second graph objects, " } else { "" };
            let estimate = if step.estimate { "memory is estimated, " } else { "" };
            writeln!(
                f,
                "step {i}: {twin}{estimate}replaces params {:?} and graphs {:?}, V={}, data {}",
                step.replace, step.rebuild, step.v, step.data
            )?;
            for write in &step.writes {
                writeln!(f, "  before call {}, param {} from {:?}", write.before, write.param, write.from)?;
            }
            for (c, call) in step.calls.iter().enumerate() {
                writeln!(
                    f,
                    "  call {c}: function {} B={} key={} from {:?}{}",
                    call.func,
                    call.b,
                    call.key,
                    call.sources,
                    if call.hold { ", held" } else { "" }
                )?;
            }
        }
        Ok(())
    }
}

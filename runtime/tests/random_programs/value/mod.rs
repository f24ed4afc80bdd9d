//! Values of a program, and its operations by name.

use std::cell::{Cell, RefCell};

use graphable::{
    __private::{Decoder, Encoder, KeyWriter},
    AsOperand, Eager, Element, Error, Keep, LiveIn, LiveOut, Param, PinnedLog, Result, Rng, Scope, Shape,
    State, Step, Tensor, Weight, bf16, join_all,
    ops::{self, AttentionMask, RopeConfig},
};

use crate::{
    custom_ops, listed,
    program::{Arg, Block, Code, Elem, Instr, each_instr},
    value::flow::Plain,
    world::grown,
};

macro_rules! each {
    ($v:expr, $t:ident => $e:expr) => {
        match $v {
            Val::F($t) => $e,
            Val::H($t) => $e,
            Val::U($t) => $e,
            Val::B($t) => $e,
            Val::D($t) => $e,
            Val::L($t) => $e,
            Val::S($t) => $e,
        }
    };
}

pub(crate) use each;

pub(crate) mod drawn;
pub(crate) mod flow;
mod indexed;
mod sizes;
mod stated;
pub(crate) mod windows;

/// A tensor of any of the element types.
#[derive(Clone, Debug)]
pub(crate) enum Val<'s> {
    F(Tensor<'s, f32>),
    H(Tensor<'s, bf16>),
    U(Tensor<'s, u32>),
    B(Tensor<'s, bool>),
    D(Tensor<'s, f64>),
    L(Tensor<'s, i64>),
    S(Tensor<'s, i8>),
}

/// A value on the host: its shape, and the bits of every element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Flat {
    pub(crate) elem: Elem,
    pub(crate) shape: Vec<usize>,
    pub(crate) bits: Vec<u64>,
}

/// A parameter, a state, a generator, marks, a log or a weight in blocks of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OwnedRef<'a> {
    Param(&'a Param<f32>),
    State(&'a State<f32>),
    Generator(&'a Rng),
    Marks(&'a State<bool>),
    Log(&'a PinnedLog<f32>),
    Blocks(&'a Weight<f32>),
}

macro_rules! from {
    ($($variant:ident of $t:ty),*) => {$(
        impl<'s> From<Tensor<'s, $t>> for Val<'s> {
            fn from(tensor: Tensor<'s, $t>) -> Self {
                Self::$variant(tensor)
            }
        }
    )*};
}
from!(F of f32, H of bf16, U of u32, B of bool, D of f64, L of i64, S of i8);

impl<'s> Val<'s> {
    pub(crate) fn shape(&self) -> Shape<'s> {
        each!(self, t => t.shape())
    }

    pub(crate) fn scope(&self) -> Scope<'s> {
        each!(self, t => t.scope())
    }

    pub(crate) fn elem(&self) -> Elem {
        match self {
            Self::F(_) => Elem::F32,
            Self::H(_) => Elem::Bf16,
            Self::U(_) => Elem::U32,
            Self::B(_) => Elem::Bool,
            Self::D(_) => Elem::F64,
            Self::L(_) => Elem::I64,
            Self::S(_) => Elem::I8,
        }
    }

    pub(crate) fn contiguous(&self) -> Result<Self> {
        Ok(each!(self, t => ops::contiguous(t)?.into()))
    }

    /// The elements on the host, and the real shape.
    pub(crate) fn read(&self, cx: &Eager<'s>) -> Result<Flat> {
        let bits = match self {
            Self::F(t) => cx.read(t)?.into_iter().map(|v| v.to_bits().into()).collect(),
            Self::H(t) => cx.read(t)?.into_iter().map(|v| v.to_bits().into()).collect(),
            Self::U(t) => cx.read(t)?.into_iter().map(u64::from).collect(),
            Self::B(t) => cx.read(t)?.into_iter().map(u64::from).collect(),
            Self::D(t) => cx.read(t)?.into_iter().map(f64::to_bits).collect(),
            Self::L(t) => cx.read(t)?.into_iter().map(i64::cast_unsigned).collect(),
            Self::S(t) => cx.read(t)?.into_iter().map(|v| v.cast_unsigned().into()).collect(),
        };
        let sizes = (0..self.shape().len()).map(|axis| each!(self, t => cx.size(t, axis)));
        Ok(Flat { elem: self.elem(), shape: sizes.collect::<Result<_>>()?, bits })
    }
}

impl Flat {
    /// A small number that depends on every element.
    pub(crate) fn digest(&self) -> u64 {
        let hash =
            self.bits.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, &b| (h ^ b).wrapping_mul(0x0100_0000_01b3));
        (hash >> 40) % 3
    }
}

impl LiveIn for Val<'_> {
    fn write_key(&self, k: &mut KeyWriter) {
        k.word(self.elem() as u64);
        each!(self, t => t.write_key(k));
    }
}

impl<'t> Keep<'t> for Val<'_> {
    type At = Val<'t>;
}

impl<'s> Val<'s> {
    fn of_type(elem: u64, d: &mut Decoder<'s>) -> Self {
        match Elem::ALL.into_iter().find(|known| *known as u64 == elem) {
            None | Some(Elem::F32) => Self::F(d.tensor()),
            Some(Elem::Bf16) => Self::H(d.tensor()),
            Some(Elem::U32) => Self::U(d.tensor()),
            Some(Elem::Bool) => Self::B(d.tensor()),
            Some(Elem::F64) => Self::D(d.tensor()),
            Some(Elem::I64) => Self::L(d.tensor()),
            Some(Elem::I8) => Self::S(d.tensor()),
        }
    }
}

impl<'s> LiveOut<'s> for Val<'s> {
    fn encode(&self, e: &mut Encoder) {
        e.word(self.elem() as u64);
        each!(self, t => e.tensor(t));
    }

    fn decode(d: &mut Decoder<'s>) -> Self {
        Self::of_type(d.word(), d)
    }
}

/// What a region gives that a graph of the whole call may hold: tensors, without a word beside them that host code
/// would get. How many there are, and of which types, is known to the program.
pub(crate) struct Tensors<'s>(pub(crate) Vec<Val<'s>>);

thread_local! {
    /// The types of the tensors that were encoded last; they are decoded at once, if at all.
    static TYPES: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

impl<'s> LiveOut<'s> for Tensors<'s> {
    fn encode(&self, e: &mut Encoder) {
        TYPES.set(self.0.iter().map(|val| val.elem() as u64).collect());
        for val in &self.0 {
            each!(val, t => e.tensor(t));
        }
    }

    fn decode(d: &mut Decoder<'s>) -> Self {
        Self(TYPES.take().into_iter().map(|elem| Val::of_type(elem, d)).collect())
    }
}

impl LiveIn for OwnedRef<'_> {
    fn write_key(&self, k: &mut KeyWriter) {
        match self {
            Self::Param(p) => p.write_key(k),
            Self::State(s) => s.write_key(k),
            Self::Generator(g) => g.write_key(k),
            Self::Marks(m) => m.write_key(k),
            Self::Log(log) => log.write_key(k),
            Self::Blocks(weight) => weight.write_key(k),
        }
    }
}

/// The live-ins of a block: what generated code would list in a tuple.
pub(crate) struct Live<'a, 's> {
    pub(crate) block: &'a Block,
    pub(crate) vals: Vec<Val<'s>>,
    /// Of the first live-in, where that is all that is used.
    pub(crate) shape: Option<(Scope<'s>, Shape<'s>)>,
    pub(crate) keys: Vec<u64>,
    pub(crate) owned: Vec<(Arg, OwnedRef<'a>)>,
    /// Whether the function has buckets, where nothing is padded and it must be pretended.
    pub(crate) pretends: bool,
}

impl LiveIn for Live<'_, '_> {
    fn write_key(&self, k: &mut KeyWriter) {
        // In generated code the body's type says which code it is; here its text does.
        k.word(self.block.site as u64);
        k.word(self.block.code.len() as u64);
        each_instr(&self.block.code, &mut |i| {
            if let Some(flow) = &i.flow {
                k.word(flow.kind as u64);
                flow.carried.write_key(k);
                flow.results.write_key(k);
                for part in &flow.parts {
                    part.params.write_key(k);
                    part.outs.write_key(k);
                    k.word(part.code.len() as u64);
                }
            }
            k.word(i.op as u64);
            k.word(i.dst as u64);
            k.word(i.args.len() as u64);
            for a in &i.args {
                k.word(match a {
                    Arg::Local(n) => *n as u64,
                    Arg::Param(n) => 1 << 32 | *n as u64,
                    Arg::State(n) => 2 << 32 | *n as u64,
                    Arg::Generator(n) => 3 << 32 | *n as u64,
                    Arg::Marks(n) => 4 << 32 | *n as u64,
                    Arg::Log(n) => 5 << 32 | *n as u64,
                    Arg::Blocks(n) => 6 << 32 | *n as u64,
                });
            }
            i.nums.write_key(k);
            k.word(i.branch.map_or(0, |(fork, branch)| (fork as u64 + 1) << 32 | branch as u64));
        });
        k.word(self.block.outs.len() as u64);
        for (local, _) in &self.block.outs {
            k.word(*local as u64);
        }
        self.keys.write_key(k);
        self.shape.write_key(k);
        self.vals.write_key(k);
        for (at, (_, owned)) in self.owned.iter().enumerate() {
            owned.write_key(k);
            // As one that is passed for two parameters.
            if at == 0 && self.block.site.is_multiple_of(3) {
                owned.write_key(k);
            }
        }
    }
}

impl<'a, 's> Live<'a, 's> {
    /// The live-ins of a block.
    pub(crate) fn of(
        block: &'a Block,
        mut vals: Vec<Val<'s>>,
        keys: Vec<u64>,
        owned: Vec<(Arg, OwnedRef<'a>)>,
        pretends: bool,
    ) -> Self {
        let shape = block.by_shape.then(|| vals.remove(0)).map(|val| (val.scope(), val.shape()));
        Self { block, vals, shape, keys, owned, pretends }
    }

    /// The live-ins as locals; with the first one made of a shape, where there is no more of it.
    fn locals(&self) -> Result<Vec<Option<Val<'s>>>> {
        let made = self.shape.map(|(scope, shape)| ops::full(scope, shape, 0.75f32)).transpose()?;
        Ok(made.map(Val::F).into_iter().chain(self.vals.iter().cloned()).map(Some).collect())
    }

    /// Where the code gets its runtime from, if it has anything.
    fn scope(&self) -> Option<Scope<'s>> {
        self.shape.map(|(scope, _)| scope).or(self.vals.first().map(Val::scope))
    }

    /// Runs the code as the body of a segment, which may trip.
    pub(crate) fn body(&self) -> Result<Vec<Val<'s>>> {
        let mut env = Env { live: self, locals: self.locals()?, keep: None, plain: None };
        env.run_code(&self.block.code, Some(self.block.code.len() / 2))?;
        self.block.outs.iter().map(|&(t, _)| env.local(t).cloned()).collect()
    }

    /// Runs the code.
    pub(crate) fn run(&self) -> Result<Vec<Val<'s>>> {
        self.run_in(None, None)
    }

    /// Runs the code, with the host deciding what runs. Nothing is dropped before the end.
    pub(crate) fn run_plainly(&self, keep: &mut Vec<Val<'s>>, cx: &Eager<'s>) -> Result<Vec<Val<'s>>> {
        self.run_in(Some(keep), Some(cx))
    }

    fn run_in(&self, keep: Option<&mut Vec<Val<'s>>>, plain: Plain<'_, 's>) -> Result<Vec<Val<'s>>> {
        let mut env = Env { live: self, locals: self.locals()?, keep, plain };
        env.run_code(&self.block.code, None)?;
        self.block.outs.iter().map(|&(t, _)| env.local(t).cloned()).collect()
    }
}

struct Env<'a, 's, 'k> {
    live: &'a Live<'a, 's>,
    locals: Vec<Option<Val<'s>>>,
    keep: Option<&'k mut Vec<Val<'s>>>,
    plain: Plain<'k, 's>,
}

/// A program that makes no sense: only the shrinker makes those.
pub(crate) fn nonsense(reason: String) -> Error {
    Error::Config { what: "the program".into(), reason }
}

/// What calls that are made to fail say.
pub(crate) const ASKED: &str = "asked to fail";

thread_local! {
    /// Bodies until one trips, and whether it panics: what a body must not depend on, and a failure always does.
    static UNTIL: Cell<Option<(u64, bool)>> = const { Cell::new(None) };
    static TRIPPED: Cell<bool> = const { Cell::new(false) };
}

/// The `at`-th body from now on fails, every other time with a panic.
pub(crate) fn arm(at: Option<u64>) {
    UNTIL.set(at.map(|at| (at, at % 2 == 1)));
    TRIPPED.set(false);
}

/// Runs `f`, in which no body fails for it.
pub(crate) fn disarmed<T>(f: impl FnOnce() -> T) -> T {
    let until = UNTIL.replace(None);
    let value = f();
    UNTIL.set(until);
    value
}

/// Whether a body has failed since this was asked last.
pub(crate) fn tripped() -> bool {
    TRIPPED.replace(false)
}

fn trip() -> Result<()> {
    let Some((left, panics)) = UNTIL.get() else { return Ok(()) };
    UNTIL.set(left.checked_sub(1).map(|left| (left, panics)));
    if left > 0 {
        return Ok(());
    }
    TRIPPED.set(true);
    assert!(!panics, "{ASKED}");
    Err(Error::Argument { op: ASKED, reason: String::new() })
}

/// How a call ends that fails as its program says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum End {
    /// It was asked to.
    Asked,
    /// A padded size was used as a number.
    Padded,
    /// A row was not there.
    Range { index: u64, bound: u64 },
}

impl End {
    /// Whether a call failed because its program says so.
    pub(crate) fn of(error: &Error) -> Option<Self> {
        match *error {
            Error::Argument { op: ASKED, .. } => Some(Self::Asked),
            Error::PaddedSize { .. } => Some(Self::Padded),
            Error::IndexOutOfRange { index, bound, .. } => Some(Self::Range { index, bound }),
            _ => None,
        }
    }
}

/// What a program that picks rows was not told yet.
pub(crate) fn pending(step: &Step<'_>) -> Result<Option<End>> {
    match step.synchronize() {
        Ok(()) => Ok(None),
        Err(error) => End::of(&error).map_or(Err(error), |end| Ok(Some(end))),
    }
}

/// A factor for scaling.
fn factor(n: usize) -> f32 {
    0.25 + 0.375 * n as f32
}

impl<'s> Env<'_, 's, '_> {
    fn local(&self, t: usize) -> Result<&Val<'s>> {
        self.locals.get(t).and_then(Option::as_ref).ok_or_else(|| nonsense(format!("t{t} is not there")))
    }

    fn val(&self, i: &Instr, at: usize) -> Result<&Val<'s>> {
        match i.args.get(at) {
            Some(Arg::Local(t)) => self.local(*t),
            other => Err(nonsense(format!("argument {other:?} is no local"))),
        }
    }

    fn f(&self, i: &Instr, at: usize) -> Result<&Tensor<'s, f32>> {
        match self.val(i, at)? {
            Val::F(t) => Ok(t),
            other => Err(nonsense(format!("{other:?} is not f32"))),
        }
    }

    fn h(&self, i: &Instr, at: usize) -> Result<&Tensor<'s, bf16>> {
        match self.val(i, at)? {
            Val::H(t) => Ok(t),
            other => Err(nonsense(format!("{other:?} is not bf16"))),
        }
    }

    fn u(&self, i: &Instr, at: usize) -> Result<&Tensor<'s, u32>> {
        match self.val(i, at)? {
            Val::U(t) => Ok(t),
            other => Err(nonsense(format!("{other:?} is not u32"))),
        }
    }

    fn b(&self, i: &Instr, at: usize) -> Result<&Tensor<'s, bool>> {
        match self.val(i, at)? {
            Val::B(t) => Ok(t),
            other => Err(nonsense(format!("{other:?} is not bool"))),
        }
    }

    fn owned(&self, arg: Arg) -> Result<OwnedRef<'_>> {
        let found = self.live.owned.iter().find(|(a, _)| *a == arg);
        found.map(|(_, o)| *o).ok_or_else(|| nonsense(format!("{arg:?} is not there")))
    }

    fn state(&self, i: &Instr, at: usize) -> Result<&State<f32>> {
        match self.owned(i.args.get(at).copied().ok_or_else(|| nonsense(format!("no argument {at}")))?)? {
            OwnedRef::State(s) => Ok(s),
            other => Err(nonsense(format!("{other:?} is no state"))),
        }
    }

    fn generator(&self, i: &Instr, at: usize) -> Result<&Rng> {
        let arg = i.args.get(at).copied().ok_or_else(|| nonsense(format!("no argument {at}")))?;
        match self.owned(arg)? {
            OwnedRef::Generator(g) => Ok(g),
            other => Err(nonsense(format!("{other:?} is no generator"))),
        }
    }

    fn weight(&self, i: &Instr, at: usize) -> Result<&Weight<f32>> {
        let arg = i.args.get(at).copied().ok_or_else(|| nonsense(format!("no argument {at}")))?;
        match self.owned(arg)? {
            OwnedRef::Blocks(weight) => Ok(weight),
            other => Err(nonsense(format!("{other:?} is no weight in blocks"))),
        }
    }

    /// Anything with f32 elements.
    fn o(&self, i: &Instr, at: usize) -> Result<&dyn AsOperand<'s, f32>> {
        match i.args.get(at) {
            Some(Arg::Local(_)) => Ok(self.f(i, at)?),
            Some(&arg) => Ok(match self.owned(arg)? {
                OwnedRef::Param(p) => p,
                OwnedRef::State(s) => s,
                other => return Err(nonsense(format!("{other:?} is no operand"))),
            }),
            None => Err(nonsense(format!("no argument {at}"))),
        }
    }

    /// Runs the code, its forks as such; `trips` is where it may trip.
    fn run_code(&mut self, code: &[Instr], trips: Option<usize>) -> Result<()> {
        let code: Vec<(usize, &Instr)> = code.iter().enumerate().collect();
        let env = RefCell::new(self);
        let step = |(at, i): &(usize, &Instr)| {
            if trips == Some(*at) {
                trip()?;
            }
            env.borrow_mut().step(i)
        };
        for part in code.chunk_by(|(_, a), (_, b)| a.branch.map(|b| b.0) == b.branch.map(|b| b.0)) {
            if part[0].1.branch.is_none() {
                part.iter().try_for_each(step)?;
                continue;
            }
            let Some(scope) = env.borrow().live.scope() else {
                return Err(nonsense("a fork without live-ins".into()));
            };
            let branches: Vec<_> = part.chunk_by(|(_, a), (_, b)| a.branch == b.branch).collect();
            join_all(scope, branches.iter().map(|branch| || branch.iter().try_for_each(step)))?;
        }
        Ok(())
    }

    fn step(&mut self, i: &Instr) -> Result<()> {
        if let Some(flow) = &i.flow {
            return self.flow(i, flow);
        }
        let value = self.compute(i)?;
        match (i.op, value) {
            (Code::Drop, _) => {
                if let (Some(Arg::Local(t)), None) = (i.args.first(), &self.keep) {
                    self.locals[*t] = None;
                }
            }
            (_, Some(value)) => self.set(i.dst, value),
            (_, None) => {}
        }
        Ok(())
    }

    fn compute(&self, i: &Instr) -> Result<Option<Val<'s>>> {
        let n = |at: usize| i.nums.get(at).copied().unwrap_or(0);
        let f = |at| self.f(i, at);
        let o = |at| self.o(i, at);
        let value = match i.op {
            Code::Add => ops::add(f(0)?, o(1)?)?,
            Code::ScaledAdd => custom_ops::scaled_add(f(0)?, f(1)?, 1.0)?,
            Code::IndexedAdd => indexed::sum(f(0)?, f(1)?)?,
            Code::Sub => ops::sub(f(0)?, o(1)?)?,
            Code::Mul => ops::mul(f(0)?, o(1)?)?,
            Code::Div => ops::div(f(0)?, o(1)?)?,
            Code::SiluMul => ops::silu_mul(f(0)?, o(1)?)?,
            Code::Tanh => ops::tanh(f(0)?)?,
            Code::Relu => ops::relu(f(0)?)?,
            Code::Silu => ops::silu(f(0)?)?,
            Code::Gelu => ops::gelu(f(0)?)?,
            Code::Neg => ops::neg(f(0)?)?,
            // Every third one by a library with a workspace.
            Code::Scale if n(0) % 2 == 1 => custom_ops::scaled_by_library(f(0)?, factor(n(0)))?,
            Code::Scale => ops::scale(f(0)?, factor(n(0)))?,
            Code::ScaleKey => {
                let key = self.live.keys.get(n(0)).ok_or_else(|| nonsense("no such key".into()))?;
                ops::scale(f(0)?, factor(*key as usize))?
            }
            Code::MatMul => ops::matmul(f(0)?, o(1)?)?,
            Code::MatMulNt => ops::matmul_nt(f(0)?, o(1)?)?,
            Code::Linear => ops::linear(f(0)?, o(1)?)?,
            Code::BlocksProduct => ops::linear(f(0)?, self.weight(i, 1)?)?,
            Code::BlocksRows => ops::embedding(self.u(i, 0)?, self.weight(i, 1)?)?,
            Code::Softmax => ops::softmax(f(0)?, n(0))?,
            Code::LogSoftmax => ops::log_softmax(f(0)?, n(0))?,
            Code::RmsNorm => ops::rms_norm(f(0)?, o(1)?, 1e-3)?,
            Code::LayerNorm => ops::layer_norm(f(0)?, o(1)?, o(2)?, 1e-3)?,
            Code::L2 => ops::l2_normalize(f(0)?, n(0), 1e-3)?,
            Code::Sum => ops::sum(f(0)?, n(0))?,
            Code::Mean => ops::mean(f(0)?, n(0))?,
            Code::Max => ops::max(f(0)?, n(0))?,
            Code::MaskedMean => ops::masked_mean(f(0)?, self.b(i, 1)?, n(0))?,
            Code::Load => {
                let scope = self.val(i, 0)?.scope();
                ops::load(scope, self.state(i, 1)?)?
            }
            Code::Full => {
                let scope = self.val(i, 0)?.scope();
                ops::full(scope, &i.nums[1..], factor(n(0)))?
            }
            Code::OnesLike => ops::ones_like(f(0)?)?,
            Code::Embedding => ops::embedding(self.u(i, 0)?, o(1)?)?,
            Code::Where => ops::where_(self.b(i, 0)?, o(1)?, o(2)?)?,
            Code::ToF32 => match self.val(i, 0)? {
                // What follows stays small.
                Val::D(t) => ops::cast::<_, f32>(&ops::tanh(t)?)?,
                Val::L(t) => ops::cast::<_, f32>(&ops::remainder(t, 97)?)?,
                other => each!(other, t => ops::cast::<_, f32>(t)?),
            },
            Code::Rope => ops::rope(f(0)?, self.u(i, 1)?, RopeConfig::new(100.0, ops::RopeStyle::HalfSplit))?,
            Code::Attention => ops::attention(f(0)?, o(1)?, o(2)?, AttentionMask::None, 0.5)?,
            Code::ArgMax => return Ok(Some(Val::U(ops::argmax(f(0)?, n(0))?))),
            Code::Gt => return Ok(Some(Val::B(ops::gt(f(0)?, o(1)?)?))),
            Code::ToBf16 => return Ok(Some(Val::H(ops::cast(f(0)?)?))),
            Code::AddBf16 => return Ok(Some(Val::H(ops::add(self.h(i, 0)?, self.h(i, 1)?)?))),
            Code::Arange => {
                let scope = self.val(i, 0)?.scope();
                return Ok(Some(Val::U(ops::arange(scope, n(0))?)));
            }
            Code::Scatter => {
                ops::scatter_rows(self.state(i, 0)?, self.u(i, 1)?, f(2)?)?;
                return Ok(None);
            }
            Code::Store => {
                ops::store(self.state(i, 0)?, f(1)?)?;
                return Ok(None);
            }
            Code::Accumulate => {
                custom_ops::accumulate(self.state(i, 0)?, &ops::contiguous(f(1)?)?)?;
                return Ok(None);
            }
            Code::Drop | Code::Flow => return Ok(None),
            Code::Fail => {
                if self.live.keys.first() == Some(&(n(0) as u64)) {
                    // Plain code returns; the real body panics half of the time.
                    assert!(self.keep.is_some() || n(1) == 0, "{ASKED}");
                    return Err(Error::Argument { op: ASKED, reason: String::new() });
                }
                return Ok(None);
            }
            Code::Concat => {
                let all: Vec<&Tensor<'s, f32>> = (0..i.args.len()).map(f).collect::<Result<_>>()?;
                ops::concat(&all, n(0))?
            }
            Code::Gather => return self.gather(i).map(Some),
            Code::SizeOf | Code::DivSize | Code::FullDim | Code::ArangeDim => return self.sizes(i).map(Some),
            Code::LastRow | Code::Reverse | Code::Pick => return self.rows(i).map(Some),
            Code::EmbedPick => {
                let x = f(0)?;
                ops::embedding(&ops::arange_step::<u32>(x.scope(), 2, 0.0, n(0) as f64)?, x)?
            }
            Code::Listed => {
                let vals = (0..i.args.len()).map(|at| self.val(i, at)).collect::<Result<_>>()?;
                return listed::run(i, vals).map(Some);
            }
            Code::Drawn => return self.drawn(i).map(Some),
            Code::Statistics | Code::RopeScatter | Code::CacheView | Code::MarkTokens | Code::Append => {
                return self.stated(i);
            }
            Code::Windows => windows::kept(f(0)?, n(0))?,
            Code::Parts => windows::divided(f(0)?, n(0), n(1))?,
            Code::Cell => windows::cell(f(0)?, n(0))?,
            Code::AllMean => sizes::all_mean(f(0)?, n(0), n(1))?,
            Code::SeenKeys => sizes::seen_keys(f(0)?, n(0), n(1))?,
            Code::Number => self.number(i)?,
            Code::Grown => ops::full(self.val(i, 0)?.scope(), [grown()], factor(n(0)))?,
            Code::Transpose
            | Code::Merge
            | Code::Split
            | Code::Narrow
            | Code::Contiguous
            | Code::Unsqueeze
            | Code::Squeeze
            | Code::Broadcast => {
                return Ok(Some(each!(self.val(i, 0)?, t => view(i, t)?.into())));
            }
        };
        Ok(Some(Val::F(value)))
    }

    fn gather(&self, i: &Instr) -> Result<Val<'s>> {
        self.gathered(i, i.nums[0], self.u(i, 1)?)
    }

    fn gathered(&self, i: &Instr, axis: usize, index: &Tensor<'s, u32>) -> Result<Val<'s>> {
        Ok(each!(self.val(i, 0)?, t => ops::gather(t, axis, index)?.into()))
    }
}

/// Operations that move elements, of any type.
fn view<'s, T: Element>(i: &Instr, t: &Tensor<'s, T>) -> Result<Tensor<'s, T>> {
    let n = |at: usize| i.nums.get(at).copied().unwrap_or(0);
    let mut shape = t.shape().to_vec();
    match i.op {
        Code::Transpose => ops::transpose(t, n(0), n(1)),
        Code::Narrow => ops::narrow(t, n(0), n(1), n(2)),
        Code::Contiguous => ops::contiguous(t),
        Code::Unsqueeze => ops::unsqueeze(t, n(0)),
        Code::Squeeze => ops::squeeze(t, n(0)),
        Code::Merge if n(0) + 1 < shape.len() => {
            let inner = shape.remove(n(0) + 1);
            shape[n(0)] *= inner;
            ops::reshape(t, &shape)
        }
        Code::Split if n(0) < shape.len() && n(1) > 0 => {
            shape[n(0)] /= n(1);
            shape.insert(n(0) + 1, n(1).into());
            ops::reshape(t, &shape)
        }
        Code::Broadcast if n(0) < shape.len() => {
            shape[n(0)] = n(1).into();
            ops::broadcast_to(t, &shape)
        }
        _ => Err(nonsense(format!("{i} of {shape:?}"))),
    }
}

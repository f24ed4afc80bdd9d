//! Makes straight-line code, one well-typed operation at a time.

use rand::{Rng, rngs::StdRng, seq::IndexedRandom};

use crate::{
    generate::{ROWS, Rules, WIDTHS},
    program::{Arg, Code, Elem, Instr, Size, Ty, each_instr},
};

/// The locals of a block under construction.
pub(crate) struct Locals<'a> {
    pub(crate) rules: &'a Rules,
    /// `None` once dropped.
    pub(crate) types: Vec<Option<Ty>>,
    inputs: usize,
    /// No operation may write state now.
    pub(crate) pure: bool,
    pub(crate) keys: usize,
    /// Values that must not be dropped.
    pub(crate) pinned: Vec<usize>,
    /// What may be used besides what every program has.
    pub(crate) may: May,
    pub(crate) code: Vec<Instr>,
}

/// What only some blocks may do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct May {
    /// Make numbers of sizes, which fails where they are padded.
    pub(crate) number: bool,
    /// Pick rows that may not be there.
    pub(crate) pick: bool,
    /// Make a tensor whose size changes.
    pub(crate) grow: bool,
    /// Draw random numbers: where a call that fails has drawn, plain code has drawn more.
    pub(crate) draw: bool,
}

/// Elements that a value may have at most, `B` counted as 8.
const LARGEST: usize = 600;

fn count(dims: &[Size]) -> usize {
    dims.iter().map(|d| if let Size::N(n) = d { *n } else { 8 }).product()
}

fn f32s(dims: Vec<Size>) -> Ty {
    Ty { elem: Elem::F32, dims, bound: 0 }
}

/// Whether `b` broadcasts to `a` without changing it.
pub(crate) fn within(a: &[Size], b: &[Size]) -> bool {
    b.len() <= a.len() && a[a.len() - b.len()..].iter().zip(b).all(|(x, y)| x == y || *y == Size::N(1))
}

impl<'a> Locals<'a> {
    pub(crate) fn new(rules: &'a Rules) -> Self {
        Self {
            rules,
            types: Vec::new(),
            inputs: 0,
            pure: false,
            keys: 0,
            pinned: Vec::new(),
            may: May::default(),
            code: Vec::new(),
        }
    }

    pub(crate) fn input(&mut self, ty: Ty) {
        self.types.push(Some(ty));
        self.inputs += 1;
    }

    /// Of these live-ins, of the first one a tensor of its shape is made.
    pub(crate) fn only_the_shape(&mut self, inputs: usize) {
        self.types.truncate(inputs);
        self.inputs = inputs;
        if let Some(Some(first)) = self.types.first_mut() {
            (first.elem, first.bound) = (Elem::F32, 0);
        }
    }

    /// A local to hand out: mostly one that the code made.
    pub(crate) fn choose(&self, rng: &mut StdRng) -> Option<(usize, Ty)> {
        let made = rng.random_bool(0.85);
        let all: Vec<(usize, Ty)> = self.alive().filter(|(t, _)| !made || *t >= self.inputs).collect();
        all.choose(rng).cloned()
    }

    pub(crate) fn is_there(&self, t: usize) -> bool {
        self.types[t].is_some()
    }

    pub(crate) fn alive(&self) -> impl Iterator<Item = (usize, Ty)> {
        self.types.iter().enumerate().filter_map(|(t, ty)| Some((t, ty.clone()?)))
    }

    pub(crate) fn pick(&self, rng: &mut StdRng, fits: impl Fn(&Ty) -> bool) -> Option<(usize, Ty)> {
        let all: Vec<(usize, Ty)> = self.alive().filter(|(_, ty)| fits(ty)).collect();
        // Later values twice as often: chains, not stars.
        let late = &all[all.len() / 2..];
        if rng.random_bool(0.5) { late.choose(rng).cloned() } else { all.choose(rng).cloned() }
    }

    pub(crate) fn floats(&self, rng: &mut StdRng, rank: usize) -> Option<(usize, Ty)> {
        self.pick(rng, |ty| ty.elem == Elem::F32 && ty.dims.len() >= rank)
    }

    pub(crate) fn emit(&mut self, op: Code, args: Vec<Arg>, nums: Vec<usize>, ty: Ty) -> Option<usize> {
        if count(&ty.dims) > LARGEST || ty.dims.len() > 5 {
            return None;
        }
        let dst = self.types.len();
        let padded = self.is_padded(&args) || self.rules.padded && ty.dims.contains(&Size::B);
        self.types.push(Some(ty));
        self.code.push(Instr { op, dst, args, nums, branch: None, flow: None, padded });
        Some(dst)
    }

    pub(crate) fn effect(&mut self, op: Code, args: Vec<Arg>) {
        let padded = self.is_padded(&args);
        self.code.push(Instr { op, dst: 0, args, nums: Vec::new(), branch: None, flow: None, padded });
    }

    /// Whether a bucket may pad one of the arguments.
    pub(crate) fn is_padded(&self, args: &[Arg]) -> bool {
        let own = |arg: &Arg| match arg {
            Arg::Local(t) => self.types[*t].as_ref().is_some_and(|ty| ty.dims.contains(&Size::B)),
            _ => false,
        };
        self.rules.padded && args.iter().any(own)
    }

    /// An instruction that fails for one value of the key. What was stored before it would be stored by
    /// plain code and not by a capture, so nothing is.
    pub(crate) fn fail(&mut self, rng: &mut StdRng) {
        let mut has_written = false;
        each_instr(&self.code, &mut |i| has_written |= i.op.writes());
        if !has_written {
            let nums = vec![rng.random_range(0..3), rng.random_range(0..2)];
            let (op, args) = (Code::Fail, Vec::new());
            self.code.push(Instr { op, dst: 0, args, nums, branch: None, flow: None, padded: false });
        }
    }

    /// An axis whose elements an operation may mix.
    pub(crate) fn axis(&self, rng: &mut StdRng, ty: &Ty) -> Option<usize> {
        let all: Vec<usize> =
            (0..ty.dims.len()).filter(|&a| !self.rules.padded || ty.dims[a] != Size::B).collect();
        all.choose(rng).copied()
    }

    /// A parameter or state of this shape.
    fn owned(&self, rng: &mut StdRng, fits: impl Fn(&[usize]) -> bool) -> Option<(Arg, Vec<usize>)> {
        let params = self.rules.params.iter().enumerate().map(|(i, s)| (Arg::Param(i), s.clone()));
        let states = self.rules.states.iter().enumerate().map(|(i, s)| (Arg::State(i), s.clone()));
        let all: Vec<(Arg, Vec<usize>)> = params.chain(states).filter(|(_, s)| fits(s)).collect();
        all.choose(rng).cloned()
    }

    /// Adds branches, which see what was there before them and nothing of each other. What one of them
    /// drops the later ones cannot use; what an earlier one uses a later one may drop.
    pub(crate) fn fork(&mut self, rng: &mut StdRng, fork: usize) {
        let before = self.types.len();
        let mut made: Vec<(usize, Option<Ty>)> = Vec::new();
        self.pure = true;
        for branch in 0..rng.random_range(2..4) {
            let (code, types) = (self.code.len(), self.types.len());
            for _ in 0..rng.random_range(1..5) {
                if self.rules.extended && rng.random_bool(0.2) {
                    self.sized(rng);
                }
                self.grow(rng);
            }
            self.draw_in_branch(rng, branch);
            if self.rules.flows && rng.random_bool(0.2) {
                self.flow(rng, 1);
            }
            self.code[code..].iter_mut().for_each(|i| i.branch = Some((fork, branch)));
            made.extend((types..self.types.len()).map(|t| (t, self.types[t].take())));
        }
        self.pure = false;
        debug_assert!(made.iter().all(|(t, _)| *t >= before));
        for (t, ty) in made {
            self.types[t] = ty;
        }
    }

    /// Adds one operation, or two; sometimes none fits.
    pub(crate) fn grow(&mut self, rng: &mut StdRng) {
        for _ in 0..8 {
            if self.attempt(rng).is_some() {
                return;
            }
        }
    }

    fn attempt(&mut self, rng: &mut StdRng) -> Option<()> {
        match rng.random_range(0..90) {
            0..=7 => self.unary(rng),
            8..=15 => self.binary(rng),
            16..=20 => self.product(rng),
            21..=26 => self.along(rng),
            27..=36 => self.view(rng),
            37..=40 => self.indexed(rng),
            41..=43 => self.state(rng),
            44..=46 => self.other(rng),
            47..=49 => self.windowed(rng),
            50..=53 => self.forget(rng),
            54..=57 => self.further(rng),
            _ => self.listed(rng),
        }
    }

    /// Products may be summed in another order when their sizes differ.
    pub(crate) fn linear(&self) -> bool {
        !self.rules.padded || self.rules.approximate
    }

    fn unary(&mut self, rng: &mut StdRng) -> Option<()> {
        let (t, ty) = self.floats(rng, 0)?;
        let (op, nums) = *[
            (Code::Tanh, None),
            (Code::Tanh, None),
            (Code::Relu, None),
            (Code::Silu, None),
            (Code::Gelu, None),
            (Code::Neg, None),
            (Code::Scale, Some(3)),
            (Code::ScaleKey, Some(self.keys)),
        ]
        .choose(rng)?;
        let nums = match nums {
            Some(0) => return None,
            Some(n) => vec![rng.random_range(0..n)],
            None => Vec::new(),
        };
        self.emit(op, vec![Arg::Local(t)], nums, ty).map(drop)
    }

    fn binary(&mut self, rng: &mut StdRng) -> Option<()> {
        let (a, ty) = self.floats(rng, 0)?;
        let op = *[Code::Add, Code::Add, Code::Sub, Code::Mul, Code::Div, Code::SiluMul].choose(rng)?;
        let b = if rng.random_bool(0.6) {
            Arg::Local(self.pick(rng, |o| o.elem == Elem::F32 && within(&ty.dims, &o.dims))?.0)
        } else {
            let as_sizes = |s: &[usize]| s.iter().map(|&n| Size::N(n)).collect::<Vec<_>>();
            self.owned(rng, |s| within(&ty.dims, &as_sizes(s)))?.0
        };
        // Products of products would leave the range of floats.
        let a = match op {
            Code::Mul | Code::SiluMul | Code::Div => {
                self.emit(Code::Tanh, vec![Arg::Local(a)], Vec::new(), ty.clone())?
            }
            _ => a,
        };
        let op = if op == Code::Add && self.is_alike(b, &ty) { self.add() } else { op };
        // A quotient jumps where its divisor is near zero.
        let op = if op == Code::Div && self.rules.approximate { Code::Mul } else { op };
        self.emit(op, vec![Arg::Local(a), b], Vec::new(), ty).map(drop)
    }

    /// Every other sum is an operation of the tests' own, and every fourth one a kernel of indices.
    fn add(&self) -> Code {
        match self.types.len() % 4 {
            0 | 2 => Code::ScaledAdd,
            1 => Code::IndexedAdd,
            _ => Code::Add,
        }
    }

    /// Whether the argument is a local of exactly this type.
    fn is_alike(&self, arg: Arg, ty: &Ty) -> bool {
        matches!(arg, Arg::Local(t) if self.types.get(t).is_some_and(|known| known.as_ref() == Some(ty)))
    }

    fn product(&mut self, rng: &mut StdRng) -> Option<()> {
        if !self.linear() {
            return None;
        }
        let (a, ty) = self.floats(rng, 1)?;
        let (last, lead) = ty.dims.split_last()?;
        if self.rules.padded && *last == Size::B {
            return None;
        }
        match rng.random_range(0..4) {
            0 => {
                let (w, s) = self.owned(rng, |s| s.len() == 2 && Size::N(s[1]) == *last)?;
                let dims = lead.iter().copied().chain([Size::N(s[0])]).collect();
                self.emit(Code::Linear, vec![Arg::Local(a), w], Vec::new(), f32s(dims))
            }
            1 if !lead.is_empty() => {
                let (w, s) = self.owned(rng, |s| s.len() == 2 && Size::N(s[0]) == *last)?;
                let dims = lead.iter().copied().chain([Size::N(s[1])]).collect();
                self.emit(Code::MatMul, vec![Arg::Local(a), w], Vec::new(), f32s(dims))
            }
            2 if !lead.is_empty() => {
                let (b, other) =
                    self.pick(rng, |o| o.elem == Elem::F32 && o.dims.len() == 2 && o.dims[0] == *last)?;
                let dims = lead.iter().copied().chain([other.dims[1]]).collect();
                self.emit(Code::MatMul, vec![Arg::Local(a), Arg::Local(b)], Vec::new(), f32s(dims))
            }
            _ if !lead.is_empty() => {
                let (b, other) =
                    self.pick(rng, |o| o.elem == Elem::F32 && o.dims.len() == 2 && o.dims[1] == *last)?;
                let dims = lead.iter().copied().chain([other.dims[0]]).collect();
                self.emit(Code::MatMulNt, vec![Arg::Local(a), Arg::Local(b)], Vec::new(), f32s(dims))
            }
            _ => None,
        }
        .map(drop)
    }

    fn along(&mut self, rng: &mut StdRng) -> Option<()> {
        let (t, ty) = self.floats(rng, 1)?;
        let axis = self.axis(rng, &ty)?;
        let mut less = ty.clone();
        less.dims.remove(axis);
        let args = vec![Arg::Local(t)];
        match rng.random_range(0..10) {
            0 => self.emit(Code::Softmax, args, vec![axis], ty),
            1 => self.emit(Code::LogSoftmax, args, vec![axis], ty),
            2 if !self.rules.approximate => self.emit(Code::L2, args, vec![axis], ty),
            3 => self.emit(Code::Sum, args, vec![axis], less),
            4 => self.emit(Code::Mean, args, vec![axis], less),
            5 => self.emit(Code::Max, args, vec![axis], less),
            6 if !self.rules.approximate => {
                let Size::N(bound) = ty.dims[axis] else { return None };
                self.emit(Code::ArgMax, args, vec![axis], Ty { elem: Elem::U32, dims: less.dims, bound })
            }
            7 => {
                let (m, _) = self.pick(rng, |o| o.elem == Elem::Bool && within(&ty.dims, &o.dims))?;
                self.emit(Code::MaskedMean, vec![Arg::Local(t), Arg::Local(m)], vec![axis], less)
            }
            8 if axis + 1 == ty.dims.len() => {
                let (w, _) = self.owned(rng, |s| s.len() == 1 && Size::N(s[0]) == ty.dims[axis])?;
                self.emit(Code::RmsNorm, vec![Arg::Local(t), w], Vec::new(), ty)
            }
            9 if axis + 1 == ty.dims.len() && !self.rules.approximate => {
                let (w, _) = self.owned(rng, |s| s.len() == 1 && Size::N(s[0]) == ty.dims[axis])?;
                self.emit(Code::LayerNorm, vec![Arg::Local(t), w, w], Vec::new(), ty)
            }
            _ => None,
        }
        .map(drop)
    }

    fn view(&mut self, rng: &mut StdRng) -> Option<()> {
        let (t, ty) = self.pick(rng, |ty| !ty.dims.is_empty())?;
        let (mut to, args) = (ty.clone(), vec![Arg::Local(t)]);
        let axis = rng.random_range(0..ty.dims.len());
        match rng.random_range(0..9) {
            0 | 1 if ty.dims.len() > 1 => {
                let other = rng.random_range(0..ty.dims.len());
                to.dims.swap(axis, other);
                self.emit(Code::Transpose, args, vec![axis, other], to)
            }
            2 => {
                let (Size::N(a), Some(Size::N(b))) = (ty.dims[axis], ty.dims.get(axis + 1)) else {
                    return None;
                };
                to.dims[axis] = Size::N(a * b);
                to.dims.remove(axis + 1);
                self.emit(Code::Merge, args, vec![axis], to)
            }
            3 => {
                let Size::N(n) = ty.dims[axis] else { return None };
                let inner = *(1..=n).filter(|i| n % i == 0).collect::<Vec<_>>().choose(rng)?;
                to.dims[axis] = Size::N(n / inner);
                to.dims.insert(axis + 1, Size::N(inner));
                self.emit(Code::Split, args, vec![axis, inner], to)
            }
            4 | 5 => {
                let Size::N(n) = ty.dims[axis] else { return None };
                let start = rng.random_range(0..n);
                let len = rng.random_range(1..=n - start);
                to.dims[axis] = Size::N(len);
                self.emit(Code::Narrow, args, vec![axis, start, len], to)
            }
            6 => self.emit(Code::Contiguous, args, Vec::new(), to),
            7 => {
                to.dims.insert(axis, Size::N(1));
                self.emit(Code::Unsqueeze, args, vec![axis], to)
            }
            _ if ty.dims[axis] == Size::N(1) => {
                if rng.random_bool(0.5) {
                    to.dims.remove(axis);
                    self.emit(Code::Squeeze, args, vec![axis], to)
                } else {
                    let n = WIDTHS[rng.random_range(0..WIDTHS.len())];
                    to.dims[axis] = Size::N(n);
                    self.emit(Code::Broadcast, args, vec![axis, n], to)
                }
            }
            _ => None,
        }
        .map(drop)
    }

    fn indexed(&mut self, rng: &mut StdRng) -> Option<()> {
        let (i, index) = self.pick(rng, |ty| ty.elem == Elem::U32 && ty.bound > 0)?;
        if rng.random_bool(0.5) {
            let (table, s) = self.owned(rng, |s| s.len() == 2 && s[0] >= index.bound)?;
            let dims = index.dims.iter().copied().chain([Size::N(s[1])]).collect();
            return self.emit(Code::Embedding, vec![Arg::Local(i), table], Vec::new(), f32s(dims)).map(drop);
        }
        let [n] = index.dims[..] else { return None };
        let (t, ty) = self.pick(rng, |ty| !ty.dims.is_empty())?;
        let axes: Vec<usize> = (0..ty.dims.len())
            .filter(|&a| matches!(ty.dims[a], Size::N(size) if size >= index.bound))
            .collect();
        let axis = *axes.choose(rng)?;
        let mut to = ty;
        to.dims[axis] = n;
        self.emit(Code::Gather, vec![Arg::Local(t), Arg::Local(i)], vec![axis], to).map(drop)
    }

    fn state(&mut self, rng: &mut StdRng) -> Option<()> {
        let at = rng.random_range(0..self.rules.states.len().max(1));
        let shape = self.rules.states.get(at)?.clone();
        let dims: Vec<Size> = shape.iter().map(|&n| Size::N(n)).collect();
        match rng.random_range(0..4) {
            1.. if self.pure => return None,
            0 => {
                let (t, _) = self.alive().next()?;
                self.emit(Code::Load, vec![Arg::Local(t), Arg::State(at)], Vec::new(), f32s(dims))?;
            }
            1 => {
                let (t, _) = self.pick(rng, |ty| ty.elem == Elem::F32 && ty.dims == dims)?;
                let t = self.emit(Code::Tanh, vec![Arg::Local(t)], Vec::new(), f32s(dims))?;
                let op = if t.is_multiple_of(2) { Code::Store } else { Code::Accumulate };
                self.effect(op, vec![Arg::State(at), Arg::Local(t)]);
            }
            // A state of statistics has other rows.
            _ if dims.len() > 1 => {
                let (i, index) = self.pick(rng, |ty| {
                    ty.elem == Elem::U32 && ty.dims.len() == 1 && (1..=ROWS).contains(&ty.bound)
                })?;
                let rows: Vec<Size> = [index.dims[0]].iter().chain(dims.get(1..)?).copied().collect();
                let (t, ty) = self.pick(rng, |ty| ty.elem == Elem::F32 && ty.dims == rows)?;
                let t = self.emit(Code::Tanh, vec![Arg::Local(t)], Vec::new(), ty)?;
                self.effect(Code::Scatter, vec![Arg::State(at), Arg::Local(i), Arg::Local(t)]);
            }
            _ => return None,
        }
        Some(())
    }

    fn other(&mut self, rng: &mut StdRng) -> Option<()> {
        match rng.random_range(0..12) {
            0 | 1 => {
                let (a, ty) = self.floats(rng, 1)?;
                let axis = self.axis(rng, &ty)?;
                let Size::N(n) = ty.dims[axis] else { return None };
                let (b, other) = self.pick(rng, |o| {
                    o.elem == Elem::F32
                        && o.dims.len() == ty.dims.len()
                        && matches!(o.dims[axis], Size::N(_))
                        && (0..o.dims.len()).all(|i| i == axis || o.dims[i] == ty.dims[i])
                })?;
                let Size::N(m) = other.dims[axis] else { return None };
                let mut to = ty;
                to.dims[axis] = Size::N(n + m);
                self.emit(Code::Concat, vec![Arg::Local(a), Arg::Local(b)], vec![axis], to)
            }
            2 if !self.rules.approximate => {
                let (a, ty) = self.floats(rng, 0)?;
                let (b, _) = self.pick(rng, |o| o.elem == Elem::F32 && within(&ty.dims, &o.dims))?;
                let to = Ty { elem: Elem::Bool, ..ty };
                self.emit(Code::Gt, vec![Arg::Local(a), Arg::Local(b)], Vec::new(), to)
            }
            3 | 4 => {
                let (c, ty) = self.pick(rng, |ty| ty.elem == Elem::Bool)?;
                let (a, _) = self.pick(rng, |o| o.elem == Elem::F32 && within(&ty.dims, &o.dims))?;
                let (b, _) = self.pick(rng, |o| o.elem == Elem::F32 && within(&ty.dims, &o.dims))?;
                self.emit(
                    Code::Where,
                    vec![Arg::Local(c), Arg::Local(a), Arg::Local(b)],
                    Vec::new(),
                    f32s(ty.dims),
                )
            }
            5 if !self.rules.approximate => {
                let (a, ty) = self.floats(rng, 0)?;
                self.emit(Code::ToBf16, vec![Arg::Local(a)], Vec::new(), Ty { elem: Elem::Bf16, ..ty })
            }
            6 => {
                let (a, ty) = self.pick(rng, |ty| ty.elem != Elem::F32)?;
                self.emit(Code::ToF32, vec![Arg::Local(a)], Vec::new(), f32s(ty.dims))
            }
            7 => {
                let (a, ty) = self.pick(rng, |ty| ty.elem == Elem::Bf16)?;
                let (b, _) = self.pick(rng, |o| o.elem == Elem::Bf16 && within(&ty.dims, &o.dims))?;
                self.emit(Code::AddBf16, vec![Arg::Local(a), Arg::Local(b)], Vec::new(), ty)
            }
            8 => {
                let (t, _) = self.alive().next()?;
                let w = WIDTHS[rng.random_range(0..WIDTHS.len())];
                let dims = vec![Size::N(w)];
                self.emit(Code::Full, vec![Arg::Local(t)], vec![rng.random_range(0..4), w], f32s(dims))
            }
            9 => {
                let (t, _) = self.alive().next()?;
                let ty = Ty { elem: Elem::U32, dims: vec![Size::N(ROWS)], bound: ROWS };
                self.emit(Code::Arange, vec![Arg::Local(t)], vec![ROWS], ty)
            }
            10 => {
                let (a, ty) = self.floats(rng, 0)?;
                self.emit(Code::OnesLike, vec![Arg::Local(a)], Vec::new(), ty)
            }
            _ => self.heads(rng),
        }
        .map(drop)
    }

    /// Rotary embedding of `[T, H, D]`, and attention of it to itself.
    fn heads(&mut self, rng: &mut StdRng) -> Option<usize> {
        let even = |d: &Size| matches!(d, Size::N(n) if n % 2 == 0);
        let (x, ty) = self.pick(rng, |ty| {
            ty.elem == Elem::F32
                && ty.dims.len() == 3
                && matches!(ty.dims[1], Size::N(_))
                && ty.dims.last().is_some_and(even)
        })?;
        if let Some((p, _)) = self.pick(rng, |o| o.elem == Elem::U32 && o.dims == ty.dims[..1]) {
            return self.emit(Code::Rope, vec![Arg::Local(x), Arg::Local(p)], Vec::new(), ty);
        }
        if self.rules.padded {
            return None;
        }
        self.emit(Code::Attention, vec![Arg::Local(x), Arg::Local(x), Arg::Local(x)], Vec::new(), ty)
    }

    /// Drops a value that the code made.
    fn forget(&mut self, rng: &mut StdRng) -> Option<()> {
        let made: Vec<usize> = self.droppable().collect();
        if made.len() < 2 {
            return None;
        }
        self.release(*made.choose(rng)?);
        Some(())
    }

    /// Adds an operation once more, with the same arguments, whatever was written since.
    pub(crate) fn again(&mut self, rng: &mut StdRng) {
        let is_there = |arg: &Arg| !matches!(arg, Arg::Local(t) if !self.is_there(*t));
        let may_be = |i: &&Instr| {
            i.op.is_plain() && i.branch.is_none() && i.args.iter().all(is_there) && self.is_there(i.dst)
        };
        let all: Vec<&Instr> = self.code.iter().filter(may_be).collect();
        let Some(first) = all.choose(rng).copied().cloned() else { return };
        let dst = self.types.len();
        self.types.push(self.types[first.dst].clone());
        self.code.push(Instr { dst, ..first });
    }

    /// Values that the code made.
    pub(crate) fn droppable(&self) -> impl Iterator<Item = usize> {
        self.alive().map(|(t, _)| t).filter(|t| *t >= self.inputs && !self.pinned.contains(t))
    }

    pub(crate) fn release(&mut self, t: usize) {
        self.types[t] = None;
        self.effect(Code::Drop, vec![Arg::Local(t)]);
    }
}

//! Random kernels, and random tensors for them.

mod index;
mod rows;

use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

use crate::program::{Argument, Expr, Function, Loop, Program, Statement, Ty, Value, View};

/// What a program may have.
#[derive(Clone, Copy)]
struct Limits {
    /// If it calls no function that devices compute differently.
    exact: bool,
    /// If it has `f64`, `i64` and `i8`.
    further: bool,
}

impl Limits {
    /// Programs with the further types, and without them, are of every form.
    fn new(seed: u64, exact: bool) -> Self {
        Self { exact, further: !(seed / 10).is_multiple_of(3) }
    }

    fn ty(self, rng: &mut StdRng) -> Ty {
        use Ty::{Bool, F32, F64, I8, I32, I64, U8, U32};
        let all = [F32, F32, F32, I32, U32, U8, Bool, F64, F64, I64, I8];
        *self.of(&all, 7).choose(rng).expect("there are some")
    }

    fn integers(self) -> &'static [Ty] {
        self.of(&[Ty::I32, Ty::U32, Ty::U8, Ty::I8, Ty::I64], 3)
    }

    /// The first `plain` ones, or all with the further types.
    fn of(self, all: &[Ty], plain: usize) -> &[Ty] {
        if self.further { all } else { &all[..plain] }
    }
}

/// The program of a seed; an `exact` one calls no function that devices compute differently.
pub(crate) fn program(seed: u64, exact: bool) -> Program {
    let limits = Limits::new(seed, exact);
    // Every fifth one is a kernel of indices, every third one of the others of rows.
    if seed % 5 == 4 {
        return index::program(seed, limits);
    }
    if seed % 3 == 2 {
        return rows::program(seed, limits);
    }
    let mut rng = StdRng::seed_from_u64(seed);
    let mut functions: Vec<Function> = Vec::new();
    let count = rng.random_range(1..=3);
    for i in 0..count {
        let randoms = if i + 1 == count { randoms(seed) } else { Vec::new() };
        let function = Writer::function(&mut rng, &functions, i, limits, randoms);
        functions.push(function);
    }
    let rank = if rng.random_bool(0.1) { 0 } else { rng.random_range(1..=3) };
    let shape: Vec<usize> =
        (0..rank).map(|_| rng.random_range(if rank == 1 { 8..=40 } else { 3..=8 })).collect();
    // Long enough for several blocks, now and then.
    let shape = if rng.random_bool(0.15) { vec![rng.random_range(1..=3), 700] } else { shape };
    let last = functions.last().expect("there is one");
    let arguments = (0..last.inputs)
        .map(|i| {
            if i > 0 && rng.random_bool(0.2) {
                let bits = crate::values::bits(seed, i, usize::MAX, last.variables[i].name());
                return Argument::Number(bits);
            }
            Argument::Tensor(view(&mut rng, &shape, i == 0))
        })
        .collect();
    let float = ["f32", "f32", "f16", "bf16"].choose(&mut rng).expect("there are some");
    Program { seed, functions, arguments, float, shape, size: 1 }
}

/// The generator of each random number of a seed's program, of which there are up to three, from two generators.
fn randoms(seed: u64) -> Vec<usize> {
    let mut rng = StdRng::seed_from_u64(seed ^ 0xd1ce << 32);
    let count = if rng.random_bool(0.4) { rng.random_range(1..=3) } else { 0 };
    (0..count).map(|_| rng.random_range(0..2)).collect()
}

/// A tensor that broadcasts to `shape`; `whole` is not repeated.
fn view(rng: &mut StdRng, shape: &[usize], whole: bool) -> View {
    let drop = if whole { 0 } else { rng.random_range(0..=shape.len()) };
    let mut shown: Vec<usize> = shape[drop..].to_vec();
    for size in &mut shown {
        if !whole && rng.random_bool(0.25) {
            *size = 1;
        }
    }
    let mut axes: Vec<usize> = (0..shown.len()).collect();
    if rng.random_bool(0.4) {
        axes.reverse();
    }
    let cut = (!shown.is_empty() && rng.random_bool(0.3)).then(|| {
        let axis = rng.random_range(0..shown.len());
        (axis, rng.random_range(0..3), shown[axis])
    });
    let mut sizes = shown;
    if let Some((axis, start, len)) = cut {
        sizes[axis] = start + len + rng.random_range(0..2);
    }
    let mut stored = vec![0; sizes.len()];
    for (i, axis) in axes.iter().enumerate() {
        stored[*axis] = sizes[i];
    }
    View { shape: stored, axes, cut }
}

struct Writer<'a> {
    rng: &'a mut StdRng,
    callees: &'a [Function],
    variables: Vec<Ty>,
    names: Vec<String>,
    /// The variables in scope that may change, and that may not.
    mutable: Vec<usize>,
    scope: Vec<usize>,
    loops: usize,
    outputs: Vec<Ty>,
    limits: Limits,
    /// Variables that are rows, and whether a closure is being written.
    rows: Vec<usize>,
    in_closure: bool,
    fixed: Vec<usize>,
    /// Parameters that are views, with their dimensions.
    views: Vec<(usize, usize)>,
    /// Number of parameters that are random numbers.
    randoms: usize,
    /// The sizes of the state that is written.
    state: Option<Vec<usize>>,
}

const NAMES: [&str; 6] = ["a", "b", "x", "int", "auto", "t1"];

impl<'a> Writer<'a> {
    /// A writer of a function with these variables, all of them parameters in scope that may not change.
    fn new(
        rng: &'a mut StdRng,
        callees: &'a [Function],
        limits: Limits,
        variables: Vec<Ty>,
        names: Vec<String>,
    ) -> Self {
        Self {
            rng,
            callees,
            scope: (0..variables.len()).collect(),
            variables,
            names,
            mutable: Vec::new(),
            loops: 0,
            outputs: Vec::new(),
            limits,
            rows: Vec::new(),
            in_closure: false,
            fixed: Vec::new(),
            views: Vec::new(),
            randoms: 0,
            state: None,
        }
    }
}

impl Writer<'_> {
    fn function(
        rng: &mut StdRng,
        callees: &[Function],
        number: usize,
        limits: Limits,
        randoms: Vec<usize>,
    ) -> Function {
        let inputs = rng.random_range(1..=4);
        let variables: Vec<Ty> = (0..inputs).map(|_| limits.ty(rng)).collect();
        let count = if rng.random_bool(0.25) { rng.random_range(2..=4) } else { 1 };
        let outputs: Vec<Ty> = (0..count).map(|_| limits.ty(rng)).collect();
        let names = (0..inputs).map(|i| format!("p{i}")).collect();
        let mut writer =
            Writer { outputs: outputs.clone(), ..Writer::new(rng, callees, limits, variables, names) };
        writer.randoms = randoms.len();
        let mut body = Vec::new();
        let count = writer.rng.random_range(0..=5);
        writer.statements(count, 2, &mut body);
        let results = outputs.iter().map(|ty| writer.expr(*ty, 4)).collect();
        let Writer { variables, names, .. } = writer;
        let (name, fixed) = (format!("k{number}"), Vec::new());
        let (row, index) = (None, None);
        Function { name, variables, names, inputs, outputs, body, results, fixed, randoms, row, index }
    }

    fn bind(&mut self, ty: Ty, mutable: bool) -> usize {
        let name = NAMES.choose(self.rng).expect("there are names").to_string();
        // What a name means is the newest.
        let shadowed: Vec<usize> = self.scope.iter().copied().filter(|v| self.names[*v] == name).collect();
        self.scope.retain(|v| !shadowed.contains(v));
        self.mutable.retain(|v| !shadowed.contains(v));
        self.variables.push(ty);
        self.names.push(name);
        let variable = self.variables.len() - 1;
        self.scope.push(variable);
        if mutable {
            self.mutable.push(variable);
        }
        variable
    }

    fn statements(&mut self, count: usize, depth: usize, out: &mut Vec<Statement>) {
        for _ in 0..count {
            let statement = self.statement(depth);
            out.push(statement);
        }
    }

    /// Statements in a scope of their own.
    fn nested(&mut self, depth: usize) -> Vec<Statement> {
        let (scope, mutable, rows) = (self.scope.clone(), self.mutable.clone(), self.rows.clone());
        let mut out = Vec::new();
        let count = self.rng.random_range(1..=3);
        self.statements(count, depth, &mut out);
        if self.loops > 0 && self.rng.random_bool(0.25) {
            let condition = self.expr(Ty::Bool, 2);
            let far = self.rng.random_range(0..self.loops);
            let leave =
                if self.rng.random_bool(0.5) { Statement::Break(far) } else { Statement::Continue(far) };
            out.push(Statement::If(condition, vec![leave], Vec::new()));
        }
        (self.scope, self.mutable, self.rows) = (scope, mutable, rows);
        out
    }

    fn statement(&mut self, depth: usize) -> Statement {
        // A block as a value has none: the interpreter works out all parts of what a kernel ends with.
        let often = if self.loops > 0 { 0.7 } else { 0.3 };
        if self.state.is_some() && (depth > 0 || self.loops > 0) && self.rng.random_bool(often) {
            return self.set();
        }
        match self.rng.random_range(0..10) {
            0..=2 if !self.mutable.is_empty() => {
                let variable = *self.mutable.choose(self.rng).expect("there is one");
                let ty = self.variables[variable];
                let ops: &[&str] = match ty {
                    Ty::F32 | Ty::F64 => &["", "+", "-", "*", "/"],
                    Ty::Bool => &["", "&", "|", "^"],
                    _ => &["", "+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"],
                };
                let op = ops.choose(self.rng).expect("there are some");
                let of = if matches!(*op, "<<" | ">>") { self.integer() } else { ty };
                let value = self.expr(of, 3);
                Statement::Assign(variable, op, value)
            }
            3 if depth > 0 => {
                let condition = self.expr(Ty::Bool, 3);
                let then = self.nested(depth - 1);
                let other = if self.rng.random_bool(0.5) { self.nested(depth - 1) } else { Vec::new() };
                Statement::If(condition, then, other)
            }
            4 | 5 if depth > 0 => self.counted(depth),
            6 if self.outputs.is_empty() && !self.in_closure => self.row_statement(),
            6 if !self.outputs.is_empty() && self.rng.random_bool(0.3) => {
                let condition = self.expr(Ty::Bool, 3);
                let outputs = self.outputs.clone();
                let values = outputs.iter().map(|ty| self.expr(*ty, 2)).collect();
                Statement::If(condition, vec![Statement::Return(values)], Vec::new())
            }
            7 if self.callees.iter().any(|f| f.outputs.len() > 1) => {
                let several: Vec<usize> =
                    (0..self.callees.len()).filter(|i| self.callees[*i].outputs.len() > 1).collect();
                let callee = *several.choose(self.rng).expect("there is one");
                let call = self.call(callee, 2);
                let mut parts: Vec<usize> = Vec::new();
                for ty in self.callees[callee].outputs.clone() {
                    let part = self.bind(ty, false);
                    // One pattern binds a name once.
                    self.names[part] = format!("q{part}");
                    parts.push(part);
                }
                Statement::Parts(parts, call)
            }
            _ => {
                let ty = self.limits.ty(self.rng);
                let value = self.expr(ty, 3);
                let mutable = self.rng.random_bool(0.6);
                let variable = self.bind(ty, mutable);
                if !mutable {
                    self.fixed.push(variable);
                }
                Statement::Let(variable, value)
            }
        }
    }

    fn counted(&mut self, depth: usize) -> Statement {
        if !self.views.is_empty() && self.rng.random_bool(0.5) {
            return self.over_view(depth);
        }
        // A loop counts in no `i64`.
        let ty = *self.limits.of(&[Ty::I32, Ty::U32, Ty::U8, Ty::I8], 3).choose(self.rng).expect("some");
        let (scope, mutable) = (self.scope.clone(), self.mutable.clone());
        let low =
            if ty.is_signed_integer() { self.rng.random_range(-3..3) } else { self.rng.random_range(0..4) };
        // The last value of a type is reached, too.
        let (from, to) = match ty {
            Ty::U8 if self.rng.random_bool(0.3) => (253, 255),
            Ty::I8 if self.rng.random_bool(0.3) => (125, 127),
            _ => (low, low + self.rng.random_range(0..5)),
        };
        let counter = self.bind(ty, false);
        self.loops += 1;
        let body = self.nested(depth - 1);
        self.loops -= 1;
        (self.scope, self.mutable) = (scope, mutable);
        let (inclusive, reversed) = (self.rng.random_bool(0.5), self.rng.random_bool(0.3));
        Statement::For(Loop { counter, from, to, inclusive, reversed, size: None, body })
    }

    fn integer(&mut self) -> Ty {
        *self.limits.integers().choose(self.rng).expect("there are some")
    }

    fn call(&mut self, callee: usize, depth: usize) -> Expr {
        let callees = self.callees;
        let inputs = &callees[callee].variables[..callees[callee].inputs];
        Expr::Call(callee, inputs.iter().map(|ty| self.expr(*ty, depth)).collect())
    }

    fn leaf(&mut self, ty: Ty) -> Expr {
        let fitting: Vec<usize> = self.scope.iter().copied().filter(|v| self.variables[*v] == ty).collect();
        if let Some(variable) = fitting.choose(self.rng).filter(|_| self.rng.random_bool(0.75)) {
            return Expr::Variable(*variable);
        }
        if self.rng.random_bool(0.15) {
            let constants = [
                ("f32::INFINITY", Value::F32(f32::INFINITY)),
                ("f32::NAN", Value::F32(f32::NAN)),
                ("core::f32::consts::PI", Value::F32(std::f32::consts::PI)),
                ("f64::NEG_INFINITY", Value::F64(f64::NEG_INFINITY)),
                ("f64::EPSILON", Value::F64(f64::EPSILON)),
                ("core::f64::consts::PI", Value::F64(std::f64::consts::PI)),
                ("i32::MIN", Value::I32(i32::MIN)),
                ("i64::MIN", Value::I64(i64::MIN)),
                ("i8::MIN", Value::I8(i8::MIN)),
                ("u32::MAX", Value::U32(u32::MAX)),
                ("u8::BITS", Value::U32(8)),
                ("SLOPE", Value::F32(0.1)),
                ("STEEP", Value::F64(0.1)),
                ("super::THIRD", Value::F64(1.0 / 3.0)),
                ("super::FAR", Value::I64(-3_000_000_000)),
                ("super::OFFSET", Value::I32(-7)),
                ("super::LAST", Value::U8(255)),
                ("super::ON", Value::Bool(true)),
            ];
            let fitting: Vec<_> = constants.iter().filter(|(_, v)| v.ty() == ty).collect();
            if let Some((path, value)) = fitting.choose(self.rng) {
                return Expr::Constant(path, *value);
            }
        }
        Expr::Literal(self.literal(ty))
    }

    fn literal(&mut self, ty: Ty) -> Value {
        match ty {
            Ty::F32 => Value::F32(match self.rng.random_range(0..6) {
                0 => 0.0,
                1 => 1.0e-40,
                2 => 16_777_217.0,
                _ => (self.rng.random_range(-1.0f32..1.0)) * 10.0,
            }),
            Ty::F64 => Value::F64(match self.rng.random_range(0..6) {
                0 => 0.0,
                1 => 1.0e-310,
                2 => 9_007_199_254_740_993.0,
                3 => 1.0e300,
                _ => self.rng.random_range(-10.0f64..10.0),
            }),
            Ty::Bool | Ty::U8 | Ty::I8 => Value::of(ty, self.rng.random()),
            _ if self.rng.random_bool(0.2) => Value::of(ty, self.rng.random()),
            _ => Value::of(ty, self.rng.random_range(0..40)),
        }
    }

    fn expr(&mut self, ty: Ty, depth: usize) -> Expr {
        if depth == 0 {
            return self.leaf(ty);
        }
        if !self.views.is_empty() && self.rng.random_bool(0.25) {
            return self.of_view(ty, depth - 1);
        }
        if self.randoms > 0 && matches!(ty, Ty::F32 | Ty::U32) && self.rng.random_bool(0.3) {
            return self.random(ty, depth - 1);
        }
        match self.rng.random_range(0..12) {
            0 | 1 if !self.rows.is_empty() => self.of_row(ty, depth - 1),
            0 | 1 => self.leaf(ty),
            2 => {
                let condition = Box::new(self.expr(Ty::Bool, depth - 1));
                Expr::If(condition, Box::new(self.expr(ty, depth - 1)), Box::new(self.expr(ty, depth - 1)))
            }
            3 => self.choice(ty, depth),
            4 => {
                let fitting: Vec<usize> =
                    (0..self.callees.len()).filter(|i| self.callees[*i].outputs == [ty]).collect();
                match fitting.choose(self.rng) {
                    Some(callee) => self.call(*callee, depth - 1),
                    None => self.leaf(ty),
                }
            }
            5 => self.block(ty, depth),
            6 | 7 => self.method(ty, depth),
            8 => self.conversion(ty, depth),
            _ => self.operator(ty, depth),
        }
    }

    /// What a random number becomes.
    fn random(&mut self, ty: Ty, depth: usize) -> Expr {
        let at = self.rng.random_range(0..self.randoms);
        if ty == Ty::F32 {
            return Expr::Random(at, "uniform", None);
        }
        match *["bits", "more_bits", "below"].choose(self.rng).expect("there are some") {
            "below" => Expr::Random(at, "below", Some(Box::new(self.expr(Ty::U32, depth)))),
            name => Expr::Random(at, name, None),
        }
    }

    /// A block that may change variables from around it: what was evaluated before it must not see that.
    fn block(&mut self, ty: Ty, depth: usize) -> Expr {
        let (scope, mutable, loops) =
            (self.scope.clone(), self.mutable.clone(), std::mem::take(&mut self.loops));
        let rows = self.rows.clone();
        let mut statements = Vec::new();
        for _ in 0..self.rng.random_range(1..=2) {
            let statement = self.statement(0);
            // A block as a value is not left.
            if !matches!(&statement, Statement::If(..)) {
                statements.push(statement);
            }
        }
        let value = self.expr(ty, depth - 1);
        (self.scope, self.mutable, self.loops, self.rows) = (scope, mutable, loops, rows);
        Expr::Block(statements, Box::new(value))
    }

    fn choice(&mut self, ty: Ty, depth: usize) -> Expr {
        let of = self.integer();
        let value = self.expr(of, depth - 1);
        let mut arms = Vec::new();
        for _ in 0..self.rng.random_range(1..=3) {
            let ranges = (0..self.rng.random_range(1..=2))
                .map(|_| {
                    let low = self.rng.random_range(0..60u64);
                    let high = low + if self.rng.random_bool(0.5) { 0 } else { self.rng.random_range(0..20) };
                    (Value::of(of, low), Value::of(of, high))
                })
                .collect();
            arms.push((ranges, self.expr(ty, depth - 1)));
        }
        Expr::Match(Box::new(value), arms, Box::new(self.expr(ty, depth - 1)))
    }

    fn conversion(&mut self, ty: Ty, depth: usize) -> Expr {
        use Ty::{Bool, F32, F64, I8, I32, I64, U8, U32};
        // Types from which every value becomes one of `ty`; the further ones come last.
        let (from, plain): (&[Ty], usize) = match ty {
            Bool => return self.operator(ty, depth),
            F32 => (&[U8, Bool, I8], 2),
            F64 => (&[F32, I32, U32, U8, Bool, I8], 0),
            I64 => (&[I32, U32, U8, Bool, I8], 0),
            I32 => (&[U8, Bool, I8], 2),
            U32 => (&[U8, Bool], 2),
            U8 | I8 => (&[Bool], 1),
        };
        if self.rng.random_bool(0.3) {
            let of = *self.limits.of(from, plain).choose(self.rng).expect("there are some");
            return Expr::From(ty, Box::new(self.expr(of, depth - 1)));
        }
        let of = match *self
            .limits
            .of(&[F32, I32, U32, U8, Bool, F64, I64, I8], 5)
            .choose(self.rng)
            .expect("some")
        {
            // `as` makes no float of one.
            Bool if ty.is_float() => U8,
            of => of,
        };
        Expr::Cast(Box::new(self.expr(of, depth - 1)), ty)
    }

    fn operator(&mut self, ty: Ty, depth: usize) -> Expr {
        let ops: &[&str] = match ty {
            Ty::F32 | Ty::F64 => &["+", "-", "*", "/", "%", "neg"],
            Ty::I32 | Ty::I64 | Ty::I8 => &["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "neg", "!"],
            Ty::Bool => &["&&", "||", "&", "^", "!", "<", "<=", ">", ">=", "==", "!="],
            _ => &["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "!"],
        };
        let op = *ops.choose(self.rng).expect("there are some");
        let mut of = |ty: Ty| Box::new(self.expr(ty, depth - 1));
        match op {
            "neg" => Expr::Unary("-", of(ty)),
            "!" => Expr::Unary("!", of(ty)),
            "<<" | ">>" => {
                let left = of(ty);
                let places = self.integer();
                Expr::Binary(op, left, Box::new(self.expr(places, depth - 1)))
            }
            "<" | "<=" | ">" | ">=" | "==" | "!=" => {
                let compared = self.limits.ty(self.rng);
                let left = Box::new(self.expr(compared, depth - 1));
                Expr::Binary(op, left, Box::new(self.expr(compared, depth - 1)))
            }
            _ => {
                let left = of(ty);
                Expr::Binary(op, left, of(ty))
            }
        }
    }

    fn method(&mut self, ty: Ty, depth: usize) -> Expr {
        use Ty::{Bool, F32, F64, I8, I32, I64, U8, U32};
        let own: Vec<(&'static str, Vec<Ty>)> = match ty {
            F32 | F64 => {
                let one = [
                    "abs",
                    "sqrt",
                    "floor",
                    "ceil",
                    "trunc",
                    "round",
                    "fract",
                    "recip",
                    "exp",
                    "tanh",
                    "sin",
                    "ln",
                    "signum",
                    "cbrt",
                    "asinh",
                    "to_degrees",
                    "to_radians",
                ];
                let two = ["powf", "atan2", "hypot", "min", "max", "copysign", "rem_euclid"];
                let mut all: Vec<_> = one.iter().map(|m| (*m, vec![ty])).collect();
                all.extend(two.iter().map(|m| (*m, vec![ty, ty])));
                all.extend([("clamp", vec![ty, ty, ty]), ("mul_add", vec![ty, ty, ty])]);
                all.push(("powi", vec![ty, I32]));
                if ty == F32 {
                    all.push(("from_bits", vec![U32]));
                }
                all
            }
            Bool => {
                let float = *self.limits.of(&[F32, F64], 1).choose(self.rng).expect("there is one");
                let integer = *self.limits.of(&[I32, I64, I8], 1).choose(self.rng).expect("there is one");
                let of_floats = ["is_nan", "is_finite", "is_sign_negative"].map(|m| (m, vec![float]));
                let of_integers = ["is_negative", "is_positive"].map(|m| (m, vec![integer]));
                of_floats.into_iter().chain(of_integers).collect()
            }
            _ => {
                let two = [
                    "min",
                    "max",
                    "wrapping_add",
                    "wrapping_sub",
                    "wrapping_mul",
                    "saturating_add",
                    "saturating_sub",
                    "rem_euclid",
                    "div_euclid",
                ];
                let mut all: Vec<_> = two.iter().map(|m| (*m, vec![ty, ty])).collect();
                all.extend([
                    ("wrapping_neg", vec![ty]),
                    ("reverse_bits", vec![ty]),
                    ("clamp", vec![ty, ty, ty]),
                ]);
                all.extend([("rotate_left", vec![ty, U32]), ("pow", vec![ty, U8])]);
                if ty.is_signed_integer() {
                    all.extend(["abs", "signum", "wrapping_abs"].map(|m| (m, vec![ty])));
                }
                if ty == U32 {
                    let of = self.integer();
                    all.extend(["count_ones", "leading_zeros", "trailing_zeros"].map(|m| (m, vec![of])));
                    all.push(("to_bits", vec![F32]));
                }
                all
            }
        };
        let inexact = ["exp", "tanh", "sin", "ln", "cbrt", "asinh", "powf", "atan2", "hypot"];
        let own: Vec<_> =
            own.into_iter().filter(|(m, _)| !self.limits.exact || !inexact.contains(m)).collect();
        let (name, types) = own.choose(self.rng).expect("there are some").clone();
        let mut all: Vec<Expr> = types.iter().map(|ty| self.expr(*ty, depth - 1)).collect();
        // Exponents of integers are 32 bits wide; these end.
        if name == "pow" {
            all[1] = Expr::Cast(Box::new(all[1].clone()), U32);
        }
        Expr::Method(name, all)
    }
}

//! What a program means, said once more: over the generator's own tree, in plain Rust, with every number's type at run time.

mod index;
mod random;
mod rows;

pub(crate) use random::{BEFORE, seed};
pub(crate) use rows::row_results;

use crate::program::{Expr, Function, Program, Statement, Ty, Value};

/// How statements ended.
enum Flow {
    On,
    Break(usize),
    Continue(usize),
    Return(Vec<Value>),
}

struct Run<'a> {
    program: &'a Program,
    function: &'a Function,
    values: Vec<Value>,
    /// The values of variables that are rows.
    rows: Vec<Vec<Value>>,
    /// The number of the element.
    element: u64,
    written: Written,
}

/// What an element of a kernel that writes a state has written so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    /// The number of the element of the state, and its value; of the last write alone.
    pub(crate) last: Option<(usize, Value)>,
    /// If some write was out of range.
    pub(crate) beyond: bool,
}

/// The results of a function of the program, and what it writes.
pub(crate) fn results(
    program: &Program,
    function: usize,
    inputs: &[Value],
    element: u64,
) -> (Vec<Value>, Written) {
    let function = &program.functions[function];
    let mut values = inputs.to_vec();
    values.resize(function.variables.len(), Value::Bool(false));
    let mut run = Run { program, function, values, rows: Vec::new(), element, written: Written::default() };
    let results = match run.statements(&function.body) {
        Flow::Return(values) => values,
        _ => function.results.iter().map(|result| run.one(result)).collect(),
    };
    (results, run.written)
}

impl Run<'_> {
    fn statements(&mut self, statements: &[Statement]) -> Flow {
        for statement in statements {
            match self.statement(statement) {
                Flow::On => {}
                other => return other,
            }
        }
        Flow::On
    }

    fn statement(&mut self, statement: &Statement) -> Flow {
        match statement {
            Statement::Let(variable, value) => self.values[*variable] = self.one(value),
            Statement::Parts(variables, value) => {
                for (variable, value) in variables.iter().zip(self.all(value)) {
                    self.values[*variable] = value;
                }
            }
            Statement::Row(row, pipe) => self.rows[*row] = self.row(pipe),
            Statement::Folded(variables, fold) => {
                for (variable, value) in variables.iter().zip(self.folded(fold)) {
                    self.values[*variable] = value;
                }
            }
            Statement::Assign(variable, op, value) => {
                let value = self.one(value);
                let before = self.values[*variable];
                self.values[*variable] = if op.is_empty() { value } else { binary(op, before, value) };
            }
            Statement::If(condition, then, other) => {
                let taken = if truth(self.one(condition)) { then } else { other };
                return self.statements(taken);
            }
            Statement::For(counted) => {
                let end = counted.size.map_or(counted.to, |(view, axis)| self.size(view, axis));
                let to = end + i64::from(counted.inclusive);
                let mut counts: Vec<i64> = (counted.from..to).collect();
                if counted.reversed {
                    counts.reverse();
                }
                for count in counts {
                    let ty = self.function.variables[counted.counter];
                    self.values[counted.counter] = Value::of(ty, count as u32);
                    match self.statements(&counted.body) {
                        Flow::Break(0) => break,
                        Flow::On | Flow::Continue(0) => {}
                        Flow::Break(out) => return Flow::Break(out - 1),
                        Flow::Continue(out) => return Flow::Continue(out - 1),
                        Flow::Return(values) => return Flow::Return(values),
                    }
                }
            }
            Statement::Break(out) => return Flow::Break(*out),
            Statement::Continue(out) => return Flow::Continue(*out),
            Statement::Return(values) => return Flow::Return(values.iter().map(|v| self.one(v)).collect()),
            Statement::Set(set) => return self.set(set),
        }
        Flow::On
    }

    fn all(&mut self, expr: &Expr) -> Vec<Value> {
        match expr {
            Expr::Call(function, arguments) => {
                let inputs: Vec<Value> = arguments.iter().map(|argument| self.one(argument)).collect();
                results(self.program, *function, &inputs, self.element).0
            }
            other => vec![self.one(other)],
        }
    }

    fn one(&mut self, expr: &Expr) -> Value {
        match expr {
            Expr::Literal(value) | Expr::Constant(_, value) => *value,
            Expr::Variable(variable) => self.values[*variable],
            Expr::Unary(op, value) => match (*op, self.one(value)) {
                ("-", Value::F32(v)) => Value::F32(-v),
                ("-", Value::I32(v)) => Value::I32(0i32.wrapping_sub(v)),
                ("!", Value::Bool(v)) => Value::Bool(!v),
                ("!", Value::I32(v)) => Value::I32(-1 - v),
                ("!", Value::U32(v)) => Value::U32(u32::MAX - v),
                ("!", Value::U8(v)) => Value::U8(u8::MAX - v),
                other => panic!("{other:?}"),
            },
            Expr::Binary("&&", left, right) => Value::Bool(truth(self.one(left)) && truth(self.one(right))),
            Expr::Binary("||", left, right) => Value::Bool(truth(self.one(left)) || truth(self.one(right))),
            Expr::Binary(op, left, right) => {
                let left = self.one(left);
                binary(op, left, self.one(right))
            }
            Expr::Cast(value, to) => cast(self.one(value), *to),
            Expr::From(to, value) => cast(self.one(value), *to),
            Expr::Method(name, all) => {
                let all: Vec<Value> = all.iter().map(|one| self.one(one)).collect();
                method(name, &all)
            }
            Expr::Call(..) => self.all(expr)[0],
            Expr::Row(reduction) => self.reduced(reduction),
            Expr::View(view, read) => self.read(*view, read),
            Expr::Random(at, method, bound) => {
                let bound = bound.as_ref().map(|bound| number(self.one(bound)) as u32);
                random::method(self.program, *at, self.element, method, bound)
            }
            Expr::If(condition, then, other) => {
                if truth(self.one(condition)) {
                    self.one(then)
                } else {
                    self.one(other)
                }
            }
            Expr::Match(value, arms, rest) => {
                let value = number(self.one(value));
                let within = |(low, high): &(Value, Value)| number(*low) <= value && value <= number(*high);
                match arms.iter().find(|(ranges, _)| ranges.iter().any(within)) {
                    Some((_, arm)) => self.one(arm),
                    None => self.one(rest),
                }
            }
            Expr::Block(statements, value) => {
                // The generator puts nothing there that leaves it.
                self.statements(statements);
                self.one(value)
            }
        }
    }
}

fn truth(value: Value) -> bool {
    matches!(value, Value::Bool(true))
}

/// An integer's value.
fn number(value: Value) -> i64 {
    match value {
        Value::I32(v) => v.into(),
        Value::U32(v) => v.into(),
        Value::U8(v) => v.into(),
        Value::Bool(v) => v.into(),
        Value::F32(v) => panic!("{v}"),
    }
}

fn type_of(value: Value) -> Ty {
    match value {
        Value::F32(_) => Ty::F32,
        Value::I32(_) => Ty::I32,
        Value::U32(_) => Ty::U32,
        Value::U8(_) => Ty::U8,
        Value::Bool(_) => Ty::Bool,
    }
}

/// An integer modulo the bits of its type.
fn wrapped(ty: Ty, value: i64) -> Value {
    Value::of(ty, value as u32)
}

fn binary(op: &str, left: Value, right: Value) -> Value {
    if let (Value::F32(a), Value::F32(b)) = (left, right) {
        return match op {
            "+" => Value::F32(a + b),
            "-" => Value::F32(a - b),
            "*" => Value::F32(a * b),
            "/" => Value::F32(a / b),
            "%" => Value::F32(a % b),
            "<" => Value::Bool(a < b),
            "<=" => Value::Bool(a <= b),
            ">" => Value::Bool(a > b),
            ">=" => Value::Bool(a >= b),
            "==" => Value::Bool(a == b),
            "!=" => Value::Bool(a != b),
            other => panic!("{other}"),
        };
    }
    let (ty, a, b) = (type_of(left), number(left), number(right));
    let bits = match ty {
        Ty::U8 => 8,
        _ => 32,
    };
    match op {
        "+" => wrapped(ty, a + b),
        "-" => wrapped(ty, a - b),
        // Two 32-bit factors: the product fits in 64 bits but for the largest `u32`s, where it wraps as it should.
        "*" => wrapped(ty, a.wrapping_mul(b)),
        "/" => wrapped(ty, if b == 0 { 0 } else { a / b }),
        "%" => wrapped(ty, if b == 0 { a } else { a % b }),
        "&" => wrapped(ty, a & b),
        "|" => wrapped(ty, a | b),
        "^" => wrapped(ty, a ^ b),
        "<<" => wrapped(ty, a << b.rem_euclid(bits)),
        ">>" => wrapped(ty, a >> b.rem_euclid(bits)),
        "<" => Value::Bool(a < b),
        "<=" => Value::Bool(a <= b),
        ">" => Value::Bool(a > b),
        ">=" => Value::Bool(a >= b),
        "==" => Value::Bool(a == b),
        "!=" => Value::Bool(a != b),
        other => panic!("{other}"),
    }
}

fn cast(value: Value, to: Ty) -> Value {
    match (value, to) {
        (Value::F32(v), Ty::F32) => Value::F32(v),
        (Value::F32(v), _) => {
            let (low, high) = match to {
                Ty::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
                Ty::U32 => (0, i64::from(u32::MAX)),
                _ => (0, 255),
            };
            // In f64 every such bound is exact.
            let v = f64::from(v);
            let whole = if v.is_nan() { 0 } else { v.trunc().clamp(low as f64, high as f64) as i64 };
            wrapped(to, whole)
        }
        // Exact in f64, then rounded once.
        (value, Ty::F32) => Value::F32(number(value) as f64 as f32),
        (value, to) => wrapped(to, number(value)),
    }
}

fn method(name: &str, all: &[Value]) -> Value {
    match all[0] {
        Value::F32(x) => float_method(name, x, &all[1..]),
        receiver => integer_method(name, receiver, &all[1..]),
    }
}

fn float_method(name: &str, x: f32, rest: &[Value]) -> Value {
    let float = |i: usize| match rest[i] {
        Value::F32(v) => v,
        other => panic!("{other:?}"),
    };
    let lower = |a: f32, b: f32| if a == b { a.is_sign_negative() } else { a < b };
    Value::F32(match name {
        "abs" => f32::from_bits(x.to_bits() & 0x7fff_ffff),
        "sqrt" => x.sqrt(),
        "floor" => x.floor(),
        "ceil" => x.ceil(),
        "trunc" => x.trunc(),
        "round" => x.round(),
        "fract" => x - x.trunc(),
        "recip" => 1.0 / x,
        // The language has one of its own.
        "exp" => graphable::__private::kernel::lang::exp(x),
        "tanh" => x.tanh(),
        "sin" => x.sin(),
        "ln" => x.ln(),
        "powf" => x.powf(float(0)),
        "atan2" => x.atan2(float(0)),
        "signum" if x.is_nan() => x,
        "signum" => 1.0f32.copysign(x),
        // NaN counts as missing.
        "min" | "max" if x.is_nan() => float(0),
        "min" | "max" if float(0).is_nan() => x,
        "min" => {
            if lower(x, float(0)) {
                x
            } else {
                float(0)
            }
        }
        "max" => {
            if lower(x, float(0)) {
                float(0)
            } else {
                x
            }
        }
        "clamp" => {
            let x = if x < float(0) { float(0) } else { x };
            if x > float(1) { float(1) } else { x }
        }
        "mul_add" => x.mul_add(float(0), float(1)),
        "copysign" if float(0).is_nan() => x.abs(),
        "copysign" => x.copysign(float(0)),
        "rem_euclid" => {
            let rest = x % float(0);
            if rest < 0.0 { rest + float(0).abs() } else { rest }
        }
        "powi" => {
            let exponent = number(rest[0]);
            let (mut square, mut left, mut power) = (x, exponent.unsigned_abs(), 1.0f32);
            while left > 0 {
                power = if left % 2 == 1 { power * square } else { power };
                left /= 2;
                square = if left > 0 { square * square } else { square };
            }
            if exponent < 0 { 1.0 / power } else { power }
        }
        "is_nan" => return Value::Bool(x.is_nan()),
        "is_finite" => return Value::Bool(x.is_finite()),
        "is_sign_negative" => return Value::Bool(!x.is_nan() && x.is_sign_negative()),
        "to_bits" => return Value::U32(Value::F32(x).bits()),
        other => panic!("{other}"),
    })
}

fn integer_method(name: &str, receiver: Value, rest: &[Value]) -> Value {
    let (ty, a) = (type_of(receiver), number(receiver));
    let (bits, b) = (if ty == Ty::U8 { 8 } else { 32 }, rest.first().map_or(0, |b| number(*b)));
    let pattern = receiver.bits();
    let (low, high) = match ty {
        Ty::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        Ty::U32 => (0, i64::from(u32::MAX)),
        _ => (0, 255),
    };
    match name {
        "from_bits" => Value::F32(f32::from_bits(pattern)),
        "abs" | "wrapping_abs" => wrapped(ty, a.abs()),
        "signum" => wrapped(ty, a.signum()),
        "min" => wrapped(ty, a.min(b)),
        "max" => wrapped(ty, a.max(b)),
        "clamp" => {
            let a = if a < b { b } else { a };
            let high = number(rest[1]);
            wrapped(ty, if a > high { high } else { a })
        }
        "wrapping_add" => wrapped(ty, a + b),
        "wrapping_sub" => wrapped(ty, a - b),
        "wrapping_mul" => wrapped(ty, a.wrapping_mul(b)),
        "wrapping_neg" => wrapped(ty, -a),
        "saturating_add" => wrapped(ty, (a + b).clamp(low, high)),
        "saturating_sub" => wrapped(ty, (a - b).clamp(low, high)),
        "rem_euclid" => wrapped(ty, if b == 0 { a } else { a.rem_euclid(b) }),
        "div_euclid" => wrapped(ty, if b == 0 { 0 } else { a.div_euclid(b) }),
        "pow" => {
            let mut power = wrapped(ty, 1);
            for _ in 0..b {
                power = binary("*", power, receiver);
            }
            power
        }
        "count_ones" => Value::U32((0..bits).map(|i| pattern >> i & 1).sum()),
        "leading_zeros" => Value::U32((0..bits).rev().take_while(|i| pattern >> i & 1 == 0).count() as u32),
        "trailing_zeros" => Value::U32((0..bits).take_while(|i| pattern >> i & 1 == 0).count() as u32),
        "reverse_bits" => Value::of(ty, (0..bits).map(|i| (pattern >> i & 1) << (bits - 1 - i)).sum()),
        "rotate_left" => {
            let n = b.rem_euclid(bits.into()) as u32;
            let once = |p: u32| if bits == 8 { p << 1 & 255 | p >> 7 } else { p.rotate_left(1) };
            Value::of(ty, (0..n).fold(pattern, |p, _| once(p)))
        }
        other => panic!("{other}"),
    }
}

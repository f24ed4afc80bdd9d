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
                    self.values[counted.counter] = Value::of(ty, count as u64);
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
                ("-", Value::F64(v)) => Value::F64(-v),
                ("-", v) => wrapped(v.ty(), -number(v)),
                ("!", Value::Bool(v)) => Value::Bool(!v),
                ("!", v) => wrapped(v.ty(), -1 - number(v)),
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

/// An integer's value, of which the arithmetic of two fits.
fn number(value: Value) -> i128 {
    match value {
        Value::I32(v) => v.into(),
        Value::I64(v) => v.into(),
        Value::I8(v) => v.into(),
        Value::U32(v) => v.into(),
        Value::U8(v) => v.into(),
        Value::Bool(v) => v.into(),
        Value::F32(v) => panic!("{v}"),
        Value::F64(v) => panic!("{v}"),
    }
}

/// The bits of an integer type.
fn width(ty: Ty) -> u32 {
    match ty {
        Ty::I64 => 64,
        Ty::I8 | Ty::U8 => 8,
        _ => 32,
    }
}

/// The smallest and the largest number of an integer type.
fn range(ty: Ty) -> (i128, i128) {
    let count = 1i128 << width(ty);
    if ty.is_signed_integer() { (-count / 2, count / 2 - 1) } else { (0, count - 1) }
}

/// An integer modulo the bits of its type.
fn wrapped(ty: Ty, value: i128) -> Value {
    Value::of(ty, value as u64)
}

/// What has the same text for both types of floats.
macro_rules! floats {
    ($binary:ident $method:ident $t:ident $variant:ident) => {
        fn $binary(op: &str, a: $t, b: $t) -> Value {
            match op {
                "+" => Value::$variant(a + b),
                "-" => Value::$variant(a - b),
                "*" => Value::$variant(a * b),
                "/" => Value::$variant(a / b),
                "%" => Value::$variant(a % b),
                _ => Value::Bool(compared(op, &a, &b)),
            }
        }

        fn $method(name: &str, x: $t, rest: &[Value]) -> Value {
            let float = |i: usize| match rest[i] {
                Value::$variant(v) => v,
                other => panic!("{other:?}"),
            };
            let lower = |a: $t, b: $t| if a == b { a.is_sign_negative() } else { a < b };
            Value::$variant(match name {
                "abs" => {
                    if x.is_sign_negative() {
                        -x
                    } else {
                        x
                    }
                }
                "sqrt" => x.sqrt(),
                "floor" => x.floor(),
                "ceil" => x.ceil(),
                "trunc" => x.trunc(),
                "round" => x.round(),
                "fract" => x - x.trunc(),
                "recip" => 1.0 / x,
                "to_degrees" => x.to_degrees(),
                "to_radians" => x.to_radians(),
                // The language has its own, which have tests.
                "exp" => graphable::__private::kernel::lang::exp(x),
                "asinh" => graphable::__private::kernel::lang::asinh(x),
                "tanh" => x.tanh(),
                "sin" => x.sin(),
                "ln" => x.ln(),
                "cbrt" => x.cbrt(),
                "powf" => x.powf(float(0)),
                "atan2" => x.atan2(float(0)),
                "hypot" => x.hypot(float(0)),
                "signum" if x.is_nan() => x,
                "signum" => $t::copysign(1.0, x),
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
                    let (mut square, mut left, mut power) = (x, exponent.unsigned_abs(), 1.0);
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
                "to_bits" => return Value::U32(Value::$variant(x).bits() as u32),
                other => panic!("{other}"),
            })
        }
    };
}

floats!(binary_single single_method f32 F32);
floats!(binary_double double_method f64 F64);

fn compared<T: PartialOrd>(op: &str, a: &T, b: &T) -> bool {
    match op {
        "<" => a < b,
        "<=" => a <= b,
        ">" => a > b,
        ">=" => a >= b,
        "==" => a == b,
        "!=" => a != b,
        other => panic!("{other}"),
    }
}

fn binary(op: &str, left: Value, right: Value) -> Value {
    match (left, right) {
        (Value::F32(a), Value::F32(b)) => return binary_single(op, a, b),
        (Value::F64(a), Value::F64(b)) => return binary_double(op, a, b),
        _ => {}
    }
    let (ty, a, b) = (left.ty(), number(left), number(right));
    let places = || b.rem_euclid(width(ty).into());
    match op {
        "+" => wrapped(ty, a + b),
        "-" => wrapped(ty, a - b),
        "*" => wrapped(ty, a * b),
        "/" => wrapped(ty, if b == 0 { 0 } else { a / b }),
        "%" => wrapped(ty, if b == 0 { a } else { a % b }),
        "&" => wrapped(ty, a & b),
        "|" => wrapped(ty, a | b),
        "^" => wrapped(ty, a ^ b),
        "<<" => wrapped(ty, a << places()),
        ">>" => wrapped(ty, a >> places()),
        _ => Value::Bool(compared(op, &a, &b)),
    }
}

fn cast(value: Value, to: Ty) -> Value {
    match (value, to) {
        (Value::F32(v), Ty::F32) => Value::F32(v),
        (Value::F32(v), Ty::F64) => Value::F64(v.into()),
        (Value::F64(v), Ty::F64) => Value::F64(v),
        (Value::F64(v), Ty::F32) => Value::F32(v as f32),
        (Value::F32(v), _) => truncated(v.into(), to),
        (Value::F64(v), _) => truncated(v, to),
        (value, Ty::F32) => Value::F32(number(value) as f32),
        (value, Ty::F64) => Value::F64(number(value) as f64),
        (value, to) => wrapped(to, number(value)),
    }
}

/// Without its fraction, and within the range of an integer type; 0 of NaN.
fn truncated(value: f64, to: Ty) -> Value {
    let (low, high) = range(to);
    wrapped(to, (value as i128).clamp(low, high))
}

fn method(name: &str, all: &[Value]) -> Value {
    match all[0] {
        Value::F32(x) => single_method(name, x, &all[1..]),
        Value::F64(x) => double_method(name, x, &all[1..]),
        receiver => integer_method(name, receiver, &all[1..]),
    }
}

fn integer_method(name: &str, receiver: Value, rest: &[Value]) -> Value {
    let (ty, a) = (receiver.ty(), number(receiver));
    let (bits, b) = (width(ty), rest.first().map_or(0, |b| number(*b)));
    let pattern = receiver.bits();
    let (low, high) = range(ty);
    match name {
        "from_bits" => Value::of(Ty::F32, pattern),
        "abs" | "wrapping_abs" => wrapped(ty, a.abs()),
        "signum" => wrapped(ty, a.signum()),
        "is_negative" => Value::Bool(a < 0),
        "is_positive" => Value::Bool(a > 0),
        "min" => wrapped(ty, a.min(b)),
        "max" => wrapped(ty, a.max(b)),
        "clamp" => {
            let a = if a < b { b } else { a };
            let high = number(rest[1]);
            wrapped(ty, if a > high { high } else { a })
        }
        "wrapping_add" => wrapped(ty, a + b),
        "wrapping_sub" => wrapped(ty, a - b),
        "wrapping_mul" => wrapped(ty, a * b),
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
        "count_ones" => Value::U32((0..bits).map(|i| (pattern >> i & 1) as u32).sum()),
        "leading_zeros" => Value::U32((0..bits).rev().take_while(|i| pattern >> i & 1 == 0).count() as u32),
        "trailing_zeros" => Value::U32((0..bits).take_while(|i| pattern >> i & 1 == 0).count() as u32),
        "reverse_bits" => Value::of(ty, (0..bits).map(|i| (pattern >> i & 1) << (bits - 1 - i)).sum()),
        "rotate_left" => {
            let n = b.rem_euclid(bits.into());
            Value::of(ty, (0..n).fold(pattern, |p, _| p << 1 | p >> (bits - 1) & 1))
        }
        other => panic!("{other}"),
    }
}

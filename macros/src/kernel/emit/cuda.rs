//! The function as CUDA C++.
//!
//! Placeholders that only the runtime can fill are written as `${…}`: `f` is the function's name, `c0` a
//! callee's, `r0` or `r0.1` its result's type, `p0.1` its parameter's, `k0` a constant's value and `t0` its
//! type; `i0`, `i0.1` and `j0` are the functions by which a callee's result, or a constant, becomes an index. The meaning of
//! operators and methods is in the namespace `lang`, in `language.cuh` and `further.cuh` of the runtime, except where IEEE
//! arithmetic is the same in both languages.

mod index;
mod rows;

use std::fmt::Write as _;

use crate::kernel::{
    model::{
        Arm, ArmPattern, Binary, Block, Body, Expr, Float, For, Form, Header, Kind, LocalId, Pattern, Scalar,
        Statement, TypeId,
    },
    types::{Inferred, Open, Types},
};

/// The text of a function.
pub(super) fn text(header: &Header, body: &Body, types: &Types) -> String {
    if header.form.has_rows() {
        return rows::text(header, body, types);
    }
    if header.form == Form::Index {
        return index::text(header, body, types);
    }
    let mut cuda = Cuda::new(body, types);
    let output = output(header);
    let parameters: Vec<String> = header
        .inputs
        .iter()
        .enumerate()
        .map(|(i, input)| format!("{} {}", input.scalar.name(), cuda.local(i)))
        .collect();
    cuda.statements(&body.block, &To::Return);
    format!("DEVICE {output} ${{f}}({}) {{\n{}}}\n", parameters.join(", "), cuda.out)
}

/// The type of a function's result.
fn output(header: &Header) -> String {
    match header.outputs[..] {
        [one] => one.scalar.name().to_owned(),
        ref all => tuple(all.iter().map(|output| output.scalar.name().to_owned())),
    }
}

fn tuple(parts: impl ExactSizeIterator<Item = String>) -> String {
    let count = parts.len();
    format!("Tuple{count}<{}>", parts.collect::<Vec<_>>().join(", "))
}

struct Cuda<'a> {
    body: &'a Body,
    types: &'a Types,
    out: String,
    depth: usize,
    temporaries: usize,
    /// The loops around, the innermost last.
    loops: Vec<usize>,
    /// Loops that a loop inside leaves (`true`) or continues.
    jumps: Vec<(usize, bool)>,
}

/// The destination of a value.
enum To {
    Return,
    Variable(String),
    Nowhere,
}

impl<'a> Cuda<'a> {
    fn new(body: &'a Body, types: &'a Types) -> Self {
        Cuda {
            body,
            types,
            out: String::new(),
            depth: 1,
            temporaries: 0,
            loops: Vec::new(),
            jumps: Vec::new(),
        }
    }
}

impl Cuda<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:width$}{text}", "", width = 4 * self.depth);
    }

    /// A name that no other variable has, and no word of the language is.
    fn local(&self, local: LocalId) -> String {
        let name = self.body.locals[local].name.to_string();
        let name = name.trim_start_matches("r#");
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if plain { format!("{name}_{local}") } else { format!("v_{local}") }
    }

    fn ty(&self, id: TypeId) -> String {
        match self.types.get(id) {
            Inferred::Scalar(scalar) => scalar.name().to_owned(),
            Inferred::Float => "f32".to_owned(),
            Inferred::Integer | Inferred::Unknown | Inferred::Unit => "i32".to_owned(),
            Inferred::Open(Open::Parameter(callee, i)) => format!("${{p{callee}.{i}}}"),
            Inferred::Open(Open::Result(callee, None)) => format!("${{r{callee}}}"),
            Inferred::Open(Open::Result(callee, Some(i))) => format!("${{r{callee}.{i}}}"),
            Inferred::Open(Open::Constant(index)) => format!("${{t{index}}}"),
            Inferred::Tuple(parts) => tuple(parts.iter().map(|part| self.ty(*part))),
            // Its type is made of what makes it.
            Inferred::Row(_) => "auto".to_owned(),
        }
    }

    fn temporary(&mut self) -> String {
        self.temporaries += 1;
        format!("t{}", self.temporaries)
    }

    fn statements(&mut self, block: &Block, to: &To) {
        for statement in &block.statements {
            self.statement(statement);
        }
        if let Some(value) = &block.value {
            self.put(value, to);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Let { pattern, value, .. } => self.binds(pattern, value.as_ref()),
            Statement::Expr(expr) => self.put(expr, &To::Nowhere),
        }
    }

    fn block(&mut self, block: &Block, to: &To) {
        self.depth += 1;
        self.statements(block, to);
        self.depth -= 1;
    }

    fn binds(&mut self, pattern: &Pattern, value: Option<&Expr>) {
        match (pattern, value) {
            (pattern, Some(value)) if matches!(self.types.get(value.ty), Inferred::Row(_)) => {
                self.names_row(pattern, value);
            }
            (Pattern::One(Some(local)), value) => {
                let (name, ty) = (self.local(*local), self.ty(self.body.locals[*local].ty));
                match value {
                    // Declared first: its value takes statements.
                    Some(value) if !is_inline(value) => {
                        self.line(&format!("{ty} {name};"));
                        self.put(value, &To::Variable(name));
                    }
                    Some(value) => {
                        let value = self.value(value);
                        self.line(&format!("{ty} {name} = {value};"));
                    }
                    None => self.line(&format!("{ty} {name};")),
                }
            }
            (Pattern::Tuple(parts, _), Some(value)) => {
                let whole = self.kept(value);
                self.parts(parts, &whole);
            }
            (_, Some(value)) => self.put(value, &To::Nowhere),
            (Pattern::Tuple(parts, _), None) => parts.iter().for_each(|part| self.binds(part, None)),
            (_, None) => {}
        }
    }

    /// Names the parts of a value.
    fn parts(&mut self, parts: &[Pattern], whole: &str) {
        for (i, part) in parts.iter().enumerate() {
            match part {
                Pattern::One(Some(local)) => {
                    let (name, ty) = (self.local(*local), self.ty(self.body.locals[*local].ty));
                    self.line(&format!("{ty} {name} = {whole}.v{i};"));
                }
                Pattern::One(None) => {}
                Pattern::Tuple(parts, _) => self.parts(parts, &format!("{whole}.v{i}")),
            }
        }
    }

    /// Returns the value in a variable of its own.
    fn kept(&mut self, value: &Expr) -> String {
        let (name, ty) = (self.temporary(), self.ty(value.ty));
        if is_inline(value) {
            let value = self.value(value);
            self.line(&format!("const {ty} {name} = {value};"));
        } else {
            self.line(&format!("{ty} {name};"));
            self.put(value, &To::Variable(name.clone()));
        }
        name
    }

    /// Evaluates an expression as statements.
    fn put(&mut self, expr: &Expr, to: &To) {
        match &expr.kind {
            Kind::If { condition, then, other } if !is_inline(expr) => {
                let condition = self.value(condition);
                self.line(&format!("if ({condition}) {{"));
                self.block(then, to);
                if let Some(other) = other {
                    self.line("} else {");
                    self.depth += 1;
                    self.put(other, to);
                    self.depth -= 1;
                }
                self.line("}");
            }
            Kind::Match { value, arms } => self.choice(value, arms, to),
            Kind::Block(block) if !is_inline(expr) => {
                self.line("{");
                self.block(block, to);
                self.line("}");
            }
            Kind::For(counted) => self.counted(counted),
            Kind::Assign { to, op, value, .. } => {
                let value = self.value(value);
                let name = self.local(*to);
                let value = match op {
                    Some(op) => self.applied(*op, name.clone(), value, self.body.locals[*to].ty),
                    None => value,
                };
                self.line(&format!("{name} = {value};"));
            }
            Kind::Break(number) => self.leave(*number, true),
            Kind::Continue(number) => self.leave(*number, false),
            Kind::Return(value) => self.put(value, &To::Return),
            Kind::Tuple(parts) if parts.is_empty() => {}
            _ => {
                let value = self.value(expr);
                match to {
                    To::Return => self.line(&format!("return {value};")),
                    To::Variable(name) => self.line(&format!("{name} = {value};")),
                    To::Nowhere => self.line(&format!("(void)({value});")),
                }
            }
        }
    }

    fn leave(&mut self, number: usize, breaks: bool) {
        let word = if breaks { "break" } else { "continue" };
        if self.loops.last() == Some(&number) {
            return self.line(&format!("{word};"));
        }
        self.jumps.push((number, breaks));
        self.line(&format!("goto {word}_{number};"));
    }

    fn choice(&mut self, value: &Expr, arms: &[Arm], to: &To) {
        let chosen = self.kept(value);
        for (i, arm) in arms.iter().enumerate() {
            let start = if i == 0 { "" } else { "} else " };
            // rustc has seen that one of the arms is taken.
            if i + 1 == arms.len() {
                self.line(&format!("{start}{{"));
            } else {
                let tests: Vec<String> = arm.patterns.iter().map(|p| self.test(&chosen, p)).collect();
                self.line(&format!("{start}if ({}) {{", tests.join(" || ")));
            }
            self.depth += 1;
            self.put(&arm.value, to);
            self.depth -= 1;
        }
        if !arms.is_empty() {
            self.line("}");
        }
    }

    fn test(&mut self, chosen: &str, pattern: &ArmPattern) -> String {
        match pattern {
            ArmPattern::Any => "true".to_owned(),
            ArmPattern::Is(value) => format!("{chosen} == {}", self.value(value)),
            ArmPattern::Range { from, to, inclusive } => {
                let from = from.as_ref().map(|from| format!("{chosen} >= {}", self.value(from)));
                let sign = if *inclusive { "<=" } else { "<" };
                let to = to.as_ref().map(|to| format!("{chosen} {sign} {}", self.value(to)));
                let both: Vec<String> = from.into_iter().chain(to).collect();
                if both.is_empty() { "true".to_owned() } else { format!("({})", both.join(" && ")) }
            }
        }
    }

    fn counted(&mut self, counted: &For) {
        let (from, to) = (self.value(&counted.from), self.value(&counted.to));
        let (count, number) = (format!("i{}", counted.number), counted.number);
        // Wider than the counter, which may end at its largest value.
        let (from, to) = (format!("(i64){from}"), format!("(i64){to}"));
        let head = match (counted.reversed, counted.inclusive) {
            (false, inclusive) => {
                let sign = if inclusive { "<=" } else { "<" };
                format!("for (i64 {count} = {from}; {count} {sign} {to}; ++{count}) {{")
            }
            (true, true) => format!("for (i64 {count} = {to}; {count} >= {from}; --{count}) {{"),
            (true, false) => format!("for (i64 {count} = {to} - 1; {count} >= {from}; --{count}) {{"),
        };
        self.line(&head);
        self.depth += 1;
        if let Some(local) = counted.counter {
            let (name, ty) = (self.local(local), self.ty(self.body.locals[local].ty));
            self.line(&format!("const {ty} {name} = ({ty}){count};"));
        }
        self.loops.push(number);
        // A jump to its end passes no declaration.
        self.line("{");
        self.block(&counted.body, &To::Nowhere);
        self.line("}");
        self.loops.pop();
        if self.jumps.contains(&(number, false)) {
            self.line(&format!("continue_{number}:;"));
        }
        self.depth -= 1;
        self.line("}");
        if self.jumps.contains(&(number, true)) {
            self.line(&format!("break_{number}:;"));
        }
    }

    /// The expression as one of CUDA's; statements that it needs come before.
    fn value(&mut self, expr: &Expr) -> String {
        match &expr.kind {
            Kind::Bool(value) => value.to_string(),
            Kind::Integer(value, _) => self.integer(*value, expr.ty),
            Kind::Float(value, _) => float(*value, self.types.scalar(expr.ty)),
            Kind::Local(local) => self.local(*local),
            Kind::Constant(index) => format!("${{k{index}}}"),
            Kind::Neg(value) if self.types.scalar(expr.ty).is_some_and(Scalar::is_float) => {
                format!("(-{})", self.value(value))
            }
            Kind::Neg(value) => format!("lang::neg({})", self.value(value)),
            Kind::Not(value) => format!("lang::bit_not({})", self.value(value)),
            Kind::Binary(op, left, right) => {
                let [left_text, right_text] = self.both(left, right);
                self.applied(*op, left_text, right_text, left.ty)
            }
            Kind::Logic { and, left, right } if is_inline(right) => {
                let (left, right) = (self.value(left), self.value(right));
                format!("({left} {} {right})", if *and { "&&" } else { "||" })
            }
            Kind::Logic { and, left, right } => {
                let name = self.temporary();
                let left = self.value(left);
                self.line(&format!("bool {name} = {left};"));
                self.line(&format!("if ({}{name}) {{", if *and { "" } else { "!" }));
                self.depth += 1;
                self.put(right, &To::Variable(name.clone()));
                self.depth -= 1;
                self.line("}");
                name
            }
            Kind::Cast(value, to) | Kind::From(to, value) => {
                format!("lang::to_{}({})", to.name(), self.value(value))
            }
            Kind::Method(method, _, all) => format!("lang::{}({})", method.name, self.list(all)),
            Kind::Call(callee, all) => format!("${{c{callee}}}({})", self.list(all)),
            Kind::Tuple(parts) => format!("{}{{{}}}", self.ty(expr.ty), self.list(parts)),
            Kind::If { condition, then, other: Some(other) } if is_inline(expr) => {
                let condition = self.value(condition);
                let then = then.value.as_ref().map(|value| self.value(value)).unwrap_or_default();
                format!("({condition} ? {then} : {})", self.value(other))
            }
            Kind::Block(block) if is_inline(expr) => {
                block.value.as_ref().map(|value| self.value(value)).unwrap_or_default()
            }
            // A statement without a value only leaves.
            Kind::Assign { .. } | Kind::Break(_) | Kind::Continue(_) | Kind::Return(_) | Kind::For(_) => {
                self.put(expr, &To::Nowhere);
                format!("{}()", self.ty(expr.ty))
            }
            Kind::Row(call) => self.row(call),
            Kind::View(call) => self.view(call),
            Kind::If { .. } | Kind::Match { .. } | Kind::Block(_) => {
                let (name, ty) = (self.temporary(), self.ty(expr.ty));
                self.line(&format!("{ty} {name};"));
                self.put(expr, &To::Variable(name.clone()));
                name
            }
        }
    }

    /// An integer, whose text is given, as the index of a row or of a view: none is negative.
    fn index(&self, index: &Expr, text: &str) -> String {
        let function = match self.types.get(index.ty) {
            // The runtime has no function for it. In 64 bits, no integer is taken for another.
            Inferred::Open(Open::Parameter(..)) => {
                let wide = format!("(i64)({text})");
                return format!("({wide} < 0ll || {wide} > 4294967295ll ? 0xffffffffu : (u32)({text}))");
            }
            Inferred::Scalar(Scalar::I64) => "to_index".to_owned(),
            Inferred::Open(Open::Result(callee, None)) => format!("${{i{callee}}}"),
            Inferred::Open(Open::Result(callee, Some(part))) => format!("${{i{callee}.{part}}}"),
            Inferred::Open(Open::Constant(constant)) => format!("${{j{constant}}}"),
            _ => "to_u32".to_owned(),
        };
        format!("lang::{function}({text})")
    }

    /// Returns operands in the order in which Rust evaluates them: those before a changing one have already
    /// been read.
    fn texts<'e>(&mut self, all: impl Iterator<Item = &'e Expr> + Clone) -> Vec<String> {
        let last = all.clone().enumerate().filter(|(_, e)| !is_inline(e)).map(|(i, _)| i).last();
        let mut texts = Vec::new();
        for (i, one) in all.enumerate() {
            let early = last.is_some_and(|last| i < last);
            texts.push(if early { self.kept(one) } else { self.value(one) });
        }
        texts
    }

    fn list(&mut self, all: &[Expr]) -> String {
        self.texts(all.iter()).join(", ")
    }

    fn both(&mut self, left: &Expr, right: &Expr) -> [String; 2] {
        let texts = self.texts([left, right].into_iter());
        <[String; 2]>::try_from(texts).unwrap_or_default()
    }

    fn applied(&self, op: Binary, left: String, right: String, ty: TypeId) -> String {
        let is_float = self.types.scalar(ty).is_some_and(Scalar::is_float);
        let ieee = is_float && op.is_arithmetic() && op != Binary::Rem;
        if op.is_shift() {
            format!("lang::{}({left}, lang::to_u32({right}))", op.function())
        } else if ieee || !op.is_arithmetic() && !op.is_bitwise() {
            format!("({left} {} {right})", op.sign())
        } else {
            format!("lang::{}({left}, {right})", op.function())
        }
    }

    fn integer(&self, value: i128, ty: TypeId) -> String {
        match self.types.get(ty) {
            Inferred::Scalar(Scalar::U32) => format!("{value}u"),
            Inferred::Scalar(Scalar::U8) => format!("(u8){value}"),
            Inferred::Scalar(Scalar::I8) => format!("(i8)({value})"),
            Inferred::Scalar(Scalar::I64) if value == i128::from(i64::MIN) => {
                "(-9223372036854775807ll - 1)".to_owned()
            }
            Inferred::Scalar(Scalar::I64) => format!("({value}ll)"),
            Inferred::Open(_) => format!("({})({value}ll)", self.ty(ty)),
            _ if value == i128::from(i32::MIN) => "(-2147483647 - 1)".to_owned(),
            _ if value < 0 => format!("({value})"),
            _ => value.to_string(),
        }
    }
}

/// A literal that reads as the same number.
fn float(Float { single, double }: Float, ty: Option<Scalar>) -> String {
    let text = if ty == Some(Scalar::F64) { format!("{double:?}") } else { format!("{single:?}f") };
    if single.is_sign_negative() { format!("({text})") } else { text }
}

/// Returns whether it is a single expression of CUDA without side effects.
fn is_inline(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Bool(_) | Kind::Integer(..) | Kind::Float(..) | Kind::Local(_) | Kind::Constant(_) => true,
        Kind::Neg(value) | Kind::Not(value) | Kind::Cast(value, _) | Kind::From(_, value) => is_inline(value),
        Kind::Binary(_, left, right) | Kind::Logic { left, right, .. } => is_inline(left) && is_inline(right),
        Kind::Method(_, _, all) | Kind::Call(_, all) => all.iter().all(is_inline),
        Kind::Tuple(all) => !all.is_empty() && all.iter().all(is_inline),
        Kind::If { condition, then, other: Some(other) } => {
            is_inline(condition) && is_value(then) && is_inline(other)
        }
        Kind::Block(block) => is_value(block),
        // The effects of its closures stay in them.
        Kind::Row(call) => is_inline(&call.row) && call.values.iter().all(is_inline),
        Kind::View(call) => call.index.iter().chain(call.other.as_deref()).all(is_inline),
        _ => false,
    }
}

/// Returns whether a block consists only of its value.
fn is_value(block: &Block) -> bool {
    block.statements.is_empty() && block.value.as_ref().is_some_and(|value| is_inline(value))
}

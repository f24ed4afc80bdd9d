//! One walk over a body, in the order in which rustc types it.

use proc_macro2::Span;

use super::{
    check::{Check, What, bridge, named},
    table::{Inferred, Mismatch, Open, Types},
};
use crate::{
    diag::{Code, Errors},
    kernel::{
        methods::{Class, Method, Of},
        model::{
            Arm, ArmPattern, Binary, Binding, Block, Body, Expr, Extent, For, Header, Kind, LocalId, Pattern,
            Scalar, Statement, TypeId,
        },
    },
};

pub(super) struct Inference<'a> {
    pub(super) types: Types,
    /// The checks to be made when all types are known.
    pub(super) checks: Vec<Check>,
    header: &'a Header,
    body: &'a Body,
    errors: &'a mut Errors,
    /// Of the function, or of the closure that is walked.
    pub(super) output: TypeId,
}

impl<'a> Inference<'a> {
    pub(super) fn new(header: &'a Header, body: &'a Body, errors: &'a mut Errors) -> Self {
        let mut types = Types::new(body.types);
        let of = |types: &mut Types, scalar, extent| match extent {
            Extent::One => Inferred::Scalar(scalar),
            Extent::Row => Inferred::Row(types.add(Inferred::Scalar(scalar))),
        };
        for (input, local) in header.inputs.iter().zip(&body.locals) {
            let ty = of(&mut types, input.scalar, input.extent);
            types.set(local.ty, ty);
        }
        for local in body.locals.iter().skip(header.inputs.len()).take(header.index.len()) {
            types.set(local.ty, Inferred::Scalar(Scalar::I32));
        }
        let mut parts: Vec<TypeId> = Vec::new();
        for output in &header.outputs {
            let ty = of(&mut types, output.scalar, output.extent);
            parts.push(types.add(ty));
        }
        let output = if let [one] = parts[..] { one } else { types.add(Inferred::Tuple(parts)) };
        Self { types, checks: Vec::new(), header, body, errors, output }
    }

    /// The type of a view's values.
    pub(super) fn element_of(&self, view: LocalId) -> Scalar {
        self.header.inputs[view].scalar
    }

    pub(super) fn run(&mut self) {
        let body = self.body;
        self.block(&body.block);
        self.check_end();
        if body.block.value.is_none() && !body.block.diverges() {
            let help = "end with the value, without a `;`, or `return` it on every path";
            let at = self.header.output_span;
            self.errors.push_span(Code::KernelMismatch, at, "the body ends without this result", help);
        } else {
            let at = body.block.value.as_ref().map_or(body.block.span, |value| value.span);
            self.same(body.block.ty, self.output, at);
        }
    }

    /// Refuses a value at the end of a body without a result.
    fn check_end(&mut self) {
        let Some((end, at)) = self.body.end else { return };
        if !matches!(self.types.get(end), Inferred::Unit | Inferred::Unknown) {
            let help = "end with `;`, and compute a result in a kernel of its own";
            let message = "a kernel that writes a state has no result";
            self.errors.push_span(Code::KernelMismatch, at, message, help);
        }
    }

    /// Unifies two types, or reports at `at` that they differ.
    pub(super) fn agree(&mut self, found: TypeId, wanted: TypeId, at: Span) -> bool {
        if let Err(Mismatch(left, right)) = self.types.unify(found, wanted) {
            let message = format!("{} and {} do not match here", named(&left), named(&right));
            let help = bridge(&left, &right);
            self.errors.push_span(Code::KernelMismatch, at, message, help);
            return false;
        }
        true
    }

    pub(super) fn same(&mut self, found: TypeId, wanted: TypeId, at: Span) {
        let _ = self.agree(found, wanted, at);
    }

    pub(super) fn is(&mut self, id: TypeId, scalar: Scalar, at: Span) {
        let wanted = self.types.add(Inferred::Scalar(scalar));
        self.same(id, wanted, at);
    }

    pub(super) fn check(&mut self, ty: TypeId, what: What, span: Span) {
        self.checks.push(Check { ty, what, span });
    }

    fn block(&mut self, block: &Block) {
        for statement in &block.statements {
            match statement {
                Statement::Let { pattern, annotated, value } => {
                    if let Some(value) = value {
                        self.expr(value);
                    }
                    self.binds(pattern, *annotated, value.as_ref());
                }
                Statement::Expr(expr) => self.expr(expr),
            }
        }
        match &block.value {
            Some(value) => {
                self.expr(value);
                self.same(block.ty, value.ty, value.span);
            }
            None if block.diverges() => {}
            None => self.types.set(block.ty, Inferred::Unit),
        }
    }

    fn binds(&mut self, pattern: &Pattern, annotated: Option<(Scalar, Span)>, value: Option<&Expr>) {
        let at = value.map(|value| value.span);
        match pattern {
            Pattern::One(binding) => {
                let ty = self.bound(*binding);
                if let Some((scalar, span)) = annotated {
                    let wanted = self.types.add(Inferred::Scalar(scalar));
                    self.same(ty, wanted, span);
                }
                if let (Some(value), Some(at)) = (value, at) {
                    self.same(value.ty, ty, at);
                }
            }
            Pattern::Tuple(_, span) => {
                let tuple = self.pattern_type(pattern);
                if let Some(value) = value {
                    self.same(value.ty, tuple, *span);
                }
            }
        }
    }

    /// The type of what a pattern takes apart.
    pub(super) fn pattern_type(&mut self, pattern: &Pattern) -> TypeId {
        match pattern {
            Pattern::One(binding) => self.bound(*binding),
            Pattern::Tuple(parts, _) => {
                let parts = parts.iter().map(|part| self.pattern_type(part)).collect();
                self.types.add(Inferred::Tuple(parts))
            }
        }
    }

    fn bound(&mut self, binding: Binding) -> TypeId {
        match binding {
            Some(local) => self.body.locals[local].ty,
            None => self.types.add(Inferred::Unknown),
        }
    }

    pub(super) fn expr(&mut self, expr: &Expr) {
        let (ty, at) = (expr.ty, expr.span);
        match &expr.kind {
            Kind::Bool(_) => self.is(ty, Scalar::Bool, at),
            Kind::Integer(value, suffix) => {
                self.types.set(ty, suffix.map_or(Inferred::Integer, Inferred::Scalar));
                self.check(ty, What::Holds(*value), at);
            }
            Kind::Float(value, suffix) => {
                self.types.set(ty, suffix.map_or(Inferred::Float, Inferred::Scalar));
                self.check(ty, What::IsDetermined, at);
                self.check(ty, What::Reaches(*value), at);
            }
            Kind::Local(local) => self.same(ty, self.body.locals[*local].ty, at),
            Kind::Constant(index) => {
                let known = self.body.constants[*index].scalar;
                self.types.set(ty, known.map_or(Inferred::Open(Open::Constant(*index)), Inferred::Scalar));
            }
            Kind::Neg(value) => self.unary(expr, value, Class::Signed, "`-`"),
            Kind::Not(value) => self.unary(expr, value, Class::Bits, "`!`"),
            Kind::Binary(op, left, right) => self.binary(expr, *op, left, right),
            Kind::Logic { left, right, .. } => {
                for side in [left, right] {
                    self.expr(side);
                    self.is(side.ty, Scalar::Bool, side.span);
                }
                self.is(ty, Scalar::Bool, at);
            }
            Kind::Cast(value, to) => self.cast(expr, value, *to),
            Kind::From(to, value) => {
                self.expr(value);
                self.types.set(ty, Inferred::Scalar(*to));
                self.check(value.ty, What::IsDetermined, value.span);
            }
            Kind::Method(method, named, all) => self.method(expr, method, *named, all),
            Kind::Call(callee, all) => self.call(expr, *callee, all),
            Kind::Tuple(parts) => self.tuple(expr, parts),
            Kind::Block(block) => {
                self.block(block);
                self.same(ty, block.ty, at);
            }
            Kind::If { condition, then, other } => self.condition(expr, condition, then, other.as_deref()),
            Kind::Match { value, arms } => self.arms(expr, value, arms),
            Kind::For(counted) => {
                self.counted(counted);
                self.types.set(ty, Inferred::Unit);
            }
            Kind::Assign { to, op, value, operator } => {
                self.assign(*to, *op, value, *operator);
                self.types.set(ty, Inferred::Unit);
            }
            Kind::Row(call) => self.row(expr, call),
            Kind::View(call) => self.view(expr, call),
            Kind::Break(_) | Kind::Continue(_) => {}
            Kind::Return(value) => {
                self.expr(value);
                self.same(value.ty, self.output, value.span);
            }
        }
    }

    fn unary(&mut self, expr: &Expr, value: &Expr, class: Class, sign: &'static str) {
        self.expr(value);
        self.same(expr.ty, value.ty, expr.span);
        self.check(expr.ty, What::IsOf(class, sign), expr.span);
    }

    fn binary(&mut self, expr: &Expr, op: Binary, left: &Expr, right: &Expr) {
        self.expr(left);
        self.expr(right);
        if op.is_shift() {
            self.operand(op, left.ty, left.span);
            self.check(right.ty, What::IsOf(Class::Integer, "the number of places"), right.span);
            self.same(expr.ty, left.ty, expr.span);
            return;
        }
        // One error: of the result nothing is known then.
        if !self.agree(right.ty, left.ty, right.span) {
            return;
        }
        if op.is_arithmetic() || op.is_bitwise() {
            self.operand(op, left.ty, expr.span);
            self.same(expr.ty, left.ty, expr.span);
        } else {
            self.check(left.ty, What::CanBeCompared, expr.span);
            self.is(expr.ty, Scalar::Bool, expr.span);
        }
    }

    /// Restricts the types on which an operator can be used.
    fn operand(&mut self, op: Binary, ty: TypeId, at: Span) {
        let class = if op.is_arithmetic() {
            Class::Number
        } else if op.is_shift() {
            Class::Integer
        } else {
            Class::Bits
        };
        self.check(ty, What::IsOf(class, op.quoted()), at);
    }

    fn cast(&mut self, expr: &Expr, value: &Expr, to: Scalar) {
        self.expr(value);
        // rustc gives a literal the type to which it is converted, if it can have that type.
        let literal = match &value.kind {
            Kind::Integer(..) => to.is_integer(),
            Kind::Float(..) => to.is_float(),
            _ => false,
        };
        if literal && matches!(self.types.get(value.ty), Inferred::Integer | Inferred::Float) {
            self.types.set(value.ty, Inferred::Scalar(to));
        }
        self.check(value.ty, What::BecomesBy(to), expr.span);
        self.types.set(expr.ty, Inferred::Scalar(to));
    }

    fn method(&mut self, expr: &Expr, method: &'static Method, named: Option<Scalar>, all: &[Expr]) {
        all.iter().for_each(|one| self.expr(one));
        let Some((receiver, arguments)) = all.split_first() else { return };
        if self.is_open(receiver) && (named.is_some() || method.class.is_of_one_type()) {
            self.types.assume(receiver.ty);
        }
        if let Some(scalar) = named {
            self.is(receiver.ty, scalar, receiver.span);
        }
        if method.name == "from_bits" {
            self.is(receiver.ty, Scalar::U32, receiver.span);
            return self.types.set(expr.ty, Inferred::Scalar(Scalar::F32));
        }
        self.receiver(method, receiver);
        for (argument, of) in arguments.iter().zip(method.arguments) {
            self.of(argument.ty, *of, receiver.ty, argument.span);
        }
        self.of(expr.ty, method.result, receiver.ty, expr.span);
    }

    /// Returns whether only rustc knows the type.
    fn is_open(&self, expr: &Expr) -> bool {
        matches!(self.types.get(expr.ty), Inferred::Open(_))
    }

    /// Restricts the type on which a method is called.
    fn receiver(&mut self, method: &Method, receiver: &Expr) {
        let is_open = self.is_open(receiver);
        let scalar = self.types.scalar(receiver.ty);
        match method.class {
            // One type has it.
            Class::F32 if scalar != Some(Scalar::F64) => {
                self.is(receiver.ty, Scalar::F32, receiver.span);
            }
            Class::I32 if !scalar.is_some_and(Scalar::is_signed_integer) => {
                self.is(receiver.ty, Scalar::I32, receiver.span);
            }
            // A float is an `f32`, and an integer an `i32`, unless it is known to be another, or rustc knows it.
            Class::Float if scalar != Some(Scalar::F64) && !is_open => {
                self.is(receiver.ty, Scalar::F32, receiver.span);
            }
            Class::SignedInteger if !scalar.is_some_and(Scalar::is_signed_integer) && !is_open => {
                self.is(receiver.ty, Scalar::I32, receiver.span);
            }
            class => self.check(receiver.ty, What::Has(class, method.name), receiver.span),
        }
    }

    /// Only rustc knows the types of another kernel.
    fn call(&mut self, expr: &Expr, callee: usize, all: &[Expr]) {
        for (i, argument) in all.iter().enumerate() {
            self.expr(argument);
            let open = self.types.add(Inferred::Open(Open::Parameter(callee, i)));
            self.same(argument.ty, open, argument.span);
        }
        self.types.set(expr.ty, Inferred::Open(Open::Result(callee, None)));
    }

    fn tuple(&mut self, expr: &Expr, parts: &[Expr]) {
        parts.iter().for_each(|part| self.expr(part));
        let tuple = match parts.is_empty() {
            true => Inferred::Unit,
            false => Inferred::Tuple(parts.iter().map(|part| part.ty).collect()),
        };
        self.types.set(expr.ty, tuple);
    }

    fn assign(&mut self, to: LocalId, op: Option<Binary>, value: &Expr, operator: Span) {
        self.expr(value);
        let target = self.body.locals[to].ty;
        if !op.is_some_and(Binary::is_shift) {
            self.same(value.ty, target, value.span);
        } else {
            self.check(value.ty, What::IsOf(Class::Integer, "the number of places"), value.span);
        }
        if let Some(op) = op {
            self.operand(op, target, operator);
        }
    }

    fn of(&mut self, ty: TypeId, of: Of, own: TypeId, at: Span) {
        match of {
            Of::Own => self.same(ty, own, at),
            Of::Bool => self.is(ty, Scalar::Bool, at),
            Of::F32 => self.is(ty, Scalar::F32, at),
            Of::I32 => self.is(ty, Scalar::I32, at),
            Of::U32 => self.is(ty, Scalar::U32, at),
        }
    }

    fn condition(&mut self, expr: &Expr, condition: &Expr, then: &Block, other: Option<&Expr>) {
        self.expr(condition);
        self.is(condition.ty, Scalar::Bool, condition.span);
        self.block(then);
        let Some(other) = other else {
            if !then.diverges() {
                let unit = self.types.add(Inferred::Unit);
                let at = then.value.as_ref().map_or(then.span, |value| value.span);
                self.same(then.ty, unit, at);
            }
            return self.types.set(expr.ty, Inferred::Unit);
        };
        self.expr(other);
        if !then.diverges() {
            self.same(expr.ty, then.ty, expr.span);
        }
        if !other.diverges() {
            self.same(other.ty, expr.ty, other.span);
        }
    }

    fn arms(&mut self, expr: &Expr, value: &Expr, arms: &[Arm]) {
        self.expr(value);
        self.check(value.ty, What::CanBeMatched, value.span);
        for arm in arms {
            arm.patterns.iter().for_each(|pattern| self.pattern(pattern, value.ty));
            self.expr(&arm.value);
            if !arm.value.diverges() {
                self.same(arm.value.ty, expr.ty, arm.value.span);
            }
        }
    }

    fn pattern(&mut self, pattern: &ArmPattern, value: TypeId) {
        let bounds = match pattern {
            ArmPattern::Any => return,
            ArmPattern::Is(one) => [Some(one), None],
            ArmPattern::Range { from, to, .. } => [from.as_ref(), to.as_ref()],
        };
        for bound in bounds.into_iter().flatten() {
            self.expr(bound);
            self.same(bound.ty, value, bound.span);
        }
    }

    fn counted(&mut self, counted: &For) {
        let ty = self.bound(counted.counter);
        self.same(counted.ty, ty, counted.from.span);
        for bound in [&counted.from, &counted.to] {
            self.expr(bound);
            self.same(bound.ty, ty, bound.span);
            self.check(bound.ty, What::IsOf(Class::Counter, "the bound of a loop"), bound.span);
        }
        self.block(&counted.body);
        if let Some(value) = &counted.body.value {
            let unit = self.types.add(Inferred::Unit);
            self.same(value.ty, unit, value.span);
        }
    }
}

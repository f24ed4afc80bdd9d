//! Expressions.

use proc_macro2::Span;
use syn::{
    BinOp, Expr as SynExpr, ExprAssign, ExprBinary, ExprCall, ExprLit, ExprMethodCall, ExprUnary, Lit, UnOp,
    spanned::Spanned,
};

use super::{Parser, header};
use crate::{
    diag::{Code, nearest},
    kernel::{
        methods,
        model::{Binary, Expr, Float, Kind, Scalar},
    },
};

/// Values of a tuple.
const MOST_PARTS: usize = 4;

impl Parser<'_> {
    pub(super) fn made(&mut self, kind: Kind, span: Span) -> Expr {
        Expr { kind, ty: self.fresh(), span }
    }

    /// A value; a row is none.
    pub(super) fn expr(&mut self, expr: &SynExpr) -> Expr {
        let value = self.value_or_row(expr);
        if self.is_row(&value) {
            self.refuse_row(expr);
        }
        value
    }

    pub(super) fn value_or_row(&mut self, expr: &SynExpr) -> Expr {
        let span = expr.span();
        self.attributes(attributes(expr));
        let kind = match expr {
            SynExpr::Paren(inner) => return self.value_or_row(&inner.expr),
            SynExpr::Group(inner) => return self.value_or_row(&inner.expr),
            SynExpr::Lit(lit) => self.literal(lit, false),
            SynExpr::Path(path) if path.qself.is_none() => self.named(&path.path, expr),
            SynExpr::Unary(unary) => self.unary(unary),
            SynExpr::Binary(binary) => self.binary(binary),
            SynExpr::Assign(assign) => self.assign(assign),
            SynExpr::Cast(cast) => {
                let value = Box::new(self.expr(&cast.expr));
                match header::scalar(&cast.ty, self.errors) {
                    Some(to) => Kind::Cast(value, to),
                    None => return *value,
                }
            }
            SynExpr::MethodCall(call) => self.method(call),
            SynExpr::Call(call) => self.call(call),
            SynExpr::If(expr) => self.condition(expr),
            SynExpr::Match(expr) => self.choice(expr),
            SynExpr::ForLoop(expr) => self.counted(expr),
            SynExpr::Block(block) if block.label.is_none() => Kind::Block(self.block(&block.block, false)),
            SynExpr::Tuple(tuple) if tuple.elems.len() == 1 || tuple.elems.len() > MOST_PARTS => {
                let help = "write two to four values, or variables of their own";
                self.refuse(tuple, "this tuple", help);
                self.nothing(span).kind
            }
            SynExpr::Tuple(tuple) => Kind::Tuple(tuple.elems.iter().map(|e| self.expr(e)).collect()),
            SynExpr::Return(_) if self.form.has_rows() && !self.names.in_closure() => {
                let help = "end with the value: `if … { a } else { b }`; a closure can return early";
                self.refuse(expr, "`return` here: its results are rows, or single values of them", help);
                self.nothing(span).kind
            }
            SynExpr::Return(expr) if self.written.is_some() => self.return_written(expr),
            SynExpr::Return(expr) => match &expr.expr {
                Some(value) => Kind::Return(Box::new(self.expr(value))),
                None => Kind::Return(Box::new(self.nothing(span))),
            },
            SynExpr::Break(expr) => {
                if let Some(value) = &expr.expr {
                    self.refuse(
                        value,
                        "a `break` with a value",
                        "assign to a variable above the loop, then `break`",
                    );
                }
                self.jump(expr.label.as_ref(), span, Kind::Break)
            }
            SynExpr::Continue(expr) => self.jump(expr.label.as_ref(), span, Kind::Continue),
            other => return self.other(other),
        };
        self.made(kind, span)
    }

    /// A variable, or a constant.
    fn named(&mut self, path: &syn::Path, expr: &SynExpr) -> Kind {
        match self.variable(path) {
            Some(local) if self.names.locals[local].view.is_some() => {
                self.refuse_view(local, expr);
                self.nothing(expr.span()).kind
            }
            Some(local) => Kind::Local(local),
            None => Kind::Constant(self.names.constant(path)),
        }
    }

    fn jump(&mut self, label: Option<&syn::Lifetime>, span: Span, to: fn(usize) -> Kind) -> Kind {
        match self.names.target(label) {
            Some(number) => to(number),
            None => {
                let message = "there is no loop here that this leaves";
                self.errors.push_span(Code::KernelLoop, span, message, "`return` leaves the function");
                self.nothing(span).kind
            }
        }
    }

    fn literal(&mut self, lit: &ExprLit, negative: bool) -> Kind {
        match &lit.lit {
            Lit::Bool(value) => return Kind::Bool(value.value),
            Lit::Int(int) => {
                // `1f32` is an integer by its tokens.
                if matches!(int.suffix(), "f32" | "f64") {
                    return self.float(int.base10_digits(), int.suffix(), lit, negative);
                }
                let scalar = self.suffix(int.suffix(), lit);
                if let Ok(value) = int.base10_parse::<i128>() {
                    return Kind::Integer(if negative { -value } else { value }, scalar);
                }
                let help = "the largest type of kernels is `i64`";
                self.errors.push(Code::KernelLiteral, lit, "the number is too large", help);
            }
            Lit::Float(float) => return self.float(float.base10_digits(), float.suffix(), lit, negative),
            other => {
                let help = "write a number, `true` or `false`; a byte `b'a'` is `97`";
                self.errors.push(Code::KernelLiteral, other, "kernels have numbers and `bool` only", help);
            }
        }
        Kind::Integer(0, None)
    }

    fn suffix(&mut self, suffix: &str, lit: &ExprLit) -> Option<Scalar> {
        let scalar = Scalar::named(suffix).filter(|s| !matches!(s, Scalar::Bool | Scalar::Random));
        if scalar.is_none() && !suffix.is_empty() {
            let message = format!("kernels have no type `{suffix}`");
            let help = "write the suffix `f32`, `f64`, `i8`, `i32`, `i64`, `u8` or `u32`, or none";
            self.errors.push(Code::KernelLiteral, lit, message, help);
        }
        scalar
    }

    fn float(&mut self, digits: &str, suffix: &str, lit: &ExprLit, negative: bool) -> Kind {
        let scalar = self.suffix(suffix, lit);
        // Once the type is known, so is what is too large for it.
        let (single, double) =
            (digits.parse().unwrap_or(f32::INFINITY), digits.parse().unwrap_or(f64::INFINITY));
        let value = match negative {
            true => Float { single: -single, double: -double },
            false => Float { single, double },
        };
        Kind::Float(value, scalar)
    }

    fn unary(&mut self, unary: &ExprUnary) -> Kind {
        match unary.op {
            // The smallest `i32` is written so.
            UnOp::Neg(_) if matches!(&*unary.expr, SynExpr::Lit(_)) => {
                let SynExpr::Lit(lit) = &*unary.expr else { return Kind::Integer(0, None) };
                if matches!(lit.lit, Lit::Bool(_)) {
                    return Kind::Neg(Box::new(self.expr(&unary.expr)));
                }
                self.literal(lit, true)
            }
            UnOp::Neg(_) => Kind::Neg(Box::new(self.expr(&unary.expr))),
            UnOp::Not(_) => Kind::Not(Box::new(self.expr(&unary.expr))),
            _ => {
                self.refuse(unary.op, "references", "remove the `*`: a kernel's variables are values");
                self.expr(&unary.expr).kind
            }
        }
    }

    fn binary(&mut self, binary: &ExprBinary) -> Kind {
        use Binary::*;
        let (op, assigns) = match binary.op {
            BinOp::And(_) | BinOp::Or(_) => {
                let and = matches!(binary.op, BinOp::And(_));
                let (left, right) = (Box::new(self.expr(&binary.left)), Box::new(self.expr(&binary.right)));
                return Kind::Logic { and, left, right };
            }
            BinOp::Add(_) => (Add, false),
            BinOp::Sub(_) => (Sub, false),
            BinOp::Mul(_) => (Mul, false),
            BinOp::Div(_) => (Div, false),
            BinOp::Rem(_) => (Rem, false),
            BinOp::BitXor(_) => (Xor, false),
            BinOp::BitAnd(_) => (And, false),
            BinOp::BitOr(_) => (Or, false),
            BinOp::Shl(_) => (Shl, false),
            BinOp::Shr(_) => (Shr, false),
            BinOp::Eq(_) => (Eq, false),
            BinOp::Lt(_) => (Lt, false),
            BinOp::Le(_) => (Le, false),
            BinOp::Ne(_) => (Ne, false),
            BinOp::Ge(_) => (Ge, false),
            BinOp::Gt(_) => (Gt, false),
            BinOp::AddAssign(_) => (Add, true),
            BinOp::SubAssign(_) => (Sub, true),
            BinOp::MulAssign(_) => (Mul, true),
            BinOp::DivAssign(_) => (Div, true),
            BinOp::RemAssign(_) => (Rem, true),
            BinOp::BitXorAssign(_) => (Xor, true),
            BinOp::BitAndAssign(_) => (And, true),
            BinOp::BitOrAssign(_) => (Or, true),
            BinOp::ShlAssign(_) => (Shl, true),
            BinOp::ShrAssign(_) => (Shr, true),
            _ => {
                self.refuse(binary.op, "this operator", "write one of Rust's operators");
                return self.expr(&binary.left).kind;
            }
        };
        if assigns {
            return self.assigned(&binary.left, Some(op), &binary.right, binary.op.span());
        }
        Kind::Binary(op, Box::new(self.expr(&binary.left)), Box::new(self.expr(&binary.right)))
    }

    fn assign(&mut self, assign: &ExprAssign) -> Kind {
        self.assigned(&assign.left, None, &assign.right, assign.eq_token.span())
    }

    fn assigned(&mut self, left: &SynExpr, op: Option<Binary>, right: &SynExpr, operator: Span) -> Kind {
        let value = Box::new(self.expr(right));
        let to = match left {
            SynExpr::Path(path) => self.variable(&path.path),
            _ => None,
        };
        match to {
            Some(view) if self.names.locals[view].view.is_some() => {
                self.refuse_view(view, left);
                value.kind
            }
            Some(to) => Kind::Assign { to, op, value, operator },
            None => {
                self.refuse(left, "this on the left of an assignment", "assign to a variable: `x = …;`");
                value.kind
            }
        }
    }

    fn method(&mut self, call: &ExprMethodCall) -> Kind {
        if let Some(generics) = &call.turbofish {
            self.refuse(generics, "generic arguments", "leave them out");
        }
        if let Some(view) = self.view(&call.receiver) {
            return self.view_method(view, call);
        }
        let receiver = self.value_or_row(&call.receiver);
        if self.is_row(&receiver) {
            return self.row_method(receiver, call);
        }
        let mut all = vec![receiver];
        all.extend(call.args.iter().map(|argument| self.expr(argument)));
        self.known_method(&call.method, None, all)
    }

    /// A call of the method `name`, whose receiver comes first; of the type `of` if a path names it.
    fn known_method(&mut self, name: &syn::Ident, of: Option<Scalar>, mut all: Vec<Expr>) -> Kind {
        let text = name.to_string();
        let Some(method) = methods::method(&text) else {
            let known: Vec<&str> = methods::ALL.iter().map(|method| method.name).collect();
            let help = match (methods::instead(&text), nearest(&text, &known)) {
                (Some(instead), _) => instead.to_owned(),
                (None, Some(near)) => format!("did you mean `{near}`?"),
                (None, None) => {
                    "call a `#[kernel]` function, `f(x)`; the methods are listed in docs/guide/own-kernels.md"
                        .into()
                }
            };
            self.errors.push(Code::KernelMethod, name, format!("kernels have no method `{text}`"), help);
            return all.swap_remove(0).kind;
        };
        if all.len() != method.arguments.len() + 1 {
            let message = format!("`{text}` has {} arguments besides the receiver", method.arguments.len());
            self.errors.push(Code::KernelMethod, name, message, "write as many as the method of Rust has");
            return all.swap_remove(0).kind;
        }
        Kind::Method(method, of, all)
    }

    fn call(&mut self, call: &ExprCall) -> Kind {
        let mut all: Vec<Expr> = call.args.iter().map(|argument| self.expr(argument)).collect();
        let SynExpr::Path(function) = &*call.func else {
            self.refuse(&call.func, "functions as values", "call a `#[kernel]` function by its name");
            return self.nothing(call.span()).kind;
        };
        let path = &function.path;
        if let Some(generic) = path.segments.iter().find(|s| !s.arguments.is_empty()) {
            self.refuse(&generic.arguments, "generic arguments", "leave them out");
        }
        // `f32::max(a, b)`.
        if let (2, Some(scalar)) = (path.segments.len(), Scalar::named(&path.segments[0].ident.to_string())) {
            let name = &path.segments[1].ident;
            return match (&*name.to_string(), all.len()) {
                ("from_bits", 1) if scalar == Scalar::F32 => Kind::Method(&methods::FROM_BITS, None, all),
                ("from", 1) => Kind::From(scalar, Box::new(all.swap_remove(0))),
                (_, 0) => {
                    let help = "call a `#[kernel]` function by its name";
                    self.errors.push(Code::KernelMethod, name, "a call without a value", help);
                    Kind::Integer(0, None)
                }
                _ => self.known_method(name, Some(scalar), all),
            };
        }
        if path.is_ident(&self.name) {
            let message = format!("`{}` calls itself", self.name);
            let help = "write a loop with a constant bound: `for _ in 0..32 { … }`";
            self.errors.push(Code::KernelRecursion, path, message, help);
            return self.nothing(call.span()).kind;
        }
        if self.names.local(path).is_some() {
            self.refuse(path, "functions as values", "call a `#[kernel]` function by its name");
            return self.nothing(call.span()).kind;
        }
        Kind::Call(self.names.callee(path), all)
    }

    /// Refuses an expression that the language does not have.
    fn other(&mut self, expr: &SynExpr) -> Expr {
        match expr {
            SynExpr::While(expr) => self.endless(expr.while_token, "while"),
            SynExpr::Loop(expr) => self.endless(expr.loop_token, "loop"),
            SynExpr::Macro(expr) => self.refuse_macro(&expr.mac),
            SynExpr::Closure(expr) => {
                let help = if self.form.has_rows() {
                    "pass it to a method of a row: `x.map(|v| v * v)`"
                } else {
                    "write a `#[kernel]` function, and call it by its name"
                };
                self.refuse(expr, "closures", help);
            }
            SynExpr::Reference(expr) => {
                self.refuse(expr.and_token, "references", "remove the `&`: values of kernels are copied");
            }
            SynExpr::Index(index) if self.view(&index.expr).is_some() => {
                if let Some(view) = self.view(&index.expr) {
                    self.refuse_view_index(view, expr);
                }
            }
            SynExpr::Index(_) | SynExpr::Array(_) | SynExpr::Repeat(_) => {
                let help = "a kernel sees one element of each input; write a `match` on the index for a table of constants";
                self.refuse(expr, "arrays or indexing", help);
            }
            SynExpr::Field(field) => {
                self.refuse(&field.member, "fields", "name the parts of a tuple: `let (a, b) = f(x);`");
            }
            SynExpr::Struct(_) => self.refuse(expr, "structs", "write the values as variables of their own"),
            SynExpr::Range(_) => {
                self.refuse(expr, "a range here", "write two comparisons, or a `for` over it")
            }
            SynExpr::Unsafe(expr) => {
                self.refuse(expr.unsafe_token, "`unsafe`", "a kernel has nothing but values: remove it");
            }
            SynExpr::Try(expr) => {
                self.refuse(
                    expr.question_token,
                    "`?`",
                    "kernels cannot fail: return a value that says so, such as `f32::NAN`",
                );
            }
            SynExpr::Let(expr) => {
                self.refuse(expr.let_token, "`let` in a condition", "write a comparison");
            }
            SynExpr::Block(block) => {
                self.refuse(
                    &block.label,
                    "a label on a block",
                    "use `return` in a `#[kernel]` function of its own",
                );
            }
            SynExpr::Path(path) => self.refuse(path, "a path with `<…>`", "name the constant directly"),
            other => {
                self.refuse(other, "this expression", "write arithmetic, `if`, `match`, loops and calls")
            }
        }
        self.nothing(expr.span())
    }
}

fn attributes(expr: &SynExpr) -> &[syn::Attribute] {
    match expr {
        SynExpr::Assign(e) => &e.attrs,
        SynExpr::Binary(e) => &e.attrs,
        SynExpr::Block(e) => &e.attrs,
        SynExpr::Call(e) => &e.attrs,
        SynExpr::Cast(e) => &e.attrs,
        SynExpr::ForLoop(e) => &e.attrs,
        SynExpr::If(e) => &e.attrs,
        SynExpr::Lit(e) => &e.attrs,
        SynExpr::Match(e) => &e.attrs,
        SynExpr::MethodCall(e) => &e.attrs,
        SynExpr::Paren(e) => &e.attrs,
        SynExpr::Path(e) => &e.attrs,
        SynExpr::Return(e) => &e.attrs,
        SynExpr::Tuple(e) => &e.attrs,
        SynExpr::Unary(e) => &e.attrs,
        _ => &[],
    }
}

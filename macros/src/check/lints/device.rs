//! Lints about device data on the host.

use quote::ToTokens;
use syn::{
    BinOp, Block, Expr, Ident, Local, Macro, UnOp,
    visit::{self, Visit},
};

use super::{
    Context, name_of,
    scopes::{Known, Scopes, host_type},
    shapes, tables,
};
use crate::{
    diag::{Code, Errors, on_one_line},
    facts::operations,
    parse::{
        attributes, device,
        format_strings::{self, Shown},
        syntax::{self, bare, compares, is_assign},
    },
};

pub(super) fn check(block: &Block, context: &Context<'_>, errors: &mut Errors) {
    let mut scopes = Scopes::default();
    for param in &context.params {
        let name = param.to_string();
        let index = context.tensors.iter().position(|t| t.name == name);
        scopes.bind_param(name, index.map_or(Known::Other, |i| Known::Tensor(Some(i))));
    }
    let mut device = Device { context, scopes, errors, reported: Vec::new() };
    device.visit_block(block);
}

pub(super) struct Device<'c, 'e> {
    context: &'c Context<'c>,
    scopes: Scopes,
    pub(super) errors: &'e mut Errors,
    /// Symbols of `#[dims]` that were reported.
    reported: Vec<String>,
}

impl Device<'_, '_> {
    pub(super) fn is_tensor(&self, expr: &Expr) -> bool {
        self.scopes.is_tensor(expr)
    }

    /// Checks a separate expression.
    pub(super) fn expr(&mut self, expr: &Expr) {
        // The visitor's lifetime is that of the code that it visits.
        let mut inner = Device {
            context: self.context,
            scopes: std::mem::take(&mut self.scopes),
            errors: &mut *self.errors,
            reported: std::mem::take(&mut self.reported),
        };
        inner.visit_expr(expr);
        let Device { scopes, reported, .. } = inner;
        (self.scopes, self.reported) = (scopes, reported);
    }

    fn scoped(&mut self, f: impl FnOnce(&mut Self)) {
        let depth = self.scopes.depth();
        f(self);
        self.scopes.leave(depth);
    }

    fn method(&mut self, method: &Ident, receiver: &Expr, arguments: usize) {
        let (text, name) = (method.to_string(), name_of(receiver));
        if tables::DATA_DEPENDENT.contains(&text.as_str()) {
            self.data_dependent(method, &text, &name);
        } else if text == "to_string" {
            self.formats(method, &name);
        } else if tables::READS.contains(&text.as_str()) && arguments <= 1 {
            self.errors.push(
                Code::HostRead,
                method,
                format!("`{name}.{text}()` would read the tensor `{name}` on the host, and a replay runs no host code"),
                read_help(&name),
            );
        } else if text.len() > 1 && text.ends_with('_') || tables::IN_PLACE.contains(&text.as_str()) {
            let op = text.trim_end_matches('_');
            self.errors.push(
                Code::MutatesTensor,
                method,
                format!("`{name}.{text}(…)` would change the tensor `{name}`, and tensors never change"),
                format!(
                    "make a new one (`let {name} = ops::{op}(…)?;`), or hold it in a `State` and write with `ops::store`"
                ),
            );
        }
    }

    fn data_dependent(&mut self, at: impl ToTokens, op: &str, name: &str) {
        let help = if tables::ON_EAGER.contains(&op) {
            format!(
                "run it in a region, and give the result a fixed size: `let r = #[eager(cx)] cx.{op}(&{name}…)?;`, \
                 then `r.pad_to(n, fill)` in another; or keep the size with `ops::where_`"
            )
        } else {
            format!(
                "keep the size with `ops::where_`, or compute it from `cx.read(&{name})` in an `#[eager(cx)]` region"
            )
        };
        self.errors.push(
            Code::DataDependentShape,
            at,
            format!("the size of the result of `{op}` depends on values, and a recording has fixed shapes"),
            help,
        );
    }

    fn formats(&mut self, at: impl ToTokens, name: &str) {
        self.errors.push(
            Code::FormatsTensor,
            at,
            format!("`{name}` would be formatted by its elements, which are on the device"),
            format!("show its type and shape with `{{{name}:?}}`, or {}", read_help(name)),
        );
    }

    fn converts(&mut self, at: impl ToTokens, name: &str, ty: &str) {
        self.errors.push(
            Code::ConvertsTensor,
            at,
            format!("the tensor `{name}` cannot become a host `{ty}` without being read"),
            format!("{}; `ops::cast` changes the type of elements on the device", read_help(name)),
        );
    }

    fn operator(&mut self, at: impl ToTokens, op: &str, function: &str, operands: &[&Expr]) {
        let list: Vec<String> = operands.iter().map(|e| self.operand(e)).collect();
        // `h += x` is `h = ops::add(&h, x)?`.
        let assigned = match operands {
            [left, _] if op.ends_with('=') && !["==", "!=", "<=", ">="].contains(&op) => {
                format!("{} = ", name_or_text(left))
            }
            _ => String::new(),
        };
        self.errors.push(
            Code::Operator,
            at,
            format!("tensors have no operator `{op}`: operations can fail, so they return a `Result`"),
            format!("write `{assigned}ops::{function}({})?`", list.join(", ")),
        );
    }

    /// As an argument of an operation, which takes a reference: a parameter is one already.
    fn operand(&self, expr: &Expr) -> String {
        let text = name_or_text(expr);
        let mut of = bare(expr);
        while let Expr::Reference(r) = of {
            of = bare(&r.expr);
        }
        if self.scopes.is_reference(of) { text } else { format!("&{text}") }
    }

    fn binary(&mut self, e: &syn::ExprBinary) -> bool {
        let (left, right) = (self.is_tensor(&e.left), self.is_tensor(&e.right));
        if !(left || right) {
            return false;
        }
        let Some((op, function)) = function_of(&e.op) else { return false };
        let other = if left { &e.right } else { &e.left };
        // What a tensor is added to by `+=` is one.
        if left != right
            && (left || !is_assign(&e.op))
            && !compares(&e.op)
            && !matches!(bare(other), Expr::Reference(_) | Expr::Try(_))
        {
            // One side is a host number, most likely.
            let tensor = self.operand(if left { &e.left } else { &e.right });
            let number = bare(other).to_token_stream();
            let full = format!("&ops::full_like({tensor}, {number})?");
            let (one, two) = if left { (&tensor, &full) } else { (&full, &tensor) };
            let help = match &e.op {
                BinOp::Mul(_) | BinOp::MulAssign(_) => format!("ops::scale({tensor}, {number})?"),
                _ => format!("ops::{function}({one}, {two})?"),
            };
            let assigned =
                if op.ends_with('=') { format!("{} = ", name_or_text(&e.left)) } else { String::new() };
            let help = format!("`{assigned}{help}`");
            self.errors.push(
                Code::Operator,
                e,
                format!("tensors have no operator `{op}`: operations can fail, so they return a `Result`"),
                format!("write {help}"),
            );
            return true;
        }
        self.operator(e, op, function, &[&e.left, &e.right]);
        true
    }

    fn index(&mut self, e: &syn::ExprIndex) {
        let name = name_of(&e.expr);
        let help = match bare(&e.index) {
            Expr::Range(_) => format!("a part of it: `ops::narrow(&{name}, axis, start, len)?`"),
            index if self.is_tensor(index) => {
                let mask = name_of(index);
                format!(
                    "rows by a tensor of indices: `ops::embedding(&{mask}, &{name})?`; a boolean mask keeps the size with \
                     `ops::where_(&{mask}, &{name}, &other)?`, or selects in a region with `cx.masked_select`"
                )
            }
            _ => format!(
                "a row of it: `ops::narrow(&{name}, 0, i, 1)?`; a value on the host: {}",
                read_help(&name)
            ),
        };
        self.errors.push(
            Code::Indexing,
            e,
            format!("the tensor `{name}` cannot be indexed: its elements are on the device"),
            help,
        );
    }

    fn macro_call(&mut self, mac: &Macro) {
        let name = mac.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        for shown in format_strings::displayed(mac) {
            match shown {
                Shown::Argument(e) if self.is_tensor(&e) => self.formats(&e, &name_of(&e)),
                Shown::Inline(ident)
                    if matches!(self.scopes.lookup(&ident.to_string()), Some(Known::Tensor(_))) =>
                {
                    self.formats(&ident, &ident.to_string());
                }
                _ => {}
            }
        }
        let arguments = format_strings::arguments(mac);
        match (name.trim_start_matches("debug_"), arguments.as_slice()) {
            ("assert", [condition, ..]) => self.condition(condition, &format!("{name}!")),
            ("assert_eq" | "assert_ne", [a, b, ..]) if self.is_tensor(a) || self.is_tensor(b) => {
                let op = if name.ends_with("eq") { "eq" } else { "ne" };
                self.operator(&mac.path, "==", op, &[a, b]);
            }
            _ => {}
        }
    }

    fn symbol(&mut self, ident: &Ident) {
        let name = ident.to_string();
        let free = self.scopes.lookup(&name).is_none();
        if free && self.context.symbols.contains(&name) && !self.reported.contains(&name) {
            self.reported.push(name.clone());
            self.errors.push(
                Code::DimsSymbol,
                ident,
                format!("`{name}` is a symbol of `#[dims]`, found at each call, and is not a value in the body"),
                format!("take the size from a tensor, as in `x.dim(0)`; if `{name}` is a constant, write `{{{name}}}` in `#[dims]`"),
            );
        }
    }
}

impl<'a> Visit<'a> for Device<'_, '_> {
    fn visit_block(&mut self, block: &'a Block) {
        self.scoped(|d| visit::visit_block(d, block));
    }

    fn visit_local(&mut self, local: &'a Local) {
        if let Some(init) = &local.init {
            if self.size_in_let(local) {
                // Reported, together with the whole value.
            } else if let syn::Pat::Type(t) = &local.pat
                && let Some(ty) = host_type(&t.ty)
                && let Some(receiver) = into(&init.expr)
                && self.is_tensor(receiver)
            {
                self.converts(&init.expr, &name_of(receiver), &ty);
            } else {
                self.visit_expr(&init.expr);
            }
            if let Some((_, diverge)) = &init.diverge {
                self.visit_expr(diverge);
            }
        }
        self.scopes.bind_local(local);
    }

    fn visit_arm(&mut self, arm: &'a syn::Arm) {
        self.scoped(|d| {
            d.scopes.bind_pat(&arm.pat);
            visit::visit_arm(d, arm);
        });
    }

    fn visit_macro(&mut self, mac: &'a Macro) {
        self.macro_call(mac);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if matches!(attributes::boundary(expr), Some(attributes::Boundary::Eager(_))) {
            return;
        }
        if self.control(expr) {
            return;
        }
        match expr {
            Expr::Cast(c) if !self.is_tensor(&c.expr) => self.size_as_number(expr),
            Expr::Range(_) => self.size_as_number(expr),
            Expr::MethodCall(m) if self.is_tensor(&m.receiver) => {
                self.method(&m.method, &m.receiver, m.args.len())
            }
            Expr::Call(c) => self.call(c),
            Expr::Cast(c) if self.is_tensor(&c.expr) => {
                self.converts(c, &name_of(&c.expr), &c.ty.to_token_stream().to_string());
            }
            Expr::Binary(b) if self.binary(b) => return,
            Expr::Unary(u) if self.is_tensor(&u.expr) => match u.op {
                UnOp::Neg(_) => self.operator(u, "-", "neg", &[&u.expr]),
                UnOp::Not(_) => self.steered(u, &u.expr),
                _ => {}
            },
            Expr::Index(i) if self.is_tensor(&i.expr) => self.index(i),
            Expr::Path(p) if p.qself.is_none() => {
                if let Some(ident) = p.path.get_ident() {
                    self.symbol(ident);
                }
            }
            _ => {}
        }
        visit::visit_expr(self, expr);
    }

    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
    fn visit_item(&mut self, _: &'a syn::Item) {}
}

impl<'a> Device<'_, '_> {
    /// Checks control flow and closures, which have scopes of their own; returns whether the expression is
    /// one of them.
    fn control(&mut self, expr: &'a Expr) -> bool {
        let on_device = device::is_flow(expr);
        match expr {
            Expr::If(e) => {
                self.scoped(|d| {
                    d.decided(&e.cond, "if", on_device);
                    d.visit_block(&e.then_branch);
                });
                if let Some((_, other)) = &e.else_branch {
                    self.visit_expr(other);
                }
            }
            Expr::While(e) => self.scoped(|d| {
                d.decided(&e.cond, "while", on_device);
                d.visit_block(&e.body);
            }),
            Expr::Match(e) => {
                if on_device {
                    self.visit_expr(&e.expr);
                } else {
                    self.matched(&e.expr, &e.arms);
                }
                e.arms.iter().for_each(|a| self.visit_arm(a));
            }
            Expr::ForLoop(e) => {
                self.iterated(&e.expr);
                self.scoped(|d| {
                    d.scopes.bind_pat(&e.pat);
                    d.visit_block(&e.body);
                });
            }
            Expr::Closure(c) => {
                self.scoped(|d| {
                    c.inputs.iter().for_each(|p| d.scopes.bind_pat(p));
                    d.visit_expr(&c.body);
                });
            }
            _ => return false,
        }
        true
    }
}

impl Device<'_, '_> {
    fn call(&mut self, call: &syn::ExprCall) {
        if let Some(op) = operations::operation(call) {
            let text = op.to_string();
            let first = call.args.first().map_or_else(|| "t".to_owned(), name_of);
            if tables::DATA_DEPENDENT.contains(&text.as_str()) {
                return self.data_dependent(op, &text, &first);
            }
            let known: Vec<_> = call.args.iter().map(|a| self.dims(a)).collect();
            return shapes::check(op, call, &known, self.errors);
        }
        // `f32::from(x)`, `Vec::try_from(&x)`.
        if let (Expr::Path(path), [argument]) = (bare(&call.func), &*call.args.iter().collect::<Vec<_>>())
            && let [owner, function] = &*path.path.segments.iter().collect::<Vec<_>>()
            && ["from", "try_from"].iter().any(|n| function.ident == n)
            && self.is_tensor(argument)
            && let Some(ty) = host_type(&syn::parse_quote!(#owner))
        {
            self.converts(call, &name_of(argument), &ty);
        }
    }

    fn steered(&mut self, at: impl ToTokens, tensor: &Expr) {
        let name = name_or_text(tensor);
        self.errors.push(
            Code::Operator,
            at,
            "tensors have no operator `!`: operations can fail, so they return a `Result`",
            format!("compare on the device, as in `ops::eq(&{name}, &ops::zeros_like(&{name})?)?`"),
        );
    }

    /// A condition of the host, or of the device, whose form is checked with its control flow. Its `let`s are in scope
    /// afterwards.
    fn decided(&mut self, cond: &Expr, word: &str, on_device: bool) {
        match bare(cond) {
            _ if !on_device => self.condition(cond, word),
            Expr::Binary(_) | Expr::Unary(_) | Expr::Let(_) => self.bind_conditions(cond),
            other => self.expr(other),
        }
    }

    /// Brings what the `let`s of a condition bind into scope.
    pub(super) fn bind_conditions(&mut self, cond: &Expr) {
        match cond {
            Expr::Let(l) => self.scopes.bind_pat(&l.pat),
            Expr::Binary(b) => {
                self.bind_conditions(&b.left);
                self.bind_conditions(&b.right);
            }
            Expr::Paren(p) => self.bind_conditions(&p.expr),
            _ => {}
        }
    }
}

impl<'c> Device<'c, '_> {
    fn dims(&self, expr: &Expr) -> Option<shapes::Declared<'c>> {
        let Known::Tensor(Some(index)) = self.scopes.known(expr) else { return None };
        let param = self.context.tensors.get(index)?;
        Some(shapes::Declared { name: param.name.clone(), sizes: param.dims.as_deref()? })
    }
}

fn read_help(name: &str) -> String {
    format!(
        "read it in a region, `let v = #[eager(cx)] cx.read(&{name})?;`, or after the call with `step.read`"
    )
}

/// `x` of `x.into()` and `x.try_into()?`.
fn into(expr: &Expr) -> Option<&Expr> {
    match bare(expr) {
        Expr::MethodCall(m) if ["into", "try_into"].iter().any(|n| m.method == n) => Some(&m.receiver),
        Expr::MethodCall(m) if ["unwrap", "expect"].iter().any(|n| m.method == n) => into(&m.receiver),
        Expr::Try(t) => into(&t.expr),
        _ => None,
    }
}

fn name_or_text(expr: &Expr) -> String {
    match bare(expr) {
        Expr::Reference(r) => name_or_text(&r.expr),
        Expr::Path(p) if p.path.get_ident().is_some() => name_of(expr),
        Expr::Field(f) if syntax::field_path(f).is_some() => on_one_line(f),
        _ => "…".to_owned(),
    }
}

/// The function for an operator.
fn function_of(op: &BinOp) -> Option<(&'static str, &'static str)> {
    Some(match op {
        BinOp::Add(_) => ("+", "add"),
        BinOp::Sub(_) => ("-", "sub"),
        BinOp::Mul(_) => ("*", "mul"),
        BinOp::Div(_) => ("/", "div"),
        BinOp::AddAssign(_) => ("+=", "add"),
        BinOp::SubAssign(_) => ("-=", "sub"),
        BinOp::MulAssign(_) => ("*=", "mul"),
        BinOp::DivAssign(_) => ("/=", "div"),
        BinOp::Eq(_) => ("==", "eq"),
        BinOp::Ne(_) => ("!=", "ne"),
        BinOp::Lt(_) => ("<", "lt"),
        BinOp::Le(_) => ("<=", "le"),
        BinOp::Gt(_) => (">", "gt"),
        BinOp::Ge(_) => (">=", "ge"),
        _ => return None,
    })
}

//! The function as Rust: as it was written, except where Rust's definition differs between builds, or does
//! not cover every value.
//!
//! Numbers and variables carry the inferred types, so that rustc rejects a function for which it infers
//! different ones.

pub(super) mod columns;
mod index;
mod rows;

use proc_macro2::{Literal, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Ident, Lifetime};

use crate::{
    kernel::{
        methods::{Class, Method},
        model::{
            Arm, ArmPattern, Binary, Binding, Block, Body, Expr, Float, For, Form, Header, Kind, LocalId,
            Pattern, Scalar, Statement,
        },
        types::{Inferred, Types},
    },
    krate::{generated_at, private},
};

/// `fn scalar(…) -> … { … }`, or the function of a row.
pub(super) fn function(header: &Header, body: &Body, types: &Types) -> TokenStream {
    let native = Native { body, types, lang: lang(), columns: None };
    if header.form.has_rows() {
        return rows::function(header, &native);
    }
    if header.form == Form::Index {
        return index::function(header, &native);
    }
    let block = native.statements(&body.block);
    let signature = signature(header);
    quote!(#signature { #block })
}

/// Returns the path of the operations that the language defines itself.
fn lang() -> TokenStream {
    let p = private();
    quote!(#p::kernel::lang)
}

/// The function without its body.
pub(super) fn unwritten(header: &Header) -> TokenStream {
    let signature = match header.form {
        Form::Elements => signature(header),
        Form::Rows | Form::Reduce => rows::signature(header),
        Form::Index => index::signature(header),
    };
    quote!(#[allow(unused)] #signature { ::core::unreachable!() })
}

fn signature(header: &Header) -> TokenStream {
    let parameters = header.inputs.iter().map(|input| {
        let (name, ty) = (&input.name, ty(input.scalar, input.name.span()));
        let mutable = input.mutable.then(|| quote!(mut));
        quote!(#mutable #name: #ty)
    });
    let output = outputs(header);
    quote!(pub fn scalar(#(#parameters),*) -> #output)
}

pub(super) fn outputs(header: &Header) -> TokenStream {
    let at = header.output_span;
    let all: Vec<TokenStream> = header.outputs.iter().map(|output| ty(output.scalar, at)).collect();
    if let [one] = &all[..] { one.clone() } else { quote_spanned!(at=> (#(#all),*)) }
}

/// A type of the language, whatever that name means at the user's.
pub(super) fn ty(scalar: Scalar, at: Span) -> TokenStream {
    let name = Ident::new(scalar.name(), generated_at(at));
    if !scalar.is_stored() {
        let lang = lang();
        return quote_spanned!(at=> #lang::#name);
    }
    quote_spanned!(at=> ::core::primitive::#name)
}

struct Native<'a> {
    body: &'a Body,
    types: &'a Types,
    lang: TokenStream,
    /// Of the function of rows that lie side by side.
    columns: Option<columns::Columns>,
}

impl Native<'_> {
    fn statements(&self, block: &Block) -> TokenStream {
        let statements = block.statements.iter().map(|statement| self.statement(statement));
        let value = block.value.as_ref().map(|value| self.expr(value));
        quote!(#(#statements)* #value)
    }

    fn statement(&self, statement: &Statement) -> TokenStream {
        match statement {
            Statement::Let { pattern, value, .. } => {
                let value = value.as_ref().map(|value| {
                    let value = self.bound(pattern, value);
                    quote!(= #value)
                });
                let pattern = self.pattern(pattern);
                quote!(let #pattern #value;)
            }
            Statement::Expr(expr) => {
                let expr = self.expr(expr);
                quote!(#expr;)
            }
        }
    }

    fn block(&self, block: &Block) -> TokenStream {
        let statements = self.statements(block);
        quote_spanned!(block.span=> { #statements })
    }

    fn pattern(&self, pattern: &Pattern) -> TokenStream {
        match pattern {
            Pattern::One(binding) => {
                let name = self.binding(*binding);
                let ty = binding.and_then(|local| self.local_type(local));
                match ty {
                    Some(ty) => quote!(#name: #ty),
                    None => name,
                }
            }
            Pattern::Tuple(parts, _) => self.parts(parts),
        }
    }

    /// A tuple of names, which cannot have types.
    fn parts(&self, parts: &[Pattern]) -> TokenStream {
        let parts = parts.iter().map(|part| match part {
            Pattern::One(binding) => self.binding(*binding),
            Pattern::Tuple(parts, _) => self.parts(parts),
        });
        quote!((#(#parts),*))
    }

    fn binding(&self, binding: Binding) -> TokenStream {
        let Some(local) = binding else { return quote!(_) };
        let local = &self.body.locals[local];
        let (name, mutable) = (&local.name, local.mutable.then(|| quote!(mut)));
        quote!(#mutable #name)
    }

    fn local_type(&self, local: LocalId) -> Option<TokenStream> {
        let local = &self.body.locals[local];
        self.types.scalar(local.ty).map(|scalar| ty(scalar, local.name.span()))
    }

    fn expr(&self, expr: &Expr) -> TokenStream {
        let at = expr.span;
        match &expr.kind {
            Kind::Bool(value) => quote_spanned!(at=> #value),
            Kind::Integer(value, suffix) => {
                let suffix = suffix.or(self.types.scalar(expr.ty)).map_or("", Scalar::name);
                number(*value < 0, format!("{}{suffix}", value.unsigned_abs()), at)
            }
            Kind::Float(value, _) => float(value, self.types.scalar(expr.ty), at),
            Kind::Local(local) => {
                let of_row = self.columns.as_ref().and_then(|columns| columns.local(self, *local, at));
                of_row.unwrap_or_else(|| self.local(*local, at))
            }
            Kind::Constant(index) => self.body.constants[*index].path.to_token_stream(),
            Kind::Neg(value) => self.negated(value, at),
            Kind::Not(value) => {
                let value = self.expr(value);
                quote_spanned!(at=> (!(#value)))
            }
            Kind::Binary(op, left, right) => self.binary(*op, left, right, at),
            Kind::Logic { and, left, right } => {
                let [left, right] = [left, right].map(|side| self.expr(side));
                let sign = if *and { quote!(&&) } else { quote!(||) };
                quote_spanned!(at=> ((#left) #sign (#right)))
            }
            Kind::Cast(value, to) => {
                let (value, to) = (self.expr(value), ty(*to, at));
                quote_spanned!(at=> ((#value) as #to))
            }
            Kind::From(to, value) => {
                let (value, to) = (self.expr(value), ty(*to, at));
                quote_spanned!(at=> <#to as ::core::convert::From<_>>::from(#value))
            }
            Kind::Method(method, _, all) => self.method(method, all, at),
            Kind::Call(callee, all) => {
                let (alias, all) = (callee_alias(*callee, at), all.iter().map(|one| self.expr(one)));
                quote_spanned!(at=> #alias::scalar(#(#all),*))
            }
            Kind::Tuple(all) => {
                let all = all.iter().map(|one| self.expr(one));
                quote_spanned!(at=> (#(#all),*))
            }
            Kind::If { condition, then, other } => self.condition(condition, then, other.as_deref(), at),
            Kind::Match { value, arms } => {
                let (value, arms) = (self.expr(value), arms.iter().map(|arm| self.arm(arm)));
                quote_spanned!(at=> (match #value { #(#arms)* }))
            }
            Kind::Block(block) => self.block(block),
            Kind::For(counted) => self.counted(counted),
            Kind::Assign { to, op, value, operator } => self.assign(*to, *op, value, *operator),
            Kind::Break(number) => jump(&quote_spanned!(at=> break), *number, at),
            Kind::Continue(number) => jump(&quote_spanned!(at=> continue), *number, at),
            Kind::Return(value) => {
                let value = self.expr(value);
                quote_spanned!(at=> return #value)
            }
            Kind::Row(call) => self.row(call, at),
            Kind::View(call) => self.view(call, at),
        }
    }

    fn local(&self, local: LocalId, at: Span) -> TokenStream {
        let mut name = self.body.locals[local].name.clone();
        name.set_span(name.span().located_at(at));
        quote!(#name)
    }

    fn negated(&self, value: &Expr, at: Span) -> TokenStream {
        let (tokens, lang) = (self.expr(value), &self.lang);
        if self.is_float(value) {
            quote_spanned!(at=> (-(#tokens)))
        } else {
            quote_spanned!(at=> #lang::neg(#tokens))
        }
    }

    fn binary(&self, op: Binary, left: &Expr, right: &Expr, at: Span) -> TokenStream {
        let ([mut left_tokens, right], lang) = ([left, right].map(|side| self.expr(side)), &self.lang);
        // Of such a type only rustc knows whether it is a tuple, which it would compare.
        if op.is_comparison() && self.is_open(left) {
            left_tokens = quote_spanned!(left.span=> #lang::value(#left_tokens));
        }
        self.applied(op, left_tokens, right, self.is_float(left), at)
    }

    fn method(&self, method: &Method, all: &[Expr], at: Span) -> TokenStream {
        let (name, lang) = (Ident::new(method.name, at), &self.lang);
        let Some((receiver, rest)) = all.split_first() else { return quote_spanned!(at=> #lang::#name()) };
        let (receiver, rest) = (self.receiver(method, receiver), rest.iter().map(|one| self.expr(one)));
        match method.native {
            true => quote_spanned!(at=> (#receiver).#name(#(#rest),*)),
            false => quote_spanned!(at=> #lang::#name(#receiver #(, #rest)*)),
        }
    }

    /// The receiver of a method, so that rustc refuses a type that the kernel language has no such method for.
    fn receiver(&self, method: &Method, receiver: &Expr) -> TokenStream {
        let (tokens, lang, at) = (self.expr(receiver), &self.lang, receiver.span);
        match self.types.get(receiver.ty) {
            // Rust has some of the methods for further types, and may know that this is one of them.
            Inferred::Scalar(scalar) if self.types.is_assumed(receiver.ty) => {
                let (value, ty) = (Ident::new("__value", generated_at(at)), ty(*scalar, at));
                quote_spanned!(at=> { let #value: #ty = #tokens; #value })
            }
            // Rust has these methods for floats as well, by older names.
            Inferred::Open(_) if method.class == Class::SignedInteger => {
                quote_spanned!(at=> #lang::shl(#tokens, 0u32))
            }
            _ => tokens,
        }
    }

    fn condition(&self, condition: &Expr, then: &Block, other: Option<&Expr>, at: Span) -> TokenStream {
        let (condition, then) = (self.expr(condition), self.block(then));
        let other = other.map(|other| {
            let other = self.expr(other);
            quote!(else { #other })
        });
        quote_spanned!(at=> (if #condition #then #other))
    }

    fn is_open(&self, expr: &Expr) -> bool {
        matches!(self.types.get(expr.ty), Inferred::Open(_))
    }

    fn is_float(&self, expr: &Expr) -> bool {
        self.types.scalar(expr.ty).is_some_and(Scalar::is_float)
    }

    fn applied(
        &self,
        op: Binary,
        left: TokenStream,
        right: TokenStream,
        float: bool,
        at: Span,
    ) -> TokenStream {
        let lang = &self.lang;
        if !op.is_arithmetic() && !op.is_shift() || float {
            let sign: TokenStream = op.sign().parse().unwrap_or_default();
            let sign: TokenStream = sign
                .into_iter()
                .map(|mut token| {
                    token.set_span(at);
                    token
                })
                .collect();
            return quote_spanned!(at=> ((#left) #sign (#right)));
        }
        let name = Ident::new(op.function(), at);
        quote_spanned!(at=> #lang::#name(#left, #right))
    }

    fn assign(&self, to: LocalId, op: Option<Binary>, value: &Expr, at: Span) -> TokenStream {
        let name = &self.body.locals[to].name;
        let value = self.expr(value);
        let Some(op) = op else { return quote_spanned!(at=> #name = #value) };
        let float = self.types.scalar(self.body.locals[to].ty).is_some_and(Scalar::is_float);
        // The variable is read when the value is there.
        let operand = Ident::new("__value", generated_at(at));
        let applied = self.applied(op, quote!(#name), quote!(#operand), float, at);
        quote_spanned!(at=> #name = { let #operand = #value; #applied })
    }

    fn arm(&self, arm: &Arm) -> TokenStream {
        let patterns = arm.patterns.iter().map(|pattern| match pattern {
            ArmPattern::Any => quote!(_),
            ArmPattern::Is(value) => self.expr(value),
            ArmPattern::Range { from, to, inclusive } => {
                let [from, to] = [from, to].map(|bound| bound.as_ref().map(|bound| self.expr(bound)));
                let dots = if *inclusive { quote!(..=) } else { quote!(..) };
                quote!(#from #dots #to)
            }
        });
        let (patterns, value) = (quote_spanned!(arm.span=> #(#patterns)|*), self.expr(&arm.value));
        quote!(#patterns => #value,)
    }

    fn counted(&self, counted: &For) -> TokenStream {
        let at = counted.from.span;
        let [from, to] = [&counted.from, &counted.to].map(|bound| {
            let (tokens, lang) = (self.expr(bound), &self.lang);
            // Of such a type only rustc knows whether a loop counts in it.
            match self.types.get(bound.ty) {
                Inferred::Open(_) => quote_spanned!(bound.span=> #lang::bound(#tokens)),
                _ => tokens,
            }
        });
        let dots = if counted.inclusive { quote!(..=) } else { quote!(..) };
        let mut range = quote_spanned!(at=> ((#from) #dots (#to)));
        if counted.reversed {
            range = quote_spanned!(at=> ::core::iter::Iterator::rev(#range));
        }
        let (counter, body) = (self.binding(counted.counter), self.block(&counted.body));
        let label = label(counted.number, counted.label.as_ref().map_or(at, |label| label.span()));
        quote_spanned!(at=> #label: for #counter in #range #body)
    }
}

/// The label of a loop, so that `break` and `continue` mean it by number.
fn label(number: usize, at: Span) -> Lifetime {
    Lifetime::new(&format!("'loop_{number}"), generated_at(at))
}

/// `break` or `continue` of the loop with that number.
fn jump(word: &TokenStream, number: usize, at: Span) -> TokenStream {
    let label = label(number, at);
    quote_spanned!(at=> #word #label)
}

/// The type of a kernel that is called.
pub(super) fn callee_alias(number: usize, at: Span) -> Ident {
    Ident::new(&format!("Callee{number}"), generated_at(at))
}

/// A literal of the type that the value has: `f32`, unless it is an `f64`.
fn float(Float { single, double }: &Float, ty: Option<Scalar>, at: Span) -> TokenStream {
    let text = match ty {
        Some(Scalar::F64) => format!("{:?}f64", double.abs()),
        _ => format!("{:?}f32", single.abs()),
    };
    number(single.is_sign_negative(), text, at)
}

/// A number by its text.
fn number(negative: bool, text: String, at: Span) -> TokenStream {
    // The text of a number is one.
    let mut literal = text.parse().unwrap_or_else(|_| Literal::u8_suffixed(0));
    literal.set_span(at);
    let sign = negative.then(|| quote_spanned!(at=> -));
    quote!(#sign #literal)
}

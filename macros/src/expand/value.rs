//! Expressions of host code, control flow among them.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Attribute, Expr,
    visit_mut::{self, VisitMut},
};

use super::host_code::HostWriter;
use crate::{
    model::{Arm, Control, ControlKind, Otherwise, Value, Wrapper},
    parse::attributes,
};

impl HostWriter<'_> {
    pub(super) fn value(&self, value: &Value) -> TokenStream {
        match value {
            Value::Written(expr) => quote!(#expr),
            Value::Condition(pat, value) => {
                let value = self.value(value);
                quote!(let #pat = #value)
            }
            Value::Built(expr, regions) => self.built(expr, regions),
            Value::Region(region) => self.region(region),
            Value::Piecewise(call) => self.piecewise(call),
            Value::Block(block) => {
                let block = self.block(block);
                quote!({ #block })
            }
            Value::Wrapped { attrs, value, by } => self.wrapped(attrs, value, by),
            Value::Control(control) => self.control(control),
            Value::Return(attrs, value) => {
                let value = self.value(value);
                quote!(#(#attrs)* return #value)
            }
            Value::Break(attrs, label, value) => {
                let value = self.value(value);
                quote!(#(#attrs)* break #label #value)
            }
        }
    }

    /// An expression with regions in their places.
    fn built(&self, expr: &Expr, regions: &[Value]) -> TokenStream {
        struct Replace<I>(I);
        impl<I: Iterator<Item = TokenStream>> VisitMut for Replace<I> {
            fn visit_expr_mut(&mut self, e: &mut Expr) {
                if attributes::boundary(e).is_none() {
                    visit_mut::visit_expr_mut(self, e);
                } else if let Some(region) = self.0.next() {
                    *e = Expr::Verbatim(region);
                }
            }
        }
        let mut expr = expr.clone();
        Replace(regions.iter().map(|region| self.value(region))).visit_expr_mut(&mut expr);
        quote!(#expr)
    }

    fn wrapped(&self, attrs: &[Attribute], value: &Value, by: &Wrapper) -> TokenStream {
        let value = self.value(value);
        match by {
            Wrapper::Parentheses => quote!(#(#attrs)* (#value)),
            Wrapper::Discard => quote!(#(#attrs)* { let _ = #value; }),
            Wrapper::Try => quote!(#(#attrs)* (#value)?),
            Wrapper::Cast(ty) => quote!(#(#attrs)* (#value) as #ty),
            Wrapper::Unary(op) => quote!(#(#attrs)* #op (#value)),
        }
    }

    fn control(&self, Control { attrs, kind }: &Control) -> TokenStream {
        let kind = match kind {
            ControlKind::If { condition, then, otherwise } => {
                let (condition, then) = (self.value(condition), self.block(then));
                let otherwise = otherwise.as_ref().map(|otherwise| self.otherwise(otherwise));
                quote!(if #condition { #then } #otherwise)
            }
            ControlKind::Match { scrutinee, arms } => {
                let scrutinee = self.value(scrutinee);
                let arms = arms.iter().map(|arm| self.arm(arm));
                quote!(match #scrutinee { #(#arms)* })
            }
            ControlKind::For { label, pat, iterated, body } => {
                let (iterated, body) = (self.value(iterated), self.block(body));
                quote!(#label for #pat in #iterated { #body })
            }
            ControlKind::While { label, condition, body } => {
                let (condition, body) = (self.value(condition), self.block(body));
                quote!(#label while #condition { #body })
            }
            ControlKind::Loop { label, body } => {
                let body = self.block(body);
                quote!(#label loop { #body })
            }
            ControlKind::Block { label, body } => {
                let body = self.block(body);
                quote!(#label { #body })
            }
            ControlKind::Unsafe { body } => {
                let body = self.block(body);
                quote!(unsafe { #body })
            }
        };
        quote!(#(#attrs)* #kind)
    }

    fn otherwise(&self, otherwise: &Otherwise) -> TokenStream {
        match otherwise {
            Otherwise::Block(block) => {
                let block = self.block(block);
                quote!(else { #block })
            }
            Otherwise::If(control) => {
                let control = self.control(control);
                quote!(else #control)
            }
        }
    }

    fn arm(&self, Arm { attrs, pat, guard, body }: &Arm) -> TokenStream {
        let guard = guard.as_ref().map(|guard| {
            let guard = self.value(guard);
            quote!(if #guard)
        });
        let body = self.value(body);
        quote!(#(#attrs)* #pat #guard => #body,)
    }
}

//! Replaces field paths of live-ins by the fields themselves, and `self` by a plain name.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::quote;
use syn::{
    Expr, parse_quote_spanned,
    spanned::Spanned,
    visit_mut::{self, VisitMut},
};

use crate::{
    model::{LiveIn, this},
    parse::{format_strings, syntax},
};

/// The replacements to make.
pub(super) struct Replace {
    /// `(base, path, name of the reference to the field)`
    fields: Vec<(String, Vec<String>, Ident)>,
    /// The replacement of `self`.
    this: Option<Ident>,
}

impl Replace {
    pub(super) fn of(live_ins: &[LiveIn]) -> Self {
        let mut replace = Self { fields: Vec::new(), this: None };
        for live_in in live_ins {
            match live_in {
                LiveIn::Field { base, path, name, .. } => {
                    replace.fields.push((base.to_string(), path.clone(), name.clone()));
                }
                LiveIn::Whole { ident, .. } if ident == "self" => replace.this = Some(this()),
                _ => {}
            }
        }
        replace
    }

    fn field(&self, expr: &Expr) -> Option<&Ident> {
        let Expr::Field(f) = expr else { return None };
        let (base, path) = syntax::field_path(f)?;
        self.fields.iter().find(|(b, p, _)| base == b && *p == path).map(|(_, _, name)| name)
    }

    /// Replaces a path whose value is used: the field is cloned, as it cannot be moved out of the key.
    fn value(&mut self, expr: &mut Expr) {
        if let Some(name) = self.field(expr) {
            *expr = parse_quote_spanned!(expr.span()=> ::core::clone::Clone::clone(#name));
        } else {
            self.visit_expr_mut(expr);
        }
    }

    fn tokens(&self, tokens: TokenStream) -> TokenStream {
        let Some(this) = &self.this else { return tokens };
        tokens
            .into_iter()
            .map(|t| match t {
                TokenTree::Ident(i) if i == "self" => {
                    let mut name = this.clone();
                    name.set_span(this.span().located_at(i.span()));
                    TokenTree::Ident(name)
                }
                TokenTree::Group(g) => {
                    let mut group = Group::new(g.delimiter(), self.tokens(g.stream()));
                    group.set_span(g.span());
                    TokenTree::Group(group)
                }
                other => other,
            })
            .collect()
    }
}

impl Replace {
    /// An expression in front of `.` or `[`, where a dereference needs parentheses.
    fn base(&mut self, expr: &mut Expr) {
        if let Some(name) = self.field(expr) {
            *expr = parse_quote_spanned!(expr.span()=> (*#name));
        } else {
            self.visit_expr_mut(expr);
        }
    }
}

impl VisitMut for Replace {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if let Some(name) = self.field(expr) {
            // Without parentheses: rustc would call them unnecessary, in the user's code.
            *expr = parse_quote_spanned!(expr.span()=> *#name);
            return;
        }
        match expr {
            Expr::Field(f) => self.base(&mut f.base),
            Expr::Index(i) => {
                self.base(&mut i.expr);
                self.visit_expr_mut(&mut i.index);
            }
            Expr::Try(t) => self.value(&mut t.expr),
            Expr::Call(c) => {
                self.visit_expr_mut(&mut c.func);
                c.args.iter_mut().for_each(|a| self.value(a));
            }
            Expr::MethodCall(m) => {
                self.base(&mut m.receiver);
                m.args.iter_mut().for_each(|a| self.value(a));
            }
            Expr::ForLoop(f) => {
                self.value(&mut f.expr);
                self.visit_block_mut(&mut f.body);
            }
            Expr::Tuple(t) => t.elems.iter_mut().for_each(|e| self.value(e)),
            Expr::Array(a) => a.elems.iter_mut().for_each(|e| self.value(e)),
            Expr::Struct(s) => s.fields.iter_mut().for_each(|f| self.value(&mut f.expr)),
            Expr::Path(p) if p.path.is_ident("self") => {
                if let (Some(this), Some(own)) = (&self.this, p.path.get_ident()) {
                    let mut name = this.clone();
                    name.set_span(this.span().located_at(own.span()));
                    *expr = Expr::Path(parse_quote_spanned!(own.span()=> #name));
                }
            }
            other => visit_mut::visit_expr_mut(self, other),
        }
    }

    fn visit_local_mut(&mut self, local: &mut syn::Local) {
        if let Some(init) = &mut local.init {
            self.value(&mut init.expr);
            if let Some((_, diverge)) = &mut init.diverge {
                self.visit_expr_mut(diverge);
            }
        }
    }

    fn visit_macro_mut(&mut self, mac: &mut syn::Macro) {
        // `"{self}"`: the replacement of `self` is passed as an argument with that name.
        let shown = self.this.clone().filter(|_| format_strings::shows_self(mac));
        mac.tokens = self.tokens(std::mem::take(&mut mac.tokens));
        if let Some(this) = shown {
            let last = mac.tokens.clone().into_iter().last();
            let comma = !matches!(last, Some(TokenTree::Punct(p)) if p.as_char() == ',');
            let comma = comma.then(|| quote!(,));
            mac.tokens.extend(quote!(#comma self = #this));
        }
    }

    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

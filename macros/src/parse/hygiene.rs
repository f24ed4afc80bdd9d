//! Two variables with the same name in a function that a `macro_rules!` macro generated: the macro's own
//! variable, and one whose name was passed to it. rustc distinguishes them by hygiene; this code goes by
//! names, so the macro's variable is renamed first.
//!
//! Stable proc macros can recognise that two identifiers differ in hygiene only by how their spans are
//! printed. If the printed spans do not differ, names remain unchanged.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proc_macro2::{Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Block, Expr,
    visit::{self, Visit},
    visit_mut::{self, VisitMut},
};

use super::format_strings;

mod among;

use among::{Among, Around};

/// Returns the block with a distinct name for every variable; `None` if they are already distinct.
pub(crate) fn apart(block: &Block, params: &[&Ident]) -> Option<Block> {
    let mut bound = Bound::default();
    params.iter().for_each(|p| bound.add(p));
    bound.visit_block(block);
    bound.names.retain(|_, all| all.len() > 1);
    let mut names: HashMap<(String, u32), String> = HashMap::new();
    let mut taken: Option<BTreeSet<String>> = None;
    for (name, all) in &bound.names {
        let contexts: Option<Vec<u32>> = all.iter().map(context).collect();
        // Identifiers without a position in the source may be the same variable.
        let Some(contexts) = contexts else { continue };
        let first = contexts[0];
        for other in contexts.into_iter().filter(|c| *c != first).collect::<BTreeSet<_>>() {
            let taken = taken.get_or_insert_with(|| identifiers(block.to_token_stream()));
            let free =
                (2..).map(|n| format!("{name}_{n}")).find(|n| !taken.contains(n.trim_start_matches(LABEL)));
            let free = free.unwrap_or_else(|| name.clone());
            taken.insert(free.clone());
            names.insert((name.clone(), other), free);
        }
    }
    if names.is_empty() {
        return None;
    }
    let mut block = block.clone();
    Apart { names }.visit_block_mut(&mut block);
    Some(block)
}

/// Returns a number for the hygiene of an identifier or label that has this position in the source.
fn context(ident: &Ident) -> Option<u32> {
    let span = ident.span();
    let text = span.source_text()?;
    (*ident == text || text.strip_prefix('\'').is_some_and(|label| *ident == label))
        .then(|| number(span))
        .flatten()
}

/// `7` of `#7 bytes(10..12)`.
fn number(span: Span) -> Option<u32> {
    let text = format!("{span:?}");
    text.strip_prefix('#')?.split(' ').next()?.parse().ok()
}

fn identifiers(tokens: TokenStream) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for token in tokens {
        match token {
            TokenTree::Ident(i) => _ = found.insert(i.to_string()),
            TokenTree::Group(g) => found.extend(identifiers(g.stream())),
            _ => {}
        }
    }
    found
}

/// Before the names of labels, which share none with variables.
const LABEL: char = '\'';

/// The identifiers that bind names, in order.
#[derive(Default)]
struct Bound {
    names: BTreeMap<String, Vec<Ident>>,
}

impl Bound {
    fn add(&mut self, ident: &Ident) {
        self.names.entry(ident.to_string()).or_default().push(ident.clone());
    }
}

impl<'a> Visit<'a> for Bound {
    fn visit_pat_ident(&mut self, p: &'a syn::PatIdent) {
        self.add(&p.ident);
        visit::visit_pat_ident(self, p);
    }
    fn visit_label(&mut self, label: &'a syn::Label) {
        let ident = &label.name.ident;
        self.names.entry(format!("{LABEL}{ident}")).or_default().push(ident.clone());
    }
    fn visit_item(&mut self, _: &'a syn::Item) {}
}

/// Renames identifiers that stand for variables.
struct Apart {
    names: HashMap<(String, u32), String>,
}

impl Apart {
    fn new_name(&self, ident: &Ident) -> Option<Ident> {
        let name = ident.to_string();
        if !self.names.keys().any(|(n, _)| *n == name) {
            return None;
        }
        let new = self.names.get(&(name, number(ident.span())?))?;
        Some(Ident::new(new, ident.span()))
    }

    fn new_label(&self, ident: &Ident) -> Option<Ident> {
        let new = self.names.get(&(format!("{LABEL}{ident}"), number(ident.span())?))?;
        Some(Ident::new(new.trim_start_matches(LABEL), ident.span()))
    }

    fn label(&self, label: &mut syn::Lifetime) {
        if let Some(new) = self.new_label(&label.ident) {
            label.ident = new;
        }
    }

    fn rename(&self, ident: &mut Ident) {
        if let Some(new) = self.new_name(ident) {
            *ident = new;
        }
    }

    /// In a macro call, an identifier is a variable unless its context shows otherwise.
    fn tokens(&self, tokens: TokenStream, among: Among) -> TokenStream {
        let all: Vec<TokenTree> = tokens.into_iter().collect();
        let mut renamed = Vec::with_capacity(all.len());
        for (at, token) in all.iter().enumerate() {
            let around = Around { all: &all, at, among };
            if let Some(field) = around.short_field().filter(|field| self.new_name(field).is_some()) {
                // `S { h }` becomes `S { h: renamed }`.
                renamed.extend([TokenTree::from(field.clone()), Punct::new(':', Spacing::Alone).into()]);
            }
            renamed.push(match token {
                TokenTree::Ident(i) if around.is_label() => {
                    self.new_label(i).unwrap_or_else(|| i.clone()).into()
                }
                TokenTree::Ident(_) if around.is_no_variable() => token.clone(),
                TokenTree::Ident(i) => self.new_name(i).unwrap_or_else(|| i.clone()).into(),
                TokenTree::Group(g) => {
                    let mut group = Group::new(g.delimiter(), self.tokens(g.stream(), around.inside(g)));
                    group.set_span(g.span());
                    group.into()
                }
                TokenTree::Literal(l) => match syn::Lit::new(l.clone()) {
                    syn::Lit::Str(s) => self.string(&s).unwrap_or_else(|| token.clone()),
                    _ => token.clone(),
                },
                TokenTree::Punct(_) => token.clone(),
            });
        }
        renamed.into_iter().collect()
    }

    /// The names in a format string.
    fn string(&self, s: &syn::LitStr) -> Option<TokenTree> {
        let mut text = s.value();
        for name in format_strings::names(&text.clone(), s.span()) {
            if let Some(new) = self.new_name(&name) {
                for (before, after) in
                    [("{", "}"), ("{", ":"), (":", "$"), (".", "$"), (">", "$"), ("<", "$"), ("^", "$")]
                {
                    text = text.replace(&format!("{before}{name}{after}"), &format!("{before}{new}{after}"));
                }
            }
        }
        (text != s.value()).then(|| {
            let mut literal = proc_macro2::Literal::string(&text);
            literal.set_span(s.span());
            literal.into()
        })
    }
}

impl VisitMut for Apart {
    fn visit_pat_ident_mut(&mut self, p: &mut syn::PatIdent) {
        self.rename(&mut p.ident);
        visit_mut::visit_pat_ident_mut(self, p);
    }
    fn visit_label_mut(&mut self, label: &mut syn::Label) {
        self.label(&mut label.name);
    }
    fn visit_expr_break_mut(&mut self, e: &mut syn::ExprBreak) {
        e.label.iter_mut().for_each(|l| self.label(l));
        visit_mut::visit_expr_break_mut(self, e);
    }
    fn visit_expr_continue_mut(&mut self, e: &mut syn::ExprContinue) {
        e.label.iter_mut().for_each(|l| self.label(l));
    }
    fn visit_field_pat_mut(&mut self, field: &mut syn::FieldPat) {
        // `S { h }` becomes `S { h: renamed }`.
        let before = field.pat.to_token_stream().to_string();
        visit_mut::visit_field_pat_mut(self, field);
        if field.colon_token.is_none() && field.pat.to_token_stream().to_string() != before {
            field.colon_token = Some(Default::default());
        }
    }
    fn visit_field_value_mut(&mut self, field: &mut syn::FieldValue) {
        let before = field.expr.to_token_stream().to_string();
        visit_mut::visit_field_value_mut(self, field);
        if field.colon_token.is_none() && field.expr.to_token_stream().to_string() != before {
            field.colon_token = Some(Default::default());
        }
    }
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if let Expr::Path(p) = expr
            && p.qself.is_none()
            && p.path.leading_colon.is_none()
            && p.path.segments.len() == 1
            && p.path.segments[0].arguments.is_none()
        {
            self.rename(&mut p.path.segments[0].ident);
            return;
        }
        visit_mut::visit_expr_mut(self, expr);
    }
    fn visit_macro_mut(&mut self, mac: &mut syn::Macro) {
        mac.tokens = self.tokens(std::mem::take(&mut mac.tokens), Among::Arguments);
    }
    fn visit_item_mut(&mut self, item: &mut syn::Item) {
        if let syn::Item::Macro(m) = item {
            m.mac.tokens = self.tokens(std::mem::take(&mut m.mac.tokens), Among::Code);
        }
    }
}

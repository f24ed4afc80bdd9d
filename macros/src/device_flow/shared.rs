//! Uses of a variable of which arms assign fields.
//!
//! An arm works on a copy of it, of which only those fields leave the arm. Another change of the copy would be lost without
//! a word: `pair.bump()` with a `&mut self`, `ref mut`, or an assignment that a macro writes. So every other place in it
//! that could be borrowed mutably is written as one behind a shared reference, `*&pair.r`, which rustc lets nobody change
//! (E0594, E0596). Nothing else changes: such a place has the same type, is read and called as before, and keeps the other
//! fields free. Where a value is wanted, the place stays as it is, so it can be moved. A `Cell` of the copy is changed through a
//! shared reference, and lost: nothing sees that.

use proc_macro2::{Delimiter, Group, Punct, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::{
    Block, Expr, ExprMethodCall, Ident, Local, Macro, Member, Pat, Token, ext::IdentExt, parse::Parser,
    parse_quote_spanned, punctuated::Punctuated, spanned::Spanned, visit::Visit, visit_mut,
    visit_mut::VisitMut,
};

use crate::{
    facts::{macros, uses},
    krate,
    model::{Changed, End, How},
    parse::{
        scopes::{self, Binding, OwnNames, Scoped},
        syntax::{self, bare},
    },
};

/// The variables of which arms assign fields, with the paths of these.
pub(super) struct Shared {
    variables: Vec<(String, Vec<Vec<Member>>)>,
    own: OwnNames,
}

impl Shared {
    /// For the variables of which only fields leave the arms. `None` if there is none: nothing misses a change of others.
    pub(super) fn of(changed: &[Changed]) -> Option<Self> {
        let fields = |c: &Changed| match &c.how {
            How::Fields(paths) => Some((c.ident.unraw().to_string(), paths.clone())),
            _ => None,
        };
        let variables: Vec<_> = changed.iter().filter(|c| c.end == End::Leaves).filter_map(fields).collect();
        (!variables.is_empty()).then(|| Self { variables, own: OwnNames::default() })
    }

    /// The assigned fields of the variable that a name stands for.
    fn fields(&self, name: &Ident) -> Option<&[Vec<Member>]> {
        let unraw = name.unraw();
        let (_, fields) = self.variables.iter().find(|(known, _)| unraw == known)?;
        (!self.own.has(name)).then_some(fields)
    }

    /// Returns whether a change of this place would not leave the arm.
    fn is_lost(&self, place: &Expr) -> bool {
        let Some((base, path)) = path(place) else { return false };
        self.fields(base).is_some_and(|fields| !fields.iter().any(|field| path.starts_with(field)))
    }

    /// Visits a place that may be borrowed mutably.
    fn borrowed(&mut self, place: &mut Expr) {
        let is_lost = self.is_lost(place);
        self.visit_expr_mut(place);
        if is_lost {
            let shown = krate::generated_at(place.span());
            *place = parse_quote_spanned!(shown=> *&#place);
        }
    }

    /// The same in front of `.` or `(`.
    fn borrowed_by_call(&mut self, place: &mut Expr) {
        let is_lost = self.is_lost(place);
        self.borrowed(place);
        if is_lost {
            let shown = krate::generated_at(place.span());
            *place = parse_quote_spanned!(shown=> (#place));
        }
    }

    /// Visits the left side of an assignment. Outside macro calls, it is one of the known fields.
    fn assigned(&mut self, place: &mut Expr) {
        match place {
            Expr::Tuple(t) => t.elems.iter_mut().for_each(|e| self.assigned(e)),
            Expr::Array(a) => a.elems.iter_mut().for_each(|e| self.assigned(e)),
            Expr::Struct(s) => s.fields.iter_mut().for_each(|f| self.assigned(&mut f.expr)),
            Expr::Call(c) => c.args.iter_mut().for_each(|e| self.assigned(e)),
            other => self.borrowed(other),
        }
    }

    /// A method that takes its receiver by value, as those of `Option` do, takes a copy, which cannot be changed either.
    fn taken(&self, call: &mut ExprMethodCall) -> Option<Expr> {
        let is_field = matches!(bare(&call.receiver), Expr::Field(_));
        if !is_field || !uses::takes_option(&call.method) || !self.is_lost(&call.receiver) {
            return None;
        }
        let shown = krate::generated_at(call.receiver.span());
        let taken = Ident::new("__taken", Span::mixed_site());
        let receiver = std::mem::replace(&mut *call.receiver, parse_quote_spanned!(shown=> #taken));
        Some(parse_quote_spanned!(shown=> match ::core::clone::Clone::clone(&#receiver) { #taken => #call }))
    }

    /// Returns whether tokens name such a variable.
    fn names(&self, tokens: &TokenStream) -> bool {
        syntax::identifiers(tokens.clone())
            .iter()
            .any(|name| self.variables.iter().any(|(known, _)| name.trim_start_matches("r#") == known))
    }

    /// Tokens of a macro that may do anything with the places in them.
    fn tokens(&self, tokens: TokenStream) -> TokenStream {
        let mut tokens = tokens.into_iter().peekable();
        let (mut out, mut before) = (TokenStream::new(), None);
        while let Some(token) = tokens.next() {
            let token = match token {
                TokenTree::Group(g) => {
                    let mut group = Group::new(g.delimiter(), self.tokens(g.stream()));
                    group.set_span(g.span());
                    TokenTree::Group(group)
                }
                TokenTree::Ident(name) if !is_no_variable(before.as_ref(), tokens.peek()) => {
                    let place = place_among(name, &mut tokens);
                    before = None;
                    let parsed: Option<Expr> = syn::parse2(place.clone()).ok();
                    if parsed.is_some_and(|place| self.is_lost(&place)) {
                        let shown = krate::generated_at(place.span());
                        out.extend(quote_spanned!(shown=> (*&#place)));
                    } else {
                        out.extend(place);
                    }
                    continue;
                }
                other => other,
            };
            // What follows the second dot of a range is no field.
            before = (!ends_range(before.as_ref(), &token)).then(|| token.clone());
            out.extend([token]);
        }
        out
    }
}

/// The name of a place, and its path up to what an index or a reference leads to.
fn path(place: &Expr) -> Option<(&Ident, Vec<Member>)> {
    /// The path, and whether it goes on.
    fn walk(place: &Expr) -> Option<(&Ident, Vec<Member>, bool)> {
        match bare(place) {
            Expr::Field(f) => {
                let (base, mut path, goes_on) = walk(&f.base)?;
                if goes_on {
                    path.push(f.member.clone());
                }
                Some((base, path, goes_on))
            }
            Expr::Index(i) => walk(&i.expr).map(|(base, path, _)| (base, path, false)),
            Expr::Unary(u) if matches!(u.op, syn::UnOp::Deref(_)) => {
                walk(&u.expr).map(|(base, path, _)| (base, path, false))
            }
            other => Some((syntax::plain_name(other)?, Vec::new(), true)),
        }
    }
    walk(place).map(|(base, path, _)| (base, path))
}

/// Returns whether a pattern may borrow a part of its value mutably; a macro may write any.
fn may_bind_mutably(pat: &Pat) -> bool {
    struct Macros(bool);
    impl<'a> Visit<'a> for Macros {
        fn visit_pat(&mut self, pat: &'a Pat) {
            self.0 |= matches!(pat, Pat::Macro(_) | Pat::Verbatim(_));
            syn::visit::visit_pat(self, pat);
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut macros = Macros(false);
    macros.visit_pat(pat);
    macros.0 || syntax::binds_mutably(pat)
}

/// Returns whether an identifier between these tokens is a field, a part of a path, a macro or a new name.
fn is_no_variable(before: Option<&TokenTree>, after: Option<&TokenTree>) -> bool {
    let is = |token: Option<&TokenTree>, chars: &[char]| matches!(token, Some(TokenTree::Punct(p)) if chars.contains(&p.as_char()));
    let declares = |word: &Ident| ["let", "mut", "ref"].iter().any(|known| word == known);
    is(before, &['.', '\'', '$'])
        || is(after, &[':', '!'])
        || matches!(before, Some(TokenTree::Ident(word)) if declares(word))
}

/// Returns whether two tokens are the `..` of a range.
fn ends_range(before: Option<&TokenTree>, token: &TokenTree) -> bool {
    let is_dot = |p: &Punct| p.as_char() == '.';
    match (before, token) {
        (Some(TokenTree::Punct(first)), TokenTree::Punct(second)) => {
            is_dot(first) && first.spacing() == Spacing::Joint && is_dot(second)
        }
        _ => false,
    }
}

/// Takes the fields that follow a name; not a method.
fn place_among(
    name: Ident,
    tokens: &mut std::iter::Peekable<proc_macro2::token_stream::IntoIter>,
) -> TokenStream {
    let mut place: TokenStream = TokenTree::Ident(name).into();
    loop {
        let mut ahead = tokens.clone();
        let dot = matches!(ahead.next(), Some(TokenTree::Punct(p)) if p.as_char() == '.');
        let is_field = dot && matches!(ahead.next(), Some(TokenTree::Ident(_) | TokenTree::Literal(_)));
        let is_method = match ahead.peek() {
            Some(TokenTree::Group(g)) => g.delimiter() == Delimiter::Parenthesis,
            Some(TokenTree::Punct(p)) => p.as_char() == ':',
            _ => false,
        };
        if !is_field || is_method {
            return place;
        }
        place.extend(tokens.by_ref().take(2));
    }
}

impl Scoped for Shared {
    type Names = usize;
    fn begin(&mut self) -> usize {
        self.own.count()
    }
    fn end(&mut self, around: usize) {
        self.own.return_to(around);
    }
    fn bind(&mut self, binding: &Binding<'_>) {
        self.own.bind(binding);
    }
    fn matched(&mut self, value: &mut Expr, pats: &[&Pat]) {
        if pats.iter().any(|pat| may_bind_mutably(pat)) {
            self.borrowed(value);
        } else {
            self.visit_expr_mut(value);
        }
    }
}

impl VisitMut for Shared {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match expr {
            Expr::MethodCall(m) => {
                let taken = self.taken(m);
                if let Some(mut taken) = taken {
                    visit_mut::visit_expr_mut(self, &mut taken);
                    *expr = taken;
                } else {
                    self.borrowed_by_call(&mut m.receiver);
                    m.args.iter_mut().for_each(|a| self.visit_expr_mut(a));
                }
            }
            // A closure in a field may change what it holds.
            Expr::Call(c) => {
                self.borrowed_by_call(&mut c.func);
                c.args.iter_mut().for_each(|a| self.visit_expr_mut(a));
            }
            Expr::Reference(r) if r.mutability.is_some() => self.borrowed(&mut r.expr),
            Expr::RawAddr(r) if matches!(r.mutability, syn::PointerMutability::Mut(_)) => {
                self.borrowed(&mut r.expr);
            }
            Expr::Assign(a) => {
                self.visit_expr_mut(&mut a.right);
                self.assigned(&mut a.left);
            }
            Expr::Binary(b) if syntax::is_assign(&b.op) => {
                self.visit_expr_mut(&mut b.right);
                self.assigned(&mut b.left);
            }
            other => scopes::visit_expr(self, other),
        }
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        scopes::visit_block(self, block);
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        scopes::visit_local(self, local);
    }

    fn visit_macro_mut(&mut self, mac: &mut Macro) {
        if !self.names(&mac.tokens) {
            return;
        }
        let parsed = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(mac.tokens.clone());
        let Some(mut arguments) = parsed.ok().filter(|_| macros::only_reads(mac)) else {
            mac.tokens = self.tokens(mac.tokens.clone());
            return;
        };
        for argument in &mut arguments {
            match argument {
                // `name = value` of a format string.
                Expr::Assign(a) if syntax::plain_name(&a.left).is_some() => self.visit_expr_mut(&mut a.right),
                other => self.visit_expr_mut(other),
            }
        }
        mac.tokens = arguments.to_token_stream();
    }

    fn visit_pat_mut(&mut self, _: &mut Pat) {}
    fn visit_attribute_mut(&mut self, _: &mut syn::Attribute) {}
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_flow::effects;

    /// Tokens without the spaces between them.
    fn plain(code: &Expr) -> String {
        code.to_token_stream().to_string().replace(' ', "")
    }

    /// The arm after it.
    fn arm(code: &str) -> String {
        let mut arm: Expr = syn::parse_str(code).unwrap();
        let effects = effects(&arm, false);
        Shared::of(&effects.changed).expect("a field").visit_expr_mut(&mut arm);
        plain(&arm)
    }

    #[track_caller]
    fn becomes(code: &str, expected: &str) {
        let text = arm(&format!("{{ p.l = v; p.n.a = v; {code} }}"));
        let expected: Expr = syn::parse_str(&format!("{{ p.l = v; p.n.a = v; {expected} }}")).unwrap();
        assert_eq!(text, plain(&expected));
    }

    #[track_caller]
    fn stays(code: &str) {
        becomes(code, code);
    }

    #[test]
    fn what_could_change_other_fields_is_shared() {
        becomes("p.bump();", "(*&p).bump();");
        becomes("p.r.s.go(p.go());", "(*&p.r.s).go((*&p).go());");
        becomes("p.n.go(); p.n.b.go();", "(*&p.n).go(); (*&p.n.b).go();");
        becomes("p.all[p.at()].x.go();", "(*&p.all[(*&p).at()].x).go();");
        becomes("f(&mut p.r);", "f(&mut *&p.r);");
        becomes("(p.f)(1);", "(*&(p.f))(1);");
        becomes("let T { ref mut r, .. } = p;", "let T { ref mut r, .. } = *&p;");
        becomes("if let Some(ref mut r) = p.r && c {}", "if let Some(ref mut r) = *&p.r && c {}");
        becomes("match p.r { pattern!() => {} }", "match *&p.r { pattern!() => {} }");
        becomes("|| p.go();", "|| (*&p).go();");
        becomes(
            "p.opt.unwrap();",
            "match ::core::clone::Clone::clone(&p.opt) { __taken => __taken.unwrap() };",
        );
    }

    #[test]
    fn macros_may_do_anything() {
        becomes("set!(p.r, p.l.x);", "set!((*&p.r), p.l.x);");
        becomes(
            "set![p.r.s.go(1), p.0, q.p, p.go::<T>(), S { p: p }];",
            "set![(*&p.r.s).go(1), (*&p.0), q.p, (*&p).go::<T>(), S { p: (*&p) }];",
        );
        becomes("let v = vec![p.go(), p.r, p.l.go()];", "let v = vec![(*&p).go(), p.r, p.l.go()];");
        becomes("assert!({ p.r = v; true });", "assert!({ *&p.r = v; true });");
        becomes("matches!(p.r, Some(ref mut r));", "matches!((*&p.r), Some(ref mut r));");
        becomes(
            "set!(0..p.go(), [..p.r], ..=p.at(), q..p);",
            "set!(0..(*&p).go(), [..(*&p.r)], ..=(*&p).at(), q..(*&p));",
        );
        becomes("set!(r#p.go(), q.r#p); r#p.go();", "set!((*&r#p).go(), q.r#p); (*&r#p).go();");
        stays("let r#p = q; p.go();");
        stays("assert!(matches!(p.r, Some(_)));");
        stays("println!(\"{p}\", p = f(p.r));");
    }

    #[test]
    fn other_uses_stay_as_they_are() {
        stays("f(p.r, &p.r, p.r + 1, p.all[0]);");
        stays("p.l.push(1); p.l[0].go(); p.n.a.go(); let T { ref mut x } = p.l; set!(p.l, p.n.a.b);");
        stays("let T { r, .. } = p; match p.r { Some(r) => {} }");
        stays("{ let mut p = q; p.go(); } for p in x { p.go(); } |p| p.go(); match x { Some(p) => p.go() }");
        stays("if let Some(p) = x { p.go() } q.go(); set!(q.r);");
        stays("p.opt_l.clone_into;");
    }
}

//! The rules of a macro that a function defines: which variables from outside they may name.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use syn::{
    Attribute, Block, Expr, Item, Pat, Stmt,
    parse::Parser,
    visit::{self, Visit},
};

use super::{Use, Uses, of_expr, of_tokens};
use crate::{facts::macros, parse::syntax};

/// What stands for a parameter of a macro.
const PARAMETER: &str = "__parameter";

/// The code that a rule of a macro stands for.
pub(crate) struct Rule {
    pub(crate) code: TokenStream,
    /// The names in it that mean something outside, and whether it may change that; `None` if they are not known, as of code that does
    /// not parse by itself.
    pub(crate) outer: Option<HashMap<String, bool>>,
    /// Of these, those that are certainly variables: values in the code itself, which are not called and not within the tokens
    /// of a macro.
    pub(crate) values: HashSet<String>,
}

/// Returns the rules of a macro; `None` if the tokens are none.
pub(crate) fn of(tokens: &TokenStream) -> Option<Vec<Rule>> {
    let mut rules = Vec::new();
    let mut tokens = tokens.clone().into_iter().peekable();
    while tokens.peek().is_some() {
        // What is matched names nothing.
        let TokenTree::Group(_) = tokens.next()? else { return None };
        for c in ['=', '>'] {
            tokens.next().filter(|token| is_punct(token, c))?;
        }
        let TokenTree::Group(code) = tokens.next()? else { return None };
        let code = code.stream();
        let outer = outer_names(&code);
        let values = outer.iter().flat_map(|outer| values(&code, outer)).collect();
        rules.push(Rule { outer, values, code });
        if !tokens.next().is_none_or(|token| is_punct(&token, ';')) {
            return None;
        }
    }
    Some(rules)
}

fn is_punct(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(p) if p.as_char() == c)
}

fn outer_names(code: &TokenStream) -> Option<HashMap<String, bool>> {
    let stmts = Block::parse_within.parse2(with_parameters(code.clone(), false)?).ok()?;
    // Its items are those of the block that calls it.
    if syntax::values_among(&stmts).next().is_some() {
        return None;
    }
    let block: Expr = syn::parse_quote!({ #(#stmts)* });
    let mut hidden = Hidden::default();
    hidden.visit_expr(&block);
    if hidden.fails {
        return None;
    }
    hidden.name(&of_expr(&block), |u| u.assigned || u.touched || u.through || u.in_macro);
    Some(hidden.named)
}

/// Returns the names from outside that stand for values, whatever they may be.
fn values(code: &TokenStream, outer: &HashMap<String, bool>) -> HashSet<String> {
    struct Values<'o>(&'o HashMap<String, bool>, HashSet<String>);
    impl<'a> Visit<'a> for Values<'_> {
        fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
            if !matches!(&*call.func, Expr::Path(_)) {
                self.visit_expr(&call.func);
            }
            call.args.iter().for_each(|arg| self.visit_expr(arg));
        }
        fn visit_expr_path(&mut self, path: &'a syn::ExprPath) {
            let name = path.path.get_ident().map(ToString::to_string);
            self.1.extend(name.filter(|name| self.0.contains_key(name)));
        }
        /// `let _ = n;` reads nothing.
        fn visit_local(&mut self, local: &'a syn::Local) {
            if !matches!(&local.pat, Pat::Wild(_)) {
                visit::visit_local(self, local);
            }
        }
        fn visit_item(&mut self, _: &'a Item) {}
    }
    let stmts = with_parameters(code.clone(), false).and_then(|code| Block::parse_within.parse2(code).ok());
    let mut values = Values(outer, HashSet::new());
    stmts.iter().flatten().for_each(|stmt| values.visit_stmt(stmt));
    values.1
}

/// Returns code with a name for each parameter of a macro. A parameter never stands for a variable that the macro itself binds, nor
/// binds one for it. `None` for code that is repeated, unless that is within a call of a macro (`in_call`), where nothing but its
/// names counts.
fn with_parameters(tokens: TokenStream, in_call: bool) -> Option<TokenStream> {
    let (mut all, mut tokens) = (Vec::new(), tokens.into_iter().peekable());
    while let Some(token) = tokens.next() {
        let is_of_call = is_last_punct(&all, '!');
        match token {
            TokenTree::Punct(p) if p.as_char() == '$' => match tokens.peek() {
                Some(TokenTree::Ident(word)) if word == "crate" => {}
                Some(TokenTree::Ident(_)) => {
                    let at = tokens.next().map_or(Span::call_site(), |name| name.span());
                    all.push(Ident::new(PARAMETER, at).into());
                }
                _ if in_call => all.push(p.into()),
                _ => return None,
            },
            TokenTree::Group(group) => {
                let inside = with_parameters(group.stream(), in_call || is_of_call)?;
                let mut own = Group::new(group.delimiter(), inside);
                own.set_span(group.span());
                all.push(own.into());
            }
            other => all.push(other),
        }
    }
    Some(all.into_iter().collect())
}

fn is_last_punct(all: &[TokenTree], c: char) -> bool {
    all.last().is_some_and(|token| is_punct(token, c))
}

/// The names that the uses of code may not show, and code whose meaning is not known.
#[derive(Default)]
struct Hidden {
    named: HashMap<String, bool>,
    fails: bool,
}

impl Hidden {
    fn name(&mut self, uses: &Uses, changes: impl Fn(&Use) -> bool) {
        for (name, u) in &uses.0 {
            *self.named.entry(name.clone()).or_default() |= changes(u);
        }
    }
}

impl<'a> Visit<'a> for Hidden {
    /// A name that is bound under a condition may be one from outside. A parameter of the macro may be a condition.
    fn visit_attribute(&mut self, a: &'a Attribute) {
        self.fails |= ["cfg", "cfg_attr", PARAMETER].iter().any(|name| a.path().is_ident(name));
    }
    /// What a macro that is not known does with names is not seen.
    fn visit_macro(&mut self, mac: &'a syn::Macro) {
        if !macros::only_reads(mac) {
            self.name(&of_tokens(&mac.tokens), |_| true);
        }
    }
    fn visit_expr(&mut self, e: &'a Expr) {
        self.fails |= matches!(e, Expr::Verbatim(_));
        visit::visit_expr(self, e);
    }
    fn visit_pat(&mut self, pat: &'a Pat) {
        self.fails |= matches!(pat, Pat::Verbatim(_));
        visit::visit_pat(self, pat);
    }
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Item(Item::Macro(m)) => self.name(&of_tokens(&m.mac.tokens), |_| true),
            // Other items name no variables.
            Stmt::Item(_) => {}
            other => visit::visit_stmt(self, other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The outer names of the only rule of a macro; `w!` is one that it may change.
    fn names(rules: &str) -> Option<Vec<String>> {
        let rules = of(&rules.parse().unwrap()).unwrap();
        let named = rules[0].outer.clone()?.into_iter().filter(|(name, _)| name != PARAMETER);
        let mut names: Vec<String> =
            named.map(|(name, changes)| name + if changes { "!" } else { "" }).collect();
        names.sort();
        Some(names)
    }

    #[test]
    fn what_a_rule_binds_is_not_from_outside() {
        for (code, outer) in [
            ("{ list.iter().map(|w| w + k).sum::<usize>() }", vec!["k", "list!"]),
            ("{{ let w = k; w }}", vec!["k"]),
            ("{{ let w = w; w }}", vec!["w"]),
            ("{{ { let w = k; } w }}", vec!["k", "w"]),
            ("{ if let Some(w) = $v { w } else { k } }", vec!["k"]),
            ("{ if let w = k { w } else { k }; w }", vec!["k", "w"]),
            ("{ for w in 0..k { f(w); } }", vec!["f", "k"]),
            ("{ for w in w { f(w); } }", vec!["f", "w"]),
            ("{ 'w: loop { break 'w k } }", vec!["k"]),
            ("{ match k { w if w > 1 => w, _ => 0 } }", vec!["k"]),
            ("{ f(|w: usize| w, w) }", vec!["f", "w"]),
            ("{ S { w } }", vec!["w"]),
            ("{ S { w: k }.w }", vec!["k"]),
            ("{ w = k; }", vec!["k", "w!"]),
            ("{ (w, _) = (k, 1) }", vec!["k", "w!"]),
            ("{ let ref mut v = w; *v = k; }", vec!["k", "w!"]),
            ("{ *w = w.v }", vec!["w!"]),
            ("{ f(&mut w, k) }", vec!["f", "k", "w!"]),
            ("{ vec![|w: usize| w] }", vec![]),
            ("{ vec![w; 3] }", vec!["w"]),
            ("{ other!(|w| w) }", vec!["w!"]),
            ("{ other!($(|w| $v),*) }", vec!["w!"]),
            ("{ format!(\"{w} {}\", k) }", vec!["k", "w"]),
        ] {
            let outer = outer.into_iter().map(str::to_owned).collect();
            assert_eq!(names(&format!("($v:expr) => {code};")), Some(outer), "{code}");
        }
    }

    #[test]
    fn code_that_is_not_known_may_name_anything() {
        for code in [
            "{ |w: usize| w, w }",
            "{ $(let w = $v;)* w }",
            "{ f($(|w| $v),*) }",
            "{{ #[cfg(on)] let w = k; w }}",
            "{{ #[$v] let w = k; w }}",
            "{ fn w() {} w() }",
            "{ $a $b |w| w }",
        ] {
            assert_eq!(names(&format!("($v:expr) => {code}")), None, "{code}");
        }
        assert!(of(&"(w) => [w]; w".parse().unwrap()).is_none());
    }
}

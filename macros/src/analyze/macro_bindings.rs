//! The user's macros as statements of a segment: one may bind a name, which would not be visible after the
//! segment.

use std::collections::{BTreeSet, HashSet};

use proc_macro2::{Ident, TokenStream};
use syn::{
    Expr, Stmt,
    visit::{self, Visit},
};

use super::Analysis;
use crate::{
    diag::Code,
    facts::{
        macros, statement,
        statement::Statement,
        uses::{self, Sequence},
    },
    model::Probe,
    parse::syntax,
};

/// A macro call of a run, and the variables that it may rebind.
pub(super) struct Probed {
    /// The index of the statement.
    pub(super) at: usize,
    pub(super) macro_name: String,
    pub(super) probes: Vec<Probe>,
}

impl Analysis<'_, '_> {
    /// Notes a macro that the function defines.
    pub(super) fn note_macro(&mut self, name: &Ident, rules: &TokenStream) {
        self.own_macros.insert(name.to_string());
        let named = macros::idents(rules.clone());
        self.in_rules.entry(name.to_string()).or_default().extend(named.iter().map(ToString::to_string));
        match self.taken(rules) {
            Some(taken) => self.takes.insert(name.to_string(), taken),
            None => self.takes.remove(&name.to_string()),
        };
    }

    /// Returns a variable that a macro names, whichever of its rules is called, and the variable's id.
    fn taken(&self, rules: &TokenStream) -> Option<(String, usize)> {
        let mut named: Vec<String> = uses::of_rules(rules).into_iter().collect();
        named.sort();
        named.into_iter().find_map(|name| {
            let variable = self.scope.lookup(&name).filter(|b| b.made.is_none())?;
            Some((name, variable.id))
        })
    }

    /// Refuses a macro of the function that a segment calls, and whose variables it cannot name: they are those of host code
    /// wherever it is called, and a segment has its own.
    pub(super) fn check_macros<'s>(&mut self, code: impl Iterator<Item = &'s Statement>) {
        for call in code.flat_map(|statement| macros::called(&statement.stmt)) {
            let Some((taken, id)) = self.takes.get(&call.to_string()) else { continue };
            // The help would name another variable.
            if self.scope.lookup(taken).is_none_or(|b| b.id != *id) {
                continue;
            }
            self.errors.push(
                Code::MacroNames, &call,
                format!("the macro `{call}` names the variable `{taken}` of the function, and is called in a segment, which has variables of its own"),
                format!("pass it: let each rule of `{call}` take it as another parameter, `$given:expr`, use `$given` for `{taken}`, and write `{taken}` in the call"),
            );
        }
    }

    /// Returns a macro and those of the function that may call it.
    pub(super) fn callers(&self, name: &Ident) -> HashSet<String> {
        let mut callers = HashSet::from([name.to_string()]);
        loop {
            let known = callers.len();
            let more = self.in_rules.iter().filter(|(_, named)| !named.is_disjoint(&callers));
            callers = more.map(|(caller, _)| caller.clone()).chain(callers.iter().cloned()).collect();
            if callers.len() == known {
                return callers;
            }
        }
    }

    /// Adds the names in the rules of those macros of the function that are among some names.
    pub(super) fn with_rules(&self, mut names: BTreeSet<String>) -> BTreeSet<String> {
        let mut reached: Vec<String> = names.iter().cloned().collect();
        while let Some(name) = reached.pop() {
            for inner in self.in_rules.get(&name).into_iter().flatten() {
                if names.insert(inner.clone()) {
                    reached.push(inner.clone());
                }
            }
        }
        names
    }

    /// Rejects a macro that seems to bind a name used by later code. If a macro rebinds a known name, whose
    /// older value later code would find, this is an error when the body runs.
    pub(super) fn probes(
        &mut self,
        run: &[Statement],
        rest: &[Statement],
        live: &HashSet<usize>,
    ) -> Vec<Probed> {
        let mut probed = Vec::new();
        for (at, statement) in run.iter().enumerate() {
            let Stmt::Macro(m) = &statement.stmt else { continue };
            if macros::only_reads(&m.mac) {
                continue;
            }
            let macro_name = m.mac.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
            let later = Sequence::of(rest);
            let mut probes = Vec::new();
            for ident in macros::idents(m.mac.tokens.clone()) {
                let text = ident.to_string();
                let in_run = run[..at].iter().any(|s| s.binds(&text));
                let outer = self.scope.lookup(&text).filter(|b| b.made.is_none());
                let needed = later.has(&text) || outer.is_some_and(|b| live.contains(&b.id));
                if !needed || text == "self" {
                    continue;
                }
                if in_run || outer.is_some() {
                    probes.push(Probe { place: self.fresh("at"), ident });
                } else if self.scope.lookup(&text).is_none() && is_value(statement::stmts(rest), &ident) {
                    self.errors.push(
                        Code::UnknownMacro,
                        &ident,
                        format!("`{macro_name}!` may bind `{text}`, which code after the segment uses: it would not be visible there"),
                        format!("bind it where it is seen: `let {text} = …;`"),
                    );
                }
            }
            probed.push(Probed { at, macro_name, probes });
        }
        probed
    }
}

/// Returns whether statements use a name as a value, and not as a function or a type.
fn is_value<'s>(stmts: impl Iterator<Item = &'s Stmt>, name: &Ident) -> bool {
    struct Search<'n>(&'n Ident, bool);
    impl<'a> Visit<'a> for Search<'_> {
        fn visit_expr(&mut self, e: &'a Expr) {
            match e {
                Expr::Call(c) => {
                    if syntax::plain_name(&c.func).is_none() {
                        self.visit_expr(&c.func);
                    }
                    c.args.iter().for_each(|a| self.visit_expr(a));
                }
                other => {
                    let name = syntax::plain_name(other);
                    self.1 |=
                        name.is_some_and(|n| n == self.0 && !n.to_string().starts_with(char::is_uppercase));
                    visit::visit_expr(self, other);
                }
            }
        }
    }
    let mut search = Search(name, false);
    stmts.for_each(|s| search.visit_stmt(s));
    search.1
}

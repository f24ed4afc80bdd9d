//! Macros that the function defines. What one names is used wherever it is called, and each segment that calls one defines it again,
//! where its names must mean the same.

use std::collections::HashSet;

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{Item, ItemMacro, Local, Stmt};

use super::Analysis;
use crate::{
    diag::Code,
    facts::{macros, statement::Statement, uses::Uses},
};

/// A macro in scope.
#[derive(Clone)]
pub(super) struct OwnMacro {
    name: String,
    /// The number of names that were bound before it, by which it is told from others.
    at: usize,
    item: ItemMacro,
    /// What it names.
    uses: Uses,
    /// What these names mean; `None` for what is no variable there.
    meanings: Vec<(String, Option<usize>)>,
}

impl OwnMacro {
    fn named(name: &Ident, item: &ItemMacro, uses: &Uses) -> Self {
        let (name, uses) = (name.to_string(), uses.clone());
        Self { name, at: 0, item: item.clone(), uses, meanings: Vec::new() }
    }
}

/// Returns the macros among `known` that code calls, and those that they call. Of one name, the last is meant.
fn called<'m>(stmts: &[&Stmt], known: &'m [OwnMacro]) -> Vec<&'m OwnMacro> {
    let mut seen = HashSet::new();
    let mut left: Vec<&OwnMacro> = known.iter().rev().filter(|m| seen.insert(&m.name)).collect();
    let mut found: Vec<&OwnMacro> = Vec::new();
    let is_called = |m: &OwnMacro, found: &[&OwnMacro]| {
        let name = HashSet::from([m.name.clone()]);
        stmts.iter().any(|stmt| macros::calls_any(stmt, &name))
            || found.iter().any(|by| macros::names_call(&by.item.mac.tokens, &name))
    };
    while let Some(at) = left.iter().position(|m| is_called(m, &found)) {
        found.push(left.swap_remove(at));
    }
    found
}

impl Analysis<'_, '_> {
    /// Passes the definition of a macro.
    pub(super) fn enter_own_macro(&mut self, name: &Ident, item: &ItemMacro, uses: &Uses) {
        let meanings = uses.names().map(|n| (n.to_owned(), self.scope.lookup(n).map(|b| b.id))).collect();
        self.macros.push(OwnMacro { at: self.scope.next_id, meanings, ..OwnMacro::named(name, item, uses) });
        self.own_macros.insert(name.to_string());
        self.scope.enter_macro(name);
    }

    /// Returns the statements of a block as they use what the macros that they call name, unless the name means something else
    /// there.
    pub(super) fn with_named_by_macros(&self, mut statements: Vec<Statement>) -> Vec<Statement> {
        let mut known = self.macros.clone();
        // The names that statements of the block have bound since each of the macros was defined.
        let mut taken: Vec<HashSet<String>> = known.iter().map(|m| self.taken_since(m)).collect();
        for statement in &mut statements {
            if let Stmt::Item(Item::Macro(item @ ItemMacro { ident: Some(name), .. })) = &statement.stmt {
                known.push(OwnMacro::named(name, item, &statement.uses));
                taken.push(HashSet::new());
            } else if !known.is_empty() {
                for m in called(&[&statement.stmt], &known) {
                    let at = known.iter().position(|k| std::ptr::eq(k, m)).unwrap_or_default();
                    let named = m.uses.only(|name| !taken[at].contains(name));
                    statement.uses.merge(&named);
                    statement.value.merge(&named);
                    statement.assigned.retain(|name| !m.uses.has(name));
                }
            }
            let bound = || statement.binds.iter().map(|b| b.ident.to_string());
            taken.iter_mut().for_each(|taken| taken.extend(bound()));
        }
        statements
    }

    /// The names of a macro that mean something else here.
    fn taken_since(&self, m: &OwnMacro) -> HashSet<String> {
        let means_other = |(name, id): &&(String, Option<usize>)| {
            self.run.binds(name) || self.scope.lookup(name).map(|b| b.id) != *id
        };
        m.meanings.iter().filter(means_other).map(|(name, _)| name.clone()).collect()
    }

    /// As [`Self::with_named_by_macros`], of one statement.
    pub(super) fn with_named(&self, statement: Statement) -> Statement {
        if self.macros.is_empty() {
            return statement;
        }
        let mut all = self.with_named_by_macros(vec![statement]);
        all.remove(0)
    }

    /// Returns the macros that a run and the closures of its segment call, which the segment defines again, and the closures, in the
    /// order of the function.
    pub(super) fn defined_again(&mut self, run: &[&Statement], closures: Vec<(usize, Local)>) -> Vec<Stmt> {
        let mut all: Vec<(usize, Stmt)> = closures.into_iter().map(|(id, c)| (id, Stmt::Local(c))).collect();
        if !self.macros.is_empty() {
            let stmts: Vec<&Stmt> = run.iter().map(|s| &s.stmt).chain(all.iter().map(|(_, c)| c)).collect();
            // One that names no variable is as good where it is.
            let names_any = |m: &&OwnMacro| m.meanings.iter().any(|(_, id)| id.is_some());
            let called = called(&stmts, &self.macros).into_iter().filter(names_any);
            for m in called.cloned().collect::<Vec<OwnMacro>>() {
                self.check_meanings(&m, run);
                self.redefined.insert(m.at);
                all.insert(0, (m.at, Stmt::Item(Item::Macro(m.item))));
                // A closure that is bound at that place is behind it.
                all.sort_by_key(|(at, _)| *at);
            }
        }
        all.into_iter().map(|(_, stmt)| stmt).collect()
    }

    /// A macro that a segment defines again must find the variables that it names.
    fn check_meanings(&mut self, m: &OwnMacro, run: &[&Statement]) {
        let name = HashSet::from([m.name.clone()]);
        let last = run.iter().rposition(|s| macros::calls_any(&s.stmt, &name));
        let before = &run[..last.unwrap_or(run.len())];
        let is_other = |(name, id): &&(String, Option<usize>)| match (id, self.outside(name)) {
            (None, now) => now.is_some(),
            (Some(id), now) => now.is_none_or(|b| b.id != *id) || before.iter().any(|s| s.binds(name)),
        };
        let Some((other, _)) = m.meanings.iter().find(is_other) else { return };
        let message = format!(
            "the macro `{}` names `{other}`, which is another variable where a segment calls it; each segment defines its macros again",
            m.name
        );
        let help = format!("give one of the two `{other}` another name");
        let called = last.map_or(m.item.to_token_stream(), |at| run[at].stmt.to_token_stream());
        self.errors.push(Code::ShadowedCapture, called, message, help);
    }
}

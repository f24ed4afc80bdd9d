//! The names by which the meaning of a closure depends on where it is written.

use std::collections::{BTreeSet, HashSet};

use quote::ToTokens;
use syn::{Expr, Stmt};

use crate::{
    facts::{macros, uses},
    parse::syntax,
};

/// The names in a closure.
pub(super) struct Names {
    /// Of the variables and functions that it uses.
    used: HashSet<String>,
    /// All of them: also those of functions, modules, types and macros in paths.
    all: BTreeSet<String>,
    /// Whether it may call methods, which depend on the traits in scope.
    calls_methods: bool,
    /// Whether it calls a macro that is not known, whose own calls mean the macros that are in scope where it is called.
    calls_macros: bool,
}

impl Names {
    pub(super) fn of(closure: &Expr) -> Self {
        Self {
            used: uses::of_expr(closure).names().map(str::to_owned).collect(),
            all: syntax::identifiers(closure.to_token_stream()),
            calls_methods: syntax::calls_methods(closure),
            calls_macros: macros::calls_unknown(closure),
        }
    }

    /// Returns whether the closure means something else where a variable of this name is in scope.
    pub(super) fn depend_on_variable(&self, name: &str) -> bool {
        self.used.contains(name)
    }

    /// The same of a macro, from its definition on.
    pub(super) fn depend_on_macro(&self, name: &str) -> bool {
        self.calls_macros || self.depend_on_item(name)
    }

    /// The same of an item.
    pub(super) fn depend_on_item(&self, name: &str) -> bool {
        // Format strings name only variables and constants.
        self.all.contains(name) || self.used.contains(name)
    }

    /// The same of traits that a block brings into scope.
    pub(super) fn depend_on_traits(&self) -> bool {
        self.calls_methods
    }

    /// The same of the items among the statements of a block, which may be any.
    pub(super) fn depend_on_items(&self, stmts: &[Stmt]) -> bool {
        self.calls_methods && syntax::has_traits(stmts)
            || syntax::items_among(stmts)
                .is_none_or(|items| items.iter().any(|name| self.depend_on_item(name)))
    }
}

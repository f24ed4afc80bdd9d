//! The variables that code after some other code needs.

use std::collections::BTreeSet;

use syn::Stmt;

use crate::{
    facts::{assigned, uses},
    parse::syntax,
};

/// The variables of which code needs the value from before; not those that it binds itself.
#[derive(Default)]
pub(crate) struct Later {
    pub(super) names: BTreeSet<String>,
    bound: BTreeSet<String>,
}

impl Later {
    pub(crate) fn stmt(&mut self, stmt: &Stmt) {
        let replaced = assigned::by_stmt(stmt);
        uses::of_stmt(stmt)
            .needed()
            .filter(|name| !replaced.contains(*name))
            .for_each(|name| self.name(name));
        // After it, these names stand for other values.
        self.bound.extend(replaced);
        self.bound.extend(syntax::bound_by(stmt).iter().map(|b| b.ident.to_string()));
    }

    pub(crate) fn name(&mut self, name: &str) {
        if !self.bound.contains(name) {
            self.names.insert(name.to_owned());
        }
    }
}

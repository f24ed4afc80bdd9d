//! Facts about a single statement, determined once.

use std::collections::HashSet;

use syn::{Expr, Local, Stmt};

use super::{
    assigned, classify, jumps,
    uses::{self, Uses},
};
use crate::parse::syntax::{self, Bound};

/// A statement of a block.
#[derive(Clone)]
pub(crate) struct Statement {
    pub(crate) stmt: Stmt,
    /// Its uses.
    pub(crate) uses: Uses,
    /// The uses of its value if it is only read: the value of a `let`, or the expression.
    pub(crate) value: Uses,
    pub(crate) binds: Vec<Bound>,
    /// The outer variables that it assigns before it reads them; closures that it calls may read them.
    pub(crate) assigned: HashSet<String>,
    pub(crate) has_boundary: bool,
    /// Set if it can leave its block other than by an error.
    pub(crate) leaves: bool,
    /// The name of a closure, or of another value that each segment makes for itself.
    pub(crate) made: Option<String>,
}

impl Statement {
    pub(crate) fn of(stmt: Stmt) -> Self {
        let value = match &stmt {
            Stmt::Local(Local { init: Some(init), .. }) => uses::of_expr(&init.expr),
            Stmt::Expr(expr, _) => uses::of_expr(expr),
            _ => Uses::default(),
        };
        let made = match &stmt {
            Stmt::Local(local) => classify::closure_name(local),
            _ => None,
        };
        Self {
            uses: uses::of_stmt(&stmt),
            value,
            binds: syntax::bound_by(&stmt),
            assigned: assigned::by_stmt(&stmt),
            has_boundary: classify::has_boundary(&stmt),
            leaves: jumps::leaves(&stmt),
            made,
            stmt,
        }
    }

    /// Describes a value that is not part of a statement.
    pub(crate) fn of_value(expr: &Expr) -> Self {
        Self::of(Stmt::Expr(expr.clone(), None))
    }

    /// Returns whether code with these uses, which follows, uses what the statement binds.
    pub(crate) fn is_used_by(&self, following: &Uses) -> bool {
        self.binds.iter().any(|bound| following.has(&bound.ident.to_string()))
    }

    /// The same code with other attributes, or with a semicolon.
    pub(crate) fn with(&self, stmt: Stmt) -> Self {
        Self { stmt, ..self.clone() }
    }

    /// Returns whether it binds the name.
    pub(crate) fn binds(&self, name: &str) -> bool {
        self.binds.iter().any(|b| b.ident == name)
    }

    pub(crate) fn local(&self) -> Option<&Local> {
        match &self.stmt {
            Stmt::Local(local) => Some(local),
            _ => None,
        }
    }
}

/// The statements themselves.
pub(crate) fn stmts(all: &[Statement]) -> impl DoubleEndedIterator<Item = &Stmt> {
    all.iter().map(|s| &s.stmt)
}

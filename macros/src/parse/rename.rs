//! Another name for one variable, or for a field of it.

use syn::{Expr, visit_mut::VisitMut};

use super::{
    scopes::{self, Binding, Scoped},
    syntax,
};

/// Renames one variable, or a field of it, where no inner binding or item takes the variable's name.
pub(crate) struct Rename<'a> {
    from: &'a str,
    /// The path to the field; empty for the variable itself.
    path: &'a [String],
    /// The expression that stands for it.
    to: &'a Expr,
    /// Set where something else has the name.
    is_hidden: bool,
}

impl<'a> Rename<'a> {
    pub(crate) fn new(from: &'a str, to: &'a Expr) -> Self {
        Self { from, path: &[], to, is_hidden: false }
    }

    /// Renames a field instead.
    pub(crate) fn field(self, path: &'a [String]) -> Self {
        Self { path, ..self }
    }

    fn is_meant(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Path(p) => self.path.is_empty() && p.qself.is_none() && p.path.is_ident(self.from),
            Expr::Field(f) => {
                syntax::field_path(f).is_some_and(|(base, path)| base == self.from && path == self.path)
            }
            _ => false,
        }
    }
}

impl Scoped for Rename<'_> {
    type Names = bool;
    fn begin(&mut self) -> bool {
        self.is_hidden
    }
    fn end(&mut self, around: bool) {
        self.is_hidden = around;
    }
    fn bind(&mut self, binding: &Binding<'_>) {
        // Capitalised names too: where there is a variable of the name, there is no constant.
        self.is_hidden |= syntax::bound_always(binding.pat).iter().any(|b| b.ident == self.from);
    }
}

impl VisitMut for Rename<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if !self.is_hidden && self.is_meant(expr) {
            *expr = self.to.clone();
        } else {
            scopes::visit_expr(self, expr);
        }
    }

    fn visit_field_value_mut(&mut self, field: &mut syn::FieldValue) {
        // `S { i }` becomes `S { i: renamed }`.
        if field.colon_token.is_none() && !self.is_hidden && self.is_meant(&field.expr) {
            field.colon_token = Some(Default::default());
        }
        self.visit_expr_mut(&mut field.expr);
    }

    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        if !syntax::values_among(&block.stmts).any(|item| item == self.from) {
            scopes::visit_block(self, block);
        }
    }

    fn visit_local_mut(&mut self, local: &mut syn::Local) {
        scopes::visit_local(self, local);
    }

    /// A function of its own has no variables of the code around it.
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

//! Another name for one variable.

use syn::{Expr, visit_mut::VisitMut};

use super::{
    scopes::{self, Binding, Scoped},
    syntax,
};

/// Renames one variable, where no inner binding or item takes its name.
pub(crate) struct Rename<'a> {
    from: &'a str,
    /// The expression that stands for it.
    to: &'a Expr,
    /// Set where something else has the name.
    is_hidden: bool,
}

impl<'a> Rename<'a> {
    pub(crate) fn new(from: &'a str, to: &'a Expr) -> Self {
        Self { from, to, is_hidden: false }
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
        if self.is_hidden {
            return scopes::visit_expr(self, expr);
        }
        match expr {
            Expr::Path(p) if p.qself.is_none() && p.path.is_ident(self.from) => *expr = self.to.clone(),
            _ => scopes::visit_expr(self, expr),
        }
    }

    fn visit_field_value_mut(&mut self, field: &mut syn::FieldValue) {
        // `S { i }` becomes `S { i: renamed }`.
        if field.colon_token.is_none() && syntax::plain_name(&field.expr).is_some_and(|n| n == self.from) {
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

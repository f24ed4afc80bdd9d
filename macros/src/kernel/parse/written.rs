//! The state that a kernel writes: `x.set([i, j], v)` notes a value and its place, which are the results of the function.

use proc_macro2::Span;
use syn::{ExprReturn, Ident, ItemFn, ReturnType, Type, spanned::Spanned};

use super::{Parser, header::peeled};
use crate::{
    diag::{Code, Errors},
    kernel::{
        model::{
            Block, Expr, Extent, Float, Header, Input, Kind, LocalId, Output, Pattern, Scalar, Statement,
            TypeId, ViewCall,
        },
        views::ViewOp,
    },
    krate::generated_at,
};

const NO_RESULT: &str = "a kernel that writes a state has no result";

/// The variables of a write.
pub(super) struct Written {
    view: LocalId,
    value: LocalId,
    /// One more than the number of the element; 0 if nothing is written.
    place: LocalId,
    /// If there is a write.
    is_set: bool,
    /// Number of errors above the body.
    errors: usize,
}

/// Refuses a second state.
pub(super) fn check(inputs: &[Input], errors: &mut Errors) {
    if let Some(second) = inputs.iter().filter(|input| input.is_written).nth(1) {
        let help = "write it in a kernel of its own; as a `View`, it can be read";
        errors.push(Code::KernelItem, &second.name, "a kernel writes one state", help);
    }
}

/// The value of each element, and its place.
pub(super) fn outputs(item: &ItemFn, state: &Input, errors: &mut Errors) -> Vec<Output> {
    if let ReturnType::Type(_, ty) = &item.sig.output
        && !matches!(peeled(ty), Type::Tuple(tuple) if tuple.elems.is_empty())
    {
        errors.push(
            Code::KernelItem,
            ty,
            NO_RESULT,
            "remove `-> …`, and compute a result in a kernel of its own",
        );
    }
    [state.scalar, Scalar::U32].map(|scalar| Output { scalar, extent: Extent::One }).to_vec()
}

impl Parser<'_> {
    pub(super) fn is_written(&self, view: LocalId) -> bool {
        self.written.as_ref().is_some_and(|written| written.view == view)
    }

    /// Declares the variables of a write.
    pub(super) fn bind_written(&mut self, header: &Header) {
        let Some(view) = header.inputs.iter().position(|input| input.is_written) else { return };
        let at = generated_at(header.name.span());
        let [value, place] = ["__written", "__place"].map(|name| {
            let ty = self.fresh();
            self.names.bind(Ident::new(name, at), true, ty)
        });
        self.written = Some(Written { view, value, place, is_set: false, errors: self.errors.count() });
    }

    /// `x.set([i, j], v)`: both variables change, once place and value are known. A jump out of either changes none, and a write
    /// inside of the value comes before.
    pub(super) fn write(&mut self, place: ViewCall, value: Expr, span: Span) -> Kind {
        let Some(written) = &mut self.written else { return self.nothing(span).kind };
        written.is_set = true;
        let (to, at) = (written.value, written.place);
        let place = self.made(Kind::View(place), span);
        let known = [("__known_place", place), ("__known_value", value)].map(|(name, value)| {
            let ty = self.fresh();
            (self.names.bind(Ident::new(name, generated_at(span)), false, ty), value)
        });
        // What does not fit is shown where it stands.
        let from = [0, 1].map(|i| (known[i].0, known[i].1.span));
        let lets = known.map(|(local, value)| Statement::Let {
            pattern: Pattern::One(Some(local)),
            annotated: None,
            value: Some(value),
        });
        let assigned = [(at, from[0]), (to, from[1])].map(|(to, (from, shown))| {
            let value = Box::new(self.made(Kind::Local(from), shown));
            Statement::Expr(self.made(Kind::Assign { to, op: None, value, operator: span }, span))
        });
        let statements = lets.into_iter().chain(assigned).collect();
        Kind::Block(Block { statements, value: None, ty: self.fresh(), span })
    }

    /// `return;`
    pub(super) fn return_written(&mut self, expr: &ExprReturn) -> Kind {
        if let Some(value) = &expr.expr {
            self.errors.push(Code::KernelMismatch, value, NO_RESULT, "write `return;`");
        }
        Kind::Return(Box::new(self.results(expr.span())))
    }

    fn results(&mut self, span: Span) -> Expr {
        let Some(Written { value, place, .. }) = self.written else { return self.nothing(span) };
        let both = [value, place].map(|local| self.made(Kind::Local(local), span));
        self.made(Kind::Tuple(both.into()), span)
    }

    /// The body with both variables, whose values are its results; and what stood at its end.
    pub(super) fn end_written(
        &mut self,
        mut block: Block,
        header: &Header,
    ) -> (Block, Option<(TypeId, Span)>) {
        let Some(Written { view, value, place, is_set, errors }) = self.written else { return (block, None) };
        if !is_set && self.errors.count() == errors {
            let (shown, name) = (self.shown(view), &header.inputs[view].name);
            let help = format!(
                "write `{}`; a state that is only read is a `View`, without `&mut`",
                ViewOp::Set.example(&shown)
            );
            self.errors.push(Code::KernelItem, name, format!("`{name}` is never written"), help);
        }
        let span = block.span;
        let mut statements: Vec<Statement> = Vec::new();
        for (local, scalar) in [(value, header.inputs[view].scalar), (place, Scalar::U32)] {
            let zero = match scalar {
                Scalar::F32 | Scalar::F64 => Kind::Float(Float::ZERO, Some(scalar)),
                Scalar::Bool => Kind::Bool(false),
                _ => Kind::Integer(0, Some(scalar)),
            };
            let value = Some(self.made(zero, span));
            statements.push(Statement::Let { pattern: Pattern::One(Some(local)), annotated: None, value });
        }
        statements.append(&mut block.statements);
        block.statements = statements;
        if block.diverges() {
            return (block, None);
        }
        let end = block.value.take().map(|value| {
            let end = (value.ty, value.span);
            block.statements.push(Statement::Expr(*value));
            end
        });
        block.value = Some(Box::new(self.results(span)));
        (block, end)
    }
}

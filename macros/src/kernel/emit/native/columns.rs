//! The function of rows that lie side by side, some of them at a time: what differs between rows is an array, and closures are
//! told the number of their row.

use std::cell::{Cell, RefCell};

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Ident, Index};

use super::{Native, lang, ty};
use crate::{
    kernel::{
        model::{
            Block, Body, Closure, Expr, Extent, Header, Input, Kind, LocalId, Pattern, RowCall, Scalar,
            Statement,
        },
        rows::RowOp,
        types::Types,
    },
    krate::{generated_at, private},
};

/// The state of such a function while it is written.
pub(super) struct Columns {
    /// For each variable, whether it has a value for each row.
    differs: Vec<bool>,
    /// Reductions that come before the statement being written.
    before: RefCell<Vec<TokenStream>>,
    reductions: Cell<usize>,
}

/// Returns the path of what rows that lie side by side are.
fn of() -> TokenStream {
    let p = private();
    quote!(#p::kernel::columns)
}

/// The number of the row.
fn column(at: Span) -> Ident {
    Ident::new("__column", generated_at(at))
}

/// `fn columns(…)`, unless a result is a row, or there may be rows of which not all are reduced, or by index.
pub(in crate::kernel::emit) fn function(header: &Header, body: &Body, types: &Types) -> Option<TokenStream> {
    if !fits(header, body) {
        return None;
    }
    let differs = differing(header, body);
    let columns = Columns { differs, before: RefCell::default(), reductions: Cell::new(0) };
    let native = Native { body, types, lang: lang(), columns: Some(columns) };
    let (lang, of, at) = (lang(), of(), header.name.span());
    let parameters = header.inputs.iter().map(|input| {
        let (name, element) = (&input.name, ty(input.scalar, input.name.span()));
        match input.extent {
            Extent::One => quote!(#name: #of::Each<#element>),
            Extent::Row => quote!(#name: #of::Input<'_, #element>),
        }
    });
    let places = header.outputs.iter().enumerate().map(|(i, output)| {
        let (place, element) = (place(i, at), ty(output.scalar, header.output_span));
        quote!(#place: &mut [<#element as #lang::rows::Stored>::Raw])
    });
    let statements = body.block.statements.iter().map(|statement| match statement {
        Statement::Let { pattern, value: Some(value), .. } => native.columns_let(pattern, value),
        _ => TokenStream::new(),
    });
    let results = body.block.value.as_ref().map(|value| native.columns_results(header, value));
    Some(quote! {
        #[allow(warnings, clippy::all, clippy::pedantic, clippy::nursery)]
        #[inline(always)]
        fn columns(#(#parameters,)* #(#places),*) { #(#statements)* #results }
    })
}

/// For each variable outside of blocks and closures, whether it has a value for each row: it is none itself.
fn differing(header: &Header, body: &Body) -> Vec<bool> {
    let mut outside: Vec<LocalId> = (0..header.inputs.len()).collect();
    for statement in &body.block.statements {
        if let Statement::Let { pattern, .. } = statement {
            bound(pattern, &mut outside);
        }
    }
    (0..body.locals.len()).map(|i| outside.contains(&i) && body.locals[i].row.is_none()).collect()
}

fn place(number: usize, at: Span) -> Ident {
    format_ident!("__result{number}", span = generated_at(at))
}

/// Returns whether a kernel can be written so.
fn fits(header: &Header, body: &Body) -> bool {
    let is_input = |input: &Input| !input.mutable && input.scalar != Scalar::Random;
    header.inputs.iter().all(is_input)
        && header.inputs.iter().any(|input| input.extent == Extent::Row)
        && header.outputs.iter().all(|output| output.extent == Extent::One)
        && !body.indexes_rows
        && !body.has_loops
        && !body.locals.iter().any(|local| local.mutable)
        && body.block.statements.iter().all(|statement| match statement {
            Statement::Let { pattern, value: Some(value), .. } => {
                is_reduced(value, true) && (is_one(pattern) || !binds_row(body, pattern))
            }
            _ => false,
        })
        && body.block.value.as_ref().is_some_and(|value| is_reduced(value, true))
}

fn is_one(pattern: &Pattern) -> bool {
    matches!(pattern, Pattern::One(_))
}

fn binds_row(body: &Body, pattern: &Pattern) -> bool {
    match pattern {
        Pattern::One(local) => local.is_some_and(|local| body.locals[local].row.is_some()),
        Pattern::Tuple(parts, _) => parts.iter().any(|part| binds_row(body, part)),
    }
}

/// Returns whether every row in an expression is reduced, whatever values there are: `outside` of blocks and closures.
fn is_reduced(expr: &Expr, outside: bool) -> bool {
    let of = |expr: &Expr| is_reduced(expr, outside);
    match &expr.kind {
        Kind::Bool(_) | Kind::Integer(..) | Kind::Float(..) | Kind::Local(_) | Kind::Constant(_) => true,
        Kind::Neg(value) | Kind::Not(value) | Kind::Cast(value, _) | Kind::From(_, value) => of(value),
        Kind::Binary(_, left, right) | Kind::Logic { left, right, .. } => of(left) && of(right),
        Kind::Method(_, _, all) | Kind::Call(_, all) | Kind::Tuple(all) => all.iter().all(of),
        Kind::If { condition, then, other } => {
            of(condition)
                && block_is_reduced(then)
                && other.as_ref().is_none_or(|other| is_reduced(other, false))
        }
        Kind::Match { value, arms } => of(value) && arms.iter().all(|arm| is_reduced(&arm.value, false)),
        Kind::Block(block) => block_is_reduced(block),
        Kind::Row(call) => {
            (outside || call.op == RowOp::Len)
                && of(&call.row)
                && call.values.iter().all(of)
                && call.closures.iter().all(|closure| is_reduced(&closure.body, false))
        }
        Kind::For(_)
        | Kind::Assign { .. }
        | Kind::Break(_)
        | Kind::Continue(_)
        | Kind::Return(_)
        | Kind::View(_) => false,
    }
}

fn block_is_reduced(block: &Block) -> bool {
    let statements = block.statements.iter().all(|statement| match statement {
        Statement::Let { value, .. } => value.as_ref().is_none_or(|value| is_reduced(value, false)),
        Statement::Expr(expr) => is_reduced(expr, false),
    });
    statements && block.value.as_ref().is_none_or(|value| is_reduced(value, false))
}

impl Columns {
    /// The value of a variable that has one for each row.
    pub(super) fn local(&self, native: &Native<'_>, local: LocalId, at: Span) -> Option<TokenStream> {
        self.differs[local].then(|| {
            let (name, column) = (native.local(local, at), column(at));
            quote!(#name[#column])
        })
    }
}

impl Native<'_> {
    /// A variable: a row, or a value for each of them.
    fn columns_let(&self, pattern: &Pattern, value: &Expr) -> TokenStream {
        if let Pattern::One(Some(local)) = pattern
            && self.body.locals[*local].row.is_some()
        {
            let (name, of, row) = (&self.body.locals[*local].name, of(), self.expr(value));
            let row = match self.body.is_kept(*local, value) {
                true => quote!(&#of::keep(#row)),
                false => row,
            };
            let before = self.reductions_before();
            return quote!(#before let #name = #row;);
        }
        let values = self.each(value);
        let mut names = Vec::new();
        bound(pattern, &mut names);
        if let (Pattern::One(_), [local]) = (pattern, &names[..]) {
            let name = &self.body.locals[*local].name;
            return quote!(let #name = { #values };);
        }
        let all = Ident::new("__all", generated_at(Span::call_site()));
        let (of, column, pattern) = (of(), column(Span::call_site()), self.pattern(pattern));
        let names = names.iter().map(|local| {
            let name = &self.body.locals[*local].name;
            quote!(let #name = #of::each(|#column: ::core::primitive::usize| {
                let #pattern = #all[#column];
                #name
            });)
        });
        quote!(let #all = { #values }; #(#names)*)
    }

    /// The values of an expression for each row, after the reductions in it.
    fn each(&self, value: &Expr) -> TokenStream {
        let tokens = self.expr(value);
        let (of, before, column) = (of(), self.reductions_before(), column(value.span));
        let known = self.known(value.ty).map(|ty| quote!(-> #ty));
        quote!(#before #of::each(|#column: ::core::primitive::usize| #known { #tokens }))
    }

    fn reductions_before(&self) -> TokenStream {
        let taken = self.columns.as_ref().map(|columns| columns.before.take());
        taken.into_iter().flatten().collect()
    }

    fn columns_results(&self, header: &Header, value: &Expr) -> TokenStream {
        let (at, of, count) = (header.name.span(), of(), header.outputs.len());
        let values = self.each(value);
        let all = Ident::new("__all", generated_at(at));
        let column = column(at);
        let puts = header.outputs.iter().enumerate().map(|(i, output)| {
            let (place, element, part) = (place(i, at), ty(output.scalar, at), Index::from(i));
            let value = match count {
                1 => quote!(#all[#column]),
                _ => quote!(#all[#column].#part),
            };
            quote! {
                #of::set::<#element>(
                    #place,
                    &#of::each(|#column: ::core::primitive::usize| #value),
                );
            }
        });
        quote!(let #all = { #values }; #(#puts)*)
    }

    /// A method of rows; reductions are computed before, for all of them.
    pub(super) fn columns_row(&self, columns: &Columns, call: &RowCall, at: Span) -> TokenStream {
        let (of, name) = (of(), Ident::new(call.op.name(), at));
        let row = self.expr(&call.row);
        let (column, is_fold) = (column(at), call.op == RowOp::Fold);
        let values = call.values.iter().map(|value| {
            let value = self.expr(value);
            match is_fold {
                true => quote!(#of::each(|#column: ::core::primitive::usize| #value)),
                false => value,
            }
        });
        let closures = call.closures.iter().map(|closure| self.columns_closure(closure));
        let tokens = quote_spanned!(at=> #of::#name(#row #(, #values)* #(, #closures)*));
        if !call.op.is_collective() || call.op.is_row() {
            return tokens;
        }
        let number = columns.reductions.get();
        columns.reductions.set(number + 1);
        let result = format_ident!("__reduced{number}", span = generated_at(at));
        columns.before.borrow_mut().push(quote!(let #result = #tokens;));
        quote!(#result[#column])
    }

    fn columns_closure(&self, closure: &Closure) -> TokenStream {
        let column = column(closure.span);
        let (parameters, result, body) = self.closure_parts(closure);
        quote_spanned!(closure.span=> |#column: ::core::primitive::usize, #(#parameters),*| #result { #body })
    }
}

/// The variables of a pattern.
fn bound(pattern: &Pattern, names: &mut Vec<LocalId>) {
    match pattern {
        Pattern::One(local) => names.extend(*local),
        Pattern::Tuple(parts, _) => parts.iter().for_each(|part| bound(part, names)),
    }
}

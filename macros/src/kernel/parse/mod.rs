//! From tokens to the model: names are resolved, and syntax that the language does not have is rejected.

mod control;
mod expression;
mod header;
mod index;
mod names;
mod rows;
mod statement;
mod views;
mod written;

pub(super) use header::header;

use syn::{ItemFn, Stmt};

use self::{names::Names, written::Written};
use super::model::{Body, Extent, Form, Header, TypeId, ViewType};
use crate::diag::{Code, Errors};

/// The state for reading a body.
struct Parser<'e> {
    errors: &'e mut Errors,
    names: Names,
    /// The function's own name.
    name: String,
    form: Form,
    types: usize,
    /// If a value of a row is read by index.
    indexes_rows: bool,
    /// If the place of a value of a row is looked for.
    finds_places: bool,
    /// The types of what folds of rows have for each lane.
    folds: Vec<TypeId>,
    /// The values that it writes.
    written: Option<Written>,
}

/// Reads the body of a function whose signature is known.
pub(super) fn body(item: &ItemFn, header: &Header, errors: &mut Errors) -> Body {
    let (name, form) = (header.name.to_string(), header.form);
    let mut parser = Parser {
        errors,
        names: Names::default(),
        name,
        form,
        types: 0,
        indexes_rows: false,
        finds_places: false,
        folds: Vec::new(),
        written: None,
    };
    for input in &header.inputs {
        let ty = parser.fresh();
        let local = parser.names.bind(input.name.clone(), input.mutable, ty);
        parser.names.locals[local].row = (input.extent == Extent::Row).then_some(0);
        parser.names.locals[local].view = input.view.map(|rank| ViewType { scalar: input.scalar, rank });
        if (form == Form::Index || input.is_key) && !input.mutable {
            parser.names.note_bound(local);
        }
    }
    for place in &header.index {
        let ty = parser.fresh();
        let local = parser.names.bind(place.name.clone(), place.mutable, ty);
        if !place.mutable {
            parser.names.note_bound(local);
        }
    }
    parser.bind_written(header);
    parser.collect_items(&item.block.stmts);
    let block = parser.block(&item.block, true);
    let (block, end) = parser.end_written(block, header);
    let Parser { names, types, indexes_rows, finds_places, folds, .. } = parser;
    let has_loops = names.has_loops();
    let Names { locals, callees, constants, items, .. } = names;
    Body {
        block,
        locals,
        callees,
        constants,
        items,
        types,
        indexes_rows,
        finds_places,
        folds,
        has_loops,
        end,
    }
}

impl Parser<'_> {
    fn fresh(&mut self) -> TypeId {
        self.types += 1;
        self.types - 1
    }

    /// `const`s of the body are in scope before they are declared.
    fn collect_items(&mut self, statements: &[Stmt]) {
        for statement in statements {
            if let Stmt::Item(syn::Item::Const(item)) = statement {
                self.names.item(item, self.errors);
            }
        }
    }

    /// Refuses `at`.
    fn refuse(&mut self, at: impl quote::ToTokens, what: &str, instead: &str) {
        let message = format!("a kernel cannot have {what}");
        self.errors.push(Code::KernelSyntax, at, message, instead);
    }
}

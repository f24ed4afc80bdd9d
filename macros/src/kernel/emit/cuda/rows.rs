//! The function of a row: methods are functions of `rows.cuh`, for all threads that work on the row, and closures are
//! lambdas.

use std::{fmt::Write as _, mem};

use super::{Cuda, To, is_inline};
use crate::kernel::{
    model::{Body, Closure, Expr, Extent, Header, Kind, Pattern, RowCall, TypeId},
    rows::RowOp,
    types::Types,
};

/// The text of a function.
pub(super) fn text(header: &Header, body: &Body, types: &Types) -> String {
    let mut cuda = Cuda::new(body, types);
    let (mut templates, mut parameters) = ("class C".to_owned(), "const C& cx".to_owned());
    for (i, input) in header.inputs.iter().enumerate() {
        let (ty, name) = (input.scalar.name(), cuda.local(i));
        let _ = match input.extent {
            Extent::One => write!(parameters, ", {ty} {name}"),
            Extent::Row => {
                let _ = write!(templates, ", class R{i}");
                match body.is_held(i) {
                    true => {
                        cuda.line(&format!("const auto {name} = rows::hold(cx, x{i});"));
                        write!(parameters, ", const R{i}& x{i}")
                    }
                    false => write!(parameters, ", const R{i}& {name}"),
                }
            }
        };
    }
    for i in 0..header.outputs.len() {
        let _ = write!(templates, ", class Y{i}");
        let _ = write!(parameters, ", const Y{i}& y{i}");
    }
    for statement in &body.block.statements {
        cuda.statement(statement);
    }
    if let Some(value) = &body.block.value {
        cuda.results(header, value);
    }
    format!("template <{templates}> DEVICE void ${{f}}({parameters}) {{\n{}}}\n", cuda.out)
}

impl Cuda<'_> {
    /// Puts the function's value where its results go.
    fn results(&mut self, header: &Header, value: &Expr) {
        let count = header.outputs.len();
        match &value.kind {
            Kind::Tuple(parts) if count > 1 => {
                for (i, part) in parts.iter().enumerate() {
                    self.result(i, part);
                }
            }
            _ if count > 1 => {
                let whole = self.kept(value);
                for i in 0..count {
                    self.line(&format!("rows::put(cx, y{i}, {whole}.v{i});"));
                }
            }
            _ => self.result(0, value),
        }
    }

    fn result(&mut self, i: usize, value: &Expr) {
        let value = self.value(value);
        self.line(&format!("rows::put(cx, y{i}, {value});"));
    }

    /// A `let` of a row: one that is used more than once is computed once.
    pub(super) fn names_row(&mut self, pattern: &Pattern, value: &Expr) {
        let text = self.value(value);
        match pattern {
            Pattern::One(Some(local)) if self.body.is_kept(*local, value) => {
                let name = self.local(*local);
                self.line(&format!("const auto {name} = rows::keep(cx, {text});"));
            }
            Pattern::One(Some(local)) => {
                let name = self.local(*local);
                self.line(&format!("const auto {name} = {text};"));
            }
            _ => {}
        }
    }

    pub(super) fn row(&mut self, call: &RowCall) -> String {
        let row = self.value(&call.row);
        let values = self.texts(call.values.iter());
        let mut arguments = vec![row];
        match call.op {
            RowOp::At => {
                arguments
                    .extend(call.values.iter().zip(&values).map(|(index, text)| self.index(index, text)));
            }
            _ => arguments.extend(values),
        }
        if !call.op.is_row() {
            arguments.insert(0, "cx".to_owned());
        }
        for closure in &call.closures {
            arguments.push(self.lambda(closure));
        }
        format!("rows::{}({})", call.op.name(), arguments.join(", "))
    }

    fn lambda(&mut self, closure: &Closure) -> String {
        let outer = mem::take(&mut self.out);
        let loops = mem::take(&mut self.loops);
        let jumps = mem::take(&mut self.jumps);
        self.depth += 1;
        let parameters: Vec<String> =
            closure.parameters.iter().zip(&closure.types).map(|(p, ty)| self.parameter(p, *ty)).collect();
        let start = mem::take(&mut self.out);
        let simple = start.is_empty() && is_inline(&closure.body);
        let ty = self.ty(closure.body.ty);
        if simple {
            let value = self.value(&closure.body);
            self.out = format!(" return {value}; ");
        } else {
            self.put(&closure.body, &To::Return);
        }
        self.depth -= 1;
        let body = mem::replace(&mut self.out, outer);
        (self.loops, self.jumps) = (loops, jumps);
        let end = if simple { String::new() } else { format!("{:width$}", "", width = 4 * self.depth) };
        let line = if simple { "" } else { "\n" };
        format!("[&]({}) -> {ty} {{{line}{start}{body}{end}}}", parameters.join(", "))
    }

    /// Declares a parameter, and takes it apart in the lines of the body.
    fn parameter(&mut self, pattern: &Pattern, ty: TypeId) -> String {
        let ty = self.ty(ty);
        match pattern {
            Pattern::One(Some(local)) => {
                format!("{ty} {}", self.local(*local))
            }
            Pattern::One(None) => {
                let name = self.temporary();
                format!("{ty} {name}")
            }
            Pattern::Tuple(parts, _) => {
                let name = self.temporary();
                self.parts(parts, &name);
                format!("{ty} {name}")
            }
        }
    }
}

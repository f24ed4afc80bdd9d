//! The function of an index: views have types that the entry chooses, and methods are functions of `index.cuh`.

use std::fmt::Write as _;

use super::{Cuda, To, output};
use crate::kernel::{
    model::{Body, Header, ViewCall},
    types::Types,
    views::ViewOp,
};

/// The text of a function.
pub(super) fn text(header: &Header, body: &Body, types: &Types) -> String {
    let mut cuda = Cuda::new(body, types);
    let (mut templates, mut parameters) = ("class C".to_owned(), "C& cx".to_owned());
    for (i, input) in header.inputs.iter().enumerate() {
        let (ty, name) = (input.scalar.name(), cuda.local(i));
        let _ = match input.view {
            None => write!(parameters, ", {ty} {name}"),
            Some(_) => {
                let _ = write!(templates, ", class X{i}");
                write!(parameters, ", const X{i}& {name}")
            }
        };
    }
    let first = header.inputs.len();
    for local in first..first + header.index.len() {
        let _ = write!(parameters, ", i32 {}", cuda.local(local));
    }
    cuda.statements(&body.block, &To::Return);
    format!("template <{templates}> DEVICE {} ${{f}}({parameters}) {{\n{}}}\n", output(header), cuda.out)
}

impl Cuda<'_> {
    pub(super) fn view(&mut self, call: &ViewCall) -> String {
        let view = self.local(call.view);
        // In the order in which Rust evaluates them.
        let mut texts = self.texts(call.index.iter().chain(call.other.as_deref()));
        let other = call.other.as_ref().and_then(|_| texts.pop());
        let index: Vec<String> =
            call.index.iter().zip(&texts).map(|(index, text)| self.index(index, text)).collect();
        let index = index.join(", ");
        match call.op {
            ViewOp::Dim => format!("views::dim({view}, {}u)", call.axis),
            ViewOp::At => format!("views::at(cx, {view}, {index})"),
            ViewOp::Set => format!("views::place(cx, {view}, {index})"),
            ViewOp::AtOr => format!("views::at_or({view}, {}, {index})", other.unwrap_or_default()),
        }
    }
}

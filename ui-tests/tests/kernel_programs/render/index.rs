//! Kernels of indices as text.

use super::{ITEMS, Writer, tuple};
use crate::program::{Argument, Expr, Function, IndexParts, Program, Read, Set, Ty};

/// A function of an index.
pub(super) fn kernel(program: &Program, function: &Function, index: &IndexParts) -> String {
    let mut parameters: Vec<String> = (0..function.inputs)
        .map(|i| {
            let ty = function.variables[i].name();
            match &program.arguments[i] {
                Argument::Tensor(view) if index.views.contains(&i) => {
                    format!("p{i}: View<{ty}, {}>", view.axes.len())
                }
                _ => format!("p{i}: {ty}"),
            }
        })
        .collect();
    parameters.extend((0..function.randoms.len()).map(|i| format!("r{i}: Random")));
    if let (Some(sizes), Some(ty)) = (&index.state, function.outputs.last()) {
        parameters.push(format!("state: &mut View<{}, {}>", ty.name(), sizes.len()));
    }
    let names = &function.names[function.inputs..function.inputs + index.rank];
    parameters.push(format!("[{}]: [i32; {}]", names.join(", "), index.rank));
    let outputs = tuple(function.outputs.iter().map(|ty| ty.name().to_owned()).collect());
    let result = match &index.state {
        None => format!(" -> {outputs}"),
        Some(_) => String::new(),
    };
    let mut text =
        format!("#[kernel(index)]\npub fn {}({}){result} {{\n", function.name, parameters.join(", "));
    text += ITEMS;
    let writer = Writer { program, function };
    writer.statements(&function.body, &mut Vec::new(), &mut text);
    text + &writer.ends(&function.results) + "\n}\n"
}

impl Writer<'_> {
    /// The results, or the write of a state that they are.
    pub(super) fn ends(&self, results: &[Expr]) -> String {
        let values: Vec<String> = results.iter().map(|result| self.value(result)).collect();
        let ([condition, index @ .., value], true) = (&values[..], self.writes()) else {
            return tuple(values);
        };
        let wrapped = index.iter().enumerate();
        let index: Vec<String> =
            wrapped.map(|(axis, part)| format!("({part}).rem_euclid(state.dim({axis}))")).collect();
        format!("if {condition} {{ state.set([{}], {value}) }}", index.join(", "))
    }

    /// A write, whose value may jump.
    pub(super) fn set(&self, set: &Set) -> String {
        let index: Vec<String> = set.index.iter().map(|part| self.value(part)).collect();
        let value = match &set.jump {
            None => self.value(&set.value),
            Some((condition, jump)) => {
                format!("if {} {{ {jump} }} else {{ {} }}", self.value(condition), self.value(&set.value))
            }
        };
        format!("state.set([{}], {value});", index.join(", "))
    }

    pub(super) fn read(&self, view: usize, read: &Read) -> String {
        let name = self.name(view);
        match read {
            Read::Size(axis) => format!("{name}.dim({axis})"),
            Read::At(index) => {
                let parts = index.iter().enumerate().map(|(axis, (ty, part))| {
                    let size = format!("{name}.dim({axis})");
                    match ty {
                        Ty::I32 => format!("({}).rem_euclid({size})", self.value(part)),
                        Ty::I64 | Ty::I8 => {
                            format!("({}).rem_euclid({size} as {})", self.value(part), ty.name())
                        }
                        ty => format!("({}) % ({size} as {})", self.value(part), ty.name()),
                    }
                });
                format!("{name}.at([{}])", parts.collect::<Vec<_>>().join(", "))
            }
            Read::AtOr(index, other) => {
                let parts: Vec<String> = index.iter().map(|part| self.value(part)).collect();
                format!("{name}.at_or([{}], {})", parts.join(", "), self.value(other))
            }
        }
    }
}

//! Kernels of rows as text.

use super::{ITEMS, Writer, tuple};
use crate::program::{Closure, Fold, Function, Outcome, Pipe, Program, Reduction, RowParts};

/// A function of rows.
pub(super) fn kernel(program: &Program, function: &Function, row: &RowParts) -> String {
    let is_row = |random: usize| row.drawn.iter().any(|(drawn, ..)| *drawn == random);
    let values = (0..function.inputs).map(|i| {
        let ty = function.variables[i].name();
        if row.rows.contains(&i) { format!("p{i}: Row<{ty}>") } else { format!("p{i}: {ty}") }
    });
    let randoms = (0..function.randoms.len())
        .map(|i| if is_row(i) { format!("r{i}: Row<Random>") } else { format!("r{i}: Random") });
    let parameters: Vec<String> = values.chain(randoms).collect();
    let outputs = function.outputs.iter().zip(&row.outcomes).map(|(ty, outcome)| match outcome {
        Outcome::Value(_) => ty.name().to_owned(),
        Outcome::Row(_) => format!("Row<{}>", ty.name()),
    });
    let form = if row.back.is_some() { "reduce" } else { "rows" };
    let (name, outputs) = (&function.name, tuple(outputs.collect()));
    let mut text = format!("#[kernel({form})]\npub fn {name}({}) -> {outputs} {{\n", parameters.join(", "));
    text += ITEMS;
    let writer = Writer { program, function };
    for (random, row, method) in &row.drawn {
        text += &format!("let {} = r{random}.map(|r| r.{method}());\n", writer.name(*row));
    }
    writer.statements(&function.body, &mut Vec::new(), &mut text);
    let results = row.outcomes.iter().map(|outcome| match outcome {
        Outcome::Value(value) => writer.value(value),
        Outcome::Row(pipe) => writer.pipe(pipe),
    });
    text + &tuple(results.collect()) + "\n}\n"
}

impl Writer<'_> {
    pub(super) fn pipe(&self, pipe: &Pipe) -> String {
        let mut text = self.name(pipe.rows[0]).to_owned();
        for row in &pipe.rows[1..] {
            text += &format!(".zip({})", self.name(*row));
        }
        if pipe.numbered {
            text += ".enumerate()";
        }
        // As the values are paired; a stage after the first has a plain tuple.
        let mut shape = Some((pipe.rows.len(), pipe.numbered));
        for stage in &pipe.stages {
            let names: Vec<&str> = stage.parameters.iter().map(|parameter| self.name(*parameter)).collect();
            let pattern = match shape.take() {
                Some((rows, numbered)) => {
                    let (number, names) = names.split_at(usize::from(numbered));
                    let paired =
                        names[1..rows].iter().fold(names[0].to_owned(), |all, one| format!("({all}, {one})"));
                    if numbered { format!("({}, {paired})", number[0]) } else { paired }
                }
                None => tuple(names.into_iter().map(str::to_owned).collect()),
            };
            text += &format!(".map(|{pattern}| {})", self.body(stage));
        }
        text
    }

    fn body(&self, closure: &Closure) -> String {
        tuple(closure.body.iter().map(|value| self.value(value)).collect())
    }

    pub(super) fn fold(&self, fold: &Fold) -> String {
        let init = tuple(fold.init.iter().map(|value| self.value(value)).collect());
        let count = fold.init.len();
        let names = |closure: &Closure| -> Vec<String> {
            closure.parameters.iter().map(|parameter| self.name(*parameter).to_owned()).collect()
        };
        let (step, combine) = (names(&fold.step), names(&fold.combine));
        format!(
            "{}.fold({init}, |{}, {}| {}, |{}, {}| {})",
            self.pipe(&fold.pipe),
            tuple(step[..count].to_vec()),
            step[count],
            self.body(&fold.step),
            tuple(combine[..count].to_vec()),
            tuple(combine[count..].to_vec()),
            self.body(&fold.combine)
        )
    }

    pub(super) fn reduction(&self, reduction: &Reduction) -> String {
        match reduction {
            Reduction::Plain(name, pipe) => format!("{}.{name}()", self.pipe(pipe)),
            Reduction::Count(pipe, closure) => {
                let name = self.name(closure.parameters[0]);
                format!("{}.count(|{name}| {})", self.pipe(pipe), self.body(closure))
            }
            Reduction::Fold(fold) => self.fold(fold),
            Reduction::Len(row) => format!("{}.len()", self.name(*row)),
            Reduction::At(row, index) => {
                let row = self.name(*row);
                format!("{row}.at(({}) % {row}.len())", self.value(index))
            }
        }
    }
}

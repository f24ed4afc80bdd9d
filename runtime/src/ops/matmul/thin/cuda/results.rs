//! The text for the results of a kernel: what is read for an element, computed, and written.

use std::{collections::BTreeSet, fmt::Write as _};

use super::{
    super::{
        plan::{Plan, Step, Store, Value},
        variant::Fused,
    },
    Parameters,
};
use crate::{
    DType,
    backend::Launch,
    kernel::compose::{Composition, computed, element, returned, stored},
};

/// The text's work for an element, set by set.
#[derive(Default)]
pub(super) struct Results {
    /// The variables of what it reads besides the products. An element is of one set, so that all sets have the same ones.
    pub(super) declared: BTreeSet<String>,
    /// Computes what follows from the element alone, before earlier kernels have ended.
    pub(super) found: String,
    /// Reads memory, before the products are there.
    pub(super) fetched: String,
    /// Computes and writes.
    pub(super) written: String,
}

impl Results {
    fn variable(&mut self, ty: &str, name: &str) {
        self.declared.insert(format!("    {ty} {name} = {{}};\n"));
    }
}

/// The text for one element of the results.
pub(super) fn results(
    plan: &Plan,
    variant: Fused,
    parameters: &mut Parameters,
    launch: &Launch,
    composition: &mut Composition,
) -> Results {
    let biases = || plan.weights.iter().filter_map(|weight| weight.bias);
    parameters.array("b", biases().map(|bias| launch.inputs[bias.input].addr));
    parameters.array("b_row", biases().map(|bias| bias.strides[0] as u64));
    parameters.array("b_col", biases().map(|bias| bias.strides[1] as u64));
    parameters.array("o", plan.operands.iter().map(|operand| launch.inputs[operand.input].addr));
    parameters.array("o_row", plan.operands.iter().map(|operand| operand.strides[0] as u64));
    parameters.array("o_col", plan.operands.iter().map(|operand| operand.strides[1] as u64));
    let numbers = plan.steps.iter().flat_map(|step| step.constants.iter().flatten());
    parameters.array("number", numbers.map(|number| number.bits()));
    parameters.array("y", plan.stores.iter().map(|store| launch.outputs[store.output].addr));
    let mut to = Results::default();
    let mut writer = Element { plan, variant, composition, number: 0 };
    for set in 0..plan.sets() {
        let begins = format!("            {}if (set == {set}u) {{\n", if set > 0 { "else " } else { "" });
        for text in [&mut to.found, &mut to.fetched, &mut to.written] {
            text.push_str(&begins);
        }
        writer.products(&mut to, set);
        writer.turned(&mut to, set);
        writer.operands(&mut to, set);
        for (i, step) in plan.steps.iter().enumerate() {
            if step.set == set {
                writer.step(&mut to.written, i, step);
            }
        }
        writer.stores(&mut to, set);
        for text in [&mut to.found, &mut to.fetched, &mut to.written] {
            text.push_str("            }\n");
        }
    }
    to
}

/// Writes what is computed for an element.
struct Element<'a> {
    plan: &'a Plan,
    variant: Fused,
    composition: &'a mut Composition,
    /// Number of the next constant.
    number: usize,
}

impl Element<'_> {
    /// The sums, rounded.
    fn products(&self, to: &mut Results, set: usize) {
        for at in 0..self.plan.together {
            let i = set * self.plan.together + at;
            let column = format!("at + {at}u * thin::COLUMNS + column");
            self.product(to, i, &format!("product{i}"), &format!("bias{at}"), &column, "col");
        }
    }

    /// The sum of product `i` in a column of the block, which is column `col` of the product.
    fn product(&self, to: &mut Results, i: usize, name: &str, bias: &str, column: &str, col: &str) {
        let _ = writeln!(to.written, "            f32 {name}_sum = Product::sum(parts, local, {column});");
        if self.plan.weights[i].bias.is_some() {
            let b = self.plan.weights[..i].iter().filter(|weight| weight.bias.is_some()).count();
            to.variable("f32", bias);
            let _ = writeln!(
                to.fetched,
                "            {bias} = to_f32(((const E*)p.b[{b}])[row * p.b_row[{b}] + ({col}) * p.b_col[{b}]]);"
            );
            let _ = writeln!(to.written, "            {name}_sum += {bias};");
        }
        let _ = writeln!(to.written, "            const E {name} = from_f32<E>({name}_sum);");
    }

    /// The product of a set, turned with the other element of its pair.
    fn turned(&self, to: &mut Results, set: usize) {
        let Some((i, turn)) = self.plan.turn(set) else { return };
        let (size, half) = (turn.size, turn.half());
        let (second, column, col, pair) = match turn.is_half_split() {
            true => (
                "column >= thin::COLUMNS / 2u",
                "(column + thin::COLUMNS / 2u) % thin::COLUMNS",
                format!("column >= thin::COLUMNS / 2u ? col - {half}u : col + {half}u"),
                format!("col % {half}u"),
            ),
            false => {
                ("(column & 1u) != 0u", "(column ^ 1u)", "col ^ 1u".into(), format!("col % {size}u / 2u"))
            }
        };
        to.variable("const u32*", "at_position");
        to.variable("double", "per_position");
        let _ = write!(
            to.found,
            "            const u32 pair = (u32)({pair});\n            \
             at_position = rope_position(p.turn{i}, row, pair);\n            \
             per_position = turns_of(p.turn{i}, p.turn{i}.log2_theta, pair);\n"
        );
        let angle = if self.plan.takes_turns() {
            // Found before the products, and in shared memory meanwhile, where each warp has its own, as they take turns.
            let Fused { slices, groups, .. } = self.variant;
            let size = format!("[{slices}][{groups} * thin::COLUMNS]");
            to.declared.insert(format!("    __shared__ f32 sines{size}, cosines{size};\n"));
            let at = "[turn][side * thin::COLUMNS + column]";
            let _ = writeln!(
                to.fetched,
                "            rope_angle(p.turn{i}, *at_position, per_position, &sines{at}, &cosines{at});"
            );
            format!("            const f32 sine = sines{at}, cosine = cosines{at};\n")
        } else {
            to.variable("u32", "position");
            let _ = writeln!(to.fetched, "            position = *at_position;");
            format!(
                "            f32 sine, cosine;\n            \
                 rope_angle(p.turn{i}, position, per_position, &sine, &cosine);\n"
            )
        };
        let product = turn.product;
        self.product(to, product, "other", "bias_of_other", &format!("at + {column}"), &col);
        let _ = write!(
            to.written,
            "{angle}            const f32 turned{i}_value = {second} ? rope_second(to_f32(other), to_f32(product{product}), sine, cosine)\n                \
             : rope_first(to_f32(product{product}), to_f32(other), sine, cosine);\n            \
             const E turned{i} = from_f32<E>(turned{i}_value);\n"
        );
    }

    /// All that the set's steps read, before anything is written.
    fn operands(&self, to: &mut Results, set: usize) {
        let is_read = |i: usize| {
            let mut steps = self.plan.steps.iter();
            steps.any(|step| step.set == set && step.arguments.contains(&Value::Operand(i)))
        };
        let operands = self.plan.operands.iter().enumerate().filter(|(i, _)| is_read(*i));
        for (at, (i, operand)) in operands.enumerate() {
            let ty = element(operand.dtype);
            let name = format!("{ty}_{at}");
            to.variable(ty, &name);
            let _ = writeln!(
                to.fetched,
                "            {name} = ((const {ty}*)p.o[{i}])[row * p.o_row[{i}] + col * p.o_col[{i}]];"
            );
            let _ = writeln!(to.written, "            const {ty} operand{i} = {name};");
        }
    }

    /// The results, to memory.
    fn stores(&self, to: &mut Results, set: usize) {
        let stores = &self.plan.stores;
        for (i, Store { value, dtype, scatter, .. }) in
            stores.iter().enumerate().filter(|(_, store)| store.set == set)
        {
            let ty = element(*dtype);
            let value = self.bits_as(ty, *value);
            if scatter.is_none() {
                let _ = writeln!(to.written, "            (({ty}*)p.y[{i}])[(u64)row * n + col] = {value};");
                continue;
            }
            // All have the same rows (`Scatter::has_rows_of`), and the first in the program reports those that do not exist.
            let is_first = stores[..i].iter().all(|store| store.scatter.is_none());
            let reports = if is_first { "col == 0" } else { "false" };
            to.variable("thin::Destination", "to");
            let _ = writeln!(to.fetched, "            to = thin::destination(p.to{i}, row);");
            let _ = writeln!(
                to.written,
                "            if (thin::place(p.to{i}, row, {reports}, to)) (({ty}*)p.y[{i}])[(u64)to.row * n + col] = {value};"
            );
        }
    }

    /// The element type of a value in memory.
    fn dtype(&self, value: Value) -> DType {
        match value {
            Value::Product(_) | Value::Turned(_) => self.plan.dtype,
            Value::Operand(i) => self.plan.operands[i].dtype,
            Value::Result { step, part } => self.plan.steps[step].stored[part],
        }
    }

    /// The type of a value's variable. A kernel that only moves bits has results of the type that it computes, whatever they are
    /// in memory.
    fn ty(&self, value: Value) -> &'static str {
        match value {
            Value::Result { step, part } => {
                let Step { definition, stored: dtypes, .. } = &self.plan.steps[step];
                stored(definition.outputs[part], dtypes[part])
            }
            _ => element(self.dtype(value)),
        }
    }

    /// A value with its bits as another type of that size, as memory would have them.
    fn bits_as(&self, ty: &str, value: Value) -> String {
        match self.ty(value) == ty {
            true => variable(value),
            false => format!("lang::Same<{ty}>::bits({})", variable(value)),
        }
    }

    fn step(&mut self, text: &mut String, i: usize, step: &Step) {
        let name = self.composition.function(step.definition);
        let mut values = step.arguments.iter();
        let mut arguments = Vec::new();
        for (at, (_, compute)) in step.definition.inputs.iter().enumerate() {
            if step.constants.get(at).is_some_and(Option::is_some) {
                arguments.push(format!(
                    "lang::Bits<{}>::of((u32)p.number[{}])",
                    computed(*compute),
                    self.number
                ));
                self.number += 1;
            } else if let Some(value) = values.next() {
                let read_as = stored(*compute, self.dtype(*value));
                arguments.push(format!("lang::read({})", self.bits_as(read_as, *value)));
            }
        }
        let _ = writeln!(
            text,
            "            const {} result{i} = {name}({});",
            returned(step.definition),
            arguments.join(", ")
        );
        for (part, (dtype, compute)) in step.stored.iter().zip(step.definition.outputs).enumerate() {
            let ty = stored(*compute, *dtype);
            let of = if step.stored.len() > 1 { format!(".v{part}") } else { String::new() };
            let _ = writeln!(
                text,
                "            const {ty} step{i}_{part} = lang::Write<{ty}>::of(result{i}{of});"
            );
        }
    }
}

fn variable(value: Value) -> String {
    match value {
        Value::Product(i) => format!("product{i}"),
        Value::Operand(i) => format!("operand{i}"),
        Value::Result { step, part } => format!("step{step}_{part}"),
        Value::Turned(i) => format!("turned{i}"),
    }
}

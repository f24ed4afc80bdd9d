//! The kernel of a plan: its text, and its launch.

use std::{fmt::Write as _, iter};

use super::{
    GAP, TEXT, Variant,
    plan::{Norm, Plan, Source, Step, Store, Value},
};
use crate::{
    Result,
    backend::{
        Launch,
        cuda::kernels::{FaultSink, Grid, Kernel, SourceFile, Submit},
    },
    kernel::compose::{Composition, Instance, computed, element, returned, stored},
    ops::rope::{ANGLES, angles},
};

/// Threads of a block.
const THREADS: usize = 256;
/// The name of the kernel in its source.
const ENTRY: &str = "fused_product";

/// Launches the kernel.
pub(super) fn launch(plan: &Plan, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
    let variant = variant(plan, gpu.props().multiprocessors);
    let Writer { parameters, instance, blocks, shared } =
        Writer::write(plan, variant, &Reports::new(plan, gpu), launch);
    let grid = Grid { blocks: [blocks as u32, 1, 1], threads: THREADS as u32, shared: shared as u32 };
    gpu.submit_bytes(
        Kernel::plain(&instance.source, &instance.entry),
        grid,
        bytemuck::cast_slice(&parameters),
    )
}

/// The kernel's source, for CI.
pub(super) fn source(plan: &Plan, launch: &Launch) -> &'static SourceFile {
    &Writer::write(plan, variant(plan, 132), &Reports::default(), launch).instance.source
}

fn variant(plan: &Plan, multiprocessors: u32) -> Variant {
    let columns = plan.weights.iter().map(|weight| weight.n).sum();
    Variant::of(multiprocessors, plan.dtype, plan.m, columns)
        .fused(plan.together, matches!(plan.source, Source::Norm(_)))
}

/// Where threads report indices out of range, and the number of the operation of each part that writes to rows of a state.
#[derive(Default)]
struct Reports {
    sink: [u64; 2],
    operations: Vec<u32>,
}

impl Reports {
    fn new(plan: &Plan, gpu: &mut dyn Submit) -> Self {
        let FaultSink { fault, claim } = gpu.faults();
        let scatters = plan.stores.iter().filter_map(|store| store.scatter);
        Self { sink: [fault, claim], operations: scatters.map(|to| gpu.fault_op(to.name)).collect() }
    }
}

/// The text of a struct of words, and the words of one launch.
#[derive(Default)]
struct Parameters {
    fields: String,
    words: Vec<u64>,
}

impl Parameters {
    fn word(&mut self, name: &str, word: u64) {
        let _ = writeln!(self.fields, "    u64 {name};");
        self.words.push(word);
    }

    /// A struct of `common.cuh` or of a header, by its words.
    fn structure(&mut self, ty: &str, name: &str, words: &[u64]) {
        let _ = writeln!(self.fields, "    {ty} {name};");
        self.words.extend(words);
    }

    /// C++ has no arrays without elements.
    fn array(&mut self, name: &str, words: impl IntoIterator<Item = u64>) {
        let before = self.words.len();
        self.words.extend(words);
        let count = self.words.len() - before;
        if count > 0 {
            let _ = writeln!(self.fields, "    u64 {name}[{count}];");
        }
    }
}

/// What a launch needs.
struct Writer {
    parameters: Vec<u64>,
    instance: &'static Instance,
    blocks: usize,
    /// Bytes of shared memory for the rows.
    shared: usize,
}

impl Writer {
    fn write(plan: &Plan, variant: Variant, reports: &Reports, launch: &Launch) -> Self {
        let mut composition = Composition::default();
        let mut parameters = Parameters::default();
        let mut text = String::new();
        let blocks = declare(plan, variant, launch, &mut parameters);
        let rows = match &plan.source {
            Source::Memory(rows) => {
                parameters.word("x", launch.inputs[rows.input].addr);
                parameters.word("x_row", rows.strides[0] as u64);
                String::from(
                    "    product.begin();\n    product.run((const E*)p.x + row0 * p.x_row, p.x_row, m);\n",
                )
            }
            Source::Norm(norm) => norm_text(plan, norm, variant, launch, &mut parameters, &mut composition),
        };
        let pitch = plan.k * plan.dtype.size() + GAP;
        let shared =
            if matches!(plan.source, Source::Norm(_)) { variant.rows.min(plan.m) * pitch } else { 0 };
        places(plan, reports, launch, &mut parameters);
        let results = results(plan, &mut parameters, launch, &mut composition);
        let Variant { rows: most, groups, ahead, .. } = variant;
        let _ = write!(
            text,
            "struct Parameters {{\n{fields}}};\n\n\
             extern \"C\" __global__ void __launch_bounds__({THREADS}, {resident}) {ENTRY}(const __grid_constant__ Parameters p) {{ \
             in_order();\n    \
             using E = {element};\n    \
             using Product = thin::Product<E, {most}, {groups}, {ahead}>;\n    \
             const u32 stacks = ((u32)p.m + {most}u - 1u) / {most}u, row0 = blockIdx.x % stacks * {most}u;\n    \
             const u32 m = (u32)p.m - row0 < {most}u ? (u32)p.m - row0 : {most}u;\n    \
             const u32 block = blockIdx.x / stacks;\n    \
             u32 set = 0;\n\
             {find}    \
             const u32 columns = Product::WIDTH / {together}u;\n    \
             const u64 n = p.n[set], col0 = (u64)(block - (u32)p.first[set]) * columns;\n    \
             auto col_of = [&](u32 column) -> u64 {{\n\
             {turned}        return col0 + column;\n    }};\n    \
             Product product(p.k);\n\
             #pragma unroll\n    \
             for (u32 g = 0; g < {groups}u; ++g) {{\n        \
             const u32 weight = set * {together}u + g / {each}u;\n        \
             const u64 col = col_of(g % {each}u * thin::COLUMNS + product.column());\n        \
             product.set_column(g, (const E*)p.w[weight] + (col < n ? col : n - 1) * p.w_row[weight]);\n    \
             }}\n\
             {rows}    \
             __shared__ Product::Parts parts;\n    \
             product.share(parts);\n    \
             for (u32 i = threadIdx.x; i < m * columns; i += {THREADS}u) {{\n        \
             const u32 local = i / columns, column = i % columns;\n        \
             const u64 row = row0 + local, col = col_of(column);\n        \
             if (col >= n) continue;\n\
             {results}    }}\n}}\n",
            fields = parameters.fields,
            // Rows of f32 are made in as many registers as there are.
            resident = if most == 4 && matches!(plan.source, Source::Norm(_)) { 1 } else { 2 },
            element = element(plan.dtype),
            find = find(plan),
            turned = turned_columns(plan),
            together = plan.together,
            each = groups / plan.together,
        );
        // Only what turns pairs needs their angles.
        let angles = if plan.turns.is_empty() { "" } else { ANGLES };
        let instance = composition.instance(ENTRY, &[TEXT, angles].concat(), &text, ENTRY);
        Self { parameters: parameters.words, instance, blocks, shared }
    }
}

/// Declares the sizes and the weights; returns the number of blocks.
fn declare(plan: &Plan, variant: Variant, launch: &Launch, parameters: &mut Parameters) -> usize {
    parameters.word("m", plan.m as u64);
    parameters.word("k", plan.k as u64);
    let columns = variant.columns() / plan.together;
    let mut first = 0;
    let firsts: Vec<u64> = (0..plan.sets())
        .map(|set| {
            let before = first;
            first += plan.columns(set).div_ceil(columns) as u64;
            before
        })
        .collect();
    parameters.array("first", firsts);
    parameters.array("n", (0..plan.sets()).map(|set| plan.columns(set) as u64));
    parameters.array("w", plan.weights.iter().map(|weight| launch.inputs[weight.rows.input].addr));
    parameters.array("w_row", plan.weights.iter().map(|weight| weight.rows.strides[0] as u64));
    first as usize * plan.m.div_ceil(variant.rows)
}

/// Declares the angles of pairs, and rows of states.
fn places(plan: &Plan, reports: &Reports, launch: &Launch, parameters: &mut Parameters) {
    for (i, turn) in plan.turns.iter().enumerate() {
        let positions = launch.inputs[turn.positions].addr;
        let words = angles(turn.rope, positions, turn.rows, turn.size, turn.strides);
        parameters.structure("RopeParams", &format!("turn{i}"), &words);
    }
    let scatters = plan.stores.iter().enumerate().filter_map(|(i, store)| Some((i, store.scatter?)));
    for ((i, to), operation) in scatters.zip(reports.operations.iter().copied().chain(iter::repeat(0))) {
        let count = to.count.map_or(0, |count| launch.inputs[count].addr);
        let [fault, claim] = reports.sink;
        // Mirrors `Places` of `common.cuh`, without a table.
        let index = [launch.inputs[to.index].addr, count, fault, claim, u64::from(operation)];
        let rows = [plan.m as u64, to.stride as u64, to.rows as u64, 0, 0];
        parameters.structure("Places", &format!("to{i}"), &[index, rows].concat());
    }
}

/// The text that returns the columns of sets in which a pair is half a head apart: both are in one block.
fn turned_columns(plan: &Plan) -> String {
    (0..plan.sets()).fold(String::new(), |mut text, set| {
        if let Some((i, _)) = plan.turn(set).filter(|(_, turn)| turn.is_half_split()) {
            let _ = writeln!(
                text,
                "        if (set == {set}u) {{\n            \
                 const u32 pairs = columns / 2u;\n            \
                 const u64 pair = (u64)(block - (u32)p.first[{set}]) * pairs + column % pairs;\n            \
                 const u64 half = p.turn{i}.half;\n            \
                 return pair / half * p.turn{i}.size + pair % half + (column < pairs ? 0u : half);\n        \
                 }}"
            );
        }
        text
    })
}

/// The text that finds the set of a block.
fn find(plan: &Plan) -> String {
    (1..plan.sets()).fold(String::new(), |mut text, set| {
        let _ = writeln!(text, "    set += block >= (u32)p.first[{set}];");
        text
    })
}

/// The text that makes the rows in shared memory and multiplies them.
fn norm_text(
    plan: &Plan,
    norm: &Norm,
    variant: Variant,
    launch: &Launch,
    parameters: &mut Parameters,
    composition: &mut Composition,
) -> String {
    let name = composition.function(norm.definition);
    let rows =
        composition.rows(norm.definition, norm.rows, plan.dtype, [plan.m.min(variant.rows), plan.k], THREADS);
    parameters.array("r", norm.inputs.iter().map(|matrix| launch.inputs[matrix.input].addr));
    parameters.array("r_row", norm.inputs.iter().map(|matrix| matrix.strides[0] as u64));
    parameters.array("r_number", norm.constants.iter().flatten().map(|number| u64::from(number.bits())));
    parameters.array("s", norm.outputs.iter().flatten().map(|output| launch.outputs[*output].addr));
    let element = element(plan.dtype);
    let mut arguments = String::new();
    let (mut tensor, mut constant) = (0, 0);
    for (i, (_, compute)) in norm.definition.inputs.iter().enumerate() {
        if norm.constants.get(i).is_some_and(Option::is_some) {
            let _ =
                write!(arguments, ", lang::Bits<{}>::of((u32)p.r_number[{constant}])", computed(*compute));
            constant += 1;
        } else {
            let _ = write!(arguments, ", rows::input<{element}>(p.r[{tensor}], row * p.r_row[{tensor}], 1)");
            tensor += 1;
        }
    }
    let mut kept = 0;
    for (i, output) in norm.outputs.iter().enumerate() {
        if i == norm.multiplied {
            let _ = write!(arguments, ", rows::Output<E>{{of_block + local * pitch}}");
        } else if output.is_some() {
            // Every block has the same rows; one writes them.
            let _ =
                write!(arguments, ", rows::Maybe<E>{{block == 0 ? (E*)p.s[{kept}] + row * p.k : nullptr}}");
            kept += 1;
        } else {
            arguments.push_str(", rows::Maybe<E>{nullptr}");
        }
    }
    let each = THREADS / rows.threads;
    format!(
        "    extern __shared__ __align__(16) u8 shared[];\n    \
         E* const of_block = (E*)shared;\n    \
         const u32 pitch = (u32)p.k + {gap}u / sizeof(E);\n    \
         {{\n        \
         {context} cx((u32)p.k, FaultSink{{0, 0}}, 0u);\n        \
         for (u32 some = 0; some < m; some += {each}u) {{\n            \
         u32 local = some + threadIdx.x / {threads}u;\n            \
         cx.is_there = local < m;\n            \
         if (!cx.is_there) local = m - 1;\n            \
         cx.is_real = cx.is_there;\n            \
         const u64 row = row0 + local;\n            \
         {name}(cx{arguments});\n        }}\n    }}\n    \
         product.begin();\n    \
         __syncthreads();\n    \
         product.run(of_block, pitch, m);\n",
        gap = GAP,
        context = rows.context,
        threads = rows.threads,
    )
}

/// The text for one element of the results of a set.
fn results(
    plan: &Plan,
    parameters: &mut Parameters,
    launch: &Launch,
    composition: &mut Composition,
) -> String {
    let biases = || plan.weights.iter().filter_map(|weight| weight.bias);
    parameters.array("b", biases().map(|bias| launch.inputs[bias.input].addr));
    parameters.array("b_row", biases().map(|bias| bias.strides[0] as u64));
    parameters.array("b_col", biases().map(|bias| bias.strides[1] as u64));
    parameters.array("o", plan.operands.iter().map(|operand| launch.inputs[operand.input].addr));
    parameters.array("o_row", plan.operands.iter().map(|operand| operand.strides[0] as u64));
    parameters.array("o_col", plan.operands.iter().map(|operand| operand.strides[1] as u64));
    let numbers = plan.steps.iter().flat_map(|step| step.constants.iter().flatten());
    parameters.array("number", numbers.map(|number| u64::from(number.bits())));
    parameters.array("y", plan.stores.iter().map(|store| launch.outputs[store.output].addr));
    let mut text = String::new();
    let mut writer = Element { plan, composition, number: 0 };
    for set in 0..plan.sets() {
        let _ = writeln!(text, "        {}if (set == {set}u) {{", if set > 0 { "else " } else { "" });
        writer.products(&mut text, set);
        writer.turned(&mut text, set);
        writer.operands(&mut text, set);
        for (i, step) in plan.steps.iter().enumerate() {
            if step.set == set {
                writer.step(&mut text, i, step);
            }
        }
        for (i, Store { value, dtype, scatter, .. }) in
            plan.stores.iter().enumerate().filter(|(_, store)| store.set == set)
        {
            let (ty, value) = (element(*dtype), variable(*value));
            let _ = match scatter {
                None => writeln!(text, "            (({ty}*)p.y[{i}])[row * n + col] = {value};"),
                Some(_) => {
                    // All have the same rows (`Scatter::has_rows_of`), and the first in the program reports those that do not exist.
                    let is_first = plan.stores[..i].iter().all(|store| store.scatter.is_none());
                    let reports = if is_first { "col == 0" } else { "false" };
                    writeln!(
                        text,
                        "            u64 slot{i};\n            \
                         if (thin::place(p.to{i}, row, {reports}, &slot{i})) (({ty}*)p.y[{i}])[slot{i} * n + col] = {value};"
                    )
                }
            };
        }
        text.push_str("        }\n");
    }
    text
}

/// Writes what is computed for an element.
struct Element<'a> {
    plan: &'a Plan,
    composition: &'a mut Composition,
    /// Number of the next constant.
    number: usize,
}

impl Element<'_> {
    /// The sums, rounded.
    fn products(&self, text: &mut String, set: usize) {
        for at in 0..self.plan.together {
            let i = set * self.plan.together + at;
            self.product(text, i, &format!("product{i}"), &format!("{at}u * columns + column"), "col");
        }
    }

    /// The sum of product `i` in a column of the block, which is column `col` of the product.
    fn product(&self, text: &mut String, i: usize, name: &str, column: &str, col: &str) {
        let _ = writeln!(text, "            f32 {name}_sum = Product::sum(parts, local, {column});");
        if self.plan.weights[i].bias.is_some() {
            let b = self.plan.weights[..i].iter().filter(|weight| weight.bias.is_some()).count();
            let _ = writeln!(
                text,
                "            {name}_sum += to_f32(((const E*)p.b[{b}])[row * p.b_row[{b}] + {col} * p.b_col[{b}]]);"
            );
        }
        let _ = writeln!(text, "            const E {name} = from_f32<E>({name}_sum);");
    }

    /// The product of a set, turned with the other element of its pair.
    fn turned(&self, text: &mut String, set: usize) {
        let Some((i, turn)) = self.plan.turn(set) else { return };
        let (second, column, col, pair) = match turn.is_half_split() {
            true => (
                "column >= columns / 2u",
                "second ? column - columns / 2u : column + columns / 2u",
                format!("second ? col - p.turn{i}.half : col + p.turn{i}.half"),
                format!("col % p.turn{i}.size % p.turn{i}.half"),
            ),
            false => (
                "(column & 1u) != 0u",
                "column ^ 1u",
                "col ^ 1u".into(),
                format!("col % p.turn{i}.size / 2u"),
            ),
        };
        let _ = write!(
            text,
            "            const bool second = {second};\n            \
             const u32 other_column = {column};\n            \
             const u64 other_col = {col};\n"
        );
        let product = turn.product;
        self.product(text, product, "other", "other_column", "other_col");
        let _ = write!(
            text,
            "            f32 sine, cosine;\n            \
             rope_angle(p.turn{i}, p.turn{i}.log2_theta, row, (u32)({pair}), &sine, &cosine);\n            \
             const f32 turned{i}_value = second ? rope_second(to_f32(other), to_f32(product{product}), sine, cosine)\n                \
             : rope_first(to_f32(product{product}), to_f32(other), sine, cosine);\n            \
             const E turned{i} = from_f32<E>(turned{i}_value);\n"
        );
    }

    /// All that the set's steps read, before anything is written.
    fn operands(&self, text: &mut String, set: usize) {
        for (i, operand) in self.plan.operands.iter().enumerate() {
            let uses = |step: &Step| step.set == set && step.arguments.contains(&Value::Operand(i));
            if self.plan.steps.iter().any(uses) {
                let ty = element(operand.dtype);
                let _ = writeln!(
                    text,
                    "            const {ty} operand{i} = ((const {ty}*)p.o[{i}])[row * p.o_row[{i}] + col * p.o_col[{i}]];"
                );
            }
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
                arguments.push(format!("lang::read({})", variable(*value)));
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

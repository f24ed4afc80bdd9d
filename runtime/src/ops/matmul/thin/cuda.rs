//! The kernel of a plan: its text, and its launch.

use std::{collections::BTreeSet, fmt::Write as _, iter};

use super::{
    COLUMNS, Fused, GAP, TEXT,
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
/// Most bytes of rows in memory that are brought to shared memory, of which two blocks find room beside each other.
const MOST_SHARED: usize = 64 << 10;
/// The name of the kernel in its source.
const ENTRY: &str = "fused_product";

/// Launches the kernel.
pub(super) fn launch(plan: &Plan, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
    let variant = Fused::of(plan.dtype, plan.m, matches!(plan.source, Source::Norm(_)));
    let Writer { parameters, instance, tiles, shared } =
        Writer::write(plan, variant, &Reports::new(plan, gpu), launch);
    let blocks = variant.blocks(gpu.props().multiprocessors, plan.m, tiles);
    let grid = Grid { blocks: [blocks as u32, 1, 1], threads: THREADS as u32, shared: shared as u32 };
    gpu.submit_bytes(
        Kernel::plain(&instance.source, &instance.entry),
        grid,
        bytemuck::cast_slice(&parameters),
    )
}

/// The kernel's source, for CI.
pub(super) fn source(plan: &Plan, launch: &Launch) -> &'static SourceFile {
    let variant = Fused::of(plan.dtype, plan.m, matches!(plan.source, Source::Norm(_)));
    &Writer::write(plan, variant, &Reports::default(), launch).instance.source
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
    /// Groups of columns, of all sets.
    tiles: usize,
    /// Bytes of shared memory for the rows.
    shared: usize,
}

/// What the text does for an element, set by set.
#[derive(Default)]
struct Results {
    /// The variables of what it reads besides the products. An element is of one set, so that all sets have the same ones.
    declared: BTreeSet<String>,
    /// Computes what follows from the element alone, before earlier kernels have ended.
    found: String,
    /// Reads memory, before the products are there.
    fetched: String,
    /// Computes and writes.
    written: String,
}

impl Results {
    fn variable(&mut self, ty: &str, name: &str) {
        self.declared.insert(format!("    {ty} {name} = {{}};\n"));
    }
}

impl Writer {
    fn write(plan: &Plan, variant: Fused, reports: &Reports, launch: &Launch) -> Self {
        let mut composition = Composition::default();
        let mut parameters = Parameters::default();
        let mut text = String::new();
        let tiles = declare(plan, launch, &mut parameters);
        let bytes = variant.rows.min(plan.m) * (plan.k * plan.dtype.size() + GAP);
        let is_shared = matches!(plan.source, Source::Norm(_)) || bytes <= MOST_SHARED;
        let shared = if is_shared { bytes } else { 0 };
        let (asked, rows) = match &plan.source {
            Source::Memory(rows) => {
                parameters.word("x", launch.inputs[rows.input].addr);
                parameters.word("x_row", rows.strides[0] as u64);
                (String::new(), memory_text(shared > 0))
            }
            Source::Norm(norm) => {
                let rows = norm_text(plan, norm, variant, launch, &mut parameters, &mut composition);
                (asked_text(norm), rows)
            }
        };
        places(plan, reports, launch, &mut parameters);
        let Results { declared, found, fetched, written } =
            results(plan, &mut parameters, launch, &mut composition);
        let Fused { rows: most, groups, ahead, near, resident } = variant;
        // What results read is read ahead of the products where registers hold it meanwhile: for compute capability 10, the compiler
        // finds fewer.
        let (is_ahead, is_after) = match (plan.m, &plan.source) {
            (1, Source::Norm(_)) => ("true", "false"),
            (1, Source::Memory(_)) => ("__CUDA_ARCH__ < 1000", "__CUDA_ARCH__ >= 1000"),
            _ => ("false", "true"),
        };
        let only = |condition: &str, text: &str| match condition {
            "true" => format!("    {text}\n"),
            "false" => String::new(),
            _ => format!("#if {condition}\n    {text}\n#endif\n"),
        };
        let (early, late) = (|text| only(is_ahead, text), |text| only(is_after, text));
        let _ = write!(
            text,
            "struct Parameters {{\n{fields}}};\n\n\
             extern \"C\" __global__ void __launch_bounds__({THREADS}, {resident}) {ENTRY}(const __grid_constant__ Parameters p) {{\n    \
             start_dependents();\n    \
             if (p.early == 0) wait_for_earlier();\n    \
             using E = {element};\n    \
             using Product = thin::Product<E, {most}, {groups}, {ahead}, {near}>;\n    \
             constexpr u32 TOGETHER = {together}, SIDE = {groups} / TOGETHER;\n    \
             const u32 stacks = ((u32)p.m + {most}u - 1u) / {most}u, row0 = blockIdx.x % stacks * {most}u;\n    \
             const u32 m = (u32)p.m - row0 < {most}u ? (u32)p.m - row0 : {most}u;\n    \
             const u32 block = blockIdx.x / stacks, blocks = gridDim.x / stacks, tiles = (u32)p.tiles;\n    \
             auto set_of = [&](u32 tile) -> u32 {{\n        \
             u32 set = 0;\n\
             {find}        \
             return set;\n    }};\n    \
             auto col_of = [&](u32 set, u32 tile, u32 column) -> u32 {{\n\
             {turned}        \
             return (tile - (u32)p.first[set]) * thin::COLUMNS + column;\n    }};\n    \
             Product product(p.k);\n    \
             auto aim = [&](u32 tile) {{\n\
             #pragma unroll\n        \
             for (u32 g = 0; g < {groups}u; ++g) {{\n            \
             const u32 mine = tile + g / TOGETHER * blocks;\n            \
             const bool is_there = mine < tiles;\n            \
             const u32 set = set_of(is_there ? mine : 0u), weight = set * TOGETHER + g % TOGETHER;\n            \
             const u32 n = (u32)p.n[set], col = is_there ? col_of(set, mine, product.column()) : 0u;\n            \
             product.set_column(g, (const E*)p.w[weight] + (col < n ? col : n - 1) * p.w_row[weight], is_there);\n        \
             }}\n    }};\n    \
             aim(block);\n    \
             product.begin();\n    \
             // A thread has at most one element of a group.\n    \
             u32 local, side, column, row, set, col;\n    \
             // Found again where it is used, since registers are scarce meanwhile: volatile, so that it is not kept.\n    \
             auto is_mine = [&](u32 tile) -> bool {{\n        \
             u32 thread;\n        \
             asm volatile(\"mov.u32 %0, %tid.x;\" : \"=r\"(thread));\n        \
             local = thread / (SIDE * thin::COLUMNS);\n        \
             side = thread / thin::COLUMNS % SIDE;\n        \
             column = thread % thin::COLUMNS;\n        \
             row = row0 + local;\n        \
             const u32 mine = tile + side * blocks;\n        \
             if (local >= m || mine >= tiles) return false;\n        \
             set = set_of(mine);\n        \
             col = col_of(set, mine, column);\n        \
             return col < (u32)p.n[set];\n    }};\n\
             {declared}    \
             auto find = [&](u32 tile) {{\n        \
             if (!is_mine(tile)) return;\n\
             {found}    }};\n    \
             auto fetch = [&](u32 tile) {{\n        \
             if (!is_mine(tile)) return;\n\
             {fetched}    }};\n    \
{find_first}\
             {asked}    \
             if (p.early != 0) wait_for_earlier();\n\
             {ahead_of_rows}{rows}    \
             __shared__ Product::Parts both[2];\n    \
             u32 tile = block, turn = 0;\n\
             #pragma unroll 1\n    \
             for (;;) {{\n        \
             const u32 after = tile + SIDE * blocks;\n        \
             product.run(of_block, pitch, m, [&]() -> bool {{\n            \
             if (after >= tiles) return false;\n            \
             aim(after);\n            \
             return true;\n        }});\n        \
             Product::Parts& parts = both[turn];\n        \
             product.share(parts);\n\
{with_results}        \
             if (is_mine(tile)) {{\n            \
             const u32 n = (u32)p.n[set], at = side * TOGETHER * thin::COLUMNS;\n\
             {written}        }}\n        \
             if (after >= tiles) break;\n        \
             tile = after;\n        \
             turn ^= 1u;\n        \
{find_next}\
             {ahead_of_products}    }}\n}}\n",
            find_first = if plan.turns.is_empty() { "" } else { "    find(block);\n" },
            find_next = if plan.turns.is_empty() { "\n" } else { "find(tile);\n" },
            ahead_of_rows = early("fetch(block);"),
            ahead_of_products = early("fetch(tile);"),
            with_results = late("fetch(tile);"),
            fields = parameters.fields,
            declared = String::from_iter(declared),
            element = element(plan.dtype),
            find = find(plan),
            turned = turned_columns(plan),
            together = plan.together,
        );
        // Only what turns pairs needs their angles.
        let angles = if plan.turns.is_empty() { "" } else { ANGLES };
        let instance = composition.instance(ENTRY, &[TEXT, angles].concat(), &text, ENTRY);
        Self { parameters: parameters.words, instance, tiles, shared }
    }
}

/// Declares the sizes and the weights; returns the number of groups of columns.
fn declare(plan: &Plan, launch: &Launch, parameters: &mut Parameters) -> usize {
    parameters.word("m", plan.m as u64);
    parameters.word("k", plan.k as u64);
    parameters.word("early", u64::from(plan.early));
    let mut tiles = 0;
    let firsts: Vec<u64> = (0..plan.sets())
        .map(|set| {
            let before = tiles;
            tiles += plan.columns(set).div_ceil(COLUMNS) as u64;
            before
        })
        .collect();
    parameters.word("tiles", tiles);
    parameters.array("first", firsts);
    parameters.array("n", (0..plan.sets()).map(|set| plan.columns(set) as u64));
    parameters.array("w", plan.weights.iter().map(|weight| launch.inputs[weight.rows.input].addr));
    parameters.array("w_row", plan.weights.iter().map(|weight| weight.rows.strides[0] as u64));
    tiles as usize
}

/// The text that finds rows in memory, and brings them to shared memory if they fit: all are on their way at a time.
fn memory_text(is_shared: bool) -> String {
    if !is_shared {
        return "    const E* const of_block = (const E*)p.x + row0 * p.x_row;\n    \
                const u64 pitch = p.x_row;\n"
            .into();
    }
    format!(
        "    extern __shared__ __align__(16) u8 shared[];\n    \
         E* const of_block = (E*)shared;\n    \
         const u32 pitch = (u32)p.k + {GAP}u / sizeof(E), chunks = (u32)p.k / Product::N;\n    \
         for (u32 i = threadIdx.x; i < m * chunks; i += {THREADS}u) {{\n        \
         const u32 local = i / chunks, at = i % chunks * Product::N;\n        \
         *(Words*)(of_block + local * pitch + at) = *(const Words*)((const E*)p.x + (row0 + local) * p.x_row + at);\n    \
         }}\n    \
         __syncthreads();\n"
    )
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

/// The text that returns the columns of sets in which a pair is half a head apart: both are in one group.
fn turned_columns(plan: &Plan) -> String {
    (0..plan.sets()).fold(String::new(), |mut text, set| {
        if let Some((i, _)) = plan.turn(set).filter(|(_, turn)| turn.is_half_split()) {
            let _ = writeln!(
                text,
                "        if (set == {set}u) {{\n            \
                 const u32 pairs = thin::COLUMNS / 2u;\n            \
                 const u32 pair = (tile - (u32)p.first[{set}]) * pairs + column % pairs;\n            \
                 const u32 half = (u32)p.turn{i}.half;\n            \
                 return pair / half * (u32)p.turn{i}.size + pair % half + (column < pairs ? 0u : half);\n        \
                 }}"
            );
        }
        text
    })
}

/// The text that finds the set of a group of columns.
fn find(plan: &Plan) -> String {
    (1..plan.sets()).fold(String::new(), |mut text, set| {
        let _ = writeln!(text, "        set += tile >= (u32)p.first[{set}];");
        text
    })
}

/// The text by which one block asks for the operands of a norm that are the same for all rows: mostly parameters, which no kernel has read
/// since the last call.
fn asked_text(norm: &Norm) -> String {
    let shared = norm.inputs.iter().enumerate().filter(|(_, matrix)| matrix.strides[0] == 0);
    shared.fold(String::new(), |mut text, (i, matrix)| {
        let _ = writeln!(
            text,
            "    for (u32 at = threadIdx.x * 128u; blockIdx.x == 0 && at < (u32)p.k * {}u; at += {THREADS}u * 128u) ask((const u8*)p.r[{i}] + at);",
            matrix.dtype.size()
        );
        text
    })
}

/// The text that makes the rows in shared memory.
fn norm_text(
    plan: &Plan,
    norm: &Norm,
    variant: Fused,
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
         __syncthreads();\n",
        gap = GAP,
        context = rows.context,
        threads = rows.threads,
    )
}

/// The text for one element of the results.
fn results(
    plan: &Plan,
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
    parameters.array("number", numbers.map(|number| u64::from(number.bits())));
    parameters.array("y", plan.stores.iter().map(|store| launch.outputs[store.output].addr));
    let mut to = Results::default();
    let mut writer = Element { plan, composition, number: 0 };
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
        let (second, column, col, pair) = match turn.is_half_split() {
            true => (
                "column >= thin::COLUMNS / 2u",
                "(column + thin::COLUMNS / 2u) % thin::COLUMNS",
                format!(
                    "column >= thin::COLUMNS / 2u ? col - (u32)p.turn{i}.half : col + (u32)p.turn{i}.half"
                ),
                format!("col % (u32)p.turn{i}.size % (u32)p.turn{i}.half"),
            ),
            false => (
                "(column & 1u) != 0u",
                "(column ^ 1u)",
                "col ^ 1u".into(),
                format!("col % (u32)p.turn{i}.size / 2u"),
            ),
        };
        to.variable("const u32*", "at_position");
        to.variable("u32", "position");
        to.variable("double", "per_position");
        let _ = write!(
            to.found,
            "            const u32 pair = (u32)({pair});\n            \
             at_position = rope_position(p.turn{i}, row, pair);\n            \
             per_position = turns_of(p.turn{i}, p.turn{i}.log2_theta, pair);\n"
        );
        let _ = writeln!(to.fetched, "            position = *at_position;");
        let product = turn.product;
        self.product(to, product, "other", "bias_of_other", &format!("at + {column}"), &col);
        let _ = write!(
            to.written,
            "            f32 sine, cosine;\n            \
             rope_angle(p.turn{i}, position, per_position, &sine, &cosine);\n            \
             const f32 turned{i}_value = {second} ? rope_second(to_f32(other), to_f32(product{product}), sine, cosine)\n                \
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
            let (ty, value) = (element(*dtype), variable(*value));
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

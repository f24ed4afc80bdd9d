//! The kernel of a plan: its text, and its launch.

use std::{fmt::Write as _, iter};

use super::{
    few_rows::{CHUNK, GAP},
    plan::{Norm, Plan, Source},
    variant::{BLOCKS, COLUMNS, Fused, TEXT},
};
use crate::{
    Result,
    backend::{
        Launch,
        cuda::kernels::{FaultSink, Grid, Kernel, SourceFile, Submit},
    },
    kernel::compose::{Composition, Instance, computed, element},
    ops::rope::{ANGLES, angles},
};

mod body;
mod results;

use body::{Body, fetch};
use results::results;

/// Most bytes of rows in memory that are brought to shared memory, of which two blocks find room beside each other.
const MOST_SHARED: usize = 64 << 10;
/// Most chunks of rows that a thread brings to shared memory at a time.
const AT_ONCE: usize = 4;
/// The name of the kernel in its source.
const ENTRY: &str = "fused_product";

/// Launches the kernel.
pub(super) fn launch(plan: &Plan, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
    let variant = Fused::of(plan);
    let Writer { parameters, instance, tiles, shared } =
        Writer::write(plan, variant, &Reports::new(plan, gpu), launch);
    let blocks = variant.blocks(gpu.props().multiprocessors, plan, tiles);
    let grid = Grid { shared: shared as u32, ..Grid::line(blocks as u32, variant.threads() as u32) };
    gpu.submit_bytes(
        Kernel::plain(&instance.source, &instance.entry),
        grid,
        bytemuck::cast_slice(&parameters),
    )
}

/// The kernel's source, for CI.
pub(super) fn source(plan: &Plan, launch: &Launch) -> &'static SourceFile {
    let variant = Fused::of(plan);
    &Writer::write(plan, variant, &Reports::default(), launch).instance.source
}

/// The place where threads report indices out of range, and the number of the operation of each part that writes to rows of a state.
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

/// The needs of a launch.
struct Writer {
    parameters: Vec<u64>,
    instance: &'static Instance,
    /// Groups of columns, of all sets.
    tiles: usize,
    /// Bytes of shared memory for the rows.
    shared: usize,
}

impl Writer {
    fn write(plan: &Plan, variant: Fused, reports: &Reports, launch: &Launch) -> Self {
        let mut composition = Composition::default();
        let mut parameters = Parameters::default();
        let tiles = declare(plan, launch, &mut parameters);
        let bytes = variant.rows.min(plan.m) * (plan.k * plan.dtype.size() + GAP);
        let is_shared = matches!(plan.source, Source::Norm(_)) || bytes <= MOST_SHARED;
        let shared = if is_shared { bytes } else { 0 };
        let meanwhile = fetch(plan, true, "block");
        let (asked, rows) = match &plan.source {
            Source::Memory(rows) => {
                parameters.word("x", launch.inputs[rows.input].addr);
                parameters.word("x_row", rows.strides[0] as u64);
                parameters.word("per_chunk", u64::from(per(plan.k * plan.dtype.size() / CHUNK)));
                (String::new(), memory_text(plan, variant, is_shared, &meanwhile))
            }
            Source::Norm(norm) => {
                let rows =
                    norm_text(plan, norm, variant, launch, &mut parameters, &mut composition, &meanwhile);
                (asked_text(norm, variant), rows)
            }
        };
        places(plan, reports, launch, &mut parameters);
        let results = results(plan, variant, &mut parameters, launch, &mut composition);
        let (columns, turned) = (find(plan), turned_columns(plan));
        let body = Body { plan, variant, columns, turned, asked, rows, is_shared, results };
        let text = format!("struct Parameters {{\n{}}};\n\n{}", parameters.fields, body.text());
        // Only what turns pairs needs their angles.
        let angles = if plan.turns.is_empty() { "" } else { ANGLES };
        let blocks = if plan.format.is_some() { BLOCKS } else { "" };
        let instance = composition.instance(ENTRY, &[TEXT, blocks, angles].concat(), &text, ENTRY);
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
    if plan.format.is_none() {
        parameters.array("w_row", plan.weights.iter().map(|weight| weight.rows.strides[0] as u64));
    }
    tiles as usize
}

/// Returns 2^32 divided by `count`, rounded up. The upper half of its product with a small number is that number divided by `count`, unless
/// `count` is 1.
fn per(count: usize) -> u32 {
    (1_u64 << 32).div_ceil(count.max(2) as u64) as u32
}

/// The text that finds rows in memory, and brings them to shared memory if they fit. What `meanwhile` says happens while their first chunks
/// are on their way, if there is one row.
fn memory_text(plan: &Plan, variant: Fused, is_shared: bool, meanwhile: &str) -> String {
    if !is_shared {
        return format!(
            "    const E* const of_block = (const E*)p.x + row0 * p.x_row;\n    \
             const u64 pitch = p.x_row;\n{meanwhile}"
        );
    }
    let (threads, chunks) = (variant.threads(), plan.k * plan.dtype.size() / CHUNK);
    // No more than there are: each takes instructions.
    let at_once = (plan.m.min(variant.rows) * chunks).div_ceil(threads).clamp(1, AT_ONCE).next_power_of_two();
    let row_of = match variant.rows {
        1 => "0u",
        _ => "chunks == 1u ? i : __umulhi(i, (u32)p.per_chunk)",
    };
    let each = |text: &str| {
        format!(
            "#pragma unroll\n    \
             for (u32 j = 0; j < {at_once}u; ++j) {{\n        \
             const u32 i = first + j * {threads}u, local = row_of(i), at = (i - local * chunks) * Product::N;\n        \
             if (i < all) {text}\n    \
             }}\n"
        )
    };
    let some = format!(
        "    Words some[{at_once}];\n{}",
        each("some[j] = *(const Words*)((const E*)p.x + (row0 + local) * p.x_row + at);")
    );
    let to_shared = each("*(Words*)(of_block + local * pitch + at) = some[j];");
    let brought = match plan.m == 1 && chunks <= at_once * threads {
        true => format!("    const u32 first = threadIdx.x;\n{some}{meanwhile}{to_shared}"),
        false => format!(
            "#pragma unroll 1\n    \
             for (u32 first = threadIdx.x; first < all; first += {at_once}u * {threads}u) {{\n\
             {some}{to_shared}    }}\n{meanwhile}"
        ),
    };
    format!(
        "    extern __shared__ __align__(16) u8 shared[];\n    \
         E* const of_block = (E*)shared;\n    \
         const u32 pitch = (u32)p.k + {GAP}u / sizeof(E), chunks = (u32)p.k / Product::N, all = m * chunks;\n    \
         auto row_of = [&](u32 i) -> u32 {{ return {row_of}; }};\n\
         {brought}    \
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
        if let Some((_, turn)) = plan.turn(set).filter(|(_, turn)| turn.is_half_split()) {
            let (size, half) = (turn.size, turn.half());
            let _ = writeln!(
                text,
                "        if (set == {set}u) {{\n            \
                 const u32 pairs = thin::COLUMNS / 2u;\n            \
                 const u32 pair = (tile - (u32)p.first[{set}]) * pairs + column % pairs;\n            \
                 return pair / {half}u * {size}u + pair % {half}u + (column < pairs ? 0u : {half}u);\n        \
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
fn asked_text(norm: &Norm, variant: Fused) -> String {
    let shared = norm.inputs.iter().enumerate().filter(|(_, matrix)| matrix.strides[0] == 0);
    shared.fold(String::new(), |mut text, (i, matrix)| {
        let _ = writeln!(
            text,
            "    for (u32 at = threadIdx.x * 128u; blockIdx.x == 0 && at < (u32)p.k * {}u; at += {}u) ask((const u8*)p.r[{i}] + at);",
            matrix.dtype.size(),
            variant.threads() * 128,
        );
        text
    })
}

/// The text that makes the rows in shared memory. A single row's operands are all loaded before it is computed, and what `meanwhile` says
/// happens while they are on their way.
fn norm_text(
    plan: &Plan,
    norm: &Norm,
    variant: Fused,
    launch: &Launch,
    parameters: &mut Parameters,
    composition: &mut Composition,
    meanwhile: &str,
) -> String {
    let name = composition.function(norm.definition);
    let rows = composition.rows(
        norm.definition,
        norm.rows,
        plan.dtype,
        [plan.m.min(variant.rows), plan.k],
        variant.threads(),
    );
    parameters.array("r", norm.inputs.iter().map(|matrix| launch.inputs[matrix.input].addr));
    parameters.array("r_row", norm.inputs.iter().map(|matrix| matrix.strides[0] as u64));
    parameters.array("r_number", norm.constants.iter().flatten().map(|number| number.bits()));
    parameters.array("s", norm.outputs.iter().flatten().map(|output| launch.outputs[*output].addr));
    // Of one row, there are registers for all that it is made of.
    let inputs = norm_inputs(norm, element(plan.dtype), plan.m == 1);
    let declared: String = inputs.iter().enumerate().fold(String::new(), |mut text, (i, input)| {
        let _ = writeln!(text, "            const auto input{i} = {input};");
        text
    });
    let arguments: String = (0..inputs.len()).map(|i| format!(", input{i}")).collect();
    let each = variant.threads() / rows.threads;
    format!(
        "    extern __shared__ __align__(16) u8 shared[];\n    \
         E* const of_block = (E*)shared;\n    \
         const u32 pitch = (u32)p.k + {GAP}u / sizeof(E);\n    \
         {{\n        \
         {context} cx((u32)p.k, FaultSink{{0, 0}}, 0u);\n        \
         for (u32 some = 0; some < m; some += {each}u) {{\n            \
         u32 local = some + threadIdx.x / {threads}u;\n            \
         cx.is_there = local < m;\n            \
         if (!cx.is_there) local = m - 1;\n            \
         cx.is_real = cx.is_there;\n            \
         const u64 row = row0 + local;\n\
         {declared}{meanwhile}            \
         {name}(cx{arguments}{outputs});\n        }}\n    }}\n    \
         __syncthreads();\n",
        context = rows.context,
        threads = rows.threads,
        outputs = norm_outputs(norm),
    )
}

/// The arguments for the inputs of a kernel of rows: numbers, and rows of tensors, which may be in registers.
fn norm_inputs(norm: &Norm, element: &str, are_held: bool) -> Vec<String> {
    let mut arguments = Vec::new();
    let (mut tensor, mut constant) = (0, 0);
    for (i, (_, compute)) in norm.definition.inputs.iter().enumerate() {
        if norm.constants.get(i).is_some_and(Option::is_some) {
            arguments.push(format!("lang::Bits<{}>::of((u32)p.r_number[{constant}])", computed(*compute)));
            constant += 1;
        } else {
            let input = format!("rows::input<{element}>(p.r[{tensor}], row * p.r_row[{tensor}], 1)");
            arguments.push(if are_held { format!("rows::hold(cx, {input})") } else { input });
            tensor += 1;
        }
    }
    arguments
}

/// The arguments for its results: the rows that are multiplied, those that are kept, and those that nobody reads.
fn norm_outputs(norm: &Norm) -> String {
    let mut arguments = String::new();
    let mut kept = 0;
    for (i, output) in norm.outputs.iter().enumerate() {
        if norm.multiplied == Some(i) {
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
    arguments
}

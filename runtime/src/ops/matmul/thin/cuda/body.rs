//! The text of a kernel.

use std::fmt::Write as _;

use super::{
    super::{
        plan::{Plan, Source},
        variant::Fused,
    },
    ENTRY,
    results::Results,
};
use crate::kernel::compose::element;

/// The facts from which the text is made.
pub(super) struct Body<'a> {
    pub(super) plan: &'a Plan,
    pub(super) variant: Fused,
    /// Finds the set of a group of columns.
    pub(super) columns: String,
    /// Finds the columns of pairs that are turned.
    pub(super) turned: String,
    /// Asks for what makes the rows.
    pub(super) asked: String,
    /// Makes the rows, or finds them.
    pub(super) rows: String,
    /// Set if they are in shared memory.
    pub(super) is_shared: bool,
    pub(super) results: Results,
}

/// The moment at which the operands of results are read.
#[derive(Clone, Copy)]
enum Reads {
    /// Ahead of the products, as registers hold it meanwhile.
    Ahead,
    /// Ahead but for compute capability 10, for which the compiler finds fewer registers.
    AheadIfRoom,
    /// The moment at which the products are complete.
    Late,
}

impl Reads {
    fn of(plan: &Plan) -> Self {
        match (plan.m, &plan.source) {
            (1, Source::Norm(_)) => Self::Ahead,
            (1, Source::Memory(_)) => Self::AheadIfRoom,
            _ => Self::Late,
        }
    }
}

/// The text that reads what the results of a group need, if this is when.
pub(super) fn fetch(plan: &Plan, is_ahead: bool, tile: &str) -> String {
    match (Reads::of(plan), is_ahead) {
        (Reads::Ahead, true) | (Reads::Late, false) => format!("    fetch({tile});\n"),
        (Reads::Ahead, false) | (Reads::Late, true) => String::new(),
        (Reads::AheadIfRoom, true) => {
            format!("#if __CUDA_ARCH__ < 1000\n    fetch({tile});\n#endif\n")
        }
        (Reads::AheadIfRoom, false) => {
            format!("#if __CUDA_ARCH__ >= 1000\n    fetch({tile});\n#endif\n")
        }
    }
}

impl Body<'_> {
    /// The kernel. A thread waits for earlier kernels before it reads what they may write; what it computes from its place alone, and
    /// what it only asks for, comes before.
    pub(super) fn text(&self) -> String {
        let (threads, resident) = (self.variant.threads(), self.variant.resident);
        format!(
            "extern \"C\" __global__ void __launch_bounds__({threads}, {resident}) {ENTRY}(const __grid_constant__ Parameters p) {{\n    \
             start_dependents();\n    \
             if (p.early == 0) wait_for_earlier();\n\
             {places}{elements}{find}{asked}    \
             if (p.early != 0) wait_for_earlier();\n\
             {rows}{groups}}}\n",
            places = self.places(),
            elements = self.elements(),
            find = self.finds("block"),
            asked = self.asked,
            rows = self.rows,
            groups = self.groups(),
        )
    }

    /// Computes what follows from a thread's place in a group: the frequencies of pairs that are turned.
    fn finds(&self, tile: &str) -> String {
        if self.plan.turns.is_empty() { String::new() } else { format!("    find({tile});\n") }
    }

    /// The type of the product.
    fn product(&self) -> String {
        let Fused { rows: most, groups, slices, ahead, passes, near, .. } = self.variant;
        match self.plan.format {
            None => format!("thin::Product<E, {most}, {groups}, {ahead}, {near}>"),
            Some(format) => {
                // A unit of the formats with blocks of 32 elements is two blocks.
                let is_whole = self.plan.k.is_multiple_of(64);
                format!(
                    "thin::BlockProduct<E, blocks::{format}, {most}, {slices}, {ahead}, {passes}, {}, {is_whole}>",
                    self.is_shared
                )
            }
        }
    }

    /// What finds the columns of a group, and the call by which the product is told them.
    fn column(&self) -> (String, &'static str) {
        let col = "const u32 col = is_there ? col_of(set, mine, product.column()) : 0u; ";
        match self.plan.format {
            None => (
                format!("const u32 n = (u32)p.n[set]; {col}"),
                "set_column(g, (const E*)p.w[weight] + (col < n ? col : n - 1) * p.w_row[weight]",
            ),
            // There are rows of zeros to the end of a group, which is a tile unless columns of another follow in it.
            Some(_) if self.turned.is_empty() => (
                "const u32 of_set = is_there ? mine - (u32)p.first[set] : 0u; ".into(),
                "set_tile(g, (const u8*)p.w[weight], of_set",
            ),
            Some(_) => (col.into(), "set_column(g, (const u8*)p.w[weight], col"),
        }
    }

    /// Selects the rows and groups of columns of a block, and its first weights.
    fn places(&self) -> String {
        let Fused { rows: most, groups, .. } = self.variant;
        let (element, together) = (element(self.plan.dtype), self.plan.together);
        let (product, (found, column)) = (self.product(), self.column());
        let Self { columns, turned, .. } = self;
        let begin = match self.plan.format {
            None => "    aim(block);\n    product.begin();\n".to_owned(),
            Some(_) => (0..self.variant.passes.max(1)).fold(String::new(), |mut text, pass| {
                let _ = writeln!(
                    text,
                    "    if (const u32 tile = block + {pass}u * SIDE * blocks; {pass}u == 0u || tile < tiles) {{\n        \
                     aim(tile);\n        \
                     product.begin({pass}u);\n    }}"
                );
                text
            }),
        };
        // To divide by a number that is not known takes many instructions.
        let (stacks, m) = match self.plan.m <= most {
            true => ("1u".into(), if most == 1 { "1u" } else { "(u32)p.m" }.into()),
            false => (
                format!("((u32)p.m + {most}u - 1u) / {most}u"),
                format!("(u32)p.m - row0 < {most}u ? (u32)p.m - row0 : {most}u"),
            ),
        };
        format!(
            "    using E = {element};\n    \
             using Product = {product};\n    \
             constexpr u32 TOGETHER = {together}, SIDE = {groups} / TOGETHER;\n    \
             const u32 stacks = {stacks}, row0 = blockIdx.x % stacks * {most}u;\n    \
             const u32 m = {m};\n    \
             const u32 block = blockIdx.x / stacks, blocks = gridDim.x / stacks, tiles = (u32)p.tiles;\n    \
             auto set_of = [&](u32 tile) -> u32 {{\n        \
             u32 set = 0;\n\
             {columns}        \
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
             {found}\n            \
             product.{column}, is_there);\n        \
             }}\n    }};\n    \
{begin}"
        )
    }

    /// The element of a thread in a group, of which it has at most one, and what is read for it.
    fn elements(&self) -> String {
        let Results { declared, found, fetched, .. } = &self.results;
        let declared: String = declared.iter().map(String::as_str).collect();
        // The last warp's turn is first: where warps do not divide the units, the first ones have more.
        let (first, of_turn) = match self.plan.takes_turns() {
            true => (self.variant.slices - 1, "thread -= turn * WARP;\n        "),
            false => (0, ""),
        };
        // Threads without an element would keep them, as far as the compiler knows.
        let forgotten = match self.plan.turns.is_empty() || !self.plan.takes_turns() {
            true => "",
            false => "        at_position = nullptr;\n        per_position = 0;\n",
        };
        let find = if self.plan.turns.is_empty() {
            String::new()
        } else {
            format!(
                "    auto find = [&](u32 tile) {{\n        \
                 if (!is_mine(tile)) return;\n\
                 {found}    }};\n"
            )
        };
        format!(
            "    u32 local, side, column, row, set, col, turn = {first}u;\n    \
             // Found again where it is used, since registers are scarce meanwhile: volatile, so that it is not kept.\n    \
             auto is_mine = [&](u32 tile) -> bool {{\n        \
             u32 thread;\n        \
             asm volatile(\"mov.u32 %0, %tid.x;\" : \"=r\"(thread));\n        \
             {of_turn}local = thread / (SIDE * thin::COLUMNS);\n        \
             side = thread / thin::COLUMNS % SIDE;\n        \
             column = thread % thin::COLUMNS;\n        \
             row = row0 + local;\n        \
             const u32 mine = tile + side * blocks;\n        \
             if (local >= m || mine >= tiles) return false;\n        \
             set = set_of(mine);\n        \
             col = col_of(set, mine, column);\n        \
             return col < (u32)p.n[set];\n    }};\n\
             {declared}{find}    \
             auto fetch = [&](u32 tile) {{\n        \
             if (is_mine(tile)) {{\n\
             {fetched}        }}\n\
             {forgotten}    }};\n"
        )
    }

    /// One group of columns after the other.
    fn groups(&self) -> String {
        let (slices, passes) = (self.variant.slices, self.variant.passes.max(1));
        let threads = self.variant.threads();
        let pass = if self.plan.format.is_some() { "pass, " } else { "" };
        let (parts, meet, turn) = match self.plan.takes_turns() {
            true => (
                slices,
                format!("thin::meet(turn, {threads}u, turn == Product::warp());"),
                format!("turn = (turn == 0u ? {slices}u : turn) - 1u;"),
            ),
            false => (2, "__syncthreads();".to_owned(), "turn ^= 1u;".to_owned()),
        };
        format!(
            "    __shared__ Product::Parts of_passes[{parts}];\n    \
             u32 tile = block;\n\
             #pragma unroll 1\n    \
             for (bool is_last = false; !is_last;) {{\n\
             #pragma unroll\n    \
             for (u32 pass = 0; pass < {passes}u; ++pass) {{\n        \
             const u32 after = tile + SIDE * blocks;\n        \
             product.run(of_block, pitch, m, {pass}[&]() -> bool {{\n            \
             const u32 later = tile + {passes}u * SIDE * blocks;\n            \
             if (later >= tiles) return false;\n            \
             aim(later);\n            \
             return true;\n        }});\n        \
             Product::Parts& parts = of_passes[turn];\n        \
             product.share(parts);\n        \
             {meet}\n\
             {late}        \
             if (is_mine(tile)) {{\n            \
             const u32 n = (u32)p.n[set], at = side * TOGETHER * thin::COLUMNS;\n\
             {written}        }}\n        \
             is_last = after >= tiles;\n        \
             if (is_last) break;\n        \
             tile = after;\n        \
             {turn}\n\
             {find}{ahead}    }}\n    }}\n",
            late = fetch(self.plan, false, "tile"),
            written = self.results.written,
            find = self.finds("tile"),
            ahead = fetch(self.plan, true, "tile"),
        )
    }
}

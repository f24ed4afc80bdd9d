//! The text of a loop over packs of elements, in which each element of the results is computed by a function, or by several
//! one after the other.

use std::fmt::Write as _;

use super::super::{
    definition::{Compute, Definition},
    source::result,
};
use crate::{DType, backend::cuda::kernels::element};

/// The loop, and its parameter.
pub(in crate::kernel) struct Map<'a> {
    pub(in crate::kernel) steps: Vec<Step<'a>>,
    /// Set if the place of a random number depends on a padded dimension.
    pub(in crate::kernel) padded: bool,
    /// The tensors that are read.
    pub(in crate::kernel) inputs: Vec<Stored>,
    /// The step and the part of each result that is written.
    pub(in crate::kernel) outputs: Vec<(usize, usize)>,
}

/// A function of the loop.
pub(in crate::kernel) struct Step<'a> {
    pub(in crate::kernel) definition: &'a Definition,
    /// The name of the function.
    pub(in crate::kernel) name: String,
    /// A bit for each parameter that is a number.
    pub(in crate::kernel) fixed: u32,
    /// For each parameter that is a tensor, its source, and its type as the function reads it.
    pub(in crate::kernel) operands: Vec<(Operand, Stored)>,
    /// For each result, the type in which it is stored, or would be.
    pub(in crate::kernel) results: Vec<Stored>,
}

/// The source of what a step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kernel) enum Operand {
    Input(usize),
    /// A result of an earlier step.
    Result {
        step: usize,
        part: usize,
    },
}

/// A type in memory, as `common.cuh` spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kernel) struct Stored {
    pub(in crate::kernel) name: &'static str,
    pub(in crate::kernel) size: usize,
}

impl Stored {
    /// The type in memory of elements that are computed as `compute`, where floats are stored as `float`.
    pub(in crate::kernel) fn of(compute: Compute, float: DType) -> Self {
        let dtype = compute.stored(float);
        let name = if compute == Compute::U16 { "u16" } else { element(dtype) };
        Self { name, size: dtype.size() }
    }
}

/// Numbers of what was declared so far.
#[derive(Default)]
struct Declared {
    constants: usize,
    generators: usize,
}

impl Map<'_> {
    /// Writes the kernel with this entry.
    pub(in crate::kernel) fn kernel(&self, text: &mut String, entry: &str) {
        self.parameter(text);
        self.body(text);
        let stored =
            self.inputs.iter().copied().chain(self.outputs.iter().map(|output| self.stored(*output)));
        let lanes = 16 / stored.map(|stored| stored.size).max().unwrap_or(1);
        let _ = writeln!(
            text,
            "extern \"C\" __global__ void __launch_bounds__(256) {entry}(const __grid_constant__ MapParams p) {{ in_order();\n    \
             if (p.packed) map<{lanes}>(p);\n    else map<1>(p);\n}}"
        );
    }

    fn stored(&self, (step, part): (usize, usize)) -> Stored {
        self.steps[step].results[part]
    }

    /// Number of parameters of all steps that are random numbers.
    fn numbers(&self) -> usize {
        let inputs = self.steps.iter().flat_map(|step| step.definition.inputs);
        inputs.filter(|(_, compute)| *compute == Compute::Random).count()
    }

    /// The kernel's parameter.
    fn parameter(&self, text: &mut String) {
        let (n, m) = (self.inputs.len(), self.outputs.len());
        let constants: u32 = self.steps.iter().map(|step| step.fixed.count_ones()).sum();
        text.push_str("struct MapParams {\n");
        // C++ has no arrays without elements.
        if n > 0 {
            let _ = writeln!(text, "    u64 x[{n}];");
        }
        let _ = write!(text, "    u64 y[{m}];\n    u64 count;\n    u64 packs;\n    u64 packed;\n");
        if self.numbers() > 0 {
            let _ = write!(text, "    u64 generators[{0}];\n    u64 ahead[{0}];\n", self.numbers());
        }
        if self.padded {
            text.push_str("    lang::Unpadded unpadded;\n");
        }
        if constants > 0 {
            let _ = writeln!(text, "    u64 constants[{constants}];");
        }
        text.push_str("    Dims dims;\n");
        if n > 0 {
            let _ = writeln!(text, "    u64 strides[{n}][MAX_RANK];");
        }
        text.push_str("};\n\n");
    }

    /// The loop, a function of the parameter.
    fn body(&self, text: &mut String) {
        text.push_str("template <int V> DEVICE void map(const MapParams& p) {\n");
        let mut declared = Declared::default();
        let arguments: Vec<String> =
            self.steps.iter().map(|step| self.arguments(text, step, &mut declared)).collect();
        let n = self.inputs.len();
        text.push_str(
            "    for (u64 n = (u64)blockIdx.x * blockDim.x + threadIdx.x; n < p.packs; n += (u64)gridDim.x * blockDim.x) {\n",
        );
        if n > 0 {
            let _ = write!(text, "        u64 at[{n}];\n        locate<{n}>(p.dims, p.strides, n, at);\n");
        }
        text.push_str("        const u64 left = p.count - n * V;\n");
        for (k, Stored { name, .. }) in self.inputs.iter().enumerate() {
            let _ = write!(
                text,
                "        Pack<{name}, V> x{k};\n        \
                 load_pack<{name}, V>(x{k}, p.x[{k}], at[{k}], V > 1 && p.strides[{k}][0] == 0, left);\n"
            );
        }
        for (k, output) in self.outputs.iter().enumerate() {
            let _ = writeln!(text, "        lang::Results<{}, V> y{k};", self.stored(*output).name);
        }
        text.push_str("#pragma unroll\n        for (int i = 0; i < V; ++i) {\n");
        if self.numbers() > 0 {
            let index = if self.padded { "lang::unpadded(p.unpadded, n * V + i)" } else { "n * V + i" };
            let _ = writeln!(text, "            const u64 index = {index};");
        }
        for (at, (step, arguments)) in self.steps.iter().zip(arguments).enumerate() {
            let result = result(step.definition.outputs, "");
            let _ = writeln!(text, "            const {result} r{at} = {}({arguments});", step.name);
            for part in 0..step.results.len() {
                self.keep(text, (at, part));
            }
        }
        text.push_str("        }\n");
        for (k, output) in self.outputs.iter().enumerate() {
            let name = self.stored(*output).name;
            let _ = writeln!(text, "        store_pack<{name}, V>(y{k}.all(), p.y[{k}], n * V, left);");
        }
        text.push_str("    }\n}\n\n");
    }

    /// Declares a result as it would be in memory if a step reads it, and leaves it to the outputs that it is. An output takes the
    /// unrounded value, because it rounds two at a time; the bits are the same.
    fn keep(&self, text: &mut String, (at, part): (usize, usize)) {
        let step = &self.steps[at];
        let of_part = if step.results.len() > 1 { format!(".v{part}") } else { String::new() };
        let name = step.results[part].name;
        let read = Operand::Result { step: at, part };
        if self.steps.iter().flat_map(|step| &step.operands).any(|(operand, _)| *operand == read) {
            let variable = variable(at, part);
            let _ = writeln!(
                text,
                "            const {name} {variable} = lang::Write<{name}>::of(r{at}{of_part});"
            );
        }
        for (k, _) in self.outputs.iter().enumerate().filter(|(_, output)| **output == (at, part)) {
            let _ = writeln!(text, "            y{k}.set(i, r{at}{of_part});");
        }
    }

    /// Declares the numbers among the parameters of a step, and returns the arguments of its function for one element.
    fn arguments(&self, text: &mut String, step: &Step<'_>, declared: &mut Declared) -> String {
        let mut arguments = Vec::new();
        let mut operands = step.operands.iter();
        for (i, (_, compute)) in step.definition.inputs.iter().enumerate() {
            if *compute == Compute::Random {
                let number = declared.generators;
                let _ = writeln!(
                    text,
                    "    const lang::Generator g{number} = lang::generator(p.generators[{number}], p.ahead[{number}]);"
                );
                arguments.push(format!("lang::number(g{number}, index)"));
                declared.generators += 1;
                continue;
            }
            if step.fixed & 1 << i == 0 {
                arguments.extend(operands.next().map(|(operand, read_as)| self.read(*operand, *read_as)));
                continue;
            }
            let (constant, ty) = (declared.constants, compute.name());
            let _ = writeln!(text, "    const {ty} c{constant} = {};", number(*compute, constant));
            arguments.push(format!("c{constant}"));
            declared.constants += 1;
        }
        arguments.join(", ")
    }

    /// The value of an operand, which may have been stored as another type of that size.
    fn read(&self, operand: Operand, read_as: Stored) -> String {
        let (stored, place) = match operand {
            Operand::Input(k) => (self.inputs[k], format!("x{k}.v[i]")),
            Operand::Result { step, part } => (self.stored((step, part)), variable(step, part)),
        };
        match stored == read_as {
            true => format!("lang::read({place})"),
            false => format!("lang::read(lang::Same<{}>::bits({place}))", read_as.name),
        }
    }
}

/// A number among the words of a kernel's parameter.
pub(in crate::kernel) fn number(compute: Compute, at: usize) -> String {
    let ty = compute.name();
    match compute {
        Compute::F64 | Compute::I64 => format!("lang::Bits<{ty}>::of(p.constants[{at}])"),
        _ => format!("lang::Bits<{ty}>::of((u32)p.constants[{at}])"),
    }
}

/// The variable of a result as it would be in memory. No function has such a name, as theirs have underscores.
fn variable(step: usize, part: usize) -> String {
    format!("s{step}p{part}")
}

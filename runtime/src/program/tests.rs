//! Random programs over memory that is used again, before and after passes: the same bytes.

mod users;

use std::hash::Hasher;

use rand::{Rng, SeedableRng, rngs::StdRng};
use smallvec::SmallVec;

use super::{
    Command, Passes, Program, Target,
    common::{CommonSubexpressions, Rule},
    elementwise::FuseElementwise,
    pass::Pass,
    products::FuseProducts,
};
use crate::{
    DType,
    backend::{
        Arenas as _, HostUpload, Launch, Op, Operation, SharedMemory, Stream as _, View,
        cpu::{Access, CpuBackend, CpuOptions, Fault},
    },
    base::plan::Site,
    bf16, f16,
    kernel::definition::{Compute, Definition, Kernel as _},
    memory::COPY,
    observe::inspect::{PassRefusal, PassReport},
    value::layout::Layout,
};

mod kernels {
    use crate::kernel;

    #[kernel]
    pub(super) fn affine(x: f32) -> f32 {
        x * 1.25 + 0.5
    }

    #[kernel]
    pub(super) fn mix(a: f32, b: f32) -> f32 {
        a - b * 0.5
    }

    #[kernel]
    pub(super) fn split(x: f32, y: f32) -> (f32, i32) {
        (x * y, (x - y) as i32)
    }

    #[kernel]
    pub(super) fn is_less(a: f32, b: f32) -> bool {
        a < b
    }

    #[kernel]
    pub(super) fn choose(c: bool, a: f32, b: i32) -> f32 {
        if c { a } else { b as f32 }
    }

    #[kernel(rows)]
    pub(super) fn centred(x: Row<f32>) -> Row<f32> {
        let mean = x.sum() / x.len() as f32;
        x.map(|v| v - mean)
    }

    #[kernel]
    pub(super) fn twice(a: i32) -> i32 {
        a.wrapping_add(a) % 1000
    }
}

const KERNELS: [&Definition; 6] = [
    kernels::affine::DEFINITION,
    kernels::mix::DEFINITION,
    kernels::split::DEFINITION,
    kernels::is_less::DEFINITION,
    kernels::choose::DEFINITION,
    kernels::twice::DEFINITION,
];

/// `[x] -> [y]`, both contiguous bytes: those of `x` in reverse. Scribbles over its workspace, which a third view shows.
#[derive(Debug)]
struct Reverse {
    workspace: u64,
}

impl Operation for Reverse {
    fn name(&self) -> &'static str {
        "reverse"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u64(self.workspace);
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        let x: Vec<u8> = access.slice::<u8>(&launch.inputs[0]).to_vec();
        if self.workspace > 0 {
            let layout = Layout::contiguous(&[self.workspace as usize]).unwrap();
            let view = View { addr: launch.workspace, dtype: DType::U8, layout };
            access.slice_mut::<u8>(&view).fill(0x55);
        }
        let y = access.slice_mut::<u8>(&launch.outputs[0]);
        y.iter_mut().zip(x.iter().rev()).for_each(|(y, x)| *y = *x);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(
        &self,
        _: &mut dyn crate::backend::cuda::kernels::Submit,
        _: &Launch,
    ) -> crate::Result<()> {
        unreachable!("of the CPU")
    }
}

/// `[x] -> [y]`, both contiguous bytes: adds those of `x` to those of `y`, in place.
#[derive(Debug)]
struct Increase;

impl Operation for Increase {
    fn name(&self) -> &'static str {
        "increase"
    }

    fn parameters(&self, _: &mut dyn Hasher) {}

    fn writes_in_place(&self) -> bool {
        true
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        let x = access.slice::<u8>(&launch.inputs[0]);
        let y = access.slice_mut::<u8>(&launch.outputs[0]);
        y.iter_mut().zip(x).for_each(|(y, x)| *y = y.wrapping_add(*x));
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(
        &self,
        _: &mut dyn crate::backend::cuda::kernels::Submit,
        _: &Launch,
    ) -> crate::Result<()> {
        unreachable!("of the CPU")
    }
}

static SITE: &Site = &Site { function: "test", index: 0, file: file!(), first_line: 1, last_line: 1 };

/// Alignment of blocks. Smaller than that of the pool, so that more of them overlap in part.
const UNIT: u64 = 64;
/// Bytes of the memory of a program; the first quarter is what it is given, which is never freed.
const BYTES: u64 = 1 << 16;
const GIVEN: u64 = BYTES / 4;

#[derive(Clone, Copy)]
struct Made {
    view: View,
    bytes: u64,
    is_given: bool,
}

/// A program under construction.
struct Writer {
    rng: StdRng,
    base: u64,
    live: Vec<Made>,
    /// Of products, `[4, 4]`.
    weights: [View; 2],
    program: Program,
    poisons: bool,
    /// Set if most of it is products, and what lies around them.
    has_products: bool,
}

impl Writer {
    fn new(seed: u64, base: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let (poisons, has_products) = (rng.random(), rng.random_range(0..3) == 0);
        let square = Layout::contiguous(&[4, 4]).unwrap();
        let weights = [0, 64].map(|at| View { addr: base + at, dtype: DType::F32, layout: square });
        let live = weights.map(|view| Made { view, bytes: 64, is_given: true }).to_vec();
        let mut writer =
            Self { rng, base, live, weights, program: Program::default(), poisons, has_products };
        let mut addr = base + 128;
        for _ in 0..4 {
            let (dtype, shape) = match has_products {
                true => (DType::F32, vec![6, 4]),
                false => (writer.dtype(), writer.shape()),
            };
            let view = View { addr, dtype, layout: Layout::contiguous(&shape).unwrap() };
            let bytes = (view.layout.count() * dtype.size()) as u64;
            addr += bytes.next_multiple_of(UNIT);
            writer.live.push(Made { view, bytes, is_given: true });
        }
        assert!(addr <= base + GIVEN);
        writer
    }

    fn dtype(&mut self) -> DType {
        [DType::F32, DType::F32, DType::F16, DType::Bf16, DType::I32, DType::Bool]
            [self.rng.random_range(0..6)]
    }

    fn shape(&mut self) -> Vec<usize> {
        [vec![24], vec![4, 6], vec![6, 4], vec![1, 6], vec![1], vec![48], vec![5, 5]]
            [self.rng.random_range(0..7)]
        .clone()
    }

    /// The first place where a block fits.
    fn place(&self, bytes: u64) -> u64 {
        let mut blocks: Vec<(u64, u64)> = self.live.iter().map(|made| (made.view.addr, made.bytes)).collect();
        blocks.sort_unstable();
        let mut at = self.base + GIVEN;
        for (addr, len) in blocks {
            if addr >= at && addr - at < bytes.next_multiple_of(UNIT) {
                at = (addr + len).next_multiple_of(UNIT);
            }
        }
        assert!(at + bytes <= self.base + BYTES, "the program needs more memory");
        at
    }

    fn make(&mut self, dtype: DType, shape: &[usize]) -> View {
        let layout = Layout::contiguous(shape).unwrap();
        let bytes = (layout.count() * dtype.size()) as u64;
        let view = View { addr: self.place(bytes), dtype, layout };
        self.live.push(Made { view, bytes, is_given: false });
        view
    }

    /// A tensor as an operand of that shape, if it can be one.
    fn spread(&mut self, made: Made, shape: &[usize]) -> Option<View> {
        let view = made.view;
        let (mut layout, count) = (view.layout, shape.iter().product::<usize>());
        // Transposed, or a part from the start on, or in another shape.
        match self.rng.random_range(0..8) {
            0 if layout.rank() == 2 => layout = layout.permuted(&[1, 0]),
            1 if layout.count() > count => layout = Layout::contiguous(shape).ok()?,
            2 | 3 if layout.count() == count => layout = Layout::contiguous(shape).ok()?,
            _ => {}
        }
        Some(View { layout: layout.broadcast_to(shape)?, ..view })
    }

    fn push(&mut self, op: Op, inputs: &[View], outputs: &[View], workspace: (u64, u64)) {
        let launch = Launch {
            op,
            inputs: SmallVec::from_slice(inputs),
            outputs: SmallVec::from_slice(outputs),
            workspace: workspace.0,
        };
        self.program.push(Command::Launch { launch: Box::new(launch), workspace: workspace.1 });
    }

    fn element_wise(&mut self) -> Option<()> {
        let kernel = KERNELS[self.rng.random_range(0..KERNELS.len())];
        // Mostly what was made last.
        let count = self.live.len();
        let near = self.rng.random_range(0..count.min(3));
        let like = self.live[count - 1 - near];
        let shape = like.view.layout.shape().to_vec();
        let mut inputs: Vec<View> = Vec::new();
        for (_, compute) in kernel.inputs {
            let mut fitting: Vec<Made> = self.live.clone();
            fitting.retain(|made| stored(*compute, made.view.dtype));
            let found = (0..6).find_map(|_| {
                let last = fitting.len().checked_sub(1)?;
                let at = last - self.rng.random_range(0..=last).min(self.rng.random_range(0..=last));
                let made = fitting[at];
                self.spread(made, &shape)
            });
            inputs.push(found?);
        }
        let mut outputs: Vec<View> = Vec::new();
        for compute in kernel.outputs {
            let dtype = match compute {
                Compute::F32 => {
                    [DType::F32, DType::F32, DType::F16, DType::Bf16][self.rng.random_range(0..4)]
                }
                Compute::I32 => DType::I32,
                _ => DType::Bool,
            };
            outputs.push(self.make(dtype, &shape));
        }
        self.push(Op::fixed(kernel), &inputs, &outputs, (0, 0));
        Some(())
    }

    /// A product of few rows, or rows of which one will be multiplied.
    fn rows(&mut self) -> Option<()> {
        let mut fitting = self.live.clone();
        fitting.retain(|made| made.view.dtype == DType::F32 && made.view.layout.shape() == [6, 4]);
        let at = fitting.len().checked_sub(1 + self.rng.random_range(0..3))?;
        let x = fitting[at].view;
        if self.rng.random() {
            let y = self.make(DType::F32, &[6, 4]);
            self.push(Op::fixed(kernels::centred::DEFINITION), &[x], &[y], (0, 0));
            return Some(());
        }
        let w = self.weights[self.rng.random_range(0..2)];
        let w = View { layout: w.layout.permuted(&[1, 0]), ..w };
        let y = self.make(DType::F32, &[6, 4]);
        self.push(crate::ops::plain_product(), &[x, w], &[y], (0, 0));
        Some(())
    }

    fn reverse(&mut self) {
        let at = self.rng.random_range(0..self.live.len());
        let from = self.live[at];
        let layout = Layout::contiguous(&[from.bytes as usize]).unwrap();
        let input = View { dtype: DType::U8, layout, ..from.view };
        let output = self.make(from.view.dtype, from.view.layout.shape());
        // Freed with the launch: it may lie where something was freed before.
        let bytes = [0, 64, 200][self.rng.random_range(0..3)];
        let workspace = (self.place(bytes), bytes);
        self.push(
            Reverse { workspace: bytes }.into(),
            &[input],
            &[View { dtype: DType::U8, layout, ..output }],
            workspace,
        );
        if bytes > 0 {
            self.program.push(Command::Free { addr: workspace.0, bytes });
        }
    }

    /// Changes a part of a tensor in place.
    fn increase(&mut self) -> Option<()> {
        let (from, to) =
            (self.rng.random_range(0..self.live.len()), self.rng.random_range(0..self.live.len()));
        let (from, to) = (self.live[from], self.live[to]);
        if to.view.dtype == DType::Bool || from.view.addr == to.view.addr {
            return None;
        }
        let layout = Layout::contiguous(&[from.bytes.min(to.bytes) as usize]).unwrap();
        let bytes = |made: Made| View { dtype: DType::U8, layout, ..made.view };
        self.push(Op::fixed(&Increase), &[bytes(from)], &[bytes(to)], (0, 0));
        Some(())
    }

    /// Launches once more what was launched, at the same addresses.
    fn again(&mut self) -> Option<()> {
        let launches = self.program.commands().iter().rev().filter_map(|command| match command {
            Command::Launch { launch, workspace: 0 } => Some((**launch).clone()),
            _ => None,
        });
        let launch = launches.take(12).nth(self.rng.random_range(0..12))?;
        let is_live = |view: &View| {
            let (start, end) = view.range();
            self.live.iter().any(|made| made.view.addr <= start && end <= made.view.addr + made.bytes)
        };
        if !launch.inputs.iter().all(is_live) {
            return None;
        }
        let outputs: Vec<View> = match launch.op.operation().writes_in_place() {
            true if launch.outputs.iter().all(is_live) => launch.outputs.to_vec(),
            true => return None,
            false => launch.outputs.iter().map(|view| self.make(view.dtype, view.layout.shape())).collect(),
        };
        self.push(launch.op, &launch.inputs, &outputs, (0, 0));
        Some(())
    }

    /// Writes a part of a tensor in place.
    fn overwrite(&mut self) -> Option<()> {
        let (from, to) =
            (self.rng.random_range(0..self.live.len()), self.rng.random_range(0..self.live.len()));
        let (from, to) = (self.live[from], self.live[to]);
        if from.view.dtype != to.view.dtype || from.view.addr == to.view.addr {
            return None;
        }
        let count = self.rng.random_range(1..=from.view.layout.count().min(to.view.layout.count()));
        let layout = Layout::contiguous(&[count]).unwrap();
        self.push(COPY, &[View { layout, ..from.view }], &[View { layout, ..to.view }], (0, 0));
        Some(())
    }

    fn free(&mut self) {
        let at = self.rng.random_range(0..self.live.len());
        if self.live[at].is_given {
            return;
        }
        let Made { view, bytes, .. } = self.live.remove(at);
        let bytes = bytes.next_multiple_of(UNIT);
        self.program.push(Command::Free { addr: view.addr, bytes });
        if self.poisons {
            self.program.push(Command::Poison { addr: view.addr, bytes });
        }
    }

    /// Memory that must hold the same bytes in the end.
    fn lasting(&self) -> Vec<(u64, u64)> {
        self.live.iter().map(|made| (made.view.addr, made.bytes)).collect()
    }

    fn write(mut self) -> (Program, Vec<(u64, u64)>) {
        let products = if self.has_products { 8 } else { 0 };
        for _ in 0..self.rng.random_range(5..40) {
            match self.rng.random_range(0..24) {
                at if at < products => drop(self.rows()),
                0..10 => drop(self.element_wise()),
                10..12 => self.reverse(),
                12 => drop(self.overwrite()),
                13..16 => drop(self.again()),
                16 => drop(self.increase()),
                _ => self.free(),
            }
        }
        let lasting = self.lasting();
        (self.program, lasting)
    }
}

/// Returns whether elements of that type can be computed as the other.
fn stored(compute: Compute, dtype: DType) -> bool {
    match compute {
        Compute::F32 => dtype.is_computed_in_f32(),
        Compute::I32 => dtype == DType::I32,
        _ => dtype == DType::Bool,
    }
}

/// The memory that programs run in.
struct Machine {
    backend: CpuBackend,
    memory: SharedMemory,
    contents: Vec<u8>,
}

impl Machine {
    fn new() -> Self {
        let mut backend = CpuBackend::new(CpuOptions { threads: Some(1), ..CpuOptions::default() }).unwrap();
        let memory = backend.alloc(BYTES).unwrap();
        // As numbers of every type that are not very large.
        let mut rng = StdRng::seed_from_u64(1);
        let numbers = (0..BYTES / 4).flat_map(|_| match rng.random_range(0..3) {
            0 => rng.random_range(-4.0..4.0f32).to_le_bytes(),
            1 => {
                let [a, b] = bf16::from_f32(rng.random_range(-4.0..4.0)).to_le_bytes();
                let [c, d] = f16::from_f32(rng.random_range(-4.0..4.0)).to_le_bytes();
                [a, b, c, d]
            }
            _ => rng.random_range(0..100i32).to_le_bytes(),
        });
        let contents = numbers.collect();
        Self { backend, memory, contents }
    }

    /// Runs a program, and returns the bytes of these ranges, or the error with which the device was lost.
    fn run(&mut self, program: &Program, ranges: &[(u64, u64)]) -> Result<Vec<Vec<u8>>, String> {
        let bytes = self.contents.clone();
        let writes = vec![(self.memory.addr(), 0, bytes.len())];
        self.backend.host_write(HostUpload { bytes, writes, ..HostUpload::default() }).unwrap();
        for command in program.commands() {
            command.issue(&mut self.backend).map_err(|error| error.to_string())?;
        }
        let mut read = |(addr, bytes): &(u64, u64)| self.backend.read(*addr, *bytes)?.wait();
        ranges.iter().map(|range| read(range).map_err(|error| error.to_string())).collect()
    }
}

/// Returns whether a program computes the same after the pass, and the number of launches that are gone.
fn agrees(machine: &mut Machine, seed: u64, pass: &dyn Pass) -> (bool, usize) {
    agrees_rewritten(machine, seed, |program, _| pass.run(program, &mut PassReport::new(pass.name())))
}

fn agrees_after(machine: &mut Machine, seed: u64, passes: &Passes) -> (bool, usize) {
    agrees_rewritten(machine, seed, |program, backend| {
        let mut target = Target { backend, deterministic: false, segment: SITE };
        passes.run(program, &mut target).unwrap();
    })
}

fn agrees_rewritten(
    machine: &mut Machine,
    seed: u64,
    rewrite: impl FnOnce(&mut Program, &mut CpuBackend),
) -> (bool, usize) {
    let base = machine.memory.addr();
    let (mut program, lasting) = Writer::new(seed, base).write();
    let expected = machine.run(&program, &lasting).unwrap();
    let launches = |program: &Program| {
        program.commands().iter().filter(|command| matches!(command, Command::Launch { .. })).count()
    };
    let before = launches(&program);
    rewrite(&mut program, &mut machine.backend);
    (machine.run(&program, &lasting) == Ok(expected), before - launches(&program))
}

/// How many programs a pass is tried on, 1500 or as many as `GRAPHABLE_PASSED_PROGRAMS` says.
fn programs() -> u64 {
    let more = std::env::var("GRAPHABLE_PASSED_PROGRAMS").ok();
    more.map_or(1500, |text| text.parse().expect("GRAPHABLE_PASSED_PROGRAMS is a number"))
}

#[test]
fn passes_change_no_byte() {
    let (mut machine, mut gone) = (Machine::new(), 0);
    for seed in 0..programs() {
        let (same, joined) = agrees(&mut machine, seed, &FuseElementwise::default());
        assert!(same, "seed {seed}");
        gone += joined;
    }
    // Otherwise, it shows nothing.
    assert!(gone > 2000, "{gone}");
    let mut gone = 0;
    for seed in 0..programs() {
        let (same, joined) = agrees(&mut machine, seed, &CommonSubexpressions::default());
        assert!(same, "seed {seed}, common subexpressions");
        gone += joined;
    }
    assert!(gone > 200, "{gone}");
    let (mut gone, mut all_gone) = (0, 0);
    for seed in 0..programs() {
        let (same, joined) = agrees(&mut machine, seed, &FuseProducts::default());
        assert!(same, "seed {seed}, products");
        gone += joined;
        let (same, joined) = agrees_after(&mut machine, seed, &Passes::default());
        assert!(same, "seed {seed}, all passes");
        all_gone += joined;
    }
    assert!(gone > 300 && all_gone > gone + 1500, "{gone}, {all_gone}");
}

/// The purpose of each rule: without it, some program computes something else, or accesses memory that it must not.
#[test]
fn each_rule_is_needed() {
    use PassRefusal::{OtherElements, PlaceInUse, ReadBetween, WrittenBetween};
    let is_found = |pass: &dyn Pass| {
        let mut machine = Machine::new();
        (0..1500).any(|seed| {
            let (same, _) = agrees(&mut machine, seed, pass);
            if !same {
                // The device is lost after an invalid access.
                machine = Machine::new();
            }
            !same
        })
    };
    for rule in [OtherElements, WrittenBetween, ReadBetween, PlaceInUse] {
        let pass = FuseElementwise { ignored: Some(rule), ..FuseElementwise::default() };
        assert!(is_found(&pass), "no program needs {rule:?}");
    }
    let pass = FuseElementwise { keeps_frees: true, ..FuseElementwise::default() };
    assert!(is_found(&pass), "no program needs memory to be freed later");
    for rule in
        [Rule::InPlace, Rule::OtherInputs, Rule::Leaves, Rule::Changes, Rule::WrittenOver, Rule::FreesMove]
    {
        let pass = CommonSubexpressions { ignored: Some(rule) };
        assert!(is_found(&pass), "no program needs {rule:?}");
    }
    let pass = FuseProducts { trusts_places: true };
    assert!(is_found(&pass), "no program has another value where a member wrote");
}

//! Launches of several parts beside the parts, bit for bit, on the CPU and, where there is one, on a GPU.

use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

use super::few_rows::{MOST_OF_EIGHT, may_make_rows};
use crate::{
    BlockFormat, DType, Device, Float, Numerics, Runtime, Scope, Step, Tensor,
    backend::{Launch, Op, View},
    bf16, f16, kernel,
    kernel::{
        definition::{Constant as _, Definition, Kernel as _, Number, Padded},
        operation::operation,
    },
    ops::{self, quantized::QuantizedLinear},
    quantized::{testing::blocks_of_scale, tiles},
    value::layout::{Layout, PaddedDims},
};

#[kernel]
fn plus(a: f32, b: f32) -> f32 {
    a + b
}

#[kernel]
fn gated(gate: f32, up: f32) -> f32 {
    gate / (1.0 + (-gate).exp()) * up
}

#[kernel]
fn scaled(x: f32, by: f32) -> f32 {
    x * by + 1.0
}

#[kernel]
fn masked(keep: bool, x: f32) -> f32 {
    if keep { x } else { -0.5 }
}

#[kernel]
fn both(x: f32, y: f32) -> (f32, f32) {
    (x * y, x - 0.25 * y)
}

#[kernel]
fn rooted(x: f32) -> f32 {
    (x * x + 1.0).sqrt()
}

/// A kernel in which some parameters are numbers.
fn with(definition: &'static Definition, numbers: &[Option<f32>]) -> Op {
    let numbers: Vec<Option<Number>> = numbers.iter().map(|n| n.map(|n| n.number())).collect();
    operation(definition, numbers.iter().copied(), Padded::default())
}

fn norm(name: &str, dtype: DType) -> &'static Definition {
    let mut all = ops::norm::kernels().filter(|definition| definition.name == name);
    let which = match dtype {
        DType::F16 if name == "add_rms_norm" => 1,
        DType::Bf16 if name == "add_rms_norm" => 2,
        _ => 0,
    };
    all.nth(which).unwrap()
}

/// A case, as it is drawn.
#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    /// Of the weights, if they are in blocks.
    format: Option<BlockFormat>,
    m: usize,
    k: usize,
    /// Elements between rows, if nothing makes the rows.
    row: usize,
    norm: Option<&'static str>,
    keeps_sum: bool,
    /// Columns of each set, whether its products have biases, and its steps.
    sets: Vec<(usize, bool, Vec<Kind>)>,
    together: usize,
    /// The results of steps and products that others read, besides the last of each set.
    kept: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// A tensor of as many elements, or a row, or a column, is added.
    Plus(usize),
    /// Some elements are replaced, as a mask of one of these shapes says.
    Masked(usize),
    /// The same by the operation that moves bits, of whatever type of that size.
    Selected(usize),
    Scaled(f32),
    Both,
    Rooted,
}

impl Case {
    fn draw(rng: &mut StdRng) -> Self {
        let format = BlockFormat::ALL.choose(rng).copied().filter(|_| rng.random());
        let k = match format {
            None => 8 * *[1, 3, 8, 24, 72, 100, 128, 200, 256].choose(rng).unwrap(),
            // Now and then so many that twice as many warps share them.
            Some(format) if rng.random_ratio(1, 8) => {
                format.elements() * (MOST_OF_EIGHT / format.elements() + rng.random_range(1..5))
            }
            Some(format) if format.elements() == 256 => 256 * rng.random_range(1..9),
            Some(format) => format.elements() * *[1, 2, 3, 7, 18, 25, 32, 50, 64].choose(rng).unwrap(),
        };
        let norm =
            [None, Some("rms_norm"), Some("layer_norm"), Some("add_rms_norm")].choose(rng).copied().unwrap();
        let steps = |rng: &mut StdRng| {
            let step = |rng: &mut StdRng| match rng.random_range(0..9) {
                0..3 => Kind::Plus(rng.random_range(0..3)),
                6..8 => Kind::Masked(rng.random_range(0..3)),
                8 => Kind::Selected(rng.random_range(0..3)),
                3 => Kind::Scaled(rng.random_range(-2.0..2.0)),
                4 => Kind::Both,
                _ => Kind::Rooted,
            };
            (0..rng.random_range(0..4)).map(|_| step(rng)).collect()
        };
        let sets = (0..rng.random_range(1..4))
            .map(|_| (rng.random_range(1..90), rng.random(), steps(rng)))
            .collect();
        Self {
            seed: rng.random(),
            format,
            // As many rows as a norm of them has room for.
            m: match norm {
                _ if rng.random_ratio(1, 4) => 1,
                Some(_) if !may_make_rows(format, 2, k) => 1,
                Some(_) if k > MOST_OF_EIGHT => rng.random_range(1..=3),
                _ => rng.random_range(1..=16),
            },
            k,
            row: k + 8 * rng.random_range(0..3),
            norm,
            keeps_sum: rng.random(),
            sets,
            together: rng.random_range(1..=2),
            kept: rng.random::<u64>() & rng.random::<u64>(),
        }
    }
}

/// The launches of a case on a device.
struct Built<'s, T: Float> {
    scope: Scope<'s>,
    rng: StdRng,
    parts: Vec<Launch>,
    kept: Vec<u8>,
    /// The results that are kept, in the order of the parts.
    results: Vec<Tensor<'s, T>>,
    memory: Vec<Tensor<'s, T>>,
    words: Vec<Tensor<'s, u32>>,
    blocks: Vec<Tensor<'s, u8>>,
    masks: Vec<Tensor<'s, bool>>,
    /// Set if the device has blocks in tiles.
    in_tiles: bool,
}

impl<'s, T: Float> Built<'s, T> {
    fn tensor(&mut self, step: &Step<'s>, count: usize) -> View {
        let values: Vec<T> = (0..count).map(|_| T::from_f64(self.rng.random_range(-1.0..1.0))).collect();
        let tensor = step.tensor(&[count], &values).unwrap();
        let view = tensor.view("test").unwrap();
        self.memory.push(tensor);
        view
    }

    fn mask(&mut self, step: &Step<'s>, count: usize) -> View {
        let values: Vec<bool> = (0..count).map(|_| self.rng.random()).collect();
        let tensor = step.tensor(&[count], &values).unwrap();
        let view = tensor.view("test").unwrap();
        self.masks.push(tensor);
        view
    }

    /// A product, and a weight for it.
    fn product(&mut self, step: &Step<'s>, format: Option<BlockFormat>, [n, k]: [usize; 2]) -> (Op, View) {
        let Some(format) = format else {
            let w = shaped(self.tensor(step, n * k), &[k, n], &[1, k]);
            return (super::super::operation::op::<T>(self.scope), w);
        };
        let mut blocks = blocks_of_scale(&mut self.rng, format, n * k / format.elements(), 0.002);
        if self.in_tiles {
            blocks = tiles::arrange(format, [n, k], &blocks).unwrap();
        }
        let tensor = step.tensor(&[blocks.len()], &blocks).unwrap();
        let row = format.row_bytes(k).unwrap();
        let view = shaped(tensor.view("test").unwrap(), &[n, row], &[row, 1]);
        self.blocks.push(tensor);
        (QuantizedLinear::new(format, Numerics::default()).into(), view)
    }

    /// A launch with results of this shape; those with a bit are kept.
    fn part(&mut self, op: Op, inputs: &[View], shapes: &[&[usize]], kept: u8) -> Vec<View> {
        let mut outputs = Vec::new();
        for (i, shape) in shapes.iter().enumerate() {
            let out = self.scope.empty::<T>(&op, shape, PaddedDims::NONE).unwrap();
            outputs.push(out.view("test").unwrap());
            if kept & 1 << i != 0 { self.results.push(out) } else { self.memory.push(out) }
        }
        self.parts.push(Launch { op, inputs: inputs.into(), outputs: outputs.clone().into(), workspace: 0 });
        self.kept.push(kept);
        outputs
    }
}

/// Elements and strides of operands of a result: of as many elements, a row, and a column.
fn operands(m: usize, n: usize) -> [(usize, [usize; 2]); 3] {
    [(m * n, [n, 1]), (n, [0, 1]), (m, [1, 0])]
}

fn shaped(view: View, shape: &[usize], strides: &[usize]) -> View {
    View { layout: Layout::strided(shape, strides).unwrap(), ..view }
}

/// With nothing yet.
fn nothing<'s, T: Float>(step: &Step<'s>, rng: StdRng, in_tiles: bool) -> Built<'s, T> {
    let (parts, kept, results, memory) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (words, blocks, masks) = (Vec::new(), Vec::new(), Vec::new());
    Built { scope: step.scope(), rng, parts, kept, results, memory, words, blocks, masks, in_tiles }
}

fn build<'s, T: Float>(step: &Step<'s>, case: &Case, in_tiles: bool) -> Built<'s, T> {
    let mut built = nothing::<T>(step, StdRng::seed_from_u64(case.seed), in_tiles);
    let Case { m, k, row, .. } = *case;
    let x = built.tensor(step, m * row);
    let mut x = shaped(x, &[m, k], &[row, 1]);
    if let Some(name) = case.norm {
        let vector = |built: &mut Built<'s, T>| shaped(built.tensor(step, k), &[m, k], &[0, 1]);
        let definition = norm(name, T::DTYPE);
        let shape: &[usize] = &[m, k];
        x = match name {
            "rms_norm" => {
                let inputs = [x, vector(&mut built)];
                built.part(with(definition, &[None, None, Some(1e-5)]), &inputs, &[shape], 0)[0]
            }
            "layer_norm" => {
                let inputs = [x, vector(&mut built), vector(&mut built)];
                built.part(with(definition, &[None, None, None, Some(1e-5)]), &inputs, &[shape], 0)[0]
            }
            _ => {
                let added = shaped(built.tensor(step, m * k), shape, &[k, 1]);
                let inputs = [x, added, vector(&mut built)];
                let op = with(definition, &[None, None, None, Some(1e-5)]);
                built.part(op, &inputs, &[shape, shape], case.keeps_sum.into())[1]
            }
        };
    }
    let mut kept = case.kept;
    for (n, has_bias, steps) in &case.sets {
        let (n, mut last) = (*n, Vec::new());
        for at in 0..case.together {
            let (op, w) = built.product(step, case.format, [n, k]);
            let mut inputs = vec![x, w];
            if *has_bias {
                inputs.push(shaped(built.tensor(step, n), &[m, n], &[0, 1]));
            }
            kept >>= 1;
            let is_last = steps.is_empty() && (case.together == 1 || at > 0);
            last.push(built.part(op, &inputs, &[&[m, n]], u8::from(is_last || kept & 1 != 0))[0]);
        }
        if case.together == 2 {
            kept >>= 1;
            let keep = u8::from(steps.is_empty() || kept & 1 != 0);
            last = built.part(with(gated::DEFINITION, &[]), &[last[0], last[1]], &[&[m, n]], keep);
        }
        let mut last = last[0];
        for (i, kind) in steps.iter().enumerate() {
            kept >>= 1;
            let keep = u8::from(i + 1 == steps.len() || kept & 1 != 0);
            // The same elements as another tensor would have them.
            let shape: &[usize] = if i % 2 == 0 { &[m, n] } else { &[1, m * n] };
            let seen = shaped(last, shape, &[if i % 2 == 0 { n } else { 0 }, 1]);
            last = match kind {
                Kind::Plus(how) => {
                    let (count, strides) = operands(m, n)[*how];
                    let other = shaped(built.tensor(step, count), &[m, n], &strides);
                    let seen = shaped(last, &[m, n], &[n, 1]);
                    built.part(with(plus::DEFINITION, &[]), &[seen, other], &[&[m, n]], keep)[0]
                }
                // Bits of 16-bit floats are not selected in the kernel of a product.
                Kind::Selected(how) if T::DTYPE == DType::F32 => {
                    let (count, strides) = operands(m, n)[*how];
                    let mask = shaped(built.mask(step, count), &[m, n], &strides);
                    let other = shaped(built.tensor(step, m * n), &[m, n], &[n, 1]);
                    let seen = shaped(last, &[m, n], &[n, 1]);
                    let op = with(ops::compare::selection(size_of::<T>()), &[]);
                    let inputs = if i % 2 == 0 { [mask, seen, other] } else { [mask, other, seen] };
                    built.part(op, &inputs, &[&[m, n]], keep)[0]
                }
                Kind::Masked(how) | Kind::Selected(how) => {
                    let (count, strides) = operands(m, n)[*how];
                    let mask = shaped(built.mask(step, count), &[m, n], &strides);
                    let seen = shaped(last, &[m, n], &[n, 1]);
                    built.part(with(masked::DEFINITION, &[]), &[mask, seen], &[&[m, n]], keep)[0]
                }
                Kind::Scaled(by) => {
                    built.part(with(scaled::DEFINITION, &[None, Some(*by)]), &[seen], &[shape], keep)[0]
                }
                Kind::Both => {
                    let op = with(both::DEFINITION, &[]);
                    built.part(op, &[seen, seen], &[shape, shape], keep << 1 | u8::from(kept & 4 != 0))[1]
                }
                Kind::Rooted => built.part(with(rooted::DEFINITION, &[]), &[seen], &[shape], keep)[0],
            };
        }
    }
    built
}

/// Columns of so many passes that on a GPU each warp of a block has its turn to write their results, and the first ones a second turn:
/// more than 9 passes over 16 columns of two blocks on each of 132 multiprocessors.
const MANY: usize = 38_400;

/// Queries that are turned, keys that are turned into a state, and values that go to another one. With `many`, of one row, and so many
/// columns.
fn placed<'s, T: Float>(
    step: &Step<'s>,
    seed: u64,
    style: ops::RopeStyle,
    many: Option<usize>,
    in_tiles: bool,
) -> Built<'s, T> {
    let mut rng = StdRng::seed_from_u64(seed);
    let (m, k) = (rng.random_range(1..=16), 8 * rng.random_range(1..80));
    let m = if many.is_some() { 1 } else { m };
    let format = [BlockFormat::Q8_0, BlockFormat::Q5_1].choose(&mut rng).copied().filter(|_| seed % 4 > 1);
    let k: usize = if format.is_some() { k / 8 * 32 } else { k };
    let (size, heads, kv_heads) =
        (2 * rng.random_range(1..40), rng.random_range(1..5), rng.random_range(1..3));
    let heads = many.map_or(heads, |columns| columns.div_ceil(size));
    let (rows, has_count, has_bias) = (m + 3, rng.random::<bool>(), rng.random::<bool>());
    let words = |values: Vec<u32>| {
        let tensor = step.tensor(&[values.len()], &values).unwrap();
        let view = tensor.view("test").unwrap();
        (tensor, view)
    };
    // Some rows are skipped, some are given twice.
    let index =
        (0..m).map(|_| if rng.random_range(0..6) == 0 { u32::MAX } else { rng.random_range(0..rows as u32) });
    let (index_tensor, index) = words(index.collect());
    let positions = (0..m).map(|_| rng.random_range(0..5000)).collect();
    let (position_tensor, positions) = words(positions);
    let (count_tensor, count) = words(vec![rng.random_range(0..=m as u32)]);
    let count = View { layout: Layout::contiguous(&[]).unwrap(), ..count };
    let mut built = nothing::<T>(step, rng, in_tiles);
    built.words = vec![index_tensor, position_tensor, count_tensor];
    let positions = shaped(positions, &[1, 1, m], &[0, 0, 1]);
    let x = shaped(built.tensor(step, m * k), &[m, k], &[k, 1]);
    let counts: &[View] = if has_count { &[count] } else { &[] };
    let rope = ops::rope::sample(style, size).unwrap();
    for what in 0..3 {
        let heads = if what == 0 { heads } else { kv_heads };
        let n = heads * size;
        let (op, w) = built.product(step, format, [n, k]);
        let mut inputs = vec![x, w];
        if has_bias {
            inputs.push(shaped(built.tensor(step, n), &[m, n], &[0, 1]));
        }
        let y = built.part(op, &inputs, &[&[m, n]], 0)[0];
        let y = shaped(y, &[1, m, heads, size], &[n * m, n, size, 1]);
        if what == 0 {
            built.part(rope.into(), &[y, positions], &[&[1, m, heads, size]], 1);
            continue;
        }
        // A tensor stands for the state: what is not written keeps its values.
        let state = built.tensor(step, rows * n);
        let tensor = built.memory.pop().unwrap();
        built.results.push(tensor);
        let state = View { layout: Layout::contiguous(&[rows, heads, size]).unwrap(), ..state };
        let y = if what == 1 { y } else { shaped(y, &[m, heads, size], &[n, size, 1]) };
        let (op, inputs): (Op, Vec<View>) = match what {
            1 => (ops::rope::RopeScatter(rope).into(), [&[y, positions, index], counts].concat()),
            _ => (ops::scatter::ScatterRows.into(), [&[index, y], counts].concat()),
        };
        let outputs = [state];
        built.parts.push(Launch { op, inputs: inputs.into(), outputs: outputs.into(), workspace: 0 });
        built.kept.push(1);
    }
    built
}

/// The bits of what a case keeps, computed in one launch or in several; `None` if there is no such launch.
fn computed<T: Float>(rt: &mut Runtime, case: &Case, fused: bool) -> Option<Vec<Vec<u64>>> {
    computed_as::<T>(rt, &format!("{case:?}"), fused, &|step, in_tiles| build::<T>(step, case, in_tiles))
}

fn computed_as<T: Float>(
    rt: &mut Runtime,
    case: &str,
    fused: bool,
    build: &dyn for<'s> Fn(&Step<'s>, bool) -> Built<'s, T>,
) -> Option<Vec<Vec<u64>>> {
    let in_tiles = rt.blocks_in_tiles();
    let step = rt.step().unwrap();
    let built = build(&step, in_tiles);
    if fused {
        let parts: Vec<&Launch> = built.parts.iter().collect();
        let product = super::super::operation::op::<T>(built.scope);
        let launch = product.operation().fuse(&parts, &built.kept)?;
        assert_eq!(launch.outputs.len(), built.results.len(), "{case}");
        built.scope.launch(launch.op, &launch.inputs, &launch.outputs).unwrap();
    } else {
        for part in &built.parts {
            built.scope.launch(part.op.clone(), &part.inputs, &part.outputs).unwrap();
        }
    }
    let bits = |v: &T| v.to_f64().to_bits();
    Some(built.results.iter().map(|y| step.read(y).unwrap().iter().map(bits).collect()).collect())
}

fn check<T: Float>(rt: &mut Runtime, case: &Case) {
    let parts = computed::<T>(rt, case, false).unwrap();
    let one = computed::<T>(rt, case, true).unwrap_or_else(|| panic!("refused: {} {case:?}", T::DTYPE));
    assert!(parts.iter().flatten().any(|bits| *bits != 0), "{case:?}");
    assert!(parts == one, "{} {case:?}\n{parts:x?}\n{one:x?}", T::DTYPE);
}

fn check_placed<T: Float>(rt: &mut Runtime, seed: u64, style: ops::RopeStyle, many: Option<usize>) {
    let case = format!("{} {seed} {style:?} {many:?}", T::DTYPE);
    let build: &dyn for<'s> Fn(&Step<'s>, bool) -> Built<'s, T> =
        &|step, in_tiles| placed::<T>(step, seed, style, many, in_tiles);
    let parts = computed_as::<T>(rt, &case, false, build).unwrap();
    let one = computed_as::<T>(rt, &case, true, build).unwrap_or_else(|| panic!("refused: {case}"));
    assert!(parts == one, "{case}\n{parts:x?}\n{one:x?}");
}

#[test]
fn rotations_and_rows_of_states_have_the_bits_of_their_parts() {
    for (device, cases) in devices() {
        let mut rt = Runtime::new(device).unwrap();
        for seed in 0..cases as u64 {
            let style = [ops::RopeStyle::HalfSplit, ops::RopeStyle::Interleaved][(seed % 2) as usize];
            match seed % 3 {
                0 => check_placed::<f32>(&mut rt, seed, style, None),
                1 => check_placed::<f16>(&mut rt, seed, style, None),
                _ => check_placed::<bf16>(&mut rt, seed, style, None),
            }
        }
    }
}

/// The last part writes where an operand of an earlier one was, which nothing reads any more.
#[test]
fn a_result_may_be_where_an_operand_was() {
    fn build<'s, T: Float>(step: &Step<'s>, in_tiles: bool) -> Built<'s, T> {
        let mut built = nothing::<T>(step, StdRng::seed_from_u64(3), in_tiles);
        let shape: &[usize] = &[3, 40];
        let x = shaped(built.tensor(step, 3 * 64), &[3, 64], &[64, 1]);
        let (op, w) = built.product(step, None, [40, 64]);
        let other = shaped(built.tensor(step, 120), shape, &[40, 1]);
        let old = shaped(built.tensor(step, 120), shape, &[40, 1]);
        let tensor = built.memory.pop().unwrap();
        built.results.push(tensor);
        let y = built.part(op, &[x, w], &[shape], 0)[0];
        let sum = built.part(with(plus::DEFINITION, &[]), &[y, old], &[shape], 0)[0];
        let op = with(plus::DEFINITION, &[]);
        let (inputs, outputs) = ([sum, other], [old]);
        built.parts.push(Launch { op, inputs: inputs[..].into(), outputs: outputs.into(), workspace: 0 });
        built.kept.push(1);
        built
    }
    fn check<T: Float>(rt: &mut Runtime) {
        let parts = computed_as::<T>(rt, "parts", false, &|step, in_tiles| build::<T>(step, in_tiles));
        let one = computed_as::<T>(rt, "one", true, &|step, in_tiles| build::<T>(step, in_tiles));
        assert!(parts.is_some() && parts == one, "{}: {parts:x?}\n{one:x?}", T::DTYPE);
    }
    for (device, _) in devices() {
        let mut rt = Runtime::new(device).unwrap();
        check::<f32>(&mut rt);
        check::<bf16>(&mut rt);
    }
}

fn devices() -> Vec<(Device, usize)> {
    let mut devices = vec![(Device::cpu_with(crate::backend::cpu::CpuOptions::default().test_mode(5)), 120)];
    #[cfg(feature = "cuda")]
    if crate::backend::cuda::check(0).is_ok() {
        // Each case is compiled.
        let options = crate::backend::cuda::CudaOptions::default().test_mode(true);
        devices.push((Device::cuda_with(0, options), 30));
    }
    devices
}

#[test]
fn one_launch_has_the_bits_of_its_parts() {
    for (device, cases) in devices() {
        let mut rt = Runtime::new(device).unwrap();
        let mut rng = StdRng::seed_from_u64(16);
        let mut drawn = 0;
        while drawn < cases {
            let case = Case::draw(&mut rng);
            // One product alone is not a launch of several parts.
            if case.norm.is_none() && case.together == 1 && case.sets.len() == 1 && case.sets[0].2.is_empty()
            {
                continue;
            }
            drawn += 1;
            match rng.random_range(0..3) {
                0 => check::<f32>(&mut rt, &case),
                1 => check::<f16>(&mut rt, &case),
                _ => check::<bf16>(&mut rt, &case),
            }
        }
    }
}

/// A block has more passes than warps, and weights of one or several passes are on their way.
#[test]
fn many_passes_have_the_bits_of_their_parts() {
    for (device, _) in devices() {
        // On the CPU, parts are what they are alone.
        let columns = if device.is_cpu() { 300 } else { MANY };
        let mut rt = Runtime::new(device).unwrap();
        let case = |format: Option<BlockFormat>, k: usize, together: usize| Case {
            seed: k as u64,
            format,
            m: 1,
            k,
            row: k,
            norm: [None, Some("rms_norm")][together - 1],
            keeps_sum: false,
            sets: vec![(columns, true, vec![Kind::Plus(1)]), (70, false, vec![])],
            together,
            kept: 0,
        };
        for together in [1, 2] {
            for (format, k) in [
                (None, 72),
                (Some(BlockFormat::Q4_K), 512),
                (Some(BlockFormat::Q8_0), 64),
                (Some(BlockFormat::Q4_1), 576),
                (Some(BlockFormat::INT4), 608),
            ] {
                check::<f32>(&mut rt, &case(format, k, together));
                check::<bf16>(&mut rt, &case(format, k, together));
            }
        }
        // In blocks, and in floats.
        for seed in [2, 4] {
            check_placed::<f32>(&mut rt, seed, ops::RopeStyle::HalfSplit, Some(columns));
            check_placed::<bf16>(&mut rt, seed, ops::RopeStyle::Interleaved, Some(columns));
        }
    }
}

/// One kernel unpacks one format, or none.
#[test]
fn products_of_two_formats_are_not_one() {
    let mut rt = Runtime::new(Device::cpu()).unwrap();
    let step = rt.step().unwrap();
    let formats = [None, Some(BlockFormat::Q8_0), Some(BlockFormat::Q4_0)];
    for first in formats {
        for second in formats {
            let mut built = nothing::<f32>(&step, StdRng::seed_from_u64(1), false);
            let x = shaped(built.tensor(&step, 64), &[2, 32], &[32, 1]);
            for format in [first, second] {
                let (op, w) = built.product(&step, format, [5, 32]);
                let _ = built.part(op, &[x, w], &[&[2, 5]], 1);
            }
            let parts: Vec<&Launch> = built.parts.iter().collect();
            for part in &parts {
                assert!(part.op.operation().may_fuse(part));
                let fused = part.op.operation().fuse(&parts, &built.kept);
                assert_eq!(fused.is_some(), first == second, "{first:?} {second:?}");
            }
        }
    }
}

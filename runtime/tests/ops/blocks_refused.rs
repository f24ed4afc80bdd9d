//! Weights in blocks on a device that does not compute with them, as one behind a backend that says so.

use graphable::{
    BlockFormat, DType, Error, Float, Param, ParamVisitor, Result, Runtime, Weight,
    backend::{Arenas, Backend, Diagnostics, Graphs, Op, Stream, cpu::CpuOptions, delegate},
    bf16, f16,
    load::{self, HostBlocks, HostTensor, TensorSource},
    ops,
    prelude::*,
};
use rand::{Rng as _, SeedableRng, rngs::StdRng};

use crate::{
    harness::for_types,
    quantized::{blocks, format},
};

/// The operations that read blocks.
const READERS: [&str; 2] = ["quantized_linear", "embedding"];

/// A backend that does not run the operations of these names.
#[derive(Debug)]
struct Refusing {
    inner: Box<dyn Backend>,
    names: Vec<&'static str>,
}

impl Stream for Refusing {
    delegate!(
        inner: launch, workspace, host_write, read, write_from, read_into, mark, poison, wants_poison, synchronize
    );

    fn supports(&mut self, op: &Op) -> Result<bool> {
        Ok(!self.names.contains(&op.name()) && self.inner.supports(op)?)
    }
}

impl Arenas for Refusing {
    delegate!(
        inner: reserve, commit, guard_page, commit_block, uncommit, alloc, map_file, blocks_in_tiles, host_memory, host_log, keep, release
    );
}

impl Graphs for Refusing {
    delegate!(
        inner: begin_capture, fork, branch, join, end_capture, end_capture_shared, abort_capture,
        capture_was_invalidated, instantiate, update, replay
    );
    delegate!(inner: supports_conditionals, begin_conditional, begin_body, end_conditional);
}

impl Diagnostics for Refusing {
    delegate!(
        inner: name, device_memory, eager_graphs, staging_waits, caches, clear_caches, clear_disk_cache, keep_topology
    );
}

impl Backend for Refusing {
    delegate!(inner: as_any);
}

fn refusing(names: &[&'static str]) -> Runtime {
    let inner = crate::device::backend(CpuOptions::default().test_mode(1));
    Runtime::with_backend(Box::new(Refusing { inner, names: names.to_vec() })).unwrap()
}

/// `up` in blocks, two rows of two blocks each, and `cube`, the same in three dimensions; also as floats, if it has them.
struct Source {
    format: BlockFormat,
    blocks: Vec<u8>,
    has_floats: bool,
}

impl Source {
    fn new(rng: &mut StdRng, format: BlockFormat) -> Self {
        Self { format, blocks: blocks(rng, format, 2, 2 * format.elements()), has_floats: true }
    }

    fn values(&self) -> Vec<f32> {
        let mut values = vec![0.0; 4 * self.format.elements()];
        self.format.dequantize(&self.blocks, &mut values).unwrap();
        values
    }

    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        match name {
            "up" => Some(vec![2, 2 * self.format.elements()]),
            "cube" => Some(vec![2, 2, self.format.elements()]),
            _ => None,
        }
    }
}

impl TensorSource for Source {
    fn name(&self) -> String {
        "blocks".into()
    }

    fn names(&self) -> Vec<String> {
        vec!["up".into(), "cube".into()]
    }

    fn tensor(&self, name: &str) -> Result<Option<HostTensor<'_>>> {
        let bytes: Vec<u8> = self.values().into_iter().flat_map(f32::to_le_bytes).collect();
        let shape = self.shape(name).filter(|_| self.has_floats);
        Ok(shape.map(|shape| HostTensor { dtype: DType::F32, bytes: bytes.into(), shape, file: None }))
    }

    fn blocks(&self, name: &str) -> Result<Option<HostBlocks<'_>>> {
        let (format, bytes) = (self.format, &self.blocks[..]);
        Ok(self.shape(name).map(|shape| HostBlocks { format, shape, bytes: bytes.into(), file: None }))
    }
}

#[derive(Params)]
#[params(config = usize)]
struct Model<T: Float> {
    #[param("up", shape = [2, 2 * *config])]
    up: Weight<T>,
    #[param("up", shape = [2, 2 * *config])]
    tied: Weight<T>,
    #[param("cube", shape = [2, 2, *config])]
    cube: Weight<T>,
}

#[graphable]
fn forward(model: &Model<f32>, x: &Tensor<f32>, ids: &Tensor<u32>) -> Result<Tensor<f32>> {
    ops::tanh(&ops::matmul(&ops::linear(x, &model.up)?, &ops::embedding(ids, &model.tied)?)?)
}

/// The same of parameters.
#[graphable]
fn forward_floats(w: &Param<f32>, x: &Tensor<f32>, ids: &Tensor<u32>) -> Result<Tensor<f32>> {
    ops::tanh(&ops::matmul(&ops::linear(x, w)?, &ops::embedding(ids, w)?)?)
}

fn bits<T: Float>(values: &[T]) -> Vec<u64> {
    values.iter().map(|v| v.to_f64().to_bits()).collect()
}

/// Loads a model of which nothing is in blocks, and compares it with parameters of the values of the blocks.
fn loads_floats<T: Float>() {
    for seed in 0..12 {
        let rng = &mut StdRng::seed_from_u64(seed);
        let format = format(rng);
        let source = Source::new(rng, format);
        let width = 2 * source.format.elements();
        // A device that lacks one of both could not run every model of weights in blocks.
        let names = [&READERS[..], &READERS[..1], &READERS[1..]][seed as usize % 3];
        let mut rt = refusing(names);
        let model: Model<T> = load::load(&rt, &source, &source.format.elements()).unwrap();
        assert!([&model.up, &model.tied, &model.cube].iter().all(|w| w.format().is_none()), "{names:?}");
        let listed = ParamVisitor::list(&model);
        let bytes = (2 * width * T::DTYPE.size()) as u64;
        assert_eq!((listed[0].bytes, listed[2].bytes), (bytes, bytes), "the memory of parameters");
        assert_eq!(listed[0].id, listed[1].id, "tied weights are one");

        let values: Vec<T> = source.values().into_iter().map(|v| T::from_f64(v.into())).collect();
        let w = Param::new(&rt, &[2, width], &values).unwrap();
        let x: Vec<T> = (0..3 * width).map(|_| T::from_f64(rng.random_range(-1.0..1.0))).collect();
        let step = rt.step().unwrap();
        let x = step.tensor(&[3, width], &x).unwrap();
        let (b, ids) = (step.tensor(&[2], &values[..2]).unwrap(), step.tensor(&[3], &[1u32, 0, 1]).unwrap());
        for (got, expected) in [
            (ops::linear(&x, &model.up), ops::linear(&x, &w)),
            (ops::linear_bias(&x, &model.up, &b), ops::linear_bias(&x, &w, &b)),
            (ops::embedding(&ids, &model.tied), ops::embedding(&ids, &w)),
        ] {
            let (got, expected) = (step.read(&got.unwrap()).unwrap(), step.read(&expected.unwrap()).unwrap());
            assert_eq!(bits(&got), bits(&expected), "{seed} {}", source.format);
        }
        let ones = step.tensor(&[2, 2, width / 2], &vec![T::from_f64(1.0); 2 * width]).unwrap();
        let cube = step.read(&ops::mul(&ones, model.cube.param().unwrap()).unwrap()).unwrap();
        assert_eq!(bits(&cube), bits(&values));
    }
}

#[test]
fn weights_are_loaded_as_floats() {
    for_types!(loads_floats: f32, f16, bf16);
}

/// Of a tensor of three dimensions, blocks are not used by any device.
#[test]
fn only_blocks_of_two_dimensions_are_used() {
    let rt = Runtime::new(crate::harness::device()).unwrap();
    let source = Source::new(&mut StdRng::seed_from_u64(1), BlockFormat::Q6_K);
    let model: Model<f32> = load::load(&rt, &source, &256).unwrap();
    assert_eq!(model.up.format(), Some(BlockFormat::Q6_K));
    assert_eq!((model.cube.format(), model.cube.bytes()), (None, 4 * 1024));
}

#[test]
fn modes_compute_with_the_floats() {
    // Without a uniform batch, the other modes run as one of these.
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = refusing(&READERS);
        let source = Source::new(&mut StdRng::seed_from_u64(2), BlockFormat::Q4_K);
        let model: Model<f32> = load::load(&rt, &source, &256).unwrap();
        let w = Param::new(&rt, &[2, 512], &source.values()).unwrap();
        let graph = ForwardGraph::builder().mode(mode).audit_every(2).build(&mut rt).unwrap();
        let floats = ForwardFloatsGraph::builder().mode(Mode::None).build(&mut rt).unwrap();
        for round in 0..6 {
            let step = rt.step().unwrap();
            let x = step.tensor(&[2, 512], &[round as f32 / 8.0 - 0.3; 1024]).unwrap();
            let ids = step.tensor(&[2], &[round % 2, 1]).unwrap();
            let y = graph.call(&step, &model, &x, &ids);
            let expected = floats.call(&step, &w, &x, &ids);
            let (y, expected) = (step.read(&y.unwrap()).unwrap(), step.read(&expected.unwrap()).unwrap());
            assert_eq!(bits(&y), bits(&expected), "{mode:?} {round}");
        }
        assert_eq!(rt.stats().fallbacks, 0);
        assert_eq!(rt.stats().replays > 0, mode != Mode::None);
    }
}

/// Blocks that were made by hand are refused by the function that is called, before anything is launched.
#[test]
fn blocks_made_by_hand_are_refused() {
    for (names, refused) in
        [(&READERS[..], [true, true]), (&READERS[..1], [true, false]), (&READERS[1..], [false, true])]
    {
        let mut rt = refusing(names);
        let bytes = BlockFormat::Q8_0.quantize(&[1.0; 64]).unwrap();
        let w = Weight::<f32>::blocks(&rt, &[2, 32], BlockFormat::Q8_0, bytes).unwrap();
        let step = rt.step().unwrap();
        let (x, ids) = (step.tensor(&[1, 32], &[0.5f32; 32]).unwrap(), step.tensor(&[1], &[1u32]).unwrap());
        let b = step.tensor(&[2], &[0.0f32; 2]).unwrap();
        for (name, refused, result) in [
            ("linear", refused[0], ops::linear(&x, &w)),
            ("linear_bias", refused[0], ops::linear_bias(&x, &w, &b)),
            ("embedding", refused[1], ops::embedding(&ids, &w)),
        ] {
            match result {
                Ok(y) => {
                    assert!(!refused, "{names:?} {name}");
                    let expected = if name == "embedding" { 1.0 } else { 16.0 };
                    assert!(step.read(&y).unwrap().iter().all(|y| (y - expected).abs() < 0.1));
                }
                Err(Error::Argument { op, reason }) => {
                    assert!(refused, "{names:?} {name}: {reason}");
                    assert_eq!(op, name);
                    assert!(reason.contains("does not compute with weights in blocks (Q8_0)"), "{reason}");
                }
                Err(other) => panic!("{names:?} {name}: {other}"),
            }
        }
        // The runtime works on.
        assert_eq!(step.read(&x).unwrap(), [0.5; 32]);
    }
}

#[test]
fn sources_without_floats_say_what_is_missing() {
    let rt = refusing(&READERS);
    let mut source = Source::new(&mut StdRng::seed_from_u64(3), BlockFormat::Q4_0);
    source.has_floats = false;
    let Err(Error::Load { problems, .. }) = load::load::<Model<f32>>(&rt, &source, &32) else {
        panic!("loaded");
    };
    assert_eq!(problems.len(), 3, "{problems:?}");
    for (problem, name) in problems.iter().zip(["up", "up", "cube"]) {
        assert!(problem.starts_with(&format!("`{name}` is stored in blocks (Q4_0)")), "{problem}");
        assert!(problem.contains("which `TensorSource::tensor` returns"), "{problem}");
    }
    assert_eq!(rt.memory().owned_bytes, 0, "nothing was loaded");
}

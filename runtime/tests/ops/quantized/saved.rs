//! Models that are saved to files and loaded again: random ones, with weights in every format of blocks and elements of every type.

use std::path::{Path, PathBuf};

use graphable::{
    BlockFormat, DType, Element, Error, Runtime, Sleep, Weight, bf16, f16,
    load::{self, Exporter, LoadParams, Loader, MappedFile, QuantizedTensors, SafeTensors, TensorSource},
    prelude::*,
};
use rand::{Rng as _, SeedableRng, rngs::StdRng};

use super::{blocks, is_cpu};
use crate::harness::device;

/// What a loaded model looks like.
#[derive(Clone, Debug)]
struct Shape {
    width: usize,
    layers: usize,
}

#[derive(Params)]
#[params(config = Shape)]
struct Every {
    #[param("a", shape = [config.layers, 3])]
    a: Param<f32>,
    #[param("b", shape = [3])]
    b: Param<f16>,
    #[param("c", shape = [1, 2, 1])]
    c: Param<bf16>,
    #[param("d", shape = [0, 2])]
    d: Param<f64>,
    #[param("e", shape = [])]
    e: Param<i64>,
    #[param("f", shape = [2])]
    f: Param<i32>,
    #[param("g", shape = [5])]
    g: Param<i8>,
    #[param("h", shape = [2])]
    h: Param<u32>,
    #[param("i", shape = [3])]
    i: Param<u8>,
    #[param("j", shape = [3])]
    j: Param<bool>,
}

#[derive(Params)]
#[params(config = Shape)]
struct Block {
    #[param("proj.weight", shape = [5, config.width])]
    proj: Weight<f32>,
    #[param("bias", optional, shape = [5])]
    bias: Option<Weight<f32>>,
    #[param("gates.{}.weight", len = 2, shape = [2, config.width])]
    gates: Vec<Weight<f32>>,
    #[state(shape = [4])]
    cache: State<f32>,
    #[config(config.width)]
    width: usize,
}

#[derive(Params)]
#[params(config = Shape)]
struct Model {
    #[param("")]
    every: Every,
    #[param("blocks.{}", len = config.layers)]
    blocks: Vec<Block>,
    #[param("last", optional)]
    last: Option<Box<Block>>,
    #[param("embed.weight", shape = [5, config.width])]
    embed: Weight<f32>,
    #[param("embed.weight", shape = [5, config.width])]
    head: Weight<f32>,
}

struct Random<'a> {
    rt: &'a Runtime,
    rng: &'a mut StdRng,
    width: usize,
}

impl Random<'_> {
    fn param<T: Element>(&mut self, shape: &[usize]) -> Param<T> {
        let count = shape.iter().product();
        let values: Vec<T> = (0..count).map(|_| T::from_f64(self.rng.random_range(-3.0..100.0))).collect();
        Param::new(self.rt, shape, &values).unwrap()
    }

    /// In blocks of any format that divides the width, or of floats.
    fn weight(&mut self, rows: usize) -> Weight<f32> {
        let width = self.width;
        let fitting: Vec<_> =
            BlockFormat::ALL.iter().filter(|f| width.is_multiple_of(f.elements())).collect();
        match fitting.get(self.rng.random_range(0..fitting.len() + 1)) {
            None => self.param(&[rows, width]).into(),
            Some(&&format) => {
                let blocks = blocks(self.rng, format, rows, width);
                Weight::blocks(self.rt, &[rows, width], format, blocks).unwrap()
            }
        }
    }

    fn every(&mut self, layers: usize) -> Every {
        Every {
            a: self.param(&[layers, 3]),
            b: self.param(&[3]),
            c: self.param(&[1, 2, 1]),
            d: self.param(&[0, 2]),
            e: self.param(&[]),
            f: self.param(&[2]),
            g: self.param(&[5]),
            h: self.param(&[2]),
            i: self.param(&[3]),
            j: self.param(&[3]),
        }
    }

    fn block(&mut self) -> Block {
        let bias = self.rng.random_bool(0.5).then(|| self.param(&[5]).into());
        Block {
            proj: self.weight(5),
            bias,
            gates: vec![self.weight(2), self.weight(2)],
            cache: State::new(self.rt, &[4], &[1.0; 4]).unwrap(),
            width: self.width,
        }
    }

    fn model(&mut self, layers: usize) -> Model {
        let embed = self.weight(5);
        Model {
            every: self.every(layers),
            blocks: (0..layers).map(|_| self.block()).collect(),
            last: self.rng.random_bool(0.5).then(|| Box::new(self.block())),
            head: embed.clone(),
            embed,
        }
    }
}

/// What is in a parameter, as text that shows every bit of it.
fn param<T: Element>(step: &Step<'_>, param: &Param<T>) -> String {
    let values: Vec<f64> = param.read(step).unwrap().wait().unwrap().iter().map(|v| v.to_f64()).collect();
    format!("{:?} {:?} {values:?}", T::DTYPE, param.shape())
}

fn weight(step: &Step<'_>, weight: &Weight<f32>) -> String {
    match weight.param() {
        Some(floats) => param(step, floats),
        None => {
            let blocks = weight.read_blocks(step).unwrap().wait().unwrap();
            format!("{:?} {:?} {blocks:?}", weight.format(), weight.shape())
        }
    }
}

fn block(step: &Step<'_>, b: &Block, all: &mut Vec<String>) {
    all.extend([weight(step, &b.proj), format!("{:?}", b.bias.as_ref().map(|bias| weight(step, bias)))]);
    all.extend(b.gates.iter().map(|gate| weight(step, gate)));
    all.push(format!("{} {:?}", b.width, b.cache.shape()));
}

/// Everything that a file keeps of a model.
fn contents(rt: &mut Runtime, model: &Model) -> Vec<String> {
    let step = &rt.step().unwrap();
    let e = &model.every;
    let mut all = vec![param(step, &e.a), param(step, &e.b), param(step, &e.c), param(step, &e.d)];
    all.extend([param(step, &e.e), param(step, &e.f), param(step, &e.g), param(step, &e.h)]);
    all.extend([param(step, &e.i), param(step, &e.j)]);
    model.blocks.iter().chain(model.last.as_deref()).for_each(|one| block(step, one, &mut all));
    all.extend([weight(step, &model.embed), weight(step, &model.head)]);
    all
}

/// A folder of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("graphable-saved-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn loaded(rt: &Runtime, file: &Path, shape: &Shape) -> Model {
    load::load(rt, &SafeTensors::open(file).unwrap(), shape).unwrap()
}

fn loaded_where_mapped(rt: &Runtime, file: &Path, shape: &Shape) -> Model {
    // SAFETY: nothing writes to the file: saving over it makes another one of its name.
    let source = SafeTensors::open_mapped(file, |file| unsafe { MappedFile::open(file) }).unwrap();
    load::load(rt, &source, shape).unwrap()
}

/// Random models are the same after they were saved and loaded, also over the file that their weights are in, and after their
/// weights were written.
#[test]
fn a_saved_model_is_loaded_bit_for_bit() {
    let folder = Folder::new("models");
    let file = folder.0.join("model.safetensors");
    let rng = &mut StdRng::seed_from_u64(18);
    let mut rt = Runtime::new(device()).unwrap();
    for round in 0..24 {
        let shape = Shape { width: [256, 192, 64][round % 3], layers: round % 4 };
        let model = Random { rt: &rt, rng, width: shape.width }.model(shape.layers);
        let expected = contents(&mut rt, &model);
        rt.step().unwrap().save(&model, &file).unwrap();
        assert_eq!(folder.files(), ["model.safetensors"]);
        let again = loaded(&rt, &file, &shape);
        assert_eq!(contents(&mut rt, &again), expected, "round {round}");

        let mapped = loaded_where_mapped(&rt, &file, &shape);
        assert_eq!(mapped.embed.is_mapped(), is_cpu());
        rt.step().unwrap().save(&mapped, &file).unwrap();
        let once_more = loaded(&rt, &file, &shape);
        assert_eq!(contents(&mut rt, &once_more), expected, "round {round}, mapped");
        assert_eq!(contents(&mut rt, &mapped), expected, "what is mapped stays");

        // In the order of the stream, after a write that nothing has waited for.
        let step = rt.step().unwrap();
        again.every.f.write(&step, &[round as i32, -1]).unwrap();
        step.save(&again, &file).unwrap();
        drop(step);
        let written = loaded(&rt, &file, &shape);
        assert_eq!(contents(&mut rt, &written), contents(&mut rt, &again));
    }
}

/// Weights in blocks are floats for whoever asks for floats, as of any other source.
#[test]
fn saved_blocks_have_values() {
    let folder = Folder::new("values");
    let file = folder.0.join("model.safetensors");
    let rng = &mut StdRng::seed_from_u64(19);
    let mut rt = Runtime::new(device()).unwrap();
    let model = Random { rt: &rt, rng, width: 256 }.model(3);
    rt.step().unwrap().save(&model, &file).unwrap();
    let source = SafeTensors::open(&file).unwrap();
    let in_blocks = model.blocks.iter().enumerate().filter_map(|(i, b)| Some((i, b.proj.format()?)));
    let mut found = 0;
    for (i, format) in in_blocks {
        let name = format!("blocks.{i}.proj.weight");
        let (tensor, blocks) =
            (source.tensor(&name).unwrap().unwrap(), source.blocks(&name).unwrap().unwrap());
        assert_eq!((blocks.format, &blocks.shape[..]), (format, &[5, 256][..]));
        let mut values = vec![0.0; 5 * 256];
        format.dequantize(&blocks.bytes, &mut values).unwrap();
        let values: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
        assert_eq!(
            (tensor.dtype, &tensor.shape[..], &tensor.bytes[..]),
            (DType::F32, &[5, 256][..], &values[..])
        );
        found += 1;
        // Also beside weights of other programs in one folder.
        let all = QuantizedTensors::new(SafeTensors::open(&file).unwrap(), None).unwrap();
        assert_eq!((all.format(&name), all.shape(&name)), (Some(format), Some(vec![5, 256])));
        assert_eq!(all.blocks(&name).unwrap().unwrap().bytes, blocks.bytes);
    }
    assert!(found > 0);
}

/// Models that cannot be saved: one does not say how, and the names of two others do not fit a file.
struct Unsaved;

impl LoadParams for Unsaved {
    type Config = ();

    fn load(_: &mut Loader<'_>, (): &()) -> Option<Self> {
        Some(Self)
    }
}

struct Colliding([Param<f32>; 2]);

struct Reserved(Param<f32>);

/// Optional fields whose names say nothing of whether they are there.
#[derive(Params)]
#[params(config = ())]
struct Optional {
    #[param("a", optional, shape = [2])]
    a: Option<Param<f32>>,
    #[param("a.x", shape = [2])]
    x: Param<f32>,
    #[param("", optional)]
    rest: Option<Rest>,
}

#[derive(Params)]
#[params(config = ())]
struct Rest {
    #[param("y", shape = [2])]
    y: Param<f32>,
}

impl LoadParams for Reserved {
    type Config = ();

    fn load(_: &mut Loader<'_>, (): &()) -> Option<Self> {
        None
    }

    fn save(&self, exporter: &mut Exporter) {
        exporter.param("__metadata__", &self.0);
    }
}

impl LoadParams for Colliding {
    type Config = ();

    fn load(_: &mut Loader<'_>, (): &()) -> Option<Self> {
        None
    }

    fn save(&self, exporter: &mut Exporter) {
        self.0.iter().for_each(|param| exporter.param("w", param));
    }
}

#[test]
fn what_cannot_be_saved_leaves_no_file() {
    let folder = Folder::new("refused");
    let file = folder.0.join("model.safetensors");
    let mut rt = Runtime::new(device()).unwrap();
    let param = |rt: &Runtime| Param::new(rt, &[2], &[1.0f32, 2.0]).unwrap();
    let two = Colliding([param(&rt), param(&rt)]);
    let step = rt.step().unwrap();
    for (error, wanted) in [
        (step.save(&Unsaved, &file), "Unsaved` does not say how it is saved; implement `LoadParams::save`"),
        (step.save(&two, &file), "two tensors of the model are called `w`"),
        (step.save(&Reserved(two.0[0].clone()), &file), "a tensor is called `__metadata__`"),
    ] {
        let error = error.unwrap_err();
        assert!(matches!(error, Error::Argument { op: "Eager::save", .. }), "{error:?}");
        assert!(error.to_string().contains(wanted), "{error}");
    }
    let any = || two.0[0].clone();
    let optional = |a: Option<Param<f32>>, rest| Optional { a, x: any(), rest };
    for (model, wanted) in [
        (optional(None, None), "`a` is absent, but would be looked for because there is `a.x`"),
        (optional(Some(any()), Some(Rest { y: any() })), "`` is optional and there, but no tensor"),
    ] {
        let error = step.save(&model, &file).unwrap_err();
        assert!(matches!(error, Error::Argument { .. }) && error.to_string().contains(wanted), "{error}");
    }
    step.save(&optional(Some(any()), None), &file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let one = Colliding([two.0[0].clone(), two.0[0].clone()]);
    for (path, wanted) in [
        (folder.0.join("no/model.safetensors"), "its folder does not exist"),
        (folder.0.clone(), "cannot be written"),
    ] {
        let error = step.save(&one, path).unwrap_err();
        assert!(matches!(error, Error::File { .. }) && error.to_string().contains(wanted), "{error}");
    }
    drop(step);

    rt.weights_can_sleep(true).unwrap();
    let tired = Colliding([param(&rt), two.0[1].clone()]);
    let tired = Colliding([tired.0[0].clone(), tired.0[0].clone()]);
    rt.sleep(Sleep::Discard).unwrap();
    assert!(matches!(rt.step().unwrap().save(&tired, &file), Err(Error::Asleep { .. })));
    rt.wake().unwrap();
    assert!(matches!(rt.step().unwrap().save(&tired, &file), Err(Error::Discarded { .. })));
    assert_eq!(folder.files(), [""; 0]);

    // The runtime is as usable as before.
    rt.step().unwrap().save(&one, &file).unwrap();
    let saved = SafeTensors::open(&file).unwrap();
    assert_eq!(*saved.tensor("w").unwrap().unwrap().bytes, [1.0f32, 2.0].map(f32::to_le_bytes).concat());
}

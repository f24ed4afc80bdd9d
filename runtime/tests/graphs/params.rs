//! Derived keys, and loading by tensor name.

use std::{collections::HashSet, fmt::Debug, marker::PhantomData, sync::Arc};

use graphable::{
    __private::{DeviceValue, KeyWriter, LiveIn, LiveOut},
    ConfigValue, DType, Element, Error, GraphOutput, Param, ParamVisitor, Params, Runtime, State, Tensor,
    backend::cpu::CpuOptions,
    load::{self, Loader, SafeTensors, TensorMap},
};

use crate::device;

fn runtime() -> Runtime {
    Runtime::new(device::device(CpuOptions::default())).unwrap()
}

/// Everything that a recording of `value` would be looked up by.
fn key(value: &(impl LiveIn + ?Sized)) -> String {
    let mut k = KeyWriter::default();
    value.write_key(&mut k);
    format!("{k:?}")
}

fn all_differ(keys: &[String]) {
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len(), "{keys:#?}");
}

#[derive(Clone, Debug, PartialEq, ConfigValue)]
enum Act {
    Relu,
    Leaky { slope: f32 },
    Table(Vec<f64>, Option<char>),
}

#[derive(Clone, ConfigValue)]
struct Settings<'a> {
    name: &'a str,
    act: Act,
}

#[derive(Params)]
struct Norm<T> {
    weight: Param<T>,
    bias: Option<Param<T>>,
    #[config]
    eps: f32,
}

#[derive(Params)]
struct Pair {
    first: Option<Param<f32>>,
    second: Option<Param<f32>>,
    left: Vec<Param<f32>>,
    right: Vec<Param<f32>>,
    #[config]
    act: Act,
}

#[derive(Params)]
enum Mixer<'a, T: Element, const N: usize> {
    Attention { heads: [Param<T>; N], cache: State<f32>, tied: &'a Param<T> },
    Norm(Box<Norm<T>>, #[config] Settings<'a>),
    Skip,
}

#[derive(Params)]
struct Tree<T> {
    weight: Arc<Param<T>>,
    children: Vec<Tree<T>>,
    r#type: PhantomData<T>,
}

#[derive(Params)]
struct Nothing;

#[derive(GraphOutput)]
struct Out<'t, T> {
    hidden: Tensor<'t, T>,
    layers: Vec<(Tensor<'t, T>, u32)>,
    label: String,
}

#[derive(GraphOutput)]
enum Choice<'t> {
    Some(Out<'t, f32>),
    Count { n: usize, act: Option<bool> },
    None,
}

#[derive(GraphOutput)]
struct HostOnly(usize, f32);

#[test]
fn outputs_can_enter_and_leave_segments() {
    fn check<'s, T: LiveIn + LiveOut<'s> + DeviceValue>(_: Option<T>, _: &'s Runtime) {}
    let rt = runtime();
    check(None::<Out<'_, f32>>, &rt);
    check(None::<Choice<'_>>, &rt);
    check(None::<HostOnly>, &rt);
    check(None::<Vec<Option<Out<'_, u32>>>>, &rt);
}

#[test]
fn host_outputs_are_keyed_by_value() {
    all_differ(&[key(&HostOnly(1, 2.0)), key(&HostOnly(2, 2.0)), key(&HostOnly(1, -2.0))]);
    let counts = [Some(true), Some(false), None].map(|act| key(&Choice::Count { n: 3, act }));
    all_differ(&counts);
    assert_ne!(key(&Choice::None), counts[0]);
}

#[test]
fn config_values_are_keyed_by_variant_and_value() {
    let acts = [
        Act::Relu,
        Act::Leaky { slope: 0.1 },
        Act::Leaky { slope: 0.2 },
        Act::Table(vec![], None),
        Act::Table(vec![0.0], None),
        Act::Table(vec![], Some('a')),
    ];
    all_differ(&acts.map(|a| key(&a)));
    assert_eq!(key(&Act::Leaky { slope: 0.5 }), key(&Act::Leaky { slope: 0.5 }));
}

#[test]
fn swapped_fields_have_another_key() {
    let rt = runtime();
    let p = Param::new(&rt, &[2], &[1.0f32, 2.0]).unwrap();
    let q = Param::new(&rt, &[2], &[1.0f32, 2.0]).unwrap();
    let (p, q) = (|| Some(p.clone()), || Some(q.clone()));
    let pair = |first, second, left: Vec<_>, right: Vec<_>| {
        let (left, right) = (left.into_iter().flatten().collect(), right.into_iter().flatten().collect());
        key(&Pair { first, second, left, right, act: Act::Relu })
    };
    all_differ(&[
        pair(p(), None, vec![], vec![]),
        pair(None, p(), vec![], vec![]),
        pair(None, None, vec![p()], vec![]),
        pair(None, None, vec![], vec![p()]),
        pair(p(), q(), vec![], vec![]),
        pair(q(), p(), vec![], vec![]),
        pair(None, None, vec![p(), q()], vec![p()]),
        pair(None, None, vec![p()], vec![q(), p()]),
        pair(None, None, vec![], vec![]),
    ]);
}

#[test]
fn config_fields_change_the_key() {
    let rt = runtime();
    let weight = Param::new(&rt, &[1], &[1.0f32]).unwrap();
    let norm = |eps| key(&Norm { weight: weight.clone(), bias: None, eps });
    assert_eq!(norm(1e-5), norm(1e-5));
    all_differ(&[norm(1e-5), norm(1e-6), norm(-1e-5)]);
}

#[test]
fn variants_change_the_key() {
    type M<'a> = Mixer<'a, f32, 1>;
    let rt = runtime();
    let w = Param::new(&rt, &[1], &[1.0f32]).unwrap();
    let cache = State::zeros(&rt, &[1]).unwrap();
    let norm = || Box::new(Norm { weight: w.clone(), bias: None, eps: 0.0 });
    let settings = |name, act| Settings { name, act };
    all_differ(&[
        key(&M::Skip),
        key(&M::Attention { heads: [w.clone()], cache: cache.clone(), tied: &w }),
        key(&M::Norm(norm(), settings("a", Act::Relu))),
        key(&M::Norm(norm(), settings("b", Act::Relu))),
        key(&M::Norm(norm(), settings("a", Act::Leaky { slope: 0.0 }))),
    ]);
}

#[test]
fn params_are_listed_with_their_paths() {
    let rt = runtime();
    let w = Param::new(&rt, &[2, 2], &[0u32; 4]).unwrap();
    let leaf = || Tree { weight: Arc::new(w.clone()), children: vec![], r#type: PhantomData };
    let own = Param::new(&rt, &[1], &[0u32]).unwrap();
    let tree = Tree { weight: Arc::new(own), children: vec![leaf(), leaf()], r#type: PhantomData };
    let list = ParamVisitor::list(&tree);
    let paths: Vec<_> = list.iter().map(|p| (p.path.as_str(), p.dtype, p.shape.as_slice())).collect();
    let square: &[usize] = &[2, 2];
    assert_eq!(
        paths,
        [
            ("weight", DType::U32, [1].as_slice()),
            ("children.0.weight", DType::U32, square),
            ("children.1.weight", DType::U32, square)
        ]
    );
    assert_eq!(list[1].id, list[2].id);
    // Shared memory counts once.
    assert_eq!(ParamVisitor::bytes(&tree), list[0].bytes + list[1].bytes);
    assert!(ParamVisitor::list(&Nothing).is_empty());
}

struct Config {
    hidden: usize,
    layers: usize,
    vision: Option<Vision>,
    eps: f32,
}

struct Vision {
    patch: usize,
}

#[derive(Params)]
#[params(config = Config)]
struct Model<T> {
    #[param("embed.weight", shape = [4, config.hidden])]
    embed: Param<T>,
    #[param("layers.{}", len = config.layers)]
    layers: Vec<Block<T>>,
    /// Tied to `embed` by its name.
    #[param("embed.weight", shape = [4, config.hidden])]
    head: Param<T>,
    #[param("gate", optional, shape = [1])]
    gate: Option<Param<T>>,
    #[param("vision", config = config.vision.as_ref().unwrap_or(&Vision { patch: 0 }))]
    vision: Box<Patch>,
    #[state(shape = [config.layers, 8])]
    cache: State<f32>,
    #[state(shape = [3], len = config.layers)]
    counts: Vec<State<u32>>,
}

#[derive(Params)]
#[params(config = Config)]
struct Block<T> {
    #[param(shape = [config.hidden])]
    norm: Param<T>,
    #[param("extra", optional)]
    extra: Option<Extra>,
    #[config(config.eps)]
    eps: f32,
    marker: PhantomData<T>,
}

#[derive(Params)]
#[params(config = Config)]
struct Extra {
    #[param("w.{}", len = 2, shape = [1])]
    w: Vec<Param<u32>>,
}

#[derive(Params)]
#[params(config = Vision)]
struct Patch {
    #[param("proj", shape = [config.patch])]
    proj: Param<bool>,
}

fn config() -> Config {
    Config { hidden: 2, layers: 2, vision: Some(Vision { patch: 3 }), eps: 1e-5 }
}

fn weights() -> TensorMap {
    let mut map = TensorMap::new();
    map.insert("embed.weight", &[4, 2], &[0.5f32; 8]).unwrap();
    map.insert("layers.0.norm", &[2], &[1.0f32, 2.0]).unwrap();
    map.insert("layers.1.norm", &[2], &[3.0f32, 4.0]).unwrap();
    map.insert("layers.1.extra.w.0", &[1], &[7u32]).unwrap();
    map.insert("layers.1.extra.w.1", &[1], &[8u32]).unwrap();
    map.insert("vision.proj", &[3], &[true, false, true]).unwrap();
    map
}

fn problems<T: Debug>(result: Result<T, Error>) -> Vec<String> {
    match result {
        Err(Error::Load { problems, .. }) => problems,
        other => panic!("{other:?}"),
    }
}

impl<T> Debug for Model<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Model")
    }
}

#[test]
fn a_model_loads_by_name() {
    let rt = runtime();
    let model = load::load::<Model<f32>>(&rt, &weights(), &config()).unwrap();
    assert_eq!(model.layers.len(), 2);
    assert!(model.layers[0].extra.is_none() && model.gate.is_none());
    assert_eq!(model.layers[1].extra.as_ref().unwrap().w[1].shape(), [1]);
    assert_eq!((model.layers[1].eps, model.layers[1].marker), (1e-5, PhantomData));
    assert_eq!(model.vision.proj.shape(), [3]);
    assert_eq!((model.cache.shape(), model.counts.len()), ([2, 8].as_slice(), 2));
    // One name, one parameter.
    assert_eq!(key(&model.embed), key(&model.head));
    let kinds: Vec<_> = ParamVisitor::list(&model).into_iter().map(|p| p.path).collect();
    assert_eq!(kinds.len(), 10, "{kinds:?}");
    assert!(kinds.contains(&"layers.1.extra.w.0".into()), "{kinds:?}");
}

#[test]
fn loaded_values_are_those_of_the_source() {
    let mut rt = runtime();
    let mut map = weights();
    map.insert("layers.0.norm", &[2], &[1.0f32, 1.0 + 1.0 / 512.0]).unwrap();
    let mut loader = Loader::new(&rt, &map).cast_floats(true);
    let model = load::LoadParams::load(&mut loader, &config());
    let model: Model<half::bf16> = loader.finish(model).unwrap();
    let step = rt.step().unwrap();
    let read = |p| step.read(&step.scope().view(p).unwrap()).unwrap();
    assert_eq!(read(&model.embed), [half::bf16::from_f32(0.5); 8]);
    // Halfway between two bf16: to even.
    assert_eq!(read(&model.layers[0].norm), [half::bf16::ONE; 2]);
    assert_eq!(read(&model.layers[1].norm), [3.0, 4.0].map(half::bf16::from_f32));
    let proj = step.scope().view(&model.vision.proj).unwrap();
    assert_eq!(step.read(&proj).unwrap(), [true, false, true]);
    let extra = step.scope().view(&model.layers[1].extra.as_ref().unwrap().w[1]).unwrap();
    assert_eq!(step.read(&extra).unwrap(), [8]);
}

#[test]
fn every_mismatch_is_reported_at_once() {
    let rt = runtime();
    let mut map = weights();
    map.remove("vision.proj");
    map.insert("vision.proj.weight", &[3], &[true; 3]).unwrap();
    map.insert("layers.0.norm", &[3], &[1.0f32; 3]).unwrap();
    map.insert("layers.1.norm", &[2], &[1i32; 2]).unwrap();
    map.remove("embed.weight");
    map.insert("embed.wieght", &[4, 2], &[0.5f32; 8]).unwrap();
    let found = problems(load::load::<Model<f32>>(&rt, &map, &config()));
    let expected = [
        "`embed.weight` (f32 [4, 2]) is missing; is it `embed.wieght`?",
        "`layers.0.norm` has shape [3], the model needs [2]",
        "`layers.1.norm` holds i32, the model needs f32",
        "`embed.weight` (f32 [4, 2]) is missing; is it `embed.wieght`?",
        "`vision.proj` (bool [3]) is missing",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
    }
    let error = load::load::<Model<f32>>(&rt, &map, &config()).unwrap_err().to_string();
    assert!(error.starts_with("the tensor map does not fit the model:\n  - `embed.weight`"), "{error}");
}

#[test]
fn floats_are_converted_only_on_request() {
    let rt = runtime();
    let map = weights();
    let found = problems(load::load::<Model<half::bf16>>(&rt, &map, &config()));
    assert!(
        found.iter().all(|p| p.contains("holds f32, the model needs bf16; `Loader::cast_floats(true)`")),
        "{found:#?}"
    );
    assert_eq!(found.len(), 4, "{found:#?}");

    let mut loader = Loader::new(&rt, &map).cast_floats(true);
    let model = load::LoadParams::load(&mut loader, &config());
    let model: Model<half::bf16> = loader.finish(model).unwrap();
    assert_eq!(ParamVisitor::list(&model)[0].dtype, DType::Bf16);
}

#[test]
fn a_prefix_applies_to_every_name() {
    let rt = runtime();
    let mut map = TensorMap::new();
    map.insert("model.vision.proj", &[2], &[true; 2]).unwrap();
    let loaded = |prefix: &str| {
        let mut loader = Loader::new(&rt, &map).prefix(prefix);
        let patch = loader.nested::<Patch>("vision", &Vision { patch: 2 });
        loader.finish(patch).map(|p| p.proj.shape().to_vec())
    };
    assert_eq!(loaded("model").unwrap(), [2]);
    let found = problems(loaded(""));
    assert_eq!(found, ["`vision.proj` (bool [2]) is missing; is it `model.vision.proj`?"]);
}

#[test]
fn a_loader_that_gives_up_says_so() {
    let rt = runtime();
    let map = TensorMap::new();
    assert_eq!(problems(Loader::new(&rt, &map).finish(None::<()>)).len(), 1);
    let mut loader = Loader::new(&rt, &map);
    loader.problem("the vocabulary has 3 words, the model needs 4");
    // A model does not make up for a problem.
    assert_eq!(problems(loader.finish(Some(()))), ["the vocabulary has 3 words, the model needs 4"]);
}

#[test]
fn a_file_loads_and_a_truncated_one_is_an_error() {
    let header = br#"{"proj":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header);
    bytes.extend_from_slice(&[1, 0, 1]);
    let path = std::env::temp_dir().join(format!("graphable-params-{}.safetensors", std::process::id()));

    std::fs::write(&path, &bytes).unwrap();
    let rt = runtime();
    let source = SafeTensors::open(&path).unwrap();
    assert_eq!(load::load::<Patch>(&rt, &source, &Vision { patch: 3 }).unwrap().proj.shape(), [3]);

    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let error = SafeTensors::open(&path).unwrap_err();
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(&error, Error::File { reason, .. } if reason.contains("truncated")), "{error}");
}

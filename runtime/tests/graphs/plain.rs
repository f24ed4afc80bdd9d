//! Functions without boundaries: one segment, in every mode.

#![deny(warnings, missing_docs)]

use graphable::{Event, backend::cpu::CpuOptions, prelude::*};

use crate::device;

fn runtime() -> Runtime {
    Runtime::new(device::device(CpuOptions::default().test_mode(1).threads(1))).unwrap()
}

/// Weights of one layer.
#[derive(Params)]
pub struct Layer {
    weight: Param<f32>,
    #[config]
    factor: f32,
}

/// A stack of layers.
#[derive(Params)]
pub struct Model {
    layers: Vec<Layer>,
}

/// Two tensors and a host value.
#[derive(GraphOutput)]
pub struct Pair<'s> {
    sum: Tensor<'s, f32>,
    difference: Tensor<'s, f32>,
    rows: usize,
}

fn model(rt: &Runtime) -> Model {
    let layer = |scale: f32| Layer {
        weight: Param::new(rt, &[2, 2], &[scale, 0.0, 0.0, scale]).unwrap(),
        factor: 0.5,
    };
    Model { layers: vec![layer(2.0), layer(3.0)] }
}

/// A helper and a graph in one: no attribute on its parameters.
#[graphable]
fn one_layer(x: &Tensor<f32>, layer: &Layer) -> Result<Tensor<f32>> {
    ops::scale(&ops::linear(x, &layer.weight)?, layer.factor)
}

/// Goes through all layers `times` times, and adds the offset.
#[graphable]
pub fn stack(
    #[host]
    #[dims(B, 2)]
    rows: &Tensor<f32>,
    #[host] offset: &Scalar<f32>,
    #[key] times: usize,
    model: &Model,
) -> Result<Tensor<f32>> {
    let mut h = ops::scale(rows, 1.0)?;
    for _ in 0..times {
        for layer in &model.layers {
            h = one_layer(&h, layer)?;
        }
    }
    ops::add(&h, offset)
}

fn events(rt: &Runtime) -> Vec<&'static str> {
    rt.take_events()
        .into_iter()
        .filter_map(|e| match e {
            Event::Warmed { .. } => Some("warmed"),
            Event::Recorded { .. } => Some("recorded"),
            Event::Replayed { .. } => Some("replayed"),
            Event::FellBack { .. } => Some("fell back"),
            _ => None,
        })
        .collect()
}

fn stacked(
    rt: &mut Runtime,
    graph: &StackGraph,
    rows: &[f32],
    offset: f32,
    times: usize,
    model: &Model,
) -> Vec<f32> {
    let step = rt.step().unwrap();
    let out = graph.call(&step, rows, offset, times, model).unwrap();
    assert_eq!(out.shape(), [rows.len() / 2, 2]);
    step.read(&out).unwrap()
}

#[test]
fn warms_records_and_replays() {
    for (mode, expected) in [
        (Mode::None, vec![]),
        (Mode::Piecewise, vec!["warmed", "recorded", "replayed", "replayed", "replayed"]),
        (Mode::Full, vec!["warmed", "recorded", "replayed", "replayed", "replayed"]),
    ] {
        let mut rt = runtime();
        let model = model(&rt);
        let graph = StackGraph::builder().mode(mode).build(&mut rt).unwrap();
        rt.keep_events(true);
        for i in 0..4u8 {
            let (x, offset) = (f32::from(i), f32::from(i) * 10.0);
            // Each layer multiplies by scale * factor: 2 * 0.5 * 3 * 0.5.
            let expected: Vec<f32> = [x, 2.0, 3.0, 4.0].iter().map(|v| v * 1.5 + offset).collect();
            assert_eq!(stacked(&mut rt, &graph, &[x, 2.0, 3.0, 4.0], offset, 1, &model), expected, "{mode}");
        }
        let events = events(&rt);
        assert!(!events.contains(&"fell back"), "{mode}: {events:?}");
        let count = |what| events.iter().filter(|e| **e == what).count();
        let wanted = |what| expected.iter().filter(|e| **e == what).count();
        assert_eq!(count("warmed"), wanted("warmed"), "{mode}: {events:?}");
        assert_eq!(count("recorded"), wanted("recorded"), "{mode}: {events:?}");
        if mode != Mode::None {
            assert_eq!(events[..2], ["warmed", "recorded"], "{mode}");
            assert!(count("replayed") >= 2, "{mode}: {events:?}");
        } else {
            assert!(events.is_empty(), "{events:?}");
        }
        let before = rt.stats().recordings;
        for _ in 0..3 {
            stacked(&mut rt, &graph, &[1.0, 1.0, 1.0, 1.0], 0.0, 1, &model);
        }
        assert_eq!(rt.stats().recordings, before, "{mode}: a known call records nothing");
    }
}

#[test]
fn a_key_selects_its_recording() {
    let mut rt = runtime();
    let model = model(&rt);
    let graph = StackGraph::builder().build(&mut rt).unwrap();
    for _ in 0..3 {
        for (times, factor) in [(0, 1.0), (1, 1.5), (2, 2.25)] {
            assert_eq!(
                stacked(&mut rt, &graph, &[2.0, 4.0], 1.0, times, &model),
                [2.0 * factor + 1.0, 4.0 * factor + 1.0]
            );
        }
    }
    let recordings = rt.stats().recordings;
    assert!(recordings >= 3, "{recordings}");
    stacked(&mut rt, &graph, &[2.0, 4.0], 1.0, 2, &model);
    assert_eq!(rt.stats().recordings, recordings);
}

#[test]
fn parameters_are_part_of_the_key() {
    let mut rt = runtime();
    let (first, mut second) = (model(&rt), model(&rt));
    second.layers[0].factor = 1.0;
    let graph = StackGraph::builder().build(&mut rt).unwrap();
    for _ in 0..3 {
        assert_eq!(stacked(&mut rt, &graph, &[2.0, 4.0], 0.0, 1, &first), [3.0, 6.0]);
        assert_eq!(stacked(&mut rt, &graph, &[2.0, 4.0], 0.0, 1, &second), [6.0, 12.0]);
    }
}

#[test]
fn buckets_pad_and_slice_back() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let model = model(&rt);
        let graph =
            StackGraph::builder().mode(mode).bucket("B", Schedule::new([2, 4])).build(&mut rt).unwrap();
        let mut seen = Vec::new();
        graph
            .capture_all_with(&mut rt, 1, &model, |p| seen.push((p.done, p.total, p.sizes.to_vec())))
            .unwrap();
        assert_eq!(seen, [(0, 2, vec![4]), (1, 2, vec![2]), (2, 2, vec![])], "{mode}");
        let recordings = rt.stats().recordings;
        assert!(recordings >= 2);
        for n in [1usize, 3, 2, 4, 3] {
            let rows: Vec<f32> = (0..n as u8 * 2).map(f32::from).collect();
            let expected: Vec<f32> = rows.iter().map(|v| v * 1.5 + 7.0).collect();
            assert_eq!(stacked(&mut rt, &graph, &rows, 7.0, 1, &model), expected, "{mode}, {n} rows");
        }
        assert_eq!(rt.stats().recordings, recordings, "{mode}: capture_all left nothing to record");
        // Above the largest bucket it runs without a graph, and says so.
        let rows = vec![1.0; 12];
        assert_eq!(stacked(&mut rt, &graph, &rows, 0.0, 1, &model), vec![1.5; 12]);
        assert_eq!(rt.stats().fallbacks, 1);
    }
}

#[test]
fn the_plan_is_printed() {
    let plan = StackGraph::PLAN.to_string();
    assert!(plan.starts_with("stack (runtime/tests/graphs/plain.rs): 1 segment, 0 boundaries"), "{plan}");
    assert!(plan.contains("#0 segment   lines "), "{plan}");
    assert!(plan.contains("rows, offset, times, model -> the result"), "{plan}");
    let site = StackGraph::PLAN.items[0].site();
    assert_eq!((site.function, site.index), ("stack", 0));
    assert!(site.first_line > 1 && site.last_line >= site.first_line);
}

#[test]
fn wrong_inputs_are_typed_errors() {
    let mut rt = runtime();
    let model = model(&rt);
    let graph = StackGraph::builder().build(&mut rt).unwrap();
    let step = rt.step().unwrap();
    let error = graph.call(&step, &[1.0, 2.0, 3.0], 0.0, 1, &model).unwrap_err();
    assert!(error.to_string().contains("rows"), "{error}");
    let shape: &[usize] = &[1, 3];
    let error = graph.call(&step, (&[1.0f32, 2.0, 3.0][..], shape), 0.0, 1, &model).unwrap_err();
    assert!(error.to_string().contains("#[dims]"), "{error}");
    let error = StackGraph::builder().bucket("C", Schedule::default()).build(&mut rt).unwrap_err();
    assert!(error.to_string().contains("it has B"), "{error}");
}

/// Device inputs, a generic element, a symbol that two inputs share, a tuple.
#[graphable]
pub fn products<T: Float>(
    #[dims(N, 2)] a: &Tensor<T>,
    #[dims(N, {WIDTH})] b: &Tensor<T>,
) -> Result<(Tensor<T>, Vec<Tensor<T>>)> {
    let product = ops::mul(a, b)?;
    Ok((ops::add(&product, a)?, vec![product, ops::sub(a, b)?]))
}

const WIDTH: usize = 2;

fn check_products<T: Float>(mode: Mode, bucketed: bool) {
    let mut rt = runtime();
    let mut builder = ProductsGraph::<T>::builder().mode(mode);
    if bucketed {
        builder = builder.bucket("N", Schedule::new([4]));
    }
    let graph = builder.build(&mut rt).unwrap();
    let t = |v: f64| T::from_f64(v);
    for i in 0..4 {
        let step = rt.step().unwrap();
        let x = f64::from(i);
        let a = step.tensor([2, 2], &[t(x), t(2.0), t(3.0), t(4.0)]).unwrap();
        let b = step.tensor([2, 2], &[t(2.0), t(2.0), t(0.5), t(x)]).unwrap();
        let (sum, rest) = graph.call(&step, &a, &b).unwrap();
        assert_eq!(step.read(&sum).unwrap(), [t(3.0 * x), t(6.0), t(4.5), t(4.0 * x + 4.0)]);
        assert_eq!(step.read(&rest[0]).unwrap(), [t(2.0 * x), t(4.0), t(1.5), t(4.0 * x)]);
        assert_eq!(rest[1].shape(), [2, 2]);
        assert_eq!(step.read(&rest[1]).unwrap(), [t(x - 2.0), t(0.0), t(2.5), t(4.0 - x)]);
    }
}

#[test]
fn generic_functions_and_device_inputs() {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        for bucketed in [false, true] {
            check_products::<f32>(mode, bucketed);
            check_products::<f16>(mode, bucketed);
        }
    }
}

#[test]
fn inputs_must_agree_about_a_symbol() {
    let mut rt = runtime();
    let graph = ProductsGraph::<f32>::builder().build(&mut rt).unwrap();
    let step = rt.step().unwrap();
    let a = step.tensor([2, 2], &[0.0; 4]).unwrap();
    let b = step.tensor([1, 2], &[0.0; 2]).unwrap();
    let error = graph.call(&step, &a, &b).unwrap_err().to_string();
    assert!(error.contains('N') && error.contains("`a`") && error.contains("`b`"), "{error}");
}

/// A struct of tensors comes out.
#[graphable]
pub fn pair(#[host] a: &Tensor<f32>, #[host] b: &Tensor<f32>) -> Result<Pair<'_>> {
    Ok(Pair { sum: ops::add(a, b)?, difference: ops::sub(a, b)?, rows: a.dim(0).get()? })
}

/// Takes what another function returned.
#[graphable]
pub fn unpair(#[host] factor: &Scalar<f32>, pair: &Pair<'_>) -> Result<Tensor<f32>> {
    ops::mul(&ops::add(&pair.sum, &pair.difference)?, factor)
}

#[test]
fn structs_leave_and_enter() {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let graph = PairGraph::builder().mode(mode).build(&mut rt).unwrap();
        let back = UnpairGraph::builder().mode(mode).build(&mut rt).unwrap();
        for i in 0..5u8 {
            let x = f32::from(i);
            let step = rt.step().unwrap();
            let pair = graph.call(&step, &[x, 5.0], &vec![1.0, 2.0]).unwrap();
            assert_eq!(pair.rows, 2);
            assert_eq!(step.read(&pair.sum).unwrap(), [x + 1.0, 7.0], "{mode}");
            let twice = back.call(&step, 3.0, &pair).unwrap();
            assert_eq!(step.read(&pair.difference).unwrap(), [x - 1.0, 3.0], "{mode}");
            assert_eq!(step.read(&twice).unwrap(), [6.0 * x, 30.0], "{mode}");
        }
        let recordings = rt.stats().recordings;
        let step = rt.step().unwrap();
        let pair = graph.call(&step, &[0.0, 0.0], &[0.0, 0.0]).unwrap();
        back.call(&step, 1.0, &pair).unwrap();
        assert_eq!(step.stats().recordings, recordings, "{mode}");
    }
}

#[test]
fn a_helper_is_a_graph_too() {
    let mut rt = runtime();
    let model = model(&rt);
    let graph = OneLayerGraph::builder().build(&mut rt).unwrap();
    for _ in 0..3 {
        let step = rt.step().unwrap();
        let x = step.tensor([1, 2], &[1.0, 2.0]).unwrap();
        let out = graph.call(&step, &x, &model.layers[1]).unwrap();
        assert_eq!(step.read(&out).unwrap(), [1.5, 3.0]);
    }
    assert_eq!(OneLayerGraph::PLAN.segments(), 1);
}

/// Settings that no graph can have in its key.
pub struct Settings {
    /// A factor.
    pub factor: std::cell::Cell<f32>,
}

/// Not a graph: what it takes cannot be part of a key. Fine as long as nobody calls it as one.
#[graphable]
pub fn with_settings(x: &Tensor<f32>, settings: &Settings) -> Result<Tensor<f32>> {
    ops::scale(x, settings.factor.get())
}

/// Not a graph: a plain host value and a closure.
#[graphable]
pub fn repeated(
    x: &Tensor<f32>,
    n: usize,
    each: impl Fn(&Tensor<f32>) -> Result<Tensor<f32>>,
) -> Result<Tensor<f32>> {
    let again = |t: &Tensor<f32>| -> Result<Tensor<f32>> { each(t) };
    let mut x = x.clone();
    for _ in 0..n {
        x = again(&x)?;
    }
    Ok(x)
}

/// Made of nothing but a scope.
#[graphable(helper)]
pub fn ones(scope: Scope, n: usize) -> Result<Tensor<f32>> {
    ops::full(scope, [n], 1.0)
}

/// What layers have in common.
#[graphable]
pub trait Forward {
    /// The layer's output.
    fn forward(&self, x: &Tensor<f32>) -> Result<Tensor<f32>>;
    /// Twice that.
    fn twice(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        self.forward(&self.forward(x)?)
    }
}

#[graphable]
impl Forward for Layer {
    fn forward(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        one_layer(x, self)
    }
}

#[graphable]
impl Model {
    /// A plain method.
    fn first(&self) -> &Layer {
        &self.layers[0]
    }

    /// A method over tensors, called by another one.
    pub fn all(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let mut x = x.clone();
        for layer in &self.layers {
            x = layer.forward(&x)?;
        }
        Ok(x)
    }

    /// A graph.
    pub fn run(
        &self,
        #[host]
        #[dims(B, 2)]
        x: &Tensor<f32>,
        #[key] again: bool,
    ) -> Result<Tensor<f32>> {
        let x = self.all(x)?;
        if again { self.first().twice(&x) } else { Ok(x) }
    }
}

#[test]
fn helpers_traits_and_methods() {
    let mut rt = runtime();
    let model = model(&rt);
    let graph = ModelRunGraph::builder().bucket("B", Schedule::new([1, 2])).build(&mut rt).unwrap();
    graph.capture_all(&mut rt, &model, true).unwrap();
    let recordings = rt.stats().recordings;
    for _ in 0..3 {
        let step = rt.step().unwrap();
        let out = graph.call(&step, &model, &[2.0, 4.0], true).unwrap();
        assert_eq!(step.read(&out).unwrap(), [3.0, 6.0]);
    }
    assert_eq!(rt.stats().recordings, recordings);
    assert!(ModelRunGraph::PLAN.to_string().starts_with("Model::run"));

    let step = rt.step().unwrap();
    let one = ones(step.scope(), 2).unwrap();
    let settings = Settings { factor: std::cell::Cell::new(3.0) };
    let out = repeated(&one, 2, |t| with_settings(t, &settings)).unwrap();
    assert_eq!(step.read(&out).unwrap(), [9.0, 9.0]);
}

/// A const parameter is a dimension.
#[graphable]
pub fn sized<const N: usize>(
    #[host]
    #[dims(B, N)]
    x: &Tensor<f32>,
    #[host] by: &Scalar<f32>,
) -> Result<[Tensor<f32>; 2]> {
    let x = ops::mul(x, by)?;
    Ok([ops::scale(&x, N as f32)?, x])
}

#[test]
fn two_instances_do_not_share_recordings() {
    let mut rt = runtime();
    let two = SizedGraph::<2>::builder().build(&mut rt).unwrap();
    let three = SizedGraph::<3>::builder().build(&mut rt).unwrap();
    for _ in 0..3 {
        let step = rt.step().unwrap();
        let [a, _] = two.call(&step, &[1.0; 6], 1.0).unwrap();
        let [b, _] = three.call(&step, &[1.0; 6], 2.0).unwrap();
        assert_eq!(a.shape(), [3, 2]);
        assert_eq!(b.shape(), [2, 3]);
        assert_eq!(step.read(&a).unwrap(), [2.0; 6]);
        assert_eq!(step.read(&b).unwrap(), [6.0; 6]);
    }
}

#[graphable]
fn first_of(#[host] x: &Tensor<f32>, y: &Tensor<f32>) -> Result<(Tensor<f32>, Tensor<f32>)> {
    Ok((x.clone(), ops::neg(y)?))
}

/// A host input that is returned is a tensor like any other: another call may read it, and it stays.
#[test]
fn a_returned_input_passed_on() {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let graph = FirstOfGraph::builder().mode(mode).build(&mut rt).unwrap();
        for _ in 0..4 {
            let step = rt.step().unwrap();
            let y = step.tensor([2], &[5.0, 6.0]).unwrap();
            let (x, _) = graph.call(&step, &[1.0f32, 2.0], &y).unwrap();
            let (_, minus) = graph.call(&step, &[3.0f32, 4.0], &x).unwrap();
            assert_eq!(step.read(&minus).unwrap(), [-1.0, -2.0]);
            assert_eq!(step.read(&x).unwrap(), [1.0, 2.0], "{mode:?}");
        }
    }
}

//! The small models of the examples, each as one graph in every mode, with and without buckets: their results are those of PyTorch,
//! and the same bits in all of these ways.

use std::collections::HashMap;

use graphable::{
    GraphBuilder, Mode, Numerics, Result, Runtime, Schedule, Step, Tensor,
    load::{self, LoadParams},
};

use crate::{
    device::gpu,
    fixtures::{Fixture, values},
    harness::{assert_close, device},
    reference::Array,
    small::{
        gemma::{Gemma, GemmaGraph},
        gru::{Gru, RecallGraph},
        mistral::{self, AttendGraph},
        mixture::{Mixture, MixtureGraph},
        t5,
        unet::{UNet, UnetGraph},
        vit::{Vit, VitGraph},
        whisper,
    },
};

/// The bound of `docs/ACCURACY.md` for models, in units of `assert_close`; the cell alone has that of its operation.
const BOUND: f64 = 30.0;
const BOUND_OF_A_CELL: f64 = 10.0;

const MODES: [Mode; 3] = [Mode::None, Mode::Piecewise, Mode::Full];

/// The modes, and whether sizes are padded to those of a bucket.
const WAYS: [(Mode, bool); 5] = [
    (Mode::None, false),
    (Mode::Piecewise, false),
    (Mode::Full, false),
    (Mode::Piecewise, true),
    (Mode::Full, true),
];

fn fixture(case: &str) -> Fixture {
    const FILES: &str =
        concat!(include_str!("fixtures/models.txt"), include_str!("fixtures/transformers.txt"));
    Fixture::new(FILES, case)
}

/// The bits of results, by case: the same in every mode, with padding and without. With more rows or keys, products and
/// attention may add in another order. On the CPU, buckets are of sizes for which they do not, but for models that are `apart`; on
/// a GPU, the library chooses by the size, so results are compared for one size alone.
#[derive(Default)]
struct Known {
    apart: bool,
    bits: HashMap<(usize, bool), Vec<u32>>,
}

impl Known {
    /// Compares result number `i` with that of the other ways.
    fn check(&mut self, step: &Step<'_>, y: &Tensor<'_, f32>, i: usize, (mode, padded): (Mode, bool)) {
        let bits: Vec<u32> = step.read(y).unwrap().iter().map(|v| v.to_bits()).collect();
        let key = (i, padded && (self.apart || gpu().is_some()));
        assert_eq!(*self.bits.entry(key).or_insert_with(|| bits.clone()), bits, "{mode:?}, padded: {padded}");
    }
}

/// A runtime whose results do not depend on which algorithm of a GPU's library was measured to be the fastest: each adds in an
/// order of its own.
fn runtime() -> Runtime {
    let rt = Runtime::new(device()).unwrap();
    rt.set_numerics(Numerics::default().deterministic(true));
    rt
}

/// Asserts that `shapes` shapes were one recording each, or none without graphs, and that nothing fell back.
fn assert_recordings(rt: &Runtime, mode: Mode, shapes: usize) {
    let recordings = if mode == Mode::None { 0 } else { shapes as u64 };
    assert_eq!((rt.stats().recordings, rt.stats().fallbacks), (recordings, 0), "{mode:?}");
}

/// A model, and how it is tested: in the mode of a [`WAYS`], one graph for each shape, and for each bucket.
struct Model<'a, G> {
    builder: fn() -> GraphBuilder<G>,
    /// Each symbol, and the one size of its bucket.
    buckets: &'a [(&'static str, usize)],
    apart: bool,
    /// The first has the weights.
    cases: &'a [&'a str],
}

impl<G> Model<'_, G> {
    fn build(&self, rt: &mut Runtime, (mode, padded): (Mode, bool)) -> G {
        let buckets = self.buckets.iter().filter(|_| padded);
        let builder = buckets.fold((self.builder)().mode(mode), |builder, &(symbol, size)| {
            builder.bucket(symbol, Schedule::new([size]))
        });
        builder.build(rt).unwrap()
    }

    /// Calls it on the inputs of all cases in turn.
    fn check<W: LoadParams<Config = ()>>(
        &self,
        call: impl for<'s> Fn(&G, &Step<'s>, &Fixture, &W) -> Result<Tensor<'s, f32>>,
    ) {
        let cases: Vec<Fixture> = self.cases.iter().map(|case| fixture(case)).collect();
        let mut known = Known { apart: self.apart, ..Known::default() };
        for way in WAYS {
            let mut rt = runtime();
            let weights: W = load::load(&rt, &cases[0].weights(), &()).unwrap();
            let graph = self.build(&mut rt, way);
            for _ in 0..3 {
                for (i, case) in cases.iter().enumerate() {
                    let step = rt.step().unwrap();
                    let y = call(&graph, &step, case, &weights).unwrap();
                    assert_close(&step, &y, case.array("y0"), BOUND);
                    known.check(&step, &y, i, way);
                }
            }
            assert_recordings(&rt, way.0, if way.1 { 1 } else { cases.len() });
        }
    }
}

#[test]
fn a_vision_transformer() {
    let model = Model { builder: VitGraph::builder, buckets: &[("N", 3)], apart: false, cases: &["vit"] };
    model.check(|graph, step, case, weights: &Vit| graph.call(step, &values(case), weights));
}

#[test]
fn a_block_of_a_unet() {
    let model = Model { builder: UnetGraph::builder, buckets: &[("N", 3)], apart: true, cases: &["unet"] };
    model.check(|graph, step, case, weights: &UNet| graph.call(step, &values(case), weights));
}

/// Both sequences have routes of their own, and in one bucket the same recording.
#[test]
fn a_layer_with_a_mixture_of_experts() {
    let cases = &["moe0", "moe1"];
    let model = Model { builder: MixtureGraph::builder, buckets: &[("T", 8)], apart: false, cases };
    model.check(|graph, step, case, weights: &Mixture| graph.call(step, &values(case), weights));
}

#[test]
fn a_layer_with_a_bias_for_each_distance() {
    let cases = &["t5_0", "t5_1"];
    let model = Model { builder: t5::EncodeGraph::builder, buckets: &[("T", 24)], apart: false, cases };
    model.check(|graph, step, case, weights: &t5::Encoder| graph.call(step, &values(case), weights));
}

#[test]
fn attention_in_a_sliding_window() {
    let cases = &["mistral0", "mistral1"];
    let model = Model { builder: AttendGraph::builder, buckets: &[("T", 12)], apart: true, cases };
    model.check(|graph, step, case, weights: &mistral::Attention| graph.call(step, &values(case), weights));
}

#[test]
fn norms_by_one_plus_a_weight_and_soft_caps() {
    let cases = &["gemma0", "gemma1"];
    let model = Model { builder: GemmaGraph::builder, buckets: &[("T", 12)], apart: true, cases };
    model.check(|graph, step, case, weights: &Gemma| {
        let ids: Vec<u32> = values(case).into_iter().map(|v| v as u32).collect();
        graph.call(step, &ids, weights)
    });
}

/// Sound and the states of it: a place for each two frames.
const SOUND: Model<'static, whisper::EncodeGraph> = Model {
    builder: whisper::EncodeGraph::builder,
    buckets: &[("T", 12), ("L", 6)],
    apart: false,
    cases: &["encoder"],
};

fn places(frames: usize) -> Vec<u32> {
    (0..frames.div_ceil(2) as u32).collect()
}

#[test]
fn an_encoder_of_sound() {
    SOUND.check(|graph, step, case, weights: &whisper::Encoder| {
        graph.call(step, &values(case), &places(10), weights)
    });
}

/// What the padding holds does not enter the windows of a convolution, whether or not the last of them is whole.
#[test]
fn an_encoder_of_sound_of_any_length() {
    let (case, mut known) = (fixture("encoder"), Known::default());
    let mut plain: HashMap<usize, Array> = HashMap::new();
    for padded in [false, true] {
        let mut rt = runtime();
        let weights: whisper::Encoder = load::load(&rt, &case.weights(), &()).unwrap();
        let graph = SOUND.build(&mut rt, (Mode::Full, padded));
        let lengths = [10, 1, 7, 4, 2, 9];
        for frames in lengths.repeat(3) {
            let x: Vec<f32> = values(&case).chunks(10).flat_map(|row| row[..frames].to_vec()).collect();
            let step = rt.step().unwrap();
            let y = graph.call(&step, &x, &places(frames), &weights).unwrap();
            let want = plain.entry(frames).or_insert_with(|| Array {
                shape: vec![frames.div_ceil(2), 6],
                data: step.read(&y).unwrap().iter().map(|&v| f64::from(v)).collect(),
            });
            assert_close(&step, &y, want, BOUND);
            known.check(&step, &y, frames, (Mode::Full, padded));
        }
        assert_recordings(&rt, Mode::Full, if padded { 1 } else { lengths.len() });
    }
}

#[test]
fn a_gru_over_a_sequence() {
    let case = fixture("gru");
    let mut known = Known::default();
    for mode in MODES {
        let mut rt = runtime();
        let weights: Gru = load::load(&rt, &case.weights(), &()).unwrap();
        let graph = RecallGraph::builder().mode(mode).build(&mut rt).unwrap();
        let want = case.array("y0");
        for (i, x) in values(&case).chunks(3).enumerate() {
            let step = rt.step().unwrap();
            let y = graph.call(&step, x, &weights).unwrap();
            let want = Array::from_fn(&[1, 4], |index| want.data[i * 4 + index[1]]);
            assert_close(&step, &y, &want, BOUND_OF_A_CELL);
            known.check(&step, &y, i, (mode, false));
        }
        // One graph for every step.
        assert_recordings(&rt, mode, 1);
    }
}

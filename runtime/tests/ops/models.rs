//! Small models with convolutions and recurrent cells, as one graph in every mode: their results are those of PyTorch.

use graphable::{
    Mode, Param, Params, Result, Runtime, State, Tensor, graphable,
    ops::{self, AttentionMask, ConvConfig, ConvTransposeConfig, MaxPoolConfig},
};

use crate::{
    fixtures::{Fixture, param, values},
    harness::{assert_close, device},
};

const MODES: [Mode; 3] = [Mode::None, Mode::Piecewise, Mode::Full];

fn fixture(case: &str) -> Fixture {
    Fixture::new(include_str!("fixtures/models.txt"), case)
}

#[derive(Params)]
struct UNet {
    stem: Param<f32>,
    stem_bias: Param<f32>,
    scale: Param<f32>,
    shift: Param<f32>,
    low: Param<f32>,
    low_bias: Param<f32>,
    up: Param<f32>,
    up_bias: Param<f32>,
    last: Param<f32>,
    last_bias: Param<f32>,
}

/// Down, through the bottom, up again, beside what came in.
#[graphable]
fn unet(
    #[host]
    #[dims(N, 2, 8, 8)]
    x: &Tensor<f32>,
    model: &UNet,
) -> Result<Tensor<f32>> {
    let same = ConvConfig::new().padding(1);
    let h = ops::conv2d_bias(x, &model.stem, &model.stem_bias, same)?;
    let h = ops::silu(&ops::group_norm(&h, 2, &model.scale, &model.shift, 1e-5)?)?;
    let low = ops::max_pool2d(&h, MaxPoolConfig::new(2))?;
    let low = ops::relu(&ops::conv2d_bias(&low, &model.low, &model.low_bias, same)?)?;
    let up = ConvTransposeConfig::new().stride(2);
    let up = ops::conv_transpose2d_bias(&low, &model.up, &model.up_bias, up)?;
    ops::conv2d_bias(&ops::concat(&[&h, &up], 1)?, &model.last, &model.last_bias, same)
}

#[test]
fn a_block_of_a_unet() {
    let case = fixture("unet");
    let mut rt = Runtime::new(device()).unwrap();
    let of = |name| param(&rt, &case, name);
    let model = UNet {
        stem: of("stem"),
        stem_bias: of("stem_b"),
        scale: of("scale"),
        shift: of("shift"),
        low: of("low"),
        low_bias: of("low_b"),
        up: of("up"),
        up_bias: of("up_b"),
        last: of("last"),
        last_bias: of("last_b"),
    };
    for mode in MODES {
        // Both images of the case, in a bucket of three.
        let bucket = graphable::Schedule::new([3]);
        let graph = UnetGraph::builder().bucket("N", bucket).mode(mode).build(&mut rt).unwrap();
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &values(&case), &model).unwrap();
            assert_close(&step, &y, case.array("y0"), 30.0);
        }
    }
}

#[derive(Params)]
struct Encoder {
    first: Param<f32>,
    first_bias: Param<f32>,
    second: Param<f32>,
    second_bias: Param<f32>,
    places: Param<f32>,
    scale: Param<f32>,
    shift: Param<f32>,
    q: Param<f32>,
    k: Param<f32>,
    v: Param<f32>,
    o: Param<f32>,
}

/// The stem of Whisper's encoder and the first half of a layer: ten frames of four features become five of six.
#[graphable]
fn encode(
    #[host]
    #[dims(1, 4, 10)]
    x: &Tensor<f32>,
    model: &Encoder,
) -> Result<Tensor<f32>> {
    let same = ConvConfig::new().padding(1);
    let h = ops::gelu(&ops::conv1d_bias(x, &model.first, &model.first_bias, same)?)?;
    let h = ops::gelu(&ops::conv1d_bias(&h, &model.second, &model.second_bias, same.stride(2))?)?;
    let h = ops::add(&ops::transpose(&h, 1, 2)?, &model.places)?;
    let n = ops::layer_norm(&h, &model.scale, &model.shift, 1e-5)?;
    let heads = |weight: &Param<f32>| ops::reshape(&ops::linear(&n, weight)?, [1, 5, 2, 3]);
    let (q, k, v) = (heads(&model.q)?, heads(&model.k)?, heads(&model.v)?);
    let a = ops::attention(&q, &k, &v, AttentionMask::None, 3f32.sqrt().recip())?;
    ops::add(&h, &ops::linear(&ops::reshape(&a, [1, 5, 6])?, &model.o)?)
}

#[test]
fn an_encoder_of_sound() {
    let case = fixture("encoder");
    let mut rt = Runtime::new(device()).unwrap();
    let of = |name| param(&rt, &case, name);
    let model = Encoder {
        first: of("first"),
        first_bias: of("first_b"),
        second: of("second"),
        second_bias: of("second_b"),
        places: of("places"),
        scale: of("scale"),
        shift: of("shift"),
        q: of("q"),
        k: of("k"),
        v: of("v"),
        o: of("o"),
    };
    for mode in MODES {
        let graph = EncodeGraph::builder().mode(mode).build(&mut rt).unwrap();
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &values(&case), &model).unwrap();
            assert_close(&step, &y, case.array("y0"), 30.0);
        }
    }
}

#[derive(Params)]
struct Gru {
    w_ih: Param<f32>,
    w_hh: Param<f32>,
    b_ih: Param<f32>,
    b_hh: Param<f32>,
    h: State<f32>,
}

/// One step of a sequence; the device remembers.
#[graphable]
fn recall(
    #[host]
    #[dims(1, 3)]
    x: &Tensor<f32>,
    model: &Gru,
) -> Result<Tensor<f32>> {
    let h = ops::gru_cell(x, &model.h, &model.w_ih, &model.w_hh, &model.b_ih, &model.b_hh)?;
    ops::store(&model.h, &h)?;
    Ok(h)
}

#[test]
fn a_gru_over_a_sequence() {
    let case = fixture("gru");
    for mode in MODES {
        let mut rt = Runtime::new(device()).unwrap();
        let of = |name| param(&rt, &case, name);
        let h = State::zeros(&rt, &[1, 4]).unwrap();
        let model = Gru { w_ih: of("w_ih"), w_hh: of("w_hh"), b_ih: of("b_ih"), b_hh: of("b_hh"), h };
        let graph = RecallGraph::builder().mode(mode).build(&mut rt).unwrap();
        let want = case.array("y0");
        for (i, x) in values(&case).chunks(3).enumerate() {
            let step = rt.step().unwrap();
            let y = graph.call(&step, x, &model).unwrap();
            let want = crate::reference::Array::from_fn(&[1, 4], |index| want.data[i * 4 + index[1]]);
            assert_close(&step, &y, &want, 10.0);
        }
        let recordings = u64::from(mode != Mode::None);
        assert_eq!(
            (rt.stats().recordings, rt.stats().fallbacks),
            (recordings, 0),
            "one graph for every step"
        );
    }
}

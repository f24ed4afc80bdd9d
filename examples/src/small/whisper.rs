//! The stem of Whisper's encoder ("Robust Speech Recognition via Large-Scale Weak Supervision", Radford et al., 2022) and the
//! attention of its first layer: two convolutions over frames of sound, of which the second halves their number, places that are
//! added, and attention to all frames but the padding.

use graphable::{
    ops::{AttentionMask, ConvConfig},
    prelude::*,
};

/// All weights.
#[derive(Params)]
#[params(config = ())]
pub struct Encoder {
    #[param("first.weight", shape = [6, 4, 3])]
    first: Param<f32>,
    #[param("first.bias", shape = [6])]
    first_bias: Param<f32>,
    #[param("second.weight", shape = [6, 6, 3])]
    second: Param<f32>,
    #[param("second.bias", shape = [6])]
    second_bias: Param<f32>,
    #[param(shape = [5, 6])]
    places: Param<f32>,
    #[param(shape = [6])]
    scale: Param<f32>,
    #[param(shape = [6])]
    shift: Param<f32>,
    #[param(shape = [6, 6])]
    q: Param<f32>,
    #[param(shape = [6, 6])]
    k: Param<f32>,
    #[param(shape = [6, 6])]
    v: Param<f32>,
    #[param(shape = [6, 6])]
    o: Param<f32>,
}

/// The windows of a convolution with a stride of 2: channel `c` of the three frames around each second one, and zeros around
/// the real frames.
#[kernel(index)]
fn windows(x: View<f32, 3>, [i, c, k]: [i32; 3]) -> f32 {
    x.at_or([0, c, 2 * i + k - 1], 0.0)
}

/// `[1, 6, T]` to `[L, 6]`. What `ops::conv1d` computes with a stride of 2, which it refuses where `T` has buckets: how long the
/// result is would depend on `T` in a way that no symbol says. Here the result is as long as `places`.
#[graphable]
fn halve(h: &Tensor<f32>, places: &Tensor<u32>, model: &Encoder) -> Result<Tensor<f32>> {
    let length = places.dim(0);
    let windows = ops::reshape(&windows(h, (length, 6, 3))?, (length, 18))?;
    let weight = ops::reshape(&h.scope().view(&model.second)?, [6, 18])?;
    ops::linear_bias(&windows, &weight, &model.second_bias)
}

/// States `[L, 6]` of `T` frames of four features, `[1, 4, T]`. `places` are 0, 1 and so on, one for each two frames, and one for
/// a last frame alone: `L` is half of `T`, rounded up. Both may have buckets.
#[graphable]
pub fn encode(
    #[host]
    #[dims(1, 4, T)]
    frames: &Tensor<f32>,
    #[host]
    #[dims(L)]
    places: &Tensor<u32>,
    model: &Encoder,
) -> Result<Tensor<f32>> {
    let length = places.dim(0);
    let same = ConvConfig::new().padding(1);
    let h = ops::gelu(&ops::conv1d_bias(frames, &model.first, &model.first_bias, same)?)?;
    let h = ops::gelu(&halve(&h, places, model)?)?;
    let h = ops::add(&h, &ops::embedding(places, &model.places)?)?;
    let n = ops::layer_norm(&h, &model.scale, &model.shift, 1e-5)?;
    let heads = |weight: &Param<f32>| ops::reshape(&ops::linear(&n, weight)?, (length, 2, 3));
    let (q, k, v) = (heads(&model.q)?, heads(&model.k)?, heads(&model.v)?);
    let real = ops::size(places, 0)?;
    let a = ops::attention(&q, &k, &v, AttentionMask::Lengths(&real), 3f32.sqrt().recip())?;
    ops::add(&h, &ops::linear(&ops::reshape(&a, (length, 6))?, &model.o)?)
}

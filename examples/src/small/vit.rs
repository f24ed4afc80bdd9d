//! A vision transformer ("An Image is Worth 16x16 Words", Dosovitskiy et al., 2020) with two layers, for images of 8 x 8 pixels:
//! a convolution whose stride is its window, attention without a mask, layer norms before each part.

use graphable::{
    ops::{AttentionMask, ConvConfig},
    prelude::*,
};

/// A weight of the shape that is its configuration, and a bias of the first size of it.
#[derive(Params)]
#[params(config = Vec<usize>)]
struct Affine {
    #[param("weight", shape = config[..])]
    weight: Param<f32>,
    #[param("bias", shape = [config[0]])]
    bias: Param<f32>,
}

/// What makes tokens of an image.
#[derive(Params)]
#[params(config = ())]
struct Patches {
    #[param("patch.weight", shape = [8, 3, 4, 4])]
    weight: Param<f32>,
    #[param("patch.bias", shape = [8])]
    bias: Param<f32>,
    #[param("class", shape = [1, 1, 8])]
    class: Param<f32>,
    #[param("places", shape = [5, 8])]
    places: Param<f32>,
}

/// Weights of a layer.
#[derive(Params)]
#[params(config = ())]
struct Layer {
    #[param("norm1", config = &vec![8])]
    norm1: Affine,
    #[param("qkv", config = &vec![24, 8])]
    qkv: Affine,
    #[param("out", config = &vec![8, 8])]
    out: Affine,
    #[param("norm2", config = &vec![8])]
    norm2: Affine,
    #[param("up", config = &vec![16, 8])]
    up: Affine,
    #[param("down", config = &vec![8, 16])]
    down: Affine,
}

/// All weights.
#[derive(Params)]
#[params(config = ())]
pub struct Vit {
    #[param("embed")]
    patches: Patches,
    #[param("layers.{}", len = 2)]
    layers: Vec<Layer>,
    #[param("norm", config = &vec![8])]
    norm: Affine,
    #[param("head", config = &vec![3, 8])]
    head: Affine,
}

/// Images `[N, 3, 8, 8]` as tokens `[N, 5, 8]`: one for the class, and one for each patch of 4 x 4 pixels.
#[graphable]
fn tokens(x: &Tensor<f32>, model: &Patches) -> Result<Tensor<f32>> {
    let n = x.dim(0);
    let patches = ops::conv2d_bias(x, &model.weight, &model.bias, ConvConfig::new().stride(4))?;
    let patches = ops::transpose(&ops::reshape(&patches, (n, 8, 4))?, 1, 2)?;
    let class = ops::broadcast_to(&x.scope().view(&model.class)?, (n, 1, 8))?;
    ops::add(&ops::concat(&[&class, &patches], 1)?, &model.places)
}

/// A layer on `[N, 5, 8]`, with two heads.
#[graphable]
fn layer(x: &Tensor<f32>, layer: &Layer) -> Result<Tensor<f32>> {
    let n = ops::layer_norm(x, &layer.norm1.weight, &layer.norm1.bias, 1e-5)?;
    let qkv = ops::split(&ops::linear_bias(&n, &layer.qkv.weight, &layer.qkv.bias)?, 2, 3)?;
    let heads = |part: &Tensor<_>| ops::reshape(part, (x.dim(0), 5, 2, 4));
    let (q, k, v) = (heads(&qkv[0])?, heads(&qkv[1])?, heads(&qkv[2])?);
    let a = ops::attention(&q, &k, &v, AttentionMask::None, 0.5)?;
    let a = ops::reshape(&a, (x.dim(0), 5, 8))?;
    let x = ops::add(x, &ops::linear_bias(&a, &layer.out.weight, &layer.out.bias)?)?;
    let n = ops::layer_norm(&x, &layer.norm2.weight, &layer.norm2.bias, 1e-5)?;
    let h = ops::gelu(&ops::linear_bias(&n, &layer.up.weight, &layer.up.bias)?)?;
    ops::add(&x, &ops::linear_bias(&h, &layer.down.weight, &layer.down.bias)?)
}

/// Scores `[N, 3]` of the classes of `N` images `[N, 3, 8, 8]`, read from the token for the class. `N` may have buckets.
#[graphable]
pub fn vit(
    #[host]
    #[dims(N, 3, 8, 8)]
    x: &Tensor<f32>,
    model: &Vit,
) -> Result<Tensor<f32>> {
    let mut h = tokens(x, &model.patches)?;
    for weights in &model.layers {
        h = layer(&h, weights)?;
    }
    let class = ops::squeeze(&ops::narrow(&h, 1, 0, 1)?, 1)?;
    let class = ops::layer_norm(&class, &model.norm.weight, &model.norm.bias, 1e-5)?;
    ops::linear_bias(&class, &model.head.weight, &model.head.bias)
}

//! A vision transformer.

use graphable::{
    Param, Params, Result, Runtime, Tensor, graphable,
    ops::{self, AttentionMask, ConvConfig},
};

use super::{check, param, values};
use crate::fixtures::Fixture;

#[derive(Params)]
struct Affine {
    weight: Param<f32>,
    bias: Param<f32>,
}

impl Affine {
    fn new(rt: &Runtime, case: &Fixture, name: &str) -> Self {
        Self { weight: param(rt, case, name), bias: param(rt, case, &format!("{name}_b")) }
    }
}

#[derive(Params)]
struct Layer {
    norm1: Affine,
    qkv: Affine,
    out: Affine,
    norm2: Affine,
    up: Affine,
    down: Affine,
}

#[derive(Params)]
struct Vit {
    patch: Affine,
    class: Param<f32>,
    places: Param<f32>,
    layers: Vec<Layer>,
    norm: Affine,
    head: Affine,
}

impl Vit {
    fn new(rt: &Runtime, case: &Fixture) -> Self {
        let layer = |i: usize| {
            let of = |name: &str| Affine::new(rt, case, &format!("{name}{i}"));
            Layer {
                norm1: of("norm1"),
                qkv: of("qkv"),
                out: of("out"),
                norm2: of("norm2"),
                up: of("up"),
                down: of("down"),
            }
        };
        let of = |name| Affine::new(rt, case, name);
        Self {
            patch: of("patch"),
            class: param(rt, case, "cls"),
            places: param(rt, case, "places"),
            layers: (0..2).map(layer).collect(),
            norm: of("norm"),
            head: of("head"),
        }
    }
}

/// A layer on `[N, 5, 8]`, with two heads.
#[graphable]
fn vit_layer(x: &Tensor<f32>, layer: &Layer) -> Result<Tensor<f32>> {
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

/// Patches of four by four pixels, after a token for the class, which the result is read from.
#[graphable]
fn vit(
    #[host]
    #[dims(N, 3, 8, 8)]
    x: &Tensor<f32>,
    model: &Vit,
) -> Result<Tensor<f32>> {
    let patches = ops::conv2d_bias(x, &model.patch.weight, &model.patch.bias, ConvConfig::new().stride(4))?;
    let patches = ops::transpose(&ops::reshape(&patches, (x.dim(0), 8, 4))?, 1, 2)?;
    let class = ops::broadcast_to(&x.scope().view(&model.class)?, (x.dim(0), 1, 8))?;
    let mut h = ops::add(&ops::concat(&[&class, &patches], 1)?, &model.places)?;
    for layer in &model.layers {
        h = vit_layer(&h, layer)?;
    }
    let class = ops::squeeze(&ops::narrow(&h, 1, 0, 1)?, 1)?;
    let class = ops::layer_norm(&class, &model.norm.weight, &model.norm.bias, 1e-5)?;
    ops::linear_bias(&class, &model.head.weight, &model.head.bias)
}

#[test]
fn a_vision_transformer() {
    check!(VitGraph, "N" to 3, model: |rt, case| Vit::new(rt, case), ["vit"], |case| values(case));
}

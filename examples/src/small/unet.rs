//! A block of a U-Net ("U-Net: Convolutional Networks for Biomedical Image Segmentation", Ronneberger et al., 2015) with the
//! group norm of diffusion models: convolutions, pooling of maxima, a transposed convolution, and a connection that skips them.

use graphable::{
    ops::{ConvConfig, ConvTransposeConfig, MaxPoolConfig},
    prelude::*,
};

/// All weights.
#[derive(Params)]
#[params(config = ())]
pub struct UNet {
    #[param("stem.weight", shape = [4, 2, 3, 3])]
    stem: Param<f32>,
    #[param("stem.bias", shape = [4])]
    stem_bias: Param<f32>,
    #[param(shape = [4])]
    scale: Param<f32>,
    #[param(shape = [4])]
    shift: Param<f32>,
    #[param("low.weight", shape = [8, 4, 3, 3])]
    low: Param<f32>,
    #[param("low.bias", shape = [8])]
    low_bias: Param<f32>,
    #[param("up.weight", shape = [8, 4, 2, 2])]
    up: Param<f32>,
    #[param("up.bias", shape = [4])]
    up_bias: Param<f32>,
    #[param("last.weight", shape = [2, 8, 3, 3])]
    last: Param<f32>,
    #[param("last.bias", shape = [2])]
    last_bias: Param<f32>,
}

/// `[N, 4, 8, 8]` to `[N, 4, 8, 8]`, by way of half as many rows and columns and twice as many channels.
#[graphable]
fn bottom(h: &Tensor<f32>, model: &UNet) -> Result<Tensor<f32>> {
    let low = ops::max_pool2d(h, MaxPoolConfig::new(2))?;
    let low = ops::relu(&ops::conv2d_bias(&low, &model.low, &model.low_bias, ConvConfig::new().padding(1))?)?;
    ops::conv_transpose2d_bias(&low, &model.up, &model.up_bias, ConvTransposeConfig::new().stride(2))
}

/// Images `[N, 2, 8, 8]` to images of the same shape: down, up again, and beside what came in. `N` may have buckets.
#[graphable]
pub fn unet(
    #[host]
    #[dims(N, 2, 8, 8)]
    x: &Tensor<f32>,
    model: &UNet,
) -> Result<Tensor<f32>> {
    let same = ConvConfig::new().padding(1);
    let h = ops::conv2d_bias(x, &model.stem, &model.stem_bias, same)?;
    let h = ops::silu(&ops::group_norm(&h, 2, &model.scale, &model.shift, 1e-5)?)?;
    let up = bottom(&h, model)?;
    ops::conv2d_bias(&ops::concat(&[&h, &up], 1)?, &model.last, &model.last_bias, same)
}

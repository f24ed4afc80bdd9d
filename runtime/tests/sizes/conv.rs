//! Convolutions, pooling, upsampling, norms of channels and recurrent cells along padded dimensions.

use graphable::{
    Result, Tensor, graphable,
    ops::{self, AvgPoolConfig, ConvConfig, ConvTransposeConfig, MaxPoolConfig},
};

use crate::{Outcome, agrees, agrees_but_for_products, each};

/// `[1, 2, B]` of `[B, 2]`.
fn along<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::unsqueeze(&ops::transpose(x, 0, 1)?, 0)
}

/// Back again.
fn back<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::transpose(&ops::squeeze(x, 0)?, 0, 1)
}

/// Small whole numbers, so that every sum is exact.
fn weights<'s, const N: usize>(x: &Tensor<'s, f32>, shape: [usize; N]) -> Result<Tensor<'s, f32>> {
    let values = ops::arange_step::<f32>(x.scope(), shape.iter().product::<usize>(), -2.0, 1.0)?;
    ops::reshape(&values, shape)
}

macro_rules! graphs {
    ($($name:ident |$x:ident| $body:expr;)*) => {$(
        #[graphable]
        fn $name(
            #[host]
            #[dims(B, 2)]
            $x: &Tensor<f32>,
        ) -> Result<Tensor<f32>> {
            $body
        }
    )*};
}

graphs! {
    lengths |x| {
        let config = ConvConfig::new().padding(1);
        let y = ops::conv1d(&along(x)?, &weights(x, [2, 2, 3])?, config)?;
        let y = ops::conv1d_bias(&y, &weights(x, [2, 1, 5])?, &weights(x, [2])?, config.padding(4).dilation(2).groups(2))?;
        let config = ConvTransposeConfig::new().padding(1);
        back(&ops::conv_transpose1d(&y, &weights(x, [2, 2, 3])?, config)?)
    };
    planes |x| {
        // `[1, 1, B, 2]`
        let x = ops::unsqueeze(&ops::unsqueeze(x, 0)?, 0)?;
        let config = ConvConfig { padding: [1, 1], stride: [1, 2], ..ConvConfig::new() };
        let y = ops::conv2d(&x, &weights(&x, [4, 1, 3, 3])?, config)?;
        let y = ops::conv2d(&y, &weights(&x, [2, 2, 3, 1])?, ConvConfig { padding: [1, 0], groups: 2, ..ConvConfig::new() })?;
        let config = ConvTransposeConfig { padding: [1, 0], stride: [1, 2], ..ConvTransposeConfig::new() };
        let y = ops::conv_transpose2d(&y, &weights(&x, [2, 1, 3, 2])?, config)?;
        ops::squeeze(&ops::squeeze(&y, 0)?, 0)
    };
    batches |x| {
        let y = ops::conv1d(&ops::unsqueeze(x, 1)?, &weights(x, [3, 1, 2])?, ConvConfig::new().stride(2))?;
        let y = ops::conv_transpose1d(&y, &weights(x, [3, 1, 2])?, ConvTransposeConfig::new())?;
        ops::squeeze(&y, 1)
    };
    cells |x| {
        let half = ops::scale(&weights(x, [8, 2])?, 0.0625)?;
        let state = ops::full(x.scope(), (x.dim(0), 2), 0.5f32)?;
        let bias = ops::full(x.scope(), [8], 0.25f32)?;
        let (h, c) = ops::lstm_cell(x, &state, &state, &half, &half, &bias, &bias)?;
        let (half, bias) = (ops::narrow(&half, 0, 0, 6)?, ops::narrow(&bias, 0, 0, 6)?);
        ops::gru_cell(&c, &h, &half, &half, &bias, &bias)
    };
    pools |x| {
        let y = ops::max_pool1d(&along(x)?, MaxPoolConfig::new(3).stride(1).padding(1))?;
        let config = AvgPoolConfig::new(3).stride(1).padding(1);
        let y = ops::avg_pool1d(&y, AvgPoolConfig { count_include_pad: false, ..config })?;
        back(&ops::avg_pool1d(&ops::neg(&y)?, config)?)
    };
    parts |x| {
        let x = along(x)?;
        let y = ops::add(&ops::adaptive_avg_pool1d(&x, [3])?, &ops::adaptive_max_pool1d(&x, [3])?)?;
        let y = ops::add(&y, &ops::upsample_nearest1d(&x, [3])?)?;
        let y = ops::add(&y, &ops::upsample_linear1d(&x, [3], true)?)?;
        ops::squeeze(&ops::add(&y, &ops::upsample_linear1d(&x, [3], false)?)?, 0)
    };
    planes_of_parts |x| {
        let x = ops::unsqueeze(&ops::unsqueeze(x, 0)?, 0)?;
        let y = ops::add(&ops::adaptive_avg_pool2d(&x, [3, 1])?, &ops::upsample_nearest2d(&x, [3, 1])?)?;
        let y = ops::add(&y, &ops::upsample_bilinear2d(&x, [3, 1], false)?)?;
        let y = ops::add(&y, &ops::adaptive_max_pool2d(&x, [3, 1])?)?;
        let config = MaxPoolConfig { kernel: [3, 2], stride: [1, 2], padding: [1, 0], ..MaxPoolConfig::new(1) };
        let x = ops::max_pool2d(&ops::concat(&[&x, &ops::neg(&x)?], 3)?, config)?;
        ops::squeeze(&ops::squeeze(&ops::add(&x, &ops::narrow(&y, 2, 0, 1)?)?, 0)?, 0)
    };
    norms |x| {
        let (w, b) = (weights(x, [2])?, weights(x, [2])?);
        let y = ops::group_norm(x, 1, &w, &b, 0.5)?;
        back(&ops::batch_norm(&along(&y)?, &w, &ops::full(x.scope(), [2], 3.0f32)?, &w, &b, 0.5)?)
    };
    pooled_away |x| back(&ops::max_pool1d(&along(x)?, MaxPoolConfig::new(1).stride(2))?);
    averaged_away |x| back(&ops::avg_pool1d(&along(x)?, AvgPoolConfig::new(2).stride(1))?);
    norm_of_padding |x| back(&ops::group_norm(&along(x)?, 1, &weights(x, [2])?, &weights(x, [2])?, 0.5)?);
    padded_channels |x| {
        let w = ops::full(x.scope(), [x.dim(0)], 1.0f32)?;
        ops::squeeze(&ops::batch_norm(&ops::unsqueeze(x, 0)?, &w, &w, &w, &w, 0.5)?, 0)
    };
    strided |x| back(&ops::conv1d(&along(x)?, &weights(x, [2, 2, 3])?, ConvConfig::new().padding(1).stride(2))?);
    shortened |x| back(&ops::conv1d(&along(x)?, &weights(x, [2, 2, 1])?, ConvConfig::new().padding(1))?);
    lengthened |x| back(&ops::conv_transpose1d(&along(x)?, &weights(x, [2, 2, 3])?, ConvTransposeConfig::new())?);
    channels |x| {
        let x = ops::unsqueeze(x, 0)?;
        ops::squeeze(&ops::conv1d(&x, &ops::full(x.scope(), (2, x.dim(1), 1), 1.0f32)?, ConvConfig::new())?, 0)
    };
    weight |x| {
        let w = ops::full(x.scope(), (x.dim(0), 2, 1), 1.0f32)?;
        back(&ops::conv1d(&ops::full(x.scope(), [1, 2, 4], 1.0f32)?, &w, ConvConfig::new())?)
    };
    other_batch |x| {
        let (w, b) = (ops::full(x.scope(), [6, 2], 1.0f32)?, ops::full(x.scope(), [6], 1.0f32)?);
        ops::gru_cell(x, &ops::full(x.scope(), [4, 2], 1.0f32)?, &w, &w, &b, &b)
    };
}

#[test]
fn the_padding_of_a_bucket_is_the_zeros_around() {
    agrees!(LengthsGraph);
    agrees!(PlanesGraph);
    agrees!(BatchesGraph);
    agrees_but_for_products!(CellsGraph);
    agrees!(PoolsGraph);
    agrees!(PartsGraph);
    agrees!(PlanesOfPartsGraph);
    agrees!(NormsGraph);
    // That they met what they are about.
    macro_rules! have_values {
        ($($graph:ident)*) => {$(
            each!($graph, |plain, n, mode, _got| assert!(matches!(plain, Outcome::Values(..)), "{mode}, {n}: {plain:?}"));
        )*};
    }
    have_values!(LengthsGraph PlanesGraph BatchesGraph CellsGraph PoolsGraph PartsGraph PlanesOfPartsGraph NormsGraph);
}

#[test]
fn padding_that_would_be_mixed_is_refused() {
    macro_rules! mixes {
        ($($graph:ident)*) => {$(
            each!($graph, |_plain, n, mode, got| assert_eq!(got, Outcome::Mix, "{mode}, {n} rows"));
        )*};
    }
    mixes!(PooledAwayGraph AveragedAwayGraph NormOfPaddingGraph PaddedChannelsGraph);
    mixes!(StridedGraph ShortenedGraph LengthenedGraph ChannelsGraph WeightGraph OtherBatchGraph);
}

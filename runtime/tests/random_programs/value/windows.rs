//! Operations on windows of a matrix and on its parts, and a recurrent cell of its rows.

use graphable::{
    Result, Tensor,
    ops::{self, AvgPoolConfig, ConvConfig, ConvTransposeConfig, MaxPoolConfig},
};

/// Number of the operations that keep the shape.
pub(crate) const KEEPING: usize = 5;
/// Elements of a dimension that is divided.
pub(crate) const PARTS: usize = 3;

/// `x` as the only channel of the only image.
fn image<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::unsqueeze(&ops::unsqueeze(x, 0)?, 0)
}

fn matrix<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::squeeze(&ops::squeeze(x, 0)?, 0)
}

/// Some numbers around zero, whose absolute values add up to about one.
fn weights<'s, const N: usize>(
    x: &Tensor<'s, f32>,
    shape: [usize; N],
    count: usize,
) -> Result<Tensor<'s, f32>> {
    let step = 4.0 / (count * count) as f64;
    let all = ops::arange_step::<f32>(x.scope(), shape.iter().product::<usize>(), -2.0 / count as f64, step)?;
    ops::reshape(&all, shape)
}

/// An operation that keeps the shape.
pub(super) fn kept<'s>(x: &Tensor<'s, f32>, kind: usize) -> Result<Tensor<'s, f32>> {
    match kind {
        0 => matrix(&ops::conv2d(&image(x)?, &weights(x, [1, 1, 3, 3], 9)?, ConvConfig::new().padding(1))?),
        1 => {
            let (w, config) = (weights(x, [1, 1, 3, 3], 9)?, ConvTransposeConfig::new().padding(1));
            matrix(&ops::conv_transpose2d(&image(x)?, &w, config)?)
        }
        2 => matrix(&ops::max_pool2d(&image(x)?, MaxPoolConfig::new(3).stride(1).padding(1))?),
        3 => matrix(&ops::avg_pool2d(&image(x)?, AvgPoolConfig::new(3).stride(1).padding(1))?),
        // Each of two channels is that of the matrix, with windows of its own.
        _ => {
            let both = ops::concat(&[&image(x)?, &image(x)?], 1)?;
            let config = ConvConfig::new().padding(1).groups(2);
            let y = ops::conv2d(&both, &weights(x, [2, 1, 3, 3], 9)?, config)?;
            matrix(&ops::narrow(&y, 1, 1, 1)?)
        }
    }
}

/// A dimension divided into parts, or its values at other places.
pub(super) fn divided<'s>(x: &Tensor<'s, f32>, kind: usize, axis: usize) -> Result<Tensor<'s, f32>> {
    let x = ops::unsqueeze(&ops::transpose(x, axis, 1)?, 0)?;
    let y = match kind {
        0 => ops::adaptive_avg_pool1d(&x, [PARTS])?,
        1 => ops::adaptive_max_pool1d(&x, [PARTS])?,
        2 => ops::upsample_nearest1d(&x, [PARTS])?,
        _ => ops::upsample_linear1d(&x, [PARTS], kind == 3)?,
    };
    ops::transpose(&ops::squeeze(&y, 0)?, axis, 1)
}

/// A cell for rows of `width` elements.
pub(super) fn cell<'s>(x: &Tensor<'s, f32>, width: usize) -> Result<Tensor<'s, f32>> {
    let (w, b) =
        (weights(x, [4 * width, width], 4 * width * width)?, ops::full(x.scope(), [4 * width], 0.125f32)?);
    let (h, c) = ops::lstm_cell(x, x, x, &w, &w, &b, &b)?;
    let (w, b) = (ops::narrow(&w, 0, 0, 3 * width)?, ops::narrow(&b, 0, 0, 3 * width)?);
    ops::gru_cell(&c, &h, &w, &w, &b, &b)
}

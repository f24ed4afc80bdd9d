//! Transposed convolutions: a product whose results are added where windows overlap.

use super::{
    config::ConvTransposeConfig,
    kernels as k, matrix,
    sizes::{Operands, Sizes},
    windows,
};
use crate::{
    AsOperand, Dim, Real, Result, Tensor,
    kernel::call::Call,
    ops::{
        by_type::of_reals,
        check::Shape,
        composed::composed,
        launch::own,
        matmul::product,
        shape::{permute, reshape},
    },
};

/// Computes a transposed convolution along one dimension: `x` is `[N, C, L]`, `w` is
/// `[C, channels of the result / groups, K]`, the result
/// `[N, channels, (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1]`.
///
/// As `torch.nn.functional.conv_transpose1d`. Products are computed in f32 and rounded to `T`; their sums are computed in f32.
/// Padding of the batch propagates, and that of `L` if the size stays what it is, as for [`conv1d`](crate::ops::conv1d).
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 1, 2], &[1.0f32, 10.0])?;
/// let w = step.tensor(&[1, 1, 3], &[1.0f32, 2.0, 3.0])?;
/// let y = ops::conv_transpose1d(&x, &w, ops::ConvTransposeConfig::new().stride(2))?;
/// assert_eq!(step.read(&y)?, [1.0, 2.0, 13.0, 20.0, 30.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`](crate::Error::Shape) if the shapes do not fit together, or nothing would be left of a dimension;
/// [`Error::Argument`](crate::Error::Argument) if a stride, a dilation or the number of groups is 0, or the output padding is
/// not less than the stride or the dilation; [`Error::PaddedMix`](crate::Error::PaddedMix) if channels, the weight, or a
/// dimension whose size changes are padded.
pub fn conv_transpose1d<'s, T: Real>(
    x: &Tensor<'s, T>,
    w: &(impl AsOperand<'s, T> + ?Sized),
    config: ConvTransposeConfig<1>,
) -> Result<Tensor<'s, T>> {
    let w = w.operand("conv_transpose1d", x.scope())?;
    transposed(&Operands { op: "conv_transpose1d", x, w, bias: None }, &config)
}

/// Computes [`conv_transpose1d`] with a bias `b`, one value for each channel of the result.
///
/// Corresponds to `torch.nn.functional.conv_transpose1d` with `bias`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 1, 2], &[1.0f32, 10.0])?;
/// let w = step.tensor(&[1, 1, 2], &[1.0f32, 2.0])?;
/// let b = step.tensor(&[1], &[0.5f32])?;
/// let y = ops::conv_transpose1d_bias(&x, &w, &b, ops::ConvTransposeConfig::new())?;
/// assert_eq!(step.read(&y)?, [1.5, 12.5, 20.5]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`conv_transpose1d`].
pub fn conv_transpose1d_bias<'s, T: Real>(
    x: &Tensor<'s, T>,
    w: &(impl AsOperand<'s, T> + ?Sized),
    b: &(impl AsOperand<'s, T> + ?Sized),
    config: ConvTransposeConfig<1>,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "conv_transpose1d_bias";
    let (w, bias) = (w.operand(NAME, x.scope())?, Some(b.operand(NAME, x.scope())?));
    transposed(&Operands { op: NAME, x, w, bias }, &config)
}

/// Computes a transposed convolution along two dimensions: `x` is `[N, C, H, W]`, `w` is
/// `[C, channels of the result / groups, K, K]`, the result `[N, channels, H', W']`, with sizes as for
/// [`conv_transpose1d`].
///
/// As `torch.nn.functional.conv_transpose2d`; in all else as [`conv_transpose1d`].
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 1, 1, 2], &[1.0f32, 2.0])?;
/// let w = step.tensor(&[1, 1, 2, 2], &[1.0f32, 0.0, 0.0, 10.0])?;
/// let y = ops::conv_transpose2d(&x, &w, ops::ConvTransposeConfig::new())?;
/// assert_eq!(y.shape(), [1, 1, 2, 3]);
/// assert_eq!(step.read(&y)?, [1.0, 2.0, 0.0, 0.0, 10.0, 20.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`conv_transpose1d`].
pub fn conv_transpose2d<'s, T: Real>(
    x: &Tensor<'s, T>,
    w: &(impl AsOperand<'s, T> + ?Sized),
    config: ConvTransposeConfig<2>,
) -> Result<Tensor<'s, T>> {
    let w = w.operand("conv_transpose2d", x.scope())?;
    transposed(&Operands { op: "conv_transpose2d", x, w, bias: None }, &config)
}

/// Computes [`conv_transpose2d`] with a bias `b`, one value for each channel of the result.
///
/// Corresponds to `torch.nn.functional.conv_transpose2d` with `bias`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 1, 1, 2], &[1.0f32, 2.0])?;
/// let w = step.tensor(&[1, 1, 1, 1], &[10.0f32])?;
/// let b = step.tensor(&[1], &[0.5f32])?;
/// let y = ops::conv_transpose2d_bias(&x, &w, &b, ops::ConvTransposeConfig::new())?;
/// assert_eq!(step.read(&y)?, [10.5, 20.5]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`conv_transpose1d`].
pub fn conv_transpose2d_bias<'s, T: Real>(
    x: &Tensor<'s, T>,
    w: &(impl AsOperand<'s, T> + ?Sized),
    b: &(impl AsOperand<'s, T> + ?Sized),
    config: ConvTransposeConfig<2>,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "conv_transpose2d_bias";
    let (w, bias) = (w.operand(NAME, x.scope())?, Some(b.operand(NAME, x.scope())?));
    transposed(&Operands { op: NAME, x, w, bias }, &config)
}

fn transposed<'s, T: Real, const N: usize>(
    operands: &Operands<'_, 's, T>,
    config: &ConvTransposeConfig<N>,
) -> Result<Tensor<'s, T>> {
    // So that errors of the tensor name this operation.
    own(operands.op, operands.x)?;
    let sizes = operands.backward(config)?;
    let parts = composed(operands.op, || parts(operands, config.groups, &sizes))?;
    let kernel = match (N, operands.bias.is_some()) {
        (1, false) => of_reals!(k::floats::fold_1d, k::doubles::fold_1d),
        (1, true) => of_reals!(k::floats::fold_bias_1d, k::doubles::fold_bias_1d),
        (_, false) => of_reals!(k::floats::fold_2d, k::doubles::fold_2d),
        (_, true) => of_reals!(k::floats::fold_bias_2d, k::doubles::fold_bias_2d),
    };
    let mut call = Call::new(kernel, &parts)?;
    operands.bias.into_iter().for_each(|bias| call.operand(bias));
    if N > 1 {
        call.key(i32::try_from(sizes.kernel[N - 1]).unwrap_or(i32::MAX));
    }
    windows(&mut call, config.stride, config.padding, config.dilation);
    let channels = Dim::from(config.groups * sizes.outer);
    let shape: Vec<_> = [operands.x.dim(0), channels].into_iter().chain(sizes.out).collect();
    composed(operands.op, || call.launch_indexed(shape))
}

/// The contribution of each element of the input to the results: `[groups, N, positions.., channels of a group, window]`.
fn parts<'s, T: Real, const N: usize>(
    operands: &Operands<'_, 's, T>,
    groups: usize,
    sizes: &Sizes<'s, N>,
) -> Result<Tensor<'s, T>> {
    let (op, x, window) = (operands.op, operands.x, sizes.kernel.iter().product::<usize>());
    let positions = (2..N + 2).map(|axis| x.dim(axis));
    let split: Vec<_> =
        [x.dim(0), groups.into(), sizes.inner.into()].into_iter().chain(positions.clone()).collect();
    let axes: Shape = [1, 0].into_iter().chain(3..N + 3).chain([2]).collect();
    let rows = permute(&reshape(x, split)?, &axes)?;
    let mut shape: Shape = [groups].into_iter().chain(std::iter::repeat_n(1, N)).collect();
    shape.extend([sizes.inner, sizes.outer * window]);
    let (w, _memory) = matrix(operands, &shape)?;
    let y: Tensor<'s, T> =
        product(op, "rows and the weights of a group", operands.scope(), own(op, &rows)?, w)?;
    let last = [Dim::from(sizes.outer), Dim::from(window)];
    let shape: Vec<_> = [Dim::from(groups), x.dim(0)].into_iter().chain(positions).chain(last).collect();
    reshape(&y, shape)
}

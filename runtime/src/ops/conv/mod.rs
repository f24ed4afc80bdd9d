//! Convolutions: by the device's library, or with windows of the input as rows of a product; transposed ones add the product's
//! results where windows overlap.

use self::{
    kernels as k,
    sizes::{Operands, Sizes},
};
use super::{
    by_type::of_reals,
    check::Shape,
    composed::composed,
    launch::{compute, own},
    matmul::{product, project},
    shape::{permute, reshape, viewed},
};
#[cfg(feature = "cuda")]
use crate::kernel::definition::Definition;
use crate::{
    AsOperand, Dim, Real, Result, Tensor,
    backend::View,
    kernel::call::Call,
    memory::COPY,
    tensor::Operand,
    value::layout::{Layout, PaddedDims},
};

mod config;
mod kernels;
#[cfg(feature = "cuda")]
mod library;
mod sizes;
mod transposed;

pub use config::{ConvConfig, ConvTransposeConfig};
pub use transposed::{conv_transpose1d, conv_transpose1d_bias, conv_transpose2d, conv_transpose2d_bias};

/// The kernels of convolutions, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    k::all()
}

/// Computes a convolution along one dimension: `x` is `[N, C, L]`, `w` is
/// `[channels of the result, C / groups, K]`, the result
/// `[N, channels, (L + 2 padding - dilation (K - 1) - 1) / stride + 1]`.
///
/// As `torch.nn.functional.conv1d`, computed in f32, of an `f64` in f64; with groups of several channels, and by cuDNN, the sum is rounded to `T`
/// before the bias is added. A GPU uses cuDNN 9 where it finds it (`GRAPHABLE_CUDNN` names another one, or none), except for
/// groups of one channel, padded sizes other than the batch, an `f64`, results of more than 128 channels in f32 without groups, and
/// plain products: windows of one element without a stride, padding or groups, in f32, with a bias, or with the input's channels in the
/// second place in memory. In f32 without [`Numerics::tf32`](crate::Numerics::tf32), it computes an input whose channels are in the
/// second place in memory in that order, and otherwise with the channels next to each other; an input or a weight in another order is
/// copied at each call. With channels next to each other, a weight needs no copy if it is stored as `[channels of the result, K.., C / groups]`
/// and passed by [`permute`](super::permute). Zeros surround the input. Padding of the batch propagates, and that of `L`
/// if the size stays what it is, which it does with a stride of 1 and `2 padding = dilation (K - 1)`: the padding of a bucket
/// then counts as the zeros after the input. In memory, the channels of the result are next to each other, unless there are
/// groups, cuDNN computes the input in the other order, or [`Numerics::fourier`](crate::Numerics::fourier) lets it compute the
/// convolution by a Fourier transform.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 1, 4], &[1.0f32, 2.0, 3.0, 4.0])?;
/// let w = step.tensor(&[1, 1, 3], &[1.0f32, 0.0, -1.0])?;
/// let y = ops::conv1d(&x, &w, ops::ConvConfig::new().padding(1))?;
/// assert_eq!(step.read(&y)?, [-2.0, -2.0, -2.0, 3.0]);
/// let y = ops::conv1d(&x, &w, ops::ConvConfig::new().stride(2).padding(1))?;
/// assert_eq!(step.read(&y)?, [-2.0, -2.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`](crate::Error::Shape) if the shapes do not fit together, or a window is larger than the input with
/// its padding; [`Error::Argument`](crate::Error::Argument) if a stride, a dilation or the number of groups is 0;
/// [`Error::PaddedMix`](crate::Error::PaddedMix) if channels, the weight, or a dimension whose size changes are padded.
pub fn conv1d<'s, T: Real>(
    x: &Tensor<'s, T>,
    w: &(impl AsOperand<'s, T> + ?Sized),
    config: ConvConfig<1>,
) -> Result<Tensor<'s, T>> {
    let w = w.operand("conv1d", x.scope())?;
    convolution(&Operands { op: "conv1d", x, w, bias: None }, &config)
}

/// Computes [`conv1d`] with a bias `b`, one value for each channel of the result.
///
/// Corresponds to `torch.nn.functional.conv1d` with `bias`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
/// let w = step.tensor(&[1, 2, 1], &[1.0f32, 10.0])?;
/// let b = step.tensor(&[1], &[100.0f32])?;
/// let y = ops::conv1d_bias(&x, &w, &b, ops::ConvConfig::new())?;
/// assert_eq!(step.read(&y)?, [131.0, 142.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`conv1d`].
pub fn conv1d_bias<'s, T: Real>(
    x: &Tensor<'s, T>,
    w: &(impl AsOperand<'s, T> + ?Sized),
    b: &(impl AsOperand<'s, T> + ?Sized),
    config: ConvConfig<1>,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "conv1d_bias";
    let (w, bias) = (w.operand(NAME, x.scope())?, Some(b.operand(NAME, x.scope())?));
    convolution(&Operands { op: NAME, x, w, bias }, &config)
}

/// Computes a convolution along two dimensions: `x` is `[N, C, H, W]`, `w` is
/// `[channels of the result, C / groups, K, K]`, the result `[N, channels, H', W']`, with sizes as for
/// [`conv1d`].
///
/// As `torch.nn.functional.conv2d`; in all else as [`conv1d`].
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 1, 2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let w = step.tensor(&[1, 1, 2, 2], &[1.0f32, 0.0, 0.0, 1.0])?;
/// let y = ops::conv2d(&x, &w, ops::ConvConfig::new())?;
/// assert_eq!(y.shape(), [1, 1, 1, 2]);
/// assert_eq!(step.read(&y)?, [6.0, 8.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`conv1d`].
pub fn conv2d<'s, T: Real>(
    x: &Tensor<'s, T>,
    w: &(impl AsOperand<'s, T> + ?Sized),
    config: ConvConfig<2>,
) -> Result<Tensor<'s, T>> {
    let w = w.operand("conv2d", x.scope())?;
    convolution(&Operands { op: "conv2d", x, w, bias: None }, &config)
}

/// Computes [`conv2d`] with a bias `b`, one value for each channel of the result.
///
/// Corresponds to `torch.nn.functional.conv2d` with `bias`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 2, 1, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
/// let w = step.tensor(&[2, 1, 1, 1], &[1.0f32, 10.0])?;
/// let b = step.tensor(&[2], &[0.5f32, 0.0])?;
/// let y = ops::conv2d_bias(&x, &w, &b, ops::ConvConfig::new().groups(2))?;
/// assert_eq!(step.read(&y)?, [1.5, 2.5, 30.0, 40.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`conv1d`].
pub fn conv2d_bias<'s, T: Real>(
    x: &Tensor<'s, T>,
    w: &(impl AsOperand<'s, T> + ?Sized),
    b: &(impl AsOperand<'s, T> + ?Sized),
    config: ConvConfig<2>,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "conv2d_bias";
    let (w, bias) = (w.operand(NAME, x.scope())?, Some(b.operand(NAME, x.scope())?));
    convolution(&Operands { op: NAME, x, w, bias }, &config)
}

fn convolution<'s, T: Real, const N: usize>(
    operands: &Operands<'_, 's, T>,
    config: &ConvConfig<N>,
) -> Result<Tensor<'s, T>> {
    // So that errors of the tensor name this operation.
    own(operands.op, operands.x)?;
    let sizes = operands.forward(config)?;
    if config.groups > 1 && sizes.inner == 1 {
        return composed(operands.op, || depthwise(operands, config, &sizes));
    }
    composed(operands.op, || {
        #[cfg(feature = "cuda")]
        if let Some(y) = library::convolution(operands, config, &sizes)? {
            return Ok(y);
        }
        let rows = rows(operands.x, config, &sizes)?;
        match config.groups {
            1 => one_product(operands, &rows, &sizes),
            groups => product_of_groups(operands, &rows, groups, &sizes),
        }
    })
}

/// The dimensions of a tensor, with its batch and sizes of the result.
fn dims<'s, T, const N: usize>(x: &Tensor<'s, T>, sizes: &Sizes<'s, N>, last: &[usize]) -> Vec<Dim<'s>> {
    let last = last.iter().map(|n| Dim::from(*n));
    std::iter::once(x.dim(0)).chain(sizes.out).chain(last).collect()
}

/// The windows of the input as rows, `[N, positions.., channels * window]`.
fn rows<'s, T: Real, const N: usize>(
    x: &Tensor<'s, T>,
    config: &ConvConfig<N>,
    sizes: &Sizes<'s, N>,
) -> Result<Tensor<'s, T>> {
    let channels = x.size(1);
    if (sizes.kernel, config.stride, config.padding) == ([1; N], [1; N], [0; N]) {
        let axes: Shape = std::iter::once(0).chain(2..N + 2).chain([1]).collect();
        return permute(x, &axes);
    }
    let kernel = if N == 1 {
        of_reals!(k::floats::unfold_1d, k::doubles::unfold_1d)
    } else {
        of_reals!(k::floats::unfold_2d, k::doubles::unfold_2d)
    };
    let mut call = Call::new(kernel, x)?;
    windows(&mut call, config.stride, config.padding, config.dilation);
    let last: Shape = std::iter::once(channels).chain(sizes.kernel).collect();
    let rows: Tensor<'s, T> = call.launch_indexed(dims(x, sizes, &last))?;
    reshape(&rows, dims(x, sizes, &[last.iter().product()]))
}

/// Passes how windows move to a kernel. The checks of sizes have made sure that these are `i32`s, except for a stride or
/// a dilation that nothing is multiplied by.
fn windows<const N: usize>(
    call: &mut Call<'_>,
    stride: [usize; N],
    padding: [usize; N],
    dilation: [usize; N],
) {
    for axis in 0..N {
        for value in [stride[axis], padding[axis], dilation[axis]] {
            call.key(i32::try_from(value).unwrap_or(i32::MAX));
        }
    }
}

/// The weight as a matrix; the second value owns its memory if that takes a copy.
fn matrix<'s, T: Real>(
    operands: &Operands<'_, 's, T>,
    shape: &[usize],
) -> Result<(Operand, Option<Tensor<'s, T>>)> {
    let w = operands.w.view;
    if let Some(layout) = viewed(&w.layout, shape) {
        return Ok((Operand { view: View { layout, ..w }, marks: PaddedDims::NONE }, None));
    }
    let copy = compute::<T>(operands.scope(), COPY, &[w], w.layout.shape(), PaddedDims::NONE)?;
    let layout = Layout::contiguous(shape)?;
    Ok((Operand { view: View { layout, ..copy.raw.view() }, marks: PaddedDims::NONE }, Some(copy)))
}

fn one_product<'s, T: Real, const N: usize>(
    operands: &Operands<'_, 's, T>,
    rows: &Tensor<'s, T>,
    sizes: &Sizes<'s, N>,
) -> Result<Tensor<'s, T>> {
    let (w, _memory) = matrix(operands, &[sizes.outer, rows.size(N + 1)])?;
    let y: Tensor<'s, T> = project(operands.op, operands.scope(), own(operands.op, rows)?, w, operands.bias)?;
    let axes: Shape = [0, N + 1].into_iter().chain(1..=N).collect();
    permute(&y, &axes)
}

/// A product for each group; the results are put together by a copy, which adds the bias if there is one.
fn product_of_groups<'s, T: Real, const N: usize>(
    operands: &Operands<'_, 's, T>,
    rows: &Tensor<'s, T>,
    groups: usize,
    sizes: &Sizes<'s, N>,
) -> Result<Tensor<'s, T>> {
    let (op, scope) = (operands.op, operands.scope());
    let each = rows.size(N + 1) / groups;
    // `[groups, N, positions.., row]`
    let parts = reshape(rows, dims(rows, sizes, &[groups, each]))?;
    let axes: Shape = [N + 1].into_iter().chain(0..=N).chain([N + 2]).collect();
    let parts = permute(&parts, &axes)?;
    let mut shape: Shape = [groups].into_iter().chain(std::iter::repeat_n(1, N)).collect();
    shape.extend([sizes.outer, each]);
    let (mut w, _memory) = matrix(operands, &shape)?;
    let axes: Shape = (0..=N).chain([N + 2, N + 1]).collect();
    w.view.layout = w.view.layout.permuted(&axes);
    let y: Tensor<'s, T> = product(op, "rows and the weights of a group", scope, own(op, &parts)?, w)?;
    // `[N, groups, channels of a group, positions..]`
    let axes: Shape = [1, 0, N + 2].into_iter().chain(2..N + 2).collect();
    let mut y = permute(&y, &axes)?;
    if let Some(bias) = operands.bias {
        let (mut shape, mut strides) = (Shape::from_elem(1, N + 2), Shape::from_elem(0, N + 2));
        shape[..2].copy_from_slice(&[groups, sizes.outer]);
        let stride = bias.view.layout.strides()[0];
        strides[..2].copy_from_slice(&[sizes.outer * stride, stride]);
        let layout = Layout::strided(&shape, &strides)?;
        let mut call = Call::new(of_reals!(k::floats::biased, k::doubles::biased), &y)?;
        call.operand(Operand { view: View { layout, ..bias.view }, ..bias });
        y = call.launch()?;
    }
    let channels = Dim::from(groups * sizes.outer);
    reshape(&y, [y.dim(0), channels].into_iter().chain(sizes.out).collect::<Vec<_>>())
}

/// Groups of one channel of the input: there is nothing to be multiplied but the windows themselves.
fn depthwise<'s, T: Real, const N: usize>(
    operands: &Operands<'_, 's, T>,
    config: &ConvConfig<N>,
    sizes: &Sizes<'s, N>,
) -> Result<Tensor<'s, T>> {
    let kernel = match (N, operands.bias.is_some()) {
        (1, false) => of_reals!(k::floats::depthwise_1d, k::doubles::depthwise_1d),
        (1, true) => of_reals!(k::floats::depthwise_bias_1d, k::doubles::depthwise_bias_1d),
        (_, false) => of_reals!(k::floats::depthwise_2d, k::doubles::depthwise_2d),
        (_, true) => of_reals!(k::floats::depthwise_bias_2d, k::doubles::depthwise_bias_2d),
    };
    let mut call = Call::new(kernel, operands.x)?;
    call.operand(operands.w);
    operands.bias.into_iter().for_each(|bias| call.operand(bias));
    call.key(i32::try_from(sizes.outer).unwrap_or(i32::MAX));
    windows(&mut call, config.stride, config.padding, config.dilation);
    let channels = Dim::from(config.groups * sizes.outer);
    call.launch_indexed([operands.x.dim(0), channels].into_iter().chain(sizes.out).collect::<Vec<_>>())
}

//! Convolutions by the device's library.

use super::{
    super::{by_type::of_reals, check::Shape, launch::compute, prelude::*, shape::permute},
    Operands, Sizes, dims, kernels as k,
};
use crate::{
    DType, Dim, Real, Result, Scope, Tensor,
    backend::{
        Op,
        cuda::kernels::{Convolution, ConvolutionAddresses, Order},
    },
    kernel::call::Call,
    memory::COPY,
    ops::ConvConfig,
    tensor::Operand,
    value::layout::PaddedDims,
};

/// Channels of the result above which a copy of the windows and a matrix product are faster in f32. On an H200, with cuDNN's
/// heuristics, for 256 channels and more the product took 0.51 to 0.78 of the time, for 64 and fewer 0.94 to 1.6, for 128
/// from 0.80 to 1.06 (docs/BENCHMARKS.md).
const WIDE: usize = 128;
/// Bytes of which operands of the library are at multiples: tensor cores load that many at once.
const ALIGNMENT: u64 = 16;

/// `[x: N, H, W, C; w: channels, window.., C / groups] -> [y: N, H', W', channels]`, all contiguous, or all with the channels in
/// the second place.
#[derive(Debug)]
struct ByLibrary(Convolution);

impl Operation for ByLibrary {
    fn name(&self) -> &'static str {
        "convolution"
    }

    fn parameters(&self, mut to: &mut dyn Hasher) {
        self.0.hash(&mut to);
    }

    fn has_cpu_code(&self) -> bool {
        false
    }

    fn run_cpu(&self, _: &Access<'_>, _: &Launch) -> Result<(), Fault> {
        unreachable!("the device refuses an operation without code for it")
    }

    fn cuda_supports(&self, gpu: &mut dyn Submit) -> Result<bool> {
        Ok(gpu.convolution_workspace(&self.0)?.is_some())
    }

    fn cuda_workspace(&self, gpu: &mut dyn Submit, _: &[View], _: &[View], _: bool) -> Result<u64> {
        Ok(gpu.convolution_workspace(&self.0)?.unwrap_or(0))
    }

    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
        match ConvolutionAddresses::of(&launch.inputs, &launch.outputs) {
            Some(at) => gpu.convolution(&self.0, at, launch.workspace),
            None => unreachable!("launched with input, weight and result below"),
        }
    }
}

/// Computes a convolution by the library; `None` if the device has none for it, or a matrix product or other kernels do
/// better: for windows of one element in f32 or with a bias, for many channels in f32, and where the zeros after the input are a
/// bucket's.
pub(super) fn convolution<'s, T: Real, const N: usize>(
    operands: &Operands<'_, 's, T>,
    config: &ConvConfig<N>,
    sizes: &Sizes<'s, N>,
) -> Result<Option<Tensor<'s, T>>> {
    let (x, scope) = (operands.x, operands.scope());
    let is_of_one =
        config.groups == 1 && (sizes.kernel, config.stride, config.padding) == ([1; N], [1; N], [0; N]);
    // A product adds the bias itself.
    let is_product = is_of_one && (T::DTYPE == DType::F32 || operands.bias.is_some());
    let channels = config.groups * sizes.outer;
    let is_wide = T::DTYPE == DType::F32 && config.groups == 1 && channels > WIDE;
    let by_library = T::DTYPE.is_computed_in_f32();
    if !by_library || is_product || is_wide || (2..N + 2).any(|axis| x.raw.marks.get(axis).is_some()) {
        return Ok(None);
    }
    let y = dims(x, sizes, &[channels]);
    let last = request::<T, N>(operands, config, &y);
    if last.y.contains(&0) || last.x.contains(&0) {
        return Ok(None);
    }
    // A transform may take two images for one of complex numbers: what lies in the padding would reach real rows.
    let may_transform = scope.numerics().fourier && x.raw.marks.get(0).is_none();
    let Some(of) = supported(scope, &last, may_transform)? else { return Ok(None) };
    let order: Shape = match of.order {
        Order::ChannelsLast => channels_last(N),
        Order::ChannelsFirst => (0..N + 2).collect(),
    };
    let marks = PaddedDims::NONE.with(0, x.raw.marks.get(0));
    let (x, _x) = lines(operands, Operand { view: x.view(operands.op)?, marks: x.raw.marks }, &order)?;
    let (w, _w) = lines(operands, operands.w, &order)?;
    let mut shape: Shape = y.iter().map(|dim| dim.raw.size).collect();
    if of.order == Order::ChannelsFirst {
        shape[1..].rotate_right(1);
    }
    let mut y: Tensor<'s, T> = compute(scope, Op::from(ByLibrary(of)), &[x.view, w.view], &shape, marks)?;
    if of.order == Order::ChannelsFirst {
        y = permute(&y, &channels_last(N))?;
    }
    if let Some(bias) = operands.bias {
        let mut call = Call::new(of_reals!(k::floats::biased, k::doubles::biased), &y)?;
        call.operand(bias);
        y = call.launch()?;
    }
    let axes: Shape = [0, N + 1].into_iter().chain(1..=N).collect();
    permute(&y, &axes).map(Some)
}

/// The axes of a tensor with its channels in the second place, in the order that has them last.
fn channels_last(places: usize) -> Shape {
    std::iter::once(0).chain(2..places + 2).chain([1]).collect()
}

/// Returns the request in the order in which the library computes it; `None` if it does in neither.
fn supported(scope: Scope<'_>, last: &Convolution, may_transform: bool) -> Result<Option<Convolution>> {
    let last = Convolution { tf32: scope.numerics().concerning(last.dtype).tf32, ..*last };
    if may_transform && last.dtype == DType::F32 && !last.tf32 && last.groups == 1 {
        let first = Convolution { order: Order::ChannelsFirst, ..last };
        if scope.supports(&Op::from(ByLibrary(first)))? {
            return Ok(Some(first));
        }
    }
    Ok(scope.supports(&Op::from(ByLibrary(last)))?.then_some(last))
}

/// The convolution of images that are one line high, if `N` is 1.
fn request<T: Real, const N: usize>(
    operands: &Operands<'_, '_, T>,
    config: &ConvConfig<N>,
    y: &[Dim<'_>],
) -> Convolution {
    let (x, w) = (operands.x.sizes(), operands.w.view.layout.shape());
    Convolution {
        dtype: T::DTYPE,
        order: Order::ChannelsLast,
        x: image(x[0], &x[2..], x[1]),
        w: image(w[0], &w[2..], w[1]),
        y: [y[0].raw.size, if N == 1 { 1 } else { y[1].raw.size }, y[N].raw.size, y[N + 1].raw.size],
        stride: plane(config.stride, 1),
        padding: plane(config.padding, 0),
        dilation: plane(config.dilation, 1),
        groups: config.groups,
        tf32: false,
    }
}

fn image(first: usize, places: &[usize], channels: usize) -> [usize; 4] {
    match *places {
        [height, width] => [first, height, width, channels],
        _ => [first, 1, places.iter().product(), channels],
    }
}

fn plane<const N: usize>(values: [usize; N], of_one_line: usize) -> [usize; 2] {
    match *values.as_slice() {
        [height, width] => [height, width],
        _ => [of_one_line, values.iter().product()],
    }
}

/// An operand with its dimensions in the order of `axes`, contiguous and aligned as the library wants it; the second value owns its memory if that takes a copy.
fn lines<'s, T: Real>(
    operands: &Operands<'_, 's, T>,
    of: Operand,
    axes: &[usize],
) -> Result<(Operand, Option<Tensor<'s, T>>)> {
    let mut moved = of;
    moved.view.layout = of.view.layout.permuted(axes);
    if moved.view.layout.is_contiguous() && moved.view.addr.is_multiple_of(ALIGNMENT) {
        return Ok((moved, None));
    }
    let shape: Shape = moved.view.layout.shape().into();
    let copy = compute::<T>(operands.scope(), COPY, &[moved.view], &shape, PaddedDims::NONE)?;
    Ok((Operand { view: copy.raw.view(), marks: PaddedDims::NONE }, Some(copy)))
}

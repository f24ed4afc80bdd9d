//! Convolutions by the device's library.

use smallvec::{SmallVec, smallvec};

use super::{
    super::{by_type::of_reals, check::Shape, launch::compute, prelude::*, shape::permute},
    Operands, Sizes, dims, kernels as k,
};
use crate::{
    DType, Dim, Real, Result, Scope, Tensor,
    backend::{
        Op,
        cuda::kernels::{Convolution, ConvolutionAddresses, Fourier, Order},
    },
    kernel::call::Call,
    memory::COPY,
    ops::ConvConfig,
    tensor::Operand,
    value::layout::{Layout, PaddedDims},
};

/// Channels of the result above which a copy of the windows and a matrix product are faster in f32. On an H200, with cuDNN's
/// heuristics, for 256 channels and more the product took 0.51 to 0.78 of the time, for 64 and fewer 0.94 to 1.6, for 128
/// from 0.80 to 1.06 (docs/BENCHMARKS.md).
const WIDE: usize = 128;
/// Bytes of which operands of the library are at multiples: tensor cores load that many at once.
const ALIGNMENT: u64 = 16;
/// Bytes of which parts of a workspace are at multiples.
const PART: u64 = 256;

/// `[x: N, H, W, C; w: channels, window.., C / groups] -> [y: N, H', W', channels]`, all contiguous, or all with the channels in
/// the second place.
///
/// Operands may begin anywhere: a body does not depend on their addresses, so those that are not aligned are copied here, to and
/// from the workspace.
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

    fn cuda_workspace(
        &self,
        gpu: &mut dyn Submit,
        inputs: &[View],
        outputs: &[View],
        _: bool,
    ) -> Result<u64> {
        let own = gpu.convolution_workspace(&self.0)?.unwrap_or(0);
        let copies = inputs.iter().chain(outputs).filter(|view| !is_aligned(view)).map(bytes);
        Ok(own.next_multiple_of(PART) + copies.sum::<u64>())
    }

    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
        let own = gpu.convolution_workspace(&self.0)?.unwrap_or(0);
        let mut free = launch.workspace + own.next_multiple_of(PART);
        let mut aligned = |view: &View| {
            if is_aligned(view) {
                return *view;
            }
            let copy = View { addr: free, ..*view };
            free += bytes(view);
            copy
        };
        let inputs: SmallVec<[View; 2]> = launch.inputs.iter().map(&mut aligned).collect();
        let outputs: SmallVec<[View; 1]> = launch.outputs.iter().map(&mut aligned).collect();
        let Some(at) = ConvolutionAddresses::of(&inputs, &outputs) else {
            unreachable!("launched with input, weight and result below")
        };
        copy_moved(gpu, &launch.inputs, &inputs)?;
        gpu.convolution(&self.0, at, launch.workspace)?;
        copy_moved(gpu, &outputs, &launch.outputs)
    }
}

/// Copies each view to the one that has its elements elsewhere, if there is one.
fn copy_moved(gpu: &mut dyn Submit, from: &[View], to: &[View]) -> Result<()> {
    for (from, to) in from.iter().zip(to).filter(|(from, to)| from.addr != to.addr) {
        let copy = Launch { op: COPY, inputs: smallvec![*from], outputs: smallvec![*to], workspace: 0 };
        COPY.operation().launch_cuda(gpu, &copy)?;
    }
    Ok(())
}

fn is_aligned(view: &View) -> bool {
    view.addr.is_multiple_of(ALIGNMENT)
}

/// Bytes of a contiguous operand, with what follows it to a part of a workspace.
fn bytes(view: &View) -> u64 {
    ((view.layout.count() * view.dtype.size()) as u64).next_multiple_of(PART)
}

/// Computes a convolution by the library; `None` if the device has none for it, or a matrix product or other kernels do
/// better: for windows of one element in f32, with a bias or with the channels first in memory, for many channels in f32, and
/// where the zeros after the input are a bucket's.
pub(super) fn convolution<'s, T: Real, const N: usize>(
    operands: &Operands<'_, 's, T>,
    config: &ConvConfig<N>,
    sizes: &Sizes<'s, N>,
) -> Result<Option<Tensor<'s, T>>> {
    let scope = operands.scope();
    let is_of_one =
        config.groups == 1 && (sizes.kernel, config.stride, config.padding) == ([1; N], [1; N], [0; N]);
    let x = Operand { view: operands.x.view(operands.op)?, marks: operands.x.raw.marks };
    // A product adds the bias itself, and reads the input in either order.
    let is_product = is_of_one
        && (T::DTYPE == DType::F32 || operands.bias.is_some() || !lies_in(&x.view, &channels_last(N)));
    let channels = config.groups * sizes.outer;
    let is_wide = T::DTYPE == DType::F32 && config.groups == 1 && channels > WIDE;
    let by_library = T::DTYPE.is_computed_in_f32();
    if !by_library || is_product || is_wide || (2..N + 2).any(|axis| x.marks.get(axis).is_some()) {
        return Ok(None);
    }
    let y = dims(operands.x, sizes, &[channels]);
    let last = request::<T, N>(operands, config, &y);
    if last.y.contains(&0) || last.x.contains(&0) {
        return Ok(None);
    }
    // A transform may take two images for one of complex numbers: what lies in the padding would reach real rows.
    let may_transform = scope.numerics().fourier && x.marks.get(0).is_none();
    let (in_order, channels_last): (Shape, Shape) = ((0..N + 2).collect(), channels_last(N));
    let is_first = !lies_in(&x.view, &channels_last) && lies_in(&x.view, &in_order);
    let Some(of) = supported(scope, &last, is_first, may_transform)? else { return Ok(None) };
    let order = match of.order {
        Order::ChannelsLast => &channels_last,
        Order::ChannelsFirst => &in_order,
    };
    let marks = PaddedDims::NONE.with(0, x.marks.get(0));
    let (x, _x) = lines(operands, x, order)?;
    let (w, _w) = lines(operands, operands.w, order)?;
    let mut shape: Shape = y.iter().map(|dim| dim.raw.size).collect();
    if of.order == Order::ChannelsFirst {
        shape[1..].rotate_right(1);
    }
    let mut y: Tensor<'s, T> = compute(scope, Op::from(ByLibrary(of)), &[x.view, w.view], &shape, marks)?;
    if let Some(mut bias) = operands.bias {
        if of.order == Order::ChannelsFirst {
            // For each place of a channel: `[channels, 1..]`.
            let (mut shape, mut strides) = (Shape::from_elem(1, N + 1), Shape::from_elem(0, N + 1));
            (shape[0], strides[0]) = (channels, bias.view.layout.strides()[0]);
            bias.view.layout = Layout::strided(&shape, &strides)?;
        }
        let mut call = Call::new(of_reals!(k::floats::biased, k::doubles::biased), &y)?;
        call.operand(bias);
        y = call.launch()?;
    }
    if of.order == Order::ChannelsFirst {
        return Ok(Some(y));
    }
    let axes: Shape = [0, N + 1].into_iter().chain(1..=N).collect();
    permute(&y, &axes).map(Some)
}

/// The axes of a tensor with its channels in the second place, in the order that has them last.
fn channels_last(places: usize) -> Shape {
    std::iter::once(0).chain(2..places + 2).chain([1]).collect()
}

/// Returns the request in the order in which the library computes it; `None` if it does in neither.
///
/// In f32, the library computes channels first as they are. In 16 bits it would copy them to have them last, as its tensor cores
/// read them, which our own copy does in less time.
fn supported(
    scope: Scope<'_>,
    last: &Convolution,
    is_first: bool,
    may_transform: bool,
) -> Result<Option<Convolution>> {
    let last = Convolution { tf32: scope.numerics().concerning(last.dtype).tf32, ..*last };
    let is_full = last.dtype == DType::F32 && !last.tf32;
    let may_transform = may_transform && last.groups == 1;
    let fourier = match (is_first, may_transform) {
        _ if !is_full => None,
        (true, true) => Some(Fourier::Allowed),
        (true, false) => Some(Fourier::Never),
        // Copies are worth it for a transform alone.
        (false, true) => Some(Fourier::Only),
        (false, false) => None,
    };
    let first = fourier.map(|fourier| Convolution { order: Order::ChannelsFirst, fourier, ..last });
    for of in first.into_iter().chain([last]) {
        if scope.supports(&Op::from(ByLibrary(of)))? {
            return Ok(Some(of));
        }
    }
    Ok(None)
}

/// The convolution of images that are one line high, if `N` is 1.
fn request<T: Real, const N: usize>(
    operands: &Operands<'_, '_, T>,
    config: &ConvConfig<N>,
    y: &[Dim<'_>],
) -> Convolution {
    let (x, w) = (operands.x.sizes(), operands.w.view.layout.shape());
    // A window of one element has no two that could be apart.
    let dilation: [usize; N] = std::array::from_fn(|at| if w[2 + at] == 1 { 1 } else { config.dilation[at] });
    Convolution {
        dtype: T::DTYPE,
        order: Order::ChannelsLast,
        x: image(x[0], &x[2..], x[1]),
        w: image(w[0], &w[2..], w[1]),
        y: [y[0].raw.size, if N == 1 { 1 } else { y[1].raw.size }, y[N].raw.size, y[N + 1].raw.size],
        stride: plane(config.stride, 1),
        padding: plane(config.padding, 0),
        dilation: plane(dilation, 1),
        groups: config.groups,
        tf32: false,
        fourier: Fourier::Never,
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

/// Returns whether the dimensions, in the order of `axes`, are contiguous in memory.
fn lies_in(view: &View, axes: &[usize]) -> bool {
    view.layout.permuted(axes).is_contiguous()
}

/// Returns an operand with its dimensions in the order of `axes`, contiguous as the library wants it; the second value owns its
/// memory if that takes a copy.
fn lines<'s, T: Real>(
    operands: &Operands<'_, 's, T>,
    of: Operand,
    axes: &[usize],
) -> Result<(Operand, Option<Tensor<'s, T>>)> {
    let mut moved = of;
    moved.view.layout = of.view.layout.permuted(axes);
    if moved.view.layout.is_contiguous() {
        return Ok((moved, None));
    }
    let shape: Shape = moved.view.layout.shape().into();
    let copy = compute::<T>(operands.scope(), COPY, &[moved.view], &shape, PaddedDims::NONE)?;
    Ok((Operand { view: copy.raw.view(), marks: PaddedDims::NONE }, Some(copy)))
}

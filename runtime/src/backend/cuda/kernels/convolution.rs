//! Convolutions, as an operation asks a library for them.

use crate::{DType, backend::View};

/// The order of the dimensions of a convolution's operands in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Order {
    /// `[N, H, W, C]`: the channels of a place lie next to each other.
    ChannelsLast,
    /// `[N, C, H, W]`: the places of a channel lie next to each other.
    ChannelsFirst,
}

/// Whether a convolution may be computed by a Fourier transform, which rounds otherwise than sums of products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fourier {
    /// By sums of products alone.
    Never,
    /// Where the library takes it for the fastest.
    Allowed,
    /// Where the library takes it for the fastest, and not at all elsewhere.
    Only,
}

/// A convolution of images: `x` is `[N, H, W, C]`, `w` is `[channels of the result, window, window, C / groups]`, the result
/// `[N, H', W', channels]`, all contiguous in the same order of memory. The window is not mirrored, zeros surround the
/// image, and sums are f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Convolution {
    /// Element type of all three.
    pub(crate) dtype: DType,
    /// In which order the dimensions lie in memory; the shapes below name them as with channels last.
    pub(crate) order: Order,
    /// Shape of the input.
    pub(crate) x: [usize; 4],
    /// Shape of the weight.
    pub(crate) w: [usize; 4],
    /// Shape of the result.
    pub(crate) y: [usize; 4],
    /// Elements from one window to the next.
    pub(crate) stride: [usize; 2],
    /// Zeros on each side.
    pub(crate) padding: [usize; 2],
    /// Elements from one element of a window to the next.
    pub(crate) dilation: [usize; 2],
    /// Number of parts into which the channels are divided.
    pub(crate) groups: usize,
    /// If f32 may be rounded to TF32.
    pub(crate) tf32: bool,
    /// If it may be computed by a Fourier transform, which the library has for channels first alone.
    pub(crate) fourier: Fourier,
}

/// Addresses of a convolution's operands on the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConvolutionAddresses {
    /// The input.
    pub(crate) x: u64,
    /// The weight.
    pub(crate) w: u64,
    /// The result.
    pub(crate) y: u64,
}

impl ConvolutionAddresses {
    /// Returns the addresses of a launch with input and weight; `None` if it has other operands.
    pub(crate) fn of(inputs: &[View], outputs: &[View]) -> Option<Self> {
        match (inputs, outputs) {
            ([x, w], [y]) => Some(Self { x: x.addr, w: w.addr, y: y.addr }),
            _ => None,
        }
    }
}

//! Parameters of pooling.

use crate::{Error, Result, ops::setters::setters};

/// Parameters of a maximum over windows of `N` dimensions: [`max_pool1d`](super::max_pool1d),
/// [`max_pool2d`](super::max_pool2d).
///
/// The methods set all dimensions to one value; the fields have a value for each.
///
/// ```
/// use graphable::ops::MaxPoolConfig;
///
/// let config = MaxPoolConfig::<2>::new(3).stride(2).padding(1);
/// assert_eq!((config.kernel, config.stride, config.ceil_mode), ([3, 3], [2, 2], false));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MaxPoolConfig<const N: usize> {
    /// Sizes of a window.
    pub kernel: [usize; N],
    /// Elements of the input from one window to the next.
    pub stride: [usize; N],
    /// Places around the input that windows may cover; at most half a window.
    pub padding: [usize; N],
    /// Elements of the input from one element of a window to the next.
    pub dilation: [usize; N],
    /// If set, a last window has a result even if the input and its padding fill it only in part, lacking less than a stride.
    pub ceil_mode: bool,
}

/// Parameters of a mean over windows of `N` dimensions: [`avg_pool1d`](super::avg_pool1d),
/// [`avg_pool2d`](super::avg_pool2d).
///
/// ```
/// use graphable::ops::AvgPoolConfig;
///
/// let config = AvgPoolConfig::<1>::new(2);
/// assert_eq!((config.stride, config.padding, config.count_include_pad), ([2], [0], true));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AvgPoolConfig<const N: usize> {
    /// Sizes of a window.
    pub kernel: [usize; N],
    /// Elements of the input from one window to the next.
    pub stride: [usize; N],
    /// Zeros around the input; at most half a window.
    pub padding: [usize; N],
    /// If set, a last window has a result even if the input and its padding fill it only in part, lacking less than a stride.
    pub ceil_mode: bool,
    /// If set, the zeros of the padding count as elements.
    pub count_include_pad: bool,
}

setters! { MaxPoolConfig:
    /// Sets the stride of all dimensions.
    stride;
    /// Sets the padding of all dimensions.
    padding;
    /// Sets the dilation of all dimensions.
    dilation;
}

setters! { AvgPoolConfig:
    /// Sets the stride of all dimensions.
    stride;
    /// Sets the padding of all dimensions.
    padding;
}

impl<const N: usize> MaxPoolConfig<N> {
    /// Windows of a size, one after the other.
    #[must_use]
    pub const fn new(kernel: usize) -> Self {
        Self { kernel: [kernel; N], stride: [kernel; N], padding: [0; N], dilation: [1; N], ceil_mode: false }
    }

    pub(super) fn windows(&self, op: &'static str) -> Result<[Window; N]> {
        let Self { kernel, stride, padding, dilation, ceil_mode } = *self;
        windows(op, kernel, stride, padding, dilation, ceil_mode)
    }
}

impl<const N: usize> AvgPoolConfig<N> {
    /// Windows of a size, one after the other.
    #[must_use]
    pub const fn new(kernel: usize) -> Self {
        Self {
            kernel: [kernel; N],
            stride: [kernel; N],
            padding: [0; N],
            ceil_mode: false,
            count_include_pad: true,
        }
    }

    pub(super) fn windows(&self, op: &'static str) -> Result<[Window; N]> {
        let Self { kernel, stride, padding, ceil_mode, .. } = *self;
        windows(op, kernel, stride, padding, [1; N], ceil_mode)
    }
}

/// A window along one dimension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) kernel: usize,
    pub(super) stride: usize,
    pub(super) padding: usize,
    pub(super) dilation: usize,
    ceil_mode: bool,
}

fn windows<const N: usize>(
    op: &'static str,
    kernel: [usize; N],
    stride: [usize; N],
    padding: [usize; N],
    dilation: [usize; N],
    ceil_mode: bool,
) -> Result<[Window; N]> {
    let windows = std::array::from_fn(|i| Window {
        kernel: kernel[i],
        stride: stride[i],
        padding: padding[i],
        dilation: dilation[i],
        ceil_mode,
    });
    windows.iter().try_for_each(|window: &Window| window.check(op))?;
    Ok(windows)
}

impl Window {
    fn check(&self, op: &'static str) -> Result<()> {
        let values =
            [("the kernel", self.kernel), ("the stride", self.stride), ("the dilation", self.dilation)];
        if let Some((what, _)) = values.iter().find(|(_, value)| *value == 0) {
            return Err(Error::Argument { op, reason: format!("{what} is 0; it must be at least 1") });
        }
        let whole = self.reach().saturating_add(1);
        if self.padding > whole / 2 {
            let reason =
                format!("the padding is {}; it must be at most half a window of {whole}", self.padding);
            return Err(Error::Argument { op, reason });
        }
        Ok(())
    }

    /// Elements from the first one to the last one.
    fn reach(&self) -> usize {
        (self.kernel - 1).saturating_mul(self.dilation)
    }

    /// Returns whether there are as many windows as elements, whatever their number is.
    pub(super) fn keeps_size(&self) -> bool {
        self.stride == 1 && self.reach() == 2 * self.padding
    }

    /// The same windows over `size` elements, without those of their places that are after the padding for certain.
    pub(super) fn within(self, size: usize) -> Self {
        Self { kernel: self.kernel.min((size + 2 * self.padding).div_ceil(self.dilation)), ..self }
    }

    /// The number of windows over `size` elements; `None` if one is larger than all of them, in `ceil_mode` by a stride.
    pub(super) fn count(&self, size: usize) -> Option<usize> {
        let (whole, window) = (size.checked_add(2 * self.padding)?, self.reach().checked_add(1)?);
        if !self.ceil_mode {
            return Some(whole.checked_sub(window)? / self.stride + 1);
        }
        let Some(room) = whole.checked_sub(window) else {
            return (window - whole < self.stride).then_some(1);
        };
        let count = room.div_ceil(self.stride) + 1;
        // The last window begins in the input, or in the padding before it.
        let outside = (count - 1).saturating_mul(self.stride) >= size + self.padding;
        Some(count - usize::from(outside))
    }
}

//! Shapes of convolutions: checked, and computed for the results.

use super::config::{ConvConfig, ConvTransposeConfig};
use crate::{
    Dim, Error, Result, Scope, Tensor,
    ops::check::refuse,
    tensor::{Operand, Shown},
};

/// The most places that kernels of indices count along a dimension.
const LARGEST: usize = i32::MAX as usize;

/// The operands of a convolution.
pub(super) struct Operands<'a, 's, T> {
    pub(super) op: &'static str,
    pub(super) x: &'a Tensor<'s, T>,
    pub(super) w: Operand,
    pub(super) bias: Option<Operand>,
}

/// The shapes of a convolution, after the checks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes<'s, const N: usize> {
    /// Channels of the input that belong to a group.
    pub(super) inner: usize,
    /// Channels of the result that belong to a group.
    pub(super) outer: usize,
    /// Sizes of a window.
    pub(super) kernel: [usize; N],
    /// Sizes of the result, without batch and channels.
    pub(super) out: [Dim<'s>; N],
}

/// A window along one dimension.
struct Window {
    /// Number of the dimension, of the input.
    axis: usize,
    kernel: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
    output_padding: usize,
}

impl Window {
    /// Elements from the first one to the last one.
    fn reach(&self) -> usize {
        self.kernel.saturating_sub(1).saturating_mul(self.dilation)
    }

    /// Returns whether the result is as long as the input, whatever its length is.
    fn keeps_size(&self) -> bool {
        self.stride == 1 && self.output_padding == 0 && self.reach() == self.around()
    }

    /// The padding of both sides.
    fn around(&self) -> usize {
        self.padding.saturating_mul(2)
    }
}

impl<'s, T> Operands<'_, 's, T> {
    pub(super) fn scope(&self) -> Scope<'s> {
        self.x.scope()
    }

    /// The shapes of a convolution.
    pub(super) fn forward<const N: usize>(&self, config: &ConvConfig<N>) -> Result<Sizes<'s, N>> {
        let ConvConfig { stride, padding, dilation, groups } = *config;
        config.check(self.op)?;
        let [outer, inner] = self.channels(N, "[N, C, ..]", "[channels of the result, C / groups, ..]")?;
        let windows = self.windows(stride, padding, dilation, [0; N])?;
        if self.x.size(1) != inner.saturating_mul(groups) {
            let (have, times) = (self.x.size(1), if groups == 1 { "" } else { " in each group" });
            let reason =
                format!("the input has {have} channels in {groups} groups, and the weight {inner}{times}");
            return Err(self.wrong(reason));
        }
        if !outer.is_multiple_of(groups) {
            return Err(
                self.wrong(format!("{outer} channels of the result do not divide into {groups} groups"))
            );
        }
        self.check_bias(outer)?;
        let kernel = windows.each_ref().map(|window| window.kernel);
        let out = self.sizes(&windows, |window| self.size(window))?;
        Ok(Sizes { inner, outer: outer / groups, kernel, out })
    }

    /// The shapes of a transposed convolution.
    pub(super) fn backward<const N: usize>(&self, config: &ConvTransposeConfig<N>) -> Result<Sizes<'s, N>> {
        let ConvTransposeConfig { stride, padding, output_padding, dilation, groups } = *config;
        config.check(self.op)?;
        let [inner, outer] = self.channels(N, "[N, C, ..]", "[C, channels of the result / groups, ..]")?;
        let windows = self.windows(stride, padding, dilation, output_padding)?;
        if self.x.size(1) != inner {
            let reason = format!("the input has {} channels, and the weight {inner}", self.x.size(1));
            return Err(self.wrong(reason));
        }
        if !inner.is_multiple_of(groups) {
            return Err(
                self.wrong(format!("{inner} channels of the input do not divide into {groups} groups"))
            );
        }
        self.check_bias(outer.saturating_mul(groups))?;
        let kernel = windows.each_ref().map(|window| window.kernel);
        let out = self.sizes(&windows, |window| self.transposed_size(window))?;
        Ok(Sizes { inner: inner / groups, outer, kernel, out })
    }

    /// The first two sizes of the weight.
    fn channels(&self, dimensions: usize, input: &str, weight: &str) -> Result<[usize; 2]> {
        let rank = dimensions + 2;
        match *self.w.view.layout.shape() {
            [first, second, ..] if self.w.view.layout.rank() == rank && self.x.rank() == rank => {
                Ok([first, second])
            }
            _ => Err(self.wrong(format!(
                "the input must be `{input}` and the weight `{weight}`, each of {rank} dimensions"
            ))),
        }
    }

    /// The windows of all dimensions. Padding is refused where it would be mixed with what is real: in the channels, and in
    /// dimensions that the windows do not keep as they are.
    fn windows<const N: usize>(
        &self,
        stride: [usize; N],
        padding: [usize; N],
        dilation: [usize; N],
        output_padding: [usize; N],
    ) -> Result<[Window; N]> {
        let windows = std::array::from_fn(|i| Window {
            axis: i + 2,
            kernel: self.w.view.layout.shape()[i + 2],
            stride: stride[i],
            padding: padding[i],
            dilation: dilation[i],
            output_padding: output_padding[i],
        });
        let changed = windows.iter().filter(|window| !window.keeps_size()).map(|window| window.axis);
        refuse(self.op, self.scope(), self.x.raw.marks, std::iter::once(1).chain(changed))?;
        refuse(self.op, self.scope(), self.w.marks, 0..N + 2)?;
        if let Some(bias) = &self.bias {
            refuse(self.op, self.scope(), bias.marks, 0..bias.view.layout.rank())?;
        }
        if windows.iter().any(|window| window.kernel == 0) {
            return Err(
                self.wrong("a window without an element; sizes of the weight must be at least 1".into())
            );
        }
        Ok(windows)
    }

    fn check_bias(&self, channels: usize) -> Result<()> {
        match &self.bias {
            Some(bias) if bias.view.layout.shape() != [channels] => {
                Err(self.wrong(format!("the bias must be [{channels}], one for each channel of the result")))
            }
            _ => Ok(()),
        }
    }

    fn sizes<const N: usize>(
        &self,
        windows: &[Window; N],
        size: impl Fn(&Window) -> Result<usize>,
    ) -> Result<[Dim<'s>; N]> {
        let mut out = [Dim::from(0); N];
        for (out, window) in out.iter_mut().zip(windows) {
            self.check_size(window.axis, self.x.size(window.axis).saturating_add(window.around()))?;
            // Even without an element, and of a dimension that a bucket pads.
            *out = if window.keeps_size() { self.x.dim(window.axis) } else { size(window)?.into() };
        }
        Ok(out)
    }

    fn size(&self, window: &Window) -> Result<usize> {
        let (axis, size) = (window.axis, self.x.size(window.axis));
        let whole = size.saturating_add(window.around());
        match whole.checked_sub(window.reach()).and_then(|places| places.checked_sub(1)) {
            Some(last) => Ok(last / window.stride + 1),
            None => Err(self.wrong(format!(
                "a window reaches over {} elements, and dimension {axis} has {whole} with its padding",
                window.reach().saturating_add(1),
            ))),
        }
    }

    fn transposed_size(&self, window: &Window) -> Result<usize> {
        let (axis, size) = (window.axis, self.x.size(window.axis));
        let Some(last) = size.checked_sub(1) else {
            return Err(self.wrong(format!("dimension {axis} of the input has no element")));
        };
        let whole = last.saturating_mul(window.stride).saturating_add(window.reach());
        let whole = whole.saturating_add(window.output_padding).saturating_add(1);
        self.check_size(axis, whole.saturating_add(window.padding))?;
        match whole.checked_sub(window.around()) {
            Some(size) if size > 0 => Ok(size),
            _ => Err(self.wrong(format!(
                "dimension {axis} of the result has {whole} elements, of which the padding removes {}",
                window.around()
            ))),
        }
    }

    fn check_size(&self, axis: usize, size: usize) -> Result<()> {
        if size <= LARGEST {
            return Ok(());
        }
        Err(self.wrong(format!("dimension {axis} has {size} places; the largest number is {LARGEST}")))
    }

    fn wrong(&self, reason: String) -> Error {
        let mut shown: Vec<Shown<'_>> = vec![self.x.into(), (&self.w).into()];
        shown.extend(self.bias.as_ref().map(Shown::from));
        self.scope().shape_error(self.op, &shown, reason)
    }
}

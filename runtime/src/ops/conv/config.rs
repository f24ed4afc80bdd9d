//! Parameters of convolutions.

use crate::{Error, Result, ops::setters::setters};

/// Parameters of a convolution over `N` dimensions: [`conv1d`](super::conv1d), [`conv2d`](super::conv2d).
///
/// The methods set all dimensions to one value; the fields have a value for each.
///
/// ```
/// use graphable::ops::ConvConfig;
///
/// let config = ConvConfig::<2>::new().stride(2).padding(1);
/// assert_eq!(config, ConvConfig { stride: [2, 2], padding: [1, 1], dilation: [1, 1], groups: 1 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvConfig<const N: usize> {
    /// Elements from one window of the input to the next.
    pub stride: [usize; N],
    /// Zeros before and after each dimension of the input.
    pub padding: [usize; N],
    /// Elements of the input from one element of a window to the next.
    pub dilation: [usize; N],
    /// Number of parts into which the channels are divided; each part of the output sees one part of the input.
    pub groups: usize,
}

/// Parameters of a transposed convolution over `N` dimensions: [`conv_transpose1d`](super::conv_transpose1d),
/// [`conv_transpose2d`](super::conv_transpose2d).
///
/// ```
/// use graphable::ops::ConvTransposeConfig;
///
/// let config = ConvTransposeConfig::<1>::new().stride(2).padding(1);
/// assert_eq!((config.stride, config.output_padding), ([2], [0]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvTransposeConfig<const N: usize> {
    /// Elements of the result from one element of the input to the next.
    pub stride: [usize; N],
    /// Elements that the result lacks on each side of a dimension.
    pub padding: [usize; N],
    /// Elements that the result has in addition at the end of a dimension; less than the stride or the dilation.
    pub output_padding: [usize; N],
    /// Elements of the result from one element of a window to the next.
    pub dilation: [usize; N],
    /// Number of parts into which the channels are divided; each part of the output sees one part of the input.
    pub groups: usize,
}

macro_rules! groups {
    ($config:ident) => {
        impl<const N: usize> $config<N> {
            /// Divides the channels into this number of groups.
            #[must_use]
            pub const fn groups(mut self, groups: usize) -> Self {
                self.groups = groups;
                self
            }
        }

        impl<const N: usize> Default for $config<N> {
            fn default() -> Self {
                Self::new()
            }
        }
    };
}

setters! { ConvConfig:
    /// Sets the stride of all dimensions.
    stride;
    /// Sets the padding of all dimensions.
    padding;
    /// Sets the dilation of all dimensions.
    dilation;
}

groups!(ConvConfig);
groups!(ConvTransposeConfig);

setters! { ConvTransposeConfig:
    /// Sets the stride of all dimensions.
    stride;
    /// Sets the padding of all dimensions.
    padding;
    /// Sets the additional elements of all dimensions.
    output_padding;
    /// Sets the dilation of all dimensions.
    dilation;
}

impl<const N: usize> ConvConfig<N> {
    /// Creates a configuration with a stride and dilation of 1, no padding, and one group.
    #[must_use]
    pub const fn new() -> Self {
        Self { stride: [1; N], padding: [0; N], dilation: [1; N], groups: 1 }
    }

    pub(super) fn check(&self, op: &'static str) -> Result<()> {
        check_positive(op, "stride", &self.stride)?;
        check_positive(op, "dilation", &self.dilation)?;
        check_positive(op, "groups", &[self.groups])
    }
}

impl<const N: usize> ConvTransposeConfig<N> {
    /// Creates a configuration with a stride and dilation of 1, no padding, and one group.
    #[must_use]
    pub const fn new() -> Self {
        Self { stride: [1; N], padding: [0; N], output_padding: [0; N], dilation: [1; N], groups: 1 }
    }

    pub(super) fn check(&self, op: &'static str) -> Result<()> {
        check_positive(op, "stride", &self.stride)?;
        check_positive(op, "dilation", &self.dilation)?;
        check_positive(op, "groups", &[self.groups])?;
        for axis in 0..N {
            let (more, stride, dilation) =
                (self.output_padding[axis], self.stride[axis], self.dilation[axis]);
            if more >= stride.max(dilation) {
                let reason = format!(
                    "the output padding is {more}; it must be less than the stride ({stride}) or the dilation ({dilation})"
                );
                return Err(Error::Argument { op, reason });
            }
        }
        Ok(())
    }
}

fn check_positive(op: &'static str, what: &str, values: &[usize]) -> Result<()> {
    if !values.contains(&0) {
        return Ok(());
    }
    Err(Error::Argument { op, reason: format!("{what} is 0; it must be at least 1") })
}

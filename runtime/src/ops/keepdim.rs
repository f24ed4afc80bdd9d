//! Reductions that leave a dimension of size 1.

use super::{composed::composed, unsqueeze};
use crate::{Number, Real, Result, Tensor};

macro_rules! keepdim {
    ($($(#[$doc:meta])* $name:ident of $plain:ident <$($t:ident: $bound:ident)?> $of:ty $(, $more:ident: $ty:ty = $given:literal)?;)*) => {$(
        #[doc = concat!("Computes [`", stringify!($plain), "`](super::", stringify!($plain), "()), with a dimension of size 1 in place of `axis`.")]
        $(#[$doc])*
        ///
        /// ```
        /// # use graphable::prelude::*;
        /// # let mut rt = Runtime::new(Device::cpu())?;
        /// # let step = rt.step()?;
        /// let x = step.tensor(&[2, 3], &[1.0f32, 2.0, 6.0, 4.0, 5.0, 9.0])?;
        #[doc = concat!("let y = ops::", stringify!($name), "(&x, 1", $(", ", stringify!($given),)? ")?;")]
        /// assert_eq!(y.shape(), [2, 1]);
        /// # Ok::<(), Error>(())
        /// ```
        ///
        /// # Errors
        #[doc = concat!("See [`", stringify!($plain), "`](super::", stringify!($plain), "()).")]
        pub fn $name<'s $(, $t: $bound)?>(
            x: &Tensor<'s, $of>,
            axis: usize,
            $($more: $ty,)?
        ) -> Result<Tensor<'s, $of>> {
            composed(stringify!($name), || unsqueeze(&super::$plain(x, axis $(, $more)?)?, axis))
        }
    )*};
}

keepdim! {
    /// Corresponds to `torch.sum` with `keepdim=True`.
    sum_keepdim of sum <T: Number> T;
    /// Corresponds to `torch.mean` with `keepdim=True`.
    mean_keepdim of mean <T: Number> T;
    /// Corresponds to `torch.amax` with `keepdim=True`.
    max_keepdim of max <T: Number> T;
    /// Corresponds to `torch.amin` with `keepdim=True`.
    min_keepdim of min <T: Number> T;
    /// Corresponds to `torch.prod` with `keepdim=True`.
    prod_keepdim of prod <T: Number> T;
    /// Corresponds to `torch.logsumexp` with `keepdim=True`.
    logsumexp_keepdim of logsumexp <T: Real> T;
    /// Corresponds to `torch.var` with `keepdim=True`.
    var_keepdim of var <T: Real> T, correction: usize = 1;
    /// Corresponds to `torch.std` with `keepdim=True`.
    std_keepdim of std <T: Real> T, correction: usize = 1;
}

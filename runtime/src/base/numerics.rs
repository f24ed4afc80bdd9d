//! Switches of the numerics: precision that products may give up for speed, and results that repeat bit by bit.

use std::fmt;

use crate::DType;

/// The precision of a runtime's computations, and whether results repeat.
///
/// The default is full precision. [`Runtime::set_numerics`](crate::Runtime::set_numerics) sets the switches of a runtime, and
/// [`GraphBuilder::numerics`](crate::GraphBuilder::numerics) those of one graph. They are part of the keys of recordings: a
/// recording made with other switches is not replayed, and is found again when its switches are.
///
/// ```
/// use graphable::{Numerics, prelude::*};
///
/// # fn main() -> Result<()> {
/// let rt = Runtime::new(Device::best()?)?;
/// rt.set_numerics(Numerics::default().tf32(true).deterministic(true));
/// assert_eq!(rt.numerics().to_string(), "TF32, deterministic");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Numerics {
    /// Lets products of f32 matrices and convolutions of f32 round their operands to TF32: 10 bits of mantissa instead of 23,
    /// on tensor cores, with sums in f32. Off by default.
    ///
    /// It concerns the products and convolutions that a GPU's libraries compute ([`ops::matmul`](crate::ops::matmul),
    /// [`ops::linear`](crate::ops::linear), recurrent cells, convolutions), from compute capability 8.0 on. Attention and
    /// products of experts have kernels of their own, which compute f32 in full precision. PyTorch has two switches for it,
    /// `torch.backends.cuda.matmul.allow_tf32` (off by default) and `torch.backends.cudnn.allow_tf32` (on by default).
    pub tf32: bool,
    /// Lets products of f16 and bf16 matrices whose inner dimension is split between blocks round the partial sums to 16 bits
    /// before they are added. Off by default: partial sums are f32. Within a block, sums are f32 in either case.
    ///
    /// It concerns products by cuBLASLt. PyTorch has two switches for it, which are on by default:
    /// `torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction`, and the same for `bf16`.
    pub reduced_precision_reduction: bool,
    /// Lets convolutions of f32 be computed by a Fourier transform where cuDNN expects that to be the fastest. Off by default.
    ///
    /// Its error is relative to the largest values of an image rather than to those below a window, so small values beside
    /// large ones lose digits, and a NaN or an infinity spreads over its image. Of values of one size, it is as exact as a sum
    /// of products. It concerns convolutions by cuDNN of one group, with at most 128 channels of the result, a batch that no
    /// bucket pads, and without [`tf32`](Self::tf32). PyTorch has no switch for it: it always takes the algorithm that cuDNN
    /// expects to be the fastest.
    pub fourier: bool,
    /// Chooses only algorithms by which equal programs return equal bits in every run on the same kind of GPU, with the same
    /// versions of its libraries, and rejects operations for which that is not known with
    /// [`Error::NotDeterministic`](crate::Error::NotDeterministic). Off by default.
    ///
    /// Every operation of this crate has deterministic kernels; what varies from run to run otherwise is which algorithm of
    /// cuBLASLt was measured to be the fastest for a product. In this mode the library's own choice is used, without a
    /// measurement, which may be slower. An operation of your own is rejected unless it is declared with
    /// [`CustomOpBuilder::deterministic`](crate::custom::CustomOpBuilder::deterministic). Work that eager regions launch on
    /// the stream themselves is not seen. PyTorch's is `torch.use_deterministic_algorithms`.
    pub deterministic: bool,
}

impl Numerics {
    /// Sets [`tf32`](Self::tf32).
    #[must_use]
    pub fn tf32(mut self, on: bool) -> Self {
        self.tf32 = on;
        self
    }

    /// Sets [`reduced_precision_reduction`](Self::reduced_precision_reduction).
    #[must_use]
    pub fn reduced_precision_reduction(mut self, on: bool) -> Self {
        self.reduced_precision_reduction = on;
        self
    }

    /// Sets [`fourier`](Self::fourier).
    #[must_use]
    pub fn fourier(mut self, on: bool) -> Self {
        self.fourier = on;
        self
    }

    /// Sets [`deterministic`](Self::deterministic).
    #[must_use]
    pub fn deterministic(mut self, on: bool) -> Self {
        self.deterministic = on;
        self
    }

    /// The number of combinations.
    pub(crate) const COMBINATIONS: usize = 16;

    /// Returns the switches as bits.
    pub(crate) fn bits(self) -> u8 {
        u8::from(self.tf32)
            | u8::from(self.reduced_precision_reduction) << 1
            | u8::from(self.deterministic) << 2
            | u8::from(self.fourier) << 3
    }

    /// Returns the switches whose [bits](Self::bits) these are.
    pub(crate) const fn of_bits(bits: u8) -> Self {
        Self {
            tf32: bits & 1 != 0,
            reduced_precision_reduction: bits & 2 != 0,
            fourier: bits & 8 != 0,
            deterministic: bits & 4 != 0,
        }
    }

    /// Returns the switches that concern matrix products of this type; the others are off.
    pub(crate) fn concerning(self, dtype: DType) -> Self {
        Self {
            tf32: self.tf32 && dtype == DType::F32,
            reduced_precision_reduction: self.reduced_precision_reduction
                && matches!(dtype, DType::F16 | DType::Bf16),
            fourier: false,
            deterministic: self.deterministic && dtype.is_computed_in_f32(),
        }
    }

    /// Returns the word of a key; `None` for the default, so that the keys of most programs are no longer for it.
    ///
    /// No other word at this place of a key has its highest bit set: they are counts.
    #[inline]
    pub(crate) fn key_word(self) -> Option<u64> {
        (self != Self::default()).then(|| 1 << 63 | u64::from(self.bits()))
    }
}

impl fmt::Display for Numerics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (self.tf32, "TF32"),
            (self.reduced_precision_reduction, "reduced-precision reductions"),
            (self.fourier, "Fourier transforms"),
            (self.deterministic, "deterministic"),
        ];
        let on: Vec<&str> = names.into_iter().filter(|(on, _)| *on).map(|(_, name)| name).collect();
        f.write_str(if on.is_empty() { "full precision" } else { "" })?;
        f.write_str(&on.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_has_its_own_word_and_text() {
        let all = (0..16u8).map(|bits| {
            Numerics::default()
                .tf32(bits & 1 != 0)
                .reduced_precision_reduction(bits & 2 != 0)
                .deterministic(bits & 4 != 0)
                .fourier(bits & 8 != 0)
        });
        let all: Vec<Numerics> = all.collect();
        assert_eq!(all.iter().map(|n| n.bits()).collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
        assert_eq!(all, (0..16).map(Numerics::of_bits).collect::<Vec<_>>());
        assert_eq!(all[0].key_word(), None);
        assert!(all[1..].iter().all(|n| n.key_word().is_some_and(|word| word >> 63 == 1)));
        let texts: std::collections::HashSet<String> = all.iter().map(Numerics::to_string).collect();
        assert_eq!(texts.len(), 16);
        assert_eq!(all[0].to_string(), "full precision");
        assert_eq!(all[7].to_string(), "TF32, reduced-precision reductions, deterministic");
        assert_eq!(all[12].to_string(), "Fourier transforms, deterministic");
    }

    #[test]
    fn a_switch_concerns_its_types_only() {
        let all = Numerics::of_bits(15);
        assert_eq!(all.concerning(DType::F32), Numerics::default().tf32(true).deterministic(true));
        let of_16_bits = Numerics::default().reduced_precision_reduction(true).deterministic(true);
        assert_eq!([DType::F16, DType::Bf16].map(|dtype| all.concerning(dtype)), [of_16_bits; 2]);
        // Sums of integers do not depend on their order.
        assert_eq!([DType::I32, DType::Bool].map(|dtype| all.concerning(dtype)), [Numerics::default(); 2]);
    }
}

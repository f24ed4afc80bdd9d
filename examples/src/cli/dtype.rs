//! `--dtype` and `--activations` of programs that run a model.

use clap::{ValueEnum, builder::PossibleValue};
use graphable::{BlockFormat, DType, Device};

use crate::checkpoint::Blocks;

/// `--dtype`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DTypeArg {
    /// What the file stores; for weights in f16 or in quantised blocks f32 on the CPU and bf16 on a GPU.
    Auto,
    /// 32 bits.
    F32,
    /// 16 bits, 8 of them exponent.
    Bf16,
    /// 16 bits, 5 of them exponent.
    F16,
    /// Matrices in blocks stay as the file has them.
    Stored,
    /// Matrices become blocks of this format.
    Blocks(BlockFormat),
}

impl ValueEnum for DTypeArg {
    fn value_variants<'a>() -> &'a [Self] {
        use BlockFormat::*;
        const ALL: &[DTypeArg] = &[
            DTypeArg::Auto,
            DTypeArg::F32,
            DTypeArg::Bf16,
            DTypeArg::F16,
            DTypeArg::Stored,
            DTypeArg::Blocks(Q8_0),
            DTypeArg::Blocks(Q6_K),
            DTypeArg::Blocks(Q5_1),
            DTypeArg::Blocks(Q5_0),
            DTypeArg::Blocks(Q5_K),
            DTypeArg::Blocks(Q4_1),
            DTypeArg::Blocks(Q4_0),
            DTypeArg::Blocks(Q4_K),
            DTypeArg::Blocks(IQ4_NL),
            DTypeArg::Blocks(Q3_K),
            DTypeArg::Blocks(Q2_K),
            DTypeArg::Blocks(F8_E4M3),
            DTypeArg::Blocks(INT4),
        ];
        ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            Self::Auto => (
                "auto",
                "What the file stores; for weights in f16 or in quantised blocks f32 on the CPU and bf16 on a GPU",
            ),
            Self::F32 => ("f32", "32 bits"),
            Self::Bf16 => ("bf16", "16 bits, 8 of them exponent"),
            Self::F16 => ("f16", "16 bits, 5 of them exponent: activations above 65504 are lost"),
            Self::Stored => ("stored", "Matrices in blocks stay as the file has them"),
            Self::Blocks(format) => (super::convert::format_name(*format)?, super::convert::bits(*format)),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

/// `--activations`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Activations {
    /// 32 bits.
    F32,
    /// 16 bits, 8 of them exponent.
    Bf16,
    /// 16 bits, 5 of them exponent: values above 65504 are lost.
    F16,
}

impl From<Activations> for DType {
    fn from(activations: Activations) -> Self {
        match activations {
            Activations::F32 => Self::F32,
            Activations::Bf16 => Self::Bf16,
            Activations::F16 => Self::F16,
        }
    }
}

impl DTypeArg {
    /// Returns a note that `--activations` has no effect, if it was given and has none.
    #[must_use]
    pub fn unused(self, activations: Option<Activations>) -> Option<&'static str> {
        let has_blocks = matches!(self, Self::Stored | Self::Blocks(_));
        (activations.is_some() && !has_blocks).then_some(
            "note: --activations has no effect: activations have the type of the weights, unless these are in blocks; \
             pass --dtype stored, q8_0 or the like",
        )
    }

    /// The type on `device` of a model most of whose weights are `stored` as floats of a type, or in blocks, beside which `activations`
    /// may be asked for; and what becomes of its matrices.
    pub fn of(
        self,
        stored: Option<DType>,
        activations: Option<Activations>,
        device: &Device,
    ) -> (DType, Blocks) {
        let beside_blocks = activations.map_or(DType::F32, DType::from);
        match self {
            Self::F32 => (DType::F32, Blocks::Never),
            Self::Bf16 => (DType::Bf16, Blocks::Never),
            Self::F16 => (DType::F16, Blocks::Never),
            Self::Auto => (Self::auto(stored, device), Blocks::Never),
            Self::Stored => (beside_blocks, Blocks::Stored),
            Self::Blocks(format) => (beside_blocks, Blocks::Format(format)),
        }
    }

    /// Floats: blocks are opted for, because products with them round activations to 8 bits on the CPU.
    fn auto(stored: Option<DType>, device: &Device) -> DType {
        match stored {
            Some(stored @ (DType::F32 | DType::Bf16)) => stored,
            // Weights in f16 say nothing about activations, which may be above its largest value. The CPU takes the more exact of
            // the other two, a GPU the one of which it reads half the bytes for each token.
            _ if device.is_cpu() => DType::F32,
            _ => DType::Bf16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_can_be_asked_for() {
        let all = DTypeArg::value_variants();
        for &format in BlockFormat::ALL {
            assert!(all.contains(&DTypeArg::Blocks(format)), "{format}");
        }
        assert_eq!(DTypeArg::from_str("int4", false).unwrap(), DTypeArg::Blocks(BlockFormat::INT4));
        assert_eq!(DTypeArg::from_str("q4_k", false).unwrap(), DTypeArg::Blocks(BlockFormat::Q4_K));
    }

    #[test]
    fn auto_is_chosen_by_file_and_device() {
        let (cpu, gpu) = (Device::cpu(), Device::cuda(0));
        let of = |arg: DTypeArg, stored, device| arg.of(stored, None, device);
        for stored in [DType::F32, DType::Bf16] {
            assert_eq!(of(DTypeArg::Auto, Some(stored), &cpu), (stored, Blocks::Never));
            assert_eq!(of(DTypeArg::Auto, Some(stored), &gpu), (stored, Blocks::Never));
            assert_eq!(of(DTypeArg::F16, Some(stored), &gpu), (DType::F16, Blocks::Never));
        }
        for stored in [None, Some(DType::F16)] {
            assert_eq!(of(DTypeArg::Auto, stored, &cpu), (DType::F32, Blocks::Never));
            assert_eq!(of(DTypeArg::Auto, stored, &gpu), (DType::Bf16, Blocks::Never));
            assert_eq!(of(DTypeArg::F16, stored, &cpu), (DType::F16, Blocks::Never));
            assert_eq!(of(DTypeArg::Stored, stored, &cpu), (DType::F32, Blocks::Stored));
        }
        assert_eq!(of(DTypeArg::F32, None, &gpu), (DType::F32, Blocks::Never));
        assert_eq!(of(DTypeArg::Bf16, None, &cpu), (DType::Bf16, Blocks::Never));
        let q8_0 = Blocks::Format(BlockFormat::Q8_0);
        assert_eq!(of(DTypeArg::Blocks(BlockFormat::Q8_0), Some(DType::Bf16), &cpu), (DType::F32, q8_0));
        assert_eq!(of(DTypeArg::Blocks(BlockFormat::Q8_0), Some(DType::Bf16), &gpu), (DType::F32, q8_0));
        assert_eq!(of(DTypeArg::Stored, None, &gpu), (DType::F32, Blocks::Stored));
    }

    #[test]
    fn activations_beside_blocks_can_be_asked_for() {
        let of = |arg: DTypeArg, activations| arg.of(Some(DType::F32), Some(activations), &Device::cuda(0));
        assert_eq!(of(DTypeArg::Stored, Activations::F32), (DType::F32, Blocks::Stored));
        let int4 = Blocks::Format(BlockFormat::INT4);
        assert_eq!(of(DTypeArg::Blocks(BlockFormat::INT4), Activations::F16), (DType::F16, int4));
        assert_eq!(of(DTypeArg::Auto, Activations::Bf16), (DType::F32, Blocks::Never));
        assert_eq!(DTypeArg::Stored.unused(Some(Activations::F16)), None);
        assert_eq!(DTypeArg::F32.unused(None), None);
        assert!(
            DTypeArg::F32.unused(Some(Activations::F16)).is_some_and(|note| note.contains("--dtype stored"))
        );
    }
}

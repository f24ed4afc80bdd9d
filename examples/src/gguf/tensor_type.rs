//! How the elements of a tensor are stored.

use std::fmt;

use graphable::{BlockFormat, DType};

/// How a tensor's elements are stored: as floats, or in blocks of equal size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(non_camel_case_types, reason = "the names that everybody uses")]
pub enum TensorType {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// The upper half of an `f32`.
    BF16,
    /// `d * (q - 8)`, 4 bits.
    Q4_0,
    /// `d * q + m`, 4 bits.
    Q4_1,
    /// `d * (q - 16)`, 5 bits.
    Q5_0,
    /// `d * q + m`, 5 bits.
    Q5_1,
    /// `d * q`, 8 bits, signed.
    Q8_0,
    /// `d * scale * q - m * min`, 2 bits, with 4-bit scales and minima of 16 elements each.
    Q2_K,
    /// `d * scale * (q - 4)`, 3 bits, with 6-bit scales of 16 elements each.
    Q3_K,
    /// `d * scale * q - m * min`, 4 bits, with 6-bit scales and minima of 32 elements each.
    Q4_K,
    /// `d * scale * q - m * min`, 5 bits, with 6-bit scales and minima of 32 elements each.
    Q5_K,
    /// `d * scale * (q - 32)`, 6 bits, with 8-bit scales of 16 elements each.
    Q6_K,
    /// `d * value[q]`, 4 bits, with 16 values that are not evenly spaced.
    IQ4_NL,
}

impl TensorType {
    /// Every type, in the order of their numbers.
    pub const ALL: [Self; 14] = [
        Self::F32,
        Self::F16,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q2_K,
        Self::Q3_K,
        Self::Q4_K,
        Self::Q5_K,
        Self::Q6_K,
        Self::IQ4_NL,
        Self::BF16,
    ];

    /// The number of the type in a file (`ggml_type`).
    pub fn code(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Q4_0 => 2,
            Self::Q4_1 => 3,
            Self::Q5_0 => 6,
            Self::Q5_1 => 7,
            Self::Q8_0 => 8,
            Self::Q2_K => 10,
            Self::Q3_K => 11,
            Self::Q4_K => 12,
            Self::Q5_K => 13,
            Self::Q6_K => 14,
            Self::IQ4_NL => 20,
            Self::BF16 => 30,
        }
    }

    /// The type with this number in a file.
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|ty| ty.code() == code)
    }

    /// The type of the elements, if they are stored one by one.
    pub fn float(self) -> Option<DType> {
        match self {
            Self::F32 => Some(DType::F32),
            Self::F16 => Some(DType::F16),
            Self::BF16 => Some(DType::Bf16),
            _ => None,
        }
    }

    /// The format of the blocks, unless the elements are stored one by one.
    pub fn blocks(self) -> Option<BlockFormat> {
        match self {
            Self::F32 | Self::F16 | Self::BF16 => None,
            Self::Q4_0 => Some(BlockFormat::Q4_0),
            Self::Q4_1 => Some(BlockFormat::Q4_1),
            Self::Q5_0 => Some(BlockFormat::Q5_0),
            Self::Q5_1 => Some(BlockFormat::Q5_1),
            Self::Q8_0 => Some(BlockFormat::Q8_0),
            Self::Q2_K => Some(BlockFormat::Q2_K),
            Self::Q3_K => Some(BlockFormat::Q3_K),
            Self::Q4_K => Some(BlockFormat::Q4_K),
            Self::Q5_K => Some(BlockFormat::Q5_K),
            Self::Q6_K => Some(BlockFormat::Q6_K),
            Self::IQ4_NL => Some(BlockFormat::IQ4_NL),
        }
    }

    /// This type, if its blocks divide rows of `width` elements, or the type that llama.cpp takes instead: for the formats of 256
    /// elements, one of 32 that is no less exact; where 32 does not divide either, F16.
    pub fn fitting(self, width: usize) -> Self {
        if width.is_multiple_of(self.block_elements()) {
            return self;
        }
        let instead = match self {
            Self::Q2_K | Self::Q3_K => Self::IQ4_NL,
            Self::Q4_K => Self::Q5_0,
            Self::Q5_K => Self::Q5_1,
            Self::Q6_K => Self::Q8_0,
            _ => Self::F16,
        };
        instead.fitting(width)
    }

    /// The type whose blocks are of this format.
    pub fn of_blocks(format: BlockFormat) -> Option<Self> {
        Self::ALL.into_iter().find(|ty| ty.blocks() == Some(format))
    }

    /// Elements of one block.
    pub fn block_elements(self) -> usize {
        self.blocks().map_or(1, BlockFormat::elements)
    }

    /// Bytes of one block.
    pub fn block_bytes(self) -> usize {
        match (self.blocks(), self) {
            (Some(format), _) => format.bytes(),
            (None, Self::F32) => 4,
            (None, _) => 2,
        }
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_of_a_type_that_does() {
        for ty in TensorType::ALL {
            for width in [1, 31, 32, 48, 64, 256, 576, 1536] {
                let taken = ty.fitting(width);
                assert!(width.is_multiple_of(taken.block_elements()), "{ty} {width}");
                let fits = width.is_multiple_of(ty.block_elements());
                assert_eq!(taken == ty, fits, "{ty} {width}");
                // What is stored instead takes no fewer bits, so it is no less exact.
                let bits = |ty: TensorType| ty.block_bytes() as f64 / ty.block_elements() as f64;
                assert!(bits(taken) >= bits(ty), "{ty} {width}");
            }
        }
        assert_eq!(TensorType::Q4_K.fitting(576), TensorType::Q5_0);
        assert_eq!(TensorType::Q4_K.fitting(48), TensorType::F16);
    }
}

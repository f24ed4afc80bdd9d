//! The formats.

use std::fmt;

use super::{
    float8,
    parts::{LARGEST, Parts},
};

/// A format of weights in blocks. Most are those of GGUF files (`ggml-common.h`): the bytes of a block are those of a file.
/// [`F8_E4M3`](Self::F8_E4M3) and [`INT4`](Self::INT4) hold what safetensors files have in tensors beside each other, an element's
/// bits in one and its scale in another, put together in blocks ([`QuantizedTensors`](crate::load::QuantizedTensors)).
///
/// A block holds the integers `q` of 32 or 256 neighbours in a row, or 64 floats of 8 bits, and scales from which their values
/// follow. Rows are whole blocks, so the format divides the width of a [`Weight`](crate::Weight).
///
/// ```
/// use graphable::BlockFormat;
///
/// let format = BlockFormat::Q8_0;
/// assert_eq!((format.elements(), format.bytes(), format.to_string()), (32, 34, "Q8_0".into()));
/// let row: Vec<f32> = (0..32).map(|i| i as f32 / 31.0).collect();
/// let blocks = format.quantize(&row)?;
/// let mut read = [0.0; 32];
/// format.dequantize(&blocks, &mut read)?;
/// assert!(row.iter().zip(&read).all(|(a, b)| (a - b).abs() <= 0.5 / 127.0 + 1e-3));
/// # Ok::<(), graphable::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(non_camel_case_types, reason = "the names that everybody uses")]
#[non_exhaustive]
pub enum BlockFormat {
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
    /// `d * x`, with floats `x` of 8 bits: a sign, 4 bits of exponent, 3 of mantissa; no infinities, and NaN as `0x7f` and `0xff`
    /// (`float8_e4m3fn`). Bytes: `d` in f32, 64 elements.
    F8_E4M3,
    /// `d * (q - z)`, 4 bits. Bytes: `d` in half precision, `z` as one byte, and 16 bytes of elements: the low halves are the first
    /// 16, the high halves the others.
    INT4,
}

impl BlockFormat {
    /// Every format.
    pub const ALL: &'static [Self] = &[
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
        Self::F8_E4M3,
        Self::INT4,
    ];

    /// Returns the number of elements of a block.
    pub const fn elements(self) -> usize {
        match self {
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 | Self::Q8_0 | Self::IQ4_NL | Self::INT4 => 32,
            Self::F8_E4M3 => float8::ELEMENTS,
            Self::Q2_K | Self::Q3_K | Self::Q4_K | Self::Q5_K | Self::Q6_K => 256,
        }
    }

    /// Returns the number of bytes of a block.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Q4_0 | Self::IQ4_NL => 2 + 16,
            Self::Q4_1 => 2 + 2 + 16,
            Self::Q5_0 => 2 + 4 + 16,
            Self::Q5_1 => 2 + 2 + 4 + 16,
            Self::Q8_0 => 2 + 32,
            Self::Q2_K => 16 + 64 + 2 + 2,
            Self::Q3_K => 32 + 64 + 12 + 2,
            Self::Q4_K => 2 + 2 + 12 + 128,
            Self::Q5_K => 2 + 2 + 12 + 32 + 128,
            Self::Q6_K => 128 + 64 + 16 + 2,
            Self::F8_E4M3 => float8::HEAD + float8::ELEMENTS,
            Self::INT4 => 2 + 1 + 16,
        }
    }

    /// Returns the number of bytes of a row of `width` elements; `None` if the format does not divide it.
    pub const fn row_bytes(self, width: usize) -> Option<usize> {
        if !width.is_multiple_of(self.elements()) {
            return None;
        }
        (width / self.elements()).checked_mul(self.bytes())
    }

    /// Returns whether values have an offset besides a factor.
    pub(crate) const fn has_minima(self) -> bool {
        matches!(self, Self::Q4_1 | Self::Q5_1 | Self::Q2_K | Self::Q4_K | Self::Q5_K | Self::INT4)
    }

    /// Returns whether elements are floats, which have no [`Parts`].
    pub(crate) const fn has_floats(self) -> bool {
        matches!(self, Self::F8_E4M3)
    }

    /// Returns whether 16 elements share a scale, instead of 32.
    pub(crate) const fn has_small_groups(self) -> bool {
        matches!(self, Self::Q2_K | Self::Q3_K | Self::Q6_K)
    }

    /// Writes the values of the elements of `blocks`, one block after the other; of the formats of GGUF files bit for bit those of
    /// the `gguf` package.
    ///
    /// # Errors
    /// Returns [`Error::Argument`](crate::Error::Argument) if `blocks` are not whole blocks, or `values` has not one place for
    /// each of their elements.
    pub fn dequantize(self, blocks: &[u8], values: &mut [f32]) -> crate::Result<()> {
        let whole = blocks.len().is_multiple_of(self.bytes());
        if !whole || Some(blocks.len()) != self.row_bytes(values.len()) {
            let (bytes, places) = (blocks.len(), values.len());
            return Err(crate::Error::Argument {
                op: "BlockFormat::dequantize",
                reason: format!(
                    "{bytes} bytes and {places} places do not match; a block of {self} is {} bytes, with {} elements",
                    self.bytes(),
                    self.elements()
                ),
            });
        }
        self.dequantize_row(blocks, values);
        Ok(())
    }

    /// As [`dequantize`](Self::dequantize), of lengths that fit; what is left over of the longer one is ignored.
    pub(crate) fn dequantize_row(self, blocks: &[u8], values: &mut [f32]) {
        if self.has_floats() {
            return float8::dequantize(blocks, values);
        }
        let mut parts = Parts::new();
        for (block, values) in blocks.chunks_exact(self.bytes()).zip(values.chunks_exact_mut(self.elements()))
        {
            parts.read(self, block);
            parts.values(values);
        }
    }
}

const _: () = {
    let mut i = 0;
    while i < BlockFormat::ALL.len() {
        assert!(BlockFormat::ALL[i].elements() <= LARGEST);
        i += 1;
    }
};

impl fmt::Display for BlockFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

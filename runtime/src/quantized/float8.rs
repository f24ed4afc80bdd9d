//! Floats of 8 bits, as `float8_e4m3fn` of safetensors files has them: a sign, 4 bits of exponent with a bias of 7, 3 bits of
//! mantissa. There are no infinities: the largest value is 448, and all bits but the sign mean NaN. Whether a weight and its scales
//! in a file fit together is checked in `model/load/quantized/float8.rs`.

use super::BlockFormat;

/// The largest value.
pub(crate) const MOST: f32 = 448.0;
/// The bits that are NaN, with any sign.
pub(crate) const NAN: u8 = 0x7f;
/// Bytes of a block before its elements.
pub(crate) const HEAD: usize = 4;
/// Elements of a block.
pub(crate) const ELEMENTS: usize = 64;

/// The scale of a block.
pub(crate) fn scale(block: &[u8]) -> f32 {
    block.first_chunk().map_or(0.0, |bytes| f32::from_le_bytes(*bytes))
}

/// The value of an element, but for the scale: exact. It is written without branches, so that loops over it become vector
/// instructions.
#[inline(always)]
pub(crate) fn value(bits: u8) -> f32 {
    let size = u32::from(bits & 0x7f);
    // The exponent of f32 has a bias of 127. What has no leading 1 is read with one, and loses it.
    let normal = f32::from_bits((size << 20) + (120 << 23));
    let small = f32::from_bits((size << 20) + (121 << 23)) - 0.015_625;
    let finite = if size < 8 { small } else { normal };
    let size = if size == u32::from(NAN) { f32::NAN } else { finite };
    f32::from_bits(size.to_bits() | u32::from(bits & 0x80) << 24)
}

/// The nearest value, half to even; of what is larger than [`MOST`], that. NaN stays NaN.
pub(crate) fn nearest(v: f32) -> u8 {
    let sign = (v.to_bits() >> 24) as u8 & 0x80;
    let size = v.abs();
    if size.is_nan() {
        return sign | NAN;
    }
    if size >= MOST {
        return sign | 0x7e;
    }
    // Below 2^-6, values are whole multiples of 2^-9. Adding rounds to one, which is in the low bits of the sum.
    if size < 0.015_625 {
        return sign | (size + 16_384.0).to_bits() as u8 & 0x0f;
    }
    // Three bits of mantissa are left, rounded up if more than half is lost, or half and the last of them is 1.
    let bits = size.to_bits();
    let odd = bits >> 20 & 1;
    let rounded = (bits + 0x7_ffff + odd) >> 20;
    sign | (rounded - (120 << 3)) as u8
}

/// The values of blocks.
pub(crate) fn dequantize(blocks: &[u8], values: &mut [f32]) {
    const FORMAT: BlockFormat = BlockFormat::F8_E4M3;
    let blocks = blocks.chunks_exact(FORMAT.bytes());
    for (block, values) in blocks.zip(values.chunks_exact_mut(FORMAT.elements())) {
        let scale = scale(block);
        for (to, &bits) in values.iter_mut().zip(&block[HEAD..]) {
            *to = scale * value(bits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the formula of the format says.
    fn of_formula(bits: u8) -> f64 {
        let (exponent, mantissa) = (i32::from(bits >> 3 & 15), f64::from(bits & 7));
        let size = match exponent {
            0 => mantissa / 8.0 * 2f64.powi(-6),
            15 if mantissa == 7.0 => f64::NAN,
            _ => (1.0 + mantissa / 8.0) * 2f64.powi(exponent - 7),
        };
        if bits & 0x80 == 0 { size } else { -size }
    }

    #[test]
    fn all_values_are_those_of_the_formula() {
        for bits in 0..=u8::MAX {
            let (value, expected) = (f64::from(value(bits)), of_formula(bits));
            assert_eq!(value.is_nan(), expected.is_nan(), "{bits:x}");
            assert_eq!(value.is_sign_negative(), bits >= 0x80, "{bits:x}");
            assert!(value.is_nan() || value.to_bits() == expected.to_bits(), "{bits:x}: {value} {expected}");
            assert_eq!(value.is_nan(), bits & 0x7f == NAN);
        }
    }

    /// Between neighbours, the middle belongs to the even one, and everything else to the nearer one.
    #[test]
    fn the_nearest_value_is_found() {
        for bits in 0..0x7e_u8 {
            let (low, high) = (value(bits), value(bits + 1));
            let middle = (low + high) / 2.0;
            let even = if bits % 2 == 0 { bits } else { bits + 1 };
            for (v, expected) in [
                (low, bits),
                (high, bits + 1),
                (middle, even),
                (middle.next_down(), bits),
                (middle.next_up(), bits + 1),
                (low.next_up(), bits),
                (high.next_down(), bits + 1),
            ] {
                assert_eq!(nearest(v), expected, "{v} between {low} and {high}");
                assert_eq!(nearest(-v), expected | 0x80, "-{v}");
            }
        }
    }

    #[test]
    fn what_is_too_large_becomes_the_largest() {
        for v in [448.0, 448.1, 460.0, 1e9, f32::MAX, f32::INFINITY] {
            assert_eq!((nearest(v), nearest(-v)), (0x7e, 0xfe), "{v}");
        }
        assert_eq!(value(0x7e), MOST);
        assert!(value(nearest(f32::NAN)).is_nan() && value(nearest(-f32::NAN)).is_nan());
        assert_eq!(nearest(1e-45), 0);
        assert_eq!(nearest(-0.0), 0x80);
    }
}

//! Products of integers, which are exact.
//!
//! Bytes with signs are multiplied. Those of activations are never -128, so a product is at most `128 * 127`.

use std::arch::aarch64::*;

/// Products in 16 bits, of which two are sure to fit, or eight if the integers of the format are of six bits or less: `8 * 32 * 127`.
pub(super) mod base {
    use super::*;
    use crate::backend::cpu::kernels::quantized::formats::is_wide;

    /// Multiplies 16 integers. The products are those of four sums.
    #[target_feature(enable = "neon")]
    #[inline]
    pub(in super::super) fn half(q: int8x16_t, p: int8x16_t) -> int32x4_t {
        vpaddlq_s16(of_two(q, p))
    }

    /// As [`half`], of 32 integers.
    #[target_feature(enable = "neon")]
    #[inline]
    pub(in super::super) fn whole<const F: u8>(q: [int8x16_t; 2], p: [int8x16_t; 2]) -> int32x4_t {
        let (first, second) = (of_two(q[0], p[0]), of_two(q[1], p[1]));
        if is_wide(F) {
            vpadalq_s16(vpaddlq_s16(first), second)
        } else {
            vpaddlq_s16(vaddq_s16(first, second))
        }
    }

    /// Sums of two products.
    #[target_feature(enable = "neon")]
    #[inline]
    fn of_two(q: int8x16_t, p: int8x16_t) -> int16x8_t {
        vmlal_high_s8(vmull_s8(vget_low_s8(q), vget_low_s8(p)), q, p)
    }

    /// Multiplies four words of each of four rows by the same words, and adds the products of each row.
    #[target_feature(enable = "neon")]
    #[inline]
    pub(in super::super) fn half_of_four(q: &[int8x16_t; 4], p: int8x16_t) -> int32x4_t {
        let [low, high] = added(of_two_words::<0, 1>(q, p), of_two_words::<2, 3>(q, p));
        vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high))
    }

    /// As [`half_of_four`], of eight words.
    #[target_feature(enable = "neon")]
    #[inline]
    pub(in super::super) fn whole_of_four<const F: u8>(
        q: &[[int8x16_t; 4]; 2],
        p: [int8x16_t; 2],
    ) -> int32x4_t {
        let mut sums = [vdupq_n_s32(0); 2];
        let mut narrow = [vdupq_n_s16(0); 2];
        for half in 0..2 {
            let q = &q[half];
            let first = of_two_words::<0, 1>(q, p[half]);
            let second = of_two_words::<2, 3>(q, p[half]);
            if is_wide(F) {
                for i in 0..2 {
                    sums[i] = vpadalq_s16(vpadalq_s16(sums[i], first[i]), second[i]);
                }
            } else {
                narrow = added(added(narrow, first), second);
            }
        }
        if is_wide(F) {
            vpaddq_s32(sums[0], sums[1])
        } else {
            vpaddq_s32(vpaddlq_s16(narrow[0]), vpaddlq_s16(narrow[1]))
        }
    }

    /// The products of words `I` and `J` of `p` with those of four rows: sums of two for the bytes of the first two rows, and of the
    /// others.
    #[target_feature(enable = "neon")]
    #[inline]
    fn of_two_words<const I: i32, const J: i32>(q: &[int8x16_t; 4], p: int8x16_t) -> [int16x8_t; 2] {
        let words = vreinterpretq_s32_s8(p);
        let p = [
            vreinterpret_s8_s32(vdup_laneq_s32::<I>(words)),
            vreinterpret_s8_s32(vdup_laneq_s32::<J>(words)),
        ];
        let (first, second) = (in_two(&q[I as usize]), in_two(&q[J as usize]));
        let products = [vmull_s8(first[0], p[0]), vmull_s8(first[1], p[0])];
        [vmlal_s8(products[0], second[0], p[1]), vmlal_s8(products[1], second[1], p[1])]
    }

    /// Both halves of a vector. Taken from a register, the second would cost an instruction at each use, as the compiler makes
    /// it one half of a vector whenever the other operand is the same in both.
    #[target_feature(enable = "neon")]
    #[inline]
    fn in_two(vector: &int8x16_t) -> [int8x8_t; 2] {
        // SAFETY: a vector is as long as these and aligned more strictly, and any bytes are integers.
        let [first, second] = unsafe { &*std::ptr::from_ref(vector).cast::<[[i8; 8]; 2]>() };
        [load(first), load(second)]
    }

    #[target_feature(enable = "neon")]
    #[inline]
    fn load(bytes: &[i8; 8]) -> int8x8_t {
        // SAFETY: it reads eight bytes, which are there, at any alignment.
        unsafe { vld1_s8(bytes.as_ptr()) }
    }

    #[target_feature(enable = "neon")]
    #[inline]
    fn added(a: [int16x8_t; 2], b: [int16x8_t; 2]) -> [int16x8_t; 2] {
        [vaddq_s16(a[0], b[0]), vaddq_s16(a[1], b[1])]
    }
}

/// Products of four neighbours, added to a sum of 32 bits by one instruction. The library's functions for it (`vdotq_s32`) are not
/// stable.
pub(super) mod dotprod {
    use std::arch::asm;

    use super::*;

    /// Multiplies 16 integers. The products are those of four sums.
    #[target_feature(enable = "neon,dotprod")]
    #[inline]
    pub(in super::super) fn half(q: int8x16_t, p: int8x16_t) -> int32x4_t {
        add(vdupq_n_s32(0), q, p)
    }

    /// As [`half`], of 32 integers.
    #[target_feature(enable = "neon,dotprod")]
    #[inline]
    pub(in super::super) fn whole<const F: u8>(q: [int8x16_t; 2], p: [int8x16_t; 2]) -> int32x4_t {
        add(half(q[0], p[0]), q[1], p[1])
    }

    /// Multiplies four words of each of four rows by the same words, and adds the products of each row.
    #[target_feature(enable = "neon,dotprod")]
    #[inline]
    pub(in super::super) fn half_of_four(q: &[int8x16_t; 4], p: int8x16_t) -> int32x4_t {
        add_words(vdupq_n_s32(0), q, p)
    }

    /// As [`half_of_four`], of eight words.
    #[target_feature(enable = "neon,dotprod")]
    #[inline]
    pub(in super::super) fn whole_of_four<const F: u8>(
        q: &[[int8x16_t; 4]; 2],
        p: [int8x16_t; 2],
    ) -> int32x4_t {
        add_words(half_of_four(&q[0], p[0]), &q[1], p[1])
    }

    #[target_feature(enable = "neon,dotprod")]
    #[inline]
    fn add_words(sums: int32x4_t, q: &[int8x16_t; 4], p: int8x16_t) -> int32x4_t {
        let sums = add_word::<1>(add_word::<0>(sums, q[0], p), q[1], p);
        add_word::<3>(add_word::<2>(sums, q[2], p), q[3], p)
    }

    /// Adds the products of each four neighbours.
    #[target_feature(enable = "neon,dotprod")]
    #[inline]
    fn add(mut sums: int32x4_t, q: int8x16_t, p: int8x16_t) -> int32x4_t {
        // SAFETY: the machine has the instruction, as this function can only be called where `dotprod` is. It reads three registers and
        // writes the first, and touches neither memory, flags nor the stack.
        unsafe {
            asm!(
                "sdot {sums:v}.4s, {q:v}.16b, {p:v}.16b",
                sums = inout(vreg) sums,
                q = in(vreg) q,
                p = in(vreg) p,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        sums
    }

    /// As [`add`], where word `I` of `p` is multiplied with each word of `q`.
    #[target_feature(enable = "neon,dotprod")]
    #[inline]
    fn add_word<const I: usize>(mut sums: int32x4_t, q: int8x16_t, p: int8x16_t) -> int32x4_t {
        // SAFETY: the machine has the instruction, as this function can only be called where `dotprod` is. It reads three registers and
        // writes the first, and touches neither memory, flags nor the stack.
        unsafe {
            asm!(
                "sdot {sums:v}.4s, {q:v}.16b, {p:v}.4b[{i}]",
                sums = inout(vreg) sums,
                q = in(vreg) q,
                p = in(vreg) p,
                i = const I,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        sums
    }
}

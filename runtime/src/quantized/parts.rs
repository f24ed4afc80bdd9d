//! A block, taken apart: integers, and the scale and the minimum of each group of them.

use half::f16;

use super::{BlockFormat, k, small};

/// Elements of the largest block.
pub(crate) const LARGEST: usize = 256;
/// Elements that share a scale and a minimum, in every format. Where a format has them for 32 elements, two groups have the
/// same.
pub(crate) const GROUP: usize = 16;

/// The contents of a block: element `i` is `scales[i / GROUP] * integers[i] - minima[i / GROUP]`, each operation rounded.
///
/// In formats without minima these are zero, and subtracting them changes no bit.
pub(crate) struct Parts {
    pub(crate) integers: [i8; LARGEST],
    pub(crate) scales: [f32; LARGEST / GROUP],
    pub(crate) minima: [f32; LARGEST / GROUP],
}

impl Parts {
    pub(crate) const fn new() -> Self {
        Self { integers: [0; LARGEST], scales: [0.0; LARGEST / GROUP], minima: [0.0; LARGEST / GROUP] }
    }

    /// Takes `block`, which has the length of a block of `format` with integers, apart. What is behind the elements of one block stays.
    pub(crate) fn read(&mut self, format: BlockFormat, block: &[u8]) {
        match format {
            BlockFormat::Q4_0 => small::q4_0(block, self),
            BlockFormat::Q4_1 => small::q4_1(block, self),
            BlockFormat::Q5_0 => small::q5_0(block, self),
            BlockFormat::Q5_1 => small::q5_1(block, self),
            BlockFormat::Q8_0 => small::q8_0(block, self),
            BlockFormat::IQ4_NL => small::iq4_nl(block, self),
            BlockFormat::Q2_K => k::q2(block, self),
            BlockFormat::Q3_K => k::q3(block, self),
            BlockFormat::Q4_K => k::q4(block, self),
            BlockFormat::Q5_K => k::q5(block, self),
            BlockFormat::Q6_K => k::q6(block, self),
            BlockFormat::INT4 => small::int4(block, self),
            BlockFormat::F8_E4M3 => unreachable!("elements are floats"),
        }
        if !format.has_minima() {
            self.minima[..format.elements() / GROUP].fill(0.0);
        }
    }

    /// The values of the first elements.
    pub(crate) fn values(&self, values: &mut [f32]) {
        let groups = values.chunks_mut(GROUP).zip(self.integers.chunks(GROUP));
        for ((values, integers), (scale, min)) in groups.zip(self.scales.iter().zip(&self.minima)) {
            for (value, &q) in values.iter_mut().zip(integers) {
                *value = scale * f32::from(q) - min;
            }
        }
    }
}

/// The number in half precision at byte `at`.
pub(crate) fn half_at(b: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([b[at], b[at + 1]]).to_f32()
}

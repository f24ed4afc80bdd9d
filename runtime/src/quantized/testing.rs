//! Random blocks.

use half::f16;
use rand::{Rng, rngs::StdRng};

use super::BlockFormat;

/// Where the numbers in half precision of a block are.
pub(crate) fn halves(format: BlockFormat) -> &'static [usize] {
    match format {
        BlockFormat::Q4_0 | BlockFormat::Q5_0 | BlockFormat::Q8_0 | BlockFormat::IQ4_NL => &[0],
        BlockFormat::Q4_1 | BlockFormat::Q5_1 | BlockFormat::Q4_K | BlockFormat::Q5_K => &[0, 2],
        BlockFormat::Q2_K => &[80, 82],
        BlockFormat::Q3_K => &[108],
        BlockFormat::Q6_K => &[208],
    }
}

/// Blocks of any bits with scales of any usual size and sign; now and then one that is all zeros or all ones.
pub(crate) fn blocks(rng: &mut StdRng, format: BlockFormat, count: usize) -> Vec<u8> {
    let mut all = Vec::with_capacity(count * format.bytes());
    for _ in 0..count {
        let fill = rng.random_range(0..20);
        let mut block: Vec<u8> = (0..format.bytes())
            .map(|_| match fill {
                0 => 0,
                1 => 255,
                _ => rng.random(),
            })
            .collect();
        for &at in halves(format) {
            let scale = f16::from_f32(rng.random_range(-0.1..0.1));
            block[at..at + 2].copy_from_slice(&scale.to_le_bytes());
        }
        all.extend(block);
    }
    all
}

//! Random blocks.

use half::f16;
use rand::{Rng, rngs::StdRng};

use super::{
    BlockFormat, GROUP, Parts,
    float8::{self, HEAD, NAN},
};

/// The places of a block's numbers in half precision.
pub(crate) fn halves(format: BlockFormat) -> &'static [usize] {
    match format {
        BlockFormat::Q4_0 | BlockFormat::Q5_0 | BlockFormat::Q8_0 | BlockFormat::IQ4_NL => &[0],
        BlockFormat::Q4_1 | BlockFormat::Q5_1 | BlockFormat::Q4_K | BlockFormat::Q5_K => &[0, 2],
        BlockFormat::Q2_K => &[80, 82],
        BlockFormat::Q3_K => &[108],
        BlockFormat::Q6_K => &[208],
        BlockFormat::INT4 => &[0],
        // It has an f32.
        BlockFormat::F8_E4M3 => &[],
    }
}

/// Sets the scale of a block, and its minimum if that is a number of its own.
pub(crate) fn set_scales(format: BlockFormat, block: &mut [u8], mut scale: impl FnMut() -> f32) {
    for &at in halves(format) {
        block[at..at + 2].copy_from_slice(&f16::from_f32(scale()).to_le_bytes());
    }
    if format.has_floats() {
        // The largest element is 448 instead of 127.
        block[..HEAD].copy_from_slice(&(scale() / 4.0).to_le_bytes());
        for bits in &mut block[HEAD..] {
            if *bits & NAN == NAN {
                *bits ^= 1;
            }
        }
    }
}

/// Blocks of any bits with scales of any usual size and sign, but NaN; now and then one that is all zeros or all ones.
pub(crate) fn blocks(rng: &mut StdRng, format: BlockFormat, count: usize) -> Vec<u8> {
    blocks_of_scale(rng, format, count, 0.1)
}

/// As [`blocks`], with scales of sizes up to `most`.
pub(crate) fn blocks_of_scale(rng: &mut StdRng, format: BlockFormat, count: usize, most: f32) -> Vec<u8> {
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
        set_scales(format, &mut block, || rng.random_range(-most..most));
        all.extend(block);
    }
    all
}

/// The size of each element of `blocks` before a minimum is subtracted, and that of the minimum, added: `|d q| + |m|`.
pub(crate) fn sizes(format: BlockFormat, blocks: &[u8]) -> Vec<f64> {
    if format.has_floats() {
        let mut values = vec![0.0; blocks.len() / format.bytes() * format.elements()];
        float8::dequantize(blocks, &mut values);
        return values.into_iter().map(|v| f64::from(v.abs())).collect();
    }
    let mut parts = Parts::new();
    let mut sizes = Vec::new();
    for block in blocks.chunks_exact(format.bytes()) {
        parts.read(format, block);
        sizes.extend((0..format.elements()).map(|i| {
            let product = f64::from(parts.scales[i / GROUP]) * f64::from(parts.integers[i]);
            product.abs() + f64::from(parts.minima[i / GROUP]).abs()
        }));
    }
    sizes
}

/// What a product with a row of blocks may be off by before it is rounded to its type: docs/ACCURACY.md. `sizes` are those of
/// [`sizes`].
pub(crate) fn bound(format: BlockFormat, x: &[f64], w: &[f64], sizes: &[f64]) -> f64 {
    let (mut quantised, mut rounded) = (0.0, 0.0);
    for ((x, w), sizes) in x.chunks(32).zip(w.chunks(32)).zip(sizes.chunks(32)) {
        let most = x.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        if !format.has_floats() {
            quantised += most / 254.0 * w.iter().map(|w| w.abs()).sum::<f64>();
        }
        rounded += most * sizes.iter().sum::<f64>();
    }
    quantised + (x.len() as f64 / 64.0 + 20.0) * f64::powi(2.0, -24) * rounded
}

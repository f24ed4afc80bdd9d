//! Products with weights in blocks, and rows of them.

use graphable::{BlockFormat, Result, Runtime, Weight};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    generate::ROWS,
    instr::Locals,
    program::{Arg, Code, Elem, Size, Ty},
};

/// Elements of a row in a format, by its place in [`BlockFormat::ALL`]: one or two blocks of the small formats, and one of the others.
fn width(format: usize) -> usize {
    BlockFormat::ALL[format].elements().max(64)
}

/// The weights of a program: their format, as its place in [`BlockFormat::ALL`], and their rows.
pub(crate) fn weights(seed: u64) -> Vec<(usize, usize)> {
    let mut own = StdRng::seed_from_u64(seed ^ 0xb10c << 32);
    if !own.random_bool(0.4) {
        return Vec::new();
    }
    let weight = |own: &mut StdRng| {
        let format = own.random_range(0..BlockFormat::ALL.len());
        // As many rows as there are indices, or as a row has elements: a product of a product.
        (format, [ROWS, 64, width(format)][own.random_range(0..3)])
    };
    (0..own.random_range(1..4)).map(|_| weight(&mut own)).collect()
}

/// Makes a weight of random blocks with small scales.
pub(crate) fn weight(rt: &Runtime, (format, rows): (usize, usize), seed: u64) -> Result<Weight<f32>> {
    let (format, width) = (BlockFormat::ALL[format], width(format));
    let mut rng = StdRng::seed_from_u64(seed);
    let bytes = width / format.elements() * format.bytes();
    let mut blocks: Vec<u8> = (0..rows * bytes).map(|_| rng.random()).collect();
    for block in blocks.chunks_exact_mut(format.bytes()) {
        if format == BlockFormat::F8_E4M3 {
            // 2^-12 to 2^-10, and no NaN.
            block[..4].copy_from_slice(&rng.random_range(2f32.powi(-12)..2f32.powi(-10)).to_le_bytes());
            block[4..].iter_mut().filter(|bits| **bits & 0x7f == 0x7f).for_each(|bits| *bits ^= 1);
            continue;
        }
        if format.elements() == 256 {
            // 2^-14, of which scales and minima are up to 128 times as much.
            let at: &[usize] = match format {
                BlockFormat::Q2_K => &[80, 82],
                BlockFormat::Q3_K => &[108],
                BlockFormat::Q6_K => &[208],
                _ => &[0, 2],
            };
            at.iter().for_each(|at| block[at + 1] = 1 << 2 | block[at + 1] & 3);
            continue;
        }
        // 2^-10 to 2^-7, as scale and, where there is one, as minimum.
        for at in [0, 2] {
            if at == 0 || matches!(format, BlockFormat::Q4_1 | BlockFormat::Q5_1) {
                block[at + 1] = rng.random_range(5u8..8) << 2 | block[at + 1] & 3;
            }
        }
    }
    Weight::blocks(rt, &[rows, width], format, blocks)
}

impl Locals<'_> {
    /// Adds a product with a weight in blocks, or rows of one, with this probability; sometimes none fits.
    pub(crate) fn blocks(&mut self, rng: &mut StdRng, probability: f64) {
        if self.rules.blocks.is_empty() || !rng.random_bool(probability) {
            return;
        }
        for _ in 0..4 {
            if self.attempt_blocks(rng).is_some() {
                return;
            }
        }
    }

    fn attempt_blocks(&mut self, rng: &mut StdRng) -> Option<()> {
        let at = rng.random_range(0..self.rules.blocks.len());
        let (format, rows) = self.rules.blocks[at];
        let width = Size::N(width(format));
        let wide = |ty: &Ty| ty.elem == Elem::F32 && ty.dims.last() == Some(&width);
        let f32s = |dims: Vec<Size>| Ty { elem: Elem::F32, dims, bound: 0 };
        if let Some((t, ty)) = self.pick(rng, wide).filter(|_| rng.random_bool(0.7)) {
            let (_, lead) = ty.dims.split_last()?;
            // Of few rows, each has the bits that it has alone, whatever the device and the padding; `B` is at most 8.
            let is_few =
                lead.iter().map(|d| if let Size::N(n) = d { *n } else { 8 }).product::<usize>() <= 16;
            if !is_few {
                return None;
            }
            let dims = lead.iter().copied().chain([Size::N(rows)]).collect();
            return self
                .emit(Code::BlocksProduct, vec![Arg::Local(t), Arg::Blocks(at)], Vec::new(), f32s(dims))
                .map(drop);
        }
        let (t, ty) = self.pick(rng, |ty| ty.elem == Elem::U32 && (1..=rows).contains(&ty.bound))?;
        let dims = ty.dims.iter().copied().chain([width]).collect();
        self.emit(Code::BlocksRows, vec![Arg::Local(t), Arg::Blocks(at)], Vec::new(), f32s(dims)).map(drop)
    }
}

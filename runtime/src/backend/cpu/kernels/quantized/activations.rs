//! Rows of activations in 8 bits.

use rayon::prelude::*;

use super::{LANES, NEIGHBOURS, RUN};

/// Elements from which on rows are quantised by several threads.
const PARALLEL: usize = 1 << 16;

/// Rows of activations, quantised: element `i` of a row is about `scales[i / RUN] * integers[i]`.
///
/// The scale of a run is its largest size over 127, so an element is off by at most half of that. A run with a value that is not
/// finite has no scale (NaN), and so has every product of its row: what a float product makes of infinities is not kept.
pub(crate) struct Activations {
    rows: usize,
    width: usize,
    integers: Vec<i8>,
    scales: Vec<f32>,
    /// For each four neighbours, their sum; empty unless asked for.
    sums: Vec<f32>,
}

impl Activations {
    /// Quantises rows of `width` elements, a whole number of runs. `row` writes a row, given its index. With `sums`, as formats
    /// with minima need them.
    pub(crate) fn new(rows: usize, width: usize, sums: bool, row: impl Fn(usize, &mut [f32]) + Sync) -> Self {
        debug_assert!(width.is_multiple_of(RUN));
        let mut integers = vec![0; rows * width];
        let mut scales = vec![0.0; rows * width / RUN];
        let one = |values: &mut Vec<f32>, (i, (integers, scales)): (usize, (&mut [i8], &mut [f32]))| {
            values.resize(width, 0.0);
            row(i, values);
            let runs = values.chunks_exact(RUN).zip(integers.chunks_exact_mut(RUN));
            runs.zip(scales).for_each(|((values, to), scale)| *scale = quantize(values, to));
        };
        // There is no chunk without elements.
        let (wide, runs) = (width.max(1), (width / RUN).max(1));
        if rows > 1 && rows * width >= PARALLEL {
            let all = integers.par_chunks_mut(wide).zip(scales.par_chunks_mut(runs));
            all.enumerate().for_each_init(Vec::new, one);
        } else {
            let mut values = Vec::new();
            let all = integers.chunks_mut(wide).zip(scales.chunks_mut(runs));
            all.enumerate().for_each(|item| one(&mut values, item));
        }
        let sum = |neighbours: &[i8]| f32::from(neighbours.iter().map(|&p| i16::from(p)).sum::<i16>());
        let sums = if sums { integers.chunks_exact(NEIGHBOURS).map(sum).collect() } else { Vec::new() };
        Self { rows, width, integers, scales, sums }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// The integers of a row.
    pub(super) fn integers(&self, row: usize) -> &[i8] {
        &self.integers[row * self.width..][..self.width]
    }

    /// The scales of a row, one for each run.
    pub(super) fn scales(&self, row: usize) -> &[f32] {
        let runs = self.width / RUN;
        &self.scales[row * runs..][..runs]
    }

    /// The sums of neighbours in a row, [`LANES`] for each run.
    pub(super) fn sums(&self, row: usize) -> &[f32] {
        let lanes = self.width / RUN * LANES;
        &self.sums[row * lanes..][..lanes]
    }
}

/// Writes the integers of a run and returns its scale.
fn quantize(values: &[f32], integers: &mut [i8]) -> f32 {
    // As bits, sizes of floats are in their order, with what is not finite at the end; this is faster than their maximum, too.
    let most = values.iter().fold(0u32, |most, v| most.max(v.abs().to_bits()));
    if most >= f32::INFINITY.to_bits() {
        integers.fill(0);
        return f32::NAN;
    }
    let scale = f32::from_bits(most) / 127.0;
    let inverse = 1.0 / scale;
    if !inverse.is_finite() {
        // Zeros, and values below 1e-36.
        integers.fill(0);
        return 0.0;
    }
    /// Adding it to a number below 2^22 rounds to a whole one, ties to even; that is in the low bits of the sum.
    const ROUNDING: f32 = 12_582_912.0;
    for (to, v) in integers.iter_mut().zip(values) {
        *to = (v * inverse + ROUNDING).to_bits() as i8;
    }
    scale
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    #[test]
    fn elements_are_off_by_half_a_step() {
        let mut rng = StdRng::seed_from_u64(1);
        for case in 0..2000 {
            let size = 10f32.powi(rng.random_range(-39..38));
            let values: Vec<f32> = (0..RUN)
                .map(|i| if case % 7 == i % 7 { size } else { rng.random_range(-1.0f32..1.0) * size })
                .collect();
            let mut integers = [9; RUN];
            let scale = quantize(&values, &mut integers);
            let most = values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
            for (v, q) in values.iter().zip(integers) {
                assert!((-127..=127).contains(&q));
                let off = (f64::from(*v) - f64::from(scale) * f64::from(q)).abs();
                assert!(off <= f64::from(most) / 254.0 * 1.00001 + 1e-36, "{case}: {v} {q} {scale}");
            }
        }
    }

    #[test]
    fn what_is_not_finite_has_no_scale() {
        for wrong in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let rows = Activations::new(2, 2 * RUN, true, |i, row| {
                row.fill(1.0);
                row[40] = if i == 0 { wrong } else { 1.0 };
            });
            assert!(!rows.scales(0)[0].is_nan() && rows.scales(0)[1].is_nan());
            assert!(rows.scales(1).iter().all(|s| *s == 1.0 / 127.0));
            assert_eq!(rows.sums(0)[LANES..], [0.0; LANES]);
        }
    }

    /// Many rows are quantised on several threads, each row as it is alone.
    #[test]
    fn rows_on_several_threads_are_those_of_one() {
        let threads = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        for (rows, width) in [(2, PARALLEL), (64, 1024), (2048, RUN), (PARALLEL / RUN - 1, RUN)] {
            let mut rng = StdRng::seed_from_u64(rows as u64);
            let mut values: Vec<f32> = (0..rows * width).map(|_| rng.random_range(-1.0..1.0)).collect();
            values[width + 5] = f32::NAN;
            let row = |i: usize, to: &mut [f32]| to.copy_from_slice(&values[i * width..][..width]);
            let all = threads.install(|| Activations::new(rows, width, true, row));
            for i in 0..rows {
                let one = Activations::new(1, width, true, |_, to| row(i, to));
                let bits = |scales: &[f32]| scales.iter().map(|s| s.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(all.scales(i)), bits(one.scales(0)), "row {i} of {rows}");
                assert!(
                    all.integers(i) == one.integers(0) && all.sums(i) == one.sums(0),
                    "row {i} of {rows}"
                );
            }
        }
    }

    #[test]
    fn ties_are_rounded_to_even() {
        // The scale is 1.
        let mut values = [0.0; RUN];
        values[..8].copy_from_slice(&[127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -126.5, 126.5]);
        let mut integers = [0; RUN];
        assert_eq!(quantize(&values, &mut integers), 1.0);
        assert_eq!(integers[..8], [127, 0, 2, 2, 0, -2, -126, 126]);
    }

    #[test]
    fn sums_are_those_of_neighbours() {
        let rows = Activations::new(1, RUN, true, |_, row| {
            row.iter_mut().enumerate().for_each(|(i, v)| *v = i as f32 * 127.0 / 31.0);
        });
        let expected: Vec<f32> =
            rows.integers(0).chunks(4).map(|c| c.iter().map(|&q| f32::from(q)).sum()).collect();
        assert_eq!(rows.sums(0), expected);
        assert_eq!(Activations::new(3, 0, true, |_, _| ()).rows(), 3, "rows without elements");
    }
}

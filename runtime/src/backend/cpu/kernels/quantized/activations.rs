//! Rows of activations in 8 bits.

use rayon::prelude::*;

use super::{LANES, RUN, WORDS};

/// Elements from which on rows are quantised by several threads.
const PARALLEL: usize = 1 << 16;

/// Rows of activations, quantised: element `i` of a row is about `scales[i / RUN] * integers[i]`.
///
/// The scale of a run is its largest size over 127, so an element is off by at most half of that. A run with a value that is not
/// finite has no scale (NaN), and so has every product of its row: what a float product makes of infinities is not kept.
pub(crate) struct Activations {
    rows: usize,
    width: usize,
    /// Of each row, as many runs as [`runs`](Self::runs) has; those behind the last one are zero there and here.
    integers: Vec<Run>,
    runs: Vec<Runs>,
}

/// The integers of a run, four in a word, since vectors are made of such words.
pub(super) type Run = [i32; WORDS];

/// Facts about eight runs besides their integers.
#[derive(Clone, Copy, Default)]
pub(super) struct Runs {
    pub(super) scales: [f32; LANES],
    /// Of the integers of the first half of each run, and of the second.
    pub(super) sums: [[i32; LANES]; 2],
}

impl Activations {
    /// Quantises rows of `width` elements, a whole number of runs. `row` writes a row, given its index.
    pub(crate) fn new(rows: usize, width: usize, row: impl Fn(usize, &mut [f32]) + Sync) -> Self {
        debug_assert!(width.is_multiple_of(RUN));
        let eights = (width / RUN).div_ceil(LANES);
        let mut all_integers = vec![[0; WORDS]; rows * eights * LANES];
        let integers: &mut [i8] = bytemuck::cast_slice_mut(&mut all_integers);
        let mut runs = vec![Runs::default(); rows * eights];
        let one = |values: &mut Vec<f32>, (i, (integers, runs)): (usize, (&mut [i8], &mut [Runs]))| {
            values.resize(width, 0.0);
            row(i, values);
            let eights = values.chunks(RUN * LANES).zip(integers.chunks_mut(RUN * LANES)).zip(runs);
            eights.for_each(|((values, to), runs)| quantize_runs(values, to, runs));
        };
        // There is no chunk without elements.
        let eights = eights.max(1);
        let wide = eights * LANES * RUN;
        if rows > 1 && rows * width >= PARALLEL {
            let all = integers.par_chunks_mut(wide).zip(runs.par_chunks_mut(eights));
            all.enumerate().for_each_init(Vec::new, one);
        } else {
            let mut values = Vec::new();
            let all = integers.chunks_mut(wide).zip(runs.chunks_mut(eights));
            all.enumerate().for_each(|item| one(&mut values, item));
        }
        Self { rows, width, integers: all_integers, runs }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// The integers of a row, in whole groups of [`LANES`] runs.
    pub(super) fn integers(&self, row: usize) -> &[Run] {
        let runs = (self.width / RUN).next_multiple_of(LANES);
        &self.integers[row * runs..][..runs]
    }

    /// The scales and sums of a row.
    pub(super) fn runs(&self, row: usize) -> &[Runs] {
        let eights = (self.width / RUN).div_ceil(LANES);
        &self.runs[row * eights..][..eights]
    }

    /// The scale of a run of a row.
    pub(super) fn scale(&self, row: usize, run: usize) -> f32 {
        self.runs(row)[run / LANES].scales[run % LANES]
    }
}

/// Quantises up to eight runs.
fn quantize_runs(values: &[f32], integers: &mut [i8], to: &mut Runs) {
    for (i, (values, integers)) in values.chunks_exact(RUN).zip(integers.chunks_exact_mut(RUN)).enumerate() {
        to.scales[i] = quantize(values, integers);
        for (half, sums) in integers.chunks_exact(RUN / 2).zip(&mut to.sums) {
            sums[i] = half.iter().map(|&p| i32::from(p)).sum();
        }
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

    fn bytes(run: &Run) -> &[i8; RUN] {
        bytemuck::cast_ref(run)
    }

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
            let rows = Activations::new(2, 2 * RUN, |i, row| {
                row.fill(1.0);
                row[40] = if i == 0 { wrong } else { 1.0 };
            });
            assert!(!rows.scale(0, 0).is_nan() && rows.scale(0, 1).is_nan());
            assert!((0..2).all(|run| rows.scale(1, run) == 1.0 / 127.0));
            assert_eq!(rows.runs(0)[0].sums.map(|sums| sums[1]), [0; 2]);
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
            let all = threads.install(|| Activations::new(rows, width, row));
            for i in 0..rows {
                let one = Activations::new(1, width, |_, to| row(i, to));
                let bits = |runs: &[Runs]| -> Vec<_> {
                    runs.iter().map(|runs| (runs.scales.map(f32::to_bits), runs.sums)).collect()
                };
                assert_eq!(bits(all.runs(i)), bits(one.runs(0)), "row {i} of {rows}");
                assert!(all.integers(i) == one.integers(0), "row {i} of {rows}");
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
    fn sums_are_those_of_halves() {
        for runs in [1, 7, 8, 9, 18] {
            let rows = Activations::new(2, runs * RUN, |row, to| {
                to.iter_mut().enumerate().for_each(|(i, v)| *v = (i * 31 % 97 + row) as f32 - 40.0);
            });
            for row in 0..2 {
                for (run, integers) in rows.integers(row)[..runs].iter().map(bytes).enumerate() {
                    let all = rows.runs(row)[run / LANES];
                    for (half, sums) in integers.chunks(RUN / 2).zip(all.sums) {
                        assert_eq!(sums[run % LANES], half.iter().map(|&q| i32::from(q)).sum::<i32>());
                    }
                }
                for run in runs..runs.next_multiple_of(LANES) {
                    assert_eq!(rows.scale(row, run), 0.0, "what is behind the last run");
                    assert_eq!(rows.integers(row)[run], [0; WORDS]);
                    assert_eq!(rows.runs(row)[run / LANES].sums.map(|sums| sums[run % LANES]), [0; 2]);
                }
            }
        }
        assert_eq!(Activations::new(3, 0, |_, _| ()).rows(), 3, "rows without elements");
    }
}

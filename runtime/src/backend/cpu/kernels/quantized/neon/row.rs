//! Products for one row of activations: eight runs of a row of weights at a time, whose products become two vectors of four sums.

use std::arch::aarch64::*;

use super::{
    FOUR, load_floats, load_integers, load_run,
    unpack::{self, Four},
};
use crate::backend::cpu::kernels::quantized::{
    Activations, LANES, RUN,
    activations::{Run, Runs},
    formats::{groups, has_minima, has_small_groups},
};

/// Writes the functions of one set of instructions.
macro_rules! row {
    ($module:ident, $features:tt) => {
        pub(super) mod $module {
            use super::{
                super::products::$module::{half, whole},
                *,
            };

            #[target_feature(enable = $features)]
            pub(in super::super) fn one_row<const F: u8>(
                weights: &[u8],
                activations: &Activations,
                to: &mut [f32],
            ) {
                let bytes = weights.len() / to.len();
                let (integers, facts) = (activations.integers(0).as_chunks().0, activations.runs(0));
                let (eights, rest) = (activations.width() / RUN / LANES, activations.width() / RUN % LANES);
                for (column, to) in to.iter_mut().enumerate() {
                    let weight = &weights[column * bytes..][..bytes];
                    let mut sums = [vdupq_n_f32(0.0); 2];
                    for i in 0..eights {
                        let fours = unpack::eight::<F>(weight, i);
                        add::<F>(&fours[0], &integers[i], &facts[i], 0, &mut sums);
                        add::<F>(&fours[1], &integers[i], &facts[i], 1, &mut sums);
                    }
                    if rest > 0 {
                        // What is behind the last run is zero and changes no sum.
                        let fours = unpack::last::<F>(weight, eights);
                        add::<F>(&fours[0], &integers[eights], &facts[eights], 0, &mut sums);
                        if rest > FOUR {
                            add::<F>(&fours[1], &integers[eights], &facts[eights], 1, &mut sums);
                        }
                    }
                    *to = total(sums);
                }
            }

            /// Adds the first or the second four of eight runs.
            #[target_feature(enable = $features)]
            #[inline]
            fn add<const F: u8>(
                four: &Four,
                others: &[Run; LANES],
                facts: &Runs,
                place: usize,
                sums: &mut [float32x4_t; 2],
            ) {
                let mut p = [[vdupq_n_s8(0); 2]; FOUR];
                for run in 0..FOUR {
                    p[run] = load_run(&others[place * FOUR + run]);
                }
                let mut products = [[vdupq_n_s32(0); FOUR]; 2];
                for run in 0..FOUR {
                    if has_small_groups(F) {
                        products[0][run] = half(four.integers[run][0], p[run][0]);
                        products[1][run] = half(four.integers[run][1], p[run][1]);
                    } else {
                        products[0][run] = whole::<F>(four.integers[run], p[run]);
                    }
                }
                let products = [added(products[0]), added(products[1])];
                sums[place] = add_terms::<F>(four, products, facts, place, sums[place]);
            }
        }
    };
}

row!(base, "neon");
row!(dotprod, "neon,dotprod");

/// Adds a term for each group, given the products of each.
#[target_feature(enable = "neon")]
#[inline]
fn add_terms<const F: u8>(
    four: &Four,
    products: [int32x4_t; 2],
    facts: &Runs,
    place: usize,
    mut sums: float32x4_t,
) -> float32x4_t {
    let scale = load_floats(&facts.scales.as_chunks().0[place]);
    for (group, product) in products.iter().enumerate().take(const { groups(F) }) {
        let mut term = vmulq_f32(vmulq_f32(four.scales[group], scale), vcvtq_f32_s32(*product));
        if has_minima(F) {
            let mut of_group = load_integers(&facts.sums[group].as_chunks().0[place]);
            if !has_small_groups(F) {
                of_group = vaddq_s32(of_group, load_integers(&facts.sums[1].as_chunks().0[place]));
            }
            let of_group = vmulq_f32(scale, vcvtq_f32_s32(of_group));
            term = vsubq_f32(term, vmulq_f32(four.minima[group], of_group));
        }
        sums = vaddq_f32(sums, term);
    }
    sums
}

/// The sum of each of four vectors.
#[target_feature(enable = "neon")]
#[inline]
fn added(p: [int32x4_t; FOUR]) -> int32x4_t {
    vpaddq_s32(vpaddq_s32(p[0], p[1]), vpaddq_s32(p[2], p[3]))
}

/// Adds up the sums of runs, in the order of [`total`](crate::backend::cpu::kernels::quantized::total).
#[target_feature(enable = "neon")]
#[inline]
fn total(sums: [float32x4_t; 2]) -> f32 {
    let four = vaddq_f32(sums[0], sums[1]);
    let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
}

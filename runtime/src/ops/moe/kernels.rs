//! The kernels of routes.

use crate::kernel;
#[cfg(feature = "cuda")]
use crate::kernel::definition::{Definition, Kernel as _};

/// The number by which each choice is ordered: its expert, of which there is one for each element of `experts`. Choices of
/// nobody are behind those of the experts, and those in the padding are behind all others.
#[kernel(index)]
pub(super) fn moe_route(choices: View<u32, 2>, experts: View<u32, 1>, [row, choice]: [i32; 2]) -> u32 {
    let expert = choices.at_or([row, choice], 0xffff_ffff);
    let mut number = expert;
    if expert != 0xffff_ffff {
        number += experts.at([expert]);
    }
    if number >= experts.dim(0) as u32 {
        number = 0xffff_fffe;
    }
    if row < choices.dim(0) { number } else { 0xffff_ffff }
}

/// The place of each choice in their order, which a search finds: by number, and among equal numbers by the choices' own
/// places.
#[kernel(index)]
pub(super) fn moe_places(
    numbers: View<u32, 2>,
    order: View<u32, 2>,
    #[key] steps: u32,
    [line, choice]: [i32; 2],
) -> u32 {
    let number = numbers.at([line, choice]);
    let mut low = 0;
    let mut high = order.dim(1);
    for _ in 0..steps {
        if low < high {
            let half = (low + high) / 2;
            let other = order.at([line, half]) as i32;
            let other_number = numbers.at([line, other]);
            if other_number < number || other_number == number && other < choice {
                low = half + 1;
            } else {
                high = half;
            }
        }
    }
    low as u32
}

/// The rows of a token's choices, each multiplied by its weight, added in the order of the choices.
#[kernel(index)]
pub(super) fn moe_unpermute(
    x: View<f32, 3>,
    weights: View<f32, 2>,
    places: View<u32, 2>,
    [token, i]: [i32; 2],
) -> f32 {
    let choices = x.dim(1);
    let mut sum = 0.0;
    for choice in 0..choices {
        let place = places.at([token, choice]) as i32;
        sum += weights.at([token, choice]) * x.at([place / choices, place % choices, i]);
    }
    sum
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn all() -> [&'static Definition; 3] {
    [moe_route::DEFINITION, moe_places::DEFINITION, moe_unpermute::DEFINITION]
}

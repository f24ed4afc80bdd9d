//! Sums as kernels of indices.

use graphable::{Result, Tensor, kernel, ops};

macro_rules! sums {
    ($($name:ident $rank:literal [$($i:ident)*];)*) => {$(
        #[kernel(index)]
        fn $name(a: View<f32, $rank>, b: View<f32, $rank>, [$($i),*]: [i32; $rank]) -> f32 {
            a.at([$($i),*]) + b.at([$($i),*])
        }
    )*};
}

sums! {
    sum_1 1 [i];
    sum_2 2 [i j];
    sum_3 3 [i j k];
}

/// The sum of two tensors of one shape.
pub(super) fn sum<'s>(a: &Tensor<'s, f32>, b: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    match a.rank() {
        1 => sum_1(a, b, a.shape()),
        2 => sum_2(a, b, a.shape()),
        3 => sum_3(a, b, a.shape()),
        _ => ops::add(a, b),
    }
}

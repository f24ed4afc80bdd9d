//! Sums, means and softmax on GPUs, where kernels of rows are faster than the passes of `reduce.cu`, which other types, other
//! reductions and softmax along other dimensions use. On the CPU the loops of `cpu/` are faster than these kernels, which
//! gather columns one by one, and combine neighbours in every sum.

use smallvec::SmallVec;

use super::operation::Reduce;
use crate::{
    Result,
    backend::{Launch, Operation as _, View, cuda::kernels::Submit},
    kernel,
    kernel::definition::{Definition, Kernel as _},
    value::layout::Layout,
};

#[kernel(reduce)]
fn sum(x: Row<f32>) -> f32 {
    x.sum()
}

#[kernel(reduce)]
fn mean(x: Row<f32>) -> f32 {
    x.sum() / x.len() as f32
}

/// Of a row of only `-inf`, zeros; nothing decides, so rows can share a warp.
#[kernel(rows)]
fn softmax(x: Row<f32>) -> Row<f32> {
    let max = x.max();
    let top = max.max(f32::MIN);
    let powers = x.map(|v| (v - top).exp());
    let total = powers.sum() + f32::from(max == f32::NEG_INFINITY);
    // From 1 to the number of values, so its inverse is a normal number. In 16 bits, dividing each value takes a quarter longer.
    let inverse = 1.0 / total;
    powers.map(|v| v * inverse)
}

/// Of a row of only `-inf`, `-inf`.
#[kernel(rows)]
fn log_softmax(x: Row<f32>) -> Row<f32> {
    let max = x.max();
    let top = max.max(f32::MIN);
    let total = x.map(|v| (v - top).exp()).sum() + f32::from(max == f32::NEG_INFINITY);
    let log = total.ln();
    x.map(|v| v - top - log)
}

/// The kernel of a reduction.
pub(super) fn of_reduction(kind: Reduce) -> Option<&'static Definition> {
    match kind {
        Reduce::Sum => Some(sum::DEFINITION),
        Reduce::Mean => Some(mean::DEFINITION),
        // A NaN is the maximum there, and counts as missing in a kernel.
        Reduce::Max => None,
    }
}

/// The kernel of softmax.
pub(super) fn of_softmax(log: bool) -> &'static Definition {
    if log { log_softmax::DEFINITION } else { softmax::DEFINITION }
}

/// The kernels of this file, for CI to compile.
pub(in crate::ops) fn kernels() -> impl Iterator<Item = &'static Definition> {
    [sum::DEFINITION, mean::DEFINITION, softmax::DEFINITION, log_softmax::DEFINITION]
        .into_iter()
        .chain(super::further::kernels())
        .chain(super::normalize::kernels())
}

/// The input with `axis` as its last dimension, if a kernel of rows can have it.
pub(super) fn rows(x: &View, axis: usize, keeps_axis: bool) -> Option<View> {
    let (shape, strides) = (x.layout.shape(), x.layout.strides());
    let fits = x.dtype.is_computed_in_f32() && (1..=i32::MAX as usize).contains(&shape[axis]);
    if !fits || keeps_axis && axis + 1 != shape.len() {
        return None;
    }
    let last = |all: &[usize]| -> SmallVec<[usize; 6]> {
        let others = all.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, one)| *one);
        others.chain([all[axis]]).collect()
    };
    let layout = Layout::strided(&last(shape), &last(strides)).ok()?;
    Some(View { layout, ..*x })
}

/// Launches a kernel on rows.
pub(super) fn launch(
    gpu: &mut dyn Submit,
    launch: &Launch,
    definition: &'static Definition,
    x: View,
) -> Result<()> {
    let launch = Launch { op: launch.op.clone(), inputs: [x].into_iter().collect(), ..launch.clone() };
    definition.launch_cuda(gpu, &launch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_number_are_as_by_hand() {
        let none = f32::NEG_INFINITY;
        assert_eq!(softmax::row(&[none, none]), [0.0, 0.0]);
        assert_eq!(log_softmax::row(&[none, none]), [none, none]);
        assert_eq!(softmax::row(&[1.0, none, 1.0]), [0.5, 0.0, 0.5]);
        assert_eq!(log_softmax::row(&[5.0, none]), [0.0, none]);
        for row in [[f32::NAN, none], [f32::NAN, 1.0], [f32::NAN; 2], [f32::INFINITY, 0.0]] {
            assert!(softmax::row(&row).iter().any(|v| v.is_nan()), "{row:?}");
            assert!(log_softmax::row(&row).iter().any(|v| v.is_nan()), "{row:?}");
        }
        assert!(softmax::row(&[f32::NAN, none]).iter().all(|v| v.is_nan()));
        assert!(log_softmax::row(&[f32::NAN, 1.0]).iter().all(|v| v.is_nan()));
    }
}

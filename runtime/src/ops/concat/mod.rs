//! Joined tensors.

use smallvec::SmallVec;

use self::operation::Concat;
use super::{
    check::{Shape, check_axis, meet, refuse},
    launch::compute,
};
use crate::{Element, Error, Result, Tensor, backend::View, tensor::Shown};

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod operation;

/// Joins tensors along `axis`; all other sizes are equal.
///
/// Corresponds to `torch.cat`.
///
/// Padding marks of the other dimensions unite.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 1], &[1u32, 2])?;
/// let y = step.tensor(&[2, 2], &[3u32, 4, 5, 6])?;
/// assert_eq!(step.read(&ops::concat(&[&x, &y], 1)?)?, [1, 3, 4, 2, 5, 6]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] for no tensor; [`Error::Axis`]; [`Error::Shape`]; [`Error::PaddedMix`] if
/// `axis` is padded in any of them.
pub fn concat<'s, T: Element>(tensors: &[&Tensor<'s, T>], axis: usize) -> Result<Tensor<'s, T>> {
    const NAME: &str = "concat";
    let Some((first, rest)) = tensors.split_first() else {
        return Err(Error::Argument {
            op: NAME,
            reason: "no tensor is given; at least one is needed".into(),
        });
    };
    let scope = first.scope();
    check_axis(NAME, axis, first.rank())?;
    refuse(NAME, scope, first.raw.marks, [axis])?;
    let mut shape: Shape = first.sizes().into();
    let mut marks = first.raw.marks;
    let mut inputs: SmallVec<[View; 4]> = SmallVec::from_slice(&[first.view(NAME)?]);
    for x in rest {
        if !std::ptr::eq(x.rt, scope.rt) {
            return Err(Error::DifferentRuntimes { op: NAME });
        }
        if x.rank() == shape.len() {
            refuse(NAME, scope, x.raw.marks, [axis])?;
            for i in 0..shape.len() {
                marks = marks.with(i, meet(NAME, scope, i, marks.get(i), x.raw.marks.get(i))?);
            }
        }
        if x.rank() != shape.len() || (0..shape.len()).any(|i| i != axis && x.size(i) != shape[i]) {
            let shapes: Vec<Shown<'_>> = tensors.iter().map(|&t| t.into()).collect();
            let reason = format!("all sizes but that of axis {axis} must be equal");
            return Err(scope.shape_error(NAME, &shapes, reason));
        }
        shape[axis] =
            shape[axis].checked_add(x.size(axis)).ok_or_else(|| Error::TooLarge { shape: shape.to_vec() })?;
        inputs.push(x.view(NAME)?);
    }
    // A part without elements has no address that is worth recording.
    inputs.retain(|v| v.layout.count() > 0);
    compute(scope, Concat { axis }, &inputs, &shape, marks)
}

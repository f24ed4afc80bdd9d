//! Shapes that broadcast, and their padding.

use smallvec::SmallVec;

use super::Shown;
use crate::{Error, Result, Scope, backend::View, base::rank::MAX_RANK, value::layout::PaddedDims};

/// Sizes, without an allocation.
pub(crate) type Shape = SmallVec<[usize; MAX_RANK]>;

/// Returns the mark of a dimension in which two operands meet.
///
/// Two symbols, or one and a fixed size, would pair padding of one operand with real rows of the other.
pub(crate) fn meet(
    op: &'static str,
    scope: Scope<'_>,
    axis: usize,
    a: Option<u8>,
    b: Option<u8>,
) -> Result<Option<u8>> {
    if a != b {
        scope.refuse_padded(op, PaddedDims::NONE.with(axis, a.or(b)), axis)?;
    }
    Ok(a)
}

/// The shape that all operands broadcast to, and its padding.
pub(crate) fn broadcast(
    op: &'static str,
    scope: Scope<'_>,
    operands: &[Shown<'_>],
) -> Result<(Shape, PaddedDims)> {
    // Most operands have one shape, which needs no look at each dimension.
    if let Some((first, others)) = operands.split_first()
        && others.iter().all(|other| other == first)
    {
        return Ok((Shape::from_slice(first.0), first.1));
    }
    let rank = operands.iter().map(|operand| operand.0.len()).max().unwrap_or(0);
    let mut shape = Shape::from_elem(1, rank);
    let mut marks = PaddedDims::NONE;
    for axis in 0..rank {
        // Each operand's own axis, where it has this dimension.
        let met = || {
            operands.iter().filter_map(move |Shown(dims, marks)| {
                let own = (axis + dims.len()).checked_sub(rank)?;
                Some((dims[own], marks.get(own)))
            })
        };
        // This comes first, so that the rejection does not depend on the size of the bucket. A dimension of
        // size 1 without padding is repeated, whatever it meets.
        let mut symbols = met().filter(|(n, mark)| *n != 1 || mark.is_some()).map(|(_, mark)| mark);
        let first = symbols.next().flatten();
        let mark = symbols.try_fold(first, |mark, found| meet(op, scope, axis, mark, found))?;
        for (n, _) in met() {
            if n != 1 && shape[axis] != 1 && n != shape[axis] {
                return Err(scope.shape_error(
                    op,
                    operands,
                    format!(
                        "dimension {axis} is {} and {n}; sizes aligned at the last dimension must be equal, or 1",
                        shape[axis]
                    ),
                ));
            }
            if n != 1 {
                shape[axis] = n;
            }
        }
        marks = marks.with(axis, mark);
    }
    Ok((shape, marks))
}

/// `view` repeated to `shape`.
pub(crate) fn spread(op: &'static str, view: View, shape: &[usize]) -> Result<View> {
    // Most operands have the shape already.
    if view.layout.shape() == shape {
        return Ok(view);
    }
    match view.layout.broadcast_to(shape) {
        Some(layout) => Ok(View { layout, ..view }),
        None => Err(Error::shape(op, &[view.layout.shape(), shape], NOT_SPREAD)),
    }
}

/// The reason why a shape does not broadcast to another one.
pub(crate) const NOT_SPREAD: &str = "the first does not broadcast to the second; its sizes, aligned at the last dimension, must be equal or 1";

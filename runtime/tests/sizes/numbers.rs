//! A padded size is not a number, and a comparison with it steers nothing.

use graphable::{Dim, Error, Result, Tensor, graphable, ops};

use crate::{agrees, refuses};

#[graphable]
fn divided(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    ops::scale(x, 1.0 / x.dim(0).get()? as f32)
}

#[graphable]
fn counted(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    ops::scale(x, usize::try_from(x.count())? as f32)
}

#[graphable]
fn by_shape(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let rows = x.shape().numbers()?[0];
    ops::scale(x, rows as f32)
}

#[graphable]
fn branched(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    if x.dim(0) > 3 { ops::neg(x) } else { ops::scale(x, 2.0) }
}

/// The branch fails with an error of its own: the cause is told all the same.
#[graphable]
fn checked(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    if x.shape() == [17, 2] {
        return Err(Error::Argument { op: "checked", reason: "17 rows".into() });
    }
    ops::neg(x)
}

/// Any constant answer would be waited for without end.
#[graphable]
fn looped(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let mut n = 0;
    while x.dim(0) != n {
        n += 1;
    }
    // Not `>`: an order that is not known is neither.
    #[expect(clippy::neg_cmp_op_on_partial_ord, reason = "this is what is tested")]
    while !(x.dim(0) <= n) {
        n += 1;
    }
    ops::scale(x, n as f32)
}

/// In host code between segments, and in a region.
#[graphable]
fn branched_outside(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let mut h = ops::neg(x)?;
    if h.dim(0) > 2 {
        h = #[eager(support = Always)]
        ops::neg(&h)?;
    }
    ops::scale(&h, 2.0)
}

#[graphable]
fn branched_in_region(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let h = #[eager]
    {
        if x.dim(0) == 4 { ops::neg(x)? } else { ops::scale(x, 3.0)? }
    };
    ops::scale(&h, 2.0)
}

#[graphable]
fn computed(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    ops::full(x.scope(), (x.dim(0) + 1, 2), 1.0f32)
}

/// The first branch replaces the error that a comparison noted.
#[graphable]
fn swallowed(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let wide = x.dim(0).get().is_ok();
    let same = x.dim(0) == 4;
    if wide || same { ops::neg(x) } else { ops::scale(x, 2.0) }
}

/// A branch that panics, as assertions do.
#[graphable]
fn asserted(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    assert!(x.dim(0) < 1000);
    ops::neg(x)
}

#[graphable]
fn asserted_outside(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let h = #[eager(support = Always)]
    ops::neg(x)?;
    assert!(h.dim(0) < 1000, "in host code");
    ops::scale(&h, 2.0)
}

#[graphable]
fn asserted_in_region(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let h = ops::neg(x)?;
    let h = #[eager]
    {
        assert!(h.dim(0) < 1000, "in a region");
        ops::neg(&h)?
    };
    ops::scale(&h, 2.0)
}

#[test]
fn an_assertion_on_a_padded_size_ends_in_its_error() {
    refuses!(AssertedGraph, Padded);
    refuses!(AssertedOutsideGraph, Padded);
    refuses!(AssertedInRegionGraph, Padded);
}

#[test]
fn a_padded_size_is_not_a_number() {
    refuses!(DividedGraph, Padded);
    refuses!(CountedGraph, Padded);
    refuses!(ByShapeGraph, Padded);
    refuses!(ComputedGraph, Padded);
}

#[test]
fn a_padded_size_steers_nothing() {
    refuses!(BranchedGraph, Padded);
    refuses!(CheckedGraph, Padded);
    refuses!(LoopedGraph, Padded);
    refuses!(BranchedOutsideGraph, Padded);
    refuses!(BranchedInRegionGraph, Padded);
    refuses!(SwallowedGraph, Padded);
}

/// What is the same for all sizes of a bucket may be asked.
#[graphable]
fn certain(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let y = ops::neg(x)?;
    let same = x.shape() == y.shape() && x.dim(0) == y.dim(0) && x.dim(0) <= y.dim(0);
    let other = x.shape() == [3] || x.dim(1) != 2 || x.shape() == [3, 3];
    let narrow = x.dim(1) / 2;
    if same && !other && narrow == 1 { ops::scale(&y, narrow.get()? as f32 * 3.0) } else { Ok(y) }
}

#[test]
fn what_is_certain_may_be_asked() {
    agrees!(CertainGraph);
}

/// The error names the symbol, the line and what to do.
#[test]
fn the_error_helps() {
    let mut rt = crate::runtime();
    let graph = DividedGraph::builder().bucket("B", crate::schedule()).build(&mut rt).unwrap();
    let step = rt.step().unwrap();
    let text = graph.call(&step, &crate::rows(3)).unwrap_err().to_string();
    for part in ["along B", "numbers.rs:", "ops::size", "cx.size"] {
        assert!(text.contains(part), "`{part}` is missing: {text}");
    }
}

/// Sizes of values that left a call, and those of constants, are numbers.
#[test]
fn outside_a_call_sizes_are_numbers() {
    let mut rt = crate::runtime();
    let graph = CertainGraph::builder().bucket("B", crate::schedule()).build(&mut rt).unwrap();
    let step = rt.step().unwrap();
    let y = graph.call(&step, &crate::rows(3)).unwrap();
    assert_eq!(y.shape(), [3, 2]);
    assert_eq!(y.count(), 6);
    let sizes: Vec<usize> = y.shape().into_iter().map(|n| n.get().unwrap()).collect();
    assert_eq!(sizes, [3, 2]);
    assert!(y.dim(0) > 2 && y.dim(5) == 1 && Dim::from(3) == y.dim(0));
}

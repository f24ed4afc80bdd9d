//! Sizes as all that a segment knows of padding, with several graph objects of one function; state behind a refused
//! comparison; sizes that leave a call.

use graphable::{Dim, Error, Param, Params, Result, State, Tensor, graphable, ops};

use crate::{MODES, runtime, schedule};

/// The second segment has a size and a scope, and no tensor.
#[graphable]
fn by_size(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let n = x.dim(0);
    let scope = x.scope();
    let y = ops::neg(x)?;
    #[eager]
    drop(y);
    ops::masked_sum(&ops::full(scope, (n, 1), 1.0f32)?, &ops::full(scope, (n, 1), true)?, 0)
}

/// The same with a shape.
#[graphable]
fn by_whole_shape(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let shape = x.shape();
    let scope = x.scope();
    let y = ops::neg(x)?;
    #[eager]
    drop(y);
    let ones = ops::full(scope, shape, 1.0f32)?;
    ops::masked_sum(&ops::narrow(&ones, 1, 0, 1)?, &ops::full(scope, (shape[0], 1), true)?, 0)
}

macro_rules! objects_know_their_own_size {
    ($($graph:ident)*) => {$({
        for mode in MODES {
            let mut rt = runtime();
            let graphs: Vec<_> =
                (0..3).map(|_| $graph::builder().bucket("B", schedule()).mode(mode).build(&mut rt).unwrap()).collect();
            for round in 0..24 {
                // Each object several times, then another one with another number of rows of one bucket.
                let (at, rows) = ((round / 4) % 3, [3, 2, 4][(round / 4) % 3]);
                let step = rt.step().unwrap();
                let y = graphs[at].call(&step, &crate::rows(rows)).unwrap();
                let what = format!("{}, {mode}, round {round}, object {at}", stringify!($graph));
                assert_eq!(step.read(&y).unwrap(), [rows as f32], "{what}");
            }
        }
    })*};
}

#[test]
fn each_graph_object_knows_its_own_size() {
    objects_know_their_own_size!(BySizeGraph ByWholeShapeGraph);
}

#[derive(Params)]
struct Store {
    state: State<f32>,
}

#[graphable]
fn stored_behind(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
    store: &Store,
) -> Result<Tensor<f32>> {
    if x.dim(0) <= 3 {
        return ops::neg(x);
    }
    ops::store(&store.state, &ops::full(x.scope(), [1], 7.0f32)?)?;
    ops::neg(x)
}

/// The error of the write is swallowed: that of the comparison is told all the same.
#[graphable]
fn stored_and_swallowed(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
    store: &Store,
) -> Result<Tensor<f32>> {
    if x.dim(0) == 2 || x.dim(0) != 3 || x.dim(0) > 1 {
        ops::store(&store.state, &ops::full(x.scope(), [1], 7.0f32)?).ok();
    }
    ops::store(&store.state, &ops::full(x.scope(), [1], 8.0f32)?).ok();
    ops::neg(x)
}

#[graphable]
fn stored_in_region(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
    store: &Store,
) -> Result<Tensor<f32>> {
    let y = #[eager]
    {
        let wide = x.dim(0) >= 2;
        ops::store(&store.state, &ops::full(x.scope(), [1], if wide { 7.0f32 } else { 8.0 })?)?;
        ops::neg(x)?
    };
    ops::neg(&y)
}

/// Host code compares, and a segment that may be replayed writes.
#[graphable]
fn stored_after_host_code(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
    store: &Store,
) -> Result<Tensor<f32>> {
    let mut h = ops::neg(x)?;
    if h.dim(0) > 2 {
        h = #[eager(support = Always)]
        ops::neg(&h)?;
    }
    ops::store(&store.state, &ops::full(h.scope(), [1], 7.0f32)?)?;
    ops::neg(&h)
}

macro_rules! writes_nothing {
    ($($graph:ident)*) => {$({
        for mode in MODES {
            let mut rt = runtime();
            let store = Store { state: State::zeros(&rt, &[1]).unwrap() };
            let graph = $graph::builder().bucket("B", schedule()).mode(mode).build(&mut rt).unwrap();
            for n in [2, 3, 4, 2, 1, 2] {
                let step = rt.step().unwrap();
                let error = graph.call(&step, &crate::rows(n), &store).unwrap_err();
                assert!(matches!(error, Error::PaddedSize { .. }), "{}, {mode}: {error}", stringify!($graph));
                let state = ops::load(step.scope(), &store.state).unwrap();
                assert_eq!(step.read(&state).unwrap(), [0.0], "{}, {mode}, {n} rows", stringify!($graph));
            }
        }
    })*};
}

#[test]
fn behind_a_refused_comparison_nothing_is_written() {
    writes_nothing!(StoredBehindGraph StoredAndSwallowedGraph StoredInRegionGraph StoredAfterHostCodeGraph);
}

#[graphable]
fn told_twice<'s>(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<'s, f32>,
) -> Result<(Dim<'s>, Tensor<'s, f32>)> {
    Ok((x.dim(0) * 2, ops::neg(x)?))
}

/// What was computed from a padded size is no number, and nothing that leaves a call either.
#[test]
fn a_computed_size_does_not_leave() {
    for mode in MODES {
        let mut rt = runtime();
        let graph = ToldTwiceGraph::builder().bucket("B", schedule()).mode(mode).build(&mut rt).unwrap();
        for n in [3, 4, 3, 3, 9] {
            let step = rt.step().unwrap();
            let error = graph.call(&step, &crate::rows(n)).unwrap_err();
            let named = matches!(&error, Error::PaddedSize { symbol, .. } if symbol == "B");
            assert!(named, "{mode}, {n} rows: {error}");
        }
        let plain = ToldTwiceGraph::builder().mode(mode).build(&mut rt).unwrap();
        let step = rt.step().unwrap();
        assert_eq!(plain.call(&step, &crate::rows(3)).unwrap().0, 6);
    }
}

macro_rules! places {
    ($($name:ident $graph:ident |$n:ident| $body:expr;)*) => {
        $(
            #[graphable]
            fn $name(
                #[host]
                #[dims(B, 2)]
                x: &Tensor<f32>,
            ) -> Result<Tensor<f32>> {
                let $n = x.dim(0);
                if $body { ops::neg(x) } else { ops::scale(x, 2.0) }
            }
        )*

        /// Every comparison is reported where it stands in the source.
        #[test]
        fn comparisons_are_reported_where_they_stand() {
            let mut rt = runtime();
            $(
                let graph = $graph::builder().bucket("B", schedule()).build(&mut rt).unwrap();
                let step = rt.step().unwrap();
                let text = graph.call(&step, &crate::rows(3)).unwrap_err().to_string();
                assert!(text.contains("objects.rs:"), "{}: {text}", stringify!($body));
                drop(step);
            )*
        }
    };
}
places! {
    equal EqualGraph |n| n == 3;
    unequal UnequalGraph |n| n != 3;
    below BelowGraph |n| n < 3;
    at_most AtMostGraph |n| n <= 3;
    above AboveGraph |n| n > 3;
    at_least AtLeastGraph |n| n >= 3;
    number_equal NumberEqualGraph |n| 3 == n;
    number_unequal NumberUnequalGraph |n| 3 != n;
    number_below NumberBelowGraph |n| 3 < n;
    number_at_least NumberAtLeastGraph |n| 3 >= n;
    both_unequal BothUnequalGraph |n| n != n * 1;
    both_below BothBelowGraph |n| n < n + 1;
}

#[derive(Params)]
struct Weights {
    w: Param<f32>,
}

#[graphable]
fn aliased(#[dims(B)] x: &Tensor<f32>, z: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::scale(x, if x.same_memory(z) { 100.0 } else { 1.0 })
}

#[graphable]
fn aliased_parameter(#[dims(B)] x: &Tensor<f32>, weights: &Weights) -> Result<Tensor<f32>> {
    let w = x.scope().view(&weights.w)?;
    ops::scale(x, if x.same_memory(&w) { 100.0 } else { 1.0 })
}

/// A padded input that shows a parameter, and one that does not.
#[test]
fn a_padded_input_may_be_a_view_of_a_parameter() {
    for mode in MODES {
        let mut rt = runtime();
        let weights = Weights { w: Param::new(&rt, &[3], &[1.0f32, 2.0, 3.0]).unwrap() };
        let one = AliasedGraph::builder().bucket("B", schedule()).mode(mode).build(&mut rt).unwrap();
        let two = AliasedParameterGraph::builder().bucket("B", schedule()).mode(mode).build(&mut rt).unwrap();
        for round in 0..16 {
            let step = rt.step().unwrap();
            let w = step.scope().view(&weights.w).unwrap();
            let other = step.tensor(&[3], &[1.0f32, 2.0, 3.0]).unwrap();
            let same = round % 8 >= 4;
            let x = if same { &w } else { &other };
            let factor = if same { 100.0 } else { 1.0 };
            for y in [one.call(&step, x, &w).unwrap(), two.call(&step, x, &weights).unwrap()] {
                assert_eq!(step.read(&y).unwrap(), [factor, 2.0 * factor, 3.0 * factor], "{mode}, {round}");
            }
        }
    }
}

//! Operations along an axis, and those that move elements to other places.

use graphable::{Dim, Result, Tensor, ops};

use super::{Given, table};

/// `x` between -1 and 1, so that what follows stays small.
fn unit<'s>(g: &Given<'_, 's>) -> Result<Tensor<'s, f32>> {
    ops::tanh(g.f(0)?)
}

/// A moment, or 0 where nothing counts.
fn some<'s>(moment: Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::where_(&ops::isnan(&moment)?, 0.0, &moment)
}

/// `x` as often as the first number says along the axis.
fn repeat<'s>(g: &Given<'_, 's>) -> Result<Tensor<'s, f32>> {
    let x = g.f(0)?;
    let times: Vec<usize> = (0..x.rank()).map(|axis| if axis == g.axis { g.n(0, 4) } else { 1 }).collect();
    ops::repeat(x, &times)
}

/// Some diagonal.
fn diagonal(g: &Given<'_, '_>) -> i32 {
    g.n(0, 5) as i32 - 2
}

fn first_and_last<'s>(x: &Tensor<'s, f32>) -> [Dim<'s>; 2] {
    [x.dim(0), x.dim(x.rank().saturating_sub(1))]
}

/// One of the parts.
fn part<'s>(g: &Given<'_, 's>, mut parts: Vec<Tensor<'s, f32>>) -> Result<Tensor<'s, f32>> {
    Ok(parts.swap_remove(g.n(0, parts.len())))
}

table! {
    min: Smooth, removed, |g| ops::min(g.f(0)?, g.axis);
    argmin: Steep, index, |g| ops::argmin(g.f(0)?, g.axis);
    prod: Sum, removed, |g| ops::prod(&unit(g)?, g.axis);
    all: Smooth, decided, |g| ops::all(g.b(0)?, g.axis);
    any: Smooth, decided, |g| ops::any(g.b(0)?, g.axis);
    var: Sum, removed, |g| ops::var(&unit(g)?, g.axis, 0);
    std: SteepSum, removed, |g| ops::std(&unit(g)?, g.axis, 0);
    logsumexp: Sum, removed, |g| ops::logsumexp(g.f(0)?, g.axis);
    sum_keepdim: Sum, kept, |g| ops::sum_keepdim(g.f(0)?, g.axis);
    mean_keepdim: Sum, kept, |g| ops::mean_keepdim(g.f(0)?, g.axis);
    max_keepdim: Smooth, kept, |g| ops::max_keepdim(g.f(0)?, g.axis);
    min_keepdim: Smooth, kept, |g| ops::min_keepdim(g.f(0)?, g.axis);
    prod_keepdim: Sum, kept, |g| ops::prod_keepdim(&unit(g)?, g.axis);
    logsumexp_keepdim: Sum, kept, |g| ops::logsumexp_keepdim(g.f(0)?, g.axis);
    var_keepdim: Sum, kept, |g| ops::var_keepdim(&unit(g)?, g.axis, 0);
    std_keepdim: SteepSum, kept, |g| ops::std_keepdim(&unit(g)?, g.axis, 0);
    masked_max: Smooth, masked_removed, |g| ops::maximum(&ops::masked_max(g.f(0)?, g.b(1)?, g.axis)?, -1e3);
    masked_min: Smooth, masked_removed, |g| ops::minimum(&ops::masked_min(g.f(0)?, g.b(1)?, g.axis)?, 1e3);
    masked_argmax: Steep, masked_index, |g| ops::masked_argmax(g.f(0)?, g.b(1)?, g.axis);
    masked_argmin: Steep, masked_index, |g| ops::masked_argmin(g.f(0)?, g.b(1)?, g.axis);
    masked_prod: Product, masked_removed, |g| ops::masked_prod(&unit(g)?, g.b(1)?, g.axis);
    masked_logsumexp: Product, masked_removed, |g| {
        ops::maximum(&ops::masked_logsumexp(g.f(0)?, g.b(1)?, g.axis)?, -1e3)
    };
    masked_log_softmax: Product, masked, |g| {
        // Infinite where an element does not count.
        ops::maximum(&ops::masked_log_softmax(g.f(0)?, g.b(1)?, g.axis)?, -1e3)
    };
    masked_sum: Product, masked_removed, |g| ops::masked_sum(g.f(0)?, g.b(1)?, g.axis);
    masked_mean: Product, masked_removed, |g| ops::masked_mean(g.f(0)?, g.b(1)?, g.axis);
    masked_softmax: Product, masked, |g| ops::masked_softmax(g.f(0)?, g.b(1)?, g.axis);

    masked_var: Product, masked_removed, |g| some(ops::masked_var(&unit(g)?, g.b(1)?, g.axis, 0)?);
    masked_std: Product, masked_removed, |g| some(ops::masked_std(&unit(g)?, g.b(1)?, g.axis, 0)?);
    masked_any: Smooth, masked_removed_of(Bool), |g| ops::masked_any(g.b(0)?, g.b(1)?, g.axis);
    masked_all: Smooth, masked_removed_of(Bool), |g| ops::masked_all(g.b(0)?, g.b(1)?, g.axis);

    cumsum: Product, ordered, |g| ops::cumsum(&unit(g)?, g.axis);
    sort: Smooth, ordered, |g| ops::sort(g.f(0)?, g.axis, g.n(0, 2) == 1).map(|(values, _)| values);
    argsort: Steep, ordered_indices, |g| ops::argsort(g.f(0)?, g.axis, g.n(0, 2) == 1);
    cumsum: Sum, lines, |g| ops::cumsum(&unit(g)?, g.axis);
    sort: Smooth, lines, |g| ops::sort(g.f(0)?, g.axis, g.n(0, 2) == 1).map(|(values, _)| values);
    sort: Steep, indices, |g| ops::sort(g.f(0)?, g.axis, g.n(0, 2) == 1).map(|(_, index)| index);
    argsort: Steep, indices, |g| ops::argsort(g.f(0)?, g.axis, g.n(0, 2) == 1);
    topk: Smooth, some_of, |g| ops::topk(g.f(0)?, g.n(0, 1000), g.axis).map(|(values, _)| values);
    topk: Steep, indices_of_some, |g| ops::topk(g.f(0)?, g.n(0, 1000), g.axis).map(|(_, index)| index);

    stack: Smooth, joined, |g| ops::stack(&[g.f(0)?, g.f(1)?], g.axis);
    flip: Smooth, lines, |g| ops::flip(g.f(0)?, g.axis);
    roll: Smooth, lines, |g| ops::roll(g.f(0)?, g.n(0, 9) as isize - 4, g.axis);
    repeat: Smooth, repeated, |g| repeat(g);
    index_select: Smooth, selected, |g| ops::index_select(g.f(0)?, g.axis, g.u(1)?);
    one_hot: Smooth, classes, |g| ops::one_hot::<f32>(g.u(0)?, g.n(0, 1000));
    tril: Smooth, matrices, |g| ops::tril(g.f(0)?, diagonal(g));
    triu: Smooth, matrices, |g| ops::triu(g.f(0)?, diagonal(g));
    tri: Smooth, square, |g| ops::tri(g.f(0)?.scope(), first_and_last(g.f(0)?), diagonal(g));
    permute: Smooth, turned, |g| {
        let rank = g.f(0)?.rank();
        ops::permute(g.f(0)?, &(1..rank).chain([0]).collect::<Vec<_>>())
    };
    split: Smooth, halves, |g| part(g, ops::split(g.f(0)?, g.axis, 2)?);
    split_at: Smooth, halves, |g| {
        let half = g.f(0)?.dim(g.axis).get()? / 2;
        part(g, ops::split_at(g.f(0)?, g.axis, [half, half])?)
    };
    size: Smooth, number, |g| ops::size(g.f(0)?, g.axis);
}

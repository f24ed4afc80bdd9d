//! Additions at indices, tokens in the order of their experts, and products of groups of rows.

use graphable::{
    Result, Tensor,
    ops::{self, MoeRoutes},
};

use super::{Given, layers::weights, table};

/// A number below `bound` for each place along `axis`.
fn numbers<'s>(x: &Tensor<'s, f32>, axis: usize, bound: usize) -> Result<Tensor<'s, u32>> {
    ops::remainder(&ops::arange::<u32>(x.scope(), x.dim(axis))?, bound as u32)
}

/// Two experts of three for each row.
fn routes<'s>(x: &Tensor<'s, f32>) -> Result<MoeRoutes<'s>> {
    let first = numbers(x, 0, 3)?;
    let second = ops::remainder(&ops::add(&first, 1)?, 3)?;
    ops::moe_route(&ops::stack(&[&first, &second], 1)?, 3)
}

fn added<'s>(g: &Given<'_, 's>) -> Result<Tensor<'s, f32>> {
    let x = g.f(0)?;
    let mut index = numbers(x, g.axis, 1 + g.n(0, 3))?;
    for _ in g.axis + 1..x.rank() {
        index = ops::unsqueeze(&index, index.rank())?;
    }
    ops::scatter_add(x, g.axis, &ops::broadcast_to(&index, x.shape())?, &ops::scale(x, 0.25)?)
}

/// Sums of rows, and for each row that of its number.
fn summed<'s>(g: &Given<'_, 's>) -> Result<Tensor<'s, f32>> {
    let x = g.f(0)?;
    let index = numbers(x, 0, 3)?;
    let mut sums = x.shape().to_vec();
    sums[0] = 3.into();
    let sums = ops::full(x.scope(), &sums[..], 0.5f32)?;
    ops::gather(&ops::index_add(&sums, 0, &index, &ops::scale(x, 0.25)?)?, 0, &index)
}

/// Through the experts, each a matrix, and back.
fn mixed<'s>(g: &Given<'_, 's>, transposed: bool) -> Result<Tensor<'s, f32>> {
    let (x, n) = (g.f(0)?, g.f(0)?.dim(1).get()?);
    let routes = routes(x)?;
    let w = weights(x, &[3, n, n], 3.0 * n as f64)?;
    let h = ops::moe_permute(x, &routes)?;
    let h = match transposed {
        true => ops::grouped_mm_nt(&h, &w, routes.ends())?,
        false => ops::grouped_mm(&h, &w, routes.ends())?,
    };
    back(&h, &routes)
}

fn back<'s>(h: &Tensor<'s, f32>, routes: &MoeRoutes<'s>) -> Result<Tensor<'s, f32>> {
    let weights = ops::full(h.scope(), [h.dim(0), h.dim(1)], 0.5f32)?;
    ops::moe_unpermute(h, &weights, routes)
}

/// What the first choice of each row is, as `[any, 1]`.
fn first<'s>(of_choices: &Tensor<'s, u32>) -> Result<Tensor<'s, f32>> {
    ops::cast(&ops::narrow(of_choices, 1, 0, 1)?)
}

table! {
    scatter_add: Smooth, items, |g| added(g);
    index_add: Smooth, items, |g| summed(g);
    moe_route: Smooth, tokens, |g| {
        let routes = routes(g.f(0)?)?;
        ops::sub(g.f(0)?, &ops::tanh(&ops::sub(&first(routes.places())?, &first(routes.tokens())?)?)?)
    };
    moe_permute: Smooth, tokens, |g| {
        let h = ops::moe_permute(g.f(0)?, &routes(g.f(0)?)?)?;
        ops::squeeze(&ops::narrow(&h, 1, g.n(0, 2), 1)?, 1)
    };
    moe_unpermute: Smooth, tokens, |g| {
        let routes = routes(g.f(0)?)?;
        back(&ops::moe_permute(g.f(0)?, &routes)?, &routes)
    };
    grouped_mm: Product, tokens, |g| mixed(g, false);
    grouped_mm_nt: Product, tokens, |g| mixed(g, true);
}

//! Additions at indices, and routes to experts, of padded rows: what a bucket adds goes nowhere.

use graphable::{Result, Tensor, graphable, ops};

use crate::{Outcome, agrees, each, refuses};

/// Numbers of the rows, from 0 to 2.
#[graphable]
fn thirds(x: &Tensor<f32>) -> Result<Tensor<u32>> {
    ops::remainder(&ops::arange::<u32>(x.scope(), x.dim(0))?, 3)
}

/// Entries, whose padding holds what it does not add.
#[graphable]
fn added(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let x = ops::add(x, 0.3)?;
    let sums = ops::index_add(&ops::full(x.scope(), [3, 2], 0.1f32)?, 0, &thirds(&x)?, &x)?;
    let index = ops::broadcast_to(&ops::unsqueeze(&thirds(&x)?, 1)?, x.shape())?;
    ops::scatter_add(&sums, 0, &index, &x)
}

/// Targets that are padded, and the padding beside the axis.
#[graphable]
fn beside(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let none = ops::zeros::<u32>(x.scope(), [5])?;
    let y = ops::index_add(x, 0, &none, &ops::full(x.scope(), [5, 2], 0.7f32)?)?;
    // One column, which is there twice.
    let index = ops::full(x.scope(), (x.dim(0), 2), 1u32)?;
    ops::scatter_add(&y, 1, &index, x)
}

/// The row behind the last real one.
#[graphable]
fn beyond(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let last = ops::reshape(&ops::size(x, 0)?, [1])?;
    ops::index_add(x, 0, &last, &ops::full(x.scope(), [1, 2], 1.0f32)?)
}

/// One of several dimensions before the axis.
#[graphable]
fn between(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let x = ops::reshape(x, (x.dim(0), 2, 1))?;
    let sums = ops::index_add(&x, 2, &ops::zeros::<u32>(x.scope(), [1])?, &x)?;
    ops::reshape(&sums, (x.dim(0), 2))
}

/// Two of three experts for each row, and one for nobody: their numbers in the padding would be experts, too.
#[graphable]
fn routed(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let x = ops::add(x, 0.3)?;
    let first = thirds(&x)?;
    let nobody = ops::full(x.scope(), (), u32::MAX)?;
    let second = ops::where_(&ops::eq(&first, 1)?, &ops::remainder(&ops::add(&first, 1)?, 3)?, &nobody)?;
    let routes = ops::moe_route(&ops::stack(&[&first, &second], 1)?, 3)?;
    let w = ops::reshape(&ops::arange_step::<f32>(x.scope(), 18, -1.0, 0.13)?, [3, 2, 3])?;
    let h = ops::grouped_mm(&ops::moe_permute(&x, &routes)?, &w, routes.ends())?;
    let h = ops::grouped_mm_nt(&ops::tanh(&h)?, &w, routes.ends())?;
    ops::moe_unpermute(&h, &ops::mul(&x, 0.5)?, &routes)
}

/// More experts than there are, in real rows alone.
#[graphable]
fn wrongly_routed(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let choices = ops::unsqueeze(&ops::arange::<u32>(x.scope(), x.dim(0))?, 1)?;
    let routes = ops::moe_route(&choices, 4)?;
    ops::moe_permute(x, &routes)
}

/// Choices of one row, as many as there are rows.
#[graphable]
fn choices_of_one(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let routes = ops::moe_route(&ops::unsqueeze(&thirds(x)?, 0)?, 3)?;
    ops::moe_permute(&ops::full(x.scope(), [1, 2], 1.0f32)?, &routes)
}

/// Rows that are counted through a padded dimension, which is not the first.
#[graphable]
fn counted(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let columns = ops::unsqueeze(&ops::transpose(x, 0, 1)?, 2)?;
    let (w, ends) = (ops::full(x.scope(), [1, 1, 1], 1.0f32)?, ops::full(x.scope(), [1], 4u32)?);
    let y = ops::grouped_mm(&columns, &w, &ends)?;
    ops::transpose(&ops::squeeze(&y, 2)?, 0, 1)
}

#[test]
fn groups_of_rows_begin_with_the_real_ones() {
    refuses!(CountedGraph, Mix);
}

#[test]
fn entries_of_the_padding_are_added_to_nothing() {
    agrees!(AddedGraph);
    agrees!(BesideGraph);
    each!(BeyondGraph, |plain, n, mode, got| {
        assert_eq!(got, Outcome::OutOfRange { index: n as u64, bound: n as u64 }, "{mode}: {plain:?}");
    });
    refuses!(BetweenGraph, Mix);
}

#[test]
fn rows_of_the_padding_go_to_no_expert() {
    agrees!(RoutedGraph);
    each!(WronglyRoutedGraph, |plain, n, mode, got| {
        let missing = Outcome::OutOfRange { index: 4, bound: 4 };
        assert_eq!(got == missing, n > 4, "{mode}: {got:?}");
        assert_eq!(got, plain, "{mode}, {n} rows");
    });
    refuses!(ChoicesOfOneGraph, Mix);
}

//! Masks, lengths, positions and indices that point into padding: kernels know the real sizes.

use graphable::{
    Result, Tensor, graphable, kernel,
    ops::{self, AttentionConfig, AttentionMask, RopeConfig, RopeScaling, RopeStyle},
};

use crate::{Outcome, agrees, agrees_but_for_products, each, refuses};

#[graphable]
fn all_true(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    ops::masked_mean(x, &ops::ge(x, &ops::full(x.scope(), (), -10.0f32)?)?, 0)
}

#[graphable]
fn one_mask(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    ops::masked_mean(x, &ops::full(x.scope(), (1, 2), true)?, 0)
}

#[graphable]
fn transposed_sum(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let shifted = ops::exp(&ops::scale(x, 0.1)?)?;
    ops::masked_sum(&ops::transpose(&shifted, 0, 1)?, &ops::full(x.scope(), [x.dim(0)], true)?, 1)
}

/// Queries and keys `[B, 1, 2]`: of lengths and positions beyond the keys.
#[graphable]
fn lengths(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let x = ops::unsqueeze(x, 1)?;
    let length = ops::full(x.scope(), [1], 100u32)?;
    ops::attention(&x, &x, &x, AttentionMask::Lengths(&length), 0.3)
}

#[graphable]
fn positions(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let x = ops::unsqueeze(x, 1)?;
    let positions = ops::full(x.scope(), [x.dim(0)], 6u32)?;
    ops::attention(&x, &x, &x, AttentionMask::Positions(&positions), 0.3)
}

/// One query, so that few rows meet many keys.
#[graphable]
fn one_query(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let keys = ops::unsqueeze(x, 1)?;
    let query = ops::full(x.scope(), (1, 1, 2), 0.5f32)?;
    let length = ops::full(x.scope(), [1], u32::MAX)?;
    ops::attention(&query, &keys, &keys, AttentionMask::Lengths(&length), 1.0)
}

/// In a batch of three, which no bucket pads.
#[graphable]
fn batched(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let x = ops::unsqueeze(&ops::broadcast_to(x, (3, x.dim(0), 2))?, 2)?;
    let lengths = ops::arange::<u32>(x.scope(), 3)?;
    let lengths = ops::mul(&lengths, &ops::full(x.scope(), (), 5u32)?)?;
    ops::attention(&x, &x, &x, AttentionMask::Lengths(&lengths), 0.3)
}

/// What is in the padding is not zero.
#[graphable]
fn products_of_columns(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let shifted = ops::div(&ops::add(x, 3.0)?, x)?;
    let finite = ops::clamp(&shifted, -9.0, 9.0)?;
    ops::masked_matmul(&ops::transpose(&finite, 0, 1)?, &ops::exp(&ops::neg(x)?)?)
}

/// Where the padding has no number.
#[graphable]
fn products_beside_nan(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let odd = ops::where_(&ops::eq(x, 0.0)?, f32::NAN, x)?;
    let rows = ops::unsqueeze(&odd, 0)?;
    ops::masked_matmul(&ops::transpose(&rows, 1, 2)?, &odd)
}

/// Everything that changes scores; in the padding, queries, keys, positions and the bias are others.
#[graphable]
fn changed_scores(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let q = ops::unsqueeze(x, 1)?;
    let bias = ops::matmul_nt(x, x)?;
    let sinks = ops::full(x.scope(), [1], 0.5f32)?;
    let positions = ops::arange::<u32>(x.scope(), x.dim(0))?;
    let config = AttentionConfig::new(AttentionMask::Positions(&positions));
    let config = config.bias(&bias).alibi().window(2, 0).soft_cap(3.0).sinks(&sinks);
    ops::attention(&q, &q, &q, config, 0.5)
}

/// A window around each query, over as many keys as there are.
#[graphable]
fn around(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let q = ops::unsqueeze(x, 1)?;
    let length = ops::full(x.scope(), [1], 100u32)?;
    let row = ops::unsqueeze(&ops::sum(x, 1)?, 0)?;
    let config = AttentionConfig::new(AttentionMask::Lengths(&length)).window(1, 1).bias(&row).alibi();
    ops::attention(&q, &q, &q, config, 0.5)
}

#[graphable]
fn causal_window(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let q = ops::unsqueeze(x, 1)?;
    let config = AttentionConfig::new(AttentionMask::Causal).window(3, 0).alibi();
    ops::attention(&q, &q, &q, config, 0.5)
}

/// The length by which angles are scaled is that of the real rows; the positions of the padding are larger.
#[graphable]
fn turned_by_length(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let x = ops::unsqueeze(&ops::concat(&[x, x], 1)?, 1)?;
    let scaling = RopeScaling::DynamicNtk { factor: 4.0, original_max_position_embeddings: 2 };
    let config = RopeConfig::new(100.0, RopeStyle::HalfSplit).scaling(scaling);
    ops::rope(&x, &ops::arange::<u32>(x.scope(), x.dim(0))?, config)
}

/// In a batch whose rows are padded, as are the times.
#[graphable]
fn turned_by_batch(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let x = ops::unsqueeze(&ops::concat(&[x, x], 1)?, 1)?;
    let x = ops::broadcast_to(&ops::unsqueeze(&x, 1)?, (x.dim(0), 3, 1, 4))?;
    let row = ops::unsqueeze(&ops::arange::<u32>(x.scope(), x.dim(0))?, 1)?;
    let at = ops::add(&row, &ops::arange::<u32>(x.scope(), 3)?)?;
    let scaling = RopeScaling::DynamicNtk { factor: 4.0, original_max_position_embeddings: 3 };
    let config = RopeConfig::new(100.0, RopeStyle::HalfSplit).scaling(scaling);
    ops::sum(&ops::rope(&x, &at, config)?, 1)
}

/// The bias is what the padding holds, where it is read.
#[graphable]
fn picked(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let h = ops::add(x, &ops::full(x.scope(), [2], 5.0f32)?)?;
    let index = ops::arange_step::<u32>(x.scope(), 2, 0.0, 3.0)?;
    ops::gather(&h, 0, &index)
}

#[graphable]
fn embedded(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let ids = ops::arange_step::<u32>(x.scope(), 2, 1.0, 2.0)?;
    ops::embedding(&ids, &ops::add(x, &ops::full(x.scope(), [2], 5.0f32)?)?)
}

/// Indices of the padding are no mistakes, whatever they are.
#[graphable]
fn wild_padding(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    // 0 .. n - 1 in real rows, beyond them in the others.
    let index = ops::arange::<u32>(x.scope(), x.dim(0))?;
    let rows = ops::gather(x, 0, &index)?;
    let ids = ops::broadcast_to(&ops::unsqueeze(&index, 1)?, (x.dim(0), 3))?;
    let table = ops::gather(x, 0, &ops::full(x.scope(), [9], 0u32)?)?;
    let same = ops::embedding(&ids, &ops::add(&table, &ops::full(x.scope(), [9, 1], 1.0f32)?)?)?;
    ops::add(&rows, &ops::sum(&same, 1)?)
}

/// Reads beyond the row in rows from the `real`th on.
#[kernel(rows)]
fn second(x: Row<f32>, row: u32, real: u32) -> f32 {
    x.at(if row < real { 1 } else { 9 })
}

/// Only rows of the padding read beyond their ends.
#[graphable]
fn indexed_rows(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let row = ops::arange::<u32>(x.scope(), x.dim(0))?;
    let real = ops::size(x, 0)?;
    let y = second(x, &row, &real)?;
    // The padding is the second of three dimensions, and the first of them.
    let inner = second(&ops::broadcast_to(x, (3, x.dim(0), 2))?, &row, &real)?;
    let wide = ops::broadcast_to(&ops::unsqueeze(x, 1)?, (x.dim(0), 3, 2))?;
    let outer = second(&wide, &ops::unsqueeze(&row, 1)?, &real)?;
    ops::add(&ops::add(&y, &ops::sum(&inner, 0)?)?, &ops::sum(&outer, 1)?)
}

/// So does the last real row.
#[graphable]
fn wrongly_indexed_rows(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let row = ops::arange::<u32>(x.scope(), x.dim(0))?;
    let before = ops::sub(&ops::size(x, 0)?, &ops::full(x.scope(), (), 1u32)?)?;
    second(x, &row, &before)
}

/// The value so far from the end, by the size that the kernel sees.
#[kernel(index)]
fn reversed(x: View<f32, 2>, back: i32, [i, j]: [i32; 2]) -> f32 {
    x.at([x.dim(0) - back - i, j])
}

/// The mean of a row and of those around it, of which there may be fewer at the ends.
#[kernel(index)]
fn smoothed(x: View<f32, 2>, [i, j]: [i32; 2]) -> f32 {
    let (mut sum, mut count) = (0.0, 0.0);
    for k in -1..=1 {
        sum += x.at_or([i + k, j], 0.0);
        count += f32::from(x.at_or([i + k, j], f32::NAN).is_finite());
    }
    sum / count.max(1.0)
}

/// The sum of all rows, for each row of another dimension.
#[kernel(index)]
fn totals(x: View<f32, 2>, [_, j]: [i32; 2]) -> f32 {
    let rows = x.dim(0);
    let mut sum = 0.0;
    for i in 0..rows {
        sum += x.at([i, j]);
    }
    sum
}

/// The size as every element of the result, whose padding computes nothing.
#[kernel(index)]
fn sizes(x: View<f32, 2>, [i]: [i32; 1]) -> f32 {
    x.dim(0) as f32 + x.at([i, 1])
}

#[graphable]
fn reversed_rows(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let y = reversed(x, 1, x.shape())?;
    let sums = ops::add(&totals(&y, (3, 2))?, &totals(x, [3, 2])?)?;
    let y = ops::add(&y, &ops::unsqueeze(&sizes(x, [x.dim(0)])?, 1)?)?;
    ops::add(&smoothed(&y, y.shape())?, &ops::gather(&sums, 0, &ops::full(x.scope(), [1], 0u32)?)?)
}

/// Reads the first value of the padding.
#[graphable]
fn wrongly_reversed_rows(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    reversed(x, 0, x.shape())
}

/// More rows than there are real ones, none of them padded; and a size that is computed from a padded one.
#[graphable]
fn nine_rows(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    smoothed(x, (9, 2))
}

#[graphable]
fn half_of_the_rows(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    smoothed(x, (x.dim(0) / 2, 2))
}

#[kernel(index)]
fn shifted(x: View<f32, 2>, by: f32, [i, j]: [i32; 2]) -> f32 {
    x.at([i, j]) + by
}

/// A padded tensor as a value.
#[graphable]
fn padded_number(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let one = ops::narrow(x, 1, 0, 1)?;
    shifted(x, &one, x.shape())
}

/// All masks are true in the padding.
#[graphable]
fn masked_forms(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let mask = ops::le(x, 2.0)?;
    let ends = ops::add(&ops::masked_max(x, &mask, 0)?, &ops::masked_min(x, &mask, 0)?)?;
    let first = ops::cast::<_, f32>(&ops::masked_argmax(x, &mask, 0)?)?;
    ops::add(&ops::masked_softmax(x, &mask, 0)?, &ops::add(&ends, &first)?)
}

/// In the padding, masks are true, and elements are what they are.
#[graphable]
fn further_masked_forms(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let wild = ops::log(&ops::sub(x, 3.0)?)?;
    let all = ops::full(x.scope(), x.shape(), true)?;
    let double = ops::cast::<_, f64>(x)?;
    let spread = ops::add(&ops::masked_var(x, &all, 0, 0)?, &ops::masked_std(x, &ops::lt(x, 6.5)?, 0, 0)?)?;
    let of_doubles = ops::add(&ops::masked_mean(&double, &all, 0)?, &ops::masked_sum(&double, &all, 0)?)?;
    let of_doubles = ops::add(&of_doubles, &ops::masked_max(&double, &all, 0)?)?;
    let long = ops::cast::<_, i64>(x)?;
    let of_longs = ops::add(&ops::masked_sum(&long, &all, 0)?, &ops::masked_min(&long, &all, 0)?)?;
    let flags =
        [ops::masked_any(&ops::isnan(&wild)?, &all, 0)?, ops::masked_all(&ops::isfinite(&wild)?, &all, 0)?];
    let [some, every] = [ops::cast::<_, f32>(&flags[0])?, ops::cast::<_, f32>(&flags[1])?];
    let y = ops::add(&ops::add(&spread, &some)?, &ops::scale(&every, 2.0)?)?;
    let y = ops::add(&y, &ops::add(&ops::cast::<_, f32>(&of_doubles)?, &ops::cast::<_, f32>(&of_longs)?)?)?;
    ops::add(&ops::zeros_like(x)?, &y)
}

/// Along the padded axis, of values of which some are equal; the padding has smaller ones, and larger ones.
#[graphable]
fn columns_in_order(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let mixed = ops::sin(&ops::mul(x, 1.7)?)?;
    let coarse = ops::round(&ops::mul(&mixed, 2.0)?)?;
    let (up, _) = ops::sort(&mixed, 0, false)?;
    let (down, places) = ops::sort(&coarse, 0, true)?;
    let long = ops::argsort(&ops::cast::<_, i64>(&coarse)?, 0, false)?;
    let double = ops::argsort(&ops::neg(&ops::cast::<_, f64>(&mixed)?)?, 0, true)?;
    let places = ops::cast::<_, f32>(&ops::add(
        &ops::add(&places, &ops::mul(&long, 10u32)?)?,
        &ops::mul(&double, 100u32)?,
    )?)?;
    let sums =
        ops::add(&ops::cumsum(&mixed, 0)?, &ops::cumsum(&ops::reciprocal(&ops::add(&coarse, 0.3)?)?, 0)?)?;
    ops::add(&ops::add(&ops::add(&up, &ops::mul(&down, 7.0)?)?, &sums)?, &places)
}

/// Of each row.
#[graphable]
fn rows_in_order(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let (sorted, order) = ops::sort(x, 1, true)?;
    let (largest, _) = ops::topk(&ops::roll(x, 1, 1)?, 1, 1)?;
    let labels = ops::narrow(&ops::cast::<_, i32>(&order)?, 1, 0, 1)?;
    let loss = ops::cross_entropy(&ops::cumsum(x, 1)?, &ops::squeeze(&labels, 1)?, -100, 0.1)?;
    let y = ops::add(&ops::flip(&sorted, 1)?, &ops::add(&largest, &ops::unsqueeze(&loss, 1)?)?)?;
    ops::mul(&y, &ops::one_hot::<f32>(&ops::squeeze(&ops::narrow(&order, 1, 0, 1)?, 1)?, 2)?)
}

#[test]
fn masked_forms_and_order_see_the_real_rows() {
    agrees!(MaskedFormsGraph);
    agrees!(RowsInOrderGraph);
    agrees!(FurtherMaskedFormsGraph);
    agrees!(ColumnsInOrderGraph);
}

#[test]
fn indices_know_the_real_sizes() {
    agrees!(ReversedRowsGraph);
    agrees!(NineRowsGraph);
    agrees!(WronglyReversedRowsGraph);
    // That they met what they are about.
    each!(WronglyReversedRowsGraph, |plain, n, mode, got| {
        assert_eq!(got, Outcome::OutOfRange { index: n as u64, bound: n as u64 }, "{mode}: {plain:?}");
    });
    refuses!(HalfOfTheRowsGraph, Padded);
    each!(PaddedNumberGraph, |_plain, n, mode, got| assert_eq!(got, Outcome::Mix, "{mode}, {n} rows"));
}

#[test]
fn rows_of_the_padding_index_nothing() {
    agrees!(IndexedRowsGraph);
    each!(WronglyIndexedRowsGraph, |plain, n, mode, got| {
        assert!(matches!(got, Outcome::OutOfRange { .. }), "{mode}, {n} rows: {got:?}");
        assert_eq!(got, plain, "{mode}, {n} rows");
    });
}

#[test]
fn masks_that_are_true_in_the_padding() {
    agrees!(AllTrueGraph);
    agrees!(OneMaskGraph);
    agrees!(TransposedSumGraph);
}

#[test]
fn attention_sees_the_real_keys() {
    agrees!(LengthsGraph);
    agrees!(PositionsGraph);
    agrees!(OneQueryGraph);
    agrees!(BatchedGraph);
    agrees!(ChangedScoresGraph);
    agrees!(AroundGraph);
    agrees!(CausalWindowGraph);
}

#[test]
fn products_over_padding_have_the_real_terms() {
    agrees_but_for_products!(ProductsOfColumnsGraph);
    agrees_but_for_products!(ProductsBesideNanGraph);
}

#[test]
fn the_length_of_a_sequence_is_the_real_one() {
    agrees!(TurnedByLengthGraph);
    agrees!(TurnedByBatchGraph);
}

#[test]
fn an_index_into_padding_is_out_of_range() {
    agrees!(PickedGraph);
    agrees!(EmbeddedGraph);
    agrees!(WildPaddingGraph);
    // That they met what they are about.
    each!(PickedGraph, |plain, n, mode, got| {
        let missing = Outcome::OutOfRange { index: 3, bound: n as u64 };
        assert_eq!(got == missing, n <= 3, "{mode}: {plain:?}");
    });
}

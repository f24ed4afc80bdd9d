//! Shapes with padded sizes: what is made with them is padded, and cut back where it leaves the call.

use graphable::{Dim, Param, Params, Result, Tensor, graphable, ops};

use crate::{agrees, refuses};

#[graphable]
fn filled(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    ops::full(x.scope(), (x.dim(0), 3), 7.0f32)
}

#[graphable]
fn numbered(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let rows = ops::arange_step::<f32>(x.scope(), x.dim(0), 10.0, 2.0)?;
    ops::add(x, &ops::unsqueeze(&rows, 1)?)
}

/// Positions from the last row to the first.
#[graphable]
fn reversed(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let last = ops::sub(&ops::size(x, 0)?, &ops::full(x.scope(), (), 1u32)?)?;
    let back = ops::neg(&ops::arange::<u32>(x.scope(), x.dim(0))?)?;
    // In the padding, places wrap around: no index of a real row does.
    ops::gather(x, 0, &ops::add(&back, &last)?)
}

#[graphable]
fn last(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let last = ops::sub(&ops::size(x, 0)?, &ops::full(x.scope(), (), 1u32)?)?;
    ops::gather(x, 0, &ops::reshape(&last, [1])?)
}

#[graphable]
fn per_row(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    ops::div(x, &ops::cast::<_, f32>(&ops::size(x, 0)?)?)
}

/// The mean of all rows, by one's own arithmetic.
#[graphable]
fn mean(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let all = ops::full(x.scope(), (x.dim(0), 1), true)?;
    ops::div(&ops::masked_sum(x, &all, 0)?, &ops::cast::<_, f32>(&ops::size(x, 0)?)?)
}

#[graphable]
fn reshaped(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let y = ops::reshape(x, (x.dim(0), 2, x.dim(1) / 2))?;
    let z = ops::reshape(&ops::transpose(&y, 0, 1)?, [y.dim(1), y.dim(0)])?;
    ops::broadcast_to(&z, (3, z.dim(0), z.dim(1)))
}

/// A size that crosses a boundary, and one that is made between two segments.
#[graphable]
fn carried(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let h = ops::neg(x)?;
    let (rows, shape) = (h.dim(0), h.shape());
    let e = #[eager(support = Always)]
    ops::scale(&h, 2.0)?;
    let made = ops::full(e.scope(), (rows, 2), 1.0f32)?;
    ops::add(&ops::add(&e, &made)?, &ops::zeros(e.scope(), shape)?)
}

/// The real size in a region, and a tensor that is made there with it.
#[graphable]
fn in_region(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let h = ops::neg(x)?;
    let e = #[eager(cx)]
    {
        let n = cx.size(&h, 0)?;
        let mut values = cx.read(&h)?;
        values.iter_mut().for_each(|v| *v *= n as f32);
        cx.tensor(h.shape(), &values)?
    };
    ops::add(&e, &h)
}

#[test]
fn what_is_made_with_a_padded_size_is_padded() {
    agrees!(FilledGraph);
    agrees!(NumberedGraph);
    agrees!(ReversedGraph);
    agrees!(ReshapedGraph);
    agrees!(CarriedGraph);
    agrees!(InRegionGraph);
}

#[test]
fn the_real_size_is_on_the_device() {
    agrees!(LastGraph);
    agrees!(PerRowGraph);
    agrees!(MeanGraph);
}

#[graphable]
fn merged(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    ops::reshape(x, [x.count()])
}

#[graphable]
fn beside_a_constant(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    // The sum of the columns, and as many constants as there are rows in one bucket.
    let four = ops::arange::<f32>(x.scope(), 4)?;
    let sums = ops::sum(x, 1)?;
    if sums.dim(0).is_padded() { ops::add(&sums, &four) } else { Ok(sums) }
}

#[graphable]
fn narrowed_by_a_constant(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    if x.dim(0).is_padded() { ops::narrow(x, 0, 0, 4) } else { Ok(x.clone()) }
}

#[graphable]
fn reshaped_to_constants(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    if x.dim(0).is_padded() { ops::reshape(x, &[4, 1, 2]) } else { Ok(x.clone()) }
}

#[graphable]
fn broadcast_to_constants(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    if x.dim(0).is_padded() { ops::broadcast_to(x, &[4, 2]) } else { Ok(x.clone()) }
}

#[test]
fn a_number_is_not_the_size_of_a_bucket() {
    refuses!(MergedGraph, Padded);
    refuses!(BesideAConstantGraph, Mix);
    refuses!(NarrowedByAConstantGraph, Mix);
    refuses!(ReshapedToConstantsGraph, Mix);
    refuses!(BroadcastToConstantsGraph, Mix);
}

#[derive(Params)]
struct Table {
    places: Param<f32>,
}

/// Learnt positions: as many rows of a table as there are in the input.
#[graphable]
fn placed(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
    table: &Table,
) -> Result<Tensor<f32>> {
    let places = ops::narrow(&x.scope().view(&table.places)?, 0, 1, x.dim(0))?;
    ops::add(x, &places)
}

/// A size as the result of a call is the real one.
#[graphable]
fn told<'s>(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<'s, f32>,
) -> Result<(Dim<'s>, Tensor<'s, f32>)> {
    Ok((x.dim(0), ops::neg(x)?))
}

#[test]
fn rows_of_a_table_and_a_size_that_leaves() {
    let mut rt = crate::runtime();
    let data: Vec<f32> = (0..40).map(|i| 100.0 * i as f32).collect();
    let table = Table { places: Param::new(&rt, &[20, 2], &data).unwrap() };
    for mode in crate::MODES {
        let placed = PlacedGraph::builder().bucket("B", crate::schedule()).mode(mode).build(&mut rt).unwrap();
        let told = ToldGraph::builder().bucket("B", crate::schedule()).mode(mode).build(&mut rt).unwrap();
        for n in [3, 4, 3, 1, 3, 4, 9, 3] {
            let step = rt.step().unwrap();
            let x = crate::rows(n);
            let y = placed.call(&step, &x, &table).unwrap();
            let want: Vec<f32> = x.iter().zip(&data[2..]).map(|(a, b)| a + b).collect();
            assert_eq!(step.read(&y).unwrap(), want, "{mode}, {n} rows");
            let (rows, y) = told.call(&step, &x).unwrap();
            assert_eq!((rows.get().unwrap(), y.dim(0).get().unwrap()), (n, n), "{mode}");
        }
    }
}

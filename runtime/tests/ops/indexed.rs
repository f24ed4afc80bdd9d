//! Kernels of indices against plain loops: rolls, gathers, pooling, upsampling, one-hot rows, masks, windows; what they accept,
//! faults, and the modes of graphs. Their language is tested by random programs (`ui-tests/tests/kernel_programs`).

use graphable::{
    Element, Error, Float, Mode, Param, Result, Runtime, Schedule, Tensor, bf16, f16, graphable, kernel, ops,
};
use rand::{Rng, rngs::StdRng};

use crate::{
    harness::{assert_close, assert_same, cases, device, for_types, in_step, indices, input, size},
    reference::Array,
};

#[kernel(index)]
fn roll(x: View<f32, 2>, shift: i32, [i, j]: [i32; 2]) -> f32 {
    x.at([i, (j - shift).rem_euclid(x.dim(1))])
}

#[kernel(index)]
fn roll_bytes(x: View<u8, 3>, [i, j, k]: [i32; 3]) -> (u8, bool) {
    let i = (i + 1) % x.dim(0);
    (x.at([i, j, k]), x.at([i, j, k]) > 100)
}

/// Slices of the middle dimension, and where they come from.
#[kernel(index)]
fn gathered(ids: View<u32, 1>, x: View<f32, 3>, [i, j, k]: [i32; 3]) -> (f32, i32) {
    let from = ids.at([j]);
    (x.at([i, from, k]), from as i32 * x.dim(2) + k)
}

#[kernel]
fn larger(a: f32, b: f32) -> f32 {
    a.max(b)
}

/// The largest value of each window, and its number.
#[kernel(index)]
fn max_pool(x: View<f32, 4>, window: i32, stride: i32, [n, c, i, j]: [i32; 4]) -> (f32, u32) {
    let (mut max, mut at) = (f32::NEG_INFINITY, 0);
    let first = i * stride;
    for k in 0..window {
        for l in 0..window {
            let value = x.at([n, c, first + k, j * stride + l]);
            if value > max {
                at = (k * window + l) as u32;
            }
            max = larger(max, value);
        }
    }
    (max, at)
}

#[kernel(index)]
fn upsample(x: View<f32, 3>, by: i32, [c, i, j]: [i32; 3]) -> f32 {
    x.at([c, i / by, j / by])
}

#[kernel(index)]
fn one_hot(ids: View<i32, 1>, [i, j]: [i32; 2]) -> f32 {
    f32::from(ids.at([i]) == j)
}

#[kernel(index)]
fn lower([i, j]: [i32; 2]) -> bool {
    j <= i
}

#[kernel(index)]
fn banded(low: i32, high: i32, value: f32, [i, j]: [i32; 2]) -> f32 {
    let off = j - i;
    if off >= low && off <= high { value } else { 0.0 }
}

/// A convolution along the rows, with zeros around them.
#[kernel(index)]
fn convolved(x: View<f32, 2>, weight: View<f32, 2>, [i, j]: [i32; 2]) -> f32 {
    let taps = weight.dim(1);
    let mut sum = 0.0;
    for k in 0..taps {
        sum += x.at_or([i, j + k - taps / 2], 0.0) * weight.at([0, k]);
    }
    sum
}

/// The value itself, transposed, of any type.
#[kernel(index)]
fn turned(x: View<i32, 2>, [i, j]: [i32; 2]) -> i32 {
    x.at([j, i])
}

fn rolls<T: Float>() {
    cases(20, |step, rng| {
        let (rows, columns) = (size(rng), size(rng).max(1));
        let shift = rng.random_range(-9..9);
        let (x, hx) = input::<T>(step, rng, &[rows, columns], (-3.0, 3.0));
        let from = |j: usize| (j as i32 - shift).rem_euclid(columns as i32) as usize;
        let want = Array::from_fn(&[rows, columns], |i| hx.at(&[i[0], from(i[1])]));
        assert_same(step, &roll(&x, shift, x.shape()).unwrap(), &want);
        // The number as a tensor.
        let by = step.tensor(&[1], &[shift]).unwrap();
        assert_same(step, &roll(&x, &by, x.shape()).unwrap(), &want);
    });
}

#[test]
fn rolls_are_reads_at_computed_indices() {
    for_types!(rolls: f32, f16, bf16);
    cases(20, |step, rng| {
        let sizes = [size(rng).max(1), size(rng), size(rng)];
        let (x, hx) = input::<u8>(step, rng, &sizes, (0.0, 255.0));
        let want = Array::from_fn(&sizes, |i| hx.at(&[(i[0] + 1) % sizes[0], i[1], i[2]]));
        let (y, large) = roll_bytes(&x, sizes).unwrap();
        assert_same(step, &y, &want);
        let want = Array::from_fn(&sizes, |i| f64::from(u8::from(want.at(i) > 100.0)));
        assert_same(step, &large, &want);
    });
}

fn gathers<T: Float>() {
    cases(20, |step, rng| {
        let sizes = [size(rng), size(rng).max(1), size(rng)];
        let n = size(rng);
        let (x, hx) = input::<T>(step, rng, &sizes, (-3.0, 3.0));
        let (ids, hi) = indices(step, rng, &[n], sizes[1] as u32);
        let shape = [sizes[0], n, sizes[2]];
        let (y, from) = gathered(&ids, &x, shape).unwrap();
        let id = |j: usize| hi.at(&[j]) as usize;
        assert_same(step, &y, &Array::from_fn(&shape, |i| hx.at(&[i[0], id(i[1]), i[2]])));
        let want = Array::from_fn(&shape, |i| (id(i[1]) * sizes[2] + i[2]) as f64);
        assert_same(step, &from, &want);
        assert_eq!(step.read(&y).unwrap(), step.read(&ops::gather(&x, 1, &ids).unwrap()).unwrap());
    });
}

#[test]
fn gathers_read_their_indices() {
    for_types!(gathers: f32, f16, bf16);
}

#[test]
fn windows_are_loops_over_sizes_and_numbers() {
    cases(20, |step, rng| {
        let (window, stride) = (rng.random_range(1..4usize), rng.random_range(1..4usize));
        let (height, width) = (rng.random_range(window..9), rng.random_range(window..9));
        let sizes = [size(rng), rng.random_range(1..3), height, width];
        let (x, hx) = input::<f32>(step, rng, &sizes, (-3.0, 3.0));
        let shape = [sizes[0], sizes[1], (height - window) / stride + 1, (width - window) / stride + 1];
        let (y, at) = max_pool(&x, window as i32, stride as i32, shape).unwrap();
        let best = |i: &[usize]| {
            let mut best = (f64::NEG_INFINITY, 0);
            for k in 0..window * window {
                let (row, column) = (i[2] * stride + k / window, i[3] * stride + k % window);
                let value = hx.at(&[i[0], i[1], row, column]);
                best = if value > best.0 { (value, k) } else { best };
            }
            best
        };
        assert_same(step, &y, &Array::from_fn(&shape, |i| best(i).0));
        assert_same(step, &at, &Array::from_fn(&shape, |i| best(i).1 as f64));

        let (rows, columns, taps) = (size(rng), size(rng), rng.random_range(1..6));
        let (x, hx) = input::<f32>(step, rng, &[rows, columns], (-3.0, 3.0));
        let (w, hw) = input::<f32>(step, rng, &[1, taps], (-3.0, 3.0));
        let y = convolved(&x, &w, x.shape()).unwrap();
        let want = Array::from_fn(&[rows, columns], |i| {
            let tap = |k: usize| match (i[1] + k).checked_sub(taps / 2) {
                Some(j) if j < columns => hx.at(&[i[0], j]) * hw.at(&[0, k]),
                _ => 0.0,
            };
            (0..taps).map(tap).sum()
        });
        assert_close(step, &y, &want, 8.0);
    });
}

#[test]
fn images_grow_and_labels_become_rows() {
    cases(20, |step, rng| {
        let sizes = [size(rng), rng.random_range(1..5), rng.random_range(1..5)];
        let by = rng.random_range(1..4);
        let (x, hx) = input::<bf16>(step, rng, &sizes, (-3.0, 3.0));
        let shape = [sizes[0], sizes[1] * by, sizes[2] * by];
        let want = Array::from_fn(&shape, |i| hx.at(&[i[0], i[1] / by, i[2] / by]));
        assert_same(step, &upsample(&x, by as i32, shape).unwrap(), &want);

        let (n, classes) = (size(rng), size(rng));
        let ids: Vec<i32> = (0..n).map(|_| rng.random_range(-2..8)).collect();
        let y: Tensor<f16> = one_hot(&step.tensor(&[n], &ids).unwrap(), [n, classes]).unwrap();
        let want = Array::from_fn(&[n, classes], |i| f64::from(u8::from(ids[i[0]] == i[1] as i32)));
        assert_same(step, &y, &want);

        let mask = lower(step.scope(), [n, classes]).unwrap();
        let want = Array::from_fn(&[n, classes], |i| f64::from(u8::from(i[1] <= i[0])));
        assert_same(step, &mask, &want);
        let low = step.tensor(&[], &[-1i32]).unwrap();
        let band: Tensor<f32> = banded(step.scope(), &low, 2, 0.5, [n, classes]).unwrap();
        let within = |i: &[usize]| i[1] + 1 >= i[0] && i[1] <= i[0] + 2;
        assert_same(step, &band, &Array::from_fn(&[n, classes], |i| if within(i) { 0.5 } else { 0.0 }));
    });
}

#[test]
fn results_are_split_over_threads() {
    cases(1, |step, rng: &mut StdRng| {
        let (x, hx) = input::<f16>(step, rng, &[300, 700], (-3.0, 3.0));
        let want = Array::from_fn(&[300, 700], |i| hx.at(&[i[0], (i[1] + 5) % 700]));
        assert_same(step, &roll(&x, -5, x.shape()).unwrap(), &want);
        let (w, hw) = input::<f16>(step, rng, &[1, 3], (-3.0, 3.0));
        let want = Array::from_fn(&[300, 700], |i| {
            let tap =
                |k: usize| (i[1] + k).checked_sub(1).filter(|j| *j < 700).map_or(0.0, |j| hx.at(&[i[0], j]));
            (0..3).map(|k| tap(k) * hw.at(&[0, k])).sum()
        });
        assert_close(step, &convolved(&x, &w, x.shape()).unwrap(), &want, 8.0);
    });
}

#[test]
fn an_element_can_be_tried() {
    assert_eq!(roll::element((&[1.0, 2.0, 3.0, 4.0], [2, 2]), 1, [1, 0]), 4.0);
    assert_eq!(gathered::element((&[1], [1]), (&[1.0, 2.0], [1, 2, 1]), [0, 0, 0]), (2.0, 1));
    assert_eq!(roll_bytes::element((&[7, 200], [2, 1, 1]), [0, 0, 0]), (200, true));
    assert!(lower::element([3, 3]));
    // What is not there reads zero.
    assert_eq!(turned::element((&[1, 2, 3, 4], [2, 2]), [0, 2]), 0);
    assert_eq!(turned::element((&[1, 2, 3], [2, 2]), [0, 1]), 0);
}

fn is_shape_error(result: Result<Tensor<'_, impl Element>>, reason: &str) {
    let error = result.map(drop).unwrap_err();
    assert!(matches!(&error, Error::Shape { .. }), "{error}");
    assert!(error.to_string().contains(reason), "{error}");
}

#[test]
fn shapes_are_checked() {
    in_step(|step| {
        let x = step.tensor(&[2, 3], &[1.0f32; 6]).unwrap();
        is_shape_error(roll(&x, 1, [6]), "the results have 2 dimensions, one for each index");
        is_shape_error(roll(&ops::reshape(&x, [6]).unwrap(), 1, [2, 3]), "`x` must have 2 dimensions");
        let two = step.tensor(&[2], &[1i32; 2]).unwrap();
        is_shape_error(roll(&x, &two, [2, 3]), "`shift` is a value: a number, or a tensor of one element");
        is_shape_error(roll(&x, 1, [1 << 31, 1]), "a dimension has 2147483648 places");
        let long = ops::broadcast_to(&step.tensor(&[1, 1], &[1.0f32]).unwrap(), [1, 1 << 31]).unwrap();
        is_shape_error(roll(&long, 1, [1, 1]), "the largest that kernels of indices count is 2147483647");
        assert_eq!(roll(&x, 1, [0, 3]).unwrap().shape(), [0, 3]);
        assert!(matches!(roll(&x, 1, [x.dim(0) - 3, x.dim(1)]), Err(Error::Argument { .. })));
    });
}

#[test]
fn an_index_out_of_range_is_a_fault() -> Result<()> {
    for (id, bound) in [(2u32, 2), (u32::MAX, 2)] {
        let mut rt = Runtime::new(device())?;
        let step = rt.step()?;
        let x = step.tensor(&[1, 2, 1], &[1.0f32, 2.0])?;
        let (y, _) = gathered(&step.tensor(&[2], &[1, id])?, &x, [1, 2, 1])?;
        let error = step.read(&y).unwrap_err();
        let Error::IndexOutOfRange { op, index, bound: got } = error else { panic!("{error}") };
        assert_eq!((op, index, got), ("gathered", u64::from(id), bound));
    }
    // The outermost one counts; the element is zero.
    let mut rt = Runtime::new(device())?;
    let step = rt.step()?;
    let x = step.tensor(&[2, 2], &[1i32, 2, 3, 4])?;
    let y = turned(&x, [1, 3])?;
    let error = step.read(&y).unwrap_err();
    assert!(matches!(error, Error::IndexOutOfRange { op: "turned", index: 2, bound: 2 }), "{error}");
    assert_eq!(step.read(&y)?, [1, 3, 0]);
    Ok(())
}

#[graphable]
fn stem(
    #[host]
    #[dims(B)]
    ids: &Tensor<u32>,
    #[host] by: &graphable::Scalar<i32>,
    #[key] offset: i32,
    table: &Param<f32>,
) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let x = ops::embedding(ids, table)?;
    let y = roll(&x, by, x.shape())?;
    let y = #[eager]
    roll(&y, offset, y.shape())?;
    let mask = lower(y.scope(), (y.dim(0), 6))?;
    Ok((
        ops::where_(&mask, &y, &ops::full_like(&y, 0.0)?)?,
        one_hot(&ops::cast::<_, i32>(ids)?, (ids.dim(0), 3))?,
    ))
}

#[test]
fn indices_are_recorded_and_replayed_in_every_mode() -> Result<()> {
    let values: Vec<f32> = (0..60).map(|i| i as f32).collect();
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(device())?;
        let table = Param::new(&rt, &[10, 6], &values)?;
        let graph = StemGraph::builder().bucket("B", Schedule::new([2, 4])).mode(mode).build(&mut rt)?;
        for round in 0..12u32 {
            let rows = (round % 4 + 1) as usize;
            let step = rt.step()?;
            let ids: Vec<u32> = (0..rows as u32).map(|row| (row * 3 + round) % 10).collect();
            let by = round as i32 - 5;
            let (y, hot) = graph.call(&step, &ids[..], by, 2, &table)?;
            let (y, hot) = (step.read(&y)?, step.read(&hot)?);
            assert_eq!((y.len(), hot.len()), (rows * 6, rows * 3));
            for row in 0..rows {
                for j in 0..6 {
                    let from = (j as i32 - by - 2).rem_euclid(6) as u32;
                    let want = if j <= row { (ids[row] * 6 + from) as f32 } else { 0.0 };
                    assert_eq!(y[row * 6 + j], want, "{mode:?}, round {round}, row {row}");
                }
                let want: Vec<f32> = (0..3).map(|j| f32::from(u8::from(ids[row] == j))).collect();
                assert_eq!(hot[row * 3..][..3], want, "{mode:?}, round {round}, row {row}");
            }
        }
        assert!(mode == Mode::None || rt.stats().replays > 0);
    }
    Ok(())
}

#[test]
fn the_source_of_indices_can_be_printed() {
    let source = convolved::cuda_source();
    let want = "\
template <class C, class X0, class X1> DEVICE f32 convolved_0(C& cx, const X0& x_0, const X1& weight_1, i32 i_2, i32 j_3) {
    i32 taps_4 = views::dim(weight_1, 1u);
    f32 sum_5 = 0.0f;
    for (i64 i0 = (i64)0; i0 < (i64)taps_4; ++i0) {
        const i32 k_6 = (i32)i0;
        {
            sum_5 = (sum_5 + (views::at_or(x_0, 0.0f, lang::to_u32(i_2), lang::to_u32(lang::sub(lang::add(j_3, k_6), lang::div(taps_4, 2)))) * views::at(cx, weight_1, lang::to_u32(0), lang::to_u32(k_6))));
        }
    }
    return sum_5;
}
";
    assert_eq!(source.trim_end(), want.trim_end());
}

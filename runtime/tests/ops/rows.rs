//! Kernels of rows: reductions followed by a map, in one launch; their order, what they accept, and the modes of graphs.
//! Their language is tested by random programs (`ui-tests/tests/kernel_programs`).

use graphable::{
    Error, Float, Mode, Param, Result, Runtime, Schedule, Tensor, bf16, f16, graphable, kernel, ops,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    harness::{assert_close, assert_same, cases, device, for_types, in_step, indices, input, shape, size},
    reference::{Array, softmax as softmax_of},
};

#[kernel(rows)]
fn rms_norm(x: Row<f32>, weight: Row<f32>, eps: f32) -> Row<f32> {
    let mean = x.map(|v| v * v).sum() / x.len() as f32;
    let scale = 1.0 / (mean + eps).sqrt();
    x.zip(weight).map(|(v, w)| v * scale * w)
}

#[kernel(rows)]
fn layer_norm(x: Row<f32>, weight: Row<f32>, bias: Row<f32>, eps: f32) -> Row<f32> {
    let mean = x.sum() / x.len() as f32;
    let centred = x.map(|v| v - mean);
    let variance = centred.map(|v| v * v).sum() / x.len() as f32;
    let scale = (variance + eps).sqrt().recip();
    centred.zip(weight).zip(bias).map(|((v, w), b)| v * scale * w + b)
}

#[kernel(rows)]
fn softmax(x: Row<f32>) -> Row<f32> {
    let max = x.max();
    let powers = x.map(|v| (v - max).exp());
    let total = powers.sum();
    powers.map(|v| v / total)
}

/// The loss of a row, and its gradient.
#[kernel(rows)]
fn cross_entropy(logits: Row<f32>, label: i32) -> (f32, Row<f32>) {
    let max = logits.max();
    let powers = logits.map(|v| (v - max).exp());
    let total = powers.sum();
    let gradient =
        powers.enumerate().map(|(i, p)| if i as i32 == label { p / total - 1.0 } else { p / total });
    (total.ln() + max - logits.at(label), gradient)
}

/// Largest and smallest values, their places, and how many are positive.
#[kernel(rows)]
fn ends(x: Row<f32>) -> (f32, f32, u32, u32) {
    (x.max(), x.min(), x.argmax(), x.argmin() + 1000 * x.count(|v| v > 0.0))
}

/// Mean and variance in one pass, by Welford.
#[kernel(reduce)]
fn moments(x: Row<f32>) -> (f32, f32) {
    let (_, mean, squares) = x.fold(
        (0.0, 0.0, 0.0),
        |(n, mean, squares), v| {
            let n = n + 1.0;
            let off = v - mean;
            let mean = mean + off / n;
            (n, mean, squares + off * (v - mean))
        },
        |(n, mean, squares), (m, other, more)| {
            let (all, off) = (n + m, other - mean);
            (all, mean + off * m / all, squares + more + off * off * n * m / all)
        },
    );
    (mean, squares / x.len() as f32)
}

#[kernel(reduce)]
fn total(x: Row<i32>) -> i32 {
    x.sum()
}

#[kernel(rows)]
fn sum(x: Row<f32>) -> f32 {
    x.sum()
}

#[kernel(rows)]
fn rolled(x: Row<u8>, by: u32) -> (Row<u8>, Row<bool>) {
    let n = x.len();
    (x.enumerate().map(|(i, _)| x.at((i + by) % n)), x.map(|v| v > 100))
}

fn norms<T: Float>() {
    cases(20, |step, rng| {
        let long = rng.random_bool(0.2);
        let mut all = if long { vec![2] } else { shape(rng, 0, 3) };
        all.push(size(rng).max(1) * if long { 171 } else { 1 });
        let last = *all.last().unwrap();
        let (x, hx) = input::<T>(step, rng, &all, (-3.0, 3.0));
        let (w, hw) = input::<T>(step, rng, &[last], (-3.0, 3.0));
        let (b, hb) = input::<T>(step, rng, &[last], (-3.0, 3.0));
        let n = last as f64;
        let axis = all.len() - 1;
        let want = hx.map_lines(axis, |line| {
            let scale = 1.0 / (line.iter().map(|v| v * v).sum::<f64>() / n + 1e-5f64).sqrt();
            line.iter().enumerate().map(|(i, v)| v * scale * hw.at(&[i])).collect()
        });
        assert_close(step, &rms_norm(&x, &w, 1e-5).unwrap(), &want, 4.0);
        let want = hx.map_lines(axis, |line| {
            let mean = line.iter().sum::<f64>() / n;
            let scale = 1.0 / (line.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n + 0.1).sqrt();
            line.iter().enumerate().map(|(i, v)| (v - mean) * scale * hw.at(&[i]) + hb.at(&[i])).collect()
        });
        assert_close(step, &layer_norm(&x, &w, &b, 0.1).unwrap(), &want, 16.0);
        assert_close(step, &softmax(&x).unwrap(), &hx.map_lines(axis, softmax_of), 4.0);
    });
}

#[test]
fn norms_are_rows_in_every_float_type() {
    for_types!(norms: f32, f16, bf16);
}

#[test]
fn a_loss_reads_the_label_of_its_row() {
    cases(30, |step, rng| {
        let (rows, classes) = (size(rng).max(1), size(rng).max(1) * 30);
        let (x, hx) = input::<f32>(step, rng, &[rows, classes], (-3.0, 3.0));
        let (labels, hl) = indices(step, rng, &[rows], classes as u32);
        let labels = ops::cast::<_, i32>(&labels).unwrap();
        let (loss, gradient) = cross_entropy(&x, &labels).unwrap();
        let parts: Vec<Vec<f64>> = (0..rows).map(|r| softmax_of(&hx.line(1, &[r]))).collect();
        let label = |r: usize| hl.at(&[r]) as usize;
        let want = Array::from_fn(&[rows], |i| -parts[i[0]][label(i[0])].ln());
        assert_close(step, &loss, &want, 4.0);
        let want = Array::from_fn(&[rows, classes], |i| {
            parts[i[0]][i[1]] - f64::from(u8::from(label(i[0]) == i[1]))
        });
        assert_close(step, &gradient, &want, 4.0);
    });
}

/// The guide's definition: pieces of 8192 values, of which value `i` is in lane `i % 1024`, then neighbours pairwise.
fn in_order(values: &[f32]) -> f32 {
    let pieces = values.chunks(8192).map(|piece| {
        let mut lanes: Vec<f32> = Vec::new();
        for (i, value) in piece.iter().enumerate() {
            match lanes.get_mut(i % 1024) {
                Some(lane) => *lane += value,
                None => lanes.push(0.0 + value),
            }
        }
        in_pairs(lanes)
    });
    in_pairs(pieces.collect())
}

fn in_pairs(mut all: Vec<f32>) -> f32 {
    while all.len() > 1 {
        all = all.chunks(2).map(|pair| pair.iter().copied().reduce(|a, b| a + b).unwrap()).collect();
    }
    all.first().copied().unwrap_or(0.0)
}

#[test]
fn sums_have_one_order() {
    let mut rng = StdRng::seed_from_u64(1);
    in_step(|step| {
        let lengths = [
            0, 1, 2, 3, 5, 31, 64, 127, 128, 129, 500, 512, 516, 1000, 1023, 1024, 1025, 2047, 4096, 5000,
            8191, 8192, 8193, 8196, 9300, 16384, 16388, 24_580, 40_001, 70_000, 128_256, 262_148, 300_000,
        ];
        for n in lengths {
            let values: Vec<f32> = (0..3 * n).map(|_| rng.random_range(-1.0f32..1.0) * 1e3).collect();
            let x = step.tensor(&[3, n], &values).unwrap();
            let want: Vec<f32> = (0..3).map(|row| in_order(&values[row * n..(row + 1) * n])).collect();
            assert_eq!(step.read(&sum(&x).unwrap()).unwrap(), want, "{n} values");
            // Where the values are stored does not matter.
            let turned: Vec<f32> = (0..3 * n).map(|i| values[i % 3 * n + i / 3]).collect();
            let turned = step.tensor(&[n, 3], &turned).unwrap();
            let turned = ops::permute(&turned, &[1, 0]).unwrap();
            assert_eq!(step.read(&sum(&turned).unwrap()).unwrap(), want, "{n} values of columns");
            if n > 0 {
                assert_eq!(sum::row(&values[..n]), want[0]);
            }
        }
    });
}

/// A product of matrices, whose order matters, and the number of factors.
#[kernel(rows)]
fn chain(x: Row<f32>) -> (f32, f32, u32) {
    let ((a, b, c, d), n) = x.fold(
        ((1.0, 0.0, 0.0, 1.0), 0),
        |((a, b, c, d), n), v| {
            ((a * 0.5 + b * 0.25, a * v + b * 0.5, c * 0.5 + d * 0.25, c * v + d * 0.5), n + 1)
        },
        |((a, b, c, d), n), ((e, f, g, h), m)| {
            ((a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h), n + m)
        },
    );
    (a + 2.0 * b, c + 2.0 * d, n)
}

#[test]
fn rows_side_by_side_have_the_same_order() {
    let mut rng = StdRng::seed_from_u64(2);
    in_step(|step| {
        for n in [1, 2, 3, 7, 8, 9, 16, 33, 100, 300, 512, 1000, 1025, 3000, 8192, 8200, 20_000, 40_000] {
            // Many rows, of which the last block has some; few; and 16 or fewer, which are read one by one.
            for count in [if n < 1100 { 1100 } else { 70 }, 17, 5] {
                let values: Vec<f32> = (0..count * n).map(|_| rng.random_range(-1.0f32..1.0)).collect();
                let row = |i: usize| &values[i * n..(i + 1) * n];
                let turned: Vec<f32> = (0..count * n).map(|i| values[i % count * n + i / count]).collect();
                let x = step.tensor(&[n, count], &turned).unwrap();
                let x = ops::permute(&x, &[1, 0]).unwrap();
                let want: Vec<f32> = (0..count).map(|i| in_order(row(i))).collect();
                assert_eq!(step.read(&sum(&x).unwrap()).unwrap(), want, "{count} rows of {n}");
                let (first, second, factors) = chain(&x).unwrap();
                let (first, second) = (step.read(&first).unwrap(), step.read(&second).unwrap());
                let factors = step.read(&factors).unwrap();
                for i in 0..count {
                    assert_eq!(
                        (first[i], second[i], factors[i]),
                        chain::row(row(i)),
                        "row {i} of {count} of {n}"
                    );
                }
                let along = step.tensor(&[count, n], &values).unwrap();
                let (again, _, _) = chain(&along).unwrap();
                assert_eq!(step.read(&again).unwrap(), first, "{count} rows of {n}");
            }
        }
    });
}

/// What rows have one after the other and rows side by side compute by functions of their own: closures with values of a row and
/// of the launch, kept rows, pairs, indices, places, and results of several types.
#[kernel(reduce)]
fn all_of_it(x: Row<f32>, y: Row<f32>, offset: f32, #[key] factor: f32) -> (f32, f32, u32, bool) {
    let mean = x.sum() / x.len() as f32;
    let centred = x.map(|v| (v - mean) * factor + offset);
    let (most, at) = (centred.max(), x.argmax());
    let weighted = centred.zip(y).enumerate().map(|(i, (a, b))| if i % 3 == 1 { a * b } else { a - b });
    let (n, last) =
        weighted.fold((mean, 0), |(sum, n), v| (sum * 0.5 + v, n + 1), |(a, n), (b, m)| (a + 2.0 * b, n + m));
    let zero = y.min() * 0.0;
    let places = at + 7 * y.argmin() + last + 3 * y.count(|v| v > mean);
    (n + zero, most - y.min(), places, centred.max() > mean)
}

fn side_by_side<T: Float>() {
    let mut rng = StdRng::seed_from_u64(4);
    in_step(|step| {
        for (n, outer, count) in [
            (2, 1, 8),
            (7, 2, 33),
            (8, 1, 64),
            (9, 3, 100),
            (300, 1, 40),
            (1024, 2, 9),
            (1030, 1, 35),
            (8200, 1, 32),
            (9300, 1, 70),
        ] {
            let special = [f32::NAN, 0.0, -0.0, f32::INFINITY, 1.0];
            let value = |rng: &mut StdRng| match rng.random_bool(0.02) {
                true => special[rng.random_range(0..special.len())],
                false => rng.random_range(-2.0f32..2.0),
            };
            let mut values = || -> Vec<T> {
                (0..outer * n * count).map(|_| T::from_f64(value(&mut rng).into())).collect()
            };
            let (x, y) = (values(), values());
            // As they lie side by side, and the same one after the other.
            let turned = |of: &[T]| -> Vec<T> {
                let rows = (0..outer * count).flat_map(|row| (0..n).map(move |i| (row, i)));
                rows.map(|(row, i)| of[row / count * n * count + i * count + row % count]).collect()
            };
            let [bx, by] = [&x, &y].map(|of| step.tensor(&[outer, n, count], of).unwrap());
            let [rx, ry] = [&x, &y].map(|of| step.tensor(&[outer, count, n], &turned(of)).unwrap());
            let offsets: Vec<T> = (0..outer * count).map(|i| T::from_f64(i as f64 / 64.0)).collect();
            let offsets = step.tensor(&[outer, count], &offsets).unwrap();
            let beside = all_of_it(&bx, &by, &offsets, 0.75, 1).unwrap();
            let after = all_of_it(&rx, &ry, &offsets, 0.75, 2).unwrap();
            let bits = |t: &Tensor<'_, T>| -> Vec<u64> {
                let all = step.read(t).unwrap();
                all.iter().map(|v| if v.to_f64().is_nan() { 1 } else { v.to_f64().to_bits() }).collect()
            };
            let case = format!("{} {outer} x {n} x {count}", T::DTYPE);
            assert_eq!(bits(&beside.0), bits(&after.0), "{case}");
            assert_eq!(bits(&beside.1), bits(&after.1), "{case}");
            assert_eq!(step.read(&beside.2).unwrap(), step.read(&after.2).unwrap(), "{case}");
            assert_eq!(step.read(&beside.3).unwrap(), step.read(&after.3).unwrap(), "{case}");
        }
    });
}

#[test]
fn rows_side_by_side_have_the_bits_of_rows_one_after_the_other() {
    for_types!(side_by_side: f32, f16, bf16);
}

#[test]
fn the_first_of_equal_ones_is_found_and_nan_is_missing() {
    const NAN: f32 = f32::NAN;
    let found = |row: &[f32]| {
        let mut got = None;
        in_step(|step| {
            // Twice, so that what a row leaves behind would be seen.
            let x = step.tensor(&[2, row.len()], &[row, row].concat()).unwrap();
            let (max, min, argmax, argmin) = ends(&x).unwrap();
            let all: Vec<(f32, f32, u32, u32)> = (0..2)
                .map(|i| {
                    let argmin = step.read(&argmin).unwrap()[i];
                    let ends = (step.read(&max).unwrap()[i], step.read(&min).unwrap()[i]);
                    (ends.0, ends.1, step.read(&argmax).unwrap()[i], argmin)
                })
                .collect();
            assert_eq!(all[0], all[1]);
            assert_eq!(all[0], ends::row(row));
            got = Some(all[0]);
        });
        got.unwrap()
    };
    assert_eq!(found(&[1.0, 3.0, -2.0, 3.0, -2.0]), (3.0, -2.0, 1, 3002));
    assert_eq!(found(&[NAN, -5.0, NAN, 7.0]), (7.0, -5.0, 3, 1001));
    assert_eq!(found(&[NAN, NAN]), (f32::NEG_INFINITY, f32::INFINITY, 0, 0));
    assert_eq!(found(&[]), (f32::NEG_INFINITY, f32::INFINITY, 0, 0));
    assert_eq!(found(&[f32::NEG_INFINITY; 3]), (f32::NEG_INFINITY, f32::NEG_INFINITY, 0, 0));
    let mut long = vec![0.0; 9000];
    (long[2048], long[7000], long[4000], long[8999]) = (9.0, 9.0, -9.0, -9.0);
    assert_eq!(found(&long), (9.0, -9.0, 2048, 4000 + 2000));
}

#[test]
fn a_reduction_goes_along_any_dimension() {
    cases(40, |step, rng| {
        let mut all = shape(rng, 1, 4);
        let axis = rng.random_range(0..all.len());
        all[axis] = all[axis].max(1);
        let (x, hx) = input::<f32>(step, rng, &all, (-3.0, 3.0));
        let (mean, variance) = moments(&x, axis).unwrap();
        let mean_of = |line: &[f64]| line.iter().sum::<f64>() / line.len() as f64;
        assert_close(step, &mean, &hx.reduce(axis, mean_of), 4.0);
        let want = hx.reduce(axis, |line| {
            line.iter().map(|v| (v - mean_of(line)).powi(2)).sum::<f64>() / line.len() as f64
        });
        assert_close(step, &variance, &want, 8.0);
        let (n, hn) = input::<i32>(step, rng, &all, (-9.0, 9.0));
        assert_same(step, &total(&n, axis).unwrap(), &hn.reduce(axis, |line| line.iter().sum()));
    });
}

#[test]
fn bytes_and_flags_are_rows() {
    cases(20, |step, rng| {
        let (rows, columns) = (size(rng), size(rng).max(1) * 7);
        let (x, hx) = input::<u8>(step, rng, &[rows, columns], (0.0, 200.0));
        let (moved, large) = rolled(&x, 3).unwrap();
        assert_same(
            step,
            &moved,
            &Array::from_fn(&[rows, columns], |i| hx.at(&[i[0], (i[1] + 3) % columns])),
        );
        assert_same(
            step,
            &large,
            &Array::from_fn(&[rows, columns], |i| f64::from(hx.at(&[i[0], i[1]]) > 100.0)),
        );
    });
}

#[kernel(rows)]
fn above(x: Row<u8>, floor: u8) -> (u32, u32, Row<bool>) {
    (x.count(|v| v > floor), x.argmax(), x.map(|v| v > floor))
}

/// On a GPU, such rows are shared by the blocks of a cluster, in packs of 8 and of 16 values.
#[test]
fn long_rows_of_small_elements_have_the_order_of_all() {
    let mut rng = StdRng::seed_from_u64(3);
    in_step(|step| {
        for n in [65_537, 131_072, 262_144, 300_000, 300_016] {
            let floats: Vec<bf16> =
                (0..2 * n).map(|_| bf16::from_f32(rng.random_range(-1.0f32..1.0))).collect();
            let want: Vec<bf16> = floats
                .chunks(n)
                .map(|row| bf16::from_f32(in_order(&row.iter().map(|v| v.to_f32()).collect::<Vec<_>>())))
                .collect();
            let x = step.tensor(&[2, n], &floats).unwrap();
            assert_eq!(step.read(&sum(&x).unwrap()).unwrap(), want, "{n} values");

            let bytes: Vec<u8> = (0..2 * n).map(|_| rng.random_range(0..=254)).collect();
            let x = step.tensor(&[2, n], &bytes).unwrap();
            let (count, first, flags) = above(&x, 100).unwrap();
            let rows = || bytes.chunks(n);
            let want: Vec<u32> = rows().map(|row| row.iter().filter(|v| **v > 100).count() as u32).collect();
            assert_eq!(step.read(&count).unwrap(), want, "{n} bytes");
            let most = |row: &[u8]| row.iter().max().and_then(|most| row.iter().position(|v| v == most));
            let want: Vec<u32> = rows().map(|row| most(row).unwrap() as u32).collect();
            assert_eq!(step.read(&first).unwrap(), want, "{n} bytes");
            let want: Vec<bool> = bytes.iter().map(|v| *v > 100).collect();
            assert_eq!(step.read(&flags).unwrap(), want, "{n} bytes");
        }
    });
}

#[test]
fn rows_are_split_over_threads() {
    cases(1, |step, rng| {
        let (x, hx) = input::<bf16>(step, rng, &[2000, 96], (-3.0, 3.0));
        assert_close(step, &softmax(&x).unwrap(), &hx.map_lines(1, softmax_of), 4.0);
    });
}

#[test]
fn errors_are_those_of_operations_of_rows() -> Result<()> {
    let mut rt = Runtime::new(device())?;
    let step = rt.step()?;
    let x = step.tensor(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    let w = step.tensor(&[2], &[1.0f32, 2.0])?;
    let error = rms_norm(&x, &w, 0.1).unwrap_err();
    assert!(matches!(&error, Error::Shape { op: "rms_norm", .. }), "{error}");
    assert!(error.to_string().contains("a row has 3 values, another one 2"), "{error}");
    let labels = step.tensor(&[3], &[0i32, 1, 2])?;
    let error = cross_entropy(&x, &labels).unwrap_err();
    assert!(error.to_string().contains("without the dimension of their rows"), "{error}");
    let one = step.tensor(&[], &[1.0f32])?;
    assert!(matches!(softmax(&one), Err(Error::Shape { op: "softmax", .. })));
    assert!(matches!(moments(&x, 2), Err(Error::Axis { op: "moments", axis: 2, rank: 2 })));
    let none = step.tensor(&[0, 3], &[] as &[f32])?;
    assert_eq!(softmax(&none)?.shape(), [0, 3]);
    assert_eq!(step.read(&sum(&step.tensor(&[2, 0], &[] as &[f32])?)?)?, [0.0, 0.0]);
    Ok(())
}

#[test]
fn an_index_beyond_its_row_is_a_fault() -> Result<()> {
    for label in [3, -1] {
        let mut rt = Runtime::new(device())?;
        let step = rt.step()?;
        let x = step.tensor(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
        let labels = step.tensor(&[2], &[1i32, label])?;
        let (loss, _) = cross_entropy(&x, &labels)?;
        let error = step.read(&loss).unwrap_err();
        let Error::IndexOutOfRange { op, index, bound } = error else { panic!("{error}") };
        assert_eq!((op, index, bound), ("cross_entropy", label as u32 as u64, 3));
    }
    Ok(())
}

#[graphable]
fn head(
    #[host]
    #[dims(B, 6)]
    x: &Tensor<f32>,
    #[host]
    #[dims(B)]
    labels: &Tensor<i32>,
    #[key] tenths: u32,
    weight: &Param<f32>,
) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let h = rms_norm(x, weight, tenths as f32 * 0.1)?;
    let (loss, gradient) = #[eager]
    cross_entropy(&h, labels)?;
    Ok((loss, softmax(&gradient)?))
}

#[test]
fn rows_are_recorded_and_replayed_in_every_mode() -> Result<()> {
    let weights = [0.5f32, 1.0, 2.0, -1.0, 3.0, 0.25];
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(device())?;
        let weight = Param::new(&rt, &[6], &weights)?;
        let graph = HeadGraph::builder().bucket("B", Schedule::new([2, 4])).mode(mode).build(&mut rt)?;
        for round in 0..8u8 {
            let rows = usize::from(round % 4) + 1;
            let step = rt.step()?;
            let x: Vec<f32> = (0..rows * 6).map(|i| (i * 7 % 11) as f32 - f32::from(round)).collect();
            let labels: Vec<i32> = (0..rows as i32).map(|row| (row + i32::from(round)) % 6).collect();
            let (loss, parts) = graph.call(&step, &x[..], &labels[..], 1, &weight)?;
            let (loss, parts) = (step.read(&loss)?, step.read(&parts)?);
            for row in 0..rows {
                let h = rms_norm::row(&x[row * 6..][..6], &weights, 0.1);
                let (want, gradient) = cross_entropy::row(&h, labels[row]);
                assert!((loss[row] - want).abs() <= 1e-5, "{mode:?}: {} instead of {want}", loss[row]);
                for (got, want) in parts[row * 6..].iter().zip(softmax::row(&gradient)) {
                    assert!((got - want).abs() <= 1e-5, "{mode:?}: {got} instead of {want}");
                }
            }
        }
    }
    Ok(())
}

#[graphable]
fn padded(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    softmax(x)
}

#[test]
fn rows_with_padding_are_refused() -> Result<()> {
    for mode in [Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(device())?;
        let graph = PaddedGraph::builder().bucket("B", Schedule::new([4])).mode(mode).build(&mut rt)?;
        let step = rt.step()?;
        for values in [&[1.0f32, 2.0][..], &[1.0; 4]] {
            let error = graph.call(&step, values).unwrap_err();
            assert!(matches!(&error, Error::PaddedMix { op: "softmax", axis: 0, .. }), "{mode:?}: {error}");
        }
    }
    Ok(())
}

#[test]
fn the_source_of_rows_can_be_printed() {
    let source = rms_norm::cuda_source();
    let want = "\
template <class C, class R0, class R1, class Y0> DEVICE void rms_norm_0(const C& cx, const R0& x0, const R1& weight_1, f32 eps_2, const Y0& y0) {
    const auto x_0 = rows::hold(cx, x0);
    f32 mean_4 = (rows::sum(cx, rows::map(x_0, [&](f32 v_3) -> f32 { return (v_3 * v_3); })) / lang::to_f32(rows::len(cx, x_0)));
    f32 scale_5 = (1.0f / lang::sqrt((mean_4 + eps_2)));
    rows::put(cx, y0, rows::map(rows::zip(x_0, weight_1), [&](Tuple2<f32, f32> t1) -> f32 {
        f32 v_6 = t1.v0;
        f32 w_7 = t1.v1;
        return ((v_6 * scale_5) * w_7);
    }));
}
";
    assert_eq!(source.trim_end(), want.trim_end());
}

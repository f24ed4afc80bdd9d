//! Pooling, upsampling and norms of channels against plain loops, and against PyTorch.

use graphable::{
    Real, Tensor, bf16, f16,
    ops::{self, AvgPoolConfig, MaxPoolConfig},
};
use rand::{Rng, rngs::StdRng};

use crate::{
    fixtures::Fixture,
    harness::{assert_close, assert_same, cases, for_types, in_step, input, is_argument, is_shape, size},
    reference::Array,
};

/// How windows move along one dimension.
#[derive(Clone, Copy)]
struct Axis {
    kernel: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
}

impl Axis {
    fn new(rng: &mut StdRng, dilation: usize) -> Self {
        let kernel = rng.random_range(1..4);
        let padding = rng.random_range(0..=((kernel - 1) * dilation).div_ceil(2));
        Self { kernel, stride: rng.random_range(1..4), padding, dilation }
    }

    fn none() -> Self {
        Self { kernel: 1, stride: 1, padding: 0, dilation: 1 }
    }

    /// The first elements of the windows over a dimension, which may lie in the padding before it.
    fn windows(&self, size: usize, ceil: bool) -> Vec<isize> {
        let (size, padding) = (size as isize, self.padding as isize);
        let last = (self.kernel as isize - 1) * self.dilation as isize;
        let begins = (0..).map(|i| i * self.stride as isize - padding);
        begins
            .take_while(|first| match ceil {
                // It begins before the end of the input, and what it lacks is less than a stride.
                true => *first < size && first + last < size + padding + self.stride as isize - 1,
                false => first + last < size + padding,
            })
            .collect()
    }

    /// The elements of a window that are in the input.
    fn places(&self, first: isize, size: usize) -> Vec<usize> {
        let all = (0..self.kernel).map(|k| first + (k * self.dilation) as isize);
        all.filter(|place| (0..size as isize).contains(place)).map(|place| place as usize).collect()
    }
}

/// What `f` makes of the elements of each window, and of how many places it has along each dimension with padding.
fn pooled(x: &Array, [a, b]: [Axis; 2], ceil: bool, f: impl Fn(&[f64], f64) -> f64) -> Array {
    let (rows, columns) = (a.windows(x.shape[2], ceil), b.windows(x.shape[3], ceil));
    let within = |axis: &Axis, first: isize, size: usize| {
        (first + axis.kernel as isize).min((size + axis.padding) as isize) - first
    };
    Array::from_fn(&[x.shape[0], x.shape[1], rows.len(), columns.len()], |index| {
        let (row, column) = (rows[index[2]], columns[index[3]]);
        let mut values = Vec::new();
        for i in a.places(row, x.shape[2]) {
            for j in b.places(column, x.shape[3]) {
                values.push(element(x, &[index[0], index[1], i, j]));
            }
        }
        f(&values, (within(&a, row, x.shape[2]) * within(&b, column, x.shape[3])) as f64)
    })
}

/// Not `Array::at`, which repeats dimensions of size 1.
fn element(x: &Array, index: &[usize]) -> f64 {
    x.data[index.iter().zip(&x.shape).fold(0, |place, (i, n)| place * n + i)]
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// A random input of one or two dimensions, and its twin of two.
fn drawn<'s, T: Real>(
    step: &graphable::Step<'s>,
    rng: &mut StdRng,
    axes: [Axis; 2],
    two: bool,
    ceil: bool,
) -> (Tensor<'s, T>, Array) {
    let least = |axis: &Axis| {
        // A window that lacks less than a stride counts.
        let lacking = 2 * axis.padding + if ceil { axis.stride - 1 } else { 0 };
        ((axis.kernel - 1) * axis.dilation + 1).saturating_sub(lacking).max(1)
    };
    let (batch, channels) = (size(rng), size(rng));
    let height = least(&axes[0]) + rng.random_range(0..5);
    let width = if two { least(&axes[1]) + rng.random_range(0..5) } else { 1 };
    let shape = [batch, channels, height, width];
    let (x, hx) = input::<T>(step, rng, &shape[..if two { 4 } else { 3 }], (-3.0, 3.0));
    (x, hx.reshaped(&shape))
}

/// Without the last dimension, if there is one only.
fn shaped(y: &Array, two: bool) -> Array {
    y.reshaped(&y.shape[..if two { 4 } else { 3 }])
}

fn pools<T: Real>() {
    cases(60, |step, rng| {
        let (two, ceil_mode) = (rng.random_bool(0.5), rng.random_bool(0.5));
        let dilation = rng.random_range(1..3);
        let axes = [Axis::new(rng, dilation), if two { Axis::new(rng, dilation) } else { Axis::none() }];
        let (x, hx) = drawn::<T>(step, rng, axes, two, ceil_mode);
        macro_rules! values {
            ($f:expr) => {
                (axes.map($f), [axes[0]].map($f))
            };
        }
        let (kernel, stride) = (values!(|a| a.kernel), values!(|a| a.stride));
        let (padding, dilation) = (values!(|a| a.padding), values!(|a| a.dilation));
        let y = if two {
            let (kernel, stride, padding, dilation) = (kernel.0, stride.0, padding.0, dilation.0);
            ops::max_pool2d(&x, MaxPoolConfig { kernel, stride, padding, dilation, ceil_mode })
        } else {
            let (kernel, stride, padding, dilation) = (kernel.1, stride.1, padding.1, dilation.1);
            ops::max_pool1d(&x, MaxPoolConfig { kernel, stride, padding, dilation, ceil_mode })
        };
        assert_same(step, &y.unwrap(), &shaped(&pooled(&hx, axes, ceil_mode, |values, _| most(values)), two));
    });
    cases(60, |step, rng| {
        let (two, ceil_mode) = (rng.random_bool(0.5), rng.random_bool(0.5));
        let count_include_pad = rng.random_bool(0.5);
        let axes = [Axis::new(rng, 1), if two { Axis::new(rng, 1) } else { Axis::none() }];
        let (x, hx) = drawn::<T>(step, rng, axes, two, ceil_mode);
        let (kernel, stride, padding) =
            (axes.map(|a| a.kernel), axes.map(|a| a.stride), axes.map(|a| a.padding));
        let y = if two {
            ops::avg_pool2d(&x, AvgPoolConfig { kernel, stride, padding, ceil_mode, count_include_pad })
        } else {
            let ([kernel, _], [stride, _], [padding, _]) = (kernel, stride, padding);
            let (kernel, stride, padding) = ([kernel], [stride], [padding]);
            ops::avg_pool1d(&x, AvgPoolConfig { kernel, stride, padding, ceil_mode, count_include_pad })
        };
        let want = pooled(&hx, axes, ceil_mode, |values, places| {
            values.iter().sum::<f64>() / if count_include_pad { places } else { values.len() as f64 }
        });
        assert_close(step, &y.unwrap(), &shaped(&want, two), 4.0);
    });
}

#[test]
fn pooling_sees_windows() {
    for_types!(pools: f32, f16, bf16, f64);
}

fn parts<T: Real>() {
    cases(40, |step, rng| {
        let two = rng.random_bool(0.5);
        let (x, hx) = drawn::<T>(step, rng, [Axis::none(); 2], two, false);
        let out = [rng.random_range(0..6), if two { rng.random_range(0..6) } else { 1 }];
        let part = |i: usize, size: usize, out: usize| i * size / out..((i + 1) * size).div_ceil(out);
        let of = |f: &dyn Fn(&[f64]) -> f64| {
            let shape = [hx.shape[0], hx.shape[1], out[0], out[1]];
            let y = Array::from_fn(&shape, |index| {
                let mut values = Vec::new();
                for i in part(index[2], hx.shape[2], out[0]) {
                    for j in part(index[3], hx.shape[3], out[1]) {
                        values.push(element(&hx, &[index[0], index[1], i, j]));
                    }
                }
                f(&values)
            });
            shaped(&y, two)
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (means, largest) = if two {
            (ops::adaptive_avg_pool2d(&x, out), ops::adaptive_max_pool2d(&x, out))
        } else {
            (ops::adaptive_avg_pool1d(&x, [out[0]]), ops::adaptive_max_pool1d(&x, [out[0]]))
        };
        assert_close(step, &means.unwrap(), &of(&mean), 4.0);
        assert_same(step, &largest.unwrap(), &of(&most));
    });
}

#[test]
fn adaptive_pooling_sees_parts() {
    for_types!(parts: f32, f16, bf16, f64);
}

/// The two elements next to a place, and how far the place is from the first one.
fn neighbours(i: usize, size: usize, out: usize, corners: bool) -> (usize, usize, f64) {
    let place = match corners {
        true if out > 1 => (i * (size - 1)) as f64 / (out - 1) as f64,
        true => 0.0,
        false => ((i as f64 + 0.5) * size as f64 / out as f64 - 0.5).max(0.0),
    };
    let first = (place.floor() as usize).min(size - 1);
    (first, (first + 1).min(size - 1), place - first as f64)
}

fn sizes<T: Real>() {
    cases(40, |step, rng| {
        let (two, corners) = (rng.random_bool(0.5), rng.random_bool(0.5));
        let (x, hx) = drawn::<T>(step, rng, [Axis::none(); 2], two, false);
        // Of these sizes, no quotient is so close to a whole number that f32 would round to it.
        let out = [rng.random_range(0..9), if two { rng.random_range(0..9) } else { 1 }];
        let shape = [hx.shape[0], hx.shape[1], out[0], out[1]];
        let nearest = Array::from_fn(&shape, |index| {
            let at = |axis: usize| index[axis] * hx.shape[axis] / shape[axis];
            element(&hx, &[index[0], index[1], at(2), at(3)])
        });
        let linear = Array::from_fn(&shape, |index| {
            let (row, below, down) = neighbours(index[2], hx.shape[2], out[0], corners);
            let (column, right, along) = neighbours(index[3], hx.shape[3], out[1], corners);
            let at = |i, j| element(&hx, &[index[0], index[1], i, j]);
            let line = |i| (1.0 - along) * at(i, column) + along * at(i, right);
            (1.0 - down) * line(row) + down * line(below)
        });
        let (near, between) = if two {
            (ops::upsample_nearest2d(&x, out), ops::upsample_bilinear2d(&x, out, corners))
        } else {
            (ops::upsample_nearest1d(&x, [out[0]]), ops::upsample_linear1d(&x, [out[0]], corners))
        };
        assert_same(step, &near.unwrap(), &shaped(&nearest, two));
        assert_close(step, &between.unwrap(), &shaped(&linear, two), 10.0);
    });
}

#[test]
fn upsampling_repeats_or_divides() {
    for_types!(sizes: f32, f16, bf16, f64);
}

/// A dimension that keeps its size is copied, and one that is doubled repeats its elements, also where an f32 does not hold each place
/// and where a neighbour is infinite.
#[test]
fn sizes_that_stay_or_double_are_exact() {
    const LONG: usize = (1 << 24) + 5;
    in_step(|step| {
        let inf = f32::INFINITY;
        let x = step.tensor(&[1, 1, 3], &[1.0, inf, 2.0f32]).unwrap();
        let square = step.tensor(&[1, 1, 2, 2], &[1.0, inf, 2.0, 3.0f32]).unwrap();
        for corners in [false, true] {
            let same = ops::upsample_linear1d(&x, [3], corners).unwrap();
            assert_eq!(step.read(&same).unwrap(), [1.0, inf, 2.0]);
            let same = ops::upsample_bilinear2d(&square, [2, 2], corners).unwrap();
            assert_eq!(step.read(&same).unwrap(), [1.0, inf, 2.0, 3.0]);
        }
        // The last elements of a long line.
        let places = ops::arange::<u32>(step.scope(), LONG).unwrap();
        let line = ops::cast::<u32, f32>(&ops::remainder(&places, 251).unwrap()).unwrap();
        let line = ops::reshape(&line, [1, 1, LONG]).unwrap();
        let last = |y: Tensor<'_, f32>, n: usize| {
            step.read(&ops::narrow(&y, 2, y.shape()[2].get().unwrap() - n, n).unwrap()).unwrap()
        };
        let want: Vec<f32> = (LONG - 8..LONG).map(|at| (at % 251) as f32).collect();
        assert_eq!(last(ops::upsample_nearest1d(&line, [LONG]).unwrap(), 8), want);
        assert_eq!(last(ops::upsample_linear1d(&line, [LONG], false).unwrap(), 8), want);
        let twice: Vec<f32> = want.iter().flat_map(|&value| [value, value]).collect();
        assert_eq!(last(ops::upsample_nearest1d(&line, [2 * LONG]).unwrap(), 16), twice);
    });
}

fn norms<T: Real>() {
    cases(40, |step, rng| {
        let groups = rng.random_range(1..4);
        let channels = groups * rng.random_range(1..4);
        let mut shape = vec![size(rng), channels];
        shape.extend((0..rng.random_range(0..3)).map(|_| size(rng).max(2)));
        let (x, hx) = input::<T>(step, rng, &shape, (-3.0, 3.0));
        let mut owned = |low: f64| input::<T>(step, rng, &[channels], (low, 2.0));
        let [(w, hw), (b, hb), (mean, hmean), (var, hvar)] =
            [owned(-2.0), owned(-2.0), owned(-2.0), owned(0.5)];
        let of = |values: &Array, index: &[usize]| values.data[index[1]];
        let want = Array::from_fn(&shape, |i| {
            (element(&hx, i) - of(&hmean, i)) / (of(&hvar, i) + 1e-3).sqrt() * of(&hw, i) + of(&hb, i)
        });
        let y = ops::batch_norm(&x, &mean, &var, &w, &b, 1e-3).unwrap();
        assert_close(step, &y, &want, 10.0);

        let row = (shape[1..].iter().product::<usize>() / groups).max(1);
        let want = Array::from_fn(&shape, |i| {
            let place = i.iter().zip(&shape).fold(0, |place, (i, n)| place * n + i);
            let row = &hx.data[place / row * row..][..row];
            let mean = row.iter().sum::<f64>() / row.len() as f64;
            let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / row.len() as f64;
            (hx.data[place] - mean) / (variance + 1e-3).sqrt() * of(&hw, i) + of(&hb, i)
        });
        let y = ops::group_norm(&x, groups, &w, &b, 1e-3).unwrap();
        // Rounded twice, and rows of values that are almost equal are divided by a small number.
        let slack = if T::DTYPE.size() > 2 { 100.0 } else { 3e4 };
        assert_close(step, &y, &want, slack);
    });
}

#[test]
fn norms_of_channels() {
    for_types!(norms: f32, f16, bf16, f64);
}

#[test]
fn results_are_those_of_pytorch() {
    in_step(|step| {
        macro_rules! check {
            ($case:literal, |$c:ident| $run:expr) => {
                let $c = Fixture::new(include_str!("fixtures/pool.txt"), $case);
                for (i, y) in $run.iter().enumerate() {
                    assert_close(step, y, $c.array(&format!("y{i}")), 5.0);
                }
            };
        }
        let x = |case: &Fixture| case.tensor(step, "x");
        check!("max_pool1d", |c| {
            let config =
                MaxPoolConfig { ceil_mode: true, ..MaxPoolConfig::new(3).stride(2).padding(1).dilation(2) };
            [ops::max_pool1d(&x(&c), config).unwrap()]
        });
        check!("avg_pool1d", |c| {
            let config = AvgPoolConfig { ceil_mode: true, ..AvgPoolConfig::new(4).stride(3).padding(2) };
            [ops::avg_pool1d(&x(&c), config).unwrap()]
        });
        check!("adaptive1d", |c| {
            [ops::adaptive_avg_pool1d(&x(&c), [4]).unwrap(), ops::adaptive_max_pool1d(&x(&c), [4]).unwrap()]
        });
        check!("linear", |c| {
            [(17, false), (5, true)].map(|(n, corners)| ops::upsample_linear1d(&x(&c), [n], corners).unwrap())
        });
        check!("nearest1d", |c| [29, 7].map(|n| ops::upsample_nearest1d(&x(&c), [n]).unwrap()));
        check!("max_pool2d", |c| {
            let config =
                MaxPoolConfig { kernel: [3, 2], stride: [2, 1], padding: [1, 0], ..MaxPoolConfig::new(1) };
            [ops::max_pool2d(&x(&c), config).unwrap()]
        });
        check!("avg_pool2d", |c| {
            let config = AvgPoolConfig { stride: [2, 3], kernel: [3, 2], ..AvgPoolConfig::new(1).padding(1) };
            [ops::avg_pool2d(&x(&c), AvgPoolConfig { count_include_pad: false, ..config }).unwrap()]
        });
        check!("adaptive2d", |c| {
            [
                ops::adaptive_avg_pool2d(&x(&c), [3, 4]).unwrap(),
                ops::adaptive_max_pool2d(&x(&c), [3, 4]).unwrap(),
            ]
        });
        check!("bilinear", |c| {
            let sizes = [([10, 4], false), ([3, 13], true)];
            sizes.map(|(size, corners)| ops::upsample_bilinear2d(&x(&c), size, corners).unwrap())
        });
        check!("nearest2d", |c| { [[10, 4], [3, 13]].map(|n| ops::upsample_nearest2d(&x(&c), n).unwrap()) });
        check!("group_norm", |c| {
            let [w, b] = ["w", "b"].map(|name| c.tensor(step, name));
            [ops::group_norm(&x(&c), 3, &w, &b, 1e-3).unwrap()]
        });
        check!("batch_norm", |c| {
            let [m, v, w, b] = ["m", "v", "w", "b"].map(|name| c.tensor(step, name));
            [ops::batch_norm(&x(&c), &m, &v, &w, &b, 1e-3).unwrap()]
        });
    });
}

#[test]
fn a_nan_is_the_largest() {
    in_step(|step| {
        let x = step.tensor(&[1, 1, 4], &[1.0f32, f32::NAN, 2.0, 3.0]).unwrap();
        let y = step.read(&ops::max_pool1d(&x, MaxPoolConfig::new(2)).unwrap()).unwrap();
        assert!(y[0].is_nan() && y[1] == 3.0, "{y:?}");
        let y = step.read(&ops::adaptive_max_pool1d(&x, [1]).unwrap()).unwrap();
        assert!(y[0].is_nan(), "{y:?}");
    });
}

#[test]
fn what_does_not_fit_is_refused() {
    in_step(|step| {
        let zeros = |shape: &[usize]| ops::zeros::<f32>(step.scope(), shape).unwrap();
        let (x, square) = (zeros(&[2, 3, 4]), zeros(&[2, 3, 4, 4]));
        let max = MaxPoolConfig::new(2);
        assert!(
            is_shape(ops::max_pool1d(&square, max)) && is_shape(ops::max_pool2d(&x, MaxPoolConfig::new(2)))
        );
        assert!(is_shape(ops::max_pool1d(&x, MaxPoolConfig::new(5))), "larger window");
        assert!(is_shape(ops::max_pool1d(&x, max.dilation(usize::MAX))), "largest window");
        for bad in
            [MaxPoolConfig::new(0), max.stride(0), max.dilation(0), max.padding(2), max.padding(usize::MAX)]
        {
            assert!(is_argument(ops::max_pool1d(&x, bad)), "{bad:?}");
        }
        let avg = AvgPoolConfig::new(3);
        assert!(
            is_shape(ops::avg_pool1d(&square, avg)) && is_shape(ops::avg_pool1d(&x, AvgPoolConfig::new(5)))
        );
        for bad in [AvgPoolConfig::new(0), avg.stride(0), avg.padding(2)] {
            assert!(is_argument(ops::avg_pool1d(&x, bad)), "{bad:?}");
        }
        let short = zeros(&[1, 1, 2]);
        let ceil = MaxPoolConfig { ceil_mode: true, ..MaxPoolConfig::new(5) };
        assert_eq!(ops::max_pool1d(&short, ceil.stride(4)).unwrap().shape(), [1, 1, 1]);
        assert!(is_shape(ops::max_pool1d(&short, ceil.stride(3))), "a whole stride is lacking");
        // No time is spent on places that are not there.
        let huge = MaxPoolConfig { ceil_mode: true, ..MaxPoolConfig::new(usize::MAX) };
        assert_eq!(ops::max_pool1d(&short, huge).unwrap().shape(), [1, 1, 1]);
        assert!(is_shape(ops::max_pool1d(&short, huge.dilation(2).stride(8))), "larger than can be counted");
        let wide = AvgPoolConfig::new(usize::MAX).stride(1).padding(usize::MAX / 2);
        assert!(is_shape(ops::avg_pool1d(&x, wide)), "more places than are counted");
        assert!(
            is_shape(ops::adaptive_avg_pool1d(&square, [1]))
                && is_shape(ops::adaptive_max_pool2d(&x, [1, 1]))
        );
        let none = zeros(&[1, 1, 0]);
        assert!(is_shape(ops::max_pool1d(&none, max.padding(1))), "no element");
        assert!(is_shape(ops::adaptive_avg_pool1d(&none, [1])), "no element");
        assert!(is_argument(ops::adaptive_avg_pool1d(&x, [usize::MAX])));
        assert!(
            is_shape(ops::upsample_nearest1d(&square, [1]))
                && is_shape(ops::upsample_bilinear2d(&x, [1, 1], true))
        );
        assert!(is_shape(ops::upsample_linear1d(&zeros(&[1, 1, 0]), [1], false)), "no element");
        assert!(is_argument(ops::upsample_nearest1d(&x, [usize::MAX])));

        let (three, two) = (zeros(&[3]), zeros(&[2]));
        assert!(ops::group_norm(&x, 3, &three, &three, 0.1).is_ok());
        assert!(is_shape(ops::group_norm(&x, 2, &three, &three, 0.1)), "groups");
        assert!(is_shape(ops::group_norm(&three, 1, &three, &three, 0.1)), "rank");
        assert!(is_shape(ops::group_norm(&x, 1, &three, &two, 0.1)), "bias");
        assert!(is_argument(ops::group_norm(&x, 0, &three, &three, 0.1)));
        assert!(is_argument(ops::group_norm(&x, 1, &three, &three, -0.1)));
        assert!(is_shape(ops::batch_norm(&x, &three, &three, &two, &three, 0.1)), "weight");
        assert!(is_argument(ops::batch_norm(&x, &three, &three, &three, &three, f32::NAN)));
    });
}

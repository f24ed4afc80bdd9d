//! Convolutions against plain loops.

use graphable::{
    Error, Real, bf16, f16,
    ops::{self, ConvConfig, ConvTransposeConfig},
};
use rand::{Rng, rngs::StdRng};

use crate::{
    fixtures::Fixture,
    harness::{assert_close, cases, for_types, in_step, input, is_argument, is_shape},
    reference::Array,
};

/// How a window moves along one dimension.
#[derive(Clone, Copy)]
struct Axis {
    kernel: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
    more: usize,
}

impl Axis {
    /// A random one.
    fn new(rng: &mut StdRng) -> Self {
        let (stride, dilation) = (rng.random_range(1..4), rng.random_range(1..3));
        let more = rng.random_range(0..stride.max(dilation));
        Self { kernel: rng.random_range(1..4), stride, padding: rng.random_range(0..3), dilation, more }
    }

    /// Which leaves an element as it is.
    fn none() -> Self {
        Self { kernel: 1, stride: 1, padding: 0, dilation: 1, more: 0 }
    }

    /// The place in the input of element `k` of the window for result `i`.
    fn place(&self, i: usize, k: usize, size: usize) -> Option<usize> {
        (i * self.stride + k * self.dilation).checked_sub(self.padding).filter(|place| *place < size)
    }

    fn reach(&self) -> usize {
        (self.kernel - 1) * self.dilation
    }

    fn size(&self, size: usize) -> usize {
        (size + 2 * self.padding - self.reach() - 1) / self.stride + 1
    }

    fn transposed_size(&self, size: usize) -> Option<usize> {
        let whole = (size - 1) * self.stride + self.reach() + self.more + 1;
        whole.checked_sub(2 * self.padding).filter(|n| *n > 0)
    }
}

/// A convolution of `[N, C, H, W]`, with or without a bias.
fn convolved(x: &Array, w: &Array, bias: Option<&Array>, [a, b]: [Axis; 2], groups: usize) -> Array {
    let (inner, outer) = (w.shape[1], w.shape[0] / groups);
    let shape = [x.shape[0], w.shape[0], a.size(x.shape[2]), b.size(x.shape[3])];
    Array::from_fn(&shape, |index| {
        let &[n, c, i, j] = index else { unreachable!() };
        let mut sum = bias.map_or(0.0, |bias| bias.data[c]);
        for from in 0..inner {
            for (k, l) in (0..a.kernel).flat_map(|k| (0..b.kernel).map(move |l| (k, l))) {
                let (row, column) = (a.place(i, k, x.shape[2]), b.place(j, l, x.shape[3]));
                let Some((row, column)) = row.zip(column) else { continue };
                sum += element(x, &[n, c / outer * inner + from, row, column]) * element(w, &[c, from, k, l]);
            }
        }
        sum
    })
}

/// The same of a transposed convolution, which adds to each place of the result what reaches it.
fn spread(x: &Array, w: &Array, bias: Option<&Array>, [a, b]: [Axis; 2], groups: usize) -> Option<Array> {
    let (inner, outer) = (w.shape[0] / groups, w.shape[1]);
    let (height, width) = (a.transposed_size(x.shape[2])?, b.transposed_size(x.shape[3])?);
    let shape = [x.shape[0], outer * groups, height, width];
    let mut y = Array::from_fn(&shape, |index| bias.map_or(0.0, |bias| bias.data[index[1]]));
    Array::from_fn(&x.shape, |index| {
        let &[n, c, i, j] = index else { unreachable!() };
        for (to, k, l) in
            (0..outer).flat_map(|o| (0..a.kernel * b.kernel).map(move |k| (o, k / b.kernel, k % b.kernel)))
        {
            let (row, column) = (a.place(i, k, height), b.place(j, l, width));
            let Some((row, column)) = row.zip(column) else { continue };
            let channel = c / inner * outer + to;
            y.data[((n * shape[1] + channel) * height + row) * width + column] +=
                element(x, index) * element(w, &[c, to, k, l]);
        }
        0.0
    });
    Some(y)
}

/// Not `Array::at`, which repeats dimensions of size 1.
fn element(x: &Array, index: &[usize]) -> f64 {
    x.data[index.iter().zip(&x.shape).fold(0, |place, (i, n)| place * n + i)]
}

struct Case {
    x: [usize; 4],
    w: [usize; 4],
    axes: [Axis; 2],
    groups: usize,
}

/// A random case that has a result.
fn case(rng: &mut StdRng, two: bool) -> Case {
    // Windows of one element by themselves, which a GPU computes in other ways.
    let is_of_one = rng.random_bool(0.15);
    let mut axis =
        || if is_of_one { Axis { dilation: rng.random_range(1..3), ..Axis::none() } } else { Axis::new(rng) };
    let axes = [axis(), if two { axis() } else { Axis::none() }];
    let groups = if is_of_one { 1 } else { rng.random_range(1..4) };
    let inner = if rng.random_bool(0.3) { 1 } else { rng.random_range(1..4) };
    let outer = rng.random_range(1..4);
    let mut size =
        |axis: &Axis| (axis.reach() + 1).saturating_sub(2 * axis.padding).max(1) + rng.random_range(0..4);
    let sizes = [size(&axes[0]), if two { size(&axes[1]) } else { 1 }];
    let kernel = [axes[0].kernel, axes[1].kernel];
    Case {
        x: [rng.random_range(1..4), inner * groups, sizes[0], sizes[1]],
        w: [outer * groups, inner, kernel[0], kernel[1]],
        axes,
        groups,
    }
}

/// The first `n` of two values.
fn first<const N: usize>(axes: [Axis; 2], f: impl Fn(Axis) -> usize) -> [usize; N] {
    std::array::from_fn(|i| f(axes[i]))
}

macro_rules! config {
    ($name:ident $case:ident { $($more:tt)* }) => {
        $name {
            stride: first($case.axes, |a| a.stride),
            padding: first($case.axes, |a| a.padding),
            dilation: first($case.axes, |a| a.dilation),
            groups: $case.groups,
            $($more)*
        }
    };
}

fn convolutions<T: Real>() {
    cases(60, |step, rng| {
        let two = rng.random_bool(0.5);
        let case = case(rng, two);
        let (rank, channels) = (if two { 4 } else { 3 }, case.w[0]);
        let (x, hx) = input::<T>(step, rng, &case.x[..rank], (-2.0, 2.0));
        let (w, hw) = input::<T>(step, rng, &case.w[..rank], (-2.0, 2.0));
        let (b, hb) = input::<T>(step, rng, &[channels], (-2.0, 2.0));
        let (hx, hw) = (hx.reshaped(&case.x), hw.reshaped(&case.w));
        let want = |bias| {
            let y = convolved(&hx, &hw, bias, case.axes, case.groups);
            y.reshaped(&y.shape[..rank])
        };
        let (y, z) = if two {
            let config = config!(ConvConfig case {});
            (ops::conv2d(&x, &w, config).unwrap(), ops::conv2d_bias(&x, &w, &b, config).unwrap())
        } else {
            let config = config!(ConvConfig case {});
            (ops::conv1d(&x, &w, config).unwrap(), ops::conv1d_bias(&x, &w, &b, config).unwrap())
        };
        assert_close(step, &y, &want(None), 40.0);
        // Groups add the bias to a rounded result.
        let rounded = if case.groups > 1 { 8e3 } else { 0.0 };
        assert_close(step, &z, &want(Some(&hb)), 40.0 + if T::DTYPE.size() > 2 { 0.0 } else { rounded });
    });
}

#[test]
fn convolutions_are_sums_over_windows() {
    for_types!(convolutions: f32, f16, bf16, f64);
}

fn transposed<T: Real>() {
    cases(60, |step, rng| {
        let two = rng.random_bool(0.5);
        let case = case(rng, two);
        let (rank, [outer, inner, k, l]) = (if two { 4 } else { 3 }, case.w);
        let (outer, inner) = (outer / case.groups, inner * case.groups);
        let shape = [inner, outer, k, l];
        let (x, hx) = input::<T>(step, rng, &case.x[..rank], (-2.0, 2.0));
        let (w, hw) = input::<T>(step, rng, &shape[..rank], (-2.0, 2.0));
        let (b, hb) = input::<T>(step, rng, &[outer * case.groups], (-2.0, 2.0));
        let (hx, hw) = (hx.reshaped(&case.x), hw.reshaped(&shape));
        let want = |bias| spread(&hx, &hw, bias, case.axes, case.groups);
        let (y, z) = if two {
            let config = config!(ConvTransposeConfig case { output_padding: first(case.axes, |a| a.more) });
            (ops::conv_transpose2d(&x, &w, config), ops::conv_transpose2d_bias(&x, &w, &b, config))
        } else {
            let config = config!(ConvTransposeConfig case { output_padding: first(case.axes, |a| a.more) });
            (ops::conv_transpose1d(&x, &w, config), ops::conv_transpose1d_bias(&x, &w, &b, config))
        };
        let (Some(plain), Some(biased)) = (want(None), want(Some(&hb))) else {
            assert!(is_shape(y) && is_shape(z), "nothing is left");
            return;
        };
        // Each of the products that are added was rounded.
        let slack = if T::DTYPE.size() > 2 { 40.0 } else { 6e4 };
        assert_close(step, &y.unwrap(), &plain.reshaped(&plain.shape[..rank]), slack);
        assert_close(step, &z.unwrap(), &biased.reshaped(&biased.shape[..rank]), slack);
    });
}

#[test]
fn transposed_convolutions_add_windows() {
    for_types!(transposed: f32, f16, bf16, f64);
}

#[test]
fn a_convolution_that_keeps_its_size_accepts_an_empty_dimension() {
    in_step(|step| {
        let x = ops::zeros::<f32>(step.scope(), &[2, 3, 0]).unwrap();
        let w = ops::zeros::<f32>(step.scope(), &[4, 3, 3]).unwrap();
        assert_eq!(ops::conv1d(&x, &w, ConvConfig::new().padding(1)).unwrap().shape(), [2, 4, 0]);
        assert!(is_shape(ops::conv1d(&x, &w, ConvConfig::new())));
        let none = ops::zeros::<f32>(step.scope(), &[0, 3, 5]).unwrap();
        assert_eq!(ops::conv1d(&none, &w, ConvConfig::new()).unwrap().shape(), [0, 4, 3]);
    });
}

#[test]
fn what_does_not_fit_is_refused() {
    in_step(|step| {
        let zeros = |shape: &[usize]| ops::zeros::<f32>(step.scope(), shape).unwrap();
        let (x, w, config) = (zeros(&[2, 4, 5]), zeros(&[6, 4, 3]), ConvConfig::new());
        assert!(
            ops::conv1d(&x, &w, config).is_ok() && ops::conv1d_bias(&x, &w, &zeros(&[6]), config).is_ok()
        );
        assert!(is_shape(ops::conv1d(&zeros(&[4, 5]), &w, config)), "rank of the input");
        assert!(is_shape(ops::conv1d(&x, &zeros(&[6, 4]), config)), "rank of the weight");
        assert!(is_shape(ops::conv1d(&x, &zeros(&[6, 3, 3]), config)), "channels");
        assert!(is_shape(ops::conv1d(&x, &w, config.groups(2))), "channels of groups");
        assert!(is_shape(ops::conv1d(&x, &zeros(&[5, 2, 3]), config.groups(2))), "results of groups");
        assert!(is_shape(ops::conv1d(&x, &zeros(&[6, 4, 0]), config)), "empty window");
        assert!(is_shape(ops::conv1d(&x, &zeros(&[6, 4, 6]), config)), "larger window");
        assert!(is_shape(ops::conv1d(&x, &w, config.dilation(usize::MAX))), "largest window");
        assert!(is_shape(ops::conv1d(&x, &w, config.padding(usize::MAX))), "largest padding");
        let far = config.padding(usize::MAX / 4).dilation(usize::MAX / 4);
        assert!(is_shape(ops::conv1d(&x, &w, far)), "a size that would be kept");
        assert!(is_shape(ops::conv1d_bias(&x, &w, &zeros(&[1]), config)), "bias");
        for bad in [config.stride(0), config.dilation(0), config.groups(0)] {
            assert!(is_argument(ops::conv1d(&x, &w, bad)), "{bad:?}");
        }
        match ops::conv1d_bias(&x, &w, &zeros(&[1]), config).unwrap_err() {
            error @ Error::Shape { op: "conv1d_bias", .. } => {
                let text = error.to_string();
                assert!(text.contains("[2, 4, 5]") && text.contains("must be [6]"), "{text}");
            }
            other => panic!("{other}"),
        }
        let (square, window) = (zeros(&[1, 2, 4, 4]), zeros(&[2, 2, 3, 3]));
        assert!(ops::conv2d(&square, &window, ConvConfig::new().stride(usize::MAX)).is_ok());
        assert!(is_shape(ops::conv2d(&x, &w, ConvConfig::new())), "one dimension");
        assert!(is_shape(ops::conv2d(&square, &zeros(&[2, 2, 5, 3]), ConvConfig::new())));

        let (w, config) = (zeros(&[4, 3, 3]), ConvTransposeConfig::new());
        assert!(ops::conv_transpose1d(&x, &w, config).is_ok());
        assert!(is_shape(ops::conv_transpose1d(&x, &zeros(&[3, 3, 3]), config)), "channels");
        assert!(is_shape(ops::conv_transpose1d(&x, &w, config.groups(3))), "groups");
        assert!(is_shape(ops::conv_transpose1d(&x, &w, config.padding(4))), "nothing is left");
        assert!(is_shape(ops::conv_transpose1d(&x, &w, config.stride(usize::MAX))), "largest stride");
        assert!(is_shape(ops::conv_transpose1d(&zeros(&[2, 4, 0]), &w, config)), "no element");
        assert!(is_shape(ops::conv_transpose1d_bias(&x, &w, &zeros(&[4]), config)), "bias");
        assert!(is_argument(ops::conv_transpose1d(&x, &w, config.output_padding(1))), "output padding");
        assert!(ops::conv_transpose1d(&x, &w, config.stride(2).output_padding(1)).is_ok());
        assert!(is_argument(ops::conv_transpose1d(&x, &w, config.stride(0))));
        let window = zeros(&[2, 2, 3, 3]);
        assert!(is_shape(ops::conv_transpose2d(&square, &w, ConvTransposeConfig::new())));
        assert!(
            ops::conv_transpose2d_bias(&square, &window, &zeros(&[2]), ConvTransposeConfig::new()).is_ok()
        );
    });
}

/// The weights, the bias and the result of a case of PyTorch.
macro_rules! pytorch {
    ($($case:literal: $op:ident($config:expr);)*) => {
        in_step(|step| {
            $(
                let case = Fixture::new(include_str!("fixtures/conv.txt"), $case);
                let [x, w, b] = ["x", "w", "b"].map(|name| case.tensor(step, name));
                assert_close(step, &ops::$op(&x, &w, &b, $config).unwrap(), case.array("y0"), 5.0);
            )*
        });
    };
}

#[test]
fn convolutions_are_those_of_pytorch() {
    pytorch! {
        "conv1d": conv1d_bias(ConvConfig::new().stride(2).padding(1).dilation(2).groups(2));
        "conv2d": conv2d_bias(ConvConfig { stride: [2, 1], padding: [1, 0], dilation: [1, 2], groups: 1 });
        "depthwise": conv2d_bias(ConvConfig::new().padding(1).groups(3));
        "conv_transpose1d": conv_transpose1d_bias(
            ConvTransposeConfig::new().stride(3).padding(1).output_padding(2).groups(2).dilation(2)
        );
        "conv_transpose2d": conv_transpose2d_bias(
            ConvTransposeConfig { stride: [2, 1], padding: [1, 0], output_padding: [1, 0], ..ConvTransposeConfig::new() }
        );
    }
}

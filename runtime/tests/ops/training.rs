//! Batch norm with the statistics of its batch, weighted losses and additions at indices: their results are those of PyTorch.

use graphable::{
    DType, Float, Mode, Param, Params, Real, Result, Runtime, Schedule, State, Step, Tensor, bf16, f16,
    graphable, ops,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    fixtures::Fixture,
    harness::{
        assert_close, cases, device, for_types, in_step, input, is_argument, is_shape, param, size, state,
    },
    reference::{Array, softmax},
};

fn fixture(case: &str) -> Fixture {
    Fixture::new(include_str!("fixtures/training.txt"), case)
}

fn values(array: &Array) -> Vec<f32> {
    array.data.iter().map(|&v| v as f32).collect()
}

#[derive(Params)]
struct Norm {
    mean: State<f32>,
    var: State<f32>,
    weight: Param<f32>,
    bias: Param<f32>,
}

/// Batches of three channels of one value, of several, and of images.
#[graphable]
fn of_one(
    #[host]
    #[dims(N, 3, 1)]
    x: &Tensor<f32>,
    norm: &Norm,
) -> Result<Tensor<f32>> {
    ops::batch_norm_training(x, &norm.mean, &norm.var, &norm.weight, &norm.bias, 0.25, 1e-3)
}

#[graphable]
fn of_five(
    #[host]
    #[dims(N, 3, 5)]
    x: &Tensor<f32>,
    norm: &Norm,
) -> Result<Tensor<f32>> {
    ops::batch_norm_training(x, &norm.mean, &norm.var, &norm.weight, &norm.bias, 0.25, 1e-3)
}

#[graphable]
fn of_images(
    #[host]
    #[dims(N, 3, 2, 2)]
    x: &Tensor<f32>,
    norm: &Norm,
) -> Result<Tensor<f32>> {
    ops::batch_norm_training(x, &norm.mean, &norm.var, &norm.weight, &norm.bias, 0.25, 1e-3)
}

/// The running statistics after each batch, as bits, if they are PyTorch's.
fn check(step: &Step<'_>, y: &Tensor<'_, f32>, norm: &Norm, case: &Fixture) -> Vec<u32> {
    let [mean, var] = [&norm.mean, &norm.var].map(|state| ops::load(step.scope(), state).unwrap());
    let mut bits = Vec::new();
    for (i, got) in [y, &mean, &var].into_iter().enumerate() {
        assert_close(step, got, case.array(&format!("y{i}")), 40.0);
        bits.extend(step.read(got).unwrap().iter().map(|v| v.to_bits()));
    }
    bits
}

/// The same batches in turn, several times from the same statistics on: warm-up, recordings and replays. Buckets are larger
/// than each of them.
#[test]
fn running_statistics_move_as_those_of_pytorch() {
    let [first, second, third] = [0, 1, 2].map(|i| fixture(&format!("batch_norm{i}")));
    let mut known: Option<Vec<u32>> = None;
    for (mode, bucket) in [
        (Mode::None, None),
        (Mode::Full, None),
        (Mode::None, Some(7)),
        (Mode::Piecewise, Some(8)),
        (Mode::Full, Some(6)),
    ] {
        let mut rt = Runtime::new(device()).unwrap();
        let of = |name| Param::new(&rt, &[3], &values(first.array(name))).unwrap();
        let (mean, var) = (State::zeros(&rt, &[3]).unwrap(), State::zeros(&rt, &[3]).unwrap());
        let norm = Norm { mean, var, weight: of("w"), bias: of("b") };
        macro_rules! graph {
            ($graph:ident) => {{
                let builder = $graph::builder().mode(mode);
                match bucket {
                    Some(n) => builder.bucket("N", Schedule::new([n])).build(&mut rt).unwrap(),
                    None => builder.build(&mut rt).unwrap(),
                }
            }};
        }
        let (a, b, c) = (graph!(OfFiveGraph), graph!(OfOneGraph), graph!(OfImagesGraph));
        for _ in 0..4 {
            let step = rt.step().unwrap();
            for (state, name) in [(&norm.mean, "m"), (&norm.var, "v")] {
                ops::store(state, &first.tensor(&step, name)).unwrap();
            }
            let x = |case: &Fixture| values(case.array("x"));
            let mut bits = check(&step, &a.call(&step, &x(&first), &norm).unwrap(), &norm, &first);
            bits.extend(check(&step, &b.call(&step, &x(&second), &norm).unwrap(), &norm, &second));
            bits.extend(check(&step, &c.call(&step, &x(&third), &norm).unwrap(), &norm, &third));
            assert_eq!(*known.get_or_insert_with(|| bits.clone()), bits, "{mode}, {bucket:?}");
        }
        if mode == Mode::Full {
            assert_eq!((rt.stats().recordings, rt.stats().fallbacks), (3, 0), "one graph for each function");
        }
    }
}

/// The mean of a channel, and the sum of the squared distances from it.
fn moments(x: &Array, channel: usize) -> (f64, f64, f64) {
    let [n, _, inner] = x.shape[..] else { panic!("{:?}", x.shape) };
    let of: Vec<f64> = (0..n * inner).map(|i| x.at(&[i / inner, channel, i % inner])).collect();
    let mean = of.iter().sum::<f64>() / of.len() as f64;
    (mean, of.iter().map(|v| (v - mean).powi(2)).sum(), of.len() as f64)
}

fn batches<T: Real>() {
    let mut rt = Runtime::new(device()).unwrap();
    for seed in 0..20 {
        let rng = &mut StdRng::seed_from_u64(seed);
        let dims = [rng.random_range(1..6), rng.random_range(1..4), rng.random_range(1..5)];
        let [(mean, hm), (var, hv)] = [0, 1].map(|_| state::<T>(&rt, rng, &[dims[1]]));
        let [(weight, hw), (bias, hb)] = [0, 1].map(|_| param::<T>(&rt, rng, &[dims[1]]));
        let step = rt.step().unwrap();
        let (x, hx) = input::<T>(&step, rng, &dims, (-3.0, 3.0));
        let y = ops::batch_norm_training(&x, &mean, &var, &weight, &bias, 0.1, 0.5).unwrap();
        let want = Array::from_fn(&dims, |i| {
            let (mean, squares, n) = moments(&hx, i[1]);
            (hx.at(i) - mean) / (squares / n + 0.5).sqrt() * hw.at(&i[1..2]) + hb.at(&i[1..2])
        });
        assert_close(&step, &y, &want, 40.0);
        let of_mean = Array::from_fn(&dims[1..2], |i| 0.9 * hm.at(i) + 0.1 * moments(&hx, i[0]).0);
        let of_var = Array::from_fn(&dims[1..2], |i| {
            let (_, squares, n) = moments(&hx, i[0]);
            0.9 * hv.at(i) + 0.1 * squares / (n - 1.0).max(1.0)
        });
        assert_close(&step, &ops::load(step.scope(), &mean).unwrap(), &of_mean, 40.0);
        assert_close(&step, &ops::load(step.scope(), &var).unwrap(), &of_var, 40.0);
    }
}

#[test]
fn batches_have_statistics_of_their_own() {
    for_types!(batches: f32, f16, bf16, f64);
}

fn batches_in_16_bits<T: Float>() {
    let mut rt = Runtime::new(device()).unwrap();
    let rng = &mut StdRng::seed_from_u64(3);
    let fixed = |value: f32| State::new(&rt, &[2], &[value; 2]).unwrap();
    let (mean, var, slow) = (fixed(0.0), fixed(1.0), State::new(&rt, &[2], &[T::from_f64(0.75); 2]).unwrap());
    let [(weight, hw), (bias, hb)] = [0, 1].map(|_| param::<f32>(&rt, rng, &[2]));
    let coarse = [(); 2].map(|()| Param::new(&rt, &[2], &[T::from_f64(1.0); 2]).unwrap());
    let coarse_var = State::new(&rt, &[2], &[T::from_f64(1.0); 2]).unwrap();
    let mut moved = [0.0f64; 2];
    for _ in 0..400 {
        let step = rt.step().unwrap();
        let (x, hx) = input::<T>(&step, rng, &[6, 2, 1], (0.5, 1.5));
        let y = ops::batch_norm_training(&x, &mean, &var, &weight, &bias, 1e-3, 0.5).unwrap();
        ops::batch_norm_training(&x, &slow, &coarse_var, &coarse[0], &coarse[1], 1e-3, 0.5).unwrap();
        let want = Array::from_fn(&[6, 2, 1], |i| {
            let (mean, squares, n) = moments(&hx, i[1]);
            (hx.at(i) - mean) / (squares / n + 0.5).sqrt() * hw.at(&i[1..2]) + hb.at(&i[1..2])
        });
        assert_close(&step, &y, &want, 40.0);
        for (channel, moved) in moved.iter_mut().enumerate() {
            *moved = 0.999 * *moved + 0.001 * moments(&hx, channel).0;
        }
        // The same statistics, for inference.
        let y = ops::batch_norm(&x, &mean, &var, &weight, &bias, 0.5).unwrap();
        let [hm, hv] = [&mean, &var]
            .map(|state| step.read(&ops::load(step.scope(), state).unwrap()).unwrap())
            .map(|values| values.into_iter().map(f64::from).collect::<Vec<_>>());
        let want = Array::from_fn(&[6, 2, 1], |i| {
            (hx.at(i) - hm[i[1]]) / (hv[i[1]] + 0.5).sqrt() * hw.at(&i[1..2]) + hb.at(&i[1..2])
        });
        assert_close(&step, &y, &want, 40.0);
    }
    let step = rt.step().unwrap();
    let got = step.read(&ops::load(step.scope(), &mean).unwrap()).unwrap();
    for (got, want) in got.iter().zip(moved) {
        assert!((f64::from(*got) - want).abs() < 1e-4 && want > 0.3, "{got}, not {want}");
    }
    // In 16 bits of a state, each of those steps was lost.
    let stuck = step.read(&ops::load(step.scope(), &slow).unwrap()).unwrap();
    assert!(T::DTYPE != DType::Bf16 || stuck.iter().all(|v| v.to_f64() == 0.75));
}

#[test]
fn statistics_of_16_bits_may_be_f32() {
    for_types!(batches_in_16_bits: f16, bf16);
}

fn weighted<T: Real>() {
    cases(40, |step, rng| {
        let (rows, classes) = (size(rng), rng.random_range(1..7));
        let (x, host) = input::<T>(step, rng, &[rows, classes], (-4.0, 4.0));
        let (weights, hw) = input::<T>(step, rng, &[classes], (0.0, 2.0));
        let labels: Vec<i32> = (0..rows)
            .map(|_| if rng.random_bool(0.2) { -1 } else { rng.random_range(0..classes as i32) })
            .collect();
        let given = step.tensor(&[rows], &labels).unwrap();
        let smoothing = [0.0, 0.1, 1.0][rng.random_range(0..3)];
        let want = Array::from_fn(&[rows], |i| {
            let Ok(label) = usize::try_from(labels[i[0]]) else { return 0.0 };
            let logs: Vec<f64> = softmax(&host.line(1, i)).into_iter().map(f64::ln).collect();
            let all: f64 = logs.iter().zip(&hw.data).map(|(log, w)| -log * w).sum();
            (1.0 - smoothing) * -logs[label] * hw.data[label] + smoothing * all / classes as f64
        });
        let of_rows =
            Array::from_fn(&[rows], |i| usize::try_from(labels[i[0]]).map_or(0.0, |label| hw.data[label]));
        let (loss, weight) = ops::cross_entropy_weighted(&x, &given, &weights, -1, smoothing).unwrap();
        assert_close(step, &loss, &want, 10.0);
        assert_close(step, &weight, &of_rows, 0.0);
        let (loss, weight) = ops::nll_loss_weighted(&x, &given, &weights, -1).unwrap();
        let picked = Array::from_fn(&[rows], |i| {
            usize::try_from(labels[i[0]]).map_or(0.0, |label| -host.at(&[i[0], label]) * hw.data[label])
        });
        assert_close(step, &loss, &picked, 1.0);
        assert_close(step, &weight, &of_rows, 0.0);
    });
}

#[test]
fn losses_with_a_weight_for_each_class() {
    for_types!(weighted: f32, f16, bf16, f64);
}

/// The losses of each row, and their mean by weight.
fn check_losses(step: &Step<'_>, (loss, weight): (Tensor<'_, f32>, Tensor<'_, f32>), case: &Fixture) {
    assert_close(step, &loss, case.array("y0"), 10.0);
    let mean = ops::div(&ops::sum(&loss, 0).unwrap(), &ops::sum(&weight, 0).unwrap()).unwrap();
    assert_close(step, &ops::reshape(&mean, [1]).unwrap(), case.array("y1"), 10.0);
}

#[test]
fn results_are_those_of_pytorch() {
    in_step(|step| {
        let labels = |case: &Fixture| -> Tensor<'_, i32> {
            let labels: Vec<i32> = case.array("labels").data.iter().map(|&v| v as i32).collect();
            step.tensor(&[labels.len()], &labels).unwrap()
        };
        for (name, smoothing) in [("plain", 0.0), ("smoothed", 0.3)] {
            let case = fixture(&format!("cross_entropy_{name}"));
            let (x, w) = (case.tensor(step, "x"), case.tensor(step, "w"));
            let losses = ops::cross_entropy_weighted(&x, &labels(&case), &w, -100, smoothing).unwrap();
            check_losses(step, losses, &case);
        }
        let case = fixture("nll_loss");
        let (x, w) = (case.tensor(step, "x"), case.tensor(step, "w"));
        check_losses(step, ops::nll_loss_weighted(&x, &labels(&case), &w, -100).unwrap(), &case);

        for (name, axis) in [("scatter_add0", 0), ("scatter_add1", 1), ("index_add", 1)] {
            let case = fixture(name);
            let given = case.array("index");
            let index: Vec<u32> = given.data.iter().map(|&v| v as u32).collect();
            let index = step.tensor(&given.shape[..], &index).unwrap();
            let (x, src) = (case.tensor(step, "x"), case.tensor(step, "src"));
            let add = if name == "index_add" { ops::index_add } else { ops::scatter_add };
            assert_close(step, &add(&x, axis, &index, &src).unwrap(), case.array("y0"), 10.0);
        }
    });
}

#[test]
fn misuse_is_refused() {
    let mut rt = Runtime::new(device()).unwrap();
    let [mean, var, short] = [3, 3, 2].map(|n| State::<f32>::zeros(&rt, &[n]).unwrap());
    let step = rt.step().unwrap();
    let zeros = |dims: &[usize]| ops::zeros::<f32>(step.scope(), dims).unwrap();
    let (x, three) = (zeros(&[4, 3]), zeros(&[3]));
    let norm = |x: &Tensor<'_, f32>, var: &State<f32>, momentum, eps| {
        ops::batch_norm_training(&ops::contiguous(x)?, &mean, var, &three, &three, momentum, eps).map(drop)
    };
    assert!(norm(&x, &var, 0.1, 0.1).is_ok());
    assert!(is_shape(norm(&x, &short, 0.1, 0.1)), "variance");
    assert!(is_shape(norm(&zeros(&[4, 2]), &var, 0.1, 0.1)), "channels");
    assert!(is_shape(norm(&three, &var, 0.1, 0.1)), "rank");
    assert!(is_shape(norm(&zeros(&[4, 3, 0]), &var, 0.1, 0.1)), "no value");
    assert!(is_argument(norm(&x, &var, 0.1, -0.1)));
    assert!(is_argument(norm(&x, &var, 1.5, 0.1)) && is_argument(norm(&x, &var, f32::NAN, 0.1)));

    let labels = ops::zeros::<i32>(step.scope(), [4]).unwrap();
    for weights in [zeros(&[4]), zeros(&[1, 3]), zeros(&[])] {
        assert!(is_shape(ops::cross_entropy_weighted(&x, &labels, &weights, 0, 0.0)), "{weights:?}");
        assert!(is_shape(ops::nll_loss_weighted(&x, &labels, &weights, 0)), "{weights:?}");
    }
    assert!(is_shape(ops::nll_loss_weighted(&x, &ops::zeros::<i32>(step.scope(), [3]).unwrap(), &three, 0)));
    assert!(is_argument(ops::cross_entropy_weighted(&x, &labels, &three, 0, 1.5)));
}

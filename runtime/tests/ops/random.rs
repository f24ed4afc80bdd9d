//! Random numbers: those of each element against the function that defines them, their distributions, and how calls
//! advance a generator.

use graphable::{
    DType, Error, Float, Integer, Random, Rng, RngState, Runtime, State, Step, Tensor, bf16, f16, kernel, ops,
};

use crate::harness::{device, for_types, is_argument};

const SEED: u64 = 0x1234_5678_9abc_def0;

/// Runs `f` in one step of a fresh runtime with a generator.
fn with_rng(f: impl for<'s> FnOnce(&Step<'s>, &Rng)) {
    with_two(|step, rng, _| f(step, rng));
}

/// Likewise, with another one, whose seed is 5.
fn with_two(f: impl for<'s> FnOnce(&Step<'s>, &Rng, &Rng)) {
    let mut rt = Runtime::new(device()).unwrap();
    let (rng, other) = (Rng::new(&rt, SEED).unwrap(), Rng::new(&rt, 5).unwrap());
    f(&rt.step().unwrap(), &rng, &other);
}

/// The numbers of a call, as the documentation defines them.
fn defined(counter: u64, count: usize) -> impl Iterator<Item = Random> {
    (0..count as u64).map(move |index| Random::at(RngState { seed: SEED, counter }, index))
}

fn uniforms<T: Float>() {
    with_rng(|step, rng| {
        let digits = match T::DTYPE {
            DType::F16 => 11,
            DType::Bf16 => 8,
            _ => 24,
        };
        // Enough for several threads, and few enough for one; ends of packs.
        for (call, n) in [100_003, 1, 2, 3, 7, 4096].into_iter().enumerate() {
            let x = ops::uniform::<T>(rng, step.scope(), [n], 0.0..1.0).unwrap();
            let want = defined(call as u64, n);
            let want = want.map(|r| f64::from(r.bits() >> (32 - digits)) * 0.5f64.powi(digits));
            let got: Vec<f64> = step.read(&x).unwrap().iter().map(|v| v.to_f64()).collect();
            assert!(got.iter().copied().eq(want), "{} of call {call}", T::DTYPE);
        }
    });
}

#[test]
fn uniform_is_exact() {
    for_types!(uniforms: f32, f16, bf16);
}

fn ranges<T: Float>() {
    with_rng(|step, rng| {
        for range in [-3.0..5.0, 100.0..104.0, -0.001..0.001, -2.0..-1.0, 0.0..60000.0] {
            let x = ops::uniform::<T>(rng, step.scope(), [20_000], range.clone()).unwrap();
            let values: Vec<f64> = step.read(&x).unwrap().iter().map(|v| v.to_f64()).collect();
            let [low, high] = [range.start, range.end].map(|end| T::from_f64(end.into()).to_f64());
            assert!(values.iter().all(|v| (low..high).contains(v)), "{range:?} {}", T::DTYPE);
            let quarter = (high - low) / 4.0;
            assert!(values.iter().any(|v| *v < low + quarter) && values.iter().any(|v| *v >= high - quarter));
        }
    });
}

#[test]
fn ranges_are_half_open() {
    for_types!(ranges: f32, f16, bf16);
}

#[test]
fn kernels_draw_what_is_defined() {
    /// All methods of random numbers.
    #[kernel]
    fn drawn(x: f32, r: Random, n: u32) -> (f32, f32, u32, u32) {
        (r.uniform() + x, r.normal() + r.exponential() + r.gumbel(), r.below(n), r.bits() ^ r.more_bits())
    }
    with_rng(|step, rng| {
        let (rows, columns) = (37, 21);
        let x = step.tensor([columns], &vec![2.0f32; columns]).unwrap();
        let bounds: Vec<u32> = (0..rows as u32).collect();
        let n = step.tensor([rows, 1], &bounds).unwrap();
        let x = ops::broadcast_to(&x, [rows, columns]).unwrap();
        let (uniform, others, below, bits) = drawn(&x, rng, &n).unwrap();
        let others = step.read(&others).unwrap();
        for (i, r) in defined(0, rows * columns).enumerate() {
            let want = r.normal() + r.exponential() + r.gumbel();
            assert!((others[i] - want).abs() < 1e-5 * want.abs().max(8.0), "{i}: {} {want}", others[i]);
        }
        let all = || defined(0, rows * columns).enumerate();
        assert!(step.read(&uniform).unwrap().into_iter().eq(all().map(|(_, r)| r.uniform() + 2.0)));
        assert!(step.read(&below).unwrap().into_iter().eq(all().map(|(i, r)| r.below((i / columns) as u32))));
        assert!(step.read(&bits).unwrap().into_iter().eq(all().map(|(_, r)| r.bits() ^ r.more_bits())));
        assert_eq!(rng.save(step).unwrap(), RngState { seed: SEED, counter: 1 });
    });
}

#[test]
fn kernels_of_rows_draw_by_row_and_place() {
    /// A sample of the softmax of each row, and the row with noise.
    #[kernel(rows)]
    fn sampled(x: Row<f32>, r: Row<Random>) -> (u32, Row<f32>) {
        let noisy = x.zip(r).map(|(x, r)| x + r.uniform());
        (noisy.argmax(), noisy)
    }
    /// A value for each row, one of the row's numbers, and both numbers of one generator.
    #[kernel(rows)]
    fn mixed(s: Random, r: Row<Random>, x: Row<u32>, #[key] n: u32) -> (u32, u32, Row<u32>) {
        let bits = s.bits();
        (s.below(n), r.at(n % x.len()).more_bits(), x.zip(r).map(|(x, r)| x ^ r.bits() ^ bits))
    }
    /// Rows along any dimension: rows count as in the result, and values as in their row.
    #[kernel(reduce)]
    fn largest(x: Row<f32>, r: Row<Random>) -> (f32, u32) {
        let drawn = r.map(|r| r.uniform());
        (x.zip(drawn).map(|(x, r)| x * r).max(), drawn.argmax())
    }
    with_two(|step, rng, other| {
        // Rows of one value, of several pieces, and of some that leave threads without one.
        for (call, (rows, columns)) in [(37, 21), (5, 1), (3, 20_001), (130, 64)].into_iter().enumerate() {
            let all = rows * columns;
            let x: Vec<f32> = (0..all).map(|i| (i % 3) as f32 * 0.25).collect();
            let x = step.tensor([rows, columns], &x).unwrap();
            let (places, noisy) = sampled(&x, rng).unwrap();
            let want: Vec<f32> = defined(call as u64, all)
                .enumerate()
                .map(|(i, r)| (i % 3) as f32 * 0.25 + r.uniform())
                .collect();
            assert_eq!(step.read(&noisy).unwrap(), want, "{rows} {columns}");
            let first =
                |row: &[f32]| (0..columns).rev().max_by(|i, j| row[*i].total_cmp(&row[*j])).unwrap() as u32;
            assert!(
                step.read(&places).unwrap().into_iter().eq(want.chunks(columns).map(first)),
                "{rows} {columns}"
            );
        }
        assert_eq!(rng.save(step).unwrap(), RngState { seed: SEED, counter: 4 });

        let (rows, columns) = (19, 33);
        let x = step.tensor([columns], &vec![7u32; columns]).unwrap();
        let x = ops::broadcast_to(&x, [rows, columns]).unwrap();
        let (below, one, all) = mixed(rng, rng, &x, 1000).unwrap();
        let values: Vec<Random> = defined(4, rows).collect();
        let numbers: Vec<Random> = defined(5, rows * columns).collect();
        assert!(step.read(&below).unwrap().into_iter().eq(values.iter().map(|s| s.below(1000))));
        let ones = (0..rows).map(|row| numbers[row * columns + 1000 % columns].more_bits());
        assert!(step.read(&one).unwrap().into_iter().eq(ones));
        let want = numbers.iter().enumerate().map(|(i, r)| 7 ^ r.bits() ^ values[i / columns].bits());
        assert!(step.read(&all).unwrap().into_iter().eq(want));

        // Columns side by side, and the same rows along the last dimension.
        let (rows, columns) = (40, 300);
        let x: Vec<f32> = (0..rows * columns).map(|i| (i % 7) as f32).collect();
        let x = step.tensor([columns, rows], &x).unwrap();
        let (most, places) = largest(&x, rng, 0).unwrap();
        let numbers: Vec<f32> = defined(6, rows * columns).map(Random::uniform).collect();
        let of = |row: usize, i: usize| ((i * rows + row) % 7) as f32 * numbers[row * columns + i];
        let want = (0..rows).map(|row| (0..columns).map(|i| of(row, i)).fold(f32::NEG_INFINITY, f32::max));
        assert!(step.read(&most).unwrap().into_iter().eq(want));
        let want = numbers
            .chunks(columns)
            .map(|row| (0..columns).rev().max_by(|i, j| row[*i].total_cmp(&row[*j])).unwrap() as u32);
        assert!(step.read(&places).unwrap().into_iter().eq(want));

        // An empty one counts as any other.
        sampled(&step.tensor::<f32>([0, 5], &[]).unwrap(), rng).unwrap();
        sampled(&step.tensor::<f32>([5, 0], &[]).unwrap(), rng).unwrap();
        assert_eq!(rng.save(step).unwrap().counter, 9);
        let state = RngState { seed: 5, counter: 0 };
        let drawn: Vec<Random> = (0..3).map(|i| Random::at(state, i)).collect();
        let (_, noisy) = sampled::row(&[0.0, 1.0, 2.0], &drawn);
        assert!(noisy.into_iter().eq(drawn.iter().zip(0u8..).map(|(r, i)| f32::from(i) + r.uniform())));
        other.save(step).unwrap();
    });
}

#[test]
fn kernels_of_indices_draw_by_the_place_in_the_result() {
    /// Every place of a matrix, and of its transpose.
    #[kernel(index)]
    fn placed(x: View<f32, 2>, r: Random, #[key] n: u32, s: Random, [i, j]: [i32; 2]) -> (f32, u32, u32) {
        (x.at([j, i]) + r.uniform(), s.bits() ^ s.more_bits(), r.below(n))
    }
    /// Without a view, and with a loop.
    #[kernel(index)]
    fn summed(r: Random, [i]: [i32; 1]) -> (f32, i32) {
        let mut sum = 0.0;
        for _ in 0..4 {
            sum += r.uniform();
        }
        (sum, i)
    }
    /// A random place of a state is written.
    #[kernel(index)]
    fn thrown(to: &mut View<u32, 1>, r: Random, [i]: [i32; 1]) {
        to.set([r.below(u32::MAX) % to.dim(0) as u32], i as u32 + 1)
    }
    with_two(|step, rng, other| {
        let (rows, columns) = (37, 21);
        let x: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
        let x = step.tensor([columns, rows], &x).unwrap();
        let (uniform, bits, below) = placed(&x, rng, 1000, rng, [rows, columns]).unwrap();
        let want = defined(0, rows * columns).enumerate();
        let want = want.map(|(k, r)| (k % columns * rows + k / columns) as f32 + r.uniform());
        assert!(step.read(&uniform).unwrap().into_iter().eq(want));
        let want = defined(1, rows * columns).map(|s| s.bits() ^ s.more_bits());
        assert!(step.read(&bits).unwrap().into_iter().eq(want));
        assert!(step.read(&below).unwrap().into_iter().eq(defined(0, rows * columns).map(|r| r.below(1000))));
        assert_eq!(rng.save(step).unwrap().counter, 2);
        let (sums, _) = summed::<f32>(step.scope(), rng, [1000]).unwrap();
        let four = |r: Random| (0..4).fold(0.0, |sum, _| sum + r.uniform());
        assert!(step.read(&sums).unwrap().into_iter().eq(defined(2, 1000).map(four)));
        // An empty one counts as any other.
        summed::<f32>(step.scope(), rng, [0]).unwrap();
        assert_eq!(rng.save(step).unwrap().counter, 4);
        let state = RngState { seed: 5, counter: 0 };
        assert_eq!(
            summed::element(Random::at(state, 3), [3]).0,
            four(Random::at(state, 3)),
            "the function for users"
        );
        other.save(step).unwrap();
    });
    let mut rt = Runtime::new(device()).unwrap();
    let (rng, to) = (Rng::new(&rt, SEED).unwrap(), State::<u32>::zeros(&rt, &[40]).unwrap());
    let step = rt.step().unwrap();
    thrown(step.scope(), &to, &rng, [300]).unwrap();
    let mut want = vec![0; 40];
    for (i, r) in defined(0, 300).enumerate() {
        // The last of equal places.
        want[r.below(u32::MAX) as usize % 40] = i as u32 + 1;
    }
    assert_eq!(step.read(&ops::load(step.scope(), &to).unwrap()).unwrap(), want);
    assert_eq!(rng.save(&step).unwrap().counter, 1);
}

#[test]
fn each_parameter_is_a_call() {
    #[kernel]
    fn three(a: Random, b: Random, x: f32, c: Random) -> (u32, u32, f32) {
        (a.bits(), b.bits(), c.uniform() + x)
    }
    with_two(|step, rng, other| {
        let x = step.tensor([3], &[0.0f32; 3]).unwrap();
        let (a, b, c) = three(rng, other, &x, rng).unwrap();
        assert!(step.read(&a).unwrap().into_iter().eq(defined(0, 3).map(Random::bits)));
        assert!(step.read(&c).unwrap().into_iter().eq(defined(1, 3).map(Random::uniform)));
        let of_other = (0..3).map(|index| Random::at(RngState { seed: 5, counter: 0 }, index).bits());
        assert!(step.read(&b).unwrap().into_iter().eq(of_other));
        assert_eq!((rng.save(step).unwrap().counter, other.save(step).unwrap().counter), (2, 1));
    });
}

#[test]
fn a_kernel_without_a_tensor_takes_a_shape() {
    #[kernel]
    fn steps(r: Random, #[key] size: f32) -> (f32, bool) {
        let u = r.uniform();
        ((u * 4.0).floor() * size, u < 0.5)
    }
    with_rng(|step, rng| {
        let (values, low) = steps::<f32>(step.scope(), rng, 0.25, [2, 3]).unwrap();
        assert!(values.shape() == [2, 3]);
        let want = defined(0, 6).map(|r| (r.uniform() * 4.0).floor() * 0.25);
        assert!(step.read(&values).unwrap().into_iter().eq(want));
        assert!(step.read(&low).unwrap().into_iter().eq(defined(0, 6).map(|r| r.uniform() < 0.5)));
        // An empty one counts as any other.
        steps::<f32>(step.scope(), rng, 0.25, [0]).unwrap();
        assert_eq!(rng.save(step).unwrap().counter, 2);
    });
}

#[test]
fn strided_tensors_draw_by_their_place_in_the_result() {
    with_rng(|step, rng| {
        let p = step.tensor([2, 3], &[0.5f32; 6]).unwrap();
        let x = ops::bernoulli(rng, &ops::transpose(&p, 0, 1).unwrap()).unwrap();
        let want = defined(0, 6).map(|r| f32::from(u8::from(r.uniform() < 0.5)));
        assert!(step.read(&x).unwrap().into_iter().eq(want));
    });
}

#[test]
fn states_are_saved_and_restored() {
    with_two(|step, rng, other| {
        let draw = |rng: &Rng| {
            let x: Tensor<'_, f32> = ops::uniform(rng, step.scope(), [5], 0.0..1.0).unwrap();
            step.read(&x).unwrap()
        };
        let first = [draw(rng), draw(rng)];
        let state = rng.save(step).unwrap();
        assert_eq!(state, RngState { seed: SEED, counter: 2 });
        let next = draw(rng);
        other.restore(step, state).unwrap();
        assert_eq!(draw(other), next, "from another generator's state");
        rng.seed(step, SEED).unwrap();
        assert_eq!([draw(rng), draw(rng)], first);
        // Beyond 32 bits, and at the end.
        for counter in [u64::from(u32::MAX), u64::MAX] {
            rng.restore(step, RngState { seed: 1, counter }).unwrap();
            let got = draw(rng);
            let want = (0..5).map(|index| Random::at(RngState { seed: 1, counter }, index).uniform());
            assert!(got.into_iter().eq(want));
            assert_eq!(rng.save(step).unwrap(), RngState { seed: 1, counter: counter.wrapping_add(1) });
        }
    });
}

#[test]
fn forks_are_streams_of_their_own() {
    let mut rt = Runtime::new(device()).unwrap();
    let rng = Rng::new(&rt, SEED).unwrap();
    let step = rt.step().unwrap();
    let forks = [rng.fork(&step).unwrap(), rng.fork(&step).unwrap()];
    assert_eq!(rng.save(&step).unwrap(), RngState { seed: SEED, counter: 2 });
    for (counter, fork) in (0..).zip(&forks) {
        let number = Random::at(RngState { seed: SEED, counter }, 0);
        let seed = u64::from(number.more_bits()) << 32 | u64::from(number.bits());
        assert_eq!(fork.save(&step).unwrap(), RngState { seed, counter: 0 });
    }
    // What is drawn from one changes nothing in the other.
    let draw =
        |rng: &Rng| step.read(&ops::uniform::<f32>(rng, step.scope(), [3], 0.0..1.0).unwrap()).unwrap();
    let (one, other) = (draw(&forks[0]), draw(&forks[1]));
    assert_ne!(one, other);
    assert_eq!(rng.save(&step).unwrap().counter, 2);
}

/// Draws of a size at which distributions show.
const MANY: usize = 200_000;

/// The mean and the variance, and how many values are in each of `bins` parts of equal probability.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n)
}

/// Pearson's statistic of `counts` against equal probabilities, less its mean, by its standard deviation.
fn chi_square(counts: &[u32]) -> f64 {
    let total: u32 = counts.iter().sum();
    let expected = f64::from(total) / counts.len() as f64;
    let sum: f64 = counts.iter().map(|c| (f64::from(*c) - expected).powi(2) / expected).sum();
    let freedom = counts.len() as f64 - 1.0;
    (sum - freedom) / (2.0 * freedom).sqrt()
}

/// Values against their distribution function, in bins of equal probability. The seed is fixed: that it is four standard
/// deviations off would have been a chance of 1 in 10,000.
fn fits(values: &[f64], distribution: impl Fn(f64) -> f64) {
    let mut counts = [0; 100];
    for value in values {
        counts[((distribution(*value) * 100.0) as usize).min(99)] += 1;
    }
    let off = chi_square(&counts);
    assert!(off.abs() < 4.0, "{off}: {counts:?}");
}

fn near(got: f64, want: f64, deviation: f64) {
    assert!((got - want).abs() < 5.0 * deviation / (MANY as f64).sqrt(), "{got}, not {want}");
}

fn read(step: &Step<'_>, x: &Tensor<'_, f32>) -> Vec<f64> {
    step.read(x).unwrap().into_iter().map(f64::from).collect()
}

#[test]
fn uniform_numbers_are_uniform() {
    with_rng(|step, rng| {
        let values = read(step, &ops::uniform(rng, step.scope(), [MANY], 0.0..1.0).unwrap());
        let (mean, variance) = moments(&values);
        near(mean, 0.5, (1.0f64 / 12.0).sqrt());
        near(variance, 1.0 / 12.0, (1.0f64 / 180.0).sqrt());
        fits(&values, |v| v);
        // Neighbours, and the same element of successive calls, have nothing to do with each other.
        let next = read(step, &ops::uniform(rng, step.scope(), [MANY], 0.0..1.0).unwrap());
        for others in [&next[..], &values[1..]] {
            let mut counts = [0; 100];
            for (a, b) in values.iter().zip(others) {
                counts[(a * 10.0) as usize * 10 + (b * 10.0) as usize] += 1;
            }
            assert!(chi_square(&counts).abs() < 4.0, "{counts:?}");
        }
    });
}

/// The distribution function of the normal distribution, by Abramowitz and Stegun 7.1.26, to 1.5e-7.
fn normal_below(x: f64) -> f64 {
    let z = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let series = [0.254_829_592, -0.284_496_736, 1.421_413_741, -1.453_152_027, 1.061_405_429];
    let tail = series.iter().rev().fold(0.0, |sum, c| (sum + c) * t) * (-z * z).exp() / 2.0;
    if x < 0.0 { tail } else { 1.0 - tail }
}

#[test]
fn normal_numbers_are_normal() {
    with_rng(|step, rng| {
        let values = read(step, &ops::normal(rng, step.scope(), [MANY], 3.0, 0.5).unwrap());
        let scaled: Vec<f64> = values.iter().map(|v| (v - 3.0) / 0.5).collect();
        let (mean, variance) = moments(&scaled);
        near(mean, 0.0, 1.0);
        near(variance, 1.0, 2.0f64.sqrt());
        let fourth = scaled.iter().map(|v| v.powi(4)).sum::<f64>() / MANY as f64;
        near(fourth, 3.0, 96.0f64.sqrt());
        fits(&scaled, normal_below);
        let constant = read(step, &ops::normal(rng, step.scope(), [4], -1.5, 0.0).unwrap());
        assert_eq!(constant, [-1.5; 4]);
    });
}

#[test]
fn exponential_and_gumbel_numbers_are_distributed_so() {
    with_rng(|step, rng| {
        let values = read(step, &ops::exponential(rng, step.scope(), [MANY], 4.0).unwrap());
        assert!(values.iter().all(|v| *v > 0.0 && v.is_finite()));
        let (mean, variance) = moments(&values);
        near(mean, 0.25, 0.25);
        near(variance, 1.0 / 16.0, 8.0f64.sqrt() / 16.0);
        fits(&values, |v| 1.0 - (-4.0 * v).exp());

        let values = read(step, &ops::gumbel(rng, step.scope(), [MANY]).unwrap());
        let (mean, variance) = moments(&values);
        near(mean, 0.577_215_664_9, (std::f64::consts::PI.powi(2) / 6.0).sqrt());
        near(variance, std::f64::consts::PI.powi(2) / 6.0, 3.45);
        fits(&values, |v| (-(-v).exp()).exp());
    });
}

#[test]
fn bernoulli_and_dropout_keep_their_share() {
    with_rng(|step, rng| {
        let p = ops::full(step.scope(), [MANY], 0.3f32).unwrap();
        let values = read(step, &ops::bernoulli(rng, &p).unwrap());
        assert!(values.iter().all(|v| [0.0, 1.0].contains(v)));
        near(moments(&values).0, 0.3, 0.21f64.sqrt());

        let x = ops::arange_step::<f32>(step.scope(), MANY, 1.0, 1.0).unwrap();
        let values = read(step, &ops::dropout(rng, &x, 0.2).unwrap());
        let kept = values.iter().filter(|v| **v != 0.0).count();
        near(kept as f64 / MANY as f64, 0.8, 0.16f64.sqrt());
        let scale = f64::from((1.0f32 - 0.2).recip());
        let want = |i: usize| f64::from(((i + 1) as f64 * scale) as f32);
        assert!(values.iter().enumerate().all(|(i, v)| *v == 0.0 || *v == want(i)));

        // Ends, and what is not a probability.
        let edges = [0.0, 1.0, -1.0, 2.0, f32::NAN, 1e-30];
        let p = step.tensor([edges.len()], &edges).unwrap();
        let values = read(step, &ops::bernoulli(rng, &p).unwrap());
        assert_eq!(values, [0.0, 1.0, 0.0, 1.0, 0.0, 0.0]);
        let x = step.tensor([3], &[1.0f32, f32::NAN, f32::INFINITY]).unwrap();
        assert_eq!(read(step, &ops::dropout(rng, &x, 1.0).unwrap()), [0.0; 3]);
        let same = step.read(&ops::dropout(rng, &x, 0.0).unwrap()).unwrap();
        assert!(same[0] == 1.0 && same[1].is_nan() && same[2] == f32::INFINITY);
        assert_eq!(rng.save(step).unwrap().counter, 5);
    });
}

fn whole_numbers<T: Integer>(range: std::ops::Range<T>, count: usize) {
    with_rng(|step, rng| {
        let low = range.start.to_f64();
        let x = ops::randint(rng, step.scope(), [MANY], range.clone()).unwrap();
        let mut counts = vec![0; count];
        for value in step.read(&x).unwrap() {
            counts[(value.to_f64() - low) as usize] += 1;
        }
        assert!(count == 1 || chi_square(&counts).abs() < 4.0, "{counts:?}");
    });
}

#[test]
fn randint_is_uniform() {
    whole_numbers(-3..4i32, 7);
    whole_numbers(5..6i32, 1);
    whole_numbers(1000..1100u32, 100);
    whole_numbers(0..255u8, 255);
    with_rng(|step, rng| {
        let all = ops::randint(rng, step.scope(), [1000], i32::MIN..i32::MAX).unwrap();
        let want = defined(0, 1000).map(|r| i32::MIN.wrapping_add(r.below(u32::MAX) as i32));
        assert!(step.read(&all).unwrap().into_iter().eq(want));
    });
}

#[test]
fn randperm_is_a_permutation_and_fair() {
    with_rng(|step, rng| {
        for n in [0, 1, 2, 1000] {
            let mut order = step.read(&ops::randperm(rng, step.scope(), n).unwrap()).unwrap();
            order.sort_unstable();
            assert!(order.into_iter().eq(0..n as u32));
        }
        assert_eq!(rng.save(step).unwrap().counter, 4);
        let mut counts = [0; 24];
        for _ in 0..2400 {
            let order = step.read(&ops::randperm(rng, step.scope(), 4).unwrap()).unwrap();
            let number = order.iter().enumerate().fold(0, |number, (i, v)| {
                number * (4 - i) + order[i + 1..].iter().filter(|other| *other < v).count()
            });
            counts[number] += 1;
        }
        assert!(chi_square(&counts).abs() < 4.0, "{counts:?}");
    });
}

#[test]
fn wrong_arguments_are_refused() {
    with_rng(|step, rng| {
        let scope = step.scope();
        for range in [1.0..1.0, 1.0..0.0, f32::NAN..1.0, 0.0..f32::INFINITY, f32::MIN..f32::MAX] {
            assert!(is_argument(ops::uniform::<f32>(rng, scope, [2], range)));
        }
        for (mean, std) in [(f32::NAN, 1.0), (0.0, -1.0), (0.0, f32::INFINITY)] {
            assert!(is_argument(ops::normal::<f32>(rng, scope, [2], mean, std)));
        }
        for rate in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e-40, 1.3e-37, 1e38, 2.4e18] {
            assert!(is_argument(ops::exponential::<f32>(rng, scope, [2], rate)));
        }
        assert!(is_argument(ops::randint(rng, scope, [2], 3..3i32)));
        let x = step.tensor([2], &[1.0f32; 2]).unwrap();
        for p in [-0.1, 1.1, f32::NAN] {
            assert!(is_argument(ops::dropout(rng, &x, p)));
        }
        let words = step.tensor([3], &[0u32; 3]).unwrap();
        assert!(matches!(ops::set_rng_state(rng, &words), Err(Error::Shape { .. })));
        assert_eq!(rng.save(step).unwrap().counter, 0, "refused calls draw nothing");
    });
    let other = Runtime::new(device()).unwrap();
    let foreign = Rng::new(&other, 1).unwrap();
    with_rng(|step, _| {
        let drawn = ops::uniform::<f32>(&foreign, step.scope(), [2], 0.0..1.0);
        assert!(matches!(drawn, Err(Error::DifferentRuntimes { op: "uniform" })));
        assert!(matches!(foreign.save(step), Err(Error::DifferentRuntimes { .. })));
        assert!(matches!(foreign.fork(step), Err(Error::DifferentRuntimes { .. })));
    });
}

//! Sampling against plain functions of lists, in f64; the frequencies of what is chosen; and what bad values mean.

use graphable::{
    Error, Mode, Result, Runtime, Schedule, State, Step, Tensor, graphable, ops, ops::SampleConfig,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::harness::{cases, device, in_step};

const NONE: f32 = f32::NEG_INFINITY;

/// The parameters of a row.
#[derive(Clone, Debug)]
struct Row {
    repetition: f32,
    presence: f32,
    temperature: f32,
    top_k: u32,
    top_p: f32,
    min_p: f32,
}

impl Row {
    const PLAIN: Self =
        Self { repetition: 1.0, presence: 0.0, temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0 };

    fn random(rng: &mut StdRng, size: usize) -> Self {
        let mut one_of = |off: f32, values: [f32; 3]| {
            if rng.random_bool(0.4) { off } else { values[rng.random_range(0..3)] }
        };
        let (repetition, presence) = (one_of(1.0, [1.3, 0.6, 2.0]), one_of(0.0, [0.7, -0.4, 2.5]));
        let temperature = one_of(1.0, [0.0, 0.35, 1.9]);
        // No total of these probabilities is as close to these as rounding.
        let (top_p, min_p) = (one_of(1.0, [0.900_73, 0.400_31, 0.0]), one_of(0.0, [0.050_17, 0.3007, 1.0]));
        let top_k = if rng.random_bool(0.4) { 0 } else { rng.random_range(1..size as u32 + 3) };
        Self { repetition, presence, temperature, top_k, top_p, min_p }
    }
}

/// Probabilities, of which none are those of `-inf` and NaN.
fn probabilities(logits: &[f64]) -> Vec<f64> {
    let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logits
        .iter()
        .map(|&l| if l == max { 1.0 } else { (l - max).exp() })
        .map(|w| if w.is_nan() { 0.0 } else { w })
        .collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| w / total).collect()
}

/// `logits` where a condition holds, which may depend on probabilities.
fn kept(logits: &[f64], keeps: impl Fn(f64, f64) -> bool) -> Vec<f64> {
    let of = probabilities(logits);
    let keeps = |(&l, p)| if l > f64::NEG_INFINITY && keeps(l, p) { l } else { f64::NEG_INFINITY };
    logits.iter().zip(of).map(keeps).collect()
}

fn penalized(logits: &[f64], seen: &[bool], row: &Row) -> Vec<f64> {
    let (repetition, presence) = (f64::from(row.repetition), f64::from(row.presence));
    let penalty = |l: f64| if l > 0.0 { l / repetition } else { l * repetition };
    logits.iter().zip(seen).map(|(&l, &seen)| if seen { penalty(l) - presence } else { l }).collect()
}

fn tempered(logits: &[f64], temperature: f32) -> Vec<f64> {
    let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if temperature > 0.0 {
        let divided = |&l: &f64| if l == max { 0.0 } else { (l - max) / f64::from(temperature) };
        return logits.iter().map(divided).collect();
    }
    let best = logits.iter().position(|&l| l == max);
    (0..logits.len()).map(|i| if Some(i) == best { 0.0 } else { f64::NEG_INFINITY }).collect()
}

fn of_top_k(logits: &[f64], k: u32) -> Vec<f64> {
    let mut sorted: Vec<f64> = logits.iter().copied().filter(|l| !l.is_nan()).collect();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let least = match k {
        0 => f64::NEG_INFINITY,
        k => sorted.get(k as usize - 1).copied().unwrap_or(f64::NEG_INFINITY),
    };
    kept(logits, |l, _| l >= least)
}

fn of_top_p(logits: &[f64], p: f32) -> Vec<f64> {
    let all = probabilities(logits);
    let max = all.iter().copied().fold(0.0, f64::max);
    let mut sorted = all.clone();
    sorted.sort_by(|a, b| b.total_cmp(a));
    // The smallest that is kept: together with those that are more likely, it has enough.
    let mut sum = 0.0;
    let least = sorted.into_iter().find(|of| {
        sum += of;
        sum >= f64::from(p)
    });
    // Equal up to what `exp` rounds.
    let least = least.unwrap_or(0.0) * (1.0 - 1e-6);
    kept(logits, |_, of| p >= 1.0 || of == max || of >= least)
}

fn of_min_p(logits: &[f64], p: f32) -> Vec<f64> {
    let max = probabilities(logits).into_iter().fold(0.0, f64::max);
    kept(logits, |_, of| of == max || of >= f64::from(p) * max)
}

fn filtered(logits: &[f64], seen: &[bool], row: &Row) -> Vec<f64> {
    let x = tempered(&penalized(logits, seen, row), row.temperature);
    of_min_p(&of_top_p(&of_top_k(&x, row.top_k), row.top_p), row.min_p)
}

/// Checks that a token is the one of a part of the total, as far as rounding leaves it open.
fn assert_chosen(token: u32, logits: &[f64], uniform: f32, what: &dyn std::fmt::Debug) {
    let all = probabilities(logits);
    let before: f64 = all[..token as usize].iter().sum();
    let of = all[token as usize];
    let u = f64::from(uniform);
    assert!(
        of > 0.0 && before - 1e-5 <= u && u <= before + of + 1e-5,
        "{token} by {u}: {before} {of} {what:?}"
    );
}

/// Logits of which many are equal, and a few are no numbers.
fn logits(rng: &mut StdRng, n: usize) -> Vec<f32> {
    let mut all: Vec<f32> = (0..n).map(|_| f32::from(rng.random_range(-12i8..12)) * 0.37).collect();
    if n > 3 && rng.random_bool(0.3) {
        all[rng.random_range(0..n - 1)] = f32::NAN;
        all[rng.random_range(0..n - 1)] = NONE;
    }
    all[n - 1] = 0.1;
    all
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&v| f64::from(v)).collect()
}

/// A tensor of a parameter of each row.
fn column<'s, T: graphable::Element>(step: &Step<'s>, rows: &[Row], of: impl Fn(&Row) -> T) -> Tensor<'s, T> {
    step.tensor(&[rows.len()], &rows.iter().map(of).collect::<Vec<T>>()).unwrap()
}

#[test]
fn rows_that_mix_parameters_are_those_of_plain_functions() {
    cases(30, |step, rng| {
        let (count, size) = (rng.random_range(1..6), [1, 2, 9, 40, 300, 2000][rng.random_range(0..6)]);
        let rows: Vec<Row> = (0..count).map(|_| Row::random(rng, size)).collect();
        let values: Vec<Vec<f32>> = (0..count).map(|_| logits(rng, size)).collect();
        let marks: Vec<bool> = (0..size).map(|_| rng.random_bool(0.3)).collect();
        let numbers: Vec<f32> = (0..count).map(|_| rng.random()).collect();

        let x = step.tensor(&[count, size], &values.concat()).unwrap();
        let seen = step.tensor(&[size], &marks).unwrap();
        let uniforms = step.tensor(&[count], &numbers).unwrap();
        let (repetition, presence) =
            (column(step, &rows, |r| r.repetition), column(step, &rows, |r| r.presence));
        let (temperature, top_k) = (column(step, &rows, |r| r.temperature), column(step, &rows, |r| r.top_k));
        let (top_p, min_p) = (column(step, &rows, |r| r.top_p), column(step, &rows, |r| r.min_p));
        let config = SampleConfig::new()
            .repetition_penalty(&seen, &repetition)
            .presence_penalty(&seen, &presence)
            .temperature(&temperature)
            .top_k(&top_k)
            .top_p(&top_p)
            .min_p(&min_p);
        let tokens = step.read(&ops::sample_with(&x, config, &uniforms).unwrap()).unwrap();
        for (i, row) in rows.iter().enumerate() {
            let want = filtered(&wide(&values[i]), &marks, row);
            assert_chosen(tokens[i], &want, numbers[i], row);

            // Alone, with numbers.
            let x = step.tensor(&[size], &values[i]).unwrap();
            let config = SampleConfig::new()
                .repetition_penalty(&seen, row.repetition)
                .presence_penalty(&seen, row.presence)
                .temperature(row.temperature)
                .top_k(row.top_k)
                .top_p(row.top_p)
                .min_p(row.min_p);
            let uniform = step.tensor(&[], &[numbers[i]]).unwrap();
            let token = ops::sample_with(&x, config, &uniform).unwrap();
            assert_eq!(step.read(&token).unwrap(), [tokens[i]], "{row:?}");
        }
    });
}

/// Checks a result, whose `-inf` are exact.
fn assert_near(step: &Step<'_>, got: Result<Tensor<'_, f32>>, want: &[f64], what: &dyn std::fmt::Debug) {
    for (i, (got, want)) in step.read(&got.unwrap()).unwrap().into_iter().zip(want).enumerate() {
        let got = f64::from(got);
        let is_near = got == *want || (got - want).abs() <= 1e-5 * (1.0 + want.abs());
        assert!(is_near, "{i}: {got} instead of {want}, {what:?}");
    }
}

#[test]
fn each_part_is_that_of_a_plain_function() {
    cases(40, |step, rng| {
        let size = [1, 2, 9, 40, 300, 9000][rng.random_range(0..6)];
        let row = Row::random(rng, size);
        let values = logits(rng, size);
        let host = wide(&values);
        let marks: Vec<bool> = (0..size).map(|_| rng.random_bool(0.3)).collect();
        let (x, seen) = (step.tensor(&[size], &values).unwrap(), step.tensor(&[size], &marks).unwrap());
        let of_nan = |y: Vec<f64>| y.into_iter().map(|l| if l.is_nan() { f64::NEG_INFINITY } else { l });
        let want: Vec<f64> = of_nan(tempered(&host, row.temperature)).collect();
        assert_near(step, ops::apply_temperature(&x, row.temperature), &want, &row);
        assert_near(step, ops::apply_top_k(&x, row.top_k), &of_top_k(&host, row.top_k), &row);
        assert_near(step, ops::apply_top_p(&x, row.top_p), &of_top_p(&host, row.top_p), &row);
        assert_near(step, ops::apply_min_p(&x, row.min_p), &of_min_p(&host, row.min_p), &row);
        // NaN stays what it is, until something is chosen.
        let both = ops::apply_repetition_penalty(&x, &seen, row.repetition)
            .and_then(|x| ops::apply_presence_penalty(&x, &seen, row.presence))
            .and_then(|x| ops::apply_min_p(&x, 0.0));
        let want: Vec<f64> = of_nan(penalized(&host, &marks, &row)).collect();
        assert_near(step, both, &want, &row);
    });
}

/// A vocabulary as language models have: rows of several pieces.
#[test]
fn a_large_vocabulary_is_no_exception() {
    in_step(|step| {
        let mut rng = StdRng::seed_from_u64(3);
        let size = 50_257;
        let values: Vec<f32> = (0..size).map(|_| rng.random_range(-9.0..4.0)).collect();
        let x = step.tensor(&[size], &values).unwrap();
        let row = Row { top_k: 5000, top_p: 0.7, temperature: 0.9, ..Row::PLAIN };
        let want = filtered(&wide(&values), &vec![false; size], &row);
        let uniforms: Vec<f32> = vec![0.0, 0.2, 0.77, 0.999_999_94];
        let config = SampleConfig::new().temperature(0.9).top_k(5000).top_p(0.7);
        let tokens = ops::sample_with(&x, config, &step.tensor(&[4], &uniforms).unwrap()).unwrap();
        for (token, uniform) in step.read(&tokens).unwrap().into_iter().zip(uniforms) {
            assert_chosen(token, &want, uniform, &row);
        }
    });
}

/// Tokens that were once chosen on the CPU, for the same logits and numbers on whatever device this runs. `BLESS=1` writes
/// them again.
#[test]
fn tokens_are_those_of_every_device() {
    const SIZE: u32 = 150_000;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/ops/fixtures/sampling.txt");
    // Exact multiples of 2^-17 between -4 and 4.
    let values: Vec<f32> =
        (0..SIZE).map(|i| (i.wrapping_mul(2_654_435_761) >> 12) as f32 / 131_072.0 - 4.0).collect();
    let numbers = [0.0, f32::EPSILON / 4.0, 0.123_456_7, 0.5, 0.999_999_8, 0.999_999_94];
    in_step(|step| {
        let x = step.tensor(&[SIZE as usize], &values).unwrap();
        let uniforms = step.tensor(&[numbers.len()], &numbers).unwrap();
        let warm = || SampleConfig::new().temperature(0.7);
        let all = warm().top_k(9000).top_p(0.6).min_p(0.2);
        let lines = [SampleConfig::new(), warm().top_k(1000), warm().top_p(0.9), all].map(|config| {
            let tokens = ops::sample_with(&x, config, &uniforms).unwrap();
            format!("{:?}\n", step.read(&tokens).unwrap())
        });
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, lines.concat()).unwrap();
        }
        // Compiled in: a machine with a GPU may have the program alone.
        assert_eq!(lines.concat(), include_str!("fixtures/sampling.txt"));
    });
}

fn with_generator(seed: u64, f: impl for<'s> FnOnce(&Step<'s>, &graphable::Rng)) {
    let mut rt = Runtime::new(device()).unwrap();
    let rng = graphable::Rng::new(&rt, seed).unwrap();
    f(&rt.step().unwrap(), &rng);
}

const COUNT: usize = 100_000;

/// What a hundred thousand numbers choose, of the host's or from a generator on the device, against the exact probabilities.
fn assert_frequencies(name: &str, row: &Row) {
    let values: Vec<f32> = vec![1.5, -0.5, 2.0, 0.25, NONE, 1.0, -2.0, f32::NAN, 0.0, 2.0, -1.0, 0.75];
    let marks: Vec<bool> = (0..values.len()).map(|i| i % 3 == 0).collect();
    let want = probabilities(&filtered(&wide(&values), &marks, row));
    with_generator(11, |step, generator| {
        let mut rng = StdRng::seed_from_u64(11);
        let numbers: Vec<f32> = (0..COUNT).map(|_| rng.random()).collect();
        let (x, uniforms) = (step.tensor(&[1, values.len()], &values), step.tensor(&[COUNT], &numbers));
        let all = step.tensor(&[COUNT, values.len()], &values.repeat(COUNT)).unwrap();
        let seen = step.tensor(&[values.len()], &marks).unwrap();
        let config = SampleConfig::new()
            .repetition_penalty(&seen, row.repetition)
            .presence_penalty(&seen, row.presence)
            .temperature(row.temperature)
            .top_k(row.top_k)
            .top_p(row.top_p)
            .min_p(row.min_p);
        let tokens = ops::sample_with(&x.unwrap(), config, &uniforms.unwrap()).unwrap();
        assert_fits(name, &step.read(&tokens).unwrap(), &want);
        let tokens = ops::sample(generator, &all, config).unwrap();
        assert_fits(&format!("{name}, drawn on the device"), &step.read(&tokens).unwrap(), &want);
    });
}

/// Pearson's statistic of tokens against their probabilities.
fn assert_fits(name: &str, tokens: &[u32], want: &[f64]) {
    let mut counts = vec![0usize; want.len()];
    tokens.iter().for_each(|&token| counts[token as usize] += 1);
    let (mut square, mut freedom) = (0.0, -1.0);
    for (&count, &of) in counts.iter().zip(want) {
        let expected = of * COUNT as f64;
        if of == 0.0 {
            assert_eq!(count, 0, "{name}: {counts:?}");
        } else {
            square += (count as f64 - expected).powi(2) / expected;
            freedom += 1.0;
        }
    }
    // One in ten thousand exceeds it, for up to 11 degrees of freedom.
    let bound = freedom + 5.0 * f64::sqrt(2.0 * freedom) + 6.0;
    assert!(square <= bound, "{name}: {square} above {bound}, {counts:?}");
}

#[test]
fn tokens_are_chosen_as_often_as_they_should_be() {
    assert_frequencies("plain", &Row::PLAIN);
    assert_frequencies("temperature", &Row { temperature: 0.6, ..Row::PLAIN });
    assert_frequencies("top_k", &Row { top_k: 5, ..Row::PLAIN });
    assert_frequencies("top_p", &Row { top_p: 0.8, ..Row::PLAIN });
    assert_frequencies("min_p", &Row { min_p: 0.2, ..Row::PLAIN });
    assert_frequencies("repetition_penalty", &Row { repetition: 1.5, ..Row::PLAIN });
    assert_frequencies("presence_penalty", &Row { presence: 0.8, ..Row::PLAIN });
    let all = Row { repetition: 1.2, presence: 0.3, temperature: 1.4, top_k: 8, top_p: 0.95, min_p: 0.05 };
    assert_frequencies("all", &all);
}

#[test]
fn values_on_the_device_have_a_meaning_whatever_they_are() {
    in_step(|step| {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let x = step.tensor(&[3], &[1.0f32, 3.0, 2.0]).unwrap();
        let seen = step.tensor(&[3], &[true; 3]).unwrap();
        let read = |y: Result<Tensor<'_, f32>>| step.read(&y.unwrap()).unwrap();
        let of = |values: &[f32]| step.tensor(&[values.len()], values).unwrap();
        let (best, all) = ([NONE, 3.0, NONE], [1.0, 3.0, 2.0]);

        let y = read(ops::apply_temperature(&x, &of(&[0.0, -0.0, -1.0, nan, -inf])));
        assert_eq!(y, [NONE, 0.0, NONE].repeat(5));
        assert_eq!(read(ops::apply_temperature(&x, &of(&[inf]))), [0.0; 3]);
        let y = read(ops::apply_temperature(&x, &of(&[f32::MIN_POSITIVE, f32::from_bits(1), f32::MAX])));
        assert!(y[0] < -1e38 && y[2] < -8e37 && y[1] == 0.0, "{y:?}");
        assert_eq!(y[3..6], [NONE, 0.0, NONE]);
        assert!(y[6..].iter().all(|v| v.abs() < 1e-30), "{y:?}");

        let y = read(ops::apply_top_k(&x, &step.tensor(&[4], &[0u32, 3, 4, u32::MAX]).unwrap()));
        assert_eq!(y, all.repeat(4));
        assert_eq!(read(ops::apply_top_p(&x, &of(&[0.0, -1.0, -inf]))), best.repeat(3));
        assert_eq!(read(ops::apply_top_p(&x, &of(&[1.0, 2.0, inf, nan]))), all.repeat(4));
        assert_eq!(read(ops::apply_min_p(&x, &of(&[1.0, 7.0, inf]))), best.repeat(3));
        assert_eq!(read(ops::apply_min_p(&x, &of(&[0.0, -1.0, -inf, nan]))), all.repeat(4));
        let y = ops::apply_repetition_penalty(&x, &seen, &of(&[0.0, -1.0, nan, inf]));
        assert_eq!(read(y), all.repeat(4));
        assert_eq!(read(ops::apply_presence_penalty(&x, &seen, &of(&[nan, inf, -inf]))), all.repeat(3));
    });
}

#[test]
fn logits_that_are_no_numbers_are_not_chosen() {
    in_step(|step| {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let rows = [[nan, 1.0, NONE], [nan, NONE, NONE], [1.0, inf, 2.0], [inf, nan, inf], [NONE, 0.0, -0.0]];
        let x = step.tensor(&[5, 3], &rows.concat()).unwrap();
        let choose = |u: f32, config| {
            let uniforms = step.tensor(&[1], &[u]).unwrap();
            step.read(&ops::sample_with(&x, config, &uniforms).unwrap()).unwrap()
        };
        let config = SampleConfig::new;
        let none = ops::NO_TOKEN;
        for config in [config(), config().top_k(2), config().top_p(0.999), config().min_p(0.5)] {
            assert_eq!(choose(0.0, config), [1, none, 1, 0, 1], "{config:?}");
            assert_eq!(choose(0.9, config), [1, none, 1, 2, 2], "{config:?}");
        }
        let zero = step.tensor(&[5], &[0.0f32; 5]).unwrap();
        for config in [config().temperature(0.0), config().temperature(&zero)] {
            assert_eq!(choose(0.9, config), [1, none, 1, 0, 1], "{config:?}");
        }
        for u in [nan, -1.0, 0.0, NONE] {
            assert_eq!(choose(u, config())[4], 1);
        }
        for u in [1.0, 7.0, inf, 0.999_999_94] {
            assert_eq!(choose(u, config())[4], 2);
        }
        // No tokens at all.
        let empty = step.tensor(&[2, 0], &[0.0f32; 0]).unwrap();
        let uniforms = step.tensor(&[2], &[0.5f32; 2]).unwrap();
        for config in [config(), config().temperature(0.0), config().temperature(0.5).top_k(2).top_p(0.5)] {
            let tokens = ops::sample_with(&empty, config, &uniforms).unwrap();
            assert_eq!(step.read(&tokens).unwrap(), [none; 2]);
        }
        let rows = step.tensor(&[0, 3], &[0.0f32; 0]).unwrap();
        let uniforms = step.tensor(&[0], &[0.0f32; 0]).unwrap();
        assert!(step.read(&ops::choose_token(&rows, &uniforms).unwrap()).unwrap().is_empty());
    });
}

#[test]
fn only_what_is_random_draws() {
    let mut rt = Runtime::new(device()).unwrap();
    let rng = graphable::Rng::new(&rt, 3).unwrap();
    let step = rt.step().unwrap();
    let x = step.tensor(&[2, 3], &[0.0f32; 6]).unwrap();
    let counter = |config| {
        let tokens = ops::sample(&rng, &x, config).and_then(|tokens| step.read(&tokens));
        (tokens.is_ok(), rng.save(&step).unwrap().counter)
    };
    assert_eq!(counter(SampleConfig::new().temperature(0.0)), (true, 0));
    assert_eq!(counter(SampleConfig::new().top_p(2.0)), (false, 0));
    assert_eq!(counter(SampleConfig::new()), (true, 1));
    let others = graphable::Rng::new(&Runtime::new(device()).unwrap(), 3).unwrap();
    let refused = ops::sample(&others, &x, SampleConfig::new().temperature(0.0)).err();
    assert!(matches!(refused, Some(Error::DifferentRuntimes { op: "sample" })), "{refused:?}");
    let scalar = step.tensor(&[], &[1.0f32]).unwrap();
    assert!(matches!(ops::sample(&rng, &scalar, SampleConfig::new()), Err(Error::Shape { .. })));
    assert_eq!(counter(SampleConfig::new().top_k(2)), (true, 2));
    // The same numbers as by hand.
    rng.seed(&step, 3).unwrap();
    let tokens = ops::sample(&rng, &x, SampleConfig::new()).unwrap();
    rng.seed(&step, 3).unwrap();
    let uniforms = ops::uniform::<f32>(&rng, step.scope(), [2], 0.0..1.0).unwrap();
    let want = ops::choose_token(&x, &uniforms).unwrap();
    assert_eq!(step.read(&tokens).unwrap(), step.read(&want).unwrap());
}

#[test]
fn log_probabilities_are_those_of_plain_functions() {
    cases(20, |step, rng| {
        let size = [1, 2, 9, 300][rng.random_range(0..4)];
        let values = logits(rng, size);
        let x = step.tensor(&[1, size], &values).unwrap();
        let want: Vec<f64> = probabilities(&wide(&values)).into_iter().map(f64::ln).collect();
        let tokens: Vec<u32> = (0..size as u32).collect();
        let chosen = ops::token_log_probs(&x, &step.tensor(&[size], &tokens).unwrap());
        assert_near(step, chosen, &want, &values);
        let none = ops::token_log_probs(&x, &step.tensor(&[1], &[ops::NO_TOKEN]).unwrap()).unwrap();
        assert_eq!(step.read(&none).unwrap(), [NONE]);

        let n = rng.random_range(1..=size);
        let mut order: Vec<usize> = (0..size).collect();
        order.sort_by(|&a, &b| want[b].total_cmp(&want[a]));
        let (best, ids) = ops::top_log_probs(&x, n).unwrap();
        let ids: Vec<usize> = step.read(&ids).unwrap().into_iter().map(|id| id as usize).collect();
        assert_eq!(ids, order[..n]);
        assert_near(step, Ok(best), &order[..n].iter().map(|&i| want[i]).collect::<Vec<_>>(), &values);
    });
}

#[test]
fn tokens_are_marked() {
    let mut rt = Runtime::new(device()).unwrap();
    let (rows, all) = (State::<bool>::zeros(&rt, &[3, 4]).unwrap(), State::<bool>::zeros(&rt, &[4]).unwrap());
    let step = rt.step().unwrap();
    let tokens = step.tensor(&[3], &[3u32, ops::NO_TOKEN, 4]).unwrap();
    ops::mark_tokens(&rows, &tokens).unwrap();
    ops::mark_tokens(&rows, &step.tensor(&[2], &[0u32, 1]).unwrap()).unwrap();
    ops::mark_tokens(&all, &tokens).unwrap();
    ops::mark_tokens(&all, &step.tensor(&[5], &[1u32, 1, 9, 1, 0]).unwrap()).unwrap();
    let read = |state: &State<bool>| {
        let marks = step.read(&ops::load(step.scope(), state).unwrap()).unwrap();
        marks.iter().enumerate().filter(|(_, mark)| **mark).map(|(i, _)| i).collect::<Vec<_>>()
    };
    assert_eq!(read(&rows), [0, 3, 5]);
    assert_eq!(read(&all), [0, 1, 3]);
    for shape in [&[4][..], &[1, 1], &[]] {
        let tokens = ops::full(step.scope(), shape, 0u32).unwrap();
        let refused = ops::mark_tokens(&rows, &tokens);
        assert!(matches!(refused, Err(Error::Shape { op: "mark_tokens", .. })), "{refused:?}");
    }
}

#[test]
fn misuse_is_refused() {
    in_step(|step| {
        let x = step.tensor(&[2, 3], &[0.0f32; 6]).unwrap();
        let seen = step.tensor(&[3], &[true; 3]).unwrap();
        let uniforms = step.tensor(&[2], &[0.5f32; 2]).unwrap();
        let is_argument = |refused: Option<Error>, op: &str, words: &str| match refused {
            Some(Error::Argument { op: of, reason }) => {
                assert!(of == op && reason.contains(words), "{of}: {reason}");
            }
            other => panic!("{op}, {words}: {other:?}"),
        };
        let bad = [-1.0, f32::NAN, f32::INFINITY];
        for value in bad {
            let new = SampleConfig::new;
            let refused = |config| ops::sample_with(&x, config, &uniforms).err();
            is_argument(refused(new().temperature(value)), "sample_with", "temperature is");
            is_argument(refused(new().top_p(value)), "sample_with", "top_p is");
            is_argument(refused(new().min_p(value)), "sample_with", "from 0 to 1");
            is_argument(
                refused(new().repetition_penalty(&seen, value)),
                "sample_with",
                "repetition_penalty is",
            );
            is_argument(ops::apply_temperature(&x, value).err(), "apply_temperature", "finite number from 0");
            is_argument(ops::apply_top_p(&x, value).err(), "apply_top_p", "top_p is");
            is_argument(ops::apply_min_p(&x, value).err(), "apply_min_p", "min_p is");
            let refused = ops::apply_repetition_penalty(&x, &seen, value).err();
            is_argument(refused, "apply_repetition_penalty", "above 0");
        }
        for value in [f32::NAN, f32::INFINITY] {
            let config = SampleConfig::new().presence_penalty(&seen, value);
            is_argument(ops::sample_with(&x, config, &uniforms).err(), "sample_with", "presence_penalty is");
            let refused = ops::apply_presence_penalty(&x, &seen, value).err();
            is_argument(refused, "apply_presence_penalty", "a finite number");
        }
        let refused = SampleConfig::new().repetition_penalty(&seen, 0.0);
        is_argument(ops::sample_with(&x, refused, &uniforms).err(), "sample_with", "above 0");

        let is_shape =
            |refused: Option<Error>| assert!(matches!(refused, Some(Error::Shape { .. })), "{refused:?}");
        // As PyTorch's programs write it: it would be four rows.
        let column = step.tensor(&[2, 1], &[0.5f32; 2]).unwrap();
        is_shape(ops::apply_temperature(&x, &column).err());
        is_shape(ops::apply_top_k(&x, &step.tensor(&[2, 1], &[1u32; 2]).unwrap()).err());
        is_shape(ops::apply_presence_penalty(&x, &seen, &column).err());
        is_shape(ops::choose_token(&x, &column).err());
        is_shape(ops::token_log_probs(&x, &step.tensor(&[2, 1], &[0u32; 2]).unwrap()).err());
        let three = step.tensor(&[3], &[0.5f32; 3]).unwrap();
        is_shape(ops::choose_token(&x, &three).err());
        is_shape(ops::apply_temperature(&x, &three).err());
        is_shape(ops::apply_repetition_penalty(&x, &step.tensor(&[2], &[true; 2]).unwrap(), 2.0).err());
        let scalar = step.tensor(&[], &[1.0f32]).unwrap();
        is_shape(ops::choose_token(&scalar, &uniforms).err());
        is_shape(ops::sample_with(&scalar, SampleConfig::new(), &uniforms).err());
        is_shape(ops::top_log_probs(&scalar, 1).err());
        is_shape(ops::token_log_probs(&x, &step.tensor(&[3], &[0u32; 3]).unwrap()).err());
        is_argument(ops::top_log_probs(&x, 4).err(), "top_log_probs", "n is 4, and there are 3 tokens");
        let beyond = ops::token_log_probs(&x, &step.tensor(&[2], &[0u32, 3]).unwrap()).unwrap();
        let refused = step.read(&beyond).err();
        assert!(matches!(refused, Some(Error::IndexOutOfRange { index: 3, .. })), "{refused:?}");
    });
}

/// A step of a batch: each row has parameters of its own, and what it chose is penalized from then on.
#[graphable]
fn batch(
    #[host]
    #[dims(B, 6)]
    logits: &Tensor<f32>,
    #[host]
    #[dims(B)]
    temperature: &Tensor<f32>,
    #[host]
    #[dims(B)]
    top_k: &Tensor<u32>,
    #[host]
    #[dims(B)]
    uniforms: &Tensor<f32>,
    seen: &State<bool>,
    rng: &graphable::Rng,
) -> Result<([Tensor<u32>; 3], Tensor<f32>)> {
    let rows = ops::cache_view(seen).narrow(0, 0, logits.dim(0))?;
    let config = SampleConfig::new().repetition_penalty(&rows, 3.0).temperature(temperature).top_k(top_k);
    let tokens = ops::sample_with(logits, config.top_p(0.95), uniforms)?;
    ops::mark_tokens(seen, &tokens)?;
    let drawn = ops::sample(rng, logits, config)?;
    let chosen = ops::token_log_probs(logits, &tokens)?;
    let (_, best) = #[eager(support = Always)]
    ops::top_log_probs(logits, 2)?;
    Ok(([tokens, drawn, best], chosen))
}

/// Tokens by numbers of the host and by those of the device, the bits of log-probabilities, and the best tokens.
type Sampled = [Vec<u32>; 4];

/// The steps of a batch whose size changes.
fn batches(mode: Mode, buckets: bool) -> Result<Vec<Sampled>> {
    let mut rt = Runtime::new(device())?;
    let seen = State::zeros(&rt, &[4, 6])?;
    let mut builder = BatchGraph::builder().mode(mode);
    if buckets {
        builder = builder.bucket("B", Schedule::new([2, 4]));
    }
    let graph = builder.build(&mut rt)?;
    let stream = graphable::Rng::new(&rt, 7)?;
    let mut rng = StdRng::seed_from_u64(5);
    let mut all = Vec::new();
    for round in 0..12 {
        let n = [3, 4, 1, 2][round % 4];
        let logits: Vec<f32> = (0..n * 6).map(|_| rng.random_range(-2.0..2.0)).collect();
        let uniforms: Vec<f32> = (0..n).map(|_| rng.random()).collect();
        let temperatures: Vec<f32> = (0..n).map(|i| [0.0, 1.0, 0.5, 3.0][(i + round) % 4]).collect();
        let top_k: Vec<u32> = (0..n).map(|i| [0, 3, 5, 1][(i * round) % 4]).collect();
        let step = rt.step()?;
        let ([tokens, drawn, best], chosen) =
            graph.call(&step, &logits[..], &temperatures[..], &top_k[..], &uniforms[..], &seen, &stream)?;
        let bits = step.read(&chosen)?.into_iter().map(f32::to_bits).collect();
        all.push([step.read(&tokens)?, step.read(&drawn)?, bits, step.read(&best)?]);
    }
    let step = rt.step()?;
    let marks = step.read(&ops::load(step.scope(), &seen)?)?;
    let counter = stream.save(&step)?.counter;
    all.push([marks.into_iter().map(u32::from).collect(), vec![counter as u32], Vec::new(), Vec::new()]);
    Ok(all)
}

#[test]
fn every_mode_and_bucket_chooses_the_same_tokens() -> Result<()> {
    let want = batches(Mode::None, false)?;
    assert!(want.iter().any(|[tokens, ..]| tokens.len() == 4));
    for mode in Mode::ALL {
        for buckets in [false, true] {
            assert_eq!(batches(mode, buckets)?, want, "{mode}, buckets: {buckets}");
        }
    }
    Ok(())
}

//! Scaled frequencies and sections, against the formulas of `transformers` (`modeling_rope_utils.py`), written again in f64.

use std::f64::consts::PI;

use graphable::{
    Float, Result, State, Tensor, bf16, f16,
    ops::{self, LongRopeConfig, RopeConfig, RopeOptions, RopeScaling, RopeStyle, YarnConfig},
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    harness::{assert_close, cases, for_types, in_step, indices, input, is_argument, is_shape},
    reference::Array,
};

/// `_compute_default_rope_parameters`
fn default(base: f64, dim: usize) -> Vec<f64> {
    (0..dim).step_by(2).map(|i| 1.0 / base.powf(i as f64 / dim as f64)).collect()
}

/// `_compute_llama3_parameters`
fn llama3(frequencies: Vec<f64>, factor: f64, [low, high]: [f64; 2], old: f64) -> Vec<f64> {
    let (low_wave, high_wave) = (old / low, old / high);
    let scaled = |f: f64| {
        let wave = 2.0 * PI / f;
        if wave > low_wave {
            f / factor
        } else if wave < high_wave {
            f
        } else {
            let smooth = (old / wave - low) / (high - low);
            (1.0 - smooth) * f / factor + smooth * f
        }
    };
    frequencies.into_iter().map(scaled).collect()
}

struct Yarn {
    factor: f64,
    old: f64,
    fast: f64,
    slow: f64,
    truncate: bool,
}

/// `_compute_yarn_parameters`, without the attention factor
fn yarn(base: f64, dim: usize, y: &Yarn) -> Vec<f64> {
    let correction =
        |rotations: f64| (dim as f64 * (y.old / (rotations * 2.0 * PI)).ln()) / (2.0 * base.ln());
    let (mut low, mut high) = (correction(y.fast), correction(y.slow));
    if y.truncate {
        (low, high) = (low.floor(), high.ceil());
    }
    (low, high) = (low.max(0.0), high.min(dim as f64 - 1.0));
    if low == high {
        high += 0.001;
    }
    let interpolated = default(base, dim).into_iter().map(|f| f / y.factor);
    let mixed = interpolated.zip(default(base, dim)).enumerate().map(|(i, (inter, extra))| {
        let ramp = ((i as f64 - low) / (high - low)).clamp(0.0, 1.0);
        inter * ramp + extra * (1.0 - ramp)
    });
    mixed.collect()
}

/// A random rule, with its frequencies for sequences of `length` and its factor of cosines and sines.
fn rule(rng: &mut StdRng, theta: f32, dim: usize, length: f64) -> (RopeScaling, Vec<f64>, f64) {
    let base = f64::from(theta);
    let factor = rng.random_range(1.1f32..16.0);
    let (f, exponent) = (f64::from(factor), dim as f64 / (dim as f64 - 2.0));
    let original_max_position_embeddings = rng.random_range(2u32..40);
    let old = f64::from(original_max_position_embeddings);
    match rng.random_range(0..9) {
        0 => (RopeScaling::None, default(base, dim), 1.0),
        1 => (RopeScaling::Linear { factor }, default(base, dim).into_iter().map(|x| x / f).collect(), 1.0),
        2 => (RopeScaling::Ntk { factor }, default(base * f.powf(exponent), dim), 1.0),
        3 => {
            let length = length.max(old);
            let grown = base * ((f * length / old) - (f - 1.0)).powf(exponent);
            (RopeScaling::DynamicNtk { factor, original_max_position_embeddings }, default(grown, dim), 1.0)
        }
        4 => {
            let (low_freq_factor, high_freq_factor) =
                (rng.random_range(0.5f32..2.0), rng.random_range(2.5f32..8.0));
            let rule = RopeScaling::Llama3 {
                factor,
                low_freq_factor,
                high_freq_factor,
                original_max_position_embeddings,
            };
            let mixed = [low_freq_factor, high_freq_factor].map(f64::from);
            (rule, llama3(default(base, dim), f, mixed, old), 1.0)
        }
        // `_compute_longrope_parameters` of `transformers`.
        5 | 6 => {
            let mut factors = || (0..dim / 2).map(|_| rng.random_range(0.5f32..20.0)).collect::<Vec<_>>();
            let (short, long) = (factors(), factors());
            let given = if length > old { &long } else { &short };
            let frequencies = default(base, dim).into_iter().zip(given).map(|(x, by)| x / f64::from(*by));
            let frequencies = frequencies.collect();
            let most = rng.random_range(1..400);
            let config = LongRopeConfig::new(&short, &long, original_max_position_embeddings, most);
            let grown = f64::from(most) / old;
            let (config, magnitude) = match rng.random_bool(0.3) {
                true => (config.attention_factor(1.25), 1.25),
                false if grown <= 1.0 => (config, 1.0),
                false => (config, (1.0 + grown.ln() / old.ln()).sqrt()),
            };
            (RopeScaling::LongRope(config), frequencies, magnitude)
        }
        which => {
            let (fast, slow) = (rng.random_range(4.0f32..40.0), rng.random_range(0.1f32..3.0));
            let truncate = which == 7;
            let config =
                YarnConfig::new(factor, original_max_position_embeddings).beta(fast, slow).truncate(truncate);
            let grown = |by: f64| 0.1 * by * f.ln() + 1.0;
            let (config, magnitude) = match rng.random_range(0..3) {
                0 => (config, grown(1.0)),
                1 => (config.attention_factor(0.75), 0.75),
                _ => (config.mscale(0.5, 2.0), grown(0.5) / grown(2.0)),
            };
            let y = Yarn { factor: f, old, fast: f64::from(fast), slow: f64::from(slow), truncate };
            (RopeScaling::Yarn(config), yarn(base, dim, &y), magnitude)
        }
    }
}

/// `x` turned by `frequencies[pair] * position(index, pair)`.
fn turned(
    x: &Array,
    style: RopeStyle,
    (frequencies, magnitude): (&[f64], f64),
    position: impl Fn(&[usize], usize) -> f64,
) -> Array {
    let half = frequencies.len();
    Array::from_fn(&x.shape, |index| {
        let (&d, head) = index.split_last().unwrap();
        if d >= 2 * half {
            return x.at(index);
        }
        let interleaved = style == RopeStyle::Interleaved;
        let (pair, first) = if interleaved { (d / 2, d % 2 == 0) } else { (d % half, d < half) };
        let other = match (interleaved, first) {
            (true, true) => d + 1,
            (true, false) => d - 1,
            (false, true) => d + half,
            (false, false) => d - half,
        };
        let angle = frequencies[pair] * position(index, pair);
        let (sin, cos) = (magnitude * angle.sin(), magnitude * angle.cos());
        let partner = x.at(&[head, &[other]].concat());
        if first { x.at(index) * cos - partner * sin } else { partner * sin + x.at(index) * cos }
    })
}

fn scaled<T: Float>() {
    cases(120, |step, rng| {
        let (b, t, h) = (rng.random_range(1..4), rng.random_range(1..6), rng.random_range(1..4));
        let dim = 2 * rng.random_range(2..9usize);
        let rest = if rng.random_bool(0.5) { rng.random_range(1..5) } else { 0 };
        let (x, host) = input::<T>(step, rng, &[b, t, h, dim + rest], (-2.0, 2.0));
        let (positions, hp) = indices(step, rng, &[b, t], 60);
        let length = 1.0 + hp.data.iter().copied().fold(0.0, f64::max);
        let style = if rng.random_bool(0.5) { RopeStyle::Interleaved } else { RopeStyle::HalfSplit };
        let theta = rng.random_range(100.0..20_000.0);
        let (scaling, frequencies, magnitude) = rule(rng, theta, dim, length);
        let config = RopeConfig::new(theta, style).partial(dim).scaling(scaling);
        let want = turned(&host, style, (&frequencies, magnitude), |i, _| hp.at(&i[..2]));
        assert_close(step, &ops::rope(&x, &positions, config).unwrap(), &want, 20.0);
    });
}

#[test]
fn frequencies_are_those_of_transformers() {
    for_types!(scaled: f32, f16, bf16);
}

/// The sections of the pairs, as Qwen2-VL splits and joins cosines, and as Qwen3-VL overwrites frequencies.
fn sections_of(pairs: &[usize], interleaved: bool) -> Vec<usize> {
    let half: usize = pairs.iter().sum();
    if !interleaved {
        return pairs.iter().enumerate().flat_map(|(section, &n)| vec![section; n]).collect();
    }
    let mut all = vec![0; half];
    for section in 1..pairs.len() {
        for i in (section..half.min(pairs[section] * pairs.len())).step_by(pairs.len()) {
            all[i] = section;
        }
    }
    all
}

fn sectioned<T: Float>() {
    cases(80, |step, rng| {
        let (b, t, h) = (rng.random_range(1..4), rng.random_range(1..6), rng.random_range(1..4));
        let pairs = [rng.random_range(1..6), rng.random_range(0..6), rng.random_range(0..6usize)];
        let dim = 2 * pairs.iter().sum::<usize>();
        let batched = rng.random_bool(0.5);
        let places = if batched { vec![3, b, t] } else { vec![3, t] };
        let (x, host) = input::<T>(step, rng, &[b, t, h, dim], (-2.0, 2.0));
        let (positions, hp) = indices(step, rng, &places, 60);
        let style = if rng.random_bool(0.5) { RopeStyle::Interleaved } else { RopeStyle::HalfSplit };
        let interleaved = rng.random_bool(0.5);
        let config = RopeConfig::new(5e3, style).scaling(RopeScaling::Linear { factor: 2.0 });
        let config = if interleaved { config.interleaved_sections(pairs) } else { config.sections(pairs) };
        let of = sections_of(&pairs, interleaved);
        let frequencies: Vec<f64> = default(5e3, dim).into_iter().map(|f| f / 2.0).collect();
        let position = |i: &[usize], pair: usize| {
            let at = [of[pair], i[0], i[1]];
            if batched { hp.at(&at) } else { hp.at(&[at[0], at[2]]) }
        };
        let want = turned(&host, style, (&frequencies, 1.0), position);
        assert_close(step, &ops::rope(&x, &positions, config).unwrap(), &want, 10.0);
    });
}

#[test]
fn each_section_has_its_position() {
    for_types!(sectioned: f32, bf16);
}

#[test]
fn rows_of_a_cache_are_scaled_alike() {
    let mut rt = graphable::Runtime::new(crate::harness::device()).unwrap();
    let mut rng = StdRng::seed_from_u64(3);
    let config = RopeConfig::new(1e4, RopeStyle::HalfSplit).partial(6);
    let scaling = RopeScaling::DynamicNtk { factor: 3.0, original_max_position_embeddings: 8 };
    // Positions are below 50: long, or short.
    let long = |original| {
        let config = LongRopeConfig::new(&[1.0, 2.0, 3.0], &[4.0, 5.0, 7.0], original, 4096);
        config.attention_factor(1.0)
    };
    let [short, long] = [50, 2].map(|original| config.scaling(RopeScaling::LongRope(long(original))));
    for config in [config.scaling(scaling), config.scaling(scaling).sections([1, 2]), short, long] {
        let cache = State::<f32>::zeros(&rt, &[5, 2, 8]).unwrap();
        let step = rt.step().unwrap();
        let (x, _) = input::<f32>(&step, &mut rng, &[4, 2, 8], (-1.0, 1.0));
        let places: &[usize] = if config == config.sections([1, 2]) { &[2, 4] } else { &[4] };
        // The position of the row that is skipped does not count, as if it were the smallest.
        let (_, drawn) = indices(&step, &mut rng, places, 50);
        let with = |skipped: u32| -> Vec<u32> {
            drawn
                .data
                .iter()
                .enumerate()
                .map(|(i, &at)| if i % 4 == 2 { skipped } else { at as u32 })
                .collect()
        };
        let positions = step.tensor(places, &with(1_000_000)).unwrap();
        let counted = step.tensor(places, &with(0)).unwrap();
        let rows = step.tensor(&[4], &[4u32, 0, u32::MAX, 2]).unwrap();
        ops::rope_scatter(&cache, &rows, &x, &positions, config).unwrap();
        let turned = step.read(&ops::rope(&x, &counted, config).unwrap()).unwrap();
        let stored = step.read(&ops::load(step.scope(), &cache).unwrap()).unwrap();
        for (from, to) in [(0, 4), (1, 0), (3, 2)] {
            assert_eq!(stored[16 * to..][..16], turned[16 * from..][..16]);
        }
        assert_eq!(stored[16..32], [0.0; 16]);
    }
}

/// The positions of a section without pairs say where the sequence ends of which a call has a part.
#[test]
fn parts_turn_by_the_length_of_the_whole() {
    let mut rt = graphable::Runtime::new(crate::harness::device()).unwrap();
    let plain = RopeConfig::new(1e4, RopeStyle::HalfSplit).partial(6);
    let longrope = LongRopeConfig::new(&[1.0, 2.0, 3.0], &[4.0, 5.0, 7.0], 5, 4096);
    let original_max_position_embeddings = 3;
    for scaling in [
        RopeScaling::DynamicNtk { factor: 3.0, original_max_position_embeddings },
        RopeScaling::LongRope(longrope),
    ] {
        let config = plain.scaling(scaling);
        assert!(config.depends_on_length());
        assert_eq!(config.pairs(8), 3);
        let cache = State::<f32>::zeros(&rt, &[7, 2, 8]).unwrap();
        let step = rt.step().unwrap();
        let mut rng = StdRng::seed_from_u64(4);
        let (x, _) = input::<f32>(&step, &mut rng, &[7, 2, 8], (-1.0, 1.0));
        let all = step.tensor(&[7], &[0u32, 1, 2, 3, 4, 5, 6]).unwrap();
        let whole = step.read(&ops::rope(&x, &all, config).unwrap()).unwrap();
        for rows in [0..4usize, 4..7] {
            let n = rows.len();
            let part = ops::narrow(&x, 0, rows.start, n).unwrap();
            let own: Vec<u32> = rows.clone().map(|row| row as u32).collect();
            let ends = [&own[..], &vec![6; n]].concat();
            let (index, ends) = (step.tensor(&[n], &own).unwrap(), step.tensor(&[2, n], &ends).unwrap());
            let sections = config.sections([config.pairs(8), 0]);
            let turned = step.read(&ops::rope(&part, &ends, sections).unwrap()).unwrap();
            assert_eq!(turned, whole[16 * rows.start..16 * rows.end]);
            ops::rope_scatter(&cache, &index, &part, &ends, sections).unwrap();
        }
        assert_eq!(step.read(&ops::load(step.scope(), &cache).unwrap()).unwrap(), whole);
    }
    assert!(!RopeOptions::from(plain).depends_on_length());
    assert!(!plain.scaling(RopeScaling::Linear { factor: 2.0 }).depends_on_length());
}

#[test]
fn impossible_parameters_are_refused() {
    in_step(|step| {
        let x = ops::zeros::<f32>(step.scope(), &[2, 1, 8]).unwrap();
        let at = ops::zeros::<u32>(step.scope(), &[2]).unwrap();
        let by = |config: RopeOptions| ops::rope(&x, &at, config);
        let plain = RopeConfig::new(1e4, RopeStyle::HalfSplit);
        let original_max_position_embeddings = 64;
        let llama = |factor, low_freq_factor, high_freq_factor, original_max_position_embeddings| {
            RopeScaling::Llama3 {
                factor,
                low_freq_factor,
                high_freq_factor,
                original_max_position_embeddings,
            }
        };
        let yarn = YarnConfig::new(2.0, 64);
        let wrong = [
            RopeScaling::Linear { factor: 0.0 },
            RopeScaling::Linear { factor: f32::NAN },
            RopeScaling::Ntk { factor: -1.0 },
            RopeScaling::DynamicNtk { factor: f32::INFINITY, original_max_position_embeddings },
            RopeScaling::DynamicNtk { factor: 2.0, original_max_position_embeddings: 0 },
            llama(0.0, 1.0, 4.0, 64),
            llama(2.0, 4.0, 4.0, 64),
            llama(2.0, 0.0, 4.0, 64),
            llama(2.0, 1.0, 4.0, 0),
            RopeScaling::Yarn(YarnConfig::new(0.0, 64)),
            RopeScaling::Yarn(YarnConfig::new(2.0, 0)),
            RopeScaling::Yarn(yarn.beta(1.0, 2.0)),
            RopeScaling::Yarn(yarn.beta(1.0, 0.0)),
            RopeScaling::Yarn(yarn.attention_factor(0.0)),
            RopeScaling::Yarn(yarn.mscale(1.0, f32::NAN)),
            RopeScaling::LongRope(LongRopeConfig::new(&[1.0; 3], &[1.0; 4], 64, 128)),
            RopeScaling::LongRope(LongRopeConfig::new(&[1.0; 4], &[1.0; 5], 64, 128)),
            RopeScaling::LongRope(LongRopeConfig::new(&[1.0, 1.0, 0.0, 1.0], &[1.0; 4], 64, 128)),
            RopeScaling::LongRope(LongRopeConfig::new(&[1.0; 4], &[f32::NAN; 4], 64, 128)),
            RopeScaling::LongRope(LongRopeConfig::new(&[1.0; 4], &[1.0; 4], 0, 128)),
            RopeScaling::LongRope(LongRopeConfig::new(&[1.0; 4], &[1.0; 4], 1, 128)),
            RopeScaling::LongRope(LongRopeConfig::new(&[1.0; 4], &[1.0; 4], 64, 128).attention_factor(-1.0)),
        ];
        for scaling in wrong {
            assert!(is_argument(by(plain.scaling(scaling))), "{scaling:?}");
        }
        let two = plain.partial(2);
        assert!(is_argument(by(two.scaling(RopeScaling::Ntk { factor: 2.0 }))));
        assert!(by(two.scaling(RopeScaling::Linear { factor: 2.0 })).is_ok());
        assert!(is_argument(by(RopeConfig::new(1.0, RopeStyle::HalfSplit).scaling(RopeScaling::Yarn(yarn)))));
        assert!(by(plain.scaling(RopeScaling::Yarn(yarn))).is_ok());
        // Sections.
        let three = ops::zeros::<u32>(step.scope(), &[3, 2]).unwrap();
        let sections =
            |pairs: [usize; 3]| -> Result<Tensor<'_, f32>> { ops::rope(&x, &three, plain.sections(pairs)) };
        assert!(sections([1, 2, 1]).is_ok());
        assert!(is_argument(sections([1, 2, 2])));
        assert!(is_argument(sections([usize::MAX, 5, 0])));
        assert!(is_shape(by(plain.sections([1, 2, 1]))), "one position for three sections");
        assert!(is_shape(ops::rope(&x, &three, plain)), "three positions without sections");
    });
}

#[test]
fn angles_of_one_list_of_divisors_do_not_depend_on_the_length() {
    let config = RopeConfig::new(10_000.0, RopeStyle::HalfSplit);
    let with =
        |long: &[f32]| config.scaling(RopeScaling::LongRope(LongRopeConfig::new(&[1.0, 8.0], long, 64, 512)));
    assert!(with(&[1.0, 9.0]).depends_on_length());
    assert!(!with(&[1.0, 8.0]).depends_on_length());
    assert!(!RopeOptions::from(config).depends_on_length());
}

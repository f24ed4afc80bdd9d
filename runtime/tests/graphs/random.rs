//! Random numbers in graphs: one stream in every mode, whatever is recorded, padded, audited, forgotten and made again.

#![deny(warnings, missing_docs)]

use graphable::{Random, RngState, backend::cpu::CpuOptions, prelude::*};

use crate::device;

const MODES: [Mode; 3] = [Mode::None, Mode::Piecewise, Mode::Full];
const SEED: u64 = 11;

fn runtime() -> Runtime {
    Runtime::new(device::device(CpuOptions::default().test_mode(1).threads(1))).unwrap()
}

/// A weight, and what is drawn from.
#[derive(Params)]
pub struct Noisy {
    w: Param<f32>,
    rng: Rng,
}

impl Noisy {
    fn new(rt: &Runtime) -> Self {
        let w = Param::new(rt, &[2, 2], &[1.0f32, 0.5, -1.0, 2.0]).unwrap();
        Self { w, rng: Rng::new(rt, SEED).unwrap() }
    }
}

/// Two numbers of an element, of one generator.
#[kernel]
fn jittered(x: f32, r: Random, s: Random) -> f32 {
    x + r.uniform() - s.uniform()
}

/// A sample of the softmax of each row, and a number of the row.
#[kernel(rows)]
fn sampled(x: Row<f32>, r: Row<Random>, s: Random) -> f32 {
    x.zip(r).map(|(x, r)| x + r.gumbel()).argmax() as f32 + s.uniform()
}

/// Draws in two segments and in the region between them, of tensors whose outer, inner or only dimension is padded.
#[graphable]
pub fn drawn(
    #[host]
    #[dims(B, T)]
    x: &Tensor<f32>,
    #[host]
    #[dims(B, 2)]
    y: &Tensor<f32>,
    m: &Noisy,
) -> Result<(Tensor<f32>, Tensor<f32>, Tensor<u32>)> {
    let h = ops::dropout(&m.rng, x, 0.25)?;
    let h = ops::add(&h, &ops::uniform(&m.rng, x.scope(), (x.dim(0), x.dim(1)), -1.0..1.0)?)?;
    let z = ops::linear(y, &m.w)?;
    let noise = #[eager(support = Always)]
    jittered(&h, &m.rng, &m.rng)?;
    let across = ops::normal(&m.rng, x.scope(), (2, x.dim(1), 3, x.dim(0)), 0.0, 1.0)?;
    let across = ops::narrow(&ops::narrow(&across, 2, 1, 1)?, 0, 1, 1)?;
    let across = ops::squeeze(&ops::squeeze(&across, 2)?, 0)?;
    let h = ops::add(&noise, &ops::transpose(&across, 0, 1)?)?;
    let ids = ops::randint(&m.rng, x.scope(), [x.dim(1)], 0..1000u32)?;
    let z = jittered(&z, &m.rng, &m.rng)?;
    let logits = ops::uniform(&m.rng, x.scope(), (x.dim(0), x.dim(1), 5), 0.0..1.0)?;
    Ok((ops::add(&h, &sampled(&logits, &m.rng, &m.rng)?)?, z, ids))
}

/// The calls that draw in `drawn`.
const CALLS: u64 = 11;

fn data(rows: usize, columns: usize) -> (Vec<f32>, Vec<f32>) {
    let numbers = |n: usize| (0..n).map(|i| i as f32 * 0.25 - 1.0).collect();
    (numbers(rows * columns), numbers(rows * 2))
}

type Values = (Vec<f32>, Vec<f32>, Vec<u32>);

fn call(rt: &mut Runtime, graph: &DrawnGraph, m: &Noisy, (rows, columns): (usize, usize)) -> Values {
    let (x, y) = data(rows, columns);
    let step = rt.step().unwrap();
    let (h, z, ids) = graph.call(&step, (&x, &[rows, columns]), (&y, &[rows, 2]), m).unwrap();
    let values = (step.read(&h).unwrap(), step.read(&z).unwrap(), step.read(&ids).unwrap());
    drop((h, z, ids));
    step.check_memory().unwrap();
    values
}

/// Sizes of calls, some of them again and again.
const SIZES: [(usize, usize); 12] =
    [(1, 1), (3, 2), (3, 2), (3, 2), (4, 4), (2, 3), (2, 3), (3, 2), (1, 4), (4, 1), (3, 2), (2, 3)];

/// What plain calls draw, without buckets and without graphs.
fn plain() -> Vec<Values> {
    let mut rt = runtime();
    let m = Noisy::new(&rt);
    let graph = DrawnGraph::builder().mode(Mode::None).build(&mut rt).unwrap();
    let values = SIZES.map(|size| call(&mut rt, &graph, &m, size)).into();
    assert_eq!(m.rng.save(&rt.step().unwrap()).unwrap(), after(SIZES.len()));
    values
}

/// The state after so many calls of the function.
fn after(calls: usize) -> RngState {
    RngState { seed: SEED, counter: CALLS * calls as u64 }
}

#[test]
fn numbers_depend_on_places_without_padding() {
    // The numbers of the last call of the kernel, which has two of each element, in the second call of the function.
    let (rows, columns) = SIZES[1];
    let (_, z, ids) = plain().swap_remove(1);
    let number = |call: u64, i: usize| Random::at(RngState { counter: CALLS + call, ..after(0) }, i as u64);
    let wanted: Vec<u32> = (0..columns).map(|i| number(5, i).below(1000)).collect();
    assert_eq!(ids, wanted);
    let (_, y) = data(rows, columns);
    let w = [[1.0, 0.5], [-1.0, 2.0]];
    let wanted: Vec<f32> = (0..rows * 2)
        .map(|i| {
            let row = &y[i / 2 * 2..][..2];
            let product = row[0] * w[i % 2][0] + row[1] * w[i % 2][1];
            product + number(6, i).uniform() - number(7, i).uniform()
        })
        .collect();
    assert_eq!(z, wanted);
}

#[test]
fn every_mode_draws_one_stream() {
    let plain = plain();
    for mode in MODES {
        for (buckets, audits, shares) in
            [(false, 0, false), (true, 0, false), (true, 2, false), (true, 0, true)]
        {
            let mut rt = runtime();
            rt.share_executables(shares.then_some(std::time::Duration::MAX));
            let m = Noisy::new(&rt);
            let mut builder = DrawnGraph::builder().mode(mode).audit_every(audits);
            if buckets {
                builder = builder.bucket("B", Schedule::new([2, 4])).bucket("T", Schedule::new([1, 4]));
            }
            let graph = builder.build(&mut rt).unwrap();
            if buckets {
                graph.capture_all(&mut rt, &m).unwrap();
                assert_eq!(
                    m.rng.save(&rt.step().unwrap()).unwrap(),
                    after(0),
                    "{mode}: captures draw nothing"
                );
            }
            for (at, size) in SIZES.into_iter().enumerate() {
                let values = call(&mut rt, &graph, &m, size);
                assert_eq!(values, plain[at], "{mode}, buckets {buckets}, audits {audits}, call {at}");
            }
            assert_eq!(m.rng.save(&rt.step().unwrap()).unwrap(), after(SIZES.len()), "{mode}");
            if mode != Mode::None {
                let stats = rt.stats();
                assert!(stats.replays > 0 && (audits == 0 || stats.audits > 0), "{mode}: {stats:?}");
                assert_eq!(stats.fallbacks, 0, "{mode}: {stats:?}");
            }
        }
    }
}

#[test]
fn what_is_forgotten_and_estimated_changes_nothing() {
    let plain = plain();
    for mode in [Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let mut m = Noisy::new(&rt);
        let build = |rt: &mut Runtime| {
            let builder = DrawnGraph::builder().mode(mode).bucket("B", Schedule::new([4]));
            builder.bucket("T", Schedule::new([4])).build(rt).unwrap()
        };
        let (mut graph, other) =
            (build(&mut rt), DrawnGraph::builder().mode(Mode::None).build(&mut rt).unwrap());
        for (at, size) in SIZES.into_iter().enumerate() {
            match at % 6 {
                1 => graph = build(&mut rt),
                2 => drop(rt.reset().unwrap()),
                3 => m.w = Param::new(&rt, &[2, 2], &[1.0f32, 0.5, -1.0, 2.0]).unwrap(),
                4 => {
                    let state = m.rng.save(&rt.step().unwrap()).unwrap();
                    rt.estimate_memory(|rt| graph.capture_all(rt, &m)).unwrap();
                    rt.measure_memory(|rt| graph.capture_all(rt, &m)).unwrap();
                    assert_eq!(m.rng.save(&rt.step().unwrap()).unwrap(), state);
                }
                _ => {}
            }
            let graph = if at % 5 == 4 { &other } else { &graph };
            assert_eq!(call(&mut rt, graph, &m, size), plain[at], "{mode}, call {at}");
        }
        // The state of one runtime continues in another.
        let state = m.rng.save(&rt.step().unwrap()).unwrap();
        let mut elsewhere = runtime();
        let again = Noisy::new(&elsewhere);
        let graph = build(&mut elsewhere);
        again.rng.restore(&elsewhere.step().unwrap(), state).unwrap();
        let next = call(&mut rt, &other, &m, (2, 2));
        assert_eq!(call(&mut elsewhere, &graph, &again, (2, 2)), next, "{mode}");
    }
}

/// A generator is replaced by another one.
#[graphable]
pub fn one(x: &Tensor<f32>, rng: &Rng) -> Result<Tensor<f32>> {
    ops::uniform(rng, x.scope(), x.shape(), 0.0..1.0)
}

#[test]
fn generators_are_told_apart() {
    for mode in MODES {
        let mut rt = runtime();
        let graph = OneGraph::builder().mode(mode).build(&mut rt).unwrap();
        let mut rngs = [1, 2, 3].map(|seed| Rng::new(&rt, seed).unwrap());
        let mut calls = [0; 3];
        for round in 0..12 {
            let at = [0, 0, 1, 0, 2, 1][round % 6];
            if round == 6 {
                // Those of the old one are evicted, and the new one has its own.
                rngs[0] = Rng::new(&rt, 4).unwrap();
                calls[0] = 0;
            }
            let seed = if at == 0 && round >= 6 { 4 } else { at as u64 + 1 };
            let step = rt.step().unwrap();
            let x = step.tensor([3], &[0.0f32; 3]).unwrap();
            let y = step.read(&graph.call(&step, &x, &rngs[at]).unwrap()).unwrap();
            let state = RngState { seed, counter: calls[at] };
            assert!(y.into_iter().eq((0..3).map(|i| Random::at(state, i).uniform())), "{mode} {round}");
            calls[at] += 1;
        }
    }
}

/// Branches with a generator each, or with one for both.
#[graphable]
pub fn branches(x: &Tensor<f32>, left: &Rng, right: &Rng) -> Result<(Tensor<f32>, Tensor<f32>)> {
    join(x.scope(), || ops::dropout(left, x, 0.5), || ops::dropout(right, &ops::neg(x)?, 0.5))
}

#[test]
fn branches_need_generators_of_their_own() {
    let mut expected: Option<Vec<(Vec<f32>, Vec<f32>)>> = None;
    for mode in MODES {
        let mut rt = runtime();
        let graph = BranchesGraph::builder().mode(mode).build(&mut rt).unwrap();
        let rng = Rng::new(&rt, SEED).unwrap();
        let (left, right) = {
            let step = rt.step().unwrap();
            (rng.fork(&step).unwrap(), rng.fork(&step).unwrap())
        };
        let values: Vec<(Vec<f32>, Vec<f32>)> = (0..4)
            .map(|_| {
                let step = rt.step().unwrap();
                let x = step.tensor([16], &[1.0f32; 16]).unwrap();
                let (a, b) = graph.call(&step, &x, &left, &right).unwrap();
                (step.read(&a).unwrap(), step.read(&b).unwrap())
            })
            .collect();
        assert_eq!(expected.get_or_insert_with(|| values.clone()), &values, "{mode}");
        let step = rt.step().unwrap();
        let x = step.tensor([16], &[1.0f32; 16]).unwrap();
        let shared = graph.call(&step, &x, &left, &left);
        assert!(matches!(shared, Err(Error::BranchesShare { .. })), "{mode}: {shared:?}");
    }
}

/// What a step draws counts only if a condition on the device says so.
#[graphable]
pub fn perhaps(counts: &Tensor<bool>, rng: &Rng) -> Result<Tensor<f32>> {
    let before = ops::rng_state(rng, counts.scope())?;
    let x = ops::uniform(rng, counts.scope(), [2], 0.0..1.0)?;
    let after = ops::rng_state(rng, counts.scope())?;
    ops::set_rng_state(rng, &ops::where_(counts, &after, &before)?)?;
    Ok(x)
}

#[test]
fn a_condition_on_the_device_takes_calls_back() {
    for mode in MODES {
        let mut rt = runtime();
        let graph = PerhapsGraph::builder().mode(mode).build(&mut rt).unwrap();
        let rng = Rng::new(&rt, SEED).unwrap();
        let mut counter = 0;
        for counts in [true, false, false, true, false, true, true] {
            let step = rt.step().unwrap();
            let given = step.tensor([1], &[counts]).unwrap();
            let x = step.read(&graph.call(&step, &given, &rng).unwrap()).unwrap();
            let state = RngState { seed: SEED, counter };
            assert!(x.into_iter().eq((0..2).map(|i| Random::at(state, i).uniform())), "{mode}");
            counter += u64::from(counts);
            assert_eq!(rng.save(&step).unwrap().counter, counter, "{mode}");
        }
    }
}

/// A permutation of a padded number of rows has no meaning yet.
#[graphable]
pub fn shuffled(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    rng: &Rng,
) -> Result<Tensor<f32>> {
    ops::gather(x, 0, &ops::randperm(rng, x.scope(), x.dim(0))?)
}

#[test]
fn padded_permutations_are_refused() {
    for mode in MODES {
        let mut rt = runtime();
        let rng = Rng::new(&rt, SEED).unwrap();
        let padded =
            ShuffledGraph::builder().mode(mode).bucket("B", Schedule::new([4])).build(&mut rt).unwrap();
        let exact = ShuffledGraph::builder().mode(mode).build(&mut rt).unwrap();
        let step = rt.step().unwrap();
        let refused = padded.call(&step, &[1.0, 2.0, 3.0], &rng);
        assert!(matches!(refused, Err(Error::PaddedMix { op: "randperm", .. })), "{mode}: {refused:?}");
        assert_eq!(rng.save(&step).unwrap().counter, 0, "{mode}");
        drop((refused, step));
        for call in 1..4 {
            let step = rt.step().unwrap();
            let mut x = step.read(&exact.call(&step, &[1.0, 2.0, 3.0], &rng).unwrap()).unwrap();
            x.sort_by(f32::total_cmp);
            assert_eq!((x, rng.save(&step).unwrap().counter), (vec![1.0, 2.0, 3.0], call), "{mode}");
        }
    }
}

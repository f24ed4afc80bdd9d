//! Calls of every operation with arguments that were drawn, of which some do not fit: shapes, axes, numbers, indices, sizes
//! that no memory has room for, operands of another runtime, padding where it is refused.
//!
//! Each call ends in an error that names the operation, or in a value. It is the same value for tensors that lie in memory
//! the other way round, and for a dimension that a bucket pads. What fits is not refused, nor is padding, but where the
//! operation is documented to mix it: there it always is. After each call, the runtime computes a good one, in the same step and in the next one.
//!
//! `GRAPHABLE_MISUSES=n` makes `n` calls of each operation.

mod draw;
mod made;
mod table;

use std::{
    cell::Cell,
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
};

use graphable::{
    BlockFormat, Error, Param, Params, PinnedLog, Result, Rng, Runtime, Schedule, State, Step, Tensor,
    Weight, graphable, ops,
};

use self::{
    draw::Draw,
    made::Any,
    table::{Entry, all},
};
use crate::{harness::device, operations::names};

/// Calls of each operation.
const CALLS: u64 = 20;
/// The size that is padded, or would be.
const ROWS: usize = 5;

#[test]
fn every_operation_has_an_entry() {
    let listed: BTreeSet<&str> = all().map(|entry| entry.name).collect();
    let known = names();
    let (missing, unknown) = (known.difference(&listed), listed.difference(&known));
    assert!(
        known == listed,
        "operations without an entry in `misuse/table.rs`: {:?}; entries that are no operation: {:?}",
        missing.collect::<Vec<_>>(),
        unknown.collect::<Vec<_>>()
    );
}

/// Every operation, divided among tests that run at the same time.
macro_rules! parts {
    ($($name:ident: $part:literal;)*) => {$(
        #[test]
        fn $name() {
            check($part);
        }
    )*};
}
parts! {
    calls_end_in_values_or_errors_0: 0;
    calls_end_in_values_or_errors_1: 1;
    calls_end_in_values_or_errors_2: 2;
    calls_end_in_values_or_errors_3: 3;
}

/// Calls each fourth operation; a failure does not end it.
fn check(part: usize) {
    let calls = std::env::var("GRAPHABLE_MISUSES").ok().and_then(|n| n.parse().ok()).unwrap_or(CALLS);
    let (mut faults, mut met) = (Vec::new(), Met::default());
    let mut world = World::new();
    for (number, entry) in all().enumerate().skip(part).step_by(4) {
        for call in 0..calls {
            let seed = (number as u64) << 32 | call;
            if let Err(fault) = world.compare((number, entry), seed, &mut met) {
                faults.push(format!("{}, call {call}: {fault}", entry.name));
            }
        }
    }
    assert!(faults.is_empty(), "{} calls:\n{}", faults.len(), faults.join("\n"));
    println!("{met:?}");
    // Arguments that no longer reach what they are drawn for would pass in silence.
    let few = (calls * 48 / 20) as usize;
    let Met { values, padded_values, refused, padding, fitting, mixed } = met;
    let all = [values, padded_values, refused, padding, fitting];
    assert!(all.iter().all(|count| *count >= few) && mixed >= few / 3, "{met:?}");
}

/// How many calls ended in which way.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    values: usize,
    padded_values: usize,
    refused: usize,
    /// Refused because of padding.
    padding: usize,
    /// With a padded size where everything fits: without a mix of padding, and with one.
    fitting: usize,
    mixed: usize,
}

/// How a call ended.
#[derive(Clone, Debug)]
enum End {
    /// Shapes and elements of what it returned.
    Values(Vec<(Vec<usize>, Vec<f32>)>),
    Refused(Refusal),
}

/// An error, by its variant.
#[derive(Clone, Debug, PartialEq)]
struct Refusal {
    variant: String,
    text: String,
}

impl Refusal {
    /// Checks that the error is one of wrong arguments, and names the operation.
    fn of(error: &Error, entry: &Entry) -> Result<Self, String> {
        let text = error.to_string();
        let named = match error {
            Error::Shape { op, .. }
            | Error::Axis { op, .. }
            | Error::Argument { op, .. }
            | Error::PaddedMix { op, .. }
            | Error::PaddedSize { op, .. }
            | Error::DifferentRuntimes { op }
            | Error::IndexOutOfRange { op, .. } => Some(*op),
            Error::Rank { .. } | Error::TooLarge { .. } | Error::OutOfMemory { .. } => None,
            other => return Err(format!("no error of arguments: {other:?}")),
        };
        // A cache is read by attention, and a result of another runtime by this test.
        let is_by_another = match named {
            Some("attention") => entry.name == "cache_view",
            Some("read") => matches!(error, Error::DifferentRuntimes { .. }),
            _ => false,
        };
        match named {
            Some(op) if op != entry.name.trim_end_matches('_') && !is_by_another => {
                Err(format!("the error names `{op}`: {text}"))
            }
            _ => {
                let debug = format!("{error:?}");
                let variant = debug.split([' ', '(']).next().unwrap_or_default().to_owned();
                Ok(Self { variant, text })
            }
        }
    }

    fn is_padding(&self) -> bool {
        ["PaddedMix", "PaddedSize"].contains(&&*self.variant)
    }
}

/// What operations write to.
#[derive(Params)]
pub(super) struct Owned {
    state: State<f32>,
    seen: State<bool>,
    /// Of three channels.
    mean: State<f32>,
    var: State<f32>,
    /// Nobody reads it here.
    log: PinnedLog<f32>,
    /// `[2, 32]`: in blocks where the device computes with them.
    weight: Weight<f32>,
}

impl Owned {
    /// As before each call.
    fn reset(&self, step: &Step<'_>, rng: &Rng) {
        let rows: Vec<f32> = (0..20).map(|i| i as f32 * 0.25).collect();
        let Owned { state, seen, mean, var, log: _, weight: _ } = self;
        ops::store(state, &step.tensor(&[5, 2, 2], &rows).unwrap()).unwrap();
        ops::store(seen, &ops::zeros(step.scope(), [8, 4]).unwrap()).unwrap();
        for statistic in [mean, var] {
            ops::store(statistic, &ops::full(step.scope(), [3], 1.0).unwrap()).unwrap();
        }
        rng.seed(step, 1).unwrap();
    }
}

/// What a bucketed function makes of drawn arguments: one of the results.
#[graphable]
fn padded(
    #[key] entry: usize,
    #[key] seed: u64,
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
    owned: &Owned,
    rng: &Rng,
) -> Result<Tensor<f32>> {
    one_of_results(entry, seed, x, (owned, rng))
}

thread_local! {
    /// Of the arguments that were drawn last: whether all of them fit, and whether padding is mixed.
    static DRAWN: Cell<(bool, bool)> = const { Cell::new((false, false)) };
}

fn one_of_results<'s>(
    entry: usize,
    seed: u64,
    x: &Tensor<'s, f32>,
    owned: (&Owned, &Rng),
) -> Result<Tensor<'s, f32>> {
    let draw = Draw::new(x.scope(), x.dim(0), owned, seed);
    let results = all().nth(entry).map_or(Ok(Vec::new()), |entry| (entry.call)(&draw));
    DRAWN.set((draw.is_right(), draw.is_mixed()));
    let mut results = results?;
    let which = seed as usize % results.len().max(1);
    if results.is_empty() { ops::full(x.scope(), (), 0.0) } else { results.swap_remove(which).values }
}

/// Runtimes that calls are made on.
struct World {
    rt: Runtime,
    elsewhere: Runtime,
    owned: Owned,
    rng: Rng,
    graph: PaddedGraph,
}

impl World {
    fn new() -> Self {
        let (mut rt, elsewhere) = (Runtime::new(device()).unwrap(), Runtime::new(device()).unwrap());
        let zeros = |shape: &[usize]| State::zeros(&rt, shape).unwrap();
        let (state, mean, var) = (zeros(&[5, 2, 2]), zeros(&[3]), zeros(&[3]));
        let (seen, log) = (State::zeros(&rt, &[8, 4]).unwrap(), PinnedLog::new(&rt, 64).unwrap());
        let values: Vec<f32> = (0..64).map(|i| (i as f32).sin()).collect();
        let weight = match rt.device() == "cpu" {
            true => {
                let blocks = BlockFormat::Q5_1.quantize(&values).unwrap();
                Weight::blocks(&rt, &[2, 32], BlockFormat::Q5_1, blocks).unwrap()
            }
            false => Param::new(&rt, &[2, 32], &values).unwrap().into(),
        };
        let owned = Owned { state, seen, mean, var, log, weight };
        let rng = Rng::new(&rt, 1).unwrap();
        let graph = PaddedGraph::builder().bucket("B", Schedule::new([8])).build(&mut rt).unwrap();
        Self { rt, elsewhere, owned, rng, graph }
    }

    /// Makes a call in all ways.
    fn compare(&mut self, (number, entry): (usize, &Entry), seed: u64, met: &mut Met) -> Result<(), String> {
        let (plain, foreign) = self.plain(entry, seed, false)?;
        let (turned, _) = self.plain(entry, seed, true)?;
        let has_values = matches!(plain, End::Values(_));
        met.values += usize::from(has_values);
        met.refused += usize::from(!has_values);
        alike(&turned, &plain).map_err(|reason| format!("the other way round in memory: {reason}"))?;
        for round in 0..2 {
            let padded = self.padded((number, entry), seed)?;
            let refused = matches!(&padded, End::Refused(refusal) if refusal.is_padding());
            met.padding += usize::from(refused);
            let (fits, mixes) = DRAWN.get();
            met.fitting += usize::from(fits && !mixes);
            met.mixed += usize::from(fits && mixes);
            if fits && refused != mixes {
                let what = if mixes { "is mixed" } else { "is refused" };
                return Err(format!("round {round}: padding {what}: {padded:?}"));
            }
            met.padded_values += usize::from(matches!(padded, End::Values(_)));
            // All results of the plain call, of which the other returns one, or 0 where there is none.
            let one = match &plain {
                End::Values(all) if all.is_empty() => End::Values(vec![(vec![], vec![0.0])]),
                End::Values(all) => End::Values(vec![all[seed as usize % all.len()].clone()]),
                refused => refused.clone(),
            };
            if !refused && !foreign {
                alike(&padded, &one).map_err(|reason| format!("padded, round {round}: {reason}"))?;
            }
        }
        Ok(())
    }

    /// Without a bucket. Also returns whether there was an operand of another runtime.
    fn plain(&mut self, entry: &Entry, seed: u64, turned: bool) -> Result<(End, bool), String> {
        let end = {
            let (step, elsewhere) = (self.rt.step().unwrap(), self.elsewhere.step().unwrap());
            self.owned.reset(&step, &self.rng);
            let draw = Draw::new(step.scope(), ROWS, (&self.owned, &self.rng), seed)
                .with_elsewhere(elsewhere.scope());
            let draw = if turned { draw.turned() } else { draw };
            let result = caught(|| (entry.call)(&draw))?;
            let end = read_all(&step, result, entry)?;
            if let (true, End::Refused(refusal)) = (draw.is_right(), &end) {
                return Err(format!("what fits is refused: {}", refusal.text));
            }
            is_usable(&step)?;
            (end, draw.is_foreign())
        };
        is_usable(&self.rt.step().unwrap())?;
        Ok(end)
    }

    /// With a bucket.
    fn padded(&mut self, (number, entry): (usize, &Entry), seed: u64) -> Result<End, String> {
        let step = self.rt.step().unwrap();
        self.owned.reset(&step, &self.rng);
        let x = vec![1.0f32; 2 * ROWS];
        let result = caught(|| self.graph.call(&step, number, seed, &x, &self.owned, &self.rng))?;
        let result = result.map(|values| vec![Any { shape: values.shape().to_vec(), values: Ok(values) }]);
        let end = read_all(&step, result, entry)?;
        is_usable(&step)?;
        Ok(end)
    }
}

/// A panic is a fault.
fn caught<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| {
        let text =
            panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        format!("it panics: {}", text.unwrap_or("(no message)"))
    })
}

fn read_all(step: &Step<'_>, result: Result<Vec<Any<'_>>>, entry: &Entry) -> Result<End, String> {
    let read = |any: Any<'_>| {
        let values = step.read(&any.values?)?;
        let shape = any.shape.iter().map(|dim| dim.get()).collect::<Result<_>>()?;
        Ok((shape, values))
    };
    let all = caught(|| result.and_then(|all| all.into_iter().map(read).collect::<Result<Vec<_>>>()))?;
    // What a kernel found is told once, here at the latest.
    match all.and_then(|all| step.synchronize().map(|()| all)) {
        Ok(all) => Ok(End::Values(all)),
        Err(error) => {
            let _told = step.synchronize();
            Refusal::of(&error, entry).map(End::Refused)
        }
    }
}

fn is_usable(step: &Step<'_>) -> Result<(), String> {
    let good = || -> Result<Vec<f32>> {
        let x = step.tensor(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
        step.read(&ops::sum(&ops::add(&x, 0.5)?, 0)?)
    };
    match caught(good)? {
        Ok(values) if values == [5.0, 7.0] => Ok(()),
        other => Err(format!("the runtime is not usable afterwards: {other:?}")),
    }
}

/// Whether a call ended as another one, with the same values, but for sums in another order.
fn alike(got: &End, expected: &End) -> Result<(), String> {
    let same = |a: f32, b: f32| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-5 * (1.0 + b.abs());
    let fits = match (got, expected) {
        (End::Values(got), End::Values(expected)) => {
            got.len() == expected.len()
                && got.iter().zip(expected).all(|(got, expected)| {
                    got.0 == expected.0 && got.1.iter().zip(&expected.1).all(|(a, b)| same(*a, *b))
                })
        }
        (End::Refused(got), End::Refused(expected)) => {
            // What is too large for an address may be too large for the memory before that, in a bucket or another order.
            let variant = |of: &Refusal| of.variant.replace("TooLarge", "OutOfMemory");
            variant(got) == variant(expected)
        }
        _ => false,
    };
    if fits { Ok(()) } else { Err(format!("{got:?}, not {expected:?}")) }
}

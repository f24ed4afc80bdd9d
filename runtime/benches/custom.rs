//! What launching, recording or replaying an operation of a user's costs the host, next to a built-in one.
//!
//! `cargo bench -p graphable --bench custom`
//!
//! Both negate 16 numbers on the CPU device, whose kernels run on a thread of their own: host time around the launches is
//! the cost itself. Batches of both alternate, and medians are compared, so that what else the machine does is in neither.
//! A custom operation may cost 100 ns more. Passes are off: they would make one launch of the built-in ones.

use std::{
    hint::black_box,
    sync::LazyLock,
    time::{Duration, Instant},
};

use graphable::{Passes, custom::CustomOp, prelude::*};

/// Launches of a batch: fewer than the stream's queue holds.
const LAUNCHES: u32 = 1000;
const BATCHES: usize = 300;

fn custom_neg<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    static NEG: LazyLock<CustomOp> = LazyLock::new(|| {
        CustomOp::builder("custom_neg")
            .cpu(|call| {
                let (x, y) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
                y.iter_mut().zip(x).for_each(|(y, x)| *y = -x);
                Ok(())
            })
            .build()
    });
    NEG.call(x.scope()).input(x).output_like(x).run()
}

/// Which operation a batch launches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ConfigValue)]
enum Kind {
    BuiltIn,
    Custom,
}

#[graphable]
fn chain(x: &Tensor<f32>, #[key] kind: Kind, #[key] number: u64) -> Result<Tensor<f32>> {
    // One recording for each number; the work is the same.
    let _ = number;
    let mut y = ops::neg(x)?;
    for _ in 0..LAUNCHES {
        y = match kind {
            Kind::BuiltIn => ops::neg(&y)?,
            Kind::Custom => custom_neg(&y)?,
        };
    }
    Ok(y)
}

/// Launches between calls.
fn launched(rt: &mut Runtime, kind: Kind) -> Result<Duration> {
    let step = rt.step()?;
    let x = step.tensor(&[16], &[1.0f32; 16])?;
    step.read(&x)?;
    let start = Instant::now();
    for _ in 0..LAUNCHES {
        let y = match kind {
            Kind::BuiltIn => ops::neg(&x)?,
            Kind::Custom => custom_neg(&x)?,
        };
        drop(black_box(y));
    }
    let taken = start.elapsed();
    step.synchronize()?;
    Ok(taken)
}

/// The call that records a function for the first time.
fn recorded(rt: &mut Runtime, kind: Kind, number: u64) -> Result<Duration> {
    let graph = without_passes(rt)?;
    let mut taken = Duration::ZERO;
    for round in 0..2 {
        let step = rt.step()?;
        let x = step.tensor(&[16], &[1.0f32; 16])?;
        step.read(&x)?;
        let before = step.stats().recordings;
        let start = Instant::now();
        let y = graph.call(&step, &x, kind, number)?;
        taken = start.elapsed();
        assert_eq!(step.stats().recordings - before, round, "the second call records");
        step.read(&y)?;
    }
    Ok(taken)
}

fn without_passes(rt: &mut Runtime) -> Result<ChainGraph> {
    ChainGraph::builder().mode(Mode::Full).passes(Passes::none()).build(rt)
}

/// A call of a recording of [`LAUNCHES`] operations, until the host goes on; or one that makes it.
fn called(rt: &mut Runtime, graph: &ChainGraph, kind: Kind, replays: u64) -> Result<Duration> {
    let step = rt.step()?;
    let x = step.tensor(&[16], &[1.0f32; 16])?;
    step.read(&x)?;
    let before = step.stats().replays;
    let start = Instant::now();
    let y = graph.call(&step, &x, kind, 0)?;
    let taken = start.elapsed();
    step.read(&y)?;
    assert_eq!(step.stats().replays - before, replays);
    Ok(taken)
}

/// Nanoseconds of one launch.
fn median(mut taken: Vec<Duration>) -> f64 {
    taken.sort_unstable();
    taken[taken.len() / 2].as_nanos() as f64 / f64::from(LAUNCHES)
}

fn compare(what: &str, batches: usize, mut batch: impl FnMut(Kind) -> Result<Duration>) -> Result<()> {
    let (mut built_in, mut custom) = (Vec::new(), Vec::new());
    for i in 0..batches + 3 {
        let (a, b) = (batch(Kind::BuiltIn)?, batch(Kind::Custom)?);
        // Caches are cold in the first ones.
        if i >= 3 {
            built_in.push(a);
            custom.push(b);
        }
    }
    let (built_in, custom) = (median(built_in), median(custom));
    let (more, ratio) = (custom - built_in, custom / built_in);
    println!("{what}: built in {built_in:.0} ns, custom {custom:.0} ns: {more:+.0} ns, ratio {ratio:.2}");
    Ok(())
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    compare("launching an operation", BATCHES, |kind| launched(&mut rt, kind))?;
    let mut number = 0;
    compare("recording an operation", BATCHES / 10, |kind| {
        number += 1;
        recorded(&mut rt, kind, number)
    })?;
    let graph = without_passes(&mut rt)?;
    for kind in [Kind::BuiltIn, Kind::Custom] {
        called(&mut rt, &graph, kind, 0)?;
        called(&mut rt, &graph, kind, 0)?;
    }
    compare("replaying, for each of 1000 operations", BATCHES, |kind| called(&mut rt, &graph, kind, 1))
}

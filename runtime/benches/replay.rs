//! What a replayed segment costs the host, beyond its kernels, next to the same operations run eagerly.
//!
//! `cargo bench -p graphable --bench replay`
//!
//! The kernels run on the stream's own thread, so host time around the calls is the cost itself: the key is
//! written and compared, the recording goes on the stream's queue, the outputs come back as handles and are
//! dropped. Every batch starts and ends with an empty queue, outside the timed part, and is shorter than the
//! queue, so the host is never held back. `.../with kernels` is the whole time instead, to the last result.

use std::{
    borrow::Cow,
    hint::black_box,
    time::{Duration, Instant},
};

use criterion::{BenchmarkGroup, Criterion, measurement::WallTime};
use graphable::{
    __private::{FunctionSpec, GraphObject, Inputs, Options, Piecewise, Plan, PlanItem, Site},
    Device, Mode, Result, Runtime, Tensor, graphable, ops,
};

/// Calls of the segment in one call of the function. The stream's queue holds 4096 commands, and an eager
/// pass over the segment is seven.
const BATCH: u64 = 500;
const ELEMENTS: usize = 16;

static SITE: Site =
    Site { function: "bench", index: 0, file: file!(), first_line: line!(), last_line: line!() };
static ITEMS: [PlanItem; 1] = [PlanItem::Segment {
    site: &SITE,
    live_ins: &["a", "b", "c", "d", "e", "f", "g", "h"],
    live_outs: &["sum"],
}];
static PLAN: Plan = Plan { function: "bench", file: file!(), items: &ITEMS, host_statement: None };

type Values<'s> = [Tensor<'s, f32>; 8];
type Key<'a, 's> = (
    &'a Tensor<'s, f32>,
    &'a Tensor<'s, f32>,
    &'a Tensor<'s, f32>,
    &'a Tensor<'s, f32>,
    &'a Tensor<'s, f32>,
    &'a Tensor<'s, f32>,
    &'a Tensor<'s, f32>,
    &'a Tensor<'s, f32>,
);

/// Seven kernels.
fn sum<'s>(k: &Key<'_, 's>) -> Result<Tensor<'s, f32>> {
    let left = ops::add(&ops::add(k.0, k.1)?, &ops::add(k.2, k.3)?)?;
    let right = ops::add(&ops::add(k.4, k.5)?, &ops::add(k.6, k.7)?)?;
    ops::add(&left, &right)
}

/// No kernel: the output is a view of a live-in.
fn view<'s>(k: &Key<'_, 's>) -> Result<Tensor<'s, f32>> {
    ops::narrow(k.7, 0, 0, ELEMENTS / 2)
}

fn key<'a, 's>(v: &'a Values<'s>) -> Key<'a, 's> {
    let [a, b, c, d, e, f, g, h] = v;
    (a, b, c, d, e, f, g, h)
}

/// What a batch measures.
#[derive(Clone, Copy)]
enum Until {
    /// The last call has returned.
    Returned,
    /// The last kernel has run.
    Done,
}

struct Bench {
    rt: Runtime,
    function: GraphObject,
}

impl Bench {
    fn new(mode: Mode) -> Result<Self> {
        let mut rt = Runtime::new(Device::cpu())?;
        let spec = FunctionSpec { name: "bench", plan: &PLAN, symbols: &[], inputs: Cow::Borrowed(&[]) };
        let mut options = Options::default();
        options.mode(mode);
        let function = GraphObject::new(&mut rt, spec, options)?;
        Ok(Self { rt, function })
    }

    /// One step that runs `part` `n` times in a call of the function.
    fn batch(
        &mut self,
        n: u64,
        until: Until,
        part: impl for<'s> Fn(Piecewise<'s>, &Values<'s>) -> Result<()>,
    ) -> Result<Duration> {
        let step = self.rt.step()?;
        let mut values = Vec::with_capacity(8);
        for i in 0..8 {
            values.push(step.tensor(&[ELEMENTS], &[i as f32; ELEMENTS])?);
        }
        let Ok(values) = Values::try_from(values) else { unreachable!("eight were pushed") };
        // Waits for the values, and so for everything before.
        step.read(&values[7])?;
        let mut taken = Duration::ZERO;
        Inputs::new(&step, &self.function).enter(())?.run(|cx| -> Result<()> {
            let start = Instant::now();
            for _ in 0..n {
                part(cx, &values)?;
            }
            taken = start.elapsed();
            Ok(())
        })?;
        let start = Instant::now();
        step.read(&values[7])?;
        Ok(match until {
            Until::Returned => taken,
            Until::Done => taken + start.elapsed(),
        })
    }
}

fn measure(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    mode: Mode,
    until: Until,
    part: impl for<'s> Fn(Piecewise<'s>, &Values<'s>) -> Result<()>,
) {
    let mut bench = Bench::new(mode).expect("the CPU is always there");
    group.bench_function(name, |b| {
        b.iter_custom(|iterations| {
            // Warm-up and recording; nothing is left to record after them.
            for _ in 0..3 {
                bench.batch(2, until, &part).expect("warm-up");
            }
            let before = bench.rt.stats();
            let mut taken = Duration::ZERO;
            let mut left = iterations;
            while left > 0 {
                let n = left.min(BATCH);
                taken += bench.batch(n, until, &part).expect("a batch");
                left -= n;
            }
            let after = bench.rt.stats();
            assert_eq!((before.warmups, before.recordings), (after.warmups, after.recordings));
            let replays = if mode == Mode::None { 0 } else { iterations };
            assert_eq!(after.replays - before.replays, replays, "every call must be a replay");
            taken
        });
    });
}

/// The same through the attribute: a whole call, with its frame, inputs and outputs.
#[graphable]
#[allow(clippy::too_many_arguments, reason = "eight live-ins are what is measured")]
fn whole(
    a: &Tensor<f32>,
    b: &Tensor<f32>,
    c: &Tensor<f32>,
    d: &Tensor<f32>,
    e: &Tensor<f32>,
    f: &Tensor<f32>,
    g: &Tensor<f32>,
    h: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    sum(&(a, b, c, d, e, f, g, h))
}

fn measure_call(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, mode: Mode) {
    let mut rt = Runtime::new(Device::cpu()).expect("the CPU is always there");
    let graph = WholeGraph::builder().mode(mode).build(&mut rt).expect("no options");
    let batch = |rt: &mut Runtime, n: u64| -> Result<Duration> {
        let step = rt.step()?;
        let x = step.tensor(&[ELEMENTS], &[1.0; ELEMENTS])?;
        step.read(&x)?;
        let start = Instant::now();
        for _ in 0..n {
            drop(black_box(graph.call(&step, &x, &x, &x, &x, &x, &x, &x, &x)?));
        }
        let taken = start.elapsed();
        step.read(&x)?;
        Ok(taken)
    };
    group.bench_function(name, |b| {
        b.iter_custom(|iterations| {
            for _ in 0..4 {
                batch(&mut rt, 2).expect("warm-up");
            }
            let before = rt.stats();
            let mut taken = Duration::ZERO;
            let mut left = iterations;
            while left > 0 {
                let n = left.min(BATCH);
                taken += batch(&mut rt, n).expect("a batch");
                left -= n;
            }
            let after = rt.stats();
            assert_eq!((before.warmups, before.recordings), (after.warmups, after.recordings));
            taken
        });
    });
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("eight live-ins");
    let replayed =
        |cx: Piecewise<'_>, v: &Values<'_>| cx.segment(&SITE, key(v), sum).map(|out| drop(black_box(out)));
    let views =
        |cx: Piecewise<'_>, v: &Values<'_>| cx.segment(&SITE, key(v), view).map(|out| drop(black_box(out)));
    measure(&mut group, "replay, no kernel", Mode::Piecewise, Until::Returned, views);
    measure(&mut group, "replay, 7 kernels", Mode::Piecewise, Until::Returned, replayed);
    measure(&mut group, "eager, 7 kernels", Mode::None, Until::Returned, replayed);
    measure(&mut group, "replay, 7 kernels/with kernels", Mode::Piecewise, Until::Done, replayed);
    measure(&mut group, "eager, 7 kernels/with kernels", Mode::None, Until::Done, replayed);
    measure_call(&mut group, "call of a function, replayed", Mode::Piecewise);
    measure_call(&mut group, "call of a function, eager", Mode::None);
    group.finish();
    criterion.final_summary();
}

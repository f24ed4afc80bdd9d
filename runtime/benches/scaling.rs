//! What one more costs where there are many: each row is one thing, each column how much there is.
//!
//! `cargo bench -p graphable --bench scaling`, or with `-- evict` only the rows whose name has that in it.
//!
//! On the CPU backend, whose kernels run on another thread. A cost that grows with the logarithm of what there is
//! doubles from 10 to 100,000 at most, but for caches that no longer hold everything.

use std::{
    borrow::Cow,
    time::{Duration, Instant},
};

use graphable::{
    __private::{FunctionSpec, GraphObject, Inputs, Options, Piecewise, Plan, Site, capture_all},
    Device, Limits, Mode, Param, Result, Runtime, State, Step, Tensor, join_all, ops,
};

const COUNTS: [usize; 5] = [10, 100, 1000, 10_000, 100_000];
/// A row ends where a column would take longer.
const PATIENCE: Duration = Duration::from_secs(60);

static SITE: Site =
    Site { function: "bench", index: 0, file: file!(), first_line: line!(), last_line: line!() };
static PLAN: Plan = Plan { function: "bench", file: file!(), items: &[], host_statement: None };

struct Bench {
    rt: Runtime,
    function: GraphObject,
}

impl Bench {
    fn new() -> Result<Self> {
        let mut rt = Runtime::new(Device::cpu())?;
        let spec = FunctionSpec { name: "bench", plan: &PLAN, symbols: &[], inputs: Cow::Borrowed(&[]) };
        let mut options = Options::default();
        options.mode(Mode::Piecewise);
        let unlimited = |limits: &mut Limits| {
            limits.max_recordings = usize::MAX;
            limits.warn_shapes = 0;
        };
        options.limits(unlimited);
        let function = GraphObject::new(&mut rt, spec, options)?;
        Ok(Self { rt, function })
    }

    /// One step with one call; the time of what `part` times.
    fn call(
        &mut self,
        part: impl for<'s> FnOnce(Piecewise<'s>, &Tensor<'s, f32>) -> Result<Duration>,
    ) -> Result<Duration> {
        let step = self.rt.step()?;
        let x = step.tensor(&[1], &[1.0f32])?;
        let mut taken = Duration::ZERO;
        Inputs::new(&step, &self.function).enter(())?.run(|cx| -> Result<()> {
            taken = part(cx, &x)?;
            Ok(())
        })?;
        drop(x);
        drop(step);
        self.rt.synchronize()?;
        Ok(taken)
    }

    /// One segment that uses a parameter, in a step of its own.
    fn with(&mut self, w: &Param<f32>) -> Result<()> {
        let segment = |cx: Piecewise<'_>, x: &Tensor<'_, f32>| {
            drop(cx.segment(&SITE, (x, w), |k| ops::add(k.0, k.1))?);
            Ok(Duration::ZERO)
        };
        self.call(segment).map(drop)
    }

    /// That many recordings, one for each of these parameters.
    fn recorded(n: usize) -> Result<(Self, Vec<Param<f32>>)> {
        let mut bench = Self::new()?;
        let all: Result<Vec<_>> = (0..n).map(|i| Param::new(&bench.rt, &[1], &[i as f32])).collect();
        let all = all?;
        bench.with(&all[0])?;
        for w in &all {
            bench.with(w)?;
        }
        Ok((bench, all))
    }
}

fn each(taken: Duration, n: usize) -> Duration {
    taken / n.max(1) as u32
}

/// A step in which a parameter is replaced, recorded and run, and the old one evicted.
fn evict(n: usize) -> Result<Duration> {
    let (mut bench, mut all) = Bench::recorded(n)?;
    const TURNS: usize = 100;
    let begun = Instant::now();
    for turn in 0..TURNS {
        let at = turn * 7 % all.len();
        all[at] = Param::new(&bench.rt, &[1], &[0.5])?;
        bench.with(&all[at])?;
    }
    Ok(each(begun.elapsed(), TURNS))
}

fn stats(n: usize) -> Result<Duration> {
    let (bench, all) = Bench::recorded(n)?;
    const TURNS: usize = 1000;
    let begun = Instant::now();
    for _ in 0..TURNS {
        std::hint::black_box(bench.rt.stats());
    }
    let taken = begun.elapsed();
    drop(all);
    Ok(each(taken, TURNS))
}

fn parameters(n: usize) -> Result<Duration> {
    let rt = Runtime::new(Device::cpu())?;
    let all: Result<Vec<_>> = (0..n).map(|i| Param::new(&rt, &[1], &[i as f32])).collect();
    let all = all?;
    const TURNS: usize = 1000;
    let begun = Instant::now();
    for _ in 0..TURNS {
        drop(Param::new(&rt, &[1], &[0.5])?);
    }
    let taken = begun.elapsed();
    drop(all);
    Ok(each(taken, TURNS))
}

fn tensors<'s>(step: &Step<'s>, n: usize) -> Result<Vec<Tensor<'s, f32>>> {
    (0..n).map(|_| step.tensor(&[1], &[1.0f32])).collect()
}

/// An eager tensor made and dropped beside that many.
fn placement(n: usize) -> Result<Duration> {
    let mut rt = Runtime::new(Device::cpu())?;
    let step = rt.step()?;
    let all = tensors(&step, n)?;
    // With an empty queue the host is not held back.
    step.read(&all[0])?;
    const TURNS: usize = 1000;
    let begun = Instant::now();
    for _ in 0..TURNS {
        drop(step.tensor(&[1], &[2.0f32])?);
    }
    let taken = begun.elapsed();
    drop(all);
    Ok(each(taken, TURNS))
}

/// Each of that many tensors of a segment, dropped by the driver before the next segment asks for the pool's state.
fn dropped(n: usize) -> Result<Duration> {
    let mut bench = Bench::new()?;
    let count = n as u64;
    let mut taken = Duration::ZERO;
    for _ in 0..3 {
        taken = bench.call(|cx, x| {
            let many = cx.segment(&SITE, (x, count), |k| -> Result<Vec<_>> {
                (0..k.1).map(|_| ops::neg(k.0)).collect()
            })?;
            let begun = Instant::now();
            drop(many);
            cx.segment(&SITE, (x,), |k| ops::neg(k.0)).map(drop)?;
            Ok(begun.elapsed())
        })?;
    }
    Ok(each(taken, n))
}

/// A value kept in a step of its own, beside that many.
fn keep(n: usize) -> Result<Duration> {
    let mut rt = Runtime::new(Device::cpu())?;
    let mut held = Vec::new();
    let one = |rt: &mut Runtime| {
        let step = rt.step()?;
        step.keep(&step.tensor(&[1], &[1.0f32])?)
    };
    for _ in 0..n {
        held.push(one(&mut rt)?);
    }
    const TURNS: usize = 1000;
    let begun = Instant::now();
    for _ in 0..TURNS {
        drop(one(&mut rt)?);
    }
    Ok(each(begun.elapsed(), TURNS))
}

/// One layer of a body of that many, warmed up and recorded.
fn layers(n: usize) -> Result<Duration> {
    let mut bench = Bench::new()?;
    let weights: Result<Vec<_>> = (0..n).map(|i| Param::new(&bench.rt, &[1], &[i as f32])).collect();
    let weights = weights?;
    let begun = Instant::now();
    for _ in 0..2 {
        bench.call(|cx, x| {
            let y = cx.segment(&SITE, (x, &weights), |k| {
                k.1.iter().try_fold(ops::neg(k.0)?, |h, w| ops::add(&h, w))
            })?;
            drop(y);
            Ok(Duration::ZERO)
        })?;
    }
    Ok(each(begun.elapsed(), n))
}

/// One branch of a fork of that many, warmed up and recorded.
fn branches(n: usize) -> Result<Duration> {
    let mut bench = Bench::new()?;
    let count = n as u64;
    let begun = Instant::now();
    for _ in 0..2 {
        bench.call(|cx, x| {
            let all = cx.segment(&SITE, (x, count), |k| {
                let x = k.0;
                join_all(x.scope(), (0..k.1).map(|_| move || ops::neg(x)))
            })?;
            drop(all);
            Ok(Duration::ZERO)
        })?;
    }
    Ok(each(begun.elapsed(), n))
}

/// A segment of a chain of that many: recorded, and shown by `Runtime::tree`.
fn chain(n: usize, shown: bool) -> Result<Duration> {
    let mut bench = Bench::new()?;
    let mut taken = Duration::ZERO;
    for _ in 0..2 {
        taken = bench.call(|cx, x| {
            let begun = Instant::now();
            let mut h = cx.segment(&SITE, (x,), |k| ops::neg(k.0))?;
            for i in 1..n as u64 {
                h = cx.segment(&SITE, (&h, i), |k| ops::neg(k.0))?;
            }
            drop(h);
            Ok(begun.elapsed())
        })?;
    }
    if shown {
        let begun = Instant::now();
        std::hint::black_box(bench.rt.tree());
        taken = begun.elapsed();
    }
    Ok(each(taken, n))
}

/// A write to state while everything that is written is saved, beside that many states: what `capture_all` does.
fn saved(n: usize) -> Result<Duration> {
    let mut rt = Runtime::new(Device::cpu())?;
    let states: Result<Vec<_>> = (0..n).map(|_| State::<f32>::zeros(&rt, &[1])).collect();
    let states = states?;
    rt.synchronize()?;
    let spec = FunctionSpec { name: "bench", plan: &PLAN, symbols: &[], inputs: Cow::Borrowed(&[]) };
    let mut options = Options::default();
    options.mode(Mode::Piecewise);
    let function = GraphObject::new(&mut rt, spec, options)?;
    const TURNS: usize = 100;
    let mut taken = Duration::ZERO;
    let call = |step: &Step<'_>| {
        let frame = Inputs::new(step, &function).enter(())?;
        frame.run(|cx| -> Result<()> {
            let _region = cx.eager(&SITE, graphable::Support::Never)?;
            let one = ops::full(step.scope(), &[1], 1.0f32)?;
            let begun = Instant::now();
            for turn in 0..TURNS {
                ops::store(&states[turn * 31 % states.len()], &one)?;
            }
            taken = begun.elapsed();
            Ok(())
        })
    };
    let mut call = call;
    capture_all(&function, &mut rt, &mut |step, _| call(step), &mut |_| {})?;
    Ok(each(taken, TURNS))
}

type Row = (&'static str, fn(usize) -> Result<Duration>);

const ROWS: [Row; 11] = [
    ("evict: a step with a replaced parameter, beside n recordings", evict),
    ("stats: beside n recordings", stats),
    ("parameters: one made and dropped beside n", parameters),
    ("placement: an eager tensor beside n", placement),
    ("dropped: one of n tensors between two segments", dropped),
    ("keep: a step that keeps a value, beside n", keep),
    ("layers: one of n, warmed up and recorded", layers),
    ("branches: one of n, warmed up and recorded", branches),
    ("chain: one of n segments, recorded", |n| chain(n, false)),
    ("tree: one of n segments, shown", |n| chain(n, true)),
    ("saved: a write that capture_all saves, beside n states", saved),
];

fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let rows = ROWS.iter().filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|w| name.contains(w)));
    let most =
        std::env::var("GRAPHABLE_SCALING_MOST").ok().and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
    println!("{:<66}{}", "n", COUNTS.map(|n| format!("{n:>12}")).concat());
    for (name, row) in rows {
        print!("{name:<66}");
        for n in COUNTS.into_iter().filter(|&n| n <= most) {
            let begun = Instant::now();
            let taken = row(n)?;
            print!("{:>9.2} µs", taken.as_secs_f64() * 1e6);
            std::io::Write::flush(&mut std::io::stdout()).ok();
            if begun.elapsed() * 10 > PATIENCE {
                break;
            }
        }
        println!();
    }
    Ok(())
}

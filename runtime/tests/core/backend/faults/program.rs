//! The representative program: it makes every call that a backend has.

use std::{cell::RefCell, sync::Arc, time::Duration};

use graphable::{
    Error, Mode, Param, PinnedBuffer, PinnedLog, Result, Runtime, Schedule, State, Step,
    backend::faulty::{FaultPlan, FaultyBackend},
    control, join, kernel, ops,
};

use crate::{
    custom_ops::{scaled_by_library, times},
    support::*,
};

/// Elements of a row: as many as a GPU's own kernels of products of few rows need, of which there is one for two rows, and
/// another one for four.
const WIDTH: usize = 4;
const ROWS: &[Dim] = &[Dim::Symbol(0), Dim::Const(WIDTH)];
/// Sizes of the calls, one step each: warm-up, recording, replay, another bucket, back again. Both buckets are recorded in a
/// call that fills them, so both recordings upload host values themselves.
pub(super) const SIZES: [usize; 8] = [3, 4, 3, 1, 2, 1, 4, 2];

/// A row of each: it reads the real number of rows.
#[kernel(index)]
fn with_row(x: View<f32, 2>, row: View<f32, 1>, [i, j]: [i32; 2]) -> f32 {
    x.at([x.dim(0) - 1 - (x.dim(0) - 1 - i), j]) + row.at([j])
}

/// How it is run.
#[derive(Clone, Copy)]
pub(super) struct Setup {
    pub(super) mode: Mode,
    pub(super) audited: bool,
    /// Recordings share executables.
    pub(super) shares: bool,
}

impl Setup {
    pub(super) fn of(mode: Mode) -> Self {
        Self { mode, audited: false, shares: false }
    }
}

impl std::fmt::Display for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let audited = if self.audited { ", audited" } else { "" };
        write!(f, "{}{audited}{}", self.mode, if self.shares { ", shared" } else { "" })
    }
}

/// A runtime that fails as `plan` says, from its first call on.
pub(super) fn open(plan: &Arc<FaultPlan>) -> Result<Runtime> {
    let inner = crate::device::backend(options());
    Runtime::with_backend(Box::new(FaultyBackend::new(inner, Arc::clone(plan))))
}

/// Everything that lives longer than a step.
pub(super) struct Program {
    graph: Graph,
    w: Param<f32>,
    counter: State<f32>,
    /// What is added to the counter, and more than travels with other inputs.
    ones: PinnedBuffer<f32>,
    results: RefCell<PinnedBuffer<f32>>,
    /// To which each call appends the counter.
    log: PinnedLog<f32>,
}

impl Program {
    pub(super) fn new(rt: &mut Runtime, setup: Setup) -> Result<Self> {
        // Whatever an update takes: the number of calls must not depend on a clock.
        rt.share_executables(setup.shares.then_some(Duration::MAX));
        let w = Param::new(rt, &[WIDTH, WIDTH], &weights())?;
        let counter = State::new(rt, &[WIDTH], &[0.0; WIDTH])?;
        let ones = PinnedBuffer::new(rt, &[1.0; 2048])?;
        let results = RefCell::new(PinnedBuffer::zeros(rt, 4 * WIDTH)?);
        let log = PinnedLog::new(rt, WIDTH)?;
        let inputs = vec![host("x", ROWS), device("d", ROWS), scalar("s"), host("ones", &[Dim::Const(2048)])];
        let spec = Spec { symbols: &["B"], ..Spec::inputs(inputs) };
        let spec = spec.mode(setup.mode).with(|o| {
            o.bucket("B", Schedule::new([2, 4]));
            o.audit_every(if setup.audited { 2 } else { 0 });
        });
        Ok(Self { graph: spec.try_build(rt)?, w, counter, ones, results, log })
    }

    /// `((x + d) w^T) * s + counter`, after adding 1 to the counter; through a region that reads.
    fn call<'s>(&self, step: &Step<'s>, n: usize) -> Result<T<'s>> {
        let x: Vec<f32> = (0..WIDTH * n).map(|i| i as f32).collect();
        let d = step.tensor(&[n, WIDTH], &vec![0.5; WIDTH * n])?;
        let Self { graph, w, counter, ones, log, .. } = self;
        let ins = [In::Host((&x).into()), In::Device(&d), In::Scalar(10.0), In::Host(ones.into())];
        graph.call(step, &ins, (w, counter, log), |cx, a| {
            let (h,) = seg!("a", cx, (&a.t[0], &a.t[1], w, counter, &a.t[2], log), |k| {
                let scope = k.0.scope();
                let (next, sum) = join(
                    scope,
                    || ops::add(&ops::load(scope, k.3)?, &ops::narrow(k.4, 0, 0, WIDTH)?),
                    || ops::add(k.0, k.1),
                )?;
                ops::store(k.3, &next)?;
                ops::append(k.5, &next)?;
                Ok((ops::linear(&sum, k.2)?,))
            })?;
            let e = if graph.is(Mode::Full) {
                eager!("e", Always, cx, |_e| times(&h, &a.scalars[0]))
            } else {
                eager!("e", cx, |e| {
                    let seen = e.read(&h)?;
                    assert_eq!(seen, projected(n), "a region must not see wrong values");
                    times(&h, &a.scalars[0])
                })
            };
            seg!("b", cx, (&e, counter), |k| {
                let sum = with_row(k.0, k.1, k.0.shape())?;
                by_parity(&scaled_by_library(&sum, 1.0)?, k.1)
            })
        })
    }

    pub(super) fn reset(&self, step: &Step<'_>, count: f32) -> Result<()> {
        ops::store(&self.counter, &step.tensor(&[WIDTH], &[count; WIDTH])?)
    }

    /// Overwrites the weights in place, from the host, from the device and from pinned memory, at last with what they were.
    fn overwrite(&self, step: &Step<'_>) -> Result<()> {
        self.w.write_rows(step, 0..1, &step.tensor(&[1, WIDTH], &[7.0; WIDTH])?)?;
        self.w.write(step, self.ones.part(..WIDTH * WIDTH)?)?;
        self.w.write(step, &weights())?;
        assert_eq!(self.w.read(step)?.wait()?, weights());
        Ok(())
    }

    /// One step of the program.
    pub(super) fn step(&self, rt: &mut Runtime, n: usize) -> Result<Vec<f32>> {
        let step = rt.step()?;
        self.overwrite(&step)?;
        let mut reader = self.log.reader(&step)?;
        let y = self.call(&step, n)?;
        let later = step.read_later(&y)?;
        let mut results = self.results.borrow_mut();
        let read = step.read_into(&y, &mut results)?;
        step.synchronize()?;
        let values = later.wait()?;
        assert_eq!(read.wait()?, values);
        let count = values[0] - 10.0 * projected(n)[0];
        assert_eq!(reader.take()?, [count; WIDTH], "appended once, and read when the call has ended");
        Ok(values)
    }

    /// Runs all steps until the first error; tells which step it was.
    pub(super) fn run(&self, rt: &mut Runtime) -> Result<(), (usize, Error)> {
        for (i, &n) in SIZES.iter().enumerate() {
            let y = self.step(rt, n).map_err(|e| (i, e))?;
            assert_eq!(y, expected(n, (i + 1) as f32), "step {i}");
        }
        Ok(())
    }
}

/// `y`, in one of two ways by whether the counter is even: by a loop of two rounds, or by two operations.
fn by_parity<'s>(y: &T<'s>, counter: &State<f32>) -> Result<T<'s>> {
    let scope = y.scope();
    let count = ops::max(&ops::load(scope, counter)?, 0)?;
    let is_even = ops::lt(&ops::remainder(&count, 2.0)?, 0.5)?;
    control::cond(
        &is_even,
        || {
            let zero = ops::full(scope, (), 0u32)?;
            let (_, more) = control::while_loop(
                2,
                (zero, y.clone()),
                |(i, _)| ops::lt(i, 2),
                |(i, y)| Ok::<_, Error>((ops::add(&i, 1)?, ops::add(&y, 1.0)?)),
            )?;
            ops::sub(&more, 2.0)
        },
        || ops::neg(&ops::neg(y)?),
    )
}

fn weights() -> Vec<f32> {
    let diagonal = |i: usize| if i % WIDTH == i / WIDTH { factor(i / WIDTH) } else { 0.0 };
    (0..WIDTH * WIDTH).map(diagonal).collect()
}

/// On the diagonal of the weights.
fn factor(column: usize) -> f32 {
    (2 + column) as f32
}

fn projected(n: usize) -> Vec<f32> {
    (0..WIDTH * n).map(|i| (i as f32 + 0.5) * factor(i % WIDTH)).collect()
}

/// What a call of size `n` gives when the counter is at `count` after it.
pub(super) fn expected(n: usize, count: f32) -> Vec<f32> {
    projected(n).iter().map(|v| v * 10.0 + count).collect()
}

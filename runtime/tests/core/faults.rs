//! Every call of the backend fails once, at every place where the program makes it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use graphable::{
    Error, Mode, Param, Result, Runtime, Schedule, State, Step,
    backend::faulty::{FaultCall, FaultPlan},
    join, ops,
};

use crate::support::*;

const ROWS: &[Dim] = &[Dim::Symbol(0), Dim::Const(2)];
/// Sizes of the calls, one step each: warm-up, recording, replay, another bucket, back again.
const SIZES: [usize; 8] = [3, 4, 3, 2, 1, 2, 4, 1];

/// Everything that lives longer than a step.
struct Program {
    graph: Graph,
    w: Param<f32>,
    counter: State<f32>,
}

impl Program {
    fn new(rt: &mut Runtime, mode: Mode) -> Result<Self> {
        let w = Param::new(rt, &[2, 2], &[2.0, 0.0, 0.0, 3.0])?;
        let counter = State::new(rt, &[2], &[0.0; 2])?;
        let inputs = vec![host("x", ROWS), device("d", ROWS), scalar("s")];
        let spec = Spec { symbols: &["B"], ..Spec::inputs(inputs) };
        let graph = spec.mode(mode).with(|o| o.bucket("B", Schedule::new([2, 4]))).try_build(rt)?;
        Ok(Self { graph, w, counter })
    }

    /// `((x + d) w^T) * s + counter`, after adding 1 to the counter; through a region that reads.
    fn call<'s>(&self, step: &Step<'s>, n: usize) -> Result<T<'s>> {
        let x: Vec<f32> = (0..2 * n).map(|i| i as f32).collect();
        let d = step.tensor(&[n, 2], &vec![0.5; 2 * n])?;
        let Self { graph, w, counter } = self;
        graph.call(step, &[In::Host((&x).into()), In::Device(&d), In::Scalar(10.0)], (w, counter), |cx, a| {
            let (h,) = seg!("a", cx, (&a.t[0], &a.t[1], w, counter), |k| {
                let scope = k.0.scope();
                let (next, sum) = join(
                    scope,
                    || ops::add(&ops::load(scope, k.3)?, &ops::full(scope, &[2], 1.0f32)?),
                    || ops::add(k.0, k.1),
                )?;
                ops::store(k.3, &next)?;
                Ok((ops::linear(&sum, k.2)?,))
            })?;
            let e = if graph.is(Mode::Full) {
                eager!("e", Always, cx, |_e| ops::mul(&h, &a.scalars[0]))
            } else {
                eager!("e", cx, |e| {
                    let seen = e.read(&h)?;
                    assert_eq!(seen, projected(n), "a region must not see wrong values");
                    ops::mul(&h, &a.scalars[0])
                })
            };
            seg!("b", cx, (&e, counter), |k| ops::add(k.0, k.1))
        })
    }

    fn reset(&self, step: &Step<'_>, count: f32) -> Result<()> {
        ops::store(&self.counter, &step.tensor(&[2], &[count; 2])?)
    }
}

fn projected(n: usize) -> Vec<f32> {
    (0..2 * n).map(|i| (i as f32 + 0.5) * if i % 2 == 0 { 2.0 } else { 3.0 }).collect()
}

fn expected(n: usize, count: f32) -> Vec<f32> {
    projected(n).iter().map(|v| v * 10.0 + count).collect()
}

/// One step of the program.
fn step_once(rt: &mut Runtime, program: &Program, n: usize) -> Result<Vec<f32>> {
    let step = rt.step()?;
    let y = program.call(&step, n)?;
    step.read(&y)
}

/// Runs all steps until the first error; tells which step it was.
fn run(rt: &mut Runtime, program: &Program) -> Result<(), (usize, Error)> {
    for (i, &n) in SIZES.iter().enumerate() {
        let y = step_once(rt, program, n).map_err(|e| (i, e))?;
        assert_eq!(y, expected(n, (i + 1) as f32), "step {i}");
    }
    Ok(())
}

/// What a fault at one place led to.
#[derive(Default)]
struct Outcome {
    places: u64,
    /// How many errors came out of which step; the last is "while it was built".
    steps: [u32; SIZES.len() + 1],
    swallowed: u32,
}

fn injected(error: &Error) -> bool {
    matches!(error, Error::Device { device, why, .. } if device == "faulty" && why == "the test said so")
        // A segment that could not be recorded says so in the runtime's own words.
        || matches!(error, Error::Device { why, .. } if why.contains("the test said so"))
}

fn one_fault(mode: Mode, call: FaultCall, nth: u64, outcome: &mut Outcome) -> bool {
    let (mut rt, faults) = faulty();
    faults.arm(Some(call), nth, false);
    let program = match Program::new(&mut rt, mode) {
        Ok(program) => program,
        Err(error) => {
            assert!(injected(&error), "{call:?} {nth}: {error}");
            outcome.steps[SIZES.len()] += 1;
            assert!(!faults.disarm());
            Program::new(&mut rt, mode).unwrap()
        }
    };
    match run(&mut rt, &program) {
        Ok(()) => {
            if faults.disarm() {
                return false;
            }
            outcome.swallowed += u32::from(outcome.steps[SIZES.len()] == 0);
        }
        Err((at, error)) => {
            assert!(injected(&error), "{mode} {call:?} {nth}, step {at}: {error}");
            assert!(!faults.disarm(), "{mode} {call:?} {nth}: another error than the injected one: {error}");
            outcome.steps[at] += 1;
        }
    }
    outcome.places += 1;
    // The failed call may or may not have counted; from a known state on everything is right again.
    {
        let step = rt.step().unwrap();
        program.reset(&step, 100.0).unwrap();
    }
    for round in 0..3 {
        for (i, &n) in SIZES.iter().enumerate() {
            let count = 100.0 + (round * SIZES.len() + i + 1) as f32;
            let y = step_once(&mut rt, &program, n).unwrap();
            assert_eq!(y, expected(n, count), "{mode} {call:?} {nth}, round {round}, step {i}");
        }
    }
    let stats = rt.stats();
    let per_bucket = if mode == Mode::Full { 1 } else { 2 };
    let nodes = if mode == Mode::None { 0 } else { 2 * per_bucket };
    assert_eq!(stats.nodes, nodes, "{mode} {call:?} {nth}: {stats:?}");
    assert_eq!(stats.fallbacks, 0);
    drop(program);
    rt.step().unwrap();
    assert_eq!(rt.stats().nodes, 0, "{mode} {call:?} {nth}: everything is evicted");
    true
}

fn every_place(mode: Mode) {
    let mut reached = 0;
    for call in FaultCall::ALL {
        let mut outcome = Outcome::default();
        let mut nth = 0;
        while one_fault(mode, call, nth, &mut outcome) {
            nth += 1;
            assert!(nth < 500, "{call:?} never runs out");
        }
        let Outcome { places, steps, swallowed } = outcome;
        println!(
            "{mode:>9} {:13} {places:3} places; errors while built {}, in step {:?}; no error {swallowed}",
            format!("{call:?}"),
            steps[SIZES.len()],
            &steps[..SIZES.len()],
        );
        assert_eq!(swallowed, 0, "{mode} {call:?}: a fault was swallowed");
        reached += usize::from(places > 0);
    }
    // Without graphs nothing is captured or replayed, and there are no branches.
    assert_eq!(reached, if mode == Mode::None { 5 } else { FaultCall::ALL.len() });
}

#[test]
fn every_place_without_graphs() {
    every_place(Mode::None);
}

#[test]
fn every_place_piecewise() {
    every_place(Mode::Piecewise);
}

#[test]
fn every_place_in_full_mode() {
    every_place(Mode::Full);
}

#[test]
fn several_faults_in_a_row() {
    let (mut rt, faults) = faulty();
    let program = Program::new(&mut rt, Mode::Piecewise).unwrap();
    let mut failed = 0;
    for i in 0..400u64 {
        faults.arm(None, i * 7 % 23, false);
        if let Err(error) = step_once(&mut rt, &program, SIZES[i as usize % 8]) {
            assert!(injected(&error), "{error}");
            failed += 1;
        }
        faults.disarm();
        if i % 40 == 39 {
            let step = rt.step().unwrap();
            program.reset(&step, 0.0).unwrap();
            run(&mut rt, &program).unwrap();
        }
    }
    assert!(failed > 50, "{failed}");
    assert!(rt.stats().nodes <= 8, "{:?}", rt.stats());
}

fn lost_at(plan: &FaultPlan, rt: &mut Runtime, nth: u64) -> bool {
    plan.arm(None, nth, true);
    let program = match Program::new(rt, Mode::Piecewise) {
        Ok(program) => program,
        Err(error) => {
            assert!(matches!(error, Error::ContextLost { .. }), "{nth}: {error}");
            return true;
        }
    };
    match run(rt, &program) {
        Ok(()) => return false,
        Err((_, error)) => assert!(matches!(error, Error::ContextLost { .. }), "{nth}: {error}"),
    }
    for &n in &SIZES {
        match step_once(rt, &program, n) {
            Err(Error::ContextLost { .. }) => {}
            other => panic!("{nth}: {other:?}"),
        }
    }
    assert!(matches!(Param::new(rt, &[1], &[1.0f32]), Err(Error::ContextLost { .. })));
    drop(program);
    let _ = rt.step();
    true
}

#[test]
fn a_lost_device() {
    let mut nth = 0;
    loop {
        let (mut rt, plan) = faulty();
        let hit = catch_unwind(AssertUnwindSafe(|| lost_at(&plan, &mut rt, nth)));
        let hit = hit.unwrap_or_else(|_| panic!("panicked at place {nth}"));
        drop(rt);
        if !hit {
            break;
        }
        nth += 1;
    }
    println!("{nth} places");
    assert!(nth > 100, "{nth}");
}

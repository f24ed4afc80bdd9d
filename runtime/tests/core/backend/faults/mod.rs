//! Every call of the backend fails once, at every place where the program makes it.
//!
//! Each time: the error is typed and is the injected one, told at once or, where no caller is there to be
//! told (a block that is freed when a tensor is dropped), by the next step; the step after it is right;
//! nothing is left of it, neither tensors and blocks nor nodes, executables and memory. `--nocapture` shows
//! the table of calls and outcomes, which `docs/TESTING.md` explains.

mod invalidated;
mod lost;
mod program;

use std::{
    collections::BTreeMap,
    panic::resume_unwind,
    sync::{Arc, Mutex},
    thread,
};

use graphable::{
    __private::Live,
    Error, Mode, Runtime,
    backend::faulty::{FaultCall, FaultPlan},
};

#[cfg(target_os = "linux")]
use rustix::thread::CpuSet;

use crate::support::{INJECTED, injected};
use program::{Program, SIZES, Setup, expected, open};

/// Where the error of a fault came out.
#[derive(Default)]
struct Outcome {
    places: u64,
    opening: u32,
    building: u32,
    /// By the step.
    steps: [u32; SIZES.len()],
    /// By the step after the last one.
    later: u32,
    swallowed: u32,
}

fn injected_or_quoted(error: &Error) -> bool {
    injected(error) || matches!(error, Error::Device { reason, .. } if reason.contains(INJECTED))
}

/// Runs a test whose threads, the device's included, share one core. A step waits for the device some 30 times; between cores,
/// waking each other takes half of the time that these tests need.
fn on_one_core(test: impl FnOnce() + Send) {
    let core = Core::least_used();
    let pinned = || {
        core.take();
        test();
    };
    // The threads that it starts inherit its core; those of other tests do not.
    let result = thread::scope(|scope| scope.spawn(pinned).join());
    drop(core);
    if let Err(panic) = result {
        resume_unwind(panic);
    }
}

/// How many tests each core has.
static CORES: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// A core of a test. Where threads cannot be bound to cores, tests are only slower.
struct Core(usize);

impl Core {
    fn least_used() -> Self {
        let mut tests = CORES.lock().unwrap();
        #[cfg(target_os = "linux")]
        if let (true, Ok(all)) = (tests.is_empty(), rustix::thread::sched_getaffinity(None)) {
            tests.extend((0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core)).map(|core| (core, 0)));
        }
        let core = tests.iter().min_by_key(|(_, tests)| **tests).map_or(0, |(core, _)| *core);
        *tests.entry(core).or_default() += 1;
        Self(core)
    }

    /// Binds the current thread to it.
    fn take(&self) {
        #[cfg(target_os = "linux")]
        {
            let mut one = CpuSet::new();
            one.set(self.0);
            let _ = rustix::thread::sched_setaffinity(None, &one);
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if let Some(tests) = CORES.lock().unwrap().get_mut(&self.0) {
            *tests -= 1;
        }
    }
}

/// Nothing of a step is left once its tensors are.
fn no_tensors(rt: &Runtime, what: &str) {
    assert_eq!(Live::of(rt), Live::default(), "{what}: tensors or blocks are left");
}

/// Nothing that the program made is left; `rt` has no owner of anything any more.
fn nothing_left(mut rt: Runtime, plan: &FaultPlan, what: &str) {
    for _ in 0..100 {
        // A device lets go of what its launches use when they have ended, at one of the next calls.
        let step = rt.step().unwrap();
        drop(step.tensor(&[1], &[0.0f32]).unwrap());
        step.synchronize().unwrap();
        if plan.live_memory() == (0, 0) {
            break;
        }
    }
    assert_eq!(rt.stats().live_recordings, 0, "{what}: nodes are left");
    assert_eq!(plan.live_executables(), 0, "{what}: executables are left");
    assert_eq!(plan.live_memory(), (0, 0), "{what}: memory is left");
    no_tensors(&rt, what);
    drop(rt);
}

/// Opens, builds and runs; the injected error is noted, and what it interrupted is done again.
fn run_with_fault(
    plan: &Arc<FaultPlan>,
    setup: Setup,
    what: &str,
    outcome: &mut Outcome,
) -> (Runtime, Program) {
    let check = |error: &Error| {
        assert!(injected_or_quoted(error), "{what}: {error}");
        assert!(!plan.disarm(), "{what}: another error than the injected one: {error}");
    };
    let mut told = true;
    let mut rt = open(plan).unwrap_or_else(|error| {
        check(&error);
        outcome.opening += 1;
        assert_eq!(plan.live_memory(), (0, 0), "{what}: memory of a runtime that is none");
        open(plan).unwrap()
    });
    let program = Program::new(&mut rt, setup).unwrap_or_else(|error| {
        check(&error);
        outcome.building += 1;
        Program::new(&mut rt, setup).unwrap()
    });
    match program.run(&mut rt) {
        Ok(()) => told = outcome.opening + outcome.building > 0,
        Err((at, error)) => {
            check(&error);
            outcome.steps[at] += 1;
            no_tensors(&rt, what);
            // The failed call counted or did not; the next step knows nothing of it otherwise.
            let n = SIZES[at];
            let y = program.step(&mut rt, n).unwrap();
            let counts = [at + 1, at + 2].map(|count| expected(n, count as f32));
            assert!(counts.contains(&y), "{what}: the step after the one that failed gives {y:?}");
        }
    }
    no_tensors(&rt, what);
    if !told && let Err(error) = rt.step() {
        check(&error);
        outcome.later += 1;
    }
    (rt, program)
}

/// From a known state on everything is right again: a round of calls in which recordings are made where there are none, and one
/// that replays them and makes none.
fn right_again(rt: &mut Runtime, program: &Program) -> Result<(), String> {
    rt.step().and_then(|step| program.reset(&step, 100.0)).map_err(|error| format!("reset: {error}"))?;
    let mut count = 100.0;
    let mut round = |rt: &mut Runtime, name: &str| {
        for (i, &n) in SIZES.iter().enumerate() {
            count += 1.0;
            let y = program.step(rt, n);
            if !matches!(&y, Ok(y) if *y == expected(n, count)) {
                return Err(format!("{name}, step {i}: {y:?}"));
            }
        }
        let stats = rt.stats();
        Ok((stats.warmups, stats.recordings, stats.aborted, stats.captures_invalidated))
    };
    let recorded = round(rt, "the round that records")?;
    let replayed = round(rt, "the round that replays")?;
    if recorded != replayed {
        return Err(format!("recorded again: {recorded:?}, then {replayed:?}"));
    }
    Ok(())
}

/// `false` when there is no such place.
fn one_fault(setup: Setup, call: FaultCall, nth: u64, sums: &mut Outcome) -> bool {
    let what = format!("{setup}, {call:?} {nth}");
    let plan = Arc::new(FaultPlan::default());
    plan.arm(Some(call), nth, false);
    let mut outcome = Outcome::default();
    let (mut rt, program) = run_with_fault(&plan, setup, &what, &mut outcome);
    if plan.disarm() {
        nothing_left_of(rt, program, &plan, &what);
        return false;
    }
    let told = outcome.opening + outcome.building + outcome.later + outcome.steps.iter().sum::<u32>();
    sums.places += 1;
    sums.opening += outcome.opening;
    sums.building += outcome.building;
    sums.later += outcome.later;
    sums.steps.iter_mut().zip(outcome.steps).for_each(|(sum, n)| *sum += n);
    sums.swallowed += u32::from(told == 0);
    right_again(&mut rt, &program).unwrap_or_else(|reason| panic!("{what}: {reason}"));
    no_tensors(&rt, &what);
    let stats = rt.stats();
    let per_bucket = if setup.mode == Mode::Full { 1 } else { 2 };
    let nodes = if setup.mode == Mode::None { 0 } else { 2 * per_bucket };
    assert_eq!(stats.live_recordings, nodes, "{what}: {stats:?}");
    assert_eq!(stats.executables, plan.live_executables(), "{what}");
    match setup.shares {
        true => assert!(stats.executables < nodes, "{what}: {stats:?}"),
        false => assert_eq!(stats.executables, nodes, "{what}"),
    }
    assert_eq!(stats.fallbacks, 0);
    nothing_left_of(rt, program, &plan, &what);
    true
}

fn nothing_left_of(rt: Runtime, program: Program, plan: &FaultPlan, what: &str) {
    drop(program);
    nothing_left(rt, plan, what);
}

fn every_place(setup: Setup) {
    let Setup { mode, shares, .. } = setup;
    let mut reached = Vec::new();
    for call in FaultCall::ALL {
        let mut outcome = Outcome::default();
        let mut nth = 0;
        while one_fault(setup, call, nth, &mut outcome) {
            nth += 1;
            assert!(nth < 1000, "{call:?} never runs out");
        }
        let Outcome { places, opening, building, steps, later, swallowed } = outcome;
        println!(
            "{:18} {:13} {places:3} places; errors: opening {opening}, building {building}, in step {steps:?}, \
             later {later}",
            setup.to_string(),
            format!("{call:?}"),
        );
        assert_eq!(swallowed, 0, "{setup}, {call:?}: a fault was swallowed");
        if places > 0 {
            reached.push(call);
        }
    }
    use FaultCall::{
        BeginBody, BeginCapture, BeginConditional, Branch, EndCapture, EndConditional, Fork, Instantiate,
        Join, Replay, Update,
    };
    // Without graphs nothing is captured or replayed, and there are no branches and no nodes.
    let graphs = [
        BeginCapture,
        EndCapture,
        Instantiate,
        Replay,
        Fork,
        Branch,
        Join,
        BeginConditional,
        BeginBody,
        EndConditional,
    ];
    let all = FaultCall::ALL.into_iter().filter(|call| mode != Mode::None || !graphs.contains(call));
    let all = all.filter(|&call| shares || call != Update);
    assert_eq!(reached, all.collect::<Vec<_>>(), "the program reaches every call");
}

#[test]
fn every_place_without_graphs() {
    on_one_core(|| every_place(Setup::of(Mode::None)));
}

#[test]
fn every_place_piecewise() {
    on_one_core(|| every_place(Setup::of(Mode::Piecewise)));
}

#[test]
fn every_place_in_full_mode() {
    on_one_core(|| every_place(Setup::of(Mode::Full)));
}

#[test]
fn every_place_with_audits() {
    on_one_core(|| every_place(Setup { audited: true, ..Setup::of(Mode::Piecewise) }));
}

#[test]
fn every_place_with_shared_executables() {
    on_one_core(|| every_place(Setup { shares: true, ..Setup::of(Mode::Piecewise) }));
}

#[test]
fn every_place_with_shared_executables_and_audits() {
    on_one_core(|| every_place(Setup { shares: true, audited: true, ..Setup::of(Mode::Piecewise) }));
}

#[test]
fn several_faults_in_a_row() {
    let plan = Arc::new(FaultPlan::default());
    let mut rt = open(&plan).unwrap();
    let program = Program::new(&mut rt, Setup::of(Mode::Piecewise)).unwrap();
    let mut failed = 0;
    for i in 0..400u64 {
        plan.arm(None, i * 7 % 37, false);
        if let Err(error) = program.step(&mut rt, SIZES[i as usize % 8]) {
            assert!(injected_or_quoted(&error), "{error}");
            failed += 1;
        }
        plan.disarm();
        no_tensors(&rt, "several faults");
        if i % 40 == 39 {
            // What a drop at the end of the last step could not tell.
            if let Err(error) = rt.step() {
                assert!(injected_or_quoted(&error), "{error}");
            }
            let step = rt.step().unwrap();
            program.reset(&step, 0.0).unwrap();
            program.run(&mut rt).unwrap();
        }
    }
    assert!(failed > 50, "{failed}");
    assert!(rt.stats().live_recordings <= 8, "{:?}", rt.stats());
    nothing_left_of(rt, program, &plan, "several faults");
}

//! Faults that lose the device: everything fails from there on, says why and what to do, and goes cleanly.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use graphable::{
    Error, Mode, Param, Runtime, State,
    backend::faulty::{FaultCall, FaultPlan},
};

use super::{
    on_one_core,
    program::{Program, SIZES, Setup, open},
};
use crate::support::still_usable;

/// Shares executables, so that it makes every call.
const SETUP: Setup = Setup { mode: Mode::Piecewise, audited: false, shares: true };

/// The error says what was lost, why, and what to do.
fn explained(error: &Error, what: &str) {
    let Error::ContextLost { device, reason } = error else { panic!("{what}: {error}") };
    assert_eq!((device.as_str(), reason.as_str()), ("faulty", "the test said so"));
    let text = error.to_string();
    assert!(text.contains("faulty is lost: the test said so; its memory cannot be read any more"), "{text}");
}

fn poisoned<T>(result: Result<T, Error>, what: &str) {
    match result {
        Ok(_) => panic!("{what}: it works on a device that is lost"),
        Err(error) => explained(&error, what),
    }
}

/// Loses the device at one place; `false` when there is none.
fn lost_at(plan: &Arc<FaultPlan>, what: &str) -> bool {
    let mut rt = match open(plan) {
        Ok(rt) => rt,
        Err(error) => {
            explained(&error, what);
            poisoned(open(plan), what);
            return true;
        }
    };
    let program = match Program::new(&mut rt, SETUP) {
        Ok(program) => program,
        Err(error) => {
            explained(&error, what);
            poisoned(Program::new(&mut rt, SETUP).map(drop), what);
            poisoned(rt.synchronize(), what);
            return true;
        }
    };
    match program.run(&mut rt) {
        Ok(()) if plan.disarm() => return false,
        // It was lost where nobody could be told: when the last tensors were dropped.
        Ok(()) => {}
        Err((_, error)) => explained(&error, what),
    }
    // The state is one that stays: each call says so again, and none hangs or panics.
    for &n in &SIZES {
        poisoned(program.step(&mut rt, n), what);
    }
    poisoned(Param::new(&rt, &[1], &[1.0f32]), what);
    poisoned(State::<f32>::zeros(&rt, &[1]), what);
    poisoned(rt.synchronize(), what);
    drop(program);
    let _ = rt.step();
    assert_eq!(rt.stats().live_recordings, 0, "{what}: recordings go with their owners on a lost device too");
    drop(rt);
    true
}

/// All places of one call; how many there were.
fn every_place(call: FaultCall) -> u64 {
    for nth in 0..1000 {
        let what = format!("{call:?} {nth}");
        let plan = Arc::new(FaultPlan::default());
        plan.arm(Some(call), nth, true);
        let hit = catch_unwind(AssertUnwindSafe(|| lost_at(&plan, &what)));
        let hit = hit.unwrap_or_else(|_| panic!("panicked: {what}"));
        assert_eq!(plan.live_executables(), 0, "{what}: executables are left");
        if !hit {
            return nth;
        }
        assert_eq!(plan.live_memory(), (0, 0), "{what}: handles of memory are left");
    }
    panic!("{call:?} never runs out");
}

#[test]
fn a_lost_device() {
    on_one_core(|| {
        for call in FaultCall::ALL {
            let places = every_place(call);
            println!(
                "{:13} {places:3} places, each: lost, says so from there on, goes cleanly",
                format!("{call:?}")
            );
            assert!(places > 0, "the program reaches every call");
        }
    });
}

/// The remedy that the error names works: another runtime is not touched, and a new one can be made.
#[test]
fn another_runtime_goes_on() {
    let mut other = crate::support::runtime();
    let plan = Arc::new(FaultPlan::default());
    let mut rt: Runtime = open(&plan).unwrap();
    let program = Program::new(&mut rt, SETUP).unwrap();
    plan.arm(Some(FaultCall::Replay), 1, true);
    explained(&program.run(&mut rt).unwrap_err().1, "the second replay");
    still_usable(&mut other);
    drop((program, rt));
    still_usable(&mut other);
    still_usable(&mut crate::support::runtime());
}

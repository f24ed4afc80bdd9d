//! The representative program with invalidated captures, and a fault at every place.

use super::{program::*, *};

fn invalidated(
    setup: Setup,
    times: usize,
    after: Option<u64>,
    call: FaultCall,
    nth: u64,
) -> (bool, Option<String>) {
    let what = format!("{setup}, invalidated {times}x at {after:?}, {call:?} {nth}");
    let plan = Arc::new(FaultPlan::default());
    let mut rt = open(&plan).unwrap();
    let program = Program::new(&mut rt, setup).unwrap();
    plan.invalidate_captures(vec![after; times]);
    plan.arm(Some(call), nth, false);
    let mut bad = None;
    let mut told = false;
    match program.run(&mut rt) {
        Ok(()) => {}
        Err((_, e)) if injected_or_quoted(&e) => told = true,
        Err((at, e)) => bad = Some(format!("{what}: step {at}: {e}")),
    }
    if plan.disarm() {
        return (false, None);
    }
    if !told
        && bad.is_none()
        && let Err(e) = rt.step()
    {
        told = injected_or_quoted(&e);
    }
    if !told && bad.is_none() {
        bad = Some(format!("{what}: swallowed"));
    }
    // Nothing is invalidated any more.
    plan.invalidate_captures([Some(99999); 100]);
    if bad.is_none() {
        bad = right_again(&mut rt, &program).err().map(|reason| format!("{what}: {reason}"));
    }
    if bad.is_none() {
        let stats = rt.stats();
        let nodes = if setup.mode == Mode::Full { 2 } else { 4 };
        if stats.live_recordings != nodes || stats.executables != plan.live_executables() {
            bad = Some(format!("{what}: {stats:?}"));
        }
        nothing_left_of(rt, program, &plan, &what);
    }
    (true, bad)
}

fn every(setup: Setup) {
    let mut wrong = Vec::new();
    let mut places = 0;
    for (times, after) in [(1, Some(0)), (9, Some(2)), (2, None)] {
        for call in FaultCall::ALL {
            for nth in 0..1000 {
                // Opening makes these.
                let (hit, bad) = invalidated(setup, times, after, call, nth);
                if !hit {
                    break;
                }
                places += 1;
                wrong.extend(bad);
            }
        }
    }
    assert!(places > 300, "{places}");
    assert!(wrong.is_empty(), "{} of {places}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn piecewise() {
    on_one_core(|| every(Setup::of(Mode::Piecewise)));
}
#[test]
fn full() {
    on_one_core(|| every(Setup::of(Mode::Full)));
}
#[test]
fn audited() {
    on_one_core(|| every(Setup { audited: true, ..Setup::of(Mode::Piecewise) }));
}
#[test]
fn shared() {
    on_one_core(|| every(Setup { shares: true, ..Setup::of(Mode::Piecewise) }));
}
#[test]
fn shared_full() {
    on_one_core(|| every(Setup { shares: true, ..Setup::of(Mode::Full) }));
}

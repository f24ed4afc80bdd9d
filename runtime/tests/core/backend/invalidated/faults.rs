//! Every call of the backend fails after an invalidation.

use std::{sync::Arc, time::Duration};

use graphable::{
    Error, Mode, Result, State,
    backend::faulty::{FaultCall, FaultPlan},
    join, ops,
};

use crate::support::*;

pub(super) fn caused_by_the_plan(error: &Error) -> bool {
    injected(error)
        || error.to_string().contains(INJECTED)
        || matches!(error, Error::OutOfMemory { device, .. } if device == "faulty")
}

/// The output is `10 x`, whatever the state; the state counts the calls that ran.
pub(super) fn body<'s>(cx: Piecewise<'s>, x: &T<'s>, n: &State<f32>) -> Result<T<'s>> {
    let (h,) = seg!("a", cx, (x, n), |k| {
        let (a, b) = join(k.0.scope(), || ops::neg(&ops::scale(k.0, 3.0)?), || ops::scale(k.0, 5.0))?;
        let sum = ops::add(&a, &b)?;
        drop((a, b));
        let one = ops::full(k.0.scope(), &[2], 1.0f32)?;
        ops::store(k.1, &ops::add(&ops::load(k.0.scope(), k.1)?, &one)?)?;
        Ok((ops::scale(&sum, 5.0)?,))
    })?;
    Ok(h)
}

pub(super) struct Case {
    pub(super) rt: Checked,
    pub(super) plan: Arc<FaultPlan>,
    pub(super) graph: Graph,
    pub(super) total: State<f32>,
}

impl Case {
    pub(super) fn new(mode: Mode, shares: bool) -> Self {
        let (mut rt, plan) = faulty();
        rt.share_executables(shares.then_some(Duration::MAX));
        let graph = Spec::inputs(vec![host("x", &[Dim::Const(2)])]).mode(mode).build(&mut rt);
        let total = State::new(&rt, &[2], &[0.0f32; 2]).unwrap();
        Self { rt, plan, graph, total }
    }

    pub(super) fn call(&mut self) -> Result<Vec<f32>> {
        let step = self.rt.step()?;
        let total = &self.total;
        let y = self.graph.call(&step, &[x()], total, |cx, a| body(cx, &a.t[0], total))?;
        step.read(&y)
    }

    pub(super) fn total(&mut self) -> Result<Vec<f32>> {
        let step = self.rt.step()?;
        let total = ops::load(step.scope(), &self.total)?;
        step.read(&total)
    }
}

fn invalidations(times: usize, after: Option<u64>) -> Vec<Option<u64>> {
    vec![after; times]
}

/// Of one that is wrong already: its check may panic, too.
fn end(case: Case) {
    drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(case))));
}

/// What is wrong, if anything.
fn one(
    mode: Mode,
    shares: bool,
    times: usize,
    after: Option<u64>,
    call: FaultCall,
    nth: u64,
    full: bool,
) -> (bool, Option<String>) {
    let mut case = Case::new(mode, shares);
    assert_eq!(case.call().unwrap(), [10.0, 20.0]);
    case.plan.invalidate_captures(invalidations(times, after));
    match full {
        true => case.plan.run_out_of_memory(call, nth),
        false => case.plan.arm(Some(call), nth, false),
    }
    let result = case.call();
    let hit = !case.plan.disarm();
    let what =
        format!("{mode} shares {shares} invalidated {times}x at {after:?}, {call:?} {nth} full {full}");
    if !hit {
        // Its check counts.
        drop(case);
        return (false, None);
    }
    let mut wrong = None;
    let mut told = false;
    match &result {
        Ok(y) if *y != [10.0, 20.0] => wrong = Some(format!("{what}: gave {y:?}")),
        Ok(_) => {}
        Err(e) if caused_by_the_plan(e) => told = true,
        Err(e) => wrong = Some(format!("{what}: another error: {e}")),
    }
    // Late errors come once.
    match case.rt.step() {
        Ok(_) => {}
        Err(e) if caused_by_the_plan(&e) && !told => told = true,
        Err(e) => wrong = Some(format!("{what}: the next step says: {e}")),
    }
    if wrong.is_none() && !told {
        wrong = Some(format!("{what}: swallowed; {:?}", case.rt.stats().captures_invalidated));
    }
    case.plan.invalidate_captures([Some(9999); 20]);
    if wrong.is_none()
        && let Err(e) = case.rt.check_memory()
    {
        wrong = Some(format!("{what}: memory: {e}"));
    }
    if wrong.is_none() {
        for i in 0..4 {
            let before = case.total();
            let y = case.call();
            let after = case.total();
            match (&y, &before, &after) {
                (Ok(y), Ok(b), Ok(a)) if *y == [10.0, 20.0] && a[0] == b[0] + 1.0 => {}
                _ => {
                    wrong = Some(format!("{what}: call {i} after it: {y:?}, state {before:?} -> {after:?}"));
                    break;
                }
            }
        }
    }
    if wrong.is_none() {
        let stats = case.rt.stats();
        let segments = 1;
        if stats.live_recordings != segments || stats.executables != case.plan.live_executables() {
            wrong = Some(format!("{what}: {stats:?}"));
        }
        still_usable(&mut case.rt);
    } else {
        end(case);
    }
    (true, wrong)
}

fn all(calls: &[FaultCall], full: bool) {
    let mut wrong = Vec::new();
    let mut places = 0;
    for mode in [Mode::Piecewise, Mode::Full] {
        for shares in [false, true] {
            for (times, after) in
                [(1, None), (1, Some(0)), (1, Some(4)), (2, Some(3)), (9, Some(2)), (9, None)]
            {
                for &call in calls {
                    for nth in 0.. {
                        let (hit, bad) = one(mode, shares, times, after, call, nth, full);
                        if !hit {
                            break;
                        }
                        places += 1;
                        wrong.extend(bad);
                    }
                }
            }
        }
    }
    assert!(places > 0, "no fault was met");
    assert!(wrong.is_empty(), "{} of {places} places:\n{}", wrong.len(), wrong.join("\n"));
}

macro_rules! each { ($($name:ident $call:ident),*) => { $(
    #[test]
    fn $name() { all(&[FaultCall::$call], false); }
)* } }
each!(fault_at_workspace Workspace, fault_at_launch Launch, fault_at_copy Copy, fault_at_host_write HostWrite, fault_at_read Read,
    fault_at_begin BeginCapture, fault_at_end EndCapture, fault_at_instantiate Instantiate, fault_at_replay Replay, fault_at_poison Poison,
    fault_at_fork Fork, fault_at_branch Branch, fault_at_join Join, fault_at_wait Wait);

#[test]
fn out_of_memory_at_calls_of_a_capture() {
    all(&[FaultCall::Launch, FaultCall::BeginCapture, FaultCall::Instantiate], true);
}

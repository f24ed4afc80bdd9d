//! Captures that are invalidated, and audits.

use graphable::{Event, FallbackReason, backend::faulty::FaultCall, prelude::*};

use crate::support::faulty;

/// A counter in a loop, and a choice.
#[graphable]
fn counted(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host] n: &Scalar<u32>,
    total: &State<f32>,
    rng: &Rng,
) -> Result<Tensor<f32>> {
    let zero = ops::full(x.scope(), (), 0u32)?;
    let (_, y) = control::while_loop(
        9,
        (zero, x.clone()),
        |(i, _)| ops::lt(i, n),
        |(i, y)| {
            let y = control::cond(
                &ops::eq(&ops::remainder(&i, 2)?, 0)?,
                || ops::add(&y, &ops::uniform(rng, x.scope(), x.shape(), 0.0..1.0)?),
                || ops::neg(&y),
            )?;
            ops::store(total, &y)?;
            Ok::<_, Error>((ops::add(&i, 1)?, y))
        },
    )?;
    Ok::<_, Error>(y)
}

/// What some calls return and leave, with captures that are invalidated after so many commands, each.
fn run(mode: Mode, audit_every: u32, invalidations: &[Option<u64>]) -> (Vec<Vec<f32>>, Vec<Event>, u64) {
    let (mut rt, faults) = faulty();
    let (total, rng) = (State::zeros(&rt, &[2]).unwrap(), Rng::new(&rt, 3).unwrap());
    let graph = CountedGraph::builder().mode(mode).audit_every(audit_every).build(&mut rt).unwrap();
    faults.invalidate_captures(invalidations.iter().copied());
    let mut all = Vec::new();
    for n in [3, 1, 0, 5, 2, 4, 3] {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[1.0, 2.0], n, &total, &rng).unwrap();
        all.push(step.read(&y).unwrap());
        all.push(step.read(&ops::load(step.scope(), &total).unwrap()).unwrap());
        step.check_memory().unwrap();
    }
    let begun = faults.count(FaultCall::BeginConditional);
    (all, rt.take_events(), begun)
}

#[test]
fn invalidated_captures_are_made_again() {
    let (expected, _, _) = run(Mode::None, 0, &[]);
    for mode in [Mode::Piecewise, Mode::Full] {
        let (values, _, nodes) = run(mode, 0, &[]);
        assert_eq!((&values, nodes), (&expected, 2), "{mode}: a loop and a choice in it");
        for after in 0..28 {
            let (values, events, nodes) = run(mode, 0, &[Some(after)]);
            assert_eq!(values, expected, "{mode}, after {after} commands");
            let invalidated = events.iter().filter(|e| matches!(e, Event::CaptureInvalidated { .. })).count();
            let recorded = events.iter().filter(|e| matches!(e, Event::Recorded { .. })).count();
            assert!(
                invalidated == 1 && recorded > 0 && nodes >= 2,
                "{mode}, {after}: {invalidated} {recorded}"
            );
        }
        // Until the commands are run instead.
        let (values, events, _) = run(mode, 0, &[Some(4); 9]);
        assert_eq!(values, expected, "{mode}");
        let gave_up = |e: &&Event| {
            matches!(e, Event::FellBack { reason: FallbackReason::CaptureInvalidated { .. }, .. })
        };
        assert_eq!(events.iter().filter(gave_up).count(), 1, "{mode}");
    }
}

#[test]
fn audits_compare_every_body() {
    let (expected, _, _) = run(Mode::None, 0, &[]);
    for mode in [Mode::Piecewise, Mode::Full] {
        let (values, events, _) = run(mode, 1, &[]);
        assert_eq!(values, expected, "{mode}");
        let audits = events.iter().filter(|e| matches!(e, Event::Audited { .. })).count();
        assert!(audits >= 4, "{mode}: {audits}");
    }
}

/// Does something else in one of its bodies each time.
#[graphable]
fn fickle(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host] p: &Scalar<bool>,
) -> Result<Tensor<f32>> {
    control::cond(p, || ops::neg(x), || ops::scale(x, factor()))
}

fn factor() -> f32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed) as f32
}

#[test]
fn a_body_that_changes_is_noticed_whether_or_not_it_runs() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let (mut rt, _) = faulty();
        let graph = FickleGraph::builder().mode(mode).build(&mut rt).unwrap();
        let step = rt.step().unwrap();
        graph.call(&step, &[1.0], true).unwrap();
        drop(step);
        let step = rt.step().unwrap();
        let error = graph.call(&step, &[1.0], true).unwrap_err();
        assert!(matches!(error, Error::TraceMismatch { .. }), "{error}");
        step.check_memory().unwrap();
    }
}

//! `deny_fallback`: whatever would run without a graph unasked is an error that names reason and remedy.

use graphable::{Error, FallbackReason, Limits, OnMove, Result, Runtime, Schedule, ops};

use crate::{moves::blocks, support::*};

/// Calls with `size` elements behind `place` blocks.
fn call(rt: &mut Runtime, graph: &Graph, size: usize, place: usize) -> Result<Vec<f32>> {
    let step = rt.step().unwrap();
    let _below = blocks(&step, place);
    let t = step.tensor(&[size], &vec![1.0f32; size]).unwrap();
    let out = graph
        .call(&step, &[In::Device(&t)], (), |cx, a| seg!("a", cx, (&a.t[0],), |k| ops::scale(k.0, 2.0)))?;
    step.read(&out)
}

/// A graph that forbids fallbacks, and its twin that does not. Both know the size 2 at place 0.
fn pair(rt: &mut Runtime, set: &dyn Fn(&mut graphable::__private::Options)) -> [Graph; 2] {
    [true, false].map(|strict| {
        Spec { symbols: &["B"], ..Spec::inputs(vec![device("x", &[Dim::Symbol(0)])]) }
            .with(|o| {
                set(o);
                o.deny_fallback(strict);
            })
            .build(rt)
    })
}

#[test]
fn each_reason_is_an_error_with_a_remedy() {
    let limits = |set: fn(&mut Limits)| move |o: &mut graphable::__private::Options| o.limits(set);
    type Set = Box<dyn Fn(&mut graphable::__private::Options)>;
    // The option, the call that it forbids, the reason's name and the remedy.
    let cases: Vec<(Set, usize, usize, &str, &str)> = vec![
        (Box::new(limits(|l| l.max_recordings = 1)), 2, 3, "TooManyRecordings", "raise `max_recordings`"),
        (Box::new(limits(|l| l.max_moves = 1)), 2, 3, "KeepsMoving", "raise `max_moves`"),
        (
            Box::new(limits(|l| (l.max_moves, l.on_move) = (1, OnMove::Skip))),
            2,
            3,
            "KeepsMoving",
            "raise `max_moves`",
        ),
        (Box::new(limits(|l| l.max_shapes = Some(1))), 3, 0, "TooManyShapes", "raise `max_shapes`"),
        (Box::new(|o| o.capture_only(["B"], [[2]])), 3, 0, "SizeNotListed", "list that size"),
        (
            Box::new(|o| o.bucket("B", Schedule::new([2]))),
            3,
            0,
            "OverLargestBucket",
            "add a bucket of that size",
        ),
    ];
    for (set, size, place, name, remedy) in cases {
        let mut rt = runtime();
        let [strict, lenient] = pair(&mut rt, &*set);
        for _ in 0..3 {
            assert_eq!(call(&mut rt, &strict, 2, 0).unwrap(), [2.0, 2.0], "{name}");
        }
        for _ in 0..3 {
            let error = call(&mut rt, &strict, size, place).unwrap_err();
            let Error::FallbackForbidden { function: "test", reason } = &error else { panic!("{error:?}") };
            assert!(format!("{reason:?}").starts_with(name), "{reason:?}");
            assert!(!reason.is_wanted());
            let text = error.to_string();
            assert!(text.starts_with(&format!("test: {reason}, and `deny_fallback`")), "{text}");
            assert!(text.contains(remedy), "{text}");
        }
        assert_eq!(rt.stats().fallbacks, 0);
        assert_eq!(rt.stats().copied_slots, 0);
        // What is recorded goes on.
        let replays = rt.stats().replays;
        assert_eq!(call(&mut rt, &strict, 2, 0).unwrap(), [2.0, 2.0]);
        assert_eq!(rt.stats().replays, replays + 1, "{name}");
        if name == "TooManyShapes" {
            // The size 2 was the other graph's: they share recordings, and count what they bring.
            call(&mut rt, &lenient, 7, 0).unwrap();
        }
        assert_eq!(call(&mut rt, &lenient, size, place).unwrap(), vec![2.0; size], "{name}");
        let stats = rt.stats();
        let copied = stats.copied_slots == 1;
        assert_eq!(stats.fallbacks, u64::from(!copied), "{name}: a copy or a fallback");
        still_usable(&mut rt);
    }
}

#[test]
fn dynamic_sizes_are_an_error_too() {
    let mut rt = runtime();
    let [strict, lenient] = pair(&mut rt, &|o| o.limits(|l| l.static_only = true));
    let error = call(&mut rt, &strict, 2, 0).unwrap_err();
    assert!(
        matches!(
            &error,
            Error::FallbackForbidden { reason: FallbackReason::DynamicSize { symbol: "B" }, .. }
        ),
        "{error:?}"
    );
    assert!(error.to_string().ends_with("give the symbol buckets or listed sizes, or clear `static_only`"));
    assert_eq!(call(&mut rt, &lenient, 2, 0).unwrap(), [2.0, 2.0]);
}

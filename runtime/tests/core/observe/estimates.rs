//! What captures will take, before they are made.

use graphable::{
    BlockFormat, CaptureMemory, Event, MemoryStats, Mode, Result, Runtime, Schedule, State, Stats, Weight,
    ops,
};

use crate::support::*;

const SIZES: [usize; 6] = [512, 256, 128, 64, 32, 16];
static B: [&str; 1] = ["B"];

thread_local! {
    /// The size at which the body fails.
    static FAIL: std::cell::Cell<Option<usize>> = const { std::cell::Cell::new(None) };
    /// The size that is captured now.
    static ASKED: std::cell::Cell<Option<usize>> = const { std::cell::Cell::new(None) };
}

fn bucketed(rt: &mut Runtime, mode: Mode) -> Graph {
    let mut spec = Spec::inputs(vec![host("x", &[Dim::Symbol(0), Dim::Const(64)])]);
    spec.symbols = &B;
    spec.mode(mode).with(|o| o.bucket("B", Schedule::new(SIZES))).build(rt)
}

/// `capture_all` as generated code writes it; `fail` makes the body of that size fail.
fn capture(rt: &mut Runtime, graph: &Graph, state: &State<f32>, fail: Option<usize>) -> Result<()> {
    FAIL.set(fail);
    graph.capture_all(
        rt,
        |step, synthetic| {
            let x = synthetic.host::<f32>(0)?;
            if fail.is_some() {
                ASKED.set(Some(synthetic.device::<f32>(step, 0)?.dim(0).get()?));
            }
            graph
                .call(step, &[In::Host((&x).into())], state, |cx, a| {
                    let (h, sum) = seg!("a", cx, (&a.t[0], state), |k| {
                        // Through a thread-local, as a body captures nothing.
                        if FAIL.get().is_some() && FAIL.get() == ASKED.get() {
                            return Err(graphable::Error::Argument { op: "test", reason: "asked".into() });
                        }
                        let h = ops::scale(k.0, 2.0)?;
                        ops::store(k.1, &ops::full(k.0.scope(), &[1], 7.0f32)?)?;
                        Ok((ops::neg(&h)?, ops::sum(&h, 1)?))
                    })?;
                    seg!("b", cx, (&h, &sum), |k| Ok((ops::scale(k.0, 0.5)?, ops::neg(k.1)?)))
                })
                .map(drop)
        },
        |_| {},
    )
}

fn comparable(rt: &Runtime) -> (Stats, MemoryStats) {
    let mut memory = rt.memory();
    memory.device = None;
    (rt.stats(), memory)
}

fn value(rt: &mut Runtime, state: &State<f32>) -> f32 {
    let step = rt.step().unwrap();
    step.item(&ops::load(step.scope(), state).unwrap()).unwrap()
}

#[test]
fn an_estimate_is_near_what_captures_take() {
    if crate::device::skipped_with_gaps("an_estimate_is_near_what_captures_take") {
        return;
    }
    for mode in [Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let (one, other) = (bucketed(&mut rt, mode), bucketed(&mut rt, Mode::Piecewise));
        let state = State::new(&rt, &[1], &[3.0f32]).unwrap();
        // Something is there before, and stays.
        let before_graph = vector(&mut rt, Mode::Piecewise);
        for _ in 0..3 {
            let step = rt.step().unwrap();
            before_graph
                .call(&step, &[x()], (), |cx, a| seg!("p", cx, (&a.t[0],), |k| ops::neg(k.0)))
                .unwrap();
        }
        rt.take_events();
        let before = comparable(&rt);
        let plan = |rt: &mut Runtime| {
            capture(rt, &one, &state, None)?;
            capture(rt, &other, &state, None)
        };
        let expected = rt.estimate_memory(plan).unwrap();
        assert_eq!(comparable(&rt), before, "everything is as it was");
        assert!(rt.take_events().is_empty());
        assert_eq!(value(&mut rt, &state), 3.0);

        let took = rt.measure_memory(plan).unwrap();
        assert!(rt.take_events().contains(&Event::CaptureMeasured {
            expected_bytes: Some(expected.total_bytes()),
            bytes: took.total_bytes(),
        }));
        assert_eq!(expected.recordings, took.recordings, "mode {mode}");
        assert_eq!(
            (expected.pool_bytes, expected.result_bytes, expected.static_bytes),
            (took.pool_bytes, took.result_bytes, took.static_bytes)
        );
        // A driver takes memory for executables in steps: small ones may need none, or several.
        let small = crate::device::gpu().is_some();
        let smooth = |memory: CaptureMemory| {
            let mut rest = memory;
            rest.executable_bytes *= u64::from(!small);
            rest
        };
        let error = smooth(expected).error(&smooth(took));
        assert!((-0.01..0.25).contains(&error), "mode {mode}: {expected:?} is {error} off {took:?}");
        assert!(took.pool_bytes >= 512 * 64 * 4 && (took.executable_bytes > 0 || small), "{took:?}");
        // All is recorded now: nothing more to take.
        let again = rt.measure_memory(plan).unwrap();
        assert_eq!((again.recordings, again.executable_bytes, again.static_bytes), (0, 0, 0));
        still_usable(&mut rt);
    }
}

/// A weight of eight rows in each format.
fn weights(rt: &Runtime) -> Result<Vec<Weight<f32>>> {
    let values: Vec<f32> = (0..8 * 256).map(|i| (i % 31) as f32 - 15.0).collect();
    let weight = |&format: &BlockFormat| Weight::blocks(rt, &[8, 256], format, format.quantize(&values)?);
    BlockFormat::ALL.iter().map(weight).collect()
}

#[test]
fn what_a_plan_loads_is_a_part_of_its_memory() {
    let mut rt = runtime();
    let before = rt.memory().owned_bytes;
    let mut kept = Vec::new();
    let mut plan = |rt: &mut Runtime| {
        kept.push(weights(rt)?);
        Ok(())
    };
    let expected = rt.estimate_memory(&mut plan).unwrap();
    let bytes = rt.memory().owned_bytes - before;
    assert_eq!((expected.owned_bytes, expected.total_bytes()), (bytes, bytes));
    let took = rt.measure_memory(&mut plan).unwrap();
    assert_eq!((took.owned_bytes, took.total_bytes()), (bytes, bytes));
    assert!(bytes >= kept[0].iter().map(Weight::bytes).sum(), "{bytes}");
    let gone = rt.estimate_memory(|rt| weights(rt).map(drop)).unwrap();
    assert_eq!(gone.owned_bytes, 0);
    // Those that an estimate made are weights like others.
    let step = rt.step().unwrap();
    let read = |weight: &Weight<f32>| weight.read_blocks(&step).unwrap().wait().unwrap();
    for (one, other) in kept[0].iter().zip(&kept[1]) {
        assert_eq!(read(one), read(other), "{:?}", one.format());
    }
    drop(step);
    still_usable(&mut rt);
}

#[test]
fn a_failed_estimate_leaves_nothing() {
    let mut rt = runtime();
    let graph = bucketed(&mut rt, Mode::Piecewise);
    let state = State::new(&rt, &[1], &[3.0f32]).unwrap();
    assert_eq!(value(&mut rt, &state), 3.0);
    rt.step().unwrap();
    let before = comparable(&rt);
    for size in [512, 256] {
        assert!(rt.estimate_memory(|rt| capture(rt, &graph, &state, Some(size))).is_err());
        rt.take_events();
        assert_eq!(comparable(&rt), before, "failing at {size}");
        assert_eq!(value(&mut rt, &state), 3.0);
    }
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        rt.estimate_memory(|rt| {
            capture(rt, &graph, &state, None)?;
            panic!("asked")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(comparable(&rt), before);
    // Sizes that an estimate leaves out do not matter to it.
    let expected = rt.estimate_memory(|rt| capture(rt, &graph, &state, Some(16))).unwrap();
    assert_eq!(expected.recordings, 2 * SIZES.len() as u64);
    let took = rt.measure_memory(|rt| capture(rt, &graph, &state, None)).unwrap();
    assert_eq!(took.recordings, expected.recordings);
    still_usable(&mut rt);
}

#[test]
fn a_parameter_dropped_meanwhile_is_noticed() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let w = graphable::Param::new(&rt, &[2], &[5.0f32, 6.0]).unwrap();
    for _ in 0..3 {
        let step = rt.step().unwrap();
        graph.call(&step, &[x()], &w, |cx, a| seg!("p", cx, (&a.t[0], &w), |k| ops::add(k.0, k.1))).unwrap();
    }
    assert_eq!(rt.stats().live_recordings, 1);
    let other = bucketed(&mut rt, Mode::Piecewise);
    let state = State::new(&rt, &[1], &[3.0f32]).unwrap();
    let mut w = Some(w);
    rt.estimate_memory(|rt| {
        w = None;
        capture(rt, &other, &state, None)
    })
    .unwrap();
    assert_eq!((rt.stats().live_recordings, rt.stats().evicted), (0, 1));
}

/// The recordings that are set aside must find their memory as it was, and there is one place to set them aside.
#[test]
fn a_plan_cannot_take_memory_from_what_is_set_aside() {
    if crate::device::skipped_with_gaps("a_plan_cannot_take_memory_from_what_is_set_aside") {
        return;
    }
    type Call = fn(&mut Runtime) -> Result<()>;
    let calls: [(&str, Call); 5] = [
        ("trim", |rt| rt.trim().map(drop)),
        ("reset", |rt| rt.reset().map(drop)),
        ("preallocate", |rt| rt.preallocate(graphable::MemoryArena::Pool, 64 << 20)),
        ("estimate_memory", |rt| rt.estimate_memory(|_| Ok(())).map(drop)),
        ("measure_memory", |rt| rt.measure_memory(|_| Ok(())).map(drop)),
    ];
    let mut rt = runtime();
    let (graph, other) = (bucketed(&mut rt, Mode::Piecewise), bucketed(&mut rt, Mode::Piecewise));
    let state = State::new(&rt, &[1], &[3.0f32]).unwrap();
    capture(&mut rt, &graph, &state, None).unwrap();
    rt.step().unwrap();
    rt.take_events();
    let before = comparable(&rt);
    let expected = rt.estimate_memory(|rt| capture(rt, &other, &state, None)).unwrap();
    for (name, call) in calls {
        // Swallowed by the plan, the estimate is what it would be without it.
        let swallowed = rt.estimate_memory(|rt| {
            capture(rt, &other, &state, None)?;
            let error = call(rt).unwrap_err();
            assert!(matches!(error, graphable::Error::InsideEstimate { call } if call == name), "{error}");
            assert!(error.to_string().contains("before or after the estimate"), "{error}");
            Ok(())
        });
        let mut swallowed = swallowed.unwrap();
        if crate::device::gpu().is_some() {
            // The difference in free memory, which others take as well.
            swallowed.executable_bytes = expected.executable_bytes;
        }
        assert_eq!(swallowed, expected, "{name}");
        assert!(rt.estimate_memory(call).is_err(), "{name}");
        assert_eq!(comparable(&rt), before, "{name}");
    }
    // All that was recorded before still runs, and nothing is recorded again.
    capture(&mut rt, &graph, &state, None).unwrap();
    assert_eq!(rt.stats().recordings, before.0.recordings);
    assert_eq!(value(&mut rt, &state), 3.0);
    still_usable(&mut rt);
}

/// A hook that the plan adds hears of the recordings that were set aside, too.
#[test]
fn a_hook_of_the_plan_stays() {
    let mut rt = runtime();
    let graph = bucketed(&mut rt, Mode::Piecewise);
    let state = State::new(&rt, &[1], &[3.0f32]).unwrap();
    capture(&mut rt, &graph, &state, None).unwrap();
    let heard = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let count = std::sync::Arc::clone(&heard);
    rt.estimate_memory(|rt| {
        rt.on_lifecycle(move |_| {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        });
        Ok(())
    })
    .unwrap();
    capture(&mut rt, &graph, &state, None).unwrap();
    assert!(heard.load(std::sync::atomic::Ordering::SeqCst) > 0);
}

#[test]
fn a_measurement_that_panics_leaves_the_marks() {
    let mut rt = runtime();
    let step = rt.step().unwrap();
    drop(step.tensor(&[100_000], &vec![1.0f32; 100_000]).unwrap());
    drop(step);
    let before = comparable(&rt);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        rt.measure_memory(|rt| {
            let step = rt.step()?;
            drop(step.tensor(&[8], &[1.0f32; 8])?);
            panic!("asked")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(comparable(&rt), before);
    assert!(rt.measure_memory(|_| Err(graphable::Error::Rank { rank: 9 })).is_err());
    assert_eq!(comparable(&rt), before);
}

#[test]
fn the_error_is_a_fraction() {
    let mut rt = runtime();
    let nothing = rt.measure_memory(|_| Ok(())).unwrap();
    assert_eq!(nothing, CaptureMemory::default());
    assert_eq!(nothing.error(&nothing), 0.0);
}

/// The steps of a plan are none of the program's: memory that waits to be used again waits on, and what is recorded
/// with it stays.
#[test]
fn a_value_that_is_carried_outlives_estimates() {
    let mut rt = runtime();
    let (graph, other) =
        (Spec::inputs(vec![any_device("x")]).build(&mut rt), bucketed(&mut rt, Mode::Piecewise));
    let state = State::new(&rt, &[1], &[3.0f32]).unwrap();
    let carry = |rt: &mut Runtime, kept: Option<graphable::Kept<T<'static>>>| {
        let step = rt.step().unwrap();
        let x = match &kept {
            Some(kept) => kept.view(step.scope()).unwrap(),
            None => step.tensor(&[2], &[1.0f32, 2.0]).unwrap(),
        };
        let y = graph
            .call(&step, &[In::Device(&x)], (), |cx, a| seg!("c", cx, (&a.t[0],), |k| ops::scale(k.0, 0.5)));
        step.keep(&y.unwrap()).unwrap()
    };
    let mut kept = carry(&mut rt, None);
    for _ in 0..8 {
        kept = carry(&mut rt, Some(kept));
    }
    let before = rt.stats();
    for _ in 0..4 {
        rt.estimate_memory(|rt| capture(rt, &other, &state, None)).unwrap();
        rt.estimate_memory(|_| Ok(())).unwrap();
        kept = carry(&mut rt, Some(kept));
    }
    let after = rt.stats();
    assert_eq!(
        (after.recordings, after.evicted, after.warmups),
        (before.recordings, before.evicted, before.warmups)
    );
    let step = rt.step().unwrap();
    assert_eq!(step.read(&kept.view(step.scope()).unwrap()).unwrap(), [2f32.powi(-13), 2f32.powi(-12)]);
}

//! Weights that are overwritten in place: between replays, in regions, from wherever; nothing is recorded anew.

use std::time::Duration;

use graphable::{
    BlockFormat, Error, Event, KeptTensor, Mode, Param, Passes, PinnedBuffer, Result, Runtime, Schedule,
    Step, Weight, backend::faulty::FaultCall, ops,
};

use crate::support::*;

/// `x w^T`, twice, with a region between, in which something happens.
fn apply<'s>(
    graph: &Graph,
    step: &Step<'s>,
    x: In<'_, 's>,
    w: &Param<f32>,
    between: impl Fn(&graphable::Eager<'_>) -> Result<()>,
) -> Result<T<'s>> {
    graph.call(step, &[x], w, |cx, a| {
        let (h,) = seg!("a", cx, (&a.t[0], w), |k| Ok((ops::linear(k.0, k.1)?,)))?;
        let h = if graph.is(Mode::Full) {
            eager!("e", Always, cx, |_e| ops::scale(&h, 1.0))
        } else {
            eager!("e", cx, |e| {
                between(e)?;
                ops::scale(&h, 1.0)
            })
        };
        seg!("b", cx, (&h, w), |k| ops::linear(k.0, k.1))
    })
}

const ROWS: &[Dim] = &[Dim::Symbol(0), Dim::Const(2)];

fn graph(rt: &mut Runtime, mode: Mode, audit_every: u32) -> Graph {
    let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![host("x", ROWS)]) };
    let spec = spec.mode(mode).with(|o| {
        o.bucket("B", Schedule::new([2, 4]));
        o.audit_every(audit_every);
    });
    spec.build(rt)
}

/// On the diagonal.
fn weights(first: f32, second: f32) -> [f32; 4] {
    [first, 0.0, 0.0, second]
}

fn product(x: &[f32], by: [f32; 2]) -> Vec<f32> {
    x.iter().enumerate().map(|(i, x)| x * by[i % 2]).collect()
}

/// What was not a replay.
fn not_replays(rt: &Runtime) -> Vec<String> {
    let events = rt.take_events();
    let is_other = |event: &&Event| {
        !matches!(event, Event::Replayed { .. } | Event::RanEager { .. } | Event::Audited { .. })
            && !matches!(event, Event::Updated { .. } | Event::Shared { .. } | Event::Unshared { .. })
    };
    list(&events.iter().filter(is_other).cloned().collect::<Vec<_>>())
}

#[test]
fn writes_between_calls_record_nothing() {
    for mode in MODES {
        for (audit_every, shares) in [(0, false), (2, false), (0, true), (3, true)] {
            let mut rt = runtime();
            rt.share_executables(shares.then_some(Duration::MAX));
            let graph = graph(&mut rt, mode, audit_every);
            let w = Param::new(&rt, &[2, 2], &weights(1.0, 1.0)).unwrap();
            for round in 0..12 {
                let rows = [3, 1, 4, 2][round % 4];
                let x: Vec<f32> = (0..2 * rows).map(|i| (i + round) as f32).collect();
                let by = [round as f32 + 2.0, 0.5 - round as f32];
                let step = rt.step().unwrap();
                // What was launched before sees what was there then.
                let before = w.read(&step).unwrap();
                w.write(&step, &weights(by[0], by[1])).unwrap();
                let y = apply(&graph, &step, In::Host((&x).into()), &w, |_| Ok(())).unwrap();
                let first = step.read_later(&y).unwrap();
                w.write(&step, &weights(-1.0, 3.0)).unwrap();
                let z = apply(&graph, &step, In::Host((&x).into()), &w, |_| Ok(())).unwrap();
                let (then, now) =
                    (product(&product(&x, by), by), product(&product(&x, [-1.0, 3.0]), [-1.0, 3.0]));
                let what = format!("{mode}, audits {audit_every}, shares {shares}, round {round}");
                assert_eq!(first.wait().unwrap(), then, "{what}");
                assert_eq!(step.read(&z).unwrap(), now, "{what}");
                let last = if round == 0 { weights(1.0, 1.0) } else { weights(-1.0, 3.0) };
                assert_eq!(before.wait().unwrap(), last, "{what}");
                drop((y, z, step));
                let others = not_replays(&rt);
                assert!(round < 4 || mode == Mode::None || others.is_empty(), "{what}: {others:?}");
            }
            let stats = rt.stats();
            assert_eq!(stats.evicted, 0);
            assert!(mode == Mode::None || stats.replays > 10, "{stats:?}");
            assert!(mode == Mode::None || audit_every == 0 || stats.audits > 2, "{stats:?}");
        }
    }
}

/// The first segment of a call has the old weights, the second one the new ones.
#[test]
fn writes_in_a_region_lie_between_its_neighbours() {
    for mode in [Mode::None, Mode::Piecewise] {
        for audit_every in [0, 1, 2] {
            let mut rt = runtime();
            let graph = graph(&mut rt, mode, audit_every);
            let w = Param::new(&rt, &[2, 2], &weights(1.0, 1.0)).unwrap();
            for round in 0..10 {
                let by = [round as f32 + 2.0, 7.0 - round as f32];
                let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
                let step = rt.step().unwrap();
                w.write(&step, &weights(2.0, 4.0)).unwrap();
                let y = apply(&graph, &step, In::Host((&x).into()), &w, |e| {
                    let next = e.tensor(&[2, 2], &weights(by[0], by[1]))?;
                    w.write(e, &next)
                });
                let want = product(&product(&x, [2.0, 4.0]), by);
                assert_eq!(
                    step.read(&y.unwrap()).unwrap(),
                    want,
                    "{mode}, audits {audit_every}, round {round}"
                );
            }
            assert!(mode == Mode::None || rt.stats().replays > 10);
        }
    }
}

/// Of a fused product, whose kernels ask for weights early, on devices that have such kernels.
#[test]
fn weights_that_are_asked_for_early_are_written_in_order() {
    const N: usize = 256;
    for passes in [Passes::default(), Passes::none()] {
        let mut rt = runtime();
        rt.set_passes(passes);
        let graph =
            Spec::inputs(vec![host("x", &[Dim::Const(1), Dim::Const(N)])]).mode(Mode::Full).build(&mut rt);
        let eye = |by: f32| (0..N * N).map(|i| if i % N == i / N { by } else { 0.0 }).collect::<Vec<f32>>();
        let w = Param::new(&rt, &[N, N], &eye(0.0)).unwrap();
        let ones = Param::new(&rt, &[N], &[1.0f32; N]).unwrap();
        for round in 0..30 {
            let by = 1.0 + round as f32;
            let step = rt.step().unwrap();
            let next = step.tensor(&[N, N], &eye(by)).unwrap();
            match round % 3 {
                0 => w.write(&step, &next).unwrap(),
                1 => w.write(&step, &eye(by)).unwrap(),
                _ => {
                    w.write_rows(&step, 128..N, &eye(by)[128 * N..]).unwrap();
                    w.write_rows(&step, 0..128, &eye(by)[..128 * N]).unwrap();
                }
            }
            let x: Vec<f32> = (0..N).map(|i| (i % 7) as f32).collect();
            let y = graph.call(&step, &[In::Host((&x).into())], (&w, &ones), |cx, a| {
                seg!("a", cx, (&a.t[0], &w, &ones), |k| {
                    let h = ops::mul(k.0, k.2)?;
                    let h = ops::add(&ops::linear(&h, k.1)?, &h)?;
                    ops::relu(&ops::linear(&h, k.1)?)
                })
            });
            let want: Vec<f32> = x.iter().map(|x| (by * x + x) * by).collect();
            assert_eq!(step.read(&y.unwrap()).unwrap(), want, "round {round}");
        }
        assert_eq!(rt.stats().recordings, 1);
    }
}

#[test]
fn contents_come_from_anywhere() {
    let mut rt = runtime();
    let w = Param::<f32>::zeros(&rt, &[3, 2]).unwrap();
    let large = Param::<f32>::zeros(&rt, &[5000]).unwrap();
    let values = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let mut buffer = PinnedBuffer::new(&rt, &[0.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0]).unwrap();
    let many: Vec<f32> = (0..5000).map(|i| i as f32).collect();
    let all = PinnedBuffer::new(&rt, &many).unwrap();
    let flags = Param::new(&rt, &[3], &[true, false, false]).unwrap();
    let mut bytes = PinnedBuffer::<bool>::zeros(&rt, 3).unwrap();
    let step = rt.step().unwrap();
    let is = |want: &[f32]| assert_eq!(w.read(&step).unwrap().wait().unwrap(), want);
    w.write(&step, &values).unwrap();
    is(&values);
    w.write(&step, &values.to_vec()).unwrap();
    w.write(&step, &[0.5; 6][..]).unwrap();
    is(&[0.5; 6]);
    w.write(&step, &step.tensor(&[3, 2], &values).unwrap()).unwrap();
    is(&values);
    let turned = step.tensor(&[2, 3], &[1.0, 3.0, 5.0, 2.0, 4.0, 6.0]).unwrap();
    w.write_rows(&step, 0..3, &[0.0; 6]).unwrap();
    w.write(&step, &ops::transpose(&turned, 0, 1).unwrap()).unwrap();
    is(&values);
    w.write(&step, buffer.part(1..).unwrap()).unwrap();
    // The device has what was there then.
    buffer.values_mut().unwrap().fill(0.0);
    is(&[9.0, 8.0, 7.0, 6.0, 5.0, 4.0]);
    w.write_rows(&step, 1..2, &[1.5, 2.5]).unwrap();
    w.write_rows(&step, 2..3, &step.tensor(&[1, 2], &[3.5, 4.5]).unwrap()).unwrap();
    w.write_rows(&step, 1..1, &[]).unwrap();
    is(&[9.0, 8.0, 1.5, 2.5, 3.5, 4.5]);
    large.write(&step, &many).unwrap();
    assert_eq!(large.read(&step).unwrap().wait().unwrap(), many);
    large.write_rows(&step, 0..2500, all.part(2500..).unwrap()).unwrap();
    let halves = large.read(&step).unwrap().wait().unwrap();
    assert_eq!((&halves[..2500], &halves[2500..]), (&many[2500..], &many[2500..]));
    flags.write(&step, &[false, true, true]).unwrap();
    assert_eq!(flags.read(&step).unwrap().wait().unwrap(), [false, true, true]);
    bytes.values_mut().unwrap().copy_from_slice(&[7, 0, 1]);
    flags.write(&step, &bytes).unwrap();
    assert_eq!(flags.read(&step).unwrap().wait().unwrap(), [true, false, true]);
}

#[test]
fn what_cannot_be_written_is_refused() {
    let mut rt = runtime();
    let mut other = runtime();
    let w = Param::new(&rt, &[2, 2], &[1.0f32; 4]).unwrap();
    let one = Param::new(&rt, &[], &[1.0f32]).unwrap();
    let foreign = PinnedBuffer::<f32>::zeros(&other, 4).unwrap();
    let refused = |result: Result<()>, wanted: &str| {
        let error = result.unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
        error
    };
    {
        let step = rt.step().unwrap();
        refused(w.write(&step, &[0.0; 3]), "[2, 2] has 4 elements, the data 3");
        refused(w.write_rows(&step, 0..1, &[0.0; 4]), "[1, 2] has 2 elements, the data 4");
        refused(w.write_rows(&step, 1..3, &[0.0; 4]), "rows 1..3 of 2");
        #[allow(clippy::reversed_empty_ranges, reason = "that is what is refused")]
        refused(w.write_rows(&step, 2..1, &[]), "rows 2..1 of 2");
        refused(one.write_rows(&step, 0..1, &[0.0]), "use `write`");
        one.write(&step, &[2.0]).unwrap();
        let wrong = step.tensor(&[4], &[0.0; 4]).unwrap();
        assert!(matches!(refused(w.write(&step, &wrong), "shape"), Error::Shape { op: "Param::write", .. }));
        let view = step.scope().view(&w).unwrap();
        refused(w.write(&step, &ops::transpose(&view, 0, 1).unwrap()), "is a view of the parameter");
        let twice = ops::scale(&view, 2.0).unwrap();
        drop(view);
        w.write(&step, &twice).unwrap();
        assert!(matches!(w.write(&step, &foreign), Err(Error::DifferentRuntimes { op: "Param::write" })));
        let theirs = other.step().unwrap();
        let tensor = theirs.tensor(&[2, 2], &[0.0; 4]).unwrap();
        for refused in [w.write(&theirs, &[0.0; 4]), w.write(&step, &tensor)] {
            assert!(matches!(refused, Err(Error::DifferentRuntimes { op: "Param::write" })), "{refused:?}");
        }
        assert!(matches!(w.read(&theirs), Err(Error::DifferentRuntimes { op: "Param::read" })));
        assert_eq!(w.read(&step).unwrap().wait().unwrap(), [2.0; 4]);
    }
    for mode in MODES {
        let graph = graph(&mut rt, mode, 0);
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let inside = graph.call(&step, &[In::Host((&X).into())], &w, |cx, a| {
                let refused = w.write(&step, &[0.0; 4]);
                assert!(matches!(refused, Err(Error::OutsideSegment { .. })), "{refused:?}");
                seg!("a", cx, (&a.t[0], &w), |k| ops::linear(k.0, k.1))
            });
            assert_eq!(step.read(&inside.unwrap()).unwrap(), [6.0, 6.0]);
        }
    }
    let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![host("x", ROWS)]) };
    let padded = spec.with(|o| o.bucket("B", Schedule::new([2]))).build(&mut rt);
    let step = rt.step().unwrap();
    let refused = padded.call(&step, &[In::Host((&[0.0; 4]).into())], (), |cx, a| {
        eager!("e", cx, |e| w.write(e, &a.t[0]));
        seg!("a", cx, (&a.t[0],), |k| ops::neg(k.0))
    });
    assert!(matches!(refused, Err(Error::PaddedMix { op: "Param::write", .. })), "{refused:?}");
}

/// Tensors do not change: while one is a view of a parameter, that is not written.
#[test]
fn views_keep_a_parameter_from_being_written() {
    let mut rt = runtime();
    let w = Param::new(&rt, &[2], &[1.0f32, 2.0]).unwrap();
    let kept: KeptTensor<f32> = {
        let step = rt.step().unwrap();
        let view = step.scope().view(&w).unwrap();
        let narrow = ops::narrow(&view, 0, 1, 1).unwrap();
        drop(view);
        for refused in [w.write(&step, &[3.0, 4.0]), w.write_rows(&step, 0..1, &[3.0])] {
            let text = refused.unwrap_err().to_string();
            assert!(text.contains("a tensor of this step is a view of the parameter"), "{text}");
        }
        assert_eq!(step.read(&narrow).unwrap(), [2.0]);
        let kept = step.keep(&narrow).unwrap();
        std::mem::forget(narrow);
        kept
    };
    // What is kept of a parameter is its memory.
    let step = rt.step().unwrap();
    w.write(&step, &[3.0, 4.0]).unwrap();
    let view = kept.view(step.scope()).unwrap();
    assert_eq!(step.read(&view).unwrap(), [4.0]);
    assert!(w.write(&step, &[5.0, 6.0]).is_err());
    let copy = ops::scale(&view, 1.0).unwrap();
    drop(view);
    w.write(&step, &[5.0, 6.0]).unwrap();
    assert_eq!(step.read(&copy).unwrap(), [4.0]);
}

/// Nor is one that an input of the running call shows, padded or not, or a value between its segments.
#[test]
fn values_of_a_call_keep_a_parameter_from_being_written() {
    for mode in [Mode::None, Mode::Piecewise] {
        let mut rt = runtime();
        let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![device("x", ROWS)]) };
        let graph = spec.mode(mode).with(|o| o.bucket("B", Schedule::new([2, 4]))).build(&mut rt);
        let w = Param::new(&rt, &[2, 2], &[1.0f32; 4]).unwrap();
        let is_refused = |e: &graphable::Eager<'_>, what: &str| {
            let refused = w.write(e, &[-1.0; 4]);
            assert!(
                matches!(refused, Err(Error::Argument { op: "Param::write", .. })),
                "{mode}, {what}: {refused:?}"
            );
            Ok::<_, Error>(())
        };
        for rows in [1, 2, 2, 1, 2, 1] {
            let step = rt.step().unwrap();
            let view = step.scope().view(&w).unwrap();
            let part = ops::narrow(&view, 0, 0, rows).unwrap();
            drop(view);
            let y = graph.call(&step, &[In::Device(&part)], &w, |cx, a| {
                eager!("e", cx, |e| is_refused(e, "an input"));
                seg!("a", cx, (&a.t[0],), |k| ops::add(k.0, 1.0))
            });
            assert_eq!(step.read(&y.unwrap()).unwrap(), vec![2.0; 2 * rows], "{mode}");
            drop(part);
            let x = step.tensor(&[rows, 2], &vec![1.0; 2 * rows]).unwrap();
            let y = graph.call(&step, &[In::Device(&x)], &w, |cx, a| {
                let v = seg!("b", cx, (&a.t[0], &w), |k| k.0.scope().view(k.1))?;
                eager!("e", cx, |e| is_refused(e, "a value between segments"));
                let z = seg!("c", cx, (&v, &a.t[0]), |k| ops::add(&ops::narrow(k.0, 0, 0, 1)?, 1.0))?;
                drop(v);
                eager!("e", cx, |e| w.write(e, &[1.0; 4]));
                Ok(z)
            });
            assert_eq!(step.read(&y.unwrap()).unwrap(), [2.0; 2], "{mode}");
        }
    }
}

/// What regions write while a function is captured ahead of time does not stay.
#[test]
fn captures_ahead_put_parameters_back() {
    let mut rt = runtime();
    let graph = graph(&mut rt, Mode::Piecewise, 0);
    let w = Param::new(&rt, &[2, 2], &weights(2.0, 3.0)).unwrap();
    let twice = Param::new(&rt, &[2], &[5.0f32, 6.0]).unwrap();
    let between = |e: &graphable::Eager<'_>| {
        w.write(e, &weights(9.0, 9.0))?;
        twice.write_rows(e, 0..1, &[7.0])
    };
    graph
        .capture_all(
            &mut rt,
            |step, sizes| {
                let x = sizes.host::<f32>(0)?;
                apply(&graph, step, In::Host((&x).into()), &w, between).map(drop)
            },
            |_| {},
        )
        .unwrap();
    let step = rt.step().unwrap();
    assert_eq!(w.read(&step).unwrap().wait().unwrap(), weights(2.0, 3.0));
    assert_eq!(twice.read(&step).unwrap().wait().unwrap(), [5.0, 6.0]);
}

#[test]
fn blocks_are_written_and_read() {
    let mut rt = runtime();
    let is_cpu = rt.device() == "cpu";
    let format = BlockFormat::Q4_0;
    let of = |by: f32| format.quantize(&(0..64).map(|i| by * i as f32).collect::<Vec<_>>()).unwrap();
    let weight = Weight::<f32>::blocks(&rt, &[2, 32], format, of(1.0)).unwrap();
    let floats = Weight::<f32>::from(Param::zeros(&rt, &[2, 32]).unwrap());
    assert!(!weight.is_mapped());
    let step = rt.step().unwrap();
    let read = |weight: &Weight<f32>| weight.read_blocks(&step).and_then(graphable::PendingRead::wait);
    assert_eq!(read(&weight).unwrap(), of(1.0));
    weight.write_blocks(&step, format, &of(2.0)).unwrap();
    assert_eq!(read(&weight).unwrap(), of(2.0));
    let row = format.row_bytes(32).unwrap();
    // A GPU has tiles, which the host makes as a whole (`tests/ops/quantized/`).
    if is_cpu {
        weight.write_block_rows(&step, 1..2, format, &of(3.0)[row..]).unwrap();
        assert_eq!(read(&weight).unwrap(), [&of(2.0)[..row], &of(3.0)[row..]].concat());
        weight.write_blocks(&step, format, &step.tensor(&[2, row], &of(4.0)).unwrap()).unwrap();
        assert_eq!(read(&weight).unwrap(), of(4.0));
        let wrong = weight.write_blocks(&step, format, &step.tensor(&[row, 2], &of(1.0)).unwrap());
        assert!(matches!(wrong, Err(Error::Shape { op: "Weight::write_blocks", .. })), "{wrong:?}");
    }

    let text = |result: Result<()>| result.unwrap_err().to_string();
    let of_another = text(weight.write_blocks(&step, BlockFormat::Q8_0, &of(1.0)));
    assert!(of_another.contains("is in Q4_0, and Q8_0"), "{of_another}");
    let of_floats = text(floats.write_blocks(&step, format, &of(1.0)));
    assert!(of_floats.contains("is in floats (f32), and Q4_0"), "{of_floats}");
    assert!(matches!(read(&floats), Err(Error::BlockFormat { op: "Weight::read_blocks", .. })));
    let short = text(weight.write_blocks(&step, format, &of(1.0)[1..]));
    assert!(short.contains("has 36 elements, the data 35"), "{short}");
    floats.param().unwrap().write(&step, &[1.0; 64]).unwrap();
}

/// A write that fails leaves the old elements or the new ones, and nothing else changes.
#[test]
fn writes_fail_as_everything_does() {
    let (mut rt, plan) = faulty();
    let graph = graph(&mut rt, Mode::Piecewise, 0);
    let w = Param::new(&rt, &[2, 2], &weights(1.0, 1.0)).unwrap();
    let buffer = PinnedBuffer::new(&rt, &weights(4.0, 4.0)).unwrap();
    for round in 0..12 {
        let step = rt.step().unwrap();
        let call =
            [FaultCall::HostWrite, FaultCall::HostWrite, FaultCall::WriteFrom, FaultCall::Read][round % 4];
        w.write(&step, &weights(2.0, 2.0)).unwrap();
        let next = step.tensor(&[2, 2], &weights(4.0, 4.0)).unwrap();
        plan.arm(Some(call), 0, false);
        let failed = match round % 4 {
            0 => w.write(&step, &weights(4.0, 4.0)),
            1 => w.write(&step, &next),
            2 => w.write(&step, &buffer),
            _ => w.read(&step).map(drop),
        };
        assert!(
            matches!(&failed, Err(Error::Device { reason, .. }) if reason == "the test said so"),
            "{failed:?}"
        );
        assert!(!plan.disarm());
        let y = apply(&graph, &step, In::Host((&[1.0, 1.0]).into()), &w, |_| Ok(())).unwrap();
        assert_eq!(step.read(&y).unwrap(), [4.0, 4.0], "round {round}: the old ones");
    }
    assert!(rt.stats().replays > 10);
}

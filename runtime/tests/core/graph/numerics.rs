//! The switches of the numerics: in keys, for a runtime and for a graph, and the deterministic mode.

use std::sync::LazyLock;

use graphable::{Eager, Error, Mode, Numerics, Result, Runtime, Step, Tensor, custom::CustomOp, ops};

use crate::support::*;

const TF32: fn() -> Numerics = || Numerics::default().tf32(true);
const DETERMINISTIC: fn() -> Numerics = || Numerics::default().deterministic(true);

/// `x x^T` as a matrix of one row, doubled, with a boundary between.
fn run(graph: &Graph, step: &Step<'_>) -> Result<Vec<String>> {
    step.take_events();
    let out = graph.call(step, &[x()], (), |cx, a| {
        let (h,) = seg!("a", cx, (&a.t[0],), |k| {
            let row = ops::reshape(k.0, [1, 2])?;
            Ok((ops::matmul_nt(&row, &row)?,))
        })?;
        let e = eager!("e", Always, cx, |_e| ops::matmul(&h, &ops::full(h.scope(), [1, 1], 2.0f32)?));
        seg!("b", cx, (&e,), |k| ops::neg(k.0))
    })?;
    assert_eq!(step.read(&out).unwrap(), [-10.0]);
    Ok(events(step))
}

const REPLAYED: [&str; 3] = ["replayed a", "eager e", "replayed b"];

fn replays(rt: &mut Runtime, graph: &Graph) -> bool {
    let log = run(graph, &rt.step().unwrap()).unwrap();
    log == REPLAYED || log == ["replayed test"]
}

/// Calls until everything is replayed; returns the number of recordings that it took.
fn converge(rt: &mut Runtime, graph: &Graph) -> u64 {
    let before = rt.stats().recordings;
    for _ in 0..5 {
        run(graph, &rt.step().unwrap()).unwrap();
    }
    rt.stats().recordings - before
}

fn every_combination() -> impl Iterator<Item = Numerics> {
    (0..16u8).map(|bits| {
        let on = |bit: u8| bits >> bit & 1 != 0;
        let numerics = Numerics::default().tf32(on(0)).reduced_precision_reduction(on(1));
        numerics.deterministic(on(2)).fourier(on(3))
    })
}

#[test]
fn a_recording_is_replayed_with_its_own_switches_only() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let spec = Spec::inputs(vec![host("x", &[Dim::Const(2)])]).mode(mode);
        let graph = spec.with(|o| o.audit_every(7)).build(&mut rt);
        let first = converge(&mut rt, &graph);
        assert!(first > 0);
        for numerics in every_combination().skip(1) {
            rt.set_numerics(numerics);
            assert_eq!(rt.numerics(), numerics);
            let before = rt.stats();
            let log = run(&graph, &rt.step().unwrap()).unwrap();
            assert!(log.iter().any(|e| e.starts_with("warmed")), "{mode} {numerics}: {log:?}");
            assert_eq!(rt.stats().replays, before.replays, "{mode} {numerics}");
            assert_eq!(converge(&mut rt, &graph), first, "{mode} {numerics}");
        }
        // They are all still there.
        for numerics in every_combination().chain(every_combination()) {
            rt.set_numerics(numerics);
            let before = rt.stats();
            run(&graph, &rt.step().unwrap()).unwrap();
            let after = rt.stats();
            assert_eq!(
                (after.warmups, after.recordings, after.fallbacks),
                (before.warmups, before.recordings, before.fallbacks),
                "{mode} {numerics}"
            );
            assert!(after.replays > before.replays);
        }
        let tree = rt.tree();
        for numerics in every_combination() {
            let of_it = tree.recordings.iter().filter(|node| node.numerics == numerics).count();
            assert_eq!(of_it as u64, first, "{mode} {numerics}");
            let shown = tree.to_string().contains(&format!("{numerics}, "));
            assert_eq!(shown, numerics != Numerics::default(), "{numerics}: {tree}");
        }
        assert!(tree.to_dot().contains("TF32"));
    }
}

#[test]
fn a_graph_has_switches_of_its_own() {
    let mut rt = runtime();
    let spec = || Spec::inputs(vec![host("x", &[Dim::Const(2)])]);
    let plain = spec().build(&mut rt);
    let own = spec().with(|o| o.numerics(TF32())).build(&mut rt);
    assert_eq!(converge(&mut rt, &plain), 2);
    assert_eq!(converge(&mut rt, &own), 2, "it shares no recording with the other graph of the same code");
    rt.set_numerics(DETERMINISTIC());
    assert!(replays(&mut rt, &own), "the switches of the runtime are not its own");
    assert!(!replays(&mut rt, &plain));
    rt.set_numerics(TF32());
    assert!(replays(&mut rt, &own));
    let new = converge(&mut rt, &plain);
    assert_eq!(new, 1, "equal switches, equal code: it shares what does not read its own input");
}

#[test]
fn with_capture_closed_a_switch_without_recordings_is_an_error() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    converge(&mut rt, &graph);
    rt.close_capture();
    rt.set_numerics(TF32());
    let error = run(&graph, &rt.step().unwrap()).unwrap_err();
    assert!(matches!(error, Error::CaptureClosed { .. }), "{error}");
    rt.set_numerics(Numerics::default());
    assert!(replays(&mut rt, &graph));
}

#[test]
fn the_runtime_shows_its_switches() {
    let rt = runtime();
    assert!(format!("{:?}", &*rt).contains("full precision"), "{:?}", &*rt);
    rt.set_numerics(TF32().deterministic(true));
    assert!(format!("{rt:?}").contains("TF32, deterministic"), "{rt:?}");
}

/// Twice the values, by an operation that says nothing of itself.
fn twice<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    crate::custom_ops::scaled_add(x, x, 1.0)
}

fn refused<T>(result: Result<T>) {
    match result {
        Err(Error::NotDeterministic { op: "scaled_add" }) => {}
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("not refused"),
    }
}

#[test]
fn the_deterministic_mode_names_the_operation_that_it_refuses() {
    let in_segment = |graph: &Graph, step: &Step<'_>| {
        let y = graph.call(step, &[x()], (), |cx, a| seg!("a", cx, (&a.t[0],), |k| twice(k.0)));
        y.and_then(|y| step.read(&y))
    };
    let in_region = |graph: &Graph, step: &Step<'_>| {
        let y = graph.call(step, &[x()], (), |cx, a| {
            let e = eager!("e", Always, cx, |_e| twice(&a.t[0]));
            seg!("b", cx, (&e,), |k| ops::scale(k.0, 1.0))
        });
        y.and_then(|y| step.read(&y))
    };
    let between_calls = |step: &Eager<'_>| step.read(&twice(&step.tensor(&[2], &X)?)?);
    for mode in MODES {
        let mut rt = runtime();
        // A whole call is known by its graph, so each body has its own.
        let (first, second) = (vector(&mut rt, mode), vector(&mut rt, mode));
        let spec = Spec::inputs(vec![host("x", &[Dim::Const(2)])]).mode(mode);
        let exempt = spec.with(|o| o.numerics(Numerics::default())).build(&mut rt);
        let segment = |rt: &mut Runtime| in_segment(&first, &rt.step().unwrap());
        let region = |rt: &mut Runtime| in_region(&second, &rt.step().unwrap());
        for _ in 0..4 {
            assert_eq!(segment(&mut rt).unwrap(), [2.0, 4.0]);
            assert_eq!(region(&mut rt).unwrap(), [2.0, 4.0]);
        }
        for _ in 0..3 {
            rt.set_numerics(DETERMINISTIC());
            // Not even the recording that there is: it is one of the other mode.
            refused(segment(&mut rt));
            refused(region(&mut rt));
            refused(between_calls(&rt.step().unwrap()));
            assert_eq!(in_segment(&exempt, &rt.step().unwrap()).unwrap(), [2.0, 4.0], "a graph of its own");
            rt.set_numerics(Numerics::default());
            assert_eq!(segment(&mut rt).unwrap(), [2.0, 4.0], "{mode}");
            assert_eq!(region(&mut rt).unwrap(), [2.0, 4.0], "{mode}");
        }
        still_usable(&mut rt);
    }
}

#[test]
fn a_declared_operation_runs_in_the_deterministic_mode() {
    static DECLARED: LazyLock<CustomOp> =
        LazyLock::new(|| crate::custom_ops::adds_in_order(CustomOp::builder("declared").deterministic()));
    let mut rt = runtime();
    rt.set_numerics(DETERMINISTIC());
    let graph = vector(&mut rt, Mode::Piecewise);
    for _ in 0..4 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], (), |cx, a| {
            seg!("a", cx, (&a.t[0],), |k| {
                let x = k.0;
                DECLARED.call(x.scope()).view(x).view(x).scalar(1.0f32).output::<f32>(x.shape()).run()
            })
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [2.0, 4.0]);
    }
    assert!(rt.stats().replays > 0);
}

/// Everything of this crate is allowed: whatever an operation is made of.
#[test]
fn operations_of_this_crate_run_in_the_deterministic_mode() {
    let mut rt = runtime();
    rt.set_numerics(DETERMINISTIC());
    let step = rt.step().unwrap();
    let x = step.tensor(&[2, 4], &[1.0f32, -2.0, 3.0, 0.5, 2.0, 1.0, 0.0, -1.0]).unwrap();
    let index = step.tensor(&[2], &[1u32, 1]).unwrap();
    let sums = ops::index_add(&x, 0, &index, &x).unwrap();
    assert_eq!(step.read(&sums).unwrap()[4..], [5.0, 0.0, 3.0, -1.5]);
    let w = step.tensor(&[3, 4], &[0.5f32; 12]).unwrap();
    assert_eq!(step.read(&ops::linear(&x, &w).unwrap()).unwrap(), [1.25, 1.25, 1.25, 1.0, 1.0, 1.0]);
    let image = ops::reshape(&x, [1, 1, 2, 4]).unwrap();
    let window = step.tensor(&[1, 1, 1, 2], &[1.0f32, 1.0]).unwrap();
    let y = ops::conv2d(&image, &window, ops::ConvConfig::new()).unwrap();
    assert_eq!(step.read(&y).unwrap(), [-1.0, 1.0, 3.5, 3.0, 1.0, -1.0]);
    let (values, _) = ops::sort(&x, 1, false).unwrap();
    assert_eq!(step.read(&values).unwrap()[..4], [-2.0, 0.5, 1.0, 3.0]);
    assert_eq!(step.read(&ops::softmax(&x, 1).unwrap()).unwrap().len(), 8);
}

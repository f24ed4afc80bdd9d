//! Replacements that are refused, and passes that fail.

use std::sync::{
    Arc, LazyLock, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use graphable::{
    Mode, Numerics, Passes,
    custom::CustomOp,
    inspect::PassRefusal,
    passes::{LaunchId, TensorRef, kernel},
    prelude::*,
};

use super::{Closure, TIMES, TwoGraph, X, both, call, flipped, only, report, runtime, times, unary};

#[graphable]
fn misused(x: &Tensor<f32>, sum: &State<f32>) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let (a, b) = join(x.scope(), || ops::neg(x), || ops::abs(x))?;
    let turned = ops::permute(&ops::reshape(&a, (2, 1))?, &[1, 0])?;
    let c = ops::exp(&turned)?;
    let d = ops::scale(&c, 2.0)?;
    let e = ops::silu(&d)?;
    ops::store(sum, &b)?;
    Ok((ops::sub(&c, &e)?, ops::cast::<f32, bf16>(&d)?.cast_back()?))
}

/// What keeps the function above short.
trait CastBack<'s> {
    fn cast_back(&self) -> Result<Tensor<'s, f32>>;
}

impl<'s> CastBack<'s> for Tensor<'s, bf16> {
    fn cast_back(&self) -> Result<Tensor<'s, f32>> {
        ops::cast(self)
    }
}

#[kernel]
fn of_integers(x: i32) -> i32 {
    x
}

#[test]
fn what_does_not_fit_is_refused() {
    static EARLIER: Mutex<Option<(LaunchId, TensorRef)>> = Mutex::new(None);
    static NO_CODE: LazyLock<CustomOp> =
        LazyLock::new(|| CustomOp::builder("nothing").deterministic().build());
    static OTHERS: LazyLock<CustomOp> = LazyLock::new(|| CustomOp::builder("others").cpu(|_| Ok(())).build());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let pass = Closure::new(move |program| {
        use PassRefusal::*;
        let expect = |reason: PassRefusal, got: Result<(), PassRefusal>| {
            assert_eq!(got, Err(reason));
            counted.fetch_add(1, Ordering::Relaxed);
        };
        let all: Vec<_> = program.launches().collect();
        let of = |name: &str| *all.iter().find(|launch| launch.operation() == name).unwrap();
        let ends = |name: &str| (of(name).id(), of(name).inputs()[0], of(name).outputs()[0]);
        let (neg, x, y) = ends("neg");
        let (abs, x_of_abs, y_of_abs) = ends("abs");
        let (scale, c, d) = ends("scale");
        let (silu, d_read, e) = ends("silu");
        let (exp, turned, c_written) = ends("exp");
        let simple = |x, y| times(1.0, x, y);
        if let Some((launch, tensor)) = *EARLIER.lock().unwrap() {
            expect(OtherProgram, program.replace(&[launch], simple(x, y)));
            expect(OtherOperand, program.replace(&[neg], simple(tensor, y)));
            expect(OtherOperand, program.replace(&[neg], simple(x, tensor)));
            assert!(program.launch(launch).is_none() && program.readers(&tensor).is_empty());
            assert!(program.writer(&tensor).is_none() && !program.lasts(&tensor) && !program.leaves(&tensor));
        }
        *EARLIER.lock().unwrap() = Some((neg, x));
        expect(OtherProgram, program.replace(&[], simple(x, y)));
        // Branches are pieces of their own.
        expect(
            Apart,
            program.replace(
                &[neg, abs],
                TIMES.replacement().input::<f32>(x).output::<f32>(y).output::<f32>(y_of_abs),
            ),
        );
        expect(OtherOperand, program.replace(&[neg], simple(x, y_of_abs)));
        expect(OtherOperand, program.replace(&[neg], simple(x, x_of_abs)));
        expect(OtherOperand, program.replace(&[neg], simple(x, y).output::<f32>(y)));
        expect(MissingResult, program.replace(&[neg], TIMES.replacement().input::<f32>(x)));
        expect(OtherType, program.replace(&[neg], TIMES.replacement().input::<u32>(x).output::<f32>(y)));
        expect(OtherType, program.replace(&[neg], TIMES.replacement().input::<f32>(x).output::<bf16>(y)));
        expect(OtherType, program.replace(&[neg], kernel::<of_integers>().input(x).output(y)));
        expect(OtherType, program.replace(&[neg], kernel::<flipped>().input(x).number(2i32).output(y)));
        expect(OtherArguments, program.replace(&[neg], kernel::<flipped>().input(x).output(y)));
        expect(OtherArguments, program.replace(&[neg], kernel::<both>().input(x).output(y)));
        expect(OtherArguments, program.replace(&[neg], kernel::<both>().input(x).input(x).output(y)));
        expect(NoCode, program.replace(&[neg], NO_CODE.replacement().output::<f32>(y)));
        expect(NotDeterministic, program.replace(&[neg], OTHERS.replacement().output::<f32>(y)));
        // Between them, nothing is in the way; the one in the middle is needed.
        expect(MadeInside, program.replace(&[scale, silu], simple(d_read, e).output::<f32>(d)));
        expect(MadeInside, program.replace(&[scale, silu], simple(d, e)));
        expect(MissingResult, program.replace(&[scale, silu], simple(c, e)));
        let sub = of("sub");
        expect(
            ReadBetween,
            program.replace(&[scale, sub.id()], simple(c, d).output::<f32>(sub.outputs()[0])),
        );
        for launch in &all {
            if launch.writes_in_place() {
                let (x, y) = (launch.inputs()[0], launch.outputs()[0]);
                expect(WritesInPlace, program.replace(&[launch.id()], simple(x, y)));
            }
        }
        assert!(program.is_same(&c, &c_written) && program.is_same(&d, &d_read) && !program.is_same(&c, &d));
        assert!(program.is_same(&sub.inputs()[1], &e) && !program.is_same(&x, &x_of_abs), "of two pieces");
        assert!(program.writer(&turned).is_none(), "written before the piece began");
        assert_eq!((program.writer(&c), program.writer(&c_written)), (Some(exp), Some(exp)));
        program.replace(&[silu], simple(d_read, e))?;
        expect(ReplacedBefore, program.replace(&[silu], simple(d_read, e)));
        Ok(())
    });
    let mut rt = runtime();
    rt.set_numerics(Numerics::default().deterministic(true));
    rt.set_passes(only(pass));
    let sum = State::new(&rt, &[2], &[0.0f32; 2]).unwrap();
    for mode in [Mode::Piecewise, Mode::Full] {
        let graph = MisusedGraph::builder().mode(mode).build(&mut rt).unwrap();
        for _ in 0..3 {
            let step = rt.step().unwrap();
            graph.call(&step, &step.tensor(&[2], &X).unwrap(), &sum).unwrap();
        }
    }
    assert!(count.load(Ordering::Relaxed) > 40, "{count:?}");
    let report = report(&rt);
    let said = report.to_string();
    for part in [
        "mine: 1 x times for 1 operation each; not ",
        "not abs with neg by times (1 x): a branch or a body begins or ends between them",
        "not neg by times (2 x): the new operation takes elements of another type",
        "not neg by nothing (1 x): the new operation has no code for the device",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let json = rt.tree().to_json();
    assert!(
        json.contains(r#""operation":"abs","after":"neg","by":"times","reason":"apart","count":1"#),
        "{json}"
    );
}

#[test]
fn strided_operands_and_other_shapes_are_refused() {
    let pass = Closure::new(|program| {
        for launch in program.launches() {
            let (Some(x), Some(y)) = (launch.inputs().first().copied(), launch.outputs().first().copied())
            else {
                continue;
            };
            if launch.operation() == "exp" {
                assert!(!x.is_contiguous() && y.is_contiguous() && x.strides() != y.strides());
                let got = program.replace(&[launch.id()], times(1.0, x, y));
                assert_eq!(got, Err(PassRefusal::Strided));
                program.replace(&[launch.id()], kernel::<flipped>().input(x).number(2.0f32).output(y))?;
            } else if launch.operation() == "sum" {
                assert_ne!(x.shape(), y.shape());
                let got =
                    program.replace(&[launch.id()], kernel::<flipped>().input(x).number(2.0f32).output(y));
                assert_eq!(got, Err(PassRefusal::OtherShape));
            }
        }
        Ok(())
    });
    let mut rt = runtime();
    rt.set_passes(only(pass));
    let graph = TurnedGraph::builder().build(&mut rt).unwrap();
    for round in 0..3 {
        let step = rt.step().unwrap();
        let x = step.tensor(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let (y, _) = graph.call(&step, &x).unwrap();
        if round > 0 {
            assert_eq!(step.read(&y).unwrap(), [2.0, 8.0, 4.0, 10.0, 6.0, 12.0]);
        }
    }
    assert_eq!(report(&rt).refused.len(), 2);
}

#[graphable]
fn turned(x: &Tensor<f32>) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let y = ops::exp(&ops::permute(x, &[1, 0])?)?;
    let sum = ops::sum(&y, 0)?;
    Ok((y, sum))
}

#[test]
fn a_pass_that_fails_leaves_the_runtime_usable() {
    let how = Arc::new(AtomicUsize::new(0));
    let chosen = Arc::clone(&how);
    let pass = Closure::new(move |program| {
        for (id, x, y) in unary(program, "neg") {
            // What it asked for is forgotten.
            program.replace(&[id], times(100.0, x, y))?;
        }
        match chosen.load(Ordering::Relaxed) {
            0 => Err("on purpose".into()),
            1 => panic!("at {}", "random"),
            2 => std::panic::panic_any(7),
            _ => {
                let launch = program.launches().next().ok_or("a launch")?;
                // A refusal is a failure if the pass says so.
                Ok(program.replace(&[launch.id(), launch.id()], TIMES.replacement())?)
            }
        }
    });
    let mut rt = runtime();
    let sum = State::new(&rt, &[2], &[0.0f32; 2]).unwrap();
    let passes = only(pass);
    for mode in [Mode::Piecewise, Mode::Full] {
        let graph = TwoGraph::builder().mode(mode).build(&mut rt).unwrap();
        rt.set_passes(passes.clone());
        for (number, expected) in [
            "on purpose",
            "it panicked: at random",
            "it panicked: without a message",
            "the pass has replaced it before",
        ]
        .into_iter()
        .enumerate()
        {
            how.store(number, Ordering::Relaxed);
            if number == 0 {
                // Warm-up.
                call(&mut rt, &graph, &sum).unwrap();
            }
            let before = rt.stats();
            for _ in 0..2 {
                match call(&mut rt, &graph, &sum) {
                    Err(Error::PassFailed { pass: "mine", reason, segment }) => {
                        assert_eq!(reason, expected);
                        assert!(segment.contains("two"), "{segment}");
                    }
                    other => panic!("{other:?}"),
                }
                rt.check_memory().unwrap();
            }
            let after = rt.stats();
            assert_eq!(
                (after.recordings, after.live_recordings),
                (before.recordings, before.live_recordings)
            );
        }
        rt.set_passes(Passes::default());
        for _ in 0..3 {
            assert_eq!(call(&mut rt, &graph, &sum).unwrap(), (vec![3.0, 4.0], X.to_vec()), "{mode}");
        }
    }
}

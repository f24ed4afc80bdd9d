//! Passes of users: what they see, replace and are refused; audits with and without a bound; and passes that fail.

use std::{
    cell::Cell,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use graphable::{
    CpuOptions, Mode, Numerics, Passes,
    custom::{CudaGrid, CudaKernel, CudaSource, CustomOp, CustomReplacement},
    inspect::{PassRefusal, PassReport},
    passes::{Bound, Constant, LaunchId, Nesting, Pass, PassFailure, Program, TensorRef, kernel},
    prelude::*,
};

use crate::device;

fn runtime() -> Runtime {
    Runtime::with_backend(device::backend(CpuOptions::default().test_mode(1).threads(1))).unwrap()
}

type Code = dyn Fn(&Program<'_>) -> Result<(), PassFailure> + Send + Sync;

/// A pass that runs a closure.
struct Closure {
    bound: Option<Bound>,
    code: Box<Code>,
}

impl Closure {
    fn new(code: impl Fn(&Program<'_>) -> Result<(), PassFailure> + Send + Sync + 'static) -> Self {
        Self { bound: None, code: Box::new(code) }
    }

    fn within(self, bound: Bound) -> Self {
        Self { bound: Some(bound), ..self }
    }
}

impl Pass for Closure {
    fn name(&self) -> &'static str {
        "mine"
    }

    fn bound(&self) -> Option<Bound> {
        self.bound
    }

    fn run(&self, program: &Program<'_>) -> Result<(), PassFailure> {
        (self.code)(program)
    }
}

const SOURCE: &str = r#"
extern "C" __global__ void times(const float* x, float* y, float by, unsigned long long n) {
    const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * by;
}
"#;

static TIMES: LazyLock<CustomOp> = LazyLock::new(|| {
    let op = CustomOp::builder("times").deterministic().cpu(|call| {
        let (x, y, by) = (call.input::<f32>(0)?, call.output::<f32>(0)?, call.scalar::<f32>(0)?);
        y.iter_mut().zip(x).for_each(|(y, x)| *y = x * by);
        Ok(())
    });
    // SAFETY: `times` below passes what the kernel takes, which stays within `n` elements.
    let kernel = unsafe {
        CudaKernel::new(CudaSource::Cuda(SOURCE.into()), "times", |shapes| {
            CudaGrid::for_elements(shapes.output(0).iter().product(), 128)
        })
    };
    op.cuda(kernel).build()
});

/// `x * by`, whatever it replaces.
fn times(by: f32, x: TensorRef, y: TensorRef) -> CustomReplacement {
    let count = y.shape().iter().product();
    TIMES.replacement().input::<f32>(x).output::<f32>(y).scalar(by).size(count)
}

/// The one input and output of each launch of that operation.
fn unary(program: &Program<'_>, operation: &str) -> Vec<(LaunchId, TensorRef, TensorRef)> {
    let named = program.launches().filter(|launch| launch.operation() == operation);
    named.map(|launch| (launch.id(), launch.inputs()[0], launch.outputs()[0])).collect()
}

/// Replaces all launches of `neg` by a multiplication.
fn replacing_neg(by: f32) -> Closure {
    Closure::new(move |program| {
        for (id, x, y) in unary(program, "neg") {
            program.replace(&[id], times(by, x, y))?;
        }
        Ok(())
    })
}

/// Alone, so that built-in passes join nothing that the tests count.
fn only(pass: Closure) -> Passes {
    Passes::none().with(pass)
}

thread_local! {
    /// What bodies wrongly depend on.
    static AMBIENT: Cell<f32> = const { Cell::new(1.0) };
}

/// The first result depends on `neg`, the second does not.
#[graphable]
fn two(x: &Tensor<f32>, sum: &State<f32>) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let y = ops::neg(x)?;
    let z = ops::abs(&y)?;
    ops::store(sum, &z)?;
    // What it is cannot be seen in the operations.
    let two = ops::scale(x, 2.0)?;
    let other = if AMBIENT.get() == 1.0 { ops::sub(&two, x)? } else { ops::sub(x, &two)? };
    Ok((z, other))
}

const X: [f32; 2] = [3.0, -4.0];

fn call(rt: &mut Runtime, graph: &TwoGraph, sum: &State<f32>) -> Result<(Vec<f32>, Vec<f32>)> {
    let step = rt.step()?;
    let (z, other) = graph.call(&step, &step.tensor(&[2], &X)?, sum)?;
    Ok((step.read(&z)?, step.read(&other)?))
}

fn report(rt: &Runtime) -> PassReport {
    let tree = rt.tree();
    let passes = &tree.recordings.last().expect("a recording").passes;
    passes.iter().find(|report| report.pass == "mine").expect("its report").clone()
}

#[test]
fn launches_are_counted_and_replaced() {
    for mode in [Mode::Piecewise, Mode::Full] {
        for passes in [only(replacing_neg(-1.0)), Passes::default().with_at(0, replacing_neg(-1.0))] {
            let mut rt = runtime();
            rt.set_passes(passes);
            let sum = State::new(&rt, &[2], &[0.0f32; 2]).unwrap();
            let graph = TwoGraph::builder().mode(mode).audit_every(2).build(&mut rt).unwrap();
            for _ in 0..6 {
                assert_eq!(call(&mut rt, &graph, &sum).unwrap(), (vec![3.0, 4.0], X.to_vec()), "{mode}");
                let step = rt.step().unwrap();
                assert_eq!(step.read(&ops::load(step.scope(), &sum).unwrap()).unwrap(), [3.0, 4.0]);
                drop(step);
            }
            assert_eq!((rt.stats().recordings, rt.stats().fallbacks), (1, 0));
            assert!(rt.stats().audits >= 2);
            let report = report(&rt);
            assert_eq!(
                (report.made[0].operation, report.made[0].replaces, report.made[0].count),
                ("times", 1, 1)
            );
            assert_eq!(report.to_string(), "mine: 1 x times for 1 operation each");
            let tree = rt.tree();
            assert!(tree.to_string().contains("pass   mine: 1 x times"), "{tree}");
            // The body has not changed.
            assert!(tree.recordings[0].operations.contains(&"neg".to_owned()));
            assert!(
                tree.to_json()
                    .contains(r#""pass":"mine","bound":null,"notes":[],"made":[{"operation":"times""#)
            );
            if device::gpu().is_none() {
                let topology = rt.topology(tree.recordings[0].id).unwrap().unwrap().to_string();
                assert!(topology.contains("times") && !topology.contains("neg"), "{topology}");
            }
        }
    }
}

#[kernel]
fn flipped(x: f32, by: f32) -> f32 {
    x * by
}

#[kernel]
fn both(x: f32) -> (f32, f32) {
    (-x, x + x)
}

#[graphable]
fn pair(x: &Tensor<f32>) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let y = ops::neg(x)?;
    let two = ops::scale(x, 2.0)?;
    let z = ops::abs(&y)?;
    Ok((z, ops::sub(&two, x)?))
}

#[test]
fn kernels_replace_one_launch_or_several() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let pass = Closure::new(move |program| {
        let [(neg, x, y)] = unary(program, "neg")[..] else { return Err("one".into()) };
        let [scale] = program.launches().filter(|l| l.operation() == "scale").collect::<Vec<_>>()[..] else {
            return Err("one".into());
        };
        noted.lock().unwrap().push((scale.constants(), program.leaves(&y), program.readers(&y).len()));
        let both = kernel::<both>().input(x).output(y).output(scale.outputs()[0]);
        program.replace(&[neg, scale.id()], both)?;
        for (abs, x, y) in unary(program, "abs") {
            program.note(format_args!("{:?}", program.launch(abs).unwrap()));
            // Of other values it is wrong.
            program.replace(&[abs], kernel::<flipped>().input(x).number(-1.0f32).output(y))?;
        }
        Ok(())
    });
    let mut rt = runtime();
    rt.set_passes(only(pass));
    let graph = PairGraph::builder().build(&mut rt).unwrap();
    for round in 0..3 {
        let step = rt.step().unwrap();
        let (z, other) = graph.call(&step, &step.tensor(&[2], &X).unwrap()).unwrap();
        let expected = if round < 1 { [3.0, 4.0] } else { X };
        assert_eq!((step.read(&z).unwrap(), step.read(&other).unwrap()), (expected.to_vec(), X.to_vec()));
    }
    let report = report(&rt);
    assert_eq!(
        report.to_string(),
        "mine: [f32 [2]] -> abs -> [f32 [2]]; 1 x both for 2 operations each, 1 x flipped for 1 operation each"
    );
    // Only `abs` reads the negated values, which are freed then.
    assert_eq!(*seen.lock().unwrap(), [(vec![Constant::Float(2.0)], false, 1)]);
}

#[test]
fn audits_hold_a_pass_to_what_it_promises() {
    let wrong = || replacing_neg(-1.001);
    for (pass, every_audit) in [
        (wrong(), Some("output 0: first at byte 0 of 8")),
        (wrong().within(Bound::relative(0.01)), None),
        (wrong().within(Bound::absolute(0.01)), None),
        (
            wrong().within(Bound::relative(1e-4)),
            Some(
                "output 0: element 0: the replay gave 3.003000259399414, the body 3, beyond 0.0001 of the value",
            ),
        ),
        (wrong().within(Bound::absolute(-1.0)), Some("output 0: element 0: ")),
    ] {
        for mode in [Mode::Piecewise, Mode::Full] {
            let pass =
                Closure { bound: pass.bound, code: Box::new(|program| replacing_neg(-1.001).run(program)) };
            let mut rt = runtime();
            rt.set_passes(only(pass));
            let sum = State::new(&rt, &[2], &[0.0f32; 2]).unwrap();
            let graph = TwoGraph::builder().mode(mode).audit_every(1).build(&mut rt).unwrap();
            call(&mut rt, &graph, &sum).unwrap();
            call(&mut rt, &graph, &sum).unwrap();
            for _ in 0..3 {
                match (every_audit, call(&mut rt, &graph, &sum)) {
                    (None, Ok((z, _))) => assert_eq!(z, X.map(|x| (x * -1.001f32).abs())),
                    (Some(expected), Err(Error::AuditMismatch { what, detail, .. })) => {
                        let found = format!("{what}: {detail}");
                        assert!(found.starts_with(expected), "{found}");
                    }
                    other => panic!("{other:?}"),
                }
            }
            rt.check_memory().unwrap();
        }
    }
}

/// What does not depend on the pass is compared bit by bit, however large its bound is.
#[test]
fn a_bound_is_for_what_depends_on_the_pass_alone() {
    let mut rt = runtime();
    rt.set_passes(only(replacing_neg(-1.0).within(Bound::absolute(1e9))));
    let sum = State::new(&rt, &[2], &[0.0f32; 2]).unwrap();
    let graph = TwoGraph::builder().audit_every(1).build(&mut rt).unwrap();
    for _ in 0..3 {
        call(&mut rt, &graph, &sum).unwrap();
    }
    AMBIENT.set(3.0);
    let error = call(&mut rt, &graph, &sum).unwrap_err();
    AMBIENT.set(1.0);
    assert!(matches!(&error, Error::AuditMismatch { what, .. } if what == "output 1"), "{error}");
    call(&mut rt, &graph, &sum).unwrap();
}

/// A copy of a state lies where a tensor was that depended on the pass.
#[graphable]
fn copied(x: &Tensor<f32>, state: &State<f32>) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let z = ops::abs(&ops::neg(x)?)?;
    let copy = ops::load(x.scope(), state)?;
    let other = if AMBIENT.get() == 1.0 { ops::sub(&copy, x)? } else { ops::sub(x, &copy)? };
    Ok((z, other))
}

#[test]
fn freed_memory_does_not_depend_on_the_pass() {
    let mut rt = runtime();
    rt.set_passes(only(replacing_neg(-1.0).within(Bound::absolute(1e9))));
    let state = State::new(&rt, &[2], &[5.0f32; 2]).unwrap();
    let graph = CopiedGraph::builder().audit_every(1).build(&mut rt).unwrap();
    let call = |rt: &mut Runtime| {
        let step = rt.step()?;
        let (_, other) = graph.call(&step, &step.tensor(&[2], &X)?, &state)?;
        step.read(&other)
    };
    for _ in 0..3 {
        call(&mut rt).unwrap();
    }
    AMBIENT.set(3.0);
    let error = call(&mut rt).unwrap_err();
    AMBIENT.set(1.0);
    assert!(matches!(&error, Error::AuditMismatch { what, .. } if what == "output 1"), "{error}");
}

/// Rows of a state, of which some depend on the pass.
#[graphable]
fn rows(x: &Tensor<f32>, at: &Tensor<u32>, table: &State<f32>, log: &State<f32>) -> Result<Tensor<f32>> {
    ops::store(log, x)?;
    let y = ops::neg(x)?;
    ops::scatter_rows(table, at, &ops::reshape(&y, (1, 2))?)?;
    ops::abs(x)
}

#[test]
fn states_are_compared_within_the_bound() {
    for (bound, is_fine) in
        [(Some(Bound::absolute(0.5)), true), (Some(Bound::absolute(1e-6)), false), (None, false)]
    {
        let mut rt = runtime();
        rt.set_passes(only(Closure { bound, ..replacing_neg(-1.01) }));
        let (table, log) =
            (State::new(&rt, &[3, 2], &[7.0f32; 6]).unwrap(), State::new(&rt, &[2], &[0.0f32; 2]).unwrap());
        let graph = RowsGraph::builder().audit_every(1).build(&mut rt).unwrap();
        for round in 0..4 {
            let step = rt.step().unwrap();
            let (x, at) = (step.tensor(&[2], &X).unwrap(), step.tensor(&[1], &[1u32]).unwrap());
            let called = graph.call(&step, &x, &at, &table, &log).and_then(|y| step.read(&y));
            match (round < 2 || is_fine, called) {
                (true, Ok(y)) => assert_eq!(y, [3.0, 4.0]),
                (false, Err(Error::AuditMismatch { what, .. })) => {
                    assert!(what.starts_with("state "), "{what}")
                }
                other => panic!("{other:?}"),
            }
            if is_fine && round > 0 {
                assert_eq!(
                    step.read(&ops::load(step.scope(), &table).unwrap()).unwrap(),
                    [7.0, 7.0, -3.03, 4.04, 7.0, 7.0]
                );
            }
        }
    }
}

/// What a round leaves, the next one reads; and `other` is written by rounds of which a replaced launch decides the number.
#[graphable]
fn rounds(x: &Tensor<f32>) -> Result<(Tensor<f32>, Tensor<f32>, Tensor<f32>)> {
    let mut y = ops::abs(x)?;
    let mut n = ops::full(x.scope(), (), 0u32)?;
    let mut other = ops::zeros_like(x)?;
    #[device]
    while ops::lt(&n, 3)? {
        other = ops::add(&other, &y)?;
        y = ops::neg(&y)?;
        n = ops::add(&n, 1)?;
    }
    Ok((y, other, ops::scale(x, 2.0)?))
}

#[test]
fn results_of_bodies_depend_on_earlier_rounds() {
    for (bound, is_fine) in [(Some(Bound::absolute(1.0)), true), (None, false)] {
        let mut rt = runtime();
        rt.set_passes(Passes::default().with_at(0, Closure { bound, ..replacing_neg(-1.01) }));
        let graph = RoundsGraph::builder().audit_every(1).build(&mut rt).unwrap();
        for round in 0..4 {
            let step = rt.step().unwrap();
            let called = graph.call(&step, &step.tensor(&[2], &X).unwrap());
            let called = called
                .and_then(|(y, other, twice)| Ok((step.read(&y)?, step.read(&other)?, step.read(&twice)?)));
            match (round < 2 || is_fine, called) {
                (true, Ok((y, _, twice))) => {
                    let exact = y == [-3.0, -4.0];
                    assert_eq!((exact, twice), (round == 0, vec![6.0, -8.0]), "{y:?}");
                }
                (false, Err(Error::AuditMismatch { .. })) => {}
                other => panic!("{other:?}"),
            }
        }
        let nested = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&nested);
        rt.set_passes(only(Closure::new(move |program| {
            let nesting = program.launches().map(|launch| (launch.operation(), launch.nesting().to_vec()));
            noted.lock().unwrap().extend(nesting.filter(|(name, _)| ["neg", "scale"].contains(name)));
            Ok(())
        })));
        for _ in 0..2 {
            let step = rt.step().unwrap();
            graph.call(&step, &step.tensor(&[2], &X).unwrap()).unwrap();
        }
        assert_eq!(*nested.lock().unwrap(), [("neg", vec![Nesting::Body(0)]), ("scale", vec![])]);
    }
}

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

/// The bound of what depends on two passes is the sum of theirs.
#[test]
fn bounds_add_up() {
    for (bound, is_fine) in [(0.05, true), (0.03, false)] {
        let passes = || {
            let abs = Closure::new(move |program| {
                for (id, x, y) in unary(program, "abs") {
                    program.replace(&[id], times(1.01, x, y))?;
                }
                Ok(())
            });
            only(replacing_neg(1.01).within(Bound::absolute(bound))).with(abs.within(Bound::absolute(bound)))
        };
        let mut rt = runtime();
        rt.set_passes(passes());
        let sum = State::new(&rt, &[2], &[0.0f32; 2]).unwrap();
        let graph = TwoGraph::builder().audit_every(1).build(&mut rt).unwrap();
        for round in 0..4 {
            let step = rt.step().unwrap();
            // Where both are right but for rounding: 4 * 1.01 * 1.01 is 0.0804 too large.
            let called = graph.call(&step, &step.tensor(&[2], &[3.0f32, 4.0]).unwrap(), &sum);
            assert_eq!(called.is_ok(), round < 2 || is_fine, "{bound}: {:?}", called.err());
        }
    }
}

#[test]
fn passes_are_part_of_the_key() {
    let mut rt = runtime();
    let sum = State::new(&rt, &[2], &[0.0f32; 2]).unwrap();
    let with = Passes::default().with(replacing_neg(-1.0));
    // In every order of runtime and graph.
    let plain = TwoGraph::builder().build(&mut rt).unwrap();
    let own = TwoGraph::builder().passes(with.clone()).build(&mut rt).unwrap();
    let same = TwoGraph::builder().passes(with.clone()).build(&mut rt).unwrap();
    let none = TwoGraph::builder().passes(Passes::none()).build(&mut rt).unwrap();
    let made = |rt: &mut Runtime, graph: &TwoGraph| {
        let before = rt.stats().recordings;
        for _ in 0..4 {
            assert_eq!(call(rt, graph, &sum).unwrap().0, [3.0, 4.0]);
        }
        rt.stats().recordings - before
    };
    assert_eq!(made(&mut rt, &plain), 1);
    assert_eq!(made(&mut rt, &own), 1, "it has other passes");
    assert_eq!(made(&mut rt, &same), 0, "these are the same");
    assert_eq!(made(&mut rt, &none), 1);
    // All built-in ones, however one came by them.
    rt.set_passes(Passes::default().without("nothing").with(replacing_neg(-1.0)).without("mine"));
    assert_eq!(made(&mut rt, &plain), 0);
    rt.set_passes(with.clone());
    assert_eq!((made(&mut rt, &plain), made(&mut rt, &none)), (0, 0));
    // Added again, it is another.
    rt.set_passes(Passes::default().with(replacing_neg(-1.0)));
    assert_eq!(made(&mut rt, &plain), 1);
    rt.set_passes(Passes::default().without("fuse_elementwise"));
    assert_eq!((made(&mut rt, &plain), made(&mut rt, &own)), (1, 0));
    rt.set_passes(Passes::default());
    assert_eq!(made(&mut rt, &plain), 0);
}

//! Operations of users: values against the host, mistakes, padding, and every mode.

use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicUsize, Ordering},
};

use graphable::{
    cudarc::{
        self,
        driver::{CudaContext, sys},
    },
    custom::{
        CpuCall, CpuFailure, CudaCall, CudaGrid, CudaKernel, CudaLibrary, CudaSource, CustomOp,
        CustomOpBuilder, LibraryError, Shapes,
    },
    prelude::*,
};
use rand::Rng as _;

use crate::{
    custom_ops::{accumulate, column_sums, row_max, scaled_add},
    device::{gpu, skipped_on_gpus},
    harness::{assert_same, cases, device, events, in_step, input, is_argument, is_shape, shape},
    reference::Array,
};

#[test]
fn strided_views_and_scalars() {
    cases(60, |step, rng| {
        let dims = shape(rng, 0, 5);
        let (a, ha) = input::<f32>(step, rng, &dims, (-4.0, 4.0));
        let (b, hb) = input::<f32>(step, rng, &dims, (-4.0, 4.0));
        let factor = rng.random_range(-2.0f32..2.0);
        let want = Array::from_fn(&dims, |i| f64::from(ha.at(i) as f32 * factor + hb.at(i) as f32));
        assert_same(step, &scaled_add(&a, &b, factor).unwrap(), &want);
    });
}

#[test]
fn several_outputs_of_several_types() {
    cases(40, |step, rng| {
        let dims = [rng.random_range(1..30), rng.random_range(1..9)];
        let (x, hx) = input::<f32>(step, rng, &dims, (-4.0, 4.0));
        let x = ops::contiguous(&x).unwrap();
        let (max, place) = row_max(&x).unwrap();
        let best = |row: usize| {
            (1..dims[1]).fold(0, |best, i| if hx.at(&[row, i]) > hx.at(&[row, best]) { i } else { best })
        };
        assert_same(step, &max, &Array::from_fn(&dims[..1], |i| hx.at(&[i[0], best(i[0])])));
        assert_same(step, &place, &Array::from_fn(&dims[..1], |i| best(i[0]) as f64));
    });
}

#[test]
fn empty_outputs_launch_nothing() {
    in_step(|step| {
        let x = ops::zeros::<f32>(step.scope(), &[0, 3]).unwrap();
        assert_eq!(step.read(&scaled_add(&x, &x, 1.0).unwrap()).unwrap().len(), 0);
    });
}

#[test]
fn mistakes_of_a_call_are_typed() {
    in_step(|step| {
        let x = step.tensor(&[2, 3], &[1.0f32; 6]).unwrap();
        let turned = ops::transpose(&x, 0, 1).unwrap();
        assert!(is_shape(scaled_add(&x, &turned, 1.0)));
        // A pointer to rows end to end.
        let text = column_sums(&turned).unwrap_err().to_string();
        assert!(
            text.contains("column_sums: an input is strided") && text.contains("ops::contiguous"),
            "{text}"
        );
        assert!(is_shape(column_sums(&ops::zeros(step.scope(), &[4]).unwrap())));
    });
}

#[test]
fn a_device_without_code_is_named() {
    let nothing = CustomOp::builder("nothing").build();
    in_step(|step| {
        let x = step.tensor(&[2], &[1.0f32; 2]).unwrap();
        let error = nothing.call(x.scope()).input(&x).output::<f32>(x.shape()).run().unwrap_err();
        assert!(matches!(error, Error::NoCode { op: "nothing", .. }), "{error}");
        let remedy = if gpu().is_some() { "CustomOpBuilder::cuda" } else { "CustomOpBuilder::cpu" };
        assert!(error.to_string().contains(remedy), "{error}");
        // Nothing is wrong with what follows.
        assert_eq!(step.read(&x).unwrap(), [1.0; 2]);
    });
}

/// Calls `op` on two elements, and reads what comes out.
fn run_once(step: &Step<'_>, op: &CustomOp) -> Result<Vec<f32>> {
    let x = step.tensor(&[2], &[3.0f32, 4.0])?;
    step.read(&op.call(x.scope()).input(&x).scalar(7u32).output(x.shape()).run()?)
}

#[test]
fn state_that_is_also_read_is_refused_before_anything_is_launched() {
    let op = CustomOp::builder("in_place").cpu(|call| call.state::<f32>(0).map(|s| s.fill(9.0))).build();
    let mut rt = Runtime::new(device()).unwrap();
    let state = State::new(&rt, &[4], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
    for round in 0..2 {
        let step = rt.step().unwrap();
        let call = || op.call(step.scope());
        let last = ops::cache_view(&state).narrow(0, 3, 1).unwrap();
        for (refused, overlaps) in [
            (call().input(&state).state(&state).run(), "an input overlaps the state that it writes"),
            (call().state(&state).input(&last).run(), "an input overlaps the state that it writes"),
            (call().view(&state).state(&state).output::<f32>(()).run().map(drop), "an input overlaps"),
            (call().state(&state).state(&state).run(), "it is passed the same state twice"),
        ] {
            let error = refused.unwrap_err();
            assert!(matches!(error, Error::Argument { op: "in_place", .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains(overlaps) && text.contains("`ops::load`"), "{text}");
        }
        assert_eq!(
            step.read(&ops::load(step.scope(), &state).unwrap()).unwrap(),
            [1.0, 2.0, 3.0, 4.0],
            "{round}"
        );
    }
}

#[test]
fn a_segment_that_writes_what_it_reads_is_never_recorded() {
    #[graphable]
    fn doubled(x: &Tensor<f32>, state: &State<f32>) -> Result<Tensor<f32>> {
        static OP: LazyLock<CustomOp> =
            LazyLock::new(|| CustomOp::builder("doubled").cpu(|_| Ok(())).build());
        OP.call(x.scope()).input(state).state(state).run()?;
        ops::neg(x)
    }
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(device()).unwrap();
        let state = State::zeros(&rt, &[4]).unwrap();
        let graph = DoubledGraph::builder().mode(mode).build(&mut rt).unwrap();
        for _ in 0..4 {
            let step = rt.step().unwrap();
            assert!(is_argument(graph.call(&step, &step.tensor(&[1], &[1.0]).unwrap(), &state)), "{mode}");
        }
        assert_eq!(rt.stats().replays, 0, "{mode}");
    }
}

/// A panic payload whose drop panics.
struct PanicsAgain;

impl Drop for PanicsAgain {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn code_for_the_cpu_that_fails_is_reported_and_the_runtime_goes_on() {
    if skipped_on_gpus(
        "code_for_the_cpu_that_fails_is_reported_and_the_runtime_goes_on",
        "its operations have code for the CPU alone",
    ) {
        return;
    }
    let op =
        |code: fn(&CpuCall<'_>) -> Result<(), CpuFailure>| CustomOp::builder("careless").cpu(code).build();
    in_step(|step| {
        for (code, reason) in [
            (op(|_| Err("no luck".into())), "no luck"),
            (op(|_| panic!("oh no: {}", 3)), "it panicked: oh no: 3"),
            (op(|_| std::panic::panic_any(PanicsAgain)), "it panicked: without a message"),
            (op(|call| call.input::<u32>(0).map(drop)), "input 0 has elements of type f32, not u32"),
            (op(|call| call.input::<f32>(1).map(drop)), "there is no input 1"),
            (op(|call| call.output::<f32>(1).map(drop)), "there is no output 1"),
            (op(|call| call.state::<f32>(0).map(drop)), "there is no state 0"),
            (op(|call| call.scalar::<u64>(0).map(drop)), "scalar 0 has type u32, not u64"),
            (op(|call| call.scalar::<f32>(0).map(drop)), "scalar 0 has type u32, not f32"),
            (op(|call| call.scalar::<i32>(0).map(drop)), "scalar 0 has type u32, not i32"),
            (op(|call| call.scalar::<u32>(1).map(drop)), "there is no scalar 1"),
            (op(|call| call.real_size(0).map(drop)), "there is no real size 0"),
            (
                op(|call| {
                    let _first = call.output::<f32>(0)?;
                    call.output::<f32>(0).map(drop)
                }),
                "output 0 was taken before; take it once",
            ),
        ] {
            match run_once(step, &code) {
                Err(Error::OperationFailed { op: "careless", reason: said }) => assert_eq!(said, reason),
                other => panic!("{reason}: {other:?}"),
            }
        }
        let fine = op(|call| {
            let (x, y) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
            y.copy_from_slice(x);
            Ok(())
        });
        assert_eq!(run_once(step, &fine).unwrap(), [3.0, 4.0]);
    });
}

/// If the driver can say which parameters a kernel has.
fn driver_knows_parameters() -> bool {
    let mut version = 0;
    // SAFETY: one number is written.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().is_ok() && version >= 12_040
}

#[test]
fn sources_that_do_not_fit_are_typed_errors() {
    if gpu().is_none() {
        return;
    }
    let op = |source: &'static str, entry, grid: CudaGrid| {
        // SAFETY: none of these kernels ever runs.
        let kernel = unsafe { CudaKernel::new(CudaSource::Cuda(source.into()), entry, move |_| grid) };
        CustomOp::builder("wrong").cuda(kernel).build()
    };
    let line = CudaGrid::for_elements(2, 32);
    let right = "extern \"C\" __global__ void right(float *x, unsigned n, float *y) {}";
    in_step(|step| {
        let error = run_once(step, &op("extern \"C\" __global__ void f() { undeclared(); }", "f", line));
        assert!(
            matches!(&error, Err(Error::Compile { op: "wrong", log }) if log.contains("undeclared")),
            "{error:?}"
        );
        let refused = |op: &CustomOp, reason: &str| match run_once(step, op) {
            Err(Error::Argument { op: "wrong", reason: said }) => assert!(said.contains(reason), "{said}"),
            other => panic!("{reason}: {other:?}"),
        };
        refused(&op(right, "another", line), "no function `another`");
        if driver_knows_parameters() {
            let fewer = "extern \"C\" __global__ void fewer(float *x) {}";
            refused(&op(fewer, "fewer", line), "`fewer` has 1 parameter, and the call names 3 arguments");
            let wide = "extern \"C\" __global__ void wide(float *x, unsigned long long n, float *y) {}";
            refused(
                &op(wide, "wide", line),
                "parameter 1 (from 0) of `wide` has 8 bytes, and the call passes a `u32`",
            );
        }
        refused(&op(right, "right", line.shared_bytes(1 << 30)), "1073741824 bytes of shared memory");
        refused(&op(right, "right", CudaGrid::new([1, 65_536, 1], [32, 1, 1])), "blocks [1, 65536, 1]");
        // SAFETY: it never runs.
        let kernel = unsafe {
            CudaKernel::new(CudaSource::Cuda(right.into()), "right", move |_| line).workspace(|_| u64::MAX)
        };
        refused(
            &CustomOp::builder("wrong").cuda(kernel).build(),
            "a workspace of 18446744073709551615 bytes",
        );
        let none = CudaGrid::new([0, 1, 1], [32, 1, 1]);
        assert!(is_argument(run_once(step, &op(right, "right", none))));
        let huge = CudaGrid::new([1; 3], [64, 32, 1]);
        assert!(is_argument(run_once(step, &op(right, "right", huge))));
        assert_eq!(step.read(&step.tensor(&[1], &[1.0f32]).unwrap()).unwrap(), [1.0]);
    });
}

#[test]
fn ptx_is_loaded_as_it_is() {
    const PTX: &str = "
        .version 7.0
        .target sm_80
        .address_size 64
        .visible .entry copied(.param .u64 x, .param .u32 shift, .param .u64 y) {
            .reg .b32 %r<4>;
            .reg .b64 %rd<6>;
            ld.param.u64 %rd1, [x];
            ld.param.u32 %r1, [shift];
            ld.param.u64 %rd2, [y];
            mov.u32 %r2, %tid.x;
            mul.wide.u32 %rd3, %r2, 4;
            add.s64 %rd4, %rd1, %rd3;
            ld.global.u32 %r3, [%rd4];
            add.s64 %rd5, %rd2, %rd3;
            st.global.u32 [%rd5], %r3;
            ret;
        }";
    if gpu().is_none() {
        return;
    }
    // SAFETY: the kernel has the parameters of `run_once`, and its two threads touch one element each.
    let kernel = unsafe {
        CudaKernel::new(CudaSource::Ptx(PTX.into()), "copied", |_| CudaGrid::new([1; 3], [2, 1, 1]))
    };
    let op = CustomOp::builder("copied").cuda(kernel).build();
    in_step(|step| assert_eq!(run_once(step, &op).unwrap(), [3.0, 4.0]));
}

/// Everything that a segment may do with them, around a region that runs on every call.
#[graphable]
fn mixed(
    #[host]
    #[dims(B, 3)]
    x: &Tensor<f32>,
    sum: &State<f32>,
) -> Result<Tensor<f32>> {
    let doubled = scaled_add(x, x, 1.0)?;
    let (max, _) = row_max(&doubled)?;
    let seen = #[eager(support = Always)]
    scaled_add(&max, &max, 0.5)?;
    let columns = column_sums(&doubled)?;
    accumulate(sum, &columns)?;
    let total = ops::load(x.scope(), sum)?;
    let rows = ops::unsqueeze(&seen, 1)?;
    ops::add(&rows, &total)
}

#[test]
fn in_every_mode_with_buckets_and_audits() {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        for audited in [0, 2] {
            let mut rt = Runtime::new(device()).unwrap();
            let sum = State::zeros(&rt, &[3]).unwrap();
            let graph = MixedGraph::builder()
                .bucket("B", Schedule::new([2, 4]))
                .mode(mode)
                .audit_every(audited)
                .deny_fallback(true)
                .build(&mut rt)
                .unwrap();
            let mut host = [0.0f32; 3];
            for round in 0..6 {
                for n in [1usize, 2, 3, 4] {
                    let x: Vec<f32> = (0..3 * n).map(|i| ((i * 7 + round) % 11) as f32).collect();
                    for (column, sum) in host.iter_mut().enumerate() {
                        *sum += (0..n).map(|row| 2.0 * x[3 * row + column]).sum::<f32>();
                    }
                    let max = |row: usize| x[3 * row..][..3].iter().fold(0.0f32, |a, b| a.max(2.0 * b));
                    let want: Vec<f32> =
                        (0..n).flat_map(|row| host.map(|sum| sum + 1.5 * max(row))).collect();
                    let step = rt.step().unwrap();
                    let y = graph.call(&step, &x, &sum).unwrap();
                    assert_eq!(step.read(&y).unwrap(), want, "{mode}, round {round}, {n} rows");
                }
            }
            let stats = rt.stats();
            assert_eq!(stats.fallbacks, 0);
            assert_eq!(stats.replays > 0, mode != Mode::None, "{stats:?}");
        }
    }
}

#[test]
fn a_key_selects_the_operation() {
    /// Any operation of one input and one output of its shape.
    #[graphable]
    fn applied(x: &Tensor<f32>, #[key] op: CustomOp) -> Result<Tensor<f32>> {
        let y = ops::neg(x)?;
        op.call(y.scope()).input(&y).count(&y).output(y.shape()).run()
    }
    let plus = |amount: f32, entry| {
        let op = CustomOp::builder("plus").cpu(move |call| {
            let (x, y) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
            y.iter_mut().zip(x).for_each(|(y, x)| *y = x + amount);
            Ok(())
        });
        let source = "
            #define PLUS(name, amount) extern \"C\" __global__ void name(const float *x, unsigned long long n, float *y) { \
                for (unsigned long long i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] + amount; }
            PLUS(plus_one, 1) PLUS(plus_ten, 10)";
        // SAFETY: the kernel takes what the call passes, and stays within `n` elements.
        op.cuda(unsafe {
            CudaKernel::new(CudaSource::Cuda(source.into()), entry, |_| CudaGrid::for_elements(1, 32))
        })
        .build()
    };
    let (one, ten) = (plus(1.0, "plus_one"), plus(10.0, "plus_ten"));
    let mut rt = Runtime::new(device()).unwrap();
    rt.keep_events(true);
    let graph = AppliedGraph::builder().build(&mut rt).unwrap();
    for _ in 0..4 {
        for (op, amount) in [(&one, 1.0), (&ten, 10.0)] {
            let step = rt.step().unwrap();
            let x = step.tensor(&[2], &[1.0f32, 2.0]).unwrap();
            let y = graph.call(&step, &x, op.clone()).unwrap();
            assert_eq!(step.read(&y).unwrap(), [amount - 1.0, amount - 2.0]);
        }
    }
    // One recording each: the name is the same, the operation is not.
    assert_eq!(events(&rt), "wwrrpppp");
}

#[test]
fn padding_is_refused_unless_the_operation_says_what_it_does_with_it() {
    /// Says nothing, but reads rows.
    fn silent<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
        static OP: LazyLock<CustomOp> = LazyLock::new(|| {
            CustomOp::builder("silent").cpu(|call| call.output::<f32>(0).map(|y| y.fill(0.0))).build()
        });
        OP.call(x.scope()).input(x).output(x.shape()).run()
    }
    /// Keeps padding, it says; its output has none.
    fn forgetful<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
        static OP: LazyLock<CustomOp> = LazyLock::new(|| {
            let op = CustomOp::builder("forgetful").keeps_padding();
            op.cpu(|call| call.output::<f32>(0).map(|y| y.fill(0.0))).build()
        });
        OP.call(x.scope()).input(x).output(&[2]).run()
    }
    #[graphable]
    fn calls_silent(
        #[host]
        #[dims(B, 2)]
        x: &Tensor<f32>,
    ) -> Result<Tensor<f32>> {
        silent(x)
    }
    #[graphable]
    fn calls_forgetful(
        #[host]
        #[dims(B, 2)]
        x: &Tensor<f32>,
    ) -> Result<Tensor<f32>> {
        forgetful(x)
    }
    #[graphable]
    fn writes_padding(
        #[host]
        #[dims(B, 2)]
        x: &Tensor<f32>,
        sum: &State<f32>,
    ) -> Result<Tensor<f32>> {
        static OP: LazyLock<CustomOp> =
            LazyLock::new(|| CustomOp::builder("written").keeps_padding().cpu(|_| Ok(())).build());
        OP.call(x.scope()).input(x).state(sum).run()?;
        ops::neg(x)
    }
    let mut rt = Runtime::new(device()).unwrap();
    let sum = State::zeros(&rt, &[8]).unwrap();
    let schedule = || Schedule::new([4]);
    let silent = CallsSilentGraph::builder().bucket("B", schedule()).build(&mut rt).unwrap();
    let forgetful = CallsForgetfulGraph::builder().bucket("B", schedule()).build(&mut rt).unwrap();
    let written = WritesPaddingGraph::builder().bucket("B", schedule()).build(&mut rt).unwrap();
    for n in [3, 4] {
        let step = rt.step().unwrap();
        let x = vec![1.0; 2 * n];
        for refused in [silent.call(&step, &x), forgetful.call(&step, &x), written.call(&step, &x, &sum)] {
            assert!(matches!(&refused, Err(Error::PaddedMix { axis: 0, symbol, .. }) if symbol == "B"));
        }
    }
}

#[test]
fn what_may_not_be_captured_is_refused_in_segments_in_every_mode() {
    fn uncapturable<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
        static OP: LazyLock<CustomOp> = LazyLock::new(|| copying("uncapturable", false, &Arc::default()));
        OP.call(x.scope()).input(x).output(x.shape()).run()
    }
    #[graphable]
    fn in_a_segment(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        uncapturable(&ops::neg(x)?)
    }
    #[graphable]
    fn in_a_region(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let x = ops::neg(x)?;
        let y = #[eager]
        uncapturable(&x)?;
        ops::neg(&y)
    }
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(device()).unwrap();
        let refused = InASegmentGraph::builder().mode(mode).build(&mut rt).unwrap();
        let allowed = InARegionGraph::builder().mode(mode).build(&mut rt).unwrap();
        for _ in 0..4 {
            let step = rt.step().unwrap();
            let x = step.tensor(&[2], &[1.0f32, 2.0]).unwrap();
            let error = refused.call(&step, &x).unwrap_err();
            assert!(matches!(error, Error::NotCapturable { op: "uncapturable", .. }), "{mode}: {error}");
            assert!(error.to_string().contains("in_a_segment"), "{error}");
            assert!(error.to_string().contains("#[eager(cx)]"), "{error}");
            let y = allowed.call(&step, &x).unwrap();
            assert_eq!(step.read(&y).unwrap(), [1.0, 2.0], "{mode}");
        }
    }
}

/// A library that copies, and counts the values of it that are alive.
struct Copying {
    captures: bool,
    alive: Arc<AtomicUsize>,
}

impl Drop for Copying {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

// SAFETY: the copy is put on the stream of the call, from its input to its output, which has the same size; a copy between
// device addresses may be captured.
unsafe impl CudaLibrary for Copying {
    fn may_be_captured(&self) -> bool {
        self.captures
    }

    fn prepare(&self, context: &Arc<CudaContext>, shapes: &Shapes<'_>) -> Result<u64, LibraryError> {
        let current = cudarc::driver::result::ctx::get_current()?;
        assert_eq!(current, Some(context.cu_ctx()), "the device's context is current");
        Ok(4 * shapes.input(0).iter().product::<usize>() as u64)
    }

    fn launch(&self, call: &CudaCall<'_>) -> Result<(), LibraryError> {
        let bytes = 4 * call.shapes().input(0).iter().product::<usize>();
        // By the workspace, so that it is needed.
        for (to, from) in [(call.workspace(), call.input(0)), (call.output(0), call.workspace())] {
            // SAFETY: both ranges have that many bytes, and the stream is the call's.
            unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, call.stream().cu_stream()) }.result()?;
        }
        Ok(())
    }
}

fn copying(name: &'static str, captures: bool, alive: &Arc<AtomicUsize>) -> CustomOp {
    alive.fetch_add(1, Ordering::SeqCst);
    let library = Copying { captures, alive: Arc::clone(alive) };
    let op = CustomOp::builder(name).keeps_padding().cuda_library(library);
    op.cpu(|call| {
        call.output::<f32>(0)?.copy_from_slice(call.input::<f32>(0)?);
        Ok(())
    })
    .build()
}

/// A copy that may never be captured.
pub(crate) fn never_captured() -> CustomOpBuilder {
    // It counts nothing that a test looks at.
    let library = Copying { captures: false, alive: Arc::new(AtomicUsize::new(1)) };
    CustomOp::builder("never_captured").cuda_library(library).cpu(|call| {
        call.output::<f32>(0)?.copy_from_slice(call.input::<f32>(0)?);
        Ok(())
    })
}

#[test]
fn a_library_is_recorded_replayed_and_audited_and_lives_as_long_as_its_recordings() {
    #[graphable]
    fn through(x: &Tensor<f32>, #[key] op: CustomOp) -> Result<Tensor<f32>> {
        let y = op.call(x.scope()).input(x).output::<f32>(x.shape()).run()?;
        ops::neg(&op.call(y.scope()).input(&y).output(y.shape()).run()?)
    }
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let alive = Arc::<AtomicUsize>::default();
        let mut rt = Runtime::new(device()).unwrap();
        rt.keep_events(true);
        let graph = ThroughGraph::builder().mode(mode).audit_every(3).build(&mut rt).unwrap();
        let op = copying("copying", true, &alive);
        for i in 0..8 {
            let step = rt.step().unwrap();
            let x = step.tensor(&[2, 2], &[i as f32; 4]).unwrap();
            let y = graph.call(&step, &x, op.clone()).unwrap();
            assert_eq!(step.read(&y).unwrap(), [-(i as f32); 4], "{mode}");
        }
        let seen = events(&rt);
        assert!(!seen.contains('f') && (mode == Mode::None || seen.starts_with("wrpp")), "{mode}: {seen}");
        drop(op);
        // Eager work keeps it, too, until the stream has been seen to be past it.
        rt.trim().unwrap();
        let recorded = usize::from(mode != Mode::None);
        assert_eq!(alive.load(Ordering::SeqCst), recorded, "{mode}: a recording keeps it");
        drop((graph, rt));
        assert_eq!(alive.load(Ordering::SeqCst), 0, "{mode}");
    }
}

#[test]
fn branches_and_captures_with_custom_operations() {
    #[graphable]
    fn forked(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let (a, b) = join(x.scope(), || scaled_add(x, x, 2.0), || scaled_add(x, &ops::neg(x)?, 3.0))?;
        scaled_add(&a, &b, 1.0)
    }
    let mut rt = Runtime::new(device()).unwrap();
    let graph = ForkedGraph::builder().audit_every(2).deny_fallback(true).build(&mut rt).unwrap();
    for i in 0..8 {
        let step = rt.step().unwrap();
        let x = step.tensor(&[3], &[i as f32; 3]).unwrap();
        let y = graph.call(&step, &x).unwrap();
        assert_eq!(step.read(&y).unwrap(), [5.0 * i as f32; 3]);
    }
    assert!(rt.stats().replays >= 4);
}

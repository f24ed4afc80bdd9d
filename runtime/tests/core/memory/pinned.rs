//! Pinned buffers: as inputs and for reads, while copies are under way, and misused.

use std::{
    cell::RefCell,
    sync::{Arc, Condvar, Mutex},
    thread,
};

use graphable::{
    Element, Error, Mode, PinnedBuffer, Result, Runtime, Schedule, Step, Tensor, backend::faulty::FaultCall,
    custom::CustomOp, graphable, ops,
};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use crate::support::*;

/// Elements of an input that the device copies itself, and of one that travels with the others.
const LARGE: usize = 2000;
const SMALL: usize = 10;

fn of_length(rt: &mut Runtime, mode: Mode, len: &'static [Dim]) -> Graph {
    Spec::inputs(vec![host("x", len)]).mode(mode).build(rt)
}

/// `2 x + 1`, with a boundary between.
fn scaled<'s>(graph: &Graph, step: &Step<'s>, x: In<'_, 's>) -> Result<T<'s>> {
    graph.call(step, &[x], (), |cx, a| {
        let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
        let e = eager!("e", Always, cx, |_e| ops::scale(&h, 1.0));
        seg!("b", cx, (&e,), |k| ops::add(k.0, 1.0))
    })
}

fn numbers(len: usize, from: f32) -> Vec<f32> {
    (0..len).map(|i| from + i as f32).collect()
}

fn results(x: &[f32]) -> Vec<f32> {
    x.iter().map(|x| 2.0 * x + 1.0).collect()
}

#[test]
fn inputs_in_pinned_memory_are_those_of_slices() {
    for mode in MODES {
        for (len, dims) in [(SMALL, &[Dim::Const(SMALL)]), (LARGE, &[Dim::Const(LARGE)])] {
            let (mut rt, plan) = faulty();
            let graph = of_length(&mut rt, mode, dims);
            let mut buffer = PinnedBuffer::<f32>::zeros(&rt, len).unwrap();
            assert_eq!((buffer.len(), buffer.is_empty(), buffer.is_ready()), (len, false, true));
            for round in 0..6 {
                let x = numbers(len, round as f32);
                buffer.values_mut().unwrap().copy_from_slice(&x);
                let before = plan.count(FaultCall::WriteFrom);
                let step = rt.step().unwrap();
                let y = scaled(&graph, &step, In::Host((&buffer).into())).unwrap();
                assert_eq!(step.read(&y).unwrap(), results(&x), "{mode} {len}, round {round}");
                let copies = plan.count(FaultCall::WriteFrom) - before;
                assert_eq!(copies, u64::from(len == LARGE), "{mode} {len}: copies by the device");
            }
            if mode != Mode::None {
                assert!(rt.stats().replays > 0);
            }
        }
    }
}

#[test]
fn parts_and_shapes() {
    let mut rt = runtime();
    let graph = of_length(&mut rt, Mode::Piecewise, &[Dim::Const(2), Dim::Const(1500)]);
    let buffer = PinnedBuffer::new(&rt, &numbers(5000, 0.0)).unwrap();
    for first in [0, 1, 700, 2000] {
        let step = rt.step().unwrap();
        let part = buffer.part(first..first + 3000).unwrap();
        assert_eq!((part.len(), part.is_empty()), (3000, false));
        let y = scaled(&graph, &step, In::Host((part, &[2, 1500]).into())).unwrap();
        assert_eq!(step.read(&y).unwrap(), results(&numbers(3000, first as f32)));
        // The shape follows from the length as well.
        let y = scaled(&graph, &step, In::Host(part.into())).unwrap();
        assert_eq!(step.read(&y).unwrap(), results(&numbers(3000, first as f32)));
    }
    assert_eq!(buffer.part(..).unwrap().len(), 5000);
    assert_eq!(buffer.part(4000..=4999).unwrap().len(), 1000);
    #[allow(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    let wrong = [buffer.part(0..5001), buffer.part(3..2), buffer.part(..=usize::MAX), buffer.part(5001..)];
    for part in wrong {
        assert!(matches!(part, Err(Error::Argument { op: "PinnedBuffer::part", .. })), "{part:?}");
    }
    let step = rt.step().unwrap();
    let wrong = scaled(&graph, &step, In::Host((&buffer, &[2, 1500]).into()));
    assert!(matches!(wrong, Err(Error::Input { .. })), "{wrong:?}");
}

/// The rows of the padding are zeros, whatever was there.
#[test]
fn buckets_pad_with_zeros() {
    if crate::device::skipped_on_gpus("buckets_pad_with_zeros", "its operation has code for the CPU only") {
        return;
    }
    // It claims to keep padding apart, and shows what is after each row instead.
    let next_row = CustomOp::builder("next_row").keeps_padding().cpu(|call| {
        let (x, y) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
        let width = call.shapes().input(0)[1];
        y.fill(-1.0);
        y[..x.len() - width].copy_from_slice(&x[width..]);
        Ok(())
    });
    let next_row = next_row.build();
    for width in [1500, 3] {
        let dims: &'static [Dim] = vec![Dim::Symbol(0), Dim::Const(width)].leak();
        let mut rt = runtime();
        let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![host("x", dims)]) };
        let graph = spec.with(|o| o.bucket("B", Schedule::new([4, 8]))).build(&mut rt);
        let mut buffer = PinnedBuffer::new(&rt, &vec![7.0f32; 8 * width]).unwrap();
        for (round, rows) in [8, 3, 4, 1, 7, 8, 2, 5].into_iter().enumerate() {
            buffer.values_mut().unwrap().fill(round as f32 + 1.0);
            let step = rt.step().unwrap();
            let part = buffer.part(..rows * width).unwrap();
            let y = graph.call(&step, &[In::Host(part.into())], (), |cx, a| {
                seg!("a", cx, (&a.t[0], &next_row), |k| {
                    k.1.call(k.0.scope()).input(k.0).output::<f32>(k.0.shape()).run()
                })
            });
            let mut want = vec![round as f32 + 1.0; (rows - 1) * width];
            let last = if rows == 4 || rows == 8 { -1.0 } else { 0.0 };
            want.extend(vec![last; width]);
            assert_eq!(step.read(&y.unwrap()).unwrap(), want, "{rows} rows of {width}");
        }
    }
}

/// Rows that are padded themselves are copied by the host.
#[test]
fn padding_within_rows() {
    let (mut rt, plan) = faulty();
    let dims: &[Dim] = &[Dim::Const(600), Dim::Symbol(0)];
    let spec = Spec { symbols: &["T"], ..Spec::inputs(vec![host("x", dims)]) };
    let graph = spec.with(|o| o.bucket("T", Schedule::new([4, 8]))).build(&mut rt);
    for t in [3, 4, 7, 8, 2] {
        let x = numbers(600 * t, t as f32);
        let buffer = PinnedBuffer::new(&rt, &x).unwrap();
        let before = plan.count(FaultCall::WriteFrom);
        let step = rt.step().unwrap();
        let y = scaled(&graph, &step, In::Host((&buffer, &[600, t]).into())).unwrap();
        assert_eq!(step.read(&y).unwrap(), results(&x), "{t}");
        let copies = plan.count(FaultCall::WriteFrom) - before;
        assert_eq!(copies, u64::from(t == 4 || t == 8), "{t}");
    }
}

#[test]
fn reads_without_a_copy() {
    fn check<E: Element>(values: &[E])
    where
        E::Repr: PartialEq + std::fmt::Debug,
    {
        let mut rt = runtime();
        let mut buffer = PinnedBuffer::<E>::zeros(&rt, 6).unwrap();
        let step = rt.step().unwrap();
        let x = step.tensor(&[2, 3], values).unwrap();
        let reprs: Vec<E::Repr> = values.iter().map(|v| v.to_repr()).collect();
        assert_eq!(step.read_into(&x, &mut buffer).unwrap().wait().unwrap(), reprs, "{}", E::DTYPE);
        // Strides, and fewer elements than there is place for.
        let column = ops::narrow(&x, 1, 1, 1).unwrap();
        let read = step.read_into(&column, &mut buffer).unwrap();
        assert_eq!(read.wait().unwrap(), [reprs[1], reprs[4]]);
        assert_eq!(buffer.values().unwrap()[..2], [reprs[1], reprs[4]]);
        assert_eq!(buffer.values().unwrap()[2..], reprs[2..], "the rest is as it was");
    }
    check(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    check(&[1i32, -2, 3, -4, 5, -6]);
    check(&[1u8, 2, 3, 4, 5, 255]);
    check(&[true, false, true, true, false, false]);
}

#[test]
fn padding_is_cut_off() {
    let mut rt = runtime();
    let dims: &[Dim] = &[Dim::Symbol(0), Dim::Const(2)];
    let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![host("x", dims)]) };
    let graph = spec.with(|o| o.bucket("B", Schedule::new([4]))).build(&mut rt);
    let mut seen = PinnedBuffer::<f32>::zeros(&rt, 8).unwrap();
    let mut out = PinnedBuffer::<f32>::zeros(&rt, 8).unwrap();
    for _ in 0..3 {
        let step = rt.step().unwrap();
        let x = numbers(6, 1.0);
        let y = graph.call(&step, &[In::Host((&x).into())], (), |cx, a| {
            let e = eager!("e", cx, |e| {
                // In a region, of a padded tensor.
                assert_eq!(e.read_into(&a.t[0], &mut seen)?.wait()?, x);
                ops::scale(&a.t[0], 2.0)
            });
            seg!("b", cx, (&e,), |k| ops::add(k.0, 1.0))
        });
        assert_eq!(step.read_into(&y.unwrap(), &mut out).unwrap().wait().unwrap(), results(&x));
    }
}

/// A read is dropped or looked at: the buffer waits for it.
#[test]
fn pending_reads_may_be_dropped() {
    let mut rt = runtime();
    let mut buffer = PinnedBuffer::<f32>::zeros(&rt, 3).unwrap();
    for round in 0..50 {
        let want = numbers(3, round as f32);
        {
            let step = rt.step().unwrap();
            let x = step.tensor(&[3], &want).unwrap();
            let read = step.read_into(&x, &mut buffer).unwrap();
            match round % 2 {
                0 => drop(read),
                _ => {
                    while !read.is_ready() {
                        thread::yield_now();
                    }
                }
            }
        }
        assert_eq!(buffer.values().unwrap(), want);
        assert!(buffer.is_ready());
    }
    let text = format!("{buffer:?}");
    assert!(text.contains("len: 3") && text.contains("ready: true"), "{text}");
}

#[test]
fn buffers_outlive_their_runtime_and_the_other_way_round() {
    let mut rt = Runtime::new(crate::device::device(options())).unwrap();
    let graph = of_length(&mut rt, Mode::Piecewise, &[Dim::Const(LARGE)]);
    for round in 0..20 {
        let input = PinnedBuffer::new(&rt, &numbers(LARGE, round as f32)).unwrap();
        let mut output = PinnedBuffer::<f32>::zeros(&rt, LARGE).unwrap();
        let step = rt.step().unwrap();
        let y = scaled(&graph, &step, In::Host((&input).into())).unwrap();
        drop(input);
        drop(step.read_into(&y, &mut output).unwrap());
        // Both copies may be under way.
        drop(output);
        assert_eq!(step.read(&y).unwrap(), results(&numbers(LARGE, round as f32)));
    }
    let mut buffer = PinnedBuffer::new(&rt, &[1.0f32, 2.0]).unwrap();
    {
        let step = rt.step().unwrap();
        let x = step.tensor(&[2], &[3.0f32, 4.0]).unwrap();
        drop(step.read_into(&x, &mut buffer).unwrap());
    }
    drop((graph, rt));
    // What was on the stream was done.
    assert_eq!(buffer.values().unwrap(), [3.0, 4.0]);
    buffer.values_mut().unwrap().fill(5.0);
    assert_eq!(buffer.values().unwrap(), [5.0, 5.0]);
}

#[test]
fn a_fault_before_the_read_is_reported_once() {
    let mut rt = runtime();
    let mut buffer = PinnedBuffer::<f32>::zeros(&rt, 2).unwrap();
    let step = rt.step().unwrap();
    let table = step.tensor(&[2, 1], &[1.0f32, 2.0]).unwrap();
    let y = ops::embedding(&step.tensor(&[2], &[7u32, 1]).unwrap(), &table).unwrap();
    let error = step.read_into(&y, &mut buffer).unwrap().wait().unwrap_err();
    assert!(matches!(error, Error::IndexOutOfRange { index: 7, .. }), "{error}");
    assert_eq!(buffer.values().unwrap(), [0.0, 2.0]);
    // It belongs to its read: the next one is about something else.
    let y = ops::embedding(&step.tensor(&[2], &[1u32, 9]).unwrap(), &table).unwrap();
    drop(step.read_into(&y, &mut buffer).unwrap());
    assert!(matches!(buffer.values_mut(), Err(Error::IndexOutOfRange { index: 9, .. })));
    let y = ops::embedding(&step.tensor(&[2], &[1u32, 0]).unwrap(), &table).unwrap();
    assert_eq!(step.read_into(&y, &mut buffer).unwrap().wait().unwrap(), [2.0, 1.0]);
}

#[test]
fn a_fault_is_reported_although_another_read_follows() {
    let mut rt = runtime();
    let mut buffer = PinnedBuffer::<f32>::zeros(&rt, 2).unwrap();
    let step = rt.step().unwrap();
    let table = step.tensor(&[2, 1], &[1.0f32, 2.0]).unwrap();
    let [wrong, right] =
        [[7u32, 1], [1, 0]].map(|ids| ops::embedding(&step.tensor(&[2], &ids).unwrap(), &table));
    drop(step.read_into(&wrong.unwrap(), &mut buffer).unwrap());
    let error = step.read_into(&right.unwrap(), &mut buffer).unwrap().wait().unwrap_err();
    assert!(matches!(error, Error::IndexOutOfRange { index: 7, .. }), "{error}");
    assert_eq!(buffer.values().unwrap(), [2.0, 1.0]);
}

/// A fault stays until somebody is told: whoever asks next is, if a read is dropped before it was looked at.
#[test]
fn a_read_that_is_dropped_takes_no_fault_with_it() {
    let mut rt = runtime();
    for (round, waits) in (0..20u64).zip([false, true].into_iter().cycle()) {
        let mut buffer = PinnedBuffer::<f32>::zeros(&rt, 2).unwrap();
        let step = rt.step().unwrap();
        let table = step.tensor(&[2, 1], &[1.0f32, 2.0]).unwrap();
        let at = |ids: [u32; 2]| ops::embedding(&step.tensor(&[2], &ids).unwrap(), &table).unwrap();
        let (wrong, right) = (at([7, 1]), at([1, 0]));
        let told = |result: Result<Vec<f32>>, how: &str| {
            let error = result.expect_err(how);
            assert!(matches!(error, Error::IndexOutOfRange { index: 7, .. }), "{how}: {error}");
        };
        let pending = step.read_later(&wrong).unwrap();
        while waits && !pending.is_ready() {
            thread::yield_now();
        }
        drop(pending);
        told(step.read(&right), "a read after one that was dropped");
        assert_eq!(step.read(&right).unwrap(), [2.0, 1.0]);
        let wrong = at([7, 1]);
        {
            let pending = step.read_into(&wrong, &mut buffer).unwrap();
            while waits && !pending.is_ready() {
                thread::yield_now();
            }
        }
        match round % 4 {
            0 | 1 => told(step.read(&right), "a read after one into a buffer"),
            2 => told(step.synchronize().map(|()| Vec::new()), "a wait after a read into a buffer"),
            _ => {
                drop(buffer);
                told(step.read(&right), "a read after the buffer is gone");
            }
        }
        assert_eq!(step.read(&wrong).unwrap(), [0.0, 2.0]);
        // What computes with it later is told first, although an earlier read still waits.
        let wrong = at([7, 1]);
        let pending = step.read_later(&wrong).unwrap();
        told(step.read(&ops::neg(&wrong).unwrap()), "a read of what was computed from it");
        assert_eq!(pending.wait().unwrap(), [0.0, 2.0]);
        // A GPU reports what has happened by the time of the wait.
        if crate::device::gpu().is_some() {
            continue;
        }
        let pending = step.read_later(&right).unwrap();
        drop(at([7, 1]));
        while waits && !pending.is_ready() {
            thread::yield_now();
        }
        assert_eq!(pending.wait().unwrap(), [2.0, 1.0], "a read before the fault");
        told(step.synchronize().map(|()| Vec::new()), "a wait after a fault that nobody read");
    }
}

#[graphable]
fn as_numbers(
    #[host]
    #[dims(N)]
    x: &Tensor<bool>,
) -> Result<Tensor<f32>> {
    ops::cast(x)
}

/// Whatever byte the host writes for `true`, the device gets 1.
#[test]
fn any_byte_but_0_is_true() {
    for len in [SMALL, 5000] {
        let mut rt = runtime();
        let graph = AsNumbersGraph::builder().build(&mut rt).unwrap();
        let mut buffer = PinnedBuffer::<bool>::zeros(&rt, len).unwrap();
        let bytes: Vec<u8> = (0..len).map(|i| [0, 1, 2, 255][i % 4]).collect();
        buffer.values_mut().unwrap().copy_from_slice(&bytes);
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &buffer).unwrap();
            let want: Vec<f32> = bytes.iter().map(|b| f32::from(u8::from(*b != 0))).collect();
            assert_eq!(step.read(&y).unwrap(), want);
        }
    }
}

#[test]
fn misuse_is_a_typed_error() {
    let (mut rt, mut other) = (runtime(), runtime());
    let graph = of_length(&mut rt, Mode::Piecewise, &[Dim::Const(LARGE)]);
    let whole = of_length(&mut rt, Mode::Full, &[Dim::Const(LARGE)]);
    let foreign = PinnedBuffer::<f32>::zeros(&other, LARGE).unwrap();
    let few = RefCell::new(PinnedBuffer::<f32>::zeros(&rt, 1).unwrap());
    {
        let step = rt.step().unwrap();
        let wrong = scaled(&graph, &step, In::Host((&foreign).into()));
        assert!(matches!(wrong, Err(Error::DifferentRuntimes { .. })), "{wrong:?}");
        let x = step.tensor(&[2], &X).unwrap();
        let mut target = few.borrow_mut();
        let wrong = step.read_into(&x, &mut target);
        assert!(matches!(wrong, Err(Error::Argument { op: "read_into", .. })), "{wrong:?}");
        drop(target);
        let wrong = scaled(&graph, &step, In::Host((&*few.borrow()).into()));
        assert!(matches!(wrong, Err(Error::Input { .. })), "{wrong:?}");
        let wrong = whole.call(&step, &[In::Host((&numbers(LARGE, 0.0)).into())], (), |cx, a| {
            Ok(eager!("e", Always, cx, |e| {
                drop(e.read_into(&a.t[0], &mut few.borrow_mut())?);
                ops::neg(&a.t[0])
            }))
        });
        assert!(matches!(wrong, Err(Error::CapabilityInSegment { .. })), "{wrong:?}");
    }
    {
        let step = other.step().unwrap();
        let x = step.tensor(&[1], &[1.0f32]).unwrap();
        let mut target = few.borrow_mut();
        let wrong = step.read_into(&x, &mut target);
        assert!(matches!(wrong, Err(Error::DifferentRuntimes { .. })), "{wrong:?}");
    }
    let wrong = PinnedBuffer::<f32>::zeros(&rt, usize::MAX);
    assert!(matches!(wrong, Err(Error::TooLarge { .. })), "{wrong:?}");
    let wrong = PinnedBuffer::<f32>::zeros(&rt, 1 << 60);
    assert!(matches!(wrong, Err(Error::OutOfMemory { .. })), "{wrong:?}");
    assert_eq!(few.borrow().values().unwrap(), [0.0]);
    still_usable(&mut rt);
}

/// A device that does nothing until it is told.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.changed.notify_all();
    }

    /// Has the stream wait until the gate is open.
    fn close(self: &Arc<Self>, step: &Step<'_>) {
        *self.open.lock().unwrap() = false;
        let gate = Arc::clone(self);
        let op = CustomOp::builder("gate").cpu(move |call| {
            let mut open = gate.open.lock().unwrap();
            while !*open {
                open = gate.changed.wait(open).unwrap();
            }
            call.output::<f32>(0)?.fill(0.0);
            Ok(())
        });
        let _: Tensor<'_, f32> = op.build().call(step.scope()).output::<f32>([1]).run().unwrap();
    }
}

/// Opens a gate, also if the test fails: the runtime is dropped after it.
struct Opened(Arc<Gate>);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// While the device is behind, the host cannot get at memory that the device has yet to read or write.
#[test]
fn the_host_waits_for_a_device_that_is_behind() {
    if crate::device::skipped_on_gpus(
        "the_host_waits_for_a_device_that_is_behind",
        "its operation has code for the CPU only",
    ) {
        return;
    }
    let mut rt = runtime();
    let graph = of_length(&mut rt, Mode::Piecewise, &[Dim::Const(LARGE)]);
    let gate = Arc::<Gate>::default();
    let _opened = Opened(Arc::clone(&gate));
    let (mut input, mut output) =
        (PinnedBuffer::<f32>::zeros(&rt, LARGE).unwrap(), PinnedBuffer::<f32>::zeros(&rt, LARGE).unwrap());
    for round in 0..5 {
        let x = numbers(LARGE, round as f32);
        input.values_mut().unwrap().copy_from_slice(&x);
        let step = rt.step().unwrap();
        gate.close(&step);
        let y = scaled(&graph, &step, In::Host((&input).into())).unwrap();
        let read = step.read_into(&y, &mut output).unwrap();
        assert!(!read.is_ready() && !input.is_ready());
        assert_eq!(input.values().unwrap(), x, "what the device reads may be read");
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                // Waits: the gate is closed until the main thread has looked.
                input.values_mut().unwrap().fill(-1.0);
            });
            // Not a proof that it waits, but it has every opportunity not to.
            for _ in 0..100 {
                thread::yield_now();
            }
            assert!(!writer.is_finished());
            gate.open();
        });
        assert_eq!(
            read.wait().unwrap(),
            results(&x),
            "round {round}: the device read what the call was given"
        );
    }
}

/// The result of one call is the input of the next one, without a wait by the host.
#[test]
fn a_buffer_that_is_read_into_is_the_next_input() {
    let mut rt = runtime();
    let graph = of_length(&mut rt, Mode::Piecewise, &[Dim::Const(LARGE)]);
    let mut buffer = PinnedBuffer::new(&rt, &[0.0f32; LARGE]).unwrap();
    for _ in 0..10 {
        let step = rt.step().unwrap();
        let y = scaled(&graph, &step, In::Host((&buffer).into())).unwrap();
        drop(step.read_into(&y, &mut buffer).unwrap());
    }
    assert_eq!(buffer.values().unwrap(), [1023.0; LARGE]);
}

/// Any mix of uses of a few buffers, against a model of their contents.
#[test]
fn random_uses() {
    for seed in 0..8 {
        let mut rng = StdRng::seed_from_u64(seed);
        let (mut rt, _) = faulty();
        let mode = MODES[rng.random_range(0..3usize)];
        let spec = Spec { symbols: &["N"], ..Spec::inputs(vec![host("x", &[Dim::Symbol(0)])]) };
        let graph = spec.mode(mode).build(&mut rt);
        let mut buffers: Vec<(PinnedBuffer<f32>, Vec<f32>)> = Vec::new();
        for action in 0..150 {
            let len = [5, 1100, 3000][rng.random_range(0..3usize)];
            if buffers.len() < 3 || rng.random_range(0..12) == 0 {
                buffers.truncate(4);
                let values = numbers(len, action as f32);
                buffers.push((PinnedBuffer::new(&rt, &values).unwrap(), values));
            }
            let (from, to) = (rng.random_range(0..buffers.len()), rng.random_range(0..buffers.len()));
            let step = rt.step().unwrap();
            match rng.random_range(0..4) {
                0 => {
                    let (buffer, model) = &mut buffers[to];
                    let value = action as f32;
                    buffer.values_mut().unwrap()[..3].fill(value);
                    model[..3].fill(value);
                }
                1 => {
                    let (buffer, model) = &buffers[from];
                    assert_eq!(buffer.values().unwrap(), model, "seed {seed}, action {action}");
                }
                _ => {
                    let end = rng.random_range(1..=buffers[from].1.len());
                    let first = rng.random_range(0..end);
                    let (buffer, model) = &buffers[from];
                    let want = results(&model[first..end]);
                    let y = scaled(&graph, &step, In::Host(buffer.part(first..end).unwrap().into())).unwrap();
                    let (buffer, model) = &mut buffers[to];
                    match step.read_into(&y, buffer) {
                        Ok(_) => model[..want.len()].copy_from_slice(&want),
                        Err(Error::Argument { .. }) => assert!(want.len() > model.len()),
                        Err(other) => panic!("seed {seed}, action {action}: {other}"),
                    }
                }
            }
        }
        for (buffer, model) in &buffers {
            assert_eq!(buffer.values().unwrap(), model, "seed {seed}");
        }
    }
}

/// A copy that the device refuses is the call's error; the buffer and the runtime go on.
#[test]
fn failures_of_the_device() {
    let (mut rt, plan) = faulty();
    let graph = of_length(&mut rt, Mode::Piecewise, &[Dim::Const(LARGE)]);
    plan.run_out_of_memory(FaultCall::HostMemory, 0);
    let full = PinnedBuffer::<f32>::zeros(&rt, 10);
    assert!(matches!(full, Err(Error::OutOfMemory { .. })), "{full:?}");
    let mut buffer = PinnedBuffer::new(&rt, &numbers(LARGE, 0.0)).unwrap();
    for _ in 0..3 {
        plan.arm(Some(FaultCall::WriteFrom), 0, false);
        let step = rt.step().unwrap();
        let failed = scaled(&graph, &step, In::Host((&buffer).into()));
        assert!(matches!(failed, Err(Error::Device { call: "write_from", .. })), "{failed:?}");
        let y = scaled(&graph, &step, In::Host((&buffer).into())).unwrap();
        plan.arm(Some(FaultCall::ReadInto), 0, false);
        let failed = step.read_into(&y, &mut buffer).map(|_| ());
        assert!(matches!(failed, Err(Error::Device { call: "read_into", .. })), "{failed:?}");
        assert_eq!(buffer.values_mut().unwrap()[..3], [0.0, 1.0, 2.0]);
        assert_eq!(step.read(&y).unwrap(), results(&numbers(LARGE, 0.0)));
    }
}

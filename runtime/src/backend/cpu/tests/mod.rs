use std::{
    hash::Hasher,
    sync::{Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::Duration,
};

use smallvec::smallvec;

use super::*;
use crate::{
    DType,
    backend::{DeviceCopy, Op, Operation, View},
    memory::COPY,
    value::layout::Layout,
};

mod conditional;
mod graphs;
mod lost;
mod memory;
mod sharing;

fn backend() -> CpuBackend {
    CpuBackend::new(CpuOptions { threads: Some(1), ..CpuOptions::default() }).unwrap()
}

fn shuffling(seed: u64) -> CpuBackend {
    CpuBackend::new(CpuOptions { test_mode: Some(seed), threads: Some(1) }).unwrap()
}

fn bytes_at(addr: u64, n: usize) -> View {
    View { addr, dtype: DType::U8, layout: Layout::contiguous(&[n]).unwrap() }
}

fn copy(from: u64, to: u64, n: usize) -> Launch {
    Launch {
        op: COPY,
        inputs: smallvec![bytes_at(from, n)],
        outputs: smallvec![bytes_at(to, n)],
        workspace: 0,
    }
}

fn block(addr: u64, bytes: &[u8]) -> HostUpload {
    HostUpload { bytes: bytes.to_vec(), writes: vec![(addr, 0, bytes.len())], ..HostUpload::default() }
}

fn write(b: &mut dyn Backend, addr: u64, bytes: &[u8]) {
    b.host_write(block(addr, bytes)).unwrap();
}

fn read(b: &mut dyn Backend, addr: u64, bytes: u64) -> Vec<u8> {
    b.read(addr, bytes).unwrap().wait().unwrap()
}

/// While this is locked, [`WAIT_FOR_GATE`] blocks.
static GATE: Mutex<()> = Mutex::new(());

fn close_gate() -> MutexGuard<'static, ()> {
    GATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the gate.
#[derive(Debug)]
struct WaitForGate;

impl Operation for WaitForGate {
    fn name(&self) -> &'static str {
        "wait_for_gate"
    }

    fn parameters(&self, _: &mut dyn Hasher) {}

    fn run_cpu(&self, _: &Access<'_>, _: &Launch) -> std::result::Result<(), Fault> {
        drop(close_gate());
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, _: &mut dyn crate::backend::cuda::kernels::Submit, _: &Launch) -> Result<()> {
        unreachable!("of the CPU")
    }
}

/// Panics.
#[derive(Debug)]
struct Panic;

impl Operation for Panic {
    fn name(&self) -> &'static str {
        "panic"
    }

    fn parameters(&self, _: &mut dyn Hasher) {}

    fn run_cpu(&self, _: &Access<'_>, _: &Launch) -> std::result::Result<(), Fault> {
        panic!("the test wants it")
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, _: &mut dyn crate::backend::cuda::kernels::Submit, _: &Launch) -> Result<()> {
        unreachable!("of the CPU")
    }
}

/// `[index: u32 1, table: f32 N] -> [y: f32 1]`: what the table has there; zero and a fault beyond its end.
#[derive(Debug)]
struct Lookup;

impl Operation for Lookup {
    fn name(&self) -> &'static str {
        "lookup"
    }

    fn parameters(&self, _: &mut dyn Hasher) {}

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> std::result::Result<(), Fault> {
        let (index, table) =
            (access.slice::<u32>(&launch.inputs[0])[0], access.slice::<f32>(&launch.inputs[1]));
        let found = table.get(index as usize);
        access.slice_mut::<f32>(&launch.outputs[0])[0] = found.copied().unwrap_or(0.0);
        let fault = Fault::Index { op: self.name(), index: index.into(), bound: table.len() as u64 };
        found.map(|_| ()).ok_or(fault)
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, _: &mut dyn crate::backend::cuda::kernels::Submit, _: &Launch) -> Result<()> {
        unreachable!("of the CPU")
    }
}

fn output_only(op: Op) -> Launch {
    Launch { op, inputs: smallvec![], outputs: smallvec![], workspace: 0 }
}

const WAIT_FOR_GATE: Op = Op::fixed(&WaitForGate);
const PANIC: Op = Op::fixed(&Panic);

#[test]
fn calls_return_before_the_work_is_done() {
    let mut b = backend();
    let (x, y) = (b.alloc(64).unwrap(), b.alloc(64).unwrap());
    let gate = close_gate();
    b.launch(&output_only(WAIT_FOR_GATE)).unwrap();
    write(&mut b, x.addr(), &[7; 64]);
    b.launch(&copy(x.addr(), y.addr(), 64)).unwrap();
    write(&mut b, x.addr(), &[8; 64]);
    let early = b.read(y.addr(), 64).unwrap();
    let late = b.read(x.addr(), 64).unwrap();
    assert!(!early.is_ready() && !late.is_ready(), "nothing can have run");
    drop(gate);
    assert_eq!(early.wait().unwrap(), [7; 64], "the copy came between the writes");
    assert_eq!(late.wait().unwrap(), [8; 64]);
}

#[test]
fn a_full_queue_holds_the_host_back_and_keeps_the_order() {
    let mut b = backend();
    let x = b.alloc(4).unwrap();
    let gate = close_gate();
    b.launch(&output_only(WAIT_FOR_GATE)).unwrap();
    let (sent, progress) = mpsc::channel();
    let writer = thread::spawn(move || {
        for i in 0..20_000u32 {
            write(&mut b, x.addr(), &i.to_ne_bytes());
            sent.send(i).unwrap();
        }
        let pending = b.read(x.addr(), 4).unwrap();
        while !pending.is_ready() {
            thread::yield_now();
        }
        pending.wait().unwrap()
    });
    let mut last = 0;
    while last < 4000 {
        last = progress.recv().unwrap();
    }
    while let Ok(i) = progress.recv_timeout(Duration::from_millis(300)) {
        last = i;
    }
    assert!(last < 5000, "{last} commands wait, the bound is 4096");
    drop(gate);
    assert_eq!(writer.join().unwrap(), 19_999u32.to_ne_bytes());
}

#[test]
fn an_index_out_of_range_is_reported_once() {
    let mut b = backend();
    let (ids, table, out) = (b.alloc(4).unwrap(), b.alloc(16).unwrap(), b.alloc(4).unwrap());
    let view =
        |addr, dtype, shape: &[usize]| View { addr, dtype, layout: Layout::contiguous(shape).unwrap() };
    let lookup = Launch {
        op: Lookup.into(),
        inputs: smallvec![view(ids.addr(), DType::U32, &[1]), view(table.addr(), DType::F32, &[4])],
        outputs: smallvec![view(out.addr(), DType::F32, &[1])],
        workspace: 0,
    };
    write(&mut b, table.addr(), bytemuck::cast_slice(&[1.0f32, 2.0, 3.0, 4.0]));
    for bad in [9u32, 4] {
        write(&mut b, ids.addr(), &bad.to_ne_bytes());
        b.launch(&lookup).unwrap();
    }
    let error = b.read(out.addr(), 4).unwrap().wait().unwrap_err();
    assert!(matches!(error, Error::IndexOutOfRange { op: "lookup", index: 9, bound: 4 }), "{error}");
    assert_eq!(read(&mut b, out.addr(), 4), 0f32.to_ne_bytes());
    write(&mut b, ids.addr(), &3u32.to_ne_bytes());
    b.launch(&lookup).unwrap();
    b.synchronize().unwrap();
    assert_eq!(read(&mut b, out.addr(), 4), 4f32.to_ne_bytes(), "the stream goes on");

    write(&mut b, ids.addr(), &5u32.to_ne_bytes());
    b.launch(&lookup).unwrap();
    assert!(matches!(b.synchronize(), Err(Error::IndexOutOfRange { index: 5, .. })));
    b.synchronize().unwrap();
}

#[test]
fn wrong_arguments_are_refused_and_change_nothing() {
    let mut b = backend();
    let x = b.alloc(64).unwrap();
    let beyond = HostUpload { bytes: vec![1; 8], writes: vec![(x.addr(), 4, 5)], ..HostUpload::default() };
    assert!(matches!(b.host_write(beyond), Err(Error::Device { call: "host_write", .. })));
    let overflowing =
        HostUpload { bytes: vec![1; 8], writes: vec![(x.addr(), usize::MAX, 5)], ..HostUpload::default() };
    assert!(matches!(b.host_write(overflowing), Err(Error::Device { call: "host_write", .. })));
    let onto_itself = copy(x.addr(), x.addr() + 8, 16);
    assert!(matches!(b.launch(&onto_itself), Err(Error::Device { call: "launch", .. })));
    let no_threads = CpuOptions { threads: Some(0), ..CpuOptions::default() };
    assert!(matches!(CpuBackend::new(no_threads), Err(Error::Config { .. })));
    assert_eq!(read(&mut b, x.addr(), 64), [0; 64]);
}

#[test]
fn dropping_finishes_what_is_queued() {
    let mut b = backend();
    let x = b.alloc(64).unwrap();
    let gate = close_gate();
    b.launch(&output_only(WAIT_FOR_GATE)).unwrap();
    for i in 0..1000 {
        write(&mut b, x.addr(), &[i as u8; 64]);
    }
    let pending = b.read(x.addr(), 64).unwrap();
    let dropping = thread::spawn(move || drop(b));
    assert!(!pending.is_ready());
    drop(gate);
    dropping.join().unwrap();
    assert!(pending.is_ready());
    assert_eq!(pending.wait().unwrap(), [999u32 as u8; 64]);
}

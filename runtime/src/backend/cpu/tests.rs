use smallvec::smallvec;

use super::*;
use crate::{
    DType,
    backend::{Op, View},
    layout::Layout,
};

fn backend() -> CpuBackend {
    CpuBackend::new(CpuOptions { test_mode: Some(1), threads: None }).unwrap()
}

fn view(addr: u64, n: usize) -> View {
    View { addr, dtype: DType::U8, layout: Layout::contiguous(&[n]).unwrap() }
}

fn copy(from: u64, to: u64, n: usize) -> Launch {
    Launch { op: Op::Copy, inputs: smallvec![view(from, n)], outputs: smallvec![view(to, n)] }
}

fn write(b: &mut CpuBackend, addr: u64, bytes: &[u8]) {
    b.host_write(HostBlock { bytes: bytes.to_vec(), writes: vec![(addr, 0, bytes.len())] }).unwrap();
}

#[test]
fn capture_executes_nothing_and_replays_repeat() {
    let mut b = backend();
    let (x, y) = (b.alloc(64).unwrap(), b.alloc(64).unwrap());
    write(&mut b, x.addr(), &[7; 64]);
    b.begin_capture().unwrap();
    b.launch(&copy(x.addr(), y.addr(), 64)).unwrap();
    let exec = b.end_capture(vec![x.clone(), y.clone()]).unwrap().unwrap();
    assert_eq!(exec.nodes(), 1);
    assert_eq!(b.read(y.addr(), 64).unwrap().wait().unwrap(), [0; 64]);
    for value in 1..100u8 {
        let block = HostBlock { bytes: vec![value; 64], writes: vec![(x.addr(), 0, 64)] };
        b.replay(&exec, Some(block)).unwrap();
        let read = b.read(y.addr(), 64).unwrap();
        assert_eq!(read.wait().unwrap(), [value; 64]);
    }
}

#[test]
fn a_capture_refuses_what_cuda_refuses() {
    let mut b = backend();
    let x = b.alloc(16).unwrap();
    b.begin_capture().unwrap();
    assert!(matches!(b.alloc(16), Err(Error::RefusedInCapture { call: "alloc" })));
    assert!(matches!(b.read(x.addr(), 4), Err(Error::RefusedInCapture { call: "read" })));
    assert!(matches!(b.synchronize(), Err(Error::RefusedInCapture { .. })));
    assert!(matches!(b.begin_capture(), Err(Error::RefusedInCapture { .. })));
    assert!(b.end_capture(Vec::new()).unwrap().is_none(), "nothing was recorded");
    assert!(b.end_capture(Vec::new()).is_err());
    b.synchronize().unwrap();
}

#[test]
fn memory_outlives_what_was_queued_with_it() {
    let mut b = backend();
    let y = b.alloc(1 << 20).unwrap();
    for round in 0..50u8 {
        let x = b.alloc(1 << 20).unwrap();
        write(&mut b, x.addr(), &vec![round; 1 << 20]);
        b.launch(&copy(x.addr(), y.addr(), 1 << 20)).unwrap();
        std::thread::spawn(move || drop(x));
    }
    // Unmapped pages would fault, ranges that were removed too early would lose the stream.
    assert_eq!(b.read(y.addr(), 1).unwrap().wait().unwrap(), [49]);
}

#[test]
fn a_graph_keeps_its_memory_and_a_queued_replay_its_graph() {
    let mut b = backend();
    let y = b.alloc(64).unwrap();
    let x = b.alloc(64).unwrap();
    write(&mut b, x.addr(), &[5; 64]);
    b.begin_capture().unwrap();
    b.launch(&copy(x.addr(), y.addr(), 64)).unwrap();
    let exec = b.end_capture(vec![x]).unwrap().unwrap();
    b.replay(&exec, None).unwrap();
    drop(exec);
    assert_eq!(b.read(y.addr(), 64).unwrap().wait().unwrap(), [5; 64]);
}

#[test]
fn a_wrong_address_loses_the_stream_and_nothing_hangs() {
    let mut b = backend();
    let y = b.alloc(64).unwrap();
    b.launch(&copy(4096, y.addr(), 64)).unwrap();
    assert!(matches!(b.synchronize(), Err(Error::ContextLost { .. })));
    assert!(matches!(b.launch(&copy(y.addr(), y.addr(), 64)), Err(Error::ContextLost { .. })));
    drop(y);
}

#[test]
fn an_index_out_of_range_is_reported_once() {
    let mut b = backend();
    let (ids, table, out) = (b.alloc(4).unwrap(), b.alloc(16).unwrap(), b.alloc(4).unwrap());
    write(&mut b, ids.addr(), &9u32.to_ne_bytes());
    let f32s = |addr, shape: &[usize]| View { addr, dtype: DType::F32, layout: Layout::contiguous(shape).unwrap() };
    b.launch(&Launch {
        op: Op::Embedding,
        inputs: smallvec![
            View { dtype: DType::U32, ..f32s(ids.addr(), &[1]) },
            f32s(table.addr(), &[4, 1])
        ],
        outputs: smallvec![f32s(out.addr(), &[1, 1])],
    })
    .unwrap();
    let error = b.synchronize().unwrap_err();
    assert!(matches!(error, Error::IndexOutOfRange { index: 9, bound: 4, .. }), "{error}");
    b.synchronize().unwrap();
}

#[test]
fn the_host_is_held_back_and_order_is_kept() {
    let mut b = backend();
    let x = b.alloc(4).unwrap();
    for i in 0..20_000u32 {
        write(&mut b, x.addr(), &i.to_ne_bytes());
    }
    let read = b.read(x.addr(), 4).unwrap();
    while !read.is_ready() {
        std::thread::yield_now();
    }
    assert_eq!(read.wait().unwrap(), 19_999u32.to_ne_bytes());
}

#[test]
fn dropping_with_work_queued() {
    let mut b = backend();
    let x = b.alloc(64).unwrap();
    for _ in 0..1000 {
        write(&mut b, x.addr(), &[1; 64]);
    }
    let read = b.read(x.addr(), 64).unwrap();
    drop(b);
    // The queue was finished before the stream ended.
    assert_eq!(read.wait().unwrap(), [1; 64]);
    drop(x);
}

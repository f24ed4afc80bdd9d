//! The behaviour of a lost stream: it reports errors and never hangs.

use super::*;

fn assert_lost<T>(result: Result<T>, reason: &str) {
    match result {
        Err(Error::ContextLost { reason: w, .. }) => assert!(w.contains(reason), "{w}"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the stream is lost"),
    }
}

/// Every call of a lost stream.
fn assert_all_lost(b: &mut CpuBackend, exec: &Arc<dyn GraphExec>, arena: &Arena, reason: &str) {
    assert_lost(b.synchronize(), reason);
    assert_lost(b.launch(&copy(0, 64, 64)), reason);
    assert_lost(b.poison(0, 64), reason);
    assert_lost(b.host_write(HostUpload::default()), reason);
    assert_lost(b.read(0, 0).map(drop), reason);
    assert_lost(b.replay(exec, None), reason);
    assert_lost(b.alloc(64), reason);
    assert_lost(b.reserve(64), reason);
    assert_lost(b.commit(arena, 64), reason);
    assert_lost(b.begin_capture(None), reason);
}

#[test]
fn a_panic_in_a_kernel_loses_the_stream() {
    let mut b = backend();
    let (x, y) = (b.alloc(64).unwrap(), b.alloc(64).unwrap());
    let arena = b.reserve(4096).unwrap();
    b.begin_capture(None).unwrap();
    b.launch(&copy(x.addr(), y.addr(), 64)).unwrap();
    let exec = b.end_capture(vec![x.clone(), y]).unwrap().unwrap();

    let gate = close_gate();
    b.launch(&output_only(WAIT_FOR_GATE)).unwrap();
    let before = b.read(x.addr(), 64).unwrap();
    b.launch(&output_only(PANIC)).unwrap();
    let after = b.read(x.addr(), 64).unwrap();
    b.replay(&exec, None).unwrap();
    drop(gate);
    assert_eq!(before.wait().unwrap(), [0; 64]);
    assert_lost(after.wait(), "the test wants it");
    assert_all_lost(&mut b, &exec, &arena, "the test wants it");
}

#[test]
fn a_panic_during_a_capture_ends_it() {
    let mut b = backend();
    let gate = close_gate();
    b.launch(&output_only(WAIT_FOR_GATE)).unwrap();
    b.launch(&output_only(PANIC)).unwrap();
    b.begin_capture(None).unwrap();
    b.launch(&copy(0, 64, 64)).unwrap();
    drop(gate);
    while b.launch(&copy(0, 64, 64)).is_ok() {
        thread::yield_now();
    }
    assert_lost(b.end_capture(Vec::new()), "the test wants it");
    assert_lost(b.end_capture(Vec::new()), "the test wants it");
    assert_lost(b.begin_capture(None), "the test wants it");
}

#[test]
fn invalid_launches_lose_the_stream_instead_of_touching_memory() {
    let assert_lost_by = |launch: &dyn Fn(u64, u64) -> Launch, reason| {
        let mut b = backend();
        let (x, y) = (b.alloc(64).unwrap(), b.alloc(128).unwrap());
        b.launch(&launch(x.addr(), y.addr())).unwrap();
        assert_lost(b.synchronize(), reason);
    };
    assert_lost_by(&|_, y| copy(4096, y, 64), "not (or no longer) memory");
    assert_lost_by(&|x, _| copy(x, 4096, 64), "not (or no longer) memory");
    assert_lost_by(&|x, y| copy(x, y, 65), "not (or no longer) memory");
    assert_lost_by(&|x, y| copy(y, x, 65), "not (or no longer) memory");
    let f32s = |addr| View { addr, dtype: DType::F32, layout: Layout::contiguous(&[4]).unwrap() };
    assert_lost_by(
        &|x, y| Launch {
            op: COPY,
            inputs: smallvec![f32s(x + 2)],
            outputs: smallvec![f32s(y)],
            workspace: 0,
        },
        "not aligned",
    );
}

#[test]
fn freed_memory_is_gone() {
    let mut b = backend();
    let (x, y) = (b.alloc(64).unwrap(), b.alloc(64).unwrap());
    let addr = x.addr();
    drop(x);
    b.synchronize().unwrap();
    b.launch(&copy(addr, y.addr(), 64)).unwrap();
    assert_lost(b.synchronize(), "no longer");
}

#[test]
fn reads_of_invalid_addresses_answer() {
    let mut b = backend();
    assert_lost(b.read(4096, 16).unwrap().wait(), "not (or no longer) memory");
    assert_lost(b.synchronize(), "not (or no longer) memory");
}

#[test]
fn a_lost_stream_drops_and_frees() {
    let mut b = backend();
    b.launch(&output_only(PANIC)).unwrap();
    let mut kept = Vec::new();
    // As fast as they come until it shows; the queue holds some when it does.
    while let Ok(memory) = b.alloc(64) {
        kept.push(memory);
    }
    let half = kept.split_off(kept.len() / 2);
    drop(kept);
    drop(b);
    drop(half);
}

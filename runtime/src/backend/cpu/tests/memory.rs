//! Memory lives as long as something queued or recorded needs it.

use std::sync::Weak;

use super::*;
use crate::backend::Memory;

#[test]
fn memory_is_zeroed_aligned_and_of_its_size() {
    let mut b = shuffling(1);
    for bytes in [0, 1, 255, 256, 70_000] {
        let x = b.alloc(bytes).unwrap();
        assert_eq!((x.len(), x.addr() % 256, x.is_empty()), (bytes, 0, bytes == 0));
        assert_eq!(read(&mut b, x.addr(), bytes), vec![0; bytes as usize]);
    }
}

#[test]
fn too_much_is_a_typed_error() {
    let mut b = backend();
    assert!(matches!(b.alloc(1 << 60), Err(Error::OutOfMemory { bytes, .. }) if bytes == 1 << 60));
    assert!(matches!(b.alloc(u64::MAX), Err(Error::OutOfMemory { .. })));
    assert!(matches!(b.reserve(u64::MAX), Err(Error::OutOfMemory { .. })));
    b.synchronize().unwrap();
}

#[test]
fn what_is_given_back_is_gone_and_can_come_again() {
    let mut b = shuffling(1);
    let arena = b.reserve(8 << 20).unwrap();
    let addr = arena.memory.addr();
    b.commit(&arena, 4 << 20).unwrap();
    write(&mut b, addr, &[1; 8192]);
    write(&mut b, addr + (3 << 20), &[2; 8192]);
    let pending = b.read(addr + (3 << 20), 4).unwrap();
    assert_eq!(b.uncommit(&arena, 1 << 20).unwrap(), 1 << 20);
    assert_eq!(pending.wait().unwrap(), [2; 4], "what was queued before still has it");
    assert_eq!(read(&mut b, addr, 8192), [1; 8192], "what stays is as it was");
    b.commit(&arena, 4 << 20).unwrap();
    assert_eq!(read(&mut b, addr + (3 << 20), 4), [0xFF; 4], "fresh memory in test mode");
    b.begin_capture(None).unwrap();
    assert!(matches!(b.uncommit(&arena, 0), Err(Error::RefusedInCapture { .. })));
    b.abort_capture();
    assert_eq!(b.uncommit(&arena, 0).unwrap(), 0);
    // Memory that is not there is not read: the stream is lost, as with an invalid pointer on a GPU.
    assert!(b.read(addr, 4).and_then(|r| r.wait()).is_err());
}

#[test]
fn arenas_hold_what_was_committed() {
    let mut b = shuffling(1);
    let (first, second) = (b.reserve(1 << 20).unwrap(), b.reserve(1 << 20).unwrap());
    assert_eq!((first.index, second.index), (0, 1));
    let (addr, capacity) = (first.memory.addr(), first.memory.len());
    assert!(capacity >= 1 << 20);
    b.commit(&first, 8192).unwrap();
    assert_eq!(read(&mut b, addr, 8192), [0xFF; 8192], "test mode shows reads of fresh memory");
    write(&mut b, addr, &[1; 8192]);
    b.commit(&first, 4096).unwrap();
    b.commit(&first, 12288).unwrap();
    assert_eq!(read(&mut b, addr, 8192), [1; 8192], "growing keeps what is there");
    assert_eq!(read(&mut b, addr + 8192, 4096), [0xFF; 4096]);
    let error = b.commit(&first, capacity + 1).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { bytes, .. } if bytes == capacity + 1));
    assert_eq!(read(&mut b, addr, 1), [1]);
    assert!(matches!(b.read(addr + 12288, 1).unwrap().wait(), Err(Error::ContextLost { .. })));
}

#[test]
fn a_queued_launch_keeps_what_it_names() {
    let mut b = backend();
    let y = b.alloc(1 << 16).unwrap();
    let gate = close_gate();
    b.launch(&output_only(WAIT_FOR_GATE)).unwrap();
    let mut droppers = Vec::new();
    for round in 0..50u8 {
        let x = b.alloc(1 << 16).unwrap();
        write(&mut b, x.addr(), &vec![round; 1 << 16]);
        b.launch(&copy(x.addr(), y.addr(), 1 << 16)).unwrap();
        droppers.push(thread::spawn(move || drop(x)));
    }
    droppers.into_iter().for_each(|t| t.join().unwrap());
    drop(gate);
    // A block freed too early would have lost the stream.
    assert_eq!(read(&mut b, y.addr(), 1), [49]);
}

#[test]
fn a_queued_replay_keeps_its_graph_and_the_graph_its_memory() {
    let mut b = backend();
    let (x, y) = (b.alloc(64).unwrap(), b.alloc(64).unwrap());
    write(&mut b, x.addr(), &[5; 64]);
    b.begin_capture(None).unwrap();
    b.launch(&copy(x.addr(), y.addr(), 64)).unwrap();
    let weak: Weak<dyn Memory> = Arc::downgrade(&x);
    let exec = b.end_capture(vec![x]).unwrap().unwrap();
    let gate = close_gate();
    b.launch(&output_only(WAIT_FOR_GATE)).unwrap();
    b.replay(&exec, None).unwrap();
    drop(exec);
    assert!(weak.upgrade().is_some(), "the replay has not run");
    drop(gate);
    assert_eq!(read(&mut b, y.addr(), 64), [5; 64]);
    // The worker dropped the graph before it answered, and the memory with it.
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_graph_dropped_by_a_worker_whose_queue_is_full_does_not_block_it() {
    let mut b = backend();
    let y = b.alloc(64).unwrap();
    let gate = close_gate();
    b.launch(&output_only(WAIT_FOR_GATE)).unwrap();
    for _ in 0..20 {
        let many: Vec<_> = (0..50).map(|_| b.alloc(64).unwrap()).collect();
        b.begin_capture(None).unwrap();
        b.launch(&copy(many[0].addr(), y.addr(), 64)).unwrap();
        let exec = b.end_capture(many).unwrap().unwrap();
        b.replay(&exec, None).unwrap();
    }
    let filler = thread::spawn(move || {
        for _ in 0..6000 {
            write(&mut b, y.addr(), &[3; 64]);
        }
        read(&mut b, y.addr(), 64)
    });
    thread::sleep(Duration::from_millis(100));
    drop(gate);
    assert_eq!(filler.join().unwrap(), [3; 64]);
}

#[test]
fn handles_drop_in_any_order_on_any_thread() {
    for order in 0..6 {
        let mut b = shuffling(order);
        let (x, y) = (b.alloc(64).unwrap(), b.alloc(64).unwrap());
        b.begin_capture(None).unwrap();
        b.launch(&copy(x.addr(), y.addr(), 64)).unwrap();
        let exec = b.end_capture(vec![x.clone(), y.clone()]).unwrap().unwrap();
        (0..100).for_each(|_| b.replay(&exec, None).unwrap());
        let pending = b.read(y.addr(), 64).unwrap();
        let (mut backend, mut exec, mut memory) = (Some(b), Some(exec), Some((x, y)));
        for step in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]][order as usize] {
            let (backend, exec, memory) = match step {
                0 => (backend.take(), None, None),
                1 => (None, exec.take(), None),
                _ => (None, None, memory.take()),
            };
            thread::spawn(move || drop((backend, exec, memory))).join().unwrap();
        }
        assert_eq!(pending.wait().unwrap(), [0; 64]);
    }
}

#[test]
fn everything_at_once() {
    let mut b = shuffling(7);
    let y = b.alloc(64).unwrap();
    let (to_drop, dropped) = mpsc::channel::<SharedMemory>();
    let dropper = thread::spawn(move || dropped.into_iter().for_each(drop));
    for round in 0..2000u32 {
        let value = round as u8;
        let x = b.alloc(64).unwrap();
        b.begin_capture(None).unwrap();
        b.launch(&copy(x.addr(), y.addr(), 64)).unwrap();
        let exec = b.end_capture(vec![x.clone()]).unwrap().unwrap();
        b.replay(&exec, Some(block(x.addr(), &[value; 64]))).unwrap();
        b.launch(&copy(x.addr(), y.addr(), 32)).unwrap();
        to_drop.send(x).unwrap();
        if round % 100 == 0 {
            assert_eq!(read(&mut b, y.addr(), 64), [value; 64]);
        }
    }
    drop(to_drop);
    dropper.join().unwrap();
    assert_eq!(read(&mut b, y.addr(), 64), [1999u32 as u8; 64]);
}

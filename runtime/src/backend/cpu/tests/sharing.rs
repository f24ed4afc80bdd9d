//! Executables that are updated in place.

use super::*;

/// A recording of copies of 16 bytes.
fn recorded(b: &mut CpuBackend, copies: &[(u64, u64)], retain: Vec<SharedMemory>) -> Arc<dyn CapturedGraph> {
    b.begin_capture(None).unwrap();
    copies.iter().for_each(|&(from, to)| b.launch(&copy(from, to, 16)).unwrap());
    b.end_capture_shared(retain).unwrap().unwrap()
}

#[test]
fn an_update_changes_later_replays_only() {
    let mut b = backend();
    let (x, y) = (b.alloc(64).unwrap(), b.alloc(64).unwrap());
    let to = |at: u64| vec![(x.addr(), y.addr() + at)];
    let (one, two) = (recorded(&mut b, &to(0), Vec::new()), recorded(&mut b, &to(16), Vec::new()));
    let exec = b.instantiate(&one).unwrap();
    assert_eq!((exec.runs(), one.signature()), (Some(one.id()), two.signature()));
    // All of it waits in the queue: each replay has the commands and the bytes that it was launched with.
    let reads: Vec<_> = (0..100u8)
        .map(|value| {
            let recording = [&one, &two][usize::from(value) % 2];
            assert_eq!(b.update(&exec, recording).unwrap(), Update::Done);
            assert_eq!(exec.runs(), Some(recording.id()));
            b.replay(&exec, Some(block(x.addr(), &[value; 16]))).unwrap();
            (value, b.read(y.addr(), 32).unwrap())
        })
        .collect();
    for (value, pending) in reads {
        let bytes = pending.wait().unwrap();
        let at = 16 * (usize::from(value) % 2);
        assert_eq!(bytes[at..at + 16], [value; 16]);
        assert_eq!(bytes[16 - at..32 - at], [value.saturating_sub(1); 16], "the other one ran before");
    }
}

#[test]
fn another_topology_is_refused_and_changes_nothing() {
    let mut b = backend();
    let (x, y) = (b.alloc(64).unwrap(), b.alloc(64).unwrap());
    write(&mut b, x.addr(), &[5; 64]);
    let at = |n: u64| (x.addr() + n, y.addr() + n);
    let one = recorded(&mut b, &[at(0)], Vec::new());
    let exec = b.instantiate(&one).unwrap();
    let longer = recorded(&mut b, &[at(16), at(32)], Vec::new());
    b.begin_capture(None).unwrap();
    b.poison(y.addr(), 16).unwrap();
    let other = b.end_capture_shared(Vec::new()).unwrap().unwrap();
    b.begin_capture(None).unwrap();
    b.fork().unwrap();
    b.branch(0).unwrap();
    b.launch(&copy(x.addr(), y.addr(), 16)).unwrap();
    b.join().unwrap();
    let forked = b.end_capture_shared(Vec::new()).unwrap().unwrap();
    for recording in [&longer, &other, &forked] {
        assert_ne!(recording.signature(), one.signature());
        assert!(matches!(b.update(&exec, recording).unwrap(), Update::Refused { .. }));
        assert_eq!(exec.runs(), Some(one.id()));
    }
    b.replay(&exec, None).unwrap();
    assert_eq!(read(&mut b, y.addr(), 32), [[5; 16], [0; 16]].concat());
    // One that was made for its recording alone stays with it.
    b.begin_capture(None).unwrap();
    b.launch(&copy(x.addr(), y.addr() + 48, 16)).unwrap();
    let own = b.end_capture(Vec::new()).unwrap().unwrap();
    assert_eq!(own.runs(), None);
    assert!(matches!(b.update(&own, &one).unwrap(), Update::Refused { .. }));
    b.replay(&own, None).unwrap();
    assert_eq!(read(&mut b, y.addr() + 48, 16), [5; 16]);
}

#[test]
fn the_recording_keeps_its_memory_and_the_executable_does_not() {
    let mut b = backend();
    let (x, y, kept) = (b.alloc(16).unwrap(), b.alloc(16).unwrap(), b.alloc(16).unwrap());
    let weak = Arc::downgrade(&kept);
    let one = recorded(&mut b, &[(x.addr(), y.addr())], Vec::new());
    let two = recorded(&mut b, &[(x.addr(), kept.addr())], vec![kept]);
    let exec = b.instantiate(&two).unwrap();
    b.replay(&exec, None).unwrap();
    assert!(weak.upgrade().is_some());
    drop(two);
    b.synchronize().unwrap();
    assert!(weak.upgrade().is_none(), "nothing runs any more that needs it");
    assert_eq!(exec.runs(), None);
    assert!(matches!(b.replay(&exec, None), Err(Error::Device { call: "replay", .. })));
    assert_eq!(b.update(&exec, &one).unwrap(), Update::Done);
    b.replay(&exec, None).unwrap();
    b.synchronize().unwrap();
}

#[test]
fn not_in_a_capture_and_not_on_another_device() {
    let (mut b, mut other) = (backend(), backend());
    let (x, y) = (b.alloc(16).unwrap(), b.alloc(16).unwrap());
    let recording = recorded(&mut b, &[(x.addr(), y.addr())], Vec::new());
    let exec = b.instantiate(&recording).unwrap();
    assert!(matches!(other.instantiate(&recording), Err(Error::Device { call: "instantiate", .. })));
    assert!(matches!(other.update(&exec, &recording), Err(Error::Device { call: "update", .. })));
    b.begin_capture(None).unwrap();
    assert!(matches!(b.instantiate(&recording), Err(Error::RefusedInCapture { call: "instantiate" })));
    assert!(matches!(b.update(&exec, &recording), Err(Error::RefusedInCapture { call: "update" })));
    assert!(b.end_capture_shared(Vec::new()).unwrap().is_none(), "nothing was recorded");
}

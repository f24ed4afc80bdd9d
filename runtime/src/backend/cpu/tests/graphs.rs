//! Capture and replay.

use std::collections::HashSet;

use proptest::prelude::*;

use super::{
    super::{
        graph::Node,
        order::{Hazards, Random},
    },
    *,
};

#[test]
fn a_capture_executes_nothing_and_replays_repeat() {
    let mut b = backend();
    let (x, y) = (b.alloc(64).unwrap(), b.alloc(64).unwrap());
    write(&mut b, x.addr(), &[7; 64]);
    b.begin_capture(None).unwrap();
    b.launch(&copy(x.addr(), y.addr(), 64)).unwrap();
    b.poison(x.addr(), 64).unwrap();
    let exec = b.end_capture(vec![x.clone(), y.clone()]).unwrap().unwrap();
    assert_eq!(exec.nodes(), 2);
    assert_eq!(read(&mut b, x.addr(), 64), [7; 64]);
    assert_eq!(read(&mut b, y.addr(), 64), [0; 64]);
    b.replay(&exec, None).unwrap();
    assert_eq!(read(&mut b, y.addr(), 64), [7; 64]);
    assert_eq!(read(&mut b, x.addr(), 64), [0xFF; 64]);
    // Each replay in flight has the host bytes of its own call.
    let reads: Vec<_> = (0..200u8)
        .map(|value| {
            b.replay(&exec, Some(block(x.addr(), &[value; 64]))).unwrap();
            (value, b.read(y.addr(), 64).unwrap())
        })
        .collect();
    for (value, pending) in reads {
        assert_eq!(pending.wait().unwrap(), [value; 64]);
    }
}

#[test]
fn device_copies_come_with_a_replay_or_a_write() {
    let mut b = backend();
    let sources: Vec<_> = (0..4u8)
        .map(|value| {
            let memory = b.alloc(64).unwrap();
            write(&mut b, memory.addr(), &[value; 64]);
            memory
        })
        .collect();
    let (x, y, host) = (b.alloc(64).unwrap(), b.alloc(64).unwrap(), b.alloc(8).unwrap());
    b.begin_capture(None).unwrap();
    b.launch(&copy(x.addr(), y.addr(), 64)).unwrap();
    let exec = b.end_capture(vec![x.clone(), y.clone()]).unwrap().unwrap();
    // Unaligned, in two parts, next to bytes of the host's.
    let with_copies = |from: u64, value: u8| {
        let copy = |at: u64, bytes| DeviceCopy { to: x.addr() + at, from: from + at, bytes };
        HostUpload { copies: vec![copy(3, 30), copy(33, 30)], ..block(host.addr(), &[value; 8]) }
    };
    let expected = |value: u8| {
        let mut bytes = vec![value; 64];
        bytes[..3].fill(0);
        bytes[63] = 0;
        bytes
    };
    for (value, from) in sources.iter().enumerate() {
        b.replay(&exec, Some(with_copies(from.addr(), value as u8))).unwrap();
        assert_eq!(read(&mut b, y.addr(), 64), expected(value as u8));
        assert_eq!(read(&mut b, host.addr(), 8), [value as u8; 8]);
    }
    b.host_write(with_copies(sources[1].addr(), 9)).unwrap();
    assert_eq!(read(&mut b, x.addr(), 64), expected(1));
    assert_eq!(read(&mut b, host.addr(), 8), [9; 8]);
}

#[test]
fn a_capture_refuses_what_cuda_refuses_and_survives_it() {
    let mut b = backend();
    let (x, y) = (b.alloc(16).unwrap(), b.alloc(16).unwrap());
    b.begin_capture(None).unwrap();
    b.launch(&copy(x.addr(), y.addr(), 16)).unwrap();
    let exec = b.end_capture(Vec::new()).unwrap().unwrap();
    let arena = b.reserve(4096).unwrap();
    b.begin_capture(None).unwrap();
    b.launch(&copy(x.addr(), y.addr(), 16)).unwrap();
    let refused = |result: Result<()>, name| match result {
        Err(Error::RefusedInCapture { call }) => assert_eq!(call, name),
        other => panic!("{name}: {other:?}"),
    };
    refused(b.alloc(16).map(drop), "alloc");
    refused(b.read(x.addr(), 4).map(drop), "read");
    refused(b.host_write(block(x.addr(), &[1])), "host_write");
    refused(b.replay(&exec, None), "replay");
    refused(b.begin_capture(None), "begin_capture");
    refused(b.synchronize(), "synchronize");
    b.commit(&arena, 4096).unwrap();
    assert_eq!(b.end_capture(Vec::new()).unwrap().unwrap().nodes(), 1);
    b.synchronize().unwrap();
}

#[test]
fn captures_end_once_empty_or_not() {
    let mut b = backend();
    let (x, y) = (b.alloc(16).unwrap(), b.alloc(16).unwrap());
    assert!(matches!(b.end_capture(Vec::new()), Err(Error::Device { call: "end_capture", .. })));
    b.begin_capture(None).unwrap();
    assert!(b.end_capture(Vec::new()).unwrap().is_none(), "nothing was recorded");
    b.begin_capture(None).unwrap();
    b.launch(&copy(x.addr(), y.addr(), 16)).unwrap();
    b.abort_capture();
    write(&mut b, x.addr(), &[3; 16]);
    b.launch(&copy(x.addr(), y.addr(), 16)).unwrap();
    assert_eq!(read(&mut b, y.addr(), 16), [3; 16], "launches run again");
    b.abort_capture();
}

#[test]
fn executables_run_on_their_own_device_only() {
    let (mut b, mut other) = (backend(), backend());
    let (x, y) = (b.alloc(16).unwrap(), b.alloc(16).unwrap());
    b.begin_capture(None).unwrap();
    b.launch(&copy(x.addr(), y.addr(), 16)).unwrap();
    let exec = b.end_capture(Vec::new()).unwrap().unwrap();
    assert!(matches!(other.replay(&exec, None), Err(Error::Device { call: "replay", .. })));
    other.synchronize().unwrap();
}

#[test]
fn hazards_keep_their_order_and_the_rest_does_not() {
    let node = |from, to| Node::Launch(copy(from, to, 16));
    let nodes = [
        node(0, 100),
        node(100, 200),
        node(300, 400),
        node(500, 100),
        node(300, 600),
        Node::Poison { addr: 310, bytes: 1 },
    ];
    let hazards = Hazards::of(&nodes);
    let mut random = Random(5);
    let mut seen = HashSet::new();
    for _ in 0..300 {
        let mut order = Vec::new();
        hazards.shuffled(&mut random, |n| order.push(n));
        let at = |n| order.iter().position(|&o| o == n).unwrap();
        assert!(at(0) < at(1), "read after write");
        assert!(at(1) < at(3), "write after read");
        assert!(at(0) < at(3), "write after write");
        assert!(at(2) < at(5) && at(4) < at(5), "the poison comes after the reads");
        assert_eq!(order.len(), nodes.len());
        seen.insert(order);
    }
    // 3 nodes in a chain and 3 with one of two last: 6! / 3! / 3! * 2 orders.
    assert_eq!(seen.len(), 40, "every order that the hazards allow");
}

/// A copy of 16 bytes from `from` to `to`, in each branch of a fork that two others surround.
fn forked(b: &mut CpuBackend, at: u64, branches: &[(u64, u64)]) -> Result<Option<Arc<dyn GraphExec>>> {
    b.begin_capture(None)?;
    b.launch(&copy(at, at + 16, 16))?;
    b.fork()?;
    for (index, (from, to)) in branches.iter().enumerate() {
        b.branch(index)?;
        // Work before, in and after an inner fork is ordered.
        b.launch(&copy(at + from, at + to, 16))?;
        b.fork()?;
        b.branch(0)?;
        b.launch(&copy(at + to, at + to + 16, 16))?;
        b.branch(1)?;
        b.launch(&copy(at + to, at + to + 32, 16))?;
        b.join()?;
        b.launch(&copy(at + to + 32, at + to + 48, 16))?;
    }
    b.join()?;
    b.launch(&copy(at + 16, at, 16))?;
    b.end_capture(Vec::new())
}

#[test]
fn branches_that_share_memory_are_refused_in_test_mode() {
    let (mut b, mut plain) = (shuffling(3), backend());
    let (x, y) = (b.alloc(1024).unwrap(), plain.alloc(1024).unwrap());
    assert_eq!(forked(&mut b, x.addr(), &[(16, 64), (16, 128)]).unwrap().unwrap().nodes(), 10);
    for shared in [[(16, 64), (64, 256)], [(16, 64), (16, 72)], [(256, 64), (16, 208)]] {
        match forked(&mut b, x.addr(), &shared) {
            Err(Error::Device { call: "end_capture", reason, .. }) => {
                assert!(reason.contains("branches"), "{reason}")
            }
            other => panic!("{shared:?}: {other:?}"),
        }
        // Elsewhere commands run in their order.
        assert!(forked(&mut plain, y.addr(), &shared).unwrap().is_some());
    }
    let call_of = |result: Result<()>| match result {
        Err(Error::Device { call, .. }) => call,
        other => panic!("{other:?}"),
    };
    assert_eq!([call_of(b.fork()), call_of(b.branch(0)), call_of(b.join())], ["fork", "branch", "join"]);
    b.begin_capture(None).unwrap();
    assert_eq!([call_of(b.branch(0)), call_of(b.join())], ["branch", "join"]);
    b.fork().unwrap();
    assert_eq!(call_of(b.end_capture(Vec::new()).map(drop)), "end_capture", "a fork is open");
    assert!(forked(&mut b, x.addr(), &[(16, 64)]).unwrap().is_some(), "nothing is left of it");
}

/// The recorded dependencies of two branches are two chains.
#[test]
fn branches_run_in_any_order_to_each_other() {
    let node = |from, to| Node::Launch(copy(from, to, 16));
    let nodes = [node(0, 16), node(16, 100), node(100, 200), node(16, 300), node(300, 400), node(400, 0)];
    let (hazards, mut random, mut seen) = (Hazards::of(&nodes), Random(9), HashSet::new());
    for _ in 0..200 {
        let mut order = Vec::new();
        hazards.shuffled(&mut random, |n| order.push(n));
        assert_eq!((order[0], order.len()), (0, 6));
        seen.insert(order);
    }
    // The chain 1, 2 among 3, 4, 5.
    assert_eq!(seen.len(), 10);
}

#[test]
fn equal_seeds_give_equal_orders() {
    let orders = |seed| {
        let nodes: Vec<Node> = (0..20).map(|i| Node::Launch(copy(i * 32, i * 32 + 16, 16))).collect();
        let (hazards, mut random) = (Hazards::of(&nodes), Random(seed));
        let mut order = Vec::new();
        (0..3).for_each(|_| hazards.shuffled(&mut random, |n| order.push(n)));
        order
    };
    assert_eq!(orders(1), orders(1));
    assert_ne!(orders(1), orders(2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Copies between random overlapping ranges, replayed in random orders, have the same result as in
    /// sequence.
    #[test]
    fn any_order_that_hazards_allow_gives_the_sequential_result(
        seed: u64,
        start: [u8; 32],
        copies in prop::collection::vec((0..32usize, 0..32usize, 1..12usize, any::<bool>()), 1..40),
    ) {
        let mut expected = start;
        let mut b = shuffling(seed);
        let x = b.alloc(32).unwrap();
        b.begin_capture(None).unwrap();
        for (from, to, n, poison) in copies {
            let n = n.min(32 - from).min(32 - to);
            if poison {
                expected[to..to + n].fill(0xFF);
                b.poison(x.addr() + to as u64, n as u64).unwrap();
            } else if from.abs_diff(to) >= n {
                expected.copy_within(from..from + n, to);
                b.launch(&copy(x.addr() + from as u64, x.addr() + to as u64, n)).unwrap();
            }
        }
        let Some(exec) = b.end_capture(vec![x.clone()]).unwrap() else { return Ok(()) };
        for _ in 0..8 {
            b.replay(&exec, Some(block(x.addr(), &start))).unwrap();
            prop_assert_eq!(read(&mut b, x.addr(), 32), expected);
        }
    }
}

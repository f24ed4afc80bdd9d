//! Conditional nodes.

use super::*;

fn node(selector: u64, bodies: usize, repeats: bool) -> Conditional {
    let selector = View { addr: selector, dtype: DType::U32, layout: Layout::contiguous(&[]).unwrap() };
    Conditional { name: "switch", selector, bodies, repeats }
}

#[test]
fn the_selector_at_the_replay_decides() {
    for mut b in [backend(), shuffling(3)] {
        let (selector, y) = (b.alloc(4).unwrap(), b.alloc(64).unwrap());
        let sources: Vec<_> = (1..4u8)
            .map(|value| {
                let memory = b.alloc(64).unwrap();
                write(&mut b, memory.addr(), &[value; 64]);
                memory
            })
            .collect();
        b.begin_capture(None).unwrap();
        b.poison(y.addr(), 64).unwrap();
        b.begin_conditional(&node(selector.addr(), 4, false)).unwrap();
        for (index, source) in sources.iter().enumerate() {
            b.begin_body(index).unwrap();
            b.launch(&copy(source.addr(), y.addr(), 64)).unwrap();
        }
        // Without any work.
        b.begin_body(3).unwrap();
        b.end_conditional().unwrap();
        let exec = b.end_capture(vec![selector.clone(), y.clone()]).unwrap().unwrap();
        assert_eq!(exec.nodes(), 5, "with those of the bodies");
        for selected in [0u32, 2, 1, 3, 4, u32::MAX, 0] {
            b.replay(&exec, Some(block(selector.addr(), &selected.to_le_bytes()))).unwrap();
            let expected = sources.get(selected as usize).map_or(0xFF, |_| selected as u8 + 1);
            assert_eq!(read(&mut b, y.addr(), 64), [expected; 64], "{selected}");
        }
    }
}

#[test]
fn a_loop_repeats_until_its_body_says_otherwise() {
    for mut b in [backend(), shuffling(3)] {
        let (selectors, y) = (b.alloc(20).unwrap(), b.alloc(20).unwrap());
        b.begin_capture(None).unwrap();
        b.begin_conditional(&node(selectors.addr(), 1, true)).unwrap();
        b.begin_body(0).unwrap();
        // The selectors move up by one, and what was there first is lost.
        b.launch(&copy(selectors.addr() + 4, y.addr(), 16)).unwrap();
        b.launch(&copy(y.addr(), selectors.addr(), 16)).unwrap();
        b.end_conditional().unwrap();
        let exec = b.end_capture(vec![selectors.clone(), y.clone()]).unwrap().unwrap();
        for rounds in 0..4 {
            let words: Vec<u8> =
                (0..5u32).flat_map(|at| if at < rounds { 0u32 } else { 7 + at }.to_le_bytes()).collect();
            b.replay(&exec, Some(block(selectors.addr(), &words))).unwrap();
            assert_eq!(read(&mut b, selectors.addr(), 4), (7 + rounds).to_le_bytes(), "{rounds} rounds");
        }
    }
}

#[test]
fn bodies_come_in_order_and_all_of_them() {
    let mut b = backend();
    let memory = b.alloc(64).unwrap();
    let node = node(memory.addr(), 2, false);
    let work = copy(memory.addr(), memory.addr() + 32, 32);
    assert!(b.begin_conditional(&node).is_err(), "outside a capture");
    b.begin_capture(None).unwrap();
    assert!(b.begin_body(0).is_err() && b.end_conditional().is_err(), "without a node");
    b.begin_conditional(&node).unwrap();
    assert!(b.launch(&work).is_err(), "before the first body");
    assert!(b.begin_body(1).is_err(), "the first one is missing");
    b.begin_body(0).unwrap();
    b.fork().unwrap();
    assert!(b.begin_body(1).is_err(), "a fork is open");
    b.join().unwrap();
    assert!(b.end_capture(Vec::new()).is_err(), "the node is open");
    b.begin_capture(None).unwrap();
    b.begin_conditional(&node).unwrap();
    b.begin_body(0).unwrap();
    assert!(b.end_conditional().is_err(), "one is missing");
    b.abort_capture();
    b.begin_capture(None).unwrap();
    assert!(b.end_capture(Vec::new()).unwrap().is_none());
}

#[test]
fn branches_of_a_body_are_checked_and_nodes_order_what_they_use() {
    let mut b = shuffling(5);
    let memory = b.alloc(96).unwrap();
    let at = |n: u64| memory.addr() + 16 * n;
    b.begin_capture(None).unwrap();
    b.begin_conditional(&node(at(5), 1, false)).unwrap();
    b.begin_body(0).unwrap();
    b.fork().unwrap();
    b.launch(&copy(at(0), at(1), 16)).unwrap();
    b.branch(1).unwrap();
    b.launch(&copy(at(1), at(2), 16)).unwrap();
    b.join().unwrap();
    assert!(b.end_conditional().is_err(), "the second branch reads what the first one writes");
    b.abort_capture();
    // What follows the node waits for it, through the memory of its bodies.
    b.begin_capture(None).unwrap();
    b.begin_conditional(&node(at(5), 1, false)).unwrap();
    b.begin_body(0).unwrap();
    b.launch(&copy(at(0), at(1), 16)).unwrap();
    b.end_conditional().unwrap();
    b.launch(&copy(at(1), at(2), 16)).unwrap();
    let exec = b.end_capture(vec![memory.clone()]).unwrap().unwrap();
    let topology = exec.topology().unwrap();
    assert_eq!((topology.nodes.len(), topology.edges.len()), (2, 1));
    assert_eq!(topology.nodes[0].bodies[0].nodes.len(), 1);
    for value in 1..20u8 {
        write(&mut b, at(0), &[value; 16]);
        write(&mut b, at(5), &[0; 4]);
        b.replay(&exec, None).unwrap();
        assert_eq!(read(&mut b, at(2), 16), [value; 16]);
    }
}

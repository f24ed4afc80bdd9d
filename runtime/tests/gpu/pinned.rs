//! Pinned buffers while copies are really under way.

use graphable::{PinnedBuffer, graphable, prelude::*};

use crate::support::{runtime, skipped};

const LEN: usize = 2 << 20;

#[graphable]
fn scaled(
    #[host]
    #[dims(N)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let x = ops::scale(x, 2.0)?;
    let x = #[eager]
    ops::scale(&x, 1.0)?;
    ops::add(&x, 1.0)
}

/// Buffers are written again as soon as they let the host, and results are compared far behind.
#[test]
fn inputs_and_results_are_those_of_their_call() {
    if skipped("inputs_and_results_are_those_of_their_call") {
        return;
    }
    const DEPTH: usize = 3;
    let mut rt = runtime();
    let graph = ScaledGraph::builder().bucket("N", Schedule::new([LEN / 2, LEN])).build(&mut rt).unwrap();
    let mut inputs: Vec<_> = (0..DEPTH).map(|_| PinnedBuffer::<f32>::zeros(&rt, LEN).unwrap()).collect();
    let mut outputs: Vec<_> = (0..DEPTH).map(|_| PinnedBuffer::<f32>::zeros(&rt, LEN).unwrap()).collect();
    let lens = |round: usize| [LEN, LEN - 1, LEN / 2, LEN / 2 - 7, 3][round % 5];
    let check = |output: &PinnedBuffer<f32>, round: usize| {
        let values = &output.values().unwrap()[..lens(round)];
        let want = 2.0 * round as f32 + 1.0;
        assert!(values.iter().all(|v| *v == want), "round {round}: {} {want}", values[0]);
    };
    for round in 0..120 {
        let at = round % DEPTH;
        if round >= DEPTH {
            check(&outputs[at], round - DEPTH);
        }
        inputs[at].values_mut().unwrap().fill(round as f32);
        let step = rt.step().unwrap();
        let part = inputs[at].part(..lens(round)).unwrap();
        let y = graph.call(&step, part).unwrap();
        drop(step.read_into(&y, &mut outputs[at]).unwrap());
    }
    (120 - DEPTH..120).for_each(|round| check(&outputs[round % DEPTH], round));
    assert!(rt.stats().replays > 100, "{:?}", rt.stats());
    // 8 MiB for each of 120 calls would fill the runtime's own staging memory several times.
    assert_eq!(rt.stats().staging_waits, 0);
}

/// One buffer for everything: each use waits for the one before where it has to, and only there.
#[test]
fn one_buffer_is_input_and_result() {
    if skipped("one_buffer_is_input_and_result") {
        return;
    }
    let mut rt = runtime();
    let graph = ScaledGraph::builder().build(&mut rt).unwrap();
    let mut buffer = PinnedBuffer::<f32>::zeros(&rt, LEN).unwrap();
    for _ in 0..20 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &buffer).unwrap();
        drop(step.read_into(&y, &mut buffer).unwrap());
    }
    let want = (1u32 << 20) as f32 - 1.0;
    assert!(buffer.values().unwrap().iter().all(|v| *v == want), "{}", buffer.values().unwrap()[0]);
}

/// Dropped while the device copies, on any thread; freed outside captures.
#[test]
fn buffers_are_dropped_while_they_are_in_use() {
    if skipped("buffers_are_dropped_while_they_are_in_use") {
        return;
    }
    let mut rt = runtime();
    let graph = ScaledGraph::builder().audit_every(3).build(&mut rt).unwrap();
    for round in 0..30 {
        let input = PinnedBuffer::new(&rt, &vec![round as f32; LEN]).unwrap();
        let mut output = PinnedBuffer::<f32>::zeros(&rt, LEN).unwrap();
        let step = rt.step().unwrap();
        let y = graph.call(&step, &input).unwrap();
        drop(step.read_into(&y, &mut output).unwrap());
        std::thread::spawn(move || drop((input, output)));
        let y = step.read(&y).unwrap();
        assert!(y.iter().all(|v| *v == 2.0 * round as f32 + 1.0), "round {round}");
    }
    let mut last = PinnedBuffer::<f32>::zeros(&rt, LEN).unwrap();
    let step = rt.step().unwrap();
    let x = step.tensor(&[LEN], &vec![5.0f32; LEN]).unwrap();
    drop(step.read_into(&x, &mut last).unwrap());
    drop((x, step));
    drop((graph, rt));
    assert!(last.values().unwrap().iter().all(|v| *v == 5.0), "what was on the stream was done");
}

//! What moved boundaries cost in memory.

use graphable::{graphable, prelude::*};

use crate::support::runtime;

#[derive(Params)]
struct Block {
    up: Param<f32>,
    down: Param<f32>,
}

#[derive(Params)]
struct Blocks {
    blocks: Vec<Block>,
}

/// What a region adds to a block of a network: a column of biases, made by host code from the positions.
fn biases<'s>(positions: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::scale(&ops::add(positions, positions)?, 0.5)
}

/// Two layers of a network, each with a region that adds a column of biases, and one that looks at the activations.
macro_rules! network {
    ($name:ident, [$($early:tt)*], [$($late:tt)*]) => {
        #[graphable]
        fn $name(x: &Tensor<f32>, positions: &Tensor<f32>, model: &Blocks) -> Result<Tensor<f32>> {
            let mut h = ops::scale(x, 0.5)?;
            for block in &model.blocks {
                let wide = ops::relu(&ops::linear(&h, &block.up)?)?;
                let bias = #[eager $($early)*]
                biases(positions)?;
                let narrow = ops::linear(&wide, &block.down)?;
                #[eager $($late)*]
                looked_at(&narrow)?;
                h = ops::add(&ops::add(&narrow, &bias)?, x)?;
            }
            ops::scale(&h, 2.0)
        }
    };
}

network!(network_in_place, [], []);
network!(network_moved, [(early)], [(late)]);

/// Reads what it was given, so that it must be alive.
fn looked_at(t: &Tensor<'_, f32>) -> Result<()> {
    ops::neg(t).map(drop)
}

const ROWS: usize = 16;
const NARROW: usize = 64;
const WIDE: usize = 256;

/// The results of some calls, and bytes of the arenas at their most.
macro_rules! peak {
    ($graph:ident) => {{
        let mut rt = runtime();
        let weights = |shape: [usize; 2], by: f32| {
            let data: Vec<f32> = (0..shape[0] * shape[1]).map(|i| ((i % 7) as f32 - 3.0) * by).collect();
            Param::new(&rt, &shape, &data).unwrap()
        };
        let block = |by| Block { up: weights([WIDE, NARROW], by), down: weights([NARROW, WIDE], by) };
        let model = Blocks { blocks: vec![block(0.01), block(0.02)] };
        let graph = $graph::builder().build(&mut rt).unwrap();
        let mut results = Vec::new();
        for i in 0..6 {
            let step = rt.step().unwrap();
            let data: Vec<f32> = (0..ROWS * NARROW).map(|k| (k % 11) as f32 + i as f32).collect();
            let x = step.tensor(&[ROWS, NARROW], &data).unwrap();
            let column: Vec<f32> = (0..ROWS).map(|k| k as f32).collect();
            let positions = step.tensor(&[ROWS, 1], &column).unwrap();
            results.push(step.read(&graph.call(&step, &x, &positions, &model).unwrap()).unwrap());
        }
        let memory = rt.memory();
        let bytes = memory.pool.peak_bytes + memory.results.peak_bytes + memory.eager.peak_bytes;
        (results, bytes, rt.stats().live_recordings)
    }};
}

/// The bound of row 75: at its most, the moved function needs 1.1 times the memory of the other, or less.
#[test]
fn moved_boundaries_keep_to_the_memory_of_those_in_place() {
    let (values, in_place, nodes) = peak!(NetworkInPlaceGraph);
    let (moved_values, moved, moved_nodes) = peak!(NetworkMovedGraph);
    assert_eq!(values, moved_values);
    assert!(moved_nodes < nodes, "{moved_nodes} recordings of {nodes}");
    assert!(moved * 10 <= in_place * 11, "{moved} bytes moved, {in_place} in place");
}

/// Two values of regions, the first dropped before the second is made.
macro_rules! dropping {
    ($name:ident, [$($early:tt)*]) => {
        #[graphable]
        fn $name(x: &Tensor<f32>) -> Result<Tensor<f32>> {
            let a = ops::neg(x)?;
            let first = #[eager $($early)*]
            ops::scale(x, 2.0)?;
            let b = ops::add(&a, &first)?;
            drop(first);
            let second = #[eager $($early)*]
            ops::scale(x, 2.0)?;
            ops::add(&b, &second)
        }
    };
}

dropping!(dropping_in_place, []);
dropping!(dropping_moved, [(early)]);

/// What a move can cost: values that the program drops in between are alive at once.
#[test]
fn values_made_early_wait_for_what_uses_them() {
    if crate::device::skipped_with_gaps("values_made_early_wait_for_what_uses_them") {
        return;
    }
    macro_rules! bytes {
        ($graph:ident) => {{
            let mut rt = runtime();
            let graph = $graph::builder().build(&mut rt).unwrap();
            for _ in 0..6 {
                let step = rt.step().unwrap();
                let x = step.tensor(&[4096], &[1.5; 4096]).unwrap();
                let y = graph.call(&step, &x).unwrap();
                assert_eq!(step.read(&y).unwrap(), [4.5; 4096]);
            }
            let memory = rt.memory();
            memory.pool.peak_bytes + memory.results.peak_bytes + memory.eager.peak_bytes
        }};
    }
    let (in_place, moved) = (bytes!(DroppingInPlaceGraph), bytes!(DroppingMovedGraph));
    // One more in the pool, and in the first call, which learns that they are results, where they are made.
    assert_eq!(moved - in_place, 2 * 4096 * 4, "{moved} bytes moved, {in_place} in place");
}

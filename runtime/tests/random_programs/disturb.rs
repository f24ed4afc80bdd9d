//! What must make no difference: captures that somebody invalidates, temporaries of regions, memory that is estimated.

use std::cell::Cell;

use graphable::{
    Eager, Error, MemoryArena, MemoryStats, Mode, Result, Runtime, Stats, Tensor, backend::faulty::FaultPlan,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    build::Built,
    program::Program,
    run::{Setup, capture, is_captured},
    value::{disarmed, nonsense},
    world::World,
};

/// Somebody disturbs captures, each up to three times in a row and wherever they are: made again, they are the same.
pub(crate) fn invalidate(faults: &FaultPlan, seed: u64) {
    let rng = &mut StdRng::seed_from_u64(seed);
    for _ in 0..40 {
        for _ in 0..rng.random_range(0..4) {
            faults.invalidate_captures([rng.random_bool(0.8).then(|| rng.random_range(0..12))]);
        }
        // And one that nobody disturbs.
        faults.invalidate_captures([Some(u64::MAX)]);
    }
}

/// Somebody disturbs them to the end of all patience, too: what was put into them runs, and the values are the same.
pub(crate) fn invalidate_for_good(faults: &FaultPlan, seed: u64) {
    let rng = &mut StdRng::seed_from_u64(seed);
    for _ in 0..40 {
        let times = [0, 0, 1, 8, 9, 9, 18][rng.random_range(0..7)];
        let (same, at) = (rng.random_bool(0.5), rng.random_range(0..30));
        for _ in 0..times {
            let after = if same { at } else { rng.random_range(0..12) };
            faults.invalidate_captures([rng.random_bool(0.9).then_some(after)]);
        }
        faults.invalidate_captures([Some(u64::MAX)]);
    }
}

thread_local! {
    /// How many temporaries regions make before they do what they do, in turn; 0 for none.
    static TEMPORARIES: Cell<u64> = const { Cell::new(0) };
}

/// Values that a region makes first, another number each time, some of which live until its results are there.
pub(crate) fn temporaries<'s>(region: &Eager<'s>) -> Result<Vec<Tensor<'s, u32>>> {
    let state = TEMPORARIES.get();
    if state == 0 {
        return Ok(Vec::new());
    }
    TEMPORARIES
        .set(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) | 1);
    let (count, size) = ((state >> 33) % 4, [1, 8, 100, 300][(state >> 40) as usize % 4]);
    let all = (0..count).map(|_| region.tensor(&[size], &vec![7u32; size])).collect::<Result<Vec<_>>>()?;
    Ok(if (state >> 50).is_multiple_of(2) { all } else { Vec::new() })
}

/// From now on, regions make temporaries.
pub(crate) fn make_temporaries(seed: u64) {
    TEMPORARIES.set(if varies(seed) { seed | 1 } else { 0 });
}

/// Whether regions of the program of a seed make temporaries.
pub(crate) fn varies(seed: u64) -> bool {
    seed % 4 == 1
}

fn comparable(rt: &Runtime) -> (Stats, MemoryStats) {
    let mut memory = rt.memory();
    memory.device = None;
    (rt.stats(), memory)
}

/// A GPU may give back the graphs that eager kernels are launched as, and makes none here.
fn without_fewer_eager_graphs(
    (stats, mut after): (Stats, MemoryStats),
    before: &MemoryStats,
) -> (Stats, MemoryStats) {
    if after.eager_graphs <= before.eager_graphs && after.eager_graph_bytes <= before.eager_graph_bytes {
        (after.eager_graphs, after.eager_graph_bytes) = (before.eager_graphs, before.eager_graph_bytes);
    }
    (stats, after)
}

/// Estimates what the captures of all functions would take, with everything in the plan that it refuses. Nothing is
/// another afterwards.
pub(crate) fn estimate(
    rt: &mut Runtime,
    world: &World,
    program: &Program,
    built: &[Built],
    setup: Setup,
) -> Result<()> {
    // What was dropped since the last step goes first.
    rt.step()?;
    let before = comparable(rt);
    let plan = |rt: &mut Runtime| {
        for (func, built) in program.funcs.iter().zip(built) {
            if is_captured(func) && setup.mode != Mode::None && !program.seed.is_multiple_of(3) {
                capture(rt, world, func, built)?;
            }
            let refused = [
                rt.trim().map(drop),
                rt.reset().map(drop),
                rt.preallocate(MemoryArena::Pool, 1 << 20).map(drop),
                rt.estimate_memory(|_| Ok(())).map(drop),
                rt.measure_memory(|_| Ok(())).map(drop),
            ];
            if !refused.iter().all(|r| matches!(r, Err(Error::InsideEstimate { .. }))) {
                return Err(nonsense(format!("inside an estimate: {refused:?}")));
            }
        }
        Ok(())
    };
    disarmed(|| rt.estimate_memory(plan))?;
    let after = without_fewer_eager_graphs(comparable(rt), &before.1);
    if after == before { Ok(()) } else { Err(nonsense(format!("an estimate made {after:?} of {before:?}"))) }
}

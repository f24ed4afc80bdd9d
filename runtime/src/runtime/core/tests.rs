//! Situations that no program can reach in the time of a test.

use std::{
    borrow::Cow,
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::{
    DType, Device, Error, MemoryArena, Param, Result, Runtime, Support, Tensor,
    backend::{HostUpload, SharedMemory},
    base::plan::{Plan, Site},
    graph::{FunctionSpec, GraphObject, Options, inputs::Inputs},
    host::eager::{EagerTensors as _, RegionResult},
    memory::OwnedView,
    ops,
    value::layout::{Layout, PaddedDims},
};

static SITE: Site = Site { function: "test", index: 0, file: file!(), first_line: 1, last_line: 1 };
static REGION: Site = Site { function: "test", index: 1, file: file!(), first_line: 2, last_line: 2 };
static PLAN: Plan = Plan { function: "test", file: file!(), items: &[], host_statement: None };

fn runtime() -> Runtime {
    Runtime::new(Device::cpu()).unwrap()
}

fn graph(rt: &mut Runtime) -> GraphObject {
    let spec = FunctionSpec { name: "test", plan: &PLAN, symbols: &[], inputs: Cow::Borrowed(&[]) };
    GraphObject::new(rt, spec, Options::default()).unwrap()
}

/// Runs one segment that returns two of `w`.
fn twice(rt: &mut Runtime, graph: &GraphObject, w: &Param<f32>) -> Result<Vec<f32>> {
    let step = rt.step()?;
    let frame = Inputs::new(&step, graph).enter(())?;
    let y = frame.run(|cx| {
        cx.segment(&SITE, (step.scope(), w), |k| ops::add(&ops::mul(&ops::full(k.0, &[1], 1.0)?, k.1)?, k.1))
    })?;
    step.read(&y)
}

fn recorded(rt: &mut Runtime) -> (GraphObject, Param<f32>) {
    let (graph, w) = (graph(rt), Param::new(rt, &[1], &[1.5f32]).unwrap());
    for _ in 0..4 {
        assert_eq!(twice(rt, &graph, &w).unwrap(), [3.0]);
    }
    assert_eq!(rt.stats().live_recordings, 1);
    (graph, w)
}

/// As after 2^32 forgotten clones: the last handle that is dropped is not the last one.
#[test]
fn counts_of_handles_do_not_wrap() {
    let mut rt = runtime();
    let step = rt.step().unwrap();
    let x = step.tensor(&[4], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
    x.rt.core.borrow_mut().memory.set_handles(x.raw.slot, u32::MAX.into());
    std::mem::forget(x.clone());
    drop(x.clone());
    let y = step.tensor(&[4], &[-7.0f32; 4]).unwrap();
    assert_ne!(x.raw.addr, y.raw.addr);
    assert_eq!(step.read(&x).unwrap(), [1.0, 2.0, 3.0, 4.0]);
    step.check_memory().unwrap();
}

/// As after 2^32 steps: reusing the number of a step would revive handles of the first one.
#[test]
fn numbers_of_steps_do_not_wrap() {
    let mut rt = runtime();
    let first = {
        let step = rt.step().unwrap();
        let x = step.tensor(&[1], &[1.0f32]).unwrap();
        x.raw
    };
    rt.core.get_mut().memory.skip_steps(u32::MAX.into());
    let step = rt.step().unwrap();
    let y = step.tensor(&[1], &[2.0f32]).unwrap();
    assert_eq!(y.raw.slot, first.slot);
    assert!(y.rt.core.borrow().check_live("test", &first).is_err());
}

#[test]
fn a_replay_that_lacks_memory_is_not_launched() {
    let mut rt = runtime();
    let (graph, w) = recorded(&mut rt);
    let replays = rt.stats().replays;
    for (arena, name) in [(MemoryArena::Pool, "the pool"), (MemoryArena::Results, "the results arena")] {
        let there = rt.core.get_mut().memory.set_committed(arena, 0);
        match twice(&mut rt, &graph, &w) {
            Err(Error::Uncommitted { arena: named, needed, committed: 0, .. }) => {
                assert_eq!(named, name);
                assert!(needed > 0 && needed <= there);
            }
            other => panic!("{other:?}"),
        }
        rt.core.get_mut().memory.set_committed(arena, there);
        assert_eq!(twice(&mut rt, &graph, &w).unwrap(), [3.0]);
    }
    assert_eq!(rt.stats().replays, replays + 2);
}

#[test]
fn trimming_counts_what_an_estimate_set_aside() {
    let mut rt = runtime();
    let (graph, w) = recorded(&mut rt);
    let before = rt.memory().pool.committed_bytes;
    rt.estimate_memory(|rt| {
        // As from within the core, which nothing prevents.
        rt.core.get_mut().trim().map(drop)
    })
    .unwrap();
    assert_eq!(rt.memory().pool.committed_bytes, before);
    assert_eq!(twice(&mut rt, &graph, &w).unwrap(), [3.0]);
}

#[test]
fn an_error_that_waits_survives_a_panicking_hook() {
    let mut rt = runtime();
    let (graph, w) = recorded(&mut rt);
    rt.on_lifecycle(|_| panic!("asked"));
    rt.core.get_mut().stream.defer(Error::Rank { rank: 77 });
    // The next step has an eviction to report.
    drop(w);
    assert!(catch_unwind(AssertUnwindSafe(|| rt.step().map(drop))).is_err());
    assert!(matches!(rt.step(), Err(Error::Rank { rank: 77 })));
    let step = rt.step().unwrap();
    let x = step.tensor(&[1], &[2.0f32]).unwrap();
    assert_eq!(step.read(&ops::neg(&x).unwrap()).unwrap(), [-2.0]);
    drop((step, graph));
}

/// A chain whose results all live: the blocks that each recording found live are shared with the others, and
/// are still exact.
#[test]
fn what_is_alive_in_a_chain_is_shared() {
    const N: u64 = 1500;
    let mut rt = runtime();
    let graph = graph(&mut rt);
    for _ in 0..2 {
        let step = rt.step().unwrap();
        let frame = Inputs::new(&step, &graph).enter(()).unwrap();
        let result: Result<()> = frame.run(|cx| {
            let mut all = vec![cx.segment(&SITE, (step.scope(), 0u64), |k| ops::full(k.0, &[1], 1.0f32))?];
            for i in 1..N {
                // Half of them are dropped later, each next to others that remain.
                if i % 3 == 0 {
                    all.swap_remove(i as usize / 5);
                }
                let y = cx.segment(&SITE, (&all[all.len() - 1], i), |k| ops::neg(k.0))?;
                all.push(y);
            }
            Ok(())
        });
        result.unwrap();
    }
    let core = rt.core.borrow();
    assert_eq!(core.tree.len() as u64, N);
    let (mut parts, mut entries) = (std::collections::HashSet::new(), 0);
    for recording in core.tree.recordings() {
        entries += recording.alive.iter().count();
        if let crate::memory::Alive::Many(tree) = &recording.alive {
            tree.parts(&mut parts);
        }
        let alive: Vec<u64> = recording.alive.iter().map(|block| block.addr()).collect();
        let state: Vec<u64> = core.memory.pool().blocks(recording.entry).map(|block| block.addr).collect();
        assert_eq!(alive, state);
    }
    assert!(entries > 300_000, "{entries} blocks alive in all");
    assert!(parts.len() < 64 * N as usize, "{} parts for {entries} blocks", parts.len());
}

/// As memory of cudarc's that is handed back: at another address each time.
#[test]
fn memory_of_the_users_that_a_region_returns_is_moved_to_one_address() {
    let mut rt = runtime();
    let graph = graph(&mut rt);
    rt.keep_events(true);
    let mut handed_back: Vec<SharedMemory> = Vec::new();
    for i in 0..12 {
        let step = rt.step().unwrap();
        let frame = Inputs::new(&step, &graph).enter(()).unwrap();
        let y = frame.run(|cx| {
            let region = cx.eager(&REGION, Support::Never)?;
            let given = {
                let mut core = step.rt.core.borrow_mut();
                let memory = core.stream.alloc(8)?;
                let bytes = [i as f32, 1.0].iter().flat_map(|x| x.to_ne_bytes()).collect();
                let block =
                    HostUpload { bytes, writes: vec![(memory.addr(), 0, 8)], ..HostUpload::default() };
                core.stream.backend_mut().host_write(block)?;
                let layout = Layout::contiguous(&[2])?;
                let (dtype, marks) = (DType::F32, PaddedDims::NONE);
                let view = OwnedView { owner: None, memory: &memory, dtype, layout, marks };
                let raw = core.memory.adopt_in_region(view);
                handed_back.push(memory);
                Tensor::<f32>::from_raw(step.rt, raw)
            };
            let given = (&&RegionResult::new(given)).finish(region)?;
            cx.segment(&SITE, (&given,), |k| ops::neg(k.0))
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [-(i as f32), -1.0]);
    }
    let mut addresses: Vec<u64> = handed_back.iter().map(|memory| memory.addr()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), 12);
    let stats = rt.stats();
    // The first call learns that there is a result, and warms up.
    assert_eq!((stats.warmups, stats.recordings, stats.fallbacks), (1, 1, 0), "{stats:?}");
    // What the first call returned stayed where it was.
    assert_eq!(stats.copies, 11, "{stats:?}");
    assert_eq!(rt.check_memory().map_err(|error| error.to_string()), Ok(()));
}

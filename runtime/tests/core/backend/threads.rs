//! Several runtimes on several threads at once: captures of one, replays of another, frees of a third.
//!
//! Each runtime must do exactly what it does alone: values, and every counter of what was warmed up,
//! recorded and replayed. On a GPU the threads share one context, so this is also where a capture would be
//! invalidated by another thread's allocation, free or wait.

use std::{
    sync::{Arc, Barrier, mpsc::channel},
    thread,
};

use graphable::{
    __private::Live,
    Param, PendingRead, Result, Runtime, State, Stats,
    backend::faulty::{FaultPlan, FaultyBackend},
    ops,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::support::*;

// What may cross threads, and how: a runtime moves, with all that it recorded; handles of memory go anywhere.
const fn sends<T: Send>() {}
const fn shares<T: Sync>() {}
const _: () = {
    sends::<Runtime>();
    sends::<Param<f32>>();
    shares::<Param<f32>>();
    sends::<State<f32>>();
    sends::<PendingRead<f32>>();
};

/// One runtime with a program whose calls depend on a seed.
struct Worker {
    rt: Checked,
    graph: Graph,
    w: Param<f32>,
    state: State<f32>,
    count: f32,
    rng: StdRng,
}

impl Worker {
    fn new(seed: u64) -> Self {
        let mut rt = runtime();
        rt.keep_events(false);
        let graph = Spec::inputs(vec![host("x", &[Dim::Const(2)])]).build(&mut rt);
        let w = weight(&rt, 1.0);
        let state = State::new(&rt, &[2], &[0.0; 2]).unwrap();
        Self { rt, graph, w, state, count: 0.0, rng: StdRng::seed_from_u64(seed) }
    }

    /// Some calls of one step; each key and each way is warmed up and recorded when it first comes.
    fn step(&mut self) {
        let Self { rt, graph, w, state, count, rng } = self;
        if rng.random_range(0..25) == 0 {
            // Evicts what was recorded with the old one.
            *w = weight(rt, 1.0);
        }
        let step = rt.step().unwrap();
        for _ in 0..rng.random_range(1..4) {
            let (key, extra): (u32, bool) = (rng.random_range(1..7), rng.random());
            let x = [rng.random_range(0..100) as f32, 1.0];
            *count += 1.0;
            let y = graph.call(&step, &[In::Host((&x).into())], (&*w, &*state), |cx, a| {
                let (h,) = seg!("a", cx, (&a.t[0], &key, &*w), |k| {
                    Ok((ops::scale(&ops::add(k.0, k.2)?, *k.1 as f32)?,))
                })?;
                let kept = extra.then(|| h.clone());
                let e = eager!("e", cx, |_e| ops::neg(&h));
                drop(h);
                let (g,) = seg!("b", cx, (&e, &*state), |k| {
                    let next =
                        ops::add(&ops::load(k.0.scope(), k.1)?, &ops::full(k.0.scope(), &[2], 1.0f32)?)?;
                    ops::store(k.1, &next)?;
                    Ok((ops::add(k.0, &next)?,))
                })?;
                drop((kept, e));
                seg!("c", cx, (&g,), |k| ops::neg(k.0))
            });
            let expected = x.map(|v| (v + 1.0) * key as f32 - *count);
            assert_eq!(step.read(&y.unwrap()).unwrap(), expected);
        }
    }

    fn run(mut self, steps: usize) -> Stats {
        for _ in 0..steps {
            self.step();
            assert_eq!(Live::of(&self.rt), Live::default(), "tensors or blocks are left");
        }
        self.rt.stats()
    }
}

fn weight(rt: &Runtime, w: f32) -> Param<f32> {
    Param::new(rt, &[2], &[w; 2]).unwrap()
}

/// What must be the same whoever else runs; how much memory an executable takes is the driver's.
fn counters(stats: &Stats) -> [u64; 9] {
    let Stats { warmups, recordings, replays, rerecordings, eager_calls, copies, fallbacks, evicted, .. } =
        *stats;
    [
        warmups,
        recordings,
        replays,
        rerecordings,
        eager_calls,
        copies,
        fallbacks,
        evicted,
        stats.live_recordings as u64,
    ]
}

const THREADS: u64 = 4;

#[test]
fn threads_with_their_own_runtimes() {
    let steps = 150;
    let alone: Vec<Stats> = (0..THREADS).map(|seed| Worker::new(seed).run(steps)).collect();
    for round in 0..3 {
        let barrier = Barrier::new(THREADS as usize);
        let together: Vec<Stats> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|seed| {
                    let barrier = &barrier;
                    scope.spawn(move || {
                        let worker = Worker::new(seed);
                        barrier.wait();
                        worker.run(steps)
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        for (alone, together) in alone.iter().zip(&together) {
            assert_eq!(counters(together), counters(alone), "round {round}: {together:?}");
            // On a GPU, a capture that another thread invalidated is abandoned and made again; on the CPU none is.
            assert_eq!(together.aborted, together.captures_invalidated);
            assert!(crate::device::gpu().is_some() || together.captures_invalidated == 0);
        }
    }
    let sum = |of: fn(&Stats) -> u64| alone.iter().map(of).sum::<u64>();
    println!(
        "{THREADS} threads: {} warm-ups, {} recordings, {} replays, {} evicted, as each alone",
        sum(|s| s.warmups),
        sum(|s| s.recordings),
        sum(|s| s.replays),
        sum(|s| s.evicted)
    );
    assert!(sum(|s| s.recordings) > 50 && sum(|s| s.replays) > 1000 && sum(|s| s.evicted) > 20);
}

/// A runtime goes round a ring of threads, each of which works with it for a while, and with its own.
#[test]
fn a_runtime_moves_between_threads() {
    let (first, mut input) = channel::<Worker>();
    let mut threads = Vec::new();
    for seed in 0..3 {
        let (output, next) = channel();
        let from = std::mem::replace(&mut input, next);
        threads.push(thread::spawn(move || {
            let mut own = Worker::new(100 + seed);
            for mut visitor in from {
                for _ in 0..5 {
                    own.step();
                    visitor.step();
                }
                output.send(visitor).unwrap();
            }
            own.rt.stats()
        }));
    }
    let mut worker = Worker::new(7);
    for _ in 0..10 {
        first.send(worker).unwrap();
        worker = input.recv().unwrap();
        worker.step();
    }
    drop(first);
    for thread in threads {
        assert!(thread.join().unwrap().replays > 50);
    }
    // 15 steps on other threads and one here, ten times: as if it had never moved.
    let mut settled = Worker::new(7);
    for _ in 0..160 {
        settled.step();
    }
    assert_eq!(counters(&worker.rt.stats()), counters(&settled.rt.stats()));
}

/// Parameters go on another thread while this one captures: each is evicted once, and all memory is freed.
#[test]
fn parameters_go_while_others_capture() {
    let plan = Arc::new(FaultPlan::default());
    let inner = crate::device::backend(options());
    let mut rt = Runtime::with_backend(Box::new(FaultyBackend::new(inner, Arc::clone(&plan)))).unwrap();
    let graph = vector(&mut rt, graphable::Mode::Piecewise);
    // The first call makes the static buffers, which stay.
    let first = graph.call(&rt.step().unwrap(), &[x()], (), |cx, a| {
        seg!("first", cx, (&a.t[0],), |k| ops::neg(k.0)).map(drop)
    });
    first.unwrap();
    let (before, _) = plan.live_memory();
    let (send, gone) = channel::<Param<f32>>();
    let dropper = thread::spawn(move || gone.into_iter().map(drop).count());
    let total = 60;
    for i in 0..total {
        let w = weight(&rt, i as f32);
        let clone = w.clone();
        for round in 0..3 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[x()], &clone, |cx, a| {
                seg!("a", cx, (&a.t[0], &clone), |k| ops::add(k.0, k.1))
            });
            assert_eq!(step.read(&y.unwrap()).unwrap(), [i as f32 + 1.0, i as f32 + 2.0], "round {round}");
        }
        // The last handle goes here or there, whoever comes second.
        send.send(w).unwrap();
    }
    drop(send);
    assert_eq!(dropper.join().unwrap(), total);
    rt.step().unwrap();
    assert_eq!((rt.stats().evicted, rt.stats().live_recordings), (total as u64, 0));
    for _ in 0..100 {
        let step = rt.step().unwrap();
        drop(step.tensor(&[1], &[0.0f32]).unwrap());
        step.synchronize().unwrap();
        if plan.live_memory().0 == before {
            break;
        }
    }
    assert_eq!((plan.live_memory().0, plan.live_executables()), (before, 0));
}

/// Reads under way are waited for on other threads, while the runtime goes on.
#[test]
fn reads_are_waited_for_elsewhere() -> Result<()> {
    let mut rt = runtime();
    let graph = vector(&mut rt, graphable::Mode::Piecewise);
    let (send, reads) = channel::<(f32, PendingRead<f32>)>();
    let reader = thread::spawn(move || {
        let mut count = 0;
        for (expected, read) in reads {
            assert_eq!(read.wait().unwrap(), [expected, 2.0 * expected]);
            count += 1;
        }
        count
    });
    for i in 0..300 {
        let step = rt.step()?;
        let factor = (i % 5 + 1) as f32;
        let y = graph.call(&step, &[x()], factor.to_bits(), |cx, a| {
            let bits = factor.to_bits();
            seg!("a", cx, (&a.t[0], &bits), |k| ops::scale(k.0, f32::from_bits(*k.1)))
        })?;
        send.send((factor, step.read_later(&y)?)).unwrap();
    }
    drop(send);
    assert_eq!(reader.join().unwrap(), 300);
    Ok(())
}

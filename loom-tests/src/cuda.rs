//! The CUDA backend's side: what is let go of is freed once, by the backend or by whoever outlives it.

#[path = "../../runtime/src/backend/cuda/deferred_free.rs"]
mod deferred_free;

use deferred_free::DeferredFrees;
use loom::{
    sync::{Arc, Mutex},
    thread,
};

struct Shared {
    deferred: DeferredFrees<u32>,
    freed: Mutex<Vec<u32>>,
}

impl Shared {
    fn free_all(&self) {
        let batch = self.deferred.take();
        self.freed.lock().unwrap().extend(batch);
    }

    /// As `Shared::retire`.
    fn defer_free(&self, what: u32) {
        if self.deferred.add(what) {
            self.free_all();
        }
    }

    /// As `Shared::drain`, at each call of the backend.
    fn drain(&self) {
        if self.deferred.is_waiting() {
            self.free_all();
        }
    }
}

/// Threads let go of one thing each while the backend works and goes; nothing is left, nothing freed twice.
fn let_go_while_the_backend_goes(threads: u32) {
    let shared = Arc::new(Shared { deferred: DeferredFrees::new(), freed: Mutex::new(Vec::new()) });
    let droppers: Vec<_> = (0..threads)
        .map(|what| {
            let shared = shared.clone();
            thread::spawn(move || shared.defer_free(what))
        })
        .collect();
    shared.drain();
    // The backend is dropped.
    shared.deferred.close();
    shared.free_all();
    for dropper in droppers {
        dropper.join().unwrap();
    }
    let mut freed = shared.freed.lock().unwrap().clone();
    freed.sort_unstable();
    assert_eq!(freed, (0..threads).collect::<Vec<_>>());
}

#[test]
fn everything_is_freed_once() {
    loom::model(|| let_go_while_the_backend_goes(1));
}

/// All orders of two threads and the backend take an hour; those with up to two preemptions, a second.
#[test]
fn everything_of_two_threads_is_freed_once() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| let_go_while_the_backend_goes(2));
}

/// While the backend lives, only it frees: one drain after the last drop takes all that is left.
#[test]
fn a_drain_after_the_last_drop_takes_the_rest() {
    loom::model(|| {
        let shared = Arc::new(Shared { deferred: DeferredFrees::new(), freed: Mutex::new(Vec::new()) });
        let dropper = {
            let shared = shared.clone();
            thread::spawn(move || {
                assert!(!shared.deferred.add(1));
                assert!(!shared.deferred.add(2));
            })
        };
        shared.drain();
        dropper.join().unwrap();
        shared.drain();
        let mut freed = shared.freed.lock().unwrap().clone();
        freed.sort_unstable();
        assert_eq!(freed, [1, 2]);
    });
}

//! The queue of retired parameters.

use loom::{sync::Arc, thread};

use crate::retire::RetireQueue;

/// Parameters go on two threads while the runtime begins steps: each id is taken once, none is lost.
#[test]
fn every_id_is_taken_once() {
    loom::model(|| {
        let queue = Arc::new(RetireQueue::default());
        let threads: Vec<_> = [[1, 2], [3, 4]]
            .into_iter()
            .map(|ids| {
                let queue = queue.clone();
                thread::spawn(move || ids.into_iter().for_each(|id| queue.push(id)))
            })
            .collect();
        let mut taken = queue.take();
        taken.extend(queue.take());
        for thread in threads {
            thread.join().unwrap();
        }
        taken.extend(queue.take());
        taken.sort_unstable();
        assert_eq!(taken, [1, 2, 3, 4]);
        assert!(queue.take().is_empty());
    });
}

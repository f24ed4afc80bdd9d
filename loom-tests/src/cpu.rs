//! The CPU stream's side: answers, and memory that goes behind the commands that use it.

#[path = "../../runtime/src/backend/cpu/deferred_free.rs"]
mod deferred_free;
#[path = "../../runtime/src/backend/cpu/reply.rs"]
mod reply;

use std::collections::VecDeque;

use loom::{
    sync::{Arc, mpsc},
    thread,
};

mod errors {
    pub(crate) const NAME: &str = "cpu";
}

/// What the stream's queue carries, as far as memory goes.
enum Command {
    /// Uses the one block there is.
    Use,
    Wake,
}

/// A handle of the block, as `memory::Block` is: the last one to go retires it.
struct Handle {
    deferred_frees: Arc<deferred_free::DeferredFrees>,
    queue: mpsc::Sender<Command>,
}

impl Handle {
    fn launch(&self) {
        self.deferred_frees.sending();
        self.queue.send(Command::Use).unwrap();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.deferred_frees.retire(1) {
            let _ = self.queue.send(Command::Wake);
        }
    }
}

/// Two threads use a block and drop their handles; the worker must free it, once, and after both uses.
#[test]
fn a_block_goes_once_and_behind_its_uses() {
    loom::model(|| {
        let deferred_frees = Arc::new(deferred_free::DeferredFrees::default());
        let (queue, commands) = mpsc::channel();
        let handle = Arc::new(Handle { deferred_frees: deferred_frees.clone(), queue });
        let users: Vec<_> = (0..2)
            .map(|_| {
                let handle = handle.clone();
                thread::spawn(move || handle.launch())
            })
            .collect();
        drop(handle);
        let (mut mine, mut uses, mut freed) = (VecDeque::new(), 0, 0);
        while freed == 0 {
            // Blocks for ever, which loom reports, if a wake-up was lost.
            match commands.recv().unwrap() {
                Command::Use => {
                    assert_eq!(freed, 0, "used after it was freed");
                    uses += 1;
                }
                Command::Wake => {}
            }
            deferred_frees.collect(&mut mine);
            while deferred_free::due(&mut mine, uses).is_some() {
                freed += 1;
            }
        }
        assert_eq!((uses, freed), (2, 1));
        for user in users {
            user.join().unwrap();
        }
    });
}

#[test]
fn an_answer_arrives() {
    loom::model(|| {
        let (reply, pending) = reply::reply();
        let worker = thread::spawn(move || reply.send(Ok(vec![1, 2])));
        let _ = pending.is_ready();
        assert_eq!(pending.wait(), Ok(vec![1, 2]));
        worker.join().unwrap();
    });
}

#[test]
fn nobody_waits_for_a_reply_that_was_dropped() {
    loom::model(|| {
        let (reply, pending) = reply::reply::<()>();
        let worker = thread::spawn(move || drop(reply));
        assert!(pending.wait().is_err());
        worker.join().unwrap();
    });
}

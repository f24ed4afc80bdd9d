//! The CPU stream's side: answers, and memory that goes behind the commands that use it.

#[path = "../../runtime/src/backend/cpu/reply.rs"]
mod reply;
#[path = "../../runtime/src/backend/cpu/retired.rs"]
mod retired;

use std::collections::VecDeque;

use loom::{
    sync::{Arc, mpsc},
    thread,
};

use crate::backend::PendingBytes as _;

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
    retirement: Arc<retired::Retirement>,
    queue: mpsc::Sender<Command>,
}

impl Handle {
    fn launch(&self) {
        self.retirement.sending();
        self.queue.send(Command::Use).unwrap();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.retirement.retire(1) {
            let _ = self.queue.send(Command::Wake);
        }
    }
}

/// Two threads use a block and drop their handles; the worker must free it, once, and after both uses.
#[test]
fn a_block_goes_once_and_behind_its_uses() {
    loom::model(|| {
        let retirement = Arc::new(retired::Retirement::default());
        let (queue, commands) = mpsc::channel();
        let handle = Arc::new(Handle { retirement: retirement.clone(), queue });
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
            retirement.collect(&mut mine);
            while retired::due(&mut mine, uses).is_some() {
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
        assert_eq!(Box::new(pending).wait(), Ok(vec![1, 2]));
        worker.join().unwrap();
    });
}

#[test]
fn nobody_waits_for_a_reply_that_was_dropped() {
    loom::model(|| {
        let (reply, pending) = reply::reply();
        let worker = thread::spawn(move || drop(reply));
        assert!(Box::new(pending).wait().is_err());
        worker.join().unwrap();
    });
}

//! A stream: a queue of commands, and the thread that carries them out in order.

use std::{
    any::Any,
    collections::VecDeque,
    hint, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        mpsc::{Receiver, SyncSender, TryRecvError, sync_channel},
    },
    thread::{self, JoinHandle},
};

use rustc_hash::FxHashMap;

use super::{
    access::{self, Access},
    conditional::ConditionalNode,
    deferred_free::{DeferredFree, DeferredFrees, due},
    fault::Faults,
    free_list::{FreeListReceiver, FreeListSender, free_list},
    graph::{Graph, Node},
    host_memory::{DeviceRead, DeviceWrite},
    mark::Coming,
    memory::{Block, Blocks, POISON},
    order::{Hazards, Random},
    reply::{Pending, Reply, reply},
};
use crate::{
    Error, Result,
    backend::{HostUpload, Launch, PendingBytes},
};

/// Commands that may wait. A full queue blocks the caller, so that memory stays bounded.
const QUEUE: usize = 4096;

/// Looks at an empty queue before the worker sleeps: some 100 µs, in which most callers send their next command and are
/// spared the wake-up. After the first ones, which take some microseconds, the core is left to whoever else wants it,
/// which may be the caller.
const LOOKS: u32 = 300;
const SPINS: u32 = 100;

/// A command to the worker. Small, as it is moved twice, and between cores: what is large is behind a pointer.
pub(super) enum Command {
    /// A block to own.
    Insert(Box<Block>),
    /// More of an arena is usable.
    Commit { addr: u64, bytes: u64 },
    /// Less of an arena is usable.
    Uncommit { addr: u64, bytes: u64 },
    /// One eager operation.
    Launch(Box<Launch>),
    /// Another eager command of a graph.
    Run(Box<Node>),
    /// Host bytes to write.
    Write(Box<HostUpload>),
    /// A recording to run, after writing the block.
    Replay(Arc<Graph>, Option<Box<HostUpload>>),
    /// Bytes to read.
    Read { addr: u64, bytes: usize, to: Reply<Done> },
    /// Host memory to copy, and how many zeros follow.
    WriteFrom { to: u64, from: Box<DeviceRead>, zeros: u64 },
    /// Bytes to copy to host memory.
    ReadInto { addr: u64, bytes: usize, to: Box<DeviceWrite> },
    /// A point to come by.
    Mark(Coming),
    /// An answer when all before is done.
    Sync(Reply<Done>),
    /// Look at the retired memory.
    Wake,
    /// End.
    Stop,
}

const _: () = assert!(size_of::<Command>() <= 32, "a place in the queue is less than a cache line");

/// The answer to a caller who waits.
pub(super) struct Done {
    bytes: Vec<u8>,
    /// The number of the command that asked for it.
    at: u64,
}

/// A caller's wait.
struct Waiting {
    pending: Pending<Done>,
    faults: Arc<Faults>,
}

impl PendingBytes for Waiting {
    fn wait(self: Box<Self>) -> Result<Vec<u8>> {
        let done = self.pending.wait()?;
        self.faults.check(done.at)?;
        Ok(done.bytes)
    }

    fn wait_without_faults(self: Box<Self>) -> Result<Vec<u8>> {
        let done = self.pending.wait()?;
        self.faults.check_failed(done.at)?;
        Ok(done.bytes)
    }

    fn is_ready(&self) -> bool {
        self.pending.is_ready()
    }
}

/// The state shared by both sides of a stream and all handles of its memory.
pub(super) struct Shared {
    queue: SyncSender<Command>,
    deferred_frees: DeferredFrees,
    /// The reason why the stream is lost.
    lost: OnceLock<String>,
    faults: Arc<Faults>,
    /// Memory that the worker drops when its addresses are retired and due.
    kept: Mutex<FxHashMap<u64, Kept>>,
}

/// A value of the host's, at an address that nothing else has.
struct Kept {
    _place: Box<u64>,
    _owner: Box<dyn Any + Send + Sync>,
}

impl Shared {
    /// Has the block at `addr` freed when everything sent so far is done. From any thread; never
    /// blocks on the stream, as the worker itself calls it when it drops a graph.
    pub(super) fn retire(&self, addr: u64) {
        if self.deferred_frees.retire(addr) {
            // A full queue has commands to look after, and an ended worker has freed everything.
            let _ = self.queue.try_send(Command::Wake);
        }
    }

    /// Keeps a value until the address that is returned is retired, and everything sent by then is done.
    pub(super) fn keep(&self, owner: Box<dyn Any + Send + Sync>) -> u64 {
        let place = Box::new(0u64);
        let addr = std::ptr::from_ref(&*place).addr() as u64;
        self.all_kept().insert(addr, Kept { _place: place, _owner: owner });
        addr
    }

    fn all_kept(&self) -> MutexGuard<'_, FxHashMap<u64, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what is kept at an address, to be dropped without the lock.
    fn take_kept(&self, addr: u64) -> Option<Kept> {
        self.all_kept().remove(&addr)
    }

    fn lost(&self) -> Option<Error> {
        let reason = self.lost.get()?.clone();
        Some(Error::ContextLost { device: super::errors::NAME.into(), reason })
    }
}

/// The caller's side.
pub(super) struct CpuStream {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
    free_list: FreeListReceiver,
}

impl CpuStream {
    /// Starts a worker that runs launches; `threads` as in [`CpuOptions`](super::CpuOptions), `seed` as in
    /// test mode.
    pub(super) fn new(threads: Option<usize>, seed: Option<u64>) -> Result<Self> {
        let failed = |reason: String| Error::NoDevice { device: super::errors::NAME.into(), reason };
        let (queue, commands) = sync_channel(QUEUE);
        let (freed, free_list) = free_list();
        let shared = Arc::new(Shared {
            queue,
            deferred_frees: DeferredFrees::default(),
            lost: OnceLock::new(),
            faults: Arc::default(),
            kept: Mutex::default(),
        });
        let worker = Worker {
            shared: shared.clone(),
            commands,
            blocks: Blocks::default(),
            done: 0,
            retired: VecDeque::new(),
            random: Random(seed.unwrap_or(0)),
            poisons: seed.is_some(),
            free_list: freed,
        };
        // 0 is one per core.
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.unwrap_or(0))
            .thread_name(|i| format!("graphable-cpu-{i}"))
            .build()
            .map_err(|e| failed(format!("its threads cannot be started: {e}")))?;
        let worker = thread::Builder::new()
            .name("graphable-cpu-stream".into())
            // On one of the pool's own threads: parallel kernels start without a hand-over.
            .spawn(move || pool.install(|| worker.run()))
            .map_err(|e| failed(format!("its thread cannot be started: {e}")))?;
        Ok(Self { shared, worker: Some(worker), free_list })
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// # Errors
    /// Returns [`Error::ContextLost`].
    pub(super) fn check(&self) -> Result<()> {
        self.shared.lost().map_or(Ok(()), Err)
    }

    /// Queues a command; waits while the queue is full.
    ///
    /// # Errors
    /// Returns [`Error::ContextLost`].
    pub(super) fn send(&self, command: Command) -> Result<()> {
        self.check()?;
        self.shared.deferred_frees.sending();
        self.shared.queue.send(command).map_err(|_| Error::ContextLost {
            device: super::errors::NAME.into(),
            reason: "its thread has ended".into(),
        })
    }

    /// Queues an operation.
    ///
    /// # Errors
    /// See [`send`](Self::send).
    pub(super) fn launch(&mut self, launch: &Launch) -> Result<()> {
        let launch = self.free_list.copy_of(launch);
        self.send(Command::Launch(launch))
    }

    /// Queues a read of `bytes` bytes at `addr`.
    ///
    /// # Errors
    /// See [`send`](Self::send).
    pub(super) fn read(&self, addr: u64, bytes: usize) -> Result<Box<dyn PendingBytes>> {
        let (to, pending) = reply();
        self.send(Command::Read { addr, bytes, to })?;
        Ok(Box::new(Waiting { pending, faults: self.faults() }))
    }

    /// Returns where faults are noted.
    pub(super) fn faults(&self) -> Arc<Faults> {
        Arc::clone(&self.shared.faults)
    }

    /// Waits until everything sent is done.
    ///
    /// # Errors
    /// A fault of a kernel, or [`Error::ContextLost`].
    pub(super) fn synchronize(&self) -> Result<()> {
        let (to, pending) = reply();
        self.send(Command::Sync(to))?;
        Box::new(Waiting { pending, faults: self.faults() }).wait().map(drop)
    }
}

impl Drop for CpuStream {
    fn drop(&mut self) {
        // Not through `send`: a lost stream has to end too.
        let _ = self.shared.queue.send(Command::Stop);
        if let Some(worker) = self.worker.take() {
            // It ends normally: kernels' panics are caught.
            let _ = worker.join();
        }
    }
}

/// The side that works.
struct Worker {
    shared: Arc<Shared>,
    commands: Receiver<Command>,
    blocks: Blocks,
    /// Commands done, but [`Command::Wake`].
    done: u64,
    /// Memory that commands still queued may use, in about the order in which it may go.
    retired: VecDeque<DeferredFree>,
    random: Random,
    poisons: bool,
    free_list: FreeListSender,
}

impl Worker {
    fn run(mut self) {
        while let Some(command) = self.next() {
            match command {
                Command::Stop => break,
                Command::Wake => {}
                command => {
                    self.carry_out(command);
                    self.done += 1;
                }
            }
            self.free_due();
        }
        // Nothing is retired from here on. Whoever uses one of them still has a share of its own.
        let kept = mem::take(&mut *self.shared.all_kept());
        drop(kept);
    }

    fn next(&self) -> Option<Command> {
        for look in 0..LOOKS {
            match self.commands.try_recv() {
                Ok(command) => return Some(command),
                Err(TryRecvError::Empty) if look < SPINS => hint::spin_loop(),
                Err(TryRecvError::Empty) => thread::yield_now(),
                Err(TryRecvError::Disconnected) => return None,
            }
        }
        self.commands.recv().ok()
    }

    /// Executes a command and drops it. A lost stream only replies.
    fn carry_out(&mut self, command: Command) {
        match (command, self.shared.lost()) {
            (Command::Insert(block), _) => self.blocks.insert(*block),
            (Command::Read { to, .. } | Command::Sync(to), Some(error)) => to.send(Err(error)),
            (Command::ReadInto { to, .. }, Some(error)) => to.end(Err(error)),
            (Command::Mark(mark), Some(error)) => mark.fail(error),
            (_, Some(_)) => {}
            (Command::Commit { addr, bytes }, None) => self.blocks.commit(addr, bytes, self.poisons),
            (Command::Uncommit { addr, bytes }, None) => self.blocks.uncommit(addr, bytes),
            (Command::Launch(launch), None) => {
                self.guarded(|w| w.launch(&launch));
                self.free_list.give(launch);
            }
            (Command::Run(node), None) => drop(self.guarded(|w| w.run_node(&node))),
            (Command::Write(block), None) => drop(self.guarded(|w| w.write(&block))),
            (Command::Replay(graph, block), None) => {
                self.guarded(|w| w.replay(&graph, block.as_deref()));
            }
            (Command::Read { addr, bytes, to }, None) => {
                let data = self.guarded(|w| Access::new(&mut w.blocks).bytes(addr, bytes).to_vec());
                self.answer(data, to);
            }
            (Command::WriteFrom { to, from, zeros }, None) => {
                self.guarded(|w| w.write_from(to, &from, zeros));
            }
            (Command::ReadInto { addr, bytes, mut to }, None) => {
                let copied = self.guarded(|w| {
                    to.bytes_mut()[..bytes].copy_from_slice(Access::new(&mut w.blocks).bytes(addr, bytes));
                });
                // A copy that fails loses the stream; `to` reports that if it is dropped.
                match (copied, self.shared.lost()) {
                    (_, Some(lost)) => to.end(Err(lost)),
                    (Some(()), None) => to.end(Ok(self.done)),
                    (None, None) => {}
                }
            }
            (Command::Mark(mark), None) => mark.reach(),
            (Command::Sync(to), None) => self.answer(Some(Vec::new()), to),
            (Command::Wake | Command::Stop, None) => {}
        }
    }

    /// Runs `work`; if it unwinds, the stream is lost.
    fn guarded<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> Option<R> {
        // A kernel that panics leaves an incomplete output, which can no longer be read.
        catch_unwind(AssertUnwindSafe(|| work(self)))
            .map_err(|payload| {
                let reason = access::explain(&*payload);
                // Nothing that the payload's drop does may end this thread.
                mem::forget(payload);
                let _ = self.shared.lost.set(reason);
            })
            .ok()
    }

    fn answer(&self, data: Option<Vec<u8>>, to: Reply<Done>) {
        to.send(match (data, self.shared.lost()) {
            (_, Some(lost)) => Err(lost),
            (Some(bytes), None) => Ok(Done { bytes, at: self.done }),
            // A read that fails loses the stream.
            (None, None) => return,
        });
    }

    fn run_node(&mut self, node: &Node) {
        match node {
            Node::Launch(launch) => self.launch(launch),
            Node::Poison { addr, bytes } => self.poison(*addr, *bytes),
            Node::Conditional(node) => self.run_conditional(node),
        }
    }

    fn launch(&mut self, launch: &Launch) {
        if let Err(fault) = launch.op.operation().run_cpu(&Access::new(&mut self.blocks), launch) {
            self.shared.faults.note(self.done, fault);
        }
    }

    fn run_conditional(&mut self, node: &ConditionalNode) {
        loop {
            let selected = Access::new(&mut self.blocks).count(&node.node.selector);
            let Some(body) = node.bodies.get(selected) else { return };
            self.run_nodes(&body.nodes, body.hazards.as_ref());
            if !node.node.repeats {
                return;
            }
        }
    }

    /// Runs nodes in their order, or in any other that `hazards` allow.
    fn run_nodes(&mut self, nodes: &[Node], hazards: Option<&Hazards>) {
        let Some(hazards) = hazards else { return nodes.iter().for_each(|node| self.run_node(node)) };
        // The order is drawn first: nodes with bodies draw theirs meanwhile.
        let mut order = Vec::with_capacity(nodes.len());
        hazards.shuffled(&mut self.random, |node| order.push(node));
        order.into_iter().for_each(|node| self.run_node(&nodes[node]));
    }

    fn poison(&mut self, addr: u64, bytes: u64) {
        Access::new(&mut self.blocks).bytes_mut(addr, bytes as usize).fill(POISON);
    }

    fn write(&mut self, block: &HostUpload) {
        for &(addr, offset, len) in &block.writes {
            let bytes = &block.bytes[offset..offset + len];
            Access::new(&mut self.blocks).bytes_mut(addr, len).copy_from_slice(bytes);
        }
        for copy in &block.copies {
            let bytes = Access::new(&mut self.blocks).bytes(copy.from, copy.bytes as usize).to_vec();
            Access::new(&mut self.blocks).bytes_mut(copy.to, bytes.len()).copy_from_slice(&bytes);
        }
    }

    fn write_from(&mut self, to: u64, from: &DeviceRead, zeros: u64) {
        let bytes = from.bytes();
        let all = Access::new(&mut self.blocks).bytes_mut(to, bytes.len() + zeros as usize);
        let (copied, rest) = all.split_at_mut(bytes.len());
        copied.copy_from_slice(bytes);
        rest.fill(0);
    }

    fn replay(&mut self, graph: &Graph, block: Option<&HostUpload>) {
        if let Some(block) = block {
            self.write(block);
        }
        self.run_nodes(&graph.nodes, graph.hazards.as_ref());
    }

    fn free_due(&mut self) {
        self.shared.deferred_frees.collect(&mut self.retired);
        while let Some(addr) = due(&mut self.retired, self.done) {
            self.blocks.remove(addr);
            drop(self.shared.take_kept(addr));
        }
    }
}

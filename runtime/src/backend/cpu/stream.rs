//! The stream: a queue of commands, and the worker that carries them out in order.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, TryRecvError, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::{
    access::{Access, Ranges},
    fault::Fault,
    graph::{Graph, Node},
    kernels,
    memory::Mapping,
};
use crate::{
    DType, Error, Result,
    backend::{HostBlock, Launch, View},
    layout::Layout,
};

/// Commands that may wait. A host that runs further ahead than this is held back.
const QUEUE: usize = 4096;
/// How long an idle worker looks for the next command before it sleeps: waking it costs more.
const SPIN: Duration = Duration::from_micros(50);

pub(super) enum Command {
    Launch(Box<Launch>),
    Write(HostBlock),
    Replay(Arc<Graph>, Option<HostBlock>),
    Poison { addr: u64, bytes: u64 },
    Read { addr: u64, bytes: u64, reply: Sender<Result<Vec<u8>>> },
    /// Dropped in its turn.
    Release(#[expect(dead_code, reason = "held to be dropped")] Arc<Mapping>),
    Stop,
}

/// The host's end.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) queue: Sender<Command>,
    /// Commands that wait. The queue itself has no bound: memory is released from any thread, the worker's
    /// included, and a worker that waited for itself would wait for ever.
    depth: Arc<AtomicUsize>,
    pub(super) ranges: Ranges,
    lost: Arc<OnceLock<String>>,
    worker: Option<JoinHandle<()>>,
}

impl Stream {
    pub(super) fn start(threads: Option<usize>, seed: u64) -> Result<Self> {
        let (queue, commands) = channel();
        let depth = Arc::new(AtomicUsize::new(0));
        let ranges = Ranges::default();
        let lost = Arc::new(OnceLock::new());
        let failed = |why: String| Error::NoDevice { device: "cpu".into(), why };
        let mut builder = rayon::ThreadPoolBuilder::new().thread_name(|i| format!("graphable-cpu-{i}"));
        if let Some(n) = threads {
            builder = builder.num_threads(n.max(1));
        }
        let pool = builder.build().map_err(|e| failed(format!("its threads cannot be started: {e}")))?;
        let worker = Worker { commands, ranges: ranges.clone(), lost: Arc::clone(&lost), fault: None, seed, depth: Arc::clone(&depth) };
        let worker = std::thread::Builder::new()
            .name("graphable-cpu-stream".into())
            // Inside the pool, so that a kernel's parallel parts start without a hand-over.
            .spawn(move || pool.install(|| worker.run()))
            .map_err(|e| failed(format!("its stream cannot be started: {e}")))?;
        Ok(Self { queue, depth, ranges, lost, worker: Some(worker) })
    }

    pub(super) fn push(&self, command: Command) -> Result<()> {
        if let Some(why) = self.lost.get() {
            return Err(lost(why));
        }
        if self.depth.fetch_add(1, Ordering::Relaxed) >= QUEUE {
            self.wait_for_room();
        }
        self.queue.send(command).map_err(|_| lost("its worker has ended"))
    }
}

impl Stream {
    #[cold]
    fn wait_for_room(&self) {
        while self.depth.load(Ordering::Relaxed) > QUEUE / 2 && self.lost.get().is_none() {
            std::thread::sleep(SPIN);
        }
    }
}

pub(super) fn lost(why: &str) -> Error {
    Error::ContextLost { device: "cpu".into(), why: why.to_owned() }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.queue.send(Command::Stop);
        if let Some(worker) = self.worker.take() {
            // The worker catches its kernels' panics, so there is none to pass on.
            let _ = worker.join();
        }
    }
}

struct Worker {
    commands: Receiver<Command>,
    ranges: Ranges,
    lost: Arc<OnceLock<String>>,
    fault: Option<Fault>,
    seed: u64,
    depth: Arc<AtomicUsize>,
}

impl Worker {
    fn next(&self) -> Option<Command> {
        let start = Instant::now();
        loop {
            match self.commands.try_recv() {
                Ok(command) => return Some(command),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if start.elapsed() < SPIN => std::hint::spin_loop(),
                Err(TryRecvError::Empty) => return self.commands.recv().ok(),
            }
        }
    }

    fn run(mut self) {
        while let Some(command) = self.next() {
            match command {
                Command::Stop => return,
                Command::Release(_) => continue,
                Command::Read { addr, bytes, reply } => {
                    let result = self.read(addr, bytes);
                    // Nobody waits any more: the answer is not needed.
                    let _ = reply.send(result);
                }
                other if self.lost.get().is_none() => {
                    let done = catch_unwind(AssertUnwindSafe(|| self.carry_out(other)));
                    if let Err(panic) = done {
                        let _ = self.lost.set(message(&*panic));
                    }
                }
                _ => {}
            }
            self.depth.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn access(&self) -> Access<'_> {
        // SAFETY: this is the stream's worker, and each command makes one `Access`.
        unsafe { Access::new(&self.ranges) }
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Launch(launch) => self.launch(&launch),
            Command::Write(block) => self.write(&block),
            Command::Poison { addr, bytes } => self.poison(addr, bytes),
            Command::Replay(graph, block) => {
                if let Some(block) = block {
                    self.write(&block);
                }
                self.seed = self.seed.wrapping_add(1);
                for at in graph.order(self.seed) {
                    match &graph.nodes[at as usize] {
                        Node::Launch(launch) => self.launch(launch),
                        Node::Poison { addr, bytes } => self.poison(*addr, *bytes),
                    }
                }
            }
            Command::Read { .. } | Command::Release(_) | Command::Stop => {}
        }
    }

    fn launch(&mut self, launch: &Launch) {
        if let Err(fault) = kernels::execute(&self.access(), launch) {
            self.fault.get_or_insert(fault);
        }
    }

    fn write(&self, block: &HostBlock) {
        for &(addr, at, len) in &block.writes {
            let view = byte_view(addr, len as u64);
            self.access().slice_mut::<u8>(&view).copy_from_slice(&block.bytes[at..at + len]);
        }
    }

    fn poison(&self, addr: u64, bytes: u64) {
        self.access().slice_mut::<u8>(&byte_view(addr, bytes)).fill(0xff);
    }

    fn read(&mut self, addr: u64, bytes: u64) -> Result<Vec<u8>> {
        if let Some(why) = self.lost.get() {
            return Err(lost(why));
        }
        if let Some(Fault { op, index, bound }) = self.fault.take() {
            return Err(Error::IndexOutOfRange { op, index, bound });
        }
        let copied = catch_unwind(AssertUnwindSafe(|| self.access().slice::<u8>(&byte_view(addr, bytes)).to_vec()));
        copied.map_err(|panic| {
            let why = message(&*panic);
            let error = lost(&why);
            let _ = self.lost.set(why);
            error
        })
    }
}

fn byte_view(addr: u64, bytes: u64) -> View {
    let layout = Layout::contiguous(&[bytes as usize]).unwrap_or_else(|_| unreachable!("rank 1"));
    View { addr, dtype: DType::U8, layout }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("a kernel failed: {}", text.unwrap_or("(no message)"))
}

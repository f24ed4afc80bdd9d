//! The CPU as a device: an asynchronous stream with capture.

use std::{
    fmt,
    sync::{
        Arc,
        mpsc::{Receiver, TryRecvError, channel},
    },
};

use super::{Arena, Backend, Executable, HostBlock, Launch, PendingBytes, SharedMemory, refused_in_capture};
use crate::{Error, Result};

mod access;
mod fault;
mod graph;
mod kernels;
mod memory;
mod stream;

use graph::{CpuExecutable, Graph, Node};
use memory::CpuMemory;
use stream::{Command, Stream, lost};

/// Addresses reserved for an arena, where the system allows that much.
const ARENA: u64 = 64 << 30;

/// How the CPU device behaves.
#[derive(Clone, Debug, Default)]
pub struct CpuOptions {
    /// For tests, with a seed: independent nodes of a graph run in random order, and freed memory is
    /// overwritten, so that what depends on luck fails.
    pub test_mode: Option<u64>,
    /// Threads of the kernels; all cores when not given.
    pub threads: Option<usize>,
}

/// The CPU device.
pub struct CpuBackend {
    stream: Stream,
    options: CpuOptions,
    capture: Option<Vec<Node>>,
    arenas: usize,
}

impl fmt::Debug for CpuBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuBackend").field("options", &self.options).finish_non_exhaustive()
    }
}

impl CpuBackend {
    /// Starts the stream.
    ///
    /// # Errors
    /// [`Error::NoDevice`] when its threads cannot be started.
    pub fn new(options: CpuOptions) -> Result<Self> {
        let stream = Stream::start(options.threads, options.test_mode.unwrap_or(0))?;
        Ok(Self { stream, options, capture: None, arenas: 0 })
    }

    fn refuse_in_capture(&self, call: &'static str) -> Result<()> {
        if self.capture.is_some() { Err(refused_in_capture(call)) } else { Ok(()) }
    }

    fn map(&self, bytes: u64, lazy: bool, what: &'static str) -> Result<SharedMemory> {
        let memory = CpuMemory::map(bytes, lazy, what, &self.stream.ranges, self.stream.queue.clone())?;
        Ok(Arc::new(memory))
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> String {
        "cpu".into()
    }

    fn reserve(&mut self, at_least: u64) -> Result<Arena> {
        let mut bytes = ARENA.max(at_least);
        loop {
            match self.map(bytes, true, "an arena") {
                Ok(memory) => {
                    self.arenas += 1;
                    return Ok(Arena { memory, index: self.arenas - 1 });
                }
                Err(error) if bytes == at_least => return Err(error),
                Err(_) => bytes = (bytes / 2).max(at_least),
            }
        }
    }

    fn commit(&mut self, arena: &Arena, bytes: u64) -> Result<()> {
        // Pages appear when they are touched.
        if bytes <= arena.memory.len() {
            Ok(())
        } else {
            Err(Error::OutOfMemory { device: self.name(), bytes, what: "an arena" })
        }
    }

    fn alloc(&mut self, bytes: u64) -> Result<SharedMemory> {
        self.refuse_in_capture("alloc")?;
        self.map(bytes, false, "parameters, state or static inputs")
    }

    fn launch(&mut self, launch: &Launch) -> Result<()> {
        match &mut self.capture {
            Some(nodes) => {
                nodes.push(Node::Launch(launch.clone()));
                Ok(())
            }
            None => self.stream.push(Command::Launch(Box::new(launch.clone()))),
        }
    }

    fn host_write(&mut self, block: HostBlock) -> Result<()> {
        self.refuse_in_capture("host_write")?;
        self.stream.push(Command::Write(block))
    }

    fn read(&mut self, addr: u64, bytes: u64) -> Result<Box<dyn PendingBytes>> {
        self.refuse_in_capture("read")?;
        let (reply, answer) = channel();
        self.stream.push(Command::Read { addr, bytes, reply })?;
        Ok(Box::new(CpuRead { answer, ready: std::cell::Cell::new(None) }))
    }

    fn begin_capture(&mut self) -> Result<()> {
        self.refuse_in_capture("begin_capture")?;
        self.capture = Some(Vec::new());
        Ok(())
    }

    fn end_capture(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn Executable>>> {
        let Some(nodes) = self.capture.take() else {
            return Err(Error::Device {
                device: self.name(),
                call: "end_capture",
                why: "no capture is under way".into(),
            });
        };
        if nodes.is_empty() {
            return Ok(None);
        }
        let graph = Graph::new(nodes, retain, self.options.test_mode.is_some());
        Ok(Some(Arc::new(CpuExecutable(Arc::new(graph)))))
    }

    fn abort_capture(&mut self) {
        self.capture = None;
    }

    fn replay(&mut self, exec: &Arc<dyn Executable>, block: Option<HostBlock>) -> Result<()> {
        self.refuse_in_capture("replay")?;
        let Some(exec) = exec.as_any().downcast_ref::<CpuExecutable>() else {
            return Err(Error::Device {
                device: self.name(),
                call: "replay",
                why: "the graph was captured on another device".into(),
            });
        };
        self.stream.push(Command::Replay(Arc::clone(&exec.0), block))
    }

    fn poison(&mut self, addr: u64, bytes: u64) -> Result<()> {
        match &mut self.capture {
            Some(nodes) => {
                nodes.push(Node::Poison { addr, bytes });
                Ok(())
            }
            None => self.stream.push(Command::Poison { addr, bytes }),
        }
    }

    fn wants_poison(&self) -> bool {
        self.options.test_mode.is_some()
    }

    fn synchronize(&mut self) -> Result<()> {
        self.read(0, 0)?.wait().map(drop)
    }
}

/// An answer that the worker will send.
struct CpuRead {
    answer: Receiver<Result<Vec<u8>>>,
    ready: std::cell::Cell<Option<Result<Vec<u8>>>>,
}

impl PendingBytes for CpuRead {
    fn wait(self: Box<Self>) -> Result<Vec<u8>> {
        if let Some(result) = self.ready.take() {
            return result;
        }
        self.answer.recv().unwrap_or_else(|_| Err(lost("its stream ended before the read")))
    }

    fn is_ready(&self) -> bool {
        let found = match self.ready.take() {
            Some(result) => Some(result),
            None => match self.answer.try_recv() {
                Ok(result) => Some(result),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => Some(Err(lost("its stream ended before the read"))),
            },
        };
        let is = found.is_some();
        self.ready.set(found);
        is
    }
}

#[cfg(test)]
mod tests;

//! Captures on the stream of a GPU, and their graphs.

use std::sync::Arc;

use super::{
    Capture, CudaBackend, conditional::BodiesOf, fork::Fork, graph_exec::CudaGraphExec,
    kernels::UploadSizeClass,
};
use crate::{
    Result,
    backend::{CapturedGraph, Conditional, GraphExec, Graphs, HostUpload, SharedMemory, Update},
};

impl Graphs for CudaBackend {
    fn begin_capture(&mut self, host: Option<&HostUpload>) -> Result<()> {
        self.invalidated = false;
        let _bound = self.outside_capture("begin_capture")?;
        self.shared.drain()?;
        let mut head = None;
        if let Some(block) = host {
            let large = self.large_params(block);
            head = UploadSizeClass::of(block, large);
            if let Some(class) = head {
                // Compiled and loaded before the capture starts.
                self.function(class.kernel(), 0)?;
            }
        }
        self.shared.stream.begin_capture()?;
        // None of the nodes is ours yet, whatever another thread has added there.
        let nodes = self.shared.stream.captured_nodes().map(|_| 0);
        self.capture = Some(Capture {
            head,
            invalidated: false,
            nodes,
            forks: Vec::new(),
            open: Vec::new(),
            bodies: BodiesOf::default(),
            root: None,
            suspended: false,
            pins: Vec::new(),
            kept: Vec::new(),
        });
        if let (Some(class), Some(block)) = (head, host)
            && let Err(error) = self.upload_by_kernel(class, block)
        {
            self.abort_capture();
            return Err(error);
        }
        Ok(())
    }

    fn fork(&mut self) -> Result<()> {
        let stream = &self.shared.stream;
        let fork = stream.has_waits().then(|| Fork::open(stream)).transpose()?;
        self.open_capture("fork")?.forks.push(fork);
        Ok(())
    }

    fn branch(&mut self, index: usize) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        match self.open_capture("branch")?.forks.last_mut() {
            Some(Some(fork)) => fork.branch(index, &shared.stream),
            Some(None) => Ok(()),
            None => Err(self.failed("branch", "no fork is open".into())),
        }
    }

    fn join(&mut self) -> Result<()> {
        match self.open_capture("join")?.forks.pop() {
            Some(Some(fork)) => fork.join(&self.shared.stream),
            Some(None) => Ok(()),
            None => Err(self.failed("join", "no fork is open".into())),
        }
    }

    fn supports_conditionals(&self) -> Result<()> {
        self.conditionals.check(self.shared.context.name())
    }

    fn begin_conditional(&mut self, node: &Conditional) -> Result<()> {
        self.open_conditional(node)
    }

    fn begin_body(&mut self, index: usize) -> Result<()> {
        let _bound = self.shared.context.bind()?;
        self.open_body(index)
    }

    fn end_conditional(&mut self) -> Result<()> {
        let _bound = self.shared.context.bind()?;
        self.close_conditional()
    }

    fn end_capture(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn GraphExec>>> {
        let _bound = self.shared.context.bind()?;
        let Some(mut recording) = self.ended("end_capture", retain, false)? else { return Ok(None) };
        let (exec, bytes) = self.make_own_exec(&mut recording)?;
        Ok(Some(Arc::new(CudaGraphExec::owning(recording, exec, bytes))))
    }

    fn end_capture_shared(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn CapturedGraph>>> {
        Ok(match self.ended("end_capture_shared", retain, true)? {
            Some(recording) => Some(Arc::new(recording)),
            None => None,
        })
    }

    fn abort_capture(&mut self) {
        if let Some(capture) = self.capture.take() {
            let _bound = self.shared.context.bind();
            self.invalidated = capture.invalidated || self.shared.stream.capture_is_invalidated();
            // Its error is the capture's own failure, which is known already.
            match capture.root {
                None => drop(self.shared.stream.end_capture()),
                // As below, if it was invalidated before it was suspended.
                Some(root) if capture.suspended && capture.invalidated => root.leak(),
                Some(_) if capture.suspended => {}
                Some(root) => {
                    let (invalidated, _) = self.shared.stream.end_capture_of_known();
                    if invalidated {
                        // Nothing says who destroys the graph of such a capture.
                        root.leak();
                    }
                }
            }
        }
    }

    fn capture_was_invalidated(&self) -> bool {
        self.invalidated
            || self.capture.as_ref().is_some_and(|capture| capture.invalidated)
            || self.capture.is_some() && self.shared.stream.capture_is_invalidated()
    }

    fn instantiate(&mut self, recording: &Arc<dyn CapturedGraph>) -> Result<Arc<dyn GraphExec>> {
        let _bound = self.outside_capture("instantiate")?;
        let recording = self.own_graph("instantiate", recording)?;
        let graph = recording.graph().ok_or_else(|| self.failed("instantiate", "it has no graph".into()))?;
        let (exec, bytes) = self.make_exec(graph)?;
        Ok(Arc::new(CudaGraphExec::borrowing(&recording, exec, bytes)))
    }

    fn update(&mut self, exec: &Arc<dyn GraphExec>, recording: &Arc<dyn CapturedGraph>) -> Result<Update> {
        let _bound = self.outside_capture("update")?;
        let recording = self.own_graph("update", recording)?;
        self.own_exec("update", exec)?.update(&recording)
    }

    fn replay(&mut self, exec: &Arc<dyn GraphExec>, block: Option<HostUpload>) -> Result<()> {
        let _bound = self.outside_capture("replay")?;
        self.faults.reset()?;
        self.after_kernel = false;
        self.singles.end();
        let exec = self.own_exec("replay", exec)?;
        let large = self.has_large_params;
        let mut params = std::mem::take(&mut self.params);
        let launched = match block {
            Some(block) if exec.takes(&block, large) => exec.launch(Some(&block), &mut params),
            Some(block) => {
                self.params = params;
                self.upload(&block)?;
                params = std::mem::take(&mut self.params);
                exec.launch(None, &mut params)
            }
            None => exec.launch(None, &mut params),
        };
        self.params = params;
        launched
    }
}

//! Conditional nodes of a capture.
//!
//! One stream captures everything: where a node begins, the capture of the graph around it is ended, and its
//! bodies are captured into the graphs that the node has; then the capture of the graph around it goes on, behind
//! the node. A kernel before the node, which reads the selector, tells it what to run; in the body of a loop, one
//! at its end does so again.
//!
//! A node that chooses among several bodies needs CUDA 12.8. Before that it is a chain of nodes that run one body or
//! nothing, all of which are told before the first one: a body may change what the selector was computed from.

use bytemuck::{Pod, Zeroable};
use rustc_hash::FxHashMap;

use super::{
    CudaBackend,
    driver::{CaptureDependencies, ConditionalHandle, ConditionalKind, GraphRef, Node},
    kernels::{Grid, Kernel, SourceFile, submit},
};
use crate::{Error, Result, backend::Conditional};

/// The kernel that tells a node what to run. Its edges stay full: it is not one of those that wait by themselves.
static SOURCE: SourceFile = SourceFile {
    waits: false,
    ..SourceFile::ours("kernels/conditional.cu", include_str!("kernels/conditional.cu"))
};

/// Mirrors `ConditionalParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct ConditionalParams {
    handle: u64,
    selector: u64,
    is_switch: u32,
    body: u32,
}
const _: () = assert!(size_of::<ConditionalParams>() == 24);

/// The nodes that stand for one conditional node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lowering {
    /// A node that repeats its body.
    Loop,
    /// One that runs the body of a number.
    Switch,
    /// One for each body, which runs it or nothing.
    Chain,
}

impl Lowering {
    /// `has_switches` states whether the driver has nodes with several bodies.
    fn of(node: &Conditional, has_switches: bool) -> Self {
        match () {
            () if node.repeats => Self::Loop,
            () if node.bodies > 1 && has_switches => Self::Switch,
            () => Self::Chain,
        }
    }

    /// Returns the kind of each node, and the number of its bodies.
    fn nodes(self, bodies: usize) -> Vec<(ConditionalKind, usize)> {
        match self {
            Self::Loop => vec![(ConditionalKind::While, 1)],
            Self::Switch => vec![(ConditionalKind::Switch, bodies)],
            Self::Chain => vec![(ConditionalKind::If, 1); bodies],
        }
    }
}

/// A node that is open in a capture.
#[derive(Debug)]
pub(super) struct OpenConditional {
    /// The graph that contains the node.
    around: GraphRef,
    /// The end of the node, for which later work waits.
    end: CaptureDependencies,
    bodies: Vec<GraphRef>,
    /// The number of bodies that have begun.
    begun: usize,
    /// The condition that a loop receives at the end of its body.
    again: Option<ConditionalParams>,
}

/// Checks the nodes that are open where a capture ends.
///
/// # Errors
/// Returns the reason why it cannot end there.
pub(super) fn check_end(open: &[OpenConditional]) -> Result<(), &'static str> {
    if open.is_empty() { Ok(()) } else { Err("a conditional node is still open") }
}

/// The bodies of a captured graph's conditional nodes, and of those in their bodies.
pub(super) type BodiesOf = FxHashMap<Node, Vec<GraphRef>>;

/// The conditional nodes that the driver has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConditionalSupport {
    /// CUDA's version: 12040 is 12.4.
    version: i32,
    /// It has the functions.
    has_functions: bool,
}

impl ConditionalSupport {
    const FIRST: i32 = 12_040;
    const SWITCHES: i32 = 12_080;

    pub(super) fn new(version: i32, has_functions: bool) -> Self {
        Self { version, has_functions }
    }

    fn has_switches(self) -> bool {
        self.version >= Self::SWITCHES
    }

    /// Without nodes that have several bodies, as before CUDA 12.8.
    #[cfg(test)]
    pub(super) fn without_switches(self) -> Self {
        Self { version: self.version.min(Self::SWITCHES - 1), ..self }
    }

    /// # Errors
    /// Returns [`Error::NoConditionalNodes`].
    pub(super) fn check(self, device: &str) -> Result<()> {
        if self.has_functions && self.version >= Self::FIRST {
            return Ok(());
        }
        let text = |version: i32| format!("{}.{}", version / 1000, version % 1000 / 10);
        Err(Error::NoConditionalNodes { device: device.to_owned(), needs: "12.4", found: text(self.version) })
    }
}

impl CudaBackend {
    pub(super) fn open_conditional(&mut self, node: &Conditional) -> Result<()> {
        const CALL: &str = "begin_conditional";
        self.conditionals.check(self.shared.context.name())?;
        self.open_capture(CALL)?;
        let _bound = self.shared.context.bind()?;
        let lowering = Lowering::of(node, self.conditionals.has_switches());
        let around = self.shared.stream.captured_graph()?;
        let kinds = lowering.nodes(node.bodies);
        let mut handles = Vec::with_capacity(kinds.len());
        let mut told = None;
        for body in 0..kinds.len() {
            let handle = self.shared.stream.new_conditional(around)?;
            let params = ConditionalParams {
                handle: handle.value(),
                selector: node.selector.addr,
                is_switch: u32::from(lowering == Lowering::Switch),
                body: body as u32,
            };
            self.tell(&params)?;
            handles.push(handle);
            told = Some(params);
        }
        let before = self.shared.stream.waits()?;
        self.suspend_capture()?;
        let (bodies, end) = self.add_nodes(around, &before, &kinds, &handles)?;
        let again = told.filter(|_| lowering == Lowering::Loop);
        self.open_capture(CALL)?.open.push(OpenConditional { around, end, bodies, begun: 0, again });
        Ok(())
    }

    /// Adds nodes, one after the other. Returns their bodies, and the end of the last one.
    fn add_nodes(
        &mut self,
        around: GraphRef,
        before: &CaptureDependencies,
        kinds: &[(ConditionalKind, usize)],
        handles: &[ConditionalHandle],
    ) -> Result<(Vec<GraphRef>, CaptureDependencies)> {
        let (mut all, mut end) = (Vec::new(), before.clone());
        for (&(kind, bodies), handle) in kinds.iter().zip(handles) {
            let (node, graphs) = self.shared.stream.add_conditional(around, &end, *handle, kind, bodies)?;
            end = CaptureDependencies::on(node);
            all.extend(graphs.iter().copied());
            self.open_capture("begin_conditional")?.bodies.insert(node, graphs);
        }
        Ok((all, end))
    }

    pub(super) fn open_body(&mut self, index: usize) -> Result<()> {
        const CALL: &str = "begin_body";
        let failed = |backend: &Self, reason: &str| Err(backend.failed(CALL, reason.into()));
        let (next, begun) = match self.open_capture(CALL)?.open.last() {
            Some(open) => (open.bodies.get(index).copied(), open.begun),
            None => return failed(self, "no conditional node is open"),
        };
        let Some(body) = next.filter(|_| index == begun) else {
            return failed(self, "it is not the next body of its node");
        };
        if begun > 0 {
            self.end_body_capture()?;
        }
        self.resume_capture(body, &CaptureDependencies::none())?;
        if let Some(open) = self.open_capture(CALL)?.open.last_mut() {
            open.begun += 1;
        }
        Ok(())
    }

    pub(super) fn close_conditional(&mut self) -> Result<()> {
        const CALL: &str = "end_conditional";
        let Some(open) = self.open_capture(CALL)?.open.pop() else {
            return Err(self.failed(CALL, "no conditional node is open".into()));
        };
        if open.begun != open.bodies.len() {
            return Err(self.failed(CALL, "not all of its bodies have begun".into()));
        }
        if let Some(params) = &open.again {
            self.tell(params)?;
        }
        self.end_body_capture()?;
        self.resume_capture(open.around, &open.end)
    }

    /// Adds the kernel that tells a node what to run.
    fn tell(&mut self, params: &ConditionalParams) -> Result<()> {
        submit(self, Kernel::plain(&SOURCE, "set_conditional"), Grid::line(1, 1), params)
    }

    /// Ends the capture of a body. One without any work gets a node that does nothing.
    fn end_body_capture(&mut self) -> Result<()> {
        let body = self.shared.stream.captured_graph()?;
        self.suspend_capture()?;
        self.shared.stream.fill_if_empty(body)
    }

    /// Ends the capture of the current graph for now. The capture owns the outermost one from here on.
    fn suspend_capture(&mut self) -> Result<()> {
        self.check_foreign_launches()?;
        let owns_root = self.open_capture("capture")?.root.is_some();
        let (invalidated, ended) = match owns_root {
            true => self.shared.stream.end_capture_of_known(),
            false => {
                let (invalidated, graph) = self.shared.stream.end_capture();
                let kept = graph.and_then(|graph| {
                    self.open_capture("capture")?.root = Some(graph);
                    Ok(())
                });
                (invalidated, kept)
            }
        };
        let capture = self.open_capture("capture")?;
        capture.suspended = true;
        capture.invalidated |= invalidated;
        self.invalidated |= invalidated;
        ended
    }

    /// Goes on with the capture, in `graph`, behind these nodes of it.
    fn resume_capture(&mut self, graph: GraphRef, waits: &CaptureDependencies) -> Result<()> {
        self.shared.stream.begin_capture_to(graph, waits)?;
        let nodes = self.shared.stream.captured_nodes();
        let capture = self.open_capture("capture")?;
        capture.suspended = false;
        // What another thread may have added in between cannot be told apart.
        capture.nodes = nodes;
        Ok(())
    }
}

#[cfg(test)]
mod tests;

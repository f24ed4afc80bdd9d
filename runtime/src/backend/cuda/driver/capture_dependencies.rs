//! Capture dependencies: the nodes for which the next node waits. Branches are made by changing them.

use super::{GraphRef, Stream, types::Handle};
use crate::{Error, Result};

/// `CU_STREAM_CAPTURE_STATUS_ACTIVE`.
const ACTIVE: i32 = 1;

/// Nodes of the current capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CaptureDependencies(Vec<Handle>);

// SAFETY: handles of a capture, used by its one owner; the driver ties nodes to no thread.
unsafe impl Send for CaptureDependencies {}

impl CaptureDependencies {
    pub(super) fn of(nodes: Vec<Handle>) -> Self {
        Self(nodes)
    }

    pub(super) fn nodes(&self) -> &[Handle] {
        &self.0
    }

    /// Returns the dependencies on the ends of all branches that began at `start`. A branch without nodes
    /// ends where it began, for which the others already wait.
    pub(crate) fn joined(start: &Self, ends: &[Self]) -> Self {
        let mut all: Vec<Handle> = Vec::new();
        for &node in ends.iter().filter(|end| *end != start).flat_map(|end| &end.0) {
            if !all.contains(&node) {
                all.push(node);
            }
        }
        if all.is_empty() { start.clone() } else { Self(all) }
    }
}

impl Stream {
    /// Returns whether the driver can report and change the dependencies of a capture.
    pub(crate) fn has_waits(&self) -> bool {
        self.context().table.waits.is_some()
    }

    /// Returns the dependencies of the next node in the current capture.
    ///
    /// # Errors
    /// As [`Context::check`](super::Context::check), and when the capture was invalidated.
    pub(crate) fn waits(&self) -> Result<CaptureDependencies> {
        let _bound = self.context().bind()?;
        let Some(api) = &self.context().table.waits else {
            return Err(self.no_capture("a driver without it"));
        };
        let (mut status, mut id, mut graph) = (0, 0, std::ptr::null_mut());
        let (mut nodes, mut count): (*const Handle, usize) = (std::ptr::null(), 0);
        // SAFETY: the handle lives; two integers, two pointers and a length are written.
        let code = unsafe { (api.get)(self.raw(), &mut status, &mut id, &mut graph, &mut nodes, &mut count) };
        self.context().check("cuStreamGetCaptureInfo", code)?;
        if status != ACTIVE {
            return Err(self.no_capture("no capture is under way, or it was invalidated"));
        }
        if count == 0 || nodes.is_null() {
            return Ok(CaptureDependencies(Vec::new()));
        }
        // SAFETY: the driver's list of `count` handles, valid until the next call for this stream.
        let nodes = unsafe { std::slice::from_raw_parts(nodes, count) };
        Ok(CaptureDependencies(nodes.to_vec()))
    }

    /// Returns the graph into which the current capture goes.
    ///
    /// # Errors
    /// See [`waits`](Self::waits).
    pub(crate) fn captured_graph(&self) -> Result<GraphRef> {
        let Some(api) = &self.context().table.waits else {
            return Err(self.no_capture("a driver without it"));
        };
        let (mut status, mut id, mut graph) = (0, 0, std::ptr::null_mut());
        let (nodes, count) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the handle lives; two integers and a handle are written, and outputs for which null is
        // passed are omitted.
        let code = unsafe { (api.get)(self.raw(), &mut status, &mut id, &mut graph, nodes, count) };
        self.context().check("cuStreamGetCaptureInfo", code)?;
        if status != ACTIVE || graph.is_null() {
            return Err(self.no_capture("no capture is under way, or it was invalidated"));
        }
        Ok(GraphRef::captured(graph))
    }

    /// Returns the number of nodes in the current capture; `None` if the driver cannot report it, and if
    /// there is no capture or it was invalidated.
    pub(crate) fn captured_nodes(&self) -> Option<usize> {
        let api = self.context().table.waits.as_ref()?;
        let (mut status, mut id, mut graph) = (0, 0, std::ptr::null_mut());
        let (nodes, count) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the handle lives; two integers and a handle are written, and outputs for which null is
        // passed are omitted.
        let code = unsafe { (api.get)(self.raw(), &mut status, &mut id, &mut graph, nodes, count) };
        if code != 0 || status != ACTIVE || graph.is_null() {
            return None;
        }
        let mut count = 0;
        // SAFETY: the graph of the current capture; with a null list only the number is written.
        let code = unsafe { (self.context().table.graph_nodes)(graph, std::ptr::null_mut(), &mut count) };
        (code == 0).then_some(count)
    }

    /// Makes the next node of the current capture wait for these nodes only.
    ///
    /// # Errors
    /// See [`waits`](Self::waits).
    pub(crate) fn set_waits(&self, waits: &CaptureDependencies) -> Result<()> {
        const SET: u32 = 1;
        let _bound = self.context().bind()?;
        let Some(api) = &self.context().table.waits else {
            return Err(self.no_capture("a driver without it"));
        };
        let mut nodes = waits.0.clone();
        let list = if nodes.is_empty() { std::ptr::null_mut() } else { nodes.as_mut_ptr() };
        // SAFETY: the handle lives; the list holds that many nodes of the current capture, and is copied.
        let code = unsafe { (api.set)(self.raw(), list, nodes.len(), SET) };
        self.context().check("cuStreamUpdateCaptureDependencies", code)
    }

    fn no_capture(&self, reason: &str) -> Error {
        Error::Device {
            device: self.context().name().to_owned(),
            call: "cuStreamGetCaptureInfo",
            reason: reason.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(nodes: &[usize]) -> CaptureDependencies {
        CaptureDependencies(nodes.iter().map(|&n| std::ptr::without_provenance_mut(n)).collect())
    }

    #[test]
    fn a_join_waits_for_the_end_of_each_branch_once() {
        let start = waits(&[8, 16]);
        let joined = |ends: &[CaptureDependencies]| CaptureDependencies::joined(&start, ends);
        assert_eq!(joined(&[waits(&[24]), waits(&[32])]), waits(&[24, 32]));
        assert_eq!(joined(&[waits(&[24]), start.clone()]), waits(&[24]), "an empty branch adds nothing");
        assert_eq!(joined(&[start.clone(), start.clone()]), start);
        assert_eq!(joined(&[]), start);
        // A branch that is itself a join ends at several nodes.
        assert_eq!(joined(&[waits(&[24, 32]), waits(&[40, 24])]), waits(&[24, 32, 40]));
        assert_eq!(CaptureDependencies::joined(&waits(&[]), &[waits(&[8]), waits(&[])]), waits(&[8]));
    }
}

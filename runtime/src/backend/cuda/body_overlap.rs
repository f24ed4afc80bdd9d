//! Dependent launch in the bodies of conditional nodes.
//!
//! In a body, too, a kernel is brought up while the one before it ends. The first kernel of a body, and one behind a
//! conditional node, wait for all that is before them: such an edge would begin or end at a conditional node, or outside
//! of the body. NVIDIA's documentation neither promises nor excludes these edges in bodies (CUDA 13.0); driver 580 takes them.
//! One that refuses gets full ones instead, and later captures make none.

use super::{
    CudaBackend,
    captured_graph::CudaCapturedGraph,
    conditional::BodiesOf,
    driver::{Exec, Function, Graph, GraphRef},
};
use crate::{Error, Result};

impl CudaBackend {
    /// Lets each of `ours`, kernels that wait by themselves, be brought up while its predecessor in the same body ends.
    /// Returns the bodies in which one is.
    ///
    /// # Errors
    /// Returns errors of the driver.
    pub(super) fn overlap_bodies(
        &mut self,
        graph: &Graph,
        bodies: &BodiesOf,
        ours: impl Fn(Function) -> bool,
    ) -> Result<Vec<GraphRef>> {
        let mut overlapped = Vec::new();
        for &body in bodies.values().flatten() {
            if !self.bodies_overlap {
                break;
            }
            match graph.overlap_body(body, &ours) {
                Ok(true) => overlapped.push(body),
                Ok(false) => {}
                Err(error) if self.shared.context.is_lost() => return Err(error),
                Err(error) => self.bodies_do_not_overlap(&error),
            }
        }
        Ok(overlapped)
    }

    /// Instantiates a graph for itself alone; returns also how many bytes of device memory that took. If the driver
    /// refuses, the edges in its bodies become full ones before it is tried once more.
    ///
    /// # Errors
    /// Returns errors of the driver: the first one, if the edges were not the reason.
    pub(super) fn make_own_exec(&mut self, recording: &mut CudaCapturedGraph) -> Result<(Exec, u64)> {
        self.made_with_or_without_overlap(recording, Self::make_exec)
    }

    fn made_with_or_without_overlap<M>(
        &mut self,
        recording: &mut CudaCapturedGraph,
        mut make: impl FnMut(&mut Self, &Graph) -> Result<M>,
    ) -> Result<M> {
        let Some(graph) = recording.graph().cloned() else {
            return Err(self.failed("instantiate", "it has no graph".into()));
        };
        let refused = match make(self, &graph) {
            Err(refused @ Error::Device { .. }) if !self.shared.context.is_lost() => refused,
            other => return other,
        };
        if recording.overlapped.is_empty() {
            return Err(refused);
        }
        for body in std::mem::take(&mut recording.overlapped) {
            graph.serialize_body(body)?;
        }
        let Ok(made) = make(self, &graph) else { return Err(refused) };
        self.bodies_do_not_overlap(&refused);
        if recording.topology.is_some() {
            recording.topology = Some(self.topology(&graph, &recording.bodies)?);
        }
        Ok(made)
    }

    fn bodies_do_not_overlap(&mut self, error: &Error) {
        tracing::info!(%error, "the driver takes no edges of dependent launch in the bodies of conditional nodes");
        self.bodies_overlap = false;
    }
}

#[cfg(test)]
mod tests;

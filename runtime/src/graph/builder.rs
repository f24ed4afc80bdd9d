//! What every graph object is built by.

use std::{fmt, marker::PhantomData};

use super::Options;
use crate::{Batching, Limits, Mode, Policy, Result, Runtime, Schedule};

/// The options of a graph; made by the `builder` of the graph type that `#[graphable]` writes.
///
/// The type that `#[graphable]` names `MyModelGraphBuilder` is a `GraphBuilder<MyModelGraph>`.
#[must_use]
pub struct GraphBuilder<G> {
    options: Options,
    _graph: PhantomData<fn() -> G>,
}

impl<G> fmt::Debug for GraphBuilder<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphBuilder").field("options", &self.options).finish()
    }
}

impl<G> Default for GraphBuilder<G> {
    fn default() -> Self {
        Self { options: Options::default(), _graph: PhantomData }
    }
}

impl<G> GraphBuilder<G> {
    /// Rounds a `#[dims]` symbol up to these sizes.
    pub fn bucket(mut self, symbol: &'static str, schedule: Schedule) -> Self {
        self.options.bucket(symbol, schedule);
        self
    }

    /// How much becomes graphs; at first [`Mode::Piecewise`].
    pub fn mode(mut self, mode: Mode) -> Self {
        self.options.mode(mode);
        self
    }

    /// How calls are batches, for modes that tell these apart.
    pub fn batch(mut self, batching: Batching) -> Self {
        self.options.batch(batching);
        self
    }

    /// Compares every `n`-th replay with what the code computes; 0, as at first, never.
    pub fn audit_every(mut self, n: u32) -> Self {
        self.options.audit_every(n);
        self
    }

    /// Makes errors of what would run without a graph otherwise.
    pub fn deny_fallback(mut self, on: bool) -> Self {
        self.options.deny_fallback(on);
        self
    }

    /// How often one segment is recorded for one shape before it runs without a graph.
    pub fn max_recordings(mut self, n: usize) -> Self {
        self.options.max_recordings(n);
        self
    }

    /// Sets limits: `.limits(|l| l.max_moves = 2)`.
    pub fn limits(mut self, set: impl FnOnce(&mut Limits)) -> Self {
        self.options.limits(set);
        self
    }

    /// Who decides what becomes a graph, in place of the limits alone.
    pub fn policy(mut self, policy: impl Policy + 'static) -> Self {
        self.options.policy(policy);
        self
    }

    /// Only these sizes of some `#[dims]` symbols become graphs, after rounding up to buckets:
    /// `.capture_only(["B", "T"], [[1, 128], [8, 128]])`. All else runs without.
    pub fn capture_only<const N: usize>(
        mut self,
        symbols: [&'static str; N],
        sizes: impl IntoIterator<Item = [usize; N]>,
    ) -> Self {
        self.options.capture_only(symbols, sizes);
        self
    }

    /// Whether calls become graphs at first; `set_enabled` changes it later.
    pub fn enabled(mut self, on: bool) -> Self {
        self.options.enabled(on);
        self
    }

    /// The graph, with memory for its inputs. Nothing is captured yet.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for buckets, lists, batches and limits that do not fit the function, and
    /// for a mode that it cannot have; [`Error::FallbackForbidden`](crate::Error::FallbackForbidden) under
    /// [`deny_fallback`](Self::deny_fallback) for a mode that would be another; what the device says.
    pub fn build(self, rt: &mut Runtime) -> Result<G>
    where
        G: BuildGraph,
    {
        G::build(rt, self.options)
    }
}

/// A graph type that `#[graphable]` writes.
pub trait BuildGraph: Sized {
    /// The graph with these options.
    ///
    /// # Errors
    /// As [`GraphBuilder::build`].
    fn build(rt: &mut Runtime, options: Options) -> Result<Self>;
}

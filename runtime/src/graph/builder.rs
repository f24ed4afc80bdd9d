//! The builder of all graph objects.

use std::{borrow::Cow, fmt};

use super::{FunctionSpec, GraphObject, Options, spec::InputSpec};
use crate::{
    Batching, Limits, Mode, Numerics, Passes, Plan, Policy, Result, Runtime, Schedule,
    host::piecewise::BodyId,
};

/// The options of a graph; returned by the `builder` function of the graph type that `#[graphable]`
/// generates.
///
/// The type that `#[graphable]` calls `MyModelGraphBuilder` is a `GraphBuilder<MyModelGraph>`.
#[must_use]
pub struct GraphBuilder<G> {
    options: Options,
    spec: FunctionSpec,
    wrap: Box<dyn Fn(GraphObject) -> G + Send + Sync>,
    body: BodyId,
}

impl<G> fmt::Debug for GraphBuilder<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphBuilder").field("options", &self.options).finish()
    }
}

impl<G> GraphBuilder<G> {
    /// Creates the builder of a function's graphs; `wrap` makes the generated type of a graph object. The
    /// type of `wrap` also identifies the body of the function: it distinguishes the instances of a generic
    /// function, without a bound on their types.
    #[doc(hidden)]
    pub fn new(
        name: &'static str,
        plan: &'static Plan,
        symbols: &'static [&'static str],
        inputs: &'static [InputSpec],
        wrap: impl Fn(GraphObject) -> G + Send + Sync + 'static,
    ) -> Self {
        let spec = FunctionSpec { name, plan, symbols, inputs: Cow::Borrowed(inputs) };
        let body = identity(&wrap);
        Self { options: Options::default(), spec, wrap: Box::new(wrap), body }
    }

    /// Rounds a `#[dims]` symbol up to these sizes.
    pub fn bucket(mut self, symbol: &'static str, schedule: Schedule) -> Self {
        self.options.bucket(symbol, schedule);
        self
    }

    /// Sets how much is captured. Default: [`Mode::Piecewise`].
    pub fn mode(mut self, mode: Mode) -> Self {
        self.options.mode(mode);
        self
    }

    /// Describes the batches of calls, for modes that distinguish them.
    pub fn batch(mut self, batching: Batching) -> Self {
        self.options.batch(batching);
        self
    }

    /// Compares every `n`-th replay with the results of the code. Default: 0, never.
    pub fn audit_every(mut self, n: u32) -> Self {
        self.options.audit_every(n);
        self
    }

    /// Sets whether anything that would otherwise run without a graph is an error.
    pub fn deny_fallback(mut self, on: bool) -> Self {
        self.options.deny_fallback(on);
        self
    }

    /// Lets segments that use [`control`](crate::control) run without a graph if the device has no conditional
    /// nodes, as with a driver before CUDA 12.4. This is counted as [`FallbackReason::NoConditionalNodes`], and
    /// the values are the same. Default: off; such a segment is then
    /// [`Error::NoConditionalNodes`](crate::Error::NoConditionalNodes) when it is to be recorded.
    ///
    /// [`FallbackReason::NoConditionalNodes`]: crate::FallbackReason::NoConditionalNodes
    pub fn eager_conditionals(mut self, on: bool) -> Self {
        self.options.eager_conditionals(on);
        self
    }

    /// Sets how often one segment is recorded for one shape before it runs without a graph.
    pub fn max_recordings(mut self, n: usize) -> Self {
        self.options.max_recordings(n);
        self
    }

    /// Sets limits: `.limits(|l| l.max_moves = 2)`.
    pub fn limits(mut self, set: impl FnOnce(&mut Limits)) -> Self {
        self.options.limits(set);
        self
    }

    /// Sets the policy that decides what becomes a graph, instead of the limits alone.
    pub fn policy(mut self, policy: impl Policy + 'static) -> Self {
        self.options.policy(policy);
        self
    }

    /// Captures only these sizes of some `#[dims]` symbols, after rounding up to buckets:
    /// `.capture_only(["B", "T"], [[1, 128], [8, 128]])`. All other sizes run without graphs.
    pub fn capture_only<const N: usize>(
        mut self,
        symbols: [&'static str; N],
        sizes: impl IntoIterator<Item = [usize; N]>,
    ) -> Self {
        self.options.capture_only(symbols, sizes);
        self
    }

    /// Sets whether calls initially use graphs; `set_enabled` changes it later.
    pub fn enabled(mut self, on: bool) -> Self {
        self.options.enabled(on);
        self
    }

    /// Sets the switches of the numerics for calls of this graph, including their eager regions, instead of
    /// those of the [runtime](Runtime::set_numerics).
    pub fn numerics(mut self, numerics: Numerics) -> Self {
        self.options.numerics(numerics);
        self
    }

    /// Sets the passes over recordings of calls of this graph, instead of those of the [runtime](Runtime::set_passes).
    ///
    /// They are part of the keys of recordings: graphs of one function with other passes share none.
    ///
    /// ```
    /// # use graphable::{Passes, prelude::*};
    /// # #[graphable]
    /// # fn forward(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    /// #     ops::neg(&ops::abs(x)?)
    /// # }
    /// # let mut rt = Runtime::new(Device::cpu())?;
    /// let fused = ForwardGraph::builder().build(&mut rt)?;
    /// let plain = ForwardGraph::builder().passes(Passes::none()).build(&mut rt)?;
    /// # for _ in 0..3 {
    /// #     let step = rt.step()?;
    /// #     let x = step.tensor(&[1], &[1.0f32])?;
    /// #     assert_eq!(step.read(&fused.call(&step, &x)?)?, step.read(&plain.call(&step, &x)?)?);
    /// # }
    /// # let mut kernels: Vec<usize> = rt.tree().recordings.iter().map(|node| node.kernels).collect();
    /// # kernels.sort();
    /// # assert_eq!(kernels, [1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn passes(mut self, passes: Passes) -> Self {
        self.options.passes(passes);
        self
    }

    /// Builds the graph, with memory for its inputs. Nothing is captured yet.
    ///
    /// # Errors
    /// Returns [`Error::Config`](crate::Error::Config) for buckets, lists, batches and limits that do not
    /// match the function, and for an impossible mode;
    /// [`Error::FallbackForbidden`](crate::Error::FallbackForbidden) under
    /// [`deny_fallback`](Self::deny_fallback) for a mode that would resolve to a different one; and errors of
    /// the device.
    pub fn build(self, rt: &mut Runtime) -> Result<G> {
        let mut object = GraphObject::new(rt, self.spec, self.options)?;
        object.body = self.body;
        Ok((self.wrap)(object))
    }
}

/// Returns the identity that the type of `wrap` is.
fn identity<F: 'static>(_: &F) -> BodyId {
    BodyId::of::<F>()
}

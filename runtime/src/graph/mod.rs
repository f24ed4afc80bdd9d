//! Graph objects: their specification, static inputs, calls, and captures ahead of time.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    fmt,
    sync::Arc,
};

use crate::{
    Dispatcher, Error, Result, Runtime,
    base::plan::Plan,
    dispatch::schedule::Schedule,
    graph::inputs::{InputKind, InputSpec},
    host::piecewise::BodyId,
    observe::hooks::GraphId,
    value::{
        owned::{Caller, Owned, OwnerId},
        retire::RetireQueue,
    },
};

mod batching;
mod bind;
mod builder;
mod call;
mod capture_all;
mod choose;
mod fill;
pub(crate) mod inputs;
mod jobs;
mod listed;
mod options;
mod static_inputs;
pub(crate) mod switches;
mod synthetic;

pub use builder::GraphBuilder;
pub use call::{GraphCall, call};
pub use capture_all::{CaptureProgress, capture_all};
pub use fill::StaticInput;
use listed::Listed;
pub use options::Options;
use static_inputs::StaticBuffers;
pub use synthetic::{Synthetic, SyntheticSlice};

/// The macro's description of a function.
#[derive(Debug)]
pub struct FunctionSpec {
    /// Its name.
    pub name: &'static str,
    /// Its partition.
    pub plan: &'static Plan,
    /// `#[dims]` symbols.
    pub symbols: &'static [&'static str],
    /// Tensor and scalar parameters, in order.
    pub inputs: Cow<'static, [InputSpec]>,
}

/// The part of a graph object that does not depend on its function: identity, switches, the memory of its inputs.
///
/// The graph types that `#[graphable]` generates dereference to it, so they have its methods, besides `call`,
/// `capture_all` and `buffers` of their own. Dropping a graph object evicts the recordings made with it.
pub struct GraphObject {
    pub(crate) runtime: u64,
    pub(crate) spec: FunctionSpec,
    id: OwnerId,
    /// The identity of the function's body, if all of it is one segment.
    body: BodyId,
    options: Options,
    /// One schedule per symbol.
    schedules: Vec<Option<Schedule>>,
    listed: Vec<Listed>,
    enabled: Cell<bool>,
    scalars: Vec<usize>,
    block: Arc<Owned>,
    statics: RefCell<Vec<StaticBuffers>>,
    dispatcher: Dispatcher,
    /// The symbol that counts tokens.
    tokens: Option<usize>,
    /// The symbol that counts sequences.
    requests: Option<usize>,
    retire: Arc<RetireQueue<OwnerId>>,
}

impl fmt::Debug for GraphObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphObject")
            .field("name", &self.spec.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Drop for GraphObject {
    fn drop(&mut self) {
        self.retire.push(self.id);
    }
}

impl GraphObject {
    /// Checks the options and allocates the host block.
    ///
    /// # Errors
    /// Returns [`Error::Config`] for buckets, lists or batches of unknown symbols or impossible sizes, for an
    /// impossible mode ([`Capability::resolve`](crate::Capability::resolve)), and for limits that would never
    /// allow a recording; [`Error::FallbackForbidden`] under `deny_fallback` for a mode that resolves to a
    /// different one.
    #[doc(hidden)]
    pub fn new(rt: &mut Runtime, spec: FunctionSpec, mut options: Options) -> Result<Self> {
        let batching = batching::of_function(&spec, &mut options)?;
        for (symbol, schedule) in &options.schedules {
            if !spec.symbols.contains(symbol) {
                let known = if spec.symbols.is_empty() { "none".to_owned() } else { spec.symbols.join(", ") };
                return Err(Error::Config {
                    what: format!("buckets of `{symbol}`"),
                    why: format!("`{}` has no such `#[dims]` symbol; it has {known}", spec.name),
                });
            }
            schedule.check(symbol)?;
        }
        if let Err((what, why)) = options.limits.check() {
            return Err(Error::Config { what: what.into(), why: why.into() });
        }
        let listed = std::mem::take(&mut options.listed);
        let listed = listed.into_iter().map(|l| l.checked(spec.name, spec.symbols)).collect::<Result<_>>()?;
        let schedules: Vec<Option<Schedule>> = spec
            .symbols
            .iter()
            .map(|s| options.schedules.iter().find(|(n, _)| n == s).map(|(_, schedule)| schedule.clone()))
            .collect();
        let index = |symbol: Option<&str>| symbol.and_then(|s| spec.symbols.iter().position(|n| *n == s));
        let (tokens, requests) = (index(batching.tokens), index(batching.requests));
        let sizes = tokens.and_then(|i| schedules[i].clone());
        let dispatcher = batching::dispatcher(&spec, &options, (&batching, sizes))?;
        let scalars: Vec<usize> =
            (0..spec.inputs.len()).filter(|&i| spec.inputs[i].kind == InputKind::HostScalar).collect();
        let id = OwnerId::new();
        let bytes = 16 * (scalars.len() + spec.symbols.len()) as u64;
        let block = rt.allocate_static(bytes, Caller { id, name: spec.name })?;
        Ok(Self {
            runtime: rt.id(),
            id,
            body: BodyId::of::<()>(),
            statics: RefCell::new(spec.inputs.iter().map(|_| StaticBuffers::default()).collect()),
            retire: Arc::clone(&rt.retire),
            spec,
            enabled: Cell::new(options.enabled),
            options,
            schedules,
            listed,
            scalars,
            block,
            dispatcher,
            tokens,
            requests,
        })
    }

    /// Returns whether calls use graphs; scopes and modes may still disable them.
    pub fn is_enabled(&self) -> bool {
        self.enabled.get()
    }

    /// Enables or disables graphs from the next call on.
    pub fn set_enabled(&self, on: bool) {
        self.enabled.set(on);
    }

    /// Returns the dispatcher, which chooses the graph of a batch and knows what the builder's mode resolved to.
    pub fn dispatcher(&self) -> &Dispatcher {
        &self.dispatcher
    }

    /// Returns the id of the graph object in hooks and trees.
    pub fn id(&self) -> GraphId {
        GraphId(self.id)
    }
}

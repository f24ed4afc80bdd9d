//! The graph object: what it consists of, and how a builder makes it.

use std::{
    cell::{Cell, RefCell},
    fmt,
    sync::Arc,
};

use super::{
    FunctionSpec, Options, batches, dispatch::buckets::Schedule, listed::Listed, spec::InputKind,
    static_inputs::StaticBuffers,
};
use crate::{
    Dispatcher, Error, Result, Runtime,
    host::piecewise::BodyId,
    observe::hooks::GraphId,
    value::{
        owned::{Caller, Owned, OwnerId},
        retire::RetireQueue,
    },
};

/// The part of a graph object that does not depend on its function: identity, switches, the memory of its inputs.
///
/// The graph types that `#[graphable]` generates dereference to it, so they have its methods, besides `call`,
/// `capture_all` and `buffers` of their own. Dropping a graph object evicts the recordings made with it.
pub struct GraphObject {
    pub(crate) runtime: u64,
    pub(crate) spec: FunctionSpec,
    pub(super) id: OwnerId,
    /// The identity of the function's body, if all of it is one segment.
    pub(super) body: BodyId,
    pub(super) options: Options,
    /// One schedule per symbol.
    pub(super) schedules: Vec<Option<Schedule>>,
    pub(super) listed: Vec<Listed>,
    pub(super) enabled: Cell<bool>,
    pub(super) scalars: Vec<usize>,
    pub(super) block: Arc<Owned>,
    pub(super) statics: RefCell<Vec<StaticBuffers>>,
    pub(super) dispatcher: Dispatcher,
    /// The symbol that counts tokens.
    pub(super) tokens: Option<usize>,
    /// The symbol that counts sequences.
    pub(super) requests: Option<usize>,
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
        let batching = batches::of_function(&spec, &mut options)?;
        for (symbol, schedule) in &options.schedules {
            if !spec.symbols.contains(symbol) {
                let known = if spec.symbols.is_empty() { "none".to_owned() } else { spec.symbols.join(", ") };
                return Err(Error::Config {
                    what: format!("buckets of `{symbol}`"),
                    reason: format!("`{}` has no such `#[dims]` symbol; it has {known}", spec.name),
                });
            }
            schedule.check(symbol)?;
        }
        if let Err((what, reason)) = options.limits.check() {
            return Err(Error::Config { what: what.into(), reason: reason.into() });
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
        let dispatcher = batches::dispatcher(&spec, &options, &batching, sizes)?;
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

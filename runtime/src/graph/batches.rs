//! The batches of a graph object's calls.

use super::{FunctionSpec, GraphObject, Options};
use crate::{BatchKey, Batching, Capability, Dispatcher, Error, Mode, Result, Schedule};

/// Returns the builder's description of batches, with the token symbol inferred if it is not named. Sizes of
/// batches become buckets of that symbol.
pub(super) fn of_function(spec: &FunctionSpec, options: &mut Options) -> Result<Batching> {
    let mut batching = options.batching.take().unwrap_or_default();
    batching.check(spec.name, spec.symbols)?;
    if let Some(sizes) = batching.sizes.take() {
        let wrong =
            |reason: String| Err(Error::Config { what: format!("`batch` of `{}`", spec.name), reason });
        let Some(symbol) = batching.tokens else {
            return wrong("sizes are of a `#[dims]` symbol; name it in `Batching::of`".into());
        };
        if options.schedules.iter().any(|(s, _)| *s == symbol) {
            return wrong(format!("{symbol} has buckets, too; leave one of the two out"));
        }
        if options.mode != Mode::None {
            options.bucket(symbol, sizes.schedule(options.mode, batching.query_len)?);
        }
    }
    if batching.tokens.is_none()
        && let [(symbol, _)] = options.schedules[..]
    {
        batching.tokens = Some(symbol);
    }
    let has = |symbol: &str| options.schedules.iter().any(|(s, _)| *s == symbol);
    if let (Some(tokens), Some(requests)) = (batching.tokens, batching.requests)
        && tokens != requests
        && has(tokens)
        && !has(requests)
    {
        return Err(Error::Config {
            what: format!("`batch` of `{}`", spec.name),
            reason: format!(
                "{tokens} is padded and {requests} is not, so a padded decode would have tokens of no sequence; give \
                 {requests} buckets, too, with `.bucket(\"{requests}\", ..)`"
            ),
        });
    }
    Ok(batching)
}

/// Returns the dispatcher of a graph.
pub(super) fn dispatcher(
    spec: &FunctionSpec,
    options: &Options,
    batching: &Batching,
    sizes: Option<Schedule>,
) -> Result<Dispatcher> {
    let function = spec.name;
    let dispatcher = Dispatcher::with(function, options.mode, Capability::of(spec.plan), batching, sizes);
    let dispatcher = dispatcher.map_err(|error| match error {
        Error::Config { what, reason } => Error::Config { what: format!("`{function}`: {what}"), reason },
        other => other,
    })?;
    let resolution = dispatcher.resolution();
    // Calls in `Full` report the error themselves; there may be only a few of them.
    if options.deny_fallback
        && resolution.asked.is_dual()
        && let Some(reason) = resolution.reason.clone()
    {
        return Err(Error::FallbackForbidden { function, reason });
    }
    Ok(dispatcher)
}

impl GraphObject {
    /// Returns the size to which the key of a batch pads a symbol, if it does.
    pub(super) fn padded_by(&self, key: &BatchKey, symbol: usize) -> Option<usize> {
        if self.tokens == Some(symbol) {
            return Some(key.num_tokens);
        }
        key.num_reqs.filter(|_| key.uniform && self.requests == Some(symbol))
    }

    /// Returns whether recordings are made for several numbers of adapters.
    pub(super) fn tells_adapters_apart(&self) -> bool {
        !self.dispatcher.adapters().is_empty()
    }
}

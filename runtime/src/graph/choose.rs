//! The choice of a call's mode, from the builder, switches, the policy, the batch and the caller.

use super::{GraphObject, inputs::Size};
use crate::{
    BatchDescriptor, BatchKey, CallInfo, Error, Mode, ModeSet, Resolution, Result, Runtime,
    base::reason::{FallbackReason, place},
    observe::occurrence::Occurrence,
    record::Symbol,
    runtime::scopes::Said,
};

/// The choice for a call, before its sizes are padded.
pub(super) struct Chosen {
    pub(super) mode: Mode,
    /// The sizes to which the batch is padded, if the choice depended on it.
    pub(super) key: Option<BatchKey>,
    /// The caller's declaration, if any.
    said: Option<Said>,
    /// The last reason against a higher mode.
    reason: Option<FallbackReason>,
}

impl Chosen {
    /// Removes the graph from the call, for this reason.
    pub(super) fn fall_back(
        &mut self,
        function: &GraphObject,
        rt: &Runtime,
        reason: FallbackReason,
    ) -> Result<()> {
        self.reason = Some(reason.clone());
        self.mode = Mode::None;
        function.fell_back(rt, reason)
    }

    /// Rejects a call that would run without a graph, if the caller does not allow it.
    pub(super) fn check(&self, function: &GraphObject) -> Result<()> {
        match &self.said {
            Some(said) if self.mode == Mode::None && !said.allowed.contains(Mode::None) => {
                Err(Error::NoAllowedMode {
                    function: function.spec.name,
                    batch: said.batch,
                    allowed: said.allowed,
                    reason: self.reason.clone(),
                })
            }
            _ => Ok(()),
        }
    }
}

impl GraphObject {
    /// Returns whether the builder specifies sizes of that symbol.
    pub(super) fn asks_for(&self, symbol: usize) -> bool {
        self.schedules[symbol].is_some() || self.listed.iter().any(|l| l.names(self.spec.symbols[symbol]))
    }

    /// Returns the mode of a call with these sizes, and the reason if the builder excludes them.
    pub(super) fn mode_of_call(&self, rt: &Runtime, sizes: &[Size]) -> (Mode, Option<FallbackReason>) {
        let chosen = self.options.mode;
        if chosen == Mode::None {
            return (chosen, None);
        }
        if !self.enabled.get() || !rt.switches.borrow().on() {
            return (Mode::None, Some(FallbackReason::SwitchedOff));
        }
        let free = |i: &usize| !self.asks_for(*i);
        if self.options.limits.static_only
            && let Some(i) = (0..sizes.len()).find(free)
        {
            return (Mode::None, Some(FallbackReason::DynamicSize { symbol: self.spec.symbols[i] }));
        }
        let Some(policy) = &self.options.policy else { return (chosen, None) };
        let sizes: Vec<(&'static str, usize)> =
            self.spec.symbols.iter().zip(sizes).map(|(s, (n, _))| (*s, *n)).collect();
        match policy.call(&CallInfo { function: self.spec.name, mode: chosen, sizes: &sizes }) {
            Mode::None => (Mode::None, Some(FallbackReason::Policy { reason: "no graph for this call" })),
            mode => (mode, None),
        }
    }

    /// Counts a fallback, or returns it as an error.
    pub(super) fn fell_back(&self, rt: &Runtime, reason: FallbackReason) -> Result<()> {
        let function = self.spec.name;
        if self.options.deny_fallback && !reason.is_wanted() {
            return Err(Error::FallbackForbidden { function, reason });
        }
        rt.core.borrow_mut().log.emit(Occurrence::FellBack { function, reason: &reason });
        Ok(())
    }

    /// Chooses the mode of a call with these sizes; reasons against a higher mode are counted.
    pub(super) fn choose(&self, rt: &Runtime, sizes: &[Size]) -> Result<Chosen> {
        let said = rt.batches.borrow().now();
        let (asked, reason) = self.mode_of_call(rt, sizes);
        if let Some(reason) = &reason {
            self.fell_back(rt, reason.clone())?;
        }
        let mut chosen = Chosen { mode: asked, key: None, said, reason };
        if asked == Mode::None {
            return Ok(chosen);
        }
        let r = self.dispatcher.resolve(asked)?;
        if self.dispatcher.looks_at_batches(&r) {
            self.dispatch(rt, &r, sizes, &mut chosen)?;
            self.keep_host_values(rt, &mut chosen)?;
            return Ok(chosen);
        }
        chosen.mode = r.mode;
        if let Some(reason) = &r.reason {
            self.fell_back(rt, reason.clone())?;
            chosen.reason = Some(reason.clone());
        }
        if said.is_some_and(|said| !said.allowed.contains(r.mode)) {
            chosen.fall_back(self, rt, FallbackReason::NotAllowed { mode: r.mode })?;
        }
        self.keep_host_values(rt, &mut chosen)?;
        Ok(chosen)
    }

    /// Returns the symbols of a call with these sizes, padded to buckets unless that makes it fall back.
    pub(super) fn symbols(&self, rt: &Runtime, sizes: &[Size], chosen: &mut Chosen) -> Result<Vec<Symbol>> {
        let mut symbols = Vec::with_capacity(sizes.len());
        for (index, &(real, input)) in sizes.iter().enumerate() {
            let name = self.spec.symbols[index];
            let mut padded = real;
            if let (Some(schedule), true) = (&self.schedules[index], chosen.mode != Mode::None) {
                if real == 0 {
                    return Err(self.empty(index, input));
                }
                let of_batch = chosen.key.and_then(|key| self.padded_by(&key, index));
                match of_batch.or_else(|| schedule.round_up(real)) {
                    Some(size) => padded = size,
                    None => {
                        let largest = schedule.largest();
                        let reason = FallbackReason::OverLargestBucket { symbol: name, size: real, largest };
                        chosen.fall_back(self, rt, reason)?;
                    }
                }
            }
            let bucketed = self.schedules[index].is_some();
            symbols.push(Symbol { name, real, padded, bucketed, asked: self.asks_for(index) });
        }
        if chosen.mode != Mode::None
            && let Some(reason) = self.listed.iter().find_map(|l| l.refuses(&symbols))
        {
            chosen.fall_back(self, rt, reason)?;
        }
        if chosen.mode == Mode::None {
            // A fallback found at a later symbol reverts the padding of the earlier ones.
            for s in &mut symbols {
                s.padded = s.real;
            }
        }
        Ok(symbols)
    }

    /// A call with a region that was observed to pass a value to host code runs piecewise: a graph of the
    /// whole call would return the value of the call in which it was captured.
    fn keep_host_values(&self, rt: &Runtime, chosen: &mut Chosen) -> Result<()> {
        if chosen.mode != Mode::Full {
            return Ok(());
        }
        let site = rt.core.borrow().call.host_value(self.id);
        let Some(site) = site else { return Ok(()) };
        let reason = FallbackReason::HostValue { boundary: place(site) };
        chosen.mode = Mode::Piecewise;
        chosen.reason = Some(reason.clone());
        self.fell_back(rt, reason)?;
        match &chosen.said {
            Some(said) if !said.allowed.contains(Mode::Piecewise) => {
                chosen.fall_back(self, rt, FallbackReason::NotAllowed { mode: Mode::Piecewise })
            }
            _ => Ok(()),
        }
    }

    /// Like [`choose`](Self::choose), if the batch makes a difference.
    fn dispatch(&self, rt: &Runtime, r: &Resolution, sizes: &[Size], chosen: &mut Chosen) -> Result<()> {
        let size = |symbol: Option<usize>| symbol.map(|i| (i, sizes[i].0, sizes[i].1));
        let tokens = size(self.tokens);
        if let Some((index, 0, input)) = tokens {
            return Err(self.empty(index, input));
        }
        let batch = match chosen.said {
            Some(said) => {
                self.check_batch(&said.batch, tokens, size(self.requests))?;
                Some(said.batch)
            }
            None => self.derived(tokens.map(|(_, n, _)| n), size(self.requests).map(|(_, n, _)| n)),
        };
        let known = batch.unwrap_or(BatchDescriptor::mixed(tokens.map_or(1, |(_, n, _)| n)));
        let dispatched =
            self.dispatcher.dispatch_in(r, &known, chosen.said.map_or(ModeSet::ALL, |said| said.allowed))?;
        (chosen.mode, chosen.key) = (dispatched.mode, dispatched.key);
        let mut reasons = dispatched.reasons;
        let unknown = batch.is_none() && (r.asked.is_dual() || r.mode.is_dual());
        if unknown {
            // It follows that the batch counts as mixed.
            reasons.retain(|w| {
                !matches!(w, FallbackReason::MixedBatch | FallbackReason::BatchNotUniform { .. })
            });
            reasons.insert(0, FallbackReason::UnknownBatch);
        }
        chosen.reason = reasons.last().cloned();
        // An ahead-of-time capture makes what calls will need, so nothing was requested that it does not get.
        if !chosen.said.is_some_and(|said| said.ahead) {
            reasons.into_iter().try_for_each(|reason| self.fell_back(rt, reason))?;
        }
        Ok(())
    }

    /// Returns the error for a symbol of size 0.
    pub(super) fn empty(&self, index: usize, input: &'static str) -> Error {
        let symbol = self.spec.symbols[index];
        Error::Input {
            function: self.spec.name,
            input,
            reason: format!("{symbol} is 0; there is nothing to do"),
        }
    }

    /// Compares the batch that the caller describes with the inputs.
    fn check_batch(
        &self,
        batch: &BatchDescriptor,
        tokens: Option<(usize, usize, &'static str)>,
        requests: Option<(usize, usize, &'static str)>,
    ) -> Result<()> {
        let wrong = |index: usize, input, n: usize, expected: usize, what: &str| {
            let symbol = self.spec.symbols[index];
            Err(Error::Input {
                function: self.spec.name,
                input,
                reason: format!(
                    "{symbol} is {n}, and the batch that `Step::batch` describes has {expected} {what}; describe \
                     this one, or end that scope before the call"
                ),
            })
        };
        if let Some((index, n, input)) = tokens
            && n != batch.num_tokens
        {
            return wrong(index, input, n, batch.num_tokens, "tokens");
        }
        let expected = batch.num_tokens / self.dispatcher.query_len();
        if let Some((index, n, input)) = requests
            && batch.uniform_decode
            && n != expected
        {
            return wrong(index, input, n, expected, "sequences");
        }
        Ok(())
    }

    /// Derives the batch from the sizes alone. With queries of several tokens, sizes can show that a batch is
    /// mixed, but never that it is uniform: sequences of 1 and 3 tokens make as many as two of 2.
    fn derived(&self, tokens: Option<usize>, requests: Option<usize>) -> Option<BatchDescriptor> {
        let (tokens, requests) = (tokens?, requests?);
        let query_len = self.dispatcher.query_len();
        match requests.checked_mul(query_len) == Some(tokens) {
            false => Some(BatchDescriptor::mixed(tokens)),
            // Each sequence has at least one token.
            true => (query_len == 1).then(|| BatchDescriptor::decode(tokens)),
        }
    }
}

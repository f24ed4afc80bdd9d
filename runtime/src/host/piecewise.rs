//! Piecewise execution: host code that runs on every call, and the segments that it calls.

use std::{any::TypeId, sync::Arc};

use tracing::span::EnteredSpan;

use crate::{
    Error, Result, Runtime,
    backend::Mark,
    base::{mode::Support, plan::Site},
    host::eager::Region,
    observe::timeline,
    record::{NewRun, Phase, RunKind},
    runtime::core::Decision,
    tensor::live_out::{Decoder, LiveOut},
    tree::{Identity, RecordingIndex},
    value::{entry::Encoder, key::KeyWriter, live_in::LiveIn},
};

/// The executor of host code: a function with boundaries runs its segments and regions through it. Generated
/// code passes it on.
#[derive(Clone, Copy)]
pub struct Piecewise<'s> {
    pub(crate) rt: &'s Runtime,
}

impl std::fmt::Debug for Piecewise<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Piecewise")
    }
}

impl<'s> Piecewise<'s> {
    /// Replays, records or runs a segment.
    ///
    /// `body` gets its live-ins only through `key`: it captures nothing, so its type is its identity, and a
    /// value that is missing from the key does not compile.
    ///
    /// # Errors
    /// Returns the body's errors, and those of capture and replay, converted.
    #[inline]
    pub fn segment<K, O, E, F>(self, site: &'static Site, key: K, body: F) -> Result<O, E>
    where
        K: LiveIn,
        O: LiveOut<'s>,
        E: From<Error>,
        F: Fn(&K) -> Result<O, E> + Copy + 'static,
    {
        self.run(site, BodyId::of::<F>(), &key, &mut |out| {
            *out = Some(body(&key)?);
            Ok(())
        })
    }

    /// Runs the whole body of a function, like [`segment`](Self::segment). Its identity is given, since the
    /// body's own type may depend on the types of the caller's arguments.
    ///
    /// # Errors
    /// See [`segment`](Self::segment).
    #[inline]
    pub fn whole<K, O, E, F>(self, identity: BodyId, site: &'static Site, key: K, body: F) -> Result<O, E>
    where
        K: LiveIn,
        O: LiveOut<'s>,
        E: From<Error>,
        F: Fn(&K) -> Result<O, E> + Copy,
    {
        self.run(site, identity.with::<F>(), &key, &mut |out| {
            *out = Some(body(&key)?);
            Ok(())
        })
    }

    /// Runs a segment whose body writes its outputs to a place, like [`segment`](Self::segment).
    ///
    /// If a body returned its outputs, their type would be unknown until its last line, and the type of every
    /// preceding `?` would be pending: rustc examines all pending ones at every statement, which takes
    /// quadratic time.
    ///
    /// # Errors
    /// See [`segment`](Self::segment).
    #[inline]
    pub fn segment_into<K, O, E, F>(self, site: &'static Site, key: K, body: F) -> Result<O, E>
    where
        K: LiveIn,
        O: LiveOut<'s>,
        E: From<Error>,
        F: Fn(&K, &mut Option<O>) -> Result<(), E> + Copy + 'static,
    {
        self.run(site, BodyId::of::<F>(), &key, &mut |out| body(&key, out))
    }

    /// Runs a segment; compiled once for each type of key, outputs and errors.
    #[inline]
    fn run<K: LiveIn, O: LiveOut<'s>, E: From<Error>>(
        self,
        site: &'static Site,
        body: BodyId,
        key: &K,
        run: &mut dyn FnMut(&mut Option<O>) -> Result<(), E>,
    ) -> Result<O, E> {
        // A comparison was made in host code, after which a replay would write what no launch does.
        self.rt.refused_sizes.check()?;
        if !self.rt.graphs.get() {
            let _phase = Direct::enter(self.rt, site)?;
            let mut out = None;
            let ran = run(&mut out);
            self.rt.refused_sizes.take()?;
            ran?;
            return Ok(given(out));
        }
        self.rt.run_segment(site, Identity::Segment(body.0), |k| key.write_key(k), run)
    }

    /// Opens an eager region.
    ///
    /// # Errors
    /// Returns an error if called inside a segment.
    pub fn eager(self, site: &'static Site, support: Support) -> Result<Region<'s>> {
        self.rt.refused_sizes.take()?;
        {
            let core = self.rt.core.borrow();
            if let Phase::Segment(segment) = core.call.phase() {
                return Err(Error::CapabilityInSegment {
                    call: "an eager region",
                    segment: segment.to_string(),
                });
            }
            debug_assert!(
                !core.recorder.is_recording() || support != Support::Never,
                "full mode checks the plan first"
            );
        }
        Ok(Region::open(self.rt, site))
    }
}

/// The identity of a body: its type, or a type that stands for it.
#[derive(Clone, Copy, Debug)]
pub struct BodyId(TypeId);

impl BodyId {
    /// Returns the identity of a body of type `F`, which must not capture anything.
    #[inline]
    pub(crate) fn of<F: 'static>() -> Self {
        Self(TypeId::of::<F>()).with::<F>()
    }

    /// Asserts that a body of type `F` captures nothing.
    #[inline]
    fn with<F>(self) -> Self {
        const {
            assert!(size_of::<F>() == 0, "a value is used in a segment without being one of its live-ins");
        }
        self
    }
}

/// Returns the output of a body.
fn given<O>(out: Option<O>) -> O {
    match out {
        Some(out) => out,
        None => unreachable!("a body that succeeded has given its outputs"),
    }
}

/// A segment whose body runs as plain code.
struct Direct<'s> {
    rt: &'s Runtime,
    site: &'static Site,
    before: Phase,
    slice: Option<Box<Slice>>,
}

impl<'s> Direct<'s> {
    fn enter(rt: &'s Runtime, site: &'static Site) -> Result<Self> {
        let slice = rt.slice_of(site);
        if let Some(slice) = &slice {
            slice.span.record("decision", "no graph");
        }
        let mut core = rt.core.borrow_mut();
        let before = core.call.enter_segment(site);
        drop(core);
        Ok(Self { rt, site, before, slice })
    }
}

impl Drop for Direct<'_> {
    fn drop(&mut self) {
        self.rt.core.borrow_mut().call.restore(self.before);
        if let Some(slice) = &mut self.slice {
            self.rt.slice_ends(self.site, "segment", slice.begin.take());
        }
    }
}

/// A guard that ends a body which failed or panicked.
struct Aborting<'s> {
    rt: &'s Runtime,
    armed: bool,
    graphs: bool,
}

impl Drop for Aborting<'_> {
    fn drop(&mut self) {
        self.rt.graphs.set(self.graphs);
        if self.armed {
            self.rt.core.borrow_mut().body_runner().abort();
        }
    }
}

/// One execution of a segment as the runtime sees it, without the types of its outputs and errors, so that
/// its code is compiled once and not for each segment.
trait Execution<'s> {
    /// Lists the values that the body may use.
    fn write_key(&self, k: &mut KeyWriter);

    /// Runs the body, and stores its output. Returns false if it failed.
    fn run(&mut self) -> bool;

    /// Drops the output of the body.
    fn discard(&mut self);

    /// Lists the output of the body.
    fn encode(&mut self, encoder: &mut Encoder);

    /// Stores the output of a replay in place of the body's.
    fn decode(&mut self, decoder: &mut Decoder<'s>);
}

struct Typed<'a, O, E> {
    write: &'a dyn Fn(&mut KeyWriter),
    body: &'a mut dyn FnMut(&mut Option<O>) -> Result<(), E>,
    out: Option<O>,
    error: Option<E>,
}

impl<'s, O: LiveOut<'s>, E> Execution<'s> for Typed<'_, O, E> {
    fn write_key(&self, k: &mut KeyWriter) {
        (self.write)(k);
    }

    fn run(&mut self) -> bool {
        self.error = (self.body)(&mut self.out).err();
        self.error.is_none()
    }

    fn discard(&mut self) {
        self.out = None;
    }

    fn encode(&mut self, encoder: &mut Encoder) {
        // If `encode` panics, the outputs are dropped before the run is aborted.
        if let Some(out) = self.out.take() {
            out.encode(encoder);
            self.out = Some(out);
        }
    }

    fn decode(&mut self, decoder: &mut Decoder<'s>) {
        self.out = Some(O::decode(decoder));
    }
}

/// The way in which an execution failed.
enum Failure {
    /// An error of the body, which the execution stores.
    Body,
    /// An error of the runtime.
    Runtime(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Runtime(error)
    }
}

/// Returns an execution that stores the result of a body.
fn typed<'s, O: LiveOut<'s>, E: From<Error>>(
    write: &dyn Fn(&mut KeyWriter),
    body: &mut dyn FnMut(&mut Option<O>) -> Result<(), E>,
    run: &mut dyn FnMut(&mut dyn Execution<'s>) -> Result<(), Failure>,
) -> Result<O, E> {
    let mut execution = Typed { write, body, out: None, error: None };
    let done = run(&mut execution);
    match (done, execution.error) {
        (Ok(()), _) => Ok(given(execution.out)),
        (Err(Failure::Runtime(error)), _) => Err(error.into()),
        (Err(Failure::Body), Some(error)) => Err(error),
        (Err(Failure::Body), None) => unreachable!("a body that failed has given its error"),
    }
}

/// A segment call in the timeline.
struct Slice {
    span: EnteredSpan,
    /// The mark at which its device time begins.
    begin: Option<Arc<dyn Mark>>,
}

/// A segment call in progress. Small, because every replay makes one.
struct Entered {
    key: Box<KeyWriter>,
    /// `None` if nobody looks at the timeline.
    slice: Option<Box<Slice>>,
    fallbacks: u64,
    fell_back: bool,
}

impl Runtime {
    /// The only way into a graph. `write` lists the values that the body may use; `body` runs at most once.
    ///
    /// Only the part of a replay that depends on the types of its key and outputs is in this function;
    /// everything else is compiled once.
    #[inline]
    pub(crate) fn run_segment<'s, O, E>(
        &'s self,
        site: &'static Site,
        identity: Identity,
        write: impl Fn(&mut KeyWriter),
        body: &mut dyn FnMut(&mut Option<O>) -> Result<(), E>,
    ) -> Result<O, E>
    where
        O: LiveOut<'s>,
        E: From<Error>,
    {
        let mut entered = self.enter_segment(site);
        write(&mut entered.key);
        let result = match self.decide_segment(site, identity, &mut entered) {
            Ok(Decision::Replayed(entries)) => {
                // The output is decoded last, so that it is written where the caller wants it.
                let mut decoder = Decoder::new(self, entries);
                self.leave_segment(site, entered);
                return Ok(O::decode(&mut decoder));
            }
            Ok(Decision::Run(kind)) => typed(&write, body, &mut |execution| {
                self.run_body(kind, site, identity, &mut entered.key, execution)
            }),
            Ok(Decision::Audit(at)) => typed(&write, body, &mut |execution| {
                self.audit(at, site, identity, &mut entered.key, execution)
            }),
            Err(error) => Err(error.into()),
        };
        self.leave_segment(site, entered);
        result
    }

    /// Opens the slice of a segment, if somebody looks at the timeline.
    #[inline]
    fn slice_of(&self, site: &'static Site) -> Option<Box<Slice>> {
        timeline::segment(site).map(|span| Box::new(Slice { span, begin: self.slice_begins() }))
    }

    #[inline]
    fn enter_segment(&self, site: &'static Site) -> Entered {
        Entered { key: self.take_writer(), slice: self.slice_of(site), fallbacks: 0, fell_back: false }
    }

    fn decide_segment(
        &self,
        site: &'static Site,
        identity: Identity,
        entered: &mut Entered,
    ) -> Result<Decision> {
        if entered.slice.is_some() {
            return self.decide_in_slice(site, identity, entered);
        }
        let mut core = self.core.borrow_mut();
        core.call.write_key(&mut entered.key);
        core.decide(site, identity, &entered.key)
    }

    /// The same where somebody looks at the timeline. In a function of its own, so that the decision of every other replay is
    /// returned where `decide` writes it.
    #[cold]
    #[inline(never)]
    fn decide_in_slice(
        &self,
        site: &'static Site,
        identity: Identity,
        entered: &mut Entered,
    ) -> Result<Decision> {
        let decision = {
            let mut core = self.core.borrow_mut();
            core.call.write_key(&mut entered.key);
            let before = core.log.stats().fallbacks;
            let decision = core.decide(site, identity, &entered.key);
            entered.fallbacks = core.log.stats().fallbacks;
            entered.fell_back = entered.fallbacks > before;
            decision
        };
        if let Some(slice) = &entered.slice {
            slice.span.record("decision", decision_name(&decision, entered.fell_back));
        }
        decision
    }

    #[inline]
    fn leave_segment(&self, site: &'static Site, entered: Entered) {
        let Entered { key, slice, fallbacks, fell_back } = entered;
        if let Some(mut slice) = slice {
            let invalidated = !fell_back && self.core.borrow().log.stats().fallbacks > fallbacks;
            self.end_slice(site, &mut slice, invalidated);
        }
        self.put_writer(key);
        self.tell_hooks();
    }

    /// Closes the slice of a segment. `invalidated` is set if it was to be recorded, but its captures were
    /// invalidated.
    #[cold]
    fn end_slice(&self, site: &'static Site, slice: &mut Slice, invalidated: bool) {
        if invalidated {
            slice.span.record("decision", "fallback");
        }
        self.slice_ends(site, "segment", slice.begin.take());
    }

    fn collect(&self, key: &mut KeyWriter, execution: &dyn Execution<'_>) {
        key.clear();
        key.collect = true;
        execution.write_key(key);
        self.core.borrow().call.write_key(key);
    }

    /// Runs a body, and lists its output. The run is aborted if the body fails or panics.
    fn guarded<'s>(&'s self, execution: &mut dyn Execution<'s>) -> Result<Encoder, Failure> {
        let mut guard = Aborting { rt: self, armed: true, graphs: self.graphs.replace(false) };
        let succeeded = execution.run();
        // This applies whatever the body did with it: a branch on a padded size took the same direction for
        // all sizes of the bucket.
        if let Err(error) = self.refused_sizes.take() {
            execution.discard();
            return Err(error.into());
        }
        if !succeeded {
            return Err(Failure::Body);
        }
        let mut encoder = Encoder::of(self);
        execution.encode(&mut encoder);
        guard.armed = false;
        Ok(encoder)
    }

    fn run_body<'s>(
        &'s self,
        kind: RunKind,
        site: &'static Site,
        identity: Identity,
        key: &mut KeyWriter,
        execution: &mut dyn Execution<'s>,
    ) -> Result<(), Failure> {
        self.collect(key, execution);
        self.core.borrow_mut().body_runner().begin(NewRun { kind, site, identity }, key)?;
        let encoder = self.guarded(execution)?;
        let finished = self.core.borrow_mut().body_runner().finish(key, &encoder);
        if finished.is_err() {
            execution.discard();
        }
        Ok(finished?)
    }

    fn audit<'s>(
        &'s self,
        at: RecordingIndex,
        site: &'static Site,
        identity: Identity,
        key: &mut KeyWriter,
        execution: &mut dyn Execution<'s>,
    ) -> Result<(), Failure> {
        self.collect(key, execution);
        let mut audit = self.core.borrow_mut().body_runner().begin_audit(at, site, identity, key)?;
        let encoder = self.guarded(execution)?;
        let ended = self.core.borrow_mut().body_runner().end_audit(&mut audit, &encoder);
        execution.discard();
        ended?;
        let entries = self.core.borrow_mut().replayer().audited_replay(at, site, key, &audit)?;
        execution.decode(&mut Decoder::new(self, entries));
        Ok(())
    }
}

/// Returns a decision's name in the timeline.
fn decision_name(decision: &Result<Decision>, fell_back: bool) -> &'static str {
    match decision {
        Ok(Decision::Replayed(_)) => "replay",
        Ok(Decision::Run(RunKind::Record)) => "record",
        Ok(Decision::Run(_)) if fell_back => "fallback",
        Ok(Decision::Run(_)) => "warm-up",
        Ok(Decision::Audit(_)) => "audit",
        Err(_) => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn a_fallback_is_no_warm_up() {
        assert_eq!(decision_name(&Ok(Decision::Run(RunKind::Warm)), false), "warm-up");
        assert_eq!(decision_name(&Ok(Decision::Run(RunKind::Warm)), true), "fallback");
        assert_eq!(decision_name(&Err(Error::NeverComputed { op: "a test" }), false), "failed");
    }
}

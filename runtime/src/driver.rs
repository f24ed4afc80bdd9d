//! The driver: runs on every call, between the segments.

use std::{any::TypeId, sync::Arc};

use tracing::{field, span::EnteredSpan};

use crate::{
    Error, Result, Runtime,
    backend::Mark,
    core::{Decision, Phase, RunKind},
    eager::Region,
    key::{KeyWriter, LiveIn},
    mode::Support,
    output::{Decoder, Encoder, LiveOut},
    plan::Site,
    timeline,
    tree::Identity,
};

/// Handed through functions with boundaries by generated code.
#[derive(Clone, Copy)]
pub struct Driver<'s> {
    pub(crate) rt: &'s Runtime,
}

impl std::fmt::Debug for Driver<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Driver")
    }
}

impl<'s> Driver<'s> {
    /// Replays, records or runs a segment.
    ///
    /// `body` gets its live-ins through `key` only: it captures nothing, so its type is its identity,
    /// and a value that is missing from the key does not compile.
    ///
    /// # Errors
    /// The body's own; those of capture and replay, converted.
    pub fn segment<K, O, E, F>(self, site: &'static Site, key: K, body: F) -> Result<O, E>
    where
        K: LiveIn,
        O: LiveOut<'s>,
        E: From<Error>,
        F: Fn(&K) -> Result<O, E> + Copy + 'static,
    {
        const {
            assert!(size_of::<F>() == 0, "a value is used in a segment without being one of its live-ins");
        }
        if !self.rt.graphs.get() {
            let _phase = Direct::enter(self.rt, site)?;
            let out = body(&key);
            self.rt.refused_sizes.take()?;
            return out;
        }
        self.rt.run_segment(site, Identity::Segment(TypeId::of::<F>()), |k| key.write_key(k), || body(&key))
    }

    /// Opens an eager region.
    ///
    /// # Errors
    /// When called from inside a segment.
    pub fn eager(self, site: &'static Site, support: Support) -> Result<Region<'s>> {
        self.rt.refused_sizes.take()?;
        {
            let core = self.rt.core.borrow();
            if let Phase::Segment(segment) = core.phase {
                return Err(Error::CapabilityInSegment {
                    call: "an eager region",
                    segment: segment.to_string(),
                });
            }
            debug_assert!(!core.capturing() || support != Support::Never, "full mode checks the plan first");
        }
        Ok(Region::open(self.rt, site))
    }
}

/// A segment that runs its body as plain code.
struct Direct<'s> {
    rt: &'s Runtime,
    site: &'static Site,
    before: Phase,
    begin: Option<Arc<dyn Mark>>,
    _span: EnteredSpan,
}

impl<'s> Direct<'s> {
    fn enter(rt: &'s Runtime, site: &'static Site) -> Result<Self> {
        let span = timeline::span!(
            "segment",
            segment = %site,
            title = %site.title(),
            file = site.file,
            line = site.first_line,
            decision = "no graph"
        )
        .entered();
        let begin = if span.is_disabled() { None } else { rt.slice_begins() };
        let mut core = rt.core.borrow_mut();
        let before = core.phase;
        core.phase = Phase::Segment(site);
        drop(core);
        Ok(Self { rt, site, before, begin, _span: span })
    }
}

impl Drop for Direct<'_> {
    fn drop(&mut self) {
        self.rt.core.borrow_mut().phase = self.before;
        self.rt.slice_ends(self.site, "segment", self.begin.take());
    }
}

/// Ends a body that failed or panicked.
struct Aborting<'s> {
    rt: &'s Runtime,
    armed: bool,
    graphs: bool,
}

impl Drop for Aborting<'_> {
    fn drop(&mut self) {
        self.rt.graphs.set(self.graphs);
        if self.armed {
            self.rt.core.borrow_mut().abort_run();
        }
    }
}

impl Runtime {
    /// The one way into a graph. `write` lists what the body may use.
    pub(crate) fn run_segment<'s, O, E>(
        &'s self,
        site: &'static Site,
        identity: Identity,
        write: impl Fn(&mut KeyWriter),
        body: impl FnOnce() -> Result<O, E>,
    ) -> Result<O, E>
    where
        O: LiveOut<'s>,
        E: From<Error>,
    {
        let span = timeline::span!(
            "segment",
            segment = %site,
            title = %site.title(),
            file = site.file,
            line = site.first_line,
            decision = field::Empty
        )
        .entered();
        let begin = if span.is_disabled() { None } else { self.slice_begins() };
        let mut key = self.take_writer();
        write(&mut key);
        let (decision, fallbacks, fell_back) = {
            let mut core = self.core.borrow_mut();
            core.frame_key(&mut key);
            let before = core.log.stats.fallbacks;
            let decision = core.decide(site, identity, &key);
            let fallbacks = core.log.stats.fallbacks;
            (decision, fallbacks, fallbacks > before)
        };
        if !span.is_disabled() {
            span.record("decision", timeline::name(&decision, fell_back));
        }
        let result = match decision {
            Ok(Decision::Replayed(entries)) => Ok(O::decode(&mut Decoder::new(self, entries))),
            Ok(Decision::Run(kind)) => self.run_body(kind, site, identity, &mut key, write, body),
            Ok(Decision::Audit(node)) => self.audit(node, site, identity, &mut key, write, body),
            Err(error) => Err(error.into()),
        };
        if !span.is_disabled() && !fell_back && self.core.borrow().log.stats.fallbacks > fallbacks {
            // It was to be recorded, and its captures were spoilt.
            span.record("decision", "fallback");
        }
        self.slice_ends(site, "segment", begin);
        self.put_writer(key);
        self.tell_hooks();
        result
    }

    fn collect(&self, key: &mut KeyWriter, write: impl Fn(&mut KeyWriter)) {
        key.clear();
        key.collect = true;
        write(key);
        self.core.borrow().frame_key(key);
    }

    /// Runs a body, and lists what it gave. The run is aborted when the body fails or panics.
    fn guarded<'s, O: LiveOut<'s>, E: From<Error>>(
        &'s self,
        body: impl FnOnce() -> Result<O, E>,
    ) -> Result<(O, Encoder), E> {
        let mut guard = Aborting { rt: self, armed: true, graphs: self.graphs.replace(false) };
        let out = body();
        // Whatever the body made of it: a branch on a padded size went one way for all sizes of the bucket.
        self.refused_sizes.take()?;
        let out = out?;
        let mut encoder = Encoder::of(self);
        out.encode(&mut encoder);
        guard.armed = false;
        Ok((out, encoder))
    }

    fn run_body<'s, O, E>(
        &'s self,
        kind: RunKind,
        site: &'static Site,
        identity: Identity,
        key: &mut KeyWriter,
        write: impl Fn(&mut KeyWriter),
        body: impl FnOnce() -> Result<O, E>,
    ) -> Result<O, E>
    where
        O: LiveOut<'s>,
        E: From<Error>,
    {
        self.collect(key, write);
        self.core.borrow_mut().begin_run(kind, site, identity, key)?;
        let (out, encoder) = self.guarded(body)?;
        self.core.borrow_mut().finish_run(key, &encoder)?;
        Ok(out)
    }

    fn audit<'s, O, E>(
        &'s self,
        node: usize,
        site: &'static Site,
        identity: Identity,
        key: &mut KeyWriter,
        write: impl Fn(&mut KeyWriter),
        body: impl FnOnce() -> Result<O, E>,
    ) -> Result<O, E>
    where
        O: LiveOut<'s>,
        E: From<Error>,
    {
        self.collect(key, write);
        let mut audit = self.core.borrow_mut().begin_audit(node, site, identity, key)?;
        let (out, encoder) = self.guarded(body)?;
        self.core.borrow_mut().end_audit_body(&mut audit, &encoder)?;
        drop(out);
        let entries = self.core.borrow_mut().audited_replay(node, site, key, &audit)?;
        Ok(O::decode(&mut Decoder::new(self, entries)))
    }
}

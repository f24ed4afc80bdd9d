//! A segment that no recording fits: warm up, record, copy what keeps moving, or run without a graph.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Core, Decision, RunKind, decide::results_are_free};
use crate::{
    Error, Limits, Moved, Result, SegmentInfo, Verdict,
    base::plan::Site,
    memory::pool::StateId,
    observe::event::{FallbackReason, RerecordReason},
    tree::{COPIED, Identity, Node},
    value::live_in::KeyWriter,
};

/// The distinct shapes that one graph object was called with.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    /// How many, for each combination of the sizes that were asked for.
    met: FxHashMap<Vec<usize>, usize>,
    warned: bool,
}

impl Core {
    /// What [`decide`](Self::decide) does when no recording has just this key.
    #[cold]
    pub(crate) fn decide_missed(
        &mut self,
        site: &'static Site,
        identity: Identity,
        key: &KeyWriter,
        entry: StateId,
    ) -> Result<Decision> {
        let known = self.known_group(identity, key);
        if let Some(group) = known {
            if let Some(reason) = self.tree.skipped(group, &key.addrs).cloned() {
                return self.go_eager(reason);
            }
            let free = |node: &Node| results_are_free(node, &self.results.live) && self.sees(node, key);
            if let Some(at) = self.tree.find_copying(group, identity, entry, (&key.shape, &key.addrs), free) {
                if self.audit_is_due(at) {
                    return Ok(Decision::Audit(at));
                }
                self.stage_copies(at, key);
                return self.replay(at, key).map(Decision::Replayed);
            }
            if let Some(at) = self.find_apart(group, identity, key, !self.closed) {
                return self.run_elsewhere(at, key);
            }
        }
        let moved = self.moved_live_ins(known, key, entry);
        let (shapes, new_shape) = self.shapes(known);
        let verdict = self.ask(site, known, key, &moved, (shapes, new_shape));
        let (wanted, refused) = match &verdict {
            Verdict::Record | Verdict::Copy(_) => (false, false),
            Verdict::Eager(reason) | Verdict::Skip(reason) => (reason.is_wanted(), true),
        };
        if let (Some(group), Verdict::Eager(FallbackReason::TooManyRecordings { .. })) = (known, &verdict)
            && let Some(at) = self.find_held(group, identity, key)
        {
            return self.run_elsewhere(at, key);
        }
        if self.closed && !wanted {
            return Err(Error::CaptureClosed { segment: site.to_string() });
        }
        if refused {
            return self.refuse(known, key, verdict);
        }
        let group = self.group(identity, key);
        if new_shape {
            self.count_shape(group, shapes);
        }
        if let Some(wait) = self.must_wait(group, identity, entry, key) {
            self.count_warm_up(site, group, wait);
            return Ok(Decision::Run(RunKind::Warm));
        }
        if let Some(reason) = self.over_graph_memory() {
            return match self.find_apart(group, identity, key, false) {
                Some(at) => self.run_elsewhere(at, key),
                None => self.go_eager(reason),
            };
        }
        if let Verdict::Copy(live_ins) = verdict {
            for m in moved.iter().filter(|m| m.can_copy && live_ins.contains(&m.live_in)) {
                self.demote(site, group, key, m)?;
            }
        }
        if let Some(why) = self.why_again(group, key) {
            self.log.rerecorded(site, why);
        }
        Ok(Decision::Run(RunKind::Record))
    }

    /// Replays a recording whose memory is another's now.
    fn run_elsewhere(&mut self, at: usize, key: &KeyWriter) -> Result<Decision> {
        if self.audit_is_due(at) {
            return Ok(Decision::Audit(at));
        }
        self.stage_copies(at, key);
        self.replay_apart(at, key).map(Decision::Replayed)
    }

    /// The policy's word, or that of the limits.
    fn ask(
        &self,
        site: &'static Site,
        known: Option<usize>,
        key: &KeyWriter,
        moved: &[Moved],
        (shapes, new_shape): (usize, bool),
    ) -> Verdict {
        let built_in = Limits::default();
        let info = SegmentInfo {
            function: self.function_name(),
            site,
            limits: self.frame.as_ref().map_or(&built_in, |f| &f.limits),
            kernels: known.and_then(|g| self.tree.trace_len(g)),
            recordings: known.map_or(0, |g| self.tree.spent(g, &key.addrs)),
            shapes,
            new_shape,
            moved,
        };
        match self.frame.as_ref().and_then(|f| f.policy.as_ref()) {
            Some(policy) => policy.segment(&info),
            None => info.built_in(),
        }
    }

    pub(crate) fn function_name(&self) -> &'static str {
        self.frame.as_ref().map_or("?", |f| f.name)
    }

    /// The segment gets no graph, now or never.
    fn refuse(&mut self, known: Option<usize>, key: &KeyWriter, verdict: Verdict) -> Result<Decision> {
        let (Verdict::Eager(reason) | Verdict::Skip(reason)) = &verdict else {
            return Ok(Decision::Run(RunKind::Eager));
        };
        let decision = self.go_eager(reason.clone())?;
        if let Some(group) = known {
            // It does not wait for a recording: it gets none.
            self.tree.group_mut(group).waiting = None;
        }
        if let (Verdict::Skip(reason), Some(group)) = (verdict, known) {
            let gone = self.tree.skip(group, &key.addrs, reason);
            if gone > 0 {
                self.log.evicted(gone);
            }
        }
        Ok(decision)
    }

    /// A run without a graph, counted, or the error that forbids it.
    pub(crate) fn go_eager(&mut self, reason: FallbackReason) -> Result<Decision> {
        self.fall_back(reason)?;
        Ok(Decision::Run(RunKind::Eager))
    }

    fn fall_back(&mut self, reason: FallbackReason) -> Result<()> {
        self.forbidden(&reason)?;
        let function = self.function_name();
        self.log.fell_back(function, reason);
        Ok(())
    }

    fn forbidden(&self, reason: &FallbackReason) -> Result<()> {
        match &self.frame {
            Some(f) if f.or_error && !reason.is_wanted() => {
                Err(Error::FallbackForbidden { function: f.name, reason: reason.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Whether graphs have as much memory as they may.
    fn over_graph_memory(&self) -> Option<FallbackReason> {
        let limit = self.graph_memory_limit?;
        let bytes = self.pool_zone.committed + self.tree.executables().1;
        (bytes >= limit).then_some(FallbackReason::OverGraphMemory { bytes, limit })
    }

    /// A segment was warmed up once more, and still nothing can be recorded: its body went on after an error.
    pub(crate) fn fall_back_unwarmed(&mut self, site: &'static Site) -> Result<()> {
        self.fall_back(FallbackReason::NeverWarm { segment: site.to_string() })
    }

    /// A segment runs without a graph because its captures were spoilt.
    pub(crate) fn fall_back_spoilt(&mut self, site: &'static Site) -> Result<()> {
        self.fall_back(FallbackReason::CaptureSpoilt { segment: site.to_string() })
    }

    /// The live-ins whose addresses keep the recordings of this edge from fitting; they are counted, if a
    /// recording may follow.
    fn moved_live_ins(
        &mut self,
        known: Option<usize>,
        key: &KeyWriter,
        entry: StateId,
    ) -> SmallVec<[Moved; 2]> {
        let Some(group) = known.filter(|&g| self.is_warm(g)) else {
            return SmallVec::new();
        };
        let moved = self.tree.count_moves(group, &key.addrs, entry);
        moved
            .into_iter()
            .map(|(position, moves)| Moved {
                live_in: position as usize,
                moves: moves as usize,
                can_copy: self.can_copy(key, position),
            })
            .collect()
    }

    /// From now on recordings of this edge copy the live-in.
    fn demote(&mut self, site: &'static Site, group: usize, key: &KeyWriter, m: &Moved) -> Result<()> {
        let (live_in, moves) = (m.live_in, m.moves);
        self.forbidden(&FallbackReason::KeepsMoving { segment: site.to_string(), live_in, moves })?;
        self.tree.demote(group, &key.addrs, live_in as u32);
        self.log.demoted(site, live_in, moves);
        Ok(())
    }

    /// How many distinct shapes the function was called with, this one included, and whether this call
    /// brought one that the segment never met.
    fn shapes(&self, known: Option<usize>) -> (usize, bool) {
        let new = known.is_none_or(|g| !self.tree.is_counted(g));
        let Some(frame) = &self.frame else { return (0, new) };
        let shapes = self.shapes.get(&frame.function);
        let met = shapes.and_then(|s| s.met.get(&frame.asked_sizes())).copied().unwrap_or(0);
        // One call counts once, however many segments meet it.
        (met + usize::from(new && !frame.counted_shape), new)
    }

    fn count_shape(&mut self, group: usize, shapes: usize) {
        self.tree.group_mut(group).counted = true;
        let Some(frame) = self.frame.as_mut().filter(|f| !f.counted_shape) else { return };
        frame.counted_shape = true;
        let all = self.shapes.entry(frame.function).or_default();
        all.met.insert(frame.asked_sizes(), shapes);
        if shapes == frame.limits.warn_shapes && !all.warned {
            all.warned = true;
            self.log.many_shapes(frame.name, shapes);
        }
    }

    /// Why no recording of this edge fits, if it has any.
    fn why_again(&self, group: usize, key: &KeyWriter) -> Option<RerecordReason> {
        let differs = |(a, b): (&u64, &u64)| a != b && *a != COPIED;
        let siblings = self.tree.siblings(group, &key.addrs);
        let nearest =
            siblings.iter().min_by_key(|n| n.addrs.iter().zip(&key.addrs).filter(|&p| differs(p)).count())?;
        if let Some(word) = nearest.addrs.iter().zip(&key.addrs).position(differs) {
            return Some(RerecordReason::InputMoved { live_in: word / 2 });
        }
        if nearest.entry == self.pool.state() {
            Some(RerecordReason::ResultHeld)
        } else {
            Some(RerecordReason::LiveSet)
        }
    }
}

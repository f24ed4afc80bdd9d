//! A segment that no recording matches: warm it up, record it, copy live-ins that keep moving, or run it
//! without a graph.

use smallvec::SmallVec;

use super::{Core, Decision, Settings, decide::audit_is_due};
use crate::{
    Error, Limits, Moved, Result, SegmentDecision, SegmentInfo,
    base::{plan::Site, reason::FallbackReason},
    memory::{Memory, pool::StateId},
    observe::{event::RerecordReason, log::Log, occurrence::Occurrence},
    record::{CallState, Candidate, Overlaps, Relocations, RunKind, ShapeCount, Stream, WarmUp, can_copy},
    tree::{GroupId, Identity, LookupKey, MovedOperand, Recording, RecordingIndex, Tree},
    value::key::{KeyOperand, KeyWriter, RecordedOperand},
};

/// A key without a recording.
#[derive(Clone, Copy, Debug)]
struct Missed<'k> {
    site: &'static Site,
    identity: Identity,
    key: &'k KeyWriter,
    /// The state of the pool.
    entry: StateId,
    /// Its group, if its shapes are known.
    known: Option<GroupId>,
}

impl<'k> Missed<'k> {
    /// Returns the recordings that could run for it with copies.
    fn relocations<'c>(self, group: GroupId, tree: &'c Tree, overlaps: Overlaps<'c>) -> Relocations<'c>
    where
        'k: 'c,
    {
        Relocations { tree, overlaps, group, identity: self.identity, key: self.key }
    }

    /// Returns the decision of the policy, or of the limits.
    fn ask(self, tree: &Tree, call: &CallState, moved: &[Moved], shapes: ShapeCount) -> SegmentDecision {
        let Self { site, key, known, .. } = self;
        let built_in = Limits::default();
        let active = call.active();
        let info = SegmentInfo {
            function: call.function_name(),
            site,
            limits: active.map_or(&built_in, |call| &call.limits),
            kernels: known.and_then(|group| tree.trace_len(group)),
            recordings: known.map_or(0, |group| tree.spent(group, &key.operands)),
            shapes: shapes.shapes,
            new_shape: shapes.is_new,
            moved,
        };
        match active.and_then(|call| call.policy.as_ref()) {
            Some(policy) => policy.segment(&info),
            None => info.built_in(),
        }
    }

    /// Returns the live-ins whose addresses keep the recordings of this edge from matching; they are counted
    /// if a recording may follow.
    fn moved_live_ins(self, tree: &mut Tree, memory: &Memory) -> SmallVec<[Moved; 2]> {
        let Self { key, entry, known, .. } = self;
        let call = memory.call_number();
        let Some(group) = known.filter(|&group| tree.group_of(group).is_warm_for(call)) else {
            return SmallVec::new();
        };
        let moved = |MovedOperand { position, moves }| Moved {
            live_in: position as usize,
            moves: moves as usize,
            can_copy: can_copy(memory, key, position),
        };
        tree.count_moves(group, &key.operands, entry).into_iter().map(moved).collect()
    }

    /// Returns the reason why no recording of this edge matches, if it has any.
    fn rerecord_reason(self, tree: &Tree, group: GroupId) -> Option<RerecordReason> {
        let key = self.key;
        let siblings = tree.siblings(group, &key.operands);
        let fits = |(recorded, operand): (&RecordedOperand, &KeyOperand)| recorded.fits(operand);
        let misfits = |r: &&&Recording| r.operands.iter().zip(&key.operands).filter(|&p| !fits(p)).count();
        let nearest = siblings.iter().min_by_key(misfits)?;
        if let Some(live_in) = nearest.operands.iter().zip(&key.operands).position(|p| !fits(p)) {
            return Some(RerecordReason::InputMoved { live_in });
        }
        if nearest.entry == self.entry {
            Some(RerecordReason::ResultHeld)
        } else {
            Some(RerecordReason::LiveSet)
        }
    }

    /// Returns the reason why a segment with conditional nodes runs without a graph: the device has none, and the
    /// builder allows it.
    ///
    /// # Errors
    /// Returns [`Error::NoConditionalNodes`] if the builder does not.
    fn lacks_conditionals(
        self,
        tree: &Tree,
        call: &CallState,
        stream: &Stream,
    ) -> Result<Option<FallbackReason>> {
        if !self.known.is_some_and(|group| tree.group_of(group).has_conditionals()) {
            return Ok(None);
        }
        match stream.backend().supports_conditionals() {
            Ok(()) => Ok(None),
            Err(Error::NoConditionalNodes { found, .. })
                if call.active().is_some_and(|call| call.eager_conditionals) =>
            {
                Ok(Some(FallbackReason::NoConditionalNodes { segment: self.site.to_string(), found }))
            }
            Err(error) => Err(error),
        }
    }
}

/// Counts a run without a graph.
///
/// # Errors
/// Returns [`Error::FallbackForbidden`].
fn go_eager(call: &CallState, log: &mut Log, reason: FallbackReason) -> Result<Decision> {
    call.may_fall_back(&reason)?;
    log.emit(Occurrence::FellBack { function: call.function_name(), reason: &reason });
    Ok(Decision::Run(RunKind::Eager))
}

/// Returns a reason if graphs already use as much memory as the limit allows.
fn over_graph_memory(settings: &Settings, memory: &Memory, tree: &Tree) -> Option<FallbackReason> {
    let limit = settings.graph_memory_limit()?;
    let bytes = memory.committed().pool + tree.executables().bytes;
    (bytes >= limit).then_some(FallbackReason::OverGraphMemory { bytes, limit })
}

impl Core {
    /// Decides, like [`decide`](Self::decide), if no recording has exactly this key.
    #[cold]
    pub(super) fn decide_missed(
        &mut self,
        site: &'static Site,
        identity: Identity,
        key: &KeyWriter,
        entry: StateId,
    ) -> Result<Decision> {
        let known = self.overlaps().known_group(&self.tree, identity, key);
        let missed = Missed { site, identity, key, entry, known };
        if let Some(group) = known {
            if let Some(reason) = self.tree.skipped(group, &key.operands).cloned() {
                return go_eager(&self.call, &mut self.log, reason);
            }
            if let Some(decision) = self.replay_with_copies(missed, group)? {
                return Ok(decision);
            }
        }
        let moved = missed.moved_live_ins(&mut self.tree, &self.memory);
        let is_new = known.is_none_or(|group| !self.tree.is_counted(group));
        let shapes = self.call.count_shapes(is_new);
        let decision = match missed.lacks_conditionals(&self.tree, &self.call, &self.stream)? {
            Some(reason) => SegmentDecision::Eager(reason),
            None => missed.ask(&self.tree, &self.call, &moved, shapes),
        };
        let refused = match &decision {
            SegmentDecision::Record | SegmentDecision::Copy(_) => None,
            SegmentDecision::Eager(reason) | SegmentDecision::Skip(reason) => Some(reason),
        };
        if let (Some(group), SegmentDecision::Eager(FallbackReason::TooManyRecordings { .. })) =
            (known, &decision)
            && let Some(at) = missed.relocations(group, &self.tree, self.overlaps()).find_held()
        {
            return self.replay_elsewhere(at, key);
        }
        if self.settings.is_capture_closed() && !refused.is_some_and(FallbackReason::is_wanted) {
            return Err(Error::CaptureClosed { segment: site.to_string() });
        }
        match refused {
            Some(reason) => self.refuse(missed, reason.clone(), matches!(decision, SegmentDecision::Skip(_))),
            None => self.record_or_wait(missed, &moved, shapes, &decision),
        }
    }

    /// Replays a recording that matches except for live-ins that it copies, or one that can run with copies.
    fn replay_with_copies(&mut self, missed: Missed<'_>, group: GroupId) -> Result<Option<Decision>> {
        let Missed { identity, key, entry, .. } = missed;
        let overlaps = self.overlaps();
        let can_run = |recording: &Recording| overlaps.allow(recording, key);
        if let Some(at) = self.tree.find_copying(group, LookupKey::new(identity, entry, key), can_run) {
            if audit_is_due(&self.tree, &self.call, at) {
                return Ok(Some(Decision::Audit(at)));
            }
            let mut replayer = self.replayer();
            replayer.stage_copies(at, key);
            return replayer.replay(at, key).map(Decision::Replayed).map(Some);
        }
        let can_record = !self.settings.is_capture_closed();
        match missed.relocations(group, &self.tree, self.overlaps()).find(can_record) {
            Some(at) => self.replay_elsewhere(at, key).map(Some),
            None => Ok(None),
        }
    }

    /// Records the segment, or warms it up.
    fn record_or_wait(
        &mut self,
        missed: Missed<'_>,
        moved: &[Moved],
        shapes: ShapeCount,
        decision: &SegmentDecision,
    ) -> Result<Decision> {
        let Missed { site, identity, key, entry, .. } = missed;
        let group = Overlaps { memory: &self.memory, call: &self.call }.group(&mut self.tree, identity, key);
        if shapes.is_new {
            self.tree.group_mut(group).counted = true;
            if let Some(function) = self.call.add_shape(shapes.shapes) {
                self.log.emit(Occurrence::ManyShapes { function, shapes: shapes.shapes });
            }
        }
        let hash = LookupKey::new(identity, entry, key).hash();
        let candidate = Candidate { group, key: hash, entry, call: self.memory.call_number() };
        let function = self.call.function_name();
        let warm_ups = self.call.warm_ups_mut();
        if let Some(wait) = warm_ups.must_wait(&mut self.tree, candidate) {
            warm_ups.count(&mut self.tree, &mut self.log, function, WarmUp { site, group, wait });
            return Ok(Decision::Run(RunKind::Warm));
        }
        if let Some(reason) = over_graph_memory(&self.settings, &self.memory, &self.tree) {
            return match missed.relocations(group, &self.tree, self.overlaps()).find(false) {
                Some(at) => self.replay_elsewhere(at, key),
                None => go_eager(&self.call, &mut self.log, reason),
            };
        }
        if let SegmentDecision::Copy(live_ins) = decision {
            for m in moved.iter().filter(|m| m.can_copy && live_ins.contains(&m.live_in)) {
                let (live_in, moves) = (m.live_in, m.moves);
                let reason = FallbackReason::KeepsMoving { segment: site.to_string(), live_in, moves };
                self.call.may_fall_back(&reason)?;
                // From now on, recordings of this edge copy the live-in.
                self.tree.switch_to_copy(group, &key.operands, live_in as u32);
                self.log.emit(Occurrence::SwitchedToCopy { site, live_in, moves });
            }
        }
        if let Some(reason) = missed.rerecord_reason(&self.tree, group) {
            self.log.emit(Occurrence::Rerecorded { site, reason: &reason });
        }
        Ok(Decision::Run(RunKind::Record))
    }

    /// Replays a recording whose memory is now used by others.
    fn replay_elsewhere(&mut self, at: RecordingIndex, key: &KeyWriter) -> Result<Decision> {
        if audit_is_due(&self.tree, &self.call, at) {
            return Ok(Decision::Audit(at));
        }
        let mut replayer = self.replayer();
        replayer.stage_copies(at, key);
        replayer.replay_relocated(at, key).map(Decision::Replayed)
    }

    /// The segment gets no graph: this time, or never if it is to be skipped.
    fn refuse(&mut self, missed: Missed<'_>, reason: FallbackReason, skip: bool) -> Result<Decision> {
        let decision = go_eager(&self.call, &mut self.log, reason.clone())?;
        let Some(group) = missed.known else { return Ok(decision) };
        // It does not wait for a recording, because it will not get one.
        self.tree.group_mut(group).waiting = None;
        if skip {
            self.tree.skip(group, &missed.key.operands, reason, &mut self.log);
        }
        Ok(decision)
    }
}

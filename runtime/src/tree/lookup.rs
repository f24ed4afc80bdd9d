//! Finding a recording by its key.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::{Cursor, GroupId, Identity, Recording, RecordingIndex, Tree};
use crate::{
    memory::pool::StateId,
    value::key::{KeyOperand, KeyWriter, RecordedOperand, same_operands},
};

/// The key by which a recording is looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookupKey<'k> {
    pub(crate) identity: Identity,
    /// The state of the pool.
    pub(crate) entry: StateId,
    pub(crate) shape: &'k [u64],
    pub(crate) operands: &'k [KeyOperand],
}

impl<'k> LookupKey<'k> {
    #[inline]
    pub(crate) fn new(identity: Identity, entry: StateId, key: &'k KeyWriter) -> Self {
        Self { identity, entry, shape: &key.shape, operands: &key.operands }
    }

    /// Returns the hash of everything that is compared.
    pub(crate) fn hash(&self) -> u64 {
        self.hash_with(self.operands.iter().map(|operand| operand.words()))
    }

    fn hash_with(&self, operands: impl Iterator<Item = [u64; 2]>) -> u64 {
        hash_words(self.identity, self.entry, self.shape, operands)
    }

    /// Returns whether everything except the operands matches the recording.
    #[inline]
    fn matches_but_operands(&self, recording: &Recording) -> bool {
        recording.identity == self.identity
            && recording.entry == self.entry
            && *recording.shape == *self.shape
    }
}

/// Returns the operands of a recording that copies the live-ins at `positions`, which are ascending.
pub(crate) fn recorded<'k>(
    operands: &'k [KeyOperand],
    positions: &'k [u32],
) -> impl Iterator<Item = RecordedOperand> + Clone + 'k {
    let at = |(position, &operand): (u32, &KeyOperand)| match positions.binary_search(&position) {
        Ok(_) => RecordedOperand::copied(operand),
        Err(_) => RecordedOperand::fixed(operand),
    };
    (0u32..).zip(operands).map(at)
}

/// Returns the words of an operand for hashes that ignore the addresses of live-ins in arenas.
fn anywhere(words: [u64; 2], is_owned: bool) -> [u64; 2] {
    if is_owned { words } else { [0; 2] }
}

/// Returns the hash of a key.
fn hash_words(
    identity: Identity,
    entry: StateId,
    shape: &[u64],
    operands: impl Iterator<Item = [u64; 2]>,
) -> u64 {
    let mut h = FxHasher::default();
    identity.hash(&mut h);
    entry.hash(&mut h);
    shape.iter().for_each(|&word| h.write_u64(word));
    operands.flatten().for_each(|word| h.write_u64(word));
    h.finish()
}

impl Recording {
    #[inline]
    fn is(&self, key: &LookupKey<'_>) -> bool {
        key.matches_but_operands(self) && same_operands(&self.operands, key.operands)
    }

    /// Returns the hash of its key, as in [`LookupKey::hash`].
    pub(super) fn hash(&self) -> u64 {
        let operands = self.operands.iter().map(|operand| operand.words());
        hash_words(self.identity, self.entry, &self.shape, operands)
    }

    /// Returns the hash of its key without the addresses of live-ins in arenas.
    pub(super) fn hash_anywhere(&self) -> u64 {
        let operands = self.operands.iter().map(|o| anywhere(o.words(), o.owner().is_some()));
        hash_words(self.identity, self.entry, &self.shape, operands)
    }

    /// Returns whether it matches the key except for the addresses of live-ins in arenas.
    fn is_alike(&self, key: &LookupKey<'_>) -> bool {
        let alike = |(recorded, operand): (&RecordedOperand, &KeyOperand)| match operand.owner {
            None => recorded.owner().is_none(),
            Some(_) => recorded == operand,
        };
        key.matches_but_operands(self)
            && self.operands.len() == key.operands.len()
            && self.operands.iter().zip(key.operands).all(alike)
    }
}

impl Tree {
    /// Returns the recording with this key for which `can_run` holds. The one that followed last time is tried
    /// first.
    pub(crate) fn find(
        &self,
        key: LookupKey<'_>,
        can_run: impl Fn(&Recording) -> bool,
    ) -> Option<RecordingIndex> {
        let predicted = match self.cursor {
            Cursor::At(at) => self.recordings.get(at).and_then(|recording| recording.likely),
            Cursor::Start => self.roots.get(&self.caller.id).and_then(|start| start.likely),
            Cursor::OffPath => None,
        };
        if let Some(at) = predicted
            && let Some(recording) = self.recordings.get(at)
            && recording.is(&key)
            && can_run(recording)
        {
            return Some(at);
        }
        let fits = |r: &Recording| r.is(&key) && can_run(r) && self.skipped(r.group, key.operands).is_none();
        let candidates = self.index.get(&key.hash())?;
        candidates.iter().copied().find(|&at| self.recordings.get(at).is_some_and(&fits))
    }

    /// Returns the recording of this group that matches except for live-ins that it copies, and for which
    /// `can_run` holds.
    pub(crate) fn find_copying(
        &self,
        group: GroupId,
        key: LookupKey<'_>,
        can_run: impl Fn(&Recording) -> bool,
    ) -> Option<RecordingIndex> {
        self.groups[group].copied.iter().find_map(|(positions, _)| {
            let operands = recorded(key.operands, positions);
            let candidates = self.index.get(&key.hash_with(operands.clone().map(RecordedOperand::words)))?;
            let fits = |r: &Recording| {
                r.group == group
                    && key.matches_but_operands(r)
                    && r.operands.iter().copied().eq(operands.clone())
                    && can_run(r)
            };
            candidates.iter().copied().find(|&at| self.recordings.get(at).is_some_and(fits))
        })
    }

    /// Returns the recordings that match except for the addresses of live-ins in arenas.
    pub(crate) fn alike<'t>(&'t self, key: LookupKey<'t>) -> impl Iterator<Item = RecordingIndex> + 't {
        let hash = key.hash_with(key.operands.iter().map(|o| anywhere(o.words(), o.owner.is_some())));
        let candidates = self.anywhere.get(&hash).into_iter().flatten().copied();
        candidates.filter(move |&at| self.recordings.get(at).is_some_and(|r| r.is_alike(&key)))
    }
}

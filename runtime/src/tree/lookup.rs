//! Finding a recording by its key.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::{Cursor, GroupId, Identity, Recording, RecordingIndex, Tree};
use crate::{
    memory::pool::StateId,
    value::key::{KeyOperand, KeyWriter, RecordedOperand},
};

/// What a recording is looked up by.
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

    /// Of everything that is compared.
    pub(crate) fn hash(&self) -> u64 {
        self.hash_with(self.operands.iter().map(|operand| operand.words()))
    }

    fn hash_with(&self, operands: impl Iterator<Item = [u64; 2]>) -> u64 {
        hash_words(self.identity, entry_seed(self.entry), self.shape, operands)
    }

    /// If all but the operands is that of the recording.
    #[inline]
    fn matches_but_operands(&self, recording: &Recording) -> bool {
        recording.identity == self.identity
            && recording.entry == self.entry
            && *recording.shape == *self.shape
    }
}

/// The operands of a recording that copies the live-ins at `positions`, ascending.
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

/// As of an operand that lies anywhere, if it is in an arena.
fn anywhere(words: [u64; 2], is_owned: bool) -> [u64; 2] {
    if is_owned { words } else { [0; 2] }
}

/// A hash of a key; `seed` is that of its pool state.
pub(super) fn hash_words(
    identity: Identity,
    seed: u64,
    shape: &[u64],
    operands: impl Iterator<Item = [u64; 2]>,
) -> u64 {
    let mut h = FxHasher::default();
    identity.hash(&mut h);
    h.write_u64(seed);
    shape.iter().for_each(|&word| h.write_u64(word));
    operands.flatten().for_each(|word| h.write_u64(word));
    h.finish()
}

fn entry_seed(entry: StateId) -> u64 {
    let mut h = FxHasher::default();
    entry.hash(&mut h);
    h.finish()
}

impl Recording {
    #[inline]
    fn is(&self, key: &LookupKey<'_>) -> bool {
        key.matches_but_operands(self) && *self.operands == *key.operands
    }

    /// Under which it is found.
    pub(super) fn hash(&self) -> u64 {
        let operands = self.operands.iter().map(|operand| operand.words());
        hash_words(self.identity, entry_seed(self.entry), &self.shape, operands)
    }

    /// Under which it is found wherever live-ins in arenas lie.
    pub(super) fn hash_anywhere(&self) -> u64 {
        let operands = self.operands.iter().map(|o| anywhere(o.words(), o.owner().is_some()));
        hash_words(self.identity, entry_seed(self.entry), &self.shape, operands)
    }

    /// If it is one for that key, wherever live-ins in arenas lie.
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
    /// The recording of this segment from this state with these inputs, if `free` says that its
    /// result blocks can be taken. Tries the child that came last time first.
    pub(crate) fn find(
        &self,
        key: LookupKey<'_>,
        free: impl Fn(&Recording) -> bool,
    ) -> Option<RecordingIndex> {
        let predicted = match self.cursor {
            Cursor::At(at) => self.recordings.get(at).and_then(|recording| recording.likely),
            Cursor::Start => self.roots.get(&self.caller.id).and_then(|start| start.likely),
            Cursor::OffPath => None,
        };
        if let Some(at) = predicted
            && let Some(recording) = self.recordings.get(at)
            && recording.is(&key)
            && free(recording)
        {
            return Some(at);
        }
        let fits = |r: &Recording| r.is(&key) && free(r) && self.skipped(r.group, key.operands).is_none();
        let candidates = self.index.get(&key.hash())?;
        candidates.iter().copied().find(|&at| self.recordings.get(at).is_some_and(&fits))
    }

    /// The recording of this segment that fits but for live-ins that it copies.
    pub(crate) fn find_copying(
        &self,
        group: GroupId,
        key: LookupKey<'_>,
        free: impl Fn(&Recording) -> bool,
    ) -> Option<RecordingIndex> {
        self.groups[group].copied.iter().find_map(|(positions, _)| {
            let operands = recorded(key.operands, positions);
            let candidates = self.index.get(&key.hash_with(operands.clone().map(RecordedOperand::words)))?;
            let fits = |r: &Recording| {
                r.group == group
                    && key.matches_but_operands(r)
                    && r.operands.iter().copied().eq(operands.clone())
                    && free(r)
            };
            candidates.iter().copied().find(|&at| self.recordings.get(at).is_some_and(fits))
        })
    }

    /// The recordings of this segment from this state, wherever their live-ins in arenas lay.
    pub(crate) fn alike<'t>(&'t self, key: LookupKey<'t>) -> impl Iterator<Item = RecordingIndex> + 't {
        let hash = key.hash_with(key.operands.iter().map(|o| anywhere(o.words(), o.owner.is_some())));
        let candidates = self.anywhere.get(&hash).into_iter().flatten().copied();
        candidates.filter(move |&at| self.recordings.get(at).is_some_and(|r| r.is_alike(&key)))
    }
}

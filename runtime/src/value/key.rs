//! Keys, by which recordings are looked up: the structure and the addresses of everything that enters a
//! segment.
//!
//! A key belongs to one type of live-ins, so it does not need to identify the type; within that type it is
//! prefix-free: whatever varies in length (a vector, a rank, a variant) is announced before it is written.
//! For a trait object, whose type does not determine its contents, the concrete type is announced as well.

use std::sync::Arc;

use super::{
    dim::RawDim,
    layout::{Layout, PaddedDims},
    memory::SharedMemory,
    owned::{Owned, OwnerId},
    raw::{RawTensor, SlotId},
    recorded_addr::RecordedAddr,
};
use crate::DType;

/// The properties of a live-in tensor that a recording or a replay needs. Small, because it is copied on
/// every call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyTensor {
    pub(crate) slot: SlotId,
    /// Its index among the device operands.
    pub(crate) operand: u32,
    /// Set if a dimension is padded.
    pub(crate) padded: bool,
}

/// A device operand of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyOperand {
    /// Identity of owned memory; `None` in an arena.
    pub(crate) owner: Option<OwnerId>,
    pub(crate) addr: u64,
}

impl KeyOperand {
    /// Returns the words that are hashed.
    #[inline]
    pub(crate) fn words(self) -> [u64; 2] {
        [word(self.owner), self.addr]
    }
}

/// A device operand of a recording. Its address is fixed, unless the recording copies the live-in from its current
/// address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordedOperand {
    owner: Option<OwnerId>,
    addr: RecordedAddr,
}

impl RecordedOperand {
    /// Creates an operand that must be at its current address.
    #[inline]
    pub(crate) fn fixed(operand: KeyOperand) -> Self {
        Self { owner: operand.owner, addr: RecordedAddr::fixed(operand.addr) }
    }

    /// Creates an operand that is copied, so it can be at any address.
    #[inline]
    pub(crate) fn copied(operand: KeyOperand) -> Self {
        Self { owner: operand.owner, addr: RecordedAddr::copied() }
    }

    /// Returns the address; `None` if it is copied.
    pub(crate) fn addr(self) -> Option<u64> {
        self.addr.get()
    }

    pub(crate) fn owner(self) -> Option<OwnerId> {
        self.owner
    }

    /// Returns whether the recording can run with that operand: it is equal, or is copied.
    pub(crate) fn fits(self, operand: &KeyOperand) -> bool {
        self == *operand || self == Self::copied(*operand)
    }

    /// Returns the words that are hashed: those of the operand itself, unless it is copied.
    #[inline]
    pub(crate) fn words(self) -> [u64; 2] {
        [word(self.owner), self.addr.word()]
    }
}

/// Returns whether the operands of a key are those of a recording. Differences are collected instead of compared
/// one by one, so that the loop has no branches: almost always there are none.
#[inline]
pub(crate) fn same_operands(recorded: &[RecordedOperand], operands: &[KeyOperand]) -> bool {
    let difference =
        |(a, b): (&RecordedOperand, &KeyOperand)| (word(a.owner) ^ word(b.owner)) | a.addr.difference(b.addr);
    recorded.len() == operands.len()
        && recorded.iter().zip(operands).map(difference).fold(0, |all, d| all | d) == 0
}

impl PartialEq<KeyOperand> for RecordedOperand {
    #[inline]
    fn eq(&self, operand: &KeyOperand) -> bool {
        self.owner == operand.owner && self.addr.difference(operand.addr) == 0
    }
}

/// Returns an owner as a word to be hashed.
#[inline]
fn word(owner: Option<OwnerId>) -> u64 {
    owner.map_or(0, OwnerId::get)
}

/// Collects the key of a segment's live-ins. It is cleared and reused between calls, so that writing a key
/// does not allocate.
#[derive(Debug, Default)]
pub struct KeyWriter {
    /// Structural words: dtypes, ranks, sizes, strides where they matter, padding marks, lengths,
    /// discriminants, host values.
    pub(crate) shape: Vec<u64>,
    /// Every device operand, in order.
    pub(crate) operands: Vec<KeyOperand>,
    /// Every tensor, in order.
    pub(crate) tensors: Vec<KeyTensor>,
    /// Owned memory that a recording must keep alive; filled only while `collect` is set.
    pub(crate) owned: Vec<(OwnerId, SharedMemory)>,
    /// For every tensor, the bytes from its first to its last element; filled only while `collect` is set.
    pub(crate) extents: Vec<u64>,
    /// Set while `owned` and `extents` are to be filled: when something is recorded, not when it is looked
    /// up.
    pub(crate) collect: bool,
    /// The id of the runtime that the key belongs to.
    runtime: u64,
    /// Set if anything in it belongs to another runtime, where its slots and ids have a different meaning.
    pub(crate) foreign: bool,
    /// Set if a tensor in it is padded, or if it contains a padded size or one computed from it: anything created
    /// with that has padding.
    padded: bool,
}

impl KeyWriter {
    /// Creates an empty key of the runtime with that id.
    pub(crate) fn of_runtime(runtime: u64) -> Self {
        Self { runtime, ..Self::default() }
    }

    /// Writes one structural word.
    #[inline]
    pub fn word(&mut self, word: u64) {
        self.shape.push(word);
    }

    /// Writes a byte string, after its length.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }

    /// Writes a tensor: its element type, layout, padding and address.
    #[inline]
    pub(crate) fn tensor(&mut self, raw: &RawTensor) {
        self.layout(raw.dtype, raw.marks, &raw.layout);
        let RawTensor { slot, owner, addr, marks, .. } = *raw;
        let operand = self.operands.len() as u32;
        self.operands.push(KeyOperand { owner, addr });
        let padded = marks.any();
        self.padded |= padded;
        self.tensors.push(KeyTensor { slot, operand, padded });
        if self.collect {
            let (start, end) = raw.view().range();
            self.extents.push(end - start);
        }
    }

    /// Records that the key contains a part of the runtime with that id.
    #[inline]
    pub(crate) fn part_of(&mut self, runtime: u64) {
        self.foreign |= runtime != self.runtime;
    }

    /// Writes a parameter or state: its identity, and its layout.
    #[inline]
    pub(crate) fn owned(&mut self, owned: &Arc<Owned>, dtype: DType, layout: &Layout) {
        self.owned_at(owned, 0, dtype, layout);
    }

    /// Writes the identity of a host value that recordings keep. It is structure, too: what a body launches may depend on it.
    #[inline]
    pub(crate) fn identity(&mut self, owned: &Arc<Owned>) {
        self.foreign |= owned.runtime != self.runtime;
        self.word(owned.id.get());
        self.operands.push(KeyOperand { owner: Some(owned.id), addr: owned.memory.addr() });
        if self.collect {
            self.owned.push((owned.id, SharedMemory::clone(&owned.memory)));
        }
    }

    /// Like [`owned`](Self::owned), for a view that starts `offset` bytes into the memory.
    #[inline]
    pub(crate) fn owned_at(&mut self, owned: &Arc<Owned>, offset: u64, dtype: DType, layout: &Layout) {
        self.foreign |= owned.runtime != self.runtime;
        self.layout(dtype, PaddedDims::NONE, layout);
        self.operands.push(KeyOperand { owner: Some(owned.id), addr: owned.memory.addr() + offset });
        if self.collect {
            self.owned.push((owned.id, SharedMemory::clone(&owned.memory)));
        }
    }

    /// Writes one header word (element type, rank, contiguity, marks), the sizes, and the strides unless they
    /// follow from the sizes.
    #[inline]
    fn layout(&mut self, dtype: DType, marks: PaddedDims, layout: &Layout) {
        let contiguous = layout.is_contiguous();
        let header = dtype as u64 | (layout.rank() as u64) << 4 | u64::from(contiguous) << 8;
        self.shape.push(marks.word() << 16 | header);
        // One by one: there are few, and `extend` prepares for many.
        layout.shape().iter().for_each(|&n| self.shape.push(n as u64));
        if !contiguous {
            self.shape.extend(layout.meaning().map(|n| n as u64));
        }
    }

    /// Returns the identity of a live-in tensor's memory; `None` if it is in an arena.
    #[inline]
    pub(crate) fn owner(&self, tensor: &KeyTensor) -> Option<OwnerId> {
        self.operands[tensor.operand as usize].owner
    }

    /// Returns the address of a device operand.
    #[inline]
    pub(crate) fn addr(&self, operand: u32) -> u64 {
        self.operands[operand as usize].addr
    }

    /// Returns whether a body with this key may read the real sizes of its call.
    pub(crate) fn has_padding(&self) -> bool {
        self.padded
    }

    pub(crate) fn raw_size(&mut self, dim: RawDim) {
        self.padded |= dim.symbol().is_some();
        self.shape.extend_from_slice(&[dim.word(), dim.size as u64]);
    }

    /// Writes the contents of `self` to `other`.
    pub(crate) fn copy_to(&self, other: &mut Self) {
        let before = other.operands.len() as u32;
        other.shape.extend_from_slice(&self.shape);
        other.operands.extend_from_slice(&self.operands);
        let shifted = |t: &KeyTensor| KeyTensor { operand: t.operand + before, ..*t };
        other.tensors.extend(self.tensors.iter().map(shifted));
        other.foreign |= self.foreign;
        other.padded |= self.padded;
        if other.collect {
            other.extents.extend_from_slice(&self.extents);
            other.owned.extend(self.owned.iter().map(|(id, m)| (*id, SharedMemory::clone(m))));
        }
    }

    /// Clears everything except the capacity.
    pub fn clear(&mut self) {
        self.shape.clear();
        self.operands.clear();
        self.tensors.clear();
        self.owned.clear();
        self.extents.clear();
        self.foreign = false;
        self.padded = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(shape: &[usize], strides: &[usize], marks: PaddedDims) -> RawTensor {
        RawTensor {
            slot: SlotId::at(0),
            epoch: 0,
            dtype: DType::F32,
            marks,
            addr: 4096,
            owner: None,
            layout: Layout::strided(shape, strides).unwrap(),
        }
    }

    fn key_of(raw: &RawTensor) -> KeyWriter {
        let mut k = KeyWriter::default();
        k.tensor(raw);
        k
    }

    #[test]
    fn a_transposed_square_has_another_key() {
        let plain = key_of(&raw(&[3, 3], &[3, 1], PaddedDims::NONE));
        let turned = key_of(&raw(&[3, 3], &[1, 3], PaddedDims::NONE));
        assert_ne!(plain.shape, turned.shape);
        assert_eq!(plain.operands, [KeyOperand { owner: None, addr: 4096 }]);
    }

    #[test]
    fn padding_rank_and_dtype_are_in_the_key() {
        let plain = raw(&[2, 3], &[3, 1], PaddedDims::NONE);
        let padded = raw(&[2, 3], &[3, 1], PaddedDims::NONE.with(0, Some(0)));
        let other_axis = raw(&[2, 3], &[3, 1], PaddedDims::NONE.with(1, Some(0)));
        let last_axis = raw(&[1; 6], &[1; 6], PaddedDims::NONE.with(0, Some(254)));
        let keys: Vec<_> = [plain, padded, other_axis, RawTensor { dtype: DType::U32, ..plain }]
            .iter()
            .chain([
                &raw(&[2, 3, 1], &[3, 1, 1], PaddedDims::NONE),
                &raw(&[1; 6], &[1; 6], PaddedDims::NONE),
                &last_axis,
            ])
            .map(|r| key_of(r).shape)
            .collect();
        for (i, a) in keys.iter().enumerate() {
            for b in &keys[i + 1..] {
                assert_ne!(a, b);
            }
        }
    }

    #[test]
    fn clearing_keeps_capacity() {
        let mut k = key_of(&raw(&[2, 3], &[3, 1], PaddedDims::NONE));
        let capacity = (k.shape.capacity(), k.operands.capacity());
        k.clear();
        assert!(k.shape.is_empty() && k.operands.is_empty() && k.tensors.is_empty());
        assert_eq!((k.shape.capacity(), k.operands.capacity()), capacity);
    }
}

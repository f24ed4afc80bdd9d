//! What a recording is looked up by: the structure and the addresses of everything that enters a segment.
//!
//! A key belongs to one type of live-ins, so it need not say which type; within that type it is
//! prefix-free: whatever varies in length (a vector, a rank, a variant) is announced before it is written. Behind a
//! pointer whose type leaves open what it leads to (a trait object), the type is announced as well.

use std::{
    any::TypeId,
    cell::RefCell,
    marker::PhantomData,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use half::{bf16, f16};
use rustc_hash::FxHashMap;

use crate::{
    DType, Dim, Element, Param, Scalar, Scope, Shape, State, Tensor,
    backend::SharedMemory,
    tensor::{RawTensor, dim::RawDim, param::Owned},
    value::layout::{Layout, Marks},
};

/// What a recording or a replay must know of a live-in tensor. Small: it is copied on every call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyTensor {
    pub(crate) slot: u32,
    /// Its index among the device operands.
    pub(crate) operand: u32,
    /// Identity of owned memory, 0 for arena blocks.
    pub(crate) owned: u64,
    /// Whether a dimension is padded.
    pub(crate) padded: bool,
}

/// Collects the key of a segment's live-ins. Kept and cleared between calls, so that writing a key
/// does not allocate.
#[derive(Debug, Default)]
pub struct KeyWriter {
    /// Structural words: dtypes, ranks, sizes, strides where they matter, padding marks, lengths,
    /// discriminants, host values.
    pub(crate) shape: Vec<u64>,
    /// Two words for every device operand: identity of owned memory (0 in an arena), and address.
    pub(crate) addrs: Vec<u64>,
    /// Every tensor, in order.
    pub(crate) tensors: Vec<KeyTensor>,
    /// Owned memory that a recording must keep alive; filled only while `collect` is set.
    pub(crate) owned: Vec<(u64, SharedMemory)>,
    /// For every tensor, the bytes from its first to its last element; filled only while `collect` is set.
    pub(crate) extents: Vec<u64>,
    /// Whether to fill `owned` and `extents`: when something is recorded, not when it is looked up.
    pub(crate) collect: bool,
    /// Id of the runtime whose key this is.
    pub(crate) runtime: u64,
    /// Whether anything in it belongs to another runtime: its slots and ids mean something else there.
    pub(crate) foreign: bool,
    /// Whether a padded size is in it, or one computed from it: what is made with it has padding.
    pub(crate) sizes: bool,
}

impl KeyWriter {
    /// One structural word.
    #[inline]
    pub fn word(&mut self, word: u64) {
        self.shape.push(word);
    }

    /// A value that may be of any size: what a trait object is comes first.
    #[inline]
    pub fn value<T: LiveIn + ?Sized>(&mut self, value: &T) {
        // Whether the pointer has a second word is known when this is compiled.
        if size_of::<&T>() > size_of::<usize>() {
            value.write_type(self);
        }
        value.write_key(self);
    }

    /// The type of a value, as a number.
    fn type_of<T: ?Sized>(&mut self) {
        self.word(number_of(typeid::of::<T>()));
    }

    /// A byte string, its length first.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }

    /// A tensor: its element type, layout, padding and address.
    #[inline]
    pub(crate) fn tensor(&mut self, raw: &RawTensor) {
        self.layout(raw.dtype, raw.marks, &raw.layout);
        let operand = (self.addrs.len() / 2) as u32;
        self.addrs.extend_from_slice(&[raw.owned, raw.addr]);
        self.tensors.push(KeyTensor { slot: raw.slot, operand, owned: raw.owned, padded: raw.marks.any() });
        if self.collect {
            let (start, end) = raw.view().range();
            self.extents.push(end - start);
        }
    }

    /// A tensor of user code.
    #[inline]
    fn live_in<T>(&mut self, tensor: &Tensor<'_, T>) {
        self.foreign |= tensor.rt.id() != self.runtime;
        self.tensor(&tensor.raw);
    }

    /// A parameter or state: its identity, and its layout.
    #[inline]
    pub(crate) fn owned(&mut self, owned: &Arc<Owned>, dtype: DType, layout: &Layout) {
        self.owned_at(owned, 0, dtype, layout);
    }

    /// As [`owned`](Self::owned), for a view that starts `offset` bytes into the memory.
    #[inline]
    pub(crate) fn owned_at(&mut self, owned: &Arc<Owned>, offset: u64, dtype: DType, layout: &Layout) {
        self.foreign |= owned.runtime != self.runtime;
        self.layout(dtype, Marks::NONE, layout);
        self.addrs.extend_from_slice(&[owned.id, owned.memory.addr() + offset]);
        if self.collect {
            self.owned.push((owned.id, SharedMemory::clone(&owned.memory)));
        }
    }

    /// One header word (element type, rank, contiguity, marks), the sizes, and the strides unless
    /// they follow from the sizes.
    #[inline]
    fn layout(&mut self, dtype: DType, marks: Marks, layout: &Layout) {
        let contiguous = layout.is_contiguous();
        let header = dtype as u64 | (layout.rank() as u64) << 4 | u64::from(contiguous) << 8;
        self.shape.push(marks.word() << 16 | header);
        self.shape.extend(layout.shape().iter().map(|&n| n as u64));
        if !contiguous {
            self.shape.extend(layout.meaning().map(|n| n as u64));
        }
    }

    /// A size: one recording is made for each, as for the shape that it is part of.
    pub(crate) fn size(&mut self, dim: &Dim<'_>) {
        self.foreign |= dim.is_padded() && dim.rt.is_some_and(|rt| rt.id() != self.runtime);
        self.raw_size(dim.raw);
    }

    /// Whether a body of this key may read the real sizes of its call.
    pub(crate) fn has_padding(&self) -> bool {
        self.sizes || self.tensors.iter().any(|t| t.padded)
    }

    pub(crate) fn raw_size(&mut self, dim: RawDim) {
        self.sizes |= dim.symbol().is_some();
        self.shape.extend_from_slice(&[dim.word(), dim.size as u64]);
    }

    /// Writes again what `self` holds.
    pub(crate) fn copy_to(&self, other: &mut Self) {
        let before = (other.addrs.len() / 2) as u32;
        other.shape.extend_from_slice(&self.shape);
        other.addrs.extend_from_slice(&self.addrs);
        let shifted = |t: &KeyTensor| KeyTensor { operand: t.operand + before, ..*t };
        other.tensors.extend(self.tensors.iter().map(shifted));
        other.foreign |= self.foreign;
        other.sizes |= self.sizes;
        if other.collect {
            other.extents.extend_from_slice(&self.extents);
            other.owned.extend(self.owned.iter().map(|(id, m)| (*id, SharedMemory::clone(m))));
        }
    }

    /// Forgets everything but the capacity.
    pub fn clear(&mut self) {
        self.shape.clear();
        self.addrs.clear();
        self.tensors.clear();
        self.owned.clear();
        self.extents.clear();
        self.foreign = false;
        self.sizes = false;
    }
}

/// A value that a segment may use: it can be part of the segment's key.
///
/// Implemented for tensors, parameters, state, plain host values (compared by value), and containers
/// of these; for structs by `#[derive(Params)]`, `#[derive(GraphOutput)]` and `#[derive(ConfigValue)]`.
/// Nothing with interior mutability has it, because a replay would not see the change.
///
/// The derives are the only way to implement it: what a key is made of is not public, and a key that left
/// something out would replay wrong values. A handle of another library (a plan, a pool, a connection) is no
/// part of a key, so it is no parameter: keep it in a `static` `OnceLock` or a `thread_local!`, and use it in an
/// `#[eager(cx)]` region, which runs on every call.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot enter a captured segment",
    label = "used by a segment, and not part of its key",
    note = "make a struct of weights `#[derive(Params)]`, a struct of tensors `#[derive(GraphOutput)]`, host settings `#[derive(ConfigValue)]`",
    note = "mark a host parameter `#[key]` (one recording per value) or take it as `#[host] x: &Scalar<_>` (refreshed on every call)",
    note = "or use it in an `#[eager]` region or a `#[host] let`, which run on every call"
)]
pub trait LiveIn {
    /// Writes every part of the value that a recording depends on.
    #[doc(hidden)]
    fn write_key(&self, k: &mut KeyWriter);

    /// Writes which type the value is of. Through a trait object this is the type behind it, without a word from
    /// whoever wrote the trait.
    #[doc(hidden)]
    fn write_type(&self, k: &mut KeyWriter) {
        k.type_of::<Self>();
    }
}

/// A number for a type: equal for equal types, on every thread.
fn number_of(id: TypeId) -> u64 {
    /// As many as the program has types behind trait objects in keys.
    static ALL: Mutex<Option<FxHashMap<TypeId, u64>>> = Mutex::new(None);
    thread_local! {
        static SEEN: RefCell<FxHashMap<TypeId, u64>> = RefCell::default();
    }
    let shared = || {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.get_or_insert_default();
        let next = all.len() as u64;
        *all.entry(id).or_insert(next)
    };
    SEEN.try_with(|seen| *seen.borrow_mut().entry(id).or_insert_with(shared)).unwrap_or_else(|_| shared())
}

/// A value of which eager code can only have made the handle: what it holds is on the device.
#[diagnostic::on_unimplemented(
    message = "a value of eager code enters a segment: `{Self}`",
    label = "came from an `#[eager]` expression",
    note = "mark its `let` with `#[key]`: one recording is made per value",
    note = "or keep it on the device, as a tensor; `Ragged::pad_to` makes one of a fixed size"
)]
pub trait DeviceValue: LiveIn {}

/// A host value that selects a recording: the type of a `#[key]` parameter.
///
/// Integers, `bool`, `char`, strings, and options, tuples, arrays and vectors of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a `#[key]`",
    label = "one recording is made per value of a key",
    note = "keys are integers, `bool`, `char`, strings, durations, and options, tuples, arrays, vectors, ranges and maps of them; derive `Clone` and `ConfigValue` for an enum or struct of these",
    note = "floats have too many values for that: take `#[host] x: &Scalar<f32>`, refreshed on every call, or a `#[config]` field of a `#[derive(Params)]` struct"
)]
pub trait Key: LiveIn + Clone {}

macro_rules! device {
    ($($t:ident => |$v:ident, $k:ident| $write:expr;)*) => {$(
        impl<T> LiveIn for $t<'_, T> {
            #[inline]
            fn write_key(&self, $k: &mut KeyWriter) {
                let $v = self;
                $write;
            }
        }
        impl<T> DeviceValue for $t<'_, T> {}
    )*};
}

device! {
    Tensor => |t, k| k.live_in(t);
    Scalar => |s, k| k.live_in(s.tensor());
}

impl<T: Element> LiveIn for Param<T> {
    #[inline]
    fn write_key(&self, k: &mut KeyWriter) {
        k.owned(&self.owned, T::DTYPE, &self.layout);
    }
}

impl<T: Element> LiveIn for State<T> {
    #[inline]
    fn write_key(&self, k: &mut KeyWriter) {
        k.owned(&self.owned, T::DTYPE, &self.layout);
    }
}

impl LiveIn for Dim<'_> {
    fn write_key(&self, k: &mut KeyWriter) {
        k.size(self);
    }
}
impl Key for Dim<'_> {}

impl LiveIn for Shape<'_> {
    fn write_key(&self, k: &mut KeyWriter) {
        k.word(self.len() as u64);
        self.iter().for_each(|dim| k.size(dim));
    }
}
impl Key for Shape<'_> {}

// A scope is the runtime, and a key belongs to one runtime.
impl LiveIn for Scope<'_> {
    fn write_key(&self, _: &mut KeyWriter) {}
}
impl DeviceValue for Scope<'_> {}

macro_rules! words {
    ($($t:ty: |$v:ident| $word:expr;)*) => {$(
        impl LiveIn for $t {
            #[inline]
            fn write_key(&self, k: &mut KeyWriter) {
                let $v = *self;
                k.word($word);
            }
        }
    )*};
}

words! {
    u8: |v| u64::from(v);
    u16: |v| u64::from(v);
    u32: |v| u64::from(v);
    u64: |v| v;
    usize: |v| v as u64;
    i8: |v| v as u64;
    i16: |v| v as u64;
    i32: |v| v as u64;
    i64: |v| v as u64;
    isize: |v| v as u64;
    bool: |v| u64::from(v);
    char: |v| u64::from(v);
    f32: |v| u64::from(v.to_bits());
    f64: |v| v.to_bits();
    f16: |v| u64::from(v.to_bits());
    bf16: |v| u64::from(v.to_bits());
    DType: |v| v as u64;
}

impl LiveIn for u128 {
    fn write_key(&self, k: &mut KeyWriter) {
        k.word(*self as u64);
        k.word((*self >> 64) as u64);
    }
}

impl LiveIn for i128 {
    fn write_key(&self, k: &mut KeyWriter) {
        (*self as u128).write_key(k);
    }
}

impl LiveIn for str {
    fn write_key(&self, k: &mut KeyWriter) {
        k.bytes(self.as_bytes());
    }
    fn write_type(&self, _: &mut KeyWriter) {}
}

impl LiveIn for String {
    fn write_key(&self, k: &mut KeyWriter) {
        k.bytes(self.as_bytes());
    }
}

macro_rules! keys {
    ($($t:ty),*) => {$(impl Key for $t {})*};
}
keys! { u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, bool, char, String, &str, DType, () }

// Whatever a pointer or a container leads to.
macro_rules! through {
    ($t:ident: $($pointer:ty),*) => {$(
        impl<$t: LiveIn + ?Sized> LiveIn for $pointer {
            #[inline]
            fn write_key(&self, k: &mut KeyWriter) {
                k.value(&**self);
            }
        }
        impl<$t: DeviceValue + ?Sized> DeviceValue for $pointer {}
    )*};
}
through! { T: &T, Box<T>, Arc<T> }

impl<T: LiveIn> LiveIn for Option<T> {
    #[inline]
    fn write_key(&self, k: &mut KeyWriter) {
        k.word(u64::from(self.is_some()));
        if let Some(value) = self {
            value.write_key(k);
        }
    }
}

impl<T: LiveIn> LiveIn for [T] {
    #[inline]
    fn write_key(&self, k: &mut KeyWriter) {
        k.word(self.len() as u64);
        for item in self {
            item.write_key(k);
        }
    }
    fn write_type(&self, _: &mut KeyWriter) {}
}

impl<T: LiveIn> LiveIn for Vec<T> {
    #[inline]
    fn write_key(&self, k: &mut KeyWriter) {
        self[..].write_key(k);
    }
}

// The length of an array is in its type.
impl<T: LiveIn, const N: usize> LiveIn for [T; N] {
    #[inline]
    fn write_key(&self, k: &mut KeyWriter) {
        for item in self {
            item.write_key(k);
        }
    }
}

impl<T: LiveIn> LiveIn for Range<T> {
    fn write_key(&self, k: &mut KeyWriter) {
        self.start.write_key(k);
        self.end.write_key(k);
    }
}

impl<T: ?Sized> LiveIn for PhantomData<T> {
    fn write_key(&self, _: &mut KeyWriter) {}
}
impl<T: ?Sized> DeviceValue for PhantomData<T> {}

impl LiveIn for () {
    fn write_key(&self, _: &mut KeyWriter) {}
}
impl DeviceValue for () {}

macro_rules! containers {
    ($($marker:ident)*) => {$(
        impl<T: $marker> $marker for Option<T> {}
        impl<T: $marker> $marker for Vec<T> {}
        impl<T: $marker, const N: usize> $marker for [T; N] {}
    )*};
}
containers! { DeviceValue Key }

impl<T: DeviceValue> DeviceValue for [T] {}

macro_rules! tuples {
    ($first:ident $($rest:ident)*) => {
        impl<$first: LiveIn, $($rest: LiveIn),*> LiveIn for ($first, $($rest,)*) {
            #[inline]
            #[allow(non_snake_case, reason = "the type parameters' names serve as bindings")]
            fn write_key(&self, k: &mut KeyWriter) {
                let ($first, $($rest,)*) = self;
                $first.write_key(k);
                $($rest.write_key(k);)*
            }
        }
        impl<$first: DeviceValue, $($rest: DeviceValue),*> DeviceValue for ($first, $($rest,)*) {}
        impl<$first: Key, $($rest: Key),*> Key for ($first, $($rest,)*) {}
        tuples! { $($rest)* }
    };
    () => {};
}
tuples! { A B C D E F G H I J K L M N O P Q R S T U V W X Y Z A1 B1 C1 D1 E1 F1 }

#[cfg(test)]
mod tests {
    use super::*;

    fn words<T: LiveIn + ?Sized>(value: &T) -> Vec<u64> {
        let mut k = KeyWriter::default();
        value.write_key(&mut k);
        k.shape
    }

    fn raw(shape: &[usize], strides: &[usize], marks: Marks) -> RawTensor {
        RawTensor {
            slot: 0,
            epoch: 0,
            dtype: DType::F32,
            marks,
            addr: 4096,
            owned: 0,
            layout: Layout::strided(shape, strides).unwrap(),
        }
    }

    fn key_of(raw: &RawTensor) -> KeyWriter {
        let mut k = KeyWriter::default();
        k.tensor(raw);
        k
    }

    #[test]
    fn absent_values_keep_their_place() {
        assert_ne!(words(&(Some(1u32), None::<u32>)), words(&(None::<u32>, Some(1u32))));
        assert_ne!(words(&Some(0u32)), words(&None::<u32>));
        assert_ne!(words(&(None::<u32>, 1u32)), words(&(Some(1u32), 1u32)));
    }

    #[test]
    fn lengths_separate_neighbours() {
        assert_ne!(words(&(vec![1u32, 2], vec![3u32])), words(&(vec![1u32], vec![2u32, 3])));
        assert_ne!(words(&("ab", "c")), words(&("a", "bc")));
        assert_ne!(words("a\0"), words("a"));
        assert_ne!(words(&vec![Vec::<u32>::new(); 2]), words(&vec![Vec::<u32>::new(); 1]));
    }

    #[test]
    fn host_values_count_by_bits() {
        assert_ne!(words(&0.0f32), words(&-0.0f32));
        assert_eq!(words(&f64::NAN), words(&f64::NAN));
        assert_ne!(words(&-1i128), words(&i128::from(u64::MAX)));
        assert_ne!(words(&(0..3usize)), words(&(0..4usize)));
    }

    #[test]
    fn a_transposed_square_has_another_key() {
        let plain = key_of(&raw(&[3, 3], &[3, 1], Marks::NONE));
        let turned = key_of(&raw(&[3, 3], &[1, 3], Marks::NONE));
        assert_ne!(plain.shape, turned.shape);
        assert_eq!(plain.addrs, [0, 4096]);
    }

    #[test]
    fn padding_rank_and_dtype_are_in_the_key() {
        let plain = raw(&[2, 3], &[3, 1], Marks::NONE);
        let padded = raw(&[2, 3], &[3, 1], Marks::NONE.with(0, Some(0)));
        let other_axis = raw(&[2, 3], &[3, 1], Marks::NONE.with(1, Some(0)));
        let last_axis = raw(&[1; 6], &[1; 6], Marks::NONE.with(0, Some(254)));
        let keys: Vec<_> = [plain, padded, other_axis, RawTensor { dtype: DType::U32, ..plain }]
            .iter()
            .chain([
                &raw(&[2, 3, 1], &[3, 1, 1], Marks::NONE),
                &raw(&[1; 6], &[1; 6], Marks::NONE),
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
        let mut k = key_of(&raw(&[2, 3], &[3, 1], Marks::NONE));
        let capacity = (k.shape.capacity(), k.addrs.capacity());
        k.clear();
        assert!(k.shape.is_empty() && k.addrs.is_empty() && k.tensors.is_empty());
        assert_eq!((k.shape.capacity(), k.addrs.capacity()), capacity);
    }
}

//! Values that can enter a segment.

use std::{
    any::TypeId,
    cell::RefCell,
    marker::PhantomData,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use half::{bf16, f16};
use rustc_hash::FxHashMap;

use super::key::KeyWriter;
use crate::DType;

/// A value that a segment can use: it can be part of the segment's key.
///
/// Implemented for tensors, parameters, state, plain host values (compared by value), and containers of
/// these; for structs by `#[derive(Params)]`, `#[derive(GraphOutput)]` and `#[derive(ConfigValue)]`. No type
/// with interior mutability implements it, because a replay would not see the change.
///
/// The derives are the only way to implement it: the contents of a key are not public, and a key that omitted
/// something would replay wrong values. A handle of another library (a plan, a pool, a connection) cannot be
/// part of a key, and therefore not a parameter: let a [custom operation](crate::custom) own it, which is known
/// by identity, or store it in a `static` `OnceLock` or a `thread_local!` and use it in an `#[eager(cx)]` region,
/// which runs on every call.
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

    /// Writes the type of the value. Called through a trait object, this is its concrete type, without any
    /// code by the author of the trait.
    #[doc(hidden)]
    fn write_type(&self, k: &mut KeyWriter) {
        k.type_of::<Self>();
    }
}

/// A value of which eager code can only have made the handle: its contents are on the device.
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

// Whatever a pointer or a container refers to.
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

// The length of an array is part of its type.
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

impl KeyWriter {
    /// Writes a value of any size: the concrete type of a trait object comes first.
    #[inline]
    pub fn value<T: LiveIn + ?Sized>(&mut self, value: &T) {
        // Whether this is a fat pointer is known at compile time.
        if size_of::<&T>() > size_of::<usize>() {
            value.write_type(self);
        }
        value.write_key(self);
    }

    /// Writes the type of a value, as a number.
    fn type_of<T: ?Sized>(&mut self) {
        self.word(number_of(typeid::of::<T>()));
    }
}

/// Returns the number of a type: equal for equal types, on every thread.
fn number_of(id: TypeId) -> u64 {
    /// At most as many as the program has types in trait objects in keys.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words<T: LiveIn + ?Sized>(value: &T) -> Vec<u64> {
        let mut k = KeyWriter::default();
        value.write_key(&mut k);
        k.shape
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
}

//! Values that leave a segment: written once when it is recorded, and read back on every replay.

use std::{marker::PhantomData, ops::Range, sync::Arc};

use half::{bf16, f16};

use crate::{DType, Dim, Runtime, Scalar, Scope, Shape, Tensor};

use crate::value::entry::{Encoder, Entries, Entry};

impl Encoder {
    pub(crate) fn of(rt: &Runtime) -> Self {
        Self::of_runtime(rt.id())
    }

    /// Writes a tensor.
    pub fn tensor<T>(&mut self, tensor: &Tensor<'_, T>) {
        self.part_of(tensor.rt.id());
        self.raw(&tensor.raw);
    }

    pub(crate) fn size(&mut self, dim: &Dim<'_>) {
        if let Some(rt) = dim.rt.filter(|_| dim.is_padded()) {
            self.part_of(rt.id());
        }
        self.raw_size(dim.raw);
    }
}

/// Returns the pieces of an output, in the order in which they were written.
///
/// Holds one reference to every tensor that it has not returned yet, and releases those when dropped.
pub struct Decoder<'s> {
    pub(crate) rt: &'s Runtime,
    /// `None` once it has been dropped.
    entries: Option<Entries>,
    next: usize,
}

impl<'s> Decoder<'s> {
    /// Takes over one reference to each tensor in `entries`.
    pub(crate) fn new(rt: &'s Runtime, entries: Entries) -> Self {
        Self { rt, entries: Some(entries), next: 0 }
    }

    fn peek(&self) -> Option<&Entry> {
        self.entries.as_ref()?.get(self.next)
    }

    /// Returns the next piece, a tensor with elements `T`.
    ///
    /// # Panics
    /// Panics if `decode` reads a different piece than `encode` wrote, which is a bug in a hand-written
    /// [`LiveOut`].
    pub fn tensor<T>(&mut self) -> Tensor<'s, T> {
        match self.peek() {
            Some(&Entry::Tensor(raw)) => {
                self.next += 1;
                Tensor::from_raw(self.rt, raw)
            }
            other => disagree("a tensor", other),
        }
    }

    /// Returns the next piece, a word.
    ///
    /// # Panics
    /// As [`tensor`](Self::tensor).
    pub fn word(&mut self) -> u64 {
        match self.peek() {
            Some(&Entry::Word(word)) => {
                self.next += 1;
                word
            }
            other => disagree("a word", other),
        }
    }

    fn size(&mut self) -> Dim<'s> {
        match self.peek() {
            Some(&Entry::Size(raw)) => {
                self.next += 1;
                Dim { raw, rt: Some(self.rt), call: self.rt.core.borrow().memory.call_number() }
            }
            other => disagree("a size", other),
        }
    }

    /// Returns the next piece, a string.
    ///
    /// # Panics
    /// As [`tensor`](Self::tensor).
    pub fn text(&mut self) -> Arc<str> {
        match self.peek() {
            Some(Entry::Text(text)) => {
                let text = Arc::clone(text);
                self.next += 1;
                text
            }
            other => disagree("a string", other),
        }
    }
}

impl Drop for Decoder<'_> {
    fn drop(&mut self) {
        let Some(entries) = self.entries.take() else { return };
        for entry in &entries[self.next..] {
            if let Entry::Tensor(raw) = entry {
                self.rt.release(raw.slot, raw.epoch);
            }
        }
        self.rt.core.borrow_mut().recorder.recycle(entries);
    }
}

impl std::fmt::Debug for Decoder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.entries.iter().flat_map(|all| &all[self.next..])).finish()
    }
}

#[cold]
fn disagree(expected: &str, found: Option<&Entry>) -> ! {
    panic!(
        "`LiveOut::decode` asks for {expected} where `encode` wrote {found:?}; the two must mirror each other"
    )
}

/// A value that can leave a segment: a replay returns it without running the body.
///
/// Implemented for tensors, plain host values and containers of these; for structs by
/// `#[derive(GraphOutput)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot leave a captured segment",
    label = "made in a segment and used after it",
    note = "if it is a host value, compute it with `#[host] let`, on every call",
    note = "if it is your struct of tensors, add `#[derive(GraphOutput)]`",
    note = "or compute it again where it is used"
)]
pub trait LiveOut<'s>: Sized {
    /// Writes the pieces of the value.
    #[doc(hidden)]
    fn encode(&self, e: &mut Encoder);
    /// Reads them back, in the same order.
    #[doc(hidden)]
    fn decode(d: &mut Decoder<'s>) -> Self;
}

impl<'s, T> LiveOut<'s> for Tensor<'s, T> {
    fn encode(&self, e: &mut Encoder) {
        e.tensor(self);
    }
    #[inline]
    fn decode(d: &mut Decoder<'s>) -> Self {
        d.tensor()
    }
}

impl<'s, T> LiveOut<'s> for Scalar<'s, T> {
    fn encode(&self, e: &mut Encoder) {
        e.tensor(self.tensor());
    }
    #[inline]
    fn decode(d: &mut Decoder<'s>) -> Self {
        Self(d.tensor())
    }
}

impl<'s> LiveOut<'s> for Dim<'s> {
    fn encode(&self, e: &mut Encoder) {
        e.size(self);
    }
    fn decode(d: &mut Decoder<'s>) -> Self {
        d.size()
    }
}

impl<'s> LiveOut<'s> for Shape<'s> {
    fn encode(&self, e: &mut Encoder) {
        e.word(self.len() as u64);
        self.iter().for_each(|dim| e.size(dim));
    }
    fn decode(d: &mut Decoder<'s>) -> Self {
        let rank = d.word() as usize;
        Shape::from_dims((0..rank).map(|_| d.size()))
    }
}

impl<'s> LiveOut<'s> for Scope<'s> {
    fn encode(&self, _: &mut Encoder) {}
    fn decode(d: &mut Decoder<'s>) -> Self {
        Self { rt: d.rt }
    }
}

macro_rules! words {
    ($($t:ty: |$v:ident| $to:expr, |$w:ident| $from:expr;)*) => {$(
        impl<'s> LiveOut<'s> for $t {
            fn encode(&self, e: &mut Encoder) {
                let $v = *self;
                e.word($to);
            }
            #[inline]
            fn decode(d: &mut Decoder<'s>) -> Self {
                let $w = d.word();
                $from
            }
        }
    )*};
}

words! {
    u8: |v| u64::from(v), |w| w as u8;
    u16: |v| u64::from(v), |w| w as u16;
    u32: |v| u64::from(v), |w| w as u32;
    u64: |v| v, |w| w;
    usize: |v| v as u64, |w| w as usize;
    i8: |v| v as u64, |w| w as i8;
    i16: |v| v as u64, |w| w as i16;
    i32: |v| v as u64, |w| w as i32;
    i64: |v| v as u64, |w| w as i64;
    isize: |v| v as u64, |w| w as isize;
    bool: |v| u64::from(v), |w| w != 0;
    char: |v| u64::from(v), |w| char::from_u32(w as u32).unwrap_or(char::REPLACEMENT_CHARACTER);
    f32: |v| u64::from(v.to_bits()), |w| f32::from_bits(w as u32);
    f64: |v| v.to_bits(), |w| f64::from_bits(w);
    f16: |v| u64::from(v.to_bits()), |w| f16::from_bits(w as u16);
    bf16: |v| u64::from(v.to_bits()), |w| bf16::from_bits(w as u16);
    DType: |v| v as u64, |w| dtype(w);
}

fn dtype(word: u64) -> DType {
    DType::ALL.into_iter().find(|&d| d as u64 == word).unwrap_or(DType::F32)
}

impl<'s> LiveOut<'s> for u128 {
    fn encode(&self, e: &mut Encoder) {
        e.word(*self as u64);
        e.word((*self >> 64) as u64);
    }
    fn decode(d: &mut Decoder<'s>) -> Self {
        let low = d.word();
        u128::from(low) | u128::from(d.word()) << 64
    }
}

impl<'s> LiveOut<'s> for i128 {
    fn encode(&self, e: &mut Encoder) {
        (*self as u128).encode(e);
    }
    fn decode(d: &mut Decoder<'s>) -> Self {
        u128::decode(d) as i128
    }
}

impl<'s> LiveOut<'s> for String {
    fn encode(&self, e: &mut Encoder) {
        e.text(self);
    }
    fn decode(d: &mut Decoder<'s>) -> Self {
        (*d.text()).to_owned()
    }
}

impl<'s, T: LiveOut<'s>> LiveOut<'s> for Option<T> {
    fn encode(&self, e: &mut Encoder) {
        e.word(u64::from(self.is_some()));
        if let Some(value) = self {
            value.encode(e);
        }
    }
    #[inline]
    fn decode(d: &mut Decoder<'s>) -> Self {
        (d.word() != 0).then(|| T::decode(d))
    }
}

impl<'s, T: LiveOut<'s>> LiveOut<'s> for Vec<T> {
    fn encode(&self, e: &mut Encoder) {
        e.word(self.len() as u64);
        for item in self {
            item.encode(e);
        }
    }
    fn decode(d: &mut Decoder<'s>) -> Self {
        (0..d.word()).map(|_| T::decode(d)).collect()
    }
}

impl<'s, T: LiveOut<'s>, const N: usize> LiveOut<'s> for [T; N] {
    fn encode(&self, e: &mut Encoder) {
        for item in self {
            item.encode(e);
        }
    }
    #[inline]
    fn decode(d: &mut Decoder<'s>) -> Self {
        std::array::from_fn(|_| T::decode(d))
    }
}

impl<'s, T: LiveOut<'s>> LiveOut<'s> for Box<T> {
    fn encode(&self, e: &mut Encoder) {
        (**self).encode(e);
    }
    fn decode(d: &mut Decoder<'s>) -> Self {
        Self::new(T::decode(d))
    }
}

impl<'s, T: LiveOut<'s>> LiveOut<'s> for Range<T> {
    fn encode(&self, e: &mut Encoder) {
        self.start.encode(e);
        self.end.encode(e);
    }
    fn decode(d: &mut Decoder<'s>) -> Self {
        let start = T::decode(d);
        start..T::decode(d)
    }
}

impl<'s, T: ?Sized> LiveOut<'s> for PhantomData<T> {
    fn encode(&self, _: &mut Encoder) {}
    fn decode(_: &mut Decoder<'s>) -> Self {
        Self
    }
}

impl<'s> LiveOut<'s> for () {
    fn encode(&self, _: &mut Encoder) {}
    fn decode(_: &mut Decoder<'s>) -> Self {}
}

macro_rules! tuples {
    ($first:ident $($rest:ident)*) => {
        impl<'s, $first: LiveOut<'s>, $($rest: LiveOut<'s>),*> LiveOut<'s> for ($first, $($rest,)*) {
            #[allow(non_snake_case, reason = "the type parameters' names serve as bindings")]
            fn encode(&self, e: &mut Encoder) {
                let ($first, $($rest,)*) = self;
                $first.encode(e);
                $($rest.encode(e);)*
            }
            #[inline]
            fn decode(d: &mut Decoder<'s>) -> Self {
                // Tuple fields are evaluated left to right.
                ($first::decode(d), $($rest::decode(d),)*)
            }
        }
        tuples! { $($rest)* }
    };
    () => {};
}
tuples! { A B C D E F G H I J K L M N O P Q R S T U V W X Y Z A1 B1 C1 D1 E1 F1 }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, GraphOutput, Step};

    #[derive(Debug, GraphOutput)]
    enum Out<'t, T> {
        Tensors { many: Vec<Tensor<'t, T>>, maybe: Option<Scalar<'t, u32>>, name: String },
        Host(i8, (f64, [Option<char>; 2]), Box<u128>, DType),
        Nothing,
    }

    /// Does what a replay does with the entries of a recording: each tensor in them gets another reference.
    fn replay<'s>(step: &Step<'s>, encoder: &Encoder) -> Decoder<'s> {
        let rt = step.scope().rt;
        for entry in &encoder.entries {
            if let Entry::Tensor(raw) = entry {
                rt.retain(raw.slot, raw.epoch);
            }
        }
        Decoder::new(rt, Box::new(encoder.entries.clone()))
    }

    #[test]
    fn host_values_come_back() {
        let mut rt = Runtime::new(Device::cpu()).unwrap();
        let step = rt.step().unwrap();
        let mut e = Encoder::default();
        let host = Out::<f32>::Host(-3, (-0.0, [Some('é'), None]), Box::new(u128::MAX - 1), DType::Bf16);
        host.encode(&mut e);
        Out::<f32>::Nothing.encode(&mut e);
        let mut d = replay(&step, &e);
        let back: [Out<'_, f32>; 2] = LiveOut::decode(&mut d);
        assert_eq!(format!("{back:?}"), format!("{:?}", [host, Out::Nothing]));
        assert!(format!("{d:?}") == "[]", "{d:?}");
    }

    #[test]
    fn tensors_come_back_and_are_freed_once() {
        let mut rt = Runtime::new(Device::cpu()).unwrap();
        let step = rt.step().unwrap();
        let (a, b) = (step.tensor(&[2], &[1.0f32, 2.0]).unwrap(), step.tensor(&[2], &[3.0f32, 4.0]).unwrap());
        let maybe = Scalar::from_tensor(step.tensor(&[], &[7u32]).unwrap()).unwrap();
        let first = a.raw.addr;
        let out = Out::Tensors { many: vec![a, b], maybe: Some(maybe), name: "x".into() };
        let mut e = Encoder::default();
        out.encode(&mut e);

        let again: Out<'_, f32> = LiveOut::decode(&mut replay(&step, &e));
        drop(out);
        let Out::Tensors { many, maybe: Some(maybe), name } = again else { panic!("{again:?}") };
        assert_eq!(step.read(&many[1]).unwrap(), [3.0, 4.0]);
        assert_eq!((step.item(&maybe).unwrap(), name.as_str()), (7, "x"));

        // Nothing else holds the memory, so the next tensor of that size gets it.
        drop(many);
        assert_eq!(step.tensor(&[2], &[0.0f32; 2]).unwrap().raw.addr, first);
    }

    #[test]
    fn what_was_not_asked_for_is_released() {
        let mut rt = Runtime::new(Device::cpu()).unwrap();
        let step = rt.step().unwrap();
        let (a, b) = (step.tensor(&[2], &[1.0f32; 2]).unwrap(), step.tensor(&[2], &[2.0f32; 2]).unwrap());
        let addrs = [a.raw.addr, b.raw.addr];
        let mut e = Encoder::default();
        a.encode(&mut e);
        b.encode(&mut e);
        let mut d = replay(&step, &e);
        drop((a, b));
        let a: Tensor<'_, f32> = LiveOut::decode(&mut d);
        drop(d);
        let c = step.tensor(&[2], &[3.0f32; 2]).unwrap();
        assert_eq!((a.raw.addr, c.raw.addr), (addrs[0], addrs[1]));
    }

    #[test]
    #[should_panic(expected = "must mirror each other")]
    fn a_decoder_that_does_not_mirror_is_caught() {
        let mut rt = Runtime::new(Device::cpu()).unwrap();
        let step = rt.step().unwrap();
        let mut e = Encoder::default();
        1u32.encode(&mut e);
        String::decode(&mut replay(&step, &e));
    }
}
